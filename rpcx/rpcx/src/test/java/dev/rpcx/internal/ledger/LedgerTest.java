package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Heap;
import dev.rpcx.LedgerCheck;
import dev.rpcx.internal.wire.Wire;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what a ledger lets connections hold, and that everything is given back. */
@Timeout(60)
class LedgerTest {
    private static final long ALL = 1 << 20;
    private static final int CONNECTIONS = 100;

    private final Ledger ledger = new Ledger(
            "ledger under test",
            Map.of(Resource.REQUEST_BYTES, ALL, Resource.CONNECTIONS, (long) CONNECTIONS),
            Map.of(),
            CONNECTIONS / 2);

    private static InetSocketAddress address(String text) throws UnknownHostException {
        return new InetSocketAddress(InetAddress.getByName(text), 1);
    }

    private Account open(String address) throws UnknownHostException {
        return Objects.requireNonNull(ledger.open(address(address)));
    }

    /** Takes as much as is available, in small pieces. */
    private static Charge greedy(Account account) {
        Charge charge = account.charge(Resource.REQUEST_BYTES);
        while (charge.add(1024)) {}
        return charge;
    }

    @Test
    void oneConnectionComesToHalfOfAllAndOneAddressToTwoThirds() throws Exception {
        Account one = open("10.0.0.1");
        Charge first = greedy(one);
        assertThat(first.held()).isBetween(ALL / 2 - 8192, ALL / 2);
        List<Charge> others = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            others.add(greedy(open("10.0.0.1")));
        }
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isBetween(2 * ALL / 3 - 8192, 2 * ALL / 3);
        assertThat(greedy(open("10.0.0.2")).held())
                .as("what another address still gets")
                .isGreaterThan(ALL / 6 - 8192);
        assertThat(first.held()).isBetween(ALL / 2 - 8192, ALL / 2);
        assertThat(others).isNotEmpty();
    }

    @Test
    void whenSomeAddressesHaveFilledOneMoreStillGetsItsPart() throws Exception {
        for (int i = 0; i < 5; i++) {
            greedy(open("10.0.1." + i));
        }
        assertThat(greedy(open("10.0.2.1")).held()).isPositive();
    }

    @Test
    void aHostCannotMultiplyItsShareByTheAddressesOfItsNetwork() throws Exception {
        for (int i = 1; i < 40; i++) {
            greedy(open("2001:db8:0:7::" + i));
        }
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isLessThanOrEqualTo(2 * ALL / 3);
        assertThat(greedy(open("2001:db8:0:8::1")).held()).isGreaterThan(ALL / 6 - 8192);
    }

    @Test
    void aRefusedChargeChangesNothing() throws Exception {
        Charge charge = open("10.0.0.1").charge(Resource.REQUEST_BYTES);
        assertThat(charge.add(1000)).isTrue();
        long before = ledger.held(Resource.REQUEST_BYTES);
        assertThat(charge.add(ALL)).isFalse();
        assertThat(charge.held()).isEqualTo(1000);
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isEqualTo(before);
    }

    @Test
    void whatIsReleasedTwiceComesBackOnce() throws Exception {
        Account account = open("10.0.0.1");
        Charge one = account.charge(Resource.REQUEST_BYTES);
        Charge other = account.charge(Resource.REQUEST_BYTES);
        one.add(10_000);
        other.add(10_000);
        one.release();
        one.release();
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isBetween(10_000L, 16_384L);
        assertThatThrownBy(() -> other.release(10_001)).isInstanceOf(IllegalArgumentException.class);
        other.release(10_000);
        other.release();
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void whatAClosedConnectionHoldsCountsUntilItIsReleased() throws Exception {
        Account account = open("10.0.0.1");
        Charge charge = greedy(account);
        account.close();
        account.close();
        assertThat(ledger.audit()).contains("REQUEST_BYTES").contains("without a connection");
        Charge next = greedy(open("10.0.0.1"));
        assertThat(charge.held() + next.held())
                .as("a new connection gets no new share of the address")
                .isLessThanOrEqualTo(2 * ALL / 3);
        charge.release();
        next.release();
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void connectionsBeyondTheLimitsAreRefusedAndTheirPlacesComeBack() throws Exception {
        List<Account> held = new ArrayList<>();
        for (int i = 0; i < CONNECTIONS / 2; i++) {
            held.add(open("10.0.0.1"));
        }
        assertThat(ledger.open(address("10.0.0.1"))).isNull();
        for (int i = 0; i < CONNECTIONS / 2; i++) {
            held.add(open("10.0.3." + i));
        }
        assertThat(ledger.open(address("10.0.0.2"))).isNull();
        held.get(0).close();
        held.add(open("10.0.0.1"));
        held.forEach(Account::close);
        assertThat(ledger.held(Resource.CONNECTIONS)).isZero();
        assertThat(ledger.audit()).isEmpty();
    }

    /** A bot net is limited by the number of connections, and pushes out no connection that already exists. */
    @Test
    void addressesWithoutEndAreRememberedOnlyWhileTheyHoldSomething() throws Exception {
        Account early = open("10.0.0.1");
        Charge held = early.charge(Resource.REQUEST_BYTES);
        assertThat(held.add(ALL / 8)).isTrue();
        for (int i = 0; i < 20_000; i++) {
            Account one = ledger.open(new InetSocketAddress(
                    InetAddress.getByAddress(new byte[] {11, 0, (byte) (i >> 8), (byte) i}), 1));
            assertThat(one).isNotNull();
            Objects.requireNonNull(one).close();
            assertThat(ledger.addresses()).isEqualTo(1);
        }
        List<Account> crowd = new ArrayList<>();
        for (int i = 1; i < CONNECTIONS; i++) {
            Account one = open("12.0.0." + i);
            crowd.add(one);
            greedy(one);
        }
        assertThat(ledger.open(address("13.0.0.1"))).as("one too many").isNull();
        assertThat(ledger.addresses()).isEqualTo(CONNECTIONS);
        assertThat(held.held()).as("what was held before them").isEqualTo(ALL / 8);
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isLessThanOrEqualTo(ALL);
    }

    @Test
    void callsAreCountedByAddressAsWellAsByConnection() throws Exception {
        long calls = 1200;
        Ledger counting = new Ledger("calls", Map.of(Resource.CALLS, calls), Map.of(), Integer.MAX_VALUE);
        long ofOne = 0;
        long ofAddress = 0;
        for (int connection = 0; connection < 50; connection++) {
            Charge places =
                    Objects.requireNonNull(counting.open(address("10.0.0.1"))).charge(Resource.CALLS);
            while (places.add(1)) {}
            ofOne = Math.max(ofOne, places.held());
            ofAddress += places.held();
        }
        assertThat(ofOne).isEqualTo(calls / 2);
        assertThat(ofAddress).isEqualTo(2 * calls / 3);
        Charge other =
                Objects.requireNonNull(counting.open(address("10.0.0.2"))).charge(Resource.CALLS);
        while (other.add(1)) {}
        assertThat(other.held()).as("what another address still gets").isEqualTo(calls / 6);
    }

    @Test
    void threadsThatTakeAndGiveLeaveNothing() throws Exception {
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int thread = 0; thread < 4; thread++) {
            String address = "10.0.0." + thread / 2;
            all.add(CompletableFuture.runAsync(() -> {
                for (int round = 0; round < 2000; round++) {
                    Account account;
                    try {
                        account = open(address);
                    } catch (UnknownHostException e) {
                        throw new IllegalStateException(e);
                    }
                    Charge charge = account.charge(Resource.REQUEST_BYTES);
                    for (int i = 1; i < 20; i++) {
                        charge.add(i * 4000L);
                        charge.release(charge.held() / 2);
                    }
                    if (round % 2 == 0) {
                        account.close();
                        charge.release();
                    } else {
                        charge.release();
                        account.close();
                    }
                }
            }));
        }
        CompletableFuture.allOf(all.toArray(new CompletableFuture<?>[0])).get(30, TimeUnit.SECONDS);
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isZero();
        assertThat(ledger.audit()).isEmpty();
    }

    private static Ledger handlers(long most) {
        return new Ledger("ledger of handlers", Map.of(Resource.HANDLERS, most), Map.of(), CONNECTIONS);
    }

    @Test
    void whatIsNotNamedHasNoLimit() throws Exception {
        Charge streams = open("10.0.0.1").charge(Resource.STREAMS);
        assertThat(streams.add(1L << 60)).isTrue();
        streams.release();
        assertThat(ledger.max(Resource.STREAMS)).isEqualTo(Long.MAX_VALUE);
        assertThat(ledger.max(Resource.REQUEST_BYTES)).isEqualTo(ALL);
    }

    @Test
    void aConnectionHasItsOwnLimitHoweverMuchIsFree() {
        Ledger limited = new Ledger("limited", Map.of(), Map.of(Resource.HANDLERS, 3L), CONNECTIONS);
        Charge charge = Objects.requireNonNull(limited.open(null)).charge(Resource.HANDLERS);
        assertThat(charge.add(3)).isTrue();
        assertThat(charge.add(1)).isFalse();
        charge.release(1);
        assertThat(charge.add(1)).isTrue();
        charge.release();
    }

    @Test
    void theConnectionsOfAnAddressTogetherMayHoldTwiceWhatIsFree() throws Exception {
        Ledger nine = handlers(9);
        Charge first = Objects.requireNonNull(nine.open(address("10.0.0.1"))).charge(Resource.HANDLERS);
        Charge second = Objects.requireNonNull(nine.open(address("10.0.0.1"))).charge(Resource.HANDLERS);
        Charge third = Objects.requireNonNull(nine.open(address("10.0.0.1"))).charge(Resource.HANDLERS);
        assertThat(first.add(3)).isTrue();
        assertThat(second.add(3)).isTrue();
        assertThat(third.add(1)).isFalse();
        Charge other = Objects.requireNonNull(nine.open(address("10.0.0.2"))).charge(Resource.HANDLERS);
        assertThat(other.add(1)).isTrue();
        first.release(1);
        assertThat(third.add(1)).as("6 of one address while 2 are free").isFalse();
        other.release();
        assertThat(third.add(1)).as("6 of one address while 3 are free").isTrue();
    }

    @Test
    void peersOfNoAddressShareNone() {
        Ledger nine = handlers(9);
        for (int i = 0; i < 2; i++) {
            assertThat(Objects.requireNonNull(nine.open(null))
                            .charge(Resource.HANDLERS)
                            .add(3))
                    .isTrue();
        }
        assertThat(Objects.requireNonNull(nine.open(new io.netty.channel.local.LocalAddress("here")))
                        .charge(Resource.HANDLERS)
                        .add(1))
                .isTrue();
    }

    @Test
    void anAddressIsForgottenWithTheLastThingThatItHolds() throws Exception {
        Account account = open("10.0.0.1");
        Charge bytes = account.charge(Resource.REQUEST_BYTES);
        Charge handlers = account.charge(Resource.HANDLERS);
        bytes.add(1);
        handlers.add(2);
        account.close();
        assertThat(ledger.audit()).contains("without a connection");
        bytes.release();
        assertThat(ledger.audit()).contains("2 HANDLERS").contains("without a connection");
        handlers.release(1);
        assertThat(ledger.audit()).contains("1 HANDLERS").contains("without a connection");
        handlers.release();
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void anAddressIsKnownAsLongAsItHasAConnection() throws Exception {
        Account first = open("10.0.0.1");
        Account second = open("10.0.0.1");
        Charge bytes = first.charge(Resource.REQUEST_BYTES);
        bytes.add(100);
        bytes.release();
        first.close();
        Charge held = greedy(second);
        List<Charge> others = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            others.add(greedy(open("10.0.0.1")));
        }
        assertThat(held.held() + others.stream().mapToLong(Charge::held).sum()).isLessThanOrEqualTo(2 * ALL / 3);
    }

    @Test
    void whatIsHeldAtRestIsFoundWhenItsConnectionHasGone() throws Exception {
        Account account = open("10.0.0.1");
        Charge kept = account.charge(Resource.KEPT_BYTES);
        Charge streams = account.charge(Resource.STREAMS);
        kept.add(100);
        streams.add(1);
        assertThat(ledger.audit()).isEqualTo("ledger under test: 1 STREAMS\n");
        account.close();
        assertThat(ledger.audit()).contains("100 KEPT_BYTES");
        kept.release();
        streams.release();
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void whatOthersCountIsHeldToo() throws Exception {
        Charge streams = open("10.0.0.1").charge(Resource.STREAMS);
        streams.add(2);
        ledger.addCounter(Resource.STREAMS, () -> 3);
        ledger.addCounter(Resource.STREAMS, () -> 4);
        assertThat(ledger.held(Resource.STREAMS)).isEqualTo(9);
        assertThat(ledger.audit()).contains("9 STREAMS");
    }

    @Test
    void callsUnderWayOfAnOpenConnectionAreFound() throws Exception {
        Account account = open("10.0.0.1");
        assertThat(ledger.audit()).isEmpty();
        account.setCallCounter(() -> 5);
        assertThat(ledger.audit()).isEqualTo("ledger under test: a connection has 5 calls under way\n");
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void theLedgersOfServersAndClientsAreLookedAtTogetherUntilForgotten() {
        Ledger server = Ledger.ofServer("a server of this test", 10, 10, Wire.MAX_SLOTS, 10_000, 1000);
        Ledger client = Ledger.ofClient("a client of this test", Wire.MAX_MESSAGE_BYTES);
        Charge one = Objects.requireNonNull(server.open(null)).charge(Resource.STREAMS);
        Charge other = Objects.requireNonNull(client.open(null)).charge(Resource.STREAMS);
        one.add(1);
        other.add(2);
        assertThat(Ledger.auditAll()).contains("a server of this test: 1 STREAMS", "a client of this test: 2 STREAMS");
        server.forget();
        assertThat(Ledger.auditAll()).doesNotContain("a server of this test").contains("a client of this test");
        other.release();
        assertThat(Ledger.auditAll()).doesNotContain("of this test");
        assertThat(server).hasToString("a server of this test");
    }

    @Test
    void whatATestHasNotReleasedFailsThatTestAndNoOther() {
        Ledger leaked = Ledger.ofServer("a server left by a test", 10, 10, Wire.MAX_SLOTS, 10_000, 1000);
        Ledger good = Ledger.ofServer("a server in good order", 10, 10, Wire.MAX_SLOTS, 10_000, 1000);
        Objects.requireNonNull(leaked.open(null)).charge(Resource.STREAMS).add(1);
        LedgerCheck check = new LedgerCheck(Duration.ofMillis(200));
        assertThatThrownBy(check::look).hasMessageContaining("a server left by a test: 1 STREAMS");
        check.look();
        Charge later = Objects.requireNonNull(good.open(null)).charge(Resource.STREAMS);
        later.add(1);
        assertThat(Ledger.auditAll()).as("what was in order is looked at").contains("a server in good order");
        later.release();
    }

    /**
     * Makes a charge that is not released. Its server can be collected after the last line of the test, as most servers
     * can.
     */
    private static void leak() {
        Ledger leaked = Ledger.ofServer("a server that nobody holds", 10, 10, Wire.MAX_SLOTS, 10_000, 1000);
        Objects.requireNonNull(leaked.open(null)).charge(Resource.STREAMS).add(1);
    }

    @Test
    void whatATestHasNotReleasedIsFoundThoughTheCollectorCameFirst() {
        Heap.assumeCollected();
        LedgerCheck check = new LedgerCheck(Duration.ofMillis(200));
        leak();
        WeakReference<Object> other = new WeakReference<>(new Object());
        await().until(() -> {
            System.gc();
            return other.get() == null;
        });
        assertThatThrownBy(check::look).hasMessageContaining("a server that nobody holds: 1 STREAMS");
    }

    /**
     * Returns the bytes of the heap that peers can make a server hold, including what is not charged for handlers and
     * places.
     */
    private static long all(Ledger ledger) {
        long bytes = Runtime.getRuntime().maxMemory() / UnchargedAllowance.HEAP_DIVISOR;
        for (Resource kind : List.of(
                Resource.REQUEST_BYTES,
                Resource.OBJECT_BYTES,
                Resource.REPLY_BYTES,
                Resource.ITEM_BYTES_IN,
                Resource.ITEM_BYTES_OUT,
                Resource.KEPT_BYTES,
                Resource.TABLE_BYTES,
                Resource.FRAME_BYTES)) {
            bytes += ledger.max(kind);
        }
        return bytes + 2048 * ledger.max(Resource.CALLS);
    }

    /** This is true for small messages and for a heap that is not tiny. */
    @Test
    void allSharesOfAServerTogetherAreTwoThirdsOfTheHeap() {
        long heap = Runtime.getRuntime().maxMemory();
        org.junit.jupiter.api.Assumptions.assumeTrue(heap >= 512 << 20, "a heap of 512 MB");
        Ledger server = Ledger.ofServer("server", 7, 3, Wire.MAX_SLOTS, 10_000, 1000);
        assertThat(all(server)).isBetween(heap * 5 / 8, heap * 11 / 16);
        assertThat(server.max(Resource.REQUEST_BYTES)).isEqualTo(heap / 8);
        assertThat(server.max(Resource.OBJECT_BYTES)).isEqualTo(heap / 8);
        assertThat(server.max(Resource.REPLY_BYTES)).isEqualTo(heap / 8);
        assertThat(server.max(Resource.ITEM_BYTES_IN)).isEqualTo(heap / 16);
        assertThat(server.max(Resource.ITEM_BYTES_OUT)).isEqualTo(heap / 16);
        assertThat(server.max(Resource.KEPT_BYTES)).isEqualTo(heap / 128 * 3);
        assertThat(server.max(Resource.TABLE_BYTES)).isEqualTo(heap / 128);
        assertThat(server.max(Resource.FRAME_BYTES)).isEqualTo(heap / 32);
        assertThat(server.max(Resource.CONNECTIONS)).isEqualTo(7);
        assertThat(server.max(Resource.CALLS)).isEqualTo(heap / 65_536);
        assertThat(server.max(Resource.STREAMS)).isEqualTo(heap / 65_536);
        server.forget();
    }

    @Test
    void aServerHasRoomForSomeOfItsLargestMessagesAndAConnectionForTwo() {
        int largest = 500_000_000;
        Ledger server = Ledger.ofServer("server", 7, 3, Wire.MAX_SLOTS, 10_000, largest);
        for (Resource kind : List.of(
                Resource.REQUEST_BYTES, Resource.REPLY_BYTES, Resource.ITEM_BYTES_IN, Resource.ITEM_BYTES_OUT)) {
            assertThat(server.max(kind)).isEqualTo(4L * largest);
            Charge charge = Objects.requireNonNull(server.open(null)).charge(kind);
            assertThat(charge.add(2L * largest - 4096)).isTrue();
            assertThat(charge.add(8192)).isFalse();
            charge.release();
        }
        server.forget();
    }

    @Test
    void aConnectionOfAServerHasTwoOfItsLargestMessagesAndItsKeptBuffers() {
        Ledger server = Ledger.ofServer("server", 7, 3, Wire.MAX_SLOTS, 10_000, 100_000_000);
        Charge charge = Objects.requireNonNull(server.open(null)).charge(Resource.REPLY_BYTES);
        assertThat(charge.add(200_000_000 - 4096)).isTrue();
        assertThat(charge.add(8192)).isFalse();
        charge.release();
        server.forget();
        Charge kept = Objects.requireNonNull(server.open(null)).charge(Resource.KEPT_BYTES);
        long eighth = Runtime.getRuntime().maxMemory() / 128 * 3 / 8;
        assertThat(kept.add(Math.max(4 << 20, eighth))).isTrue();
        assertThat(kept.add(1)).isFalse();
        kept.release();
    }

    @Test
    void aClientHoldsMoreReplies() {
        Ledger client = Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES);
        Ledger server = Ledger.ofServer("server", 7, 3, Wire.MAX_SLOTS, 10_000, Wire.MAX_MESSAGE_BYTES);
        assertThat(client.max(Resource.REPLY_BYTES)).isEqualTo(4 * server.max(Resource.REPLY_BYTES));
        assertThat(client.max(Resource.CONNECTIONS)).isEqualTo(Long.MAX_VALUE);
        // one connection gets a half, since it has no limit of its own
        Charge charge = Objects.requireNonNull(client.open(null)).charge(Resource.REPLY_BYTES);
        assertThat(charge.add(client.max(Resource.REPLY_BYTES) / 2 / 4096 * 4096 - 4096))
                .isTrue();
        charge.release();
        client.forget();
        server.forget();
    }

    @Test
    void aConnectionHoldsMuchAboveAnEighthOfWhatOneMayHave() {
        Ledger kept = new Ledger(
                "kept",
                Map.of(Resource.KEPT_BYTES, 1_600L, Resource.TABLE_BYTES, 1_600L),
                Map.of(Resource.KEPT_BYTES, 400L, Resource.TABLE_BYTES, 900L),
                CONNECTIONS);
        assertThat(kept.maxOfConnection(Resource.KEPT_BYTES)).isEqualTo(400);
        assertThat(kept.maxOfConnection(Resource.TABLE_BYTES)).as("half of all").isEqualTo(800);
        Account account = Objects.requireNonNull(kept.open(null));
        Charge charge = account.charge(Resource.KEPT_BYTES);
        charge.add(50);
        assertThat(account.holdsMuch(Resource.KEPT_BYTES)).isFalse();
        charge.add(1);
        assertThat(account.holdsMuch(Resource.KEPT_BYTES)).isTrue();
        charge.release();
    }

    @Test
    void halfIsTakenWhereAllConnectionsTogetherHoldMore() {
        Ledger ten = handlers(10);
        Account account = Objects.requireNonNull(ten.open(null));
        Charge own = account.charge(Resource.HANDLERS);
        Charge others = Objects.requireNonNull(ten.open(null)).charge(Resource.HANDLERS);
        own.add(3);
        others.add(2);
        assertThat(account.isHalfTaken(Resource.HANDLERS)).isFalse();
        others.add(1);
        assertThat(account.isHalfTaken(Resource.HANDLERS)).isTrue();
        own.release();
        others.release();
    }

    /** What can be refused only by ending a connection goes to any connection that asks, until nothing is left. */
    @Test
    void whatIsClaimedGoesToOneConnectionWhole() {
        Ledger frames = new Ledger("frames", Map.of(Resource.FRAME_BYTES, 100L), Map.of(), CONNECTIONS);
        Account account = Objects.requireNonNull(frames.open(null));
        Charge charge = account.charge(Resource.FRAME_BYTES);
        assertThat(charge.add(100)).isTrue();
        assertThat(charge.add(1)).isFalse();
        charge.release();
        assertThat(account.claims(Resource.FRAME_BYTES)).isSameAs(frames.claims(Resource.FRAME_BYTES));
    }

    /** Keeps the holders of charges reachable, so that the collector finds none of them. */
    private final List<Object> reached = new ArrayList<>();

    /** Makes charges for calls that were given up. */
    private List<LingeringCharge> lingeringCharges(Account account, int count, long objectBytes) {
        List<LingeringCharge> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            assertThat(account.tryCharge(Resource.OBJECT_BYTES, objectBytes)).isTrue();
            assertThat(account.tryCharge(Resource.CALLS, 1)).isTrue();
            Object holder = new Object();
            reached.add(holder);
            all.add(account.addLingeringCharge(holder, objectBytes, 1));
        }
        return all;
    }

    @Test
    void whatNobodyCanReachAnyMoreIsGivenBackTwoAtATime() {
        Account account = Objects.requireNonNull(ledger.open(null));
        List<LingeringCharge> all = lingeringCharges(account, 5, 10);
        assertThat(ledger.lingeringCharges()).isEqualTo(5);
        all.subList(0, 3).forEach(LingeringCharge::enqueue);
        assertThat(account.tryCharge(Resource.CALLS, 1)).isTrue();
        account.addLingeringCharge(reached, 0, 1);
        assertThat(ledger.lingeringCharges()).isEqualTo(4);
        assertThat(ledger.held(Resource.OBJECT_BYTES)).isEqualTo(30);
        assertThat(ledger.held(Resource.CALLS)).isEqualTo(4);
        all.forEach(LingeringCharge::end);
        assertThat(ledger.held(Resource.OBJECT_BYTES)).isZero();
        assertThat(ledger.held(Resource.CALLS)).isEqualTo(1);
        account.release(Resource.CALLS, 1);
    }

    @Test
    @SuppressWarnings("NullAway") // the null makes the first step fail
    void whatLingersIsGivenBackThoughItCannotBeForgotten() {
        Account account = Objects.requireNonNull(ledger.open(null));
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 10)).isTrue();
        assertThat(account.tryCharge(Resource.CALLS, 2)).isTrue();
        LingeringCharge lingering = new LingeringCharge(null, account, reached, new ReferenceQueue<>(), 10, 2);
        assertThatThrownBy(lingering::end).isInstanceOf(NullPointerException.class);
        assertThat(ledger.held(Resource.OBJECT_BYTES)).isZero();
        assertThat(ledger.held(Resource.CALLS)).isZero();
        lingering.end();
        assertThat(ledger.held(Resource.CALLS)).isZero();
    }

    @Test
    void whoWouldBeRefusedGivesBackWhatNobodyCanReachAnyMore() {
        Ledger objects = new Ledger("objects", Map.of(Resource.OBJECT_BYTES, 1_000L), Map.of(), CONNECTIONS);
        Account account = Objects.requireNonNull(objects.open(null));
        List<LingeringCharge> all = lingeringCharges(account, 300, 1);
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 400)).isFalse();
        assertThat(objects.lingeringCharges()).isEqualTo(300);
        all.forEach(LingeringCharge::enqueue);
        assertThat(account.tryCharge(Resource.OBJECT_BYTES, 400)).isTrue();
        assertThat(objects.lingeringCharges()).as("no more at once than 256").isEqualTo(44);
        assertThat(objects.held(Resource.OBJECT_BYTES)).isEqualTo(444);
        account.release(Resource.OBJECT_BYTES, 400);
        assertThat(objects.audit()).doesNotContain("OBJECT_BYTES");
        assertThat(objects.lingeringCharges()).isZero();
    }

    @Test
    void theConnectionsOfAnAddressHaveSoManyTimesTheCallsOfOne() throws Exception {
        Ledger server = Ledger.ofServer("server", 7, 3, 5, 10_000, 1_000);
        Charge first = Objects.requireNonNull(server.open(address("10.0.0.1"))).charge(Resource.CALLS);
        Charge second = Objects.requireNonNull(server.open(address("10.0.0.1"))).charge(Resource.CALLS);
        assertThat(first.add(10)).isTrue();
        assertThat(second.add(5)).isTrue();
        assertThat(second.add(1)).isFalse();
        first.release();
        second.release();
        Account account = Objects.requireNonNull(server.open(null));
        assertThat(account.uncharged()).isSameAs(server.uncharged()).isNotSameAs(UnchargedAllowance.MAX_ALLOWANCE);
        server.forget();
    }

    @Test
    void sharesThatAreOthersPartsFollowThem() {
        long heap = Runtime.getRuntime().maxMemory();
        Ledger server = Ledger.ofServer("server", 7, 3, Wire.MAX_SLOTS, 10_000, 500_000_000);
        assertThat(server.max(Resource.OBJECT_BYTES)).isEqualTo(Math.max(2_000_000_000, heap / 8));
        assertThat(server.max(Resource.UNREAD_REPLY_BYTES)).isEqualTo(server.max(Resource.REPLY_BYTES) / 4 * 3);
        assertThat(server.max(Resource.QUEUE_BYTES)).isEqualTo(heap / 8);
        assertThat(server.maxOfConnection(Resource.REQUEST_BYTES))
                .isEqualTo(Math.min(server.max(Resource.REQUEST_BYTES) / 2, 2_000_000_000));
        server.forget();
        Ledger small = Ledger.ofServer("server", 7, 3, Wire.MAX_SLOTS, 10_000, 1_000);
        Ledger client = Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES);
        assertThat(client.max(Resource.FRAME_BYTES)).isEqualTo(4 * small.max(Resource.FRAME_BYTES));
        assertThat(client.max(Resource.REQUEST_BYTES)).isEqualTo(2 * small.max(Resource.REQUEST_BYTES));
        assertThat(client.maxOfConnection(Resource.REQUEST_BYTES))
                .isEqualTo(Math.min(client.max(Resource.REQUEST_BYTES) / 2, 128L << 20));
        assertThat(small.maxOfConnection(Resource.REQUEST_BYTES))
                .isEqualTo(Math.min(small.max(Resource.REQUEST_BYTES) / 2, 128L << 20));
        small.forget();
        client.forget();
    }
}
