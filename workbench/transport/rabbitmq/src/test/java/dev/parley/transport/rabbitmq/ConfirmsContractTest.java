package dev.parley.transport.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelOnlyText;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class ConfirmsContractTest extends RabbitMqContract {
    private static final Handler ECHO = new Handler() {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            return operation.reply().cast(request);
        }
    };

    ConfirmsContractTest() {
        super(Wiring.CONFIRMS);
    }

    /** The broker confirms a reply at about the time at which it is told that nobody serves any more: one must not wait for the other. */
    // by a thread of its own, because the client waits for the broker uninterruptibly
    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aServerClosesWhileItsLastReplyIsConfirmed() throws Exception {
        Location at = freeLocation("m2");
        TestModelOnlyText request = new TestModelOnlyText("last");
        try (var neighbour = transport().connect("m1", Messages.CONTRACT, at)) {
            for (int round = 0; round < 50; round++) {
                try (var server = transport().serve("m2", Messages.CONTRACT, at, ECHO)) {
                    assertThat(server).isNotNull();
                    assertThat(neighbour.call(Messages.ONLY_TEXT, request, Duration.ofSeconds(20)))
                            .isEqualTo(request);
                }
            }
        }
    }
}
