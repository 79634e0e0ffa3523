package dev.rpcx.internal.wire;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.MemoryReserve;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.io.ReadingClock;
import dev.rpcx.internal.io.SocketQueue;
import dev.rpcx.internal.io.TcpKeepAlive;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One connection of the classic wire, at a client or a server. It reads frames, writes chunks, and looks now and then
 * at whether the peer still does its part. The classic wire has no ping, so these rules stand in for it: a frame that
 * has begun goes on and ends, output that waits for the peer leaves, and a connection that nobody uses ends. All state
 * belongs to the event loop.
 */
public abstract class ClassicConnection extends ChannelInboundHandlerAdapter implements ClassicFrames.Reader {
    /**
     * Longest silence within a frame; shorter if the keep-alive time is shorter. A frame also has this time in addition
     * to what {@link #FRAME_BYTES_PER_SECOND} gives it. Source: nginx's client_header_timeout, shortened.
     */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Lowest rate at which a frame has to arrive. Source: Apache's mod_reqtimeout has 500, with which the largest frame
     * takes two hours; here it takes 256 s.
     */
    private static final long FRAME_BYTES_PER_SECOND = 16 * 1024;

    /**
     * Size of the chunks in which a frame leaves, so that a peer that reads a large frame slowly can be distinguished
     * from a peer that does not read.
     */
    private static final int CHUNK_BYTES = 16 * 1024;

    /**
     * Memory in bytes that a frame takes in addition to its bytes while it waits to leave: its buffer, its entry in the
     * queue and its listener.
     */
    private static final int QUEUED_BYTES = 256;

    /**
     * Number of chunks that leave before a server that has paused reading reads once more. Each of these chunks may
     * take the keep-alive time of the server.
     */
    static final int CHUNKS_IN_PAUSE = 4;

    public static final int BYTES_IN_PAUSE = CHUNKS_IN_PAUSE * CHUNK_BYTES;

    /** Number of looks in {@code silentNanos}, the shortest of the times that they check. */
    private static final int LOOKS = 4;

    public final Channel channel;
    private final boolean isClient;
    private final EventLoop loop;
    private final ClassicFrames frames;
    private final long keepAliveNanos;
    private final long silentNanos;
    private final long idleNanos;
    private final Runnable look = this::look;
    private final Charge timers;

    /** Time from one look to the next, unless the event loop is held up. */
    private final long lookNanos;

    private @Nullable ScheduledFuture<?> timer;
    private long lookedNanos;

    /** Time at which the connection was established. */
    private long upSinceNanos;

    /** Time at which something last arrived, or could arrive again after a pause in reading. */
    private long lastReadNanos;

    /** Time at which something last left, or began to wait. */
    private long lastWriteNanos;

    /** Time at which the connection was last in use. */
    private long busyNanos;

    private long waitingBytes;

    /** Small frames gathered behind those that are leaving; null if there are none. */
    private @Nullable ByteBuf gathered;

    /** Number of buffers with small frames that stand in the socket's queue. */
    private int gatheredLeaving;

    /**
     * Queue of the socket, with its claims. Null at a client: its requests are charged until they have left, and no
     * peer has chosen them.
     */
    private final @Nullable SocketQueue queue;

    private boolean reading;

    /** True while more frames follow that leave in the same flush. */
    private boolean gathering;

    /** Counter that goes up each time that something has arrived. */
    private int reads;

    /**
     * Reason for the end of the connection if that is a lack of memory on this side; otherwise null. Such an end says
     * nothing about the peer.
     */
    private volatile @Nullable String memoryWanted;

    /** Whether this side has paused reading; the pause began at {@code pausedNanos}. */
    private boolean isPaused;

    private long pausedNanos;

    private boolean isEnding;
    private boolean isOver;

