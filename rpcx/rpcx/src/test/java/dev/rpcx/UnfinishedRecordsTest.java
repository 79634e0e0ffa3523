package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests TLS records and handshakes whose end does not arrive. The bytes that are kept of them are charged, and are not
 * kept forever.
 */
@Timeout(120)
class UnfinishedRecordsTest {
    private static final int HEADER = 5;
    private static final int HANDSHAKE = 22;

    @RPCXServer("records")
    static final class Service {
        @Method
        String echo(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "records")
    interface Remote {
        String echo(String text);
    }

    @TempDir
    static Path directory;

    private static Certificates authority;
    private static Certificates.Pair pair;

    @BeforeAll
    static void make() throws Exception {
        authority = new Certificates(directory, "servers");
        pair = authority.make("server", "server", "ip:127.0.0.1", "-1d", 30);
    }

    private final HandPlatform platform = new HandPlatform();
    private Server server;
    private EmbeddedChannel channel;

    @BeforeEach
    void accept() {
        server = Server.builder(RegistryServer.registry(new Service()))
                .tls(Tls.server(pair.chain(), pair.key()))
                .platform(platform)
                .build()
                .start();
        channel = platform.accept();
    }

    @AfterEach
    void end() {
        channel.close();
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(platform.heldBytes()).isZero();
    }

    private static ByteBuf header(int type, int length) {
        return Unpooled.buffer().writeByte(type).writeShort(0x0301).writeShort(length);
    }

    /** Returns the beginning of a handshake message with a length of this many bytes. */
    private static ByteBuf hello(int bytes) {
        return Unpooled.buffer().writeByte(1).writeMedium(bytes);
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
    }

    private long held() {
        return server.core().ledger().held(Resource.FRAME_BYTES);
    }

    @Test
    void theBeginOfARecordIsChargedUntilItIsWhole() {
        send(header(HANDSHAKE, 16_384).writeBytes(hello(30_000)).writeZero(Outbound.MAX_SMALL_BYTES - HEADER - 4));
        assertThat(held()).isZero();
        send(Unpooled.buffer().writeZero(1));
        assertThat(held()).isEqualTo(HEADER + 16_384);
        send(Unpooled.buffer().writeZero(8_000));
        assertThat(held()).isEqualTo(HEADER + 16_384);
        channel.close();
        platform.settle(channel);
        assertThat(held()).isZero();
    }

    @Test
    void aLengthThatNoRecordHasEndsTheConnectionWithItsHeader() {
        send(header(HANDSHAKE, 16_384 + 257));
        assertThat(channel.isActive()).isFalse();
        assertThat(HandPlatform.written(channel)).as("an alert").containsExactly(21, 3, 3, 0, 2, 2, 10);
    }

    @Test
    void aHeaderThatComesByteForByteIsLookedAtWhenItIsThere() {
        ByteBuf header = header(HANDSHAKE, 65_535);
        for (int i = 0; i < HEADER; i++) {
            assertThat(channel.isActive()).isTrue();
            send(header.readSlice(1));
        }
        assertThat(channel.isActive()).isFalse();
    }

    @Test
    void aTypeThatNoRecordHasEndsTheConnection() {
        send(header(24, 100));
        assertThat(channel.isActive()).isFalse();
    }

    @Test
    void whatPlainClientsSayEndsTheConnection() {
        send(RawPeer.preface());
        assertThat(channel.isActive()).isFalse();
    }

    /** A message of a handshake may fill several records. Its reader keeps them until the message is complete. */
    @Test
    void whatHasComeOfAHandshakeIsCharged() {
        send(header(HANDSHAKE, 6_000).writeBytes(hello(30_000)).writeZero(6_000 - 4));
        assertThat(channel.isActive()).isTrue();
        assertThat(held()).isEqualTo(HEADER + 6_000);
        send(header(HANDSHAKE, 6_000).writeZero(6_000));
        assertThat(held()).isEqualTo(2 * (HEADER + 6_000));
        send(header(HANDSHAKE, 10_000).writeZero(5_000));
        assertThat(held()).isEqualTo(2 * (HEADER + 6_000) + HEADER + 10_000);
        platform.pass(channel, 11, TimeUnit.SECONDS);
        assertThat(channel.isActive()).as("the time for the handshake is over").isFalse();
        assertThat(held()).isZero();
    }

    @Test
    void connectionsOfOneAddressCannotHoldMoreThanThePool() {
        long most = server.core().ledger().max(Resource.FRAME_BYTES);
        int fit = (int) (most / (HEADER + 16_384));
        List<EmbeddedChannel> all = new ArrayList<>();
        byte[] begin = ByteBufUtil.getBytes(header(HANDSHAKE, 16_384).writeZero(5_000));
        for (int i = 0; i < fit + 10; i++) {
            EmbeddedChannel one = platform.accept();
            platform.read(one, begin, 0, begin.length);
            all.add(one);
        }
        all.forEach(platform::settle);
        assertThat(held()).isPositive().isLessThanOrEqualTo(most);
        platform.ticker.advance(11, TimeUnit.SECONDS);
        all.forEach(platform::settle);
        assertThat(held()).isZero();
    }

    /** The TLS engine of a client, which sends its records to the channel. */
    private final class Secured {
        final SSLEngine engine;

        Secured() throws Exception {
            SSLContext anyone = SSLContext.getInstance("TLS");
            anyone.init(null, io.netty.handler.ssl.util.InsecureTrustManagerFactory.INSTANCE.getTrustManagers(), null);
            engine = anyone.createSSLEngine();
            engine.setUseClientMode(true);
            engine.beginHandshake();
        }

