package dev.rpcx;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A name server on a datagram socket of this host. It answers as a test wants: with records, with any bytes, or not at
 * all.
 */
public final class NameServer implements AutoCloseable {
    public static final int A = 1;
    public static final int AAAA = 28;
    public static final int SRV = 33;

    /**
     * A question that a client has asked.
     *
     * @param bytes the whole message
     */
    public record Question(String name, int type, byte[] bytes) {}

    /** One record of an answer. Its name is the name in the question. */
    public record Answer(int type, byte[] data) {
        public static Answer address(int last) {
            return new Answer(A, new byte[] {127, 0, 0, (byte) last});
        }

        /** Makes a record with the address {@code ::last}. */
        public static Answer address6(int last) {
            byte[] address = new byte[16];
            address[15] = (byte) last;
            return new Answer(AAAA, address);
        }

        /** @param target its labels and what ends them */
        public static Answer service(int priority, int weight, int port, byte[] target) {
            return new Answer(
                    SRV,
                    ByteBuffer.allocate(6 + target.length)
                            .putShort((short) priority)
                            .putShort((short) weight)
                            .putShort((short) port)
                            .put(target)
                            .array());
        }
    }

    public final AtomicInteger asked = new AtomicInteger();
    /** Counts the questions that have come by TCP. */
    public final AtomicInteger askedByTcp = new AtomicInteger();

    private final DatagramSocket socket;
    private @Nullable ServerSocket streams;
    private final Function<Question, byte @Nullable []> answering;

    private NameServer(Function<Question, byte @Nullable []> answering) throws IOException {
        this.answering = answering;
        socket = new DatagramSocket(0, InetAddress.getLoopbackAddress());
        Thread thread = new Thread(this::serve, "name-server");
        thread.setDaemon(true);
        thread.start();
    }

    /** @param answering the answer's bytes; null for silence */
    public static NameServer ofBytes(Function<Question, byte @Nullable []> answering) throws IOException {
        return new NameServer(answering);
    }

    /** @param answering null for silence; an empty list for a name that has no such record */
    public static NameServer of(Function<Question, @Nullable List<Answer>> answering) throws IOException {
        return new NameServer(question -> {
            List<Answer> answers = answering.apply(question);
            return answers == null ? null : message(question, answers);
        });
    }

    /**
     * Makes a server whose answers by datagram say that they are cut off.
     *
     * @param answering the first records, which a datagram has
     * @param whole all of them, by TCP
     */
    public static NameServer cutting(List<Answer> answering, List<Answer> whole) throws IOException {
        NameServer server;
        ServerSocket streams;
        while (true) {
            server = new NameServer(question -> {
                byte[] cut = message(
                        question,
                        answering.stream()
                                .filter(each -> each.type == question.type)
                                .toList());
                cut[2] |= 2;
                return cut;
            });
            try {
                streams = new ServerSocket(server.socket.getLocalPort(), 50, InetAddress.getLoopbackAddress());
                break;
            } catch (BindException taken) {
                // another process has this port for TCP
                server.close();
            }
        }
        NameServer cutting = server;
        ServerSocket taken = streams;
        server.streams = streams;
        Thread thread = new Thread(() -> cutting.serve(taken, whole), "name-server-tcp");
        thread.setDaemon(true);
        thread.start();
        return server;
    }

    public static NameServer silent() throws IOException {
        return new NameServer(question -> null);
    }

    public List<InetSocketAddress> address() {
        return List.of(new InetSocketAddress("127.0.0.1", socket.getLocalPort()));
    }

    private void serve() {
        while (!socket.isClosed()) {
            try {
                DatagramPacket packet = new DatagramPacket(new byte[4096], 4096);
                socket.receive(packet);
                asked.incrementAndGet();
                byte[] answer =
                        answering.apply(question(java.util.Arrays.copyOf(packet.getData(), packet.getLength())));
                if (answer != null) {
                    socket.send(new DatagramPacket(answer, answer.length, packet.getSocketAddress()));
                }
            } catch (IOException e) {
                if (!socket.isClosed()) {
                    throw new UncheckedIOException(e);
                }
            }
        }
    }

    private void serve(ServerSocket streams, List<Answer> whole) {
        while (!streams.isClosed()) {
            try (Socket asking = streams.accept()) {
                askedByTcp.incrementAndGet();
                DataInputStream in = new DataInputStream(asking.getInputStream());
                Question question = question(in.readNBytes(in.readUnsignedShort()));
                byte[] answer = message(
                        question,
                        whole.stream()
                                .filter(each -> each.type == question.type)
                                .toList());
                DataOutputStream out = new DataOutputStream(asking.getOutputStream());
                out.writeShort(answer.length);
                out.write(answer);
                // this returns when the client has ended the connection
                in.readAllBytes();
            } catch (IOException e) {
                // the connection has been closed, or was reset by a client that has read enough
            }
        }
    }

    private static Question question(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes).position(12);
        StringBuilder name = new StringBuilder();
        for (int length = in.get(); length > 0; length = in.get()) {
            byte[] label = new byte[length];
            in.get(label);
            name.append(name.isEmpty() ? "" : ".").append(new String(label, StandardCharsets.US_ASCII));
        }
        return new Question(name.toString(), in.getShort(), bytes);
    }

    /**
     * Returns a message with the head and the question of what was asked, and with these records. Each record has a
     * time to live of a minute.
     */
    public static byte[] message(Question question, List<Answer> answers) {
        // the head has 12 bytes, the name has a length before each label and one at its end, and type and class follow
        int questionEnd = 12 + question.name.length() + 2 + 4;
        ByteBuffer out = ByteBuffer.allocate(65_535).put(question.bytes, 0, questionEnd);
        out.putShort(2, (short) 0x8180).putShort(6, (short) answers.size());
        // the answer does not repeat what else was asked, for example the size of answers
        out.putShort(10, (short) 0);
        for (Answer answer : answers) {
            out.putShort((short) 0xC00C)
                    .putShort((short) answer.type)
                    .putShort((short) 1)
                    .putInt(60);
            out.putShort((short) answer.data.length).put(answer.data);
        }
        return java.util.Arrays.copyOf(out.array(), out.position());
    }

    @Override
    public void close() throws IOException {
        socket.close();
        if (streams != null) {
            streams.close();
        }
    }
}
