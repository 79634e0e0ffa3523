package dev.rpcx.testing;

import dev.rpcx.internal.wire.FaultyFrames;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Simulates a bad network between a client and a server of the native wire, RPCX's default wire protocol, without TLS.
 * A link listens on a port of this host, and passes frames between real sockets with random {@link Faults}. A link has
 * one daemon thread, and two more for each connection.
 *
 * <p>A client can also simulate the same faults itself, by {@code Client.builder().faults}. Such a client needs no
 * {@code FaultyLink}, and can also call servers in its own process without sockets.
 *
 * <pre>{@code
 * try (FaultyLink link = FaultyLink.to("127.0.0.1", server.port(), Faults.seeded(42).losing(0.01).cutting(0.001))) {
 *     Greeter greeter = client.create(Greeter.class, "127.0.0.1", link.port());
 *     …
 * }
 * }</pre>
 */
public final class FaultyLink implements AutoCloseable {
    private static final int READ_BYTES = 16 * 1024;
    private static final long ACCEPT_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final ServerSocket listening;
    private final InetSocketAddress server;
    private final Faults faults;

    /**
     * Sockets of the connections. The accepting thread adds the two sockets of a connection. It removes them again if
     * the server cannot be reached or the link is closed. Otherwise a thread of the connection, or the thread that
     * closes the link, removes them.
     */
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();

    /** Number of faults so far. The threads of all connections add to it. */
    private final AtomicLong faultCount = new AtomicLong();

    private FaultyLink(InetSocketAddress server, Faults faults, ServerSocket listening) {
        this.server = server;
        this.faults = faults;
        this.listening = listening;
    }

    /**
     * Starts a link to the server at this host and port. Returns when clients can reach the link.
     *
     * @throws IOException if no port is available
     */
    public static FaultyLink to(String host, int port, Faults faults) throws IOException {
        Objects.requireNonNull(host, "host: null (expected: a name or an address)");
        Objects.requireNonNull(faults, "faults: null (expected: Faults.seeded(…))");
        return to(new InetSocketAddress(host, port), faults, new ServerSocket(0, 50, InetAddress.getLoopbackAddress()));
    }

    static FaultyLink to(InetSocketAddress server, Faults faults, ServerSocket listening) {
        FaultyLink link = new FaultyLink(server, faults, listening);
        start("rpcx-faulty-link", link::accept);
        return link;
    }

    /** Returns the port on which the link listens, on the loopback address only. */
    public int port() {
        return listening.getLocalPort();
    }

    /** Returns the number of faults so far, counted over all frames of all connections in both directions. */
    public long faults() {
        return faultCount.get();
    }

    private static void start(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        long connections = 0;
        while (!listening.isClosed()) {
            Socket client;
            try {
                client = listening.accept();
            } catch (IOException e) {
                // the link is closed, or cannot accept for a while, for example because no file descriptor is free
                LockSupport.parkNanos(ACCEPT_PAUSE_NANOS);
                continue;
            }
            try {
                connect(client, connections++);
            } catch (IOException e) {
                // the server cannot be reached: the client sees that its connection ends
            }
        }
    }

    private void connect(Socket client, long connection) throws IOException {
        sockets.add(client);
        Socket target = new Socket();
        sockets.add(target);
        if (listening.isClosed()) {
            // close() may have gone through the sockets before these two were added
            end(client, target);
            return;
        }
        try {
            target.connect(server);
            client.setTcpNoDelay(true);
            target.setTcpNoDelay(true);
        } catch (IOException e) {
            end(client, target);
            throw e;
        }
        start("rpcx-faulty-link-up", () -> passOn(client, target, new FaultyFrames(faults, connection, true)));
        start("rpcx-faulty-link-down", () -> passOn(target, client, new FaultyFrames(faults, connection, false)));
    }

    private void end(Socket one, Socket other) {
        for (Socket socket : new Socket[] {one, other}) {
            sockets.remove(socket);
            try {
                socket.close();
            } catch (IOException e) {
                // the socket counts as closed even if closing it has failed
            }
        }
    }

    private void passOn(Socket from, Socket to, FaultyFrames frames) {
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] arrived = new byte[READ_BYTES];
            for (int read = in.read(arrived); read >= 0; read = in.read(arrived)) {
                faultCount.addAndGet(frames.add(Unpooled.wrappedBuffer(arrived, 0, read)));
                for (FaultyFrames.Due due = frames.poll(); due != null; due = frames.poll()) {
                    parkUntil(due.atNanos());
                    ByteBuf frame = due.frame();
                    if (frame == null) {
                        return;
                    }
                    frame.readBytes(out, frame.readableBytes());
                }
            }
        } catch (IOException e) {
            // the connection has ended: by one of the two sides, by a fault in the other direction, or by close()
        } finally {
            end(from, to);
        }
    }

    private static void parkUntil(long nanos) {
        for (long wait = nanos - System.nanoTime(); wait > 0; wait = nanos - System.nanoTime()) {
            LockSupport.parkNanos(wait);
        }
    }

    /** Closes the link and all connections that pass through the link. */
    @Override
    public void close() throws IOException {
        listening.close();
        for (Socket socket : sockets) {
            end(socket, socket);
        }
    }
}
