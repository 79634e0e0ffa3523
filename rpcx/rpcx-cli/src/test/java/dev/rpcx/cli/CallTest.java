package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Method;
import dev.rpcx.OneWay;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.schema.Field;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What {@code rpcx call} sends, and what it refuses to send. */
class CallTest {
    enum Kind {
        @Field(1)
        SMALL,
        @Field(2)
        LARGE
    }

    record Order(
            @Field(1) String from,
            @Field(2) int amount,
            @Field(3) boolean dryRun,
            @Field(4) Optional<String> note) {
        Order {
            if (amount < 0) {
                throw new IllegalArgumentException("amount " + amount);
            }
        }
    }

    sealed interface Shape {}

    @Field(1)
    record Circle(@Field(1) double radius) implements Shape {}

    @Field(2)
    record Square(@Field(1) double side) implements Shape {}

    record Everything(
            @Field(1) byte b,
            @Field(2) short s,
            @Field(3) char c,
            @Field(4) long l,
            @Field(5) float f,
            @Field(6) double d,
            @Field(7) byte[] bytes,
            @Field(8) BigInteger big,
            @Field(9) UUID uuid,
            @Field(10) BigDecimal decimal,
            @Field(11) Instant instant,
            @Field(12) Duration duration,
            @Field(13) LocalDate date,
            @Field(14) LocalDateTime dateTime,
            @Field(15) Kind kind,
            @Field(16) List<List<Integer>> lists,
            @Field(17) Map<Integer, List<Kind>> map,
            @Field(18) Map<Key, String> byKey,
            @Field(19) Integer box,
            @Field(20) List<Shape> shapes) {}

    record Key(@Field(1) int number) {}

    /** With what is no component. */
    record Half(@Field(1) int whole) {
        public int getHalf() {
            throw new IllegalStateException("odd");
        }
    }

    public static final class Bean {
        @Field(1)
        private String name = "as the class has it";

        @Field(2)
        private int count = 7;

        public String getName() {
            return name;
        }

        public void setName(String value) {
            name = value;
        }

        public int getCount() {
            return count;
        }

        public void setCount(int value) {
            count = value;
        }
    }

    @RPCXServer("bank")
    static final class Bank {
        private final AtomicInteger calls = new AtomicInteger();
        private final BlockingQueue<String> told = new LinkedBlockingQueue<>();

        @Method
        String pay(Order order) {
            calls.incrementAndGet();
            return order.toString();
        }

        @Method
        int add(int number) {
            calls.incrementAndGet();
            return number;
        }

        @Method
        Set<Integer> set(Set<Integer> numbers) {
            calls.incrementAndGet();
            return numbers;
        }

        @Method
        Map<String, Integer> map(Map<String, Integer> numbers) {
            calls.incrementAndGet();
            return numbers;
        }

        @Method
        Shape turn(Shape shape) {
            calls.incrementAndGet();
            return shape;
        }

        @Method
        Everything all(Everything everything, Kind kind, Optional<Integer> number) {
            calls.incrementAndGet();
            return everything;
        }

        @Method
        Bean bean(Bean bean) {
            calls.incrementAndGet();
            return bean;
        }

        @Method
        String text(String text) {
            calls.incrementAndGet();
            return text;
        }

        @Method
        Half half() {
            return new Half(3);
        }

        @Method
        String one(int number) {
            return "one " + number;
        }

        @Method
        String two(String first, int number) {
            return first + number;
        }

        @Method
        void tell(String text) {
            told.add(text);
        }
    }

    @RPCXClient(remoteServerName = "bank")
    interface BankClient {
        String pay(Order order);

        int add(int number);

        Set<Integer> set(Set<Integer> numbers);

        Map<String, Integer> map(Map<String, Integer> numbers);

        Shape turn(Shape shape);

        Everything all(Everything everything, Kind kind, Optional<Integer> number);

        Bean bean(Bean bean);

        String text(String text);

        Half half();

        @Method("one")
        String over(int number);

