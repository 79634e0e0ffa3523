package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.LongForm;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.client.ClientCall;
import dev.rpcx.internal.client.ClientConnection;
import io.netty.channel.Channel;
import io.netty.channel.epoll.Epoll;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests callers that read their replies themselves, and what takes the socket away from them. */
@Timeout(60)
class ReadTurnTest {
    @RPCXServer("echo")
    static final class Echo {
        final AtomicReference<CountDownLatch> gate = new AtomicReference<>(new CountDownLatch(0));
        final AtomicInteger held = new AtomicInteger();

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String echo(String text) {
            return text;
        }

        @Method
        String gated(String text) throws InterruptedException {
            held.incrementAndGet();
            gate.get().await();
            return text;
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        @Method
        String echo(String text);

        @Method("echo")
        CompletableFuture<String> send(String text);

        @Method
        String gated(String text);

        @Method(value = "gated", timeoutMillis = 300)
        String gatedShortly(String text);
    }

    /** Number of calls in a row that is sufficient for the socket to be lent. */
    private static final int ROW = 4 * ReadTurn.LONE_REPLIES;

    private final Echo service = new Echo();

    @BeforeAll
    static void epoll() {
        assumeTrue(Epoll.isAvailable(), "callers read their replies themselves on Linux only");
    }

    private static @Nullable ClientConnection connection(Client client) {
        for (Channel channel : Inside.core(client).channels.keySet()) {
            ClientConnection connection = channel.pipeline().get(ClientConnection.class);
            if (connection != null) {
                return connection;
            }
        }
        return null;
    }

    private static @Nullable ReadTurn turn(Client client) {
        ClientConnection connection = connection(client);
        return connection == null ? null : connection.readTurn;
    }

    private static void callUntilLent(EchoClient echo, Client client) {
        boolean wasLent = false;
        for (int i = 0; i < 100 * ROW && !wasLent; i++) {
            assertThat(echo.echo("row " + i)).isEqualTo("row " + i);
            ReadTurn turn = turn(client);
            // a moment later the loop may have taken an idle socket back
            wasLent = turn != null && turn.isLent();
        }
        assertThat(wasLent).isTrue();
    }

    @Test
    void aLoneCallerReadsItselfAndTheLoopLooksAfterAQuietSocket() {
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            callUntilLent(echo, client);
            ReadTurn turn = turn(client);
            for (int i = 0; i < ROW; i++) {
                // the texts grow to the longest that a caller reads, and then to lengths that the loop has to read
                String text = "x".repeat(i * 40);
                assertThat(echo.echo(text)).isEqualTo(text);
            }
            await().until(() -> turn != null && !turn.isLent());
            assertThat(echo.echo("again")).isEqualTo("again");
        }
    }

