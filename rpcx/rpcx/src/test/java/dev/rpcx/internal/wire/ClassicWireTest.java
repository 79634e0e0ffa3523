package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.ClassicRequests;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the messages of the paper byte by byte. */
class ClassicWireTest {
    private static ByteBuf bytes(String hex) {
        return Unpooled.wrappedBuffer(HexFormat.of().parseHex(hex.replace(" ", "")));
    }

    private static String text(ByteBuf bytes) {
        return ByteBufUtil.hexDump(bytes);
    }

    /** Checks the length of a frame, and returns the rest. */
    private static ByteBuf message(ByteBuf frame) {
        assertThat(frame.readInt()).isEqualTo(frame.readableBytes());
        return frame;
    }

    @Test
    void theBytesOfARequestAreThoseOfThePaper() {
        ByteBuf frame = ClassicRequests.of(
                300, "s", "me", List.of("int", "x", ""), List.of(new byte[] {5}, new byte[0], new byte[] {1, 2}));
        assertThat(text(frame))
                .isEqualTo("0000001f" + "08ac02" + "120173" + "1a026d65" + "2208" + "0a03696e74" + "120105" + "2203"
                        + "0a0178" + "2204" + "12020102");
    }

    @Test
    void aRequestIsReadAsItWasWritten() {
        ClassicWire.Request request = ClassicWire.readRequest(message(ClassicRequests.of(
                -7, "service", "method", List.of("a", "b"), List.of(new byte[] {9}, new byte[] {1, 2, 3}))));
        assertThat(request.id()).isEqualTo(-7);
        assertThat(request.service()).isEqualTo("service");
        assertThat(request.method()).isEqualTo("method");
        assertThat(request.values()).containsExactly(bytes("09"), bytes("010203"));
    }

    @Test
    void whatARequestDoesNotSayIsEmpty() {
        ClassicWire.Request request = ClassicWire.readRequest(Unpooled.EMPTY_BUFFER);
        assertThat(request.id()).isZero();
        assertThat(request.service()).isEmpty();
        assertThat(request.method()).isEmpty();
        assertThat(request.values()).isEmpty();
        assertThat(ClassicWire.readRequest(bytes("2200")).values()).containsExactly(Unpooled.EMPTY_BUFFER);
    }

    @Test
    void unknownFieldsArePassedOverAndTheLastOfSeveralCounts() {
        // the bytes in the unknown field would be an id and a value
        String unknown = "7a05" + "0809" + "120107";
        ClassicWire.Request request = ClassicWire.readRequest(bytes(unknown + "0805" + "0806" + "120161" + "120162"
                + "1a0163" + "2213" + unknown + "120101" + "1200" + unknown + unknown));
        assertThat(request.id()).isEqualTo(6);
        assertThat(request.service()).isEqualTo("b");
        assertThat(request.method()).isEqualTo("c");
        assertThat(request.values()).containsExactly(Unpooled.EMPTY_BUFFER);
    }

    /** A frame has room for two million fields. Each of them costs its reader as much as a long one. */
    @Test
    void aMessageHasABoundedNumberOfFieldsThoseOfItsPartsAmongThem() {
        String unknown = "7800";
        assertThat(ClassicWire.readRequest(bytes(unknown.repeat(ClassicWire.MAX_FIELDS - 1) + "0805"))
                        .id())
                .isEqualTo(5);
        ByteBuf part = bytes(unknown.repeat(ClassicWire.MAX_FIELDS / 2));
        ByteBuf parts = Unpooled.buffer();
        for (int i = 0; i < 2; i++) {
            parts.writeByte(4 << 3 | 2);
            Varint.write(parts, part.readableBytes());
            parts.writeBytes(part.duplicate());
        }
        ByteBuf error = bytes(unknown.repeat(ClassicWire.MAX_FIELDS));
        ByteBuf failed = Unpooled.buffer().writeByte(3 << 3 | 2);
        Varint.write(failed, error.readableBytes());
        failed.writeBytes(error);
        for (ByteBuf request : List.of(bytes(unknown.repeat(ClassicWire.MAX_FIELDS + 1)), parts)) {
            assertThatThrownBy(() -> ClassicWire.readRequest(request))
                    .isInstanceOf(WireFault.class)
                    .hasMessageContaining("fields");
        }
        for (ByteBuf reply : List.of(bytes(unknown.repeat(ClassicWire.MAX_FIELDS + 1)), failed)) {
            assertThatThrownBy(() -> ClassicWire.readReply(reply))
                    .isInstanceOf(WireFault.class)
                    .hasMessageContaining("fields");
        }
    }

    @Test
    void aKnownNumberWithAnotherWireTypeIsPassedOver() {
        ClassicWire.Request request =
                ClassicWire.readRequest(bytes("0805" + "0a0109" + "1005" + "2005" + "2204" + "1005" + "0801"));
        assertThat(request.id()).isEqualTo(5);
        assertThat(request.service()).isEmpty();
        assertThat(request.values()).containsExactly(Unpooled.EMPTY_BUFFER);
        // if an error comes twice, nothing of the first one remains
        RPCXException error = Objects.requireNonNull(
                ClassicWire.readReply(bytes("0805" + "1a07" + "0808" + "120161" + "1801" + "1a02" + "0804"))
                        .error());
        assertThat(error.code()).isEqualTo(RPCXException.Code.NOT_FOUND);
        assertThat(error).hasMessage("the server has given no reason");
        assertThat(error.executed()).isEqualTo(RPCXException.Executed.MAYBE);
    }

