package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.LibraryRow;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LicenceTest {
    private static final String APACHE =
            "<licenses><license><name>The Apache Software License, Version 2.0</name></license></licenses>";

    @TempDir
    Path repository;

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "The Apache Software License, Version 2.0 | Apache-2.0",
                "Apache License 2.0 | Apache-2.0",
                "https://www.apache.org/licenses/LICENSE-2.0.txt | Apache-2.0",
                "The MIT License | MIT",
                "MIT-0 | MIT-0",
                "BSD-3-Clause | BSD-3-Clause",
                "3-Clause BSD License | BSD-3-Clause",
                "Eclipse Public License v. 2.0 | EPL-2.0",
                "GPL2 w/ CPE | GPL-2.0 with Classpath exception",
                "Mozilla Public License Version 2.0 | MPL-2.0",
                "Public Domain, per Creative Commons CC0 | CC0-1.0",
                "House rules | House rules"
            })
    void whatPublishersWriteBecomesAnIdentifierWhereThereIsOne(String written, String spdx) {
        assertThat(Licence.spdx(written)).isEqualTo(spdx);
    }

    @Test
    void thePomBesideTheJarIsAskedThenItsParents() throws IOException {
        Path jar = jar("org/a/child/1.0/child-1.0-linux.jar", Map.of(), "");
        write(
                "org/a/child/1.0/child-1.0.pom",
                "<parent><groupId>org.a</groupId><artifactId>top</artifactId><version>3</version></parent>");
        write("org/a/top/3/top-3.pom", APACHE);

        assertThat(Licence.of(jar)).isEqualTo("Apache-2.0");
    }

    @Test
    void severalLicencesAreAChoice() throws IOException {
        Path jar = jar("org/a/both/1/both-1.jar", Map.of(), "");
        write(
                "org/a/both/1/both-1.pom",
                "<licenses><license><name>EPL 2.0</name></license><license><name>GPL2 w/ CPE</name></license></licenses>");

        assertThat(Licence.of(jar)).isEqualTo("EPL-2.0 or GPL-2.0 with Classpath exception");
    }

    @Test
    void aJarFromElsewhereIsAskedItself() throws IOException {
        assertThat(Licence.of(jar("lib/one.jar", Map.of("META-INF/maven/g/a/pom.xml", project(APACHE)), "")))
                .isEqualTo("Apache-2.0");
        assertThat(Licence.of(jar("lib/two.jar", Map.of(), "https://opensource.org/licenses/MIT;link=x")))
                .isEqualTo("MIT");
        assertThat(Licence.of(jar("lib/three.jar", Map.of(), ""))).isEqualTo(LibraryRow.UNKNOWN);
    }

    @Test
    void aDistributionsListIsAskedAlone() throws IOException {
        Path jar = jar("lib/one-1.jar", Map.of("META-INF/maven/g/a/pom.xml", project(APACHE)), "");
        Files.writeString(repository.resolve("lib/THIRD-PARTY.txt"), "# licences\none-1.jar\tEPL-2.0 or MIT\n");

        assertThat(Licence.of(jar)).isEqualTo("EPL-2.0 or MIT");
        assertThat(Licence.of(repository.resolve("lib/another-1.jar"))).isEqualTo(LibraryRow.UNKNOWN);
    }

    @Test
    void aPomThatCannotBeReadStopsNothing() throws IOException {
        Path jar = jar("org/a/odd/1/odd-1.jar", Map.of(), "");
        Files.writeString(repository.resolve("org/a/odd/1/odd-1.pom"), "<project>&oslash;</project>");

        assertThat(Licence.of(jar)).isEqualTo(LibraryRow.UNKNOWN);
    }

    private void write(String file, String content) throws IOException {
        Path path = repository.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, project(content));
    }

    private static String project(String content) {
        return "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">" + content + "</project>";
    }

    private Path jar(String file, Map<String, String> entries, String bundleLicense) throws IOException {
        Path path = repository.resolve(file);
        Files.createDirectories(path.getParent());
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        if (!bundleLicense.isEmpty()) {
            manifest.getMainAttributes().putValue("Bundle-License", bundleLicense);
        }
        try (OutputStream out = Files.newOutputStream(path);
                JarOutputStream jar = new JarOutputStream(out, manifest)) {
            for (Map.Entry<String, String> entry : entries.entrySet()) {
                jar.putNextEntry(new ZipEntry(entry.getKey()));
                jar.write(entry.getValue().getBytes(StandardCharsets.UTF_8));
            }
        }
        return path;
    }
}
