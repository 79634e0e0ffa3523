package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.HandChannel;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Claim;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests the queue of a socket without a connection on it, under a simulated clock. */
class SocketQueueAloneTest {
    private static final int POOL_BYTES = 1024 * 1024;

    /** Bytes that the channel counts for a message beside its content. */
    private static final int ENTRY_BYTES = 96;

    private static final int LARGE = 100_000;

    /** A socket that takes as many whole messages as the test says. */
    private static final class Socket extends EmbeddedChannel {
        private int messages;

        Socket(MockTicker ticker) {
            super(EmbeddedChannel.builder().ticker(ticker));
        }

        @Override
        protected void doWrite(ChannelOutboundBuffer queue) {
            while (messages > 0 && queue.current() != null) {
                messages--;
                queue.remove();
            }
        }

        void take(int count) {
            messages = count;
            flush();
            runPendingTasks();
            messages = 0;
        }

        ChannelOutboundBuffer queue() {
            return unsafe().outboundBuffer();
        }
    }

    private final MockTicker ticker = Ticker.newMockTicker();
    private final Socket socket = new Socket(ticker);
    private final Ledger ledger = new Ledger(
            "queues",
            Map.of(Resource.QUEUE_BYTES, (long) POOL_BYTES, Resource.UNREAD_REPLY_BYTES, (long) POOL_BYTES),
            Map.of(),
            Integer.MAX_VALUE);
    private final Account account = open("10.0.0.1");
    private final List<Account> others = new ArrayList<>();
    private long replyBytes;
    private long gatheredBytes;
    private int changes;
    private int cuts;
    private Runnable whenCut = () -> {};
    private final SocketQueue queue =
            new SocketQueue(socket, account, () -> replyBytes, () -> gatheredBytes, () -> changes++, () -> {
                cuts++;
                whenCut.run();
            });

    private Account open(String address) {
        try {
            return Objects.requireNonNull(ledger.open(new InetSocketAddress(InetAddress.getByName(address), 1)));
        } catch (java.net.UnknownHostException e) {
            throw new IllegalArgumentException(e);
        }
    }

    @AfterEach
    void nothingIsLeft() {
        socket.unsafe().close(socket.newPromise());
        socket.runPendingTasks();
        account.close();
        others.forEach(Account::close);
        assertThat(ledger.audit()).isEmpty();
    }

    private void write(int bytes) {
        socket.writeAndFlush(Unpooled.buffer(bytes).writeZero(bytes));
    }

    private long charged() {
        return ledger.held(Resource.QUEUE_BYTES);
    }

    private long unread() {
        return ledger.held(Resource.UNREAD_REPLY_BYTES);
    }

    /** Has another connection hold this much, and runs {@code end} when it ends for others. */
    private Claim other(Resource kind, long bytes, Runnable end) {
        Account its = open("10.0.0.2");
        others.add(its);
        Claim claim = new Claim(its, kind, socket.eventLoop(), end);
        assertThat(claim.set(bytes, ticker.nanoTime())).isTrue();
        return claim;
    }

    @Test
    void aQueueIsChargedFromTheFirstByteThatIsMoreThanALittle() {
        write(Outbound.MAX_SMALL_BYTES - ENTRY_BYTES);
        assertThat(socket.queue().totalPendingWriteBytes()).isEqualTo(Outbound.MAX_SMALL_BYTES);
        queue.updateClaims();
        assertThat(charged()).isZero();
        write(1);
        queue.updateClaims();
        assertThat(charged()).isGreaterThanOrEqualTo(socket.queue().totalPendingWriteBytes());
    }

    /** The buffer of the message is held as a whole until all of it has been sent. */
    @Test
    void aMessageOfWhichALittleIsLeftIsChargedAsAWhole() {
        ByteBuf message = Unpooled.buffer(LARGE).writeZero(LARGE);
        socket.writeAndFlush(message);
        write(1);
        queue.updateClaims();
        long all = charged();
        socket.queue().removeBytes(LARGE - 10);
        assertThat(message.readableBytes()).isEqualTo(10);
        queue.updateClaims();
        assertThat(charged()).isEqualTo(all);
        queue.shortened();
        assertThat(charged()).isEqualTo(all);
        socket.take(1);
        queue.shortened();
        assertThat(charged()).isZero();
    }

    @Test
    void anEmptyQueueIsNotWatched() {
        queue.updateClaims();
        socket.take(10);
        assertThat(changes).isZero();
        assertThat(socket.queue().totalPendingWriteBytes()).isZero();
    }

    @Test
    void aShortQueueIsWatchedToo() {
        write(1);
        queue.updateClaims();
        queue.updateClaims();
        assertThat(changes).isZero();
        socket.take(2);
        assertThat(changes).isEqualTo(1);
        assertThat(socket.queue().totalPendingWriteBytes()).isZero();
    }

