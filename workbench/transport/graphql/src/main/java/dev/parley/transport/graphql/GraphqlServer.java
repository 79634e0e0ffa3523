package dev.parley.transport.graphql;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.net.StandardSocketOptions;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import tools.jackson.core.JacksonException;

/** {@code POST /graphql} on Helidon. A response with {@code data} or field errors is 200; one that could not be read is 400. */
final class GraphqlServer implements Transport.Server {
    /**
     * As much as Linux lets a program ask for by default. Helidon asks for 4 KiB, far less than a packet of the loopback interface: TCP then
     * sends again after 200 ms, 400 ms and so on, and calls of some kilobytes stand still for seconds.
     */
    private static final int RECEIVE_BUFFER = 212_992;

    /** Twice what the largest message of the works takes when every character of it is escaped. */
    static final long MAX_BODY_BYTES = 64L << 20;

    /** Held here, since the JDK forgets the level of a logger that nobody holds. Start and stop are the service's to report. */
    private static final Logger HELIDON = Logger.getLogger("io.helidon");

    static {
        HELIDON.setLevel(Level.WARNING);
    }

    private final GraphqlEngine engine;
    private final WebServer server;

    GraphqlServer(GraphqlEngine engine, Location at) {
        this.engine = engine;
        server = WebServer.builder()
                .host(at.host())
                .port(at.port())
                .connectionOptions(options -> options.tcpNoDelay(true))
                .putListenerSocketOption(StandardSocketOptions.SO_RCVBUF, RECEIVE_BUFFER)
                .maxPayloadSize(MAX_BODY_BYTES)
                .shutdownHook(false)
                .shutdownGracePeriod(GRACE)
                .addRouting(HttpRouting.builder().post(Wire.PATH, this::answer))
                .build()
                .start();
        if (!server.isRunning()) {
            // Helidon has written why into the log
            throw new CallException(Code.UNAVAILABLE, "cannot listen on " + at + " (is the port taken?)");
        }
    }

    private void answer(ServerRequest request, ServerResponse response) {
        Wire.Request asked;
        try {
            asked = Wire.JSON.readValue(request.content().inputStream(), Wire.Request.class);
        } catch (JacksonException e) {
            send(
                    response,
                    Status.BAD_REQUEST_400,
                    Map.of(
                            "errors",
                            List.of(new Wire.Fault(
                                    "not a GraphQL request: " + e.getOriginalMessage(),
                                    Map.of(GraphqlEngine.CODE, Code.PROTOCOL.name())))));
            return;
        }
        send(response, Status.OK_200, engine.execute(asked));
    }

    private static void send(ServerResponse response, Status status, Map<String, Object> body) {
        response.status(status)
                .header(HeaderNames.CONTENT_TYPE, Wire.REPLY_TYPE)
                .send(Wire.JSON.writeValueAsBytes(body));
    }

    @Override
    public void close() {
        server.stop();
    }
}
