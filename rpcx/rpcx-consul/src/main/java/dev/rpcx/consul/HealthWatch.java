package dev.rpcx.consul;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Watches a service's health in Consul with blocking queries: Consul answers a query when something has changed, and
 * then the watch sends the next one. Source: Consul, HTTP API, <i>Blocking Queries</i>. As advised there, the watch
 * begins anew without an index if the index goes back, takes an index below 1 as 1, and asks less often for a service
 * that changes all the time.
 */
final class HealthWatch implements Endpoints.Watch, Runnable {
    /** Max tokens of JSON in one answer. An instance has about a hundred. */
    private static final long MAX_TOKENS = 1_000_000;

    /**
     * A tree takes up to 100 bytes for each token of two characters, so a limit of an answer's bytes alone would be no
     * useful bound of the memory. The number of tokens is therefore limited too.
     */
    private static final JsonMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .streamReadConstraints(StreamReadConstraints.builder()
                            .maxTokenCount(MAX_TOKENS)
                            .build())
                    .build())
            .build();

    private static final int MAX_WAIT_SECONDS = 30;

    /**
     * Max time to wait for the answer of a blocking query. Consul adds up to a sixteenth of the wait, so that not all
     * clients ask again at once; 5 s more are allowed here.
     */
    private static final long MAX_ANSWER_MILLIS = MAX_WAIT_SECONDS * 1000L * 17 / 16 + 5_000;

    private static final long MAX_FIRST_ANSWER_MILLIS = 5_000;

    /**
     * Max queries in quick succession. One more is allowed after each {@link #REFILL_NANOS}: this is a token bucket, as
     * Consul advises.
     */
    private static final int MAX_BURST_QUERIES = 5;

    private static final long REFILL_NANOS = 500_000_000;

    private final ConsulAgent agent;
    private final String path;
    private final Endpoints.Listener listener;
    private int allowed = MAX_BURST_QUERIES;
    private long refilledNanos = System.nanoTime();

    HealthWatch(ConsulAgent agent, String service, Endpoints.Listener listener) {
        this.agent = agent;
        this.path = "/v1/health/service/" + ConsulAgent.encoded(service) + "?passing=true";
        this.listener = listener;
    }

    void start() {
        Thread thread = new Thread(null, this, "rpcx-consul", 0, false);
        thread.setContextClassLoader(HealthWatch.class.getClassLoader());
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() {
        agent.close();
    }

    @Override
    public void run() {
        try {
            ask();
        } finally {
            agent.end();
        }
    }

    private void ask() {
        long index = 0;
        int failures = 0;
        while (!agent.isClosed()) {
            try {
                limitRate();
                // After a failure the query has no index, so that Consul answers it at once: another server may answer,
                // and may have another index.
                HttpResponse<byte[]> answer = index == 0
                        ? agent.get(path, MAX_FIRST_ANSWER_MILLIS)
                        : agent.get(path + "&wait=" + MAX_WAIT_SECONDS + "s&index=" + index, MAX_ANSWER_MILLIS);
                if (answer.statusCode() != HttpURLConnection.HTTP_OK) {
                    throw new IOException(path + ": " + answer.statusCode()
                            + (answer.statusCode() == HttpURLConnection.HTTP_FORBIDDEN
                                    ? " (expected: a token that allows service:read and node:read)"
                                    : ""));
                }
                long now = index(answer);
                List<Endpoint> found = instances(tree(answer));
                if (index == 0 || now != index) {
                    listener.found(found);
                }
                index = now < index ? 0 : Math.max(1, now);
                failures = 0;
            } catch (Throwable e) {
                // This catches an Error too: the list of instances must not stay as it is for ever because the heap was
                // full once.
                index = 0;
                failures++;
                failed(e, failures);
            }
        }
    }

    private static long index(HttpResponse<byte[]> answer) throws IOException {
        String text = answer.headers()
                .firstValue("X-Consul-Index")
                .orElseThrow(() -> new IOException("no X-Consul-Index (expected: an agent of Consul)"));
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            throw ConsulAgent.failure("X-Consul-Index (expected: a number)", text);
        }
    }

    private JsonNode tree(HttpResponse<byte[]> answer) throws IOException {
        try {
            return JSON.readTree(answer.body());
        } catch (JacksonException e) {
            throw ConsulAgent.failure(path, e.getOriginalMessage());
        }
    }

    private void failed(Throwable why, int failures) {
        if (agent.isClosed()) {
            return;
        }
        try {
            listener.failed(why);
        } catch (Throwable e) {
            log(e);
        }
        agent.pause(failures);
    }

    private static void log(Throwable failure) {
        try {
            System.getLogger(HealthWatch.class.getName())
                    .log(System.Logger.Level.WARNING, "a listener of instances has failed", failure);
        } catch (Throwable unspeakable) {
            // A log that fails too, for example because the heap is full, does not end the watch.
        }
    }

    private void limitRate() {
        long now = System.nanoTime();
        long more = (now - refilledNanos) / REFILL_NANOS;
        if (more > 0) {
            allowed = (int) Math.min(MAX_BURST_QUERIES, allowed + more);
            refilledNanos += more * REFILL_NANOS;
        }
        if (allowed > 0) {
            allowed--;
        } else {
            agent.pauseMillis((REFILL_NANOS - (now - refilledNanos)) / 1_000_000 + 1);
            refilledNanos = System.nanoTime();
        }
    }

    /**
     * Returns the instances in an answer, without the entries that have no valid host and port. If a weight is above
     * {@link Endpoint#MAX_WEIGHT}, all weights become smaller by the same factor, but not less than 1.
     */
    static List<Endpoint> instances(JsonNode answer) {
        int largest = 1;
        for (JsonNode entry : answer) {
            largest = Math.max(largest, weight(entry));
        }
        List<Endpoint> all = new ArrayList<>();
        for (JsonNode entry : answer) {
            JsonNode service = entry.path("Service");
            // An instance without an address of its own has its node's address.
            String own = service.path("Address").asString("");
            String host = own.isEmpty() ? entry.path("Node").path("Address").asString("") : own;
            int port = service.path("Port").asInt(0);
            if (Endpoint.isHost(host) && port >= 1 && port <= 65_535) {
                int weight = weight(entry);
                int scaled =
                        largest <= Endpoint.MAX_WEIGHT ? weight : (int) ((long) weight * Endpoint.MAX_WEIGHT / largest);
                all.add(new Endpoint(host, port, Math.max(1, scaled)));
            }
        }
        return all;
    }

    private static int weight(JsonNode entry) {
        return Math.max(1, entry.path("Service").path("Weights").path("Passing").asInt(1));
    }
}
