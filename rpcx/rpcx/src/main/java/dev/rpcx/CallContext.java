package dev.rpcx;

import dev.rpcx.internal.call.CurrentCall;
import java.security.Principal;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * Information about the call that a handler handles. Calls that the handler makes on its own thread get no more time
 * than the handled call has remaining.
 *
 * <p>A thread has the context of a call while it runs the call's interceptors, its handler, or the publisher or
 * subscriber of its streams. If a dependent is attached to an {@link RPCXFuture} during that time, the dependent runs
 * with this context too, on whatever thread it runs. A dependent of any other future runs with the context of the
 * thread that completes that future, which may be the context of another call. Use {@link #on} or {@link #run} to run
 * such a dependent with this context.
 *
 * <p>RPCX creates the contexts. You can implement this interface for tests of code that takes a context, but
 * {@link #current} never returns your implementation.
 */
public interface CallContext {
    /**
     * Runs {@code calls}, and sets one time limit for all RPCX calls together that this code makes. This limit replaces
     * the time of each method, but it cannot exceed the time that remains for the call being handled. The limit ends no
     * computation and no sleep within {@code calls}, but only RPCX calls. Blocks until {@code calls} returns.
     *
     * @param time 1 µs to 1 h
     * @return what {@code calls} returns
     * @throws IllegalArgumentException if the time is not 1 µs to 1 h
     */
    static <T> T within(Duration time, Supplier<T> calls) {
        return CurrentCall.within(time, calls);
    }

    /**
     * Returns the context of the calling thread. While the thread handles a call, that is the context of the call.
     * While the thread runs {@link #within}, the result is a context with the time that was given there. Otherwise the
     * result is empty.
     */
    static Optional<CallContext> current() {
        return Optional.ofNullable(CurrentCall.get());
    }

    /**
     * Runs {@code task} on the calling thread. While the task runs, {@link #current} returns this context. Use this
     * method for a task that belongs to the call and runs elsewhere, such as a dependent of a future that the handler
     * has created. Calls that the task makes have no more time than the call of this context has remaining, and
     * {@link Tokens#forwarding} signs these calls for the caller of the context's call, even if the thread is handling
     * another call. The context may be used after its call has ended. Thread-safe: any thread may call this.
     */
    void run(Runnable task);

    /** Runs {@code calls} as {@link #run} runs a task, and returns what {@code calls} returns. */
    <T> T call(Supplier<T> calls);

    /**
     * Returns an executor that hands each task to {@code place}, which runs it with this context, as {@link #run} does.
     * For example, in {@code ready.thenComposeAsync(v -> down.get(v), context.on(Runnable::run))} the call
     * {@code down.get} is made within this context, whichever thread completes {@code ready}. The dependents of an
     * {@link RPCXFuture} need no such executor: they run in the context in which they were attached.
     */
    Executor on(Executor place);

    /** Returns the time that remains for the call, in nanoseconds. It is zero or negative once the time is over. */
    long remainingNanos();

    /** Returns the metadata that the caller has sent beside the arguments. It may be empty, but is never null. */
    Metadata metadata();

    /**
     * Returns the identity of the caller. This is the principal that a server's interceptor has set with
     * {@link #authenticate}. If none has been set, it is the subject of the client's certificate; without a certificate
     * it is empty. Metadata that a client sends never counts as its identity.
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
     * Registers {@code task}, which runs once if the call is cancelled before it has ended: its caller gives it up or
     * is gone, its time is over, or the server cuts it off while stopping. If that has already happened, the task runs
     * immediately on the calling thread. The task does not run for a call that ends in time. There is one exception: it
     * may run if an interceptor has answered the call while the handler is still running. The task runs on the kind of
     * thread on which the method's handlers run, so it must not block if that is the event loop.
     *
     * <p>A handler that returns a future can use the task to end the work that completes the future. RPCX itself does
     * not cancel the future, since others may hold it too. There is one exception: if the handler returns the
     * {@link RPCXFuture} of a call that was made for this call, and nobody else waits for that future, RPCX cancels it.
     * If the handler's future has not ended one second after the cancel, the handled call ends without its result.
     * Thread-safe: any thread may call this.
     */
    void onCancel(Runnable task);
}
