package dev.rpcx;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * A server's address and the connections to it, made when first needed and made again when one is gone. Callers that find none wait for
 * one attempt together.
 */
final class ClientAddress {
    private final Client client;
    final String host;
    final int port;
    private @Nullable CompletableFuture<ClassicClientConnection> classic;
    private final AtomicReferenceArray<@Nullable CompletableFuture<ClientConnection>> connections;

    ClientAddress(Client client, String host, int port, int connections) {
        this.client = client;
        this.host = host;
        this.port = port;
        this.connections = new AtomicReferenceArray<>(connections);
    }

    /** A connection that is there, or null. */
    @Nullable
    ClientConnection ready() {
        CompletableFuture<ClientConnection> found = connections.get(index());
        if (found != null && found.isDone() && !found.isCompletedExceptionally()) {
            ClientConnection connection = found.join();
            return connection.isUsable() ? connection : null;
        }
        return null;
    }

    /** A thread keeps to one connection: its calls stay in order and its path warm. */
    private int index() {
        int count = connections.length();
        return count == 1 ? 0 : (int) (Thread.currentThread().getId() % count);
    }

    CompletableFuture<ClientConnection> connect() {
        int index = index();
        while (true) {
            CompletableFuture<ClientConnection> found = connections.get(index);
            if (found != null && isUsableOrComing(found)) {
                return found;
            }
            CompletableFuture<ClientConnection> attempt = new CompletableFuture<>();
            if (connections.compareAndSet(index, found, attempt)) {
                client.open(
                        this, channel -> new ClientConnection(channel, toString(), client.callTimeoutNanos()), attempt);
                return attempt;
            }
        }
    }

    /** The one connection on the classic wire. */
    synchronized CompletableFuture<ClassicClientConnection> connectClassic() {
        CompletableFuture<ClassicClientConnection> found = classic;
        if (found == null
                || found.isCompletedExceptionally()
                || found.isDone() && !found.join().isUsable()) {
            found = new CompletableFuture<>();
            classic = found;
            client.open(this, channel -> new ClassicClientConnection(channel, toString()), found);
        }
        return found;
    }

    private static boolean isUsableOrComing(CompletableFuture<ClientConnection> found) {
        return !found.isDone()
                || !found.isCompletedExceptionally() && found.join().isUsable();
    }

    /** Waits for a connection, at most until the deadline. Not on an event loop, which would wait for itself. */
    ClientConnection await(long deadlineNanos) {
        refuseBlocking();
        ClientConnection ready = ready();
        if (ready != null) {
            return ready;
        }
        try {
            return connect().get(Math.max(0, deadlineNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw unreachable(this, e.getCause());
        } catch (TimeoutException e) {
            throw new RPCXException(
                    RPCXException.Code.DEADLINE_EXCEEDED,
                    this + ": not connected in time",
                    RPCXException.Executed.NOT_EXECUTED);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RPCXException(
                    RPCXException.Code.CANCELLED, "the caller was interrupted", RPCXException.Executed.NOT_EXECUTED);
        }
    }

    static void refuseBlocking() {
        LoopThread.refuse("a blocking call", "an asynchronous call, or a handler or callback that runs elsewhere");
    }

    static RPCXException unreachable(ClientAddress address, @Nullable Throwable cause) {
        String why = cause == null ? "no connection" : String.valueOf(cause.getMessage());
        return new RPCXException(
                RPCXException.Code.UNAVAILABLE, address + ": " + why, RPCXException.Executed.NOT_EXECUTED, cause);
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
