package dev.rpcx.testing;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A bad network between a client and a server of the native wire: it listens on a port of this host, and passes frames on as its
 * {@link Faults} say. Real sockets on both sides, so everything above them is the real thing. Two daemon threads a connection. Without
 * sockets: {@code Client.builder().faults}.
 *
 * <pre>{@code
 * try (FaultyLink link = FaultyLink.to("127.0.0.1", server.port(), Faults.seeded(42).losing(0.01).cutting(0.001))) {
 *     Greeter greeter = client.create(Greeter.class, "127.0.0.1", link.port());
 *     …
 * }
 * }</pre>
 */
public final class FaultyLink implements AutoCloseable {
    private static final int PREFACE_BYTES = 8;
    private static final int HEAD_BYTES = 5;
    private static final int MAX_FRAME_BYTES = 16 * 1024;
    private static final long ACCEPT_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final ServerSocket listening;
    private final InetSocketAddress server;
    private final Faults faults;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private final AtomicLong harmed = new AtomicLong();

    private FaultyLink(InetSocketAddress server, Faults faults, ServerSocket listening) {
        this.server = server;
        this.faults = faults;
        this.listening = listening;
    }

    /**
     * Listens, and returns when it can be reached.
     *
     * @throws IOException no port is to be had
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

    /** Where it listens, on the loopback address. */
    public int port() {
        return listening.getLocalPort();
    }

    /** How many faults there have been. */
    public long faults() {
        return harmed.get();
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
                // closed; or nothing can be accepted for a while, such as for want of descriptors
                LockSupport.parkNanos(ACCEPT_PAUSE_NANOS);
                continue;
            }
            try {
                connect(client, connections++);
            } catch (IOException e) {
                // the server is not there, which the client sees as a connection that ends
            }
        }
    }

    private void connect(Socket client, long connection) throws IOException {
        sockets.add(client);
        Socket target = new Socket();
        sockets.add(target);
        try {
            target.connect(server);
            client.setTcpNoDelay(true);
            target.setTcpNoDelay(true);
        } catch (IOException e) {
            end(client, target);
            throw e;
        }
        start("rpcx-faulty-link-up", () -> carry(client, target, faults.random(connection, true)));
        start("rpcx-faulty-link-down", () -> carry(target, client, faults.random(connection, false)));
    }

    private void end(Socket one, Socket other) {
        for (Socket socket : new Socket[] {one, other}) {
            sockets.remove(socket);
            try {
                socket.close();
            } catch (IOException e) {
                // gone already
            }
        }
    }

    private void carry(Socket from, Socket to, Random random) {
        try {
            DataInputStream in = new DataInputStream(new BufferedInputStream(from.getInputStream()));
            OutputStream out = to.getOutputStream();
            out.write(in.readNBytes(PREFACE_BYTES));
            byte[] held = null;
            while (true) {
                byte[] frame = readFrame(in);
                held = pass(frame, held, out, random);
            }
        } catch (IOException e) {
            // either side has ended, or the link has cut both
        } finally {
            end(from, to);
        }
    }

    /** @return the frame that waits for the next one; null for none */
    private byte @Nullable [] pass(byte[] frame, byte @Nullable [] held, OutputStream out, Random random)
            throws IOException {
        if (!isOfCall(frame)) {
            out.write(frame);
            return held;
        }
        // drawn for frames of calls alone: how many PINGs there are is the clock's affair, and not the seed's
        Faults.Fate fate = faults.fate(random);
        harmed.addAndGet(fate.faults());
        if (fate.isDelayed()) {
            LockSupport.parkNanos(faults.delayedBy().toNanos());
        }
        if (fate.isCut()) {
            throw new IOException("cut");
        }
        if (fate.isLate() && held == null && !fate.isLost()) {
            return frame;
        }
        for (int times = fate.isLost() ? 0 : fate.isDoubled() ? 2 : 1; times > 0; times--) {
            out.write(frame);
        }
        if (held != null) {
            out.write(held);
        }
        return null;
    }

    private static boolean isOfCall(byte[] frame) {
        int at = 0;
        while (frame[at] < 0) {
            at++;
        }
        // behind the length stands the head, behind that the call's id
        return (frame[at + 2] | frame[at + 3] | frame[at + 4] | frame[at + 5]) != 0;
    }

    private static byte[] readFrame(DataInputStream in) throws IOException {
        byte[] header = new byte[3];
        int length = 0;
        int bytes = 0;
        do {
            if (bytes == header.length) {
                throw new IOException("no frame of the native wire");
            }
            header[bytes] = in.readByte();
            length |= (header[bytes] & 0x7F) << 7 * bytes;
        } while (header[bytes++] < 0);
        if (length < HEAD_BYTES || length > MAX_FRAME_BYTES) {
            throw new IOException("no frame of the native wire");
        }
        byte[] frame = new byte[bytes + length];
        System.arraycopy(header, 0, frame, 0, bytes);
        in.readFully(frame, bytes, length);
        return frame;
    }

    /** Ends the link and every connection over it. */
    @Override
    public void close() throws IOException {
        listening.close();
        for (Socket socket : sockets) {
            end(socket, socket);
        }
    }
}
