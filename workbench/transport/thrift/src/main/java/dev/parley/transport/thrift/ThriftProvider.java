package dev.parley.transport.thrift;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code thrift} and {@code thrift-tuned}. */
public final class ThriftProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new ThriftTransport(false), new ThriftTransport(true));
    }
}
