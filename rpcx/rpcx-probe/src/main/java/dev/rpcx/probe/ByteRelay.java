package dev.rpcx.probe;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Passes TCP connections on to a target, and counts the bytes in each direction. The counts include the framing of the
 * protocol above TCP, but not the headers of IP and TCP. A relay can also trouble its connections, as a bad network
 * does. Each relay adds latency. So benchmarks use one without trouble only while they count bytes, and never while
 * they measure latency.
 *
 * <p>The relay passes bytes on before it counts them. So a caller that has received a reply may find the last bytes of
 * the reply not counted yet. {@link #settled()} waits for them. Each direction of a connection has two virtual threads,
 * and a connection that will be cut has one more. Thread-safe.
 */
public final class ByteRelay implements AutoCloseable {
    private static final int CHUNK_BYTES = 8 * 1024;

    /** Largest number of chunks under way in one direction. With a delay of 100 ms, they allow some 20 MB/s. */
    private static final int MAX_CHUNKS_UNDER_WAY = 256;

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

    /**
     * What the connections of a relay suffer.
     *
     * @param delay time that is added to what passes, in each direction. It does not hold back what follows
     * @param bytesPerSecond number of bytes that pass at most in a second, on each connection and in each direction
     * @param cutEvery time after which a connection is reset
     */
    public record Trouble(Duration delay, Optional<Long> bytesPerSecond, Optional<Duration> cutEvery) {
        public static final Trouble NONE = new Trouble(Duration.ZERO, Optional.empty(), Optional.empty());

        public Trouble {
            if (delay.isNegative()) {
                throw new IllegalArgumentException("delay: " + delay + " (expected: 0 or more)");
            }
            bytesPerSecond.ifPresent(bytes -> {
                if (bytes < 1) {
                    throw new IllegalArgumentException("bytesPerSecond: " + bytes + " (expected: 1 or more)");
                }
            });
            cutEvery.ifPresent(cut -> {
                if (!cut.isPositive()) {
                    throw new IllegalArgumentException("cutEvery: " + cut + " (expected: more than 0)");
                }
            });
        }
    }

    /**
     * Bytes that are under way. A chunk without bytes marks the end of the stream.
     *
     * @param dueNs time at which they are passed on, on the clock of {@link System#nanoTime()}
     */
    private record Chunk(byte[] bytes, long dueNs) {
        boolean isEnd() {
            return bytes.length == 0;
        }
    }

    private final ServerSocket listener;
    private final InetSocketAddress target;
    private final Trouble trouble;
    private final LongAdder out = new LongAdder();
    private final LongAdder back = new LongAdder();
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();

    private ByteRelay(ServerSocket listener, InetSocketAddress target, Trouble trouble) {
        this.listener = listener;
        this.target = target;
        this.trouble = trouble;
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
            return start(InetAddress.getLoopbackAddress(), listen, host, port, Trouble.NONE);
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "no loopback port for the byte relay" + (listen == 0 ? "" : ": " + listen), e);
        }
    }

    /**
     * Starts a relay that troubles its connections, on a free port.
     *
     * @param address address of this machine that callers connect to
     */
    public static ByteRelay troubled(String address, String host, int port, Trouble trouble) {
        try {
            return start(InetAddress.getByName(address), 0, host, port, trouble);
        } catch (IOException e) {
            throw new UncheckedIOException("no free port at " + address + " for a relay: " + e.getMessage(), e);
        }
    }

    private static ByteRelay start(InetAddress address, int listen, String host, int port, Trouble trouble)
            throws IOException {
        ByteRelay relay =
                new ByteRelay(new ServerSocket(listen, 0, address), new InetSocketAddress(host, port), trouble);
        Thread.ofVirtual().name("byte-relay-accept").start(relay::accept);
        return relay;
    }

    /** Returns the address that callers connect to. */
    public String host() {
        return listener.getInetAddress().getHostAddress();
    }

    /** Returns the port that callers connect to. */
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
        OutputStream toCaller;
        OutputStream toCallee;
        try {
            caller.setTcpNoDelay(true);
            callee.setTcpNoDelay(true);
            callee.connect(target);
            // Both before anything is read: a reset that is read at once closes its socket, and a closed socket has
            // none.
            toCaller = caller.getOutputStream();
            toCallee = callee.getOutputStream();
        } catch (IOException refused) {
            // Without a relay, the caller could not connect. Here its connection ends.
            end(caller);
            end(callee);
            return;
        }
        pass(caller, callee, toCallee, out);
        pass(callee, caller, toCaller, back);
        trouble.cutEvery()
                .ifPresent(after -> Thread.ofVirtual().name("byte-relay-cut").start(() -> {
                    await(System.nanoTime() + after.toNanos());
                    cut(caller);
                    cut(callee);
                }));
    }

    private void pass(Socket from, Socket to, OutputStream stream, LongAdder counter) {
        BlockingQueue<Chunk> underWay = new ArrayBlockingQueue<>(MAX_CHUNKS_UNDER_WAY);
        Thread.ofVirtual().name("byte-relay-in").start(() -> read(from, underWay));
        Thread.ofVirtual().name("byte-relay-out").start(() -> write(from, to, stream, underWay, counter));
    }

    private void read(Socket from, BlockingQueue<Chunk> underWay) {
        byte[] buffer = new byte[CHUNK_BYTES];
        try {
            try {
                InputStream in = from.getInputStream();
                for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                    underWay.put(chunk(Arrays.copyOf(buffer, n)));
                }
            } catch (IOException ended) {
                // What came before is still passed on. Then the connection ends, because this socket is closed.
                end(from);
            }
            underWay.put(chunk(new byte[0]));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private Chunk chunk(byte[] bytes) {
        return new Chunk(bytes, System.nanoTime() + trouble.delay().toNanos());
    }

    private void write(Socket from, Socket to, OutputStream stream, BlockingQueue<Chunk> underWay, LongAdder counter) {
        long freeNs = System.nanoTime();
        try {
            while (true) {
                Chunk chunk = underWay.take();
                await(chunk.dueNs());
                if (chunk.isEnd()) {
                    to.shutdownOutput();
                    if (from.isClosed() || from.isOutputShutdown()) { // The other direction has ended too.
                        end(from);
                        end(to);
                    }
                    return;
                }
                if (trouble.bytesPerSecond().isPresent()) {
                    freeNs = Math.max(freeNs, System.nanoTime())
                            + chunk.bytes().length
                                    * 1_000_000_000L
                                    / trouble.bytesPerSecond().get();
                    await(freeNs);
                }
                stream.write(chunk.bytes());
                counter.add(chunk.bytes().length);
            }
        } catch (IOException ended) {
            end(from);
            end(to);
            // This wakes a reader that waits for room. The reader then finds its socket closed.
            underWay.clear();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void await(long dueNs) {
        for (long left = dueNs - System.nanoTime(); left > 0; left = dueNs - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    /** Resets the connection, as a link that breaks does. Without this, the connection would end in an orderly way. */
    private void cut(Socket socket) {
        try {
            socket.setSoLinger(true, 0);
        } catch (IOException alreadyGone) {
            // The socket is closed, which is all that is needed.
        }
        end(socket);
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
