package dev.rpcx;

import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.server.ServerPlatform;
import dev.rpcx.internal.server.Sniffer;
import dev.rpcx.internal.server.Threads;
import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandler;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.AbstractEventExecutorGroup;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.net.SocketAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/**
 * Runs a server or a client on one thread, with a simulated clock and channels without sockets. Bytes go in by
 * {@link #read}, and the bytes that come out are kept. Nothing happens by itself, so the same input always has the same
 * result, as a fuzzer needs it.
 */
public final class HandPlatform implements ServerPlatform {
    public final HandTicker ticker = new HandTicker();

    /** All channels allocate their buffers here, where they are counted. */
    public final UnpooledByteBufAllocator buffers = new UnpooledByteBufAllocator(false, true);

    /** Contains the channels that a client has opened, in order. */
    public final List<EmbeddedChannel> opened = new ArrayList<>();

    /** Counts how often somebody has asked for {@link #random}. */
    public int randoms;

    /** Counts the tasks that event loops were given, without timers. */
    public int tasks;

    private final ArrayDeque<Runnable> handlers = new ArrayDeque<>();
    private final EmbeddedChannel base =
            EmbeddedChannel.builder().ticker(ticker).build();
    private final RandomGenerator random = new SplittableRandom(1);
    private @Nullable ChannelHandler accepting;

    /** A clock that can fail when it is read. It stands for whatever fails there for want of memory. */
    public static final class HandTicker implements MockTicker {
        private final MockTicker hand = Ticker.newMockTicker();
        private int untilFailure;

        /** @param readings the number of the reading that fails, counted from now on; 0 if none fails */
        public void failAt(int readings) {
            untilFailure = readings;
        }

        @Override
        public long nanoTime() {
            if (untilFailure > 0 && --untilFailure == 0) {
                throw new OutOfMemoryError("of the clock, in this test");
            }
            return hand.nanoTime();
        }

        @Override
        public void advance(long amount, TimeUnit unit) {
            hand.advance(amount, unit);
        }

        @Override
        public long initialNanoTime() {
            return hand.initialNanoTime();
        }

        @Override
        public void sleep(long delay, TimeUnit unit) throws InterruptedException {
            hand.sleep(delay, unit);
        }
    }

    /** Makes a connection that the server accepts. */
    public EmbeddedChannel accept() {
        return accept(EmbeddedChannel.builder().ticker(ticker).register(false).build());
    }

    /** Makes a connection of a channel that is not registered yet. */
    public EmbeddedChannel accept(EmbeddedChannel channel) {
        channel.config().setAllocator(buffers);
        channel.pipeline().addLast(Objects.requireNonNull(accepting));
        register(channel);
        return channel;
    }

