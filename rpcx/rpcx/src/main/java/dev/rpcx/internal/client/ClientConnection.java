package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.VisibleText;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.call.MethodShape;
import dev.rpcx.internal.io.ReadTurn;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.ConnectionErrors;
import dev.rpcx.internal.wire.KeepAlive;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireConnection;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.util.concurrent.ScheduledFuture;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * A connection of a client to a server on RPCX's native wire. It has the slots of the calls in flight, the numbers by
 * which the server knows its methods, and one timer for the deadlines of all calls. The connection also decides whether
 * the caller's thread or the event loop sends a call.
 *
 * <p>This class is long because each of its events, which are a call, a frame, a deadline and the end, changes the
 * slots, the timer and the state of the connection together, under the rules of one event loop.
 */
public final class ClientConnection extends WireConnection implements ReadTurn.Connection {
    /**
     * The field TIME of a request says how much time the call has left. Without the field, the server gives the call
     * the default time. The field is left out only if the call has the default time left, or at most this many
     * nanoseconds less.
     */
    private static final long TIME_TOLERANCE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private static final int UNKNOWN = 0;

    /**
     * The value in {@link #numbers} for a method that {@link #dictionary} does not have. A call of such a method is
     * sent with the method's name, and the server refuses the call if the server does not publish the method.
     */
    private static final int NOT_PUBLISHED = -1;

    /**
     * The value in {@link #numbers} for a method whose {@link MethodShape} or {@link MethodSchema} does not fit that of
     * the server's method. A call of such a method fails on this connection before anything is sent, since the two
     * sides could not read each other's messages, or would misread them. Another instance may take the call.
     */
    private static final int UNFIT = -2;

    /**
     * The event loop counts as held up if it checks a call's deadline too late: late by more than
     * {@link #MIN_HELD_UP_NANOS}, and by more than a tenth of the time that the call had left when its request was
     * written. For example, if the call had 1 s left, the limit is 100 ms.
     *
     * <p>If the loop was held up, the call ends with the reason UNHEARD. This reason says nothing about the server,
     * since the loop may have missed the reply.
     *
     * <p>The number is 10 because {@link AnswerTimes} allows for the same loss: a call that had nine tenths of its
     * method's timeout had enough time for an answer.
     */
    private static final int HELD_UP_DIVISOR = 10;

    /**
     * If the event loop checks a deadline late by at most this many nanoseconds, the loop never counts as held up. This
     * rule matters only for a call that had less than 50 ms left when its request was written: see
     * {@link #HELD_UP_DIVISOR}.
     */
    private static final long MIN_HELD_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    /**
     * Minimum delay, in nanoseconds, of the timer for the next check of the deadlines. The check then finds all calls
     * whose deadlines have passed during this delay.
     */
    private static final long MIN_SWEEP_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /**
     * If at least this many calls are in flight, the event loop sends the next call; otherwise the caller's thread
     * tries to send it. The event loop can send several calls in one write, which saves more time than it takes to wake
     * the loop.
     */
    private static final int MIN_BUSY_CALLS = 1;

    /**
     * The number of calls in flight from which a connection counts as crowded, so that the client makes another
     * connection if it is allowed to. A quarter of the slots is far above the number of calls from which a second
     * connection pays off, and far below the number from which calls are refused.
     */
    private static final int CROWDED = Wire.MAX_SLOTS / 4;

    /**
     * Time in nanoseconds between two checks of the large buffers that free slots keep for their next calls. If no slot
     * with a large buffer has become free since the check before, the check gives the large buffers of all free slots
     * back.
     */
    private static final long TRIM_NANOS = TimeUnit.SECONDS.toNanos(2);

    /**
     * Time in nanoseconds between two checks of an extra connection (see {@link #isExtra}). A check closes the
     * connection if it had no call in this time and another connection of the instance is not crowded.
     */
    private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Number of times in each keep-alive time that the connection looks for calls that were given up and that the
     * server has not ended.
     */
    private static final int OWED_LOOKS = 3;

    /**
     * A server has to end a call within this number of keep-alive times after the caller gave the call up. If the
     * server has not sent the call's final frame by then, the connection counts as broken, however slow the network may
     * be.
     */
    private static final int MAX_OWED_KEEPALIVES = 6;

    private static final String NO_MEMORY = "the connection has ended, and no memory is left to say why";

    /** The error of a call of which no byte has been sent, for use when there is no memory to create an error. */
    private static final RPCXException NOT_SENT = LocalFailure.notSent(RPCXException.Code.UNAVAILABLE, NO_MEMORY);

    /** The error of a call that may have been executed, for use when there is no memory to create an error. */
    private static final RPCXException LOST = LocalFailure.noRoom(NO_MEMORY, RPCXException.Executed.MAYBE);

    /** The error of a call whose request was sent only in part, for use when there is no memory to create an error. */
    private static final RPCXException LOST_UNSENT =
            LocalFailure.noRoom(NO_MEMORY, RPCXException.Executed.NOT_EXECUTED);

    private static final VarHandle TRIMS;
    private static final VarHandle IN_FLIGHT;
    private static final VarHandle IN_FLIGHT_BY_CALLERS;

