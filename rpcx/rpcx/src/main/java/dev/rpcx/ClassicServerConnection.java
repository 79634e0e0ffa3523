package dev.rpcx;

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
 * A server's connection on the classic wire, the paper's: length-prefixed {@code RPCXRequest} and {@code RPCXReply}. It has no handshake,
 * no cancel and no remaining time; a call has the server's own time. What it holds is charged to the connection's account, as on the native
 * wire. All state belongs to the event loop; after the loop's end, to whoever ends a call, under this object's lock.
 */
final class ClassicServerConnection extends ClassicConnection implements ServedConnection {
    /** Time of a call, whose caller has no way to tell another. What is not answered by then is told so, and its handler interrupted. */
    static final long CALL_NANOS = TimeUnit.SECONDS.toNanos(60);

    /** So many keepAlive times without a call end the connection. */
    private static final int IDLE_KEEPALIVES = 5;

    private final ServerCore server;
    final ConnectionThreads threads;
    private final Account account;

    /**
     * Requests and replies up to this are not charged: there are as many as calls under way, and charging would cost
     * more than it saves.
     */
    private final int unchargedBytes;

    /** Tables for more are not kept. */
    private static final int MOST_PLACES_KEPT = 64;

    /** Calls whose handlers have not ended, those that nobody waits for any more among them. */
    private final Charge places;

    /** In the order of their deadlines, since each has the same time from its begin on. */
    private Map<Long, ClassicServerCall> calls = new LinkedHashMap<>();

    /** Bytes of the frame that is arriving, and what is charged for them. Goes to the call that the frame brings. */
    private Charge arriving;

    private long arrivingBytes;

    private final RunningHandlers running;

    /** Time of a call: {@link #CALL_NANOS}, or less where the server's largest time is less. */
    private final long callNanos;

    /** Calls whose callers are gone and whose handlers' futures are given up, the first one next. */
    private ArrayDeque<ClassicServerCall> away = new ArrayDeque<>();

    /** Calls that nobody waits for any more, and that their handlers will end. */
    private Set<ClassicServerCall> dropped = new HashSet<>();

    /** Most places at once since the tables were made. */
    long mostPlaces;

    /** Any thread says so when it could not end a call. */
    final LostCalls lost = new LostCalls(() -> inLoopOrHere(this::endLost));

    final CallThreads callThreads;

    /** Set for the first of {@link #away}, and its charge. */
    private @Nullable ScheduledFuture<?> awayTimer;

    /** The channel is gone; handlers may be under way. */
    private boolean isOver;

    private final Charge awayTimers;

    /** Set for the call whose time is over first, or for one that has ended since. */
    private @Nullable ScheduledFuture<?> dueTimer;

    private final Charge dueTimers;

    private boolean leaving;

    /** {@link #reads} when the last pause ended; any other number where there was none. */
    private int readsBeforeResume = -1;

    /** Bytes that have left since this side does not read. */
    private int leftInPause;

    ClassicServerConnection(Channel channel, ServerCore server, Account account) {
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
        this.callNanos = Math.min(CALL_NANOS, server.maxCallNanos());
        this.arriving = account.charge(Resource.REQUEST_BYTES);
        this.awayTimers = account.charge(Resource.TIMERS);
        this.dueTimers = account.charge(Resource.TIMERS);
        account.watch(places::held);
    }

    @Override
    void onAdded() {
        server.greeted(channel, this);
        if (!server.classic()) {
            fail(RPCXException.refused(
                    RPCXException.Code.UNAVAILABLE,
                    "this server does not serve the classic wire"
                            + " (expected: the native one, or Server.Builder.classic)"));
        }
    }

    @Override
    boolean isBusy() {
        return !calls.isEmpty();
    }

    /** Calls that somebody waits for: for tests. */
    List<ClassicServerCall> callsUnderWay() {
        return List.copyOf(calls.values());
    }

    /** Calls that nobody waits for, and that may end: for tests. */
    int callsLeft() {
        return dropped.size() + away.size();
    }

    // ---- requests

