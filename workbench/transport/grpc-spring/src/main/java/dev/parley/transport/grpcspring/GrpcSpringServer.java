package dev.parley.transport.grpcspring;

import dev.parley.model.BadInput;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import dev.parley.transport.springapp.BootApplications;
import java.util.List;
import org.springframework.boot.WebApplicationType;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

/** A contract served by a Spring Boot application with a gRPC server. */
final class GrpcSpringServer implements Transport.Server {
    private final ConfigurableApplicationContext context;

    /** @param more what the application has beside its service */
    GrpcSpringServer(Contract contract, Location at, Handler handler, List<Class<?>> more) {
        try {
            context = BootApplications.builder(GrpcApplication.class, service(contract))
                    .sources(more.toArray(Class<?>[]::new))
                    .web(WebApplicationType.NONE)
                    .initializers(starting ->
                            ((GenericApplicationContext) starting).registerBean(Handler.class, () -> handler))
                    .run(BootApplications.arguments(List.of(
                            "spring.grpc.server.address=" + at.host(),
                            "spring.grpc.server.port=" + at.port(),
                            "spring.grpc.server.shutdown.grace-period=" + GRACE.toMillis() + "ms",
                            "spring.lifecycle.timeout-per-shutdown-phase=" + 2 * GRACE.toMillis() + "ms")));
        } catch (RuntimeException e) {
            throw new CallException(Code.UNAVAILABLE, "cannot listen on " + at + ": " + e.getMessage(), e);
        }
    }

    private static Class<?> service(Contract contract) {
        return switch (contract.name()) {
            case "messages" -> MessagesService.class;
            case "json" -> JsonService.class;
            case "lecturers" -> LecturersService.class;
            case "records" -> RecordsService.class;
            default ->
                throw new BadInput(
                        "contract", contract.name(), "one with a gRPC service: messages, json, lecturers, records");
        };
    }

    @Override
    public void close() {
        context.close();
    }
}
