package dev.rpcx;

import java.security.Principal;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * What a handler may ask about the call it is handling. Calls that it makes on its own thread have no more time than is
 * left of this one.
 *
 * <p>A thread has the context of a call while it runs the call's interceptors, its handler, or the publisher or
 * subscriber of its streams. What depends on an {@link RPCXFuture}, and is attached to it there, has it too, wherever
 * it runs. What depends on another future runs with whatever context the thread has that completes it, which may be
 * that of another call: {@link #on} and {@link #run} give it this one.
 *
 * <p>RPCX makes these. One of your own is for tests of what takes one: it is {@link #current} nowhere.
 */
public interface CallContext {
    /**
     * Runs {@code calls} with this much time for all of them together, instead of each method's own, and never more
     * than is left of the call being handled. It bounds the calls that are made within, not {@code calls} itself: what
     * computes or sleeps there goes on. Blocks as long as they do.
     *
     * @throws IllegalArgumentException a time that is not 1 µs to 1 h
     */
    static <T> T within(Duration time, Supplier<T> calls) {
        return CurrentCall.within(time, calls);
    }

    /** The call that this thread is handling, or the calls that {@link #within} has given a time. */
    static Optional<CallContext> current() {
        return Optional.ofNullable(CurrentCall.get());
    }

    /**
     * Runs {@code task} on this thread, where {@link #current} is this meanwhile: for what belongs to the call and runs
     * elsewhere, such as a dependent of a future of the handler's own making. Calls made within have no more time than
     * is left of this one, and {@link Tokens#forwarding} signs them for its caller, whatever else the thread handles.
     * It may be used after the call has ended. Thread-safe.
     */
    void run(Runnable task);

    /** As {@link #run}, and gives what {@code calls} gives. */
    <T> T call(Supplier<T> calls);

    /**
     * An executor whose tasks {@code place} runs, each by {@link #run}:
     * {@code ready.thenComposeAsync(v -> down.get(v), context.on(Runnable::run))} calls on for this call, whichever
     * thread completes {@code ready}. The dependents of an {@link RPCXFuture} need none: they have the context that
     * they were attached in.
     */
    Executor on(Executor place);

    /** Time left, in nanoseconds; zero or less when it is over. */
    long remainingNanos();

    /** What the caller sent beside the arguments; empty, never null. */
    Metadata metadata();

    /**
     * Who calls: whom a server's interceptor has found out with {@link #authenticate}, otherwise the subject of the
     * client's certificate, otherwise nobody. Nothing that a client sends as metadata is taken for it.
     */
    Optional<Principal> principal();

    /** For a server's interceptor, before it proceeds: this is who calls. */
    void authenticate(Principal caller);

    /**
     * True once the caller has given up, or is gone: nobody will read the result. A handler that blocks is interrupted
     * as well.
     */
    boolean isCancelled();

    /**
     * Runs this once when the caller gives up or is gone, or when the call's time is over, before the call has ended;
     * at once, on this thread, if that has happened already; never for a call that ends in good time, unless its
     * handler runs on behind the answer of an interceptor. It runs where the method's handlers run, so for a method on
     * the event loop it may not block. For a handler that returns a future: what it waits for can be told that nobody
     * does any more. The future is left alone, since others may have it too, unless it is the {@link RPCXFuture} of a
     * call that was made for this one, and nobody else waits for it. A second later the call is over, whether its
     * result comes or not. Thread-safe.
     */
    void onCancel(Runnable task);
}
