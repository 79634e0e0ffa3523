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
 * An interceptor that makes a span of every call, at a client and at a server. The context travels as metadata, in the form that the given
 * OpenTelemetry propagates, as a rule W3C's {@code traceparent}; a handler runs within the server's span, so that the calls it makes
 * itself belong to the same trace. Thread-safe.
 *
 * <p>The span is that of the thread on which the rest of the call's interceptors are called. Where one behind this
 * goes on later or on another thread, the handler does not run within the span, and its calls begin traces of their
 * own: let this be the last of the interceptors, or make OpenTelemetry's context current there.
 *
 * <p>Attributes are those of OpenTelemetry's conventions for RPC: {@code rpc.system}, {@code rpc.service}, {@code rpc.method}; and
 * {@code rpcx.code} for a call that failed. A stream's span ends when the stream is there, not with its last item. A
 * server's result that is refused only as it is encoded or sent, such as for its size, leaves the server's span without
 * an error: the client's has it.
 *
 * <p>At a server the context that a caller sends is taken as it is. With a sampler that goes by the parent, as
 * OpenTelemetry's standard does, each caller decides whether its calls are recorded, and to what trace they belong. For
 * callers whom you do not trust give an OpenTelemetry whose sampler or propagator decides by itself.
 *
 * <p>What would make a call's metadata more than 6 KiB or 60 entries, as a caller may have put into {@code baggage}, is
 * not passed on: with what comes to it behind this, such as a token, the call could no longer be sent.
 */
public final class CallTracing implements Interceptor {
    private static final AttributeKey<String> SYSTEM = AttributeKey.stringKey("rpc.system");
    private static final AttributeKey<String> SERVICE = AttributeKey.stringKey("rpc.service");
    private static final AttributeKey<String> METHOD = AttributeKey.stringKey("rpc.method");
    private static final AttributeKey<String> CODE = AttributeKey.stringKey("rpcx.code");

    /** A quarter of what a call may have is left to what comes behind this, such as a token. */
    private static final int MAX_BYTES = Metadata.MAX_BYTES / 4 * 3;

    private static final int MAX_ENTRIES = Metadata.MAX_ENTRIES - 4;

    /** Tags and lengths, at most. */
    private static final int ENTRY_BYTES = 10;

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

    /** For {@code Client.builder().interceptor}. */
    public static CallTracing ofClient(OpenTelemetry telemetry) {
        return new CallTracing(telemetry, SpanKind.CLIENT);
    }

    /** For {@code Server.builder(…).interceptor}. */
    public static CallTracing ofServer(OpenTelemetry telemetry) {
        return new CallTracing(telemetry, SpanKind.SERVER);
    }

    @Override
    @SuppressWarnings("try") // the scope is there to be closed
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
            result = next.proceed(kind == SpanKind.CLIENT ? carrying(call) : call);
        } catch (Throwable t) {
            Interceptor.aside(() -> end(span, t));
            throw t;
        }
        if (result instanceof CompletionStage<?> stage) {
            // the stage holds the span alone, and not the call with its arguments
            Interceptor.aside(() -> {
                boolean isHung = false;
                try {
                    stage.whenComplete((value, thrown) -> Interceptor.aside(() -> end(span, thrown)));
                    isHung = true;
                } finally {
                    if (!isHung) {
                        // a stage of the application's own that takes nothing: nobody will tell of its end
                        span.end();
                    }
                }
            });
        } else {
            Interceptor.aside(() -> end(span, null));
        }
        return result;
    }

    private Invocation carrying(Invocation call) {
        Map<String, String> entries = new HashMap<>();
        propagator.inject(Context.current(), entries, (carrier, key, value) -> {
            if (carrier != null) {
                carrier.put(key, value);
            }
        });
        int left = MAX_BYTES;
        int places = MAX_ENTRIES;
        for (Map.Entry<String, String> entry : call.metadata().entries().entrySet()) {
            left -= bytes(entry);
            places--;
        }
        Invocation carrying = call;
        // short ones first, such as the trace itself
        for (Map.Entry<String, String> entry : entries.entrySet().stream()
                .sorted(Comparator.comparingInt(CallTracing::bytes))
                .toList()) {
            left -= bytes(entry);
            places--;
            if (left < 0 || places < 0) {
                break;
            }
            carrying = carrying.with(entry.getKey(), entry.getValue());
        }
        return carrying;
    }

    /** No fewer than the entry takes in the metadata of a call. */
    private static int bytes(Map.Entry<String, String> entry) {
        return ENTRY_BYTES
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
                // the text last: an exception of the application's may throw instead of giving it
                span.setStatus(StatusCode.ERROR, String.valueOf(t.getMessage()));
                span.recordException(t);
            }
        } finally {
            span.end();
        }
    }
}
