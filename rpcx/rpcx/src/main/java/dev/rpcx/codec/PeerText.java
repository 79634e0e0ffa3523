package dev.rpcx.codec;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds the text that can be sent to a peer for an exception. The text is usually the exception's own message. Messages
 * of the virtual machine that name classes, members or variables are replaced. The class is thread-safe.
 */
public final class PeerText {
    /**
     * Beginnings of some of the virtual machine's messages about null. A message that begins like this always contains
     * the name of a method or field. JEP 358 describes these messages. Other messages about null contain a name only if
     * they end with {@link #IS_NULL}.
     */
    private static final List<String> NULL_ACTIONS =
            List.of("Cannot invoke \"", "Cannot read field \"", "Cannot assign field \"");

    private static final String IS_NULL = "\" is null";

    /**
     * The name of a class that exists since Java 21. This code also runs on older versions of Java, so the code cannot
     * refer to the class itself.
     */
    private static final String MATCH_EXCEPTION = "java.lang.MatchException";

    private PeerText() {}

    /**
     * Returns the text that can be sent to a peer for an exception. The text does not contain the name of the
     * exception's class. Exceptions about classes that do not fit together, such as every {@link ClassCastException},
     * all have the same text, even if a programmer has written the message.
     *
     * @return null if the exception has no message, and is not about classes that do not fit together
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
