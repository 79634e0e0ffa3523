package dev.parley.lab;

import dev.parley.backend.Backend;
import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.probe.ByteRelay;
import dev.parley.probe.ProcessProbe;
import dev.parley.spi.Location;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A broker that stands between the services of this run. One thread.
 *
 * @param prefix what all names of the run at this broker begin with
 */
record Broker(String name, Backend.Running running, String prefix) {
    /** A name that no other boot has, so that nothing of an earlier one waits there. */
    Location.AtBroker location(Plan.Boot boot, String service) {
        return new Location.AtBroker(
                running.host(),
                running.port(),
                prefix + boot.trials().getFirst().id() + "-" + service);
    }

    void mustBeAlive() {
        if (!running.isAlive()) {
            throw new LabException("the broker " + name + " has ended by itself: see logs/backends/" + name);
        }
    }

    /** One in front of the broker; empty where none can stand there, so that bytes are not counted. */
    Optional<ByteRelay> relay() {
        return running.relay().map(way -> ByteRelay.at(way.listen(), running.host(), way.target()));
    }

    /** What the broker used between the edges of a window. Says nothing of a broker that is not ours. */
    static final class WindowProbe {
        private final List<ProcessProbe> processes;
        private long usedNs;

        private WindowProbe(List<ProcessProbe> processes) {
            this.processes = processes;
        }

        void begin() {
            usedNs = -usedNs();
        }

        void end() {
            usedNs += usedNs();
        }

        private long usedNs() {
            return processes.stream()
                    .mapToLong(p -> p.cpuNs().orElse(0) - p.compilersCpuNs().orElse(0))
                    .sum();
        }

        List<FigureRow> figures(int trialId, long answered) {
            List<FigureRow> figures = new ArrayList<>();
            if (processes.isEmpty()) {
                return figures;
            }
            if (answered > 0) {
                figures.add(new FigureRow(
                        trialId,
                        Metric.BROKER_CPU_PER_REQUEST,
                        FigureRow.BROKER,
                        Math.max(0, usedNs) / 1e6 / answered));
            }
            long resident = processes.stream()
                    .mapToLong(p -> p.residentBytes().orElse(0))
                    .sum();
            figures.add(new FigureRow(trialId, Metric.BROKER_MEMORY, FigureRow.BROKER, resident / 1e6));
            return figures;
        }
    }

    WindowProbe windowProbe() {
        return new WindowProbe(
                running.processes().stream().map(ProcessProbe::of).toList());
    }
}
