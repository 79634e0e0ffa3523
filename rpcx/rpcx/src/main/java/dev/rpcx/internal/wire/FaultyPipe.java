package dev.rpcx.internal.wire;

import dev.rpcx.testing.Faults;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import java.util.concurrent.TimeUnit;

/**
 * Simulates a bad network within the pipeline of a client's connection, for tests. Works over sockets and in process.
 * When the channel ends, delayed frames are passed on before its end. Event loop only.
 */
public final class FaultyPipe extends ChannelDuplexHandler {
    private final Way up;
    private final Way down;
    private boolean cut;

    /** Creates the bad network of the client's connection with this number, counted from 0. */
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
            // an empty buffer may be the last write before the output ends, so the delayed frames are passed on before
            // it
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

        /** Passes on the frames that are due; if the channel {@code ends}, all frames. */
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
                    // the frames before the end have not been flushed yet
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
