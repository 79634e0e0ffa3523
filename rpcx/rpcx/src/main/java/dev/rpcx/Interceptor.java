package dev.rpcx;

import java.util.ArrayDeque;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Stands around every call, at a client before it is encoded, at a server after it is decoded. Composed once, at start. On the thread
 * of the caller or of the handler; must be thread-safe.
 *
 * <p>At a client it stands around the whole call, retries and hedges within: what has to differ from attempt to attempt
 * is an entry of {@link Invocation#withEachAttempt}. A server's interceptor that throws {@link RPCXException#refused}
 * before it proceeds tells the caller that the handler was not executed.
 */
@FunctionalInterface
public interface Interceptor {
    /**
     * Answers the call, as a rule with {@code next.proceed(call)}.
     *
     * @return what the method returns: its result, or a {@code CompletionStage} of it
     */
    @Nullable
    Object intercept(Invocation call, Next next) throws Throwable;

    /** The rest of the way. */
    @FunctionalInterface
    interface Next {
        /** Goes on with the call, and gives its result; throws what it ends with. */
        @Nullable
        Object proceed(Invocation call) throws Throwable;
    }

    /** One call on its way. The array is the call's own; metadata is what the client sends, or what the server received. */
    record Invocation(
            String service, String method, @Nullable Object[] arguments, Metadata metadata) {
        /** The same call with one more entry of metadata. */
        public Invocation with(String name, String value) {
            return new Invocation(service, method, arguments, metadata.with(name, value));
        }

        /**
         * Same call with one more entry of metadata, computed anew for each attempt: {@link Metadata#withEachAttempt}.
         */
        public Invocation withEachAttempt(String name, Supplier<String> value) {
            return new Invocation(service, method, arguments, metadata.withEachAttempt(name, value));
        }
    }

    /** All of them in order, the first outermost. */
    static Next chain(Iterable<Interceptor> interceptors, Next end) {
        Next next = end;
        ArrayDeque<Interceptor> reversed = new ArrayDeque<>();
        interceptors.forEach(reversed::push);
        for (Interceptor interceptor : reversed) {
            Next rest = next;
            next = call -> interceptor.intercept(call, rest);
        }
        return next;
    }
}
