package dev.parley.transport.rpcx;

import dev.parley.spi.CallException;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codecs;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** A service of the contract {@code messages}, called through its proxy. */
final class MessagesNeighbour implements Neighbour {
    private final Client client = Client.standard();
    private final Codecs codecs = Codecs.standard();
    private final MessagesClient proxy;

    MessagesNeighbour(Location to) {
        proxy = client.create(MessagesClient.class, to.host(), to.port());
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        try {
            return operation.reply().cast(CallContext.within(timeout, () -> call(operation, request)));
        } catch (RPCXException e) {
            throw Errors.toCall(e);
        }
    }

    private Record call(Operation<?, ?> operation, Record request) {
        return switch (operation.name()) {
            case "onlyText" -> proxy.onlyText((TestModelOnlyText) request);
            case "allTypes" -> proxy.allTypes((TestModelAllTypesList) request);
            case "gatherText" -> proxy.gatherText((TestModelOnlyText) request);
            case "gatherTypes" -> proxy.gatherTypes((TestModelAllTypesList) request);
            default -> throw unknown(operation);
        };
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        try {
            return CallContext.within(timeout, () -> send(operation, request)).handle((reply, thrown) -> {
                if (thrown != null) {
                    throw failed(thrown);
                }
                return operation.reply().cast(reply);
            });
        } catch (RPCXException e) {
            return CompletableFuture.failedFuture(Errors.toCall(e));
        }
    }

    private CompletableFuture<? extends Record> send(Operation<?, ?> operation, Record request) {
        return switch (operation.name()) {
            case "onlyText" -> proxy.sendOnlyText((TestModelOnlyText) request);
            case "allTypes" -> proxy.sendAllTypes((TestModelAllTypesList) request);
            case "gatherText" -> proxy.sendGatherText((TestModelOnlyText) request);
            case "gatherTypes" -> proxy.sendGatherTypes((TestModelAllTypesList) request);
            default -> throw unknown(operation);
        };
    }

    private static CallException failed(Throwable thrown) {
        Throwable t = thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        return t instanceof RPCXException e ? Errors.toCall(e) : CallException.of(t);
    }

    private static CallException unknown(Operation<?, ?> operation) {
        return new CallException(CallException.Code.NOT_FOUND, "no operation " + operation.name() + " in messages");
    }

    @Override
    public long payloadBytes(Record message) {
        ByteBuf out = Unpooled.buffer();
        codecs.value(message.getClass()).write(message, out);
        return out.readableBytes();
    }

    @Override
    public void close() {
        client.close();
    }
}
