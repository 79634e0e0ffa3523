package dev.rpcx;

import io.netty.channel.EventLoop;
import io.netty.resolver.dns.DnsNameResolver;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** One question, asked again and again for all who listen. On one event loop of those that clients share; listeners hear of it there. */
final class DnsWatch {
    private static final System.Logger LOGGER = System.getLogger(DnsWatch.class.getName());

    private final EndpointsDns asked;
    private final Loops loops;
    private final EventLoop loop;
    private final DnsNameResolver names;

    // the event loop's alone
    private final List<Endpoints.Listener> listeners = new ArrayList<>();
    private @Nullable Consumer<Endpoints.Listener> last;
    private boolean ended;

    /** Listeners that have not closed. Guarded by the map of watches. */
    private int users;

    DnsWatch(EndpointsDns asked) {
        this.asked = asked;
        loops = Client.SOCKETS.take();
        loop = loops.group.next();
        names = DnsQuestion.resolver(loop, asked.nameServers()).build();
        loop.execute(this::ask);
    }

    EndpointsDns asked() {
        return asked;
    }

    /** One that comes later hears at once what was found last. */
    Endpoints.Watch add(Endpoints.Listener listener) {
        users++;
        loop.execute(() -> {
            listeners.add(listener);
            if (last != null) {
                tell(listener, last);
            }
        });
        AtomicBoolean closed = new AtomicBoolean();
        return () -> {
            if (closed.compareAndSet(false, true)) {
                loop.execute(() -> listeners.remove(listener));
                EndpointsDns.removed(this);
            }
        };
    }

    /** @return whether nobody listens any more */
    boolean remove() {
        users--;
        return users == 0;
    }

    void end() {
        loop.execute(() -> {
            ended = true;
            names.close();
        });
        Client.SOCKETS.giveBack();
    }

    private void ask() {
        if (ended) {
            return;
        }
        asked.question().ask(names, (found, failure) -> {
            if (ended) {
                return;
            }
            loop.schedule(this::ask, asked.refresh().toNanos(), TimeUnit.NANOSECONDS);
            last = found != null
                    ? listener -> listener.found(found)
                    : listener -> listener.failed(failure == null ? new IllegalStateException("no answer") : failure);
            for (Endpoints.Listener each : List.copyOf(listeners)) {
                tell(each, last);
            }
        });
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
