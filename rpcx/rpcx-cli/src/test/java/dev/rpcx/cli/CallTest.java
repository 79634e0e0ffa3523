package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

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
import java.io.OutputStream;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests what {@code rpcx call} sends, and what it refuses to send. */
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

    record Moments(
            @Field(1) Date date,
            @Field(2) LocalTime time,
            @Field(3) OffsetDateTime offset,
            @Field(4) ZonedDateTime zoned,
            @Field(5) URI uri,
            @Field(6) Map<URI, LocalTime> byUri) {}

    /** Has no setters. */
    public static final class Price {
        @Field(1)
        private final long cents;

        @Field(2)
        private final String unit;

        Price(long cents, String unit) {
            this.cents = cents;
            this.unit = unit;
        }

        public long getCents() {
            return cents;
        }

        public String getUnit() {
            return unit;
        }
    }

    /** Has a getter for what is no component. */
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

    /** Takes no bytes where each component has its default value. */
    record Nobody(
            @Field(1) String name,
            @Field(2) int age,
            @Field(3) Optional<Double> weight) {}

    /** Has two fields, of which the getter of one fails. */
    public static final class Broken {
        @Field(1)
        private String name = "";

        @Field(2)
        private String gone = "";

        public String getName() {
            return name;
        }

        public void setName(String value) {
            name = value;
        }

        public String getGone() {
            if (gone.isEmpty()) {
                return gone;
            }
            throw new IllegalStateException("gone");
        }

        public void setGone(String value) {
            gone = value;
        }
    }

    record Whole(@Field(1) String name, @Field(2) String gone) {}

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
        double real(double number) {
            calls.incrementAndGet();
            return number;
        }

        @Method
        float single(float number) {
            calls.incrementAndGet();
            return number;
        }

        @Method
        BigDecimal decimal(BigDecimal number) {
            calls.incrementAndGet();
            return number;
        }

        @Method
        Instant instant(Instant moment) {
            calls.incrementAndGet();
            return moment;
        }

        @Method
        Moments moments(Moments moments) {
            calls.incrementAndGet();
            return moments;
        }

        @Method
        Price price(Price price) {
            calls.incrementAndGet();
            return price;
        }

        @Method
        byte[] bytes(byte[] bytes) {
            calls.incrementAndGet();
            return bytes;
        }

        @Method
        Map<Double, String> reals(Map<Double, String> numbers) {
            calls.incrementAndGet();
            return numbers;
        }

        @Method
        List<Nobody> crowd(int count) {
            return java.util.Collections.nCopies(count, new Nobody("", 0, Optional.empty()));
        }

        @Method
        Whole broken() {
            return new Whole("shown", "never");
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

        double real(double number);

        float single(float number);

        BigDecimal decimal(BigDecimal number);

        Instant instant(Instant moment);

        Moments moments(Moments moments);

        Price price(Price price);

        byte[] bytes(byte[] bytes);

        Map<Double, String> reals(Map<Double, String> numbers);

        List<Nobody> crowd(int count);

        Broken broken();

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
        return new Rpcx(
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
                Arguments.of("add", "[1] [2]", List.of("line 1, column 5", "more text behind")),
                Arguments.of("add", "[1,,2]", List.of("line 1, column 4", "not valid JSON")),
                Arguments.of("add", "[NaN]", List.of("not valid JSON")),
                Arguments.of("add", deep, List.of("500 deep")),
                Arguments.of("add", "[" + "9".repeat(5_000) + "]", List.of("1000 digits")),
                Arguments.of(
                        "add", "[\"" + "x".repeat(10_000_000) + "\"]", List.of("argument 1", "10000000 characters")),
                Arguments.of("add", "x".repeat(10_000_000), List.of("not valid JSON")),
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
                Arguments.of("real", "[1e400]", List.of("argument 1: 1e400", "1.8e308")),
                Arguments.of("real", "[1e-400]", List.of("argument 1: 1e-400", "a double", "the nearest is 0.0")),
                Arguments.of("real", "[-3e-324]", List.of("argument 1: -3e-324", "the nearest is -4.9E-324")),
                Arguments.of(
                        "real",
                        "[9007199254740993]",
                        List.of("argument 1: 9007199254740993", "the nearest is 9.007199254740992E15")),
                Arguments.of("real", "[0.1234567890123456789]", List.of("argument 1: 0.1234567890123456789")),
                Arguments.of("real", "[0e99999999999]", List.of("argument 1: 0e99999999999")),
                Arguments.of("real", "[" + "9".repeat(1_500) + "]", List.of("1000 digits")),
                Arguments.of("real", "[\"1\"]", List.of("argument 1: \"1\"")),
                Arguments.of("single", "[1e-60]", List.of("argument 1: 1e-60", "a float", "the nearest is 0.0")),
                Arguments.of("single", "[16777217]", List.of("argument 1: 16777217", "1.6777216E7")),
                Arguments.of("single", "[3.5e38]", List.of("argument 1: 3.5e38", "3.4e38")),
                Arguments.of("decimal", "[1e99999999999]", List.of("argument 1: 1e99999999999", "10000")),
                Arguments.of("decimal", "[1e1000000000]", List.of("argument 1: 1e1000000000", "10000")),
                Arguments.of("decimal", "[1e-10001]", List.of("argument 1: 1e-10001", "10000")),
                Arguments.of("instant", "[\"2026-12-31T23:59:60Z\"]", List.of("argument 1: ", "no leap second")),
                Arguments.of(
                        "moments",
                        "[{\"date\":\"2026-01-01T00:00:00.0001Z\"}]",
                        List.of("argument 1.date: ", "to the millisecond")),
                Arguments.of("moments", "[{\"time\":\"24:00\"}]", List.of("argument 1.time: \"24:00\"", "23:59:59")),
                Arguments.of(
                        "moments", "[{\"zoned\":\"2026-01-01T00:00:00\"}]", List.of("argument 1.zoned: ", "Paris")),
                Arguments.of("moments", "[{\"uri\":\"a b\"}]", List.of("argument 1.uri: \"a b\"", "https://")),
                Arguments.of("price", "[{\"cents\":5}]", List.of("argument 1", "unit of Price is missing")),
                Arguments.of("bytes", "[\"QR==\"]", List.of("argument 1: \"QR==\"", "spare bits zero")),
                Arguments.of("bytes", "[\"QR\"]", List.of("argument 1: \"QR\"", "spare bits zero")),
                Arguments.of("text", "[\"a\\ud800\"]", List.of("argument 1: \"a\\ud800\"", "surrogate")),
                Arguments.of("map", "[{\"\udc00\":1}]", List.of("argument 1, key \\udc00", "surrogate")),
                Arguments.of("reals", "[{\" 1.5\":\"x\"}]", List.of("argument 1: key  1.5", "a double")),
                Arguments.of("reals", "[{\"1e-400\":\"x\"}]", List.of("argument 1, key 1e-400", "nearest is 0.0")),
                // only the codec sees this: each key fits, and all together do not
                Arguments.of(
                        "map",
                        "[{\""
                                + IntStream.range(0, 1_000)
                                        .mapToObj(i -> i + "x".repeat(5_000))
                                        .collect(Collectors.joining("\":1,\""))
                                + "\":1}]",
                        List.of("the arguments of map(java.util.Map<java.lang.String, java.lang.Integer>)", "4194304")),
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
    void momentsAndClassesWithoutSettersArePrintedAsTheyAreSent() {
        String moments = "{\"date\":\"2026-01-01T00:00:00.001Z\",\"time\":\"23:59:58\","
                + "\"offset\":\"2026-01-01T00:00:01+01:00\",\"zoned\":\"2026-07-01T00:00:01+02:00[Europe/Paris]\","
                + "\"uri\":\"https://a/b?c\",\"byUri\":{\"a:b\":\"00:00\"}}";
        assertThat(run("call", address, TYPE, "moments", "[" + moments + "]"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace(moments);
        assertThat(run("call", address, TYPE, "price", "[{\"cents\":5,\"unit\":\"EUR\"}]"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace("{\"cents\":5,\"unit\":\"EUR\"}");
    }

    /** Returns numbers as other tools write them. */
    static Stream<Arguments> numbers() {
        return Stream.of(
                Arguments.of("real", "0.1", "0.1"),
                Arguments.of("real", "0.10000000000000001", "0.1"),
                Arguments.of("real", "0.1000000000000000055511151231257827", "0.1"),
                Arguments.of("real", new BigDecimal(0.1).toString(), "0.1"),
                Arguments.of("real", "1.10", "1.1"),
                Arguments.of("real", "100", "100.0"),
                Arguments.of("real", "1e2", "100.0"),
                Arguments.of("real", "1e23", "1.0E23"),
                Arguments.of("real", "100000000000000000000000", "1.0E23"),
                Arguments.of("real", "123456789012345680", "1.2345678901234568E17"),
                Arguments.of("real", "1.7976931348623157e308", "1.7976931348623157E308"),
                Arguments.of("real", "2.2250738585072014e-308", "2.2250738585072014E-308"),
                Arguments.of("real", "5e-324", "4.9E-324"),
                Arguments.of("real", "4.9E-324", "4.9E-324"),
                Arguments.of("real", "5.684341886080802E-14", String.valueOf(0x1p-44)),
                Arguments.of("real", "-0.0", "-0.0"),
                Arguments.of("real", "-0", "-0.0"),
                Arguments.of("real", "0e5", "0.0"),
                Arguments.of("real", "\"-Infinity\"", "\"-Infinity\""),
                Arguments.of("single", "0.1", "0.1"),
                Arguments.of("single", "0.100000001", "0.1"),
                Arguments.of("single", "3.4028235e38", "3.4028235E38"),
                Arguments.of("single", "16777216", "1.6777216E7"),
                Arguments.of("single", "\"NaN\"", "\"NaN\""),
                Arguments.of("decimal", "1.10", "1.10"),
                Arguments.of("decimal", "1e9999", "1E+9999"),
                Arguments.of("instant", "\"2026-01-01T01:00:00+01:00\"", "\"2026-01-01T00:00:00Z\""),
                Arguments.of("bytes", "\"QQ\"", "\"QQ==\""),
                Arguments.of(
                        "reals",
                        "{\"1.5\":\"a\",\"NaN\":\"b\",\"-Infinity\":\"c\"}",
                        "{\"1.5\":\"a\",\"NaN\":\"b\",\"-Infinity\":\"c\"}"));
    }

    @ParameterizedTest
    @MethodSource("numbers")
    void whatStandsForAValueIsTaken(String method, String json, String shown) {
        assertThat(run("call", address, TYPE, method, "[" + json + "]"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace(shown);
    }

    @Test
    void whatWasExecutedAndCannotBeShownIsNoMistakeInWhatWasAsked() {
        PrintStream full = new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8) {
            @Override
            public void println(Object text) {
                throw new OutOfMemoryError("Java heap space");
            }

            @Override
            public void println(String text) {
                throw new OutOfMemoryError("Java heap space");
            }

            @Override
            public void print(Object text) {
                throw new OutOfMemoryError("Java heap space");
            }
        };
        Rpcx commands = new Rpcx(
                full,
                new PrintStream(err, true, StandardCharsets.UTF_8),
                getClass().getClassLoader());
        assertThat(commands.run("call", address, TYPE, "add", "[1]")).isEqualTo(3);
        assertThat(complained())
                .contains("the call was executed, but its result cannot be shown", "no memory")
                .hasLineCount(1);
        assertThat(bank.calls).hasValue(1);
        err.reset();
        assertThat(commands.run("list", address)).isEqualTo(3);
        assertThat(complained()).contains("cannot be shown", "no memory").hasLineCount(1);
    }

    @Test
    void aResultIsShownWholeOrNotAtAll() {
        assertThat(run("call", address, TYPE, "broken")).isEqualTo(3);
        assertThat(complained())
                .contains("the call was executed, but its result cannot be shown", "getGone", "gone")
                .hasLineCount(1);
        assertThat(said()).isEmpty();
    }

    /** The result has 600 kB, and as a tree of JSON it would take more than 64 MiB. */
    @Test
    void aResultTakesNoMemoryForAllOfItsLinesAtOnce(@TempDir Path folder) throws Exception {
        Path shown = folder.resolve("shown");
        assertThat(process(shown, "-Xmx64m", "crowd", "[300000]")).isZero();
        try (Stream<String> lines = Files.lines(shown)) {
            assertThat(lines.filter(line -> line.contains("\"age\" : 0"))).hasSize(300_000);
        }
    }

    @Test
    void aDiskThatIsFullIsNoMistakeInWhatWasAsked() throws Exception {
        Path full = Path.of("/dev/full");
        assumeThat(full).exists();
        assertThat(process(full, "-Xmx64m", "add", "[1]")).isEqualTo(3);
    }

    private int process(Path shown, String heap, String method, String json) throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        heap,
                        "-cp",
                        System.getProperty("java.class.path"),
                        Rpcx.class.getName(),
                        "call",
                        address,
                        TYPE,
                        method,
                        json)
                .redirectOutput(shown.toFile())
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        return process.waitFor();
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
        int[] unseen = {
            0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180D, 0x180E, 0x180F, 0x200B, 0x200F, 0x2060,
            0x2065, 0x206F, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF8, 0x1BCA0, 0x1BCA3, 0x1D173, 0x1D17A,
            0xE0000, 0xE0001, 0xE0100, 0xE01EF, 0xE01F0, 0xE0FFF, 0xA0, 0x2003, 0x202F, 0x2800, 0x3000, 0x16FE4, 0x1D159
        };
        for (int c : unseen) {
            String text = Character.toString(c);
            String escaped = text.chars()
                    .mapToObj(unit -> String.format("\\u%04x", unit))
                    .collect(Collectors.joining());
            assertThat(run("call", address, TYPE, "text", "[\"adm" + text + "in\"]"))
                    .isZero();
            assertThat(said().strip()).isEqualTo("\"adm" + escaped + "in\"");
            assertThat(run("call", address, TYPE, text)).isEqualTo(1);
            assertThat(complained()).contains("no method " + escaped);
        }
        // the neighbours of these characters are shown, as is what stands at the end of a piece of the text
        String seen = Character.toString(0xAC)
                + Character.toString(0xAE)
                + Character.toString(0x1161)
                + Character.toString(0x3163)
                + Character.toString(0xFE10)
                + Character.toString(0x2801)
                + "x😀".repeat(20_000);
        assertThat(run("call", address, TYPE, "text", "[\"" + seen + "\"]")).isZero();
        assertThat(said().strip()).isEqualTo("\"" + seen + "\"");
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

    /** A script that calls again after a 2 must not do twice what may have been done. */
    @Test
    void aCallThatMayHaveBeenExecutedIsNotOneThatHasNotReachedItsServer() throws Exception {
        try (Cutting cutting = new Cutting(server.port(), "cut here")) {
            assertThat(run("call", "127.0.0.1:" + cutting.port(), TYPE, "text", "[\"cut here\"]"))
                    .isEqualTo(3);
            assertThat(complained()).contains("UNAVAILABLE, MAYBE").hasLineCount(1);
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
                    .isEqualTo(3);
            assertThat(complained()).contains("MAYBE").hasLineCount(1);
        }
        server.stop();
        assertThat(run("call", address, TYPE, "tell", "[\"x\"]")).isEqualTo(2);
        assertThat(complained()).contains("UNAVAILABLE, NOT_EXECUTED").hasLineCount(1);
        assertThat(bank.told).isEmpty();
    }

    /** The server stops just before its answer says that it has read the call, and takes no other connection. */
    @Test
    void aOneWayCallWhoseServerStopsBehindItMayHaveBeenExecuted() throws Exception {
        try (Stopping stopping = new Stopping(server)) {
            assertThat(run("call", "127.0.0.1:" + stopping.port(), TYPE, "tell", "[\"read\"]"))
                    .isEqualTo(3);
            assertThat(complained())
                    .contains("MAYBE: the one-way call was sent")
                    .hasLineCount(1);
        }
        assertThat(bank.told.poll(30, TimeUnit.SECONDS)).isEqualTo("read");
    }

    /**
     * Stands between one client and a server. Once the server answers a call of a method that it does not have, this
     * stops the server, and passes on what the server writes then before that answer.
     */
    private static final class Stopping implements AutoCloseable {
        private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        private final Server stopped;
        private final List<Socket> sockets = java.util.Collections.synchronizedList(new ArrayList<>());

        Stopping(Server stopped) throws IOException {
            this.stopped = stopped;
            Socket server = new Socket(InetAddress.getLoopbackAddress(), stopped.port());
            sockets.add(server);
            Cutting.daemon(() -> {
                Socket client = listening.accept();
                sockets.add(client);
                Cutting.daemon(() -> client.getInputStream().transferTo(server.getOutputStream()));
                answer(server.getInputStream(), client.getOutputStream());
                client.close();
            });
        }

        private void answer(InputStream from, OutputStream into) throws IOException {
            byte[] bytes = new byte[65_536];
            byte[] held = {};
            for (int n = from.read(bytes); n >= 0; n = from.read(bytes)) {
                byte[] read = Arrays.copyOf(bytes, n);
                if (new String(read, StandardCharsets.ISO_8859_1).contains("no such service or method")) {
                    held = read;
                    listening.close();
                    Thread stopping = new Thread(stopped::stop);
                    stopping.setDaemon(true);
                    stopping.start();
                    continue;
                }
                into.write(read);
                into.write(held);
                held = new byte[0];
            }
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

    /**
     * Passes bytes on between a client and a server. If what a side sends contains the given words, none of it is
     * passed on, and the connection ends.
     */
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
