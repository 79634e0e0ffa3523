package dev.rpcx;

import io.netty.channel.AbstractServerChannel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelId;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelConfig;
import io.netty.channel.EventLoop;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/** A server of a {@link SimNetwork} listens with this channel. */
final class SimServerChannel extends AbstractServerChannel implements SimNetwork.Listener, SimLoop.Io {
    private final SimPlatform platform;
    private final ChannelConfig config;
    private final ArrayDeque<SimNetwork.End> waiting = new ArrayDeque<>();
    private @Nullable InetSocketAddress address;
    private boolean open = true;
    private boolean queued;

    SimServerChannel(SimPlatform platform) {
        this.platform = platform;
        this.config = new DefaultChannelConfig(this);
    }

    @Override
    protected ChannelId newId() {
        return new SimChannel.Id(SimWorld.current().nextChannel());
    }

    @Override
    public void onConnection(SimNetwork.End end) {
        waiting.add(end);
        if (!queued) {
            queued = true;
            ((SimLoop) eventLoop()).ready(this);
        }
    }

    @Override
    public void handle() {
        queued = false;
        if (!open) {
            return;
        }
        for (SimNetwork.End end = waiting.poll(); end != null; end = waiting.poll()) {
            pipeline().fireChannelRead(new SimChannel(platform, this, end));
        }
        pipeline().fireChannelReadComplete();
    }

    @Override
    protected void doBind(SocketAddress local) throws IOException {
        platform.network.listen((InetSocketAddress) local, this);
        address = (InetSocketAddress) local;
    }

    @Override
    protected void doClose() {
        open = false;
        if (address != null) {
            platform.network.unlisten(address);
        }
        for (SimNetwork.End end = waiting.poll(); end != null; end = waiting.poll()) {
            end.link.reset();
            end.close();
        }
    }

    @Override
    protected void doBeginRead() {}

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
    protected boolean isCompatible(EventLoop loop) {
        return loop instanceof SimLoop;
    }

    @Override
    protected @Nullable SocketAddress localAddress0() {
        return address;
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
        return open && address != null;
    }
}
