package dev.rpcx.review;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * One side of a connection, controlled byte by byte. It is written only from the text of the wire's page, and uses
 * nothing of RPCX.
 */
final class BytePeer implements AutoCloseable {
    static final int SETTINGS = 1;
    static final int DICTIONARY = 2;
    static final int REQUEST = 3;
    static final int NOTICE = 4;
    static final int PART = 5;
    static final int REPLY = 6;
    static final int ERROR = 7;
    static final int CANCEL = 8;
    static final int ITEM = 9;
    static final int CREDIT = 11;
    static final int PING = 13;
    static final int PONG = 14;
    static final int MORE = 0x10;
    static final int NAMED = 0x20;
    static final int TIME = 0x80;

    record Frame(int head, int id, byte[] payload) {
        int type() {
            return head & 15;
        }

        boolean isWhole() {
            return (head & MORE) == 0;
        }

        /**
         * Returns the time that a request by name carries, in microseconds, or {@link Long#MAX_VALUE} if it carries
         * none.
         */
        long micros() {
            if ((head & NAMED) == 0 || (head & TIME) == 0) {
                return Long.MAX_VALUE;
            }
            int at = 1 + payload[0];
            at += 1 + payload[at];
            long micros = 0;
            for (int shift = 0; ; shift += 7, at++) {
                micros |= (payload[at] & 0x7FL) << shift;
                if (payload[at] >= 0) {
                    return micros;
                }
            }
        }
    }

    final Socket socket;
    private final OutputStream out;
    private final DataInputStream in;
    private final ByteArrayOutputStream gathered = new ByteArrayOutputStream();

    private BytePeer(Socket socket) throws IOException {
        this.socket = socket;
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(20_000);
        out = socket.getOutputStream();
        in = new DataInputStream(socket.getInputStream());
    }

    /** Makes a client, which has sent its preface and settings. */
    static BytePeer client(int port) throws IOException {
        return client(port, "127.0.0.1");
    }

    /** Makes a client with this address. */
    static BytePeer client(int port, String address) throws IOException {
        BytePeer peer =
                new BytePeer(new Socket(InetAddress.getLoopbackAddress(), port, InetAddress.getByName(address), 0));
        peer.preface();
        peer.send(SETTINGS, 0);
        return peer;
    }

    static ServerSocket listen() throws IOException {
        ServerSocket listening = new ServerSocket();
        // the buffer is small, so that a sender soon waits for a peer that does not read
        listening.setReceiveBufferSize(4096);
        listening.setSoTimeout(20_000);
        listening.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        return listening;
    }

    /** Makes a server, which publishes nothing by number and accepts this many calls at once. */
    static BytePeer server(ServerSocket listening, int maxCalls) throws IOException {
        BytePeer peer = new BytePeer(listening.accept());
        peer.in.readLong();
        peer.preface();
        peer.send(SETTINGS, 0, bytes(new byte[] {0x10}, varint(maxCalls)));
        peer.send(DICTIONARY, 0);
        return peer;
    }

    static byte[] bytes(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }

    static byte[] varint(long value) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        long rest = value;
        while ((rest & ~0x7FL) != 0) {
            all.write((int) rest & 0x7F | 0x80);
            rest >>>= 7;
        }
        all.write((int) rest);
        return all.toByteArray();
    }

    /** Returns the beginning of a request by name. */
    static byte[] named(String service, String method) {
        byte[] first = service.getBytes(StandardCharsets.UTF_8);
        byte[] second = method.getBytes(StandardCharsets.UTF_8);
        return bytes(new byte[] {(byte) first.length}, first, new byte[] {(byte) second.length}, second);
    }

    /** Returns a message whose field 1 is this text. */
    static byte[] text(String text) {
        byte[] value = text.getBytes(StandardCharsets.UTF_8);
        return bytes(new byte[] {0x0A}, varint(value.length), value);
    }

    private void preface() throws IOException {
        out.write(new byte[] {0x52, 0x50, 0x43, 0x58, 1, 0, 0, 0});
    }

    void readPreface() throws IOException {
        in.readLong();
    }

    /** Adds a frame that is sent with the next {@link #send} or {@link #flush}. */
    void gather(int head, int id, byte[]... payload) {
        byte[] body = bytes(payload);
        gathered.writeBytes(varint(5 + body.length));
        gathered.write(head);
        gathered.writeBytes(ByteBuffer.allocate(4).putInt(id).array());
        gathered.writeBytes(body);
    }

    void send(int head, int id, byte[]... payload) throws IOException {
        gather(head, id, payload);
        flush();
    }

    void flush() throws IOException {
        byte[] all = gathered.toByteArray();
        gathered.reset();
        out.write(all);
        out.flush();
    }

    Frame read() throws IOException {
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
        byte[] payload = new byte[length - 5];
        in.readFully(payload);
        return new Frame(head, id, payload);
    }

    /** Returns the next frame of one of these types, and ignores others. */
    Frame read(int type, int other) throws IOException {
        while (true) {
            Frame frame = read();
            if (frame.type() == type || frame.type() == other) {
                return frame;
            }
        }
    }

    /**
     * Reads up to this empty frame.
     *
     * @return how many bytes that were
     */
    long bytesUntil(int head, int id) throws IOException {
        byte[] wanted = bytes(
                new byte[] {5, (byte) head}, ByteBuffer.allocate(4).putInt(id).array());
        byte[] all = new byte[1 << 20];
        int behind = 0;
        long count = 0;
        while (true) {
            int read = in.read(all, behind, all.length - behind);
            if (read < 0) {
                throw new EOFException();
            }
            count += read;
            int end = behind + read;
            if (end >= wanted.length && Arrays.equals(all, end - wanted.length, end, wanted, 0, wanted.length)) {
                return count;
            }
            // the beginning of the frame may be at the end of what was read
            behind = Math.min(end, wanted.length);
            System.arraycopy(all, end - behind, all, 0, behind);
        }
    }

    /** Returns the next final frame. */
    Frame answer() throws IOException {
        return read(REPLY, ERROR);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
