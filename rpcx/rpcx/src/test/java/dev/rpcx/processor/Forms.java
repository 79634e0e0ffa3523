package dev.rpcx.processor;

import static dev.rpcx.processor.Form.client;
import static dev.rpcx.processor.Form.message;
import static dev.rpcx.processor.Form.method;
import static dev.rpcx.processor.Form.server;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The table for {@link AgreementTest}. It has the forms of services, methods and messages that somebody may write. */
final class Forms {
    private static final String NOT_MAPPED = "cannot be mapped to Protobuf";
    private static final String STAGES = "(expected: CompletionStage, CompletableFuture or RPCXFuture)";
    private static final String DEEP = "type arguments nested more than 16 deep";
    private static final String LISTS = "declare it as List, Set or Map";
    private static final String OPTIONAL = "an Optional inside another container cannot be mapped";

    private Forms() {}

    static Stream<Form> all() {
        return Stream.of(
                        SIMPLE,
                        CONTAINERS,
                        GENERIC,
                        RESULTS,
                        STREAMS,
                        ONE_WAY,
                        MARKS,
                        RECORDS,
                        ENUMS,
                        CASES,
                        CLASSES,
                        CONSTRUCTED,
                        ODD,
                        FIELDS_OF_ONE_NAME,
                        NUMBERS,
                        CLIENTS,
                        SERVERS,
                        THROWN)
                .flatMap(List::stream);
    }

    private static String error(String content) {
        return "@RPCXError static class E extends Exception { " + content + " }";
    }

    private static final List<Form> THROWN = List.of(
            method(error(""), "void a() throws E"),
            method(error("E(String message) { super(message); }"), "void a() throws E, java.io.IOException"),
            method(
                    error("final int code; final boolean open; E(int code, boolean open) { this.code = code;"
                            + " this.open = open; } public int getCode() { return code; } public boolean isOpen() {"
                            + " return open; }"),
                    "void a() throws E"),
            method(
                    "record R(int i) {}\n" + error("E(List<R> all) {} public List<R> all() { return null; }"),
                    "void a() throws E"),
            method(
                    error("E(@Field(3) int a, @Field(1) int b) {} public int a() { return 0; } public int b() {"
                            + " return 0; }"),
                    "void a() throws E"),
            method("@RPCXError static class E extends RuntimeException {}", "int a() throws E"),
            method(
                    "@RPCXError abstract static class E extends Exception {}",
                    "void a() throws E",
                    "E: @RPCXError on an abstract class"),
            method(error("E() {} E(int x) {}"), "void a() throws E", "E: @RPCXError on a class with 2 constructors"),
            method(
                    error("E(int code) {}"),
                    "void a() throws E",
                    "no method returns what its constructor takes as code"),
            method(
                    error("E(int code) {} public long code() { return 0; }"),
                    "void a() throws E",
                    "no method returns what its constructor takes as code"),
            method(
                    error("E(int code) {} int code() { return 0; }"),
                    "void a() throws E",
                    "no method returns what its constructor takes as code"),
            method(
                    error("E(Throwable cause) { super(cause); }"),
                    "void a() throws E",
                    "E.cause",
                    "java.lang.Throwable " + NOT_MAPPED),
            method(
                    error("E(@Field(1) int a, int b) {} public int a() { return 0; } public int b() { return 0; }"),
                    "void a() throws E",
                    "E.b: no @Field"),
            method(
                    error("E(@Field(1) int a, @Field(1) int b) {} public int a() { return 0; } public int b() {"
                            + " return 0; }"),
                    "void a() throws E",
                    "E.b: number 1 is taken by a"),
            method(
                    error("") + " @RPCXError(\"E\") static class F extends Exception {}",
                    "void a() throws E, F",
                    "which are both E on the wire"),
            method(
                    "@RPCXError(\"" + "x".repeat(256) + "\") static class E extends Exception {}",
                    "void a() throws E",
                    "(expected: 1 to 255 bytes, no NUL)"),
            client(
                    "CLIENT Calls { class E extends Exception {} void a() throws E; }",
                    "E, which never comes from a server",
                    "@RPCXError"),
            client("CLIENT Calls { class E extends RuntimeException {} void a() throws E; }"),
            server("SERVER Service { static class E extends Exception {} @Method void a() throws E {} }"),
            server(
                    "SERVER Service { @RPCXError class E extends Exception {} @Method void a() throws E {} }",
                    "E: @RPCXError on an inner class"));

    private static String nested(int times, String inner) {
        return "List<".repeat(times) + inner + ">".repeat(times);
    }

    private static final List<Form> SIMPLE = List.of(
            method("", "void a()"),
            method("", "boolean a(byte b, short c, char d, int e, long f, float g, double h)"),
            method("", "Boolean a(Byte b, Short c, Character d, Integer e, Long f, Float g, Double h)"),
            method("", "String a(byte[] b, BigInteger c, BigDecimal d, UUID e)"),
            method("", "Instant a(Duration b, LocalDate c, LocalDateTime d)"),
            method("", "Date a(LocalTime b, OffsetDateTime c, ZonedDateTime d, java.net.URI e)"),
            method("", "Map<DayOfWeek, Month> a(Map<Date, java.net.URI> x, Set<OffsetDateTime> y)"),
            method("", "void a(java.net.URL x)", "java.net.URL " + NOT_MAPPED, "write it as a URI"),
            method("", "void a(OptionalLong x)", "java.util.OptionalLong", "write it as an Optional<Long>"),
            method("", "void a(java.sql.Timestamp x)", "java.sql.Timestamp", "write it as an Instant"),
            method("", "byte[] a(byte... b)"),
            method("", "Void a()"),
            method("", "void a(Void x)", "java.lang.Void " + NOT_MAPPED),
            method("", "void a(int x) throws java.io.IOException, Exception"),
            method("", "void a(Object x)", "java.lang.Object " + NOT_MAPPED),
            method("", "Object a()", "java.lang.Object " + NOT_MAPPED),
            method("", "void a(Calendar x)", "java.util.Calendar " + NOT_MAPPED),
            method("", "void a(Period x)", "java.time.Period " + NOT_MAPPED, "write it as a String"),
            method("", "void a(CharSequence x)", "java.lang.CharSequence " + NOT_MAPPED),
            method("", "void a(Number x)", "java.lang.Number " + NOT_MAPPED),
            method("", "void a(Class<String> x)", NOT_MAPPED),
            method("", "void a(Runnable x)", NOT_MAPPED),
            method("", "void a(Callable<String> x)", NOT_MAPPED),
            method("", "void a(Throwable x)", NOT_MAPPED),
            method("", "void a(Enum<?> x)", NOT_MAPPED),
            method("", "void a(Record x)", NOT_MAPPED),
            method("", "void a(Override x)", NOT_MAPPED),
            method("", "void a(Metadata x)", "dev.rpcx.Metadata"),
            method("", "void a(CallContext x)", "dev.rpcx.CallContext"),
            method("", "void a(String x, Interceptor.Invocation y)", "dev.rpcx.Interceptor"),
            method("", "Interceptor a()", "dev.rpcx.Interceptor " + NOT_MAPPED),
            method("", "void a(int[] x)", "write it as a List"),
            method("", "void a(String... x)", "write it as a List"),
            method("", "void a(byte[][] x)", "write it as a List"),
            method("", "void a(List<String>[] x)", NOT_MAPPED, "write it as a List"),
            method("", "<T> void a(T[] x)", NOT_MAPPED, "write it as a List"),
            method("", "void a(List<int[]> x)", "write it as a List"),
            method("", "void a(Optional<int[]> x)", "write it as a List"),
            method("", "void a(List<byte[]> x)"),
            method("", "String[] a()", "write it as a List"));

