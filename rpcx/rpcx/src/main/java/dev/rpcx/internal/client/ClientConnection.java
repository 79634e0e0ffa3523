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
 * A client's connection: the slots of its calls, the server's method numbers, and one timer for the deadlines of all
 * calls.
 */
public final class ClientConnection extends WireConnection implements ReadTurn.Connection {
    /**
     * Time that a caller's thread normally takes at most, from the beginning of a call until it writes the request. If
     * more time has passed, the request carries the field TIME.
     */
    private static final long TIME_TOLERANCE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private static final int UNKNOWN = 0;

    /**
     * Used instead of a method number if the server does not publish the method. The call is sent by name, and the
     * server refuses it.
     */
    private static final int NOT_PUBLISHED = -1;

    /**
     * Used instead of a method number if the server's method has another {@link MethodShape}: neither side could read
     * the other's messages.
     */
    private static final int OTHER_SHAPE = -2;

    /**
     * If a call's deadline is checked late by more than the call's time divided by this number, the call ends with the
     * reason UNHEARD: the event loop was held up. The number is 10 because {@link AnswerTimes} takes nine tenths of a
     * method's time as enough for an answer.
     */
    private static final int HELD_UP_DIVISOR = 10;

    /**
     * If a deadline is checked late by less than this time, the event loop does not count as held up, however short the
     * call's time is.
     */
    private static final long MIN_HELD_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    /**
     * Minimum delay of a check of the deadlines, so that one check finds all deadlines that are this close together.
     */
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /**
     * If this number of calls or more are in flight, the event loop sends the next call instead of its caller: one
     * write for several calls then saves more than waking the event loop costs.
     */
    private static final int QUIET_CALLS = 1;

    /**
     * A connection with this number of calls in flight is crowded. It is a quarter of the slots: far more than the
     * number at which a second connection pays, and far fewer than the number at which calls are refused.
     */
    private static final int CROWDED = Wire.MAX_SLOTS / 4;

    /** Time without large messages after which large buffers are given back. It may take up to twice as long. */
    private static final long TRIM_NANOS = TimeUnit.SECONDS.toNanos(2);

    /** Time between two checks of an extra connection. The connection is closed if it has had no call between them. */
    private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Number of checks in one keep-alive time for given-up calls whose final frame has not come. */
    private static final int OWED_LOOKS = 3;

    /**
     * If the final frame of a call has not come this number of keep-alive times after the call was given up, the
     * connection counts as broken, however slow the network is.
     */
    private static final int OWED_TIMES = 6;

    private static final String NO_MEMORY = "the connection has ended, and no memory is left to say why";

    /** Error of a call of which no byte has been sent, if there is no memory to create a more precise error. */
    private static final RPCXException NOT_SENT = LocalFailure.notSent(RPCXException.Code.UNAVAILABLE, NO_MEMORY);

    /** Error of a call that may have been executed, if there is no memory to create a more precise error. */
    private static final RPCXException LOST = LocalFailure.noRoom(NO_MEMORY, RPCXException.Executed.MAYBE);

    /** Error of a call that has not been completely sent, if there is no memory to create a more precise error. */
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
     * Future for the calls that wait for this connection. Completes when the server's dictionary is complete. Until
     * then it is not known whether the server takes calls, and for which methods.
     */
    private final CompletableFuture<ClientConnection> connecting;

    private final Runnable sweep = this::sweep;
    private final Runnable lookForOrphans = this::freeOrphans;

    /** Memory in bytes of an entry of {@link #dictionary}, not counting its name. */
    private static final int ENTRY_BYTES = 128;

    /**
     * Methods that the server publishes, by service and method. Filled from the server's dictionary before the first
     * call. The map has the methods that the client's proxies call, and as many others as there is room for. A method
     * without an entry is called by name.
     */
    private final Map<String, Entry> dictionary = new ConcurrentHashMap<>();

    /** Charge for the entries of the methods that no proxy had when the dictionary came. */
    private final Charge entryBytes;

    /** Number of entries that have come, up to {@code Wire.MAX_DICTIONARY}. Event loop only. */
    private int entries;

    /** Whether entries have come for which there was no room. */
    private boolean isDictionaryCut;

    private record Entry(int number, int shape) {}

    /** Time at which the dictionary was complete. Event loop only. */
    private long beginNanos;

    /** Whether the server has sent its settings. Event loop only. */
    private boolean settled;

    private volatile boolean dictionaryComplete;

    /** Completes when the dictionary is complete. Fails if the connection ends before that. */
    private final CompletableFuture<@Nullable Void> published = new CompletableFuture<>();

    /** Names of the published methods, created when they are first asked for. Guarded by {@link #published}. */
    private @Nullable List<String> publishedNames;

    /**
     * The server's method numbers, by {@link ClientMethod#index}. Written under the lock of {@code dictionary}, and
     * read without a lock.
     */
    private volatile int[] numbers = new int[8];

