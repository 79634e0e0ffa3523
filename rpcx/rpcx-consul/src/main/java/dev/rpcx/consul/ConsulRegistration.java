package dev.rpcx.consul;

import dev.rpcx.Endpoint;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * An instance's entry at the agent of its host, with a check that passes as long as this process says so, every 3 s: 10 s after it says no
 * more the instance is no longer handed out, after a minute it is forgotten. Registered again when the agent has lost it. Ends with
 * {@link #close}; close it before the server stops.
 */
public final class ConsulRegistration implements AutoCloseable {
    private static final JsonMapper JSON = JsonMapper.shared();
    private static final String TTL = "10s";
    private static final long SIGN_MILLIS = 3_000;
    private static final long ANSWER_MILLIS = 5_000;

    /** The least that Consul takes. */
    private static final String FORGOTTEN_AFTER = "1m";

    private final ConsulAgent agent;
    private final String id;
    private final byte[] entry;
    private final CompletableFuture<Void> registered = new CompletableFuture<>();
    private final Thread thread;
    private final URI base;
    private final @Nullable String token;

    private ConsulRegistration(URI base, @Nullable String token, String service, Endpoint instance) {
        this.base = base;
        this.token = token;
        this.agent = new ConsulAgent(base, token);
        this.id = service + "-" + instance.host() + "-" + instance.port();
        ObjectNode body = JSON.createObjectNode();
        body.put("ID", id).put("Name", service).put("Address", instance.host()).put("Port", instance.port());
        body.putObject("Weights").put("Passing", instance.weight()).put("Warning", 1);
        body.putObject("Check")
                .put("CheckID", checkId())
                .put("TTL", TTL)
                .put("Status", "passing")
                .put("DeregisterCriticalServiceAfter", FORGOTTEN_AFTER);
        this.entry = JSON.writeValueAsString(body).getBytes(StandardCharsets.UTF_8);
        this.thread = new Thread(
                () -> {
                    try {
                        run();
                    } finally {
                        agent.end();
                    }
                },
                "rpcx-consul-registration");
        thread.setDaemon(true);
    }

    /** At the agent of this host. Returns at once. */
    public static ConsulRegistration of(String service, Endpoint instance) {
        return of(ConsulEndpoints.LOCAL_AGENT, null, service, instance);
    }

    /**
     * At this agent. Returns at once.
     *
     * @param token for Consul's ACL, which has to allow {@code service:write}; null without one
     */
    public static ConsulRegistration of(URI agent, @Nullable String token, String service, Endpoint instance) {
        ConsulRegistration registration = new ConsulRegistration(agent, token, service, instance);
        registration.thread.start();
        return registration;
    }

    /** Done when Consul knows the instance for the first time. */
    public CompletableFuture<Void> registered() {
        return registered.copy();
    }

    private String checkId() {
        return "service:" + id;
    }

    private void run() {
        boolean known = false;
        int failures = 0;
        while (!agent.isClosed()) {
            try {
                if (!known) {
                    expect(agent.put("/v1/agent/service/register", entry, ANSWER_MILLIS));
                    known = true;
                    registered.complete(null);
                }
                agent.pauseMillis(SIGN_MILLIS);
                if (!agent.isClosed()) {
                    HttpResponse<byte[]> sign = agent.put(
                            "/v1/agent/check/pass/" + ConsulAgent.encoded(checkId()), new byte[0], ANSWER_MILLIS);
                    // an agent that was started anew without its data does not know the check
                    known = sign.statusCode() == HttpURLConnection.HTTP_OK;
                }
                failures = 0;
            } catch (Throwable e) {
                // an Error too: a server that stops giving its sign drops out of Consul for good
                failures++;
                agent.pause(failures);
            }
        }
    }

    private static void expect(HttpResponse<byte[]> answer) throws IOException {
        if (answer.statusCode() != HttpURLConnection.HTTP_OK) {
            throw new IOException(
                    "Consul: " + answer.statusCode() + " " + new String(answer.body(), StandardCharsets.UTF_8).strip());
        }
    }

    /** Takes the entry back; waits for Consul's word no longer than 5 s, and the entry's check does the rest. */
    @Override
    public void close() {
        agent.close();
        registered.cancel(false);
        ConsulAgent last = new ConsulAgent(base, token);
        try {
            // what it may just be saying must not come after what is said now
            thread.join(ANSWER_MILLIS);
            expect(last.put("/v1/agent/service/deregister/" + ConsulAgent.encoded(id), new byte[0], ANSWER_MILLIS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            System.getLogger(ConsulRegistration.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "{0} stays registered until its check is late: {1}",
                            id,
                            e.getMessage());
        } finally {
            last.end();
        }
    }
}