    private static final List<Form> CONTAINERS = List.of(
            method("", "void a(List<String> x)"),
            method("", "Collection<Integer> a(Set<UUID> x, Map<String, byte[]> y)"),
            method("", "List<List<Set<String>>> a(Map<Integer, Map<String, List<Long>>> x)"),
            method("", "void a(List<? extends String> x)"),
            method("", "void a(List<? super String> x)", NOT_MAPPED),
            method("", "void a(List<?> x)", "java.lang.Object " + NOT_MAPPED),
            method("", "void a(List x)", "List without its types"),
            method("", "void a(Map x)", "Map without its types"),
            method("", "void a(List<Set> x)", "Set without its types"),
            method("", "Optional a()", "Optional without its types"),
            method("", "void a(Optional<String> x)"),
            method("", "Optional<Integer> a(Optional<List<String>> x)"),
            method("", "void a(Optional<Map<String, String>> x, Optional<byte[]> y)"),
            method("", "void a(Optional<?> x)", "java.lang.Object " + NOT_MAPPED),
            method("", "void a(Optional<? extends Long> x)"),
            method("", "void a(Optional<Optional<String>> x)", OPTIONAL),
            method("", "void a(List<Optional<String>> x)", OPTIONAL),
            method("", "void a(Map<Optional<String>, String> x)", OPTIONAL),
            method("", "void a(Map<String, Optional<String>> x)", OPTIONAL),
            method("", "void a(Optional<List<Optional<String>>> x)", OPTIONAL),
            method("", "void a(OptionalInt x)", "java.util.OptionalInt " + NOT_MAPPED),
            method("", "void a(ArrayList<String> x)", LISTS),
            method("", "TreeMap<String, String> a()", LISTS),
            method("", "void a(SortedSet<String> x)", LISTS),
            method("", "void a(Queue<String> x)", LISTS),
            method("", "void a(Iterable<String> x)", NOT_MAPPED),
            method("", "void a(Iterator<String> x)", NOT_MAPPED),
            method("", "void a(java.util.stream.Stream<String> x)", NOT_MAPPED),
            method("static class Names extends ArrayList<String> {}", "void a(Names x)", LISTS),
            method("interface Names extends List<String> {}", "void a(Names x)", LISTS),
            method("", "void a(Map.Entry<String, String> x)", NOT_MAPPED, "write it as a record of a key and a value"),
            method("enum E { A }", "void a(Map<E, String> x, Map<Double, String> y, Map<Boolean, E> z)"),
            method("record R(int i) {}", "void a(Map<R, R> x, Set<R> y)"),
            method("", "void a(Map<List<String>, Set<Set<Integer>>> x)"),
            method("", "void a(Map<Instant, BigDecimal> x, Map<BigInteger, UUID> y, Set<LocalDate> z)"),
            method("", "void a(Map<byte[], String> x)", "a byte[] equals no other"),
            method("", "void a(Set<byte[]> x)", "a byte[] equals no other"),
            method("", "void a(Set<? extends byte[]> x)", "a byte[] equals no other"),
            method("", "void a(List<Set<byte[]>> x)", "a byte[] equals no other"),
            method("", "void a(Map<int[], String> x)", "write it as a List"),
            method("", "void a(Map<Object, String> x)", "java.lang.Object " + NOT_MAPPED),
            method("", "void a(Map<String, ?> x)", "java.lang.Object " + NOT_MAPPED),
            method("", "void a(List<Void> x)", "java.lang.Void " + NOT_MAPPED),
            method("", "Optional<Void> a()", "java.lang.Void " + NOT_MAPPED),
            method("", "void a(" + nested(15, "String") + " x)"),
            method("", "void a(" + nested(16, "String") + " x)", DEEP),
            method("", "void a(" + nested(30, "String") + " x)", DEEP),
            method("", nested(16, "String") + " a()", DEEP),
            method("", "void a(Optional<" + nested(15, "String") + "> x)", DEEP),
            method("", "CompletionStage<" + nested(14, "String") + "> a()"),
            method("", "CompletionStage<" + nested(15, "String") + "> a()", DEEP),
            method("", "Flow.Publisher<" + nested(15, "String") + "> a()", DEEP),
            method("", "void a(Flow.Publisher<" + nested(15, "String") + "> x)"),
            method("", "void a(Flow.Publisher<" + nested(16, "String") + "> x)", DEEP),
            message("record Sent(" + nested(15, "Sent") + " x) {}"),
            message("record Sent(" + nested(16, "Sent") + " x) {}", DEEP));

    private static final List<Form> GENERIC = List.of(
            message("record Sent(Page<String> x, Page<Page<Integer>> y) {} record Page<T>(List<T> of) {}"),
            message("record Sent(Page<? extends String> x) {} record Page<T>(List<T> of) {}"),
            message("record Sent(Page<?> x) {} record Page<T>(List<T> of) {}", "java.lang.Object " + NOT_MAPPED),
            message("record Sent(Page<? super String> x) {} record Page<T>(List<T> of) {}", NOT_MAPPED),
            message("record Sent(Page x) {} record Page<T>(List<T> of) {}", "Page without its types"),
            message(
                    "record Sent(Page<Calendar> x) {} record Page<T>(List<T> of) {}",
                    "java.util.Calendar " + NOT_MAPPED),
            message("record Sent(Page<Set<byte[]>> x) {} record Page<T>(T of) {}", "a byte[] equals no other"),
            message("record Sent(Page<byte[]> x) {} record Page<T>(Set<T> of) {}", "a byte[] equals no other"),
            message("record Sent(Page<byte[]> x) {} record Page<T>(Set<? extends T> of) {}", "a byte[] equals no"),
            message("record Sent(Page<Optional<String>> x) {} record Page<T>(T of) {}"),
            message("record Sent(Page<Optional<String>> x) {} record Page<T>(List<T> of) {}", OPTIONAL),
            message("record Sent(Page<String> x) {} record Page<T extends Comparable<T>>(T of) {}"),
            message("record Sent(Page<String> x) {} record Page<T>(T[] of) {}", "write it as a List"),
            message("record Sent(Page<byte[]> x) {} record Page<T>(T of) {}"),
            message("record Sent(Page<int[]> x) {} record Page<T>(T of) {}", "write it as a List"),
            message("record Sent(Tag<Date> x) {} record Tag<T>(String name) {}"),
            message("record Sent(Tag<?> x) {} record Tag<T>(String name) {}"),
            message("record Sent(Tag<List> x) {} record Tag<T>(String name) {}", "List without its types"),
            message("record Sent(Tag<? super String> x) {} record Tag<T>(String name) {}", NOT_MAPPED),
            message("record Sent(Tag<List<String>[]> x) {} record Tag<T>(String name) {}", "write it as a List"),
            message("record Sent(Tag<int[]> x) {} record Tag<T>(String name) {}"),
            message("record Sent(Tag<" + nested(14, "String") + "> x) {} record Tag<T>(String name) {}"),
            message("record Sent(Tag<" + nested(15, "String") + "> x) {} record Tag<T>(String name) {}", DEEP),
            message("record Sent(Pair<String, Pair<Integer, Sent>> x) {} record Pair<A, B>(A a, B b) {}"),
            message("record Sent(Nest<String> x) {} record Nest<T>(T value, Nest<List<T>> inner) {}", DEEP),
            message("record Sent(Nest<String> x) {} record Nest<T>(T value, Nest<T> inner) {}"),
            message("record Sent(Twist<String, Integer> x) {} record Twist<A, B>(A a, Twist<B, A> inner) {}"),
            method("record Page<T>(List<T> of) {}", "<T> Page<T> a(int x)", "what T stands for is not known here"),
            method("", "<T> void a(T x)", "what T stands for is not known here"),
            method("record R() {}", "<T extends R> void a(T x, List<T> y)", "what T stands for is not known here"),
            method("", "<T> List<T> a()", "what T stands for is not known here"),
            method("", "<T> CompletionStage<T> a()", "what T stands for is not known here"),
            method("", "<T> Flow.Publisher<T> a()", "what T stands for is not known here"),
            method("", "<T> void a(Flow.Publisher<T> x)", "what T stands for is not known here"),
            method("", "<T extends Flow.Publisher<String>> void a(T x)", "what T stands for is not known here"),
            method("", "<T extends Flow.Publisher<String>> void a(T x, int y)", "what T stands for is not known here"),
            method("", "<T extends Flow.Publisher<String>> T a()", "what T stands for is not known here"),
            method("", "<T extends CompletionStage<String>> T a()", "what T stands for is not known here"),
            method("", "<T> void a(int x)"),
            method("", "<T extends Exception> void a(int x) throws T"));

