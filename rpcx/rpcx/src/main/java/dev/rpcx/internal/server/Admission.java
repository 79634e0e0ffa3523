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
 * Decides which calls of one connection may begin. A call needs a place, that is, a {@link ServerCall} object; it needs
 * room for its request; and the limit of its method must have room for its handler. {@link #enter} counts the handler
 * against that limit, and {@link #leave} has to stop counting it. Handlers that run on the event loop have no limit.
 *
 * <p>A handler is counted twice. The limit of the method counts it until it ends, on whatever thread that is. The
 * connection counts it until the event loop has noticed the end. While a call is postponed because the client does not
 * read its replies, its handler is not counted.
 *
 * <p>Event loop only, unless a method says otherwise. The methods for the threads of handlers are static and read no
 * field of this object: the event loop writes to it with each call, so each read would be a cache miss.
 */
final class Admission {
    /**
     * Maximum number of unused {@link ServerCall} objects that a connection keeps for later calls. All others are given
     * back to the server.
     */
    private static final int MAX_FREE = 512;

    private final ServerConnection connection;
    private final ServerCore server;
    private final Account account;

    /** Charge for all places of this connection, that is, for its {@link ServerCall} objects, in use or free. */
    private final Charge places;

    private final RunningHandlers running;

    /**
     * First of the free places, that is, of the {@link ServerCall} objects that no call uses; null if there is none.
     * They are linked by {@link Outbound#next}, beginning with the one that was used last.
     */
    private @Nullable ServerCall free;

    private int freePlaces;

    /**
     * Number of calls that do not count against the client's maximum number of calls, although they have a place.
     * Nothing remains to be sent for them, but threads of the server still run for them: see {@link #lendPlace}.
     */
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
     * Returns a place for a new call, that is, a {@link ServerCall} object that is free or new. A cancelled call keeps
     * its place until its handler has ended, or until the server stops waiting for the handler's future. So a client
     * gets no more calls by cancelling.
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
            // without this link, the objects behind this one can be garbage-collected while this one is in use
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
     * Returns the number of calls that have a place on this connection. Any thread may call this, but the number is
     * exact only while no call begins or ends.
     */
    long taken() {
        return places.held() - freePlaces;
    }

    /**
     * Keeps the {@link ServerCall} object of a call that is over, for a later call. If {@link #MAX_FREE} such objects
     * are kept already, gives this one back to the server.
     */
    void keep(ServerCall call) {
        boolean isKept = false;
        try {
            if (freePlaces < MAX_FREE) {
                call.keepBody();
                // a plain write is enough, since only the event loop has access to this object
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

    /**
     * Takes back the place of a call that is over, that is, its {@link ServerCall} object. Keeps the object for a later
     * call, or gives it back to the server.
     */
    void takeBack(ServerCall call) {
        if (call.isPlaceKeptCharged) {
            // the charge for the place remains, for objects that the handler's future may still hold. So this
            // ServerCall is not used again, and the charge no longer belongs to the connection
            call.releasePlace();
            places.handOver(1);
        } else if (connection.isClosed()) {
            giveBack(call);
        } else {
            keep(call);
        }
    }

    /**
     * Gives back the place of a call that could not begin because there was no memory. If {@link #enter} has counted
     * the call's handler, also stops counting it.
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
     * Stops counting a call against the client's maximum number of calls, although the call keeps its place. Called
     * when nothing remains to be sent for the call, but threads of the server still run for it.
     *
     * <p>Does nothing for a cancelled call, or if as many calls as that maximum are already left out of the count.
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
     * Counts a call against the client's maximum number of calls again, if {@link #lendPlace} has stopped counting it.
     * Called when no thread runs for the call any more.
     */
    void endLoan(ServerCall call) {
        if (call.loopState.isPlaceLent) {
            call.loopState.isPlaceLent = false;
            lentPlaces--;
        }
    }

    /** Gives all free places, that is, the unused {@link ServerCall} objects, back to the server. */
    void giveUpPlaces() {
        giveUpPlaces(freePlaces);
    }

    /**
     * Gives half of the free places, rounded up, back to the server. Free places are unused {@link ServerCall} objects.
     */
    void giveUpHalf() {
        giveUpPlaces(freePlaces - freePlaces / 2);
    }

    /**
     * Gives {@code count} free places, that is, unused {@link ServerCall} objects, back to the server. Those that were
     * used last are kept.
     */
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
     * Charges a call for its metadata, unless they take so little memory that no charge is needed.
     *
     * @param bytes memory that the metadata take, in bytes
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
     * Copies a request that came in one frame into the call's buffer, since the handler reads it on another thread.
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
     * Admits the handler of a call whose request has arrived completely, and counts it, or refuses it. A handler that
     * runs on the event loop is always admitted, and not counted.
     *
     * @return false if the handler is refused, because the connection's share or the limit of the method has no room
     *     for it
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
     * Has the limit of a method stop counting a handler. Called when the handler has ended or will not start; further
     * calls for the same handler do nothing. Any thread may call this.
     *
     * <p>If other threads still run for the call, this method leaves it to the last of them to stop counting the
     * handler: see {@link #leaveNow}.
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
     * Has the limit of a method stop counting a handler that has started, even if other threads still run for its call.
     * Further calls for the same handler do nothing. Any thread may call this, but only one at a time.
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
     * Has the limit of a method stop counting a handler whose result nobody waits for any more. The limit ignores how
     * long this handler took. If other threads still run for the call, the last of them stops counting the handler
     * instead.
     */
    static void leaveUnlearnt(ServerCall call) {
        AdmissionLimit.Group counted = call.admitted;
        if (counted != null && call.leavesUnlessThreads(false)) {
            call.admitted = null;
            counted.release();
        }
    }

    /**
     * Has the limit of a method stop counting a handler that will not start. Both the thread that cancels the call and
     * the thread that was to run the handler may call this; the second call does nothing.
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
            // the handler waited because its connection already held too many threads, which shows nothing about the
            // limit of the method
            counted.release();
        } else {
            counted.leaveUnbegun(call.admittedNanos(), call.deadlineNanos(), now);
        }
    }

    /**
     * Removes a handler from the connection's count of running handlers, unless other threads still run for its call.
     * Further calls for the same handler do nothing.
     */
    void uncount(ServerCall call) {
        if (!call.hasThreads()) {
            uncountNow(call);
        }
    }

    /**
     * Removes a handler from the connection's count of running handlers, even if other threads still run for its call.
     * Further calls for the same handler do nothing.
     */
    void uncountNow(ServerCall call) {
        if (call.loopState.running) {
            call.loopState.running = false;
            running.handlerEnded(call.method());
        }
    }

    /** Returns whether the connection counts any handler as running. Handlers on the event loop are not counted. */
    boolean isAnyRunning() {
        return running.all() > 0;
    }

    /**
     * Records that the connection is gone. Called exactly once. From now on, its handlers that still run count in the
     * shares of connections that come later from the same address.
     */
    void connectionGone() {
        running.connectionGone();
    }
}
