package dev.rpcx.internal.server;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;

/**
 * Charges of one call at a server. Most calls are small, and are charged for nothing but their place. So a call makes
 * this object only when it first needs it. The object stays with the {@code ServerCall}, and is used again by later
 * calls that use the same {@code ServerCall}.
 *
 * <p>Not thread-safe: the object belongs to whoever owns the call at that time, as {@link Charge} says.
 */
final class CallCharges {
    /**
     * Charge for the bytes by which the call's buffer grows to hold the request, and for metadata that are not small.
     * The charge is held from the arrival of the request until the handler has ended and its reply has been sent or
     * waits to be sent. If threads of the call run on after its reply, the metadata stay charged until these threads
     * have ended.
     */
    final Charge request;

    /**
     * Charge for the objects into which a large request has been read. It is held until the handler has ended, and the
     * threads that the call's interceptors have started have ended too.
     */
    final Charge objects;

    /**
     * Charge for a reply, together with the metadata of its call. A reply is charged if it cannot be sent immediately,
     * or if it is large and a thread other than the event loop has made it. That thread charges the reply before it
     * queues it, since otherwise all threads together could make more replies than the heap can hold.
     */
    final Charge reply;

    /**
     * Charge for the call's buffer if it is kept for the next call. The charge is for the size that the buffer had when
     * it was kept, and is held until the buffer is given up.
     */
    final Charge kept;

    CallCharges(Account account) {
        request = account.charge(Resource.REQUEST_BYTES);
        objects = account.charge(Resource.OBJECT_BYTES);
        reply = account.charge(Resource.REPLY_BYTES);
        kept = account.charge(Resource.KEPT_BYTES);
    }
}
