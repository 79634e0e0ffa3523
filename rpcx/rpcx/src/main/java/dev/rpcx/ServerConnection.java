package dev.rpcx;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.HeapArray;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.util.concurrent.ScheduledFuture;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A server's connection on the native wire: takes requests into the slots their callers chose, runs handlers, sends
 * what they bring.
 *
 * <p>Longer than 400 lines because its slots, their states and the bytes they hold change together, on the event loop,
 * and nobody else may touch them.
 */
final class ServerConnection extends WireConnection implements ServedConnection {
    /** An unfinished message that brings less in {@link #stallNanos} stands still. */
    private static final int MIN_BYTES_PER_LOOK = 1024;

    /**
     * An unfinished message that is slower is not worth what it holds, but for its first moments. Source: Jetty,
     * minRequestDataRate.
     */
    private static final int MIN_BYTES_PER_SECOND = 16 * 1024;

    private static final int ALLOWED_STALLS = 3;

    /** Handlers that outlast their connection are looked at so often, in case that one has failed to end its call. */
    static final long LOST_LOOK_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** Places kept for the calls that come next. What a burst has made beyond them is given back. */
    private static final int MAX_FREE = 512;

    /** An entry of {@link #calls} and one of {@link #lastIds} take this much together. */
    private static final int SLOT_BYTES = 8;

    /** A connection has so many slots whatever others hold. They are a part of what it holds at rest. */
    private static final int UNCHARGED_SLOTS = 64;

    private static final int FIRST_ERROR_BYTES = 64;

    private static final ServerCall[] NO_CALLS = {};
    private static final int[] NO_IDS = {};

    /** Deadlines closer together than this are found by one look: a client chooses them. */
    private static final long MIN_LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MIN_PASS_AWAY_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** A look that passes no more slots costs hardly more than the frame that has made it necessary. */
    private static final int MOST_PASSED = 64;

    /**
     * A connection with more calls under way than this gains more by gathering replies than a wake-up of the event loop
     * costs.
     */
    private static final int QUIET_CALLS = 1;

    private static final String NO_THREAD = "the server has no thread for the call";

    /** This error is what a refused call is told. It is written once, as refusing must cost next to nothing. */
    private static final ByteBuf OVERLOADED = Unpooled.buffer();

    static {
        WireError.write(
                OVERLOADED,
                RPCXException.refused(
                        RPCXException.Code.OVERLOADED, "the server has more to do than it can finish in time"));
    }

    private final ServerCore server;
    final ConnectionThreads threads;
    final Uncharged uncharged;

    /**
     * These are the calls whose replies their handlers' threads have written, the last first, linked by {@link
     * Outbound#next}.
     */
    private final AtomicReference<@Nullable ServerCall> leftHere = new AtomicReference<>();

    /** The index is the slot; the array grows with the slots of the calls that were taken. */
    private @Nullable ServerCall[] calls = new ServerCall[8];

    /**
     * Each entry is the id of its slot's last call, so that a request that comes twice is not executed twice. It is
     * forgotten with the slot, once that is not used any more: see {@link #cutTables}.
     */
    private int[] lastIds = new int[calls.length];

    /** Those from here on have not been asked for since the last look of {@link KeepAlive}, and had no call then. */
    private int usedSlots;

    /** The charge is for what both have grown by above {@link #UNCHARGED_SLOTS}. */
    private final Charge slotBytes;

    /**
     * Places for the calls that come next, the one that was used last first, linked by {@link Outbound#next}: to keep
     * one takes no memory.
     */
    private @Nullable ServerCall free;

    private int freePlaces;

    /** Places of calls that have ended for the client, and for which threads run on. */
    private int lentPlaces;

    /** The event loop has been asked for idle places: one task waits there for that at a time. */
    private final AtomicBoolean isAskedForPlaces = new AtomicBoolean();

    private final PostponedCalls postponedCalls = new PostponedCalls(this, this::unreadBytes);

    /** Streams wait also for items to be read, which keep no other call from being answered. */
    private final PostponedCalls postponedStreams = new PostponedCalls(this, this::unreadStreamBytes);

    /** Streams whose handlers have ended, and whose publishers are not subscribed to yet. */
    private final AtomicInteger opening = new AtomicInteger();

    private Settings client = Settings.INITIAL;
    private volatile int maxReplyBytes = Wire.MAX_MESSAGE_BYTES;
    private final UnderWay underWay = new UnderWay();

    private final RunningHandlers running;

    /**
     * The list has watched calls without a slot: notices until their time is over, and calls whose callers are gone
     * until the futures of their handlers are given up.
     */
    private final CallList away = new CallList();

    /** No call of {@link #away} is due before this, while there are any. */
    private long awayDueNanos;

    /** Where {@link #away} is long, it is passed at this time at the earliest. */
    private long mayPassAwayNanos;

    /** The list has calls without a slot whose handlers run: nobody waits for them, and their handlers end them. */
    private final CallList dropped = new CallList();

    /** Any thread says so when it could not end a call. */
    final LostCalls lost = new LostCalls(() -> inLoopOrHere(this::endLost));

    final CallThreads callThreads;

    /** Places for calls that have been made, those in {@link #free} among them. */
    private final Charge places;

    private final KeepAlive keepAlive;
    private @Nullable Principal peer;
    private final FloodGuard guard;
    private volatile boolean leaving;
    private volatile boolean clientLeft;

    /** The client has left, and the task that closes the connection is on its way. Event loop only. */
    private boolean isCloseOrdered;

    /** The connection has ended, and all its calls have been told so. */
    private boolean isOver;

    private boolean greeted;

    /** The charge is for {@link #greeting} and {@link #lookTimer}. */
    private final Charge timers;

    private final ScheduledFuture<?> greeting;
    private final long stallNanos;

    private final OwedTime owed;

    /** What {@link #reads} was when the last pause in reading ended. */
    private int readsBeforeResume = -1;

    /** When the frame that has begun, and whose end is missing, became more than a little, as {@link #owed} goes. */
    private long frameSinceNanos;

    private @Nullable ScheduledFuture<?> lookTimer;
    private long nextLookNanos;

    /** Calls that are due soon, so that not each look passes all of them. */
    private final DueSoon soon = new DueSoon(this::leftOf, this::nanoTime);

    /**
     * Calls that have a slot. Apart from the connection, as what {@link WireConnection} gathers is, and for the same
     * reason.
     */
    private static final class UnderWay {
        int calls;
    }

    /** @param takenNanos when the connection was taken: its peer has some time from then for the whole preface */
    ServerConnection(Channel channel, ServerCore server, Account account, long takenNanos) {
        super(channel, account);
        this.server = server;
        this.threads = new ConnectionThreads(server.threads(), loop(), account);
        this.callThreads = new CallThreads(loop(), this::inLoopOrHere, threads, lost);
        this.uncharged = account.uncharged();
        this.places = account.charge(Resource.CALLS);
        this.running = new RunningHandlers(account, this::nanoTime);
        this.slotBytes = account.charge(Resource.TABLE_BYTES);
        account.watch(this::busy);
        this.keepAlive = new KeepAlive(this, server.keepAliveNanos());
        this.guard = new FloodGuard(loop().ticker());
        this.stallNanos = Sniffer.silentNanos(server);
        this.owed = OwedTime.of(channel);
        this.mayPassAwayNanos = takenNanos;
        this.timers = account.charge(Resource.TIMERS);
        long left = takenNanos + stallNanos - nanoTime();
        greeting = loop().schedule(this::endUngreeted, Math.max(0, left), TimeUnit.NANOSECONDS);
        timers.add(1);
    }

    /** Tests ask this when all is quiet: places with a call whose handler or reply is under way. */
    private long busy() {
        long count = places.held() - freePlaces;
        for (Outbound call = leftHere.get(); call != null; call = call.next) {
            count--;
        }
        return count;
    }

    /** The principal is whom the client's certificate names. It is set before the first request. */
    @Nullable
    Principal peer() {
        return peer;
    }

    @Override
    int maxBytesTaken() {
        return maxReplyBytes;
    }

    // ---- a handler's thread

