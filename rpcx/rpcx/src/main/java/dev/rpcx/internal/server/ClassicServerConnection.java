package dev.rpcx.internal.server;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.RunOn;
import dev.rpcx.internal.MemoryReserve;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.call.ClassicParameter;
import dev.rpcx.internal.io.HalfClose;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.io.SocketQueue;
import dev.rpcx.internal.io.TlsEngine;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.ClassicConnection;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.ConnectionErrors;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.util.concurrent.ScheduledFuture;
import java.security.Principal;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Connection of a server on the classic wire, the protocol of the paper on which RPCX is based. A message is an
 * {@code RPCXRequest} or an {@code RPCXReply} with its length in front. There is no handshake. A client cannot cancel a
 * call or choose a deadline; the server gives every call the same maximum time.
 *
 * <p>Only the event loop uses the state of this object. After the event loop has ended, other threads may use the state
 * while they hold this object's lock, for example a thread that ends a call, or the thread that stops the server.
 */
public final class ClassicServerConnection extends ClassicConnection implements ServedConnection {
    /**
     * Maximum time of a call, in nanoseconds. A client cannot change this time. When the time is over, the client gets
     * an error as the reply, and the handler is interrupted.
     */
    public static final long MAX_CALL_NANOS = TimeUnit.SECONDS.toNanos(60);

    /** The connection is closed after it has had no call for this multiple of the server's keepAlive time. */
    private static final int IDLE_KEEPALIVES = 5;

    private final ServerCore server;
    final ConnectionThreads threads;
    private final Account account;

    /**
     * Maximum size, in bytes, of a request or a reply that is not charged, that is, does not count against the memory
     * limits of the server.
     */
    private final int unchargedBytes;

    /**
     * If more than this number of calls have held a place at one time, the tables of calls are replaced when no call is
     * left.
     */
    private static final int MAX_PLACES_KEPT = 64;

    /**
     * Counts the calls of the connection against the server's limit on calls, as one place for each call. A call keeps
     * its place until its handler has ended, or until the server stops waiting for the handler's future. The place is
     * kept even if the client no longer waits for the call.
     */
    private final Charge places;

    /**
     * Calls that the client waits for, by id. The calls are in the order of their deadlines, since all have the same
     * maximum time.
     */
    private Map<Long, ClassicServerCall> calls = new LinkedHashMap<>();

    /**
     * Charge for the bytes that are held for the frame that is arriving. Nothing is charged while these are at most
     * {@link #unchargedBytes} bytes. When the frame is complete, its call takes over this charge.
     */
    private Charge arriving;

    /** Number of bytes that are held for the frame that is arriving. */
    private long arrivingBytes;

    private final RunningHandlers running;

    /**
     * Maximum time of a call in nanoseconds: the smaller of {@link #MAX_CALL_NANOS} and the server's maximum time of a
     * call.
     */
    private final long callNanos;

    /**
     * Calls that the client no longer waits for, and whose handlers have returned futures. The server waits for each
     * future up to {@link PendingResult#MAX_GRACE_NANOS}, 1 s. The calls are in the order in which these waits end. If
     * the result of a call comes before its wait would end, the call usually stays in this queue until that time.
     */
    private ArrayDeque<ClassicServerCall> lingering = new ArrayDeque<>();

    /** Calls that the client no longer waits for, and that keep their places until their threads have finished. */
    private Set<ClassicServerCall> dropped = new HashSet<>();

    /**
     * Largest number of places held at one time since the tables of calls were made; each call that has not ended holds
     * a place.
     */
    long peakPlaces;

    /**
     * Flag that says that calls may be lost, because threads have failed before they could end these calls. Any thread
     * can set the flag, and the event loop then looks for lost calls and ends them.
     */
    final LostCalls lost = new LostCalls(() -> inLoopOrHere(this::endLost));

    final CallThreads callThreads;

    /**
     * Timer for the first call in {@link #lingering}; null if the timer is not set. After the connection's end, the
     * timer is also used to check for lost calls.
     */
    private @Nullable ScheduledFuture<?> lingerTimer;

    /** Whether the connection has ended. Handlers may still run. */
    private boolean isOver;

