package dev.rpcx.internal.wire;

import dev.rpcx.RPCXException;
import dev.rpcx.VisibleText;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.MemoryReserve;
import dev.rpcx.internal.RateLimitedLog;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.io.HalfClose;
import dev.rpcx.internal.io.SocketQueue;
import dev.rpcx.internal.io.WriteTurn;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Claim;
import dev.rpcx.internal.ledger.Resource;
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
 * One connection of the native wire. It cuts the bytes that arrive into frames, and sends messages for many threads.
 *
 * <p>Any thread may call {@link #send}, which queues a message and wakes the event loop. The event loop gathers the
 * bytes of all queued messages, and writes them together. A message of several frames waits in {@link #scheduler},
 * which sends one frame at a time, behind the small messages. While the peer does not read, requests, replies and
 * stream items of any size also wait there.
 *
 * <p>The class is longer than 400 lines because the gathered output, the incomplete input and the turn to write change
 * together on the event loop, and no other class may touch them.
 */
public abstract class WireConnection extends ChannelInboundHandlerAdapter {
    /**
     * Number of bytes of output after which a busy connection writes to the socket. Measured with rpcx-bench and
     * messages of 100 kB. If the peer does not read, this side holds about this number of bytes in memory.
     */
    private static final int BATCH_BYTES = 256 * 1024;

    /**
     * Number of small frames that are read before the output so far is sent and the clock is read again. By estimate,
     * this is every 0.1 ms.
     */
    private static final int FRAMES_AT_ONE_TIME = 64;

    /**
     * Number of bytes for which a frame counts once more against {@code FRAMES_AT_ONE_TIME}. So a large frame counts as
     * several small ones.
     */
    private static final int FRAME_BYTES = 512;

    /** Initial capacity in bytes of {@code INBOX}. It is usually enough for one read of the event loop. */
    private static final int INBOX_BYTES = 64 * 1024;

    private static final int FIRST_BATCH_BYTES = 512;
    private static final int FIRST_CUT_BYTES = 256;

    /** Largest number of bytes that a connection writes before the event loop serves its other connections. */
    private static final int AT_ONCE_BYTES = 512 * 1024;

    /** Largest number of bytes of queued messages that are sent between two frames of messages in {@code scheduler}. */
    private static final int SHARE_BYTES = 32 * 1024;

    /**
     * Number of bytes that a message counts against limits such as {@code AT_ONCE_BYTES}, in addition to those of its
     * body.
     */
    private static final int MESSAGE_BYTES = 256;

    /**
     * If more bytes than this have been sent or gathered since the current read began, {@link #isBacklogged} is true.
     */
    private static final int SHORT_BYTES = 16 * 1024;

    /**
     * Largest size in bytes of a body that is copied into the heap buffer {@code gathered}. A larger body is copied
     * directly into {@code batch}.
     */
    private static final int GATHERED_BYTES = 4 * 1024;

    private static final byte[] NOTHING = {};

    private static final System.Logger LOG = System.getLogger("dev.rpcx.wire");

    private static final ByteBuf PREFACE = Unpooled.unreleasableBuffer(
            Unpooled.buffer(Wire.PREFACE_BYTES).writeInt(Wire.MAGIC).writeInt(Wire.VERSION << 24));

    /**
     * Heap buffer into which all connections of an event loop copy what has arrived. Parsing the direct buffer of the
     * socket instead would be several times slower.
     */
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

    public final Channel channel;

    /** Account to which everything that this connection holds is charged. Closed by the code that opened it. */
    public final Account account;

    private final EventLoop loop;
    private final Ticker ticker;
    private final Outbox outbox = new Outbox();
    private final Runnable flushTask = this::flushQueued;

    private volatile boolean scheduled;

    /** Messages that wait to be sent: those of more than one frame, and those of any size that wait for the socket. */
    private final FrameScheduler scheduler = new FrameScheduler();

    /**
     * Small frames that have been copied for the next write. They are on the heap, where writing a byte is one store.
     */
    private final Gathered gathered = new Gathered();

    /** Direct buffer with output that is sent before {@link #gathered}; null if there is none. */
    private @Nullable ByteBuf batch;

    /** Beginning of a frame, or of the preface, of which the rest has not arrived. */
    private final ByteBuf partialFrame = Unpooled.buffer(FIRST_CUT_BYTES, Wire.MAX_FRAME_BYTES + Wire.MAX_HEADER_BYTES);

    private final SocketQueue unsent;

    /**
     * Charge for the buffers of {@link #gathered} and {@link #partialFrame}, once both together have more than
     * {@code Outbound.SMALL_BYTES}.
     */
    private final Charge kept;

    /**
     * Claim for the memory of {@link #partialFrame}. It holds something while a frame is incomplete of which more than
     * {@code Outbound.SMALL_BYTES} have arrived.
     */
    private final Claim frame;

    private long keptBytes;

    /** Number of consecutive checks of {@code KeepAlive} that have found one and the same frame incomplete. */
    private int cutChecks;

    private boolean owesPong;
    private int owedPong;

    /** Number of PINGs that this side has sent. It is also the id of the last one. */
    private int pings;

    private final WriteTurn turn;
    private boolean greeted;
    private boolean reading;

    /**
     * True while more messages are about to be gathered, so that nothing is flushed yet. One flush then sends all of
     * them.
     */
    private boolean gathering;

    private volatile boolean closed;

    /**
     * What this side lacked memory for, as a text, if that ends the connection; otherwise null. After an
     * {@link OutOfMemoryError}, it is the message of the error. It must not be a new string literal then: the JVM
     * creates a literal when it is first used, which needs memory.
     */
    private volatile @Nullable String memoryWanted;

    /**
     * Time at which the current input counts as arrived, for {@code readNanos()}. Valid only while {@code isReadTimed}
     * is true.
     */
    private long readNanos;

    private boolean isReadTimed;

    /** Number of frames that have been read since output was last sent. A large frame counts as several. */
    private int frames;

    /**
     * Number of bytes that have been sent since the current read began. A read lasts until {@code channelReadComplete}.
     */
    private int sentMeanwhile;

    /** Number of bytes of queued messages that may still be sent before the current read ends. */
    private int roomMeanwhile = AT_ONCE_BYTES;

    /**
     * True if the channel may have output that has not been flushed, since a full {@code batch} has been written. The
     * claims of {@link #unsent} have not been updated since then.
     */
    private boolean flushPending;

    /** Number of signs of life of the peer: each read of bytes, and each {@code recordActivity}. */
    private int reads;

    /** Value of {@code reads} when {@link KeepAlive} last checked whether the peer is alive. */
    private int readsLookedAt;

    /**
     * Heap buffer in which small frames are gathered for the next write. A separate object, because its fields change
     * with each frame: in the connection, each change would invalidate cache lines that many threads read.
     */
    private static final class Gathered {
        byte[] bytes = new byte[FIRST_BATCH_BYTES];
        int length;
    }

    @SuppressWarnings("this-escape") // the socket calls back only when this is in its pipeline
    public WireConnection(Channel channel, Account account) {
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

    /**
     * Called on the event loop when the peer's preface, the eight bytes with which it begins, has arrived.
     *
     * @param version highest version that the peer speaks; both sides use the lower one of their highest versions
     */
    public abstract void onPreface(int version);

    /**
     * Called with each frame that has arrived. The implementation ignores frames of unknown types.
     *
     * @param head type and flags of the frame
     * @param payload buffer whose readable bytes are the payload of the frame
     */
    public abstract void onFrame(int head, int id, ByteBuf payload);

    /** Returns the largest size in bytes of a body that the peer accepts, by its settings. Any thread may call this. */
    public abstract int maxBytesTaken();

    /**
     * Called when bytes have arrived, before they are parsed. They may answer messages that other threads have written.
     * The implementation makes visible to the event loop what these threads did before they wrote.
     */
    public abstract void beforeRead();

    /** Called when the connection is about to end. From then on, only the event loop decides how calls end. */
    public void beforeClose() {}

    /**
     * Called exactly once, on the event loop, when the connection has ended.
     *
     * @param why the reason, as a text for callers
     */
    public abstract void onClosed(String why);

    /** Whether this message would overtake another one that the peer has to receive first. Event loop only. */
    public boolean isAhead(Outbound message) {
        return false;
    }

    // ---- outgoing

    /** Queues a message for sending, and wakes the event loop. Any thread may call this. */
    public final void send(Outbound message) {
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
     * Called if the event loop could not be woken for a queued message. Any thread may call this.
     *
     * @return whether the message will be sent in time even so; if false, {@code send} throws
     */
    public boolean isSentLater() {
        return false;
    }

    private void wake() {
        if (!scheduled && SCHEDULED.compareAndSet(this, false, true)) {
            try {
                loop.execute(flushTask);
            } catch (RejectedExecutionException ended) {
                dropAfterEnd();
            } catch (Throwable e) {
                // the loop could not be woken, for example because the stack is exhausted: the next thread that sends
                // wakes it
                scheduled = false;
                throw e;
            }
        }
    }

    /**
     * Sends the messages that are queued now, even if the event loop could not be woken for them. Event loop only.
     *
     * @return false if some of them have to wait for a later task, because there are too many, or because another
     *     thread is just adding a message in front of them
     */
    public final boolean sendQueued() {
        beginFlush();
        Outbound last = outbox.last();
        int left = AT_ONCE_BYTES;
        boolean isAll = true;
        for (Outbound message = outbox.poll(); message != null; message = outbox.poll()) {
            left -= MESSAGE_BYTES + gatherSafely(message);
            if (message == last && !closed) {
                break;
            }
            if (left <= 0 && !closed) {
                // without this limit the loop might never end: a nested flush may have taken "last", and a stream is
                // queued again and again as long as its peer reads
                wakeAgain();
                isAll = false;
                break;
            }
        }
        if (left > 0 && !outbox.isEmpty()) {
            // may also be false if only later messages are queued, which does no harm
            isAll = false;
        }
        // whoever has queued later messages has woken the loop
        flushGathered();
        return isAll;
    }

    /**
     * Writes a small message to the socket on the calling thread, which must not be the event loop. Does so only if
     * nobody else is writing and nothing is queued, so the messages of one thread stay in order. Before this method
     * returns, the answer may have arrived and the message may be in use again.
     *
     * @return false if the message has not been written and has to be queued
     */
    public final boolean sendHere(Outbound message) {
        int bytes = message.body.readableBytes();
        if (bytes > WriteTurn.MAX_BYTES - Wire.MAX_HEADER_BYTES || scheduled || !turn.takeForCaller()) {
            return false;
        }
        try {
            boolean leaves = turn.fill(message);
            if (leaves && !turn.write()) {
                inLoopOrHere(flushTask);
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

    /**
     * Wakes the event loop after the calling thread has failed to write a message. The loop then soon takes the turn to
     * write.
     */
    private void wakeIfPossible() {
        try {
            wake();
        } catch (Throwable again) {
            // stack or memory is exhausted: the loop will notice the state of the turn at its next event
        }
    }

    /**
     * Moves the rest of a frame that another thread has written only in part to the front of {@code batch}. The turn to
     * write then belongs to the event loop. If this method throws, nothing has changed. Nobody writes to the socket
     * until this method has succeeded.
     *
     * @return false if there is no such rest
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

    /**
     * Takes the turn to write for the event loop. If another thread has written a frame only in part, takes over the
     * rest. Does not wait for the task by which that thread wakes the loop: it may come later, or never.
     *
     * @return whether the loop has the turn
     */
    private boolean takeTurn() {
        return turn.takeForLoop() || takeRest();
    }

    /**
     * Runs a task on the event loop. If the loop has ended, runs it on the calling thread, which holds the lock of this
     * connection meanwhile.
     */
    public final void inLoopOrHere(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException ended) {
            synchronized (this) {
                task.run();
            }
        }
    }

    public final boolean inLoop() {
        return loop.inEventLoop();
    }

    public final EventLoop loop() {
        return loop;
    }

    /**
     * Returns the time in nanoseconds by the clock of the event loop. It cannot be compared with
     * {@code System.nanoTime()}. Any thread may call this.
     */
    public final long nanoTime() {
        return ticker.nanoTime();
    }

    /**
     * Sends a message, behind the output that has been gathered before. Drops it if the connection is closed. A failure
     * ends the connection. Event loop only.
     */
    public final void sendNow(Outbound message) {
        if (closed) {
            message.onDropped();
            return;
        }
        gatherSafely(message);
        // if "gathering" is true, one flush follows after all messages
        if (!gathering) {
            flushGathered();
        }
    }

    /** Runs {@code sends}, and then flushes once for all the messages that it has sent. Event loop only. */
    public final void sendTogether(Runnable sends) {
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

    /**
     * Sends a PONG for a PING with this id. While the peer does not read, only the last PING is answered, and later:
     * otherwise PONGs could pile up. Event loop only.
     */
    public final void answerPing(int id) {
        if (channel.isWritable()) {
            sendNow(Wire.PONG, id);
        } else {
            owesPong = true;
            owedPong = id;
        }
    }

    public final void sendNow(int head, int id) {
        sendNow(Outbound.Control.empty(head, id));
    }

    /**
     * Sends a PING, behind the small frames that were sent before it. Event loop only.
     *
     * @return id of the PING, for {@link #answers}
     */
    public final int ping() {
        sendNow(Wire.PING, ++pings);
        return pings;
    }

    /**
     * Whether a PONG shows that the peer has read a certain PING. It does if it answers this PING or a later one. Event
     * loop only.
     *
     * @param pong id of the PONG
     * @param ping id of the PING
     */
    public final boolean answers(int pong, int ping) {
        return pong - ping >= 0 && pings - pong >= 0;
    }

    /** Whether the event loop has taken all messages that were queued until now out of the queue. Event loop only. */
    public final boolean isQueueEmpty() {
        return outbox.isEmpty();
    }

    /**
     * Ends calls that other threads should have ended but could not, for example because stack or memory was exhausted.
     * Event loop only.
     */
    public void endLost() {}

    private void flushQueued() {
        gatherAll(AT_ONCE_BYTES);
        flushGathered();
    }

    /**
     * Begins a flush, and gathers the queued messages. If {@code room} is used up first, wakes the event loop again for
     * the rest.
     *
     * @param room number of bytes that may be sent
     * @return how many of these bytes are left; 0 or less if {@code room} is used up
     */
    private int gatherAll(int room) {
        beginFlush();
        int left = gatherQueued(room);
        if (left <= 0) {
            wakeAgain();
        }
        return left;
    }

    /**
     * Sends output while more frames that have arrived wait to be read. Otherwise each side would be idle while the
     * other reads. Messages of several frames, and output beyond {@code AT_ONCE_BYTES}, wait for the end of the read.
     */
    private void sendMeanwhile() {
        if (closed || roomMeanwhile <= 0 || outbox.isEmpty() && gatheredBytes() == 0) {
            return;
        }
        try {
            roomMeanwhile = gatherAll(roomMeanwhile);
            if (gatheredBytes() > 0 && takeTurn()) {
                int before = gatheredBytes();
                boolean isAll = batch == null ? writeGatheredHere() : writeBatchHere();
                sentMeanwhile += before - gatheredBytes();
                if (!isAll) {
                    // the peer does not read, or the socket cannot be written directly: the rest waits until all input
                    // has been read
                    roomMeanwhile = 0;
                }
            }
        } catch (Throwable t) {
            failInternally(t);
        }
    }

    private void beginFlush() {
        // The turn is taken before "scheduled" is cleared: a thread that finds "scheduled" cleared and the turn free
        // relies on its earlier messages having been sent.
        try {
            takeTurn();
        } catch (Throwable t) {
            failInternally(t);
        } finally {
            // cleared before the first poll: a thread that adds a message later schedules flushQueued() again
            scheduled = false;
        }
    }

    /**
     * Schedules {@code flushQueued()} for the messages that are still queued. The event loop serves its other
     * connections first.
     */
    private void wakeAgain() {
        try {
            wake();
        } catch (Throwable t) {
            failInternally(t);
        }
    }

    private void flushGathered() {
        if (!reading) {
            try {
                flush();
            } catch (Throwable t) {
                failInternally(t);
            }
        }
    }

    /**
     * Takes messages out of the queue and gathers them, until the queue is empty or {@code room} is used up. Without a
     * limit this might never end: a stream is queued again as long as it has items and its peer reads.
     *
     * @param room number of bytes that may be sent
     * @return how many of these bytes are left; if 0 or less, more messages may be queued, unless the connection is
     *     closed
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

    /**
     * Copies a message into the buffer for the next write, or adds it to {@code scheduler}. Drops it if the connection
     * is closed. A failure ends the connection.
     *
     * @return number of bytes of the body that have been copied: 0 if the message waits or is not sent
     */
    private int gatherSafely(Outbound message) {
        try {
            if (!closed) {
                return gather(message);
            }
            message.onDropped();
        } catch (Throwable t) {
            // the messages behind this one still have to be handled, or their owners would wait forever
            failInternally(t);
        }
        return 0;
    }

    /**
     * Ends the connection immediately after an unexpected failure of this side, or when the heap is full. The event
     * loop and its other connections go on.
     */
    public final void failInternally(Throwable thrown) {
        if (thrown instanceof OutOfMemoryError) {
            MemoryReserve.use();
            memoryWanted = ThrowableText.message(thrown);
        }
        try {
            abort("the connection ended because of a fault of this side");
        } finally {
            RateLimitedLog.warn(LOG, "a connection ended because of a fault of this side", thrown);
        }
    }

    /**
     * Drops all queued messages because the event loop has ended. Called by a thread that has queued a message too
     * late.
     */
    private synchronized void dropAfterEnd() {
        scheduled = false;
        for (Outbound message = outbox.poll(); message != null; message = outbox.poll()) {
            try {
                message.onDropped();
            } catch (Throwable e) {
                // the messages that are queued behind this one still have to be dropped
                ThreadTools.report(e);
            }
        }
    }

    private int gather(Outbound message) {
        if (!message.beforeSend()) {
            return 0;
        }
        boolean isAhead = isAhead(message);
        if (isAhead || message.holdUntilWritable || message.body.readableBytes() > Wire.MAX_PAYLOAD_BYTES) {
            message.isFirstFragmentWritten = false;
            scheduler.add(message, isAhead);
            return 0;
        }
        // read between beforeSend(), in which a stream fills the body, and onSent(), after which the next item may be
        // in it
        int bytes = message.body.readableBytes();
        writeFrame(message.head, message.id, message.body, bytes);
        message.onSent();
        flushBatch();
        return bytes;
    }

    /**
     * Copies one frame into the buffers for the next write. If this method throws, they contain nothing of the frame.
     */
    private void writeFrame(int head, int id, ByteBuf body, int bytes) {
        boolean alone = bytes > GATHERED_BYTES;
        // while the loop has the turn, no other thread can write before the gathered frames: a reply must not overtake
        // the preface
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
        // a new buffer has room for what waits in the scheduler, since a buffer that has to grow is copied
        long wanted = body.readableBytes() + scheduler.bytes();
        int room = wanted < BATCH_BYTES ? (int) wanted + GATHERED_BYTES : BATCH_BYTES + Wire.MAX_FRAME_BYTES;
        spill(at, bytes, room).writeBytes(body, bytes);
    }

    /**
     * Writes the gathered output if it is at least {@code BATCH_BYTES}. Must be called after the owners of its messages
     * have been told that these are sent: a write can end the connection and its calls, and an ended call's object may
     * already serve another call.
     *
     * <p>During a read, the output is written directly to the socket if possible. If the socket is broken, the output
     * is kept until the end of the read. A failed write by the channel would end the connection before {@code onFrame}
     * gets all the input.
     */
    private void flushBatch() {
        if (gatheredBytes() < BATCH_BYTES || !takeTurn()) {
            return;
        }
        flushPending = true;
        if (reading) {
            sentMeanwhile += gatheredBytes();
            if (writeBatchHere()) {
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

    /**
     * Writes the bytes of {@code gathered} directly to the socket, unless {@code batch} has bytes before them.
     *
     * @return whether all of them have been sent
     */
    private boolean writeGatheredHere() {
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
     * Writes {@code batch}, and then the bytes of {@code gathered}, directly to the socket. Repeats the write until the
     * socket takes all bytes, takes none, or fails: at a reset by the peer, the socket takes a part and reports no
     * error.
     *
     * @return whether all of these bytes have been sent
     */
    private boolean writeBatchHere() {
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
        // the socket's queue is charged only for readable bytes, so the rest is copied to a buffer of exactly its size
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
     * Moves the first {@code end} bytes of {@code gathered} to the end of {@code batch}. Nothing remains in
     * {@code gathered}. If this method throws, nothing has changed.
     *
     * @param minRoom number of further bytes for which an existing {@code batch} must have room afterwards
     * @param room number of further bytes for which a new {@code batch} has room afterwards
     * @return {@code batch}
     */
    private ByteBuf spill(int end, int minRoom, int room) {
        ByteBuf out = batch;
        if (out == null) {
            out = batch = channel.alloc().directBuffer(end + room);
        } else {
            out.ensureWritable(end + minRoom);
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
     * Returns a buffer with the same bytes and with little unused capacity. Unused capacity is not charged in the
     * socket's queue. That of a batch may be large if the messages it was meant for have been recalled.
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
     * Writes the gathered output to the socket. As long as the socket takes it, adds frames of the messages in
     * {@link #scheduler} by turns. A write can end the connection or call this method again, and so change
     * {@link #scheduler}.
     */
    private void flush() {
        if (gathered.length == 0 && batch == null && scheduler.isEmpty() && !flushPending) {
            if (gathered.bytes.length + partialFrame.capacity() != keptBytes) {
                // the buffer of an incomplete frame is charged even if there is nothing to send
                keepBuffers();
            }
            turn.loopDone();
            return;
        }
        if (!takeTurn()) {
            return;
        }
        if (flushPending) {
            // this flushes what was written to the channel's queue during a read
            channel.flush();
        }
        int room = AT_ONCE_BYTES;
        while (room > 0 && !scheduler.isEmpty() && channel.isWritable()) {
            room -= SHARE_BYTES - gatherQueued(SHARE_BYTES);
            Outbound message = scheduler.next();
            if (message == null) {
                break;
            }
            if (!message.isFirstFragmentWritten) {
                message.begins();
            }
            int rest = message.body.readableBytes();
            int bytes = Math.min(rest, Wire.MAX_PAYLOAD_BYTES);
            int head = message.isFirstFragmentWritten ? Wire.PART : message.head;
            message.isFirstFragmentWritten = true;
            room -= bytes;
            writeFrame(bytes < rest ? head | Wire.MORE : head, message.id, message.body, bytes);
            if (bytes == rest) {
                endTurn(message);
            } else {
                scheduler.goesOn(message);
            }
            flushBatch();
        }
        // the turn is taken again, since a nested flush may have given it back
        if ((gathered.length > 0 || batch != null) && takeTurn() && !writeGatheredHere()) {
            writeBatch();
            channel.flush();
        }
        if (gathered.bytes.length + partialFrame.capacity() != keptBytes) {
            keepBuffers();
        }
        flushPending = false;
        unsent.updateClaims();
        unsentChanged();
        if (room <= 0 && !closed) {
            wakeAgain();
        }
        turn.loopDone();
    }

    /**
     * Ends a message whose last frame has been written. Its owner is notified even if there is no memory for the rest
     * of this method: otherwise the call would be reported as not executed, and might be made a second time.
     */
    private void endTurn(Outbound message) {
        try {
            scheduler.ended(message);
        } finally {
            message.onSent();
        }
    }

    /** Called on the event loop when the number of bytes that wait for the socket may have changed. */
    public void unsentChanged() {}

    /**
     * Whether a message of one frame would have to wait now. It has to if the socket takes no more bytes, or if another
     * such message waits. Event loop only.
     */
    public final boolean isSocketBusy() {
        return !channel.isWritable() || scheduler.hasWhole();
    }

    /** Whether so much output is on its way that further messages have to be short. Event loop only. */
    public final boolean isBacklogged() {
        return batch != null || sentMeanwhile + gathered.length > SHORT_BYTES || !channel.isWritable();
    }

    private void endUnread() {
        abort("the peer does not read what it is sent");
    }

    /** Returns the number of bytes charged for replies that have not been sent to the peer. Event loop only. */
    public long replyBytes() {
        return 0;
    }

    /**
     * Whether output waits for the peer, and the peer has taken none of it since the last call of this method. Must
     * have only one user, see {@link SocketQueue#isStalled}.
     */
    public final boolean isStalled() {
        return unsent.isStalled();
    }

    private void keepBuffers() {
        if (closed) {
            // the connection has ended and released all charges, and must not charge anything again
            return;
        }
        long bytes = gathered.bytes.length + partialFrame.capacity();
        boolean isCharged = bytes <= Outbound.SMALL_BYTES
                || kept.set(HeapArray.heapBytes(gathered.bytes.length) + HeapArray.heapBytes(partialFrame));
        if (!isCharged) {
            shrinkBuffers();
            bytes = gathered.bytes.length + partialFrame.capacity();
        }
        if (!isCharged || bytes <= Outbound.SMALL_BYTES) {
            kept.release();
        }
        // 0 makes the next flush try again to charge the buffers
        keptBytes = isCharged || bytes <= Outbound.SMALL_BYTES ? bytes : 0;
    }

    /** Replaces each buffer that has grown and is empty by a small one. */
    private void shrinkBuffers() {
        if (gathered.length == 0) {
            gathered.bytes = new byte[FIRST_BATCH_BYTES];
        }
        if (!partialFrame.isReadable()) {
            partialFrame.clear().capacity(FIRST_CUT_BYTES);
        }
        scheduler.shrink();
    }

    /** Gives up empty buffers that have grown. Called on the event loop when the peer has been silent for a while. */
    public void trimIdle() {
        shrinkBuffers();
        keepBuffers();
    }

    /**
     * Gives up some buffers that are not in use. Called on the event loop from time to time while the peer is active.
     */
    public void trimActive() {
        scheduler.shrink();
    }

    /** Takes back a message that waits in {@code scheduler}, even if a part of it has been sent. */
    public final void recall(Outbound message) {
        if (!scheduler.isLast()) {
            scheduler.remove(message);
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
                } else if (partialFrame.isReadable()) {
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
     * Returns the time at which the current input counts as arrived; outside of a read, the present time. The clock is
     * read once for several frames, since reading it is slow compared with a small call. Code that keeps the event loop
     * busy calls {@link #readAnew}.
     */
    public final long readNanos() {
        if (!reading) {
            return nanoTime();
        }
        if (!isReadTimed) {
            isReadTimed = true;
            readNanos = nanoTime();
        }
        return readNanos;
    }

    /**
     * Makes {@link #readNanos()} read the clock again. Called when something, such as a handler, has kept the event
     * loop busy.
     */
    public final void readAnew() {
        isReadTimed = false;
    }

    /**
     * Whether the next frame is too large to be copied to {@code INBOX}: copying it would cost more than parsing its
     * head in a direct buffer.
     */
    private static boolean isLarge(ByteBuf arrived) {
        return arrived.readableBytes() > GATHERED_BYTES && frameLength(arrived) > GATHERED_BYTES;
    }

    /**
     * Reads the frames of {@code arrived}. They are copied to the heap buffer {@code INBOX} first, where parsing is
     * fast.
     */
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
     * Adds bytes of an incomplete frame to {@code partialFrame}. When more than {@code Outbound.SMALL_BYTES} of the
     * frame have arrived, charges the frame first. If the ledger has no room for the charge, the connection ends.
     */
    private void keepCut(ByteBuf in, int bytes) {
        int before = partialFrame.writerIndex();
        if (before <= Outbound.SMALL_BYTES && before + bytes > Outbound.SMALL_BYTES) {
            long now = nanoTime();
            if (!frame.set(partialFrame.maxCapacity(), now)) {
                endFrame();
                return;
            }
            frame.renew(now);
            frameWaits(now);
        }
        partialFrame.writeBytes(in, bytes);
    }

    private void endFrame() {
        String wanted = "no room for the first bytes of a frame that has not arrived in full";
        memoryWanted = wanted;
        fail(RPCXException.Code.OVERLOADED, wanted);
    }

    /**
     * Called on the event loop when more than {@code Outbound.SMALL_BYTES} of an incomplete frame have arrived and it
     * is charged.
     */
    public void frameWaits(long nowNanos) {}

    /**
     * Counts a check for an incomplete frame. Event loop only.
     *
     * @return whether more than {@code checks} consecutive checks have found one and the same frame incomplete
     */
    final boolean isFrameOverdue(int checks) {
        cutChecks = greeted && partialFrame.isReadable() ? cutChecks + 1 : 0;
        return cutChecks > checks;
    }

    /** Whether more than {@code Outbound.SMALL_BYTES} of an incomplete frame have arrived. Event loop only. */
    public final boolean isFrameWaiting() {
        return partialFrame.readableBytes() > Outbound.SMALL_BYTES;
    }

    /** Whether bytes that have arrived are being read now. Event loop only. */
    public final boolean isReading() {
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
        if (partialFrame.readableBytes() <= Outbound.SMALL_BYTES) {
            frame.release();
        }
        flush();
    }

    private void readPreface(ByteBuf in) {
        partialFrame.writeBytes(in, Math.min(Wire.PREFACE_BYTES - partialFrame.readableBytes(), in.readableBytes()));
        if (partialFrame.readableBytes() == Wire.PREFACE_BYTES) {
            long preface = partialFrame.readLong();
            partialFrame.clear();
            int version = (int) (preface >>> 24) & 0xFF;
            if ((int) (preface >>> 32) != Wire.MAGIC || version == 0 || version > Wire.MAX_VERSION) {
                throw new WireFault("preface " + Long.toHexString(preface) + " (expected: RPCX, a version from 1 to "
                        + Wire.MAX_VERSION + ")");
            }
            greeted = true;
            onPreface(version);
        }
    }

    /**
     * Gathers the preface, the eight bytes with which each side begins. They could announce features; none is defined
     * yet.
     */
    public final void sendPreface() {
        turn.takeForLoop();
        reserve(Wire.PREFACE_BYTES);
        PREFACE.getBytes(0, gathered.bytes, gathered.length, Wire.PREFACE_BYTES);
        gathered.length += Wire.PREFACE_BYTES;
    }

    /**
     * Adds the missing bytes of the incomplete frame, as far as {@code in} has them. Reads the frame if it is complete
     * then.
     */
    private void completeCut(ByteBuf in) {
        int length = frameLength(partialFrame);
        if (length < 0) {
            partialFrame.writeByte(in.readByte());
            frameLength(partialFrame);
            return;
        }
        int wanted = headerOf(length) + length - partialFrame.readableBytes();
        keepCut(in, Math.min(wanted, in.readableBytes()));
        if (!closed && readFrame(partialFrame)) {
            partialFrame.clear();
            cutChecks = 0;
        }
    }

    /**
     * Reads one frame, and calls {@code onFrame} with it.
     *
     * @return false if a part of the frame is missing; nothing has been read then
     */
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

    /**
     * Makes the payload of the first frame the readable bytes of {@code in}. Does so only if the frame is complete and
     * has this head and id.
     *
     * @return false if it is not; then {@code in} is unchanged
     */
    public static boolean enterFrame(ByteBuf in, int head, int id) {
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

    /** Returns the number of bytes that a length field with the value {@code length} takes. */
    static int headerOf(int length) {
        return length < 1 << 7 ? 1 : length < 1 << 14 ? 2 : 3;
    }

    /**
     * Returns the value of the length field at the beginning of {@code in}; -1 if bytes of the field are missing.
     * Throws {@code WireFault} if the length is out of range or takes more bytes than it needs. It is thrown before
     * anything is allocated for the frame.
     */
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

    /** Ends the connection because of something that the peer did. The peer is sent the reason. */
    public final void fail(String why) {
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

    /**
     * Closes the connection. Output that has been written is still sent, if the peer reads it soon. Event loop only.
     */
    public final void close(String why) {
        if (closed) {
            return;
        }
        // each step runs even if an earlier one fails, for example because memory is exhausted
        try {
            try {
                end(why);
            } finally {
                HalfClose.of(channel, account);
            }
        } finally {
            unsent.updateClaims();
        }
    }

    private void end(String why) {
        closed = true;
        // each step runs even if an earlier one fails
        try {
            try {
                endWriting();
            } finally {
                notifyClosed(why);
            }
        } finally {
            dropAll();
        }
    }

    private void notifyClosed(String why) {
        String wanted = memoryWanted;
        onClosed(wanted == null ? why : wanted);
    }

    /**
     * Drops the queued messages and all buffers, and releases the charges for them. During a read, the buffer of the
     * incomplete frame is dropped only when the read ends.
     */
    private void dropAll() {
        flushQueued();
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
            scheduler.clear();
            // waits until another thread has finished its write; from here on no other thread writes
            turn.end();
        }
        takeRest();
        writeBatch();
    }

    /**
     * Drops the output that has been gathered. It is no longer charged, and a handler may hold the closed connection
     * for a long time.
     */
    private void dropGathered() {
        gathered.bytes = NOTHING;
        gathered.length = 0;
        ByteBuf unwritten = batch;
        batch = null;
        if (unwritten != null) {
            unwritten.release();
        }
    }

    /** Returns the size in bytes of the buffer in which small frames are gathered. For tests. */
    public final int bufferBytes() {
        return gathered.bytes.length;
    }

    /**
     * Drops the incomplete frame and its buffer. The connection may still exist for seconds, until the peer has read
     * why it has ended.
     */
    private void dropCut() {
        partialFrame.clear().capacity(0);
    }

    public final boolean isClosed() {
        return closed;
    }

    /**
     * Returns what this side lacked memory for, as a text, if that ends the connection; otherwise null. Any thread may
     * call this.
     */
    public final @Nullable String memoryWanted() {
        return memoryWanted;
    }

    /**
     * Ends the connection immediately. Does not wait until the peer has read what has been written. Event loop only.
     */
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

    /** Whether the input so far ends with a complete frame, and all of it has been read. Event loop only. */
    public final boolean isBetweenFrames() {
        return greeted && !partialFrame.isReadable();
    }

    /**
     * Counts a sign of life of the peer that is not a read of the event loop: another thread has read something, a part
     * of a TLS record has arrived, or the peer has taken output. Event loop only.
     */
    public final void recordActivity() {
        reads++;
    }

    /**
     * Returns a number that changes with each sign of life: when bytes arrive, and with each {@link #recordActivity}.
     * Event loop only.
     */
    public final int reads() {
        return reads;
    }

    /** Whether the peer has given a sign of life since the last call of this method. Event loop only. */
    public final boolean hadActivity() {
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
            memoryWanted = "no room for the first bytes of a TLS record that has not arrived in full";
        } else if (event == SocketQueue.PART) {
            recordActivity();
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
