package dev.rpcx;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoEventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SingleThreadIoEventLoop;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollChannelOption;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.local.LocalAddress;
import io.netty.channel.local.LocalChannel;
import io.netty.channel.local.LocalIoHandler;
import io.netty.channel.local.LocalServerChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.util.NetUtil;
import io.netty.util.concurrent.RejectedExecutionHandlers;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * The event loops of one client or server, and what they listen on and connect to: sockets, on Linux epoll's own and elsewhere Java's; or
 * ports that are numbers of this process only. Threads start when first needed.
 */
class Loops {
    /** What the threads of clients are called, before their number. */
    static final String CLIENT = "rpcx-client";

    /**
     * Where what goes to sockets and comes from them lies. Netty's own choice, the adaptive allocator, frees a chunk of
     * direct memory while a loop runs, which on newer JVMs stops that loop until all threads have answered: with
     * results of 200 kB for ten connections of one address, the PINGs of others took 0.9 to 7.3 s and the heap ran out;
     * with this one, which keeps its chunks, 13 to 466 ms.
     */
    private static final ByteBufAllocator BUFFERS = PooledByteBufAllocator.DEFAULT;

    private static final boolean EPOLL = Epoll.isAvailable();

    private static final int SMALL_PAGE_BYTES = 4096;

    static {
        tellOfFirstChunk();
    }

    /**
     * Netty tells the JDK's Flight Recorder of each chunk, which makes the recorder ready at the first one: some 300
     * ms, and a second on a busy machine. That is for the thread that builds a client or a server, since no deadline is
     * looked at while an event loop does it. The chunk is a small one on the heap, and garbage afterwards.
     */
    private static void tellOfFirstChunk() {
        new PooledByteBufAllocator(false, 1, 0, SMALL_PAGE_BYTES, 0, 0, 0, false)
                .heapBuffer(1)
                .release();
    }

    /** The first port that an in-process server gets which does not ask for one. */
    private static final int FIRST_FREE_PORT = 49_152;

    private static final int MOST_PORT = 65_535;

    final EventLoopGroup group;
    private final boolean inProcess;
    private final DnsAddresses names;

    Loops(int count, String name, boolean inProcess) {
        this(group(count, name, inProcess), inProcess);
    }

    Loops(EventLoopGroup group, boolean inProcess) {
        this(group, inProcess, List.of());
    }

    private Loops(EventLoopGroup group, boolean inProcess, List<InetSocketAddress> nameServers) {
        this.group = group;
        this.inProcess = inProcess;
        names = new DnsAddresses(nameServers);
    }

    /** For sockets, with other name servers than the system's. */
    static Loops asking(List<InetSocketAddress> nameServers, int count, String name) {
        return new Loops(group(count, name, false), false, nameServers);
    }

    private static EventLoopGroup group(int count, String name, boolean inProcess) {
        AtomicInteger made = new AtomicInteger();
        IoHandlerFactory io =
                inProcess ? LocalIoHandler.newFactory() : EPOLL ? CloseWatch.factory() : NioIoHandler.newFactory();
        ThreadFactory threads = task -> OwnThreads.loop(task, name + "-" + made.incrementAndGet());
        return new MultiThreadIoEventLoopGroup(count, threads, io) {
            @Override
            protected IoEventLoop newChild(Executor executor, IoHandlerFactory ioHandlerFactory, Object... args) {
                return new Loop(this, executor, ioHandlerFactory);
            }
        };
    }

    /**
     * Loses no task at its end. Sockets are looked at after a millisecond of tasks at the latest: what a stream's
     * publisher does on the loop gives the loop its next task, and Netty looks after a second otherwise.
     */
    private static final class Loop extends SingleThreadIoEventLoop {
        private static final long TASKS_MILLIS = 1;
        private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

        Loop(IoEventLoopGroup parent, Executor executor, IoHandlerFactory io) {
            super(parent, executor, io, Integer.MAX_VALUE, RejectedExecutionHandlers.reject(), TASKS_MILLIS);
        }

        /**
         * Nothing ends the loop but its end. Where the memory is at its end, Netty fails over telling of what a task or a
         * connection has thrown, and then the loop would end in silence: its connections would neither be read nor
         * closed, and no deadline of theirs would be looked at.
         */
        @Override
        protected void run() {
            while (!runToEnd()) {
                try {
                    // sockets and tasks that are left are told of again
                    LockSupport.parkNanos(PAUSE_NANOS);
                } catch (Throwable stillNoMemory) {
                    // such as for the class that is called
                }
            }
        }

        /** @return whether the loop has come to its end; otherwise something was thrown, of which nobody can be told */
        private boolean runToEnd() {
            try {
                super.run();
                return true;
            } catch (Throwable notTold) {
                return false;
            }
        }

