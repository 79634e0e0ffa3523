package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.ClassicRequests;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.ClassicWire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Tests a server's connection on the paper's classic wire, without a network and under a simulated clock: what happens
 * if something takes long, and what a handler does with its answer.
 */
class ClassicServerConnectionTest {
    private static final Duration KEEP_ALIVE = Duration.ofSeconds(60);

    @RPCXServer("slow")
    static final class Slow {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> later() {
            CompletableFuture<String> answer = new CompletableFuture<>();
            waiting.add(answer);
            return answer;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String hello(String name) {
            return name;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String worse() {
            throw new RuntimeException() {
                @Override
                public String getMessage() {
                    throw new StackOverflowError("deep");
                }
            };
        }
    }

    private final Slow slow = new Slow();
    private final Server server = Server.builder(RegistryServer.registry(slow))
            .classic(true)
            .keepAlive(KEEP_ALIVE)
            .build();
    private final MockTicker clock = Ticker.newMockTicker();
    private final EmbeddedChannel channel =
            EmbeddedChannel.builder().ticker(clock).build();
    private final Account account =
            Objects.requireNonNull(Inside.core(server).ledger().open(null));

    private final ClassicServerConnection connection =
            new ClassicServerConnection(channel, Inside.core(server), account);

    ClassicServerConnectionTest() {
        channel.pipeline().addLast(connection);
    }

    @AfterEach
    void nothingIsLeft() {
        slow.waiting.forEach(answer -> answer.complete("over"));
        channel.finishAndReleaseAll();
        account.close();
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
        assertThat(channel.runScheduledPendingTasks()).isEqualTo(-1);
    }

    private void pass(Duration time) {
        for (long left = time.toSeconds(); left > 0; left--) {
            clock.advance(1, TimeUnit.SECONDS);
            channel.runScheduledPendingTasks();
        }
    }

    private void send(ByteBuf bytes) {
        channel.writeInbound(bytes);
    }

    private static ByteBuf request(long id, String method) {
        return ClassicRequests.of(id, "slow", method, List.of(), List.of());
    }

    /** Holds what has been read from the connection after the replies that the test has looked at. */
    private final ByteBuf came = Unpooled.buffer();

    /** Returns the next reply, whose chunks follow each other. */
    private ClassicWire.Reply reply() {
        while (came.readableBytes() < 4 || came.readableBytes() < 4 + came.getInt(came.readerIndex())) {
            ByteBuf chunk = channel.readOutbound();
            assertThat(chunk).as("a reply").isNotNull();
            came.writeBytes(chunk);
            chunk.release();
        }
        return ClassicWire.readReply(came.readSlice(came.readInt()));
    }

    private RPCXException error() {
        return Objects.requireNonNull(reply().error());
    }