    static {
        try {
            IN_FLIGHT = MethodHandles.lookup().findVarHandle(ClientConnection.class, "inFlight", int.class);
            TRIMS = MethodHandles.lookup().findVarHandle(ClientConnection.class, "trims", boolean.class);
            IN_FLIGHT_BY_CALLERS =
                    MethodHandles.lookup().findVarHandle(ClientConnection.class, "inFlightByCallers", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    public final CallSlots slots = new CallSlots(this);
    public final ReadTurn readTurn = new ReadTurn(channel, this);
    final OverdueCallers overdueCallers = new OverdueCallers(this);
    private final ClientAddress address;
    private final String peer;
    private final long defaultNanos;
    private final long keepAliveNanos;
    private final KeepAlive keepAlive;

    /**
     * The future for which calls wait until this connection takes calls. The future completes when the server has sent
     * its dictionary, that is, the complete list of its methods. The future fails if the connection ends before that,
     * or if the try to connect is given up first, for example after too long a time.
     */
    private final CompletableFuture<ClientConnection> connecting;

    private final Runnable sweep = this::sweep;
    private final Runnable lookForOrphans = this::freeOrphans;

    /** Bytes of memory that one entry of {@link #dictionary} takes, without the characters of the method's name. */
    private static final int ENTRY_BYTES = 128;

    /**
     * The methods that the server publishes, by the names of their service and method. A method that is not in this map
     * is called by its name instead of its number. The map has these methods:
     *
     * <ul>
     *   <li>All published methods that this client's proxies had when the server sent its list.
     *   <li>Of the other methods, those among the first {@code Wire.MAX_DICTIONARY} of the list for which there was
     *       room.
     * </ul>
     *
     * <p>The event loop changes the map, and any thread reads it. The lock of the map guards {@link #numbers}.
     */
    private final Map<String, Entry> dictionary = new ConcurrentHashMap<>();

    /**
     * Charge, in bytes, for the memory of {@link #dictionary}. The entry of a method is not charged if one of this
     * client's proxies had the method when the entry came.
     */
    private final Charge entryBytes;

    /**
     * Number of methods that the server has listed, counted up to {@code Wire.MAX_DICTIONARY}. Only the event loop
     * changes it. Any thread may read it after it has read that {@link #dictionaryComplete} is true.
     */
    private int entries;

    /**
     * Whether {@link #dictionary} lacks some of the server's methods, because there was no room for them. Written and
     * read as {@link #entries}.
     */
    private boolean isDictionaryCut;

    private record Entry(int number, int shape, long schemaHash) {}

    /** Whether the server has sent the last entry of its dictionary. Event loop only. */
    private boolean isListed;

    /**
     * Question to the server about the members of methods, which has not been answered; null if there is none. Event
     * loop only.
     */
    private @Nullable SchemaCheck check;

    /**
     * Differences of the server's schemas from those of this client: see {@link SchemaCheck#end}. The event loop stores
     * the field before it sets {@link #dictionaryComplete}. Any thread may read it after it has read that
     * {@code dictionaryComplete} is true.
     */
    private Map<Integer, Map<Long, String>> compared = Map.of();

    /** The time, by {@code nanoTime()}, at which the connection began to take calls. Event loop only. */
    private long beginNanos;

    /** Whether the server has sent its SETTINGS frame. Event loop only. */
    private boolean settled;

    /**
     * Whether {@link #dictionary} is complete, and the schemas of its methods have been compared. The event loop sets
     * the field after it has stored the last entry and the last difference. A thread that writes a request reads the
     * field before it looks up the method in the dictionary. In another order, the thread could miss the method's
     * entry, and store in {@link #numbers} that the server does not publish the method. All threads would then call the
     * method by its name until the connection ends.
     */
    private volatile boolean dictionaryComplete;

    /**
     * A future that completes when the server has sent the complete list of its methods. The future fails if the
     * connection ends before that.
     */
    private final CompletableFuture<@Nullable Void> published = new CompletableFuture<>();

    /**
     * Names of the methods that the server publishes; null until they are first asked for. Guarded by
     * {@link #published}.
     */
    private @Nullable List<String> publishedNames;

    /**
     * The numbers by which the server knows its methods, indexed by {@link ClientMethod#index}. An element is 0 if its
     * method has not been looked up, and negative if its method has no usable number. Any thread reads the array
     * without a lock, but writes to it only under the lock of {@link #dictionary}. A thread that does not see a new
     * element looks its method up again.
     */
    private volatile int[] numbers = new int[8];

    /**
     * The largest size in bytes of a request that the server accepts. Stored by the event loop, and read by any thread.
     */
    private volatile int maxRequestBytes = Wire.MAX_MESSAGE_BYTES;

    /**
     * Whether the connection takes no new calls and only finishes those in flight. Set by the event loop, and read by
     * any thread; see {@link #enter}.
     */
    private volatile boolean draining;

    /**
     * Whether the connection takes new calls: it is neither draining nor about to be replaced, see {@link #replace}.
     * Set to false by any thread, and read by any thread.
     */
    private volatile boolean takesCalls = true;

    /**
     * Reason why the connection has ended; null until then. Any thread reads this field. The event loop stores the
     * reason before it ends the calls. In the other order, the next attempt of an ended call could choose this
     * connection, see {@link #isUsable}.
     */
    private volatile @Nullable String closedWhy;

    /**
     * Whether this client ends the connection because the client drops all its connections, because the connection is
     * replaced, or because this is an extra connection and is idle. In these cases, the end of the connection is no
     * failure of the server. Any thread may drop or replace the connection. That thread sets the field before it closes
     * or drains the connection. The event loop sets the field before it drains an idle extra connection. The event loop
     * reads the field afterwards, in {@link ClientAddress#lost}.
     */
    volatile boolean isDropped;

    /**
     * Whether this is an extra connection, which was made because the other connections to the instance were crowded.
     * An extra connection is closed when it has had no calls for a while.
     */
    public final boolean isExtra;

    /**
     * Whether this connection is about to close because it has had no calls. The event loop sets this field, and then
     * checks that all slots are free. A caller takes a slot, and then reads this field. So a caller that takes a slot
     * too late for that check sees that this field is true. If another connection of the instance is ready, the caller
     * then gives the slot back, and uses that connection.
     *
     * <p>In another order, a call could begin on a connection that is closing, and end unsent. A call that had
     * subscribed to the stream that it sends would then fail.
     * {@code ExtraConnectionsTest.aCallWhoseConnectionIsFoundIdleAsItTakesItGoesToAnother} tests the caller's part.
     */
    public volatile boolean isParting;

    /**
     * Value of {@link CallSlots#changes} when the next check was scheduled. The check finds out whether this extra
     * connection is still needed. If the value is the same at the check, no slot has been released or reused since.
     * Event loop only.
     */
    private long idleSince;

    /**
     * The timer of the next check whether this extra connection is still needed; null if no check is scheduled. Event
     * loop only.
     */
    private @Nullable ScheduledFuture<?> idleTimer;

    /**
     * Number of calls that the event loop has sent or is about to send, and that the server has not ended yet. Only the
     * event loop writes this number; other threads read it by {@link #load}, and can get an old number.
     */
    private int inFlight;

    /**
     * Number of calls that callers' own threads have sent or are about to send, and that the server has not ended yet.
     * Callers' threads and the event loop change this number; see {@link #enter} for the order.
     */
    private volatile int inFlightByCallers;

    /**
     * Number of consecutive small replies that the event loop has read, but that the blocked caller could have read
     * itself. A reply counts only if the caller's own thread has also sent the request. Errors and replies to
     * asynchronous calls neither raise this number nor reset it. After {@link ReadTurn#LONE_REPLIES} such replies, the
     * event loop lets callers read the socket themselves, as soon as no call is in flight. Event loop only.
     */
    private int loneReplies;

    /**
     * Whether a slot has become free, and has kept a large buffer, since the last check of the large buffers. The field
     * is written only if its value changes, since a write removes this object from the caches of the callers'
     * processors. Any thread sets the field, and the event loop clears it. If a thread sees an old value, the buffers
     * are given back earlier or later.
     */
    private boolean hasKept;

    /**
     * Whether a run of {@link #trimIfIdle} is scheduled. That method gives back the large buffers of free slots. Any
     * thread sets the field. The event loop clears it, and so does a thread that could not schedule the run.
     */
    private volatile boolean trims;

    /**
     * Time of the next check of the deadlines, by {@code nanoTime()}; {@code Long.MAX_VALUE} if none is scheduled. The
     * event loop stores it, and callers' threads read it after they have sent a call; see {@link #sweepNow}.
     */
    private volatile long nextSweepNanos = Long.MAX_VALUE;

    private @Nullable ScheduledFuture<?> sweepTimer;

    /** Whether a timer is set that will end overdue calls: see {@link #endBehindSockets}. Event loop only. */
    private boolean isEndDue;

    /**
     * The timer of the next check for given-up calls that the server has not ended; null if no check is scheduled.
     * Event loop only.
     */
    private @Nullable ScheduledFuture<?> owedTimer;

    /**
     * The latest PING that checks whether the server ends calls that were given up; null if no such PING has been sent.
     * Event loop only.
     */
    private @Nullable Question question;

    /**
     * A PING that checks whether the server ends calls that their callers gave up. The PING is sent after the CANCEL
     * frames of these calls, so the server should end the calls before it answers the PING.
     */
    private static final class Question {
        final int ping;
        final long askedNanos;
        boolean isAnswered;
        long answeredNanos;

        Question(int ping, long askedNanos) {
            this.ping = ping;
            this.askedNanos = askedNanos;
        }
    }

    /**
     * Whether {@link #askForSign} has ever sent a PING. If it has, {@link #askedNanos} is the time of the latest such
     * PING. Event loop only.
     */
    private boolean isAsked;

    private long askedNanos;

    /**
     * Creates the connection that uses a channel.
     *
     * @param isExtra whether the connection is closed when it has had no calls for a while
     * @param defaultNanos time in nanoseconds that the server gives a call whose request does not say how much time is
     *     left; a whole number of microseconds
     * @param connecting future that completes with this connection when it takes calls
     */
    public ClientConnection(
            Channel channel,
            Account account,
            ClientAddress address,
            boolean isExtra,
            long defaultNanos,
            long keepAliveNanos,
            CompletableFuture<ClientConnection> connecting) {
        super(channel, account);
        this.address = address;
        this.isExtra = isExtra;
        this.peer = address.toString();
        this.defaultNanos = defaultNanos;
        this.keepAliveNanos = keepAliveNanos;
        this.keepAlive = new KeepAlive(this, keepAliveNanos);
        this.entryBytes = account.charge(Resource.TABLE_BYTES);
        this.connecting = connecting;
    }

    // ---- any thread

    public boolean isUsable() {
        return takesCalls && closedWhy == null;
    }

    @Override
    public int load() {
        return (int) IN_FLIGHT.getOpaque(this) + inFlightByCallers;
    }

    /**
     * Returns whether all slots that the server allows are taken. A call that is queued but not sent yet has taken its
     * slot already.
     */
    public boolean isFull() {
        return slots.isFull();
    }

    /**
     * Returns how many more calls this connection can take. Call this method only if the connection is not full; the
     * result is at least 1. The number may be too high, since calls that are queued but not sent yet are not
     * subtracted.
     */
    int room() {
        return Math.max(1, slots.limit() - load());
    }

    /**
     * Returns whether the connection has so many calls that the client should make another connection. This is so if
     * the number of calls in flight is at least {@link #CROWDED}, or at least three quarters of the slots that the
     * server allows. It is also so if the connection is full.
     */
    public boolean isCrowded() {
        return load() >= Math.max(1, Math.min(CROWDED, slots.limit() * 3 / 4)) || isFull();
    }

    public ClientAddress address() {
        return address;
    }

    /**
     * Returns whether a request has to carry the field TIME, which says how much time the call has left. The server
     * gives a call without this field the default time.
     */
    public boolean carriesTime(long leftNanos) {
        return leftNanos > defaultNanos || defaultNanos - leftNanos > TIME_TOLERANCE_NANOS;
    }

    @Override
    public int maxBytesTaken() {
        return maxRequestBytes;
    }

    /**
     * Returns the number by which the server knows the method; 0 if the method has to be called by its name.
     *
     * @throws RPCXException {@link RPCXException.Code#INVALID} if the two sides declare the method so differently that
     *     they could not read each other's messages, or would misread them; a {@link LocalFailure} that lets the call
     *     use another connection if the schema of the method has not been compared on this one
     */
    int numberOf(ClientMethod method) {
        int[] known = numbers;
        int number = method.index < known.length ? known[method.index] : UNKNOWN;
        if (number > 0) {
            return number;
        }
        return number == NOT_PUBLISHED ? 0 : lookUp(method);
    }

    private int lookUp(ClientMethod method) {
        if (!dictionaryComplete) {
            return 0;
        }
        Entry found = dictionary.get(method.publishedName());
        LocalFailure misfit = found == null ? null : misfit(method, found);
        if (misfit == null && !isCompared(method)) {
            replace();
            throw LocalFailure.replaced(peer + ": the connection was established before this client knew " + method
                    + ", and is replaced (expected: another attempt)");
        }
        int number = found == null ? NOT_PUBLISHED : misfit == null ? found.number : UNFIT;
        synchronized (dictionary) {
            int[] known = numbers;
            if (method.index >= known.length) {
                known = Arrays.copyOf(known, method.index * 2);
            }
            known[method.index] = number;
            numbers = known;
        }
        if (misfit != null) {
            throw misfit;
        }
        return Math.max(number, 0);
    }

    /**
     * Returns whether this connection knows if the two sides would misread each other's messages of a method. Returns
     * false if a proxy was made after the server was asked, and has another schema of the method than the server.
     */
    boolean isCompared(ClientMethod method) {
        Entry found = dictionaryComplete ? dictionary.get(method.publishedName()) : null;
        long own = method.schema.hash();
        return found == null
                || !SchemaCheck.differ(own, found.schemaHash)
                || compared.getOrDefault(found.number, Map.of()).containsKey(own);
    }

    /**
     * Makes calls use another connection, since this one does not know whether the schema of a method fits. The server
     * is asked while the new connection opens. Calls in flight on this connection go on. Thread-safe.
     */
    void replace() {
        takesCalls = false;
        isDropped = true;
        retire();
    }

    /** Returns the error of each call of a method whose shape or schema does not fit; null if both fit. */
    private @Nullable LocalFailure misfit(ClientMethod method, Entry found) {
        String shape = method.difference(found.shape);
        if (shape != null) {
            return LocalFailure.unfit(
                    RPCXException.Code.INVALID,
                    method + " at " + peer + " has another shape: " + shape
                            + " (expected: the same on both sides, but for what only one of them has)");
        }
        long own = method.schema.hash();
        String schema = SchemaCheck.differ(own, found.schemaHash)
                ? compared.getOrDefault(found.number, Map.of()).getOrDefault(own, SchemaCheck.NO_DIFFERENCE)
                : SchemaCheck.NO_DIFFERENCE;
        return schema.equals(SchemaCheck.NO_DIFFERENCE)
                ? null
                : LocalFailure.unfit(
                        RPCXException.Code.INVALID, method + " at " + peer + " has another schema: " + schema);
    }

    /**
     * Returns the error that each call of the method on this connection would get because of what the server has
     * listed. Returns null if there is no such error, or if the list does not say. An empty list says nothing, since a
     * server may have its methods called by name alone.
     */
    @Nullable
    RPCXException misfit(ClientMethod method) {
        if (!dictionaryComplete) {
            return null;
        }
        Entry found = dictionary.get(method.publishedName());
        if (found != null) {
            return misfit(method, found);
        }
        List<String> all = names();
        // The connection is checked after the dictionary was read, since the end of the connection empties it.
        boolean isKnown = entries > 0 && entries < Wire.MAX_DICTIONARY && !isDictionaryCut && !isClosed();
        return isKnown ? notPublished(method, all) : null;
    }

    private RPCXException notPublished(ClientMethod method, List<String> all) {
        List<String> ofService = all.stream()
                .filter(name -> name.startsWith(method.service + "/"))
                .toList();
        String expected = String.join(", ", ofService.isEmpty() ? all : ofService);
        return RPCXException.refused(
                RPCXException.Code.NOT_FOUND,
                method + " is not published at " + peer + " (expected: one of "
                        + VisibleText.line(expected, ThrowableText.MAX_WHY) + ")");
    }

    /**
     * Sends a call. The calling thread writes the request itself if the request is small, no call is in flight, and no
     * message is queued or being written. Otherwise the event loop writes the request.
     */
    void sendCall(ClientCall call) {
        long deadlineNanos = call.deadlineNanos;
        boolean mayRead = call.mayRead;
        if (load() >= MIN_BUSY_CALLS || inLoop() || !sendHere(call)) {
            send(call);
            return;
        }
        if (!mayRead) {
            readTurn.handToLoop();
        }
        // The deadline was read before the call was sent, since the call's slot may have another call with another
        // deadline by now.
        long next = nextSweepNanos;
        if (next == Long.MAX_VALUE || deadlineNanos - next < 0) {
            inLoopOrHere(sweep);
        }
    }

    /**
     * Counts one more call in flight, which the caller's own thread is about to send.
     *
     * @return false if the connection takes no more calls, so that the call must not be sent
     */
    public boolean enter() {
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, 1);
        // The count is raised before this check, since the event loop may be draining the connection at this moment.
        // The event loop sets the field draining before it reads the count. So either this thread sees that the
        // connection is draining, or the event loop sees the raised count. Otherwise the event loop could close the
        // connection under a call that has been sent. {@code RollingRestartTest.restartsUnderLoadFailNoCall} runs both
        // sides, but they seldom meet at this moment.
        if (!isDrainingOrClosed()) {
            return true;
        }
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, -1);
        inLoopOrHere(this::closeIfDrained);
        return false;
    }

    /**
     * Sends a CREDIT frame, which allows the server to send more items of a stream. The frame never overtakes the
     * call's request.
     *
     * @param serial {@link ClientCall#serial} of the call; the frame is dropped if the server has ended the call or
     *     the slot has another call by the time the frame is sent
     * @param unsent number of items that the server may send and does not know of yet; set to 0 when the frame is sent
     */
    void sendCredit(ClientCall call, long serial, AtomicLong unsent) {
        send(new Outbound.Control(Wire.CREDIT, 0, Unpooled.buffer(10)) {
            @Override
            public boolean beforeSend() {
                id = call.id;
                if (!call.isOnWire(serial)) {
                    return false;
                }
                if (call.isFirstFragmentWritten) {
                    begins();
                } else {
                    call.waitingCredit = this;
                }
                return true;
            }

            /**
             * Writes into the frame how many items the server may send. This method runs just before the frame is sent,
             * so the number includes items that were allowed while the frame waited.
             */
            @Override
            public void begins() {
                if (call.waitingCredit == this) {
                    call.waitingCredit = null;
                }
                Varint.write(body, unsent.getAndSet(0));
            }
        });
    }

    /**
     * Returns whether the large requests on this connection hold very much memory. If they do, requests that have been
     * sent should give up their buffers, to make room for other requests.
     */
    boolean keepsMuch() {
        return account.holdsMuch(Resource.REQUEST_BYTES);
    }

    /**
     * Called when a free slot has kept a large buffer for its next call. Schedules a check that will give the buffer
     * back if no more large messages come.
     */
    void onKept() {
        if (!hasKept) {
            hasKept = true;
        }
        if (isClosed()) {
            // This thread has put the slot on the stack, and then reads whether the connection is closed. The event
            // loop marks the connection as closed, and then trims the slots. So the slot is trimmed there or here.
            // Otherwise the buffer could stay.
            slots.trim();
        } else if (!trims && TRIMS.compareAndSet(this, false, true)) {
            trimLater();
        }
    }

    private void trimLater() {
        boolean isScheduled = false;
        try {
            loop().schedule(this::trimIfIdle, TRIM_NANOS, TimeUnit.NANOSECONDS);
            isScheduled = true;
        } catch (RejectedExecutionException ended) {
            slots.trim();
        } finally {
            if (!isScheduled) {
                // No check of the kept buffers could be scheduled, for example because the stack is exhausted. The
                // field is cleared, so that the next slot that keeps a buffer schedules a check.
                trims = false;
            }
        }
    }

    private void trimIfIdle() {
        if (hasKept && !isClosed()) {
            hasKept = false;
            trimLater();
            return;
        }
        // The field is cleared before the slots are trimmed, since no check of the kept buffers is scheduled while the
        // field is true. A thread that frees a slot puts the slot on the stack before it reads the field. So either the
        // slot is trimmed here, or that thread schedules another check. Otherwise the buffer could stay.
        trims = false;
        slots.trim();
    }

    /**
     * Returns the error of a call that cannot go on and whose request the server may have seen, at least in part. If
     * the connection ended because this side had no memory, the error says so.
     */
    public RPCXException lostError(RPCXException.Executed executed) {
        try {
            return memoryWanted() == null
                    ? ClientCallErrors.connectionLost(RPCXException.Code.UNAVAILABLE, whyLost(), executed)
                    : LocalFailure.noRoom(whyLost(), executed);
        } catch (Throwable noMemory) {
            return executed == RPCXException.Executed.NOT_EXECUTED ? LOST_UNSENT : LOST;
        }
    }

    /**
     * Returns the error of a call that cannot go on, and of which no byte has been sent. The client can make the call
     * on another connection.
     */
    public RPCXException notSentError() {
        try {
            return LocalFailure.notSent(RPCXException.Code.UNAVAILABLE, whyLost());
        } catch (Throwable noMemory) {
            return NOT_SENT;
        }
    }

    private String whyLost() {
        String why = closedWhy;
        return peer + ": " + (why == null ? "the connection is closing" : why);
    }

    /**
     * Returns whether a message of a call has to wait, because the call's request has to be sent first. CREDIT frames
     * and parts of the stream that the call sends wait until the first bytes of the request have been sent.
     */
    @Override
    public boolean isAhead(Outbound message) {
        int type = message.head & Wire.TYPE_MASK;
        if (message instanceof ClientCall || message.id == 0 || type == Wire.PING || type == Wire.PONG) {
            return false;
        }
        ClientCall call = slots.at(message.id & Wire.SLOT_MASK);
        return call != null && call.isOnWire(message.id) && !call.isFirstFragmentWritten;
    }

    // ---- the event loop

    @Override
    public void channelActive(ChannelHandlerContext ctx) {
        sendPreface();
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.MAX_MESSAGE, Wire.MAX_MESSAGE_BYTES);
        ProtoFields.writeNumber(settings, Settings.DEFAULT_MICROS, TimeUnit.NANOSECONDS.toMicros(defaultNanos));
        ProtoFields.writeNumber(settings, Settings.READS_REPLY_METADATA, 1);
        sendNow(new Outbound.Control(Wire.SETTINGS, 0, settings));
    }

