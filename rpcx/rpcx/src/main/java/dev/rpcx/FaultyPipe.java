package dev.rpcx;

import dev.rpcx.testing.Faults;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import java.util.ArrayDeque;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A bad network within a client's connection: for tests, on sockets and in process. On the connection's event loop. */
final class FaultyPipe extends ChannelDuplexHandler {
    private final Faults faults;
    private final Way up;
    private final Way down;

    /** @param connection which of the client's it is, from 0 */
    FaultyPipe(Faults faults, long connection) {
        this.faults = faults;
        this.up = new Way(faults.random(connection, true));
        this.down = new Way(faults.random(connection, false));
    }

    @Override
    public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
        ByteBuf bytes = (ByteBuf) message;
        if (!bytes.isReadable()) {
            // the last word of a connection that closes
            ctx.write(message, promise);
            return;
        }
        up.carry(ctx, bytes, ctx::write);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        down.carry(ctx, (ByteBuf) message, ctx::fireChannelRead);
    }

    /** One direction: cuts what passes into frames again, and lets each meet its fate. */
    private final class Way {
        private record Waiting(ByteBuf frame, long atNanos) {}

        private final Random random;
        private final ByteBuf bytes = Unpooled.buffer();
        private final ArrayDeque<Waiting> waiting = new ArrayDeque<>();
        private @Nullable ByteBuf held;
        private boolean greeted;
        private long openNanos = System.nanoTime();

        Way(Random random) {
            this.random = random;
        }

        void carry(ChannelHandlerContext ctx, ByteBuf arrived, Consumer<ByteBuf> on) {
            bytes.writeBytes(arrived);
            arrived.release();
            if (!greeted && bytes.readableBytes() >= Wire.PREFACE_BYTES) {
                greeted = true;
                on.accept(take(Wire.PREFACE_BYTES));
            }
            while (greeted) {
                int length = frameLength();
                if (length < 0) {
                    break;
                }
                pass(ctx, take(length), on);
            }
            bytes.discardReadBytes();
        }

        /** On the heap: a frame that is lost, or held when the connection ends, leaks nothing. */
        private ByteBuf take(int length) {
            return Unpooled.buffer(length).writeBytes(bytes, length);
        }

        /** With its header; -1 while it is not whole. */
        private int frameLength() {
            int length = 0;
            for (int i = 0; i < bytes.readableBytes(); i++) {
                byte b = bytes.getByte(bytes.readerIndex() + i);
                length |= (b & 0x7F) << 7 * i;
                if (b >= 0) {
                    int whole = i + 1 + length;
                    return bytes.readableBytes() >= whole ? whole : -1;
                }
            }
            return -1;
        }

        private void pass(ChannelHandlerContext ctx, ByteBuf frame, Consumer<ByteBuf> on) {
            if (!isOfCall(frame)) {
                deliver(ctx, frame, on);
                return;
            }
            // drawn for frames of calls alone: how many PINGs there are is the clock's affair, and not the seed's
            Faults.Fate fate = faults.fate(random);
            if (fate.isDelayed()) {
                openNanos = Math.max(openNanos, System.nanoTime())
                        + faults.delayedBy().toNanos();
            }
            if (fate.isCut()) {
                ctx.close();
            } else if (fate.isLate() && held == null && !fate.isLost()) {
                held = frame;
                return;
            } else if (!fate.isLost()) {
                // before it is delivered: whoever gets it reads it, and gives it back
                ByteBuf twin = fate.isDoubled() ? frame.copy() : null;
                deliver(ctx, frame, on);
                if (twin != null) {
                    deliver(ctx, twin, on);
                }
            }
            ByteBuf before = held;
            if (before != null) {
                held = null;
                deliver(ctx, before, on);
            }
        }

        private boolean isOfCall(ByteBuf frame) {
            int at = 0;
            while (frame.getByte(at) < 0) {
                at++;
            }
            // behind the length stands the head, behind that the call's id
            return frame.getInt(at + 2) != 0;
        }

        private void deliver(ChannelHandlerContext ctx, ByteBuf frame, Consumer<ByteBuf> on) {
            long wait = openNanos - System.nanoTime();
            if (waiting.isEmpty() && wait <= 0) {
                on.accept(frame);
                return;
            }
            waiting.add(new Waiting(frame, openNanos));
            if (waiting.size() == 1) {
                ctx.executor().schedule(() -> open(ctx, on), wait, TimeUnit.NANOSECONDS);
            }
        }

        private void open(ChannelHandlerContext ctx, Consumer<ByteBuf> on) {
            for (Waiting first = waiting.peek(); first != null; first = waiting.peek()) {
                long wait = first.atNanos() - System.nanoTime();
                if (wait > 0) {
                    ctx.executor().schedule(() -> open(ctx, on), wait, TimeUnit.NANOSECONDS);
                    break;
                }
                waiting.remove();
                on.accept(first.frame());
            }
            ctx.flush();
            ctx.fireChannelReadComplete();
        }
    }
}
