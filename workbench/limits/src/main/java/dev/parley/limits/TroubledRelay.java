package dev.parley.limits;

import dev.parley.model.Limits.Proxy;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Passes TCP connections on to a service and makes them worse: delays what passes without holding back what follows,
 * lets through so many bytes a second, and cuts each connection after a time. Thread-safe; each direction of a
 * connection has two virtual threads.
 */
public final class TroubledRelay implements AutoCloseable {
    private static final int CHUNK_BYTES = 8 * 1024;
    /** What may be under way in one direction: with a delay of 100 ms some 20 MB/s. */
    private static final int CHUNKS_UNDER_WAY = 256;

    private final ServerSocket listener;
    private final InetSocketAddress target;
    private final Proxy proxy;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();

    /** Bytes on their way; no bytes at all mark the end of the stream. */
    private record Chunk(byte[] bytes, long dueNs) {}

    private TroubledRelay(ServerSocket listener, InetSocketAddress target, Proxy proxy) {
        this.listener = listener;
        this.target = target;
        this.proxy = proxy;
    }

    static TroubledRelay listen(String at, String host, int port, Proxy proxy) {
        try {
            ServerSocket listener = new ServerSocket(0, 0, InetAddress.getByName(at));
            TroubledRelay relay = new TroubledRelay(listener, new InetSocketAddress(host, port), proxy);
            Thread.ofVirtual().name("relay-accept").start(relay::accept);
            return relay;
        } catch (IOException e) {
            throw new LimitsException("no free port at " + at + " for a relay: " + e.getMessage(), e);
        }
    }

    public String host() {
        return listener.getInetAddress().getHostAddress();
    }

    public int port() {
        return listener.getLocalPort();
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket caller = listener.accept();
                open.add(caller);
                Thread.ofVirtual().name("relay").start(() -> connect(caller));
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
            direction(caller, callee);
            direction(callee, caller);
            proxy.cutEvery()
                    .ifPresent(after -> Thread.ofVirtual().name("relay-cut").start(() -> {
                        LockSupport.parkNanos(after.toNanos());
                        cut(caller);
                        cut(callee);
                    }));
        } catch (IOException refused) {
            // the caller sees its connection end, as it would without a relay
            end(caller);
            end(callee);
        }
    }

    private void direction(Socket from, Socket to) {
        BlockingQueue<Chunk> underWay = new ArrayBlockingQueue<>(CHUNKS_UNDER_WAY);
        Thread.ofVirtual().name("relay-in").start(() -> read(from, to, underWay));
        Thread.ofVirtual().name("relay-out").start(() -> write(from, to, underWay));
    }

    private void read(Socket from, Socket to, BlockingQueue<Chunk> underWay) {
        byte[] buffer = new byte[CHUNK_BYTES];
        try {
            InputStream in = from.getInputStream();
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                underWay.put(new Chunk(
                        Arrays.copyOf(buffer, n),
                        System.nanoTime() + proxy.delay().toNanos()));
            }
            underWay.put(
                    new Chunk(new byte[0], System.nanoTime() + proxy.delay().toNanos()));
        } catch (IOException ended) {
            end(from);
            end(to);
            // wakes a writer that waits
            underWay.clear();
            underWay.offer(new Chunk(new byte[0], System.nanoTime()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void write(Socket from, Socket to, BlockingQueue<Chunk> underWay) {
        long freeNs = System.nanoTime();
        try {
            OutputStream out = to.getOutputStream();
            while (true) {
                Chunk chunk = underWay.take();
                await(chunk.dueNs());
                if (chunk.bytes().length == 0) {
                    to.shutdownOutput();
                    if (from.isOutputShutdown()) { // the other direction has ended too
                        end(from);
                        end(to);
                    }
                    return;
                }
                if (proxy.bytesPerSecond().isPresent()) {
                    freeNs = Math.max(freeNs, System.nanoTime())
                            + chunk.bytes().length
                                    * 1_000_000_000L
                                    / proxy.bytesPerSecond().get();
                    await(freeNs);
                }
                out.write(chunk.bytes());
            }
        } catch (IOException ended) {
            end(from);
            end(to);
            // frees a reader that waits for room, which then sees its socket closed
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

    /** Closes with a reset, as a link that breaks does, and not with an orderly end. */
    private void cut(Socket socket) {
        try {
            socket.setSoLinger(true, 0);
        } catch (IOException alreadyGone) {
            // closing is all that was wanted
        }
        end(socket);
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
