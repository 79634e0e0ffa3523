package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.channel.AbstractChannel;
import io.netty.channel.Channel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelId;
import io.netty.channel.ChannelMetadata;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.ConnectTimeoutException;
import io.netty.channel.DefaultChannelConfig;
import io.netty.channel.EventLoop;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.ClosedChannelException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A channel for a socket in a {@link SimNetwork}. It behaves as Netty's own channels do. For example, it can write only
 * a part of its output, and a read can stop anywhere.
 */
final class SimChannel extends AbstractChannel implements SimNetwork.Socket, SimLoop.Io {
    /**
     * Numbers channels in the order in which they are made, so that maps of channels have the same order in each run of
     * a seed.
     */
    record Id(int number) implements ChannelId {
        @Override
        public String asShortText() {
            return Integer.toString(number);
        }

        @Override
        public String asLongText() {
            return asShortText();
        }

        @Override
        public int compareTo(ChannelId other) {
            return Integer.compare(number, ((Id) other).number);
        }
    }

    private static final ChannelMetadata METADATA = new ChannelMetadata(false, 16);

    private final SimPlatform platform;
    private final ChannelConfig config;

    /** The end is null before the channel is connected. */
    private SimNetwork.@Nullable End end;

    private boolean open = true;
    private boolean readPending;
    private boolean waitsForRoom;
    private boolean hasRoom;
    private boolean queued;
    private @Nullable ChannelPromise connectPromise;
    private @Nullable Future<?> connectTimer;
    private SimNetwork.@Nullable End connected;
    private @Nullable IOException refused;

    /** Makes a channel of a client. */
    SimChannel(SimPlatform platform) {
        this(platform, null);
    }

    /** Makes a channel of a connection that a server has taken. */
    SimChannel(SimPlatform platform, @Nullable Channel parent, SimNetwork.End end) {
        this(platform, parent);
        this.end = end;
        end.socket(this);
    }

    private SimChannel(SimPlatform platform, @Nullable Channel parent) {
        super(parent, new Id(platform.world.nextChannel()));
        this.platform = platform;
        config = new DefaultChannelConfig(this) {
            @Override
            protected void autoReadCleared() {
                readPending = false;
            }
        };
        config.setAllocator(platform.allocator);
    }

    private void ready() {
        if (!queued && isRegistered()) {
            queued = true;
            ((SimLoop) eventLoop()).ready(this);
        }
    }

    // ---- called by the network

    @Override
    public void onConnected(SimNetwork.End own) {
        connected = own;
        ready();
    }

    @Override
    public void onRefused(IOException why) {
        refused = why;
        ready();
    }

    @Override
    public void onReadable() {
        ready();
    }

    @Override
    public void onWritable() {
        hasRoom = true;
        ready();
    }

    // ---- on the loop

    @Override
    public void handle() {
        queued = false;
        if (!open) {
            return;
        }
        if (connectPromise != null && (connected != null || refused != null)) {
            ((Unsafe) unsafe()).finishConnect(connectPromise);
        }
        SimNetwork.End own = end;
        if (open && own != null && hasRoom) {
            hasRoom = false;
            waitsForRoom = false;
            ((Unsafe) unsafe()).flush0();
        }
        // a channel that does not read learns of an error as well
        if (open && own != null && own.isReadable() && (readPending || own.isBroken())) {
            ((Unsafe) unsafe()).read(own);
        }
    }

    @Override
    protected void doBeginRead() {
        readPending = true;
        SimNetwork.End own = end;
        if (own != null && own.isReadable()) {
            ready();
        }
    }

    @Override
    protected void doWrite(ChannelOutboundBuffer in) throws Exception {
        SimNetwork.End own = end;
        if (own == null) {
            throw new ClosedChannelException();
        }
        for (Object message = in.current(); message != null; message = in.current()) {
            ByteBuf bytes = (ByteBuf) message;
            if (bytes.isReadable()) {
                int before = bytes.readableBytes();
                int written = own.write(bytes);
                in.progress(written);
                if (written < before) {
                    waitsForRoom = true;
                    return;
                }
            }
            in.remove();
        }
    }

