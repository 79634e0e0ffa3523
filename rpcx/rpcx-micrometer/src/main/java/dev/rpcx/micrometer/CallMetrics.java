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
 * An interceptor that times every call, with the timers {@code rpcx.client.calls} and {@code rpcx.server.calls}. Their
 * tags are {@code service}, {@code method} and {@code outcome}, which is {@code OK} or the code of the
 * {@link RPCXException}. There is one timer for each method that is called and each outcome of its calls. Nothing that
 * a client makes up becomes a tag, since the interceptors of a server see calls of published methods only. Thread-safe.
 *
 * <p>A call that brings a stream is timed until the stream is there, and not until its last item. If the caller of a
 * call at a server has gone, and the call's future has not ended one second later, the call is timed until then and
 * counts as {@code CANCELLED}. If a handler throws anything but an {@link RPCXException}, the call counts as
 * {@code CANCELLED} if its caller had gone before, and otherwise as {@code HANDLER_FAILED}, whatever was thrown. If a
 * server's result is refused only when it is encoded or sent, such as for its size, the call counts as {@code OK} at
 * the server, and the client of its caller counts the outcome that it reads.
 */
public final class CallMetrics implements Interceptor {
    private record Key(String service, String method, String outcome) {}

    private final MeterRegistry registry;
    private final String name;
    private final String description;
    private final boolean isServer;

    /** Timers by their tags. Any thread on which a call ends may look one up or add one. */
    private final Map<Key, Timer> timers = new ConcurrentHashMap<>();

    private CallMetrics(MeterRegistry registry, String name, String description, boolean isServer) {
        this.registry = registry;
        this.name = name;
        this.description = description;
        this.isServer = isServer;
    }

    /**
     * Returns an interceptor for {@code Client.builder().interceptor}. It times a call from its start to its end,
     * including all attempts.
     */
    public static CallMetrics ofClient(MeterRegistry registry) {
        return new CallMetrics(registry, "rpcx.client.calls", "Calls to other services, until they end", false);
    }

    /** Returns an interceptor for {@code Server.builder(…).interceptor}. It measures the time in the handler. */
    public static CallMetrics ofServer(MeterRegistry registry) {
        return new CallMetrics(registry, "rpcx.server.calls", "Calls served, time in the handler", true);
    }

    @Override
    public @Nullable Object intercept(Invocation call, Next next) throws Throwable {
        long begin = System.nanoTime();
        // not read at a client: there it would be the context of the call that this thread handles, whose caller may
        // still be there
        CallContext served = isServer ? CallContext.current().orElse(null) : null;
        Object result;
        try {
            result = next.proceed(call);
        } catch (Throwable t) {
            record(call.service(), call.method(), begin, served, t);
            throw t;
        }
        // the names are read now, so that a stage that outlasts the call holds them alone, and not the arguments
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