    private static final List<Form> RESULTS = List.of(
            method("", "CompletionStage<String> a()"),
            method("", "CompletableFuture<Void> a(int x)"),
            method("", "RPCXFuture<List<Integer>> a(int x)"),
            method("", "CompletionStage<Optional<String>> a(int x)"),
            method("", "CompletionStage<? extends String> a()"),
            method("", "CompletionStage<?> a()", "java.lang.Object " + NOT_MAPPED),
            method("", "CompletionStage<? super String> a()", NOT_MAPPED),
            method("", "CompletionStage a()", "CompletionStage without its types"),
            method("", "CompletableFuture<CompletableFuture> a()", "CompletableFuture without its types"),
            method(
                    "",
                    "CompletionStage<CompletionStage<String>> a()",
                    "CompletionStage<java.lang.String> " + NOT_MAPPED),
            method("", "CompletionStage<RPCXFuture<String>> a()", "dev.rpcx.RPCXFuture"),
            method("", "CompletionStage<Flow.Publisher<String>> a()", NOT_MAPPED),
            method("", "CompletionStage<Optional<Void>> a()", "java.lang.Void " + NOT_MAPPED),
            method("", "CompletionStage<Object> a()", "java.lang.Object " + NOT_MAPPED),
            method("", "CompletionStage<int[]> a()", "write it as a List"),
            method("", "Optional<CompletionStage<String>> a()", NOT_MAPPED),
            method("", "List<CompletableFuture<String>> a()", NOT_MAPPED),
            method("", "void a(CompletionStage<String> x)", NOT_MAPPED),
            method("", "void a(int x, CompletableFuture<String> y)", NOT_MAPPED),
            method("", "Future<String> a()", "a future without a callback at its end", STAGES),
            method("", "Future a()", "Future without its types"),
            method("", "FutureTask<Void> a()", "a future without a callback at its end", STAGES),
            method("", "ForkJoinTask<String> a()", "a future without a callback at its end", STAGES),
            method("interface Later extends Future<String> {}", "Later a()", "a future without a callback at its end"),
            method("static class Own<T> extends CompletableFuture<T> {}", "Own<String> a()", "Own", STAGES),
            method("static class Own extends CompletableFuture<String> {}", "Own a()", "Own", STAGES),
            method("static class Own<A, B> extends CompletableFuture<B> {}", "Own<Integer, String> a()", "Own", STAGES),
            method("static class Own<A> extends CompletableFuture<List<A>> {}", "Own<String> a()", "Own", STAGES),
            method("interface Own<T> extends CompletionStage<T> {}", "Own<String> a()", "Own", STAGES),
            method("interface Own extends CompletionStage<String> {}", "Own a()", "Own", STAGES),
            method("interface Own<T> extends CompletionStage<T> {}", "Own a()", "Own without its types"),
            method("interface Own<T> extends CompletionStage<T> {}", "void a(Own<String> x)", NOT_MAPPED));

    private static final List<Form> STREAMS = List.of(
            method("", "Flow.Publisher<String> a()"),
            method("", "Flow.Publisher<Integer> a(String x, int y)"),
            method("", "void a(Flow.Publisher<byte[]> x)"),
            method("", "Flow.Publisher<Long> a(Flow.Publisher<List<String>> x)"),
            method("", "CompletionStage<Void> a(Flow.Publisher<Optional<String>> x)"),
            method("", "Flow.Publisher<Optional<String>> a()"),
            method("record R(int i) {}", "Flow.Publisher<? extends R> a(Flow.Publisher<? extends R> x)"),
            method("", "void a(Flow.Publisher<Void> x)", "java.lang.Void " + NOT_MAPPED),
            method("", "Flow.Publisher<Void> a()", "java.lang.Void " + NOT_MAPPED),
            method("", "Flow.Publisher<? extends Void> a()", "java.lang.Void " + NOT_MAPPED),
            method("", "void a(Flow.Publisher<?> x)", "java.lang.Object " + NOT_MAPPED),
            method("", "Flow.Publisher<?> a()", "java.lang.Object " + NOT_MAPPED),
            method("", "void a(Flow.Publisher<? super String> x)", NOT_MAPPED),
            method("", "void a(Flow.Publisher x)", "a stream without the type of its items"),
            method("", "Flow.Publisher a()", "Publisher without its types"),
            method("", "void a(Flow.Publisher<List> x)", "List without its types"),
            method("", "void a(Flow.Publisher<Calendar> x)", "java.util.Calendar " + NOT_MAPPED),
            method("", "void a(Flow.Publisher<Flow.Publisher<String>> x)", NOT_MAPPED),
            method("", "void a(Flow.Publisher<CompletionStage<String>> x)", NOT_MAPPED),
            method("", "Flow.Publisher<Flow.Publisher<String>> a()", NOT_MAPPED),
            method("", "void a(Flow.Publisher<String> x, int y)", "a stream beside other parameters"),
            method("", "void a(int x, Flow.Publisher<String> y)", "a stream beside other parameters"),
            method(
                    "",
                    "void a(Flow.Publisher<String> x, Flow.Publisher<String> y)",
                    "a stream beside other parameters"),
            method("", "void a(Flow.Publisher x, int y)", "a stream"),
            method("", "void a(Optional<Flow.Publisher<String>> x)", NOT_MAPPED),
            method("", "void a(Flow.Publisher<String>... x)", NOT_MAPPED, "write it as a List"),
            method("", "void a(SubmissionPublisher<String> x)", NOT_MAPPED),
            method("", "SubmissionPublisher<String> a()", NOT_MAPPED),
            method("", "Flow.Subscriber<String> a()", NOT_MAPPED),
            method("", "void a(Flow.Processor<String, String> x)", NOT_MAPPED),
            method("interface Feed extends Flow.Publisher<String> {}", "Feed a()", "abstract and not sealed"),
            method(
                    "interface Feed extends Flow.Publisher<String> {}",
                    "void a(Feed x, int y)",
                    "abstract and not sealed"),
            message("record Sent(Flow.Publisher<String> x) {}", NOT_MAPPED),
            message("record Sent(CompletionStage<String> x) {}", NOT_MAPPED));

    private static final List<Form> ONE_WAY = List.of(
            method("", "@OneWay void a(String x)"),
            method("", "@OneWay void a(Flow.Publisher<String> x)", "a stream of a one-way method"),
            method("", "@OneWay Flow.Publisher<String> a()", "a stream of a one-way method"),
            method("", "@OneWay void a(Object x)", "java.lang.Object " + NOT_MAPPED),
            client("CLIENT Calls { @OneWay int a(); }", "@OneWay with a result (expected: void)"),
            client("CLIENT Calls { @OneWay Void a(); }", "@OneWay with a result (expected: void)"),
            client("CLIENT Calls { @OneWay CompletionStage<Void> a(); }", "@OneWay with a result (expected: void)"),
            server("SERVER Service { @Method @OneWay int a() { return 1; } }"));

    private static final List<Form> MARKS = List.of(
            client("CLIENT Calls { @Method(timeoutMillis = 1000, idempotent = true, hedgeMillis = 10) int a(); }"),
            client("CLIENT Calls { @Method(timeoutMillis = -1) int a(); }", "timeoutMillis -1 (expected: 0 or more)"),
            client("CLIENT Calls { @Method(timeoutMillis = 3600000) int a(); }"),
            client("CLIENT Calls { @Method(timeoutMillis = 3600001) int a(); }", "timeoutMillis", "1 µs to 1 h"),
            client("CLIENT Calls { @Method(hedgeMillis = -1) int a(); }", "hedgeMillis -1 (expected: 0 or more)"),
            client("CLIENT Calls { @Method(hedgeMillis = 10) int a(); }", "hedgeMillis 10", "idempotent"),
            client("CLIENT Calls { @OneWay @Method(idempotent = true, hedgeMillis = 10) void a(); }", "hedgeMillis 10"),
            client(
                    "CLIENT Calls { @Method(idempotent = true, hedgeMillis = 10) Flow.Publisher<String> a(); }",
                    "hedgeMillis 10",
                    "without streams"),
            client(
                    "CLIENT Calls { @Method(idempotent = true, hedgeMillis = 10) int a(Flow.Publisher<String> x); }",
                    "hedgeMillis 10",
                    "without streams"),
            client(
                    "CLIENT Calls { @Method(timeoutMillis = 10, idempotent = true, hedgeMillis = 10) int a(); }",
                    "hedgeMillis 10 (expected: less than the call's time"),
            server(
                    "SERVER Service { @Method(timeoutMillis = -1) int a() { return 1; } }",
                    "timeoutMillis -1 (expected: 0 or more)"),
            server("SERVER Service { @Method(hedgeMillis = -5) int a() { return 1; } }", "hedgeMillis -5"),
            server("SERVER Service { @Method(timeoutMillis = 9999999, hedgeMillis = 10) int a() { return 1; } }"),
            client("CLIENT Calls { void a(@RouteBy String x, int y); void b(@RouteBy List<String> x); }"),
            client("CLIENT Calls { void a(@RouteBy String x, @RouteBy int y); }", "@RouteBy twice (expected: once)"),
            client("CLIENT Calls { void a(@RouteBy Set<String> x); }", "@RouteBy on a type with a Set"),
            client("CLIENT Calls { void a(@RouteBy Collection<String> x); }", "@RouteBy on a type with a Set"),
            client("CLIENT Calls { void a(@RouteBy Optional<List<Set<String>>> x); }", "@RouteBy on a type with a Set"),
            client(
                    "CLIENT Calls { record R(R r, S s) {} record S(List<Map<String, R>> m) {} void a(@RouteBy R x); }",
                    "@RouteBy on"),
            client("CLIENT Calls { record R(R r, int i) {} void a(@RouteBy R x); }"),
            client(
                    "CLIENT Calls { sealed interface R {} record S(Set<String> x) implements R {} void a(@RouteBy R"
                            + " x); }",
                    "@RouteBy on"),
            client(
                    "CLIENT Calls { void a(@RouteBy Flow.Publisher<String> x); }",
                    "Publisher<java.lang.String> " + NOT_MAPPED),
            client("CLIENT Calls { @Method(\"\") void a(); @Method(\"b\") void c(); }"),
            client("CLIENT Calls { @Method(\"\\0\") void a(); }", "(expected: 1 to 255 bytes, no NUL)"),
            client(
                    "CLIENT Calls { @Method(\"" + "é".repeat(128) + "\") void a(); }",
                    "(expected: 1 to 255 bytes, no NUL)"),
            client("CLIENT Calls { void " + "a".repeat(256) + "(); }", "(expected: 1 to 255 bytes, no NUL)"),
            client(
                    "@RPCXClient(remoteServerName = \"\") interface Calls { void a(); }",
                    "(expected: 1 to 255 bytes, no NUL)"),
            client("@RPCXClient(remoteServerName = \"\") interface Calls {}", "(expected: 1 to 255 bytes, no NUL)"),
            server("@RPCXServer(\"\") class Service { @Method void a() {} }", "(expected: 1 to 255 bytes, no NUL)"),
            server("SERVER Service { @Method(\"\\0\") void a() {} }", "(expected: 1 to 255 bytes, no NUL)"));

