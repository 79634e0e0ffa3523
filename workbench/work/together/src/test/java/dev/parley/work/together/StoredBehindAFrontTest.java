package dev.parley.work.together;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Topology;
import dev.parley.process.Child;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.Records;
import dev.parley.work.records.RecordsWork;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What PostgreSQL holds is what clients sent, by services that are processes of their own: behind a front, and killed.
 * The long form: {@code -Dparley.operations=10000}, which also prints a line a technology, and
 * {@code -Dparley.long=true}, which has more technologies behind a front, and kills services of more technologies.
 */
@Timeout(300)
class StoredBehindAFrontTest {
    private static final Topology ALONE = Topology.parse("line:1");
    private static Stored stored;

    @BeforeAll
    static void start() throws InterruptedException {
        stored = Stored.inPostgres();
    }

    /**
     * Technologies that carry the work, and whose libraries do not stand beside the others' on one class path. Two by
     * default: JSON over Spring's web server, and Protobuf over gRPC. The contract of each technology has records too.
     */
    static List<String> behindAFront() {
        return Boolean.getBoolean("parley.long")
                ? List.of("openfeign", "rest-spring", "grpc-spring", "rsocket")
                : List.of("openfeign", "grpc-spring");
    }

    @ParameterizedTest
    @MethodSource("behindAFront")
    void behindAFrontToo(String technology) throws Exception {
        try (Pair pair = new Pair(technology, new RecordsWork())) {
            stored.changeAndCompare(technology, pair.client(), List.of(Pair.BACK));
            stored.sendAndFetch(pair.client(), List.of(Pair.BACK));
        }
    }

    // ---- a service that is killed

    /**
     * Two by default: the work and PostgreSQL see to it that a write is whole, and the contract of each technology that
     * the call to a killed service fails.
     */
    static List<String> killed() {
        return Boolean.getBoolean("parley.long") ? List.of("rest", "graphql", "grpc", "rpcx") : List.of("rest", "rpcx");
    }

    @ParameterizedTest
    @MethodSource("killed")
    void aServiceKilledInMidWriteLeavesEachRecordAsOneWriteLeftIt(String technology) throws Exception {
        RecordsWork work = new RecordsWork();
        work.prepare(ALONE, node -> RealServers.locations());
        Location at = Services.freeLocation();
        List<Entry> base = List.copyOf(stored.tables().entries("m1").values());
        Map<String, Entry> answered = new ConcurrentHashMap<>();
        Map<String, Entry> underWay = new ConcurrentHashMap<>();
        Map<String, String> photos = new ConcurrentHashMap<>();
        CountDownLatch busy = new CountDownLatch(200);
        base.forEach(entry -> answered.put(entry.id(), entry));
        try (Child service = Pair.service(
                        "m1", ALONE, work, List.of(technology), List.of("transport=" + technology, "at=" + at));
                Neighbour client = TransportProvider.named(technology).connect("client", work.contract(), at);
                ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int number = 0; number < 16; number++) {
                Entry mine = base.get(number);
                clients.submit(() -> {
                    for (long version = 0; ; version++) {
                        Entry edited = Stored.entry(UUID.fromString(mine.id()), version);
                        underWay.put(mine.id(), edited);
                        client.call(Records.EDIT, edited, Stored.TIMEOUT);
                        answered.put(mine.id(), edited);
                        busy.countDown();
                    }
                });
            }
            clients.submit(() -> {
                for (long version = 0; ; version++) {
                    byte[] content = Stored.content(875_000, version);
                    photos.put(Stored.sha256(content), "sent");
                    client.call(Records.UPLOAD, new Photo("held", content), Stored.TIMEOUT);
                }
            });
            busy.await();
            // as kill -9 does, with sixteen edits and a photo under way
            service.handle().destroyForcibly();
            service.handle().onExit().join();
        }
        Map<String, Entry> left = stored.tables().entries("m1");
        assertThat(left).hasSameSizeAs(base);
        for (Entry entry : left.values()) {
            assertThat(entry)
                    .isIn(answered.get(entry.id()), underWay.getOrDefault(entry.id(), answered.get(entry.id())));
        }
        String held = stored.tables().photos("m1").get("held");
        assertThat(held == null || photos.containsKey(held))
                .as("a whole photo, or none")
                .isTrue();
    }
}