    @Test
    void aFrameOfAByteNowAndThenEndsTheConnection() {
        send(Unpooled.buffer().writeInt(4 << 20));
        int seconds = 0;
        while (channel.<ByteBuf>readOutbound() == null) {
            assertThat(++seconds).isLessThan(300);
            send(Unpooled.buffer().writeByte(0));
            pass(Duration.ofSeconds(1));
        }
        assertThat(seconds).isGreaterThan(100);
        pass(Duration.ofSeconds(2));
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aLargeFrameAtTheSlowestRateIsTaken() {
        int bytes = 1 << 20;
        send(ClassicRequests.of(
                1, "slow", "hello", List.of("text"), List.of(io.netty.buffer.ByteBufUtil.getBytes(RawPeer.text("a")))));
        assertThat(reply().error()).isNull();
        send(Unpooled.buffer().writeInt(bytes + 2).writeByte(1 << 3).writeByte(2));
        // the rest of the frame is a field that nobody knows
        ByteBuf rest = Unpooled.buffer().writeByte(15 << 3 | 2);
        Varint.write(rest, bytes - 4);
        rest.writeZero(bytes - 4);
        while (rest.isReadable()) {
            pass(Duration.ofSeconds(1));
            send(rest.readBytes(Math.min(16 << 10, rest.readableBytes())));
        }
        ClassicWire.Reply refused = reply();
        assertThat(refused.id()).isEqualTo(2);
        assertThat(Objects.requireNonNull(refused.error()).code()).isEqualTo(RPCXException.Code.NOT_FOUND);
    }

    @Test
    void aCallThatIsNeverAnsweredEndsAtTheServersTime() {
        send(request(1, "later"));
        pass(Duration.ofSeconds(50));
        assertThat(channel.<ByteBuf>readOutbound()).isNull();
        pass(Duration.ofSeconds(20));
        RPCXException late = error();
        assertThat(late.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(late.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        // the answer to the first call comes too late, and is not taken for that of the call that has the id now
        send(request(1, "later"));
        slow.waiting.get(0).complete("late");
        assertThat(channel.<ByteBuf>readOutbound()).isNull();
        assertThat(account.held(Resource.CALLS)).isEqualTo(1);
        slow.waiting.get(1).complete("in time");
        assertThat(reply().error()).isNull();
    }

    @Test
    void aConnectionIsNotIdleWhileACallIsUnderWay() {
        for (int i = 0; i < 7; i++) {
            send(request(1, "later"));
            pass(Duration.ofSeconds(50));
            slow.waiting.get(i).complete("now");
            assertThat(reply().error()).isNull();
        }
        assertThat(channel.isOpen()).isTrue();
        pass(KEEP_ALIVE.multipliedBy(6));
        assertThat(error().executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void theTablesOfManyCallsAtOnceAreNotKeptBehindThem() {
        for (int id = 1; id <= 100; id++) {
            send(request(id, "later"));
        }
        assertThat(connection.peakPlaces).isEqualTo(100);
        slow.waiting.forEach(answer -> answer.complete("now"));
        assertThat(connection.peakPlaces).as("that its tables have room for").isZero();
        for (int id = 1; id <= 100; id++) {
            assertThat(reply().error()).isNull();
        }
    }

    @Test
    void anExceptionWhoseMessageFailsIsAnswered() {
        send(request(1, "worse"));
        assertThat(error().code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
    }

    @Test
    void aRequestWithoutAnIdEndsTheConnection() {
        send(request(0, "later"));
        assertThat(error().code()).isEqualTo(RPCXException.Code.PROTOCOL);
        // a channel that has no two directions is closed as soon as the reason has been sent
        assertThat(channel.isOpen()).isFalse();
        assertThat(slow.waiting).isEmpty();
    }

    @Test
    void whatIsHeldForARequestIsGivenBackWhenItsHandlerEnds() {
        ByteBuf large = ClassicRequests.of(1, "slow", "later", List.of("text"), List.of(new byte[100_000]));
        send(large.copy(0, 50_000));
        assertThat(account.held(Resource.REQUEST_BYTES)).isBetween(50_000L, 110_000L);
        send(large.skipBytes(50_000));
        assertThat(error().code()).isEqualTo(RPCXException.Code.INVALID);
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
    }

    private final ChannelOutboundHandlerAdapter stopped = new ChannelOutboundHandlerAdapter() {
        @Override
        public void flush(ChannelHandlerContext ctx) {
            // nothing is sent
        }
    };

    /** Sets whether the peer seems to read what it is sent. */
    private void setReading(boolean reads) {
        if (!reads) {
            channel.pipeline().addFirst(stopped);
        } else {
            channel.pipeline().remove(stopped);
            channel.flushOutbound();
        }
        channel.unsafe().outboundBuffer().setUserDefinedWritability(1, reads);
        channel.runPendingTasks();
        assertThat(channel.config().isAutoRead()).isEqualTo(reads);
    }

    @Test
    void theTimeInWhichTheServerDoesNotReadDoesNotCountAgainstAFrame() {
        ByteBuf whole = request(1, "later");
        send(whole.readBytes(whole.readableBytes() - 1));
        setReading(false);
        pass(Duration.ofSeconds(100));
        setReading(true);
        pass(Duration.ofSeconds(3));
        assertThat(channel.isOpen()).isTrue();
        send(whole);
        assertThat(slow.waiting).hasSize(1);
    }

    /** Each reply by itself would take many times its bytes of the heap. */
    @Test
    void smallRepliesThatWaitStandTogetherAndAreChargedByTheirBytes() {
        channel.pipeline().addFirst(stopped);
        int refusals = 1_000;
        for (int i = 1; i <= refusals; i++) {
            send(request(i, "nowhere"));
        }
        assertThat(channel.unsafe().outboundBuffer().size()).isLessThan(10);
        long bytes = refusals
                * (long) ClassicWire.reply(1, null, RPCXException.refused(RPCXException.Code.NOT_FOUND, "")).length;
        assertThat(account.held(Resource.QUEUE_BYTES)).isBetween(bytes, 4 * bytes);
        assertThat(account.held(Resource.REPLY_BYTES)).isZero();
        channel.pipeline().remove(stopped);
        channel.flushOutbound();
        channel.runPendingTasks();
        for (int i = 1; i <= refusals; i++) {
            ClassicWire.Reply refused = reply();
            assertThat(refused.id()).isEqualTo(i);
            assertThat(Objects.requireNonNull(refused.error()).code()).isEqualTo(RPCXException.Code.NOT_FOUND);
        }
        assertThat(account.held(Resource.QUEUE_BYTES)).isZero();
    }

    @Test
    void smallRepliesThatWaitAreGivenBackWithTheConnection() {
        channel.pipeline().addFirst(stopped);
        send(request(1, "nowhere"));
        send(request(2, "nowhere"));
        channel.close();
        channel.runPendingTasks();
        assertThat(channel.isOpen()).isFalse();
        assertThat(account.held(Resource.QUEUE_BYTES)).isZero();
    }

    /** The server's other connections fill the room that there is for replies. */
    @Test
    void aReplyThatFindsNoRoomIsRefusedAndItsConnectionGoesOn() throws Exception {
        // each other connection takes its share of what is left
        List<Account> others = new ArrayList<>();
        List<Charge> all = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            Account other = Objects.requireNonNull(Inside.core(server).ledger().open(null));
            Charge charge = other.charge(Resource.REPLY_BYTES);
            for (long step = 1L << 30; step >= Charge.STEP_BYTES; step /= 2) {
                while (charge.add(step)) {
                    assertThat(charge.held()).isPositive();
                }
            }
            others.add(other);
            all.add(charge);
        }
        send(request(1, "later"));
        Thread elsewhere = new Thread(() -> slow.waiting.get(0).complete("x".repeat(100_000)));
        elsewhere.start();
        elsewhere.join();
        channel.runPendingTasks();
        RPCXException error = error();
        assertThat(error.code()).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(error.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        for (int i = 2; i <= 100; i++) {
            send(request(i, "nowhere"));
            assertThat(error().code()).isEqualTo(RPCXException.Code.NOT_FOUND);
        }
        assertThat(channel.isOpen()).isTrue();
        all.forEach(Charge::release);
        others.forEach(Account::close);
    }

    @Test
    void aCallThatTwoSayIsAwayIsGivenUpOnce() {
        send(request(1, "later"));
        ClassicServerConnection connection = channel.pipeline().get(ClassicServerConnection.class);
        ClassicServerCall call = connection.callsUnderWay().get(0);
        while (connection.abandonedCalls() == 0) {
            pass(Duration.ofSeconds(1));
        }
        connection.awaitsForNobody(call);
        channel.runPendingTasks();
        pass(Duration.ofSeconds(5));
        assertThat(connection.abandonedCalls()).isZero();
    }

    /** The call does not wait for the next look at the connection, which may be seconds later. */
    @Test
    void aCallEndsWhenItsTimeIsOver() {
        pass(Duration.ofSeconds(1));
        send(request(1, "later"));
        pass(Duration.ofSeconds(59));
        assertThat(channel.<ByteBuf>readOutbound()).isNull();
        pass(Duration.ofSeconds(1));
        assertThat(error().code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
    }

    /** The order does not depend on the ids, so a look at deadlines can end at the first call that has time left. */
    @Test
    void callsAreToldInTheOrderOfTheirDeadlinesThatTheirTimeIsOver() {
        for (long id : new long[] {9, 5, 7}) {
            send(request(id, "later"));
        }
        pass(Duration.ofSeconds(1));
        send(request(1, "later"));
        pass(Duration.ofSeconds(59));
        for (long id : new long[] {9, 5, 7}) {
            assertThat(reply().id()).isEqualTo(id);
        }
        assertThat(came.isReadable()).isFalse();
        assertThat(channel.<ByteBuf>readOutbound()).isNull();
        pass(Duration.ofSeconds(1));
        assertThat(reply().id()).isEqualTo(1);
    }

    /** A client that reads slowly what it has asked for, and sends a large request meanwhile, gets on with that too. */
    @Test
    void somethingIsReadEachTimeThatSomethingHasBeenSent() {
        ArrayDeque<Runnable> waiting = new ArrayDeque<>();
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
                waiting.add(() -> ctx.writeAndFlush(message, promise));
            }
        });
        ByteBuf value = RawPeer.text("x".repeat(1 << 20));
        send(ClassicRequests.of(
                1, "slow", "hello", List.of("text"), List.of(io.netty.buffer.ByteBufUtil.getBytes(value))));
        assertThat(waiting).hasSizeGreaterThan(60);
        channel.unsafe().outboundBuffer().setUserDefinedWritability(1, false);
        channel.runPendingTasks();
        ByteBuf upload = request(2, "later");
        for (int i = 0; i < 5; i++) {
            assertThat(channel.config().isAutoRead()).isFalse();
            waiting.remove().run();
            assertThat(channel.config().isAutoRead()).as("for a little alone").isFalse();
            for (int chunk = 0; chunk < 4; chunk++) {
                waiting.remove().run();
            }
            channel.runPendingTasks();
            assertThat(channel.config().isAutoRead()).as("once some has left").isTrue();
            channel.pipeline().fireChannelRead(upload.readRetainedSlice(2));
            assertThat(channel.config().isAutoRead()).as("one buffer alone").isFalse();
            channel.pipeline().fireChannelReadComplete();
        }
        assertThat(channel.config().isAutoRead()).isFalse();
        channel.unsafe().outboundBuffer().setUserDefinedWritability(1, true);
        channel.runPendingTasks();
        assertThat(channel.config().isAutoRead()).isTrue();
        send(upload);
        assertThat(slow.waiting).hasSize(1);
        slow.waiting.get(0).complete("at last");
        while (!waiting.isEmpty()) {
            waiting.remove().run();
        }
    }
}
