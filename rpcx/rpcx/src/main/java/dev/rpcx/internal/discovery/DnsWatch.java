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
 * Asks DNS one question at regular intervals, on a shared event loop, and calls its listener on that loop.
 *
 * <p>A repeated task asks the questions. A failure of one question, for example for lack of memory, does not stop the
 * next one.
 */
final class DnsWatch implements Endpoints.Watch {
    private static final System.Logger LOGGER = System.getLogger("dev.rpcx.discovery");

    /**
     * Time after which a question without an answer counts as lost: by then its resolver has given up long ago, or has
     * failed.
     */
    private static final long LOST_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** Longest wait until the next question if the last question has failed, or if nothing has been found yet. */
    private static final long SOON_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final EndpointsDns asked;
    private final Endpoints.Listener listener;
    private final EventLoop loop;
    private final DnsNames names;
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile @Nullable Future<?> looks;

    // the fields below are used on the event loop only
    /** Number of the latest question. Answers to earlier questions are ignored. */
    private long number;

    private boolean isAsking;
    private long askedNanos;

    /** Number of runs of {@code look} from a question that has been answered to the next question. */
    private final long looksApart;

    /** Number of runs of {@code look} since the last question. */
    private long looksSince;

    /** True if nothing has been found yet, or if the last question has failed. */
    private boolean isSearching = true;

    private boolean hasFound;

    DnsWatch(EndpointsDns asked, Endpoints.Listener listener) {
        this(asked, listener, SharedLoops.SOCKETS.borrow().group.next());
    }

    /**
     * Creates a watch. It asks nothing before {@code start}.
     *
     * @param loop one of the loops of {@link SharedLoops#SOCKETS}, borrowed for this watch. This constructor gives the
     *     loops back if it throws
     */
    DnsWatch(EndpointsDns asked, Endpoints.Listener listener, EventLoop loop) {
        this.asked = asked;
        this.listener = listener;
        this.loop = loop;
        this.looksApart = 1 + (asked.refresh().toNanos() - 1) / SOON_NANOS;
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
     * Asks the question if it is due. Cancels the repeated task if the watch is closed. Must not throw, since a task
     * that throws is not repeated.
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
            // logging fails too, and the task has to go on all the same
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