        ByteBuf wrap(ByteBuf plain) throws SSLException {
            ByteBuf all = Unpooled.buffer();
            ByteBuffer out = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
            ByteBuffer in = ByteBuffer.wrap(ByteBufUtil.getBytes(plain));
            SSLEngineResult result;
            do {
                result = engine.wrap(in, out);
                out.flip();
                all.writeBytes(out);
                out.clear();
            } while (in.hasRemaining() || result.getHandshakeStatus() == HandshakeStatus.NEED_WRAP);
            return all;
        }

        void read() throws SSLException {
            ByteBuffer in = ByteBuffer.wrap(HandPlatform.written(channel));
            ByteBuffer out = ByteBuffer.allocate(64 << 10);
            while (in.hasRemaining()) {
                SSLEngineResult result = engine.unwrap(in, out);
                assertThat(result.getStatus()).isEqualTo(SSLEngineResult.Status.OK);
                out.clear();
                runTasks();
                if (engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP) {
                    send(wrap(Unpooled.EMPTY_BUFFER));
                }
            }
        }

        private void runTasks() {
            for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
                task.run();
            }
        }

        /** @param bytes how many bytes arrive at once */
        void handshake(int bytes) throws SSLException {
            ByteBuf hello = wrap(Unpooled.EMPTY_BUFFER);
            while (hello.isReadable()) {
                send(hello.readSlice(Math.min(bytes, hello.readableBytes())));
            }
            read();
            assertThat(engine.getHandshakeStatus()).isEqualTo(HandshakeStatus.NOT_HANDSHAKING);
            send(wrap(RawPeer.preface()));
            read();
        }
    }

    @Test
    void aHandshakeThatComesByteForByteIsDone() throws Exception {
        new Secured().handshake(1);
        assertThat(server.core().connections()).isEqualTo(1);
        assertThat(held()).isZero();
    }

    @Test
    void recordsCutAnywhereArriveWhole() throws Exception {
        Secured client = new Secured();
        client.handshake(100);
        ByteBuf ping = RawPeer.frame(Wire.PING, 7, Unpooled.buffer().writeZero(Wire.MAX_PAYLOAD_BYTES));
        for (int at = 1; at < 16_500; at += 701) {
            ByteBuf two = client.wrap(Unpooled.wrappedBuffer(ping.duplicate(), ping.duplicate()));
            send(two.readSlice(at));
            send(two);
            client.read();
            assertThat(channel.isActive()).isTrue();
            assertThat(held()).isZero();
        }
    }

    @Test
    void aRecordThatIsNotWholeInTimeEndsTheConnection() throws Exception {
        Secured client = new Secured();
        client.handshake(10_000);
        ByteBuf record = client.wrap(Unpooled.buffer().writeZero(10_000));
        send(record.readSlice(5_000));
        platform.pass(channel, 15, TimeUnit.SECONDS);
        send(record.readSlice(1));
        platform.pass(channel, 15, TimeUnit.SECONDS);
        send(record.readSlice(1));
        assertThat(held()).isPositive();
        assertThat(channel.isActive()).isTrue();
        platform.pass(channel, 2, TimeUnit.SECONDS);
        assertThat(channel.isActive()).isFalse();
        assertThat(held()).isZero();
    }

    /** The peer may have sent the rest long ago. The server does not read it, because the peer itself reads slowly. */
    @Test
    void timeInWhichTheServerDoesNotReadCountsAgainstNoRecord() throws Exception {
        Secured client = new Secured();
        client.handshake(10_000);
        ByteBuf record =
                client.wrap(RawPeer.frame(Wire.PING, 7, Unpooled.buffer().writeZero(10_000)));
        send(record.readSlice(5_000));
        platform.pass(channel, 10, TimeUnit.SECONDS);
        platform.reads(channel, false);
        platform.pass(channel, 1000, TimeUnit.SECONDS);
        platform.reads(channel, true);
        platform.pass(channel, 10, TimeUnit.SECONDS);
        assertThat(channel.isActive()).isTrue();
        send(record);
        assertThat(HandPlatform.written(channel)).as("the answer").isNotEmpty();
        assertThat(held()).isZero();
    }

    @Test
    void recordsThatComeInTimeHaveTheirTimeEach() throws Exception {
        Secured client = new Secured();
        client.handshake(10_000);
        ByteBuf ping = RawPeer.frame(Wire.PING, 7, Unpooled.buffer().writeZero(10_000));
        for (int i = 0; i < 4; i++) {
            ByteBuf record = client.wrap(ping.duplicate());
            send(record.readSlice(5_000));
            platform.pass(channel, 19, TimeUnit.SECONDS);
            send(record);
            client.read();
        }
        assertThat(channel.isActive()).isTrue();
    }

    @Test
    void largeMessagesComeThroughSockets() {
        try (Server listening = Server.builder(RegistryServer.registry(new Service()))
                        .host("127.0.0.1")
                        .tls(Tls.server(pair.chain(), pair.key()))
                        .build()
                        .start();
                Client client = Client.builder()
                        .tls(Tls.client().trusting(authority.authority))
                        .build()) {
            Remote remote = client.create(Remote.class, "127.0.0.1", listening.port());
            for (int bytes = 1; bytes < 4_000_000; bytes = bytes * 3 + 1) {
                String text = "x".repeat(bytes);
                assertThat(remote.echo(text)).isEqualTo(text);
            }
        }
    }
}