    private static final List<Form> RECORDS = List.of(
            message("record Sent() {}"),
            message("record Sent(int a, String b, Sent c, List<Sent> d, Map<String, Sent> e, Optional<Sent> f) {}"),
            message("record Sent(Other o) {} record Other(Sent s) {}"),
            message("record Sent(Other o) {} record Other(Sent s, Calendar d) {}", "Other.d: java.util.Calendar"),
            message("record Sent(Object x) {}", "Sent.x: java.lang.Object"),
            message("record Sent(int... x) {}", "Sent.x", "write it as a List"),
            message("record Sent(byte... x) {}"),
            message("record Sent(Void x) {}", "java.lang.Void " + NOT_MAPPED),
            message("record Sent(int x) { public Sent { if (x < 0) throw new IllegalArgumentException(); } }"),
            message("record Sent(int x) { static Date y; Sent(String s) { this(1); } public Date z() { return y; } }"),
            message(
                    "record Sent(Outer.Inner x) {} static class Outer { class Inner { private int i; public int i()"
                            + " { return i; }"
                            + " public void i(int v) { i = v; } } }",
                    "Outer$Inner: a class needs a constructor"),
            message(
                    "record Sent(Outer<String>.Inner x) {} static class Outer<T> { class Inner { private int i;"
                            + " public int i() { return i; } public void i(int v) { i = v; } } }",
                    "Outer$Inner: a class needs a constructor"),
            message("record Sent(Outer.Inner x) {} static class Outer { record Inner(int i) {} }"),
            message("record Sent(Sent[] x) {}", "write it as a List"),
            message("record Sent(Map<Sent, Sent> x, Set<Set<Sent>> y) {}"),
            message("record Sent(Optional<Sent> x, Optional<Map<Sent, List<Sent>>> y) {}"),
            message(
                    "record Sent(A a) {} record A(B b) {} record B(C c) {} record C(A a, Sent s, Object x) {}",
                    "C.x: java.lang.Object"),
            message("record Sent(Runnable r) {}", "Sent.r: java.lang.Runnable"),
            message("interface Sent { int a(); }", "abstract and not sealed"),
            message("static abstract class Sent { int a; }", "abstract and not sealed"),
            message("@interface Sent {}", "abstract and not sealed"));

    private static final List<Form> ENUMS = List.of(
            message("enum Sent { A, B }"),
            message("enum Sent { A { int x() { return 1; } }; int x() { return 0; } }"),
            message("enum Sent {}"),
            message("record Sent(E x, Set<E> y, Optional<E> z, List<Optional<E>> w) {} enum E { A }", OPTIONAL),
            message("record Sent(E x) {} interface Named {} enum E implements Named { A; private Object o; public"
                    + " Object getO() { return o; } }"),
            message(
                    "record Sent(Named x) {} interface Named {} enum E implements Named { A }",
                    "abstract and not sealed"),
            message("enum Sent { UNKNOWN, A } "),
            message("enum Sent { @Unknown A, B, UNKNOWN } "),
            message("enum Sent { UNKNOWN, UNSPECIFIED, UNRECOGNIZED } "),
            message("enum Sent { @Unknown A, @Unknown B }", "A and B are both annotated @Unknown"),
            message("enum Sent { @Field(1) A, B }", "Sent.B: no @Field"),
            message("enum Sent { @Field(0) A, @Field(1) B }"),
            message("enum Sent { @Field(1) A, @Field(1) B }", "Sent.B: number 1 is taken by A"),
            message("enum Sent { @Field(-1) A, @Field(1) B }", "number -1 (expected: 0 or more)"),
            message("enum Sent { @Field(19500) A, @Field(2147483647) B }"),
            message("enum Sent { @Field(0) A, UNKNOWN }", "Sent.A: number 0 is taken by UNKNOWN"),
            message("enum Sent { A, @Field(7) UNKNOWN }", "UNKNOWN stands for the unknown"),
            message("enum Sent { A, @Field(0) UNKNOWN }"),
            message("enum Sent { @Field(1) A, @Field(7) @Unknown B, @Field(7) C }", "B stands for the unknown"));

    private static final List<Form> CASES = List.of(
            message("sealed interface Sent {} record A() implements Sent {} record B(int i) implements Sent {}"),
            message("sealed interface Sent {} record A(List<Sent> x) implements Sent {}"),
            message("sealed interface Sent {} sealed interface Mid extends Sent {} record A() implements Mid, Sent {}"),
            message("static abstract sealed class Sent {} static final class A extends Sent { private int i;"
                    + " public int i() { return i; } public void i(int v) { i = v; } }"),
            message("static sealed class Sent { private int i; public int i() { return i; } public void i(int v) {"
                    + " i = v; } }"
                    + " static final class A extends Sent {}"),
            message(
                    "sealed interface Sent {} enum A implements Sent { X }",
                    "expected a record or a class with accessors"),
            message(
                    "sealed interface Sent {} record A<T>(int i) implements Sent {}",
                    "a generic case cannot be mapped"),
            message("sealed interface Sent {} record A(Calendar i) implements Sent {}", "A.i: java.util.Calendar"),
            message("sealed interface Sent {} non-sealed interface A extends Sent {}", "abstract and not sealed"),
            message(
                    "sealed interface Sent {} static non-sealed abstract class A implements Sent {}",
                    "abstract and not sealed"),
            message(
                    "sealed interface Sent {} static final class A extends ArrayList<String> implements Sent {}",
                    LISTS),
            message("sealed interface Sent {} static final class A implements Sent {}", "without any property"),
            message("sealed interface Sent {} @Unknown record A() implements Sent {} record B() implements Sent {}"),
            message("sealed interface Sent {} @Unknown record A() implements Sent {}"),
            message(
                    "sealed interface Sent {} @Unknown @Field(1) record A() implements Sent {}",
                    "A stands for the unknown"),
            message(
                    "sealed interface Sent {} @Unknown record A(int i) implements Sent {} record B() implements"
                            + " Sent {}",
                    "an unknown case must be a record without components"),
            message(
                    "sealed interface Sent {} @Unknown static final class A implements Sent {} record B()"
                            + " implements Sent {}",
                    "an unknown case must be a record without components"),
            message(
                    "sealed interface Sent {} @Unknown enum A implements Sent { X } record B() implements Sent {}",
                    "an unknown case must be a record without components"),
            message("sealed interface Sent {} @Unknown record A<T>() implements Sent {} record B() implements Sent {}"),
            message(
                    "sealed interface Sent {} @Unknown record A() implements Sent {} @Unknown record B() implements"
                            + " Sent {}",
                    "are both annotated @Unknown"),
            message(
                    "sealed interface Sent {} @Field(1) record A() implements Sent {} record B() implements Sent {}",
                    "no @Field"),
            message(
                    "sealed interface Sent {} @Field(1) record A() implements Sent {} @Field(1) record B()"
                            + " implements Sent {}",
                    "number 1 is taken by"),
            message("sealed interface Sent {} @Field(1) record A() implements Sent {} @Unknown record B()"
                    + " implements Sent {}"),
            message(
                    "sealed interface Sent {} record A() implements Sent {} @Field(2) @Unknown record B()"
                            + " implements Sent {}",
                    "B stands for the unknown"),
            message(
                    "sealed interface Sent {} @Field(2) record A() implements Sent {} @Field(2) @Unknown record B()"
                            + " implements Sent {}",
                    "B stands for the unknown"),
            message("sealed interface Sent {} @Field(0) record A() implements Sent {}", "number 0"),
            message("record Sent(Way<String> x) {} sealed interface Way<T> {} record A(String s) implements"
                    + " Way<String> {}"),
            message(
                    "record Sent(Way x) {} sealed interface Way<T> {} record A(String s) implements Way<String> {}",
                    "Way without its types"),
            method("sealed interface Way {} record A(int i) implements Way {}", "A a(Set<Way> x, Map<Way, A> y)"));

