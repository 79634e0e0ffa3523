package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.StreamEndListener;
import java.security.Principal;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Logs one line of JSON for each call. The lines go to the {@link System.Logger} named {@code dev.rpcx.calls}, at level
 * INFO if the call has succeeded, otherwise at level WARNING. Arguments and results are never logged.
 *
 * <pre>{@code
 * {"side":"server","service":"greeter","method":"hello","outcome":"OK","micros":210,"leftMicros":9999700,"principal":"alice",
 *  "trace":"4bf92f3577b34da6a3ce929d0e0e4736"}
 * }</pre>
 *
 * <p>A line has these fields, apart from the side and the names of the service and the method:
 *
 * <ul>
 *   <li>{@code outcome} is OK, or the {@link RPCXException.Code} with which the call has failed. If the call has failed
 *       with any exception that is not an {@link RPCXException}, and was not cancelled, the outcome is HANDLER_FAILED.
 *       For a client's one-way call, OK only means that the client has accepted the call.
 *   <li>{@code executed} is the value of {@link RPCXException#executed}. The field is missing if the call did not end
 *       with an {@link RPCXException}.
 *   <li>{@code error} is the text of the exception. The field is missing if the call has succeeded, or was cancelled
 *       without an {@link RPCXException}.
 *   <li>{@code micros} is the duration of the call in microseconds.
 *   <li>{@code leftMicros} is the time in microseconds that remained for the {@link CallContext} when the call ended.
 *       The field is missing if a client makes the call outside any context.
 *   <li>{@code principal} is the name of the caller that the {@link CallContext} knows. The field is missing if the
 *       context knows no caller.
 *   <li>{@code trace} is the trace id of the W3C {@code traceparent} in the metadata. The field is missing if the
 *       metadata has no {@code traceparent}. It is also missing if a client computes a {@code traceparent} for each
 *       attempt. A {@code traceparent} that an interceptor sets is logged only if the interceptor was added before this
 *       log.
 * </ul>
 *
 * <p>If a call is cancelled at a server, and the method of the call returns no stream, the outcome is CANCELLED in
 * these three cases:
 *
 * <ul>
 *   <li>The call is cancelled after the interceptors have begun, but before the handler starts.
 *   <li>The handler's future has not ended one second after the cancel.
 *   <li>The handler fails after the cancel with an exception that is not an {@link RPCXException}.
 * </ul>
 *
 * <p>In all other cases, the line of such a call says how the handler has ended.
 *
 * <p>If the method returns a stream, the line is written at the end of the stream.
 *
 * <ul>
 *   <li>A client writes one line for each subscription. The outcome is CANCELLED if the subscriber has cancelled the
 *       subscription.
 *   <li>A server also writes the line if the caller has gone before anybody has subscribed to the stream.
 *   <li>If the server itself ends the stream, for example because an item is too large, the line shows the reason, in
 *       this example the outcome TOO_LARGE.
 *   <li>An interceptor that was added before this log can replace the handler's stream by a stream of its own. If the
 *       server ends the new stream, and the new stream then cancels the handler's stream, the outcome is CANCELLED.
 * </ul>
 *
 * <p>Two kinds of failure appear only in the client's log:
 *
 * <ul>
 *   <li>The server refuses a call before the interceptors run, for example because of overload or an unknown method.
 *       The server writes no line.
 *   <li>The server cannot encode or send a result that is not a stream, for example because the result is too large.
 *       The server's line has the outcome OK.
 * </ul>
 */
public final class CallLog implements Interceptor {
    private static final System.Logger LOGGER = System.getLogger("dev.rpcx.calls");
    private static final int MAX_TEXT = 500;
    private static final String SERVER = "server";

    private final String side;
    private final long minNanos;
    private final System.Logger logger;

    CallLog(String side, long minNanos, System.Logger logger) {
        this.side = side;
        this.minNanos = minNanos;
        this.logger = logger;
    }

    /**
     * Returns a log for the calls of a client, to be passed to {@link Client.Builder#interceptor}. The logged duration
     * of a call includes all attempts.
     */
    public static CallLog ofClient() {
        return new CallLog("client", 0, LOGGER);
    }

    /**
     * Returns a log for the calls of a server, to be passed to {@link Server.Builder#interceptor}. The logged duration
     * of a call is the time in the handler and in the interceptors that were added after this log, until the returned
     * future or stream has ended.
     */
    public static CallLog ofServer() {
        return new CallLog(SERVER, 0, LOGGER);
    }

    /**
     * Returns a copy of this log that leaves out successful calls shorter than {@code time}. Failed calls are always
     * logged.
     *
     * @param time shortest duration of a successful call that is logged: 0 to 365 days
     */
    public CallLog slowerThan(Duration time) {
        return new CallLog(
                side,
                Given.time(time, "slowerThan", Duration.ZERO, Duration.ofDays(365), "0 to 365 days")
                        .toNanos(),
                logger);
    }

    @Override
    public @Nullable Object intercept(Invocation call, Next next) throws Throwable {
        long begin = System.nanoTime();
        CallContext context = CallContext.current().orElse(null);
        Named named = named(call);
        Object result;
        try {
            result = next.proceed(call);
        } catch (Throwable t) {
            write(named, context, begin, t);
            throw t;
        }
        if (result instanceof CompletionStage<?> stage) {
            Interceptor.aside(() -> stage.whenComplete((value, thrown) -> write(named, context, begin, thrown)));
        } else if (result instanceof Flow.Publisher<?> stream) {
            return logged(stream, named, context, begin);
        } else {
            write(named, context, begin, null);
        }
        return result;
    }

    private <T> Flow.Publisher<T> logged(
            Flow.Publisher<T> stream, Named named, @Nullable CallContext context, long begin) {
        return new LoggedStream<>(stream, named, context, begin);
    }

    /** Publisher that passes on a call's stream, and writes a log line at the end of each subscription. */
    private final class LoggedStream<T> implements Flow.Publisher<T>, StreamEndListener {
        private final Flow.Publisher<T> stream;
        private final Named named;
        private final @Nullable CallContext context;
        private final long begin;

        LoggedStream(Flow.Publisher<T> stream, Named named, @Nullable CallContext context, long begin) {
            this.stream = stream;
            this.named = named;
            this.context = context;
            this.begin = begin;
        }

        @Override
        public void subscribe(Flow.Subscriber<? super T> subscriber) {
            // at a client, the call begins only when its stream is subscribed to
            Logged<T> logged = new Logged<>(subscriber, named, context, isServer() ? begin : System.nanoTime());
            try {
                stream.subscribe(logged);
            } catch (Throwable t) {
                logged.end(t);
                throw t;
            }
        }

        @Override
        public void ended(@Nullable Throwable why) {
            try {
                if (isServer()) {
                    write(named, context, begin, why == null ? new GivenUp() : why);
                }
            } finally {
                StreamEndListener.ended(stream, why);
            }
        }
    }

    private boolean isServer() {
        return side.equals(SERVER);
    }

    /** Subscriber that passes on all signals of a call's stream, and writes one log line when the stream first ends. */
    private final class Logged<T> implements Flow.Subscriber<T> {
        private final Flow.Subscriber<? super T> subscriber;
        private final Named named;
        private final @Nullable CallContext context;
        private final long begin;

        /**
         * Whether the log line is being written or has been written. Any thread can end the stream, but only the first
         * thread that ends the stream writes the line.
         */
        private final AtomicBoolean isWritten = new AtomicBoolean();

        /**
         * Whether {@link #onSubscribe} has been called. Any thread can call that method. Only the first subscription
         * that {@code onSubscribe} gets is wrapped in a {@link LoggedSubscription}.
         */
        private final AtomicBoolean isSubscribed = new AtomicBoolean();

        Logged(Flow.Subscriber<? super T> subscriber, Named named, @Nullable CallContext context, long begin) {
            this.subscriber = Objects.requireNonNull(subscriber);
            this.named = named;
            this.context = context;
            this.begin = begin;
        }

        boolean isServers() {
            return isServer();
        }

        void end(@Nullable Throwable thrown) {
            if (isWritten.compareAndSet(false, true)) {
                write(named, context, begin, thrown);
            }
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            // Only the first subscription is wrapped. The subscriber cancels any later one, and such a cancel writes no
            // log line, because the stream goes on.
            subscriber.onSubscribe(
                    isSubscribed.compareAndSet(false, true)
                            ? new LoggedSubscription(this, subscription)
                            : subscription);
        }

        @Override
        public void onNext(T item) {
            subscriber.onNext(item);
        }

        @Override
        public void onError(Throwable thrown) {
            try {
                end(thrown);
            } finally {
                subscriber.onError(thrown);
            }
        }

        @Override
        public void onComplete() {
            try {
                end(null);
            } finally {
                subscriber.onComplete();
            }
        }
    }

    /** Subscription that writes the call's log line if the subscriber cancels, or if the server ends the stream. */
    private record LoggedSubscription(Logged<?> to, Flow.Subscription subscription)
            implements Flow.Subscription, StreamEndListener {
        @Override
        public void request(long items) {
            subscription.request(items);
        }

        @Override
        public void cancel() {
            try {
                to.end(new GivenUp());
            } finally {
                subscription.cancel();
            }
        }

        @Override
        public void ended(@Nullable Throwable why) {
            if (to.isServers()) {
                to.end(why == null ? new GivenUp() : why);
            }
        }
    }

    /** Exception that is logged for a stream if the subscriber has cancelled the stream, or if the caller is gone. */
    private static final class GivenUp extends CancellationException {
        private static final long serialVersionUID = 1L;
    }

    /**
     * The parts of an {@code Invocation} that the log line shows. This record holds no arguments, because a future can
     * keep the record in memory after the call has ended.
     */
    private record Named(
            String service, String method, @Nullable String traceparent) {}

    /**
     * Returns the parts of {@code call} that the log line shows. A {@code traceparent} that is computed for each
     * attempt is left out, because computing the value would run the user's code.
     */
    private static Named named(Invocation call) {
        return new Named(
                call.service(), call.method(), call.metadata().entries().get("traceparent"));
    }

    private void write(Named call, @Nullable CallContext context, long begin, @Nullable Throwable thrown) {
        long nanos = System.nanoTime() - begin;
        if (thrown == null && nanos < minNanos) {
            return;
        }
        Interceptor.aside(() -> {
            System.Logger.Level level = thrown == null ? System.Logger.Level.INFO : System.Logger.Level.WARNING;
            if (logger.isLoggable(level)) {
                logger.log(level, line(call, context, nanos, thrown));
            }
        });
    }

    private String line(Named call, @Nullable CallContext context, long nanos, @Nullable Throwable thrown) {
        StringBuilder line = new StringBuilder("{\"side\":\"").append(side).append('"');
        text(line, "service", call.service);
        text(line, "method", call.method);
        failure(line, context, thrown);
        number(line, "micros", nanos);
        if (context != null) {
            number(line, "leftMicros", context.remainingNanos());
            context.principal().map(Principal::getName).ifPresent(name -> text(line, "principal", name));
        }
        String trace = call.traceparent;
        // a traceparent is a version of 2 characters, a trace id of 32, a span id and flags, with hyphens between them
        if (trace != null && trace.length() >= 35 && trace.charAt(2) == '-') {
            text(line, "trace", trace.substring(3, 35));
        }
        return line.append('}').toString();
    }

    private void failure(StringBuilder line, @Nullable CallContext context, @Nullable Throwable thrown) {
        Throwable t = thrown == null ? null : RPCXException.cause(thrown);
        if (t == null) {
            text(line, "outcome", "OK");
        } else if (t instanceof RPCXException e) {
            text(line, "outcome", e.code().name());
            text(line, "executed", e.executed().name());
            text(line, "error", String.valueOf(e.getMessage()));
        } else if (isCancelled(context, t)) {
            text(line, "outcome", RPCXException.Code.CANCELLED.name());
        } else {
            text(line, "outcome", RPCXException.Code.HANDLER_FAILED.name());
            text(line, "error", ThrowableText.words(t));
        }
    }

    /**
     * Returns whether a failed call is logged as cancelled. A call that ends with a {@link GivenUp} always is. For any
     * other exception, there are two cases:
     *
     * <ul>
     *   <li>At a server, the call is logged as cancelled if the call's context is cancelled. The type of the exception
     *       does not count there, because a handler can throw a {@link CancellationException} for its own reasons, and
     *       can throw any exception after a cancel.
     *   <li>At a client, or if there is no context, the call is logged as cancelled if the exception is a
     *       {@code CancellationException}.
     * </ul>
     */
    private boolean isCancelled(@Nullable CallContext context, Throwable t) {
        return t instanceof GivenUp
                || (context != null && isServer() ? context.isCancelled() : t instanceof CancellationException);
    }

    private static void number(StringBuilder line, String name, long nanos) {
        line.append(",\"").append(name).append("\":").append(TimeUnit.NANOSECONDS.toMicros(nanos));
    }

    /**
     * Appends a JSON field whose value is a text. The text is escaped, because a caller could otherwise send characters
     * that end the string or the line.
     */
    private static void text(StringBuilder line, String name, String text) {
        line.append(",\"").append(name).append("\":\"");
        escape(line, text);
        line.append('"');
    }

    /**
     * Returns the first 500 characters of a text that a peer has sent, escaped for use between quotes in a log line.
     */
    static String escaped(String text) {
        StringBuilder escaped = new StringBuilder();
        escape(escaped, text);
        return escaped.toString();
    }

    /**
     * Appends the first 500 characters of a text, escaped as in a JSON string. Invisible characters, and characters
     * that change the direction of writing, are escaped too.
     */
    private static void escape(StringBuilder line, String text) {
        text.codePoints().limit(MAX_TEXT).forEach(c -> {
            if (c == '"' || c == '\\') {
                line.append('\\');
            }
            VisibleText.append(line, c);
        });
    }
}
