package dev.rpcx;

import java.util.concurrent.CompletableFuture;

/**
 * Result of an asynchronous call. A client's method returns it if it is declared to return {@code CompletionStage},
 * {@code CompletableFuture} or {@code RPCXFuture}. It ends with the result or an {@link RPCXException}.
 *
 * <p>The future is completed on the connection's event loop: a dependent that blocks or takes long has to be attached
 * with one of the {@code …Async} methods. A dependent that waits for another future there, such as by
 * {@code CompletableFuture.allOf(…).join()}, blocks the loop; RPCX refuses such a wait only for its own futures.
 *
 * <p>{@link #cancel} reaches the server, after the dependents of this future that run on the same thread. Where the
 * caller ends the future in another way, such as by {@link #orTimeout}, a call that still waits for a connection is not
 * made. A call that is under way goes on at its server, unless its method has {@link Method#hedgeMillis}: then it is
 * cancelled.
 *
 * <p>The arguments are read within the call of the method, and once more where the call is made again before this
 * future has ended, as {@link Method#idempotent} and {@link Method#hedgeMillis} say. A change of an argument in the
 * meantime changes what is sent then; a change after the end of this future is never sent.
 *
 * <p>A dependent of this future, or of a future that its methods return, runs in the {@link CallContext} that was
 * current where it was attached: calls that the dependent makes have the time of that context's call, and
 * {@link Tokens#forwarding} signs them for its caller. This does not hold for dependents of
 * {@link #minimalCompletionStage}, which the JDK makes. The futures that the methods of this class return are of this
 * type too, but stand for no call: the cancel of such a future does not cancel the call.
 *
 * <p>Where a handler returns such a future, and the handler's own caller gives up, the future is cancelled if its call
 * was made for that caller, and nobody else waits for it: no other call, no dependent, no thread. A future that is kept
 * for later callers has to be made outside any call's context, or returned as {@link #copy}.
 *
 * <p>All of this holds for the futures that RPCX makes. A subclass of your own, such as one that stands in for a call
 * in a test, is a plain {@code CompletableFuture}, and behaves as its author has written it.
 */
public abstract class RPCXFuture<T> extends CompletableFuture<T> {
    /** For a subclass of your own, which stands for no call of RPCX. */
    protected RPCXFuture() {}
}
