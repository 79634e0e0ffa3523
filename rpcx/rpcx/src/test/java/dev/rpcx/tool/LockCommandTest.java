package dev.rpcx.tool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Method;
import dev.rpcx.OneWay;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.schema.Field;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.function.Function;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests what {@code rpcx lock} reads from the class path, under which names it keeps it, and lists that become sets.
 */
class LockCommandTest {
    static class L1 {
        record Tags(
                List<String> names, Set<Integer> ids, Set<Integer> wider, List<Integer> crossed, List<String> own) {}

        interface Shelf {
            Tags tags();

            void put(List<String> books, Set<String> readers);

            Flow.Publisher<List<String>> watch();
        }
    }

    static class L2 {
        record Tags(
                Set<String> names, List<Integer> ids, List<Long> wider, Set<Long> crossed, Collection<String> own) {}

        interface Shelf {
            Tags tags();

            void put(Set<String> books, Collection<String> readers);

            Flow.Publisher<Set<String>> watch();
        }
    }

    /**
     * The library of this type has locked it in another order than that of its declaration, and without a component
     * that it no longer has.
     */
    public record Point(String x, String y) {}

    interface Points {
        Point move(Point to);
    }

    @RPCXServer("a")
    static class Short {
        @Method
        public void stays() {}
    }

    @RPCXServer("a/b")
    static class Long1 {
        @Method
        public void find() {}
    }

    @RPCXServer("a")
    static class Slash {
        @Method("b/find")
        public void find() {}
    }

    static class One {
        interface Greeter {
            String hello(String name);
        }
    }

    static class Other {
        interface Greeter {
            long hello(int number);
        }
    }

    interface Letters2 {
        void send(String to, String reference);
    }

    interface Overloaded {
        String find(String name);

        String find(int number);
    }

    @RPCXClient(remoteServerName = "partly")
    interface PartlyMarked {
        @Method(timeoutMillis = 10)
        void marked();

        @Method("marked")
        CompletableFuture<Void> markedLater();

        void unmarked();
    }

    static class Base {
        @Method
        private String hidden() {
            return "base";
        }

        String used() {
            return hidden();
        }
    }

    /**
     * Its method overrides nothing, because the one above is private. So both are published, and have the same name.
     */
    @RPCXServer("private")
    static class Private extends Base {
        @Method
        private String hidden() {
            return "own";
        }

        @Override
        String used() {
            return hidden();
        }
    }

    record Letter(String subject, int pages) {}

    record Renamed(String title, int pages, String author, String editor) {}

    interface Letters {
        void send(Letter letter, Renamed renamed);
    }

    @RPCXServer("ways")
    static class Ways {
        @Method
        public String way(String from, String to) {
            return from + to;
        }
    }

    interface Lives {
        void live(TestInstance.Lifecycle as);
    }

    @RPCXClient(remoteServerName = "ways")
    interface SameWays {
        CompletableFuture<String> way(String start, String end);
    }

    @RPCXClient(remoteServerName = "ways")
    interface CrossedWays {
        String way(String to, String from);
    }

    @RPCXClient(remoteServerName = "ways")
    interface OlderWays {
        @OneWay
        void way(String from);
    }

    @RPCXServer("quiet")
    static class Quiet {
        @Method
        public void put(String text) {}

        @Method
        public List<String> all() {
            return List.of();
        }
    }

    @RPCXClient(remoteServerName = "quiet")
    interface Loud {
        boolean put(String text);

        Set<String> all();
    }

    @RPCXClient(remoteServerName = "forms")
    interface Forms {
        String place(String item);

        @Method("place")
        @OneWay
        void placeQuietly(String item);
    }

    @RPCXClient(remoteServerName = "forms")
    interface OtherForms {
        String place(String item);

        @Method("place")
        CompletableFuture<Integer> placeLater(String item);
    }

    @RPCXClient(remoteServerName = "ways")
    interface OtherWays {
        String way(String from, int to);
    }

    /** Two client interfaces of one service. Neither of them is the service itself. */
    @RPCXClient(remoteServerName = "tags")
    interface Tagged {
        List<String> tags();
    }

    @RPCXClient(remoteServerName = "tags")
    interface TaggedLater {
        CompletableFuture<Set<String>> tags();
    }

    @RPCXClient(remoteServerName = "many")
    interface ManyForms {
        void put(String a, String b, String c, String d, String e, String f, String g);

        @Method("put")
        CompletableFuture<Void> putLater(
                String a, String b, String c, String d, String e, String f, @Nullable String g);
    }

    @TempDir
    Path folder;

    private Path file;
    private ClassLoader loader = LockCommandTest.class.getClassLoader();
    private Function<String, String> ask = question -> null;
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    @BeforeEach
    void file() {
        file = folder.resolve("schema.lock");
    }

    private int run(String command, Path of, Class<?>... services) {
        return run(
                command,
                of.toString(),
                List.of(services).stream().map(Class::getName).toArray(String[]::new));
    }

