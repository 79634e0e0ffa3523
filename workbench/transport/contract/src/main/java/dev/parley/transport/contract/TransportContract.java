package dev.parley.transport.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.model.MessageSpec;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.process.Ports;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import dev.parley.spi.json.Json;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.parley.spi.records.Records;
import dev.parley.work.messages.MessagesWork;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What every technology must do, over its real server and client. Extend it once a variant and give the transport; override the rest only
 * where the technology's documentation says that it differs, with the source in a comment.
 *
 * <p>One class of more than 400 lines: it is the list of promises, read from top to bottom.
 */
@Timeout(120)
public abstract class TransportContract {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final Topology.Node LEAF = new Topology.Node("m2", List.of(), Topology.Calling.ONE_AFTER_THE_OTHER);
    private static final Handler ECHO = new MessagesWork().node(LEAF, Map.of());

    private static final String FAIL = "fail as ";

    /** Echoes, or fails as a text asks for. */
    private static final Handler ECHO_OR_FAILURE = new Handler() {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            if (request instanceof TestModelOnlyText text && text.textField().startsWith(FAIL)) {
                Code code = Code.valueOf(text.textField().substring(FAIL.length()));
                throw new CallException(code, failureOf(code));
            }
            return ECHO.handle(operation, request);
        }
    };

    /** A server and its neighbour for all tests of a class that leave them as they were: some technologies take a second to start. */
    private static final Deque<AutoCloseable> SHARED = new ArrayDeque<>();

    /** How the shared server answers in the test under way. */
    private static volatile Handler sharedAnswers = ECHO_OR_FAILURE;

    private static final Handler AS_THE_TEST_SAYS = new Handler() {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            return sharedAnswers.handle(operation, request);
        }
    };

    private final Deque<AutoCloseable> open = new ArrayDeque<>();

    protected abstract Transport transport();

    /** Where the next server of that name can be reached: a free port, unless a broker stands between. */
    protected Location freeLocation(String service) {
        return new Location.Socket("127.0.0.1", Ports.free());
    }

    /** How a call may end when its server is gone. At a broker the request may wait until its time is over: add that. */
    protected Set<Code> whenServerIsGone() {
        return transport().technology().broker().isPresent()
                ? EnumSet.of(Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
                : EnumSet.of(Code.UNAVAILABLE);
    }

    /** The limit of a call to a server that is gone. A broker keeps the request until someone serves it: there the limit is what ends the call. */
    private Duration untilNobodyAnswers() {
        return transport().technology().broker().isPresent() ? Duration.ofSeconds(1) : TIMEOUT;
    }

    /** Whether the technology's library is known to keep what {@link Leftovers} names, such as {@code thread x-timer}, and cannot be told not to. */
    protected boolean isKeptByItsLibrary(String leftover) {
        return false;
    }

    /** Whether each call opens a connection and closes it, as the technology's settings then say. */
    protected boolean connectsForEachCall() {
        return false;
    }

    /** Whether the clients of a process share connections, as the technology's settings then say. */
    protected boolean clientsShareConnections() {
        return false;
    }

    /** Ends the broker as a crash does. Called only for a technology that names one. */
    protected void breakBroker() {
        throw new UnsupportedOperationException(getClass() + " names a broker (expected: breakBroker overridden)");
    }

    /** Starts the broker again at the same place; returns when it answers. */
    protected void healBroker() {
        throw new UnsupportedOperationException(getClass() + " names a broker (expected: healBroker overridden)");
    }

    @AfterEach
    void closeAll() throws Exception {
        sharedAnswers = ECHO_OR_FAILURE;
        while (!open.isEmpty()) {
            open.pop().close();
        }
    }

    /** Where a broker is ended after the last test, first: without one, closing waits. */
    @AfterAll
    protected static void closeShared() throws Exception {
        while (!SHARED.isEmpty()) {
            SHARED.pop().close();
        }
    }

    private Neighbour shared() {
        if (SHARED.isEmpty()) {
            Location at = freeLocation("m2");
            SHARED.push(transport().serve("m2", Messages.CONTRACT, at, AS_THE_TEST_SAYS));
            SHARED.push(transport().connect("m1", Messages.CONTRACT, at));
        }
        return (Neighbour) SHARED.element();
    }

    /** The shared ones, with another answer until the test is over. */
    private Neighbour shared(Answering.Answer answer) {
        Neighbour neighbour = shared();
        sharedAnswers = new Answering(answer);
        return neighbour;
    }

    // ---- what comes back

    @ParameterizedTest
    @ValueSource(
            strings = {
                "text:0",
                "text:1",
                "text:10",
                "text:1000",
                "text:65536",
                "text:100000",
                "text:1000000",
                "types:1",
                "types:10",
                "types:100",
                "types:1000",
                "types:10000"
            })
    void whatComesBackIsWhatWasSent(String message) {
        Neighbour neighbour = shared();
        for (String topology : List.of("line:1", "graph:m0>m1,m2")) {
            Topology parsed = Topology.parse(topology);
            Topology.Node asked = parsed.nodes().getLast();
            assertRight(neighbour, new MessagesWork().exchange(MessageSpec.parse(message), parsed, asked, 11));
        }
    }

    private static <Q extends Record, R extends Record> void assertRight(
            Neighbour neighbour, Work.Exchange<Q, R> exchange) {
        for (int index = 0; index < 3; index++) {
            Q request = exchange.request(index);
            R reply = neighbour.call(exchange.operation(), request, TIMEOUT);
            // not equal as a rule of AssertJ: the message of a failure would hold a megabyte
            assertThat(exchange.isRight(request, reply)).isTrue();
        }
    }

    @Test
    void textOfEveryLanguageComesBack() {
        Neighbour neighbour = shared();
        for (String text :
                List.of("\u0000\u0001\t\r\n\u007f", "ąčęėįšųūž", "日本語", "\uD83D\uDE00\uD83C\uDF0D", "\"\\/{}[]<>&'")) {
            assertThat(neighbour.call(Messages.ONLY_TEXT, new TestModelOnlyText(text), TIMEOUT))
                    .isEqualTo(new TestModelOnlyText(text));
        }
    }

    /** The contracts of the works other than {@code messages}. */
    static List<Contract> otherContracts() {
        return List.of(Json.CONTRACT, Lecturers.CONTRACT, Records.CONTRACT);
    }

    @ParameterizedTest
    @MethodSource("otherContracts")
    void everyWorksRecordsComeBackEqual(Contract contract) throws Exception {
        assumeTrue(transport().carries(contract), "no interface for the contract " + contract.name());
        Location at = freeLocation("m2");
        // a reply that belongs to its request and to no other
        open.push(transport().serve("m2", contract, at, new Handler() {
            @Override
            public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
                return Samples.of(operation.reply(), request.hashCode());
            }
        }));
        Neighbour neighbour = transport().connect("m1", contract, at);
        open.push(neighbour);
        for (Operation<?, ?> operation : contract.operations()) {
            for (int seed = 0; seed < 10; seed++) {
                assertAnswered(neighbour, operation, seed);
            }
        }
    }

    private static <Q extends Record, R extends Record> void assertAnswered(
            Neighbour neighbour, Operation<Q, R> operation, int seed) throws Exception {
        Q request = Samples.of(operation.request(), seed);
        R expected = Samples.of(operation.reply(), request.hashCode());
        assertThat(expected.equals(neighbour.call(operation, request, TIMEOUT)))
                .as("%s, called", operation.name())
                .isTrue();
        assertThat(expected.equals(get(neighbour.send(operation, request, TIMEOUT))))
                .as("%s, sent", operation.name())
                .isTrue();
        assertThat(neighbour.payloadBytes(request)).isNotNegative();
    }

    @Test
    void everyServicesAnswersStandInTheirOrder() {
        TestModelAllTypesList one = list(1);
        TestModelAllTypesList other = list(2);
        GatheredTypes gathered = new GatheredTypes(List.of(
                new GatheredTypes.Part("m4", one),
                new GatheredTypes.Part("m5", other),
                new GatheredTypes.Part("m5", other),
                new GatheredTypes.Part("m6", new TestModelAllTypesList(List.of()))));
        Neighbour neighbour = shared((operation, request) -> gathered);

        assertThat(neighbour.call(Messages.GATHER_TYPES, one, TIMEOUT)).isEqualTo(gathered);
    }

    @Test
    void callsWithoutWaitingBringTheSame() throws Exception {
        Neighbour neighbour = shared();
        List<CompletableFuture<TestModelOnlyText>> replies = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            replies.add(neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText("number " + i), TIMEOUT));
        }
        for (int i = 0; i < 100; i++) {
            assertThat(replies.get(i).get(20, TimeUnit.SECONDS)).isEqualTo(new TestModelOnlyText("number " + i));
        }
    }

    // ---- many at once

    @Test
    void twoHundredCallersAtOnceEachGetTheirOwn() throws Exception {
        Neighbour neighbour = shared();
        int callers = 200;
        CyclicBarrier start = new CyclicBarrier(callers);
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Boolean>> results = new ArrayList<>();
            for (int caller = 0; caller < callers; caller++) {
                String name = "caller " + caller + " ";
                int length = 1 + caller * 37;
                results.add(threads.submit(() -> {
                    start.await(20, TimeUnit.SECONDS);
                    boolean right = true;
                    for (int i = 0; i < 5; i++) {
                        var request = new TestModelOnlyText((name + i).repeat(1 + length / (name.length() + 1)));
                        right &= request.equals(neighbour.call(Messages.ONLY_TEXT, request, TIMEOUT));
                    }
                    return right;
                }));
            }
            for (Future<Boolean> result : results) {
                assertThat(result.get(60, TimeUnit.SECONDS)).isTrue();
            }
        }
    }

    @Test
    void aSlowReplyDoesNotHoldUpAFastOne() throws Exception {
        CountDownLatch slowMayAnswer = hold();
        CountDownLatch slowIsHeld = new CountDownLatch(1);
        Neighbour neighbour = shared((operation, request) -> {
            if (request.equals(new TestModelOnlyText("slow"))) {
                slowIsHeld.countDown();
                slowMayAnswer.await();
            }
            return request;
        });
        var slow = neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText("slow"), TIMEOUT);
        assertThat(slowIsHeld.await(20, TimeUnit.SECONDS)).isTrue();

        for (int i = 0; i < 20; i++) {
            var fast = new TestModelOnlyText("fast " + i);
            assertThat(neighbour.call(Messages.ONLY_TEXT, fast, TIMEOUT)).isEqualTo(fast);
        }
        assertThat(slow).isNotDone();
        slowMayAnswer.countDown();
        assertThat(slow.get(20, TimeUnit.SECONDS)).isEqualTo(new TestModelOnlyText("slow"));
    }

    // ---- time

    @Test
    void theDeadlineEndsTheCallInTime() {
        CountDownLatch mayAnswer = hold();
        Neighbour neighbour = shared((operation, request) -> {
            if (request.equals(new TestModelOnlyText("late"))) {
                mayAnswer.await();
            }
            return request;
        });
        warmUp(neighbour);
        Duration limit = Duration.ofMillis(300);

        long start = System.nanoTime();
        CallException waited = failure(() -> neighbour.call(Messages.ONLY_TEXT, new TestModelOnlyText("late"), limit));
        Duration took = Duration.ofNanos(System.nanoTime() - start);
        CallException sent =
                failure(() -> get(neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText("late"), limit)));

        assertThat(waited.code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(sent.code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(took).isBetween(Duration.ofMillis(290), Duration.ofSeconds(3));

        mayAnswer.countDown();
        for (int i = 0; i < 20; i++) {
            var next = new TestModelOnlyText("next " + i);
            assertThat(neighbour.call(Messages.ONLY_TEXT, next, TIMEOUT))
                    .as("a late reply is nobody else's")
                    .isEqualTo(next);
        }
    }

    // ---- errors

    @ParameterizedTest
    @EnumSource(Code.class)
    void aHandlersErrorArrivesWithCodeAndMessage(Code code) {
        Neighbour neighbour = shared();
        TestModelOnlyText fail = new TestModelOnlyText(FAIL + code);

        CallException waited = failure(() -> neighbour.call(Messages.ONLY_TEXT, fail, TIMEOUT));
        CallException sent = failure(() -> get(neighbour.send(Messages.ONLY_TEXT, fail, TIMEOUT)));

        assertThat(waited.code()).isEqualTo(code);
        assertThat(waited).hasMessage(failureOf(code));
        assertThat(sent.code()).isEqualTo(code);
        assertThat(sent).hasMessage(failureOf(code));
        warmUp(neighbour);
    }

    private static String failureOf(Code code) {
        return "m3: žinutė \"" + code + "\" (expected: 1 < n & 100%)";
    }

    @Test
    void anythingElseThatAHandlerThrowsIsARemoteError() {
        Neighbour neighbour = shared((operation, request) -> {
            switch (((TestModelOnlyText) request).textField()) {
                case "state" -> throw new IllegalStateException("no such state");
                case "no message" -> throw new UnsupportedOperationException();
                case "error" -> throw new AssertionError("not even an exception");
                case "long" -> throw new IllegalStateException("x".repeat(100_000));
                default -> {
                    return request;
                }
            }
        });
        assertThat(remoteError(neighbour, "state")).hasMessage("no such state");
        assertThat(remoteError(neighbour, "error")).hasMessage("not even an exception");
        assertThat(remoteError(neighbour, "long")).hasMessageStartingWith("x".repeat(500));
        remoteError(neighbour, "no message");
        warmUp(neighbour);
    }

    private static CallException remoteError(Neighbour neighbour, String text) {
        CallException e = failure(() -> neighbour.call(Messages.ONLY_TEXT, new TestModelOnlyText(text), TIMEOUT));
        assertThat(e.code()).isEqualTo(Code.REMOTE_ERROR);
        return e;
    }

    // ---- servers that come and go

    @Test
    void aServerKilledInMidCallMakesTheCallFail() {
        String name = transport().technology().name();
        Location at = freeLocation("m2");
        Neighbour neighbour = connect(at);
        CompletableFuture<TestModelOnlyText> held;
        try (EchoProcess server = EchoProcess.start(name, "m2", at)) {
            worksAgain(neighbour);
            held = neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText(EchoProcess.HOLD), untilNobodyAnswers());
            server.awaitHeld();
            server.kill();
        }
        assertThat(failure(() -> get(held)).code()).isIn(whenServerIsGone());
        open.push(transport().serve("m2", Messages.CONTRACT, at, ECHO));
        worksAgain(neighbour);
    }

    @Test
    void aNeighbourThatIsNotUpYetIsUnavailableUntilItIs() {
        Location at = freeLocation("m2");
        Neighbour neighbour = connect(at);

        assertThat(failure(() -> neighbour.call(
                                Messages.ONLY_TEXT, new TestModelOnlyText("early"), untilNobodyAnswers()))
                        .code())
                .isIn(whenServerIsGone());
        open.push(transport().serve("m2", Messages.CONTRACT, at, ECHO));
        worksAgain(neighbour);
    }

    @Test
    void theSameNeighbourWorksAfterARestartInTheSamePlace() {
        Location at = freeLocation("m2");
        Neighbour neighbour = connect(at);
        for (int start = 0; start < 2; start++) {
            Transport.Server server = transport().serve("m2", Messages.CONTRACT, at, ECHO);
            worksAgain(neighbour);
            server.close();
            assertThat(failure(() -> neighbour.call(
                                    Messages.ONLY_TEXT, new TestModelOnlyText("nobody"), untilNobodyAnswers()))
                            .code())
                    .isIn(whenServerIsGone());
        }
    }

    @Test
    void aServerThatClosesFinishesCallsUnderWay() throws Exception {
        CountDownLatch mayAnswer = hold();
        CountDownLatch isHeld = new CountDownLatch(1);
        Location at = freeLocation("m2");
        Transport.Server server = transport().serve("m2", Messages.CONTRACT, at, new Answering((operation, request) -> {
            if (request.equals(new TestModelOnlyText("last"))) {
                isHeld.countDown();
                mayAnswer.await();
            }
            return request;
        }));
        Neighbour neighbour = connect(at);
        warmUp(neighbour);
        var last = neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText("last"), TIMEOUT);
        assertThat(isHeld.await(20, TimeUnit.SECONDS)).isTrue();

        Thread closing = Thread.ofPlatform().start(server::close);
        await().pollInterval(Duration.ofMillis(1))
                .until(() -> EnumSet.of(Thread.State.WAITING, Thread.State.TIMED_WAITING, Thread.State.TERMINATED)
                        .contains(closing.getState()));
        mayAnswer.countDown();

        assertThat(last.get(20, TimeUnit.SECONDS)).isEqualTo(new TestModelOnlyText("last"));
        assertThat(closing.join(Duration.ofSeconds(5))).isTrue();
    }

    @Test
    void aServerDoesNotWaitForEverForAHandler() throws Exception {
        CountDownLatch never = hold();
        CountDownLatch isHeld = new CountDownLatch(1);
        Location at = freeLocation("m2");
        Transport.Server server = transport().serve("m2", Messages.CONTRACT, at, new Answering((operation, request) -> {
            isHeld.countDown();
            never.await();
            return request;
        }));
        Neighbour neighbour = connect(at);
        var held = neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText("x"), TIMEOUT);
        assertThat(isHeld.await(20, TimeUnit.SECONDS)).isTrue();

        Thread closing = Thread.ofPlatform().start(server::close);
        assertThat(closing.join(Duration.ofSeconds(5))).isTrue();
        // over a broker nothing else ends the call
        neighbour.close();
        CallException ended = failure(() -> get(held));
        assertThat(ended.code()).as("%s", ended).isIn(EnumSet.of(Code.UNAVAILABLE, Code.REMOTE_ERROR));
    }

    @Test
    void aPortThatIsTakenIsNamed() {
        assumeTrue(transport().technology().broker().isEmpty(), "services listen on no port of their own");
        Location at = freeLocation("m2");
        open.push(transport().serve("m2", Messages.CONTRACT, at, ECHO));

        CallException taken = failure(() -> transport().serve("m3", Messages.CONTRACT, at, ECHO));

        assertThat(taken.code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(taken).hasMessageContaining(String.valueOf(at.port()));
        warmUp(connect(at));
    }

    @Test
    void aBrokerThatDiesInMidCallNeverMakesAWrongReply() throws Exception {
        assumeTrue(transport().technology().broker().isPresent(), "no broker between the services");
        closeShared();
        CountDownLatch mayAnswer = hold();
        CountDownLatch isHeld = new CountDownLatch(1);
        Neighbour neighbour = serveAndConnect((operation, request) -> {
            if (request.equals(new TestModelOnlyText("held"))) {
                isHeld.countDown();
                mayAnswer.await();
            }
            return request;
        });
        warmUp(neighbour);
        var held = neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText("held"), Duration.ofSeconds(8));
        await().atMost(TIMEOUT).until(() -> isHeld.getCount() == 0);

        breakBroker();
        try {
            failure(() ->
                    neighbour.call(Messages.ONLY_TEXT, new TestModelOnlyText("no broker"), Duration.ofSeconds(1)));
        } finally {
            healBroker();
            mayAnswer.countDown();
        }

        await().atMost(Duration.ofSeconds(60)).until(held::isDone);
        if (!held.isCompletedExceptionally()) {
            assertThat(held.join()).isEqualTo(new TestModelOnlyText("held"));
        }
        worksAgain(neighbour);
        for (int i = 0; i < 50; i++) {
            var next = new TestModelOnlyText("after " + i);
            assertThat(neighbour.call(Messages.ONLY_TEXT, next, TIMEOUT)).isEqualTo(next);
        }
    }

    // ---- closing

    @Test
    void closingTheNeighbourEndsCallsInFlight() throws Exception {
        CountDownLatch never = hold();
        CountDownLatch isHeld = new CountDownLatch(1);
        Neighbour neighbour = serveAndConnect((operation, request) -> {
            isHeld.countDown();
            never.await();
            return request;
        });
        var held = neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText("x"), TIMEOUT);
        assertThat(isHeld.await(20, TimeUnit.SECONDS)).isTrue();

        neighbour.close();

        assertThat(failure(() -> get(held)).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(() -> neighbour.call(Messages.ONLY_TEXT, new TestModelOnlyText("y"), TIMEOUT))
                        .code())
                .isEqualTo(Code.UNAVAILABLE);
        neighbour.close();
    }

    @Test
    void nothingIsLeftOverAfterClosing() throws Exception {
        closeShared();
        // once before counting: what a technology loads for the whole process is not left over by a server or client
        useAndClose();
        Leftovers leftovers = new Leftovers();
        useAndClose();
        useAndClose();
        // longer than a library waits for the answer to its close: Tomcat's WebSocket client 30 s
        await().atMost(Duration.ofSeconds(60))
                .untilAsserted(() -> assertThat(leftovers.found()).allMatch(this::isKeptByItsLibrary));
    }

    private void useAndClose() throws Exception {
        Location at = freeLocation("m2");
        try (var server = transport().serve("m2", Messages.CONTRACT, at, ECHO);
                Neighbour neighbour = connect(at)) {
            List<CompletableFuture<TestModelOnlyText>> replies = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                replies.add(neighbour.send(Messages.ONLY_TEXT, new TestModelOnlyText("call " + i), TIMEOUT));
            }
            for (CompletableFuture<TestModelOnlyText> reply : replies) {
                reply.get(20, TimeUnit.SECONDS);
            }
            assertThat(server).isNotNull();
        }
    }

    // ---- connections

    @Test
    void connectionsAreAsManyAsItsSettingsSay() throws Exception {
        // one for all clients: what they share they share through it
        Transport transport = transport();
        assumeTrue(transport.technology().broker().isEmpty(), "connections go to the broker");
        Location at = freeLocation("m2");
        open.push(transport.serve("m2", Messages.CONTRACT, at, ECHO));
        Door door = new Door(at);
        open.push(door);
        int calls = 3;
        Neighbour kept = transport.connect("m1", Messages.CONTRACT, door.at());
        open.push(kept);
        for (int i = 0; i < calls; i++) {
            warmUp(kept);
        }
        int ofOneClient = door.accepted();
        for (int i = 0; i < calls; i++) {
            try (Neighbour another = transport.connect("m1", Messages.CONTRACT, door.at())) {
                warmUp(another);
            }
        }

        assertThat(ofOneClient).as("%d calls of one client", calls).isEqualTo(connectsForEachCall() ? calls : 1);
        assertThat(door.accepted() - ofOneClient)
                .as("%d clients with a call each, beside one that stays", calls)
                .isEqualTo(clientsShareConnections() ? 0 : calls);
    }

    // ---- what it says of itself

    @Test
    void payloadBytesAreThoseOfTheMessage() {
        Neighbour neighbour = shared();
        long small = neighbour.payloadBytes(new TestModelOnlyText("0123456789"));
        long large = neighbour.payloadBytes(new TestModelOnlyText("x".repeat(100_000)));

        assertThat(small).isBetween(10L, 200L);
        assertThat(large).isBetween(100_000L, 110_000L);
        assertThat(neighbour.payloadBytes(list(11))).isBetween(400L, 10_000L);
    }

    @Test
    void theDescriptionIsWhole() {
        Technology technology = transport().technology();

        assertThat(technology.title()).isNotBlank();
        assertThat(technology.components()).isNotEmpty().doesNotContain("");
        assertThat(technology.knows()).isNotBlank();
        assertThat(technology.settings()).hasSizeGreaterThan(3).containsKey("serializer");
        if (technology.broker().isPresent()) {
            assertThat(technology.queues())
                    .as("settings named … queue or … topic")
                    .isNotEmpty();
        }
        assertThat(technology.settings().values()).noneMatch(String::isBlank);
        assertThat(TransportProvider.named(technology.name()).technology()).isEqualTo(technology);
    }

    // ---- what the tests are made of

    /** Held open until the test is over at the latest, so that no handler outlives it. */
    private CountDownLatch hold() {
        CountDownLatch latch = new CountDownLatch(1);
        open.push(latch::countDown);
        return latch;
    }

    private Neighbour serveAndConnect(Answering.Answer answer) {
        Location at = freeLocation("m2");
        open.push(transport().serve("m2", Messages.CONTRACT, at, new Answering(answer)));
        return connect(at);
    }

    private Neighbour connect(Location at) {
        Neighbour neighbour = transport().connect("m1", Messages.CONTRACT, at);
        open.push(neighbour);
        return neighbour;
    }

    private static void warmUp(Neighbour neighbour) {
        var request = new TestModelOnlyText("warm");
        assertThat(neighbour.call(Messages.ONLY_TEXT, request, TIMEOUT)).isEqualTo(request);
    }

    /** A technology may wait before it connects anew; half a minute is what the workbench waits for a service. */
    private static void worksAgain(Neighbour neighbour) {
        var request = new TestModelOnlyText("again");
        await().atMost(Duration.ofSeconds(30))
                .pollInterval(Duration.ofMillis(50))
                .ignoreExceptionsMatching(CallException.class::isInstance)
                .until(() -> neighbour
                        .call(Messages.ONLY_TEXT, request, Duration.ofSeconds(3))
                        .equals(request));
    }

    private static TestModelAllTypesList list(int items) {
        Topology line = Topology.line(1);
        return (TestModelAllTypesList) new MessagesWork()
                .exchange(new MessageSpec("types", 9 * items + 1), line, line.entry(), items)
                .request(0);
    }

    private static <T> T get(CompletableFuture<T> reply) throws Exception {
        try {
            return reply.get(60, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw CallException.of(e.getCause() == null ? e : e.getCause());
        }
    }

    private static CallException failure(ThrowingCallable call) {
        CallException failure = catchThrowableOfType(CallException.class, call);
        return Objects.requireNonNull(failure, "the call brought a reply (expected: a CallException)");
    }
}
