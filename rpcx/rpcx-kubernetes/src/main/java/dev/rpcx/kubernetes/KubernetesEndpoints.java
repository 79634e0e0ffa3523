package dev.rpcx.kubernetes;

import dev.rpcx.Endpoints;
import java.net.URI;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The ready pods of a Kubernetes service, watched through its EndpointSlices. The pod that watches needs a service
 * account that may {@code list} and {@code watch} {@code endpointslices} of the group {@code discovery.k8s.io}. While
 * the API server cannot be reached, the instances that were found before stay in use. Two objects are equal if their
 * services, namespaces, ports and API servers are equal, so that proxies share their connections.
 *
 * <pre>{@code
 * client.create(Greeter.class, KubernetesEndpoints.of("greeter"));
 * }</pre>
 *
 * <p>Without that right, or where a delay of 2 s does not matter, a headless service and {@link Endpoints#dns} do the
 * same.
 */
public final class KubernetesEndpoints implements Endpoints {
    private final String service;
    private final @Nullable String namespace;
    private final @Nullable String port;
    private final @Nullable URI api;

    private KubernetesEndpoints(String service, @Nullable String namespace, @Nullable String port, @Nullable URI api) {
        this.service = service;
        this.namespace = namespace;
        this.port = port;
        this.api = api;
    }

    /**
     * Returns the ready pods of a service in the pod's own namespace, at the first TCP port of its slices. The pod's
     * environment says where the API server is.
     */
    public static KubernetesEndpoints of(String service) {
        return new KubernetesEndpoints(checked("service", service), null, null, null);
    }

    /** Returns the same service in another namespace. */
    public KubernetesEndpoints in(String other) {
        return new KubernetesEndpoints(service, checked("namespace", other), port, api);
    }

    /** Returns the same service at the port of this name. */
    public KubernetesEndpoints port(String name) {
        return new KubernetesEndpoints(service, namespace, checked("port", name), api);
    }

    /**
     * Returns the same service, asked of this API server without an account, for example of {@code kubectl proxy}. The
     * namespace has to be given.
     */
    public KubernetesEndpoints from(URI server) {
        return new KubernetesEndpoints(service, namespace, port, server);
    }

    private static String checked(String what, String name) {
        // Names in Kubernetes have the characters of RFC 1123 labels; up to 253 of them are allowed here.
        if (!name.matches("[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?")) {
            throw new IllegalArgumentException(
                    what + ": \"" + name + "\" (expected: small letters, digits and hyphens, as Kubernetes has them)");
        }
        return name;
    }

    /**
     * @throws IllegalStateException if this does not run in a cluster and {@link #from} names no API server, or if no
     *     namespace is given and the pod's own cannot be read
     */
    @Override
    public Watch watch(Listener listener) {
        ApiServer server = api == null ? ApiServer.ofPod(System.getenv()) : ApiServer.at(api);
        return watch(listener, server);
    }

    Watch watch(Listener listener, ApiServer server) {
        String of = namespace == null ? server.namespace() : namespace;
        SliceWatch watch = new SliceWatch(server, of, service, port, listener);
        watch.start();
        return watch;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof KubernetesEndpoints o
                && service.equals(o.service)
                && Objects.equals(namespace, o.namespace)
                && Objects.equals(port, o.port)
                && Objects.equals(api, o.api);
    }

    @Override
    public int hashCode() {
        return Objects.hash(service, namespace, port, api);
    }

    @Override
    public String toString() {
        return (namespace == null ? "" : namespace + "/") + service + (port == null ? "" : ":" + port);
    }
}
