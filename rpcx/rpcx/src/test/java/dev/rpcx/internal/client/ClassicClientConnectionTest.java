package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.ClassicRequests;
import dev.rpcx.HandPlatform;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXFuture;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.internal.io.SocketQueue;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.ClassicFrames;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.lang.reflect.Proxy;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests a client's connection on the paper's classic wire, without a network and under a simulated clock. */
class ClassicClientConnectionTest {
    private static final long KEEP_ALIVE_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final long HOUR_NANOS = TimeUnit.HOURS.toNanos(1);

    private final MockTicker clock = Ticker.newMockTicker();
    private final EmbeddedChannel channel =
            EmbeddedChannel.builder().ticker(clock).build();
    private final Ledger ledger = Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final ClassicClientConnection connection =
            new ClassicClientConnection(channel, account, Platform.MACHINE, "there", KEEP_ALIVE_NANOS);
    private final AtomicLong id = new AtomicLong();

    ClassicClientConnectionTest() {
        channel.pipeline().addLast(connection);
    }

    @AfterEach
    void nothingIsLeft() {
        channel.finishAndReleaseAll();
        assertThat(connection.waitingBytes()).isZero();
        account.close();
        assertThat(ledger.audit()).isEmpty();
        // no timer is left
        assertThat(channel.runScheduledPendingTasks()).isEqualTo(-1);
    }

    private RPCXFuture<byte[]> send(long timeNanos) {
        RPCXFuture<byte[]> reply = connection.send(
                taken -> {
                    id.set(taken);
                    return ClassicRequests.of(taken, "service", "method", List.of(), List.of());
                },
                clock.nanoTime() + timeNanos);
        channel.runPendingTasks();
        return reply;
    }

    private void reply(long to, int value) {
        channel.writeInbound(
                Unpooled.wrappedBuffer(ClassicWire.reply(to, Unpooled.buffer().writeByte(value), null)));
    }

    /**
     * A server that stops says so in its replies. New calls that still went to it would fail for as long as any call
     * is in flight on the connection.
     */
    @Test
    void whatIsRefusedAsUnavailableKeepsTheConnectionForTheCallsThatRemain() {
        RPCXFuture<byte[]> first = send(HOUR_NANOS);
        long firstId = id.get();
        RPCXFuture<byte[]> second = send(HOUR_NANOS);
        pass(ClientAddress.KEPT_NANOS);
        channel.writeInbound(Unpooled.wrappedBuffer(
                ClassicWire.reply(id.get(), null, RPCXException.refused(RPCXException.Code.UNAVAILABLE, "stopping"))));
        assertThat(second).isCompletedExceptionally();
        assertThat(connection.isUsable()).as("for new calls").isFalse();
        assertThat(channel.isOpen()).isTrue();
        reply(firstId, 5);
        assertThat(first.getNow(null)).containsExactly(5);
        assertThat(channel.isOpen()).as("once all are answered").isFalse();
    }

    @Test
    void whatAHandlerSaysIsUnavailableSaysNothingOfTheConnection() {
        RPCXFuture<byte[]> reply = send(HOUR_NANOS);
        channel.writeInbound(Unpooled.wrappedBuffer(
                ClassicWire.reply(id.get(), null, new RPCXException(RPCXException.Code.UNAVAILABLE, "elsewhere"))));
        assertThat(reply).isCompletedExceptionally();
        assertThat(connection.isUsable()).isTrue();
    }

    /** The caller cancels the last call in flight, and no reply comes for it. */
    @Test
    void aConnectionThatDrainsClosesAlsoWhereNobodyIsAnsweredAnyMore() {
        RPCXFuture<byte[]> first = send(HOUR_NANOS);
        send(HOUR_NANOS);
        pass(ClientAddress.KEPT_NANOS);
        channel.writeInbound(Unpooled.wrappedBuffer(
                ClassicWire.reply(id.get(), null, RPCXException.refused(RPCXException.Code.UNAVAILABLE, "stopping"))));
        first.cancel(false);
        pass(KEEP_ALIVE_NANOS);
        assertThat(channel.isOpen()).isFalse();
    }

    private void pass(long nanos) {
        for (long step = TimeUnit.MILLISECONDS.toNanos(500), left = nanos; left > 0; left -= step) {
            clock.advance(step, TimeUnit.NANOSECONDS);
            channel.runScheduledPendingTasks();
        }
    }

