package dev.rpcx.internal.io;

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
 * Event loops of a server, of one client, or of several clients, and the kind of channels that they use: sockets,
 * through epoll on Linux and Java NIO elsewhere, or in-process channels, whose ports are known only within this
 * process. A thread starts when it is first needed.
 */
public class Loops {
    /** Beginning of the names of the threads of clients. A number follows. */
    public static final String CLIENT = "rpcx-client";

    /**
     * Allocator of the buffers for sockets. It is not Netty's default, the adaptive allocator, which frees direct
     * memory on event loops. On newer JVMs this stops the loop until all threads have answered. With ten connections
     * that got results of 200 kB, PINGs of other connections then took 0.9 to 7.3 s, and the heap ran out. With the
     * pooled allocator they took 13 to 466 ms.
     */
    private static final ByteBufAllocator BUFFERS = PooledByteBufAllocator.DEFAULT;

    private static final boolean EPOLL = Epoll.isAvailable();

    private static final int SMALL_PAGE_BYTES = 4096;

    static {
        allocateFirstChunk();
    }

    /**
     * Allocates a first chunk of memory on the thread that builds a client or a server. Netty reports each chunk to the
     * JDK's Flight Recorder, and the first report takes 300 ms to 1 s. It would hold up an event loop.
     */
    private static void allocateFirstChunk() {
        new PooledByteBufAllocator(false, 1, 0, SMALL_PAGE_BYTES, 0, 0, 0, false)
                .heapBuffer(1)
                .release();
    }

    /** First port that is tried for an in-process server that asks for no particular port. */
    private static final int FIRST_FREE_PORT = 49_152;

    private static final int MAX_PORT = 65_535;

    public final EventLoopGroup group;
    private final boolean inProcess;
    private final DnsAddresses names;

    public Loops(int count, String name, boolean inProcess) {
        this(group(count, name, inProcess), inProcess);
    }

    public Loops(EventLoopGroup group, boolean inProcess) {
        this(group, inProcess, List.of());
    }

    private Loops(EventLoopGroup group, boolean inProcess, List<InetSocketAddress> nameServers) {
        this.group = group;
        this.inProcess = inProcess;
        names = new DnsAddresses(nameServers);
    }

    /** Makes event loops for sockets. To resolve host names, they ask these name servers instead of the system's. */
    public static Loops withNameServers(List<InetSocketAddress> nameServers, int count, String name) {
        return new Loops(group(count, name, false), false, nameServers);
    }

    private static EventLoopGroup group(int count, String name, boolean inProcess) {
        AtomicInteger made = new AtomicInteger();
        IoHandlerFactory io =
                inProcess ? LocalIoHandler.newFactory() : EPOLL ? CloseWatch.factory() : NioIoHandler.newFactory();
        ThreadFactory threads = task -> ThreadFactories.loop(task, name + "-" + made.incrementAndGet());
        return new MultiThreadIoEventLoopGroup(count, threads, io) {
            @Override
            protected IoEventLoop newChild(Executor executor, IoHandlerFactory ioHandlerFactory, Object... args) {
                return new Loop(this, executor, ioHandlerFactory);
            }
        };
    }

    /**
     * Event loop that loses no task at its end, and that runs tasks for at most 1 ms before it polls its sockets again.
     * Netty's default is 1 s. Tasks may follow one another without end: each task of a stream's publisher adds the next
     * one.
     */
    private static final class Loop extends SingleThreadIoEventLoop {
        private static final long TASKS_MILLIS = 1;
        private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

        Loop(IoEventLoopGroup parent, Executor executor, IoHandlerFactory io) {
            super(parent, executor, io, Integer.MAX_VALUE, RejectedExecutionHandlers.reject(), TASKS_MILLIS);
        }

        /**
         * Keeps the loop running until it is shut down. If memory has run out, Netty may throw while it logs an
         * exception, and the loop would end without serving its connections any more.
         */
        @Override
        protected void run() {
            while (!runToEnd()) {
                try {
                    // the loop runs again after a pause, and then finds the remaining sockets and tasks
                    LockSupport.parkNanos(PAUSE_NANOS);
                } catch (Throwable stillNoMemory) {
                    // even the pause may fail, for example if there is no memory to load a class
                }
            }
        }

        /**
         * Runs the loop.
         *
         * @return true if the loop has been shut down; false if it has ended with an exception
         */
        private boolean runToEnd() {
            try {
                super.run();
                return true;
            } catch (Throwable notTold) {
                return false;
            }
        }

        /**
         * Notifies, after a pause, the callers that could not be notified for lack of memory. Netty calls this method
         * after each round of the loop, even if there are no tasks.
         */
        @Override
        protected void afterRunningAllTasks() {
            if (Thread.currentThread() instanceof LoopThread loop && loop.hasUntold()) {
                LockSupport.parkNanos(PAUSE_NANOS);
                loop.tellUntold();
            }
        }

        /** Returns true also while there are callers to be told: then the loop does not wait for sockets. */
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
     * Limit for the unsent bytes that Linux accepts for a socket. Without it, Linux accepts some megabytes, and then no
     * more until a third of them has been sent. With it, this side notices that a slow peer reads, and a PING or PONG
     * waits behind few bytes. Source: tcp(7), TCP_NOTSENT_LOWAT.
     */
    private static final long UNSENT_BYTES = 1 << 17;

    public Bootstrap client() {
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

    /** Returns the address to connect to. Does not resolve the host name. In-process channels use only the port. */
    public SocketAddress remote(String host, int port) {
        if (inProcess) {
            return new LocalAddress("rpcx-" + port);
        }
        boolean literal = NetUtil.createInetAddressFromIpAddressString(host) != null;
        return literal ? new InetSocketAddress(host, port) : InetSocketAddress.createUnresolved(host, port);
    }

    /** Returns the address to listen on. Blocks while a host name is looked up. */
    private SocketAddress local(String host, int port) {
        return inProcess ? new LocalAddress("rpcx-" + port) : new InetSocketAddress(host, port);
    }

    public ServerBootstrap server() {
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

    /** Listens at an address. Blocks until the bind has succeeded or failed. Port 0 stands for any free port. */
    public ChannelFuture bind(ServerBootstrap bootstrap, String host, int port) {
        if (!inProcess || port != 0) {
            return bootstrap.bind(local(host, port)).awaitUninterruptibly();
        }
        int free = FIRST_FREE_PORT;
        ChannelFuture bound = bootstrap.bind(local(host, free)).awaitUninterruptibly();
        while (!bound.isSuccess() && free < MAX_PORT) {
            free++;
            bound = bootstrap.bind(local(host, free)).awaitUninterruptibly();
        }
        return bound;
    }

    /**
     * Returns the port at which a channel listens.
     *
     * @param bound local address of the channel that {@link #bind} has opened
     */
    public int port(SocketAddress bound) {
        return bound instanceof InetSocketAddress socket
                ? socket.getPort()
                : Integer.parseInt(((LocalAddress) bound).id().substring("rpcx-".length()));
    }

    /** Begins the shutdown and returns immediately. The threads end soon afterwards. */
    public void end() {
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }

    /**
     * Ends the threads. Returns when they have ended, or after {@code maxNanos}: a thread that runs user code ends only
     * after that code has returned. Must not be called on one of these threads.
     */
    public void close(long maxNanos) {
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
