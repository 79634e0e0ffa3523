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
 * Server side of one connection on the native wire: puts each request into the slot that its client has chosen, runs
 * the handler and sends the result.
 *
 * <p>The class is longer than 400 lines because its slots, their states and the bytes they hold change together on the
 * event loop, and no other code may touch them.
 */
public final class ServerConnection extends WireConnection implements ServedConnection {
    /**
     * Minimum number of bytes that an unfinished message has to bring in each {@link #stallNanos}; with fewer it stands
     * still.
     */
    private static final int MIN_BYTES_PER_LOOK = 1024;

    /**
     * Minimum rate of an unfinished message, in bytes a second, after its first {@code ALLOWED_STALLS} times
     * {@link #stallNanos}. A slower message is not worth the memory that it holds. Source: Jetty, minRequestDataRate.
     */
    private static final int MIN_BYTES_PER_SECOND = 16 * 1024;

    private static final int ALLOWED_STALLS = 3;

    /**
     * Interval at which handlers that outlast their connection are checked, in case one of them has failed to end its
     * call.
     */
    static final long LOST_LOOK_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** Bytes that an entry of {@link #calls} and one of {@link #lastIds} take together. */
    private static final int SLOT_BYTES = 8;

    /** Number of slots that a connection has whatever others hold. They are a part of what it holds at rest. */
    private static final int UNCHARGED_SLOTS = 64;

    private static final int FIRST_ERROR_BYTES = 64;

    private static final ServerCall[] NO_CALLS = {};
    private static final int[] NO_IDS = {};

    /** Minimum delay of a check. Deadlines closer together than this share one check, since a client chooses them. */
    private static final long MIN_LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MIN_PASS_DETACHED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** A check that passes at most this many slots costs hardly more than the frame that has made it necessary. */
    private static final int MAX_PASSED = 64;

    private static final String NO_THREAD = "the server has no thread for the call";

    /**
     * Body of the ERROR for a call that is not admitted. It is written once, since refusing must cost next to nothing.
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

    /** Calls under way; the index is the slot. The array grows with the slots of the calls that were taken. */
    private @Nullable ServerCall[] calls = new ServerCall[8];

    /**
     * Id of the last call of each slot, so that a request that comes twice is not executed twice. The id is forgotten
     * with its slot once the slot is not used any more: see {@link #cutTables}.
     */
    private int[] lastIds = new int[calls.length];

    /**
     * Slots from this one on have been named by no request since the last check of {@link KeepAlive}, and had no call
     * then.
     */
    private int usedSlots;

    /** Charge for the growth of {@link #calls} and {@link #lastIds} above {@link #UNCHARGED_SLOTS}. */
    private final Charge slotBytes;

    /** Whether a task that gives up idle places waits on the event loop: one such task waits there at a time. */
    private final AtomicBoolean isAskedForPlaces = new AtomicBoolean();

    private final PostponedCalls postponedCalls = new PostponedCalls(this, this::unreadBytes);

    /**
     * Postponed calls of methods that bring streams. They also wait for items to be read, which keep no other call from
     * being answered.
     */
    private final PostponedCalls postponedStreams = new PostponedCalls(this, this::unreadStreamBytes);

    /** Number of streams whose handlers have ended and whose publishers are not subscribed to yet. */
    private final AtomicInteger opening = new AtomicInteger();

    private Settings client = Settings.INITIAL;
    private volatile int maxReplyBytes = Wire.MAX_MESSAGE_BYTES;
    private final UnderWay underWay = new UnderWay();
    private final RequestReader request;
    final SentReplies sentReplies = new SentReplies(this, underWay);

    final Admission admission;

    /**
     * Watched calls without a slot: notices until their time is over, calls whose callers are gone until the futures of
     * their handlers are given up, and calls that an interceptor has answered until the time of the handler that runs
     * on is over.
     */
    private final CallList detached = new CallList();

    /** Time before which no call of {@link #detached} is due. It means nothing while the list is empty. */
    private long detachedDueNanos;

    /** Earliest time at which all calls of {@link #detached} are passed again where the list is long. */
    private long mayPassDetachedNanos;

    /**
     * Calls without a slot whose handlers or other threads still run. Nobody waits for these calls; the end of their
     * handlers or threads ends them.
     */
    private final CallList dropped = new CallList();

    /** Flag for calls that the thread which was about to end them could not end. Any thread sets it. */
    final LostCalls lost = new LostCalls(() -> inLoopOrHere(this::endLost));

    final CallThreads callThreads;

    private final KeepAlive keepAlive;
    private @Nullable Principal peer;
    private final FloodGuard guard;

    /** Whether this side has sent GOAWAY. Event loop only. */
    private boolean draining;

    /** Whether the client has sent GOAWAY. Event loop only. */
    private boolean goAwayReceived;

    /** Whether the client has left and the task that closes the connection is on its way. Event loop only. */
    private boolean isCloseOrdered;

    /** Whether the connection has ended and its end has been passed on to all its calls. */
    private boolean isOver;

    private boolean greeted;

    /** Charge for {@link #greeting} and {@link #lookTimer}. */
    private final Charge timers;

    private final ScheduledFuture<?> greeting;
    private final long stallNanos;

    private final ReadingClock readingClock;

    /** Value of {@link #reads} when the last pause in reading ended. */
    private int readsBeforeResume = -1;

    /** Time, by {@link #readingClock}, at which a frame whose end is missing became large enough to be charged. */
    private long frameSinceNanos;

    private @Nullable ScheduledFuture<?> lookTimer;
    private long nextLookNanos;

    /** Calls that are due soon, kept so that not every check passes all calls. */
    private final DueSoon soon = new DueSoon(this::leftOf, this::nanoTime);

    /**
     * Number of calls that have a slot. The counter changes with each call. It is an object apart from the connection,
     * as what {@link WireConnection} gathers is, so that writing it takes no cache line of the connection's fields from
     * other threads.
     */
    static final class UnderWay {
        int calls;
    }

    /**
     * @param takenNanos time at which the connection was taken; the peer has {@link #stallNanos} from then for its
     *     whole preface
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
        this.mayPassDetachedNanos = takenNanos;
        this.timers = account.charge(Resource.TIMERS);
        long left = takenNanos + stallNanos - nanoTime();
        greeting = loop().schedule(this::endUngreeted, Math.max(0, left), TimeUnit.NANOSECONDS);
        timers.add(1);
    }

    /** Number of places with a call whose handler or reply is under way. Tests read it when all is quiet. */
    private long busy() {
        return admission.taken() - sentReplies.count();
    }

    /** Principal that the client's certificate names. It is set before the first request. */
    @Nullable
    Principal peer() {
        return peer;
    }

    @Override
    public int maxBytesTaken() {
        return maxReplyBytes;
    }

    // ---- a handler's thread

    /** Says whether calls of this method have to wait before they are begun. Any thread may ask. */
    boolean isCongested(ServerMethod method) {
        if (!method.returnsStream()) {
            return postponedCalls.isCongested();
        }
        // nothing reports that an item has been made, so the unread bytes are looked at here
        postponedStreams.unreadHasGrown();
        return postponedStreams.isCongested();
    }

    /** Notes that a large reply has been charged, or could not be. Any thread. */
    void replyHeld() {
        postponedCalls.unreadHasGrown();
    }

    @Override
    public long replyBytes() {
        return account.held(Resource.REPLY_BYTES);
    }

    /** Bytes of replies and of the socket's queue. Any thread. */
    private long unreadBytes() {
        return account.held(Resource.REPLY_BYTES) + account.held(Resource.QUEUE_BYTES);
    }

    /**
     * As {@code unreadBytes}, with the items that wait and with what the streams that are being opened make first. Any
     * thread.
     */
    private long unreadStreamBytes() {
        return unreadBytes() + account.held(Resource.ITEM_BYTES_OUT) + (long) StreamSender.WINDOW_BYTES * opening.get();
    }

    /**
     * Notes that a stream is open: from here on what it makes is counted by itself, if it makes anything. Any thread.
     */
    private void opened() {
        opening.decrementAndGet();
        if (postponedStreams.isCongested()) {
            inLoopOrHere(postponedStreams::resumeIfWaiting);
        }
    }

    // ---- the event loop

    private PostponedCalls postponed(ServerCall call) {
        return call.method().returnsStream() ? postponedStreams : postponedCalls;
    }

    /**
     * Makes a call wait, instead of starting its handler, until what its caller has to read already has left and the
     * call is admitted. Each such wait lasts at most as long as a small request may take, pauses of reading included.
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
     * Admits a call that has waited. Where that is not possible, the call waits for the end of another handler of its
     * connection; otherwise all calls that have waited would be refused, because they come at the same moment. A
     * connection that runs no handler has nothing to wait for, and its call is refused as a new one would be.
     *
     * @return false if the call waits on
     */
    boolean enterPostponed(ServerCall call) {
        if (admission.enter(call, call.method())) {
            // the time for which the call waited for its caller to read says nothing about handlers
            call.restartAdmissionClock(nanoTime());
            return true;
        }
        if (admission.isAnyRunning()) {
            return false;
        }
        refuseAdmission(call);
        return true;
    }

    /** Starts calls that have waited, where a handler has ended or the caller has read. */
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
        sentReplies.learn();
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

    /** Ends the connection of a client that has begun its preface of eight bytes and has not ended it in time. */
    private void endUngreeted() {
        if (!greeted) {
            abort("no preface");
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
                guard.settled();
                client = Settings.read(payload);
                maxReplyBytes = client.maxMessageBytes();
            }
            case Wire.GOAWAY -> {
                goAwayReceived = true;
                sentReplies.leave();
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
                // the type is one of a later version, or has no meaning to a server
            }
        }
        if (type != Wire.REQUEST && type != Wire.NOTICE) {
            // subscribers, publishers and those who are told of a cancel may have run here, for as long as they like
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
        if (slot >= usedSlots) {
            usedSlots = slot + 1;
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
     * Admits the request that has been read, and begins its call.
     *
     * @param more whether the request is not whole yet; its handler is admitted when it is
     * @return null if it has been refused
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
            // the time of a request in parts begins now; that of a whole request, when its bytes were read
            long now = more ? nanoTime() : readNanos();
            call.begin(id, method, metadata, now, now + request.nanos(), notice);
            isPlaceUsed = true;
        } finally {
            if (!isPlaceUsed) {
                // there was no memory for the call, and the connection ends
                call.releaseCharges();
                admission.undo(call, method, hasEntered);
            }
        }
        call.metadataCost = request.metadataCost();
        return call;
    }

    /** Begins to receive a request in parts. */
    private void receive(ServerCall call, ByteBuf first) {
        long began = call.admittedNanos();
        call.loopState.receiving = true;
        call.loopState.unfinished = new UnfinishedMessage(readingClock.at(began), began);
        if (holdCounted(call, first)) {
            watchEarlier(call, began);
        }
    }

    /** Number of entries of both tables together. For tests. */
    public int tableSlots() {
        return calls.length + lastIds.length;
    }

    /** Makes room in the tables for a slot. @return false if the room cannot be had */
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
     * Forgets slots that have not been used since the last check, except those that every connection has, so that
     * others have room for theirs. A request that is repeated after such a time is not recognised, which is its
     * client's own fault.
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
        // usedSlots may be beyond the tables, as it counts refused requests too
        if (length >= calls.length) {
            return;
        }
        try {
            @Nullable ServerCall[] cut = Arrays.copyOf(calls, length);
            lastIds = Arrays.copyOf(lastIds, length);
            calls = cut;
            slotBytes.set((long) SLOT_BYTES * (length - UNCHARGED_SLOTS));
        } catch (OutOfMemoryError noMemory) {
            // the tables stay as they are, and are cut at a later check
        }
    }

