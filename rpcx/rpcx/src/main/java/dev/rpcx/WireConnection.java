package dev.rpcx;

import dev.rpcx.codec.HeapArray;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.FastThreadLocal;
import io.netty.util.concurrent.Ticker;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * One connection that speaks the native wire: cuts what arrives into frames, gathers what many threads send and flushes it once.
 *
 * <p>Outgoing: {@link #send} queues from any thread and wakes the event loop only if nobody has; the loop copies all it finds into one
 * pooled buffer and writes that. A message above one frame waits in {@link #turns} and leaves a fragment at a time,
 * behind the small ones;
 * so does any reply while the peer does not read.
 *
 * <p>Longer than 400 lines because what is gathered, what is cut and who writes change together, on the event loop, and nobody else may
 * touch them.
 */
abstract class WireConnection extends ChannelInboundHandlerAdapter {
    /** Bytes that leave in one write when busy. Source: rpcx-bench, with messages of 100 kB; a client that does not read holds one batch. */
    private static final int BATCH_BYTES = 256 * 1024;

    /**
     * So many small frames take some 0.1 ms, by reckoning: no call's time has to be known better, and the peer does not
     * wait longer for what comes of them.
     */
    private static final int FRAMES_AT_ONE_TIME = 64;

    /** A frame counts as one more for each so many bytes. */
    private static final int FRAME_BYTES = 512;

    /** What a loop reads at once, mostly. */
    private static final int INBOX_BYTES = 64 * 1024;

    private static final int FIRST_BATCH_BYTES = 512;
    private static final int FIRST_CUT_BYTES = 256;

    /** One connection writes no more than this while others of its loop wait. */
    private static final int AT_ONCE_BYTES = 512 * 1024;

    /** As much of what comes meanwhile leaves between two messages that have waited for the socket. */
    private static final int SHARE_BYTES = 32 * 1024;

    /** What a message costs beside its bytes. */
    private static final int MESSAGE_BYTES = 256;

    /** With more than this gathered, see {@link #isBehind}. */
    private static final int SHORT_BYTES = 16 * 1024;

    /** A body above this goes to the socket's buffer by itself; smaller ones are gathered on the heap first. */
    private static final int GATHERED_BYTES = 4 * 1024;

    private static final byte[] NOTHING = {};

    private static final System.Logger LOG = System.getLogger("dev.rpcx.wire");

    private static final ByteBuf PREFACE = Unpooled.unreleasableBuffer(
            Unpooled.buffer(Wire.PREFACE_BYTES).writeInt(Wire.MAGIC).writeInt(Wire.VERSION << 24));

    /** Where a loop's connections copy what they read: parsing the heap is several times faster than parsing a direct buffer. */
    private static final FastThreadLocal<ByteBuf> INBOX = new FastThreadLocal<>() {
        @Override
        protected ByteBuf initialValue() {
            return Unpooled.buffer(INBOX_BYTES);
        }
    };

    private static final VarHandle SCHEDULED;

    static {
        try {
            SCHEDULED = MethodHandles.lookup().findVarHandle(WireConnection.class, "scheduled", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    final Channel channel;

    /** What this connection holds. Closed by whoever opened it. */
    final Account account;

    private final EventLoop loop;
    private final Ticker ticker;
    private final Outbox outbox = new Outbox();
    private final Runnable drain = this::drain;

    private volatile boolean scheduled;

    /** Messages of more than one frame, and those that wait for the socket. */
    private final Turns turns = new Turns();

    /** Small frames gathered for the next write: on the heap, where writing a byte costs no more than that. */
    private final Gathered gathered = new Gathered();

    /** What is ready for the socket; {@link #gathered} comes after it. */
    private @Nullable ByteBuf batch;

    /** The begin of a frame whose end has not arrived. */
    private final ByteBuf cut = Unpooled.buffer(FIRST_CUT_BYTES, Wire.MAX_FRAME_BYTES + Wire.MAX_HEADER_BYTES);

    private final SocketQueue unsent;

    /** {@link #gathered} and {@link #cut}, where they have grown. */
    private final Charge kept;

    /** What {@link #cut} may grow to, from where a frame is more than what is not counted until its end has come. */
    private final Claim frame;

    private long keptBytes;

    /** Consecutive looks that have found the same frame without its end. */
    private int cutLooks;

    private boolean owesPong;
    private int owedPong;

    /** The number of the last PING that this side has sent. */
    private int pings;

    private final WriteTurn turn;
    private boolean greeted;
    private boolean reading;

    /** More follows that leaves together, such as where what is queued is being taken from the queue. */
    private boolean gathering;

    private volatile boolean closed;

    /**
     * What this side has no memory for, or that it has none, where the connection ends for that: it says nothing of the
     * peer. An {@link OutOfMemoryError} gives its own text: the JVM makes that of a literal when it first comes to it.
     */
    private volatile @Nullable String memoryWanted;

    /** See {@link #readNanos}. */
    private long readNanos;

    private boolean isReadTimed;

    /** Frames that have been read since what came of them was last sent; a large one counts as several. */
    private int frames;

    /** Bytes that have left since what is being read has begun to be read. */
    private int sentMeanwhile;

    /** Bytes of what is queued that may still leave before the end of what is being read. */
    private int roomMeanwhile = AT_ONCE_BYTES;

    /**
     * A full batch has gone to the socket's queue, and {@link SocketQueue#look} has not seen that; the channel may not
     * have been flushed behind it either.
     */
    private boolean unlooked;

    /** Counts up each time that something has arrived. */
    private int reads;

    /** The same when {@link KeepAlive} looked last. */
    private int readsLookedAt;

    /**
     * Grows with each frame, so it is apart from the connection: the threads of callers and handlers read that one's
     * fields, and would find their lines of the cache taken from them each time.
     */
    private static final class Gathered {
        byte[] bytes = new byte[FIRST_BATCH_BYTES];
        int length;
    }

    WireConnection(Channel channel, Account account) {
        MemoryReserve.keep();
        this.channel = channel;
        this.account = account;
        this.unsent =
                new SocketQueue(channel, account, this::replyBytes, () -> 0, this::unsentChanged, this::endUnread);
        this.kept = account.charge(Resource.KEPT_BYTES);
        this.frame = new Claim(account, Resource.FRAME_BYTES, channel.eventLoop(), this::endFrame);
        this.loop = channel.eventLoop();
        this.ticker = loop.ticker();
        this.turn = new WriteTurn(channel, this);
    }

    /** The peer's highest version; both speak the lower of the two. */
    abstract void onPreface(int version);

    /** One frame; its payload is what can be read. Unknown types are survived: the implementation passes over them. */
    abstract void onFrame(int head, int id, ByteBuf payload);

    /** Largest body that the peer takes, as it said in its settings. Any thread. */
    abstract int maxBytesTaken();

    /** Bytes have arrived. What other threads did before they wrote what this answers is seen from here on. */
    abstract void beforeRead();

    /** The connection is about to be over: from here on the event loop alone decides how calls end. */
    void beforeClose() {}

    /** The connection is over; {@code why} says so in words for a caller. Called once, on the event loop. */
    abstract void onClosed(String why);

    /** Whether a message would leave before the one that its peer has to have first. On the event loop. */
    boolean isAhead(Outbound message) {
        return false;
    }

    // ---- outgoing

    /** Queues a message, from any thread. */
    final void send(Outbound message) {
        outbox.add(message);
        try {
            wake();
        } catch (Throwable e) {
            if (!isSentLater()) {
                throw e;
            }
        }
    }

    /**
     * Says whether a message is sent in time that stands in the queue, though the loop could not be woken for it. From
     * any thread.
     */
    boolean isSentLater() {
        return false;
    }

    private void wake() {
        if (!scheduled && SCHEDULED.compareAndSet(this, false, true)) {
            try {
                loop.execute(drain);
            } catch (RejectedExecutionException ended) {
                drainAfterEnd();
            } catch (Throwable e) {
                // such as a stack at its end, where nothing more can be called: the next to send wakes the loop
                scheduled = false;
                throw e;
            }
        }
    }

    /**
     * Sends what has been queued until now, also by a thread that could not wake the loop. On the event loop.
     *
     * @return false if some of it has to wait for the loop's next turn, as it was much, or stands behind a message that
     *     another thread is about to link
     */
    final boolean sendQueued() {
        beginDrain();
        Outbound last = outbox.last();
        int left = AT_ONCE_BYTES;
        boolean isAll = true;
        for (Outbound message = outbox.poll(); message != null; message = outbox.poll()) {
            left -= MESSAGE_BYTES + gatherSafely(message);
            if (message == last && !closed) {
                break;
            }
            if (left <= 0 && !closed) {
                // a flush within may have sent the last one, and streams come back for as long as their peer reads
                wakeAgain();
                isAll = false;
                break;
            }
        }
        if (left > 0 && !outbox.isEmpty()) {
            // what has come meanwhile as well, which does no harm
            isAll = false;
        }
        // what has come back to the queue meanwhile has woken the loop
        flushGathered();
        return isAll;
    }

    /**
     * Writes a small message from this thread, which is not the event loop, if nobody else is writing and nothing is queued: messages of one
     * thread stay in order. The answer can be there, and the message in use again, before this returns.
     *
     * @return false if it has to be queued
     */
    final boolean sendHere(Outbound message) {
        int bytes = message.body.readableBytes();
        if (bytes > WriteTurn.MAX_BYTES - Wire.MAX_HEADER_BYTES || scheduled || !turn.takeForCaller()) {
            return false;
        }
        try {
            boolean leaves = turn.fill(message);
            if (leaves && !turn.write()) {
                inLoopOrHere(drain);
                return true;
            }
            if (turn.callerDone()) {
                wake();
            }
            return leaves;
        } catch (Throwable e) {
            wakeIfPossible();
            throw e;
        }
    }

    /** The turn is given up already; the sooner the loop sees that, the better. */
    private void wakeIfPossible() {
        try {
            wake();
        } catch (Throwable again) {
            // the stack or the memory is at its end: whatever comes to the loop next lets it look
        }
    }

    /**
     * A thread's frame has left in part: its rest goes before all that has been gathered meanwhile, in one buffer with
     * that, so that nothing can leave without it. What this throws leaves all as it was, and nobody writes until this
     * has been done.
     */
    private boolean takeRest() {
        ByteBuffer rest = turn.rest();
        if (rest == null) {
            return false;
        }
        ByteBuf behind = batch;
        int bytes = rest.remaining() + (behind == null ? 0 : behind.readableBytes());
        ByteBuf out = channel.alloc().directBuffer(bytes + gathered.length);
        boolean isWhole = false;
        try {
            out.writeBytes(rest.duplicate());
            if (behind != null) {
                out.writeBytes(behind, behind.readerIndex(), behind.readableBytes());
            }
            isWhole = true;
        } finally {
            if (!isWhole) {
                out.release();
            }
        }
        batch = out;
        turn.takeOver();
        if (behind != null) {
            behind.release();
        }
        return true;
    }

    /** Also from a thread that has left the rest of its frame, and whose word of that has not come or never will. */
    private boolean takeTurn() {
        return turn.takeForLoop() || takeRest();
    }

    /** On the event loop; when that has ended, here. */
    public final void inLoopOrHere(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException ended) {
            synchronized (this) {
                task.run();
            }
        }
    }

    final boolean inLoop() {
        return loop.inEventLoop();
    }

    final EventLoop loop() {
        return loop;
    }

    /** The time that this connection and its calls go by, which does not compare with {@code System.nanoTime()}. From any thread. */
    final long nanoTime() {
        return ticker.nanoTime();
    }

    /**
     * Sends from the event loop: joins what is being gathered, and leaves with it. Where that fails the connection
     * ends, since nobody else may know that it did.
     */
    final void sendNow(Outbound message) {
        if (closed) {
            message.lost();
            return;
        }
        gatherSafely(message);
        // a message that refuses itself as it leaves is one of many: whoever takes them from the queue flushes behind
        // them
        if (!gathering) {
            flushGathered();
        }
    }

    /** Flushes once, behind all that {@code sends} sends. On the event loop. */
    final void sendTogether(Runnable sends) {
        boolean outer = gathering;
        gathering = true;
        try {
            sends.run();
        } finally {
            gathering = outer;
        }
        if (!gathering) {
            flushGathered();
        }
    }

    /** On the event loop. While the peer does not read, the last of its pings alone is owed an answer: pings cost it nothing. */
    final void answerPing(int id) {
        if (channel.isWritable()) {
            sendNow(Wire.PONG, id);
        } else {
            owesPong = true;
            owedPong = id;
        }
    }

    final void sendNow(int head, int id) {
        sendNow(Outbound.Control.empty(head, id));
    }

    /** Sends a PING, behind the small frames that were sent before it. On the event loop. @return its id, a number */
    final int ping() {
        sendNow(Wire.PING, ++pings);
        return pings;
    }

    /** Whether a PONG says that the peer has read this PING: it does also as that of a later one. On the event loop. */
    final boolean answers(int pong, int ping) {
        return pong - ping >= 0 && pings - pong >= 0;
    }

    /** Whatever was queued until now has left or was dropped. On the event loop. */
    final boolean isQueueEmpty() {
        return outbox.isEmpty();
    }

    /** Ends calls that the threads which were about to end them could not. On the event loop. */
    void endLost() {}

    private void drain() {
        gatherAll(AT_ONCE_BYTES);
        flushGathered();
    }

    /**
     * @param room bytes that may leave
     * @return what is left of that
     */
    private int gatherAll(int room) {
        beginDrain();
        int left = gatherQueued(room);
        if (left <= 0) {
            wakeAgain();
        }
        return left;
    }

    /**
     * Sends what has come of the frames so far while more of them wait to be read: the peer works on that meanwhile.
     * Where all left together at the end, each side would have nothing to do while the other reads. Messages of more
     * than one frame wait for that end, and so does what is more than a turn of this connection.
     */
    private void sendMeanwhile() {
        if (closed || roomMeanwhile <= 0 || outbox.isEmpty() && gatheredBytes() == 0) {
            return;
        }
        try {
            roomMeanwhile = gatherAll(roomMeanwhile);
            if (gatheredBytes() > 0 && takeTurn()) {
                int before = gatheredBytes();
                boolean isAll = batch == null ? isWrittenHere() : isBatchWrittenHere();
                sentMeanwhile += before - gatheredBytes();
                if (!isAll) {
                    // the peer does not read, or the socket is not for this: what is read is handed out first
                    roomMeanwhile = 0;
                }
            }
        } catch (Throwable t) {
            broken(t);
        }
    }

    private void beginDrain() {
        // first: a thread that finds nothing scheduled and the turn free may be sure that what it has queued before has
        // left
        try {
            takeTurn();
        } catch (Throwable t) {
            broken(t);
        } finally {
            // before the first poll: whoever adds from here on schedules again, whoever added before is found
            scheduled = false;
        }
    }

    /** Other connections of the loop have their turn before the rest. */
    private void wakeAgain() {
        try {
            wake();
        } catch (Throwable t) {
            broken(t);
        }
    }

    private void flushGathered() {
        if (!reading) {
            try {
                flush();
            } catch (Throwable t) {
                broken(t);
            }
        }
    }

    /**
     * Streams come back to the queue as often as they have more, and their peer may read as fast as it is filled.
     *
     * @param room bytes that may leave
     * @return what is left of that; if nothing is, more may be queued, unless the connection is closed
     */
    private int gatherQueued(int room) {
        int left = room;
        boolean outer = gathering;
        gathering = true;
        try {
            while (left > 0 || closed) {
                Outbound message = outbox.poll();
                if (message == null) {
                    break;
                }
                left -= MESSAGE_BYTES + gatherSafely(message);
            }
        } finally {
            gathering = outer;
        }
        return left;
    }

    /** @return bytes of it that leave */
    private int gatherSafely(Outbound message) {
        try {
            if (!closed) {
                return gather(message);
            }
            message.lost();
        } catch (Throwable t) {
            // what is queued behind it has to be told nevertheless, or its owner waits for ever
            broken(t);
        }
        return 0;
    }

    /**
     * Something was thrown that nobody expected, or the heap is full: this connection's state is unknown, and it ends here and now. The
     * loop and its other connections go on.
     */
    final void broken(Throwable thrown) {
        if (thrown instanceof OutOfMemoryError) {
            MemoryReserve.use();
            memoryWanted = ThrowableText.message(thrown);
        }
        try {
            abort("the connection failed by a fault of this side");
        } finally {
            Complaint.warn(LOG, "a connection ends by a fault of this side", thrown);
        }
    }

    /** The loop has ended: whoever comes too late fails his own call. */
    private synchronized void drainAfterEnd() {
        scheduled = false;
        for (Outbound message = outbox.poll(); message != null; message = outbox.poll()) {
            try {
                message.lost();
            } catch (Throwable e) {
                // as above: those behind it have to be told nevertheless
                ThreadTools.report(e);
            }
        }
    }

    private int gather(Outbound message) {
        if (!message.leaving()) {
            return 0;
        }
        boolean isAhead = isAhead(message);
        if (isAhead || message.waits || message.body.readableBytes() > Wire.MAX_PAYLOAD_BYTES) {
            message.begun = false;
            turns.add(message, isAhead);
            return 0;
        }
        // a stream has put its item there only now, and may have put the next one there once it has left
        int bytes = message.body.readableBytes();
        writeFrame(message.head, message.id, message.body, bytes);
        message.left();
        flushBatch();
        return bytes;
    }

    /** Gathers a frame as a whole: where there is no room for all of it, nothing of it is gathered. */
    private void writeFrame(int head, int id, ByteBuf body, int bytes) {
        boolean alone = bytes > GATHERED_BYTES;
        // what is gathered goes before what a thread writes itself from here on: no reply may overtake the preface
        turn.takeForLoop();
        reserve(Wire.MAX_HEADER_BYTES + (alone ? 0 : bytes));
        byte[] out = gathered.bytes;
        int at = Varint.write(out, gathered.length, Wire.HEAD_BYTES + bytes);
        out[at] = (byte) head;
        out[at + 1] = (byte) (id >>> 24);
        out[at + 2] = (byte) (id >>> 16);
        out[at + 3] = (byte) (id >>> 8);
        out[at + 4] = (byte) id;
        at += Wire.HEAD_BYTES;
        if (!alone) {
            body.readBytes(out, at, bytes);
            gathered.length = at + bytes;
            return;
        }
        // room for the fragments behind this one, and for those of others in turn: a buffer that has to grow is copied
        long wanted = body.readableBytes() + turns.bytes();
        int room = wanted < BATCH_BYTES ? (int) wanted + GATHERED_BYTES : BATCH_BYTES + Wire.MAX_FRAME_BYTES;
        spill(at, bytes, room).writeBytes(body, bytes);
    }

    /**
     * Writes a full batch. Its owners know already that their messages have left: a write can end the connection, and
     * then each call has its end and may be another one. Within a read the socket is written to here where it can be: a
     * write of the channel's that fails would end the connection before what has come is handed out, so what is for a
     * broken socket waits for the read's end.
     */
    private void flushBatch() {
        if (gatheredBytes() < BATCH_BYTES || !takeTurn()) {
            return;
        }
        unlooked = true;
        if (reading) {
            sentMeanwhile += gatheredBytes();
            if (isBatchWrittenHere()) {
                return;
            }
        }
        writeBatch();
        if (!reading || !turn.isBroken()) {
            channel.flush();
        }
    }

    private int gatheredBytes() {
        return gathered.length + (batch == null ? 0 : batch.readableBytes());
    }

    /** Writes what is gathered without the channel. @return whether all of it has left */
    private boolean isWrittenHere() {
        if (batch != null) {
            return false;
        }
        int written = turn.writeHere(gathered.bytes, gathered.length);
        gathered.length -= written;
        if (gathered.length > 0 && written > 0) {
            System.arraycopy(gathered.bytes, written, gathered.bytes, 0, gathered.length);
        }
        return gathered.length == 0;
    }

    /**
     * The same for what is gathered in the socket's buffer, and behind it. The write that hears of a peer's reset takes
     * a part of the bytes and says nothing of it, so the socket is asked until it takes all, or none, or fails.
     */
    private boolean isBatchWrittenHere() {
        ByteBuf out = spill(gathered.length, 0, 0);
        int before;
        do {
            before = out.readerIndex();
            turn.writeHere(out);
        } while (out.readerIndex() > before && out.isReadable());
        int rest = out.readableBytes();
        if (out.readerIndex() == 0) {
            return false;
        }
        // in the socket's queue it is charged by what can be read of it, so no more is held
        batch = rest == 0 ? null : channel.alloc().directBuffer(rest).writeBytes(out, out.readerIndex(), rest);
        out.release();
        return rest == 0;
    }

    private void reserve(int bytes) {
        if (gathered.length + bytes > gathered.bytes.length) {
            gathered.bytes =
                    Arrays.copyOf(gathered.bytes, Math.max(gathered.length + bytes, 2 * gathered.bytes.length));
        }
    }

    /**
     * Moves what was gathered, up to {@code end}, to the socket's buffer. What it throws leaves all as it was.
     *
     * @param least there is room for so many bytes behind it
     * @param room the same of a buffer that is new
     */
    private ByteBuf spill(int end, int least, int room) {
        ByteBuf out = batch;
        if (out == null) {
            out = batch = channel.alloc().directBuffer(end + room);
        } else {
            out.ensureWritable(end + least);
        }
        out.writeBytes(gathered.bytes, 0, end);
        gathered.length = 0;
        return out;
    }

    private void writeBatch() {
        if (gathered.length > 0 || batch != null) {
            ByteBuf out = fit(spill(gathered.length, 0, 0));
            batch = null;
            channel.write(out, channel.voidPromise());
        }
    }

    /**
     * The same bytes in a buffer that is not much larger than they are, since the socket's queue is charged by what can
     * be read. A batch has room for messages that wait, and those may be taken back.
     */
    private ByteBuf fit(ByteBuf out) {
        int bytes = out.readableBytes();
        if (out.capacity() / 2 <= bytes) {
            return out;
        }
        ByteBuf fitting = channel.alloc().directBuffer(bytes).writeBytes(out, out.readerIndex(), bytes);
        out.release();
        return fitting;
    }

    /**
     * Writes what was gathered; large messages add a fragment each as long as the socket takes them. A write can end the connection or
     * come back here, so after each one {@link #turns} may be others.
     */
    private void flush() {
        if (gathered.length == 0 && batch == null && turns.isEmpty() && !unlooked) {
            if (gathered.bytes.length + cut.capacity() != keptBytes) {
                // a frame that has begun is held also where nothing leaves
                keepBuffers();
            }
            turn.loopDone();
            return;
        }
        if (!takeTurn()) {
            return;
        }
        if (unlooked) {
            // what a read has left in the channel's queue
            channel.flush();
        }
        int room = AT_ONCE_BYTES;
        while (room > 0 && !turns.isEmpty() && channel.isWritable()) {
            room -= SHARE_BYTES - gatherQueued(SHARE_BYTES);
            Outbound message = turns.next();
            if (message == null) {
                break;
            }
            if (!message.begun) {
                message.begins();
            }
            int rest = message.body.readableBytes();
            int bytes = Math.min(rest, Wire.MAX_PAYLOAD_BYTES);
            int head = message.begun ? Wire.PART : message.head;
            message.begun = true;
            room -= bytes;
            writeFrame(bytes < rest ? head | Wire.MORE : head, message.id, message.body, bytes);
            if (bytes == rest) {
                endTurn(message);
            } else {
                turns.goesOn(message);
            }
            flushBatch();
        }
        // taken again: a flush within this one has given it back
        if ((gathered.length > 0 || batch != null) && takeTurn() && !isWrittenHere()) {
            writeBatch();
            channel.flush();
        }
        if (gathered.bytes.length + cut.capacity() != keptBytes) {
            keepBuffers();
        }
        unlooked = false;
        unsent.look();
        unsentChanged();
        if (room <= 0 && !closed) {
            wakeAgain();
        }
        turn.loopDone();
    }

    /**
     * The last of it has left, and its owner is told so also where the next of its size cannot begin, for want of
     * memory: whoever is told that a call was not executed may make it again.
     */
    private void endTurn(Outbound message) {
        try {
            turns.ended(message);
        } finally {
            message.left();
        }
    }

    /** The socket's queue may be shorter or longer than before. On the event loop. */
    void unsentChanged() {}

    /**
     * Whether a message of one frame that leaves now would stand in the socket's queue, or overtake one that waits for
     * it. On the event loop.
     */
    final boolean isSocketBusy() {
        return !channel.isWritable() || turns.hasWhole();
    }

    /** Whether what goes out already is so much that what else the peer is told has to be short. On the event loop. */
    final boolean isBehind() {
        return batch != null || sentMeanwhile + gathered.length > SHORT_BYTES || !channel.isWritable();
    }

    private void endUnread() {
        abort("the peer does not read what it is sent");
    }

    /** What is charged of replies that have been made for the peer and have not left. On the event loop. */
    long replyBytes() {
        return 0;
    }

    /** As {@link SocketQueue#isStandingStill}. */
    final boolean isStandingStill() {
        return unsent.isStandingStill();
    }

    private void keepBuffers() {
        if (closed) {
            // the end has released all, and what is read after it charges nothing more
            return;
        }
        long bytes = gathered.bytes.length + cut.capacity();
        boolean isCharged = bytes <= Outbound.SMALL_BYTES
                || kept.set(HeapArray.taken(gathered.bytes.length) + HeapArray.taken(cut));
        if (!isCharged) {
            shrinkBuffers();
            bytes = gathered.bytes.length + cut.capacity();
        }
        if (!isCharged || bytes <= Outbound.SMALL_BYTES) {
            kept.release();
        }
        // what is in use and could not be charged is looked at again
        keptBytes = isCharged || bytes <= Outbound.SMALL_BYTES ? bytes : 0;
    }

    /** Buffers that have grown and hold nothing are given up. */
    private void shrinkBuffers() {
        if (gathered.length == 0) {
            gathered.bytes = new byte[FIRST_BATCH_BYTES];
        }
        if (!cut.isReadable()) {
            cut.clear().capacity(FIRST_CUT_BYTES);
        }
        turns.shrink();
    }

    /** Nothing has been heard for a while: buffers that have grown are given up. On the event loop. */
    void rest() {
        shrinkBuffers();
        keepBuffers();
    }

    /**
     * The peer is lively, and it is some time since this was said last: a part of what is kept and not used is given up.
     * On the event loop.
     */
    void shed() {
        turns.shrink();
    }

    /** Takes a message back that waits for its turn, or of which some has left. */
    final void recall(Outbound message) {
        if (!turns.isLast()) {
            turns.remove(message);
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        if (channel.isWritable()) {
            if (owesPong) {
                owesPong = false;
                sendNow(Wire.PONG, owedPong);
            }
            if (!reading) {
                flush();
            }
        }
    }

    // ---- incoming

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf arrived = (ByteBuf) message;
        try {
            beforeRead();
            reading = true;
            isReadTimed = false;
            reads++;
            while (arrived.isReadable() && !closed) {
                if (!greeted) {
                    readPreface(arrived);
                } else if (cut.isReadable()) {
                    completeCut(arrived);
                } else if (!isLarge(arrived)) {
                    readFrames(arrived);
                } else if (!readFrame(arrived)) {
                    keepCut(arrived, arrived.readableBytes());
                }
            }
        } catch (WireFault fault) {
            fail(String.valueOf(fault.getMessage()));
        } finally {
            arrived.release();
        }
    }

    /**
     * When what is being read was there, for some frames of it: a look at the clock for each costs a part of a small
     * call. What takes the loop longer than those has {@link #readAnew} said.
     */
    final long readNanos() {
        if (!reading) {
            return nanoTime();
        }
        if (!isReadTimed) {
            isReadTimed = true;
            readNanos = nanoTime();
        }
        return readNanos;
    }

    /** Something has kept the loop, such as a handler: what is read from here on has its time from now. */
    final void readAnew() {
        isReadTimed = false;
    }

    /** A frame so large that a copy costs more than reading its head from a direct buffer. */
    private static boolean isLarge(ByteBuf arrived) {
        return arrived.readableBytes() > GATHERED_BYTES && frameLength(arrived) > GATHERED_BYTES;
    }

    /** Reads what is there, copied once to where parsing is fast. */
    private void readFrames(ByteBuf arrived) {
        ByteBuf in = INBOX.get();
        in.clear();
        in.writeBytes(arrived);
        while (in.isReadable() && !closed) {
            if (!readFrame(in)) {
                keepCut(in, in.readableBytes());
            }
        }
    }

    private void hasRead(int bytes) {
        frames += 1 + bytes / FRAME_BYTES;
        if (frames >= FRAMES_AT_ONE_TIME) {
            frames = 0;
            readAnew();
            sendMeanwhile();
        }
    }

    /**
     * Keeps bytes of a frame whose end has not arrived. A frame that is more than a little is charged before it is
     * kept: where there is no room, its connection ends, as nothing smaller than the connection could be refused.
     */
    private void keepCut(ByteBuf in, int bytes) {
        int before = cut.writerIndex();
        if (before <= Outbound.SMALL_BYTES && before + bytes > Outbound.SMALL_BYTES) {
            long now = nanoTime();
            if (!frame.set(cut.maxCapacity(), now)) {
                endFrame();
                return;
            }
            frame.renew(now);
            frameWaits(now);
        }
        cut.writeBytes(in, bytes);
    }

    private void endFrame() {
        String wanted = "no room for the begin of a frame whose end has not come";
        memoryWanted = wanted;
        fail(RPCXException.Code.OVERLOADED, wanted);
    }

    /** A frame that is charged has begun to arrive, and its end is missing. On the event loop. */
    void frameWaits(long nowNanos) {}

    /** Whether so many looks in a row, and this one, have found the same frame without its end. On the event loop. */
    final boolean isFrameOverdue(int looks) {
        cutLooks = greeted && cut.isReadable() ? cutLooks + 1 : 0;
        return cutLooks > looks;
    }

    /** Whether a frame that is charged waits for its end. On the event loop. */
    final boolean isFrameWaiting() {
        return cut.readableBytes() > Outbound.SMALL_BYTES;
    }

    /** Something that has come is being read. Event loop only. */
    final boolean isReading() {
        return reading;
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        reading = false;
        frames = 0;
        sentMeanwhile = 0;
        roomMeanwhile = AT_ONCE_BYTES;
        if (closed) {
            dropCut();
        }
        if (cut.readableBytes() <= Outbound.SMALL_BYTES) {
            frame.release();
        }
        flush();
    }

    private void readPreface(ByteBuf in) {
        cut.writeBytes(in, Math.min(Wire.PREFACE_BYTES - cut.readableBytes(), in.readableBytes()));
        if (cut.readableBytes() == Wire.PREFACE_BYTES) {
            long preface = cut.readLong();
            cut.clear();
            int version = (int) (preface >>> 24) & 0xFF;
            if ((int) (preface >>> 32) != Wire.MAGIC || version == 0 || version > Wire.MAX_VERSION) {
                throw new WireFault("preface " + Long.toHexString(preface) + " (expected: RPCX, a version from 1 to "
                        + Wire.MAX_VERSION + ")");
            }
            greeted = true;
            onPreface(version);
        }
    }

    /** The eight bytes with which a connection begins, each way. No feature is defined yet, so none is told. */
    final void sendPreface() {
        turn.takeForLoop();
        reserve(Wire.PREFACE_BYTES);
        PREFACE.getBytes(0, gathered.bytes, gathered.length, Wire.PREFACE_BYTES);
        gathered.length += Wire.PREFACE_BYTES;
    }

    /** Takes as many bytes as the frame that was cut still needs, and not one more. */
    private void completeCut(ByteBuf in) {
        int length = frameLength(cut);
        if (length < 0) {
            cut.writeByte(in.readByte());
            frameLength(cut);
            return;
        }
        int wanted = headerOf(length) + length - cut.readableBytes();
        keepCut(in, Math.min(wanted, in.readableBytes()));
        if (!closed && readFrame(cut)) {
            cut.clear();
            cutLooks = 0;
        }
    }

    /** Reads one frame if all of it is there. */
    private boolean readFrame(ByteBuf in) {
        int length = frameLength(in);
        if (length < 0) {
            return false;
        }
        int start = in.readerIndex();
        int payload = start + headerOf(length) + Wire.HEAD_BYTES;
        int end = payload - Wire.HEAD_BYTES + length;
        int writer = in.writerIndex();
        if (end > writer) {
            return false;
        }
        int head = in.getUnsignedByte(payload - 5);
        int id = in.getInt(payload - 4);
        in.setIndex(payload, end);
        onFrame(head, id, in);
        in.setIndex(end, writer);
        hasRead(length);
        return true;
    }

    /** Whether {@code in} begins with one whole frame of this head and id: if so, what can be read of it is the frame's payload. */
    static boolean enterFrame(ByteBuf in, int head, int id) {
        int length = frameLength(in);
        int payload = in.readerIndex() + headerOf(length) + Wire.HEAD_BYTES;
        int end = payload - Wire.HEAD_BYTES + length;
        if (length < 0
                || end > in.writerIndex()
                || in.getUnsignedByte(payload - 5) != head
                || in.getInt(payload - 4) != id) {
            return false;
        }
        in.setIndex(payload, end);
        return true;
    }

    /** Bytes of the length field that says {@code length}. */
    static int headerOf(int length) {
        return length < 1 << 7 ? 1 : length < 1 << 14 ? 2 : 3;
    }

    /** What the length field says, or -1 if it has not arrived whole. Checked before anything is allocated for the frame. */
    static int frameLength(ByteBuf in) {
        int available = in.readableBytes();
        int start = in.readerIndex();
        int length = 0;
        for (int i = 0; i < available; i++) {
            byte b = in.getByte(start + i);
            length |= (b & 0x7F) << 7 * i;
            if (b >= 0) {
                if (length < Wire.HEAD_BYTES || length > Wire.MAX_FRAME_BYTES || headerOf(length) != i + 1) {
                    throw new WireFault("frame of length " + length + " (expected: " + Wire.HEAD_BYTES + " to "
                            + Wire.MAX_FRAME_BYTES + ", in as few bytes as it takes)");
                }
                return length;
            }
            if (i == 2) {
                throw new WireFault("frame length of more than 3 bytes");
            }
        }
        return -1;
    }

    // ---- the end

    /** Ends the connection over something the peer did, and tells it what. */
    final void fail(String why) {
        fail(RPCXException.Code.PROTOCOL, why);
    }

    private void fail(RPCXException.Code code, String why) {
        try {
            if (!closed && greeted) {
                ByteBuf body = Unpooled.buffer();
                WireError.write(body, new RPCXException(code, why, RPCXException.Executed.MAYBE, null));
                gather(new Outbound.Control(Wire.ERROR, 0, body));
            }
        } finally {
            close(why);
        }
    }

    /** On the event loop. What has been written leaves, if the peer reads it soon. */
    final void close(String why) {
        if (closed) {
            return;
        }
        // each of these also where the one before it fails, as where the memory is at its end
        try {
            try {
                end(why);
            } finally {
                HalfClose.of(channel, account);
            }
        } finally {
            unsent.look();
        }
    }

    private void end(String why) {
        closed = true;
        // these as well
        try {
            try {
                endWriting();
            } finally {
                tellOfEnd(why);
            }
        } finally {
            dropAll();
        }
    }

    private void tellOfEnd(String why) {
        String wanted = memoryWanted;
        onClosed(wanted == null ? why : wanted);
    }

    /** What is queued is lost, and nothing is kept or charged any more. */
    private void dropAll() {
        drain();
        dropGathered();
        kept.release();
        frame.close();
        unsent.dropReplies();
        if (!reading) {
            dropCut();
        }
    }

    private void endWriting() {
        try {
            beforeClose();
        } finally {
            turns.clear();
            // from here on no thread writes; what one has begun is ended first
            turn.end();
        }
        takeRest();
        writeBatch();
    }

    /** A handler may hold the connection long after its end, which must not keep what is not counted any more. */
    private void dropGathered() {
        gathered.bytes = NOTHING;
        gathered.length = 0;
        ByteBuf unwritten = batch;
        batch = null;
        if (unwritten != null) {
            unwritten.release();
        }
    }

    /** What small frames are gathered in: for tests. */
    final int bufferBytes() {
        return gathered.bytes.length;
    }

    /** The peer may have seconds to read why its connection ended; what it began to send is not kept for so long. */
    private void dropCut() {
        cut.clear().capacity(0);
    }

    final boolean isClosed() {
        return closed;
    }

    /** What this side has no memory for, which ends or has ended the connection; null for any other end. Any thread. */
    final @Nullable String memoryWanted() {
        return memoryWanted;
    }

    /** On the event loop: ends a connection whose peer would not take what is still to be written, here and now. */
    public final void abort(String why) {
        try {
            if (!closed) {
                end(why);
                channel.flush();
            }
        } finally {
            SocketQueue.closeNow(channel);
        }
    }

    /** All that has arrived has been read, to the end of a frame. On the event loop. */
    final boolean isBetweenFrames() {
        return greeted && !cut.isReadable();
    }

    /** A thread that is not the event loop has heard of the peer, or the peer has taken what it was sent. */
    public final void hear() {
        reads++;
    }

    /** Another number each time that anything has arrived. On the event loop. */
    final int reads() {
        return reads;
    }

    /** Whether anything has arrived since the last question. On the event loop. */
    final boolean heard() {
        boolean was = reads != readsLookedAt;
        readsLookedAt = reads;
        return was;
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        close("the connection ended");
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
        if (event == SocketQueue.NO_ROOM) {
            memoryWanted = "no room for the begin of a record whose end has not come";
        } else if (event == SocketQueue.PART) {
            hear();
        }
        ctx.fireUserEventTriggered(event);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        if (cause instanceof OutOfMemoryError) {
            MemoryReserve.use();
            memoryWanted = ThrowableText.message(cause);
        }
        close(VisibleText.line(ThrowableText.message(cause), ThrowableText.MAX_WHY));
    }
}
