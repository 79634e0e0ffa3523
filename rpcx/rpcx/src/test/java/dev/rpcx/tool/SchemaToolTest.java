package dev.rpcx.tool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.rpcx.Method;
import dev.rpcx.OneWay;
import dev.rpcx.RPCXError;
import dev.rpcx.RPCXServer;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.Unknown;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.math.BigInteger;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SchemaToolTest {
    static class V1 {
        enum Colour {
            RED,
            GREEN
        }

        record Order(String id, Colour colour, int count, Map<String, Long> prices, List<Page<String>> pages) {}

        record Page<T>(List<T> items) {}

        interface Shop {
            Order order(Order order);

            String find(String name, int limit);

            Flow.Publisher<Order> watch(Flow.Publisher<Page<String>> pages);
        }
    }

    /** The types of {@link V1} after a change, in which members were moved, added, removed and widened. */
    static class V2 {
        enum Colour {
            BLUE,
            GREEN,
            RED
        }

        record Order(List<Page<String>> pages, String note, Colour colour, Map<String, Long> prices, long count) {}

        record Page<T>(List<T> items) {}

        interface Shop {
            Order order(Order order);

            String find(String name, long limit);

            Flow.Publisher<Order> watch(Flow.Publisher<Page<String>> pages);
        }
    }

    static class T1 {
        @RPCXError
        static class NotEnough extends Exception {
            private final long missing;

            NotEnough(String message, long missing) {
                super(message);
                this.missing = missing;
            }

            public long missing() {
                return missing;
            }
        }

        interface Bank {
            long withdraw(long cents) throws NotEnough;

            @Method("withdraw")
            CompletableFuture<Long> withdrawLater(long cents);
        }
    }

    /** What the constructor takes has changed places, and a part is new. */
    static class T2 {
        @RPCXError
        static class NotEnough extends Exception {
            private final long missing;

            NotEnough(int code, long missing, String message) {
                super(message);
                this.missing = missing + code;
            }

            public int code() {
                return 0;
            }

            public long missing() {
                return missing;
            }
        }

        interface Bank {
            long withdraw(long cents) throws NotEnough;
        }
    }

    @RPCXServer("numbered")
    static class Numbered {
        record Point(@Field(1) int x, @Field(2) int y) {}

        enum Way {
            @Field(1)
            UP,
            @Unknown
            OTHER
        }

        @Method("go")
        public Way move(Point to) {
            return to.x > 0 ? Way.UP : Way.OTHER;
        }

        public void notPublished() {}
    }

    static class E1 {
        enum Way {
            @Field(1)
            UP,
            @Field(2)
            DOWN,
            @Unknown
            OTHER
        }

        record Transfer(
                @Field(1) String from,
                @Field(2) String to,
                @Field(3) Way way) {}

        interface Bank {
            Transfer transfer(Transfer transfer);
        }
    }

    /** The numbers are exchanged. Each number by itself is as valid as before. */
    static class E2 {
        enum Way {
            @Field(2)
            UP,
            @Field(1)
            DOWN,
            @Unknown
            OTHER
        }

        record Transfer(
                @Field(2) String from,
                @Field(1) String to,
                @Field(3) Way way) {}

        interface Bank {
            Transfer transfer(Transfer transfer);
        }
    }

    static class N1 {
        record Reading(int celsius, String at, Long seen) {}

        @RPCXServer("sensor")
        static class Sensor {
            @Method
            public Reading read() {
                return new Reading(0, "", 1L);
            }

            @Method
            public void reset() {}
        }
    }

    /** Values that were 0 may now be null, and a method is gone. */
    static class N2 {
        record Reading(Integer celsius, Optional<String> at, long seen) {}

        @RPCXServer("sensor")
        static class Sensor {
            @Method
            public Reading read() {
                return new Reading(0, Optional.empty(), 1);
            }
        }
    }

    @RPCXServer("with blank")
    static class Blank {
        @Method
        public void call() {}
    }

    static class Levels1 {
        enum Level {
            @Field(0)
            LOW,
            @Field(1)
            HIGH
        }

        interface Gauge {
            Level level();
        }
    }

    /** No constant stands for an unknown one: LOW is only LOW. */
    static class Levels2 {
        enum Level {
            @Field(0)
            LOW,
            @Field(1)
            HIGH,
            @Field(2)
            TOP
        }

        interface Gauge {
            Level level();
        }
    }

    static class S1 {
        interface Feed {
            String latest(String topic);

            void done();

            V1.Order order(V1.Order order);
        }
    }

    static class S2 {
        interface Feed {
            Flow.Publisher<String> latest(Flow.Publisher<String> topic);

            Flow.Publisher<String> done();

            V1.Order order(Flow.Publisher<V1.Order> order);
        }
    }

    /** Methods that no client or server can start with. */
    static class Refused {
        interface Beside {
            void send(Flow.Publisher<String> texts, int limit);
        }

        @SuppressWarnings("rawtypes")
        interface Untyped {
            void send(Flow.Publisher items);
        }

        interface Notices {
            @OneWay
            void send(Flow.Publisher<String> texts);
        }
    }

    static class P1 {
        enum Colour {
            RED,
            UNKNOWN
        }

        record Person(String name) {}

        interface Bank {
            void transfer(String from, String to, long amount);

            void boxed(int number, String text, Colour colour, double twice, List<String> texts);

            String answer();

            CompletableFuture<Integer> later();

            Flow.Publisher<String> items();

            void sameKind(UUID id, BigInteger big, Instant moment, int a, int b, int c, int seventh);

            void renamed(String first, String second);

            Person whole(Person person);

            Person wrapped(Optional<Person> person);

            Person ends();
        }
    }

    static class P2 {
        interface Bank {
            void transfer(String to, String from, long amount);

            void boxed(
                    Integer number,
                    @Nullable String text,
                    Optional<P1.Colour> colour,
                    Double twice,
                    @Nullable List<String> texts);

            @Nullable
            String answer();

            CompletableFuture<@Nullable Integer> later();

            Flow.Publisher<@Nullable String> items();

            void sameKind(
                    @Nullable UUID id,
                    Optional<BigInteger> big,
                    Optional<Instant> moment,
                    int a,
                    int b,
                    int c,
                    Integer seventh);

            void renamed(String one, String second);

            Optional<P1.Person> whole(@Nullable P1.Person person);

            P1.Person wrapped(P1.Person person);

            void ends();
        }
    }

    /** An annotation of the test's own, which is kept at run time. */
    @Retention(RetentionPolicy.RUNTIME)
    @Target({ElementType.TYPE_USE, ElementType.METHOD, ElementType.PARAMETER})
    @interface Nullable {}

    @TempDir
    Path folder;

    private Path file;
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    @BeforeEach
    void file() {
        file = folder.resolve("META-INF/rpcx/schema.lock");
    }

    private int run(String... args) {
        out.reset();
        err.reset();
        return new SchemaTool(
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8),
                        getClass().getClassLoader())
                .run(List.of(args));
    }

    private String errors() {
        return err.toString(StandardCharsets.UTF_8);
    }

    @Test
    void aLockIsWrittenThenHolds() throws Exception {
        assertThat(run("check", file.toString(), V1.Shop.class.getName())).isEqualTo(2);
        assertThat(run("lock", file.toString(), V1.Shop.class.getName())).isZero();
        assertThat(Files.readString(file))
                .contains("message " + V1.Order.class.getName() + "\n  1 id string\n")
                .contains("  4 prices map string long\n")
                .contains("message Shop/find.request\n  1 name string\n  2 limit int\n");
        assertThat(run("check", file.toString(), V1.Shop.class.getName())).isZero();
    }

    @Test
    void aChangeKeepsItsNumbersAndItsBreaksAreNamed() throws Exception {
        run("lock", file.toString(), V1.Shop.class.getName());
        Files.writeString(file, Files.readString(file).replace("$V1$", "$V2$"));
        String locked = Files.readString(file);
        assertThat(run("lock", "--removed", "id", file.toString(), V2.Shop.class.getName()))
                .isEqualTo(3);
        assertThat(errors())
                .contains("FORWARD dev.rpcx.tool.SchemaToolTest$V2$Colour.BLUE: is new")
                .contains("FORWARD dev.rpcx.tool.SchemaToolTest$V2$Order.count: was int, is long")
                .contains("FORWARD Shop/find.request.limit: was int, is long")
                .doesNotContain("BACKWARD")
                .doesNotContain("BOTH")
                .doesNotContain("Order.id:");
        assertThat(Files.readString(file)).as("a break is not written").isEqualTo(locked);
        assertThat(run("check", file.toString(), V2.Shop.class.getName())).isEqualTo(3);
    }

    @Test
    void aMethodThatBecomesAStreamOrCeasesToBeOneBreaks() throws Exception {
        Path other = folder.resolve("streams.lock");
        assertThat(run("lock", file.toString(), S1.Feed.class.getName())).isZero();
        assertThat(run("lock", other.toString(), S2.Feed.class.getName())).isZero();
        assertThat(run("check", other.toString(), S2.Feed.class.getName())).isZero();
        assertThat(run("compare", file.toString(), other.toString())).isEqualTo(3);
        assertThat(errors().lines())
                .containsExactlyInAnyOrder(
                        "BOTH Feed/done.reply: was no stream, is one",
                        "BOTH Feed/latest.reply: was no stream, is one",
                        "BOTH Feed/latest.request: was no stream, is one",
                        "BOTH Feed/order.request: was no stream, is one");
        assertThat(run("check", file.toString(), S2.Feed.class.getName())).isEqualTo(3);
        assertThat(run("check", other.toString(), S1.Feed.class.getName())).isEqualTo(3);
        assertThat(errors().lines().filter(line -> line.contains("Feed/")))
                .containsExactlyInAnyOrder(
                        "BOTH Feed/done.reply: was a stream, is none",
                        "BOTH Feed/latest.reply: was a stream, is none",
                        "BOTH Feed/latest.request: was a stream, is none",
                        "BOTH Feed/order.request: was a stream, is none");
    }

    /** The breaks between calls of the two versions. Such a call fails before anything is sent. */
    private static final String[] BREAKS_OF_CALLS = {
        "BOTH Bank/answer.reply.value: was string, is optional string, and calls of another shape are refused",
        "BOTH Bank/boxed.request.colour: was dev.rpcx.tool.SchemaToolTest$P1$Colour, is optional"
                + " dev.rpcx.tool.SchemaToolTest$P1$Colour, and calls of another shape are refused",
        "BOTH Bank/boxed.request.number: was int, is optional int, and calls of another shape are refused",
        "BOTH Bank/boxed.request.text: was string, is optional string, and calls of another shape are refused",
        "BOTH Bank/boxed.request.texts: was list string, is java.util.List<java.lang.String>, and calls of another"
                + " shape are refused",
        "BOTH Bank/boxed.request.twice: was double, is optional double, and calls of another shape are refused",
        "BOTH Bank/items.reply.value: was stream string, is stream optional string, and calls of another shape are"
                + " refused",
        "BOTH Bank/later.reply.value: was int, is optional int, and calls of another shape are refused",
        // a shape has six parameters: nothing refuses a difference in the later ones
        "BOTH Bank/sameKind.request.seventh: was int, is optional int, and one side's null is the other's 0, false or"
                + " empty text",
        "BOTH Bank/transfer.request.from: was number 1, is number 2 (expected: the number that it had)",
        "BOTH Bank/transfer.request.to: was number 2, is number 1 (expected: the number that it had)",
        "BOTH Bank/whole.reply: was a message of its own, is a field of one",
        "BOTH Bank/whole.request: was a message of its own, is a field of one",
        "BOTH Bank/wrapped.request: was a field of a message, is a message of its own",
        "FORWARD Bank/ends.reply.is: is gone, and old peers read a message without fields",
    };

    @Test
    void whatCallsRefuseForTheirShapeBreaksAndSoDoParametersThatChangePlaces() throws Exception {
        assertThat(run("lock", file.toString(), P1.Bank.class.getName())).isZero();
        String locked = Files.readString(file);
        assertThat(run("check", file.toString(), P2.Bank.class.getName())).isEqualTo(3);
        assertThat(errors().lines().filter(line -> line.contains(" Bank/") && !line.startsWith("note: ")))
                .containsExactlyInAnyOrder(BREAKS_OF_CALLS);
        assertThat(run("lock", "--rename", "first=one", file.toString(), P2.Bank.class.getName()))
                .isEqualTo(3);
        assertThat(Files.readString(file)).as("a break is not written").isEqualTo(locked);
    }

    @Test
    void twoLocksAreHeldAgainstEachOther() throws Exception {
        Path older = folder.resolve("older");
        Path newer = folder.resolve("newer");
        Files.writeString(older, """
                message a.A
                  1 kept string
                  2 dropped int
                  3 narrowed long
                  4 retyped string
                  5 deleted int
                  removed 6 gone int
                  7 relabelled int
                  8 loosened int
                enum a.E
                  1 ON constant
                  2 OFF constant
                message shop/find.request
                  1 name string
                """);
        Files.writeString(newer, """
                message a.A
                  1 kept string
                  removed 2 dropped int
                  3 narrowed int
                  4 retyped int
                  6 again int
                  7 relabelled repeated int
                  8 loosened optional int
                enum a.E
                  removed 1 ON constant
                  2 OFF constant
                """);
        assertThat(run("compare", older.toString(), newer.toString())).isEqualTo(3);
        assertThat(errors().lines())
                .containsExactly(
                        "BACKWARD a.A.narrowed: was long, is int, and what does not fit is refused",
                        "BOTH a.A.retyped: was string, is int",
                        "BOTH a.A.deleted: number 5 has no line any more, so that it may be given again (expected: removed 5 deleted)",
                        "BOTH a.A.gone: number 6 was removed, and is given again to again",
                        "BOTH a.A.relabelled: was int, is repeated int",
                        "BOTH a.A.loosened: was int, is optional int, and one side's null is the other's 0, false or"
                                + " empty text",
                        "BACKWARD a.E.ON: is gone, old peers still send it, and nothing stands for the unknown",
                        "BACKWARD shop/find.request: is gone, and old callers still call it");
        assertThat(run("compare", older.toString(), older.toString())).isZero();
    }

    @Test
    void annotatedNumbersNeedNoLockToBeGivenButAreHeldAgainstIt() throws Exception {
        assertThat(run("lock", file.toString(), Numbered.class.getName())).isZero();
        assertThat(Files.readString(file))
                .contains("message numbered/go.request\n  0 is " + Numbered.Point.class.getName() + "\n")
                .contains("  0 OTHER unknown\n  1 UP constant\n");
        Files.writeString(file, Files.readString(file).replace("  2 y int", "  3 y int"));
        assertThat(run("check", file.toString(), Numbered.class.getName())).isEqualTo(3);
        assertThat(errors())
                .isEqualTo(
                        "BOTH dev.rpcx.tool.SchemaToolTest$Numbered$Point.y: was number 3, is number 2 (expected: the"
                                + " number that it had)\n");
    }

    @Test
    void annotatedNumbersThatAreExchangedBreak() throws Exception {
        run("lock", file.toString(), E1.Bank.class.getName());
        Files.writeString(file, Files.readString(file).replace("$E1$", "$E2$"));
        String locked = Files.readString(file);
        String type = "BOTH dev.rpcx.tool.SchemaToolTest$E2$";
        String end = " (expected: the number that it had)";
        String[] breaks = {
            type + "Transfer.from: was number 1, is number 2" + end,
            type + "Transfer.to: was number 2, is number 1" + end,
            type + "Way.DOWN: was number 2, is number 1" + end,
            type + "Way.UP: was number 1, is number 2" + end,
        };
        assertThat(run("check", file.toString(), E2.Bank.class.getName())).isEqualTo(3);
        assertThat(errors().lines()).containsExactlyInAnyOrder(breaks);
        assertThat(run("lock", file.toString(), E2.Bank.class.getName())).isEqualTo(3);
        assertThat(errors().lines())
                .contains(breaks)
                .hasSize(breaks.length + 1)
                .last()
                .asString()
                .startsWith(file + " is not changed (expected where a break is wanted: ");
        assertThat(Files.readString(file)).as("a break is not written").isEqualTo(locked);
        Path other = folder.resolve("exchanged.lock");
        assertThat(run("lock", other.toString(), E2.Bank.class.getName())).isZero();
        assertThat(run("compare", file.toString(), other.toString())).isEqualTo(3);
        assertThat(errors().lines()).containsExactlyInAnyOrder(breaks);
    }

    private void becomes(String older, String newer) throws Exception {
        Files.writeString(file, Files.readString(file).replace("$" + older + "$", "$" + newer + "$"));
    }

    @Test
    void whatBecomesOptionalBreaksAndSoDoesAMethodThatIsGone() throws Exception {
        assertThat(run("lock", file.toString(), N1.Sensor.class.getName())).isZero();
        becomes("N1", "N2");
        assertThat(run("check", file.toString(), N2.Sensor.class.getName())).isEqualTo(3);
        String reading = "BOTH dev.rpcx.tool.SchemaToolTest$N2$Reading.";
        String end = ", and one side's null is the other's 0, false or empty text";
        assertThat(errors().lines())
                .containsExactlyInAnyOrder(
                        reading + "celsius: was int, is optional int" + end,
                        reading + "at: was string, is optional string" + end,
                        reading + "seen: was optional long, is long" + end,
                        "BACKWARD sensor/reset.reply: is gone, and old callers still call it",
                        "BACKWARD sensor/reset.request: is gone, and old callers still call it");
    }

    @Test
    void fieldsAreNoMessageOfTheirOwnWhereverTheyStand() throws Exception {
        Path newer = folder.resolve("newer");
        Path older = folder.resolve("older");
        Files.writeString(older, "message shop/find.request\n  removed 1 a string\n  2 b string\n");
        Files.writeString(
                newer, "message shop/find.request\n  0 is a.Foo\n  removed 1 a string\n  removed 2 b string\n");
        assertThat(run("compare", older.toString(), newer.toString())).isEqualTo(3);
        assertThat(errors()).isEqualTo("BOTH shop/find.request: was a field of a message, is a message of its own\n");
    }

    @Test
    void aConstantOfNumberZeroStandsForNothingUnknown() throws Exception {
        assertThat(run("lock", file.toString(), Levels1.Gauge.class.getName())).isZero();
        becomes("Levels1", "Levels2");
        assertThat(run("check", file.toString(), Levels2.Gauge.class.getName())).isEqualTo(3);
        assertThat(errors()).contains("FORWARD dev.rpcx.tool.SchemaToolTest$Levels2$Level.TOP: is new");
    }

    @Test
    void aNameThatALockCannotHoldIsRefused() {
        assertThat(run("lock", file.toString(), Blank.class.getName())).isEqualTo(1);
        assertThat(errors()).contains("\"with blank/call.request\" has a blank");
        assertThat(file).doesNotExist();
    }

    @Test
    void theStateOfADeclaredExceptionKeepsItsNumbers() throws Exception {
        assertThat(run("lock", file.toString(), T1.Bank.class.getName())).isZero();
        assertThat(Files.readString(file))
                .contains("message " + T1.NotEnough.class.getName()
                        + "\n  1 message optional string\n  2 missing long\n");
        assertThat(run("check", file.toString(), T1.Bank.class.getName())).isZero();
        Files.writeString(file, Files.readString(file).replace("$T1$", "$T2$"));
        assertThat(run("lock", file.toString(), T2.Bank.class.getName()))
                .as(errors())
                .isZero();
        assertThat(Files.readString(file))
                .contains("message " + T2.NotEnough.class.getName()
                        + "\n  1 message optional string\n  2 missing long\n  3 code int\n");
        assertThat(run("proto", "bank", T1.Bank.class.getName())).isZero();
        assertThat(out.toString(StandardCharsets.UTF_8))
                .contains("message NotEnough {\n  optional string message = 1;\n  int64 missing = 2;\n}\n");
    }

    @Test
    void protoIsPrinted() {
        assertThat(run("proto", "acme.shop", V1.Shop.class.getName())).isZero();
        assertThat(out.toString(StandardCharsets.UTF_8))
                .contains("package acme.shop;")
                .contains("rpc Find(FindRequest) returns (FindReply);")
                .contains("rpc Order(.acme.shop.Order) returns (.acme.shop.Order);")
                .contains("rpc Watch(stream PageOfString) returns (stream .acme.shop.Order);");
    }

    @Test
    void withoutProtobufTheExportNamesTheDependencyAndLocksAreWritten() throws Exception {
        List<URL> entries = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!entry.contains("protobuf-java")) {
                entries.add(Path.of(entry).toUri().toURL());
            }
        }
        try (URLClassLoader without =
                        new URLClassLoader(entries.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
                PrintStream said = new PrintStream(out, true, StandardCharsets.UTF_8);
                PrintStream complained = new PrintStream(err, true, StandardCharsets.UTF_8)) {
            Class<?> type = without.loadClass(SchemaTool.class.getName());
            Object tool = type.getConstructor(PrintStream.class, PrintStream.class, ClassLoader.class)
                    .newInstance(said, complained, without);
            assertThat(type.getMethod("run", List.class)
                            .invoke(tool, List.of("proto", "acme.shop", V1.Shop.class.getName())))
                    .isEqualTo(1);
            assertThat(errors())
                    .isEqualTo("the export of a .proto needs protobuf-java, which is not on the class path (expected:"
                            + " the dependency com.google.protobuf:protobuf-java)\n");
            assertThat(type.getMethod("run", List.class)
                            .invoke(tool, List.of("lock", file.toString(), V1.Shop.class.getName())))
                    .isEqualTo(0);
        }
        assertThat(file).exists();
    }

    @Test
    void aStreamThatIsRefusedAtStartIsRefusedWithTheSameText() {
        for (Class<?> type : List.of(Refused.Beside.class, Refused.Untyped.class, Refused.Notices.class)) {
            String text = catchThrowable(() -> Streams.itemsTaken(type.getDeclaredMethods()[0]))
                    .getMessage();
            assertThat(run("lock", file.toString(), type.getName())).isEqualTo(1);
            assertThat(errors().lines()).containsExactly(text);
            assertThat(run("proto", "a", type.getName())).isEqualTo(1);
            assertThat(errors().lines()).containsExactly(text);
        }
        assertThat(file).doesNotExist();
    }

    @Test
    void mistakesAreSaidInOneLine() {
        assertThat(run("proto", "a", "no.such.Class")).isEqualTo(1);
        assertThat(errors()).contains("no.such.Class: no such class");
        assertThat(run("proto", "a", "java.lang.String")).isEqualTo(1);
        assertThat(run()).isEqualTo(1);
        assertThat(errors()).contains("rpcx lock FILE");
    }
}
