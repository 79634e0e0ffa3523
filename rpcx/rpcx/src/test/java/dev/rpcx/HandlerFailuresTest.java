package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.StreamsTest;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what a server logs of the exceptions of its handlers and interceptors. */
@Timeout(60)
class HandlerFailuresTest {
    @RPCXError
    static final class Declared extends Exception {
        private final String text;

        Declared(String text) {
            this.text = text;
        }

        public String text() {
            return text;
        }
    }

    record Refusing(String text) {
        @Override
        public String text() {
            throw new IllegalStateException("no text today");
        }
    }

    @RPCXServer("failing")
    static final class Service {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch failed = new CountDownLatch(1);

        @Method
        String fail(String text) {
            throw new IllegalStateException(text, new IllegalArgumentException("the cause"));
        }

        @Method
        CompletableFuture<String> later(String text) {
            return CompletableFuture.failedFuture(new IllegalStateException(text));
        }

        @Method
        Flow.Publisher<String> items(String text) {
            return subscriber -> {
                subscriber.onSubscribe(new Flow.Subscription() {
                    @Override
                    public void request(long items) {}

                    @Override
                    public void cancel() {}
                });
                subscriber.onError(new IllegalStateException(text));
            };
        }

        @Method
        String answer(String text) throws Declared {
            if (text.equals("declared")) {
                throw new Declared("its state");
            }
            if (text.equals("unsendable")) {
                throw new Declared(null);
            }
            if (text.equals("caused")) {
                throw new RPCXException(
                        RPCXException.Code.INVALID,
                        "no",
                        RPCXException.Executed.EXECUTED,
                        new IllegalStateException("why"));
            }
            throw new RPCXException(RPCXException.Code.INVALID, "no");
        }

        @Method
        Refusing result(String text) {
            return new Refusing(text);
        }

        @Method
        String block(String text) throws InterruptedException {
            blocked.countDown();
            try {
                new CountDownLatch(1).await();
                return text;
            } finally {
                failed.countDown();
            }
        }
    }

    @RPCXClient(remoteServerName = "failing")
    interface Calls {
        String fail(String text);

        CompletableFuture<String> later(String text);

        String answer(String text) throws Declared;

        Refusing result(String text);

        @Method("fail")
        CompletableFuture<String> failLater(String text);

        CompletableFuture<String> block(String text);
    }

    @RPCXClient(remoteServerName = "failing")
    interface StreamCalls {
        Flow.Publisher<String> items(String text);
    }

    @RPCXClient(remoteServerName = "failing")
    interface Notices {
        @OneWay
        void fail(String text);
    }

    private final List<LogRecord> logged = new CopyOnWriteArrayList<>();
    private final Handler log = new Handler() {
        @Override
        public void publish(LogRecord entry) {
            logged.add(entry);
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };
    private final Logger logger = Logger.getLogger("dev.rpcx.handlers");
    private final Service service = new Service();
    private Server server;
    private Client client;

    @BeforeEach
    void listen() {
        logger.addHandler(log);
        logger.setUseParentHandlers(false);
    }

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
        logger.removeHandler(log);
        logger.setUseParentHandlers(true);
    }

    private void start(boolean isClassic, Interceptor... interceptors) {
        Server.Builder builder =
                Server.builder(RegistryServer.registry(service)).classic(isClassic);
        for (Interceptor each : interceptors) {
            builder.interceptor(each);
        }
        server = builder.build().start();
        client = (isClassic ? Client.builder().classic() : Client.builder()).build();
    }

    private <T> T created(Class<T> type) {
        return client.create(type, "127.0.0.1", server.port());
    }

    private LogRecord only() {
        await().until(() -> !logged.isEmpty());
        assertThat(logged).hasSize(1);
        return logged.get(0);
    }

