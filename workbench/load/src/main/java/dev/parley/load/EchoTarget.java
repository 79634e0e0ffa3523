package dev.parley.load;

import dev.parley.spi.CallException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Deque;
import java.util.concurrent.ConcurrentLinkedDeque;

/** {@link EchoServer} over kept connections, as many as there are callers at once. Replies are compared byte by byte from the end. */
final class EchoTarget implements Target {
    private static final byte[] REQUEST =
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] END = ("\r\n\r\n" + EchoServer.BODY).getBytes(StandardCharsets.US_ASCII);

    private final int port;
    private final Deque<Connection> free = new ConcurrentLinkedDeque<>();

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
    public boolean call(int step, long index) {
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

    /** On a virtual thread, as over a technology that has no asynchronous client. */
    @Override
    public void send(int step, long index, Asker asker) {
        Thread.ofVirtual().start(() -> {
            try {
                asker.ended(call(step, index), null);
            } catch (CallException e) {
                asker.ended(false, e);
            }
        });
    }

    @Override
    public void close() {
        for (Connection connection = free.pollFirst(); connection != null; connection = free.pollFirst()) {
            try {
                connection.channel.close();
            } catch (IOException e) {
                // it is closed either way
            }
        }
    }
}
