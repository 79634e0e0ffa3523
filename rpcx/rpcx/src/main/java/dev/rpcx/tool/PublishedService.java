package dev.rpcx.tool;

import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.internal.call.PublishedMethod;
import dev.rpcx.internal.schema.Framing;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.ProtoFile.Rpc;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.SchemaException;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * A service with its methods, as one class or interface declares it.
 *
 * @param type the class or interface that declares the service
 * @param name name of the service
 * @param isServed whether {@code type} has the annotation {@link RPCXServer}, and so is a class of the service itself.
 *     Usually a service has only one such class, which then publishes all methods of the service.
 * @param rpcs published methods, sorted by name. The blocking form of a method and the form that returns a future are
 *     one element.
 * @param unnamed methods with several parameters whose names are not in the class file
 */
record PublishedService(Class<?> type, String name, boolean isServed, List<Rpc> rpcs, List<String> unnamed) {
    static PublishedService of(Class<?> type, Schema schema) {
        List<PublishedMethod> published = PublishedMethod.of(type);
        String name = name(type);
        Map<String, Rpc> rpcs = new TreeMap<>();
        for (PublishedMethod each : published) {
            if (each.name().contains("/")) {
                throw new SchemaException(name + ": its method \"" + each.name()
                        + "\" has a slash, and would be part of the service's name in a lock"
                        + " (expected: a name without)");
            }
            rpcs.merge(each.name(), each.rpc(schema), (one, next) -> joined(type, one, next));
        }
        if (rpcs.isEmpty()) {
            throw new SchemaException(
                    type.getName() + ": no published method (expected: an interface, or methods annotated @Method)");
        }
        List<String> unnamed = published.stream()
                .map(PublishedMethod::method)
                .filter(method -> method.getParameterCount() > 1 && !method.getParameters()[0].isNamePresent())
                .map(method -> type.getName() + "." + method.getName())
                .distinct()
                .toList();
        return new PublishedService(
                type, name, type.isAnnotationPresent(RPCXServer.class), List.copyOf(rpcs.values()), unnamed);
    }

    /** Joins two forms of a remote method into one, which has the exceptions of both. */
    private static Rpc joined(Class<?> type, Rpc one, Rpc other) {
        Rpc chosen = withResult(type, one, other);
        Set<MessageType> errors = new LinkedHashSet<>(one.errors());
        errors.addAll(other.errors());
        return new Rpc(
                chosen.name(),
                chosen.request(),
                chosen.reply(),
                chosen.streamsIn(),
                chosen.streamsOut(),
                List.copyOf(errors));
    }

    /**
     * Chooses between two forms of a remote method, for example one that blocks and one that returns a future. Returns
     * the form that has a result. If both forms have a result, or neither has, returns {@code one}.
     *
     * @param type class or interface of the service, named in errors
     * @throws SchemaException if the two forms have different parameters, or if both have results and these differ
     */
    private static Rpc withResult(Class<?> type, Rpc one, Rpc other) {
        if (!Framing.isAlike(one.request(), other.request())) {
            throw new SchemaException(type.getName() + ": forms of " + one.name()
                    + " take different parameters (expected: the same types, and null allowed at the same places)");
        }
        if (isVoid(other)) {
            return one;
        }
        if (!isVoid(one) && !reply(one).isLike(reply(other))) {
            throw new SchemaException(type.getName() + ": forms of " + one.name()
                    + " bring different results (expected: one result, or none)");
        }
        return isVoid(one) ? other : one;
    }

    private static LockFile.Sent reply(Rpc rpc) {
        return new LockFile.Sent(rpc.reply(), rpc.streamsOut());
    }

    private static boolean isVoid(Rpc rpc) {
        return rpc.reply().kind() == MessageType.Kind.WRAPPER
                && rpc.reply().fields().isEmpty();
    }

    /**
     * Returns whether the service has the simple name of its class or interface. This is so if no annotation gives the
     * service a name.
     */
    boolean isNamedByItsClass() {
        return !type.isAnnotationPresent(RPCXServer.class) && !type.isAnnotationPresent(RPCXClient.class);
    }

    /**
     * Returns whether a request or reply belongs to this service.
     *
     * @param call name of the request or reply in a lock file, for example {@code greeter/hello.request}. The part
     *     before the last slash is the name of the service.
     */
    boolean owns(String call) {
        return call.substring(0, Math.max(0, call.lastIndexOf('/'))).equals(name);
    }

    private static String name(Class<?> type) {
        RPCXServer server = type.getAnnotation(RPCXServer.class);
        if (server != null) {
            return server.value();
        }
        RPCXClient client = type.getAnnotation(RPCXClient.class);
        return client != null ? client.remoteServerName() : type.getSimpleName();
    }

    /**
     * Returns the requests and replies of this service. The keys are the names in a lock file, for example
     * {@code greeter/hello.request}.
     */
    Map<String, LockFile.Sent> calls() {
        Map<String, LockFile.Sent> calls = new LinkedHashMap<>();
        for (Rpc rpc : rpcs) {
            calls.put(name + "/" + rpc.name() + ".request", new LockFile.Sent(rpc.request(), rpc.streamsIn()));
            calls.put(name + "/" + rpc.name() + ".reply", reply(rpc));
        }
        return calls;
    }
}
