package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests publishers and subscribers of handlers that block their threads. Their calls keep their places for as long. */
@Timeout(60)
class SubscribingPublishersTest {
    private static final int PLACES = 8;

    @RPCXServer("opening")
    static final class Service {
        final CountDownLatch opened = new CountDownLatch(1);
        final AtomicInteger within = new AtomicInteger();
        final AtomicInteger most = new AtomicInteger();
        final AtomicInteger begun = new AtomicInteger();

        private void open() {
            begun.incrementAndGet();
            most.accumulateAndGet(within.incrementAndGet(), Math::max);
            try {
                opened.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            } finally {
                within.decrementAndGet();
            }
        }

        @Method
        Flow.Publisher<Integer> subscribe() {
            return subscriber -> {
                open();
                subscriber.onSubscribe(new Asked(() -> subscriber.onComplete()));
            };
        }

        @Method
        Flow.Publisher<Integer> never() {
            return subscriber -> open();
        }

        @Method
        Flow.Publisher<Integer> fail() {
            return subscriber -> {
                open();
                throw new IllegalStateException("not today");
            };
        }

        @Method
        Flow.Publisher<Integer> request() {
            return subscriber -> subscriber.onSubscribe(new Asked(() -> {
                open();
                subscriber.onComplete();
            }));
        }

        @Method
        String echo(String text) {
            return text;
        }
    }

    private record Asked(Runnable action) implements Flow.Subscription {
        @Override
        public void request(long items) {
            action.run();
        }

        @Override
        public void cancel() {}
    }

    @RPCXClient(remoteServerName = "opening")
    interface Calls {
        Flow.Publisher<Integer> subscribe();

        Flow.Publisher<Integer> never();

        Flow.Publisher<Integer> fail();

        Flow.Publisher<Integer> request();

        String echo(String text);
    }

    private static final class Subscriber implements Flow.Subscriber<Integer> {
        private volatile Flow.Subscription subscription;
        volatile boolean isOver;

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(1);
        }

        @Override
        public void onNext(Integer item) {}

        @Override
        public void onError(Throwable thrown) {
            isOver = true;
        }

        @Override
        public void onComplete() {
            isOver = true;
        }
    }

    enum Way {
        SUBSCRIBE,
        NEVER,
        FAIL,
        REQUEST;

        Flow.Publisher<Integer> of(Calls calls) {
            return switch (this) {
                case SUBSCRIBE -> calls.subscribe();
                case NEVER -> calls.never();
                case FAIL -> calls.fail();
                case REQUEST -> calls.request();
            };
        }
    }

    @ParameterizedTest
    @EnumSource(Way.class)
    void whoCancelsHasNoMoreThreadsInPublishersThanPlaces(Way way) {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .maxCalls(PLACES)
                .build()
                .start();
        try (Client client = Client.builder().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            // each call is cancelled after it has begun, so its slot is free again
            for (int i = 0; i < 2 * PLACES; i++) {
                int before = service.begun.get();
                Subscriber subscriber = new Subscriber();
                way.of(calls).subscribe(subscriber);
                await().until(() -> service.begun.get() > before || subscriber.isOver);
                subscriber.subscription.cancel();
            }
            assertThat(service.within).hasValue(PLACES);
            assertThat(service.most).hasValue(PLACES);
            assertThat(Inside.core(server).ledger().held(Resource.CALLS)).isGreaterThanOrEqualTo(PLACES);
            assertThat(Inside.core(server).ledger().held(Resource.STREAMS)).isGreaterThanOrEqualTo(PLACES);
            service.opened.countDown();
            await().until(() -> Inside.core(server).ledger().held(Resource.STREAMS) == 0
                    && Inside.core(server).running() == 0);
            // the event loop frees a place after its stream and its handler have ended
            await().ignoreExceptionsInstanceOf(RPCXException.class)
                    .until(() -> calls.echo("free").equals("free"));
            // as many places are free as before
            for (int i = 0; i < 2 * PLACES; i++) {
                assertThat(calls.echo("still")).isEqualTo("still");
            }
        } finally {
            service.opened.countDown();
            server.stop(Duration.ofMillis(500));
        }
        await().until(() -> Inside.core(server).ledger().audit().isEmpty());
    }

    @Test
    void aStreamThatGoesOnDoesNotCountAsAHandler() {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service)).build().start();
        try (Client client = Client.builder().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            List<Subscriber> all = new ArrayList<>();
            for (int i = 0; i < PLACES; i++) {
                Subscriber subscriber = new Subscriber();
                calls.never().subscribe(subscriber);
                all.add(subscriber);
            }
            await().until(() -> service.within.get() == PLACES);
            await().until(() -> Inside.core(server).ledger().held(Resource.HANDLERS) == 0);
            service.opened.countDown();
            await().until(() -> service.within.get() == 0);
            all.forEach(each -> each.subscription.cancel());
            await().until(() -> Inside.core(server).ledger().held(Resource.STREAMS) == 0);
        } finally {
            service.opened.countDown();
            server.stop(Duration.ofMillis(500));
        }
        await().until(() -> Inside.core(server).ledger().audit().isEmpty());
    }

    @RPCXServer("taking")
    static final class Taking {
        final CountDownLatch taken = new CountDownLatch(1);
        final AtomicInteger within = new AtomicInteger();

        @Method
        void take(Flow.Publisher<Integer> items) throws InterruptedException {
            items.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription given) {
                    given.request(1);
                }

                @Override
                public void onNext(Integer item) {
                    within.incrementAndGet();
                    try {
                        taken.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    } finally {
                        within.decrementAndGet();
                    }
                }

                @Override
                public void onError(Throwable thrown) {}

                @Override
                public void onComplete() {}
            });
            new CountDownLatch(1).await();
        }
    }

    @RPCXClient(remoteServerName = "taking")
    interface TakingCalls {
        CompletableFuture<Void> take(Flow.Publisher<Integer> items);
    }

    @Test
    void norHasOneMoreThreadsInSubscribersThanPlaces() {
        Taking service = new Taking();
        Server server = Server.builder(RegistryServer.registry(service))
                .maxCalls(PLACES)
                .build()
                .start();
        try (Client client = Client.builder().build()) {
            TakingCalls calls = client.create(TakingCalls.class, "127.0.0.1", server.port());
            for (int i = 0; i < 2 * PLACES; i++) {
                int before = service.within.get();
                try (SubmissionPublisher<Integer> items = new SubmissionPublisher<>()) {
                    CompletableFuture<Void> call = calls.take(items);
                    await().until(() -> items.hasSubscribers() || call.isDone());
                    items.submit(1);
                    await().until(() -> service.within.get() > before || call.isDone());
                    call.cancel(true);
                }
            }
            assertThat(service.within).hasValue(PLACES);
            service.taken.countDown();
            await().until(() -> Inside.core(server).ledger().held(Resource.STREAMS) == 0
                    && Inside.core(server).running() == 0);
        } finally {
            service.taken.countDown();
            server.stop(Duration.ofMillis(500));
        }
        await().until(() -> Inside.core(server).ledger().audit().isEmpty());
    }
}
