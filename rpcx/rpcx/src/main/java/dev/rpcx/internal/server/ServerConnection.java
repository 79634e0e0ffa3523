package dev.rpcx.internal.server;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.RunOn;
import dev.rpcx.codec.Codec;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.call.WatchedStream;
import dev.rpcx.internal.io.ReadingClock;
import dev.rpcx.internal.io.TlsEngine;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.ledger.UnchargedAllowance;
import dev.rpcx.internal.wire.KeepAlive;
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
 * Server side of one connection on the native wire. It reads requests, runs their handlers, and sends the results.
 *
 * <p>The class is longer than 400 lines because its slots, their states and the bytes that they hold change together on
 * the event loop, and no other code may change them.
 */
public final class ServerConnection extends WireConnection implements ServedConnection {
    /**
     * Minimum number of bytes of an unfinished message that have to arrive in each period of {@link #stallNanos}. If
     * fewer arrive, the call of the message is ended.
     */
    private static final int MIN_BYTES_PER_LOOK = 1024;

    /**
     * Minimum rate at which a message in parts has to arrive, in bytes a second. In addition, each message has
     * {@code ALLOWED_STALLS} times {@link #stallNanos}. If a message takes longer than both together, its call is
     * ended. Source: Jetty, minRequestDataRate.
     */
    private static final int MIN_BYTES_PER_SECOND = 16 * 1024;

    private static final int ALLOWED_STALLS = 3;