    /**
     * Sends a reply from its handler's thread. The event loop hears of it when the client's next bytes come, which may
     * be late: a call that holds more than its slot is left to the loop.
     *
     * @return false if the reply has to go by the event loop
     */
    boolean replyHere(ServerCall call) {
        return underWay.calls <= QUIET_CALLS && !leaving && !clientLeft && call.isSmall() && sendHere(call);
    }

    /**
     * The reply is about to leave: the client may use its slot again, and the event loop has to know that before it
     * sees the next request.
     */
    void leavesHere(ServerCall call) {
        ServerCall last;
        do {
            last = leftHere.get();
            call.next = last;
        } while (!leftHere.compareAndSet(last, call));
        if (leaving || clientLeft) {
            inLoopOrHere(this::beforeRead);
        }
    }

    /** Says whether calls of this method have to wait before they are begun. Any thread may ask. */
    boolean isCongested(ServerMethod method) {
        if (!method.brings()) {
            return postponedCalls.isCongested();
        }
        // nobody says so when an item is made
        postponedStreams.unreadHasGrown();
        return postponedStreams.isCongested();
    }

    /** Any thread says so when a large reply has been charged, or could not be. */
    void replyHeld() {
        postponedCalls.unreadHasGrown();
    }

    @Override
    long replyBytes() {
        return account.held(Resource.REPLY_BYTES);
    }

    /** Replies, and what stands in the socket's queue. Any thread may ask. */
    private long unreadBytes() {
        return account.held(Resource.REPLY_BYTES) + account.held(Resource.QUEUE_BYTES);
    }

    /** The same with the items that wait, and with what streams that have just begun make first. Any thread may ask. */
    private long unreadStreamBytes() {
        return unreadBytes() + account.held(Resource.ITEM_BYTES_OUT) + (long) StreamSender.WINDOW_BYTES * opening.get();
    }

    /** From here on what the stream makes counts by itself, if it makes anything. Any thread says so. */
    private void opened() {
        opening.decrementAndGet();
        if (postponedStreams.isCongested()) {
            inLoopOrHere(postponedStreams::resumeIfWaiting);
        }
    }

    // ---- the event loop

    private PostponedCalls postponed(ServerCall call) {
        return call.method().brings() ? postponedStreams : postponedCalls;
    }

    /**
     * A call waits until what its caller has to read already has left, and there is a place for it, instead of being
     * begun. It waits for as long as a small request may take, pauses of reading included, each time.
     */
    void postpone(ServerCall call) {
        if (!call.chargeWaiting()) {
            refuseAdmission(call);
            return;
        }
        long now = nanoTime();
        call.onLoop.waitsUntilNanos = now + 2 * ALLOWED_STALLS * stallNanos;
        postponed(call).add(call);
        if (isPostponed(call)) {
            watchEarlier(call, now);
        }
    }

    private boolean isPostponed(ServerCall call) {
        return postponedCalls.has(call) || postponedStreams.has(call);
    }

    /**
     * Takes a place for the handler of a call that has waited. Where there is none, the call waits for the end of
     * another handler of its connection: all that have waited would otherwise be refused because they come at the same
     * moment. A connection that runs no handler has nothing to wait for, and its call is refused as a new one would be.
     *
     * @return false if it waits
     */
    boolean enterPostponed(ServerCall call) {
        AdmissionLimit.Group admission = Objects.requireNonNull(admission(call.method()));
        if (running.enter(call.method(), admission)) {
            entered(call, admission);
            // how long it waited for its caller to read says nothing about handlers
            call.isWhole(nanoTime());
            return true;
        }
        if (running.all() > 0) {
            return false;
        }
        refuseAdmission(call);
        return true;
    }

    /** Begins what has waited, where a handler has ended or the caller has read. */
    private void resumeIfWaiting() {
        postponedCalls.resumeIfWaiting();
        postponedStreams.resumeIfWaiting();
    }

    @Override
    void unsentChanged() {
        resumeIfWaiting();
    }

    @Override
    void beforeRead() {
        if (leftHere.get() == null) {
            return;
        }
        ServerCall call = leftHere.getAndSet(null);
        try {
            while (call != null) {
                ServerCall replied = call;
                call = (ServerCall) replied.next;
                handled(replied);
                replied(replied);
            }
        } finally {
            if (call != null) {
                // what was thrown ends the connection, and its end comes here for the others
                leftHereAgain(call);
            }
        }
    }

    private void leftHereAgain(ServerCall first) {
        Outbound end = first;
        while (end.next != null) {
            end = end.next;
        }
        ServerCall last;
        do {
            last = leftHere.get();
            end.next = last;
        } while (!leftHere.compareAndSet(last, first));
    }

    @Override
    void onPreface(int version) {
        greeted = true;
        greeting.cancel(false);
        timers.release(1);
        sendPreface();
        ByteBuf settings = Unpooled.buffer();
        server.settings().write(settings);
        sendNow(new Outbound.Control(Wire.SETTINGS, 0, settings));
        for (int i = 0; i < server.dictionary().size(); i++) {
            int head = i + 1 < server.dictionary().size() ? Wire.DICTIONARY | Wire.MORE : Wire.DICTIONARY;
            sendNow(new Outbound.Control(head, 0, server.dictionary().get(i).duplicate()));
        }
        peer = TlsEngine.peer(channel);
        keepAlive.start();
        server.greeted(channel, this);
    }

    /** Ends the connection of a client that has begun its eight bytes and does not end them. */
    private void endUngreeted() {
        if (!greeted) {
            abort("no preface");
        }
    }

    @Override
    void onFrame(int head, int id, ByteBuf payload) {
        int type = head & Wire.TYPE_MASK;
        switch (type) {
            case Wire.REQUEST -> onRequest(head, id, payload, false);
            case Wire.NOTICE -> onRequest(head, id, payload, true);
            case Wire.PART -> onPart(head, id, payload);
            case Wire.CANCEL -> {
                guard.cancelled();
                onCancel(id);
            }
            case Wire.ITEM -> onItem(head, id, payload);
            case Wire.END -> onEnd(id);
            case Wire.CREDIT -> onCredit(id, payload);
            case Wire.SETTINGS -> {
                guard.settled();
                client = Settings.read(payload);
                maxReplyBytes = client.maxMessageBytes();
            }
            case Wire.GOAWAY -> {
                clientLeft = true;
                // a handler's thread that has just sent a reply either sees that the client has left, or is seen here
                beforeRead();
                closeIfLeft();
            }
            case Wire.PING -> {
                guard.pinged();
                answerPing(id);
            }
            case Wire.ERROR -> {
                if (id == 0) {
                    close("the client ended the connection");
                }
            }
            default -> {
                // it is a type of a later version, or one that has no meaning to a server
            }
        }
        if (type != Wire.REQUEST && type != Wire.NOTICE) {
            // subscribers, publishers and what is told of a cancel may run here, for as long as they like
            readAnew();
        }
    }

