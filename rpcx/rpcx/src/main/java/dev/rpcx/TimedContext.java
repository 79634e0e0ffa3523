package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.security.Principal;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The time that calls have together, and for whom they are made. One that {@link CallContext#within} has made is a part
 * of the call that is handled there, or of none; a call that a server handles has a context of a subclass.
 */
class TimedContext implements CallContext {
    private final long deadlineNanos;

    /** Says that the time was asked for: it counts instead of each method's own, and not only where it is shorter. */
    private final boolean asked;

    private final Metadata metadata;
    private final Ticker ticker;

    /** Who calls. The context of the whole call keeps it; the context of a part is null here and asks the whole. */
    private volatile @Nullable Principal principal;

    /** The context of the whole call, where this one is of a part of it that has a time of its own. */
    private final @Nullable TimedContext whole;

    /** @param peer who the connection's certificate says is at its other end */
    TimedContext(long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
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
            // a volatile store costs a fence
            this.principal = principal;
        }
        this.deadlineNanos = deadlineNanos;
        this.asked = asked;
        this.metadata = metadata;
    }

    /**
     * A context for a part of what {@code outer} is of, which ends no later than that.
     *
     * @param outer null for none
     * @throws IllegalArgumentException a time that is not 1 µs to 1 h
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

    /** When a call ends that this thread makes now and whose method gives it so much time. */
    static long deadlineOf(long timeoutNanos, long now) {
        long own = now + timeoutNanos;
        TimedContext context = CurrentCall.get();
        return context != null && (context.asked || context.deadlineNanos - own < 0) ? context.deadlineNanos : own;
    }

    /**
     * The same for what was made where {@code maker} was current and is called here: bound by both.
     *
     * @param maker null where there was none
     */
    static long deadlineOf(long timeoutNanos, Ticker ticker, @Nullable TimedContext maker) {
        long here = deadlineOf(timeoutNanos, ticker.nanoTime());
        if (maker == null) {
            return here;
        }
        boolean isAsked = maker.asked && CurrentCall.isAbsent();
        return isAsked || maker.deadlineNanos - here < 0 ? maker.deadlineNanos : here;
    }

    @Override
    public void run(Runnable task) {
        Given.notNull(task, "task", "what runs");
        CurrentCall.runIn(this, task);
    }

    @Override
    public <T> T call(Supplier<T> calls) {
        Given.notNull(calls, "calls", "what makes them");
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

    /** The context of the whole call, of which this may be that of a part. */
    final TimedContext whole() {
        return whole == null ? this : whole;
    }

    /** The time by the clock that the deadline is of. */
    final long nanoTime() {
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

    /** Where no call is handled nobody gives up. */
    @Override
    public boolean isCancelled() {
        return whole != null && whole.isCancelled();
    }

    /** Where no call is handled the task is never run, and is not kept. */
    @Override
    public void onCancel(Runnable task) {
        Given.notNull(task, "task", "what runs");
        if (whole != null) {
            whole.onCancel(task);
        }
    }
}
