package dev.rpcx;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A client that a test controls byte by byte. It can do what the wire's page says, and whatever the page forbids. */
public final class RawPeer implements AutoCloseable {
    public record Frame(int head, int id, byte[] payload) {
        public int type() {
            return head & Wire.TYPE_MASK;
        }
    }

    public final Socket socket;
    private final OutputStream out;
    private final DataInputStream in;

    public RawPeer(int port) throws IOException {
        this(port, "127.0.0.1");
    }

    /** @param from an address of this host, such as 127.0.0.2, so that the server takes this peer for somebody else */
    public RawPeer(int port, String from) throws IOException {
        this(port, from, 0);
    }

    /**
     * @param receiveBytes about how many bytes the system takes for this peer before the peer reads; 0 for its standard
     */
    public RawPeer(int port, String from, int receiveBytes) throws IOException {
        socket = new Socket();
        if (receiveBytes > 0) {
            socket.setReceiveBufferSize(receiveBytes);
        }
        socket.bind(new InetSocketAddress(InetAddress.getByName(from), 0));
        socket.connect(new InetSocketAddress("127.0.0.1", port));
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(20_000);
        out = socket.getOutputStream();
        in = new DataInputStream(socket.getInputStream());
    }

    public static ByteBuf preface() {
        return Unpooled.buffer().writeInt(Wire.MAGIC).writeInt(Wire.VERSION << 24);
    }

    public static ByteBuf frame(int head, int id, ByteBuf payload) {
        ByteBuf frame = Unpooled.buffer();
        Varint.write(frame, Wire.HEAD_BYTES + payload.readableBytes());
        return frame.writeByte(head).writeInt(id).writeBytes(payload.duplicate());
    }

    /** Returns the same frame with a payload in which nothing that has numbers or lengths can be read. */
    public static ByteBuf unreadable(ByteBuf frame) {
        ByteBuf in = frame.duplicate();
        Varint.read(in);
        int head = in.readUnsignedByte();
        return frame(head, in.readInt(), Unpooled.buffer().writeLong(-1).writeInt(-1));
    }

    /** Returns a request by name whose only argument is a text. */
    public static ByteBuf request(int id, String service, String method, String text) {
        return frame(Wire.REQUEST | Wire.NAMED, id, prelude(service, method).writeBytes(text(text)));
    }

    public static ByteBuf prelude(String service, String method) {
        ByteBuf prelude = Unpooled.buffer();
        for (String name : new String[] {service, method}) {
            byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
            prelude.writeByte(bytes.length).writeBytes(bytes);
        }
        return prelude;
    }

    /** Returns a message whose field 1 is a text. */
    public static ByteBuf text(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        ByteBuf message = Unpooled.buffer();
        message.writeByte(1 << 3 | 2);
        Varint.write(message, bytes.length);
        return message.writeBytes(bytes);
    }

    public void send(ByteBuf bytes) throws IOException {
        out.write(ByteBufUtil.getBytes(bytes));
        out.flush();
    }

    public Frame read() throws IOException {
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
        return new Frame(head, id, payload);
    }

    public void readPreface() throws IOException {
        if (in.readInt() != Wire.MAGIC || in.readInt() != Wire.VERSION << 24) {
            throw new IOException("no preface");
        }
    }

    /** Reads the next frame that is neither SETTINGS nor DICTIONARY. */
    public Frame readAnswer() throws IOException {
        while (true) {
            Frame frame = read();
            if (frame.type() != Wire.SETTINGS && frame.type() != Wire.DICTIONARY) {
                return frame;
            }
        }
    }

    /** Returns the number of bytes that have come and have not been read. */
    public int available() throws IOException {
        return in.available();
    }

    /** Reads everything until the server closes. */
    public byte[] readToEnd() throws IOException {
        try {
            return in.readAllBytes();
        } catch (java.net.SocketException reset) {
            // the server has closed while bytes of this peer were unread, which counts as the same end
            return new byte[0];
        }
    }

    public byte[] read(int bytes) throws IOException {
        byte[] read = new byte[bytes];
        in.readFully(read);
        return read;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
