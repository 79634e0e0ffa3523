package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.schema.Field;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that a client can be made ready before its first call, and says what a server does not have before a call. */
@Timeout(60)
class WarmUpTest {
    private static final AtomicInteger NAMES = new AtomicInteger();

    /** Counts its objects, so that a test sees that a codec has made one. */
    record Name(@Field(1) String text) {
        Name {
            NAMES.incrementAndGet();
        }
    }

    @RPCXServer("greeter")
    static final class Greetings {
        final AtomicInteger handled = new AtomicInteger();

        @Method
        String hello(Name name) {
            handled.incrementAndGet();
            return "Hello " + name.text();
        }

        @Method
        int number() {
            return handled.incrementAndGet();
        }

        final CompletableFuture<Integer> later = new CompletableFuture<>();

        @Method
        CompletableFuture<Integer> later() {
            return later;
        }
    }

    @RPCXClient(remoteServerName = "greeter")
    interface Greeter {
        String hello(Name name);

        CompletableFuture<Integer> later();
    }

    @RPCXClient(remoteServerName = "greeter")
    interface Misspelt {
        String helo(Name name);

        int number();
    }

    @RPCXClient(remoteServerName = "greeting")
    interface OfAnotherName {
        int number();
    }

    @RPCXClient(remoteServerName = "greeter")
    interface OfAnotherShape {
        String number();
    }

    /** Has only what both wires can carry. */
    @RPCXClient(remoteServerName = "greeter")
    interface Simple {
        int number();
    }

    /** Collects what clients log. Nothing of it is printed. */
    private static final class ClientLog extends Handler {
        private final Logger logger = Logger.getLogger("dev.rpcx.Client");
        final List<String> lines = new CopyOnWriteArrayList<>();

        ClientLog() {
            logger.addHandler(this);
            logger.setUseParentHandlers(false);
        }

        @Override
        public void publish(LogRecord line) {
            lines.add(line.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {
            logger.removeHandler(this);
            logger.setUseParentHandlers(true);
        }
    }

    private final Greetings greetings = new Greetings();
    private final Server server = Server.builder(RegistryServer.registry(greetings))
            .host("127.0.0.1")
            .classic(true)
            .build()
            .start();
    private final Client client = Client.standard();
    private final ClientLog log = new ClientLog();

    /** Keeps the proxies, since a client forgets those that nobody has. */
    private final List<Object> proxies = new ArrayList<>();

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
        log.close();
    }

