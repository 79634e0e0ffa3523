package dev.rpcx;

import dev.rpcx.codec.HeapArray;
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
 * One connection that speaks the classic wire, on either side: frames in, chunks out, and a look now and then at
 * whether the peer still does its part. This wire has no ping, so these rules stand in for it: a frame that has begun
 * goes on and ends, what waits for the peer leaves, and a connection that nobody uses ends. All state belongs to the
 * event loop.
 */
abstract class ClassicConnection extends ChannelInboundHandlerAdapter implements ClassicFrames.Reader {
    /**
     * Longest silence within a frame; less where keepAlive is less. Also what a frame has beyond
     * {@link #FRAME_BYTES_PER_SECOND}. Source: nginx's client_header_timeout, shortened.
     */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * A frame arrives at least as fast. Source: Apache's mod_reqtimeout has 500; our largest frame then takes two
     * hours, here 256 s.
     */
    private static final long FRAME_BYTES_PER_SECOND = 16 * 1024;

    /**
     * A frame leaves in pieces of this size, so that a slow reader of a large one is told from one that does not read.
     */
    private static final int CHUNK_BYTES = 16 * 1024;

    /** What a frame takes beside its bytes while it waits to leave: its buffer, its entry in the queue, who is told. */
    private static final int QUEUED_BYTES = 256;

    /**
     * A server that does not read reads once more each time that so many chunks have left. Each of them may take a
     * server's keepAlive.
     */
    static final int CHUNKS_IN_PAUSE = 4;

    static final int BYTES_IN_PAUSE = CHUNKS_IN_PAUSE * CHUNK_BYTES;

    /** Looks in the shortest of the times that are looked for. */
    private static final int LOOKS = 4;

    final Channel channel;
    private final boolean isClient;
    private final EventLoop loop;
    private final ClassicFrames frames;
    private final long keepAliveNanos;
    private final long silentNanos;
    private final long idleNanos;
    private final Runnable look = this::look;
    private final Charge timers;

    /** From one look to the next, where the loop is not kept from it. */
    private final long lookNanos;

    private @Nullable ScheduledFuture<?> timer;
    private long lookedNanos;

    /** When the connection stood. */
    private long upSinceNanos;

    /** When something has arrived, or could arrive again. */
    private long heardNanos;

    /** When something has left, or began to wait. */
    private long leftNanos;

    /** When something was under way last. */
    private long busyNanos;

    private long waitingBytes;

    /** Small frames that follow those which leave. */
    private @Nullable ByteBuf gathered;

    /** Buffers of small frames that stand in the socket's queue. */
    private int gatheredLeaving;

    /** Null at a client: its requests are charged until they have left, and no peer has chosen them. */
    private final @Nullable SocketQueue queue;

    private boolean reading;

    /** More follows that leaves together. */
    private boolean gathering;

    /** Counts up each time that something has arrived. */
    private int reads;

    /** What this side has no memory for, where the connection ends for that: it says nothing of the peer. */
    private volatile @Nullable String memoryWanted;

    /** Whether this side reads at all, and since when it does not. */
    private boolean isPaused;

    private long pausedNanos;

    private boolean isEnding;
    private boolean isOver;

