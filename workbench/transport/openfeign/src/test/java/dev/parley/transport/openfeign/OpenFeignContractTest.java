package dev.parley.transport.openfeign;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;
import java.util.List;

class OpenFeignContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        // HttpURLConnection's idle connections are the JDK's own and stay for as long as the server's Keep-Alive header
        // says, which is a
        // minute by Tomcat's default: here it says a few seconds, so that the kit need not wait to see them go
        return new OpenFeignTransport(HttpUse.KEPT, List.of("server.tomcat.keep-alive-timeout=2s"));
    }

    @Override
    protected boolean clientsShareConnections() {
        return true;
    }
}
