package dev.rpcx.tool;

import dev.rpcx.internal.schema.Compatibility;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.SchemaException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Services of a project, as its classes and interfaces declare them.
 *
 * @param all each class and each interface of a service by itself
 * @param calls requests and replies of all services, each under its name in a lock file, such as
 *     {@code greeter/hello.request}
 */
record Services(List<PublishedService> all, Map<String, LockFile.Sent> calls) {
    Services {
        all = List.copyOf(all);
        // in their order, so that the same classes bring the same messages
        calls = Collections.unmodifiableMap(new LinkedHashMap<>(calls));
    }

    /**
     * Finds the services, and joins the classes and interfaces that belong to one service.
     *
     * @param named names of classes and interfaces, and folders of compiled classes: see {@link ServiceClasses#load}
     * @throws SchemaException as in {@link #declared}, or if two classes or interfaces of one service cannot read each
     *     other's calls
     */
    static Services of(List<String> named, ClassLoader loader, Schema schema, Notes notes) {
        List<PublishedService> all = declared(named, loader, schema);
        return new Services(all, calls(all, schema, notes));
    }

    /**
     * Returns each class and each interface of a service by itself.
     *
     * @param named names of classes and interfaces, and folders of compiled classes: see {@link ServiceClasses#load}
     * @throws SchemaException as in {@link ServiceClasses#load}, if a class is no service, or if two types are the same
     *     service only by their simple names
     */
    static List<PublishedService> declared(List<String> named, ClassLoader loader, Schema schema) {
        List<PublishedService> services = new ArrayList<>();
        for (Class<?> type : ServiceClasses.load(named, loader)) {
            services.add(PublishedService.of(type, schema));
        }
        refuseNamesakes(services);
        return services;
    }

    /**
     * Refuses two classes or interfaces that count as the same service only because their simple names are equal. Two
     * unrelated types can have the same simple name by chance.
     */
    private static void refuseNamesakes(List<PublishedService> services) {
        Map<String, PublishedService> named = new HashMap<>();
        for (PublishedService service : services) {
            PublishedService other = service.isNamedByItsClass() ? named.put(service.name(), service) : null;
            if (other != null && other.type() != service.type()) {
                throw new SchemaException(other.type().getName() + " and "
                        + service.type().getName() + " are both the service " + service.name()
                        + " by their simple names (expected: @RPCXClient or @RPCXServer, which give it a name)");
            }
        }
    }

    /**
     * Returns the requests and replies of all services. The key is the name in a lock file, for example
     * {@code greeter/hello.request}. If the class of a service, with {@code @RPCXServer}, is among {@code services},
     * only the requests and replies of this class are returned for the service. If the class is missing, those of the
     * other types of the service, such as a client's interface, are returned.
     *
     * @throws SchemaException if two classes or interfaces of one service cannot read each other's calls
     */
    private static Map<String, LockFile.Sent> calls(List<PublishedService> services, Schema schema, Notes notes) {
        Map<String, LockFile.Sent> calls = new LinkedHashMap<>();
        Map<String, PublishedService> owners = new HashMap<>();
        List<PublishedService> ordered = new ArrayList<>(services);
        ordered.sort(Comparator.comparing(service -> !service.isServed()));
        for (PublishedService service : ordered) {
            boolean isOfOthers = !service.isServed()
                    && services.stream()
                            .anyMatch(each -> each.isServed() && each.name().equals(service.name()));
            service.calls().forEach((name, sent) -> {
                if (isOfOthers && !calls.containsKey(name)) {
                    if (name.endsWith(".request")) {
                        notes.add(service.type().getName() + " calls "
                                + name.substring(0, name.lastIndexOf('.')) + ", which no class of the service publishes"
                                + " (expected: @Method there)");
                    }
                    return;
                }
                LockFile.Sent known = calls.putIfAbsent(name, sent);
                PublishedService owner = owners.putIfAbsent(name, service);
                if (known != null && owner != null) {
                    compareTypes(schema, name, owner, known, service, sent, notes);
                }
            });
        }
        return calls;
    }

    /**
     * Compares what two classes or interfaces of one service send in a request or reply, and prints a note about what
     * one of them sends and the other one cannot read. Both are of the same version of the service, so the lock file of
     * an earlier version is not used.
     *
     * @param name name of the request or reply in a lock file
     * @param known what {@code owner} sends
     * @param sent what {@code other} sends
     * @throws SchemaException if neither of the two can read what the other one sends
     */
    private static void compareTypes(
            Schema schema,
            String name,
            PublishedService owner,
            LockFile.Sent known,
            PublishedService other,
            LockFile.Sent sent,
            Notes notes) {
        LockFile one = LockFile.none().extended(schema, Map.of(name, known));
        LockFile two = one.extended(schema, Map.of(name, sent));
        boolean isOfClient = owner.isServed() && !other.isServed();
        Compatibility.Direction read =
                name.endsWith(".reply") ? Compatibility.Direction.BACKWARD : Compatibility.Direction.FORWARD;
        String types =
                owner.type().getName() + " and " + other.type().getName() + " are both the service " + owner.name();
        for (Compatibility.Break each : Compatibility.between(one, two)) {
            String change = "from the one to the other " + each.where() + " " + each.what();
            if (each.direction() == Compatibility.Direction.BOTH) {
                throw new SchemaException(types + ", and do not read each other (expected: the same parameters in one"
                        + " order, and the same result): " + change);
            }
            // A client sends requests and reads replies, so a client's type has to fit the service's class only in one
            // direction. Two clients' types are compared only if the service's class is not given. Each of them can
            // differ from the class, so changes in both directions are printed.
            if (!isOfClient || each.direction() == read) {
                notes.add(types + ": " + change);
            }
        }
        for (Compatibility.Renaming each : Compatibility.perhapsRenamed(one, two)) {
            if (!each.isOfOneType()) {
                notes.add(types + ": from the one to the other " + Answers.words(each));
            }
        }
    }
}
