package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that services without an entry in an index are told at the start. The tests are compiled without the annotation
 * processor.
 */
@Timeout(120)
class UnprocessedServicesTest {
    @RPCXServer("one")
    public static class One {
        @Method
        public int number() {
            return 1;
        }
    }

    @RPCXServer("two")
    public static final class Two {
        @Method
        public int number() {
            return 2;
        }
    }

    /** As a framework makes one: a class of its own, which inherits the annotation. */
    private static final class OneProxy extends One {}

    /** Starts two servers, which describe their services, in a process of its own. */
    public static final class Serving {
        private Serving() {}

        public static void main(String[] arguments) {
            for (Object service : List.of(new OneProxy(), new Two())) {
                try (Server server = Server.builder(RegistryServer.registry(service))
                        .inProcess()
                        .reflection()
                        .build()
                        .start()) {
                    System.out.println("serving " + server.services());
                }
            }
        }
    }

    /** Loads the services of this test anew, with the index that lies in a folder. */
    private static final class Application extends URLClassLoader {
        Application(Path folder) throws Exception {
            super(
                    new URL[] {
                        folder.toUri().toURL(),
                        One.class.getProtectionDomain().getCodeSource().getLocation()
                    },
                    One.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith(UnprocessedServicesTest.class.getName())) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? findClass(name) : loaded;
            }
        }
    }

    @Test
    void aServiceThatNoIndexHasIsNamedByTheClassThatHasTheAnnotation() {
        @RPCXServer("within")
        class Within {}
        assertThat(ServiceIndex.unprocessed(List.of(OneProxy.class, Two.class, Within.class)))
                .containsExactly(One.class.getName(), Two.class.getName());
    }

    @Test
    void aServiceInTheIndexOfItsClassLoaderIsNotNamed(@TempDir Path folder) throws Exception {
        Path index = folder.resolve("META-INF/rpcx/services");
        Files.createDirectories(index.getParent());
        Files.writeString(index, One.class.getName() + "\n");
        try (Application application = new Application(folder)) {
            assertThat(ServiceIndex.unprocessed(List.of(
                            application.loadClass(One.class.getName()), application.loadClass(Two.class.getName()))))
                    .containsExactly(Two.class.getName());
        }
    }

    @Test
    void theFirstServerSaysOnceWhatDoesNotHold() throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Serving.class.getName())
                .redirectErrorStream(true)
                .start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(said).isZero();
        assertThat(said)
                .contains(
                        "serving [one/number, rpcx.reflection/services]",
                        "serving [two/number, rpcx.reflection/services]");
        assertThat(said.lines().filter(line -> line.contains("annotation processor")))
                .as(said)
                .singleElement()
                .asString()
                .contains(One.class.getName() + ": compiled without", "-proc:full", "RegistryServer.registry()")
                .doesNotContain(Reflection.class.getName());
    }
}
