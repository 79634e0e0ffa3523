package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.ledger.Ledger;
import java.time.Duration;
import java.util.function.UnaryOperator;

/**
 * A server of the service {@code counter} that speaks gRPC. Its end checks that nothing is held any more for a call or
 * a connection that is over.
 */
final class Served implements AutoCloseable {
    final Counter counter = new Counter();
    final Server server;

    Served() {
        this(builder -> builder);
    }

    Served(UnaryOperator<Server.Builder> settings) {
        server = settings.apply(Server.builder(RegistryServer.registry(counter))
                        .host("127.0.0.1")
                        .grpc(GrpcClient.PACKAGE))
                .build()
                .start();
    }

    int port() {
        return server.port();
    }

    GrpcClient client() {
        return new GrpcClient(port());
    }

    @Override
    public void close() {
        // what a future that nobody has completed holds stays charged
        counter.released.complete("");
        server.stop(Duration.ofSeconds(2));
        await().untilAsserted(() -> assertThat(Ledger.auditAll()).as("held").isEmpty());
    }
}
