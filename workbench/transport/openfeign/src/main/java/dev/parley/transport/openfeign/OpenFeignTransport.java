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
    private final HttpUse use;
    private final List<String> serverSettings;
    private final FeignClients clients;

    OpenFeignTransport(HttpUse use) {
        this(use, use.serverSettings());
    }

    /** @param serverSettings Spring Boot properties of the server */
    OpenFeignTransport(HttpUse use, List<String> serverSettings) {
        this.use = use;
        this.serverSettings = List.copyOf(serverSettings);
        this.clients = new FeignClients(use);
    }

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("server", "Spring Boot webmvc, embedded Tomcat, @RestController");
        settings.put("client", "Spring Cloud OpenFeign, SpringMvcContract, no load balancer, never retried");
        settings.put("HTTP version", "1.1");
        settings.put("connections", use.connections);
        settings.put(
                "class path",
                "holds feign-hc5 and HttpClient 5 in all variants; spring.cloud.openfeign.httpclient.hc5.enabled="
                        + use.isPooled());
        settings.put("keep-alive", use.keepAlive);
        settings.put("deadline", "connect and read timeout of Request.Options, a parameter of each call");
        settings.put("serializer", "Jackson 3 through Spring's HTTP message converters");
        settings.put("executor", "Tomcat, at most 200 threads (server.tomcat.threads.max)");
        return new Technology(
                use.variant,
                use.title,
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