    private void onRequest(int head, int id, ByteBuf payload, boolean notice) {
        int slot = id & Wire.SLOT_MASK;
        if (slot == id) {
            throw new WireFault("call id " + id + " (expected: a generation that is not 0)");
        }
        if (slot >= server.settings().maxCalls()) {
            refuse(id, RPCXException.Code.OVERLOADED, "more calls under way than the server takes on one connection");
            return;
        }
        if (slot >= usedSlots) {
            usedSlots = slot + 1;
        }
        if (slot < calls.length) {
            if (calls[slot] != null) {
                throw new WireFault("a request in slot " + slot + ", which has a call under way");
            }
            if (lastIds[slot] == id) {
                throw new WireFault(
                        "call id " + Integer.toHexString(id) + " twice running (expected: another generation)");
            }
            lastIds[slot] = id;
        }
        guard.requested();
        ServerMethod method = method(head, payload);
        long micros = (head & Wire.TIME) != 0 ? Varint.read(payload) : client.defaultMicros();
        int before = payload.readableBytes();
        Metadata metadata = (head & Wire.METADATA) != 0 ? MetadataFields.read(payload) : Metadata.EMPTY;
        int metadataCost =
                metadata == Metadata.EMPTY ? 0 : MetadataFields.cost(metadata, before - payload.readableBytes());
        if (clientLeft) {
            refuse(id, RPCXException.Code.UNAVAILABLE, "a request after the client's GOAWAY");
            return;
        }
        if (method == null) {
            refuse(id, RPCXException.Code.NOT_FOUND, "no such service or method");
            return;
        }
        if (notice && (method.brings() || method.items() != null)) {
            refuse(id, RPCXException.Code.INVALID, "a notice of a method with a stream (expected: a request)");
            return;
        }
        if (micros == 0) {
            refuse(id, RPCXException.Code.DEADLINE_EXCEEDED, "the call came without time");
            return;
        }
        if (payload.readableBytes() > server.settings().maxMessageBytes()) {
            refuseLarge(id);
            return;
        }
        boolean more = (head & Wire.MORE) != 0;
        AdmissionLimit.Group admission = admission(method);
        ServerCall call = place();
        if (call == null) {
            refuse(id, RPCXException.Code.OVERLOADED, "too many calls under way on this connection or server");
            return;
        }
        long now;
        AdmissionLimit.Group entered = null;
        boolean isPlaceUsed = false;
        try {
            if (!hasSlot(slot)
                    || metadataCost > unchargedMetadata(method, more)
                            && !call.charges().request.add(metadataCost)) {
                isPlaceUsed = true;
                keep(call);
                refuse(
                        id,
                        RPCXException.Code.OVERLOADED,
                        "too many bytes of requests under way on this connection or server");
                return;
            }
            lastIds[slot] = id;
            if (!more && admission != null) {
                if (!running.enter(method, admission)) {
                    isPlaceUsed = true;
                    call.releaseCharges();
                    keep(call);
                    refuseOverloaded(id);
                    return;
                }
                entered = admission;
            }
            // a time no clock can hold is as good as none
            long nanos = TimeUnit.MICROSECONDS.toNanos(Math.min(micros < 0 ? Long.MAX_VALUE : micros, 1L << 50));
            if (nanos > server.maxCallNanos() && !method.brings() && method.items() == null) {
                nanos = server.maxCallNanos();
            }
            // a request in parts has its time from here on
            now = more ? nanoTime() : readNanos();
            call.begin(id, method, metadata, now, now + nanos, notice);
            isPlaceUsed = true;
        } finally {
            if (!isPlaceUsed) {
                // there was no memory for it, and the connection ends
                call.releaseCharges();
                call.releasePlace();
                places.release(1);
                if (entered != null) {
                    running.left(method);
                    entered.leave();
                }
            }
        }
        call.metadataCost = metadataCost;
        if (entered != null) {
            entered(call, entered);
        }
        calls[slot] = call;
        underWay.calls++;
        if (more) {
            call.onLoop.receiving = true;
            call.onLoop.unfinished = new UnfinishedMessage(owed.at(now), now);
            if (holdCounted(call, payload)) {
                watchEarlier(call, now);
            }
        } else {
            dispatch(call, payload);
        }
    }

    /** @param more whether the request is not whole yet, so that it is not counted among those that run */
    private int unchargedMetadata(ServerMethod method, boolean more) {
        return more || method.admission() == null || method.brings()
                ? Uncharged.IDLE_METADATA_BYTES
                : uncharged.metadataBytes();
    }

    /** Slots that the tables have room for: for tests. */
    int tableSlots() {
        return calls.length + lastIds.length;
    }

    /** Makes room for a slot that was not used before. @return false if the room cannot be had */
    private boolean hasSlot(int slot) {
        if (slot < calls.length) {
            return true;
        }
        int length = Math.max(slot + 1, calls.length * 2);
        if (!slotBytes.set((long) SLOT_BYTES * Math.max(0, length - UNCHARGED_SLOTS))) {
            return false;
        }
        calls = Arrays.copyOf(calls, length);
        lastIds = Arrays.copyOf(lastIds, length);
        return true;
    }

    /**
     * Slots that have not been used since the last look are forgotten, but for those that every connection has: others
     * have room for theirs then. What comes again so late is its client's own fault.
     */
    private void cutTables() {
        if (calls.length <= UNCHARGED_SLOTS) {
            return;
        }
        int withCalls = calls.length;
        while (withCalls > 0 && calls[withCalls - 1] == null) {
            withCalls--;
        }
        int length = Math.max(UNCHARGED_SLOTS, Math.max(withCalls, usedSlots));
        usedSlots = withCalls;
        // requests that were refused may have been of slots beyond the tables
        if (length >= calls.length) {
            return;
        }
        try {
            @Nullable ServerCall[] cut = Arrays.copyOf(calls, length);
            lastIds = Arrays.copyOf(lastIds, length);
            calls = cut;
            slotBytes.set((long) SLOT_BYTES * (length - UNCHARGED_SLOTS));
        } catch (OutOfMemoryError noMemory) {
            // next time: the connection goes on as it is
        }
    }

    /**
     * Finds a place for a call. A call that was cancelled has its place until its handler has ended, so a peer that
     * sends and cancels again and again soon has none left. A handler that has returned a future ends at the latest
     * when that is given up.
     *
     * @return null if this connection, or the server, has too many
     */
    private @Nullable ServerCall place() {
        if (places.held() - freePlaces - lentPlaces >= server.settings().maxCalls()) {
            return null;
        }
        ServerCall call = free;
        if (call != null) {
            free = (ServerCall) call.next;
            // those behind it may be given up while this one is in use, and are to be collected then
            Outbound.NEXT.set(call, (Outbound) null);
            freePlaces--;
            return call;
        }
        boolean isPlaced = places.add(1);
        if (!isPlaced || account.isHalfTaken(Resource.CALLS)) {
            server.placesAreFew(nanoTime());
        }
        return isPlaced ? newCall() : null;
    }

    private ServerCall newCall() {
        boolean isMade = false;
        try {
            ServerCall made = new ServerCall(this);
            isMade = true;
            return made;
        } finally {
            if (!isMade) {
                places.release(1);
            }
        }
    }

    private @Nullable ServerMethod method(int head, ByteBuf payload) {
        if ((head & Wire.NAMED) == 0) {
            long number = Varint.read(payload);
            return number == (int) number ? server.method((int) number) : null;
        }
        return server.method(MethodDictionary.key(name(payload), name(payload)));
    }

    private static String name(ByteBuf payload) {
        int bytes = payload.isReadable() ? payload.readUnsignedByte() : Integer.MAX_VALUE;
        if (bytes > payload.readableBytes()) {
            throw new WireFault("a name is cut off");
        }
        return payload.readCharSequence(bytes, StandardCharsets.UTF_8).toString();
    }

    private void onPart(int head, int id, ByteBuf payload) {
        ServerCall call = call(id);
        if (call == null || call.begun) {
            return;
        }
        UnfinishedMessage unfinished = call.onLoop.unfinished;
        if (unfinished != null) {
            unfinished.newBytes += payload.readableBytes();
            unfinished.allBytes += payload.readableBytes();
            if ((head & Wire.MORE) == 0) {
                call.onLoop.unfinished = null;
            }
        }
        StreamReceiver stream = call.receiver;
        if (stream != null && stream.isReceiving()) {
            if (!stream.onPart(
                    payload, (head & Wire.MORE) != 0, server.settings().maxMessageBytes())) {
                endOverLargeItem(call);
            }
            return;
        }
        if (!call.onLoop.receiving) {
            throw new WireFault("a part of a message that has not begun");
        }
        if (call.body.readableBytes() + payload.readableBytes()
                > server.settings().maxMessageBytes()) {
            drop(call);
            refuseLarge(id);
            return;
        }
        if (!holdCounted(call, payload)) {
            return;
        }
        if ((head & Wire.MORE) == 0) {
            call.onLoop.receiving = false;
            call.isWhole(nanoTime());
            dispatch(call, call.body);
        }
    }

    private void dispatch(ServerCall call, ByteBuf request) {
        RunOn.Place place = call.method().place();
        if (place != RunOn.Place.EVENT_LOOP) {
            if (request != call.body && !holdWhole(call, request)) {
                return;
            }
            if (call.admitted == null && !admit(call)) {
                return;
            }
        }
        Codec<Object> items = call.method().items();
        if (items != null) {
            StreamReceiver receiver = new StreamReceiver(
                    items,
                    new Incoming(call.id),
                    account,
                    place == RunOn.Place.EVENT_LOOP ? null : callThreads.signalsOf(call),
                    call.context());
            if (!receiver.hold()) {
                refuseStream(call);
                return;
            }
            call.receiver = receiver;
        }
        // first: if no timer can be set, the connection ends, and must not wait for a handler that was never begun
        if (call.notice) {
            takeNotice(call);
        } else if (place != RunOn.Place.EVENT_LOOP) {
            watch(call);
        }
        if (place != RunOn.Place.EVENT_LOOP) {
            start(call, call);
            return;
        }
        int id = call.id;
        call.onLoop.handling = true;
        try {
            call.handleInLoop(request);
        } finally {
            readAnew();
        }
        // most have ended here; what brings its result later has its time as others have
        if (call(id) == call || away.contains(call)) {
            watch(call);
        }
    }

