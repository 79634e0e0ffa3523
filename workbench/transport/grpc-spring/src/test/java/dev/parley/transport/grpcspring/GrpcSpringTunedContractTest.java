package dev.parley.transport.grpcspring;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class GrpcSpringTunedContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new GrpcSpringTransport(true);
    }
}
