package dev.parley.transport.restspring;

import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.transport.springweb.SpringMvcServer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** One variant of REST on Spring Boot. */
final class RestSpringTransport implements Transport {
    private final boolean tuned;

    RestSpringTransport(boolean tuned) {
        this.tuned = tuned;
    }

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("server", "Spring Boot webmvc, embedded Tomcat, @RestController");
        settings.put(
                "client",
                "RestClient on java.net.http, which Boot chooses where no other client library stands on the class path");
        settings.put(
                "HTTP version",
                tuned
                        ? "1.1 asked for (JdkClientHttpRequestFactory with a client of one's own)"
                        : "1.1; the client offers HTTP/2 in every request (java.net.http's default), Tomcat declines");
        settings.put("connections", "java.net.http pool: one a call in flight, kept alive");
        settings.put(
                "keep-alive",
                tuned
                        ? "no limit (server.tomcat.max-keep-alive-requests=-1)"
                        : "Tomcat closes a connection after 100 requests (server.tomcat.max-keep-alive-requests)");
        settings.put("serializer", "Jackson 3 through Spring's HTTP message converters");
        settings.put(
                "executor",
                tuned
                        ? "a virtual thread a request (spring.threads.virtual.enabled=true; Spring Boot reference, Virtual threads)"
                        : "Tomcat, at most 200 threads (server.tomcat.threads.max)");
        settings.put("TCP_NODELAY", "on at both ends (java.net.http's and Tomcat's default)");
        return new Technology(
                tuned ? "rest-spring-tuned" : "rest-spring",
                tuned ? "HTTP REST, Spring Boot, virtual threads" : "HTTP REST, Spring Boot",
                Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("controller", "embedded web server", "REST client"),
                "the caller knows host and port of each service that it calls",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return new SpringMvcServer(
                contract,
                at,
                handler,
                tuned
                        ? List.of("spring.threads.virtual.enabled=true", "server.tomcat.max-keep-alive-requests=-1")
                        : List.of());
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new RestSpringNeighbour(contract, to, tuned);
    }
}
