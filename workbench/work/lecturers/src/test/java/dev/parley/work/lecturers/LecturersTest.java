package dev.parley.work.lecturers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.parley.backend.Backend;
import dev.parley.backend.BackendUnavailable;
import dev.parley.backend.Backends;
import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.Profile;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.lecturers.Profiles;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** Both services over the real Redis and the real MySQL, without a network between the two services. */
@Timeout(120)
class LecturersTest {
    private static final Topology LINE = Topology.parse("line:2");
    private static final Duration TIME = Duration.ofSeconds(20);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path folder;

    private static Backend.Running mysql;
    private static Backend.Running redis;

    private final LecturersWork work = new LecturersWork();
    private MySql tables;
    private Cache cache;
    private Work.Node authentication;
    private Work.Node profiles;

    @BeforeAll
    static void start() throws InterruptedException {
        Backends backends = new Backends(Path.of("").toAbsolutePath());
        try {
            mysql = backends.named("mysql").start(folder.resolve("mysql"), line -> {});
            redis = backends.named("redis").start(folder.resolve("redis"), line -> {});
        } catch (BackendUnavailable e) {
            Assumptions.abort(e.getMessage());
        }
    }

    @AfterAll
    static void stop() {
        for (Backend.Running running : new Backend.Running[] {mysql, redis}) {
            if (running != null) {
                running.close();
            }
        }
    }

    private static Location at(Backend.Running running) {
        return new Location.Socket(running.host(), running.port());
    }

    @BeforeEach
    void begin() {
        Map<String, Location> backends = Map.of("mysql", at(mysql), "redis", at(redis));
        work.prepare(LINE, node -> backends);
        authentication = work.node(LINE.nodes().getLast(), Map.of(), backends);
        tables = new MySql(at(mysql));
        cache = new Cache(at(redis));
        profiles = new ProfilesNode(Role.PROFILES, tables, cache, "m2", calling(authentication), TIME);
    }