    private static final String NAME = "private String name; public String getName() { return name; }"
            + " public void setName(String v) { name = v; } ";

    private static final List<Form> CLASSES = List.of(
            message("static class Sent { " + NAME + "}"),
            message("static class Sent { private Sent() {} " + NAME + "}"),
            message("static class Sent { Sent(int i) {} " + NAME + "}", "Sent: a class needs a constructor"),
            message("static class Sent { Sent(int... i) {} " + NAME + "}", "Sent: a class needs a constructor"),
            message("static class Sent {}", "without any property that has a getter and a setter"),
            message(
                    "static class Sent { int i; public int j; }",
                    "without any property that has a getter and a setter"),
            message("static class Sent extends Base {} static class Base { " + NAME + "}"),
            message("static class Sent extends Base {} static abstract class Base { " + NAME + "}"),
            message("static class Sent extends Base<Integer> { " + NAME
                    + "} static class Base<T> { private List<T> all;"
                    + " public List<T> getAll() { return all; } public void setAll(List<T> v) { all = v; } }"),
            message(
                    "static class Sent extends Base<Calendar> { " + NAME
                            + "} static class Base<T> { private List<T> all; public List<T> getAll() { return all; }"
                            + " public void setAll(List<T> v) { all = v; } }",
                    "java.util.Calendar"),
            message(
                    "static class Sent extends Base { " + NAME + "} static class Base<T> { private T one;"
                            + " public T getOne() { return one; } public void setOne(T v) { one = v; } }",
                    "what T stands for"),
            message("static class Sent extends Base<String> { @Override public String getOne() { return \"\"; } }"
                    + " static class Base<T> { private T one; public T getOne() { return one; } public void"
                    + " setOne(T v) { one = v; } }"),
            message("static class Sent extends Base<String> { @Override public void setOne(String v) {} }"
                    + " static class Base<T> { private T one; public T getOne() { return one; } public void"
                    + " setOne(T v) { one = v; } }"),
            message("static class Sent extends Base<String> { @Override public void setOne(String v) {}"
                    + " @Override public String getOne() { return \"\"; } }"
                    + " static class Base<T> { private T one; public T getOne() { return one; } public void"
                    + " setOne(T v) { one = v; } }"),
            message("static class Sent extends Base { public String getName() { return name; } public void"
                    + " setName(String v) { name = v; } }"
                    + " static class Base { protected String name; }"),
            message(
                    "static class Sent extends Base { public String getName() { return name; } }"
                            + " static class Base { protected String name; }",
                    "name: a public getter and no public setter"),
            message("static class Sent { private boolean isOpen; public boolean isOpen() { return isOpen; }"
                    + " public void setOpen(boolean v) { isOpen = v; } }"),
            message(
                    "static class Sent { private Boolean open; public Boolean isOpen() { return open; }"
                            + " public void setOpen(Boolean v) { open = v; } }",
                    "open: a public setter and no public getter"),
            message(
                    "static class Sent { " + NAME + " private int i; public int getI() { return i; } }",
                    "i: a public getter and no public"),
            message(
                    "static class Sent { " + NAME + " private int i; public void setI(int v) {} }",
                    "i: a public setter and no public"),
            message("static class Sent { " + NAME + " private int i; int getI() { return i; } void setI(int v) {} }"),
            message("static class Sent { " + NAME
                    + " private int i; public static int getI() { return 1; } public static void setI(int v) {} }"),
            message(
                    "static class Sent { " + NAME + " private final int i = 1; public int getI() { return i; } }",
                    "i: a public getter and no public setter"),
            message(
                    "static class Sent { " + NAME + " private final int i = 1; public int getI() { return i; } public"
                            + " void setI(int v) {} }",
                    "i: a public setter of a final field"),
            message(
                    "static class Sent { " + NAME + " private final int i = 1; public void setI(int v) {} }",
                    "i: a public setter of a final field"),
            message("static class Sent { " + NAME + " private final int i = 1; public void i(int v) {} }"),
            message("static class Sent { " + NAME + " private final int i = 1; }"),
            message("static class Sent { " + NAME
                    + " private transient Date d; public Date getD() { return d; } public void setD(Date v) {} }"),
            message("static class Sent { " + NAME
                    + " private static Date d; public Date getD() { return d; } public void setD(Date v) {} }"),
            message(
                    "static class Sent { " + NAME
                            + " private Long i; public long getI() { return i; } public void setI(long v) {} }",
                    "i: getI() has another type than the field"),
            message(
                    "static class Sent { " + NAME + " private long i; public void setI(Long v) {} }",
                    "i: setI() has another type than the field"),
            message("static class Sent { " + NAME
                    + " private long i; public String i() { return \"\"; } public void i(Date v) {} }"),
            message("static class Sent { private long i; public long i() { return i; } public Sent i(long v) {"
                    + " return this; } }"),
            message("static class Sent { " + NAME
                    + " private Sent next; public Sent getNext() { return next; } public void setNext(Sent v) {} }"),
            message("static class Sent implements Named { private String name; public void setName(String v) { name"
                    + " = v; } }"
                    + " interface Named { default String getName() { return \"\"; } }"),
            message(
                    "static class Sent<T> { private T t; public T getT() { return t; } public void setT(T v) {} }",
                    "without its types"),
            message(
                    "static class Sent { private boolean open; private boolean isOpen; public boolean isOpen() {"
                            + " return open; }"
                            + " public void setOpen(boolean v) { open = v; } }",
                    "is also the accessor of open"),
            method(
                    "static class Box<T> { private T t; public T getT() { return t; } public void setT(T v) {} }",
                    "Box<String> a(Box<? extends Integer> x)"),
            method(
                    "static class Box<T> { private Set<T> t; public Set<T> getT() { return t; } public void"
                            + " setT(Set<T> v) {} }",
                    "Box<byte[]> a()",
                    "a byte[] equals no other"),
            message(
                    "static class Sent extends Exception { " + NAME + "}",
                    "cause: a public getter and no public setter"),
            message("static class Sent extends Date { private int z; public int getZ() { return z; } public void"
                    + " setZ(int v) {} }"));

    private static final String PRICE = "private final long cents; private final String unit; public long getCents() {"
            + " return cents; } public String getUnit() { return unit; } ";

    private static final String MAKING = "(long cents, String unit) { this.cents = cents; this.unit = unit; } ";

