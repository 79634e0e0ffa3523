package dev.rpcx.internal.server;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.RunOn;
import dev.rpcx.codec.Codec;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.call.StreamEndListener;
import dev.rpcx.internal.call.StreamErrors;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.io.ReadingClock;
import dev.rpcx.internal.io.TlsEngine;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.ledger.UnchargedAllowance;
import dev.rpcx.internal.wire.ConnectionErrors;
import dev.rpcx.internal.wire.KeepAlive;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.SchemaFrames;
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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
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
 * Server side of one connection on the native wire. The connection reads requests, starts their handlers, and sends the
 * replies.
 *
 * <p>This class is long because each step of a call changes the table of calls, the state of the call and the charges
 * of the call together.
 */
public final class ServerConnection extends WireConnection implements ServedConnection {
    /**
     * Minimum number of bytes of an unfinished message that have to arrive in each period of {@link #stallNanos}. If
     * fewer bytes arrive, the server ends the call.
     */
    private static final int MIN_BYTES_PER_LOOK = 1024;

    /**
     * Minimum rate, in bytes a second, at which a message in several frames has to arrive. In addition to the time that
     * follows from this rate, each message may take {@code MAX_STALLS} times {@link #stallNanos}. If a message takes
     * longer, the server ends the call. Source: Jetty, minRequestDataRate.
     */
    private static final int MIN_BYTES_PER_SECOND = 16 * 1024;

    private static final int MAX_STALLS = 3;

