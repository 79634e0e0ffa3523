package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.client.ClientCall;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * Tests slots that their callers could not give back, for example because a thread had run out of stack. The event loop
 * gives them back.
 */
class OrphanSlotsTest {
    @RPCXClient(remoteServerName = "echo")
    interface Calls {
        @Method("echo")
        CompletableFuture<String> later(String text);
    }

    /** Runs a client's connection on one thread, and does what its server does. */
    private static final class Hand implements AutoCloseable {
        final HandPlatform platform = new HandPlatform();
        final Client client = Client.builder()
                .platform(platform)
                .callTimeout(Duration.ofSeconds(1))
                .connections(1, 1)
                .build();
        final Calls echo = client.create(Calls.class, "peer", 1);
        final List<CompletableFuture<?>> calls = new ArrayList<>();
        final EmbeddedChannel channel;
        final ClientConnection connection;

        Hand(int maxCalls) {
            call();
            channel = platform.opened.get(0);
            platform.settle(channel);
            ByteBuf settings = Unpooled.buffer();
            new Settings(Wire.MAX_MESSAGE_BYTES, maxCalls, Settings.INITIAL.defaultMicros()).write(settings);
            send(RawPeer.preface());
            send(RawPeer.frame(Wire.SETTINGS, 0, settings));
            send(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
            connection = channel.pipeline().get(ClientConnection.class);
            reply(0);
        }

        CompletableFuture<String> call() {
            CompletableFuture<String> made = echo.later("x");
            calls.add(made);
            return made;
        }

        private void send(ByteBuf bytes) {
            byte[] all = ByteBufUtil.getBytes(bytes);
            platform.read(channel, all, 0, all.length);
        }

        void reply(int slot) {
            send(RawPeer.frame(Wire.REPLY, Objects.requireNonNull(connection.slots.at(slot)).id, RawPeer.text("y")));
        }

        /** Does what a caller whose stack is at its end does last. */
        ClientCall abandon(ClientCall call) {
            call.orphan = call.serial;
            connection.slots.hasOrphans = true;
            return call;
        }

        long inOneSecond() {
            return connection.nanoTime() + 1_000_000_000L;
        }

        void look() {
            connection.lookForOrphans();
            platform.settle(channel);
        }

        @Override
        public void close() {
            platform.end(client, channel, calls);
        }
    }

    @Test
    void aSlotWhoseCallerHasGoneBeforeItSentIsFoundByTheNextThatMissesIt() {
        try (Hand hand = new Hand(1)) {
            hand.abandon(hand.connection.slots.acquire(hand.inOneSecond()));
            hand.look();
            assertThat(hand.connection.slots.hasOrphans).isFalse();
            hand.abandon(hand.connection.slots.acquire(hand.inOneSecond()));
            assertThat(hand.call()).isCompletedExceptionally();
            hand.platform.settle(hand.channel);
            assertThat(hand.connection.slots.taken()).isZero();
            CompletableFuture<String> next = hand.call();
            hand.platform.settle(hand.channel);
            hand.reply(0);
            assertThat(next).isCompletedWithValue("y");
        }
    }

    @Test
    void aSlotWhoseCallerHasGoneIsFoundAtTheNextDeadline() {
        try (Hand hand = new Hand(9)) {
            ClientCall gone = hand.connection.slots.acquire(hand.inOneSecond());
            assertThat(gone.slot).isZero();
            CompletableFuture<String> next = hand.call();
            hand.platform.settle(hand.channel);
            // the slot is abandoned after the next call, which would otherwise find it when it takes a slot
            hand.abandon(gone);
            hand.reply(1);
            assertThat(next).isCompletedWithValue("y");
            hand.platform.pass(hand.channel, 2, TimeUnit.SECONDS);
            assertThat(hand.connection.slots.taken()).isZero();
        }
    }

    @Test
    void aSlotWhoseCallWasSentIsTakenUntilItsFinalFrame() {
        try (Hand hand = new Hand(9)) {
            hand.call();
            ClientCall call = hand.abandon(Objects.requireNonNull(hand.connection.slots.at(0)));
            hand.look();
            assertThat(hand.connection.slots.hasOrphans).isFalse();
            assertThat(hand.connection.slots.taken()).isEqualTo(1);
            hand.reply(call.slot);
            assertThat(hand.connection.slots.taken()).isZero();
            assertThat(hand.calls.get(1)).isCompletedWithValueMatching("y"::equals);
        }
    }

    @Test
    void whatIsSaidOfAnEarlierUseOfASlotDoesNotMeetALaterOne() {
        try (Hand hand = new Hand(9)) {
            ClientCall call = Objects.requireNonNull(hand.connection.slots.at(0));
            hand.abandon(call);
            hand.look();
            assertThat(hand.connection.slots.taken()).as("it was free").isZero();
            CompletableFuture<String> next = hand.call();
            hand.look();
            assertThat(hand.connection.slots.taken()).isEqualTo(1);
            hand.reply(0);
            assertThat(next).isCompletedWithValue("y");
        }
    }

    @Test
    void aSlotThatCouldNotBeGivenBackIsFound() {
        try (Hand hand = new Hand(9)) {
            ClientCall call = hand.connection.slots.acquire(hand.inOneSecond());
            call.unreleased = true;
            hand.connection.slots.hasOrphans = true;
            hand.look();
            assertThat(hand.connection.slots.hasOrphans).isFalse();
            hand.look();
            assertThat(hand.connection.slots.taken()).isZero();
        }
    }

    /** The caller's thread may have had no stack left to wake the loop. */
    @Test
    void whatIsQueuedAsTheLookBeginsIsSentBeforeIt() {
        try (Hand hand = new Hand(9)) {
            hand.connection.lookForOrphans();
            ClientCall call = hand.connection.slots.acquire(hand.inOneSecond());
            hand.connection.send(call);
            hand.abandon(call);
            hand.platform.settle(hand.channel);
            assertThat(hand.connection.slots.taken()).isEqualTo(1);
            hand.reply(call.slot);
            assertThat(hand.connection.slots.taken()).isZero();
        }
    }

    /**
     * The first look after the end of the connection finds the call in the queue. Its messages are dropped after that.
     */
    @Test
    void aSlotWhoseCallIsQueuedAsItsConnectionEndsIsGivenBack() {
        try (Hand hand = new Hand(9)) {
            ClientCall call = hand.connection.slots.acquire(hand.inOneSecond());
            hand.connection.send(call);
            hand.abandon(call);
            hand.connection.close("by the test");
            hand.platform.settle(hand.channel);
            assertThat(hand.connection.slots.taken()).isZero();
            assertThat(hand.connection.slots.hasOrphans).isFalse();
        }
    }
}
