package dev.parley.dist;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.GZIPInputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ImageTest {
    @TempDir
    Path folder;

    private Path image(String name) throws IOException, InterruptedException {
        Path root = MadeUp.staged(MadeUp.checkout(folder.resolve(name + "-checkout")), folder.resolve(name + "-root"));
        Path image = folder.resolve(name + ".tar");
        Image.write(root, MadeUp.FACTS, Files.createDirectory(folder.resolve(name + "-work")), image);
        return image;
    }

    /** What is in an archive, by name; a folder's name ends with a slash. */
    private static Map<String, byte[]> contents(TarArchiveInputStream tar) throws IOException {
        Map<String, byte[]> contents = new LinkedHashMap<>();
        for (TarArchiveEntry entry = tar.getNextEntry(); entry != null; entry = tar.getNextEntry()) {
            contents.put(entry.getName(), tar.readAllBytes());
        }
        return contents;
    }

    private static Map<String, byte[]> contents(Path image) throws IOException {
        try (TarArchiveInputStream tar = new TarArchiveInputStream(Files.newInputStream(image))) {
            return contents(tar);
        }
    }

    @Test
    void itStartsJavaOnTheDistributionThatIsInIt() throws Exception {
        Map<String, byte[]> image = contents(image("one"));

        assertThat(image).containsKey("manifest.json");
        assertThat(new String(image.get("manifest.json"), StandardCharsets.UTF_8))
                .contains("parley:1.2.3");
        assertThat(new String(image.get("config.json"), StandardCharsets.UTF_8))
                .contains(
                        "\"/opt/parley/runtime/bin/java\",\"@/opt/parley/lib/jvm.options\"",
                        "\"-Dparley.home=/opt/parley\",\"-Dparley.launcher=parley\",\"-cp\"",
                        "\"/opt/parley/lib/parley-cli-1.jar:/opt/parley/lib/shared-1.jar\",\"dev.parley.cli.Parley\"",
                        "\"architecture\":\"amd64\"",
                        "\"/work\"",
                        "0123456789ab");

        Map<String, byte[]> files = new LinkedHashMap<>();
        for (Map.Entry<String, byte[]> each : image.entrySet()) {
            if (each.getKey().endsWith(".tar.gz")) {
                try (TarArchiveInputStream layer =
                        new TarArchiveInputStream(new GZIPInputStream(new ByteArrayInputStream(each.getValue())))) {
                    files.putAll(contents(layer));
                }
            }
        }
        assertThat(files)
                .containsKeys("opt/parley/runtime/bin/java", "opt/parley/modules/transport/soap.jars", "tmp/", "work/");
        assertThat(new String(files.get("etc/passwd"), StandardCharsets.UTF_8))
                .isEqualTo("parley:x:1000:1000::/work:\n");
    }

    @Test
    void twoImagesOfOneCommitAreTheSameBytes() throws Exception {
        assertThat(Files.mismatch(image("one"), image("two"))).isEqualTo(-1);
    }
}