    @Test
    void whatComesBesideALoneCallerIsAnsweredToo() throws Exception {
        AtomicReference<@Nullable Throwable> wrong = new AtomicReference<>();
        AtomicInteger right = new AtomicInteger();
        int calls = Integer.getInteger("rpcx.stress.calls", LongForm.of(20_000, 500_000));
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            Thread lone = new Thread(() -> {
                for (int i = 0; i < calls; i++) {
                    String text = "lone " + i + "-".repeat(i % 97 == 0 ? 5_000 : i % 30);
                    if (!echo.echo(text).equals(text)) {
                        wrong.set(new AssertionError("another's reply"));
                    }
                    right.incrementAndGet();
                }
            });
            lone.setUncaughtExceptionHandler((thread, e) -> wrong.set(e));
            lone.start();
            Random random = new Random(11);
            int others = 0;
            while (lone.isAlive()) {
                String text = "other " + others++;
                switch (random.nextInt(4)) {
                    case 0 -> assertThat(echo.echo(text)).isEqualTo(text);
                    case 1 -> assertThat(echo.send(text).join()).isEqualTo(text);
                    case 2 -> {
                        List<CompletableFuture<String>> burst = new ArrayList<>();
                        for (int i = 0; i < 50; i++) {
                            burst.add(echo.send(text + i));
                        }
                        for (int i = 0; i < 50; i++) {
                            assertThat(burst.get(i).join()).isEqualTo(text + i);
                        }
                    }
                    default -> {
                        // this is long enough for the lone caller to be lent the socket
                        int until = right.get() + 2 * ROW;
                        while (right.get() < until && lone.isAlive()) {
                            Thread.onSpinWait();
                        }
                    }
                }
            }
        }
        assertThat(wrong.get()).isNull();
        assertThat(right.get()).isEqualTo(calls);
    }

    /** After the caller asked whether the reply is there, the loop has read it and has lent the socket. */
    @Test
    void aCallerWhoseReplyIsThereDoesNotWaitAtTheSocket() {
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            await().atMost(Duration.ofSeconds(10)).until(() -> {
                callUntilLent(echo, client);
                ClientConnection connection = Objects.requireNonNull(connection(client));
                ClientCall answered = Objects.requireNonNull(connection.slots.at(0));
                // this runs on the loop, so that the loop does not take the socket back meanwhile
                return CompletableFuture.supplyAsync(
                                () -> {
                                    if (!connection.readTurn.isLent()) {
                                        return false;
                                    }
                                    long began = System.nanoTime();
                                    connection.readTurn.read(answered);
                                    return System.nanoTime() - began < TimeUnit.MILLISECONDS.toNanos(10);
                                },
                                connection.loop())
                        .get(10, TimeUnit.SECONDS);
            });
            assertThat(echo.echo("again")).isEqualTo("again");
        }
    }

    @Test
    void aDeadlineEndsACallWhoseCallerIsAtTheSocket() {
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            for (int i = 0; i < 3; i++) {
                callUntilLent(echo, client);
                service.gate.set(new CountDownLatch(1));
                assertThatThrownBy(() -> echo.gatedShortly("late"))
                        .isInstanceOfSatisfying(
                                RPCXException.class,
                                e -> assertThat(e.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED));
                service.gate.get().countDown();
                assertThat(echo.echo("next")).isEqualTo("next");
            }
        }
    }

    @Test
    void anInterruptEndsACallWhoseCallerIsAtTheSocket() throws Exception {
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            service.gate.set(new CountDownLatch(1));
            AtomicReference<@Nullable Throwable> end = new AtomicReference<>();
            Thread caller = new Thread(() -> {
                callUntilLent(echo, client);
                echo.gated("interrupted");
            });
            caller.setUncaughtExceptionHandler((thread, e) -> end.set(e));
            caller.start();
            await().until(() -> service.held.get() == 1);
            caller.interrupt();
            caller.join();
            assertThat(end.get())
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED));
            service.gate.get().countDown();
            assertThat(echo.echo("next")).isEqualTo("next");
        }
    }

    @Test
    void aServerThatStopsFinishesTheCallOfACallerAtTheSocket() throws Exception {
        for (int i = 0; i < 10; i++) {
            service.gate.set(new CountDownLatch(1));
            AtomicReference<@Nullable Object> end = new AtomicReference<>();
            try (Client client = Client.standard();
                    Server server = new Server(0, RegistryServer.registry(service)).start()) {
                EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
                Thread caller = new Thread(() -> {
                    callUntilLent(echo, client);
                    end.set(echo.gated("finished"));
                });
                caller.setUncaughtExceptionHandler((thread, e) -> end.set(e));
                caller.start();
                int calls = i + 1;
                await().until(() -> service.held.get() == calls);
                Thread stopping = new Thread(server::stop);
                stopping.start();
                service.gate.get().countDown();
                stopping.join();
                caller.join();
            }
            assertThat(end.get()).isEqualTo("finished");
        }
    }

    @Test
    void callersAtTheSocketAreToldThatTheirConnectionHasEnded() throws Exception {
        AtomicInteger right = new AtomicInteger();
        AtomicInteger lost = new AtomicInteger();
        AtomicReference<@Nullable Throwable> wrong = new AtomicReference<>();
        int drops = Integer.getInteger("rpcx.stress.drops", LongForm.of(200, 5_000));
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client client =
                        Client.builder().callTimeout(Duration.ofSeconds(5)).build()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            AtomicInteger dropped = new AtomicInteger();
            Thread caller = new Thread(() -> {
                for (int i = 0; dropped.get() < drops; i++) {
                    try {
                        if (!echo.echo("call " + i).equals("call " + i)) {
                            wrong.set(new AssertionError("another's reply"));
                        }
                        right.incrementAndGet();
                    } catch (RPCXException e) {
                        if (e.code() == RPCXException.Code.UNAVAILABLE) {
                            lost.incrementAndGet();
                        } else {
                            wrong.set(e);
                        }
                    }
                }
            });
            caller.setUncaughtExceptionHandler((thread, e) -> wrong.set(e));
            caller.start();
            for (int i = 0; i < drops && caller.isAlive(); i++) {
                int until = right.get() + ROW;
                while (right.get() < until && caller.isAlive()) {
                    Thread.onSpinWait();
                }
                Inside.core(client).dropConnections();
                dropped.incrementAndGet();
            }
            caller.join();
        }
        assertThat(wrong.get()).isNull();
        assertThat(right.get()).isGreaterThanOrEqualTo(drops * ROW);
    }
}
