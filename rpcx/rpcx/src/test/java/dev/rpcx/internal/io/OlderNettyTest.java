package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Tests what clients and servers say where Netty is older than 4.2. */
class OlderNettyTest {
    @RPCXServer("greeter")
    public static final class Greetings {
        @Method
        String greet(String name) {
            return "Hello " + name;
        }
    }

    /**
     * Class path of this test in classes of their own, without those that came with Netty 4.2: the interfaces of event
     * loops and of their transports, and the clocks of event loops.
     */
    private static final class OlderNetty extends URLClassLoader {
        private static final Pattern NEWER = Pattern.compile("io\\.netty\\."
                + "(channel\\.(local\\.Local|nio\\.Nio|epoll\\.Epoll|)(Io[A-Z]|(Multi|Single)ThreadIoEventLoop)"
                + "|util\\.concurrent\\.(ThreadAwareExecutor|Ticker)).*");

        OlderNetty() throws IOException {
            super(classPath(), ClassLoader.getPlatformClassLoader());
        }

        private static URL[] classPath() throws IOException {
            List<URL> urls = new ArrayList<>();
            for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
                urls.add(Path.of(entry).toUri().toURL());
            }
            return urls.toArray(new URL[0]);
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (NEWER.matcher(name).matches()) {
                throw new ClassNotFoundException(name);
            }
            return super.findClass(name);
        }
    }

    private static void assertIsTold(Throwable failure) {
        assertThat(failure)
                .cause()
                .isInstanceOf(IllegalStateException.class)
                .message()
                .startsWith("Netty ")
                .contains(" has no io.netty.util.concurrent.ThreadAwareExecutor ", "expected: Netty 4.2 ")
                .doesNotContain("\n");
    }

    @Test
    void clientAndServerSayWhichVersionIsThereAndWhichIsExpected() throws Exception {
        try (OlderNetty loader = new OlderNetty()) {
            Class<?> client = loader.loadClass(Client.class.getName());
            assertIsTold(catchThrowable(() -> client.getMethod("standard").invoke(null)));
            assertIsTold(catchThrowable(() -> client.getMethod("builder").invoke(null)));
            Class<?> registries = loader.loadClass(RegistryServer.class.getName());
            Object[] services = {loader.loadClass(Greetings.class.getName())};
            Object registry = registries.getMethod("registry", Object[].class).invoke(null, new Object[] {services});
            Class<?> server = loader.loadClass(Server.class.getName());
            assertIsTold(catchThrowable(
                    () -> server.getConstructor(int.class, registries).newInstance(0, registry)));
            assertIsTold(
                    catchThrowable(() -> server.getMethod("builder", registries).invoke(null, registry)));
        }
    }

    @Test
    void theTextNamesTheJarsWhereTheirVersionsDiffer() {
        Map<String, String> versions = new TreeMap<>();
        versions.put("netty-buffer", "4.1.128.Final");
        versions.put("netty-common", "4.1.128.Final");
        assertThat(NettyVersion.text("io/netty/channel/IoHandlerFactory", versions))
                .isEqualTo("Netty 4.1.128.Final has no io.netty.channel.IoHandlerFactory (expected: Netty 4.2 in all of"
                        + " its jars, such as " + NettyVersion.EXAMPLE + ")");
        versions.put("netty-transport", "4.2.18.Final");
        assertThat(NettyVersion.text("io/netty/A", versions))
                .startsWith("Netty 4.1.128.Final (netty-buffer, netty-common), 4.2.18.Final (netty-transport) has no");
        assertThat(NettyVersion.text("io/netty/A", Map.of())).startsWith("Netty of unknown version has no io.netty.A ");
    }

    @Test
    void theNettyOfThisBuildIsTaken() {
        NettyVersion.check();
        // the class loader of the other test has to hide a class, or that test would show nothing
        assertThatThrownBy(() -> {
                    try (OlderNetty loader = new OlderNetty()) {
                        loader.loadClass("io.netty.channel.IoHandlerFactory");
                    }
                })
                .isInstanceOf(ClassNotFoundException.class);
    }
}
