package dev.parley.work.together;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Work;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Page;
import dev.parley.work.lecturers.LecturersWork;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.Jedis;

/**
 * Redis before MySQL, as both servers themselves have counted, and with one of them stopped while clients go on asking.
 */
@Timeout(120)
class CacheAsideTest {
    private static final Topology LINE = Topology.parse("line:2");
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private Services services;
    private String token;

    @BeforeAll
    static void start() throws InterruptedException {
        RealServers.start("mysql", "redis");
    }

    @BeforeEach
    void begin() throws InterruptedException {
        LecturersWork work = new LecturersWork();
        services = new Services("rpcx", work, LINE, RealServers.locations());
        // a run begins with all of it there
        try (Jedis redis = new Jedis("127.0.0.1", RealServers.port("redis"))) {
            redis.flushAll();
        }
        Work.Exchange<?, ?> exchange = work.exchange(MessageSpec.parse("nested:50"), LINE, LINE.entry(), 1);
        exchange.enter(services.client(), TIMEOUT);
        token = ((Page) exchange.request(0)).token();
    }

    @AfterEach
    void end() {
        services.close();
    }

    private NestedProfiles read(int from) {
        return services.client().call(Lecturers.NESTED, new Page(token, from, 50), TIMEOUT);
    }

    /** What the servers have counted since they began. */
    private record Counted(long redisHits, long redisMisses, long mysqlSelects) {
        static Counted now() throws Exception {
            try (Jedis redis = new Jedis("127.0.0.1", RealServers.port("redis"))) {
                String stats = redis.info("stats");
                return new Counted(stat(stats, "keyspace_hits:"), stat(stats, "keyspace_misses:"), selects());
            }
        }

        /** MySQL's own count, which can be asked while Redis stands still. */
        static long selects() throws Exception {
            try (Connection mysql = DriverManager.getConnection(
                            "jdbc:mariadb://127.0.0.1:" + RealServers.port("mysql") + "/parley", "parley", "parley");
                    Statement statement = mysql.createStatement();
                    ResultSet row = statement.executeQuery("SHOW GLOBAL STATUS LIKE 'Com_select'")) {
                row.next();
                return row.getLong(2);
            }
        }

        private static long stat(String stats, String key) {
            return stats.lines()
                    .filter(line -> line.startsWith(key))
                    .mapToLong(line -> Long.parseLong(line.substring(key.length())))
                    .findFirst()
                    .orElseThrow();
        }

        Counted since(Counted before) {
            return new Counted(
                    redisHits - before.redisHits, redisMisses - before.redisMisses, mysqlSelects - before.mysqlSelects);
        }
    }

    private static long ofLooking() throws Exception {
        Counted before = Counted.now();
        return Counted.now().since(before).mysqlSelects();
    }

    @Test
    void theFirstReadMissesInRedisAndReachesMySqlAndTheSecondDoesNeither() throws Exception {
        read(500);
        // what a look at the counters itself adds to them, once the pools have opened all of their connections
        Set<Long> seen = new HashSet<>();
        await().atMost(TIMEOUT).until(() -> {
            seen.clear();
            for (int look = 0; look < 3; look++) {
                seen.add(ofLooking());
            }
            return seen.size() == 1;
        });
        long ofLooking = seen.iterator().next();

        Counted before = Counted.now();
        NestedProfiles first = read(100);
        Counted miss = Counted.now().since(before);
        before = Counted.now();
        NestedProfiles second = read(100);
        Counted hit = Counted.now().since(before);

        assertThat(second).isEqualTo(first);
        // the token of each read is one hit more: who it belongs to stands in Redis since it was given
        assertThat(miss.redisMisses()).isEqualTo(50);
        assertThat(miss.redisHits()).isEqualTo(1);
        assertThat(miss.mysqlSelects() - ofLooking).isEqualTo(1);
        assertThat(hit.redisMisses()).isZero();
        assertThat(hit.redisHits()).isEqualTo(51);
        assertThat(hit.mysqlSelects() - ofLooking).isZero();
    }