    /** Charge for {@link #lingerTimer}. */
    private final Charge lingerTimers;

    /**
     * Timer for the earliest deadline of a call; null if the timer is not set. The timer stays set if that call ends
     * before its deadline.
     */
    private @Nullable ScheduledFuture<?> dueTimer;

    private final Charge dueTimers;

    private boolean draining;

    /**
     * Result of {@link #reads} when the server last resumed reading; -1 if it has never resumed reading. As long as
     * {@link #reads} returns the same number, no bytes have arrived since then, and the server does not pause again.
     */
    private int readsBeforeResume = -1;

    /** Number of bytes that have been sent since reading was paused. */
    private int sentInPause;

    public ClassicServerConnection(Channel channel, ServerCore server, Account account) {
        super(
                channel,
                false,
                account,
                server.settings().maxMessageBytes(),
                Math.max(server.settings().maxMessageBytes(), Wire.MAX_MESSAGE_BYTES),
                server.keepAliveNanos(),
                IDLE_KEEPALIVES * server.keepAliveNanos());
        this.server = server;
        this.threads = new ConnectionThreads(server.threads(), loop(), account);
        this.callThreads = new CallThreads(loop(), this::inLoopOrHere, threads, lost);
        this.account = account;
        this.unchargedBytes = account.uncharged().bodyBytes();
        this.places = account.charge(Resource.CALLS);
        this.running = new RunningHandlers(account, this::nanoTime);
        this.callNanos = Math.min(MAX_CALL_NANOS, server.maxCallNanos());
        this.arriving = account.charge(Resource.REQUEST_BYTES);
        this.lingerTimers = account.charge(Resource.TIMERS);
        this.dueTimers = account.charge(Resource.TIMERS);
        account.setCallCounter(places::held);
    }

    @Override
    public void onAdded() {
        server.register(channel, this);
        if (!server.classic()) {
            fail(RPCXException.refused(
                    RPCXException.Code.UNAVAILABLE,
                    "this server does not serve the classic wire"
                            + " (expected: the native one, or Server.Builder.classic)"));
        }
    }

    @Override
    public boolean isBusy() {
        return !calls.isEmpty();
    }

    /** Returns the calls that the client waits for. For tests. */
    public List<ClassicServerCall> callsUnderWay() {
        return List.copyOf(calls.values());
    }

    /**
     * Returns the number of calls in {@link #dropped} and {@link #lingering}. The client no longer waits for these
     * calls. Some of them may already have ended at the server. For tests.
     */
    public int abandonedCalls() {
        return dropped.size() + lingering.size();
    }

    // ---- requests

    @Override
    public boolean reserve(long bytes) {
        if (arrivingBytes + bytes > unchargedBytes && !arriving.set(arrivingBytes + bytes)) {
            return false;
        }
        arrivingBytes += bytes;
        return true;
    }

    /**
     * Returns {@link #arriving}, the charge for the frame that has arrived or is skipped, and creates a new charge for
     * the next frame.
     */
    private Charge arrived() {
        Charge charge = arriving;
        arriving = account.charge(Resource.REQUEST_BYTES);
        arrivingBytes = 0;
        return charge;
    }

    @Override
    public void onSkip() {
        arrived().release();
    }

    @Override
    public void onSkipped(byte[] begin, int bytes, int length) {
        Long id = ClassicWire.id(Unpooled.wrappedBuffer(begin, 0, bytes));
        if (id == null || id == 0) {
            throw new WireFault("a request of " + length
                    + " bytes whose id cannot be read (expected: the id as first field, not 0)");
        }
        refuseDuplicate(id);
        int max = server.settings().maxMessageBytes();
        if (length > max) {
            refuse(id, RPCXException.Code.TOO_LARGE, ConnectionErrors.largeRequest(length, max));
        } else {
            refuse(id, RPCXException.Code.OVERLOADED, "too many bytes of requests are under way");
        }
    }

    @Override
    public void frame(byte[] frame, int bytes) {
        Charge charge = arrived();
        boolean taken = false;
        try {
            taken = !isEnding() && take(ClassicWire.readRequest(Unpooled.wrappedBuffer(frame, 0, bytes)), charge);
        } finally {
            if (!taken) {
                charge.release();
            }
        }
    }

