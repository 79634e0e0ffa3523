package dev.parley.work.together;

import dev.parley.model.Topology;
import dev.parley.work.records.RecordsWork;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What PostgreSQL holds is what clients sent over each technology. The long form: {@code -Dparley.operations=10000},
 * which also prints a line a technology.
 */
@Timeout(300)
class StoredIsSentTest {
    private static final Topology STAR = Topology.parse("graph:s1>s2,s3");
    private static final List<String> LEAVES = List.of("s2", "s3");
    private static Stored stored;

    @BeforeAll
    static void start() throws InterruptedException {
        stored = Stored.inPostgres();
    }

    @ParameterizedTest
    @ValueSource(strings = {"rest", "graphql", "grpc", "rpcx", "websocket", "rabbitmq", "kafka"})
    void recordsAndPhotosAreStoredAsSent(String technology) throws Exception {
        try (Services services = new Services(technology, new RecordsWork(), STAR, RealServers.locations())) {
            stored.changeAndCompare(technology, services.client(), LEAVES);
            stored.sendAndFetch(services.client(), LEAVES);
        }
    }
}