    /**
     * Interval, in nanoseconds, at which the server looks for lost calls of a connection that has ended. A call is lost
     * if the thread that was to end the call has failed.
     */
    static final long LOST_CHECK_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** Memory, in bytes, of one entry in {@link #calls} and one entry in {@link #lastIds} together. */
    private static final int SLOT_BYTES = 8;

    /** Number of slots, that is, entries in the table of calls, for which a connection is not charged. */
    private static final int UNCHARGED_SLOTS = 64;

    private static final int FIRST_ERROR_BYTES = 64;

    private static final ServerCall[] NO_CALLS = {};
    private static final int[] NO_IDS = {};

    /**
     * Shortest delay, in nanoseconds, of the timer that checks the time limits of calls. Without this minimum, a client
     * that chooses many deadlines could cause any number of checks.
     */
    private static final long MIN_CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final long MIN_CHECK_DETACHED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /**
     * Largest length of a table or list of calls that is checked from end to end each time that {@link #checkTimer}
     * fires.
     */
    private static final int MAX_CHECKED_FULLY = 64;

    /**
     * Body of the ERROR frame that refuses a call because its handler is not admitted. The body is encoded only once,
     * because a refusal has to be cheap.
     */
    private static final ByteBuf OVERLOADED = Unpooled.buffer();

    static {
        WireError.write(OVERLOADED, ServerCallErrors.notAdmitted());
    }

    private final ServerCore server;
    final ConnectionThreads threads;
    final UnchargedAllowance uncharged;

    /**
     * Table of the calls under way. The index is the slot of the call, which is a part of the call's id. The entry of a
     * slot without a call is null.
     */
    private @Nullable ServerCall[] calls = new ServerCall[8];

    /**
     * Id of the last call in each slot, by which the server recognizes a request that the client repeats. The index is
     * the slot. {@link #cutTables} removes slots that have not been used for some time.
     */
    private int[] lastIds = new int[calls.length];

    /**
     * One more than the highest slot that has been used since {@link #cutTables} last set this number. A slot is used
     * by a call, and also by a request that is refused. {@link #cutTables} keeps the slots below this number.
     */
    private int firstUnusedSlot;

    /**
     * Charge, in bytes, for the entries of {@link #calls} and {@link #lastIds} beyond the first
     * {@link #UNCHARGED_SLOTS} slots.
     */
    private final Charge slotBytes;

    /**
     * Whether the event loop of this connection has a queued task that gives unused {@link ServerCall} objects back to
     * the server. The event loops of several connections can call {@link #giveUpIdlePlaces} at the same time. Only the
     * thread that sets this flag queues the task. The task clears the flag.
     */
    private final AtomicBoolean isTrimQueued = new AtomicBoolean();

    private final PostponedCalls postponedCalls = new PostponedCalls(this, this::unreadBytes);

    /**
     * Postponed calls of methods that return streams. These calls wait until the client has read enough of earlier
     * replies and of the items of its streams.
     */
    private final PostponedCalls postponedStreams = new PostponedCalls(this, this::unreadStreamBytes);

    /**
     * Number of calls whose handlers have returned a publisher to which the server has not subscribed yet. Handlers'
     * threads increase the number, and any thread may decrease it.
     */
    private final AtomicInteger opening = new AtomicInteger();

    private Settings client = Settings.INITIAL;

    /**
     * Largest reply or stream item, in bytes, that the client takes. The event loop writes the field. Threads that make
     * replies or items read it.
     */
    private volatile int maxReplyBytes = Wire.MAX_MESSAGE_BYTES;

    /**
     * Whether the client reads metadata in front of the body of a REPLY. The event loop writes the field. Threads that
     * make replies read it.
     */
    private volatile boolean readsReplyMetadata;

    private final UnderWay underWay = new UnderWay();
    private final RequestReader request;
    final SentReplies sentReplies = new SentReplies(this, underWay);

    final Admission admission;

    /**
     * Calls that have a time limit, but no slot in the table {@link #calls} any more. There are three kinds: notices,
     * calls that have lost their caller but still wait for the handler's future, and calls that an interceptor has
     * answered while the handler runs on.
     */
    private final CallList detached = new CallList();

    /**
     * Earliest time at which a call in {@link #detached} can reach its time limit, in nanoseconds of the event loop's
     * ticker. The value has no meaning while the list is empty.
     */
    private long detachedDueNanos;

    /**
     * Earliest time of the next check of {@link #detached}, in nanoseconds of the event loop's ticker. Applies only
     * while {@code detached} has more than {@code MAX_CHECKED_FULLY} calls. A shorter list is checked each time that
     * the timer fires.
     */
    private long mayCheckDetachedNanos;

    /**
     * Calls that nobody waits for and that have no time limit. A call is removed from this list when its handler and
     * each further thread of the call have ended, or when its handler returns an unfinished future: see
     * {@link #linger}.
     */
    private final CallList dropped = new CallList();

    /**
     * Makes the event loop look for lost calls. A call is lost if the thread that was to end the call has failed. Any
     * thread may ask for this.
     */
    final LostCalls lost = new LostCalls(() -> inLoopOrHere(this::endLost));

    final CallThreads callThreads;

    private final KeepAlive keepAlive;
    private @Nullable Principal peer;
    private final FloodGuard guard;

    /** Whether this server has sent GOAWAY, which announces the end of the connection. Event loop only. */
    private boolean draining;

    /** Whether the client has sent GOAWAY, after which the server refuses further requests. Event loop only. */
    private boolean goAwayReceived;

    /**
     * Whether a task that closes the connection has been queued. The task is queued when the client has sent GOAWAY and
     * no call is under way. Event loop only.
     */
    private boolean isCloseOrdered;

    /**
     * Whether the connection has ended, and {@link #onClosed} has ended or cancelled all calls of the connection except
     * notices, which go on.
     */
    private boolean isOver;

    private boolean greeted;

    /** Charge for the timers {@link #greeting} and {@link #checkTimer}. Each timer is charged while it is set. */
    private final Charge timers;

    private final ScheduledFuture<?> greeting;
    private final long stallNanos;

    private final ReadingClock readingClock;

    /**
     * Result of {@link #reads} when the server last resumed reading; -1 if it has never resumed reading. As long as
     * {@link #reads} returns the same number, nothing has been read since then, and the server does not pause again.
     */
    private int readsBeforeResume = -1;

    /**
     * Time at which the incomplete frame that is arriving became large enough to be charged, in nanoseconds of
     * {@link #readingClock}.
     */
    private long frameSinceNanos;

    private @Nullable ScheduledFuture<?> checkTimer;
    private long nextCheckNanos;

    /**
     * Calls that will soon reach a time limit. If {@link #calls} has more than {@code MAX_CHECKED_FULLY} entries, most
     * checks of time limits visit only these calls. Otherwise, this set is not used.
     */
    private final DueSoon dueSoon = new DueSoon(this::leftOf, this::nanoTime);

    /**
     * Holds the number of calls that have a slot. The number changes with each call, so it is kept out of the cache
     * lines of those fields that other threads read. The event loop writes the number. Handlers' threads read it
     * without a lock, and may get an old value. They use the number only to decide which thread writes a reply.
     */
    static final class UnderWay {
        int calls;
    }

    /**
     * Creates the server side of an accepted connection.
     *
     * @param takenNanos time at which the connection was accepted, in nanoseconds of the event loop's ticker; from this
     *     time on, the client has {@link #stallNanos} to send its complete preface
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
     * Returns the number of calls whose handlers run, for which threads of {@link CallThreads} run, or whose replies
     * have not been sent. The number is only approximate while calls start or end.
     */
    private long busy() {
        return admission.taken() - sentReplies.count();
    }

    /**
     * Returns the principal that the client's certificate names; null if there is none. The principal is known before
     * the first request arrives.
     */
    @Nullable
    Principal peer() {
        return peer;
    }

    @Override
    public int maxBytesTaken() {
        return maxReplyBytes;
    }

    /** Returns whether the client reads metadata in front of the body of a REPLY. Any thread may call this. */
    boolean readsReplyMetadata() {
        return readsReplyMetadata;
    }

    // ---- for the threads of handlers

    /**
     * Returns whether calls of {@code method} have to wait until the client has read more of what this connection
     * sends. Any thread may call {@code isCongested}.
     */
    boolean isCongested(ServerMethod method) {
        if (!method.returnsStream()) {
            return postponedCalls.isCongested();
        }
        // This connection is not notified when a stream makes an item, so the number of unread bytes is checked here.
        postponedStreams.unreadHasGrown();
        return postponedStreams.isCongested();
    }

    /**
     * Makes further calls wait if the client has too many bytes to read. Called after a large reply has been charged,
     * or could not be charged. Any thread may call this.
     */
    void replyHeld() {
        postponedCalls.unreadHasGrown();
    }

    @Override
    public long replyBytes() {
        return account.held(Resource.REPLY_BYTES);
    }

    /**
     * Returns the number of bytes of replies that the client has not read, including bytes in the queue of the socket.
     * Any thread may call this.
     */
    private long unreadBytes() {
        return account.held(Resource.REPLY_BYTES) + account.held(Resource.QUEUE_BYTES);
    }

    /**
     * Returns the number of bytes of replies and stream items that the client has not read. Each call that
     * {@code opening} counts adds {@code StreamSender.WINDOW_BYTES}, for the first items of its stream. Any thread may
     * call this.
     */
    private long unreadStreamBytes() {
        return unreadBytes() + account.held(Resource.ITEM_BYTES_OUT) + (long) StreamSender.WINDOW_BYTES * opening.get();
    }

    /**
     * Decrements {@code opening}, the number of publishers to which the server has not subscribed yet. Called when the
     * server is about to subscribe to a publisher or will certainly not subscribe. Any thread may call this.
     *
     * <p>The number is decremented before {@code isCongested} reads the flag {@code congested}. In
     * {@code PostponedCalls.resume}, the event loop sets this flag and then reads the number again. So at least one of
     * the two threads sees what the other has written. In the other order, postponed calls could stay postponed.
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
     * Postpones a call until both conditions hold: its caller has read enough of what the server has sent, and the call
     * is admitted. If the call waits longer than {@code 2 * MAX_STALLS} times {@link #stallNanos}, it ends with an
     * error. If there is no room to charge the waiting call, the call is refused.
     */
    void postpone(ServerCall call) {
        if (!call.chargeWaiting()) {
            refuseAdmission(call);
            return;
        }
        long now = nanoTime();
        call.loopState.waitsUntilNanos = now + 2 * MAX_STALLS * stallNanos;
        postponed(call).add(call);
        if (isPostponed(call)) {
            scheduleEarlierCheck(call, now);
        }
    }

    private boolean isPostponed(ServerCall call) {
        return postponedCalls.has(call) || postponedStreams.has(call);
    }

    /**
     * Tries to admit a postponed call. If there is no room for the call, the outcome depends on the handlers:
     *
     * <ul>
     *   <li>If the connection runs a handler, the call goes on waiting until a handler of the connection has ended.
     *   <li>If the connection runs no handler, the call is refused.
     * </ul>
     *
     * <p>Do not refuse a call while a handler runs. When the client has read enough of what the server has sent, this
     * method is called for one postponed call right after another. These calls find no room until a handler has ended,
     * so most of them would be refused.
     *
     * @return false if the call has to go on waiting; true if the call has been admitted or refused
     */
    boolean enterPostponed(ServerCall call) {
        if (admission.enter(call, call.method())) {
            // The AdmissionLimit of the method must not measure the time during which the caller did not read.
            call.measureFrom(nanoTime());
            return true;
        }
        if (admission.isAnyRunning()) {
            return false;
        }
        refuseAdmission(call);
        return true;
    }

    /**
     * Starts postponed calls, if the client has read enough of what the server has sent. Called when a handler has
     * ended or the client has read.
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

    /** Closes the connection if the client has not sent its complete preface in time. */
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
                readsReplyMetadata = client.readsReplyMetadata();
            }
            case Wire.SCHEMA -> {
                guard.schemasAsked();
                onSchemaQuestion(payload);
            }
            case Wire.GOAWAY -> {
                goAwayReceived = true;
                sentReplies.drain();
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
                // The server ignores frames of later versions of the wire, and frames that have no meaning for a
                // server.
            }
        }
        if (type != Wire.REQUEST && type != Wire.NOTICE) {
            // Handling the frame may have run user code on the event loop for any length of time, so the cached time
            // may be out of date.
            readAnew();
        }
    }

    /** Answers the question of a client for the members of methods, with at least one frame. */
    private void onSchemaQuestion(ByteBuf payload) {
        List<ByteBuf> answer = new ArrayList<>();
        SchemaFrames.readQuestion(payload, number -> answer.addAll(server.schema(number)));
        if (answer.isEmpty()) {
            answer.add(Unpooled.EMPTY_BUFFER);
        }
        sendNow(new SchemaFrame(answer, 0));
    }

    /**
     * One frame of the answer to a question for schemas. The next frame is queued only when this one has been copied
     * into a buffer for the socket. So a client that does not read the answer makes the server hold one frame of it.
     */
    private final class SchemaFrame extends Outbound.Control {
        private final List<ByteBuf> answer;
        private final int index;

        SchemaFrame(List<ByteBuf> answer, int index) {
            super(
                    index + 1 < answer.size() ? Wire.SCHEMA | Wire.MORE : Wire.SCHEMA,
                    0,
                    answer.get(index).duplicate());
            this.answer = answer;
            this.index = index;
        }

        @Override
        public boolean beforeSend() {
            holdUntilWritable = isSocketBusy();
            return true;
        }

        @Override
        public void onSent() {
            if (index + 1 < answer.size()) {
                send(new SchemaFrame(answer, index + 1));
            }
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
     * Begins a call for a request whose first frame has just been read, or refuses the request. The request is refused
     * if there is no room for the call. A request in one frame is also refused if its handler is not admitted.
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
            // A request in one frame began when the bytes of the frame were read, so the time of that read is used.
            long now = more ? nanoTime() : readNanos();
            call.begin(id, method, metadata, now, now + request.nanos(), notice);
            isPlaceUsed = true;
        } finally {
            if (!isPlaceUsed) {
                // An exception, such as an OutOfMemoryError, is about to end the connection. The call has not begun, so
                // its charges and its object are given back here.
                call.releaseCharges();
                admission.undo(call, method, hasEntered);
            }
        }
        call.metadataCost = request.metadataCost();
        return call;
    }

    /**
     * Begins to receive a request that arrives in several frames.
     *
     * @param first bytes of the arguments in the first frame
     */
    private void receive(ServerCall call, ByteBuf first) {
        long began = call.measuredFromNanos();
        call.loopState.receiving = true;
        call.loopState.unfinished = new UnfinishedMessage(readingClock.at(began), began);
        if (holdCounted(call, first)) {
            scheduleEarlierCheck(call, began);
        }
    }

    /** Returns the total length of the tables {@code calls} and {@code lastIds}. For tests. */
    public int tableSlots() {
        return calls.length + lastIds.length;
    }

    /**
     * Makes the tables {@link #calls} and {@link #lastIds} long enough for a slot, and charges the connection for the
     * longer tables.
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
     * Removes from the end of {@link #calls} and {@link #lastIds} those slots that have not been used since this method
     * last ran, usually at the previous check by {@link KeepAlive}. At least {@link #UNCHARGED_SLOTS} slots stay. If a
     * client repeats a request in a removed slot, the server executes the request again.
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
        // The slot of a refused request counts as used, even if calls and lastIds are too short to contain it. So the
        // length that is computed above can be greater than the present length. Then nothing is cut.
        if (length >= calls.length) {
            return;
        }
        try {
            @Nullable ServerCall[] cut = Arrays.copyOf(calls, length);
            lastIds = Arrays.copyOf(lastIds, length);
            calls = cut;
            slotBytes.set((long) SLOT_BYTES * (length - UNCHARGED_SLOTS));
        } catch (OutOfMemoryError noMemory) {
            // There is no memory for the shorter tables, so a later check tries again to cut them.
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
            call.measureFrom(nanoTime());
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
            // A request in several frames is admitted here, since its last part has arrived now.
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
        // The timer for the deadline is set before the call is handed to another thread. If setting the timer fails,
        // the connection ends, and does not wait for a handler that never starts.
        if (call.notice) {
            takeNotice(call);
        } else if (place != RunOn.Place.EVENT_LOOP) {
            scheduleCheck(call);
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
        // Most calls that run on the event loop have ended by now. The timer is set only for a call that has not ended.
        if (call(id) == call || detached.contains(call)) {
            scheduleCheck(call);
        }
    }

    /**
     * Acknowledges a notice, that is, a one-way call, and frees its slot. The client does not learn how the handler
     * ends.
     */
    private void takeNotice(ServerCall call) {
        call.loopState.abandoned = true;
        try {
            addDetached(call, call.deadlineNanos());
            freeSlot(call);
            scheduleCheck(call.deadlineNanos());
            sendNow(Wire.REPLY, call.id);
        } catch (RuntimeException | Error e) {
            // A notice has no slot any more, so the end of the connection would not end this call. The call is ended
            // here instead.
            Admission.leave(call, false);
            recycle(call);
            throw e;
        }
    }

    /**
     * Hands a call to another thread, which runs its handler. If no thread can take the call, the call ends with an
     * error.
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
            refuseStart(call, ConnectionErrors.SERVER_CLOSING);
        } catch (Throwable e) {
            refuseStart(call, ServerCallErrors.NO_THREAD);
        }
        return false;
    }

    /**
     * Refuses a call that has waited for a thread, because the server cannot start a thread. Any thread may call this.
     */
    void noThread(ServerCall call) {
        inLoopOrHere(() -> refuseStart(call, ServerCallErrors.NO_THREAD));
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

    /** Logs that a notice has failed, since the client of a notice gets no error. Any thread may call this. */
    void noticeFailed(ServerMethod method, RPCXException why) {
        server.noticeFailed(method, why);
    }

    /**
     * Logs what a handler or an interceptor has thrown, or why a result cannot be sent. Any thread may call this.
     *
     * @param what what has failed
     */
    void logFailure(ServerMethod method, int id, String what, Throwable thrown) {
        server.failures()
                .log(
                        method,
                        what,
                        () -> "call " + HexFormat.of().toHexDigits(id) + " of " + channel.remoteAddress(),
                        thrown);
    }

    private void refuseAdmission(ServerCall call) {
        int id = call.id;
        drop(call);
        refuseOverloaded(id);
    }

    private void refuseStream(ServerCall call) {
        int id = call.id;
        drop(call);
        refuse(id, RPCXException.Code.OVERLOADED, StreamErrors.TOO_MANY);
    }

    /**
     * Records that the handler of a call has ended or does not start. If no further thread runs for the call, the
     * connection stops counting the handler as running. Otherwise a later call of this method or of {@link #recycle}
     * stops counting it, after these threads have ended. So this method can be called more than once for the same
     * handler. Event loop only.
     */
    void handled(ServerCall call) {
        call.loopState.handling = false;
        admission.uncount(call);
    }

    /**
     * Stops counting the handler of a call as running. Called when the last of the threads that {@link CallThreads}
     * counts for the call has ended, but the reply has not been sent yet.
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
            scheduleEarlierCheck(call, now);
        }
    }

    private void endOverLargeItem(ServerCall call) {
        endByItem(
                call,
                RPCXException.Code.TOO_LARGE,
                "an item of more than " + server.settings().maxMessageBytes() + " bytes");
    }

    /**
     * Ends a call with an error, because the client has sent a stream item that the server cannot take. The error says
     * whether the handler has been executed.
     */
    private void endByItem(ServerCall call, RPCXException.Code code, String text) {
        int id = call.id;
        boolean isExecuted = call.isExecuted();
        boolean hasBegun = drop(call);
        RPCXException.Executed unsure = hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
        endWithError(id, code, text, isExecuted ? RPCXException.Executed.EXECUTED : unsure);
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
     * Sends the client CREDIT frames, which say how many further items of its stream the handler can take.
     * {@code cancel} sends nothing, since the reply of the call shows the client that no more items are wanted.
     */
    private final class Incoming implements StreamReceiver.Peer {
        private final int id;

        /**
         * Number of items that the handler has asked for, and that no CREDIT frame has announced to the client yet. Any
         * thread may add items, and the event loop takes all of them for one frame.
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
                    // The CREDIT frame is sent only while the call is under way. After the call's final frame, the slot
                    // can belong to another call.
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
     * Returns the time at which a call has to be checked next, because the call may then have reached a time limit. The
     * time is in nanoseconds of the event loop's ticker. The limits are the deadline, the time for an unfinished
     * message to arrive, and the time for which the call can be {@link #postpone postponed}.
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
            // The two limits above use the reading clock, which stands still while the server does not read. With these
            // limits alone, a message could take any amount of time. So a third limit uses a clock that never stands
            // still, and allows twice the normal time.
            left = Math.min(left, unfinished.beganNanos + 2 * whole - now);
        }
        if (isPostponed(call)) {
            left = Math.min(left, call.loopState.waitsUntilNanos - now);
        }
        return now + left;
    }

    /**
     * Returns the time within which a message in several frames has to arrive completely, in nanoseconds. The time is
     * {@code MAX_STALLS} times {@link #stallNanos}, and 1 s more for each 16 KiB that have arrived after the first
     * frame.
     */
    private long wholeNanos(UnfinishedMessage unfinished) {
        return MAX_STALLS * stallNanos + unfinished.allBytes * (TimeUnit.SECONDS.toNanos(1) / MIN_BYTES_PER_SECOND);
    }

    @Override
    public void frameWaits(long nowNanos) {
        frameSinceNanos = readingClock.at(nowNanos);
        scheduleCheck(nowNanos + frameLeft(nowNanos), nowNanos);
    }

    /**
     * Returns the time that is left for the incomplete frame to arrive completely, in nanoseconds. Called for a frame
     * that is large enough to be charged.
     */
    private long frameLeft(long now) {
        return readingClock.remaining(frameSinceNanos + frameNanos(stallNanos), now);
    }

    /**
     * Returns the time within which the rest of a frame or TLS record has to arrive, in nanoseconds. The time begins
     * when the frame or record has become large enough to be charged.
     */
    static long frameNanos(long stallNanos) {
        return MAX_STALLS * stallNanos + Wire.MAX_FRAME_BYTES * (TimeUnit.SECONDS.toNanos(1) / MIN_BYTES_PER_SECOND);
    }

    /** Sets the timer so that the call ends at its deadline. */
    private void scheduleCheck(ServerCall call) {
        dueSoon.add(call.id, call.deadlineNanos());
        scheduleCheck(call.deadlineNanos());
    }

    private void scheduleEarlierCheck(ServerCall call, long now) {
        long due = due(call, now);
        dueSoon.add(call.id, due);
        scheduleCheck(due, now);
    }

    /**
     * Sets the timer of the connection, which runs {@link #checkDue}, for the given time. Does nothing if the timer is
     * set for an earlier time already. The delay is at least {@code MIN_CHECK_NANOS}.
     */
    private void scheduleCheck(long due) {
        if (checkTimer == null || due - nextCheckNanos < 0) {
            scheduleCheck(due, nanoTime());
        }
    }

    private void scheduleCheck(long due, long now) {
        if (isClosed() && detached.isEmpty() && dropped.isEmpty()) {
            // The connection has ended, and no call goes on without it, so there is no call to check, and no timer is
            // set.
            return;
        }
        ScheduledFuture<?> later = checkTimer;
        if (later != null && due - nextCheckNanos >= 0) {
            return;
        }
        // The old timer is cancelled only after the new timer is set. If setting the new timer fails, the old timer
        // remains.
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
     * Ends the connection, because a check of its calls has failed or the timer for the check could not be set. Calls
     * that go on after the end of the connection are checked again after {@code LOST_CHECK_NANOS}, unless the event
     * loop is shutting down.
     */
    private void checkFailed(Throwable thrown) {
        try {
            failInternally(thrown);
        } finally {
            if (!loop().isShuttingDown()) {
                scheduleCheck(nanoTime() + LOST_CHECK_NANOS);
            }
        }
    }

    /**
     * Ends or cancels each call that has reached a time limit, such as its deadline. Ends the connection if a frame has
     * not arrived completely in time.
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
                fail(ConnectionErrors.LATE_FRAME);
                return;
            }
            next = Math.min(next, left);
        }
        long others = next;
        // One write sends the errors of all calls whose time is over.
        sendTogether(() -> {
            long first = Math.min(others, dueSoon.isComplete(now) ? dueSoon.scan(now, this::endIfDue) : endDue(now));
            if (first < Long.MAX_VALUE / 2) {
                scheduleCheck(now + first, now);
            }
        });
    }

    /**
     * Checks all calls that have a slot, and ends those that have reached a time limit.
     *
     * @return nanoseconds until the next of these calls reaches a time limit; {@link DueSoon#NEVER} if there is no such
     *     call
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
                // The error could not be written, which has ended the connection and all its calls. So the loop stops.
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
     * Ends a call if it has reached a time limit.
     *
     * @return nanoseconds until the call has to be checked again; {@link DueSoon#NEVER} if the call has ended, or if
     *     the handler's thread is already sending the call's reply
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
            endWithError(
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

    /** Returns the text of the error for a call that has reached a time limit. The text says which limit this is. */
    private String whyOver(ServerCall call, long now) {
        UnfinishedMessage unfinished = call.loopState.unfinished;
        boolean isLate = call.deadlineNanos() - now <= 0;
        if (unfinished == null && !isLate) {
            return "the call could not begin in time, since replies before it waited to be read (expected: within "
                    + TimeUnit.NANOSECONDS.toMillis(2 * MAX_STALLS * stallNanos) + " ms)";
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
     * {@code MAX_CHECKED_FULLY} calls is checked only when one of its calls is due, and at most ten times a second.
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
        // The field gets the latest possible time here. A call that is added during the check sets the field to an
        // earlier time.
        detachedDueNanos = now + DueSoon.NEVER;
        long next = 0;
        try {
            next = checkDetached(now);
        } finally {
            // If checkDetached() has thrown, next is 0, so that the list is checked again as soon as possible.
            if (now + next - detachedDueNanos < 0) {
                detachedDueNanos = now + next;
            }
        }
        next = detachedDueNanos - now;
        mayCheckDetachedNanos = now + MIN_CHECK_DETACHED_NANOS;
        return detached.size() > MAX_CHECKED_FULLY ? Math.max(next, MIN_CHECK_DETACHED_NANOS) : next;
    }

    /**
     * Cancels each call in {@link #detached} whose time limit has passed. If such a call has been cancelled before,
     * stops waiting for its handler instead.
     *
     * @return nanoseconds until the next time limit of a call in {@code detached} passes
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
                        addDetached(call, now + PendingResult.MAX_GRACE_NANOS);
                        next = Math.min(next, PendingResult.MAX_GRACE_NANOS);
                    } else {
                        dropped(call);
                    }
                }
            }
            // The end of a call can remove other calls from the list, or move them. If the following call has been
            // removed or moved, the check starts again with the first call.
            call = following == null || detached.hasKept(following, addition) ? following : detached.first();
        }
        return next;
    }

    /**
     * Ends a cancelled notice that still waits for a thread, and logs that the notice has failed.
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
     * Takes back the task that was handed over to run a call, if the task still waits for a thread.
     *
     * @return whether the task has been taken back
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

    /**
     * Adds a call to the list {@code dropped}, if its handler or another thread of the call still runs. Called for a
     * call that nobody waits for. A call that is in another list stays there.
     */
    private void dropped(ServerCall call) {
        if ((call.loopState.handling || call.loopState.isOverButThreads) && call.loopState.list == null) {
            dropped.add(call);
        }
    }

    /** Cancels a handler that still runs although an interceptor has answered the call. */
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
                    // The failure is only reported. The connection stops waiting for this call, and the loop goes on
                    // with the other calls.
                    ThreadTools.report(t);
                    giveUp(call);
                }
            }
            stopChecking();
            server.noticesCutOff(unbegun, interrupted);
        });
    }

    /**
     * Returns whether the stopping server has begun to cut off its calls, so that no handler starts any more. Any
     * thread may call this.
     */
    boolean isCutOff() {
        return server.isCutOff();
    }

    @Override
    public boolean isSentLater() {
        // With this flag set, the event loop's next check looks for lost calls. The check begins by sending all queued
        // messages, including the message for which the event loop could not be woken.
        lost.isAny = true;
        try {
            lost.requestCheck();
        } catch (Throwable again) {
            // Even without this request, the next check of the calls' time limits also looks for lost calls, and sends
            // the message before that.
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
     * Ends all lost calls. A call is lost if the thread that had to end the call has failed.
     *
     * @return false if this method has not looked for lost calls, because messages are still queued; the message of a
     *     call that seems lost can be among them
     */
    private boolean endAllLost() {
        // A call can be marked as lost although its message is queued. Such a call is not really lost. So all queued
        // messages are sent before the search for lost calls.
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
        call.endStages();
        if (call.loopState.abandoned) {
            // If leave() fails, the call is still marked as lost, and the next check for lost calls finds it.
            Admission.leave(call, false);
            recycle(call);
            return;
        }
        handled(call);
        call.tryEnd();
        drop(call);
        RPCXException.Executed unsure = hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
        endWithError(
                id,
                RPCXException.Code.HANDLER_FAILED,
                ServerCallErrors.THREAD_FAILED,
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
     * Limits the wait for the future of a handler whose caller is gone: the server gives the call up after
     * {@code PendingResult.MAX_GRACE_NANOS}. If the server is stopping or the event loop is shutting down, this method
     * gives the call up at once.
     */
    private void linger(ServerCall call) {
        long now = nanoTime();
        addDetached(call, now + PendingResult.MAX_GRACE_NANOS);
        if (draining || loop().isShuttingDown()) {
            giveUp(call);
        } else {
            scheduleCheck(now + PendingResult.MAX_GRACE_NANOS, now);
        }
    }

    /** Limits the wait for the future that the handler of a cancelled call has returned. Any thread may call this. */
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
     * Makes the event loop open the stream of a call whose handler has returned a publisher. The server then subscribes
     * to the publisher where the handlers of the method run, see {@link CallThreads#signalsOf}, and the event loop
     * sends the items. Called on the handler's thread.
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
     * Task that opens the stream of a call whose handler has returned a publisher. The boolean value ensures that the
     * publisher is removed from the count {@code opening} only once. The value becomes true when the server is about to
     * subscribe to the publisher, or will certainly not subscribe.
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
         * Decrements {@code opening}, the number of publishers to which the server has not subscribed yet. A second
         * call of this method does nothing. Any thread may call this.
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
            // If get() returns true, the handler's thread has failed after it had queued this Opening. The call is then
            // ended as a lost call.
        }
    }

    private void startStream(ServerCall call, Flow.Publisher<Object> publisher, Opening begins) {
        call.loopState.handling = false;
        if (call.resumed) {
            postponedStreams.stopCountingResumed(call);
        }
        if (call.loopState.abandoned || isClosed()) {
            begins.opened();
            if (publisher instanceof StreamEndListener listener) {
                // The listener can write to a log and block, so it runs where the method's handlers run, which is
                // usually not the event loop.
                callThreads.runCallbacksIfPossible(call, List.of(() -> listener.ended(null)));
            }
            recycle(call);
            return;
        }
        int id = call.id;
        try {
            subscribeTo(call, publisher, begins);
        } catch (Throwable t) {
            if (call(id) == call) {
                // Neither the handler nor a stream will end the call any more, so the call is marked as lost, and the
                // event loop ends the call. The flag handling is set first, because without the flag isLost() returns
                // false.
                call.loopState.handling = true;
                call.markLost(id);
            }
            begins.opened();
            throw t;
        }
        // The connection no longer counts the handler as running, so there can be room for postponed calls.
        resumeIfWaiting();
    }

    private void subscribeTo(ServerCall call, Flow.Publisher<Object> publisher, Opening begins) {
        // The handler has returned, and only its stream goes on. So the connection stops counting the handler as
        // running.
        admission.uncountNow(call);
        // The reference is written before the sender is used, so any thread on which the sender fails finds the sender.
        AtomicReference<@Nullable StreamSender> self = new AtomicReference<>();
        ServerMethod method = call.method();
        HandledContext its = call.context();
        int id = call.id;
        StreamSender sender = new StreamSender(
                this,
                id,
                method.result(),
                Wire.REPLY,
                thrown -> {
                    RPCXException error =
                            ServerCallErrors.failed(thrown, method, its).withMetadata(its.replyMetadata());
                    ByteBuf body = Unpooled.buffer();
                    WireError.write(body, error);
                    Objects.requireNonNull(self.get()).addLast(Wire.ERROR, body);
                    if (!its.isCancelled() && !ServerCallErrors.tellsAll(thrown, error)) {
                        logFailure(method, id, ServerCallErrors.STREAM, thrown);
                    }
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
     * Appends bytes of a request to the buffer of the call, and charges the call for the growth of the buffer. If there
     * is no room for the charge, the call is refused.
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
            endWithError(
                    id,
                    RPCXException.Code.CANCELLED,
                    "cancelled",
                    hasBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED);
        }
    }

    /**
     * Ends a call before its reply has been sent. Cancels its handler, and frees its slot. If the handler still
     * produces a result, the result is dropped. The code that calls this method has to send the final frame.
     *
     * @return false if the handler of the call has not started, and never will
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
     * Ends a call that nobody waits for. The call object is freed now or, if the handler still runs, when the handler
     * ends or the server stops waiting for the handler's future.
     *
     * @return false if the handler of the call has not started, and never will
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
     * Makes sure that a call ends, although the code that was ending it has thrown an exception. If neither the handler
     * nor another thread of the call runs, ends the call at once. Otherwise makes sure that the call is in a list of
     * this connection, so that it ends later.
     */
    private void keepInSight(ServerCall call) {
        if (call.loopState.isRecycled) {
            return;
        }
        if (!call.loopState.handling && !call.loopState.isOverButThreads) {
            // Neither the handler nor another thread of the call runs, so the call is ended here.
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
            // linger() has added the call to the list of detached calls before the failure, and a check of that list
            // ends the call.
        }
    }

    private boolean abandonHere(ServerCall call) {
        // The state is read before the streams are ended, since the end of a stream can end the handler and recycle the
        // call.
        boolean handled = call.loopState.handling;
        boolean hasBegun;
        try {
            hasBegun = handled ? cancel(call) : call.hasBegun();
            if (handled && withdraw(call)) {
                // The call's task still waited for a thread and has been withdrawn, so no thread will run the call and
                // end it.
                handled = false;
                call.loopState.handling = false;
            } else if (!handled
                    && hasBegun
                    && (call.method().returnsStream() || call.context().isHandlerBehind())) {
                // Two kinds of handlers still have to be cancelled: a handler that has returned a stream, and a handler
                // that runs on after an interceptor has answered the call.
                call.cancel();
            }
        } finally {
            // The streams are ended even if cancelling the call has failed, since the handler can be waiting for one of
            // the streams.
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
     * @return false if the handler of the call has not started, and never will
     */
    private boolean cancel(ServerCall call) {
        boolean hasBegun = call.cancel();
        if (!hasBegun) {
            // The call has waited for a thread and will not run, so the connection stops counting its handler.
            admission.uncount(call);
        }
        // If only an interceptor has started, hasBegun is true, although the method has not been executed.
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
                    receiver.end(ServerCallErrors.goneDuringStream());
                }
            }
        } catch (Throwable t) {
            // The exception is only reported, because the code that calls this method still has to free the call.
            ThreadTools.report(t);
        }
    }

    private @Nullable ServerCall call(int id) {
        int slot = id & Wire.SLOT_MASK;
        ServerCall call = slot < calls.length ? calls[slot] : null;
        return call != null && call.id == id ? call : null;
    }

    private void refuse(int id, RPCXException.Code code, String text) {
        endWithError(id, code, text, RPCXException.Executed.NOT_EXECUTED);
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
     * Sends the ERROR frame that ends a call. While many bytes wait to be sent or have just been sent, the frame has no
     * text, so that refusing many calls costs little.
     */
    private void endWithError(int id, RPCXException.Code code, String text, RPCXException.Executed executed) {
        ByteBuf body = Unpooled.buffer(FIRST_ERROR_BYTES);
        WireError.write(body, ServerCallErrors.ended(code, isBacklogged() ? "" : text, executed));
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

    /**
     * Frees the slot and the object of a call whose reply has been sent completely. Also called for each call in the
     * list of {@link SentReplies}. A handler's thread may still be writing the reply of such a call.
     */
    void replied(ServerCall call) {
        StreamReceiver receiver = call.receiver;
        if (receiver != null) {
            receiver.end(ServerCallErrors.over());
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
     * Frees the object of a call that is over. If threads still run for the call, the object is freed when the last of
     * these threads has ended. Before the object is freed, this method ends the streams of the call. Ending a stream
     * can run user code, and this code can end this call or other calls. If the object has been freed already, this
     * method does nothing.
     */
    void recycle(ServerCall call) {
        if (call.loopState.isRecycled) {
            return;
        }
        handled(call);
        // If endUnlessThreads() throws, the call must still be in its list, where a later check finds the call. So this
        // line precedes the removal from the list.
        call.loopState.isOverButThreads = !call.endUnlessThreads();
        CallList in = call.loopState.list;
        if (in != null) {
            in.remove(call);
        }
        if (call.resumed) {
            postponed(call).stopCountingResumed(call);
        }
        if (call.loopState.isOverButThreads) {
            // The reply has been sent or will not be sent, so the buffer of the reply is not needed any more.
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
        // If threads still ran for the call when this method called handled(), the connection still counts the handler
        // as running. It stops counting the handler here.
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
     * Adds a call that is over, but for which threads still run, to a list. If an interceptor has answered the call,
     * its handler runs on, and the call has not been cancelled, the list depends on the connection:
     *
     * <ul>
     *   <li>If the connection has not ended, the list is {@code detached}, so that the handler is cancelled at the
     *       deadline.
     *   <li>If the connection has ended, the list is {@code dropped}, and the handler is cancelled at once.
     * </ul>
     *
     * <p>In all other cases, the list is {@code dropped}.
     */
    private void goesOnWithThreads(ServerCall call) {
        if (call.isCancelled() || !call.context().isHandlerBehind()) {
            dropped.add(call);
        } else if (isOver) {
            // call.cancel() can end the call completely, which removes the call from the list. If the call were added
            // only after that, it would stay in the list for ever.
            dropped.add(call);
            call.cancel();
        } else {
            addDetached(call, call.deadlineNanos());
            scheduleCheck(call.deadlineNanos());
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
                sentReplies.drain();
                sendNow(Wire.GOAWAY, 0);
            }
        });
    }

    private void closeIfDrained() {
        if (goAwayReceived && underWay.calls == 0 && !isCloseOrdered) {
            loop().execute(() -> close("both sides are done"));
            // The flag is set after the task has been queued, since queueing can fail. Without the flag, each of many
            // GOAWAY frames would queue a task.
            isCloseOrdered = true;
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        boolean reads = channel.isWritable();
        if (!reads || !isReading()) {
            // If the channel has become writable during a read, this line is skipped, and channelReadComplete() resumes
            // reading. Otherwise, a channel whose client is in the same process would start a read inside the current
            // read.
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
     * Stops reading from a client that does not read its replies, and resumes reading when the client reads again.
     * After the end of the connection, the server reads what the client still sends, without a pause.
     *
     * <p>At least one read happens between two pauses. Otherwise, an upload by a client that reads slowly might never
     * arrive.
     */
    private void readUnlessFull() {
        if (isClosed() || channel.isWritable()) {
            if (!channel.config().isAutoRead()) {
                // While reading was paused, the server did not read what the client sent. So the pause must not count
                // as silence of the client.
                recordActivity();
                readsBeforeResume = reads();
                readingClock.setReading(true);
            }
        } else if (reads() != readsBeforeResume && channel.config().isAutoRead()) {
            readingClock.setReading(false);
        }
    }

    /**
     * Frees the {@link ServerCall} objects that no call uses, and the slots that have not been used lately. Called when
     * the connection has received nothing for some time.
     */
    @Override
    public void trimIdle() {
        super.trimIdle();
        cutTables();
        admission.giveUpPlaces();
    }

    /**
     * Frees half of the unused {@link ServerCall} objects, and the slots that have not been used lately. Even a busy
     * connection may never need as many of these objects and slots again as in its last burst.
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
     * Ends one call when the connection ends. An exception is only reported, so that the other calls of the connection
     * are ended too.
     */
    private void abandonSafely(ServerCall call) {
        if (call.loopState.isRecycled) {
            // The end of an earlier call has already ended this call.
            return;
        }
        try {
            abandon(call);
        } catch (Throwable t) {
            ThreadTools.report(t);
        }
    }

    /**
     * Ends or cancels the calls of the connection, except notices, which go on. Gives up the tables and unused call
     * objects of the connection. Each of {@code abandonAll}, {@code giveUpTables} and {@code giveUpPlaces} runs even if
     * the code before it fails. Otherwise, calls and charges would remain, or the server would not learn that the
     * connection has ended.
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
                        // The failure is only reported, so that the other calls are cancelled too.
                        ThreadTools.report(t);
                    }
                }
                call = following;
            }
            admission.connectionGone();
            threads.connectionGone();
        } finally {
            giveUpTables();
        }
    }

    private void giveUpTables() {
        // A handler can refer to this connection long after its end. The tables are replaced by empty arrays, so that
        // the handler does not keep the memory of tables that are no longer charged.
        calls = NO_CALLS;
        lastIds = NO_IDS;
        slotBytes.release();
        underWay.calls = 0;
        try {
            scheduleOutlastingChecks();
        } finally {
            giveUpPlaces();
        }
    }

    private void giveUpPlaces() {
        try {
            admission.giveUpPlaces();
        } finally {
            isOver = true;
            endIfOver();
        }
    }

    /** Sets the timer for checks of the calls that go on after the end of the connection. */
    private void scheduleOutlastingChecks() {
        try {
            for (ServerCall call = detached.first();
                    call != null && !loop().isShuttingDown();
                    call = call.loopState.following) {
                scheduleCheck(call.loopState.detachedUntilNanos);
            }
            if (!dropped.isEmpty() && !loop().isShuttingDown()) {
                scheduleCheck(nanoTime() + LOST_CHECK_NANOS);
            }
        } catch (Throwable t) {
            checkFailed(t);
        }
    }
}
