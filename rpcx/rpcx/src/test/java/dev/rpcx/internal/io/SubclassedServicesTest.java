package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.LongPoll;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that a published object can be of a subclass that a framework has made. Such a subclass does not copy
 * annotations.
 */
@Timeout(60)
class SubclassedServicesTest {
    @RPCXServer("subclassed")
    @RunOn(RunOn.Place.EVENT_LOOP)
    @LongPoll
    static class Service {
        @Method
        String thread() {
            return Thread.currentThread().getClass().getSimpleName();
        }
    }

    public static final class Made extends Service {}

    @RPCXClient(remoteServerName = "subclassed")
    interface Calls {
        String thread();
    }

    @Test
    void whatAServicesClassSaysOfItsMethodsHoldsForItsSubclasses() {
        assertThat(Made.class.isAnnotationPresent(LongPoll.class)).isTrue();
        Server server = Server.builder(RegistryServer.registry(new Made()))
                .host("127.0.0.1")
                .build()
                .start();
        try (Client client = Client.standard()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            assertThat(calls.thread()).isEqualTo(LoopThread.class.getSimpleName());
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }
}
