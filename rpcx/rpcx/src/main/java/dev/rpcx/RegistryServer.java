package dev.rpcx;

import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.Chain;
import dev.rpcx.internal.call.ClassicParameter;
import dev.rpcx.internal.call.DeclaredErrors;
import dev.rpcx.internal.call.MethodShape;
import dev.rpcx.internal.call.Names;
import dev.rpcx.internal.call.PublishedMethod;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.client.ClientProxy;
import dev.rpcx.internal.ledger.AddressGroups;
import dev.rpcx.internal.schema.DescribedFiles;
import dev.rpcx.internal.schema.DescribedService;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.PackageScan;
import dev.rpcx.internal.server.Reflection;
import dev.rpcx.internal.server.ServerMethod;
import dev.rpcx.internal.server.ServiceIndex;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Holds the methods that a server publishes. These are the methods with the annotation {@link dev.rpcx.Method} in the
 * classes of the given services. All reflection on these methods is done before the first call.
 *
 * <pre>{@code
 * RegistryServer registry = RegistryServer.registry(new Greetings());
 * new Server(9000, registry).start();
 * }</pre>
 */
public final class RegistryServer {
    /**
     * Maximum number of parameters of a published method, where a {@code long} or a {@code double} counts as two. Java
     * allows 255 arguments for a method handle, and two of them are the handle itself and the service's object.
     */
    private static final int MAX_ARGUMENT_SLOTS = 253;

    private final Map<String, Published> methods = new LinkedHashMap<>();

    /** Describes a published method, without the interceptors that a server puts around the method. */
    private record Published(
            String service,
            String name,
            Class<?> type,
            Method method,
            MethodHandle handle,
            RunOn.Place place,
            boolean isLongPoll) {}

    private RegistryServer() {}

    /**
     * Creates a registry of these services. If no service is given, the registry has all services in the index that
     * RPCX's annotation processor writes. The processor writes the index when the code on the class path is compiled.
     * The index names the classes that have the annotation {@link RPCXServer} themselves, and not those that only
     * inherit it.
     *
     * @param services the services. Each is a class that is annotated with {@link RPCXServer}, or an object of such a
     *     class. A class is instantiated with its constructor without parameters.
     * @throws IllegalArgumentException if a class has no annotation, publishes nothing, or cannot be instantiated; if a
     *     class publishes a static method, or a method whose {@code timeoutMillis} or {@code hedgeMillis} is below 0;
     *     if a name is published twice; or if no service is given and no index names a class
     */
    public static RegistryServer registry(Object... services) {
        Given.noneNull(services, "services", "objects or classes with @RPCXServer");
        RegistryServer registry = new RegistryServer();
        for (Object service : services.length == 0 ? ServiceIndex.services().toArray() : services) {
            registry.add(service instanceof Class<?> type ? made(marked(type)) : service);
        }
        return registry;
    }

    /**
     * Creates a registry of all annotated classes of a package. These are the classes on the class path that have the
     * annotation {@link RPCXServer} themselves, and are in this package or in a package below it. A class that only
     * inherits the annotation is left out.
     *
     * @param packageName name of the package; the default package cannot be scanned, since all classes are below it
     * @throws IllegalArgumentException if there is no such class, if a class cannot be loaded, or for one of the
     *     reasons that {@link #registry} gives
     */
    public static RegistryServer scan(String packageName) {
        return registry(PackageScan.services(Given.notNull(packageName, "packageName", "that of a package"))
                .toArray());
    }

    private static Class<?> marked(Class<?> type) {
        if (!type.isAnnotationPresent(RPCXServer.class)) {
            throw new IllegalArgumentException(type.getName() + " (expected: a class with @RPCXServer)");
        }
        return type;
    }

