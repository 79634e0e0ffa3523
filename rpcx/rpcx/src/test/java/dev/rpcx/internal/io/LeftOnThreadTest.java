package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Again;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.call.StreamsTest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests handlers, and other code of the user, that leave their thread in another state than they found it in. */
@Timeout(60)
class LeftOnThreadTest {
    @RPCXServer("careless")
    static final class Careless {
        @Method
        void interruptsItself() {
            Thread.currentThread().interrupt();
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        void interruptsItselfInThePool() {
            Thread.currentThread().interrupt();
            Thread.currentThread().setContextClassLoader(null);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        void interruptsItselfOnTheLoop() {
            Thread.currentThread().interrupt();
        }

        /** Fails if its thread is interrupted. */
        @Method
        void waits() throws InterruptedException {
            new SynchronousQueue<String>().poll(1, TimeUnit.MICROSECONDS);
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        boolean waitsInThePool() throws InterruptedException {
            waits();
            return Thread.currentThread().getContextClassLoader() != null;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        boolean isInterruptedOnTheLoop() {
            return Thread.currentThread().isInterrupted();
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        Left bringsOnTheLoop() {
            return new Left(1);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        void takesOnTheLoop(Left ignored) {}

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        void failsOnTheLoop() {
            throw new IllegalStateException() {
                private static final long serialVersionUID = 1;

                @Override
                public String getMessage() {
                    Thread.currentThread().interrupt();
                    return "left";
                }
            };
        }

        /** Returns the number of items. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<Integer> uploadInterrupts(Flow.Publisher<Integer> items) {
            CompletableFuture<Integer> count = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                private int seen;

                @Override
                public void onSubscribe(Flow.Subscription given) {
                    given.request(Long.MAX_VALUE);
                }

                @Override
                public void onNext(Integer item) {
                    seen++;
                    Thread.currentThread().interrupt();
                }

                @Override
                public void onError(Throwable thrown) {
                    count.completeExceptionally(thrown);
                }

                @Override
                public void onComplete() {
                    count.complete(seen);
                    Thread.currentThread().interrupt();
                }
            });
            return count;
        }

        /** Breaks a rule on a thread of its own. Returns the thread on which its subscriber learns of that. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> uploadAsksForNothing(Flow.Publisher<Integer> items) {
            CompletableFuture<String> told = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription given) {
                    new Thread(() -> given.request(0)).start();
                }

                @Override
                public void onNext(Integer item) {}

                @Override
                public void onError(Throwable thrown) {
                    told.complete(Thread.currentThread().getClass().getSimpleName());
                }

                @Override
                public void onComplete() {}
            });
            return told;
        }
    }

    @RPCXClient(remoteServerName = "careless")
    interface CarelessClient {
        CompletableFuture<Void> interruptsItself();

        void interruptsItselfInThePool();

        void interruptsItselfOnTheLoop();

        void waits();

        boolean waitsInThePool();

        boolean isInterruptedOnTheLoop();

        int uploadInterrupts(Flow.Publisher<Integer> items);

        String uploadAsksForNothing(Flow.Publisher<Integer> items);
    }

    /** A client for either wire. */
    @RPCXClient(remoteServerName = "careless")
    interface LoopClient {
        Left bringsOnTheLoop();

        void takesOnTheLoop(Left left);

        void failsOnTheLoop();

        boolean isInterruptedOnTheLoop();
    }

    @RPCXServer("slow")
    static final class Slow {
        private final CompletableFuture<String> first = new CompletableFuture<>();
        private final CompletableFuture<String> second = new CompletableFuture<>();
        private final AtomicInteger calls = new AtomicInteger();

        @Method(idempotent = true)
        CompletableFuture<String> take(Left ignored) {
            return calls.incrementAndGet() == 1 ? first : second;
        }

        @Method
        Left bring() {
            return new Left(1);
        }

        @Method
        CompletableFuture<String> waitForFirst() {
            return first;
        }
    }

    @RPCXClient(remoteServerName = "slow")
    interface SlowClient {
        @Method(idempotent = true, hedgeMillis = 20)
        CompletableFuture<String> take(Left left);

        CompletableFuture<Left> bring();

        CompletableFuture<String> waitForFirst();
    }

    /** A value that interrupts the event loop which reads or writes it. The number 0 cannot be read. */
    record Left(int number) {
        Left {
            interruptLoop();
            if (number == 0 && Thread.currentThread() instanceof LoopThread) {
                throw new IllegalArgumentException("0");
            }
        }

        @Override
        public int number() {
            interruptLoop();
            return number;
        }

        private static void interruptLoop() {
            if (Thread.currentThread() instanceof LoopThread) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anInterruptThatTypesOfACallLeaveOnTheLoopDoesNotMeetTheNextCall(boolean isClassic) {
        Server server = Server.builder(RegistryServer.registry(new Careless()))
                .host("127.0.0.1")
                .eventLoops(1)
                .classic(isClassic)
                .build()
                .start();
        Client.Builder builder = isClassic ? Client.builder().classic() : Client.builder();
        try (Client client = builder.build()) {
            LoopClient calls = client.create(LoopClient.class, "127.0.0.1", server.port());
            calls.bringsOnTheLoop();
            assertThat(calls.isInterruptedOnTheLoop()).as("by an accessor").isFalse();
            assertThatThrownBy(() -> calls.takesOnTheLoop(new Left(0))).isInstanceOf(RPCXException.class);
            assertThat(calls.isInterruptedOnTheLoop()).as("by a constructor").isFalse();
            assertThatThrownBy(calls::failsOnTheLoop).isInstanceOf(RPCXException.class);
            assertThat(calls.isInterruptedOnTheLoop()).as("by a message").isFalse();
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** A second attempt reads its arguments on an event loop of the client. */
    @Test
    void anInterruptThatAnArgumentLeavesOnTheClientsLoopMeetsNothingElseThere() {
        Slow slow = new Slow();
        Server server = Server.builder(RegistryServer.registry(slow))
                .host("127.0.0.1")
                .build()
                .start();
        try (Client client = Client.builder().eventLoops(1).build()) {
            SlowClient calls = client.create(SlowClient.class, "127.0.0.1", server.port());
            CompletableFuture<String> seen = calls.take(new Left(1)).thenApply(LeftOnThreadTest::withThread);
            // the answer comes only now, so that the loop goes on with it
            slow.second.complete("second");
            assertThat(seen.join()).isEqualTo("second, on a loop: true, interrupted: false");
        } finally {
            slow.first.complete("first");
            server.stop(Duration.ofMillis(200));
        }
    }

    private static String withThread(String text) {
        return text + ", on a loop: " + (Thread.currentThread() instanceof LoopThread) + ", interrupted: "
                + Thread.currentThread().isInterrupted();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anInterruptThatAResultLeavesOnTheClientsLoopDoesNotMeetTheNextCall(boolean isClassic) {
        Slow slow = new Slow();
        Server server = Server.builder(RegistryServer.registry(slow))
                .host("127.0.0.1")
                .classic(isClassic)
                .build()
                .start();
        Client.Builder builder = Client.builder().eventLoops(1);
        try (Client client = (isClassic ? builder.classic() : builder).build()) {
            SlowClient calls = client.create(SlowClient.class, "127.0.0.1", server.port());
            CompletableFuture<String> seen = calls.waitForFirst().thenApply(LeftOnThreadTest::withThread);
            calls.bring().join();
            slow.first.complete("first");
            assertThat(seen.join()).isEqualTo("first, on a loop: true, interrupted: false");
        } finally {
            slow.first.complete("first");
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void anInterruptThatIsLeftWhereACallWaitedInVainDoesNotMeetTheNextOne() throws Exception {
        try (Client client = Client.builder()
                .eventLoops(1)
                .callTimeout(Duration.ofMillis(200))
                .build()) {
            // no instance is ever found
            SlowClient calls = client.create(SlowClient.class, listener -> () -> {});
            // if a call has already ended when its callback is attached, the callback does not run on the loop
            Again.upToFiveTimes(40, () -> {
                CompletableFuture<?> first =
                        calls.waitForFirst().whenComplete((value, failure) -> Left.interruptLoop());
                CompletableFuture<String> seen =
                        calls.waitForFirst().handle((value, failure) -> LeftOnThreadTest.withThread("failed"));
                assertThat(seen.join()).isEqualTo("failed, on a loop: true, interrupted: false");
                assertThat(first).isCompletedExceptionally();
            });
        }
    }

    @Test
    void anInterruptThatAHandlerLeavesDoesNotMeetTheNextCall() {
        Server server = Server.builder(RegistryServer.registry(new Careless()))
                .host("127.0.0.1")
                .eventLoops(1)
                .poolSize(1)
                .build()
                .start();
        try (Client client = Client.standard()) {
            CarelessClient calls = client.create(CarelessClient.class, "127.0.0.1", server.port());
            for (int round = 0; round < 20; round++) {
                // there are more of these calls than carriers: if each kept one busy, no call would be answered any
                // more
                List<CompletableFuture<Void>> together = new ArrayList<>();
                for (int i = 0; i < 4 * Runtime.getRuntime().availableProcessors(); i++) {
                    together.add(calls.interruptsItself());
                }
                together.forEach(CompletableFuture::join);
                calls.waits();
                calls.interruptsItselfInThePool();
                assertThat(calls.waitsInThePool())
                        .as("the pool's thread has its class loader")
                        .isTrue();
                calls.interruptsItselfOnTheLoop();
                assertThat(calls.isInterruptedOnTheLoop()).isFalse();
                assertThat(calls.uploadInterrupts(items())).isEqualTo(3);
                assertThat(calls.isInterruptedOnTheLoop())
                        .as("behind a subscriber")
                        .isFalse();
            }
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void aSubscriberOnAnEventLoopIsToldThereThatItHasBrokenARule() {
        Server server = Server.builder(RegistryServer.registry(new Careless()))
                .host("127.0.0.1")
                .build()
                .start();
        try (Client client = Client.standard()) {
            CarelessClient calls = client.create(CarelessClient.class, "127.0.0.1", server.port());
            assertThat(calls.uploadAsksForNothing(items())).isEqualTo(LoopThread.class.getSimpleName());
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static Flow.Publisher<Integer> items() {
        return new StreamsTest.Made<>(3, i -> i);
    }
}
