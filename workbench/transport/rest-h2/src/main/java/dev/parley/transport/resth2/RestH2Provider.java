package dev.parley.transport.resth2;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code rest-h2}, and {@code rest-jetty}, which is the same but for the version of HTTP. */
public final class RestH2Provider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new RestH2Transport(HttpVersion.HTTP_2), new RestH2Transport(HttpVersion.HTTP_1_1));
    }
}
