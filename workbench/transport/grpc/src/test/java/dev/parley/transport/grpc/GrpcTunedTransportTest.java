package dev.parley.transport.grpc;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class GrpcTunedTransportTest extends TransportContract {
    private final Transport grpc = new GrpcTransport(GrpcUse.TUNED);

    @Override
    protected Transport transport() {
        return grpc;
    }
}
