package dev.rpcx;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;

/** Asks name servers in turn, by a datagram, and by TCP where the answer does not fit one. Blocks, for some seconds at most. */
final class DnsExchange {
    private static final Path RESOLV_CONF = Path.of("/etc/resolv.conf");
    private static final int DNS_PORT = 53;
    private static final int TIMEOUT_MILLIS = 1000;
    private static final int TRIES = 2;
    private static final int MAX_DATAGRAM = 4096;
    private static final SecureRandom IDS = new SecureRandom();

    private DnsExchange() {}

    /** Those of the system; on one without {@code /etc/resolv.conf} that of this host. */
    static List<InetSocketAddress> systemServers() {
        List<InetSocketAddress> found = new ArrayList<>();
        try {
            for (String line : Files.readAllLines(RESOLV_CONF, StandardCharsets.UTF_8)) {
                String[] words = line.trim().split("\\s+", -1);
                if (words.length > 1 && words[0].equals("nameserver")) {
                    found.add(new InetSocketAddress(words[1], DNS_PORT));
                }
            }
        } catch (IOException e) {
            // the fallback below holds
        }
        return found.isEmpty() ? List.of(new InetSocketAddress("127.0.0.1", DNS_PORT)) : found;
    }

    static List<DnsMessage.Service> services(byte[] name, List<InetSocketAddress> servers) throws IOException {
        IOException last = new IOException("no name server");
        for (int attempt = 0; attempt < TRIES; attempt++) {
            for (InetSocketAddress server : servers) {
                try {
                    int id = IDS.nextInt(1 << 16);
                    DnsMessage.Answer answer = byDatagram(id, name, server);
                    return (answer.truncated() ? byTcp(id, name, server) : answer).services();
                } catch (IOException e) {
                    last = e;
                }
            }
        }
        throw last;
    }

    private static DnsMessage.Answer byDatagram(int id, byte[] name, InetSocketAddress server) throws IOException {
        try (DatagramSocket socket = new DatagramSocket()) {
            // connected, from a random port: only the server's own datagrams are taken
            socket.connect(server);
            socket.setSoTimeout(TIMEOUT_MILLIS);
            ByteBuffer question = DnsMessage.question(id, name);
            socket.send(new DatagramPacket(question.array(), question.limit()));
            DatagramPacket answer = new DatagramPacket(new byte[MAX_DATAGRAM], MAX_DATAGRAM);
            socket.receive(answer);
            return DnsMessage.answer(id, ByteBuffer.wrap(answer.getData(), 0, answer.getLength()));
        }
    }

    private static DnsMessage.Answer byTcp(int id, byte[] name, InetSocketAddress server) throws IOException {
        try (Socket socket = new Socket()) {
            socket.connect(server, TIMEOUT_MILLIS);
            socket.setSoTimeout(TIMEOUT_MILLIS);
            ByteBuffer question = DnsMessage.question(id, name);
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeShort(question.limit());
            out.write(question.array(), 0, question.limit());
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = new byte[in.readUnsignedShort()];
            in.readFully(answer);
            return DnsMessage.answer(id, ByteBuffer.wrap(answer));
        }
    }
}
