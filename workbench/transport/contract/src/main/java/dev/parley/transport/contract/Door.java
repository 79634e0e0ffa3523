package dev.parley.transport.contract;

import dev.parley.spi.Location;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A port before a server's: passes bytes on both ways, counts the connections and keeps the first bytes each way.
 * Thread-safe.
 */
public final class Door implements AutoCloseable {
    private static final int FIRST_BYTES = 64;

    private final ServerSocket door;
    private final Location behind;
    private final AtomicInteger accepted = new AtomicInteger();
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();

    /** What the first connection's client sent first, and its server. Each guarded by itself. */
    private final ByteArrayOutputStream first = new ByteArrayOutputStream();

    private final ByteArrayOutputStream firstBack = new ByteArrayOutputStream();

    /** @param behind the server that connections are passed on to; it need not be up yet */
    public Door(Location behind) {
        this.behind = behind;
        try {
            door = new ServerSocket(0, 1_000, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        Thread.ofVirtual().name("door").start(this::letIn);
    }

    /** Location that clients connect to. */
    public Location at() {
        return new Location.Socket("127.0.0.1", door.getLocalPort());
    }

    /** Connections so far, those that have ended among them. */
    public int accepted() {
        return accepted.get();
    }

    /** The first bytes that the first client sent, at most {@value #FIRST_BYTES}. */
    public byte[] first() {
        return copy(first);
    }

    /** The first bytes that the first client was sent, at most {@value #FIRST_BYTES}. */
    public byte[] firstBack() {
        return copy(firstBack);
    }

    private static byte[] copy(ByteArrayOutputStream kept) {
        synchronized (kept) {
            return kept.toByteArray();
        }
    }

    private void letIn() {
        try {
            while (true) {
                Socket client = door.accept();
                boolean isFirst = accepted.incrementAndGet() == 1;
                Socket server = new Socket(behind.host(), behind.port());
                client.setTcpNoDelay(true);
                server.setTcpNoDelay(true);
                open.add(client);
                open.add(server);
                Thread.ofVirtual().start(() -> pass(client, server, isFirst ? first : null));
                Thread.ofVirtual().start(() -> pass(server, client, isFirst ? firstBack : null));
            }
        } catch (IOException closed) {
            // the test has ended
        }
    }

    private void pass(Socket from, Socket to, @Nullable ByteArrayOutputStream kept) {
        byte[] bytes = new byte[8_192];
        try (from;
                to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int read = in.read(bytes); read >= 0; read = in.read(bytes)) {
                if (kept != null) {
                    keep(kept, bytes, read);
                }
                out.write(bytes, 0, read);
            }
        } catch (IOException ended) {
            // one side has ended
        } finally {
            open.remove(from);
            open.remove(to);
        }
    }

    private static void keep(ByteArrayOutputStream kept, byte[] bytes, int read) {
        synchronized (kept) {
            kept.write(bytes, 0, Math.min(read, FIRST_BYTES - kept.size()));
        }
    }

    /** Ends every connection. */
    @Override
    public void close() throws IOException {
        door.close();
        for (Socket socket : open) {
            socket.close();
        }
    }
}
