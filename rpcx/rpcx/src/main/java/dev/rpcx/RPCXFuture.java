package dev.rpcx;

import java.util.concurrent.CompletableFuture;

/**
 * Holds the result of an asynchronous call. A client's method returns such a future if its declared return type is
 * {@code CompletionStage}, {@code CompletableFuture} or {@code RPCXFuture}. The future completes with the result of the
 * call, or fails with an {@link RPCXException}.
 *
 * <p>An event loop usually completes the future, and can also run the functions that are attached to the future. Attach
 * functions that block or take long with one of the {@code …Async} methods. A function that runs on the event loop must
 * not wait for another future. If it waits for a future of RPCX, the wait fails with an {@code IllegalStateException}.
 * Any other wait, such as {@code CompletableFuture.allOf(…).join()}, blocks the loop.
 *
 * <p>{@link #cancel} first runs the attached functions, except those attached with an {@code …Async} method. Then it
 * also cancels the call at the server. If the caller ends the future in another way, such as by {@link #orTimeout}, the
 * state of the call decides:
 *
 * <ul>
 *   <li>A call that still waits for a connection is not made.
 *   <li>A call in flight is cancelled if its method has {@link Method#hedgeMillis}.
 *   <li>Any other call in flight goes on at its server.
 * </ul>
 *
 * <p>The arguments are read before the client's method returns, and again for a second attempt (see
 * {@link Method#idempotent} and {@link Method#hedgeMillis}). If an argument is changed before this future has ended,
 * the second attempt can send the change.
 *
 * <p>A function runs in the {@link CallContext} in which it was attached. Calls that the function makes get at most the
 * time that remains for that context's call, and {@link Tokens#forwarding} signs them for the caller of that call. The
 * methods of this class, such as {@code thenApply}, return futures of this class. Functions attached to such a returned
 * future have a context too, but the {@code cancel} of a returned future does not cancel the call. Only
 * {@link #minimalCompletionStage} returns a plain stage of the JDK, whose functions run without the context.
 *
 * <p>A handler can return the {@code RPCXFuture} of another call. When the handler's own caller gives up, RPCX cancels
 * the returned future if both of these conditions hold:
 *
 * <ul>
 *   <li>The future's call was made in the {@link CallContext} of the handler's call.
 *   <li>Nobody else waits for the future: no other call, no attached function and no thread.
 * </ul>
 *
 * <p>To keep a future for later callers, make its call outside any call's context, or return a {@link #copy} of the
 * future.
 *
 * <p>All of this holds for the futures that RPCX creates. A subclass that you write, such as one that replaces a call
 * in a test, behaves as a plain {@code CompletableFuture}.
 */
public abstract class RPCXFuture<T> extends CompletableFuture<T> {
    /** Creates a future of a subclass that you write. No call of RPCX belongs to such a future. */
    protected RPCXFuture() {}
}
