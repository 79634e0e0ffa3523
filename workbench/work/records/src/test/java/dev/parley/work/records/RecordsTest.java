package dev.parley.work.records;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.parley.backend.Backend;
import dev.parley.backend.BackendUnavailable;
import dev.parley.backend.Backends;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Nothing;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** A star of three services over the real PostgreSQL, without a network between the services. */
@Timeout(120)
class RecordsTest {
    private static final Topology STAR = Topology.parse("graph:s1>s2,s3");
    private static final Duration TIME = Duration.ofSeconds(20);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path folder;

    private static Backend.Running postgres;

    private final RecordsWork work = new RecordsWork();
    private final List<Work.Node> nodes = new ArrayList<>();
    private Work.Node entry;

    @BeforeAll
    static void start() throws InterruptedException {
        try {
            postgres = new Backends(Path.of("").toAbsolutePath())
                    .named("postgres")
                    .start(folder.resolve("postgres"), line -> {});
        } catch (BackendUnavailable e) {
            Assumptions.abort(e.getMessage());
        }
    }

    @AfterAll
    static void stop() {
        if (postgres != null) {
            postgres.close();
        }
    }

    @BeforeEach
    void begin() {
        Map<String, Location> backends = Map.of("postgres", new Location.Socket(postgres.host(), postgres.port()));
        work.prepare(STAR, node -> backends);
        Map<String, Neighbour> neighbours = new HashMap<>();
        for (Topology.Node node : STAR.calleesFirst()) {
            entry = work.node(node, neighbours, backends);
            nodes.add(entry);
            neighbours.put(node.name(), calling(entry));
        }
    }

    @AfterEach
    void end() {
        nodes.forEach(Work.Node::close);
    }

    /** A neighbour in this process. */
    private static Neighbour calling(Work.Node node) {
        return new Neighbour() {
            @Override
            public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
                return node.handle(operation, request);
            }

            @Override
            public long payloadBytes(Record message) {
                return 0;
            }

            @Override
            public void close() {}
        };
    }

    private static Code code(ThrowingCallable call) {
        return catchThrowableOfType(CallException.class, call).code();
    }

    @Test
    void aScenarioOfEveryStepIsAnsweredRightlyAndLeavesWhatItFound() {
        for (int index = 0; index < 5; index++) {
            for (String step :
                    List.of("list", "add", "list", "edit", "delete", "list", "upload:1000", "download:1000")) {
                assertRight(work.exchange(MessageSpec.parse(step), STAR, STAR.entry(), 9), index);
            }
            assertRight(work.exchange(MessageSpec.parse("download"), STAR, STAR.entry(), 9), index);
        }
        assertThat(entry.handle(Records.ALL, new Nothing()).entries())
                .containsExactlyInAnyOrderElementsOf(Contents.base());
    }

    private <Q extends Record, R extends Record> void assertRight(Work.Exchange<Q, R> exchange, int index) {
        Q request = exchange.request(index);
        assertThat(exchange.isRight(request, entry.handle(exchange.operation(), request)))
                .as(exchange.operation().name())
                .isTrue();
    }

    @Test
    void aRecordTakesOneKilobyte() {
        Entry one = Contents.entry(1, 1, 0);
        assertThat(one.id().length()
                        + one.title().length()
                        + one.author().length()
                        + one.body().length())
                .isEqualTo(1000);
    }

    @Test
    void whatCannotBeStoredIsRefusedWithTheSameMeaningAsEverywhere() {
        Entry good = Contents.entry(1, 1, 0);
        String missing = "00000000-0000-4000-8000-000000000000";
        assertThat(code(() -> entry.handle(Records.EDIT, new Entry(missing, good.title(), good.author(), good.body()))))
                .isEqualTo(Code.NOT_FOUND);
        assertThat(code(() -> entry.handle(Records.DELETE, new EntryId(missing))))
                .isEqualTo(Code.NOT_FOUND);
        assertThat(code(() -> entry.handle(Records.DOWNLOAD, new PhotoName("none"))))
                .isEqualTo(Code.NOT_FOUND);
        assertThat(code(() -> entry.handle(Records.DELETE, new EntryId("1; DROP TABLE entry"))))
                .isEqualTo(Code.INVALID);
        assertThat(code(() -> entry.handle(Records.ADD, new Entry(good.id(), "", "a", "b"))))
                .isEqualTo(Code.INVALID);
        assertThat(code(() -> entry.handle(Records.ADD, new Entry(good.id(), "t\0", "a", "b"))))
                .isEqualTo(Code.INVALID);
        assertThat(code(() -> entry.handle(Records.ADD, new Entry(good.id(), "t", "a", "b".repeat(100_001)))))
                .isEqualTo(Code.TOO_LARGE);
        assertThat(code(() -> entry.handle(Records.UPLOAD, new Photo("p", new byte[10_000_001]))))
                .isEqualTo(Code.TOO_LARGE);

        Entry sql = new Entry(good.id(), "'); DROP TABLE entry; --", "O'Neill", "\\ \" ąčę 日本");
        assertThat(entry.handle(Records.ADD, sql)).isEqualTo(sql);
        assertThat(entry.handle(Records.ALL, new Nothing()).entries())
                .contains(sql)
                .hasSize(Contents.BASE + 1);
    }
}
