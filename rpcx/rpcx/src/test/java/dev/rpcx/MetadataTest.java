package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.CodedOutputStream;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.wire.MetadataFields;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Tests how metadata are made, and compares their bytes with those of protobuf-java. */
class MetadataTest {
    /** Writes the fields of a message. */
    private interface Fields {
        void write(CodedOutputStream out) throws IOException;
    }

    private static byte[] message(Fields fields) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        CodedOutputStream out = CodedOutputStream.newInstance(bytes);
        fields.write(out);
        out.flush();
        return bytes.toByteArray();
    }

    private static byte[] entry(String name, String value) throws IOException {
        return message(out -> {
            out.writeString(1, name);
            out.writeString(2, value);
        });
    }

    /** Returns the fields as they stand in a request, after their length. */
    private static ByteBuf framed(Fields fields) throws IOException {
        byte[] all = message(fields);
        return Unpooled.wrappedBuffer(message(out -> out.writeByteArrayNoTag(all)));
    }

    private static ByteBuf byProtobuf(Map<String, String> entries) throws IOException {
        return framed(out -> {
            for (Map.Entry<String, String> entry : entries.entrySet()) {
                out.writeByteArray(1, entry(entry.getKey(), entry.getValue()));
            }
        });
    }

    private static ByteBuf written(Metadata metadata) {
        ByteBuf out = Unpooled.buffer();
        MetadataFields.write(out, metadata);
        return out;
    }

    private static Map<String, String> numbered(int count) {
        Map<String, String> entries = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            entries.put("n" + i, "v" + i);
        }
        return entries;
    }

    private static RPCXException refused(Metadata metadata) {
        ByteBuf out = Unpooled.buffer();
        RPCXException[] thrown = new RPCXException[1];
        assertThatThrownBy(() -> MetadataFields.write(out, metadata))
                .isInstanceOfSatisfying(RPCXException.class, e -> thrown[0] = e);
        assertThat(out.isReadable()).isFalse();
        assertThat(thrown[0].executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        return thrown[0];
    }

    @Test
    void entriesHaveTheBytesThatProtobufGivesThem() throws IOException {
        Map<String, String> entries = new LinkedHashMap<>();
        assertThat(written(Metadata.EMPTY)).isEqualTo(byProtobuf(entries));
        for (int length : new int[] {0, 1, 119, 120, 121, 122, 126, 127, 128, 129, 3_000}) {
            Map<String, String> one = Map.of("n", "x".repeat(length));
            assertThat(written(Metadata.of(one))).isEqualTo(byProtobuf(one));
            entries.put("name" + "y".repeat(length / 2), "x".repeat(length));
        }
        entries.put("\u00E4\u20AC\uD83D\uDE00", "\uD83D\uDE00\uD83D\uDE01 and \u20AC");
        ByteBuf all = byProtobuf(entries);
        assertThat(written(Metadata.of(entries))).isEqualTo(all);
        Metadata read = MetadataFields.read(all);
        assertThat(all.isReadable()).isFalse();
        assertThat(read.entries()).containsExactlyEntriesOf(entries);
        assertThat(read.isEmpty()).isFalse();
        assertThat(read.isComputed()).isFalse();
    }

    @Test
    void whatIsReadEndsWhereItSaysAndPassesOverWhatIsUnknown() throws IOException {
        ByteBuf in = Unpooled.wrappedBuffer(
                framed(out -> {
                    byte[] entry = message(fields -> {
                        fields.writeInt64(7, Long.MAX_VALUE);
                        fields.writeString(2, "value");
                        fields.writeFixed32(8, 9);
                        fields.writeString(1, "name");
                        fields.writeFixed64(9, 10);
                        fields.writeString(10, "text");
                    });
                    out.writeByteArray(1, entry);
                    out.writeByteArray(1, message(fields -> fields.writeString(1, "no value")));
                    out.writeByteArray(1, message(fields -> fields.writeString(2, "no name")));
                    out.writeByteArray(1, entry("name", "later"));
                }),
                Unpooled.wrappedBuffer(new byte[] {1, 2}));
        assertThat(MetadataFields.read(in).entries()).isEqualTo(Map.of("name", "later", "no value", "", "", "no name"));
        assertThat(in.readableBytes()).isEqualTo(2);
    }

    @Test
    void whatIsNoMetadataIsAFault() throws IOException {
        ByteBuf other = framed(out -> out.writeByteArray(2, entry("a", "b")));
        assertThatThrownBy(() -> MetadataFields.read(other))
                .isInstanceOf(WireFault.class)
                .hasMessageContaining("metadata: tag");
        // the entry has 3 bytes, and its name has 4 bytes, of which the last one is beyond the entry
        ByteBuf beyond = Unpooled.wrappedBuffer(new byte[] {9, 0x0A, 3, 0x0A, 4, 'a', 'b', 'c', 'd', 0});
        assertThatThrownBy(() -> MetadataFields.read(beyond)).hasMessageContaining("metadata name: length 4");
        ByteBuf value = Unpooled.wrappedBuffer(new byte[] {9, 0x0A, 3, 0x12, 4, 'a', 'b', 'c', 'd', 0});
        assertThatThrownBy(() -> MetadataFields.read(value)).hasMessageContaining("metadata value: length 4");
        // the number of an unknown field goes on beyond the end of its entry
        ByteBuf number = Unpooled.wrappedBuffer(new byte[] {6, 0x0A, 2, 0x38, (byte) 0x80, 0x0A, 0, 0, 0});
        assertThatThrownBy(() -> MetadataFields.read(number)).hasMessage("a message runs past its end");
        // the length of the last entry goes on beyond the end of the metadata
        ByteBuf last = Unpooled.wrappedBuffer(new byte[] {2, 0x0A, (byte) 0x80, 0, 0});
        assertThatThrownBy(() -> MetadataFields.read(last)).hasMessage("a message runs past its end");
    }

    @Test
    void eightKibibytesAreTakenAndNoByteMore() throws IOException {
        Map<String, String> most = Map.of("n", "x".repeat(Metadata.MAX_BYTES - 9));
        ByteBuf bytes = written(Metadata.of(most));
        assertThat(Varint.read(bytes.duplicate())).isEqualTo(8_192);
        assertThat(bytes).isEqualTo(byProtobuf(most));
        assertThat(MetadataFields.read(bytes).entries()).isEqualTo(most);
        RPCXException refused = refused(Metadata.EMPTY.with("n", "x".repeat(Metadata.MAX_BYTES - 8)));
        assertThat(refused.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(refused).hasMessage("metadata of 8193 bytes (expected: at most 8192)");
    }

    /** The sizes of 64 entries of 34 MB add up to more than an int holds. */
    @Test
    void sizesBeyondTwoGibibytesAreRefusedAsSizes() {
        String large = "x".repeat(34_000_000);
        Map<String, String> all = new LinkedHashMap<>();
        for (int i = 0; i < Metadata.MAX_ENTRIES; i++) {
            all.put("n" + i, large);
        }
        RPCXException refused = refused(Metadata.of(all));
        assertThat(refused.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(refused).hasMessage("metadata of at least 2176000182 bytes (expected: at most 8192)");
    }

    @Test
    void sixtyFourEntriesAreTakenAndNoneMore() throws IOException {
        ByteBuf bytes = written(Metadata.of(numbered(Metadata.MAX_ENTRIES)));
        assertThat(MetadataFields.read(bytes).entries()).hasSize(64);
        RPCXException refused = refused(Metadata.of(numbered(Metadata.MAX_ENTRIES + 1)));
        assertThat(refused.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(refused).hasMessage("metadata of 65 entries (expected: at most 64)");
        ByteBuf more = byProtobuf(numbered(Metadata.MAX_ENTRIES + 1));
        assertThatThrownBy(() -> MetadataFields.read(more))
                .isInstanceOf(WireFault.class)
                .hasMessage("more than 64 entries of metadata");
    }

    @Test
    void theMetadataOfAReplyHaveASmallerLimit() {
        MetadataFields.checkReply(Metadata.EMPTY.with("n", "x".repeat(Metadata.MAX_REPLY_BYTES - 9)));
        Metadata large = Metadata.EMPTY.with("n", "x".repeat(Metadata.MAX_REPLY_BYTES - 8));
        assertThatThrownBy(() -> MetadataFields.checkReply(large))
                .isInstanceOf(RPCXException.class)
                .hasMessage("metadata of 1025 bytes (expected: at most 1024)");
        assertThatThrownBy(() -> MetadataFields.read(written(large), Metadata.MAX_REPLY_BYTES))
                .isInstanceOf(WireFault.class)
                .hasMessageContaining("1025");
        assertThat(MetadataFields.read(written(large))).isEqualTo(large);
        assertThatThrownBy(() -> MetadataFields.checkReply(Metadata.of(numbered(Metadata.MAX_ENTRIES + 1))))
                .hasMessage("metadata of 65 entries (expected: at most 64)");
    }

    @Test
    void aListenerOfReplyMetadataStaysWithItsCopiesAndIsNoPartOfTheEntries() {
        List<String> heard = new ArrayList<>();
        Metadata plain = Metadata.EMPTY.with("a", "1");
        Metadata both = plain.onReply(reply -> heard.add("first " + reply.get("x")))
                .with("b", "2")
                .withEachAttempt("c", () -> "3")
                .onReply(reply -> heard.add("second " + reply.get("x")))
                .forAttempt();
        assertThat(plain.replyListener()).isNull();
        both.replyListener().accept(Metadata.EMPTY.with("x", "y"));
        assertThat(heard).containsExactly("first y", "second y");
        assertThat(both).isEqualTo(plain.with("b", "2").with("c", "3"));
        assertThatThrownBy(() -> plain.onReply(null))
                .isInstanceOf(NullPointerException.class)
                .hasMessageStartingWith("listener: null (expected: ");
    }

    @Test
    void halfASurrogatePairHasNoBytes() {
        for (String text : List.of(
                "\uD83D", "\uDE00", "a\uD83D", "\uD83Da", "\uD83D\uDE00\uD83D", "\uDE00\uD83D", "\uD83D\uD83D\uDE00")) {
            assertThat(refused(Metadata.EMPTY.with("name", text)).code()).isEqualTo(RPCXException.Code.INVALID);
            assertThat(refused(Metadata.EMPTY.with(text, "value")))
                    .hasMessageContaining("\"" + text + "\": half a surrogate pair");
        }
    }

    @Test
    void aNameHasItsLastValueAndKeepsItsPlace() {
        Metadata first = Metadata.EMPTY.with("a", "1").with("b", "2");
        Metadata second = first.with("a", "3");
        assertThat(first.entries()).containsExactly(Map.entry("a", "1"), Map.entry("b", "2"));
        assertThat(second.entries()).containsExactly(Map.entry("a", "3"), Map.entry("b", "2"));
        assertThat(second.get("a")).isEqualTo("3");
        assertThat(second.get("A")).isNull();
        assertThat(second).hasToString("Metadata[a, b]");
        assertThatThrownBy(() -> second.entries().put("c", "4")).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> second.with("", "x")).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> second.withEachAttempt("", () -> "x")).isInstanceOf(IllegalArgumentException.class);
        assertThat(Metadata.EMPTY.isEmpty()).isTrue();
        assertThat(first.isEmpty()).isFalse();
    }

    @Test
    void entriesOfAMapAreCopiedInItsOrder() {
        Map<String, String> given = numbered(3);
        Metadata metadata = Metadata.of(given);
        given.put("later", "x");
        assertThat(metadata.entries()).containsExactlyEntriesOf(numbered(3));
        assertThat(metadata)
                .isEqualTo(Metadata.EMPTY.with("n0", "v0").with("n1", "v1").with("n2", "v2"));
        assertThat(metadata.isComputed()).isFalse();
        assertThat(Metadata.of(Map.of())).isEqualTo(Metadata.EMPTY);
        assertThat(Metadata.of(metadata.entries())).isEqualTo(metadata);
        assertThatThrownBy(() -> Metadata.of(Map.of("", "x")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("metadata name: empty (expected: 1 or more characters)");
    }

    @Test
    void anAttemptHasAValueOfItsOwnForEachEntry() {
        AtomicInteger times = new AtomicInteger();
        Metadata computed = Metadata.EMPTY.withEachAttempt("n", () -> "" + times.incrementAndGet());
        Metadata first = computed.forAttempt();
        assertThat(first.isComputed()).isFalse();
        assertThat(first.entries()).containsExactly(Map.entry("n", "1"));
        assertThatThrownBy(() -> first.entries().put("n", "2")).isInstanceOf(UnsupportedOperationException.class);
        assertThat(computed.forAttempt().get("n")).isEqualTo("2");
        assertThat(first.forAttempt()).isSameAs(first);
    }

    @Test
    void aValueThatIsComputedIsComputedForEachLookAndEachAttempt() throws IOException {
        AtomicInteger times = new AtomicInteger();
        Supplier<String> counted = () -> "" + times.incrementAndGet();
        Metadata computed = Metadata.EMPTY.with("a", "x").withEachAttempt("n", counted);
        assertThat(computed.isComputed()).isTrue();
        assertThat(computed.isEmpty()).isFalse();
        assertThat(Metadata.EMPTY.withEachAttempt("n", counted).isEmpty()).isFalse();
        assertThat(Metadata.EMPTY.isComputed()).isFalse();
        assertThat(times).hasValue(0);
        assertThat(computed.get("n")).isEqualTo("1");
        Map<String, String> second = new LinkedHashMap<>();
        second.put("a", "x");
        second.put("n", "2");
        assertThat(written(computed)).isEqualTo(byProtobuf(second));
        assertThat(MetadataFields.read(written(computed)).get("n")).isEqualTo("3");
        assertThat(computed.entries()).containsExactly(Map.entry("a", "x"));
        assertThat(computed).hasToString("Metadata[a][n]");
        // one name has one value, whichever kind comes last
        Metadata fixed = computed.with("n", "y");
        assertThat(fixed.isComputed()).isFalse();
        assertThat(fixed.get("n")).isEqualTo("y");
        assertThat(computed.with("b", "z").isComputed()).isTrue();
        Metadata again = fixed.withEachAttempt("n", counted);
        assertThat(again.entries()).containsOnlyKeys("a");
        assertThat(again.get("n")).isEqualTo("4");
        Metadata two = computed.withEachAttempt("m", () -> "m").with("n", "y");
        assertThat(two).hasToString("Metadata[a, n][m]");
    }

    @Test
    void whatComputesAValueEndsItsAttemptByWhatItThrows() {
        Metadata known = Metadata.EMPTY.withEachAttempt("n", () -> {
            throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "no key");
        });
        assertThat(refused(known).code()).isEqualTo(RPCXException.Code.UNAUTHENTICATED);
        assertThat(refused(known)).hasMessage("the value of the metadata entry \"n\": no key (expected: a text)");
        IllegalStateException thrown = new IllegalStateException("broken");
        Metadata unknown = Metadata.EMPTY.withEachAttempt("n", () -> {
            throw thrown;
        });
        assertThat(refused(unknown).code()).isEqualTo(RPCXException.Code.INVALID);
        assertThat(refused(unknown)).hasMessageContaining("\"n\": " + thrown).hasCause(thrown);
        @SuppressWarnings("NullAway") // what a supplier may do all the same
        Supplier<String> none = () -> null;
        assertThat(refused(Metadata.EMPTY.withEachAttempt("n", none)))
                .hasMessageContaining("\"n\": null (expected: a text)")
                .hasNoCause();
    }

    @Test
    void equalEntriesAreEqualMetadata() {
        Supplier<String> one = () -> "1";
        Supplier<String> other = () -> "1";
        List<Metadata> different = List.of(
                Metadata.EMPTY,
                Metadata.EMPTY.with("a", "1"),
                Metadata.EMPTY.with("a", "2"),
                Metadata.EMPTY.withEachAttempt("a", one),
                Metadata.EMPTY.withEachAttempt("a", other),
                Metadata.EMPTY.with("a", "1").withEachAttempt("b", one));
        assertThat(different).doesNotHaveDuplicates();
        assertThat(Metadata.EMPTY.with("a", "1"))
                .isEqualTo(different.get(1))
                .hasSameHashCodeAs(different.get(1))
                .isNotEqualTo(Map.of("a", "1"));
        assertThat(Metadata.EMPTY.with("a", "1").withEachAttempt("b", one))
                .isEqualTo(different.get(5))
                .hasSameHashCodeAs(different.get(5));
        assertThat(different.get(5).hashCode())
                .isEqualTo(31 * Map.of("a", "1").hashCode() + Map.of("b", one).hashCode());
    }

    @Test
    void metadataCostTheirCharactersAndTheirEntries() {
        assertThat(MetadataFields.cost(Metadata.EMPTY, 0)).isZero();
        assertThat(MetadataFields.cost(Metadata.of(numbered(3)), 20)).isEqualTo(2 * 20 + 3 * 160);
    }
}
