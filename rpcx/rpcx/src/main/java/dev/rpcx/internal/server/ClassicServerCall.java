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
 * A call on the classic wire, at the server. A call ends exactly once, in one of these ways:
 *
 * <ul>
 *   <li>The call passes its reply, which can be an error, to the connection.
 *   <li>The connection withdraws the call before a thread runs it.
 *   <li>The server stops waiting for the result: see {@link #giveUp}.
 *   <li>The call's thread fails: see {@link #endLost}.
 * </ul>
 */
public final class ClassicServerCall implements PoolShares.Task, PendingResult.Call, CallThreads.Call {
    private final ClassicServerConnection connection;
    private final Account account;
    private final ServerMethod method;

    /** Id of the call, stored as an object so that removing the call from the connection's table needs no memory. */
    private final Long id;

    /**
     * Request of the call; null when the arguments have been read, or the call is over. The bytes of a small request do
     * not count against the memory limits of the server, so the call keeps its request no longer than necessary.
     */
    private ClassicWire.@Nullable Request request;

    private final Charge requestBytes;
    private final Charge objectBytes;
    private final long beganNanos;
    private final long deadlineNanos;
    private final HandledContext context;

    /**
     * Whether {@link #endWith} has been called. Several threads can call that method, for example the one that runs the
     * call and one that could not start a thread for it. Only the first one ends the call.
     */
    private final AtomicBoolean ended = new AtomicBoolean();

    /**
     * Thread that runs the handler or an interceptor; null if there is none. Written while holding the lock of this
     * call, which {@link #cancel} holds while it interrupts the thread. So the interrupt does not reach the thread's
     * next task.
     */
    private @Nullable Thread runner;

    /**
     * Waits for the future that the handler, or an interceptor instead of the handler, has returned; null if no future
     * has been returned. Guarded by {@code this}.
     */
    private @Nullable PendingResult pendingResult;

    /**
     * Whether the first interceptor of the call has begun. For a call without interceptors: whether the handler has
     * begun. This field is written under the lock of this call, and {@link #cancel} reads the field under the same
     * lock. The thread that ends the call reads the field without the lock: at that time the handler has returned, or
     * will not begin.
     */
    private boolean hasBegun;

    /**
     * Group of clients in which the {@link AdmissionLimit} of the method counts the handler of this call; null if the
     * handler is not counted now. Guarded by {@code this} until the handler has begun.
     */
    private AdmissionLimit.@Nullable Group admitted;

    /**
     * Whether a thread has failed before it could end the call. The thread writes this field before it sets
     * {@link LostCalls#isAny}, and the event loop reads this field after it has read {@code isAny}.
     */
    private boolean isMarkedLost;

    /**
     * Charge for a large reply that another thread passes to the event loop. The charge is made before the reply waits
     * for the event loop. Null if the reply is small, if there was no room for the charge, or if the event loop itself
     * has made the reply. The event loop charges its own large replies when it sends them. The thread that ends the
     * call writes this field before the event loop learns of the end.
     */
    @Nullable
    Charge replyBytes;

    /**
     * Whether the call's place in its connection stays charged after the end of the call. The place stays charged if
     * the handler's future has not ended, and the objects that the future may hold could not be charged. The charge for
     * the place then stands for these objects. The thread that ends the call writes this field before the event loop
     * learns of the end.
     */
    boolean isPlaceKeptCharged;

    /** Whether the call is over, but threads that {@link CallThreads} counts for the call have not ended. */
    boolean isOverButThreads;

    /** Whether the published method, and not only interceptors, may have been called. Written by {@link #cancel}. */
    boolean mayHaveRun;

    /**
     * What the reply says to the client about whether the call has been executed. The thread that ends the call writes
     * this field before the event loop learns of the end.
     */
    private RPCXException.Executed executed = RPCXException.Executed.EXECUTED;

    /**
     * Whether the connection has begun to wait for the handler's future after the client had stopped waiting for the
     * call. The field stays true if the result comes during this wait. Used only by the connection.
     */
    boolean isLingering;

    /**
     * Whether the call has passed its reply to the connection, or was withdrawn before a thread ran the call. Used only
     * by the connection.
     */
    boolean isAnswered;

    /** Whether the connection counts this call's handler as running. Used only by the connection. */
    boolean running;

    /**
     * Estimated memory, in bytes, of those objects of the arguments that do not count against the memory limits of the
     * server.
     */
    private int uncharged;

    /**
     * Time in nanoseconds until which the connection waits for the handler's future, after the client has stopped
     * waiting. Used only on the event loop.
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
        // No lock is needed: if a thread finds itself in this field, then the same thread has written the field.
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
            // No check was requested, but lost.isAny is set, so the connection's next check for lost calls finds the
            // call.
        }
    }

    /**
     * Returns whether the thread that was to end this call has failed, so that no thread will end the call. Called by
     * the connection.
     */
    boolean isLost() {
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        return isMarkedLost && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /**
     * Ends this call, because the thread that was to end it has failed. Called by the connection. The
     * {@link AdmissionLimit} of the method ignores how long the call took.
     */
    public void endLost() {
        executed = RPCXException.Executed.MAYBE;
        endStages();
        leaveUnlearnt();
    }

    private void leaveUnlearnt() {
        AdmissionLimit.Group admission = mayLeaveNow(false) ? takeAdmitted() : null;
        if (admission != null) {
            admission.release();
        }
    }

    /**
     * Returns whether the handler may leave its method's {@link AdmissionLimit} now. If the method has no interceptors,
     * the result is always true.
     *
     * <p>If the method has interceptors, this method also prevents the handler from starting later. It returns false
     * while other threads run for the call, since one of these threads may run the handler. The last of these threads
     * then calls {@link #releaseAdmission}.
     *
     * @param isDone whether the call has produced a result
     */
    private boolean mayLeaveNow(boolean isDone) {
        return method.chain() == null || context.mayLeaveNow(isDone);
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
            fail(ServerCallErrors.late());
            return;
        }
        if (connection.isCutOff()) {
            fail(ServerCallErrors.closing());
            return;
        }
        Object[] arguments;
        try {
            arguments = arguments();
        } catch (Throwable t) {
            // An Error is caught too, for example if a class cannot be initialised. The client gets the error, and this
            // thread goes on.
            fail(ServerCallErrors.unreadable(t));
            return;
        }
        if (!enter()) {
            fail(ServerCallErrors.gone());
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

    /** Begins to wait for the result of a stage, without blocking a thread. */
    private void await(CompletionStage<?> stage) {
        PendingResult result = new PendingResult(this, stage, connection.lost);
        boolean isGone;
        synchronized (this) {
            // cancel() holds the same lock on the event loop. Either cancel() finds this result, or this thread finds
            // that the call has been cancelled. If neither did, nobody would stop waiting for a stage that never ends.
            // In OutlastedConnectionTest, aFutureThatAHandlerBringsBehindTheEndOfItsServerIsCancelled tests the second
            // case, and in soDoThoseOfConnectionsThatEndMeanwhile the two can meet by chance.
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
                // This method may run as a callback of a stage. The exception then does not reach run(), which would
                // mark the call as lost, so the call is marked here.
                isMarkedLost = true;
                throw t;
            }
            // The wait could not be given up, because the result has come. The thread that has received the result ends
            // the call.
            ThreadTools.report(t);
        }
    }

    @Override
    public void onResult(@Nullable Object value, @Nullable Throwable thrown) {
        if (thrown == null && value instanceof CompletionStage<?> stage && method.chain() != null) {
            // The awaited stage has ended with another stage as its value. Usually, an interceptor has called the rest
            // of the chain in a callback, and the value is the stage that the rest of the chain has returned. The call
            // now waits for the result of that stage.
            await(method.brought(stage, context));
        } else if (thrown == null) {
            succeed(value);
        } else {
            failed(thrown);
        }
    }

    /** Returns whether the handler has returned a future whose result has not come yet. */
    synchronized boolean isAwaiting() {
        return pendingResult != null && pendingResult.isOpen();
    }

    /**
     * Stops waiting for the handler's future, whose result nobody needs any more. The handler no longer counts as
     * running, but its arguments stay charged while the future may refer to them. Called by the connection, on the
     * event loop or while holding the connection's lock.
     *
     * @return false if the result has come, or there is no future
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
            leaveUnlearnt();
            own = context.giveUp();
        } catch (Throwable noMemory) {
            // The wait for a result can be given up only once, so no later try could end the call. Therefore the
            // failure is only reported, and the call ends now.
            ThreadTools.report(noMemory);
        }
        // Only a stage that has not ended can keep a charge. Therefore the charge is handed over first: the callbacks
        // below end the stages that interceptors have been given.
        isPlaceKeptCharged = result.handOverCharge(account, own, objectBytes.handOver(), uncharged, 0);
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
        // The frame is dropped now, since the call may wait much longer for a future.
        request = null;
        return arguments;
    }

    /**
     * Counts the memory of the decoded arguments against the memory limits of the server. Each call may use 1024 bytes
     * that are not counted ({@link Charge#freeBytes}), and each argument gets an equal part of these bytes. For
     * example, each of 4 arguments may use 256 of them.
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
     * Records that the calling thread runs the handler and its interceptors, so that {@link #cancel} interrupts the
     * thread.
     *
     * @return false if the call has been cancelled or has ended, so that the handler must not run
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
        // Thread.interrupted clears an interrupt that was meant for this call or was left by its handler. Neither the
        // call's reply nor the thread's next task must see the interrupt.
        Thread.interrupted();
    }

    /**
     * Cancels the call, since the client no longer waits for the result. If the handler has not begun, it will not
     * begin. If neither an interceptor nor the handler has begun, the {@link AdmissionLimit} of the method no longer
     * counts the handler. Called only on the event loop.
     *
     * @return true if an interceptor or the handler has begun; false if neither of them will begin
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
                // If context.cancel() fails, because there is no memory for the list of callbacks, the thread is
                // interrupted all the same.
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
     * Makes the {@link AdmissionLimit} of the method stop counting this call's handler, since the handler will not
     * begin. The event loop that cancels the call and the thread that runs the call can both call this method at the
     * same time. {@link #takeAdmitted} returns the group that counts the handler to only one of them, and null to the
     * other. So the handler is not removed twice. In
     * {@code SharedPoolTest.callsThatWaitForAThreadEndWithTheirConnection}, both can, by chance, call this method at
     * the same time.
     */
    private void leaveUnbegun() {
        // The clock is read before the group is taken out of the field admitted. If reading the clock fails, the thread
        // that ends the call still finds the group there, and can remove the handler from the group's count.
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
        refused(ServerCallErrors.NO_THREAD);
    }

    /**
     * Ends the call with an error before its handler has started.
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
        RPCXException error = ServerCallErrors.failed(thrown, method, context).withMetadata(context.replyMetadata());
        boolean isLogged = !context.isCancelled() && !ServerCallErrors.tellsAll(thrown, error);
        fail(error);
        if (isLogged) {
            connection.logFailure(method, id, ServerCallErrors.HANDLER, thrown);
        }
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
            boolean isTooLarge = e.code() == CodecException.Code.TOO_LARGE;
            if (!isTooLarge) {
                connection.logFailure(method, id, ServerCallErrors.RESULT, e);
            }
            unsendable(
                    isTooLarge ? RPCXException.Code.TOO_LARGE : RPCXException.Code.HANDLER_FAILED,
                    ServerMethod.unsendable(e));
            return;
        } catch (Throwable t) {
            connection.logFailure(method, id, ServerCallErrors.RESULT, t);
            unsendable(RPCXException.Code.HANDLER_FAILED, ServerCallErrors.UNSENDABLE + ThrowableText.wireWords(t));
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
        RPCXException error = ServerCallErrors.unsendable(code, text, method, context);
        endWith(ClassicWire.reply(id(), null, error), error.executed(), true);
    }

    /**
     * Ends the call with a reply. Only the first call of this method has an effect.
     *
     * @param frame frame of the reply
     * @param said what the reply says to the client about whether the call has been executed
     * @param isDone whether the handler has produced a result
     */
    private void endWith(byte[] frame, RPCXException.Executed said, boolean isDone) {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        executed = said;
        if (!hasBegun) {
            leaveUnbegun();
        } else if (mayLeaveNow(isDone)) {
            releaseAdmission(isDone);
        }
        endStages();
        connection.ended(this, frame);
    }

    /**
     * Ends the {@link DetachableStage}s for which this call's interceptors may still wait, because the call has ended.
     * If a stage that the handler or an interceptor has returned has not ended, it may still hold the objects of the
     * request. So these objects stay charged: see {@link PendingResult#handOverChargeToOwn}.
     */
    private void endStages() {
        if (method.chain() == null) {
            return;
        }
        context.barHandler();
        List<DetachableStage> seen = context.giveUp();
        if (!seen.isEmpty()) {
            isPlaceKeptCharged = PendingResult.handOverChargeToOwn(account, seen, objectBytes.handOver(), uncharged, 0);
            connection.callThreads.runCallbacks(this, List.copyOf(seen));
        }
    }

    /**
     * Releases the request and its charges when the call is over and no thread runs for the call any more. Called by
     * the connection, on the event loop or while holding the connection's lock.
     */
    void release() {
        context.releaseReferences();
        request = null;
        requestBytes.release();
        objectBytes.release();
    }
}