    /**
     * Ends the connection if a call with this id is under way, since the client could not distinguish the two replies.
     *
     * @throws WireFault a call with this id is under way
     */
    private void refuseDuplicate(long id) {
        if (calls.containsKey(id)) {
            throw new WireFault("request " + id + " twice under way");
        }
    }

    /**
     * Starts the call of a request, or refuses the request.
     *
     * @param charge charge for the frame of the request; a call that is started takes over the charge
     * @return false if the request has been refused
     */
    private boolean take(ClassicWire.Request request, Charge charge) {
        long id = request.id();
        if (id == 0) {
            throw new WireFault("a request without an id");
        }
        refuseDuplicate(id);
        ServerMethod method = server.method(MethodDictionary.key(request.service(), request.method()));
        if (method == null) {
            refuse(id, RPCXException.Code.NOT_FOUND, ServerCallErrors.NOT_PUBLISHED);
            return false;
        }
        if (method.returnsStream() || method.items() != null) {
            refuse(id, RPCXException.Code.INVALID, "a stream needs the native wire");
            return false;
        }
        int values = request.values().size();
        int parameters = method.arguments().size();
        if (values != parameters) {
            refuse(id, RPCXException.Code.INVALID, values + " parameters (expected: " + parameters + ")");
            return false;
        }
        if (!ClassicParameter.have(method.arguments(), request.numbers())) {
            refuse(
                    id,
                    RPCXException.Code.INVALID,
                    "parameters of numbers " + request.numbers() + " (expected: "
                            + ClassicParameter.numbers(method.arguments()) + ")");
            return false;
        }
        if (draining) {
            refuse(id, ServerCallErrors.closing());
            return false;
        }
        if (places.held() >= server.settings().maxCalls()) {
            refuse(id, RPCXException.Code.OVERLOADED, "too many calls under way on this connection");
            return false;
        }
        // Unused places are reclaimed before this call takes a place. If reclaiming fails, no place is lost.
        if (account.isHalfTaken(Resource.CALLS)) {
            server.reclaimIdlePlaces(nanoTime());
        }
        if (!places.add(1)) {
            server.reclaimIdlePlaces(nanoTime());
            refuse(id, RPCXException.Code.OVERLOADED, "too many calls under way");
            return false;
        }
        ClassicServerCall call = null;
        AdmissionLimit.Group entered = null;
        boolean isTaken = false;
        try {
            AdmissionLimit.Group admission = admission(method);
            if (admission != null && !running.admit(method, admission)) {
                refuse(id, ServerCallErrors.notAdmitted());
                return false;
            }
            entered = admission;
            long now = nanoTime();
            call = new ClassicServerCall(this, account, method, entered, request, charge, now, now + callNanos);
            startDueTimer(callNanos);
            calls.put(call.id(), call);
            peakPlaces = Math.max(peakPlaces, places.held());
            isTaken = true;
        } finally {
            if (!isTaken) {
                // If the request has been refused, or there was no memory for the call, the call is null. A lack of
                // memory ends the connection, which releases what its calls hold.
                if (call != null) {
                    forget(call);
                }
                places.release(1);
                if (entered != null) {
                    running.handlerEnded(method);
                    entered.release();
                }
            }
        }
        start(method, call);
        return true;
    }

    private void start(ServerMethod method, ClassicServerCall call) {
        if (method.place() == RunOn.Place.EVENT_LOOP) {
            try {
                call.run();
            } finally {
                LoopThread.forgetInterrupt();
            }
            return;
        }
        try {
            threads.run(method.place(), call);
        } catch (RejectedExecutionException e) {
            call.refused(ConnectionErrors.SERVER_CLOSING);
        } catch (Throwable t) {
            call.refused(t);
        }
    }

    private void refuse(long id, RPCXException.Code code, String text) {
        refuse(id, RPCXException.refused(code, text));
    }

    private void refuse(long id, RPCXException why) {
        if (isEnding()) {
            return;
        }
        reply(id, ClassicWire.reply(id, null, why), null, why.executed());
    }

