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
 * A server's call on the classic wire. Whatever its arguments, handler and result do, the call ends once, in
 * {@link #end}, or is given up.
 */
public final class ClassicServerCall implements PoolShares.Task, PendingResult.Call, CallThreads.Call {
    private final ClassicServerConnection connection;
    private final Account account;
    private final ServerMethod method;

    /** Key in the connection's table, kept as an object: the call can be removed without memory for another key. */
    private final Long id;

    /** Request; null once its arguments have been read, or the call is over, since a small request is not charged. */
    private ClassicWire.@Nullable Request request;

    private final Charge requestBytes;
    private final Charge objectBytes;
    private final long beganNanos;
    private final long deadlineNanos;
    private final HandledContext context;
    private final AtomicBoolean ended = new AtomicBoolean();
    private @Nullable Thread runner;

    /** Takes the result of a handler that has returned before it had a result. Guarded by {@code this}. */
    private @Nullable PendingResult pendingResult;

    /** Whether the handler has begun. */
    private boolean entered;

    /**
     * Group that counts the handler in its method's limit; null if the handler is not counted, or no longer. Guarded by
     * {@code this} until the handler has begun.
     */
    private AdmissionLimit.@Nullable Group admitted;

    /** Whether a thread of the call has failed before it could end the call: see {@link LostCalls}. */
    private boolean isOrphan;

    /**
     * Charge of a large reply; null if the reply is not charged. Written by the thread that ends the call, before the
     * connection's event loop learns of the end.
     */
    @Nullable
    Charge replyBytes;

    /**
     * Whether the place of this call stays charged for what the call leaves behind. Written by the thread that ends the
     * call, before the connection's event loop learns of the end.
     */
    boolean isPlaceLeft;

    /** Whether the call is over but for the threads that {@link CallThreads} runs for it. */
    boolean isOverButThreads;

    /** Once the call has been cancelled: whether the method itself, behind its interceptors, may have been called. */
    boolean mayHaveRun;

    /**
     * Whether the call has been executed, as its reply says. Written by the thread that ends the call, before the
     * connection's event loop learns of the end.
     */
    private RPCXException.Executed executed = RPCXException.Executed.EXECUTED;

    /** Whether the handler's future has some time to end, though nobody waits for it. Used by the connection only. */
    boolean isLingering;

    /**
     * Whether the reply has come to the connection, or the call was withdrawn before a thread ran it. Used by the
     * connection only.
     */
    boolean isAnswered;

    /** Whether the call is counted among its connection's running handlers. Used by the connection only. */
    boolean running;

    /** Bytes that the arguments take in objects, beside those that are charged. */
    private int uncharged;

    /** The connection gives the call up at this time, if its handler's future has not ended by then. Event loop only. */
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
        // No lock is needed: only a thread that has written itself here can read itself here.
        return runner == Thread.currentThread();
    }

    @Override
    public void threadsEnded(HandledContext of) {
        connection.settleIfThreadsEnded(this);
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    /** Whether the frame of the request is still held: for tests. */
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
        isOrphan = true;
        connection.lost.isAny = true;
        try {
            connection.lost.requestCheck();
        } catch (Throwable again) {
            // The connection finds the call at its next check.
        }
    }

    /** Whether no thread will end this call; asked by the connection. */
    boolean isLost() {
        PendingResult result;
        synchronized (this) {
            result = pendingResult;
        }
        return isOrphan && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /** Ends the call for the connection, since no thread will. The limit learns nothing from the call. */
    public void end() {
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

    /** As {@link ServerCall#leavesUnlessThreads}. */
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
            // An Error is caught too: a class that cannot be initialised is its caller's affair, and not this thread's.
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

    /** Registers for a result that comes later, or never. */
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
                // The mark is set here, since a stage that brought this one does not mark the call as lost.
                isOrphan = true;
                throw t;
            }
            // The thread that has the result ends the call.
            ThreadTools.report(t);
        }
    }

    @Override
    public void onResult(@Nullable Object value, @Nullable Throwable thrown) {
        if (thrown == null && value instanceof CompletionStage<?> stage && method.chain() != null) {
            // An interceptor has gone on behind a stage, and brings another stage, whose result is the call's.
            await(method.brought(stage, context));
        } else if (thrown == null) {
            succeed(value);
        } else {
            failed(thrown);
        }
    }

    /** Whether the handler has returned, so that it has no thread, and its result has not come. */
    synchronized boolean isAwaiting() {
        return pendingResult != null && pendingResult.isOpen();
    }

    /**
     * Gives up a call for whose result nobody waits any more, if the result has not come. The handler then no longer
     * counts as running. What the handler was given stays charged for as long as its future may hold it. Called by the
     * connection, as {@link #release}.
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
            // The call cannot be taken from its stage a second time, so it is over all the same.
            ThreadTools.report(noMemory);
        }
        // This comes first, since it looks whether the stage is open, and code that is told of the end closes it.
        isPlaceLeft = result.leave(account, own, objectBytes.handOver(), uncharged, 0);
        if (!own.isEmpty()) {
            connection.callThreads.tellIfPossible(this, own);
        }
        return true;
    }

    private Object[] arguments() {
        List<ByteBuf> values = Objects.requireNonNull(request).values();
        List<ClassicParameter> parameters = method.arguments();
        Object[] arguments = new Object[values.size()];
        ShareOfUnasked memory = new ShareOfUnasked(Math.max(1, arguments.length));
        for (int i = 0; i < arguments.length; i++) {
            ClassicParameter parameter = parameters.get(i);
            arguments[parameter.place()] = parameter.codec().read(values.get(i), memory);
        }
        // A future may be waited for much longer than the frame is needed, and on the event loop by many calls.
        request = null;
        return arguments;
    }

    /**
     * Memory for the arguments, which are read one after the other: the bytes that a call may take without a charge are
     * for all its arguments together, so each argument has an equal part of them.
     */
    private final class ShareOfUnasked implements Memory {
        private final int arguments;

        ShareOfUnasked(int arguments) {
            this.arguments = arguments;
        }

        @Override
        public boolean take(long bytes) {
            return objectBytes.take(bytes);
        }

        @Override
        public int unasked() {
            return objectBytes.unasked() / arguments;
        }

        @Override
        public void isRead(long spare) {
            uncharged += (int) Math.max(0, unasked() - spare);
        }
    }

    /**
     * From here on {@link #cancel} interrupts this thread. @return false if a cancel, or the call's end, came already
     */
    private synchronized boolean enter() {
        if (context.isCancelled() || ended.get()) {
            return false;
        }
        runner = Thread.currentThread();
        entered = true;
        CurrentCall.set(context);
        return true;
    }

    private synchronized void exit() {
        runner = null;
        CurrentCall.set(null);
        // An interrupt came from a cancel of this call or from its handler: neither the call's reply nor the thread's
        // next task must meet it.
        Thread.interrupted();
    }

    /**
     * Cancels the call, since nobody waits for its result any more. On the event loop. A handler that has not begun is
     * not counted from here on, whenever a thread comes to it.
     *
     * @return false if the handler has not begun, and will not
     */
    boolean cancel() {
        List<Runnable> told;
        PendingResult result;
        boolean hasBegun;
        synchronized (this) {
            result = pendingResult;
            hasBegun = entered;
            try {
                told = context.cancel();
            } finally {
                // The thread is interrupted even if there is no memory for the callbacks.
                ThreadTools.interrupt(runner);
            }
        }
        if (!hasBegun) {
            leaveUnbegun();
        }
        boolean hasRun = hasBegun;
        if (method.chain() != null) {
            hasRun &= context.barHandler();
        }
        mayHaveRun = hasRun;
        if (result != null) {
            told = new ArrayList<>(told);
            told.add(0, () -> result.cancel(context));
        }
        if (!told.isEmpty()) {
            connection.callThreads.runCallbacks(this, told);
        }
        return hasBegun;
    }

    /**
     * Takes a handler that has not begun, and will not, off its method's limit. The thread that cancels the call and
     * the thread that comes to it may both call this method.
     */
    private void leaveUnbegun() {
        // The clock is read before the group is taken: if reading it fails, the thread that ends the call takes the
        // group.
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

    /** Ends the call, since no thread can be had for its handler. */
    @Override
    public void refused(Throwable noThread) {
        refused("the server has no thread for the call");
    }

    /** Ends the call, whose handler was not started. */
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
        end(ClassicWire.reply(id(), null, error), error.executed(), false);
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
            end(frame, RPCXException.Executed.EXECUTED, true);
        }
    }

    private void unsendable(RPCXException.Code code, String text) {
        RPCXException error = CallErrors.unsendable(code, text, method, context);
        end(ClassicWire.reply(id(), null, error), error.executed(), true);
    }

    /** Ends the call with a reply. Only the first end counts, so a stage that completes twice is heard once. */
    private void end(byte[] frame, RPCXException.Executed said, boolean isDone) {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        executed = said;
        if (!entered) {
            leaveUnbegun();
        } else if (leavesUnlessThreads(isDone)) {
            releaseAdmission(isDone);
        }
        leaveStages();
        connection.ended(this, frame);
    }

    /** As {@link ServerCall#leaveStages}. */
    private void leaveStages() {
        if (method.chain() == null) {
            return;
        }
        context.barHandler();
        List<DetachableStage> seen = context.giveUp();
        if (!seen.isEmpty()) {
            isPlaceLeft = PendingResult.leaveOwn(account, seen, objectBytes.handOver(), uncharged, 0);
            connection.callThreads.runCallbacks(this, List.copyOf(seen));
        }
    }

    /**
     * Releases what the request held; its handler has ended. Called by the connection, on the event loop or under the
     * connection's lock.
     */
    void release() {
        context.releaseReferences();
        request = null;
        requestBytes.release();
        objectBytes.release();
    }
}
