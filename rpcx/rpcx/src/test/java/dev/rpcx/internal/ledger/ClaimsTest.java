package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.HandChannel;
import io.netty.channel.DefaultEventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.Ticker;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests which connections are ended if a pool is full of what peers delay. */
class ClaimsTest {
    private static final int FRAME = 16 << 10;

    /** Number of frames for which the pool has room. */
    private static final int FRAMES = 512;

    /** Number of frames that one search for the greediest connections ends. */
    private static final int AT_ONCE = FRAMES / 32;

    private final Ledger ledger =
            new Ledger("claims", Map.of(Resource.FRAME_BYTES, (long) FRAMES * FRAME), Map.of(), Integer.MAX_VALUE);
    private final EmbeddedChannel channel = new EmbeddedChannel();

    /** The loop of this channel does nothing until {@link #settle}. */
    private final EmbeddedChannel other = new EmbeddedChannel();

    private final List<Peer> all = new ArrayList<>();
    private long now = TimeUnit.HOURS.toNanos(1);

    /** A connection that may hold one frame. */
    private final class Peer {
        final Account account;
        final Claim claim;
        int ends;

        Peer(String address) {
            this(address, channel);
        }

        Peer(String address, EmbeddedChannel at) {
            try {
                account = Objects.requireNonNull(ledger.open(new InetSocketAddress(InetAddress.getByName(address), 1)));
            } catch (java.net.UnknownHostException e) {
                throw new IllegalArgumentException(e);
            }
            claim = new Claim(account, Resource.FRAME_BYTES, at.eventLoop(), this::end);
            all.add(this);
        }

        private void end() {
            ends++;
            claim.close();
        }

        Peer begin() {
            assertThat(claim.set(FRAME, now)).isTrue();
            return this;
        }

        long sinceNanos() {
            return Objects.requireNonNull(claim.hold()).sinceNanos;
        }
    }

    private List<Peer> begin(int count, java.util.function.IntFunction<String> address) {
        return IntStream.range(0, count)
                .mapToObj(i -> new Peer(address.apply(i)).begin())
                .toList();
    }

    private List<Peer> beginElsewhere(int count, java.util.function.IntFunction<String> address) {
        return IntStream.range(0, count)
                .mapToObj(i -> new Peer(address.apply(i), other).begin())
                .toList();
    }

    private void pass(long millis) {
        now += TimeUnit.MILLISECONDS.toNanos(millis);
    }

    private void settle() {
        channel.runPendingTasks();
        other.runPendingTasks();
    }

    private static int ends(List<Peer> peers) {
        return peers.stream().mapToInt(peer -> peer.ends).sum();
    }

    private long held() {
        return ledger.held(Resource.FRAME_BYTES);
    }

