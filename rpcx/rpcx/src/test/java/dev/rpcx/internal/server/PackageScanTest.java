package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.RegistryServer;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests which classes of a package are found, in a folder and in a jar. */
class PackageScanTest {
    private static final String STOCK = "@RPCXServer(\"stock\") class Stock { @Method int count() { return 1; } }\n";

    @TempDir
    Path folder;

    /** Compiles top-level classes in the package {@code warehouse}. Returns the folder of the compiled classes. */
    private Path compiled(String source) throws IOException {
        Path file =
                Files.writeString(folder.resolve("Services.java"), "package warehouse;\nimport dev.rpcx.*;\n" + source);
        Path classes = Files.createDirectories(folder.resolve("classes"));
        int status = ToolProvider.getSystemJavaCompiler()
                .run(
                        null,
                        null,
                        null,
                        "-proc:none",
                        "-d",
                        classes.toString(),
                        "-classpath",
                        System.getProperty("java.class.path"),
                        file.toString());
        assertThat(status).isZero();
        return classes;
    }

    /** Returns a jar of these classes that has a manifest, and no entries for folders. */
    private Path jarOf(Path classes) throws IOException {
        Path jar = folder.resolve("services.jar");
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar), manifest);
                Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(each -> Files.isRegularFile(each)).toList()) {
                out.putNextEntry(
                        new JarEntry(classes.relativize(file).toString().replace('\\', '/')));
                out.write(Files.readAllBytes(file));
                out.closeEntry();
            }
        }
        return jar;
    }

    private static <T> T inClassPathOf(Path place, Callable<T> task) throws Exception {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {place.toUri().toURL()}, before)) {
            Thread.currentThread().setContextClassLoader(loader);
            return task.call();
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    private static List<String> scanned(Path place) throws Exception {
        return inClassPathOf(
                place,
                () -> PackageScan.services("warehouse").stream()
                        .map(type -> type.getName())
                        .toList());
    }

    @Test
    void aJarWithoutEntriesForFoldersIsSearched() throws Exception {
        assertThat(scanned(jarOf(compiled(STOCK)))).containsExactly("warehouse.Stock");
    }

    @Test
    void classesThatOnlyInheritTheAnnotationAreLeftOut() throws Exception {
        Path classes = compiled("""
                @RPCXServer("stock")
                class Stock {
                    static final Stock EMPTY = new Stock() {
                        @Override
                        int count() {
                            return 0;
                        }
                    };

                    @Method
                    int count() {
                        return 42;
                    }
                }
                class Renamed extends Stock {
                    @Override
                    @Method("amount")
                    int count() {
                        return 7;
                    }
                }
                abstract class Shelf extends Stock {}
                @RPCXServer("other")
                class Other extends Stock {}
                """);
        assertThat(scanned(classes)).containsExactly("warehouse.Other", "warehouse.Stock");
        List<String> published =
                inClassPathOf(classes, () -> RegistryServer.scan("warehouse").published());
        assertThat(published).containsExactly("other/count", "stock/count");
    }

    @Test
    void anAbstractClassThatHasTheAnnotationItselfIsRefused() throws Exception {
        Path classes = compiled(STOCK + "@RPCXServer(\"shelf\") abstract class Shelf extends Stock {}");
        assertThatThrownBy(() -> inClassPathOf(classes, () -> RegistryServer.scan("warehouse")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("warehouse.Shelf: cannot be made, since it is abstract");
    }
}
