package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.client.ClientConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests errors in the types and callbacks of the user. Each of them ends its own call, and no other call on its
 * connection.
 */
@Timeout(60)
class ClientErrorsTest {
    record Even(int number) {
        Even {
            if (number % 2 != 0) {
                throw new AssertionError("odd");
            }
        }
    }

    record Number(int number) {}

    @RPCXServer("numbers")
    static final class Numbers {
        @Method
        Number number(int number) {
            return new Number(number);
        }

        @Method
        Flow.Publisher<Number> upTo(int number) {
            return new StreamsTest.Made<>(number, Number::new);
        }

        @Method
        CompletableFuture<Long> sum(Flow.Publisher<Integer> numbers) {
            StreamsTest.Collected<Integer> collected = new StreamsTest.Collected<>(5);
            numbers.subscribe(collected);
            return collected.end.thenApply(all -> (long) all.size());
        }
    }

    @RPCXClient(remoteServerName = "numbers")
    interface Calls {
        @Method("number")
        Even even(int number);

        @Method("number")
        CompletableFuture<Even> evenLater(int number);

        Flow.Publisher<Even> upTo(int number);

        CompletableFuture<Long> sum(Flow.Publisher<Integer> numbers);

        @Method("sum")
        long sumNow(Flow.Publisher<Integer> numbers);
    }

    private Server server;
    private Client client;
    private Calls calls;
    private ClientConnection connection;

    @BeforeEach
    void start() {
        server = new Server(0, RegistryServer.registry(new Numbers())).start();
        client = Client.standard();
        calls = client.create(Calls.class, "127.0.0.1", server.port());
        assertThat(calls.even(2)).isEqualTo(new Even(2));
        connection =
                client.core().channels.keySet().iterator().next().pipeline().get(ClientConnection.class);
    }