    private volatile int maxRequestBytes = Wire.MAX_MESSAGE_BYTES;

    /** Whether the connection takes no new calls. Calls in flight are finished. */
    private volatile boolean draining;

    private volatile @Nullable String closedWhy;

    /** Whether this side has decided to end the connection, so that its end says nothing about the server. */
    volatile boolean isDropped;

    /** Whether this is an extra connection, which is closed when it is idle. */
    public final boolean isExtra;

    /**
     * Whether the connection is idle and about to close. A caller takes a slot first, and then reads this field. If the
     * field is set and another connection of the instance is ready, the caller gives the slot back and uses that one.
     * So if the field is set and no slot is taken, no call begins here while another connection is ready.
     */
    public volatile boolean isParting;

    /** Value of {@link CallSlots#changes} at the last check whether the connection is idle. Event loop only. */
    private long idleSince;

    /**
     * Timer of the next check whether the connection is idle. Set on an extra connection once it takes calls. Event
     * loop only.
     */
    private @Nullable ScheduledFuture<?> idleTimer;

    /**
     * Number of calls that the event loop has sent and whose final frame has not come. {@link #load} reads it from any
     * thread.
     */
    private int inFlight;

    /** Number of calls that their callers' threads have sent and whose final frame has not come. */
    private volatile int inFlightByCallers;

    /** Number of consecutive replies to a caller that is alone on the connection. Event loop only. */
    private int loneReplies;

    /**
     * Whether a slot has kept a large buffer since the last check of the kept buffers. Written only once between two
     * checks, since the processors of all callers have this object in their caches.
     */
    private boolean hasKept;

    /** Whether a check of the kept buffers is scheduled. */
    private volatile boolean trims;

    private volatile long nextSweepNanos = Long.MAX_VALUE;
    private @Nullable ScheduledFuture<?> sweepTimer;

    /** Whether a timer is set that ends calls whose time is over. Event loop only. */
    private boolean isEndDue;

    /** Timer of the next check for given-up calls whose final frame has not come. Event loop only. */
    private @Nullable ScheduledFuture<?> owedTimer;

    /** Latest question to the server; null if there has been none. Event loop only. */
    private @Nullable Question question;

    /** A PING that was sent after the CANCELs of all calls that were given up before it. */
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

    /** Whether {@link #askForSign} has sent a PING. The latest one was sent at {@code askedNanos}. Event loop only. */
    private boolean isAsked;

    private long askedNanos;

    /**
     * Creates the connection of a channel.
     *
     * @param isExtra whether the connection is closed again when it is not needed
     * @param defaultNanos time of calls whose requests carry no TIME; a whole number of microseconds
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

    /** Whether the server takes no more calls at present, counting calls that the event loop has not seen yet. */
    public boolean isFull() {
        return slots.isFull();
    }

    /**
     * Returns how many more calls the connection may take, as far as the event loop has seen; at least 1. Only for a
     * connection that is not full.
     */
    int room() {
        return Math.max(1, slots.limit() - load());
    }

    /**
     * Whether so many calls are in flight that another connection would help. If the server takes only few calls at the
     * same time, fewer are enough, but at least one.
     */
    public boolean isCrowded() {
        return load() >= Math.max(1, Math.min(CROWDED, slots.limit() * 3 / 4)) || isFull();
    }

    public ClientAddress address() {
        return address;
    }

    /**
     * Whether a request with this remaining time has to carry the field TIME. Without the field, the server assumes the
     * full default time.
     */
    public boolean carriesTime(long leftNanos) {
        return leftNanos > defaultNanos || defaultNanos - leftNanos > TIME_TOLERANCE_NANOS;
    }

    @Override
    public int maxBytesTaken() {
        return maxRequestBytes;
    }

    /**
     * Returns the server's number for the method; 0 if the method has to be called by name.
     *
     * @throws RPCXException {@link RPCXException.Code#INVALID} if the server's method has another shape
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
     * Sends a call. The caller's thread sends it if no call is in flight and the thread gets the turn to write;
     * otherwise the event loop does.
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
     * Counts a call that is sent by its caller's thread.
     *
     * @return false if the connection takes no more calls
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
     * Sends credit for more items. It is queued behind the call's request.
     *
     * @param unsent credit that has not been sent; the frame takes all of it when it is sent
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
             * Writes the credit into the frame. If the credit has to wait behind the request, this method runs only
             * when the credit is sent, so credit that is given meanwhile is sent in the same frame.
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
     * Whether the requests on this connection that are not small hold very many bytes. Requests that have been sent
     * then give up their buffers, since other requests need the room.
     */
    boolean keepsMuch() {
        return account.holdsMuch(Resource.REQUEST_BYTES);
    }

    /** Notes that a free slot keeps a large buffer. */
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
     * Returns the error of a call of which the server may have seen something. If this side had no memory for what came
     * on the connection, the error says so.
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