    /**
     * @param isClient whether the peer is a server
     * @param idleNanos a connection that nobody has used for so long ends
     */
    ClassicConnection(
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

    /** The connection is on its channel. Where this throws, the channel is closed. */
    void onAdded() {}

    /** Calls under way: while there are any, the connection is not idle. */
    abstract boolean isBusy();

    /** A look is taken. */
    abstract void onLook(long nowNanos);

    /** All that has arrived has been read, and what was written meanwhile has been flushed. */
    void onReadComplete() {}

    /** Something has been read, and the socket may have more for this pass. */
    void onRead() {}

    /** So many bytes have left, or never will. */
    void onLeft(int bytes) {}

    /**
     * The peer did what ends the connection, which is this object's to close. At most once, and not after
     * {@link #onOver}.
     */
    abstract void onEnd(RPCXException why);

    /** The connection is closed. Once. */
    abstract void onOver();

    final EventLoop loop() {
        return loop;
    }

    final long nanoTime() {
        return loop.ticker().nanoTime();
    }

    /** How long the connection has stood. On the event loop. */
    final long upNanos() {
        return nanoTime() - upSinceNanos;
    }

    final boolean isEnding() {
        return isEnding;
    }

    final long waitingBytes() {
        return waitingBytes;
    }

    /** Another number each time that anything has arrived. On the event loop. */
    final int reads() {
        return reads;
    }

    final boolean isReading() {
        return !isPaused;
    }

    /** What this side has no memory for, which ends or has ended the connection; null for any other end. Any thread. */
    final @Nullable String memoryWanted() {
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
                // Netty takes the handler out again, and nobody would look at the channel
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
        heardNanos = now;
        leftNanos = now;
        busyNanos = now;
        lookedNanos = now;
        // a server that pauses tells the kernel here to wait, and acknowledges nothing new meanwhile
        TcpKeepAlive.on(channel, keepAliveNanos, isClient ? CHUNKS_IN_PAUSE * keepAliveNanos : keepAliveNanos);
        timers.add(1);
        timer = loop.scheduleWithFixedDelay(look, lookNanos, lookNanos, TimeUnit.NANOSECONDS);
    }

    @Override
    public final void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        heardNanos = nanoTime();
        busyNanos = heardNanos;
        reads++;
        reading = true;
        try {
            if (!isEnding) {
                frames.read(in, heardNanos);
            }
        } catch (WireFault fault) {
            fail(brokenOff(RPCXException.Code.PROTOCOL, String.valueOf(fault.getMessage())));
        } catch (Throwable t) {
            // no memory for the frame, or a fault of our own: this connection's end, and nobody else's
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
            heardNanos = nanoTime();
        }
        ctx.fireUserEventTriggered(event);
    }

    private void noteMemory(Throwable thrown) {
        if (thrown instanceof OutOfMemoryError) {
            MemoryReserve.use();
            memoryWanted = ThrowableText.message(thrown);
        }
    }

    /** Ends the connection: nothing is read any more. */
    final void fail(RPCXException why) {
        if (!isEnding) {
            isEnding = true;
            frames.clear();
            onEnd(why);
        }
    }

    // ---- outgoing

    /** Told as the bytes of a frame leave, or when they never will. */
    interface Leaving {
        void left(long bytes);

        /** The whole frame has left. */
        default void leftWhole() {}
    }

    /** What a frame of so many bytes takes of the heap while it waits to leave. */
    static long queuedBytes(int frameBytes) {
        return HeapArray.taken(frameBytes) + QUEUED_BYTES;
    }

    /**
     * Sends a frame, in chunks. Each byte is told of once, whether it leaves or not, and with the last one what the
     * frame takes of the heap beside them: {@link #queuedBytes} in all.
     */
    final void write(byte[] frame, Leaving leaving) {
        begin(frame);
        int at = 0;
        try {
            writeGathered();
            while (at < frame.length) {
                int bytes = Math.min(CHUNK_BYTES, frame.length - at);
                writeChunk(frame, at, bytes, leaving);
                at += bytes;
            }
        } finally {
            if (at < frame.length) {
                endCut(frame.length, at, leaving);
            }
        }
        flushUnlessMoreFollows();
    }

    /** So many bytes have been written, each of which is told of when it leaves, and the rest never will be. */
    private void endCut(int frameBytes, int written, Leaving leaving) {
        try {
            waitingBytes -= frameBytes - written;
            leaving.left(queuedBytes(frameBytes) - written);
        } finally {
            SocketQueue.closeNow(channel);
        }
    }

    private void begin(byte[] frame) {
        if (waitingBytes == 0) {
            leftNanos = nanoTime();
        }
        waitingBytes += frame.length;
    }