    @Test
    void oneMarkAfterTheOtherStandsInAQueueThatDoesNotEnd() {
        write(LARGE);
        queue.updateClaims();
        for (int i = 1; i <= 5; i++) {
            write(LARGE);
            queue.updateClaims();
            socket.take(2);
            assertThat(changes).isEqualTo(i);
            assertThat(charged())
                    .isBetween(
                            socket.queue().totalPendingWriteBytes() - 2 * ENTRY_BYTES, LARGE + 3 * Charge.STEP_BYTES);
        }
        socket.take(10);
        assertThat(changes).isEqualTo(6);
        assertThat(charged()).isZero();
        assertThat(socket.queue().totalPendingWriteBytes()).isZero();
    }

    @Test
    void aQueueThatHasBecomeShortIsChargedNoMoreThoughItIsNotEmpty() {
        write(LARGE);
        write(100);
        queue.updateClaims();
        assertThat(charged()).isPositive();
        socket.take(1);
        queue.updateClaims();
        assertThat(socket.queue().totalPendingWriteBytes()).isPositive();
        assertThat(charged()).isZero();
    }

    @Test
    void whatHasBeenSentIsGivenBackAtOnceAndWhatHasComeIsNotChargedByThat() {
        for (int i = 0; i < 4; i++) {
            write(LARGE);
        }
        queue.updateClaims();
        long all = charged();
        socket.take(1);
        queue.shortened();
        assertThat(charged()).isBetween(all - LARGE - 2 * Charge.STEP_BYTES, all - LARGE + 2 * Charge.STEP_BYTES);
        long fewer = charged();
        write(LARGE);
        queue.shortened();
        assertThat(charged()).isEqualTo(fewer);
    }

    @Test
    void aQueueThatIsShortenedToALittleIsChargedNoMore() {
        write(LARGE);
        write(Outbound.MAX_SMALL_BYTES - 2 * ENTRY_BYTES);
        queue.updateClaims();
        assertThat(charged()).isPositive();
        socket.take(1);
        assertThat(socket.queue().totalPendingWriteBytes()).isEqualTo(Outbound.MAX_SMALL_BYTES);
        queue.shortened();
        assertThat(charged()).isZero();
    }

    @Test
    void whatWaitsToJoinTheQueueIsChargedWithIt() {
        write(LARGE);
        queue.updateClaims();
        long before = charged();
        gatheredBytes = 10 * Charge.STEP_BYTES;
        queue.updateClaims();
        assertThat(charged()).isEqualTo(before + gatheredBytes);
        gatheredBytes = 0;
        queue.shortened();
        assertThat(charged()).isBetween(before, before + Charge.STEP_BYTES);
    }

    @Test
    void repliesThatAreSentAreChargedNoLonger() {
        replyBytes = 50_000;
        write(LARGE);
        queue.updateClaims();
        replyBytes = 20_000;
        queue.shortened();
        assertThat(unread()).isBetween(20_000L, 20_000L + 2 * Charge.STEP_BYTES);
        replyBytes = 40_000;
        queue.shortened();
        assertThat(unread()).as("until the next look").isLessThan(40_000L);
        replyBytes = 0;
        queue.shortened();
        assertThat(unread()).isZero();
    }

    @Test
    void aQueueForWhichThereIsNoRoomEndsItsConnectionALittleLater() {
        write(2 * POOL_BYTES);
        boolean[] isThere = new boolean[1];
        whenCut = () -> isThere[0] = socket.isOpen();
        queue.updateClaims();
        socket.runPendingTasks();
        assertThat(cuts).isEqualTo(1);
        assertThat(isThere[0]).as("it could still say something").isTrue();
        assertThat(socket.isOpen()).isFalse();
    }

    /**
     * More may be written until the task that ends the connection runs. Each further question would visit all claims.
     */
    @Test
    void nobodyEndsForAConnectionThatIsAboutToEnd() {
        boolean[] isEnded = new boolean[1];
        Claim other = other(Resource.QUEUE_BYTES, POOL_BYTES, () -> isEnded[0] = true);
        ticker.advance(10, TimeUnit.SECONDS);
        write(2 * POOL_BYTES);
        write(LARGE);
        queue.updateClaims();
        socket.queue().remove();
        queue.updateClaims();
        assertThat(isEnded[0]).isFalse();
        assertIsCutByItsTask();
        other.close();
    }

    private void assertIsCutByItsTask() {
        socket.runPendingTasks();
        assertThat(cuts).isEqualTo(1);
        assertThat(socket.isOpen()).isFalse();
    }

