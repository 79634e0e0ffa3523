package dev.parley.transport.rpcx;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code rpcx}, as it comes out of the box, and {@code rpcx-classic}. */
public final class RpcxTransports implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new RpcxTransport(RpcxWire.NATIVE), new RpcxTransport(RpcxWire.CLASSIC));
    }
}
