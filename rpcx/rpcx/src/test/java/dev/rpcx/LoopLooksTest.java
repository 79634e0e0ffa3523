package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What many slots, and a call among them that is always due, take of an event loop. */
@Timeout(60)
class LoopLooksTest {
    private static final int GENERATION = 1 << 16;
    private static final int LAST_SLOT = 4_000;
    private static final int FEW = 10;

    @RPCXServer("looked at")
    static final class Service {
        @Method
        String echo(String text) {
            return text;
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .platform(hand)
            .build()
            .start();
    private final EmbeddedChannel channel = hand.accept();

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    /** A call whose time is over in five milliseconds, and to which no thread comes. */
    private void call(int generation, int slot) {
        ByteBuf payload = RawPeer.prelude("looked at", "echo");
        Varint.write(payload, 5_000);
        payload.writeBytes(RawPeer.text("a"));
        send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME, generation * GENERATION | slot, payload));
    }

    /** Milliseconds after which the call is told that its time is over. */
    private int millisUntilTold() {
        HandPlatform.written(channel);
        for (int millis = 1; millis < 100; millis++) {
            hand.pass(channel, 1, TimeUnit.MILLISECONDS);
            if (HandPlatform.written(channel).length > 0) {
                return millis;
            }
        }
        throw new AssertionError("not told within 100 ms");
    }

    private void end() {
        channel.close();
        hand.handleAll(channel);
        hand.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.ledger().audit()).isEmpty();
    }

    @Test
    void aLookThatPassesManySlotsIsFollowedByAPause() {
        send(RawPeer.preface());
        call(1, LAST_SLOT);
        assertThat(millisUntilTold()).isEqualTo(5);
        for (int i = 2; i < 10; i++) {
            call(i, LAST_SLOT);
            // two microseconds for each slot of the look before
            assertThat(millisUntilTold()).isBetween(8, 10);
        }
        end();
    }

    @Test
    void aLookThatPassesFewSlotsWaitsForNoOther() {
        send(RawPeer.preface());
        for (int i = 1; i < 10; i++) {
            call(i, FEW);
            assertThat(millisUntilTold()).isEqualTo(5);
        }
        end();
    }

    /** Whoever asks while its look has its turn later does not have it earlier by that. */
    @Test
    void aDeadlineThatIsDueBeforeTheTurnOfItsLookWaitsForIt() {
        send(RawPeer.preface());
        call(1, LAST_SLOT);
        assertThat(millisUntilTold()).isEqualTo(5);
        call(2, LAST_SLOT);
        hand.pass(channel, 5, TimeUnit.MILLISECONDS);
        call(1, FEW);
        assertThat(HandPlatform.written(channel)).isEmpty();
        assertThat(millisUntilTold()).isBetween(3, 5);
        end();
    }

    /** The turns of a loop's looks are in the order in which they asked, and none has an earlier one by asking again. */
    @Test
    void looksOfAllConnectionsTakeASmallPartOfTheLoop() {
        LoopLooks looks = new LoopLooks();
        assertThat(looks.nanosUntilTurn(-5, LoopLooks.FEW)).isZero();
        assertThat(looks.nanosUntilTurn(-5, 1_000)).isZero();
        assertThat(looks.nanosUntilTurn(-5, 2_000)).isEqualTo(1_000 * LoopLooks.NANOS_FOR_SLOT);
        assertThat(looks.nanosUntilTurn(-5, 1_000)).isEqualTo(3_000 * LoopLooks.NANOS_FOR_SLOT);
        assertThat(looks.nanosUntilTurn(-5, LoopLooks.FEW))
                .as("few have no turn")
                .isZero();
        assertThat(looks.nanosUntilTurn(4_000 * LoopLooks.NANOS_FOR_SLOT, 1_000))
                .isZero();
    }
}