    @org.junit.jupiter.api.AfterEach
    void end() {
        profiles.close();
        authentication.close();
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

    private String token() {
        return profiles.handle(Lecturers.AUTHENTICATE, new Credentials(LecturersWork.USER, LecturersWork.PASSWORD))
                .token();
    }

    private static Code code(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
        return catchThrowableOfType(CallException.class, call).code();
    }

    @Test
    void everyPageOfTheExchangeIsRightAndOneOfAnotherIsNot() {
        for (String message : List.of("flat:1", "flat:100", "nested:100", "flat:2221", "nested:2221")) {
            assertRight(work.exchange(MessageSpec.parse(message), LINE, LINE.entry(), 3));
        }
        assertRight(
                work.exchange(MessageSpec.parse("flat:1"), LINE, LINE.nodes().getLast(), 3));
    }

    private <Q extends Record, R extends Record> void assertRight(Work.Exchange<Q, R> exchange) {
        exchange.enter(calling(profiles), TIME);
        for (int index = 0; index < 5; index++) {
            Q request = exchange.request(index);
            assertThat(exchange.isRight(request, profiles.handle(exchange.operation(), request)))
                    .isTrue();
        }
    }

    @Test
    void theFirstReadIsAMissThatReachesMySqlAndTheSecondAHitThatDoesNot() {
        String token = token();
        cache.forget(ProfilesNode.keys());
        Page page = new Page(token, 100, 50);

        var first = profiles.handle(Lecturers.NESTED, page);
        assertThat(cache.misses()).isEqualTo(50);
        assertThat(tables.reads()).isEqualTo(1);

        assertThat(profiles.handle(Lecturers.NESTED, page)).isEqualTo(first);
        assertThat(cache.hits()).isEqualTo(50);
        assertThat(cache.misses()).isEqualTo(50);
        assertThat(tables.reads()).isEqualTo(1);

        assertThat(first.profiles()).isEqualTo(People.all().nested().subList(100, 150));
    }

    @Test
    void aRunBeginsWithAllThatIsReadInRedis() {
        String token = token();
        assertThat(profiles.handle(Lecturers.NESTED, new Page(token, 0, 2_221)).profiles())
                .isEqualTo(People.all().nested());
        assertThat(profiles.handle(Lecturers.FLAT, new Page(token, 0, 2_221)).profiles())
                .isEqualTo(People.all().flat());
        assertThat(cache.hits()).isEqualTo(2 * 2_221);
        assertThat(cache.misses()).isZero();
        assertThat(tables.reads()).isZero();
    }

    @Test
    void moreCallsThanThereAreConnectionsToRedisWaitForTheirTurn() {
        String token = token();
        Page all = new Page(token, 0, 2_221);
        try (ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Integer>> replies = IntStream.range(0, 100)
                    .mapToObj(client -> clients.submit(() ->
                            profiles.handle(Lecturers.NESTED, all).profiles().size()))
                    .toList();
            assertThat(replies).allSatisfy(reply -> assertThat(reply.get()).isEqualTo(2_221));
        }
        assertThat(tables.reads())
                .as("calls that took a turn that did not come for a lost Redis")
                .isZero();
    }

    @Test
    void ofThreeServicesEachReadsOnlyWhatItsNameSays() {
        Topology three = Topology.parse("graph:flat>authentication;nested>authentication");
        Map<String, Location> backends = Map.of("mysql", at(mysql), "redis", at(redis));
        String token = token();
        Page page = new Page(token, 0, 1);
        Map<String, Neighbour> neighbours = Map.of("authentication", calling(authentication));
        try (Work.Node flat = work.node(three.node("flat"), neighbours, backends);
                Work.Node nested = work.node(three.node("nested"), neighbours, backends)) {
            assertThat(flat.handle(Lecturers.FLAT, page).profiles()).hasSize(1);
            assertThat(nested.handle(Lecturers.NESTED, page).profiles()).hasSize(1);
            assertThat(code(() -> flat.handle(Lecturers.NESTED, page))).isEqualTo(Code.NOT_FOUND);
            assertThat(code(() -> nested.handle(Lecturers.FLAT, page))).isEqualTo(Code.NOT_FOUND);
        }
    }

    @Test
    void clientsAskTheFirstServiceForWhatItReads() {
        Topology three = Topology.parse("graph:flat>authentication;nested>authentication");
        assertThat(work.exchange(MessageSpec.parse("flat:2221"), three, three.entry(), 1)
                        .operation())
                .isEqualTo(Lecturers.FLAT);
        assertThat(work.exchange(MessageSpec.parse("flat:2221"), three, three.node("nested"), 1)
                        .operation())
                .isEqualTo(Lecturers.NESTED);
        assertThatThrownBy(() -> work.exchange(MessageSpec.parse("nested:100"), three, three.entry(), 1))
                .isInstanceOf(BadInput.class)
                .hasMessage(
                        "message: nested:100 for graph:flat>authentication;nested>authentication, whose first service"
                                + " is flat (expected: flat:n, or a topology whose first service is nested)");
    }

    @Test
    void aTokenThatIsMissingOrWrongIsUnauthenticated() {
        token();
        for (String wrong : List.of("", "x", "' OR '1'='1", "0".repeat(64))) {
            assertThat(code(() -> profiles.handle(Lecturers.FLAT, new Page(wrong, 0, 1))))
                    .isEqualTo(Code.UNAUTHENTICATED);
        }
        assertThat(code(() -> profiles.handle(Lecturers.AUTHENTICATE, new Credentials("reader", "wrong"))))
                .isEqualTo(Code.UNAUTHENTICATED);
        assertThat(code(() -> profiles.handle(Lecturers.AUTHENTICATE, new Credentials("' OR 1=1 -- ", ""))))
                .isEqualTo(Code.UNAUTHENTICATED);
    }

    @Test
    void sqlInANameIsANameThatNobodyHas() {
        String token = token();
        Profile someone = People.all().flat().getFirst();
        assertThat(profiles.handle(Lecturers.NAMED, new NameAsked(token, someone.nama_sdm())))
                .isEqualTo(new Profiles(People.all().flat().stream()
                        .filter(p -> p.nama_sdm().equals(someone.nama_sdm()))
                        .toList()));
        assertThat(profiles.handle(Lecturers.NAMED, new NameAsked(token, "' OR 1=1; DROP TABLE profile; -- "))
                        .profiles())
                .isEmpty();
        assertThat(profiles.handle(Lecturers.FLAT, new Page(token, 0, 2_221)).profiles())
                .hasSize(2_221);
    }

    @Test
    void anIdThatDoesNotExistIsNotFoundAndOneThatIsNoneIsInvalid() {
        String token = token();
        Profile someone = People.all().flat().get(7);
        for (int i = 0; i < 2; i++) {
            assertThat(profiles.handle(Lecturers.PROFILE, new ProfileAsked(token, someone.id_sdm())))
                    .isEqualTo(someone);
        }
        assertThat(code(() -> profiles.handle(
                        Lecturers.PROFILE, new ProfileAsked(token, "00000000-0000-4000-8000-000000000000"))))
                .isEqualTo(Code.NOT_FOUND);
        assertThat(code(() -> profiles.handle(Lecturers.PROFILE, new ProfileAsked(token, "1' OR '1'='1"))))
                .isEqualTo(Code.INVALID);
        for (Page wrong : List.of(new Page(token, -1, 1), new Page(token, 0, 0), new Page(token, 0, 2_222))) {
            assertThat(code(() -> profiles.handle(Lecturers.FLAT, wrong))).isEqualTo(Code.INVALID);
        }
        assertThat(profiles.handle(Lecturers.FLAT, new Page(token, Integer.MAX_VALUE, 10))
                        .profiles())
                .isEmpty();
    }
}
