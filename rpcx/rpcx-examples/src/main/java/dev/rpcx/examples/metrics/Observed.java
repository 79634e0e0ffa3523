package dev.rpcx.examples.metrics;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.micrometer.CallMetrics;
import dev.rpcx.opentelemetry.CallTracing;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;

/** Counts and times calls, and makes a span of each, at both sides. */
public final class Observed {
    @RPCXServer("weather")
    static class Weather {
        @Method("celsius")
        double celsius(String city) {
            return city.length();
        }
    }

    @RPCXClient(remoteServerName = "weather")
    interface WeatherClient {
        @Method("celsius")
        double celsius(String city);
    }

    private Observed() {}

    public static void main(String[] args) {
        MeterRegistry meters = new SimpleMeterRegistry(); // yours sends to Prometheus, say
        OpenTelemetry telemetry = GlobalOpenTelemetry.get(); // the agent's or your own
        try (Server server = Server.builder(RegistryServer.registry(new Weather()))
                        .interceptor(CallTracing.ofServer(telemetry))
                        .interceptor(CallMetrics.ofServer(meters))
                        .build()
                        .start();
                Client client = Client.builder()
                        .interceptor(CallTracing.ofClient(telemetry))
                        .interceptor(CallMetrics.ofClient(meters))
                        .build()) {
            WeatherClient weather = client.create(WeatherClient.class, "127.0.0.1", server.port());
            weather.celsius("Oslo");
            weather.celsius("Rome");
            long calls = meters.get("rpcx.client.calls")
                    .tag("method", "celsius")
                    .tag("outcome", "OK")
                    .timer()
                    .count();
            System.out.println(calls + " calls were OK");
        }
    }
}
