package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.call.MethodShape;
import dev.rpcx.internal.io.ReadTurn;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.KeepAlive;
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
 * One connection of a client to a server on the native wire. It has the slots of the calls in flight, the numbers by
 * which the server knows its methods, and one timer for the deadlines of all calls. It also decides which thread sends
 * a call.
 */
public final class ClientConnection extends WireConnection implements ReadTurn.Connection {
    /**
     * Maximum time that a thread normally takes from the beginning of a call until it writes the request. If a call
     * with the default time has taken longer, its request says in the field TIME how much is left.
     */
    private static final long TIME_TOLERANCE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private static final int UNKNOWN = 0;

    /**
     * Takes the place of a method number in {@link #numbers} if the server does not publish the method. The call is
     * then sent with the method's name, and the server refuses it.
     */
    private static final int NOT_PUBLISHED = -1;

    /**
     * Takes the place of a method number in {@link #numbers} if the server's method has another {@link MethodShape}. A
     * call then fails before it is sent, since the two sides could not read each other's messages.
     */
    private static final int OTHER_SHAPE = -2;

    /**
     * If a call's deadline is checked late by more than the call's time divided by this number, the event loop was held
     * up, and may not have seen the reply. The call then ends with the reason UNHEARD, which says nothing about the
     * server. The number is 10 since {@link AnswerTimes} takes nine tenths of a method's timeout as enough for an
     * answer.
     */
    private static final int HELD_UP_DIVISOR = 10;

    /**
     * The event loop does not count as held up if it checks a deadline late by this time or less. This holds even for
     * calls with very little time.
     */
    private static final long MIN_HELD_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    /**
     * Minimum time until the next check of the deadlines. One check then finds all calls whose deadlines are this close
     * together.
     */
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /**
     * With this number of calls in flight or more, the event loop sends the next call, and not the call's own thread.
     * The loop can send several calls in one write, which saves more than waking the loop costs.
     */
    private static final int QUIET_CALLS = 1;

    /**
     * Number of calls in flight with which a connection is crowded, so that the client makes another one if it may. It
     * is a quarter of the slots. A second connection pays with far fewer calls, and calls are refused only with far
     * more.
     */
    private static final int CROWDED = Wire.MAX_SLOTS / 4;

    /**
     * Time after which the large buffers that free slots keep are given back, if no large message has come. It may take
     * twice as long.
     */
    private static final long TRIM_NANOS = TimeUnit.SECONDS.toNanos(2);

    /**
     * Time between two checks whether an extra connection is still needed. If it had no call in this time, it is
     * closed.
     */
    private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Number of checks in one keep-alive time whether the server has ended the calls that their callers gave up. */
    private static final int OWED_LOOKS = 3;

    /**
     * Number of keep-alive times that a server has to end a call after its caller gave it up. If the call's final
     * frame, the last one that the server sends for it, has not come by then, the connection counts as broken, however
     * slow the network may be.
     */
    private static final int OWED_TIMES = 6;

    private static final String NO_MEMORY = "the connection has ended, and no memory is left to say why";

    /**
     * Error of a call of which no byte has been sent. Used if there is no memory for an error with the actual reason.
     */
    private static final RPCXException NOT_SENT = LocalFailure.notSent(RPCXException.Code.UNAVAILABLE, NO_MEMORY);

    /** Error of a call that may have been executed. Used if there is no memory for an error with the actual reason. */
    private static final RPCXException LOST = LocalFailure.noRoom(NO_MEMORY, RPCXException.Executed.MAYBE);

    /**
     * Error of a call of which only some bytes have been sent. Used if there is no memory for an error with the actual
     * reason.
     */
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
     * Future of this connection, for which calls wait. It completes when the server has sent the complete list of its
     * methods, called its dictionary. Before that, it is not known whether the server takes calls, and for which
     * methods.
     */
    private final CompletableFuture<ClientConnection> connecting;

    private final Runnable sweep = this::sweep;
    private final Runnable lookForOrphans = this::freeOrphans;

    /** Memory in bytes of one entry of {@link #dictionary}, without the characters of the method's name. */
    private static final int ENTRY_BYTES = 128;

    /**
     * Methods that the server publishes, by the names of their service and method. The server sends the list before the
     * first call. All methods of the list that this client's proxies have are in the map, and as many others as there
     * is room for. A method that is not in it is called by its name.
     */
    private final Map<String, Entry> dictionary = new ConcurrentHashMap<>();