    /** The caller's slot is free, whatever becomes of the call. */
    private void takeNotice(ServerCall call) {
        call.onLoop.abandoned = true;
        try {
            addAway(call, call.deadlineNanos());
            freeSlot(call);
            watch(call.deadlineNanos());
            sendNow(Wire.REPLY, call.id);
        } catch (RuntimeException | Error e) {
            // the connection ends over it, and does not know of the call any more
            call.leave();
            recycle(call);
            throw e;
        }
    }

    /**
     * Has the handler run elsewhere. Whatever keeps it from that ends the call.
     *
     * @param run runs the call
     * @return false if the call has ended
     */
    boolean start(ServerCall call, PoolShares.Task run) {
        call.onLoop.handling = true;
        call.handed = run;
        try {
            threads.run(call.method().place(), run);
            return true;
        } catch (RejectedExecutionException e) {
            refuseStart(call, "the server is closing");
        } catch (Throwable e) {
            refuseStart(call, NO_THREAD);
        }
        return false;
    }

    /** A call has waited for a thread that cannot be had. Any thread says so. */
    void noThread(ServerCall call) {
        inLoopOrHere(() -> refuseStart(call, NO_THREAD));
    }

    private void refuseStart(ServerCall call, String why) {
        int id = call.id;
        call.leave();
        handled(call);
        if (call.onLoop.abandoned) {
            boolean isNotice = call.notice;
            ServerMethod method = call.method();
            recycle(call);
            if (isNotice) {
                noticeFailed(method, RPCXException.refused(RPCXException.Code.UNAVAILABLE, why));
            }
        } else {
            drop(call);
            refuse(id, RPCXException.Code.UNAVAILABLE, why);
        }
    }

    /** Any thread says so. */
    void noticeFailed(ServerMethod method, RPCXException why) {
        server.noticeFailed(method, why);
    }

    /** A request that came in several frames is counted when it is whole. @return false if the call has been refused */
    private boolean admit(ServerCall call) {
        AdmissionLimit.Group admission = Objects.requireNonNull(admission(call.method()));
        if (running.enter(call.method(), admission)) {
            entered(call, admission);
            return true;
        }
        refuseAdmission(call);
        return false;
    }

    private void refuseAdmission(ServerCall call) {
        int id = call.id;
        drop(call);
        refuseOverloaded(id);
    }

    private void refuseStream(ServerCall call) {
        int id = call.id;
        drop(call);
        refuse(id, RPCXException.Code.OVERLOADED, "too many streams on this connection or server");
    }

    private void entered(ServerCall call, AdmissionLimit.Group admission) {
        call.admitted = admission;
        call.onLoop.running = true;
    }

    /** The event loop hears that a call's handler has ended. A second time does nothing. */
    void handled(ServerCall call) {
        call.onLoop.handling = false;
        uncount(call);
    }

    /** The last thread has ended of a call whose reply has not left. */
    void threadsEnded(ServerCall call) {
        handled(call);
        if (!isClosed()) {
            resumeIfWaiting();
        }
    }

    /** What this connection's peer runs and says of a method; null for one without a limit. */
    private AdmissionLimit.@Nullable Group admission(ServerMethod method) {
        AdmissionLimit limit = method.admission();
        return limit == null ? null : limit.group(account.group());
    }

    private void uncount(ServerCall call) {
        if (!call.hasThreads()) {
            uncountNow(call);
        }
    }

    private void uncountNow(ServerCall call) {
        if (call.onLoop.running) {
            call.onLoop.running = false;
            running.left(call.method());
        }
    }

    private void onItem(int head, int id, ByteBuf payload) {
        ServerCall call = call(id);
        if (call == null || call.begun) {
            return;
        }
        StreamReceiver stream = call.receiver;
        if (stream == null) {
            throw new WireFault("an item for a call that takes none");
        }
        if (!stream.onItem(payload, (head & Wire.MORE) != 0, server.settings().maxMessageBytes())) {
            endOverLargeItem(call);
        } else if (stream.isReceiving() && call.receiver == stream) {
            long now = nanoTime();
            call.onLoop.unfinished = new UnfinishedMessage(owed.at(now), now);
            watchEarlier(call, now);
        }
    }

    private void endOverLargeItem(ServerCall call) {
        endByItem(
                call,
                RPCXException.Code.TOO_LARGE,
                "an item of more than " + server.settings().maxMessageBytes() + " bytes");
    }

    /** Ends a call over an item, which may have come before the handler has begun. */
    private void endByItem(ServerCall call, RPCXException.Code code, String text) {
        int id = call.id;
        boolean isExecuted = call.isExecuted();
        boolean hasBegun = drop(call);
        RPCXException.Executed unsure = hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
        refuse(id, code, text, isExecuted ? RPCXException.Executed.EXECUTED : unsure);
    }

    private void onEnd(int id) {
        ServerCall call = call(id);
        if (call == null || call.begun) {
            return;
        }
        if (call.onLoop.receiving) {
            throw new WireFault("the end of a stream within a request");
        }
        StreamReceiver stream = call.receiver;
        if (stream != null) {
            stream.onEnd();
        }
    }

    private void onCredit(int id, ByteBuf payload) {
        ServerCall call = call(id);
        if (call == null) {
            return;
        }
        long items = Streams.credit(payload);
        StreamSender sender = call.sender;
        if (sender == null) {
            call.onLoop.credit = Math.min(Long.MAX_VALUE - items, call.onLoop.credit) + items;
        } else {
            sender.onCredit(items);
        }
    }

    /** A handler gives credit to its caller by this. A handler that wants no more items says so by its result. */
    private final class Incoming implements StreamReceiver.Peer {
        private final int id;

        /** Given, and in no frame that has left. */
        private final AtomicLong unsent = new AtomicLong();

        Incoming(int id) {
            this.id = id;
        }

        @Override
        public void credit(long items) {
            if (!Streams.isFirst(unsent, items)) {
                return;
            }
            send(new Outbound.Control(Wire.CREDIT, id, Unpooled.buffer(10)) {
                @Override
                boolean leaving() {
                    Varint.write(body, unsent.getAndSet(0));
                    // behind the call's final frame its slot may soon have another call
                    ServerCall call = call(id);
                    return call != null && call.receiver != null && call.receiver.isOf(Incoming.this);
                }
            });
        }

        @Override
        public void cancel() {}

        @Override
        public void onLoop(Runnable telling) {
            if (inLoop()) {
                telling.run();
            } else {
                inLoopOrHere(telling);
            }
        }

        @Override
        public void overflow() {
            ServerCall call = call(id);
            if (call != null) {
                endByItem(
                        call,
                        RPCXException.Code.OVERLOADED,
                        "too many bytes of items wait on this connection or server");
            }
        }
    }

    // ---- messages and calls that stand still

    /**
     * A call has to be looked at by this time: its deadline, or before that while its peer owes it the rest of a
     * message, or while it is {@link #postpone postponed}.
     */
    private long due(ServerCall call, long now) {
        StreamReceiver items = call.receiver;
        UnfinishedMessage unfinished = call.onLoop.unfinished;
        long left = call.deadlineNanos() - now;
        if (unfinished != null && !call.begun && (call.onLoop.receiving || items != null && items.isReceiving())) {
            left = Math.min(left, owed.left(unfinished.lookedNanos + stallNanos, now));
            long whole = wholeNanos(unfinished);
            left = Math.min(left, owed.left(unfinished.sinceNanos + whole, now));
            // a peer that reads no replies makes pauses: they give it no more than its own time again
            left = Math.min(left, unfinished.beganNanos + 2 * whole - now);
        }
        if (isPostponed(call)) {
            left = Math.min(left, call.onLoop.waitsUntilNanos - now);
        }
        return now + left;
    }

