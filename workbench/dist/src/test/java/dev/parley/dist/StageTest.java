package dev.parley.dist;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.lab.LabException;
import dev.parley.process.Packaged;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StageTest {
    @TempDir
    Path folder;

    private Path staged() throws IOException {
        return MadeUp.staged(MadeUp.checkout(folder.resolve("checkout")), folder.resolve("a distribution"));
    }

    @Test
    void everyJarIsThereOnceAndEachModuleFindsItsOwn() throws IOException {
        Path root = staged();

        try (Stream<Path> files = Files.list(root.resolve("lib"))) {
            assertThat(files.map(file -> file.getFileName().toString()))
                    .containsExactlyInAnyOrder(
                            "parley-cli-1.jar",
                            "parley-transport-soap-1.jar",
                            "shared-1.jar",
                            "soap-2.jar",
                            "jvm.options",
                            Packaged.LICENCES);
        }
        assertThat(Packaged.jars(root, "transport/soap"))
                .containsExactly(
                        root.resolve("lib/parley-transport-soap-1.jar"),
                        root.resolve("lib/soap-2.jar"),
                        root.resolve("lib/shared-1.jar"))
                .allSatisfy(jar -> assertThat(jar).isRegularFile());
    }

    @Test
    void twoJarsOfOneNameThatDifferAreRefused() throws IOException {
        Path checkout = MadeUp.checkout(folder.resolve("checkout"));
        Path other = MadeUp.jar(folder.resolve("elsewhere/shared-1.jar"), Map.of("A.class", "another"));
        MadeUp.write(checkout, "workbench/transport/soap/target/runtime.classpath", other.toString());

        assertThatThrownBy(() -> Stage.lay(checkout, MadeUp.MODULES, MadeUp.FACTS, folder.resolve("distribution")))
                .isInstanceOf(LabException.class)
                .hasMessageContaining("org/a/shared/1/shared-1.jar and " + other + " differ");
    }

    @Test
    void licencesAndFactsStandBesideTheJars() throws IOException {
        Path root = staged();

        assertThat(root.resolve("lib").resolve(Packaged.LICENCES))
                .content()
                .contains("\nsoap-2.jar\tMIT\n", "\nshared-1.jar\tunknown\n");
        assertThat(Packaged.commit(root)).contains("0123456789ab");
        assertThat(root.resolve("README.txt"))
                .content()
                .startsWith("Parley 1.2.3 for linux-x64, built from commit 0123456789ab of 2026-01-02T03:04:05Z.")
                .contains("Temurin 25.0.1+8", "bin/parley compare --quick")
                .doesNotContain("%s");
        assertThat(root.resolve("docs/observing/prometheus.yml")).hasContent("scrape\n");
        assertThat(root.resolve("LICENSE")).hasContent("a licence\n");
    }

    @Test
    void theStoresJarKeepsTheNativeLibraryOfItsSystemAlone() throws IOException {
        Path jar = MadeUp.jar(
                folder.resolve("duckdb_jdbc-1.jar"),
                Map.of(
                        "org/duckdb/A.class", "a class",
                        "libduckdb_java.so_linux_amd64", "ours",
                        "libduckdb_java.so_linux_arm64", "another's",
                        "libduckdb_java.so_windows_amd64", "another's"));
        Path copy = folder.resolve("copy.jar");

        Stage.copy(jar, copy, "linux-x64");

        try (ZipFile read = new ZipFile(copy.toFile())) {
            assertThat(read.stream().map(ZipEntry::getName))
                    .containsExactlyInAnyOrder("org/duckdb/A.class", "libduckdb_java.so_linux_amd64");
            assertThat(new String(
                            read.getInputStream(read.getEntry("libduckdb_java.so_linux_amd64"))
                                    .readAllBytes(),
                            StandardCharsets.UTF_8))
                    .isEqualTo("ours");
        }
    }

    @Test
    void theLauncherRunsTheCommandLineOnTheRuntimeBesideIt() throws Exception {
        Path root = staged().toRealPath();
        Path link = Files.createSymbolicLink(folder.resolve("parley"), root.resolve("bin/parley"));

        assertThat(run(folder, link.toString(), "compare", "two words"))
                .containsExactly(
                        "@" + root + "/lib/jvm.options",
                        "-Dparley.home=" + root,
                        "-Dparley.launcher=" + link,
                        "-cp",
                        root + "/lib/parley-cli-1.jar:" + root + "/lib/shared-1.jar",
                        "dev.parley.cli.Parley",
                        "compare",
                        "two words");
    }

    private static List<String> run(Path folder, String... command) throws Exception {
        Process process = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectErrorStream(true)
                .start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(said).isZero();
        return said.lines().toList();
    }

    @Test
    void systemsAreNamedAsForDownload() {
        assertThat(BuildFacts.system("Linux", "amd64")).isEqualTo("linux-x64");
        assertThat(BuildFacts.system("Linux", "aarch64")).isEqualTo("linux-aarch64");
        assertThat(BuildFacts.system("Mac OS X", "x86_64")).isEqualTo("macos-x64");
        assertThat(MadeUp.FACTS.name()).isEqualTo("parley-1.2.3-linux-x64");
    }
}
