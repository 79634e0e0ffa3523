package dev.rpcx.probe;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/**
 * Passes TCP connections on to a target, and counts the bytes in each direction. The counts include the framing of the
 * protocol above TCP, but not the headers of IP and TCP. A relay adds latency, so benchmarks use it only while they
 * count bytes, and never while they measure latency.
 *
 * <p>The relay passes bytes on before it counts them. So a caller that has received a reply may find the last bytes of
 * the reply not counted yet. {@link #settled()} waits for them. Each connection has two virtual threads. Thread-safe.
 */
public final class ByteRelay implements AutoCloseable {
    private static final int BUFFER_BYTES = 64 * 1024;

    /**
     * Numbers of bytes that the relay has passed on, over all connections.
     *
     * @param out bytes from callers to the target
     * @param back bytes from the target to callers
     */
    public record Counts(long out, long back) {
        public Counts since(Counts earlier) {
            return new Counts(out - earlier.out, back - earlier.back);
        }
    }

    private final ServerSocket listener;
    private final InetSocketAddress target;
    private final LongAdder out = new LongAdder();
    private final LongAdder back = new LongAdder();
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();

    private ByteRelay(ServerSocket listener, InetSocketAddress target) {
        this.listener = listener;
        this.target = target;
    }

    /** Starts a relay on a free port of the loopback address. */
    public static ByteRelay to(String host, int port) {
        return at(0, host, port);
    }

    /**
     * Starts a relay on a port of the loopback address.
     *
     * @param listen port that callers connect to; with 0, the system chooses a free one
     */
    public static ByteRelay at(int listen, String host, int port) {
        try {
            ByteRelay relay = new ByteRelay(
                    new ServerSocket(listen, 0, InetAddress.getLoopbackAddress()), new InetSocketAddress(host, port));
            Thread.ofVirtual().name("byte-relay-accept").start(relay::accept);
            return relay;
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "no loopback port for the byte relay" + (listen == 0 ? "" : ": " + listen), e);
        }
    }

    public int port() {
        return listener.getLocalPort();
    }

    /**
     * Returns the counts as soon as they have not changed for 20 ms. If bytes are still passed on after about a second,
     * this method returns the counts of that time.
     */
    public Counts settled() throws InterruptedException {
        Counts before = new Counts(out.sum(), back.sum());
        for (int i = 0; i < 50; i++) {
            Thread.sleep(20);
            Counts now = new Counts(out.sum(), back.sum());
            if (now.equals(before)) {
                return now;
            }
            before = now;
        }
        return before;
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket caller = listener.accept();
                open.add(caller);
                Thread.ofVirtual().name("byte-relay").start(() -> connect(caller));
            } catch (IOException closed) {
                return;
            }
        }
    }

    private void connect(Socket caller) {
        Socket callee = new Socket();
        open.add(callee);
        try {
            caller.setTcpNoDelay(true);
            callee.setTcpNoDelay(true);
            callee.connect(target);
            Thread.ofVirtual().name("byte-relay").start(() -> pass(callee, caller, back));
            pass(caller, callee, out);
        } catch (IOException refused) {
            // Without a relay, the caller could not connect. Here its connection ends.
            end(caller);
            end(callee);
        }
    }

    private void pass(Socket from, Socket to, LongAdder counter) {
        byte[] buffer = new byte[BUFFER_BYTES];
        try {
            for (int n = from.getInputStream().read(buffer);
                    n >= 0;
                    n = from.getInputStream().read(buffer)) {
                to.getOutputStream().write(buffer, 0, n);
                counter.add(n);
            }
            to.shutdownOutput();
            if (from.isOutputShutdown()) { // The other direction has ended too.
                end(from);
                end(to);
            }
        } catch (IOException ended) {
            end(from);
            end(to);
        }
    }

    private void end(Socket socket) {
        open.remove(socket);
        try {
            socket.close();
        } catch (IOException alreadyGone) {
            // The socket is closed, which is all that is needed.
        }
    }

    /** Stops listening, and closes all connections. */
    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException alreadyGone) {
            // The socket is closed, which is all that is needed.
        }
        open.forEach(this::end);
    }
}
