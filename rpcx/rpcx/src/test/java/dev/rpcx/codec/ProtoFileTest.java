package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Method;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class ProtoFileTest {
    static ProtoFile export() {
        Schema schema = new Schema(LockFile.none());
        List<ProtoFile.Rpc> rpcs = Stream.of("hello", "items", "numbers", "forget", "moments")
                .map(name -> {
                    Method method = RoundTripTest.method(AllTypes.class, name);
                    return new ProtoFile.Rpc(name, schema.parameters(method), schema.result(method), false, false);
                })
                .toList();
        return new ProtoFile("dev.rpcx.exported").service("allTypes", rpcs);
    }

    /** In the build of this module, protoc compiles the committed file. So protoc accepts what is exported. */
    @Test
    void theCommittedFileIsTheExport() throws Exception {
        Path file = Path.of("src/test/protobuf/dev/rpcx/exported.proto");
        assertThat(export().text()).isEqualTo(Files.readString(file));
    }

    @Test
    void theTextMeansWhatTheDescriptorSays() {
        var ours = Oracle.link(export().descriptor());
        var theirs = dev.rpcx.exported.Exported.getDescriptor();
        assertThat(ours.getMessageTypes()).hasSameSizeAs(theirs.getMessageTypes());
        for (var message : ours.getMessageTypes()) {
            var other = theirs.findMessageTypeByName(message.getName());
            assertThat(message.getFields().stream()
                            .map(f -> f.toProto().toBuilder().clearJsonName().build())
                            .toList())
                    .isEqualTo(other.getFields().stream()
                            .map(f -> f.toProto().toBuilder().clearJsonName().build())
                            .toList());
        }
    }

    @Test
    void bytesAreThoseOfTheTypesThatProtocGenerates() throws Exception {
        Schema schema = new Schema(LockFile.none());
        Method method = RoundTripTest.method(AllTypes.class, "hello");
        Codec<Object[]> codec = Codecs.of(schema, Limits.STANDARD).parameters(method);
        RandomValues values = new RandomValues(7);
        for (int i = 0; i < 500; i++) {
            ByteBuf ours = Unpooled.buffer();
            codec.write(new Object[] {values.message(schema.parameters(method), 0)}, ours);
            byte[] bytes = ByteBufUtil.getBytes(ours);
            byte[] theirs = dev.rpcx.exported.Hello.parseFrom(bytes).toByteArray();
            assertThat(theirs).hasSameSizeAs(bytes);
            ByteBuf again = Unpooled.buffer();
            codec.write(codec.read(Unpooled.wrappedBuffer(theirs)), again);
            // the entries of a map have no order in generated types
            assertThat(dev.rpcx.exported.Hello.parseFrom(ByteBufUtil.getBytes(again)))
                    .isEqualTo(dev.rpcx.exported.Hello.parseFrom(bytes));
        }
    }

    /** Classes that protoc has made of Google's own files read what is written, and write what is read. */
    @Test
    void momentsAreThoseOfTheTypesThatProtocGenerates() throws Exception {
        Schema schema = new Schema(LockFile.none());
        Codec<Object> codec = Codecs.of(schema, Limits.STANDARD).value(AllTypes.Moments.class);
        OffsetDateTime starts = OffsetDateTime.parse("2026-10-25T02:30:00.5-03:30");
        ZonedDateTime ends = ZonedDateTime.ofInstant(Instant.parse("2026-10-25T00:30:00Z"), ZoneId.of("Europe/Paris"));
        AllTypes.Moments moments = new AllTypes.Moments(
                new Date(-1),
                LocalTime.of(23, 59, 58, 7),
                starts,
                ends,
                URI.create(""),
                Map.of(LocalTime.MIDNIGHT, URI.create("mailto:a@b.c")),
                List.of(new Date(0)));
        ByteBuf ours = Unpooled.buffer();
        codec.write(moments, ours);
        byte[] bytes = ByteBufUtil.getBytes(ours);
        dev.rpcx.exported.Moments theirs = dev.rpcx.exported.Moments.parseFrom(bytes);
        assertThat(theirs.getMade().getSeconds()).isEqualTo(-1);
        assertThat(theirs.getMade().getNanos()).isEqualTo(999_000_000);
        assertThat(theirs.getOpens())
                .isEqualTo(com.google.type.TimeOfDay.newBuilder()
                        .setHours(23)
                        .setMinutes(59)
                        .setSeconds(58)
                        .setNanos(7)
                        .build());
        assertThat(theirs.getStarts())
                .isEqualTo(com.google.type.DateTime.newBuilder()
                        .setYear(2026)
                        .setMonth(10)
                        .setDay(25)
                        .setHours(2)
                        .setMinutes(30)
                        .setNanos(500_000_000)
                        .setUtcOffset(com.google.protobuf.Duration.newBuilder().setSeconds(-12_600))
                        .build());
        assertThat(theirs.getEnds().getTime().getSeconds()).isEqualTo(ends.toEpochSecond());
        assertThat(theirs.getEnds().getZone()).isEqualTo("Europe/Paris");
        assertThat(theirs.hasPage()).isTrue();
        assertThat(theirs.getLinks(0).getValue()).isEqualTo("mailto:a@b.c");
        assertThat(theirs.toByteArray()).isEqualTo(bytes);
        assertThat(codec.read(Unpooled.wrappedBuffer(bytes))).isEqualTo(moments);
        assertThat(ends.getOffset()).as("the first of the two hours of 2:30").isEqualTo(ZoneOffset.ofHours(2));
    }

    enum Foo {
        BAR_X,
        Größe,
        a$b
    }

    enum FooBar {
        X
    }

    record Π(String größe, int $cash, int _hidden, Foo foo, FooBar bar) {}

    record Shorter(int a, int c) {}

    sealed interface Way permits Up {}

    record Up(int a) implements Way {}

    interface Odd {
        Shorter one(Π p);

        Way two(Way way);
    }

    /** protobuf-java checks all names of the descriptor, and no name may occur twice. */
    @Test
    void oddNamesOfJavaBecomeNamesOfProtobuf() {
        String type = ProtoFileTest.class.getName();
        Schema schema = new Schema(LockFile.parse(
                "message " + type + "$Shorter\n  1 a int\n  removed 2 b int\n  3 c int\n  removed 4 A int\n"
                        + "oneof " + type + "$Way\n  removed 0 Other unknown\n  1 up " + type + "$Up\n"
                        + "enum " + type + "$FooBar\n  removed 0 NONE unknown\n  1 X constant\n",
                "test"));
        List<ProtoFile.Rpc> rpcs = Stream.of("one", "two")
                .map(name -> {
                    Method method = RoundTripTest.method(Odd.class, name);
                    return new ProtoFile.Rpc(name, schema.parameters(method), schema.result(method), false, false);
                })
                .toList();
        ProtoFile file = new ProtoFile("odd").service("odd", rpcs);
        assertThat(Oracle.link(file.descriptor()).getMessageTypes()).hasSizeGreaterThanOrEqualTo(3);
        assertThat(file.text())
                .contains("  reserved 2;\n  reserved 4;\n  reserved \"b\";\n")
                .doesNotContain("reserved 0")
                .doesNotContain("reserved \"a\"")
                .matches(text -> text.chars().allMatch(c -> c < 128 && c != '$'));
    }

    record ScoreEntry(int points) {}

    record Board(Map<String, ScoreEntry> score) {}

    interface Scores {
        int best(Board board);
    }

    /**
     * Protobuf makes a message {@code ScoreEntry} within {@code Board} for the map, and would find that message first.
     */
    @Test
    void aMapsValueOfTheNameOfItsEntryIsToldApart() {
        Schema schema = new Schema(LockFile.none());
        Method method = RoundTripTest.method(Scores.class, "best");
        ProtoFile file = new ProtoFile("scores")
                .service(
                        "scores",
                        List.of(new ProtoFile.Rpc(
                                "best", schema.parameters(method), schema.result(method), false, false)));
        assertThat(file.text()).contains("map<string, .scores.ScoreEntry> score = 1;");
    }

    @Test
    void twoMethodsOfOneNameAndAPackageThatIsNoneAreRefused() {
        Schema schema = new Schema(LockFile.none());
        Method method = RoundTripTest.method(Odd.class, "one");
        List<ProtoFile.Rpc> rpcs = Stream.of("find", "Find")
                .map(name -> new ProtoFile.Rpc(name, schema.parameters(method), schema.result(method), false, false))
                .toList();
        assertThatThrownBy(() -> new ProtoFile("odd").service("odd", rpcs))
                .hasMessage("odd: the methods find and Find have the same name in a .proto: rename one");
        assertThatThrownBy(() -> new ProtoFile("a-b")).hasMessageContaining("package a-b (expected: names of ASCII");
    }

    interface Reader {
        int read(Person person);
    }

    record Person(@Field(1) String name) {}

    /** The names of services are in the paths of gRPC, which a server computes without the messages of the file. */
    @Test
    void noMessageTakesTheNameOfAService() {
        Schema schema = new Schema(LockFile.none());
        Method method = RoundTripTest.method(Reader.class, "read");
        List<ProtoFile.Rpc> rpcs =
                List.of(new ProtoFile.Rpc("read", schema.parameters(method), schema.result(method), false, false));
        ProtoFile file = new ProtoFile("names")
                .reserve(List.of("reader", "person"))
                .service("reader", rpcs)
                .service("person", rpcs);
        assertThat(file.text()).contains("service Reader {", "service Person {", "message PersonMessage {");
        assertThatThrownBy(() -> new ProtoFile("names").reserve(List.of("a-b", "aB")))
                .hasMessageContaining("the services a-b and aB have the same name in a .proto");
    }

    interface Shop {
        Order find(Person buyer);

        record Order(int items) {}
    }

    interface Kitchen {
        Order find(Person cook);

        record Order(String dish) {}
    }

    private static List<ProtoFile.Rpc> find(Schema schema, Class<?> service) {
        Method method = RoundTripTest.method(service, "find");
        return List.of(new ProtoFile.Rpc("find", schema.parameters(method), schema.result(method), false, false));
    }

    /** One schema has both services, as in a server: the name of a record does not depend on what else is served. */
    @Test
    void twoRecordsOfOneNameAreNumberedOnlyInAFileThatHasBoth() {
        Schema schema = new Schema(LockFile.none());
        List<ProtoFile.Rpc> shop = find(schema, Shop.class);
        List<ProtoFile.Rpc> kitchen = find(schema, Kitchen.class);
        assertThat(shop.get(0).reply().protoName()).isEqualTo("Order");
        assertThat(kitchen.get(0).reply().protoName()).isEqualTo("Order");
        assertThat(new ProtoFile("shop").service("shop", shop).text())
                .contains("message Order {")
                .doesNotContain("Order2");
        assertThat(new ProtoFile("kitchen").service("kitchen", kitchen).text())
                .contains("message Order {")
                .doesNotContain("Order2");
        assertThat(new ProtoFile("both")
                        .service("shop", shop)
                        .service("kitchen", kitchen)
                        .text())
                .contains("message Order {\n  int32 items = 1;", "message Order2 {\n  string dish = 1;");
    }

    @Test
    void aMessageFromAnotherLanguageIsRead() {
        byte[] theirs = dev.rpcx.exported.Hello.newBuilder()
                .setName("Ada")
                .setAge(36)
                .setMoodValue(17)
                .setSide(dev.rpcx.exported.Side.SIDE_RIGHT)
                .putCounts("a", 5)
                .setPayment(dev.rpcx.exported.Payment.newBuilder()
                        .setTransfer(dev.rpcx.exported.Transfer.newBuilder().setIban("DE00")))
                .build()
                .toByteArray();
        Codec<Object> codec = Codecs.standard(ProtoFileTest.class).value(AllTypes.Hello.class);
        AllTypes.Hello hello = (AllTypes.Hello) codec.read(Unpooled.wrappedBuffer(theirs));
        assertThat(hello.name()).isEqualTo("Ada");
        assertThat(hello.age()).isEqualTo(36);
        assertThat(hello.mood()).isEqualTo(AllTypes.Mood.UNKNOWN);
        assertThat(hello.side()).isEqualTo(AllTypes.Side.RIGHT);
        assertThat(hello.counts()).containsExactly(Map.entry("a", 5L));
        assertThat(hello.payment()).isEqualTo(new AllTypes.Transfer("DE00"));
        assertThat(hello.born()).isNull();
        assertThat(hello.friend()).isEmpty();
    }
}
