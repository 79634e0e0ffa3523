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
 * A connection of the classic wire, at a client or a server, that reads and writes frames. This wire has no ping, so a
 * timer checks the peer at regular intervals. The timer ends the connection if a frame arrives too slowly, if the peer
 * does not read what it is sent, or if nobody uses the connection. All state except {@code memoryWanted} belongs to the
 * event loop.
 */
public abstract class ClassicConnection extends ChannelInboundHandlerAdapter implements ClassicFrames.Reader {
    /**
     * Maximum time in nanoseconds between two bytes of a frame. If the keep-alive time is shorter, the keep-alive time
     * is the maximum. An entire frame may take this time plus the time that its bytes need at
     * {@link #MIN_FRAME_BYTES_PER_SECOND}. In nginx, client_header_timeout is a similar limit, which is longer.
     */
    private static final long MAX_SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Minimum average rate at which a frame must arrive, in bytes per second. At this rate, a frame of 4 MiB, the
     * largest that is not skipped, takes 256 s. Apache's mod_reqtimeout asks for only 500 bytes per second, at which
     * such a frame takes more than two hours.
     */
    private static final long MIN_FRAME_BYTES_PER_SECOND = 16 * 1024;

    /**
     * Size in bytes of the chunks in which a frame is sent. Each chunk that is sent shows that the peer still reads,
     * even if the peer reads a large frame slowly.
     */
    private static final int CHUNK_BYTES = 16 * 1024;

    /**
     * Memory in bytes for which a frame that waits to be sent is charged in addition to its own bytes. This is the
     * memory of one buffer, one queue entry and one listener. A frame of several chunks has these three objects for
     * each chunk, but those of only one chunk are counted.
     */
    private static final int QUEUED_BYTES = 256;

    /**
     * Maximum number of full chunks, of 16 KiB each, that a server sends while it has paused reading. After that, it
     * reads again. The client has the server's keep-alive time to read each chunk, so a pause usually lasts at most
     * four keep-alive times of the server. But the last chunk of a frame can be smaller than 16 KiB. With smaller
     * chunks, the server sends more than four of them, and the pause can last longer.
     */
    static final int MAX_CHUNKS_IN_PAUSE = 4;

    public static final int MAX_BYTES_IN_PAUSE = MAX_CHUNKS_IN_PAUSE * CHUNK_BYTES;

    /** Number of times that the timer checks the peer within {@code silentNanos}. */
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

    /** Time in nanoseconds from one check of the peer to the next, if the event loop is not held up. */
    private final long checkNanos;

    private @Nullable ScheduledFuture<?> timer;
    private long checkedNanos;

    /** Time in nanoseconds at which the connection was established. */
    private long upSinceNanos;

    /** Time in nanoseconds at which bytes last arrived, or at which reading was last resumed, whichever is later. */
    private long lastReadNanos;

    /** Time in nanoseconds at which bytes were last sent, or at which output began to wait, whichever is later. */
    private long lastWriteNanos;

    /**
     * Time in nanoseconds at which the connection was last seen in use. This is when bytes last arrived, or when a
     * check last found calls under way or waiting output, whichever is later.
     */
    private long busyNanos;

    private long waitingBytes;

    /**
     * Buffer with small frames, which the next flush sends; null if there are none. As long as an earlier buffer with
     * small frames waits to be sent, a flush does not send this one.
     */
    private @Nullable ByteBuf gathered;

    /** Number of buffers with small frames that have been written to the channel and not been sent yet. */
    private int gatheredBeingSent;

    /**
     * Charges the connection for output that the peer does not read. Null at a client: there, each request has a charge
     * of its own until the request has been sent.
     */
    private final @Nullable SocketQueue queue;

    private boolean reading;

    /** True while {@link #sendTogether} writes several frames, which one flush will send. */
    private boolean gathering;

    /** Number of times that bytes have arrived. */
    private int reads;

    /**
     * Text that {@link #memoryWanted()} returns if the connection ends because this side lacked memory; otherwise null.
     * Stored on the event loop, and read by any thread.
     */
    private volatile @Nullable String memoryWanted;

    /** True while this side has paused reading. The time at which the pause began is {@code pausedNanos}. */
    private boolean isPaused;

    private long pausedNanos;

    private boolean isEnding;
    private boolean isOver;

