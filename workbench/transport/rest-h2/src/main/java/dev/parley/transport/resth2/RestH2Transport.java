package dev.parley.transport.resth2;

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

/** The routes, bodies and errors of {@code rest}, over one version of HTTP from end to end. */
record RestH2Transport(HttpVersion version) implements Transport {
    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put(
                "server", "Helidon SE WebServer with its HTTP/2, as it comes but for TCP_NODELAY and the body limit");
        settings.put(
                "client",
                "Jetty's HttpClient 12.1, one for each neighbour; java.net.http, which rest has, offers HTTP/2 without"
                        + " TLS only over an upgrade of the first call");
        settings.put("HTTP version", version.spoken);
        settings.put("connections", version.connections);
        settings.put("executor, server", "a virtual thread for each request (2), for each connection (1.1)");
        settings.put("executor, client", "the client's own pool; callers wait on their own thread");
        settings.put("serializer", "Jackson 3, streams in, byte array out");
        settings.put(
                "flow control windows",
                "Helidon's and Jetty's own: 1 MiB for a request, 8 MiB for a reply, 16 MiB for a client's connection");
        settings.put("TCP_NODELAY", "on at both ends: the client's own choice; the server's would be off");
        settings.put("SO_RCVBUF of the server", "208 KiB, as rest has it");
        settings.put("request body", "at most " + RestServer.MAX_BODY_BYTES + " bytes (413 above)");
        settings.put(
                "large contents",
                "photos are the body by itself (application/octet-stream), their names a query parameter or a header");
        settings.put("compression", "of headers as HTTP/2 does it; none of bodies");
        settings.put("errors", "HTTP status and application/problem+json (RFC 9457) with a member \"code\"");
        return new Technology(
                version.variant,
                version.title,
                Technology.Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("REST API (HTTP server)", "controller (routes)", "REST client"),
                "each service knows the URL of every service it calls",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return RestServer.start(contract, at, handler, false);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new JettyNeighbour(contract, to, version);
    }
}
