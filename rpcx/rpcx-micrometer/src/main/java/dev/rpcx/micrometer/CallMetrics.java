package dev.rpcx.micrometer;

import dev.rpcx.CallContext;
import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.Map;
import java.util.concurrent.CancellationException;
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
 * a second of that, counts until then, as {@code CANCELLED}. So does one whose handler throws anything but an
 * {@link RPCXException} once its caller has gone; before that it is {@code HANDLER_FAILED}, whatever it throws. A
 * server's result that is refused only as it is encoded or sent, such as for its size, counts as {@code OK} there:
 * its caller's client counts what that reads.
 */
public final class CallMetrics implements Interceptor {
    private record Key(String service, String method, String outcome) {}

    private final MeterRegistry registry;
    private final String name;
    private final String description;
    private final boolean isServer;
    private final Map<Key, Timer> timers = new ConcurrentHashMap<>();

    private CallMetrics(MeterRegistry registry, String name, String description, boolean isServer) {
        this.registry = registry;
        this.name = name;
        this.description = description;
        this.isServer = isServer;
    }

    /** For {@code Client.builder().interceptor}: from the call to its end, with all that was tried. */
    public static CallMetrics ofClient(MeterRegistry registry) {
        return new CallMetrics(registry, "rpcx.client.calls", "Calls to other services, until they end", false);
    }

    /** For {@code Server.builder(…).interceptor}: the time in the handler. */
    public static CallMetrics ofServer(MeterRegistry registry) {
        return new CallMetrics(registry, "rpcx.server.calls", "Calls served, time in the handler", true);
    }

    @Override
    public @Nullable Object intercept(Invocation call, Next next) throws Throwable {
        long begin = System.nanoTime();
        // at a client that of the call that the thread handles, whose caller may be there
        CallContext served = isServer ? CallContext.current().orElse(null) : null;
        Object result;
        try {
            result = next.proceed(call);
        } catch (Throwable t) {
            record(call.service(), call.method(), begin, served, t);
            throw t;
        }
        // a stage that outlasts the call holds the names, and not its arguments
        String service = call.service();
        String method = call.method();
        if (result instanceof CompletionStage<?> stage) {
            Interceptor.aside(
                    () -> stage.whenComplete((value, thrown) -> record(service, method, begin, served, thrown)));
        } else {
            record(service, method, begin, served, null);
        }
        return result;
    }

    private void record(
            String service, String method, long begin, @Nullable CallContext served, @Nullable Throwable thrown) {
        long nanos = System.nanoTime() - begin;
        Interceptor.aside(() -> timers.computeIfAbsent(new Key(service, method, outcome(served, thrown)), this::timer)
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

    private static String outcome(@Nullable CallContext served, @Nullable Throwable thrown) {
        Throwable t = thrown == null ? null : RPCXException.cause(thrown);
        if (t == null) {
            return "OK";
        }
        if (t instanceof RPCXException e) {
            return e.code().name();
        }
        boolean isCancelled = served == null ? t instanceof CancellationException : served.isCancelled();
        return (isCancelled ? RPCXException.Code.CANCELLED : RPCXException.Code.HANDLER_FAILED).name();
    }
}
