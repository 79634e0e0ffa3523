package dev.rpcx.codec;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a peer may be told of an exception: what somebody has written into it. The virtual machine's own words are names
 * of classes, of their members and of variables, so others stand for them. Stateless.
 */
public final class Words {
    /**
     * How the virtual machine says what failed at a null, where that has a name (JEP 358). All else that it says there
     * has a name only where it says what was null, and ends with {@link #IS_NULL}.
     */
    private static final List<String> AT_NULL =
            List.of("Cannot invoke \"", "Cannot read field \"", "Cannot assign field \"");

    private static final String IS_NULL = "\" is null";

    /** Since Java 21. */
    private static final String MATCH_EXCEPTION = "java.lang.MatchException";

    private Words() {}

    /**
     * What it says of itself, without its class.
     *
     * @return null where it says nothing
     */
    public static @Nullable String of(Throwable thrown) {
        if (thrown instanceof LinkageError
                || thrown instanceof ClassCastException
                || thrown instanceof ArrayStoreException
                || thrown.getClass().getName().equals(MATCH_EXCEPTION)) {
            return "classes that do not fit together";
        }
        String words = thrown.getMessage();
        return words != null && thrown instanceof NullPointerException && isOfTheMachine(words)
                ? "null where a value has to be"
                : words;
    }

    private static boolean isOfTheMachine(String words) {
        return words.startsWith("Cannot ") && words.endsWith(IS_NULL)
                || AT_NULL.stream().anyMatch(words::startsWith);
    }
}