    @Test
    void nobodyEndsForRepliesOfAConnectionThatIsAboutToEnd() {
        boolean[] isEnded = new boolean[1];
        Claim other = other(Resource.UNREAD_REPLY_BYTES, POOL_BYTES, () -> isEnded[0] = true);
        ticker.advance(10, TimeUnit.SECONDS);
        // the test writes nothing here, because this channel runs tasks that are due within each write
        socket.queue().setUserDefinedWritability(1, false);
        replyBytes = POOL_BYTES + 1;
        queue.updateClaims();
        replyBytes = LARGE;
        queue.updateClaims();
        assertThat(isEnded[0]).isFalse();
        assertIsCutByItsTask();
        other.close();
    }

    @Test
    void whereNoTaskCanEndAConnectionItIsClosedAtOnce() {
        Account its = open("10.0.0.3");
        others.add(its);
        HandChannel other = new HandChannel(ticker);
        SocketQueue full = new SocketQueue(other, its, () -> 0, () -> 0, () -> changes++, () -> cuts++);
        other.write(Unpooled.buffer().writeZero(2 * POOL_BYTES));
        other.loop.fails = true;
        assertThatThrownBy(full::updateClaims).isInstanceOf(OutOfMemoryError.class);
        assertThat(other.isOpen()).isFalse();
        other.loop.fails = false;
        other.runPendingTasks();
        assertThat(cuts).isZero();
    }

    @Test
    void repliesWaitOnlyWhereTheSocketTakesNothing() {
        replyBytes = 20_000;
        write(1);
        queue.updateClaims();
        assertThat(unread()).isZero();
        write(LARGE);
        assertThat(socket.isWritable()).isFalse();
        queue.updateClaims();
        assertThat(unread()).isEqualTo(20_480);
        replyBytes = 50_000;
        queue.updateClaims();
        assertThat(unread()).isBetween(50_000L, 50_000L + Charge.STEP_BYTES);
        socket.take(10);
        queue.updateClaims();
        assertThat(unread()).isZero();
    }

    @Test
    void repliesForWhichThereIsNoRoomEndTheirConnection() {
        replyBytes = POOL_BYTES + 1;
        write(LARGE);
        queue.updateClaims();
        socket.runPendingTasks();
        assertThat(cuts).isEqualTo(1);
        assertThat(socket.isOpen()).isFalse();
    }

    @Test
    void repliesThatAreDroppedWaitNoMore() {
        replyBytes = 20_000;
        write(LARGE);
        queue.updateClaims();
        queue.dropReplies();
        assertThat(unread()).isZero();
        assertThat(charged()).as("the queue is still there").isPositive();
    }

    @Test
    void bothAreGivenBackWithTheChannelAndNobodyIsToldOfAQueueThatIsGone() {
        replyBytes = 20_000;
        write(LARGE);
        queue.updateClaims();
        assertThat(unread()).isPositive();
        SocketQueue.closeNow(socket);
        socket.runPendingTasks();
        assertThat(socket.isOpen()).isFalse();
        assertThat(unread()).isZero();
        assertThat(charged()).isZero();
        assertThat(changes).isZero();
        replyBytes = 0;
        queue.updateClaims();
        queue.shortened();
        assertThat(cuts).isZero();
        assertThat(queue.isStalled()).isFalse();
    }

    /** The last messages of the connection are written while it ends, and are not charged any more. */
    @Test
    void aConnectionThatIsPushedOutIsNotChargedForWhatItSaysLast() {
        replyBytes = 20_000;
        write(LARGE);
        queue.updateClaims();
        ticker.advance(10, TimeUnit.SECONDS);
        long[] most = new long[2];
        whenCut = () -> {
            write(5 * LARGE);
            replyBytes = 500_000;
            queue.updateClaims();
            most[0] = charged();
            most[1] = unread();
        };
        other(Resource.QUEUE_BYTES, POOL_BYTES - 2 * Charge.STEP_BYTES, () -> {})
                .close();
        assertThat(cuts).isEqualTo(1);
        assertThat(most[0]).isLessThan(2 * LARGE);
        assertThat(most[1]).isZero();
        assertThat(socket.isOpen()).isFalse();
    }

    @Test
    void aConnectionThatIsPushedOutIsClosedThoughItsEndFails() {
        write(2 * POOL_BYTES);
        whenCut = () -> {
            throw new IllegalStateException("by the test");
        };
        queue.updateClaims();
        socket.runPendingTasks();
        assertThat(socket.isOpen()).isFalse();
        assertThatThrownBy(socket::checkException).hasMessage("by the test");
    }

