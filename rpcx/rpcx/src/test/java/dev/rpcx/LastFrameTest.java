package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.ClassicFrames;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that the last bytes that a side sends arrive, even if its peer is still sending. The side first sends the end
 * of its stream. It then reads what still arrives, and discards it.
 */
@Timeout(120)
class LastFrameTest {
    /**
     * A reply of this length is more than a client's socket takes, so most of it waits at the server when that closes.
     */
    private static final int LARGE = 400_000;

    private static final int ID = 1 << 16;
    private static final int CROSSING = 200;

    @RPCXServer("last")
    static final class Last {
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String much(int bytes) {
            return "x".repeat(bytes);
        }
    }

    @RPCXClient(remoteServerName = "last")
    interface LastClient {
        String much(int bytes);
    }

    @TempDir
    static Path directory;

    private static Path authority;
    private static Certificates.Pair certificate;

    @BeforeAll
    static void make() throws Exception {
        Certificates servers = new Certificates(directory, "servers");
        certificate = servers.make("server", "server", "dns:localhost,ip:127.0.0.1", "-1d", 30);
        authority = servers.authority;
    }

    private static Server serve(boolean secure) {
        Server.Builder builder = Server.builder(RegistryServer.registry(new Last()))
                .host("127.0.0.1")
                .classic(true);
        return (secure ? builder.tls(Tls.server(certificate.chain(), certificate.key())) : builder)
                .build()
                .start();
    }

    /** Connects a socket that takes little at a time, so that what is sent to it waits at the sender. */
    private static Socket connect(int port, boolean secure) throws Exception {
        Socket socket = new Socket();
        socket.setReceiveBufferSize(4096);
        socket.setSoTimeout(20_000);
        socket.connect(new InetSocketAddress("127.0.0.1", port));
        socket.setTcpNoDelay(true);
        if (!secure) {
            return socket;
        }
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (InputStream in = new FileInputStream(authority.toFile())) {
            trusted.setCertificateEntry(
                    "authority", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        SSLSocket secured = (SSLSocket) context.getSocketFactory().createSocket(socket, "localhost", port, true);
        secured.startHandshake();
        return secured;
    }

    private static byte[] greeted(ByteBuf frames) {
        return ByteBufUtil.getBytes(Unpooled.wrappedBuffer(RawPeer.preface(), frames));
    }

    /** Reads to the end of the stream. Within TLS, reading fails if the peer ends it without its close_notify. */
    private static byte[] readToEnd(InputStream in, byte[] begin) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.write(begin);
        in.transferTo(all);
        return all.toByteArray();
    }

    /**
     * Sends frames that the server may still get while it closes. The client cannot know yet that the server closes.
     */
    private static void cross(Socket socket, byte[] frame) {
        try {
            OutputStream out = socket.getOutputStream();
            for (int i = 0; i < CROSSING; i++) {
                out.write(frame);
                out.flush();
                Thread.onSpinWait();
            }
        } catch (IOException closed) {
            // the server was faster: what it has sent has to be there all the same
        }
    }

    private static void aReplyArrivesWholeWithFramesCrossingIt(boolean secure) throws Exception {
        try (Server server = serve(secure);
                Socket socket = connect(server.port(), secure)) {
            ByteBuf body = Unpooled.buffer().writeByte(8);
            Varint.write(body, LARGE);
            ByteBuf request = RawPeer.frame(
                    Wire.REQUEST | Wire.NAMED,
                    ID,
                    RawPeer.prelude("last", "much").writeBytes(body));
            socket.getOutputStream()
                    .write(greeted(
                            Unpooled.wrappedBuffer(request, RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER))));
            byte[] begin = new byte[Wire.PREFACE_BYTES];
            DataInputStream in = new DataInputStream(socket.getInputStream());
            in.readFully(begin);
            cross(socket, ByteBufUtil.getBytes(RawPeer.frame(Wire.PONG, 0, Unpooled.EMPTY_BUFFER)));
            byte[] all = readToEnd(in, begin);
            assertThat(all.length).isGreaterThan(LARGE);
            int xs = 0;
            for (byte b : all) {
                xs += b == 'x' ? 1 : 0;
            }
            assertThat(xs).as("bytes of the reply").isGreaterThanOrEqualTo(LARGE);
        }
    }

