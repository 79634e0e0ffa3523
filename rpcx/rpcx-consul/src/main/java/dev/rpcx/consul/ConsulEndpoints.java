package dev.rpcx.consul;

import dev.rpcx.Endpoints;
import java.net.URI;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The instances of a service whose checks all pass, with Consul's weights: told at once when one comes or goes. While Consul cannot be reached
 * what was found before holds, since the client keeps its list. Equal for equal agents and services, so that proxies share their connections.
 *
 * <pre>{@code
 * client.create(Greeter.class, ConsulEndpoints.of("greeter"));
 * }</pre>
 */
public final class ConsulEndpoints implements Endpoints {
    /** Where an agent of this host listens, as Consul sets it up. */
    public static final URI LOCAL_AGENT = URI.create("http://127.0.0.1:8500");

    private final URI agent;
    private final String service;
    private final @Nullable AclToken token;

    private ConsulEndpoints(URI agent, String service, @Nullable AclToken token) {
        this.agent = agent;
        this.service = service;
        this.token = token;
    }

    /** As the agent of this host knows it. */
    public static ConsulEndpoints of(String service) {
        return of(LOCAL_AGENT, service);
    }

    /** As another agent or server knows it. */
    public static ConsulEndpoints of(URI agent, String service) {
        if (service.isEmpty()) {
            throw new IllegalArgumentException("service: empty (expected: its name in Consul)");
        }
        return new ConsulEndpoints(agent, service, null);
    }

    /**
     * The same asked with this ACL token, which has to allow {@code service:read} and {@code node:read}. White space
     * around it does not count, such as the line feed at the end of a file.
     *
     * @throws IllegalArgumentException a token with a character that is no visible one of ASCII; the text is
     *     without the token
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