    /**
     * A claim costs its bytes times the time for which it has waited. A peer that has read all that was there has
     * waited only since then.
     */
    @Test
    void aPeerThatHasReadAllThatWasThereHasWaitedOnlySinceThen() {
        write(LARGE);
        queue.updateClaims();
        write(LARGE);
        ticker.advance(5, TimeUnit.SECONDS);
        boolean[] isEnded = new boolean[1];
        Claim other = other(Resource.QUEUE_BYTES, LARGE, () -> isEnded[0] = true);
        ticker.advance(5, TimeUnit.SECONDS);
        socket.take(2);
        assertThat(charged()).isGreaterThan(2 * LARGE);
        ticker.advance(1, TimeUnit.SECONDS);
        Claim large = other(Resource.QUEUE_BYTES, POOL_BYTES - 2 * LARGE + 10 * Charge.STEP_BYTES, () -> {});
        socket.runPendingTasks();
        assertThat(isEnded[0]).isTrue();
        assertThat(socket.isOpen()).isTrue();
        other.close();
        large.close();
    }

    @Test
    void itsRepliesHaveWaitedOnlySinceThenToo() {
        replyBytes = LARGE;
        write(LARGE);
        queue.updateClaims();
        write(LARGE);
        ticker.advance(5, TimeUnit.SECONDS);
        boolean[] isEnded = new boolean[1];
        Claim other = other(Resource.UNREAD_REPLY_BYTES, LARGE, () -> isEnded[0] = true);
        ticker.advance(5, TimeUnit.SECONDS);
        socket.take(2);
        assertThat(unread()).isGreaterThan(2 * LARGE);
        ticker.advance(1, TimeUnit.SECONDS);
        Claim large = other(Resource.UNREAD_REPLY_BYTES, POOL_BYTES - 2 * LARGE + 10 * Charge.STEP_BYTES, () -> {});
        socket.runPendingTasks();
        assertThat(isEnded[0]).isTrue();
        assertThat(socket.isOpen()).isTrue();
        other.close();
        large.close();
    }

    // ---- whether it stands still

    @Test
    void anEmptyQueueDoesNotStandStill() {
        assertThat(queue.isStalled()).isFalse();
        assertThat(queue.isStalled()).isFalse();
        write(1);
        queue.updateClaims();
        socket.take(2);
        assertThat(queue.isStalled()).isFalse();
        assertThat(queue.isStalled()).isFalse();
    }

    @Test
    void aQueueStandsStillWhereNothingHasBeenSentSinceTheLastQuestionWhateverHasCome() {
        write(100);
        assertThat(queue.isStalled()).as("not seen before").isFalse();
        assertThat(queue.isStalled()).isTrue();
        write(200);
        assertThat(queue.isStalled()).isTrue();
        socket.take(1);
        assertThat(queue.isStalled()).isFalse();
        assertThat(queue.isStalled()).isTrue();
    }

    @Test
    void aQueueWhoseFirstMessageHasBeenSentInPartDoesNotStandStill() {
        write(100);
        assertThat(queue.isStalled()).isFalse();
        ((ByteBuf) Objects.requireNonNull(socket.queue().current())).skipBytes(1);
        assertThat(queue.isStalled()).isFalse();
        assertThat(queue.isStalled()).isTrue();
    }

    @Test
    void anotherMessageOfTheSameLengthIsNotTheSame() {
        write(100);
        write(100);
        assertThat(queue.isStalled()).isFalse();
        socket.take(1);
        assertThat(queue.isStalled()).isFalse();
    }

    /** A pool may return the same buffer again, but not before a mark has been sent. */
    @Test
    void theSameBufferIsToldFromItselfByTheMarkBetween() {
        ByteBuf buffer = Unpooled.buffer(100).writeZero(100);
        socket.writeAndFlush(buffer.retain());
        queue.updateClaims();
        socket.writeAndFlush(buffer);
        queue.updateClaims();
        assertThat(queue.isStalled()).isFalse();
        assertThat(queue.isStalled()).isTrue();
        socket.take(2);
        assertThat(socket.queue().current()).isSameAs(buffer);
        assertThat(queue.isStalled()).isFalse();
        assertThat(queue.isStalled()).isTrue();
    }

    @Test
    void whatIsNotAByteBufferMayStandStillToo() {
        socket.writeAndFlush("no bytes");
        // such a message has no bytes that are counted
        write(100);
        assertThat(queue.isStalled()).isFalse();
        assertThat(queue.isStalled()).isTrue();
    }

    /** A call that has ended except for its own threads stays charged, and its connection is already ending. */
    @Test
    void repliesThatAreDroppedDoNotCutOffTheLastWords() {
        replyBytes = 20_000;
        queue.dropReplies();
        write(LARGE);
        queue.updateClaims();
        socket.runPendingTasks();
        assertThat(cuts).isZero();
        assertThat(socket.isOpen()).isTrue();
        assertThat(unread()).isZero();
    }
}
