package dev.rpcx;

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

/** What is asked of DNS, and how its answer reads. A value: equal questions are asked once for all who want to know. */
sealed interface DnsQuestion {
    /** Asks, and tells instances or a failure on the event loop of the resolver. Does not block. */
    void ask(DnsNames names, BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> told);

    /**
     * Whom to ask.
     *
     * @param nameServers empty for those of the system
     */
    DnsNames names(EventLoop loop, List<InetSocketAddress> nameServers);

    /** What an answer reads as. */
    interface Reading<T> {
        List<Endpoint> of(T answer) throws UnknownHostException;
    }

    /** Tells what has been found, or why nothing can be read, whatever that throws: its bytes may be anybody's. */
    private static <T> void tell(
            @Nullable T answer,
            @Nullable Throwable failure,
            Reading<T> reading,
            BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> told) {
        List<Endpoint> found = null;
        Throwable why = failure;
        if (answer != null && failure == null) {
            try {
                found = reading.of(answer);
            } catch (Throwable e) {
                why = e;
            }
        }
        told.accept(found, why);
    }

    /** Addresses of a host, all at one port and of one family. The hosts file and the search list hold. */
    record Addresses(String host, int port) implements DnsQuestion {
        public Addresses {
            host = new Endpoint(host, port).host().toLowerCase(Locale.ROOT);
        }

        @Override
        public void ask(DnsNames names, BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> told) {
            names.addresses(host, (answer, failure) -> tell(answer, failure, this::endpoints, told));
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
     * Targets of an SRV record, those of the lowest priority that can be called. Weights above
     * {@link Endpoint#MAX_WEIGHT} are scaled together, and 0 beside others is the smallest share there is. Source: RFC
     * 2782.
     */
    record Services(String name) implements DnsQuestion {
        private static final int MAX_LABEL_BYTES = 63;
        private static final int MAX_NAME_BYTES = 253;

        /** Priority, weight and port. */
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
        public void ask(DnsNames names, BiConsumer<@Nullable List<Endpoint>, @Nullable Throwable> told) {
            // with the root's dot: the name is the whole of it, so no search list is tried
            names.any()
                    .resolveAll(new DefaultDnsQuestion(name + ".", DnsRecordType.SRV))
                    .addListener((Future<List<DnsRecord>> answer) ->
                            tell(answer.getNow(), answer.cause(), Services::released, told));
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

        /** @throws UnknownHostException a record that is none: its bytes may be anybody's */
        static List<Endpoint> lowest(List<DnsRecord> records) throws UnknownHostException {
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

        /** What is said of a record may have its bytes in it. */
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
