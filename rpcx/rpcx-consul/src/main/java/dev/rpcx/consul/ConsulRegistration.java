package dev.rpcx.consul;

import dev.rpcx.Endpoint;
import dev.rpcx.VisibleText;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
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

    /** Characters of what the agent says, in an error. */
    private static final int MOST_TEXT = 200;

    /** Between two lines in the log that say that the instance is not registered. */
    private static final long SILENT_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** The least that Consul takes. */
    private static final String FORGOTTEN_AFTER = "1m";

    private final ConsulAgent agent;
    private final String id;
    private final byte[] entry;
    private final CompletableFuture<Void> registered = new CompletableFuture<>();
    private final Thread thread;
    private final URI base;
    private final @Nullable AclToken token;
    private final AtomicBoolean isClosed = new AtomicBoolean();

    // of the registering thread alone
    private long loggedNanos;
    private boolean wasLogged;
    private long silent;

    private ConsulRegistration(URI base, @Nullable AclToken token, String service, Endpoint instance) {
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
                null,
                () -> {
                    try {
                        run();
                    } finally {
                        agent.end();
                    }
                },
                "rpcx-consul-registration",
                0,
                false);
        thread.setContextClassLoader(ConsulRegistration.class.getClassLoader());
        thread.setDaemon(true);
    }

    /** At the agent of this host. Returns at once. */
    public static ConsulRegistration of(String service, Endpoint instance) {
        return of(ConsulEndpoints.LOCAL_AGENT, null, service, instance);
    }

    /**
     * At this agent. Returns at once.
     *
     * @param token for Consul's ACL, which has to allow {@code service:write}; null without one. White space around
     *     it does not count.
     * @throws IllegalArgumentException a token with a character that is no visible one of ASCII; the text is
     *     without the token
     */
    public static ConsulRegistration of(URI agent, @Nullable String token, String service, Endpoint instance) {
        ConsulRegistration registration = new ConsulRegistration(agent, AclToken.of(token), service, instance);
        registration.thread.start();
        return registration;
    }

    /**
     * Done when Consul knows the instance for the first time; fails where Consul does not allow it, which is tried
     * again all the same, and logged once a minute; cancelled by {@link #close} before that. What hangs on it runs on a
     * thread of the JDK's common pool, or on the one that closes this; where it is done already, on the thread that
     * hangs it on.
     */
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
                    done(() -> registered.complete(null));
                    known = true;
                    failures = 0;
                }
                if (failures == 0) {
                    // behind a sign that had no answer the next one is late already
                    agent.pauseMillis(SIGN_MILLIS);
                }
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
                failed(e);
                agent.pause(failures);
            }
        }
    }

    /** What hangs on the registration is its user's code, which must not hold up the sign of life. */
    private void done(Runnable completion) {
        registered.defaultExecutor().execute(completion);
    }

    private void failed(Throwable why) {
        if (agent.isClosed()) {
            return;
        }
        try {
            log(line(why));
            if (why instanceof Refusal refusal && refusal.isOfRights()) {
                done(() -> registered.completeExceptionally(refusal));
            }
        } catch (Throwable e) {
            // an application's logging that fails, or a heap that is full, ends no registration
            silent++;
        }
    }

    /** Also what has not come of Consul may have its bytes in it, such as the JDK's words for a status that is none. */
    private static String line(Throwable why) {
        return VisibleText.line(String.valueOf(why.getMessage()), 2 * MOST_TEXT);
    }

    private void log(String why) {
        long now = System.nanoTime();
        if (wasLogged && now - loggedNanos < SILENT_NANOS) {
            silent++;
            return;
        }
        String before = silent == 0 ? "" : " (" + silent + " more since this was logged last)";
        wasLogged = true;
        loggedNanos = now;
        silent = 0;
        System.getLogger(ConsulRegistration.class.getName())
                .log(System.Logger.Level.WARNING, "{0} is not registered: {1}{2}", id, why, before);
    }

    /** Consul's answer is no. */
    private static final class Refusal extends IOException {
        private static final long serialVersionUID = 1L;

        private final int status;

        Refusal(HttpResponse<byte[]> answer) {
            super("Consul: " + answer.statusCode() + " "
                    + VisibleText.line(new String(answer.body(), StandardCharsets.UTF_8).strip(), MOST_TEXT));
            this.status = answer.statusCode();
        }

        boolean isOfRights() {
            return status == HttpURLConnection.HTTP_UNAUTHORIZED || status == HttpURLConnection.HTTP_FORBIDDEN;
        }
    }

    private static void expect(HttpResponse<byte[]> answer) throws Refusal {
        if (answer.statusCode() != HttpURLConnection.HTTP_OK) {
            throw new Refusal(answer);
        }
    }

    /**
     * Takes the entry back; waits for Consul's word no longer than 5 s in all, and the entry's check does the rest. A
     * second time does nothing.
     */
    @Override
    public void close() {
        if (!isClosed.compareAndSet(false, true)) {
            return;
        }
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ANSWER_MILLIS);
        agent.close();
        registered.cancel(false);
        ConsulAgent last = new ConsulAgent(base, token);
        try {
            // what it may just be saying must not come after what is said now
            thread.join(ANSWER_MILLIS);
            long left = Math.max(1, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime()));
            expect(last.put("/v1/agent/service/deregister/" + ConsulAgent.encoded(id), new byte[0], left));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException | RuntimeException e) {
            System.getLogger(ConsulRegistration.class.getName())
                    .log(System.Logger.Level.WARNING, "{0} stays registered until its check is late: {1}", id, line(e));
        } finally {
            last.end();
        }
    }
}
