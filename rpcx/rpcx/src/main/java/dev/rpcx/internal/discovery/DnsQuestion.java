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

/** A question to DNS. Clients that ask equal questions share one watch. */
public sealed interface DnsQuestion {
    /**
     * Asks the question without blocking, and passes instances or a failure to {@code callback}, on the event loop of
     * the resolver.
     */
    void ask(DnsNames names, BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> callback);

    /**
     * Creates the resolver that answers this question.
     *
     * @param nameServers name servers to ask; if empty, the system's name servers are asked
     */
    DnsNames names(EventLoop loop, List<InetSocketAddress> nameServers);

    /** Reads the instances from an answer. */
    interface Reading<T> {
        List<Endpoint> of(T answer) throws UnknownHostException;
    }

    /**
     * Passes the instances in an answer, or a failure, to {@code callback}. If {@code reading} throws, for example
     * because the answer is malformed, the exception is passed as the failure.
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
     * Question for the addresses of a host, either all IPv4 or all IPv6. All get the same port. The hosts file and the
     * search list are used.
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
     * Question for the SRV records of a name. Of the targets that can be called, only those with the lowest priority
     * number are used. Their weights are scaled if one is above {@link Endpoint#MAX_WEIGHT}, or if one is 0 and another
     * is not. A weight of 0 becomes 1. Source: RFC 2782.
     */
    record Services(String name) implements DnsQuestion {
        private static final int MAX_LABEL_BYTES = 63;
        private static final int MAX_NAME_BYTES = 253;

        /** Length in bytes of priority, weight and port together. */
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
            // the dot at the end makes the name absolute, so no search list is tried
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
         * Returns the targets with the lowest priority number, as instances.
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
         * Creates the failure for a malformed record. Its text may contain bytes of the record, so invisible characters
         * are escaped.
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
