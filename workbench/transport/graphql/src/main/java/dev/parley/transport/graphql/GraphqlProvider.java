package dev.parley.transport.graphql;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code graphql} as its documentation sets it up, {@code graphql-tuned} with documents parsed once, {@code graphql-fields} asking for less. */
public final class GraphqlProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(
                new GraphqlTransport(false), new GraphqlTransport(true), new GraphqlTransport(false, Selection.READ));
    }
}