    @Test
    void aRequestHasAtMost255Parameters() {
        assertThat(ClassicWire.readRequest(bytes("2200".repeat(255))).values()).hasSize(255);
        assertThatThrownBy(() -> ClassicWire.readRequest(bytes("2200".repeat(256))))
                .isInstanceOf(WireFault.class)
                .hasMessageContaining("255");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "8880808010 05", // the tag has more than 32 bits, and its low bits are those of the id
                "2202 1202", // the value is longer than its parameter
                "12 05 61", // the name is longer than the message
                "08", // the number is missing
                "2206 8880808010 05", // the same tag occurs within a parameter
            })
    void whatIsNoRequestIsAFault(String hex) {
        assertThatThrownBy(() -> ClassicWire.readRequest(bytes(hex))).isInstanceOf(WireFault.class);
    }

    @Test
    void aNameThatIsTooLongIsThatOfNothing() {
        String longest = "x".repeat(Wire.MAX_NAME_BYTES);
        ClassicWire.Request request =
                ClassicWire.readRequest(message(ClassicRequests.of(1, longest, longest + "y", List.of(), List.of())));
        assertThat(request.service()).isEqualTo(longest);
        assertThat(request.method()).isEmpty();
    }

    @Test
    void theIdStandsAtTheBeginOrNowhere() {
        assertThat(ClassicWire.id(bytes("08ac02 12"))).isEqualTo(300);
        assertThat(ClassicWire.id(bytes("120161 0805"))).isNull();
        assertThatThrownBy(() -> ClassicWire.id(bytes("08"))).isInstanceOf(WireFault.class);
    }

    /** Each text is what follows an id of one byte. */
    @ParameterizedTest
    @ValueSource(strings = {"", "1a00", "1200" + "1a00", "1a00" + "1200", "4001" + "1200", "1201", "00"})
    void whatMayBeAnErrorIsNotAResult(String rest) {
        ByteBuf begin = bytes("0801" + rest);
        int length = begin.readableBytes();
        assertThat(ClassicWire.id(begin)).isEqualTo(1);
        assertThat(ClassicWire.isResult(begin, length)).isFalse();
    }

    @Test
    void aResultAloneIsSeenByItsBegin() {
        ByteBuf begin = bytes("0801" + "128020" + "0102");
        assertThat(ClassicWire.id(begin)).isEqualTo(1);
        assertThat(ClassicWire.isResult(begin.duplicate(), 5 + 4_096)).isTrue();
        assertThat(ClassicWire.isResult(begin.duplicate(), 5 + 4_097)).isFalse();
    }

    @Test
    void theBytesOfAReplyAreThoseOfThePaper() {
        assertThat(HexFormat.of().formatHex(ClassicWire.reply(300, bytes("0102"), null)))
                .isEqualTo("00000007" + "08ac02" + "12020102");
        assertThat(HexFormat.of().formatHex(ClassicWire.reply(1, null, null))).isEqualTo("00000002" + "0801");
        assertThat(HexFormat.of().formatHex(ClassicWire.reply(1, Unpooled.EMPTY_BUFFER, null)))
                .isEqualTo("00000002" + "0801");
        RPCXException error = RPCXException.refused(RPCXException.Code.NOT_FOUND, "no");
        assertThat(HexFormat.of().formatHex(ClassicWire.reply(1, null, error)))
                .isEqualTo("0000000c" + "0801" + "1a08" + "0804" + "12026e6f" + "1801");
    }

    @Test
    void aReplyIsReadAsItWasWritten() {
        ClassicWire.Reply reply =
                ClassicWire.readReply(message(Unpooled.wrappedBuffer(ClassicWire.reply(-9, bytes("010203"), null))));
        assertThat(reply.id()).isEqualTo(-9);
        assertThat(reply.result()).containsExactly(1, 2, 3);
        assertThat(reply.error()).isNull();
        ClassicWire.Reply failed = ClassicWire.readReply(message(Unpooled.wrappedBuffer(ClassicWire.reply(
                9, null, new RPCXException(RPCXException.Code.INVALID, "so", RPCXException.Executed.MAYBE, null)))));
        assertThat(failed.id()).isEqualTo(9);
        assertThat(failed.result()).isEmpty();
        assertThat(Objects.requireNonNull(failed.error()).code()).isEqualTo(RPCXException.Code.INVALID);
        assertThat(failed.error()).hasMessage("so");
    }

    @Test
    void unknownFieldsOfAReplyArePassedOver() {
        ClassicWire.Reply reply = ClassicWire.readReply(bytes("7a020102" + "0805" + "4001" + "120107"));
        assertThat(reply.id()).isEqualTo(5);
        assertThat(reply.result()).containsExactly(7);
        assertThatThrownBy(() -> ClassicWire.readReply(bytes("9080808010 00"))).isInstanceOf(WireFault.class);
        assertThatThrownBy(() -> ClassicWire.readReply(bytes("7a050102"))).isInstanceOf(WireFault.class);
    }
}
