package dev.parley.transport.grpcspring;

import dev.parley.encoding.protobuf.Chunks;
import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.transport.springapp.BootApplications;
import dev.parley.transport.springapp.SharedContext;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.springframework.boot.WebApplicationType;

/** gRPC as Spring Boot's starters set it up, or tuned. */
final class GrpcSpringTransport implements Transport {
    private final boolean tuned;
    private final List<Class<?>> more;
    private final SharedContext clients;

    GrpcSpringTransport(boolean tuned) {
        this.tuned = tuned;
        this.more = tuned ? List.of(Tuned.class) : List.of();
        this.clients = new SharedContext(() -> BootApplications.builder(GrpcApplication.class)
                .sources(more.toArray(Class<?>[]::new))
                .web(WebApplicationType.NONE)
                .run(BootApplications.arguments(List.of("spring.grpc.server.enabled=false"))));
    }

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put(
                "server",
                "spring-boot-starter-grpc-server, Netty, @GrpcService; health and reflection services on, as they come");
        settings.put("client", "spring-boot-starter-grpc-client, GrpcChannelFactory");
        settings.put("HTTP version", "2, cleartext");
        settings.put("connections", "one channel a neighbour, one connection");
        settings.put(
                "serializer",
                "Protobuf, generated for the version that Boot brings; records converted to messages and back");
        settings.put("largest message", "4 MiB (spring.grpc.server.inbound.message.max-size)");
        settings.put(
                "large contents",
                "streamed, client or server, in messages of " + Chunks.CHUNK_BYTES
                        + " bytes: photos; all else is unary");
        settings.put(
                "executor",
                tuned
                        ? "a virtual thread for each call (grpc.io/docs/guides/performance: provide a custom executor)"
                        : "gRPC's default, a cached pool of threads");
        settings.put(
                "flow control window",
                tuned
                        ? Tuned.WINDOW_BYTES + " bytes (ServerBuilderCustomizer, GrpcChannelBuilderCustomizer)"
                        : "1 MiB, grpc-java's own");
        settings.put("TCP_NODELAY", "on at both ends (grpc-netty's default)");
        return new Technology(
                tuned ? "grpc-spring-tuned" : "grpc-spring",
                tuned ? "gRPC, Spring Boot, tuned" : "gRPC, Spring Boot",
                Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("gRPC server", "service", "gRPC client"),
                "the caller knows host and port of each service that it calls",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return new GrpcSpringServer(contract, at, handler, more);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new GrpcSpringNeighbour(clients, contract, to);
    }
}
