package dev.rpcx.opentelemetry;

import dev.rpcx.Interceptor;
import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * An interceptor that makes a span for every call, at a client and at a server. The trace context is sent as metadata,
 * in the form that the given OpenTelemetry propagates, usually W3C's {@code traceparent}. A handler runs within the
 * server's span, so the calls that it makes belong to the same trace. Thread-safe.
 *
 * <p>The span is current on the thread that calls the remaining interceptors of the call. If an interceptor behind this
 * one proceeds later or on another thread, the handler does not run within the span, and the calls that it makes begin
 * traces of their own. To avoid this, make this interceptor the last, or make OpenTelemetry's context current there.
 *
 * <p>The attributes are those of OpenTelemetry's conventions for RPC: {@code rpc.system}, {@code rpc.service} and
 * {@code rpc.method}; a call that failed also has {@code rpcx.code}. The span of a stream ends when the stream is
 * there, and not with its last item. If a server's result is refused only when it is encoded or sent, such as for its
 * size, the server's span has no error, and the client's span has it.
 *
 * <p>A server takes the context that a caller sends as it is. With a sampler that follows the parent, such as
 * OpenTelemetry's standard sampler, each caller decides whether its calls are recorded, and to which trace they belong.
 * For callers that you do not trust, pass an OpenTelemetry whose sampler or propagator decides by itself.
 *
 * <p>Entries of the trace context that would bring the metadata of a call above 6 KiB or 60 entries are not sent; a
 * caller may have put that much into {@code baggage}. With them, a call could no longer be sent once interceptors
 * behind this one have added entries of their own, such as a token.
 */
public final class CallTracing implements Interceptor {
    private static final AttributeKey<String> SYSTEM = AttributeKey.stringKey("rpc.system");
    private static final AttributeKey<String> SERVICE = AttributeKey.stringKey("rpc.service");
    private static final AttributeKey<String> METHOD = AttributeKey.stringKey("rpc.method");
    private static final AttributeKey<String> CODE = AttributeKey.stringKey("rpcx.code");

    /**
     * Largest size in bytes of a call's metadata with the entries of this interceptor. A quarter of what a call may
     * have is left to the interceptors behind this one, for entries such as a token.
     */
    private static final int MAX_BYTES = Metadata.MAX_BYTES / 4 * 3;

    private static final int MAX_ENTRIES = Metadata.MAX_ENTRIES - 4;

    /** Upper bound of the bytes that the tags and lengths of an entry take. */
    private static final int MAX_ENTRY_OVERHEAD_BYTES = 10;

    private static final TextMapGetter<Metadata> GETTER = new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Metadata metadata) {
            return metadata.entries().keySet();
        }

        @Override
        public @Nullable String get(@Nullable Metadata metadata, String key) {
            return metadata == null ? null : metadata.get(key);
        }
    };

    private final Tracer tracer;
    private final TextMapPropagator propagator;
    private final SpanKind kind;

    private CallTracing(OpenTelemetry telemetry, SpanKind kind) {
        this.tracer = telemetry.getTracer("dev.rpcx");
        this.propagator = telemetry.getPropagators().getTextMapPropagator();
        this.kind = kind;
    }

    /** Returns an interceptor for {@code Client.builder().interceptor}. */
    public static CallTracing ofClient(OpenTelemetry telemetry) {
        return new CallTracing(telemetry, SpanKind.CLIENT);
    }

    /** Returns an interceptor for {@code Server.builder(…).interceptor}. */
    public static CallTracing ofServer(OpenTelemetry telemetry) {
        return new CallTracing(telemetry, SpanKind.SERVER);
    }

    @Override
    @SuppressWarnings("try") // the scope is only there to be closed
    public @Nullable Object intercept(Invocation call, Next next) throws Throwable {
        Context parent = kind == SpanKind.SERVER
                ? propagator.extract(Context.root(), call.metadata(), GETTER)
                : Context.current();
        Span span = tracer.spanBuilder(call.service() + "/" + call.method())
                .setParent(parent)
                .setSpanKind(kind)
                .setAttribute(SYSTEM, "rpcx")
                .setAttribute(SERVICE, call.service())
                .setAttribute(METHOD, call.method())
                .startSpan();
        Object result;
        try (Scope scope = parent.with(span).makeCurrent()) {
            result = next.proceed(kind == SpanKind.CLIENT ? withTraceContext(call) : call);
        } catch (Throwable t) {
            Interceptor.aside(() -> end(span, t));
            throw t;
        }
        if (result instanceof CompletionStage<?> stage) {
            // the stage holds only the span, and not the call with its arguments
            Interceptor.aside(() -> {
                boolean isAttached = false;
                try {
                    stage.whenComplete((value, thrown) -> Interceptor.aside(() -> end(span, thrown)));
                    isAttached = true;
                } finally {
                    if (!isAttached) {
                        // a stage of the application's own that takes no dependents: its end will never be reported
                        span.end();
                    }
                }
            });
        } else {
            Interceptor.aside(() -> end(span, null));
        }
        return result;
    }

    private Invocation withTraceContext(Invocation call) {
        Map<String, String> entries = new HashMap<>();
        propagator.inject(Context.current(), entries, (carrier, key, value) -> {
            if (carrier != null) {
                carrier.put(key, value);
            }
        });
        int left = MAX_BYTES;
        int entriesLeft = MAX_ENTRIES;
        for (Map.Entry<String, String> entry : call.metadata().entries().entrySet()) {
            left -= bytes(entry);
            entriesLeft--;
        }
        Invocation traced = call;
        // short entries go first, such as the trace itself
        for (Map.Entry<String, String> entry : entries.entrySet().stream()
                .sorted(Comparator.comparingInt(CallTracing::bytes))
                .toList()) {
            left -= bytes(entry);
            entriesLeft--;
            if (left < 0 || entriesLeft < 0) {
                break;
            }
            traced = traced.with(entry.getKey(), entry.getValue());
        }
        return traced;
    }

    /** Returns an upper bound of the bytes that an entry takes in the metadata of a call. */
    private static int bytes(Map.Entry<String, String> entry) {
        return MAX_ENTRY_OVERHEAD_BYTES
                + entry.getKey().getBytes(StandardCharsets.UTF_8).length
                + entry.getValue().getBytes(StandardCharsets.UTF_8).length;
    }

    private static void end(Span span, @Nullable Throwable thrown) {
        try {
            Throwable t = thrown == null ? null : RPCXException.cause(thrown);
            if (t != null) {
                span.setStatus(StatusCode.ERROR);
                if (t instanceof RPCXException e) {
                    span.setAttribute(CODE, e.code().name());
                }
                // the message is read last, since an exception class of the application may throw when it is asked for
                // its message
                span.setStatus(StatusCode.ERROR, String.valueOf(t.getMessage()));
                span.recordException(t);
            }
        } finally {
            span.end();
        }
    }
}
