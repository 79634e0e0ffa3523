package dev.rpcx.internal.server;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;

/**
 * Charges of one call at a server. Most calls are charged only for their place, so this object is made when it is first
 * needed. Later calls of the same {@code ServerCall} use it again.
 *
 * <p>Not thread-safe: the object belongs to whoever owns the call at that time, as {@link Charge} says.
 */
final class CallCharges {
    /**
     * Charge for the growth of the call's buffer by the request, and for metadata that are not small. Held until the
     * handler has ended and its reply has been sent or queued. The metadata stay charged until the threads of the call
     * have ended.
     */
    final Charge request;

    /**
     * Charge for the objects into which a large request has been read. Held until the handler, and the threads that the
     * call's interceptors have started, have ended.
     */
    final Charge objects;

    /**
     * Charge for a reply, together with the metadata of its call. A reply is charged if it cannot be sent immediately.
     * A thread other than the event loop charges a large reply before it queues it, since otherwise all threads
     * together could make more replies than the heap can hold.
     */
    final Charge reply;

    /** Charge for the call's buffer while it is kept for the next call, for the size that it had when it was kept. */
    final Charge kept;

    CallCharges(Account account) {
        request = account.charge(Resource.REQUEST_BYTES);
        objects = account.charge(Resource.OBJECT_BYTES);
        reply = account.charge(Resource.REPLY_BYTES);
        kept = account.charge(Resource.KEPT_BYTES);
    }
}
