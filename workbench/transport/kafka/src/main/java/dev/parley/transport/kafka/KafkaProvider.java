package dev.parley.transport.kafka;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.Arrays;
import java.util.List;

/** {@code kafka} and {@code kafka-tuned}. */
public final class KafkaProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return Arrays.stream(Wiring.values())
                .<Transport>map(KafkaTransport::new)
                .toList();
    }
}
