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
 * Context of calls: the time that they have together, and the caller for whom they are made. A context that
 * {@link CallContext#within} has made is for a part of the call that is handled there, or for calls made outside of
 * any. A call that a server handles has a context of a subclass.
 */
public class TimedContext implements CallContext {
    private final long deadlineNanos;

    /**
     * Says that the time was asked for by {@link CallContext#within}: it replaces each method's own time, even where it
     * is longer.
     */
    private final boolean asked;

    private final Metadata metadata;
    private final Ticker ticker;

    /**
     * Principal that calls; null while none is known. Only the context of the whole call keeps it: the context of a
     * part has null here and asks the whole.
     */
    private volatile @Nullable Principal principal;

    /** Context of the whole call, if this one is for a part of that call with a time of its own; otherwise null. */
    private final @Nullable TimedContext whole;

    /** @param peer principal that the certificate of the connection's peer names; null for none */
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
            // null is not stored: a volatile store costs a fence
            this.principal = principal;
        }
        this.deadlineNanos = deadlineNanos;
        this.asked = asked;
        this.metadata = metadata;
    }

    /**
     * Returns a context for a part of what {@code outer} is the context of. Its time ends no later than that of
     * {@code outer}.
     *
     * @param outer null for none
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
     * Returns the deadline of a call that this thread makes now, and to which its method gives {@code timeoutNanos}.
     */
    public static long deadlineOf(long timeoutNanos, long now) {
        long own = now + timeoutNanos;
        TimedContext context = CurrentCall.get();
        return context != null && (context.asked || context.deadlineNanos - own < 0) ? context.deadlineNanos : own;
    }

    /**
     * Returns the deadline of a call that was prepared where {@code maker} was current and is made on this thread: the
     * contexts of both bound it.
     *
     * @param maker null if there was none
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

    /** Returns the context of the whole call; this one may be for a part of that call. */
    public final TimedContext whole() {
        return whole == null ? this : whole;
    }

    /** Returns the time of the clock that the deadline goes by, in nanoseconds. */
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

    /** Returns false where no call is handled, since nobody can give up there. */
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
