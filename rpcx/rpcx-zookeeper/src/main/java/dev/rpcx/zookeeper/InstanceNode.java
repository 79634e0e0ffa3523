package dev.rpcx.zookeeper;

import dev.rpcx.Endpoint;
import org.jspecify.annotations.Nullable;

/** The name of an instance's node. */
final class InstanceNode {
    private InstanceNode() {}

    static String name(Endpoint endpoint) {
        String address = endpoint.host() + ":" + endpoint.port();
        return endpoint.weight() == 1 ? address : address + "#" + endpoint.weight();
    }

    /** @return null for a node that is none of ours */
    static @Nullable Endpoint read(String name) {
        int mark = name.indexOf('#');
        String address = mark < 0 ? name : name.substring(0, mark);
        int colon = address.lastIndexOf(':');
        try {
            return new Endpoint(
                    address.substring(0, Math.max(0, colon)),
                    Integer.parseInt(address.substring(colon + 1)),
                    mark < 0 ? 1 : Integer.parseInt(name.substring(mark + 1)));
        } catch (IllegalArgumentException other) {
            return null;
        }
    }
}
