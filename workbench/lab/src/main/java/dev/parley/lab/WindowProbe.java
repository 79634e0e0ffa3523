package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.probe.MachineMood;
import dev.parley.protocol.Event;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What services, broker, databases and load generator used between two edges of a trial, and what that is for each of
 * the replies that came between them. One thread.
 */
final class WindowProbe {
    private final Generator generator;
    private final List<ServiceProcess> services;
    private final Optional<Broker.WindowProbe> broker;
    private final Databases.WindowProbe databases;
    private final Map<String, ProcessorUse> cpuBefore = new LinkedHashMap<>();
    private final Map<String, ProcessorUse> cpu = new LinkedHashMap<>();
    private MachineMood moodBefore = MachineMood.now();
    private List<String> complaints = List.of();
    private long beganNs;
    private long lengthNs;
    private long answeredBefore;
    private long answered;
    private ProcessorUse generatorBefore = ProcessorUse.NONE;
    private ProcessorUse ofGenerator = ProcessorUse.NONE;

    WindowProbe(Deployment deployment) {
        this.generator = deployment.generator();
        this.services = deployment.services();
        this.databases = deployment.databases().windowProbe();
        this.broker = deployment.broker().map(Broker::windowProbe);
    }

    /** @param answeredSoFar replies of the trial, right or wrong, until now */
    void begin(long answeredSoFar) {
        answeredBefore = answeredSoFar;
        moodBefore = MachineMood.now();
        beganNs = System.nanoTime();
        services.forEach(s -> cpuBefore.put(s.name(), used(s)));
        generatorBefore = new ProcessorUse(0, generator.compilersNs());
        broker.ifPresent(Broker.WindowProbe::begin);
        databases.begin();
    }

    /**
     * A compiler's thread that begins and ends between two looks is never seen, and its time would be taken for the
     * service's own.
     */
    void lookAtCompilers() {
        services.forEach(s -> s.probe().compilersCpuNs());
        generator.compilersNs();
    }

    private static ProcessorUse used(ServiceProcess service) {
        return new ProcessorUse(
                service.probe().cpuNs().orElse(0), service.probe().compilersCpuNs());
    }

    /** @param answeredSoFar replies of the trial, right or wrong, until now */
    void end(long answeredSoFar) {
        answered = answeredSoFar - answeredBefore;
        lengthNs = System.nanoTime() - beganNs;
        services.forEach(s -> cpu.put(s.name(), used(s).since(cpuBefore.getOrDefault(s.name(), ProcessorUse.NONE))));
        ofGenerator = new ProcessorUse(0, generator.compilersNs()).since(generatorBefore);
        broker.ifPresent(Broker.WindowProbe::end);
        databases.end();
        complaints = MachineMood.now().complaintsSince(moodBefore);
    }

    /** Why the machine was not fit to measure between the edges. */
    List<String> complaints() {
        return complaints;
    }

    List<FigureRow> figures(int trialId, Event.Finished finished) {
        List<FigureRow> figures = new ArrayList<>();
        figures.addAll(ProcessorUse.figures(trialId, cpu, lengthNs, answered));
        for (ServiceProcess service : services) {
            service.probe()
                    .residentBytes()
                    .ifPresent(bytes ->
                            figures.add(new FigureRow(trialId, Metric.MEMORY_AFTER_LOAD, service.name(), bytes / 1e6)));
        }
        broker.ifPresent(b -> figures.addAll(b.figures(trialId, answered)));
        figures.addAll(databases.figures(trialId, answered));
        figures.add(new FigureRow(trialId, Metric.GENERATOR_CPU, "generator", finished.cpuShare() * 100));
        ofGenerator
                .compilersNs()
                .ifPresent(ns -> figures.add(new FigureRow(
                        trialId, Metric.GENERATOR_COMPILING, "generator", 100.0 * ns / Math.max(1, lengthNs))));
        figures.add(new FigureRow(trialId, Metric.GENERATOR_LATENESS_P99, "generator", finished.latenessP99Ns() / 1e6));
        return figures;
    }
}
