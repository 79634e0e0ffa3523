package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests handlers that return the future of a call that they have made. This call is cancelled if the caller of the
 * handler is gone, but only if nobody else needs the call.
 */
@Timeout(60)
class SharedFuturesTest {
    @RPCXServer("down")
    static final class Down {
        final CountDownLatch loaded = new CountDownLatch(1);
        final AtomicInteger entered = new AtomicInteger();
        final AtomicInteger interrupted = new AtomicInteger();

        @Method
        String load(String key) throws InterruptedException {
            entered.incrementAndGet();
            try {
                loaded.await();
            } catch (InterruptedException e) {
                interrupted.incrementAndGet();
                throw e;
            }
            return "value of " + key;
        }
    }

    @RPCXClient(remoteServerName = "down")
    interface DownCalls {
        @Method(timeoutMillis = 30_000)
        RPCXFuture<String> load(String key);
    }

    @RPCXServer("front")
    static final class Front {
        final DownCalls down;
        final AtomicInteger entered = new AtomicInteger();
        final Map<String, RPCXFuture<String>> loading = new ConcurrentHashMap<>();

        Front(DownCalls down) {
            this.down = down;
        }

        @Method
        CompletableFuture<String> shared(String key) {
            RPCXFuture<String> one = loading.computeIfAbsent(key, down::load);
            entered.incrementAndGet();
            return one;
        }

        @Method
        CompletableFuture<String> own(String key) {
            entered.incrementAndGet();
            return down.load(key);
        }

        @Method
        CompletableFuture<String> watched(String key) {
            RPCXFuture<String> one = down.load(key);
            loading.put(key, one);
            CompletableFuture<Void> ignored = CompletableFuture.allOf(one);
            entered.incrementAndGet();
            return ignored.isDone() ? CompletableFuture.completedFuture("done") : one;
        }
    }

    @RPCXClient(remoteServerName = "front")
    interface FrontCalls {
        @Method(timeoutMillis = 30_000)
        CompletableFuture<String> shared(String key);

        @Method(value = "shared", timeoutMillis = 30_000)
        CompletableFuture<String> hurried(String key);

        @Method(timeoutMillis = 30_000)
        CompletableFuture<String> own(String key);

        @Method(timeoutMillis = 30_000)
        CompletableFuture<String> watched(String key);
    }

    private final Down behind = new Down();
    private final Server downServer =
            Server.builder(RegistryServer.registry(behind)).build().start();
    /**
     * An interceptor of this client hangs something on each call, as a log does. That does not count as somebody who
     * waits for the call.
     */
    private final Client ofFront = Client.builder()
            .interceptor((call, next) -> {
                Object result = next.proceed(call);
                ((CompletionStage<?>) result).whenComplete((value, thrown) -> {});
                return result;
            })
            .build();

    private final Front front = new Front(ofFront.create(DownCalls.class, "127.0.0.1", downServer.port()));
    private final List<Client> clients = new ArrayList<>();
    private Server server;

    @AfterEach
    void stop() {
        behind.loaded.countDown();
        clients.forEach(Client::close);
        ofFront.close();
        server.stop(Duration.ofMillis(200));
        downServer.stop(Duration.ofMillis(200));
    }

    private void serving(boolean isClassic, boolean isIntercepted) {
        Server.Builder builder = Server.builder(RegistryServer.registry(front)).classic(isClassic);
        if (isIntercepted) {
            builder.interceptor((call, next) -> next.proceed(call));
        }
        server = builder.build().start();
    }

    private FrontCalls calls(boolean isClassic) {
        Client client = (isClassic ? Client.builder().classic() : Client.builder()).build();
        clients.add(client);
        return client.create(FrontCalls.class, "127.0.0.1", server.port());
    }

    /** Gives the call up. On the classic wire there is no cancel, so the caller closes its connection. */
    private void giveUp(CompletableFuture<String> call, boolean isClassic) {
        int running = server.core().running();
        if (isClassic) {
            clients.get(clients.size() - 1).close();
        } else {
            call.cancel(true);
        }
        await().until(() -> server.core().running() < running);
    }

    @ParameterizedTest
    @CsvSource({"false, false", "false, true", "true, false", "true, true"})
    void whoGivesUpEndsNoFutureThatOthersWaitFor(boolean isClassic, boolean isIntercepted) {
        serving(isClassic, isIntercepted);
        FrontCalls patient = calls(isClassic);
        List<CompletableFuture<String>> all = new ArrayList<>();
        FrontCalls first = calls(isClassic);
        // the first caller has made the call to the other server, and gives up too
        CompletableFuture<String> maker = first.shared("a");
        await().until(() -> front.entered.get() == 1);
        for (int i = 0; i < 20; i++) {
            all.add(patient.shared("a"));
        }
        await().until(() -> front.entered.get() == 21);
        giveUp(maker, isClassic);
        CompletableFuture<String> hurried = calls(isClassic).hurried("a");
        await().until(() -> front.entered.get() == 22);
        giveUp(hurried, isClassic);
        behind.loaded.countDown();
        assertThat(all).allSatisfy(each -> assertThat(each.join()).isEqualTo("value of a"));
        assertThat(patient.shared("a").join()).isEqualTo("value of a");
        assertThat(behind.interrupted).hasValue(0);
    }

    @ParameterizedTest
    @CsvSource({"false, false", "true, true"})
    void norOneThatWasMadeForAnother(boolean isClassic, boolean isIntercepted) {
        serving(isClassic, isIntercepted);
        RPCXFuture<String> before = front.down.load("a");
        front.loading.put("a", before);
        CompletableFuture<String> hurried = calls(isClassic).hurried("a");
        await().until(() -> front.entered.get() == 1);
        giveUp(hurried, isClassic);
        behind.loaded.countDown();
        assertThat(calls(isClassic).shared("a").join()).isEqualTo("value of a");
    }

    @ParameterizedTest
    @CsvSource({"false, false", "true, true"})
    void norOneOnWhichSomethingElseHangs(boolean isClassic, boolean isIntercepted) {
        serving(isClassic, isIntercepted);
        CompletableFuture<String> hurried = calls(isClassic).watched("a");
        await().until(() -> behind.entered.get() == 1 && front.entered.get() == 1);
        giveUp(hurried, isClassic);
        behind.loaded.countDown();
        assertThat(front.loading.get("a").join()).isEqualTo("value of a");
    }

    @ParameterizedTest
    @CsvSource({"false, false", "false, true", "true, false", "true, true"})
    void aCallThatWasMadeForTheCallerAloneIsCancelledWithIt(boolean isClassic, boolean isIntercepted) {
        serving(isClassic, isIntercepted);
        CompletableFuture<String> given = calls(isClassic).own("a");
        await().until(() -> behind.entered.get() == 1);
        giveUp(given, isClassic);
        await().until(() -> behind.interrupted.get() == 1);
        assertThat(given).isCompletedExceptionally();
        try {
            given.join();
        } catch (CompletionException | java.util.concurrent.CancellationException e) {
            assertThat(e).isNotNull();
        }
    }
}
