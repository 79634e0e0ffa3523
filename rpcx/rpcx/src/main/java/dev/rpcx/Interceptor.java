package dev.rpcx;

import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.Given;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Intercepts every call: at a client before the arguments are encoded, at a server after they are decoded. The chain of
 * interceptors is composed once, at start. An interceptor runs on the thread of the caller or of the handler, and must
 * be thread-safe.
 *
 * <p>At a client an interceptor stands around the whole call, with all its retries and hedges: a value that has to
 * differ from attempt to attempt is an entry of {@link Invocation#withEachAttempt}. An exception that an interceptor
 * throws reaches the caller of a blocking method, and the future of an asynchronous method fails with it. A checked
 * exception that the method does not declare becomes the cause of an {@link RPCXException} there.
 *
 * <p>A server's interceptor may refuse a call before it proceeds: if it throws {@link RPCXException#refused}, or
 * anything but an {@link RPCXException}, or returns a stage that fails with one of these, the caller is told that the
 * handler was not executed.
 *
 * <p>A server's interceptor may also proceed later and on another thread, as in
 * {@code check().thenCompose(ok -> next.proceed(call))}. {@link CallContext#current} is the context of the call there
 * for as long as {@link Next#proceed} runs. Once the call has ended, in whatever way, {@link Next#proceed} throws, and
 * the handler is not begun. On an event loop, such as where the check is an asynchronous call of RPCX,
 * {@link Next#proceed} returns a stage of the result, even where the handler returns the result itself: the rest of the
 * chain and the handler run where the method's handlers run.
 *
 * <p>A handler that is begun on a thread of the interceptor's own counts as running until it has ended, even where the
 * call has been answered before. While it runs, a cancel of the call interrupts that thread. Where an interceptor has
 * answered the call before, the end of the call's time, of its connection or of its server interrupts that thread too,
 * but not on the classic wire. A handler that brings a stream, and is begun when a publisher of the interceptor is
 * subscribed to, does not count: the call has left the limits with its stream.
 *
 * <p>Where a handler returns a stage that has not ended, the interceptors of a server see a stage that belongs to the
 * call, and ends as the handler's stage does. The same holds for the interceptors before one that returns a stage of a
 * class that may begin its work only when a dependent is attached, which is any class but {@code CompletableFuture}
 * itself and the futures of RPCX: that work begins within {@link Next#proceed}. The call's stage ends as
 * {@code CANCELLED} when the call ends first, because an interceptor has answered it, or when the call is given up, one
 * second after its caller has gone. So no dependent stays attached to a stage that outlasts the call, or that many
 * calls share.
 */
@FunctionalInterface
public interface Interceptor {
    /**
     * Answers the call, as a rule with {@code next.proceed(call)}.
     *
     * @return what the method returns: its result, or a {@code CompletionStage} of the result; for a method that brings
     *     a stream, the {@code Flow.Publisher} itself. At a client anything else, and null for a primitive type, a
     *     stage or a stream, ends the call with an {@link RPCXException}
     */
    @Nullable
    Object intercept(Invocation call, Next next) throws Throwable;

    /** Rest of the chain behind an interceptor: the later interceptors, and at the end the sending or the handler. */
    @FunctionalInterface
    interface Next {
        /**
         * Goes on with the call, and returns its result or throws the exception with which it ends. Throws a
         * {@link NullPointerException} if {@code call} is null. At a server, where a handler returns null and its type
         * has no null, or returns no stream where one is due, an {@link IllegalStateException} is thrown, or the stage
         * of the result fails with one.
         */
        @Nullable
        Object proceed(Invocation call) throws Throwable;
    }

    /**
     * One call on its way through the interceptors. Changed invocations are made from it, so that a server knows to
     * which call each belongs, on whatever thread and however late it proceeds. An implementation of a user's own
     * serves tests of an interceptor: {@link Next#proceed} of RPCX refuses it with an {@link IllegalArgumentException}.
     */
    interface Invocation {
        /** Published name of the service. */
        String service();

        /** Published name of the method. */
        String method();

        /**
         * Arguments of the call. The array belongs to the call, and an interceptor may change it before it proceeds.
         */
        @Nullable
        Object[] arguments();

        /** Metadata that the client sends beside the arguments, or that the server has received. */
        Metadata metadata();

        /** Returns the same call with other arguments. */
        Invocation withArguments(@Nullable Object... others);

        /** Returns the same call with one more entry of metadata. */
        Invocation with(String name, String value);

        /**
         * Returns the same call with one more entry of metadata, whose value is computed anew for each attempt: see
         * {@link Metadata#withEachAttempt}.
         */
        Invocation withEachAttempt(String name, Supplier<String> value);

        /** Service and method; never arguments. */
        @Override
        String toString();
    }

    /**
     * Runs what an interceptor does only to observe calls, such as to write a log line about the end of a call. An
     * exception of {@code watching} is logged, and changes nothing for the call, whose result is there already.
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
