package dev.rpcx;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A cable between a client and a server. If a test pulls it, both sides can still send bytes, but the bytes are lost,
 * and neither side notices.
 */
public final class Link implements AutoCloseable {
    private final ServerSocket listening;
    private final int target;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private volatile boolean pulled;

    public Link(int target) {
        this.target = target;
        try {
            listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        start(this::accept);
    }

    public int port() {
        return listening.getLocalPort();
    }

    public void pull() {
        pulled = true;
    }

    /** Ends the connections that are there, both ways at once. */
    public void cut() {
        for (Socket socket : sockets) {
            sockets.remove(socket);
            try {
                socket.setSoLinger(true, 0);
                socket.close();
            } catch (IOException e) {
                // the connection is gone already
            }
        }
    }

    private static void start(Runnable task) {
        Thread thread = new Thread(task, "link");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listening.accept();
                Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
                sockets.add(client);
                sockets.add(server);
                start(() -> carry(client, server));
                start(() -> carry(server, client));
            }
        } catch (IOException e) {
            // the link has been closed
        }
    }

    private void carry(Socket from, Socket to) {
        byte[] bytes = new byte[8192];
        try (from) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int read = in.read(bytes); read >= 0; read = in.read(bytes)) {
                if (!pulled) {
                    out.write(bytes, 0, read);
                }
            }
            if (!pulled) {
                to.close();
            }
        } catch (IOException e) {
            // one of the two is gone
        }
    }

    @Override
    public void close() throws IOException {
        listening.close();
        for (Socket socket : sockets) {
            socket.close();
        }
    }
}
