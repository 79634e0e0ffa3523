package dev.rpcx.internal.server;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;

/**
 * Counts the memory that one call of a server holds, apart from its place, with one {@link Charge} for each purpose. A
 * {@link ServerCall} makes this object when the first of these charges is needed, since most calls are charged only for
 * their place. Later calls of the same {@code ServerCall} use the object again.
 *
 * <p>Not thread-safe: at any time, only the thread that works on the call uses the object, as {@link Charge} says.
 */
final class CallCharges {
    /**
     * Counts the bytes by which the request has made the call's buffer grow, and the bytes of large metadata. For a
     * postponed call, the whole buffer and all metadata are counted. The charge lasts as follows:
     *
     * <ul>
     *   <li>The buffer is counted until the handler has ended and the reply has been sent or queued.
     *   <li>If the call takes or returns a stream, the buffer is counted only until {@link ServerCall#giveUpBody}.
     *   <li>The metadata are counted until the call is over and its last thread has ended.
     *   <li>If {@link ServerCall#giveUpRequest} releases this charge earlier, {@link #reply} counts the metadata from
     *       then on.
     * </ul>
     */
    final Charge request;

    /**
     * Counts the bytes of the Java objects into which a large request has been decoded. These bytes are counted until
     * the handler has ended. If the handler has returned a stream, they are counted until the stream has ended too. If
     * the method has interceptors, other threads can run code of the call too, for example callbacks: see
     * {@link CallThreads}. The bytes are then also counted until these threads have ended. If the server stops waiting
     * for a stage of the call that has not ended, {@link PendingResult} takes over the charge.
     */
    final Charge objects;

    /**
     * Counts the bytes of a reply and of the call's metadata. They are counted in two cases:
     *
     * <ul>
     *   <li>The reply perhaps cannot be sent completely at once.
     *   <li>The reply is large, and was made on a thread other than the event loop. That thread counts the reply before
     *       it queues the reply. Otherwise the replies of many such threads could fill the heap.
     * </ul>
     */
    final Charge reply;

    /**
     * Counts the bytes of a buffer that has grown and that the {@link ServerCall} keeps for its next call. If the next
     * request makes the buffer grow further, that growth is counted in {@link #request}.
     */
    final Charge kept;

    CallCharges(Account account) {
        request = account.charge(Resource.REQUEST_BYTES);
        objects = account.charge(Resource.OBJECT_BYTES);
        reply = account.charge(Resource.REPLY_BYTES);
        kept = account.charge(Resource.KEPT_BYTES);
    }
}
