package dev.rpcx.consul;

import dev.rpcx.Endpoints;
import java.net.URI;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The instances of a service in Consul whose checks all pass, with Consul's weights. A watch reports at once when an
 * instance comes or goes. While Consul cannot be reached, the instances that were found before stay in use, since the
 * client keeps its list. Two objects are equal if their agents, services and tokens are equal, so that proxies share
 * their connections.
 *
 * <pre>{@code
 * client.create(Greeter.class, ConsulEndpoints.of("greeter"));
 * }</pre>
 */
public final class ConsulEndpoints implements Endpoints {
    /** Address at which an agent of this host listens by Consul's default. */
    public static final URI LOCAL_AGENT = URI.create("http://127.0.0.1:8500");

    private final URI agent;
    private final String service;
    private final @Nullable AclToken token;

    private ConsulEndpoints(URI agent, String service, @Nullable AclToken token) {
        this.agent = agent;
        this.service = service;
        this.token = token;
    }

    /** Returns the instances as the agent of this host knows them. */
    public static ConsulEndpoints of(String service) {
        return of(LOCAL_AGENT, service);
    }

    /** Returns the instances as another agent or a Consul server knows them. */
    public static ConsulEndpoints of(URI agent, String service) {
        if (service.isEmpty()) {
            throw new IllegalArgumentException("service: empty (expected: its name in Consul)");
        }
        return new ConsulEndpoints(agent, service, null);
    }

    /**
     * Returns a copy that asks with this ACL token, which has to allow {@code service:read} and {@code node:read}.
     * White space around it is ignored, such as the line feed at the end of a file.
     *
     * @throws IllegalArgumentException if the token has a character that is not a visible ASCII character; the
     *     exception's text does not contain the token
     */
    public ConsulEndpoints token(String secret) {
        return new ConsulEndpoints(agent, service, new AclToken(secret));
    }

    @Override
    public Watch watch(Listener listener) {
        HealthWatch watch = new HealthWatch(new ConsulAgent(agent, token), service, listener);
        watch.start();
        return watch;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ConsulEndpoints o
                && agent.equals(o.agent)
                && service.equals(o.service)
                && Objects.equals(token, o.token);
    }

    @Override
    public int hashCode() {
        return Objects.hash(agent, service, token);
    }

    @Override
    public String toString() {
        return agent + "/" + service;
    }
}
