package dev.parley.service;

import dev.parley.model.BadInput;
import dev.parley.protocol.Protocol;
import dev.parley.protocol.ServiceCommand;
import dev.parley.protocol.ServiceEvent;
import dev.parley.spi.CallException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The process of a service: {@code ServiceMain key=value …}, or {@code ServiceMain describe}.
 *
 * <p>Greets on standard output, and tells {@link ServiceEvent.Listening} once it serves. Then it reads a greeting and
 * obeys {@link ServiceCommand}s from its standard input. When the input ends, whoever started it is gone, and it ends
 * too. Exit codes: 0 told to end, 1 bad arguments, a port that is taken, another version of the protocol, or a fault
 * of its own, which it prints with its stack trace.
 */
public final class ServiceMain {
    private ServiceMain() {}

    public static void main(String[] args) {
        // a program reads the answers, so what libraries print goes to standard error
        PrintStream answers = System.out;
        System.setOut(System.err);
        answers.println(Protocol.greeting());
        int exitCode = 0;
        try {
            if (args.length == 1 && args[0].equals("describe")) {
                Describe.to(answers);
            } else {
                serve(ServiceSettings.parse(args), answers);
            }
        } catch (BadInput | CallException e) {
            System.err.println("service: " + e.getMessage());
            exitCode = 1;
        } catch (IOException | RuntimeException | Error e) {
            System.err.print("service: ");
            e.printStackTrace();
            exitCode = 1;
        }
        // a technology may leave threads that are not daemons
        System.exit(exitCode);
    }

    private static void serve(ServiceSettings settings, PrintStream answers) throws IOException {
        Microservice service = settings.role()
                .map(role -> new Microservice(settings.name(), role))
                .orElse(null);
        try (service;
                HealthServer health = new HealthServer(
                        settings.healthPort(), settings.name(), () -> MetricsText.of(service), ServiceMain::stop)) {
            answers.println(Protocol.line(new ServiceEvent.Listening(health.port())));
            obey(service, answers);
        }
    }

    private static void stop() {
        // the command loop waits in a read that cannot be interrupted, so the end comes from a thread of its own
        Thread.ofPlatform().name("shutdown").start(() -> System.exit(0));
    }

    private static void obey(@Nullable Microservice service, PrintStream answers) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String greeting = lines.readLine();
        if (greeting != null) {
            Protocol.checkGreeting("the lab", greeting);
        }
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                answer(Protocol.read(line, ServiceCommand.class), service)
                        .ifPresent(answer -> answers.println(Protocol.line(answer)));
            } catch (IllegalArgumentException e) {
                System.err.println("service: " + e.getMessage());
            }
        }
    }

    private static Optional<ServiceEvent> answer(ServiceCommand command, @Nullable Microservice service) {
        return switch (command) {
            case ServiceCommand.ResetHops reset -> {
                if (service != null) {
                    service.resetHops(reset.window());
                }
                yield Optional.empty();
            }
            case ServiceCommand.TellHops hops ->
                Optional.of(new ServiceEvent.Hops(service == null ? List.of() : service.hops(hops.trialId())));
            case ServiceCommand.TellServed _ ->
                Optional.of(
                        service == null
                                ? new ServiceEvent.Served(0, 0, Microservice.allocatedBytes())
                                : service.served());
        };
    }
}
