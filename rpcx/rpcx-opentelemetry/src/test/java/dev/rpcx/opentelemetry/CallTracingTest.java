package dev.rpcx.opentelemetry;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Interceptor;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

class CallTracingTest {
    @RPCXServer("hop")
    static final class Hop {
        private final Next next;

        Hop(Next next) {
            this.next = next;
        }

        @Method
        String go(String word) {
            if (word.equals("nothing")) {
                return null;
            }
            if (word.isEmpty()) {
                throw new RPCXException(RPCXException.Code.INVALID, "nothing said");
            }
            return next == null ? word : next.later(word).join();
        }
    }

    @RPCXClient(remoteServerName = "hop")
    interface Next {
        String go(String word);

        @Method("go")
        CompletableFuture<String> later(String word);
    }

    private final InMemorySpanExporter spans = InMemorySpanExporter.create();
    private final OpenTelemetry telemetry = OpenTelemetrySdk.builder()
            .setTracerProvider(SdkTracerProvider.builder()
                    .addSpanProcessor(SimpleSpanProcessor.create(spans))
                    .build())
            .setPropagators(ContextPropagators.create(W3CTraceContextPropagator.getInstance()))
            .build();

    private Server serve(Next next) {
        return Server.builder(RegistryServer.registry(new Hop(next)))
                .interceptor(CallTracing.ofServer(telemetry))
                .build()
                .start();
    }

    private List<SpanData> awaitSpans(int count) {
        await().until(() -> spans.getFinishedSpanItems().size() == count);
        List<SpanData> all = new ArrayList<>(spans.getFinishedSpanItems());
        all.sort(Comparator.comparingLong(SpanData::getStartEpochNanos));
        return all;
    }

    @Test
    void aCallOverThreeServicesIsOneTrace() {
        try (Client client = Client.builder()
                        .interceptor(CallTracing.ofClient(telemetry))
                        .build();
                Server last = serve(null);
                Server middle = serve(client.create(Next.class, "127.0.0.1", last.port()));
                Server first = serve(client.create(Next.class, "127.0.0.1", middle.port()))) {
            assertThat(client.create(Next.class, "127.0.0.1", first.port()).go("word"))
                    .isEqualTo("word");
            List<SpanData> all = awaitSpans(6);
            for (int i = 0; i < all.size(); i++) {
                SpanData span = all.get(i);
                assertThat(span.getName()).isEqualTo("hop/go");
                assertThat(span.getKind()).isEqualTo(i % 2 == 0 ? SpanKind.CLIENT : SpanKind.SERVER);
                assertThat(span.getTraceId()).isEqualTo(all.get(0).getTraceId());
                if (i > 0) {
                    assertThat(span.getParentSpanId()).isEqualTo(all.get(i - 1).getSpanId());
                }
            }
        }
    }

    @Test
    void aCallThatFailsSaysSoOnBothSides() {
        try (Client client = Client.builder()
                        .interceptor(CallTracing.ofClient(telemetry))
                        .build();
                Server server = serve(null)) {
            Next next = client.create(Next.class, "127.0.0.1", server.port());
            assertThatThrownBy(() -> next.go("")).isInstanceOf(RPCXException.class);
            assertThatThrownBy(() -> next.later("").join()).hasCauseInstanceOf(RPCXException.class);
            assertThat(awaitSpans(4))
                    .allSatisfy(
                            span -> assertThat(span.getStatus().getStatusCode()).isEqualTo(StatusCode.ERROR));
        }
    }

    @Test
    void aResultThatIsNullFailsOnBothSides() {
        try (Client client = Client.builder()
                        .interceptor(CallTracing.ofClient(telemetry))
                        .build();
                Server server = serve(null)) {
            Next next = client.create(Next.class, "127.0.0.1", server.port());
            assertThatThrownBy(() -> next.go("nothing")).isInstanceOf(RPCXException.class);
            assertThat(awaitSpans(2))
                    .allSatisfy(
                            span -> assertThat(span.getStatus().getStatusCode()).isEqualTo(StatusCode.ERROR));
        }
    }

    /** A caller may fill the baggage, and the call that a handler makes then has metadata beside it. */
    @Test
    void aBaggageThatIsTooLargeIsNotPassedOn() {
        OpenTelemetry carrying = OpenTelemetry.propagating(ContextPropagators.create(TextMapPropagator.composite(
                W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance())));
        AtomicReference<Interceptor.Invocation> had = new AtomicReference<>();
        try (Server server = keeping(had)) {
            // the baggage has so many letters, and other metadata beside it have so many
            for (int[] letters : new int[][] {{4_000, 0}, {8_185, 0}, {4_000, 4_000}}) {
                try (Client client = Client.builder()
                                .interceptor((call, next) -> next.proceed(call.with("own", "o".repeat(letters[1]))))
                                .interceptor(CallTracing.ofClient(carrying))
                                .build();
                        Scope scope = Baggage.builder()
                                .put("k", "v".repeat(letters[0]))
                                .build()
                                .makeCurrent()) {
                    assertThat(scope).isNotNull();
                    Next next = client.create(Next.class, "127.0.0.1", server.port());
                    assertThat(next.go("word")).isEqualTo("word");
                }
                assertThat(had.get().metadata().get("baggage") != null).isEqualTo(letters[0] + letters[1] == 4_000);
                assertThat(had.get().metadata().get("own")).hasSize(letters[1]);
            }
        }
    }

    /** @param had the last call that the server has had */
    private static Server keeping(AtomicReference<Interceptor.Invocation> had) {
        return Server.builder(RegistryServer.registry(new Hop(null)))
                .interceptor((call, next) -> {
                    had.set(call);
                    return next.proceed(call);
                })
                .build()
                .start();
    }

    /** Makes a call, and returns it as its server has had it. */
    private static Interceptor.Invocation call() {
        AtomicReference<Interceptor.Invocation> had = new AtomicReference<>();
        try (Client client = Client.standard();
                Server server = keeping(had)) {
            client.create(Next.class, "127.0.0.1", server.port()).go("word");
        }
        return had.get();
    }

    @Test
    void anErrorWhoseTextThrowsEndsItsSpan() {
        RuntimeException mute = new RuntimeException() {
            @Override
            public String getMessage() {
                throw new IllegalStateException("injected");
            }
        };
        assertThatThrownBy(() -> CallTracing.ofServer(telemetry).intercept(call(), next -> {
                    throw mute;
                }))
                .isSameAs(mute);
        assertThat(awaitSpans(1)).hasSize(1);
    }

    @Test
    void aStageThatTakesNothingIsTheResultAllTheSame() throws Throwable {
        CompletableFuture<String> stage = new CompletableFuture<>() {
            @Override
            public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> then) {
                throw new IllegalStateException("injected");
            }
        };
        assertThat(CallTracing.ofServer(telemetry).intercept(call(), next -> stage))
                .isSameAs(stage);
        assertThat(awaitSpans(1)).hasSize(1);
    }
}