    @Test
    void aReplyArrivesWholeWhenItsConnectionClosesWhileFramesCrossIt() throws Exception {
        aReplyArrivesWholeWithFramesCrossingIt(false);
    }

    @Test
    void aReplyArrivesWholeWithinTlsTooAndBehindItTheCloseNotify() throws Exception {
        aReplyArrivesWholeWithFramesCrossingIt(true);
    }

    private static void theReasonArrives(boolean secure) throws Exception {
        try (Server server = serve(secure);
                Socket socket = connect(server.port(), secure)) {
            socket.getOutputStream().write(greeted(Unpooled.buffer().writeByte(4)));
            cross(socket, new byte[1000]);
            byte[] all = readToEnd(socket.getInputStream(), new byte[0]);
            assertThat(new String(all, java.nio.charset.StandardCharsets.ISO_8859_1))
                    .contains("frame of length 4");
        }
    }

    @Test
    void whyAConnectionEndsIsReadAlsoByAClientThatIsStillSending() throws Exception {
        theReasonArrives(false);
    }

    @Test
    void whyAConnectionEndsIsReadWithinTlsToo() throws Exception {
        theReasonArrives(true);
    }

    private static void theClassicReasonArrives(boolean secure) throws Exception {
        try (Server server = serve(secure);
                Socket socket = connect(server.port(), secure)) {
            socket.getOutputStream().write(new byte[] {-1, -1, -1, -1});
            cross(socket, new byte[1000]);
            byte[] all = readToEnd(socket.getInputStream(), new byte[0]);
            ByteBuf in = Unpooled.wrappedBuffer(all);
            ClassicWire.Reply last = ClassicWire.readReply(in.skipBytes(ClassicFrames.LENGTH_BYTES));
            assertThat(last.id()).isZero();
            assertThat(last.error()).isNotNull();
        }
    }

    @Test
    void whyAClassicConnectionEndsIsReadAlsoByAClientThatIsStillSending() throws Exception {
        theClassicReasonArrives(false);
    }

    @Test
    void whyAClassicConnectionEndsIsReadWithinTlsToo() throws Exception {
        theClassicReasonArrives(true);
    }

    @Test
    void aClientThatNeitherReadsNorClosesHasItsPlaceForASecond() throws Exception {
        try (Server server = serve(false);
                Socket socket = connect(server.port(), false)) {
            socket.getOutputStream().write(greeted(Unpooled.buffer().writeByte(4)));
            // this side has read the end of the stream, and keeps its own direction open
            readToEnd(socket.getInputStream(), new byte[0]);
            await().atMost(Duration.ofSeconds(60)).until(() -> server.core().connections() == 0);
        }
    }

    @Test
    void aServerReadsWhyAClientEndedItsConnection() throws Exception {
        try (RawServer raw = new RawServer();
                Client client = Client.standard()) {
            Thread caller = new Thread(() -> {
                try {
                    client.create(LastClient.class, "127.0.0.1", raw.port()).much(1);
                } catch (RPCXException expected) {
                    // its connection ends
                }
            });
            caller.start();
            try (RawServer.Peer peer = raw.accept(10)) {
                peer.read(Wire.REQUEST);
                peer.write(Unpooled.buffer().writeByte(4));
                try {
                    for (int i = 0; i < CROSSING; i++) {
                        peer.write(Unpooled.wrappedBuffer(new byte[1000]));
                    }
                } catch (IOException closed) {
                    // the client was faster
                }
                RawPeer.Frame last = peer.read(Wire.ERROR);
                assertThat(WireError.read(Unpooled.wrappedBuffer(last.payload()))
                                .code())
                        .isEqualTo(RPCXException.Code.PROTOCOL);
            }
            caller.join();
        }
    }
}
