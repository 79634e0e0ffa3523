package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.wire.Wire;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2FrameTypes;
import io.netty.handler.codec.http2.Http2Headers;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests calls in frames that no client of gRPC sends, or that it sends seldom. */
class GrpcFramesTest {
    private static final byte[] ADA = RawClient.text("Ada");

    /** SETTINGS_INITIAL_WINDOW_SIZE is 0, so that the server may send no data. */
    private static final byte[] NO_WINDOW = {0, 4, 0, 0, 0, 0};

    /** Length of the message "Hello Ada" with its field and its prefix. */
    private static final int REPLY_BYTES = 16;

    private Served served;
    private RawClient client;

    @BeforeEach
    void start() throws IOException {
        served = new Served();
        client = new RawClient(served.port());
    }

    @AfterEach
    void stop() throws IOException {
        client.close();
        served.close();
    }

    private static String status(Http2Headers last) {
        return String.valueOf(last.get("grpc-status"));
    }

    private static String text(Http2Headers last) {
        return String.valueOf(last.get("grpc-message"));
    }

    @Test
    void aMessageMayComeInAnyNumberOfFrames() throws IOException {
        client.headers(1, RawClient.call("Hello"), 0);
        for (byte each : ADA) {
            client.data(1, new byte[] {each}, 0);
        }
        client.data(1, new byte[0], RawClient.END_STREAM);
        assertThat(client.next(Http2FrameTypes.DATA, 1).payload()).hasSize(REPLY_BYTES);
        assertThat(status(client.last(1))).isEqualTo("0");
    }

    @Test
    void aFrameMayHaveAnyNumberOfMessages() throws IOException {
        ByteArrayOutputStream items = new ByteArrayOutputStream();
        for (byte item = 1; item <= 4; item++) {
            items.write(RawClient.message(new byte[] {8, item}));
        }
        client.headers(1, RawClient.call("Total"), 0);
        client.data(1, items.toByteArray(), RawClient.END_STREAM);
        assertThat(client.next(Http2FrameTypes.DATA, 1).payload()).containsExactly(0, 0, 0, 0, 2, 8, 10);
    }

    @Test
    void anotherMethodOfHttpIsNotAllowed() throws IOException {
        client.headers(1, RawClient.call("Hello").method("GET"), RawClient.END_STREAM);
        Http2Headers last = client.last(1);
        assertThat(last.status()).hasToString("405");
        assertThat(last.get("allow")).hasToString("POST");
    }

