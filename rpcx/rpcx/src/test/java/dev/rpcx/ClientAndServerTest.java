package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests client and server together: both wires on one port, interceptors, registration, restarts, and threads that are
 * left over.
 */
@Timeout(60)
class ClientAndServerTest {
    record Person(String name, int age) {}

    @RPCXServer("people")
    static class People {
        @Method
        Person older(Person person, int years) {
            return new Person(person.name, person.age + years);
        }

        @Method
        String fail() {
            throw new IllegalStateException("no such luck");
        }

        @Method
        void block() throws InterruptedException {
            Thread.sleep(Long.MAX_VALUE);
        }

        @Method
        String tenant() {
            return String.valueOf(CallContext.current().orElseThrow().metadata().get("tenant"));
        }
    }

    @RPCXClient(remoteServerName = "people")
    interface PeopleClient {
        Person older(Person person, int years);

        @Method("older")
        CompletableFuture<Person> olderLater(Person person, int years);

        @Method("older")
        RPCXFuture<Person> olderInFuture(Person person, int years);

        String fail();

        @Method(timeoutMillis = 50)
        void block();

        String tenant();
    }

    @RPCXClient(remoteServerName = "scanned")
    interface ScannedClient {
        String hello(String name);
    }

    private static final Person ANN = new Person("Ann", 41);

    private static Server serve(int port) {
        return Server.builder(RegistryServer.registry(People.class))
                .port(port)
                .classic(true)
                .build()
                .start();
    }

