package dev.parley.transport.resth2;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class RestJettyContractTest extends TransportContract {
    private final Transport rest = new RestH2Transport(HttpVersion.HTTP_1_1);

    @Override
    protected Transport transport() {
        return rest;
    }

    /**
     * {@code io.helidon.webserver.LoomServer} 4.3.1 makes this daemon for each server and never cancels it; a service
     * has one server.
     */
    @Override
    protected boolean isKeptByItsLibrary(String leftover) {
        return leftover.equals("thread helidon-idle-connection-timer");
    }
}
