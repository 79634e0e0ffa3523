package dev.parley.lab;

import dev.parley.backend.Backend;
import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.spi.Location;
import dev.rpcx.probe.ByteRelay;
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
        private final ServerProbe server;

        private WindowProbe(ServerProbe server) {
            this.server = server;
        }

        void begin() {
            server.begin();
        }

        void end() {
            server.end();
        }

        List<FigureRow> figures(int trialId, long answered) {
            List<FigureRow> figures = new ArrayList<>();
            if (!server.isOurs()) {
                return figures;
            }
            if (answered > 0) {
                figures.add(new FigureRow(
                        trialId, Metric.BROKER_CPU_PER_REQUEST, FigureRow.BROKER, server.usedMs() / answered));
            }
            figures.add(new FigureRow(trialId, Metric.BROKER_MEMORY, FigureRow.BROKER, server.residentMb()));
            return figures;
        }
    }

    WindowProbe windowProbe() {
        return new WindowProbe(ServerProbe.of(running));
    }
}
