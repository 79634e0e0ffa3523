package dev.rpcx.micrometer;

import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * An interceptor that times every call: {@code rpcx.client.calls} and {@code rpcx.server.calls}, with the tags {@code service},
 * {@code method} and {@code outcome}, which is {@code OK} or the code of the {@link RPCXException}. There is a timer for each method that is
 * called and each way it ends: what a client makes up is never a tag, since a server's interceptors see published methods only. Thread-safe.
 *
 * <p>A stream counts until it is there, not until its last item. A server's call whose caller has gone, and whose future has not ended within
 * a second of that, counts until then, as {@code CANCELLED}.
 */
public final class CallMetrics implements Interceptor {
    private record Key(String service, String method, String outcome) {}

    private final MeterRegistry registry;
    private final String name;
    private final String description;
    private final Map<Key, Timer> timers = new ConcurrentHashMap<>();

    private CallMetrics(MeterRegistry registry, String name, String description) {
        this.registry = registry;
        this.name = name;
        this.description = description;
    }

    /** For {@code Client.builder().interceptor}: from the call to its end, with all that was tried. */
    public static CallMetrics ofClient(MeterRegistry registry) {
        return new CallMetrics(registry, "rpcx.client.calls", "Calls to other services, until they end");
    }

    /** For {@code Server.builder(…).interceptor}: the time in the handler. */
    public static CallMetrics ofServer(MeterRegistry registry) {
        return new CallMetrics(registry, "rpcx.server.calls", "Calls served, time in the handler");
    }

    @Override
    public @Nullable Object intercept(Invocation call, Next next) throws Throwable {
        long begin = System.nanoTime();
        Object result;
        try {
            result = next.proceed(call);
        } catch (Throwable t) {
            record(call.service(), call.method(), begin, t);
            throw t;
        }
        // a stage that outlasts the call holds the names, and not its arguments
        String service = call.service();
        String method = call.method();
        if (result instanceof CompletionStage<?> stage) {
            Interceptor.aside(() -> stage.whenComplete((value, thrown) -> record(service, method, begin, thrown)));
        } else {
            record(service, method, begin, null);
        }
        return result;
    }

    private void record(String service, String method, long begin, @Nullable Throwable thrown) {
        long nanos = System.nanoTime() - begin;
        Interceptor.aside(() -> timers.computeIfAbsent(new Key(service, method, outcome(thrown)), this::timer)
                .record(nanos, TimeUnit.NANOSECONDS));
    }

    private Timer timer(Key key) {
        return Timer.builder(name)
                .description(description)
                .tag("service", key.service)
                .tag("method", key.method)
                .tag("outcome", key.outcome)
                .register(registry);
    }

    private static String outcome(@Nullable Throwable thrown) {
        Throwable t = thrown == null ? null : RPCXException.cause(thrown);
        if (t == null) {
            return "OK";
        }
        return t instanceof RPCXException e
                ? e.code().name()
                : t instanceof java.util.concurrent.CancellationException
                        ? RPCXException.Code.CANCELLED.name()
                        : RPCXException.Code.HANDLER_FAILED.name();
    }
}