    private static final List<Form> CONSTRUCTED = List.of(
            message("static class Sent { " + PRICE + "Sent" + MAKING + "}"),
            message("static final class Sent { " + PRICE + "private Sent" + MAKING + "}"),
            message("static class Sent { " + PRICE + "Sent" + MAKING + "Sent() { this(0, \"\"); } Sent(long x) {"
                    + " this(); } }"),
            message("static class Sent { " + NAME + "Sent(String name) { this.name = name; } }"),
            message("static class Sent { " + NAME + "Sent(String x) { name = x; } Sent() {} }"),
            message("static class Sent { private final long cents; Sent(long cents) { this.cents = cents; } Sent() {"
                    + " this(0); } public long cents() { return cents; } public Sent cents(long v) { return new"
                    + " Sent(v); } }"),
            message(
                    "static class Sent { " + PRICE + "Sent(String unit, long cents) { this.cents = cents; this.unit ="
                            + " unit; } }",
                    "Sent: a class needs a constructor"),
            message(
                    "static class Sent { " + PRICE + "Sent(long cents) { this.cents = cents; unit = \"\"; } }",
                    "Sent: a class needs a constructor"),
            message(
                    "static class Sent { private final int a; private final int b; Sent(int b, int a) { this.a = a;"
                            + " this.b = b; } public int a() { return a; } public int b() { return b; } }",
                    "Sent: its constructor takes [b, a], and its fields with a getter are [a, b]"),
            message(
                    "static class Sent { private int x; public void setX(int v) {} " + PRICE + "Sent" + MAKING + "}",
                    "x: a public setter and no public getter"),
            message(
                    "static class Sent { private Long id; public long getId() { return 1; } " + PRICE + "Sent" + MAKING
                            + "}",
                    "id: getId() has another type than the field"),
            message("static class Sent { private int cached; private transient Calendar c; static Calendar d; " + PRICE
                    + "Sent" + MAKING + "}"),
            message(
                    "static class Sent extends Base { " + PRICE + "Sent" + MAKING + "} static class Base { " + NAME
                            + "}",
                    "Sent: a class needs a constructor"),
            message(
                    "static class Sent { private final Calendar d; Sent(Calendar d) { this.d = d; } public Calendar"
                            + " getD() { return d; } }",
                    "Sent.d: java.util.Calendar"),
            method(
                    "static final class Box<T> { private final List<T> all; Box(List<T> all) { this.all = all; }"
                            + " public List<T> getAll() { return all; } }",
                    "Box<String> a(Box<? extends Integer> x)"),
            message("static final class Sent { private final byte[] x; Sent(byte... x) { this.x = x; } public byte[]"
                    + " getX() { return x; } }"),
            message("sealed interface Sent {} static final class A implements Sent { " + PRICE + "A" + MAKING + "}"),
            message("static class Sent { " + PRICE + "Sent(@Field(2) long cents, @Field(1) String unit) { this.cents ="
                    + " cents; this.unit = unit; } }"),
            message("static class Sent { @Field(1) private final int i; Sent(@Field(1) int i) { this.i = i; } @Field(1)"
                    + " public int i() { return i; } }"),
            message(
                    "static class Sent { " + PRICE + "Sent(@Field(2) long cents, String unit) { this.cents = cents;"
                            + " this.unit = unit; } }",
                    "Sent.unit: no @Field"),
            message(
                    "static class Sent { @Field(2) private final int i; Sent(@Field(1) int i) { this.i = i; } public"
                            + " int i() { return i; } }",
                    "Sent.i: @Field where it gives no number"));

    private static final List<Form> ODD = List.of(
            method("", "void a(" + numbers(200) + ")"),
            client("CLIENT Calls { void a(" + numbers(254) + "); }"),
            server("SERVER Service { @Method void a(" + numbers(253) + ") {} }"),
            server("SERVER Service { @Method void a(" + numbers(254) + ") {} }", "254 parameters", "a record"),
            server("SERVER Service { @Method void a(" + numbers(251) + ", long x) {} }"),
            server(
                    "SERVER Service { @Method void a(" + numbers(252) + ", double x) {} }",
                    "253 parameters",
                    "a record"),
            message("record Sent(" + numbers(254) + ") {}"),
            server("SERVER Service { private record R(int i) {} private enum E { A } @Method private R a(E x) {"
                    + " return null; } }"),
            server("SERVER Service { private static class B { " + NAME + "} @Method B a(B x) { return null; } }"),
            server(
                    "SERVER Service { class Inner { " + NAME + "} @Method void a(Inner x) {} }",
                    "a class needs a constructor"),
            server("SERVER Service { class Inner { record R(int i) {} enum E { A } } @Method void a(Inner.R x,"
                    + " Inner.E y) {} }"),
            message("record Sent(String x) implements Comparable<Sent> { public int compareTo(Sent o) { return 0; } }"),
            message("record Sent(Page<Sent> x) {} record Page<T extends Record>(T t) {}"),
            message("record Sent(Page<String> x) {} record Page<T extends CharSequence & Comparable<T>>(Optional<?"
                    + " extends T> t) {}"),
            message("static class Sent { private String aName; public String getAName() { return aName; } public"
                    + " void setAName(String v) {} }"),
            message("static class Sent { private String URL; public String getURL() { return URL; } public void"
                    + " setURL(String v) {} }"),
            message("static class Sent { private int $x; public int get$x() { return $x; } public void set$x(int v)"
                    + " {} }"),
            message("static class Sent { private int hashCode; " + NAME + "}"),
            message("static class Sent { private Class<?> type; " + NAME + "}"),
            message(
                    "static class Sent { private Class<?> type; public Class<?> getType() { return type; } public"
                            + " void setType(Class<?> v) {} }",
                    "type: ",
                    NOT_MAPPED),
            message("static class Sent { private boolean on; public boolean isOn() { return on; } public boolean"
                    + " getOn() { return on; }"
                    + " public void setOn(boolean v) {} }"),
            message("static class Sent { private boolean on; public Boolean getOn() { return on; } public boolean"
                    + " isOn() { return on; }"
                    + " public void setOn(boolean v) {} }"),
            message("static class Sent { private String name; public <T> String getName() { return name; } public"
                    + " <T> void setName(String v) {} }"),
            message(
                    "static class Sent { private List<String> all; public <T> List<T> getAll() { return null; }"
                            + " public void setAll(List<String> v) {} }",
                    "what T stands for is not known here"),
            message(
                    "static class Sent { private List<String> all; public List<Calendar> getAll() { return null; }"
                            + " public void setAll(List<String> v) {} }",
                    "java.util.Calendar " + NOT_MAPPED),
            message("static class Sent { private List<Date> all; public List<String> getAll() { return null; }"
                    + " public void setAll(List<Date> v) {} }"),
            message("static class Sent { private List all; public List<String> getAll() { return null; } public"
                    + " void setAll(List v) {} }"),
            message("static class Sent { private byte[] x; public byte[] getX() { return x; } public void"
                    + " setX(byte... v) {} }"),
            message("static class Sent { private int x; public int getX() throws Exception { return x; } public"
                    + " final synchronized void setX(int v) {} }"),
            message("static class Sent extends Base { public void setOne(int v) {} } static class Base { private"
                    + " int one; public int getOne() { return 1; } }"),
            message(
                    "static class Sent extends Base { } static class Base { private int one; public int getOne() {"
                            + " return 1; } void setOne(int v) {} }",
                    "one: a public getter and no public setter"),
            message("static class Sent implements One { private int one; public void setOne(int v) {} public int"
                    + " getOne() { return 1; } } interface One { int getOne(); }"),
            message("static class Sent extends Base implements One<String> { public String getOne() { return null;"
                    + " } } interface One<T> { T getOne(); }"
                    + " static class Base { private String one; public void setOne(String v) {} }"),
            message("record Sent(int a, int b) { public int a() { return b; } }"),
            message("sealed interface Sent {} record A(Sent x) implements Sent {} static final class B implements"
                    + " Sent { "
                    + NAME + "}"),
            message(
                    "sealed interface Sent permits One.A, Two.A {} static class One { record A() implements Sent {} }"
                            + " static class Two { record A() implements Sent {} }",
                    "would both be named a"));

    private static String numbers(int count) {
        return IntStream.range(0, count).mapToObj(i -> "int p" + i).collect(Collectors.joining(", "));
    }

    private static final List<Form> FIELDS_OF_ONE_NAME = List.of(
            message("static class Sent extends Base { private String name; } static class Base { " + NAME + "}"),
            message("static class Sent extends Base { " + NAME + "} static class Base { " + NAME + "}"),
            message(
                    "static class Sent extends Base { private Long name; } static class Base { " + NAME + "}",
                    "name: getName() has another type than the field"),
            message("static class Sent extends Base { " + NAME + "} static class Base { private Date name; }"),
            message("static class Sent extends Base { " + NAME
                    + "} static class Base { private final String name = \"\"; }"),
            message("static class Sent extends Base { " + NAME + "} static class Base { private String name;"
                    + " public String getName() { return name; } }"),
            message("static class Sent extends Base { " + NAME + "} static class Base { private CharSequence name;"
                    + " public CharSequence getName() { return name; } }"),
            message("static class Sent extends Base { " + NAME
                    + "} static class Base { private transient Date name; }"),
            message("static class Sent extends Base { private transient String name; } static class Base { " + NAME
                    + "}"),
            message("static class Sent extends Base { static String name; } static class Base { " + NAME + "}"),
            message(
                    "static class Sent extends Base { private final String name = \"\"; } static class Base { " + NAME
                            + "}",
                    "name: a public setter of a final field"),
            message("static class Sent extends Base { private int other; public int getOther() { return other; }"
                    + " public void setOther(int v) {} private Date name; } static class Base { private"
                    + " String name; }"));

