package dev.rpcx.kubernetes;

import dev.rpcx.Endpoint;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** What one EndpointSlice says. Source: Kubernetes API reference, EndpointSlice discovery.k8s.io/v1. */
record Slice(String addressType, List<Endpoint> ready) {
    private static final List<String> TYPES = List.of("IPv4", "IPv6", "FQDN");

    /** @param portName null for the first one */
    static Slice of(JsonNode object, @Nullable String portName) {
        List<Endpoint> ready = new ArrayList<>();
        int port = port(object.path("ports"), portName);
        if (port > 0) {
            for (JsonNode endpoint : object.path("endpoints")) {
                // one that says nothing of being ready is to be taken for ready
                boolean isReady = endpoint.path("conditions").path("ready").asBoolean(true);
                // more addresses than one are interchangeable, and the first is the one to take
                String address = endpoint.path("addresses").path(0).asString("");
                if (isReady && Endpoint.isHost(address)) {
                    ready.add(new Endpoint(address, port));
                }
            }
        }
        String type = object.path("addressType").asString("IPv4");
        // one of ours, as the text may be long; slices of another type are passed over
        return new Slice(TYPES.contains(type) ? TYPES.get(TYPES.indexOf(type)) : "", ready);
    }

    private static int port(JsonNode ports, @Nullable String name) {
        for (JsonNode port : ports) {
            boolean isNamed = name == null || name.equals(port.path("name").asString(""));
            if (isNamed && "TCP".equals(port.path("protocol").asString("TCP"))) {
                int number = port.path("port").asInt(0);
                return number >= 1 && number <= 65_535 ? number : 0;
            }
        }
        return 0;
    }

    /** All of them together. A pod of two address families stands in a slice of each: only one family is taken. */
    static List<Endpoint> all(Collection<Slice> slices) {
        for (String type : TYPES) {
            Set<Endpoint> found = new LinkedHashSet<>();
            slices.stream().filter(slice -> slice.addressType.equals(type)).forEach(slice -> found.addAll(slice.ready));
            if (!found.isEmpty()) {
                return List.copyOf(found);
            }
        }
        return List.of();
    }
}
