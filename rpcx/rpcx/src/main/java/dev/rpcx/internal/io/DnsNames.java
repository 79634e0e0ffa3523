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
 * Asks name servers for the addresses of a host or for other DNS records, on one event loop. All addresses that are
 * returned for a host belong to one family, either IPv4 or IPv6. If both families were returned, a machine with
 * addresses of both would count as two instances.
 */
public final class DnsNames {
    /**
     * Longest time to wait for the answer to one query, by UDP or by TCP: 1 s. If no answer comes by UDP in this time,
     * the next name server is asked.
     */
    private static final long MAX_QUERY_MILLIS = 1_000;

    /**
     * Size in bytes of the largest TCP answer that is accepted if the caller needs only one address of a host. An
     * answer of this size contains about 1,000 IPv4 addresses.
     */
    private static final int MAX_ANSWER_BYTES = 16 * 1024;

    /**
     * Size in bytes of the largest TCP answer that is accepted if the caller wants all addresses of a host: 1,500 IPv4
     * or 870 IPv6 addresses. Netty compares each address with all before it, on the event loop, which takes about 4 ms
     * for 1,500 addresses, and 25 ms for 4,090 addresses (JDK 25.0.3, AMD EPYC, 2 cores, 2026-11-28).
     */
    private static final int MAX_LONG_ANSWER_BYTES = 24 * 1024;

    /** Largest number of addresses of one host that are cached for callers that need only one address of the host. */
    private static final int MAX_KEPT = 16;

    /** Address families (IPv4, IPv6) in the order in which name servers are asked for them. */
    private static final List<ResolvedAddressTypes> FAMILIES = families();

    private final List<DnsNameResolver> resolvers = new ArrayList<>();

    /**
     * Number of TCP answers that were refused as too long. Only {@link #ofAll} counts these answers. If the number
     * grows during a question that fails, the failure is reported as an answer that is too long. The report can be
     * wrong if another question is asked at the same time. Used on the event loop only.
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
     * Creates resolvers that find all addresses of a host and cache nothing. TCP answers of more than
     * {@code MAX_LONG_ANSWER_BYTES} are refused. After a refusal, only the addresses in the truncated UDP answer are
     * found.
     *
     * @param nameServers name servers to ask; empty for the name servers of the system
     */
    public static DnsNames ofAll(EventLoop loop, List<InetSocketAddress> nameServers) {
        AtomicInteger refused = new AtomicInteger();
        return new DnsNames(
                resolver(loop, nameServers, () -> shortStream(MAX_LONG_ANSWER_BYTES, refused)),
                () -> NoopDnsCache.INSTANCE,
                refused);
    }

    /**
     * Creates resolvers for DNS records other than addresses. Callers look up such records with {@link #any}. The size
     * of TCP answers is not limited.
     *
     * @param nameServers name servers to ask; empty for the name servers of the system
     */
    public static DnsNames ofRecords(EventLoop loop, List<InetSocketAddress> nameServers) {
        return new DnsNames(
                resolver(loop, nameServers, DnsNames::stream), () -> NoopDnsCache.INSTANCE, new AtomicInteger());
    }

    /**
     * Creates resolvers for callers that want any one address of a host. At most {@code MAX_KEPT} addresses of each
     * host are cached, and TCP answers of more than {@code MAX_ANSWER_BYTES} are refused.
     *
     * @param nameServers name servers to ask; empty for the name servers of the system
     * @param maxTtlSeconds longest time in seconds for which an answer is cached, even if the answer's time to live is
     *     longer
     */
    static DnsNames ofAny(EventLoop loop, List<InetSocketAddress> nameServers, int maxTtlSeconds) {
        return new DnsNames(
                resolver(loop, nameServers, () -> shortStream(MAX_ANSWER_BYTES, new AtomicInteger())),
                () -> new FewAddresses(maxTtlSeconds),
                new AtomicInteger());
    }

    /** Returns a resolver of Netty for DNS records other than addresses. */
    public DnsNameResolver any() {
        return resolvers.get(0);
    }

    /**
     * Finds all addresses of a host, and passes the addresses or a failure to {@code consumer}, on the event loop. The
     * second address family (IPv4 or IPv6) is asked for only if a name server has answered that the host has no address
     * of the first family.
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

    /**
     * Returns true if a name server has answered that the host does not exist or has no address of the requested
     * family. Returns false if the failure has another cause, such as a missing answer.
     */
    private static boolean saysThatThereAreNone(Throwable failure) {
        if (!(failure instanceof UnknownHostException)) {
            return false;
        }
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            if (cause instanceof DnsErrorCauseException error) {
                return DnsResponseCode.NXDOMAIN.equals(error.getCode());
            }
            if (cause instanceof DnsNameResolverException) {
                // the query could not be sent, no answer has come in time, or the answer could not be read
                return false;
            }
        }
        return true;
    }

    public void close() {
        resolvers.forEach(DnsNameResolver::close);
    }

    /**
     * Returns the address families in the order in which name servers are asked for them: by default, first IPv4 and
     * then IPv6. IPv6 comes first if the JDK prefers IPv6, or if this machine has addresses of IPv6 only. If the JDK is
     * set to use IPv4 alone, IPv6 is left out.
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

    /**
     * Returns whether this machine has an address of the given family, IPv4 or IPv6. Loopback and link-local addresses
     * do not count.
     */
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
     * Creates a builder with the common settings of all DNS resolvers.
     *
     * @param streams creates the TCP channel for a question whose answer does not fit into a datagram
     */
    private static DnsNameResolverBuilder resolver(
            EventLoop loop, List<InetSocketAddress> nameServers, ChannelFactory<SocketChannel> streams) {
        DnsNameResolverBuilder builder = new DnsNameResolverBuilder(loop)
                .datagramChannelType(Epoll.isAvailable() ? EpollDatagramChannel.class : NioDatagramChannel.class)
                .socketChannelFactory(streams)
                // each lookup uses a random port, so that a forger has to guess the port as well as the number of the
                // query
                .datagramChannelStrategy(DnsNameResolverChannelStrategy.ChannelPerResolution)
                .queryTimeoutMillis(MAX_QUERY_MILLIS)
                .cnameCache(NoopDnsCnameCache.INSTANCE)
                .authoritativeDnsServerCache(NoopAuthoritativeDnsServerCache.INSTANCE);
        return nameServers.isEmpty()
                ? builder
                : builder.nameServerProvider(new SequentialDnsServerAddressStreamProvider(nameServers));
    }

    /**
     * Refuses a TCP answer that is longer than {@code maxBytes}, and closes the TCP connection to the name server. A
     * long answer would hold up the event loop, since Netty compares each address with all before it. After a refusal,
     * Netty uses the truncated answer that has come by UDP.
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
     * Cache that keeps at most {@code MAX_KEPT} addresses of each host, since Netty copies all cached addresses of the
     * host for each address that is added.
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
