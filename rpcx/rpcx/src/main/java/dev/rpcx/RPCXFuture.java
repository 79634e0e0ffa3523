package dev.rpcx;

import java.util.concurrent.CompletableFuture;

/**
 * The result of an asynchronous call: what a client's method gets when it is declared to return
 * {@code CompletionStage}, {@code CompletableFuture} or {@code RPCXFuture}. Ends with the result or an
 * {@link RPCXException}. It is completed on the connection's event loop: what depends on it and blocks or takes long
 * belongs behind one of the {@code …Async} methods. To wait there for another future, such as by
 * {@code CompletableFuture.allOf(…).join()}, blocks the loop, and nothing refuses it where that future is none of
 * RPCX's. {@link #cancel} reaches the server, behind what depends on this future and runs on the same thread. Where the
 * caller ends this in another way, such as by {@link #orTimeout}, a call that waits for a connection is not made, and
 * one that is under way goes on at its server, unless it has {@link Method#hedgeMillis}: that is cancelled.
 *
 * <p>The arguments are read within the call of the method, and once more where it is made again before this future has
 * ended, as {@link Method#idempotent} and {@link Method#hedgeMillis} say. Who changes them meanwhile changes what is
 * sent then; what they become afterwards is never sent.
 *
 * <p>What depends on it, or on a future that its methods give, runs in the {@link CallContext} that was current where
 * it was attached: calls that it makes have that call's time, and {@link Tokens#forwarding} signs them for its caller.
 * Not so what depends on {@link #minimalCompletionStage}, which the JDK makes. The futures that its methods give are of
 * this type too, but stand for no call: to cancel one of them leaves the call alone.
 *
 * <p>Where a handler returns one, and its own caller gives up, the future is cancelled if its call was made for that
 * caller, and nobody else waits for it: no other call, no dependent, no thread. One that is kept for the callers to
 * come has to be made for nobody, or returned as {@link #copy}.
 *
 * <p>All of this is true of the futures that RPCX makes. A subclass of your own, such as one that stands in for a call
 * in a test, is a plain {@code CompletableFuture}, and what its author makes of it.
 */
public abstract class RPCXFuture<T> extends CompletableFuture<T> {
    /** For a subclass of your own, behind which no call stands. */
    protected RPCXFuture() {}
}
