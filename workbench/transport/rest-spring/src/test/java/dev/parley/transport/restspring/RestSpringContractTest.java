package dev.parley.transport.restspring;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class RestSpringContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new RestSpringTransport(false);
    }
}