    /**
     * Creates a connection, which the caller adds to the pipeline of {@code channel}.
     *
     * @param isClient true if this side is the client, false if this side is the server
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
        MemoryReserve.keep();
        this.channel = channel;
        this.isClient = isClient;
        this.timers = account.charge(Resource.TIMERS);
        this.loop = channel.eventLoop();
        this.queue = isClient
                ? null
                : new SocketQueue(channel, account, this::replyBytes, this::gatheredBytes, () -> {}, this::endUnread);
        this.frames = new ClassicFrames(maxFrameBytes, maxSkippedBytes, this);
        this.keepAliveNanos = keepAliveNanos;
        this.silentNanos = Math.min(MAX_SILENT_NANOS, keepAliveNanos);
        this.checkNanos = Math.max(1, silentNanos / CHECKS);
        this.idleNanos = idleNanos;
    }

    /**
     * Called when this connection has been added to the pipeline of its channel. If this method throws, the channel is
     * closed.
     */
    public void onAdded() {}

    /** Returns whether calls are under way. A connection with calls under way is not closed as unused. */
    public abstract boolean isBusy();

    /** Called at the end of each regular check of the peer, unless the connection is ending. */
    public abstract void onCheck(long nowNanos);

    /**
     * Called after a series of reads from the socket, when the output has been flushed. The socket can have more bytes.
     */
    public void onReadComplete() {}

    /** Called after each read from the socket. There can be several reads before {@link #onReadComplete} is called. */
    public void onRead() {}

    /** Called when {@code bytes} bytes of output have been sent, or will never be sent. */
    public void onSent(int bytes) {}

    /**
     * Closes the connection and ends its calls. Called at most once, and never after {@link #onOver}.
     *
     * @param why reason for the end of the connection
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

    /** Returns the time in nanoseconds since the connection was established. Only the event loop calls this method. */
    public final long upNanos() {
        return nanoTime() - upSinceNanos;
    }

    public final boolean isEnding() {
        return isEnding;
    }

    public final long waitingBytes() {
        return waitingBytes;
    }

    /** Returns how many times bytes have arrived. Only the event loop calls this method. */
    public final int reads() {
        return reads;
    }

    public final boolean isReading() {
        return !isPaused;
    }

    /**
     * If the connection ends because this side lacked memory, returns a text that says for what, or the message of the
     * {@link OutOfMemoryError}. Otherwise returns null. This method is thread-safe.
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
                // if this method throws, Netty removes this connection from the pipeline, and nobody else would close
                // the channel
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
        // While a server pauses reading, its kernel acknowledges bytes only until the kernel's buffer is full.
        // Therefore a client lets bytes stay unacknowledged for four keep-alive times. If the server has the same
        // keep-alive time, this is as long as its longest usual pause.
        TcpKeepAlive.on(channel, keepAliveNanos, isClient ? MAX_CHUNKS_IN_PAUSE * keepAliveNanos : keepAliveNanos);
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
            fail(ConnectionErrors.brokenOff(RPCXException.Code.PROTOCOL, String.valueOf(fault.getMessage())));
        } catch (Throwable t) {
            // there is no memory for the frame, or this side has a bug: only this connection ends
            noteMemory(t);
            fail(ConnectionErrors.brokenOff(RPCXException.Code.UNAVAILABLE, "a frame could not be read"));
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
            memoryWanted = ConnectionErrors.NO_ROOM_FOR_TLS;
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

    /**
     * Ends the connection because of {@code why}. Bytes that are read from the socket later are ignored. If the
     * connection is already ending, this method does nothing.
     */
    public final void fail(RPCXException why) {
        if (!isEnding) {
            isEnding = true;
            frames.clear();
            onEnd(why);
        }
    }

    // ---- outgoing

    /**
     * Listens to the sending of a frame. {@code onReleased} is called for bytes that have been sent, and for bytes that
     * will never be sent.
     */
    public interface WriteListener {
        void onReleased(long bytes);

        /** Called when all bytes of the frame have been sent. */
        default void onFrameWritten() {}
    }

    /** Returns the heap in bytes that a frame of {@code frameBytes} bytes takes while it waits to be sent. */
    public static long queuedBytes(int frameBytes) {
        return HeapArray.heapBytes(frameBytes) + QUEUED_BYTES;
    }

