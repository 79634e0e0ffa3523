package dev.rpcx;

import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.ServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The event loops of one client or server: on Linux epoll's own, elsewhere Java's. Threads start when first needed. */
final class Loops {
    private static final boolean EPOLL = Epoll.isAvailable();

    final EventLoopGroup group;

    Loops(int count, String name) {
        AtomicInteger made = new AtomicInteger();
        IoHandlerFactory io = EPOLL ? CloseWatch.factory() : NioIoHandler.newFactory();
        ThreadFactory threads = task -> new LoopThread(task, name + "-" + made.incrementAndGet());
        group = new MultiThreadIoEventLoopGroup(count, threads, io);
    }

    static Class<? extends SocketChannel> socket() {
        return EPOLL ? EpollSocketChannel.class : NioSocketChannel.class;
    }

    static Class<? extends ServerSocketChannel> serverSocket() {
        return EPOLL ? EpollServerSocketChannel.class : NioServerSocketChannel.class;
    }

    /** Ends the threads, and returns when they have ended. Not on one of them. */
    void close() {
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        boolean interrupted = false;
        while (!group.isTerminated()) {
            try {
                group.awaitTermination(1, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
