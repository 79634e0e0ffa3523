package dev.parley.transport.rpcx;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** The variants of RPCX: one, as it comes out of the box. */
public final class RpcxTransports implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new RpcxTransport());
    }
}
