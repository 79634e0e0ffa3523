package dev.parley.transport.websocketspring;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class WebSocketSpringCloseContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new WebSocketSpringTransport(true);
    }

    @Override
    protected boolean connectsForEachCall() {
        return true;
    }
}
