package dev.parley.service;

import com.sun.management.ThreadMXBean;
import dev.parley.model.HistogramRow;
import dev.parley.model.Topology;
import dev.parley.protocol.ServiceEvent;
import dev.parley.spi.CallException;
import dev.parley.spi.CallLog;
import dev.parley.spi.Handler;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.Histogram;

/**
 * A running service, which is connected to its neighbours and listens. Closing ends the server first, then the
 * neighbours.
 */
final class Microservice implements AutoCloseable {
    private final String name;
    private final Map<String, TimedNeighbour> neighbours = new LinkedHashMap<>();
    private final LongAdder requests = new LongAdder();
    private final LongAdder answered = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private final Optional<CallLog> log;
    private final Work.Node node;
    private final Transport.Server server;

    Microservice(String name, ServiceSettings.Role role) {
        this.name = name;
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

    /** What the lab is told of the work's counts. Requests that the work refused are {@link #failures()}. */
    ServiceEvent.Served served() {
        // in this order, or a request between the two readings would be answered and not begun
        long answeredSoFar = answered.sum();
        return new ServiceEvent.Served(requests.sum(), answeredSoFar, allocatedBytes());
    }

    /**
     * Heap bytes that all threads have allocated since the process began, without the calling thread, whose answers to
     * the lab are no part of a request.
     */
    static long allocatedBytes() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        return threads.getTotalThreadAllocatedBytes() - threads.getCurrentThreadAllocatedBytes();
    }

    /** @param window name of the window that begins now */
    void resetHops(String window) {
        neighbours.values().forEach(neighbour -> neighbour.reset(window));
    }

    /** The times of calls to each neighbour in the window that ends with this. */
    List<HistogramRow> hops(int trialId) {
        List<HistogramRow> rows = new ArrayList<>();
        neighbours.forEach((peer, neighbour) -> rows.add(
                new HistogramRow(trialId, HistogramRow.Kind.HOP, name + ">" + peer, encoded(neighbour.sinceReset()))));
        return rows;
    }

    private static byte[] encoded(Histogram histogram) {
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        return Arrays.copyOf(buffer.array(), length);
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
