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
 * <p>At a client, an interceptor surrounds a call with all its retries and hedges. A value that has to differ from
 * attempt to attempt is set by {@link Invocation#withEachAttempt}. If an interceptor throws an exception, a blocking
 * method throws it to its caller, and an asynchronous method returns a future that fails with it. A checked exception
 * that the method does not declare becomes the cause of an {@link RPCXException}.
 *
 * <p>A server's interceptor may refuse a call before it proceeds. In three cases the error tells the caller that the
 * handler was not executed: the interceptor throws {@link RPCXException#refused}, it throws anything but an
 * {@link RPCXException}, or it returns a stage that fails with one of these exceptions.
 *
 * <p>A server's interceptor may also proceed later and on another thread, as in
 * {@code check().thenCompose(ok -> next.proceed(call))}. While {@link Next#proceed} runs there,
 * {@link CallContext#current} returns the context of the call. Once the call has ended, in whatever way,
 * {@link Next#proceed} throws, and the handler does not start. If {@link Next#proceed} is called on an event loop on
 * which the call's handler must not run, it returns a stage of the result, even if the handler returns the result
 * itself. The rest of the chain and the handler then run where the method's handlers run. This happens, for example, if
 * the check is an asynchronous call of RPCX.
 *
 * <p>If an interceptor starts the handler on another thread, the handler counts as running until it has ended, even if
 * the call has been answered before. While the handler runs, a cancel of the call interrupts that thread. If an
 * interceptor has answered the call while the handler goes on, that thread is also interrupted when the call's time is
 * over, or when the call's connection or server ends. On the classic wire it is not interrupted in that case.
 *
 * <p>One kind of handler on another thread does not count as running. For a method that returns a stream, an
 * interceptor may return a publisher that starts the handler only when somebody subscribes to it. By then the call no
 * longer counts towards the limits: it stopped counting when the publisher was returned.
 *
 * <p>If a handler returns a stage that has not ended, the interceptors of a server see another stage in its place. That
 * stage belongs to the call, and ends as the handler's stage does. The same happens if an interceptor returns a stage
 * that may begin its work only when a dependent is attached: the interceptors before it see a stage of the call, and
 * the work begins within {@link Next#proceed}. RPCX treats every stage as if it may begin its work so late, except a
 * {@code CompletableFuture} that is of no subclass, and the futures of RPCX.
 *
 * <p>If the call ends before the stage of the handler or interceptor has ended, the call's stage, which the
 * interceptors see in its place, ends as {@code CANCELLED}. A call ends so early if an interceptor has answered it. It
 * also ends so early if its caller has gone: one second later, the call is given up. So no dependent stays attached to
 * a stage that outlasts the call, or that many calls share.
 */
@FunctionalInterface
public interface Interceptor {
    /**
     * Answers the call, usually with {@code next.proceed(call)}.
     *
     * @return what the called method returns: its result, or a {@code CompletionStage} of the result; if the called
     *     method returns a stream, the {@code Flow.Publisher} itself. At a client, anything else ends the call with an
     *     {@link RPCXException}; so does null if the called method returns a primitive type, a stage or a stream.
     */
    @Nullable
    Object intercept(Invocation call, Next next) throws Throwable;

    /**
     * Rest of the chain after an interceptor: first the later interceptors, then the sending of the call or the
     * handler.
     */
    @FunctionalInterface
    interface Next {
        /**
         * Continues the call. Returns its result, or throws the exception with which it ends.
         *
         * <p>At a server, an {@link IllegalStateException} reports that a handler has returned null although its result
         * type does not allow null, or has not returned the stream that its method declares. The exception is thrown,
         * or the stage of the result fails with it.
         *
         * @throws NullPointerException if {@code call} is null
         */
        @Nullable
        Object proceed(Invocation call) throws Throwable;
    }

    /**
     * Call on its way through the interceptors. An interceptor changes it by {@code with}, {@code withArguments} and
     * {@code withEachAttempt}, which return changed copies. Each copy belongs to the same call. A server recognizes the
     * call by any of its copies, whichever thread proceeds with the copy, and however late. You can implement this
     * interface for tests of an interceptor, but {@link Next#proceed} of RPCX refuses your implementation with an
     * {@link IllegalArgumentException}.
     */
    interface Invocation {
        /** Returns the published name of the service. */
        String service();

        /** Returns the published name of the method. */
        String method();

        /**
         * Returns the arguments of the call. The array belongs to the call, and an interceptor may change it before it
         * proceeds.
         */
        @Nullable
        Object[] arguments();

        /** Returns the metadata that the client sends beside the arguments, or that the server has received. */
        Metadata metadata();

        /** Returns the same call with other arguments. */
        Invocation withArguments(@Nullable Object... others);

        /**
         * Returns the same call with one more entry of metadata. If there is an entry with this name already, it gets
         * the new value.
         */
        Invocation with(String name, String value);

        /**
         * Returns the same call with one more entry of metadata, whose value is computed again for each attempt: see
         * {@link Metadata#withEachAttempt}.
         */
        Invocation withEachAttempt(String name, Supplier<String> value);

        /** Returns the names of the service and the method, but never arguments. */
        @Override
        String toString();
    }

    /**
     * Runs code of an interceptor that only observes calls, for example to write a log line about the end of a call. If
     * {@code watching} throws an exception, the logger {@code dev.rpcx.callbacks} logs it, at most once a minute. The
     * exception changes nothing for the call, which has its result already.
     */
    static void aside(Runnable watching) {
        Given.notNull(watching, "watching", "a Runnable");
        try {
            watching.run();
        } catch (Throwable t) {
            CallbackFailures.log(t);
        }
    }
}
