package dev.parley.transport.graphql;

import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** One variant of GraphQL over HTTP. */
final class GraphqlTransport implements Transport {
    private final boolean tuned;
    private final Selection selection;

    GraphqlTransport(boolean tuned) {
        this(tuned, Selection.ALL);
    }

    GraphqlTransport(boolean tuned, Selection selection) {
        this.tuned = tuned;
        this.selection = selection;
    }

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("HTTP version", "1.1; POST /graphql, always (GraphQL over HTTP, section 6)");
        settings.put("connections", "java.net.http pool: one a call in flight, kept alive");
        settings.put("serializer", "Jackson 3, variables as JSON, never in the text of the query");
        settings.put(
                "selection",
                selection == Selection.ALL
                        ? "every field of the reply"
                        : "only the fields that the client reads, of operations that say so (lecturers: names and degrees); the others whole");
        settings.put(
                "parsed documents",
                tuned
                        ? "kept by query text (PreparsedDocumentProvider; graphql-java documentation, Query caching)"
                        : "parsed and validated for each call, graphql-java's default");
        settings.put("executor", "Helidon: a virtual thread a connection; data fetchers run on it");
        settings.put(
                "TCP_NODELAY",
                "on at both ends: the client's own choice; the server's would be off, and on is what every other technology here has");
        settings.put(
                "SO_RCVBUF of the server",
                "208 KiB, Linux' default bound: Helidon's own 4 KiB stops TCP for seconds where packets are larger, as on loopback");
        settings.put("request body", "at most " + GraphqlServer.MAX_BODY_BYTES + " bytes");
        return new Technology(
                selection == Selection.READ ? "graphql-fields" : tuned ? "graphql-tuned" : "graphql",
                selection == Selection.READ
                        ? "GraphQL over HTTP, only the fields that are read"
                        : tuned ? "GraphQL over HTTP, documents parsed once" : "GraphQL over HTTP",
                Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("GraphQL server", "GraphQL abstraction layer (schema and data fetchers)", "GraphQL client"),
                "the caller knows host and port of each service that it calls",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return new GraphqlServer(new GraphqlEngine(contract, handler, tuned), at);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new GraphqlNeighbour(contract, to, selection);
    }
}