    private static Object made(Class<?> type) {
        String kind =
                type.isInterface() ? "an interface" : Modifier.isAbstract(type.getModifiers()) ? "abstract" : null;
        if (kind != null) {
            throw new IllegalArgumentException(type.getName() + ": cannot be made, since it is " + kind
                    + " (expected: a class that is neither, or an object)");
        }
        try {
            Constructor<?> constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            return constructor.newInstance();
        } catch (InvocationTargetException e) {
            Throwable thrown = e.getCause() == null ? e : e.getCause();
            throw new IllegalArgumentException(
                    type.getName() + ": its constructor has failed: " + ThrowableText.words(thrown), thrown);
        } catch (NoSuchMethodException e) {
            throw new IllegalArgumentException(
                    type.getName() + ": cannot be made (expected: a constructor without parameters, or an object)", e);
        } catch (ReflectiveOperationException | InaccessibleObjectException e) {
            throw new IllegalArgumentException(
                    type.getName() + ": cannot be made (expected: its package open to dev.rpcx, or an object)", e);
        }
    }

    private void add(Object service) {
        Class<?> type = service.getClass();
        String name = Names.checked(marked(type).getAnnotation(RPCXServer.class).value());
        int before = methods.size();
        for (PublishedMethod published : PublishedMethod.of(type)) {
            add(service, name, published);
        }
        if (methods.size() == before) {
            throw new IllegalArgumentException(type.getName() + " publishes nothing (expected: a method with @Method)");
        }
    }

    private void add(Object service, String serviceName, PublishedMethod published) {
        Method method = published.method();
        String name = published.name();
        ClientProxy.checkTimes(method);
        RunOn onMethod = method.getAnnotation(RunOn.class);
        RunOn onClass = service.getClass().getAnnotation(RunOn.class);
        RunOn.Place place =
                onMethod != null ? onMethod.value() : onClass != null ? onClass.value() : RunOn.Place.VIRTUAL_THREAD;
        boolean isLongPoll =
                method.isAnnotationPresent(LongPoll.class) || service.getClass().isAnnotationPresent(LongPoll.class);
        Published entry = new Published(
                serviceName, name, service.getClass(), method, handle(service, method), place, isLongPoll);
        if (methods.putIfAbsent(MethodDictionary.key(serviceName, name), entry) != null) {
            throw new IllegalArgumentException(
                    serviceName + "/" + name + " is published twice (expected: names that differ)");
        }
        if (methods.size() > Wire.MAX_DICTIONARY) {
            throw new IllegalArgumentException("more than " + Wire.MAX_DICTIONARY + " published methods");
        }
    }

    private static MethodHandle handle(Object service, Method method) {
        int slots = 0;
        for (Class<?> parameter : method.getParameterTypes()) {
            slots += parameter == long.class || parameter == double.class ? 2 : 1;
        }
        if (slots > MAX_ARGUMENT_SLOTS) {
            throw new IllegalArgumentException(method.getDeclaringClass().getName() + "." + method.getName() + ": "
                    + method.getParameterCount() + " parameters (expected: " + MAX_ARGUMENT_SLOTS
                    + " at most, where a long or a double counts as two; or a record)");
        }
        try {
            method.setAccessible(true);
            return MethodHandles.lookup()
                    .unreflect(method)
                    .bindTo(service)
                    .asSpreader(Object[].class, method.getParameterCount())
                    .asType(MethodType.methodType(Object.class, Object[].class));
        } catch (IllegalAccessException | InaccessibleObjectException e) {
            throw new IllegalArgumentException(method + ": not accessible (expected: its package open to dev.rpcx)", e);
        }
    }

    /**
     * Returns a registry of these services, and of one more that describes them. Later changes of this registry do not
     * change the returned one.
     *
     * @throws dev.rpcx.schema.SchemaException if protobuf-java is not on the class path, or if two names of these
     *     services are the same in a {@code .proto}
     */
    RegistryServer reflecting() {
        List<DescribedService> described = new ArrayList<>();
        rpcs().forEach((name, rpcs) -> described.add(DescribedService.of(name, rpcs)));
        return with(List.of(new Reflection(described)));
    }