    private static boolean isOfTheService(StackTraceElement frame) {
        return frame.getClassName().equals(Service.class.getName());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anExceptionIsLoggedOnceWithItsStackItsCauseAndItsCall(boolean isClassic) {
        start(isClassic);
        assertThatThrownBy(() -> created(Calls.class).fail("no luck")).hasMessage("no luck");
        LogRecord entry = only();
        assertThat(entry.getLevel()).isEqualTo(java.util.logging.Level.WARNING);
        assertThat(entry.getMessage())
                .matches("failing/fail: the handler or an interceptor has failed, in call "
                        + (isClassic ? "-?\\d+" : "[0-9a-f]{8}") + " of /127\\.0\\.0\\.1:\\d+");
        Throwable thrown = entry.getThrown();
        assertThat(thrown).isExactlyInstanceOf(IllegalStateException.class).hasMessage("no luck");
        assertThat(thrown.getStackTrace()).anyMatch(HandlerFailuresTest::isOfTheService);
        assertThat(thrown).cause().hasMessage("the cause");
        if (!isClassic) {
            // the first call of a connection is the first use of slot 0
            assertThat(entry.getMessage()).contains("call 00010000 of");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void soIsTheExceptionOfAFutureOfAStreamAndOfAnInterceptor(boolean isClassic) {
        start(isClassic, (call, next) -> {
            if (call.arguments()[0].equals("intercepted")) {
                throw new IllegalStateException("by the interceptor");
            }
            return next.proceed(call);
        });
        Calls calls = created(Calls.class);
        assertThatThrownBy(() -> calls.later("later").join()).hasMessageContaining("later");
        assertThat(only().getThrown()).hasMessage("later");
        logged.clear();
        assertThatThrownBy(() -> calls.fail("intercepted")).hasMessage("by the interceptor");
        assertThat(only().getThrown()).hasMessage("by the interceptor");
        logged.clear();
        if (!isClassic) {
            StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(1);
            created(StreamCalls.class).items("in a stream").subscribe(collected);
            assertThatThrownBy(collected.end::join).hasMessageContaining("in a stream");
            assertThat(only().getMessage()).startsWith("failing/items: the stream of the handler has failed");
            assertThat(only().getThrown()).hasMessage("in a stream");
        }
    }

    @Test
    void aNoticeThatFailsIsLoggedToo() {
        start(false);
        created(Notices.class).fail("unheard");
        assertThat(only().getThrown()).hasMessage("unheard");
    }

    /** The caller of such a call gets all that there is. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anAnswerIsNotLoggedUnlessItHasACauseOrCannotBeSent(boolean isClassic) {
        start(isClassic);
        Calls calls = created(Calls.class);
        assertThatThrownBy(() -> calls.answer("refused")).isInstanceOf(RPCXException.class);
        assertThatThrownBy(() -> calls.answer("declared")).isInstanceOf(Declared.class);
        assertThat(logged).isEmpty();
        assertThatThrownBy(() -> calls.answer("caused"))
                .isInstanceOf(RPCXException.class)
                .hasNoCause();
        assertThat(only().getThrown()).isInstanceOf(RPCXException.class).cause().hasMessage("why");
        logged.clear();
        assertThatThrownBy(() -> calls.answer("unsendable")).isInstanceOf(RPCXException.class);
        assertThat(only().getMessage())
                .contains("; the exception does not arrive as itself: Declared.text: a string is null");
        assertThat(only().getThrown()).isInstanceOf(Declared.class);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whyAResultCannotBeWrittenIsLogged(boolean isClassic) {
        start(isClassic);
        assertThatThrownBy(() -> created(Calls.class).result("x")).hasMessageContaining("no text today");
        assertThat(only().getMessage()).startsWith("failing/result: the writing of the result has failed");
        assertThat(only().getThrown()).rootCause().hasMessage("no text today");
    }

    /** A cancel interrupts the handler, so most handlers fail then. */
    @Test
    void whatFailsAfterACancelIsNotLogged() throws Exception {
        start(false);
        Calls calls = created(Calls.class);
        CompletableFuture<String> blocked = calls.block("x");
        service.blocked.await();
        blocked.cancel(true);
        service.failed.await();
        // this is logged behind the other failure, if that one is logged
        assertThatThrownBy(() -> calls.fail("behind")).hasMessage("behind");
        assertThat(only().getThrown()).hasMessage("behind");
    }

    @Test
    void tenFailuresOfAMethodAreLoggedInAMinuteAndThoseOfAnotherMethodToo() {
        start(false);
        Calls calls = created(Calls.class);
        for (int i = 0; i < 30; i++) {
            assertThatThrownBy(() -> calls.fail("again")).hasMessage("again");
        }
        assertThatThrownBy(() -> calls.later("another").join()).hasMessageContaining("another");
        await().untilAsserted(() -> assertThat(logged)
                .hasSize(11)
                .anyMatch(entry -> entry.getThrown().getMessage().equals("another")));
    }

    /** The caller has chosen a part of the text. */
    @Test
    void noTextOfAnExceptionForgesALineOfTheLog() {
        start(false);
        assertThatThrownBy(() -> created(Calls.class).fail("no\n2026 INFO all is well\u001b[2J"));
        Throwable thrown = only().getThrown();
        assertThat(thrown).hasToString("java.lang.IllegalStateException: no\\u000a2026 INFO all is well\\u001b[2J");
        assertThat(thrown.getStackTrace()).anyMatch(HandlerFailuresTest::isOfTheService);
        assertThat(thrown).cause().hasToString("java.lang.IllegalArgumentException: the cause");
    }
}
