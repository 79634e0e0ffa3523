package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Inside;
import dev.rpcx.Metadata;
import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests how the bytes before the arguments of a request are read, and which requests are refused because of them. */
class RequestReaderTest {
    private static final int MAX_BYTES = 100;
    private static final long DEFAULT_MICROS = 7_000;

    @RPCXServer("read")
    static final class Service {
        @Method
        String one(String text) {
            return text;
        }

        @Method
        Flow.Publisher<String> many(String text) {
            return new SubmissionPublisher<>();
        }

        @Method
        String all(Flow.Publisher<String> texts) {
            return "";
        }
    }

    private final ServerCore server = Inside.core(Server.builder(RegistryServer.registry(new Service()))
            .inProcess()
            .maxMessageBytes(MAX_BYTES)
            .maxCallTime(Duration.ofSeconds(30))
            .build());
    private final RequestReader reader = new RequestReader(server);

    private void read(int head, ByteBuf payload) {
        reader.read(head, payload, false, DEFAULT_MICROS);
    }

    private static ByteBuf with(ByteBuf payload, long micros) {
        Varint.write(payload, micros);
        return payload;
    }

    private static ByteBuf one() {
        return RawPeer.prelude("read", "one");
    }

    private ServerMethod method(String name) {
        return Objects.requireNonNull(server.method("read\0" + name));
    }

    @Test
    void aMethodIsFoundByItsNumberAndByItsName() {
        for (String name : new String[] {"one", "many", "all"}) {
            read(0, with(Unpooled.buffer(), method(name).number()));
            assertThat(reader.refusedAs()).isNull();
            assertThat(reader.method()).isSameAs(method(name));
            read(Wire.NAMED, RawPeer.prelude("read", name));
            assertThat(reader.refusedAs()).isNull();
            assertThat(reader.method()).isSameAs(method(name));
        }
    }

    @Test
    void anotherMethodIsNotFound() {
        for (long number : new long[] {0, 4, -1, (1L << 32) + 1}) {
            read(0, with(Unpooled.buffer(), number));
            assertThat(reader.refusedAs()).isEqualTo(RPCXException.Code.NOT_FOUND);
        }
        read(Wire.NAMED, RawPeer.prelude("read", "two"));
        assertThat(reader.refusedAs()).isEqualTo(RPCXException.Code.NOT_FOUND);
        assertThat(reader.why()).isEqualTo("no such service or method");
        read(Wire.NAMED, one());
        assertThat(reader.refusedAs()).isNull();
    }

    @Test
    void aNameThatIsCutOffIsNoRequest() {
        for (int bytes = 0; bytes < one().readableBytes(); bytes++) {
            ByteBuf cut = one().slice(0, bytes);
            assertThatThrownBy(() -> read(Wire.NAMED, cut))
                    .isInstanceOf(WireFault.class)
                    .hasMessage("a name is cut off");
        }
    }

    @Test
    void whatFollowsIsLeftToBeRead() {
        ByteBuf payload = with(one(), 5);
        MetadataFields.write(payload, Metadata.EMPTY.with("n", "v"));
        payload.writeByte(77);
        read(Wire.NAMED | Wire.TIME | Wire.METADATA, payload);
        assertThat(payload.readableBytes()).isEqualTo(1);
        assertThat(payload.readByte()).isEqualTo((byte) 77);
    }

    private long nanos(String method, long micros) {
        read(Wire.NAMED | Wire.TIME, with(RawPeer.prelude("read", method), micros));
        assertThat(reader.refusedAs()).isNull();
        return reader.nanos();
    }

    @Test
    void aTimeIsThatOfTheRequestOrOfItsConnection() {
        assertThat(nanos("one", 3)).isEqualTo(3_000);
        read(Wire.NAMED, one());
        assertThat(reader.nanos()).isEqualTo(1_000 * DEFAULT_MICROS);
    }

    @Test
    void aTimeIsCutToTheLongestExceptThatOfAStream() {
        long longest = TimeUnit.SECONDS.toNanos(30);
        assertThat(nanos("one", 30_000_000)).isEqualTo(longest);
        assertThat(nanos("one", 30_000_001)).isEqualTo(longest);
        assertThat(nanos("many", 30_000_001)).isEqualTo(longest + 1_000);
        assertThat(nanos("all", 30_000_001)).isEqualTo(longest + 1_000);
    }

    @Test
    void aTimeBeyondWhatAClockHoldsIsAsGoodAsNone() {
        for (long micros : new long[] {-1, Long.MAX_VALUE, (1L << 50) + 1}) {
            assertThat(nanos("many", micros)).isEqualTo((1L << 50) * 1_000);
        }
    }

    @Test
    void aRequestWithoutTimeIsRefused() {
        read(Wire.NAMED | Wire.TIME, with(one(), 0));
        assertThat(reader.refusedAs()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
    }

    @Test
    void aNoticeOfAMethodWithAStreamIsRefused() {
        reader.read(Wire.NAMED, one(), true, DEFAULT_MICROS);
        assertThat(reader.refusedAs()).isNull();
        for (String name : new String[] {"many", "all"}) {
            reader.read(Wire.NAMED, RawPeer.prelude("read", name), true, DEFAULT_MICROS);
            assertThat(reader.refusedAs()).isEqualTo(RPCXException.Code.INVALID);
        }
    }

    @Test
    void argumentsOfMoreThanAMessageMayHaveAreRefused() {
        read(Wire.NAMED, one().writeZero(MAX_BYTES));
        assertThat(reader.refusedAs()).isNull();
        read(Wire.NAMED, one().writeZero(MAX_BYTES + 1));
        assertThat(reader.refusedAs()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(reader.why()).isEqualTo("a request of more than 100 bytes");
    }

    @Test
    void metadataAreTakenOnceAndHaveTheirCost() {
        Metadata given = Metadata.EMPTY.with("n", "v");
        ByteBuf payload = one();
        int before = payload.readableBytes();
        MetadataFields.write(payload, given);
        int bytes = payload.readableBytes() - before;
        read(Wire.NAMED | Wire.METADATA, payload);
        assertThat(reader.metadataCost()).isEqualTo(MetadataFields.cost(given, bytes));
        assertThat(reader.takeMetadata().entries()).isEqualTo(given.entries());
        assertThat(reader.takeMetadata()).isSameAs(Metadata.EMPTY);
        read(Wire.NAMED, one());
        assertThat(reader.metadataCost()).isZero();
    }
}
