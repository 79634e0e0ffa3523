package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.call.StreamsTest;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests callers that leave a handler hardly any time. The handler passes this time on to the calls that it makes, so
 * these get no answer. The service that it calls must not become unavailable to other callers because of that.
 */
@Timeout(60)
class HurriedCallersTest {
    private static final int HURRIED = 60;

    /** An answer takes this long, which is far more than hurried callers give, however fast the machine is. */
    private static final int WORK_MILLIS = 20;

    @RPCXServer("back")
    static final class Back {
        @Method
        CompletableFuture<String> find(String text) {
            CompletableFuture<String> found = new CompletableFuture<>();
            return text.isEmpty() ? found : found.completeOnTimeout(text, WORK_MILLIS, TimeUnit.MILLISECONDS);
        }

        @Method
        Flow.Publisher<String> items(String text) throws InterruptedException {
            Thread.sleep(text.isEmpty() ? 0 : WORK_MILLIS);
            return text.isEmpty() ? subscriber -> {} : new StreamsTest.Made<>(1, i -> text);
        }
    }

    @RPCXClient(remoteServerName = "back")
    interface Calls {
        String find(String text);

        @Method("find")
        CompletableFuture<String> findLater(String text);

        @Method(value = "find", timeoutMillis = 5)
        String findSoon(String text);

        Flow.Publisher<String> items(String text);
    }

    private final Server server = new Server(0, RegistryServer.registry(new Back())).start();
    private final Client client =
            Client.builder().circuitBreaker(0.5).eventLoops(1).build();
    private final Calls calls = client.create(Calls.class, "127.0.0.1", server.port());

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private static void isLate(Throwable failure) {
        assertThat(failure.toString()).contains("DEADLINE_EXCEEDED");
    }

    enum Way {
        BLOCKING {
            @Override
            String find(Calls calls, String text) {
                return calls.find(text);
            }
        },
        ASYNC {
            @Override
            String find(Calls calls, String text) throws Exception {
                try {
                    return calls.findLater(text).get(20, TimeUnit.SECONDS);
                } catch (java.util.concurrent.ExecutionException e) {
                    throw (RPCXException) e.getCause();
                }
            }
        },
        STREAM {
            @Override
            String find(Calls calls, String text) throws Exception {
                StreamsTest.Collected<String> found = new StreamsTest.Collected<>(1);
                calls.items(text).subscribe(found);
                return found.all().get(0);
            }
        };

        abstract String find(Calls calls, String text) throws Exception;
    }

    @ParameterizedTest
    @EnumSource(Way.class)
    void whatFailsForWantOfTimeOpensNoCircuit(Way way) throws Exception {
        assertThat(way.find(calls, "known")).isEqualTo("known");
        for (int i = 0; i < HURRIED; i++) {
            assertThatThrownBy(() -> CallContext.within(Duration.ofMillis(2), () -> {
                        try {
                            return way.find(calls, "");
                        } catch (RuntimeException e) {
                            throw e;
                        } catch (Exception e) {
                            throw new AssertionError(e);
                        }
                    }))
                    .satisfies(HurriedCallersTest::isLate);
        }
        assertThat(way.find(calls, "known")).isEqualTo("known");
    }

    @Test
    void whatFailsInTheTimeThatItsMethodGivesDoes() {
        assertThat(calls.find("known")).isEqualTo("known");
        assertThatThrownBy(() -> {
                    for (int i = 0; i < HURRIED; i++) {
                        assertThatThrownBy(() -> calls.findSoon("")).satisfies(HurriedCallersTest::isLate);
                    }
                })
                .hasMessageContaining("circuit");
    }
}
