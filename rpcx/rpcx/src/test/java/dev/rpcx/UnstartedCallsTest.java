package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.ServerPlatform;
import dev.rpcx.internal.server.Threads;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.Ticker;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests calls that end before their handlers have begun. Each caller learns of it once, and nothing is left over. */
@Timeout(60)
class UnstartedCallsTest {
    private static final int ID = 1 << 16;
    private static final int MAX_BYTES = 100;

    @RPCXServer("unstarted")
    static final class Service {
        @Method
        String echo(String text) {
            return text;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled() {
            return "pooled";
        }

        @Method
        CompletableFuture<Integer> takes(Flow.Publisher<String> items) {
            FuzzService.Taker taker = new FuzzService.Taker(3);
            items.subscribe(taker);
            return taker.count;
        }
    }

    /** The reasons why a handler cannot be started. */
    private enum Failure {
        STOPPED(() -> new RejectedExecutionException("the server has stopped")),
        NO_THREAD(() -> new OutOfMemoryError("unable to create native thread")),
        NO_STACK(() -> new StackOverflowError("injected")),
        OTHER(() -> new IllegalStateException("injected"));

        private final Supplier<Throwable> thrown;

        Failure(Supplier<Throwable> thrown) {
            this.thrown = thrown;
        }
    }

    /** Threads that fail instead of running their tasks, if a test wants that. */
    private final class FailingThreads extends Threads {
        FailingThreads(int poolSize) {
            super(poolSize);
        }

        @Override
        public void run(EventLoop loop, RunOn.Place place, Runnable handler) {
            Runnable others = meanwhile;
            meanwhile = () -> {};
            others.run();
            Throwable thrown = failure == null ? null : failure.thrown.get();
            if (thrown instanceof Error error) {
                throw error;
            } else if (thrown instanceof RuntimeException refusal) {
                throw refusal;
            }
            handlers.add(() -> runShared(handler));
        }
    }

    private final class FailingPlatform implements ServerPlatform {
        @Override
        public Loops loops(int count, String name, boolean inProcess) {
            return hand.loops(count, name, inProcess);
        }

