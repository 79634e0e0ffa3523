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
 * One call on the native wire at its server: first its request, then its reply. The object may serve another call,
 * after the reply has been sent or dropped and the handler has ended or has been given up.
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

    // the next four fields are set on the event loop before the handler starts
    private @Nullable ServerMethod method;
    private Metadata metadata = Metadata.EMPTY;
    private long beganNanos;
    private long deadlineNanos;

    private @Nullable HandledContext context;
    private @Nullable Thread runner;

    /**
     * Waits for the stage that the handler has returned; null if there is no stage to wait for. Written with the lock
     * of this object held.
     */
    private volatile @Nullable PendingResult pendingResult;

    /** Whether the handler, or an interceptor before it, has started. */
    private boolean hasBegun;

    /**
     * Task that was handed to a thread to run this call; null if none was. It may be another object than this call,
     * which is a task itself. Only the event loop writes this field.
     */
    PoolShares.@Nullable Task handed;

    boolean notice;

    /**
     * Whether the call has to go back to the event loop, to wait until its caller has read more. Set by the thread that
     * would otherwise have run the handler.
     */
    boolean postponeRequested;

    /** Whether the call was postponed, and then started although its caller still had many bytes to read. */
    boolean resumed;

    /** Estimated number of bytes of the handler's arguments for which the call is not charged. */
    int uncharged;

    /** Number of bytes of memory that the metadata of the request take. */
    int metadataCost;

    /**
     * Id of the call that a thread of the server failed to end; 0 if there is none. Set before the flag in
     * {@link LostCalls}.
     */
    private int lostId;

    /**
     * Whether the place of a given-up call stays charged, because its handler's future may still hold bytes. This is so
     * if there was no room to charge those bytes themselves.
     */
    boolean isPlaceKeptCharged;

    /** Charges of the call, except that for its place. Null if no call that used this object has needed any. */
    private @Nullable CallCharges charges;

    /**
     * Group that counts the handler in the limit of its method; null if the handler is not counted. Set before the
     * handler starts, and cleared when it ends or will certainly not start. If the handler has not started, the field
     * is cleared with the lock of this object held. If {@link CallThreads} runs threads for the call, the last of them
     * clears the field, unless the method returns a stream.
     */
    AdmissionLimit.@Nullable Group admitted;

    /** Receiver of the stream of items that the client sends; null if the method takes no stream. */
    @Nullable
    StreamReceiver receiver;

    /**
     * Sender of the stream of items that the method returns. Null if the method returns no stream, or the stream has
     * not been opened yet.
     */
    @Nullable
    StreamSender sender;

    /** Whether some thread has taken the right to send the final frame of the call, by {@link #tryEnd}. */
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
        isFirstFragmentWritten = false;
        // release is enough, since the call is handed to the handler's thread afterwards
        ENDED.setRelease(this, false);
        hasBegun = false;
        postponeRequested = false;
        receiver = null;
        sender = null;
        if (lostId != 0) {
            lostId = 0;
        }
        clearBody();
    }

    /**
     * Sets the time from which the limit of the method measures how long the handler takes. Called when the last part
     * of a request has arrived, or when a call that has waited is admitted, since the limit must not measure the
     * caller.
     */
    void restartAdmissionClock(long now) {
        beganNanos = now;
    }

    /** Clears the references that this object holds for its call, when the call is over. Event loop only. */
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

    /**
     * Returns the time from which the limit of the method measures the handler, in nanoseconds of the event loop's
     * ticker.
     */
    long admittedNanos() {
        return beganNanos;
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    /** Returns the charges of this call, and creates them if they do not exist yet. */
    CallCharges charges() {
        CallCharges made = charges;
        if (made == null) {
            made = charges = new CallCharges(connection.account);
        }
        return made;
    }

    /**
     * Releases the charges of the call, except that for a buffer that is kept for the next call. Called when the call
     * is over, or was refused before it began.
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
     * Gives up the buffer and the reply of a call that is over, while threads still run for it. The threads may use the
     * metadata of the request. So the metadata stay charged, as bytes of the request if possible.
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
            // no memory for the small buffer: the present one stays charged until the end of the call
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
     * Returns the number of bytes to charge for the reply. This is the size of the reply or, if that is more, the part
     * of the reply's buffer and of the request's metadata that is not charged yet. The metadata are included because
     * they stay in memory until the call ends.
     */
    public long replyBytes() {
        CallCharges own = charges;
        long charged = own == null ? 0 : own.kept.held() + own.request.held();
        return Math.max(body.readableBytes(), HeapArray.heapBytes(body) + metadataCost - charged);
    }

    /**
     * Keeps the buffer for the next call, if there is room for its charge; otherwise shrinks the buffer. The buffer
     * stays charged while the next call uses it.
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
     * Gives up the buffer of a call object whose place is given back. Other code, such as a publisher that the handler
     * has kept, may still refer to this object, and must not keep an uncharged buffer in memory.
     */
    void releasePlace() {
        releaseKept();
        if (body.capacity() > FIRST_BYTES) {
            try {
                body.clear().capacity(0);
            } catch (OutOfMemoryError none) {
                // even an empty array needs some memory; the place is given back nevertheless
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

    /**
     * Charges the call for an object that is read from its request. The codec calls this only if the request is not
     * small.
     */
    @Override
    public boolean take(long bytes) {
        return charges().objects.take(bytes);
    }

    /**
     * Returns the number of bytes that the objects of the request may take without a charge. It is larger if the
     * handler counts as running.
     */
    @Override
    public int freeBytes() {
        ServerMethod called = method();
        return called.admission() == null || called.returnsStream()
                ? UnchargedAllowance.IDLE_OBJECT_BYTES
                : connection.uncharged.objectBytes();
    }

    @Override
    public void onRead(long spare) {
        uncharged = (int) Math.max(0, freeBytes() - spare);
    }

    /**
     * Charges a waiting call for all of its buffer and its metadata. Only a call that counts as running may hold a part
     * of them without a charge.
     *
     * @return false if there is no room for the charge
     */
    boolean chargeWaiting() {
        Charge request = charges().request;
        return request.set(Math.max(request.held(), HeapArray.heapBytes(body) + metadataCost));
    }

    /**
     * Replaces the call's buffer by a small one if it has grown, and releases the charge for it. Called for a call that
     * returns a stream, after its request has been read. Large metadata stay charged.
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
     * Releases the charge for the request of a call whose handler has ended, but whose reply cannot be sent yet. What
     * the call keeps of the request, such as metadata, is charged with the reply. Event loop only.
     *
     * @param waits whether the client does not read; if so, a large buffer that is at most half full is replaced by a
     *     smaller one
     */
    void giveUpRequest(boolean waits) {
        if (waits && body.capacity() > SMALL_BYTES && body.readableBytes() <= body.capacity() / 2) {
            try {
                body.capacity(Math.max(FIRST_BYTES, body.readableBytes()));
            } catch (OutOfMemoryError none) {
                // no memory for the smaller buffer: the present one is charged with the reply
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
            // the handler is still counted if threads ran for the call at the last check
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
        // no lock is needed: only the thread itself writes itself into this field
        return runner == Thread.currentThread();
    }

    @Override
    public void threadsEnded(HandledContext of) {
        if (context != of || hasThreads()) {
            // this object serves another call by now, or further threads have begun to run for the call
            return;
        }
        if (loopState.isOverButThreads) {
            connection.recycle(this);
        } else if (holdUntilWritable) {
            // the call's reply has not been sent yet
            releaseObjects();
            connection.threadsEnded(this);
        }
    }

    /** Returns whether threads run for the call, besides the thread of its handler. */
    boolean hasThreads() {
        HandledContext its = context;
        return its != null && its.hasThreads();
    }

    /**
     * Records that the call is over, except that its reply may still have to be sent.
     *
     * @return false if further threads run for the call: then {@link #threadsEnded} is called when the last of them has
     *     ended
     */
    boolean endUnlessThreads() {
        HandledContext its = context;
        return its == null || its.endUnlessThreads();
    }

    /** Runs the call on the thread of its handler. */
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
     * Makes the event loop end a call, because the thread that was about to end it has failed.
     *
     * @param callId id of the call that the thread was about to end
     */
    void markLost(int callId) {
        lostId = callId;
        connection.lost.isAny = true;
        try {
            connection.lost.requestCheck();
        } catch (Throwable again) {
            // the next check for lost calls finds the call
        }
    }

    /**
     * Returns whether no thread will ever end this call. Called on the event loop after it has sent all queued
     * messages, since a call whose reply is queued is not lost.
     */
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
        // a result that is still awaited will come or will be given up
        return lostId == id && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /**
     * Returns whether the call may be made to wait until its caller has read more. A notice may not, nor may a call
     * that takes a stream, nor one that has waited before and is {@code resumed}.
     */
    boolean mayWait() {
        return !resumed && !notice && receiver == null;
    }

    /**
     * Runs the handler on the event loop.
     *
     * @param request bytes of the request
     */
    void handleInLoop(ByteBuf request) {
        int own = id;
        try {
            ServerSteps.handle(this, request, connection.readNanos());
        } catch (Throwable t) {
            markLost(own);
            throw t;
        } finally {
            // user code other than the handler may have set the interrupt flag too, such as constructors of parameters
            LoopThread.forgetInterrupt();
        }
    }

    /**
     * Waits, without a thread, for the stage that the handler has returned. The stage may never end. When this method
     * returns, the object may already serve another call.
     */
    void await(CompletionStage<?> stage) {
        PendingResult result = new PendingResult(this, stage, connection.lost);
        HandledContext its;
        boolean isGone;
        synchronized (this) {
            // the context is read first: once other threads see the pending result, the object may soon serve another
            // call
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
                // this may run as a callback of an earlier stage, which then gets the exception, so nobody calls
                // markLost
                lostId = id;
                throw t;
            }
            // the thread that has received the result ends the call
            ThreadTools.report(t);
        }
    }

    @Override
    public void onResult(@Nullable Object value, @Nullable Throwable thrown) {
        ServerSteps.onResult(this, value, thrown);
    }

    /** Returns whether the handler has returned a future whose result has not come yet. */
    boolean isAwaiting() {
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        return result != null && result.isOpen();
    }

    /**
     * Gives up the future that the handler has returned, because nobody waits for its result any more. The handler then
     * no longer counts as running. What the handler was given stays charged as long as the future may refer to it.
     * Event loop only.
     *
     * @return false if there is no future, or its result has come
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
            // the result cannot be given up a second time, so the call ends in spite of this failure
            ThreadTools.report(noMemory);
        }
        CallCharges own = charges;
        long charged = own == null ? 0 : own.objects.handOver();
        isPlaceKeptCharged = result.leaveCharge(connection.account, seen, charged, uncharged, metadataCost);
        if (!seen.isEmpty()) {
            connection.callThreads.runCallbacksIfPossible(this, seen);
        }
        return true;
    }

    /**
     * Gives up what only the handler needs, such as the objects of the request. The handler cannot start any more. The
     * objects stay charged while further threads run for the call, since these threads may use them.
     */
    void leaveHandler() {
        if (method().chain() == null) {
            releaseObjects();
            return;
        }
        // leaveStages is called first, so that no more threads start the handler; threads that run may use the
        // request's objects
        leaveStages();
        if (!hasThreads()) {
            releaseObjects();
        }
    }

    /**
     * Gives up the stages that the interceptors of a call still see, since the call has ended. If the handler's own
     * stage has not ended, what that stage may hold stays charged.
     */
    void leaveStages() {
        context().barHandler();
        List<DetachableStage> seen = context().giveUp();
        if (seen.isEmpty()) {
            return;
        }
        CallCharges own = charges;
        long charged = own == null ? 0 : own.objects.handOver();
        isPlaceKeptCharged = PendingResult.leaveOwnCharge(connection.account, seen, charged, uncharged, metadataCost);
        connection.callThreads.runCallbacks(this, List.copyOf(seen));
    }

    boolean isCancelled() {
        return context().isCancelled();
    }

    /**
     * Records that the calling thread begins to run the call. A cancel of the call interrupts this thread until
     * {@link #exit}.
     *
     * @return false if the call has been cancelled already
     */
    synchronized boolean enter() {
        if (context().isCancelled()) {
            return false;
        }
        runner = Thread.currentThread();
        hasBegun = true;
        CurrentCall.set(context);
        return true;
    }

    /**
     * Records that the calling thread no longer runs the call, so that a cancel of the call does not interrupt it. Has
     * to be called before the end of the call is sent: afterwards this object may serve the next call.
     */
    synchronized void exit() {
        runner = null;
        CurrentCall.set(null);
        // clears an interrupt that was meant for this call, or was left behind by its code
        Thread.interrupted();
    }

    /**
     * Returns whether the limit of the method may stop counting the handler now. It may not while further threads run
     * for the call, since one of them may run the handler. The last of them then calls {@link #releaseAdmission}.
     *
     * @param isDone whether the call has produced a result
     */
    boolean leavesUnlessThreads(boolean isDone) {
        return method().chain() == null || context().leavesUnlessThreads(isDone);
    }

    @Override
    public void releaseAdmission(boolean isDone) {
        Admission.leaveNow(this, isDone);
    }

    /**
     * Removes and returns the group that counts the handler in the limit of its method. Returns null if the handler is
     * not counted. Called for a handler that has not started. Any thread may call this.
     */
    synchronized AdmissionLimit.@Nullable Group takeAdmitted() {
        AdmissionLimit.Group counted = admitted;
        admitted = null;
        return counted;
    }

    /**
     * Cancels a call whose result nobody waits for any more. If neither the handler nor an interceptor has started, the
     * limit of the method stops counting the call now. Event loop only.
     *
     * @return false if neither the handler nor an interceptor has started, and neither will start
     */
    boolean cancel() {
        List<Runnable> callbacks;
        PendingResult result;
        boolean hadBegun;
        synchronized (this) {
            result = pendingResult;
            hadBegun = hasBegun;
            try {
                callbacks = context().cancel();
            } finally {
                // the thread is interrupted even if there is no memory for the callbacks
                ThreadTools.interrupt(runner);
            }
        }
        if (!hadBegun) {
            Admission.leave(this, false);
        }
        if (method().chain() != null) {
            context().barHandler();
        }
        if (result != null) {
            callbacks = new ArrayList<>(callbacks);
            HandledContext given = context();
            callbacks.add(0, () -> result.cancel(given));
        }
        if (!callbacks.isEmpty()) {
            connection.callThreads.runCallbacks(this, callbacks);
        }
        return hadBegun;
    }

    /**
     * Returns whether the handler, or an interceptor before it, has started. Called by the thread that ends the call,
     * or by the event loop while no handler runs for the call.
     */
    boolean hasBegun() {
        return hasBegun;
    }

    /**
     * Returns whether the method itself has certainly been called, and not only an interceptor before it. Event loop
     * only, while the call is under way.
     */
    boolean isExecuted() {
        boolean hadBegun;
        synchronized (this) {
            hadBegun = hasBegun;
        }
        return hadBegun && (method().chain() == null || context().isHandlerEntered());
    }

    /**
     * Takes the right to send the final frame of the call. Only one final frame may be sent: either the reply of the
     * handler's thread, or an error of the event loop.
     *
     * @return false if the right had been taken before
     */
    boolean tryEnd() {
        return !ended && ENDED.compareAndSet(this, false, true);
    }

    /**
     * Returns whether nothing has to be released as soon as the reply has been sent: no charged bytes, no stream and no
     * large buffer. Returns false for a notice, and for a call for which further threads run.
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
            // the thread may have failed after it had queued the call, but the call is not lost
            lostId = 0;
            connection.postpone(this);
            return false;
        }
        ReplyWriter.chargeIfItWaits(this);
        return true;
    }

    @Override
    public void onSent() {
        // if the write has failed, the end of the connection has already recycled the call
        if (!connection.isClosed()) {
            connection.replied(this);
        }
    }

    @Override
    public void onDropped() {
        // if a part of the reply had been sent, the connection's end has already recycled the call
        if (loopState.handling) {
            loopState.handling = false;
            connection.recycle(this);
        }
    }
}
