package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests where the classes of services come from. */
class ClassPathTest {
    private final ClassLoader own = getClass().getClassLoader();

    private URL[] urls(String... entries) throws IOException {
        try (URLClassLoader loader = (URLClassLoader) ClassPath.loader(String.join(File.pathSeparator, entries), own)) {
            assertThat(loader.getParent()).isSameAs(own);
            return loader.getURLs();
        }
    }

    private static URL url(Path file) throws MalformedURLException {
        return file.toUri().toURL();
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"", ":", "::"})
    void anEntryThatIsEmptyStandsForNothing(String classPath) {
        assertThat(ClassPath.loader(classPath == null ? null : classPath.replace(":", File.pathSeparator), own))
                .isSameAs(own);
    }

    @Test
    void entriesAreFoldersAndJarsInTheirOrder(@TempDir Path folder) throws Exception {
        Path jar = Files.createFile(folder.resolve("a b.jar"));
        assertThat(urls("", jar.toString(), folder.toString(), "")).containsExactly(url(jar), url(folder));
        assertThat(url(folder).getPath()).as("how a folder is known").endsWith("/");
    }

    @Test
    void aStarStandsForTheJarsOfAFolder(@TempDir Path folder) throws Exception {
        Path one = Files.createFile(folder.resolve("one.jar"));
        Path other = Files.createFile(folder.resolve("OTHER.JAR"));
        Files.createFile(folder.resolve("notes.txt"));
        assertThat(urls(folder.resolve("*").toString())).containsExactlyInAnyOrder(url(one), url(other));
        assertThat(urls(folder.resolve("*").toString(), folder.toString())).hasSize(3);
        assertThat(ClassPath.loader(folder.resolve("none/*").toString(), own)).isSameAs(own);
    }

    @Test
    void whatIsNoNameOfAFileIsAMistake() {
        assertThatThrownBy(() -> ClassPath.loader("a\0b", own))
                .isInstanceOf(Mistake.class)
                .hasMessage("RPCX_CLASSPATH: a\0b (expected: the name of a file)");
    }
}
