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
 * Registers an instance with a Consul agent, usually the one of its host, and keeps it registered until {@link #close}.
 * The entry has a check, and every 3 s this process reports that it passes. 10 s after the last report the check fails,
 * and Consul no longer hands out the instance; when it has failed for a minute, Consul deletes the entry. If the agent
 * has lost the entry, the instance is registered again. Close the registration before the server stops.
 */
public final class ConsulRegistration implements AutoCloseable {
    private static final JsonMapper JSON = JsonMapper.shared();
    private static final String TTL = "10s";
    private static final long REPORT_MILLIS = 3_000;
    private static final long MAX_ANSWER_MILLIS = 5_000;

    /** Max characters of the agent's text in an error. */
    private static final int MAX_TEXT = 200;

    /** Min time between two lines in the log that say that the instance is not registered. */
    private static final long MIN_LOG_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** Time for which the check has to fail before Consul deletes the entry: the min that Consul accepts. */
    private static final String DEREGISTERED_AFTER = "1m";

    private final ConsulAgent agent;
    private final String id;
    private final byte[] entry;
    private final CompletableFuture<Void> registered = new CompletableFuture<>();
    private final Thread thread;
    private final URI base;
    private final @Nullable AclToken token;

    /** Whether {@link #close} has been called. If several threads call it, only the first one goes on. */
    private final AtomicBoolean isClosed = new AtomicBoolean();

    // Only the registering thread accesses the following three fields.
    private long loggedNanos;
    private boolean wasLogged;
    private long unlogged;

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
                .put("DeregisterCriticalServiceAfter", DEREGISTERED_AFTER);
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

    /** Registers the instance with the agent of this host, in the background. Returns at once. */
    public static ConsulRegistration of(String service, Endpoint instance) {
        return of(ConsulEndpoints.LOCAL_AGENT, null, service, instance);
    }

    /**
     * Registers the instance with this agent, in the background. Returns at once.
     *
     * @param token token for Consul's ACL, which has to allow {@code service:write}; null if there is none. White space
     *     around it is ignored.
     * @throws IllegalArgumentException if the token has a character that is not a visible ASCII character; the
     *     exception's text does not contain the token
     */
    public static ConsulRegistration of(URI agent, @Nullable String token, String service, Endpoint instance) {
        ConsulRegistration registration = new ConsulRegistration(agent, AclToken.of(token), service, instance);
        registration.thread.start();
        return registration;
    }

    /**
     * Returns a future that completes when Consul knows the instance for the first time. It fails if Consul does not
     * allow the registration (status 401 or 403); the registration is tried again all the same, and failures are logged
     * once a minute at most. If the future is not done before {@link #close}, it fails with a
     * {@code CancellationException} as the cause. Actions that depend on it run on a thread of the JDK's common pool,
     * or on the thread that closes this registration. If the future is already done, they run on the thread that adds
     * them.
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
                    expect(agent.put("/v1/agent/service/register", entry, MAX_ANSWER_MILLIS));
                    completeAsync(() -> registered.complete(null));
                    known = true;
                    failures = 0;
                }
                if (failures == 0) {
                    // After a report without an answer the next one is late already, so this pause is left out.
                    agent.pauseMillis(REPORT_MILLIS);
                }
                if (!agent.isClosed()) {
                    HttpResponse<byte[]> report = agent.put(
                            "/v1/agent/check/pass/" + ConsulAgent.encoded(checkId()), new byte[0], MAX_ANSWER_MILLIS);
                    // An agent that was restarted without its data does not know the check.
                    known = report.statusCode() == HttpURLConnection.HTTP_OK;
                }
                failures = 0;
            } catch (Throwable e) {
                // This catches an Error too: an instance that stops reporting drops out of Consul for good.
                failures++;
                failed(e);
                agent.pause(failures);
            }
        }
    }

    /**
     * Completes the future on another thread. Actions that depend on the future are code of the application, which must
     * not delay the reports to Consul.
     */
    private void completeAsync(Runnable completion) {
        registered.defaultExecutor().execute(completion);
    }

    private void failed(Throwable why) {
        if (agent.isClosed()) {
            return;
        }
        try {
            log(line(why));
            if (why instanceof StatusException refused && refused.isOfRights()) {
                completeAsync(() -> registered.completeExceptionally(refused));
            }
        } catch (Throwable e) {
            // Neither an application's logging that fails nor a full heap ends the registration.
            unlogged++;
        }
    }

    /**
     * Returns the text of an error as one visible line. Even an error that the JDK throws may contain bytes that Consul
     * sent, as in its message about an invalid status.
     */
    private static String line(Throwable why) {
        return VisibleText.line(String.valueOf(why.getMessage()), 2 * MAX_TEXT);
    }

    private void log(String why) {
        long now = System.nanoTime();
        if (wasLogged && now - loggedNanos < MIN_LOG_NANOS) {
            unlogged++;
            return;
        }
        String before = unlogged == 0 ? "" : " (" + unlogged + " more since this was logged last)";
        wasLogged = true;
        loggedNanos = now;
        unlogged = 0;
        System.getLogger(ConsulRegistration.class.getName())
                .log(System.Logger.Level.WARNING, "{0} is not registered: {1}{2}", id, why, before);
    }

    /** Thrown if Consul answers with a status other than 200. */
    private static final class StatusException extends IOException {
        private static final long serialVersionUID = 1L;

        private final int status;

        StatusException(HttpResponse<byte[]> answer) {
            super("Consul: " + answer.statusCode() + " "
                    + VisibleText.line(new String(answer.body(), StandardCharsets.UTF_8).strip(), MAX_TEXT));
            this.status = answer.statusCode();
        }

        boolean isOfRights() {
            return status == HttpURLConnection.HTTP_UNAUTHORIZED || status == HttpURLConnection.HTTP_FORBIDDEN;
        }
    }

    private static void expect(HttpResponse<byte[]> answer) throws StatusException {
        if (answer.statusCode() != HttpURLConnection.HTTP_OK) {
            throw new StatusException(answer);
        }
    }

    /**
     * Deletes the entry from Consul. Waits for 5 s at most in all, also for the end of an open request. If the
     * entry could not be deleted by then, its check fails for lack of reports, and Consul deletes the entry itself.
     * A second call does nothing.
     */
    @Override
    public void close() {
        if (!isClosed.compareAndSet(false, true)) {
            return;
        }
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(MAX_ANSWER_MILLIS);
        agent.close();
        registered.cancel(false);
        ConsulAgent last = new ConsulAgent(base, token);
        try {
            // A registration or report that is still open must not reach Consul after the deregistration.
            thread.join(MAX_ANSWER_MILLIS);
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
