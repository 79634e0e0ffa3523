package dev.parley.transport.websocketspring;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class WebSocketSpringContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new WebSocketSpringTransport(false);
    }

    /**
     * Tomcat's client has one pool of threads for a process. It ends with the last connection, for which a server that
     * has gone is awaited 30 s.
     */
    @Override
    protected boolean isKeptByItsLibrary(String leftover) {
        return leftover.startsWith("thread WebSocketClient-AsyncIO-");
    }
}
