package dev.parley.service;

import dev.parley.model.Technology;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The technology {@code faulty}, whose server throws when it has started a thread that is no daemon. */
public final class FaultyTransport implements Transport {
    /** Provides it. */
    public static final class Provider implements TransportProvider {
        @Override
        public List<Transport> transports() {
            return List.of(new FaultyTransport());
        }
    }

    @Override
    public Technology technology() {
        return new Technology(
                "faulty",
                "Faulty",
                Technology.Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("none"),
                "nothing",
                Map.of());
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        Thread.ofPlatform().start(FaultyTransport::live);
        throw new IllegalStateException("planted");
    }

    private static void live() {
        try {
            Thread.sleep(Duration.ofMinutes(1));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        throw new IllegalStateException("planted");
    }
}
