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
 * Server side of one call on the native wire. The object holds the request first, and later the reply. The object can
 * serve a later call when all of this is true:
 *
 * <ul>
 *   <li>The reply has been sent or dropped.
 *   <li>The handler has ended, or the server no longer waits for its result.
 *   <li>No thread that {@link CallThreads} counts runs for the call.
 * </ul>
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

    // The event loop sets the next four fields before the handler starts.
    private @Nullable ServerMethod method;
    private Metadata metadata = Metadata.EMPTY;
    private long beganNanos;
    private long deadlineNanos;

    private @Nullable HandledContext context;

    /**
     * Thread that runs the handler or an interceptor; null if there is none. Written while holding the lock of this
     * call, which {@link #cancel} holds while it interrupts the thread. So the interrupt does not reach the thread's
     * next call.
     */
    private @Nullable Thread runner;

    /**
     * Object that waits for the stage that the handler, or an interceptor, has returned; null if no stage has been
     * returned. The field keeps the object until the call is over, also after the result of the stage has come. Code
     * that writes this field holds the lock of this call.
     */
    private volatile @Nullable PendingResult pendingResult;

    /**
     * Whether the first interceptor has started, or the handler if there are no interceptors. The event loop clears
     * this field before it hands the call over to a thread. The thread that runs the call sets this field in
     * {@link #enter}, while holding the lock of this call.
     */
    private boolean hasBegun;

    /**
     * Task that was handed over in order to run this call on a thread; null if no task was handed over. When a
     * postponed call is started again, {@link PostponedCalls} makes the task; otherwise, the task is this call. Only
     * the event loop writes this field.
     */
    PoolShares.@Nullable Task handed;

    boolean notice;

    /**
     * Whether the event loop has to postpone the call, because the caller does not read what the server sends. The
     * thread that was to run the handler sets this field.
     */
    boolean postponeRequested;

    /**
     * Whether {@link PostponedCalls} has started this call while the caller still had to read many bytes of replies or
     * stream items.
     */
    boolean resumed;

    /** Estimated number of bytes that the handler's arguments take in memory without being charged. */
    int uncharged;

    /** Memory, in bytes, that the metadata of the request take. */
    int metadataCost;

    /**
     * Id of the call that a thread was about to end when the thread failed; 0 if there is none. When this field is
     * read, this object may already serve another call, which has another id. A thread writes this field before it sets
     * {@link LostCalls#isAny}.
     */
    private int lostId;

    /**
     * Whether this {@code ServerCall} stays charged after its call has ended. It stays charged if the handler's future
     * can still refer to the objects of the request, and there was no room to charge these objects. The charge for the
     * {@code ServerCall} then stands for them.
     */
    boolean isPlaceKeptCharged;

    /**
     * Charges for the memory of the call, apart from the charge for this object itself; null until the first use of
     * {@link #charges()}.
     */
    private @Nullable CallCharges charges;

    /**
     * Group that counts the call's handler against the {@link AdmissionLimit} of the method; null if the handler is not
     * counted. For a handler that has started, only one thread at a time tries to clear this field. For a handler that
     * will not start, the event loop and the thread that was to run the handler can both try to clear the field at the
     * same time. So these two clear it by {@link #takeAdmitted}.
     */
    AdmissionLimit.@Nullable Group admitted;

    /**
     * Receiver of the stream of items that the client sends; null if the method takes no stream, or the request has not
     * arrived completely.
     */
    @Nullable
    StreamReceiver receiver;

    /**
     * Sender of the items that the method's publisher produces; null if the server has not subscribed to a publisher
     * for this call.
     */
    @Nullable
    StreamSender sender;

    /** Whether a thread has taken the right to send the final frame of the call, by {@link #tryEnd}. */
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
        // The event loop writes this field here, and hands the call to the handler's thread afterwards. The hand-over
        // makes the value visible to that thread, so a release write is enough.
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
     * Restarts the measurement of how long the handler takes, for the {@link AdmissionLimit} of the method. Called when
     * the last part of a request has arrived, or when a postponed call is admitted. So the time that the caller took is
     * not measured.
     */
    void measureFrom(long now) {
        beganNanos = now;
    }

    /**
     * Clears the references to the call's metadata, context, streams and {@link PendingResult}, so that the garbage
     * collector can free them. Called on the event loop when the call is over.
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

    /**
     * Returns the time at which the measurement of the handler's duration began, in nanoseconds of the event loop's
     * ticker.
     */
    long measuredFromNanos() {
        return beganNanos;
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    /** Returns the charges for the memory of this call. The first use of this method creates them. */
    CallCharges charges() {
        CallCharges made = charges;
        if (made == null) {
            made = charges = new CallCharges(connection.account);
        }
        return made;
    }

    /**
     * Releases the charges of the call, but not the charge for a buffer that this {@code ServerCall} keeps for its next
     * call. Called when the call is over, or has been refused before its start.
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
     * Drops the reply of a call that is over, and replaces the call's buffer by a small one. Called while threads of
     * {@link CallThreads} still run for the call. These threads can use the metadata of the request, so a charge for
     * the metadata remains. Does nothing if the reply is not charged, the request is charged for no more than this
     * metadata, and the charge for a buffer that was kept from an earlier call does not exceed the present buffer.
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
            // There is no memory for the small buffer that is to replace the present one. So the present buffer and all
            // charges remain until the call has ended completely.
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
     * Returns the number of bytes to charge for the reply. The reply's buffer and the request's metadata stay in memory
     * until the call ends. So the result is the size of both, minus the bytes that are charged already for the request,
     * and for a buffer that was kept from an earlier call. Bytes that are charged already for the reply itself are not
     * subtracted. The result is at least the size of the reply.
     */
    public long replyBytes() {
        CallCharges own = charges;
        long charged = own == null ? 0 : own.kept.held() + own.request.held();
        return Math.max(body.readableBytes(), HeapArray.heapBytes(body) + metadataCost - charged);
    }

    /**
     * Prepares the buffer for a later call. A buffer that has grown is kept if it can be charged, and is otherwise
     * replaced by a small one. A buffer of more than {@code MAX_KEPT_BYTES} is always replaced.
     */
    void keepBody() {
        if (body.capacity() > MAX_KEPT_BYTES) {
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
     * Releases the charge for the kept buffer. If the buffer has grown, this method also frees the buffer's memory.
     * Called when no later call will use this object. Code that still refers to the object, such as a publisher that a
     * handler has kept, must not hold a large buffer in memory that is no longer charged.
     */
    void releasePlace() {
        releaseKept();
        if (body.capacity() > FIRST_BYTES) {
            try {
                body.clear().capacity(0);
            } catch (OutOfMemoryError none) {
                // There is no memory even for an empty buffer, so this object keeps its present buffer.
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
     * Charges the call for the memory of the objects that the codec creates when it reads the request. The codec calls
     * this method only if the request and its objects take more than {@link #freeBytes}.
     */
    @Override
    public boolean take(long bytes) {
        return charges().objects.take(bytes);
    }

    /**
     * Returns how many bytes the request and its objects may take without a charge. A call usually gets more of these
     * bytes if its method has an {@link AdmissionLimit} and returns no stream, since the number of running handlers of
     * the method is limited.
     */
    @Override
    public int freeBytes() {
        ServerMethod called = method();
        return called.admission() == null || called.returnsStream()
                ? UnchargedAllowance.MAX_IDLE_OBJECT_BYTES
                : connection.uncharged.objectBytes();
    }

    @Override
    public void onRead(long spare) {
        uncharged = (int) Math.max(0, freeBytes() - spare);
    }

    /**
     * Charges a postponed call for its whole buffer and its metadata. Until now, the call was allowed some of these
     * bytes without a charge, because its handler counted as running, and the number of running handlers is limited.
     * The handler of a postponed call does not count as running.
     *
     * @return false if there is no room for the charge
     */
    boolean chargeWaiting() {
        Charge request = charges().request;
        return request.set(Math.max(request.held(), HeapArray.heapBytes(body) + metadataCost));
    }

    /**
     * Releases the charge for the buffer of the call, and replaces the buffer by a small one if it has grown. Large
     * metadata of the request stay charged. Called for a call that takes or returns a stream, after the request has
     * been read, since such a call can last long.
     */
    void giveUpBody() {
        if (body.capacity() > FIRST_BYTES) {
            shrinkBody();
            releaseKept();
        }
        CallCharges charged = charges;
        if (charged != null) {
            long metadata = metadataCost > UnchargedAllowance.MAX_IDLE_METADATA_BYTES ? metadataCost : 0;
            charged.request.set(Math.min(charged.request.held(), metadata));
        }
    }

    /**
     * Releases the charge for the request of a call whose reply cannot be sent completely now. The charge for the reply
     * includes what remains of the request, such as the metadata. If no threads of {@link CallThreads} run for the
     * call, this method also releases the charge for the objects of the request. Event loop only.
     *
     * @param waits true if the reply waits because the client does not read. In this case, a large buffer that is at
     *     most half full is replaced by a smaller one
     */
    void giveUpRequest(boolean waits) {
        if (waits && body.capacity() > MAX_SMALL_BYTES && body.readableBytes() <= body.capacity() / 2) {
            try {
                body.capacity(Math.max(FIRST_BYTES, body.readableBytes()));
            } catch (OutOfMemoryError none) {
                // There is no memory for a smaller buffer, so the present buffer stays. The charge for the reply will
                // include it.
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
            // beforeSend() has called handled() too. If threads still ran for the call at that time, the connection has
            // gone on counting the handler as running, and stops counting it here.
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
        // No lock is needed. If the field holds the calling thread, that thread has written the field itself.
        return runner == Thread.currentThread();
    }

    @Override
    public void threadsEnded(HandledContext of) {
        if (context != of || hasThreads()) {
            // Nothing is to be done if this object already serves another call, or if other threads still run for the
            // call.
            return;
        }
        if (loopState.isOverButThreads) {
            connection.recycle(this);
        } else if (holdUntilWritable) {
            // The reply has not been sent yet, but no thread needs the objects of the request any more.
            releaseObjects();
            connection.threadsEnded(this);
        }
    }

    /** Returns whether threads of {@link CallThreads} run for the call, in addition to the thread of its handler. */
    boolean hasThreads() {
        HandledContext its = context;
        return its != null && its.hasThreads();
    }

    /**
     * Records that the call is over, or that only its reply remains to be sent. If further threads run for the call,
     * {@link #threadsEnded} is called when the last of these threads has ended.
     *
     * @return false if further threads run for the call
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
     * Makes the event loop end a call, because the thread that was about to end the call has failed.
     *
     * @param callId id of the call that the thread was about to end
     */
    void markLost(int callId) {
        lostId = callId;
        connection.lost.isAny = true;
        try {
            connection.lost.requestCheck();
        } catch (Throwable again) {
            // The event loop finds the call when it next checks for lost calls.
        }
    }

    /**
     * Returns whether the thread that was to end this call has failed, so that the event loop has to end the call.
     * Before the event loop calls this method, it sends all queued messages. Otherwise it could end a call whose reply
     * is queued.
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
        // There are two cases. In the first case, a thread has failed to end this call, so lostId equals id, and the
        // call does not wait for the handler's future. A call that waits is not lost, since it ends when the future
        // completes, or when the server stops waiting. In the second case, the future has completed, but the thread
        // that got its result has failed.
        return lostId == id && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /**
     * Returns whether the server is allowed to postpone the call until its caller has read more. A notice is never
     * postponed, nor is a call that takes a stream. A call that is {@link #resumed} was postponed before, and is not
     * postponed again.
     */
    boolean mayWait() {
        return !resumed && !notice && receiver == null;
    }

    /**
     * Runs the interceptors and the handler of the call on the event loop.
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
            // exit() clears the interrupt flag when the handler has run. Other user code, such as a constructor of a
            // parameter, can set the flag at another time.
            LoopThread.forgetInterrupt();
        }
    }

    /**
     * Makes the call wait for the stage that the handler has returned, without occupying a thread. The stage may never
     * end. When this method returns, this object can already serve another call.
     */
    void await(CompletionStage<?> stage) {
        PendingResult result = new PendingResult(this, stage, connection.lost);
        HandledContext its;
        boolean isGone;
        synchronized (this) {
            // The context has to be read before pendingResult is written. As soon as another thread sees pendingResult,
            // that thread can end the call, and this object can serve another call.
            //
            // The event loop holds the same lock in cancel(). Either the event loop finds this result, or this thread
            // finds that the call has been cancelled. Otherwise nobody would stop waiting for a stage that never ends.
            // Tested by the tests of {@code OutlastedConnectionTest}.
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
                // This method can run as a callback of another stage. That stage then catches the exception that is
                // thrown here, and no code calls markLost(). So this line marks the call as lost.
                lostId = id;
                throw t;
            }
            // The result has come or the server has stopped waiting, so other code ends the call. The exception is only
            // reported.
            ThreadTools.report(t);
        }
    }

    @Override
    public void onResult(@Nullable Object value, @Nullable Throwable thrown) {
        ServerSteps.onResult(this, value, thrown);
    }

    /** Returns whether the call still waits for the result of a future that the handler has returned. */
    boolean isAwaiting() {
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        return result != null && result.isOpen();
    }

    /**
     * Stops waiting for the future that the handler has returned, because nobody needs the result any more. The handler
     * no longer counts against the {@link AdmissionLimit} of its method. There is one exception: if the method has
     * interceptors and threads of {@link CallThreads} still run for the call, the handler counts until the last of
     * these threads has ended. The objects of the request stay charged as long as the future can refer to them. Event
     * loop only.
     *
     * @return false if there is no future, if the future's result has come already, or if this method has stopped
     *     waiting before
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
            // The call no longer waits for the result, so no result will end the call. Therefore this failure is only
            // reported, and does not keep the call from ending.
            ThreadTools.report(noMemory);
        }
        CallCharges own = charges;
        long charged = own == null ? 0 : own.objects.handOver();
        isPlaceKeptCharged = result.handOverCharge(connection.account, seen, charged, uncharged, metadataCost);
        if (!seen.isEmpty()) {
            connection.callThreads.runCallbacksIfPossible(this, seen);
        }
        return true;
    }

    /**
     * Releases the charge for the objects of the request. For a method with interceptors, two things differ:
     *
     * <ul>
     *   <li>This method first calls {@link #endStages()}, which prevents the handler from starting.
     *   <li>If threads of {@link CallThreads} still run for the call, the objects stay charged, since these threads can
     *       use the objects.
     * </ul>
     */
    void endStagesAndReleaseObjects() {
        if (method().chain() == null) {
            releaseObjects();
            return;
        }
        // endStages() prevents the handler from starting. It has to come first, because a handler that still started
        // would use the objects of the request after their charge has been released.
        endStages();
        if (!hasThreads()) {
            releaseObjects();
        }
    }

    /**
     * Prevents the handler from starting, because the call has ended. Also ends each {@link DetachableStage} of the
     * call whose source has not ended. Such a source is a stage that the handler or an interceptor has returned. It can
     * refer to the objects of the request, so these objects stay charged: see
     * {@link PendingResult#handOverChargeToOwn}.
     */
    void endStages() {
        context().barHandler();
        List<DetachableStage> seen = context().giveUp();
        if (seen.isEmpty()) {
            return;
        }
        CallCharges own = charges;
        long charged = own == null ? 0 : own.objects.handOver();
        isPlaceKeptCharged =
                PendingResult.handOverChargeToOwn(connection.account, seen, charged, uncharged, metadataCost);
        connection.callThreads.runCallbacks(this, List.copyOf(seen));
    }

    boolean isCancelled() {
        return context().isCancelled();
    }

    /**
     * Records that the calling thread runs the call until {@link #exit}. During this time, a cancel of the call
     * interrupts the thread.
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
     * Records that the calling thread no longer runs the call, so that a cancel does not interrupt the thread. Must be
     * called before the reply is sent. Once the reply has been sent, this object can serve another call.
     */
    synchronized void exit() {
        runner = null;
        CurrentCall.set(null);
        // This clears an interrupt that was meant for this call, so that the thread's next call does not see the
        // interrupt.
        Thread.interrupted();
    }

    /**
     * Returns whether the handler may leave its method's {@link AdmissionLimit} now. If the method has no interceptors,
     * the result is always true. If it has interceptors, this method also prevents the handler from starting later.
     * While threads of {@link CallThreads} run for the call of such a method, the result is false, because one of these
     * threads may run the handler. The last of these threads then calls {@link #releaseAdmission}.
     *
     * @param isDone whether the call has produced a result
     */
    boolean mayLeaveNow(boolean isDone) {
        return method().chain() == null || context().mayLeaveNow(isDone);
    }

    @Override
    public void releaseAdmission(boolean isDone) {
        Admission.leaveNow(this, isDone);
    }

    /**
     * Clears and returns the group that counts the handler against the {@link AdmissionLimit} of its method; null if
     * the handler is not counted. Called for a handler that has not started. Any thread may call this.
     */
    synchronized AdmissionLimit.@Nullable Group takeAdmitted() {
        AdmissionLimit.Group counted = admitted;
        admitted = null;
        return counted;
    }

    /**
     * Cancels a call whose result nobody waits for. Interrupts the thread that runs the call. {@link CallThreads} then
     * runs the tasks that have to run at a cancel, such as those that were given to {@link HandledContext#onCancel}. If
     * neither the handler nor an interceptor has started, the handler no longer counts against the
     * {@link AdmissionLimit} of its method. Event loop only.
     *
     * @return whether the handler or an interceptor has started; if false, neither will start
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
                // The thread is interrupted even if context().cancel() has failed, for example for lack of memory.
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
     * Returns whether the first interceptor has started, or the handler if there are no interceptors. Called by the
     * thread that ends the call, or by the event loop while no handler runs for the call.
     */
    boolean hasBegun() {
        return hasBegun;
    }

    /**
     * Returns whether the handler itself has certainly started. If only an interceptor has started, returns false.
     * Event loop only, before the call is over.
     */
    boolean isExecuted() {
        boolean hadBegun;
        synchronized (this) {
            hadBegun = hasBegun;
        }
        return hadBegun && (method().chain() == null || context().isHandlerEntered());
    }

    /**
     * Takes the right to send the final frame of the call. Only the first thread that asks gets this right. Two kinds
     * of thread ask:
     *
     * <ul>
     *   <li>a thread that writes the reply to the socket itself, without the event loop
     *   <li>the event loop, when it ends the call by an error
     * </ul>
     *
     * <p>When the event loop sends a reply, it does not ask for the right. The event loop knows whether it has already
     * ended the call by an error. If so, it drops the reply. Tested by
     * {@code WireRacesTest.aReplyAndACancelAtOnceEndTheCallExactlyOnce}.
     *
     * @return false if the right had been taken before
     */
    boolean tryEnd() {
        return !ended && ENDED.compareAndSet(this, false, true);
    }

    /**
     * Returns whether what the call holds may be released long after its reply has been sent. Returns false in these
     * cases:
     *
     * <ul>
     *   <li>The call has charged bytes for its request, its objects or its reply.
     *   <li>The call has a stream.
     *   <li>The capacity of the buffer is more than {@code MAX_SMALL_BYTES}.
     *   <li>The call is a notice.
     *   <li>Further threads run for the call.
     * </ul>
     */
    boolean isSmall() {
        CallCharges charged = charges;
        return (charged == null
                        || charged.request.held() == 0 && charged.objects.held() == 0 && charged.reply.held() == 0)
                && receiver == null
                && sender == null
                && !notice
                && !hasThreads()
                && body.capacity() <= MAX_SMALL_BYTES;
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
            // The thread that queued the call may have failed afterwards, and may have marked the call as lost. The
            // event loop has the call now, so the mark is removed.
            lostId = 0;
            connection.postpone(this);
            return false;
        }
        ReplyWriter.chargeIfItWaits(this);
        return true;
    }

    @Override
    public void onSent() {
        // If the connection has ended during the write, onClosed() of the connection has already recycled the call.
        if (!connection.isClosed()) {
            connection.replied(this);
        }
    }

    @Override
    public void onDropped() {
        // If handling is false, the event loop has already begun to send the reply, or has ended the call. Nothing is
        // left to do here in these cases.
        if (loopState.handling) {
            loopState.handling = false;
            connection.recycle(this);
        }
    }
}