    private static void register(EmbeddedChannel channel) {
        try {
            channel.register();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Lets bytes arrive, unless the channel does not read. If their reader throws an exception, this method fails with
     * it. If the pipeline got the exception instead, the reader would end the connection because of it, and no test
     * would notice the exception.
     */
    public void read(EmbeddedChannel channel, byte[] bytes, int from, int count) {
        if (!channel.isActive() || !channel.config().isAutoRead() || count == 0) {
            return;
        }
        ChannelHandlerContext first = first(channel);
        int at = from;
        if (first.handler() instanceof Sniffer) {
            channel.pipeline().fireChannelRead(buffer(bytes, at++, 1));
            first = first(channel);
        }
        if (at < from + count) {
            try {
                ((ChannelInboundHandler) first.handler()).channelRead(first, buffer(bytes, at, from + count - at));
            } catch (Exception e) {
                throw new AssertionError("thrown while reading", e);
            }
        }
        channel.pipeline().fireChannelReadComplete();
        settle(channel);
    }

    private static ChannelHandlerContext first(EmbeddedChannel channel) {
        return Objects.requireNonNull(channel.pipeline().firstContext());
    }

    private ByteBuf buffer(byte[] bytes, int at, int count) {
        return buffers.heapBuffer(count).writeBytes(bytes, at, count);
    }

    /** Runs the tasks and timers that are due. Handlers wait for {@link #handle}. */
    public void settle(EmbeddedChannel channel) {
        channel.runPendingTasks();
        runTimers();
        channel.checkException();
    }

    /** Runs the tasks and timers that are due, except those of a channel. */
    public void runTimers() {
        base.runPendingTasks();
    }

    /** Runs one handler, if there is one: the one with this number among those that wait, modulo how many there are. */
    public boolean handle(int which) {
        if (handlers.isEmpty()) {
            return false;
        }
        for (int i = which % handlers.size(); i > 0; i--) {
            handlers.add(handlers.remove());
        }
        handlers.remove().run();
        return true;
    }

    /** Runs all handlers, and those that are added meanwhile. */
    public void handleAll(EmbeddedChannel channel) {
        settle(channel);
        while (handle(0)) {
            settle(channel);
        }
    }

    public void pass(EmbeddedChannel channel, long time, TimeUnit unit) {
        ticker.advance(time, unit);
        settle(channel);
    }

    /** Sets whether the peer reads. */
    public void reads(EmbeddedChannel channel, boolean reads) {
        if (channel.isActive()) {
            channel.unsafe().outboundBuffer().setUserDefinedWritability(1, reads);
            settle(channel);
        }
    }

    /** Returns all bytes that have been written since the last call of this method. */
    public static byte[] written(EmbeddedChannel channel) {
        ByteBuf all = Unpooled.buffer();
        for (Object message = channel.readOutbound(); message != null; message = channel.readOutbound()) {
            ByteBuf bytes = (ByteBuf) message;
            all.writeBytes(bytes);
            bytes.release();
        }
        byte[] copy = new byte[all.readableBytes()];
        all.readBytes(copy);
        return copy;
    }

    /** The client's program ends, and all connections with it. Each call has ended by then, and nothing is left. */
    public void end(Client client, EmbeddedChannel channel, List<CompletableFuture<?>> calls) {
        reads(channel, true);
        client.core().end();
        settle(channel);
        for (int i = 0; i < 3; i++) {
            pass(channel, 1, TimeUnit.HOURS);
        }
        for (EmbeddedChannel each : opened) {
            settle(each);
            each.close();
            settle(each);
            each.releaseOutbound();
        }
        calls.forEach(HandPlatform::hasEnded);
        expectNothing(client.core().ledger().audit());
    }

    /** Expects that a call has ended, either with a value, with an exception of RPCX, or cancelled. */
    private static void hasEnded(CompletableFuture<?> call) {
        if (!call.isDone()) {
            throw new AssertionError("a call that has not ended");
        }
        if (!call.isCompletedExceptionally()) {
            return;
        }
        try {
            call.join();
        } catch (CompletionException e) {
            if (!(e.getCause() instanceof RPCXException) && !(e.getCause() instanceof CancellationException)) {
                throw new AssertionError("a call that ended otherwise", e);
            }
        } catch (CancellationException cancelled) {
            // the input of the fuzzer has cancelled the call
        }
    }

    /** The peer reads again, and all handlers end. */
    public void quiet(FuzzService service, EmbeddedChannel channel) {
        reads(channel, true);
        endHandlers(service, channel);
    }

    /** The peer has gone. Nothing of it is left. */
    public void end(Server server, FuzzService service, EmbeddedChannel channel) {
        channel.close();
        endHandlers(service, channel);
        channel.releaseOutbound();
        // each timer that was set runs within this time
        pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        expectNothing(server.core().ledger().audit()
                + (server.core().running() == 0 ? "" : server.core().running() + " handlers\n")
                + (server.core().connections() == 0 ? "" : server.core().connections() + " connections\n"));
    }

    private void endHandlers(FuzzService service, EmbeddedChannel channel) {
        handleAll(channel);
        service.endAll();
        handleAll(channel);
    }

    private void expectNothing(String held) {
        if (!held.isEmpty() || heldBytes() != 0) {
            throw new AssertionError("left: " + held + heldBytes() + " bytes");
        }
    }

    /** Returns how many bytes the buffers have that have not been released. */
    public long heldBytes() {
        return buffers.metric().usedHeapMemory() + buffers.metric().usedDirectMemory();
    }

    @Override
    public Loops loops(int count, String name, boolean inProcess) {
        return new HandLoops(new Group());
    }

    @Override
    public Threads threads(int poolSize) {
        return new Threads(poolSize) {
            @Override
            public void run(EventLoop loop, RunOn.Place place, Runnable handler) {
                handlers.add(() -> runShared(handler));
            }
        };
    }

    @Override
    public Ticker ticker() {
        return ticker;
    }

    @Override
    public RandomGenerator random() {
        randoms++;
        return random;
    }

    private final class HandLoops extends Loops {
        HandLoops(EventLoopGroup group) {
            super(group, true);
        }

        @Override
        public Bootstrap client() {
            return new Bootstrap().group(group).disableResolver().channelFactory(() -> {
                EmbeddedChannel channel =
                        EmbeddedChannel.builder().ticker(ticker).register(false).build();
                channel.config().setAllocator(buffers);
                opened.add(channel);
                return channel;
            });
        }

        @Override
        public ServerBootstrap server() {
            return new ServerBootstrap();
        }

        @Override
        public ChannelFuture bind(ServerBootstrap bootstrap, String host, int port) {
            accepting = bootstrap.config().childHandler();
            return base.newSucceededFuture();
        }

        @Override
        public int port(SocketAddress bound) {
            return 1;
        }
    }

    private final class Group extends AbstractEventExecutorGroup implements EventLoopGroup {
        private boolean hasEnded;

        @Override
        public EventLoop next() {
            return base.eventLoop();
        }

        @Override
        public Iterator<EventExecutor> iterator() {
            return List.<EventExecutor>of(base.eventLoop()).iterator();
        }

        /** Runs the task at once, since there is only one thread. */
        @Override
        public void execute(Runnable task) {
            tasks++;
            task.run();
        }

        @Override
        public ChannelFuture register(Channel channel) {
            HandPlatform.register((EmbeddedChannel) channel);
            return channel.newSucceededFuture();
        }

        @Override
        public ChannelFuture register(ChannelPromise promise) {
            HandPlatform.register((EmbeddedChannel) promise.channel());
            return promise.setSuccess();
        }

        @Override
        @Deprecated
        public ChannelFuture register(Channel channel, ChannelPromise promise) {
            HandPlatform.register((EmbeddedChannel) channel);
            return promise.setSuccess();
        }

        @Override
        @Deprecated
        public void shutdown() {}

        @Override
        public Future<?> shutdownGracefully(long quietPeriod, long timeout, TimeUnit unit) {
            hasEnded = true;
            return base.newSucceededFuture();
        }

        @Override
        public Future<?> terminationFuture() {
            return base.newSucceededFuture();
        }

        @Override
        public boolean isShuttingDown() {
            return false;
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return hasEnded;
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return true;
        }
    }
}
