package dev.rpcx;

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
 * Asks name servers, on one event loop. A host's addresses are those of one family: a machine of both
 * families is one instance, and two questions of which one gets no answer would bring half of a list.
 */
final class DnsNames {
    /** Longest wait for one datagram; the next name server is asked after it. */
    private static final long QUERY_MILLIS = 1_000;

    /** Of an answer by TCP, where one address is wanted: a thousand of IPv4. A datagram has 4 KiB. */
    private static final int MAX_ANSWER_BYTES = 16 * 1024;

    /**
     * The same where all are wanted: 1,500 of IPv4, or 870 of IPv6. Comparing 4,090 takes an event loop 25 ms (JDK
     * 25.0.3, AMD EPYC, 2 cores, 2026-11-28), and so many some 4.
     */
    private static final int MAX_LONG_ANSWER_BYTES = 24 * 1024;

    /** Addresses of a host that are kept, where one is wanted. */
    private static final int MAX_KEPT = 16;

    /** The family that is asked for first, then the other one. */
    private static final List<ResolvedAddressTypes> FAMILIES = families();

    private final List<DnsNameResolver> resolvers = new ArrayList<>();

    /** Counts the answers that were too long, where one question is asked after the other. */
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
     * For who wants all addresses of a host, and asks anew each time. An answer by TCP that names more than the bound
     * is refused.
     *
     * @param nameServers empty for those of the system
     */
    static DnsNames ofAll(EventLoop loop, List<InetSocketAddress> nameServers) {
        AtomicInteger refused = new AtomicInteger();
        return new DnsNames(
                resolver(loop, nameServers, () -> shortStream(MAX_LONG_ANSWER_BYTES, refused)),
                () -> NoopDnsCache.INSTANCE,
                refused);
    }

    /**
     * For who asks {@link #any} for records that are no addresses, of which none is compared with others.
     *
     * @param nameServers empty for those of the system
     */
    static DnsNames ofRecords(EventLoop loop, List<InetSocketAddress> nameServers) {
        return new DnsNames(
                resolver(loop, nameServers, DnsNames::stream), () -> NoopDnsCache.INSTANCE, new AtomicInteger());
    }

    /**
     * For who wants any one address of a host: of an answer, which may name thousands, few are kept, and one by TCP is
     * refused that is too long.
     *
     * @param nameServers empty for those of the system
     * @param maxTtlSeconds an answer is kept for its time to live, at most so long
     */
    static DnsNames ofAny(EventLoop loop, List<InetSocketAddress> nameServers, int maxTtlSeconds) {
        return new DnsNames(
                resolver(loop, nameServers, () -> shortStream(MAX_ANSWER_BYTES, new AtomicInteger())),
                () -> new FewAddresses(maxTtlSeconds),
                new AtomicInteger());
    }

    /** For questions that are not for addresses. */
    DnsNameResolver any() {
        return resolvers.get(0);
    }

    /**
     * Tells all addresses of a host, or why there are none, on the event loop. Those of the second family count where a
     * name server has said that there are none of the first one, and not where none has answered.
     */
    void addresses(String host, BiConsumer<@Nullable List<InetAddress>, @Nullable Throwable> told) {
        ask(host, 0, told);
    }

    private void ask(String host, int at, BiConsumer<@Nullable List<InetAddress>, @Nullable Throwable> told) {
        int before = refused.get();
        resolvers.get(at).resolveAll(host).addListener((Future<List<InetAddress>> answer) -> {
            Throwable failure = answer.cause();
            if (failure == null) {
                told.accept(answer.getNow(), null);
            } else if (refused.get() != before) {
                told.accept(null, new UnknownHostException(host + ": an answer by TCP that is too long"));
            } else if (at + 1 < resolvers.size() && saysThatThereAreNone(failure)) {
                ask(host, at + 1, told);
            } else {
                told.accept(null, failure);
            }
        });
    }

    /** Whether a name server has answered that there is no such name, or no such record of it. */
    private static boolean saysThatThereAreNone(Throwable failure) {
        if (!(failure instanceof UnknownHostException)) {
            return false;
        }
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            if (cause instanceof DnsErrorCauseException error) {
                return DnsResponseCode.NXDOMAIN.equals(error.getCode());
            }
            if (cause instanceof DnsNameResolverException) {
                // no answer in time, or one that could not be read
                return false;
            }
        }
        return true;
    }

    void close() {
        resolvers.forEach(DnsNameResolver::close);
    }

    /** IPv4 first, unless the JDK prefers IPv6 or this host has addresses of IPv6 only. */
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

    /** Whether an interface has such an address that reaches other hosts. */
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

    /** @param streams an answer that does not fit a datagram is asked for by TCP, on one of them */
    private static DnsNameResolverBuilder resolver(
            EventLoop loop, List<InetSocketAddress> nameServers, ChannelFactory<SocketChannel> streams) {
        DnsNameResolverBuilder builder = new DnsNameResolverBuilder(loop)
                .datagramChannelType(Epoll.isAvailable() ? EpollDatagramChannel.class : NioDatagramChannel.class)
                .socketChannelFactory(streams)
                // a random port for each resolution: who forges an answer has to guess it beside the question's number
                .datagramChannelStrategy(DnsNameResolverChannelStrategy.ChannelPerResolution)
                .queryTimeoutMillis(QUERY_MILLIS)
                .cnameCache(NoopDnsCnameCache.INSTANCE)
                .authoritativeDnsServerCache(NoopAuthoritativeDnsServerCache.INSTANCE);
        return nameServers.isEmpty()
                ? builder
                : builder.nameServerProvider(new SequentialDnsServerAddressStreamProvider(nameServers));
    }

    /**
     * Ends a connection, which is that of one question, where its answer is too long: Netty compares each address with
     * all before it, on the event loop. What the datagram has said counts then, as far as it went.
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

    /** Keeps the first addresses of a host: for each one more Netty copies those that are kept. */
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
