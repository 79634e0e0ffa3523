package dev.rpcx;

import dev.rpcx.internal.call.CurrentCall;
import java.security.Principal;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * Information about the call that a handler is handling. Calls that the handler makes on its own thread get at most the
 * time that remains for the handled call.
 *
 * <p>A thread has this context while it runs the call's interceptors, its handler, or the publisher or subscriber of
 * its streams. A dependent that is attached to an {@link RPCXFuture} during that time runs with this context too. A
 * dependent of any other future runs with the context of the thread that completes the future, which may belong to
 * another call. Use {@link #on} or {@link #run} for such a dependent.
 *
 * <p>RPCX creates the contexts. Tests may implement this interface, but {@link #current} never returns their
 * implementation.
 */
public interface CallContext {
    /**
     * Runs {@code calls} with a single time limit for all RPCX calls that this code makes. The limit replaces the time
     * of each method, but never exceeds the time that remains for the call being handled. It ends only RPCX calls, not
     * computation or sleep. Blocks until {@code calls} returns.
     *
     * @param time 1 µs to 1 h
     * @return what {@code calls} returns
     * @throws IllegalArgumentException if the time is not 1 µs to 1 h
     */
    static <T> T within(Duration time, Supplier<T> calls) {
        return CurrentCall.within(time, calls);
    }

    /**
     * Returns the context of the calling thread: that of the call that the thread is handling, or inside
     * {@link #within} a context with the time that was given there. Otherwise empty.
     */
    static Optional<CallContext> current() {
        return Optional.ofNullable(CurrentCall.get());
    }

    /**
     * Runs {@code task} on the calling thread, with this context as {@link #current}. Use it for work that belongs to
     * the call and runs elsewhere, such as a dependent of a future that the handler has created. Calls that the task
     * makes get at most the time that remains for this context's call, and {@link Tokens#forwarding} signs them for the
     * caller of that call. The context may be used after its call has ended. Thread-safe: any thread may call this.
     */
    void run(Runnable task);

    /** Runs {@code calls} as {@link #run} runs a task, and returns what {@code calls} returns. */
    <T> T call(Supplier<T> calls);

    /**
     * Returns an executor that runs each task on {@code place} with this context, as {@link #run} does. For example,
     * {@code ready.thenComposeAsync(v -> down.get(v), context.on(Runnable::run))} calls {@code down.get} with this
     * context, whichever thread completes {@code ready}. Dependents of an {@link RPCXFuture} need no such executor.
     */
    Executor on(Executor place);

    /** Returns the time that remains for the call, in nanoseconds. It is zero or negative once the time is over. */
    long remainingNanos();

    /** Returns the metadata that the caller has sent beside the arguments. It may be empty, but is never null. */
    Metadata metadata();

    /**
     * Returns the identity of the caller. This is the principal that a server's interceptor has set with
     * {@link #authenticate}, otherwise the subject of the client's certificate, otherwise empty. Metadata that a client
     * sends never counts as its identity.
     */
    Optional<Principal> principal();

    /**
     * Sets the {@link #principal} of the call to {@code caller}. A server's interceptor calls this method before it
     * proceeds.
     */
    void authenticate(Principal caller);

    /**
     * Returns whether the call has been cancelled: its caller has given it up or is gone, its time is over, or the
     * server has cut it off while stopping. Nobody will read its result then. A handler that blocks is also interrupted
     * when its call is cancelled.
     */
    boolean isCancelled();

    /**
     * Registers {@code task}, which runs once if the call is cancelled (see {@link #isCancelled}) before it has ended.
     * If the call has been cancelled already, the task runs immediately on the calling thread. Otherwise it runs on the
     * kind of thread on which the method's handlers run, so it must not block if that is the event loop. The task may
     * also run if an interceptor has answered the call while the handler is still running.
     *
     * <p>A handler that returns a future can use the task to end the work that completes the future. RPCX itself does
     * not cancel the future, unless it is the {@link RPCXFuture} of a call that was made for this call, and nobody else
     * waits for that future. If the handler's future has not ended one second after the cancel, the handled call ends
     * without its result. Thread-safe: any thread may call this.
     */
    void onCancel(Runnable task);
}
