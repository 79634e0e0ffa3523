package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CallsTest {
    record Person(String name, int age, List<String> tags) {}

    @RPCXServer("greeter")
    static class Greetings {
        final AtomicInteger notices = new AtomicInteger();
        final CountDownLatch blocks = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        final AtomicInteger interrupted = new AtomicInteger();

        @Method("hello")
        String greet(String name) {
            return "Hello " + name;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String inline(String name) {
            return name;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled(String name) {
            return Thread.currentThread().getName() + name;
        }

        @Method
        int sum(int a, long b, List<Integer> more) {
            return a + (int) b + more.stream().mapToInt(i -> i).sum();
        }

        @Method
        Person older(Person person) {
            return new Person(person.name, person.age + 1, person.tags);
        }

        @Method
        String doubled(String text) {
            return text + text;
        }

        @Method
        void nothing() {}

        @Method
        void notice(String text) {
            notices.incrementAndGet();
        }

        @Method
        CompletionStage<String> later(String text) {
            return CompletableFuture.supplyAsync(() -> text);
        }

        @Method
        String fail(String message) {
            throw new IllegalStateException(message);
        }

        @Method
        String refuse(String message) {
            throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, message);
        }

        @Method
        long remaining() {
            return CallContext.current().orElseThrow().remainingNanos();
        }

        @Method
        String block() {
            blocks.countDown();
            try {
                release.await();
                return "released";
            } catch (InterruptedException e) {
                interrupted.incrementAndGet();
                return "interrupted";
            }
        }
    }

    @RPCXClient(remoteServerName = "greeter")
    interface Greeter {
        @Method("hello")
        String hello(String name);

        String inline(String name);

        String pooled(String name);

        int sum(int a, long b, List<Integer> more);

        Person older(Person person);

        void nothing();

        String doubled(String text);

        @OneWay
        void notice(String text);

        CompletableFuture<String> later(String text);

        @Method("later")
        CompletionStage<String> laterStage(String text);

        String fail(String message);

        String refuse(String message);

        long remaining();

        String block();

        @Method("block")
        CompletableFuture<String> blockAsync();

        @Method(value = "block", timeoutMillis = 100)
        String blockShortly();

        String unpublished();

        default String twice(String name) {
            return hello(name) + hello(name);
        }
    }

    @RPCXClient(remoteServerName = "nobody")
    interface Nobody {
        String hello(String name);
    }

    private final Greetings greetings = new Greetings();
    private Server server;
    private Client client;
    private Greeter greeter;

    @BeforeEach
    void start() {
        server = new Server(0, RegistryServer.registry(greetings)).start();
        client = Client.standard();
        greeter = client.create(Greeter.class, "127.0.0.1", server.port());
    }

    @AfterEach
    void stop() {
        greetings.release.countDown();
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    @Test
    void argumentsAndResultsOfManyTypesComeBackEqual() {
        for (int i = 0; i < 3; i++) {
            assertThat(greeter.hello("world")).isEqualTo("Hello world");
            assertThat(greeter.inline("here")).isEqualTo("here");
            assertThat(greeter.pooled("!")).startsWith("rpcx-handler-").endsWith("!");
            assertThat(greeter.sum(1, 2L, List.of(3, 4))).isEqualTo(10);
            Person person = new Person("Ann", 41, List.of("a", "b"));
            assertThat(greeter.older(person)).isEqualTo(new Person("Ann", 42, List.of("a", "b")));
            greeter.nothing();
            assertThat(greeter.twice("x")).isEqualTo("Hello xHello x");
            assertThat(greeter.later("soon").join()).isEqualTo("soon");
            assertThat(greeter.laterStage("soon").toCompletableFuture().join()).isEqualTo("soon");
        }
    }

    @Test
    void messagesOfEverySizeComeBackWhole() {
        for (int size :
                new int[] {0, 1, 100, 127, 128, 255, 256, 16_000, 16_383, 16_384, 16_400, 65_536, 1_000_000, 4_000_000
                }) {
            String text = "x".repeat(size);
            assertThat(greeter.inline(text)).as("%s", size).isEqualTo(text);
            assertThat(greeter.hello(text)).as("%s", size).isEqualTo("Hello " + text);
            assertThat(greeter.later(text).join()).as("%s", size).isEqualTo(text);
        }
    }

    @Test
    void messagesAboveTheLimitAreRefusedAndTheConnectionLives() {
        assertThatThrownBy(() -> greeter.hello("x".repeat(5_000_000)))
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                });
        assertThatThrownBy(() -> greeter.doubled("x".repeat(3_000_000)))
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
                });
        assertThat(greeter.hello("you")).isEqualTo("Hello you");
    }

    @Test
    void manyCallersShareAConnectionAndEachGetsItsOwnReply() throws Exception {
        ExecutorService callers = Executors.newFixedThreadPool(64);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int caller = 0; caller < 64; caller++) {
                String prefix = "c" + caller + "-";
                all.add(callers.submit(() -> {
                    for (int i = 0; i < 200; i++) {
                        assertThat(greeter.hello(prefix + i)).isEqualTo("Hello " + prefix + i);
                        assertThat(greeter.inline(prefix + i)).isEqualTo(prefix + i);
                    }
                }));
            }
            for (Future<?> one : all) {
                one.get(50, TimeUnit.SECONDS);
            }
        } finally {
            callers.shutdownNow();
        }
    }

    @Test
    void aNoticeIsTakenWithoutWaitingForItsEnd() {
        for (int i = 0; i < 100; i++) {
            greeter.notice("n" + i);
        }
        await().until(() -> greetings.notices.get() == 100);
        assertThat(greeter.hello("after")).isEqualTo("Hello after");
    }

    @Test
    void whatAHandlerThrowsReachesTheCallerAsCodeAndMessage() {
        assertThatThrownBy(() -> greeter.fail("no such luck")).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
            assertThat(e.getMessage()).isEqualTo("no such luck");
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        });
        assertThatThrownBy(() -> greeter.refuse("who are you"))
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAUTHENTICATED));
    }

    @Test
    void anUnknownServiceAndAnUnknownMethodLookAlike() {
        Nobody nobody = client.create(Nobody.class, "127.0.0.1", server.port());
        RPCXException service = thrown(() -> nobody.hello("x"));
        RPCXException method = thrown(() -> greeter.unpublished());
        assertThat(service.code()).isEqualTo(RPCXException.Code.NOT_FOUND);
        // The server uses the same text for both. Only the names differ, which are those that this client has called.
        assertThat(String.valueOf(service.getMessage()).replace("nobody/hello", "greeter/unpublished"))
                .isEqualTo(method.getMessage());
        assertThat(service.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
    }

    @Test
    void anUnknownServiceAndAnUnknownMethodTakeTheSameTime() {
        Nobody nobody = client.create(Nobody.class, "127.0.0.1", server.port());
        int calls = LongForm.of(2000, 50_000);
        long[] service = new long[calls];
        long[] method = new long[calls];
        // the two kinds alternate, so that whatever else the machine does affects both
        for (int i = 0; i < calls; i++) {
            service[i] = nanos(() -> nobody.hello("x"));
            method[i] = nanos(() -> greeter.unpublished());
        }
        java.util.Arrays.sort(service);
        java.util.Arrays.sort(method);
        LongForm.figure(
                10,
                "the same text; medians of %d calls each: unknown service %.1f µs, unknown method %.1f µs",
                calls,
                service[calls / 2] / 1e3,
                method[calls / 2] / 1e3);
        assertThat((double) service[calls / 2] / method[calls / 2]).isBetween(0.75, 1.33);
    }

    private static long nanos(Runnable call) {
        long begin = System.nanoTime();
        thrown(call);
        return System.nanoTime() - begin;
    }

    @Test
    void aCallEndsWhenItsTimeIsOverAndItsHandlerIsInterrupted() {
        // on a busy machine the time may be over before the handler begins
        await().until(() -> {
            RPCXException late = thrown(() -> greeter.blockShortly());
            assertThat(late.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
            return greetings.blocks.getCount() == 0;
        });
        // it is more than one if the handler of an earlier call began just after the check above
        await().until(() -> greetings.interrupted.get() >= 1);
        assertThat(greeter.hello("still")).isEqualTo("Hello still");
    }

    @Test
    void aCancelledFutureInterruptsTheHandler() throws Exception {
        CompletableFuture<String> blocked = greeter.blockAsync();
        greetings.blocks.await();
        blocked.cancel(true);
        await().until(() -> greetings.interrupted.get() == 1);
    }

    @Test
    void anInterruptedCallerGivesTheCallUp() throws Exception {
        CompletableFuture<RPCXException> ended = new CompletableFuture<>();
        Thread caller = new Thread(() -> ended.complete(thrown(() -> greeter.block())));
        caller.start();
        greetings.blocks.await();
        await().until(() -> caller.getState() == Thread.State.WAITING);
        caller.interrupt();
        assertThat(ended.get(10, TimeUnit.SECONDS).code()).isEqualTo(RPCXException.Code.CANCELLED);
        await().until(() -> greetings.interrupted.get() == 1);
        assertThat(greeter.hello("still")).isEqualTo("Hello still");
    }

    @Test
    void theTimeGivenReachesTheHandlerAndIsNeverMore() {
        assertThat(greeter.remaining()).isBetween(1L, Duration.ofSeconds(10).toNanos());
        long asked = Duration.ofSeconds(3).toNanos();
        assertThat(CallContext.within(Duration.ofSeconds(3), greeter::remaining))
                .isBetween(1L, asked);
        assertThatThrownBy(() -> CallContext.within(Duration.ofMillis(50), greeter::block))
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED));
    }

    @Test
    void withoutAServerACallIsUnavailableAndWorksAgainAfterARestart() {
        greeter.hello("before");
        int port = server.port();
        // the client has disconnected when the stop returns
        server.stop(Duration.ofSeconds(10));
        RPCXException gone = thrown(() -> greeter.hello("down"));
        assertThat(gone.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
        assertThat(gone.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        server = new Server(port, RegistryServer.registry(greetings)).start();
        assertThat(greeter.hello("again")).isEqualTo("Hello again");
    }

    @Test
    void closingTheClientEndsCallsInFlight() throws Exception {
        CompletableFuture<RPCXException> ended = new CompletableFuture<>();
        Thread caller = new Thread(() -> ended.complete(thrown(() -> greeter.block())));
        caller.start();
        greetings.blocks.await();
        await().until(() -> caller.getState() == Thread.State.WAITING);
        client.close();
        assertThat(ended.get(10, TimeUnit.SECONDS).code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
        assertThat(thrown(() -> greeter.hello("after")).code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
        await().until(() -> greetings.interrupted.get() == 1);
    }

    @Test
    void stoppingTheServerFinishesCallsUnderWay() throws Exception {
        CompletableFuture<String> blocked = greeter.blockAsync();
        greetings.blocks.await();
        CompletableFuture<Void> stopped = CompletableFuture.runAsync(() -> server.stop(Duration.ofSeconds(20)));
        greetings.release.countDown();
        assertThat(blocked.get(10, TimeUnit.SECONDS)).isEqualTo("released");
        stopped.get(10, TimeUnit.SECONDS);
    }

    private static RPCXException thrown(Runnable call) {
        try {
            call.run();
        } catch (RPCXException e) {
            return e;
        }
        throw new AssertionError("the call brought a result (expected: an RPCXException)");
    }
}
