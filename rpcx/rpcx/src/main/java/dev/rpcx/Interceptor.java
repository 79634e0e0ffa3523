package dev.rpcx;

import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.Given;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Intercepts every call of a client or a server. A client's interceptor runs before the arguments are encoded, on the
 * caller's thread. A server's interceptor runs after the arguments are decoded, on the handler's thread. Interceptors
 * must be thread-safe.
 *
 * <p>A client's interceptor surrounds the whole call, including its retries and hedges. A value that has to differ from
 * attempt to attempt is set by {@link Invocation#withEachAttempt}. If the interceptor throws an exception, an
 * asynchronous method returns a future that fails with the exception, and any other method throws the exception to its
 * caller. A checked exception that the method does not declare becomes the cause of an {@link RPCXException}.
 *
 * <p>A client's interceptor can refuse a call by throwing an exception before it calls {@link Next#proceed}. The call
 * is then never sent, also if the interceptor calls {@link Next#proceed} later. An {@link RPCXException} that leaves
 * open whether the call was executed ({@link RPCXException#isExecutedOpen}) arrives as
 * {@link RPCXException.Executed#NOT_EXECUTED}.
 *
 * <p>A server's interceptor can refuse a call before calling {@link Next#proceed}, by throwing an exception or
 * returning a stage that fails. The caller is told that the handler was not executed, unless the exception is an
 * {@link RPCXException} that was made with {@link RPCXException.Executed#EXECUTED} or
 * {@link RPCXException.Executed#MAYBE}, for example by a call that the interceptor has made.
 *
 * <p>A server's interceptor can also call {@link Next#proceed} later and on another thread, as in
 * {@code check().thenCompose(ok -> next.proceed(call))}.
 *
 * <ul>
 *   <li>While {@link Next#proceed} runs, {@link CallContext#current} returns the context of the call.
 *   <li>If the call has ended, {@link Next#proceed} throws an exception, and the handler does not start.
 *   <li>If the calling thread is an event loop on which the handler must not run, {@link Next#proceed} returns a stage
 *       of the result. The later interceptors and the handler run where the method's handlers run.
 * </ul>
 *
 * <p>A handler that an interceptor starts on another thread counts as running at least until the handler has returned,
 * even if the call has been answered before. There is one exception: if an interceptor returns a publisher that starts
 * the handler only when somebody subscribes to it, that handler does not count as running. The handler's thread is
 * interrupted in these cases:
 *
 * <ul>
 *   <li>The call is cancelled.
 *   <li>An interceptor has answered the call, and after that the call's time is over, or the call's connection or
 *       server ends. On the classic wire, the thread is not interrupted in this case.
 * </ul>
 *
 * <p>If a handler returns a stage that has not ended, the interceptors of a server get another stage in its place,
 * which ends as the handler's stage does. But if the call ends before the handler's stage, the replacement ends as
 * {@code CANCELLED}. There are two reasons why a call can end before the handler's stage:
 *
 * <ul>
 *   <li>An interceptor has answered the call.
 *   <li>The call is cancelled (see {@link CallContext#isCancelled}). It then ends one second later at the latest.
 * </ul>
 *
 * <p>A stage that an interceptor returns is replaced in the same way for the interceptors before it. Two kinds of stage
 * are not replaced: a future of RPCX, and an object of exactly the class {@code CompletableFuture}. Any other stage
 * might begin its work only when a callback is attached, so RPCX attaches a callback to the stage within
 * {@link Next#proceed}.
 */
@FunctionalInterface
public interface Interceptor {
    /**
     * Answers the call, usually with the result of {@code next.proceed(call)}.
     *
     * @return what the called method returns: its result, a {@code CompletionStage} of the result, or the
     *     {@code Flow.Publisher} if the method returns a stream. A client checks the answer, unless the method is
     *     {@code void}. An object of any other type ends the call with an {@link RPCXException}. So does null, if the
     *     method returns a primitive type, a stage or a stream.
     */
    @Nullable
    Object intercept(Invocation call, Next next) throws Throwable;

    /**
     * Continues a call after an interceptor. The later interceptors run next. After them, a client sends the request,
     * and a server runs the handler.
     */
    @FunctionalInterface
    interface Next {
        /**
         * Continues the call, and returns the call's result or throws the exception with which the call ends.
         *
         * <p>At a server, this method or the returned stage fails with an {@link IllegalStateException} in two cases:
         *
         * <ul>
         *   <li>The handler has returned null, although its result type does not allow null.
         *   <li>The handler has not returned the stream that its method declares.
         * </ul>
         *
         * @throws NullPointerException if {@code call} is null
         */
        @Nullable
        Object proceed(Invocation call) throws Throwable;
    }

    /**
     * A call that passes through the interceptors. {@code with}, {@code withArguments} and {@code withEachAttempt}
     * return changed copies that belong to the same call. {@link Next#proceed} accepts any of the copies, on any
     * thread. Tests of an interceptor may implement this interface, but RPCX's own {@link Next#proceed} refuses such an
     * implementation with an {@link IllegalArgumentException}.
     */
    interface Invocation {
        /** Returns the published name of the called service. */
        String service();

        /** Returns the published name of the called method. */
        String method();

        /**
         * Returns the arguments of the call. An interceptor may change the array before it calls {@link Next#proceed}.
         */
        @Nullable
        Object[] arguments();

        /** Returns the metadata that the client sends beside the arguments, or that the server has received. */
        Metadata metadata();

        /** Returns a copy of this call that has other arguments. */
        Invocation withArguments(@Nullable Object... others);

        /**
         * Returns a copy of this call with one more entry of metadata. An existing entry with this name gets the new
         * value.
         */
        Invocation with(String name, String value);

        /**
         * Returns a copy of this call with one more entry of metadata, whose value is computed again for each attempt.
         * See {@link Metadata#withEachAttempt}.
         */
        Invocation withEachAttempt(String name, Supplier<String> value);

        /**
         * Returns a copy of this call that passes the metadata of its reply, or of its error, to {@code listener}. The
         * server adds them by {@link CallContext#reply}. The listener runs before the call ends, on an event loop, so
         * it must not block. It runs once for each attempt that is answered with metadata. It does not run if the
         * server has added none, for the reply at the end of a stream, on the classic wire, and with a server of an
         * earlier version.
         *
         * <p>This has no effect at a server. The default implementation, for tests of interceptors, ignores the
         * listener.
         */
        default Invocation onReply(Consumer<Metadata> listener) {
            return this;
        }

        /** Returns a text with the names of the service and the method, but never the arguments. */
        @Override
        String toString();
    }

    /**
     * Runs code that only observes a call, for example to write a log line about the call's end. If {@code observer}
     * throws an exception, the call's result stays the same. The logger {@code dev.rpcx.callbacks} logs such
     * exceptions, at most one a minute.
     */
    static void aside(Runnable observer) {
        Given.notNull(observer, "observer", "a Runnable");
        try {
            observer.run();
        } catch (Throwable t) {
            CallbackFailures.log(t);
        }
    }
}
