package dev.rpcx.internal.io;

import io.netty.channel.EventLoop;
import io.netty.resolver.AbstractAddressResolver;
import io.netty.resolver.AddressResolver;
import io.netty.resolver.AddressResolverGroup;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Resolves a host name to one IP address for a client that opens a connection. The hosts file is used first, and the
 * name servers and the search list of {@code /etc/resolv.conf} second. Lookups run on the connection's event loop,
 * without blocking. Answers are cached for their time to live, at most {@value #MAX_TTL_SECONDS} s.
 */
public final class DnsAddresses extends AddressResolverGroup<InetSocketAddress> {
    private static final int MAX_TTL_SECONDS = 30;

    /** Longest time to resolve one host name: 3 s, like the client's default time to connect. */
    private static final long MAX_MILLIS = 3_000;

    /** Name servers that are asked; empty for the name servers of the system. */
    private final List<InetSocketAddress> nameServers;

    public DnsAddresses(List<InetSocketAddress> nameServers) {
        this.nameServers = nameServers;
    }

    @Override
    protected AddressResolver<InetSocketAddress> newResolver(EventExecutor executor) {
        return new OfLoop((EventLoop) executor);
    }

    /**
     * Resolves host names for the connections of one event loop. The field {@code names} is null until the first host
     * name is resolved. The methods {@code resolveHere} and {@code names} are called on the event loop only.
     */
    private final class OfLoop extends AbstractAddressResolver<InetSocketAddress> {
        private final EventLoop loop;
        private @Nullable DnsNames names;

        OfLoop(EventLoop loop) {
            super(loop, InetSocketAddress.class);
            this.loop = loop;
        }

        @Override
        protected boolean doIsResolved(InetSocketAddress address) {
            return !address.isUnresolved();
        }

        /**
         * Resolves the host name in {@code address}, and completes {@code promise}. Netty calls this method on the
         * thread that connects, which need not be the event loop.
         */
        @Override
        protected void doResolve(InetSocketAddress address, Promise<InetSocketAddress> promise) {
            if (loop.inEventLoop()) {
                resolveHere(address, promise);
            } else {
                loop.execute(() -> resolveHere(address, promise));
            }
        }

        private void resolveHere(InetSocketAddress address, Promise<InetSocketAddress> promise) {
            Future<?> timer = loop.schedule(
                    () -> promise.tryFailure(new UnknownHostException(
                            address.getHostString() + ": no name server has answered within " + MAX_MILLIS + " ms")),
                    MAX_MILLIS,
                    TimeUnit.MILLISECONDS);
            names().addresses(address.getHostString(), (found, failure) -> {
                timer.cancel(false);
                if (found == null || found.isEmpty()) {
                    promise.tryFailure(failure == null ? new UnknownHostException(address.getHostString()) : failure);
                } else {
                    // a random address, so that the next try to connect may use another one
                    InetAddress any = found.get(ThreadLocalRandom.current().nextInt(found.size()));
                    promise.trySuccess(new InetSocketAddress(any, address.getPort()));
                }
            });
        }

        @Override
        protected void doResolveAll(InetSocketAddress address, Promise<List<InetSocketAddress>> promise) {
            resolve(address).addListener((Future<InetSocketAddress> found) -> {
                if (found.isSuccess()) {
                    promise.trySuccess(List.of(found.getNow()));
                } else {
                    promise.tryFailure(found.cause());
                }
            });
        }

        private DnsNames names() {
            DnsNames made = names;
            if (made == null) {
                made = DnsNames.ofAny(loop, nameServers, MAX_TTL_SECONDS);
                names = made;
            }
            return made;
        }

        @Override
        public void close() {
            DnsNames made = names;
            if (made != null) {
                made.close();
            }
        }
    }
}