    /**
     * Releases what a call holds, if the call has ended and no thread runs for it any more. Otherwise does nothing.
     * Called on the event loop or, after the event loop's end, while holding this object's lock.
     */
    void settleIfThreadsEnded(ClassicServerCall call) {
        if (call.isOverButThreads && !call.context().hasThreads()) {
            settle(call);
        }
    }

    public HandledContext context(long deadlineNanos) {
        Principal peer = TlsEngine.peer(channel);
        return new HandledContext(deadlineNanos, Metadata.EMPTY, peer, loop().ticker());
    }

    /**
     * Logs what a handler or an interceptor has thrown, or why a result cannot be sent. Any thread may call this.
     *
     * @param what what has failed
     */
    void logFailure(ServerMethod method, Long id, String what, Throwable thrown) {
        server.failures().log(method, what, () -> "call " + id + " of " + channel.remoteAddress(), thrown);
    }

    // ---- replies

    /**
     * Sends the reply of a call that has ended. Called at most once for each call, on any thread. A large reply is
     * charged before it waits for the event loop, since waiting replies could otherwise fill the heap.
     */
    void ended(ClassicServerCall call, byte[] frame) {
        if (loop().inEventLoop()) {
            answer(call, frame);
            return;
        }
        boolean isKept = true;
        if (frame.length > unchargedBytes) {
            Charge charge = account.charge(Resource.REPLY_BYTES);
            isKept = charge.add(queuedBytes(frame.length));
            call.replyBytes = isKept ? charge : null;
        }
        byte[] kept = isKept ? frame : overloadedReply(call.id(), call.executed());
        inLoopOrHere(() -> answer(call, kept));
    }

    private void inLoopOrHere(Runnable task) {
        try {
            loop().execute(task);
        } catch (RejectedExecutionException ended) {
            synchronized (this) {
                task.run();
            }
        }
    }

    private void answer(ClassicServerCall call, byte[] frame) {
        if (call.isAnswered) {
            return;
        }
        Charge charge = call.replyBytes;
        call.isAnswered = true;
        // The call is removed from the table first. When settle() releases the last place, it replaces large tables by
        // small ones, but only if the table of calls is empty by then.
        boolean isAwaited = forget(call);
        settle(call);
        if (isAwaited && !isEnding()) {
            reply(call.id(), frame, charge, call.executed());
            closeIfDone();
        } else {
            release(charge);
        }
    }

    /**
     * Releases what an ended call still holds. If threads still run for the call, everything is released when the last
     * of these threads has ended.
     */
    private void settle(ClassicServerCall call) {
        call.isOverButThreads = !call.context().endUnlessThreads();
        if (call.isOverButThreads) {
            dropped.add(call);
            return;
        }
        dropped.remove(call);
        call.release();
        uncount(call);
        if (call.isPlaceKeptCharged) {
            places.handOver(1);
        } else {
            places.release(1);
        }
        if (places.held() == 0) {
            // No place is held, so all calls in "lingering" have ended.
            lingering.clear();
            cancelLingerTimer();
            forgetTables();
            if (isOver) {
                server.ended(channel);
            }
        }
    }

    /**
     * Returns whether a stop of the server has got so far that no handler starts any more. Can be called on any thread.
     */
    boolean isCutOff() {
        return server.isCutOff();
    }

    private static void release(@Nullable Charge charge) {
        if (charge != null) {
            charge.release();
        }
    }

    /**
     * Returns the group in which the {@link AdmissionLimit} of the method counts this connection's handlers; null if
     * the method has no limit.
     */
    private AdmissionLimit.@Nullable Group admission(ServerMethod method) {
        AdmissionLimit limit = method.admission();
        return limit == null ? null : limit.group(account.group());
    }

    private void uncount(ClassicServerCall call) {
        if (call.running) {
            call.running = false;
            running.handlerEnded(call.method());
        }
    }

    // ---- calls whose callers are gone