    private int run(String command, String first, String... others) {
        out.reset();
        err.reset();
        List<String> args = new ArrayList<>(List.of(command, first));
        args.addAll(List.of(others));
        return new SchemaTool(
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8),
                        loader,
                        ask)
                .run(args);
    }

    private String errors() {
        return err.toString(StandardCharsets.UTF_8);
    }

    private static final String TYPE = "dev.rpcx.tool.LockCommandTest$L2$Tags.";

    private static final String[] BREAKS_OF_CONTAINERS = {
        "BACKWARD " + TYPE + "names: was list string, is set string, and of those that are equal one is kept",
        "FORWARD " + TYPE + "ids: was set int, is list int, and old peers keep one of those that are equal",
        "FORWARD " + TYPE + "wider: was set int, is list long, and old peers refuse what does not fit, and old peers"
                + " keep one of those that are equal",
        "BOTH " + TYPE + "crossed: was list int, is set long",
        "BACKWARD Shelf/put.request.books: was list string, is set string, and of those that are equal one is kept",
        "FORWARD Shelf/put.request.readers: was set string, is list string, and old peers keep one of those that are"
                + " equal",
        "BACKWARD Shelf/watch.reply.value: was stream list string, is stream set string, and of those that are equal"
                + " one is kept",
    };

    @Test
    void aListThatBecomesASetAndBackBreaksOneWay() throws IOException {
        assertThat(run("lock", file, L1.Shelf.class)).isZero();
        Files.writeString(file, Files.readString(file).replace("$L1$", "$L2$"));
        assertThat(run("check", file, L2.Shelf.class)).isEqualTo(3);
        assertThat(errors().lines()).containsExactlyInAnyOrder(BREAKS_OF_CONTAINERS);
    }

    @Test
    void aLockThatSaysRepeatedOfBothIsNoBreakAndIsWrittenAnew() throws IOException {
        assertThat(run("lock", file, L1.Shelf.class)).isZero();
        String now = Files.readString(file);
        assertThat(now).contains("  1 names list string\n", "  2 ids set int\n", "  1 value stream list string\n");
        Path before = folder.resolve("before.lock");
        Files.writeString(before, now.replaceAll("(?m)^(  \\d+ \\w+ (?:stream )?)(?:list|set) ", "$1repeated "));
        String old = Files.readString(before);
        assertThat(old).doesNotContain(" list ", " set ").contains(" stream repeated ");
        assertThat(run("compare", before.toString(), file.toString())).isZero();
        assertThat(run("compare", file.toString(), before.toString())).isZero();
        assertThat(run("check", before, L1.Shelf.class)).isEqualTo(3);
        assertThat(errors())
                .isEqualTo(before + ": behind the classes, though nothing breaks; run `rpcx lock` and commit it\n");
        assertThat(run("lock", before, L1.Shelf.class)).isZero();
        assertThat(Files.readString(before)).isEqualTo(now);
        // the command says nothing about what it cannot know
        Files.writeString(before, old.replace("$L1$", "$L2$"));
        assertThat(run("check", before, L2.Shelf.class)).isEqualTo(3);
        assertThat(errors().lines())
                .containsExactlyInAnyOrder(
                        "FORWARD " + TYPE + "wider: was repeated int, is list long, and old peers refuse what does"
                                + " not fit",
                        "FORWARD " + TYPE + "crossed: was repeated int, is set long, and old peers refuse what does"
                                + " not fit");
    }

    @Test
    void whatBecomesWiderAndOptionalBreaksBothWays() throws IOException {
        Path older = folder.resolve("older.lock");
        Path newer = folder.resolve("newer.lock");
        Files.writeString(older, "message a.A\n  1 count int\n");
        Files.writeString(newer, "message a.A\n  1 count optional long\n");
        assertThat(run("compare", older.toString(), newer.toString())).isEqualTo(3);
        assertThat(errors())
                .isEqualTo("BOTH a.A.count: was int, is optional long, and one side's null is the other's 0, false or"
                        + " empty text\n");
    }

    private static final String POINT = "message " + Point.class.getName() + "\n";

    private static final String OF_LIBRARY = POINT + "  1 y string\n  2 x string\n  removed 3 z int\n";

    private URLClassLoader withLibrary(String text) throws IOException {
        Path root = folder.resolve("library");
        Path lock = root.resolve(LockFile.RESOURCE);
        Files.createDirectories(lock.getParent());
        Files.writeString(lock, text);
        return new URLClassLoader(new URL[] {root.toUri().toURL()}, LockCommandTest.class.getClassLoader());
    }

    @Test
    void typesOfALibraryHaveTheNumbersOfItsLock() throws IOException {
        try (URLClassLoader library = withLibrary(OF_LIBRARY + "message com.acme.Unused\n  1 a string\n")) {
            loader = library;
            assertThat(run("lock", file, Points.class)).as(errors()).isZero();
            assertThat(Files.readString(file)).contains(OF_LIBRARY).doesNotContain("Unused");
            assertThat(run("check", file, Points.class)).as(errors()).isZero();
        }
    }

    @Test
    void aLockThatContradictsThatOfALibraryIsRefusedByName() throws IOException {
        String own = POINT + "  1 x string\n  2 y string\n";
        Files.writeString(file, own);
        try (URLClassLoader library = withLibrary(OF_LIBRARY)) {
            loader = library;
            for (String command : List.of("lock", "check")) {
                assertThat(run(command, file, Points.class)).isEqualTo(1);
                assertThat(errors())
                        .contains(file.toString(), "library/META-INF/rpcx/schema.lock", Point.class.getName())
                        .contains("(expected: one number for ever)")
                        .hasLineCount(1);
            }
            assertThat(file).hasContent(own);
        }
    }

    @Test
    void aCopyOfTheFileOnTheClassPathThatIsOlderIsNoContradiction() throws IOException {
        Files.writeString(file, POINT + "  1 y string\n  2 x string\n  removed 4 w int\n");
        try (URLClassLoader library = withLibrary(POINT + "  1 y string\n  4 w int\n")) {
            loader = library;
            assertThat(run("lock", file, Points.class)).as(errors()).isZero();
            assertThat(Files.readString(file)).contains(POINT + "  1 y string\n  2 x string\n  removed 4 w int\n");
        }
    }

    @Test
    void commentsStayWhereTheyStand() throws IOException {
        String head = "# Owned by the team of points.\n# Licence: none.\n"
                + "# Numbers and types of RPCX messages. Lines are added, never taken"
                + " away: `rpcx lock`.\n";
        String before = head + "\n# Of the library.\n# Ask first.\n" + POINT + "  1 y string\n# Was z.\n  2 x string\n"
                + "# The end.\n";
        Files.writeString(file, before.replace("# Licence", "\n# Licence"));
        assertThat(run("lock", file, Points.class)).as(errors()).isZero();
        assertThat(Files.readString(file))
                .startsWith(head)
                .containsOnlyOnce("Numbers and types of RPCX messages")
                .contains("\n# Of the library.\n# Ask first.\n" + POINT + "  1 y string\n# Was z.\n  2 x string\n")
                .endsWith("\n# The end.\n");
        String once = Files.readString(file);
        assertThat(run("lock", file, Points.class)).isZero();
        assertThat(Files.readString(file)).isEqualTo(once);
    }

    @Test
    void anEmptyFileIsNoLock() throws IOException {
        for (String text : List.of("", "# Numbers and types\n")) {
            Files.writeString(file, text);
            assertThat(run("lock", file, Points.class)).isEqualTo(1);
            assertThat(errors()).contains(file + " has no type in it");
            assertThat(file).hasContent(text);
        }
    }

    @Test
    void twoWhoLockAtOnceDoNotLoseEachOthersLines() throws IOException {
        Path other = folder.resolve("schema.lock.new");
        Files.writeString(other, "by another");
        assertThat(run("lock", file, Points.class)).isEqualTo(1);
        assertThat(errors()).contains(other + " is there: another `rpcx lock` writes " + file);
        assertThat(other).hasContent("by another");
        assertThat(file).doesNotExist();
        Files.delete(other);
        assertThat(run("lock", file, Points.class)).as(errors()).isZero();
        assertThat(other).doesNotExist();
        // a command that has nothing to write is not refused
        Files.writeString(other, "by another");
        assertThat(run("lock", file, Points.class)).as(errors()).isZero();
        assertThat(other).hasContent("by another");
    }

    /** A hard link to the old file shows that nothing was written into that file. */
    @Test
    void theFileIsReplacedAsAWhole() throws IOException {
        String before = POINT + "  1 y string\n";
        Files.writeString(file, before);
        Path asItWas = Files.createLink(folder.resolve("as-it-was"), file);
        Path link = Files.createSymbolicLink(folder.resolve("link"), file);
        assertThat(run("lock", link, Points.class)).as(errors()).isZero();
        assertThat(Files.readString(asItWas)).isEqualTo(before);
        assertThat(Files.readString(file)).contains("  2 x string\n", "Points/move.request");
        assertThat(link).isSymbolicLink();
        try (Stream<Path> files = Files.list(folder)) {
            assertThat(files).containsExactlyInAnyOrder(file, asItWas, link);
        }
    }

    @Test
    void whatAClientReadsAmissIsNotedAndWhatItLeavesOutIsNot() throws IOException {
        assertThat(run("lock", file, Ways.class, OlderWays.class)).as(errors()).isZero();
        assertThat(errors()).isEmpty();
        Path quiet = folder.resolve("quiet.lock");
        assertThat(run("lock", quiet, Loud.class, Quiet.class)).as(errors()).isZero();
        assertThat(errors().lines())
                .hasSize(2)
                .allMatch(line -> line.startsWith("note: " + Quiet.class.getName() + " and " + Loud.class.getName()
                        + " are both the service quiet: from the one to the other quiet/"))
                .anyMatch(line -> line.contains("quiet/put.reply brings a value now"))
                .anyMatch(line -> line.contains("quiet/all.reply.value was list string, is set string"));
    }

    @Test
    void whatTwoClientsReadUnlikeIsNotedInEitherOrder() throws IOException {
        assertThat(run("lock", file, Tagged.class, TaggedLater.class))
                .as(errors())
                .isZero();
        assertThat(errors())
                .startsWith("note: ")
                .contains("tags/tags.reply.value was list string, is set string")
                .hasLineCount(1);
        assertThat(run("lock", folder.resolve("other.lock"), TaggedLater.class, Tagged.class))
                .isZero();
        assertThat(errors())
                .startsWith("note: ")
                .contains("tags/tags.reply.value was set string, is list string")
                .hasLineCount(1);
    }

    @RPCXServer("half")
    static class Half implements HalfClient {
        @Override
        @Method
        public String hello() {
            return "";
        }

        @Override
        public String bye() {
            return "";
        }
    }

    @RPCXClient(remoteServerName = "half")
    interface HalfClient {
        String hello();

        String bye();
    }

    @Test
    void whatAServicesClassDoesNotPublishIsGoneThoughAClientsInterfaceHasIt() throws IOException {
        String note =
                "note: " + HalfClient.class.getName() + " calls half/bye, which no class of the service publishes";
        assertThat(run("lock", file, HalfClient.class, Half.class)).as(errors()).isZero();
        assertThat(errors()).startsWith(note).hasLineCount(1);
        assertThat(Files.readString(file)).contains("half/hello.request").doesNotContain("bye");
        Path both = folder.resolve("both.lock");
        assertThat(run("lock", both, HalfClient.class)).as(errors()).isZero();
        assertThat(Files.readString(both)).contains("half/bye.request");
        assertThat(run("check", both, Half.class, HalfClient.class)).isEqualTo(3);
        assertThat(errors())
                .contains(note, "BACKWARD half/bye.request: is gone", "BACKWARD half/bye.reply: is gone")
                .hasLineCount(3);
    }

    record Numbered(@Field(1) String a, @Field(2) String c) {}

    interface Numbers {
        Numbered number();
    }

    @Test
    void aLineThatContradictsAnotherJarsIsNoted() throws IOException {
        String type = "message " + Numbered.class.getName() + "\n  1 a string\n";
        Files.writeString(file, type);
        try (URLClassLoader library = withLibrary(type + "  2 b string\n")) {
            loader = library;
            assertThat(run("lock", file, Numbers.class)).as(errors()).isZero();
            assertThat(errors())
                    .startsWith("note: no program can start with both of these locks: ")
                    .contains("number 2 is that of b and of c", "library/META-INF/rpcx/schema.lock", file.toString())
                    .hasLineCount(1);
        }
    }

    @Test
    void aServiceOfTheLockThatNoClassIsIsNoted() throws IOException {
        assertThat(run("lock", file, Ways.class, Quiet.class)).isZero();
        assertThat(errors()).isEmpty();
        for (String command : List.of("check", "lock")) {
            assertThat(run(command, file, Ways.class)).isZero();
            assertThat(errors())
                    .startsWith("note: none of these classes is the service quiet of the lock")
                    .hasLineCount(1);
        }
    }

    @Test
    void aParameterThatMovesDownIsABreak() throws IOException {
        Files.writeString(file, "message ways/way.request\n  1 to string\n  2 from string\n");
        assertThat(run("lock", file, OlderWays.class)).isEqualTo(3);
        assertThat(errors())
                .startsWith("BOTH ways/way.request.from: was number 2, is number 1")
                .hasLineCount(2);
    }

    /** Parameters of a call are compared with those of a peer for the first six only. */
    @Test
    void formsThatTakeNullForTheSeventhParameterUnlikeAreRefused() {
        assertThat(run("lock", file, ManyForms.class)).isEqualTo(1);
        assertThat(errors()).contains("ManyForms: forms of put take different parameters");
        assertThat(file).doesNotExist();
    }

    @Test
    void ofTheFormsOfAMethodTheOneWithAResultIsLocked() throws IOException {
        assertThat(run("lock", file, Forms.class)).as(errors()).isZero();
        assertThat(Files.readString(file)).contains("message forms/place.reply\n  1 value string\n");
        assertThat(run("lock", folder.resolve("other.lock"), OtherForms.class)).isEqualTo(1);
        assertThat(errors())
                .contains("OtherForms: forms of place bring different results")
                .hasLineCount(1);
    }

    /** Other users of the type, such as the other side of a call, do not have this lock. */
    @Test
    void aTypeThatComesInAJarWithoutALockIsTold() throws IOException {
        assertThat(run("lock", file, Lives.class)).as(errors()).isZero();
        String name = TestInstance.Lifecycle.class.getName();
        assertThat(errors())
                .startsWith("note: " + name + " comes from junit-jupiter-api-")
                .hasLineCount(1);
        assertThat(run("check", file, Lives.class)).as(errors()).isZero();
        assertThat(errors()).startsWith("note: " + name + " comes from junit-jupiter-api-");
    }

    /** In a build with several modules, the classes of another module are in a folder of that module. */
    @Test
    void aTypeThatComesFromAnotherProjectsFolderWithoutALockIsTold() throws IOException {
        Path source = folder.resolve("Orders.java");
        Files.writeString(source, """
                public interface Orders {
                    record Order(String id, String note) {}

                    void place(Order order);
                }
                """);
        Path classes = Files.createDirectories(folder.resolve("api/target/classes"));
        assertThat(ToolProvider.getSystemJavaCompiler()
                        .run(null, null, null, "-d", classes.toString(), source.toString()))
                .isZero();
        Path own = folder.resolve("api/src/main/resources/META-INF/rpcx/schema.lock");
        Path others = folder.resolve("server/src/main/resources/META-INF/rpcx/schema.lock");
        String note = "note: Orders$Order comes from " + classes.toRealPath() + ", which has no lock for all of it";
        try (URLClassLoader api = new URLClassLoader(new URL[] {classes.toUri().toURL()})) {
            loader = api;
            assertThat(run("lock", others.toString(), "Orders")).as(errors()).isZero();
            assertThat(errors()).contains(note);
            assertThat(run("check", others.toString(), "Orders")).as(errors()).isZero();
            assertThat(errors()).startsWith(note);
            assertThat(run("lock", own.toString(), "Orders")).as(errors()).isZero();
            assertThat(run("lock", own.toString(), "Orders")).as(errors()).isZero();
            assertThat(errors()).isEmpty();
            Path carried = Files.createDirectories(classes.resolve("META-INF/rpcx"));
            Files.copy(own, carried.resolve("schema.lock"));
            assertThat(run("check", others.toString(), "Orders")).as(errors()).isZero();
            assertThat(errors()).isEmpty();
        }
    }

    private static final String CURRENCY =
            "message Letters2/send.request\n  1 to string\n  2 currency string\nmessage Letters2/send.reply\n";

    private void expectNotChanged(String before) throws IOException {
        assertThat(errors())
                .endsWith(file + " is not changed (expected: an answer to each of these)" + System.lineSeparator());
        assertThat(file).hasContent(before);
    }

    @Test
    void aParameterInThePlaceOfAnotherIsAskedAbout() throws IOException {
        String type = Letters2.class.getName();
        Files.writeString(file, CURRENCY);
        String question = "Letters2/send.request: reference stands where currency stood (expected: `rpcx lock` with"
                + " --rename currency=reference or --removed currency; --rename if that is a new name for the same)";
        assertThat(run("check", file, Letters2.class)).isEqualTo(3);
        assertThat(errors().lines()).contains(question);
        assertThat(run("lock", file, Letters2.class)).isEqualTo(1);
        assertThat(errors()).startsWith(question).hasLineCount(2);
        expectNotChanged(CURRENCY);
        assertThat(run("lock", "--removed", "currency", file.toString(), type)).isEqualTo(3);
        assertThat(errors())
                .startsWith("BOTH Letters2/send.request.currency: its number is given to reference, and old and new"
                        + " versions read one as the other");
        assertThat(file).hasContent(CURRENCY);
        assertThat(run("lock", "--rename", "currency=reference", file.toString(), type))
                .as(errors())
                .isZero();
        assertThat(Files.readString(file)).contains("  2 reference string\n  was 2 currency\n");
        assertThat(run("lock", file, Letters2.class)).isZero();
        assertThat(errors()).isEmpty();
    }

    private static final String SUBJECT = "message " + Renamed.class.getName()
            + "\n  1 subject string\n  2 pages int\n  removed 3 writer string\n  4 date long\n";

    private static final String IS_GONE =
            Renamed.class.getName() + ": subject is gone and title, author, editor are new";

    private int lockLetters(String... options) throws IOException {
        List<String> others = new ArrayList<>(List.of(options));
        others.addAll(List.of(file.toString(), Letters.class.getName()));
        Files.writeString(file, SUBJECT);
        return run("lock", others.get(0), others.subList(1, others.size()).toArray(String[]::new));
    }

    /** Without the answer, old and new versions would have different numbers for one value, and read it as absent. */
    @Test
    void aNameThatIsGoneWhereOthersAreNewIsAskedAbout() throws IOException {
        String question = IS_GONE + " (expected: `rpcx lock` with --rename subject=title or --rename subject=author or"
                + " --rename subject=editor or --removed subject; --rename if that is a new name for the same)";
        assertThat(lockLetters()).isEqualTo(1);
        assertThat(errors()).startsWith(question).hasLineCount(2);
        expectNotChanged(SUBJECT);
        assertThat(run("check", file, Letters.class)).isEqualTo(3);
        assertThat(errors().lines()).contains(question);
    }

    @Test
    void aNewNameKeepsTheNumber() throws IOException {
        for (String old : List.of("subject", Renamed.class.getName() + ".subject")) {
            assertThat(lockLetters("--rename", old + "=title")).as(errors()).isZero();
            assertThat(errors()).isEmpty();
            assertThat(Files.readString(file))
                    .contains("message " + Renamed.class.getName() + "\n  1 title string\n  was 1 subject\n"
                            + "  2 pages int\n  removed 3 writer string\n  removed 4 date long\n  5 author string\n"
                            + "  6 editor string\n");
            assertThat(run("check", file, Letters.class)).as(errors()).isZero();
        }
    }

    @Test
    void whatIsRemovedKeepsItsNumberForItself() throws IOException {
        for (String old : List.of("subject", Renamed.class.getName() + ".subject")) {
            assertThat(lockLetters("--removed", old)).as(errors()).isZero();
            assertThat(errors()).isEmpty();
            assertThat(Files.readString(file)).contains("  removed 1 subject string\n", "  5 title string\n");
            assertThat(run("lock", file, Letters.class)).isZero();
            assertThat(errors()).isEmpty();
        }
    }

    @Test
    void anAnswerThatAnswersNothingIsRefusedAndNothingIsWritten() throws IOException {
        String name = Renamed.class.getName();
        Map<List<String>, String> mistakes = Map.of(
                List.of("--rename", "subject=pages"),
                "--rename subject=pages: " + IS_GONE + " (expected: a name that is new)",
                List.of("--removed", "subject", "--rename", "colour=title"),
                "--rename colour=title: nothing of this name is gone",
                List.of("--removed", "subject", "--removed", name + ".title"),
                "--removed " + name + ".title: nothing of this name is gone",
                List.of("--removed", "subject", "--removed", "date", "--rename", name + ".pages=author"),
                "--rename " + name + ".pages=author: the class still has pages",
                List.of("--rename", name + ".subject=heading"),
                name + ": heading is gone and title, author, editor are new",
                List.of("--rename", "subject"),
                "--rename subject (expected: OLD=NEW",
                List.of("--removed", "subject=title"),
                "--removed subject=title (expected: OLD,",
                List.of("--rename", "subject=title", "--removed", "subject"),
                "--removed subject: subject is answered twice");
        for (Map.Entry<List<String>, String> mistake : mistakes.entrySet()) {
            assertThat(lockLetters(mistake.getKey().toArray(String[]::new)))
                    .as("%s", mistake.getKey())
                    .isEqualTo(1);
            assertThat(errors()).startsWith(mistake.getValue()).contains("expected: ");
            assertThat(file).hasContent(SUBJECT);
        }
        assertThat(run("lock", "--rename")).isEqualTo(1);
        assertThat(errors()).startsWith("--rename: nothing behind it (expected: OLD=NEW");
    }

    record Twice(String title, String note) {}

    interface TwiceUsed {
        Twice twice();
    }

    @Test
    void oneNewNameIsThatOfOneMember() throws IOException {
        String before = "message " + Twice.class.getName() + "\n  1 subject string\n  2 heading string\n";
        Files.writeString(file, before);
        String type = TwiceUsed.class.getName();
        assertThat(run("lock", "--rename", "subject=title", "--rename", "heading=title", file.toString(), type))
                .isEqualTo(1);
        assertThat(errors())
                .startsWith(Twice.class.getName() + ": title is given as the new name of subject and of heading");
        assertThat(file).hasContent(before);
        assertThat(run("lock", "--rename", "subject=title", "--rename", "heading=note", file.toString(), type))
                .as(errors())
                .isZero();
        assertThat(Files.readString(file))
                .contains("\n  1 title string\n  was 1 subject\n  2 note string\n  was 2 heading\n");
    }

    @Test
    void thePersonAtTheTerminalIsAskedUntilAnAnswerIsOne() throws IOException {
        Deque<String> typed = new ArrayDeque<>(List.of("heading", " title "));
        List<String> asked = new ArrayList<>();
        ask = question -> {
            asked.add(question);
            return typed.poll();
        };
        assertThat(lockLetters()).as(errors()).isZero();
        assertThat(asked).hasSize(2).containsOnly(IS_GONE + "\nNew name of subject, or - if it has none: ");
        assertThat(Files.readString(file)).contains("\n  1 title string\n");
        typed.add("-");
        assertThat(lockLetters()).as(errors()).isZero();
        assertThat(Files.readString(file)).contains("\n  removed 1 subject string\n");
        asked.clear();
        assertThat(lockLetters("--rename", "subject=editor")).as(errors()).isZero();
        assertThat(asked).as("what an option answers is not asked").isEmpty();
    }

    @Test
    void nothingIsWrittenIfThePersonTypesNothing() throws IOException {
        for (String nothing : new String[] {"", null}) {
            ask = question -> nothing;
            assertThat(lockLetters()).isEqualTo(1);
            expectNotChanged(SUBJECT);
        }
    }

    @Test
    void aCopyOnTheClassPathMayHaveTheOldName() throws IOException {
        String before = POINT + "  1 y string\n  2 w string\n";
        Files.writeString(file, before);
        try (URLClassLoader library = withLibrary(before)) {
            loader = library;
            assertThat(run("lock", "--rename", "w=x", file.toString(), Points.class.getName()))
                    .as(errors())
                    .isZero();
            assertThat(errors()).isEmpty();
            assertThat(Files.readString(file)).contains(POINT + "  1 y string\n  2 x string\n");
        }
    }

    @Test
    void aNewNameInALibrarysLockIsTakenOver() throws IOException {
        Files.writeString(file, POINT + "  1 y string\n  2 w string\n");
        try (URLClassLoader library = withLibrary(POINT + "  1 y string\n  2 x string\n")) {
            loader = library;
            assertThat(run("lock", file, Points.class)).isEqualTo(1);
            assertThat(errors())
                    .contains("number 2 is that of", "`rpcx lock --rename`")
                    .hasLineCount(1);
            String rename = Point.class.getName() + ".w=x";
            assertThat(run("lock", "--rename", rename, file.toString(), Points.class.getName()))
                    .as(errors())
                    .isZero();
            assertThat(Files.readString(file)).contains(POINT + "  1 y string\n  2 x string\n");
        }
    }

    @Test
    void compareNotesWhatMayHaveBeenRenamed() throws IOException {
        Path newer = folder.resolve("newer.lock");
        Files.writeString(file, "message a.A\n  1 id int\n  2 count int\n");
        Files.writeString(newer, "message a.A\n  1 key int\n  removed 2 count int\n  3 total int\n");
        assertThat(run("compare", file.toString(), newer.toString())).isZero();
        assertThat(errors().lines())
                .satisfiesExactly(
                        line -> assertThat(line)
                                .startsWith("note: a.A: key stands where id stood; if that is not a new name for the"),
                        line -> assertThat(line)
                                .startsWith("note: a.A: count is gone and total is new; if that is a new name for"));
    }

    static class Server1 {
        record Transfer(String to, String from) {}

        @RPCXServer("bank")
        static class Bank {
            @Method
            public void pay(Transfer transfer) {}
        }
    }

    static class Client1 {
        record Payment(String from, String to) {}

        record Same(String to, String from) {}

        record Less(String to) {}

        record Other(String to, String sender) {}

        @RPCXClient(remoteServerName = "bank")
        interface Bank {
            void pay(Payment payment);
        }

        @RPCXClient(remoteServerName = "bank")
        interface SameBank {
            void pay(Same same);
        }

        @RPCXClient(remoteServerName = "bank")
        interface LessBank {
            void pay(Less less);
        }

        @RPCXClient(remoteServerName = "bank")
        interface OtherBank {
            void pay(Other other);
        }
    }

    private int compareWithServer(Class<?> client) {
        Path of = folder.resolve(client.getSimpleName() + ".lock");
        assertThat(run("lock", of, client)).as(errors()).isZero();
        assertThat(run("lock", file, Server1.Bank.class)).as(errors()).isZero();
        return run("compare", of.toString(), file.toString());
    }

    /** Each side has written the record itself, so the names of the classes differ. */
    @Test
    void theLocksOfClientAndServerAreComparedByTheMembersOfTheirClasses() {
        assertThat(compareWithServer(Client1.SameBank.class)).as(errors()).isZero();
        assertThat(compareWithServer(Client1.LessBank.class)).as(errors()).isZero();
        assertThat(errors()).isEmpty();
        assertThat(compareWithServer(Client1.Bank.class)).isEqualTo(3);
        String name = "BOTH " + Client1.Payment.class.getName();
        String now = " (now of " + Server1.Transfer.class.getName() + ")";
        assertThat(errors().lines())
                .containsExactly(
                        name + ".from" + now + ": was number 1, is number 2 (expected: the number that it had)",
                        name + ".to" + now + ": was number 2, is number 1 (expected: the number that it had)");
        assertThat(compareWithServer(Client1.OtherBank.class)).isZero();
        assertThat(errors())
                .startsWith("note: " + Client1.Other.class.getName() + " (now " + Server1.Transfer.class.getName()
                        + "): from stands where sender stood")
                .hasLineCount(1);
    }

    @Test
    void twoSidesOfOneProjectMayHaveARecordEach() throws IOException {
        assertThat(run("lock", file, Server1.Bank.class, Client1.SameBank.class, Client1.LessBank.class))
                .as(errors())
                .isZero();
        assertThat(errors()).isEmpty();
        assertThat(run("lock", folder.resolve("other.lock"), Server1.Bank.class, Client1.OtherBank.class))
                .isZero();
        assertThat(errors()).contains("are both the service bank: from the one to the other", "sender stands where");
        assertThat(run("lock", folder.resolve("crossed.lock"), Server1.Bank.class, Client1.Bank.class))
                .isEqualTo(1);
        assertThat(errors())
                .contains("do not read each other", Server1.Transfer.class.getName() + ".to", "was number 1")
                .hasLineCount(1);
    }

    static class Older {
        record Address(String street, String city) {}

        interface Post {
            void send(Address to);
        }
    }

    static class Newer {
        record Place(String street, String city) {}

        record Crossed(String city, String street) {}

        record Road(String road, String city) {}

        interface Post {
            void send(Place to);
        }

        interface CrossedPost {
            void send(Crossed to);
        }

        interface RoadPost {
            void send(Road to);
        }
    }

    private int checkAgainstOlderPost(Class<?> newer) throws IOException {
        assertThat(run("lock", file, Older.Post.class)).as(errors()).isZero();
        Files.writeString(
                file, Files.readString(file).replace("message Post/", "message " + newer.getSimpleName() + "/"));
        return run("lock", file, newer);
    }

    @Test
    void aClassThatGetsAnotherNameIsNoBreakIfItsMembersAreTheSame() throws IOException {
        assertThat(checkAgainstOlderPost(Newer.Post.class)).as(errors()).isZero();
        assertThat(Files.readString(file)).contains("  0 is " + Newer.Place.class.getName() + "\n");
        Files.delete(file);
        assertThat(checkAgainstOlderPost(Newer.CrossedPost.class)).isEqualTo(3);
        assertThat(errors())
                .contains("BOTH " + Older.Address.class.getName() + ".street (now of " + Newer.Crossed.class.getName()
                        + "): was number 1, is number 2");
        Files.delete(file);
        assertThat(checkAgainstOlderPost(Newer.RoadPost.class)).isEqualTo(3);
        assertThat(errors())
                .contains("BOTH " + Older.Address.class.getName() + ".street (now of " + Newer.Road.class.getName()
                        + "): its number is given to road");
    }

    private static final String SHOPS = """
            import dev.rpcx.*;

            public class Shops {
                @RPCXServer("shop")
                public static class Shop {
                    @Method
                    public String find(String name) {
                        return name;
                    }
                }

                @RPCXClient(remoteServerName = "stock")
                public interface Stock {
                    int left(String item);
                }

                public interface Unmarked {
                    String name(RPCXServer of);
                }
            }
            """;

    @Test
    void aFolderStandsForTheServicesInIt() throws IOException {
        Path source = Files.writeString(folder.resolve("Shops.java"), SHOPS);
        Path classes = Files.createDirectories(folder.resolve("classes"));
        assertThat(ToolProvider.getSystemJavaCompiler()
                        .run(
                                null,
                                null,
                                null,
                                "-proc:none",
                                "-classpath",
                                System.getProperty("java.class.path"),
                                "-d",
                                classes.toString(),
                                source.toString()))
                .isZero();
        try (URLClassLoader compiled =
                new URLClassLoader(new URL[] {classes.toUri().toURL()}, loader)) {
            loader = compiled;
            assertThat(run("lock", file.toString(), classes.toString()))
                    .as(errors())
                    .isZero();
            assertThat(Files.readString(file))
                    .contains("message shop/find.request\n", "message stock/left.request\n")
                    .doesNotContain("Unmarked");
            assertThat(run("check", file.toString(), classes.toString()))
                    .as(errors())
                    .isZero();
        }
        Path empty = Files.createDirectories(folder.resolve("empty"));
        assertThat(run("check", file.toString(), empty.toString())).isEqualTo(1);
        assertThat(errors()).startsWith(empty + ": no service (expected: ").hasLineCount(1);
    }

    @Test
    void aJarStandsForTheLockInIt() throws IOException {
        assertThat(run("lock", file, Ways.class)).isZero();
        Path jar = folder.resolve("ways-1.0.jar");
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
            out.putNextEntry(new ZipEntry(LockFile.RESOURCE));
            Files.copy(file, out);
        }
        assertThat(run("compare", jar.toString(), file.toString())).as(errors()).isZero();
        Files.writeString(file, Files.readString(file).replace("ways/way", "ways/path"));
        assertThat(run("compare", jar.toString(), file.toString())).isEqualTo(3);
        assertThat(errors()).contains("BACKWARD ways/way.request: is gone");
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
            out.putNextEntry(new ZipEntry("other"));
        }
        assertThat(run("compare", jar.toString(), file.toString())).isEqualTo(2);
        assertThat(errors()).startsWith("no file " + jar + "!/META-INF/rpcx/schema.lock");
    }

    @Test
    void typesOfOneServiceThatDoNotReadEachOtherAreRefused() throws IOException {
        for (Class<?> other : List.of(CrossedWays.class, OtherWays.class)) {
            assertThat(run("lock", file, other, Ways.class)).isEqualTo(1);
            assertThat(errors())
                    .contains(Ways.class.getName() + " and " + other.getName() + " are both the service ways")
                    .contains("ways/way.request")
                    .hasLineCount(1);
            assertThat(file).doesNotExist();
        }
        assertThat(run("lock", file, Ways.class)).isZero();
        String own = Files.readString(file);
        for (List<Class<?>> order :
                List.<List<Class<?>>>of(List.of(Ways.class, SameWays.class), List.of(SameWays.class, Ways.class))) {
            assertThat(run("lock", file, order.toArray(new Class<?>[0])))
                    .as(errors())
                    .isZero();
            assertThat(Files.readString(file)).isEqualTo(own);
        }
    }

    @Test
    void aMethodOfAServiceWithALongerNameIsNotGone() throws IOException {
        assertThat(run("lock", file, Short.class, Long1.class)).isZero();
        assertThat(run("check", file, Short.class)).as(errors()).isZero();
        Files.writeString(file, Files.readString(file).replace("a/stays", "a/gone"));
        assertThat(run("check", file, Short.class)).isEqualTo(3);
        assertThat(errors().lines())
                .filteredOn(line -> !line.startsWith("note: none of these classes is the service a/b of the lock"))
                .containsExactlyInAnyOrder(
                        "BACKWARD a/gone.reply: is gone, and old callers still call it",
                        "BACKWARD a/gone.request: is gone, and old callers still call it");
    }

    @Test
    void aNameOfAMethodThatWouldBePartOfItsServicesIsRefused() {
        assertThat(run("lock", file, Slash.class)).isEqualTo(1);
        assertThat(errors()).contains("a: its method \"b/find\" has a slash", "expected: ");
        assertThat(file).doesNotExist();
    }

    @Test
    void twoInterfacesOfOneSimpleNameAreRefused() {
        assertThat(run("lock", file, One.Greeter.class, Other.Greeter.class)).isEqualTo(1);
        assertThat(errors())
                .contains(One.Greeter.class.getName(), Other.Greeter.class.getName(), "service Greeter")
                .hasLineCount(1);
        assertThat(file).doesNotExist();
        assertThat(run("lock", file, One.Greeter.class, One.Greeter.class)).isZero();
    }

    @Test
    void whatIsPublishedIsWhatAClientCalls() throws IOException {
        assertThat(run("lock", file, Overloaded.class)).isEqualTo(1);
        assertThat(errors()).contains("Overloaded: find is published twice");
        assertThat(run("lock", file, Private.class)).isEqualTo(1);
        assertThat(errors()).contains("Private: hidden is published twice");
        assertThat(run("lock", file, PartlyMarked.class)).isZero();
        assertThat(Files.readString(file)).contains("partly/marked.request", "partly/unmarked.request");
        assertThat(run("proto", "acme", PartlyMarked.class.getName())).isZero();
        assertThat(out.toString(StandardCharsets.UTF_8)).containsOnlyOnce("rpc Marked(");
    }
}