    /**
     * Interval at which the server checks calls whose handlers outlast their connection. The thread that runs such a
     * handler may have failed to end its call.
     */
    static final long LOST_CHECK_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** Number of bytes that one slot takes in the two tables {@link #calls} and {@link #lastIds} together. */
    private static final int SLOT_BYTES = 8;

    /** Number of slots in its tables for which a connection is not charged. */
    private static final int UNCHARGED_SLOTS = 64;

    private static final int FIRST_ERROR_BYTES = 64;

    private static final ServerCall[] NO_CALLS = {};
    private static final int[] NO_IDS = {};

    /**
     * Minimum time from now to the next check for due calls. Clients choose the deadlines of calls, and could otherwise
     * cause any number of checks.
     */
    private static final long MIN_CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MIN_CHECK_DETACHED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Maximum length of a table or list of calls that every check of due calls goes through completely. */
    private static final int MAX_CHECKED_FULLY = 64;

    private static final String NO_THREAD = "the server has no thread for the call";

    /**
     * Body of the ERROR frame for a call that is not admitted. It is encoded only once, since refusing a call has to be
     * cheap.
     */
    private static final ByteBuf OVERLOADED = Unpooled.buffer();

    static {
        WireError.write(
                OVERLOADED,
                RPCXException.refused(
                        RPCXException.Code.OVERLOADED, "the server has more to do than it can finish in time"));
    }

    private final ServerCore server;
    final ConnectionThreads threads;
    final UnchargedAllowance uncharged;

    /** Calls under way, by slot; null for a slot without a call. Grows with the highest slot of an admitted call. */
    private @Nullable ServerCall[] calls = new ServerCall[8];

    /**
     * Id of the last call in each slot, so that a request that is sent twice is not executed twice. The ids of slots
     * that have not been used for some time are forgotten: see {@link #cutTables}.
     */
    private int[] lastIds = new int[calls.length];

    /**
     * Slot from which on all slots are unused. None of these slots had a call at the last check by {@link KeepAlive},
     * and no request has named one of them since.
     */
    private int firstUnusedSlot;

    /**
     * Charge for the entries of {@link #calls} and {@link #lastIds} beyond the first {@link #UNCHARGED_SLOTS} slots.
     */
    private final Charge slotBytes;

    /**
     * Whether a task that gives back the connection's free places is queued on the event loop. A place is room for one
     * call, for which the connection is charged.
     */
    private final AtomicBoolean isTrimQueued = new AtomicBoolean();

    private final PostponedCalls postponedCalls = new PostponedCalls(this, this::unreadBytes);

    /**
     * Postponed calls of methods that return streams. Like the calls in {@code postponedCalls}, they wait for the
     * client to read replies, but also for it to read items of its streams.
     */
    private final PostponedCalls postponedStreams = new PostponedCalls(this, this::unreadStreamBytes);

    /** Number of streams whose handlers have returned a publisher to which the server has not subscribed yet. */
    private final AtomicInteger opening = new AtomicInteger();

    private Settings client = Settings.INITIAL;
    private volatile int maxReplyBytes = Wire.MAX_MESSAGE_BYTES;
    private final UnderWay underWay = new UnderWay();
    private final RequestReader request;
    final SentReplies sentReplies = new SentReplies(this, underWay);

    final Admission admission;

    /**
     * Calls that have no slot any more, but have a time limit. These are notices, calls without a caller whose
     * handlers' futures have not ended, and calls that an interceptor has answered while the handler runs on.
     */
    private final CallList detached = new CallList();

    /** Earliest time at which a call in {@link #detached} may be due. Meaningless while the list is empty. */
    private long detachedDueNanos;

    /**
     * Time before which {@link #detached} is not checked if it has more than {@code MAX_CHECKED_FULLY} calls. A shorter
     * list is checked each time that the timer fires.
     */
    private long mayCheckDetachedNanos;

    /** Calls that have neither a slot nor a time limit. They end when their handlers or further threads end. */
    private final CallList dropped = new CallList();

    /** Flag that says whether there may be lost calls, which no thread will end. Any thread may set it. */
    final LostCalls lost = new LostCalls(() -> inLoopOrHere(this::endLost));

    final CallThreads callThreads;

    private final KeepAlive keepAlive;
    private @Nullable Principal peer;
    private final FloodGuard guard;

    /** Whether this server has sent GOAWAY on the connection. Event loop only. */
    private boolean draining;

    /** Whether the client has sent GOAWAY. Event loop only. */
    private boolean goAwayReceived;

    /** Whether a task that closes the connection after the client's GOAWAY has been queued. Event loop only. */
    private boolean isCloseOrdered;

    /** Whether the connection has ended, and all its calls have been notified of that. */
    private boolean isOver;

    private boolean greeted;

    /** Charge for the two timers {@link #greeting} and {@link #checkTimer}. */
    private final Charge timers;

    private final ScheduledFuture<?> greeting;
    private final long stallNanos;

    private final ReadingClock readingClock;

    /**
     * Value that {@link #reads} had when the last pause in reading ended; -1 if there has been no pause. As long as
     * {@link #reads} still has this value, nothing has been read since.
     */
    private int readsBeforeResume = -1;

    /** Time at which an incomplete frame became large enough to be charged, by {@link #readingClock}. */
    private long frameSinceNanos;

    private @Nullable ScheduledFuture<?> checkTimer;
    private long nextCheckNanos;

    /** Calls that are due soon. With them, most checks need not go through all calls. */
    private final DueSoon dueSoon = new DueSoon(this::leftOf, this::nanoTime);

    /**
     * Holds the number of calls that have a slot. It is an object of its own because the number changes with each call,
     * and should not share a cache line with fields of the connection that other threads read.
     */
    static final class UnderWay {
        int calls;
    }

    /**
     * Creates the server side of an accepted connection.
     *
     * @param takenNanos time at which the connection was accepted. From then on, the peer has {@link #stallNanos} to
     *     send its complete preface
     */
    public ServerConnection(Channel channel, ServerCore server, Account account, long takenNanos) {
        super(channel, account);
        this.server = server;
        this.threads = new ConnectionThreads(server.threads(), loop(), account);
        this.callThreads = new CallThreads(loop(), this::inLoopOrHere, threads, lost);
        this.uncharged = account.uncharged();
        this.request = new RequestReader(server);
        this.admission = new Admission(this, server, account);
        this.slotBytes = account.charge(Resource.TABLE_BYTES);
        account.setCallCounter(this::busy);
        this.keepAlive = new KeepAlive(this, server.keepAliveNanos());
        this.guard = new FloodGuard(loop().ticker());
        this.stallNanos = Sniffer.silentNanos(server);
        this.readingClock = ReadingClock.of(channel);
        this.mayCheckDetachedNanos = takenNanos;
        this.timers = account.charge(Resource.TIMERS);
        long left = takenNanos + stallNanos - nanoTime();
        greeting = loop().schedule(this::endUngreeted, Math.max(0, left), TimeUnit.NANOSECONDS);
        timers.add(1);
    }

    /**
     * Returns the number of calls whose handlers run or whose replies have not been sent. The number is exact only
     * while no call starts or ends.
     */
    private long busy() {
        return admission.taken() - sentReplies.count();
    }

    /**
     * Returns the principal that the client's certificate names; null if there is none. It is set before the first
     * request.
     */
    @Nullable
    Principal peer() {
        return peer;
    }

    @Override
    public int maxBytesTaken() {
        return maxReplyBytes;
    }

    // ---- for the threads of handlers

    /** Returns whether calls of this method have to wait until the client has read more. Any thread may call this. */
    boolean isCongested(ServerMethod method) {
        if (!method.returnsStream()) {
            return postponedCalls.isCongested();
        }
        // this connection is not notified when a stream makes an item, so the number of unread bytes is checked now
        postponedStreams.unreadHasGrown();
        return postponedStreams.isCongested();
    }

    /**
     * Called when a large reply has been charged, or could not be charged, so that further calls may have to wait. Any
     * thread may call this.
     */
    void replyHeld() {
        postponedCalls.unreadHasGrown();
    }

    @Override
    public long replyBytes() {
        return account.held(Resource.REPLY_BYTES);
    }

    /**
     * Returns the number of bytes of replies that the client has not read, including those in the socket's queue. Any
     * thread may call this.
     */
    private long unreadBytes() {
        return account.held(Resource.REPLY_BYTES) + account.held(Resource.QUEUE_BYTES);
    }

    /**
     * Returns the number of bytes of replies and streams that the client has not read. A stream that is being opened
     * counts as {@code StreamSender.WINDOW_BYTES}, for its first items. Any thread may call this.
     */
    private long unreadStreamBytes() {
        return unreadBytes() + account.held(Resource.ITEM_BYTES_OUT) + (long) StreamSender.WINDOW_BYTES * opening.get();
    }

    /**
     * Stops counting a stream in {@code opening}, since the server has subscribed to its publisher or will not do so.
     * Any thread may call this.
     */
    private void opened() {
        opening.decrementAndGet();
        if (postponedStreams.isCongested()) {
            inLoopOrHere(postponedStreams::resumeIfWaiting);
        }
    }

    // ---- for the event loop

    private PostponedCalls postponed(ServerCall call) {
        return call.method().returnsStream() ? postponedStreams : postponedCalls;
    }

    /**
     * Makes a call wait until its caller has read enough of earlier replies and items, and the call is admitted. If
     * that takes longer than 2 * {@code ALLOWED_STALLS} * {@link #stallNanos}, the call is ended. If there is no room
     * for the charge of a waiting call, the call is refused.
     */
    void postpone(ServerCall call) {
        if (!call.chargeWaiting()) {
            refuseAdmission(call);
            return;
        }
        long now = nanoTime();
        call.loopState.waitsUntilNanos = now + 2 * ALLOWED_STALLS * stallNanos;
        postponed(call).add(call);
        if (isPostponed(call)) {
            watchEarlier(call, now);
        }
    }

    private boolean isPostponed(ServerCall call) {
        return postponedCalls.has(call) || postponedStreams.has(call);
    }

    /**
     * Admits a call that has waited for its caller to read. If there is no room, the call waits until another handler
     * of the connection has ended. It is refused only if no handler runs: all waiting calls come here at the same
     * moment, and would otherwise be refused together.
     *
     * @return false if the call has to go on waiting; true if it has been admitted or refused
     */
    boolean enterPostponed(ServerCall call) {
        if (admission.enter(call, call.method())) {
            // the limit must not measure how long the caller took to read
            call.restartAdmissionClock(nanoTime());
            return true;
        }
        if (admission.isAnyRunning()) {
            return false;
        }
        refuseAdmission(call);
        return true;
    }

    /**
     * Starts calls that have waited for their caller to read, if it has read enough. Called when a handler has ended or
     * the caller has read.
     */
    private void resumeIfWaiting() {
        postponedCalls.resumeIfWaiting();
        postponedStreams.resumeIfWaiting();
    }

    @Override
    public void unsentChanged() {
        resumeIfWaiting();
    }

    @Override
    public void beforeRead() {
        sentReplies.endUnseen();
    }

    @Override
    public void onPreface(int version) {
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
        server.register(channel, this);
    }

    /** Ends the connection of a client that has not sent its complete preface in time. */
    private void endUngreeted() {
        if (!greeted) {
            abort("the preface was begun and not ended in time");
        }
    }

    @Override
    public void onFrame(int head, int id, ByteBuf payload) {
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
                guard.settingsReceived();
                client = Settings.read(payload);
                maxReplyBytes = client.maxMessageBytes();
            }
            case Wire.GOAWAY -> {
                goAwayReceived = true;
                sentReplies.leave();
                closeIfDrained();
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
                // frames of later versions of the wire, and frames that mean nothing to a server, are ignored
            }
        }
        if (type != Wire.REQUEST && type != Wire.NOTICE) {
            // code of users may have run on this thread for any length of time, so the cached time may be out of date
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
        useSlot(slot, id);
        guard.requested();
        request.read(head, payload, notice, client.defaultMicros());
        Metadata metadata = request.takeMetadata();
        if (goAwayReceived) {
            refuse(id, RPCXException.Code.UNAVAILABLE, "a request after the client's GOAWAY");
            return;
        }
        RPCXException.Code refusedAs = request.refusedAs();
        if (refusedAs != null) {
            refuse(id, refusedAs, request.why());
            return;
        }
        boolean more = (head & Wire.MORE) != 0;
        ServerCall call = admit(id, metadata, more, notice);
        if (call == null) {
            return;
        }
        calls[slot] = call;
        underWay.calls++;
        if (more) {
            receive(call, payload);
        } else {
            dispatch(call, payload);
        }
    }

