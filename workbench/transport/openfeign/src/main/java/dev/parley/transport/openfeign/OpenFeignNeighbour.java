package dev.parley.transport.openfeign;

import dev.parley.model.BadInput;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.json.Order;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.lecturers.Token;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.transport.springweb.Photos;
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
        this.to = to;
        this.clients = clients;
        String url = "http://" + to.host() + ":" + to.port() + "/" + contract.name();
        this.methods = switch (contract.name()) {
            case "messages" -> messages(clients.enter(MessagesClient.class, to.toString(), url));
            case "json" -> json(clients.enter(JsonClient.class, to.toString(), url));
            case "lecturers" -> lecturers(clients.enter(LecturersClient.class, to.toString(), url));
            case "records" -> records(clients.enter(RecordsClient.class, to.toString(), url));
            default ->
                throw new BadInput(
                        "contract", contract.name(), "one with a Feign interface: messages, json, lecturers, records");
        };
    }

    private static Map<String, Method> messages(MessagesClient client) {
        return Map.of(
                "onlyText", (request, timeouts) -> client.onlyText((TestModelOnlyText) request, timeouts),
                "allTypes", (request, timeouts) -> client.allTypes((TestModelAllTypesList) request, timeouts),
                "gatherText", (request, timeouts) -> client.gatherText((TestModelOnlyText) request, timeouts),
                "gatherTypes", (request, timeouts) -> client.gatherTypes((TestModelAllTypesList) request, timeouts));
    }

    private static Map<String, Method> json(JsonClient client) {
        return Map.of(
                "get", (request, timeouts) -> client.get(timeouts),
                "post", (request, timeouts) -> client.post((Order) request, timeouts));
    }

    private static Map<String, Method> lecturers(LecturersClient client) {
        return Map.of(
                "authenticate", (request, timeouts) -> client.authenticate((Credentials) request, timeouts),
                "check", (request, timeouts) -> client.check((Token) request, timeouts),
                "flat", (request, timeouts) -> client.flat((Page) request, timeouts),
                "nested", (request, timeouts) -> client.nested((Page) request, timeouts),
                "profile", (request, timeouts) -> client.profile((ProfileAsked) request, timeouts),
                "named", (request, timeouts) -> client.named((NameAsked) request, timeouts));
    }

    private static Map<String, Method> records(RecordsClient client) {
        return Map.of(
                "all", (request, timeouts) -> client.all(timeouts),
                "add", (request, timeouts) -> client.add((Entry) request, timeouts),
                "edit", (request, timeouts) -> client.edit((Entry) request, timeouts),
                "delete", (request, timeouts) -> client.delete((EntryId) request, timeouts),
                "upload",
                        (request, timeouts) ->
                                client.upload(((Photo) request).name(), ((Photo) request).content(), timeouts),
                "download", (request, timeouts) -> Photos.read(client.download((PhotoName) request, timeouts)));
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
        return message instanceof Photo photo
                ? photo.content().length
                : JsonMapper.shared().writeValueAsBytes(message).length;
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            clients.leave();
        }
    }
}