    @Override
    public void onPreface(int version) {
        keepAlive.start();
    }

    @Override
    public void beforeRead() {
        // The fence makes visible here what a caller's thread stored before it sent the call whose reply is read next,
        // see ClientCall.beforeDirectWrite(). A read from the network alone does not make these stores visible.
        // WriteTurnTest.threadsAndLoopShareASocketAndNoReplyIsLostOrAnothers tests this.
        VarHandle.acquireFence();
    }

    @Override
    public void onFrame(int head, int id, ByteBuf payload) {
        switch (head & Wire.TYPE_MASK) {
            case Wire.REPLY, Wire.PART, Wire.ITEM, Wire.CREDIT -> onCallFrame(head, id, payload);
            case Wire.ERROR -> {
                if (id == 0) {
                    close("the server ended the connection: " + reason(payload));
                    return;
                }
                onCallFrame(head, id, payload);
            }
            case Wire.SETTINGS -> onSettings(Settings.read(payload));
            case Wire.DICTIONARY -> onDictionary(payload, (head & Wire.MORE) != 0);
            case Wire.SCHEMA -> onSchema(payload, (head & Wire.MORE) != 0);
            case Wire.GOAWAY -> onGoAway();
            case Wire.PING -> answerPing(id);
            case Wire.PONG -> onPong(id);
            default -> {
                // The frame is ignored: its type is of a later version, or has no meaning for a client.
            }
        }
    }

