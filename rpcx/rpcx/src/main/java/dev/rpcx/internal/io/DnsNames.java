package dev.rpcx.internal.io;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelFactory;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollDatagramChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioDatagramChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.TooLongFrameException;
import io.netty.handler.codec.dns.DnsRecord;
import io.netty.handler.codec.dns.DnsResponseCode;
import io.netty.resolver.ResolvedAddressTypes;
import io.netty.resolver.dns.DefaultDnsCache;
import io.netty.resolver.dns.DnsCache;
import io.netty.resolver.dns.DnsCacheEntry;
import io.netty.resolver.dns.DnsErrorCauseException;
import io.netty.resolver.dns.DnsNameResolver;
import io.netty.resolver.dns.DnsNameResolverBuilder;
import io.netty.resolver.dns.DnsNameResolverChannelStrategy;
import io.netty.resolver.dns.DnsNameResolverException;
import io.netty.resolver.dns.NoopAuthoritativeDnsServerCache;
import io.netty.resolver.dns.NoopDnsCache;
import io.netty.resolver.dns.NoopDnsCnameCache;
import io.netty.resolver.dns.SequentialDnsServerAddressStreamProvider;
import io.netty.util.NetUtil;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Asks name servers, on one event loop. All addresses of a host come from one family, IPv4 or IPv6. With both families,
 * a machine that has addresses of both would count as two instances, and the list would be incomplete if only one of
 * the two questions were answered.
 */
public final class DnsNames {
    /** Longest wait for the answer to one datagram. After this time the next name server is asked. */
    private static final long QUERY_MILLIS = 1_000;

    /** Largest answer by TCP, in bytes, if one address is wanted: about a thousand IPv4 addresses. */
    private static final int MAX_ANSWER_BYTES = 16 * 1024;

    /**
     * Largest answer by TCP, in bytes, if all addresses are wanted: 1,500 IPv4 or 870 IPv6 addresses. Netty compares
     * each address with all before it. That takes an event loop some 4 ms for an answer of this size, and 25 ms for
     * 4,090 addresses (JDK 25.0.3, AMD EPYC, 2 cores, 2026-11-28).
     */
    private static final int MAX_LONG_ANSWER_BYTES = 24 * 1024;

    /** Largest number of addresses of a host that are cached for callers that want any one of them. */
    private static final int MAX_KEPT = 16;

    /** Address families in the order in which they are asked for. */
    private static final List<ResolvedAddressTypes> FAMILIES = families();

    private final List<DnsNameResolver> resolvers = new ArrayList<>();

    /**
     * Number of answers by TCP that were refused as too long. A question during which this number grows has failed for
     * that reason, but that is certain only if no other question is asked at the same time.
     */
    private final AtomicInteger refused;

    private DnsNames(DnsNameResolverBuilder builder, Supplier<DnsCache> caches, AtomicInteger refused) {
        this.refused = refused;
        for (ResolvedAddressTypes family : FAMILIES) {
            resolvers.add(builder.resolvedAddressTypes(family)
                    .resolveCache(caches.get())
                    .build());
        }
    }

    /**
     * Creates resolvers for callers that want all addresses of a host. Nothing is cached. An answer by TCP of more than
     * {@code MAX_LONG_ANSWER_BYTES} is refused.
     *
     * @param nameServers name servers to ask; if empty, the system's name servers are asked
     */
    public static DnsNames ofAll(EventLoop loop, List<InetSocketAddress> nameServers) {
        AtomicInteger refused = new AtomicInteger();
        return new DnsNames(
                resolver(loop, nameServers, () -> shortStream(MAX_LONG_ANSWER_BYTES, refused)),
                () -> NoopDnsCache.INSTANCE,
                refused);
    }

    /**
     * Creates resolvers for callers that ask {@link #any} for records other than addresses. The size of answers by TCP
     * is not limited.
     *
     * @param nameServers name servers to ask; if empty, the system's name servers are asked
     */
    public static DnsNames ofRecords(EventLoop loop, List<InetSocketAddress> nameServers) {
        return new DnsNames(
                resolver(loop, nameServers, DnsNames::stream), () -> NoopDnsCache.INSTANCE, new AtomicInteger());
    }

    /**
     * Creates resolvers for callers that want any one address of a host. At most {@code MAX_KEPT} addresses of a host
     * are cached, and answers by TCP are limited to {@code MAX_ANSWER_BYTES}.
     *
     * @param nameServers name servers to ask; if empty, the system's name servers are asked
     * @param maxTtlSeconds longest time for which an answer is cached, even if its own time to live is longer
     */
    static DnsNames ofAny(EventLoop loop, List<InetSocketAddress> nameServers, int maxTtlSeconds) {
        return new DnsNames(
                resolver(loop, nameServers, () -> shortStream(MAX_ANSWER_BYTES, new AtomicInteger())),
                () -> new FewAddresses(maxTtlSeconds),
                new AtomicInteger());
    }

    /** Returns a resolver for records other than addresses. */
    public DnsNameResolver any() {
        return resolvers.get(0);
    }

    /**
     * Passes all addresses of a host, or a failure, to {@code consumer}, on the event loop. The second family is asked
     * for only if a name server has answered that there are no addresses of the first one.
     */
    public void addresses(String host, BiConsumer<@Nullable List<InetAddress>, @Nullable Throwable> consumer) {
        ask(host, 0, consumer);
    }

