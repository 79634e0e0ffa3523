package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.io.TlsRecords;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.handler.codec.DecoderException;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.util.InsecureTrustManagerFactory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests TLS records that bring no data, during the handshake and after it. Both sides count and charge them. */
@Timeout(120)
class SilentRecordsTest {
    private static final int HEADER = 5;
    private static final int MAX_MESSAGE = 32_768;
    private static final int LARGE = 16_384;

    /** Once there are keys, a record has these bytes beside its content. They are header, type and tag. */
    private static final int SEALED = HEADER + 1 + 16;

    @RPCXServer("records")
    static final class Service {
        @Method
        String echo(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "records")
    interface Remote {
        CompletableFuture<String> echo(String text);
    }

    @TempDir
    static Path directory;

    private static Certificates servers;
    private static Certificates clients;
    private static Certificates.Pair pair;

    @BeforeAll
    static void make() throws Exception {
        servers = new Certificates(directory, "servers");
        clients = new Certificates(directory, "clients");
        pair = servers.make("server", "server", "ip:127.0.0.1", "-1d", 30);
    }

    private final HandPlatform platform = new HandPlatform();
    private Server server;
    private EmbeddedChannel channel;

    @BeforeEach
    void accept() {
        server = serve(Tls.server(pair.chain(), pair.key()));
        channel = platform.accept();
    }

    private Server serve(Tls tls) {
        return Server.builder(RegistryServer.registry(new Service()))
                .tls(tls)
                .platform(platform)
                .build()
                .start();
    }

    @AfterEach
    void end() {
        channel.close();
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(platform.heldBytes()).isZero();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        try {
            platform.read(channel, all, 0, all.length);
        } catch (DecoderException refused) {
            // the engine refuses the bytes, and then ends the connection
            assertThat(refused).hasCauseInstanceOf(SSLException.class);
        }
    }

    private long held() {
        return server.core().ledger().held(Resource.FRAME_BYTES);
    }

    /** Returns a client that has ended its handshake and has received the server's greeting. */
    private RawTls handshake() throws Exception {
        RawTls client = new RawTls();
        send(RawTls.plain(RawTls.HANDSHAKE, client.hello()));
        send(Objects.requireNonNull(client.read(Unpooled.wrappedBuffer(HandPlatform.written(channel)))));
        send(client.seal(RawTls.DATA, RawPeer.preface()));
        assertThat(server.core().connections()).isPositive();
        HandPlatform.written(channel);
        return client;
    }

    private static ByteBuf ping() {
        return RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER);
    }

    private static ByteBuf zeros(int bytes) {
        return Unpooled.buffer().writeZero(bytes);
    }

    /** Returns how many of these may be sent before the connection ends. */
    private int sent(int most, Sent each) throws Exception {
        for (int i = 0; i < most; i++) {
            send(each.next());
            HandPlatform.written(channel);
            if (!channel.isActive()) {
                return i;
            }
        }
        return most;
    }

    private interface Sent {
        ByteBuf next() throws Exception;
    }

    @Test
    void aHandshakeInRecordsOfOneByteEndsTheConnection() throws Exception {
        ByteBuf begin =
                Unpooled.buffer().writeByte(1).writeMedium(MAX_MESSAGE - 4).writeZero(LARGE - 4);
        send(RawTls.plain(RawTls.HANDSHAKE, begin));
        int most = TlsRecords.MIN_HANDSHAKE_RECORDS + MAX_MESSAGE / TlsRecords.MIN_RECORD_LIMIT_BYTES;
        assertThat(sent(10_000, () -> RawTls.plain(RawTls.HANDSHAKE, zeros(1)))).isLessThan(most);
        assertThat(held()).isZero();
    }

    @Test
    void oneByteRecordsThatComeAtOnceEndTheConnectionToo() {
        ByteBuf begin =
                Unpooled.buffer().writeByte(1).writeMedium(MAX_MESSAGE - 4).writeZero(LARGE - 4);
        send(RawTls.plain(RawTls.HANDSHAKE, begin).writeBytes(RawTls.plain(RawTls.HANDSHAKE, zeros(10_000), 1)));
        assertThat(channel.isActive()).isFalse();
    }

