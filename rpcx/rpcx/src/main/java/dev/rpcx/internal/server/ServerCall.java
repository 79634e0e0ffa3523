package dev.rpcx.internal.server;

import dev.rpcx.Metadata;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.codec.Memory;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.UnchargedAllowance;
import dev.rpcx.internal.wire.Outbound;
import io.netty.buffer.ByteBuf;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * A request being handled, and then its reply. The object is used again when the reply has left and the handler has
 * ended; never while either is under way.
 */
public final class ServerCall extends Outbound
        implements PoolShares.Task, VirtualWorkers.Timed, Memory, PendingResult.Call, CallThreads.Call {
    final ServerConnection connection;
    final LoopState loopState = new LoopState();

    private static final VarHandle ENDED;

    static {
        try {
            ENDED = MethodHandles.lookup().findVarHandle(ServerCall.class, "ended", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    // fields that are set on the event loop before the handler starts
    private @Nullable ServerMethod method;
    private Metadata metadata = Metadata.EMPTY;
    private long beganNanos;
    private long deadlineNanos;

    private @Nullable HandledContext context;
    private @Nullable Thread runner;

    /** Receives the result of a handler that has returned before it had one. It is written under this object's lock. */
    private volatile @Nullable PendingResult pendingResult;

    /**
     * Whether the handler, or an interceptor before it, has started. A call whose time was over before that says
     * nothing about how long handlers take.
     */
    private boolean entered;

    /**
     * Task that was handed to a thread to run this call; the task may do something else first. Written by the event
     * loop alone.
     */
    PoolShares.@Nullable Task handed;

    boolean notice;

    /**
     * Whether the call goes back to the event loop, to wait until its caller has read what is sent to it. It is set on
     * the thread that would have run the handler.
     */
    boolean postponeRequested;

    /** Whether the handler was started after the call had waited, while its caller still had much to read. */
    boolean resumed;

    /** Estimated bytes that the handler's arguments take beside those that are charged. */
    int uncharged;

    /** Bytes of memory that the request's metadata take. */
    int metadataCost;

    /**
     * Id of the call which the thread that was about to end it could not end; 0 for none. A thread whose stack is at
     * its end stores it here, and then stores at the connection that there is such a call: see {@link LostCalls}.
     */
    private int lostId;

    /** Whether this call's place stays charged for a future that was given up. */
    boolean isPlaceLeft;

    /** What the call is charged for; null for as long as no call with this object has been charged for anything. */
    private @Nullable CallCharges charges;

    /**
     * Group of the limit that counts the handler; null where the handler is not counted. It is set before the handler
     * starts. Whoever ends the handler clears it: under this object's lock where the handler has not started, and the
     * last of its threads where {@link CallThreads} runs some.
     */
    AdmissionLimit.@Nullable Group admitted;

    /**
     * Receiver of the items that come with the call, and sender of those that go back; null where there is no such
     * stream.
     */
    @Nullable
    StreamReceiver receiver;

    @Nullable
    StreamSender sender;

    /**
     * Whether the right to send the final frame has been taken, by a handler's thread that sends its reply itself or by
     * the event loop that ends the call otherwise.
     */
    private volatile boolean ended;

    public ServerCall(ServerConnection connection) {
        this.connection = connection;
    }

    void begin(int callId, ServerMethod called, Metadata given, long now, long deadline, boolean oneWay) {
        notice = oneWay;
        beganNanos = now;
        id = callId;
        method = called;
        metadata = given;
        deadlineNanos = deadline;
        context = new HandledContext(
                now, deadline, given, connection.peer(), connection.loop().ticker());
        if (called.chain() != null) {
            context.setSteps(connection.callThreads.stepsOf(this));
        }
        loopState.begin();
        handed = null;
        holdUntilWritable = false;
        begun = false;
        // a release store is enough: the handler's thread is handed the call after it
        ENDED.setRelease(this, false);
        entered = false;
        postponeRequested = false;
        receiver = null;
        sender = null;
        if (lostId != 0) {
            lostId = 0;
        }
        clearBody();
    }

    /**
     * Begins the time that counts for admission: the last part of the request is there, or a call that has waited is
     * admitted. How long its caller took to send or to read says nothing about how long handlers take.
     */
    void restartAdmissionClock(long now) {
        beganNanos = now;
    }

    /**
     * Drops what the call refers to, when it is over: a place without a call refers to nothing that its caller sent or
     * its handler made. Event loop only.
     */
    void forget() {
        metadata = Metadata.EMPTY;
        HandledContext its = context;
        if (its != null) {
            its.releaseReferences();
            context = null;
        }
        sender = null;
        receiver = null;
        if (pendingResult != null) {
            synchronized (this) {
                pendingResult = null;
            }
        }
    }

    Metadata metadata() {
        return metadata;
    }

    /** Time from which the call counts for its method's limit. */
    long admittedNanos() {
        return beganNanos;
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    /** Charges of this call, made when they are first needed. */
    CallCharges charges() {
        CallCharges made = charges;
        if (made == null) {
            made = charges = new CallCharges(connection.account);
        }
        return made;
    }

    /**
     * Releases all charges of the call but that of a kept buffer: the call is over, its reply has left and its handler
     * has ended.
     */
    void releaseCharges() {
        CallCharges charged = charges;
        if (charged != null) {
            charged.request.release();
            charged.objects.release();
            charged.reply.release();
        }
    }

    /**
     * Gives up the buffer and the reply of a call whose reply has left or will not leave, while threads run on that
     * need neither. These threads have the metadata, which are charged as the request's again: the client has read all
     * that there is to read.
     */
    void giveUpReply() {
        CallCharges charged = charges;
        if (charged == null) {
            return;
        }
        long request = charged.request.held();
        long reply = charged.reply.held();
        if (reply == 0 && request <= metadataCost && charged.kept.held() <= body.capacity()) {
            return;
        }
        try {
            shrinkBody();
        } catch (OutOfMemoryError none) {
            // there is no memory even for the small buffer: this one stays until the end of the call, and so does its
            // charge
            return;
        }
        charged.kept.release();
        long stays = Math.min(request + reply, metadataCost);
        if (charged.request.set(stays)) {
            charged.reply.release();
        } else {
            charged.reply.set(Math.min(reply, stays));
        }
    }

    /**
     * Number of bytes that the reply has to be charged for: its own, or all of its buffer and of the request's metadata
     * that are not charged for a kept buffer or for the request, whichever is more. The metadata stay for as long as
     * the call does.
     */
    public long replyBytes() {
        CallCharges own = charges;
        long charged = own == null ? 0 : own.kept.held() + own.request.held();
        return Math.max(body.readableBytes(), HeapArray.taken(body) + metadataCost - charged);
    }

    /**
     * Keeps the buffer with the place for the next call, where there is room for its charge. The buffer stays charged
     * while that call uses it.
     */
    void keepBody() {
        if (body.capacity() > KEPT_BYTES) {
            shrinkBody();
        }
        if (body.capacity() <= FIRST_BYTES) {
            releaseKept();
        } else if (!charges().kept.set(body.capacity())) {
            shrinkBody();
            releaseKept();
        }
    }

    /**
     * Gives up the buffer with the place. Whoever still has this object, such as a publisher that the handler has kept,
     * holds no buffer by it that is not charged.
     */
    void releasePlace() {
        releaseKept();
        if (body.capacity() > FIRST_BYTES) {
            try {
                body.clear().capacity(0);
            } catch (OutOfMemoryError none) {
                // even an empty array takes some memory; the place is given back all the same
            }
        }
    }

    private void releaseKept() {
        CallCharges charged = charges;
        if (charged != null) {
            charged.kept.release();
        }
    }

    private void releaseObjects() {
        CallCharges charged = charges;
        if (charged != null) {
            charged.objects.release();
        }
    }

    /** Charges for an object of the request that is being read. The codec asks where a request is not small. */
    @Override
    public boolean take(long bytes) {
        return charges().objects.take(bytes);
    }

    /** A handler that is counted among those that run may hold more than others without being charged. */
    @Override
    public int unasked() {
        ServerMethod called = method();
        return called.admission() == null || called.returnsStream()
                ? UnchargedAllowance.IDLE_OBJECT_BYTES
                : connection.uncharged.objectBytes();
    }

    @Override
    public void isRead(long spare) {
        uncharged = (int) Math.max(0, unasked() - spare);
    }

    /**
     * Charges for all that a waiting call holds, since the call is not counted among those that run.
     *
     * @return false if there is no room for that
     */
    boolean chargeWaiting() {
        Charge request = charges().request;
        return request.set(Math.max(request.held(), HeapArray.taken(body) + metadataCost));
    }

    /**
     * Gives up a buffer that has grown, and its charge: the request has been read, and its call goes on for as long as
     * a stream does. Metadata stay charged where they were.
     */
    void giveUpBody() {
        if (body.capacity() > FIRST_BYTES) {
            shrinkBody();
            releaseKept();
        }
        CallCharges charged = charges;
        if (charged != null) {
            long metadata = metadataCost > UnchargedAllowance.IDLE_METADATA_BYTES ? metadataCost : 0;
            charged.request.set(Math.min(charged.request.held(), metadata));
        }
    }

    /**
     * Releases the charge for the request: the handler has ended, and its reply does not leave at once. What the call
     * keeps of the request to its end, such as metadata, is charged with the reply. Event loop only.
     *
     * @param waits whether the client does not read; a buffer that is mostly empty is not kept for as long as that
     *     lasts
     */
    void giveUpRequest(boolean waits) {
        if (waits && body.capacity() > SMALL_BYTES && body.readableBytes() <= body.capacity() / 2) {
            try {
                body.capacity(Math.max(FIRST_BYTES, body.readableBytes()));
            } catch (OutOfMemoryError none) {
                // there is no memory even for the smaller buffer: the present one is charged with the reply
            }
        }
        CallCharges charged = charges();
        charged.request.release();
        int capacity = body.capacity();
        if (charged.kept.held() > capacity) {
            charged.kept.set(capacity <= FIRST_BYTES ? 0 : capacity);
        }
        if (endUnlessThreads()) {
            charged.objects.release();
            // the last of the call's threads may have ended since they were looked at
            connection.handled(this);
        }
    }

    @Override
    public ServerMethod method() {
        return java.util.Objects.requireNonNull(method);
    }

    @Override
    public HandledContext context() {
        return java.util.Objects.requireNonNull(context);
    }

    @Override
    public boolean isRunner() {
        // no lock is needed: a thread that finds itself here has written that itself, and no other thread finds itself
        // here
        return runner == Thread.currentThread();
    }

    @Override
    public void threadsEnded(HandledContext of) {
        if (context != of || hasThreads()) {
            // this object serves another call, or other threads have begun
            return;
        }
        if (loopState.isOverButThreads) {
            connection.recycle(this);
        } else if (holdUntilWritable) {
            // its reply has not left yet
            releaseObjects();
            connection.threadsEnded(this);
        }
    }

    /** Says whether threads run for the call beside its handler. */
    boolean hasThreads() {
        HandledContext its = context;
        return its != null && its.hasThreads();
    }

    /**
     * Ends the call, except for a reply that has not left.
     *
     * @return false if threads run for it; {@link #threadsEnded} is called at their end
     */
    boolean endUnlessThreads() {
        HandledContext its = context;
        return its == null || its.endUnlessThreads();
    }

    /** Runs the call on the handler's thread. */
    @Override
    public void run() {
        run(connection.nanoTime());
    }

    @Override
    public void run(long nowNanos) {
        int own = id;
        try {
            ServerSteps.run(this, nowNanos);
        } catch (Throwable t) {
            markLost(own);
            throw t;
        }
    }

    @Override
    public void refused(Throwable noThread) {
        int own = id;
        try {
            connection.noThread(this);
        } catch (Throwable t) {
            markLost(own);
            throw t;
        }
    }

    /**
     * Leaves the call to the event loop, as the thread that was about to end it has failed. The event loop ends it, if
     * it has not been sent.
     */
    void markLost(int callId) {
        lostId = callId;
        connection.lost.isAny = true;
        try {
            connection.lost.requestCheck();
        } catch (Throwable again) {
            // the call is found at the next check
        }
    }

    /** Says whether nobody will end this call. Event loop only, after it has sent what was queued. */
    boolean isLost() {
        if (loopState.isOverButThreads) {
            return !hasThreads();
        }
        if (!loopState.handling) {
            return false;
        }
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        // a result that is awaited comes, or is given up
        return lostId == id && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /**
     * Says whether the call may be postponed. A notice, a call that takes a stream and one that has waited before are
     * started in any case.
     */
    boolean mayWait() {
        return !resumed && !notice && receiver == null;
    }

    /** Runs the handler with the request in this buffer, on the event loop. */
    void handleInLoop(ByteBuf request) {
        int own = id;
        try {
            ServerSteps.handle(this, request, connection.readNanos());
        } catch (Throwable t) {
            markLost(own);
            throw t;
        } finally {
            // the interrupt flag may also come from constructors and accessors of the parameters' and the result's
            // types, which run before the handler and after it
            LoopThread.forgetInterrupt();
        }
    }

    /** Waits for a result that comes later, or never. When this method returns the object may serve another call. */
    void await(CompletionStage<?> stage) {
        PendingResult result = new PendingResult(this, stage, connection.lost);
        HandledContext its;
        boolean isGone;
        synchronized (this) {
            // read first: once the result is known to be awaited, the call may be given up and its object serve another
            // one
            its = context();
            pendingResult = result;
            isGone = its.isCancelled();
        }
        try {
            if (isGone) {
                connection.awaitsForNobody(this);
                result.cancel(its);
            }
            result.begin();
        } catch (Throwable t) {
            if (result.giveUp()) {
                // set also where another stage has brought this one: what is thrown to that stage does not say that the
                // call is lost
                lostId = id;
                throw t;
            }
            // whoever has the result ends the call
            ThreadTools.report(t);
        }
    }

    @Override
    public void onResult(@Nullable Object value, @Nullable Throwable thrown) {
        ServerSteps.onResult(this, value, thrown);
    }

    /** Says whether the handler has returned, so that it has no thread, and its result has not come. */
    boolean isAwaiting() {
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        return result != null && result.isOpen();
    }

    /**
     * Gives up a result that nobody waits for any more and that has not come: the handler does not count as running any
     * longer. What the handler was given stays charged for as long as its future may hold that. Event loop only.
     *
     * @return false if the result has come
     */
    boolean giveUp() {
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        if (result == null || !result.giveUp()) {
            return false;
        }
        loopState.handling = false;
        List<DetachableStage> seen = List.of();
        try {
            Admission.leaveUnlearnt(this);
            seen = context().giveUp();
        } catch (Throwable noMemory) {
            // the call cannot be taken from its stage a second time: it is over all the same
            ThreadTools.report(noMemory);
        }
        CallCharges own = charges;
        long charged = own == null ? 0 : own.objects.handOver();
        isPlaceLeft = result.leave(connection.account, seen, charged, uncharged, metadataCost);
        if (!seen.isEmpty()) {
            connection.callThreads.tellIfPossible(this, seen);
        }
        return true;
    }

    /** Gives up what only a handler needs: none starts any more, nor once more. */
    void leaveHandler() {
        if (method().chain() == null) {
            releaseObjects();
            return;
        }
        // after this no thread starts the handler; threads that run may still use what the request was read into
        leaveStages();
        if (!hasThreads()) {
            releaseObjects();
        }
    }

    /**
     * Gives up the stages of a call that has ended. Where its interceptors have ended it, and the handler's stage has
     * not ended, what that stage may hold stays charged, and the interceptors wait for it no longer.
     */
    void leaveStages() {
        context().barHandler();
        List<DetachableStage> seen = context().giveUp();
        if (seen.isEmpty()) {
            return;
        }
        CallCharges own = charges;
        long charged = own == null ? 0 : own.objects.handOver();
        isPlaceLeft = PendingResult.leaveOwn(connection.account, seen, charged, uncharged, metadataCost);
        connection.callThreads.runCallbacks(this, List.copyOf(seen));
    }

    boolean isCancelled() {
        return context().isCancelled();
    }

    /**
     * Begins the part in which a cancel interrupts this thread.
     *
     * @return false if the call has been cancelled already
     */
    synchronized boolean enter() {
        if (context().isCancelled()) {
            return false;
        }
        runner = Thread.currentThread();
        entered = true;
        CurrentCall.set(context);
        return true;
    }

    /**
     * Ends the part in which a cancel interrupts this thread. It is called before the end of the call is sent: after
     * that this object may serve the next call, and a cancel must not meet a thread that has gone on.
     */
    synchronized void exit() {
        runner = null;
        CurrentCall.set(null);
        // an interrupt until now is this call's, by a cancel or by its own code: neither its reply nor the thread's
        // next task must meet it
        Thread.interrupted();
    }

    /**
     * Says whether no thread runs for the call on which its interceptors may have started the handler. Otherwise the
     * last of these threads calls {@link #releaseAdmission}.
     */
    boolean leavesUnlessThreads(boolean isDone) {
        return method().chain() == null || context().leavesUnlessThreads(isDone);
    }

    @Override
    public void releaseAdmission(boolean isDone) {
        Admission.leaveNow(this, isDone);
    }

    /** Takes the group that counts a handler which has not started; null where none does. Any thread. */
    synchronized AdmissionLimit.@Nullable Group takeAdmitted() {
        AdmissionLimit.Group counted = admitted;
        admitted = null;
        return counted;
    }

    /**
     * Cancels a call whose result nobody waits for any more. If neither its handler nor an interceptor has started, the
     * call is not counted from here on, whenever a thread comes to it. Event loop only.
     *
     * @return false if neither has started, and neither will
     */
    boolean cancel() {
        List<Runnable> told;
        PendingResult result;
        boolean hasEntered;
        synchronized (this) {
            result = pendingResult;
            hasEntered = entered;
            try {
                told = context().cancel();
            } finally {
                // the thread is interrupted also where there is no memory to tell anybody else
                ThreadTools.interrupt(runner);
            }
        }
        if (!hasEntered) {
            Admission.leave(this, false);
        }
        if (method().chain() != null) {
            context().barHandler();
        }
        if (result != null) {
            told = new ArrayList<>(told);
            HandledContext given = context();
            told.add(0, () -> result.cancel(given));
        }
        if (!told.isEmpty()) {
            connection.callThreads.runCallbacks(this, told);
        }
        return hasEntered;
    }

    /**
     * Says whether the handler, or an interceptor before it, has started. Asked by the thread that ends the call, or by
     * the event loop while no handler is under way.
     */
    boolean hasBegun() {
        return entered;
    }

    /**
     * Says whether it is certain that the method itself was called, and not only an interceptor before it. Event loop
     * only, while the call is under way.
     */
    boolean isExecuted() {
        boolean hasEntered;
        synchronized (this) {
            hasEntered = entered;
        }
        return hasEntered && (method().chain() == null || context().isHandlerEntered());
    }

    /**
     * Takes the right to send the final frame, of which only one may leave: the reply, or the event loop's error.
     *
     * @return false if it was taken before
     */
    boolean tryEnd() {
        return !ended && ENDED.compareAndSet(this, false, true);
    }

    /**
     * Says whether nothing of this call has to be given back as soon as its reply has left: no bytes that are counted,
     * no stream, no large buffer.
     */
    boolean isSmall() {
        CallCharges charged = charges;
        return (charged == null
                        || charged.request.held() == 0 && charged.objects.held() == 0 && charged.reply.held() == 0)
                && receiver == null
                && sender == null
                && !notice
                && !hasThreads()
                && body.capacity() <= SMALL_BYTES;
    }

    @Override
    public boolean beforeDirectWrite() {
        if (!tryEnd()) {
            return false;
        }
        connection.sentReplies.add(this);
        return true;
    }

    @Override
    public boolean beforeSend() {
        connection.handled(this);
        if (loopState.abandoned) {
            connection.recycle(this);
            return false;
        }
        if (postponeRequested) {
            postponeRequested = false;
            // its thread may have failed after it had queued the call: the call is here, and is not lost
            lostId = 0;
            connection.postpone(this);
            return false;
        }
        ReplyWriter.chargeIfItWaits(this);
        return true;
    }

    @Override
    public void onSent() {
        // a write that fails ends the connection within it, and the connection's end has recycled the call
        if (!connection.isClosed()) {
            connection.replied(this);
        }
    }

    @Override
    public void onDropped() {
        // a call whose reply had begun to leave was recycled when the connection ended
        if (loopState.handling) {
            loopState.handling = false;
            connection.recycle(this);
        }
    }
}
