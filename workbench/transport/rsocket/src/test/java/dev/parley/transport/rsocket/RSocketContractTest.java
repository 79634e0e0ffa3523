package dev.parley.transport.rsocket;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class RSocketContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new RSocketTransport(false);
    }
}
