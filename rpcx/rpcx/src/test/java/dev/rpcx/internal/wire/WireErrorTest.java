package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.RPCXException;
import dev.rpcx.RPCXException.Code;
import dev.rpcx.RPCXException.Executed;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the message of an error, and the Protobuf fields of which it and the other messages of the wire consist. */
class WireErrorTest {
    private static ByteBuf bytes(String hex) {
        return Unpooled.wrappedBuffer(HexFormat.of().parseHex(hex.replace(" ", "")));
    }

    private static String written(RPCXException error) {
        ByteBuf out = Unpooled.buffer();
        WireError.write(out, error);
        return ByteBufUtil.hexDump(out);
    }

    @ParameterizedTest
    @EnumSource
    void anErrorIsReadAsItWasWritten(Code code) {
        for (Executed executed : Executed.values()) {
            RPCXException read = WireError.read(bytes(written(new RPCXException(code, "it’s so", executed, null))));
            assertThat(read.code()).isEqualTo(code);
            assertThat(read.executed()).isEqualTo(executed);
            assertThat(read).hasMessageContaining("it’s so");
        }
    }

    @Test
    void itsBytesAreThoseOfTheWire() {
        assertThat(written(new RPCXException(Code.CANCELLED, "cancelled", Executed.MAYBE, null)))
                .isEqualTo("0801" + "1209" + "63616e63656c6c6564" + "1803");
        assertThat(written(new RPCXException(Code.CANCELLED, "", Executed.MAYBE, null)))
                .isEqualTo("08011803");
    }

    /** The numbers are part of the wire. */
    @Test
    void theNumberOfACodeNeverChanges() {
        assertThat(Code.values())
                .extracting(code -> code + " " + WireError.number(code))
                .startsWith(
                        "CANCELLED 1",
                        "DEADLINE_EXCEEDED 2",
                        "UNAVAILABLE 3",
                        "NOT_FOUND 4",
                        "INVALID 5",
                        "HANDLER_FAILED 6",
                        "TOO_LARGE 7",
                        "OVERLOADED 8",
                        "UNAUTHENTICATED 9",
                        "PROTOCOL 10");
        assertThat(Executed.values())
                .extracting(executed -> executed + " " + WireError.number(executed))
                .containsExactly("NOT_EXECUTED 1", "EXECUTED 2", "MAYBE 3");
    }

    @Test
    void anErrorWithoutATextSaysThatNoneCame() {
        RPCXException read = WireError.read(bytes("08011803"));
        assertThat(read).hasMessage("the server has given no reason");
        assertThat(read.code()).isEqualTo(Code.CANCELLED);
        assertThat(read.executed()).isEqualTo(Executed.MAYBE);
    }

    @ParameterizedTest
    @ValueSource(ints = {1999, 2000, 2001, 100_000})
    void aLongTextIsCutSoThatAnErrorFitsAFrame(int length) {
        RPCXException read = WireError.read(bytes(written(new RPCXException(Code.HANDLER_FAILED, "é".repeat(length)))));
        assertThat(read).hasMessage("é".repeat(Math.min(2000, length)));
        assertThat(read.executed()).isEqualTo(Executed.EXECUTED);
    }

    @Test
    void aLongTextOfAPeerIsCutToo() {
        ByteBuf sent = Unpooled.buffer();
        ProtoFields.writeText(sent, 2, "\u0007" + "a".repeat(5_000));
        assertThat(WireError.read(sent, new ProtoFields.Counted(5_000_000))).hasMessage("\uFFFD" + "a".repeat(1999));
    }

    /** The text gets into a log or a terminal, where a server must not write lines of its own. */
    @Test
    void aTextHasNoControlCharactersAndIsOneLine() {
        String text = "no\r\n2026 INFO all is well\u001b[2J\u0000\u007f\u009b\u2028\u2029 \u00e9";
        RPCXException read = WireError.read(bytes(written(new RPCXException(Code.INVALID, text))));
        String r = "\uFFFD";
        assertThat(read).hasMessage("no" + r + r + "2026 INFO all is well" + r + "[2J" + r.repeat(5) + " \u00e9");
    }

    @Test
    void unknownFieldsOfEachTypeArePassedOver() {
        String unknown = "28 80 01" + "31 0102030405060708" + "3a 03 010203" + "45 01020304";
        RPCXException read =
                WireError.read(bytes(unknown + "0804" + unknown + "1202 6869" + unknown + "1801" + unknown));
        assertThat(read.code()).isEqualTo(Code.NOT_FOUND);
        assertThat(read).hasMessage("hi");
        assertThat(read.executed()).isEqualTo(Executed.NOT_EXECUTED);
    }

    @Test
    void aFieldOfAnotherTypeIsPassedOver() {
        RPCXException read = WireError.read(bytes("0a 01 05" + "10 05" + "1d 01020304" + "0804 1202 6869 1801"));
        assertThat(read.code()).isEqualTo(Code.NOT_FOUND);
        assertThat(read).hasMessage("hi");
        assertThat(read.executed()).isEqualTo(Executed.NOT_EXECUTED);
    }

    @Test
    void codesOfLaterVersionsAreErrorsOfTheHandler() {
        RPCXException read = WireError.read(bytes("08 63"));
        assertThat(read.code()).isEqualTo(Code.HANDLER_FAILED);
        assertThat(read.executed()).isEqualTo(Executed.MAYBE);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "08", // the number is missing
                "12 03 61 62", // the text is longer than the rest
                "2a 02 61", // the text of an unknown field is longer than the rest
                "31 01 02 03 04 05 06 07", // seven of eight bytes have arrived
                "45 01 02 03", // three of four bytes have arrived
                "2b", // a group begins
                "2c", // a group ends
                "2e 01", // there is no such type
                "00 00", // field 0 is not allowed
                "02 00", // field 0 with a length is not allowed
            })
    void whatIsNoMessageIsAFault(String hex) {
        assertThatThrownBy(() -> WireError.read(bytes(hex))).isInstanceOf(WireFault.class);
    }

    @Test
    void aFieldThatEndsWithItsMessageIsWhole() {
        assertThat(WireError.read(bytes("31 0102030405060708")).code()).isEqualTo(Code.HANDLER_FAILED);
        assertThat(WireError.read(bytes("45 01020304")).code()).isEqualTo(Code.HANDLER_FAILED);
    }

    @Test
    void aNumberOfZeroAndAnEmptyTextAreNotWritten() {
        ByteBuf out = Unpooled.buffer();
        ProtoFields.writeNumber(out, 1, 0);
        ProtoFields.writeText(out, 2, "");
        assertThat(out.readableBytes()).isZero();
        ProtoFields.writeNumber(out, 15, 300);
        ProtoFields.writeText(out, 3, "é");
        assertThat(ByteBufUtil.hexDump(out)).isEqualTo("78ac02" + "1a02c3a9");
    }

    @Test
    void anotherTagOrAnotherEndThanExpectedIsAFault() {
        ProtoFields.expect(10, 10, "here");
        assertThatThrownBy(() -> ProtoFields.expect(11, 10, "here")).hasMessageContaining("here: tag 11");
        ByteBuf in = bytes("01 02");
        ProtoFields.expectEnd(in, 0);
        assertThatThrownBy(() -> ProtoFields.expectEnd(in, 1)).isInstanceOf(WireFault.class);
    }
}