    /**
     * Returns the reason that the server gives for ending the connection. If the reason cannot be read, returns a text
     * that says so. This method throws no {@link WireFault}, since the connection ends in any case.
     */
    private static String reason(ByteBuf payload) {
        try {
            return String.valueOf(WireError.read(payload).getMessage());
        } catch (WireFault unreadable) {
            return "its reason cannot be read";
        }
    }

    /**
     * Handles a frame that belongs to one call. If the frame breaks the rules of the wire, the whole connection ends.
     * After any other failure, only the call ends.
     */
    private void onCallFrame(int head, int id, ByteBuf payload) {
        ClientCall call = slots.at(id & Wire.SLOT_MASK);
        if (call == null || !call.isOnWire(id)) {
            return;
        }
        boolean more = (head & Wire.MORE) != 0;
        try {
            switch (head & Wire.TYPE_MASK) {
                case Wire.REPLY -> {
                    if ((head & Wire.METADATA) != 0) {
                        call.onMetadata(MetadataFields.read(payload, Metadata.MAX_REPLY_BYTES));
                    }
                    call.onReply(payload, more);
                }
                case Wire.PART -> call.onPart(payload, more, Wire.MAX_MESSAGE_BYTES);
                case Wire.ITEM -> call.onItem(payload, more);
                case Wire.CREDIT -> call.onCredit(payload);
                default -> {
                    RPCXException error = WireError.read(payload);
                    if (!error.metadata().isEmpty()) {
                        call.onMetadata(error.metadata());
                    }
                    call.onError(error);
                }
            }
        } catch (WireFault brokenWire) {
            throw brokenWire;
        } catch (Throwable e) {
            if (call.isOnWire(id)) {
                call.onFailure(head & Wire.TYPE_MASK, more, e);
            } else {
                // The call has ended, and its slot may have another call, which this failure must not end.
                ThreadTools.report(e);
            }
        }
    }

