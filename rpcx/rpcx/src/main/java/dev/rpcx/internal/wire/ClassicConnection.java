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
 * One connection of the classic wire, at a client or a server. Since this wire has no ping, the connection checks its
 * peer at regular intervals. The connection ends if an incomplete frame arrives too slowly, if the peer takes none of
 * the waiting output, or if nobody uses the connection. All state except {@code memoryWanted} belongs to the event
 * loop.
 */
public abstract class ClassicConnection extends ChannelInboundHandlerAdapter implements ClassicFrames.Reader {
    /**
     * Maximum time between two bytes of an incomplete frame; the keep-alive time if that is shorter. A whole frame may
     * take this time in addition to its time at {@link #FRAME_BYTES_PER_SECOND}. Source: nginx's client_header_timeout,
     * shortened.
     */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Minimum average rate of a frame, in bytes per second. The largest frame, 4 MiB, may take 256 s. Apache's
     * mod_reqtimeout has 500 bytes per second, which would allow such a frame two hours.
     */
    private static final long FRAME_BYTES_PER_SECOND = 16 * 1024;

    /**
     * Size in bytes of the chunks in which a frame is sent. They tell a peer that reads a large frame slowly from one
     * that does not read.
     */
    private static final int CHUNK_BYTES = 16 * 1024;

    /**
     * Memory in bytes that a waiting frame takes in addition to its own bytes: its buffer, its queue entry and its
     * listener.
     */
    private static final int QUEUED_BYTES = 256;

    /**
     * Number of chunks that a server sends during a pause in reading before it reads again. The client has the server's
     * keep-alive time for each chunk, so a pause may last four keep-alive times.
     */
    static final int CHUNKS_IN_PAUSE = 4;

    public static final int BYTES_IN_PAUSE = CHUNKS_IN_PAUSE * CHUNK_BYTES;

    /** Number of checks within {@code silentNanos}. */
    private static final int CHECKS = 4;

    public final Channel channel;
    private final boolean isClient;
    private final EventLoop loop;
    private final ClassicFrames frames;
    private final long keepAliveNanos;
    private final long silentNanos;
    private final long idleNanos;
    private final Runnable check = this::check;
    private final Charge timers;

    /** Time from one check to the next, unless the event loop is held up. */
    private final long checkNanos;

    private @Nullable ScheduledFuture<?> timer;
    private long checkedNanos;

    /** Time at which the connection was established. */
    private long upSinceNanos;

    /** Time at which bytes last arrived, or at which reading was last resumed, whichever is later. */
    private long lastReadNanos;

    /** Time at which bytes were last sent, or at which output began to wait, whichever is later. */
    private long lastWriteNanos;

    /**
     * Time at which the connection was last in use: bytes arrived, or a check found calls under way or waiting output.
     */
    private long busyNanos;

    private long waitingBytes;

    /**
     * Small frames that wait for the next flush; null if there are none. While earlier small frames are in the socket's
     * queue, a flush leaves these here.
     */
    private @Nullable ByteBuf gathered;

    /** Number of buffers with small frames that are in the socket's queue. */
    private int gatheredBeingSent;

    /**
     * The socket's queue, with the claims for output that the peer does not read. Null at a client: its requests are
     * charged until they have been sent.
     */
    private final @Nullable SocketQueue queue;

    private boolean reading;

    /** True while further frames are about to be written. One flush then sends all of them. */
    private boolean gathering;

    /** Counter that goes up each time that bytes have arrived. */
    private int reads;

    /** The reason in words if the connection ends because this side lacks memory; otherwise null. */
    private volatile @Nullable String memoryWanted;

    /** Whether this side has paused reading. If so, the pause began at {@code pausedNanos}. */
    private boolean isPaused;

    private long pausedNanos;

    private boolean isEnding;
    private boolean isOver;

    /**
     * Creates the connection, which is then added to the pipeline of {@code channel}.
     *
     * @param isClient whether this side is the client
     * @param idleNanos time in nanoseconds after which a connection that nobody uses ends
     */
    @SuppressWarnings("this-escape") // the socket calls back only when this is in its pipeline
    public ClassicConnection(
            Channel channel,
            boolean isClient,
            Account account,
            int maxFrameBytes,
            int maxSkippedBytes,
            long keepAliveNanos,
            long idleNanos) {
        this.channel = channel;
        this.isClient = isClient;
        this.timers = account.charge(Resource.TIMERS);
        this.loop = channel.eventLoop();
        this.queue = isClient
                ? null
                : new SocketQueue(channel, account, this::replyBytes, this::gatheredBytes, () -> {}, this::endUnread);
        this.frames = new ClassicFrames(maxFrameBytes, maxSkippedBytes, this);
        this.keepAliveNanos = keepAliveNanos;
        this.silentNanos = Math.min(SILENT_NANOS, keepAliveNanos);
        this.checkNanos = Math.max(1, silentNanos / CHECKS);
        this.idleNanos = idleNanos;
    }