    /** A message in parts has so long, by what has come of it. */
    private long wholeNanos(UnfinishedMessage unfinished) {
        return ALLOWED_STALLS * stallNanos + unfinished.allBytes * (TimeUnit.SECONDS.toNanos(1) / MIN_BYTES_PER_SECOND);
    }

    @Override
    void frameWaits(long nowNanos) {
        frameSinceNanos = owed.at(nowNanos);
        watch(nowNanos + frameLeft(nowNanos), nowNanos);
    }

    /** A frame that has begun has to be whole within this time, which is that of a request of its size. */
    private long frameLeft(long now) {
        return owed.left(frameSinceNanos + frameNanos(stallNanos), now);
    }

    /** So long a frame, or a record of TLS, has to become whole once it is more than a little. */
    static long frameNanos(long stallNanos) {
        return ALLOWED_STALLS * stallNanos
                + Wire.MAX_FRAME_BYTES * (TimeUnit.SECONDS.toNanos(1) / MIN_BYTES_PER_SECOND);
    }

    /** Sees to it that the call ends when its time is over. */
    private void watch(ServerCall call) {
        soon.add(call.id, call.deadlineNanos());
        watch(call.deadlineNanos());
    }

    private void watchEarlier(ServerCall call, long now) {
        long due = due(call, now);
        soon.add(call.id, due);
        watch(due, now);
    }

    /**
     * Sees to it that {@link #look} runs at this time. One timer serves all calls; most find it set for an earlier
     * time.
     */
    private void watch(long due) {
        if (lookTimer == null || due - nextLookNanos < 0) {
            watch(due, nanoTime());
        }
    }

    private void watch(long due, long now) {
        if (isClosed() && away.isEmpty() && dropped.isEmpty()) {
            // the call's request has ended its own connection, and nothing is left to be looked at
            return;
        }
        ScheduledFuture<?> later = lookTimer;
        if (later != null && due - nextLookNanos >= 0) {
            return;
        }
        // first: where it cannot be set the later one stays
        lookTimer = loop().schedule(this::look, Math.max(MIN_LOOK_NANOS, due - now), TimeUnit.NANOSECONDS);
        nextLookNanos = due;
        if (later != null) {
            later.cancel(false);
        } else {
            timers.add(1);
        }
    }

    private void look() {
        try {
            lookNow();
        } catch (Throwable t) {
            lookFailed(t);
        }
    }

    /**
     * Nobody would look again. So the connection ends, and with it all that is looked at; where it has ended before,
     * what goes on behind it is looked at a while later.
     */
    private void lookFailed(Throwable thrown) {
        try {
            broken(thrown);
        } finally {
            if (!loop().isShuttingDown()) {
                watch(nanoTime() + LOST_LOOK_NANOS);
            }
        }
    }

    /** Ends what has stood still for too long, and calls whose time is over: a caller may be gone without a word. */
    private void lookNow() {
        lookTimer = null;
        timers.release(1);
        endLost();
        long now = nanoTime();
        long next = lookAwayIfDue(now);
        if (isClosed() && !dropped.isEmpty()) {
            next = Math.min(next, LOST_LOOK_NANOS);
        }
        if (isFrameWaiting() && !isClosed()) {
            long left = frameLeft(now);
            if (left <= 0) {
                fail("a frame that does not come to its end");
                return;
            }
            next = Math.min(next, left);
        }
        long others = next;
        // what many calls are told whose time is over together is one write
        sendTogether(() -> {
            long first = Math.min(others, soon.isKept(now) ? soon.look(now, this::endIfDue) : endDue(now));
            if (first < Long.MAX_VALUE / 2) {
                watch(now + first, now);
            }
        });
    }

    /**
     * Ends calls whose time is over.
     *
     * @return when the next is due, from now
     */
    private long endDue(long now) {
        long next = DueSoon.NEVER;
        boolean isLarge = calls.length > MOST_PASSED;
        if (isLarge) {
            soon.begin(now);
        } else {
            soon.forget();
        }
        for (ServerCall call : calls) {
            if (call == null) {
                continue;
            }
            long left = endIfDue(call, now);
            if (left < DueSoon.NEVER) {
                next = Math.min(next, left);
                soon.add(call.id, now + left);
            } else if (isClosed()) {
                // the answer could not be written, and all calls have been ended by that
                break;
            }
        }
        return next;
    }

    private long endIfDue(int id, long now) {
        ServerCall call = call(id);
        return call == null ? DueSoon.NEVER : endIfDue(call, now);
    }

    /** @return when it is due, from now; {@link DueSoon#NEVER} if it has ended */
    private long endIfDue(ServerCall call, long now) {
        UnfinishedMessage unfinished = call.onLoop.unfinished;
        if (unfinished != null
                && owed.at(now) - unfinished.lookedNanos >= stallNanos
                && unfinished.newBytes >= MIN_BYTES_PER_LOOK) {
            unfinished.lookedNanos = owed.at(now);
            unfinished.newBytes = 0;
        }
        long left = due(call, now) - now;
        if (left > 0) {
            return left;
        }
        if (call.end()) {
            int id = call.id;
            String why = whyOver(call, now);
            boolean hasBegun = drop(call);
            refuse(
                    id,
                    RPCXException.Code.DEADLINE_EXCEEDED,
                    why,
                    hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED);
        }
        return DueSoon.NEVER;
    }

    private long leftOf(int id, long now) {
        ServerCall call = call(id);
        return call == null ? DueSoon.NEVER : due(call, now) - now;
    }

    /** Says what a call has run out of that is {@link #due}. */
    private String whyOver(ServerCall call, long now) {
        UnfinishedMessage unfinished = call.onLoop.unfinished;
        boolean isLate = call.deadlineNanos() - now <= 0;
        if (unfinished == null && !isLate) {
            return "the call could not begin in time, behind replies that waited to be read (expected: within "
                    + TimeUnit.NANOSECONDS.toMillis(2 * ALLOWED_STALLS * stallNanos) + " ms)";
        }
        if (unfinished == null || isLate && !call.onLoop.receiving) {
            return "the time of the call is over";
        }
        String what = (call.onLoop.receiving ? "the request" : "an item") + " did not come to its end in time";
        if (isLate) {
            return what;
        }
        return owed.at(now) - unfinished.lookedNanos >= stallNanos
                ? what + " (expected: " + MIN_BYTES_PER_LOOK + " bytes of it in each "
                        + TimeUnit.NANOSECONDS.toMillis(stallNanos) + " ms)"
                : what + " (expected: " + MIN_BYTES_PER_SECOND + " bytes of it a second)";
    }

    /** Where there are many, a look passes them no oftener than each tenth of a second: nobody waits for their ends. */
    private long lookAwayIfDue(long now) {
        if (away.isEmpty()) {
            return DueSoon.NEVER;
        }
        boolean isLarge = away.size() > MOST_PASSED;
        long at = isLarge && mayPassAwayNanos - awayDueNanos > 0 ? mayPassAwayNanos : awayDueNanos;
        if (isLarge && at - now > 0) {
            return at - now;
        }
        // what comes while they are passed is due by its own word
        awayDueNanos = now + DueSoon.NEVER;
        long next = 0;
        try {
            next = lookAway(now);
        } finally {
            // the next look passes all again where this one has failed
            if (now + next - awayDueNanos < 0) {
                awayDueNanos = now + next;
            }
        }
        next = awayDueNanos - now;
        mayPassAwayNanos = now + MIN_PASS_AWAY_NANOS;
        return away.size() > MOST_PASSED ? Math.max(next, MIN_PASS_AWAY_NANOS) : next;
    }

