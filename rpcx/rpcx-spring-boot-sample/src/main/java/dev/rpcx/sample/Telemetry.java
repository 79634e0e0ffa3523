package dev.rpcx.sample;

import dev.rpcx.spring.RPCXServing;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.util.Collection;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.ApplicationListener;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * Configures the telemetry of a service: it writes each span as a line to standard output, where a company would send
 * the span to its collector. It also writes there on which port the service listens.
 */
@Configuration(proxyBeanMethods = false)
public class Telemetry {
    /** Called by Spring. */
    public Telemetry() {}

    @Bean
    OpenTelemetry openTelemetry() {
        return telemetry();
    }

    @Bean
    ApplicationListener<ApplicationReadyEvent> portPrinter(RPCXServing serving) {
        return ready -> System.out.println("serving " + serving.port().orElseThrow());
    }

    static OpenTelemetry telemetry() {
        return OpenTelemetrySdk.builder()
                .setTracerProvider(SdkTracerProvider.builder()
                        .addSpanProcessor(SimpleSpanProcessor.create(new Lines()))
                        .build())
                .setPropagators(ContextPropagators.create(W3CTraceContextPropagator.getInstance()))
                .build();
    }

    private static final class Lines implements SpanExporter {
        @Override
        public CompletableResultCode export(Collection<SpanData> spans) {
            for (SpanData span : spans) {
                System.out.println("span " + span.getTraceId() + " " + span.getParentSpanId() + " > " + span.getSpanId()
                        + " " + span.getKind() + " " + span.getName());
            }
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode flush() {
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode shutdown() {
            return CompletableResultCode.ofSuccess();
        }
    }
}
