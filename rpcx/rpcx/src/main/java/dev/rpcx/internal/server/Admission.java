package dev.rpcx.internal.server;

import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.ledger.UnchargedAllowance;
import dev.rpcx.internal.wire.Outbound;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * Decides which calls of one connection may begin: each needs a place, room for what its request takes, and, unless it
 * runs on the event loop, that its method's limit has room for one more handler. Whoever {@link #enter enters}
 * {@link #leave leaves} once; a call that is postponed enters again.
 *
 * <p>A handler is counted twice. Its method's limit, which learns from how long handlers take, is left where the
 * handler ends, on any thread. Its connection counts it until the event loop has learnt of that end.
 *
 * <p>Event loop only, where nothing else is said. Threads of handlers leave by static methods, which read nothing of
 * this object: the event loop writes to it with each call, and would take its cache line from them.
 */
final class Admission {
    /**
     * Maximum number of free places that are kept for later calls. Places beyond these, made in a burst, are given
     * back.
     */
    private static final int MAX_FREE = 512;

    private final ServerConnection connection;
    private final ServerCore server;
    private final Account account;

    /** Charge for the places that have been made, the free ones among them. */
    private final Charge places;

    private final RunningHandlers running;

    /**
     * Free places for later calls, the one that was used last first, linked by {@link Outbound#next}, so that keeping a
     * place takes no memory.
     */
    private @Nullable ServerCall free;

    private int freePlaces;

    /** Number of places of calls that have ended for the client, but for which threads run on. */
    private int lentPlaces;

    Admission(ServerConnection connection, ServerCore server, Account account) {
        this.connection = connection;
        this.server = server;
        this.account = account;
        this.places = account.charge(Resource.CALLS);
        this.running = new RunningHandlers(account, connection::nanoTime);
    }

    // ---- places

    /**
     * Finds a place for a call. A call that was cancelled has its place until its handler has ended, so a peer that
     * sends and cancels again and again soon has no place left. A handler that has returned a future counts as ended,
     * at the latest, when the future is given up.
     *
     * @return null if this connection, or the server, has too many calls
     */
    @Nullable
    ServerCall place() {
        if (places.held() - freePlaces - lentPlaces >= server.settings().maxCalls()) {
            return null;
        }
        ServerCall call = free;
        if (call != null) {
            free = (ServerCall) call.next;
            // the places behind this one may be given up while it is in use, and must be collectable then
            Outbound.NEXT.set(call, (Outbound) null);
            freePlaces--;
            return call;
        }
        boolean isPlaced = places.add(1);
        if (!isPlaced || account.isHalfTaken(Resource.CALLS)) {
            server.reclaimIdlePlaces(connection.nanoTime());
        }
        return isPlaced ? newCall() : null;
    }

    private ServerCall newCall() {
        boolean isMade = false;
        try {
            ServerCall made = new ServerCall(connection);
            isMade = true;
            return made;
        } finally {
            if (!isMade) {
                places.release(1);
            }
        }
    }

    /** Number of places that calls have. Any thread may ask; only when all is quiet the answer is exact. */
    long taken() {
        return places.held() - freePlaces;
    }

    /** Keeps the place of a call for a later one, or gives it back. */
    void keep(ServerCall call) {
        boolean isKept = false;
        try {
            if (freePlaces < MAX_FREE) {
                call.keepBody();
                // a plain write is enough: the event loop alone has this call
                Outbound.NEXT.set(call, (Outbound) free);
                free = call;
                freePlaces++;
                isKept = true;
            }
        } finally {
            if (!isKept) {
                giveBack(call);
            }
        }
    }

    private void giveBack(ServerCall call) {
        call.releasePlace();
        places.release(1);
    }

    /** Takes the place of a call that is over. */
    void takeBack(ServerCall call) {
        if (call.isPlaceLeft) {
            // this object is not used again, since its place does not belong to this connection any more
            call.releasePlace();
            places.handOver(1);
        } else if (connection.isClosed()) {
            giveBack(call);
        } else {
            keep(call);
        }
    }

    /**
     * Gives up the place of a call that could not begin for want of memory, and its handler that was admitted.
     *
     * @param hasEntered whether {@link #enter} has returned true for this use of the place
     */
    void undo(ServerCall call, ServerMethod method, boolean hasEntered) {
        giveBack(call);
        AdmissionLimit.Group counted = hasEntered && method.admission() != null ? call.admitted : null;
        if (counted != null) {
            running.handlerEnded(method);
            counted.release();
        }
    }

    /**
     * Takes the place of a call that is over but for its threads out of those that count for the client. The client has
     * the end of the call, and may have as many others under way as it was told.
     */
    void lendPlace(ServerCall call) {
        if (!call.isCancelled()
                && !call.loopState.isPlaceLent
                && lentPlaces < server.settings().maxCalls()) {
            call.loopState.isPlaceLent = true;
            lentPlaces++;
        }
    }

    /** Counts a place among those that count for the client again, as the threads of its call have ended. */
    void endLoan(ServerCall call) {
        if (call.loopState.isPlaceLent) {
            call.loopState.isPlaceLent = false;
            lentPlaces--;
        }
    }

    /** Gives up all free places. */
    void giveUpPlaces() {
        giveUpPlaces(freePlaces);
    }

    /** Gives up half of the free places. */
    void giveUpHalf() {
        giveUpPlaces(freePlaces - freePlaces / 2);
    }

    /** Gives up this many free places. Those that were used last stay. */
    private void giveUpPlaces(int count) {
        ServerCall last = null;
        ServerCall call = free;
        for (int left = freePlaces - count; left > 0 && call != null; left--) {
            last = call;
            call = (ServerCall) call.next;
        }
        if (last == null) {
            free = null;
        } else {
            last.next = null;
        }
        for (int i = 0; i < count && call != null; i++, call = (ServerCall) call.next) {
            call.releasePlace();
        }
        freePlaces -= count;
        places.release(count);
    }

    // ---- what a request takes

    /**
     * Charges for metadata that are not small.
     *
     * @param more whether the request is not whole yet, so that its call is not counted among those that run
     * @return false if there is no room for them
     */
    boolean holdMetadata(ServerCall call, ServerMethod method, int bytes, boolean more) {
        return bytes <= unchargedMetadata(method, more)
                || call.charges().request.add(bytes);
    }

    private int unchargedMetadata(ServerMethod method, boolean more) {
        return more || method.admission() == null || method.returnsStream()
                ? UnchargedAllowance.IDLE_METADATA_BYTES
                : connection.uncharged.metadataBytes();
    }

    /**
     * Keeps a request that came in one frame, for a handler on another thread.
     *
     * @return false if too many bytes of requests are held already
     */
    boolean holdWhole(ServerCall call, ByteBuf request) {
        if (request.readableBytes() > connection.uncharged.bodyBytes()) {
            return holdCounted(call, request);
        }
        call.body.writeBytes(request);
        return true;
    }

    /**
     * Keeps bytes of a request, and charges for them.
     *
     * @return false if too many bytes of requests are held already
     */
    boolean holdCounted(ServerCall call, ByteBuf bytes) {
        long growth = HeapArray.growth(call.body, bytes.readableBytes());
        if (growth != 0 && !call.charges().request.add(growth)) {
            return false;
        }
        HeapArray.grow(call.body, bytes.readableBytes());
        call.body.writeBytes(bytes);
        return true;
    }

    // ---- handlers

    /**
     * Admits the handler of a call whose request is whole, and counts it.
     *
     * @return false if the connection's share, or the method's limit, has no room for it
     */
    boolean enter(ServerCall call, ServerMethod method) {
        AdmissionLimit limit = method.admission();
        if (limit == null) {
            return true;
        }
        AdmissionLimit.Group group = limit.group(account.group());
        if (!running.admit(method, group)) {
            return false;
        }
        call.admitted = group;
        call.loopState.running = true;
        return true;
    }

    /**
     * Takes a handler off its method's limit: it has ended, or has not started and will not. A second time does
     * nothing. Where threads run for the call that may start the handler, the last of them takes it off by
     * {@link #leaveNow}. Any thread.
     *
     * @param isDone whether the call has brought a result
     */
    static void leave(ServerCall call, boolean isDone) {
        if (!call.hasBegun()) {
            leaveUnbegun(call);
        } else if (call.leavesUnlessThreads(isDone)) {
            leaveNow(call, isDone);
        }
    }

    /** As {@link #leave}, of a handler that has started, whatever threads run for the call. Any thread. */
    static void leaveNow(ServerCall call, boolean isDone) {
        AdmissionLimit.Group counted = call.admitted;
        if (counted != null) {
            long now = call.connection.nanoTime();
            call.admitted = null;
            counted.release(call.admittedNanos(), call.deadlineNanos(), now, isDone);
        }
    }

    /** As {@link #leave}, of a handler whose result is not waited for any more, so that the limit learns nothing. */
    static void leaveUnlearnt(ServerCall call) {
        AdmissionLimit.Group counted = call.admitted;
        if (counted != null && call.leavesUnlessThreads(false)) {
            call.admitted = null;
            counted.release();
        }
    }

    /**
     * Stops counting a handler that has not started, and will not. Both the thread that cancels the call and the thread
     * that was to run it may call this.
     */
    private static void leaveUnbegun(ServerCall call) {
        // the clock is read before admitted is taken: if that fails, whoever ends the call takes it
        long now = call.connection.nanoTime();
        AdmissionLimit.Group counted = call.takeAdmitted();
        if (counted == null) {
            return;
        }
        PoolShares.Task waits = call.handed == null ? call : call.handed;
        if (call.connection.threads.waitsForItsOwn(call.method().place(), waits)) {
            // a handler that waits because its own connection holds as many threads as it may says nothing of the
            // method's limit
            counted.release();
        } else {
            counted.leaveUnbegun(call.admittedNanos(), call.deadlineNanos(), now);
        }
    }

    /** Stops counting a handler for its connection, unless threads run for its call. A second time does nothing. */
    void uncount(ServerCall call) {
        if (!call.hasThreads()) {
            uncountNow(call);
        }
    }

    /** As {@link #uncount}, whatever threads run for the call. */
    void uncountNow(ServerCall call) {
        if (call.loopState.running) {
            call.loopState.running = false;
            running.handlerEnded(call.method());
        }
    }

    /** Whether the connection runs a handler that is counted. */
    boolean isAnyRunning() {
        return running.all() > 0;
    }

    /** Notes that the connection is gone; called once. */
    void connectionGone() {
        running.connectionGone();
    }
}