    @AfterEach
    void nothingIsLeft() {
        settle();
        for (Peer peer : all) {
            peer.claim.close();
            peer.account.close();
        }
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void allOfThePoolMayBelongToOneAddress() {
        List<Peer> gateway = begin(FRAMES, i -> "10.0.0.1");
        settle();
        assertThat(ends(gateway)).isZero();
        assertThat(held()).isEqualTo((long) FRAMES * FRAME);
    }

    @Test
    void oneAddressWithAnyNumberOfConnectionsEndsNoneOfAnother() {
        List<Peer> slow = begin(3, i -> "10.1.0." + i);
        pass(5_000);
        List<Peer> attackers = new ArrayList<>();
        for (int i = 0; i < 10_000; i++) {
            attackers.add(new Peer("10.0.0.1").begin());
            pass(1);
            settle();
        }
        Peer late = new Peer("10.2.0.1").begin();
        settle();
        assertThat(ends(slow)).isZero();
        assertThat(late.ends).isZero();
        assertThat(ends(attackers)).isGreaterThan(10_000 - FRAMES - AT_ONCE);
        assertThat(held()).isLessThanOrEqualTo((long) FRAMES * FRAME);
    }

    /**
     * There are as many addresses as the pool has places. None of them holds more than another, so only time
     * distinguishes them.
     */
    @Test
    void manyAddressesThatStandStillEndNoFrameOfSomeMilliseconds() {
        List<Peer> attackers = begin(FRAMES, i -> "10.0." + i / 250 + "." + i % 250);
        pass(1_000);
        for (int round = 0; round < 100; round++) {
            List<Peer> honest = begin(4, i -> "10.9.0.1");
            settle();
            pass(5);
            assertThat(ends(honest)).isZero();
            honest.forEach(peer -> peer.claim.release());
        }
    }

    @Test
    void attackersOfManyAddressesThatComeAgainPushOutEachOther() {
        List<Peer> attackers = new ArrayList<>(begin(FRAMES, i -> "10.0." + i / 250 + "." + i % 250));
        List<Peer> honest = new ArrayList<>();
        for (int round = 0; round < 2_000; round++) {
            pass(1);
            // 20 connections begin in each millisecond; an honest frame takes ten milliseconds
            for (int i = 0; i < 20; i++) {
                int from = round * 20 + i;
                attackers.add(
                        new Peer("10." + (1 + from / 62_500) + "." + from / 250 % 250 + "." + from % 250).begin());
            }
            if (round % 10 == 0) {
                honest.forEach(peer -> peer.claim.release());
                honest.add(new Peer("10.200.0." + round / 10 % 100).begin());
            }
            settle();
        }
        assertThat(ends(honest)).isZero();
        assertThat(ends(attackers)).isGreaterThan(30_000);
    }

    @Test
    void honestConnectionsBehindTheAddressOfAnAttackerOutliveItsOwn() {
        List<Peer> attackers = begin(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        List<Peer> honest = begin(AT_ONCE / 2, i -> "10.0.0.1");
        settle();
        assertThat(ends(attackers)).isEqualTo(AT_ONCE);
        assertThat(ends(honest)).isZero();
    }

    @Test
    void whatIsRenewedCountsFromThenOn() {
        List<Peer> first = begin(FRAMES / 2, i -> "10.0.0." + i % 250);
        List<Peer> second = begin(FRAMES / 2, i -> "10.0.0." + i % 250);
        pass(1_000);
        first.forEach(peer -> peer.claim.renew(now));
        pass(10);
        new Peer("10.1.0.1").begin();
        settle();
        assertThat(ends(first)).isZero();
        assertThat(ends(second)).isEqualTo(AT_ONCE);
    }

    @Test
    void whoHoldsNothingAnyMoreWhenItsEndComesIsSpared() {
        List<Peer> early = beginElsewhere(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        new Peer("10.1.0.1").begin();
        early.forEach(peer -> peer.claim.release());
        settle();
        assertThat(ends(early)).isZero();
        List<Peer> again = begin(FRAMES - 1, i -> "10.0.0.1");
        settle();
        assertThat(ends(again)).isZero();
        assertThat(held()).isEqualTo((long) FRAMES * FRAME);
    }

    /**
     * The chosen connections end a moment later. By then their frames are complete, and other frames have begun on
     * them.
     */
    @Test
    void whatIsHeldAnewIsNotTakenForWhatWasChosen() {
        List<Peer> early = beginElsewhere(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        Peer late = new Peer("10.1.0.1").begin();
        late.claim.release();
        early.forEach(peer -> peer.claim.release());
        early.forEach(Peer::begin);
        settle();
        assertThat(ends(early)).isZero();
        assertThat(held()).isEqualTo((long) FRAMES * FRAME);
    }

    @Test
    void whoHasDoneItsPartSinceItWasChosenIsSpared() {
        List<Peer> early = beginElsewhere(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        Peer late = new Peer("10.1.0.1").begin();
        late.claim.release();
        early.forEach(peer -> peer.claim.renew(now));
        settle();
        assertThat(ends(early)).isZero();
        assertThat(held()).isEqualTo((long) FRAMES * FRAME);
    }

    /** The loop of the chosen connections does nothing. The room that is promised to others has a limit. */
    @Test
    void beforeAnybodyHasEndedNoMoreThanTwiceThePoolIsHeld() {
        List<EmbeddedChannel> loops = new ArrayList<>();
        int taken = 0;
        boolean fits = true;
        while (taken < 4 * FRAMES && fits) {
            // no connection of the same loop can be ended for this one
            EmbeddedChannel alone = new EmbeddedChannel();
            loops.add(alone);
            fits = new Peer("10.0.0.1", alone).claim.set(FRAME, now);
            taken += fits ? 1 : 0;
            pass(1);
        }
        assertThat(taken).isEqualTo(2 * FRAMES);
        assertThat(claims().releasingBytes()).isEqualTo((long) FRAMES * FRAME);
        loops.forEach(EmbeddedChannel::runPendingTasks);
        assertThat(held()).isLessThanOrEqualTo((long) FRAMES * FRAME);
        assertThat(new Peer("10.0.0.1").claim.set(FRAME, now)).isTrue();
    }

    /**
     * The chosen connections may exceed the pool by one. If the greediest were skipped for its size, many small
     * connections, which hold less than their part, would end in its place.
     */
    @Test
    void theGreediestIsChosenThoughWhatIsChosenAlreadyAndItExceedThePool() {
        Peer chosen = hold("10.0.0.1", other, FRAMES * 5 / 8);
        pass(60_000);
        Peer greediest = hold("10.0.0.2", new EmbeddedChannel(), FRAMES * 5 / 8);
        assertThat(claims().releasingBytes()).isEqualTo((long) FRAMES * 5 / 8 * FRAME);
        pass(10_000);
        List<Peer> small = begin(FRAMES * 3 / 8, i -> "10.1." + i / 250 + "." + i % 250);
        assertThat(ends(small)).as("there is room for all of them").isZero();
        pass(1);
        new Peer("10.2.0.1").begin();
        assertThat(ends(small)).isZero();
        assertThat(claims().releasingBytes()).isEqualTo((long) FRAMES * 5 / 4 * FRAME);
        settle();
        assertThat(chosen.ends).isEqualTo(1);
        assertThat(greediest.ends).as("its loop does nothing").isZero();
        assertThat(ends(small)).isZero();
    }

    private Peer hold(String address, EmbeddedChannel at, int frames) {
        Peer peer = new Peer(address, at);
        assertThat(peer.claim.set((long) frames * FRAME, now)).isTrue();
        return peer;
    }

    /** A loop reads what thousands of connections have sent in one round, and runs no task in between. */
    @Test
    void theChosenOnesOfTheLoopThatAsksEndAtOnce() {
        for (int i = 0; i < 8 * FRAMES; i++) {
            new Peer("10.0.0.1").begin();
            pass(1);
            assertThat(held()).isLessThanOrEqualTo((long) FRAMES * FRAME);
        }
    }

    @Test
    void whoComesWhenAPoolfulIsChosenAlreadyIsComparedAndNotEndedForThat() {
        List<Peer> elsewhere = beginElsewhere(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        List<Peer> here = begin(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        Peer honest = new Peer("10.1.0.1").begin();
        assertThat(honest.ends).isZero();
        assertThat(ends(elsewhere)).as("their loop does nothing").isZero();
        assertThat(ends(here)).isBetween(1, AT_ONCE);
        settle();
        assertThat(ends(elsewhere)).isEqualTo(FRAMES);
        assertThat(honest.ends).isZero();
    }

    @Test
    void whoeverIsTheGreediestItselfIsRefusedMore() {
        Peer greedy = new Peer("10.0.0.1");
        assertThat(greedy.claim.set((long) FRAMES / 2 * FRAME, now)).isTrue();
        pass(1_000);
        List<Peer> others = begin(FRAMES / 2, i -> "10.1.0." + i % 250);
        assertThat(greedy.claim.set((long) (FRAMES / 2 + 1) * FRAME, now)).isFalse();
        assertThat(ends(others)).isZero();
        assertThat(greedy.claim.bytes()).isEqualTo((long) FRAMES / 2 * FRAME);
    }

    @Test
    void whoAsksForMoreThanThePoolEndsNobody() {
        List<Peer> others = begin(FRAMES, i -> "10.0.0.1");
        pass(1);
        assertThat(new Peer("10.1.0.1").claim.set((long) (FRAMES + 1) * FRAME, now))
                .isFalse();
        settle();
        assertThat(ends(others)).isZero();
    }

    @Test
    void aConnectionThatIsOverHoldsNothingAnyMore() {
        Peer peer = new Peer("10.0.0.1").begin();
        peer.claim.close();
        assertThat(peer.claim.set(FRAME, now)).isFalse();
        assertThat(held()).isZero();
    }

    @Test
    void whatThePoolCannotHoldIsRefusedAndLeavesNothing() {
        Peer large = new Peer("10.0.0.1");
        assertThat(large.claim.set((long) (FRAMES + 1) * FRAME, now)).isFalse();
        assertThat(large.claim.bytes()).isZero();
        assertThat(held()).isZero();
    }

    @Test
    void aClaimIsChangedAndGivenBackInPart() {
        Peer peer = new Peer("10.0.0.1").begin();
        long since = peer.sinceNanos();
        pass(1);
        assertThat(peer.claim.set(2 * FRAME, now)).isTrue();
        assertThat(peer.sinceNanos()).as("it has waited since then").isEqualTo(since);
        assertThat(held()).isEqualTo(2 * FRAME);
        assertThat(peer.claim.set(100, now)).isTrue();
        assertThat(held()).isEqualTo(100);
        assertThat(peer.claim.set(0, now)).isTrue();
        assertThat(held()).isZero();
        peer.begin();
        assertThat(peer.sinceNanos()).isEqualTo(now);
    }

    private Claims claims() {
        return ledger.claims(Resource.FRAME_BYTES);
    }

    /** Charges this many frames to a holder that cannot be ended. */
    private Charge taken(int frames) {
        Charge charge = new Peer("10.255.0.1").account.charge(Resource.FRAME_BYTES);
        assertThat(charge.set((long) frames * FRAME)).isTrue();
        return charge;
    }

    /** Makes a connection that begins this many frames. */
    private Peer begin(String address, int frames) {
        Peer peer = new Peer(address);
        assertThat(peer.claim.set((long) frames * FRAME, now)).isTrue();
        return peer;
    }

    @Test
    void whereThereIsJustEnoughRoomNobodyEnds() {
        List<Peer> others = begin(FRAMES - 2, i -> "10.0.0.1");
        pass(1_000);
        assertThat(claims().makeRoom(new Peer("10.1.0.1").claim, 2 * FRAME, now))
                .isTrue();
        settle();
        assertThat(ends(others)).isZero();
    }

    @Test
    void asMuchAsThePoolCanBeAskedForAndNotOneByteMore() {
        List<Peer> others = begin(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        Peer asks = new Peer("10.1.0.1");
        assertThat(claims().makeRoom(asks.claim, (long) FRAMES * FRAME + 1, now))
                .isFalse();
        assertThat(ends(others)).isZero();
        assertThat(claims().makeRoom(asks.claim, (long) FRAMES * FRAME, now)).isTrue();
        assertThat(ends(others)).isEqualTo(FRAMES);
    }

    /** This is more than one search frees anyway. */
    @Test
    void noMoreEndThanWereNeededWhereManyAre() {
        List<Peer> others = begin(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        assertThat(claims().makeRoom(new Peer("10.1.0.1").claim, 2 * AT_ONCE * FRAME, now))
                .isTrue();
        assertThat(ends(others)).isEqualTo(2 * AT_ONCE);
    }

    @Test
    void whoAsksWhereNobodyCanBeEndedIsRefused() {
        Charge all = taken(FRAMES);
        assertThat(claims().makeRoom(new Peer("10.0.0.1").claim, FRAME, now)).isFalse();
        all.release();
    }

    @Test
    void whoIsTheGreediestItselfFindsNoRoom() {
        Charge most = taken(FRAMES - 8);
        Peer asks = begin("10.0.0.1", 4);
        pass(1_000);
        Peer recent = begin("10.1.0.1", 4);
        pass(1);
        assertThat(claims().makeRoom(asks.claim, FRAME, now)).isFalse();
        assertThat(recent.ends).isZero();
        most.release();
    }

    /**
     * By the turn of the connection that asks, an earlier one has already freed enough room. So it is skipped, and the
     * search goes on with the later ones.
     */
    @Test
    void whoAsksIsPassedOverWhereThereIsRoomAlready() {
        Charge most = taken(FRAMES - 3 * AT_ONCE);
        Peer greedy = begin("10.0.0.1", 1);
        pass(100_000);
        Peer asks = begin("10.1.0.1", 1);
        pass(50_000);
        List<Peer> recent = begin(3 * AT_ONCE - 2, i -> "10.2.0." + i);
        pass(1);
        assertThat(claims().makeRoom(asks.claim, FRAME, now)).isTrue();
        assertThat(greedy.ends).isEqualTo(1);
        assertThat(asks.ends).isZero();
        assertThat(ends(recent)).isEqualTo(AT_ONCE - 1);
        most.release();
    }

    /** Its address then has a lower cost than another address, which is the next one to lose a connection. */
    @Test
    void anAddressThatHasLostAConnectionIsComparedByTheOthers() {
        Charge most = taken(FRAMES - 3 * AT_ONCE);
        Peer first = begin("10.0.0.1", AT_ONCE);
        pass(1_000);
        Peer other = begin("10.1.0.1", AT_ONCE);
        pass(1_000);
        Peer second = begin("10.0.0.1", AT_ONCE);
        pass(1_000);
        assertThat(claims().makeRoom(new Peer("10.2.0.1").claim, 2 * AT_ONCE * FRAME, now))
                .isTrue();
        assertThat(first.ends).isEqualTo(1);
        assertThat(other.ends).isEqualTo(1);
        assertThat(second.ends).isZero();
        most.release();
    }

    @Test
    void ofAConnectionsManyThePartThatCostsMostEnds() {
        List<Peer> all = new ArrayList<>();
        for (int i = 0; i < FRAMES; i++) {
            all.add(new Peer("10.0.0.1").begin());
            pass(1);
        }
        assertThat(claims().makeRoom(new Peer("10.1.0.1").claim, FRAME, now)).isTrue();
        assertThat(all.subList(0, AT_ONCE)).allMatch(peer -> peer.ends == 1);
        assertThat(all.subList(AT_ONCE, FRAMES)).allMatch(peer -> peer.ends == 0);
    }

    /**
     * Another loop has chosen these connections. Their own loop ends those that are due before it has others chosen.
     */
    @Test
    void whatIsDueOnTheLoopThatAsksEndsBeforeAnyOtherIsChosen() {
        List<Peer> early = begin(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        beginElsewhere(AT_ONCE, i -> "10.1.0.1");
        assertThat(ends(early)).as("their loop has not asked").isZero();
        assertThat(claims().releasingBytes()).isEqualTo((long) AT_ONCE * FRAME);
        new Peer("10.2.0.1").begin();
        assertThat(ends(early)).isEqualTo(2 * AT_ONCE);
        assertThat(claims().releasingBytes()).isZero();
        assertThat(held()).isLessThanOrEqualTo((long) FRAMES * FRAME);
    }

    @Test
    void whoIsChosenItselfDoesNotEndInTheMidstOfItsOwnAsking() {
        List<Peer> early = begin(AT_ONCE, i -> "10.0.0.1");
        pass(100_000);
        List<Peer> recent = begin(FRAMES - AT_ONCE, i -> "10.2." + i / 250 + "." + i % 250);
        pass(1);
        beginElsewhere(AT_ONCE, i -> "10.1.0.1");
        Peer asks = early.get(0);
        assertThat(asks.claim.set(2 * FRAME, now)).isTrue();
        assertThat(asks.ends).isZero();
        assertThat(ends(early)).as("the others").isEqualTo(AT_ONCE - 1);
        settle();
        assertThat(asks.ends).isEqualTo(1);
        assertThat(ends(recent)).isLessThan(2 * AT_ONCE);
    }

    /**
     * Room that is freed at once is not promised to anyone. Connections of other loops may be chosen as if it were
     * already free.
     */
    @Test
    void whatEndsAtOnceLeavesItsRoomForThoseOfOtherLoops() {
        List<Peer> chosen = beginElsewhere(FRAMES - AT_ONCE, i -> "10.0.0.1");
        pass(1_000);
        List<Peer> own = begin(AT_ONCE / 2, i -> "10.0.0.1");
        pass(1_000);
        List<Peer> elsewhere = beginElsewhere(AT_ONCE / 2, i -> "10.0.0.1");
        pass(1_000);
        List<Peer> late = begin(FRAMES - AT_ONCE, i -> "10.0.0.1");
        pass(1_000);
        assertThat(claims().releasingBytes()).isEqualTo((long) (FRAMES - AT_ONCE) * FRAME);
        new Peer("10.0.0.1").begin();
        assertThat(ends(own)).isEqualTo(AT_ONCE / 2);
        assertThat(ends(late)).isZero();
        settle();
        assertThat(ends(elsewhere)).isEqualTo(AT_ONCE / 2);
        assertThat(ends(chosen)).isEqualTo(FRAMES - AT_ONCE);
    }

    @Test
    void whoGrowsEndsAsManyAsItLacksAndNotAsItHolds() {
        List<Peer> early = begin(FRAMES - 300, i -> "10.0.0.1");
        pass(100_000);
        Peer grows = begin("10.1.0.1", 300);
        pass(1);
        assertThat(grows.claim.set(301 * FRAME, now)).isTrue();
        assertThat(ends(early)).isEqualTo(AT_ONCE);
    }

    /** Nobody knows when a connection ends, and nobody waits for it. */
    @Test
    void whatWasPromisedIsPromisedNoMoreWhenItIsGivenBackOrRenewed() {
        List<Peer> early = beginElsewhere(FRAMES, i -> "10.0.0.1");
        pass(1_000);
        Peer late = new Peer("10.1.0.1").begin();
        late.claim.release();
        assertThat(claims().releasingBytes()).isEqualTo((long) AT_ONCE * FRAME);
        List<Peer> chosen = early.stream()
                .filter(peer -> Objects.requireNonNull(peer.claim.hold()).isChosen())
                .toList();
        assertThat(chosen).hasSize(AT_ONCE);
        chosen.get(0).claim.release();
        assertThat(claims().releasingBytes()).isEqualTo((long) (AT_ONCE - 1) * FRAME);
        chosen.get(1).claim.renew(now);
        assertThat(claims().releasingBytes()).isEqualTo((long) (AT_ONCE - 2) * FRAME);
    }

    @Test
    void whatIsRenewedIsStillHeld() {
        Peer peer = new Peer("10.0.0.1").begin();
        pass(1);
        peer.claim.renew(now);
        assertThat(peer.sinceNanos()).isEqualTo(now);
        assertThat(peer.claim.bytes()).isEqualTo(FRAME);
        assertThat(held()).isEqualTo(FRAME);
        new Peer("10.0.0.1").claim.renew(now);
        assertThat(held()).isEqualTo(FRAME);
    }

    @Test
    void whoAsksIsRefusedWhereTheEndOfAnotherHasEndedIt() {
        Charge most = taken(FRAMES - 2);
        Peer asks = new Peer("10.1.0.1");
        Account greedy = Objects.requireNonNull(ledger.open(null));
        Claim[] claim = new Claim[1];
        claim[0] = new Claim(greedy, Resource.FRAME_BYTES, channel.eventLoop(), () -> {
            asks.claim.close();
            claim[0].close();
        });
        assertThat(claim[0].set(2 * FRAME, now)).isTrue();
        pass(1_000);
        assertThat(asks.claim.set(FRAME, now)).isFalse();
        assertThat(asks.claim.bytes()).isZero();
        greedy.close();
        most.release();
    }

    /** The end of the connection has failed with an exception before it released the claim. */
    @Test
    void aConnectionThatFailsToEndHoldsNothingAllTheSameAndWhoAskedHasItsRoom() {
        Charge most = taken(FRAMES - 2);
        Account failing = Objects.requireNonNull(ledger.open(null));
        RuntimeException injected = new IllegalStateException("by the test");
        Claim claim = new Claim(failing, Resource.FRAME_BYTES, channel.eventLoop(), () -> {
            throw injected;
        });
        assertThat(claim.set(2 * FRAME, now)).isTrue();
        pass(1_000);
        List<Throwable> reported = new ArrayList<>();
        Thread thread = Thread.currentThread();
        Thread.UncaughtExceptionHandler before = thread.getUncaughtExceptionHandler();
        thread.setUncaughtExceptionHandler((where, thrown) -> reported.add(thrown));
        try {
            new Peer("10.1.0.1").begin();
        } finally {
            thread.setUncaughtExceptionHandler(before);
        }
        assertThat(reported).containsExactly(injected);
        assertThat(claim.bytes()).isZero();
        assertThat(claim.set(1, now)).as("it is over").isFalse();
        failing.close();
        most.release();
    }

    @Test
    void aClaimIsOverThoughItsEndHasForgottenIt() {
        Charge most = taken(FRAMES - 2);
        Account forgetful = Objects.requireNonNull(ledger.open(null));
        Claim claim = new Claim(forgetful, Resource.FRAME_BYTES, channel.eventLoop(), () -> {});
        assertThat(claim.set(2 * FRAME, now)).isTrue();
        pass(1_000);
        new Peer("10.1.0.1").begin();
        assertThat(claim.hold()).isNull();
        assertThat(claim.set(1, now)).isFalse();
        forgetful.close();
        most.release();
    }

    @Test
    void whatWasChosenOnALoopThatHasEndedIsNotPromised() {
        Charge most = taken(FRAMES - 1);
        DefaultEventLoop ended = new DefaultEventLoop();
        Account account = Objects.requireNonNull(ledger.open(null));
        Claim claim = new Claim(account, Resource.FRAME_BYTES, ended, () -> {});
        assertThat(claim.set(FRAME, now)).isTrue();
        ended.shutdownGracefully(0, 0, TimeUnit.SECONDS).syncUninterruptibly();
        pass(1_000);
        claims().makeRoom(new Peer("10.1.0.1").claim, FRAME, now);
        assertThat(claims().releasingBytes()).isZero();
        claim.close();
        account.close();
        most.release();
    }

    @Test
    void whoCannotBeEndedForWantOfMemoryIsChosenAgain() {
        HandChannel full = new HandChannel(Ticker.newMockTicker());
        List<Peer> elsewhere = IntStream.range(0, FRAMES)
                .mapToObj(i -> new Peer("10.0.0.1", full).begin())
                .toList();
        pass(1_000);
        Peer asks = new Peer("10.1.0.1");
        full.loop.fails = true;
        assertThatThrownBy(asks::begin).isInstanceOf(OutOfMemoryError.class);
        assertThat(claims().releasingBytes()).isZero();
        full.loop.fails = false;
        asks.begin();
        assertThat(claims().releasingBytes()).isEqualTo((long) AT_ONCE * FRAME);
        full.runPendingTasks();
        assertThat(ends(elsewhere)).isEqualTo(AT_ONCE);
    }

    @Test
    void connectionsThatAreOverAreNotLookedAtAnyMore() {
        assertThat(claims().size()).isZero();
        Peer peer = new Peer("10.0.0.1").begin();
        Peer other = new Peer("10.0.0.2").begin();
        peer.claim.release();
        assertThat(claims().size()).as("it may hold something again").isEqualTo(2);
        peer.claim.close();
        assertThat(claims().size()).isEqualTo(1);
        other.claim.close();
        assertThat(claims().size()).isZero();
    }

    /** The connections are on loops of their own. They begin, end and push each other out at random. */
    @Test
    void whateverComesWhenAllIsGivenBackInTheEnd() {
        SplittableRandom random = new SplittableRandom(7);
        for (int round = 0; round < 20_000; round++) {
            Peer peer = all.isEmpty() || all.size() < 900 && random.nextInt(3) == 0
                    ? new Peer("10.0." + random.nextInt(3) + "." + random.nextInt(50))
                    : all.get(random.nextInt(all.size()));
            if (peer.ends == 0 && random.nextInt(3) > 0) {
                peer.claim.set(random.nextInt(1, 3 * FRAME), now);
            } else {
                peer.claim.release();
            }
            if (random.nextInt(10) == 0) {
                settle();
                assertThat(held()).isLessThanOrEqualTo((long) FRAMES * FRAME);
            }
            pass(random.nextInt(3));
        }
    }
}
