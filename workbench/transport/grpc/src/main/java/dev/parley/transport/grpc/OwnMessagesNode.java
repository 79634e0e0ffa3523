package dev.parley.transport.grpc;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.messages.GatheredText;
import dev.parley.encoding.protobuf.messages.GatheredTypes;
import dev.parley.encoding.protobuf.messages.TestModelAllTypesList;
import dev.parley.encoding.protobuf.messages.TestModelOnlyText;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.Callees;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** A service of the work {@code messages}, written on generated messages: the same answers as that work's own. */
final class OwnMessagesNode implements Work.Node {
    private final Topology.Node self;
    private final Callees callees;

    OwnMessagesNode(Topology.Node self, Map<String, Neighbour> neighbours, Duration timeout) {
        this.self = self;
        this.callees = new Callees(self, neighbours, timeout);
    }

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        return switch (operation.name()) {
            case "onlyText", "allTypes" -> echo(operation, request);
            case "gatherText", "gatherTypes" -> gather(operation, request);
            default -> throw new CallException(CallException.Code.NOT_FOUND, "no operation " + operation.name());
        };
    }

    private <Q extends Record, R extends Record> R echo(Operation<Q, R> operation, Q request) {
        return switch (callees.size()) {
            case 0 -> operation.reply().cast(request);
            case 1 -> callees.first(operation, request);
            default ->
                throw new CallException(
                        CallException.Code.INVALID,
                        operation.name() + " at " + self.name() + ", which has " + callees.size()
                                + " neighbours (expected: gatherText or gatherTypes)");
        };
    }

    private <Q extends Record, R extends Record> R gather(Operation<Q, R> operation, Q request) {
        if (callees.size() == 0) {
            return operation.reply().cast(new Own<>(part(((Own<?>) request).message())));
        }
        List<R> replies = callees.all(operation, request);
        return replies.size() == 1 ? replies.getFirst() : operation.reply().cast(new Own<>(together(replies)));
    }

    private Message part(Message answer) {
        return switch (answer) {
            case TestModelOnlyText text ->
                GatheredText.newBuilder()
                        .addParts(GatheredText.Part.newBuilder()
                                .setService(self.name())
                                .setAnswer(text))
                        .build();
            case TestModelAllTypesList types ->
                GatheredTypes.newBuilder()
                        .addParts(GatheredTypes.Part.newBuilder()
                                .setService(self.name())
                                .setAnswer(types))
                        .build();
            default -> throw new CallException(CallException.Code.PROTOCOL, "not a request: " + answer.getClass());
        };
    }

    private static Message together(List<? extends Record> replies) {
        Message.Builder all = ((Own<?>) replies.getFirst()).message().newBuilderForType();
        // a repeated field's values are put together by a merge
        replies.forEach(reply -> all.mergeFrom(((Own<?>) reply).message()));
        return all.build();
    }

    @Override
    public void close() {
        callees.close();
    }
}
