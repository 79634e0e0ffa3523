package dev.rpcx;

import java.util.concurrent.CompletableFuture;

/**
 * Result of an asynchronous call. A client's method returns it if its declared return type is {@code CompletionStage},
 * {@code CompletableFuture} or {@code RPCXFuture}. The future ends with the result or with an {@link RPCXException}.
 *
 * <p>The future is completed on the connection's event loop. So a dependent that blocks or takes long has to be
 * attached with one of the {@code …Async} methods. A dependent that waits for another future on the event loop, such as
 * by {@code CompletableFuture.allOf(…).join()}, blocks the loop. RPCX refuses such a wait only for its own futures,
 * with an {@code IllegalStateException}.
 *
 * <p>{@link #cancel} first runs those dependents of this future that run on the same thread, and then cancels the call
 * at the server too. If the caller ends the future in another way, such as by {@link #orTimeout}, a call that still
 * waits for a connection is not made. A call that is under way goes on at its server. But if its method has
 * {@link Method#hedgeMillis}, the call is cancelled.
 *
 * <p>The arguments are read before the client's method returns. They are read once more if the call is sent again
 * before this future has ended, as {@link Method#idempotent} and {@link Method#hedgeMillis} describe. So if an argument
 * is changed in the meantime, the second attempt sends the changed argument. A change after the end of this future is
 * never sent.
 *
 * <p>A dependent runs in the {@link CallContext} that was current when the dependent was attached. This holds for the
 * dependents of this future, and for those of the futures that its methods return. A call that the dependent makes has
 * no more time than the call to which that context belongs, and {@link Tokens#forwarding} signs it for the caller of
 * that call. Only {@link #minimalCompletionStage} returns a plain stage of the JDK, whose dependents run without the
 * context. All other methods that return a future return one of this class. Such a future stands for no call: to cancel
 * it does not cancel the call.
 *
 * <p>A handler may return the {@code RPCXFuture} of another call. When the handler's own caller gives up, RPCX cancels
 * this future if its call was made for that caller, and nobody else waits for the future: no other call, no dependent,
 * no thread. To keep a future for later callers, make its call outside any call's context, or return a {@link #copy} of
 * the future.
 *
 * <p>All of this holds for the futures that RPCX makes. Your own subclass, such as one that stands in for a call in a
 * test, is a plain {@code CompletableFuture}, and behaves as you have written it.
 */
public abstract class RPCXFuture<T> extends CompletableFuture<T> {
    /** Called by subclasses that you write yourself. A future of such a subclass stands for no call of RPCX. */
    protected RPCXFuture() {}
}
