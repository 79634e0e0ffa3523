package dev.rpcx.codec;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds the text that may be sent to a peer for an exception. This is the exception's message, if a programmer has
 * written it. Messages of the virtual machine contain names of classes, members and variables, so other texts replace
 * them. The class has no state, and any thread may call it.
 */
public final class Words {
    /**
     * The virtual machine has several messages about null (JEP 358). Messages with one of these beginnings always
     * contain a name: that of the method or field whose use failed. The other messages contain a name only if they say
     * what was null, and then they end with {@link #IS_NULL}.
     */
    private static final List<String> NULL_ACTIONS =
            List.of("Cannot invoke \"", "Cannot read field \"", "Cannot assign field \"");

    private static final String IS_NULL = "\" is null";

    /**
     * Name of a class that exists only since Java 21. This code runs on older versions too, so it cannot refer to the
     * class itself.
     */
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
