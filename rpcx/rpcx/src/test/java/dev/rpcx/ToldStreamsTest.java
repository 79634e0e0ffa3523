package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests tasks that a handler has registered for the cancellation of its call, if the handler returns a stream. The
 * handler ends long before its stream. The tasks run if the stream is ended by something else, and not if it ends by
 * itself.
 */
@Timeout(60)
class ToldStreamsTest {
    @RPCXServer("told")
    static final class Service {
        volatile AtomicInteger told = new AtomicInteger(); // it belongs to the last call
        final AtomicReference<CallContext> context = new AtomicReference<>();
        final AtomicInteger subscribed = new AtomicInteger();

        @Method
        Flow.Publisher<String> never() {
            return publisher(false);
        }

        @Method
        Flow.Publisher<String> one() {
            return publisher(true);
        }

        private Flow.Publisher<String> publisher(boolean ends) {
            CallContext here = CallContext.current().orElseThrow();
            told = new AtomicInteger();
            here.onCancel(told::incrementAndGet);
            context.set(here);
            return to -> to.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    subscribed.incrementAndGet();
                    if (ends) {
                        to.onNext("one");
                        to.onComplete();
                    }
                }

                @Override
                public void cancel() {}
            });
        }
    }

    @RPCXClient(remoteServerName = "told")
    interface ToldClient {
        Flow.Publisher<String> never();

        Flow.Publisher<String> one();
    }

    private static final class Subscriber implements Flow.Subscriber<String> {
        final AtomicReference<Flow.Subscription> subscription = new AtomicReference<>();
        final AtomicInteger ends = new AtomicInteger();

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription.set(given);
            given.request(5);
        }

        @Override
        public void onNext(String item) {}

        @Override
        public void onError(Throwable thrown) {
            ends.incrementAndGet();
        }

        @Override
        public void onComplete() {
            ends.incrementAndGet();
        }
    }

    private enum End {
        CANCELLED,
        GONE,
        OVER
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .host("127.0.0.1")
            .build()
            .start();

    @AfterEach
    void stop() {
        server.stop(Duration.ofMillis(200));
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    @ParameterizedTest
    @EnumSource(End.class)
    void theEndOfAStreamThatIsNotItsOwnIsTold(End end) throws Exception {
        Subscriber subscriber = new Subscriber();
        try (Client client = Client.standard()) {
            ToldClient calls = client.create(ToldClient.class, "127.0.0.1", server.port());
            subscribe(calls, end, subscriber);
            if (end != End.OVER) {
                assertThat(service.told).hasValue(0);
            }
            if (end == End.CANCELLED) {
                subscriber.subscription.get().cancel();
            }
            if (end != End.GONE) {
                await().until(() -> service.told.get() == 1);
            }
        }
        await().until(() -> service.told.get() == 1);
        assertThat(service.context.get().isCancelled()).isTrue();
    }

    /**
     * Subscribes, and waits until a handler has returned its stream. A short deadline may pass before the handler
     * begins.
     */
    private void subscribe(ToldClient calls, End end, Subscriber subscriber) throws Exception {
        Again.inTwiceTheTime(end == End.OVER ? 300 : 30_000, millis -> {
            int ended = subscriber.ends.get();
            CallContext.within(Duration.ofMillis(millis), calls::never).subscribe(subscriber);
            await().until(() -> service.subscribed.get() > 0 || subscriber.ends.get() > ended);
            return service.subscribed.get() > 0;
        });
    }

    @Test
    void aStreamThatEndsByItselfTellsNothing() {
        Subscriber subscriber = new Subscriber();
        try (Client client = Client.standard()) {
            client.create(ToldClient.class, "127.0.0.1", server.port()).one().subscribe(subscriber);
            await().until(() -> subscriber.ends.get() == 1);
        }
        await().until(() -> server.core().running() == 0);
        assertThat(service.told).hasValue(0);
    }
}
