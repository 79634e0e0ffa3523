package dev.rpcx.internal.client;

import dev.rpcx.Interceptor;
import dev.rpcx.OneWay;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXFuture;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.CallGate;
import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.call.Chain;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.DeclaredErrors;
import dev.rpcx.internal.call.MethodShape;
import dev.rpcx.internal.call.Names;
import dev.rpcx.internal.call.PublishedMethod;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.schema.MethodSchema;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Handles the calls of the methods of a client's interface, and runs the client's interceptors. The constructor
 * examines all abstract methods of the interface by reflection.
 */
public final class ClientProxy implements InvocationHandler {
    /**
     * Timeout of a call whose argument or result is a stream, if the method sets no timeout. The timeout is long, since
     * a stream lasts until one side ends the stream.
     */
    static final Duration STREAM_TIMEOUT = Duration.ofDays(365);

    private static final Object[] NO_ARGUMENTS = {};

    private final Class<?> type;
    private final Route route;
    private final boolean isClassic;
    private final long callTimeoutNanos;
    private final Map<Method, Remote> methods = new HashMap<>();

    /** What reflection has found of each remote method; empty on the classic wire. */
    private final List<ClientMethod> described = new ArrayList<>();

    /**
     * The remote methods that have been called so far. The keys are compared by identity, which is faster than a
     * comparison of names and types. At the first call with a {@code Method} object, the map is replaced by a copy that
     * contains the object. Any thread that makes a call does this. If two threads replace the map at the same time, the
     * map can lack one of the two objects. The next call with that object adds it.
     */
    private volatile Map<Method, Remote> known = new IdentityHashMap<>();

    /** Handles of the default methods that have been called. Any thread that makes a call adds handles. */
    private final Map<Method, MethodHandle> defaults = new ConcurrentHashMap<>();

    /** Makes the calls of one method of the client's interface. There is one object for each method. */
    private interface Remote {
        @Nullable
        Object call(Object @Nullable [] arguments) throws Throwable;
    }

    public ClientProxy(
            Class<?> type,
            String service,
            Route route,
            Codecs codecs,
            List<Interceptor> interceptors,
            Duration callTimeout,
            boolean classic,
            ClientCore client) {
        this.type = type;
        this.route = route;
        this.isClassic = classic;
        this.callTimeoutNanos = callTimeout.toNanos();
        Names.checked(service);
        List<PublishedMethod> all = PublishedMethod.of(type);
        for (PublishedMethod published : all) {
            Method method = published.method();
            String name = published.name();
            dev.rpcx.Method marked = method.getAnnotation(dev.rpcx.Method.class);
            Duration standard =
                    Streams.returnsStream(method) || Streams.itemsTaken(method) != null ? STREAM_TIMEOUT : callTimeout;
            checkTimes(method);
            checkResult(type, method);
            long timeoutNanos = marked == null || marked.timeoutMillis() == 0
                    ? standard.toNanos()
                    : Given.callTime("timeoutMillis of " + method, Duration.ofMillis(marked.timeoutMillis()))
                            .toNanos();
            checkHedge(method, marked, timeoutNanos);
            // The shape of the method is checked first, so that its error is the one that the compiler gives too.
            Supplier<DeclaredErrors> errors = () -> errors(published, all, codecs);
            methods.put(
                    method,
                    classic
                            ? classic(method, service, name, codecs, timeoutNanos, errors, interceptors)
                            : remote(method, service, name, codecs, timeoutNanos, errors, interceptors, client));
        }
    }

    /**
     * Returns the exceptions that arrive as themselves at the callers of a method. A blocking method can throw only
     * what it declares itself. A future or a stream can fail with any exception that a form of the method declares,
     * that is, a method of the interface with the same published name.
     */
    private DeclaredErrors errors(PublishedMethod of, List<PublishedMethod> all, Codecs codecs) {
        String where = type.getName() + "." + of.method().getName();
        DeclaredErrors.refuseUnmarked(where, of.method());
        boolean isBlocking = kind(of.method()) == ClientMethod.Kind.BLOCKING;
        Set<Class<?>> declared = new LinkedHashSet<>(List.of(of.method().getExceptionTypes()));
        for (PublishedMethod form : all) {
            if (!isBlocking && form.name().equals(of.name())) {
                declared.addAll(List.of(form.method().getExceptionTypes()));
            }
        }
        return DeclaredErrors.of(where, declared, codecs);
    }