    @Test
    void aHandshakeInRecordsOfEightBytesIsDone() throws Exception {
        RawTls client = new RawTls();
        send(RawTls.plain(RawTls.HANDSHAKE, client.hello(), 8));
        assertThat(client.read(Unpooled.wrappedBuffer(HandPlatform.written(channel))))
                .isNotNull();
    }

    /** The records are as small as a side may ask for. */
    @Test
    void certificatesOf25KilobytesInTheSmallestRecordsAreTaken() throws Exception {
        String names = IntStream.range(0, 900)
                .mapToObj(i -> String.format("dns:client-number-%04d.test", i))
                .collect(Collectors.joining(","));
        Certificates.Pair large = clients.make("large", "large", names, "-1d", 30);
        Server mutual = serve(Tls.server(pair.chain(), pair.key()).requiringClientsOf(clients.authority));
        channel = platform.accept();
        SSLEngine engine = SslContextBuilder.forClient()
                .keyManager(large.chain().toFile(), large.key().toFile())
                .trustManager(InsecureTrustManagerFactory.INSTANCE)
                .protocols("TLSv1.3")
                .build()
                .newEngine(ByteBufAllocator.DEFAULT);
        Engine client = new Engine(engine, channel);
        client.recordBytes = TlsRecords.MIN_RECORD_LIMIT_BYTES + SEALED;
        client.handshake();
        client.send(RawPeer.preface());
        assertThat(client.records).isGreaterThan(40);
        assertThat(mutual.core().connections()).isEqualTo(1);
        channel.close();
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(mutual.core().ledger().audit()).isEmpty();
    }

    @Test
    void keyUpdatesOneAfterTheOtherEndTheConnection() throws Exception {
        RawTls client = handshake();
        assertThat(sent(2000, () -> client.seal(RawTls.HANDSHAKE, RawTls.keyUpdates(1, true))))
                .isEqualTo(TlsRecords.MAX_SILENT_OF_CLIENT);
    }

    @Test
    void fiveKeyUpdatesInASmallRecordCountAsFive() throws Exception {
        RawTls client = handshake();
        assertThat(sent(2000, () -> client.seal(RawTls.HANDSHAKE, RawTls.keyUpdates(5, false))))
                .isEqualTo(TlsRecords.MAX_SILENT_OF_CLIENT / 5);
    }

