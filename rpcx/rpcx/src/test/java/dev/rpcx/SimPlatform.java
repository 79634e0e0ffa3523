package dev.rpcx;

import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.server.ServerPlatform;
import dev.rpcx.internal.server.Threads;
import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.EventLoopGroup;
import io.netty.util.concurrent.AbstractEventExecutorGroup;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Ticker;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;

/** The process and host in a {@link SimWorld} on which one client or one server runs. */
final class SimPlatform implements ServerPlatform {
    final SimWorld world;
    final SimNetwork network;

    /** The host has this address. */
    final String host;

    final SimAllocator allocator = new SimAllocator();

    private final List<SimLoop> loops = new ArrayList<>();
    private final List<SimWorld.Actor> handlers = new ArrayList<>();
    private final int readBytes;
    private boolean ended;
    private boolean killed;

    SimPlatform(SimWorld world, SimNetwork network, String host) {
        this.world = world;
        this.network = network;
        this.host = host;
        this.readBytes = (int) world.spread(1, 64 * 1024);
    }

    /** Returns how many bytes a socket reads at once. This is the usual number, or fewer. */
    int readBytes() {
        return world.oneIn(4) ? 1 + world.random.nextInt(readBytes) : Math.max(readBytes, 1024);
    }

    @Override
    public Loops loops(int count, String name, boolean inProcess) {
        return new SimLoops(new Group(count));
    }

    @Override
    public Threads threads(int poolSize) {
        return new SimThreads();
    }

    @Override
    public Ticker ticker() {
        return world.ticker;
    }

    @Override
    public RandomGenerator random() {
        return world.random;
    }

    /** Ends loops and the threads of handlers. This is the last thing that a client or server does. */
    void end() {
        ended = true;
        loops.forEach(SimLoop::end);
    }

    boolean isKilled() {
        return killed;
    }

    boolean isEnded() {
        return loops.stream().allMatch(SimLoop::isTerminated);
    }

    /** Ends the process in the middle of whatever it does. */
    void kill() {
        killed = true;
        ended = true;
        loops.forEach(loop -> world.kill(loop.actor));
        handlers.forEach(world::kill);
    }

    /** Returns the number of loops with timers that have not run and have not been cancelled. */
    long timers() {
        return loops.stream().filter(loop -> loop.nextTimer() != Long.MAX_VALUE).count();
    }

    private final class Group extends AbstractEventExecutorGroup implements EventLoopGroup {
        private final List<SimLoop> own = new ArrayList<>();
        private int next;

        Group(int count) {
            for (int i = 0; i < count; i++) {
                own.add(new SimLoop(SimPlatform.this, this));
            }
            loops.addAll(own);
        }

        @Override
        public EventLoop next() {
            return own.get(next++ % own.size());
        }

        @Override
        public Iterator<EventExecutor> iterator() {
            return new ArrayList<EventExecutor>(own).iterator();
        }

        @Override
        public ChannelFuture register(Channel channel) {
            return next().register(channel);
        }

        @Override
        public ChannelFuture register(ChannelPromise promise) {
            return next().register(promise);
        }

        @Override
        @Deprecated
        public ChannelFuture register(Channel channel, ChannelPromise promise) {
            return next().register(channel, promise);
        }

        @Override
        @Deprecated
        public void shutdown() {
            own.forEach(SimLoop::end);
        }

        @Override
        public Future<?> shutdownGracefully(long quietPeriod, long timeout, TimeUnit unit) {
            own.forEach(SimLoop::end);
            return terminationFuture();
        }

        @Override
        public Future<?> terminationFuture() {
            throw new UnsupportedOperationException("nobody waits in a simulation");
        }

        @Override
        public boolean isShuttingDown() {
            return ended;
        }

        @Override
        public boolean isShutdown() {
            return isTerminated();
        }

        @Override
        public boolean isTerminated() {
            return own.stream().allMatch(SimLoop::isTerminated);
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            throw new UnsupportedOperationException("nobody waits in a simulation");
        }
    }

    private final class SimLoops extends Loops {
        SimLoops(EventLoopGroup group) {
            super(group, true);
        }

        @Override
        public Bootstrap client() {
            return new Bootstrap()
                    .group(group)
                    .disableResolver()
                    .channelFactory(() -> new SimChannel(SimPlatform.this));
        }

        @Override
        public SocketAddress remote(String name, int port) {
            return new InetSocketAddress(name, port);
        }

        @Override
        public ServerBootstrap server() {
            return new ServerBootstrap().group(group).channelFactory(() -> new SimServerChannel(SimPlatform.this));
        }

        @Override
        public ChannelFuture bind(ServerBootstrap bootstrap, String name, int port) {
            ChannelFuture bound = bootstrap.bind(remote(host, port));
            loops.forEach(loop -> world.runAlone(loop.actor));
            return bound;
        }

        @Override
        public int port(SocketAddress bound) {
            return ((InetSocketAddress) bound).getPort();
        }

        @Override
        public void end() {
            SimPlatform.this.end();
        }

        @Override
        public void close(long maxNanos) {
            throw new UnsupportedOperationException("nobody waits in a simulation (expected: end)");
        }
    }

    /** Every handler has a thread of its own: who goes on first is the seed's choice. */
    private final class SimThreads extends Threads {
        SimThreads() {
            super(Integer.MAX_VALUE);
        }

        @Override
        public void run(EventLoop loop, RunOn.Place place, Runnable handler) {
            if (ended) {
                throw new RejectedExecutionException("the server has stopped");
            }
            SimWorld.Worker thread = new SimWorld.Worker(world, SimPlatform.this);
            handlers.add(thread);
            thread.run(handler);
        }

        @Override
        public void close() {
            ended = true;
        }
    }
}
