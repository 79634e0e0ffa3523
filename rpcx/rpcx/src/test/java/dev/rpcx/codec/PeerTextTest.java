package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what a peer learns about an exception. It learns the text that somebody wrote, and nothing that the virtual
 * machine says about classes.
 */
class PeerTextTest {
    private static final class Holder {
        static @Nullable Holder held;

        String text = "";
        int number;

        String text() {
            return text;
        }

        @SuppressWarnings("NullAway") // code without the annotation may return null
        Holder next() {
            return null;
        }
    }

    /** Returns null as a value of any type. */
    @SuppressWarnings({"NullAway", "TypeParameterUnusedInFormals"})
    private static <T> T none() {
        return null;
    }

    private static Arguments form(String name, ThrowingCallable failing) {
        return Arguments.of(name, failing);
    }

    /** Returns each action of JEP 358, and each way in which its text says what was null. */
    static Stream<Arguments> forms() {
        Holder none = none();
        Holder[] holders = none();
        Holder[][] rows = {none()};
        int[] numbers = none();
        boolean isFirst = System.nanoTime() != 0;
        return Stream.of(
                form("Cannot invoke", () -> none.text()),
                form("Cannot invoke", () -> new Holder().next().text()),
                form("Cannot invoke", () -> Objects.requireNonNullElse(Holder.held.next(), none)),
                form("Cannot invoke", () -> (isFirst ? none : new Holder().next()).text()),
                form("Cannot invoke", () -> Math.abs(PeerTextTest.<Integer>none())),
                form("Cannot invoke", () -> List.copyOf(PeerTextTest.<List<String>>none())),
                form("Cannot read field", () -> Objects.hash(none.number)),
                form("Cannot assign field", () -> none.number = 1),
                form("Cannot load from object array", () -> Objects.hash(holders[0])),
                form("Cannot load from object array", () -> Objects.hash(rows[0][0])),
                form("Cannot load from int array", () -> Objects.hash(numbers[0])),
                form("Cannot store to object array", () -> holders[0] = new Holder()),
                form("Cannot store to int array", () -> numbers[0] = 1),
                form("Cannot read the array length", () -> Objects.hash(holders.length)),
                form("Cannot throw exception", () -> {
                    throw PeerTextTest.<RuntimeException>none();
                }),
                form("Cannot enter synchronized block", () -> {
                    synchronized (PeerTextTest.<Holder>none()) {
                        none.text();
                    }
                }));
    }

    @ParameterizedTest
    @MethodSource("forms")
    void theMachinesWordsOfANullAreNotTold(String action, ThrowingCallable failing) {
        Throwable thrown = catchThrowable(failing);
        assertThat(thrown).isExactlyInstanceOf(NullPointerException.class).hasMessageStartingWith(action);
        assertThat(PeerText.of(thrown)).isEqualTo("null where a value has to be");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "customer",
                "",
                "Cannot be null: \"customer\"",
                "customer (expected: a name)",
                "the field \"customer\" is null",
                "Cannot read the \"customer\" of this order"
            })
    void whatSomebodyWroteIsTold(String text) {
        assertThat(PeerText.of(new NullPointerException(text))).isEqualTo(text);
        assertThat(PeerText.of(catchThrowable(() -> Objects.requireNonNull(none(), text))))
                .isEqualTo(text);
        assertThat(PeerText.of(new IllegalStateException(text))).isEqualTo(text);
    }

    @Test
    void whoSaysNothingHasNoWords() {
        assertThat(PeerText.of(new NullPointerException())).isNull();
        assertThat(PeerText.of(catchThrowable(() -> Objects.requireNonNull(none()))))
                .isNull();
    }

    @Test
    void theMachinesWordsOfClassesAreNotTold() {
        Object text = "x";
        Object[] texts = new String[1];
        for (ThrowingCallable failing : List.<ThrowingCallable>of(
                () -> ((Holder) text).text(), () -> Holder.class.cast(text), () -> texts[0] = new Holder(), () -> {
                    throw new NoClassDefFoundError("dev/rpcx/Holder");
                })) {
            assertThat(PeerText.of(catchThrowable(failing))).isEqualTo("classes that do not fit together");
        }
    }

    /** The compiler wraps what an accessor throws within a record pattern, and the wrapper's text names the class. */
    @Test
    void aPatternThatDoesNotMatchIsNotToldEither() throws Exception {
        assumeTrue(Runtime.version().feature() >= 21);
        Throwable thrown = (Throwable) Class.forName("java.lang.MatchException")
                .getConstructor(String.class, Throwable.class)
                .newInstance("dev.rpcx.Secret: no", null);
        assertThat(PeerText.of(thrown)).isEqualTo("classes that do not fit together");
    }
}
