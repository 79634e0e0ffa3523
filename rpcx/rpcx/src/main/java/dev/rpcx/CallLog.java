package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.WatchedStream;
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
 * Interceptor that logs one line of JSON for each call. The lines go to the {@link System.Logger} named
 * {@code dev.rpcx.calls}, at level INFO for a call that has succeeded, and WARNING for any other call. Arguments and
 * results are never logged.
 *
 * <pre>{@code
 * {"side":"server","service":"greeter","method":"hello","outcome":"OK","micros":210,"leftMicros":9999700,"principal":"alice",
 *  "trace":"4bf92f3577b34da6a3ce929d0e0e4736"}
 * }</pre>
 *
 * <p>{@code micros} is the duration of the call in microseconds. {@code leftMicros} is the time in microseconds that
 * remained for the {@code CallContext} when the call ended; it is missing if a client makes the call outside any
 * context. {@code executed} and {@code error} are present if the call ended with an {@link RPCXException}; if a
 * HANDLER_FAILED call ended with another exception, only {@code error} is present. {@code trace} is the trace id of a
 * W3C {@code traceparent} in the metadata. At a client, {@code trace} is missing if the entry {@code traceparent} is
 * computed for each attempt.
 *
 * <p>A cancelled call does not always have the outcome CANCELLED. At a server it has this outcome if the handler's
 * future has not ended one second after the cancel, or if the handler fails after the cancel with an exception that is
 * not an {@link RPCXException}.
 *
 * <p>If the method returns a stream, the line is written at the end of the stream. A client writes one line for each
 * subscription, with the outcome CANCELLED if the subscriber has cancelled it. A server also writes the line if the
 * caller has gone before the stream is subscribed to. If the server itself ends a stream, for example because an item
 * is too large, the line has that failure, unless an interceptor that was added before this one has replaced the
 * stream. In that case the outcome is CANCELLED, if the replacement passes on the server's cancel.
 *
 * <p>Two failures appear only in the client's log. A call that the server refuses before its handler (overload, an
 * unknown method) has no line at the server. A result that is not a stream, and cannot be encoded or sent, for example
 * because of its size, has the outcome OK at the server.
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

    /** Returns a log for {@code Client.builder().interceptor}. The duration that it logs includes all attempts. */
    public static CallLog ofClient() {
        return new CallLog("client", 0, LOGGER);
    }

    /**
     * Returns a log for {@code Server.builder(…).interceptor}. It measures the time in the handler, until the handler's
     * future or stream has ended.
     */
    public static CallLog ofServer() {
        return new CallLog(SERVER, 0, LOGGER);
    }

    /**
     * Returns a copy of this log that omits calls that succeeded in less than {@code time}. Calls that failed are
     * logged in any case.
     *
     * @param time 0 to 365 days
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

    /** Publisher that passes on the given stream, and logs the end of each subscription. */
    private final class LoggedStream<T> implements Flow.Publisher<T>, WatchedStream {
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
            if (isServer()) {
                write(named, context, begin, why == null ? new GivenUp() : why);
            }
        }
    }

    private boolean isServer() {
        return side.equals(SERVER);
    }

    /** Subscriber that passes on all signals, and writes the line once, when the stream first ends. */
    private final class Logged<T> implements Flow.Subscriber<T> {
        private final Flow.Subscriber<? super T> subscriber;
        private final Named named;
        private final @Nullable CallContext context;
        private final long begin;
        private final AtomicBoolean isWritten = new AtomicBoolean();
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
            // only the first subscription is wrapped: the subscriber cancels any later one, which does not end the
            // stream
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

    /** Subscription that writes the line when its subscriber cancels it, or when the server ends the stream. */
    private record LoggedSubscription(Logged<?> to, Flow.Subscription subscription)
            implements Flow.Subscription, WatchedStream {
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

    /** Failure that is logged for a stream that its subscriber has cancelled, or whose caller is gone. */
    private static final class GivenUp extends CancellationException {
        private static final long serialVersionUID = 1L;
    }

    /**
     * The fields of the log line that come from the {@code Invocation}. A stage may hold this object after the call has
     * ended, so the object holds no arguments.
     */
    private record Named(
            String service, String method, @Nullable String traceparent) {}

    /**
     * Returns the fields of the log line. Omits a {@code traceparent} that is computed for each attempt, since
     * computing it would run the user's code.
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
     * Returns whether a call counts as cancelled. At a client the exception decides. At a server the call's context
     * decides, since a handler may throw a {@link CancellationException} for its own reasons, and may throw anything
     * after a cancel.
     */
    private boolean isCancelled(@Nullable CallContext context, Throwable t) {
        return t instanceof GivenUp
                || (context != null && isServer() ? context.isCancelled() : t instanceof CancellationException);
    }

    private static void number(StringBuilder line, String name, long nanos) {
        line.append(",\"").append(name).append("\":").append(TimeUnit.NANOSECONDS.toMicros(nanos));
    }

    /**
     * Appends a JSON field, with the text escaped, so that nothing that a caller sends can end the string or the line.
     */
    private static void text(StringBuilder line, String name, String text) {
        line.append(",\"").append(name).append("\":\"");
        escape(line, text);
        line.append('"');
    }

    /** Returns a peer's text, escaped for use between quotes in a line of a log, and cut at 500 characters. */
    static String escaped(String text) {
        StringBuilder escaped = new StringBuilder();
        escape(escaped, text);
        return escaped.toString();
    }

    /**
     * Appends the text, escaped as in a JSON string, and cut at 500 characters. Characters that are invisible, or that
     * change the direction of writing, are escaped too.
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
