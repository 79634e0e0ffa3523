package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.Unpooled;
import org.junit.jupiter.api.Test;

/** What a message keeps of its body for the next use. */
class OutboundTest {
    private static Outbound message(int bytes) {
        return new Outbound.Control(Wire.REPLY, 1, Unpooled.buffer(bytes).writeZero(bytes));
    }

    @Test
    void aBodyOfUsualSizeIsKeptEmptyForTheNextUse() {
        Outbound message = message(Outbound.KEPT_BYTES);
        message.clearBody();
        assertThat(message.body.isReadable()).isFalse();
        assertThat(message.body.capacity()).isEqualTo(Outbound.KEPT_BYTES);
    }

    @Test
    void aLargerBodyIsGivenUp() {
        Outbound message = message(Outbound.KEPT_BYTES + 1);
        message.clearBody();
        assertThat(message.body.isReadable()).isFalse();
        assertThat(message.body.capacity()).isEqualTo(Outbound.FIRST_BYTES);
    }
}
