package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.CallContext;
import dev.rpcx.HandChannel;
import dev.rpcx.HandPlatform;
import dev.rpcx.IdleCall;
import dev.rpcx.Inside;
import dev.rpcx.Interceptor;
import dev.rpcx.Metadata;
import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests threads that fail while they end a call. The call ends nevertheless, and nothing of it stays counted. */
@Timeout(120)
public class LostCallsTest {
    private static final int ID = 1 << 16;

    private final HandPlatform platform = new HandPlatform();
    private Server server;
    private Account account;
    private HandChannel channel;
    private ServerConnection connection;

    @RPCXServer("lost")
    public static final class Service {
        @Method
        String echo(String text) {
            return text;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled() {
            return "";
        }

        @Method
        void fails(String text) {
            throw new IllegalStateException(text);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String failsAtItsEnd() {
            CallContext.current().orElseThrow().onCancel(() -> {});
            FailingSteps.of(1);
            return "a";
        }
    }

    /** This runs after a failed test too. Otherwise what the test has written would count as lost. */
    @AfterEach
    void release() {
        if (channel != null) {
            channel.finishAndReleaseAll();
        }
    }

    private static final class Failing extends Handler {
        final AtomicInteger asked = new AtomicInteger();

        @Override
        public void publish(LogRecord record) {
            asked.incrementAndGet();
            throw new IllegalStateException("the disk is full");
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

    @Test
    void aLogThatFailsOverANoticeLeavesNothingOfIt() {
        Logger logger = Logger.getLogger(Server.class.getName());
        Failing failing = new Failing();
        logger.addHandler(failing);
        logger.setUseParentHandlers(false);
        try {
            Server server = Inside.on(Server.builder(RegistryServer.registry(new Service())), platform)
                    .build()
                    .start();
            EmbeddedChannel channel = platform.accept();
            send(platform, channel, RawPeer.preface());
            send(
                    platform,
                    channel,
                    RawPeer.frame(
                            Wire.NOTICE | Wire.NAMED,
                            ID,
                            RawPeer.prelude("lost", "fails").writeBytes(RawPeer.text("x"))));
            try {
                platform.handleAll(channel);
            } catch (IllegalStateException thrown) {
                // the code that runs handlers has reported it
            }
            assertThat(failing.asked).hasValue(1);
            assertThat(Inside.core(server).running()).isZero();
            channel.close();
            platform.handleAll(channel);
            platform.pass(channel, 2, TimeUnit.HOURS);
            assertThat(Inside.core(server).ledger().audit()).isEmpty();
            channel.releaseOutbound();
        } finally {
            logger.removeHandler(failing);
            logger.setUseParentHandlers(true);
        }
    }

    private void serve(Object service, Interceptor... chain) {
        Server.Builder builder = Inside.on(Server.builder(RegistryServer.registry(service)), platform);
        for (Interceptor each : chain) {
            builder.interceptor(each);
        }
        server = builder.build().start();
        account = Objects.requireNonNull(Inside.core(server).ledger().open(null));
        channel = new HandChannel(platform.ticker);
        connection = new ServerConnection(channel, Inside.core(server), account, 0);
        channel.pipeline().addLast(connection);
        send(platform, channel, RawPeer.preface());
    }

    private static void send(HandPlatform platform, EmbeddedChannel channel, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
    }

    @Test
    void aCallWhoseEndFailsIsFoundByItsConnection() {
        AtomicInteger told = new AtomicInteger();
        LostCalls lost = new LostCalls(told::incrementAndGet);
        CompletableFuture<String> stage = new CompletableFuture<>();
        PendingResult pending = new PendingResult(
                (value, thrown) -> {
                    throw new StackOverflowError("injected");
                },
                stage,
                lost);
        pending.begin();
        assertThat(pending.isLost()).isFalse();
        assertThat(lost.isAny).isFalse();
        stage.complete("x");
        assertThat(pending.isLost()).isTrue();
        assertThat(pending.isOpen()).isFalse();
        assertThat(told).hasValue(1);
        assertThat(lost.isAny).isTrue();
    }

    @Test
    void callsAreLookedForAgainUntilTheyHaveBeenEnded() {
        LostCalls lost = new LostCalls(() -> {});
        lost.isAny = true;
        lost.endLost(() -> false);
        assertThat(lost.isAny).isTrue();
        assertThatThrownBy(() -> lost.endLost(() -> {
                    throw new OutOfMemoryError("of this test");
                }))
                .isInstanceOf(OutOfMemoryError.class);
        assertThat(lost.isAny).isTrue();
        lost.endLost(() -> {
            lost.isAny = true;
            return true;
        });
        assertThat(lost.isAny).as("another one meanwhile").isTrue();
        lost.endLost(() -> true);
        assertThat(lost.isAny).isFalse();
    }

    /** All calls that wait for a stage learn of its end, even if one of them fails over it. */
    @Test
    void aCallWhoseEndFailsDoesNotKeepOthersFromTheirs() {
        LostCalls lost = new LostCalls(() -> {});
        CompletableFuture<String> stage = new CompletableFuture<>();
        List<Object> told = new ArrayList<>();
        new PendingResult(
                        (value, thrown) -> {
                            throw new StackOverflowError("injected");
                        },
                        stage,
                        lost)
                .begin();
        new PendingResult((value, thrown) -> told.add(String.valueOf(value)), stage, lost).begin();
        stage.complete("x");
        assertThat(told).containsExactly("x");
    }

    /** The stage that an interceptor has returned brings another one, and the connection cannot learn of that. */
    @Test
    void aCallIsLostAlsoWhereItsStageBringsAnother() {
        CompletableFuture<Object> first = new CompletableFuture<>();
        serve(new Service(), (call, next) -> first);
        send(
                platform,
                channel,
                RawPeer.frame(
                        Wire.REQUEST | Wire.NAMED,
                        ID,
                        RawPeer.prelude("lost", "echo").writeBytes(RawPeer.text("x"))));
        platform.handleAll(channel);
        assertThat(Inside.core(server).running()).isEqualTo(1);
        channel.finishAndReleaseAll();
        platform.handleAll(channel);
        channel.loop.fails = true;
        first.complete(new CompletableFuture<>());
        channel.loop.fails = false;
        // this looks for lost calls, since the channel has lost its timers with its end
        connection.cutOff();
        platform.settle(channel);
        assertThat(Inside.core(server).running()).isZero();
        account.close();
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    @RPCXServer("waits")
    public static final class Waiting {
        public final CompletableFuture<String> result = new CompletableFuture<>();
        public Runnable within = () -> {};

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> waits() {
            within.run();
            return result;
        }

        @Method
        CompletionStage<String> later() {
            within.run();
            return result;
        }

        @Method
        String echo(String text) {
            within.run();
            return text;
        }
    }

    /** The memory ends as an interceptor has to learn that nobody waits for the result any more. */
    @Test
    void aCallThatIsGivenUpIsOverAlsoWhereItsInterceptorCannotBeToldSo() {
        Waiting service = new Waiting();
        serve(service, (call, next) -> next.proceed(call));
        send(platform, channel, RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID, RawPeer.prelude("waits", "waits")));
        assertThat(Stages.waiting(service.result)).isPositive();
        send(platform, channel, RawPeer.frame(Wire.CANCEL, ID, Unpooled.EMPTY_BUFFER));
        channel.loop.fails = true;
        platform.pass(channel, 1_500, TimeUnit.MILLISECONDS);
        channel.loop.fails = false;
        assertThat(Stages.waiting(service.result)).isZero();
        assertThat(connection.isClosed()).isFalse();
        service.result.complete("late");
        channel.finishAndReleaseAll();
        platform.settle(channel);
        nothingIsHeld();
    }

    /** The rest of a call's chain, which runs out of memory as the call ends. */
    public static final class FailingSteps implements CallThreads.Steps {
        private int failures;

        /** Makes the call that this thread handles fail so many times. */
        public static void of(int failures) {
            FailingSteps made = new FailingSteps();
            made.failures = failures;
            Objects.requireNonNull((HandledContext) CurrentCall.get()).setSteps(made);
        }

        @Override
        public boolean isElsewhere() {
            return false;
        }

        @Override
        public CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step) {
            throw HandledContext.endedError();
        }

        @Override
        public boolean bringsStream() {
            return false;
        }

        @Override
        public boolean isAnyBehind() {
            if (failures > 0) {
                failures--;
                throw new OutOfMemoryError("of this test");
            }
            return false;
        }

        @Override
        public boolean isCounted() {
            return true;
        }

        @Override
        public @Nullable Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) {
            throw HandledContext.endedError();
        }

        @Override
        public void callEnded() {}
    }

    /** The memory ends after the call has been taken from its stage, as the stages of interceptors are looked at. */
    @Test
    void aCallWhoseGivingUpFailsHalfWayIsOverAndWhatItHandsOverStaysCharged() {
        Waiting service = new Waiting();
        serve(service, (call, next) -> next.proceed(call));
        service.within = () -> FailingSteps.of(1);
        send(platform, channel, RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID, RawPeer.prelude("waits", "waits")));
        send(platform, channel, RawPeer.frame(Wire.CANCEL, ID, Unpooled.EMPTY_BUFFER));
        List<Throwable> reported = reportedBy(() -> platform.pass(channel, 1_500, TimeUnit.MILLISECONDS));
        assertThat(reported).singleElement().isInstanceOf(OutOfMemoryError.class);
        assertThat(connection.isClosed()).isFalse();
        assertThat(account.held(Resource.OBJECT_BYTES))
                .as("for as long as the future is open")
                .isPositive();
        service.result.complete("late");
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
        channel.finishAndReleaseAll();
        platform.settle(channel);
        nothingIsHeld();
    }

