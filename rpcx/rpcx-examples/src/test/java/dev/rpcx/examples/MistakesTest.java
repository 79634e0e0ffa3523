package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.fail;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Method;
import dev.rpcx.Publishers;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.Tls;
import dev.rpcx.Tokens;
import dev.rpcx.examples.grpc.GrpcGreeterTest;
import dev.rpcx.testing.Faults;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Makes the mistakes of which the guide warns, and compares what a reader sees then with the page. A page shows the
 * text of an exception as a stack trace begins with it. Its types are in the package {@code com.acme}, and its ports
 * are 9000.
 */
@Timeout(120)
class MistakesTest {
    /** Pages whose messages other tests compare: they need Spring Boot, and the compiler of Kotlin. */
    private static final List<String> COMPARED_ELSEWHERE = List.of("spring", "kotlin");

    /** The mistakes of each page, in the order of its messages. */
    private static final Map<String, List<ThrowingCallable>> MISTAKES = Map.ofEntries(
            Map.entry(
                    "hello",
                    of(MistakesTest::addressIsMissing, MistakesTest::nobodyListens, MistakesTest::methodIsMisspelt)),
            Map.entry("types", of(MistakesTest::nullIsSent, MistakesTest::arrayIsDeclared)),
            Map.entry("schema", of(MistakesTest::numbersDiffer)),
            Map.entry("errors", of(MistakesTest::exceptionIsNotMarked, MistakesTest::handlerThrows)),
            Map.entry("timeouts", of(MistakesTest::noReplyComes, MistakesTest::timeIsTooLong)),
            Map.entry("interceptors", of(MistakesTest::contextIsMissing, MistakesTest::metadataAreTooLarge)),
            Map.entry("streams", of(MistakesTest::queueHasNoEnd, MistakesTest::streamIsNotAlone)),
            Map.entry("instances", of(MistakesTest::noInstanceIsNamed, MistakesTest::noInstanceAnswers)),
            Map.entry("tls", of(MistakesTest::fileIsMissing, MistakesTest::tokenIsMissing)),
            Map.entry("testing", of(MistakesTest::serverHasSockets)),
            Map.entry("operating", of(MistakesTest::portIsTaken, MistakesTest::serverHasTooMuchToDo)),
            Map.entry("from-grpc", of(MistakesTest::packageIsWrong)),
            Map.entry("from-feign", of(MistakesTest::interfaceIsNotMarked)),
            Map.entry("from-dubbo", of(MistakesTest::noMethodIsMarked)));

    private static List<ThrowingCallable> of(ThrowingCallable... mistakes) {
        return List.of(mistakes);
    }

    @ParameterizedTest
    @FieldSource("dev.rpcx.examples.GuidePages#NAMES")
    void aPageShowsTheMessagesThatOneSees(String name) throws IOException {
        if (COMPARED_ELSEWHERE.contains(name)) {
            return;
        }
        List<String> seen = new ArrayList<>();
        for (ThrowingCallable mistake : MISTAKES.getOrDefault(name, List.of())) {
            seen.add(seen(catchThrowable(mistake)));
        }
        assertThat(GuidePages.blocks(GuidePages.text(name), "text").stream().map(GuidePages::onOneLine))
                .containsExactlyElementsOf(seen);
    }

    private static String seen(Throwable thrown) {
        return GuidePages.onOneLine(String.valueOf(thrown)
                .replace(MistakesTest.class.getName() + "$", "com.acme.")
                .replaceAll("127\\.0\\.0\\.1:\\d+", "127.0.0.1:9000")
                .replaceAll("local:rpcx-\\d+", "local:rpcx-9000")
                // Netty's native transport puts the name of a function before the text of the system
                .replaceAll("\\w+\\(\\.\\.\\) failed with error\\(-\\d+\\): ", ""));
    }

    @RPCXClient(remoteServerName = "greeter")
    interface Greeter {
        @Method("hello")
        String hello(String name);

        @Method("hello")
        CompletableFuture<String> later(String name);
    }

    @RPCXServer("greeter")
    static class Greetings {
        @Method("hello")
        String greet(String name) {
            return "Hello " + name;
        }
    }

    private static Server greetings() {
        return new Server(0, RegistryServer.registry(new Greetings())).start();
    }

    private static void call(Client.Builder builder, Server.Builder serving) {
        try (Server server = serving.build().start();
                Client client = builder.build()) {
            client.create(Greeter.class, "127.0.0.1", server.port()).hello("World");
        }
    }