    @Test
    void withRedisStoppedInMidRunAnswersGoOnFromMySqlAndComeFromRedisAgain() throws Exception {
        NestedProfiles expected = read(0);
        try (Clients clients = new Clients(() -> read(0).equals(expected))) {
            clients.awaitAnswers(200);
            RealServers.signal("redis", "STOP");
            try {
                // what finds Redis gone waits for it once; the others do not ask it
                clients.awaitAnswers(20);
                long before = Counted.selects();
                clients.awaitAnswers(20);
                assertThat(Counted.selects()).isGreaterThan(before + 10);
            } finally {
                RealServers.signal("redis", "CONT");
            }
            Counted woken = Counted.now();
            await().atMost(TIMEOUT).until(() -> Counted.now().since(woken).redisHits() > 500);
            assertThat(clients.failed()).as("calls that failed or were wrong").isZero();
        }
    }

    @Test
    void withMySqlStoppedInMidRunCachedReadsGoOnAndOthersFailClearlyUntilItIsBack() throws Exception {
        NestedProfiles cached = read(300);
        try (Clients clients = new Clients(() -> read(300).equals(cached))) {
            clients.awaitAnswers(100);
            RealServers.signal("mysql", "STOP");
            try {
                CallException uncached = catchThrowableOfType(CallException.class, () -> read(1000));
                assertThat(uncached.code()).isEqualTo(Code.UNAVAILABLE);
                assertThat(uncached).hasMessageContaining("MySQL");
                clients.awaitAnswers(200);
            } finally {
                RealServers.signal("mysql", "CONT");
            }
            await().atMost(TIMEOUT)
                    .ignoreExceptions()
                    .until(() -> read(1000).profiles().size() == 50);
            assertThat(clients.failed())
                    .as("cached reads that failed or were wrong")
                    .isZero();
        }
    }

    @Test
    void graphqlBringsJustTheFieldsThatAreReadWhereItIsAskedForNoMore() throws Exception {
        LecturersWork work = new LecturersWork();
        Work.Exchange<?, ?> exchange = work.exchange(MessageSpec.parse("nested:50"), LINE, LINE.entry(), 1);
        List<NestedProfiles> replies = new ArrayList<>();
        for (String technology : List.of("graphql", "graphql-fields")) {
            try (Services over = new Services(technology, work, LINE, RealServers.locations())) {
                exchange.enter(over.client(), TIMEOUT);
                replies.add(asked(over.client(), exchange));
            }
        }
        NestedProfiles all = replies.getFirst();
        NestedProfiles some = replies.getLast();
        assertThat(all.profiles())
                .allSatisfy(p -> assertThat(p.nama_status_aktif()).isNotEmpty());
        assertThat(some.profiles()).hasSize(50).allSatisfy(p -> {
            assertThat(p.nama_sdm()).isNotEmpty();
            assertThat(p.nama_status_aktif()).isEmpty();
            assertThat(p.pendidikan_formal()).allSatisfy(e -> {
                assertThat(e.gelar_akademik()).isNotEmpty();
                assertThat(e.nama_perguruan_tinggi()).isEmpty();
            });
        });
    }

    private static <Q extends Record, R extends Record> NestedProfiles asked(
            Neighbour service, Work.Exchange<Q, R> exchange) {
        Q request = exchange.request(0);
        R reply = service.call(exchange.operation(), request, TIMEOUT);
        assertThat(exchange.isRight(request, reply)).isTrue();
        return (NestedProfiles) reply;
    }

    /** Eight clients that ask until they are closed. */
    private static final class Clients implements AutoCloseable {
        private final LongAdder right = new LongAdder();
        private final LongAdder failed = new LongAdder();
        private final AtomicBoolean ended = new AtomicBoolean();
        private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();

        interface Call {
            boolean isRight();
        }

        Clients(Call call) {
            for (int client = 0; client < 8; client++) {
                threads.submit(() -> {
                    while (!ended.get()) {
                        ask(call);
                    }
                });
            }
        }

        private void ask(Call call) {
            try {
                (call.isRight() ? right : failed).increment();
            } catch (CallException e) {
                failed.increment();
            }
        }

        /** Returns when that many more right answers have come. */
        void awaitAnswers(int more) {
            long wanted = right.sum() + more;
            await().atMost(TIMEOUT).until(() -> right.sum() >= wanted);
        }

        long failed() {
            return failed.sum();
        }

        @Override
        public void close() {
            ended.set(true);
            threads.close();
        }
    }
}
