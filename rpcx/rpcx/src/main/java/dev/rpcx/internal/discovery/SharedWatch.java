package dev.rpcx.internal.discovery;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThreadTools;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Watch of a registry, shared by all clients of the process that have equal {@code Endpoints}. So these clients need
 * only one thread or connection to the registry. The watch begins when the first client joins, and ends when the last
 * client quits. Thread-safe.
 *
 * <p>The user's {@code Endpoints} are never called under the lock of the whole process. So if {@code watch},
 * {@code hashCode} or {@code equals} blocks, only clients that use the same endpoints wait.
 */
public final class SharedWatch implements Endpoints.Listener {
    private static final System.Logger LOGGER = System.getLogger("dev.rpcx.discovery");

    /**
     * Lock of the whole process for {@code inUse} and {@code users}. A thread that holds this lock must take no other
     * lock.
     */
    private static final Object LOCK = new Object();

    /**
     * All watches that clients of this process use. Changes replace the list instead of modifying it, so that a thread
     * can search a list without the lock.
     */
    private static List<SharedWatch> inUse = List.of();

    private final Endpoints endpoints;
    private final int hash;

    /** Number of clients that use this watch. Guarded by {@link #LOCK}. */
    private int users = 1;

    /** Lock that is held while {@code Endpoints.watch}, which can be user code, begins this watch. */
    private final Object beginning = new Object();

    /**
     * The result of {@code Endpoints.watch}; null until that method has returned. The thread on which a client joins
     * stores the result, under the lock {@link #beginning}. The thread on which a client quits reads the field. If that
     * client is the last one, this thread closes the result.
     */
    private volatile Endpoints.@Nullable Watch watch;

    /** Listeners of the clients that use this watch. Guarded by {@code this}. */
    private final List<ListenerEntry> listeners = new ArrayList<>();

    /** Latest news from the registry. Guarded by {@code this}. */
    private News news = new News(0, 0, null, null);

    /**
     * News from the registry, which reports a list of instances or a failure.
     *
     * @param number number of this news, counted from 1; 0 if the registry has reported nothing yet
     * @param foundAs number of the news in which the registry reported {@code found}; 0 if there is no list yet
     * @param found latest list of instances that is not empty; null if there is none yet
     * @param failure failure that this news reports; null if this news reports no failure
     */
    private record News(
            long number,
            long foundAs,
            @Nullable List<Endpoint> found,
            @Nullable Throwable failure) {}

    /**
     * Listener of one client. The listener gets one piece of news at a time, in order, and outdated news is skipped.
     */
    private static final class ListenerEntry {
        private final Endpoints.Listener listener;

        /**
         * The {@code number} of the latest news that the listener has got; 0 before the first news. Guarded by
         * {@code this}.
         */
        private long heard;

        /**
         * Whether the listener's client has quit. Set by the thread on which the client quits, and read by threads
         * that pass on news.
         */
        private volatile boolean isOver;

        ListenerEntry(Endpoints.Listener listener) {
            this.listener = listener;
        }

        /**
         * Passes news to the listener, unless the listener's client has quit, or the listener has got the same or later
         * news already. Catches what the listener throws, so that the other listeners still get the news.
         */
        synchronized void deliver(News news) {
            long before = heard;
            heard = Math.max(before, news.number);
            try {
                List<Endpoint> found = news.found;
                if (found != null && news.foundAs > before && !isOver) {
                    listener.found(found);
                }
                Throwable failure = news.failure;
                if (failure != null && news.number > before && !isOver) {
                    listener.failed(failure);
                }
            } catch (Throwable e) {
                logFailure(e);
            }
        }

        private static void logFailure(Throwable failure) {
            try {
                LOGGER.log(System.Logger.Level.WARNING, "a listener of instances has failed", failure);
            } catch (Throwable e) {
                // even if logging fails, the other listeners must get the news
                ThreadTools.report(e);
            }
        }
    }

    private SharedWatch(Endpoints endpoints, int hash) {
        this.endpoints = endpoints;
        this.hash = hash;
    }

    /**
     * Watches endpoints for one client, as {@link Endpoints#watch} does. All clients with equal endpoints share one
     * watch, unless the endpoints are a fixed list. A listener that joins later immediately gets the latest news.
     */
    public static Endpoints.Watch of(Endpoints endpoints, Endpoints.Listener listener) {
        if (endpoints instanceof EndpointsFixed) {
            // a fixed list asks no registry, so there is nothing to share
            return endpoints.watch(listener);
        }
        SharedWatch shared = join(endpoints);
        ListenerEntry entry = new ListenerEntry(listener);
        // Any thread can close the watch, and only the first call counts.
        AtomicBoolean closed = new AtomicBoolean();
        Endpoints.Watch own = () -> {
            if (closed.compareAndSet(false, true)) {
                shared.end(entry);
            }
        };
        try {
            shared.add(entry);
            shared.begin();
            return own;
        } catch (Throwable e) {
            own.close();
            throw e;
        }
    }