    private void onPart(int head, int id, ByteBuf payload) {
        ServerCall call = call(id);
        if (call == null || call.begun) {
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
            // a request that came in parts is admitted now that it is whole
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
        // the timer is set first: if that fails the connection ends, and must not wait for a handler that was never
        // started
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
        // most calls have ended by now; one whose result comes later is watched as others are
        if (call(id) == call || detached.contains(call)) {
            watch(call);
        }
    }

    /** Acknowledges a notice and frees its slot, whatever becomes of the call. */
    private void takeNotice(ServerCall call) {
        call.loopState.abandoned = true;
        try {
            addDetached(call, call.deadlineNanos());
            freeSlot(call);
            watch(call.deadlineNanos());
            sendNow(Wire.REPLY, call.id);
        } catch (RuntimeException | Error e) {
            // what was thrown ends the connection, which does not know of the call any more
            Admission.leave(call, false);
            recycle(call);
            throw e;
        }
    }

    /**
     * Hands the call to another thread, which runs its handler. If that fails, the call ends.
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

    /** Refuses a call that has waited for a thread which cannot be had. Any thread. */
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

    /** Reports a notice that has failed. Any thread. */
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

    /** Notes that a call's handler has ended. A second time does nothing. Event loop only. */
    void handled(ServerCall call) {
        call.loopState.handling = false;
        admission.uncount(call);
    }

    /** Notes that the last thread of a call has ended whose reply has not left. */
    public void threadsEnded(ServerCall call) {
        handled(call);
        if (!isClosed()) {
            resumeIfWaiting();
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

    /** Ends a call because of one of its items, which may have come before the handler has started. */
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
        if (call.loopState.receiving) {
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
            call.loopState.credit = Math.min(Long.MAX_VALUE - items, call.loopState.credit) + items;
        } else {
            sender.onCredit(items);
        }
    }

    /**
     * Sends the credit that a handler gives to its caller. A handler that wants no more items says so by its result, so
     * a cancel sends nothing.
     */
    private final class Incoming implements StreamReceiver.Peer {
        private final int id;

        /** Credit that has been given and has left in no frame yet. */
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
                    // after the call's final frame another call may soon have its slot
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
     * Time by which a call has to be checked: its deadline, or earlier while its peer owes the rest of a message or
     * while the call is {@link #postpone postponed}.
     */
    private long due(ServerCall call, long now) {
        StreamReceiver items = call.receiver;
        UnfinishedMessage unfinished = call.loopState.unfinished;
        long left = call.deadlineNanos() - now;
        if (unfinished != null && !call.begun && (call.loopState.receiving || items != null && items.isReceiving())) {
            left = Math.min(left, readingClock.remaining(unfinished.lookedNanos + stallNanos, now));
            long whole = wholeNanos(unfinished);
            left = Math.min(left, readingClock.remaining(unfinished.sinceNanos + whole, now));
            // a peer that reads no replies causes pauses of reading, which give it at most the same time once more
            left = Math.min(left, unfinished.beganNanos + 2 * whole - now);
        }
        if (isPostponed(call)) {
            left = Math.min(left, call.loopState.waitsUntilNanos - now);
        }
        return now + left;
    }

    /** Time within which a message in parts has to be whole, by how many bytes of it have come. */
    private long wholeNanos(UnfinishedMessage unfinished) {
        return ALLOWED_STALLS * stallNanos + unfinished.allBytes * (TimeUnit.SECONDS.toNanos(1) / MIN_BYTES_PER_SECOND);
    }

    @Override
    public void frameWaits(long nowNanos) {
        frameSinceNanos = readingClock.at(nowNanos);
        watch(nowNanos + frameLeft(nowNanos), nowNanos);
    }

    /** Time left until a frame that has begun has to be whole, once it is large enough to be charged. */
    private long frameLeft(long now) {
        return readingClock.remaining(frameSinceNanos + frameNanos(stallNanos), now);
    }

    /**
     * Time within which a frame, or a record of TLS, has to be whole once it is large enough to be charged: that of a
     * request in parts with as many bytes as the largest frame.
     */
    static long frameNanos(long stallNanos) {
        return ALLOWED_STALLS * stallNanos
                + Wire.MAX_FRAME_BYTES * (TimeUnit.SECONDS.toNanos(1) / MIN_BYTES_PER_SECOND);
    }

    /** Makes sure that the call ends when its time is over. */
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
     * Makes sure that {@link #look} runs at this time. One timer serves all calls; most calls find it set for an
     * earlier time.
     */
    private void watch(long due) {
        if (lookTimer == null || due - nextLookNanos < 0) {
            watch(due, nanoTime());
        }
    }

    private void watch(long due, long now) {
        if (isClosed() && detached.isEmpty() && dropped.isEmpty()) {
            // the call's request has ended its own connection, and nothing is left to be checked
            return;
        }
        ScheduledFuture<?> later = lookTimer;
        if (later != null && due - nextLookNanos >= 0) {
            return;
        }
        // the new timer is set before the later one is cancelled: if that fails the later one stays
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
     * Handles a check, or the setting of its timer, that has failed, so that there may be no timer. The connection
     * ends, and with it all that is checked, except the calls that outlast it, which are checked again after
     * {@code LOST_LOOK_NANOS}.
     */
    private void lookFailed(Throwable thrown) {
        try {
            failInternally(thrown);
        } finally {
            if (!loop().isShuttingDown()) {
                watch(nanoTime() + LOST_LOOK_NANOS);
            }
        }
    }

    /**
     * Ends messages that have stood still for too long, and calls whose time is over: a caller may be gone without a
     * word.
     */
    private void lookNow() {
        lookTimer = null;
        timers.release(1);
        endLost();
        long now = nanoTime();
        long next = checkDetachedIfDue(now);
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
        // the errors of all calls whose time is over leave in one write
        sendTogether(() -> {
            long first = Math.min(others, soon.isComplete(now) ? soon.look(now, this::endIfDue) : endDue(now));
            if (first < Long.MAX_VALUE / 2) {
                watch(now + first, now);
            }
        });
    }

    /**
     * Ends calls whose time is over.
     *
     * @return nanoseconds until the next call is due
     */
    private long endDue(long now) {
        long next = DueSoon.NEVER;
        boolean isLarge = calls.length > MAX_PASSED;
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
                // the error could not be written, which has ended the connection and all its calls
                break;
            }
        }
        return next;
    }

    private long endIfDue(int id, long now) {
        ServerCall call = call(id);
        return call == null ? DueSoon.NEVER : endIfDue(call, now);
    }

    /** @return nanoseconds until the call is due; {@link DueSoon#NEVER} if it has ended */
    private long endIfDue(ServerCall call, long now) {
        UnfinishedMessage unfinished = call.loopState.unfinished;
        if (unfinished != null
                && readingClock.at(now) - unfinished.lookedNanos >= stallNanos
                && unfinished.newBytes >= MIN_BYTES_PER_LOOK) {
            unfinished.lookedNanos = readingClock.at(now);
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

    /** Says which limit of time a call that is {@link #due} has reached. */
    private String whyOver(ServerCall call, long now) {
        UnfinishedMessage unfinished = call.loopState.unfinished;
        boolean isLate = call.deadlineNanos() - now <= 0;
        if (unfinished == null && !isLate) {
            return "the call could not begin in time, behind replies that waited to be read (expected: within "
                    + TimeUnit.NANOSECONDS.toMillis(2 * ALLOWED_STALLS * stallNanos) + " ms)";
        }
        if (unfinished == null || isLate && !call.loopState.receiving) {
            return "the time of the call is over";
        }
        String what = (call.loopState.receiving ? "the request" : "an item") + " did not come to its end in time";
        if (isLate) {
            return what;
        }
        return readingClock.at(now) - unfinished.lookedNanos >= stallNanos
                ? what + " (expected: " + MIN_BYTES_PER_LOOK + " bytes of it in each "
                        + TimeUnit.NANOSECONDS.toMillis(stallNanos) + " ms)"
                : what + " (expected: " + MIN_BYTES_PER_SECOND + " bytes of it a second)";
    }

    /**
     * Checks the calls of {@link #detached}. A long list is passed only if one of its calls is due, and at most ten
     * times a second, since nobody waits for the ends of these calls.
     *
     * @return nanoseconds until the list is due again
     */
    private long checkDetachedIfDue(long now) {
        if (detached.isEmpty()) {
            return DueSoon.NEVER;
        }
        boolean isLarge = detached.size() > MAX_PASSED;
        long at = isLarge && mayPassDetachedNanos - detachedDueNanos > 0 ? mayPassDetachedNanos : detachedDueNanos;
        if (isLarge && at - now > 0) {
            return at - now;
        }
        // calls that are added while the list is passed set this time by themselves
        detachedDueNanos = now + DueSoon.NEVER;
        long next = 0;
        try {
            next = checkDetached(now);
        } finally {
            // if this pass has failed, the next check passes all calls again
            if (now + next - detachedDueNanos < 0) {
                detachedDueNanos = now + next;
            }
        }
        next = detachedDueNanos - now;
        mayPassDetachedNanos = now + MIN_PASS_DETACHED_NANOS;
        return detached.size() > MAX_PASSED ? Math.max(next, MIN_PASS_DETACHED_NANOS) : next;
    }

    /**
     * Cancels calls of {@link #detached} whose time is over, and gives up those that were cancelled before and whose
     * results have not come.
     *
     * @return nanoseconds until the next call is due
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
                if (!isWithdrawn(call, RPCXException.Code.DEADLINE_EXCEEDED, "no thread was free in its time")) {
                    detached.remove(call);
                    if (call.isAwaiting()) {
                        addDetached(call, now + PendingResult.GRACE_NANOS);
                        next = Math.min(next, PendingResult.GRACE_NANOS);
                    } else {
                        dropped(call);
                    }
                }
            }
            // the end of one call may end the connection, and other calls with it, or move others to the end of the
            // list
            call = following == null || detached.hasKept(following, addition) ? following : detached.first();
        }
        return next;
    }

    /** Ends a cancelled notice that still waits for a thread. @return false if it does not wait */
    private boolean isWithdrawn(ServerCall call, RPCXException.Code code, String why) {
        if (!withdraw(call)) {
            return false;
        }
        ServerMethod method = call.method();
        recycle(call);
        noticeFailed(method, RPCXException.refused(code, why));
        return true;
    }

    /** Takes back the task that waits for a thread to run the call. @return false if no such task waits */
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

    /**
     * Adds a call that nobody waits for to {@code dropped}, if its handler or other threads still run and will end it.
     */
    private void dropped(ServerCall call) {
        if ((call.loopState.handling || call.loopState.isOverButThreads) && call.loopState.list == null) {
            dropped.add(call);
        }
    }

    /** Cancels the handler that runs on for a call that is over. */
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
                    // this call ends as far as it can, and the others end all the same
                    ThreadTools.report(t);
                    giveUp(call);
                }
            }
            stopLooking();
            server.noticesCutOff(unbegun, interrupted);
        });
    }

    /** Whether the server has been cut off, so that no handler starts any more. Any thread. */
    boolean isCutOff() {
        return server.isCutOff();
    }

    @Override
    public boolean isSentLater() {
        // the check for lost calls first sends what is queued, so it does not find the call of this message
        lost.isAny = true;
        try {
            lost.requestCheck();
        } catch (Throwable again) {
            // the next check of the calls' times looks for lost calls too
        }
        return true;
    }

    @Override
    public void endLost() {
        if (lost.isAny) {
            lost.look(this::endAllLost);
        }
    }

    /** @return false if it cannot be said yet which calls are lost */
    private boolean endAllLost() {
        // a call whose message came to the queue is not lost, whether the message has left or still stands there
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
            // if this fails the call is still lost, and is found again
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
                "the thread that had the result has failed over it",
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

    /** Gives the handler's future some time to end. */
    private void linger(ServerCall call) {
        long now = nanoTime();
        addDetached(call, now + PendingResult.GRACE_NANOS);
        if (draining || loop().isShuttingDown()) {
            giveUp(call);
        } else {
            watch(now + PendingResult.GRACE_NANOS, now);
        }
    }

    /** Notes that the result of a call whose caller is gone comes by a future. Any thread. */
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
     * Sends the items of the publisher that a handler has returned. Called on the handler's thread. The publisher is
     * subscribed to where the method's handlers run.
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

    /** A stream that is counted in {@code opening} until its publisher is about to be subscribed to, or will not be. */
    private final class Opening extends AtomicBoolean implements Runnable {
        private static final long serialVersionUID = 1;

        private final transient ServerCall call;
        private final transient Flow.Publisher<Object> publisher;

        Opening(ServerCall call, Flow.Publisher<Object> publisher) {
            this.call = call;
            this.publisher = publisher;
        }

        /** Counts the stream as opening no longer. A second time does nothing. Any thread. */
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
            // otherwise the thread that handed this task to the event loop has failed over that, and its call is ended
            // as lost
        }
    }

    private void startStream(ServerCall call, Flow.Publisher<Object> publisher, Opening begins) {
        call.loopState.handling = false;
        if (call.resumed) {
            postponedStreams.resumedHasEnded(call);
        }
        if (call.loopState.abandoned || isClosed()) {
            begins.opened();
            if (publisher instanceof WatchedStream watched) {
                // the watcher may write a log, which may block
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
                // nothing else would end the call
                call.loopState.handling = true;
                call.markLost(id);
            }
            begins.opened();
            throw t;
        }
        // the stream may go on for long, while its handler is not counted any more
        resumeIfWaiting();
    }

    private void subscribeTo(ServerCall call, Flow.Publisher<Object> publisher, Opening begins) {
        // the handler is not counted any more: from here on only the stream uses the call's place
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
     * Keeps bytes of a request, and charges for them.
     *
     * @return false if too many bytes of requests are held already, and the call has been refused
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
     * Ends a call before its reply has left: its handler is cancelled, its slot is freed, and what the handler still
     * brings is dropped.
     *
     * @return false if its handler has not started, and will not
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
     * Ends a call that nobody waits for any more. The call is recycled here or, where its handler runs, at the
     * handler's end.
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
     * Handles a call whose end has failed half-way, for example because the memory is full: a later check finds the
     * call, or its handler ends it, or it ends here.
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
            // the call is in its list by now
        }
    }