    private <T> T proxy(Class<T> type) {
        T made = client.create(type, "127.0.0.1", server.port());
        proxies.add(made);
        return made;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @Test
    void aWarmClientIsConnectedHasUsedItsCodecsAndNoHandlerHasRun() {
        Greeter greeter = proxy(Greeter.class);
        int before = NAMES.get();
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isZero();
        client.warmUp();
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isEqualTo(1);
        assertThat(NAMES.get()).isGreaterThan(before);
        assertThat(greetings.handled).hasValue(0);
        assertThat(greeter.hello(new Name("World"))).isEqualTo("Hello World");
        client.warmUp();
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isEqualTo(1);
        assertThat(log.lines).isEmpty();
    }

    @Test
    void aClientWithoutProxiesIsWarm() {
        client.warmUp();
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isZero();
    }

    @Test
    void aMethodThatTheServerDoesNotPublishIsToldWithThoseThatItDoes() {
        proxy(Misspelt.class);
        assertThatThrownBy(client::warmUp)
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.NOT_FOUND);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                })
                .hasMessage("greeter/helo is not published at 127.0.0.1:" + server.port()
                        + " (expected: one of greeter/hello, greeter/later, greeter/number)");
    }

    @Test
    void aServiceThatTheServerDoesNotPublishIsToldWithAllThatItDoes() {
        proxy(OfAnotherName.class);
        assertThatThrownBy(client::warmUp)
                .hasMessageStartingWith("greeting/number is not published at ")
                .hasMessageEndingWith("(expected: one of greeter/hello, greeter/later, greeter/number)");
    }

    @Test
    void aMethodThatTheServerDeclaresOtherwiseIsTold() {
        proxy(OfAnotherShape.class);
        assertThatThrownBy(client::warmUp)
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID))
                .hasMessageContaining("greeter/number at ")
                .hasMessageContaining("has another shape");
    }

    @Test
    void allThatIsWrongIsToldAtOnceAndWhatIsRightIsWarm() throws Exception {
        int nobody = freePort();
        proxies.add(client.create(Simple.class, "127.0.0.1", nobody));
        proxy(Misspelt.class);
        proxy(OfAnotherName.class);
        proxy(Misspelt.class);
        assertThatThrownBy(client::warmUp)
                .hasMessageContaining("127.0.0.1:" + nobody)
                .hasMessageContaining("greeter/helo is not published")
                .hasMessageContaining("greeting/number is not published")
                .satisfies(e -> assertThat(e.getMessage().split("greeter/helo is", -1))
                        .as("each once")
                        .hasSize(2));
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isEqualTo(1);
    }

    @Test
    void aServerThatCannotBeReachedIsTold() throws Exception {
        int nobody = freePort();
        proxies.add(client.create(Simple.class, "127.0.0.1", nobody));
        assertThatThrownBy(client::warmUp)
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE))
                .hasMessageContaining("127.0.0.1:" + nobody);
    }

    @Test
    void oneOfSeveralInstancesIsEnough() {
        proxies.add(client.create(Simple.class, Endpoints.of(new Endpoint("127.0.0.1", server.port()))));
        client.warmUp();
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isEqualTo(1);
    }

    @Test
    void aClassicClientIsConnected() {
        try (Client classic = Client.builder().classic().build()) {
            Simple simple = classic.create(Simple.class, "127.0.0.1", server.port());
            classic.warmUp();
            await().until(() -> server.core().ledger().held(Resource.CONNECTIONS) == 1);
            assertThat(greetings.handled).hasValue(0);
            assertThat(simple.number()).isEqualTo(1);
        }
    }

    @Test
    void aMethodThatIsNotPublishedIsLoggedWhenTheClientConnects() {
        Greeter greeter = proxy(Greeter.class);
        proxy(Misspelt.class);
        assertThat(log.lines).isEmpty();
        greeter.hello(new Name("World"));
        await().untilAsserted(() -> assertThat(log.lines)
                .singleElement()
                .asString()
                .startsWith("calls of a proxy will fail: greeter/helo is not published at 127.0.0.1:" + server.port())
                .contains("expected: one of greeter/hello, greeter/later, greeter/number"));
    }

    @Test
    void aMethodThatIsNotPublishedIsLoggedWhenItsProxyIsMadeBehindAConnection() {
        proxy(Greeter.class).hello(new Name("World"));
        assertThat(log.lines).isEmpty();
        proxy(Misspelt.class);
        assertThat(log.lines).singleElement().asString().contains("greeter/helo is not published");
    }

    /** Such a server may have its methods called by name. */
    @Test
    void anEmptyListSaysNothingOfAMethod() throws Exception {
        try (FakeServer silent = new FakeServer(Settings.INITIAL, Unpooled.EMPTY_BUFFER, (request, peer) -> {})) {
            proxies.add(client.create(
                    Simple.class, silent.endpoint().host(), silent.endpoint().port()));
            client.warmUp();
            await().until(() -> silent.accepted.get() == 1);
        }
        assertThat(log.lines).isEmpty();
    }

    @Test
    void anEventLoopMayNotWait() throws Exception {
        CompletableFuture<Throwable> refused = proxy(Greeter.class).later().handle((number, failure) -> {
            try {
                client.warmUp();
                return new AssertionError("it waits");
            } catch (Throwable e) {
                return e;
            }
        });
        greetings.later.complete(1);
        assertThat(refused.get(30, TimeUnit.SECONDS))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("Client.warmUp");
    }

    @Test
    void aClosedClientCannotBeWarm() {
        client.close();
        assertThatThrownBy(client::warmUp).isInstanceOf(IllegalStateException.class);
    }
}
