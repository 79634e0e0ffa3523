package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that the exception of a call leads to the code that has made the call. */
@Timeout(60)
class CallerFramesTest {
    @RPCXServer("frames")
    static final class Service {
        final CountDownLatch entered = new CountDownLatch(2);

        @Method
        String fail(String text) {
            throw new IllegalStateException(text);
        }

        @Method
        String block(String text) throws InterruptedException {
            entered.countDown();
            new CountDownLatch(1).await();
            return text;
        }
    }

    @RPCXClient(remoteServerName = "frames")
    interface Calls {
        String fail(String text);

        @Method(value = "fail", idempotent = true, hedgeMillis = 5000)
        String failHedged(String text);

        @Method("fail")
        CompletableFuture<String> failLater(String text);

        @Method(value = "block", timeoutMillis = 200)
        String blockShortly(String text);

        String block(String text);
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
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

    private static void assertOfThisTest(ThrowingCallable call) {
        assertThatThrownBy(call)
                .isExactlyInstanceOf(RPCXException.class)
                .satisfies(thrown -> assertThat(thrown.getStackTrace())
                        .anyMatch(frame -> frame.getClassName().equals(CallerFramesTest.class.getName())));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theExceptionOfABlockingCallHasTheFramesOfItsCaller(boolean isClassic) throws Exception {
        Calls calls = calls(isClassic);
        assertOfThisTest(() -> calls.fail("x"));
        assertOfThisTest(() -> calls.failHedged("x"));
        assertOfThisTest(() -> calls.blockShortly("x"));
        int nobodys;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            nobodys = socket.getLocalPort();
        }
        Calls unheard = client.create(Calls.class, "127.0.0.1", nobodys);
        assertOfThisTest(() -> unheard.fail("x"));
    }

    /** The waiting thread puts the exception of the JDK around it. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theExceptionOfAFutureIsWithinOneThatHasTheFramesOfWhoeverWaits(boolean isClassic) {
        CompletableFuture<String> failed = calls(isClassic).failLater("x");
        assertThatThrownBy(failed::get)
                .satisfies(thrown -> assertThat(thrown.getStackTrace())
                        .anyMatch(frame -> frame.getClassName().equals(CallerFramesTest.class.getName())))
                .cause()
                .isExactlyInstanceOf(RPCXException.class);
    }

    /** The end of a connection makes one error for all calls that are under way on it. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void callersWhoseCallsEndTogetherGetAnExceptionEach(boolean isClassic) throws Exception {
        Calls calls = calls(isClassic);
        ExecutorService callers = Executors.newFixedThreadPool(2);
        try {
            Future<Throwable> one = callers.submit(() -> firstCaller(calls));
            Future<Throwable> other = callers.submit(() -> secondCaller(calls));
            service.entered.await();
            server.stop(Duration.ZERO);
            assertThat(one.get()).isNotSameAs(other.get());
            assertThat(one.get().getStackTrace())
                    .anyMatch(frame -> frame.getMethodName().equals("firstCaller"))
                    .noneMatch(frame -> frame.getMethodName().equals("secondCaller"));
            assertThat(other.get().getStackTrace())
                    .anyMatch(frame -> frame.getMethodName().equals("secondCaller"));
        } finally {
            callers.shutdownNow();
        }
    }

    private static Throwable firstCaller(Calls calls) {
        return failure(() -> calls.block("one"));
    }

    private static Throwable secondCaller(Calls calls) {
        return failure(() -> calls.block("two"));
    }

    private static Throwable failure(Runnable call) {
        try {
            call.run();
            throw new AssertionError("has not failed");
        } catch (RPCXException e) {
            return e;
        }
    }
}