    /**
     * Cancels a call that the client no longer waits for.
     *
     * @return false if the call's method has not been executed, and will not be executed
     */
    private boolean abandon(ClassicServerCall call) {
        forget(call);
        boolean isCancelled = false;
        try {
            boolean hasBegun = call.cancel();
            isCancelled = true;
            if (!hasBegun) {
                // A thread may still take the call, but will not begin the handler.
                uncount(call);
            }
        } finally {
            // The call is not in the table calls any more. Unless it has ended, it must now get into lingering or
            // dropped, even if there was no memory to cancel it.
            trackAbandoned(call, isCancelled);
        }
        return call.mayHaveRun;
    }

    private void trackAbandoned(ClassicServerCall call, boolean isCancelled) {
        if (isCancelled && threads.withdraw(call.method().place(), call)) {
            // The call has been taken back from the threads, so no thread will end the call.
            call.isAnswered = true;
            settle(call);
        } else if (call.isAwaiting()) {
            linger(call);
        } else if (!call.isAnswered) {
            // The call could have ended while it was being cancelled. It has not, so it keeps its place until its
            // threads have finished.
            dropped.add(call);
        }
    }

    @Override
    public void cutOff() {
        inLoopOrHere(() -> {
            fail(ConnectionErrors.brokenOff(
                    RPCXException.Code.UNAVAILABLE, "the server is closing, and does not wait any longer"));
            endLost();
            for (ClassicServerCall call = lingering.poll(); call != null; call = lingering.poll()) {
                giveUp(call);
            }
            cancelLingerTimer();
        });
    }

    /** Ends each call whose thread has failed before it could end the call. */
    private void endLost() {
        if (lost.isAny) {
            lost.endLost(this::endAllLost);
        }
    }

    private boolean endAllLost() {
        List<ClassicServerCall> all = new ArrayList<>(calls.values());
        all.addAll(dropped);
        all.addAll(lingering);
        for (ClassicServerCall call : all) {
            if (call.isOverButThreads) {
                settleIfThreadsEnded(call);
            } else if (!call.isAnswered && call.isLost()) {
                call.endLost();
                // The reply for which this charge was made will not be sent.
                release(call.replyBytes);
                call.replyBytes = null;
                answer(call, ClassicWire.reply(call.id(), null, ServerCallErrors.threadFailed(call.executed())));
            }
        }
        return true;
    }

    /**
     * Limits the time for which the server waits for the future that the handler of a cancelled call has returned: see
     * {@link #linger}. Any thread may call this method.
     */
    void awaitsForNobody(ClassicServerCall call) {
        inLoopOrHere(() -> {
            try {
                if (call.isAwaiting()) {
                    dropped.remove(call);
                    linger(call);
                }
            } catch (Throwable t) {
                checkFailed(t);
            }
        });
    }

    /**
     * Limits the time for which a call waits for the future that its handler has returned. After
     * {@link PendingResult#MAX_GRACE_NANOS}, 1 s, this connection gives the call up. If the server is stopping, or if
     * no timer can be set because the event loop is shutting down, this connection gives the call up immediately.
     */
    private void linger(ClassicServerCall call) {
        if (call.isLingering) {
            // This method can be called twice for a call: when the call is cancelled, and when the handler's thread
            // finds that the call has been cancelled.
            return;
        }
        if (draining || loop().isShuttingDown()) {
            giveUp(call);
            return;
        }
        call.lingerUntilNanos = nanoTime() + PendingResult.MAX_GRACE_NANOS;
        if (lingering.isEmpty()) {
            // The timer may be set for a later check for lost calls. That check would be too late for this call.
            cancelLingerTimer();
        }
        call.isLingering = true;
        lingering.add(call);
        startLingerTimer();
    }

    private void startLingerTimer() {
        ClassicServerCall first = lingering.peek();
        boolean isNeeded = first != null || isOver && !(dropped.isEmpty() && calls.isEmpty());
        if (isNeeded && lingerTimer == null && !loop().isShuttingDown()) {
            long wait = first == null ? ServerConnection.LOST_CHECK_NANOS : first.lingerUntilNanos - nanoTime();
            lingerTimer = loop().schedule(this::checkLingering, wait, TimeUnit.NANOSECONDS);
            lingerTimers.add(1);
        }
    }

    private void checkLingering() {
        try {
            checkLingeringNow();
        } catch (Throwable t) {
            checkFailed(t);
        }
    }