    /**
     * Returns the watch that clients with equal endpoints share, or a new watch if there is none. Counts the caller as
     * a user of the watch.
     */
    private static SharedWatch join(Endpoints endpoints) {
        int hash = endpoints.hashCode();
        while (true) {
            List<SharedWatch> seen = inUse();
            SharedWatch equal = equal(seen, endpoints, hash);
            synchronized (LOCK) {
                // If another thread has ended the watch since the search, the watch has no users, and the search is
                // repeated. Tested by {@code SharedWatchTest.aWatchThatEndsWhileItIsComparedIsNotJoined}.
                if (equal != null && equal.users > 0) {
                    equal.users++;
                    return equal;
                }
                // If another thread has changed the list since the search, the search is repeated. Otherwise equal
                // endpoints could have two watches. Tested by
                // {@code SharedWatchTest.aWatchThatBeginsWhileOthersAreComparedIsJoined}.
                if (equal == null && inUse == seen) {
                    SharedWatch made = new SharedWatch(endpoints, hash);
                    List<SharedWatch> more = new ArrayList<>(seen);
                    more.add(made);
                    inUse = more;
                    return made;
                }
            }
        }
    }

    private static @Nullable SharedWatch equal(List<SharedWatch> seen, Endpoints endpoints, int hash) {
        for (SharedWatch each : seen) {
            if (each.hash == hash && endpoints.equals(each.endpoints)) {
                return each;
            }
        }
        return null;
    }

    private static List<SharedWatch> inUse() {
        synchronized (LOCK) {
            return inUse;
        }
    }

    /** Returns the number of shared watches that clients of this process use. */
    public static int count() {
        return inUse().size();
    }

    private void add(ListenerEntry entry) {
        News last;
        synchronized (this) {
            listeners.add(entry);
            last = news;
        }
        entry.deliver(last);
    }

    /**
     * Begins to watch the endpoints, unless the watch has begun already. Each client that joins calls this method,
     * since the tries of earlier clients may have failed.
     */
    private void begin() {
        synchronized (beginning) {
            if (watch == null) {
                watch = Given.notNull(
                        endpoints.watch(this),
                        "watch of " + endpoints.getClass().getName(),
                        "a Watch");
            }
        }
    }

    private void end(ListenerEntry entry) {
        boolean isLast;
        synchronized (LOCK) {
            isLast = users == 1;
            if (isLast) {
                // Copying the list can fail for lack of memory. Therefore users is reduced only after the list has been
                // changed: a watch in the list must have users, even if the copy fails.
                List<SharedWatch> fewer = new ArrayList<>(inUse);
                fewer.remove(this);
                inUse = fewer;
            }
            users--;
        }
        entry.isOver = true;
        synchronized (this) {
            listeners.remove(entry);
        }
        // Only a thread that joins for one of the users sets the field watch, and it does so before that user quits.
        // All users quit under LOCK, the last user after all others. So the thread on which the last user quits sees
        // the field as any of them has set it, and the field does not change any more. Otherwise the watch could go on
        // without users.
        Endpoints.Watch over = watch;
        if (isLast && over != null) {
            over.close();
        }
    }

    @Override
    public void found(List<Endpoint> all) {
        List<Endpoint> copy = Given.noneNull(all, "found", "instances, or an empty list");
        News now;
        List<ListenerEntry> entries;
        synchronized (this) {
            long number = news.number + 1;
            // an empty answer does not replace the latest list
            now = copy.isEmpty()
                    ? new News(number, news.foundAs, news.found, null)
                    : new News(number, number, copy, null);
            news = now;
            entries = List.copyOf(listeners);
        }
        entries.forEach(each -> each.deliver(now));
    }

    @Override
    public void failed(Throwable why) {
        Given.notNull(why, "failed", "why the registry could not be asked");
        News now;
        List<ListenerEntry> entries;
        synchronized (this) {
            now = new News(news.number + 1, news.foundAs, news.found, why);
            news = now;
            entries = List.copyOf(listeners);
        }
        entries.forEach(each -> each.deliver(now));
    }
}
