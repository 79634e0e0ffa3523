package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.LoopChecker;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that calls that would block an event loop are refused before anything is sent. It also tests that the suite's
 * {@code LoopChecker} detects what cannot be refused.
 */
@Timeout(60)
class LoopThreadTest {
    @RPCXServer("echo")
    static final class Echo {
        private EchoClient other;

        @Method
        String echo(String text) {
            return text;
        }

        /** Makes a call on the event loop, and waits for it. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String callsOn(String text) {
            return other.echo(text);
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        String echo(String text);

        @Method("echo")
        CompletableFuture<String> later(String text);

        String callsOn(String text);
    }

    private final Echo service = new Echo();
    private Server server;

    @BeforeEach
    void start() {
        server = Server.builder(RegistryServer.registry(service))
                .classic(true)
                .build()
                .start();
    }

    @AfterEach
    void stop() {
        server.stop(Duration.ofMillis(200));
    }

    private EchoClient echo(Client client) {
        return client.create(EchoClient.class, "127.0.0.1", server.port());
    }

    private static Client client(boolean classic) {
        return classic ? Client.builder().classic().build() : Client.standard();
    }

    /**
     * Runs the action in a callback on the connection's event loop: the future is not complete when the callback is
     * attached.
     */
    private static <T> T onEventLoop(EchoClient echo, java.util.function.Supplier<T> action) throws Exception {
        CompletableFuture<T> result = new CompletableFuture<>();
        CountDownLatch begun = new CountDownLatch(1);
        CompletableFuture<String> first = echo.later("first");
        first.thenAccept(text -> begun.countDown());
        assertThat(begun.await(20, TimeUnit.SECONDS)).isTrue();
        for (boolean there = false; !there; ) {
            CompletableFuture<Boolean> on = echo.later("again").thenApply(text -> {
                if (!(Thread.currentThread() instanceof LoopThread)) {
                    return false;
                }
                try {
                    result.complete(action.get());
                } catch (RuntimeException e) {
                    result.completeExceptionally(e);
                }
                return true;
            });
            there = on.get(20, TimeUnit.SECONDS);
        }
        try {
            return result.join();
        } catch (CompletionException e) {
            throw (Exception) e.getCause();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aBlockingCallInACallbackIsRefused(boolean classic) throws Exception {
        try (Client client = client(classic)) {
            EchoClient echo = echo(client);
            assertThatThrownBy(() -> onEventLoop(echo, () -> echo.echo("second")))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("a blocking call on the event loop rpcx-client-")
                    .hasMessageContaining("expected: an asynchronous call");
            assertThat(echo.echo("third")).isEqualTo("third");
            // a call that does not wait is allowed there
            assertThat(onEventLoop(echo, () -> echo.later("fourth")).get(20, TimeUnit.SECONDS))
                    .isEqualTo("fourth");
        }
    }

    /** The loop that waits may be the one that would complete the future. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void waitingForAFutureInACallbackIsRefusedUnlessItHasEnded(boolean classic) throws Exception {
        try (Client client = client(classic)) {
            EchoClient echo = echo(client);
            assertThatThrownBy(
                            () -> onEventLoop(echo, () -> echo.later("second").join()))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("join of a future that has not ended on the event loop rpcx-client-");
            assertThatThrownBy(() -> onEventLoop(echo, () -> got(echo.later("third"), 0)))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("get of a future");
            assertThatThrownBy(() -> onEventLoop(echo, () -> got(echo.later("fourth"), 20)))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("get of a future");
            // this is also true of a future that depends on it
            assertThatThrownBy(() -> onEventLoop(
                            echo,
                            () -> echo.later("fifth").thenApply(text -> text).join()))
                    .isInstanceOf(IllegalStateException.class);
            CompletableFuture<String> ended = echo.later("sixth");
            assertThat(ended.get(20, TimeUnit.SECONDS)).isEqualTo("sixth");
            assertThat(onEventLoop(echo, () -> ended.join() + got(ended, 0) + got(ended, 20)))
                    .isEqualTo("sixth".repeat(3));
        }
    }

    /** @param seconds how long to wait; 0 means without a limit */
    private static String got(CompletableFuture<String> future, int seconds) {
        try {
            return seconds == 0 ? future.get() : future.get(seconds, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            throw new AssertionError(e);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aBlockingCallInAHandlerOnTheEventLoopIsRefused(boolean classic) {
        try (Client client = client(classic)) {
            service.other = echo(client);
            assertThatThrownBy(() -> echo(client).callsOn("text"))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED))
                    .hasMessageContaining("a blocking call on the event loop rpcx-server-");
        }
    }

    @Test
    @SuppressWarnings("try") // the test closes where this is not allowed
    void closingOnAnEventLoopIsRefused() throws Exception {
        try (Client client = Client.standard()) {
            EchoClient echo = echo(client);
            assertThatThrownBy(() -> onEventLoop(echo, () -> {
                        client.close();
                        return "";
                    }))
                    .hasMessageContaining("Client.close on the event loop");
            assertThatThrownBy(() -> onEventLoop(echo, () -> {
                        server.stop();
                        return "";
                    }))
                    .hasMessageContaining("Server.stop on the event loop");
            assertThat(echo.echo("still there")).isEqualTo("still there");
        }
    }

    @Test
    void theWatchSeesALoopThatIsBlocked() throws Exception {
        CountDownLatch free = new CountDownLatch(1);
        assertThatTheWatchSees(
                () -> {
                    try {
                        free.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                },
                free::countDown);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theWatchSeesALoopThatStandsAtALockWhoseHolderWaitsOrWorks(boolean works) throws Exception {
        Object lock = new Object();
        CountDownLatch held = new CountDownLatch(1);
        CountDownLatch free = new CountDownLatch(1);
        Thread holder = new Thread(() -> {
            synchronized (lock) {
                held.countDown();
                while (works && free.getCount() > 0) {
                    Thread.onSpinWait();
                }
                try {
                    free.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        });
        holder.start();
        held.await();
        assertThatTheWatchSees(
                () -> {
                    synchronized (lock) {
                        held.countDown();
                    }
                },
                free::countDown);
        holder.join();
    }

    private static void assertThatTheWatchSees(Runnable blocks, Runnable end) throws Exception {
        LoopThread blocked = new LoopThread(blocks, "blocked-on-purpose");
        blocked.start();
        try {
            await().until(() -> LoopChecker.REPORTS.stream().anyMatch(report -> report.contains("blocked-on-purpose")));
        } finally {
            end.run();
        }
        blocked.join();
        assertThat(LoopChecker.REPORTS).allMatch(report -> report.contains("blocked-on-purpose"));
        LoopChecker.REPORTS.clear();
    }
}
