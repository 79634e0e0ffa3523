package dev.rpcx.examples.context;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.examples.Wiretap;
import dev.rpcx.exported.context.MinutesLeftReply;
import org.junit.jupiter.api.Test;

class ContextProtoTest {
    private static final byte[] EMPTY = {};

    @Test
    void bytesAreThoseOfTheTypesThatProtocGenerates() throws Exception {
        byte[] reply = MinutesLeftReply.newBuilder().setValue(29).build().toByteArray();
        try (Server server = new Server(0, RegistryServer.registry(new OtherThreads.Clock())).start();
                Wiretap tap = new Wiretap(server.port());
                Client client = Client.standard()) {
            assertThat(client.create(OtherThreads.ClockClient.class, "127.0.0.1", tap.port())
                            .minutesLeft())
                    .isEqualTo(29);
            assertThat(tap.sent()).containsExactly(EMPTY);
            assertThat(tap.received()).containsExactly(reply);
        }
    }
}