    private void onSettings(Settings settings) {
        if (settled) {
            throw new WireFault("settings twice (expected: once)");
        }
        settled = true;
        maxRequestBytes = settings.maxMessageBytes();
        slots.limit(settings.maxCalls());
    }

    private void onDictionary(ByteBuf payload, boolean more) {
        if (isListed) {
            throw new WireFault("the dictionary twice (expected: once)");
        }
        MethodDictionary.read(payload, this::onEntry);
        if (!more) {
            isListed = true;
            askForSchemas();
        }
    }

    /**
     * Asks the server for the members of those methods that this client calls with another schema than the server's. If
     * there is no such method, the connection begins to take calls at once. A draining connection does not ask, since
     * it takes no calls.
     */
    private void askForSchemas() {
        SchemaCheck asking = new SchemaCheck(account.charge(Resource.TABLE_BYTES));
        if (!draining) {
            dictionary.forEach((name, entry) -> address.schemas(name).forEach((hash, own) -> {
                if (SchemaCheck.differ(hash, entry.schemaHash)) {
                    asking.ask(entry.number, own);
                }
            }));
        }
        if (asking.isEmpty()) {
            beginToTakeCalls();
        } else {
            check = asking;
            sendNow(new Outbound.Control(Wire.SCHEMA, 0, asking.question()));
        }
    }