    private static RPCXException failure(CompletableFuture<?> reply) {
        assertThat(reply).isDone();
        try {
            reply.get();
        } catch (ExecutionException e) {
            return (RPCXException) e.getCause();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        throw new AssertionError("no failure");
    }

    @Test
    void whatIsNotAnsweredInTimeFailsAndItsLateReplyIsDropped() throws Exception {
        RPCXFuture<byte[]> reply = send(TimeUnit.SECONDS.toNanos(1));
        pass(TimeUnit.SECONDS.toNanos(2));
        assertThat(failure(reply).code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(connection.callsInFlight()).isZero();
        reply(id.get(), 7);
        reply(4711, 7);
        RPCXFuture<byte[]> next = send(HOUR_NANOS);
        reply(id.get(), 8);
        assertThat(next.get()).containsExactly(8);
    }

    @Test
    void idsComeFromThePlatformsChance() {
        assertThat(idOfFirstCall()).isEqualTo(idOfFirstCall()).isNotZero();
    }

    /** Returns the id of the first call on a platform whose chance begins with the same seed each time. */
    private long idOfFirstCall() {
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        Account held = Objects.requireNonNull(ledger.open(null));
        ClassicClientConnection seeded =
                new ClassicClientConnection(own, held, new HandPlatform(), "there", KEEP_ALIVE_NANOS);
        own.pipeline().addLast(seeded);
        AtomicLong first = new AtomicLong();
        seeded.send(
                taken -> {
                    first.set(taken);
                    return ClassicRequests.of(taken, "service", "method", List.of(), List.of());
                },
                clock.nanoTime() + HOUR_NANOS);
        own.finishAndReleaseAll();
        held.close();
        return first.get();
    }

    @Test
    void aCallWhoseTimeIsOverIsNotSent() {
        assertThat(failure(send(0)).executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(channel.<ByteBuf>readOutbound()).isNull();
    }

    @Test
    void aCancelledCallIsForgotten() {
        send(HOUR_NANOS).cancel(false);
        assertThat(connection.callsInFlight()).isZero();
    }

    @Test
    void theEndOfTheConnectionEndsEveryCallAndThoseThatComeAfter() {
        RPCXFuture<byte[]> reply = send(HOUR_NANOS);
        channel.close();
        assertThat(failure(reply).executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(failure(send(HOUR_NANOS)).executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(connection.isUsable()).isFalse();
    }

    @Test
    void whatTheServerSaysOfTheConnectionIsToldToEveryCall() {
        RPCXFuture<byte[]> reply = send(HOUR_NANOS);
        RPCXFuture<byte[]> another = send(HOUR_NANOS);
        channel.writeInbound(Unpooled.wrappedBuffer(
                ClassicWire.reply(0, null, RPCXException.refused(RPCXException.Code.UNAVAILABLE, "no more"))));
        RPCXException why = failure(reply);
        assertThat(why.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(why.getMessage()).contains("no more");
        assertThat(failure(another)).as("made once for all").isSameAs(why);
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aReplyThatIsTooLargeFailsItsCallOnlyAndIsNotKept() throws Exception {
        RPCXFuture<byte[]> large = send(HOUR_NANOS);
        long largeId = id.get();
        RPCXFuture<byte[]> small = send(HOUR_NANOS);
        ByteBuf frame = Unpooled.buffer().writeInt(8 << 20);
        ProtoFields.writeNumber(frame, 1, largeId);
        int rest = (8 << 20) + 4 - frame.readableBytes();
        channel.writeInbound(frame);
        for (int at = 0; at < rest; at += 1 << 20) {
            channel.writeInbound(Unpooled.buffer().writeZero(Math.min(1 << 20, rest - at)));
        }
        assertThat(failure(large).code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(failure(large).executed()).as("of what may be an error").isEqualTo(RPCXException.Executed.MAYBE);
        reply(id.get(), 9);
        assertThat(small.get()).containsExactly(9);
    }

    @Test
    void aReplyForWhichThereIsNoRoomIsPassedOverAndEndsItsCall() throws Exception {
        RPCXFuture<byte[]> reply = send(HOUR_NANOS);
        byte[] frame = ClassicWire.reply(id.get(), Unpooled.buffer().writeZero(2 << 20), null);
        channel.writeInbound(Unpooled.wrappedBuffer(frame, 0, 1 << 20).retain());
        assertThat(ledger.held(Resource.REPLY_BYTES)).as("while it arrives").isGreaterThanOrEqualTo(1 << 20);
        // each takes half of what is left
        List<Account> others = new ArrayList<>();
        List<Charge> taken = new ArrayList<>();
        while (ledger.max(Resource.REPLY_BYTES) - ledger.held(Resource.REPLY_BYTES) > 1 << 20) {
            Account other = Objects.requireNonNull(ledger.open(null));
            others.add(other);
            Charge charge = other.charge(Resource.REPLY_BYTES);
            taken.add(charge);
            while (charge.add(1 << 18)) {}
        }
        channel.writeInbound(Unpooled.wrappedBuffer(frame, 1 << 20, frame.length - (1 << 20)));
        assertThat(failure(reply).code()).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(failure(reply).executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        taken.forEach(Charge::release);
        others.forEach(Account::close);
        assertThat(ledger.held(Resource.REPLY_BYTES)).isZero();
        RPCXFuture<byte[]> next = send(HOUR_NANOS);
        reply(id.get(), 7);
        assertThat(next.get()).containsExactly(7);
    }

    /** The error may say that the call was not executed, but the client has not read that. */
    @Test
    void anErrorForWhichThereIsNoRoomIsNotTakenForAnExecution() {
        Ledger small = new Ledger("small", Map.of(Resource.REPLY_BYTES, 4_096L), Map.of(), Integer.MAX_VALUE);
        Account none = Objects.requireNonNull(small.open(null));
        EmbeddedChannel own = EmbeddedChannel.builder().ticker(clock).build();
        ClassicClientConnection poor =
                new ClassicClientConnection(own, none, Platform.MACHINE, "there", KEEP_ALIVE_NANOS);
        own.pipeline().addLast(poor);
        RPCXFuture<byte[]> reply = poor.send(
                taken -> {
                    id.set(taken);
                    return ClassicRequests.of(taken, "service", "method", List.of(), List.of());
                },
                clock.nanoTime() + HOUR_NANOS);
        own.runPendingTasks();
        RPCXException refused = RPCXException.refused(RPCXException.Code.INVALID, "\u20ac".repeat(2_000));
        own.writeInbound(Unpooled.wrappedBuffer(ClassicWire.reply(id.get(), null, refused)));
        assertThat(LocalFailure.isNoRoom(failure(reply))).isTrue();
        assertThat(failure(reply).executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(own.isOpen()).isTrue();
        own.finishAndReleaseAll();
        none.close();
        assertThat(small.audit()).isEmpty();
    }

    @Test
    void aRequestThatIsTooLargeIsNotSent() {
        RPCXFuture<byte[]> reply = connection.send(
                taken -> ClassicRequests.of(taken, "service", "method", List.of("x"), List.of(new byte[4 << 20])),
                clock.nanoTime() + HOUR_NANOS);
        assertThat(failure(reply).code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(channel.isOpen()).isTrue();
    }

    @Test
    void aReplyThatCannotBeReadEndsTheConnectionAndItsCalls() {
        RPCXFuture<byte[]> reply = send(HOUR_NANOS);
        channel.writeInbound(Unpooled.buffer().writeInt(1).writeByte(0xFF));
        assertThat(failure(reply).code()).isEqualTo(RPCXException.Code.PROTOCOL);
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aRequestThatCannotBeMadeEndsItsFuture() {
        RPCXFuture<byte[]> reply = connection.send(
                taken -> {
                    throw new StackOverflowError("deep");
                },
                clock.nanoTime() + HOUR_NANOS);
        assertThatThrownBy(reply::get).hasRootCauseInstanceOf(StackOverflowError.class);
        assertThat(connection.callsInFlight()).isZero();
    }

    /** There is no memory to copy the request. Charges that stayed would soon use up the room for requests. */
    @Test
    void aRequestThatCannotBeQueuedHoldsNothing() {
        ByteBuf request = new UnpooledHeapByteBuf(UnpooledByteBufAllocator.DEFAULT, 8, 8) {
            @Override
            public ByteBuf readBytes(byte[] to) {
                throw new OutOfMemoryError("said by the test");
            }
        };
        RPCXFuture<byte[]> reply =
                connection.send(taken -> request.writeLong(taken), clock.nanoTime() + TimeUnit.SECONDS.toNanos(1));
        assertThatThrownBy(reply::get).hasRootCauseInstanceOf(OutOfMemoryError.class);
        assertThat(connection.callsInFlight()).isZero();
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
    }

    /** The socket takes nothing. The requests of calls that are over stay charged until the connection ends. */
    @Test
    void requestsThatAreNotTakenAreBoundedAndEndTheConnection() {
        List<ChannelPromise> kept = new ArrayList<>();
        channel.pipeline().addFirst(new ChannelDuplexHandler() {
            @Override
            public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
                kept.add(promise);
            }

            @Override
            public void channelInactive(ChannelHandlerContext ctx) {
                kept.forEach(one -> one.tryFailure(new ClosedChannelException()));
                ctx.fireChannelInactive();
            }
        });
        List<RPCXFuture<byte[]>> all = new ArrayList<>();
        RPCXFuture<byte[]> last;
        do {
            last = connection.send(
                    taken -> ClassicRequests.of(taken, "service", "method", List.of("x"), List.of(new byte[2 << 20])),
                    clock.nanoTime() + TimeUnit.SECONDS.toNanos(5));
            all.add(last);
            channel.runPendingTasks();
        } while (!last.isDone() && all.size() < 100);
        assertThat(failure(last).code()).isEqualTo(RPCXException.Code.OVERLOADED);
        pass(TimeUnit.SECONDS.toNanos(6));
        assertThat(failure(all.get(0)).code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(connection.callsInFlight()).isZero();
        assertThat(account.held(Resource.REQUEST_BYTES)).isGreaterThan((all.size() - 3) * (2L << 20));
        pass(TimeUnit.SECONDS.toNanos(8));
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aReplyThatDoesNotGoOnEndsTheConnection() {
        RPCXFuture<byte[]> reply = send(HOUR_NANOS);
        channel.writeInbound(Unpooled.buffer().writeInt(1000).writeZero(10));
        pass(KEEP_ALIVE_NANOS + TimeUnit.SECONDS.toNanos(3));
        assertThat(failure(reply).executed()).isEqualTo(RPCXException.Executed.MAYBE);
    }

    @Test
    void aConnectionThatIsUsedStaysAndAnIdleOneEnds() {
        for (int minute = 0; minute < 10; minute++) {
            send(HOUR_NANOS);
            reply(id.get(), 1);
            pass(TimeUnit.MINUTES.toNanos(1));
        }
        assertThat(connection.isUsable()).isTrue();
        pass(TimeUnit.MINUTES.toNanos(5));
        assertThat(connection.isUsable()).isFalse();
    }

    // ---- bounds

    @Test
    void callsInFlightAreCounted() {
        send(HOUR_NANOS);
        send(HOUR_NANOS);
        assertThat(connection.callsInFlight()).isEqualTo(2);
        assertThat(ledger.audit()).contains("2 calls under way");
        reply(id.get(), 1);
        assertThat(connection.callsInFlight()).isEqualTo(1);
    }

    @Test
    void theTimeOfACallBeginsWithItAndNotWithItsConnection() {
        pass(TimeUnit.SECONDS.toNanos(3));
        RPCXFuture<byte[]> reply = send(TimeUnit.SECONDS.toNanos(1));
        pass(TimeUnit.MILLISECONDS.toNanos(500));
        assertThat(reply).isNotDone();
        pass(TimeUnit.MILLISECONDS.toNanos(500));
        assertThat(failure(reply).code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
    }

    @Test
    void asManyCallsAreInFlightAsAConnectionTakes() {
        for (int i = 0; i < Wire.MAX_SLOTS; i++) {
            assertThat(send(HOUR_NANOS)).isNotDone();
        }
        assertThat(failure(send(HOUR_NANOS)).code()).isEqualTo(RPCXException.Code.OVERLOADED);
        channel.releaseOutbound();
    }

    private RPCXFuture<byte[]> sendFrame(int bytes) {
        RPCXFuture<byte[]> reply =
                connection.send(taken -> Unpooled.buffer(bytes).writeZero(bytes), clock.nanoTime() + HOUR_NANOS);
        channel.runPendingTasks();
        return reply;
    }

    @Test
    void aRequestIsAtMostAsLargeAsAMessageWithoutItsLength() {
        int most = ClassicFrames.LENGTH_BYTES + Wire.MAX_MESSAGE_BYTES;
        assertThat(sendFrame(most)).isNotDone();
        assertThat(failure(sendFrame(most + 1)).code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        channel.releaseOutbound();
    }

    @Test
    void aCallThatIsCancelledBeforeItIsWrittenIsNotSentAndHoldsNothing() {
        RPCXFuture<byte[]> reply = connection.send(
                taken -> ClassicRequests.of(taken, "service", "method", List.of(), List.of()),
                clock.nanoTime() + HOUR_NANOS);
        assertThat(account.held(Resource.REQUEST_BYTES)).isPositive();
        reply.cancel(false);
        channel.runPendingTasks();
        assertThat(channel.<ByteBuf>readOutbound()).isNull();
        assertThat(account.held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void whyAConnectionHasEndedIsToldToWhoeverComesLater() {
        channel.close();
        assertThat(failure(send(HOUR_NANOS)).getMessage()).contains("closed");
    }

    @Test
    void whatTheServerHasSaidIsToldToWhoeverComesLater() {
        channel.writeInbound(Unpooled.wrappedBuffer(
                ClassicWire.reply(0, null, RPCXException.refused(RPCXException.Code.OVERLOADED, "no more"))));
        assertThat(channel.isOpen()).isFalse();
        RPCXException why = failure(send(HOUR_NANOS));
        assertThat(why.code()).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(why.getMessage()).contains("no more");
    }

    @Test
    void whereTheLoopHasEndedACallFailsAndHoldsNothing() {
        boolean[] ended = new boolean[1];
        EmbeddedChannel other = new EmbeddedChannel() {
            @Override
            public EventLoop eventLoop() {
                return endingAt(super.eventLoop(), ended);
            }
        };
        Account held = Objects.requireNonNull(ledger.open(null));
        ClassicClientConnection late =
                new ClassicClientConnection(other, held, Platform.MACHINE, "there", KEEP_ALIVE_NANOS);
        ended[0] = true;
        RPCXException why = failure(late.send(
                taken -> ClassicRequests.of(taken, "service", "method", List.of(), List.of()),
                late.nanoTime() + HOUR_NANOS));
        assertThat(why.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
        assertThat(why.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(held.held(Resource.REQUEST_BYTES)).isZero();
        assertThat(late.callsInFlight()).isZero();
        ended[0] = false;
        other.close();
        held.close();
    }

    private static EventLoop endingAt(EventLoop loop, boolean[] ended) {
        return (EventLoop) Proxy.newProxyInstance(
                EventLoop.class.getClassLoader(), new Class<?>[] {EventLoop.class}, (proxy, method, arguments) -> {
                    if (ended[0] && method.getName().equals("schedule")) {
                        throw new RejectedExecutionException("the loop has ended");
                    }
                    return method.invoke(loop, arguments);
                });
    }

    // ---- failures that say nothing of the server

    @Test
    void wantOfRoomForARecordIsThisSidesOwn() {
        RPCXFuture<byte[]> reply = send(HOUR_NANOS);
        channel.pipeline().fireUserEventTriggered(SocketQueue.NO_ROOM);
        channel.close();
        RPCXException why = failure(reply);
        assertThat(LocalFailure.is(LocalFailure.Why.NO_ROOM, why)).isTrue();
        assertThat(why.code()).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(why.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(why).hasMessageContaining("no room");
        assertThat(failure(send(HOUR_NANOS))).isInstanceOf(LocalFailure.class);
    }

    @Test
    void wantOfMemoryInThePipelineIsThisSidesOwn() {
        RPCXFuture<byte[]> reply = send(HOUR_NANOS);
        channel.pipeline().fireExceptionCaught(new OutOfMemoryError("of this test"));
        assertThat(LocalFailure.is(LocalFailure.Why.NO_ROOM, failure(reply))).isTrue();
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aCallThatWasNeverSentHasThisSidesReason() {
        channel.close();
        assertThat(LocalFailure.is(LocalFailure.Why.NOT_SENT, failure(send(HOUR_NANOS))))
                .isTrue();
    }

    // ---- a server that reads late

    /** Makes the channel keep in its queue what is written from now on. */
    private void takeNothing() {
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                // nothing is sent
            }
        });
    }

    @Test
    void requestsThatHaveNotBeenSentWhenTheConnectionEndsAreNotExecuted() {
        RPCXFuture<byte[]> sent = send(HOUR_NANOS);
        takeNothing();
        RPCXFuture<byte[]> waits = send(HOUR_NANOS);
        channel.close();
        assertThat(failure(sent).executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(failure(waits).executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(LocalFailure.is(LocalFailure.Why.NOT_SENT, failure(waits))).isTrue();
    }

    /** Over TLS, a close by way of the pipeline would wait for what has been queued before it. */
    @Test
    void nothingIsSentOfACallThatIsToldThatItIsNotExecuted() {
        takeNothing();
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void close(ChannelHandlerContext ctx, ChannelPromise promise) {
                throw new AssertionError("by way of the pipeline");
            }
        });
        RPCXFuture<byte[]> waits = send(HOUR_NANOS);
        List<Boolean> openWhenTold = new ArrayList<>();
        waits.whenComplete((reply, thrown) -> openWhenTold.add(channel.isOpen()));
        channel.writeInbound(Unpooled.buffer().writeInt(-1));
        assertThat(failure(waits).executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(openWhenTold).containsExactly(false);
    }

    @Test
    void aServerThatSendsRepliesIsThereThoughItTakesNothing() {
        send(HOUR_NANOS);
        long first = id.get();
        takeNothing();
        send(HOUR_NANOS);
        for (int i = 0; i < 5; i++) {
            pass(KEEP_ALIVE_NANOS / 2);
            assertThat(channel.isOpen()).isTrue();
            reply(first, i);
        }
        pass(KEEP_ALIVE_NANOS - TimeUnit.SECONDS.toNanos(1));
        assertThat(channel.isOpen()).isTrue();
        pass(TimeUnit.SECONDS.toNanos(4));
        assertThat(channel.isOpen()).isFalse();
    }

    /** The empty replies that the server sends belong to no call. */
    @Test
    void aServerThatSendsSomethingNowAndThenAndTakesNothingIsNotWaitedForForEver() {
        send(HOUR_NANOS);
        takeNothing();
        send(HOUR_NANOS);
        for (int i = 0; i < 7; i++) {
            pass(KEEP_ALIVE_NANOS / 2);
            assertThat(channel.isOpen()).isTrue();
            channel.writeInbound(Unpooled.buffer().writeInt(0));
        }
        pass(KEEP_ALIVE_NANOS / 2 + TimeUnit.SECONDS.toNanos(4));
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void requestsThatWaitForTheirServerAreChargedAsRequestsAlone() {
        Ledger small = new Ledger("small", Map.of(Resource.QUEUE_BYTES, 64L * 1024), Map.of(), Integer.MAX_VALUE);
        Account held = Objects.requireNonNull(small.open(null));
        EmbeddedChannel other = EmbeddedChannel.builder().ticker(clock).build();
        other.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                // nothing is sent
            }
        });
        ClassicClientConnection burst =
                new ClassicClientConnection(other, held, Platform.MACHINE, "there", KEEP_ALIVE_NANOS);
        other.pipeline().addLast(burst);
        for (int i = 0; i < 10; i++) {
            burst.send(
                    taken -> ClassicRequests.of(taken, "service", "method", List.of("x"), List.of(new byte[50_000])),
                    clock.nanoTime() + HOUR_NANOS);
            other.runPendingTasks();
        }
        assertThat(other.isOpen()).isTrue();
        assertThat(burst.callsInFlight()).isEqualTo(10);
        assertThat(held.held(Resource.REQUEST_BYTES)).isGreaterThan(500_000);
        other.unsafe().close(other.newPromise());
        other.runPendingTasks();
        held.close();
        assertThat(small.audit()).isEmpty();
    }

    /** Small requests take more memory for their places in the queue than for their bytes. */
    @Test
    void aRequestThatWaitsIsChargedForItsPlaceInTheQueueToo() {
        takeNothing();
        for (int i = 0; i < 100; i++) {
            send(HOUR_NANOS).cancel(false);
        }
        assertThat(account.held(Resource.REQUEST_BYTES))
                .isGreaterThan(channel.unsafe().outboundBuffer().totalPendingWriteBytes() + 100 * 128);
    }
}
