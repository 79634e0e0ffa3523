package dev.rpcx;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A question for SRV records, and its answer. What arrives may be anybody's: every length is checked. Source: RFC 1035, section 4. */
final class DnsMessage {
    private static final int HEAD_BYTES = 12;
    private static final int RECURSION_DESIRED = 0x0100;
    private static final int RESPONSE = 0x8000;
    private static final int TRUNCATED = 0x0200;
    private static final int RESULT_MASK = 0x0F;
    private static final int NO_SUCH_NAME = 3;
    private static final int SRV = 33;
    private static final int INTERNET = 1;
    private static final int MAX_LABEL = 63;
    private static final int MAX_NAME = 255;

    /** One SRV record. */
    record Service(int priority, int weight, int port, String target) {}

    /** @param truncated the answer did not fit a datagram: ask by TCP */
    record Answer(boolean truncated, List<Service> services) {}

    private DnsMessage() {}

    /** The name as it stands in messages. */
    static byte[] nameBytes(String name) {
        ByteBuffer out = ByteBuffer.allocate(MAX_NAME);
        String whole = name.endsWith(".") ? name.substring(0, name.length() - 1) : name;
        for (String label : whole.split("\\.", -1)) {
            byte[] bytes = label.getBytes(StandardCharsets.US_ASCII);
            if (bytes.length == 0 || bytes.length > MAX_LABEL || bytes.length + 2 > out.remaining()) {
                throw new IllegalArgumentException("name: " + name + " (expected: as _greeter._tcp.example.org)");
            }
            out.put((byte) bytes.length).put(bytes);
        }
        out.put((byte) 0).flip();
        byte[] found = new byte[out.remaining()];
        out.get(found);
        return found;
    }

    static ByteBuffer question(int id, byte[] name) {
        ByteBuffer out = ByteBuffer.allocate(HEAD_BYTES + name.length + 4);
        out.putShort((short) id).putShort((short) RECURSION_DESIRED).putShort((short) 1);
        out.putShort((short) 0).putShort((short) 0).putShort((short) 0);
        out.put(name).putShort((short) SRV).putShort((short) INTERNET);
        return out.flip();
    }

    /** @throws IOException another question's answer, an error of the name server's, or bytes that are no answer */
    static Answer answer(int id, ByteBuffer in) throws IOException {
        try {
            return read(id, in);
        } catch (BufferUnderflowException | IllegalArgumentException e) {
            throw new IOException("an answer that is cut off", e);
        }
    }

    private static Answer read(int id, ByteBuffer in) throws IOException {
        int answered = in.getShort() & 0xFFFF;
        int flags = in.getShort() & 0xFFFF;
        if (answered != id || (flags & RESPONSE) == 0) {
            throw new IOException("an answer to another question");
        }
        int result = flags & RESULT_MASK;
        if (result != 0 && result != NO_SUCH_NAME) {
            throw new IOException("the name server answers with error " + result);
        }
        int questions = in.getShort() & 0xFFFF;
        int answers = in.getShort() & 0xFFFF;
        in.getInt();
        for (int i = 0; i < questions; i++) {
            name(in);
            in.getInt();
        }
        List<Service> found = new ArrayList<>();
        boolean truncated = (flags & TRUNCATED) != 0;
        for (int i = 0; i < answers && !truncated; i++) {
            name(in);
            int type = in.getShort() & 0xFFFF;
            in.getShort();
            in.getInt();
            int end = (in.getShort() & 0xFFFF) + in.position();
            if (type == SRV) {
                found.add(
                        new Service(in.getShort() & 0xFFFF, in.getShort() & 0xFFFF, in.getShort() & 0xFFFF, name(in)));
            }
            in.position(end);
        }
        return new Answer(truncated, found);
    }

    /** Follows pointers backwards only, so that it ends. */
    private static String name(ByteBuffer in) throws IOException {
        StringBuilder name = new StringBuilder();
        int at = in.position();
        int after = -1;
        while (true) {
            int length = in.get(checked(at, in)) & 0xFF;
            if (length >= 0xC0) {
                int target = (length & 0x3F) << 8 | in.get(checked(at + 1, in)) & 0xFF;
                after = after < 0 ? at + 2 : after;
                if (target >= at) {
                    throw new IOException("a name that points forward");
                }
                at = target;
            } else if (length > MAX_LABEL || name.length() + length > MAX_NAME) {
                throw new IOException("a name that is too long");
            } else if (length == 0) {
                in.position(after < 0 ? at + 1 : after);
                return name.toString();
            } else {
                checked(at + length, in);
                name.append(name.length() == 0 ? "" : ".");
                for (int i = 1; i <= length; i++) {
                    name.append((char) (in.get(at + i) & 0x7F));
                }
                at += length + 1;
            }
        }
    }

    private static int checked(int at, ByteBuffer in) throws IOException {
        if (at >= in.limit()) {
            throw new IOException("a name that is cut off");
        }
        return at;
    }
}
