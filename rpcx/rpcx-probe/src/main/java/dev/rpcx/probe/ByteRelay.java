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
 * Passes TCP connections on to a target and counts every byte each way: what a hop's protocol puts on the wire, framing included, without
 * IP and TCP headers. Stands in front of a service only while bytes are counted, never while latency is.
 *
 * <p>A byte is counted after it was passed on, so a reader that has seen a reply may find its last bytes counted a moment later: read the
 * counts with {@link #settled()}. Thread-safe.
 */
public final class ByteRelay implements AutoCloseable {
    private static final int BUFFER_BYTES = 64 * 1024;

    /** Bytes from callers to the target, and from the target back. */
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

    /** Listens on a free loopback port. */
    public static ByteRelay to(String host, int port) {
        return at(0, host, port);
    }

    /** Listens on a given loopback port, 0 for a free one. */
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

    /** The counts once no byte has moved for 20 ms, which ends a steady exchange; at most a second is waited. */
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
            // the caller sees its connection end, as it would without a relay
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
            if (from.isOutputShutdown()) { // the other direction has ended too
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
            // closing is all that was wanted
        }
    }

    /** Ends all connections. */
    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException alreadyGone) {
            // closing is all that was wanted
        }
        open.forEach(this::end);
    }
}
