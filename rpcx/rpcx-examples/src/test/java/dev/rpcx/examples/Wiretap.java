package dev.rpcx.examples;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Passes the bytes of one connection on between a client and a server, and keeps the messages that it has seen. */
public final class Wiretap implements AutoCloseable {
    private static final int REQUEST = 3;
    private static final int REPLY = 6;
    private static final int ITEM = 9;
    private static final int NAMED = 0x20;
    private static final int METADATA = 0x40;
    private static final int TIME = 0x80;

    private final ServerSocket listening;
    private final ByteArrayOutputStream sent = new ByteArrayOutputStream();
    private final ByteArrayOutputStream received = new ByteArrayOutputStream();

    public Wiretap(int serverPort) throws IOException {
        listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        start(() -> {
            try (Socket client = listening.accept();
                    Socket server = new Socket("127.0.0.1", serverPort)) {
                client.setTcpNoDelay(true);
                server.setTcpNoDelay(true);
                Thread back = start(() -> copy(server, client, received));
                copy(client, server, sent);
                back.join();
            } catch (IOException | InterruptedException ended) {
                // the test is over
            }
        });
    }

    private static Thread start(Runnable task) {
        Thread thread = new Thread(task, "wiretap");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void copy(Socket from, Socket to, ByteArrayOutputStream kept) {
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] some = new byte[8192];
            for (int n = in.read(some); n >= 0; n = in.read(some)) {
                // the bytes are kept first, so that a caller that has its reply finds it here
                kept.write(some, 0, n);
                out.write(some, 0, n);
            }
            to.shutdownOutput();
        } catch (IOException ended) {
            try {
                to.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    public int port() {
        return listening.getLocalPort();
    }

    /** Returns the bodies of requests and items on their way to the server. */
    public List<byte[]> sent() {
        return bodies(sent.toByteArray());
    }

    /** Returns the bodies of items and replies on their way back. */
    public List<byte[]> received() {
        return bodies(received.toByteArray());
    }

    /** Returns the bodies of whole frames. There are no others, since the examples' messages are small. */
    private static List<byte[]> bodies(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        in.position(8);
        List<byte[]> bodies = new ArrayList<>();
        while (in.hasRemaining()) {
            int end = varint(in) + in.position();
            int head = in.get() & 0xFF;
            in.getInt();
            int type = head & 0x0F;
            if (type == REQUEST) {
                if ((head & NAMED) != 0) {
                    in.position(in.get() + in.position());
                    in.position(in.get() + in.position());
                } else {
                    varint(in);
                }
                if ((head & TIME) != 0) {
                    varint(in);
                }
                if ((head & METADATA) != 0) {
                    in.position(varint(in) + in.position());
                }
            }
            byte[] body = new byte[end - in.position()];
            in.get(body);
            if (type == REQUEST || type == REPLY || type == ITEM) {
                bodies.add(body);
            }
        }
        return bodies;
    }

    private static int varint(ByteBuffer in) {
        int value = 0;
        for (int shift = 0; ; shift += 7) {
            int b = in.get();
            value |= (b & 0x7F) << shift;
            if (b >= 0) {
                return value;
            }
        }
    }

    @Override
    public void close() throws IOException {
        listening.close();
    }
}
