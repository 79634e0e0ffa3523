package dev.rpcx.internal.discovery;

import dev.rpcx.Endpoint;
import dev.rpcx.VisibleText;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.io.DnsNames;
import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.DecoderException;
import io.netty.handler.codec.dns.DefaultDnsQuestion;
import io.netty.handler.codec.dns.DefaultDnsRecordDecoder;
import io.netty.handler.codec.dns.DnsRawRecord;
import io.netty.handler.codec.dns.DnsRecord;
import io.netty.handler.codec.dns.DnsRecordType;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Question to DNS for the instances of a service. Clients with equal questions, refresh times and name servers share
 * one watch.
 */
public sealed interface DnsQuestion {
    /**
     * Asks this question without blocking. The instances or a failure are passed to {@code callback}, on the event loop
     * of {@code names}.
     */
    void ask(DnsNames names, BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> callback);

    /**
     * Creates a resolver that can answer this question.
     *
     * @param nameServers name servers to ask; empty for the name servers of the system
     */
    DnsNames names(EventLoop loop, List<InetSocketAddress> nameServers);

    /** Reads the instances of a service from an answer of DNS. */
    interface Reading<T> {
        List<Endpoint> of(T answer) throws UnknownHostException;
    }

    /**
     * Reads the instances from an answer of DNS, and passes the instances or a failure to {@code callback}. If
     * {@code reading} throws, for example because the answer is malformed, the exception is passed as the failure.
     */
    private static <T> void passOn(
            @Nullable T answer,
            @Nullable Throwable failure,
            Reading<T> reading,
            BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> callback) {
        List<Endpoint> found = null;
        Throwable why = failure;
        if (answer != null && failure == null) {
            try {
                found = reading.of(answer);
            } catch (Throwable e) {
                why = e;
            }
        }
        callback.accept(found, why);
    }

    /**
     * Question for the IP addresses of a host. Each address is an instance, with the same port. The addresses are
     * either all IPv4 or all IPv6. The hosts file and the search list are used.
     */
    record Addresses(String host, int port) implements DnsQuestion {
        public Addresses {
            host = new Endpoint(host, port).host().toLowerCase(Locale.ROOT);
        }

        @Override
        public void ask(DnsNames names, BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> callback) {
            names.addresses(host, (answer, failure) -> passOn(answer, failure, this::endpoints, callback));
        }

        @Override
        public DnsNames names(EventLoop loop, List<InetSocketAddress> nameServers) {
            return DnsNames.ofAll(loop, nameServers);
        }

        private List<Endpoint> endpoints(List<InetAddress> addresses) {
            return addresses.stream()
                    .map(address -> new Endpoint(address.getHostAddress(), port))
                    .distinct()
                    .toList();
        }
    }

    /**
     * Question for the SRV records of a name, as RFC 2782 defines them. The instances are the hosts and ports of the
     * records with the lowest priority number. A record with an empty host or with port 0 is ignored.
     *
     * <p>If a weight is above {@link Endpoint#MAX_WEIGHT}, or if some weights are 0 and others are not, all weights are
     * scaled so that the largest becomes {@code MAX_WEIGHT}. Afterwards a weight of 0 becomes 1. For example, the
     * weights 0 and 2 become 1 and 1000.
     */
    record Services(String name) implements DnsQuestion {
        private static final int MAX_LABEL_BYTES = 63;
        private static final int MAX_NAME_BYTES = 253;

        /** Total length in bytes of the priority, the weight and the port in an SRV record. */
        private static final int FIXED_BYTES = 6;

        public Services {
            Given.notNull(name, "name", "as _greeter._tcp.example.org");
            String whole = (name.endsWith(".") ? name.substring(0, name.length() - 1) : name).toLowerCase(Locale.ROOT);
            boolean good = StandardCharsets.US_ASCII.newEncoder().canEncode(whole) && whole.length() <= MAX_NAME_BYTES;
            for (String label : whole.split("\\.", -1)) {
                good &= !label.isEmpty() && label.length() <= MAX_LABEL_BYTES;
            }
            if (!good) {
                throw new IllegalArgumentException("name: " + name + " (expected: as _greeter._tcp.example.org)");
            }
            name = whole;
        }

        @Override
        public void ask(DnsNames names, BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> callback) {
            // the dot at the end makes the name absolute, so that the search list is not used
            names.any()
                    .resolveAll(new DefaultDnsQuestion(name + ".", DnsRecordType.SRV))
                    .addListener((Future<List<DnsRecord>> answer) ->
                            passOn(answer.getNow(), answer.cause(), Services::released, callback));
        }

        @Override
        public DnsNames names(EventLoop loop, List<InetSocketAddress> nameServers) {
            return DnsNames.ofRecords(loop, nameServers);
        }

        private static List<Endpoint> released(List<DnsRecord> records) throws UnknownHostException {
            try {
                return lowest(records);
            } finally {
                records.forEach(ReferenceCountUtil::release);
            }
        }

        /**
         * Returns the targets of the SRV records with the lowest priority number, as instances.
         *
         * @throws UnknownHostException if the target of a record cannot be read
         */
        public static List<Endpoint> lowest(List<DnsRecord> records) throws UnknownHostException {
            List<Endpoint> found = new ArrayList<>();
            List<Integer> weights = new ArrayList<>();
            int lowest = Integer.MAX_VALUE;
            for (DnsRecord each : records) {
                if (!(each instanceof DnsRawRecord raw)
                        || !DnsRecordType.SRV.equals(raw.type())
                        || raw.content().readableBytes() <= FIXED_BYTES) {
                    continue;
                }
                ByteBuf in = raw.content();
                int priority = in.readUnsignedShort();
                int weight = in.readUnsignedShort();
                int port = in.readUnsignedShort();
                String host = host(in);
                if (port == 0 || host.isEmpty() || priority > lowest) {
                    continue;
                }
                if (priority < lowest) {
                    lowest = priority;
                    found.clear();
                    weights.clear();
                }
                found.add(endpoint(host, port));
                weights.add(weight);
            }
            return weighed(found, weights);
        }

        private static Endpoint endpoint(String host, int port) throws UnknownHostException {
            try {
                return new Endpoint(host, port);
            } catch (IllegalArgumentException e) {
                throw unreadable(e);
            }
        }

        /**
         * Creates the exception for a malformed SRV record. The text of the exception can contain bytes of the record,
         * so invisible characters are escaped.
         */
        private static UnknownHostException unreadable(RuntimeException why) {
            return new UnknownHostException("an SRV record that cannot be read: "
                    + VisibleText.line(ThrowableText.message(why), ThrowableText.MAX_WHY));
        }

        private static List<Endpoint> weighed(List<Endpoint> found, List<Integer> weights) {
            int largest = weights.stream().mapToInt(weight -> weight).max().orElse(0);
            boolean isScaled = largest > Endpoint.MAX_WEIGHT || largest > 0 && weights.contains(0);
            List<Endpoint> weighed = new ArrayList<>();
            for (int i = 0; i < found.size(); i++) {
                int weight = isScaled ? weights.get(i) * Endpoint.MAX_WEIGHT / largest : weights.get(i);
                weighed.add(new Endpoint(found.get(i).host(), found.get(i).port(), Math.max(1, weight)));
            }
            return weighed;
        }

        private static String host(ByteBuf in) throws UnknownHostException {
            String target;
            try {
                target = DefaultDnsRecordDecoder.decodeName(in);
            } catch (DecoderException | IndexOutOfBoundsException e) {
                throw unreadable(e);
            }
            return target.endsWith(".") ? target.substring(0, target.length() - 1) : target;
        }
    }
}
