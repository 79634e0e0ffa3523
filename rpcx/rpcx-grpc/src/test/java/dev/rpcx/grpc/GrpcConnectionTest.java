package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.DynamicMessage;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.Tls;
import io.grpc.ConnectivityState;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests how a connection of gRPC begins, ends, and withstands what no client of gRPC sends. */
class GrpcConnectionTest {
    private static final String EMPTY_SETTINGS = "000000040000000000";
    private static final int GOAWAY = 7;
    private static final int FRAME_HEADER_BYTES = 9;

    @RPCXClient(remoteServerName = "counter")
    interface Native {
        @Method("hello")
        String hello(String name);
    }

    private static byte[] answer(int port, byte[] bytes) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(30_000);
            socket.getOutputStream().write(bytes);
            return readToEnd(socket.getInputStream());
        }
    }

    /** Reads until the server has closed the connection. A reset ends the reading too. */
    private static byte[] readToEnd(InputStream in) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        try {
            in.transferTo(all);
        } catch (SocketException reset) {
            // what came before is returned
        }
        return all.toByteArray();
    }

    private static byte[] http2(String... hexFrames) {
        String preface = HexFormat.of().formatHex(RawClient.PREFACE.getBytes(StandardCharsets.US_ASCII));
        return HexFormat.of().parseHex(preface + String.join("", hexFrames));
    }

    /** Returns the text of the GOAWAY frame in an answer; null if there is none. */
    private static String reason(byte[] answer) {
        int at = 0;
        while (at + FRAME_HEADER_BYTES <= answer.length) {
            int length = (answer[at] & 0xFF) << 16 | (answer[at + 1] & 0xFF) << 8 | answer[at + 2] & 0xFF;
            if (answer[at + 3] == GOAWAY) {
                return new String(answer, at + FRAME_HEADER_BYTES + 8, length - 8, StandardCharsets.UTF_8);
            }
            at += FRAME_HEADER_BYTES + length;
        }
        return null;
    }

    @Test
    void nativeClientsAndClientsOfGrpcShareThePort() {
        try (Served served = new Served();
                GrpcClient grpc = served.client();
                Client own = Client.standard()) {
            assertThat(grpc.call("Hello", "Ada")).isEqualTo("Hello Ada");
            assertThat(own.create(Native.class, "127.0.0.1", served.port()).hello("Bob"))
                    .isEqualTo("Hello Bob");
        }
    }

    @Test
    void aServerSpeaksNoGrpcUnlessItIsToldTo() {
        Counter counter = new Counter();
        try (Server server = Server.builder(RegistryServer.registry(counter))
                        .host("127.0.0.1")
                        .build()
                        .start();
                GrpcClient client = new GrpcClient(server.port())) {
            assertThatThrownBy(() -> client.call("Hello", "Ada")).isInstanceOf(StatusRuntimeException.class);
            assertThat(counter.executed).hasValue(0);
        }
    }

    @RPCXServer("same")
    private static final class Alike {
        @Method("say-it")
        void one() {}

        @Method("sayIt")
        void other() {}
    }

    @Test
    void methodsOfOneNameInGrpcAreRefusedAtTheStart() {
        Server.Builder builder =
                Server.builder(RegistryServer.registry(new Alike())).grpc("");
        assertThatThrownBy(builder::build)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("same/say-it")
                .hasMessageContaining("same/sayIt")
                .hasMessageContaining("/Same/SayIt");
        assertThatThrownBy(() -> builder.grpc("com.acme-1")).hasMessageContaining("package com.acme-1");
    }

    @Test
    void aServerThatStopsFinishesTheCallsUnderWay() throws Exception {
        Served served = new Served();
        try (GrpcClient client = served.client()) {
            ListenableFuture<DynamicMessage> reply =
                    ClientCalls.futureUnaryCall(client.begin("Wait"), GrpcClient.request("Wait"));
            assertThat(served.counter.begun.await(30, TimeUnit.SECONDS)).isTrue();
            Thread stop = new Thread(() -> served.server.stop(Duration.ofSeconds(30)));
            stop.start();
            // the client has got the GOAWAY when it no longer counts the connection as ready
            await().until(() -> client.channel.getState(false) != ConnectivityState.READY);
            served.counter.released.complete("done");
            assertThat(GrpcClient.value(reply.get(30, TimeUnit.SECONDS))).isEqualTo("done");
            stop.join(30_000);
            assertThat(stop.isAlive()).isFalse();
        }
        served.close();
    }

    @Test
    void aServerWithoutCallsStopsAtOnceAlthoughAClientIsConnected() {
        Served served = new Served();
        try (GrpcClient client = served.client()) {
            client.call("Hello", "Ada");
            // the stop would wait for all of this time if the client kept its connection
            served.server.stop(Duration.ofDays(1));
        }
        served.close();
    }

    @Test
    void clientsAgreeOnHttp2InTheHandshakeOfTls(@TempDir Path folder) throws Exception {
        Certificate certificate = Certificate.make(folder, "server");
        try (Served served = new Served(builder -> builder.tls(Tls.server(certificate.chain(), certificate.key())));
                GrpcClient grpc = new GrpcClient(NettyChannelBuilder.forAddress("127.0.0.1", served.port())
                        .sslContext(GrpcSslContexts.forClient()
                                .trustManager(certificate.chain().toFile())
                                .build()));
                Client own = Client.builder()
                        .tls(Tls.client().trusting(certificate.chain()))
                        .build()) {
            assertThat(grpc.call("Hello", "Ada")).isEqualTo("Hello Ada");
            assertThat((String) grpc.call("Letters", 1_000_000)).hasSize(1_000_000);
            assertThat(own.create(Native.class, "127.0.0.1", served.port()).hello("Bob"))
                    .isEqualTo("Hello Bob");
        }
    }

    @Test
    void theSubjectOfAClientsCertificateIsThePrincipal(@TempDir Path folder) throws Exception {
        Certificate server = Certificate.make(folder, "server");
        Certificate alice = Certificate.make(folder, "alice");
        try (Served served = new Served(builder ->
                        builder.tls(Tls.server(server.chain(), server.key()).requiringClientsOf(alice.chain())));
                GrpcClient grpc = new GrpcClient(NettyChannelBuilder.forAddress("127.0.0.1", served.port())
                        .sslContext(GrpcSslContexts.forClient()
                                .trustManager(server.chain().toFile())
                                .keyManager(alice.chain().toFile(), alice.key().toFile())
                                .build()))) {
            assertThat(grpc.call("Principal")).isEqualTo("CN=alice");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"GET / HTTP/1.1\r\n\r\n", "POST /com.acme.count.Counter/Hello HTTP/1.1\r\n\r\n", "PRI * HTTP/1.1"
            })
    void aRequestOfHttp1GetsAnAnswerOfHttp1(String request) throws IOException {
        try (Served served = new Served()) {
            String answer = new String(
                    answer(served.port(), request.getBytes(StandardCharsets.US_ASCII)), StandardCharsets.US_ASCII);
            assertThat(answer).startsWith("HTTP/1.1 400 Bad Request\r\n").contains("HTTP/2");
        }
    }

    @Test
    void aFrameThatBreaksTheRulesOfHttp2EndsTheConnectionWithItsReason() throws IOException {
        try (Served served = new Served()) {
            // DATA on stream 0
            byte[] answer = answer(served.port(), http2(EMPTY_SETTINGS, "000001000000000000" + "61"));
            assertThat(reason(answer)).isNotNull();
        }
    }

    @Test
    void aFloodOfPingsEndsTheConnection() throws IOException {
        try (Served served = new Served()) {
            String ping = "000008060000000000" + "0102030405060708";
            byte[] answer = answer(served.port(), http2(EMPTY_SETTINGS, ping.repeat(1_000)));
            assertThat(reason(answer)).isEqualTo("too_many_pings");
        }
    }

    @Test
    void aFloodOfSettingsEndsTheConnection() throws IOException {
        try (Served served = new Served()) {
            byte[] answer = answer(served.port(), http2(EMPTY_SETTINGS.repeat(1_000)));
            assertThat(reason(answer)).isEqualTo("too_many_pings");
        }
    }

    /** This is "CONTINUATION flood" (CVE-2024-27316), with frames that are small, and with ones that are large. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 1_000, 16_384})
    void headersThatDoNotEndEndTheConnection(int bytes) throws IOException {
        try (Served served = new Served()) {
            String headers = "000001010000000001" + "82";
            String continuation = "%06x090000000001".formatted(bytes) + "82".repeat(bytes);
            byte[] answer = answer(served.port(), http2(EMPTY_SETTINGS, headers, continuation.repeat(20)));
            assertThat(reason(answer)).isNotNull();
        }
    }

    @Test
    void aStreamWithAnEvenNumberEndsTheConnection() throws IOException {
        try (Served served = new Served()) {
            byte[] answer = answer(served.port(), http2(EMPTY_SETTINGS, "000001010500000002" + "82"));
            assertThat(reason(answer)).isNotNull();
        }
    }

    @Test
    void aPrefaceThatIsNotCompleteInTimeEndsTheConnection() throws IOException {
        try (Served served = new Served(builder -> builder.keepAlive(Duration.ofMillis(300)))) {
            byte[] begin = RawClient.PREFACE.substring(0, 10).getBytes(StandardCharsets.US_ASCII);
            assertThat(reason(answer(served.port(), begin))).isNull();
        }
    }

    @Test
    void aClientThatAnswersNoPingLosesItsConnection() throws IOException {
        try (Served served = new Served(builder -> builder.keepAlive(Duration.ofMillis(300)))) {
            // the read ends only when the server closes the connection
            answer(served.port(), http2(EMPTY_SETTINGS));
        }
    }
}
