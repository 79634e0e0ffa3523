package dev.rpcx;

import dev.rpcx.internal.call.CurrentCall;
import java.security.Principal;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Information about the call that a handler is handling, such as the remaining time and the caller. A call that the
 * handler makes on its own thread gets at most the time that remains for the handled call.
 *
 * <p>{@link #current} returns this context on a thread that runs one of the following:
 *
 * <ul>
 *   <li>the interceptors and the handler of the call
 *   <li>the publisher or the subscriber of a stream of the call
 *   <li>a callback, such as a function given to {@code thenApply}, that was attached to an {@link RPCXFuture} on a
 *       thread with this context
 *   <li>a task that was wrapped by {@link #wrap(Runnable)} on a thread with this context
 * </ul>
 *
 * <p>A thread that a handler starts, or a task that it gives to a pool, has no context: calls that it makes have
 * neither the time nor the caller of the handled call. {@link #wrap(Executor)} carries the context there.
 *
 * <p>A callback of any other future runs with the context of the thread that completes the future. That context can
 * belong to another call. To run such a callback with this context, use {@link #on} or {@link #run}.
 *
 * <p>RPCX creates the contexts. Tests may implement this interface, but {@link #current} never returns such an
 * implementation.
 */
public interface CallContext {
    /**
     * Runs {@code calls} on the calling thread, and sets one common time limit for all RPCX calls that {@code calls}
     * makes. The limit replaces the time of each called method, but never exceeds the time that remains for the call
     * being handled. Only RPCX calls end at the limit; computation and sleep go on. This method returns when
     * {@code calls} returns.
     *
     * @param time time limit: 1 µs to 1 h
     * @param calls code that makes the RPCX calls
     * @return what {@code calls} returns
     * @throws IllegalArgumentException if the time is not 1 µs to 1 h
     */
    static <T> T within(Duration time, Supplier<T> calls) {
        return CurrentCall.within(time, calls);
    }

    /**
     * Runs {@code calls} on the calling thread, and sends one more entry of metadata with all RPCX calls that
     * {@code calls} makes. An interceptor sees the entry in {@link Interceptor.Invocation#metadata}. The classic wire
     * sends no metadata. This method returns when {@code calls} returns. Inside it, the thread has a context, which
     * leaves the times of calls as they are outside.
     *
     * @param name name of the entry: 1 or more characters
     * @param calls code that makes the RPCX calls
     * @return what {@code calls} returns
     */
    static <T> T with(String name, String value, Supplier<T> calls) {
        return CurrentCall.sending(metadata -> metadata.with(name, value), calls);
    }

    /**
     * Runs {@code calls} on the calling thread, and passes the metadata of the reply to {@code listener}, for all RPCX
     * calls that {@code calls} makes. {@link Interceptor.Invocation#onReply} says when the listener runs.
     *
     * @param calls code that makes the RPCX calls
     * @return what {@code calls} returns
     */
    static <T> T onReply(Consumer<Metadata> listener, Supplier<T> calls) {
        return CurrentCall.sending(metadata -> metadata.onReply(listener), calls);
    }

    /**
     * Returns the context of the calling thread, or empty if the thread has none. A thread has a context while the
     * thread runs the code that the description of {@link CallContext} lists. Inside {@link #within}, the thread has a
     * context with the time limit that was given to {@code within}, or with the remaining time of the handled call if
     * that time is shorter.
     */
    static Optional<CallContext> current() {
        return Optional.ofNullable(CurrentCall.get());
    }

    /**
     * Returns a task that runs {@code task} with the context that the calling thread has now, whichever thread runs it.
     * If the calling thread has no context, the task runs without one, even on a thread that has one. Use this method
     * for a task of a pool, or of a structured task scope.
     */
    static Runnable wrap(Runnable task) {
        return CurrentCall.wrap(task);
    }

    /** Returns a task that calls {@code task} as {@link #wrap(Runnable)} runs a task, and returns its result. */
    static <T> Callable<T> wrap(Callable<T> task) {
        return CurrentCall.wrap(task);
    }

    /**
     * Returns an executor that wraps each of its tasks by {@link #wrap(Runnable)}, and passes it to {@code place}. So
     * each task runs with the context of the thread that has given the task to the executor. One such executor serves
     * all calls, as in {@code CompletableFuture.supplyAsync(() -> down.get(id), executor)}. The executor of {@link #on}
     * runs all its tasks with one context.
     */
    static Executor wrap(Executor place) {
        return CurrentCall.wrap(place);
    }

    /**
     * Makes {@code context} the context of the calling thread, or takes its context from the thread if {@code context}
     * is null. This method is for libraries that carry what belongs to a thread to other threads. The library has to
     * set the earlier context again, since the thread would keep this one for its later work. All other code uses
     * {@link #wrap(Runnable)} or {@link #run}, which do so themselves.
     *
     * @throws IllegalArgumentException if RPCX has not created the context
     */
    static void set(@Nullable CallContext context) {
        CurrentCall.setGiven(context);
    }

    /**
     * Runs {@code task} on the calling thread, with this context as the thread's {@link #current} context. Use this
     * method for work that belongs to the call but is not started by RPCX, such as a callback of a future that the
     * handler has created. Calls that the task makes get at most the time that remains for the call of this context.
     * For these calls, {@link Tokens#forwarding} uses the {@link #principal} of this context.
     *
     * <p>The context can still be used after its call has ended. Thread-safe: any thread may call this method.
     */
    void run(Runnable task);

    /** Runs {@code calls} with this context, as {@link #run} runs a task, and returns what {@code calls} returns. */
    <T> T call(Supplier<T> calls);

    /**
     * Returns an executor that passes each task to {@code place}, and runs the task there with this context. For
     * example, {@code ready.thenComposeAsync(v -> down.get(v), context.on(Runnable::run))} calls {@code down.get} with
     * this context, whichever thread completes {@code ready}. Callbacks of an {@link RPCXFuture} need no such executor.
     */
    Executor on(Executor place);

    /**
     * Returns the time that remains for the call, in nanoseconds. A result of zero or less means that the time is over.
     */
    long remainingNanos();

    /** Returns the metadata that the caller has sent beside the arguments; empty if the caller has sent none. */
    Metadata metadata();

    /**
     * Adds an entry to the metadata that are sent with the reply of the call, or with its error. An existing entry with
     * this name gets the new value. A handler or an interceptor of a server calls this method before the call has
     * ended. The caller gets the metadata by {@link Interceptor.Invocation#onReply}, {@link #onReply} or
     * {@link RPCXException#metadata}. The reply at the end of a stream, and a reply on the classic wire, carry none.
     * Thread-safe.
     *
     * <p>A context that belongs to no handled call does nothing, and so does the default implementation.
     *
     * @throws RPCXException with {@link RPCXException.Code#TOO_LARGE}, if the metadata have more than
     *     {@link Metadata#MAX_REPLY_BYTES} then
     */
    default void reply(String name, String value) {}

    /**
     * Returns the identity of the caller, which is the first of the following that exists:
     *
     * <ul>
     *   <li>the principal that a server's interceptor has set with {@link #authenticate}
     *   <li>the subject of the client's TLS certificate
     * </ul>
     *
     * <p>If neither exists, the result is empty. RPCX never takes the identity from the metadata that a client sends.
     */
    Optional<Principal> principal();

    /**
     * Sets the identity of the caller, which {@link #principal} returns. A server's interceptor calls this method
     * before {@link Interceptor.Next#proceed}.
     */
    void authenticate(Principal caller);

    /**
     * Returns whether the call has been cancelled. Nobody reads the result of a cancelled call. The reason for a cancel
     * is one of these: the caller has given up the call or is gone, the time of the call is over, or the server has cut
     * off the call while stopping. A cancel also interrupts a handler that blocks.
     */
    boolean isCancelled();

    /**
     * Registers a task that runs once when the call is cancelled (see {@link #isCancelled}). Thread-safe: any thread
     * may call this method.
     *
     * <ul>
     *   <li>If the call has been cancelled already, the task runs immediately on the calling thread.
     *   <li>If the call is cancelled later, before the call has ended, the task runs on the kind of thread on which the
     *       method's handlers run. If that is an event loop, the task must not block.
     *   <li>If an interceptor answers the call while the handler is still running, the task can run although the call
     *       was not cancelled.
     * </ul>
     *
     * <p>A handler that returns a future can register a task that stops the work behind the future. RPCX itself cancels
     * the handler's future only if the future is the {@link RPCXFuture} of a call that the handler has made, and
     * nothing else waits for this future. If the handler's future has not ended one second after the cancel, the
     * handled call ends without a result.
     */
    void onCancel(Runnable task);
}