    /**
     * Sends a small frame that nothing is charged for. While such frames wait they stand together: each by itself would
     * take many times its bytes, which a peer that reads nothing could have for the asking.
     */
    final void writeSmall(byte[] frame) {
        begin(frame);
        boolean isWhole = false;
        try {
            // never grown beyond a chunk, as its queue is charged for what is in it
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
                // nobody will say when it has left, and what is gathered next would wait for that
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

    /** What will join the socket's queue: bytes of memory. */
    private long gatheredBytes() {
        ByteBuf into = gathered;
        return into == null ? 0 : into.capacity();
    }

    private void waitsNoLonger(int bytes) {
        waitingBytes -= bytes;
        leftNanos = nanoTime();
    }

    private void tellOfRoom(int bytes) {
        if (queue != null) {
            queue.shortened();
        }
        onLeft(bytes);
    }

    private void endIfLost(ChannelFuture leaves) {
        if (leaves.cause() != null && !(leaves.cause() instanceof IOException)) {
            // no memory for it, while the socket is well: what came behind would be taken for the rest of its frame
            SocketQueue.closeNow(channel);
        }
    }

    /** Flushes once, behind all that {@code sends} writes. */
    final void sendTogether(Runnable sends) {
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

    private void writeChunk(byte[] frame, int at, int bytes, Leaving leaving) {
        boolean isLast = at + bytes == frame.length;
        long gone = isLast ? bytes + queuedBytes(frame.length) - frame.length : bytes;
        ChannelFuture leaves = channel.write(Unpooled.wrappedBuffer(frame, at, bytes));
        endIfLost(leaves);
        leaves.addListener(written -> {
            waitsNoLonger(bytes);
            leaving.left(gone);
            if (isLast && written.isSuccess()) {
                leaving.leftWhole();
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
            queue.look();
        }
    }

    /** What is charged of replies that have been made for the peer and have not left. On the event loop. */
    long replyBytes() {
        return 0;
    }

    /** The end of a connection whose calls may have been executed. */
    static RPCXException brokenOff(RPCXException.Code code, String why) {
        return new RPCXException(code, why, RPCXException.Executed.MAYBE, null);
    }

    private void endUnread() {
        abort(brokenOff(RPCXException.Code.UNAVAILABLE, "the peer does not read what it is sent"));
    }

    /** Whether what the peer sends is read from here on. What it cannot send meanwhile does not count against it. */
    final void setReading(boolean reads) {
        if (reads == !isPaused) {
            return;
        }
        long now = nanoTime();
        isPaused = !reads;
        if (reads) {
            heardNanos = now;
            frames.postpone(now - pausedNanos);
        } else {
            pausedNanos = now;
        }
        OwedTime.of(channel).setReading(reads);
    }

    // ---- the looks

    private void look() {
        try {
            lookNow();
        } catch (Throwable t) {
            // a timer whose task throws comes never again, and nobody would find a peer that is gone
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
        if (waitingBytes > 0 && now - leftNanos >= keepAliveNanos && !isHeard(now)) {
            abort(brokenOff(
                    RPCXException.Code.UNAVAILABLE, "the peer has read nothing for " + millis(keepAliveNanos) + " ms"));
            return;
        }
        if (isEnding) {
            return;
        }
        if (frames.isCut() && isFrameLate(now)) {
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
        boolean isLate = !isPaused && (nowNanos - heardNanos >= silentNanos || nowNanos - frames.beganNanos() >= whole);
        // A peer that reads replies slowly makes pauses, which give it no more than its own time again. Something
        // is read behind each pause, and the slowest reader has to come to the end of one.
        long most = Math.max(2 * whole, CHUNKS_IN_PAUSE * keepAliveNanos);
        return isLate || nowNanos - frames.firstBeganNanos() >= most;
    }

    /**
     * Whether a server is there, though it takes nothing: it sends replies, and reads on when some of them have left
     * it, so it has taken something in four keep-alive times. A client that sends requests and takes no replies is not
     * spared for that.
     */
    private boolean isHeard(long nowNanos) {
        return isClient
                && nowNanos - heardNanos < keepAliveNanos
                && nowNanos - leftNanos < CHUNKS_IN_PAUSE * keepAliveNanos;
    }

    /**
     * A loop that was kept from a whole look was kept from its sockets too: what the peer has sent and taken meanwhile
     * may still have to be read there.
     */
    private void postponeIfLate(long nowNanos) {
        long late = nowNanos - lookedNanos - lookNanos;
        lookedNanos = nowNanos;
        if (late < lookNanos) {
            return;
        }
        busyNanos = Math.min(nowNanos, busyNanos + late);
        leftNanos = Math.min(nowNanos, leftNanos + late);
        frames.postponeFirst(late);
        if (!isPaused) {
            heardNanos = Math.min(nowNanos, heardNanos + late);
            frames.postpone(late);
        }
    }

    private static long millis(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(nanos);
    }

    // ---- the end

    /** Closes at once, whatever still waits for the peer. */
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
        // each of these also where the one before it fails: nobody comes here again
        try {
            // on a channel that is closed: what waited is given back
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
        // charged before the timer was set, which may have failed
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
