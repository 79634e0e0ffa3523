package dev.parley.transport.springweb;

import dev.parley.model.BadInput;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import dev.parley.transport.springapp.BootApplications;
import java.util.List;
import java.util.function.Consumer;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

/** A contract served by a Spring Boot application. Each server is an application context of its own, so several may live in one JVM. */
public final class SpringMvcServer implements Transport.Server {
    private final ConfigurableApplicationContext context;

    /**
     * @param settings Spring Boot properties as {@code name=value}
     * @throws CallException {@link Code#UNAVAILABLE} if the port is taken
     * @throws BadInput for a contract that has no controller here
     */
    public SpringMvcServer(Contract contract, Location at, Handler handler, List<String> settings) {
        this(
                at,
                settings,
                context -> context.registerBean(Handler.class, () -> handler),
                controller(contract),
                ProblemAdvice.class);
    }

    /**
     * Any application on embedded Tomcat.
     *
     * @param beans puts in what the sources ask for
     * @throws CallException {@link Code#UNAVAILABLE} if the port is taken
     */
    public SpringMvcServer(
            Location at, List<String> settings, Consumer<GenericApplicationContext> beans, Class<?>... sources) {
        SpringApplicationBuilder builder = BootApplications.builder(MvcApplication.class)
                .sources(sources)
                .web(WebApplicationType.SERVLET)
                .initializers(starting -> beans.accept((GenericApplicationContext) starting));
        try {
            context = builder.run(BootApplications.arguments(
                    settings,
                    "server.address=" + at.host(),
                    "server.port=" + at.port(),
                    "spring.lifecycle.timeout-per-shutdown-phase=" + GRACE.toMillis() + "ms"));
        } catch (RuntimeException e) {
            throw new CallException(Code.UNAVAILABLE, "cannot listen on " + at + ": " + e.getMessage(), e);
        }
    }

    private static Class<?> controller(Contract contract) {
        return switch (contract.name()) {
            case "messages" -> MessagesController.class;
            case "json" -> JsonController.class;
            case "lecturers" -> LecturersController.class;
            case "records" -> RecordsController.class;
            default ->
                throw new BadInput(
                        "contract",
                        contract.name(),
                        "one with a Spring MVC controller: messages, json, lecturers, records");
        };
    }

    @Override
    public void close() {
        context.close();
    }
}