    /**
     * @param isClient whether this side is the client
     * @param idleNanos time after which a connection that nobody uses ends
     */
    @SuppressWarnings("this-escape") // the socket calls back only when this is in its pipeline
    public ClassicConnection(
            Channel channel,
            boolean isClient,
            Account account,
            int maxFrameBytes,
            int maxPassedBytes,
            long keepAliveNanos,
            long idleNanos) {
        this.channel = channel;
        this.isClient = isClient;
        this.timers = account.charge(Resource.TIMERS);
        this.loop = channel.eventLoop();
        this.queue = isClient
                ? null
                : new SocketQueue(channel, account, this::replyBytes, this::gatheredBytes, () -> {}, this::endUnread);
        this.frames = new ClassicFrames(maxFrameBytes, maxPassedBytes, this);
        this.keepAliveNanos = keepAliveNanos;
        this.silentNanos = Math.min(SILENT_NANOS, keepAliveNanos);
        this.lookNanos = Math.max(1, silentNanos / LOOKS);
        this.idleNanos = idleNanos;
    }

    /** Called when the connection has been added to its channel. If this throws, the channel is closed. */
    public void onAdded() {}

    /** Whether calls are under way: while there are any, the connection is not idle. */
    public abstract boolean isBusy();

    /** Called at each look, unless the look ends the connection or the connection is ending already. */
    public abstract void onLook(long nowNanos);

    /** Called when all that has arrived has been read and what was written meanwhile has been flushed. */
    public void onReadComplete() {}

    /** Called after each read; the socket may have more for this pass. */
    public void onRead() {}

    /** Called when {@code bytes} bytes have left, or never will. */
    public void onLeft(int bytes) {}

    /**
     * Called when the connection ends for the given reason; the implementation has to close it. Called at most once,
     * and not after {@link #onOver}.
     */
    public abstract void onEnd(RPCXException why);

    /** Called once, when the connection is closed. */
    public abstract void onOver();

    public final EventLoop loop() {
        return loop;
    }

    public final long nanoTime() {
        return loop.ticker().nanoTime();
    }

    /** Time in nanoseconds since the connection was established. On the event loop. */
    public final long upNanos() {
        return nanoTime() - upSinceNanos;
    }

    public final boolean isEnding() {
        return isEnding;
    }

    public final long waitingBytes() {
        return waitingBytes;
    }

    /** Number that changes each time that anything has arrived. On the event loop. */
    public final int reads() {
        return reads;
    }

    public final boolean isReading() {
        return !isPaused;
    }

    /**
     * Reason for the end of the connection if that is a lack of memory on this side; null for any other end. Any
     * thread.
     */
    public final @Nullable String memoryWanted() {
        return memoryWanted;
    }

    // ---- incoming

    @Override
    public final void handlerAdded(ChannelHandlerContext ctx) {
        boolean isAdded = false;
        try {
            if (channel.isActive()) {
                begin();
            }
            onAdded();
            isAdded = true;
        } finally {
            if (!isAdded) {
                // Netty removes the handler again, and nobody would look after the channel
                SocketQueue.closeNow(channel);
            }
        }
    }

    @Override
    public void channelActive(ChannelHandlerContext ctx) {
        begin();
    }

    private void begin() {
        if (timer != null) {
            return;
        }
        long now = nanoTime();
        upSinceNanos = now;
        lastReadNanos = now;
        lastWriteNanos = now;
        busyNanos = now;
        lookedNanos = now;
        // a server that pauses reading makes the kernel of its client wait, and acknowledges nothing new meanwhile
        TcpKeepAlive.on(channel, keepAliveNanos, isClient ? CHUNKS_IN_PAUSE * keepAliveNanos : keepAliveNanos);
        timers.add(1);
        timer = loop.scheduleWithFixedDelay(look, lookNanos, lookNanos, TimeUnit.NANOSECONDS);
    }

