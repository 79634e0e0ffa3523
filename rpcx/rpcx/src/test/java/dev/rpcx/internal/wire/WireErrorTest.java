package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXException.Code;
import dev.rpcx.RPCXException.Executed;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
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

    private static RPCXException.Detail detail(String name, int bytes) {
        return new RPCXException.Detail(name, new byte[bytes], false);
    }

    @Test
    void theBytesOfDetailsAreThoseOfTheWire() {
        RPCXException error = new RPCXException(Code.HANDLER_FAILED, "", Executed.EXECUTED, null)
                .withDetails(List.of(
                        new RPCXException.Detail("NotEnough", HexFormat.of().parseHex("08ac02"), true),
                        new RPCXException.Detail("BadField", HexFormat.of().parseHex("0a03616765"), false),
                        new RPCXException.Detail("Empty", new byte[0], false)));
        String bytes = written(error);
        assertThat(bytes)
                .isEqualTo("08061802"
                        + "2212" + "0a094e6f74456e6f756768" + "120308ac02" + "1801"
                        + "2211" + "0a084261644669656c64" + "12050a03616765"
                        + "2207" + "0a05456d707479");
        List<RPCXException.Detail> read = WireError.read(bytes(bytes)).details();
        assertThat(read).extracting(RPCXException.Detail::name).containsExactly("NotEnough", "BadField", "Empty");
        assertThat(read).extracting(RPCXException.Detail::isDeclared).containsExactly(true, false, false);
        assertThat(read.get(0).message()).isEqualTo(HexFormat.of().parseHex("08ac02"));
        assertThat(read.get(2).message()).isEmpty();
    }

    @Test
    void theBytesOfMetadataAreThoseOfTheWire() {
        RPCXException error = new RPCXException(Code.INVALID, "", Executed.EXECUTED, null)
                .withMetadata(Metadata.EMPTY.with("a", "bc").with("d", ""));
        String bytes = written(error);
        assertThat(bytes).isEqualTo("08051802" + "2a10" + "0a07" + "0a0161" + "12026263" + "0a05" + "0a0164" + "1200");
        assertThat(WireError.read(bytes(bytes)).metadata().entries())
                .containsExactly(Map.entry("a", "bc"), Map.entry("d", ""));
        assertThat(WireError.read(bytes("0805")).metadata()).isSameAs(Metadata.EMPTY);
    }

    @Test
    void metadataAboveTheirLimitArePassedOver() {
        for (int more = 0; more < 2; more++) {
            ByteBuf entries = Unpooled.buffer();
            MetadataFields.write(entries, Metadata.EMPTY.with("n", "x".repeat(Metadata.MAX_REPLY_BYTES - 9 + more)));
            String sent = "0805" + "2a" + ByteBufUtil.hexDump(entries) + "1801";
            RPCXException read = WireError.read(bytes(sent));
            assertThat(read.executed()).isEqualTo(Executed.NOT_EXECUTED);
            assertThat(read.metadata().isEmpty()).isEqualTo(more == 1);
        }
    }

    @Test
    void theLargestErrorFitsAFrame() {
        int each = RPCXException.MAX_DETAIL_BYTES / RPCXException.MAX_DETAILS;
        RPCXException error = new RPCXException(Code.HANDLER_FAILED, "\uffff".repeat(2000))
                .withDetails(Collections.nCopies(RPCXException.MAX_DETAILS, detail("n", each - 1)))
                .withMetadata(Metadata.EMPTY.with("n", "x".repeat(Metadata.MAX_REPLY_BYTES - 9)));
        MetadataFields.checkReply(error.metadata());
        ByteBuf out = Unpooled.buffer();
        WireError.write(out, error);
        assertThat(out.readableBytes()).isLessThanOrEqualTo(Wire.MAX_PAYLOAD_BYTES);
        RPCXException read = WireError.read(out);
        assertThat(read.details()).hasSize(RPCXException.MAX_DETAILS);
        assertThat(read.metadata()).isEqualTo(error.metadata());
    }

    /** A peer decides neither how many details this side keeps, nor how large they are. */
    @Test
    void whatIsBeyondTheBoundsOfDetailsIsPassedOver() {
        ByteBuf sent = Unpooled.buffer();
        ProtoFields.writeNumber(sent, 1, 5);
        for (String name : List.of("", "x".repeat(256), "\u00e9".repeat(200))) {
            write(sent, name.getBytes(StandardCharsets.UTF_8), 1);
        }
        // each of these bytes is read as U+FFFD, which takes three
        write(sent, HexFormat.of().parseHex("ff".repeat(100)), 1);
        write(sent, "large".getBytes(StandardCharsets.UTF_8), RPCXException.MAX_DETAIL_BYTES - 4);
        write(sent, "first".getBytes(StandardCharsets.UTF_8), RPCXException.MAX_DETAIL_BYTES - 5 - 8);
        write(sent, "second".getBytes(StandardCharsets.UTF_8), 3);
        write(sent, "third".getBytes(StandardCharsets.UTF_8), 3);
        RPCXException read = WireError.read(sent, new ProtoFields.Counted(5_000));
        assertThat(read.code()).isEqualTo(Code.INVALID);
        assertThat(read.details()).extracting(RPCXException.Detail::name).containsExactly("first", "third");
    }

    @Test
    void aSeventeenthDetailIsPassedOver() {
        ByteBuf sent = Unpooled.buffer();
        for (int i = 0; i < 40; i++) {
            write(sent, ("d" + i).getBytes(StandardCharsets.UTF_8), 1);
        }
        assertThat(WireError.read(sent).details())
                .hasSize(RPCXException.MAX_DETAILS)
                .last()
                .extracting(RPCXException.Detail::name)
                .isEqualTo("d15");
    }

    private static void write(ByteBuf out, byte[] name, int bytes) {
        ByteBuf detail = Unpooled.buffer();
        detail.writeByte(1 << 3 | 2);
        Varint.write(detail, name.length);
        detail.writeBytes(name);
        detail.writeByte(2 << 3 | 2);
        Varint.write(detail, bytes);
        detail.writeZero(bytes);
        out.writeByte(4 << 3 | 2);
        Varint.write(out, detail.readableBytes());
        out.writeBytes(detail);
    }

    /** Whatever comes is an error or a fault of the connection, and never anything else. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void hostileDetailsAreReadOrAFault(long seed) {
        Random random = new Random(seed);
        byte[] whole = HexFormat.of()
                .parseHex("08051203616263" + "2212" + "0a094e6f74456e6f756768" + "120308ac02" + "1801" + "2207"
                        + "0a05456d707479" + "1801" + "2a09" + "0a07" + "0a0161" + "12026263");
        for (int length = 0; length < whole.length; length++) {
            readOrFault(Arrays.copyOf(whole, length));
        }
        for (int round = 0; round < 20_000; round++) {
            byte[] changed = whole.clone();
            for (int i = 0; i <= random.nextInt(3); i++) {
                changed[random.nextInt(changed.length)] = (byte) random.nextInt(256);
            }
            readOrFault(changed);
        }
    }

    private static void readOrFault(byte[] payload) {
        try {
            RPCXException read = WireError.read(Unpooled.wrappedBuffer(payload));
            for (RPCXException.Detail detail : read.details()) {
                assertThat(detail.name()).isNotEmpty();
                assertThat(detail.message().length).isLessThanOrEqualTo(payload.length);
            }
            assertThat(read.metadata().entries()).hasSizeLessThanOrEqualTo(payload.length);
        } catch (WireFault fault) {
            assertThat(fault).hasMessageNotContaining("java.");
        }
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
                "3a 02 61", // the text of an unknown field is longer than the rest
                "2a 02 61", // the metadata are longer than the rest
                "2a 02 08 05", // the entries of metadata have another type
                "2a 03 0a 02 61", // an entry is longer than the metadata
                "31 01 02 03 04 05 06 07", // seven of eight bytes have arrived
                "45 01 02 03", // three of four bytes have arrived
                "2b", // a group begins
                "2c", // a group ends
                "2e 01", // there is no such type
                "00 00", // field 0 is not allowed
                "02 00", // field 0 with a length is not allowed
                "22 03 0a 02 61", // the name of a detail is longer than the detail
                "22 02 12 01", // the message of a detail is longer than the detail
                "22 02 1b 00", // a group begins within a detail
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