    private void onSchema(ByteBuf payload, boolean more) {
        SchemaCheck open = check;
        if (open == null) {
            // The frame is ignored: this client has not asked, or has its answer.
            return;
        }
        open.onAnswer(payload);
        if (!more) {
            check = null;
            compared = open.end();
            beginToTakeCalls();
        }
    }

    private void beginToTakeCalls() {
        dictionaryComplete = true;
        beginNanos = nanoTime();
        if (!draining) {
            // The future completes only if the connection is not draining. A draining connection is about to close, and
            // its end makes the future fail.
            connecting.complete(this);
        }
        published.complete(null);
        if (isExtra && !isDrainingOrClosed()) {
            lookWhetherIdleLater();
        }
        if (!isExtra) {
            logMisfits();
        }
    }

    private void logMisfits() {
        try {
            address.logMisfits(this);
        } catch (Throwable e) {
            // the connection can be used even if there is no memory for this log line
            ThreadTools.report(e);
        }
    }

    private void lookWhetherIdleLater() {
        idleSince = slots.changes();
        idleTimer = loop().schedule(this::partIfIdle, IDLE_NANOS, TimeUnit.NANOSECONDS);
    }

    /**
     * Closes this extra connection if it is not needed: it has had no calls since the last check, all its slots are
     * free, and another connection of the instance is not crowded. Sets {@link #isParting} before it checks the slots,
     * so that no call begins during the check. Event loop only.
     */
    public void partIfIdle() {
        idleTimer = null;
        if (isDrainingOrClosed()) {
            return;
        }
        if (load() == 0 && slots.changes() == idleSince) {
            isParting = true;
            if (address.hasRoom() && slots.trim()) {
                isDropped = true;
                onGoAway();
                return;
            }
            isParting = false;
        }
        lookWhetherIdleLater();
    }

    private void onEntry(String name, int number, int shape, long schemaHash) {
        if (entries < Wire.MAX_DICTIONARY) {
            entries++;
        } else if (!address.calls(name)) {
            return;
        }
        if (dictionary.containsKey(name)
                || address.calls(name)
                || entryBytes.add(ENTRY_BYTES + (long) Character.BYTES * name.length())) {
            dictionary.put(name, new Entry(number, shape, schemaHash));
        } else {
            isDictionaryCut = true;
        }
    }

    /**
     * Returns the sorted names of the methods that the server publishes. A connection returns the same list object each
     * time. A tool can compare the list objects of two results, and so learns whether both are of one connection.
     */
    private List<String> names() {
        synchronized (published) {
            List<String> names = publishedNames;
            if (names == null) {
                names = dictionary.keySet().stream()
                        .map(name -> name.replace('\0', '/'))
                        .sorted()
                        .toList();
                publishedNames = names;
            }
            return names;
        }
    }

    /**
     * Returns the names of the methods that the server publishes, each as {@code service/method}. If the server lists
     * more than {@code Wire.MAX_DICTIONARY} methods, some names may be missing. The future completes when the server
     * has sent all names. The future fails in these cases:
     *
     * <ul>
     *   <li>The connection ends before that, or has ended already.
     *   <li>The ledger had no room for some of the names.
     * </ul>
     */
    public CompletableFuture<List<String>> published() {
        return published.thenApply(said -> {
            List<String> names = names();
            // The connection is checked after names() has run, since the end of the connection empties the dictionary
            // that names() reads. The event loop marks the connection as closed before it empties the dictionary, so
            // this thread never returns a list that lacks names for this reason.
            if (isDictionaryCut || isClosed()) {
                throw new IllegalStateException("no room for what the server publishes, or the connection is over");
            }
            return names;
        });
    }

    /**
     * Stops taking new calls, and sends GOAWAY to the server. Called when the server or this client wants to end the
     * connection. A call of which no byte has been sent ends here, and can go to another connection. All other calls go
     * on.
     */
    private void onGoAway() {
        if (!draining) {
            takesCalls = false;
            draining = true;
            address.lost(this);
            for (int slot = 0, top = slots.createdCount(); slot < top; slot++) {
                ClientCall call = slots.at(slot);
                if (call != null) {
                    call.endUnsent();
                }
            }
            sendNow(Wire.GOAWAY, 0);
            closeIfDrained();
        }
    }

    /** Stops taking new calls. The connection ends when its calls in flight have ended. Thread-safe. */
    public void retire() {
        loop().execute(this::onGoAway);
    }

    /**
     * Ends this connection together with its calls in flight. Called for a connection that takes no new calls any more,
     * if too many such connections to the server still have calls. Thread-safe.
     */
    void endDraining() {
        loop().execute(() -> close("too many connections to this server still have calls in flight"));
    }

    /**
     * Returns whether the server has sent the complete list of its methods, so that the connection has begun to take
     * calls. The result stays true when the connection takes no more calls. Event loop only.
     */
    public boolean hasBegun() {
        return dictionaryComplete;
    }

    /**
     * Returns how many nanoseconds ago the connection began to take calls. Call this method only if {@link #hasBegun}
     * returns true. Event loop only.
     */
    long upNanos() {
        return nanoTime() - beginNanos;
    }

    public boolean isDrainingOrClosed() {
        return draining || isClosed();
    }