    /** Returns a registry of these services and of further ones. Later changes of this registry do not change it. */
    RegistryServer with(List<Object> further) {
        RegistryServer all = new RegistryServer();
        all.methods.putAll(methods);
        further.forEach(all::add);
        return all;
    }

    /**
     * Describes these services as the reflection of gRPC does.
     *
     * @param protoPackage package of the {@code .proto}; empty for none
     * @throws dev.rpcx.schema.SchemaException in the same cases as {@link #reflecting}
     */
    DescribedFiles files(String protoPackage) {
        return DescribedFiles.of(protoPackage, rpcs());
    }

    /** Returns the published names of the services, in the order of registration. */
    Set<String> services() {
        Set<String> services = new LinkedHashSet<>();
        methods.values().forEach(entry -> services.add(entry.service));
        return services;
    }

    /** Returns the methods of each service as a {@code .proto} has them. */
    private Map<String, List<ProtoFile.Rpc>> rpcs() {
        Map<String, List<ProtoFile.Rpc>> services = new LinkedHashMap<>();
        for (Published entry : methods.values()) {
            services.computeIfAbsent(entry.service, name -> new ArrayList<>())
                    .add(new PublishedMethod(entry.name, entry.method)
                            .rpc(Codecs.standard(entry.type).schema()));
        }
        return services;
    }

    /**
     * Creates the published methods of one server, numbered from 1 in the order of registration.
     *
     * @param running counter of the running handlers of all these methods; handlers on event loops are not counted
     * @param groups groups into which the server divides its connections, by the addresses of the clients
     */
    List<ServerMethod> methods(
            List<Interceptor> interceptors,
            int maxRunning,
            AtomicInteger running,
            AddressGroups groups,
            long nowNanos) {
        List<ServerMethod> numbered = new ArrayList<>();
        for (Published entry : methods.values()) {
            Codecs codecs = Codecs.standard(entry.type);
            Type items = Streams.itemsTaken(entry.method);
            numbered.add(new ServerMethod(
                    numbered.size() + 1,
                    entry.service,
                    entry.name,
                    MethodShape.of(entry.method, items, codecs),
                    MethodSchema.of(entry.method, items, codecs.schema()),
                    entry.place,
                    items == null ? codecs.parameters(entry.method) : Streams.NO_PARAMETERS,
                    items == null ? ClassicParameter.of(entry.method, codecs) : List.of(),
                    codecs.result(entry.method),
                    Streams.returnsStream(entry.method),
                    items == null ? null : codecs.value(items, entry.method),
                    DeclaredErrors.of(
                            entry.type.getName() + "." + entry.method.getName(),
                            List.of(entry.method.getExceptionTypes()),
                            codecs),
                    entry.handle,
                    interceptors.isEmpty()
                            ? null
                            : Chain.of(
                                    interceptors,
                                    ServerMethod.entering(
                                            entry.handle,
                                            List.of(entry.method.getParameterTypes()),
                                            Streams.returnsStream(entry.method),
                                            codecs.result(entry.method))),
                    entry.place == RunOn.Place.EVENT_LOOP
                            ? null
                            : new AdmissionLimit(
                                    maxRunning,
                                    running,
                                    nowNanos,
                                    // the caller decides how long a call that takes a stream lasts, so its duration
                                    // says nothing about the load
                                    !entry.isLongPoll && items == null,
                                    groups::groupsPerAddress)));
        }
        return numbered;
    }

    /** Returns the classes of the services. */
    Set<Class<?>> types() {
        Set<Class<?>> types = new LinkedHashSet<>();
        methods.values().forEach(entry -> types.add(entry.type));
        return types;
    }

    /** Returns the names of the published methods as {@code service/method}, in the order of registration. */
    public List<String> published() {
        return methods.values().stream().map(m -> m.service + "/" + m.name).toList();
    }
}