    /**
     * Ends notices whose time is over, and calls whose results nobody waits for and do not come.
     *
     * @return when the next is due, from now
     */
    private long lookAway(long now) {
        long next = Long.MAX_VALUE / 2;
        ServerCall call = away.first();
        while (call != null) {
            ServerCall following = call.onLoop.following;
            long addition = following == null ? 0 : following.onLoop.addition;
            long left = call.onLoop.awayUntilNanos - now;
            if (left > 0) {
                next = Math.min(next, left);
            } else if (call.isCancelled()) {
                giveUp(call);
            } else {
                cancel(call);
                if (!isWithdrawn(call, RPCXException.Code.DEADLINE_EXCEEDED, "no thread was free in its time")) {
                    away.remove(call);
                    if (call.isAwaiting()) {
                        addAway(call, now + Awaited.GRACE_NANOS);
                        next = Math.min(next, Awaited.GRACE_NANOS);
                    } else {
                        dropped(call);
                    }
                }
            }
            // the end of one may be the end of the connection, and of others with it, or put them at the list's end
            call = following == null || away.hasKept(following, addition) ? following : away.first();
        }
        return next;
    }

    /** A notice has been cancelled. @return whether that is its end, since no thread has come to it */
    private boolean isWithdrawn(ServerCall call, RPCXException.Code code, String why) {
        if (!withdraw(call)) {
            return false;
        }
        ServerMethod method = call.method();
        recycle(call);
        noticeFailed(method, RPCXException.refused(code, why));
        return true;
    }

    /** Takes back what waits for a thread to run the call. @return false if there is nothing */
    private boolean withdraw(ServerCall call) {
        PoolShares.Task handed = call.handed;
        if (handed == null || !threads.withdraw(call.method().place(), handed)) {
            return false;
        }
        if (handed != call) {
            postponed(call).notStarted();
        }
        return true;
    }

    private void addAway(ServerCall call, long until) {
        call.onLoop.awayUntilNanos = until;
        if (away.isEmpty() || until - awayDueNanos < 0) {
            awayDueNanos = until;
        }
        if (!away.contains(call)) {
            dropped.remove(call);
            away.add(call);
        }
    }

    /** Nobody waits for the call any more, and its handler will end it. */
    private void dropped(ServerCall call) {
        if ((call.onLoop.handling || call.onLoop.isOverButThreads) && call.onLoop.list == null) {
            dropped.add(call);
        }
    }

    /** A handler runs on for a call that is over. */
    private void cancelBehind(ServerCall call) {
        try {
            cancel(call);
        } finally {
            away.remove(call);
            dropped(call);
        }
    }

    @Override
    public void cutOff() {
        inLoopOrHere(() -> {
            if (channel.isOpen()) {
                channel.close();
            }
            endLost();
            int unbegun = 0;
            int interrupted = 0;
            for (ServerCall call = away.first(); call != null; call = away.first()) {
                try {
                    if (call.onLoop.isOverButThreads) {
                        cancelBehind(call);
                        continue;
                    }
                    if (call.notice && !call.isCancelled()) {
                        if (cancel(call)) {
                            interrupted++;
                        } else {
                            unbegun++;
                        }
                        if (isWithdrawn(call, RPCXException.Code.UNAVAILABLE, "the server has stopped")) {
                            continue;
                        }
                    }
                    giveUp(call);
                } catch (Throwable t) {
                    // this one ends as it can, and the others all the same
                    ThreadTools.report(t);
                    giveUp(call);
                }
            }
            stopLooking();
            server.noticesCutOff(unbegun, interrupted);
        });
    }

    /** After this no handler begins any more. Any thread may ask. */
    boolean isCutOff() {
        return server.isCutOff();
    }

    @Override
    boolean isSentLater() {
        // the look for calls that nobody ends sends what is queued first: the call of this message is none of them
        lost.isAny = true;
        try {
            lost.tell();
        } catch (Throwable again) {
            // it comes with the next look at the time of a call
        }
        return true;
    }

    @Override
    void endLost() {
        if (lost.isAny) {
            lost.look(this::endAllLost);
        }
    }

    /** @return false if it cannot be said yet which calls are lost */
    private boolean endAllLost() {
        // what has come to the queue, or has left already, is not lost; nor is what stands in it still
        if (!sendQueued()) {
            return false;
        }
        beforeRead();
        for (int i = 0; i < calls.length; i++) {
            ServerCall call = calls[i];
            if (call != null && call.isLost()) {
                endLost(call);
            }
        }
        endLost(away);
        endLost(dropped);
        return true;
    }

    private void endLost(CallList list) {
        ServerCall call = list.first();
        while (call != null) {
            boolean isLost = call.isLost();
            if (isLost) {
                endLost(call);
            }
            call = isLost ? list.first() : call.onLoop.following;
        }
    }

    private void endLost(ServerCall call) {
        if (call.onLoop.isOverButThreads) {
            recycle(call);
            return;
        }
        int id = call.id;
        boolean isExecuted = call.isExecuted();
        boolean hasBegun = call.hasBegun();
        call.leaveStages();
        if (call.onLoop.abandoned) {
            // where this fails the call is lost still, and is found again
            call.leave();
            recycle(call);
            return;
        }
        handled(call);
        call.end();
        drop(call);
        RPCXException.Executed unsure = hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
        refuse(
                id,
                RPCXException.Code.HANDLER_FAILED,
                "the thread that had the result has failed over it",
                isExecuted ? RPCXException.Executed.EXECUTED : unsure);
    }

    private void giveUp(ServerCall call) {
        if (call.giveUp()) {
            recycle(call);
        } else {
            away.remove(call);
            dropped(call);
        }
    }

    /** Gives the handler's future some time to end. */
    private void linger(ServerCall call) {
        long now = nanoTime();
        addAway(call, now + Awaited.GRACE_NANOS);
        if (leaving || loop().isShuttingDown()) {
            giveUp(call);
        } else {
            watch(now + Awaited.GRACE_NANOS, now);
        }
    }

    /** The handler's thread says that a handler whose caller is gone has brought a future. */
    void awaitsForNobody(ServerCall call) {
        inLoopOrHere(() -> {
            try {
                if (call.isAwaiting() && call.isCancelled()) {
                    linger(call);
                }
            } catch (Throwable t) {
                lookFailed(t);
            }
        });
    }

    /**
     * Sends the items of what a handler returned. It is called on the handler's thread; the publisher is subscribed
     * where the handler runs.
     */
    void stream(ServerCall call, @Nullable Object result) {
        if (!(result instanceof Flow.Publisher<?>)) {
            call.finish(null, call.failedHere(new IllegalStateException(ServerMethod.NO_STREAM)));
            return;
        }
        @SuppressWarnings("unchecked") // the codec refuses items of another type
        Flow.Publisher<Object> publisher = (Flow.Publisher<Object>) result;
        Opening begins = new Opening(call, publisher);
        opening.incrementAndGet();
        boolean isHandedOver = false;
        try {
            inLoopOrHere(begins);
            isHandedOver = true;
        } finally {
            if (!isHandedOver) {
                begins.opened();
            }
        }
    }

    /** A stream that counts as opening, until its publisher is about to be subscribed to, or will not be. */
    private final class Opening extends AtomicBoolean implements Runnable {
        private static final long serialVersionUID = 1;

        private final transient ServerCall call;
        private final transient Flow.Publisher<Object> publisher;

        Opening(ServerCall call, Flow.Publisher<Object> publisher) {
            this.call = call;
            this.publisher = publisher;
        }

        /** Any thread says so. A second time does nothing. */
        void opened() {
            if (compareAndSet(false, true)) {
                ServerConnection.this.opened();
            }
        }

        @Override
        public void run() {
            if (!get()) {
                startStream(call, publisher, this);
            }
            // otherwise the loop has taken it from a thread that has failed over that, and the call is ended as lost
        }
    }

    private void startStream(ServerCall call, Flow.Publisher<Object> publisher, Opening begins) {
        call.onLoop.handling = false;
        if (call.resumed) {
            postponedStreams.resumedHasEnded(call);
        }
        if (call.onLoop.abandoned || isClosed()) {
            begins.opened();
            if (publisher instanceof WatchedStream watched) {
                // a log may block
                callThreads.tellIfPossible(call, List.of(() -> watched.ended(null)));
            }
            recycle(call);
            return;
        }
        int id = call.id;
        try {
            subscribeTo(call, publisher, begins);
        } catch (Throwable t) {
            if (call(id) == call) {
                // nobody else would end it
                call.onLoop.handling = true;
                call.lose(id);
            }
            begins.opened();
            throw t;
        }
        // the stream may go on for long, and its handler's place is free
        resumeIfWaiting();
    }

