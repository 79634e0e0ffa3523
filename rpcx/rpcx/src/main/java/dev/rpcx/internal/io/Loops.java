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
 * Event loops of a server or of clients, and the channels that listen and connect on these loops. The channels are
 * sockets or in-process channels, whose ports exist only within this process. Sockets use epoll on a Linux for which
 * Netty's native library can be loaded, and Java NIO elsewhere. The thread of a loop starts with the first task of the
 * loop.
 */
public class Loops {
    /** Prefix of the thread names of the clients' event loops, such as {@code rpcx-client-1}. */
    public static final String CLIENT = "rpcx-client";

    /**
     * Allocator of the buffers for sockets. Netty's default, the adaptive allocator, frees direct memory on event
     * loops. On newer JVMs, a loop that frees direct memory stops until all threads of the JVM have confirmed that they
     * do not use the memory. In a test with ten connections and results of 200 kB, PINGs of other connections took 0.9
     * to 7.3 s with the adaptive allocator, and 13 to 466 ms with the pooled one.
     */
    private static final ByteBufAllocator BUFFERS = PooledByteBufAllocator.DEFAULT;

    private static final boolean EPOLL = Epoll.isAvailable();

    private static final int SMALL_PAGE_BYTES = 4096;

    static {
        allocateFirstChunk();
    }

    /**
     * Allocates Netty's first chunk of memory on the thread that builds the first client or starts the first server of
     * the process. Netty reports each chunk to the JDK's Flight Recorder, and the first report takes 300 ms to 1 s. On
     * an event loop, this delay would hold up all connections.
     */
    private static void allocateFirstChunk() {
        new PooledByteBufAllocator(false, 1, 0, SMALL_PAGE_BYTES, 0, 0, 0, false)
                .heapBuffer(1)
                .release();
    }

    /** First port that is tried if an in-process server asks for any free port. */
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

    /** Creates event loops for sockets. Host names are resolved by the given name servers instead of the system's. */
    public static Loops withNameServers(List<InetSocketAddress> nameServers, int count, String name) {
        return new Loops(group(count, name, false), false, nameServers);
    }

    private static EventLoopGroup group(int count, String name, boolean inProcess) {
        // Numbers the threads. Any thread can start an event loop, by the first task or the end of the loop, and then
        // takes the next number for the loop's thread.
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
     * Event loop that runs tasks for about 1 ms before the loop polls its sockets again. Netty checks this limit only
     * after every 64 tasks, so slow tasks can exceed the limit. Netty's default of 1 s would be too long, because tasks
     * can follow one another without end: each task of a stream's publisher adds the next one. No task is lost when the
     * loop ends, see {@link LoopTasks}.
     */
    private static final class Loop extends SingleThreadIoEventLoop {
        private static final long MAX_TASKS_MILLIS = 1;
        private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

        Loop(IoEventLoopGroup parent, Executor executor, IoHandlerFactory io) {
            super(parent, executor, io, Integer.MAX_VALUE, RejectedExecutionHandlers.reject(), MAX_TASKS_MILLIS);
        }

        /**
         * Runs this event loop until the loop is shut down, even if Netty's {@code run} throws. If memory has run out,
         * Netty can throw while it logs an exception. Without this method, the loop would end, and its connections
         * would no longer be served.
         */
        @Override
        protected void run() {
            while (!runToEnd()) {
                try {
                    // the loop runs again after this pause, and finds the remaining sockets and tasks
                    LockSupport.parkNanos(PAUSE_NANOS);
                } catch (Throwable stillNoMemory) {
                    // even parkNanos can fail, for example if there is no memory to load a class
                }
            }
        }

        /**
         * Runs Netty's event loop until the loop ends.
         *
         * @return true if the loop has been shut down; false if the loop has ended with an exception
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
         * Tells callers that their calls have ended, if this has failed before for lack of memory. First pauses the
         * loop for 1 ms. Does nothing if there are no such callers. Netty calls this method after each round of the
         * loop, even if there are no tasks.
         */
        @Override
        protected void afterRunningAllTasks() {
            if (Thread.currentThread() instanceof LoopThread loop && loop.hasUntold()) {
                LockSupport.parkNanos(PAUSE_NANOS);
                loop.tellUntold();
            }
        }

        /**
         * Returns whether there are tasks, or callers that could not be notified for lack of memory. If so, Netty polls
         * the sockets without waiting.
         */
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
     * Limit for the unsent bytes that Linux holds for a socket: 128 KiB. Linux accepts more bytes only while fewer than
     * 128 KiB are unsent. Without this limit, Linux accepts some megabytes, and a PING waits behind all of them. With
     * this limit, Linux also accepts more bytes sooner when a slow peer reads, so this side notices sooner that the
     * peer reads. Source: tcp(7), TCP_NOTSENT_LOWAT.
     */
    private static final long MAX_UNSENT_BYTES = 1 << 17;

    public Bootstrap client() {
        Bootstrap bootstrap = new Bootstrap().group(group);
        if (inProcess) {
            return bootstrap.channel(LocalChannel.class);
        }
        if (EPOLL) {
            bootstrap.option(EpollChannelOption.TCP_NOTSENT_LOWAT, MAX_UNSENT_BYTES);
        }
        return bootstrap
                .channel(EPOLL ? EpollSocketChannel.class : NioSocketChannel.class)
                .resolver(names)
                .option(ChannelOption.ALLOCATOR, BUFFERS)
                .option(ChannelOption.TCP_NODELAY, true);
    }

    /**
     * Returns the address to which a client connects. Host names are not resolved here. In-process channels use only
     * the port.
     */
    public SocketAddress remote(String host, int port) {
        if (inProcess) {
            return new LocalAddress("rpcx-" + port);
        }
        boolean literal = NetUtil.createInetAddressFromIpAddressString(host) != null;
        return literal ? new InetSocketAddress(host, port) : InetSocketAddress.createUnresolved(host, port);
    }

    /** Returns the address on which a server listens. Blocks while a host name is resolved. */
    private SocketAddress local(String host, int port) {
        return inProcess ? new LocalAddress("rpcx-" + port) : new InetSocketAddress(host, port);
    }

    public ServerBootstrap server() {
        ServerBootstrap bootstrap = new ServerBootstrap().group(group);
        if (inProcess) {
            return bootstrap.channel(LocalServerChannel.class);
        }
        if (EPOLL) {
            bootstrap.childOption(EpollChannelOption.TCP_NOTSENT_LOWAT, MAX_UNSENT_BYTES);
        }
        return bootstrap
                .channel(EPOLL ? EpollServerSocketChannel.class : NioServerSocketChannel.class)
                .option(ChannelOption.SO_BACKLOG, 1024)
                .option(ChannelOption.SO_REUSEADDR, true)
                .childOption(ChannelOption.ALLOCATOR, BUFFERS)
                .childOption(ChannelOption.TCP_NODELAY, true);
    }

    /**
     * Opens a channel that listens on an address, and blocks until the bind has succeeded or failed. Port 0 stands for
     * any free port.
     */
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
     * Returns the port on which a channel listens.
     *
     * @param bound local address of the channel that {@link #bind} has opened
     */
    public int port(SocketAddress bound) {
        return bound instanceof InetSocketAddress socket
                ? socket.getPort()
                : Integer.parseInt(((LocalAddress) bound).id().substring("rpcx-".length()));
    }

    /** Begins to shut the event loops down, and returns immediately. Their threads end soon after this call. */
    public void end() {
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }

    /**
     * Shuts the event loops down, and waits for the end of their threads, at most {@code maxNanos}. A thread that runs
     * user code ends only after the user code has returned. Must not be called on one of these threads.
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
