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
 * Decides which calls of one connection may begin. A call needs:
 *
 * <ul>
 *   <li>a place, that is, a {@link ServerCall} object
 *   <li>room for its request
 *   <li>room for its handler under the {@link AdmissionLimit} of its method, the limit on how many handlers of that
 *       method run at once
 * </ul>
 *
 * <p>{@link #enter} counts the handler against that limit, and {@link #leave} stops counting it. Handlers that run on
 * the event loop have no limit, and are not counted.
 *
 * <p>Every other handler is counted by the limit of its method, and also by the connection. The limit counts the
 * handler until the handler ends, on whatever thread. {@link RunningHandlers}, the counter of the connection, counts
 * the handler until the event loop has noticed the end. Neither counts the handler of a call that is postponed because
 * the client does not read its replies.
 *
 * <p>Event loop only, unless a method says otherwise. The static methods can also run on the threads that run handlers.
 * These methods read no field of this object, because the event loop writes the fields with each call, and each read on
 * another thread would be a cache miss.
 */
final class Admission {
    /**
     * Maximum number of unused {@link ServerCall} objects that a connection keeps for later calls. Further unused
     * objects are given back to the server.
     */
    private static final int MAX_FREE = 512;

    private final ServerConnection connection;
    private final ServerCore server;
    private final Account account;

    /**
     * Charge for all {@link ServerCall} objects of this connection, both those that calls use and those that are kept
     * for later calls.
     */
    private final Charge places;

    private final RunningHandlers running;

    /**
     * First of the {@link ServerCall} objects that no call uses; null if there is none. The objects are linked by
     * {@link Outbound#next}, and the object that was used last comes first.
     */
    private @Nullable ServerCall free;

    private int freePlaces;

    /**
     * Number of calls that have a {@link ServerCall} object but do not count against the connection's maximum number of
     * calls. Nothing remains to be sent for these calls, but threads of the server still run for them: see
     * {@link #lendPlace}.
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
     * Returns a place for a new call, that is, a {@link ServerCall} object that is unused or new. A cancelled call
     * keeps its place until its handler has ended, or until the server stops waiting for the handler's future. So a
     * client cannot have more calls at once by cancelling some of them.
     *
     * @return the place; null if this connection, the client's address or the server has too many calls
     */
    @Nullable
    ServerCall place() {
        if (places.held() - freePlaces - lentPlaces >= server.settings().maxCalls()) {
            return null;
        }
        ServerCall call = free;
        if (call != null) {
            free = (ServerCall) call.next;
            // The link to the next unused object is cleared. Otherwise the objects behind this one could not be
            // garbage-collected while a call uses this object. A plain write is enough, as in keep().
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
     * Returns the number of calls of this connection that have a place. Any thread may call this method, but the number
     * is exact only while no call begins or ends.
     */
    long taken() {
        return places.held() - freePlaces;
    }

    /**
     * Keeps the {@link ServerCall} object of a call that is over or has been refused, for a later call. If
     * {@link #MAX_FREE} unused objects are kept already, gives the object back to the server.
     */
    void keep(ServerCall call) {
        boolean isKept = false;
        try {
            if (freePlaces < MAX_FREE) {
                call.keepBody();
                // A plain write is enough, because only the event loop reads the list of unused objects.
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
     * Takes back the {@link ServerCall} object of a call that is over. The object is kept for a later call, or given
     * back to the server. If {@link ServerCall#isPlaceKeptCharged} is set, the object is not used again, but stays
     * charged.
     */
    void takeBack(ServerCall call) {
        if (call.isPlaceKeptCharged) {
            // The charge for this ServerCall remains, because the handler's future may still hold memory of the call.
            // So the ServerCall is not used again. The connection gives up the charge, because a LingeringCharge holds
            // it now.
            call.releasePlace();
            places.handOver(1);
        } else if (connection.isClosed()) {
            giveBack(call);
        } else {
            keep(call);
        }
    }

    /**
     * Gives back the {@link ServerCall} object of a call that could not begin because there was no memory. If
     * {@link #enter} has counted the call's handler, also stops counting the handler.
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
     * Stops counting a call against the connection's maximum number of calls, although the call keeps its
     * {@link ServerCall} object. Called when nothing remains to be sent for the call, but threads of the server still
     * run for it.
     *
     * <p>Does nothing for a cancelled call. Also does nothing if the number of calls that are not counted has reached
     * the same maximum.
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
     * Counts a call against the connection's maximum number of calls again, if {@link #lendPlace} has stopped counting
     * it. Called when no thread runs for the call any more.
     */
    void endLoan(ServerCall call) {
        if (call.loopState.isPlaceLent) {
            call.loopState.isPlaceLent = false;
            lentPlaces--;
        }
    }

    /** Gives all unused {@link ServerCall} objects back to the server. */
    void giveUpPlaces() {
        giveUpPlaces(freePlaces);
    }

    /** Gives half of the unused {@link ServerCall} objects, rounded up, back to the server. */
    void giveUpHalf() {
        giveUpPlaces(freePlaces - freePlaces / 2);
    }

    /**
     * Gives {@code count} unused {@link ServerCall} objects back to the server. The connection keeps the objects that
     * were used last.
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
     * Charges a call for the metadata of its request, that is, counts their bytes against the memory limits of the
     * server. Metadata up to the following size are not charged:
     *
     * <ul>
     *   <li>{@link UnchargedAllowance#metadataBytes()}, at most 4 KiB, if the whole request has arrived, the method has
     *       an {@link AdmissionLimit}, and the method returns no stream
     *   <li>512 bytes in all other cases
     * </ul>
     *
     * @param bytes memory that the metadata take, in bytes
     * @param more whether more parts of the request are to come
     * @return false if there is no room for the metadata
     */
    boolean holdMetadata(ServerCall call, ServerMethod method, int bytes, boolean more) {
        return bytes <= unchargedMetadata(method, more)
                || call.charges().request.add(bytes);
    }

    private int unchargedMetadata(ServerMethod method, boolean more) {
        return more || method.admission() == null || method.returnsStream()
                ? UnchargedAllowance.MAX_IDLE_METADATA_BYTES
                : connection.uncharged.metadataBytes();
    }

    /**
     * Copies a request that came in one frame into the call's buffer, because the handler reads the request on another
     * thread.
     *
     * @return false if the server, the client's address or the connection already holds too many bytes of requests
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
     * @return false if the server, the client's address or the connection already holds too many bytes of requests
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
     * Admits and counts the handler of a call whose request has arrived completely, or refuses the handler. A handler
     * that runs on the event loop is always admitted, and not counted.
     *
     * @return false if the handler is refused, because the connection's share or the limit of the method has no room
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
     * Removes the call's handler from the count of running handlers in its method's {@link AdmissionLimit}. Called when
     * the handler has ended or will not start, or when the call is postponed before the handler starts. If this method
     * is called again for the same handler, it does nothing. Any thread may call this.
     *
     * <p>If the method has interceptors, and other threads still run for the call, the handler stays counted. The last
     * of these threads then removes the handler from the count, by {@link #leaveNow}.
     *
     * @param isDone whether the call has brought a result
     */
    static void leave(ServerCall call, boolean isDone) {
        if (!call.hasBegun()) {
            leaveUnbegun(call);
        } else if (call.mayLeaveNow(isDone)) {
            leaveNow(call, isDone);
        }
    }

    /**
     * Removes the call's handler from the count of running handlers in its method's {@link AdmissionLimit}, even if
     * other threads still run for the call. Called only for a call that has begun, that is, whose handler or first
     * interceptor has started. If this method is called again for the same handler, it does nothing. Any thread may
     * call this, but only one at a time for a call.
     *
     * @param isDone whether the call has brought a result
     */
    static void leaveNow(ServerCall call, boolean isDone) {
        AdmissionLimit.Group counted = call.admitted;
        if (counted != null) {
            long now = call.connection.nanoTime();
            call.admitted = null;
            counted.release(call.measuredFromNanos(), call.deadlineNanos(), now, isDone);
        }
    }

    /**
     * Removes the call's handler from the count of running handlers in its method's {@link AdmissionLimit}, because
     * nobody waits for the result any more. The limit ignores how long this handler took. If the method has
     * interceptors, and other threads still run for the call, the handler stays counted. The last of these threads then
     * removes it, by {@link #leaveNow}.
     */
    static void leaveUnlearnt(ServerCall call) {
        AdmissionLimit.Group counted = call.admitted;
        if (counted != null && call.mayLeaveNow(false)) {
            call.admitted = null;
            counted.release();
        }
    }

    /**
     * Removes the handler of a call that has not begun from the count of running handlers in its method's
     * {@link AdmissionLimit}. The handler will not start, or it does not start yet because its call is postponed.
     *
     * <p>Two threads can call this method at the same time: the event loop that ends the call, and the thread that was
     * to run the handler. {@link ServerCall#takeAdmitted} returns the {@link AdmissionLimit.Group} of the handler to
     * only one of these threads, so the handler is not removed twice. The two threads can meet, by chance, in
     * {@code SharedPoolTest.callsThatWaitForAThreadEndWithTheirConnection}.
     */
    private static void leaveUnbegun(ServerCall call) {
        // The clock is read before takeAdmitted() is called. If the clock fails, the handler is still counted, and the
        // code that ends the call can remove it from the count.
        long now = call.connection.nanoTime();
        AdmissionLimit.Group counted = call.takeAdmitted();
        if (counted == null) {
            return;
        }
        PoolShares.Task waits = call.handed == null ? call : call.handed;
        if (call.connection.threads.waitsForItsOwn(call.method().place(), waits)) {
            // The handler waited because its connection already held too many threads. Such a wait says nothing about
            // the method, so the limit ignores it.
            counted.release();
        } else {
            counted.leaveUnbegun(call.measuredFromNanos(), call.deadlineNanos(), now);
        }
    }

    /**
     * Removes the call's handler from the connection's count of running handlers, unless other threads still run for
     * the call. If this method is called again for the same handler, it does nothing.
     */
    void uncount(ServerCall call) {
        if (!call.hasThreads()) {
            uncountNow(call);
        }
    }

    /**
     * Removes the call's handler from the connection's count of running handlers, even if other threads still run for
     * the call. If this method is called again for the same handler, it does nothing.
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
     * Records that the connection has closed. Must be called exactly once. From now on, handlers of the connection that
     * still run count in the shares of later connections from the same address.
     */
    void connectionGone() {
        running.connectionGone();
    }
}
