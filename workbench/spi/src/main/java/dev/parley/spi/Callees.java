package dev.parley.spi;

import dev.parley.model.BadInput;
import dev.parley.model.Topology;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * The services that one service calls. A neighbour's failure is the service's own, with the neighbour's name before the
 * message. Thread-safe; neighbours called at once are called on virtual threads.
 */
public final class Callees implements AutoCloseable {
    private record Callee(String name, Neighbour neighbour) {}

    private final Topology.Node self;
    private final List<Callee> callees;
    private final Duration timeout;
    private final ExecutorService atOnce = Executors.newVirtualThreadPerTaskExecutor();

    /**
     * @param neighbours by name, at least those that {@code self} calls
     * @param timeout of each call
     * @throws BadInput if one is missing
     */
    public Callees(Topology.Node self, Map<String, Neighbour> neighbours, Duration timeout) {
        this.self = self;
        this.timeout = timeout;
        this.callees = self.calls().stream()
                .map(name -> {
                    Neighbour neighbour = neighbours.get(name);
                    if (neighbour == null) {
                        throw new BadInput("neighbours of " + self.name(), neighbours.keySet(), "also " + name);
                    }
                    return new Callee(name, neighbour);
                })
                .toList();
    }

    public int size() {
        return callees.size();
    }

    /** @throws java.util.NoSuchElementException if there is none */
    public <Q extends Record, R extends Record> R first(Operation<Q, R> operation, Q request) {
        return call(callees.getFirst(), operation, request);
    }

    /** The replies in the topology's order, whichever came first. */
    public <Q extends Record, R extends Record> List<R> all(Operation<Q, R> operation, Q request) {
        List<R> replies = new ArrayList<>(callees.size());
        if (self.calling() == Topology.Calling.ONE_AFTER_THE_OTHER || callees.size() == 1) {
            for (Callee callee : callees) {
                replies.add(call(callee, operation, request));
            }
            return replies;
        }
        List<Future<R>> calls = new ArrayList<>(callees.size());
        for (Callee callee : callees) {
            calls.add(atOnce.submit(() -> call(callee, operation, request)));
        }
        try {
            for (Future<R> call : calls) {
                replies.add(call.get());
            }
            return replies;
        } catch (ExecutionException e) {
            throw CallException.of(e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CallException(CallException.Code.UNAVAILABLE, self.name() + " was interrupted", e);
        } finally {
            // after a failure the other answers are of no use to anyone; on those that ended this does nothing
            calls.forEach(call -> call.cancel(true));
        }
    }

    private <Q extends Record, R extends Record> R call(Callee callee, Operation<Q, R> operation, Q request) {
        try {
            return callee.neighbour().call(operation, request, timeout);
        } catch (CallException e) {
            throw new CallException(e.code(), callee.name() + ": " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        atOnce.shutdownNow();
    }
}