    private static final List<Form> NUMBERS = List.of(
            message("record Sent(@Field(1) int a, @Field(2) int b) {}"),
            message("record Sent(@Field(1) int a, int b) {}", "Sent.b: no @Field"),
            message("record Sent(@Field(1) int a, @Field(1) int b) {}", "Sent.b: number 1 is taken by a"),
            message("record Sent(@Field(0) int a) {}", "a: number 0 (expected: 1 to 536870911"),
            message("record Sent(@Field(536870911) int a) {}"),
            message("record Sent(@Field(536870912) int a) {}", "a: number 536870912 (expected: 1 to 536870911"),
            message("record Sent(@Field(18999) int a, @Field(20000) int b) {}"),
            message("record Sent(@Field(19000) int a) {}", "a: number 19000 (expected: 1 to 536870911"),
            method("", "void a(@Field(1) int x, @Field(7) int y)"),
            method("", "void a(@Field(1) int x, int y)", "y: no @Field"),
            method("", "void a(@Field(1) int x, @Field(1) int y)", "y: number 1 is taken by x"),
            method("", "void a(@Field(0) int x)", "x: number 0 (expected: 1 to 536870911"),
            method("record R(int i) {}", "void a(@Field(5) R x)"),
            method("record R(int i) {}", "void a(@Field(0) R x)", "x: number 0 (expected: 1 to 536870911"),
            method("", "void a(@Field(0) Flow.Publisher<String> x)"),
            method("", "void a(@Field(5) Flow.Publisher<String> x)"),
            message("static class Sent { @Field(1) private int a; public int getA() { return a; } public void"
                    + " setA(int v) {} }"),
            message(
                    "static class Sent { private int a; @Field(0) public int getA() { return a; } public void"
                            + " setA(int v) {} }",
                    "a: number 0 (expected: 1 to 536870911"),
            message(
                    "static class Sent { @Field(1) private int a; public int getA() { return a; } public void"
                            + " setA(int v) {} "
                            + NAME + "}",
                    "name: no @Field"),
            message(
                    "static class Sent { @Field(1) private int a; " + NAME + "}",
                    "Sent.a: @Field where it gives no number"));

    private static final List<Form> CLIENTS = List.of(
            client("CLIENT Calls {}"),
            client("CLIENT Calls { default Object a() { return 1; } static Object b() { return 1; } private Object"
                    + " c() { return 1; } }"),
            client("CLIENT Calls { Object A = 1; class Helper { Object x; } void a(); }"),
            client("CLIENT Calls extends A, B {} interface A { void a(int x); } interface B { String b(); }"),
            client(
                    "CLIENT Calls extends A, B {} interface A { void a(int x); } interface B { Object b(); }",
                    "java.lang.Object " + NOT_MAPPED),
            client("CLIENT Calls extends A, B {} interface A { void a(int x); } interface B { void a(int x); }"),
            client("CLIENT Calls extends A, B { void a(int x); } interface A { void a(int x); } interface B { void"
                    + " a(int x); }"),
            client("CLIENT Calls extends A, B { default Object a() { return 1; } } interface A { Object a(); }"
                    + " interface B { Object a(); }"),
            client("CLIENT Calls extends A { default String a() { return \"\"; } } interface A { Object a(); }"),
            client("CLIENT Calls extends A { String a(); } interface A { default Object a() { return 1; } }"),
            client(
                    "CLIENT Calls extends A { Object a(); } interface A { default Object a() { return 1; } }",
                    "java.lang.Object"),
            client("CLIENT Calls extends A { String a(); } interface A { Object a(); }"),
            client(
                    "CLIENT Calls extends A, B {} interface A { Object a(); } interface B { String a(); }",
                    "java.lang.Object " + NOT_MAPPED),
            client(
                    "CLIENT Calls extends A, B {} interface A { Page<String> a(); } interface B { Page<Calendar> b();"
                            + " } record Page<T>(T t) {}",
                    "java.util.Calendar " + NOT_MAPPED),
            client("CLIENT Calls extends A<String> { String a(); } interface A<T> { T a(); }"),
            client("CLIENT Calls extends A<String> { void a(String x); } interface A<T> { void a(T x); }"),
            client(
                    "CLIENT Calls extends A<String> {} interface A<T> { T a(); }",
                    "what T stands for is not known here"),
            client(
                    "CLIENT Calls extends A<String> {} interface A<T> { void a(List<T> x); }",
                    "what T stands for is not known here"),
            client("CLIENT Calls<T> { void a(T x); }", "what T stands for is not known here"),
            client("CLIENT Calls<T> { void a(int x); }"),
            client("CLIENT Calls extends A, B {} interface Root { int a(); } interface A extends Root {} interface"
                    + " B extends Root { int b(); }"),
            client("CLIENT Calls extends A<String>, B<String> { void a(String x); } interface A<T> { void a(T x);"
                    + " } interface B<T> { void a(T x); }"),
            client("CLIENT Calls extends A { <T> void a(int x); } interface A { <S> void a(int x); }"),
            client(
                    "CLIENT Calls extends A { void a(List<Calendar> x); } interface A { void b(); }",
                    "java.util.Calendar " + NOT_MAPPED),
            client("CLIENT Calls extends Runnable, Callable<String> { String call(); }"),
            client("CLIENT Calls extends Callable<String> {}", "what V stands for is not known here"),
            client("CLIENT Calls extends java.util.function.Supplier<String> { String get(); }"),
            client("class Outer { CLIENT Inner { void a(Object x); } } CLIENT Calls { void a(); }"
                    .replace("CLIENT Inner", "interface Inner")),
            client("CLIENT Calls { void a() throws java.io.IOException; CompletionStage<Void> b() throws Exception; }"),
            client("CLIENT Calls { @Deprecated void a(@Deprecated int x); }"),
            client(
                    "CLIENT Calls { @interface Nullable {} void a(@Nullable Object x); }",
                    "java.lang.Object " + NOT_MAPPED),
            client("CLIENT Calls { void a(int x); void b(int x); void a(String x, int y); }", "a is published twice"),
            client(
                    "CLIENT Calls { void a(int x); void b(int x); @Method(\"a\") Future c(int y);"
                            + " interface Future extends CompletionStage<Void> {} }",
                    STAGES),
            client("CLIENT Calls { void a(int x); @Method(\"a\") CompletionStage<Void> b(int y); }"),
            client(
                    "CLIENT Calls { void a(int x, int y); @Method(\"a\") CompletionStage<Void> b(int y, int x); }",
                    "a is published twice"),
            client(
                    "CLIENT Calls { void a(int x, int y); @Method(\"a\") CompletionStage<Void> b(int v, int w); }",
                    "a is published twice"),
            client("CLIENT Calls { void a(int x, int y); @Method(\"a\") CompletionStage<Void> b(int x, int y); }"),
            client(
                    "CLIENT Calls { void a(@Field(2) int x, @Field(1) int y);"
                            + " @Method(\"a\") CompletionStage<Void> b(int x, int y); }",
                    "a is published twice"),
            client("CLIENT Calls { void a(@Field(2) int x, @Field(1) int y);"
                    + " @Method(\"a\") CompletionStage<Void> b(@Field(2) int x, @Field(1) int y); }"),
            client("public CLIENT Calls { int a(R x); List<R> b(); CompletionStage<R> c(); } record R(int i) {}"),
            client("public CLIENT Calls { R a(); } record R(int i) {}", "is not public, and the interface is"),
            client("public CLIENT Calls extends A {} interface A { R a(); } record R(int i) {}", "is not public"),
            client("public CLIENT Calls { R a(); record R(int i) {} byte[] b(); }"),
            client("CLIENT Calls { R a(); } record R(int i) {}"),
            client("CLIENT Calls { String toString(); int hashCode(); void a(); }"),
            client("CLIENT Calls { boolean equals(Object o); }", "java.lang.Object " + NOT_MAPPED),
            client("CLIENT Calls extends Comparable<String> {}", "what T stands for is not known here"),
            client("CLIENT Calls extends AutoCloseable { void a(); }"),
            client(
                    "sealed CLIENT Calls permits Other { void a(); } non-sealed interface Other extends Calls {}",
                    "sealed"),
            client("@RPCXClient(remoteServerName = \"x\") class Calls {}", "(expected: an interface"),
            client("@RPCXClient(remoteServerName = \"x\") enum Calls { A }", "(expected: an interface"),
            client("@RPCXClient(remoteServerName = \"x\") @interface Calls {}", "(expected: an interface"));

