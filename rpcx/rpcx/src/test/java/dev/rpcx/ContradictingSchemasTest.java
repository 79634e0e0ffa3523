package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.schema.Field;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests clients and servers that have a class each for one message. If one side would misread the other, calls of the
 * method are refused before anything is sent. In all other cases nobody notices.
 */
@Timeout(60)
class ContradictingSchemasTest {
    /** The classes of the server. */
    static class There {
        record Transfer(@Field(1) String from, @Field(2) String to) {}

        record Parcel(
                @Field(1) int grams,
                @Field(2) Optional<String> note,
                @Field(4) String added) {}

        @RPCXServer("bank")
        static final class Bank {
            final AtomicInteger transfers = new AtomicInteger();
            final CompletableFuture<String> later = new CompletableFuture<>();
            final CountDownLatch waits = new CountDownLatch(1);

            @Method
            String transfer(Transfer transfer) {
                transfers.incrementAndGet();
                return transfer.from() + " to " + transfer.to();
            }

            @Method
            Flow.Publisher<Transfer> all(int max) {
                transfers.incrementAndGet();
                throw new IllegalStateException("nobody may ask for this");
            }

            @Method
            String send(Parcel parcel) {
                return parcel.grams() + " " + parcel.note().orElse("-") + " " + parcel.added();
            }

            @Method
            CompletableFuture<String> later() {
                waits.countDown();
                return later;
            }

            @Method
            String move(String from, String to) {
                transfers.incrementAndGet();
                return from + " to " + to;
            }
        }
    }

    /** The classes of the client. */
    static class Here {
        record Payment(@Field(1) String to, @Field(2) String from) {}

        record Parcel(
                @Field(1) long grams,
                @Field(2) String note,
                @Field(3) String gone) {}

        @RPCXClient(remoteServerName = "bank")
        interface Bank {
            String transfer(Payment payment);

            @Method("transfer")
            CompletableFuture<String> transferLater(Payment payment);

            @OneWay
            @Method("transfer")
            void transferUnheard(Payment payment);

            Flow.Publisher<Payment> all(int max);

            String send(Parcel parcel);

            String move(String to, String from);
        }

        @RPCXClient(remoteServerName = "bank")
        interface Later {
            CompletableFuture<String> later();
        }

        @RPCXClient(remoteServerName = "bank")
        interface Parcels {
            String send(Parcel parcel);
        }

        @RPCXClient(remoteServerName = "bank")
        interface Transfers {
            String transfer(Payment payment);
        }

        @RPCXClient(remoteServerName = "bank")
        interface Alike {
            String transfer(There.Transfer transfer);
        }
    }

    private static final String MISREAD = "bank/transfer at %s has another schema: Payment.to (string) is number 1 to"
            + " the client, and Transfer.to (string) is number 2 to the server (expected: one number on both sides)";

    private final There.Bank bank = new There.Bank();
    private final Server server = Server.builder(RegistryServer.registry(bank))
            .host("127.0.0.1")
            .classic(true)
            .build()
            .start();
    private final Client client = Client.standard();

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private <T> T proxy(Class<T> type) {
        return client.create(type, "127.0.0.1", server.port());
    }

    private String misread() {
        return MISREAD.formatted("127.0.0.1:" + server.port());
    }