    private static void create(Class<?> type) {
        try (Client client = Client.standard()) {
            client.create(type, "127.0.0.1", 9000);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private static void addressIsMissing() {
        try (Client client = Client.standard()) {
            client.create(Greeter.class);
        }
    }

    private static void nobodyListens() throws IOException {
        try (Client client = Client.standard()) {
            client.create(Greeter.class, "127.0.0.1", freePort()).hello("World");
        }
    }

    @RPCXClient(remoteServerName = "greeter")
    interface Misspelt {
        String helo(String name);
    }

    private static void methodIsMisspelt() {
        try (Server server = greetings();
                Client client = Client.standard()) {
            client.create(Misspelt.class, "127.0.0.1", server.port());
            client.warmUp();
        }
    }

    private static void nullIsSent() {
        try (Server server = greetings();
                Client client = Client.standard()) {
            client.create(Greeter.class, "127.0.0.1", server.port()).hello(null);
        }
    }

    @RPCXClient(remoteServerName = "sums")
    interface Sums {
        int sum(int[] numbers);
    }

    private static void arrayIsDeclared() {
        create(Sums.class);
    }

    static final class AtClient {
        record Order(String from, String to) {}

        private AtClient() {}
    }

    static final class AtServer {
        record Order(String to, String from) {}

        private AtServer() {}
    }

    @RPCXClient(remoteServerName = "shop")
    interface Shop {
        @Method("place")
        void place(AtClient.Order order);
    }

    @RPCXServer("shop")
    static class OtherShop {
        @Method("place")
        void place(AtServer.Order order) {}
    }

    private static void numbersDiffer() {
        try (Server server = new Server(0, RegistryServer.registry(new OtherShop())).start();
                Client client = Client.standard()) {
            client.create(Shop.class, "127.0.0.1", server.port()).place(new AtClient.Order("Oslo", "Rome"));
        }
    }

    static final class SoldOut extends Exception {
        private static final long serialVersionUID = 1L;
    }

    @RPCXClient(remoteServerName = "tickets")
    interface Tickets {
        void buy(String film) throws SoldOut;
    }

    private static void exceptionIsNotMarked() {
        create(Tickets.class);
    }

    @RPCXServer("greeter")
    static class Failing {
        @Method("hello")
        String greet(String name) {
            throw new IllegalStateException("no guest " + name);
        }
    }

    private static void handlerThrows() {
        call(Client.builder(), Server.builder(RegistryServer.registry(new Failing())));
    }

    private static void noReplyComes() {
        call(
                Client.builder().inProcess().faults(Faults.seeded(1).losing(1)).callTimeout(Duration.ofMillis(100)),
                Server.builder(RegistryServer.registry(new Greetings())).inProcess());
    }

    @RPCXClient(remoteServerName = "reports")
    interface Reports {
        @Method(timeoutMillis = 7_200_000)
        String yearly();
    }

    private static void timeIsTooLong() {
        create(Reports.class);
    }

    private static void contextIsMissing() {
        CallContext.current().orElseThrow();
    }

    private static void metadataAreTooLarge() {
        try (Server server = greetings();
                Client client = Client.standard()) {
            Greeter greeter = client.create(Greeter.class, "127.0.0.1", server.port());
            CallContext.with("basket", "x".repeat(10_000), () -> greeter.hello("World"));
        }
    }

    private static void queueHasNoEnd() {
        Publishers.of(new LinkedBlockingQueue<String>());
    }

    @RPCXClient(remoteServerName = "files")
    interface Files {
        void upload(String name, Flow.Publisher<byte[]> parts);
    }

    private static void streamIsNotAlone() {
        create(Files.class);
    }

    private static void noInstanceIsNamed() {
        Endpoints.of();
    }

    private static void noInstanceAnswers() throws IOException {
        try (Client client = Client.standard()) {
            client.create(Greeter.class, Endpoints.of(new Endpoint("127.0.0.1", freePort())))
                    .hello("World");
        }
    }

    private static void fileIsMissing() {
        Tls.server(Path.of("server.pem"), Path.of("server.key"));
    }

    private static void tokenIsMissing() {
        call(
                Client.builder(),
                Server.builder(RegistryServer.registry(new Greetings())).interceptor(Tokens.requiring(caller -> null)));
    }

    private static void serverHasSockets() {
        call(Client.builder().inProcess(), Server.builder(RegistryServer.registry(new Greetings())));
    }

    private static void portIsTaken() {
        RegistryServer registry = RegistryServer.registry(new Greetings());
        try (Server first = Server.builder(registry).host("127.0.0.1").build().start()) {
            Server second = Server.builder(registry)
                    .host("127.0.0.1")
                    .port(first.port())
                    .build();
            second.start().close();
        }
    }

    @RPCXServer("greeter")
    static class Waiting {
        private final CountDownLatch end = new CountDownLatch(1);

        @Method("hello")
        String greet(String name) throws InterruptedException {
            end.await();
            return "Hello " + name;
        }
    }

    private static void serverHasTooMuchToDo() {
        Waiting waiting = new Waiting();
        List<CompletableFuture<String>> calls = new ArrayList<>();
        try (Server server = Server.builder(RegistryServer.registry(waiting))
                        .maxRunning(4)
                        .build()
                        .start();
                Client client = Client.standard()) {
            Greeter greeter = client.create(Greeter.class, "127.0.0.1", server.port());
            for (int i = 0; i < 10; i++) {
                calls.add(greeter.later("World"));
            }
            CompletableFuture.anyOf(calls.toArray(CompletableFuture<?>[]::new))
                    .handle((reply, refusal) -> {
                        waiting.end.countDown();
                        if (refusal == null) {
                            return fail("no call was refused");
                        }
                        throw (RPCXException) RPCXException.cause(refusal);
                    })
                    .join();
        } catch (CompletionException e) {
            throw (RPCXException) RPCXException.cause(e);
        }
    }

    private static void packageIsWrong() {
        GrpcGreeterTest.hello("greeter.Greeter/Hello");
    }

    interface Unmarked {
        String hello(String name);
    }

    private static void interfaceIsNotMarked() {
        create(Unmarked.class);
    }

    @RPCXServer("greeter")
    static class Silent {
        String hello(String name) {
            return "Hello " + name;
        }
    }

    private static void noMethodIsMarked() {
        RegistryServer.registry(new Silent());
    }
}
