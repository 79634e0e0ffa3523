package dev.parley.transport.websocket;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.websocket.WsConfig;
import io.helidon.webserver.websocket.WsRouting;
import io.helidon.websocket.WsCloseCodes;
import io.helidon.websocket.WsListener;
import io.helidon.websocket.WsSession;
import java.net.StandardSocketOptions;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Answers messages in the order in which their handlers finish. */
final class WebSocketServer implements Transport.Server {
    /**
     * As much as Linux lets a program ask for by default. Helidon asks for 4 KiB, far less than a packet of the loopback interface: TCP then
     * sends again after 200 ms, 400 ms and so on, and calls of some kilobytes stand still for seconds.
     */
    private static final int RECEIVE_BUFFER = 212_992;

    /** Held here, since the JDK forgets the level of a logger that nobody holds. Start and stop are the service's to report. */
    private static final Logger HELIDON = Logger.getLogger("io.helidon");

    static {
        HELIDON.setLevel(Level.WARNING);
    }

    private static final Duration GRACE = Duration.ofMillis(400);

    private final Contract contract;
    private final Handler handler;
    private final WebServer server;
    private final ExecutorService requests = Executors.newVirtualThreadPerTaskExecutor();

    WebSocketServer(Contract contract, Location at, Handler handler) {
        this.contract = contract;
        this.handler = handler;
        server = WebServer.builder()
                .host(at.host())
                .port(at.port())
                .connectionOptions(options -> options.tcpNoDelay(true))
                .putListenerSocketOption(StandardSocketOptions.SO_RCVBUF, RECEIVE_BUFFER)
                .shutdownHook(false)
                .shutdownGracePeriod(GRACE)
                .addProtocol(
                        WsConfig.builder().maxFrameLength(Envelope.MOST_CHARS).build())
                .addRouting(WsRouting.builder().endpoint(WebSocketTransport.PATH, Connection::new))
                .build()
                .start();
        if (!server.isRunning()) {
            requests.close();
            // Helidon has written why into the log
            throw new CallException(Code.UNAVAILABLE, "cannot listen on " + at + " (is the port taken?)");
        }
    }

    /** One client's WebSocket. Read by one thread; written by the threads of its requests, one at a time, as Helidon wants it. */
    private final class Connection implements WsListener {
        private final ReentrantLock writing = new ReentrantLock();
        private final StringBuilder parts = new StringBuilder();

        @Override
        public void onMessage(WsSession session, String part, boolean last) {
            if (parts.length() + part.length() > Envelope.MOST_CHARS) {
                parts.setLength(0);
                WebSocketServer.close(
                        session, writing, WsCloseCodes.TOO_BIG, "over " + Envelope.MOST_CHARS + " characters");
                return;
            }
            if (!last) {
                parts.append(part);
                return;
            }
            String text = parts.isEmpty() ? part : parts.append(part).toString();
            parts.setLength(0);
            try {
                requests.execute(() -> answer(session, writing, text));
            } catch (RejectedExecutionException e) {
                WebSocketServer.close(session, writing, WsCloseCodes.GOING_AWAY, "closing");
            }
        }
    }

    private void answer(WsSession session, ReentrantLock writing, String text) {
        long id;
        try {
            id = Envelope.id(text);
        } catch (CallException e) {
            // nobody can be told which call it was
            close(session, writing, WsCloseCodes.NOT_CONSISTENT, "not a message");
            return;
        }
        String reply;
        try {
            Envelope.Request request = Envelope.request(text, contract);
            if (request.operation() == null || request.body() == null) {
                throw new CallException(
                        Code.NOT_FOUND, "no operation " + request.operationName() + " in " + contract.name());
            }
            reply = Envelope.reply(id, handled(request.operation(), request.body()));
        } catch (RuntimeException | Error e) {
            reply = Envelope.error(id, CallException.of(e));
        }
        writing.lock();
        try {
            session.send(reply, true);
        } catch (RuntimeException e) {
            // the caller is gone, and with it everyone who could be told
            System.getLogger(WebSocketServer.class.getName())
                    .log(System.Logger.Level.DEBUG, "reply " + id + " not sent", e);
        } finally {
            writing.unlock();
        }
    }

    private static void close(WsSession session, ReentrantLock writing, int code, String reason) {
        writing.lock();
        try {
            session.close(code, reason);
        } finally {
            writing.unlock();
        }
    }

    private <Q extends Record, R extends Record> R handled(Operation<Q, R> operation, Record request) {
        return handler.handle(operation, operation.request().cast(request));
    }

    @Override
    public void close() {
        requests.shutdown();
        try {
            if (!requests.awaitTermination(GRACE.toMillis(), TimeUnit.MILLISECONDS)) {
                requests.shutdownNow();
            }
        } catch (InterruptedException e) {
            requests.shutdownNow();
            Thread.currentThread().interrupt();
        }
        server.stop();
    }
}
