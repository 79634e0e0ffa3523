package dev.rpcx;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.EventLoopGroup;
import io.netty.util.concurrent.AbstractScheduledEventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.ScheduledFuture;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * An event loop that is an actor of a {@link SimWorld} and not a thread. Its tasks run in the order in which they came,
 * as on a real event loop. The seed decides whether a task, a channel that is ready, or a timer that is due comes next.
 */
final class SimLoop extends AbstractScheduledEventExecutor implements EventLoop {
    /** A loop looks at this when it is asked to. */
    interface Io {
        void handle();
    }

    private final SimWorld world;
    private final ArrayDeque<Runnable> tasks = new ArrayDeque<>();
    private final List<Io> io = new ArrayList<>();
    private final List<Channel> channels = new ArrayList<>();
    private boolean ending;
    private boolean ended;

    final SimWorld.Actor actor;

    SimLoop(SimPlatform process, EventLoopGroup parent) {
        super(parent);
        this.world = process.world;
        this.actor = new SimWorld.Actor(world, process) {
            @Override
            void step() {
                runOne();
            }

            @Override
            boolean hasMore() {
                return !tasks.isEmpty() || !io.isEmpty() || !ended && nextTimer() <= SimLoop.this.world.now();
            }
        };
        world.add(this);
    }

    private void runOne() {
        boolean timer = nextTimer() <= world.now();
        int kinds = (tasks.isEmpty() ? 0 : 1) + (io.isEmpty() ? 0 : 1) + (timer ? 1 : 0);
        int chosen = kinds > 1 ? world.random.nextInt(kinds) : 0;
        if (!tasks.isEmpty() && chosen-- == 0) {
            tasks.remove().run();
        } else if (!io.isEmpty() && chosen-- == 0) {
            int at = world.random.nextInt(io.size());
            Io last = io.remove(io.size() - 1);
            Io next = at == io.size() ? last : io.set(at, last);
            next.handle();
        } else if (timer) {
            Runnable due = pollScheduledTask();
            if (due != null) {
                due.run();
            }
        }
        if (ending && tasks.isEmpty() && channels.isEmpty()) {
            cancelScheduledTasks();
            ended = true;
        }
    }

    /** Returns when the next timer of the loop is due, or {@link Long#MAX_VALUE} if there is none. */
    long nextTimer() {
        long next = nextScheduledTaskDeadlineNanos();
        return next == -1 ? Long.MAX_VALUE : next;
    }

    /** A channel has something to do. */
    void ready(Io channel) {
        io.add(channel);
        actor.wake();
    }

    void add(Channel channel) {
        channels.add(channel);
    }

    void remove(Channel channel) {
        channels.remove(channel);
    }

    /** Closes its channels, does what is left to do, and takes nothing more. */
    void end() {
        if (!ended) {
            execute(() -> {
                ending = true;
                List.copyOf(channels).forEach(c -> c.unsafe().close(c.unsafe().voidPromise()));
            });
        }
    }

    @Override
    public void execute(Runnable task) {
        if (ended) {
            throw new RejectedExecutionException("the loop has ended");
        }
        tasks.add(task);
        actor.wake();
    }

    @Override
    public Ticker ticker() {
        return world.ticker;
    }

    @Override
    public boolean inEventLoop() {
        return actor.isActing();
    }

    @Override
    public boolean inEventLoop(Thread thread) {
        return actor.isActing();
    }

    @Override
    public boolean isShuttingDown() {
        return ending;
    }

    @Override
    public boolean isShutdown() {
        return ended;
    }

    @Override
    public boolean isTerminated() {
        return ended;
    }

    @Override
    public <V> ScheduledFuture<V> schedule(Callable<V> callable, long delay, TimeUnit unit) {
        refuseEnded();
        return super.schedule(callable, delay, unit);
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable command, long delay, TimeUnit unit) {
        refuseEnded();
        return super.schedule(command, delay, unit);
    }

    private void refuseEnded() {
        if (ended) {
            throw new RejectedExecutionException("the loop has ended");
        }
    }

    @Override
    public EventLoopGroup parent() {
        return (EventLoopGroup) super.parent();
    }

    @Override
    public EventLoop next() {
        return this;
    }

    @Override
    public ChannelFuture register(Channel channel) {
        return register(new DefaultChannelPromise(channel, this));
    }

    @Override
    public ChannelFuture register(ChannelPromise promise) {
        promise.channel().unsafe().register(this, promise);
        return promise;
    }

    @Override
    @Deprecated
    public ChannelFuture register(Channel channel, ChannelPromise promise) {
        channel.unsafe().register(this, promise);
        return promise;
    }

    @Override
    @Deprecated
    public void shutdown() {
        end();
    }

    @Override
    public Future<?> shutdownGracefully(long quietPeriod, long timeout, TimeUnit unit) {
        end();
        return terminationFuture();
    }

    @Override
    public Future<?> terminationFuture() {
        throw new UnsupportedOperationException("nobody waits in a simulation");
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        throw new UnsupportedOperationException("nobody waits in a simulation");
    }
}
