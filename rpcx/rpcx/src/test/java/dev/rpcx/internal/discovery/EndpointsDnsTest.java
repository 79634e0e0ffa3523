package dev.rpcx.internal.discovery;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.rpcx.Again;
import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Inside;
import dev.rpcx.Instances;
import dev.rpcx.LongForm;
import dev.rpcx.LoopChecker;
import dev.rpcx.NameServer;
import dev.rpcx.RPCXException;
import dev.rpcx.StandStill;
import dev.rpcx.internal.io.DnsAddresses;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.internal.io.SharedLoops;
import io.netty.buffer.Unpooled;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.dns.DefaultDnsRawRecord;
import io.netty.handler.codec.dns.DnsRecord;
import io.netty.handler.codec.dns.DnsRecordType;
import io.netty.resolver.AddressResolver;
import io.netty.resolver.dns.DnsNameResolverTimeoutException;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Ticker;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests names and services that are found by DNS: how many requests are made, how often, and who waits for the answer.
 */
@Timeout(60)
class EndpointsDnsTest {
    private final StandStill still = new StandStill();

    @AfterEach
    void stop() {
        still.close();
    }

    private static long threadsOfDns() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().contains("dns"))
                .count();
    }

    @Test
    void equalFactoriesAreEqual() {
        Duration second = Duration.ofSeconds(1);
        assertThat(Endpoints.of(new Endpoint("a", 1))).isEqualTo(Endpoints.of(new Endpoint("a", 1)));
        assertThat(Endpoints.of(new Endpoint("a", 1))).isNotEqualTo(Endpoints.of(new Endpoint("a", 2)));
        assertThat(Endpoints.dns("A.example", 1)).isEqualTo(Endpoints.dns("a.example", 1));
        assertThat(Endpoints.dns("a.example", 1, second)).isEqualTo(Endpoints.dns("a.example", 1, second));
        assertThat(Endpoints.dns("a.example", 1, second))
                .isNotEqualTo(Endpoints.dns("a.example", 1))
                .isNotEqualTo(Endpoints.dns("a.example", 2, second))
                .isNotEqualTo(Endpoints.dns("b.example", 1, second));
        assertThat(Endpoints.srv("_a._tcp.Example")).isEqualTo(Endpoints.srv("_a._tcp.example."));
        assertThat(Endpoints.srv("_a._tcp.example", second)).isNotEqualTo(Endpoints.srv("_a._tcp.example"));
    }

    @Test
    void aHundredProxiesOfOneNameHaveOneWatchAndNoThread() throws Exception {
        List<Client> clients = new ArrayList<>();
        try (NameServer nameServer = NameServer.of(question -> List.of())) {
            for (int i = 0; i < 10; i++) {
                Client client = Client.standard();
                clients.add(client);
                for (int j = 0; j < 10; j++) {
                    client.create(
                            Instances.Who.class, asking(nameServer, new DnsQuestion.Services("_who._tcp.example")));
                    client.create(Instances.Who.class, Endpoints.dns("localhost", 9));
                }
            }
            await().until(() -> nameServer.asked.get() > 0);
            assertThat(SharedWatch.count()).isEqualTo(2);
            assertThat(threadsOfDns()).isZero();
            clients.remove(0).close();
            assertThat(SharedWatch.count()).isEqualTo(2);
        } finally {
            clients.forEach(Client::close);
        }
        assertThat(SharedWatch.count()).isZero();
    }

    private static EndpointsDns asking(NameServer nameServer, DnsQuestion question) {
        return new EndpointsDns(question, Duration.ofMillis(100), nameServer.address());
    }

    /** A listener that records what it is given. */
    private static class Heard implements Endpoints.Listener {
        final Queue<List<Endpoint>> found = new ConcurrentLinkedQueue<>();
        final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

        @Override
        public void found(List<Endpoint> all) {
            found.add(all);
        }

        @Override
        public void failed(Throwable why) {
            failures.add(why);
        }
    }

    /**
     * Returns the failures that were not caused by a machine that stood still. A name server has one second for an
     * answer.
     */
    private List<Throwable> failuresOfAnswers(Heard heard) {
        boolean wasStill = still.was(Duration.ofMillis(200));
        return heard.failures.stream()
                .filter(why -> !(wasStill && isTimeOut(why)))
                .toList();
    }

    private static boolean isTimeOut(Throwable why) {
        for (Throwable cause = why; cause != null; cause = cause.getCause()) {
            if (cause instanceof DnsNameResolverTimeoutException) {
                return true;
            }
        }
        return false;
    }

    @Test
    void aNameIsAskedForAgainAndAgainAndWhoComesLaterHearsItAtOnce() throws Exception {
        AtomicInteger last = new AtomicInteger(1);
        try (NameServer nameServer = NameServer.of(question ->
                question.type() == NameServer.A ? List.of(NameServer.Answer.address(last.get())) : List.of())) {
            EndpointsDns endpoints = asking(nameServer, new DnsQuestion.Addresses("who.example.org", 9000));
            Heard first = new Heard();
            Heard second = new Heard();
            try (Endpoints.Watch one = SharedWatch.of(endpoints, first)) {
                assertThat(one).isNotNull();
                await().until(() -> first.found.contains(List.of(new Endpoint("127.0.0.1", 9000))));
                try (Endpoints.Watch other = SharedWatch.of(endpoints, second)) {
                    assertThat(other).isNotNull();
                    await().until(() -> second.found.contains(List.of(new Endpoint("127.0.0.1", 9000))));
                    // the time to live of a record is a minute, and the next check still finds the change
                    last.set(2);
                    await().until(() -> second.found.contains(List.of(new Endpoint("127.0.0.2", 9000))));
                }
                last.set(3);
                await().until(() -> first.found.contains(List.of(new Endpoint("127.0.0.3", 9000))));
            }
            assertThat(second.found).doesNotContain(List.of(new Endpoint("127.0.0.3", 9000)));
            assertThat(SharedWatch.count()).isZero();
        }
    }

    /** Otherwise every call would fail until the next refresh, which may be an hour away. */
    @Test
    void aNameThatIsNotFoundAtFirstIsAskedForAgainSoonWhateverTheRefresh() throws Exception {
        Heard heard = new Heard();
        // the name exists once the watch has learnt that it does not
        try (NameServer nameServer = NameServer.of(question ->
                question.type() == NameServer.A && !failuresOfAnswers(heard).isEmpty()
                        ? List.of(NameServer.Answer.address(1))
                        : List.of())) {
            EndpointsDns endpoints = new EndpointsDns(
                    new DnsQuestion.Addresses("late.example.org", 9000), Duration.ofHours(1), nameServer.address());
            try (Endpoints.Watch watch = endpoints.watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> heard.found.contains(List.of(new Endpoint("127.0.0.1", 9000))));
            }
            assertThat(failuresOfAnswers(heard)).hasSize(1);
        }
    }

    @Test
    void aWatchThatCannotBeMadeLeavesTheSharedLoopsAsTheyWere() {
        InetSocketAddress nowhere = InetSocketAddress.createUnresolved("name-server.example.org", 53);
        EndpointsDns endpoints = new EndpointsDns(
                new DnsQuestion.Addresses("who.example.org", 9000), Duration.ofSeconds(1), List.of(nowhere));
        int before = SharedLoops.SOCKETS.users();
        assertThrows(IllegalArgumentException.class, () -> endpoints.watch(new Heard()));
        assertThat(SharedLoops.SOCKETS.users()).isLessThanOrEqualTo(before);
    }

    /** Memory runs out when a question is answered, in whatever the watch then asks of its loop. */
    @Test
    void aWatchGoesOnWhateverFailsWhenItIsTold() throws Exception {
        AtomicInteger last = new AtomicInteger(1);
        AtomicBoolean fails = new AtomicBoolean();
        AtomicInteger failed = new AtomicInteger();
        EventLoop real = SharedLoops.SOCKETS.borrow().group.next();
        EventLoop loop = (EventLoop) Proxy.newProxyInstance(
                EventLoop.class.getClassLoader(), new Class<?>[] {EventLoop.class}, (proxy, method, arguments) -> {
                    if (fails.get() && method.getName().equals("schedule")) {
                        failed.incrementAndGet();
                        throw new OutOfMemoryError("by the test");
                    }
                    try {
                        return method.invoke(real, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
        Heard heard = new Heard() {
            @Override
            public void found(List<Endpoint> all) {
                super.found(all);
                if (fails.get()) {
                    failed.incrementAndGet();
                    throw new OutOfMemoryError("by the test");
                }
            }
        };
        try (NameServer nameServer = NameServer.of(question ->
                        question.type() == NameServer.A ? List.of(NameServer.Answer.address(last.get())) : List.of());
                Endpoints.Watch watch = new DnsWatch(
                                asking(nameServer, new DnsQuestion.Addresses("who.example.org", 9000)), heard, loop)
                        .start()) {
            assertThat(watch).isNotNull();
            await().until(() -> heard.found.contains(List.of(new Endpoint("127.0.0.1", 9000))));
            fails.set(true);
            await().until(() -> failed.get() > 0);
            fails.set(false);
            last.set(2);
            await().until(() -> heard.found.contains(List.of(new Endpoint("127.0.0.2", 9000))));
        }
    }

    /** A host with addresses of two families is one instance. A lost datagram does not change which hosts there are. */
    @Test
    void ofTwoFamiliesOneIsTakenAndALostAnswerIsAFailure() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        try (NameServer nameServer = NameServer.of(question -> switch (question.type()) {
            // the second question gets no answer, and all others do
            case NameServer.A -> asked.getAndIncrement() == 1 ? null : List.of(NameServer.Answer.address(1));
            case NameServer.AAAA -> List.of(NameServer.Answer.address6(1));
            default -> List.of();
        })) {
            Heard heard = new Heard();
            try (Endpoints.Watch watch = asking(nameServer, new DnsQuestion.Addresses("both.example.org", 9000))
                    .watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !heard.failures.isEmpty() && asked.get() > 3);
            }
            assertThat(heard.found).isNotEmpty().containsOnly(List.of(new Endpoint("127.0.0.1", 9000)));
        }
    }

    @Test
    void aHostOfTheOtherFamilyAloneIsFound() throws Exception {
        try (NameServer nameServer = NameServer.of(
                question -> question.type() == NameServer.AAAA ? List.of(NameServer.Answer.address6(1)) : List.of())) {
            Heard heard = new Heard();
            try (Endpoints.Watch watch = asking(nameServer, new DnsQuestion.Addresses("six.example.org", 9000))
                    .watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !heard.found.isEmpty());
            }
            assertThat(heard.found).containsOnly(List.of(new Endpoint("0:0:0:0:0:0:0:1", 9000)));
            assertThat(failuresOfAnswers(heard)).isEmpty();
        }
    }

    @Test
    void servicesAreFoundInARealAnswerOfANameServer() throws Exception {
        // in "_greeter._tcp.example.org", "example" begins after 12 bytes of head and after _greeter and _tcp with
        // their lengths
        byte suffix = 12 + 9 + 5;
        try (NameServer nameServer = NameServer.of(question -> List.of(
                NameServer.Answer.service(1, 3, 9001, new byte[] {1, 'a', (byte) 0xC0, suffix}),
                NameServer.Answer.service(2, 9, 9009, new byte[] {1, 'c', (byte) 0xC0, suffix}),
                // this record has port 0 and the next one has no target, so neither is served
                NameServer.Answer.service(1, 0, 0, new byte[] {1, 'd', (byte) 0xC0, suffix}),
                NameServer.Answer.service(1, 0, 9003, new byte[] {0}),
                NameServer.Answer.service(1, 0, 9002, new byte[] {1, 'b', (byte) 0xC0, suffix})))) {
            Heard heard = new Heard();
            try (Endpoints.Watch watch = asking(nameServer, new DnsQuestion.Services("_greeter._tcp.example.org"))
                    .watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !heard.found.isEmpty());
            }
            assertThat(heard.found.peek())
                    .containsExactly(new Endpoint("a.example.org", 9001, 1000), new Endpoint("b.example.org", 9002, 1));
        }
    }

    private static DnsRecord service(int priority, int weight, int port, String host) {
        byte[] label = host.getBytes(StandardCharsets.US_ASCII);
        byte[] target = new byte[label.length + 2];
        target[0] = (byte) label.length;
        System.arraycopy(label, 0, target, 1, label.length);
        return new DefaultDnsRawRecord(
                "_who._tcp.example.",
                DnsRecordType.SRV,
                60,
                Unpooled.wrappedBuffer(NameServer.Answer.service(priority, weight, port, target)
                        .data()));
    }

    @Test
    void weightsOfServicesKeepTheirRatios() throws Exception {
        assertThat(DnsQuestion.Services.lowest(List.of(service(1, 60_000, 1, "a"), service(1, 2_000, 1, "b"))))
                .containsExactly(new Endpoint("a", 1, 1000), new Endpoint("b", 1, 33));
        assertThat(DnsQuestion.Services.lowest(List.of(service(1, 0, 1, "a"), service(1, 1, 1, "b"))))
                .containsExactly(new Endpoint("a", 1, 1), new Endpoint("b", 1, 1000));
        assertThat(DnsQuestion.Services.lowest(List.of(service(1, 0, 1, "a"), service(1, 0, 1, "b"))))
                .containsExactly(new Endpoint("a", 1, 1), new Endpoint("b", 1, 1));
        assertThat(DnsQuestion.Services.lowest(List.of(service(1, 3, 1, "a"), service(1, 7, 1, "b"))))
                .containsExactly(new Endpoint("a", 1, 3), new Endpoint("b", 1, 7));
    }

    @Test
    void aServiceThatCannotBeCalledHidesNoOther() throws Exception {
        assertThat(DnsQuestion.Services.lowest(List.of(service(1, 0, 0, "a"), service(2, 5, 9, "b"))))
                .containsExactly(new Endpoint("b", 9, 5));
    }

    @Test
    void aHostOfSeveralAddressesIsNotAlwaysTheFirst() throws Exception {
        try (NameServer nameServer = NameServer.of(question -> question.type() == NameServer.A
                ? List.of(NameServer.Answer.address(1), NameServer.Answer.address(2))
                : List.of())) {
            assertThat(hosts(nameServer, 40)).containsExactlyInAnyOrder("127.0.0.1", "127.0.0.2");
            // answers are kept, or the name server would be asked forty times
            assertThat(nameServer.asked.get()).isLessThan(10);
        }
    }

    /** Returns this many different addresses of the form {@code 127.0.x.y}. */
    private static List<NameServer.Answer> addresses(int count) {
        List<NameServer.Answer> all = new ArrayList<>();
        for (int i = 1; i <= count; i++) {
            all.add(new NameServer.Answer(NameServer.A, new byte[] {127, 0, (byte) (i >> 8), (byte) i}));
        }
        return all;
    }

    /** Returns the hosts to which this many connections to one name go. */
    private static Set<String> hosts(NameServer nameServer, int connections) throws Exception {
        Set<String> hosts = new HashSet<>();
        try (Client client = Client.standard()) {
            assertThat(client).isNotNull();
            EventLoop loop = SharedLoops.SOCKETS.borrow().group.next();
            try (DnsAddresses addresses = new DnsAddresses(nameServer.address())) {
                // if the machine stands still, the one second for an answer may be over
                Again.upToFiveTimes(200, () -> {
                    for (int i = 0; i < connections; i++) {
                        hosts.add(host(addresses.getResolver(loop)));
                    }
                });
            } finally {
                SharedLoops.SOCKETS.giveBack();
            }
        }
        return hosts;
    }

    private static String host(AddressResolver<InetSocketAddress> resolver) throws Exception {
        Future<InetSocketAddress> found = resolver.resolve(InetSocketAddress.createUnresolved("many.example.org", 9))
                .await();
        assertThat(found.cause()).isNull();
        return found.getNow().getAddress().getHostAddress();
    }

    @Test
    void ofAHostWithManyAddressesFewAreKept() throws Exception {
        try (NameServer nameServer =
                NameServer.of(question -> question.type() == NameServer.A ? addresses(200) : List.of())) {
            // the first host is one of all, and the others are among those that are kept
            assertThat(hosts(nameServer, 1_000)).hasSizeBetween(10, 17);
            // without this, the name server would be asked a thousand times
            assertThat(nameServer.asked.get()).isLessThan(10);
        }
    }

    @Test
    void anAnswerByTcpIsTakenForAHostUnlessItNamesThousands() throws Exception {
        try (NameServer nameServer = NameServer.cutting(List.of(), addresses(900))) {
            assertThat(hosts(nameServer, 100)).isNotEmpty();
            assertThat(nameServer.askedByTcp).hasPositiveValue();
        }
        // the addresses in the datagram are used all the same
        try (NameServer nameServer = NameServer.cutting(addresses(1), addresses(4_000))) {
            assertThat(hosts(nameServer, 100)).containsExactly("127.0.0.1");
            assertThat(nameServer.askedByTcp).hasPositiveValue();
        }
    }

    @Test
    void aWatchOfANameTakesAllOfALongAnswer() throws Exception {
        expectFound(
                new DnsQuestion.Addresses("many.example.org", 9000),
                NameServer.cutting(List.of(), addresses(1_500)),
                1_500);
    }

    /** At each check, an event loop that others share compares each address with all before it. */
    @Test
    void aWatchOfANameRefusesAnAnswerOfThousandsOfAddresses() throws Exception {
        expectFound(
                new DnsQuestion.Addresses("many.example.org", 9000),
                NameServer.cutting(addresses(100), addresses(4_000)),
                100);
    }

    /** No answer has said that there are no addresses of the first family. */
    @Test
    void anAnswerThatIsRefusedIsNotTakenForNone() throws Exception {
        List<NameServer.Answer> both = new ArrayList<>(addresses(4_000));
        both.add(NameServer.Answer.address6(1));
        try (NameServer nameServer = NameServer.cutting(List.of(), both)) {
            Heard heard = new Heard();
            try (Endpoints.Watch watch = asking(nameServer, new DnsQuestion.Addresses("many.example.org", 9000))
                    .watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() ->
                        !heard.found.isEmpty() || !failuresOfAnswers(heard).isEmpty());
                assertThat(heard.found).isEmpty();
                assertThat(failuresOfAnswers(heard).get(0))
                        .hasMessage("many.example.org: an answer by TCP that is too long");
            }
        }
    }

    /** These instances are not compared with each other. */
    @Test
    void aWatchOfAnSrvRecordTakesThousandsOfInstances() throws Exception {
        byte[] root = {1, 'h', 0};
        List<NameServer.Answer> services = new ArrayList<>();
        for (int port = 1; port <= 2_500; port++) {
            services.add(NameServer.Answer.service(1, 1, port, root));
        }
        expectFound(new DnsQuestion.Services("_who._tcp.example.org"), NameServer.cutting(List.of(), services), 2_500);
    }

    private void expectFound(DnsQuestion question, NameServer asked, int instances) throws Exception {
        try (NameServer nameServer = asked) {
            Heard heard = new Heard();
            try (Endpoints.Watch watch = asking(nameServer, question).watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !heard.found.isEmpty());
                assertThat(heard.found).allMatch(all -> all.size() == instances);
                assertThat(nameServer.askedByTcp).hasPositiveValue();
            }
        }
    }

    @Test
    void recordsOfAnyBytesAreInstancesOrAFailure() {
        Random random = new Random(8);
        int failures = 0;
        for (int i = 0; i < LongForm.of(20_000, 2_000_000); i++) {
            byte[] bytes = new byte[random.nextInt(40)];
            random.nextBytes(bytes);
            if (i % 2 == 0) {
                // these bytes are likely as lengths of labels
                for (int at = 6; at < bytes.length; at++) {
                    bytes[at] = (byte) (random.nextInt(4) == 0 ? random.nextInt(6) : random.nextInt(256));
                }
            }
            DnsRecord record =
                    new DefaultDnsRawRecord("_who._tcp.example.", DnsRecordType.SRV, 60, Unpooled.wrappedBuffer(bytes));
            try {
                assertThat(DnsQuestion.Services.lowest(List.of(record))).hasSizeLessThan(2);
            } catch (UnknownHostException unreadable) {
                failures++;
            }
        }
        assertThat(failures).isPositive();
    }

    @ParameterizedTest
    @ValueSource(strings = {"\u009b2J", "\u001b[2J", "a b\u2028c\u202ed"})
    void whatIsSaidOfARecordIsNothingThatATerminalObeys(String host) {
        byte[] name = host.getBytes(StandardCharsets.UTF_8);
        byte[] bytes = new byte[6 + 1 + name.length + 1];
        bytes[5] = 80;
        bytes[6] = (byte) name.length;
        System.arraycopy(name, 0, bytes, 7, name.length);
        DnsRecord record =
                new DefaultDnsRawRecord("_who._tcp.example.", DnsRecordType.SRV, 60, Unpooled.wrappedBuffer(bytes));
        UnknownHostException why =
                assertThrows(UnknownHostException.class, () -> DnsQuestion.Services.lowest(List.of(record)));
        assertThat(why).hasNoCause();
        assertThat(why.getMessage())
                .startsWith("an SRV record that cannot be read: host: ")
                .matches("[ -~]+");
    }

    /** Returns a name that is longer than any name may be. A label has at most 63 bytes. */
    private static byte[] longName() {
        byte[] name = new byte[5 * 64 + 1];
        for (int at = 0; at + 64 < name.length; at += 64) {
            name[at] = 63;
            Arrays.fill(name, at + 1, at + 64, (byte) 'a');
        }
        return name;
    }

    static Stream<Arguments> broken() {
        return Stream.of(
                Arguments.of("an SRV record that cannot be read", new byte[] {9, 'a'}),
                Arguments.of("domain name must be", longName()));
    }

    @ParameterizedTest
    @MethodSource("broken")
    void aBrokenAnswerIsAFailureAndTheNextOneIsRead(String failure, byte[] broken) throws Exception {
        Heard heard = new Heard();
        // the answer is broken until the listener has seen one failure
        try (NameServer nameServer = NameServer.of(question -> List.of(NameServer.Answer.service(
                1, 1, 9001, failuresOfAnswers(heard).isEmpty() ? broken : new byte[] {1, 'a', 0})))) {
            try (Endpoints.Watch watch = asking(nameServer, new DnsQuestion.Services("_who._tcp.example"))
                    .watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> heard.found.contains(List.of(new Endpoint("a", 9001))));
            }
            assertThat(failuresOfAnswers(heard).get(0)).hasMessageContaining(failure);
        }
    }

    /**
     * There is only one event loop, so anything that blocks it blocks the calls of the other proxy. {@link LoopChecker}
     * checks it too.
     */
    @Test
    void aNameServerThatDoesNotAnswerStopsNobodyElse() throws Exception {
        try (NameServer nameServer = NameServer.silent();
                Instances instances = new Instances(1);
                Client client = Inside.on(Client.builder().eventLoops(1), asking(nameServer.address()))
                        .callTimeout(Duration.ofSeconds(20))
                        .build()) {
            Instances.Who reachable = client.create(
                    Instances.Who.class, "127.0.0.1", instances.endpoint(0).port());
            assertThat(reachable.who("x")).isZero();
            Instances.Who unknown = client.create(Instances.Who.class, "who.example.org", 9000);
            CompletableFuture<RPCXException> failed =
                    CompletableFuture.supplyAsync(() -> assertThrows(RPCXException.class, () -> unknown.who("x")));
            await().until(() -> nameServer.asked.get() > 0);
            int calls = 0;
            while (!failed.isDone()) {
                assertThat(reachable.who("x")).isZero();
                calls++;
            }
            // the time limit of the silent name server has passed, and calls went on all the time
            assertThat(calls).isGreaterThan(100);
            RPCXException end = failed.get(30, TimeUnit.SECONDS);
            assertThat(end.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            assertThat(end.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        }
    }

    @Test
    void aHostIsLookedUpAgainForANewConnection() throws Exception {
        try (Instances instances = new Instances(1);
                NameServer nameServer = NameServer.of(question ->
                        question.type() == NameServer.A ? List.of(NameServer.Answer.address(1)) : List.of());
                Client client = Inside.on(Client.builder().eventLoops(1), asking(nameServer.address()))
                        .build()) {
            Instances.Who who = client.create(
                    Instances.Who.class,
                    "who.example.org",
                    instances.endpoint(0).port());
            assertThat(who.who("x")).isZero();
            assertThat(nameServer.asked.get()).isPositive();
        }
    }

    /** A user's registry with value equality. */
    private record Registry(String name, Queue<Listener> watching, AtomicInteger closed) implements Endpoints {
        @Override
        public Watch watch(Listener listener) {
            watching.add(listener);
            return closed::incrementAndGet;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Registry o && name.equals(o.name);
        }

        @Override
        public int hashCode() {
            return name.hashCode();
        }
    }

    @Test
    void equalEndpointsOfAllClientsHaveOneWatch() throws Exception {
        Queue<Endpoints.Listener> watching = new ConcurrentLinkedQueue<>();
        AtomicInteger closed = new AtomicInteger();
        try (Instances instances = new Instances(1);
                Client second = Client.standard()) {
            Client first = Client.standard();
            Instances.Who one = first.create(Instances.Who.class, new Registry("r", watching, closed));
            assertThat(watching).hasSize(1);
            watching.element().found(List.of(instances.endpoints()));
            assertThat(one.who("x")).isZero();
            // the registry reports an empty list and then a failure: the earlier list remains valid, also for a new
            // listener
            watching.element().found(List.of());
            watching.element().failed(new IllegalStateException("gone"));
            Instances.Who other = second.create(Instances.Who.class, new Registry("r", watching, closed));
            assertThat(watching).hasSize(1);
            assertThat(other.who("x")).isZero();
            first.close();
            assertThat(closed).hasValue(0);
            watching.element().found(List.of(instances.endpoints()));
            assertThat(other.who("x")).isZero();
        }
        assertThat(closed).hasValue(1);
        // a registry that cannot watch is not kept
        Endpoints failing = listener -> {
            throw new IllegalStateException("no cluster here");
        };
        int before = SharedWatch.count();
        try (Client client = Client.standard()) {
            for (int i = 0; i < 2; i++) {
                assertThrows(IllegalStateException.class, () -> client.create(Instances.Who.class, failing));
            }
        }
        assertThat(SharedWatch.count()).isEqualTo(before);
    }

    private static Platform asking(List<InetSocketAddress> nameServers) {
        return new Platform() {
            @Override
            public Loops loops(int count, String name, boolean inProcess) {
                return Loops.withNameServers(nameServers, count, name);
            }

            @Override
            public Ticker ticker() {
                return MACHINE.ticker();
            }

            @Override
            public RandomGenerator random() {
                return MACHINE.random();
            }
        };
    }
}
