package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HexFormat;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests HTTP requests to a port of RPCX. A browser, or a service that somebody can give an address and a method, sends
 * such requests to any port. None of them may become a connection of RPCX, whatever method, path, headers and body
 * somebody has chosen.
 */
@Timeout(60)
class HttpRequestsTest {
    private static final String HELLO = "07677265657465720568656c6c6f0a0a48656c6c6f576f726c64";

    private final AtomicInteger executed = new AtomicInteger();
    private Server server;

    @RPCXServer("greeter")
    private final class Greeter {
        @Method
        String hello(String text) {
            executed.incrementAndGet();
            return text;
        }
    }

    @BeforeEach
    void start() {
        server = Server.builder(RegistryServer.registry(new Greeter()))
                .host("127.0.0.1")
                .classic(true)
                .build()
                .start();
    }

    @AfterEach
    void stop() {
        server.stop(Duration.ofMillis(200));
    }

    private byte[] answer(String begin, byte[] body) throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.socket.setSoTimeout(5_000);
            peer.send(Unpooled.wrappedBuffer(begin.getBytes(StandardCharsets.ISO_8859_1), body));
            return peer.readToEnd();
        } finally {
            assertThat(executed).hasValue(0);
        }
    }

    /**
     * Returns a request. The eight bytes of a preface end within its path. The next two letters of the path are the
     * head of a frame of an unknown type, which ends with the empty line.
     *
     * @param method a method that ends within the first eight bytes
     */
    private static String request(String method) {
        String headers = " HTTP/1.1\r\nHost: localhost:9000\r\nContent-Length: 32\r\n\r\n";
        String preface = (method + "/abcdefgh").substring(0, Wire.PREFACE_BYTES);
        return preface + "z/" + "x".repeat('z' - 1 - headers.length()) + headers;
    }

    @ParameterizedTest
    @ValueSource(strings = {"RPCX ", "RPCX\t", "RPCX\n", "RPCX\r\n", "RPCXA ", "RPCX! ", "RPCX~ ", "RPCX\u00ff "})
    void aRequestOfHttpWhoseMethodBeginsAsThePrefaceDoesCallsNothing(String method) throws IOException {
        byte[] frame = HexFormat.of().parseHex("1f2300010000" + HELLO);
        assertThat(answer(request(method), frame)).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"GET ", "POST ", "OPTIONS ", "PRI * HTTP/2.0", "\r\n", "\n", "rpcx ", "0 "})
    void anyOtherRequestOfHttpIsAClassicFrameOfALengthThatIsNotRead(String method) throws IOException {
        byte[] frame = HexFormat.of()
                .parseHex("0000002a082a120767726565746572"
                        + "1a0568656c6c6f22160a06737472696e67120c0a0a48656c6c6f576f726c64");
        byte[] answer = answer(request(method), frame);
        // the answer is a reply of the connection, and then its end
        assertThat(answer).hasSizeGreaterThan(4);
        assertThat(Unpooled.wrappedBuffer(answer).readInt()).isEqualTo(answer.length - 4);
        assertThat(new String(answer, StandardCharsets.UTF_8)).doesNotContain("HelloWorld");
    }

    @Test
    void theSameFrameBehindAPrefaceIsACall() throws IOException {
        byte[] frame = HexFormat.of().parseHex("1f2300010000" + HELLO);
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(Unpooled.wrappedBuffer(RawPeer.preface(), Unpooled.wrappedBuffer(frame)));
            peer.readPreface();
            assertThat(peer.readAnswer().type()).isEqualTo(Wire.REPLY);
        }
        assertThat(executed).hasValue(1);
    }
}
