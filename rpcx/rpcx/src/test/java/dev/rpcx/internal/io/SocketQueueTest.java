package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.ClassicRequests;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Claim;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.ClassicServerConnection;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that the bytes in the queue to a peer that does not read are charged for as long as they are in the queue. */
@Timeout(60)
class SocketQueueTest {
    private static final int ID = 1 << 16;
    private static final int POOL_BYTES = 1024 * 1024;
    private static final int REPLY_BYTES = 300_000;

    @RPCXServer("target")
    static final class Target {
        @Method
        String much(String text) {
            return text.repeat(REPLY_BYTES);
        }
    }

    /** A peer that reads as much as the test says. Its socket keeps nothing, and its clock stands still. */
    private static final class SlowPeer extends EmbeddedChannel {
        private long bytesToRead;

        @Override
        protected void doWrite(ChannelOutboundBuffer queue) {
            while (queue.current() instanceof ByteBuf first && first.readableBytes() <= bytesToRead) {
                bytesToRead -= first.readableBytes();
                queue.remove();
            }
        }

        void read(long bytes) {
            bytesToRead = bytes;
            flush();
            runPendingTasks();
            bytesToRead = 0;
        }
    }

    private final Server server = Server.builder(RegistryServer.registry(new Target()))
            .classic(true)
            .keepAlive(Duration.ofHours(1))
            .build();
    private final Ledger ledger = new Ledger(
            "queues",
            Map.of(Resource.QUEUE_BYTES, (long) POOL_BYTES, Resource.UNREAD_REPLY_BYTES, (long) POOL_BYTES),
            Map.of(),
            Integer.MAX_VALUE);
    private final SlowPeer peer = new SlowPeer();
    private final Account account = open("10.0.0.1");

    private Account open(String address) {
        try {
            return Objects.requireNonNull(ledger.open(new InetSocketAddress(InetAddress.getByName(address), 1)));
        } catch (java.net.UnknownHostException e) {
            throw new IllegalArgumentException(e);
        }
    }

    @BeforeEach
    void start() {
        server.start();
        peer.freezeTime();
        peer.closeFuture().addListener(closed -> account.close());
    }

    @AfterEach
    void nothingIsLeft() {
        peer.unsafe().close(peer.newPromise());
        peer.finishAndReleaseAll();
        server.close();
        await().untilAsserted(() -> {
            peer.runPendingTasks();
            assertThat(ledger.audit()).isEmpty();
        });
    }

    private ServerConnection connection() {
        ServerConnection connection = new ServerConnection(
                peer, Inside.core(server), account, peer.eventLoop().ticker().nanoTime());
        peer.pipeline().addLast(connection);
        peer.writeInbound(RawPeer.preface());
        return connection;
    }

    /** Requests a reply that the peer does not read. */
    private ServerConnection unread() {
        ServerConnection connection = connection();
        peer.writeInbound(RawPeer.request(ID, "target", "much", "x"));
        awaitQueued();
        return connection;
    }

    private void awaitQueued() {
        await().until(() -> {
            peer.runPendingTasks();
            return !peer.isWritable();
        });
    }

    private long queued() {
        ChannelOutboundBuffer queue = peer.unsafe().outboundBuffer();
        return queue == null ? 0 : queue.totalPendingWriteBytes();
    }

    private long charged() {
        return ledger.held(Resource.QUEUE_BYTES);
    }

    @Test
    void aQueueStaysChargedWhileItsConnectionIsBeingClosed() {
        ServerConnection connection = unread();
        assertThat(charged()).isGreaterThanOrEqualTo(queued());
        connection.close("told to");
        assertThat(peer.isOpen()).as("the last words have some time to leave").isTrue();
        assertThat(queued()).isPositive();
        assertThat(charged()).isGreaterThanOrEqualTo(queued());
        peer.read(Long.MAX_VALUE);
        assertThat(charged()).as("all has been read").isZero();
    }

    @Test
    void aQueueIsGivenBackWithItsChannel() {
        unread().close("told to");
        peer.advanceTimeBy(2, TimeUnit.SECONDS);
        peer.runPendingTasks();
        assertThat(peer.isOpen()).isFalse();
        assertThat(charged()).isZero();
    }