    /**
     * Counts a call as no longer in flight. Called when the caller's own thread has both sent the request and read the
     * reply.
     */
    public void onOwnFinal() {
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, -1);
        if (isDrainingOrClosed()) {
            inLoopOrHere(this::closeIfDrained);
        }
    }

    /** Counts a small reply that the caller's own thread could have read instead of the event loop. */
    void onLoneReply() {
        loneReplies++;
    }

    @Override
    public void isNotAlone() {
        loneReplies = 0;
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        super.channelReadComplete(ctx);
        if (loneReplies >= ReadTurn.LONE_REPLIES && load() == 0 && !isDrainingOrClosed() && isBetweenFrames()) {
            readTurn.lend();
        }
    }

    void onFinal(boolean sentByCaller) {
        if (sentByCaller) {
            IN_FLIGHT_BY_CALLERS.getAndAdd(this, -1);
        } else {
            inFlight--;
        }
        closeIfDrained();
    }

    private void closeIfDrained() {
        if (draining && inFlight == 0 && inFlightByCallers == 0 && !isClosed()) {
            loop().execute(() -> close(
                    isParting ? "the client does not need the connection any more" : ConnectionErrors.SERVER_CLOSING));
        }
    }

    /**
     * Sends a PING, because a stream has to know whether the server is still there. All streams together send at most
     * one such PING in {@code CircuitBreaker.PAUSE_NANOS}, since a server ends a connection that sends many PINGs.
     * Event loop only.
     */
    public void askForSign() {
        long now = nanoTime();
        if (!isAsked || now - askedNanos >= CircuitBreaker.PAUSE_NANOS) {
            isAsked = true;
            askedNanos = now;
            ping();
        }
    }

    /**
     * Counts one more call in flight, which the event loop is about to send, and makes sure that the call's deadline is
     * checked.
     */
    void countSent(long deadlineNanos) {
        inFlight++;
        readTurn.takeForLoop();
        sweepAt(deadlineNanos);
    }

    /**
     * Schedules the next check of the deadlines, unless an earlier check is scheduled. If this method throws, a check
     * that was scheduled before still runs.
     *
     * @param nanos time of the check, by {@code nanoTime()}
     */
    private void sweepAt(long nanos) {
        if (nextSweepNanos != Long.MAX_VALUE && nanos - nextSweepNanos >= 0) {
            return;
        }
        long wait = Math.max(MIN_SWEEP_WAIT_NANOS, nanos - nanoTime());
        ScheduledFuture<?> timer = loop().schedule(sweep, wait, TimeUnit.NANOSECONDS);
        if (sweepTimer != null) {
            sweepTimer.cancel(false);
        }
        sweepTimer = timer;
        nextSweepNanos = nanos;
    }

    private void sweep() {
        try {
            sweepNow();
        } catch (Throwable t) {
            // The connection ends, since without a next check of the deadlines its calls might never end.
            failInternally(t);
        }
    }

    /**
     * Finds the calls whose deadlines have passed, and schedules the next check. This method looks at all slots, so
     * that a call does not need a timer of its own.
     */
    private void sweepNow() {
        sendQueued();
        if (sweepTimer != null) {
            sweepTimer.cancel(false);
            sweepTimer = null;
        }
        // This value is stored before the slots are checked, because a caller's thread may send a call at this moment,
        // and reads the value afterwards. So either that thread sees the value and schedules another check, or this
        // check sees the call of that thread. Otherwise the call might not end at its deadline.
        nextSweepNanos = Long.MAX_VALUE;
        if (isClosed()) {
            return;
        }
        if (!readTurn.takeForLoop()) {
            // The event loop does not have the socket yet. The caller at the socket has been asked to give the socket
            // back, so the check is put off for a moment.
            sweepAt(nanoTime() + MIN_SWEEP_WAIT_NANOS);
            return;
        }
        if (slots.hasOrphans) {
            freeOrphans();
        }
        long now = nanoTime();
        long next = Long.MAX_VALUE;
        long longestOver = -1;
        for (int slot = 0, top = slots.createdCount(); slot < top; slot++) {
            ClientCall call = slots.at(slot);
            if (call == null || !call.isWaiting()) {
                continue;
            }
            long left = call.deadlineNanos - now;
            if (left > 0) {
                next = Math.min(next, left);
            } else {
                longestOver = Math.max(longestOver, -left);
            }
        }
        if (longestOver >= 0 && !isEndDue) {
            endBehindSockets(now, longestOver);
        } else if (longestOver >= 0) {
            // A timer is set already, but it ends only the calls that an earlier check has found. The calls that this
            // check has found need another check soon.
            next = Math.min(next, MIN_SWEEP_WAIT_NANOS);
        }
        if (next != Long.MAX_VALUE) {
            sweepAt(now + next);
        }
    }

    /**
     * Sets a timer with a delay of 0, which ends the overdue calls. If the event loop was held up, replies may have
     * arrived that it has not read. The loop reads these replies before it runs the new timer. It would run a plain
     * task before it reads them.
     *
     * @param seenNanos calls with deadlines up to this time are overdue
     * @param longestOver nanoseconds from the earliest deadline of these calls to {@code seenNanos}
     */
    private void endBehindSockets(long seenNanos, long longestOver) {
        loop().schedule(
                        () -> {
                            isEndDue = false;
                            try {
                                endOverdue(seenNanos, longestOver);
                            } catch (Throwable t) {
                                failInternally(t);
                            }
                        },
                        0,
                        TimeUnit.NANOSECONDS);
        isEndDue = true;
    }

    private void endOverdue(long seenNanos, long longestOver) {
        if (isClosed()) {
            return;
        }
        if (!readTurn.takeForLoop()) {
            sweepAt(nanoTime() + MIN_SWEEP_WAIT_NANOS);
            return;
        }
        sendTogether(() -> expire(seenNanos, longestOver));
    }

    private void expire(long seenNanos, long longestOver) {
        for (int slot = 0, top = slots.createdCount(); slot < top; slot++) {
            ClientCall call = slots.at(slot);
            if (call == null || !call.isWaiting() || call.deadlineNanos - seenNanos > 0) {
                continue;
            }
            if (isHeldUp(longestOver, call.givenNanos)) {
                call.expireUnheard(peer, longestOver);
            } else {
                call.expire(peer);
            }
        }
    }

    /**
     * Returns whether the event loop counts as held up, because it has checked deadlines too late.
     *
     * @param lateNanos time from a call's deadline to the check. On the native wire, one check can find several overdue
     *     calls, and this is the longest such time among them.
     * @param givenNanos time that the call had left when its request was written
     */
    static boolean isHeldUp(long lateNanos, long givenNanos) {
        return lateNanos > Math.max(MIN_HELD_UP_NANOS, givenNanos / HELD_UP_DIVISOR);
    }

    /**
     * Makes the event loop release the slots that their callers could not release, because the callers' stacks or
     * memory were exhausted. Thread-safe.
     */
    public void lookForOrphans() {
        inLoopOrHere(lookForOrphans);
    }

    private void freeOrphans() {
        sendQueued();
        if (!isClosed() && !readTurn.takeForLoop()) {
            // No slot may be released while a caller is reading the socket. The event loop searches for slots to
            // release again when a caller finds no free slot, or at the next check of the deadlines.
            return;
        }
        slots.freeOrphans();
    }

    /**
     * Called when a caller has given up a call before the server has ended it. Schedules checks that detect a server
     * which does not end such calls.
     *
     * <p>A server sends the final frame of a call as soon as it has read the call's CANCEL frame. So the final frame
     * has to come before the answer to a PING that is sent after CANCEL. If the final frame is still missing one
     * keep-alive time after that answer, the server is broken. The connection then takes no new calls, and ends when no
     * caller waits for a call on it any more.
     */
    void onGivenUp() {
        if (owedTimer == null && !isClosed()) {
            lookAtOwedLater();
        }
    }

    private void lookAtOwedLater() {
        owedTimer = loop().schedule(this::lookAtOwed, keepAliveNanos / OWED_LOOKS, TimeUnit.NANOSECONDS);
    }

    private void lookAtOwed() {
        owedTimer = null;
        if (isClosed() || readTurn.isLent()) {
            // The event loop lends the socket to callers only when no call is in flight. A call that was given up stays
            // in flight until the server ends it, so the server has ended all such calls.
            return;
        }
        long now = nanoTime();
        Question last = question;
        boolean isOwed = false;
        boolean isAskedFor = false;
        boolean isWaiting = false;
        long longest = 0;
        for (int slot = 0, top = slots.createdCount(); slot < top; slot++) {
            ClientCall call = slots.at(slot);
            if (call != null && call.isOwed()) {
                isOwed = true;
                isAskedFor |= last != null && call.givenUpNanos() - last.askedNanos < 0;
                longest = Math.max(longest, now - call.givenUpNanos());
            } else if (call != null && call.isWaiting()) {
                isWaiting = true;
            }
        }
        if (!isOwed) {
            return;
        }
        lookAtOwedLater();
        Question asked = isAskedFor ? last : null;
        boolean isBroken = longest > MAX_OWED_KEEPALIVES * keepAliveNanos
                || (asked != null && asked.isAnswered && now - asked.answeredNanos > keepAliveNanos);
        if (!isBroken) {
            if (asked == null) {
                // Only one PING at a time is sent for all calls, since a server ends a connection that sends many
                // PINGs.
                question = new Question(ping(), now);
            }
        } else if (!draining) {
            onGoAway();
        } else if (!isWaiting) {
            // GOAWAY was sent before this run of the method, so the loop above has also seen the calls that began just
            // before GOAWAY. The loop has found no call for which a caller still waits, so the connection can end.
            close("the server has not ended a call that was given up " + TimeUnit.NANOSECONDS.toMillis(longest)
                    + " ms ago");
        }
    }

    private void onPong(int number) {
        Question asked = question;
        if (asked != null && !asked.isAnswered && answers(number, asked.ping)) {
            asked.isAnswered = true;
            asked.answeredNanos = nanoTime();
        }
    }

    @Override
    public void beforeClose() {
        readTurn.endToLoop();
    }

    /**
     * Ends everything that belongs to the connection. Each step runs even if an earlier step fails, for example for
     * lack of memory. Each step is a method of its own, since javac would copy nested finally blocks many times.
     */
    @Override
    public void onClosed(String why) {
        closedWhy = why;
        try {
            stopTimers();
            published.completeExceptionally(new IllegalStateException(why));
        } finally {
            endConnectAndCalls(why);
        }
    }

    private void endConnectAndCalls(String why) {
        try {
            // The loss of the connection is recorded before the calls end, since a call that ends may ask for a new
            // connection, on its caller's thread or on this one.
            Throwable failure = memoryWanted() == null
                    ? new IllegalStateException(why)
                    : LocalFailure.noRoom(why, RPCXException.Executed.NOT_EXECUTED);
            if (!connecting.completeExceptionally(failure) && !draining) {
                address.lost(this);
            }
        } finally {
            endCallsAndSlots();
        }
    }

    private void endCallsAndSlots() {
        try {
            endCalls();
        } finally {
            endSlotsAndForget();
        }
    }

    private void endSlotsAndForget() {
        try {
            endSlots();
        } finally {
            forgetAll();
        }
    }

    private void forgetAll() {
        dictionary.clear();
        entryBytes.release();
        SchemaCheck open = check;
        if (open != null) {
            check = null;
            open.close();
        }
        address.forget(this);
    }

    private void stopTimers() {
        keepAlive.stop();
        if (sweepTimer != null) {
            sweepTimer.cancel(false);
        }
        if (owedTimer != null) {
            owedTimer.cancel(false);
        }
        if (idleTimer != null) {
            idleTimer.cancel(false);
        }
    }

    /**
     * Ends all calls in flight, even if the end of one of them fails. The calls share three errors, which have no stack
     * traces and are created before the first call ends: there may be thousands of calls and little memory.
     */
    private void endCalls() {
        RPCXException notSent = notSentError();
        RPCXException lost = lostError(RPCXException.Executed.MAYBE);
        RPCXException unsent = lostError(RPCXException.Executed.NOT_EXECUTED);
        for (int slot = 0, top = slots.createdCount(); slot < top; slot++) {
            ClientCall call = slots.at(slot);
            try {
                if (call != null && call.isOnWire(call.id)) {
                    boolean isSent = call.executed() != RPCXException.Executed.NOT_EXECUTED;
                    call.complete(!call.isFirstFragmentWritten ? notSent : isSent ? lost : unsent, true);
                }
            } catch (Throwable e) {
                ThreadTools.report(e);
            }
        }
    }

    private void endSlots() {
        if (!slots.freeOrphans()) {
            // Some slots could not be released, because their calls may still be queued for sending. A task of the
            // event loop searches the slots again, after the queued messages have been dropped.
            lookForOrphans();
        }
        slots.trim();
    }
}
