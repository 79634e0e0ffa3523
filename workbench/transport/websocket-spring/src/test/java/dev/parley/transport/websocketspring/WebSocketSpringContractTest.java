package dev.parley.transport.websocketspring;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class WebSocketSpringContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new WebSocketSpringTransport(false);
    }
}