    /** TLS delays the close of a channel for up to 3 s, until its last message has been sent. */
    @Test
    void aPeerThatIsPushedOutLeavesNothingBehindForTheLastWordOfTls() {
        peer.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void close(ChannelHandlerContext ctx, ChannelPromise promise) {
                // the last message has not been sent
            }
        });
        unread();
        peer.advanceTimeBy(1, TimeUnit.SECONDS);
        pushOut(POOL_BYTES);
        peer.runPendingTasks();
        assertThat(peer.isOpen()).isFalse();
        assertThat(charged()).isZero();
    }

    @Test
    void aConnectionThatIsBeingClosedIsPushedOutAsOthersAre() {
        unread().close("told to");
        peer.advanceTimeBy(1, TimeUnit.SECONDS);
        pushOut(POOL_BYTES);
        peer.runPendingTasks();
        assertThat(peer.isOpen()).isFalse();
    }

    /** Has another connection hold this much for a moment, so that greedier ones end. */
    private void pushOut(long bytes) {
        Account other = open("10.0.0.2");
        Claim claim = new Claim(other, Resource.QUEUE_BYTES, peer.eventLoop(), () -> {});
        claim.set(bytes - 2 * Charge.STEP_BYTES, peer.eventLoop().ticker().nanoTime());
        claim.close();
        other.close();
    }

    @Test
    void ofThoseWhoLetRepliesWaitTheOldestEndsAndNotTheNext() {
        Charge others = account.charge(Resource.REPLY_BYTES);
        assertThat(others.add(POOL_BYTES / 2)).isTrue();
        unread();
        assertThat(ledger.held(Resource.UNREAD_REPLY_BYTES)).isEqualTo(ledger.held(Resource.REPLY_BYTES));
        peer.advanceTimeBy(10, TimeUnit.SECONDS);
        Account honest = open("10.0.0.3");
        boolean[] ended = new boolean[1];
        Claim recent = new Claim(honest, Resource.UNREAD_REPLY_BYTES, peer.eventLoop(), () -> ended[0] = true);
        assertThat(recent.set(POOL_BYTES / 4 * 3, peer.eventLoop().ticker().nanoTime()))
                .isTrue();
        peer.runPendingTasks();
        assertThat(peer.isOpen()).isFalse();
        assertThat(ended[0]).isFalse();
        recent.close();
        honest.close();
        others.release();
    }

    @Test
    void whoHasReadLetsNoRepliesWait() {
        Charge others = account.charge(Resource.REPLY_BYTES);
        assertThat(others.add(POOL_BYTES / 2)).isTrue();
        unread();
        assertThat(ledger.held(Resource.UNREAD_REPLY_BYTES)).isGreaterThanOrEqualTo(POOL_BYTES / 2);
        peer.read(REPLY_BYTES + 1_000);
        await().untilAsserted(() -> {
            peer.runPendingTasks();
            assertThat(ledger.held(Resource.UNREAD_REPLY_BYTES)).isZero();
        });
        assertThat(peer.isOpen()).isTrue();
        others.release();
    }

    @Test
    void repliesOfTheClassicWireThatWaitAreCountedToo() {
        peer.pipeline().addLast(new ClassicServerConnection(peer, Inside.core(server), account));
        ByteBuf text = RawPeer.text("x");
        byte[] value = new byte[text.readableBytes()];
        text.readBytes(value);
        peer.writeInbound(ClassicRequests.of(1, "target", "much", List.of("text"), List.of(value)));
        awaitQueued();
        assertThat(ledger.held(Resource.UNREAD_REPLY_BYTES)).isPositive().isEqualTo(ledger.held(Resource.REPLY_BYTES));
    }

    @Test
    void onTheClassicWireAPeerThatReadsALittleNowAndThenHasWaitedAllTheSame() {
        peer.pipeline().addLast(new ClassicServerConnection(peer, Inside.core(server), account));
        ByteBuf text = RawPeer.text("x");
        byte[] value = new byte[text.readableBytes()];
        text.readBytes(value);
        peer.writeInbound(ClassicRequests.of(1, "target", "much", List.of("text"), List.of(value)));
        awaitQueued();
        for (int i = 0; i < 5; i++) {
            peer.advanceTimeBy(2, TimeUnit.SECONDS);
            peer.read(16 * 1024);
        }
        Account honest = open("10.0.0.3");
        boolean[] ended = new boolean[1];
        Claim recent = new Claim(honest, Resource.QUEUE_BYTES, peer.eventLoop(), () -> ended[0] = true);
        assertThat(recent.set(REPLY_BYTES, peer.eventLoop().ticker().nanoTime()))
                .isTrue();
        peer.advanceTimeBy(100, TimeUnit.MILLISECONDS);
        pushOut(POOL_BYTES - REPLY_BYTES - 10 * Charge.STEP_BYTES);
        peer.runPendingTasks();
        assertThat(peer.isOpen()).isFalse();
        assertThat(ended[0]).isFalse();
        recent.close();
        honest.close();
    }

    @Test
    void theBeginOfTheNextFrameDoesNotKeepTheClaimOfTheLast() {
        ServerConnection connection = connection();
        ByteBuf frame = RawPeer.frame(Wire.PING, 7, RawPeer.text("x".repeat(10_000)));
        peer.writeInbound(frame.readRetainedSlice(8_000));
        assertThat(ledger.held(Resource.FRAME_BYTES)).isPositive();
        ByteBuf next = RawPeer.frame(Wire.PING, 7, RawPeer.text("x"));
        peer.writeInbound(io.netty.buffer.Unpooled.wrappedBuffer(frame, next.readRetainedSlice(3)));
        assertThat(ledger.held(Resource.FRAME_BYTES)).isZero();
        assertThat(connection.isClosed()).isFalse();
    }

    @Test
    void deadlinesOfAClientsChoiceDoNotHaveItsCallsLookedAtAllTheTime() {
        connection();
        // all other timers are later than the 1 ms of this call
        ByteBuf request = RawPeer.prelude("target", "much");
        Varint.write(request, 1_000);
        peer.writeInbound(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME | Wire.MORE, ID, request));
        assertThat(peer.runScheduledPendingTasks()).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(5));
    }
}