    @Override
    public final void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        lastReadNanos = nanoTime();
        busyNanos = lastReadNanos;
        reads++;
        reading = true;
        try {
            if (!isEnding) {
                frames.read(in, lastReadNanos);
            }
        } catch (WireFault fault) {
            fail(brokenOff(RPCXException.Code.PROTOCOL, String.valueOf(fault.getMessage())));
        } catch (Throwable t) {
            // no memory for the frame, or a fault of this side: it ends this connection and no other
            noteMemory(t);
            fail(brokenOff(RPCXException.Code.UNAVAILABLE, "a frame could not be read"));
        } finally {
            in.release();
        }
        onRead();
    }

    @Override
    public final void channelReadComplete(ChannelHandlerContext ctx) {
        reading = false;
        flush();
        onReadComplete();
    }

    @Override
    public final void userEventTriggered(ChannelHandlerContext ctx, Object event) {
        if (event == SocketQueue.NO_ROOM) {
            memoryWanted = "no room for the begin of a record whose end has not come";
        } else if (event == SocketQueue.PART) {
            lastReadNanos = nanoTime();
        }
        ctx.fireUserEventTriggered(event);
    }

    private void noteMemory(Throwable thrown) {
        if (thrown instanceof OutOfMemoryError) {
            MemoryReserve.use();
            memoryWanted = ThrowableText.message(thrown);
        }
    }

    /** Ends the connection for the given reason. Nothing is read any more. */
    public final void fail(RPCXException why) {
        if (!isEnding) {
            isEnding = true;
            frames.clear();
            onEnd(why);
        }
    }

    // ---- outgoing

    /** Listener that is called as the bytes of a frame leave, or when they never will. */
    public interface WriteListener {
        void onReleased(long bytes);

        /** Called when the whole frame has left. */
        default void onFrameWritten() {}
    }

    /** Bytes of heap that a frame of {@code frameBytes} takes while it waits to leave. */
    public static long queuedBytes(int frameBytes) {
        return HeapArray.taken(frameBytes) + QUEUED_BYTES;
    }

    /**
     * Sends a frame in chunks. Each byte is reported to {@code listener} once, whether it leaves or not. The further
     * heap that the frame takes is reported with the last chunk: {@link #queuedBytes} in all.
     */
    public final void write(byte[] frame, WriteListener listener) {
        begin(frame);
        int at = 0;
        try {
            writeGathered();
            while (at < frame.length) {
                int bytes = Math.min(CHUNK_BYTES, frame.length - at);
                writeChunk(frame, at, bytes, listener);
                at += bytes;
            }
        } finally {
            if (at < frame.length) {
                endCut(frame.length, at, listener);
            }
        }
        flushUnlessMoreFollows();
    }

    /**
     * Closes the channel after only {@code written} bytes of a frame could be written. These are reported to
     * {@code listener} when they leave, and the rest, which never will, is reported here.
     */
    private void endCut(int frameBytes, int written, WriteListener listener) {
        try {
            waitingBytes -= frameBytes - written;
            listener.onReleased(queuedBytes(frameBytes) - written);
        } finally {
            SocketQueue.closeNow(channel);
        }
    }

    private void begin(byte[] frame) {
        if (waitingBytes == 0) {
            lastWriteNanos = nanoTime();
        }
        waitingBytes += frame.length;
    }

    /**
     * Sends a small frame for which nothing is charged. While such frames wait they stand in one buffer: one for each
     * would take many times the bytes of the frame, and a peer that reads nothing could make them pile up.
     */
    public final void writeSmall(byte[] frame) {
        begin(frame);
        boolean isWhole = false;
        try {
            // the buffer never grows beyond a chunk, since the queue is charged for the bytes that are in it
            if (gathered != null && gathered.readableBytes() + frame.length > CHUNK_BYTES) {
                writeGathered();
            }
            ByteBuf into = gathered;
            if (into == null) {
                into = gathered = channel.alloc().directBuffer(frame.length);
            }
            into.writeBytes(frame);
            isWhole = true;
        } finally {
            if (!isWhole) {
                SocketQueue.closeNow(channel);
            }
        }
        flushUnlessMoreFollows();
    }

    private void writeGathered() {
        ByteBuf whole = gathered;
        if (whole == null) {
            return;
        }
        gathered = null;
        gatheredLeaving++;
        int bytes = whole.readableBytes();
        boolean isTold = false;
        try {
            ChannelFuture leaves = channel.write(whole);
            endIfLost(leaves);
            leaves.addListener(written -> gatheredHasLeft(bytes));
            isTold = true;
        } finally {
            if (!isTold) {
                // no listener will say when the buffer has left, and the frames that are gathered next would wait for
                // that
                SocketQueue.closeNow(channel);
            }
        }
    }

    private void gatheredHasLeft(int bytes) {
        gatheredLeaving--;
        waitsNoLonger(bytes);
        tellOfRoom(bytes);
        if (gatheredLeaving == 0 && gathered != null) {
            flushUnlessMoreFollows();
        }
    }

    /** Bytes of memory of the buffer that will join the socket's queue. */
    private long gatheredBytes() {
        ByteBuf into = gathered;
        return into == null ? 0 : into.capacity();
    }

    private void waitsNoLonger(int bytes) {
        waitingBytes -= bytes;
        lastWriteNanos = nanoTime();
    }

    private void tellOfRoom(int bytes) {
        if (queue != null) {
            queue.shortened();
        }
        onLeft(bytes);
    }

    private void endIfLost(ChannelFuture leaves) {
        if (leaves.cause() != null && !(leaves.cause() instanceof IOException)) {
            // there was no memory for this buffer while the socket is in order: the peer would take what follows for
            // the rest of the frame
            SocketQueue.closeNow(channel);
        }
    }

    /** Runs {@code sends}, and flushes once, behind all that it writes. */
    public final void sendTogether(Runnable sends) {
        boolean outer = gathering;
        gathering = true;
        try {
            sends.run();
        } finally {
            gathering = outer;
        }
        flushUnlessMoreFollows();
    }

    private void flushUnlessMoreFollows() {
        if (!reading && !gathering) {
            flush();
        }
    }

    private void writeChunk(byte[] frame, int at, int bytes, WriteListener listener) {
        boolean isLast = at + bytes == frame.length;
        long gone = isLast ? bytes + queuedBytes(frame.length) - frame.length : bytes;
        ChannelFuture leaves = channel.write(Unpooled.wrappedBuffer(frame, at, bytes));
        endIfLost(leaves);
        leaves.addListener(written -> {
            waitsNoLonger(bytes);
            listener.onReleased(gone);
            if (isLast && written.isSuccess()) {
                listener.onFrameWritten();
            }
            tellOfRoom(bytes);
        });
    }

    private void flush() {
        if (gatheredLeaving == 0) {
            writeGathered();
        }
        channel.flush();
        if (waitingBytes != 0 && queue != null) {
            queue.updateClaims();
        }
    }

    /** Bytes charged for replies that have been made for the peer and have not left. On the event loop. */
    public long replyBytes() {
        return 0;
    }

    /** Error of a connection that ends with calls that may have been executed. */
    public static RPCXException brokenOff(RPCXException.Code code, String why) {
        return new RPCXException(code, why, RPCXException.Executed.MAYBE, null);
    }

    private void endUnread() {
        abort(brokenOff(RPCXException.Code.UNAVAILABLE, "the peer does not read what it is sent"));
    }

    /** Sets whether this side reads from here on. What the peer cannot send meanwhile does not count against it. */
    public final void setReading(boolean reads) {
        if (reads == !isPaused) {
            return;
        }
        long now = nanoTime();
        isPaused = !reads;
        if (reads) {
            lastReadNanos = now;
            frames.postpone(now - pausedNanos);
        } else {
            pausedNanos = now;
        }
        ReadingClock.of(channel).setReading(reads);
    }

    // ---- the looks

    private void look() {
        try {
            lookNow();
        } catch (Throwable t) {
            // a timer whose task throws never runs again, and nobody would find a peer that is gone
            SocketQueue.closeNow(channel);
            ThreadTools.report(t);
        }
    }

    private void lookNow() {
        long now = nanoTime();
        if (isOver) {
            return;
        }
        postponeIfLate(now);
        if (waitingBytes > 0 && now - lastWriteNanos >= keepAliveNanos && !isHeard(now)) {
            abort(brokenOff(
                    RPCXException.Code.UNAVAILABLE, "the peer has read nothing for " + millis(keepAliveNanos) + " ms"));
            return;
        }
        if (isEnding) {
            return;
        }
        if (frames.isIncomplete() && isFrameLate(now)) {
            fail(new RPCXException(
                    RPCXException.Code.PROTOCOL,
                    "a frame was begun and not ended in time",
                    isBusy() ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED,
                    null));
            return;
        }
        if (isBusy() || waitingBytes > 0) {
            busyNanos = now;
        } else if (now - busyNanos >= idleNanos) {
            fail(RPCXException.refused(
                    RPCXException.Code.UNAVAILABLE, "nothing was called for " + millis(idleNanos) + " ms"));
            return;
        }
        onLook(now);
    }

    private boolean isFrameLate(long nowNanos) {
        long whole = silentNanos + TimeUnit.SECONDS.toNanos(1) * frames.length() / FRAME_BYTES_PER_SECOND;
        boolean isLate =
                !isPaused && (nowNanos - lastReadNanos >= silentNanos || nowNanos - frames.beganNanos() >= whole);
        // A peer that reads its replies slowly makes this side pause. Such pauses at most double the time of a frame.
        // But something is read behind each pause, so the slowest peer is given the time to reach the end of one.
        long most = Math.max(2 * whole, CHUNKS_IN_PAUSE * keepAliveNanos);
        return isLate || nowNanos - frames.firstBeganNanos() >= most;
    }

    /**
     * Whether the peer is a server that is alive although it takes nothing. Such a server sends replies, and reads on
     * when some of them have left it, so it has taken something within four keep-alive times. A client that sends
     * requests and takes no replies is not spared because of its requests.
     */
    private boolean isHeard(long nowNanos) {
        return isClient
                && nowNanos - lastReadNanos < keepAliveNanos
                && nowNanos - lastWriteNanos < CHUNKS_IN_PAUSE * keepAliveNanos;
    }

    /**
     * Adds the delay of a late look to the times. An event loop that was kept from a whole look was kept from its
     * sockets too: what the peer has sent and taken meanwhile may still have to be read there.
     */
    private void postponeIfLate(long nowNanos) {
        long late = nowNanos - lookedNanos - lookNanos;
        lookedNanos = nowNanos;
        if (late < lookNanos) {
            return;
        }
        busyNanos = Math.min(nowNanos, busyNanos + late);
        lastWriteNanos = Math.min(nowNanos, lastWriteNanos + late);
        frames.postponeFirst(late);
        if (!isPaused) {
            lastReadNanos = Math.min(nowNanos, lastReadNanos + late);
            frames.postpone(late);
        }
    }

    private static long millis(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(nanos);
    }

    // ---- the end

    /** Closes the connection at once, whatever still waits for the peer. */
    final void abort(RPCXException why) {
        try {
            fail(why);
        } finally {
            SocketQueue.closeNow(channel);
        }
    }

    @Override
    public final void channelInactive(ChannelHandlerContext ctx) {
        over();
    }

    @Override
    public final void handlerRemoved(ChannelHandlerContext ctx) {
        over();
    }

    private void over() {
        if (isOver) {
            return;
        }
        isOver = true;
        isEnding = true;
        frames.clear();
        // each step runs also if the one before it fails, since this method does nothing when it is called again
        try {
            // the channel is closed, so this write releases the buffer that waited
            writeGathered();
        } finally {
            try {
                stopLooking();
            } finally {
                onOver();
            }
        }
    }

    private void stopLooking() {
        // the charge was made before the timer was set, and setting the timer may have failed
        timers.release();
        if (timer != null) {
            timer.cancel(false);
        }
    }

    @Override
    public final void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        noteMemory(cause);
        channel.close();
    }
}
