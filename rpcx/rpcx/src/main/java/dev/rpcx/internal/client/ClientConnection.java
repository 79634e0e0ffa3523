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

/** A client's connection: the slots of its calls, the server's method numbers, and one timer for all deadlines. */
public final class ClientConnection extends WireConnection implements ReadTurn.Connection {
    /**
     * A caller's own thread takes less time than this from the begin of a call to its request. If more has passed, the
     * request carries TIME.
     */
    private static final long UNTOLD_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private static final int UNKNOWN = 0;

    /** Stands instead of a number: the server does not publish the method, and itself refuses a call by name. */
    private static final int NOT_PUBLISHED = -1;

    /**
     * Stands instead of a number: the server's method has another {@link MethodShape}, and neither side could read the
     * other.
     */
    private static final int OTHER_SHAPE = -2;

    /**
     * A call ends as UNHEARD if the look at its deadline is late by more than one part in this many of the call's time:
     * the event loop was held up, and may have kept the request back for as long. Source: {@link AnswerTimes}, to which
     * nine tenths of the time are enough.
     */
    private static final int HELD_UP_PART = 10;

    /**
     * A look at a deadline that is less late than this is not taken for a held-up event loop, however short the call's
     * time is: timers and callbacks that are in order take less.
     */
    private static final long MIN_HELD_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    /** Deadlines closer together than this are found by one look. */
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /**
     * With this many calls under way, or more, the event loop sends a call, and not its caller: gathering then gains
     * more than a wake-up of the event loop costs.
     */
    private static final int QUIET_CALLS = 1;

    /**
     * A connection with this many calls under way is crowded. The number is a quarter of the slots: far above what
     * makes a second connection worth its cost, far below where calls are refused.
     */
    private static final int CROWDED = Wire.MAX_SLOTS / 4;

    /**
     * Buffers that have grown for large messages are given back when no large message has come for this time, or for up
     * to twice as long.
     */
    private static final long TRIM_NANOS = TimeUnit.SECONDS.toNanos(2);

    /** Time between two looks at an extra connection, which is closed when it has had no call between them. */
    private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Number of looks in a keep-alive time at calls whose final frame is owed. */
    private static final int OWED_LOOKS = 3;

    /** Max number of keep-alive times for which a final frame may be owed, however slow the way is. */
    private static final int OWED_TIMES = 6;

    private static final String NO_MEMORY = "the connection is over, and the memory too";

    // errors of calls where there is no memory to make more precise ones
    private static final RPCXException LEFT = LocalFailure.notSent(RPCXException.Code.UNAVAILABLE, NO_MEMORY);
    private static final RPCXException LOST = LocalFailure.noRoom(NO_MEMORY, RPCXException.Executed.MAYBE);
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
     * Completed for whoever connects, when the server's dictionary is complete: only then is it certain that the server
     * takes calls, and which.
     */
    private final CompletableFuture<ClientConnection> attempt;

    private final Runnable sweep = this::sweep;
    private final Runnable lookForOrphans = this::freeOrphans;

    /** Bytes of memory that an entry of {@link #dictionary} takes beside its name. */
    private static final int ENTRY_BYTES = 128;

    /**
     * Methods that the server publishes, by service and method; filled from the server's dictionary before the first
     * call. Those that the client's proxies call are kept in any case, and of the others as many as there is room for:
     * a method without an entry is called by name.
     */
    private final Map<String, Entry> dictionary = new ConcurrentHashMap<>();

    /** Charge for the entries of methods that no proxy had when the dictionary came. */
    private final Charge entryBytes;

    /** Number of entries that have come, counted up to {@code Wire.MAX_DICTIONARY}; event loop only. */
    private int entries;

    /** Entries have come that there was no room for. */
    private boolean isDictionaryCut;

    private record Entry(int number, int shape) {}

    /** Time at which the dictionary was complete; event loop only. */
    private long beginNanos;

    /** The server has sent its settings; event loop only. */
    private boolean settled;

    private volatile boolean dictionaryComplete;