        /** Comes after each look at tasks and sockets, also where there are no tasks. */
        @Override
        protected void afterRunningAllTasks() {
            if (Thread.currentThread() instanceof LoopThread loop && loop.hasUntold()) {
                LockSupport.parkNanos(PAUSE_NANOS);
                loop.tellUntold();
            }
        }

        /** The loop does not wait for sockets while somebody has to be told. */
        @Override
        protected boolean hasTasks() {
            return super.hasTasks() || Thread.currentThread() instanceof LoopThread loop && loop.hasUntold();
        }

        @Override
        protected Queue<Runnable> newTaskQueue(int maxTasks) {
            LoopTasks tasks = new LoopTasks();
            tasks.of(this);
            return tasks;
        }
    }

    /**
     * Linux takes more for a socket only while it has less than this that has not been sent; otherwise it takes some
     * megabytes, and more again only when a third of those have gone. So a peer that reads slowly is seen to read, and
     * a PING or PONG waits behind little. Source: tcp(7), TCP_NOTSENT_LOWAT.
     */
    private static final long UNSENT_BYTES = 1 << 17;

    Bootstrap client() {
        Bootstrap bootstrap = new Bootstrap().group(group);
        if (inProcess) {
            return bootstrap.channel(LocalChannel.class);
        }
        if (EPOLL) {
            bootstrap.option(EpollChannelOption.TCP_NOTSENT_LOWAT, UNSENT_BYTES);
        }
        return bootstrap
                .channel(EPOLL ? EpollSocketChannel.class : NioSocketChannel.class)
                .resolver(names)
                .option(ChannelOption.ALLOCATOR, BUFFERS)
                .option(ChannelOption.TCP_NODELAY, true);
    }

    /**
     * Where to connect to; a name is not looked up here. In one process a port stands for itself: whatever the host, it
     * is this process.
     */
    SocketAddress remote(String host, int port) {
        if (inProcess) {
            return new LocalAddress("rpcx-" + port);
        }
        boolean literal = NetUtil.createInetAddressFromIpAddressString(host) != null;
        return literal ? new InetSocketAddress(host, port) : InetSocketAddress.createUnresolved(host, port);
    }

    /** Where to listen; blocks while a name is looked up. */
    private SocketAddress local(String host, int port) {
        return inProcess ? new LocalAddress("rpcx-" + port) : new InetSocketAddress(host, port);
    }

    ServerBootstrap server() {
        ServerBootstrap bootstrap = new ServerBootstrap().group(group);
        if (inProcess) {
            return bootstrap.channel(LocalServerChannel.class);
        }
        if (EPOLL) {
            bootstrap.childOption(EpollChannelOption.TCP_NOTSENT_LOWAT, UNSENT_BYTES);
        }
        return bootstrap
                .channel(EPOLL ? EpollServerSocketChannel.class : NioServerSocketChannel.class)
                .option(ChannelOption.SO_BACKLOG, 1024)
                .option(ChannelOption.SO_REUSEADDR, true)
                .childOption(ChannelOption.ALLOCATOR, BUFFERS)
                .childOption(ChannelOption.TCP_NODELAY, true);
    }

    /** Listens; blocks until that has worked or failed. Port 0 is any that is free. */
    ChannelFuture bind(ServerBootstrap bootstrap, String host, int port) {
        if (!inProcess || port != 0) {
            return bootstrap.bind(local(host, port)).awaitUninterruptibly();
        }
        int free = FIRST_FREE_PORT;
        ChannelFuture bound = bootstrap.bind(local(host, free)).awaitUninterruptibly();
        while (!bound.isSuccess() && free < MOST_PORT) {
            free++;
            bound = bootstrap.bind(local(host, free)).awaitUninterruptibly();
        }
        return bound;
    }

    /** Of what {@link #bind} has given. */
    int port(SocketAddress bound) {
        return bound instanceof InetSocketAddress socket
                ? socket.getPort()
                : Integer.parseInt(((LocalAddress) bound).id().substring("rpcx-".length()));
    }

    /** The threads end soon. */
    void end() {
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }

    /**
     * Ends the threads, and returns when they have ended, or after this time: a thread that is held up by the user's
     * code ends with that. Not on one of them.
     */
    void close(long maxNanos) {
        end();
        boolean interrupted = false;
        long begin = System.nanoTime();
        for (long left = maxNanos; left > 0 && !group.isTerminated(); left = maxNanos - (System.nanoTime() - begin)) {
            try {
                group.awaitTermination(Math.min(left, TimeUnit.SECONDS.toNanos(1)), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
