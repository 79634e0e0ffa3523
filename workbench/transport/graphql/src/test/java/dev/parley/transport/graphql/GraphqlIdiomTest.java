package dev.parley.transport.graphql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.Work;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.parley.work.messages.MessagesWork;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

class GraphqlIdiomTest {
    private static final Duration LONG = Duration.ofSeconds(10);

    private static final Operation<Nothing, Counter> READ =
            new Operation<>("read", Operation.Kind.FETCH, Nothing.class, Counter.class);
    private static final Operation<Counter, Nothing> WRITE =
            new Operation<>("write", Operation.Kind.MUTATION, Counter.class, Nothing.class);
    private static final Contract COUNTING = new Contract("counting", List.of(READ, WRITE));

    public record Nothing() {}

    public record Counter(long value, Level level) {}

    public enum Level {
        LOW,
        HIGH
    }

    /** Answers every operation with one reply. */
    private record Answering(Record reply) implements Handler {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            return operation.reply().cast(operation.reply() == Nothing.class ? new Nothing() : reply);
        }
    }

    private static Location.Socket free() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return new Location.Socket("127.0.0.1", socket.getLocalPort());
        }
    }

    private static JsonNode post(Location at, Object request) throws Exception {
        HttpRequest post = HttpRequest.newBuilder(URI.create("http://" + at + Wire.PATH))
                .POST(HttpRequest.BodyPublishers.ofString(
                        request instanceof String text ? text : Wire.JSON.writeValueAsString(request)))
                .build();
        try (HttpClient http = HttpClient.newHttpClient()) {
            return Wire.JSON.readTree(
                    http.send(post, HttpResponse.BodyHandlers.ofByteArray()).body());
        }
    }

    private static String code(JsonNode response) {
        return response.at("/errors/0/extensions/code").asString();
    }

    @Test
    void theSchemaIsTheContract() {
        String sdl = new ContractSchema(Messages.CONTRACT, operation -> env -> null).sdl();
        assertThat(sdl)
                .contains("onlyText(input: TestModelOnlyTextInput!): TestModelOnlyText")
                .contains("gatherTypes(input: TestModelAllTypesListInput!): GatheredTypes")
                .contains("type GatheredTextPart {")
                .contains("dateTimeField: LocalDateTime!")
                .contains("decimalField: BigDecimal!")
                .contains("longField: Long!")
                .contains("items: [TestModelAllTypes!]!")
                .doesNotContain("Mutation");
    }

    @Test
    void aClientAsksForAllFieldsOrForThoseThatItReads() {
        assertThat(QueryText.of(Lecturers.FLAT))
                .isEqualTo("query flat($input: PageInput!) { flat(input: $input) { profiles { id_sdm nama_sdm nidn nip"
                        + " nama_status_aktif nama_status_pegawai jenis_sdm } } }");
        assertThat(QueryText.of(Lecturers.NESTED, Lecturers.NESTED.read()))
                .isEqualTo("query nested($input: PageInput!) { nested(input: $input) { profiles { id_sdm nama_sdm"
                        + " pendidikan_formal { jenjang_pendidikan gelar_akademik } } } }");
    }

    @Test
    void whatChangesSomethingIsAMutation() {
        String sdl = new ContractSchema(COUNTING, operation -> env -> null).sdl();
        assertThat(sdl)
                .contains("read: Counter\n")
                .contains("write(input: CounterInput!): Boolean")
                .contains("type Mutation {");
    }

    @Test
    void emptyRecordsAndEnumsCross() throws IOException {
        Transport transport = new GraphqlTransport(true);
        Location at = free();
        Counter counter = new Counter(Long.MIN_VALUE, Level.HIGH);
        try (Transport.Server _ = transport.serve("m2", COUNTING, at, new Answering(counter));
                Neighbour neighbour = transport.connect("m1", COUNTING, at)) {
            assertThat(neighbour.call(READ, new Nothing(), LONG)).isEqualTo(counter);
            assertThat(neighbour.call(WRITE, counter, LONG)).isEqualTo(new Nothing());
        }
    }

    @Test
    void aRecordThatGraphqlCannotHoldIsRefused() {
        record Odd(Map<String, String> pairs) {}
        Contract odd = new Contract("odd", List.of(new Operation<>("odd", Operation.Kind.QUERY, Odd.class, Odd.class)));
        assertThatThrownBy(() -> new ContractSchema(odd, operation -> env -> null))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("Map");
    }

    @Test
    void oneQueryGathersSeveralSourcesAndOnlyTheFieldsAskedFor() throws Exception {
        Location at = free();
        GatheredText gathered = new GatheredText(List.of(
                new GatheredText.Part("m2", new TestModelOnlyText("two")),
                new GatheredText.Part("m3", new TestModelOnlyText("three"))));
        try (Transport.Server _ =
                new GraphqlTransport(false).serve("m1", Messages.CONTRACT, at, new Answering(gathered))) {
            JsonNode response = post(
                    at,
                    new Wire.Request(
                            "query ($input: TestModelOnlyTextInput!) { gatherText(input: $input) { parts { service } } }",
                            null,
                            Map.of("input", Map.of("textField", "x"))));
            assertThat(response)
                    .isEqualTo(Wire.JSON.readTree(
                            "{\"data\":{\"gatherText\":{\"parts\":[{\"service\":\"m2\"},{\"service\":\"m3\"}]}}}"));
        }
    }

    /** As in the star: one query to the gateway, which asks all its neighbours with one query each. */
    @Test
    void theStarsGatewayAnswersOneQueryFromAllItsNeighbours() throws Exception {
        Topology star = Topology.parse("star:4");
        GraphqlTransport transport = new GraphqlTransport(false);
        MessagesWork work = new MessagesWork();
        Map<String, AtomicInteger> asked = new LinkedHashMap<>();
        Map<String, Neighbour> neighbours = new LinkedHashMap<>();
        Deque<AutoCloseable> open = new ArrayDeque<>();
        try {
            for (Topology.Node leaf : star.nodes().subList(1, 4)) {
                Location at = free();
                AtomicInteger count = asked.computeIfAbsent(leaf.name(), name -> new AtomicInteger());
                open.push(transport.serve(
                        leaf.name(), Messages.CONTRACT, at, new Counting(count, work.node(leaf, Map.of()))));
                Neighbour neighbour = transport.connect("m1", Messages.CONTRACT, at);
                open.push(neighbour);
                neighbours.put(leaf.name(), neighbour);
            }
            Location gateway = free();
            AtomicInteger queries = asked.computeIfAbsent("m1", name -> new AtomicInteger());
            Work.Node node = work.node(star.entry(), neighbours);
            open.push(node);
            open.push(transport.serve("m1", Messages.CONTRACT, gateway, new Counting(queries, node)));

            JsonNode response = post(
                    gateway,
                    new Wire.Request(
                            "query ($input: TestModelOnlyTextInput!)"
                                    + " { gatherText(input: $input) { parts { service answer { textField } } } }",
                            null,
                            Map.of("input", Map.of("textField", "ž"))));

            assertThat(response).isEqualTo(Wire.JSON.readTree("""
                            {"data": {"gatherText": {"parts": [
                              {"service": "m2", "answer": {"textField": "ž"}},
                              {"service": "m3", "answer": {"textField": "ž"}},
                              {"service": "m4", "answer": {"textField": "ž"}}]}}}"""));
            assertThat(asked.values())
                    .hasSize(4)
                    .allSatisfy(count -> assertThat(count).hasValue(1));
        } finally {
            while (!open.isEmpty()) {
                open.pop().close();
            }
        }
    }

    /** Counts the operations that reach a handler. */
    private record Counting(AtomicInteger count, Handler handler) implements Handler {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            count.incrementAndGet();
            return handler.handle(operation, request);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatIsWrongWithAQueryIsSaidInACode(boolean tuned) throws Exception {
        Location at = free();
        try (Transport.Server _ = new GraphqlTransport(tuned)
                .serve("m1", Messages.CONTRACT, at, new Answering(new TestModelOnlyText("x")))) {
            assertThat(code(post(at, "no JSON"))).isEqualTo("PROTOCOL");
            assertThat(code(post(at, Map.of("query", "{ onlyText(")))).isEqualTo("PROTOCOL");
            assertThat(code(post(at, Map.of("query", "{ unknown }")))).isEqualTo("NOT_FOUND");
            assertThat(code(post(at, Map.of("query", "{ onlyText { textField } }"))))
                    .isEqualTo("INVALID");
            assertThat(code(post(at, Map.of("query", "{ onlyText(input: {textField: \"x\"}) { unknown } }"))))
                    .isEqualTo("INVALID");
            assertThat(code(post(
                            at,
                            Map.of(
                                    "query",
                                    "query ($i: TestModelOnlyTextInput!) { onlyText(input: $i) { textField } }",
                                    "variables",
                                    Map.of("i", Map.of())))))
                    .isEqualTo("INVALID");
        }
    }

    @Test
    void anAnswerThatIsNotGraphqlIsAProtocolError() throws IOException {
        com.sun.net.httpserver.HttpServer other =
                com.sun.net.httpserver.HttpServer.create(new java.net.InetSocketAddress("127.0.0.1", 0), 0);
        other.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 0);
            exchange.getResponseBody().write("<html>".getBytes(java.nio.charset.StandardCharsets.UTF_8));
            exchange.close();
        });
        other.start();
        Location at = new Location.Socket("127.0.0.1", other.getAddress().getPort());
        try (Neighbour neighbour = new GraphqlTransport(false).connect("m1", Messages.CONTRACT, at)) {
            assertThatThrownBy(() -> neighbour.call(Messages.ONLY_TEXT, new TestModelOnlyText("x"), LONG))
                    .isInstanceOfSatisfying(
                            CallException.class, e -> assertThat(e.code()).isEqualTo(Code.PROTOCOL));
        } finally {
            other.stop(0);
        }
    }
}