    @Override
    protected void doRegister(ChannelPromise promise) {
        ((SimLoop) eventLoop()).add(this);
        promise.setSuccess();
    }

    @Override
    protected void doDeregister() {
        ((SimLoop) eventLoop()).remove(this);
    }

    @Override
    protected void doClose() {
        open = false;
        if (end != null) {
            end.close();
        } else if (connected != null) {
            connected.close();
        }
        if (connectTimer != null) {
            connectTimer.cancel(false);
        }
        ChannelPromise connecting = connectPromise;
        connectPromise = null;
        if (connecting != null) {
            connecting.tryFailure(new ClosedChannelException());
        }
    }

    @Override
    protected void doDisconnect() {
        doClose();
    }

    @Override
    protected void doBind(SocketAddress local) {
        throw new UnsupportedOperationException("a client's socket is not bound");
    }

    @Override
    protected AbstractUnsafe newUnsafe() {
        return new Unsafe();
    }

    @Override
    protected boolean isCompatible(EventLoop loop) {
        return loop instanceof SimLoop;
    }

    @Override
    protected @Nullable SocketAddress localAddress0() {
        return end == null ? null : end.local;
    }

    @Override
    protected @Nullable SocketAddress remoteAddress0() {
        return end == null ? null : end.remote;
    }

    @Override
    public ChannelConfig config() {
        return config;
    }

    @Override
    public boolean isOpen() {
        return open;
    }

    @Override
    public boolean isActive() {
        return open && end != null;
    }

    @Override
    public ChannelMetadata metadata() {
        return METADATA;
    }

    private final class Unsafe extends AbstractUnsafe {
        @Override
        public void connect(SocketAddress remote, @Nullable SocketAddress local, ChannelPromise promise) {
            if (!promise.setUncancellable() || !ensureOpen(promise)) {
                return;
            }
            connectPromise = promise;
            connectTimer = eventLoop()
                    .schedule(
                            () -> {
                                if (promise.tryFailure(
                                        new ConnectTimeoutException("connection timed out: " + remote))) {
                                    connectPromise = null;
                                    close(voidPromise());
                                }
                            },
                            config.getConnectTimeoutMillis(),
                            TimeUnit.MILLISECONDS);
            platform.network.connect(SimChannel.this, platform.host, (InetSocketAddress) remote);
        }

        void finishConnect(ChannelPromise promise) {
            connectPromise = null;
            if (connectTimer != null) {
                connectTimer.cancel(false);
            }
            if (connected == null) {
                promise.tryFailure(java.util.Objects.requireNonNull(refused));
                close(voidPromise());
                return;
            }
            end = connected;
            end.socket(SimChannel.this);
            if (promise.trySuccess()) {
                pipeline().fireChannelActive();
            } else {
                close(voidPromise());
            }
        }

        void read(SimNetwork.End own) {
            boolean ended = false;
            IOException broken = null;
            int most = 1 + platform.world.random.nextInt(4);
            for (int i = 0; i < most && open; i++) {
                ByteBuf bytes = alloc().ioBuffer(platform.readBytes());
                int read;
                try {
                    read = own.read(bytes, bytes.writableBytes());
                } catch (IOException e) {
                    broken = e;
                    read = 0;
                }
                if (read <= 0) {
                    bytes.release();
                    ended = read < 0;
                    break;
                }
                readPending = false;
                pipeline().fireChannelRead(bytes);
            }
            pipeline().fireChannelReadComplete();
            if (broken != null) {
                pipeline().fireExceptionCaught(broken);
            }
            if (open && (ended || broken != null)) {
                close(voidPromise());
            } else if (open && readPending && own.isReadable()) {
                ready();
            }
        }

        @Override
        protected void flush0() {
            if (!waitsForRoom) {
                super.flush0();
            }
        }
    }
}