    /** The memory ends as the first of two notices is cancelled. */
    @Test
    void aServerThatIsCutOffGivesUpAlsoWhatCannotBeCancelled() {
        Waiting service = new Waiting();
        serve(service);
        for (int i = 0; i < 2; i++) {
            send(platform, channel, RawPeer.frame(Wire.NOTICE | Wire.NAMED, ID + i, RawPeer.prelude("waits", "waits")));
        }
        channel.finishAndReleaseAll();
        assertThat(Stages.waiting(service.result)).isEqualTo(2);
        connection.cutOff();
        channel.loop.failingTasks = 1;
        assertThatCode(() -> platform.settle(channel)).doesNotThrowAnyException();
        assertThat(channel.loop.failingTasks).isZero();
        assertThat(Stages.waiting(service.result)).isZero();
        service.result.complete("late");
        platform.settle(channel);
        nothingIsHeld();
    }

    /** A task that waits for a thread cannot be taken back, and its call ends all the same. */
    @Test
    void aCallEndsAlsoWhereWhatGoesOnWithItCannotBeTakenBack() {
        Server server = Inside.on(Server.builder(RegistryServer.registry(new Service())), platform)
                .build()
                .start();
        HandChannel channel = new HandChannel(platform.ticker);
        Account account = Objects.requireNonNull(Inside.core(server).ledger().open(null));
        ServerMethod method =
                Objects.requireNonNull(Inside.core(server).method(MethodDictionary.key("lost", "pooled")));
        CallThreads threads = new CallThreads(
                channel.eventLoop(),
                channel.eventLoop(),
                new ConnectionThreads(platform.threads(1), channel.eventLoop(), account),
                new LostCalls(() -> {}));
        Interceptor.Invocation invocation = new CallInvocation("lost", "pooled", new Object[0], Metadata.EMPTY, null);
        List<HandledContext> contexts = new ArrayList<>();
        List<CompletionStage<?>> stages = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            HandledContext context = new HandledContext(0, Metadata.EMPTY, null, platform.ticker);
            CallThreads.Steps steps = threads.stepsOf(new IdleCall(method, context));
            context.setSteps(steps);
            contexts.add(context);
            stages.add(steps.proceed(invocation, its -> "x"));
        }
        HandledContext waiting = contexts.get(1);
        channel.loop.isElsewhere = true;
        channel.loop.fails = true;
        assertThatCode(() -> waiting.mayLeaveNow(false)).doesNotThrowAnyException();
        channel.loop.isElsewhere = false;
        channel.loop.fails = false;
        assertThat(waiting.endUnlessThreads()).isTrue();
        platform.handleAll(channel);
        assertThat(stages.get(0).toCompletableFuture().getNow(null)).isEqualTo("x");
        assertThat(contexts.get(0).hasThreads()).isFalse();
        account.close();
    }

