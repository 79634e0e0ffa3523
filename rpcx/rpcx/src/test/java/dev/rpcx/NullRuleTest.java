package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests the one rule for null, which stands on the first page of the guide. A null is sent by sending nothing. It
 * arrives as null where nothing stands for no other value, or where the declaration says that null is allowed.
 * Everywhere else it is refused by its name, and never arrives as another value.
 */
@Timeout(60)
class NullRuleTest {
    /** Nothing stands for the constant of number 0. */
    enum Colour {
        UNKNOWN,
        RED
    }

    /** No constant has number 0. */
    enum Side {
        LEFT,
        RIGHT
    }

    // The names of these two types are those of no other test, since errors give a second type of a name a number.
    record Dot(int x) {}

    record EachKind(
            String text,
            byte[] bytes,
            List<String> list,
            Set<String> set,
            Map<String, String> map,
            Colour colour,
            Optional<String> optional,
            @Nullable String maybeText,
            byte @Nullable [] maybeBytes,
            @Nullable List<String> maybeList,
            @Nullable Map<String, String> maybeMap,
            @Nullable Colour maybeColour,
            Integer box,
            Dot point,
            Side side,
            UUID uuid,
            URI uri,
            BigInteger integer,
            BigDecimal decimal,
            Instant instant,
            Date date,
            Duration duration,
            LocalDate localDate,
            LocalDateTime localDateTime,
            LocalTime localTime,
            OffsetDateTime offsetDateTime,
            ZonedDateTime zonedDateTime) {}

    private static final EachKind WHOLE = new EachKind(
            "text",
            new byte[] {1},
            List.of("a"),
            Set.of("a"),
            Map.of("a", "b"),
            Colour.RED,
            Optional.of("a"),
            "text",
            new byte[] {1},
            List.of("a"),
            Map.of("a", "b"),
            Colour.RED,
            1,
            new Dot(1),
            Side.LEFT,
            new UUID(1, 2),
            URI.create("a:b"),
            BigInteger.ONE,
            BigDecimal.ONE,
            Instant.EPOCH,
            new Date(1),
            Duration.ZERO,
            LocalDate.EPOCH,
            LocalDateTime.of(1970, 1, 1, 0, 0),
            LocalTime.NOON,
            OffsetDateTime.parse("2026-01-01T00:00:00+01:00"),
            ZonedDateTime.parse("2026-01-01T00:00:00+01:00[Europe/Paris]"));

    /** Components for whose empty value nothing stands on the wire, and whose declaration does not allow null. */
    private static final Set<String> REFUSED = Set.of("text", "bytes", "list", "set", "map", "colour", "optional");

    @RPCXServer("nulls")
    static final class Service {
        final AtomicInteger begun = new AtomicInteger();

        @Method
        EachKind same(EachKind everything) {
            begun.incrementAndGet();
            return everything;
        }

        private String taken(@Nullable Object value) {
            begun.incrementAndGet();
            return "taken " + value;
        }

        @Method
        String takeText(String text) {
            return taken(text);
        }

        @Method
        String takeMaybeText(@Nullable String text) {
            return taken(text);
        }

        @Method
        String takeList(List<String> list) {
            return taken(list);
        }

        @Method
        String takeBox(Integer box) {
            return taken(box);
        }

        @Method
        String takeInstant(Instant instant) {
            return taken(instant);
        }

        @Method
        String takePoint(Dot point) {
            return taken(point);
        }

        @Method
        String takeMaybePoint(@Nullable Dot point) {
            return taken(point);
        }

        @Method
        String takePointOfTwo(Dot point, int more) {
            return taken(point);
        }

        @Method
        String text() {
            return null;
        }

        @Method
        @Nullable
        String maybeText() {
            return null;
        }

        @Method
        List<String> list() {
            return null;
        }

        @Method
        @Nullable
        List<String> maybeList() {
            return null;
        }

        @Method
        Dot point() {
            return null;
        }

        @Method
        @Nullable
        Dot maybePoint() {
            return null;
        }

        @Method
        Optional<Dot> optionalPoint() {
            return null;
        }

        @Method
        Integer box() {
            return null;
        }

        @Method
        Instant instant() {
            return null;
        }

        @Method
        CompletableFuture<Integer> later() {
            return CompletableFuture.completedFuture(null);
        }

        @Method
        CompletableFuture<@Nullable Integer> maybeLater() {
            return CompletableFuture.completedFuture(null);
        }

        @Method
        CompletableFuture<Dot> pointLater() {
            return CompletableFuture.completedFuture(null);
        }
    }

    @RPCXClient(remoteServerName = "nulls")
    interface Calls {
        EachKind same(EachKind everything);

        String takeText(String text);

        String takeMaybeText(@Nullable String text);

        String takeList(List<String> list);

        String takeBox(Integer box);

        String takeInstant(Instant instant);

        String takePoint(Dot point);

        String takeMaybePoint(@Nullable Dot point);

        String takePointOfTwo(Dot point, int more);

