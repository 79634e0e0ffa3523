package dev.rpcx.codec;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds the text that may be sent to a peer for an exception: the exception's message, if a programmer has written it.
 * Messages of the virtual machine are replaced, since they name classes, members and variables. Thread-safe.
 */
public final class Words {
    /**
     * Beginnings of the virtual machine's messages about null (JEP 358) that always name the method or field whose use
     * failed. The other messages contain a name only if they end with {@link #IS_NULL}.
     */
    private static final List<String> NULL_ACTIONS =
            List.of("Cannot invoke \"", "Cannot read field \"", "Cannot assign field \"");

    private static final String IS_NULL = "\" is null";

    /** Name of a class that Java 21 has added. This code also runs on older versions. */
    private static final String MATCH_EXCEPTION = "java.lang.MatchException";

    private Words() {}

    /**
     * Returns the text that may be sent to a peer for an exception. It does not contain the name of the exception's
     * class.
     *
     * @return null if the exception has no message
     */
    public static @Nullable String of(Throwable thrown) {
        if (thrown instanceof LinkageError
                || thrown instanceof ClassCastException
                || thrown instanceof ArrayStoreException
                || thrown.getClass().getName().equals(MATCH_EXCEPTION)) {
            return "classes that do not fit together";
        }
        String words = thrown.getMessage();
        return words != null && thrown instanceof NullPointerException && isOfTheVirtualMachine(words)
                ? "null where a value has to be"
                : words;
    }

    private static boolean isOfTheVirtualMachine(String words) {
        return words.startsWith("Cannot ") && words.endsWith(IS_NULL)
                || NULL_ACTIONS.stream().anyMatch(words::startsWith);
    }
}
