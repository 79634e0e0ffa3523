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
 * Decides which calls of one connection may begin. A call needs a place, room for its request and, unless its handler
 * runs on the event loop, room in the limit of its method. {@link #enter} counts the handler against that limit, and
 * {@link #leave} has to stop counting it. A handler is not counted while its call is postponed because the client does
 * not read its replies.
 *
 * <p>The limit of a method counts a handler until it ends, on whatever thread that is. The connection counts the
 * handler until the event loop has noticed the end.
 *
 * <p>Event loop only, unless a method says otherwise. The methods for the threads of handlers are static and read no
 * field of this object: the event loop writes to it with each call, so each read would be a cache miss.
 */
final class Admission {
    /** Maximum number of free places that are kept for later calls. All others are given back to the server. */
    private static final int MAX_FREE = 512;

    private final ServerConnection connection;
    private final ServerCore server;
    private final Account account;

    /** Charge for all places that this connection has made, including the free ones. */
    private final Charge places;

    private final RunningHandlers running;

    /**
     * First of the free places, the one that was used last; null if no place is free. They are linked by
     * {@link Outbound#next}.
     */
    private @Nullable ServerCall free;

    private int freePlaces;

    /** Number of places that {@code lendPlace} has stopped counting against the client's maximum number of calls. */
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
     * Returns a free place for a call, or makes a place. A cancelled call keeps its place until its handler has ended,
     * or until the server stops waiting for the handler's future. So a peer gets no more calls by cancelling.
     *
     * @return the place; null if this connection, or the server, has too many calls
     */
    @Nullable
    ServerCall place() {
        if (places.held() - freePlaces - lentPlaces >= server.settings().maxCalls()) {
            return null;
        }
        ServerCall call = free;
        if (call != null) {
            free = (ServerCall) call.next;
            // otherwise the places behind this one could not be collected while this one is in use
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

    /**
     * Returns the number of places that calls hold. Any thread may call this, but the answer is exact only while no
     * call begins or ends.
     */
    long taken() {
        return places.held() - freePlaces;
    }

    /**
     * Keeps the place of a call that is over for a later call. If {@code MAX_FREE} places are free already, the place
     * is given back to the server.
     */
    void keep(ServerCall call) {
        boolean isKept = false;
        try {
            if (freePlaces < MAX_FREE) {
                call.keepBody();
                // a plain write is enough, since only the event loop has access to this call
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

    /** Takes back the place of a call that is over: keeps it for a later call, or gives it back to the server. */
    void takeBack(ServerCall call) {
        if (call.isPlaceKeptCharged) {
            // the place stays charged for objects that the handler's future may still hold. So this ServerCall is not
            // used again, and the connection no longer owns the charge
            call.releasePlace();
            places.handOver(1);
        } else if (connection.isClosed()) {
            giveBack(call);
        } else {
            keep(call);
        }
    }

    /**
     * Gives back the place of a call that could not begin because there was no memory. Stops counting its handler if it
     * has been admitted.
     *
     * @param hasEntered whether {@link #enter} has returned true for this call
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
     * Stops counting the place of a call against the client's maximum number of calls. Called when nothing remains to
     * be sent and only threads of the server still run for the call. Does nothing for a cancelled call, or if as many
     * places as that maximum are uncounted already.
     */
    void lendPlace(ServerCall call) {
        if (!call.isCancelled()
                && !call.loopState.isPlaceLent
                && lentPlaces < server.settings().maxCalls()) {
            call.loopState.isPlaceLent = true;
            lentPlaces++;
        }
    }

    /**
     * Counts the place of a call again if {@code lendPlace} has stopped counting it. Called when no thread runs for the
     * call any more.
     */
    void endLoan(ServerCall call) {
        if (call.loopState.isPlaceLent) {
            call.loopState.isPlaceLent = false;
            lentPlaces--;
        }
    }

    /** Gives all free places back to the server. */
    void giveUpPlaces() {
        giveUpPlaces(freePlaces);
    }

    /** Gives half of the free places, rounded up, back to the server. */
    void giveUpHalf() {
        giveUpPlaces(freePlaces - freePlaces / 2);
    }

    /** Gives {@code count} free places back to the server. The places that were used last are kept. */
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
     * Charges the call for its metadata, if they take more memory than a call may use without a charge.
     *
     * @param bytes memory that the metadata take
     * @param more whether more parts of the request are to come; if so, less memory may be used without a charge
     * @return false if there is no room for the metadata
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
     * Copies a request that came in one frame into the call's buffer, for a handler on another thread.
     *
     * @return false if the server or the connection already holds too many bytes of requests
     */
    boolean holdWhole(ServerCall call, ByteBuf request) {
        if (request.readableBytes() > connection.uncharged.bodyBytes()) {
            return holdCounted(call, request);
        }
        call.body.writeBytes(request);
        return true;
    }

    /**
     * Appends bytes of a request to the call's buffer, and charges the call for the growth of the buffer.
     *
     * @return false if the server or the connection already holds too many bytes of requests
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
     * Admits the handler of a call whose request has arrived completely, and counts it. A handler on the event loop is
     * always admitted, and not counted.
     *
     * @return false if the connection's share, or the limit of the method, has no room for it
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
     * Stops counting a handler against the limit of its method, because the handler has ended or will not start.
     * Further calls for the same handler do nothing. If other threads run for the call, the last of them stops counting
     * the handler instead: see {@link #leaveNow}. Any thread may call this.
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

    /**
     * Stops counting a started handler against the limit of its method, even if other threads run for its call. Further
     * calls of this method for the same handler do nothing. Any thread may call this, but only one at a time.
     *
     * @param isDone whether the call has brought a result
     */
    static void leaveNow(ServerCall call, boolean isDone) {
        AdmissionLimit.Group counted = call.admitted;
        if (counted != null) {
            long now = call.connection.nanoTime();
            call.admitted = null;
            counted.release(call.admittedNanos(), call.deadlineNanos(), now, isDone);
        }
    }

    /**
     * Stops counting a handler whose result nobody waits for any more. The limit ignores how long the handler took. If
     * other threads run for the call, the last of them stops counting the handler instead.
     */
    static void leaveUnlearnt(ServerCall call) {
        AdmissionLimit.Group counted = call.admitted;
        if (counted != null && call.leavesUnlessThreads(false)) {
            call.admitted = null;
            counted.release();
        }
    }

    /**
     * Stops counting a handler that will not start. The thread that cancels the call and the thread that was to run the
     * handler may both call this; the second time it does nothing.
     */
    private static void leaveUnbegun(ServerCall call) {
        // the clock is read first: if that fails, the call still has its group, and the code that ends the call can
        // stop counting the handler
        long now = call.connection.nanoTime();
        AdmissionLimit.Group counted = call.takeAdmitted();
        if (counted == null) {
            return;
        }
        PoolShares.Task waits = call.handed == null ? call : call.handed;
        if (call.connection.threads.waitsForItsOwn(call.method().place(), waits)) {
            // a wait for the connection's own share of threads shows nothing about the limit of the method
            counted.release();
        } else {
            counted.leaveUnbegun(call.admittedNanos(), call.deadlineNanos(), now);
        }
    }

    /**
     * Stops counting a handler for its connection, unless other threads run for its call. Further calls of this method
     * for the same handler do nothing.
     */
    void uncount(ServerCall call) {
        if (!call.hasThreads()) {
            uncountNow(call);
        }
    }

    /**
     * Stops counting a handler for its connection, even if other threads run for its call. Further calls of this method
     * for the same handler do nothing.
     */
    void uncountNow(ServerCall call) {
        if (call.loopState.running) {
            call.loopState.running = false;
            running.handlerEnded(call.method());
        }
    }

    /** Returns whether the connection runs any handler that is counted. Handlers on the event loop are not counted. */
    boolean isAnyRunning() {
        return running.all() > 0;
    }

    /**
     * Records that the connection is gone. Its handlers that still run count in the shares of later connections from
     * the same address. Called exactly once.
     */
    void connectionGone() {
        running.connectionGone();
    }
}