    private static final List<Form> SERVERS = List.of(
            server("SERVER Service { @Method void a() {} Object b() { return 1; } }"),
            server("SERVER Service { @Method private void a() {} @Method protected void b() {} @Method void c() {}"
                    + " @Method public void d() {} }"),
            server("SERVER Service { @Method private void a(Object x) {} }", "java.lang.Object " + NOT_MAPPED),
            server("SERVER Service {}", "publishes nothing"),
            server("SERVER Service { void a() {} }", "publishes nothing"),
            server("SERVER Service { @Method static void a() {} }", "@Method on a static method"),
            server("SERVER Service { @Method void a() {} @Method(\"a\") void b() {} }", "a is published twice"),
            server("SERVER Service { @Method void a() {} @Method void a(int x) {} }", "a is published twice"),
            server("SERVER Service { @Method synchronized final void a(int... x) {} }", "write it as a List"),
            server("SERVER Service { @Method synchronized final strictfp void a(byte... x) throws Exception {} }"),
            server("SERVER Service<T> { @Method void a(int x) {} }"),
            server("SERVER Service<T> { @Method void a(T x) {} }", "what T stands for is not known here"),
            server("SERVER Service extends Base {} class Base { @Method void a() {} }"),
            server("SERVER Service { @Method void a() {} } abstract class Lower extends Service {}"),
            server(
                    "SERVER Service implements I { @Method public void a(String x, String y) {} }"
                            + " interface I { void a(@Field(2) String x, @Field(1) String y); }",
                    "Service.a: its parameters have the numbers [1, 2], and [2, 1] in"),
            server("SERVER Service implements I { @Method public void a(@Field(2) String x, @Field(1) String y) {} }"
                    + " interface I { void a(@Field(2) String x, @Field(1) String y); }"),
            server("SERVER Service implements I { @Method public void a(@Field(2) String x, @Field(1) String y) {} }"
                    + " interface I { void a(String x, String y); }"),
            server(
                    "SERVER Service implements I { @Method public void a(@Field(2) String x, @Field(1) String y) {} }"
                            + " @RPCXClient(remoteServerName = \"x\") interface I { void a(String x, String y); }",
                    "Service.a: its parameters have the numbers [2, 1], and [1, 2] in"),
            server(
                    "SERVER Service extends Base implements J { @Method public void a(String x) {} } interface J {}"
                            + " abstract class Base implements I<String> {} interface I<T> { void a(@Field(2) T x); }",
                    "Service.a: its parameters have the numbers [1], and [2] in"),
            server(
                    "SERVER Service implements I { @Method public void a(@Field(2) int x, @Field(1) int y) {} }"
                            + " @RPCXClient(remoteServerName = \"x\") interface I extends J {}"
                            + " interface J { void a(int x, int y); }",
                    "Service.a: its parameters have the numbers [2, 1], and [1, 2] in"),
            server("SERVER Service implements I<String> { @Method public void a(@Field(2) String x, @Field(1) int y) {}"
                    + " @Method(\"b\") public void a(Integer x, int y) {} }"
                    + " interface I<T> { void a(@Field(2) T x, @Field(1) int y); }"),
            server("public SERVER Service extends Base { @Method(\"b\") public void a(long x, long y) {} }"
                    + " class Base implements I { @Method public void a(@Field(2) int x, @Field(1) int y) {} }"
                    + " interface I { void a(@Field(2) int x, @Field(1) int y); }"),
            server("SERVER Service implements I { @Method public void a(int x) {} public void a(String x) {} }"
                    + " interface I { void a(@Field(2) String x); }"),
            server("SERVER Service extends Base {} class Base { @Method private void a() {} }"),
            server(
                    "SERVER Service extends Base {} class Base { @Method private void a(Object x) {} }",
                    "java.lang.Object " + NOT_MAPPED),
            server(
                    "SERVER Service extends Base { @Method void a() {} } class Base { @Method private void a(int x)"
                            + " {} }",
                    "a is published twice"),
            server(
                    "SERVER Service extends Base { @Method void b() {} } class Base { @Method private static void"
                            + " a() {} }",
                    "static"),
            server("SERVER Service extends Base { void a() {} } class Base { @Method void a() {} }"),
            server("public SERVER Service extends Base {} class Base { @Method public void a() {} }"),
            server("public SERVER Service extends Base<String> { @Method public void a(String x) {} }"
                    + " class Base<T> { @Method public void a(T x) {} }"),
            server("SERVER Service extends Base { @Method void a() {} } class Base { @Method void a() {} }"),
            server("SERVER Service extends Base { @Method(\"b\") void a() {} } class Base { @Method void a() {} }"),
            server("SERVER Service extends Base { @Method void a() {} } abstract class Base { @Method abstract"
                    + " void a(); }"),
            server("SERVER Service extends Base { void a() {} } abstract class Base { @Method abstract void a(); }"),
            server("SERVER Service extends Base { @Method String a() { return \"\"; } } class Base { @Method"
                    + " Object a() { return 1; } }"),
            server(
                    "SERVER Service extends Base { @Override String a() { return \"\"; } } class Base { @Method"
                            + " Object a() { return 1; } }",
                    "java.lang.Object " + NOT_MAPPED),
            server("SERVER Service extends Base<String> { @Method void a(String x) {} } class Base<T> { @Method"
                    + " void a(T x) {} }"),
            server(
                    "SERVER Service extends Base<String> {} class Base<T> { @Method void a(T x) {} }",
                    "what T stands for is not known here"),
            server(
                    "SERVER Service implements A { public void a() {} } interface A { @Method void a(); }",
                    "publishes nothing"),
            server("SERVER Service implements A {} interface A { @Method default void a() {} }", "publishes nothing"),
            server("SERVER Service implements A { @Method void b() {} } interface A { @Method default Object a() {"
                    + " return 1; } }"),
            server("SERVER Service implements A { @Method public void a() {} } interface A { @Method(\"a\") void"
                    + " a(); }"),
            server("SERVER Service extends Mid { @Method void a() {} } class Mid extends Base { void a() {} }"
                    + " class Base { @Method void a() {} }"),
            server(
                    "SERVER Service extends Mid { void a() {} } class Mid extends Base { @Method void a() {} }"
                            + " class Base { @Method Object b() { return 1; } }",
                    "java.lang.Object " + NOT_MAPPED),
            server("SERVER Service extends Base<String> { @Method(\"b\") String a() { return \"\"; } } class"
                    + " Base<T> { @Method T a() { return null; } }"),
            server(
                    "SERVER Service extends Base { @Method void a(List x) {} } class Base { @Method void"
                            + " a(List<String> x) {} }",
                    "List without its types"),
            server("SERVER Service { @Method @RunOn(RunOn.Place.EVENT_LOOP) @LongPoll CompletionStage<Void> a() {"
                    + " return null; } }"),
            server("SERVER Service { @Method(idempotent = true, hedgeMillis = 1) Flow.Publisher<String> a() {"
                    + " return null; } }"),
            server("SERVER Service { @Method void a(@RouteBy Set<String> x) {} }"),
            server("SERVER Service { static class Date2 extends Date {} @Method void a() { } void b(Date2 x) {} }"),
            server("SERVER Service { @Method void equals() {} @Method @Override public String toString() { return"
                    + " \"\"; } }"),
            server(
                    "SERVER Service { @Method @Override public boolean equals(Object o) { return this == o; }"
                            + " @Override public int hashCode() { return 1; } }",
                    "java.lang.Object " + NOT_MAPPED),
            server("SERVER Service extends Thread { @Method void a() {} }"),
            server("@RPCXServer(\"x\") record Service() { @Method void a() {} }"),
            server(
                    "@RPCXServer(\"x\") interface Service { @Method void a(); }",
                    "cannot be made, since it is an interface"),
            server(
                    "@RPCXServer(\"x\") abstract class Service { @Method void a() {} }",
                    "cannot be made, since it is abstract"));
}