    private boolean abandonHere(ServerCall call) {
        // this is read before the stream ends: the stream's end may end the handler within it, and recycle the call
        boolean handled = call.loopState.handling;
        boolean hasBegun;
        try {
            hasBegun = handled ? cancel(call) : call.hasBegun();
            if (handled && withdraw(call)) {
                // only the thread for which the call has waited would have ended it
                handled = false;
                call.loopState.handling = false;
            } else if (!handled
                    && hasBegun
                    && (call.method().returnsStream() || call.context().isHandlerBehind())) {
                // either the handler has ended, and what it registered for a cancel concerns its stream; or the handler
                // runs on after an interceptor's answer that has not left
                call.cancel();
            }
        } finally {
            // the streams end also where the cancel has found no memory: a handler may wait for them, and nothing else
            // ends them
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

    /** @return as {@link #drop} */
    private boolean cancel(ServerCall call) {
        boolean hasBegun = call.cancel();
        if (!hasBegun) {
            // the call waits for a thread, which will not run it
            admission.uncount(call);
        }
        // the interceptors before the method may have held the call until now
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
            // for example a stack overflow: the call's place is given back, and its handler uncounted, all the same
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
     * Sends the ERROR of a call. While much waits to be sent it has no text, so that many refusals at once cost their
     * peer's reader, and this side, hardly more than the requests did.
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
        closeIfLeft();
    }

    /** Ends a call whose reply has left to its last byte, or is written by its handler's thread. */
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
     * Ends the use of a call that neither its handler nor its reply needs any more; once. The end of a stream may run
     * code that ends its own call and others of the connection within this method, also while all calls are given up in
     * turn.
     */
    void recycle(ServerCall call) {
        if (call.loopState.isRecycled) {
            return;
        }
        handled(call);
        // done before the call leaves its list: if this throws, the call is still found there
        call.loopState.isOverButThreads = !call.endUnlessThreads();
        CallList in = call.loopState.list;
        if (in != null) {
            in.remove(call);
        }
        if (call.resumed) {
            postponed(call).resumedHasEnded(call);
        }
        if (call.loopState.isOverButThreads) {
            // the reply has left, or nobody will get it, so no reply waits to be read while those threads run
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
        // the last of the call's threads may have ended since they were looked at
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
     * Keeps a call that is over while threads run for it. Where an interceptor has answered in the place of the
     * handler, the handler is cancelled when the time of the call is over, as it would be without that answer, or at
     * once if the connection has ended.
     */
    private void goesOnWithThreads(ServerCall call) {
        if (call.isCancelled() || !call.context().isHandlerBehind()) {
            dropped.add(call);
        } else if (isOver) {
            // added first, since the cancel may end the call
            dropped.add(call);
            call.cancel();
        } else {
            addDetached(call, call.deadlineNanos());
            watch(call.deadlineNanos());
        }
    }

    private void endIfOver() {
        if (isOver && detached.isEmpty() && dropped.isEmpty()) {
            stopLooking();
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

    private void closeIfLeft() {
        if (goAwayReceived && underWay.calls == 0 && !isCloseOrdered) {
            loop().execute(() -> close("both sides are done"));
            // set after the task is queued, which may fail; set at all since a client may send GOAWAY in each frame of
            // a read
            isCloseOrdered = true;
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        boolean reads = channel.isWritable();
        if (!reads || !isReading()) {
            // within a read, reading is resumed at the read's end: a channel within this process would otherwise read
            // on within it
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
     * Stops reading from a client that does not read its replies, and resumes when it does. After the end of the
     * connection all is read. A client that reads slowly makes room again and again, which more of its replies fill at
     * once. Something is read before each next pause, or nothing of an upload would ever leave such a client.
     */
    private void readUnlessFull() {
        if (isClosed() || channel.isWritable()) {
            if (!channel.config().isAutoRead()) {
                // what the peer has sent meanwhile, such as the answer to a PING, is still unread, and must not count
                // as silence
                recordActivity();
                readsBeforeResume = reads();
                readingClock.setReading(true);
            }
        } else if (reads() != readsBeforeResume && channel.config().isAutoRead()) {
            readingClock.setReading(false);
        }
    }

    /** Gives up places and slots that no call has, after a while in which nothing has been heard. */
    @Override
    public void trimIdle() {
        super.trimIdle();
        cutTables();
        admission.giveUpPlaces();
    }

    /**
     * Gives up half of the free places, and slots that are not used: a burst has made places and slots that a lively
     * connection may never need again. Those that it does need are made anew at once. Nobody counts how many these are,
     * so calls pay nothing for that.
     */
    @Override
    public void trimActive() {
        super.trimActive();
        cutTables();
        admission.giveUpHalf();
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
        admission.giveUpPlaces();
    }

    private void stopLooking() {
        if (lookTimer != null) {
            lookTimer.cancel(false);
            lookTimer = null;
            timers.release(1);
        }
    }

    /**
     * Ends one of several calls. An exception, such as from the end of a stream that finds no thread, does not keep the
     * others from ending.
     */
    private void abandonSafely(ServerCall call) {
        if (call.loopState.isRecycled) {
            // the end of an earlier call has ended this one
            return;
        }
        try {
            abandon(call);
        } catch (Throwable t) {
            ThreadTools.report(t);
        }
    }

    /**
     * Passes the end of the connection on. {@code abandonAll}, {@code leaveTables} and {@code leavePlaces} run each
     * even if what comes before them fails, for example because the memory is full: somebody waits for each of them.
     */
    @Override
    public void onClosed(String why) {
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
            ServerCall call = detached.first();
            while (call != null) {
                ServerCall following = call.loopState.following;
                if (call.loopState.isOverButThreads) {
                    try {
                        cancelBehind(call);
                    } catch (Throwable t) {
                        // the other calls are cancelled all the same
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
        // a handler may refer to this connection for long, and its tables are not charged any more
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
            admission.giveUpPlaces();
        } finally {
            isOver = true;
            endIfOver();
        }
    }

    /** Sets the timer by which calls that outlast the connection are checked. */
    private void watchLeft() {
        try {
            for (ServerCall call = detached.first();
                    call != null && !loop().isShuttingDown();
                    call = call.loopState.following) {
                watch(call.loopState.detachedUntilNanos);
            }
            if (!dropped.isEmpty() && !loop().isShuttingDown()) {
                watch(nanoTime() + LOST_LOOK_NANOS);
            }
        } catch (Throwable t) {
            lookFailed(t);
        }
    }
}