    /** Ends when the dictionary is complete, or fails when the connection ends before that. */
    private final CompletableFuture<@Nullable Void> published = new CompletableFuture<>();

    /** Names of the published methods, made when they are first asked for; guarded by {@link #published}. */
    private @Nullable List<String> publishedNames;

    /**
     * The server's method numbers by {@link ClientMethod#index}, looked up once each. Written under the lock of
     * {@code dictionary}, read without it.
     */
    private volatile int[] numbers = new int[8];

    private volatile int maxRequestBytes = Wire.MAX_MESSAGE_BYTES;

    /** The connection takes no new calls; those under way are finished. */
    private volatile boolean draining;

    private volatile @Nullable String closedWhy;

    /** This side ends the connection of its own accord, which says nothing of the server. */
    volatile boolean isDropped;

    /** The connection is not one of those that its address keeps in any case. */
    public final boolean isExtra;

    /**
     * The connection is idle and not needed. Whoever sees this after taking a slot gives the slot back and takes
     * another connection of the instance, if one is ready. So once this is set and no slot is taken, no call begins on
     * the connection while the instance has another one that is ready.
     */
    public volatile boolean isParting;

    /** Value of {@link CallSlots#changes} at the last look whether the connection is idle. Event loop only. */
    private long idleSince;

    /**
     * Timer of the next look whether the connection is idle; set while this is an extra connection that has begun.
     * Event loop only.
     */
    private @Nullable ScheduledFuture<?> idleTimer;

    /**
     * Number of calls whose final frame is owed and that the event loop has sent; {@link #load} reads it from any
     * thread.
     */
    private int inFlight;

    /** Number of calls whose final frame is owed and that their callers' threads have sent. */
    private volatile int inFlightByCallers;

    /** Consecutive replies to a lone caller. Event loop only. */
    private int loneReplies;

    /**
     * A large buffer has been kept since the last look, so large messages still come and go. Stored once between two
     * looks, since all callers have this object in their caches.
     */
    private boolean hasKept;

    /** A look at kept buffers is scheduled. */
    private volatile boolean trims;

    private volatile long nextSweepNanos = Long.MAX_VALUE;
    private @Nullable ScheduledFuture<?> sweepTimer;

    /** Calls whose time is over are about to be ended, after the next look at the sockets. Event loop only. */
    private boolean isEndDue;

    /**
     * Timer of the look at owed final frames; set while calls that were given up may be owed theirs. Event loop only.
     */
    private @Nullable ScheduledFuture<?> owedTimer;

    /** The latest question; null if there has been none. Event loop only. */
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

    /** {@link #askForSign} has sent a PING, the latest one at {@code askedNanos}. Event loop only. */
    private boolean isAsked;

    private long askedNanos;

    /**
     * @param isExtra the connection is closed again when it is not needed
     * @param defaultNanos the time of calls whose requests do not carry one; whole microseconds
     */
    public ClientConnection(
            Channel channel,
            Account account,
            ClientAddress address,
            boolean isExtra,
            long defaultNanos,
            long keepAliveNanos,
            CompletableFuture<ClientConnection> attempt) {
        super(channel, account);
        this.address = address;
        this.isExtra = isExtra;
        this.peer = address.toString();
        this.defaultNanos = defaultNanos;
        this.keepAliveNanos = keepAliveNanos;
        this.keepAlive = new KeepAlive(this, keepAliveNanos);
        this.entryBytes = account.charge(Resource.TABLE_BYTES);
        this.attempt = attempt;
    }

    // ---- any thread

    public boolean isUsable() {
        return !draining && closedWhy == null;
    }

    @Override
    public int load() {
        return (int) IN_FLIGHT.getOpaque(this) + inFlightByCallers;
    }

    /**
     * Whether as many calls are under way as the server takes, including those that the event loop has not seen yet, so
     * that no more can begin.
     */
    public boolean isFull() {
        return slots.isFull();
    }

    /**
     * Number of further calls that a connection which is not full may take, as far as the event loop has seen; at least
     * one.
     */
    int room() {
        return Math.max(1, slots.limit() - load());
    }

