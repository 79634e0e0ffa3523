package dev.rpcx.internal.server;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;

/**
 * The charges of one call at a server. Most calls are small and charged for nothing but their place, so a call makes
 * this object when it first needs it, and keeps it for the calls that use the same call object later.
 *
 * <p>Not thread-safe: the object belongs to whoever owns the call at the time, as {@link Charge} says.
 */
final class CallCharges {
    /**
     * Charge for the bytes by which the buffer grows for the request, and for metadata that are not small, from their
     * arrival until the handler has ended and its reply has left or waits to leave. If threads of the call run on after
     * its reply, the metadata stay charged for as long as these threads run.
     */
    final Charge request;

    /**
     * Charge for the objects that a large request has been read into, from then until its handler and the threads that
     * its interceptors have begun have ended.
     */
    final Charge objects;

    /**
     * Charge for a reply that cannot leave at once, with its call's metadata, or that another thread than the event
     * loop has made. That thread charges the reply before it queues it, since all threads at once could make more than
     * the heap holds.
     */
    final Charge reply;

    /** Charge for the buffer, at its size when it was kept for the next call, until the buffer is given up. */
    final Charge kept;

    CallCharges(Account account) {
        request = account.charge(Resource.REQUEST_BYTES);
        objects = account.charge(Resource.OBJECT_BYTES);
        reply = account.charge(Resource.REPLY_BYTES);
        kept = account.charge(Resource.KEPT_BYTES);
    }
}
