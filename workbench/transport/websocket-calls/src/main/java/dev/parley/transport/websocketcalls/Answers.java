package dev.parley.transport.websocketcalls;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Answers messages in the order in which their handlers finish, each on a virtual thread. Thread-safe. */
public final class Answers implements AutoCloseable {
    /** Source of the codes: RFC 6455, section 7.4.1. */
    private static final int GOING_AWAY = 1001;

    private static final int NOT_CONSISTENT = 1007;
    private static final int TOO_BIG = 1009;

    private final Contract contract;
    private final Handler handler;
    private final ExecutorService requests = Executors.newVirtualThreadPerTaskExecutor();

    /** Clients to tell that this server closes. Weak, since a library may not tell of each end of a connection. */
    private final Set<Incoming> clients = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    public Answers(Contract contract, Handler handler) {
        this.contract = contract;
        this.handler = handler;
    }

    /** One client's WebSocket, as the server's library writes it. Called by many threads at once. */
    public interface Peer {
        /** Sends one text message. @throws RuntimeException if the client is gone */
        void send(String text);

        /** Ends the connection. */
        void close(int code, String reason);
    }

    /** What a client sends. Read by one thread at a time. */
    public final class Incoming {
        private final Peer peer;
        private final StringBuilder parts = new StringBuilder();
        private final AtomicBoolean hasLeft = new AtomicBoolean();

        private Incoming(Peer peer) {
            this.peer = peer;
        }

        /** @param last whether the message ends with this part */
        public void received(String part, boolean last) {
            if (parts.length() + part.length() > Envelope.MAX_CHARS) {
                parts.setLength(0);
                peer.close(TOO_BIG, "over " + Envelope.MAX_CHARS + " characters");
                return;
            }
            if (!last) {
                parts.append(part);
                return;
            }
            String text = parts.isEmpty() ? part : parts.append(part).toString();
            parts.setLength(0);
            try {
                requests.execute(() -> answer(peer, text));
            } catch (RejectedExecutionException e) {
                goodbye();
            }
        }

        private void goodbye() {
            if (hasLeft.compareAndSet(false, true)) {
                peer.close(GOING_AWAY, "closing");
            }
        }
    }

    public Incoming incoming(Peer peer) {
        Incoming incoming = new Incoming(peer);
        clients.add(incoming);
        return incoming;
    }

    private void answer(Peer peer, String text) {
        long id;
        try {
            id = Envelope.id(text);
        } catch (CallException e) {
            // nobody can be told which call it was
            peer.close(NOT_CONSISTENT, "not a message");
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
        try {
            peer.send(reply);
        } catch (RuntimeException e) {
            // the caller is gone, and with it everyone who could be told
            System.getLogger(Answers.class.getName()).log(System.Logger.Level.DEBUG, "reply " + id + " not sent", e);
        }
    }

    private <Q extends Record, R extends Record> R handled(Operation<Q, R> operation, Record request) {
        return handler.handle(operation, operation.request().cast(request));
    }

    /**
     * Gives calls under way {@link Transport.Server#GRACE}, then interrupts them, and tells each client that the server
     * goes away, for which it has as long again.
     *
     * <p>A connection that only ends is not enough: the client of java.net.http (JDK 25.0.3) loses that end where it
     * comes while a message is given to its listener, and then takes the connection for open.
     */
    @Override
    public void close() {
        end(requests);
        List<Incoming> told;
        synchronized (clients) {
            told = List.copyOf(clients);
        }
        ExecutorService goodbyes = Executors.newVirtualThreadPerTaskExecutor();
        told.forEach(client -> goodbyes.execute(() -> {
            try {
                client.goodbye();
            } catch (RuntimeException e) {
                System.getLogger(Answers.class.getName()).log(System.Logger.Level.DEBUG, "a client is gone", e);
            }
        }));
        end(goodbyes);
    }

    private static void end(ExecutorService tasks) {
        tasks.shutdown();
        try {
            if (!tasks.awaitTermination(Transport.Server.GRACE.toMillis(), TimeUnit.MILLISECONDS)) {
                tasks.shutdownNow();
            }
        } catch (InterruptedException e) {
            tasks.shutdownNow();
            Thread.currentThread().interrupt();
        }
    }
}
