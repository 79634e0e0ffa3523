package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.call.StreamsTest;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what is left of streams that have ended, in the slots of their calls and in a subscription that is kept. */
@Timeout(60)
class KeptStreamsTest {
    private static final int UPLOADS = 10;

    @RPCXServer("kept")
    static final class Service {
        final CompletableFuture<String> may = new CompletableFuture<>();

        @Method
        CompletableFuture<String> take(Flow.Publisher<String> items) {
            CompletableFuture<String> all = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription given) {
                    given.request(10);
                }

                @Override
                public void onNext(String item) {}

                @Override
                public void onError(Throwable thrown) {
                    all.completeExceptionally(thrown);
                }

                @Override
                public void onComplete() {
                    may.thenAccept(all::complete);
                }
            });
            return all;
        }

        @Method
        Flow.Publisher<String> bring(String text) {
            return new StreamsTest.Made<>(2, i -> text);
        }

        /** Brings one item, and does not end. */
        @Method
        Flow.Publisher<String> both(Flow.Publisher<String> items) {
            return to -> to.onSubscribe(new Flow.Subscription() {
                private boolean isOver;

                @Override
                public void request(long wanted) {
                    if (!isOver) {
                        isOver = true;
                        to.onNext("x");
                    }
                }

                @Override
                public void cancel() {}
            });
        }
    }

    @RPCXClient(remoteServerName = "kept")
    interface Calls {
        CompletableFuture<String> take(Flow.Publisher<String> items);

        Flow.Publisher<String> bring(String text);

        Flow.Publisher<String> both(Flow.Publisher<String> items);
    }

    private final Service service = new Service();
    private final Server server = new Server(0, RegistryServer.registry(service)).start();
    private final Client client = Client.standard();
    private final Calls calls = client.create(Calls.class, Endpoints.of(new Endpoint("127.0.0.1", server.port())));

    @AfterEach
    void stop() {
        service.may.complete("all");
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    /** While the client makes one call at a time, no later call uses the slots above the first. */
    @Test
    void slotsKeepNothingOfThePublishersOfTheirUploads() {
        List<WeakReference<Object>> payloads = new ArrayList<>();
        List<CompletableFuture<String>> uploads = new ArrayList<>();
        for (int i = 0; i < UPLOADS; i++) {
            Object payload = new Object();
            payloads.add(new WeakReference<>(payload));
            uploads.add(calls.take(holding(payload)));
        }
        service.may.complete("all");
        uploads.forEach(CompletableFuture::join);
        uploads.clear();
        await().until(() -> {
            System.gc();
            return payloads.stream().allMatch(each -> each.refersTo(null));
        });
    }

    @Test
    void slotsKeepNothingOfWhyTheirUploadsHaveFailed() {
        WeakReference<Exception> thrown = failedUpload();
        await().until(() -> {
            System.gc();
            return thrown.refersTo(null);
        });
    }

    private WeakReference<Exception> failedUpload() {
        Exception why = new IllegalStateException("not today");
        CompletableFuture<String> upload = calls.take(subscriber -> subscriber.onError(why));
        assertThatThrownBy(upload::join).hasRootCause(why);
        return new WeakReference<>(why);
    }

    private static Flow.Publisher<String> holding(Object payload) {
        return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long items) {
                subscriber.onNext(payload.getClass().getName());
                subscriber.onComplete();
            }

            @Override
            public void cancel() {}
        });
    }

    @Test
    void aSubscriptionThatIsKeptAfterItsEndHoldsNothingOfItsConnection() throws Exception {
        StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(10);
        calls.bring("x").subscribe(collected);
        assertThat(collected.all()).containsExactly("x", "x");
        expectNothingHeld(collected);
    }

    @Test
    void aSubscriptionThatIsKeptAfterItsCancelHoldsNothingOfItsConnection() {
        StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(1);
        calls.both(holding("x")).subscribe(collected);
        await().until(() -> collected.items.size() == 1);
        collected.begin.join().cancel();
        expectNothingHeld(collected);
    }

    private void expectNothingHeld(StreamsTest.Collected<String> collected) {
        WeakReference<ClientConnection> connection = connection();
        Inside.core(client).dropConnections();
        // the address refers to the lost connection until another one takes its place
        service.may.complete("all");
        await().ignoreExceptions().until(() -> calls.take(holding("x")).join().equals("all"));
        await().until(() -> {
            System.gc();
            return connection.refersTo(null);
        });
        assertThat(collected.begin).isDone();
    }

    private WeakReference<ClientConnection> connection() {
        ClientCluster cluster = Inside.core(client).clusters.values().iterator().next();
        return new WeakReference<>(cluster.chooser().all[0].ready());
    }
}
