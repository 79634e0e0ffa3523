package dev.rpcx.examples;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.MessageLite;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Calls a server with messages that protoc generated, as the wire's page says: none of RPCX's own code is in it. */
public final class RawCaller implements AutoCloseable {
    private static final int REQUEST = 3;
    private static final int REPLY = 6;
    private static final int ERROR = 7;
    private static final int ITEM = 9;
    private static final int END = 10;
    private static final int CREDIT = 11;
    private static final int NAMED = 0x20;

    private final Socket socket;
    private final DataOutputStream out;
    private final DataInputStream in;
    private int generation;

    /** Holds what came back: the items of a stream, and the reply after them. */
    public record Answer(List<byte[]> items, byte[] reply) {}

    public RawCaller(int port) throws IOException {
        socket = new Socket("127.0.0.1", port);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(20_000);
        out = new DataOutputStream(socket.getOutputStream());
        in = new DataInputStream(socket.getInputStream());
        out.write(new byte[] {'R', 'P', 'C', 'X', 1, 0, 0, 0, 5, 1, 0, 0, 0, 0});
        in.readNBytes(8);
    }

    /** Sends one request, and returns its reply. */
    public byte[] call(String service, String method, MessageLite request) throws IOException {
        return call(service, method, request, List.of()).reply;
    }

    /** Makes a call that takes or brings a stream. If it takes none, {@code items} is empty. */
    public Answer call(String service, String method, MessageLite request, List<? extends MessageLite> items)
            throws IOException {
        int id = ++generation << 16;
        ByteArrayOutputStream first = new ByteArrayOutputStream();
        for (String name : List.of(service, method)) {
            first.write(name.length());
            first.write(name.getBytes(StandardCharsets.UTF_8));
        }
        request.writeTo(first);
        send(REQUEST | NAMED, id, first.toByteArray());
        send(CREDIT, id, new byte[] {100});
        List<byte[]> answers = new ArrayList<>();
        int sent = 0;
        while (true) {
            int length = varint(in);
            int head = in.readUnsignedByte();
            int of = in.readInt();
            byte[] payload = in.readNBytes(length - 5);
            if (of != id) {
                continue;
            }
            switch (head) {
                case REPLY -> {
                    return new Answer(answers, payload);
                }
                case ITEM -> answers.add(payload);
                case CREDIT -> {
                    for (int left = payload[0]; left > 0 && sent <= items.size(); left--) {
                        if (sent < items.size()) {
                            send(ITEM, id, items.get(sent).toByteArray());
                        } else {
                            send(END, id, new byte[0]);
                        }
                        sent++;
                    }
                }
                case ERROR -> throw new IOException(new String(payload, StandardCharsets.UTF_8));
                default -> throw new IOException("frame " + head);
            }
        }
    }

    private void send(int head, int id, byte[] payload) throws IOException {
        ByteArrayOutputStream length = new ByteArrayOutputStream();
        CodedOutputStream coded = CodedOutputStream.newInstance(length);
        coded.writeUInt32NoTag(5 + payload.length);
        coded.flush();
        out.write(length.toByteArray());
        out.write(head);
        out.writeInt(id);
        out.write(payload);
        out.flush();
    }

    private static int varint(DataInputStream in) throws IOException {
        int value = 0;
        for (int shift = 0; ; shift += 7) {
            int b = in.readUnsignedByte();
            value |= (b & 0x7F) << shift;
            if (b < 0x80) {
                return value;
            }
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
