package dev.parley.transport.openfeign;

import dev.parley.model.BadInput;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.parley.transport.springweb.Problems;
import feign.FeignException;
import feign.Request;
import feign.RetryableException;
import feign.codec.DecodeException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import tools.jackson.databind.json.JsonMapper;

/** Calls one service through a Feign client. */
final class OpenFeignNeighbour implements Neighbour {
    private final Location to;
    private final FeignClients clients;
    private final Map<String, Method> methods;
    private final AtomicBoolean closed = new AtomicBoolean();

    private interface Method {
        Record call(Record request, Request.Options timeouts);
    }

    OpenFeignNeighbour(FeignClients clients, Contract contract, Location to) {
        if (!contract.name().equals("messages")) {
            throw new BadInput("contract", contract.name(), "one with a Feign interface: messages");
        }
        this.to = to;
        this.clients = clients;
        MessagesClient client = clients.enter(
                MessagesClient.class, to.toString(), "http://" + to.host() + ":" + to.port() + "/" + contract.name());
        this.methods = Map.of(
                "onlyText", (request, timeouts) -> client.onlyText((TestModelOnlyText) request, timeouts),
                "allTypes", (request, timeouts) -> client.allTypes((TestModelAllTypesList) request, timeouts),
                "gatherText", (request, timeouts) -> client.gatherText((TestModelOnlyText) request, timeouts),
                "gatherTypes", (request, timeouts) -> client.gatherTypes((TestModelAllTypesList) request, timeouts));
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        Method method = methods.get(operation.name());
        if (method == null) {
            throw new CallException(Code.NOT_FOUND, "no method " + operation.name() + " in the Feign interface");
        }
        if (closed.get()) {
            throw new CallException(Code.UNAVAILABLE, "the client of " + to + " is closed");
        }
        try {
            return operation
                    .reply()
                    .cast(method.call(
                            request,
                            new Request.Options(
                                    timeout.toMillis(),
                                    TimeUnit.MILLISECONDS,
                                    timeout.toMillis(),
                                    TimeUnit.MILLISECONDS,
                                    false)));
        } catch (DecodeException e) {
            throw new CallException(Code.PROTOCOL, to + ": " + e.getMessage(), e);
        } catch (RetryableException e) {
            throw switch (e.getCause()) {
                case InterruptedIOException late ->
                    new CallException(
                            Code.DEADLINE_EXCEEDED, to + " did not answer within " + timeout.toMillis() + " ms", late);
                case null, default ->
                    new CallException(Code.UNAVAILABLE, to + " cannot be reached: " + e.getCause(), e);
            };
        } catch (FeignException e) {
            throw Problems.read(e.status(), e.contentUTF8().getBytes(StandardCharsets.UTF_8));
        } finally {
            clients.done();
        }
    }

    @Override
    public long payloadBytes(Record message) {
        return JsonMapper.shared().writeValueAsBytes(message).length;
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            clients.leave();
        }
    }
}