        @Method("two")
        String over(String first, int number);

        @OneWay
        void tell(String text);

        @OneWay
        void tellNobody(String text);

        default String local() {
            return "never leaves";
        }
    }

    private static final String TYPE = BankClient.class.getName();

    private final Bank bank = new Bank();
    private final Server server = Server.builder(RegistryServer.registry(bank))
            .host("127.0.0.1")
            .build()
            .start();
    private final String address = "127.0.0.1:" + server.port();
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    @AfterEach
    void stop() {
        server.stop();
    }

    private int run(String... args) {
        out.reset();
        err.reset();
        return new CommandLine(
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8),
                        getClass().getClassLoader())
                .run(args);
    }

    private String said() {
        return out.toString(StandardCharsets.UTF_8);
    }

    private String complained() {
        return err.toString(StandardCharsets.UTF_8);
    }

    static Stream<Arguments> unfit() {
        String deep = "[".repeat(10_000);
        return Stream.of(
                Arguments.of(
                        "pay",
                        "[{\"from\":\"a\",\"amuont\":5,\"dryRun\":true}]",
                        List.of("argument 1", "amuont", "Order", "did you mean amount", "from, amount, dryRun, note")),
                Arguments.of("pay", "[{\"from\":\"a\",\"dryRun\":true}]", List.of("argument 1", "amount", "missing")),
                Arguments.of("pay", "[{}]", List.of("argument 1", "from of Order is missing")),
                Arguments.of("pay", "[null]", List.of("argument 1: null", "expected: an object of Order")),
                Arguments.of("pay", "[[]]", List.of("argument 1: an array", "expected: an object")),
                Arguments.of(
                        "pay",
                        "[{\"from\":\"a\",\"from\":\"z\",\"amount\":1,\"dryRun\":true}]",
                        List.of("argument 1.from", "twice")),
                Arguments.of(
                        "pay",
                        "[{\"from\":null,\"amount\":1,\"dryRun\":true}]",
                        List.of("argument 1.from: null", "a string")),
                Arguments.of(
                        "pay",
                        "[{\"from\":\"a\",\"amount\":-1,\"dryRun\":true}]",
                        List.of("argument 1", "Order refuses it", "amount -1")),
                Arguments.of("pay", "[{\"from\":5,\"amount\":1,\"dryRun\":true}]", List.of("argument 1.from: 5")),
                Arguments.of(
                        "pay",
                        "[{\"from\":\"a\",\"amount\":1,\"dryRun\":0}]",
                        List.of("argument 1.dryRun: 0", "true or false")),
                Arguments.of("add", "[1.99]", List.of("argument 1: 1.99", "an integer from -2147483648")),
                Arguments.of("add", "[1e3]", List.of("argument 1: 1e3", "an integer")),
                Arguments.of("add", "[3000000000]", List.of("argument 1: 3000000000", "2147483647")),
                Arguments.of("add", "[99999999999999999999999]", List.of("argument 1: 99999999", "2147483647")),
                Arguments.of("add", "[\" 5 \"]", List.of("argument 1: \" 5 \"", "an integer")),
                Arguments.of("add", "[null]", List.of("argument 1: null")),
                Arguments.of("add", "[true]", List.of("argument 1: true")),
                Arguments.of("add", "[]", List.of("an array of 0", "a JSON array of 1", "add(int)")),
                Arguments.of("add", "[1,2]", List.of("an array of 2", "a JSON array of 1")),
                Arguments.of("add", "{\"number\":1}", List.of("a JSON array of 1")),
                Arguments.of("add", "{}", List.of("a JSON array of 1")),
                Arguments.of("add", "", List.of("a JSON array of 1")),
                Arguments.of("add", "[1] [2]", List.of("line 1, column 5", "more behind")),
                Arguments.of("add", "[1,,2]", List.of("line 1, column 4", "no JSON")),
                Arguments.of("add", "[NaN]", List.of("no JSON")),
                Arguments.of("add", deep, List.of("500 deep")),
                Arguments.of("add", "[" + "9".repeat(5_000) + "]", List.of("1000 digits")),
                Arguments.of(
                        "add", "[\"" + "x".repeat(10_000_000) + "\"]", List.of("argument 1", "10000000 characters")),
                Arguments.of("add", "x".repeat(10_000_000), List.of("no JSON")),
                Arguments.of("set", "[[1,1,2]]", List.of("argument 1[1]", "already")),
                Arguments.of("set", "[[1,null]]", List.of("argument 1[1]: null")),
                Arguments.of("map", "[{\"a\":1,\"a\":2}]", List.of("argument 1[a]", "twice")),
                Arguments.of("map", "[{\"a\":null}]", List.of("argument 1[a]: null", "an integer")),
                Arguments.of(
                        "turn",
                        "[{\"circle\":{\"radius\":1},\"square\":{\"side\":1}}]",
                        List.of("2 cases of Shape", "circle, square")),
                Arguments.of("turn", "[{\"radius\":1}]", List.of("no field radius in Shape", "circle, square")),
                Arguments.of("turn", "[{\"circle\":{\"radius\":1e400}}]", List.of("argument 1.circle.radius: 1e400")),
                Arguments.of("bean", "[{\"nmae\":\"x\"}]", List.of("no field nmae in Bean", "name, count")),
                Arguments.of("odd", "[]", List.of("no method odd", "did you mean add?", "[add, all, bean")),
                Arguments.of("local", "[]", List.of("no method local")));
    }

    @ParameterizedTest
    @MethodSource("unfit")
    void whatWouldNotBeSentAsItStandsThereIsNotSent(String method, String json, List<String> told) {
        assertThat(run("call", address, TYPE, method, json)).isEqualTo(1);
        assertThat(complained()).contains(told).hasLineCount(1).hasSizeLessThan(500);
        assertThat(said()).isEmpty();
        assertThat(bank.calls).hasValue(0);
    }

    @Test
    void whatIsPrintedCanBeSent() {
        String all =
                "{\"b\":-128,\"s\":1,\"c\":\"ä\",\"l\":9223372036854775807,\"f\":1.5,\"d\":\"NaN\",\"bytes\":\"AQI=\","
                        + "\"big\":123456789012345678901234567890,\"uuid\":\"123e4567-e89b-12d3-a456-426614174000\",\"decimal\":1.10,"
                        + "\"instant\":\"2026-01-01T00:00:00Z\",\"duration\":\"PT1.5S\",\"date\":\"2026-01-01\","
                        + "\"dateTime\":\"2026-01-01T00:00:01\",\"kind\":\"LARGE\",\"lists\":[[1,2],[]],\"map\":{\"-1\":[\"SMALL\"]},"
                        + "\"byKey\":[{\"key\":{\"number\":1},\"value\":\"x\"}],\"box\":null,"
                        + "\"shapes\":[{\"circle\":{\"radius\":1.0}},{\"square\":{\"side\":2.0}}]}";
        assertThat(run("call", address, TYPE, "all", "[" + all + ", \"SMALL\", null]"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace(all);
        assertThat(run("call", address, TYPE, "all", "[" + said() + ", \"SMALL\", 5]"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace(all);
        assertThat(run("call", address, TYPE, "pay", "[{\"from\":\"a\",\"amount\":5,\"dryRun\":true}]"))
                .as(complained())
                .isZero();
        assertThat(said()).contains("Order[from=a, amount=5, dryRun=true, note=Optional.empty]");
        assertThat(run("call", address, TYPE, "bean", "[{\"count\":1}]")).isZero();
        assertThat(said()).contains("as the class has it", "1");
        assertThat(run("call", address, TYPE, "half")).as(complained()).isZero();
        assertThat(said()).isEqualToIgnoringWhitespace("{\"whole\":3}");
    }

    @Test
    void argumentsOrThePublishedNameDecideAmongMethodsOfOneName() {
        assertThat(run("call", address, TYPE, "over", "[5]")).as(complained()).isZero();
        assertThat(said()).contains("one 5");
        assertThat(run("call", address, TYPE, "over", "[\"x\", 5]"))
                .as(complained())
                .isZero();
        assertThat(said()).contains("x5");
        assertThat(run("call", address, TYPE, "two", "[\"x\", 5]"))
                .as(complained())
                .isZero();
        assertThat(run("call", address, TYPE, "over", "[1, 2, 3]")).isEqualTo(1);
        assertThat(complained()).contains("over(int)", "over(java.lang.String, int)");
    }

    @Test
    void noCharacterOfAResultIsObeyedOrUnseen() {
        String hostile = "\\u001b[31m \\u202egnp.exe \\u2066 \\u200b \\u2028 \\ufeff \\udb40\\udc41 ä😀";
        assertThat(run("call", address, TYPE, "text", "[\"" + hostile + "\"]")).isZero();
        assertThat(said().strip()).isEqualToIgnoringCase("\"" + hostile + "\"");
    }

    @Test
    void aOneWayCallHasArrivedWhenTheProcessMayEnd() throws Exception {
        for (int i = 0; i < 20; i++) {
            assertThat(run("call", address, TYPE, "tell", "[\"" + i + "\"]"))
                    .as(complained())
                    .isZero();
            assertThat(said() + complained()).isEmpty();
            assertThat(bank.told.poll(30, TimeUnit.SECONDS)).isEqualTo(String.valueOf(i));
        }
    }

    @Test
    void aOneWayCallThatDoesNotArriveIsTold() throws Exception {
        assertThat(run("call", address, TYPE, "tellNobody", "[\"x\"]")).isEqualTo(3);
        assertThat(complained())
                .contains("NOT_FOUND, NOT_EXECUTED", "bank/tellNobody")
                .hasLineCount(1);
        try (Cutting cutting = new Cutting(server.port(), "cut here")) {
            assertThat(run("call", "127.0.0.1:" + cutting.port(), TYPE, "tell", "[\"cut here\"]"))
                    .isEqualTo(2);
            assertThat(complained()).contains("MAYBE").hasLineCount(1);
        }
        server.stop();
        assertThat(run("call", address, TYPE, "tell", "[\"x\"]")).isEqualTo(2);
        assertThat(complained()).contains("UNAVAILABLE, NOT_EXECUTED").hasLineCount(1);
        assertThat(bank.told).isEmpty();
    }

    /** Between a client and a server: ends the connection in which the client sends these words, and hands none of them on. */
    private static final class Cutting implements AutoCloseable {
        private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        private final int to;
        private final String words;
        private final List<Socket> sockets = java.util.Collections.synchronizedList(new ArrayList<>());

        Cutting(int to, String words) throws IOException {
            this.to = to;
            this.words = words;
            daemon(() -> {
                while (true) {
                    Socket client = listening.accept();
                    Socket server = new Socket(InetAddress.getLoopbackAddress(), to);
                    sockets.addAll(List.of(client, server));
                    daemon(() -> pump(client, server));
                    daemon(() -> pump(server, client));
                }
            });
        }

        private interface Task {
            void run() throws IOException;
        }

        private static void daemon(Task task) {
            Thread thread = new Thread(() -> {
                try {
                    task.run();
                } catch (IOException e) {
                    // a socket has been closed
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        private void pump(Socket from, Socket into) throws IOException {
            byte[] bytes = new byte[65_536];
            InputStream in = from.getInputStream();
            for (int n = in.read(bytes); n >= 0; n = in.read(bytes)) {
                if (new String(bytes, 0, n, StandardCharsets.ISO_8859_1).contains(words)) {
                    break;
                }
                into.getOutputStream().write(bytes, 0, n);
            }
            from.close();
            into.close();
        }

        int port() {
            return listening.getLocalPort();
        }

        @Override
        public void close() throws IOException {
            listening.close();
            for (Socket each : sockets) {
                each.close();
            }
        }
    }
}