    /** Memory in bytes that is charged for those entries of {@link #dictionary} that no proxy had when they came. */
    private final Charge entryBytes;

    /** Number of methods that the server has listed, counted up to {@code Wire.MAX_DICTIONARY}. Event loop only. */
    private int entries;

    /** Whether {@link #dictionary} lacks some of the server's methods, because there was no room for them. */
    private boolean isDictionaryCut;

    private record Entry(int number, int shape) {}

    /**
     * Time at which the server's list of methods was complete, so that the connection could take calls. Event loop
     * only.
     */
    private long beginNanos;

    /** Whether the server has sent its SETTINGS frame. Event loop only. */
    private boolean settled;

    private volatile boolean dictionaryComplete;

    /** Completes when the server's list of methods is complete. Fails if the connection ends before that. */
    private final CompletableFuture<@Nullable Void> published = new CompletableFuture<>();

    /**
     * Names of the methods that the server publishes; null until they are first asked for. Guarded by
     * {@link #published}.
     */
    private @Nullable List<String> publishedNames;

    /**
     * The server's numbers of methods, by {@link ClientMethod#index}. 0 means that the number has not been looked up.
     * Threads read this without a lock, but write it only under the lock of {@link #dictionary}.
     */
    private volatile int[] numbers = new int[8];

    private volatile int maxRequestBytes = Wire.MAX_MESSAGE_BYTES;

    /** Whether the connection takes no new calls and only finishes those in flight. */
    private volatile boolean draining;

    private volatile @Nullable String closedWhy;

    /** Whether this client has decided to end the connection. Its end is then no failure of the server. */
    volatile boolean isDropped;

    /**
     * Whether this is an extra connection. It was made because the others were crowded, and is closed when it has had
     * no calls for a while.
     */
    public final boolean isExtra;

    /**
     * Whether this connection is about to close because it has had no calls. A caller takes a slot first, and then
     * reads this field. If it is set and another connection of the instance is ready, the caller gives the slot back
     * and uses that one. So once this is set and no slot is taken, no more calls begin here, as long as another
     * connection is ready.
     */
    public volatile boolean isParting;

    /**
     * Value of {@link CallSlots#changes} at the last check whether this connection is needed. If it has not changed at
     * the next check, no slot has been released or reused. Event loop only.
     */
    private long idleSince;

    /**
     * Timer of the next check whether this extra connection is still needed. It is first set when the connection begins
     * to take calls. Event loop only.
     */
    private @Nullable ScheduledFuture<?> idleTimer;

    /**
     * Number of calls that the event loop has sent and that the server has not ended yet. Only the event loop writes
     * it; any thread may read it, by {@link #load}.
     */
    private int inFlight;

    /** Number of calls that their callers' own threads have sent, and that the server has not ended yet. */
    private volatile int inFlightByCallers;

    /**
     * Number of consecutive replies that came while only one call was in flight. After some of these, the event loop
     * lends the socket to callers, by {@link ReadTurn}. Event loop only.
     */
    private int loneReplies;

    /**
     * Whether a free slot has kept a large buffer since the last check of these buffers. Written only if it changes,
     * since all callers' processors have this object in their caches.
     */
    private boolean hasKept;

    /** Whether a check is scheduled that gives back the large buffers of free slots. */
    private volatile boolean trims;

    private volatile long nextSweepNanos = Long.MAX_VALUE;
    private @Nullable ScheduledFuture<?> sweepTimer;

    /** Whether a timer is set that will end the calls which a check has found overdue. Event loop only. */
    private boolean isEndDue;

    /** Timer of the next check whether the server has ended the calls that their callers gave up. Event loop only. */
    private @Nullable ScheduledFuture<?> owedTimer;

    /**
     * The latest PING that checks whether the server ends calls that were given up; null if there was none. Event loop
     * only.
     */
    private @Nullable Question question;

    /**
     * A PING that checks whether the server ends calls whose callers gave them up. It is sent after the CANCEL frames
     * of these calls. So the server should have ended them before it answers the PING.
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
     * Whether {@link #askForSign} has ever sent a PING. The field {@code askedNanos} is the time of the latest one.
     * Event loop only.
     */
    private boolean isAsked;

