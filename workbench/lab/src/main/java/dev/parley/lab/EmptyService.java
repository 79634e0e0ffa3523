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

/** The service with nothing in it, which figures of size, memory and boot stand beside: its first right reply is that of its health. */
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
            service.probe().residentBytes().ifPresent(bytes -> {
                figures.add(new FigureRow(trialId, Metric.MEMORY_AFTER_BOOT, FigureRow.EMPTY, bytes / 1e6));
                figures.add(new FigureRow(trialId, Metric.MEMORY_AFTER_LOAD, FigureRow.EMPTY, bytes / 1e6));
            });
            return figures;
        } catch (IOException e) {
            throw new LabException("the empty service gave no answer: " + e.getMessage(), e);
        }
    }
}
