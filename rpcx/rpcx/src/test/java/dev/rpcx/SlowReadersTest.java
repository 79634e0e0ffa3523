package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/**
 * Tests peers that read all the time, but slowly. In a keep-alive time, such a peer takes much less than the system's
 * buffer of a socket holds. It must not count as a peer that reads nothing.
 */
@Timeout(60)
@EnabledOnOs(OS.LINUX) // elsewhere the system does not say what it has not sent
class SlowReadersTest {
    private static final int REPLY_BYTES = 4_000_000;
    private static final int RECEIVE_BYTES = 16 * 1024;

    private static final Duration KEEP_ALIVE = Duration.ofSeconds(2);

    /** At this rate a peer takes some 400 kB in a keep-alive time and a third of that. */
    private static final int BYTES_PER_SECOND = 150_000;

    private static final int SLOW_BYTES = 6 * BYTES_PER_SECOND;

    @RPCXServer("large")
    static final class Large {
        @Method
        String text(int bytes) {
            return "x".repeat(bytes);
        }
    }

    private final Server server = Server.builder(RegistryServer.registry(new Large()))
            .classic(true)
            .keepAlive(KEEP_ALIVE)
            .build()
            .start();

    @AfterEach
    void stop() {
        server.stop(Duration.ZERO);
    }

    /** Gives what it reads at a limited rate until {@code SLOW_BYTES} have been read, and then without a limit. */
    private static final class Slow extends InputStream {
        private final InputStream in;
        private final long begin = System.nanoTime();
        private long read;

        Slow(InputStream in) {
            this.in = in;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
        }

        @Override
        public int read(byte[] into, int at, int most) throws IOException {
            int now = in.read(into, at, Math.min(most, 8 * 1024));
            read += Math.max(0, now);
            long due = begin + read * TimeUnit.SECONDS.toNanos(1) / BYTES_PER_SECOND;
            while (read < SLOW_BYTES && due - System.nanoTime() > 0) {
                LockSupport.parkNanos(due - System.nanoTime());
            }
            return now;
        }
    }

    private Socket connected() throws IOException {
        Socket socket = new Socket();
        socket.setReceiveBufferSize(RECEIVE_BYTES);
        socket.setSoTimeout(20_000);
        socket.connect(new InetSocketAddress("127.0.0.1", server.port()));
        return socket;
    }

    @Test
    void aSlowReaderHasItsWholeReply() throws Exception {
        try (Socket socket = connected()) {
            socket.getOutputStream().write(ByteBufUtil.getBytes(RawPeer.preface()));
            socket.getOutputStream()
                    .write(ByteBufUtil.getBytes(RawPeer.frame(
                            Wire.REQUEST | Wire.NAMED,
                            Wire.SLOT_MASK + 1,
                            RawPeer.prelude("large", "text").writeBytes(number()))));
            DataInputStream in = new DataInputStream(new Slow(socket.getInputStream()));
            in.readFully(new byte[Wire.PREFACE_BYTES]);
            int came = 0;
            while (came < REPLY_BYTES) {
                int length = (int) Varint.read(Unpooled.wrappedBuffer(varint(in)));
                int head = in.readUnsignedByte();
                int id = in.readInt();
                in.readFully(new byte[length - Wire.HEAD_BYTES]);
                assertThat(head & Wire.TYPE_MASK).isNotEqualTo(Wire.ERROR);
                came += id == 0 ? 0 : length - Wire.HEAD_BYTES;
                if ((head & Wire.TYPE_MASK) == Wire.PING) {
                    socket.getOutputStream()
                            .write(ByteBufUtil.getBytes(RawPeer.frame(Wire.PONG, id, Unpooled.EMPTY_BUFFER)));
                }
            }
        }
    }

    @Test
    void andOnTheClassicWire() throws Exception {
        try (Socket socket = connected()) {
            ByteBuf request =
                    ClassicRequests.of(1, "large", "text", List.of("int"), List.of(ByteBufUtil.getBytes(number())));
            socket.getOutputStream().write(ByteBufUtil.getBytes(request));
            DataInputStream in = new DataInputStream(new Slow(socket.getInputStream()));
            int length = in.readInt();
            assertThat(length).isGreaterThan(REPLY_BYTES);
            in.readFully(new byte[length]);
        }
    }

    /** A stop waits for a reply that is being read, and its connection ends behind it. */
    @Test
    void aStopDoesNotCutTheReplyOfASlowReader() throws Exception {
        try (Socket socket = connected()) {
            ByteBuf request =
                    ClassicRequests.of(1, "large", "text", List.of("int"), List.of(ByteBufUtil.getBytes(number())));
            socket.getOutputStream().write(ByteBufUtil.getBytes(request));
            DataInputStream in = new DataInputStream(new Slow(socket.getInputStream()));
            int length = in.readInt();
            assertThat(length).isGreaterThan(REPLY_BYTES);
            Future<?> stopped = server.core().drain(Duration.ofSeconds(50));
            in.readFully(new byte[length]);
            in.readFully(new byte[in.readInt()]);
            assertThat(in.read()).isEqualTo(-1);
            socket.shutdownOutput();
            stopped.get(20, TimeUnit.SECONDS);
        }
    }

    /** Returns a message whose field 1 is how many bytes are asked for. */
    private static ByteBuf number() {
        ByteBuf message = Unpooled.buffer();
        message.writeByte(1 << 3);
        Varint.write(message, REPLY_BYTES);
        return message;
    }

    private static byte[] varint(DataInputStream in) throws IOException {
        byte[] bytes = new byte[10];
        int at = 0;
        do {
            bytes[at] = in.readByte();
        } while (bytes[at++] < 0);
        return bytes;
    }
}
