package dev.rpcx.internal.server;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.Memory;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.ClassicParameter;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.ClassicFrames;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Call at a server on the classic wire. It ends exactly once: with a reply, or when it is given up, or by
 * {@link #endLost} if the thread that was to end it has failed.
 */
public final class ClassicServerCall implements PoolShares.Task, PendingResult.Call, CallThreads.Call {
    private final ClassicServerConnection connection;
    private final Account account;
    private final ServerMethod method;

    /**
     * Id of the call. It is kept as an object, so that removing the call from the connection's table needs no memory.
     */
    private final Long id;

    /**
     * Request; null once its arguments have been read, or when the call is over. It is not kept longer, since a small
     * request is not charged.
     */
    private ClassicWire.@Nullable Request request;

    private final Charge requestBytes;
    private final Charge objectBytes;
    private final long beganNanos;
    private final long deadlineNanos;
    private final HandledContext context;
    private final AtomicBoolean ended = new AtomicBoolean();
    private @Nullable Thread runner;

    /**
     * Receives the result of a handler that has returned a future; null for other handlers. Guarded by {@code this}.
     */
    private @Nullable PendingResult pendingResult;

    /** Whether the handler, or an interceptor before it, has begun. */
    private boolean hasBegun;

    /**
     * Group that counts the handler against the limit of its method; null if no group counts it now. Guarded by
     * {@code this} until the handler has begun.
     */
    private AdmissionLimit.@Nullable Group admitted;

    /** Whether a thread of the call has failed before it could end the call: see {@link LostCalls}. */
    private boolean isMarkedLost;

    /**
     * Charge for a large reply; null if the reply is not charged. Written by the thread that ends the call, before the
     * connection's event loop is notified of the end.
     */
    @Nullable
    Charge replyBytes;

    /**
     * Whether the place of this call stays charged for a handler's future that has not ended, because nothing else
     * could be charged for it. Written by the thread that ends the call, before the connection's event loop is notified
     * of the end.
     */
    boolean isPlaceKeptCharged;

    /** Whether the call is over, but threads that {@link CallThreads} runs for it have not ended. */
    boolean isOverButThreads;

    /** Whether the method itself, after its interceptors, may have been called. Set when the call is cancelled. */
    boolean mayHaveRun;

    /**
     * What the reply says about whether the call has been executed. Written by the thread that ends the call, before
     * the connection's event loop is notified of the end.
     */
    private RPCXException.Executed executed = RPCXException.Executed.EXECUTED;

    /**
     * Whether nobody waits for the call any more, and the handler's future still has some time to end. Only the
     * connection uses this field.
     */
    boolean isLingering;

    /**
     * Whether the connection has taken over the reply with which the call has ended, or the call was withdrawn before a
     * thread ran it. Only the connection uses this field.
     */
    boolean isAnswered;

    /** Whether the connection counts the call among its running handlers. Only the connection uses this field. */
    boolean running;

    /** Estimated number of bytes that the objects of the arguments take, not counting the bytes that are charged. */
    private int uncharged;

    /**
     * Time at which the connection gives the call up, if its handler's future has not ended by then. Event loop only.
     */
    long lingerUntilNanos;

    public ClassicServerCall(
            ClassicServerConnection connection,
            Account account,
            ServerMethod method,
            AdmissionLimit.@Nullable Group admitted,
            ClassicWire.Request request,
            Charge requestBytes,
            long beganNanos,
            long deadlineNanos) {
        this.connection = connection;
        this.account = account;
        this.method = method;
        this.id = request.id();
        this.request = request;
        this.requestBytes = requestBytes;
        this.objectBytes = account.charge(Resource.OBJECT_BYTES);
        this.beganNanos = beganNanos;
        this.deadlineNanos = deadlineNanos;
        this.context = connection.context(deadlineNanos);
        if (method.chain() != null) {
            context.setSteps(connection.callThreads.stepsOf(this));
        }
        this.admitted = admitted;
        this.running = admitted != null;
    }

    Long id() {
        return id;
    }

    RPCXException.Executed executed() {
        return executed;
    }

    @Override
    public ServerMethod method() {
        return method;
    }

    @Override
    public HandledContext context() {
        return context;
    }

    @Override
    public boolean isRunner() {
        // No lock is needed: a thread can find itself in this field only if it has written itself there.
        return runner == Thread.currentThread();
    }

    @Override
    public void threadsEnded(HandledContext of) {
        connection.settleIfThreadsEnded(this);
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    /** Returns whether this call still holds the frame of its request. For tests. */
    public boolean holdsRequest() {
        return request != null;
    }

    @Override
    public void run() {
        try {
            runHere();
        } catch (Throwable t) {
            lose();
            throw t;
        }
    }

    private void lose() {
        isMarkedLost = true;
        connection.lost.isAny = true;
        try {
            connection.lost.requestCheck();
        } catch (Throwable again) {
            // The connection finds the call at its next check for lost calls.
        }
    }

    /** Returns whether no thread will ever end this call. Called by the connection. */
    boolean isLost() {
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        return isMarkedLost && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /**
     * Ends the call in place of the thread that has failed to do so. Called by the connection. The limit of the method
     * ignores how long this call took.
     */
    public void endLost() {
        executed = RPCXException.Executed.MAYBE;
        leaveStages();
        leaveSilently();
    }

    private void leaveSilently() {
        AdmissionLimit.Group admission = leavesUnlessThreads(false) ? takeAdmitted() : null;
        if (admission != null) {
            admission.release();
        }
    }

    /**
     * Returns whether the limit of the method may stop counting the handler now: see
     * {@link ServerCall#leavesUnlessThreads}.
     */
    private boolean leavesUnlessThreads(boolean isDone) {
        return method.chain() == null || context.leavesUnlessThreads(isDone);
    }

    @Override
    public void releaseAdmission(boolean isDone) {
        AdmissionLimit.Group admission = admitted;
        if (admission != null) {
            long now = connection.nanoTime();
            admitted = null;
            admission.release(beganNanos, deadlineNanos, now, isDone);
        }
    }

    private synchronized AdmissionLimit.@Nullable Group takeAdmitted() {
        AdmissionLimit.Group admission = admitted;
        admitted = null;
        return admission;
    }

    private void runHere() {
        if (deadlineNanos - connection.nanoTime() <= 0) {
            fail(CallErrors.late());
            return;
        }
        if (connection.isCutOff()) {
            fail(CallErrors.closing());
            return;
        }
        Object[] arguments;
        try {
            arguments = arguments();
        } catch (Throwable t) {
            // An Error is caught too: if a class cannot be initialised, the caller gets the error, and this thread goes
            // on.
            fail(CallErrors.unreadable(t));
            return;
        }
        if (!enter()) {
            fail(CallErrors.gone());
            return;
        }
        Object result = null;
        Throwable thrown = null;
        try {
            result = method.invoke(arguments, Metadata.EMPTY, context);
        } catch (Throwable t) {
            thrown = t;
        } finally {
            exit();
        }
        if (thrown != null) {
            failed(thrown);
        } else if (result instanceof CompletionStage<?> stage) {
            await(stage);
        } else {
            succeed(result);
        }
    }

    /** Waits, without a thread, for a result that comes later or never. */
    private void await(CompletionStage<?> stage) {
        PendingResult result = new PendingResult(this, stage, connection.lost);
        boolean isGone;
        synchronized (this) {
            pendingResult = result;
            isGone = context.isCancelled();
        }
        try {
            if (isGone) {
                connection.awaitsForNobody(this);
                result.cancel(context);
            }
            result.begin();
        } catch (Throwable t) {
            if (result.giveUp()) {
                // The call is marked as lost here too: if this method runs as a callback of a stage, the exception goes
                // to that stage, and the caller of this method does not mark the call.
                isMarkedLost = true;
                throw t;
            }
            // The thread that has received the result ends the call.
            ThreadTools.report(t);
        }
    }

    @Override
    public void onResult(@Nullable Object value, @Nullable Throwable thrown) {
        if (thrown == null && value instanceof CompletionStage<?> stage && method.chain() != null) {
            // An interceptor proceeded after another stage had ended, so the value is a stage itself. Its result is
            // that of the call.
            await(method.brought(stage, context));
        } else if (thrown == null) {
            succeed(value);
        } else {
            failed(thrown);
        }
    }

    /**
     * Returns whether the handler has returned a future whose result has not come yet. The handler has no thread then.
     */
    synchronized boolean isAwaiting() {
        return pendingResult != null && pendingResult.isOpen();
    }

    /**
     * Gives up a call whose result nobody waits for any more, if the result has not come. The handler no longer counts
     * as running, but what it was given stays charged while its future may refer to it. Called by the connection, on
     * its event loop or while holding its lock.
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
        List<DetachableStage> own = List.of();
        try {
            leaveSilently();
            own = context.giveUp();
        } catch (Throwable noMemory) {
            // The result cannot be given up a second time, so the call ends in spite of this failure.
            ThreadTools.report(noMemory);
        }
        // Done before the callbacks below run: they end the stages that interceptors have been given, and something
        // stays charged only for a stage that has not ended.
        isPlaceKeptCharged = result.leaveCharge(account, own, objectBytes.handOver(), uncharged, 0);
        if (!own.isEmpty()) {
            connection.callThreads.runCallbacksIfPossible(this, own);
        }
        return true;
    }

    private Object[] arguments() {
        List<ByteBuf> values = Objects.requireNonNull(request).values();
        List<ClassicParameter> parameters = method.arguments();
        Object[] arguments = new Object[values.size()];
        ShareOfFreeBytes memory = new ShareOfFreeBytes(Math.max(1, arguments.length));
        for (int i = 0; i < arguments.length; i++) {
            ClassicParameter parameter = parameters.get(i);
            arguments[parameter.position()] = parameter.codec().read(values.get(i), memory);
        }
        // The call may wait for a future much longer than it needs the frame.
        request = null;
        return arguments;
    }

    /**
     * Memory for the arguments. Each argument gets an equal part of the bytes that the call may take without a charge.
     */
    private final class ShareOfFreeBytes implements Memory {
        private final int arguments;

        ShareOfFreeBytes(int arguments) {
            this.arguments = arguments;
        }

        @Override
        public boolean take(long bytes) {
            return objectBytes.take(bytes);
        }

        @Override
        public int freeBytes() {
            return objectBytes.freeBytes() / arguments;
        }

        @Override
        public void onRead(long spare) {
            uncharged += (int) Math.max(0, freeBytes() - spare);
        }
    }

    /**
     * Begins the part of the call during which {@link #cancel} interrupts the calling thread.
     *
     * @return false if the call has already been cancelled, or has ended
     */
    private synchronized boolean enter() {
        if (context.isCancelled() || ended.get()) {
            return false;
        }
        runner = Thread.currentThread();
        hasBegun = true;
        CurrentCall.set(context);
        return true;
    }

    private synchronized void exit() {
        runner = null;
        CurrentCall.set(null);
        // An interrupt up to now was caused by a cancel of this call or by its handler. Neither the call's reply nor
        // the thread's next task must see it.
        Thread.interrupted();
    }

    /**
     * Cancels the call, since nobody waits for its result any more. If the handler has not begun, it will not begin,
     * and the limit of the method stops counting it immediately. Event loop only.
     *
     * @return false if the handler has not begun, and will not
     */
    boolean cancel() {
        List<Runnable> callbacks;
        PendingResult result;
        boolean hadBegun;
        synchronized (this) {
            result = pendingResult;
            hadBegun = hasBegun;
            try {
                callbacks = context.cancel();
            } finally {
                // The thread is interrupted even if there is no memory for the callbacks.
                ThreadTools.interrupt(runner);
            }
        }
        if (!hadBegun) {
            leaveUnbegun();
        }
        boolean hasRun = hadBegun;
        if (method.chain() != null) {
            hasRun &= context.barHandler();
        }
        mayHaveRun = hasRun;
        if (result != null) {
            callbacks = new ArrayList<>(callbacks);
            callbacks.add(0, () -> result.cancel(context));
        }
        if (!callbacks.isEmpty()) {
            connection.callThreads.runCallbacks(this, callbacks);
        }
        return hadBegun;
    }

    /**
     * Stops counting, against the limit of its method, a handler that will not begin. The thread that cancels the call
     * and the thread that takes it up may both call this; the second time it does nothing.
     */
    private void leaveUnbegun() {
        // The clock is read first: if that fails, the call still has its group, and the thread that ends the call can
        // take the group.
        long now = connection.nanoTime();
        AdmissionLimit.Group admission = takeAdmitted();
        if (admission == null) {
            return;
        }
        if (connection.threads.waitsForItsOwn(method.place(), this)) {
            admission.release();
        } else {
            admission.leaveUnbegun(beganNanos, deadlineNanos, now);
        }
    }

    /** Ends the call with an error, since there is no thread for its handler. */
    @Override
    public void refused(Throwable noThread) {
        refused("the server has no thread for the call");
    }

    /**
     * Ends the call, whose handler has not started, with an error.
     *
     * @param text text of the error
     */
    public void refused(String text) {
        try {
            fail(RPCXException.refused(RPCXException.Code.UNAVAILABLE, text));
        } catch (Throwable t) {
            lose();
            throw t;
        }
    }

    private void failed(Throwable thrown) {
        fail(CallErrors.failed(thrown, method, context));
    }

    private void fail(RPCXException error) {
        endWith(ClassicWire.reply(id(), null, error), error.executed(), false);
    }

    @SuppressWarnings("NullAway") // the codec decides where null can be
    private void succeed(@Nullable Object result) {
        byte[] frame;
        try {
            ByteBuf value = Unpooled.buffer();
            method.result().write(result, value);
            frame = ClassicWire.reply(id(), value, null);
        } catch (CodecException e) {
            unsendable(
                    e.code() == CodecException.Code.TOO_LARGE
                            ? RPCXException.Code.TOO_LARGE
                            : RPCXException.Code.HANDLER_FAILED,
                    ServerMethod.unsendable(e));
            return;
        } catch (Throwable t) {
            unsendable(RPCXException.Code.HANDLER_FAILED, "the result cannot be sent: " + ThrowableText.wireWords(t));
            return;
        }
        int bytes = frame.length - ClassicFrames.LENGTH_BYTES;
        if (bytes > Wire.MAX_MESSAGE_BYTES) {
            unsendable(
                    RPCXException.Code.TOO_LARGE,
                    "a reply of " + bytes + " bytes (expected: at most " + Wire.MAX_MESSAGE_BYTES + ")");
        } else {
            endWith(frame, RPCXException.Executed.EXECUTED, true);
        }
    }

    private void unsendable(RPCXException.Code code, String text) {
        RPCXException error = CallErrors.unsendable(code, text, method, context);
        endWith(ClassicWire.reply(id(), null, error), error.executed(), true);
    }

    /**
     * Ends the call with a reply. Only the first call of this method does anything; a stage may complete twice.
     *
     * @param frame frame of the reply
     * @param said what the reply says about whether the call has been executed
     * @param isDone whether the handler has brought a result
     */
    private void endWith(byte[] frame, RPCXException.Executed said, boolean isDone) {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        executed = said;
        if (!hasBegun) {
            leaveUnbegun();
        } else if (leavesUnlessThreads(isDone)) {
            releaseAdmission(isDone);
        }
        leaveStages();
        connection.ended(this, frame);
    }

    /** Gives up the stages of this call, which has ended: see {@link ServerCall#leaveStages}. */
    private void leaveStages() {
        if (method.chain() == null) {
            return;
        }
        context.barHandler();
        List<DetachableStage> seen = context.giveUp();
        if (!seen.isEmpty()) {
            isPlaceKeptCharged = PendingResult.leaveOwnCharge(account, seen, objectBytes.handOver(), uncharged, 0);
            connection.callThreads.runCallbacks(this, List.copyOf(seen));
        }
    }

    /**
     * Releases what the request has held. Called by the connection after the handler has ended, on the event loop or
     * while holding the lock of the connection.
     */
    void release() {
        context.releaseReferences();
        request = null;
        requestBytes.release();
        objectBytes.release();
    }
}