        @Override
        public Threads threads(int poolSize) {
            return new FailingThreads(poolSize);
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

    private final HandPlatform hand = new HandPlatform();
    private final ArrayDeque<Runnable> handlers = new ArrayDeque<>();

    /** Runs in the interceptor before the handler. */
    private Runnable before = () -> {};

    private @Nullable Failure failure;

    /** Runs while a thread is started. */
    private Runnable meanwhile = () -> {};

    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .platform(new FailingPlatform())
            .maxMessageBytes(MAX_BYTES)
            .interceptor((call, next) -> {
                before.run();
                return next.proceed(call);
            })
            .build()
            .start();
    private final EmbeddedChannel channel = hand.accept();

    @BeforeEach
    void greet() {
        send(RawPeer.preface());
        answers();
    }

    @AfterEach
    void end() {
        channel.close();
        runHandlers();
        hand.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    private void runHandlers() {
        hand.settle(channel);
        while (!handlers.isEmpty()) {
            handlers.remove().run();
            hand.settle(channel);
        }
    }

    /** Returns what the server has sent since the last call of this method, without its settings and its dictionary. */
    private List<RawPeer.Frame> answers() {
        byte[] written = HandPlatform.written(channel);
        ByteBuf in = Unpooled.wrappedBuffer(written);
        List<RawPeer.Frame> frames = new ArrayList<>();
        if (in.isReadable() && in.getByte(0) == 'R') {
            in.skipBytes(Wire.PREFACE_BYTES);
        }
        while (in.isReadable()) {
            ByteBuf frame = in.readSlice((int) Varint.read(in));
            int head = frame.readUnsignedByte();
            int id = frame.readInt();
            if (head != Wire.SETTINGS && head != Wire.DICTIONARY) {
                frames.add(new RawPeer.Frame(head, id, ByteBufUtil.getBytes(frame)));
            }
        }
        return frames;
    }

    private RPCXException error(int id) {
        List<RawPeer.Frame> answers = answers();
        assertThat(answers).hasSize(1);
        return error(answers.get(0), id);
    }

    private static RPCXException error(RawPeer.Frame answer, int id) {
        assertThat(answer.head()).isEqualTo(Wire.ERROR);
        assertThat(answer.id()).isEqualTo(id);
        return WireError.read(Unpooled.wrappedBuffer(answer.payload()));
    }

    private static ByteBuf echo(int head, int id) {
        return RawPeer.frame(head | Wire.NAMED, id, RawPeer.prelude("unstarted", "echo"));
    }

    private static ByteBuf takes() {
        return RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID, RawPeer.prelude("unstarted", "takes"));
    }

    private static ByteBuf largeItem() {
        return RawPeer.frame(Wire.ITEM, ID, Unpooled.buffer().writeZero(MAX_BYTES + 1));
    }

    @ParameterizedTest
    @EnumSource
    void aCallForWhichThereIsNoThreadEndsOnceAndIsNotCounted(Failure given) {
        failure = given;
        List<ByteBuf> requests = List.of(
                echo(Wire.REQUEST, ID),
                Unpooled.wrappedBuffer(
                        echo(Wire.REQUEST | Wire.MORE, 2 * ID),
                        RawPeer.frame(Wire.PART, 2 * ID, Unpooled.EMPTY_BUFFER)),
                RawPeer.frame(Wire.REQUEST | Wire.NAMED, 3 * ID, RawPeer.prelude("unstarted", "takes")));
        int id = 0;
        for (ByteBuf request : requests) {
            id += ID;
            send(request);
            RPCXException error = error(id);
            assertThat(error.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            assertThat(server.core().running()).isZero();
        }
        // the connection goes on
        failure = null;
        send(echo(Wire.REQUEST, id + ID));
        runHandlers();
        assertThat(answers())
                .singleElement()
                .satisfies(frame -> assertThat(frame.head()).isEqualTo(Wire.REPLY));
    }

    @ParameterizedTest
    @EnumSource
    void aNoticeForWhichThereIsNoThreadIsTakenAndNotCounted(Failure given) {
        failure = given;
        List<String> logged = ServerLog.of(() -> send(echo(Wire.NOTICE, ID)));
        assertThat(logged).singleElement().asString().startsWith("a notice of unstarted/echo failed as UNAVAILABLE");
        assertThat(answers())
                .singleElement()
                .satisfies(frame -> assertThat(frame.head()).isEqualTo(Wire.REPLY));
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    @Test
    void anItemWithoutCreditEndsItsConnectionAlsoWhereItIsTooLarge() {
        send(Unpooled.wrappedBuffer(takes(), largeItem()));
        assertThat(error(0).code()).isEqualTo(RPCXException.Code.PROTOCOL);
        runHandlers();
        assertThat(answers()).isEmpty();
    }

    @Test
    void anItemWithoutCreditEndsItsConnectionAlsoWhileAnInterceptorRuns() {
        send(takes());
        before = () -> send(largeItem());
        hand.settle(channel);
        handlers.remove().run();
        assertThat(error(answers().get(0), 0).code()).isEqualTo(RPCXException.Code.PROTOCOL);
    }

    @Test
    void anItemThatIsTooLargeBehindItsCreditSaysThatTheHandlerWasExecuted() {
        send(takes());
        runHandlers();
        assertThat(answers())
                .singleElement()
                .satisfies(frame -> assertThat(frame.head()).isEqualTo(Wire.CREDIT));
        send(largeItem());
        assertThat(error(ID).executed()).isEqualTo(RPCXException.Executed.EXECUTED);
    }

    /** The connection ends within the first answer that cannot be written. All calls that are visited end with it. */
    @Test
    void callsWhoseTimeIsOverEndOnceWhereTheirConnectionEndsAsTheFirstOfThemIsTold() {
        int running = 5;
        int unfinished = 10;
        for (int i = 1; i <= running; i++) {
            send(echo(Wire.REQUEST, ID | i));
        }
        for (int i = running + 1; i <= running + unfinished; i++) {
            ByteBuf payload = RawPeer.prelude("unstarted", "echo");
            Varint.write(payload, TimeUnit.MILLISECONDS.toMicros(20));
            send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME | Wire.MORE, ID | i, payload));
        }
        assertThat(server.core().ledger().held(Resource.CALLS)).isEqualTo(running + unfinished);
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                ctx.close();
            }
        });
        hand.pass(channel, 30, TimeUnit.MILLISECONDS);
        assertThat(channel.isActive()).isFalse();
        assertThat(server.core().ledger().held(Resource.CALLS))
                .as("of those that a thread will come to")
                .isEqualTo(running);
    }

    private Server withOneThread() {
        return Server.builder(RegistryServer.registry(new Service()))
                .platform(new FailingPlatform())
                .poolSize(1)
                .classic(true)
                .build()
                .start();
    }

    private void send(EmbeddedChannel to, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(to, all, 0, all.length);
    }

    private static ByteBuf pooled(boolean isClassic) {
        return isClassic
                ? ClassicRequests.of(1, "unstarted", "pooled", List.of(), List.of())
                : RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID, RawPeer.prelude("unstarted", "pooled"));
    }

    /**
     * The call waits for the only thread. Another connection's call is about to have this thread, and it cannot be
     * started.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatWaitsForAThreadWhichCannotBeStartedIsRefused(boolean isClassic) {
        Server single = withOneThread();
        EmbeddedChannel first = hand.accept();
        EmbeddedChannel second = hand.accept();
        if (!isClassic) {
            for (EmbeddedChannel each : List.of(first, second)) {
                send(each, RawPeer.preface());
                HandPlatform.written(each);
            }
        }
        failure = Failure.NO_THREAD;
        meanwhile = () -> send(second, pooled(isClassic));
        send(first, pooled(isClassic));
        hand.settle(second);
        for (EmbeddedChannel each : List.of(first, second)) {
            assertThat(new String(HandPlatform.written(each), StandardCharsets.ISO_8859_1))
                    .contains("the server has no thread for the call");
        }
        assertThat(single.core().running()).isZero();
        failure = null;
        for (EmbeddedChannel each : List.of(first, second)) {
            each.close();
            hand.pass(each, 2, TimeUnit.HOURS);
            each.releaseOutbound();
        }
        assertThat(single.core().ledger().audit()).isEmpty();
    }
}
