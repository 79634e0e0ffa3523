package dev.parley.transport.rabbitmq;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.Arrays;
import java.util.List;

/** {@code rabbitmq}, {@code rabbitmq-confirms} and {@code rabbitmq-tuned}. */
public final class RabbitMqProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return Arrays.stream(Wiring.values())
                .<Transport>map(RabbitMqTransport::new)
                .toList();
    }
}
