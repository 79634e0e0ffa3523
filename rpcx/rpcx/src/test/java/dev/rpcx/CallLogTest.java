package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import dev.rpcx.internal.call.CallInvocation;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.ResourceBundle;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the log of calls writes through the JDK's own logging. */
@Timeout(60)
public class CallLogTest {
    @RPCXServer("greeter")
    public static final class Greetings {
        @Method
        String hello(String name) {
            return "Hello " + name;
        }

        @Method
        CompletableFuture<String> later(String name) {
            return CompletableFuture.failedFuture(
                    new RPCXException(RPCXException.Code.INVALID, "no \"" + name + "\"\nhere"));
        }
    }

    @RPCXServer("counter")
    public static final class Counting {
        @Method
        Flow.Publisher<Integer> count(int most) {
            return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
                private int next;

                @Override
                public void request(long items) {
                    for (long i = 0; i < items && next < most; i++) {
                        subscriber.onNext(next++);
                    }
                    if (next == most) {
                        subscriber.onComplete();
                    } else if (most < 0) {
                        subscriber.onError(new RPCXException(RPCXException.Code.INVALID, "below zero"));
                    }
                }

                @Override
                public void cancel() {}
            });
        }
    }

    @RPCXClient(remoteServerName = "counter")
    public interface Counter {
        Flow.Publisher<Integer> count(int most);
    }

    /** Asks for three items, cancels the stream at the item {@code last}, and keeps how the stream ends. */
    private static final class Three implements Flow.Subscriber<Integer> {
        private final int last;
        final CompletableFuture<String> end = new CompletableFuture<>();
        Flow.@Nullable Subscription subscription;

        Three(int last) {
            this.last = last;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(3);
        }

        @Override
        public void onNext(Integer item) {
            if (item == last) {
                Objects.requireNonNull(subscription).cancel();
                end.complete("given up");
            }
        }

        @Override
        public void onError(Throwable thrown) {
            end.complete("failed");
        }

        @Override
        public void onComplete() {
            end.complete("completed");
        }
    }

    @RPCXClient(remoteServerName = "greeter")
    public interface Greeter {
        String hello(String name);

        String later(String name);
    }

    /** Keeps the lines that have been logged. */
    public static final class Lines extends Handler {
        public final List<String> lines = new CopyOnWriteArrayList<>();

        @Override
        public void publish(LogRecord record) {
            lines.add(record.getLevel() + " " + record.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

    private final Logger logger = Logger.getLogger("dev.rpcx.calls");
    private final Lines written = new Lines();

    @BeforeEach
    void listen() {
        logger.addHandler(written);
        logger.setUseParentHandlers(false);
    }

    @AfterEach
    void stop() {
        logger.removeHandler(written);
        logger.setUseParentHandlers(true);
    }

    @Test
    void aCallIsALineThatAMachineCanRead() {
        Interceptor alice = (call, next) -> {
            CallContext.current().orElseThrow().authenticate(() -> "alice");
            return next.proceed(call);
        };
        Server server = Server.builder(RegistryServer.registry(new Greetings()))
                .interceptor(alice)
                .interceptor(CallLog.ofServer())
                .inProcess()
                .build()
                .start();
        Interceptor traced = (call, next) ->
                next.proceed(call.with("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        try (Client client = Client.builder().interceptor(traced).inProcess().build();
                Client logged = Client.builder()
                        .interceptor(CallLog.ofClient().slowerThan(Duration.ofMinutes(1)))
                        .inProcess()
                        .build()) {
            Greeter greeter = client.create(Greeter.class, "here", server.port());
            assertThat(greeter.hello("world")).isEqualTo("Hello world");
            await().until(() -> written.lines.size() == 1);
            assertThat(written.lines.get(0))
                    .matches(
                            "INFO \\{\"side\":\"server\",\"service\":\"greeter\",\"method\":\"hello\",\"outcome\":\"OK\","
                                    + "\"micros\":\\d+,\"leftMicros\":\\d+,\"principal\":\"alice\","
                                    + "\"trace\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}");

            assertThatThrownBy(() -> greeter.later("x")).isInstanceOf(RPCXException.class);
            await().until(() -> written.lines.size() == 2);
            assertThat(written.lines.get(1))
                    .startsWith("WARNING {")
                    .contains(
                            "\"outcome\":\"INVALID\",\"executed\":\"EXECUTED\",\"error\":\"no \\\"x\\\"\\u000ahere\"");

            // calls that end well and soon are left out, and calls that fail never are
            Greeter quiet = logged.create(Greeter.class, "here", server.port());
            assertThat(quiet.hello("again")).isEqualTo("Hello again");
            assertThatThrownBy(() -> quiet.later("y")).isInstanceOf(RPCXException.class);
            await().until(() -> written.lines.size() == 5);
            assertThat(written.lines)
                    .filteredOn(line -> line.contains("client"))
                    .singleElement()
                    .asString()
                    .contains("later");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"client", "server"})
    void aStreamIsALineAtItsEndAndOneForEachSubscription(String side) {
        Server.Builder serving = Server.builder(RegistryServer.registry(new Counting()));
        Client.Builder calling = Client.builder();
        boolean isServer = side.equals("server");
        if (isServer) {
            serving.interceptor(CallLog.ofServer());
        } else {
            calling.interceptor(CallLog.ofClient());
        }
        Server server = serving.inProcess().build().start();
        try (Client client = calling.inProcess().build()) {
            Counter counter = client.create(Counter.class, "here", server.port());
            Flow.Publisher<Integer> two = counter.count(2);
            assertThat(written.lines).isEmpty();
            for (int lines = 1; lines <= 2; lines++) {
                expectLine(lines, two, new Three(-1), "completed", "\"outcome\":\"OK\"");
            }
            expectLine(3, counter.count(-1), new Three(-1), "failed", "\"outcome\":\"INVALID\"");
            expectLine(4, counter.count(100), new Three(1), "given up", "\"outcome\":\"CANCELLED\"");
            if (!isServer) {
                Counter nowhere = client.create(Counter.class, "nowhere", 1);
                expectLine(5, nowhere.count(1), new Three(-1), "failed", "\"outcome\":\"UNAVAILABLE\"");
            }
        } finally {
            server.stop(Duration.ofMillis(200));
        }
        assertThat(written.lines).hasSize(isServer ? 4 : 5).allMatch(line -> line.contains("\"" + side + "\""));
    }

    private void expectLine(int lines, Flow.Publisher<Integer> stream, Three reader, String end, String outcome) {
        stream.subscribe(reader);
        assertThat(reader.end.join()).isEqualTo(end);
        await().until(() -> written.lines.size() >= lines);
        assertThat(written.lines).hasSize(lines);
        assertThat(written.lines.get(lines - 1)).contains(outcome);
    }

    /** The log throws an exception, for example because its disk is full. */
    @Test
    void aLogThatThrowsChangesNoResult() {
        Handler failing = new Handler() {
            @Override
            public void publish(LogRecord record) {
                written.lines.add(record.getMessage());
                throw new IllegalStateException("the disk is full");
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        logger.removeHandler(written);
        logger.addHandler(failing);
        Server server = Server.builder(RegistryServer.registry(new Greetings()))
                .interceptor(CallLog.ofServer())
                .inProcess()
                .build()
                .start();
        try (Client client =
                Client.builder().interceptor(CallLog.ofClient()).inProcess().build()) {
            Greeter greeter = client.create(Greeter.class, "here", server.port());
            assertThat(greeter.hello("world")).isEqualTo("Hello world");
            assertThatThrownBy(() -> greeter.later("x"))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID));
            await().until(() -> written.lines.size() == 4);
        } finally {
            logger.removeHandler(failing);
            server.stop(Duration.ofMillis(200));
        }
    }

    /** A logger that was brought along may fail before it is given anything to write. */
    private static final class Broken implements System.Logger {
        final AtomicInteger asked = new AtomicInteger();

        @Override
        public String getName() {
            return "broken";
        }

        @Override
        public boolean isLoggable(Level level) {
            asked.incrementAndGet();
            throw new IllegalStateException("no logging today");
        }

        @Override
        public void log(Level level, @Nullable ResourceBundle bundle, @Nullable String text, @Nullable Throwable t) {}

        @Override
        public void log(
                Level level, @Nullable ResourceBundle bundle, @Nullable String format, @Nullable Object... values) {}
    }

    private static Server serving(Object service, Interceptor... interceptors) {
        Server.Builder builder =
                Server.builder(RegistryServer.registry(service)).inProcess();
        for (Interceptor each : interceptors) {
            builder.interceptor(each);
        }
        return builder.build().start();
    }

    private static Client calling(Interceptor... interceptors) {
        Client.Builder builder = Client.builder().inProcess();
        for (Interceptor each : interceptors) {
            builder.interceptor(each);
        }
        return builder.build();
    }

    @ParameterizedTest
    @ValueSource(strings = {"client", "server"})
    void aLoggerThatFailsWhenItIsAskedChangesNoResult(String side) {
        Broken broken = new Broken();
        Interceptor[] log = {new CallLog(side, 0, broken)};
        boolean isServer = side.equals("server");
        Server server = serving(new Greetings(), isServer ? log : new Interceptor[0]);
        try (Client client = calling(isServer ? new Interceptor[0] : log)) {
            Greeter greeter = client.create(Greeter.class, "here", server.port());
            assertThatThrownBy(() -> greeter.later("x"))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID));
            assertThat(greeter.hello("world")).isEqualTo("Hello world");
            await().until(() -> broken.asked.get() == 2);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"client", "server"})
    void aSubscriberHearsTheEndWhateverTheLoggerDoes(String side) {
        Broken broken = new Broken();
        Interceptor[] log = {new CallLog(side, 0, broken)};
        boolean isServer = side.equals("server");
        Server server = serving(new Counting(), isServer ? log : new Interceptor[0]);
        try (Client client = calling(isServer ? new Interceptor[0] : log)) {
            Counter counter = client.create(Counter.class, "here", server.port());
            for (int most : new int[] {2, -1}) {
                Three reader = new Three(-1);
                counter.count(most).subscribe(reader);
                assertThat(reader.end.orTimeout(10, TimeUnit.SECONDS).join())
                        .isEqualTo(most < 0 ? "failed" : "completed");
            }
            Three givenUp = new Three(1);
            counter.count(100).subscribe(givenUp);
            assertThat(givenUp.end.join()).isEqualTo("given up");
            await().until(() -> broken.asked.get() == 3);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @RPCXServer("waiter")
    public static final class Waiting {
        public final CountDownLatch begun = new CountDownLatch(1);

        @Method
        String waits() throws InterruptedException {
            begun.countDown();
            Thread.sleep(60_000);
            return "too late";
        }

        @Method
        String givesUp() {
            throw new CancellationException("by the handler itself");
        }
    }

    @RPCXClient(remoteServerName = "waiter")
    public interface Waiter {
        RPCXFuture<String> waits();

        String givesUp();
    }

    @Test
    void aServersCallIsCancelledByItsCallerAlone() throws Exception {
        Waiting waiting = new Waiting();
        Server server = serving(waiting, CallLog.ofServer());
        try (Client client = calling()) {
            Waiter waiter = client.create(Waiter.class, "here", server.port());
            assertThatThrownBy(waiter::givesUp)
                    .isInstanceOfSatisfying(
                            RPCXException.class,
                            e -> assertThat(e.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED));
            await().until(() -> written.lines.size() == 1);
            assertThat(written.lines.get(0)).contains("\"outcome\":\"HANDLER_FAILED\"", "by the handler itself");
            RPCXFuture<String> waits = waiter.waits();
            waiting.begun.await();
            waits.cancel(true);
            await().until(() -> written.lines.size() == 2);
            assertThat(written.lines.get(1)).contains("\"method\":\"waits\",\"outcome\":\"CANCELLED\"");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** Returns streams that end in another way than their publishers say. */
    @RPCXServer("odd")
    public static final class Odd {
        public final CountDownLatch begun = new CountDownLatch(1);

        @Method
        Flow.Publisher<String> stream(String how) {
            switch (how) {
                case "late":
                    begun.countDown();
                    CallContext context = CallContext.current().orElseThrow();
                    while (!context.isCancelled()) {
                        LockSupport.parkNanos(1_000_000);
                    }
                    return subscriber -> {
                        throw new AssertionError("nobody wants it");
                    };
                case "throws":
                    return subscriber -> {
                        throw new IllegalStateException("subscribed to once too often");
                    };
                case "twice":
                    return subscriber -> {
                        Runnable complete = onceAskedAndSubscribed(subscriber);
                        for (int i = 0; i < 2; i++) {
                            boolean isFirst = i == 0;
                            subscriber.onSubscribe(new Flow.Subscription() {
                                @Override
                                public void request(long items) {
                                    if (isFirst) {
                                        complete.run();
                                    }
                                }

                                @Override
                                public void cancel() {}
                            });
                        }
                        complete.run();
                    };
                default:
                    String item = how.equals("large") ? "x".repeat(5 << 20) : how;
                    return subscriber -> {
                        subscriber.onSubscribe(new Flow.Subscription() {
                            @Override
                            public void request(long items) {}

                            @Override
                            public void cancel() {}
                        });
                        for (int i = 0; i < 10; i++) {
                            subscriber.onNext(item);
                        }
                    };
            }
        }
    }

    /**
     * Returns what completes the stream when it is run a second time. It is run when the first item is asked for, and
     * when there have been two subscriptions.
     */
    private static Runnable onceAskedAndSubscribed(Flow.Subscriber<? super String> subscriber) {
        AtomicInteger times = new AtomicInteger();
        return () -> {
            if (times.incrementAndGet() == 2) {
                subscriber.onNext("item");
                subscriber.onComplete();
            }
        };
    }

    @RPCXClient(remoteServerName = "odd")
    public interface OddClient {
        Flow.Publisher<String> stream(String how);
    }

    private static RPCXException end(Flow.Publisher<String> stream) {
        CompletableFuture<RPCXException> end = new CompletableFuture<>();
        stream.subscribe(new Flow.Subscriber<>() {
            @Override
            public void onSubscribe(Flow.Subscription given) {
                given.request(3);
            }

            @Override
            public void onNext(String item) {}

            @Override
            public void onError(Throwable thrown) {
                end.complete((RPCXException) thrown);
            }

            @Override
            public void onComplete() {
                end.completeExceptionally(new AssertionError("completed"));
            }
        });
        return end.orTimeout(30, TimeUnit.SECONDS).join();
    }

    @ParameterizedTest
    @CsvSource({
        "throws, HANDLER_FAILED, subscribed to once too often",
        "unasked, HANDLER_FAILED, nobody has asked for",
        "large, TOO_LARGE, an item cannot be sent"
    })
    void aStreamThatTheServerEndsHasTheLineOfWhatItsCallerReads(String how, RPCXException.Code code, String text) {
        Server server = serving(new Odd(), CallLog.ofServer());
        try (Client client = calling()) {
            RPCXException read = end(client.create(OddClient.class, "here", server.port()).stream(how));
            assertThat(read.code()).isEqualTo(code);
            assertThat(read).hasMessageContaining(text);
            await().until(() -> written.lines.size() == 1);
            assertThat(written.lines.get(0)).contains("\"outcome\":\"" + code + "\"", text);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
        assertThat(written.lines).hasSize(1);
    }

    /** Whoever is given a second subscription cancels it. */
    @Test
    void aPublisherThatSubscribesTwiceHasTheLineOfItsEnd() {
        Server server = serving(new Odd(), CallLog.ofServer());
        try (Client client = calling()) {
            CompletableFuture<String> end = new CompletableFuture<>();
            client.create(OddClient.class, "here", server.port()).stream("twice")
                    .subscribe(new Flow.Subscriber<>() {
                        @Override
                        public void onSubscribe(Flow.Subscription given) {
                            given.request(3);
                        }

                        @Override
                        public void onNext(String item) {}

                        @Override
                        public void onError(Throwable thrown) {
                            end.completeExceptionally(thrown);
                        }

                        @Override
                        public void onComplete() {
                            end.complete("completed");
                        }
                    });
            assertThat(end.orTimeout(30, TimeUnit.SECONDS).join()).isEqualTo("completed");
            await().until(() -> written.lines.size() == 1);
            assertThat(written.lines.get(0)).contains("\"outcome\":\"OK\"");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
        assertThat(written.lines).hasSize(1);
    }

    @Test
    void aStreamThatNobodyIsLeftToReadHasALineToo() throws Exception {
        Odd odd = new Odd();
        Server server = serving(odd, CallLog.ofServer());
        try (Client client = calling()) {
            AtomicReference<Flow.Subscription> subscription = new AtomicReference<>();
            client.create(OddClient.class, "here", server.port()).stream("late").subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription given) {
                    subscription.set(given);
                    given.request(1);
                }

                @Override
                public void onNext(String item) {}

                @Override
                public void onError(Throwable thrown) {}

                @Override
                public void onComplete() {}
            });
            odd.begun.await();
            await().until(() -> subscription.get() != null);
            subscription.get().cancel();
            await().until(() -> written.lines.size() == 1);
            assertThat(written.lines.get(0)).contains("\"method\":\"stream\",\"outcome\":\"CANCELLED\"");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
        assertThat(written.lines).hasSize(1);
    }

    /** Returns null, directly and in stages, for types that allow null and for types that do not. */
    @RPCXServer("nothing")
    @SuppressWarnings("NullAway")
    public static final class Nothing {
        @Method
        String text() {
            return null;
        }

        @Method
        CompletableFuture<String> noStage() {
            return null;
        }

        @Method
        CompletableFuture<String> done() {
            return CompletableFuture.completedFuture(null);
        }

        @Method
        CompletionStage<String> later() {
            return CompletableFuture.supplyAsync(
                    () -> null, CompletableFuture.delayedExecutor(50, TimeUnit.MILLISECONDS));
        }

        @Method
        CompletionStage<String> ofAnotherClass() {
            return CompletableFuture.completedStage(null);
        }

        @Method
        Flow.Publisher<String> stream() {
            return null;
        }

        @Method
        @Nullable
        String mayBeNull() {
            return null;
        }

        @Method
        CompletableFuture<Void> isVoid() {
            return CompletableFuture.supplyAsync(
                    () -> null, CompletableFuture.delayedExecutor(50, TimeUnit.MILLISECONDS));
        }

        @Method
        CompletableFuture<Void> noStageOfVoid() {
            return null;
        }
    }

    @RPCXClient(remoteServerName = "nothing")
    public interface NothingClient {
        RPCXFuture<String> text();

        RPCXFuture<String> noStage();

        RPCXFuture<String> done();

        RPCXFuture<String> later();

        RPCXFuture<String> ofAnotherClass();

        @Nullable
        String mayBeNull();

        RPCXFuture<Void> isVoid();

        RPCXFuture<Void> noStageOfVoid();
    }

    @RPCXClient(remoteServerName = "nothing")
    public interface NoStreamClient {
        Flow.Publisher<String> stream();
    }

    private static Client callingOver(boolean isClassic) {
        Client.Builder builder = Client.builder();
        return (isClassic ? builder.classic() : builder).build();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aResultThatIsNullHasTheLineOfWhatItsCallerReads(boolean isClassic) {
        Server server = Server.builder(RegistryServer.registry(new Nothing()))
                .classic(isClassic)
                .interceptor(CallLog.ofServer())
                .build()
                .start();
        try (Client client = callingOver(isClassic)) {
            NothingClient nothing = client.create(NothingClient.class, "127.0.0.1", server.port());
            for (Supplier<RPCXFuture<String>> call : List.<Supplier<RPCXFuture<String>>>of(
                    nothing::text, nothing::noStage, nothing::done, nothing::later, nothing::ofAnotherClass)) {
                assertThatThrownBy(() -> call.get().join())
                        .cause()
                        .isInstanceOfSatisfying(
                                RPCXException.class, read -> expectFailure(read, "result cannot be sent"));
            }
            if (!isClassic) {
                NoStreamClient streams = client.create(NoStreamClient.class, "127.0.0.1", server.port());
                expectFailure(end(streams.stream()), "no stream");
            }
            written.lines.clear();
            assertThat(nothing.mayBeNull()).isNull();
            assertThat(nothing.isVoid().join()).isNull();
            assertThat(nothing.noStageOfVoid().join()).isNull();
            await().until(() -> written.lines.size() == 3);
            assertThat(written.lines).allMatch(line -> line.contains("\"outcome\":\"OK\""));
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private void expectFailure(RPCXException read, String text) {
        assertThat(read.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
        assertThat(read.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        assertThat(read).hasMessageContaining(text);
        await().until(() -> written.lines.size() == 1);
        assertThat(written.lines.get(0)).contains("\"outcome\":\"HANDLER_FAILED\"", text);
        written.lines.clear();
    }

    @Test
    void anEntryThatIsComputedForEachAttemptIsNotComputedForTheLog() {
        AtomicInteger computed = new AtomicInteger();
        Interceptor traced = (call, next) -> {
            computed.set(0);
            return next.proceed(call.withEachAttempt("traceparent", () -> {
                if (computed.incrementAndGet() > 1) {
                    throw new IllegalStateException("not for an attempt");
                }
                return "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            }));
        };
        Server server = serving(new Greetings());
        try (Client client = calling(traced, CallLog.ofClient())) {
            Greeter greeter = client.create(Greeter.class, "here", server.port());
            assertThatThrownBy(() -> greeter.later("x")).isInstanceOfSatisfying(RPCXException.class, e -> {
                assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID);
                assertThat(e.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
            });
            assertThat(greeter.hello("world")).isEqualTo("Hello world");
            assertThat(computed).hasValue(1);
            await().until(() -> written.lines.size() == 2);
            assertThat(written.lines).noneMatch(line -> line.contains("trace"));
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** The stage comes from an interceptor that stands behind the log. */
    @Test
    void aStageThatTakesNothingThatDependsOnItIsTheResultAllTheSame() throws Throwable {
        CompletionStage<String> stage = new CompletableFuture<>() {
            @Override
            public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> action) {
                throw new IllegalStateException("nothing may depend on this");
            }
        };
        Interceptor.Invocation call = new CallInvocation("greeter", "later", new Object[0], Metadata.EMPTY, null);
        assertThat(CallLog.ofClient().intercept(call, proceeding -> stage)).isSameAs(stage);
    }

    @Test
    void charactersThatAreNotSeenAreEscapedWhateverTheirPlane() {
        int[] unseen = {
            0x7, 0xAD, 0x34F, 0x115F, 0x180B, 0x200B, 0x202E, 0x2028, 0x3164, 0xFE0F, 0xFFA0, 0xE0001, 0xE007F, 0xE0100,
            0x1D173, 0x2003, 0x2800, 0xD800
        };
        for (int c : unseen) {
            String text = Character.toString(c);
            String escaped = text.chars()
                    .mapToObj(unit -> String.format("\\u%04x", unit))
                    .collect(Collectors.joining());
            assertThat(CallLog.escaped("adm" + text + "in")).isEqualTo("adm" + escaped + "in");
        }
        assertThat(CallLog.escaped("ä😀 \"\\")).isEqualTo("ä😀 \\\"\\\\");
        // no surrogate pair is cut in two
        assertThat(CallLog.escaped("x" + "😀".repeat(600))).isEqualTo("x" + "😀".repeat(499));
    }

    @Test
    void nothingThatACallerSendsSteersTheTerminalOfWhoReadsTheLog() {
        Server server = Server.builder(RegistryServer.registry(new Greetings()))
                .interceptor(CallLog.ofServer())
                .inProcess()
                .build()
                .start();
        String hostile = "\u001B[31m\u009B31m\u0085\u007F\n\r\t\"\\";
        Interceptor traced = (call, next) -> next.proceed(call.with("traceparent", "00-" + hostile.repeat(4)));
        try (Client client = Client.builder().interceptor(traced).inProcess().build()) {
            assertThat(client.create(Greeter.class, "here", server.port()).hello("world"))
                    .isEqualTo("Hello world");
            await().until(() -> written.lines.size() == 1);
            assertThat(written.lines.get(0)).contains("\\u009b31m");
            assertThat(written.lines.get(0).chars().filter(Character::isISOControl))
                    .isEmpty();
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void causesThatGoRoundInACircleAreFollowedForAWhile() {
        CompletionException circle = new CompletionException("round", null) {
            @Override
            public synchronized Throwable getCause() {
                return this;
            }
        };
        assertTimeoutPreemptively(
                Duration.ofSeconds(10),
                () -> assertThat(RPCXException.cause(circle)).isSameAs(circle));
        assertThat(RPCXException.cause(new CompletionException(new CompletionException("end", null))))
                .hasMessage("end");
    }
}
