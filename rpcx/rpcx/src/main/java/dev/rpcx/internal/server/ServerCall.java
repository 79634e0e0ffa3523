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
 * One call on the native wire at its server: the request while it is handled, and then its reply. The object is used
 * again for another call, but only after the reply has been sent or dropped, and the handler has ended or has been
 * given up.
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
     * Receives the result of a handler that has returned a future; null for other handlers. Written while holding this
     * object's lock.
     */
    private volatile @Nullable PendingResult pendingResult;

    /**
     * Whether the handler, or an interceptor before it, has started. If the time of a call was over before that, the
     * call shows nothing about how long handlers take.
     */
    private boolean hasBegun;

    /**
     * Task that was handed to a thread to run this call; null if there has been none. The task may do something else
     * before it runs the call. Only the event loop writes this field.
     */
    PoolShares.@Nullable Task handed;

    boolean notice;

    /**
     * Whether the call goes back to the event loop, to wait until its caller has read what is sent to it. Set on the
     * thread that would have run the handler.
     */
    boolean postponeRequested;

    /**
     * Whether the call was postponed, and was then started although its caller still had many bytes of replies or items
     * to read.
     */
    boolean resumed;

    /** Estimated number of bytes that the handler's arguments take, not counting the bytes that are charged. */
    int uncharged;

    /** Number of bytes of memory that the metadata of the request take. */
    int metadataCost;

    /**
     * Id of the call that a thread was about to end and could not end; 0 if there is none. If the thread's stack is
     * full, the thread first stores the id here. Then it sets a flag in the connection, which says that there may be
     * lost calls: see {@link LostCalls}.
     */
    private int lostId;

    /**
     * Whether the place of this call stays charged for a handler's future that was given up, because the bytes that the
     * future may hold could not be charged.
     */
    boolean isPlaceKeptCharged;

    /**
     * Charges of the call. Null as long as no call that used this object has been charged for anything but its place.
     */
    private @Nullable CallCharges charges;

    /**
     * Group that counts the handler against the limit of its method; null if the handler is not counted. Set before the
     * handler starts. Cleared when the handler ends, or when it is certain that it will not start. If the handler has
     * not started, the thread that clears this field holds this object's lock. If {@link CallThreads} runs threads for
     * the call, the last of these threads clears this field, unless the method returns a stream.
     */
    AdmissionLimit.@Nullable Group admitted;

    /** Receiver of the items that the client sends with the call; null if the method takes no stream. */
    @Nullable
    StreamReceiver receiver;

    /**
     * Sender of the items of the stream that the method returns; null if the method returns no stream, or the stream
     * has not been opened yet.
     */
    @Nullable
    StreamSender sender;

    /**
     * Whether the right to send the final frame has been taken: by a handler's thread that sends its reply itself, or
     * by the event loop if it ends the call in another way.
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
        isFirstFragmentWritten = false;
        // a release store is enough, since the call is handed to the handler's thread after this store
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
     * of the request has arrived, or when a call that has waited is admitted. How long the caller took to send or to
     * read shows nothing about how long handlers take.
     */
    void restartAdmissionClock(long now) {
        beganNanos = now;
    }

    /**
     * Clears the references of a call that is over, so that a free place refers to nothing that its caller has sent or
     * its handler has made. Event loop only.
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
     * Returns the time from which the limit of the method measures how long the handler takes, in nanoseconds of the
     * event loop's ticker.
     */
    long admittedNanos() {
        return beganNanos;
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    /** Returns the charges of this call, and makes them if they do not exist yet. */
    CallCharges charges() {
        CallCharges made = charges;
        if (made == null) {
            made = charges = new CallCharges(connection.account);
        }
        return made;
    }

    /**
     * Releases all charges of the call except the charge for a kept buffer. Called when the call is over, so that
     * neither its handler nor its reply needs what was charged, or when the call has been refused before it began.
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
     * Gives up the buffer and the reply of a call that is over while threads still run for it. The threads need neither
     * of the two, and the reply has been sent or will not be sent. The threads may use the metadata, so the metadata
     * stay charged. If the metadata were charged as bytes of the reply, they are charged as bytes of the request from
     * now on: no reply of this call waits for the client to read it.
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
            // there is no memory even for the small buffer: the present one, and its charge, stay until the end of the
            // call
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
     * Returns the number of bytes for which the reply has to be charged. It is the larger of two values. One is the
     * size of the reply. The other is the size of the reply's buffer plus the size of the request's metadata, minus
     * what is already charged for a kept buffer and for the request. The metadata are included because they stay in
     * memory until the call ends.
     */
    public long replyBytes() {
        CallCharges own = charges;
        long charged = own == null ? 0 : own.kept.held() + own.request.held();
        return Math.max(body.readableBytes(), HeapArray.heapBytes(body) + metadataCost - charged);
    }

    /**
     * Keeps the buffer, together with the place, for the next call, if there is room for its charge; otherwise shrinks
     * the buffer. A kept buffer stays charged while the next call uses it.
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
     * Gives up the buffer, together with the place. Code that still refers to this object, such as a publisher that the
     * handler has kept, then holds no buffer that is not charged.
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
     * Charges the call for an object of the request that is being read. The codec calls this only if the request is not
     * small.
     */
    @Override
    public boolean take(long bytes) {
        return charges().objects.take(bytes);
    }

    /**
     * Returns the number of bytes that the request's objects may take without a charge. A handler that counts as
     * running may hold more than other handlers.
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
     * Charges a waiting call for all of its buffer and its metadata, since it does not count as running. Only a running
     * call may hold a part of them without a charge.
     *
     * @return false if there is no room for that
     */
    boolean chargeWaiting() {
        Charge request = charges().request;
        return request.set(Math.max(request.held(), HeapArray.heapBytes(body) + metadataCost));
    }

    /**
     * Gives up a buffer that has grown, and its charge. The request has been read, and the call goes on as long as its
     * stream does. The metadata stay charged if they take more memory than a call whose handler does not count as
     * running may use without a charge.
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
     * Releases the charge for the request. The handler has ended, and its reply is not sent immediately. What the call
     * keeps of the request until its end, such as metadata, is charged with the reply. Event loop only.
     *
     * @param waits whether the reply waits because the client does not read; a large buffer that is at most half full
     *     is then replaced by a smaller one
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
            // the handler may still be counted, if threads ran for the call when this was last checked; now that none
            // runs, the handler is no longer counted
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
        // no lock is needed: a thread can find itself in this field only if it has written itself there
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

    /** Returns whether threads run for the call in addition to the thread of its handler. */
    boolean hasThreads() {
        HandledContext its = context;
        return its != null && its.hasThreads();
    }

    /**
     * Records that the call is over, except that its reply may still have to be sent.
     *
     * @return false if threads run for the call: then {@link #threadsEnded} is called when the last of them has ended
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
     * Leaves it to the event loop to end the call, because the thread that was about to do so has failed. The event
     * loop ends the call, unless its reply has been sent.
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
     * Returns whether no thread will ever end this call. The event loop calls this after it has sent what was queued.
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
        // a result that is still awaited will come or will be given up, so such a call is not lost
        return lostId == id && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /**
     * Returns whether the call may be postponed. A notice, a call that takes a stream, and a call that has already
     * waited are started in any case.
     */
    boolean mayWait() {
        return !resumed && !notice && receiver == null;
    }

    /** Runs the handler on the event loop. {@code request} contains the bytes of the request. */
    void handleInLoop(ByteBuf request) {
        int own = id;
        try {
            ServerSteps.handle(this, request, connection.readNanos());
        } catch (Throwable t) {
            markLost(own);
            throw t;
        } finally {
            // not only the handler may have set the interrupt flag: constructors and accessors of the types of the
            // parameters and of the result, which run before the handler and after it, may have set it too
            LoopThread.forgetInterrupt();
        }
    }

    /**
     * Waits, without a thread, for a result that comes later or never. When this method returns, the object may already
     * serve another call.
     */
    void await(CompletionStage<?> stage) {
        PendingResult result = new PendingResult(this, stage, connection.lost);
        HandledContext its;
        boolean isGone;
        synchronized (this) {
            // the context is read first: once other threads can see that the result is awaited, the call may be given
            // up and its object may serve another call
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
                // this method may run as a callback of an earlier stage: then the exception goes to that stage, and to
                // no method that marks the call as lost; so the id is stored here too
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

    /**
     * Returns whether the handler has returned a future, and therefore no longer has a thread, and the future's result
     * has not come yet.
     */
    boolean isAwaiting() {
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        return result != null && result.isOpen();
    }

    /**
     * Gives up a result that nobody waits for any more, if it has not come. From then on, the handler does not count as
     * running. What the handler was given stays charged as long as its future may refer to it. Event loop only.
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
            // the result has been given up and cannot be given up a second time, so the call ends in spite of this
            // failure
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
     * Gives up what only the handler needs. From now on the handler cannot start any more, neither for the first time
     * nor again.
     */
    void leaveHandler() {
        if (method().chain() == null) {
            releaseObjects();
            return;
        }
        // leaveStages is called first: once it has returned, no thread starts the handler any more; threads that still
        // run may use the objects of the request, so the objects are released only if no thread runs
        leaveStages();
        if (!hasThreads()) {
            releaseObjects();
        }
    }

    /**
     * Gives up the stages of a call that has ended. If its interceptors have ended the call while the handler's stage
     * has not ended, the interceptors no longer wait for that stage, and what the stage may hold stays charged.
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
     * Begins the part of the call during which a cancel interrupts the calling thread.
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
     * Ends the part of the call during which a cancel interrupts the calling thread. Called before the end of the call
     * is sent. After that, this object may serve the next call, and a cancel must not interrupt a thread that runs
     * something else.
     */
    synchronized void exit() {
        runner = null;
        CurrentCall.set(null);
        // an interrupt up to now was caused by a cancel of this call or by the code that the call has run: neither the
        // call's reply nor the thread's next task must see it
        Thread.interrupted();
    }

    /**
     * Returns whether the limit of the method may stop counting the handler now. It may not while other threads run for
     * the call, since the call's interceptors may have started the handler on one of these threads. In that case the
     * last of these threads calls {@link #releaseAdmission}, which stops the counting.
     *
     * @param isDone whether the call has brought a result
     */
    boolean leavesUnlessThreads(boolean isDone) {
        return method().chain() == null || context().leavesUnlessThreads(isDone);
    }

    @Override
    public void releaseAdmission(boolean isDone) {
        Admission.leaveNow(this, isDone);
    }

    /**
     * Removes from the call the group that counts its handler, and returns that group; null if the handler is not
     * counted. Called for a handler that has not started. Any thread may call this.
     */
    synchronized AdmissionLimit.@Nullable Group takeAdmitted() {
        AdmissionLimit.Group counted = admitted;
        admitted = null;
        return counted;
    }

    /**
     * Cancels a call whose result nobody waits for any more. If neither its handler nor an interceptor has started,
     * neither of them will start, and the limit of the method stops counting the call now, and not only when a thread
     * takes it up. Event loop only.
     *
     * @return false if neither the handler nor an interceptor has started, and neither will
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
     * Takes the right to send the final frame. Only one final frame may be sent: the reply, or the event loop's error.
     *
     * @return false if the right was taken before
     */
    boolean tryEnd() {
        return !ended && ENDED.compareAndSet(this, false, true);
    }

    /**
     * Returns whether the call holds nothing that has to be given back as soon as its reply has been sent: no charged
     * bytes, no stream, no large buffer. False for a notice, and for a call for which threads run.
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
            // the thread may have failed after it had queued the call: the call has arrived here, so it is not lost
            lostId = 0;
            connection.postpone(this);
            return false;
        }
        ReplyWriter.chargeIfItWaits(this);
        return true;
    }

    @Override
    public void onSent() {
        // if the write has failed, it has already ended the connection, and the connection's end has recycled the call
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
