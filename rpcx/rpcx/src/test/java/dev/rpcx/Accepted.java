package dev.rpcx;

import dev.rpcx.internal.io.Loops;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInitializer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * A connection to a listening port that a test has bound: the one channel handler at this end, and the peer at the
 * other end.
 */
public record Accepted<H extends ChannelHandler>(H handler, RawPeer peer) {
    private static final int PATIENCE_SECONDS = 10;

    /** @param makes makes the handler of the new channel */
    public static <H extends ChannelHandler> Accepted<H> by(
            Loops loops, ServerBootstrap server, Function<Channel, H> makes) throws Exception {
        CompletableFuture<H> accepted = new CompletableFuture<>();
        Channel listening = loops.bind(
                        server.childHandler(new ChannelInitializer<>() {
                            @Override
                            protected void initChannel(Channel channel) {
                                H made = makes.apply(channel);
                                channel.pipeline().addLast(made);
                                accepted.complete(made);
                            }
                        }),
                        "127.0.0.1",
                        0)
                .channel();
        RawPeer peer = new RawPeer(loops.port(listening.localAddress()));
        return new Accepted<>(accepted.get(PATIENCE_SECONDS, TimeUnit.SECONDS), peer);
    }
}
