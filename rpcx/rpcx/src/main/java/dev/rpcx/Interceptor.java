package dev.rpcx;

import java.util.ArrayDeque;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Stands around every call, at a client before it is encoded, at a server after it is decoded. Composed once, at start. On the thread
 * of the caller or of the handler; must be thread-safe.
 *
 * <p>At a client it stands around the whole call, retries and hedges within: what has to differ from attempt to attempt
 * is an entry of {@link Invocation#withEachAttempt}. What it throws reaches the caller of a blocking method, and is what
 * the future of an asynchronous one ends with; a checked exception that the method does not declare is the cause of an
 * {@link RPCXException} there.
 *
 * <p>A server's interceptor that throws {@link RPCXException#refused}, or anything but an {@link RPCXException}, before
 * it proceeds tells the caller that the handler was not executed; so does one that returns a stage which fails so. It
 * may proceed later and on another thread, {@code check().thenCompose(ok -> next.proceed(call))}, where
 * {@link CallContext#current} is the call's own for as long as {@link Next#proceed} runs; but not once the call has
 * ended, in whatever way: then {@link Next#proceed} throws, and the handler is not begun. On an event loop, such as where
 * the check is an asynchronous call of RPCX, {@link Next#proceed} gives a stage of the result, also where the handler gives
 * the result itself: the rest of the chain and the handler run where the method's handlers do. A handler that is begun
 * on a thread of the interceptor's own counts among those that run until it has ended, also where the call has been
 * answered before; a cancel of the call interrupts that thread as long as the handler runs, and so does, behind an
 * answer of an interceptor's own, the end of the call's time, of its connection or of its server, but not on the
 * classic wire. One that brings a stream, and is begun as a publisher of the interceptor is subscribed to, does not
 * count: the call has left the limits with its stream.
 *
 * <p>Where a handler returns a stage that has not ended, the interceptors of a server see one of the call's own, which
 * ends with the handler's. So do those before one that returns a stage of a class which may do its work when something
 * is hung on it, any but a {@code CompletableFuture} itself and the futures of RPCX: that work begins within
 * {@link Next#proceed}. When the call has ended before that, because an interceptor has answered it, or is given up,
 * a second after its caller has gone, it ends as {@code CANCELLED}: nothing that is hung on it stays with a stage that
 * outlasts the call, or that many calls share.
 */
@FunctionalInterface
public interface Interceptor {
    /**
     * Answers the call, as a rule with {@code next.proceed(call)}.
     *
     * @return what the method returns: its result, or a {@code CompletionStage} of it; the {@code Flow.Publisher} itself
     *     for a method that brings a stream. At a client anything else, and null for a primitive type, a stage or a
     *     stream, ends the call with an {@link RPCXException}
     */
    @Nullable
    Object intercept(Invocation call, Next next) throws Throwable;

    /** The rest of the way. */
    @FunctionalInterface
    interface Next {
        /**
         * Goes on with the call, and gives its result; throws what it ends with, and a {@link NullPointerException}
         * where it is given no call. At a server a handler's null where its type has none, or no stream where one is
         * due, is thrown as an {@link IllegalStateException}, or is what its stage fails with.
         */
        @Nullable
        Object proceed(Invocation call) throws Throwable;
    }

    /**
     * One call on its way. Others are made of it, so that a server knows of each which call it is, on whatever thread
     * and however late it proceeds.
     */
    final class Invocation {
        private final String service;
        private final String method;
        private final @Nullable Object[] arguments;
        private final Metadata metadata;

        /** The call that a server handles; null at a client. */
        final @Nullable CallContext handled;

        Invocation(
                String service,
                String method,
                @Nullable Object[] arguments,
                Metadata metadata,
                @Nullable CallContext handled) {
            this.service = service;
            this.method = method;
            this.arguments = arguments;
            this.metadata = metadata;
            this.handled = handled;
        }

        /** Name of the service, as it is published. */
        public String service() {
            return service;
        }

        /** Name of the method, as it is published. */
        public String method() {
            return method;
        }

        /** What the method is called with; the array is the call's own, and may be changed before it proceeds. */
        public @Nullable Object[] arguments() {
            return arguments;
        }

        /** What the client sends beside the arguments, or what the server has received. */
        public Metadata metadata() {
            return metadata;
        }

        /** The same call with other arguments. */
        public Invocation withArguments(@Nullable Object... others) {
            return new Invocation(
                    service, method, Given.notNull(others, "others", "an array, empty for none"), metadata, handled);
        }

        /** The same call with one more entry of metadata. */
        public Invocation with(String name, String value) {
            return new Invocation(service, method, arguments, metadata.with(name, value), handled);
        }

        /**
         * Same call with one more entry of metadata, computed anew for each attempt: {@link Metadata#withEachAttempt}.
         */
        public Invocation withEachAttempt(String name, Supplier<String> value) {
            return new Invocation(service, method, arguments, metadata.withEachAttempt(name, value), handled);
        }

        /** Service and method; never arguments. */
        @Override
        public String toString() {
            return service + "/" + method;
        }
    }

    /**
     * Runs what an interceptor does only to watch calls, such as to write a line of the end of one. What that throws is
     * logged, and changes nothing for the call: its result is there already.
     */
    static void aside(Runnable watching) {
        Given.notNull(watching, "watching", "what runs");
        try {
            watching.run();
        } catch (Throwable t) {
            CallbackFailures.log(t);
        }
    }

    /** All of them in order, the first outermost. */
    static Next chain(Iterable<Interceptor> interceptors, Next end) {
        Given.notNull(end, "end", "what answers the call");
        Next next = call -> end.proceed(given(call));
        ArrayDeque<Interceptor> reversed = new ArrayDeque<>();
        for (Interceptor each : Given.notNull(interceptors, "interceptors", "those of a client or server")) {
            reversed.push(Given.notNull(each, "interceptors", "none of them null"));
        }
        for (Interceptor interceptor : reversed) {
            Next rest = next;
            Next step = call -> interceptor.intercept(call, rest);
            next = call -> CallContext.proceed(given(call), step);
        }
        return next;
    }

    private static Invocation given(Invocation call) {
        return Given.notNull(call, "call", "the Invocation that came, or one made of it");
    }
}
