package dev.parley.transport.rsocket;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Topology;
import dev.parley.spi.Location;
import dev.parley.spi.messages.Messages;
import dev.parley.work.messages.MessagesWork;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.core.RSocketConnector;
import io.rsocket.exceptions.CustomRSocketException;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.util.DefaultPayload;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Mono;

/** What a client of RSocket's own makes of the server: JSON as data, the operation as metadata, errors as codes of the protocol. */
@Timeout(60)
class RSocketIdiomTest {
    private static final Duration SOON = Duration.ofSeconds(20);

    @Test
    void anyClientOfTheProtocolIsAnswered() throws IOException {
        int port = freePort();
        var leaf = new Topology.Node("m2", List.of(), Topology.Calling.ONE_AFTER_THE_OTHER);
        try (var server = new RSocketTransport(false)
                .serve(
                        "m2",
                        Messages.CONTRACT,
                        new Location.Socket("127.0.0.1", port),
                        new MessagesWork().node(leaf, Map.of()))) {
            assertThat(server).isNotNull();
            RSocket client = Objects.requireNonNull(RSocketConnector.create()
                    .connect(TcpClientTransport.create("127.0.0.1", port))
                    .block(SOON));
            try {
                Payload reply = client.requestResponse(DefaultPayload.create("{\"textField\":\"ž\"}", "onlyText"))
                        .block(SOON);
                assertThat(Objects.requireNonNull(reply).getDataUtf8()).isEqualTo("{\"textField\":\"ž\"}");
                reply.release();

                Throwable unknown = client.requestResponse(DefaultPayload.create("{}", "noSuchThing"))
                        .<Throwable>map(answer -> new AssertionError("answered " + answer.getDataUtf8()))
                        .onErrorResume(Mono::just)
                        .block(SOON);
                assertThat(unknown)
                        .isInstanceOf(CustomRSocketException.class)
                        .hasMessage("no operation noSuchThing in messages");
                assertThat(((CustomRSocketException) unknown).errorCode()).isGreaterThanOrEqualTo(0x301);
            } finally {
                client.dispose();
            }
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return probe.getLocalPort();
        }
    }
}
