package dev.parley.transport.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.model.MessageSpec;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.Work;
import dev.parley.transport.contract.TransportContract;
import dev.parley.work.json.JsonWork;
import dev.parley.work.messages.MessagesWork;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The kit has records; here they are converted before and behind the transport, which carries generated messages only.
 */
class GrpcMessagesTransportTest extends TransportContract {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private final GrpcTransport grpc = new GrpcTransport(GrpcUse.MESSAGES);

    @Override
    protected Transport transport() {
        return new Converting(grpc);
    }

    @ParameterizedTest
    @CsvSource({
        "messages, line:1, text:10",
        "messages, line:3, text:1000",
        "messages, line:3, types:1000",
        "messages, star:3, text:100",
        "messages, tree, types:100",
        "json, line:2, get",
        "json, line:2, json:1000"
    })
    void servicesOnMessagesAnswerAsThoseOnRecordsDo(String name, String topology, String message) throws Exception {
        Work records = name.equals("json") ? new JsonWork() : new MessagesWork();
        Topology services = Topology.parse(topology);
        Work own = grpc.work(records);
        Deque<AutoCloseable> open = new ArrayDeque<>();
        Map<String, Location> places = new HashMap<>();
        try {
            List<Topology.Node> leavesFirst = new ArrayList<>(services.nodes());
            for (Topology.Node node : leavesFirst.reversed()) {
                Map<String, Neighbour> neighbours = new HashMap<>();
                for (String callee : node.calls()) {
                    Neighbour neighbour = grpc.connect(node.name(), own.contract(), places.get(callee));
                    neighbours.put(callee, neighbour);
                    open.push(neighbour);
                }
                Work.Node handler = own.node(node, neighbours);
                open.push(handler);
                Location at = freeLocation(node.name());
                places.put(node.name(), at);
                open.push(grpc.serve(node.name(), own.contract(), at, handler));
            }
            Location entry = places.get(services.entry().name());
            MessageSpec spec = MessageSpec.parse(message);
            Neighbour onMessages = grpc.connect("client", own.contract(), entry);
            open.push(onMessages);
            assertRight(onMessages, own.exchange(spec, services, services.entry(), 5));
            Neighbour onRecords = new GrpcTransport(GrpcUse.STANDARD).connect("client", records.contract(), entry);
            open.push(onRecords);
            assertRight(onRecords, records.exchange(spec, services, services.entry(), 5));
        } finally {
            while (!open.isEmpty()) {
                open.pop().close();
            }
        }
    }

    private static <Q extends Record, R extends Record> void assertRight(
            Neighbour neighbour, Work.Exchange<Q, R> exchange) {
        for (int index = 0; index < 80; index++) {
            Q request = exchange.request(index);
            R reply = neighbour.call(exchange.operation(), request, TIMEOUT);
            assertThat(exchange.isRight(request, reply)).isTrue();
            assertThat(exchange.isRight(exchange.request(index + 1L), reply))
                    .as("another request's reply, unless there is but one request")
                    .isEqualTo(exchange.request(index + 1L).equals(request));
        }
    }

    private record Converting(Transport grpc) implements Transport {
        @Override
        public Technology technology() {
            return grpc.technology();
        }

        @Override
        public boolean carries(Contract contract) {
            return grpc.carries(contract);
        }

        @Override
        public Server serve(String service, Contract contract, Location at, Handler handler) {
            return grpc.serve(service, Own.contract(contract), at, new Handler() {
                @Override
                public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
                    return operation.reply().cast(answer(contract.operation(operation.name()), handler, request));
                }
            });
        }

        private static <Q extends Record, R extends Record> Own<?> answer(
                Operation<Q, R> operation, Handler handler, Record request) {
            return own(handler.handle(operation, record(request, operation.request())));
        }

        @Override
        public Neighbour connect(String caller, Contract contract, Location to) {
            Contract own = Own.contract(contract);
            Neighbour neighbour = grpc.connect(caller, own, to);
            return new Neighbour() {
                @Override
                public <Q extends Record, R extends Record> R call(
                        Operation<Q, R> operation, Q request, Duration timeout) {
                    return record(called(own.operation(operation.name()), own(request), timeout), operation.reply());
                }

                private <Q extends Record> Record called(Operation<Q, ?> operation, Own<?> request, Duration timeout) {
                    return neighbour.call(operation, operation.request().cast(request), timeout);
                }

                @Override
                public <Q extends Record, R extends Record> CompletableFuture<R> send(
                        Operation<Q, R> operation, Q request, Duration timeout) {
                    return sent(own.operation(operation.name()), own(request), timeout)
                            .thenApply(reply -> record(reply, operation.reply()));
                }

                private <Q extends Record> CompletableFuture<? extends Record> sent(
                        Operation<Q, ?> operation, Own<?> request, Duration timeout) {
                    return neighbour.send(operation, operation.request().cast(request), timeout);
                }

                @Override
                public long payloadBytes(Record message) {
                    return neighbour.payloadBytes(own(message));
                }

                @Override
                public void close() {
                    neighbour.close();
                }
            };
        }

        private static Own<?> own(Record record) {
            return own(record, record.getClass());
        }

        private static <T extends Record> Own<?> own(Record record, Class<T> type) {
            return new Own<>(ProtobufCodec.of(type).toMessage().apply(type.cast(record)));
        }

        private static <T extends Record> T record(Record own, Class<T> type) {
            return record(((Own<?>) own).message(), ProtobufCodec.of(type));
        }

        @SuppressWarnings("unchecked") // an operation's messages are those of its records
        private static <T extends Record, M extends Message> T record(Message own, ProtobufCodec<T, M> codec) {
            return codec.toRecord().apply((M) own);
        }
    }
}