    @Override
    public boolean hold(long bytes) {
        if (arrivingBytes + bytes > unchargedBytes && !arriving.set(arrivingBytes + bytes)) {
            return false;
        }
        arrivingBytes += bytes;
        return true;
    }

    /** @return what was charged for the frame that has ended */
    private Charge arrived() {
        Charge charge = arriving;
        arriving = account.charge(Resource.REQUEST_BYTES);
        arrivingBytes = 0;
        return charge;
    }

    @Override
    public void passes() {
        arrived().release();
    }

    @Override
    public void passed(byte[] begin, int bytes, int length) {
        Long id = ClassicWire.id(Unpooled.wrappedBuffer(begin, 0, bytes));
        if (id == null || id == 0) {
            throw new WireFault("a request of " + length + " bytes that is refused (expected: its id first, not 0)");
        }
        refuseTwice(id);
        int max = server.settings().maxMessageBytes();
        if (length > max) {
            refuse(
                    id,
                    RPCXException.Code.TOO_LARGE,
                    "a request of " + length + " bytes (expected: at most " + max + ")");
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

    /** An answer would be taken for that of the other. */
    private void refuseTwice(long id) {
        if (calls.containsKey(id)) {
            throw new WireFault("request " + id + " twice under way");
        }
    }

    /** @return false if the call is refused */
    private boolean take(ClassicWire.Request request, Charge charge) {
        long id = request.id();
        if (id == 0) {
            throw new WireFault("a request without an id");
        }
        refuseTwice(id);
        ServerMethod method = server.method(MethodDictionary.key(request.service(), request.method()));
        if (method == null) {
            refuse(id, RPCXException.Code.NOT_FOUND, "no such service or method");
            return false;
        }
        if (method.brings() || method.items() != null) {
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
        if (leaving) {
            refuse(id, RPCXException.Code.UNAVAILABLE, "the server is closing");
            return false;
        }
        if (places.held() >= server.settings().maxCalls()) {
            refuse(id, RPCXException.Code.OVERLOADED, "too many calls under way on this connection");
            return false;
        }
        // before the place is taken, which would be lost where this fails
        if (account.isHalfTaken(Resource.CALLS)) {
            server.placesAreFew(nanoTime());
        }
        if (!places.add(1)) {
            server.placesAreFew(nanoTime());
            refuse(id, RPCXException.Code.OVERLOADED, "too many calls under way");
            return false;
        }
        ClassicServerCall call = null;
        AdmissionLimit.Group entered = null;
        boolean isTaken = false;
        try {
            AdmissionLimit.Group admission = admission(method);
            if (admission != null && !running.enter(method, admission)) {
                refuse(id, RPCXException.Code.OVERLOADED, "the server has more to do than it can finish in time");
                return false;
            }
            entered = admission;
            long now = nanoTime();
            call = new ClassicServerCall(this, account, method, entered, request, charge, now, now + callNanos);
            watchDue(callNanos);
            calls.put(call.id(), call);
            mostPlaces = Math.max(mostPlaces, places.held());
            isTaken = true;
        } finally {
            if (!isTaken) {
                // refused, or there was no memory for it, and the connection ends, which gives back what its calls have
                if (call != null) {
                    forget(call);
                }
                places.release(1);
                if (entered != null) {
                    running.left(method);
                    entered.leave();
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
            call.refused("the server is closing");
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

    /** As the call says, on the event loop: the threads that it had beside its handler are done. */
    void settleIfThreadsEnded(ClassicServerCall call) {
        if (call.isOverButThreads && !call.context().hasThreads()) {
            settle(call);
        }
    }

    HandledContext context(long deadlineNanos) {
        Principal peer = TlsEngine.peer(channel);
        return new HandledContext(deadlineNanos, Metadata.EMPTY, peer, loop().ticker());
    }

    // ---- replies

    /**
     * The handler has ended, and this is its reply. From any thread, at most once for each call that was started. A
     * large reply is charged before it waits for the event loop: all threads make more in the meantime than the heap
     * may hold.
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
        byte[] kept = isKept ? frame : unkept(call.id(), call.executed());
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
        // first: the tables go with the last one's place
        boolean isAwaited = forget(call);
        settle(call);
        if (isAwaited && !isEnding()) {
            reply(call.id(), frame, charge, call.executed());
            closeIfDone();
        } else {
            release(charge);
        }
    }

    /** The call is over: what it holds comes back, once whoever is told of its end has been told. */
    private void settle(ClassicServerCall call) {
        call.isOverButThreads = !call.context().endUnlessThreads();
        if (call.isOverButThreads) {
            dropped.add(call);
            return;
        }
        dropped.remove(call);
        call.release();
        uncount(call);
        if (call.isPlaceLeft) {
            places.handOver(1);
        } else {
            places.release(1);
        }
        if (places.held() == 0) {
            // those that are away have ended too
            away.clear();
            stopLookingAway();
            forgetTables();
            if (isOver) {
                server.ended(channel);
            }
        }
    }

    /** After this no handler begins any more. Any thread may ask. */
    boolean isCutOff() {
        return server.isCutOff();
    }

    private static void release(@Nullable Charge charge) {
        if (charge != null) {
            charge.release();
        }
    }

    /** What this connection's peer runs and says of a method; null for one without a limit. */
    private AdmissionLimit.@Nullable Group admission(ServerMethod method) {
        AdmissionLimit limit = method.admission();
        return limit == null ? null : limit.group(account.group());
    }

    private void uncount(ClassicServerCall call) {
        if (call.running) {
            call.running = false;
            running.left(call.method());
        }
    }

    // ---- calls whose callers are gone

    /**
     * Nobody waits for the call any more.
     *
     * @return false if the method has not been called, and will not be
     */
    private boolean abandon(ClassicServerCall call) {
        forget(call);
        boolean isCancelled = false;
        try {
            boolean hasBegun = call.cancel();
            isCancelled = true;
            if (!hasBegun) {
                // it waits for a thread that will not run it
                uncount(call);
            }
        } finally {
            // also where a cancel has found no memory: it is in no list any more
            keepInSight(call, isCancelled);
        }
        return call.mayHaveRun;
    }

    private void keepInSight(ClassicServerCall call, boolean isCancelled) {
        if (isCancelled && threads.withdraw(call.method().place(), call)) {
            // nothing would end it but the thread for which it has waited
            call.isAnswered = true;
            settle(call);
        } else if (call.isAwaiting()) {
            linger(call);
        } else if (!call.isAnswered) {
            // what it wanted to be told of its end may have ended it
            dropped.add(call);
        }
    }

    @Override
    public void cutOff() {
        inLoopOrHere(() -> {
            fail(brokenOff(RPCXException.Code.UNAVAILABLE, "the server is closing, and does not wait any longer"));
            endLost();
            for (ClassicServerCall call = away.poll(); call != null; call = away.poll()) {
                giveUp(call);
            }
            stopLookingAway();
        });
    }

    /** Ends calls that the threads which were about to end them could not. */
    private void endLost() {
        if (lost.isAny) {
            lost.look(this::endAllLost);
        }
    }

    private boolean endAllLost() {
        List<ClassicServerCall> all = new ArrayList<>(calls.values());
        all.addAll(dropped);
        all.addAll(away);
        for (ClassicServerCall call : all) {
            if (call.isOverButThreads) {
                settleIfThreadsEnded(call);
            } else if (!call.isAnswered && call.isLost()) {
                call.end();
                // the reply that it was taken for does not leave
                release(call.replyBytes);
                call.replyBytes = null;
                answer(
                        call,
                        ClassicWire.reply(
                                call.id(),
                                null,
                                new RPCXException(
                                        RPCXException.Code.HANDLER_FAILED,
                                        "the thread that had the result has failed over it",
                                        call.executed(),
                                        null)));
            }
        }
        return true;
    }

    /** The handler's thread says that a handler whose caller is gone has brought a future. */
    void awaitsForNobody(ClassicServerCall call) {
        inLoopOrHere(() -> {
            try {
                if (call.isAwaiting()) {
                    dropped.remove(call);
                    linger(call);
                }
            } catch (Throwable t) {
                lookFailed(t);
            }
        });
    }

    /** Gives the handler's future some time to end: none where the loop's timers are about to end. */
    private void linger(ClassicServerCall call) {
        if (call.isAway) {
            // the end of its connection and its handler's thread have both said so
            return;
        }
        if (leaving || loop().isShuttingDown()) {
            giveUp(call);
            return;
        }
        call.awayUntilNanos = nanoTime() + Awaited.GRACE_NANOS;
        if (away.isEmpty()) {
            // a look at what is dropped may be due later
            stopLookingAway();
        }
        call.isAway = true;
        away.add(call);
        watchAway();
    }

    private void watchAway() {
        ClassicServerCall first = away.peek();
        boolean isWatched = first != null || isOver && !(dropped.isEmpty() && calls.isEmpty());
        if (isWatched && awayTimer == null && !loop().isShuttingDown()) {
            long wait = first == null ? ServerConnection.LOST_LOOK_NANOS : first.awayUntilNanos - nanoTime();
            awayTimer = loop().schedule(this::lookAway, wait, TimeUnit.NANOSECONDS);
            awayTimers.add(1);
        }
    }

    private void lookAway() {
        try {
            lookAwayNow();
        } catch (Throwable t) {
            lookFailed(t);
        }
    }

    /**
     * Nobody would look again. So the connection ends, and with it all that is looked at but for what goes on behind
     * it.
     */
    private void lookFailed(Throwable thrown) {
        if (thrown instanceof OutOfMemoryError) {
            MemoryReserve.use();
        }
        try {
            SocketQueue.closeNow(channel);
            ThreadTools.report(thrown);
        } finally {
            watchAway();
        }
    }

    private void lookAwayNow() {
        stopLookingAway();
        if (isOver) {
            // those for which there was no memory at its end
            cancelAll();
        }
        endLost();
        long now = nanoTime();
        for (ClassicServerCall call = away.peek(); call != null && call.awayUntilNanos - now <= 0; call = away.peek()) {
            away.remove();
            giveUp(call);
        }
        watchAway();
    }

    private void stopLookingAway() {
        if (awayTimer != null) {
            awayTimer.cancel(false);
            awayTimer = null;
            awayTimers.release();
        }
    }

    private void giveUp(ClassicServerCall call) {
        call.isAway = false;
        if (call.giveUp()) {
            settle(call);
        } else if (!call.isAnswered) {
            dropped.add(call);
        }
    }

    /** Tables that have grown are not kept by a connection that has no call. */
    private void forgetTables() {
        if (mostPlaces > MOST_PLACES_KEPT && calls.isEmpty()) {
            calls = new LinkedHashMap<>();
            away = new ArrayDeque<>();
            dropped = new HashSet<>();
            mostPlaces = 0;
        }
    }

    /** @return false if nobody waits for the call any more */
    private boolean forget(ClassicServerCall call) {
        return calls.remove(call.id(), call);
    }

    /**
     * @param charged what the reply has been charged by; null if it has not been
     * @param executed what the reply says of its call
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
                writeSmall(unkept(id, executed));
            }
        }
    }

    private void writePaid(byte[] frame, Charge paid) {
        write(frame, left -> {
            // all of it with the last byte: a part gives back whole steps only
            paid.set(Math.max(0, paid.held() - left));
        });
    }

    private static byte[] unkept(long id, RPCXException.Executed executed) {
        return ClassicWire.reply(
                id,
                null,
                new RPCXException(
                        RPCXException.Code.OVERLOADED,
                        "the reply could not be kept: too many bytes of replies wait to be read",
                        executed,
                        null));
    }

    @Override
    long replyBytes() {
        return account.held(Resource.REPLY_BYTES);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        readUnlessFull();
    }

    @Override
    void onReadComplete() {
        readUnlessFull();
    }

    /** A pass may bring sixteen buffers of the largest size: what they ask for is looked at behind each. */
    @Override
    void onRead() {
        if (!channel.isWritable()) {
            readUnlessFull();
        }
    }

    @Override
    void onLeft(int bytes) {
        if (!isReading()) {
            leftInPause += bytes;
            if (leftInPause >= BYTES_IN_PAUSE) {
                resume();
            }
        }
    }

    /**
     * A client that does not read its replies may send no more requests until it does. One that reads a large reply
     * slowly takes some of it now and then: each time something is read before the next pause, or a large request would
     * not leave its client while such replies follow each other.
     */
    private void readUnlessFull() {
        if (isEnding() || channel.isWritable()) {
            resume();
        } else if (reads() != readsBeforeResume && isReading()) {
            leftInPause = 0;
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
    void onLook(long nowNanos) {
        endLost();
        closeIfDone();
    }

    /** Sees to it that the calls under way are looked at when the time of the first of them is over. */
    private void watchDue(long waitNanos) {
        if (dueTimer == null && !isOver && !loop().isShuttingDown()) {
            dueTimer = loop().schedule(this::endLate, waitNanos, TimeUnit.NANOSECONDS);
            dueTimers.add(1);
        }
    }

    private void stopWatchingDue() {
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
            lookFailed(t);
        }
    }

    private void endLateNow() {
        stopWatchingDue();
        long now = nanoTime();
        List<ClassicServerCall> late = new ArrayList<>();
        for (ClassicServerCall call : calls.values()) {
            long left = call.deadlineNanos() - now;
            if (left > 0) {
                // those behind it have longer: to pass all of them for each that is due would cost their square
                watchDue(left);
                break;
            }
            late.add(call);
        }
        sendTogether(() -> late.forEach(this::endLateCall));
        closeIfDone();
    }

    private void endLateCall(ClassicServerCall call) {
        boolean mayHaveRun = abandon(call);
        refuse(
                call.id(),
                new RPCXException(
                        RPCXException.Code.DEADLINE_EXCEEDED,
                        "not done in the " + text(callNanos) + " that a classic call has",
                        mayHaveRun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED,
                        null));
    }

    private static String text(long nanos) {
        return nanos % TimeUnit.SECONDS.toNanos(1) == 0
                ? TimeUnit.NANOSECONDS.toSeconds(nanos) + " s"
                : TimeUnit.NANOSECONDS.toMillis(nanos) + " ms";
    }

    // ---- the end

    @Override
    public void leave() {
        loop().execute(() -> {
            leaving = true;
            closeIfDone();
        });
    }

    /** A place is given back with its call. */
    @Override
    public void giveUpIdlePlaces() {}

    private void closeIfDone() {
        if (leaving && calls.isEmpty()) {
            fail(RPCXException.refused(RPCXException.Code.UNAVAILABLE, "the server is closing"));
        }
    }

    /** Tells the client why, in a reply to no call, and closes so that it arrives. */
    @Override
    void onEnd(RPCXException why) {
        try {
            cancelAll();
            write(ClassicWire.reply(0, null, why), left -> {});
        } finally {
            HalfClose.of(channel, account);
        }
    }

    @Override
    void onOver() {
        // each of these also where the one before it fails, as where the memory is at its end: somebody waits for it
        try {
            cancelAll();
        } finally {
            try {
                running.connectionGone();
                threads.connectionGone();
            } finally {
                isOver = true;
                stopWatchingDue();
                if (places.held() == 0) {
                    server.ended(channel);
                } else {
                    watchLeft();
                }
            }
        }
    }

    private void watchLeft() {
        try {
            watchAway();
        } catch (Throwable t) {
            lookFailed(t);
        }
    }

    private void cancelAll() {
        arriving.release();
        arrivingBytes = 0;
        // each is forgotten first, which takes no memory
        while (!calls.isEmpty()) {
            ClassicServerCall call = calls.values().iterator().next();
            try {
                abandon(call);
            } catch (Throwable t) {
                // such as a timer that cannot be set: the others come to their end all the same
                ThreadTools.report(t);
            }
        }
    }
}
