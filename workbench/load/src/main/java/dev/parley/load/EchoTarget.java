package dev.parley.load;

import dev.parley.spi.CallException;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Deque;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.jspecify.annotations.Nullable;

/**
 * {@link EchoServer} over kept connections, as many as there are requests at once. Replies are compared byte by byte
 * from the end.
 */
final class EchoTarget implements Target {
    private static final byte[] REQUEST =
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] END = ("\r\n\r\n" + EchoServer.BODY).getBytes(StandardCharsets.US_ASCII);

    private final int port;
    private final Deque<Connection> free = new ConcurrentLinkedDeque<>();
    private final Deque<Sent> idle = new ConcurrentLinkedDeque<>();
    private @Nullable Selector replies;

    EchoTarget(int port) {
        this.port = port;
    }

    private static final class Connection {
        private final SocketChannel channel;
        private final ByteBuffer out = ByteBuffer.allocateDirect(REQUEST.length).put(REQUEST);
        private final ByteBuffer in = ByteBuffer.allocateDirect(4096);

        Connection(int port) throws IOException {
            channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        }

        boolean ask() throws IOException {
            out.rewind();
            while (out.hasRemaining()) {
                channel.write(out);
            }
            in.clear();
            while (!endsWith(in, END)) {
                if (!in.hasRemaining() || channel.read(in) < 0) {
                    return false;
                }
            }
            return true;
        }

        private static boolean endsWith(ByteBuffer in, byte[] end) {
            int from = in.position() - end.length;
            for (int i = end.length - 1; from >= 0 && i >= 0; i--) {
                if (in.get(from + i) != end[i]) {
                    return false;
                }
            }
            return from >= 0;
        }
    }

    @Override
    public boolean call(int place, long index) {
        try {
            Connection connection = free.pollFirst();
            if (connection == null) {
                connection = new Connection(port);
            }
            boolean isRight = connection.ask();
            free.addFirst(connection);
            return isRight;
        } catch (IOException e) {
            throw new CallException(CallException.Code.UNAVAILABLE, e.toString());
        }
    }

    /**
     * Written from the thread that asks; replies are read by one thread for all connections, as clients over Netty do.
     */
    @Override
    public void send(int place, long index, Asker asker) {
        try {
            Sent connection = idle.pollFirst();
            if (connection == null) {
                connection = new Sent(port, replies());
            }
            connection.send(asker);
        } catch (IOException e) {
            throw new CallException(CallException.Code.UNAVAILABLE, e.toString());
        }
    }

    private synchronized Selector replies() throws IOException {
        Selector selector = replies;
        if (selector == null) {
            selector = Selector.open();
            replies = selector;
            Selector opened = selector;
            Thread.ofPlatform().name("echo-replies").daemon().start(() -> read(opened));
        }
        return selector;
    }

    private void read(Selector selector) {
        try {
            while (selector.isOpen()) {
                selector.select(key -> {
                    if (key.attachment() instanceof Sent connection) {
                        connection.read(idle);
                    }
                });
            }
        } catch (IOException | ClosedSelectorException closed) {
            // nobody waits for a reply any more
        }
    }

    /** One request at a time. */
    private static final class Sent {
        private static final Asker NOBODY = (isRight, failure) -> {};

        private final SocketChannel channel;
        private final ByteBuffer out = ByteBuffer.allocateDirect(REQUEST.length).put(REQUEST);
        private final ByteBuffer in = ByteBuffer.allocateDirect(4096);
        private volatile Asker asker = NOBODY;

        Sent(int port, Selector replies) throws IOException {
            channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            channel.configureBlocking(false);
            channel.register(replies, SelectionKey.OP_READ, this);
            replies.wakeup();
        }

        void send(Asker asked) throws IOException {
            in.clear();
            asker = asked;
            out.rewind();
            while (out.hasRemaining()) {
                channel.write(out);
            }
        }

        void read(Deque<Sent> idle) {
            Asker waiting = asker;
            try {
                if (channel.read(in) < 0 || !in.hasRemaining()) {
                    throw new IOException("no reply of this server");
                }
                if (Connection.endsWith(in, END)) {
                    idle.addFirst(this);
                    waiting.ended(true, null);
                }
            } catch (IOException e) {
                close(channel);
                waiting.ended(false, new CallException(CallException.Code.UNAVAILABLE, e.toString()));
            }
        }
    }

    private static void close(Closeable open) {
        try {
            open.close();
        } catch (IOException e) {
            // it is closed either way
        }
    }

    @Override
    public synchronized void close() {
        for (Connection connection = free.pollFirst(); connection != null; connection = free.pollFirst()) {
            close(connection.channel);
        }
        Selector selector = replies;
        if (selector != null) {
            selector.keys().forEach(key -> close(key.channel()));
            close(selector);
            replies = null;
        }
        idle.clear();
    }
}