    /** Called when the connection has been added to its channel. If this method throws, the channel is closed. */
    public void onAdded() {}

    /** Whether calls are under way. While there are any, the connection does not count as unused. */
    public abstract boolean isBusy();

    /** Called at the end of each check, unless the connection is ending. */
    public abstract void onCheck(long nowNanos);

    /** Called when everything that has arrived has been read, and the output has been flushed. */
    public void onReadComplete() {}

    /**
     * Called after each read from the socket. Further reads may follow in the same pass, before {@code onReadComplete}.
     */
    public void onRead() {}

    /** Called when {@code bytes} of output have been sent, or will never be sent. */
    public void onSent(int bytes) {}

    /**
     * Called when the connection ends. The implementation has to close the connection. Called at most once, and never
     * after {@link #onOver}.
     */
    public abstract void onEnd(RPCXException why);

    /** Called exactly once, when the channel has been closed or this handler has been removed from it. */
    public abstract void onOver();

    public final EventLoop loop() {
        return loop;
    }

    public final long nanoTime() {
        return loop.ticker().nanoTime();
    }

    /** Returns the time in nanoseconds since the connection was established. Event loop only. */
    public final long upNanos() {
        return nanoTime() - upSinceNanos;
    }

    public final boolean isEnding() {
        return isEnding;
    }

    public final long waitingBytes() {
        return waitingBytes;
    }

    /** Returns a number that changes each time that bytes have arrived. Event loop only. */
    public final int reads() {
        return reads;
    }

    public final boolean isReading() {
        return !isPaused;
    }

    /**
     * Returns the reason in words if the connection ends because this side lacks memory; otherwise null. Thread-safe.
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
                // when this method throws, Netty removes the handler, and nobody would close the channel
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
        checkedNanos = now;
        // while a server pauses reading, its kernel acknowledges nothing new: so a client waits as long as the longest
        // pause
        TcpKeepAlive.on(channel, keepAliveNanos, isClient ? CHUNKS_IN_PAUSE * keepAliveNanos : keepAliveNanos);
        timers.add(1);
        timer = loop.scheduleWithFixedDelay(check, checkNanos, checkNanos, TimeUnit.NANOSECONDS);
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
            // there is no memory for the frame, or this side has a bug: only this connection ends
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
            memoryWanted = "no room for the first bytes of a TLS record that has not arrived in full";
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

    /** Ends the connection. Nothing that arrives later is read. Does nothing if the connection is already ending. */
    public final void fail(RPCXException why) {
        if (!isEnding) {
            isEnding = true;
            frames.clear();
            onEnd(why);
        }
    }

    // ---- outgoing

    /** Called each time that bytes of a frame have been sent or will never be sent. */
    public interface WriteListener {
        void onReleased(long bytes);

        /** Called when all bytes of the frame have been sent. */
        default void onFrameWritten() {}
    }

    /** Returns how many bytes of heap a frame of {@code frameBytes} bytes takes while it waits to be sent. */
    public static long queuedBytes(int frameBytes) {
        return HeapArray.heapBytes(frameBytes) + QUEUED_BYTES;
    }

    /**
     * Sends a frame in chunks. Each byte of the frame is reported to {@code listener} exactly once, whether it is sent
     * or not. The heap that the frame takes beyond these bytes is reported together with the last chunk, so
     * {@code listener} gets {@link #queuedBytes} in total.
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
     * Closes the channel after only {@code written} bytes of a frame could be written. The rest is reported to
     * {@code listener} now, and the written bytes when they have been sent.
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
     * Sends a small frame, which is not charged. Small frames share one buffer while they wait: separate buffers would
     * take many times the memory, and would pile up if the peer does not read.
     */
    public final void writeSmall(byte[] frame) {
        begin(frame);
        boolean isWhole = false;
        try {
            // in the socket's queue only the readable bytes of the buffer are charged, so its free room has to be
            // limited
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
        gatheredBeingSent++;
        int bytes = whole.readableBytes();
        boolean isListenerAdded = false;
        try {
            ChannelFuture sending = channel.write(whole);
            endIfLost(sending);
            sending.addListener(written -> gatheredSent(bytes));
            isListenerAdded = true;
        } finally {
            if (!isListenerAdded) {
                // nothing will report that this buffer has been sent, and the next small frames would wait forever
                SocketQueue.closeNow(channel);
            }
        }
    }

    private void gatheredSent(int bytes) {
        gatheredBeingSent--;
        waitsNoLonger(bytes);
        reportSent(bytes);
        if (gatheredBeingSent == 0 && gathered != null) {
            flushUnlessMoreFollows();
        }
    }

    /** Returns the memory of {@code gathered} in bytes; 0 if it is null. */
    private long gatheredBytes() {
        ByteBuf into = gathered;
        return into == null ? 0 : into.capacity();
    }

    private void waitsNoLonger(int bytes) {
        waitingBytes -= bytes;
        lastWriteNanos = nanoTime();
    }

    private void reportSent(int bytes) {
        if (queue != null) {
            queue.shortened();
        }
        onSent(bytes);
    }

    private void endIfLost(ChannelFuture sending) {
        if (sending.cause() != null && !(sending.cause() instanceof IOException)) {
            // the buffer was lost, for example for lack of memory, but the socket still works: the peer would take the
            // next bytes for the rest of the lost frame
            SocketQueue.closeNow(channel);
        }
    }

    /** Runs {@code sends}, and then flushes once for everything that {@code sends} has written. */
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
        ChannelFuture sending = channel.write(Unpooled.wrappedBuffer(frame, at, bytes));
        endIfLost(sending);
        sending.addListener(written -> {
            waitsNoLonger(bytes);
            listener.onReleased(gone);
            if (isLast && written.isSuccess()) {
                listener.onFrameWritten();
            }
            reportSent(bytes);
        });
    }

