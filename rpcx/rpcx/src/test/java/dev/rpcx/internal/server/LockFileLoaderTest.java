package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that fields have the numbers from the lock file beside their types, whichever thread asks for them. */
@Timeout(60)
public class LockFileLoaderTest {
    /** The lock file has the fields of this type in another order than the declaration. */
    public record Point(String x, String y) {}

    @RPCXServer("points")
    public static final class Points {
        @Method
        public String show(Point point) {
            return point.x() + ", " + point.y();
        }
    }

    @RPCXClient(remoteServerName = "points")
    public interface PointsClient {
        String show(Point point);
    }

    /** A class loader of an application, which has the types above and their lock file. Its parent has no lock file. */
    private static final class Application extends URLClassLoader {
        Application(Path root) throws IOException {
            super(new URL[] {root.toUri().toURL()}, LockFileLoaderTest.class.getClassLoader());
            Path lock = root.resolve("META-INF/rpcx/schema.lock");
            Files.createDirectories(lock.getParent());
            Files.writeString(lock, "message " + Point.class.getName() + "\n  2 x string\n  1 y string\n");
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            String outer = LockFileLoaderTest.class.getName();
            if (!name.equals(outer) && !name.startsWith(outer + "$Point")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? define(name) : loaded;
            }
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }

        Class<?> own(Class<?> type) throws ClassNotFoundException {
            return loadClass(type.getName());
        }
    }

    private static <T> T onThreadWith(@Nullable ClassLoader context, Callable<T> task) throws Exception {
        FutureTask<T> future = new FutureTask<>(task);
        Thread thread = new Thread(future);
        thread.setContextClassLoader(context);
        thread.start();
        return future.get();
    }

    @Test
    void clientsAndServersMadeOnAnyThreadNumberFieldsAlike(@TempDir Path root) throws Exception {
        try (Application application = new Application(root)) {
            Class<?> type = application.own(PointsClient.class);
            Object service =
                    application.own(Points.class).getDeclaredConstructor().newInstance();
            Class<?> pointType = application.own(Point.class);
            Object point =
                    pointType.getDeclaredConstructor(String.class, String.class).newInstance("one", "two");
            ClassLoader[] contexts = {
                application,
                null,
                ClassLoader.getPlatformClassLoader(),
                getClass().getClassLoader()
            };
            for (ClassLoader ofServer : contexts) {
                Server server = onThreadWith(
                        ofServer,
                        () -> Server.builder(RegistryServer.registry(service))
                                .host("127.0.0.1")
                                .build()
                                .start());
                try {
                    for (ClassLoader ofClient : contexts) {
                        try (Client client = onThreadWith(ofClient, Client::standard)) {
                            Object calls =
                                    onThreadWith(ofClient, () -> client.create(type, "127.0.0.1", server.port()));
                            assertThat(type.getMethod("show", pointType).invoke(calls, point))
                                    .as("server made with %s, client with %s", ofServer, ofClient)
                                    .isEqualTo("one, two");
                        }
                    }
                } finally {
                    server.stop(Duration.ofMillis(200));
                }
            }
        }
    }

    @Test
    void oneClientServesApplicationsWithLockFilesOfTheirOwn(@TempDir Path root) throws Exception {
        Server server = Server.builder(RegistryServer.registry(new Points()))
                .host("127.0.0.1")
                .build()
                .start();
        try (Application application = new Application(root);
                Client client = Client.standard()) {
            Class<?> type = application.own(PointsClient.class);
            Class<?> pointType = application.own(Point.class);
            Object point =
                    pointType.getDeclaredConstructor(String.class, String.class).newInstance("one", "two");
            assertThat(client.create(PointsClient.class, "127.0.0.1", server.port())
                            .show(new Point("one", "two")))
                    .isEqualTo("one, two");
            // The server has no lock file, and takes the numbers in the order of declaration. One of the two classes of
            // one name has a number behind its name: the one that this JVM meets later.
            Object calls = client.create(type, "127.0.0.1", server.port());
            assertThatThrownBy(() -> type.getMethod("show", pointType).invoke(calls, point))
                    .cause()
                    .hasMessageMatching(
                            "points/show at .+ has another schema: Point\\d*\\.y \\(string\\) is number 1 to the"
                                    + " client, and Point\\d*\\.y \\(string\\) is number 2 to the server \\(expected: one number"
                                    + " on both sides\\)");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void aPackageIsScannedOnAThreadWithoutAClassLoader() throws Exception {
        assertThat(onThreadWith(null, () -> PackageScan.services("dev.rpcx"))).contains(Points.class);
    }
}