    private Remote remote(
            Method method,
            String service,
            String name,
            Codecs codecs,
            long timeoutNanos,
            Supplier<DeclaredErrors> errors,
            List<Interceptor> interceptors,
            ClientCore client) {
        Type items = Streams.itemsTaken(method);
        int shape = MethodShape.of(method, items, codecs);
        MethodSchema schema = MethodSchema.of(method, items, codecs.schema());
        ClientMethod.Kind kind = kind(method);
        ClientMethod found = new ClientMethod(
                client.numberOf(service, name, shape, schema, kind != ClientMethod.Kind.ONE_WAY),
                kind,
                Names.checked(service),
                name,
                items == null ? codecs.parameters(method) : Streams.NO_PARAMETERS,
                codecs.result(method),
                shape,
                schema,
                timeoutNanos,
                RouteKey.of(method, codecs),
                marked(method),
                items == null ? null : codecs.value(items, method));
        described.add(found);
        ClientSteps remote = new ClientSteps(found, route, errors.get());
        return interceptors.isEmpty()
                ? arguments -> remote.invoke(arguments, CurrentCall.outgoing())
                : intercepted(
                        method, service, name, interceptors, call -> remote.invoke(call.arguments(), call.metadata()));
    }

    /** Returns the method's annotation if the annotation says that calls are idempotent or hedged; otherwise null. */
    private static dev.rpcx.@Nullable Method marked(Method method) {
        dev.rpcx.Method marked = method.getAnnotation(dev.rpcx.Method.class);
        return marked == null || !marked.idempotent() && marked.hedgeMillis() == 0 ? null : marked;
    }

    /** Throws if a time in the method's annotation is negative. The method can belong to a client or to a service. */
    public static void checkTimes(Method method) {
        dev.rpcx.Method marked = method.getAnnotation(dev.rpcx.Method.class);
        if (marked != null) {
            checkTime(method, "timeoutMillis", marked.timeoutMillis());
            checkTime(method, "hedgeMillis", marked.hedgeMillis());
        }
    }

    private static void checkTime(Method method, String name, long millis) {
        if (millis < 0) {
            throw new IllegalArgumentException(method + ": " + name + " " + millis + " (expected: 0 or more)");
        }
    }

    /**
     * Throws if the proxy's class cannot access the type of the method's result, to which the proxy casts the result.
     * The proxy of a public interface is a class in another package, so it cannot access a package-private or private
     * type.
     */
    private static void checkResult(Class<?> type, Method method) {
        Class<?> result = method.getReturnType();
        while (result.isArray()) {
            result = result.getComponentType();
        }
        int open = Modifier.PUBLIC | Modifier.PROTECTED;
        if (Modifier.isPublic(type.getModifiers()) && !result.isPrimitive() && (result.getModifiers() & open) == 0) {
            throw new IllegalArgumentException(method + ": " + result.getName()
                    + " is not public, and the interface is: its proxy has no access (expected: a public type, or an"
                    + " interface that is not)");
        }
    }

    private static void checkHedge(Method method, dev.rpcx.@Nullable Method marked, long timeoutNanos) {
        if (marked == null || marked.hedgeMillis() == 0) {
            return;
        }
        ClientMethod.Kind kind = kind(method);
        boolean answered = kind == ClientMethod.Kind.BLOCKING || kind == ClientMethod.Kind.ASYNC;
        if (!marked.idempotent() || !answered || Streams.itemsTaken(method) != null) {
            throw new IllegalArgumentException(method + ": hedgeMillis " + marked.hedgeMillis()
                    + " (expected: 0, or more for an idempotent method with a result and without streams)");
        }
        if (TimeUnit.MILLISECONDS.toNanos(marked.hedgeMillis()) >= timeoutNanos) {
            throw new IllegalArgumentException(method + ": hedgeMillis " + marked.hedgeMillis()
                    + " (expected: less than the call's time, " + Duration.ofNanos(timeoutNanos) + ")");
        }
    }

    private Remote classic(
            Method method,
            String service,
            String name,
            Codecs codecs,
            long timeoutNanos,
            Supplier<DeclaredErrors> errors,
            List<Interceptor> interceptors) {
        ClassicMethod remote = new ClassicMethod(
                method, kind(method), Names.checked(service), name, codecs, timeoutNanos, route, errors.get());
        return intercepted(method, service, name, interceptors, call -> remote.invoke(call.arguments()));
    }

