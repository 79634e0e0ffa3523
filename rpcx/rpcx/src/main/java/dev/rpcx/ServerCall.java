package dev.rpcx;

import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.codec.Memory;
import dev.rpcx.codec.Words;
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
final class ServerCall extends Outbound
        implements PoolShares.Task, VirtualWorkers.Timed, Memory, Awaited.Call, CallThreads.Call {
    private final ServerConnection connection;
    final OnLoop onLoop = new OnLoop();

    private static final VarHandle ENDED;

    static {
        try {
            ENDED = MethodHandles.lookup().findVarHandle(ServerCall.class, "ended", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    // these are set on the event loop before the handler starts
    private @Nullable ServerMethod method;
    private Metadata metadata = Metadata.EMPTY;
    private long beganNanos;
    private long deadlineNanos;

    private @Nullable HandledContext context;
    private @Nullable Thread runner;

    /** Takes the result of a handler that has returned before it had one. It is written under this object's lock. */
    private volatile @Nullable Awaited awaited;

    /**
     * Says whether the handler has begun: a call whose time was over before that says nothing about how long handlers
     * take.
     */
    private boolean entered;

    /** What was given to a thread to run this call: it may do something else first. Event loop only. */
    PoolShares.@Nullable Task handed;

    boolean notice;

    /**
     * Says that the call goes back to the event loop, to wait until what goes to its caller has been read. It is set where
     * the handler would have run.
     */
    private boolean asksToWait;

    /** Says that the handler was begun after the call had waited, while its caller still had much to read. */
    boolean resumed;

    /** What the handler's arguments were read into takes so much beside what is charged. */
    private int uncharged;

    /** The request's metadata take so many bytes of memory. */
    int metadataCost;

    /**
     * The id of the call that its handler's thread could not end. A thread whose stack is at its end stores it, and then
     * that the connection has such a call: see {@link LostCalls}.
     */
    private int orphan;

    /** Says that a future which was given up keeps this call's place. */
    boolean isPlaceLeft;

    /** What the call is charged for; null for as long as no call with this object has been charged for anything. */
    private @Nullable CallCharges charges;

    /**
     * The limit counts the handler; it is null where the handler is not counted. It is set before the handler starts
     * and cleared by whoever ends it, under this object's lock where the handler has not begun, and by the last of its
     * threads where {@link CallThreads} runs some.
     */
    AdmissionLimit.@Nullable Group admitted;

    /** The two take the items that come with the call, and send those that go back. */
    @Nullable
    StreamReceiver receiver;

    @Nullable
    StreamSender sender;

    /** The flag is set by who sends the final frame, where a handler's thread may be first to do it. */
    private volatile boolean ended;

    ServerCall(ServerConnection connection) {
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
            context.goesOnBy(connection.callThreads.stepsOf(this));
        }
        onLoop.begin();
        handed = null;
        waits = false;
        begun = false;
        // seen by the handler's thread, which is told of the call behind this
        ENDED.setRelease(this, false);
        entered = false;
        asksToWait = false;
        receiver = null;
        sender = null;
        if (orphan != 0) {
            orphan = 0;
        }
        clearBody();
    }

    /**
     * The last part of the request is there. How long its caller took to send it says nothing about how long handlers
     * take, so what counts for admission begins here.
     */
    void isWhole(long now) {
        beganNanos = now;
    }

    /**
     * The call is over: a place without a call refers to nothing that its caller sent or its handler made. On the event
     * loop.
     */
    void forget() {
        metadata = Metadata.EMPTY;
        HandledContext its = context;
        if (its != null) {
            its.goesNoFurther();
            context = null;
        }
        sender = null;
        receiver = null;
        if (awaited != null) {
            synchronized (this) {
                awaited = null;
            }
        }
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    /** What is charged for this call, to be added to. */
    CallCharges charges() {
        CallCharges made = charges;
        if (made == null) {
            made = charges = new CallCharges(connection.account);
        }
        return made;
    }

    /** The call is over. Its reply has left, its handler has ended. */
    void releaseCharges() {
        CallCharges charged = charges;
        if (charged != null) {
            charged.request.release();
            charged.objects.release();
            charged.reply.release();
        }
    }

    /**
     * The reply has left or will not, and threads run on for the call that need neither its buffer nor its reply. They
     * have the metadata, which count as the request's again: the client has read all that there is to read.
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
            // not even for the small buffer: this one goes with the call, and so does what it is charged for
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
     * Bytes that the reply has to be charged for: its own, or all of its buffer and of the request's metadata that is
     * not charged as a kept one or as that of the request. The metadata stay for as long as the call does.
     */
    long replyBytes() {
        CallCharges own = charges;
        long charged = own == null ? 0 : own.kept.held() + own.request.held();
        return Math.max(body.readableBytes(), HeapArray.taken(body) + metadataCost - charged);
    }

    /**
     * The place is kept for the next call, and its buffer with it where there is room. It stays charged while that call
     * uses it.
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
     * The place is given up, and its buffer with it: whoever has this object still, such as a publisher that the
     * handler has kept, holds none by it that is not charged.
     */
    void releasePlace() {
        releaseKept();
        if (body.capacity() > FIRST_BYTES) {
            try {
                body.clear().capacity(0);
            } catch (OutOfMemoryError none) {
                // even an array without bytes takes some; the place is given back all the same
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
        return called.admission() == null || called.brings()
                ? Uncharged.IDLE_OBJECT_BYTES
                : connection.uncharged.objectBytes();
    }

    @Override
    public void isRead(long spare) {
        uncharged = (int) Math.max(0, unasked() - spare);
    }

    /**
     * The call waits, and is not counted among those that run: what it holds is charged.
     *
     * @return false if there is no room for that
     */
    boolean chargeWaiting() {
        Charge request = charges().request;
        return request.set(Math.max(request.held(), HeapArray.taken(body) + metadataCost));
    }

    /**
     * The request has been read, and its call goes on for as long as a stream does: a buffer that has grown is not kept
     * for that, and not charged. Metadata is, where it was.
     */
    void giveUpBody() {
        if (body.capacity() > FIRST_BYTES) {
            shrinkBody();
            releaseKept();
        }
        CallCharges charged = charges;
        if (charged != null) {
            long metadata = metadataCost > Uncharged.IDLE_METADATA_BYTES ? metadataCost : 0;
            charged.request.set(Math.min(charged.request.held(), metadata));
        }
    }

    /**
     * The handler has ended, and its reply does not leave at once: nothing is charged as a request any more. What is
     * kept of that for as long as the call, such as metadata, counts with the reply. On the event loop.
     *
     * @param waits the client does not read: a buffer that is mostly empty is not kept for that
     */
    void giveUpRequest(boolean waits) {
        if (waits && body.capacity() > SMALL_BYTES && body.readableBytes() <= body.capacity() / 2) {
            try {
                body.capacity(Math.max(FIRST_BYTES, body.readableBytes()));
            } catch (OutOfMemoryError none) {
                // not even for a small reply: the buffer is charged with that as it is
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
            // the last of them may have ended since it was looked at
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
        // a thread that reads its own name here has written it, and no other thread reads that of this one
        return runner == Thread.currentThread();
    }

    @Override
    public void threadsEnded(HandledContext of) {
        if (context != of || hasThreads()) {
            // this object serves another call, or other threads have begun
            return;
        }
        if (onLoop.isOverButThreads) {
            connection.recycle(this);
        } else if (waits) {
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

    /** The call is over but for its reply. @return false if threads run for it: {@link #threadsEnded} comes then */
    boolean endUnlessThreads() {
        HandledContext its = context;
        return its == null || its.endUnlessThreads();
    }

    /** Runs on the handler's thread. */
    @Override
    public void run() {
        run(connection.nanoTime());
    }

    @Override
    public void run(long nowNanos) {
        int own = id;
        try {
            if (connection.isCongested(method()) && mayWait()) {
                leave();
                asksToWait = true;
                // the way of a reply: once the call is in the outbox, no failure of this thread can lose it
                connection.send(this);
            } else {
                handle(body, nowNanos);
            }
        } catch (Throwable t) {
            lose(own);
            throw t;
        }
    }

    @Override
    public void refused(Throwable noThread) {
        int own = id;
        try {
            connection.noThread(this);
        } catch (Throwable t) {
            lose(own);
            throw t;
        }
    }

    /** The thread that was about to end the call has failed: the event loop ends it, if it has not been sent. */
    void lose(int callId) {
        orphan = callId;
        connection.lost.isAny = true;
        try {
            connection.lost.tell();
        } catch (Throwable again) {
            // it is found at the next look
        }
    }

    /**
     * Says whether nobody will end this call. The event loop asks, after it has sent what was queued.
     */
    boolean isLost() {
        if (onLoop.isOverButThreads) {
            return !hasThreads();
        }
        if (!onLoop.handling) {
            return false;
        }
        Awaited result;
        synchronized (this) {
            result = awaited;
        }
        // a result that is awaited comes, or is given up
        return orphan == id && (result == null || !result.isOpen()) || result != null && result.isLost();
    }

    /** A call that takes a stream or has no reply is begun in any case, and so is one that was begun after a wait. */
    private boolean mayWait() {
        return !resumed && !notice && receiver == null;
    }

    /** Runs the handler with the request in this buffer, on the event loop. */
    void handleInLoop(ByteBuf request) {
        int own = id;
        try {
            handle(request, connection.readNanos());
        } catch (Throwable t) {
            lose(own);
            throw t;
        } finally {
            // also that of types whose constructors and accessors run before the handler and behind it
            LoopThread.forgetInterrupt();
        }
    }

    /** Runs the handler with the request in this buffer, on the handler's thread. */
    private void handle(ByteBuf request, long nowNanos) {
        if (isCancelled()) {
            // the request is not even decoded
            finish(null, gone());
            return;
        }
        if (connection.isCutOff()) {
            finish(null, closing());
            return;
        }
        Object[] arguments;
        uncharged = 0;
        try {
            if (deadlineNanos - nowNanos <= 0) {
                throw late();
            }
            arguments = method().parameters().read(request, this);
            StreamReceiver items = receiver;
            if (items != null) {
                giveUpBody();
                arguments = new Object[] {items};
            }
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
        Throwable thrown = null;
        try {
            result = called.invoke(arguments, metadata, context());
        } catch (Throwable t) {
            thrown = t;
        } finally {
            exit();
        }
        if (thrown != null) {
            finish(null, failedHere(thrown));
            return;
        }
        if (called.brings()) {
            // threads may deliver what comes already: from here on the stream has the call's place alone
            leaveNow(true);
            connection.stream(this, result);
        } else if (result instanceof CompletionStage<?> stage) {
            await(stage);
        } else {
            finish(result, null);
        }
    }

    /** The result comes later, or never. Afterwards this object may serve another call. */
    private void await(CompletionStage<?> stage) {
        Awaited result = new Awaited(this, stage, connection.lost);
        HandledContext its;
        boolean isGone;
        synchronized (this) {
            // once the result is known to be awaited, the call may be given up and its object serve another one
            its = context();
            awaited = result;
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
                // also where another stage brought this one: that does not say that the call is lost
                orphan = id;
                throw t;
            }
            // whoever has the result ends the call
            ThreadTools.report(t);
        }
    }

    @Override
    public void brought(@Nullable Object value, @Nullable Throwable thrown) {
        if (thrown == null && value instanceof CompletionStage<?> stage && method().chain() != null) {
            // of an interceptor that has gone on behind a stage, whose own result it gives
            await(method().brought(stage, context()));
            return;
        }
        finish(value, thrown == null ? null : failedHere(thrown));
    }

    /** Says whether the handler has returned, so that it has no thread, and its result has not come. */
    boolean isAwaiting() {
        Awaited result;
        synchronized (this) {
            result = awaited;
        }
        return result != null && result.isOpen();
    }

    /**
     * Nobody waits for the result any more, and it has not come: the handler counts as running no longer. What it was
     * given stays charged for as long as its future may hold that. On the event loop.
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
        onLoop.handling = false;
        List<OwnStage> seen = List.of();
        try {
            AdmissionLimit.Group counted = admitted;
            if (counted != null && leavesUnlessThreads(false)) {
                admitted = null;
                counted.leave();
            }
            seen = context().giveUp();
        } catch (Throwable noMemory) {
            // nobody can take the call from its stage a second time: it is over all the same
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

    /**
     * The call has ended. Where that was its interceptors' doing, and the handler's stage has not ended, what that may
     * hold stays charged, and they wait for it no longer.
     */
    void leaveStages() {
        context().barHandler();
        List<OwnStage> seen = context().giveUp();
        if (seen.isEmpty()) {
            return;
        }
        CallCharges own = charges;
        long charged = own == null ? 0 : own.objects.handOver();
        isPlaceLeft = Awaited.leaveOwn(connection.account, seen, charged, uncharged, metadataCost);
        connection.callThreads.tell(this, List.copyOf(seen));
    }

    boolean isCancelled() {
        return context().isCancelled();
    }

    private static RPCXException late() {
        return RPCXException.refused(
                RPCXException.Code.DEADLINE_EXCEEDED, "the time was over before the handler started");
    }

    private static RPCXException unread(Throwable t) {
        return t instanceof RPCXException refused ? refused : unreadable(t);
    }

    /** Begins the part in which a cancel interrupts this thread. @return false if it came already */
    private synchronized boolean enter() {
        if (context().isCancelled()) {
            return false;
        }
        runner = Thread.currentThread();
        entered = true;
        CurrentCall.set(context);
        return true;
    }

    /**
     * Ends the part in which a cancel interrupts this thread. This comes before the end is told: afterwards this object
     * may serve the next call, and a cancel must not meet a thread that has gone on.
     */
    private synchronized void exit() {
        runner = null;
        CurrentCall.set(null);
        // the interrupt was this call's, a cancel's or its own: neither its reply nor the thread's next task must meet
        // it
        Thread.interrupted();
    }

    private static RPCXException gone() {
        return RPCXException.refused(RPCXException.Code.CANCELLED, "the caller is gone");
    }

    /** What a caller is told whose handler comes too late to begin. The calls of both wires use it. */
    static RPCXException closing() {
        return RPCXException.refused(RPCXException.Code.UNAVAILABLE, "the server is closing");
    }

    static RPCXException unreadable(Throwable e) {
        return RPCXException.refused(
                ThrowableText.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                "the request cannot be read: " + ThrowableText.wireWords(e));
    }

    /** Makes what the caller sees of this call's failure. Before the call is finished. */
    RPCXException failedHere(Throwable thrown) {
        return failed(thrown, method(), context());
    }

    /**
     * Does what {@link #failed(Throwable)} does, and is true about the handler: only an interceptor that stood before
     * it can say that it did not run, and from then on it does not. The calls of both wires use it.
     */
    static RPCXException failed(Throwable thrown, ServerMethod method, HandledContext context) {
        return failed(thrown, hasRun(method, context));
    }

    /**
     * Makes what the caller sees of a result that does not leave: it may be an interceptor's own. Otherwise as above.
     */
    static RPCXException unsendable(RPCXException.Code code, String text, ServerMethod method, HandledContext context) {
        return ended(code, text, hasRun(method, context));
    }

    private static boolean hasRun(ServerMethod method, HandledContext context) {
        return method.chain() == null || context.barHandler();
    }

    /** Makes what the caller sees of what a handler threw: its code and message, never its class. See {@link Words}. */
    static RPCXException failed(Throwable thrown) {
        return failed(thrown, true);
    }

    private static RPCXException failed(Throwable thrown, boolean hasRun) {
        try {
            return asTold(thrown, hasRun);
        } catch (Throwable worse) {
            // the exception's own methods fail: its caller has an answer all the same
            return ended(RPCXException.Code.HANDLER_FAILED, "the handler failed", hasRun);
        }
    }

    private static RPCXException ended(RPCXException.Code code, String text, boolean hasRun) {
        return hasRun ? new RPCXException(code, text) : RPCXException.refused(code, text);
    }

    private static RPCXException asTold(Throwable thrown, boolean hasRun) {
        Throwable t = RPCXException.cause(thrown);
        if (t instanceof RPCXException e) {
            return ended(e.code(), e.getMessage(), hasRun || e.executed() != RPCXException.Executed.NOT_EXECUTED);
        }
        String message = Words.of(t);
        return ended(RPCXException.Code.HANDLER_FAILED, message == null ? "the handler failed" : message, hasRun);
    }

    /** Counts the handler no longer, as it has ended. A second time does nothing. */
    void leave() {
        leave(false);
    }

    private void leave(boolean isDone) {
        if (!entered) {
            leaveUnbegun();
        } else if (leavesUnlessThreads(isDone)) {
            leaveNow(isDone);
        }
    }

    /**
     * Says whether no thread runs for the call that its interceptors may have begun its handler on. Otherwise the last
     * of those comes to {@link #leaveNow}.
     */
    private boolean leavesUnlessThreads(boolean isDone) {
        return method().chain() == null || context().leavesUnlessThreads(isDone);
    }

    @Override
    public void leaveNow(boolean isDone) {
        AdmissionLimit.Group counted = admitted;
        if (counted != null) {
            long now = connection.nanoTime();
            admitted = null;
            counted.leave(beganNanos, deadlineNanos, now, isDone);
        }
    }

    /** The handler has not begun, and will not. Whoever cancels the call and the thread that comes to it may both say so. */
    private void leaveUnbegun() {
        // before the handler is taken: where this fails, whoever ends the call takes it
        long now = connection.nanoTime();
        AdmissionLimit.Group counted;
        synchronized (this) {
            counted = admitted;
            admitted = null;
        }
        if (counted == null) {
            return;
        }
        PoolShares.Task waits = handed == null ? this : handed;
        if (connection.threads.waitsForItsOwn(method().place(), waits)) {
            // what one connection has too much of says nothing of what others may have
            counted.leave();
        } else {
            counted.leaveUnbegun(beganNanos, deadlineNanos, now);
        }
    }

    /** Encodes how the call ended, and sends it. Any thread may call it, once. */
    void finish(@Nullable Object result, @Nullable RPCXException error) {
        // afterwards this object may serve another call
        ServerMethod failedNotice = error != null && notice ? method() : null;
        leave(error == null);
        if (method().chain() == null) {
            releaseObjects();
        } else {
            // behind this look no thread begins to run the handler, and those that run may use what the request was
            // read into
            leaveStages();
            if (!hasThreads()) {
                releaseObjects();
            }
        }
        clearBody();
        if (error == null) {
            encode(result);
        } else {
            encode(error);
        }
        boolean inLoop = connection.inLoop();
        if (!inLoop && body.capacity() > connection.uncharged.bodyBytes()) {
            holdReply();
        }
        if (inLoop) {
            connection.sendNow(this);
        } else if (!connection.replyHere(this)) {
            connection.send(this);
        }
        if (failedNotice != null && error != null) {
            connection.noticeFailed(failedNotice, error);
        }
    }

    /** Charges a reply that is not small, on the thread of its handler. */
    private void holdReply() {
        long bytes = replyBytes();
        if (bytes > connection.uncharged.bodyBytes()) {
            if (!charges().reply.add(bytes)) {
                refuseReply();
            }
            connection.replyHeld();
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
            encode(unsendable(code, ServerMethod.unsendable(e)));
            return;
        } catch (Throwable e) {
            encode(unsendable(
                    RPCXException.Code.HANDLER_FAILED, "the result cannot be sent: " + ThrowableText.wireWords(e)));
            return;
        }
        if (body.readableBytes() > connection.maxBytesTaken()) {
            encode(unsendable(
                    RPCXException.Code.TOO_LARGE,
                    "a result of " + body.readableBytes() + " bytes (expected: at most " + connection.maxBytesTaken()
                            + ")"));
        }
    }

    /** Also of an error that says that the handler has not begun. */
    private RPCXException unsendable(RPCXException.Code code, String text) {
        return entered ? unsendable(code, text, method(), context()) : RPCXException.refused(code, text);
    }

    private void encode(RPCXException error) {
        clearBody();
        head = Wire.ERROR;
        WireError.write(body, error);
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
        boolean hasEntered;
        synchronized (this) {
            result = awaited;
            hasEntered = entered;
            try {
                told = context().cancel();
            } finally {
                // also where there is no memory to tell anybody else
                ThreadTools.interrupt(runner);
            }
        }
        if (!hasEntered) {
            leaveUnbegun();
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
            connection.callThreads.tell(this, told);
        }
        return hasEntered;
    }

    /** Says whether the handler has begun. The event loop asks, while no handler is under way. */
    boolean hasBegun() {
        return entered;
    }

    /**
     * Says whether it is certain that the method itself was called, and not only what stands before it. The event loop
     * asks, while the call is under way.
     */
    boolean isExecuted() {
        boolean hasEntered;
        synchronized (this) {
            hasEntered = entered;
        }
        return hasEntered && (method().chain() == null || context().isHandlerEntered());
    }

    /** Only one final frame may leave: the reply, or the event loop's word that the call was cancelled. */
    boolean end() {
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
    public boolean leavesHere() {
        if (!end()) {
            return false;
        }
        connection.leavesHere(this);
        return true;
    }

    @Override
    boolean leaving() {
        connection.handled(this);
        if (onLoop.abandoned) {
            connection.recycle(this);
            return false;
        }
        if (asksToWait) {
            asksToWait = false;
            // its thread may have failed behind the queue: it is there, and is not lost
            orphan = 0;
            connection.postpone(this);
            return false;
        }
        connection.holdIfItWaits(this);
        return true;
    }

    /** The reply is too much to hold for a caller that has not taken those before it. */
    void refuseReply() {
        shrinkBody();
        encode(unsendable(
                RPCXException.Code.OVERLOADED,
                "the reply could not be kept: too many bytes of replies wait to be read"));
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
        if (onLoop.handling) {
            onLoop.handling = false;
            connection.recycle(this);
        }
    }
}
