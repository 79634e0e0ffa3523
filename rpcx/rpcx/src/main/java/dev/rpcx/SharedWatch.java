package dev.rpcx;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One watch for all clients of the process whose endpoints are equal, from the first one's listener to the last one's
 * end: a registry costs one thread or one connection, however many clients there are. Thread-safe.
 */
final class SharedWatch implements Endpoints.Listener {
    private static final System.Logger LOGGER = System.getLogger(SharedWatch.class.getName());

    /** Those with a listener. Guarded by itself, which is never asked for by who holds a watch. */
    private static final Map<Endpoints, SharedWatch> WATCHES = new HashMap<>();

    // guarded by the map
    private int users;
    private Endpoints.@Nullable Watch watch;

    // guarded by this, also while listeners are told: each hears everything once and in order
    private final List<Endpoints.Listener> listeners = new ArrayList<>();
    private @Nullable List<Endpoint> found;
    private @Nullable Throwable failure;

    private SharedWatch() {}

    /** As {@link Endpoints#watch}; who comes later hears at once what the others have heard last. */
    static Endpoints.Watch of(Endpoints endpoints, Endpoints.Listener listener) {
        if (endpoints instanceof EndpointsFixed) {
            // nothing asks, so there is nothing to share
            return endpoints.watch(listener);
        }
        synchronized (WATCHES) {
            SharedWatch shared = WATCHES.get(endpoints);
            if (shared == null) {
                shared = new SharedWatch();
                shared.add(listener);
                shared.watch = endpoints.watch(shared);
                WATCHES.put(endpoints, shared);
            } else {
                shared.add(listener);
            }
            shared.users++;
            SharedWatch used = shared;
            AtomicBoolean closed = new AtomicBoolean();
            return () -> {
                if (closed.compareAndSet(false, true)) {
                    used.end(endpoints, listener);
                }
            };
        }
    }

    /** Watches under way in this process. */
    static int count() {
        synchronized (WATCHES) {
            return WATCHES.size();
        }
    }

    private synchronized void add(Endpoints.Listener listener) {
        listeners.add(listener);
        List<Endpoint> last = found;
        if (last != null) {
            tell(listener, l -> l.found(last));
        }
        Throwable why = failure;
        if (why != null) {
            tell(listener, l -> l.failed(why));
        }
    }

    private void end(Endpoints endpoints, Endpoints.Listener listener) {
        Endpoints.Watch over = null;
        synchronized (WATCHES) {
            users--;
            if (users == 0) {
                WATCHES.remove(endpoints);
                over = watch;
            }
        }
        synchronized (this) {
            listeners.remove(listener);
        }
        if (over != null) {
            over.close();
        }
    }

    @Override
    public synchronized void found(List<Endpoint> all) {
        if (!all.isEmpty()) {
            // an empty answer changes nothing, also for who comes later
            found = List.copyOf(all);
        }
        failure = null;
        for (Endpoints.Listener each : List.copyOf(listeners)) {
            tell(each, l -> l.found(all));
        }
    }

    @Override
    public synchronized void failed(Throwable why) {
        failure = why;
        for (Endpoints.Listener each : List.copyOf(listeners)) {
            tell(each, l -> l.failed(why));
        }
    }

    /** One that throws must not take the news from the others. */
    private static void tell(Endpoints.Listener listener, Consumer<Endpoints.Listener> news) {
        try {
            news.accept(listener);
        } catch (RuntimeException e) {
            LOGGER.log(System.Logger.Level.WARNING, "a listener of instances has failed", e);
        }
    }
}
