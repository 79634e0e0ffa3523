package dev.parley.transport.rpcx;

import dev.parley.spi.CallException;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codecs;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** A service called through the proxy of its contract's interface. */
final class RpcxNeighbour<C> implements Neighbour {
    private final Client client;
    private final Codecs codecs;
    private final Binding<C> binding;
    private final C proxy;

    /** @param client closed with this neighbour */
    RpcxNeighbour(Binding<C> binding, Client client, Location to) {
        this.binding = binding;
        this.client = client;
        this.proxy = client.create(binding.client(), to.host(), to.port());
        this.codecs = Codecs.standard(binding.client());
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        Binding.Call<C> call = binding.call(operation);
        try {
            return operation
                    .reply()
                    .cast(CallContext.within(timeout, () -> call.blocking().apply(proxy, request)));
        } catch (RPCXException e) {
            throw Errors.toCall(e);
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        Binding.Call<C> call = binding.call(operation);
        try {
            CompletableFuture<? extends Record> sent =
                    CallContext.within(timeout, () -> call.sending().apply(proxy, request));
            return sent.handle((reply, thrown) -> {
                if (thrown != null) {
                    throw failed(thrown);
                }
                return operation.reply().cast(reply);
            });
        } catch (RPCXException e) {
            return CompletableFuture.failedFuture(Errors.toCall(e));
        }
    }

    private static CallException failed(Throwable thrown) {
        Throwable t = thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        return t instanceof RPCXException e ? Errors.toCall(e) : CallException.of(t);
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
