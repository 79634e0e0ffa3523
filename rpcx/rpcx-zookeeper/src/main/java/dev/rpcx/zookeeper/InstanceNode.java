package dev.rpcx.zookeeper;

import dev.rpcx.Endpoint;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.zookeeper.common.PathUtils;
import org.jspecify.annotations.Nullable;

/** Writes and reads the name of an instance's node: {@code host:port#weight@registration}. */
final class InstanceNode {
    private InstanceNode() {}

    /**
     * Returns the path of a service, after a check. Its children are the nodes of the instances.
     *
     * @throws IllegalArgumentException if the path is the root, or not a valid absolute path
     */
    static String checkedParent(String path) {
        String why = "the root";
        try {
            PathUtils.validatePath(path);
            if (path.length() > 1) {
                return path;
            }
        } catch (IllegalArgumentException e) {
            why = String.valueOf(e.getMessage());
        }
        throw new IllegalArgumentException(
                "path: " + path + ": " + why + " (expected: absolute, as /services/greeter, without a / at its end)");
    }

    /**
     * Returns the name of an instance's node.
     *
     * @param registration unique id of the registration, so that no two processes ever share a node
     */
    static String name(Endpoint endpoint, String registration) {
        String address = endpoint.host() + ":" + endpoint.port();
        return (endpoint.weight() == 1 ? address : address + "#" + endpoint.weight()) + "@" + registration;
    }

    /** Returns the instance that a node's name describes; null if the name is not that of an instance's node. */
    static @Nullable Endpoint read(String name) {
        int end = name.lastIndexOf('@');
        String instance = end < 0 ? name : name.substring(0, end);
        int mark = instance.indexOf('#');
        String address = mark < 0 ? instance : instance.substring(0, mark);
        int colon = address.lastIndexOf(':');
        try {
            return new Endpoint(
                    address.substring(0, Math.max(0, colon)),
                    Integer.parseInt(address.substring(colon + 1)),
                    mark < 0 ? 1 : Integer.parseInt(instance.substring(mark + 1)));
        } catch (IllegalArgumentException other) {
            return null;
        }
    }

    /**
     * Returns the instances of these nodes. An address may have several nodes while one process takes over from
     * another; it is one instance, with the largest of their weights.
     */
    static List<Endpoint> all(Collection<String> names) {
        Map<String, Endpoint> all = new LinkedHashMap<>();
        for (String name : names) {
            Endpoint endpoint = read(name);
            if (endpoint != null) {
                all.merge(
                        endpoint.host() + ":" + endpoint.port(),
                        endpoint,
                        (one, other) -> one.weight() >= other.weight() ? one : other);
            }
        }
        return List.copyOf(all.values());
    }
}
