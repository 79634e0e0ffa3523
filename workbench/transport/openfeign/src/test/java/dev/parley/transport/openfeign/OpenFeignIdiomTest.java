package dev.parley.transport.openfeign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelOnlyText;
import java.io.IOException;
import java.net.ServerSocket;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class OpenFeignIdiomTest {
    private static Location.Socket free() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return new Location.Socket("127.0.0.1", socket.getLocalPort());
        }
    }

    /** Echo, which fails where told. */
    private static final Handler HANDLER = new Handler() {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            if (request instanceof TestModelOnlyText(String text) && text.startsWith("fail:")) {
                throw new CallException(Code.valueOf(text.substring("fail:".length())), "as told");
            }
            return operation.reply().cast(request);
        }
    };

    @ParameterizedTest
    @CsvSource({"KEPT, feign.Client$Default", "CLOSED, feign.Client$Default", "POOLED, feign.hc5.ApacheHttp5Client"})
    void eachVariantHasItsOwnHttpClient(HttpUse use, Class<?> expected) {
        assertThat(new FeignClients(use).httpClient()).isAssignableTo(expected);
    }

    @Test
    void aClientForEachCallLeavesNothingBehind() {
        FeignClients clients = new FeignClients(HttpUse.KEPT);
        clients.enter(MessagesClient.class, "m2", "http://127.0.0.1:1/messages");
        for (int call = 0; call < 20; call++) {
            clients.enter(MessagesClient.class, "m2", "http://127.0.0.1:1/messages");
            clients.leave();
        }
        assertThat(clients.kept()).isEqualTo(1);
        clients.leave();
    }

    @ParameterizedTest
    @EnumSource
    void callsAndErrorsCross(HttpUse use) throws IOException {
        Location at = free();
        Transport transport = new OpenFeignTransport(use);
        try (Transport.Server _ = transport.serve("m2", Messages.CONTRACT, at, HANDLER);
                Neighbour neighbour = transport.connect("m1", Messages.CONTRACT, at)) {
            TestModelOnlyText text = new TestModelOnlyText("größer");
            assertThat(neighbour.call(Messages.ONLY_TEXT, text, Duration.ofSeconds(10)))
                    .isEqualTo(text);
            for (Code code : Code.values()) {
                assertThatThrownBy(() -> neighbour.call(
                                Messages.ONLY_TEXT, new TestModelOnlyText("fail:" + code), Duration.ofSeconds(10)))
                        .hasMessage("as told")
                        .isInstanceOfSatisfying(
                                CallException.class, e -> assertThat(e.code()).isEqualTo(code));
            }
        }
    }
}
