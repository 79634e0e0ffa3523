package dev.rpcx;

import io.netty.channel.IoHandle;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.IoOps;
import io.netty.channel.IoRegistration;
import io.netty.channel.epoll.EpollIoHandle;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.unix.FileDescriptor;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Epoll for one event loop, which learns of every socket that is about to be closed: whatever closes one, the peer, an error, the loop's
 * end, it is first taken off the loop. Where a {@link WriteTurn} has a thread at the socket, it is waited for: the number of a closed
 * descriptor is soon another connection's.
 */
final class CloseWatch implements IoHandler {
    private final IoHandler epoll;

    /** The loop's alone. */
    private final Map<FileDescriptor, WriteTurn> turns = new HashMap<>();

    private CloseWatch(IoHandler epoll) {
        this.epoll = epoll;
    }

    static IoHandlerFactory factory() {
        IoHandlerFactory plain = EpollIoHandler.newFactory();
        return new IoHandlerFactory() {
            @Override
            public IoHandler newHandler(ThreadAwareExecutor executor) {
                return new CloseWatch(plain.newHandler(executor));
            }
        };
    }

    /** The watch of the event loop that this is called on; null if it has none. */
    static @Nullable CloseWatch current() {
        return Thread.currentThread() instanceof LoopThread loop ? loop.watch : null;
    }

    /** The turn is told before this socket closes. On the event loop. */
    void tell(FileDescriptor socket, WriteTurn turn) {
        turns.put(socket, turn);
    }

    @Override
    public void initialize() {
        if (Thread.currentThread() instanceof LoopThread loop) {
            loop.watch = this;
        }
        epoll.initialize();
    }

    @Override
    public int run(IoHandlerContext context) {
        return epoll.run(context);
    }

    @Override
    public void prepareToDestroy() {
        epoll.prepareToDestroy();
    }

    @Override
    public void destroy() {
        epoll.destroy();
    }

    @Override
    public IoRegistration register(IoHandle handle) throws Exception {
        return new Registration(epoll.register(handle), ((EpollIoHandle) handle).fd());
    }

    @Override
    public void wakeup() {
        epoll.wakeup();
    }

    @Override
    public boolean isCompatible(Class<? extends IoHandle> type) {
        return epoll.isCompatible(type);
    }

    private final class Registration implements IoRegistration {
        private final IoRegistration registration;
        private final FileDescriptor socket;

        Registration(IoRegistration registration, FileDescriptor socket) {
            this.registration = registration;
            this.socket = socket;
        }

        @Override
        public <T> T attachment() {
            return registration.attachment();
        }

        @Override
        public long submit(IoOps ops) {
            return registration.submit(ops);
        }

        @Override
        public boolean isValid() {
            return registration.isValid();
        }

        @Override
        public boolean cancel() {
            WriteTurn turn = turns.remove(socket);
            if (turn != null) {
                turn.end();
            }
            return registration.cancel();
        }
    }
}
