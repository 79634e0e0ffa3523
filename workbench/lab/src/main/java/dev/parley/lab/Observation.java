package dev.parley.lab;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import tools.jackson.databind.json.JsonMapper;

/**
 * What an observed run leaves for Prometheus and Filebeat: a folder {@code observed} with a log of calls for each service of each boot, with
 * the addresses of the services that are up, and with configurations that find both. Nothing for a run that is not. One thread.
 */
final class Observation {
    private static final List<String> FILES =
            List.of("prometheus.yml", "grafana-dashboard.json", "filebeat.yml", "logstash.conf", "kibana.ndjson");

    /** What brings the call log. */
    static final String MODULE = "observed";

    private final Path home;
    private final Optional<Path> folder;

    private Observation(Path home, Optional<Path> folder) {
        this.home = home;
        this.folder = folder;
    }

    static Observation none(Path home) {
        return new Observation(home, Optional.empty());
    }

    /** @param out the run's folder */
    static Observation in(Path home, Path out) {
        Path folder = out.toAbsolutePath().resolve("observed");
        try {
            Files.createDirectories(folder.resolve("calls"));
            for (String file : FILES) {
                Files.copy(
                        home.resolve("docs/observing").resolve(file),
                        folder.resolve(file),
                        StandardCopyOption.REPLACE_EXISTING);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("the configurations of docs/observing cannot be put into " + folder, e);
        }
        return new Observation(home, Optional.of(folder));
    }

    /** What a service is told. */
    List<String> arguments(Plan.Boot boot, String service) {
        return folder.map(own -> List.of("log="
                        + own.resolve("calls")
                                .resolve(boot.block() + "-" + boot.technology() + "-" + service + ".ndjson")))
                .orElse(List.of());
    }

    String classPath(Installation installation) {
        return folder.isEmpty()
                ? installation.classPath()
                : installation.and(Installation.of(home, List.of(MODULE))).classPath();
    }

    /** Says where the services that are now up tell their figures. */
    void booted(Plan.Boot boot, List<ServiceProcess> services) {
        if (folder.isEmpty()) {
            return;
        }
        List<Map<String, Object>> targets = new ArrayList<>();
        for (ServiceProcess service : services) {
            targets.add(Map.of(
                    "targets", List.of("127.0.0.1:" + service.healthPort()),
                    "labels", Map.of("service", service.name(), "technology", boot.technology())));
        }
        try {
            // moved into place, so that nobody reads half of it
            Path written = folder.get().resolve("targets.json.new");
            Files.write(written, JsonMapper.shared().writeValueAsBytes(targets));
            Files.move(written, folder.get().resolve("targets.json"), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new UncheckedIOException("the list of services for Prometheus", e);
        }
    }
}