    private long askedNanos;

    /**
     * Creates the connection that uses a channel.
     *
     * @param isExtra whether the connection is closed when it has had no calls for a while
     * @param defaultNanos time of a call whose request does not say how much is left; a whole number of microseconds
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
        return !draining && closedWhy == null;
    }

    @Override
    public int load() {
        return (int) IN_FLIGHT.getOpaque(this) + inFlightByCallers;
    }

    /** Whether all slots that the server allows are taken. This includes calls that are queued but not sent yet. */
    public boolean isFull() {
        return slots.isFull();
    }

    /**
     * Returns how many more calls this connection can take; at least 1. Calls that are queued but not sent yet are not
     * considered. Call it only for a connection that is not full.
     */
    int room() {
        return Math.max(1, slots.limit() - load());
    }

    /**
     * Whether the connection has so many calls that the client should make another one. If the server allows only few
     * calls, three quarters of these are enough; otherwise a quarter of all slots.
     */
    public boolean isCrowded() {
        return load() >= Math.max(1, Math.min(CROWDED, slots.limit() * 3 / 4)) || isFull();
    }

    public ClientAddress address() {
        return address;
    }

    /**
     * Whether a request has to carry the field TIME, which says how much time the call has left. Without it, the server
     * gives the call the default time.
     */
    public boolean carriesTime(long leftNanos) {
        return leftNanos > defaultNanos || defaultNanos - leftNanos > TIME_TOLERANCE_NANOS;
    }

    @Override
    public int maxBytesTaken() {
        return maxRequestBytes;
    }

    /**
     * Returns the server's number for the method; 0 if the method has to be called by its name.
     *
     * @throws RPCXException {@link RPCXException.Code#INVALID} if the server's method has another shape, so that the
     *     two sides could not read each other's messages
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
        String difference = found == null ? null : method.difference(found.shape);
        int number = found == null ? NOT_PUBLISHED : difference == null ? found.number : OTHER_SHAPE;
        synchronized (dictionary) {
            int[] known = numbers;
            if (method.index >= known.length) {
                known = Arrays.copyOf(known, method.index * 2);
            }
            known[method.index] = number;
            numbers = known;
        }
        if (difference != null) {
            throw LocalFailure.unfit(
                    RPCXException.Code.INVALID,
                    method + " at " + peer + " has another shape: " + difference
                            + " (expected: the same on both sides, but for what only one of them has)");
        }
        return Math.max(number, 0);
    }

    /**
     * Sends a call. The calling thread itself writes the request if no call is in flight and no other thread writes.
     * Otherwise the event loop writes it.
     */
    void sendCall(ClientCall call) {
        long deadlineNanos = call.deadlineNanos;
        boolean mayRead = call.mayRead;
        if (load() >= QUIET_CALLS || inLoop() || !sendHere(call)) {
            send(call);
            return;
        }
        if (!mayRead) {
            readTurn.leaveToLoop();
        }
        // The deadline was read before the call was sent, since its slot may have another call by now.
        long next = nextSweepNanos;
        if (next == Long.MAX_VALUE || deadlineNanos - next < 0) {
            inLoopOrHere(sweep);
        }
    }

