package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.process.Child;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * The service with nothing in it, which figures of size, memory and boot stand beside: its first right reply is that of
 * its health.
 */
final class EmptyService {
    private EmptyService() {}

    static List<FigureRow> measure(Installation installation, int trialId, Path log) throws InterruptedException {
        try (ServiceProcess service = new ServiceProcess(Child.java(
                        "empty",
                        ServiceJvm.FLAGS,
                        installation.classPath(),
                        ServiceJvm.SERVICE,
                        List.of("name=empty"),
                        log));
                HttpClient http = HttpClient.newHttpClient()) {
            service.awaitListening();
            HttpResponse<String> health = http.send(
                    HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + service.healthPort() + "/health"))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            double bootMs = (System.nanoTime() - service.startedNs()) / 1e6;
            if (health.statusCode() != 200) {
                throw new LabException("the empty service is not healthy: HTTP " + health.statusCode());
            }
            List<FigureRow> figures = new ArrayList<>();
            figures.add(new FigureRow(trialId, Metric.BOOT_TIME, FigureRow.EMPTY, bootMs));
            figures.add(new FigureRow(trialId, Metric.INSTALLED_SIZE, FigureRow.EMPTY, installation.bytes() / 1e6));
            memory(service, trialId, Metric.MEMORY_AFTER_BOOT).ifPresent(figures::add);
            // what every service is asked at each trial: the classes that answer it are in its memory from then on
            service.served();
            memory(service, trialId, Metric.MEMORY_AFTER_LOAD).ifPresent(figures::add);
            return figures;
        } catch (IOException e) {
            throw new LabException("the empty service gave no answer: " + e.getMessage(), e);
        }
    }

    private static Optional<FigureRow> memory(ServiceProcess service, int trialId, Metric metric) {
        OptionalLong bytes = service.probe().residentBytes();
        return bytes.isPresent()
                ? Optional.of(new FigureRow(trialId, metric, FigureRow.EMPTY, bytes.getAsLong() / 1e6))
                : Optional.empty();
    }
}
