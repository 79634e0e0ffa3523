package dev.parley.work.messages;

import dev.parley.model.BadInput;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * One service. A leaf answers itself; a service with one neighbour gives back what that answered; one with several puts their parts
 * together. A neighbour's failure is the service's own, with the neighbour's name before the message.
 */
final class MessagesNode implements Work.Node {
    private record Callee(String name, Neighbour neighbour) {}

    private final Topology.Node self;
    private final List<Callee> callees;
    private final Duration timeout;
    private final ExecutorService atOnce = Executors.newVirtualThreadPerTaskExecutor();

    MessagesNode(Topology.Node self, Map<String, Neighbour> neighbours, Duration timeout) {
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

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        Record reply = switch (operation.name()) {
            case "onlyText", "allTypes" -> echo(operation, request);
            case "gatherText" -> gatherText((TestModelOnlyText) request);
            case "gatherTypes" -> gatherTypes((TestModelAllTypesList) request);
            default ->
                throw new CallException(
                        CallException.Code.NOT_FOUND,
                        "no operation " + operation.name() + " in " + Messages.CONTRACT.name());
        };
        return operation.reply().cast(reply);
    }

    private <Q extends Record, R extends Record> Record echo(Operation<Q, R> operation, Q request) {
        return switch (callees.size()) {
            case 0 -> request;
            case 1 -> call(callees.getFirst(), operation, request);
            default ->
                throw new CallException(
                        CallException.Code.INVALID,
                        operation.name() + " at " + self.name() + ", which has " + callees.size()
                                + " neighbours (expected: gatherText or gatherTypes)");
        };
    }

    private GatheredText gatherText(TestModelOnlyText request) {
        if (callees.isEmpty()) {
            return new GatheredText(List.of(new GatheredText.Part(self.name(), request)));
        }
        List<GatheredText> replies = callAll(Messages.GATHER_TEXT, request);
        return replies.size() == 1
                ? replies.getFirst()
                : new GatheredText(
                        replies.stream().flatMap(r -> r.parts().stream()).toList());
    }

    private GatheredTypes gatherTypes(TestModelAllTypesList request) {
        if (callees.isEmpty()) {
            return new GatheredTypes(List.of(new GatheredTypes.Part(self.name(), request)));
        }
        List<GatheredTypes> replies = callAll(Messages.GATHER_TYPES, request);
        return replies.size() == 1
                ? replies.getFirst()
                : new GatheredTypes(
                        replies.stream().flatMap(r -> r.parts().stream()).toList());
    }

    /** The replies in the order of {@link #callees}, whichever came first. */
    private <Q extends Record, R extends Record> List<R> callAll(Operation<Q, R> operation, Q request) {
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
