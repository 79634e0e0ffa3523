package dev.parley.dist;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SharedLibrariesTest {
    @TempDir
    Path folder;

    @Test
    void whatTheLoaderFoundIsTakenAndNothingElse() {
        String said = """
                /unpacked/runtime/lib/server/libjvm.so:
                \tlinux-vdso.so.1 (0x00007ffd5a5f2000)
                \tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f5d1d3a8000)
                \tlibjava.so => not found
                \t/lib64/ld-linux-x86-64.so.2 (0x00007f5d1ee1d000)
                /unpacked/libraries/1.so:
                \tnot a dynamic executable
                """;

        assertThat(SharedLibraries.found(said))
                .containsExactly(Path.of("/lib/x86_64-linux-gnu/libdl.so.2"), Path.of("/lib64/ld-linux-x86-64.so.2"));
    }

    @Test
    void whatJavaIsLinkedAgainstIsOfThisSystem() throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        assumeTrue(
                Files.isRegularFile(java) && Files.isExecutable(Path.of("/usr/bin/ldd")),
                "there is no ldd: images are made on Linux");
        Path root = Files.createDirectory(folder.resolve("root"));
        Files.copy(java, root.resolve("java"));
        MadeUp.jar(root.resolve("natives.jar"), Map.of("lib/text.so", "no library"));

        assertThat(SharedLibraries.of(root, folder.resolve("unpacked")))
                .allSatisfy(library -> assertThat(library).isRegularFile())
                .anySatisfy(
                        library -> assertThat(library.getFileName().toString()).startsWith("libc."));
    }
}
