package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.StreamsTest;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests calls that cannot be sent, which says nothing about the service. If such a call is the trial of an open circuit
 * breaker, the next call becomes the trial.
 */
@Timeout(120)
class UnsentTrialsTest {
    @RPCXServer("well")
    static final class Well {
        volatile boolean sick = true;

        @Method
        String text(String text) {
            return text;
        }

        @Method
        void tell(String text) {}

        @Method
        int take(Flow.Publisher<String> items) {
            return 0;
        }

        @Method
        Flow.Publisher<String> bring(String text) {
            return new StreamsTest.Made<>(1, i -> text);
        }
    }

    @RPCXClient(remoteServerName = "well")
    interface WellClient {
        String text(String text);

        @Method("text")
        CompletableFuture<String> later(String text);

        @Method(value = "text", idempotent = true, hedgeMillis = 1000)
        String hedged(String text);

        @OneWay
        void tell(String text);

        int take(Flow.Publisher<String> items);

        Flow.Publisher<String> bring(String text);
    }

    private enum Unsent {
        BLOCKING,
        LATER,
        HEDGED,
        ONE_WAY,
        UPLOAD,
        STREAM,
        TOO_LARGE,
        TOO_LARGE_LATER;

        @SuppressWarnings("NullAway") // a caller can make this mistake, since nothing prevents it
        void call(WellClient calls) throws Exception {
            switch (this) {
                case BLOCKING -> calls.text(null);
                case LATER -> calls.later(null).join();
                case HEDGED -> calls.hedged(null);
                case ONE_WAY -> calls.tell(null);
                case UPLOAD -> calls.take(null);
                case STREAM -> {
                    StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(1);
                    calls.bring(null).subscribe(collected);
                    collected.all();
                }
                case TOO_LARGE -> calls.text("x".repeat(5 << 20));
                case TOO_LARGE_LATER -> calls.later("x".repeat(5 << 20)).join();
            }
        }
    }

    private static String failure(Unsent unsent, WellClient calls) {
        try {
            unsent.call(calls);
        } catch (CompletionException e) {
            return String.valueOf(e.getCause());
        } catch (Exception e) {
            return String.valueOf(e);
        }
        return "none";
    }

    private static Server server(Well well) {
        return Server.builder(RegistryServer.registry(well))
                .interceptor((call, next) -> {
                    if (well.sick) {
                        throw RPCXException.refused(RPCXException.Code.OVERLOADED, "sick");
                    }
                    return next.proceed(call);
                })
                .build()
                .start();
    }

    private static String failure(String text, WellClient calls) {
        try {
            calls.text(text);
            return "none";
        } catch (RPCXException e) {
            return String.valueOf(e);
        }
    }

    @ParameterizedTest
    @EnumSource(Unsent.class)
    void aCallThatCannotBeSentGivesTheTrialToTheNext(Unsent unsent) {
        Well well = new Well();
        Server server = server(well);
        try (Client client = Client.builder().circuitBreaker(0.5).build()) {
            WellClient calls = client.create(WellClient.class, "127.0.0.1", server.port());
            await().until(() -> failure("x", calls).contains("circuit"));
            well.sick = false;
            // the call that is not refused is the trial
            await().until(() -> {
                String why = failure(unsent, calls);
                assertThat(why).isNotEqualTo("none");
                return !why.contains("circuit");
            });
            assertThat(failure("x", calls)).isEqualTo("none");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }
}