    /**
     * Closes the connection after a check of its calls has failed, or the timer for a check could not be set. The
     * connection must not stay open, since there may be no timer for its next check. This method also sets a timer for
     * calls that outlast the connection.
     */
    private void checkFailed(Throwable thrown) {
        if (thrown instanceof OutOfMemoryError) {
            MemoryReserve.use();
        }
        try {
            SocketQueue.closeNow(channel);
            ThreadTools.report(thrown);
        } finally {
            startLingerTimer();
        }
    }

    private void checkLingeringNow() {
        cancelLingerTimer();
        if (isOver) {
            // Some calls may not have been cancelled at the connection's end, for lack of memory.
            cancelAll();
        }
        endLost();
        long now = nanoTime();
        for (ClassicServerCall call = lingering.peek();
                call != null && call.lingerUntilNanos - now <= 0;
                call = lingering.peek()) {
            lingering.remove();
            giveUp(call);
        }
        startLingerTimer();
    }

    private void cancelLingerTimer() {
        if (lingerTimer != null) {
            lingerTimer.cancel(false);
            lingerTimer = null;
            lingerTimers.release();
        }
    }

    private void giveUp(ClassicServerCall call) {
        call.isLingering = false;
        if (call.giveUp()) {
            settle(call);
        } else if (!call.isAnswered) {
            dropped.add(call);
        }
    }

    /**
     * Replaces the tables of calls if they have grown large and the client waits for no call. Called only when no call
     * holds a place, since this method also drops what {@link #lingering} and {@link #dropped} contain.
     */
    private void forgetTables() {
        if (peakPlaces > MAX_PLACES_KEPT && calls.isEmpty()) {
            calls = new LinkedHashMap<>();
            lingering = new ArrayDeque<>();
            dropped = new HashSet<>();
            peakPlaces = 0;
        }
    }

    /**
     * Removes a call from {@link #calls}, the table of calls that the client waits for.
     *
     * @return false if the call was not in the table
     */
    private boolean forget(ClassicServerCall call) {
        return calls.remove(call.id(), call);
    }

    /**
     * Sends a reply. If there is no room for a large reply, this method sends an error instead.
     *
     * @param charged charge for the reply; null if the reply has not been charged
     * @param executed what the reply says to the client about whether the call has been executed
     */
    private void reply(long id, byte[] frame, @Nullable Charge charged, RPCXException.Executed executed) {
        if (charged != null) {
            writePaid(frame, charged);
        } else if (frame.length <= unchargedBytes) {
            writeSmall(frame);
        } else {
            Charge charge = account.charge(Resource.REPLY_BYTES);
            if (charge.add(queuedBytes(frame.length))) {
                writePaid(frame, charge);
            } else {
                writeSmall(overloadedReply(id, executed));
            }
        }
    }

    private void writePaid(byte[] frame, Charge paid) {
        write(frame, released -> {
            // The charge for the reply becomes smaller while the reply is sent. The account gets the bytes back in
            // steps of 4 KiB (Charge.STEP_BYTES), and the rest when the last byte has been sent.
            paid.set(Math.max(0, paid.held() - released));
        });
    }

    private static byte[] overloadedReply(long id, RPCXException.Executed executed) {
        return ClassicWire.reply(id, null, ServerCallErrors.replyNotKept(executed));
    }

    @Override
    public long replyBytes() {
        return account.held(Resource.REPLY_BYTES);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        readUnlessFull();
    }

    @Override
    public void onReadComplete() {
        readUnlessFull();
    }

    /**
     * Pauses reading if too many bytes wait to be sent. The check is made after each read from the socket. A check
     * after a whole series of reads would be too late, since a series can take in as much as sixteen buffers of the
     * largest size.
     */
    @Override
    public void onRead() {
        if (!channel.isWritable()) {
            readUnlessFull();
        }
    }

    @Override
    public void onSent(int bytes) {
        if (!isReading()) {
            sentInPause += bytes;
            if (sentInPause >= MAX_BYTES_IN_PAUSE) {
                resume();
            }
        }
    }

