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
 * A context in which calls are made. The context has the latest deadline that the calls can have. If the calls are made
 * for a handled call, the context also has the metadata and the caller of that handled call.
 *
 * <p>{@link CallContext#within} and {@link CallContext#with} create an object of this class, for a part of a handled
 * call or for calls outside of any handled call. The context of an entire handled call is an object of a subclass.
 */
public class TimedContext implements CallContext {
    /** Time of a context that {@link CallContext#with} creates outside of any other; no call has more time. */
    private static final long UNLIMITED_NANOS = Duration.ofDays(365).toNanos();

    private final long deadlineNanos;

    /**
     * Whether {@link CallContext#within} has set the time limit of this context. Such a limit replaces the time limit
     * of each method, even if the time limit of the method is shorter.
     */
    private final boolean asked;

    private final Metadata metadata;

    /** Metadata that calls carry which are made in this context. */
    private final Metadata outgoing;

    private final Ticker ticker;

    /**
     * The principal that makes the handled call; null while the principal is unknown. A context for a part of a call
     * always has null here, and uses the principal of {@link #whole}. Any thread that has the context can store and
     * read the principal.
     */
    private volatile @Nullable Principal principal;

    /** The context of the entire call if this context is for a part of the call; otherwise null. */
    private final @Nullable TimedContext whole;

    /**
     * Creates the context of an entire call.
     *
     * @param peer principal named by the certificate of the connection's peer; null if there is none
     */
    public TimedContext(long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
        this(deadlineNanos, false, metadata, peer, ticker, null, Metadata.EMPTY);
    }

    private TimedContext(
            long deadlineNanos,
            boolean asked,
            Metadata metadata,
            @Nullable Principal principal,
            Ticker ticker,
            @Nullable TimedContext whole,
            Metadata outgoing) {
        this.ticker = ticker;
        this.whole = whole;
        this.outgoing = outgoing;
        if (principal != null) {
            // Without a principal, the field stays null. It is not set to null again, because storing a value in a
            // volatile field costs a memory fence.
            this.principal = principal;
        }
        this.deadlineNanos = deadlineNanos;
        this.asked = asked;
        this.metadata = metadata;
    }

    /**
     * Creates a context for some of the calls that are made in {@code outer}. The deadline of the new context is
     * {@code time} from now, but no later than the deadline of {@code outer}.
     *
     * @param outer context of the calling thread; null if the thread has none
     * @throws IllegalArgumentException if the time is not 1 µs to 1 h
     */
    static TimedContext within(Duration time, @Nullable TimedContext outer) {
        Ticker ticker = outer == null ? Ticker.systemTicker() : outer.ticker;
        long deadline = ticker.nanoTime() + Given.callTime("time", time).toNanos();
        if (outer == null) {
            return new TimedContext(deadline, true, Metadata.EMPTY, null, ticker, null, Metadata.EMPTY);
        }
        if (outer.deadlineNanos - deadline < 0) {
            deadline = outer.deadlineNanos;
        }
        return new TimedContext(deadline, true, outer.metadata, null, ticker, outer.whole(), outer.outgoing);
    }

    /**
     * Creates a context for some of the calls that are made in {@code outer}, with other metadata for these calls. All
     * else is as in {@code outer}.
     *
     * @param outgoing metadata that the calls carry
     * @param outer context of the calling thread; null if the thread has none
     */
    static TimedContext sending(Metadata outgoing, @Nullable TimedContext outer) {
        if (outer == null) {
            Ticker ticker = Ticker.systemTicker();
            long deadline = ticker.nanoTime() + UNLIMITED_NANOS;
            return new TimedContext(deadline, false, Metadata.EMPTY, null, ticker, null, outgoing);
        }
        return new TimedContext(
                outer.deadlineNanos, outer.asked, outer.metadata, null, outer.ticker, outer.whole(), outgoing);
    }

    /**
     * Returns the deadline of a call that the calling thread makes at {@code now}. The deadline is {@code timeoutNanos}
     * after {@code now}, but no later than the deadline of the thread's context. If {@link CallContext#within} has set
     * the time limit of the context, {@code timeoutNanos} is ignored, and the result is the deadline of the context.
     */
    public static long deadlineOf(long timeoutNanos, long now) {
        long own = now + timeoutNanos;
        TimedContext context = CurrentCall.get();
        return context != null && (context.asked || context.deadlineNanos - own < 0) ? context.deadlineNanos : own;
    }

    /**
     * Returns the deadline of a call that returns a stream. Such a call begins when the stream is subscribed to, which
     * is now.
     *
     * <ul>
     *   <li>If the calling thread has no context, and {@link CallContext#within} has set the time limit of
     *       {@code maker}, the result is the deadline of {@code maker}, and {@code timeoutNanos} is ignored.
     *   <li>Otherwise, the result is that of {@link #deadlineOf(long, long)}, but no later than the deadline of
     *       {@code maker}.
     * </ul>
     *
     * @param maker context in which the method that returns the stream was called; null if there was none
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

    /**
     * Returns the context of the entire handled call if this context is for the call or for a part of it. If this
     * context belongs to no handled call, returns the outermost context around it that {@link CallContext#within} or
     * {@link CallContext#with} has created; this context itself can be the outermost one.
     */
    public final TimedContext whole() {
        return whole == null ? this : whole;
    }

    /** Returns the current time in nanoseconds, by the clock that the deadline of this context uses. */
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

    /** Returns the metadata that calls carry which are made in this context. */
    final Metadata outgoing() {
        return outgoing;
    }

    /** Adds an entry to the metadata of the handled call's reply. Does nothing if there is no handled call. */
    @Override
    public void reply(String name, String value) {
        if (whole == null) {
            // an entry that would be refused in a handled call is refused here too
            Metadata.EMPTY.with(name, value);
        } else {
            whole.reply(name, value);
        }
    }

    @Override
    public Optional<Principal> principal() {
        return Optional.ofNullable(whole().principal);
    }

    @Override
    public void authenticate(Principal caller) {
        whole().principal = Given.notNull(caller, "caller", "who calls");
    }

    /**
     * Returns whether the handled call has been cancelled. Returns false if this context belongs to no handled call.
     */
    @Override
    public boolean isCancelled() {
        return whole != null && whole.isCancelled();
    }

    /**
     * Passes {@code task} to the context of the entire handled call, which runs the task when the call is cancelled, or
     * immediately if it has been cancelled already. Does nothing if this context belongs to no handled call.
     */
    @Override
    public void onCancel(Runnable task) {
        Given.notNull(task, "task", "a Runnable");
        if (whole != null) {
            whole.onCancel(task);
        }
    }
}