    /** Returns the error of a call of which no byte has been sent. Such a call may go to another connection. */
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
     * Whether the message would overtake the request of its call: it is credit or part of the stream that the call
     * sends, and sending of the request has not begun.
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
     * Returns the server's reason for ending the connection. This side does not answer, even if the reason cannot be
     * read.
     */
    private static String reason(ByteBuf payload) {
        try {
            return String.valueOf(WireError.read(payload).getMessage());
        } catch (WireFault unreadable) {
            return "its reason cannot be read";
        }
    }

    /** Handles a frame of one call. A failure ends only that call, unless the frame breaks the rules of the wire. */
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
     * Closes the connection if it has had no call since the last check, no slot is taken, and its address has another
     * connection that is not crowded. Sets {@link #isParting} before it looks for taken slots, so that no further
     * caller takes the connection. Event loop only.
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
     * Returns the names of the published methods. The list is always the same one for one connection, so that a tool
     * can tell connections apart by the identity of the list.
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
     * Returns the names of the methods that the server publishes, as {@code service/method}. The future completes when
     * the server's dictionary is complete. It fails if there was no room for the whole dictionary, or if the connection
     * has ended.
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
     * Begins to drain the connection, since the server or this side wants to end it. Sends GOAWAY, so that the server
     * knows that no new calls will come.
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
     * Begins to drain the connection: it takes no new calls, and ends when the calls in flight have ended. Thread-safe:
     * any thread may call this.
     */
    public void retire() {
        loop().execute(this::onGoAway);
    }

    /** Ends a draining connection together with its calls in flight. Thread-safe: any thread may call this. */
    void endDraining() {
        loop().execute(() -> close("too many connections to this server still have calls in flight"));
    }

    /** Whether the dictionary is complete. From then on the connection takes calls. Event loop only. */
    public boolean hasBegun() {
        return dictionaryComplete;
    }

    /** Returns the time for which the connection has taken calls. Only after {@link #hasBegun}. Event loop only. */
    long upNanos() {
        return nanoTime() - beginNanos;
    }

    public boolean isDrainingOrClosed() {
        return draining || isClosed();
    }

    /** Counts the final frame of a call that its caller's thread has sent, and whose reply that thread has read. */
    public void onOwnFinal() {
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, -1);
        if (isDrainingOrClosed()) {
            inLoopOrHere(this::closeIfDrained);
        }
    }

    /** Counts a small reply to a caller that could have read the reply itself. */
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
     * Sends a PING, for streams that need to know whether the server is there. Sends at most one in
     * {@code CircuitBreaker.PAUSE_NANOS} for all streams, since a server ends a connection that sends many PINGs. Event
     * loop only.
     */
    public void askForSign() {
        long now = nanoTime();
        if (!isAsked || now - askedNanos >= CircuitBreaker.PAUSE_NANOS) {
            isAsked = true;
            askedNanos = now;
            ping();
        }
    }

    /** Counts a call that is being sent, and makes sure that its deadline is watched. */
    void watch(long deadlineNanos) {
        inFlight++;
        readTurn.takeForLoop();
        sweepAt(deadlineNanos);
    }

    /**
     * Schedules a check of the deadlines for this time, unless an earlier check is scheduled. If this method throws,
     * the former check stays scheduled.
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
     * Finds the calls whose time is over. Checks all slots in use at the earliest deadline, so that calls need no
     * timers.
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
     * Ends the calls whose time was over at {@code seenNanos}, unless their replies are in the socket already. A loop
     * that was held up runs its timers before it reads. So the calls are ended by a timer without delay, which runs
     * after the next read. A task would run before that read.
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
     * Whether the event loop counts as held up because it has checked a call's deadline this late.
     *
     * @param givenNanos remaining time of the call when its request was written
     */
    static boolean isHeldUp(long lateNanos, long givenNanos) {
        return lateNanos > Math.max(MIN_HELD_UP_NANOS, givenNanos / HELD_UP_DIVISOR);
    }

    /** Lets the event loop give back the slots whose callers could not. Thread-safe: any thread may call this. */
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
     * Called when a call has ended for its caller before its final frame has come. Starts the checks that find a server
     * which does not send that frame.
     *
     * <p>A server sends the final frame as soon as it has read the CANCEL, so the final frame comes before the PONG for
     * a PING that is sent behind the CANCEL. A server that has not sent the final frame one keep-alive time after the
     * PONG is broken. New calls then go elsewhere, and the connection ends with the last call that a caller waits for.
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
     * Ends everything that belongs to the connection. Each step runs even if the one before it fails, for example for
     * lack of memory. Each step is a method, since javac copies a finally block for each way into the block.
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
     * Ends all calls, whatever happens to one of them. The calls share exceptions without stack traces, which are
     * created before the first call ends: memory may be short, and thousands of calls may be in flight.
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
