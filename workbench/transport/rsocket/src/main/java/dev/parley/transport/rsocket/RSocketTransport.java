package dev.parley.transport.rsocket;

import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * RSocket over TCP as its documentation sets it up.
 *
 * @param tuned whether replies are read where the network put them. Source: github.com/rsocket/rsocket-java, README,
 *     Zero Copy
 */
record RSocketTransport(boolean tuned) implements Transport {
    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("protocol", "RSocket 1.0 over TCP, request/response");
        settings.put(
                "connections",
                "one a neighbour, shared by all callers (RSocketConnector); opened by the first call, again after a loss");
        settings.put("serializer", "Jackson 3 as data, the operation's name as metadata");
        settings.put("largest message", "16 MiB, one frame (rsocket-java's limit without fragmentation)");
        settings.put(
                "executor",
                "event loops of reactor-netty; handlers on a bounded elastic scheduler of " + RSocketServing.THREADS
                        + " threads");
        settings.put(
                "payload decoder",
                tuned
                        ? "ZERO_COPY at both ends (rsocket-java, README, Zero Copy)"
                        : "ZERO_COPY at the server; the client's own, which copies each payload");
        settings.put("Netty", "its own 4.1, which reactor-netty 1.0 is built for");
        settings.put("TCP_NODELAY", "on at both ends (reactor-netty's default)");
        return new Technology(
                tuned ? "rsocket-tuned" : "rsocket",
                tuned ? "RSocket over TCP (JSON), payloads not copied" : "RSocket over TCP (JSON)",
                Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("RSocket server", "dispatcher of metadata to operations", "RSocket client"),
                "the caller knows host and port of each service that it calls",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return new RSocketServing(contract, at, handler);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new RSocketNeighbour(to, tuned);
    }
}