    private void subscribeTo(ServerCall call, Flow.Publisher<Object> publisher, Opening begins) {
        // from here on the stream's threads have the call's place alone
        uncountNow(call);
        AtomicReference<@Nullable StreamSender> self = new AtomicReference<>();
        ServerMethod method = call.method();
        HandledContext its = call.context();
        StreamSender sender = new StreamSender(
                this,
                call.id,
                method.result(),
                Wire.REPLY,
                thrown -> {
                    ByteBuf error = Unpooled.buffer();
                    WireError.write(error, ServerCall.failed(thrown, method, its));
                    Objects.requireNonNull(self.get()).addLast(Wire.ERROR, error);
                },
                () -> replied(call),
                callThreads.signalsOf(call));
        self.set(sender);
        call.sender = sender;
        call.giveUpBody();
        if (call.onLoop.credit > 0) {
            sender.onCredit(call.onLoop.credit);
        }
        sender.subscribeTo(publisher, begins::opened);
    }

    /**
     * Keeps a request that came in one frame, for a handler on another thread.
     *
     * @return false if the call has been refused
     */
    private boolean holdWhole(ServerCall call, ByteBuf request) {
        if (request.readableBytes() > uncharged.bodyBytes()) {
            return holdCounted(call, request);
        }
        call.body.writeBytes(request);
        return true;
    }

    /** @return false if too much of requests is held already, and the call has been refused */
    private boolean holdCounted(ServerCall call, ByteBuf bytes) {
        long growth = HeapArray.growth(call.body, bytes.readableBytes());
        if (growth == 0 || call.charges().request.add(growth)) {
            HeapArray.grow(call.body, bytes.readableBytes());
            call.body.writeBytes(bytes);
            return true;
        }
        int id = call.id;
        drop(call);
        refuse(id, RPCXException.Code.OVERLOADED, "too many bytes of requests under way on this connection or server");
        return false;
    }

    private void onCancel(int id) {
        ServerCall call = call(id);
        if (call != null && call.end()) {
            boolean hasBegun = drop(call);
            refuse(
                    id,
                    RPCXException.Code.CANCELLED,
                    "cancelled",
                    hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED);
        }
    }

    /**
     * Ends a call before its reply has left: its handler is told, its slot is free, what it still brings is dropped.
     *
     * @return false if its handler has not begun, and will not
     */
    private boolean drop(ServerCall call) {
        boolean isExecuted;
        recall(call);
        try {
            freeSlot(call);
        } finally {
            call.onLoop.abandoned = true;
            isExecuted = abandon(call);
        }
        return isExecuted;
    }

    /**
     * Nobody waits for the call any more; it is recycled here or, where its handler runs, at the handler's end.
     *
     * @return as {@link #drop}
     */
    private boolean abandon(ServerCall call) {
        boolean isDone = false;
        try {
            boolean hasBegun = abandonHere(call);
            isDone = true;
            return hasBegun;
        } finally {
            if (!isDone) {
                keepInSight(call);
            }
        }
    }

    /**
     * The end of a call has failed half way, as where the memory is at its end: a later look finds it, or its handler
     * ends it, or else it ends here.
     */
    private void keepInSight(ServerCall call) {
        if (call.onLoop.isRecycled) {
            return;
        }
        if (!call.onLoop.handling && !call.onLoop.isOverButThreads) {
            // neither its handler nor a thread of its own would end it
            try {
                call.leave();
            } finally {
                recycle(call);
            }
            return;
        }
        if (call.onLoop.list != null) {
            return;
        }
        if (!call.isAwaiting()) {
            dropped(call);
            return;
        }
        try {
            linger(call);
        } catch (Throwable again) {
            // by now it is in its list
        }
    }

    private boolean abandonHere(ServerCall call) {
        // the look comes before its stream ends, by which its handler may end here and now and recycle the call
        boolean handled = call.onLoop.handling;
        boolean hasBegun;
        try {
            hasBegun = handled ? cancel(call) : call.hasBegun();
            if (handled && withdraw(call)) {
                // nothing would end it but the thread for which it has waited
                handled = false;
                call.onLoop.handling = false;
            } else if (!handled
                    && hasBegun
                    && (call.method().brings() || call.context().isHandlerBehind())) {
                // its handler has ended, and what it wanted to be told is of its stream; or it runs behind an answer
                // that has not left
                call.cancel();
            }
        } finally {
            // also where a cancel has found no memory: a handler may wait for them, and nobody else ends them
            endStreams(call);
        }
        if (call.onLoop.isRecycled) {
            return hasBegun;
        }
        if (!handled) {
            call.leave();
            recycle(call);
        } else if (call.isAwaiting()) {
            linger(call);
        } else {
            dropped(call);
        }
        return hasBegun;
    }

    /** @return as {@link #drop} */
    private boolean cancel(ServerCall call) {
        boolean hasBegun = call.cancel();
        if (!hasBegun) {
            // it waits for a thread that will not run it
            uncount(call);
        }
        // what stands before the method may have held it until now
        return hasBegun && call.isExecuted();
    }

    private static void endStreams(ServerCall call) {
        StreamSender sender = call.sender;
        StreamReceiver receiver = call.receiver;
        try {
            try {
                if (sender != null) {
                    sender.cancel();
                }
            } finally {
                if (receiver != null) {
                    receiver.end(new RPCXException(RPCXException.Code.CANCELLED, "the caller is gone"));
                }
            }
        } catch (Throwable t) {
            // such as a stack at its end: the call's place and its count come back all the same
            ThreadTools.report(t);
        }
    }

    private @Nullable ServerCall call(int id) {
        int slot = id & Wire.SLOT_MASK;
        ServerCall call = slot < calls.length ? calls[slot] : null;
        return call != null && call.id == id ? call : null;
    }

    private void refuseLarge(int id) {
        refuse(
                id,
                RPCXException.Code.TOO_LARGE,
                "a request of more than " + server.settings().maxMessageBytes() + " bytes");
    }

    private void refuse(int id, RPCXException.Code code, String text) {
        refuse(id, code, text, RPCXException.Executed.NOT_EXECUTED);
    }

    private void refuseOverloaded(int id) {
        if (isBehind()) {
            refuse(id, RPCXException.Code.OVERLOADED, "");
        } else {
            sendNow(new Outbound.Control(Wire.ERROR, id, OVERLOADED.duplicate()));
        }
    }

    /**
     * Many refusals at once have no text from some on: they cost their peer's reader, and this side, hardly more than
     * the requests did.
     */
    private void refuse(int id, RPCXException.Code code, String text, RPCXException.Executed executed) {
        ByteBuf body = Unpooled.buffer(FIRST_ERROR_BYTES);
        WireError.write(body, new RPCXException(code, isBehind() ? "" : text, executed, null));
        sendNow(new Outbound.Control(Wire.ERROR, id, body));
    }

    private void freeSlot(ServerCall call) {
        int slot = call.id & Wire.SLOT_MASK;
        if (slot < calls.length) {
            calls[slot] = null;
        }
        underWay.calls--;
        closeIfLeft();
    }

    /** The last byte of the reply is on its way. */
    void replied(ServerCall call) {
        StreamReceiver receiver = call.receiver;
        if (receiver != null) {
            receiver.end(new RPCXException(RPCXException.Code.CANCELLED, "the call is over"));
        }
        if (!call.onLoop.isRecycled) {
            try {
                freeSlot(call);
            } finally {
                recycle(call);
            }
        }
    }

    /**
     * Charges a reply that cannot leave now; what its handler's thread has charged for it counts. While the client
     * reads this is one look. Where there is no room, the caller is told that instead of its reply.
     */
    void holdIfItWaits(ServerCall call) {
        int bytes = call.body.readableBytes();
        boolean reads = channel.isWritable();
        if (reads && bytes <= Wire.MAX_PAYLOAD_BYTES) {
            return;
        }
        call.giveUpRequest(!reads);
        if (call.charges().reply.set(call.replyBytes())) {
            call.waits = true;
            replyHeld();
        } else {
            call.refuseReply();
        }
    }

