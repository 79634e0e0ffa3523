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
 * Asks name servers, on one event loop. The addresses of a host are taken from one family only, IPv4 or IPv6: a machine
 * with addresses of both families is one instance, and where only one of two questions is answered, the list would be
 * incomplete.
 */
public final class DnsNames {
    /** Longest wait for the answer to one datagram; then the next name server is asked. */
    private static final long QUERY_MILLIS = 1_000;

    /**
     * Largest answer by TCP where one address is wanted: about a thousand IPv4 addresses. A datagram has 4 KiB at most.
     */
    private static final int MAX_ANSWER_BYTES = 16 * 1024;

    /**
     * Largest answer by TCP where all addresses are wanted: 1,500 IPv4 or 870 IPv6 addresses. Netty compares each
     * address with all before it: for 4,090 addresses an event loop takes 25 ms (JDK 25.0.3, AMD EPYC, 2 cores,
     * 2026-11-28), and for an answer of this size some 4 ms.
     */
    private static final int MAX_LONG_ANSWER_BYTES = 24 * 1024;

    /** Number of addresses of a host that are cached where one is wanted. */
    private static final int MAX_KEPT = 16;

    /** Address families in the order in which they are asked for. */
    private static final List<ResolvedAddressTypes> FAMILIES = families();

    private final List<DnsNameResolver> resolvers = new ArrayList<>();

    /**
     * Number of answers by TCP that were refused as too long. It tells why a question failed only where no two
     * questions are asked at the same time.
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
     * For callers that want all addresses of a host. Nothing is cached. An answer by TCP of more than
     * {@code MAX_LONG_ANSWER_BYTES} is refused.
     *
     * @param nameServers empty for those of the system
     */
    public static DnsNames ofAll(EventLoop loop, List<InetSocketAddress> nameServers) {
        AtomicInteger refused = new AtomicInteger();
        return new DnsNames(
                resolver(loop, nameServers, () -> shortStream(MAX_LONG_ANSWER_BYTES, refused)),
                () -> NoopDnsCache.INSTANCE,
                refused);
    }

    /**
     * For callers that ask {@link #any} for records other than addresses. Answers by TCP have no bound of their own,
     * since Netty does not compare such records with each other.
     *
     * @param nameServers empty for those of the system
     */
    public static DnsNames ofRecords(EventLoop loop, List<InetSocketAddress> nameServers) {
        return new DnsNames(
                resolver(loop, nameServers, DnsNames::stream), () -> NoopDnsCache.INSTANCE, new AtomicInteger());
    }

    /**
     * For callers that want any one address of a host. An answer may name thousands of addresses: only
     * {@code MAX_KEPT} are cached, and an answer by TCP of more than {@code MAX_ANSWER_BYTES} is refused.
     *
     * @param nameServers empty for those of the system
     * @param maxTtlSeconds longest time to cache an answer, whose own time to live may be less
     */
    static DnsNames ofAny(EventLoop loop, List<InetSocketAddress> nameServers, int maxTtlSeconds) {
        return new DnsNames(
                resolver(loop, nameServers, () -> shortStream(MAX_ANSWER_BYTES, new AtomicInteger())),
                () -> new FewAddresses(maxTtlSeconds),
                new AtomicInteger());
    }

    /** Returns a resolver for questions that do not ask for addresses; any of the resolvers serves for these. */
    public DnsNameResolver any() {
        return resolvers.get(0);
    }

    /**
     * Passes all addresses of a host, or the reason why there are none, to {@code told}, on the event loop. Addresses
     * of the second family are asked for only where a name server has said that there are none of the first family, and
     * not where no name server has answered.
     */
    public void addresses(String host, BiConsumer<@Nullable List<InetAddress>, @Nullable Throwable> told) {
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

    /** Whether a name server has answered that the name does not exist, or has no record of the family. */
    private static boolean saysThatThereAreNone(Throwable failure) {
        if (!(failure instanceof UnknownHostException)) {
            return false;
        }
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            if (cause instanceof DnsErrorCauseException error) {
                return DnsResponseCode.NXDOMAIN.equals(error.getCode());
            }
            if (cause instanceof DnsNameResolverException) {
                // no answer has come in time, or one that could not be read
                return false;
            }
        }
        return true;
    }

    public void close() {
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

    /** Whether a network interface has an address of this family that reaches other hosts. */
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

    /** @param streams makes the TCP channel on which an answer is asked for that does not fit a datagram */
    private static DnsNameResolverBuilder resolver(
            EventLoop loop, List<InetSocketAddress> nameServers, ChannelFactory<SocketChannel> streams) {
        DnsNameResolverBuilder builder = new DnsNameResolverBuilder(loop)
                .datagramChannelType(Epoll.isAvailable() ? EpollDatagramChannel.class : NioDatagramChannel.class)
                .socketChannelFactory(streams)
                // each resolution has a random port: a forged answer has to match it and the number of the question
                .datagramChannelStrategy(DnsNameResolverChannelStrategy.ChannelPerResolution)
                .queryTimeoutMillis(QUERY_MILLIS)
                .cnameCache(NoopDnsCnameCache.INSTANCE)
                .authoritativeDnsServerCache(NoopAuthoritativeDnsServerCache.INSTANCE);
        return nameServers.isEmpty()
                ? builder
                : builder.nameServerProvider(new SequentialDnsServerAddressStreamProvider(nameServers));
    }

    /**
     * Ends the TCP connection of one question where the answer is too long: Netty compares each address with all before
     * it, on the event loop. The truncated answer in the datagram counts then.
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

    /** Cache that keeps only the first addresses of a host, since Netty copies all of these for each further one. */
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
