package dev.rpcx;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A server that a test controls byte by byte. It sends what a test makes it send, and nothing else. */
public final class RawServer implements AutoCloseable {
    private final ServerSocket listening;

    public RawServer() throws IOException {
        listening = new ServerSocket();
        listening.setSoTimeout(20_000);
        // the buffer is small, so that a client soon has to wait when nobody reads
        listening.setReceiveBufferSize(4096);
        listening.bind(new java.net.InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    }

    public int port() {
        return listening.getLocalPort();
    }

    /** Accepts the next connection, and sends it a preface, settings, and an empty dictionary. */
    public Peer accept(int maxCalls) throws IOException {
        return accept(
                new Settings(Wire.MAX_MESSAGE_BYTES, maxCalls, Settings.INITIAL.defaultMicros()),
                Unpooled.EMPTY_BUFFER);
    }

    /** Accepts the next connection, and sends it these settings and a dictionary of what this server publishes. */
    public Peer accept(Settings settings, ByteBuf dictionary) throws IOException {
        Peer peer = accept();
        ByteBuf told = Unpooled.buffer();
        settings.write(told);
        peer.out.write(ByteBufUtil.getBytes(RawPeer.preface()));
        peer.send(Wire.SETTINGS, 0, told);
        peer.send(Wire.DICTIONARY, 0, dictionary);
        return peer;
    }

    /** Accepts the next connection, and sends nothing. */
    public Peer accept() throws IOException {
        return new Peer(listening.accept());
    }

    @Override
    public void close() throws IOException {
        listening.close();
    }

    /** Controls the server's side of one connection. */
    public static final class Peer implements AutoCloseable {
        private final Socket socket;
        private final OutputStream out;
        private final DataInputStream in;
        private boolean greeted;

        public Peer(Socket socket) throws IOException {
            this.socket = socket;
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(20_000);
            out = socket.getOutputStream();
            in = new DataInputStream(socket.getInputStream());
        }

        public void timeout(int millis) throws IOException {
            socket.setSoTimeout(millis);
        }

        public void shutdownOutput() throws IOException {
            socket.shutdownOutput();
        }

        public void write(ByteBuf bytes) throws IOException {
            out.write(ByteBufUtil.getBytes(bytes));
            out.flush();
        }

        public void send(int head, int id, ByteBuf payload) throws IOException {
            write(RawPeer.frame(head, id, payload));
        }

        public void send(int head, int id) throws IOException {
            send(head, id, Unpooled.EMPTY_BUFFER);
        }

        public void reply(int id, String text) throws IOException {
            send(Wire.REPLY, id, RawPeer.text(text));
        }

        public void error(int id, RPCXException.Code code) throws IOException {
            ByteBuf body = Unpooled.buffer();
            WireError.write(body, RPCXException.refused(code, "no"));
            send(Wire.ERROR, id, body);
        }

        /** Reads the client's next frame. */
        public RawPeer.Frame read() throws IOException {
            if (!greeted) {
                in.readLong();
                greeted = true;
            }
            int length = 0;
            for (int shift = 0; ; shift += 7) {
                int b = in.readUnsignedByte();
                length |= (b & 0x7F) << shift;
                if (b < 0x80) {
                    break;
                }
            }
            int head = in.readUnsignedByte();
            int id = in.readInt();
            byte[] payload = new byte[length - Wire.HEAD_BYTES];
            in.readFully(payload);
            return new RawPeer.Frame(head, id, payload);
        }

        /** Reads the client's next frame of this type, and passes over others. */
        public RawPeer.Frame read(int type) throws IOException {
            while (true) {
                RawPeer.Frame frame = read();
                if (frame.type() == type) {
                    return frame;
                }
            }
        }

        /** Ends the connection by a reset. */
        public void reset() throws IOException {
            socket.setSoLinger(true, 0);
            socket.close();
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    /** Holds the parts of a request by name. The body is what stands behind them. */
    public record Request(String service, String method, long micros, byte[] body) {
        /** @param micros -1 where the request does not carry a time */
        public static Request of(RawPeer.Frame frame) {
            ByteBuf in = Unpooled.wrappedBuffer(frame.payload());
            String service = name(in);
            String method = name(in);
            long micros = (frame.head() & Wire.TIME) != 0 ? Varint.read(in) : -1;
            return new Request(service, method, micros, Arrays.copyOf(ByteBufUtil.getBytes(in), in.readableBytes()));
        }

        private static String name(ByteBuf in) {
            return in.readCharSequence(in.readUnsignedByte(), StandardCharsets.UTF_8)
                    .toString();
        }
    }
}
