package dev.rpcx.examples.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.testing.Faults;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Tests a service within one process, without sockets. The guide shows this class. */
class GreeterTest {
    @RPCXServer("greeter")
    static class Greetings {
        @Method("hello")
        String greet(String name) {
            return "Hello " + name;
        }
    }

    @RPCXClient(remoteServerName = "greeter")
    interface Greeter {
        @Method("hello")
        String hello(String name);
    }

    private static Server started() {
        return Server.builder(RegistryServer.registry(new Greetings()))
                .inProcess()
                .build()
                .start();
    }

    @Test
    void aGuestIsGreeted() {
        try (Server server = started();
                Client client = Client.builder().inProcess().build()) {
            Greeter greeter = client.create(Greeter.class, "here", server.port());
            assertThat(greeter.hello("World")).isEqualTo("Hello World");
        }
    }

    @Test
    void aCallWithoutAReplyEndsInTime() {
        try (Server server = started();
                Client client = Client.builder()
                        .inProcess()
                        .faults(Faults.seeded(42).losing(1))
                        .callTimeout(Duration.ofMillis(200))
                        .build()) {
            Greeter greeter = client.create(Greeter.class, "here", server.port());
            RPCXException end = catchThrowableOfType(RPCXException.class, () -> greeter.hello("World"));
            assertThat(end.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        }
    }
}