    private void ask(String host, int at, BiConsumer<@Nullable List<InetAddress>, @Nullable Throwable> consumer) {
        int before = refused.get();
        resolvers.get(at).resolveAll(host).addListener((Future<List<InetAddress>> answer) -> {
            Throwable failure = answer.cause();
            if (failure == null) {
                consumer.accept(answer.getNow(), null);
            } else if (refused.get() != before) {
                consumer.accept(null, new UnknownHostException(host + ": an answer by TCP that is too long"));
            } else if (at + 1 < resolvers.size() && saysThatThereAreNone(failure)) {
                ask(host, at + 1, consumer);
            } else {
                consumer.accept(null, failure);
            }
        });
    }

    /** Says whether a name server has answered that the name does not exist, or that it has no record of the family. */
    private static boolean saysThatThereAreNone(Throwable failure) {
        if (!(failure instanceof UnknownHostException)) {
            return false;
        }
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            if (cause instanceof DnsErrorCauseException error) {
                return DnsResponseCode.NXDOMAIN.equals(error.getCode());
            }
            if (cause instanceof DnsNameResolverException) {
                // no answer has come in time, or the answer could not be read
                return false;
            }
        }
        return true;
    }

    public void close() {
        resolvers.forEach(DnsNameResolver::close);
    }

    /**
     * Returns the families in the order in which they are asked for. IPv4 is first, unless the JDK prefers IPv6 or this
     * host has addresses of IPv6 only. If the JDK is set to use IPv4 alone, IPv4 is the only family.
     */
    private static List<ResolvedAddressTypes> families() {
        if (NetUtil.isIpV4StackPreferred()) {
            return List.of(ResolvedAddressTypes.IPV4_ONLY);
        }
        boolean isIpV6First = NetUtil.isIpV6AddressesPreferred()
                || hasAddress(Inet6Address.class::isInstance) && !hasAddress(Inet4Address.class::isInstance);
        return isIpV6First
                ? List.of(ResolvedAddressTypes.IPV6_ONLY, ResolvedAddressTypes.IPV4_ONLY)
                : List.of(ResolvedAddressTypes.IPV4_ONLY, ResolvedAddressTypes.IPV6_ONLY);
    }

    /** Whether this host has an address of this family from which it can reach other hosts. */
    private static boolean hasAddress(Predicate<InetAddress> family) {
        return NetUtil.NETWORK_INTERFACES.stream()
                .flatMap(NetworkInterface::inetAddresses)
                .anyMatch(each -> family.test(each) && !each.isLoopbackAddress() && !each.isLinkLocalAddress());
    }

    private static SocketChannel stream() {
        return Epoll.isAvailable() ? new EpollSocketChannel() : new NioSocketChannel();
    }

    private static SocketChannel shortStream(int maxBytes, AtomicInteger refused) {
        SocketChannel made = stream();
        made.pipeline().addLast(new ShortAnswer(maxBytes, refused));
        return made;
    }

    /**
     * Creates a builder of resolvers.
     *
     * @param streams creates the TCP channel for a question whose answer does not fit into a datagram
     */
    private static DnsNameResolverBuilder resolver(
            EventLoop loop, List<InetSocketAddress> nameServers, ChannelFactory<SocketChannel> streams) {
        DnsNameResolverBuilder builder = new DnsNameResolverBuilder(loop)
                .datagramChannelType(Epoll.isAvailable() ? EpollDatagramChannel.class : NioDatagramChannel.class)
                .socketChannelFactory(streams)
                // a random port for each resolution, so that a forged answer has to guess the port as well as the
                // question's number
                .datagramChannelStrategy(DnsNameResolverChannelStrategy.ChannelPerResolution)
                .queryTimeoutMillis(QUERY_MILLIS)
                .cnameCache(NoopDnsCnameCache.INSTANCE)
                .authoritativeDnsServerCache(NoopAuthoritativeDnsServerCache.INSTANCE);
        return nameServers.isEmpty()
                ? builder
                : builder.nameServerProvider(new SequentialDnsServerAddressStreamProvider(nameServers));
    }

    /**
     * Closes the TCP connection of a question if the answer is longer than {@code maxBytes}: the event loop would need
     * long for it, since Netty compares each address with all before it. Netty then uses the truncated answer that has
     * come in a datagram.
     */
    private static final class ShortAnswer extends ChannelInboundHandlerAdapter {
        private final int maxBytes;
        private final AtomicInteger refused;
        private int bytes;

        ShortAnswer(int maxBytes, AtomicInteger refused) {
            this.maxBytes = maxBytes;
            this.refused = refused;
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            bytes += ((ByteBuf) message).readableBytes();
            if (bytes <= maxBytes) {
                context.fireChannelRead(message);
                return;
            }
            refused.incrementAndGet();
            ReferenceCountUtil.release(message);
            context.fireExceptionCaught(
                    new TooLongFrameException("an answer by TCP of more than " + maxBytes + " bytes"));
            context.close();
        }
    }

    /**
     * Cache that keeps only the first addresses of a host, since Netty copies all cached addresses of the host each
     * time it adds another one.
     */
    private static final class FewAddresses extends DefaultDnsCache {
        FewAddresses(int maxTtlSeconds) {
            super(0, maxTtlSeconds, 0);
        }

        @Override
        public DnsCacheEntry cache(
                String host, DnsRecord[] additionals, InetAddress address, long ttlSeconds, EventLoop loop) {
            List<? extends DnsCacheEntry> kept = get(host, additionals);
            return kept == null || kept.size() < MAX_KEPT
                    ? super.cache(host, additionals, address, ttlSeconds, loop)
                    : NoopDnsCache.INSTANCE.cache(host, additionals, address, ttlSeconds, loop);
        }
    }
}
