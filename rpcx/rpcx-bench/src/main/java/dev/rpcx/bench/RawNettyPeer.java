package dev.rpcx.bench;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.LengthFieldBasedFrameDecoder;
import io.netty.handler.flush.FlushConsolidationHandler;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Not a peer, but the upper bound for all peers: a length, an id and bytes are echoed on the event loop, with flush
 * consolidation. It has no Protobuf, no methods, no deadlines and no errors.
 */
record RawNettyPeer() implements Peer {
    private static final int MAX_FRAME_BYTES = 64 * 1024 * 1024;

    @Override
    public String name() {
        return "raw-netty";
    }

    @Override
    public boolean carriesRows() {
        return false;
    }

    private static IoHandlerFactory io() {
        return Epoll.isAvailable() ? EpollIoHandler.newFactory() : NioIoHandler.newFactory();
    }

    @Override
    public AutoCloseable serve(int port) throws Exception {
        EventLoopGroup group = new MultiThreadIoEventLoopGroup(io());
        Class<? extends ServerChannel> type =
                Epoll.isAvailable() ? EpollServerSocketChannel.class : NioServerSocketChannel.class;
        new ServerBootstrap()
                .group(group)
                .channel(type)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.pipeline()
                                .addLast(new FlushConsolidationHandler(256, true))
                                .addLast(new LengthFieldBasedFrameDecoder(MAX_FRAME_BYTES, 0, 4))
                                .addLast(new ChannelInboundHandlerAdapter() {
                                    @Override
                                    public void channelRead(ChannelHandlerContext context, Object frame) {
                                        context.writeAndFlush(frame, context.voidPromise());
                                    }
                                });
                    }
                })
                .bind("127.0.0.1", port)
                .sync();
        return () -> group.shutdownGracefully().sync();
    }

    @Override
    public Caller connect(int port) throws Exception {
        return new Client(port);
    }

    private static final class Client extends ChannelInboundHandlerAdapter implements Caller {
        private final EventLoopGroup group = new MultiThreadIoEventLoopGroup(1, io());
        private final ConcurrentHashMap<Integer, BiConsumer<@Nullable String, @Nullable Throwable>> inFlight =
                new ConcurrentHashMap<>();
        private final AtomicInteger ids = new AtomicInteger();
        private final Channel channel;

        Client(int port) throws Exception {
            channel = new Bootstrap()
                    .group(group)
                    .channel(Epoll.isAvailable() ? EpollSocketChannel.class : NioSocketChannel.class)
                    .option(ChannelOption.TCP_NODELAY, true)
                    .handler(new ChannelInitializer<>() {
                        @Override
                        protected void initChannel(Channel created) {
                            created.pipeline()
                                    .addLast(new FlushConsolidationHandler(256, true))
                                    .addLast(new LengthFieldBasedFrameDecoder(MAX_FRAME_BYTES, 0, 4))
                                    .addLast(Client.this);
                        }
                    })
                    .connect(new InetSocketAddress("127.0.0.1", port))
                    .sync()
                    .channel();
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf frame = (ByteBuf) message;
            BiConsumer<@Nullable String, @Nullable Throwable> callback = inFlight.remove(frame.getInt(4));
            String text = frame.toString(8, frame.readableBytes() - 8, StandardCharsets.UTF_8);
            frame.release();
            if (callback != null) {
                callback.accept(text, null);
            }
        }

        @Override
        public String hello(String text) throws Exception {
            CompletableFuture<String> reply = new CompletableFuture<>();
            hello(text, (answer, failure) -> reply.complete(answer));
            return reply.get();
        }

        @Override
        public void hello(String text, BiConsumer<@Nullable String, @Nullable Throwable> callback) {
            int id = ids.incrementAndGet();
            inFlight.put(id, callback);
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            ByteBuf frame = channel.alloc().buffer(8 + bytes.length);
            frame.writeInt(4 + bytes.length).writeInt(id).writeBytes(bytes);
            channel.writeAndFlush(frame, channel.voidPromise());
        }

        @Override
        public void close() {
            channel.close().awaitUninterruptibly();
            group.shutdownGracefully().awaitUninterruptibly();
        }
    }
}
