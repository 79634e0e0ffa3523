package dev.rpcx;

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
     * and however late it proceeds. One of a user's own is for tests of an interceptor: {@link Next#proceed} of RPCX
     * refuses it with an {@link IllegalArgumentException}.
     */
    interface Invocation {
        /** Name of the service, as it is published. */
        String service();

        /** Name of the method, as it is published. */
        String method();

        /** What the method is called with; the array is the call's own, and may be changed before it proceeds. */
        @Nullable
        Object[] arguments();

        /** What the client sends beside the arguments, or what the server has received. */
        Metadata metadata();

        /** The same call with other arguments. */
        Invocation withArguments(@Nullable Object... others);

        /** The same call with one more entry of metadata. */
        Invocation with(String name, String value);

        /**
         * Same call with one more entry of metadata, computed anew for each attempt: {@link Metadata#withEachAttempt}.
         */
        Invocation withEachAttempt(String name, Supplier<String> value);

        /** Service and method; never arguments. */
        @Override
        String toString();
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
}
