package dev.parley.lab;

import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/** TCP payload on the loopback interface to and from one port, as tcpdump captures it, what is sent twice counted once. Format: pcap-savefile(5). */
final class Capture implements AutoCloseable {
    private static final int ETHERNET_HEADER = 14;
    private static final int SNAPPED = 96;

    private final Process tcpdump;
    private final int port;
    private final AtomicLong toPort = new AtomicLong();
    private final AtomicLong fromPort = new AtomicLong();

    /** By source and destination port: the sequence number behind the last byte seen. Only the reading thread's. */
    private final Map<Integer, Integer> ends = new HashMap<>();

    private Capture(Process tcpdump, int port) {
        this.tcpdump = tcpdump;
        this.port = port;
    }

    /** True where tcpdump is installed and this user may capture. */
    static boolean isPossible() {
        return Stream.of(System.getenv("PATH").split(":"))
                        .anyMatch(folder -> Files.isExecutable(Path.of(folder, "tcpdump")))
                && "root".equals(System.getProperty("user.name"));
    }

    /** Has begun to capture when it returns. */
    static Capture of(int port) {
        try {
            Process tcpdump = new ProcessBuilder(
                            "tcpdump",
                            "-i",
                            "lo",
                            "-n",
                            "-U",
                            "--immediate-mode",
                            "-s",
                            "" + SNAPPED,
                            "-B",
                            "16384",
                            "-w",
                            "-",
                            "tcp port " + port)
                    .start();
            BufferedReader says =
                    new BufferedReader(new InputStreamReader(tcpdump.getErrorStream(), StandardCharsets.UTF_8));
            for (String line = says.readLine();
                    !String.valueOf(line).contains("listening on");
                    line = says.readLine()) {
                if (line == null) {
                    throw new IllegalStateException("tcpdump ended before it captured");
                }
            }
            Capture capture = new Capture(tcpdump, port);
            Thread.ofPlatform().name("capture").daemon().start(capture::read);
            return capture;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    long toPort() {
        return toPort.get();
    }

    long fromPort() {
        return fromPort.get();
    }

    private void read() {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(tcpdump.getInputStream()))) {
            in.skipNBytes(24);
            byte[] header = new byte[16];
            byte[] packet = new byte[SNAPPED];
            while (true) {
                in.readFully(header);
                int captured =
                        ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getInt(8);
                in.readFully(packet, 0, captured);
                count(ByteBuffer.wrap(packet, 0, captured));
            }
        } catch (EOFException ended) {
            // closed
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void count(ByteBuffer packet) {
        int ip = ETHERNET_HEADER;
        int ipHeader = (packet.get(ip) & 0x0F) * 4;
        int length = Short.toUnsignedInt(packet.getShort(ip + 2));
        int tcp = ip + ipHeader;
        int tcpHeader = (packet.get(tcp + 12) >> 4 & 0x0F) * 4;
        int payload = length - ipHeader - tcpHeader;
        boolean isToPort = Short.toUnsignedInt(packet.getShort(tcp + 2)) == port;
        (isToPort ? toPort : fromPort).addAndGet(firstSent(packet.getInt(tcp), packet.getInt(tcp + 4), payload));
    }

    /** Bytes beyond all that this side has sent: a reply that takes longer than the kernel guesses makes it send the last segment again. */
    private int firstSent(int ports, int sequence, int payload) {
        int end = sequence + payload;
        int before = ends.getOrDefault(ports, sequence);
        if (payload > 0 && end - before > 0) {
            ends.put(ports, end);
            return Math.min(payload, end - before);
        }
        return 0;
    }

    @Override
    public void close() {
        tcpdump.destroy();
    }
}
