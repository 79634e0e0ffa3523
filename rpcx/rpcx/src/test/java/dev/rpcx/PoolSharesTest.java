package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;

/** Who begins next where threads are few. A test says when a thread runs. */
class PoolSharesTest {
    private static final int MOST = 8;

    private final EventLoop loop = new EmbeddedChannel().eventLoop();
    private final Ledger ledger = new Ledger("ledger under test", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final ArrayDeque<Runnable> threads = new ArrayDeque<>();
    private final List<String> begun = new ArrayList<>();
    private boolean hasNoThread;
    private final PoolShares pool = new PoolShares(MOST, (at, turn) -> {
        if (hasNoThread) {
            throw new OutOfMemoryError("no thread, in this test");
        }
        threads.add(turn);
    });

    private PoolShares.Share connection(int address) {
        try {
            InetAddress host = InetAddress.getByAddress(new byte[] {10, 0, 0, (byte) address});
            return pool.share(loop, Objects.requireNonNull(ledger.open(new InetSocketAddress(host, 1))));
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e);
        }
    }

    private void give(PoolShares.Share to, String name, int count) {
        for (int i = 0; i < count; i++) {
            to.run(() -> begun.add(name));
        }
    }

    /** The thread that was given its task first ends it, and what it finds behind it. */
    private void runOne() {
        threads.remove().run();
    }

    @Test
    void aConnectionHoldsAsManyAsAreFreeAndOneMoreAndLeavesSomeToTheOthers() {
        give(connection(1), "first", 100);
        assertThat(threads).hasSize(5);
        give(connection(2), "second", 100);
        assertThat(threads).hasSize(7);
        give(connection(3), "third", 100);
        assertThat(threads).hasSize(8);
        give(connection(4), "fourth", 1);
        assertThat(threads).as("all are taken").hasSize(8);
    }

    @Test
    void oneThreadIsEnough() {
        PoolShares single = new PoolShares(1, (at, turn) -> threads.add(turn));
        PoolShares.Share share = single.share(loop, Objects.requireNonNull(ledger.open(null)));
        give(share, "only", 3);
        assertThat(threads).hasSize(1);
        runOne();
        assertThat(begun).hasSize(3);
        give(share, "only", 1);
        assertThat(threads).hasSize(1);
    }

    @Test
    void connectionsHaveTheirTurnsOneAfterTheOtherHoweverMuchEachHasWaiting() {
        List<PoolShares.Share> holders = List.of(connection(1), connection(2), connection(3));
        give(holders.get(0), "holder", 5);
        give(holders.get(1), "holder", 2);
        give(holders.get(2), "holder", 1);
        PoolShares.Share greedy = connection(4);
        give(greedy, "greedy", 100);
        PoolShares.Share modest = connection(5);
        give(modest, "modest", 2);
        runOne();
        assertThat(begun.subList(0, 5)).containsExactly("holder", "greedy", "modest", "greedy", "modest");
    }

    @Test
    void whatWaitsIsBegunAsSoonAsItsConnectionHoldsFewEnough() {
        PoolShares.Share share = connection(1);
        give(share, "a", 7);
        assertThat(threads).hasSize(5);
        Runnable held = threads.removeLast();
        while (!threads.isEmpty()) {
            runOne();
        }
        assertThat(begun).hasSize(6);
        held.run();
        assertThat(begun).hasSize(7);
        give(share, "a", 5);
        assertThat(threads).hasSize(5);
    }

    /** Whoever leaves handlers behind and comes again would otherwise have a new share each time. */
    @Test
    void whatAConnectionLeavesBehindIsInTheSharesOfItsAddress() {
        PoolShares.Share left = connection(1);
        give(left, "left", 5);
        left.connectionGone();
        PoolShares.Share again = connection(1);
        give(again, "again", 1);
        assertThat(threads).as("5 of its address, 3 free").hasSize(5);
        PoolShares.Share other = connection(2);
        give(other, "other", 1);
        assertThat(threads).hasSize(6);
        Runnable ofOther = threads.removeLast();
        runOne();
        assertThat(begun).containsExactly("left");
        ofOther.run();
        assertThat(begun).as("4 of its address, 4 free").containsExactly("left", "other", "again");
        while (!threads.isEmpty()) {
            runOne();
        }
        give(again, "again", 5);
        assertThat(threads).hasSize(5);
    }

    @Test
    void whatIsTakenBackIsNotRun() {
        PoolShares.Share share = connection(1);
        give(share, "a", 5);
        Runnable waits = () -> begun.add("waits");
        Runnable goes = () -> begun.add("goes");
        share.run(waits);
        share.run(goes);
        assertThat(share.withdraw(waits)).isTrue();
        assertThat(share.withdraw(waits)).isFalse();
        runOne();
        assertThat(begun).containsExactly("a", "goes");
        assertThat(share.withdraw(goes)).isFalse();
    }

    /** Nothing else holds a connection that is gone. */
    @Test
    void aConnectionWhoseTasksAreTakenBackHasNoTurn() {
        for (int i = 0; i < MOST; i++) {
            give(connection(1), "a", 1);
        }
        PoolShares.Share gone = connection(1);
        Runnable waits = () -> begun.add("waits");
        gone.run(waits);
        int before = pool.waitingConnections();
        assertThat(gone.withdraw(waits)).isTrue();
        gone.connectionGone();
        assertThat(pool.waitingConnections()).isEqualTo(before - 1);
    }

    @Test
    void aTaskThatFindsNoThreadIsRefusedAndHoldsNone() {
        PoolShares.Share share = connection(1);
        hasNoThread = true;
        for (int i = 0; i < 2 * MOST; i++) {
            assertThatThrownBy(() -> give(share, "a", 1)).isInstanceOf(OutOfMemoryError.class);
        }
        hasNoThread = false;
        give(share, "a", 5);
        assertThat(threads).hasSize(5);
    }

    @Test
    void oneThatHasWaitedAndFindsNoThreadWaitsOn() {
        PoolShares.Share one = connection(1);
        give(one, "one", 5);
        PoolShares.Share two = connection(2);
        give(two, "two", 3);
        assertThat(threads).hasSize(7);
        give(one, "one", 1);
        hasNoThread = true;
        // both may begin one more, and there is one thread
        runOne();
        assertThat(begun).contains("two");
        hasNoThread = false;
        while (!threads.isEmpty()) {
            runOne();
        }
        assertThat(begun).hasSize(9);
    }

    @Test
    void aTaskThatThrowsKeepsNobodyFromItsTurn() {
        PoolShares.Share share = connection(1);
        Thread.UncaughtExceptionHandler before = Thread.currentThread().getUncaughtExceptionHandler();
        Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> begun.add("thrown"));
        try {
            share.run(() -> {
                throw new AssertionError("on purpose");
            });
            give(share, "a", 5);
            runOne();
        } finally {
            Thread.currentThread().setUncaughtExceptionHandler(before);
        }
        assertThat(begun).containsExactly("thrown", "a");
    }

    @Test
    void whatWaitsWhenItIsClosedIsGivenBackAndNothingMoreIsTaken() {
        PoolShares.Share share = connection(1);
        give(share, "a", 7);
        assertThat(pool.close()).hasSize(2);
        assertThatThrownBy(() -> give(share, "a", 1)).isInstanceOf(RejectedExecutionException.class);
        while (!threads.isEmpty()) {
            runOne();
        }
        assertThat(begun).hasSize(5);
    }
}