    private static Remote intercepted(
            Method method, String service, String name, List<Interceptor> interceptors, Interceptor.Next end) {
        Interceptor.Next chain = Chain.of(interceptors, call -> {
            Chain.given(call).passGate();
            return end.proceed(call);
        });
        ClientMethod.Kind kind = kind(method);
        boolean isAsync = kind == ClientMethod.Kind.ASYNC;
        boolean hasResult = method.getReturnType() != void.class;
        // only a blocking method can return null: a future or a publisher is never null
        boolean takesNull =
                kind == ClientMethod.Kind.BLOCKING && !method.getReturnType().isPrimitive();
        Class<?> expected = MethodType.methodType(method.getReturnType()).wrap().returnType();
        return arguments -> {
            CallGate gate = new CallGate();
            try {
                Object result = chain.proceed(new CallInvocation(
                        service,
                        name,
                        arguments == null ? NO_ARGUMENTS : arguments,
                        CurrentCall.outgoing(),
                        null,
                        gate));
                if (hasResult && (result == null ? !takesNull : !expected.isInstance(result))) {
                    throw ClientCallErrors.interceptorFailed(
                            "it answers " + service + "/" + name + " with "
                                    + (result == null
                                            ? "null"
                                            : result.getClass().getName()) + " (expected: "
                                    + method.getGenericReturnType().getTypeName() + ")",
                            executed(gate),
                            null);
                }
                if (result instanceof CallFuture<?> call) {
                    call.handedOut();
                }
                return result;
            } catch (Throwable e) {
                // An Error is caught too: a caller that gets a future looks for the failure there.
                Throwable error = callerError(method, e, gate);
                if (!isAsync) {
                    throw error;
                }
                CallFuture<Object> failed = new CallFuture<>();
                failed.fail(error);
                return failed;
            }
        };
    }

    /** Closes the gate of a call that an interceptor has ended. Returns whether the call was executed. */
    private static RPCXException.Executed executed(CallGate gate) {
        return gate.close() ? RPCXException.Executed.NOT_EXECUTED : RPCXException.Executed.MAYBE;
    }

    /**
     * Returns what the caller gets when an interceptor or the call itself has thrown {@code thrown}. A checked
     * exception that the method does not declare is replaced by an RPCXException. An RPCXException that leaves open
     * whether the call was executed is replaced by one that says NOT_EXECUTED, if the call has not been sent.
     */
    private static Throwable callerError(Method method, Throwable thrown, CallGate gate) {
        RPCXException.Executed executed = executed(gate);
        if (executed == RPCXException.Executed.NOT_EXECUTED
                && thrown instanceof RPCXException refusal
                && refusal.isExecutedOpen()) {
            return ClientCallErrors.withExecuted(refusal, executed);
        }
        if (thrown instanceof RuntimeException || thrown instanceof Error) {
            return thrown;
        }
        for (Class<?> declared : method.getExceptionTypes()) {
            if (declared.isInstance(thrown)) {
                return thrown;
            }
        }
        return ClientCallErrors.interceptorFailed(ThrowableText.words(thrown), executed, thrown);
    }

    /** Returns whether the calls of this proxy go to the given route. */
    boolean isOf(Route other) {
        return route == other;
    }

    /** Returns the errors that calls on a connection would get because its server does not have their methods. */
    List<RPCXException> misfits(ClientConnection connection) {
        List<RPCXException> misfits = new ArrayList<>();
        for (ClientMethod method : described) {
            RPCXException misfit = connection.misfit(method);
            if (misfit != null) {
                misfits.add(LocalFailure.asPublicException(misfit));
            }
        }
        return misfits;
    }

    /** Begins to connect, unless there is a connection or one is being made. Blocks no thread. */
    void connect() {
        if (route instanceof ClientAddress address) {
            if (isClassic) {
                address.connectClassic();
            } else if (address.anyOpen() == null) {
                address.connect(0);
            }
        }
    }

