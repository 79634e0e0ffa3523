package dev.rpcx;

import dev.rpcx.internal.call.CurrentCall;
import java.security.Principal;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * Information about the call that a handler handles. Calls that the handler makes on its own thread have no more time
 * than is left of the handled call.
 *
 * <p>A thread has the context of a call while it runs the call's interceptors, its handler, or the publisher or
 * subscriber of its streams. A dependent that is attached to an {@link RPCXFuture} meanwhile has this context too, on
 * whatever thread it runs. A dependent of any other future runs with the context of the thread that completes that
 * future, which may be the context of another call: {@link #on} and {@link #run} let it run with this context.
 *
 * <p>RPCX makes the contexts. An implementation of your own serves tests of code that takes a context;
 * {@link #current} never returns it.
 */
public interface CallContext {
    /**
     * Runs {@code calls}, and gives the RPCX calls that it makes this much time, all of them together, instead of each
     * method's own time, and never more than is left of the call being handled. The time bounds the RPCX calls and not
     * {@code calls} itself: a computation or a sleep there goes on. Blocks until {@code calls} returns.
     *
     * @throws IllegalArgumentException a time that is not 1 µs to 1 h
     */
    static <T> T within(Duration time, Supplier<T> calls) {
        return CurrentCall.within(time, calls);
    }

    /**
     * The context of this thread: that of the call which it is handling, or of the calls to which {@link #within} has
     * given a time.
     */
    static Optional<CallContext> current() {
        return Optional.ofNullable(CurrentCall.get());
    }

    /**
     * Runs {@code task} on the calling thread, with this context as {@link #current} meanwhile. It is meant for a task
     * that belongs to the call and runs elsewhere, such as a dependent of a future of the handler's own making. Calls
     * that the task makes have no more time than is left of this context's call, and {@link Tokens#forwarding} signs
     * them for that call's caller, whatever else the thread handles. The context may be used after its call has ended.
     * Thread-safe.
     */
    void run(Runnable task);

    /** As {@link #run}, and returns what {@code calls} returns. */
    <T> T call(Supplier<T> calls);

    /**
     * Returns an executor that hands each task to {@code place}, to be run with this context as by {@link #run}. In
     * {@code ready.thenComposeAsync(v -> down.get(v), context.on(Runnable::run))} the call {@code down.get} is made
     * within this context, whichever thread completes {@code ready}. The dependents of an {@link RPCXFuture} need no
     * such executor: they run in the context in which they were attached.
     */
    Executor on(Executor place);

    /** Time left for the call, in nanoseconds; zero or less when the time is over. */
    long remainingNanos();

    /** Metadata that the caller has sent beside the arguments; may be empty, never null. */
    Metadata metadata();

    /**
     * Identity of the caller: the principal that a server's interceptor has set with {@link #authenticate}, otherwise
     * the subject of the client's certificate, otherwise empty. Nothing that a client sends as metadata is taken for
     * its identity.
     */
    Optional<Principal> principal();

    /** Sets the {@code principal} of the call. For a server's interceptor, before it proceeds. */
    void authenticate(Principal caller);

    /**
     * True once the caller has given the call up, or is gone, so that nobody will read the result. A handler that
     * blocks is interrupted as well.
     */
    boolean isCancelled();

    /**
     * Has {@code task} run once if, before the call has ended, its caller gives up or is gone, or its time is over. If
     * that has happened already, the task runs at once on the calling thread. It never runs for a call that ends in
     * good time, unless the handler runs on after an interceptor has answered the call. The task runs where the
     * method's handlers run, so for a method on the event loop it may not block.
     *
     * <p>A handler that returns a future can use the task to end the work that completes the future. RPCX itself leaves
     * the future alone, since others may hold it too, unless it is the {@link RPCXFuture} of a call that was made for
     * this call, and nobody else waits for it. One second later the call is over, whether its result comes or not.
     * Thread-safe.
     */
    void onCancel(Runnable task);
}
