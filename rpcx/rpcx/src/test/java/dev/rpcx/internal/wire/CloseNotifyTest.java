package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.CallContext;
import dev.rpcx.Certificates;
import dev.rpcx.ClassicRequests;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RawServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.Tls;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests a peer that sends a close_notify. It has ended its stream by that, even if TCP's end does not follow, and
 * nothing may come after it (RFC 8446, section 6.1). The keep-alive times are so long that nothing else ends a
 * connection here.
 */
@Timeout(120)
class CloseNotifyTest {
    private static final int ID = 1 << 16;
    private static final Duration KEEP_ALIVE = Duration.ofMinutes(10);

    @RPCXServer("last")
    static final class Last {
        final AtomicInteger noted = new AtomicInteger();
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch cancelled = new CountDownLatch(1);

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        void note(String text) {
            noted.incrementAndGet();
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> never(String text) {
            CallContext.current().orElseThrow().onCancel(cancelled::countDown);
            begun.countDown();
            return new CompletableFuture<>();
        }
    }

    @RPCXClient(remoteServerName = "last")
    interface LastClient {
        CompletableFuture<String> echo(String text);
    }

    /** A socket that does not pass on the end of its stream until it is closed. What TLS writes at that end is sent. */
    private static final class Endless extends Socket {
        @Override
        public void shutdownOutput() {
            // so the peer reads nothing but the close_notify
        }
    }

    @TempDir
    static Path directory;

    private static Certificates certificates;
    private static Certificates.Pair certificate;

    private final Last last = new Last();

    @BeforeAll
    static void make() throws Exception {
        certificates = new Certificates(directory, "servers");
        certificate = certificates.make("server", "server", "dns:localhost,ip:127.0.0.1", "-1d", 30);
    }

    private Server serve() {
        return Server.builder(RegistryServer.registry(last))
                .host("127.0.0.1")
                .classic(true)
                .keepAlive(KEEP_ALIVE)
                .tls(Tls.server(certificate.chain(), certificate.key()))
                .build()
                .start();
    }

    private static Client client(boolean classic) {
        Client.Builder builder = Client.builder()
                .keepAlive(KEEP_ALIVE)
                .callTimeout(Duration.ofSeconds(60))
                .tls(Tls.client().trusting(certificates.authority));
        return (classic ? builder.classic() : builder).build();
    }

    /** Opens a TLS connection over a socket that does not pass on its end. */
    private static SSLSocket connect(int port) throws Exception {
        Socket socket = new Endless();
        socket.connect(new InetSocketAddress("127.0.0.1", port));
        SSLSocket secured = (SSLSocket)
                certificates.context("server").getSocketFactory().createSocket(socket, "localhost", port, true);
        secured.setSoTimeout(20_000);
        secured.startHandshake();
        return secured;
    }

    /** Accepts TLS connections over sockets that do not pass on their end. */
    private static final class Servers implements AutoCloseable {
        private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress()) {
            @Override
            public Socket accept() throws IOException {
                Socket socket = new Endless();
                implAccept(socket);
                return socket;
            }
        };

        Servers() throws IOException {
            listening.setSoTimeout(20_000);
        }

        int port() {
            return listening.getLocalPort();
        }

        SSLSocket accept() throws Exception {
            Socket socket = listening.accept();
            SSLSocket secured = (SSLSocket)
                    certificates.context("server").getSocketFactory().createSocket(socket, null, true);
            secured.setSoTimeout(20_000);
            secured.startHandshake();
            return secured;
        }

        @Override
        public void close() throws IOException {
            listening.close();
        }
    }

    private static void write(Socket to, ByteBuf bytes) throws IOException {
        to.getOutputStream().write(ByteBufUtil.getBytes(bytes));
        to.getOutputStream().flush();
    }

    private void callsEndWithTheStream(SSLSocket socket) throws Exception {
        assertThat(last.begun.await(20, TimeUnit.SECONDS)).isTrue();
        socket.shutdownOutput();
        assertThat(last.cancelled.await(20, TimeUnit.SECONDS))
                .as("the call under way is cancelled")
                .isTrue();
        // the server sends its own close_notify, without which the end would be an error
        socket.getInputStream().readAllBytes();
        assertThat(last.noted).as("what came before that end").hasValue(1);
    }

