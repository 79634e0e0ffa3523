package dev.parley.transport.graphql;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code graphql} as its documentation sets it up, and {@code graphql-tuned} with documents parsed once. */
public final class GraphqlProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new GraphqlTransport(false), new GraphqlTransport(true));
    }
}
