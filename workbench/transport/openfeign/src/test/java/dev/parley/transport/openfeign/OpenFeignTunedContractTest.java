package dev.parley.transport.openfeign;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class OpenFeignTunedContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new OpenFeignTransport(HttpUse.POOLED);
    }

    @Override
    protected boolean clientsShareConnections() {
        return true;
    }
}