    /**
     * Counts a call in flight that the caller's own thread is about to send.
     *
     * @return false if the connection takes no more calls, so that the call must not be sent
     */
    public boolean enter() {
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, 1);
        // Checked after the count has been raised: either this thread sees that the connection is draining, or the
        // thread that drains it sees the count.
        if (!isDrainingOrClosed()) {
            return true;
        }
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, -1);
        inLoopOrHere(this::closeIfDrained);
        return false;
    }

    /**
     * Sends a CREDIT frame, which allows the server to send more items of a stream. It never overtakes the call's
     * request.
     *
     * @param serial {@link ClientCall#serial} of the call, since the slot may have another call when the frame is sent
     * @param unsent number of items that have not been allowed to the server yet; the frame takes all of it when it is
     *     sent
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
             * Writes into the frame how many items the server may send. If the frame has waited behind the call's
             * request, this runs only when the frame is sent. So the frame includes what has been allowed meanwhile.
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
     * Whether the large requests on this connection hold very much memory. Those that have been sent should then give
     * up their buffers, to make room for others.
     */
    boolean keepsMuch() {
        return account.holdsMuch(Resource.REQUEST_BYTES);
    }

    /**
     * Called when a free slot keeps a large buffer for its next call. Schedules a check that gives the buffer back
     * later.
     */
    void onKept() {
        if (!hasKept) {
            hasKept = true;
        }
        if (isClosed()) {
            // The end of the connection may have trimmed the slots before this slot was free.
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
                // Also runs if the stack was exhausted. The next slot that keeps a buffer schedules the check.
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
        // Stored before the slots are trimmed, so that a buffer that is kept from here on causes another check.
        trims = false;
        slots.trim();
    }

    /**
     * Returns the error of a call that cannot go on, after the server may have seen a part of it. If the connection
     * ended because this side had no memory, the error says so.
     */
    public RPCXException lostError(RPCXException.Executed executed) {
        try {
            return memoryWanted() == null
                    ? new RPCXException(RPCXException.Code.UNAVAILABLE, whyLost(), executed, null)
                    : LocalFailure.noRoom(whyLost(), executed);
        } catch (Throwable noMemory) {
            return executed == RPCXException.Executed.NOT_EXECUTED ? LOST_UNSENT : LOST;
        }
    }

    /**
     * Returns the error of a call that cannot go on before any byte of it has been sent. The call may go to another
     * connection.
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
     * Whether a message of a call has to wait, because the call's request comes first. It has to if the message is
     * credit or a part of the stream that the call sends, and no byte of the request has been sent.
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
        sendNow(new Outbound.Control(Wire.SETTINGS, 0, settings));
    }

    @Override
    public void onPreface(int version) {
        keepAlive.start();
    }

    @Override
    public void beforeRead() {
        // A caller's thread may have sent the call whose reply is read now. The memory model gives no order by way of
        // the network, so a fence is needed.
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
            case Wire.GOAWAY -> onGoAway();
            case Wire.PING -> answerPing(id);
            case Wire.PONG -> onPong(id);
            default -> {
                // The frame is ignored: its type is of a later version, or has no meaning for a client.
            }
        }
    }

    /**
     * Returns the reason that the server gives for ending the connection. If the reason cannot be read, the server is
     * not told so, since the connection ends in any case.
     */
    private static String reason(ByteBuf payload) {
        try {
            return String.valueOf(WireError.read(payload).getMessage());
        } catch (WireFault unreadable) {
            return "its reason cannot be read";
        }
    }

    /**
     * Handles a frame that belongs to one call. If that fails, only this call ends. If the frame breaks the rules of
     * the wire, the whole connection ends.
     */
    private void onCallFrame(int head, int id, ByteBuf payload) {
        ClientCall call = slots.at(id & Wire.SLOT_MASK);
        if (call == null || !call.isOnWire(id)) {
            return;
        }
        boolean more = (head & Wire.MORE) != 0;
        try {
            switch (head & Wire.TYPE_MASK) {
                case Wire.REPLY -> call.onReply(payload, more);
                case Wire.PART -> call.onPart(payload, more, Wire.MAX_MESSAGE_BYTES);
                case Wire.ITEM -> call.onItem(payload, more);
                case Wire.CREDIT -> call.onCredit(payload);
                default -> call.onError(WireError.read(payload));
            }
        } catch (WireFault brokenWire) {
            throw brokenWire;
        } catch (Throwable e) {
            if (call.isOnWire(id)) {
                call.onFailure(head & Wire.TYPE_MASK, more, e);
            } else {
                // the call has ended, and its slot may have another call
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
        if (dictionaryComplete) {
            throw new WireFault("the dictionary twice (expected: once)");
        }
        MethodDictionary.read(payload, this::onEntry);
        if (!more) {
            dictionaryComplete = true;
            beginNanos = nanoTime();
            if (!draining) {
                // If the connection is draining, it is about to close, and the close fails the attempt with its reason.
                connecting.complete(this);
            }
            published.complete(null);
            if (isExtra && !isDrainingOrClosed()) {
                lookWhetherIdleLater();
            }
        }
    }

    private void lookWhetherIdleLater() {
        idleSince = slots.changes();
        idleTimer = loop().schedule(this::partIfIdle, IDLE_NANOS, TimeUnit.NANOSECONDS);
    }

    /**
     * Closes this extra connection if it is not needed. That is so if it has had no calls since the last check, no slot
     * is taken, and another connection of the instance is not crowded. Sets {@link #isParting} before it checks the
     * slots, so that no call begins meanwhile. Event loop only.
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

    private void onEntry(String name, int number, int shape) {
        if (entries < Wire.MAX_DICTIONARY) {
            entries++;
        } else if (!address.calls(name)) {
            return;
        }
        if (dictionary.containsKey(name)
                || address.calls(name)
                || entryBytes.add(ENTRY_BYTES + (long) Character.BYTES * name.length())) {
            dictionary.put(name, new Entry(number, shape));
        } else {
            isDictionaryCut = true;
        }
    }

    /**
     * Returns the names of the methods that the server publishes. It is the same list object each time, so a tool can
     * tell connections apart by it.
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
     * Returns the names of the methods that the server publishes, each as {@code service/method}. The future completes
     * when the server has sent them all. It fails if the connection ends, or if there was no room for all of them.
     */
    public CompletableFuture<List<String>> published() {
        return published.thenApply(said -> {
            List<String> names = names();
            // Checked after the names have been created, since the end of the connection empties the dictionary.
            if (isDictionaryCut || isClosed()) {
                throw new IllegalStateException("no room for what the server publishes, or the connection is over");
            }
            return names;
        });
    }

    /**
     * Stops taking new calls, because the server or this side wants to end the connection. Tells the server by GOAWAY.
     * Calls of which no byte has been sent end here, and may go to another connection; the others go on.
     */
    private void onGoAway() {
        if (!draining) {
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

    /**
     * Stops taking new calls. The connection ends when its calls in flight have ended. Thread-safe: any thread may call
     * this.
     */
    public void retire() {
        loop().execute(this::onGoAway);
    }

    /**
     * Ends a connection that takes no new calls any more, and also its calls in flight. Thread-safe: any thread may
     * call this.
     */
    void endDraining() {
        loop().execute(() -> close("too many connections to this server still have calls in flight"));
    }

    /**
     * Whether the server has sent the complete list of its methods. From then on the connection takes calls. Event loop
     * only.
     */
    public boolean hasBegun() {
        return dictionaryComplete;
    }

    /**
     * Returns how long ago the connection began to take calls. Call it only if {@link #hasBegun} is true. Event loop
     * only.
     */
    long upNanos() {
        return nanoTime() - beginNanos;
    }

    public boolean isDrainingOrClosed() {
        return draining || isClosed();
    }

    /**
     * Called when a call has ended whose own thread has both sent the request and read the reply. Counts it as no
     * longer in flight.
     */
    public void onOwnFinal() {
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, -1);
        if (isDrainingOrClosed()) {
            inLoopOrHere(this::closeIfDrained);
        }
    }

    /** Counts a small reply that the caller's own thread could have read. */
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
            loop().execute(() ->
                    close(isParting ? "the client does not need the connection any more" : "the server is closing"));
        }
    }

    /**
     * Sends a PING, because a stream has to know whether the server is still there. There is at most one such PING in
     * {@code CircuitBreaker.PAUSE_NANOS} for all streams, since a server ends a connection that sends many. Event loop
     * only.
     */
    public void askForSign() {
        long now = nanoTime();
        if (!isAsked || now - askedNanos >= CircuitBreaker.PAUSE_NANOS) {
            isAsked = true;
            askedNanos = now;
            ping();
        }
    }

    /** Counts a call that the event loop is about to send, and has its deadline checked in time. */
    void watch(long deadlineNanos) {
        inFlight++;
        readTurn.takeForLoop();
        sweepAt(deadlineNanos);
    }

    /**
     * Schedules the next check of the deadlines, unless an earlier one is scheduled. If this throws, the check that was
     * scheduled before still runs.
     *
     * @param nanos time of the check
     */
    private void sweepAt(long nanos) {
        if (nextSweepNanos != Long.MAX_VALUE && nanos - nextSweepNanos >= 0) {
            return;
        }
        long wait = Math.max(TICK_NANOS, nanos - nanoTime());
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
            // without a next check, the calls of this connection might never end
            failInternally(t);
        }
    }

    /**
     * Finds the calls whose deadlines have passed, and schedules the next check. It looks at all slots in use, so that
     * a call does not need a timer of its own.
     */
    private void sweepNow() {
        sendQueued();
        if (sweepTimer != null) {
            sweepTimer.cancel(false);
            sweepTimer = null;
        }
        // Stored before the slots are checked. If a thread sends a call now, either that thread sees this value and
        // schedules another check, or this check sees its call.
        nextSweepNanos = Long.MAX_VALUE;
        if (isClosed()) {
            return;
        }
        if (!readTurn.takeForLoop()) {
            // a caller has the socket, and is about to read how its call ends
            sweepAt(nanoTime() + TICK_NANOS);
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
            // The timer that is set ends only the calls of an earlier check. The calls that this check has found need
            // another.
            next = Math.min(next, TICK_NANOS);
        }
        if (next != Long.MAX_VALUE) {
            sweepAt(now + next);
        }
    }

    /**
     * Ends overdue calls after the event loop has read what is in its sockets. A loop that was held up runs its timers
     * before it reads, and the replies may have arrived already. A new timer without delay runs after that reading. A
     * task would run before it.
     *
     * @param seenNanos calls with deadlines up to this time are overdue
     * @param longestOver the longest time by which the check of one of these deadlines came too late
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
            sweepAt(nanoTime() + TICK_NANOS);
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
                call.expireUnheard(peer + ": no reply in time, while the event loop was held up for "
                        + TimeUnit.NANOSECONDS.toMillis(longestOver) + " ms or more");
            } else {
                call.expire(peer + ": no reply in time");
            }
        }
    }

    /**
     * Whether the event loop counts as held up, because it has checked a call's deadline this late.
     *
     * @param lateNanos time by which the check came after the deadline
     * @param givenNanos remaining time of the call when its request was written
     */
    static boolean isHeldUp(long lateNanos, long givenNanos) {
        return lateNanos > Math.max(MIN_HELD_UP_NANOS, givenNanos / HELD_UP_DIVISOR);
    }

    /**
     * Has the event loop release the slots that their callers could not release, because their stacks or memory were
     * exhausted. Thread-safe: any thread may call this.
     */
    public void lookForOrphans() {
        inLoopOrHere(lookForOrphans);
    }

    private void freeOrphans() {
        sendQueued();
        if (!isClosed() && !readTurn.takeForLoop()) {
            // A caller has the socket. The next caller that finds no slot, or the next check of the deadlines, tries
            // again.
            return;
        }
        slots.freeOrphans();
    }

    /**
     * Called when a caller has given up a call before the server has ended it. Starts the checks that find a server
     * which does not end such calls.
     *
     * <p>A server sends the final frame of a call as soon as it has read the CANCEL frame. So that frame has to come
     * before the answer to a PING that is sent after the CANCEL. If it has not come one keep-alive time after that
     * answer, the server is broken. New calls then go elsewhere, and this connection ends with the last call for which
     * a caller waits.
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
            // While the socket is lent, no final frame of a given-up call is missing.
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
        boolean isBroken = longest > OWED_TIMES * keepAliveNanos
                || (asked != null && asked.isAnswered && now - asked.answeredNanos > keepAliveNanos);
        if (!isBroken) {
            if (asked == null) {
                // one PING at a time for all calls: a server ends a connection that sends many PINGs
                question = new Question(ping(), now);
            }
        } else if (!draining) {
            onGoAway();
        } else if (!isWaiting) {
            // GOAWAY was sent in an earlier run. A caller may have sent a call just before GOAWAY, but this run has
            // looked at that call too. So no caller waits for a call on this connection.
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
     * Ends all that belongs to the connection. Each step runs even if the ones before fail, for example for lack of
     * memory. Each step is a method of its own, since javac copies a finally block for each way into it.
     */
    @Override
    public void onClosed(String why) {
        closedWhy = why;
        try {
            stopTimers();
            published.completeExceptionally(new IllegalStateException(why));
        } finally {
            endAttemptAndCalls(why);
        }
    }

    private void endAttemptAndCalls(String why) {
        try {
            // The loss is recorded before the calls end, since a call that ends may connect again.
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
     * Ends all calls in flight. If one cannot be ended, the others are ended in any case. The errors are created before
     * the first call ends, without stack traces, and shared: memory may be short, and there may be thousands of calls.
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
            // the slots are looked at once more, when the queued messages have been dropped
            lookForOrphans();
        }
        slots.trim();
    }
}
