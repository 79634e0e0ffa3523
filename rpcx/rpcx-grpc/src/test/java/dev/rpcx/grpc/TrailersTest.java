package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXException.Code;
import dev.rpcx.RPCXException.Executed;
import io.netty.handler.codec.http2.Http2Headers;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TrailersTest {
    private static final int MAX = 8_192;

    private static long size(Http2Headers headers) {
        long bytes = 0;
        for (Map.Entry<CharSequence, CharSequence> each : headers) {
            bytes += 32 + each.getKey().length() + each.getValue().length();
        }
        return bytes;
    }

    /** {@code rpcx/spec/grpc.md} has the same table. */
    @ParameterizedTest
    @CsvSource({
        "CANCELLED, MAYBE, 1",
        "DEADLINE_EXCEEDED, MAYBE, 4",
        "UNAVAILABLE, NOT_EXECUTED, 14",
        "NOT_FOUND, NOT_EXECUTED, 12",
        "NOT_FOUND, EXECUTED, 5",
        "INVALID, NOT_EXECUTED, 3",
        "HANDLER_FAILED, EXECUTED, 2",
        "TOO_LARGE, EXECUTED, 8",
        "OVERLOADED, NOT_EXECUTED, 8",
        "UNAUTHENTICATED, NOT_EXECUTED, 16",
        "PROTOCOL, NOT_EXECUTED, 13"
    })
    void eachCodeHasAStatus(Code code, Executed executed, String status) {
        Http2Headers trailers = Trailers.of(new RPCXException(code, "text", executed, null), true, "", MAX);
        assertThat(trailers.get("grpc-status")).hasToString(status);
        assertThat(trailers.get("grpc-message")).hasToString("text");
        assertThat(trailers.get("rpcx-executed"))
                .hasToString(executed == Executed.MAYBE ? "maybe" : executed == Executed.EXECUTED ? "yes" : "not");
        assertThat(trailers.get("rpcx-code")).hasToString(code.name().toLowerCase(Locale.ROOT));
        assertThat(trailers.status()).hasToString("200");
    }

    @Test
    void aTextIsEscapedAsTheProtocolWantsIt() {
        assertThat(Trailers.percentEncoded("50 % ~ \n größer 😀", 100))
                .isEqualTo("50 %25 ~ %0A gr%C3%B6%C3%9Fer %F0%9F%98%80");
        assertThat(Trailers.percentEncoded("aöb", 6)).isEqualTo("a");
        assertThat(Trailers.percentEncoded("aöb", 7)).isEqualTo("a%C3%B6");
    }

    @Test
    void whatDoesNotFitIsLeftOutTheDetailsFirst() {
        RPCXException error = new RPCXException(Code.INVALID, "ö".repeat(2_000))
                .withDetails(List.of(new RPCXException.Detail("Large", new byte[8_000], false)))
                .withMetadata(Metadata.EMPTY.with("name", "value"));
        Http2Headers trailers = Trailers.of(error, true, "type.googleapis.com/", MAX);
        assertThat(size(trailers)).isLessThanOrEqualTo(MAX);
        assertThat(trailers.get("grpc-status")).hasToString("3");
        assertThat(trailers.get("name")).hasToString("value");
        assertThat(trailers.get("grpc-message").toString()).startsWith("%C3%B6").endsWith("%C3%B6");
        assertThat(trailers.contains("grpc-status-details-bin")).isFalse();
        assertThat(Trailers.of(error, true, "type.googleapis.com/", 100_000).contains("grpc-status-details-bin"))
                .isTrue();
    }

    @Test
    void namesThatNoHeaderCanHaveAreLeftOut() {
        Metadata metadata = Metadata.EMPTY
                .with("Plain", "text")
                .with("with space", "text")
                .with("grpc-status", "9")
                .with("content-type", "text/html")
                .with("upgrade", "h2c")
                .with("keep-alive", "timeout=5")
                .with("rpcx-code", "overloaded")
                .with("rpcx-executed", "not")
                .with(" edge", "text")
                .with("padded", " text ")
                .with("raw-bin", "AQI")
                .with("text-bin", "no base64!");
        Http2Headers trailers = Trailers.ok(metadata, MAX);
        assertThat(trailers.names())
                .map(CharSequence::toString)
                .containsExactlyInAnyOrder("grpc-status", "plain", "padded-bin", "raw-bin", "text-bin");
        assertThat(trailers.get("grpc-status")).hasToString("0");
        assertThat(trailers.get("raw-bin")).hasToString("AQI");
    }

    @Test
    void binaryEntriesGoBackAsTheyHaveCome() {
        Metadata metadata = Metadata.EMPTY.with("one-bin", "AQI=").with("several-bin", "AQI,Aw==, BA");
        Http2Headers trailers = Trailers.ok(metadata, MAX);
        assertThat(trailers.getAll("one-bin")).map(CharSequence::toString).containsExactly("AQI");
        assertThat(trailers.getAll("several-bin")).map(CharSequence::toString).containsExactly("AQI", "Aw", "BA");
    }

    @Test
    void anErrorWithoutATextHasNoHeaderForIt() {
        RPCXException error = new RPCXException(Code.INVALID, "", Executed.EXECUTED, null);
        assertThat(Trailers.of(error, true, "", MAX).contains("grpc-message")).isFalse();
    }
}