    /**
     * Pauses reading while too many bytes of replies wait to be sent. The client has to read replies before it can send
     * more requests.
     *
     * <p>Between two pauses, something is always read. Otherwise a large request of a client that reads its replies
     * slowly would never arrive.
     */
    private void readUnlessFull() {
        if (isEnding() || channel.isWritable()) {
            resume();
        } else if (reads() != readsBeforeResume && isReading()) {
            sentInPause = 0;
            setReading(false);
        }
    }

    private void resume() {
        if (!isReading()) {
            readsBeforeResume = reads();
            setReading(true);
        }
    }

    @Override
    public void onCheck(long nowNanos) {
        endLost();
        closeIfDone();
    }

    /**
     * Sets the timer that ends calls at their deadlines. Does nothing if the timer is set already.
     *
     * @param waitNanos nanoseconds until the earliest deadline
     */
    private void startDueTimer(long waitNanos) {
        if (dueTimer == null && !isOver && !loop().isShuttingDown()) {
            dueTimer = loop().schedule(this::endLate, waitNanos, TimeUnit.NANOSECONDS);
            dueTimers.add(1);
        }
    }

    private void cancelDueTimer() {
        if (dueTimer != null) {
            dueTimer.cancel(false);
            dueTimer = null;
            dueTimers.release();
        }
    }

    private void endLate() {
        try {
            endLateNow();
        } catch (Throwable t) {
            checkFailed(t);
        }
    }

    private void endLateNow() {
        cancelDueTimer();
        long now = nanoTime();
        List<ClassicServerCall> late = new ArrayList<>();
        for (ClassicServerCall call : calls.values()) {
            long left = call.deadlineNanos() - now;
            if (left > 0) {
                // The remaining calls have later deadlines, so the search ends here, and a timer is set for this call.
                // Searching all calls each time would take quadratic time in total.
                startDueTimer(left);
                break;
            }
            late.add(call);
        }
        sendTogether(() -> late.forEach(this::endLateCall));
        closeIfDone();
    }

    private void endLateCall(ClassicServerCall call) {
        boolean mayHaveRun = abandon(call);
        refuse(call.id(), ServerCallErrors.notEndedInTime(text(callNanos), mayHaveRun));
    }

    private static String text(long nanos) {
        return nanos % TimeUnit.SECONDS.toNanos(1) == 0
                ? TimeUnit.NANOSECONDS.toSeconds(nanos) + " s"
                : TimeUnit.NANOSECONDS.toMillis(nanos) + " ms";
    }

    // ---- the end

    @Override
    public void drain() {
        loop().execute(() -> {
            draining = true;
            closeIfDone();
        });
    }

    /** Does nothing, since this connection keeps no places for later calls. */
    @Override
    public void giveUpIdlePlaces() {}

    private void closeIfDone() {
        if (draining && calls.isEmpty()) {
            fail(ServerCallErrors.closing());
        }
    }

    /**
     * Sends the client the reason for the connection's end, in a reply with id 0. The connection is closed in a way
     * that lets the reply arrive.
     */
    @Override
    public void onEnd(RPCXException why) {
        try {
            cancelAll();
            write(ClassicWire.reply(0, null, why), released -> {});
        } finally {
            HalfClose.of(channel, account);
        }
    }

    @Override
    public void onOver() {
        // Each step is taken even if the step before it fails, since other code waits for each of these steps.
        try {
            cancelAll();
        } finally {
            try {
                running.connectionGone();
                threads.connectionGone();
            } finally {
                isOver = true;
                cancelDueTimer();
                if (places.held() == 0) {
                    server.ended(channel);
                } else {
                    startLastTimer();
                }
            }
        }
    }

    private void startLastTimer() {
        try {
            startLingerTimer();
        } catch (Throwable t) {
            checkFailed(t);
        }
    }

    private void cancelAll() {
        arriving.release();
        arrivingBytes = 0;
        // The loop always ends, because abandon() removes the call from the table before it cancels the call. The
        // removal allocates no memory, so it does not fail.
        while (!calls.isEmpty()) {
            ClassicServerCall call = calls.values().iterator().next();
            try {
                abandon(call);
            } catch (Throwable t) {
                // The other calls are cancelled even if this one fails, for example because a timer could not be set.
                ThreadTools.report(t);
            }
        }
    }
}
