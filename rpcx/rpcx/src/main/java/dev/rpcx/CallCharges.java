package dev.rpcx;

/**
 * What a server's call is charged for. Most calls are small and charged for nothing but their place, so a call makes
 * this when it needs it first, and keeps it for those that use the same object later.
 *
 * <p>Not thread-safe: it belongs to whoever owns the call at the time, as {@link Charge} says.
 */
final class CallCharges {
    /**
     * The charge is for what the buffer grows by for the request, and for metadata that is not small, from their
     * arrival until the handler has ended and its reply has left or waits to leave. Threads that run on behind a reply
     * have the metadata for as long as they run.
     */
    final Charge request;

    /**
     * The charge is for what a large request has been read into, from then until its handler has ended, and so have
     * the threads that its interceptors have begun.
     */
    final Charge objects;

    /**
     * The charge is for a reply that cannot leave at once, with its call's metadata, or that another thread than the
     * event loop has made. That thread charges it before it is queued, as what all threads make at once could be more
     * than the heap holds.
     */
    final Charge reply;

    /** The charge is for the buffer as it was when it was kept for the next call, until it is given up. */
    final Charge kept;

    CallCharges(Account account) {
        request = account.charge(Resource.REQUEST_BYTES);
        objects = account.charge(Resource.OBJECT_BYTES);
        reply = account.charge(Resource.REPLY_BYTES);
        kept = account.charge(Resource.KEPT_BYTES);
    }
}