    /**
     * Whether so many calls are under way that another connection would serve some of them better. That is at least one
     * call, however few the server takes.
     */
    public boolean isCrowded() {
        return load() >= Math.max(1, Math.min(CROWDED, slots.limit() * 3 / 4)) || isFull();
    }

    public ClientAddress address() {
        return address;
    }

    /**
     * Whether a request with this much time left carries TIME: without TIME the server takes it to have the full
     * default time.
     */
    public boolean carriesTime(long leftNanos) {
        return leftNanos > defaultNanos || defaultNanos - leftNanos > UNTOLD_NANOS;
    }

    @Override
    public int maxBytesTaken() {
        return maxRequestBytes;
    }

    /**
     * The server's number for the method, or 0 if it has to be called by name.
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
                            + " (expected: the same, up to what one of the two has in addition)");
        }
        return Math.max(number, 0);
    }

    /** Sends a call: from its caller's thread where nothing is under way, otherwise by the event loop. */
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
        // The call may be over by now, and its slot have another call, which is why its deadline was read before.
        long next = nextSweepNanos;
        if (next == Long.MAX_VALUE || deadlineNanos - next < 0) {
            inLoopOrHere(sweep);
        }
    }

    /**
     * Counts a call that its caller's thread sends.
     *
     * @return false if the connection takes no more calls
     */
    public boolean enter() {
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, 1);
        // Checked after the count: either this thread sees that the connection is draining, or the thread that drains
        // it sees the count.
        if (!isDrainingOrClosed()) {
            return true;
        }
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, -1);
        inLoopOrHere(this::closeIfLeft);
        return false;
    }

    /**
     * Sends credit for more items, behind the request in the queue.
     *
     * @param unsent credit that has not been sent; the frame takes all of it when it leaves
     */
    void sendCredit(ClientCall call, long serial, AtomicLong unsent) {
        send(new Outbound.Control(Wire.CREDIT, 0, Unpooled.buffer(10)) {
            @Override
            public boolean beforeSend() {
                id = call.id;
                if (!call.isOnWire(serial)) {
                    return false;
                }
                if (call.begun) {
                    begins();
                } else {
                    call.waitingCredit = this;
                }
                return true;
            }

            /**
             * Called late for credit behind a request that has to wait: credit that is given meanwhile leaves with it.
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
     * Whether requests that are not small hold so many bytes on this connection that those that have left give their
     * buffers up: other requests have to find room while these wait for their replies.
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
            // whoever closes the connection may have trimmed the slots before
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
                // also where the stack was exhausted: the next slot to keep a buffer tries again
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
        // before the slots are trimmed, so that a buffer kept from here on is looked after again
        trims = false;
        slots.trim();
    }

    /**
     * Error of a call of which the server may have seen something. If this side had no memory for what came on the
     * connection, the error says so, since that says nothing of the server.
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
     * Error of a call of which no byte has left: the call may go to another connection as if it had never been on this
     * one.
     */
    public RPCXException leftError() {
        try {
            return LocalFailure.notSent(RPCXException.Code.UNAVAILABLE, whyLost());
        } catch (Throwable noMemory) {
            return LEFT;
        }
    }

    private String whyLost() {
        String why = closedWhy;
        return peer + ": " + (why == null ? "the connection is closing" : why);
    }

    /**
     * Whether the message is credit, or belongs to the stream to send, of a call whose request has not begun to leave.
     */
    @Override
    public boolean isAhead(Outbound message) {
        int type = message.head & Wire.TYPE_MASK;
        if (message instanceof ClientCall || message.id == 0 || type == Wire.PING || type == Wire.PONG) {
            return false;
        }
        ClientCall call = slots.at(message.id & Wire.SLOT_MASK);
        return call != null && call.isOnWire(message.id) && !call.begun;
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
        // A caller's thread may have sent a call, of which the event loop learns from the server's reply. The memory
        // model knows no order by that way, so there is a fence.
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
                // a type of a later version, or one that has no meaning to a client
            }
        }
    }

    /** Reason for which the server ends the connection. Nothing is answered to it, even if it cannot be read. */
    private static String reason(ByteBuf payload) {
        try {
            return String.valueOf(WireError.read(payload).getMessage());
        } catch (WireFault unreadable) {
            return "for a reason that cannot be read";
        }
    }

    /**
     * Handles a frame of one call. A failure over that frame ends only its call, unless the frame breaks the rules of
     * the wire.
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
            throw new WireFault("a dictionary after the dictionary");
        }
        MethodDictionary.read(payload, this::onEntry);
        if (!more) {
            dictionaryComplete = true;
            beginNanos = nanoTime();
            if (!draining) {
                // if the connection is draining it is about to close, and whoever connects gets that failure
                attempt.complete(this);
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
     * Closes the connection if it has had no call since the last look, no slot is taken and its address has another
     * connection with room; nobody takes it from then on. The connection stays if a caller has just taken a slot, and
     * if the others are crowded, since the next call would need it. Event loop only.
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
     * Names of the published methods: one list for the connection, so that a tool can distinguish this connection from
     * another by the list's identity.
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
     * Names of the methods that the server publishes, as service/method. The future ends when the dictionary is
     * complete, and fails if there was no room for all of it or the connection is over.
     */
    public CompletableFuture<List<String>> published() {
        return published.thenApply(said -> {
            List<String> names = names();
            // checked after the names are made: the end of the connection empties the dictionary
            if (isDictionaryCut || isClosed()) {
                throw new IllegalStateException("no room for what the server publishes, or the connection is over");
            }
            return names;
        });
    }

    /**
     * Leaves the connection, since the server or this side wants to end it. New calls go elsewhere, and the server
     * learns at once, by GOAWAY, that none will come.
     */
    private void onGoAway() {
        if (!draining) {
            draining = true;
            address.lost(this);
            for (int slot = 0, top = slots.createdCount(); slot < top; slot++) {
                ClientCall call = slots.at(slot);
                if (call != null) {
                    call.leaveUnsent();
                }
            }
            sendNow(Wire.GOAWAY, 0);
            closeIfLeft();
        }
    }

    /** Takes no new calls; the connection ends when the calls under way have ended. Any thread. */
    public void retire() {
        loop().execute(this::onGoAway);
    }

    /** Ends a draining connection, with the calls under way. From any thread. */
    void endLeft() {
        loop().execute(() -> close("too many connections of this server are left with calls under way"));
    }

    /** Whether the dictionary is complete; calls are taken from then on. Event loop only. */
    public boolean hasBegun() {
        return dictionaryComplete;
    }

    /** Time for which calls have been taken, once they are. Event loop only. */
    long upNanos() {
        return nanoTime() - beginNanos;
    }

    public boolean isDrainingOrClosed() {
        return draining || isClosed();
    }

    /** Counts the final frame of a call that its caller's thread has sent and read. */
    public void onOwnFinal() {
        IN_FLIGHT_BY_CALLERS.getAndAdd(this, -1);
        if (isDrainingOrClosed()) {
            inLoopOrHere(this::closeIfLeft);
        }
    }

    /** Counts a small reply that has come to a caller who could have read it itself. */
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
        closeIfLeft();
    }

    private void closeIfLeft() {
        if (draining && inFlight == 0 && inFlightByCallers == 0 && !isClosed()) {
            loop().execute(() -> close(isParting ? "it is not needed" : "the server is closing"));
        }
    }

    /**
     * Sends a PING, for streams that wait for a sign of life to know whether the server is there. One PING within a
     * pause serves all of them: a server ends a connection of many PINGs. Event loop only.
     */
    public void askForSign() {
        long now = nanoTime();
        if (!isAsked || now - askedNanos >= CircuitBreaker.PAUSE_NANOS) {
            isAsked = true;
            askedNanos = now;
            ping();
        }
    }

    /** Counts a call that leaves, and has a look taken at its deadline. */
    void watch(long deadlineNanos) {
        inFlight++;
        readTurn.takeForLoop();
        sweepAt(deadlineNanos);
    }

    /**
     * Schedules a look at the deadlines for this time, unless an earlier one is scheduled. If this method throws, the
     * look that was scheduled before stays.
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
            // nobody would look again, and the calls of this connection would have no end
            failInternally(t);
        }
    }

    /**
     * Finds the calls whose time is over. One look at all slots in use, at the earliest deadline, replaces a timer for
     * each call.
     */
    private void sweepNow() {
        sendQueued();
        if (sweepTimer != null) {
            sweepTimer.cancel(false);
            sweepTimer = null;
        }
        // Stored before the look: a thread that sends a call itself sees this value, and schedules a look, or its call
        // is seen by this look.
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
            // The end that is due is that of calls found earlier; the calls found now need another look.
            next = Math.min(next, TICK_NANOS);
        }
        if (next != Long.MAX_VALUE) {
            sweepAt(now + next);
        }
    }

    /**
     * Ends the calls whose time was over at {@code seenNanos}, once the event loop has looked at the sockets after
     * that: a loop that was held up runs its timers before it reads replies that have come in time. A timer that is due
     * at once runs after that look, while a task that is given to the loop would run before it.
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
     * Whether an end that is late by this time says that the event loop was held up.
     *
     * @param givenNanos the call's whole time
     */
    static boolean isHeldUp(long lateNanos, long givenNanos) {
        return lateNanos > Math.max(MIN_HELD_UP_NANOS, givenNanos / HELD_UP_PART);
    }

    /** Has the event loop give slots back whose callers could not. From any thread. */
    public void lookForOrphans() {
        inLoopOrHere(lookForOrphans);
    }

    private void freeOrphans() {
        sendQueued();
        if (!isClosed() && !readTurn.takeForLoop()) {
            // A caller has the socket. The next caller that finds no slot asks again, and so does the next deadline.
            return;
        }
        slots.freeOrphans();
    }

    /**
     * Notes that a call has ended for its caller, and keeps its slot until the server has sent its final frame. A
     * server sends the final frame as soon as it has read the CANCEL, and before it answers a PING behind the CANCEL,
     * whatever stands before them on the way. A server that has not sent it one keep-alive time after the PONG is
     * broken, however lively its connection is: new calls go elsewhere, and the connection ends with the last call that
     * a caller waits for.
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
            // while the socket is lent no final frame is owed, and the one call that may be under way is its reader's
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
                // one PING at a time for all calls: a server ends a connection of many PINGs
                question = new Question(ping(), now);
            }
        } else if (!draining) {
            onGoAway();
        } else if (!isWaiting) {
            // one look after GOAWAY: a call that a caller's thread sent just before it has been seen by now
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
     * Each step runs even if the one before it fails, as for want of memory, since somebody waits for it. The steps are
     * methods, since a finally block stands in the bytecode once for each way into it.
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
            // before the calls end, since they may connect again
            Throwable failure = memoryWanted() == null
                    ? new IllegalStateException(why)
                    : LocalFailure.noRoom(why, RPCXException.Executed.NOT_EXECUTED);
            if (!attempt.completeExceptionally(failure) && !draining) {
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
     * Ends all calls, whatever happens to one of them. The exceptions are made before the first caller is told, since
     * some thousand calls may be under way on a connection that ends for want of memory. Calls have the same
     * exceptions, which have no stack trace and do not change.
     */
    private void endCalls() {
        RPCXException left = leftError();
        RPCXException lost = lostError(RPCXException.Executed.MAYBE);
        RPCXException unsent = lostError(RPCXException.Executed.NOT_EXECUTED);
        for (int slot = 0, top = slots.createdCount(); slot < top; slot++) {
            ClientCall call = slots.at(slot);
            try {
                if (call != null && call.isOnWire(call.id)) {
                    boolean isSent = call.executed() != RPCXException.Executed.NOT_EXECUTED;
                    call.complete(!call.begun ? left : isSent ? lost : unsent, true);
                }
            } catch (Throwable e) {
                ThreadTools.report(e);
            }
        }
    }

    private void endSlots() {
        if (!slots.freeOrphans()) {
            // queued messages are dropped first, and then the slots are looked at again
            lookForOrphans();
        }
        slots.trim();
    }
}