    /**
     * Waits for a connection whose server has been asked about all methods of this proxy. A connection that was
     * established before the proxy was made may have to be replaced for that.
     */
    private ClientConnection awaitCompared(long deadlineNanos, AnswerTimes times) {
        ClientConnection connection = route.await(0, deadlineNanos, times, CircuitBreaker.PERMITTED);
        if (described.stream().allMatch(connection::isCompared)) {
            return connection;
        }
        connection.replace();
        return route.await(0, deadlineNanos, times, CircuitBreaker.PERMITTED);
    }

    /**
     * Waits for a connection, uses all codecs once, and compares the methods with those of the server.
     *
     * @return the errors that calls would get; empty if calls can begin
     */
    List<RPCXException> warmUp(long deadlineNanos) {
        described.forEach(ClientMethod::useCodecs);
        AnswerTimes times = new AnswerTimes(callTimeoutNanos);
        try {
            if (!isClassic) {
                return misfits(awaitCompared(deadlineNanos, times));
            }
            CallFuture<@Nullable Object> connecting = new CallFuture<>();
            route.awaitClassic(deadlineNanos, times, CircuitBreaker.PERMITTED, (connected, failure) -> {
                if (failure == null) {
                    connecting.succeed(null);
                } else {
                    connecting.fail(LocalFailure.asPublicException(failure));
                }
            });
            route.await(connecting, deadlineNanos);
            return List.of();
        } catch (RPCXException unreachable) {
            return List.of(LocalFailure.asPublicException(unreachable));
        }
    }

    public static RPCXClient marked(Class<?> type) {
        RPCXClient marked =
                Given.notNull(type, "type", "an interface with @RPCXClient").getAnnotation(RPCXClient.class);
        if (!type.isInterface() || type.isAnnotation() || marked == null) {
            throw new IllegalArgumentException(type.getName() + " (expected: an interface with @RPCXClient)");
        }
        if (type.isSealed()) {
            throw new IllegalArgumentException(type.getName()
                    + ": @RPCXClient on a sealed interface, which only its own cases implement"
                    + " (expected: one that is not sealed)");
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
        if (Streams.returnsStream(method)) {
            return ClientMethod.Kind.STREAM;
        }
        if (!CompletionStage.class.isAssignableFrom(result)) {
            return ClientMethod.Kind.BLOCKING;
        }
        if (!result.isAssignableFrom(RPCXFuture.class)) {
            throw new IllegalArgumentException(
                    method + ": " + result.getName() + " (expected: CompletionStage, CompletableFuture or RPCXFuture)");
        }
        return ClientMethod.Kind.ASYNC;
    }

    @Override
    public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] arguments) throws Throwable {
        Remote remote = known.get(method);
        if (remote == null) {
            remote = learn(method);
        }
        return remote == null ? local(proxy, method, arguments) : remote.call(arguments);
    }

    private @Nullable Remote learn(Method method) {
        Remote remote = methods.get(method);
        Map<Method, Remote> before = known;
        if (remote != null && before.size() < methods.size()) {
            Map<Method, Remote> more = new IdentityHashMap<>(before);
            more.put(method, remote);
            known = more;
        }
        return remote;
    }

    /**
     * Returns a handle that calls a default method whose interface is not public.
     * {@link InvocationHandler#invokeDefault} cannot call such a method.
     */
    private MethodHandle ofInterface(Method method) throws IllegalAccessException {
        MethodHandle found = defaults.get(method);
        if (found == null) {
            Class<?> owner = method.getDeclaringClass();
            ClientProxy.class.getModule().addReads(owner.getModule());
            found = MethodHandles.privateLookupIn(owner, MethodHandles.lookup()).unreflectSpecial(method, owner);
            defaults.put(method, found);
        }
        return found;
    }

    /** Runs a method that is not a remote one: a default method of the interface, or a method of {@code Object}. */
    private @Nullable Object local(Object proxy, Method method, Object @Nullable [] arguments) throws Throwable {
        if (method.isDefault()) {
            if (Modifier.isPublic(method.getDeclaringClass().getModifiers())) {
                // invokeDefault() works even if the interface's module is not open
                return InvocationHandler.invokeDefault(proxy, method, arguments);
            }
            return ofInterface(method).bindTo(proxy).invokeWithArguments(arguments == null ? NO_ARGUMENTS : arguments);
        }
        return switch (method.getName()) {
            case "equals" -> arguments != null && proxy == arguments[0];
            case "hashCode" -> System.identityHashCode(proxy);
            default -> type.getSimpleName() + " at " + route;
        };
    }
}
