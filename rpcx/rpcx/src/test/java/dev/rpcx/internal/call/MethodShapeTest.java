package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.OneWay;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.wire.MethodDictionary;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests two sides that would encode the parameters or the result of a method in different ways. The call fails before
 * anything is executed.
 */
@Timeout(60)
class MethodShapeTest {
    @Retention(RetentionPolicy.RUNTIME)
    @interface Nullable {}

    record Person(String name) {}

    record Older(String name, Integer age, List<String> tags) {}

    @RPCXServer("people")
    static final class People {
        final AtomicInteger executed = new AtomicInteger();

        private <T> T executed(T result) {
            executed.incrementAndGet();
            return result;
        }

        @Method
        @Nullable
        Person nullableResult(String name) {
            return executed(new Person(name));
        }

        @Method
        Optional<Person> optionalResult(String name) {
            return executed(Optional.of(new Person(name)));
        }

        @Method
        String nullableParameter(@Nullable Person person) {
            return executed(String.valueOf(person));
        }

        @Method
        String another(Person person, int times) {
            return executed(person.name.repeat(times));
        }

        @Method
        String number(int number) {
            return executed("" + number);
        }

        @Method
        List<String> list(List<String> names) {
            return executed(names);
        }

        @Method
        Flow.Publisher<String> stream(String name) {
            return executed(new StreamsTest.Made<>(1, i -> name));
        }

        @Method
        CompletableFuture<String> taken(Flow.Publisher<String> names) {
            StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(1);
            names.subscribe(collected);
            return executed(collected.end.thenApply(all -> String.join(",", all)));
        }

        @Method
        Older evolved(Older person, long factor, String added) {
            return executed(person);
        }

        @Method
        String answered(String text) {
            return executed(text);
        }

        @Method
        int counted(int number) {
            return executed(number);
        }

        @Method
        CompletableFuture<Integer> countedLater(int number) {
            return executed(CompletableFuture.completedFuture(number < 0 ? null : number));
        }

        @Method
        Flow.Publisher<Long> countedOneByOne(int number) {
            return executed(new StreamsTest.Made<>(number, i -> (long) i));
        }
    }

    @RPCXClient(remoteServerName = "people")
    interface Differing {
        Person nullableResult(String name);

        Person optionalResult(String name);

        String nullableParameter(Person person);

        String another(Person person);

        String number(String number);

        String list(List<String> names);

        String stream(String name);

        String taken(String names);

        @Method("nullableResult")
        CompletableFuture<Person> later(String name);

        @Method("nullableResult")
        Flow.Publisher<Person> asStream(String name);

        @OneWay
        @Method("nullableParameter")
        void notice(Person person);

        @Nullable
        @Method("answered")
        String nullableText(String text);

        @Method("answered")
        String takesNull(@Nullable String text);

        @Method("counted")
        Integer boxed(int number);

        @Method("counted")
        Optional<Integer> optional(int number);
    }

    @RPCXClient(remoteServerName = "people")
    interface Boxed {
        @Method("counted")
        int takesBox(Integer number);
    }

    @RPCXClient(remoteServerName = "people")
    interface Evolved {
        Person evolved(Person person, int factor);
    }

    @RPCXClient(remoteServerName = "people")
    interface EvolvedMore {
        @Method("evolved")
        void withoutResult(Person person, int factor, String added);

        @OneWay
        @Method("answered")
        void notice(String text);

        String notThere(String text);
    }

    /** A generic type cannot hold a primitive type, so its boxed type counts as the type of the other side. */
    @RPCXClient(remoteServerName = "people")
    interface Boxing {
        @Method("counted")
        CompletableFuture<Integer> later(int number);

        @Method("countedLater")
        int blocking(int number);

        @Method("countedLater")
        CompletableFuture<Integer> laterOnBothSides(int number);

        Flow.Publisher<Long> countedOneByOne(int number);
    }

    private final People people = new People();
    private Server server;
    private Client client;

