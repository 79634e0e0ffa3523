package dev.rpcx.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.Test;

/**
 * Tests that a lock says the same about the parameters and the result of a call as the types of the call do. So what
 * would be refused at run time is found when locks are compared.
 */
class FramingTest {
    @Retention(RetentionPolicy.RUNTIME)
    @Target({ElementType.TYPE_USE, ElementType.METHOD, ElementType.PARAMETER})
    @interface Nullable {}

    enum Colour {
        RED,
        UNKNOWN
    }

    enum Strict {
        ON
    }

    record Person(String name) {}

    sealed interface Either permits One {}

    record One(int a) implements Either {}

    interface Calls {
        void scalars(boolean a, byte b, short c, char d, int e, long f);

        void more(float a, double b, String c, byte[] d, BigInteger e, UUID f);

        void boxes(Boolean a, Byte b, Short c, Character d, Integer e, Long f);

        void nullable(
                Float a, Double b, @Nullable String c, byte @Nullable [] d, @Nullable BigInteger e, @Nullable UUID f);

        void optional(
                Optional<Integer> a,
                Optional<String> b,
                Optional<UUID> c,
                Optional<Person> d,
                Optional<Colour> e,
                Optional<List<String>> f);

        void messages(Person a, Instant b, BigDecimal c, Either d, Optional<Instant> e, @Nullable Person f);

        void enums(Colour a, @Nullable Colour b, Strict c, @Nullable Strict d, List<Colour> e, Set<Strict> f);

        void containers(
                List<Integer> a,
                List<String> b,
                Set<Person> c,
                Collection<Double> d,
                Map<String, Colour> e,
                Map<Person, List<Long>> f);

        void within(List<List<Integer>> a, @Nullable List<Integer> b, @Nullable Map<Integer, Integer> c);

        void moreThanHaveAKind(int a, int b, int c, int d, int e, int f, String g, Integer h);

        Person whole(Person person);

        @Nullable
        Person wrapped(@Nullable Person person);

        int number();

        @Nullable
        Colour colour();

        List<Long> numbers();

        Flow.Publisher<@Nullable Integer> items();

        Flow.Publisher<Person> people();
    }

    @Test
    void aLockHasTheKindsOfTheTypes() {
        Schema schema = new Schema(LockFile.none());
        Map<String, LockFile.Sent> calls = new LinkedHashMap<>();
        for (Method method : Calls.class.getDeclaredMethods()) {
            boolean isStream = method.getReturnType() == Flow.Publisher.class;
            calls.put("x/" + method.getName() + ".request", new LockFile.Sent(schema.parameters(method), false));
            calls.put("x/" + method.getName() + ".reply", new LockFile.Sent(schema.result(method), isStream));
        }
        LockFile lock = LockFile.parse(LockFile.none().extended(schema, calls).text(), "test");
        calls.forEach((name, sent) ->
                assertThat(Framing.of(entry(lock, name), lock)).as(name).isEqualTo(Framing.of(sent.type())));
        assertThat(Framing.of(entry(lock, "x/boxes.request"), lock)).isEqualTo(0x999999);
        assertThat(Framing.of(entry(lock, "x/optional.request"), lock)).isEqualTo(0x5954C9);
        assertThat(Framing.of(entry(lock, "x/whole.reply"), lock)).isEqualTo(Framing.WHOLE);
        assertThat(Framing.of(entry(lock, "x/scalars.reply"), lock)).isZero();
    }

    private static LockFile.Entry entry(LockFile lock, String name) {
        return java.util.Objects.requireNonNull(lock.entries().get(name), name);
    }
}
