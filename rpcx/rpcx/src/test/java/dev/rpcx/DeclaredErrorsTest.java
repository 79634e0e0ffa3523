package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import dev.rpcx.schema.Field;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests exceptions that both sides declare, which arrive as themselves, and others, which do not. */
@Timeout(60)
class DeclaredErrorsTest {
    record Item(String name, int count) {}

    @RPCXError
    static class NotEnough extends Exception {
        private final long missing;
        private final List<Item> items;

        NotEnough(String message, long missing, List<Item> items) {
            super(message);
            this.missing = missing;
            this.items = items;
        }

        public long getMissing() {
            return missing;
        }

        public List<Item> items() {
            return items;
        }
    }

    /** An object of this class would lose what it has beyond {@code NotEnough}. */
    static final class MuchTooLittle extends NotEnough {
        MuchTooLittle() {
            super("much too little", 1, List.of());
        }
    }

    @RPCXError("closed-account")
    static final class Closed extends RuntimeException {
        private final Optional<String> by;

        Closed(@Field(7) Optional<String> by) {
            super("closed" + by.map(name -> " by " + name).orElse(""));
            this.by = by;
        }

        public Optional<String> by() {
            return by;
        }
    }

    /** The class of the client, which has another name in Java and knows fewer components. */
    @RPCXError("closed-account")
    static final class Gone extends Exception {}

    @RPCXError
    static final class Broken extends Exception {
        private final String what;

        Broken(String what) {
            if (what.equals("here")) {
                throw new IllegalStateException("no place here");
            }
            this.what = what;
        }

        public String what() {
            return what.equals("unsendable") ? null : what;
        }
    }

    @RPCXServer("accounts")
    static final class Accounts {
        @Method
        long withdraw(long cents) throws NotEnough, IOException {
            if (cents == 0) {
                throw new FileNotFoundException("no ledger");
            }
            if (cents < 0) {
                throw new MuchTooLittle();
            }
            throw new NotEnough(cents == 1 ? null : "not enough", cents, List.of(new Item("coin", 2)));
        }

        @Method
        CompletableFuture<Long> later(long cents) throws NotEnough {
            return CompletableFuture.failedFuture(new NotEnough("later", cents, List.of()));
        }

