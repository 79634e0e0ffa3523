package dev.rpcx.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.schema.MethodSchema.Kind;
import dev.rpcx.internal.schema.MethodSchema.Member;
import dev.rpcx.internal.schema.MethodSchema.Type;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.Unknown;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Tests which members a method has, their hash, and which differences between client and server are found. */
class MethodSchemaTest {
    /** The example of the wire's page. */
    static class Example {
        enum Colour {
            @Unknown
            OTHER,
            RED
        }

        record Item(Integer count, BigDecimal price) {}

        record Order(String id, List<Item> items, Colour colour) {}

        interface Calls {
            String text(String text);

            void nothing();

            boolean order(Order order);
        }
    }

    private static Method method(Class<?> calls, String name) {
        return Arrays.stream(calls.getDeclaredMethods())
                .filter(method -> method.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static MethodSchema schema(Class<?> calls, String name) {
        return schema(calls, name, LockFile.none());
    }

    private static MethodSchema schema(Class<?> calls, String name, LockFile lock) {
        Method method = method(calls, name);
        java.lang.reflect.Type items = null;
        for (java.lang.reflect.Type parameter : method.getGenericParameterTypes()) {
            if (parameter instanceof ParameterizedType type && type.getRawType() == Flow.Publisher.class) {
                items = type.getActualTypeArguments()[0];
            }
        }
        return MethodSchema.of(method, items, new Schema(lock));
    }

    /** Computes the hash as the page says, from the types that an answer has. */
    private static long hash(String text) {
        long hash = 0xcbf29ce484222325L;
        for (byte each : text.getBytes(java.nio.charset.StandardCharsets.UTF_8)) {
            hash ^= each & 0xFF;
            hash *= 0x100000001b3L;
        }
        return hash;
    }

    @Test
    void theExamplesOfThePageHaveTheHashesOfThePage() throws Exception {
        String page = Files.readString(Path.of("..", "spec", "wire.md"));
        Map<String, String> texts = Map.of(
                "text", "call{1 text string;}call{1 value string;}",
                "nothing", "call{}call{}",
                "order",
                        "message{1 id string;2 items repeated #2;3 colour #3;}call{1 value bool;}"
                                + "message{1 count int32;2 price rpcx.Decimal;}enum{0 OTHER unknown;1 RED;}");
        texts.forEach((name, text) -> {
            long hash = schema(Example.Calls.class, name).hash();
            assertThat(hash).as(name).isEqualTo(hash(text));
            assertThat(page).contains("| `%s` | `%016x` |".formatted(text, hash));
        });
    }

    static class Kinds {
        sealed interface Payment permits Cash, Card, Unheard {}

        record Cash(long cents) implements Payment {}

        record Card(String number) implements Payment {}

        @Unknown
        record Unheard() implements Payment {}

        static class Bean {
            private int size;

            public int getSize() {
                return size;
            }

            public void setSize(int to) {
                size = to;
            }
        }

        record All(
                boolean flag,
                byte small,
                short middle,
                char letter,
                int number,
                long large,
                float single,
                double real,
                String text,
                byte[] bytes,
                BigInteger integer,
                UUID uuid,
                Instant instant,
                Optional<Integer> optional,
                @Nullable String nullable,
                Set<String> set,
                Map<UUID, List<Bean>> map,
                @Nullable List<All> inner,
                Payment payment) {}

        interface Calls {
            All all(All all, int more);

            CompletableFuture<Integer> takes(Flow.Publisher<String> items);

            Flow.Publisher<All> brings();

            void one(Optional<All> all);
        }
    }

    @Test
    void eachMemberIsToldWithItsNumberNameAndType() {
        List<Type> types = schema(Kinds.Calls.class, "all").types();
        assertThat(types)
                .extracting(type -> type.kind() + " " + type.name())
                .containsExactly(
                        "CALL AllRequest",
                        "MESSAGE All",
                        "MESSAGE ListOfBean",
                        "MESSAGE ListOfAll",
                        "ONEOF Payment",
                        "MESSAGE Bean",
                        "MESSAGE Cash",
                        "MESSAGE Card");
        assertThat(told(types.get(0))).containsExactly("1 all #1", "2 more int32");
        assertThat(told(types.get(1)))
                .containsExactly(
                        "1 flag bool",
                        "2 small int32",
                        "3 middle int32",
                        "4 letter uint32",
                        "5 number int32",
                        "6 large int64",
                        "7 single float",
                        "8 real double",
                        "9 text string",
                        "10 bytes bytes",
                        "11 integer integer",
                        "12 uuid uuid",
                        "13 instant google.protobuf.Timestamp",
                        "14 optional int32",
                        "15 nullable string",
                        "16 set repeated string",
                        "17 map map uuid #2",
                        "18 inner #3",
                        "19 payment #4");
        assertThat(told(types.get(2))).containsExactly("1 items repeated #5");
        assertThat(told(types.get(3))).containsExactly("1 items repeated #1");
        assertThat(told(types.get(4))).containsExactly("1 cash #6", "2 card #7");
        assertThat(told(types.get(5))).containsExactly("1 size int32");
    }

    private static List<String> told(Type type) {
        return type.members().stream()
                .map(member -> member.number() + " " + member.name() + " " + member.type())
                .toList();
    }

    @Test
    void theFirstTypesAreRequestAndReplyOrItemsOfStreams() {
        List<Type> takes = schema(Kinds.Calls.class, "takes").types();
        assertThat(takes).extracting(Type::kind).containsExactly(Kind.CALL, Kind.CALL);
        assertThat(told(takes.get(0))).containsExactly("1 value string");
        assertThat(told(takes.get(1))).containsExactly("1 value int32");
        List<Type> brings = schema(Kinds.Calls.class, "brings").types();
        assertThat(brings.get(0)).isEqualTo(new Type(Kind.CALL, "BringsRequest", List.of()));
        assertThat(brings.get(1).name()).isEqualTo("All");
        List<Type> one = schema(Kinds.Calls.class, "one").types();
        assertThat(told(one.get(0))).containsExactly("1 all #2");
        assertThat(one.get(1).members()).isEmpty();
    }

    @Test
    void aHashHasNoNamesOfTypesAndNoNulls() {
        class Other {
            record Thing(@Nullable Integer count, BigDecimal price) {}

            enum Paint {
                @Unknown
                OTHER,
                RED
            }

            record Purchase(String id, Set<Thing> items, Paint colour) {}

            interface Calls {
                CompletableFuture<Boolean> order(Purchase anything);
            }
        }
        assertThat(schema(Other.Calls.class, "order").hash())
                .isEqualTo(schema(Example.Calls.class, "order").hash());
    }

    @Test
    void whatIsTooLargeToBeComparedHasNoHash() {
        assertThat(MethodSchema.UNKNOWN.hash()).isEqualTo(MethodSchema.NO_HASH);
        assertThat(MethodSchema.UNKNOWN.types()).isEmpty();
        List<FieldType> fields = new ArrayList<>();
        for (int number = 1; number <= MethodSchema.MAX_MEMBERS; number++) {
            fields.add(field("m" + number, number));
        }
        MessageType void0 = message(List.of());
        assertThat(MethodSchema.of(message(fields), void0).hash()).isNotEqualTo(MethodSchema.NO_HASH);
        fields.add(field("more", MethodSchema.MAX_MEMBERS + 1));
        assertThat(MethodSchema.of(message(fields), void0).hash()).isEqualTo(MethodSchema.NO_HASH);
        assertThat(MethodSchema.of(message(List.of(field("ä".repeat(127) + "b", 1))), void0)
                        .hash())
                .isNotEqualTo(MethodSchema.NO_HASH);
        assertThat(MethodSchema.of(message(List.of(field("ä".repeat(128), 1))), void0)
                        .hash())
                .isEqualTo(MethodSchema.NO_HASH);
    }

    private static FieldType field(String name, int number) {
        return new FieldType(name, number, FieldType.Holder.PLAIN, Scalar.INT, null, int.class);
    }

    private static MessageType message(List<FieldType> fields) {
        return new MessageType("Large", MessageType.Kind.RECORD, Object.class, "Large")
                .fields(fields, NumberSource.ANNOTATION);
    }

    static class Renamed {
        record Order(String id, int total) {}

        enum Colour {
            @Unknown
            OTHER,
            CRIMSON
        }

        interface Calls {
            Colour order(Order order);
        }
    }

    @Test
    void formerNamesAreThoseOfTheLockAndNotInTheHash() {
        String order = "message " + Renamed.Order.class.getName() + "\n  1 id string\n  2 total int\n";
        String colour = "enum " + Renamed.Colour.class.getName() + "\n  0 OTHER unknown\n  1 CRIMSON constant\n";
        StringBuilder names = new StringBuilder();
        for (int i = 1; i <= 20; i++) {
            names.append("  was 2 name").append(i).append('\n');
        }
        LockFile lock = LockFile.parse(order + names + colour + "  was 1 RED\n", "lock");
        MethodSchema schema = schema(Renamed.Calls.class, "order", lock);
        List<Type> types = schema.types();
        assertThat(types.get(0).members().get(0).formerNames()).isEmpty();
        assertThat(types.get(0).members().get(1).formerNames())
                .hasSize(MethodSchema.MAX_FORMER_NAMES)
                .startsWith("name5")
                .endsWith("name20");
        assertThat(types.get(2).members().get(1)).isEqualTo(new Member(1, "CRIMSON", "", List.of("RED")));
        assertThat(schema.hash()).isEqualTo(schema(Renamed.Calls.class, "order").hash());
    }

    // ---- differences

    /** Makes a type of members such as {@code 3 total int32 count}, where the names behind the type are former ones. */
    private static Type type(Kind kind, String name, String... members) {
        List<Member> all = new ArrayList<>();
        for (String member : members) {
            String[] words = member.split(" ");
            List<String> type = new ArrayList<>();
            List<String> formerNames = new ArrayList<>();
            for (String word : Arrays.asList(words).subList(2, words.length)) {
                (word.startsWith("was:") ? formerNames : type).add(word.replace("was:", ""));
            }
            all.add(new Member(Integer.parseInt(words[0]), words[1], String.join(" ", type), formerNames));
        }
        return new Type(kind, name, all);
    }

    private static final Type NOTHING = type(Kind.CALL, "Reply");

    private static @Nullable String difference(List<Type> client, List<Type> server) {
        return new SchemaDifference(client, server).find();
    }

    private static @Nullable String difference(Type client, Type server) {
        return difference(List.of(client, NOTHING), List.of(server, NOTHING));
    }

    private static Type order(String... members) {
        return type(Kind.MESSAGE, "Order", members);
    }

    @Test
    void whatOnlyOneSideHasIsNoDifference() {
        Type one = order("1 id string", "2 count int32", "3 note string");
        Type other = order("1 id string", "4 total int64");
        assertThat(difference(one, other)).isNull();
        assertThat(difference(other, one)).isNull();
        assertThat(difference(type(Kind.CALL, "Request"), one)).isNull();
        assertThat(difference(one, type(Kind.CALL, "Request"))).isNull();
        assertThat(difference(List.of(), List.of(one, NOTHING))).isNull();
    }

    @Test
    void anotherTypeOfANumberIsADifference() {
        for (String[] pair : new String[][] {
            {"int32", "string"},
            {"int32", "bool"},
            {"int32", "double"},
            {"float", "double"},
            {"bytes", "uuid"},
            {"bytes", "integer"},
            {"string", "google.protobuf.Timestamp"},
            {"repeated int32", "int32"},
            {"repeated string", "map string string"},
            {"map string int32", "map string string"},
            {"map int32 string", "map string string"},
            {"int32", "#0"},
            {"#0", "#77"},
            {"#0", "#-1"},
            {"#0", "#"}
        }) {
            assertThat(difference(order("1 count " + pair[0]), order("1 count " + pair[1])))
                    .as(String.join(" and ", pair))
                    .startsWith("number 1 is to the client Order.count (")
                    .contains(") and to the server Order.count (")
                    .endsWith("(expected: one type on both sides)");
        }
        assertThat(difference(order("2 count int32"), type(Kind.MESSAGE, "Purchase", "2 text repeated string")))
                .isEqualTo("number 2 is to the client Order.count (int32) and to the server Purchase.text (repeated"
                        + " string) (expected: one type on both sides)");
    }

    @Test
    void aTypeWhoseOtherValuesAreRefusedIsNoDifference() {
        for (String[] pair : new String[][] {
            {"int32", "int64"},
            {"int32", "uint32"},
            {"string", "bytes"},
            {"repeated int32", "repeated int64"},
            {"map int32 string", "map int64 bytes"}
        }) {
            assertThat(difference(order("1 count " + pair[0]), order("1 count " + pair[1])))
                    .as(String.join(" and ", pair))
                    .isNull();
        }
    }

    @Test
    void membersThatHaveChangedPlacesAreADifference() {
        assertThat(difference(order("1 from string", "2 to string"), order("1 to string", "2 from string")))
                .isEqualTo("Order.from (string) is number 1 to the client, and Order.from (string) is number 2 to the"
                        + " server (expected: one number on both sides)");
        assertThat(difference(order("1 id string"), order("2 id string"))).isNotNull();
        Type here = type(Kind.CALL, "Request", "1 from string", "2 to string");
        assertThat(difference(here, type(Kind.CALL, "Request", "1 to string", "2 from string")))
                .as("parameters too")
                .contains("Request.from (string) is number 1");
        assertThat(difference(type(Kind.ENUM, "E", "1 A", "2 B"), type(Kind.ENUM, "E", "1 B", "2 A")))
                .as("constants too")
                .contains("E.A is number 1");
    }

    @Test
    void anotherNameOfANumberIsADifferenceUnlessARenameIsKnown() {
        Type count = order("3 count int32");
        Type total = order("3 total int32");
        Type renamed = order("3 total int32 was:count");
        Type sum = order("3 sum int32 was:count was:total");
        Type amount = order("3 amount int32 was:count");
        assertThat(difference(count, total))
                .isEqualTo("number 3 is to the client Order.count (int32) and to the server Order.total (int32)"
                        + " (expected: one name on both sides, or a number for each; if one is a new name of the other,"
                        + " the lock of its side says so: `rpcx lock --rename`)");
        for (Type[] pair : new Type[][] {{count, renamed}, {count, sum}, {renamed, sum}, {sum, amount}, {total, sum}}) {
            assertThat(difference(pair[0], pair[1]))
                    .as("%s, %s", (Object[]) pair)
                    .isNull();
            assertThat(difference(pair[1], pair[0]))
                    .as("%s, %s", (Object[]) pair)
                    .isNull();
        }
        assertThat(difference(total, amount)).isNotNull();
        for (Kind kind : List.of(Kind.ENUM, Kind.ONEOF)) {
            assertThat(difference(type(kind, "E", "1 RED"), type(kind, "E", "1 ROT")))
                    .as("%s", kind)
                    .startsWith("number 1 is to the client E.RED and to the server E.ROT");
        }
        assertThat(difference(type(Kind.CALL, "Request", "1 name string"), type(Kind.CALL, "Request", "1 who string")))
                .as("a parameter")
                .isNull();
    }

    /** {@code count} of the older release is {@code total} of the newer one, which has another {@code count}. */
    @Test
    void anOldNameMayBeGivenToANewMember() {
        Type older = order("3 count int32");
        Type newer = order("3 total int32 was:count", "7 count string");
        assertThat(difference(older, newer)).isNull();
        assertThat(difference(newer, older)).isNull();
    }

    @Test
    void whatStandsForTheUnknownMayHaveAnyName() {
        Type one = type(Kind.ENUM, "E", "0 OTHER unknown", "1 A");
        assertThat(difference(one, type(Kind.ENUM, "E", "0 NONE unknown", "1 A")))
                .isNull();
        assertThat(difference(one, type(Kind.ENUM, "E", "0 OTHER", "1 A"))).isNull();
        assertThat(difference(one, type(Kind.ENUM, "E", "0 ZERO", "1 A"))).isNotNull();
        assertThat(difference(one, type(Kind.ENUM, "E", "1 A"))).isNull();
    }

    @Test
    void typesAreComparedWhereverTheyStand() {
        Type list = order("1 items repeated #2", "2 self #0");
        Type item = type(Kind.MESSAGE, "Item", "1 price #3");
        Type price = type(Kind.MESSAGE, "Price", "1 cents int64");
        List<Type> client = List.of(list, NOTHING, item, price);
        assertThat(difference(client, client)).isNull();
        // the server has its types in another order, and one that the client does not have
        List<Type> server = List.of(
                order("1 items repeated #4", "2 self #0", "3 more #2"),
                NOTHING,
                type(Kind.ENUM, "More", "1 A"),
                type(Kind.MESSAGE, "Money", "1 cents string"),
                type(Kind.MESSAGE, "Thing", "1 price #3"));
        assertThat(difference(client, server))
                .startsWith("number 1 is to the client Price.cents (int64) and to the server Money.cents (string)");
        assertThat(difference(List.of(NOTHING, list, item, price), List.of(NOTHING, server.get(0), NOTHING, NOTHING)))
                .as("the reply")
                .startsWith("number 1 is to the client Order.items (repeated Item)");
        assertThat(difference(client, List.of(list, NOTHING, type(Kind.ONEOF, "Item", "1 price #3"), price)))
                .as("a sealed type in the place of a record")
                .startsWith("number 1 is to the client Order.items (repeated Item)");
        assertThat(difference(order("1 a int32"), type(Kind.ONEOF, "Payment", "1 a int32")))
                .startsWith("the request is to the client the message Order and to the server the oneof Payment");
    }

    /** A server may name any type in each of its members, so that there are very many pairs. */
    @Test
    void aComparisonHasAnEnd() {
        List<Type> client = new ArrayList<>(List.of(order("1 a #2", "2 b #3"), NOTHING));
        List<Type> server = new ArrayList<>(client);
        for (int i = 2; i < 600; i++) {
            client.add(type(Kind.MESSAGE, "C" + i, "1 a #" + (i * 7 % 598 + 2), "2 b #" + (i * 11 % 598 + 2)));
            server.add(type(Kind.MESSAGE, "S" + i, "1 a #" + (i * 13 % 598 + 2), "2 b #" + (i * 17 % 598 + 2)));
        }
        assertThat(difference(client, server)).isNull();
    }

    static class Numbered {
        record Here(@Field(1) String from, @Field(2) String to) {}

        record There(@Field(2) String from, @Field(1) String to) {}

        interface Client {
            void send(Here route);
        }

        interface Server {
            void send(There route);
        }
    }

    @Test
    void twoSidesWithAClassEachAreCompared() {
        MethodSchema client = schema(Numbered.Client.class, "send");
        MethodSchema server = schema(Numbered.Server.class, "send");
        assertThat(client.hash()).isNotEqualTo(server.hash());
        assertThat(client.difference(server.types()))
                .startsWith("Here.from (string) is number 1 to the client, and There.from (string) is number 2");
        assertThat(client.difference(client.types())).isNull();
    }
}
