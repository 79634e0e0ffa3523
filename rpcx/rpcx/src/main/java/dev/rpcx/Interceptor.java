package dev.rpcx;

import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.Given;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Intercepts every call: at a client before the arguments are encoded, at a server after they are decoded. An
 * interceptor runs on the thread of the caller or of the handler, and must be thread-safe.
 *
 * <p>At a client, an interceptor surrounds a call with all its retries and hedges. A value that has to differ from
 * attempt to attempt is set by {@link Invocation#withEachAttempt}. If an interceptor throws an exception, a blocking
 * method throws it to its caller, and an asynchronous method returns a future that fails with it. A checked exception
 * that the method does not declare becomes the cause of an {@link RPCXException}.
 *
 * <p>A server's interceptor may refuse a call before it proceeds, by throwing an exception or returning a stage that
 * fails. The caller is told that the handler was not executed if the exception was made by
 * {@link RPCXException#refused}, or is not an {@link RPCXException}.
 *
 * <p>A server's interceptor may also proceed later and on another thread, as in
 * {@code check().thenCompose(ok -> next.proceed(call))}. While {@link Next#proceed} runs there,
 * {@link CallContext#current} returns the context of the call. Once the call has ended, {@link Next#proceed} throws,
 * and the handler does not start. If {@link Next#proceed} is called on an event loop on which the handler must not run,
 * the rest of the chain and the handler run where the method's handlers run, and {@link Next#proceed} returns a stage
 * of the result.
 *
 * <p>A handler that an interceptor starts on another thread counts as running until it has ended, even if the call has
 * been answered before. A cancel of the call interrupts that thread. If an interceptor has answered the call, that
 * thread is interrupted when the call's time is over, or when the call's connection or server ends, but not on the
 * classic wire. A handler that an interceptor's publisher starts only when somebody subscribes to it does not count as
 * running.
 *
 * <p>If a handler returns a stage that has not ended, the interceptors of a server see another stage in its place,
 * which ends as the handler's stage does. If the call ends first, because an interceptor has answered it or because its
 * caller has been gone for one second, the stage that the interceptors see ends as {@code CANCELLED}. A stage that an
 * interceptor returns is replaced in the same way for the interceptors before it, unless the stage is a
 * {@code CompletableFuture} that is of no subclass, or a future of RPCX. Any other stage might begin its work only when
 * a dependent is attached, so RPCX attaches one within {@link Next#proceed}.
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

    /** Rest of the chain after an interceptor: the later interceptors, then the sending of the call or the handler. */
    @FunctionalInterface
    interface Next {
        /**
         * Continues the call. Returns its result, or throws the exception with which it ends.
         *
         * <p>At a server, this method or the returned stage fails with an {@link IllegalStateException} if the handler
         * has returned null although its result type does not allow null, or has not returned the stream that its
         * method declares.
         *
         * @throws NullPointerException if {@code call} is null
         */
        @Nullable
        Object proceed(Invocation call) throws Throwable;
    }

    /**
     * Call on its way through the interceptors. {@code with}, {@code withArguments} and {@code withEachAttempt} return
     * changed copies, which belong to the same call. {@link Next#proceed} accepts any of the copies, on any thread.
     * Tests of an interceptor may implement this interface, but {@link Next#proceed} of RPCX refuses their
     * implementation with an {@link IllegalArgumentException}.
     */
    interface Invocation {
        /** Returns the published name of the service. */
        String service();

        /** Returns the published name of the method. */
        String method();

        /** Returns the arguments of the call. An interceptor may change the array before it proceeds. */
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
     * Runs code that only observes a call, for example to write a log line about its end. If {@code watching} throws an
     * exception, the logger {@code dev.rpcx.callbacks} logs it, at most once a minute. The call's result stays the
     * same.
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
