package dev.rpcx.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests default methods of a client's interface that is in another package than the library. They run at the client,
 * and call the other methods.
 */
@Timeout(60)
class DefaultMethodsTest {
    @RPCXServer("defaults")
    static final class Service {
        @Method
        String get(String text) {
            return text + "!";
        }
    }

    interface Shared {
        String get(String text);

        default String named(String text) {
            return "shared " + get(text);
        }

        default String again() {
            return get("again");
        }
    }

    @RPCXClient(remoteServerName = "defaults")
    interface Hidden extends Shared {
        @Override
        default String named(String text) {
            return "hidden " + get(text);
        }
    }

    @RPCXClient(remoteServerName = "defaults")
    public interface Shown {
        String get(String text);

        default String named(String text) {
            return "shown " + get(text);
        }
    }

    @Test
    void theyAreCalledWhetherTheirInterfaceIsPublicOrNot() {
        Server server = Server.builder(RegistryServer.registry(new Service()))
                .inProcess()
                .build()
                .start();
        try (Client client = Client.builder().inProcess().build()) {
            Hidden hidden = client.create(Hidden.class, "here", server.port());
            assertThat(hidden.named("a")).isEqualTo("hidden a!");
            assertThat(hidden.named("b")).isEqualTo("hidden b!");
            assertThat(hidden.again()).isEqualTo("again!");
            assertThat(client.create(Shown.class, "here", server.port()).named("c"))
                    .isEqualTo("shown c!");
        } finally {
            server.stop();
        }
    }
}