        @Method
        Flow.Publisher<Integer> items(int count) throws NotEnough {
            return subscriber -> new StreamsTest.Made<Integer>(count, i -> i).subscribe(new Flow.Subscriber<Integer>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscriber.onSubscribe(subscription);
                }

                @Override
                public void onNext(Integer item) {
                    subscriber.onNext(item);
                }

                @Override
                public void onError(Throwable thrown) {
                    subscriber.onError(thrown);
                }

                @Override
                public void onComplete() {
                    subscriber.onError(new NotEnough("the end", count, List.of()));
                }
            });
        }

        @Method
        void close(String by) throws Closed {
            throw new Closed(by.isEmpty() ? Optional.empty() : Optional.of(by));
        }

        @Method
        void undeclared() {
            throw new Closed(Optional.of("nobody"));
        }

        @Method
        void breaks(String what) throws Broken {
            throw new Broken(what);
        }

        @Method
        void large(int characters) throws Broken {
            throw new Broken("x".repeat(characters));
        }
    }

    @RPCXClient(remoteServerName = "accounts")
    interface Calls {
        long withdraw(long cents) throws NotEnough;

        @Method("withdraw")
        CompletableFuture<Long> withdrawLater(long cents);

        @Method(value = "withdraw", idempotent = true, hedgeMillis = 5000)
        long withdrawHedged(long cents) throws NotEnough;

        @Method(value = "withdraw", idempotent = true, hedgeMillis = 5000)
        CompletableFuture<Long> withdrawHedgedLater(long cents);

        @Method("withdraw")
        long withdrawBlind(long cents);

        CompletableFuture<Long> later(long cents) throws NotEnough;

        void close(String by) throws Closed;

        @Method("close")
        void closeOld(String by) throws Gone;

        void undeclared() throws Closed;

        void breaks(String what) throws Broken;

        void large(int characters) throws Broken;
    }

    @RPCXClient(remoteServerName = "accounts")
    interface StreamCalls {
        Flow.Publisher<Integer> items(int count) throws NotEnough;
    }

    private final Server server = Server.builder(RegistryServer.registry(new Accounts()))
            .classic(true)
            .build()
            .start();
    private Client client;

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private Calls calls(boolean isClassic) {
        client = (isClassic ? Client.builder().classic() : Client.builder()).build();
        return client.create(Calls.class, "127.0.0.1", server.port());
    }

    private static void assertNotEnough(Throwable thrown, String message, long missing) {
        assertThat(thrown).isExactlyInstanceOf(NotEnough.class).hasMessage(message);
        assertThat(((NotEnough) thrown).getMissing()).isEqualTo(missing);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anExceptionThatBothDeclareArrivesAsItselfWithItsState(boolean isClassic) {
        Calls calls = calls(isClassic);
        assertThatThrownBy(() -> calls.withdraw(300)).satisfies(thrown -> {
            assertNotEnough(thrown, "not enough", 300);
            assertThat(((NotEnough) thrown).items()).containsExactly(new Item("coin", 2));
            assertThat(thrown.getStackTrace())
                    .as("frames of the caller")
                    .anyMatch(frame -> frame.getClassName().equals(DeclaredErrorsTest.class.getName()));
        });
        assertThatThrownBy(() -> calls.withdraw(1)).satisfies(thrown -> assertNotEnough(thrown, null, 1));
        assertThatThrownBy(() -> calls.withdrawLater(2).join())
                .cause()
                .satisfies(thrown -> assertNotEnough(thrown, "not enough", 2));
        assertThatThrownBy(() -> calls.later(3).get(20, TimeUnit.SECONDS))
                .cause()
                .satisfies(thrown -> assertNotEnough(thrown, "later", 3));
        assertThatThrownBy(() -> calls.close("Ann"))
                .isInstanceOfSatisfying(
                        Closed.class, closed -> assertThat(closed.by()).contains("Ann"))
                .hasMessage("closed by Ann");
        assertThatThrownBy(() -> calls.close(""))
                .isInstanceOfSatisfying(
                        Closed.class, closed -> assertThat(closed.by()).isEmpty());
        assertThatThrownBy(() -> calls.closeOld("Ann")).isExactlyInstanceOf(Gone.class);
    }

    @Test
    void itArrivesFromAHedgedCallToo() {
        Calls calls = calls(false);
        assertThatThrownBy(() -> calls.withdrawHedged(5)).satisfies(thrown -> assertNotEnough(thrown, "not enough", 5));
        assertThatThrownBy(() -> calls.withdrawHedgedLater(6).join())
                .cause()
                .satisfies(thrown -> assertNotEnough(thrown, "not enough", 6));
    }

    @Test
    void aStreamFailsWithTheExceptionBehindItsItems() throws NotEnough {
        calls(false);
        StreamsTest.Collected<Integer> collected = new StreamsTest.Collected<>(10);
        client.create(StreamCalls.class, "127.0.0.1", server.port()).items(3).subscribe(collected);
        assertThatThrownBy(() -> collected.end.get(20, TimeUnit.SECONDS))
                .cause()
                .satisfies(thrown -> assertNotEnough(thrown, "the end", 3));
        assertThat(collected.items).containsExactly(0, 1, 2);
    }

    /** A client of an earlier version reads the same error, without its detail. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatOneSideDoesNotDeclareArrivesAsTheFailureOfTheHandler(boolean isClassic) {
        Calls calls = calls(isClassic);
        assertFailed(() -> calls.withdrawBlind(7), "not enough")
                .satisfies(thrown -> assertThat(((RPCXException) thrown).details())
                        .extracting(RPCXException.Detail::name)
                        .containsExactly("NotEnough"));
        assertFailed(() -> calls.undeclared(), "closed by nobody").hasNoCause();
        assertFailed(() -> calls.withdraw(0), "no ledger").hasNoCause();
        assertFailed(() -> calls.withdraw(-1), "much too little").hasNoCause();
    }

    @Test
    void anExceptionThatCannotBeSentOrMadeArrivesAsTheFailureOfTheHandler() {
        Calls calls = calls(false);
        assertThatThrownBy(() -> calls.breaks("x")).isExactlyInstanceOf(Broken.class);
        assertFailed(() -> calls.breaks("unsendable"), null).hasNoCause();
        assertFailed(() -> calls.large(RPCXException.MAX_DETAIL_BYTES), null).hasNoCause();
    }

    @Test
    void anExceptionWhoseConstructorThrowsIsTheCauseOfTheFailure() throws Exception {
        byte[] state = {10, 4, 'h', 'e', 'r', 'e'};
        ByteBuf error = Unpooled.buffer();
        WireError.write(
                error,
                new RPCXException(RPCXException.Code.HANDLER_FAILED, "broken")
                        .withDetails(List.of(new RPCXException.Detail("Broken", state, true))));
        calls(false);
        try (FakeServer fake = new FakeServer(
                Settings.INITIAL,
                Unpooled.EMPTY_BUFFER,
                (request, peer) -> peer.send(Wire.ERROR, request.id(), error.duplicate()))) {
            Calls calls = client.create(
                    Calls.class, fake.endpoint().host(), fake.endpoint().port());
            assertFailed(() -> calls.breaks("x"), "broken")
                    .cause()
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("no place here");
        }
    }

    private static org.assertj.core.api.AbstractThrowableAssert<?, ? extends Throwable> assertFailed(
            org.assertj.core.api.ThrowableAssert.ThrowingCallable call, String message) {
        return assertThatThrownBy(call).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
            if (message != null) {
                assertThat(e).hasMessage(message);
            }
        });
    }
}
