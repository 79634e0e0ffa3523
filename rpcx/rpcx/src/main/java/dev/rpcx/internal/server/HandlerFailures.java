package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.VisibleText;
import dev.rpcx.internal.RateLimitedLog;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import java.time.InstantSource;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Logs the exceptions of handlers, interceptors and results of one server, with their stack traces and causes, since a
 * caller gets only a code and a text. A peer may have written a part of the texts, so each text is a single line of
 * visible characters. Thread-safe.
 */
final class HandlerFailures {
    private static final String LOGGER = "dev.rpcx.handlers";

    /**
     * Maximum number of exceptions of one method that are logged in a minute. A caller can make a handler fail as often
     * as the caller likes. The limit holds for each method, so that one method cannot hide the failures of another.
     */
    private static final int MAX_IN_MINUTE = 10;

    /** Maximum number of characters of one exception's text, if invisible characters of the text are escaped. */
    private static final int MAX_TEXT = 1_000;

    /** Maximum number of causes that are logged of an exception with invisible characters. */
    private static final int MAX_CAUSES = 20;

    /** Logs of the methods whose handlers have failed, by the numbers of the methods. Any thread adds logs. */
    private final Map<Integer, RateLimitedLog> logs = new ConcurrentHashMap<>();

    /**
     * Logs an exception. Throws nothing, since the call has ended, and a failure of the log must not end it again.
     *
     * @param what what has failed, for example the handler
     * @param call makes the text that has the id and the client of the call
     */
    void log(ServerMethod method, String what, Supplier<String> call, Throwable thrown) {
        try {
            Throwable t = unwrapped(thrown);
            String why = method.errors().whyUnsendable(t);
            logs.computeIfAbsent(
                            method.number(),
                            first ->
                                    new RateLimitedLog(System.getLogger(LOGGER), InstantSource.system(), MAX_IN_MINUTE))
                    .log(
                            method.service() + "/" + method.name() + ": " + what + " has failed, in " + call.get()
                                    + (why == null
                                            ? ""
                                            : "; the exception does not arrive as itself: "
                                                    + VisibleText.line(why, MAX_TEXT)),
                            VisibleText.isOf(t) ? t : new Escaped(t, 0));
        } catch (Throwable noMemory) {
            ThreadTools.report(noMemory);
        }
    }

    private static Throwable unwrapped(Throwable thrown) {
        try {
            return RPCXException.cause(thrown);
        } catch (Throwable unspeakable) {
            // a method of the exception itself has thrown
            return thrown;
        }
    }

    /** Copy of an exception and of its causes, in whose texts all invisible characters are escaped. */
    private static final class Escaped extends Exception {
        private static final long serialVersionUID = 1L;

        Escaped(Throwable of, int causes) {
            super(VisibleText.line(ThrowableText.words(of), MAX_TEXT), cause(of, causes), false, true);
            setStackTrace(of.getStackTrace());
        }

        private static @Nullable Throwable cause(Throwable of, int causes) {
            Throwable cause;
            try {
                cause = of.getCause();
            } catch (Throwable unspeakable) {
                return null;
            }
            return cause == null || causes == MAX_CAUSES ? null : new Escaped(cause, causes + 1);
        }

        /** Returns the text of the original exception, which begins with the name of its class. */
        @Override
        public String toString() {
            return String.valueOf(getMessage());
        }
    }
}