    @BeforeEach
    void start() {
        server = new Server(0, RegistryServer.registry(people)).start();
        client = Client.standard();
    }

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private static Object call(Differing calls, String method) {
        return switch (method) {
            case "nullableResult" -> calls.nullableResult("Bob");
            case "optionalResult" -> calls.optionalResult("Bob");
            case "nullableParameter" -> calls.nullableParameter(new Person("Bob"));
            case "another" -> calls.another(new Person("Bob"));
            case "number" -> calls.number("7");
            case "list" -> calls.list(List.of("Bob"));
            case "stream" -> calls.stream("Bob");
            case "taken" -> calls.taken("Bob");
            default -> throw new AssertionError(method);
        };
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "nullableResult",
                "optionalResult",
                "nullableParameter",
                "another",
                "number",
                "list",
                "stream",
                "taken"
            })
    void aMethodOfAnotherShapeIsRefusedBeforeAnythingIsSent(String method) {
        Differing calls = client.create(Differing.class, "127.0.0.1", server.port());
        // these are the first call on a connection, and a call that knows the server's methods
        for (int i = 0; i < 2; i++) {
            assertThatThrownBy(() -> call(calls, method)).isInstanceOfSatisfying(RPCXException.class, e -> {
                assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID);
                assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                assertThat(e).hasMessageContaining("people/" + method).hasMessageContaining("shape");
            });
        }
        assertThat(people.executed).hasValue(0);
    }

    @Test
    void soAreCallsThatNobodyBlocksForAndStreams() {
        Differing calls = client.create(Differing.class, "127.0.0.1", server.port());
        assertThatThrownBy(() -> calls.later("Bob").join()).hasMessageContaining("another shape");
        StreamsTest.Collected<Person> collected = new StreamsTest.Collected<>(1);
        calls.asStream("Bob").subscribe(collected);
        assertThatThrownBy(collected::all).hasMessageContaining("stream");
        assertThatThrownBy(() -> calls.notice(new Person("Bob"))).hasMessageContaining("parameter 1");
        assertThat(people.executed).hasValue(0);
    }

    @Test
    void whatOneVersionHasInAdditionIsNoDifference() {
        Evolved calls = client.create(Evolved.class, "127.0.0.1", server.port());
        assertThat(calls.evolved(new Person("Bob"), 3)).isEqualTo(new Person("Bob"));
        EvolvedMore more = client.create(EvolvedMore.class, "127.0.0.1", server.port());
        more.withoutResult(new Person("Bob"), 3, "x");
        more.notice("taken");
        assertThatThrownBy(() -> more.notThere("x"))
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.NOT_FOUND));
    }

    /** For a reader that accepts null, the bytes of 0 and "" are those of null. */
    @Test
    void whatCanBeNullOnOneSideOnlyIsRefused() {
        Differing calls = client.create(Differing.class, "127.0.0.1", server.port());
        Boxed boxed = client.create(Boxed.class, "127.0.0.1", server.port());
        for (ThrowingCallable call : List.<ThrowingCallable>of(
                () -> calls.nullableText(""),
                () -> calls.takesNull(""),
                () -> calls.boxed(0),
                () -> calls.optional(0),
                () -> boxed.takesBox(0))) {
            assertThatThrownBy(call).hasMessageContaining("another shape").hasMessageContaining("can be null");
        }
        assertThat(people.executed).hasValue(0);
    }

    @Test
    void aBoxThatOnlyStandsForItsPrimitiveTypeIsRead() throws Exception {
        Boxing calls = client.create(Boxing.class, "127.0.0.1", server.port());
        for (int number : new int[] {0, 7}) {
            assertThat(calls.later(number).join()).isEqualTo(number);
            assertThat(calls.blocking(number)).isEqualTo(number);
            assertThat(calls.laterOnBothSides(number).join()).isEqualTo(number);
        }
        assertThatThrownBy(() -> calls.blocking(-1)).hasMessageContaining("null");
        StreamsTest.Collected<Long> collected = new StreamsTest.Collected<>(3);
        calls.countedOneByOne(3).subscribe(collected);
        assertThat(collected.all()).containsExactly(0L, 1L, 2L);
    }

    @Test
    void aServerThatDoesNotSayItsShapesIsCalled() {
        int ours = 1 << 31 | 4;
        assertThat(MethodShape.difference(ours, MethodDictionary.UNKNOWN_SHAPE, true))
                .isNull();
        assertThat(MethodShape.difference(ours, 1 << 31 | 14, true)).contains("of kind 14");
    }

    /** A parameter with number 2 would be read as field 2 of the message itself. */
    @Test
    void aMessageOfItsOwnIsNoneOfFieldsWhereverTheyStand() {
        int whole = 1 << 31 | 15;
        int second = 1 << 31 | 4 << 4;
        assertThat(MethodShape.difference(whole, second, true))
                .isEqualTo("parameter 1 is to the client a message of its own and to the server nothing");
        assertThat(MethodShape.difference(second, whole, false)).contains("to the server a message of its own");
        assertThat(MethodShape.difference(whole, 1 << 31, true)).isNull();
        assertThat(MethodShape.difference(second | 15 << 24, 1 << 31, true)).isNull();
    }

    /** Bit 31 keeps a shape from being 0, and has no other meaning. Bit 28 has no meaning either. */
    @Test
    void aShapeWithoutItsUpperBitReadsAsTheSameWithIt() {
        assertThat(MethodShape.difference(0x84000004, 0x04000004, true)).isNull();
        assertThat(MethodShape.difference(0x84000004, 0x14000004, true)).isNull();
        assertThat(MethodShape.difference(0x84000004, 0x04000001, true)).contains("parameter 1");
        assertThat(MethodShape.difference(0x84000004, 0x40000000, true)).contains("stream");
        assertThat(MethodShape.difference(0x84000004, 0, true)).isNull();
    }

    private static int kinds(int... kinds) {
        int shape = 1 << 31;
        for (int i = 0; i < kinds.length; i++) {
            shape |= kinds[i] << 4 * i;
        }
        return shape;
    }

    @Test
    void eachPlaceAndEachKindIsNamed() {
        String[] kinds = {
            "nothing",
            "a whole number, a boolean or an enum",
            "a number of 32 bits",
            "a number of 64 bits",
            "a text or bytes",
            "a message inside a field, as for a nullable or an Optional one",
            "a list of numbers",
            "a list, a set or a map",
            "of kind 8",
            "a whole number, a boolean or an enum that can be null",
            "a number of 32 bits that can be null",
            "a number of 64 bits that can be null",
            "a text or bytes that can be null",
            "of kind 13",
            "of kind 14",
            "a message of its own"
        };
        for (int place = 0; place < 7; place++) {
            String name = place == 6 ? "the result" : "parameter " + (place + 1);
            for (int here = 1; here < 16; here++) {
                int there = here == 15 ? 1 : here + 1;
                int client = 1 << 31 | here << 4 * place;
                int server = 1 << 31 | there << 4 * place;
                assertThat(MethodShape.difference(client, server, true))
                        .isEqualTo(name + " is to the client " + kinds[here] + " and to the server " + kinds[there]);
                assertThat(MethodShape.difference(client, server, false) == null)
                        .as("result")
                        .isEqualTo(place == 6);
                assertThat(MethodShape.difference(client, client, true)).isNull();
                assertThat(MethodShape.difference(client, 1 << 31, true)).isNull();
                assertThat(MethodShape.difference(client, MethodDictionary.UNKNOWN_SHAPE, true))
                        .isNull();
                assertThat(MethodShape.difference(MethodDictionary.UNKNOWN_SHAPE, server, true))
                        .isNull();
            }
        }
    }

    @Test
    void theFirstDifferenceIsTold() {
        int first = kinds(1, 4, 4, 0, 0, 0, 3);
        assertThat(MethodShape.difference(first, kinds(1, 4, 1, 1, 0, 0, 4), true))
                .startsWith("parameter 3");
        assertThat(MethodShape.difference(first, kinds(1, 4, 4, 1, 0, 0, 4), true))
                .startsWith("the result");
        assertThat(MethodShape.difference(first, kinds(1, 4, 4, 1, 0, 0, 4), false))
                .isNull();
    }

    @Test
    void aStreamIsToldBeforeAllElse() {
        int plain = kinds(1, 4);
        int takes = plain | 1 << 30;
        int brings = kinds(4, 4) | 1 << 29;
        assertThat(MethodShape.difference(takes, plain, false))
                .isEqualTo("the client declares the parameter as a stream, and the other side does not");
        assertThat(MethodShape.difference(plain, takes, true))
                .isEqualTo("the server declares the parameter as a stream, and the other side does not");
        assertThat(MethodShape.difference(brings, plain, true))
                .isEqualTo("the client declares the result as a stream, and the other side does not");
        assertThat(MethodShape.difference(plain, brings, true))
                .isEqualTo("the server declares the result as a stream, and the other side does not");
        assertThat(MethodShape.difference(plain | 1 << 29, plain, false))
                .as("nobody reads it")
                .isNull();
        assertThat(MethodShape.difference(takes | 1 << 29, takes | 1 << 29, true))
                .isNull();
    }

    @Test
    void aMethodsShapeSaysWhichStreamsItHas() throws Exception {
        Codecs codecs = Codecs.standard(MethodShapeTest.class);
        int streams = 1 << 30 | 1 << 29;
        int brings = MethodShape.of(People.class.getDeclaredMethod("countedOneByOne", int.class), null, codecs);
        int takes = MethodShape.of(People.class.getDeclaredMethod("taken", Flow.Publisher.class), String.class, codecs);
        int neither = MethodShape.of(People.class.getDeclaredMethod("number", int.class), null, codecs);
        assertThat(brings & streams).isEqualTo(1 << 29);
        assertThat(takes & streams).isEqualTo(1 << 30);
        assertThat(neither).isEqualTo(kinds(1, 0, 0, 0, 0, 0, 4));
        assertThat(brings & ~streams).isEqualTo(kinds(1, 0, 0, 0, 0, 0, 1));
    }
}
