package dev.parley.transport.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.spi.CallException;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypes;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.ServerSocket;
import java.time.Duration;
import java.time.LocalDateTime;
import java.util.List;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class RpcxTransportTest {
    private static final Duration TIME = Duration.ofSeconds(20);

    private static final Handler ECHO = new Handler() {
        @Override
        @SuppressWarnings("unchecked")
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            if (request instanceof TestModelOnlyText text && text.textField().equals("fail")) {
                throw new CallException(CallException.Code.INVALID, "as asked");
            }
            return (R) request;
        }
    };

    @Test
    void recordsComeBackEqualBlockingAndNot() throws IOException {
        Transport transport = TransportProvider.named("rpcx");
        Location at = new Location.Socket("127.0.0.1", freePort());
        TestModelAllTypesList types = new TestModelAllTypesList(List.of(new TestModelAllTypes(
                "text",
                true,
                255,
                LocalDateTime.of(2026, 1, 2, 3, 4, 5, 6),
                new BigDecimal("1.00"),
                1.5f,
                -7,
                (short) -3,
                Long.MIN_VALUE)));
        try (Transport.Server server = transport.serve("m1", Messages.CONTRACT, at, ECHO);
                Neighbour neighbour = transport.connect("client", Messages.CONTRACT, at)) {
            assertThat(server).isNotNull();
            assertThat(neighbour.call(Messages.ALL_TYPES, types, TIME)).isEqualTo(types);
            assertThat(neighbour.send(Messages.ALL_TYPES, types, TIME).join()).isEqualTo(types);
            TestModelOnlyText text = new TestModelOnlyText("x".repeat(1_000_000));
            assertThat(neighbour.call(Messages.ONLY_TEXT, text, TIME)).isEqualTo(text);
            assertThat(neighbour.payloadBytes(text)).isEqualTo(1_000_004);
            assertThatThrownBy(() -> neighbour.call(Messages.ONLY_TEXT, new TestModelOnlyText("fail"), TIME))
                    .isInstanceOfSatisfying(CallException.class, e -> {
                        assertThat(e.code()).isEqualTo(CallException.Code.INVALID);
                        assertThat(e.getMessage()).isEqualTo("as asked");
                    });
            assertThatThrownBy(() -> neighbour
                            .send(Messages.ONLY_TEXT, new TestModelOnlyText("fail"), TIME)
                            .join())
                    .isInstanceOf(CompletionException.class)
                    .cause()
                    .isInstanceOfSatisfying(
                            CallException.class, e -> assertThat(e.code()).isEqualTo(CallException.Code.INVALID));
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
