package dev.rpcx;

import dev.rpcx.codec.Codecs;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/** Stands behind a client's interface. Everything about its methods is found when it is made. */
final class ClientProxy implements InvocationHandler {
    /** A stream lasts until one side ends it, unless its method says otherwise. */
    private static final Duration STREAM_TIMEOUT = Duration.ofDays(365);

    private final Class<?> type;
    private final ClientAddress address;
    private final Map<Method, ClientMethod> methods = new HashMap<>();
    private final Map<Method, Interceptor.Next> chains = new HashMap<>();

    ClientProxy(
            Class<?> type,
            String service,
            ClientAddress address,
            Codecs codecs,
            List<Interceptor> interceptors,
            Duration callTimeout,
            IntSupplier indexes) {
        this.type = type;
        this.address = address;
        for (Method method : type.getMethods()) {
            if (Modifier.isStatic(method.getModifiers()) || method.isDefault()) {
                continue;
            }
            dev.rpcx.Method marked = method.getAnnotation(dev.rpcx.Method.class);
            String name = marked == null || marked.value().isEmpty() ? method.getName() : marked.value();
            Duration standard = Streams.brings(method) ? STREAM_TIMEOUT : callTimeout;
            Type items = Streams.itemsTaken(method);
            long timeoutNanos = marked == null || marked.timeoutMillis() == 0
                    ? standard.toNanos()
                    : Client.Builder.checked("timeoutMillis of " + method, Duration.ofMillis(marked.timeoutMillis()))
                            .toNanos();
            ClientMethod remote = new ClientMethod(
                    indexes.getAsInt(),
                    kind(method),
                    Names.checked(service),
                    Names.checked(name),
                    items == null ? codecs.parameters(method) : Streams.NO_PARAMETERS,
                    codecs.result(method),
                    timeoutNanos,
                    address,
                    items == null ? null : codecs.value(items));
            methods.put(method, remote);
            if (!interceptors.isEmpty()) {
                chains.put(
                        method,
                        Interceptor.chain(interceptors, call -> remote.call(call.arguments(), call.metadata())));
            }
        }
    }

    static RPCXClient marked(Class<?> type) {
        RPCXClient marked = type.getAnnotation(RPCXClient.class);
        if (!type.isInterface() || marked == null) {
            throw new IllegalArgumentException(type.getName() + " (expected: an interface with @RPCXClient)");
        }
        return marked;
    }

    private static ClientMethod.Kind kind(Method method) {
        Class<?> result = method.getReturnType();
        if (method.isAnnotationPresent(OneWay.class)) {
            if (result != void.class) {
                throw new IllegalArgumentException(method + ": @OneWay with a result (expected: void)");
            }
            return ClientMethod.Kind.ONE_WAY;
        }
        if (Streams.brings(method)) {
            return ClientMethod.Kind.STREAM;
        }
        return CompletionStage.class.isAssignableFrom(result) ? ClientMethod.Kind.ASYNC : ClientMethod.Kind.BLOCKING;
    }

    @Override
    public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] arguments) throws Throwable {
        ClientMethod remote = methods.get(method);
        if (remote == null) {
            return local(proxy, method, arguments);
        }
        Interceptor.Next chain = chains.isEmpty() ? null : chains.get(method);
        if (chain == null) {
            return remote.call(arguments, Metadata.EMPTY);
        }
        Object[] given = arguments == null ? new Object[0] : arguments;
        return chain.proceed(new Interceptor.Invocation(remote.service(), remote.name(), given, Metadata.EMPTY));
    }

    /** Methods that never leave the process: the interface's own default methods, and Object's. */
    private @Nullable Object local(Object proxy, Method method, Object @Nullable [] arguments) throws Throwable {
        if (method.isDefault()) {
            return InvocationHandler.invokeDefault(proxy, method, arguments);
        }
        return switch (method.getName()) {
            case "equals" -> arguments != null && proxy == arguments[0];
            case "hashCode" -> System.identityHashCode(proxy);
            default -> type.getSimpleName() + " at " + address;
        };
    }
}
