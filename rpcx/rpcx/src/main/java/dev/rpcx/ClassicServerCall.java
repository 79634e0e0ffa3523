package dev.rpcx;

import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.Memory;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A classic request being handled. Whatever its arguments, handler and result do, it ends once, in {@link #end}, or is
 * given up.
 */
final class ClassicServerCall implements PoolShares.Task, Awaited.Call, CallThreads.Call {
    private final ClassicServerConnection connection;
    private final Account account;
    private final ServerMethod method;

    /** The key in its connection's table: the call is taken out by it also where there is no memory for another one. */
    private final Long id;

    /** Null once its arguments have been read, or the call is over: a small one is charged to nobody. */
    private ClassicWire.@Nullable Request request;

    private final Charge requestBytes;
    private final Charge objectBytes;
    private final long beganNanos;
    private final long deadlineNanos;
    private final HandledContext context;
    private final AtomicBoolean ended = new AtomicBoolean();
    private @Nullable Thread runner;

    /** Takes the result of a handler that has returned before it had one. Guarded by this. */
    private @Nullable Awaited awaited;

    /** Whether the handler has begun. */
    private boolean entered;

    /** Counts the handler; null where it is not counted, and once it is counted no more. Guarded by this until it has begun. */
    private AdmissionLimit.@Nullable Group admitted;

    /** Whether a thread of the call has failed before it could end it: see {@link LostCalls}. */
    private boolean isOrphan;

    /**
     * What the reply has been charged by where it was more than a little; set by who ends the call, before the
     * connection hears of it.
     */
    @Nullable
    Charge replyBytes;

    /**
     * Whether the place of this call stays charged for what it leaves behind; set by who ends the call, before the
     * connection hears of it.
     */
    boolean isPlaceLeft;

    /** The call is over but for the threads that {@link CallThreads} runs for it. */
    boolean isOverButThreads;

    /** Once the call has been cancelled: whether the method itself, behind its interceptors, may have been called. */
    boolean mayHaveRun;

    /** What the reply says of the call; set by who ends it, before the connection hears of it. */
    private RPCXException.Executed executed = RPCXException.Executed.EXECUTED;

    /** Whether the handler's future has some time to end, though nobody waits for it. The connection's own. */
    boolean isAway;

    /** Whether what the call held has been given back. The connection's own. */
    boolean isAnswered;

    /** Whether the call is counted among its connection's running handlers. The connection's own. */
    boolean running;

    /** What the arguments were read into takes so much beside what is charged. */
    private int uncharged;

    /** The connection gives the call up at this time, if its handler's future has not ended by then. Event loop only. */
    long awayUntilNanos;

    ClassicServerCall(
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
            context.goesOnBy(connection.callThreads.stepsOf(this));
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
        // a thread that reads its own name here has written it, and no other thread reads that of this one
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
    boolean holdsRequest() {
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
            connection.lost.tell();
        } catch (Throwable again) {
            // it is found at the next look
        }
    }

    /** Whether nobody will end this call, as the connection asks. */
    boolean isLost() {
        Awaited result;
        synchronized (this) {
            result = awaited;
        }
        return isOrphan && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /** The call is ended by the connection, as nobody else will. The limit learns nothing from it. */
    void end() {
        executed = RPCXException.Executed.MAYBE;
        leaveStages();
        leaveSilently();
    }

    private void leaveSilently() {
        AdmissionLimit.Group admission = leavesUnlessThreads(false) ? takeAdmitted() : null;
        if (admission != null) {
            admission.leave();
        }
    }

    /** As {@link ServerCall#leavesUnlessThreads}. */
    private boolean leavesUnlessThreads(boolean isDone) {
        return method.chain() == null || context.leavesUnlessThreads(isDone);
    }

    @Override
    public void leaveNow(boolean isDone) {
        AdmissionLimit.Group admission = admitted;
        if (admission != null) {
            long now = connection.nanoTime();
            admitted = null;
            admission.leave(beganNanos, deadlineNanos, now, isDone);
        }
    }

    private synchronized AdmissionLimit.@Nullable Group takeAdmitted() {
        AdmissionLimit.Group admission = admitted;
        admitted = null;
        return admission;
    }

    private void runHere() {
        if (deadlineNanos - connection.nanoTime() <= 0) {
            fail(refusal(RPCXException.Code.DEADLINE_EXCEEDED, "the time was over before the handler started"));
            return;
        }
        if (connection.isCutOff()) {
            fail(ServerCall.closing());
            return;
        }
        Object[] arguments;
        try {
            arguments = arguments();
        } catch (Throwable t) {
            // an Error too: a class that cannot be initialised is its caller's affair, and not this thread's
            fail(refusal(
                    ThrowableText.isOfMemory(t) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                    "the request cannot be read: " + ThrowableText.wireWords(t)));
            return;
        }
        if (!enter()) {
            fail(refusal(RPCXException.Code.CANCELLED, "the caller is gone"));
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

    /** The result comes later, or never. */
    private void await(CompletionStage<?> stage) {
        Awaited result = new Awaited(this, stage, connection.lost);
        boolean isGone;
        synchronized (this) {
            awaited = result;
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
                // also where another stage brought this one: that does not say that the call is lost
                isOrphan = true;
                throw t;
            }
            // whoever has the result ends the call
            ThreadTools.report(t);
        }
    }

    @Override
    public void brought(@Nullable Object value, @Nullable Throwable thrown) {
        if (thrown == null && value instanceof CompletionStage<?> stage && method.chain() != null) {
            // of an interceptor that has gone on behind a stage, whose own result it gives
            await(method.brought(stage, context));
        } else if (thrown == null) {
            succeed(value);
        } else {
            failed(thrown);
        }
    }

    /** Whether the handler has returned, so that it has no thread, and its result has not come. */
    synchronized boolean isAwaiting() {
        return awaited != null && awaited.isOpen();
    }

    /**
     * Nobody waits for the result any more, and it has not come: the handler counts as running no longer. What it was
     * given stays charged for as long as its future may hold that. By the connection, as {@link #release}.
     *
     * @return false if the result has come
     */
    boolean giveUp() {
        Awaited result;
        synchronized (this) {
            result = awaited;
        }
        if (result == null || !result.giveUp()) {
            return false;
        }
        List<OwnStage> own = List.of();
        try {
            leaveSilently();
            own = context.giveUp();
        } catch (Throwable noMemory) {
            // nobody can take the call from its stage a second time: it is over all the same
            ThreadTools.report(noMemory);
        }
        // first: whoever is told ends the stage, of which this looks whether it is open
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
        // a future may be waited for much longer than the frame is needed, and on the event loop by many calls
        request = null;
        return arguments;
    }

    /** What a call has without being charged is for all of its arguments together. */
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

    /** From here on {@link #cancel} interrupts this thread. @return false if it, or the call's end, came already */
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
        // the interrupt was this call's, a cancel's or its own: neither its reply nor the thread's next task must meet
        // it
        Thread.interrupted();
    }

    /**
     * Nobody waits for the result any more. On the event loop. A handler that has not begun is not counted from here on,
     * whenever a thread comes to it.
     *
     * @return false if the handler has not begun, and will not
     */
    boolean cancel() {
        List<Runnable> told;
        Awaited result;
        boolean hasBegun;
        synchronized (this) {
            result = awaited;
            hasBegun = entered;
            try {
                told = context.cancel();
            } finally {
                // also where there is no memory to tell anybody else
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
            connection.callThreads.tell(this, told);
        }
        return hasBegun;
    }

    /** The handler has not begun, and will not. Whoever cancels the call and the thread that comes to it may both say so. */
    private void leaveUnbegun() {
        // before the handler is taken: where this fails, whoever ends the call takes it
        long now = connection.nanoTime();
        AdmissionLimit.Group admission = takeAdmitted();
        if (admission == null) {
            return;
        }
        if (connection.threads.waitsForItsOwn(method.place(), this)) {
            admission.leave();
        } else {
            admission.leaveUnbegun(beganNanos, deadlineNanos, now);
        }
    }

    private static RPCXException refusal(RPCXException.Code code, String text) {
        return RPCXException.refused(code, text);
    }

    /** No thread can be had for the handler. */
    @Override
    public void refused(Throwable noThread) {
        refused("the server has no thread for the call");
    }

    /** The handler was not started. */
    void refused(String text) {
        try {
            fail(refusal(RPCXException.Code.UNAVAILABLE, text));
        } catch (Throwable t) {
            lose();
            throw t;
        }
    }

    private void failed(Throwable thrown) {
        fail(ServerCall.failed(thrown, method, context));
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
        RPCXException error = ServerCall.unsendable(code, text, method, context);
        end(ClassicWire.reply(id(), null, error), error.executed(), true);
    }

    /** The one place where a call ends. A stage that completes twice is heard once. */
    private void end(byte[] frame, RPCXException.Executed said, boolean isDone) {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        executed = said;
        if (!entered) {
            leaveUnbegun();
        } else if (leavesUnlessThreads(isDone)) {
            leaveNow(isDone);
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
        List<OwnStage> seen = context.giveUp();
        if (!seen.isEmpty()) {
            isPlaceLeft = Awaited.leaveOwn(account, seen, objectBytes.handOver(), uncharged, 0);
            connection.callThreads.tell(this, List.copyOf(seen));
        }
    }

    /** What the request held; its handler has ended. By the connection, on the event loop or under its lock. */
    void release() {
        context.goesNoFurther();
        request = null;
        requestBytes.release();
        objectBytes.release();
    }
}
