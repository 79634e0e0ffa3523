package dev.rpcx.internal.wire;

import dev.rpcx.testing.Faults;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import java.util.concurrent.TimeUnit;

/**
 * Simulates a bad network within the pipeline of a client's connection, for tests. This class works over sockets and in
 * process. When the channel ends, the delayed frames from the server are passed on before the end is reported, unless a
 * fault has cut the connection. Delayed frames to the server are passed on at a half-close, but are lost at an
 * immediate close. Only the event loop uses this class.
 */
public final class FaultyPipe extends ChannelDuplexHandler {
    private final Way up;
    private final Way down;
    private boolean cut;

    /**
     * Creates the simulation for one connection.
     *
     * @param connection number of the connection, counted from 0 in the order in which the client opened its
     *     connections
     */
    public FaultyPipe(Faults faults, long connection) {
        up = new Way(faults, connection, true);
        down = new Way(faults, connection, false);
    }

    @Override
    public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
        ByteBuf bytes = (ByteBuf) message;
        if (bytes.isReadable()) {
            up.add(ctx, bytes);
        } else {
            // An empty buffer can be the last write before the output ends, so the delayed frames are passed on before
            // this buffer. Empty buffers are also written while the socket takes no bytes. They end a delay early,
            // which is accepted.
            up.passOn(ctx, true);
            ctx.write(message, promise);
        }
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        down.add(ctx, (ByteBuf) message);
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        down.passOn(ctx, true);
        ctx.fireChannelInactive();
    }

    private final class Way {
        private final FaultyFrames frames;
        private final boolean isUp;
        private boolean isWaiting;

        Way(Faults faults, long connection, boolean up) {
            frames = new FaultyFrames(faults, connection, up);
            isUp = up;
        }

        void add(ChannelHandlerContext ctx, ByteBuf arrived) {
            try {
                frames.add(arrived);
            } finally {
                arrived.release();
            }
            passOn(ctx, false);
        }

        /**
         * Passes on the frames whose time has come. If {@code ends} is true, passes on all frames, because the channel
         * has ended or may be about to end.
         */
        void passOn(ChannelHandlerContext ctx, boolean ends) {
            for (FaultyFrames.Due due = frames.peek(); due != null && !cut; due = frames.peek()) {
                long wait = due.atNanos() - System.nanoTime();
                if (wait > 0 && !ends) {
                    openAfter(wait, ctx);
                    return;
                }
                frames.poll();
                ByteBuf frame = due.frame();
                if (frame == null) {
                    cut = true;
                    // the frames that were passed on before this simulated cut have not been flushed yet
                    ctx.flush();
                    ctx.close();
                } else if (isUp) {
                    ctx.write(frame);
                } else {
                    ctx.fireChannelRead(frame);
                }
            }
        }

        private void openAfter(long nanos, ChannelHandlerContext ctx) {
            if (!isWaiting) {
                isWaiting = true;
                ctx.executor().schedule(() -> open(ctx), nanos, TimeUnit.NANOSECONDS);
            }
        }

        private void open(ChannelHandlerContext ctx) {
            isWaiting = false;
            passOn(ctx, false);
            ctx.flush();
            ctx.fireChannelReadComplete();
        }
    }
}
