package dev.rpcx;

import dev.rpcx.codec.CodecException;
import io.netty.buffer.ByteBuf;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A request being handled, and then its reply. Used again when the reply has left and the handler has ended; never while either is under
 * way.
 */
final class ServerCall extends Outbound implements Runnable {
    private final ServerConnection connection;

    private static final VarHandle ENDED;

    static {
        try {
            ENDED = MethodHandles.lookup().findVarHandle(ServerCall.class, "ended", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    // set on the event loop before the handler starts
    private @Nullable ServerMethod method;
    private Metadata metadata = Metadata.EMPTY;
    private long beganNanos;
    private long deadlineNanos;
    private @Nullable CallContext context;
    private @Nullable Thread runner;

    /** The result of a handler that has returned before it had one. Written under this. */
    private volatile @Nullable Awaited awaited;

    /** Whether the handler has begun: a call whose time was over before that says nothing about how long handlers take. */
    private boolean entered;

    // the event loop's alone
    boolean receiving;
    boolean handling;

    /** Counted among its connection's running handlers. */
    boolean running;

    boolean notice;

    /** Waits in its connection until replies before its own have left; and begun after it had waited. */
    boolean postponed;

    boolean resumed;

    /** The request, from its arrival until the handler has ended. */
    final Charge requestBytes;

    /** What a large request has been read into, from then until its handler has ended. */
    private final Charge objectBytes;

    /**
     * A reply that cannot leave at once, or that another thread than the event loop has made: charged there before it is queued, as what all
     * threads make at once could be more than the heap holds.
     */
    final Charge replyBytes;

    /** The buffer, while no call is under way and it is kept for the next. */
    final Charge keptBytes;

    /** A request or an item that is not whole: when it began, when its bytes were looked at last, and how many have come since. */
    long unfinishedSinceNanos;

    long lookedNanos;
    long newBytes;
    long wholeBytes;

    /** Where the handler is counted; null where it is not. Set before it starts, cleared by whoever ends it. */
    @Nullable
    AdmissionLimit admitted;

    /** Items that come with the call, and items that go back. */
    @Nullable
    StreamReceiver receiver;

    @Nullable
    StreamSender sender;

    /** Given before there was a sender. */
    long credit;

    /** Neighbours in the connection's list of calls without a slot that it watches, and when it looks at this one. */
    @Nullable
    ServerCall nextAway;

    @Nullable
    ServerCall previousAway;

    boolean isAway;
    long awayUntilNanos;

    /** The caller has its final frame already: whatever the handler brings is dropped. */
    boolean abandoned;

    /** Set by who sends the final frame, where a handler's thread may be first to do it. */
    private volatile boolean ended;

    ServerCall(ServerConnection connection, Account account) {
        this.connection = connection;
        this.requestBytes = account.charge(Resource.REQUEST_BYTES);
        this.objectBytes = account.charge(Resource.OBJECT_BYTES);
        this.replyBytes = account.charge(Resource.REPLY_BYTES);
        this.keptBytes = account.charge(Resource.KEPT_BYTES);
    }

    void begin(int callId, ServerMethod called, Metadata given, long now, long deadline, boolean oneWay) {
        notice = oneWay;
        beganNanos = now;
        id = callId;
        method = called;
        metadata = given;
        deadlineNanos = deadline;
        context = new CallContext(
                deadline, given, connection.peer(), connection.loop().ticker());
        receiving = false;
        handling = false;
        abandoned = false;
        waits = false;
        ended = false;
        entered = false;
        receiver = null;
        sender = null;
        credit = 0;
        clearBody();
    }

    /**
     * The last part of the request is there. How long its caller took to send it says nothing about how long handlers take, so what counts
     * for admission begins here.
     */
    void isWhole(long now) {
        beganNanos = now;
    }

    /** The call is over: a place without a call refers to nothing that its caller sent or its handler made. On the event loop. */
    void forget() {
        metadata = Metadata.EMPTY;
        context = null;
        sender = null;
        receiver = null;
        if (awaited != null) {
            synchronized (this) {
                awaited = null;
            }
        }
        objectBytes.release();
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    void unfinished(long now) {
        unfinishedSinceNanos = now;
        lookedNanos = now;
        newBytes = 0;
        wholeBytes = 0;
    }

    ServerMethod method() {
        return java.util.Objects.requireNonNull(method);
    }

    private CallContext context() {
        return java.util.Objects.requireNonNull(context);
    }

    /** On the handler's thread. */
    @Override
    public void run() {
        if (connection.isCongested() && mayWait()) {
            connection.postpone(this);
        } else if (isCancelled()) {
            // not even decoded
            finish(null, gone());
        } else {
            handle(body);
        }
    }

    /** What has a stream, or no reply, is begun in any case; and what has waited once. */
    private boolean mayWait() {
        return !resumed && !notice && receiver == null && !method().brings();
    }

    /** Runs the handler with the request in this buffer. On the handler's thread, which is the event loop for those that run there. */
    void handle(ByteBuf request) {
        Object[] arguments;
        try {
            if (deadlineNanos - connection.nanoTime() <= 0) {
                throw late();
            }
            arguments = read(request);
        } catch (Throwable t) {
            finish(null, unread(t));
            return;
        }
        if (!enter()) {
            finish(null, gone());
            return;
        }
        ServerMethod called = method();
        Object result = null;
        RPCXException error = null;
        try {
            result = called.invoke(arguments, metadata);
        } catch (Throwable t) {
            error = failedHere(t);
        }
        exit();
        if (error != null) {
            finish(null, error);
            return;
        }
        if (called.brings()) {
            leave(true);
            connection.stream(this, result);
        } else if (result instanceof CompletionStage<?> stage) {
            await(stage);
        } else {
            finish(result, null);
        }
    }

    /** The result comes later, or never. Afterwards this object may serve another call. */
    private void await(CompletionStage<?> stage) {
        Awaited result = new Awaited(this, stage);
        boolean isGone;
        synchronized (this) {
            awaited = result;
            isGone = context().isCancelled();
        }
        if (isGone) {
            connection.awaitsForNobody(this);
            result.cancel();
        }
        try {
            stage.whenComplete(result);
        } catch (Throwable t) {
            result.accept(null, t);
        }
    }

    /** Takes the result that a handler brings later: the first, once, and none when its call has been given up. Then it knows no call. */
    private static final class Awaited implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        private final CompletionStage<?> stage;
        private @Nullable ServerCall call;

        Awaited(ServerCall call, CompletionStage<?> stage) {
            this.call = call;
            this.stage = stage;
        }

        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            ServerCall waiting = take();
            if (waiting != null) {
                waiting.finish(value, thrown == null ? null : waiting.failedHere(thrown));
            }
        }

        synchronized @Nullable ServerCall take() {
            ServerCall waiting = call;
            call = null;
            return waiting;
        }

        synchronized boolean isOpen() {
            return call != null;
        }

        /**
         * Passes a cancel on to a call of the handler's own. Another stage is not cancelled: what its maker has hung on it to give back would
         * be passed over, and other calls may wait for the same one.
         */
        void cancel() {
            if (stage instanceof RPCXFuture<?> call) {
                call.cancel(true);
            }
        }
    }

    /** Whether the handler has returned, without a thread, and its result has not come. */
    boolean isAwaiting() {
        Awaited result;
        synchronized (this) {
            result = awaited;
        }
        return result != null && result.isOpen();
    }

    /** On the event loop: nobody waits for the result any more, and it has not come. @return false if it has */
    boolean giveUp() {
        Awaited result;
        synchronized (this) {
            result = awaited;
        }
        if (result == null || result.take() == null) {
            return false;
        }
        AdmissionLimit counted = admitted;
        if (counted != null) {
            admitted = null;
            counted.leave();
        }
        handling = false;
        return true;
    }

    boolean isCancelled() {
        return context().isCancelled();
    }

    private Object[] read(ByteBuf request) {
        StreamReceiver items = receiver;
        Object[] arguments = method().parameters().read(request, objectBytes);
        return items == null ? arguments : new Object[] {items};
    }

    private static RPCXException late() {
        return new RPCXException(
                RPCXException.Code.DEADLINE_EXCEEDED,
                "the time was over before the handler started",
                RPCXException.Executed.NOT_EXECUTED);
    }

    private static RPCXException unread(Throwable t) {
        return t instanceof RPCXException refused ? refused : unreadable(t);
    }

    /** From here on a cancel interrupts this thread. @return false if it came already */
    private synchronized boolean enter() {
        if (context().isCancelled()) {
            return false;
        }
        runner = Thread.currentThread();
        entered = true;
        CallContext.set(context);
        return true;
    }

    /** Before the end is told: afterwards this object may serve the next call, and a cancel must not meet a thread that has gone on. */
    private synchronized void exit() {
        runner = null;
        CallContext.set(null);
        // the interrupt was this call's, a cancel's or its own: neither its reply nor the thread's next task must meet
        // it
        Thread.interrupted();
    }

    private static RPCXException gone() {
        return new RPCXException(
                RPCXException.Code.CANCELLED, "the caller is gone", RPCXException.Executed.NOT_EXECUTED);
    }

    /** Whether what was not read now may be read another time. */
    static boolean isOfMemory(Throwable e) {
        return e instanceof CodecException refused && refused.code() == CodecException.Code.NO_MEMORY;
    }

    static RPCXException unreadable(Throwable e) {
        return new RPCXException(
                isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                "the request cannot be read: " + e.getMessage(),
                RPCXException.Executed.NOT_EXECUTED);
    }

    private RPCXException failedHere(Throwable thrown) {
        return failed(thrown, method(), context());
    }

    /**
     * As {@link #failed(Throwable)}, and true about the handler: only an interceptor that stood before it can say that it did not run. For
     * the calls of both wires.
     */
    static RPCXException failed(Throwable thrown, ServerMethod method, CallContext context) {
        return failed(thrown, method.chain() == null || context.isHandlerEntered());
    }

    /** What the caller sees of what a handler threw: its code and message, never its class. */
    static RPCXException failed(Throwable thrown) {
        return failed(thrown, true);
    }

    private static RPCXException failed(Throwable thrown, boolean hasRun) {
        try {
            return asTold(thrown, hasRun);
        } catch (Throwable worse) {
            // the exception's own methods fail: its caller has an answer all the same
            return new RPCXException(
                    RPCXException.Code.HANDLER_FAILED, "the handler failed", RPCXException.Executed.EXECUTED);
        }
    }

    private static RPCXException asTold(Throwable thrown, boolean hasRun) {
        Throwable t = thrown;
        while (t instanceof CompletionException && t.getCause() != null) {
            t = t.getCause();
        }
        if (t instanceof RPCXException e) {
            String text = String.valueOf(e.getMessage());
            return hasRun || e.executed() != RPCXException.Executed.NOT_EXECUTED
                    ? new RPCXException(e.code(), text, RPCXException.Executed.EXECUTED)
                    : RPCXException.refused(e.code(), text);
        }
        String message = t.getMessage();
        return new RPCXException(
                RPCXException.Code.HANDLER_FAILED,
                message == null ? "the handler failed" : message,
                RPCXException.Executed.EXECUTED);
    }

    /** The handler has ended: it is no longer counted. Once for each that was. */
    void leave() {
        leave(false);
    }

    private void leave(boolean isDone) {
        AdmissionLimit counted = admitted;
        if (counted != null) {
            admitted = null;
            if (entered) {
                counted.leave(beganNanos, deadlineNanos, connection.nanoTime(), isDone);
            } else {
                counted.leave();
            }
        }
    }

    /** Encodes how the call ended, and sends it. From any thread, once. */
    void finish(@Nullable Object result, @Nullable RPCXException error) {
        leave(error == null);
        objectBytes.release();
        clearBody();
        if (error == null) {
            encode(result);
        } else {
            encode(error);
        }
        boolean inLoop = connection.inLoop();
        if (!inLoop && body.readableBytes() > SMALL_BYTES) {
            if (!replyBytes.add(body.readableBytes())) {
                refuseReply();
            }
            connection.replyHeld();
        }
        if (inLoop) {
            connection.sendNow(this);
        } else if (!connection.replyHere(this)) {
            connection.send(this);
        }
    }

    @SuppressWarnings("NullAway") // the codec decides where null can be
    private void encode(@Nullable Object result) {
        head = Wire.REPLY;
        try {
            method().result().write(result, body);
        } catch (CodecException e) {
            RPCXException.Code code = e.code() == CodecException.Code.TOO_LARGE
                    ? RPCXException.Code.TOO_LARGE
                    : RPCXException.Code.HANDLER_FAILED;
            encode(new RPCXException(code, "the result cannot be sent: " + e.getMessage()));
            return;
        } catch (Throwable e) {
            encode(new RPCXException(RPCXException.Code.HANDLER_FAILED, "the result cannot be sent: " + e));
            return;
        }
        if (body.readableBytes() > connection.maxBytesTaken()) {
            encode(new RPCXException(
                    RPCXException.Code.TOO_LARGE,
                    "a result of " + body.readableBytes() + " bytes (expected: at most " + connection.maxBytesTaken()
                            + ")"));
        }
    }

    private void encode(RPCXException error) {
        clearBody();
        head = Wire.ERROR;
        WireError.write(body, error);
    }

    /** On the event loop: nobody waits for the result any more. @return false if the handler has not begun, and will not */
    boolean cancel() {
        List<Runnable> told;
        Awaited result;
        boolean hasEntered;
        synchronized (this) {
            told = context().cancel();
            if (runner != null) {
                runner.interrupt();
            }
            result = awaited;
            hasEntered = entered;
        }
        if (result != null) {
            told = new ArrayList<>(told);
            told.add(result::cancel);
        }
        if (!told.isEmpty()) {
            connection.tell(method().place(), told);
        }
        return hasEntered;
    }

    /** On the event loop, while no handler is under way. */
    boolean hasBegun() {
        return entered;
    }

    /** Only one final frame may leave: the reply, or the event loop's word that the call was cancelled. */
    boolean end() {
        return !ended && ENDED.compareAndSet(this, false, true);
    }

    /** Whether nothing of this call has to be given back as soon as its reply has left: no bytes that are counted, no stream, no large buffer. */
    boolean isSmall() {
        return requestBytes.held() == 0
                && receiver == null
                && sender == null
                && !notice
                && body.capacity() <= SMALL_BYTES;
    }

    @Override
    boolean leavesHere() {
        if (!end()) {
            return false;
        }
        connection.leavesHere(this);
        return true;
    }

    @Override
    boolean leaving() {
        connection.handled(this);
        if (abandoned) {
            connection.recycle(this);
            return false;
        }
        return connection.mayLeave(this);
    }

    /** The reply is too much to hold for a caller that has not taken those before it. */
    void refuseReply() {
        shrinkBody();
        encode(new RPCXException(
                RPCXException.Code.OVERLOADED,
                "the reply could not be kept: too many bytes of replies wait to be read",
                RPCXException.Executed.EXECUTED));
    }

    @Override
    void left() {
        // a write that fails ends the connection within itself, and that has recycled the call
        if (!connection.isClosed()) {
            connection.replied(this);
        }
    }

    @Override
    void lost() {
        // a reply that had begun to leave was recycled when the connection ended
        if (handling) {
            handling = false;
            connection.recycle(this);
        }
    }
}
