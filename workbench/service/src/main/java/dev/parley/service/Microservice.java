package dev.parley.service;

import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.CallLog;
import dev.parley.spi.Handler;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.LongAdder;

/**
 * A running service, which is connected to its neighbours and listens. Closing ends the server first, then the
 * neighbours.
 */
final class Microservice implements AutoCloseable {
    private final Map<String, TimedNeighbour> neighbours = new LinkedHashMap<>();
    private final LongAdder requests = new LongAdder();
    private final LongAdder answered = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private final Optional<CallLog> log;
    private final Work.Node node;
    private final Transport.Server server;

    Microservice(String name, ServiceSettings.Role role) {
        Topology.Node self = role.topology().node(name);
        Transport serving = TransportProvider.named(role.transport());
        Work records = Work.named(role.work());
        // a service that is called over one technology and calls over another one works on the work's own records
        Work work =
                self.isLeaf() || role.transport().equals(role.neighbourTransport()) ? serving.work(records) : records;
        log = role.log().map(file -> CallLog.open(file, name, role.neighbourTransport()));
        if (!self.isLeaf()) {
            Transport calls = TransportProvider.named(role.neighbourTransport());
            for (String callee : self.calls()) {
                neighbours.put(
                        callee,
                        new TimedNeighbour(callee, calls.connect(name, work.contract(), role.locationOf(callee)), log));
            }
        }
        node = work.node(self, new LinkedHashMap<String, Neighbour>(neighbours), role.backends());
        server = serving.serve(name, work.contract(), role.at(), counted(node));
    }

    /** Counts what reaches the work, here and not in a technology, so that the count costs all of them the same. */
    private Handler counted(Handler handler) {
        return new Handler() {
            @Override
            public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
                requests.increment();
                try {
                    R reply = handler.handle(operation, request);
                    // before the technology sends it, so that whoever has a reply finds it counted
                    answered.increment();
                    return reply;
                } catch (CallException e) {
                    failures.increment();
                    throw e;
                } catch (RuntimeException e) {
                    failures.increment();
                    throw CallException.of(e);
                }
            }
        };
    }

    /** The neighbours by name, in the topology's order. */
    Map<String, TimedNeighbour> neighbours() {
        return neighbours;
    }

    long requests() {
        return requests.sum();
    }

    /** Requests that the work answered; those that it refused are {@link #failures()}. */
    long answered() {
        return answered.sum();
    }

    /** The work's own figures, of its cache and its pool. */
    Map<String, Double> figures() {
        return node.figures();
    }

    long failures() {
        return failures.sum();
    }

    @Override
    public void close() {
        server.close();
        node.close();
        neighbours.values().forEach(TimedNeighbour::close);
        log.ifPresent(CallLog::close);
    }
}
