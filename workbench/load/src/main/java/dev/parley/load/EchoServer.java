package dev.parley.load;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;

/**
 * The least that can answer HTTP: one thread that sends the same small reply to every request head it sees. What a load generator reaches
 * against it is the generator's own ceiling. Requests have no body.
 */
public final class EchoServer {
    static final String BODY = "Hello, World!";
    private static final byte[] REPLY = ("HTTP/1.1 200 OK\r\nContent-Length: " + BODY.length() + "\r\n\r\n" + BODY)
            .getBytes(StandardCharsets.US_ASCII);

    private static final ByteBuffer IN = ByteBuffer.allocateDirect(1024);
    /** A head is at least 16 bytes: room for as many replies as there can be heads in {@link #IN}. */
    private static final ByteBuffer OUT = ByteBuffer.allocateDirect(64 * REPLY.length);

    private EchoServer() {}

    /** Prints its port, then serves until its standard input ends. */
    public static void main(String[] args) throws IOException {
        try (ServerSocketChannel listening = ServerSocketChannel.open();
                Selector selector = Selector.open()) {
            listening.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1024);
            listening.configureBlocking(false);
            listening.register(selector, SelectionKey.OP_ACCEPT);
            System.out.println(listening.socket().getLocalPort());
            Thread.ofPlatform().name("input").daemon().start(EchoServer::endWithInput);
            while (selector.isOpen()) {
                serve(selector, listening);
            }
        }
    }

    private static void endWithInput() {
        try {
            while (System.in.read() >= 0) {
                // nothing is expected
            }
        } catch (IOException e) {
            System.err.println("echo: " + e);
        }
        System.exit(0);
    }

    private static void serve(Selector selector, ServerSocketChannel listening) throws IOException {
        selector.select();
        for (Iterator<SelectionKey> keys = selector.selectedKeys().iterator(); keys.hasNext(); keys.remove()) {
            SelectionKey key = keys.next();
            if (key.isAcceptable()) {
                SocketChannel client = listening.accept();
                if (client != null) {
                    client.configureBlocking(false);
                    client.setOption(java.net.StandardSocketOptions.TCP_NODELAY, true);
                    client.register(selector, SelectionKey.OP_READ, new Connection(client, IN, OUT));
                }
            } else if (key.attachment() instanceof Connection connection && !connection.answer()) {
                key.cancel();
                connection.channel.close();
            }
        }
    }

    private static final class Connection {
        private final SocketChannel channel;
        private final ByteBuffer in;
        private final ByteBuffer out;
        /** How much of the blank line that ends a head has been seen. */
        private int seen;

        /** @param in of all connections, since one thread serves them one after the other; {@code out} too */
        Connection(SocketChannel channel, ByteBuffer in, ByteBuffer out) {
            this.channel = channel;
            this.in = in;
            this.out = out;
        }

        boolean answer() {
            try {
                in.clear();
                if (channel.read(in) < 0) {
                    return false;
                }
                in.flip();
                out.clear();
                while (in.hasRemaining()) {
                    byte next = in.get();
                    boolean isExpected = next == (seen % 2 == 0 ? '\r' : '\n');
                    seen = isExpected ? seen + 1 : next == '\r' ? 1 : 0;
                    if (seen == 4) {
                        seen = 0;
                        out.put(REPLY);
                    }
                }
                out.flip();
                while (out.hasRemaining()) {
                    channel.write(out);
                }
                return true;
            } catch (IOException gone) {
                return false;
            }
        }
    }
}
