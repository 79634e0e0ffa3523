package dev.rpcx;

import java.util.concurrent.CompletableFuture;

/**
 * Result of an asynchronous call. A client's method returns it if its declared return type is {@code CompletionStage},
 * {@code CompletableFuture} or {@code RPCXFuture}. The future ends with the result or with an {@link RPCXException}.
 *
 * <p>The future is completed on the connection's event loop. Attach dependents that block or take long with one of the
 * {@code …Async} methods. To wait on the event loop for another future, such as by
 * {@code CompletableFuture.allOf(…).join()}, blocks the loop. RPCX refuses such a wait only for its own futures, with
 * an {@code IllegalStateException}.
 *
 * <p>{@link #cancel} first runs those dependents of this future that run on the same thread, and then cancels the call
 * at the server too. If the caller ends the future in another way, such as by {@link #orTimeout}, a call that still
 * waits for a connection is not made. A call under way is cancelled if its method has {@link Method#hedgeMillis}, and
 * otherwise goes on at its server.
 *
 * <p>The arguments are read before the client's method returns, and again for a second attempt (see
 * {@link Method#idempotent} and {@link Method#hedgeMillis}). An argument that is changed before this future has ended
 * may therefore be sent with the change.
 *
 * <p>A dependent runs in the {@link CallContext} in which it was attached. A call that the dependent makes gets at most
 * the time that remains for that context's call, and {@link Tokens#forwarding} signs it for the caller of that call.
 * The methods of this class return futures of this class, whose dependents have a context too, but whose {@code cancel}
 * does not cancel the call. Only {@link #minimalCompletionStage} returns a plain stage of the JDK, whose dependents run
 * without the context.
 *
 * <p>A handler may return the {@code RPCXFuture} of another call. When the handler's own caller gives up, RPCX cancels
 * this future if its call was made for that caller, and nobody else waits for the future: no other call, no dependent,
 * no thread. To keep a future for later callers, make its call outside any call's context, or return a {@link #copy} of
 * the future.
 *
 * <p>All of this holds for the futures that RPCX makes. Your own subclass, such as one that stands in for a call in a
 * test, behaves as a plain {@code CompletableFuture}.
 */
public abstract class RPCXFuture<T> extends CompletableFuture<T> {
    /** Called by subclasses that you write yourself. A future of such a subclass stands for no call of RPCX. */
    protected RPCXFuture() {}
}
