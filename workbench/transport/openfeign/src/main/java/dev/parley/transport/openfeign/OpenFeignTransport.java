package dev.parley.transport.openfeign;

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

/** One variant of Spring Cloud OpenFeign. */
final class OpenFeignTransport implements Transport {
    private final boolean tuned;
    private final List<String> serverSettings;
    private final FeignClients clients;

    OpenFeignTransport(boolean tuned) {
        this(tuned, tuned ? List.of("server.tomcat.max-keep-alive-requests=-1") : List.of());
    }

    /** @param serverSettings Spring Boot properties of the server */
    OpenFeignTransport(boolean tuned, List<String> serverSettings) {
        this.tuned = tuned;
        this.serverSettings = List.copyOf(serverSettings);
        this.clients = new FeignClients(tuned);
    }

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("server", "Spring Boot webmvc, embedded Tomcat, @RestController");
        settings.put("client", "Spring Cloud OpenFeign, SpringMvcContract, no load balancer, never retried");
        settings.put("HTTP version", "1.1");
        settings.put(
                "connections",
                tuned
                        ? "Apache HttpClient 5, pool of 1000 (Spring Cloud OpenFeign reference: feign-hc5 on the class path; "
                                + "spring.cloud.openfeign.httpclient.max-connections and max-connections-per-route, 200 and 50 by default)"
                        : "Feign's default client, HttpURLConnection: at most 5 kept alive for a host (http.maxConnections), others opened "
                                + "for the call; idle ones kept for the minute that Tomcat grants");
        settings.put(
                "class path",
                "holds feign-hc5 and HttpClient 5 in both variants; spring.cloud.openfeign.httpclient.hc5.enabled="
                        + tuned);
        settings.put(
                "keep-alive",
                tuned
                        ? "no limit (server.tomcat.max-keep-alive-requests=-1)"
                        : "Tomcat closes a connection after 100 requests (server.tomcat.max-keep-alive-requests)");
        settings.put("deadline", "connect and read timeout of Request.Options, a parameter of each call");
        settings.put("serializer", "Jackson 3 through Spring's HTTP message converters");
        settings.put("executor", "Tomcat, at most 200 threads (server.tomcat.threads.max)");
        return new Technology(
                tuned ? "openfeign-tuned" : "openfeign",
                tuned ? "OpenFeign, Spring Cloud, Apache HttpClient 5" : "OpenFeign, Spring Cloud",
                Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("controller", "embedded web server", "annotated client interface"),
                "the caller knows host and port of each service that it calls",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return new SpringMvcServer(contract, at, handler, serverSettings);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new OpenFeignNeighbour(clients, contract, to);
    }
}
