package dev.rpcx.internal.discovery;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import java.util.List;

/** Instances of a service that are given as a list and never change. */
public record EndpointsFixed(List<Endpoint> all) implements Endpoints {
    public EndpointsFixed {
        all = List.copyOf(all);
        if (all.isEmpty()) {
            throw new IllegalArgumentException("no instance (expected: at least one)");
        }
    }

    @Override
    public Watch watch(Listener listener) {
        listener.found(all);
        return () -> {};
    }
}
