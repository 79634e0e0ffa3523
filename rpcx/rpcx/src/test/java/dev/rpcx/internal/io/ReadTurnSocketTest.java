package dev.rpcx.internal.io;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.Accepted;
import dev.rpcx.RawPeer;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.epoll.Epoll;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests a caller at a socket that is lent out: what it takes, what it leaves to the event loop, and who has the socket
 * after that.
 */
@Timeout(60)
class ReadTurnSocketTest {
    private static final int PATIENCE_MILLIS = 10_000;
    private static final String REPLY = "reply";

    /** The loop takes a socket back that no caller uses for some milliseconds. Then the socket is lent once more. */
    private static final int MAX_TRIES = 10_000;

    private interface Step {
        void run() throws IOException;
    }

    private final class Connection extends ChannelInboundHandlerAdapter implements ReadTurn.Connection {
        private final Channel channel;
        private final ReadTurn turn;

        Connection(Channel channel) {
            this.channel = channel;
            this.turn = new ReadTurn(channel, this);
        }

        @Override
        public int load() {
            return load;
        }

        @Override
        public void inLoopOrHere(Runnable task) {
            channel.eventLoop().execute(task);
        }

        @Override
        public void isNotAlone() {
            timesBack.incrementAndGet();
        }

        @Override
        public void recordActivity() {
            timesHeard.incrementAndGet();
        }

        @Override
        public void abort(String why) {
            aborted.complete(why);
            channel.close();
        }

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object message) {
            ByteBuf arrived = (ByteBuf) message;
            readByLoop.append(arrived.toString(US_ASCII));
            arrived.release();
        }
    }

    /** A call whose reply is {@link #REPLY}. When it waits at the socket, it runs the test's code. */
    private final class Call implements ReadTurn.Reader {
        private final Step meanwhile;
        boolean isCompleted;
        boolean isAsked;
        boolean isTaken;
        Runnable within = () -> {};

        Call(Step meanwhile) {
            this.meanwhile = meanwhile;
        }

        @Override
        public boolean isCompleted() {
            isAsked = true;
            try {
                meanwhile.run();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return isCompleted;
        }

        @Override
        public boolean tryComplete(ByteBuf arrived) {
            within.run();
            isTaken = arrived.toString(US_ASCII).startsWith(REPLY);
            // it also reads into bytes that are not its own
            arrived.skipBytes(isTaken ? REPLY.length() : 1);
            return isTaken;
        }
    }

    private final StringBuffer readByLoop = new StringBuffer();
    private final AtomicInteger timesBack = new AtomicInteger();
    private final AtomicInteger timesHeard = new AtomicInteger();
    private final CompletableFuture<String> aborted = new CompletableFuture<>();
    private volatile int load;

    private final Loops loops = new Loops(1, "lent", false);
    private final RawPeer peer;
    private final Connection connection;

    ReadTurnSocketTest() throws Exception {
        Accepted<Connection> accepted = Accepted.by(loops, loops.server(), Connection::new);
        peer = accepted.peer();
        connection = accepted.handler();
    }

    @BeforeAll
    static void epoll() {
        assumeTrue(Epoll.isAvailable(), "callers read their replies themselves on Linux only");
    }

    @AfterEach
    void end() throws IOException {
        peer.close();
        loops.close(Long.MAX_VALUE);
    }

    private boolean onLoop(BooleanSupplier asks) {
        return CompletableFuture.supplyAsync(asks::getAsBoolean, connection.channel.eventLoop())
                .orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)
                .join();
    }

    private boolean isLent() {
        return onLoop(connection.turn::isLent);
    }

    private Step sends(String text) {
        return () -> peer.send(Unpooled.wrappedBuffer(text.getBytes(US_ASCII)));
    }

    private void send(String text) throws IOException {
        sends(text).run();
    }

    private boolean lend() {
        return onLoop(() -> {
            connection.turn.lend();
            return connection.turn.isLent();
        });
    }

    /** Reads with this thread as soon as the socket is lent and the loop has not taken it back before the read. */
    private void read(Call call) {
        for (int tries = 0; !call.isAsked; tries++) {
            assertThat(tries).as("a socket is lent at some time").isLessThan(MAX_TRIES);
            assertThat(lend()).isTrue();
            connection.turn.read(call);
        }
    }

    private void assertReadByLoop(String text) {
        await().untilAsserted(() -> assertThat(readByLoop).hasToString(text));
    }

    @Test
    void aCallerTakesItsReplyAndTheLoopHearsOfItAndHasTheSocketBackSomeTimeAfter() throws IOException {
        Call call = new Call(sends(REPLY));
        read(call);
        assertThat(call.isTaken).isTrue();
        await().until(() -> timesHeard.get() > 0);
        await().until(() -> !isLent());
        assertThat(timesBack.get()).isPositive();
        send("other");
        assertReadByLoop("other");
    }

    @Test
    void whatIsNotItsReplyTheLoopReadsFromTheFirstByteOn() {
        Call call = new Call(sends("other"));
        read(call);
        assertThat(call.isTaken).isFalse();
        assertThat(isLent()).isFalse();
        assertReadByLoop("other");
    }

    @Test
    void whatComesBehindItsReplyIsTheLoops() {
        Call call = new Call(sends(REPLY + "other"));
        read(call);
        assertThat(call.isTaken).isTrue();
        assertThat(isLent()).isFalse();
        assertReadByLoop("other");
    }

    @Test
    void aCallerWhoseReplyIsThereReadsNothing() throws IOException {
        Call call = new Call(() -> {});
        call.isCompleted = true;
        call.within = () -> {
            throw new IllegalStateException("it reads");
        };
        read(call);
        await().until(() -> !isLent());
        send("other");
        assertReadByLoop("other");
    }

    @Test
    void whereAnotherCallIsInFlightTheLoopHasTheSocketBack() throws IOException {
        Call call = new Call(sends(REPLY));
        call.within = () -> load = 1;
        read(call);
        assertThat(call.isTaken).isTrue();
        assertThat(isLent()).isFalse();
        send("other");
        assertReadByLoop("other");
    }

    @Test
    void aCallerGivesBackASocketThatTheLoopWants() throws IOException {
        boolean[] isBack = {true};
        Call call = new Call(() -> isBack[0] = onLoop(connection.turn::takeForLoop));
        read(call);
        assertThat(isBack[0]).as("while the caller is there").isFalse();
        assertThat(isLent()).isFalse();
        send("other");
        assertReadByLoop("other");
    }

    @Test
    void aCallerThatFailsEndsTheConnection() {
        Call call = new Call(sends(REPLY));
        call.within = () -> {
            throw new IllegalStateException("of this test");
        };
        assertThatThrownBy(() -> read(call)).hasMessage("of this test");
        assertThat(aborted.orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS).join())
                .isEqualTo("a caller failed while it read its reply");
    }

    @Test
    void theEndOfTheStreamIsForTheLoop() {
        read(new Call(peer::close));
        assertThat(connection.channel.closeFuture().awaitUninterruptibly(PATIENCE_MILLIS))
                .isTrue();
    }

    /** Otherwise the number of its socket might soon belong to another connection. */
    @Test
    void aSocketClosesWhenItsCallerHasGivenItBackAndIsNotLentAgain() {
        Call call = new Call(() -> connection.channel.close());
        read(call);
        assertThat(call.isTaken).isFalse();
        assertThat(connection.channel.closeFuture().awaitUninterruptibly(PATIENCE_MILLIS))
                .isTrue();
        assertThat(lend()).isFalse();
    }
}