    private static AbstractThrowableAssert<?, ?> refused(AbstractThrowableAssert<?, ?> thrown) {
        return thrown.isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID);
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
    }

    @Test
    void aMethodWhoseMembersHaveChangedPlacesIsRefusedAndOthersAreCalled() {
        Here.Bank calls = proxy(Here.Bank.class);
        Here.Payment transfer = new Here.Payment("Ann", "Bob");
        for (int i = 0; i < 2; i++) {
            refused(assertThatThrownBy(() -> calls.transfer(transfer))).hasMessage(misread());
            refused(assertThatThrownBy(() -> calls.transferUnheard(transfer))).hasMessage(misread());
            refused(assertThatThrownBy(() -> calls.transferLater(transfer).get(30, TimeUnit.SECONDS))
                            .cause())
                    .hasMessage(misread());
            refused(assertThatThrownBy(() -> calls.move("Ann", "Bob")))
                    .hasMessageContaining("MoveRequest.to (string) is number 1 to the client");
            CompletableFuture<Throwable> ended = new CompletableFuture<>();
            calls.all(3).subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(1);
                }

                @Override
                public void onNext(Here.Payment item) {
                    ended.completeExceptionally(new AssertionError(item));
                }

                @Override
                public void onError(Throwable thrown) {
                    ended.complete(thrown);
                }

                @Override
                public void onComplete() {
                    ended.complete(new AssertionError("the end"));
                }
            });
            refused(assertThat(ended.orTimeout(30, TimeUnit.SECONDS).join()))
                    .hasMessageContaining("bank/all at ")
                    .hasMessageContaining("Payment.to (string) is number 1 to the client");
            assertThat(calls.send(new Here.Parcel(500, "fragile", "x"))).isEqualTo("500 fragile ");
            assertThat(calls.send(new Here.Parcel(500, "", "x"))).isEqualTo("500 - ");
        }
        assertThat(bank.transfers).hasValue(0);
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isEqualTo(1);
    }

    @Test
    void aClientThatIsWarmedUpHearsOfItBeforeItsFirstCall() {
        Here.Transfers calls = proxy(Here.Transfers.class);
        refused(assertThatThrownBy(client::warmUp)).hasMessage(misread());
        refused(assertThatThrownBy(() -> calls.transfer(new Here.Payment("Ann", "Bob"))));
        assertThat(server.core().ledger().held(Resource.CONNECTIONS)).isEqualTo(1);
    }

    /** The server was not asked about the second proxy's method when the connection of the first one opened. */
    @Test
    void aProxyThatIsMadeBehindTheConnectionGetsANewOneAndCallsInFlightGoOn() throws Exception {
        CompletableFuture<String> inFlight = proxy(Here.Later.class).later();
        assertThat(bank.waits.await(30, TimeUnit.SECONDS)).isTrue();
        assertThat(proxy(Here.Parcels.class).send(new Here.Parcel(500, "fragile", "x")))
                .isEqualTo("500 fragile ");
        refused(assertThatThrownBy(() -> proxy(Here.Transfers.class).transfer(new Here.Payment("Ann", "Bob"))))
                .hasMessage(misread());
        assertThat(proxy(Here.Alike.class).transfer(new There.Transfer("Ann", "Bob")))
                .isEqualTo("Ann to Bob");
        assertThat(inFlight).isNotDone();
        bank.later.complete("at last");
        assertThat(inFlight.get(30, TimeUnit.SECONDS)).isEqualTo("at last");
        await().until(() -> server.core().ledger().held(Resource.CONNECTIONS) == 1);
    }

    @Test
    void aProxyThatIsMadeBehindTheConnectionIsWarmedUpToo() {
        assertThat(proxy(Here.Alike.class).transfer(new There.Transfer("Ann", "Bob")))
                .isEqualTo("Ann to Bob");
        Here.Parcels parcels = proxy(Here.Parcels.class);
        client.warmUp();
        assertThat(parcels.send(new Here.Parcel(500, "fragile", "x"))).isEqualTo("500 fragile ");
        Here.Transfers transfers = proxy(Here.Transfers.class);
        refused(assertThatThrownBy(client::warmUp)).hasMessage(misread());
        refused(assertThatThrownBy(() -> transfers.transfer(new Here.Payment("Ann", "Bob"))));
        await().until(() -> server.core().ledger().held(Resource.CONNECTIONS) == 1);
    }

    @Test
    void instancesThatFitTakeTheCallsOfThoseThatDoNot() {
        try (Server other = Server.builder(RegistryServer.registry(new Fitting()))
                .host("127.0.0.1")
                .build()
                .start()) {
            Here.Transfers calls = client.create(
                    Here.Transfers.class,
                    Endpoints.of(new Endpoint("127.0.0.1", server.port()), new Endpoint("127.0.0.1", other.port())));
            await().until(() -> client.core().ledger().held(Resource.CONNECTIONS) == 2);
            for (int i = 0; i < 20; i++) {
                assertThat(calls.transfer(new Here.Payment("Ann", "Bob"))).isEqualTo("Bob to Ann");
            }
        }
        assertThat(bank.transfers).hasValue(0);
    }

    @RPCXServer("bank")
    static final class Fitting {
        @Method
        String transfer(Here.Payment payment) {
            return payment.from() + " to " + payment.to();
        }
    }

    /** The classic wire has no dictionary, and compares nothing. */
    @Test
    void theClassicWireStaysAsItIs() {
        try (Client classic = Client.builder().classic().build()) {
            assertThat(classic.create(Here.Transfers.class, "127.0.0.1", server.port())
                            .transfer(new Here.Payment("Ann", "Bob")))
                    .isEqualTo("Ann to Bob");
        }
    }
}
