package dev.parley.transport.rest;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class RestCloseContractTest extends TransportContract {
    private final Transport rest = new RestTransport(true);

    @Override
    protected Transport transport() {
        return rest;
    }

    @Override
    protected boolean connectsForEachCall() {
        return true;
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