    private void flush() {
        if (gatheredBeingSent == 0) {
            writeGathered();
        }
        channel.flush();
        if (waitingBytes != 0 && queue != null) {
            queue.updateClaims();
        }
    }

    /** Returns the bytes charged for replies to the peer that have not been sent. Event loop only. */
    public long replyBytes() {
        return 0;
    }

    /** Returns the error for calls that may have been executed when the connection ended. */
    public static RPCXException brokenOff(RPCXException.Code code, String why) {
        return new RPCXException(code, why, RPCXException.Executed.MAYBE, null);
    }

    private void endUnread() {
        abort(brokenOff(RPCXException.Code.UNAVAILABLE, "the peer does not read what it is sent"));
    }

    /**
     * Resumes or pauses reading. The peer cannot send during a pause, so a pause counts neither as silence nor against
     * the rate of a frame. Only the limit on the total time of a frame includes pauses.
     */
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

    // ---- the checks

    private void check() {
        try {
            checkNow();
        } catch (Throwable t) {
            // a timer whose task throws never runs again, and the peer would no longer be checked
            SocketQueue.closeNow(channel);
            ThreadTools.report(t);
        }
    }

    private void checkNow() {
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
                    RPCXException.Code.UNAVAILABLE, "the connection has had no call for " + millis(idleNanos) + " ms"));
            return;
        }
        onCheck(now);
    }

    private boolean isFrameLate(long nowNanos) {
        long whole = silentNanos + TimeUnit.SECONDS.toNanos(1) * frames.length() / FRAME_BYTES_PER_SECOND;
        boolean isLate =
                !isPaused && (nowNanos - lastReadNanos >= silentNanos || nowNanos - frames.beganNanos() >= whole);
        // A peer that reads its replies slowly makes this side pause again and again. So a frame with its pauses may
        // take at most twice its time without pauses. One pause alone must not make a frame late, so this limit is at
        // least the longest pause.
        long maxNanos = Math.max(2 * whole, CHUNKS_IN_PAUSE * keepAliveNanos);
        return isLate || nowNanos - frames.firstBeganNanos() >= maxNanos;
    }

    /**
     * Whether the peer is a server that is alive but has paused reading. Such a server still sends replies, and takes
     * output at least once in four keep-alive times. Always false at a server: a client that takes no replies is not
     * kept alive by its requests.
     */
    private boolean isHeard(long nowNanos) {
        return isClient
                && nowNanos - lastReadNanos < keepAliveNanos
                && nowNanos - lastWriteNanos < CHUNKS_IN_PAUSE * keepAliveNanos;
    }

    /**
     * If this check is late by an interval or more, moves the times of all checks forward by the delay. The event loop
     * was held up, and may not have seen yet what the peer has sent and taken.
     */
    private void postponeIfLate(long nowNanos) {
        long late = nowNanos - checkedNanos - checkNanos;
        checkedNanos = nowNanos;
        if (late < checkNanos) {
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

    /** Closes the connection immediately, even if output still waits for the peer. */
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
        // each step runs even if an earlier one fails, since this method does its work only once
        try {
            // the channel is closed, so this write only releases the buffer that waited
            writeGathered();
        } finally {
            try {
                stopChecking();
            } finally {
                onOver();
            }
        }
    }

    private void stopChecking() {
        // the charge is released even if there is no timer: setting the timer may have failed after the charge was made
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
