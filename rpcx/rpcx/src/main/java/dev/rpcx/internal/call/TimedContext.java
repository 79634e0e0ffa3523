package dev.rpcx.internal.call;

import dev.rpcx.CallContext;
import dev.rpcx.Metadata;
import dev.rpcx.internal.Given;
import io.netty.util.concurrent.Ticker;
import java.security.Principal;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Context of calls: the time that they have together, and the caller for whom they are made. {@link CallContext#within}
 * makes such a context, for a part of the handled call or for calls outside of any handled call. A handled call has a
 * context of a subclass.
 */
public class TimedContext implements CallContext {
    private final long deadlineNanos;

    /**
     * Whether {@link CallContext#within} has set the time, which then replaces the time of each method, even a shorter
     * one.
     */
    private final boolean asked;

    private final Metadata metadata;
    private final Ticker ticker;

    /** The caller; null while unknown, and in the context of a part of a call, which asks {@link #whole}. */
    private volatile @Nullable Principal principal;

    /** Context of the entire call, if this context is for a part of it; otherwise null. */
    private final @Nullable TimedContext whole;

    /**
     * Creates the context of an entire call.
     *
     * @param peer principal that the certificate of the connection's peer names; null for none
     */
    public TimedContext(long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
        this(deadlineNanos, false, metadata, peer, ticker, null);
    }

    private TimedContext(
            long deadlineNanos,
            boolean asked,
            Metadata metadata,
            @Nullable Principal principal,
            Ticker ticker,
            @Nullable TimedContext whole) {
        this.ticker = ticker;
        this.whole = whole;
        if (principal != null) {
            // null is there already, and is not stored again: a volatile store costs a fence
            this.principal = principal;
        }
        this.deadlineNanos = deadlineNanos;
        this.asked = asked;
        this.metadata = metadata;
    }

    /**
     * Returns a context for a part of the calls of {@code outer}. Its time ends no later than that of {@code outer}.
     *
     * @param outer context of the calling thread; null for none
     * @throws IllegalArgumentException if the time is not 1 µs to 1 h
     */
    static TimedContext within(Duration time, @Nullable TimedContext outer) {
        Ticker ticker = outer == null ? Ticker.systemTicker() : outer.ticker;
        long deadline = ticker.nanoTime() + Given.callTime("time", time).toNanos();
        if (outer == null) {
            return new TimedContext(deadline, true, Metadata.EMPTY, null, ticker, null);
        }
        if (outer.deadlineNanos - deadline < 0) {
            deadline = outer.deadlineNanos;
        }
        return new TimedContext(deadline, true, outer.metadata, null, ticker, outer.whole());
    }

    /**
     * Returns the deadline of a call that the calling thread makes at {@code now}: {@code timeoutNanos} later, but no
     * later than the deadline of the thread's context. If {@link CallContext#within} has set the context's time, the
     * result is always the context's deadline.
     */
    public static long deadlineOf(long timeoutNanos, long now) {
        long own = now + timeoutNanos;
        TimedContext context = CurrentCall.get();
        return context != null && (context.asked || context.deadlineNanos - own < 0) ? context.deadlineNanos : own;
    }

    /**
     * Returns the deadline of a call that is made now on the calling thread, and was prepared in the context
     * {@code maker}. Both {@code maker} and the thread's context bound the deadline. If the thread has no context, a
     * time that {@link CallContext#within} has set for {@code maker} replaces the method's.
     *
     * @param maker context in which the call was prepared; null if there was none
     */
    public static long deadlineOf(long timeoutNanos, Ticker ticker, @Nullable TimedContext maker) {
        long here = deadlineOf(timeoutNanos, ticker.nanoTime());
        if (maker == null) {
            return here;
        }
        boolean isAsked = maker.asked && CurrentCall.isAbsent();
        return isAsked || maker.deadlineNanos - here < 0 ? maker.deadlineNanos : here;
    }

    @Override
    public void run(Runnable task) {
        Given.notNull(task, "task", "a Runnable");
        CurrentCall.runIn(this, task);
    }

    @Override
    public <T> T call(Supplier<T> calls) {
        Given.notNull(calls, "calls", "a Supplier that makes calls");
        TimedContext before = CurrentCall.swap(this);
        try {
            return calls.get();
        } finally {
            CurrentCall.swap(before);
        }
    }

    @Override
    public Executor on(Executor place) {
        Given.notNull(place, "place", "an Executor");
        return task -> place.execute(() -> run(task));
    }

    /** Returns the context of the entire call; this one unless it is for a part of the call. */
    public final TimedContext whole() {
        return whole == null ? this : whole;
    }

    /** Returns the time in nanoseconds by the clock that the deadline uses. */
    public final long nanoTime() {
        return ticker.nanoTime();
    }

    @Override
    public long remainingNanos() {
        return deadlineNanos - ticker.nanoTime();
    }

    @Override
    public Metadata metadata() {
        return metadata;
    }

    @Override
    public Optional<Principal> principal() {
        return Optional.ofNullable(whole().principal);
    }

    @Override
    public void authenticate(Principal caller) {
        whole().principal = Given.notNull(caller, "caller", "who calls");
    }

    /** Returns false if this context belongs to no handled call, since then no caller can give up. */
    @Override
    public boolean isCancelled() {
        return whole != null && whole.isCancelled();
    }

    /** Hands the task to the context of the entire call. Ignored if this context belongs to no handled call. */
    @Override
    public void onCancel(Runnable task) {
        Given.notNull(task, "task", "a Runnable");
        if (whole != null) {
            whole.onCancel(task);
        }
    }
}