    private void useSlot(int slot, int id) {
        if (slot >= firstUnusedSlot) {
            firstUnusedSlot = slot + 1;
        }
        if (slot >= calls.length) {
            return;
        }
        if (calls[slot] != null) {
            throw new WireFault("a request in slot " + slot + ", which has a call under way");
        }
        if (lastIds[slot] == id) {
            throw new WireFault("call id " + Integer.toHexString(id) + " twice running (expected: another generation)");
        }
        lastIds[slot] = id;
    }

    /**
     * Begins the call of the request that has just been read. If the request is complete, its handler is admitted too.
     *
     * @param more whether more parts of the request follow; if so, the handler is admitted after the last part
     * @return the call; null if the request has been refused
     */
    private @Nullable ServerCall admit(int id, Metadata metadata, boolean more, boolean notice) {
        ServerMethod method = request.method();
        ServerCall call = admission.place();
        if (call == null) {
            refuse(id, RPCXException.Code.OVERLOADED, "too many calls under way on this connection or server");
            return null;
        }
        boolean isPlaceUsed = false;
        boolean hasEntered = false;
        try {
            int slot = id & Wire.SLOT_MASK;
            if (!hasSlot(slot) || !admission.holdMetadata(call, method, request.metadataCost(), more)) {
                isPlaceUsed = true;
                admission.keep(call);
                refuseBytes(id);
                return null;
            }
            lastIds[slot] = id;
            hasEntered = !more && admission.enter(call, method);
            if (!more && !hasEntered) {
                isPlaceUsed = true;
                call.releaseCharges();
                admission.keep(call);
                refuseOverloaded(id);
                return null;
            }
            // a request in one frame began when its bytes were read
            long now = more ? nanoTime() : readNanos();
            call.begin(id, method, metadata, now, now + request.nanos(), notice);
            isPlaceUsed = true;
        } finally {
            if (!isPlaceUsed) {
                // there was no memory for the call, so the connection ends
                call.releaseCharges();
                admission.undo(call, method, hasEntered);
            }
        }
        call.metadataCost = request.metadataCost();
        return call;
    }

    /**
     * Begins to receive a request that arrives in parts.
     *
     * @param first bytes of the first part
     */
    private void receive(ServerCall call, ByteBuf first) {
        long began = call.admittedNanos();
        call.loopState.receiving = true;
        call.loopState.unfinished = new UnfinishedMessage(readingClock.at(began), began);
        if (holdCounted(call, first)) {
            watchEarlier(call, began);
        }
    }

    /** Returns the total number of entries in the tables {@code calls} and {@code lastIds}. For tests. */
    public int tableSlots() {
        return calls.length + lastIds.length;
    }

