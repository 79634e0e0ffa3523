package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.rpcx.CallContext;
import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.schema.Field;
import java.io.ByteArrayInputStream;
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
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

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
        Map<Integer, List<Integer>> lists(Map<Integer, List<Integer>> numbers) {
            calls.incrementAndGet();
            return numbers;
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
        Instant farAway() {
            return Instant.MAX;
        }

        @Method
        String two(String first, int number) {
            calls.incrementAndGet();
            return first + number;
        }

        @Method
        void tell(String text) {
            told.add(text);
        }

        @Method
        String note() {
            CallContext context = CallContext.current().orElseThrow();
            return context.metadata().get("note") + " " + context.metadata().get("other") + " "
                    + (context.remainingNanos() <= TimeUnit.MILLISECONDS.toNanos(2_500));
        }

        @Method
        String refuse(String name) {
            throw new RPCXException(RPCXException.Code.INVALID, "no such name").withDetail(new Key(name.length()));
        }
    }

    private final Bank bank = new Bank();
    private final Server server = Server.builder(RegistryServer.registry(bank))
            .host("127.0.0.1")
            .reflection()
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
        return runWith("", args);
    }

    private int runWith(String input, String... args) {
        out.reset();
        err.reset();
        return new Rpcx(
                        new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)),
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
        String deep = "{\"numbers\":" + "[".repeat(10_000);
        return Stream.of(
                Arguments.of(
                        "pay",
                        "{\"from\":\"a\",\"amuont\":5,\"dryRun\":true}",
                        List.of(
                                "the request: no field amuont in Order",
                                "did you mean amount",
                                "from, amount, dryRun")),
                Arguments.of("pay", "null", List.of("the request: null", "expected: an object of Order")),
                Arguments.of("pay", "[]", List.of("the request: an array", "expected: an object of Order")),
                Arguments.of("pay", "{\"from\":\"a\",\"from\":\"z\"}", List.of("from: stands there twice")),
                Arguments.of("pay", "{\"dryRun\":true,\"dry_run\":true}", List.of("dryRun: stands there twice")),
                Arguments.of("pay", "{\"from\":5}", List.of("from: 5 (expected: a string)")),
                Arguments.of("pay", "{\"dryRun\":0}", List.of("dryRun: 0", "true or false")),
                Arguments.of("pay", "{\"dryRun\":\"true\"}", List.of("dryRun: \"true\"", "true or false")),
                Arguments.of("add", "{\"number\":1.99}", List.of("number: 1.99", "an integer from -2147483648")),
                Arguments.of("add", "{\"number\":1e10}", List.of("number: 1e10", "2147483647")),
                Arguments.of("add", "{\"number\":1e-1}", List.of("number: 1e-1", "2147483647")),
                Arguments.of("add", "{\"number\":3000000000}", List.of("number: 3000000000", "2147483647")),
                Arguments.of("add", "{\"number\":1e1000000000}", List.of("number: 1e1000000000", "an integer")),
                Arguments.of("add", "{\"number\":1e-1000000000}", List.of("number: 1e-1000000000", "an integer")),
                Arguments.of("add", "{\"number\":\"1e1000000000\"}", List.of("number: \"1e1000000000\"")),
                Arguments.of("add", "{\"number\":\" 5 \"}", List.of("number: \" 5 \"", "an integer")),
                Arguments.of("add", "{\"number\":\"0x5\"}", List.of("number: \"0x5\"", "an integer")),
                Arguments.of("add", "{\"number\":true}", List.of("number: true")),
                Arguments.of("add", "[1]", List.of("the request: an array", "an object of AddRequest: number")),
                Arguments.of("add", "", List.of("no JSON", "an object of AddRequest: number")),
                Arguments.of("add", "{} {}", List.of("line 1, column 4", "more text behind")),
                Arguments.of("add", "{\"number\":1,,}", List.of("line 1, column", "not valid JSON")),
                Arguments.of("add", "{\"number\":NaN}", List.of("not valid JSON")),
                Arguments.of("set", deep, List.of("numbers[0]: an array", "an integer")),
                Arguments.of("lists", "[".repeat(10_000), List.of("the request: an array")),
                Arguments.of("add", "{\"number\":" + "9".repeat(5_000) + "}", List.of("1000 digits")),
                Arguments.of("add", "{\"number\":\"" + "9".repeat(5_000) + "\"}", List.of("5000 characters")),
                Arguments.of(
                        "add",
                        "{\"number\":\"" + "x".repeat(10_000_000) + "\"}",
                        List.of("number", "10000000 characters")),
                Arguments.of("add", "x".repeat(10_000_000), List.of("not valid JSON")),
                Arguments.of("set", "{\"numbers\":[1,null]}", List.of("numbers[1]: null", "an integer")),
                Arguments.of("set", "{\"numbers\":1}", List.of("numbers: 1", "an array, each element an integer")),
                Arguments.of("map", "{\"numbers\":{\"a\":1,\"a\":2}}", List.of("numbers[a]", "twice")),
                Arguments.of("map", "{\"numbers\":{\"a\":null}}", List.of("numbers[a]: null", "an integer")),
                Arguments.of(
                        "turn",
                        "{\"circle\":{\"radius\":1},\"square\":{\"side\":1}}",
                        List.of("square: stands beside circle", "expected: one of circle, square")),
                Arguments.of("turn", "{\"radius\":1}", List.of("no field radius in Shape", "circle, square")),
                Arguments.of("turn", "{\"circle\":{\"radius\":1e400}}", List.of("circle.radius: 1e400")),
                Arguments.of("real", "{\"number\":1e400}", List.of("number: 1e400", "1.8e308")),
                Arguments.of(
                        "real", "{\"number\":1e-400}", List.of("number: 1e-400", "a double", "the nearest is 0.0")),
                Arguments.of("real", "{\"number\":-3e-324}", List.of("number: -3e-324", "the nearest is -4.9E-324")),
                Arguments.of(
                        "real",
                        "{\"number\":9007199254740993}",
                        List.of("number: 9007199254740993", "the nearest is 9.007199254740992E15")),
                Arguments.of(
                        "real",
                        "{\"number\":0.1234567890123456789}",
                        List.of("number: 0.1234567890123456789", "the nearest is")),
                Arguments.of("real", "{\"number\":0e99999999999}", List.of("number: 0e99999999999")),
                Arguments.of("real", "{\"number\":\"1d\"}", List.of("number: \"1d\"")),
                Arguments.of("single", "{\"number\":1e-60}", List.of("number: 1e-60", "a float", "the nearest is 0.0")),
                Arguments.of("single", "{\"number\":16777217}", List.of("number: 16777217", "1.6777216E7")),
                Arguments.of("single", "{\"number\":3.5e38}", List.of("number: 3.5e38", "3.4e38")),
                Arguments.of(
                        "instant",
                        "{\"moment\":\"2026-12-31T23:59:60Z\"}",
                        List.of("moment: \"2026-12-31T23:59:60Z\"", "no leap second")),
                Arguments.of("instant", "{\"moment\":\"+10000-01-01T00:00:00Z\"}", List.of("the years 1 to 9999")),
                Arguments.of("all", "{\"everything\":{\"duration\":\"PT1S\"}}", List.of("everything.duration", "1.5s")),
                Arguments.of(
                        "all",
                        "{\"everything\":{\"duration\":\"315576000000.1s\"}}",
                        List.of("everything.duration", "315576000000 seconds")),
                Arguments.of("all", "{\"kind\":\"LARGE\"}", List.of("kind: \"LARGE\"", "\"KIND_LARGE\"")),
                Arguments.of("all", "{\"kind\":1.5}", List.of("kind: 1.5", "\"KIND_LARGE\"")),
                Arguments.of("moments", "{\"date\":\"2026-01-01\"}", List.of("date: \"2026-01-01\"", "23:59:59Z")),
                Arguments.of("moments", "{\"time\":\"23:59\"}", List.of("time: \"23:59\"", "TimeOfDay: hours")),
                Arguments.of(
                        "moments", "{\"time\":{\"hour\":1}}", List.of("time: no field hour", "did you mean hours")),
                Arguments.of(
                        "moments",
                        "{\"offset\":{\"utcOffset\":\"0s\",\"timeZone\":{}}}",
                        List.of("offset.timeZone: stands beside utcOffset")),
                Arguments.of("moments", "{\"zoned\":{\"zone\":1}}", List.of("zoned.zone: 1 (expected: a string)")),
                Arguments.of("price", "{\"cents\":1.5}", List.of("cents: 1.5", "an integer")),
                Arguments.of("bytes", "{\"bytes\":\"QR==\"}", List.of("bytes: \"QR==\"", "spare bits zero")),
                Arguments.of("bytes", "{\"bytes\":\"QR\"}", List.of("bytes: \"QR\"", "spare bits zero")),
                Arguments.of("text", "{\"text\":\"a\\ud800\"}", List.of("text: \"a\\ud800\"", "surrogate")),
                Arguments.of("map", "{\"numbers\":{\"\udc00\":1}}", List.of("numbers: key \\udc00", "a string")),
                Arguments.of("lists", "{\"numbers\":{\" 1\":{}}}", List.of("numbers: key  1", "an integer")),
                Arguments.of(
                        "text",
                        "{\"text\":\"" + "x".repeat(4 * 1024 * 1024) + "\"}",
                        List.of("the request has 41943", "at most 4194304")),
                Arguments.of("bean", "{\"nmae\":\"x\"}", List.of("no field nmae in Bean", "name, count")),
                Arguments.of("ad", "{}", List.of("bank/ad: no such method", "did you mean bank/add?")));
    }

    @ParameterizedTest
    @MethodSource("unfit")
    void whatWouldNotBeSentAsItStandsThereIsNotSent(String method, String json, List<String> told) {
        assertThat(run("call", address, "bank/" + method, json)).isEqualTo(1);
        assertThat(complained()).contains(told).hasLineCount(1).hasSizeLessThan(500);
        assertThat(said()).isEmpty();
        assertThat(bank.calls).hasValue(0);
    }

    @Test
    void whatIsPrintedCanBeSent() {
        String all = "{\"b\":-128,\"s\":1,\"c\":228,\"l\":\"9223372036854775807\",\"f\":1.5,\"d\":\"NaN\","
                + "\"bytes\":\"AQI=\",\"big\":\"AY7pD/bDc+DuTj8K0g==\",\"uuid\":\"Ej5FZ+ibEtOkVkJmFBdAAA==\","
                + "\"decimal\":{\"unscaled\":\"bg==\",\"scale\":2},"
                + "\"instant\":\"2026-01-01T00:00:00Z\",\"duration\":\"1.500s\",\"date\":{\"days\":\"20454\"},"
                + "\"dateTime\":{\"seconds\":\"1767225601\",\"nanos\":0},\"kind\":\"KIND_LARGE\","
                + "\"lists\":[{\"items\":[1,2]},{\"items\":[]}],\"map\":{\"-1\":{\"items\":[\"KIND_SMALL\"]}},"
                + "\"byKey\":[{\"key\":{\"number\":1},\"value\":\"x\"}],"
                + "\"shapes\":[{\"circle\":{\"radius\":1.0}},{\"square\":{\"side\":2.0}}]}";
        assertThat(run("call", address, "bank/all", "{\"everything\":" + all + ",\"kind\":\"KIND_SMALL\"}"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace(all);
        assertThat(run("call", address, "bank/all", "{\"everything\":" + said() + ",\"kind\":1,\"number\":5}"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace(all);
        assertThat(run("call", address, "bank/pay", "{\"from\":\"a\",\"amount\":5,\"dry_run\":true}"))
                .as(complained())
                .isZero();
        assertThat(said()).contains("Order[from=a, amount=5, dryRun=true, note=Optional.empty]");
        assertThat(run("call", address, "bank/bean", "{\"count\":1}")).isZero();
        assertThat(said()).isEqualToIgnoringWhitespace("{\"name\":\"\",\"count\":1}");
        assertThat(run("call", address, "bank/turn", "{\"square\":{\"side\":3}}"))
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace("{\"square\":{\"side\":3.0}}");
    }

    @Test
    void timesAndUrisAndClassesWithoutSettersAreShownAsTheyAreSent() {
        String moments = "{\"date\":\"2026-01-01T00:00:00.001Z\","
                + "\"time\":{\"hours\":23,\"minutes\":59,\"seconds\":58,\"nanos\":0},"
                + "\"offset\":{\"year\":2026,\"month\":1,\"day\":1,\"hours\":0,\"minutes\":0,\"seconds\":1,"
                + "\"nanos\":0,\"utcOffset\":\"3600s\"},"
                + "\"zoned\":{\"time\":\"2026-06-30T22:00:01Z\",\"zone\":\"Europe/Paris\"},"
                + "\"uri\":\"https://a/b?c\","
                + "\"byUri\":[{\"key\":\"a:b\",\"value\":{\"hours\":12,\"minutes\":0,\"seconds\":0,\"nanos\":0}}]}";
        assertThat(run("call", address, "bank/moments", moments))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace(moments);
        assertThat(run("call", address, "bank/price", "{\"cents\":5}"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace("{\"cents\":\"5\",\"unit\":\"\"}");
        assertThat(run("describe", address, "bank")).as(complained()).isZero();
        assertThat(said())
                .contains(
                        "import \"google/type/datetime.proto\";",
                        "google.type.TimeOfDay time = 2;",
                        "rpcx.ZonedDateTime zoned = 4;");
    }

    /** The JSON has each of these values as it is sent. The server knows what its types do not hold. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"time\":{\"hours\":24}}",
                "{\"offset\":{\"year\":2026,\"month\":1,\"day\":1}}",
                "{\"zoned\":{\"zone\":\"Atlantis\"}}",
                "{\"uri\":\"a b\"}"
            })
    void whatTheServersTypesDoNotHoldIsNotExecuted(String json) {
        assertThat(run("call", address, "bank/moments", json)).isEqualTo(3);
        assertThat(complained()).contains("INVALID, NOT_EXECUTED").hasLineCount(1);
        assertThat(bank.calls).hasValue(0);
    }

    /** Returns values as other tools write them. */
    static Stream<Arguments> numbers() {
        return Stream.of(
                Arguments.of("real", "0.1", "0.1"),
                Arguments.of("real", "0.10000000000000001", "0.1"),
                Arguments.of("real", "0.1000000000000000055511151231257827", "0.1"),
                Arguments.of("real", new BigDecimal(0.1).toString(), "0.1"),
                Arguments.of("real", "1.10", "1.1"),
                Arguments.of("real", "100", "100.0"),
                Arguments.of("real", "\"100\"", "100.0"),
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
                Arguments.of("real", "0e5", "0.0"),
                Arguments.of("real", "\"-Infinity\"", "\"-Infinity\""),
                Arguments.of("single", "0.1", "0.1"),
                Arguments.of("single", "0.100000001", "0.1"),
                Arguments.of("single", "3.4028235e38", "3.4028235E38"),
                Arguments.of("single", "16777216", "1.6777216E7"),
                Arguments.of("single", "\"NaN\"", "\"NaN\""),
                Arguments.of("add", "1e3", "1000"),
                Arguments.of("add", "7.000", "7"),
                Arguments.of("add", "\"-8\"", "-8"),
                Arguments.of("instant", "\"2026-01-01T01:00:00+01:00\"", "\"2026-01-01T00:00:00Z\""),
                Arguments.of("instant", "\"2026-01-01T00:00:00.1Z\"", "\"2026-01-01T00:00:00.100Z\""),
                Arguments.of("instant", "\"0001-01-01T00:00:00.000001Z\"", "\"0001-01-01T00:00:00.000001Z\""),
                Arguments.of("bytes", "\"QQ\"", "\"QQ==\""),
                Arguments.of("bytes", "\"-_8=\"", "\"+/8=\""));
    }

    @ParameterizedTest
    @MethodSource("numbers")
    void whatStandsForAValueIsTaken(String method, String json, String shown) {
        String field = method.equals("instant") ? "moment" : method.equals("bytes") ? "bytes" : "number";
        assertThat(run("call", address, "bank/" + method, "{\"" + field + "\":" + json + "}"))
                .as(complained())
                .isZero();
        assertThat(said()).isEqualToIgnoringWhitespace("{\"value\":" + shown + "}");
    }

    /** What has no form in JSON is an error of the printing, since the call was executed. */
    @Test
    void aResultWithoutAFormInJsonIsNotShown() {
        assertThat(run("call", address, "bank/far-away")).isEqualTo(1);
        assertThat(run("call", address, "bank/farAway")).isEqualTo(3);
        assertThat(complained())
                .contains("the call was executed, but its result cannot be shown", "expected: the years 1 to 9999")
                .hasLineCount(1);
        assertThat(said()).isEmpty();
    }

    @Test
    void aCallHasTheTimeAndTheMetadataThatItsOptionsGiveIt() {
        assertThat(run("call", address, "bank/note")).as(complained()).isZero();
        assertThat(said()).contains("null null false");
        assertThat(run(
                        "call",
                        address,
                        "bank/note",
                        "--timeout",
                        "2.5",
                        "--metadata",
                        "note=a=b",
                        "--metadata",
                        "other="))
                .as(complained())
                .isZero();
        assertThat(said()).contains("\"a=b  true\"");
        for (String unfit : List.of("0", "-1", "3601", "1s", "1e3")) {
            assertThat(run("call", address, "bank/note", "--timeout", unfit)).isEqualTo(1);
            assertThat(complained())
                    .isEqualToIgnoringNewLines("--timeout " + unfit + " (expected: seconds, 0.001 to 3600)");
        }
        assertThat(run("call", address, "bank/note", "--metadata", "note")).isEqualTo(1);
        assertThat(complained()).isEqualToIgnoringNewLines("--metadata: note (expected: NAME=VALUE)");
    }

    @Test
    void aProgramGetsALineOfJsonForEachAnswer() {
        assertThat(run("call", address, "bank/add", "{\"number\":1}", "--json")).isZero();
        assertThat(said()).isEqualToIgnoringNewLines("{\"value\":1}");
        assertThat(run("call", address, "bank/add", "{\"number\":x}", "--json")).isEqualTo(1);
        assertThat(complained())
                .startsWith("{\"exitCode\":1,\"message\":\"line 1, column ")
                .hasLineCount(1);
        assertThat(run("--json", "call", address, "bank/refuse", "{\"name\":\"abc\"}"))
                .isEqualTo(3);
        assertThat(complained())
                .startsWith("{\"exitCode\":3,\"code\":\"INVALID\",\"executed\":\"EXECUTED\",\"message\":")
                .hasLineCount(1);
        server.stop();
        assertThat(run("health", address, "--json")).isEqualTo(2);
        assertThat(complained())
                .startsWith("{\"exitCode\":2,\"code\":\"UNAVAILABLE\",\"executed\":\"NOT_EXECUTED\"")
                .hasLineCount(1);
    }

    @Test
    void anErrorShowsItsDetails() {
        assertThat(run("call", address, "bank/refuse", "{\"name\":\"abc\"}")).isEqualTo(3);
        assertThat(complained()).isEqualToIgnoringNewLines("INVALID, EXECUTED: no such name (Key {\"number\":3})");
    }

    @Test
    void aRequestMayComeFromTheInput() {
        assertThat(runWith("{\n\"number\": 5}\n", "call", address, "bank/add", "-"))
                .as(complained())
                .isZero();
        assertThat(said()).contains("5");
        assertThat(runWith("{\n\"number\": x}\n", "call", address, "bank/add", "-"))
                .isEqualTo(1);
        assertThat(complained()).startsWith("line 2, column ");
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
                InputStream.nullInputStream(),
                full,
                new PrintStream(err, true, StandardCharsets.UTF_8),
                getClass().getClassLoader());
        assertThat(commands.run("call", address, "bank/add", "{\"number\":1}")).isEqualTo(3);
        assertThat(complained())
                .contains("the call was executed, but its result cannot be shown", "no memory")
                .hasLineCount(1);
        assertThat(bank.calls).hasValue(1);
        err.reset();
        assertThat(commands.run("list", address)).isEqualTo(3);
        assertThat(complained()).contains("cannot be shown", "no memory").hasLineCount(1);
    }

    /** The result has 600 kB, and as a tree of JSON it would take more than 64 MiB. */
    @Test
    void aResultTakesNoMemoryForAllOfItsLinesAtOnce(@TempDir Path folder) throws Exception {
        Path shown = folder.resolve("shown");
        assertThat(process(shown, "-Xmx64m", "crowd", "{\"count\":300000}")).isZero();
        try (Stream<String> lines = Files.lines(shown)) {
            assertThat(lines.filter(line -> line.contains("\"age\" : 0"))).hasSize(300_000);
        }
    }

    @Test
    void aDiskThatIsFullIsNoMistakeInWhatWasAsked() throws Exception {
        Path full = Path.of("/dev/full");
        assumeThat(full).exists();
        assertThat(process(full, "-Xmx64m", "add", "{\"number\":1}")).isEqualTo(3);
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
                        "bank/" + method,
                        json)
                .redirectOutput(shown.toFile())
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        return process.waitFor();
    }

    @Test
    void noCharacterOfAResultIsObeyedOrUnseen() {
        String hostile = "\\u001b[31m \\u202egnp.exe \\u2066 \\u200b \\u2028 \\ufeff \\udb40\\udc41 ä😀";
        assertThat(run("call", address, "bank/text", "{\"text\":\"" + hostile + "\"}", "--json"))
                .isZero();
        assertThat(said().strip()).isEqualToIgnoringCase("{\"value\":\"" + hostile + "\"}");
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
            assertThat(run("call", address, "bank/text", "{\"text\":\"adm" + text + "in\"}", "--json"))
                    .isZero();
            assertThat(said().strip()).isEqualTo("{\"value\":\"adm" + escaped + "in\"}");
            assertThat(run("call", address, text)).isEqualTo(1);
            assertThat(complained()).startsWith(escaped + ": no such method");
        }
        // the neighbours of these characters are shown, as is what stands at the end of a piece of the text
        String seen = Character.toString(0xAC)
                + Character.toString(0xAE)
                + Character.toString(0x1161)
                + Character.toString(0x3163)
                + Character.toString(0xFE10)
                + Character.toString(0x2801)
                + "x😀".repeat(20_000);
        assertThat(run("call", address, "bank/text", "{\"text\":\"" + seen + "\"}", "--json"))
                .isZero();
        assertThat(said().strip()).isEqualTo("{\"value\":\"" + seen + "\"}");
    }

    /** A method without a result may be one-way to others. Here its end is waited for. */
    @Test
    void aMethodWithoutAResultHasRunWhenTheCommandEnds() {
        assertThat(run("call", address, "bank/tell", "{\"text\":\"x\"}"))
                .as(complained())
                .isZero();
        assertThat(said() + complained()).isEmpty();
        assertThat(bank.told).containsExactly("x");
    }

    /** A script that calls again after a 2 must not do twice what may have been done. */
    @Test
    void aCallThatMayHaveBeenExecutedIsNotOneThatHasNotReachedItsServer() throws Exception {
        try (Cutting cutting = new Cutting(server.port(), "cut here")) {
            assertThat(run("call", "127.0.0.1:" + cutting.port(), "bank/text", "{\"text\":\"cut here\"}"))
                    .isEqualTo(3);
            assertThat(complained()).contains("UNAVAILABLE, MAYBE").hasLineCount(1);
        }
        server.stop();
        assertThat(run("call", address, "bank/text", "{}")).isEqualTo(2);
        assertThat(complained()).contains("UNAVAILABLE, NOT_EXECUTED").hasLineCount(1);
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
