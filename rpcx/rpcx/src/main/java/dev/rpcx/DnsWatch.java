package dev.rpcx;

import io.netty.channel.EventLoop;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * One question, asked again and again, on one event loop of those that clients share; its listener hears of it there.
 */
final class DnsWatch implements Endpoints.Watch {
    private final EndpointsDns asked;
    private final Endpoints.Listener listener;
    private final EventLoop loop;
    private final DnsNames names;
    private final AtomicBoolean closed = new AtomicBoolean();

    DnsWatch(EndpointsDns asked, Endpoints.Listener listener) {
        this.asked = asked;
        this.listener = listener;
        loop = Client.SOCKETS.take().group.next();
        names = new DnsNames(loop, asked.nameServers(), 0);
    }

    DnsWatch start() {
        loop.execute(this::ask);
        return this;
    }

    private void ask() {
        if (closed.get()) {
            return;
        }
        try {
            asked.question().ask(names, this::told);
        } catch (Throwable e) {
            told(null, e);
        }
    }

    /** The next question comes before the listener, which may throw. */
    private void told(@Nullable List<Endpoint> found, @Nullable Throwable failure) {
        if (closed.get()) {
            return;
        }
        loop.schedule(this::ask, asked.refresh().toNanos(), TimeUnit.NANOSECONDS);
        if (found != null) {
            listener.found(found);
        } else {
            listener.failed(failure == null ? new IllegalStateException("no answer") : failure);
        }
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            loop.execute(names::close);
            Client.SOCKETS.giveBack();
        }
    }
}