    /**
     * Makes the tables {@link #calls} and {@link #lastIds} long enough for a slot.
     *
     * @return false if there is no room for the charge
     */
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
     * Removes slots from the end of {@link #calls} and {@link #lastIds} that have no call and have not lately been
     * used. Lately means since the last check by {@link KeepAlive}. At least {@link #UNCHARGED_SLOTS} slots stay. If a
     * client repeats a request in a slot that was removed, the request is executed again.
     */
    private void cutTables() {
        if (calls.length <= UNCHARGED_SLOTS) {
            return;
        }
        int withCalls = calls.length;
        while (withCalls > 0 && calls[withCalls - 1] == null) {
            withCalls--;
        }
        int length = Math.max(UNCHARGED_SLOTS, Math.max(withCalls, firstUnusedSlot));
        firstUnusedSlot = withCalls;
        // firstUnusedSlot may be greater than the length of the tables, as slots of refused requests count as used
        if (length >= calls.length) {
            return;
        }
        try {
            @Nullable ServerCall[] cut = Arrays.copyOf(calls, length);
            lastIds = Arrays.copyOf(lastIds, length);
            calls = cut;
            slotBytes.set((long) SLOT_BYTES * (length - UNCHARGED_SLOTS));
        } catch (OutOfMemoryError noMemory) {
            // the tables remain as they are, and are cut at a later check
        }
    }

    private void onPart(int head, int id, ByteBuf payload) {
        ServerCall call = call(id);
        if (call == null || call.isFirstFragmentWritten) {
            return;
        }
        UnfinishedMessage unfinished = call.loopState.unfinished;
        if (unfinished != null) {
            unfinished.newBytes += payload.readableBytes();
            unfinished.allBytes += payload.readableBytes();
            if ((head & Wire.MORE) == 0) {
                call.loopState.unfinished = null;
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
        if (!call.loopState.receiving) {
            throw new WireFault("a part of a message that has not begun");
        }
        if (call.body.readableBytes() + payload.readableBytes()
                > server.settings().maxMessageBytes()) {
            drop(call);
            refuse(id, RPCXException.Code.TOO_LARGE, request.tooLarge());
            return;
        }
        if (!holdCounted(call, payload)) {
            return;
        }
        if ((head & Wire.MORE) == 0) {
            call.loopState.receiving = false;
            call.restartAdmissionClock(nanoTime());
            dispatch(call, call.body);
        }
    }

    private void dispatch(ServerCall call, ByteBuf request) {
        RunOn.Place place = call.method().place();
        if (place != RunOn.Place.EVENT_LOOP) {
            if (request != call.body && !admission.holdWhole(call, request)) {
                dropOverBytes(call);
                return;
            }
            // a request in parts is admitted now, since its last part has arrived
            if (call.admitted == null && !admission.enter(call, call.method())) {
                refuseAdmission(call);
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
        // the timer is set first: if that fails, the connection ends, and must not wait for a handler that never starts
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
        call.loopState.handling = true;
        try {
            call.handleInLoop(request);
        } finally {
            readAnew();
        }
        // most calls have ended by now; the others are watched
        if (call(id) == call || detached.contains(call)) {
            watch(call);
        }
    }

    /** Acknowledges a notice and frees its slot. The client is not told what becomes of the handler. */
    private void takeNotice(ServerCall call) {
        call.loopState.abandoned = true;
        try {
            addDetached(call, call.deadlineNanos());
            freeSlot(call);
            watch(call.deadlineNanos());
            sendNow(Wire.REPLY, call.id);
        } catch (RuntimeException | Error e) {
            // the end of the connection does not end this call, which has no slot any more, so the call is ended here
            Admission.leave(call, false);
            recycle(call);
            throw e;
        }
    }

    /**
     * Hands a call to another thread, which runs its handler. If that fails, the call ends with an error.
     *
     * @param run task that runs the call
     * @return false if the call has ended
     */
    boolean start(ServerCall call, PoolShares.Task run) {
        call.loopState.handling = true;
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

    /** Refuses a call that has waited for a thread, because no thread can be started. Any thread may call this. */
    void noThread(ServerCall call) {
        inLoopOrHere(() -> refuseStart(call, NO_THREAD));
    }

    private void refuseStart(ServerCall call, String why) {
        int id = call.id;
        Admission.leave(call, false);
        handled(call);
        if (call.loopState.abandoned) {
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

    /** Logs that a notice has failed, since its client gets no error. Any thread may call this. */
    void noticeFailed(ServerMethod method, RPCXException why) {
        server.noticeFailed(method, why);
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

    /**
     * Records that the handler of a call has ended. Further calls of this method for the same handler do nothing. Event
     * loop only.
     */
    void handled(ServerCall call) {
        call.loopState.handling = false;
        admission.uncount(call);
    }

    /**
     * Called when the last thread that {@link CallThreads} runs for a call has ended, but the reply of the call has not
     * been sent.
     */
    public void threadsEnded(ServerCall call) {
        handled(call);
        if (!isClosed()) {
            resumeIfWaiting();
        }
    }

    private void onItem(int head, int id, ByteBuf payload) {
        ServerCall call = call(id);
        if (call == null || call.isFirstFragmentWritten) {
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
            call.loopState.unfinished = new UnfinishedMessage(readingClock.at(now), now);
            watchEarlier(call, now);
        }
    }

    private void endOverLargeItem(ServerCall call) {
        endByItem(
                call,
                RPCXException.Code.TOO_LARGE,
                "an item of more than " + server.settings().maxMessageBytes() + " bytes");
    }

    /** Ends a call with an error because of an item that its client has sent. The handler may not have started yet. */
    private void endByItem(ServerCall call, RPCXException.Code code, String text) {
        int id = call.id;
        boolean isExecuted = call.isExecuted();
        boolean hasBegun = drop(call);
        RPCXException.Executed unsure = hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
        refuse(id, code, text, isExecuted ? RPCXException.Executed.EXECUTED : unsure);
    }

    private void onEnd(int id) {
        ServerCall call = call(id);
        if (call == null || call.isFirstFragmentWritten) {
            return;
        }
        if (call.loopState.receiving) {
            throw new WireFault("the end of a stream within a request (expected: its last part first)");
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
            call.loopState.credit = Math.min(Long.MAX_VALUE - items, call.loopState.credit) + items;
        } else {
            sender.onCredit(items);
        }
    }

    /**
     * Sends the client the credit that a handler gives it, that is, the number of further items that it may send.
     * {@code cancel} sends nothing: the client sees from the result that the handler wants no more items.
     */
    private final class Incoming implements StreamReceiver.Peer {
        private final int id;

        /**
         * Number of items that the handler allows the client to send, but of which no frame has told the client yet.
         */
        private final AtomicLong unsent = new AtomicLong();

        Incoming(int id) {
            this.id = id;
        }

        @Override
        public void credit(long items) {
            if (!Streams.accumulateCredit(unsent, items)) {
                return;
            }
            send(new Outbound.Control(Wire.CREDIT, id, Unpooled.buffer(10)) {
                @Override
                public boolean beforeSend() {
                    Varint.write(body, unsent.getAndSet(0));
                    // after the final frame of this call, another call may use the same slot
                    ServerCall call = call(id);
                    return call != null && call.receiver != null && call.receiver.isOf(Incoming.this);
                }
            });
        }

        @Override
        public void cancel() {}

        @Override
        public void onLoop(Runnable task) {
            if (inLoop()) {
                task.run();
            } else {
                inLoopOrHere(task);
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
     * Returns the time by which a call has to be checked. This is the call's deadline, or an earlier time while a
     * message of the call is unfinished or the call is {@link #postpone postponed}.
     */
    private long due(ServerCall call, long now) {
        StreamReceiver items = call.receiver;
        UnfinishedMessage unfinished = call.loopState.unfinished;
        long left = call.deadlineNanos() - now;
        if (unfinished != null
                && !call.isFirstFragmentWritten
                && (call.loopState.receiving || items != null && items.isReceiving())) {
            left = Math.min(left, readingClock.remaining(unfinished.lastProgressNanos + stallNanos, now));
            long whole = wholeNanos(unfinished);
            left = Math.min(left, readingClock.remaining(unfinished.beganReadingNanos + whole, now));
            // the reading clock stands still while this side pauses reading because the peer does not read its replies;
            // with this third limit, pauses may at most double the time in which the message has to arrive
            left = Math.min(left, unfinished.beganNanos + 2 * whole - now);
        }
        if (isPostponed(call)) {
            left = Math.min(left, call.loopState.waitsUntilNanos - now);
        }
        return now + left;
    }

    /**
     * Returns the time within which a message in parts has to arrive completely, in nanoseconds. It grows with the
     * number of bytes that have arrived.
     */
    private long wholeNanos(UnfinishedMessage unfinished) {
        return ALLOWED_STALLS * stallNanos + unfinished.allBytes * (TimeUnit.SECONDS.toNanos(1) / MIN_BYTES_PER_SECOND);
    }

    @Override
    public void frameWaits(long nowNanos) {
        frameSinceNanos = readingClock.at(nowNanos);
        watch(nowNanos + frameLeft(nowNanos), nowNanos);
    }

    /**
     * Returns the time that is left for an incomplete frame to arrive, in nanoseconds. Used for a frame that is large
     * enough to be charged.
     */
    private long frameLeft(long now) {
        return readingClock.remaining(frameSinceNanos + frameNanos(stallNanos), now);
    }

    /**
     * Returns the time within which the rest of a frame or TLS record has to arrive, in nanoseconds. The time begins
     * when the frame or record has become large enough to be charged.
     */
    static long frameNanos(long stallNanos) {
        return ALLOWED_STALLS * stallNanos
                + Wire.MAX_FRAME_BYTES * (TimeUnit.SECONDS.toNanos(1) / MIN_BYTES_PER_SECOND);
    }

    /** Makes sure that a call ends at its deadline. */
    private void watch(ServerCall call) {
        dueSoon.add(call.id, call.deadlineNanos());
        watch(call.deadlineNanos());
    }

    private void watchEarlier(ServerCall call, long now) {
        long due = due(call, now);
        dueSoon.add(call.id, due);
        watch(due, now);
    }

    /**
     * Makes sure that {@link #checkDue} runs at a given time, or {@code MIN_CHECK_NANOS} from now if that is later. One
     * timer serves all calls, and is usually set for an earlier time already.
     */
    private void watch(long due) {
        if (checkTimer == null || due - nextCheckNanos < 0) {
            watch(due, nanoTime());
        }
    }

    private void watch(long due, long now) {
        if (isClosed() && detached.isEmpty() && dropped.isEmpty()) {
            // the request of the call has ended its connection, and nothing remains to be checked
            return;
        }
        ScheduledFuture<?> later = checkTimer;
        if (later != null && due - nextCheckNanos >= 0) {
            return;
        }
        // the old timer is cancelled last, so that it is still set if setting the new one fails
        checkTimer = loop().schedule(this::checkDue, Math.max(MIN_CHECK_NANOS, due - now), TimeUnit.NANOSECONDS);
        nextCheckNanos = due;
        if (later != null) {
            later.cancel(false);
        } else {
            timers.add(1);
        }
    }

    private void checkDue() {
        try {
            checkDueNow();
        } catch (Throwable t) {
            checkFailed(t);
        }
    }

    /**
     * Ends the connection, because a check of its calls has failed or the timer for it could not be set. Calls that
     * outlast the connection are checked again after {@code LOST_CHECK_NANOS}.
     */
    private void checkFailed(Throwable thrown) {
        try {
            failInternally(thrown);
        } finally {
            if (!loop().isShuttingDown()) {
                watch(nanoTime() + LOST_CHECK_NANOS);
            }
        }
    }

    /**
     * Ends the calls whose time is over, and those whose messages have not arrived in time. Ends the connection if a
     * frame has not arrived in time.
     */
    private void checkDueNow() {
        checkTimer = null;
        timers.release(1);
        endLost();
        long now = nanoTime();
        long next = checkDetachedIfDue(now);
        if (isClosed() && !dropped.isEmpty()) {
            next = Math.min(next, LOST_CHECK_NANOS);
        }
        if (isFrameWaiting() && !isClosed()) {
            long left = frameLeft(now);
            if (left <= 0) {
                fail("a frame was begun and not ended in time");
                return;
            }
            next = Math.min(next, left);
        }
        long others = next;
        // the errors of all calls whose time is over are sent in one write
        sendTogether(() -> {
            long first = Math.min(others, dueSoon.isComplete(now) ? dueSoon.scan(now, this::endIfDue) : endDue(now));
            if (first < Long.MAX_VALUE / 2) {
                watch(now + first, now);
            }
        });
    }

    /**
     * Checks all calls that have a slot, and ends those whose time is over.
     *
     * @return nanoseconds until the next call is due
     */
    private long endDue(long now) {
        long next = DueSoon.NEVER;
        boolean isLarge = calls.length > MAX_CHECKED_FULLY;
        if (isLarge) {
            dueSoon.begin(now);
        } else {
            dueSoon.forget();
        }
        for (ServerCall call : calls) {
            if (call == null) {
                continue;
            }
            long left = endIfDue(call, now);
            if (left < DueSoon.NEVER) {
                next = Math.min(next, left);
                dueSoon.add(call.id, now + left);
            } else if (isClosed()) {
                // the error could not be written; that has ended the connection and all its calls
                break;
            }
        }
        return next;
    }

    private long endIfDue(int id, long now) {
        ServerCall call = call(id);
        return call == null ? DueSoon.NEVER : endIfDue(call, now);
    }

    /**
     * Ends a call if its time is over.
     *
     * @return nanoseconds until the call is due; {@link DueSoon#NEVER} if it has ended
     */
    private long endIfDue(ServerCall call, long now) {
        UnfinishedMessage unfinished = call.loopState.unfinished;
        if (unfinished != null
                && readingClock.at(now) - unfinished.lastProgressNanos >= stallNanos
                && unfinished.newBytes >= MIN_BYTES_PER_LOOK) {
            unfinished.lastProgressNanos = readingClock.at(now);
            unfinished.newBytes = 0;
        }
        long left = due(call, now) - now;
        if (left > 0) {
            return left;
        }
        if (call.tryEnd()) {
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

    /**
     * Returns the text of the error for a call whose time is over. The text says which time limit the call has reached.
     */
    private String whyOver(ServerCall call, long now) {
        UnfinishedMessage unfinished = call.loopState.unfinished;
        boolean isLate = call.deadlineNanos() - now <= 0;
        if (unfinished == null && !isLate) {
            return "the call could not begin in time, since replies before it waited to be read (expected: within "
                    + TimeUnit.NANOSECONDS.toMillis(2 * ALLOWED_STALLS * stallNanos) + " ms)";
        }
        if (unfinished == null || isLate && !call.loopState.receiving) {
            return "the time of the call is over";
        }
        String what = (call.loopState.receiving ? "the request" : "an item") + " did not come to its end in time";
        if (isLate) {
            return what;
        }
        return readingClock.at(now) - unfinished.lastProgressNanos >= stallNanos
                ? what + " (expected: " + MIN_BYTES_PER_LOOK + " bytes of it in each "
                        + TimeUnit.NANOSECONDS.toMillis(stallNanos) + " ms)"
                : what + " (expected: " + MIN_BYTES_PER_SECOND + " bytes of it a second)";
    }

    /**
     * Checks the calls in {@link #detached}, which have a time limit but no slot. A list of more than
     * {@code MAX_CHECKED_FULLY} calls is checked only if one of them is due, and at most ten times a second.
     *
     * @return nanoseconds until the list has to be checked again
     */
    private long checkDetachedIfDue(long now) {
        if (detached.isEmpty()) {
            return DueSoon.NEVER;
        }
        boolean isLarge = detached.size() > MAX_CHECKED_FULLY;
        long at = isLarge && mayCheckDetachedNanos - detachedDueNanos > 0 ? mayCheckDetachedNanos : detachedDueNanos;
        if (isLarge && at - now > 0) {
            return at - now;
        }
        // calls that are added during the check may set this field to an earlier time
        detachedDueNanos = now + DueSoon.NEVER;
        long next = 0;
        try {
            next = checkDetached(now);
        } finally {
            // if this check has thrown, next is 0, and the list is checked again immediately
            if (now + next - detachedDueNanos < 0) {
                detachedDueNanos = now + next;
            }
        }
        next = detachedDueNanos - now;
        mayCheckDetachedNanos = now + MIN_CHECK_DETACHED_NANOS;
        return detached.size() > MAX_CHECKED_FULLY ? Math.max(next, MIN_CHECK_DETACHED_NANOS) : next;
    }

    /**
     * Cancels the calls in {@link #detached} whose time is over, or gives them up if they have been cancelled before.
     *
     * @return nanoseconds until the next of these calls is due
     */
    private long checkDetached(long now) {
        long next = Long.MAX_VALUE / 2;
        ServerCall call = detached.first();
        while (call != null) {
            ServerCall following = call.loopState.following;
            long addition = following == null ? 0 : following.loopState.addition;
            long left = call.loopState.detachedUntilNanos - now;
            if (left > 0) {
                next = Math.min(next, left);
            } else if (call.isCancelled()) {
                giveUp(call);
            } else {
                cancel(call);
                if (!isWithdrawn(
                        call, RPCXException.Code.DEADLINE_EXCEEDED, "no thread was free within the call's time")) {
                    detached.remove(call);
                    if (call.isAwaiting()) {
                        addDetached(call, now + PendingResult.GRACE_NANOS);
                        next = Math.min(next, PendingResult.GRACE_NANOS);
                    } else {
                        dropped(call);
                    }
                }
            }
            // the end of a call may remove or move other calls: if the following call is affected, the check starts
            // again with the first call
            call = following == null || detached.hasKept(following, addition) ? following : detached.first();
        }
        return next;
    }

    /**
     * Ends a cancelled notice, if it still waits for a thread.
     *
     * @return false if the notice does not wait for a thread
     */
    private boolean isWithdrawn(ServerCall call, RPCXException.Code code, String why) {
        if (!withdraw(call)) {
            return false;
        }
        ServerMethod method = call.method();
        recycle(call);
        noticeFailed(method, RPCXException.refused(code, why));
        return true;
    }

    /**
     * Withdraws the task that waits for a thread to run a call.
     *
     * @return false if no such task waits
     */
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

    private void addDetached(ServerCall call, long until) {
        call.loopState.detachedUntilNanos = until;
        if (detached.isEmpty() || until - detachedDueNanos < 0) {
            detachedDueNanos = until;
        }
        if (!detached.contains(call)) {
            dropped.remove(call);
            detached.add(call);
        }
    }

    /** Adds a call that nobody waits for to the list {@code dropped}, if its handler or further threads still run. */
    private void dropped(ServerCall call) {
        if ((call.loopState.handling || call.loopState.isOverButThreads) && call.loopState.list == null) {
            dropped.add(call);
        }
    }

    /** Cancels the handler that runs on after an interceptor has answered its call. */
    private void cancelBehind(ServerCall call) {
        try {
            cancel(call);
        } finally {
            detached.remove(call);
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
            for (ServerCall call = detached.first(); call != null; call = detached.first()) {
                try {
                    if (call.loopState.isOverButThreads) {
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
                    // this call is given up nevertheless, and the loop goes on with the others
                    ThreadTools.report(t);
                    giveUp(call);
                }
            }
            stopChecking();
            server.noticesCutOff(unbegun, interrupted);
        });
    }

    /** Returns whether the server has been cut off, so that no handler starts any more. Any thread may call this. */
    boolean isCutOff() {
        return server.isCutOff();
    }

    @Override
    public boolean isSentLater() {
        // the check for lost calls sends this message first, and does not take its call for lost
        lost.isAny = true;
        try {
            lost.requestCheck();
        } catch (Throwable again) {
            // the next check of the calls' times checks for lost calls too
        }
        return true;
    }

    @Override
    public void endLost() {
        if (lost.isAny) {
            lost.endLost(this::endAllLost);
        }
    }

    /**
     * Ends all lost calls, that is, calls that no thread will end.
     *
     * @return false if it is not certain yet which calls are lost
     */
    private boolean endAllLost() {
        // a call whose message is queued is not lost, so all queued messages are sent first
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
        endLost(detached);
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
            call = isLost ? list.first() : call.loopState.following;
        }
    }

    private void endLost(ServerCall call) {
        if (call.loopState.isOverButThreads) {
            recycle(call);
            return;
        }
        int id = call.id;
        boolean isExecuted = call.isExecuted();
        boolean hasBegun = call.hasBegun();
        call.leaveStages();
        if (call.loopState.abandoned) {
            // if these lines fail, the call is still marked as lost, and the next check finds it
            Admission.leave(call, false);
            recycle(call);
            return;
        }
        handled(call);
        call.tryEnd();
        drop(call);
        RPCXException.Executed unsure = hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
        refuse(
                id,
                RPCXException.Code.HANDLER_FAILED,
                "the server's thread failed before it could send the result",
                isExecuted ? RPCXException.Executed.EXECUTED : unsure);
    }

    private void giveUp(ServerCall call) {
        if (call.giveUp()) {
            recycle(call);
        } else {
            detached.remove(call);
            dropped(call);
        }
    }

    /**
     * Waits {@code PendingResult.GRACE_NANOS} for the future of a handler whose caller is gone. If the server is
     * closing, or the event loop is shutting down, the call is given up immediately.
     */
    private void linger(ServerCall call) {
        long now = nanoTime();
        addDetached(call, now + PendingResult.GRACE_NANOS);
        if (draining || loop().isShuttingDown()) {
            giveUp(call);
        } else {
            watch(now + PendingResult.GRACE_NANOS, now);
        }
    }

    /** Called when the handler of a call that nobody waits for has returned a future. Any thread may call this. */
    void awaitsForNobody(ServerCall call) {
        inLoopOrHere(() -> {
            try {
                if (call.isAwaiting() && call.isCancelled()) {
                    linger(call);
                }
            } catch (Throwable t) {
                checkFailed(t);
            }
        });
    }

    /**
     * Makes the event loop send the items of the publisher that a handler has returned. Called on the handler's thread.
     */
    void stream(ServerCall call, Flow.Publisher<?> result) {
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

    /**
     * Task that subscribes to the publisher that a handler has returned. Its stream counts in {@code opening} until the
     * server has subscribed, or will certainly not subscribe.
     */
    private final class Opening extends AtomicBoolean implements Runnable {
        private static final long serialVersionUID = 1;

        private final transient ServerCall call;
        private final transient Flow.Publisher<Object> publisher;

        Opening(ServerCall call, Flow.Publisher<Object> publisher) {
            this.call = call;
            this.publisher = publisher;
        }

        /**
         * Stops counting the stream in {@code opening}. Further calls of this method do nothing. Any thread may call
         * this.
         */
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
            // otherwise the handler's thread has failed after it had queued this task, and the call is ended as a lost
            // call
        }
    }

    private void startStream(ServerCall call, Flow.Publisher<Object> publisher, Opening begins) {
        call.loopState.handling = false;
        if (call.resumed) {
            postponedStreams.stopCountingResumed(call);
        }
        if (call.loopState.abandoned || isClosed()) {
            begins.opened();
            if (publisher instanceof WatchedStream watched) {
                // the watcher may write to a log, which may block, so it is not called on the event loop
                callThreads.runCallbacksIfPossible(call, List.of(() -> watched.ended(null)));
            }
            recycle(call);
            return;
        }
        int id = call.id;
        try {
            subscribeTo(call, publisher, begins);
        } catch (Throwable t) {
            if (call(id) == call) {
                // no other code would end the call
                call.loopState.handling = true;
                call.markLost(id);
            }
            begins.opened();
            throw t;
        }
        // the handler is no longer counted as running, so other calls may start
        resumeIfWaiting();
    }

    private void subscribeTo(ServerCall call, Flow.Publisher<Object> publisher, Opening begins) {
        // only the stream still uses the call's place
        admission.uncountNow(call);
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
                    WireError.write(error, CallErrors.failed(thrown, method, its));
                    Objects.requireNonNull(self.get()).addLast(Wire.ERROR, error);
                },
                () -> replied(call),
                callThreads.signalsOf(call));
        self.set(sender);
        call.sender = sender;
        call.giveUpBody();
        if (call.loopState.credit > 0) {
            sender.onCredit(call.loopState.credit);
        }
        sender.subscribeTo(publisher, begins::opened);
    }

    /**
     * Appends bytes of a request to the buffer of the call, and charges the call for them. If there is no room for the
     * charge, the call is refused.
     *
     * @return false if the call has been refused
     */
    private boolean holdCounted(ServerCall call, ByteBuf bytes) {
        if (admission.holdCounted(call, bytes)) {
            return true;
        }
        dropOverBytes(call);
        return false;
    }

    private void dropOverBytes(ServerCall call) {
        int id = call.id;
        drop(call);
        refuseBytes(id);
    }

    private void onCancel(int id) {
        ServerCall call = call(id);
        if (call != null && call.tryEnd()) {
            boolean hasBegun = drop(call);
            refuse(
                    id,
                    RPCXException.Code.CANCELLED,
                    "cancelled",
                    hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED);
        }
    }

    /**
     * Ends a call before its reply has been sent. Its handler is cancelled, its slot is freed, and what the handler
     * still produces is dropped. The caller of this method sends the final frame.
     *
     * @return false if the call's method has not been executed, and will not be
     */
    private boolean drop(ServerCall call) {
        boolean isExecuted;
        recall(call);
        try {
            freeSlot(call);
        } finally {
            call.loopState.abandoned = true;
            isExecuted = abandon(call);
        }
        return isExecuted;
    }

    /**
     * Ends a call that nobody waits for any more. The call object is recycled here or, if the handler still runs, when
     * the handler ends.
     *
     * @return false if the call's method has not been executed, and will not be
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
     * Makes sure that a call ends at last although ending it has failed half-way, for example because there was no
     * memory.
     */
    private void keepInSight(ServerCall call) {
        if (call.loopState.isRecycled) {
            return;
        }
        if (!call.loopState.handling && !call.loopState.isOverButThreads) {
            // neither its handler nor another thread of the call would end it
            try {
                Admission.leave(call, false);
            } finally {
                recycle(call);
            }
            return;
        }
        if (call.loopState.list != null) {
            return;
        }
        if (!call.isAwaiting()) {
            dropped(call);
            return;
        }
        try {
            linger(call);
        } catch (Throwable again) {
            // the call has been added to its list before the failure
        }
    }

    private boolean abandonHere(ServerCall call) {
        // the state is read first: the end of a stream may also end the handler, and recycle the call
        boolean handled = call.loopState.handling;
        boolean hasBegun;
        try {
            hasBegun = handled ? cancel(call) : call.hasBegun();
            if (handled && withdraw(call)) {
                // no thread will run the call any more, so the call is ended here
                handled = false;
                call.loopState.handling = false;
            } else if (!handled
                    && hasBegun
                    && (call.method().returnsStream() || call.context().isHandlerBehind())) {
                // the handler has returned a stream, which the callbacks of the handler for a cancel may concern, or
                // runs on after an interceptor has answered
                call.cancel();
            }
        } finally {
            // the streams are ended even if the cancel has failed, since a handler may wait for them
            endStreams(call);
        }
        if (call.loopState.isRecycled) {
            return hasBegun;
        }
        if (!handled) {
            Admission.leave(call, false);
            recycle(call);
        } else if (call.isAwaiting()) {
            linger(call);
        } else {
            dropped(call);
        }
        return hasBegun;
    }

    /**
     * Cancels a call whose handler runs or waits for a thread.
     *
     * @return false if the call's method has not been executed, and will not be
     */
    private boolean cancel(ServerCall call) {
        boolean hasBegun = call.cancel();
        if (!hasBegun) {
            // the call waits for a thread, and that thread will not run it
            admission.uncount(call);
        }
        // hasBegun is also true if an interceptor has started, but the method has not
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
            // the exception is only reported: the call's place has to be given back nevertheless
            ThreadTools.report(t);
        }
    }

    private @Nullable ServerCall call(int id) {
        int slot = id & Wire.SLOT_MASK;
        ServerCall call = slot < calls.length ? calls[slot] : null;
        return call != null && call.id == id ? call : null;
    }

    private void refuse(int id, RPCXException.Code code, String text) {
        refuse(id, code, text, RPCXException.Executed.NOT_EXECUTED);
    }

    private void refuseBytes(int id) {
        refuse(id, RPCXException.Code.OVERLOADED, "too many bytes of requests under way on this connection or server");
    }

    private void refuseOverloaded(int id) {
        if (isBacklogged()) {
            refuse(id, RPCXException.Code.OVERLOADED, "");
        } else {
            sendNow(new Outbound.Control(Wire.ERROR, id, OVERLOADED.duplicate()));
        }
    }

    /**
     * Sends the ERROR frame that ends a call. While many bytes wait to be sent, the frame has no text, since refusing
     * many calls has to be cheap.
     */
    private void refuse(int id, RPCXException.Code code, String text, RPCXException.Executed executed) {
        ByteBuf body = Unpooled.buffer(FIRST_ERROR_BYTES);
        WireError.write(body, new RPCXException(code, isBacklogged() ? "" : text, executed, null));
        sendNow(new Outbound.Control(Wire.ERROR, id, body));
    }

    private void freeSlot(ServerCall call) {
        int slot = call.id & Wire.SLOT_MASK;
        if (slot < calls.length) {
            calls[slot] = null;
        }
        underWay.calls--;
        closeIfDrained();
    }

    /** Ends a call whose reply has been sent completely, or is being written by its handler's thread. */
    void replied(ServerCall call) {
        StreamReceiver receiver = call.receiver;
        if (receiver != null) {
            receiver.end(new RPCXException(RPCXException.Code.CANCELLED, "the call is over"));
        }
        if (!call.loopState.isRecycled) {
            try {
                freeSlot(call);
            } finally {
                recycle(call);
            }
        }
    }

    /**
     * Frees the object of a call that neither a handler nor a reply needs any more. If threads still run for the call,
     * its object is freed only when the last of them has ended. Does nothing if the object has been freed already.
     * While this method ends the call's streams, user code may run that ends this call or others of the connection.
     */
    void recycle(ServerCall call) {
        if (call.loopState.isRecycled) {
            return;
        }
        handled(call);
        // checked first: if this throws, the call is still in its list, and can be found there
        call.loopState.isOverButThreads = !call.endUnlessThreads();
        CallList in = call.loopState.list;
        if (in != null) {
            in.remove(call);
        }
        if (call.resumed) {
            postponed(call).stopCountingResumed(call);
        }
        if (call.loopState.isOverButThreads) {
            // the reply has been sent or will not be sent
            call.giveUpReply();
            admission.lendPlace(call);
            goesOnWithThreads(call);
            if (!isClosed()) {
                resumeIfWaiting();
            }
            return;
        }
        admission.endLoan(call);
        call.loopState.isRecycled = true;
        // handled() has left the handler counted if threads ran for the call then
        admission.uncountNow(call);
        endStreams(call);
        call.forget();
        call.releaseCharges();
        endIfOver();
        admission.takeBack(call);
        if (!isClosed()) {
            resumeIfWaiting();
        }
    }

    /**
     * Keeps a call that is over as long as threads run for it. If an interceptor has answered while the handler runs
     * on, the handler is cancelled at the deadline of the call, or now if the connection has ended.
     */
    private void goesOnWithThreads(ServerCall call) {
        if (call.isCancelled() || !call.context().isHandlerBehind()) {
            dropped.add(call);
        } else if (isOver) {
            // the call is added first, since the cancel may end it
            dropped.add(call);
            call.cancel();
        } else {
            addDetached(call, call.deadlineNanos());
            watch(call.deadlineNanos());
        }
    }

    private void endIfOver() {
        if (isOver && detached.isEmpty() && dropped.isEmpty()) {
            stopChecking();
            server.ended(channel);
        }
    }

    @Override
    public void drain() {
        loop().execute(() -> {
            if (!draining) {
                draining = true;
                sentReplies.leave();
                sendNow(Wire.GOAWAY, 0);
            }
        });
    }

    private void closeIfDrained() {
        if (goAwayReceived && underWay.calls == 0 && !isCloseOrdered) {
            loop().execute(() -> close("both sides are done"));
            // the flag is set last, since queueing may fail; without the flag, each of many GOAWAY frames would queue a
            // task
            isCloseOrdered = true;
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        boolean reads = channel.isWritable();
        if (!reads || !isReading()) {
            // while bytes are being handled, reading is resumed only afterwards: a channel whose client is in this
            // process would otherwise read inside this read
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
     * Stops reading from a client that does not read its replies, and resumes when the client reads them. After the end
     * of the connection, everything is read.
     *
     * <p>At least one read happens between two pauses. Otherwise an upload by a client that reads slowly might never
     * arrive.
     */
    private void readUnlessFull() {
        if (isClosed() || channel.isWritable()) {
            if (!channel.config().isAutoRead()) {
                // the pause must not count as silence, since what the peer sent meanwhile has not been read
                recordActivity();
                readsBeforeResume = reads();
                readingClock.setReading(true);
            }
        } else if (reads() != readsBeforeResume && channel.config().isAutoRead()) {
            readingClock.setReading(false);
        }
    }

    /**
     * Gives up the places and slots of the connection that no call uses. Called when the connection has received
     * nothing for some time.
     */
    @Override
    public void trimIdle() {
        super.trimIdle();
        cutTables();
        admission.giveUpPlaces();
    }

    /**
     * Gives up half of the free places, and the slots that are not used. A busy connection may never again need as many
     * as in its last burst.
     */
    @Override
    public void trimActive() {
        super.trimActive();
        cutTables();
        admission.giveUpHalf();
    }

    @Override
    public void giveUpIdlePlaces() {
        if (account.held(Resource.CALLS) == 0 || !isTrimQueued.compareAndSet(false, true)) {
            return;
        }
        boolean isAsked = false;
        try {
            inLoopOrHere(this::giveUpIdlePlacesNow);
            isAsked = true;
        } finally {
            if (!isAsked) {
                isTrimQueued.set(false);
            }
        }
    }

    private void giveUpIdlePlacesNow() {
        isTrimQueued.set(false);
        admission.giveUpPlaces();
    }

    private void stopChecking() {
        if (checkTimer != null) {
            checkTimer.cancel(false);
            checkTimer = null;
            timers.release(1);
        }
    }

    /**
     * Ends one of several calls when the connection ends. An exception is only reported, so that the other calls are
     * ended too.
     */
    private void abandonSafely(ServerCall call) {
        if (call.loopState.isRecycled) {
            // the end of an earlier call has already ended this one
            return;
        }
        try {
            abandon(call);
        } catch (Throwable t) {
            ThreadTools.report(t);
        }
    }

    /**
     * Ends or cancels the calls of a connection that has ended. {@code abandonAll}, {@code leaveTables} and
     * {@code leavePlaces} run even if the code before them fails, since other code waits for what each of them does.
     */
    @Override
    public void onClosed(String why) {
        try {
            beforeRead();
            keepAlive.stop();
            greeting.cancel(false);
            stopChecking();
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
            ServerCall call = detached.first();
            while (call != null) {
                ServerCall following = call.loopState.following;
                if (call.loopState.isOverButThreads) {
                    try {
                        cancelBehind(call);
                    } catch (Throwable t) {
                        // the other calls are cancelled nevertheless
                        ThreadTools.report(t);
                    }
                }
                call = following;
            }
            admission.connectionGone();
            threads.connectionGone();
        } finally {
            leaveTables();
        }
    }

    private void leaveTables() {
        // a handler may refer to this connection for long, and the charge for the tables is released below
        calls = NO_CALLS;
        lastIds = NO_IDS;
        slotBytes.release();
        underWay.calls = 0;
        try {
            watchOutlasting();
        } finally {
            leavePlaces();
        }
    }

    private void leavePlaces() {
        try {
            admission.giveUpPlaces();
        } finally {
            isOver = true;
            endIfOver();
        }
    }

    /** Sets the timer for the checks of calls that outlast the connection. */
    private void watchOutlasting() {
        try {
            for (ServerCall call = detached.first();
                    call != null && !loop().isShuttingDown();
                    call = call.loopState.following) {
                watch(call.loopState.detachedUntilNanos);
            }
            if (!dropped.isEmpty() && !loop().isShuttingDown()) {
                watch(nanoTime() + LOST_CHECK_NANOS);
            }
        } catch (Throwable t) {
            checkFailed(t);
        }
    }
}
