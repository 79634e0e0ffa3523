package dev.parley.transport.websocket;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import dev.parley.transport.websocketcalls.Answers;
import dev.parley.transport.websocketcalls.Envelope;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.websocket.WsConfig;
import io.helidon.webserver.websocket.WsRouting;
import io.helidon.websocket.WsListener;
import io.helidon.websocket.WsSession;
import java.net.StandardSocketOptions;
import java.util.concurrent.locks.ReentrantLock;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/** A Helidon server whose one endpoint takes every operation. */
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

    private final Answers answers;
    private final WebServer server;

    WebSocketServer(Contract contract, Location at, Handler handler) {
        answers = new Answers(contract, handler);
        server = WebServer.builder()
                .host(at.host())
                .port(at.port())
                .connectionOptions(options -> options.tcpNoDelay(true))
                .putListenerSocketOption(StandardSocketOptions.SO_RCVBUF, RECEIVE_BUFFER)
                .shutdownHook(false)
                .shutdownGracePeriod(GRACE)
                .addProtocol(
                        WsConfig.builder().maxFrameLength(Envelope.MAX_CHARS).build())
                .addRouting(WsRouting.builder().endpoint(WebSocketTransport.PATH, Connection::new))
                .build()
                .start();
        if (!server.isRunning()) {
            answers.close();
            // Helidon has written why into the log
            throw new CallException(Code.UNAVAILABLE, "cannot listen on " + at + " (is the port taken?)");
        }
    }

    /** One client's WebSocket. Read by one thread. */
    private final class Connection implements WsListener {
        private Answers.@Nullable Incoming incoming;

        @Override
        public void onMessage(WsSession session, String part, boolean last) {
            Answers.Incoming begun = incoming;
            if (begun == null) {
                begun = answers.incoming(new Client(session));
                incoming = begun;
            }
            begun.received(part, last);
        }
    }

    /** Written by the threads of its requests, one at a time, as Helidon wants it. */
    private static final class Client implements Answers.Peer {
        private final WsSession session;
        private final ReentrantLock writing = new ReentrantLock();

        Client(WsSession session) {
            this.session = session;
        }

        @Override
        public void send(String text) {
            writing.lock();
            try {
                session.send(text, true);
            } finally {
                writing.unlock();
            }
        }

        @Override
        public void close(int code, String reason) {
            writing.lock();
            try {
                session.close(code, reason);
            } finally {
                writing.unlock();
            }
        }
    }

    @Override
    public void close() {
        answers.close();
        server.stop();
    }
}