    /**
     * Ends the use of a call that neither its handler nor its reply needs any more; once. What a stream's end runs may
     * end its own call and others of the connection within it, also while each call is given up in turn.
     */
    void recycle(ServerCall call) {
        if (call.onLoop.isRecycled) {
            return;
        }
        handled(call);
        // first: what this throws leaves the call in its list, where it is found
        call.onLoop.isOverButThreads = !call.endUnlessThreads();
        CallList in = call.onLoop.list;
        if (in != null) {
            in.remove(call);
        }
        if (call.resumed) {
            postponed(call).resumedHasEnded(call);
        }
        if (call.onLoop.isOverButThreads) {
            // its reply has left, or nobody will get it: none waits to be read for as long as those threads run
            call.giveUpReply();
            lendPlace(call);
            goesOnWithThreads(call);
            if (!isClosed()) {
                resumeIfWaiting();
            }
            return;
        }
        if (call.onLoop.isPlaceLent) {
            call.onLoop.isPlaceLent = false;
            lentPlaces--;
        }
        call.onLoop.isRecycled = true;
        // the last of its threads may have ended since the look at them
        uncountNow(call);
        endStreams(call);
        call.forget();
        call.releaseCharges();
        endIfOver();
        if (call.isPlaceLeft) {
            // this object has no other use, as its place is not this connection's any more
            call.releasePlace();
            places.handOver(1);
        } else if (isClosed()) {
            call.releasePlace();
            places.release(1);
        } else {
            keep(call);
        }
        if (!isClosed()) {
            resumeIfWaiting();
        }
    }

    /**
     * Threads run for a call that is over. Where an interceptor has answered in its handler's place, that is cancelled
     * when the time of the call is over, as it would be otherwise, and at once behind the end of the connection.
     */
    private void goesOnWithThreads(ServerCall call) {
        if (call.isCancelled() || !call.context().isHandlerBehind()) {
            dropped.add(call);
        } else if (isOver) {
            // first: a cancel may be the call's end
            dropped.add(call);
            call.cancel();
        } else {
            addAway(call, call.deadlineNanos());
            watch(call.deadlineNanos());
        }
    }

    /**
     * The client has the end of a call, and may have as many others as ever: the place that the call's threads keep for
     * a while is none of those that the client was told.
     */
    private void lendPlace(ServerCall call) {
        if (!call.isCancelled()
                && !call.onLoop.isPlaceLent
                && lentPlaces < server.settings().maxCalls()) {
            call.onLoop.isPlaceLent = true;
            lentPlaces++;
        }
    }

    private void endIfOver() {
        if (isOver && away.isEmpty() && dropped.isEmpty()) {
            stopLooking();
            server.ended(channel);
        }
    }

    /** Keeps a place for the next call. */
    private void keep(ServerCall call) {
        boolean isKept = false;
        try {
            if (freePlaces < MAX_FREE) {
                call.keepBody();
                // without a fence: the event loop alone has it
                Outbound.NEXT.set(call, (Outbound) free);
                free = call;
                freePlaces++;
                isKept = true;
            }
        } finally {
            if (!isKept) {
                call.releasePlace();
                places.release(1);
            }
        }
    }

    @Override
    public void leave() {
        loop().execute(() -> {
            if (!leaving) {
                leaving = true;
                beforeRead();
                sendNow(Wire.GOAWAY, 0);
            }
        });
    }

    private void closeIfLeft() {
        if (clientLeft && underWay.calls == 0 && !isCloseOrdered) {
            loop().execute(() -> close("both sides are done"));
            // behind it, as it may fail; and once, as a client may say that it leaves in each frame of a read
            isCloseOrdered = true;
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        boolean reads = channel.isWritable();
        if (!reads || !isReading()) {
            // a channel within this process would read on within the read that is under way, whose end resumes it
            readUnlessFull();
        }
        super.channelWritabilityChanged(ctx);
        if (reads) {
            postponedStreams.resumeOne();
        }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        super.channelReadComplete(ctx);
        readUnlessFull();
    }

    /**
     * A client that does not read its replies may send no more requests until it does; behind the end all is read. One
     * that reads slowly makes room again and again, which is full at once with more of its replies: each time something
     * is read before the next pause, or nothing of an upload would ever leave its client.
     */
    private void readUnlessFull() {
        if (isClosed() || channel.isWritable()) {
            if (!channel.config().isAutoRead()) {
                // what the peer has said meanwhile, such as the answer to a PING, is still to be read
                hear();
                readsBeforeResume = reads();
                owed.setReading(true);
            }
        } else if (reads() != readsBeforeResume && channel.config().isAutoRead()) {
            owed.setReading(false);
        }
    }

    /** Nothing has been heard for a while: places and slots that no call has are given up. */
    @Override
    void rest() {
        super.rest();
        cutTables();
        giveUpPlaces(freePlaces);
    }

    /**
     * A burst has made places and slots that a lively connection may never need again. Those that it does need are made
     * anew at once, and calls pay nothing for it that nobody counts how many places these are.
     */
    @Override
    void shed() {
        super.shed();
        cutTables();
        giveUpPlaces(freePlaces - freePlaces / 2);
    }

    @Override
    public void giveUpIdlePlaces() {
        if (account.held(Resource.CALLS) == 0 || !isAskedForPlaces.compareAndSet(false, true)) {
            return;
        }
        boolean isAsked = false;
        try {
            inLoopOrHere(this::giveUpIdlePlacesNow);
            isAsked = true;
        } finally {
            if (!isAsked) {
                isAskedForPlaces.set(false);
            }
        }
    }

    private void giveUpIdlePlacesNow() {
        isAskedForPlaces.set(false);
        giveUpPlaces(freePlaces);
    }

    /** Those that were used last stay. */
    private void giveUpPlaces(int count) {
        ServerCall last = null;
        ServerCall call = free;
        for (int left = freePlaces - count; left > 0 && call != null; left--) {
            last = call;
            call = (ServerCall) call.next;
        }
        if (last == null) {
            free = null;
        } else {
            last.next = null;
        }
        for (int i = 0; i < count && call != null; i++, call = (ServerCall) call.next) {
            call.releasePlace();
        }
        freePlaces -= count;
        places.release(count);
    }

    private void stopLooking() {
        if (lookTimer != null) {
            lookTimer.cancel(false);
            lookTimer = null;
            timers.release(1);
        }
    }

    /**
     * Ends one of several calls. What that throws, such as a stream's end that finds no thread, does not keep the
     * others from theirs.
     */
    private void abandonSafely(ServerCall call) {
        if (call.onLoop.isRecycled) {
            // the end of one before it has ended this one
            return;
        }
        try {
            abandon(call);
        } catch (Throwable t) {
            ThreadTools.report(t);
        }
    }

    /**
     * Each of these steps comes also where the one before it fails, as where the memory is at its end: somebody waits
     * for it.
     */
    @Override
    void onClosed(String why) {
        try {
            beforeRead();
            keepAlive.stop();
            greeting.cancel(false);
            stopLooking();
            timers.release();
        } finally {
            abandonAll();
        }
    }

    private void abandonAll() {
        try {
            for (ServerCall call : calls) {
                if (call != null) {
                    abandonSafely(call);
                }
            }
            ServerCall call = away.first();
            while (call != null) {
                ServerCall following = call.onLoop.following;
                if (call.onLoop.isOverButThreads) {
                    try {
                        cancelBehind(call);
                    } catch (Throwable t) {
                        // the others are cancelled all the same
                        ThreadTools.report(t);
                    }
                }
                call = following;
            }
            running.connectionGone();
            threads.connectionGone();
        } finally {
            leaveTables();
        }
    }

    private void leaveTables() {
        // a handler may hold this connection for long, and its tables are not charged any more
        calls = NO_CALLS;
        lastIds = NO_IDS;
        slotBytes.release();
        underWay.calls = 0;
        try {
            watchLeft();
        } finally {
            leavePlaces();
        }
    }

    private void leavePlaces() {
        try {
            giveUpPlaces(freePlaces);
        } finally {
            isOver = true;
            endIfOver();
        }
    }

    /** What goes on behind the end of the connection is looked at. */
    private void watchLeft() {
        try {
            for (ServerCall call = away.first();
                    call != null && !loop().isShuttingDown();
                    call = call.onLoop.following) {
                watch(call.onLoop.awayUntilNanos);
            }
            if (!dropped.isEmpty() && !loop().isShuttingDown()) {
                watch(nanoTime() + LOST_LOOK_NANOS);
            }
        } catch (Throwable t) {
            lookFailed(t);
        }
    }
}