    @Test
    void bothWiresAreSpokenOnOnePort() {
        try (Server server = serve(0);
                Client native1 = Client.standard();
                Client classic = Client.builder().classic().build()) {
            for (Client client : List.of(native1, classic, native1, classic)) {
                PeopleClient people = client.create(PeopleClient.class, "127.0.0.1", server.port());
                assertThat(people.older(ANN, 1)).isEqualTo(new Person("Ann", 42));
                assertThat(people.olderLater(ANN, 2).join()).isEqualTo(new Person("Ann", 43));
                assertThat(people.olderInFuture(ANN, 3).join()).isEqualTo(new Person("Ann", 44));
                assertThatThrownBy(people::fail).isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
                    assertThat(e.getMessage()).isEqualTo("no such luck");
                });
                assertThatThrownBy(people::block)
                        .isInstanceOfSatisfying(
                                RPCXException.class,
                                e -> assertThat(e.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED));
            }
            server.stop(Duration.ofMillis(100));
            PeopleClient people = classic.create(PeopleClient.class, "127.0.0.1", 1);
            assertThatThrownBy(() -> people.older(ANN, 1))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE));
            assertThatThrownBy(() -> people.olderLater(ANN, 1).join()).isInstanceOf(CompletionException.class);
        }
    }

    @Test
    void interceptorsStandAroundCallsOnBothSidesInOrder() {
        List<String> seen = java.util.Collections.synchronizedList(new ArrayList<>());
        Server server = Server.builder(RegistryServer.registry(new People()))
                .interceptor((call, next) -> {
                    seen.add("server " + call.service() + "/" + call.method());
                    return next.proceed(call);
                })
                .build()
                .start();
        try (Client client = Client.builder()
                .interceptor((call, next) -> {
                    seen.add("outer");
                    return next.proceed(call.with("tenant", "blue"));
                })
                .interceptor((call, next) -> {
                    seen.add("inner " + call.metadata().get("tenant"));
                    return next.proceed(call);
                })
                .build()) {
            PeopleClient people = client.create(PeopleClient.class, "127.0.0.1", server.port());
            assertThat(people.tenant()).isEqualTo("blue");
            assertThat(seen).containsExactly("outer", "inner blue", "server people/tenant");
        } finally {
            server.stop();
        }
    }

    @Test
    void servicesAreFoundByTheirPackage() {
        RegistryServer registry = RegistryServer.scan("dev.rpcx.scanned");
        assertThat(registry.published()).containsExactly("scanned/hello");
        try (Server server = new Server(0, registry).start();
                Client client = Client.standard()) {
            ScannedClient scanned = client.create(ScannedClient.class, "127.0.0.1", server.port());
            assertThat(scanned.hello("you")).isEqualTo("Hello you");
        }
    }

    static class Stored<T> {
        @Method
        public Object save(T value) {
            return "stored " + value;
        }

        @Method
        public String name() {
            return "stored";
        }

        @Method
        public String kept() {
            return "kept";
        }
    }

    @RPCXServer("texts")
    static class Texts extends Stored<String> {
        @Override
        @Method
        public String save(String value) {
            return "text " + value;
        }

        @Override
        public String name() {
            return "texts";
        }
    }

    @RPCXClient(remoteServerName = "texts")
    interface TextsClient {
        String save(String value);

        String name();

        String kept();
    }

    @Test
    void aMethodThatOverridesAPublishedOneStandsForIt() {
        RegistryServer registry = RegistryServer.registry(new Texts());
        assertThat(registry.published()).containsExactlyInAnyOrder("texts/kept", "texts/name", "texts/save");
        try (Server server = new Server(0, registry).start();
                Client client = Client.standard()) {
            TextsClient texts = client.create(TextsClient.class, "127.0.0.1", server.port());
            assertThat(texts.save("a")).isEqualTo("text a");
            assertThat(texts.name()).isEqualTo("texts");
            assertThat(texts.kept()).isEqualTo("kept");
        }
    }

    @Test
    void aMistakeInAnnotationsIsToldAtStart() {
        assertThatThrownBy(RegistryServer::registry)
                .hasMessageContaining("nothing to publish")
                .hasMessageContaining("-proc:full");
        assertThatThrownBy(() -> RegistryServer.scan(""))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("package \"\": the default package is not scanned");
        assertThatThrownBy(() -> RegistryServer.registry(new Object())).hasMessageContaining("@RPCXServer");
        assertThatThrownBy(() -> RegistryServer.registry(new People(), new People()))
                .hasMessageContaining("published twice");
        try (Client client = Client.standard()) {
            assertThatThrownBy(() -> client.create(PeopleClient.class)).hasMessageContaining("remoteServerAddress");
            assertThatThrownBy(() -> client.create(Runnable.class)).hasMessageContaining("@RPCXClient");
            assertThatThrownBy(() -> client.create(PeopleClient.class, "127.0.0.1", 0))
                    .hasMessageContaining("1 to 65535");
        }
    }

    @Test
    void aPortThatIsTakenIsToldAndNothingIsLeft() {
        try (Server server = serve(0)) {
            assertThatThrownBy(() -> serve(server.port()))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE));
        }
        await().until(() -> Thread.getAllStackTraces().keySet().stream()
                .noneMatch(t -> t.getName().startsWith("rpcx-server")));
    }

    /** The old server goes on until its clients have disconnected. Then the new server listens on the same port. */
    @Test
    void aServerThatIsClosingLosesNoCall() throws Exception {
        Server server = serve(0);
        int port = server.port();
        AtomicBoolean stop = new AtomicBoolean();
        AtomicLong calls = new AtomicLong();
        ConcurrentLinkedQueue<RPCXException> failures = new ConcurrentLinkedQueue<>();
        try (Client client = Client.standard()) {
            PeopleClient people = client.create(PeopleClient.class, "127.0.0.1", port);
            List<Thread> callers = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Thread caller = new Thread(() -> {
                    while (!stop.get()) {
                        try {
                            people.older(ANN, 1);
                            calls.incrementAndGet();
                        } catch (RPCXException e) {
                            failures.add(e);
                        }
                    }
                });
                caller.start();
                callers.add(caller);
            }
            for (int restart = 0; restart < 5; restart++) {
                long before = calls.get();
                await().until(() -> calls.get() > before + 50);
                server.stop();
                server = serve(port);
            }
            stop.set(true);
            for (Thread caller : callers) {
                caller.join();
            }
        } finally {
            server.stop();
        }
        // with no other server to go to, calls in the gap are refused; none of them may have been executed
        assertThat(failures).allMatch(e -> e.executed() == RPCXException.Executed.NOT_EXECUTED);
        assertThat(calls.get()).isGreaterThan(250);
    }
}
