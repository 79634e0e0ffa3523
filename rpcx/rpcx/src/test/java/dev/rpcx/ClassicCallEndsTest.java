package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.call.BoundFuture;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.ClassicServerCall;
import dev.rpcx.internal.server.ClassicServerConnection;
import dev.rpcx.internal.server.LostCallsTest;
import dev.rpcx.internal.server.ServerPlatform;
import dev.rpcx.internal.server.Stages;
import dev.rpcx.internal.server.Threads;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.MethodDictionary;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.Ticker;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.AbstractCollection;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests how calls of the classic wire end at a server, without sockets and threads. The test decides when a handler
 * runs, whether the connection takes the test's thread for its event loop, what time it is, and what fails.
 */
@Timeout(60)
class ClassicCallEndsTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    /** A reply of up to this number of bytes is not charged. */
    private static final int COUNTED_BYTES = 4 * 1024;

    @RPCXServer("ends")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();
        final List<String> told = new ArrayList<>();
        int begun;
        Runnable within = () -> {};

        private CompletionStage<String> wait(CompletableFuture<String> result) {
            waiting.add(result);
            return result;
        }

        private void begin() {
            begun++;
            within.run();
        }

        @Method
        String echo(String text) {
            begin();
            return text;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here(String text) {
            begin();
            return text;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled(String text) {
            begin();
            return text;
        }

        @Method
        CompletionStage<String> later() {
            begin();
            return wait(new CompletableFuture<>());
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> laterHere() {
            begin();
            return wait(new CompletableFuture<>());
        }

        /** Registers a callback, which runs if nobody waits for the call any more. */
        @Method
        CompletionStage<String> asking() {
            CallContext.current().orElseThrow().onCancel(() -> told.add("cancelled"));
            return later();
        }

        /** Returns a future like that of a call which a handler makes for its own call. */
        @Method
        CompletionStage<String> made() {
            CallFuture<String> call = new CallFuture<>();
            begin();
            return wait(call);
        }

        /** Returns a stage of a stage, which no codec takes. */
        @Method
        @SuppressWarnings({"unchecked", "rawtypes"})
        CompletionStage<String> nested() {
            return (CompletionStage) CompletableFuture.completedFuture(CompletableFuture.completedFuture("a"));
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> neverHere() {
            return new BoundFuture<>() {
                @Override
                public void onEnd(BiConsumer<? super String, ? super Throwable> told) {
                    begin();
                    throw new IllegalStateException("a stage that takes nobody");
                }
            };
        }
    }

    private final class HandThreads implements ServerPlatform {
        @Override
        public Loops loops(int count, String name, boolean inProcess) {
            return hand.loops(count, name, inProcess);
        }

        @Override
        public Threads threads(int poolSize) {
            Threads threads = hand.threads(poolSize);
            return new Threads(poolSize) {
                @Override
                public void run(EventLoop on, RunOn.Place place, Runnable handler) {
                    if (isExhausted) {
                        hand.ticker.failAt(1);
                        if (hasNoThreads) {
                            throw new RejectedExecutionException("of this test");
                        }
                        throw new OutOfMemoryError("no thread, in this test");
                    }
                    threads.run(on, place, handler);
                }
            };
        }

        @Override
        public Ticker ticker() {
            return hand.ticker();
        }

        @Override
        public RandomGenerator random() {
            return hand.random();
        }
    }

    private final Service service = new Service();
    private final HandPlatform hand = new HandPlatform();

    /** If this is set, there is no memory for a thread, nor for the call's next step. */
    private boolean isExhausted;

    /** If this is set too, there are no threads any more. */
    private boolean hasNoThreads;

    private final List<Throwable> reported = new ArrayList<>();
    private final Thread.UncaughtExceptionHandler before =
            Thread.currentThread().getUncaughtExceptionHandler();
    private Server server;
    private HandChannel channel;
    private HandChannel.Loop loop;
    private Account account;
    private ClassicServerConnection connection;
    private final List<HandChannel> channels = new ArrayList<>();
    private final List<Account> accounts = new ArrayList<>();
    private final ByteBuf said = Unpooled.buffer();

    @BeforeEach
    void watchThisThread() {
        // a test that has failed on this thread must not affect this one
        CurrentCall.set(null);
        Thread.interrupted();
        Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> reported.add(thrown));
    }

    @AfterEach
    void nothingIsLeft() {
        Thread.currentThread().setUncaughtExceptionHandler(before);
        hand.ticker.failAt(0);
        for (HandChannel each : channels) {
            each.loop.fails = false;
            each.loop.hasEnded = false;
            each.finishAndReleaseAll();
        }
        service.waiting.forEach(result -> result.complete("over"));
        for (HandChannel each : channels) {
            hand.handleAll(each);
            each.runPendingTasks();
            assertThat(each.runScheduledPendingTasks()).as("no timer is left").isEqualTo(-1);
        }
        accounts.forEach(Account::close);
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(CurrentCall.get()).isNull();
        assertThat(Thread.interrupted()).isFalse();
    }

    private Server.Builder serving() {
        return Server.builder(RegistryServer.registry(service))
                .platform(new HandThreads())
                .classic(true)
                .maxRunning(64)
                .keepAlive(Duration.ofMinutes(1));
    }

    private void serve(Interceptor... interceptors) {
        Server.Builder builder = serving();
        for (Interceptor each : interceptors) {
            builder.interceptor(each);
        }
        serve(builder, null);
    }

    /** Starts the server, and makes one connection from this address. */
    private void serve(Server.Builder builder, @Nullable SocketAddress address) {
        server = builder.build().start();
        connect(address);
    }

    /** Makes a new connection, which the test uses from now on. */
    private void connect(@Nullable SocketAddress address) {
        channel = new HandChannel(hand.ticker);
        loop = channel.loop;
        account = Objects.requireNonNull(server.core().ledger().open(address));
        connection = new ClassicServerConnection(channel, server.core(), account);
        channel.pipeline().addLast(connection);
        channels.add(channel);
        accounts.add(account);
    }

    private static byte[] text(String text) {
        return ByteBufUtil.getBytes(RawPeer.text(text));
    }

    private void call(long id, String method, String... values) {
        List<String> types = new ArrayList<>();
        List<byte[]> sent = new ArrayList<>();
        for (String value : values) {
            types.add("any");
            sent.add(text(value));
        }
        channel.writeInbound(ClassicRequests.of(id, "ends", method, types, sent));
    }

    /** Runs one handler that waits, or callbacks of a call's end that wait. */
    private void handle() {
        assertThat(hand.handle(0)).as("a handler waits").isTrue();
        channel.runPendingTasks();
    }

    private boolean hasReply() {
        for (ByteBuf chunk = channel.readOutbound(); chunk != null; chunk = channel.readOutbound()) {
            said.writeBytes(chunk);
            chunk.release();
        }
        return said.isReadable();
    }

    private ClassicWire.Reply reply() {
        assertThat(hasReply()).as("a reply").isTrue();
        return ClassicWire.readReply(said.readSlice(said.readInt()));
    }

    private void expectValue(long id, String value) {
        ClassicWire.Reply reply = reply();
        assertThat(reply.error()).isNull();
        assertThat(reply.id()).isEqualTo(id);
        assertThat(reply.result()).isEqualTo(text(value));
    }

    private void expectError(long id, RPCXException.Code code, RPCXException.Executed executed, String text) {
        ClassicWire.Reply reply = reply();
        RPCXException error = Objects.requireNonNull(reply.error());
        assertThat(error.code()).isEqualTo(code);
        assertThat(error.executed()).isEqualTo(executed);
        assertThat(error).hasMessageContaining(text);
        assertThat(reply.id()).isEqualTo(id);
    }

    private void expectLost(long id) {
        expectError(id, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.MAYBE, "the server's thread failed");
    }

    private void expectLate(long id, RPCXException.Executed executed) {
        expectError(id, RPCXException.Code.DEADLINE_EXCEEDED, executed, "60 s");
    }

    /** Expects one failure of this type that was reported to the exception handler of this thread. */
    private void expectReported(Class<? extends Throwable> type) {
        assertThat(reported).hasSize(1).first().isInstanceOf(type);
        reported.clear();
    }

    private void pass(long nanos) {
        for (long left = nanos; left > 0; left -= SECOND / 2) {
            hand.ticker.advance(Math.min(left, SECOND / 2), TimeUnit.NANOSECONDS);
            channel.runScheduledPendingTasks();
        }
        channel.runPendingTasks();
    }

    /** Lets the client disconnect. The channel's own close would end the loop's timers too. */
    private void disconnect() {
        channel.pipeline().fireChannelInactive();
        channel.runPendingTasks();
    }

    private void elsewhere(Runnable task) {
        loop.isElsewhere = true;
        try {
            task.run();
        } finally {
            loop.isElsewhere = false;
        }
    }

    /** The next reading of the clock fails for want of memory. After it, there is memory again. */
    private void failOnce() {
        hand.ticker.failAt(1);
    }

    private long calls() {
        return account.held(Resource.CALLS);
    }

    private long timers() {
        return account.held(Resource.TIMERS);
    }

    private AdmissionLimit limitOf(String method) {
        return Objects.requireNonNull(Objects.requireNonNull(server.core().method(MethodDictionary.key("ends", method)))
                .admission());
    }

    /** Takes all that the connection may have of this, as another owner would, and returns how much that is. */
    private long takeAll(Resource kind) {
        long taken = 0;
        for (long step = 1L << 40; step > 0; step /= 2) {
            while (account.tryCharge(kind, step)) {
                taken += step;
            }
        }
        return taken;
    }

    /** The timer for the first look at the connection cannot be set. */
    @Test
    void aConnectionThatCannotBeginIsClosed() {
        serve();
        HandChannel other = new HandChannel(hand.ticker);
        Account its = Objects.requireNonNull(server.core().ledger().open(null));
        channels.add(other);
        accounts.add(its);
        other.loop.failingTimers = 1;
        other.pipeline().addLast(new ClassicServerConnection(other, server.core(), its));
        assertThatThrownBy(other::checkException).hasRootCauseInstanceOf(OutOfMemoryError.class);
        assertThat(other.isOpen()).isFalse();
        assertThat(its.held(Resource.TIMERS)).isZero();
    }

    /** A future may be waited for much longer than the frame is needed. */
    @Test
    void theFrameOfARequestIsHeldUntilItsArgumentsHaveBeenRead() {
        serve();
        call(1, "laterHere");
        call(2, "later");
        assertThat(connection.callsUnderWay())
                .extracting(ClassicServerCall::holdsRequest)
                .containsExactly(false, true);
        handle();
        assertThat(connection.callsUnderWay())
                .extracting(ClassicServerCall::holdsRequest)
                .containsExactly(false, false);
    }

    // ---- calls that are lost

    @Test
    void aCallWhoseThreadFailsOverItsEndIsEndedByItsConnectionAtOnce() {
        serve();
        service.within = this::failOnce;
        call(1, "echo", "a");
        handle();
        expectReported(OutOfMemoryError.class);
        expectLost(1);
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
        assertThat(connection.isBusy()).isFalse();
    }

    @Test
    void aCallWhoseThreadFailsBeforeItsHandlerIsEndedToo() {
        serve();
        call(1, "echo", "a");
        failOnce();
        handle();
        expectReported(OutOfMemoryError.class);
        expectLost(1);
        assertThat(service.begun).isZero();
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
    }

    @Test
    void aCallWhoseResultIsLostIsEndedToo() {
        serve();
        call(1, "later");
        handle();
        failOnce();
        service.waiting.get(0).complete("a");
        channel.runPendingTasks();
        expectReported(OutOfMemoryError.class);
        expectLost(1);
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
    }

    @Test
    void callsThatAreNotLostGoOn() {
        serve();
        call(1, "later");
        handle();
        call(2, "echo", "b");
        service.within = () -> {
            service.within = this::failOnce;
            call(3, "echo", "c");
            call(4, "echo", "d");
            // the first of the two waiting handlers is that of call 3
            assertThat(hand.handle(0)).isTrue();
            CurrentCall.set(null);
            channel.runPendingTasks();
            service.within = () -> {};
        };
        handle();
        expectLost(3);
        expectReported(OutOfMemoryError.class);
        expectValue(2, "b");
        assertThat(hasReply()).isFalse();
        handle();
        expectValue(4, "d");
        service.waiting.get(0).complete("a");
        expectValue(1, "a");
    }

    @Test
    void aLossOfWhichTheLoopCannotBeToldIsFoundAtTheNextLook() {
        serve();
        service.within = () -> {
            failOnce();
            loop.fails = true;
        };
        call(1, "echo", "a");
        assertThat(hand.handle(0)).isTrue();
        loop.fails = false;
        expectReported(OutOfMemoryError.class);
        channel.runPendingTasks();
        assertThat(hasReply()).isFalse();
        pass(3 * SECOND);
        expectLost(1);
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aLossBehindAConnectionIsFoundFiveSecondsAfterItsEnd() {
        serve();
        service.within = () -> {
            disconnect();
            failOnce();
            loop.fails = true;
        };
        call(1, "echo", "a");
        assertThat(hand.handle(0)).isTrue();
        loop.fails = false;
        expectReported(OutOfMemoryError.class);
        pass(5 * SECOND - 1);
        assertThat(server.core().running()).isEqualTo(1);
        assertThat(calls()).isEqualTo(1);
        pass(1);
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
        assertThat(timers()).isZero();
        assertThat(hasReply()).isFalse();
    }

    /** The first timer cannot be set. It belongs to one of several calls. */
    @Test
    void allCallsAreGivenUpBehindAConnectionThatEndsWithoutMemory() {
        serve();
        server.core().register(channel, connection);
        call(1, "asking");
        call(2, "asking");
        handle();
        handle();
        loop.failingTimers = 1;
        disconnect();
        hand.handleAll(channel);
        expectReported(OutOfMemoryError.class);
        assertThat(service.told).containsExactly("cancelled", "cancelled");
        pass(SECOND);
        assertThat(calls()).isZero();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().served()).isZero();
        assertThat(timers()).isZero();
    }

    /** A table that cannot be copied while {@code isFull} is set. Without {@code isWalked}, it cannot be walked. */
    private static final class FullTable extends LinkedHashMap<Long, ClassicServerCall> {
        private static final long serialVersionUID = 1;
        private boolean isFull;
        private boolean isWalked;

        @Override
        public Collection<ClassicServerCall> values() {
            Collection<ClassicServerCall> all = super.values();
            if (!isFull) {
                return all;
            }
            return new AbstractCollection<>() {
                @Override
                public Iterator<ClassicServerCall> iterator() {
                    if (isWalked) {
                        return all.iterator();
                    }
                    throw new OutOfMemoryError("of this test");
                }

                @Override
                public Object[] toArray() {
                    throw new OutOfMemoryError("of this test");
                }

                @Override
                public int size() {
                    return all.size();
                }
            };
        }
    }

    /** If there is no memory to walk the table, the calls have to wait for the next look. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void callsThatCannotBeCopiedAtTheEndOfTheirConnectionAreGivenUpAllTheSame(boolean isWalked) throws Exception {
        serve();
        server.core().register(channel, connection);
        EmbeddedChannel timing = EmbeddedChannel.builder().ticker(hand.ticker).build();
        loop.timers = timing.eventLoop();
        FullTable table = new FullTable();
        Field calls = ClassicServerConnection.class.getDeclaredField("calls");
        calls.setAccessible(true);
        calls.set(connection, table);
        call(1, "asking");
        call(2, "asking");
        handle();
        handle();
        table.isFull = true;
        table.isWalked = isWalked;
        disconnect();
        table.isFull = false;
        hand.handleAll(channel);
        assertThat(calls()).isEqualTo(2);
        assertThat(service.told).hasSize(isWalked ? 2 : 0);
        if (!isWalked) {
            hand.ticker.advance(5, TimeUnit.SECONDS);
            timing.runScheduledPendingTasks();
            hand.handleAll(channel);
        }
        assertThat(service.told).containsExactly("cancelled", "cancelled");
        hand.ticker.advance(1, TimeUnit.SECONDS);
        timing.runScheduledPendingTasks();
        assertThat(calls()).isZero();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().served()).isZero();
        assertThat(timers()).isZero();
    }

    @Test
    void callsAreGivenUpBehindTheirConnectionAlsoWhereALookAtThemFails() {
        serve();
        call(1, "later");
        handle();
        service.within = () -> {
            disconnect();
            pass(2 * SECOND / 5);
        };
        call(2, "later");
        handle();
        hand.handleAll(channel);
        loop.failingTimers = 1;
        pass(3 * SECOND / 5);
        expectReported(OutOfMemoryError.class);
        assertThat(calls()).isEqualTo(1);
        pass(2 * SECOND / 5);
        assertThat(calls()).isZero();
        assertThat(server.core().running()).isZero();
        assertThat(timers()).isZero();
    }

    @Test
    void aFutureThatIsBroughtToNobodyIsGivenUpAlsoWhereNoTimerCanBeSet() {
        serve();
        service.within = () -> {
            disconnect();
            pass(3 * SECOND);
            loop.failingTimers = 1;
        };
        call(1, "later");
        try {
            handle();
        } catch (OutOfMemoryError ofThisTest) {
            reported.add(ofThisTest);
        }
        expectReported(OutOfMemoryError.class);
        pass(SECOND);
        hand.handleAll(channel);
        assertThat(calls()).isZero();
        assertThat(timers()).isZero();
    }

    @Test
    void aConnectionWhoseCallsCannotBeLookedAtEnds() {
        serve();
        call(1, "later");
        handle();
        pass(SECOND);
        call(2, "later");
        handle();
        loop.failingTimers = 1;
        pass(59 * SECOND);
        expectReported(OutOfMemoryError.class);
        assertThat(channel.isOpen()).isFalse();
        hand.handleAll(channel);
        pass(SECOND);
        assertThat(calls()).isZero();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aServerThatStopsFindsALossAtOnce() {
        serve();
        service.within = () -> {
            failOnce();
            loop.fails = true;
        };
        call(1, "echo", "a");
        assertThat(hand.handle(0)).isTrue();
        loop.fails = false;
        expectReported(OutOfMemoryError.class);
        connection.cutOff();
        channel.runPendingTasks();
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
    }

    /** The result comes within its second, but the thread that brings it fails. */
    @Test
    void aResultThatIsLostWhenItsCallerIsGoneIsFoundToo() {
        serve();
        call(1, "later");
        handle();
        disconnect();
        hand.handleAll(channel);
        failOnce();
        service.waiting.get(0).complete("a");
        channel.runPendingTasks();
        expectReported(OutOfMemoryError.class);
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
        assertThat(timers()).isZero();
    }

    /** The stage that an interceptor has returned brings another one, and the connection cannot learn of that. */
    @Test
    void aCallIsLostAlsoWhereItsStageBringsAnother() {
        CompletableFuture<Object> first = new CompletableFuture<>();
        serve((call, next) -> first);
        call(1, "echo", "a");
        handle();
        disconnect();
        loop.fails = true;
        first.complete(new CompletableFuture<>());
        loop.fails = false;
        expectReported(OutOfMemoryError.class);
        hand.handleAll(channel);
        pass(SECOND);
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
    }

    @Test
    void whoSeesAHandlersStageIsToldThatItsCallIsLost() {
        CompletableFuture<Object> mine = new CompletableFuture<>();
        serve((call, next) -> {
            watch(next.proceed(call));
            return mine;
        });
        call(1, "later");
        handle();
        failOnce();
        mine.complete("a");
        channel.runPendingTasks();
        expectReported(OutOfMemoryError.class);
        expectLost(1);
        hand.handleAll(channel);
        assertThat(service.told).containsExactly("the call is over");
    }

    private void watch(@Nullable Object stage) {
        ((CompletionStage<?>) Objects.requireNonNull(stage))
                .whenComplete((value, thrown) ->
                        service.told.add(thrown == null ? String.valueOf(value) : String.valueOf(thrown.getMessage())));
    }

    @Test
    void whoWasToldOfAnEndAndCannotSaySoIsFoundAtTheNextLook() {
        serve();
        call(1, "asking");
        handle();
        disconnect();
        service.waiting.get(0).complete("a");
        channel.runPendingTasks();
        assertThat(calls()).as("somebody is about to be told").isEqualTo(1);
        loop.fails = true;
        assertThat(hand.handle(0)).isTrue();
        loop.fails = false;
        expectReported(OutOfMemoryError.class);
        assertThat(service.told).containsExactly("cancelled");
        pass(SECOND - 1);
        assertThat(calls()).isEqualTo(1);
        pass(1);
        assertThat(calls()).isZero();
        assertThat(timers()).isZero();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallForWhichThereIsNeitherAThreadNorARefusalEndsWithItsConnection(boolean isClosing) {
        serve();
        hasNoThreads = isClosing;
        isExhausted = true;
        call(1, "echo", "a");
        isExhausted = false;
        channel.runPendingTasks();
        assertThat(channel.isOpen()).isFalse();
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
    }

    /** The failure is reported to the exception handler of the thread, and the event loop goes on reading. */
    @Test
    void aResultThatIsLostOnTheEventLoopDoesNotEndTheConnection() {
        serve();
        service.within = this::failOnce;
        call(1, "neverHere");
        expectReported(OutOfMemoryError.class);
        assertThat(channel.isOpen()).isTrue();
        service.within = () -> {};
        call(2, "here", "b");
        expectValue(2, "b");
    }

    /** The memory ends after the call has been taken from its stage, while the interceptors' steps are looked at. */
    @Test
    void aCallWhoseGivingUpFailsHalfWayIsOver() {
        serve((call, next) -> next.proceed(call));
        service.within = () -> LostCallsTest.FailingSteps.of(1);
        call(1, "later");
        handle();
        disconnect();
        hand.handleAll(channel);
        pass(SECOND);
        expectReported(OutOfMemoryError.class);
        assertThat(calls()).isZero();
        assertThat(server.core().running()).isZero();
        assertThat(timers()).isZero();
        assertThat(account.held(Resource.OBJECT_BYTES))
                .as("for as long as the future is open")
                .isPositive();
        service.waiting.get(0).complete("late");
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
    }

    /** The memory ends again when the first of the lost calls is ended. */
    @Test
    void callsThatAreLostAreFoundAlsoWhereALookAtThemFails() {
        serve((call, next) -> next.proceed(call));
        service.within = () -> LostCallsTest.FailingSteps.of(1);
        call(1, "later");
        handle();
        service.within = () -> {};
        call(2, "later");
        handle();
        loop.fails = true;
        for (CompletableFuture<String> each : service.waiting) {
            failOnce();
            each.complete("a");
            expectReported(OutOfMemoryError.class);
        }
        loop.fails = false;
        disconnect();
        hand.handleAll(channel);
        pass(5 * SECOND);
        expectReported(OutOfMemoryError.class);
        assertThat(calls()).as("that one, and the other unless it came first").isPositive();
        pass(5 * SECOND);
        hand.handleAll(channel);
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
        assertThat(timers()).isZero();
    }

    // ---- callers that are gone

    /** The memory ends when the task that cancels the call is given to the event loop. */
    @Test
    void aFutureIsGivenUpAlsoWhereItsCallCannotBeCancelled() {
        serve();
        call(1, "laterHere");
        loop.failingTasks = 1;
        disconnect();
        assertThat(loop.failingTasks).isZero();
        expectReported(OutOfMemoryError.class);
        assertThat(connection.abandonedCalls()).isEqualTo(1);
        pass(SECOND);
        assertThat(calls()).isZero();
        assertThat(server.core().running()).isZero();
        assertThat(Stages.waiting(service.waiting.get(0))).isZero();
    }

    @Test
    void whoWantsToKnowIsToldAlsoWhereItsHandlerCannotBeInterrupted() throws Exception {
        serve();
        service.within = this::disconnect;
        call(1, "asking");
        Thread handler = new UninterruptibleThread(this::handle, reported);
        handler.start();
        handler.join();
        hand.handleAll(channel);
        expectReported(OutOfMemoryError.class);
        assertThat(service.told).containsExactly("cancelled");
    }

    @Test
    void aHandlerThatHasNotBegunIsNotCountedFromTheEndOfItsCallerOn() {
        serve();
        call(1, "echo", "a");
        assertThat(server.core().running()).isEqualTo(1);
        disconnect();
        assertThat(server.core().running()).isZero();
        assertThat(connection.abandonedCalls()).isEqualTo(1);
        handle();
        assertThat(service.begun).isZero();
        assertThat(calls()).isZero();
        assertThat(connection.abandonedCalls()).isZero();
    }

    @Test
    void eachFutureHasASecondFromWhenNobodyWaitsForIt() {
        serve();
        call(1, "later");
        handle();
        service.within = () -> {
            disconnect();
            pass(2 * SECOND / 5);
        };
        call(2, "later");
        handle();
        assertThat(connection.abandonedCalls()).isEqualTo(2);
        hand.handleAll(channel);
        pass(3 * SECOND / 5 - 1);
        assertThat(server.core().running()).isEqualTo(2);
        pass(1);
        assertThat(server.core().running()).isEqualTo(1);
        assertThat(calls()).isEqualTo(1);
        pass(2 * SECOND / 5 - 1);
        assertThat(server.core().running()).isEqualTo(1);
        assertThat(timers()).isEqualTo(1);
        pass(1);
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
        assertThat(timers()).isZero();
    }

    @Test
    void aFutureThatIsBroughtLongAfterItsCallerHasGoneHasItsSecondToo() {
        serve();
        service.within = () -> {
            disconnect();
            pass(3 * SECOND);
        };
        call(1, "later");
        handle();
        pass(SECOND - 1);
        assertThat(server.core().running()).isEqualTo(1);
        pass(1);
        assertThat(server.core().running()).isZero();
        hand.handleAll(channel);
        assertThat(calls()).isZero();
        assertThat(timers()).isZero();
    }

    @Test
    void oneThatIsRunningAndOneThatIsAwaitedAreBothLeft() {
        serve();
        call(1, "later");
        handle();
        List<Integer> left = new ArrayList<>();
        service.within = () -> {
            disconnect();
            left.add(connection.abandonedCalls());
        };
        call(2, "echo", "b");
        handle();
        assertThat(left).containsExactly(2);
        hand.handleAll(channel);
        assertThat(connection.abandonedCalls()).isEqualTo(1);
        service.waiting.get(0).complete("a");
        assertThat(connection.abandonedCalls()).isZero();
        assertThat(timers()).as("nothing is waited for").isZero();
    }

    /** The result of one call has reached another thread, but not yet the event loop. */
    @Test
    void aFutureThatEndsInTheLastMomentOfItsSecondEndsItsCallOnce() {
        serve();
        call(1, "later");
        call(2, "later");
        handle();
        handle();
        disconnect();
        hand.handleAll(channel);
        elsewhere(() -> service.waiting.get(0).complete("a"));
        hand.ticker.advance(SECOND, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
        assertThat(calls()).as("of the one that has not been heard").isEqualTo(1);
        assertThat(connection.abandonedCalls()).isEqualTo(1);
        channel.runPendingTasks();
        assertThat(calls()).isZero();
        assertThat(connection.abandonedCalls()).isZero();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aCallThatWasMadeForTheCallerIsCancelledWithIt() {
        serve();
        call(1, "made");
        handle();
        disconnect();
        assertThat(service.waiting.get(0)).as("not on the event loop").isNotDone();
        handle();
        assertThat(service.waiting.get(0)).isCancelled();
        assertThat(reported).isEmpty();
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
    }

    @Test
    void aCallThatWasMadeForACallerWhoIsGoneByThenIsCancelledToo() {
        serve();
        service.within = this::disconnect;
        call(1, "made");
        handle();
        assertThat(service.waiting.get(0)).isCancelled();
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
    }

    @Test
    void whatWaitsForAThreadOfThePoolIsWithdrawnWithItsCaller() {
        serve(serving().poolSize(1), null);
        call(1, "pooled", "a");
        call(2, "pooled", "b");
        disconnect();
        assertThat(calls()).as("of the one to which a thread will come").isEqualTo(1);
        assertThat(server.core().running()).isZero();
        assertThat(connection.abandonedCalls()).isEqualTo(1);
        handle();
        assertThat(hand.handle(0)).as("another").isFalse();
        assertThat(service.begun).isZero();
        assertThat(calls()).isZero();
    }

    @Test
    void whoSeesAHandlersStageIsToldThatItsCallIsGivenUp() {
        serve((call, next) -> {
            Object stage = next.proceed(call);
            watch(stage);
            return stage;
        });
        call(1, "later");
        handle();
        disconnect();
        hand.handleAll(channel);
        pass(SECOND - 1);
        assertThat(service.told).isEmpty();
        pass(1);
        assertThat(server.core().running()).isZero();
        assertThat(service.told).as("on the event loop").isEmpty();
        hand.handleAll(channel);
        assertThat(service.told).containsExactly("the call is over");
        assertThat(calls()).isZero();
    }

    /** A connection may run 3 of 4 handlers. A handler that goes on after the end of its call is in this share. */
    @Test
    void handlersThatGoOnWhenTheirTimeIsOverAreInTheShareOfTheirConnection() {
        serve(serving().maxRunning(AdmissionLimit.MIN_LIMIT), null);
        for (int i = 1; i <= 3; i++) {
            call(i, "later");
            handle();
        }
        pass(60 * SECOND);
        for (int i = 1; i <= 3; i++) {
            assertThat(Objects.requireNonNull(reply().error()).code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        }
        call(4, "echo", "a");
        expectError(4, RPCXException.Code.OVERLOADED, RPCXException.Executed.NOT_EXECUTED, "more to do");
        pass(SECOND);
        call(4, "echo", "a");
        hand.handleAll(channel);
        expectValue(4, "a");
    }

    @Test
    void handlersThatHaveNotBegunInTheirTimeAreInNoShare() {
        serve(serving().maxRunning(AdmissionLimit.MIN_LIMIT), null);
        for (int i = 1; i <= 3; i++) {
            call(i, "echo", "a");
        }
        pass(60 * SECOND);
        for (int i = 1; i <= 3; i++) {
            assertThat(Objects.requireNonNull(reply().error()).executed())
                    .isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        }
        assertThat(calls()).isEqualTo(3);
        for (int i = 4; i <= 6; i++) {
            call(i, "echo", "a");
        }
        assertThat(hasReply()).as("a refusal").isFalse();
        assertThat(server.core().running()).isEqualTo(3);
        hand.handleAll(channel);
        for (int i = 4; i <= 6; i++) {
            expectValue(i, "a");
        }
        assertThat(service.begun).isEqualTo(3);
    }

    /** A new connection from the same address has these handlers in its share. */
    @Test
    void handlersThatGoOnBehindTheirConnectionAreInTheShareOfItsAddress() {
        SocketAddress same = new InetSocketAddress("192.0.2.1", 1);
        serve(serving().maxRunning(AdmissionLimit.MIN_LIMIT), same);
        for (int i = 1; i <= 3; i++) {
            call(i, "later");
            handle();
        }
        disconnect();
        assertThat(account.held(Resource.ORPHANS)).isEqualTo(3);
        connect(same);
        call(1, "echo", "a");
        expectError(1, RPCXException.Code.OVERLOADED, RPCXException.Executed.NOT_EXECUTED, "more to do");
        connect(new InetSocketAddress("192.0.2.2", 1));
        call(1, "echo", "a");
        hand.handleAll(channel);
        expectValue(1, "a");
    }

    @Test
    void threadsThatGoOnBehindTheirConnectionAreInTheShareOfItsAddress() {
        SocketAddress same = new InetSocketAddress("192.0.2.1", 1);
        serve(serving().poolSize(3), same);
        call(1, "pooled", "a");
        call(2, "pooled", "a");
        disconnect();
        connect(same);
        call(3, "pooled", "again");
        assertThat(server.core().running()).isEqualTo(1);
        connect(new InetSocketAddress("192.0.2.2", 1));
        call(4, "pooled", "other");
        // the first two tasks are those of the calls whose client is gone
        assertThat(hand.handle(2)).as("the third thread").isTrue();
        expectValue(4, "other");
        channels.get(1).runPendingTasks();
        assertThat(channels.get(1).outboundMessages()).as("it waits for them").isEmpty();
        hand.handleAll(channel);
        channels.get(1).runPendingTasks();
        assertThat(channels.get(1).outboundMessages()).isNotEmpty();
    }

    // ---- time

    @Test
    void eachCallEndsAtItsOwnTimeToTheNanosecond() {
        serve();
        call(1, "laterHere");
        pass(10 * SECOND);
        call(2, "laterHere");
        assertThat(timers()).as("of looks, and of the first call").isEqualTo(2);
        pass(50 * SECOND - 1);
        assertThat(hasReply()).isFalse();
        pass(1);
        expectLate(1, RPCXException.Executed.MAYBE);
        pass(10 * SECOND - 1);
        assertThat(hasReply()).isFalse();
        pass(1);
        expectLate(2, RPCXException.Executed.MAYBE);
        pass(SECOND);
        assertThat(calls()).isZero();
        assertThat(timers()).as("of looks").isEqualTo(1);
    }

    /** The connection is looked at half a second before that time and two seconds after it. */
    @Test
    void aConnectionThatDrainsEndsAtTheTimeOfItsLastCall() {
        serve();
        pass(SECOND / 2);
        call(1, "laterHere");
        connection.drain();
        channel.runPendingTasks();
        pass(60 * SECOND - 1);
        assertThat(hasReply()).isFalse();
        assertThat(channel.isOpen()).isTrue();
        pass(1);
        expectLate(1, RPCXException.Executed.MAYBE);
        assertThat(channel.isOpen()).isFalse();
        expectError(0, RPCXException.Code.UNAVAILABLE, RPCXException.Executed.NOT_EXECUTED, "closing");
    }

    @Test
    void aCallWhoseInterceptorsLetNoHandlerBeginInItsTimeHasNotBeenExecuted() {
        serve((call, next) -> service.wait(new CompletableFuture<>()));
        call(1, "echo", "a");
        handle();
        pass(60 * SECOND);
        expectLate(1, RPCXException.Executed.NOT_EXECUTED);
    }

    @Test
    void aCallWhoseInterceptorsHaveLetTheHandlerBeginMayHaveBeen() {
        serve((call, next) -> {
            next.proceed(call);
            return service.wait(new CompletableFuture<>());
        });
        call(1, "echo", "a");
        handle();
        pass(60 * SECOND);
        expectLate(1, RPCXException.Executed.MAYBE);
    }

    // ---- interceptors

    @Test
    void aStageThatAnInterceptorsStageBringsIsWaitedFor() {
        CompletableFuture<Object> first = new CompletableFuture<>();
        serve((call, next) -> first);
        call(1, "echo", "a");
        handle();
        CompletableFuture<String> second = new CompletableFuture<>();
        first.complete(second);
        assertThat(hasReply()).isFalse();
        assertThat(server.core().running()).isEqualTo(1);
        second.complete("b");
        expectValue(1, "b");
        assertThat(calls()).isZero();
    }

    @Test
    void aStageThatAHandlersOwnStageBringsIsAResultThatCannotBeSent() {
        serve();
        call(1, "nested");
        handle();
        expectError(1, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.EXECUTED, "cannot be sent");
    }

    @Test
    void whoSeesAHandlersStageIsToldOfACallThatEndsBeforeIt() {
        serve((call, next) -> {
            watch(next.proceed(call));
            return "mine";
        });
        call(1, "later");
        handle();
        expectValue(1, "mine");
        assertThat(service.told).as("within the end of its call").isEmpty();
        hand.handleAll(channel);
        assertThat(service.told).containsExactly("the call is over");
        assertThat(calls()).isZero();
        assertThat(account.held(Resource.OBJECT_BYTES))
                .as("until the handler's stage ends")
                .isPositive();
        service.waiting.get(0).complete("late");
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
        assertThat(service.told).hasSize(1);
    }

    /** An interceptor may proceed on the event loop of a client, which a handler must not block. */
    @Test
    void whatProceedsOnAnEventLoopGoesOnWhereHandlersRun() throws Exception {
        CompletableFuture<Object> result = new CompletableFuture<>();
        List<Runnable> rest = new ArrayList<>();
        serve((call, next) -> {
            rest.add(() -> {
                try {
                    result.complete(next.proceed(call));
                } catch (Throwable t) {
                    result.completeExceptionally(t);
                }
            });
            return result;
        });
        call(1, "echo", "a");
        handle();
        Thread other = new LoopThread(rest.get(0), "of a client");
        other.start();
        other.join();
        assertThat(service.begun).isZero();
        handle();
        assertThat(service.begun).isEqualTo(1);
        expectValue(1, "a");
    }

    // ---- what the limit learns

    @Test
    void callsThatWaitInVainForAThreadLowerTheLimit() {
        serve();
        int before = limitOf("echo").limit();
        for (int i = 1; i <= 20; i++) {
            call(i, "echo", "a");
        }
        pass(60 * SECOND);
        assertThat(server.core().running()).isZero();
        assertThat(limitOf("echo").limit()).isLessThan(before);
    }

    /** The calls get threads at the moment when their time is over. */
    @Test
    void soDoThoseToWhichAThreadComesTooLate() {
        serve();
        int before = limitOf("echo").limit();
        for (int i = 1; i <= 20; i++) {
            call(i, "echo", "a");
        }
        hand.ticker.advance(60, TimeUnit.SECONDS);
        for (int i = 1; i <= 20; i++) {
            assertThat(hand.handle(0)).isTrue();
        }
        assertThat(service.begun).isZero();
        assertThat(server.core().running()).isZero();
        assertThat(limitOf("echo").limit()).isLessThan(before);
    }

    @Test
    void callsThatAreDoneJustInTimeDoNot() {
        serve();
        int before = limitOf("later").limit();
        for (int i = 1; i <= 20; i++) {
            call(i, "later");
            handle();
        }
        pass(59 * SECOND);
        for (int i = 0; i < 20; i++) {
            service.waiting.get(i).complete("a");
        }
        assertThat(server.core().running()).isZero();
        assertThat(limitOf("later").limit()).isEqualTo(before);
    }

    /** Too many calls of one connection say nothing about how many calls others may have. */
    @Test
    void callsThatWaitForThreadsOfTheirOwnConnectionDoNotEither() {
        serve(serving().poolSize(4), null);
        int before = limitOf("pooled").limit();
        for (int i = 1; i <= 20; i++) {
            call(i, "pooled", "a");
        }
        pass(60 * SECOND);
        assertThat(server.core().running()).isZero();
        assertThat(limitOf("pooled").limit()).isEqualTo(before);
    }

    // ---- replies of other threads

    /** Returns a text whose reply has this number of bytes. */
    private static String exactly(int bytes) {
        int around = ClassicWire.reply(1, Unpooled.wrappedBuffer(text("x".repeat(4_000))), null).length - 4_000;
        return "x".repeat(bytes - around);
    }

    @Test
    void aLargeReplyIsChargedBeforeTheEventLoopHearsOfIt() {
        serve();
        call(1, "later");
        call(2, "later");
        handle();
        handle();
        String exact = exactly(COUNTED_BYTES);
        elsewhere(() -> service.waiting.get(0).complete(exact));
        assertThat(account.held(Resource.REPLY_BYTES)).isZero();
        elsewhere(() -> service.waiting.get(1).complete(exact + "y"));
        assertThat(account.held(Resource.REPLY_BYTES)).isGreaterThan(COUNTED_BYTES);
        assertThat(hasReply()).isFalse();
        channel.runPendingTasks();
        expectValue(1, exact);
        expectValue(2, exact + "y");
        assertThat(account.held(Resource.REPLY_BYTES)).isZero();
    }

    @Test
    void oneThatFindsNoRoomThereIsAnErrorOfAHandlerThatRan() {
        serve();
        call(1, "later");
        handle();
        long taken = takeAll(Resource.REPLY_BYTES);
        elsewhere(() -> service.waiting.get(0).complete(exactly(COUNTED_BYTES + 1)));
        channel.runPendingTasks();
        expectError(1, RPCXException.Code.OVERLOADED, RPCXException.Executed.EXECUTED, "could not be kept");
        account.release(Resource.REPLY_BYTES, taken);
    }

    @Test
    void aLargeReplyForWhichNobodyWaitsAnyMoreIsGivenBack() {
        serve();
        call(1, "later");
        handle();
        elsewhere(() -> service.waiting.get(0).complete("x".repeat(40_000)));
        assertThat(account.held(Resource.REPLY_BYTES)).isGreaterThan(40_000);
        disconnect();
        assertThat(account.held(Resource.REPLY_BYTES)).isZero();
        assertThat(hasReply()).isFalse();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void repliesThatTheirReaderLetsStandAreClaimedAsUnread() {
        serve();
        call(1, "laterHere");
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                // nothing is sent
            }
        });
        hand.reads(channel, false);
        service.waiting.get(0).complete("x".repeat(40_000));
        assertThat(account.held(Resource.UNREAD_REPLY_BYTES)).isGreaterThan(40_000);
    }

    // ---- the end of the loop and of the server

    @Test
    void aFutureThatEndsWhenItsLoopHasEndedGivesAllBack() {
        serve();
        call(1, "later");
        handle();
        disconnect();
        hand.handleAll(channel);
        loop.hasEnded = true;
        service.waiting.get(0).complete("x".repeat(40_000));
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
        assertThat(account.held(Resource.REPLY_BYTES)).isZero();
        assertThat(connection.abandonedCalls()).isZero();
    }

    @Test
    void aFutureThatIsBroughtWhenTheLoopHasEndedIsNotWaitedFor() {
        serve();
        service.within = () -> {
            disconnect();
            loop.hasEnded = true;
        };
        call(1, "later");
        assertThat(hand.handle(0)).isTrue();
        assertThat(server.core().running()).isZero();
        assertThat(Stages.waiting(service.waiting.get(0))).isZero();
        hand.handleAll(channel);
        assertThat(calls()).isZero();
    }

    @Test
    void aServerThatIsCutOffWaitsForNobody() {
        serve();
        call(1, "laterHere");
        connection.cutOff();
        assertThat(hasReply()).as("before the event loop").isFalse();
        channel.runPendingTasks();
        expectError(0, RPCXException.Code.UNAVAILABLE, RPCXException.Executed.MAYBE, "does not wait any longer");
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
        assertThat(timers()).isZero();
        assertThat(Stages.waiting(service.waiting.get(0))).isZero();
    }

    @Test
    void aServerThatIsCutOffSetsNoTimerForAHandlerThatGoesOn() {
        serve();
        List<Boolean> seen = new ArrayList<>();
        service.within = () -> {
            connection.cutOff();
            channel.runPendingTasks();
            seen.add(Thread.interrupted());
            seen.add(timers() == 0);
        };
        call(1, "echo", "a");
        handle();
        assertThat(seen).containsExactly(true, true);
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
    }

    /** A handler gets its thread a moment before its connection learns that the server is cut off. */
    @Test
    void noHandlerBeginsOnceTheServerIsCutOff() {
        serve();
        call(1, "echo", "a");
        server.core().drain(Duration.ZERO);
        hand.runTimers();
        assertThat(server.core().isCutOff()).isTrue();
        assertThat(hand.handle(0)).isTrue();
        assertThat(service.begun).isZero();
        expectError(1, RPCXException.Code.UNAVAILABLE, RPCXException.Executed.NOT_EXECUTED, "the server is closing");
        channel.runPendingTasks();
    }

    /** The server's stop has to reach the calls that a connection has orphaned, and no others. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aServerThatIsCutOffFindsWhatAConnectionHasOrphaned(boolean isAwaited) {
        serve();
        if (isAwaited) {
            call(1, "later");
            handle();
        }
        disconnect();
        hand.handleAll(channel);
        assertThat(server.core().served()).isEqualTo(isAwaited ? 1 : 0);
        server.core().drain(Duration.ZERO);
        hand.runTimers();
        channel.runPendingTasks();
        assertThat(server.core().running()).isZero();
        assertThat(calls()).isZero();
        assertThat(server.core().served()).isZero();
    }

    @Test
    void aConnectionThatDrainsEndsThoughItsLastReplyCouldNotBeWritten() {
        serve();
        call(1, "laterHere");
        connection.drain();
        channel.runPendingTasks();
        elsewhere(() -> service.waiting.get(0).complete("a"));
        failOnce();
        assertThatThrownBy(() -> channel.runPendingTasks()).isInstanceOf(OutOfMemoryError.class);
        assertThat(channel.isOpen()).isTrue();
        pass(3 * SECOND);
        assertThat(channel.isOpen()).isFalse();
    }

    /** It may take some time until the reason has been sent. */
    @Test
    void theEndOfAConnectionCancelsItsCallsBeforeItIsClosed() {
        serve();
        call(1, "asking");
        handle();
        List<Runnable> kept = new ArrayList<>();
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext ctx, Object message, io.netty.channel.ChannelPromise promise) {
                kept.add(() -> ctx.writeAndFlush(message, promise));
            }
        });
        channel.writeInbound(Unpooled.buffer().writeInt(-1));
        assertThat(channel.isOpen()).isTrue();
        assertThat(connection.isBusy()).isFalse();
        hand.handleAll(channel);
        assertThat(service.told).containsExactly("cancelled");
        List.copyOf(kept).forEach(Runnable::run);
        channel.runPendingTasks();
        assertThat(channel.isOpen()).isFalse();
    }
}
