package dev.rpcx.codec;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds the text of an exception that may be sent to a peer, which is the message that somebody has written into it.
 * The virtual machine's own messages contain names of classes, of their members and of variables, so other texts
 * replace them. Stateless.
 */
public final class Words {
    /**
     * Beginnings of the virtual machine's messages that say which action failed because of a null, and contain a name
     * (JEP 358). Its other messages of this kind contain a name only where they say what was null, and then end with
     * {@link #IS_NULL}.
     */
    private static final List<String> NULL_ACTIONS =
            List.of("Cannot invoke \"", "Cannot read field \"", "Cannot assign field \"");

    private static final String IS_NULL = "\" is null";

    /** Name of a class that exists only since Java 21, so that this code cannot refer to the class itself. */
    private static final String MATCH_EXCEPTION = "java.lang.MatchException";

    private Words() {}

    /**
     * Returns the text of an exception, without the name of its class.
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
