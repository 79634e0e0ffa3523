package dev.parley.transport.websocket;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class WebSocketCloseContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new WebSocketTransport(true);
    }
    /**
     * {@code io.helidon.webserver.LoomServer} 4.3.1 makes this daemon for each server and never cancels it; a service
     * has one server.
     */
    @Override
    protected boolean isKeptByItsLibrary(String leftover) {
        return leftover.equals("thread helidon-idle-connection-timer");
    }

    @Override
    protected boolean connectsForEachCall() {
        return true;
    }
}