    @ParameterizedTest
    @ValueSource(strings = {":method", ":scheme", ":path"})
    void aRequestWithoutWhatEachOneHasIsMalformed(String header) throws IOException {
        Http2Headers request = RawClient.call("Hello");
        request.remove(header);
        client.headers(1, request, RawClient.END_STREAM);
        assertThat(client.next(Http2FrameTypes.RST_STREAM, 1).payload())
                .containsExactly(0, 0, 0, (byte) Http2Error.PROTOCOL_ERROR.code());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "application/json", "application/grpc-web", "application/grpc+json"})
    void anotherTypeOfContentIsNotSupported(String type) throws IOException {
        client.headers(1, RawClient.call("Hello").set("content-type", type), RawClient.END_STREAM);
        assertThat(client.last(1).status()).hasToString("415");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "application/grpc+proto",
                "application/grpc;charset=utf-8",
                "application/grpc ; charset=utf-8",
                "Application/GRPC+Proto"
            })
    void bothNamesOfTheTypeAreKnown(String type) throws IOException {
        client.headers(1, RawClient.call("Hello").set("content-type", type), 0);
        client.data(1, ADA, RawClient.END_STREAM);
        assertThat(status(client.last(1))).isEqualTo("0");
    }

    @Test
    void aCallWithoutAMessageIsNotExecuted() throws IOException {
        client.headers(1, RawClient.call("Hello"), RawClient.END_STREAM);
        Http2Headers last = client.last(1);
        assertThat(status(last)).isEqualTo("13");
        assertThat(last.get("rpcx-executed")).hasToString("not");
        assertThat(served.counter.executed).hasValue(0);
    }

    @Test
    void aCallWithTwoMessagesIsNotExecuted() throws IOException {
        client.headers(1, RawClient.call("Hello"), 0);
        client.data(1, ADA, 0);
        client.data(1, ADA, RawClient.END_STREAM);
        Http2Headers last = client.last(1);
        assertThat(status(last)).isEqualTo("13");
        assertThat(last.get("rpcx-executed")).hasToString("not");
        assertThat(served.counter.executed).hasValue(0);
    }

    @Test
    void aMessageThatIsCutOffIsNotExecuted() throws IOException {
        client.headers(1, RawClient.call("Hello"), 0);
        client.data(1, Arrays.copyOf(ADA, ADA.length - 1), RawClient.END_STREAM);
        assertThat(status(client.last(1))).isEqualTo("13");
        assertThat(served.counter.executed).hasValue(0);
    }

    @Test
    void aCompressedMessageNeedsAnEncoding() throws IOException {
        byte[] compressed = ADA.clone();
        compressed[0] = 1;
        client.headers(1, RawClient.call("Hello"), 0);
        client.data(1, compressed, RawClient.END_STREAM);
        assertThat(status(client.last(1))).isEqualTo("13");
        client.headers(3, RawClient.call("Hello").set("grpc-encoding", "gzip"), 0);
        client.data(3, compressed, RawClient.END_STREAM);
        Http2Headers last = client.last(3);
        assertThat(status(last)).isEqualTo("13");
        assertThat(text(last)).contains("gzip");
        assertThat(served.counter.executed).hasValue(0);
    }

    @Test
    void anEncodingThatIsNotKnownIsRefusedWithThoseThatAre() throws IOException {
        client.headers(1, RawClient.call("Hello").set("grpc-encoding", "snappy"), 0);
        client.data(1, ADA, RawClient.END_STREAM);
        Http2Headers last = client.last(1);
        assertThat(status(last)).isEqualTo("12");
        assertThat(last.get("grpc-accept-encoding")).hasToString("identity,gzip");
    }

    @ParameterizedTest
    @CsvSource({"gzip, gzip", "'identity, gzip', gzip", "x-gzip, ''", "identity, ''"})
    void theAnswerIsInGzipOnlyIfTheClientAcceptsThat(String accepted, String encoding) throws IOException {
        Http2Headers headers = RawClient.call("Hello").set("grpc-encoding", "gzip");
        client.headers(1, headers.set("grpc-accept-encoding", accepted), 0);
        client.data(1, ADA, RawClient.END_STREAM);
        CharSequence answered = client.first(1).get("grpc-encoding");
        assertThat(answered == null ? "" : answered.toString()).isEqualTo(encoding);
    }

    @Test
    void theEncodingsThatAClientAcceptsMayStandInSeveralHeaders() throws IOException {
        Http2Headers headers = RawClient.call("Hello").set("grpc-encoding", "gzip");
        client.headers(1, headers.add("grpc-accept-encoding", "deflate").add("grpc-accept-encoding", "gzip"), 0);
        client.data(1, ADA, RawClient.END_STREAM);
        assertThat(client.first(1).get("grpc-encoding")).hasToString("gzip");
    }

    @Test
    void aTimeoutThatIsNoneIsRefused() throws IOException {
        client.headers(1, RawClient.call("Hello").set("grpc-timeout", "1x"), 0);
        client.data(1, ADA, RawClient.END_STREAM);
        assertThat(status(client.last(1))).isEqualTo("3");
    }

    @ParameterizedTest
    @ValueSource(strings = {"0S", "999n"})
    void aCallWhoseTimeIsOverWhenItComesIsNotExecuted(String timeout) throws IOException {
        client.headers(1, RawClient.call("Hello").set("grpc-timeout", timeout), 0);
        client.data(1, ADA, RawClient.END_STREAM);
        Http2Headers last = client.last(1);
        assertThat(status(last)).isEqualTo("4");
        assertThat(last.get("rpcx-executed")).hasToString("not");
        assertThat(served.counter.executed).hasValue(0);
    }

    /** The server's clock for the call begins with the headers. */
    @Test
    void aCallWhoseMessageDoesNotComeEndsAtItsDeadline() throws IOException {
        client.headers(1, RawClient.call("Hello").set("grpc-timeout", "50m"), 0);
        Http2Headers last = client.last(1);
        assertThat(status(last)).isEqualTo("4");
        assertThat(last.get("rpcx-executed")).hasToString("not");
    }

    @Test
    void theRestOfACallThatHasItsAnswerIsNotRead() throws IOException {
        client.headers(1, RawClient.call("Unknown"), 0);
        assertThat(status(client.last(1))).isEqualTo("12");
        RawClient.Frame reset = client.next(Http2FrameTypes.RST_STREAM, 1);
        assertThat(reset.payload()).containsExactly(0, 0, 0, 0);
        client.data(1, ADA, RawClient.END_STREAM);
        client.headers(3, RawClient.call("Hello"), 0);
        client.data(3, ADA, RawClient.END_STREAM);
        assertThat(status(client.last(3))).isEqualTo("0");
    }

    /** Both HEADERS come in one read, so that the first answer has not left when the trailers are read. */
    @Test
    void theTrailersOfARequestThatIsRefusedAreNotRead() throws IOException {
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        request.write(RawClient.frame(
                Http2FrameTypes.HEADERS, RawClient.END_HEADERS, 1, client.encoded(1, RawClient.call("Unknown"))));
        request.write(RawClient.frame(
                Http2FrameTypes.HEADERS,
                RawClient.END_HEADERS | RawClient.END_STREAM,
                1,
                client.encoded(1, new DefaultHttp2Headers().set("checksum", "1"))));
        client.write(request.toByteArray());
        assertThat(status(client.last(1))).isEqualTo("12");
        client.headers(3, RawClient.call("Hello"), 0);
        client.data(3, ADA, RawClient.END_STREAM);
        assertThat(status(client.last(3))).isEqualTo("0");
    }

    @Test
    void aRequestMayEndWithTrailers() throws IOException {
        client.headers(1, RawClient.call("Hello"), 0);
        client.data(1, ADA, 0);
        client.headers(1, new DefaultHttp2Headers().set("checksum", "1"), RawClient.END_STREAM);
        assertThat(status(client.last(1))).isEqualTo("0");
    }

    @Test
    void anAcknowledgementOfADrainThatHasNotBegunIsIgnored() throws IOException {
        byte[] content = ByteBuffer.allocate(Long.BYTES)
                .putLong(~((long) Wire.MAGIC << Integer.SIZE))
                .array();
        client.send(Http2FrameTypes.PING, RawClient.ACK, 0, content);
        client.headers(1, RawClient.call("Hello"), 0);
        client.data(1, ADA, RawClient.END_STREAM);
        assertThat(status(client.last(1))).isEqualTo("0");
    }

    /** RFC 9113, section 8.2.1, wants an error of the stream at least. */
    @Test
    void aNameInCapitalsIsAnErrorOfTheProtocol() throws IOException {
        Http2Headers headers = new DefaultHttp2Headers(false).setAll(RawClient.call("Hello"));
        client.headers(1, headers.set("Upper", "x"), RawClient.END_STREAM);
        RawClient.Frame frame = client.next();
        while (frame.type() != Http2FrameTypes.RST_STREAM && frame.type() != Http2FrameTypes.GO_AWAY) {
            frame = client.next();
        }
        int at = frame.type() == Http2FrameTypes.RST_STREAM ? 0 : Integer.BYTES;
        assertThat(ByteBuffer.wrap(frame.payload()).getInt(at)).isEqualTo(1);
        assertThat(served.counter.executed).hasValue(0);
    }

    @Test
    void dataBehindTheEndOfAStreamAreAnErrorOfTheStream() throws IOException {
        client.headers(1, RawClient.call("Wait"), 0);
        client.data(1, RawClient.message(new byte[0]), RawClient.END_STREAM);
        client.data(1, ADA, RawClient.END_STREAM);
        assertThat(client.next(Http2FrameTypes.RST_STREAM, 1).payload()).containsExactly(0, 0, 0, 5);
        client.headers(3, RawClient.call("Hello"), 0);
        client.data(3, ADA, RawClient.END_STREAM);
        assertThat(status(client.last(3))).isEqualTo("0");
    }

    /** A header of one byte can stand for 3 KB here. So the metadata of a read can be far larger than the read. */
    @Test
    void manyCallsOfOneReadWithLongMetadataAreServed() throws IOException {
        Http2Headers headers = RawClient.call("Hello").set("long", "x".repeat(3_000));
        ByteArrayOutputStream calls = new ByteArrayOutputStream();
        int last = 0;
        for (int stream = 1; stream < 200; stream += 2) {
            byte[] block = client.encoded(stream, headers);
            calls.write(RawClient.frame(Http2FrameTypes.HEADERS, RawClient.END_HEADERS, stream, block));
            last = stream;
        }
        for (int stream = 1; stream < 200; stream += 2) {
            calls.write(RawClient.frame(Http2FrameTypes.DATA, RawClient.END_STREAM, stream, ADA));
        }
        client.write(calls.toByteArray());
        assertThat(status(client.last(last))).isEqualTo("0");
        await().untilAsserted(() -> assertThat(served.counter.executed).hasValue(100));
    }

    @Test
    void aReplyWaitsForTheWindowOfTheClientAndIsCharged() throws IOException {
        try (RawClient small = new RawClient(served.port(), NO_WINDOW)) {
            small.headers(1, RawClient.call("Letters"), 0);
            // 100,000 letters
            small.data(1, RawClient.message(new byte[] {8, (byte) 0xA0, (byte) 0x8D, 6}), RawClient.END_STREAM);
            await().until(() -> Ledger.auditAll().contains("QUEUE_BYTES"));
            // another call is answered, since an error has no data
            small.headers(3, RawClient.call("Unknown"), RawClient.END_STREAM);
            assertThat(status(small.last(3))).isEqualTo("12");
            small.send(Http2FrameTypes.WINDOW_UPDATE, 0, 1, new byte[] {0, 2, 0, 0});
            small.send(Http2FrameTypes.WINDOW_UPDATE, 0, 0, new byte[] {0, 2, 0, 0});
            assertThat(status(small.last(1))).isEqualTo("0");
            await().until(() -> !Ledger.auditAll().contains("QUEUE_BYTES"));
        }
    }

    @Test
    void thePartOfAFrameIsCharged() throws IOException {
        client.headers(1, RawClient.call("Hello"), 0);
        byte[] frame = RawClient.frame(Http2FrameTypes.DATA, 0, 1, RawClient.message(new byte[16_000]));
        client.write(Arrays.copyOf(frame, 10_000));
        await().until(() -> Ledger.auditAll().contains("FRAME_BYTES"));
    }

    @Test
    void headersAboveTheLimitAreRefused() throws IOException {
        client.headers(1, RawClient.call("Hello").set("long", "x".repeat(9_000)), RawClient.END_STREAM);
        assertThat(client.last(1).status()).hasToString("431");
        client.headers(3, RawClient.call("Hello"), 0);
        client.data(3, ADA, RawClient.END_STREAM);
        assertThat(status(client.last(3))).isEqualTo("0");
    }

    /** This is "HTTP/2 rapid reset" (CVE-2023-44487). The end of the test checks that nothing of the calls is left. */
    @Test
    void callsThatAreResetAtOnceLeaveNothing() throws IOException {
        Http2Headers headers = RawClient.call("Wait");
        ByteArrayOutputStream flood = new ByteArrayOutputStream();
        int stream = 1;
        for (int i = 0; i < 5_000; i++) {
            flood.write(RawClient.frame(
                    Http2FrameTypes.HEADERS, RawClient.END_HEADERS, stream, client.encoded(stream, headers)));
            flood.write(RawClient.frame(
                    Http2FrameTypes.DATA, RawClient.END_STREAM, stream, RawClient.message(new byte[0])));
            flood.write(RawClient.frame(Http2FrameTypes.RST_STREAM, 0, stream, new byte[] {0, 0, 0, 8}));
            stream += 2;
        }
        client.write(flood.toByteArray());
        client.headers(stream, RawClient.call("Hello"), 0);
        client.data(stream, ADA, RawClient.END_STREAM);
        assertThat(status(client.last(stream))).isIn("0", "8");
    }

    @Test
    void aClientThatAnswersPingsKeepsItsConnection() throws IOException {
        try (Served quick = new Served(builder -> builder.keepAlive(Duration.ofMillis(300)));
                RawClient caller = new RawClient(quick.port())) {
            for (int i = 0; i < 5; i++) {
                RawClient.Frame ping = caller.next(Http2FrameTypes.PING, 0);
                caller.send(Http2FrameTypes.PING, RawClient.ACK, 0, ping.payload());
            }
            caller.headers(1, RawClient.call("Hello"), 0);
            caller.data(1, ADA, RawClient.END_STREAM);
            assertThat(status(caller.last(1))).isEqualTo("0");
        }
    }
}
