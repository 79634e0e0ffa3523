package dev.rpcx.kubernetes;

import dev.rpcx.Endpoint;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** Content of one EndpointSlice. Source: Kubernetes API reference, EndpointSlice discovery.k8s.io/v1. */
record Slice(String addressType, List<Endpoint> ready) {
    private static final List<String> TYPES = List.of("IPv4", "IPv6", "FQDN");

    /**
     * Reads an EndpointSlice.
     *
     * @param portName name of the TCP port to take; null for the first one
     */
    static Slice of(JsonNode object, @Nullable String portName) {
        List<Endpoint> ready = new ArrayList<>();
        int port = port(object.path("ports"), portName);
        if (port > 0) {
            for (JsonNode endpoint : object.path("endpoints")) {
                // An endpoint that does not say whether it is ready counts as ready.
                boolean isReady = endpoint.path("conditions").path("ready").asBoolean(true);
                // If there are several addresses, they are interchangeable, and the first one is to be taken.
                String address = endpoint.path("addresses").path(0).asString("");
                if (isReady && Endpoint.isHost(address)) {
                    ready.add(new Endpoint(address, port));
                }
            }
        }
        String type = object.path("addressType").asString("IPv4");
        // The type is kept as one of these constants, since its text may be long; slices of another type are skipped.
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

    /**
     * Returns the ready endpoints of all slices together. A pod with two address families is in a slice of each, so
     * only one family is taken: the first of IPv4, IPv6 and FQDN that has ready endpoints.
     */
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
