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
 * A connection of the native wire. This class cuts the bytes that arrive into frames, and sends messages for many
 * threads.
 *
 * <p>Any thread may call {@link #send}, which queues a message and wakes the event loop. The event loop gathers the
 * bytes of all queued messages, and writes them together. A message of several frames waits in {@link #scheduler},
 * which sends one frame at a time, behind the small messages. While the peer does not read, requests, replies and
 * stream items of any size also wait in {@link #scheduler}.
 *
 * <p>The class is longer than 400 lines because the gathered output, the incomplete input and the turn to write change
 * together on the event loop, and no other class may touch them.
 */
public abstract class WireConnection extends ChannelInboundHandlerAdapter {
    /**
     * Number of bytes of gathered output at which a connection writes to the socket without waiting for more output.
     * The number comes from measurements with rpcx-bench and messages of 100 kB. If the peer does not read, this side
     * holds about this number of bytes of output in memory, besides the messages that wait in {@code scheduler}.
     */
    private static final int BATCH_BYTES = 256 * 1024;

    /**
     * Maximum number of small frames that the event loop reads before it sends the output that waits, and reads the
     * clock again. Reading these frames takes about 0.1 ms by estimate.
     */
    private static final int MAX_FRAMES_AT_ONE_TIME = 64;

    /**
     * Size in bytes from which a frame counts as more than one frame in {@code MAX_FRAMES_AT_ONE_TIME}: a frame counts
     * as one, and as one more for each full 512 bytes of its length. So a frame of 2 KiB counts as five frames.
     */
    private static final int FRAME_BYTES = 512;

    /** Initial capacity in bytes of the buffer {@code INBOX}. The bytes of one read of the event loop usually fit. */
    private static final int INBOX_BYTES = 64 * 1024;

    private static final int FIRST_BATCH_BYTES = 512;
    private static final int FIRST_CUT_BYTES = 256;

    /**
     * Number of bytes of queued messages after which a connection stops gathering, until the event loop has served its
     * other connections. A separate limit of the same size applies when the connection sends frames of the messages in
     * {@code scheduler}.
     */
    private static final int MAX_BYTES_AT_ONCE = 512 * 1024;

    /**
     * Number of bytes of queued messages after which a connection stops gathering them, and sends the next frame of a
     * message in {@code scheduler}. For example, messages of several frames are in {@code scheduler}.
     */
    private static final int MAX_BYTES_BETWEEN_FRAMES = 32 * 1024;

    /**
     * Number of bytes that each message from the queue counts against limits such as {@code MAX_BYTES_AT_ONCE}. If the
     * message is gathered, the bytes of its body count in addition. If the message is moved to {@code scheduler}, the
     * bytes of its body do not count.
     */
    private static final int MESSAGE_BYTES = 256;

    /**
     * Number of bytes above which {@link #isBacklogged} returns true. The bytes that have been sent or gathered since
     * the current read began are counted.
     */
    private static final int MAX_SHORT_BYTES = 16 * 1024;

    /**
     * Largest size in bytes of a frame's payload that is copied into the heap buffer {@code gathered}. A larger payload
     * is copied into the direct buffer {@code batch}. The method {@code isLarge} compares arrived frames with the same
     * number, to decide whether they are copied to {@code INBOX}.
     */
    private static final int MAX_GATHERED_PAYLOAD_BYTES = 4 * 1024;

    private static final byte[] NOTHING = {};

    private static final System.Logger LOG = System.getLogger("dev.rpcx.wire");

    private static final ByteBuf PREFACE = Unpooled.unreleasableBuffer(
            Unpooled.buffer(Wire.PREFACE_BYTES).writeInt(Wire.MAGIC).writeInt(Wire.VERSION << 24));

    /**
     * Heap buffer of an event loop, into which the connections of the event loop copy the bytes that have arrived.
     * Parsing these bytes in the direct buffer of the socket would be several times slower.
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

    /**
     * Account to which everything that this connection holds is charged. The code that opened the account closes it.
     */
    public final Account account;

    private final EventLoop loop;
    private final Ticker ticker;
    private final Outbox outbox = new Outbox();
    private final Runnable flushTask = this::flushQueued;

    /**
     * If true, a thread has given {@link #flushTask} to the event loop or is about to, and {@link #beginFlush} has not
     * cleared the flag since. The thread that sets the flag, by a compare-and-set, wakes the event loop. The task
     * clears the flag before it takes messages. If the event loop cannot be woken, the thread that has set the flag
     * also clears it. The bodies of {@code beginFlush} and {@link Outbox#add} say why the order matters.
     */
    private volatile boolean scheduled;

    /**
     * Messages that wait to be sent: messages of more than one frame, and messages of any size that wait for the socket
     * or for an earlier message.
     */
    private final FrameScheduler scheduler = new FrameScheduler();

    /**
     * Small frames that have been copied for the next write. The frames are on the heap, where writing a byte is one
     * store.
     */
    private final Gathered gathered = new Gathered();

    /** Direct buffer with the output that is sent before {@link #gathered}; null if there is no such output. */
    private @Nullable ByteBuf batch;

    /** Bytes of a frame that has not arrived completely, or of an incomplete preface. */
    private final ByteBuf partialFrame = Unpooled.buffer(FIRST_CUT_BYTES, Wire.MAX_FRAME_BYTES + Wire.MAX_HEADER_BYTES);

    private final SocketQueue unsent;

    /**
     * Charge for the memory of the buffers {@link #gathered} and {@link #partialFrame}. Nothing is charged while both
     * buffers together have at most {@code Outbound.MAX_SMALL_BYTES}.
     */
    private final Charge kept;

    /**
     * Claim for the memory of {@link #partialFrame}. The claim holds bytes while more than
     * {@code Outbound.MAX_SMALL_BYTES} of an incomplete frame have arrived. If room for {@link Resource#FRAME_BYTES} is
     * short, the claim can end the connection: see {@link Claim}.
     */
    private final Claim frame;

    private long keptBytes;

    /** Number of consecutive checks of {@link KeepAlive} that have found the same frame incomplete. */
    private int cutChecks;

    private boolean owesPong;
    private int owedPong;

    /** Number of PINGs that this side has sent. The last PING has this number as its id. */
    private int pings;

    private final WriteTurn turn;
    private boolean greeted;
    private boolean reading;

    /**
     * True while the event loop is about to gather further messages. During this time, {@link #sendNow(Outbound)} does
     * not flush, because one flush follows after all messages. Only output of {@code BATCH_BYTES} or more is written
     * earlier.
     */
    private boolean gathering;

    /**
     * Whether the connection has ended. The event loop sets the field before it ends the calls and drops the messages,
     * and any thread reads it. For example, a client's thread frees a slot that keeps a buffer, and then reads the
     * field. If the field is true, the thread drops the buffer. If the field is still false, the event loop will find
     * the free slot when the connection ends, and drop the buffer.
     */
    private volatile boolean closed;

    /**
     * Reason for the end of a connection that ended because this side lacked memory, for example for a frame; null for
     * any other connection. After an {@link OutOfMemoryError}, the reason is the message of the error. A new string
     * literal must not be used after such an error, because the JVM needs memory to create a literal that is used for
     * the first time. Stored on the event loop, and read by any thread.
     */
    private volatile @Nullable String memoryWanted;

    /**
     * Time in nanoseconds at which the current input counts as arrived, for {@code readNanos()}. The value is valid
     * only while {@code isReadTimed} is true.
     */
    private long readNanos;

    private boolean isReadTimed;

    /** Number of frames that have been read since output was last sent. A large frame counts as several frames. */
    private int frames;

    /**
     * Number of bytes that have been sent, or written to the channel, since the current read began. A read lasts until
     * {@code channelReadComplete}.
     */
    private int sentMeanwhile;

    /** Number of bytes of queued messages that this connection can still send before the current read ends. */
    private int roomMeanwhile = MAX_BYTES_AT_ONCE;

    /**
     * True if a full {@code batch} has been written since the last {@link #flush}. The next {@link #flush} then has to
     * flush the channel and to update the claims of {@link #unsent}.
     */
    private boolean flushPending;

    /** Number of signs that the peer is alive. Each read of bytes counts, and each call of {@link #recordActivity}. */
    private int reads;

    /** Value of {@code reads} at the last call of {@link #hadActivity}. */
    private int readsLookedAt;

    /**
     * Heap buffer in which small frames are gathered for the next write. The buffer is a separate object because its
     * fields change with each frame. In the connection object, each change would invalidate cache lines that many
     * threads read.
     */
    private static final class Gathered {
        byte[] bytes = new byte[FIRST_BATCH_BYTES];
        int length;
    }

    @SuppressWarnings("this-escape") // the channel calls back only when its pipeline contains this object
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
     * Called on the event loop when the peer's preface, the eight bytes with which the peer begins, has arrived.
     *
     * @param version highest version of the wire that the peer speaks. Both sides use the lower one of their highest
     *     versions
     */
    public abstract void onPreface(int version);

    /**
     * Called on the event loop with each frame that the event loop reads. The implementation must ignore frames of
     * unknown types.
     *
     * @param head type and flags of the frame
     * @param payload buffer whose readable bytes are the payload of the frame
     */
    public abstract void onFrame(int head, int id, ByteBuf payload);

    /**
     * Returns the largest size in bytes of a body that the peer accepts according to its settings. Any thread may call
     * this method.
     */
    public abstract int maxBytesTaken();

    /**
     * Called when bytes have arrived, before the bytes are parsed. The bytes can contain the peer's answers to messages
     * that other threads have written. So the implementation must make visible to the event loop what those threads did
     * before their writes.
     */
    public abstract void beforeRead();

    /** Called when the connection is about to end. After this call, only the event loop decides how calls end. */
    public void beforeClose() {}

    /**
     * Called exactly once, on the event loop, when the connection has ended.
     *
     * @param why the reason, as a text for callers
     */
    public abstract void onClosed(String why);

    /**
     * Returns whether an earlier message must be sent first: the peer must receive the beginning of the earlier message
     * before {@code message}, and nothing of the earlier message has been sent yet. For example, the request of a call
     * must be sent before the items that the call sends. Must be called on the event loop.
     */
    public boolean isAhead(Outbound message) {
        return false;
    }

    // ---- outgoing

    /** Queues a message for sending, and wakes the event loop. Any thread may call this method. */
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
     * Called if the event loop could not be woken for a queued message. Runs on the thread that has called
     * {@link #send}.
     *
     * @return whether the message will be sent in time nevertheless; if false, {@code send} throws
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
                // The event loop could not be woken, for example because the stack is exhausted. With "scheduled"
                // cleared, the next thread that sends a message wakes the event loop.
                scheduled = false;
                throw e;
            }
        }
    }

    /**
     * Sends the messages that are queued now, even if the event loop could not be woken for these messages. Must be
     * called on the event loop.
     *
     * @return false if some of the messages stay in the queue for a later task, because there are too many messages, or
     *     because another thread has not finished adding a message in front of them
     */
    public final boolean sendQueued() {
        beginFlush();
        Outbound last = outbox.last();
        int left = MAX_BYTES_AT_ONCE;
        boolean isAll = true;
        for (Outbound message = outbox.poll(); message != null; message = outbox.poll()) {
            left -= MESSAGE_BYTES + gatherSafely(message);
            if (message == last && !closed) {
                break;
            }
            if (left <= 0 && !closed) {
                // Without the limit of MAX_BYTES_AT_ONCE the loop might never end, because a stream is queued again and
                // again as long as its peer reads. The check for "last" above does not always end the loop. While the
                // loop gathers a message, a flush of the same connection can run, and can take the message "last" out
                // of the queue.
                wakeAgain();
                isAll = false;
                break;
            }
        }
        if (left > 0 && !outbox.isEmpty()) {
            // Perhaps the queue holds nothing but messages that were added after this method began. The result false
            // would then be unnecessary, but does no harm.
            isAll = false;
        }
        // messages that were added after this method began can stay in the queue, because their threads have woken the
        // event loop
        flushGathered();
        return isAll;
    }

    /**
     * Writes a small message to the socket on the calling thread, which must not be the event loop. The message is
     * written only if nobody else is writing and nothing is queued, so the messages of one thread stay in order. Before
     * this method returns, the answer can arrive and the object {@code message} can be in use again.
     *
     * @return false if the message has not been written; the caller then has to queue the message
     */
    public final boolean sendHere(Outbound message) {
        int bytes = message.body.readableBytes();
        if (bytes > WriteTurn.MAX_BYTES - Wire.MAX_HEADER_BYTES || scheduled || !turn.takeForCaller()) {
            return false;
        }
        try {
            boolean writesHere = turn.fill(message);
            if (writesHere && !turn.write()) {
                inLoopOrHere(flushTask);
                return true;
            }
            if (turn.callerDone()) {
                wake();
            }
            return writesHere;
        } catch (Throwable e) {
            wakeIfPossible();
            throw e;
        }
    }

    /**
     * Wakes the event loop after the calling thread has failed to write a message. The event loop then takes the turn
     * to write, and so finds out about the failure. Does nothing if stack or memory is exhausted.
     */
    private void wakeIfPossible() {
        try {
            wake();
        } catch (Throwable again) {
            // Stack or memory is exhausted, so the event loop is not woken. The event loop will find out about the
            // failed write when it next takes the turn to write.
        }
    }

    /**
     * Takes over the rest of a frame that another thread has not finished writing. The remaining bytes are copied to
     * the front of {@code batch}, and the turn to write goes to the event loop. If this method throws, nothing has
     * changed, and no thread writes to the socket until this method is called again and succeeds.
     *
     * @return false if no other thread has left a frame unfinished
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
     * Takes the turn to write for the event loop: see {@link WriteTurn}. If another thread has written only a part of a
     * frame, the event loop takes over the rest of the frame. The event loop does this even if the other thread has not
     * woken it yet, since the other thread may wake it later or never. Tested by
     * {@code WireHereTest.theLoopWritesTheRestOfAFrameBeforeItsOwnEvenIfNobodyHasToldItYet}.
     *
     * @return whether the event loop has the turn to write
     */
    private boolean takeTurn() {
        return turn.takeForLoop() || takeRest();
    }

    /**
     * Runs a task on the event loop. If the event loop has ended, the calling thread runs the task, and holds the lock
     * of this connection while the task runs, so that several such threads do not run tasks at the same time.
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
     * Returns the time in nanoseconds by the clock of the event loop. The time cannot be compared with
     * {@code System.nanoTime()}. Any thread may call this method.
     */
    public final long nanoTime() {
        return ticker.nanoTime();
    }

    /**
     * Sends a message behind the output that has been gathered before. If the connection is closed, the message is
     * dropped. A failure ends the connection. Must be called on the event loop.
     */
    public final void sendNow(Outbound message) {
        if (closed) {
            message.onDropped();
            return;
        }
        gatherSafely(message);
        // while "gathering" is true, nothing is flushed, because one flush follows after all messages
        if (!gathering) {
            flushGathered();
        }
    }

    /**
     * Runs {@code sends}, and then flushes once for all the messages that {@code sends} has sent. If this method is
     * called during a read, the flush follows at the end of the read. If it is called inside another call of this
     * method, the flush follows at the end of the outer call. Output of {@code BATCH_BYTES} or more is written earlier.
     * Must be called on the event loop.
     */
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
     * Answers a PING by a PONG with the same id. While the socket takes no bytes, no PONG is sent, because PONGs could
     * pile up. When the socket takes bytes again, only the last PING is answered. Must be called on the event loop.
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
     * Sends a PING behind the output that has been gathered before. Must be called on the event loop.
     *
     * @return id of the PING, for {@link #answers}
     */
    public final int ping() {
        sendNow(Wire.PING, ++pings);
        return pings;
    }

    /**
     * Returns whether a PONG shows that the peer has read a certain PING. The PONG shows this if the PONG answers that
     * PING or a later one. Must be called on the event loop.
     *
     * @param pong id of the PONG
     * @param ping id of the PING
     */
    public final boolean answers(int pong, int ping) {
        return pong - ping >= 0 && pings - pong >= 0;
    }

    /**
     * Returns whether the event loop has taken all queued messages out of the queue. Must be called on the event loop.
     */
    public final boolean isQueueEmpty() {
        return outbox.isEmpty();
    }

    /**
     * Ends calls that other threads should have ended but could not end, for example because stack or memory was
     * exhausted. Must be called on the event loop.
     */
    public void endLost() {}

    private void flushQueued() {
        gatherAll(MAX_BYTES_AT_ONCE);
        flushGathered();
    }

    /**
     * Tries to take the turn to write, and gathers the queued messages. If more messages are queued than {@code room}
     * allows, the event loop is woken again for the remaining messages.
     *
     * @param room number of bytes that this call is allowed to gather
     * @return how many of these bytes are left; 0 or less if all are used up
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
     * Sends output while frames that have arrived still wait to be read. Without this method, each side would be idle
     * while the other side reads. Messages of several frames, and output beyond {@code MAX_BYTES_AT_ONCE}, wait for the
     * end of the read.
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
                    // Either the peer does not read, or the output cannot be written directly, for example because
                    // "gathered" has too many bytes. With "roomMeanwhile" 0, this method sends nothing more until all
                    // input has been read.
                    roomMeanwhile = 0;
                }
            }
        } catch (Throwable t) {
            failInternally(t);
        }
    }

    private void beginFlush() {
        // Another thread writes its message itself if it finds "scheduled" false, and then gets the turn to write.
        // Earlier messages of that thread can still be queued, and must be sent first. Therefore the event loop takes
        // the turn, or asks for it so that no other thread gets it, before it clears "scheduled". Tested by
        // {@code WriteTurnTest.callsOfOneThreadArriveInTheirOrderWhicheverWayTheyAreSent}.
        try {
            takeTurn();
        } catch (Throwable t) {
            failInternally(t);
        } finally {
            // "scheduled" is cleared before the first message is taken out of the queue, so that a thread that adds a
            // message later schedules flushQueued() again; see Outbox.add()
            scheduled = false;
        }
    }

    /**
     * Schedules {@code flushQueued()} for the messages that still wait in the queue or in {@code scheduler}. Before
     * this task runs, the event loop serves its other connections.
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
     * Takes messages out of the queue and gathers them, until the queue is empty or {@code room} is used up. Without
     * this limit, the method might never end, since a stream is queued again as long as the stream has items and the
     * peer reads. If the connection is closed, the limit does not apply, and all messages are dropped.
     *
     * @param room number of bytes that may be gathered
     * @return how many bytes of {@code room} are left. If the result is 0 or less and the connection is open, the queue
     *     can contain more messages.
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
     * Copies a message into the buffer for the next write, or adds the message to {@code scheduler}. If the connection
     * is closed, the message is dropped. A failure ends the connection.
     *
     * @return number of bytes of the body that have been copied; 0 if the message waits in {@code scheduler} or is not
     *     sent
     */
    private int gatherSafely(Outbound message) {
        try {
            if (!closed) {
                return gather(message);
            }
            message.onDropped();
        } catch (Throwable t) {
            // the exception must not leave this method, because the owners of the messages behind this message would
            // wait forever
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
     * Drops all queued messages because the event loop has ended. Called by a thread that has queued a message after
     * the event loop had ended. The lock is needed because several threads can do this at the same time, and the queue
     * allows only one thread at a time to take messages.
     */
    private synchronized void dropAfterEnd() {
        scheduled = false;
        for (Outbound message = outbox.poll(); message != null; message = outbox.poll()) {
            try {
                message.onDropped();
            } catch (Throwable e) {
                // the exception must not end the loop, because the messages behind this message still have to be
                // dropped
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
        // The size is read after beforeSend(), in which a stream fills the body. The size is read before onSent(),
        // after which the body can contain the next item.
        int bytes = message.body.readableBytes();
        writeFrame(message.head, message.id, message.body, bytes);
        message.onSent();
        flushBatch();
        return bytes;
    }

    /**
     * Copies one frame into {@code gathered} or {@code batch}, the buffers for the next write. If this method throws,
     * the buffers contain nothing of the frame.
     */
    private void writeFrame(int head, int id, ByteBuf body, int bytes) {
        boolean alone = bytes > MAX_GATHERED_PAYLOAD_BYTES;
        // The event loop takes the turn to write, so that no other thread writes before the gathered frames. For
        // example, a reply must not overtake the preface.
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
        // A new buffer also gets room for the bytes that wait in the scheduler. Otherwise the buffer would have to grow
        // later, and growing copies all its bytes.
        long wanted = body.readableBytes() + scheduler.bytes();
        int room =
                wanted < BATCH_BYTES ? (int) wanted + MAX_GATHERED_PAYLOAD_BYTES : BATCH_BYTES + Wire.MAX_FRAME_BYTES;
        spill(at, bytes, room).writeBytes(body, bytes);
    }

    /**
     * Writes the gathered output if there are at least {@code BATCH_BYTES}. Before this method is called,
     * {@code onSent} must have been called for each message whose last frame is in this output. The reason is that the
     * write can end the connection and its calls. The object of an ended call can already serve another call when this
     * method returns.
     *
     * <p>During a read, the output is written directly to the socket if possible. If the socket is broken, the output
     * stays in the channel's queue until the end of the read. A flush of the channel would fail, and would end the
     * connection before {@code onFrame} has received all the input.
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
     * Writes the bytes of {@code gathered} directly to the socket. Writes nothing if {@code batch} has bytes, which
     * have to be sent first, or if {@code gathered} has more bytes than {@link WriteTurn} writes directly.
     *
     * @return whether all bytes of {@code gathered} have been sent
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
     * Writes {@code batch}, followed by the bytes of {@code gathered}, directly to the socket. The write is repeated
     * until the socket has taken all bytes, takes no bytes, or fails. If the peer resets the connection during a write,
     * this write can take a part of the bytes and report no error. Only the next write then fails.
     *
     * @return whether all bytes of both buffers have been sent
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
        // The rest is copied to a buffer of exactly its size. The reason is that only readable bytes are charged in the
        // queue of the socket, but not unused capacity.
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
     * Moves the first {@code end} bytes of {@code gathered} to the end of {@code batch}. Afterwards {@code gathered} is
     * empty. If this method throws, nothing has changed.
     *
     * @param minRoom if {@code batch} exists already: number of bytes that must be free in it afterwards
     * @param room if this method creates {@code batch}: number of bytes that are free in it afterwards
     * @return the buffer {@code batch}
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
     * Returns {@code out} if it is at least about half full. Otherwise releases {@code out} and returns a copy without
     * unused capacity. The reason is that unused capacity is not charged in the queue of the socket. A batch has much
     * unused capacity, for example, if it was created with room for messages that have been recalled since.
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
     * Writes the gathered output to the socket. As long as the socket takes bytes, also writes frames of the messages
     * in {@link #scheduler}, one frame of each message in turn. After about {@code MAX_BYTES_AT_ONCE} bytes, the event
     * loop serves its other connections first. A write can end the connection or call this method again. In both cases,
     * {@link #scheduler} can change while this method runs.
     */
    private void flush() {
        if (gathered.length == 0 && batch == null && scheduler.isEmpty() && !flushPending) {
            if (gathered.bytes.length + partialFrame.capacity() != keptBytes) {
                // the buffer of a frame that has arrived only in part is charged even if there is nothing to send
                keepBuffers();
            }
            turn.loopDone();
            return;
        }
        if (!takeTurn()) {
            return;
        }
        if (flushPending) {
            // this flushes the output that was written to the queue of the channel during a read
            channel.flush();
        }
        int room = MAX_BYTES_AT_ONCE;
        while (room > 0 && !scheduler.isEmpty() && channel.isWritable()) {
            room -= MAX_BYTES_BETWEEN_FRAMES - gatherQueued(MAX_BYTES_BETWEEN_FRAMES);
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
                endMessage(message);
            } else {
                scheduler.goesOn(message);
            }
            flushBatch();
        }
        // the turn to write is taken again, in case a nested flush has given the turn back
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
     * Ends a message whose last frame has been written. The owner is notified even if memory is exhausted in this
     * method. Otherwise the call would be reported as not executed, and could be made a second time.
     */
    private void endMessage(Outbound message) {
        try {
            scheduler.ended(message);
        } finally {
            message.onSent();
        }
    }

    /** Called on the event loop when the number of bytes that wait for the socket may have changed. */
    public void unsentChanged() {}

    /**
     * Returns whether a new message of one frame would have to wait. The message has to wait if the socket takes no
     * more bytes, or if another message of one frame already waits. Must be called on the event loop.
     */
    public final boolean isSocketBusy() {
        return !channel.isWritable() || scheduler.hasWhole();
    }

    /**
     * Returns whether so much output waits, or has just been sent, that error messages have to be short. Must be called
     * on the event loop.
     */
    public final boolean isBacklogged() {
        return batch != null || sentMeanwhile + gathered.length > MAX_SHORT_BYTES || !channel.isWritable();
    }

    private void endUnread() {
        abort(ConnectionErrors.UNREAD);
    }

    /**
     * Returns the number of bytes charged for replies that have not been sent to the peer. Must be called on the event
     * loop.
     */
    public long replyBytes() {
        return 0;
    }

    /**
     * Returns whether output waits for the peer and also waited at the last call of this method, and the peer has taken
     * no byte in between. Only {@link KeepAlive} may call this method, because each call is compared with the call
     * before.
     */
    public final boolean isStalled() {
        return unsent.isStalled();
    }

    private void keepBuffers() {
        if (closed) {
            // an ended connection has released all its charges, and must not charge anything again
            return;
        }
        long bytes = gathered.bytes.length + partialFrame.capacity();
        boolean isCharged = bytes <= Outbound.MAX_SMALL_BYTES
                || kept.set(HeapArray.heapBytes(gathered.bytes.length) + HeapArray.heapBytes(partialFrame));
        if (!isCharged) {
            shrinkBuffers();
            bytes = gathered.bytes.length + partialFrame.capacity();
        }
        if (!isCharged || bytes <= Outbound.MAX_SMALL_BYTES) {
            kept.release();
        }
        // with the value 0, the next flush tries again to charge the buffers
        keptBytes = isCharged || bytes <= Outbound.MAX_SMALL_BYTES ? bytes : 0;
    }

    /**
     * Frees memory: a buffer that is empty and has grown is replaced by a small one, and {@code scheduler} shrinks its
     * queues.
     */
    private void shrinkBuffers() {
        if (gathered.length == 0) {
            gathered.bytes = new byte[FIRST_BATCH_BYTES];
        }
        if (!partialFrame.isReadable()) {
            partialFrame.clear().capacity(FIRST_CUT_BYTES);
        }
        scheduler.shrink();
    }

    /**
     * Frees the memory of empty buffers that have grown. Called on the event loop when the peer has been silent for a
     * while.
     */
    public void trimIdle() {
        shrinkBuffers();
        keepBuffers();
    }

    /** Frees the memory of some unused buffers. Called on the event loop from time to time while the peer is active. */
    public void trimActive() {
        scheduler.shrink();
    }

    /**
     * Takes back a message that waits in {@code scheduler}, even if a part of the message has been sent. No more of the
     * message is sent afterwards.
     */
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
     * Returns the time in nanoseconds at which the current input counts as arrived. Outside of a read, this is the
     * present time. During a read, the clock is asked only once for several frames, because asking the clock is slow
     * compared with a small call. Code that has kept the event loop busy must call {@link #readAnew}, so that the clock
     * is asked again.
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
     * Returns whether the next frame is too large to be copied to {@code INBOX}. Copying such a frame would cost more
     * than parsing its head in a direct buffer.
     */
    private static boolean isLarge(ByteBuf arrived) {
        return arrived.readableBytes() > MAX_GATHERED_PAYLOAD_BYTES
                && frameLength(arrived) > MAX_GATHERED_PAYLOAD_BYTES;
    }

    /**
     * Reads the frames of {@code arrived}. The bytes are first copied to the heap buffer {@code INBOX}, where parsing
     * is fast.
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
        if (frames >= MAX_FRAMES_AT_ONE_TIME) {
            frames = 0;
            readAnew();
            sendMeanwhile();
        }
    }

    /**
     * Adds bytes of an incomplete frame to {@code partialFrame}. When more than {@code Outbound.MAX_SMALL_BYTES} of the
     * frame have arrived, the frame is charged before the bytes are added. If the ledger has no room for the charge,
     * the connection ends.
     */
    private void keepCut(ByteBuf in, int bytes) {
        int before = partialFrame.writerIndex();
        if (before <= Outbound.MAX_SMALL_BYTES && before + bytes > Outbound.MAX_SMALL_BYTES) {
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
     * Called on the event loop when an incomplete frame has been charged, because more than
     * {@code Outbound.MAX_SMALL_BYTES} of the frame have arrived.
     */
    public void frameWaits(long nowNanos) {}

    /**
     * Counts how many consecutive calls of this method have found the same frame incomplete. Must be called on the
     * event loop.
     *
     * @return whether more than {@code checks} consecutive calls have found the same frame incomplete
     */
    final boolean isFrameOverdue(int checks) {
        cutChecks = greeted && partialFrame.isReadable() ? cutChecks + 1 : 0;
        return cutChecks > checks;
    }

    /**
     * Returns whether more than {@code Outbound.MAX_SMALL_BYTES} of an incomplete frame have arrived. Must be called on
     * the event loop.
     */
    public final boolean isFrameWaiting() {
        return partialFrame.readableBytes() > Outbound.MAX_SMALL_BYTES;
    }

    /** Returns whether the event loop is reading bytes that have arrived. Must be called on the event loop. */
    public final boolean isReading() {
        return reading;
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        reading = false;
        frames = 0;
        sentMeanwhile = 0;
        roomMeanwhile = MAX_BYTES_AT_ONCE;
        if (closed) {
            dropCut();
        }
        if (partialFrame.readableBytes() <= Outbound.MAX_SMALL_BYTES) {
            frame.release();
        }
        flush();
    }

    private void readPreface(ByteBuf in) {
        partialFrame.writeBytes(in, Math.min(Wire.PREFACE_BYTES - partialFrame.readableBytes(), in.readableBytes()));
        if (partialFrame.readableBytes() >= Short.BYTES
                && partialFrame.getUnsignedShort(partialFrame.readerIndex()) == ConnectionErrors.TLS_ALERT) {
            // an alert has seven bytes, so it is recognized before a whole preface has arrived
            throw new WireFault(ConnectionErrors.PEER_USES_TLS);
        }
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
     * Gathers the preface, the eight bytes with which each side begins. The preface has room to announce features, but
     * no feature is defined yet.
     */
    public final void sendPreface() {
        turn.takeForLoop();
        reserve(Wire.PREFACE_BYTES);
        PREFACE.getBytes(0, gathered.bytes, gathered.length, Wire.PREFACE_BYTES);
        gathered.length += Wire.PREFACE_BYTES;
    }

    /**
     * Adds missing bytes of the incomplete frame, as far as {@code in} has these bytes. If this completes the frame,
     * the frame is read.
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
     * Reads one frame, and calls {@code onFrame} with the frame.
     *
     * @return false if a part of the frame has not arrived; in this case nothing has been read
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
     * Sets the indices of {@code in} so that its readable bytes are the payload of the first frame. Does so only if the
     * first frame is complete and has the given head and id. Throws {@code WireFault} if the length of the first frame
     * is invalid.
     *
     * @return false if the first frame is incomplete or has another head or id; in this case {@code in} is unchanged
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

    /** Returns the number of bytes, from one to three, that a length field with the value {@code length} takes. */
    static int headerOf(int length) {
        return length < 1 << 7 ? 1 : length < 1 << 14 ? 2 : 3;
    }

    /**
     * Returns the value of the length field at the beginning of {@code in}; -1 if bytes of the field are missing.
     * Throws {@code WireFault} if the length is out of range, or if the field has more bytes than needed. The exception
     * is thrown before anything is allocated for the frame.
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

    /**
     * Ends the connection because of something that the peer did, and sends the peer the reason if the preface of the
     * peer has arrived.
     */
    public final void fail(String why) {
        fail(RPCXException.Code.PROTOCOL, why);
    }

    private void fail(RPCXException.Code code, String why) {
        try {
            if (!closed && greeted) {
                ByteBuf body = Unpooled.buffer();
                WireError.write(body, ConnectionErrors.brokenOff(code, why));
                gather(new Outbound.Control(Wire.ERROR, 0, body));
            }
        } finally {
            close(why);
        }
    }

    /**
     * Closes the connection. Output that has been gathered or written is still sent, if the peer reads the output soon.
     * Messages in the queue and in {@code scheduler} are dropped. Must be called on the event loop.
     */
    public final void close(String why) {
        if (closed) {
            return;
        }
        // the finally blocks run each step even if an earlier step fails, for example because memory is exhausted
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
        // the finally blocks run each step even if an earlier step fails
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
     * Drops the queued messages and all buffers, and releases the charges for them. The buffer of an incomplete frame
     * is still in use during a read, so the buffer is dropped only at the end of the read.
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
            // end() waits until another thread has finished its write, and no other thread writes afterwards. Tested by
            // {@code RacesTest.nobodyWritesOnceTheTurnHasEnded}.
            turn.end();
        }
        takeRest();
        writeBatch();
    }

    /**
     * Drops the gathered output and its buffers. Otherwise the buffers could stay in memory for a long time without
     * being charged, since a handler can refer to the closed connection.
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

    /** Returns the size in bytes of the heap buffer in which small frames are gathered. Only tests use this method. */
    public final int bufferBytes() {
        return gathered.bytes.length;
    }

    /**
     * Drops the incomplete frame and its buffer. Otherwise the closed connection could hold this memory for seconds,
     * until the peer has read why the connection has ended.
     */
    private void dropCut() {
        partialFrame.clear().capacity(0);
    }

    public final boolean isClosed() {
        return closed;
    }

    /**
     * Returns the reason for the end of the connection if it ended because this side lacked memory, for example for a
     * frame. Otherwise, returns null. Any thread may call this method.
     */
    public final @Nullable String memoryWanted() {
        return memoryWanted;
    }

    /**
     * Ends the connection immediately, without waiting until the peer has read the output that has been written. Must
     * be called on the event loop.
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

    /**
     * Returns whether the peer's preface has arrived, and no incomplete frame waits for further bytes. Must be called
     * on the event loop.
     */
    public final boolean isBetweenFrames() {
        return greeted && !partialFrame.isReadable();
    }

    /**
     * Counts a sign that the peer is alive. This method is called if another thread has read something, if a part of a
     * TLS record has arrived, or if a server resumes reading because the peer has taken output. A read of the event
     * loop is counted without this method. Must be called on the event loop.
     */
    public final void recordActivity() {
        reads++;
    }

    /**
     * Returns a number that changes with each sign that the peer is alive. Such a sign is the arrival of bytes, or a
     * call of {@link #recordActivity}. Must be called on the event loop.
     */
    public final int reads() {
        return reads;
    }

    /**
     * Returns whether a sign that the peer is alive has been counted since the last call of this method. Must be called
     * on the event loop.
     */
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
            memoryWanted = ConnectionErrors.NO_ROOM_FOR_TLS;
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