    /**
     * Sends a frame in chunks, and notifies {@code listener} of each chunk that has been sent or will never be sent.
     * In total, {@code listener} is notified of as many bytes as {@link #queuedBytes} returns for the frame, whether
     * the frame is sent or not.
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
     * Closes the channel because only the first {@code written} bytes of a frame could be written to it. This method
     * notifies {@code listener} of the rest of the frame, since the rest will never be sent. The listener is notified
     * of the written bytes later, when the channel has sent or dropped them.
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
     * Sends a small frame, for which the caller makes no charge. Small frames that wait share buffers of up to 16 KiB.
     * If each had a buffer of its own, they would take many times the memory while a peer does not read.
     */
    public final void writeSmall(byte[] frame) {
        begin(frame);
        boolean isWhole = false;
        try {
            // In the socket's queue, a buffer is charged for its readable bytes, but not for the free room at its end.
            // To keep this room small, a buffer gets no further frame that would bring it above 16 KiB.
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
                // The write has failed, or the listener could not be added. Without the listener, nothing reports that
                // this buffer has been sent, and later small frames would wait forever.
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

    /** Returns the size in bytes of the buffer {@code gathered}, which holds small frames; 0 if it is null. */
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
            // The buffer was lost, for example because memory was lacking, but the socket still works. If the
            // connection went on, the peer would take the next bytes for the rest of the lost frame.
            SocketQueue.closeNow(channel);
        }
    }

    /** Runs {@code sends}, and afterwards flushes once for all frames that {@code sends} has written. */
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

    /**
     * Returns the number of bytes charged for replies that have not been sent to the peer. Only the event loop calls
     * this method.
     */
    public long replyBytes() {
        return 0;
    }

    private void endUnread() {
        abort(ConnectionErrors.brokenOff(RPCXException.Code.UNAVAILABLE, ConnectionErrors.UNREAD));
    }

    /**
     * Resumes reading if {@code reads} is true, and pauses reading otherwise. The peer cannot send during a pause, so a
     * pause does not count when the peer is checked for silence or for a slow frame. Only the limit on the total time
     * of a frame includes pauses.
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
            // after an exception the timer would never run again, and nobody would check the peer
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
            abort(ConnectionErrors.brokenOff(RPCXException.Code.UNAVAILABLE, ConnectionErrors.stuck(keepAliveNanos)));
            return;
        }
        if (isEnding) {
            return;
        }
        if (frames.isIncomplete() && isFrameLate(now)) {
            fail(ConnectionErrors.lateFrame(isBusy()));
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
        long whole = silentNanos + TimeUnit.SECONDS.toNanos(1) * frames.length() / MIN_FRAME_BYTES_PER_SECOND;
        boolean isLate =
                !isPaused && (nowNanos - lastReadNanos >= silentNanos || nowNanos - frames.beganNanos() >= whole);
        // The limits above do not count pauses in reading. But a peer can make this side pause again and again by
        // reading this side's replies slowly. So the total time for a frame to arrive, pauses included, is limited to
        // twice the time that is allowed without pauses. A single pause must not make a frame late, so the limit is at
        // least as long as the longest usual pause.
        long maxNanos = Math.max(2 * whole, MAX_CHUNKS_IN_PAUSE * keepAliveNanos);
        return isLate || nowNanos - frames.firstBeganNanos() >= maxNanos;
    }

    /**
     * Returns true if the peer is a server that seems to have paused reading but is alive. A server that has paused
     * reading still sends replies. It is also expected to read some of this client's output within four times this
     * client's keep-alive time. At a server, the result is always false, since a client must read its replies even
     * while it sends requests.
     */
    private boolean isHeard(long nowNanos) {
        return isClient
                && nowNanos - lastReadNanos < keepAliveNanos
                && nowNanos - lastWriteNanos < MAX_CHUNKS_IN_PAUSE * keepAliveNanos;
    }

    /**
     * Makes up for the delay of a check that comes one interval or more after its planned time, because the event loop
     * was held up. The event loop may not have seen yet what the peer has sent and read during the delay. So the delay
     * is added to the times from which the checks measure:
     *
     * <ul>
     *   <li>when bytes were last read or written,
     *   <li>when the connection was last in use,
     *   <li>when the incomplete frame began.
     * </ul>
     *
     * <p>While reading is paused, this method leaves out the times that the end of the pause sets or moves anyway.
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

    /** Closes the connection immediately because of {@code why}. Output that the peer has not read yet can be lost. */
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
        // Each step runs even if an earlier one fails. A further call of this method does nothing, so a step that is
        // left out now would never run.
        try {
            // The buffer "gathered" can still have small frames. The channel is closed, so this write fails, and Netty
            // releases the buffer.
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
        // the charge is released even without a timer: the charge is made first, and setting the timer can fail
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