        String text();

        @Nullable
        String maybeText();

        List<String> list();

        @Nullable
        List<String> maybeList();

        Dot point();

        @Nullable
        Dot maybePoint();

        Optional<Dot> optionalPoint();

        Integer box();

        Instant instant();

        CompletableFuture<Integer> later();

        CompletableFuture<@Nullable Integer> maybeLater();

        CompletableFuture<Dot> pointLater();
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .host("127.0.0.1")
            .port(0)
            .build()
            .start();
    private final Client client = Client.standard();
    private final Calls calls = client.create(Calls.class, "127.0.0.1", server.port());

    @AfterEach
    void close() {
        client.close();
        server.close();
    }

    private static EachKind without(String component) throws ReflectiveOperationException {
        RecordComponent[] components = EachKind.class.getRecordComponents();
        Object[] values = new Object[components.length];
        for (int i = 0; i < values.length; i++) {
            boolean isNull = components[i].getName().equals(component);
            values[i] = isNull ? null : components[i].getAccessor().invoke(WHOLE);
        }
        Class<?>[] types =
                Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
        return EachKind.class.getDeclaredConstructor(types).newInstance(values);
    }

    static Stream<String> components() {
        return Arrays.stream(EachKind.class.getRecordComponents()).map(RecordComponent::getName);
    }

    @ParameterizedTest
    @MethodSource("components")
    void aNullInAMessageArrivesAsNullOrIsRefusedByItsName(String component) throws ReflectiveOperationException {
        EachKind given = without(component);
        if (REFUSED.contains(component)) {
            assertThatThrownBy(() -> calls.same(given))
                    .isInstanceOfSatisfying(RPCXException.class, e -> {
                        assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID);
                        assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                    })
                    .hasMessageStartingWith("EachKind." + component + ": a")
                    .hasMessageContaining(" is null (expected: a value; Optional or an annotation @Nullable");
            assertThat(service.begun).hasValue(0);
        } else {
            assertThat(calls.same(given)).usingRecursiveComparison().isEqualTo(given);
        }
    }

    private static Arguments call(String name, Function<Calls, @Nullable Object> call, @Nullable String refusal) {
        return Arguments.of(name, call, refusal);
    }

    static Stream<Arguments> arguments() {
        return Stream.of(
                call("text", calls -> calls.takeText(null), "TakeTextRequest.text: a string is null"),
                call("maybe a text", calls -> calls.takeMaybeText(null), null),
                call("list", calls -> calls.takeList(null), "TakeListRequest.list: a list or set is null"),
                call("box", calls -> calls.takeBox(null), null),
                call("instant", calls -> calls.takeInstant(null), null),
                call("record that is the request", calls -> calls.takePoint(null), "Dot is null"),
                call("maybe a record", calls -> calls.takeMaybePoint(null), null),
                call("record beside another parameter", calls -> calls.takePointOfTwo(null, 1), null));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("arguments")
    void aNullArgumentArrivesAsNullOrIsRefusedByItsName(
            String name, Function<Calls, @Nullable Object> call, @Nullable String refusal) {
        if (refusal == null) {
            assertThat(call.apply(calls)).isEqualTo("taken null");
        } else {
            assertThatThrownBy(() -> call.apply(calls))
                    .isInstanceOfSatisfying(
                            RPCXException.class,
                            e -> assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED))
                    .hasMessageStartingWith(refusal + " (expected: a value");
            assertThat(service.begun).hasValue(0);
        }
    }

    static Stream<Arguments> results() {
        return Stream.of(
                call("text", Calls::text, "TextReply.value: a string is null"),
                call("maybe a text", Calls::maybeText, null),
                call("list", Calls::list, "ListReply.value: a list or set is null"),
                call("maybe a list", Calls::maybeList, null),
                call("record", Calls::point, "Dot is null"),
                call("maybe a record", Calls::maybePoint, null),
                call("Optional", Calls::optionalPoint, "OptionalPointReply.value: an Optional is null"),
                call("box", Calls::box, null),
                call("instant", Calls::instant, null),
                call("future", calls -> calls.later().join(), "LaterReply.value: a number or a boolean is null"),
                call("future of maybe a box", calls -> calls.maybeLater().join(), null),
                call("future of a record", calls -> calls.pointLater().join(), "Dot is null"));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("results")
    void aNullResultArrivesAsNullOrFailsTheCall(
            String name, Function<Calls, @Nullable Object> call, @Nullable String refusal) {
        if (refusal == null) {
            assertThat(call.apply(calls)).isNull();
        } else {
            assertThatThrownBy(() -> call.apply(calls)).satisfies(thrown -> {
                Throwable failure = thrown instanceof RPCXException ? thrown : thrown.getCause();
                RPCXException error = (RPCXException) failure;
                assertThat(error.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
                assertThat(error.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
                assertThat(error)
                        .hasMessageStartingWith("the result cannot be sent: " + refusal + " (expected: a value");
            });
        }
    }
}
