package dev.parley.work.messages;

import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.Callees;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * One service. A leaf answers itself. A service with one neighbour returns what that one answered; a service with
 * several neighbours puts their parts together.
 */
final class MessagesNode implements Work.Node {
    private final Topology.Node self;
    private final Callees callees;

    MessagesNode(Topology.Node self, Map<String, Neighbour> neighbours, Duration timeout) {
        this.self = self;
        this.callees = new Callees(self, neighbours, timeout);
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
            case 1 -> callees.first(operation, request);
            default ->
                throw new CallException(
                        CallException.Code.INVALID,
                        operation.name() + " at " + self.name() + ", which has " + callees.size()
                                + " neighbours (expected: gatherText or gatherTypes)");
        };
    }

    private GatheredText gatherText(TestModelOnlyText request) {
        if (callees.size() == 0) {
            return new GatheredText(List.of(new GatheredText.Part(self.name(), request)));
        }
        List<GatheredText> replies = callees.all(Messages.GATHER_TEXT, request);
        return replies.size() == 1
                ? replies.getFirst()
                : new GatheredText(
                        replies.stream().flatMap(r -> r.parts().stream()).toList());
    }

    private GatheredTypes gatherTypes(TestModelAllTypesList request) {
        if (callees.size() == 0) {
            return new GatheredTypes(List.of(new GatheredTypes.Part(self.name(), request)));
        }
        List<GatheredTypes> replies = callees.all(Messages.GATHER_TYPES, request);
        return replies.size() == 1
                ? replies.getFirst()
                : new GatheredTypes(
                        replies.stream().flatMap(r -> r.parts().stream()).toList());
    }

    @Override
    public void close() {
        callees.close();
    }
}
