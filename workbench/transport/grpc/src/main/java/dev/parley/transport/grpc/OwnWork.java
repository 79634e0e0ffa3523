package dev.parley.transport.grpc;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.json.Json;
import dev.parley.spi.messages.Messages;
import java.time.Duration;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Function;
import java.util.stream.IntStream;

/** A work whose services and clients have generated messages in their hands, and never a record. */
record OwnWork(Work records) implements Work {
    /** A call has as long as the works themselves wait. */
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    @Override
    public String name() {
        return records.name();
    }

    @Override
    public Contract contract() {
        return Own.contract(records.contract());
    }

    @Override
    public Node node(Topology.Node self, Map<String, Neighbour> neighbours) {
        if (name().equals(Messages.CONTRACT.name())) {
            return new OwnMessagesNode(self, neighbours, TIMEOUT);
        }
        if (name().equals(Json.CONTRACT.name())) {
            return new OwnJsonNode(self, neighbours, TIMEOUT);
        }
        throw new BadInput("work", name(), "one with a handler on generated messages: messages, json");
    }

    @Override
    public List<String> backends() {
        return records.backends();
    }

    @Override
    public boolean hasBackendsEach() {
        return records.hasBackendsEach();
    }

    @Override
    public void prepare(Topology topology, Function<Topology.Node, Map<String, Location>> backends) {
        records.prepare(topology, backends);
    }

    @Override
    public Exchange<?, ?> exchange(MessageSpec message, Topology topology, Topology.Node asked, long seed) {
        return own(records.exchange(message, topology, asked, seed));
    }

    private <Q extends Record, R extends Record> Exchange<?, ?> own(Exchange<Q, R> exchange) {
        Operation<Q, R> operation = exchange.operation();
        return own(exchange, ProtobufCodec.of(operation.request()), ProtobufCodec.of(operation.reply()));
    }

    @SuppressWarnings("unchecked") // the contract on generated messages has each operation of that on records
    private <Q extends Record, R extends Record, QM extends Message, RM extends Message> Exchange<?, ?> own(
            Exchange<Q, R> exchange, ProtobufCodec<Q, QM> requests, ProtobufCodec<R, RM> replies) {
        return new OwnExchange<>(
                (Operation<Own<QM>, Own<RM>>)
                        contract().operation(exchange.operation().name()),
                exchange,
                requests,
                replies);
    }

    /** Converts each of a work's requests once, before the first call. */
    private static final class OwnExchange<Q extends Record, R extends Record, QM extends Message, RM extends Message>
            implements Exchange<Own<QM>, Own<RM>> {
        /** More different requests than any of these works has. */
        private static final int MAX_REQUESTS = 4_096;

        private final Operation<Own<QM>, Own<RM>> operation;
        private final Exchange<Q, R> records;
        private final ProtobufCodec<R, RM> replies;
        private final List<Own<QM>> requests;
        private final Map<Own<QM>, Integer> places = new IdentityHashMap<>();
        /** Each request's answer, once it was found right by its records: later ones are held against it. */
        private final AtomicReferenceArray<RM> right;

        OwnExchange(
                Operation<Own<QM>, Own<RM>> operation,
                Exchange<Q, R> records,
                ProtobufCodec<Q, QM> requests,
                ProtobufCodec<R, RM> replies) {
            this.operation = operation;
            this.records = records;
            this.replies = replies;
            this.requests = converted(records, requests);
            this.right = new AtomicReferenceArray<>(this.requests.size());
            IntStream.range(0, this.requests.size()).forEach(i -> places.put(this.requests.get(i), i));
        }

        private static <Q extends Record, QM extends Message> List<Own<QM>> converted(
                Exchange<Q, ?> records, ProtobufCodec<Q, QM> codec) {
            List<Own<QM>> converted = new ArrayList<>();
            Q first = records.request(0);
            for (Q next = first; converted.isEmpty() || next != first; next = records.request(converted.size())) {
                if (converted.size() == MAX_REQUESTS) {
                    throw new BadInput(
                            "work",
                            records.operation().name(),
                            "one whose requests come again after at most " + MAX_REQUESTS);
                }
                converted.add(new Own<>(codec.toMessage().apply(next)));
            }
            return List.copyOf(converted);
        }

        @Override
        public Operation<Own<QM>, Own<RM>> operation() {
            return operation;
        }

        @Override
        public void enter(Neighbour service, Duration timeout) {
            records.enter(service, timeout);
        }

        @Override
        public Own<QM> request(long index) {
            return requests.get(Math.floorMod(index, requests.size()));
        }

        @Override
        public boolean isRight(Own<QM> request, Own<RM> reply) {
            Integer place = places.get(request);
            if (place == null) {
                return false;
            }
            RM known = right.get(place);
            if (known != null) {
                return known.equals(reply.message());
            }
            boolean isRight =
                    records.isRight(records.request(place), replies.toRecord().apply(reply.message()));
            if (isRight) {
                right.set(place, reply.message());
            }
            return isRight;
        }
    }
}