    @RPCXServer("stream")
    public static final class Streaming {
        /** Each handler runs this as it ends. */
        public Runnable ends = () -> {};

        @Method
        Flow.Publisher<String> elsewhere() {
            ends.run();
            return new StreamsTest.Made<>(1, i -> "item");
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        Flow.Publisher<String> here() {
            ends.run();
            return new StreamsTest.Made<>(1, i -> "item");
        }

        public final StreamsTest.Made<String> made = new StreamsTest.Made<>(1, i -> "item");
        public final StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(1);

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        Flow.Publisher<String> tells() {
            CallContext.current().orElseThrow().onCancel(() -> {});
            return made;
        }

        /** Waits for its items. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> takes(Flow.Publisher<String> items) {
            items.subscribe(collected);
            return collected.end.thenApply(all -> "");
        }
    }

    /**
     * The memory ends as the stream is handed to the event loop, or on the event loop as the stream begins. So many
     * streams would count for more than a caller may leave unread.
     */
    @ParameterizedTest
    @ValueSource(strings = {"elsewhere", "here"})
    void aStreamThatCannotBeginEndsItsCallAndCountsNoLonger(String method) {
        int streams = 20;
        Streaming service = new Streaming();
        serve(service);
        HandPlatform.written(channel);
        Runnable fails = () -> channel.loop.fails = true;
        service.ends = method.equals("here") ? () -> channel.eventLoop().execute(fails) : fails;
        for (int i = 0; i < streams; i++) {
            ByteBuf request = RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID + i, RawPeer.prelude("stream", method));
            try {
                send(platform, channel, request);
                platform.handleAll(channel);
            } catch (OutOfMemoryError ofTheLoop) {
                // the test goes on, as an event loop does
            }
            assertThat(channel.loop.fails).isTrue();
            channel.loop.fails = false;
            connection.endLost();
            platform.handleAll(channel);
        }
        assertThat(Inside.core(server).running()).isZero();
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        for (int i = 0; i < streams; i++) {
            ByteBuf frame = in.readSlice((int) Varint.read(in));
            assertThat(frame.readUnsignedByte()).isEqualTo((short) Wire.ERROR);
            assertThat(frame.readInt()).isEqualTo(ID + i);
            assertThat(WireError.read(frame).executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        }
        assertThat(in.isReadable()).isFalse();
        ServerMethod called =
                Objects.requireNonNull(Inside.core(server).method(MethodDictionary.key("stream", method)));
        assertThat(connection.isCongested(called)).isFalse();
        channel.finishAndReleaseAll();
        platform.handleAll(channel);
        account.close();
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    /** The memory ends as a stream is cancelled, before the listener for the cancel has run. */
    @Test
    void aStreamWhoseCallCannotBeCancelledEndsAndCountsNoLonger() {
        Streaming service = new Streaming();
        serve(service);
        send(platform, channel, RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID, RawPeer.prelude("stream", "tells")));
        platform.handleAll(channel);
        assertThat(account.held(Resource.STREAMS)).isEqualTo(1);
        channel.loop.failingTasks = 1;
        channel.writeInbound(RawPeer.frame(Wire.CANCEL, ID, Unpooled.EMPTY_BUFFER));
        assertThat(channel.loop.failingTasks).isZero();
        platform.settle(channel);
        assertThat(service.made.cancelled).isCompleted();
        assertThat(account.held(Resource.STREAMS)).isZero();
        channel.finishAndReleaseAll();
        platform.handleAll(channel);
        nothingIsHeld();
    }

    /** The memory ends as the call is cancelled, before its handler, which waits for items, has learnt of their end. */
    @Test
    void aHandlerThatWaitsForItemsIsToldOfTheirEndAlsoWhereItsCallCannotBeCancelled() {
        Streaming service = new Streaming();
        serve(service);
        send(platform, channel, RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID, RawPeer.prelude("stream", "takes")));
        assertThat(account.held(Resource.STREAMS)).isEqualTo(1);
        channel.loop.failingTasks = 1;
        channel.writeInbound(RawPeer.frame(Wire.CANCEL, ID, Unpooled.EMPTY_BUFFER));
        assertThat(channel.loop.failingTasks).isZero();
        platform.settle(channel);
        assertThat(service.collected.end).isCompletedExceptionally();
        assertThat(account.held(Resource.STREAMS)).isZero();
        channel.finishAndReleaseAll();
        platform.handleAll(channel);
        account.close();
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    /** A thread that was counted before the error would never be counted back. */
    @Test
    void whatCannotBeMadeToTellACallDoesNotKeepItsPlace() {
        Server server = Inside.on(Server.builder(RegistryServer.registry(new Service())), platform)
                .build()
                .start();
        EmbeddedChannel channel = new EmbeddedChannel();
        Account account = Objects.requireNonNull(Inside.core(server).ledger().open(null));
        CallThreads threads = new CallThreads(
                channel.eventLoop(),
                Runnable::run,
                new ConnectionThreads(platform.threads(1), channel.eventLoop(), account),
                new LostCalls(() -> {}));
        HandledContext context = new HandledContext(0, Metadata.EMPTY, null, platform.ticker);
        ServerMethod method =
                Objects.requireNonNull(Inside.core(server).method(MethodDictionary.key("lost", "pooled")));
        CallThreads.Call failing = new IdleCall(method, context) {
            @Override
            public ServerMethod method() {
                throw new OutOfMemoryError("injected");
            }
        };
        assertThatThrownBy(() -> threads.runCallbacks(failing, List.of(() -> {})))
                .isInstanceOf(OutOfMemoryError.class);
        assertThat(context.hasThreads()).isFalse();
        account.close();
    }

    /** Returns what the task reports to the handler of this thread's uncaught exceptions. */
    private static List<Throwable> reportedBy(Runnable task) {
        List<Throwable> reported = new ArrayList<>();
        Thread here = Thread.currentThread();
        here.setUncaughtExceptionHandler((thread, thrown) -> reported.add(thrown));
        try {
            task.run();
        } finally {
            here.setUncaughtExceptionHandler(null);
        }
        return reported;
    }

    private static ByteBuf request(int id, String service, String method, ByteBuf arguments) {
        return RawPeer.frame(
                Wire.REQUEST | Wire.NAMED, id, RawPeer.prelude(service, method).writeBytes(arguments));
    }

    /** Returns the call in the first slot, or null if there is none. */
    private @Nullable ServerCall firstCallIfAny() {
        try {
            Field calls = ServerConnection.class.getDeclaredField("calls");
            calls.setAccessible(true);
            ServerCall[] all = (ServerCall[]) calls.get(connection);
            return all.length == 0 ? null : all[0];
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private ServerCall firstCall() {
        return Objects.requireNonNull(firstCallIfAny());
    }

    /** Has the connection look for lost calls, as if a thread had said that there are some. */
    private void look() {
        connection.lost.isAny = true;
        connection.endLost();
        platform.settle(channel);
        assertThat(connection.lost.isAny).isFalse();
    }

    private List<Integer> answered(int type) {
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        List<Integer> ids = new ArrayList<>();
        while (in.isReadable()) {
            ByteBuf frame = in.readSlice((int) Varint.read(in));
            assertThat(frame.readUnsignedByte()).isEqualTo((short) type);
            ids.add(frame.readInt());
        }
        return ids;
    }

    private void nothingIsLeft() {
        channel.finishAndReleaseAll();
        platform.handleAll(channel);
        nothingIsHeld();
    }

    private void nothingIsHeld() {
        assertThat(Inside.core(server).running()).isZero();
        assertThat(account.held(Resource.CALLS)).isZero();
        account.close();
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    /** One call has not arrived completely, one waits for its thread, and the handlers of two run or have returned. */
    @Test
    void callsThatGoOnAreNotTakenForLost() {
        Waiting service = new Waiting();
        serve(service);
        HandPlatform.written(channel);
        send(
                platform,
                channel,
                RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, ID, RawPeer.prelude("waits", "echo")));
        send(platform, channel, request(ID + 1, "waits", "echo", RawPeer.text("a")));
        send(platform, channel, request(ID + 2, "waits", "waits", Unpooled.EMPTY_BUFFER));
        look();
        service.within = this::look;
        send(platform, channel, request(ID + 3, "waits", "waits", Unpooled.EMPTY_BUFFER));
        assertThat(account.held(Resource.CALLS)).isEqualTo(4);
        assertThat(HandPlatform.written(channel)).isEmpty();
        send(platform, channel, RawPeer.frame(Wire.PART, ID, RawPeer.text("b")));
        service.result.complete("c");
        platform.handleAll(channel);
        assertThat(answered(Wire.REPLY)).containsExactlyInAnyOrder(ID, ID + 1, ID + 2, ID + 3);
        nothingIsLeft();
    }

    /** The call is over for its caller, but a listener for its cancel has not run yet. */
    @Test
    void aCallThatIsOverButForItsThreadsIsNotTakenForLost() {
        Waiting service = new Waiting();
        serve(service);
        List<String> told = new ArrayList<>();
        service.within = () -> CallContext.current().orElseThrow().onCancel(() -> told.add("cancelled"));
        send(platform, channel, request(ID, "waits", "later", Unpooled.EMPTY_BUFFER));
        platform.handleAll(channel);
        ServerCall call = firstCall();
        send(platform, channel, RawPeer.frame(Wire.CANCEL, ID, Unpooled.EMPTY_BUFFER));
        service.result.complete("late");
        platform.settle(channel);
        assertThat(call.loopState.isOverButThreads).isTrue();
        assertThat(call.isLost()).isFalse();
        look();
        assertThat(account.held(Resource.CALLS)).isEqualTo(1);
        assertThat(told).isEmpty();
        platform.handleAll(channel);
        assertThat(told).hasSize(1);
        nothingIsLeft();
    }

    /** A client may give the id of a call that has ended to another call. */
    @Test
    void aCallWithTheNumberOfALostOneIsNotTakenForIt() {
        Waiting service = new Waiting();
        serve(service);
        HandPlatform.written(channel);
        service.within = () -> platform.ticker.failAt(1);
        send(platform, channel, request(ID, "waits", "echo", RawPeer.text("a")));
        try {
            platform.handle(0);
        } catch (OutOfMemoryError ofTheClock) {
            // the code that runs handlers reports it
        }
        platform.settle(channel);
        assertThat(answered(Wire.ERROR)).containsExactly(ID);
        service.within = () -> {};
        // each use of a slot makes another id
        send(platform, channel, request(2 * ID, "waits", "echo", RawPeer.text("b")));
        platform.handleAll(channel);
        assertThat(answered(Wire.REPLY)).containsExactly(2 * ID);
        send(platform, channel, request(ID, "waits", "echo", RawPeer.text("c")));
        assertThat(account.held(Resource.CALLS)).as("its place is the same").isEqualTo(1);
        look();
        assertThat(HandPlatform.written(channel)).isEmpty();
        platform.handleAll(channel);
        assertThat(answered(Wire.REPLY)).containsExactly(ID);
        nothingIsLeft();
    }

    /** The thread that brings the result of the first call fails over it. */
    @Test
    void aCallWithThePlaceOfALostOneIsNotTakenForIt() {
        Waiting service = new Waiting();
        serve(service);
        HandPlatform.written(channel);
        send(platform, channel, request(ID, "waits", "later", Unpooled.EMPTY_BUFFER));
        platform.handleAll(channel);
        platform.ticker.failAt(1);
        try {
            service.result.complete("a");
        } catch (OutOfMemoryError ofTheClock) {
            // the error reaches the code that completes the stage
        }
        platform.ticker.failAt(0);
        platform.settle(channel);
        assertThat(answered(Wire.ERROR)).containsExactly(ID);
        send(platform, channel, request(2 * ID, "waits", "echo", RawPeer.text("b")));
        assertThat(account.held(Resource.CALLS)).as("it is the same").isEqualTo(1);
        look();
        assertThat(HandPlatform.written(channel)).isEmpty();
        platform.handleAll(channel);
        assertThat(answered(Wire.REPLY)).containsExactly(2 * ID);
        nothingIsLeft();
    }

    /** The memory ends on the event loop as the handler has returned. */
    @Test
    void aCallWhoseEventLoopFailsAtItsEndIsFoundByItsConnection() {
        serve(new Service(), (call, next) -> next.proceed(call));
        HandPlatform.written(channel);
        channel.writeInbound(request(ID, "lost", "failsAtItsEnd", Unpooled.EMPTY_BUFFER));
        platform.settle(channel);
        assertThat(firstCallIfAny()).isNull();
        assertThat(account.held(Resource.CALLS)).isZero();
        nothingIsLeft();
    }

    /** The memory ends as a task for the event loop has to say that no thread can be started for the call. */
    @Test
    void aCallThatCannotBeRefusedIsFoundByItsConnection() {
        serve(new Service());
        HandPlatform.written(channel);
        send(platform, channel, request(ID, "lost", "echo", RawPeer.text("a")));
        ServerCall call = firstCall();
        channel.loop.isElsewhere = true;
        channel.loop.fails = true;
        assertThatThrownBy(() -> call.refused(new OutOfMemoryError("unable to create native thread")))
                .isInstanceOf(OutOfMemoryError.class);
        channel.loop.isElsewhere = false;
        channel.loop.fails = false;
        assertThat(answered(Wire.ERROR)).isEmpty();
        connection.endLost();
        platform.settle(channel);
        assertThat(answered(Wire.ERROR)).containsExactly(ID);
        channel.finishAndReleaseAll();
        platform.settle(channel);
        nothingIsHeld();
    }

    @Test
    void oneThreadAloneMaySendTheEndOfACall() {
        serve(new Service());
        send(platform, channel, request(ID, "lost", "echo", RawPeer.text("a")));
        ServerCall call = firstCall();
        assertThat(call.tryEnd()).isTrue();
        assertThat(call.tryEnd()).isFalse();
        nothingIsLeft();
    }

    /** An interceptor answers the call while it still waits for the handler's stage. */
    @Test
    void whoWaitsForTheStageOfACallThatAnInterceptorHasEndedIsToldAndWhatTheStageHoldsStaysCharged() {
        Waiting service = new Waiting();
        List<String> told = new ArrayList<>();
        serve(service, (call, next) -> {
            ((CompletionStage<?>) next.proceed(call)).whenComplete((value, thrown) -> told.add("told"));
            return "early";
        });
        HandPlatform.written(channel);
        send(platform, channel, request(ID, "waits", "later", Unpooled.EMPTY_BUFFER));
        platform.handle(0);
        platform.settle(channel);
        assertThat(answered(Wire.REPLY)).containsExactly(ID);
        platform.handleAll(channel);
        assertThat(told).containsExactly("told");
        assertThat(account.held(Resource.OBJECT_BYTES))
                .as("for as long as the future is open")
                .isPositive();
        service.result.complete("late");
        assertThat(told).hasSize(1);
        assertThat(account.held(Resource.OBJECT_BYTES)).isZero();
        nothingIsLeft();
    }
}
