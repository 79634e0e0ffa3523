package dev.rpcx.internal.discovery;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.internal.io.DnsNames;
import dev.rpcx.internal.io.SharedLoops;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Asks DNS the same question at regular intervals, and passes the instances or a failure to a listener. The listener is
 * called on an event loop that clients share. If a question fails, for example for lack of memory, the next one is
 * asked all the same.
 */
final class DnsWatch implements Endpoints.Watch {
    private static final System.Logger LOGGER = System.getLogger("dev.rpcx.discovery");

    /**
     * Time after which a question without an answer counts as lost, so that the question is asked again: 1 minute. A
     * resolver that works gives up much earlier.
     */
    private static final long LOST_NANOS = TimeUnit.MINUTES.toNanos(1);

    /**
     * Longest pause between two questions while no instance has been found yet, or after the last question has failed:
     * 2 s. The pause begins when the last question has been answered or has failed.
     */
    private static final long MAX_SEARCH_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final EndpointsDns asked;
    private final Endpoints.Listener listener;
    private final EventLoop loop;
    private final DnsNames names;

    /**
     * Whether {@link #close} has been called. Any thread sets the field, and only the first one to do so ends the
     * watch; the event loop reads it.
     */
    private final AtomicBoolean closed = new AtomicBoolean();

    /**
     * The repeated task {@code look}; null until it has been scheduled. Stored by the thread that starts the watch, and
     * read by the event loop, which cancels the task.
     */
    private volatile @Nullable Future<?> looks;

    // the fields below are used on the event loop only, except looksApart, which never changes
    /** Number of the latest question, counted from 1. Answers to earlier questions are ignored. */
    private long number;

    private boolean isAsking;
    private long askedNanos;

    /**
     * Number of times that the repeated task {@code look} runs in one refresh time, which is the time between regular
     * questions.
     */
    private final long looksApart;

    /** Number of times that the repeated task {@code look} has run since the last question. */
    private long looksSince;

    /**
     * True if no instance has been found yet, or if the last question has failed. In this state, the next question
     * comes at most {@link #MAX_SEARCH_PAUSE_NANOS} after the last question has been answered or has failed.
     */
    private boolean isSearching = true;

    private boolean hasFound;

    DnsWatch(EndpointsDns asked, Endpoints.Listener listener) {
        this(asked, listener, SharedLoops.SOCKETS.borrow().group.next());
    }

    /**
     * Creates a watch. The watch begins to ask DNS when {@link #start} is called.
     *
     * @param loop one of the event loops of {@link SharedLoops#SOCKETS}. The caller has borrowed these event loops for
     *     this watch. If this constructor throws, it gives the event loops back. Otherwise {@link #close} gives them
     *     back.
     */
    DnsWatch(EndpointsDns asked, Endpoints.Listener listener, EventLoop loop) {
        this.asked = asked;
        this.listener = listener;
        this.loop = loop;
        this.looksApart = 1 + (asked.refresh().toNanos() - 1) / MAX_SEARCH_PAUSE_NANOS;
        try {
            names = asked.question().names(loop, asked.nameServers());
        } catch (Throwable e) {
            SharedLoops.SOCKETS.giveBack();
            throw e;
        }
    }

    DnsWatch start() {
        try {
            looks = loop.scheduleWithFixedDelay(
                    this::look, 0, asked.refresh().toNanos() / looksApart, TimeUnit.NANOSECONDS);
        } catch (Throwable e) {
            close();
            throw e;
        }
        return this;
    }

    /**
     * Asks DNS again if the time for the next question has come. If the watch is closed, cancels the repeated task.
     * Must not throw, since a task that throws is not repeated.
     */
    private void look() {
        try {
            looksSince++;
            if (closed.get()) {
                end();
            } else if (isAsking
                    ? loop.ticker().nanoTime() - askedNanos >= LOST_NANOS
                    : isSearching || looksSince >= looksApart) {
                ask();
            }
        } catch (Throwable e) {
            report(e);
        }
    }

    private void ask() {
        long own = ++number;
        askedNanos = loop.ticker().nanoTime();
        looksSince = 0;
        isAsking = true;
        try {
            asked.question().ask(names, (found, failure) -> onAnswer(own, found, failure));
        } catch (Throwable e) {
            onAnswer(own, null, e);
        }
    }

    private void onAnswer(long question, @Nullable List<Endpoint> found, @Nullable Throwable failure) {
        if (question != number || !isAsking) {
            return;
        }
        // the fields are set before the listener is called, since the listener may throw
        isAsking = false;
        hasFound |= found != null && !found.isEmpty();
        isSearching = found == null || !hasFound;
        if (closed.get()) {
            return;
        }
        if (found != null) {
            listener.found(found);
        } else {
            listener.failed(failure == null ? new IllegalStateException("no answer") : failure);
        }
    }

    private static void report(Throwable thrown) {
        try {
            LOGGER.log(System.Logger.Level.WARNING, "asking DNS for a name has failed, and is tried again", thrown);
        } catch (Throwable unspeakable) {
            // the failure could not be logged, but the repeated task has to go on
        }
    }

    private void end() {
        Future<?> last = looks;
        if (last != null) {
            last.cancel(false);
        }
        names.close();
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            try {
                loop.execute(this::end);
            } finally {
                SharedLoops.SOCKETS.giveBack();
            }
        }
    }
}
