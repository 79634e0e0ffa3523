package dev.parley.transport.rest;

import dev.parley.model.Technology;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.transport.restcalls.RestServer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * {@code POST /messages/onlyText} with a JSON body, {@code GET} for an operation that sends nothing. An error is an HTTP status with
 * {@code application/problem+json} (RFC 9457), whose member {@code code} is the {@link dev.parley.spi.CallException.Code}. {@code rest} keeps connections,
 * {@code rest-close} opens one for each request.
 */
final class RestTransport implements Transport {
    private final boolean closes;
    private final Technology technology;

    /** @param closes whether a connection serves one request only: {@code rest-close}. Source: weerasinghe, section IV.A, says it must. */
    RestTransport(boolean closes) {
        this.closes = closes;
        this.technology = new Technology(
                closes ? "rest-close" : "rest",
                closes ? "HTTP REST (JSON), a connection for each request" : "HTTP REST (JSON)",
                Technology.Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("REST API (HTTP server)", "controller (routes)", "REST client"),
                "each service knows the URL of every service it calls",
                settings(closes));
    }

    @Override
    public Technology technology() {
        return technology;
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return RestServer.start(contract, at, handler, closes);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new RestNeighbour(contract, to);
    }

    private static Map<String, String> settings(boolean closes) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("server", "Helidon SE WebServer, as it comes but for TCP_NODELAY and the body limit");
        settings.put(
                "client", "java.net.http.HttpClient, one for each neighbour, as it comes but for the HTTP version");
        settings.put(
                "HTTP version",
                "1.1, " + (closes ? "closed after each request" : "kept alive")
                        + " (the client's own choice would be 2 over an upgrade of the first call)");
        settings.put(
                "connections",
                closes
                        ? "one for each call, opened for it; the server answers with Connection: close (RFC 9112, section 9.6)"
                        : "one for each call under way, opened on demand, no limit (jdk.httpclient.connectionPoolSize 0); idle ones"
                                + " are kept 30 s (jdk.httpclient.keepalive.timeout)");
        settings.put("executor, server", "a virtual thread for each connection");
        settings.put(
                "executor, client",
                "the client's own cached pool and one selector thread; callers wait on their own thread");
        settings.put("serializer", "Jackson 3, streams in, byte array out");
        settings.put(
                "TCP_NODELAY",
                "on at both ends: the client's own choice; the server's would be off, and on is what every other technology here has");
        settings.put(
                "SO_RCVBUF of the server",
                "208 KiB, Linux' default bound: Helidon's own 4 KiB stops TCP for seconds where packets are larger, as on loopback");
        settings.put("request body", "at most " + RestServer.MAX_BODY_BYTES + " bytes (413 above)");
        settings.put(
                "large contents",
                "photos are the body by itself (application/octet-stream), their names a query parameter or a header");
        settings.put("compression", "none");
        settings.put("retries", "none: the client repeats no POST by itself");
        settings.put("errors", "HTTP status and application/problem+json (RFC 9457) with a member \"code\"");
        return settings;
    }
}
