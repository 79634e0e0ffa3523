package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.RPCXServer;
import dev.rpcx.internal.schema.LockFile;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that the content of a jar is read as it is at that moment. A new jar can take its place, for example when an
 * application is deployed again.
 */
@Timeout(60)
class ReplacedJarTest {
    @RPCXServer("older")
    static final class Older {}

    @RPCXServer("newer")
    static final class Newer {}

    @TempDir
    Path folder;

    private Path jar() {
        return folder.resolve("application.jar");
    }

    private void write(Map<String, String> entries) throws IOException {
        Files.deleteIfExists(jar());
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar()))) {
            for (Map.Entry<String, String> each : entries.entrySet()) {
                out.putNextEntry(new JarEntry(each.getKey()));
                out.write(each.getValue().getBytes(StandardCharsets.UTF_8));
                out.closeEntry();
            }
        }
    }

    /** Runs the task with a class loader of its own, which is closed afterwards. */
    private <T> T loading(Callable<T> task) throws Exception {
        URL[] path = {jar().toUri().toURL()};
        try (URLClassLoader loader = new URLClassLoader(path, ReplacedJarTest.class.getClassLoader())) {
            FutureTask<T> future = new FutureTask<>(task);
            Thread thread = new Thread(future);
            thread.setContextClassLoader(loader);
            thread.start();
            return future.get();
        }
    }

    @Test
    void itsIndexOfServices() throws Exception {
        write(Map.of("META-INF/rpcx/services", Older.class.getName()));
        List<Class<?>> before = loading(ServiceIndex::services);
        assertThat(before).contains(Older.class);
        write(Map.of("META-INF/rpcx/services", Newer.class.getName()));
        List<Class<?>> after = loading(ServiceIndex::services);
        assertThat(after).contains(Newer.class).doesNotContain(Older.class);
    }

    @Test
    void itsLock() throws Exception {
        write(Map.of(LockFile.RESOURCE, "message a.Older\n  1 x string\n"));
        assertThat(loading(() -> LockFile.of(ServiceIndex.loader())).entries()).containsKey("a.Older");
        write(Map.of(LockFile.RESOURCE, "message a.Newer\n  1 x string\n"));
        assertThat(loading(() -> LockFile.of(ServiceIndex.loader())).entries())
                .containsKey("a.Newer")
                .doesNotContainKey("a.Older");
    }

    @Test
    void itsPackages() throws Exception {
        write(Map.of("dev/rpcx/scanned/", "", "dev/rpcx/scanned/Gone.class", "none"));
        assertThatThrownBy(() -> loading(() -> PackageScan.services("dev.rpcx.scanned")))
                .hasStackTraceContaining("class dev.rpcx.scanned.Gone");
        write(Map.of("dev/rpcx/scanned/", "", "dev/rpcx/scanned/Readme.txt", ""));
        List<Class<?>> after = loading(() -> PackageScan.services("dev.rpcx.scanned"));
        assertThat(after).isNotEmpty();
    }
}
