package dev.rpcx.tool;

import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.schema.Lock;
import dev.rpcx.schema.MessageType;
import dev.rpcx.schema.ProtoFile.Rpc;
import dev.rpcx.schema.Schema;
import dev.rpcx.schema.SchemaException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Flow;

/**
 * A service as it is published: of a class its annotated methods, of an interface without annotations all that are abstract.
 *
 * @param isServed whether this is the service itself, so that what it has not is not published
 * @param rpcs by published name
 * @param unnamed methods of several parameters whose names the class does not have
 */
record PublishedService(String name, boolean isServed, List<Rpc> rpcs, List<String> unnamed) {
    static PublishedService of(Class<?> type, Schema schema) {
        List<Method> methods = methods(type);
        boolean annotated = methods.stream().anyMatch(method -> method.isAnnotationPresent(dev.rpcx.Method.class));
        List<Method> published = methods.stream()
                .filter(method -> annotated
                        ? method.isAnnotationPresent(dev.rpcx.Method.class)
                        : type.isInterface() && Modifier.isAbstract(method.getModifiers()))
                .toList();
        List<Rpc> rpcs = published.stream()
                .map(method -> rpc(method, schema))
                .sorted(Comparator.comparing(Rpc::name))
                .toList();
        if (rpcs.isEmpty()) {
            throw new SchemaException(
                    type.getName() + ": no published method (expected: an interface, or methods annotated @Method)");
        }
        List<String> unnamed = published.stream()
                .filter(method -> method.getParameterCount() > 1 && !method.getParameters()[0].isNamePresent())
                .map(method -> type.getName() + "." + method.getName())
                .toList();
        return new PublishedService(name(type), type.isAnnotationPresent(RPCXServer.class), rpcs, unnamed);
    }

    /** Of a class also those that are not public: what is published is marked, whatever its access. */
    private static List<Method> methods(Class<?> type) {
        if (type.isInterface()) {
            return List.of(type.getMethods());
        }
        List<Method> methods = new ArrayList<>();
        Set<List<Object>> overriding = new HashSet<>();
        for (Class<?> c = type; c != null && c != Object.class; c = c.getSuperclass()) {
            List<List<Object>> own = new ArrayList<>();
            for (Method method : c.getDeclaredMethods()) {
                List<Object> signature = List.of(method.getName(), List.of(method.getParameterTypes()));
                if (method.isAnnotationPresent(dev.rpcx.Method.class)) {
                    own.add(signature);
                }
                // a subclass's method stands for the one that it overrides
                if (!method.isBridge() && !overriding.contains(signature)) {
                    methods.add(method);
                }
            }
            overriding.addAll(own);
        }
        return methods;
    }

    private static String name(Class<?> type) {
        RPCXServer server = type.getAnnotation(RPCXServer.class);
        if (server != null) {
            return server.value();
        }
        RPCXClient client = type.getAnnotation(RPCXClient.class);
        return client != null ? client.remoteServerName() : type.getSimpleName();
    }

    private static Rpc rpc(Method method, Schema schema) {
        dev.rpcx.Method annotation = method.getAnnotation(dev.rpcx.Method.class);
        String name = annotation == null || annotation.value().isEmpty() ? method.getName() : annotation.value();
        MessageType request = schema.parameters(method);
        boolean streamsIn = false;
        for (Parameter parameter : method.getParameters()) {
            if (parameter.getType() == Flow.Publisher.class
                    && parameter.getParameterizedType() instanceof ParameterizedType publisher) {
                // what opens the stream has no place in a .proto: a call of many requests begins with the first of them
                Type item = publisher.getActualTypeArguments()[0];
                request = schema.value(item, method);
                streamsIn = true;
            }
        }
        boolean streamsOut = method.getReturnType() == Flow.Publisher.class;
        return new Rpc(name, request, schema.result(method), streamsIn, streamsOut);
    }

    /** Requests and replies, as a lock names them. */
    Map<String, Lock.Sent> calls() {
        Map<String, Lock.Sent> calls = new LinkedHashMap<>();
        for (Rpc rpc : rpcs) {
            calls.put(name + "/" + rpc.name() + ".request", new Lock.Sent(rpc.request(), rpc.streamsIn()));
            calls.put(name + "/" + rpc.name() + ".reply", new Lock.Sent(rpc.reply(), rpc.streamsOut()));
        }
        return calls;
    }
}
