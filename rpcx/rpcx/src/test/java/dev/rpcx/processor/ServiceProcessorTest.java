package dev.rpcx.processor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.codec.RandomTypes;
import dev.rpcx.schema.SchemaException;
import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Compiles classes with the annotation processor, as a user's build does, and compares its messages with what
 * {@code Schema} says about the same classes.
 */
class ServiceProcessorTest {
    private static final Path INDEX = Path.of("META-INF/rpcx/services");

    private static final String GREETER =
            "@RPCXServer(\"greeter\") class Greetings { @Method(\"hello\") String greet(String name) { return \"Hello \" + name; } }";
    private static final String CLOCK =
            "class Outer { @RPCXServer(\"clock\") static class Clock { @Method Instant now() { return Instant.EPOCH; } } }";

    @TempDir
    private Path out;

    private record Source(String name, String text) {
        static Source of(String type, String body) {
            return new Source(
                    type,
                    "package p; import dev.rpcx.*; import dev.rpcx.schema.*; import java.time.*; import java.util.*;"
                            + " import java.util.concurrent.*;\n" + body);
        }

        JavaFileObject file() {
            return new SimpleJavaFileObject(URI.create("memory:///" + name + ".java"), JavaFileObject.Kind.SOURCE) {
                @Override
                public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                    return text;
                }
            };
        }
    }

    /** Compiles the sources, and returns only the errors. The folder of compiled classes is on the class path. */
    private List<Diagnostic<? extends JavaFileObject>> compile(List<String> processing, Source... sources) {
        return compile(out + System.getProperty("path.separator"), processing, sources);
    }

    private List<Diagnostic<? extends JavaFileObject>> compile(
            String pathBefore, List<String> processing, Source... sources) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> said = new DiagnosticCollector<>();
        List<String> options = new ArrayList<>(List.of(
                "-parameters", "-d", out.toString(), "-classpath", pathBefore + System.getProperty("java.class.path")));
        options.addAll(processing);
        compiler.getTask(
                        null,
                        null,
                        said,
                        options,
                        null,
                        Stream.of(sources).map(Source::file).toList())
                .call();
        return said.getDiagnostics().stream()
                .filter(d -> d.getKind() == Diagnostic.Kind.ERROR)
                .toList();
    }

    /** Returns the options for the processor. It is found in RPCX's own jar, and needs nothing else. */
    private static List<String> withProcessor() {
        return List.of("-processorpath", Path.of("target", "classes").toString());
    }

    private <T> T inClassPathOfOut(java.util.concurrent.Callable<T> action) throws Exception {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {out.toUri().toURL()}, before)) {
            Thread.currentThread().setContextClassLoader(loader);
            return action.call();
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    private String index() throws IOException {
        return Files.readString(out.resolve(INDEX));
    }

    @Test
    void theIndexMakesARegistryWithoutScanning() throws Exception {
        assertThat(compile(withProcessor(), Source.of("Outer", CLOCK), Source.of("Greetings", GREETER)))
                .isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\np.Outer$Clock\n");
        List<String> published = inClassPathOfOut(() -> {
            RegistryServer registry = RegistryServer.registry();
            try (Server server = new Server(0, registry).start()) {
                assertThat(server.port()).isPositive();
            }
            return registry.published();
        });
        assertThat(published).containsExactly("greeter/hello", "clock/now");
    }

    @Test
    void aPartialBuildKeepsWhatIsStillThere() throws Exception {
        compile(withProcessor(), Source.of("Outer", CLOCK), Source.of("Greetings", GREETER));
        assertThat(compile(withProcessor(), Source.of("Greetings", GREETER))).isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\np.Outer$Clock\n");
        Files.delete(out.resolve("p/Outer$Clock.class"));
        Files.delete(out.resolve("p/Outer.class"));
        assertThat(compile(withProcessor(), Source.of("Greetings", GREETER))).isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\n");
    }

    @Test
    void aBuildWithoutTheCompiledClassesOnItsPathKeepsWhatIsStillThere() throws Exception {
        List<String> options = new ArrayList<>(withProcessor());
        options.add("-Arpcx.native=com.acme/shop");
        Path image = out.resolve("META-INF/native-image/com.acme/shop/reachability-metadata.json");
        String dollar =
                GREETER.replace("class Greetings", "class Greetings$Old").replace("greeter", "old");
        compile(
                options,
                Source.of("Outer", CLOCK),
                Source.of("Greetings", GREETER),
                Source.of("Greetings$Old", dollar));
        String before = "p.Greetings\np.Greetings$Old\np.Outer$Clock\n";
        assertThat(index()).isEqualTo(before);

        assertThat(compile("", options, Source.of("Util", "class Util {}"))).isEmpty();
        assertThat(index()).isEqualTo(before);
        assertThat(compile("", options, Source.of("Other", GREETER.replace("Greetings", "Other"))))
                .isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\np.Greetings$Old\np.Other\np.Outer$Clock\n");
        assertThat(Files.readString(image)).contains("p.Greetings$Old", "p.Outer$Clock");

        assertThat(compile("", options, Source.of("Outer", "class Outer {}"))).isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\np.Greetings$Old\np.Other\n");
        Files.delete(out.resolve("p/Greetings$Old.class"));
        assertThat(compile("", options, Source.of("Util", "class Util {}"))).isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\np.Other\n");
    }

    @Test
    void aNestedServiceThatItsClassHasNoMoreIsNotInTheIndex() throws Exception {
        compile(withProcessor(), Source.of("Outer", CLOCK), Source.of("Greetings", GREETER));
        assertThat(compile(withProcessor(), Source.of("Outer", "class Outer {}")))
                .isEmpty();
        assertThat(out.resolve("p/Outer$Clock.class")).exists();
        assertThat(index()).isEqualTo("p.Greetings\n");
    }

    @Test
    void aClassWithADollarSignStaysWhenAClassWithTheNameBeforeItIsCompiled() throws Exception {
        String dollar =
                GREETER.replace("class Greetings", "class Greetings$Old").replace("greeter", "old");
        compile(withProcessor(), Source.of("Greetings", GREETER), Source.of("Greetings$Old", dollar));
        assertThat(compile(withProcessor(), Source.of("Greetings", GREETER))).isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\np.Greetings$Old\n");
    }

    @Test
    void anIndexBecomesEmptyWithItsLastService() throws Exception {
        compile(withProcessor(), Source.of("Greetings", GREETER));
        assertThat(index()).isEqualTo("p.Greetings\n");
        assertThat(compile(withProcessor(), Source.of("Greetings", "class Greetings {}")))
                .isEmpty();
        assertThat(index()).isEmpty();
        assertThatThrownBy(() -> inClassPathOfOut(RegistryServer::registry))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("nothing to publish")
                .hasMessageContaining("name no class");
    }

    @Test
    void withoutServicesThereIsNoIndex() {
        assertThat(compile(withProcessor(), Source.of("Greetings", "class Greetings {}")))
                .isEmpty();
        assertThat(out.resolve(INDEX)).doesNotExist();
    }

    @Test
    void onlyClassesThatHaveTheAnnotationThemselvesAreInTheIndex() throws Exception {
        assertThat(compile(
                        withProcessor(),
                        Source.of("Greetings", GREETER),
                        Source.of("Louder", "class Louder extends Greetings {}"),
                        Source.of("Shelf", "abstract class Shelf extends Greetings {}"),
                        Source.of("Other", "@RPCXServer(\"other\") class Other extends Greetings {}")))
                .isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\np.Other\n");
        List<String> published =
                inClassPathOfOut(() -> RegistryServer.registry().published());
        assertThat(published).containsExactly("greeter/hello", "other/hello");
        assertThat(compile(withProcessor(), Source.of("Other", "class Other extends Greetings {}")))
                .isEmpty();
        assertThat(index()).isEqualTo("p.Greetings\n");
    }

    @Test
    void aNativeImageIsToldOfAllThatIsReachedByReflection() throws Exception {
        String types =
                "class Types { enum Colour { RED } sealed interface Shape permits Round, Corners {} record Round(double r) implements Shape {}"
                        + " sealed interface Corners extends Shape permits Square {} record Square(Colour colour) implements Corners {}"
                        + " static class Base { private int id; public int getId() { return id; } public void setId(int v) { id = v; } }"
                        + " static class Bean extends Base { private List<Shape> shapes; public List<Shape> getShapes() { return shapes; }"
                        + " public void setShapes(List<Shape> v) { shapes = v; } } record Page<T>(T of) {} }";
        String clients =
                "interface Common { Instant now(); } @RPCXClient(remoteServerName = \"x\") interface Calls extends Common"
                        + " { CompletionStage<Types.Page<Types.Bean>> page(Map<String, UUID> given); }";
        List<String> options = new ArrayList<>(withProcessor());
        options.add("-Arpcx.native=com.acme/shop");
        assertThat(compile(
                        options,
                        Source.of("Types", types),
                        Source.of("Calls", clients),
                        Source.of("Greetings", GREETER)))
                .isEmpty();
        Path file = out.resolve("META-INF/native-image/com.acme/shop/reachability-metadata.json");
        String all = ", \"allDeclaredConstructors\": true, \"allDeclaredMethods\": true, \"allDeclaredFields\": true}";
        List<String> expected = new ArrayList<>();
        for (String type : List.of(
                "Calls",
                "Common",
                "Greetings",
                "Types$Base",
                "Types$Bean",
                "Types$Colour",
                "Types$Corners",
                "Types$Page",
                "Types$Round",
                "Types$Shape",
                "Types$Square")) {
            expected.add("{\"type\": \"p." + type + '"' + all);
        }
        expected.add(1, "{\"type\": {\"proxy\": [\"p.Calls\"]}}");
        String before = Files.readString(file);
        assertThat(before)
                .isEqualTo("{\n  \"reflection\": [\n    " + String.join(",\n    ", expected)
                        + "\n  ],\n  \"resources\": [\n    {\"glob\": \"META-INF/rpcx/*\"}\n  ]\n}\n");

        // a partial build keeps the entries that still exist
        assertThat(compile(options, Source.of("Greetings", GREETER))).isEmpty();
        assertThat(file).hasContent(before);
        Files.delete(out.resolve("p/Types$Round.class"));
        assertThat(compile(options, Source.of("Greetings", GREETER))).isEmpty();
        assertThat(Files.readString(file)).doesNotContain("Round").contains("p.Types$Square", "proxy");
        for (String line : Files.readAllLines(file)) {
            if (line.contains("\"type\": \"")) {
                String name = line.replaceAll(".*\"type\": \"([^\"]+)\".*", "$1");
                inClassPathOfOut(
                        () -> Class.forName(name, false, Thread.currentThread().getContextClassLoader()));
            }
        }
    }

    @Test
    void anIndexBehindItsClassesIsSaidSo() throws Exception {
        compile(withProcessor(), Source.of("Greetings", GREETER));
        Files.delete(out.resolve("p/Greetings.class"));
        assertThatThrownBy(() -> inClassPathOfOut(RegistryServer::registry))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("p.Greetings")
                .hasMessageContaining("index");
    }

    static Stream<Arguments> faults() {
        return Stream.of(
                fault("record Bad(Object x) {}", "p.Client$Bad.x: java.lang.Object cannot be mapped"),
                fault("record Bad(Calendar x) {}", "p.Client$Bad.x: java.util.Calendar cannot be mapped"),
                fault(
                        "record Deep(Calendar x) {} record Bad(List<Map<String, Deep>> x) {}",
                        "p.Client$Deep.x: java.util.Calendar"),
                fault("record Bad(ArrayList<String> x) {}", "p.Client$Bad.x", "List, Set or Map"),
                fault("record Bad(int[] x) {}", "p.Client$Bad.x", "write it as a List"),
                fault("record Bad(Optional<Optional<String>> x) {}", "p.Client$Bad.x", "Optional inside"),
                fault("record Bad(List<Optional<String>> x) {}", "p.Client$Bad.x", "Optional inside"),
                fault("record Bad(List x) {}", "p.Client$Bad.x: List without its types"),
                fault("record Bad(CharSequence x) {}", "p.Client$Bad.x: java.lang.CharSequence"),
                fault("record Bad(Runnable x) {}", "p.Client$Bad.x: java.lang.Runnable"),
                fault("interface Open {} record Bad(Open x) {}", "p.Client$Bad.x", "abstract and not sealed"),
                fault(
                        "record Page<T>(List<T> of) {} record Bad(Page<Calendar> x) {}",
                        "p.Client$Page.of: java.util.Calendar"),
                fault("record Page<T>(List<T> of) {} record Bad(Page x) {}", "p.Client$Bad.x: Page without its types"),
                fault("static class NoWay { NoWay(int i) {} } record Bad(NoWay x) {}", "p.Client$NoWay", "constructor"),
                fault(
                        "static class Got { private boolean isOpen; public boolean isOpen() { return isOpen; } }"
                                + " record Bad(Got x) {}",
                        "p.Client$Got.isOpen: a public getter and no public setter"),
                fault(
                        "static class Boxed { private Long id; public long getId() { return id; }"
                                + " public void setId(long v) { id = v; } }"
                                + " record Bad(Boxed x) {}",
                        "p.Client$Boxed.id: getId() has another type than the field"),
                fault(
                        "static class Wither { private final long c = 0; public long c() { return c; }"
                                + " public Wither c(long v) { return this; } }"
                                + " record Bad(Wither x) {}",
                        "p.Client$Wither.c: a public setter of a final field"),
                fault("static class Empty { int i; } record Bad(Empty x) {}", "p.Client$Empty", "getter and a setter"),
                fault(
                        "static class Bean { private Calendar d; public Calendar getD() { return d; }"
                                + " public void setD(Calendar v) { d = v; } } record Bad(Bean x) {}",
                        "p.Client$Bean.d: java.util.Calendar"),
                fault(
                        "sealed interface Way permits Up, Down {} enum Up implements Way { A } record Down() implements Way {}"
                                + " record Bad(Way x) {}",
                        "p.Client$Way, case p.Client$Up"),
                fault(
                        "sealed interface Way permits Up, Down {} @Unknown record Up(int a) implements Way {}"
                                + " record Down() implements Way {} record Bad(Way x) {}",
                        "p.Client$Up: an unknown case must be a record without components"),
                fault(
                        "sealed interface Way permits Up, Down, Left {} @Unknown record Up() implements Way {}"
                                + " record Left() implements Way {}"
                                + " @Unknown record Down() implements Way {} record Bad(Way x) {}",
                        "p.Client$Way",
                        "p.Client$Up and p.Client$Down",
                        "@Unknown"),
                fault(
                        "enum Way { @Unknown UP, @Unknown DOWN, LEFT } record Bad(Way x) {}",
                        "p.Client$Way: UP and DOWN",
                        "@Unknown"),
                fault("record Bad(@Field(1) int a, int b) {}", "p.Client$Bad.b: no @Field"),
                fault("record Bad(@Field(1) int a, @Field(1) int b) {}", "p.Client$Bad.b: number 1 is taken by a"),
                fault("record Bad(@Field(19500) int a) {}", "19500"),
                fault("record Bad(@Field(0) int a) {}", "number 0"),
                fault("enum Way { @Field(1) UP, DOWN } record Bad(Way x) {}", "Way.DOWN: no @Field"),
                fault(
                        "enum Way { @Field(0) UP, @Field(1) DOWN, UNKNOWN } record Bad(Way x) {}",
                        "Way.UP: number 0 is taken by UNKNOWN"),
                fault("record Bad(Set<byte[]> x) {}", "p.Client$Bad.x: a byte[] equals no other"),
                fault("record Bad(Map<byte[], String> x) {}", "p.Client$Bad.x, key: a byte[] equals no other"),
                fault(
                        "sealed interface Way permits Up.Turn, Down.Turn {}"
                                + " static class Up { record Turn() implements Way {} }"
                                + " static class Down { record Turn() implements Way {} } record Bad(Way x) {}",
                        "p.Client$Way",
                        "p.Client$Up$Turn and p.Client$Down$Turn",
                        "turn"),
                fault(
                        "static class Bean { private int i; public int getI() { return i; }"
                                + " @Field(7) public void setI(int v) { i = v; } } record Bad(Bean x) {}",
                        "p.Client$Bean.setI(): @Field where it gives no number"),
                fault(
                        "static class Bean { @Field(1) private int i; @Field(2) public int getI() { return i; }"
                                + " public void setI(int v) { i = v; } } record Bad(Bean x) {}",
                        "p.Client$Bean.i: @Field where it gives no number"),
                fault(
                        "static class Base { private int i; @Field(7) public int getI() { return i; }"
                                + " public void setI(int v) { i = v; } }"
                                + " static class Bean extends Base { @Override public int getI() { return 1; } }"
                                + " record Bad(Bean x) {}",
                        "p.Client$Base.getI(): @Field where it gives no number"),
                fault(
                        "record Bad(int i) { @Field(7) public int i() { return i; } }",
                        "p.Client$Bad.i(): @Field where it gives no number"),
                fault(
                        "record Nest<T>(T value, Nest<List<T>> inner) {} record Bad(Nest<String> x) {}",
                        "p.Client$Nest.inner: type arguments nested more than 16 deep"));
    }

    private static Arguments fault(String types, String... words) {
        return Arguments.of(types, words);
    }

    /** The type is refused at build and at start. At build the error is at the line of the fault. */
    @ParameterizedTest
    @MethodSource("faults")
    void whatCannotBeMappedIsRefusedByNameAtBuildAndAtStart(String types, String... words) throws Exception {
        Source client = Source.of(
                "Client",
                "@SuppressWarnings(\"rawtypes\") @RPCXClient(remoteServerName = \"x\") interface Client {\n" + types
                        + "\nvoid call(Bad bad); Bad back(int i); CompletionStage<List<Bad>> later(); Flow.Publisher<Bad> stream(Flow.Publisher<Bad> in); }");
        List<Diagnostic<? extends JavaFileObject>> errors = compile(withProcessor(), client);
        assertThat(errors).hasSize(1);
        assertThat(errors.get(0).getMessage(null)).contains(words);
        assertThat(errors.get(0).getLineNumber()).isEqualTo(3);
        assertThat(out.resolve("p/Client.class")).doesNotExist();

        assertThat(compile(List.of("-proc:none"), client)).isEmpty();
        inClassPathOfOut(() -> {
            Class<?> type =
                    Class.forName("p.Client", true, Thread.currentThread().getContextClassLoader());
            try (Client calling = Client.standard()) {
                assertThatThrownBy(() -> calling.create(type, "127.0.0.1", 9)).isInstanceOf(SchemaException.class);
            }
            return null;
        });
    }

    static Stream<Arguments> faultyServices() {
        return Stream.of(
                fault("@RPCXServer(\"x\") class Bad {}", "p.Bad publishes nothing"),
                fault(
                        "@RPCXServer(\"x\") interface Bad { @Method void a(); }",
                        "p.Bad: @RPCXServer on what cannot be made, since it is an interface"),
                fault("@RPCXServer(\"\") class Bad { @Method void a() {} }", "published name \"\""),
                fault(
                        "@RPCXServer(\"x\") class Bad { @Method void a() {} @Method(\"a\") void b() {} }",
                        "p.Bad: a is published twice"),
                fault("@RPCXServer(\"x\") class Bad { @Method void a(Object b) {} }", "p.Bad.a(b): java.lang.Object"),
                fault(
                        "@RPCXServer(\"x\") class Bad { @Method void a() {} @Method static void b() {} }",
                        "p.Bad.b: @Method on a static method"),
                fault("@RPCXServer(\"x\") class Bad { @Method Object a() { return 1; } }", "result of p.Bad.a"),
                fault(
                        "@RPCXServer(\"x\") class Bad { @Method Future<String> a() { return null; } }",
                        "result of p.Bad.a: java.util.concurrent.Future<java.lang.String>",
                        "expected: CompletionStage, CompletableFuture or RPCXFuture"),
                fault(
                        "@RPCXServer(\"x\") class Bad { @Method FutureTask<Void> a() { return null; } }",
                        "result of p.Bad.a: java.util.concurrent.FutureTask<java.lang.Void>",
                        "expected: CompletionStage, CompletableFuture or RPCXFuture"),
                fault(
                        "@RPCXServer(\"x\") class Bad { @Method void a(Flow.Publisher<String> b, int c) {} }",
                        "p.Bad.a: a stream beside other parameters"),
                fault(
                        "@SuppressWarnings(\"rawtypes\") @RPCXServer(\"x\") class Bad { @Method void a(Flow.Publisher b) {} }",
                        "p.Bad.a(b): a stream without the type of its items"),
                fault(
                        "@RPCXServer(\"x\") class Bad { @Method void a(@Field(1) int b, int c) {} }",
                        "p.Bad.a.c: no @Field"),
                fault("@RPCXClient(remoteServerName = \"x\") class Bad {}", "p.Bad: @RPCXClient on a class"),
                fault(
                        "@RPCXClient(remoteServerName = \"x\") interface Bad { void a(int b); void a(long c); }",
                        "p.Bad: a is published twice"),
                fault(
                        "@RPCXClient(remoteServerName = \"x\") interface Bad { void a(List<String> b);"
                                + " @Method(\"a\") void c(List<Integer> d); }",
                        "p.Bad: a is published twice"),
                fault(
                        "@RPCXClient(remoteServerName = \"x\") interface Bad { @OneWay int a(); }",
                        "p.Bad.a: @OneWay with a result"));
    }

    @ParameterizedTest
    @MethodSource("faultyServices")
    void whatCannotBePublishedIsRefused(String source, String... words) {
        List<Diagnostic<? extends JavaFileObject>> errors = compile(withProcessor(), Source.of("Bad", source));
        assertThat(errors).hasSize(1);
        assertThat(errors.get(0).getMessage(null)).contains(words);
        assertThat(out.resolve(INDEX)).doesNotExist();
    }

    /** A class from the class path has no line, so the error is at the service that uses it. */
    @Test
    void aFaultOfTheClassPathStandsAtTheServiceThatMeetsIt() {
        List<Diagnostic<? extends JavaFileObject>> errors = compile(
                withProcessor(),
                Source.of("Bad", "@RPCXClient(remoteServerName = \"x\")\ninterface Bad {\nvoid a(Metadata given);\n}"));
        assertThat(errors).singleElement().satisfies(error -> {
            assertThat(error.getMessage(null)).contains("dev.rpcx.Metadata: a class needs a constructor");
            assertThat(error.getLineNumber()).isEqualTo(3);
        });
    }

    @Test
    void whatDoesNotCompileIsTheCompilersToSay() {
        assertThat(compile(
                        withProcessor(),
                        Source.of("Bad", "@RPCXClient(remoteServerName = \"x\") interface Bad { Gone a(Gone b); }")))
                .allSatisfy(error -> assertThat(error.getMessage(null)).contains("class Gone"));
    }

    @Test
    void oneMethodMayHaveSeveralFormsAtAClient() {
        assertThat(compile(
                        withProcessor(),
                        Source.of(
                                "Good",
                                "@RPCXClient(remoteServerName = \"x\") interface Good extends One, Other"
                                        + " { void a(int b); @Method(\"other\") void a(long b);"
                                        + " @Method(\"d\") CompletionStage<String> c(List<String> e);"
                                        + " @Method(\"d\") String d(List<String> e); }"
                                        + " interface One { String b(String c); void a(int b); }"
                                        + " interface Other { String b(String d); }")))
                .isEmpty();
    }

    @Test
    void aGetterThatASubclassNarrowsMayHaveTheNumber() throws Exception {
        Source client = Source.of(
                "Client",
                "@RPCXClient(remoteServerName = \"x\") interface Client { void call(Lower lower);"
                        + " class Upper<A> { private A a; public A getA() { return a; }"
                        + " public void setA(A v) { a = v; } }"
                        + " class Lower extends Upper<String> {"
                        + " @Override @Field(7) public String getA() { return \"\"; } } }");
        assertThat(compile(withProcessor(), client)).isEmpty();
        inClassPathOfOut(() -> {
            Class<?> type =
                    Class.forName("p.Client", true, Thread.currentThread().getContextClassLoader());
            try (Client calling = Client.standard()) {
                assertThat((Object) calling.create(type, "127.0.0.1", 9)).isNotNull();
            }
            return null;
        });
    }

    @Test
    void whatCanBeMappedIsAccepted() throws IOException {
        String rpcs = String.join(
                "",
                IntStream.range(0, 60)
                        .mapToObj(i -> "Types.R%d r%d(Types.R%d r);\n".formatted(i, i, i))
                        .toList());
        Path tests = Path.of("src/test/java/dev/rpcx");
        assertThat(compile(
                        withProcessor(),
                        new Source("random/Types", RandomTypes.source(11, 60).replace("private record", "record")),
                        new Source(
                                "random/All",
                                "package random; @dev.rpcx.RPCXClient(remoteServerName = \"all\") interface All {"
                                        + rpcs + "}"),
                        new Source("AllTypes", Files.readString(tests.resolve("codec/AllTypes.java"))),
                        Source.of(
                                "Calls",
                                "@RPCXClient(remoteServerName = \"x\") interface Calls extends dev.rpcx.codec.Everything"
                                        + " { RPCXFuture<Void> done(); default Object local() { return 1; } }"),
                        new Source(
                                "dev/rpcx/codec/Everything",
                                "package dev.rpcx.codec; public interface Everything extends AllTypes {}")))
                .isEmpty();
    }
}
