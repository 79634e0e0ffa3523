package dev.parley.transport.restcalls;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.Bulk;
import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.InputStream;
import java.net.StandardSocketOptions;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/**
 * One Helidon WebServer with a route for each operation, over those versions of HTTP whose modules are on the class
 * path.
 */
public final class RestServer implements Transport.Server {
    /**
     * The most that Linux lets a program ask for by default. Helidon asks for 4 KiB, far less than a packet of the
     * loopback interface: TCP then sends again after 200 ms, 400 ms and so on, and calls of some kilobytes stand still
     * for seconds.
     */
    private static final int RECEIVE_BUFFER = 212_992;

    /** Twice what the largest message of the works takes when every character of it is escaped. */
    public static final long MAX_BODY_BYTES = 64L << 20;

    /**
     * The logger is held here, since the JDK forgets the level of one that nobody holds. Start and stop are the
     * service's to report.
     */
    private static final Logger HELIDON = Logger.getLogger("io.helidon");

    static {
        HELIDON.setLevel(Level.WARNING);
    }

    private final WebServer server;

    private RestServer(WebServer server) {
        this.server = server;
    }

    /** @param closes whether each reply is its connection's last */
    public static RestServer start(Contract contract, Location at, Handler handler, boolean closes) {
        HttpRouting.Builder routes = HttpRouting.builder();
        for (Operation<?, ?> operation : contract.operations()) {
            route(routes, "/" + contract.name() + "/" + operation.name(), operation, handler, closes);
        }
        WebServer server = WebServer.builder()
                .host(at.host())
                .port(at.port())
                .connectionOptions(options -> options.tcpNoDelay(true))
                .putListenerSocketOption(StandardSocketOptions.SO_RCVBUF, RECEIVE_BUFFER)
                .maxPayloadSize(MAX_BODY_BYTES)
                .shutdownGracePeriod(GRACE)
                // the process decides when to end, not its server
                .shutdownHook(false)
                .addRouting(routes)
                .build();
        server.start();
        if (!server.isRunning()) {
            // Helidon has logged why, and throws nothing
            server.stop();
            throw new CallException(
                    CallException.Code.UNAVAILABLE,
                    "cannot listen on " + at + " (expected: a free port of this machine)");
        }
        return new RestServer(server);
    }

    private static <Q extends Record, R extends Record> void route(
            HttpRouting.Builder routes, String path, Operation<Q, R> operation, Handler handler, boolean closes) {
        switch (operation.kind()) {
            case FETCH -> {
                // an operation that sends no body has an empty record: one instance serves all calls
                Q nothing = JsonCodec.decode("{}".getBytes(StandardCharsets.UTF_8), operation.request());
                routes.get(
                        path,
                        (request, response) -> answer(operation, handler, nothing, request, last(response, closes)));
            }
            case QUERY, MUTATION ->
                routes.post(
                        path, (request, response) -> answer(operation, handler, null, request, last(response, closes)));
        }
    }

    private static ServerResponse last(ServerResponse response, boolean closes) {
        return closes ? response.header(HeaderValues.CONNECTION_CLOSE) : response;
    }

    private static <Q extends Record, R extends Record> void answer(
            Operation<Q, R> operation,
            Handler handler,
            @Nullable Q known,
            ServerRequest request,
            ServerResponse response) {
        try {
            Q asked = known != null ? known : asked(operation.request(), request);
            send(response, operation, handler.handle(operation, asked));
        } catch (io.helidon.http.RequestException e) {
            // Helidon's own: a body above the limit, or cut off
            throw e;
        } catch (Unreadable e) {
            refuse(response, Problem.ofRequest(e.why));
        } catch (Exception | Error e) {
            refuse(response, Problem.of(CallException.of(e)));
        }
    }

    private static <R extends Record> void send(ServerResponse response, Operation<?, R> operation, R reply) {
        Optional<Bulk<R>> bulk = Bulk.of(operation.reply());
        if (bulk.isEmpty()) {
            byte[] body = JsonCodec.encode(reply);
            response.header(HeaderValues.CONTENT_TYPE_JSON).send(body);
            return;
        }
        bulk.get()
                .words(reply)
                .forEach((word, value) ->
                        response.header(HeaderNames.create(OctetStream.header(word)), OctetStream.encoded(value)));
        response.header(HeaderValues.CONTENT_TYPE_OCTET_STREAM).send(bulk.get().content(reply));
    }

    private static void refuse(ServerResponse response, Problem problem) {
        response.status(problem.status())
                .header(HeaderNames.CONTENT_TYPE, Problem.MEDIA_TYPE)
                .send(JsonCodec.encode(problem));
    }

    /** A request that cannot be read: the caller's fault, unlike a neighbour's answer that cannot be. */
    private static final class Unreadable extends RuntimeException {
        private final CallException why;

        Unreadable(CallException why) {
            super(why.getMessage(), why, false, false);
            this.why = why;
        }
    }

    private static <Q extends Record> Q asked(Class<Q> type, ServerRequest request) throws IOException {
        try {
            return read(type, request);
        } catch (CallException e) {
            throw new Unreadable(e);
        }
    }

    private static <Q extends Record> Q read(Class<Q> type, ServerRequest request) throws IOException {
        Optional<Bulk<Q>> bulk = Bulk.of(type);
        if (bulk.isEmpty()) {
            return JsonCodec.decode(request.content().inputStream(), type);
        }
        Map<String, String> words = new HashMap<>();
        bulk.get().wordNames().forEach(word -> request.query().first(word).ifPresent(value -> words.put(word, value)));
        try (InputStream content = request.content().inputStream()) {
            return bulk.get().of(words, content.readAllBytes());
        }
    }

    @Override
    public void close() {
        server.stop();
    }
}
