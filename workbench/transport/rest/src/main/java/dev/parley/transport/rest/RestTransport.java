package dev.parley.transport.rest;

import dev.parley.model.Technology;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * {@code POST /messages/onlyText} with a JSON body, {@code GET} for an operation that sends nothing. An error is an HTTP status with
 * {@code application/problem+json} (RFC 9457), whose member {@code code} is the {@link dev.parley.spi.CallException.Code}.
 */
final class RestTransport implements Transport {
    private static final Technology TECHNOLOGY = new Technology(
            "rest",
            "HTTP REST (JSON)",
            Technology.Style.SYNCHRONOUS,
            Optional.empty(),
            List.of("REST API (HTTP server)", "controller (routes)", "REST client"),
            "each service knows the URL of every service it calls",
            settings());

    @Override
    public Technology technology() {
        return TECHNOLOGY;
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return RestServer.start(contract, at, handler);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new RestNeighbour(contract, to);
    }

    private static Map<String, String> settings() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("server", "Helidon SE WebServer, as it comes but for TCP_NODELAY and the body limit");
        settings.put(
                "client", "java.net.http.HttpClient, one for each neighbour, as it comes but for the HTTP version");
        settings.put(
                "HTTP version",
                "1.1, kept alive (the client's own choice would be 2 over an upgrade of the first call)");
        settings.put(
                "connections",
                "one for each call under way, opened on demand, no limit (jdk.httpclient.connectionPoolSize 0); idle ones are kept"
                        + " 30 s (jdk.httpclient.keepalive.timeout)");
        settings.put("executor, server", "a virtual thread for each connection");
        settings.put(
                "executor, client",
                "the client's own cached pool and one selector thread; callers wait on their own thread");
        settings.put("serializer", "Jackson 3, streams in, byte array out");
        settings.put(
                "TCP_NODELAY",
                "on at both ends: the client's own choice; the server's would be off, and on is what every other technology here has");
        settings.put("request body", "at most " + RestServer.MAX_BODY_BYTES + " bytes (413 above)");
        settings.put("compression", "none");
        settings.put("retries", "none: the client repeats no POST by itself");
        settings.put("errors", "HTTP status and application/problem+json (RFC 9457) with a member \"code\"");
        return settings;
    }
}