    /** The JDK pads each record, whatever the suite. */
    @ParameterizedTest
    @ValueSource(strings = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"})
    void aKeyUpdateOfTheJdkHasTheLengthThatCountsAsOne(String suite) throws Exception {
        SSLEngine engine = SslContextBuilder.forClient()
                .trustManager(InsecureTrustManagerFactory.INSTANCE)
                .protocols("TLSv1.3")
                .ciphers(List.of(suite))
                .build()
                .newEngine(ByteBufAllocator.DEFAULT);
        Engine client = new Engine(engine, channel);
        client.handshake();
        client.send(RawPeer.preface());
        HandPlatform.written(channel);
        int sent = 0;
        while (channel.isActive() && sent < 2000) {
            engine.beginHandshake();
            client.send(Unpooled.EMPTY_BUFFER);
            assertThat(client.sentBytes).isEqualTo(TlsRecords.JDK_KEY_UPDATE_BYTES);
            HandPlatform.written(channel);
            sent++;
        }
        assertThat(sent).isEqualTo(TlsRecords.MAX_SILENT_OF_CLIENT + 1);
    }

    @Test
    void keyUpdatesBetweenDataEndTheConnectionToo() throws Exception {
        RawTls client = handshake();
        int sent = sent(
                2000,
                () -> client.seal(RawTls.HANDSHAKE, RawTls.keyUpdates(1, false))
                        .copy()
                        .writeBytes(client.seal(RawTls.DATA, RawPeer.frame(Wire.PONG, 7, Unpooled.EMPTY_BUFFER))));
        assertThat(sent).isEqualTo(TlsRecords.MAX_SILENT_OF_CLIENT);
    }

    @Test
    void keysMayChangeAgainAfterAnHour() throws Exception {
        RawTls client = handshake();
        for (int hour = 0; hour < 3; hour++) {
            assertThat(sent(
                            TlsRecords.MAX_SILENT_OF_CLIENT,
                            () -> client.seal(RawTls.HANDSHAKE, RawTls.keyUpdates(1, false))))
                    .isEqualTo(TlsRecords.MAX_SILENT_OF_CLIENT);
            for (int minute = 0; minute < 125; minute++) {
                send(client.seal(RawTls.DATA, ping()));
                platform.pass(channel, 30, TimeUnit.SECONDS);
                HandPlatform.written(channel);
            }
        }
        assertThat(channel.isActive()).isTrue();
    }

    /**
     * The engine derives the keys for all updates in one record before it can be stopped, but it gets no second record.
     */
    @Test
    void manyKeyUpdatesInOneRecordEndTheConnection() throws Exception {
        RawTls client = handshake();
        assertThat(sent(10, () -> client.seal(RawTls.HANDSHAKE, RawTls.keyUpdates(3_200, true))))
                .isZero();
    }

    /** The JDK's engine accepts no record without a byte. */
    @Test
    void recordsWithoutAByteEndTheConnection() throws Exception {
        RawTls client = handshake();
        assertThat(sent(2000, () -> client.seal(RawTls.DATA, Unpooled.EMPTY_BUFFER)))
                .isLessThanOrEqualTo(TlsRecords.MAX_SILENT_OF_CLIENT);
    }

    @Test
    void warningsEndTheConnection() throws Exception {
        RawTls client = handshake();
        // no_renegotiation
        ByteBuf warning = Unpooled.buffer().writeByte(1).writeByte(100);
        assertThat(sent(2000, () -> client.seal(RawTls.ALERT, warning))).isEqualTo(TlsRecords.MAX_SILENT_OF_CLIENT);
    }

    @Test
    void aSecondHandshakeEndsTheConnection() throws Exception {
        RawTls client = handshake();
        send(client.seal(RawTls.HANDSHAKE, client.hello()));
        assertThat(channel.isActive()).isFalse();
    }

    /** The engine keeps the beginning of a message until the end of the message has come. */
    @Test
    void theBeginOfAMessageBehindTheHandshakeIsChargedUntilItsConnectionEnds() throws Exception {
        RawTls client = handshake();
        ByteBuf begin = Unpooled.buffer().writeByte(RawTls.NEW_TICKET).writeMedium(30_000);
        send(client.seal(RawTls.HANDSHAKE, begin.writeZero(2_100)));
        assertThat(held()).isZero();
        send(client.seal(RawTls.HANDSHAKE, zeros(2_100)));
        assertThat(held()).isEqualTo(4_200 + 4 + 2 * SEALED);
        assertThat(channel.isActive()).isTrue();
        platform.pass(channel, 2, TimeUnit.MINUTES);
        platform.pass(channel, 2, TimeUnit.MINUTES);
        platform.pass(channel, 2, TimeUnit.MINUTES);
        assertThat(channel.isActive()).as("nothing has been heard").isFalse();
        assertThat(held()).isZero();
    }

    @Test
    void whatComesBehindTheEndOfTheStreamIsNotGathered() throws Exception {
        RawTls client = handshake();
        // close_notify
        send(client.seal(RawTls.ALERT, Unpooled.buffer().writeByte(1).writeByte(0)));
        int sent = sent(2000, () -> client.seal(RawTls.DATA, zeros(LARGE)));
        assertThat(sent).isLessThan(TlsRecords.MAX_SILENT_OF_CLIENT);
        assertThat(held()).isZero();
    }

    @Test
    void dataIsNotCharged() throws Exception {
        RawTls client = handshake();
        ByteBuf large = RawPeer.frame(Wire.PING, 7, zeros(Wire.MAX_PAYLOAD_BYTES));
        for (int i = 0; i < 100; i++) {
            send(client.seal(RawTls.DATA, large.duplicate().readSlice(LARGE)));
            send(client.seal(RawTls.DATA, large.duplicate().skipBytes(LARGE)));
            assertThat(channel.isActive()).isTrue();
            platform.pass(channel, 50, TimeUnit.MILLISECONDS);
            HandPlatform.written(channel);
        }
        assertThat(held()).isZero();
    }

    /** One host shall not have all connections of a server on a small heap. */
    @Test
    void anAddressHasAFifthOfTheConnectionsUnlessTheyAreFew() {
        Server.Builder standard = Server.builder(RegistryServer.registry(new Service()));
        assertThat(standard.maxConnections(10_000).connectionsOfAddress()).isEqualTo(2_000);
        assertThat(standard.maxConnections(4_096).connectionsOfAddress()).isEqualTo(819);
        assertThat(standard.maxConnections(100).connectionsOfAddress()).isEqualTo(64);
        assertThat(standard.maxConnections(10).connectionsOfAddress()).isEqualTo(10);
        assertThat(standard.maxConnectionsPerAddress(5_000).connectionsOfAddress())
                .isEqualTo(10);
        assertThat(standard.maxConnections(4_096)
                        .maxConnectionsPerAddress(3_000)
                        .connectionsOfAddress())
                .isEqualTo(3_000);
    }

    /** The standard number of connections depends on what one connection holds, which is not charged. */
    @Test
    void aConnectionHoldsLessThanItsPartOfTheHeapAtRestAndInTheMiddleOfAHandshake() throws Exception {
        assertThat(Server.Builder.standardConnections(256 << 20)).isEqualTo(4096);
        assertThat(Server.Builder.standardConnections(1L << 40)).isEqualTo(10_000);
        assertThat(server.core().ledger().max(Resource.CONNECTIONS))
                .isEqualTo(
                        Server.Builder.standardConnections(Runtime.getRuntime().maxMemory()));
        long part = (256 << 20) / Server.Builder.standardConnections(256 << 20);
        assertThat(heapOfConnection(this::handshake)).isLessThan(part / 2);
        assertThat(heapOfConnection(() -> {
                    // this is as large as a message may be without being charged
                    send(RawTls.plain(RawTls.HANDSHAKE, new RawTls().hello(Outbound.MAX_SMALL_BYTES - 500)));
                    assertThat(held()).isZero();
                    return HandPlatform.written(channel);
                }))
                .isLessThan(part / 2);
    }

    private long heapOfConnection(Callable<?> each) throws Exception {
        int count = 120;
        List<EmbeddedChannel> all = new ArrayList<>();
        long before = 0;
        // the first ones load what all of them need
        for (int i = -20; i < count; i++) {
            if (i == 0) {
                before = usedBytes();
            }
            channel = platform.accept();
            each.call();
            all.add(channel);
        }
        long bytes = (usedBytes() - before) / count;
        for (EmbeddedChannel one : all) {
            one.close();
            platform.settle(one);
            one.releaseOutbound();
        }
        return bytes;
    }

    private static long usedBytes() {
        System.gc();
        Runtime heap = Runtime.getRuntime();
        return heap.totalMemory() - heap.freeMemory();
    }

    // ---- a client, and a server that does as it likes

    /** Runs a client that is about to call, before its server has said anything. */
    private final class Calling implements AutoCloseable {
        final Client client = Client.builder()
                .platform(platform)
                .connections(1, 1)
                .connectTimeout(Duration.ofMinutes(1))
                .keepAlive(Duration.ofSeconds(5))
                .tls(Tls.client().trusting(servers.authority))
                .build();

        final CompletableFuture<String> call;
        final EmbeddedChannel channel;

        Calling() {
            call = client.create(Remote.class, "127.0.0.1", 1).echo("x");
            channel = platform.opened.get(platform.opened.size() - 1);
            platform.settle(channel);
        }

        void answer(ByteBuf bytes) {
            byte[] all = ByteBufUtil.getBytes(bytes);
            platform.read(channel, all, 0, all.length);
        }

        long held() {
            return client.core().ledger().held(Resource.FRAME_BYTES);
        }

        @Override
        public void close() {
            channel.close();
            client.core().end();
            platform.pass(channel, 2, TimeUnit.HOURS);
            platform.settle(channel);
            channel.releaseOutbound();
            assertThat(call).isDone();
            assertThat(client.core().ledger().audit()).isEmpty();
        }
    }

    @Test
    void aClientChargesTheBeginOfARecordAndWaitsForItsEndAsForThatOfAFrame() {
        try (Calling calling = new Calling()) {
            ByteBuf begin = RawTls.plain(RawTls.HANDSHAKE, zeros(LARGE));
            calling.answer(begin.readSlice(Outbound.MAX_SMALL_BYTES));
            assertThat(calling.held()).isZero();
            calling.answer(begin.readSlice(1));
            assertThat(calling.held()).isEqualTo(HEADER + LARGE);
            platform.pass(calling.channel, 6, TimeUnit.SECONDS);
            assertThat(calling.channel.isActive()).isFalse();
            assertThat(calling.held()).isZero();
        }
    }

    @Test
    void aClientEndsAHandshakeInRecordsOfOneByte() {
        try (Calling calling = new Calling()) {
            ByteBuf begin =
                    Unpooled.buffer().writeByte(2).writeMedium(MAX_MESSAGE - 4).writeZero(LARGE - 4);
            calling.answer(RawTls.plain(RawTls.HANDSHAKE, begin));
            assertThat(calling.held()).isEqualTo(HEADER + LARGE);
            calling.answer(RawTls.plain(RawTls.HANDSHAKE, zeros(200), 1));
            assertThat(calling.channel.isActive()).isFalse();
            assertThat(calling.held()).isZero();
        }
    }

    @Test
    void aClientEndsAServerThatChangesKeysAllTheTime() throws Exception {
        try (Calling calling = new Calling()) {
            SSLEngine engine = SslContextBuilder.forServer(
                            pair.chain().toFile(), pair.key().toFile())
                    .protocols("TLSv1.3")
                    .build()
                    .newEngine(ByteBufAllocator.DEFAULT);
            Engine peer = new Engine(engine, calling.channel);
            peer.handshake();
            assertThat(calling.held()).isZero();
            int sent = 0;
            while (calling.channel.isActive() && sent < 10_000) {
                engine.beginHandshake();
                peer.send(Unpooled.EMPTY_BUFFER);
                sent++;
            }
            // a ticket has come before
            assertThat(sent).isBetween(TlsRecords.MAX_SILENT_OF_SERVER * 3 / 4, TlsRecords.MAX_SILENT_OF_SERVER + 1);
        }
    }

    /** Drives one side of TLS as the JDK does it, at the other end of a channel. */
    private final class Engine {
        private final SSLEngine engine;
        private final EmbeddedChannel to;
        int records;

        /** The last {@link #send} has sent so many bytes. */
        int sentBytes;

        /** No record that it sends is larger than this. With 0 it is what TLS allows. */
        int recordBytes;

        Engine(SSLEngine engine, EmbeddedChannel to) {
            this.engine = engine;
            this.to = to;
        }

        void handshake() throws SSLException {
            if (engine.getUseClientMode()) {
                engine.beginHandshake();
                send(Unpooled.EMPTY_BUFFER);
            }
            read();
            assertThat(engine.getHandshakeStatus()).isEqualTo(HandshakeStatus.NOT_HANDSHAKING);
        }

        /** Sends what there is to be sent, and then these bytes. */
        void send(ByteBuf plain) throws SSLException {
            ByteBuf all = Unpooled.buffer();
            ByteBuffer out = ByteBuffer.allocate(64 << 10);
            ByteBuffer in = ByteBuffer.wrap(ByteBufUtil.getBytes(plain));
            SSLEngineResult result;
            allow(recordBytes);
            do {
                result = engine.wrap(in, out);
                records += result.bytesProduced() == 0 ? 0 : 1;
                all.writeBytes(out.flip());
                out.clear();
                runTasks();
            } while (in.hasRemaining() || result.getHandshakeStatus() == HandshakeStatus.NEED_WRAP);
            // the limit would also hold for what comes in
            allow(0);
            byte[] bytes = ByteBufUtil.getBytes(all);
            sentBytes = bytes.length;
            platform.read(to, bytes, 0, bytes.length);
        }

        private void allow(int bytes) {
            SSLParameters parameters = engine.getSSLParameters();
            parameters.setMaximumPacketSize(bytes);
            engine.setSSLParameters(parameters);
        }

        /** Takes what the channel has written, and answers it. */
        void read() throws SSLException {
            ByteBuf in = Unpooled.buffer();
            while (in.writeBytes(HandPlatform.written(to)).isReadable()) {
                ByteBuffer bytes = in.nioBuffer();
                ByteBuffer out = ByteBuffer.allocate(64 << 10);
                SSLEngineResult result = engine.unwrap(bytes, out);
                assertThat(result.getStatus()).isEqualTo(SSLEngineResult.Status.OK);
                in.skipBytes(result.bytesConsumed());
                runTasks();
                if (engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP) {
                    send(Unpooled.EMPTY_BUFFER);
                }
            }
        }

        private void runTasks() {
            for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
                task.run();
            }
        }
    }
}