    @AfterEach
    void stop() {
        assertThat(calls.even(4)).isEqualTo(new Even(4));
        assertThat(connection.isUsable()).as("the connection lives").isTrue();
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    @Test
    void anErrorInAResultsConstructorEndsItsCallOnly() throws Exception {
        CompletableFuture<Even> other = calls.evenLater(6);
        CompletableFuture<Even> odd = calls.evenLater(7);
        assertThatThrownBy(() -> odd.get(10, TimeUnit.SECONDS))
                .hasCauseInstanceOf(RPCXException.class)
                .hasMessageContaining("odd");
        assertThat(other.get(10, TimeUnit.SECONDS)).isEqualTo(new Even(6));
        assertThatThrownBy(() -> calls.even(9)).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID);
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
            assertThat(e).hasRootCauseInstanceOf(AssertionError.class);
        });
    }

    @Test
    void anErrorInAnItemsConstructorEndsItsStreamOnly() {
        StreamsTest.Collected<Even> collected = new StreamsTest.Collected<>(10);
        calls.upTo(4).subscribe(collected);
        assertThatThrownBy(collected::all).hasMessageContaining("odd");
        assertThat(collected.items).containsExactly(new Even(0));
    }

    @Test
    void aSubscriberThatThrowsHurtsNobodyElse() throws Exception {
        for (String where : new String[] {"next", "complete", "error"}) {
            CompletableFuture<Void> thrown = new CompletableFuture<>();
            calls.upTo(where.equals("error") ? 2 : 1).subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(10);
                }

                @Override
                public void onNext(Even item) {
                    fail("next");
                }

                @Override
                public void onError(Throwable failure) {
                    fail("error");
                }

                @Override
                public void onComplete() {
                    fail("complete");
                }

                private void fail(String here) {
                    if (here.equals(where)) {
                        thrown.complete(null);
                        throw new AssertionError("the subscriber's own");
                    }
                }
            });
            thrown.get(10, TimeUnit.SECONDS);
        }
    }

    @Test
    void aCallbackThatThrowsHurtsNobodyElse() {
        CompletableFuture<Even> done = calls.evenLater(8).whenComplete((value, failure) -> {
            throw new AssertionError("the callback's own");
        });
        assertThatThrownBy(done::join).isInstanceOf(CompletionException.class).hasMessageContaining("callback");
    }

    @Test
    void aSubscriptionThatThrowsHurtsNobodyElse() {
        CompletableFuture<Long> requested = calls.sum(subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long items) {
                throw new AssertionError("nothing to be had");
            }

            @Override
            public void cancel() {
                throw new AssertionError("not to be stopped");
            }
        }));
        assertThatThrownBy(() -> requested.get(10, TimeUnit.SECONDS)).hasMessageContaining("nothing to be had");
    }

    @Test
    void aCallbackThatNeverEndsHoldsNoCloseUp() throws Exception {
        CountDownLatch free = new CountDownLatch(1);
        CountDownLatch blocked = new CountDownLatch(1);
        for (boolean own : new boolean[] {true, false}) {
            Client.Builder builder = Client.builder().maxClose(Duration.ofMillis(100));
            Client stuck = (own ? builder.eventLoops(1) : builder).build();
            Calls remote = stuck.create(Calls.class, "127.0.0.1", server.port());
            // the call is made on a loop, so that the callback keeps the loop's thread however soon the reply comes
            stuck.core()
                    .execute(() -> remote.evenLater(2).thenAccept(even -> {
                        blocked.countDown();
                        // the callback spins, since the whole suite reports an event loop that waits
                        while (free.getCount() > 0) {
                            Thread.onSpinWait();
                        }
                    }));
            blocked.await();
            CompletableFuture.runAsync(stuck::close).get(30, TimeUnit.SECONDS);
        }
        free.countDown();
    }

    @RPCXServer("texts")
    static final class Texts {
        @Method
        String echo(String text) {
            return text;
        }

        @Method
        void note(String text) {}
    }

    @RPCXClient(remoteServerName = "texts")
    interface TextCalls {
        CompletableFuture<String> echo(String text);

        @OneWay
        void note(String text);
    }

    /** This holds with a connection and without, since a caller who composes futures does not expect exceptions. */
    @Test
    void whatCannotBeSentFailsTheFutureAndIsThrownByAOneWayCall() throws Exception {
        try (Server small = Server.builder(RegistryServer.registry(new Texts()))
                        .maxMessageBytes(100)
                        .build()
                        .start();
                Client own = Client.builder().build()) {
            TextCalls texts = own.create(TextCalls.class, "127.0.0.1", small.port());
            assertThat(texts.echo("short").get(10, TimeUnit.SECONDS)).isEqualTo("short");
            CompletableFuture<String> tooLong = texts.echo("x".repeat(200));
            assertThatThrownBy(() -> tooLong.get(10, TimeUnit.SECONDS)).hasMessageContaining("at most 100");
            assertThatThrownBy(() -> texts.note("x".repeat(200)))
                    .isInstanceOf(RPCXException.class)
                    .hasMessageContaining("at most 100");
        }
    }

    private static RPCXException failure(CompletableFuture<?> call) {
        try {
            call.get(20, TimeUnit.SECONDS);
            throw new AssertionError("has not failed");
        } catch (ExecutionException e) {
            return (RPCXException) e.getCause();
        } catch (InterruptedException | TimeoutException e) {
            throw new AssertionError(e);
        }
    }

    private static void assertNamesTheStream(RPCXException refused) {
        assertThat(refused.code()).isEqualTo(RPCXException.Code.INVALID);
        assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(refused).hasMessage("numbers/sum: the stream to send is null (expected: a publisher)");
    }

    @Test
    @SuppressWarnings("NullAway") // a caller should not pass null, but can
    void aStreamThatIsNullIsRefusedByItsNameWithAConnectionAndWithout() throws Exception {
        assertNamesTheStream(failure(calls.sum(null)));
        assertThatThrownBy(() -> calls.sumNow(null))
                .isInstanceOfSatisfying(RPCXException.class, ClientErrorsTest::assertNamesTheStream);
        try (ServerSocket nobody = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Client other = Client.standard()) {
            Calls unheard = other.create(Calls.class, "127.0.0.1", nobody.getLocalPort());
            assertNamesTheStream(failure(unheard.sum(null)));
        }
    }

    /** The errors do not say how the channel ended, which may have no text at all. */
    @Test
    void callsOfAClientThatIsClosedWhileItConnectsSaySo() {
        for (int i = 0; i < 200; i++) {
            CompletableFuture<Even> call;
            try (Client other = Client.standard()) {
                call = other.create(Calls.class, "127.0.0.1", server.port()).evenLater(2);
            }
            if (call.isCompletedExceptionally()) {
                // the latter is said if the client was already connected, and the call had been sent
                assertThat(failure(call).getMessage())
                        .matches("127.0.0.1:\\d+: the (client is closed|connection ended)");
            }
        }
    }
}