    @Test
    void aServerEndsTheConnectionOfAClientThatHasSaidCloseNotify() throws Exception {
        try (Server server = serve();
                SSLSocket socket = connect(server.port())) {
            ByteBuf never = RawPeer.request(ID, "last", "never", "a");
            ByteBuf note = RawPeer.request(ID | 1, "last", "note", "a");
            write(socket, Unpooled.wrappedBuffer(RawPeer.preface(), never, note));
            callsEndWithTheStream(socket);
        }
    }

    @Test
    void aServerEndsTheClassicConnectionOfSuchAClientToo() throws Exception {
        try (Server server = serve();
                SSLSocket socket = connect(server.port())) {
            ByteBuf never = ClassicRequests.of(1, "last", "never", List.of("any"), List.of(text("a")));
            ByteBuf note = ClassicRequests.of(2, "last", "note", List.of("any"), List.of(text("a")));
            write(socket, Unpooled.wrappedBuffer(never, note));
            callsEndWithTheStream(socket);
        }
    }

    private static byte[] text(String text) {
        return ByteBufUtil.getBytes(RawPeer.text(text));
    }

    /** The client has sent nothing of either wire. */
    @Test
    void aServerEndsAConnectionThatHasSaidNothingElse() throws Exception {
        try (Server server = serve();
                SSLSocket socket = connect(server.port())) {
            socket.shutdownOutput();
            assertThat(socket.getInputStream().readAllBytes()).isEmpty();
        }
    }

    /** The server's end of a connection, on either wire. */
    private abstract static class Peer implements AutoCloseable {
        final SSLSocket socket;
        final DataInputStream in;

        Peer(SSLSocket socket) throws IOException {
            this.socket = socket;
            this.in = new DataInputStream(socket.getInputStream());
        }

        static Peer of(SSLSocket socket, boolean classic) throws IOException {
            return classic ? new ClassicPeer(socket) : new NativePeer(socket);
        }

        /**
         * Waits for a request.
         *
         * @return its id
         */
        abstract long request() throws IOException;

        abstract void reply(long id, String text) throws IOException;

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    private static final class NativePeer extends Peer {
        private final RawServer.Peer raw;

        NativePeer(SSLSocket socket) throws IOException {
            super(socket);
            raw = new RawServer.Peer(socket);
            ByteBuf told = Unpooled.buffer();
            new Settings(Wire.MAX_MESSAGE_BYTES, 10, Settings.INITIAL.defaultMicros()).write(told);
            raw.write(RawPeer.preface());
            raw.send(Wire.SETTINGS, 0, told);
            raw.send(Wire.DICTIONARY, 0);
        }

        @Override
        long request() throws IOException {
            return raw.read(Wire.REQUEST).id();
        }

        @Override
        void reply(long id, String text) throws IOException {
            raw.reply((int) id, text);
        }
    }

    private static final class ClassicPeer extends Peer {
        ClassicPeer(SSLSocket socket) throws IOException {
            super(socket);
        }

        @Override
        long request() throws IOException {
            byte[] frame = new byte[in.readInt()];
            in.readFully(frame);
            return ClassicWire.readRequest(Unpooled.wrappedBuffer(frame)).id();
        }

        @Override
        void reply(long id, String text) throws IOException {
            write(socket, Unpooled.wrappedBuffer(ClassicWire.reply(id, RawPeer.text(text), null)));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aClientDisconnectsFromAServerThatHasSaidCloseNotify(boolean classic) throws Exception {
        try (Servers servers = new Servers();
                Client client = client(classic)) {
            LastClient calls = client.create(LastClient.class, "localhost", servers.port());
            CompletableFuture<String> answered = calls.echo("a");
            try (Peer first = Peer.of(servers.accept(), classic)) {
                long id = first.request();
                CompletableFuture<String> inFlight = calls.echo("b");
                first.request();
                first.reply(id, "A");
                first.socket.shutdownOutput();
                assertThat(answered.get(20, TimeUnit.SECONDS))
                        .as("what came before that end")
                        .isEqualTo("A");
                assertThatThrownBy(() -> inFlight.get(20, TimeUnit.SECONDS))
                        .cause()
                        .isInstanceOfSatisfying(RPCXException.class, error -> {
                            assertThat(error.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
                            assertThat(error.executed()).isEqualTo(RPCXException.Executed.MAYBE);
                        });
                CompletableFuture<String> next = calls.echo("c");
                try (Peer second = Peer.of(servers.accept(), classic)) {
                    second.reply(second.request(), "C");
                    assertThat(next.get(20, TimeUnit.SECONDS)).isEqualTo("C");
                }
                // the client sends its own close_notify, without which the end would be an error
                first.in.readAllBytes();
            }
        }
    }
}
