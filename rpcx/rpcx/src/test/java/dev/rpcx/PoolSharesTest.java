package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.server.PoolShares;
import io.netty.channel.DefaultEventLoop;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which connection's task begins next if there are few threads. The test decides when a thread runs. */
public class PoolSharesTest {
    private static final int MAX = 8;

    private final MockTicker ticker = Ticker.newMockTicker();
    private final EmbeddedChannel channel =
            EmbeddedChannel.builder().ticker(ticker).build();
    private final EventLoop loop = channel.eventLoop();
    private final Ledger ledger = new Ledger("ledger under test", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final ArrayDeque<Runnable> threads = new ArrayDeque<>();
    private final List<String> begun = new ArrayList<>();
    private final List<String> refused = new ArrayList<>();
    private boolean hasNoThread;

    private boolean hasNoMemory;

    /** This runs once while a thread is started, and does what others may do at that time. */
    private Runnable meanwhile = () -> {};

    private final PoolShares pool = new PoolShares(MAX, (at, run) -> start(run), address -> address.handlerThreads);

    private void start(Runnable run) {
        Runnable others = meanwhile;
        meanwhile = () -> {};
        others.run();
        if (hasNoThread) {
            throw new OutOfMemoryError("no thread, in this test");
        }
        threads.add(run);
    }

    private PoolShares.Share connection(int address) {
        return connection(pool, address);
    }

    private PoolShares.Share connection(PoolShares of, int address) {
        try {
            InetAddress host = InetAddress.getByAddress(new byte[] {10, 0, 0, (byte) address});
            return of.share(loop, Objects.requireNonNull(ledger.open(new InetSocketAddress(host, 1))));
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e);
        }
    }

    private class Task implements PoolShares.Task {
        private final String name;

        Task(String name) {
            this.name = name;
        }

        @Override
        public void run() {
            begun.add(name);
        }

        @Override
        public void refused(Throwable noThread) {
            refused.add(name + ": " + noThread.getMessage());
        }
    }

    private void give(PoolShares.Share to, String name, int count) {
        for (int i = 0; i < count; i++) {
            to.run(new Task(name));
        }
    }

    /** Lets the first thread end its task, and the tasks that it finds after that. */
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
        PoolShares single = new PoolShares(1, (at, run) -> threads.add(run), address -> address.handlerThreads);
        PoolShares.Share share = single.share(loop, Objects.requireNonNull(ledger.open(null)));
        give(share, "only", 3);
        assertThat(threads).hasSize(1);
        runOne();
        assertThat(begun).hasSize(3);
        give(share, "only", 1);
        assertThat(threads).hasSize(1);
    }

    @Test
    void connectionsBeginOneAfterTheOtherHoweverMuchEachHasWaiting() {
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

    /** Whoever has orphaned handlers and comes again would otherwise have a new share each time. */
    @Test
    void whatAConnectionOrphansIsInTheSharesOfItsAddress() {
        PoolShares.Share gone = connection(1);
        give(gone, "left", 5);
        gone.connectionGone();
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

    /**
     * A client gains nothing by disconnecting. The connection that was there first has half of what the other one
     * holds.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whoWasThereBeforeHasAsMuchBesideWhatIsOrphanedAsBesideOneThatStays(boolean isGone) {
        PoolShares.Share before = connection(1);
        PoolShares.Share one = connection(1);
        give(one, "one", 100);
        assertThat(threads).hasSize(5);
        if (isGone) {
            one.connectionGone();
        }
        give(before, "before", 100);
        assertThat(threads).hasSize(7);
    }

    @Test
    void whoComesAgainAndAgainNeverHasMoreThanOneShare() {
        for (int i = 0; i < 20; i++) {
            PoolShares.Share again = connection(1);
            give(again, "left", 3);
            again.connectionGone();
            assertThat(threads).hasSizeLessThanOrEqualTo(5);
        }
        give(connection(2), "other", 100);
        assertThat(threads).hasSize(7);
    }

    /**
     * A task that waited begins when another one ends. It counts as orphaned at the same time as the tasks that had
     * begun.
     */
    @Test
    void whatWaitedWhenItsConnectionWentIsInTheSharesOfThoseThatComeToo() {
        List<Integer> running = new ArrayList<>();
        PoolShares.Share gone = connection(1);
        giveCounted(gone, "left", 20, running);
        gone.connectionGone();
        PoolShares.Share again = connection(1);
        giveCounted(again, "again", 100, running);
        while (!threads.isEmpty()) {
            runOne();
        }
        assertThat(running).hasSize(120).allMatch(count -> count <= 5);
    }

    /** @param running how many threads there are as each of the tasks begins */
    private void giveCounted(PoolShares.Share to, String name, int count, List<Integer> running) {
        for (int i = 0; i < count; i++) {
            to.run(new Task(name) {
                @Override
                public void run() {
                    super.run();
                    running.add(threads.size() + 1);
                }
            });
        }
    }

    @Test
    void whatIsOrphanedIsInNoShareAnyMoreOnceItHasEnded() {
        PoolShares.Share gone = connection(1);
        give(gone, "left", 5);
        gone.connectionGone();
        PoolShares.Share again = connection(1);
        PoolShares.Share other = connection(1);
        while (!threads.isEmpty()) {
            runOne();
        }
        // these tasks are orphaned after the other connection has come
        give(again, "again", 5);
        again.connectionGone();
        give(other, "other", 100);
        assertThat(threads).hasSize(7);
    }

    @Test
    void whatIsTakenBackIsNotRun() {
        PoolShares.Share share = connection(1);
        give(share, "a", 5);
        PoolShares.Task waits = new Task("waits");
        PoolShares.Task goes = new Task("goes");
        share.run(waits);
        share.run(goes);
        assertThat(share.withdraw(waits)).isTrue();
        assertThat(share.withdraw(waits)).isFalse();
        runOne();
        assertThat(begun).containsExactly("a", "goes");
        assertThat(share.withdraw(goes)).isFalse();
    }

    /**
     * A task that is taken back has ended. A connection that came after it was orphaned then has one task less in its
     * share.
     */
    @Test
    void whatMayBeginOnceWhatWasOrphanedIsTakenBackBegins() {
        PoolShares.Share stays = connection(1);
        give(stays, "stays", 3);
        give(connection(2), "second", 3);
        give(connection(3), "third", 2);
        assertThat(threads).hasSize(MAX);
        PoolShares.Share gone = connection(1);
        PoolShares.Task waits = new Task("waits");
        gone.run(waits);
        give(gone, "waits too", 2);
        gone.connectionGone();
        PoolShares.Share later = connection(1);
        stays.connectionGone();
        give(later, "later", 1);
        threads.removeLast().run();
        threads.removeLast().run();
        assertThat(begun).as("3 of its address, 2 free").containsExactly("third", "third");
        assertThat(gone.withdraw(waits)).isTrue();
        threads.removeLast().run();
        assertThat(begun).as("2 that were orphaned before, 2 free").endsWith("later");
    }

    /** Otherwise the end of such a task would be counted as the end of another one that goes on. */
    @Test
    void whatComesBehindTheEndOfItsConnectionIsOrphanedToo() {
        PoolShares.Share gone = connection(1);
        give(gone, "left", 5);
        gone.connectionGone();
        List<Task> late = List.of(new Task("late"), new Task("later"));
        late.forEach(gone::run);
        assertThat(late).allMatch(gone::withdraw);
        give(connection(1), "again", 1);
        assertThat(threads).as("5 of its address, 3 free").hasSize(5);
    }

    @Test
    void whatBeginsBehindTheEndOfItsConnectionIsOrphanedToo() {
        PoolShares.Share gone = connection(1);
        give(gone, "left", 3);
        gone.connectionGone();
        give(gone, "late", 2);
        assertThat(threads).hasSize(5);
        threads.removeLast().run();
        threads.removeLast().run();
        assertThat(begun).containsExactly("late", "late");
        give(connection(2), "other", 3);
        assertThat(threads).hasSize(6);
        give(connection(1), "again", 1);
        assertThat(threads).as("3 of its address, 2 free").hasSize(6);
    }

    @Test
    void whatCannotWaitBehindTheEndOfItsConnectionIsNotOrphaned() {
        PoolShares.Share stays = connection(1);
        give(stays, "stays", 2);
        PoolShares.Share gone = connection(1);
        give(gone, "left", 4);
        assertThat(threads).hasSize(6);
        gone.connectionGone();
        hasNoMemory = true;
        for (int i = 0; i < 2; i++) {
            assertThatThrownBy(() -> gone.run(new Failing("late"))).isInstanceOf(OutOfMemoryError.class);
        }
        hasNoMemory = false;
        PoolShares.Share again = connection(1);
        stays.connectionGone();
        for (int i = 0; i < 3; i++) {
            threads.removeLast().run();
        }
        assertThat(begun).containsOnly("left").hasSize(3);
        give(connection(2), "other", 3);
        assertThat(threads).hasSize(6);
        give(again, "again", 1);
        assertThat(threads).as("1 that it has found, 2 free").hasSize(7);
    }

    @Test
    void aTaskIsBeyondItsShareWhereItWaitsThoughAThreadIsFree() {
        PoolShares.Share share = connection(1);
        PoolShares.Task waits = new Task("waits");
        assertThat(share.isBlockedByShare(waits)).as("nothing waits").isFalse();
        give(share, "a", 5);
        share.run(waits);
        assertThat(share.isBlockedByShare(waits)).isTrue();
        assertThat(share.isBlockedByShare(new Task("another"))).isFalse();
        give(connection(2), "b", 2);
        give(connection(3), "c", 1);
        assertThat(threads).hasSize(MAX);
        assertThat(share.isBlockedByShare(waits)).as("no thread is free").isFalse();
    }

    /** Only its tasks hold a connection that is gone. */
    @Test
    void aConnectionWhoseTasksAreTakenBackBeginsNone() {
        for (int i = 0; i < MAX; i++) {
            give(connection(1), "a", 1);
        }
        PoolShares.Share gone = connection(1);
        PoolShares.Task waits = new Task("waits");
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
        for (int i = 0; i < 2 * MAX; i++) {
            assertThatThrownBy(() -> give(share, "a", 1)).isInstanceOf(OutOfMemoryError.class);
        }
        hasNoThread = false;
        give(share, "a", 5);
        assertThat(threads).hasSize(5);
    }

    /**
     * Makes two connections hold three threads each, with two threads free and one waiting task of each. The task of
     * the second connection is the first to begin.
     */
    private void twoMayBeginAtTheEndOfOne(PoolShares.Share one, PoolShares.Task ofTheSecond) {
        twoMayBeginAtTheEndOfOne(one, new Task("one waits"), ofTheSecond);
    }

    private void twoMayBeginAtTheEndOfOne(
            PoolShares.Share one, PoolShares.Task ofTheFirst, PoolShares.Task ofTheSecond) {
        give(one, "one", 3);
        PoolShares.Share two = connection(2);
        give(two, "two", 3);
        two.run(ofTheSecond);
        one.run(ofTheFirst);
        assertThat(threads).hasSize(6);
        hasNoThread = true;
    }

    @Test
    void oneThatHasWaitedAndFindsNoThreadWaitsForOneThatRuns() {
        twoMayBeginAtTheEndOfOne(connection(1), new Task("two waits"));
        runOne();
        assertThat(begun).containsExactly("one", "two waits", "one waits");
        assertThat(refused).isEmpty();
    }

    @Test
    void whatHasFoundNoThreadIsBegunWithTheNextThatComes() {
        PoolShares.Share one = connection(1);
        List<Integer> threadsThen = new ArrayList<>();
        twoMayBeginAtTheEndOfOne(one, new Task("two waits") {
            @Override
            public void run() {
                threadsThen.add(threads.size());
                hasNoThread = false;
                give(one, "one comes", 1);
                threadsThen.add(threads.size());
            }
        });
        runOne();
        assertThat(threadsThen).as("those that have not begun").containsExactly(5, 6);
        assertThat(begun).containsExactly("one");
        while (!threads.isEmpty()) {
            runOne();
        }
        assertThat(begun).endsWith("one waits").contains("one comes");
    }

    /** These tasks begin although no other connection gives a task after them. */
    @Test
    void whatHasComeToWaitForAThreadThatCannotBeStartedIsBegunWithoutIt() {
        PoolShares single = single();
        PoolShares.Share one = share(single);
        PoolShares.Share two = share(single);
        hasNoThread = true;
        meanwhile = () -> {
            give(two, "two", 2);
            meanwhile = () -> hasNoThread = false;
        };
        assertThatThrownBy(() -> give(one, "one", 1)).isInstanceOf(OutOfMemoryError.class);
        assertThat(refused).isEmpty();
        assertThat(threads).hasSize(1);
        runOne();
        assertThat(begun).containsExactly("two", "two");
    }

    @Test
    void whatWaitsWhereNoThreadRunsAndNoneCanBeStartedIsRefused() {
        PoolShares single = single();
        PoolShares.Share one = share(single);
        PoolShares.Share two = share(single);
        PoolShares.Share gone = share(single);
        hasNoThread = true;
        meanwhile = () -> {
            give(two, "two", 2);
            give(gone, "gone", 1);
            gone.connectionGone();
        };
        assertThatThrownBy(() -> give(one, "one", 1)).isInstanceOf(OutOfMemoryError.class);
        String why = ": no thread, in this test";
        assertThat(refused).containsExactlyInAnyOrder("two" + why, "two" + why, "gone" + why);
        assertThat(single.waitingConnections()).isZero();
        hasNoThread = false;
        give(two, "two", 1);
        runOne();
        assertThat(begun).containsExactly("two");
    }

    /** Signals are not delivered on an event loop, since the code that takes them may block. */
    @Test
    void whatCannotBeRefusedWaitsForWhatRunsOrUntilAThreadIsTriedAgain() {
        PoolShares patient = PoolShares.patient(MAX, (at, run) -> start(run), address -> address.signalThreads);
        PoolShares.Share share = patient.share(loop, Objects.requireNonNull(ledger.open(null)));
        hasNoThread = true;
        give(share, "waits", 3);
        assertThat(begun).isEmpty();
        advance(9);
        assertThat(begun).as("no sooner").isEmpty();
        advance(1);
        assertThat(begun).as("there is no thread still").isEmpty();
        hasNoThread = false;
        advance(10);
        assertThat(threads).hasSize(3);
        runOne();
        assertThat(begun).containsExactly("waits");
        hasNoThread = true;
        give(share, "another", 1);
        advance(100);
        assertThat(begun).as("two run").hasSize(1);
        runOne();
        assertThat(begun).containsExactly("waits", "waits", "another");
        runOne();
        assertThat(refused).isEmpty();
        assertThat(patient.waitingConnections()).isZero();
        give(share, "left", 1);
        assertThat(patient.close()).hasSize(1);
        advance(100);
        assertThat(begun).hasSize(4);
    }

    @Test
    void whatFindsNoThreadAsItsPoolIsClosedIsRefused() {
        PoolShares patient = PoolShares.patient(MAX, (at, run) -> start(run), address -> address.signalThreads);
        PoolShares.Share share = patient.share(loop, Objects.requireNonNull(ledger.open(null)));
        hasNoThread = true;
        meanwhile = () -> assertThat(patient.close()).isEmpty();
        give(share, "late", 1);
        assertThat(refused).containsExactly("late: no thread, in this test");
    }

    @Test
    void whatFindsNeitherAThreadNorATimerIsRefused() {
        EventLoop over = new DefaultEventLoop();
        over.shutdownGracefully(0, 0, TimeUnit.SECONDS).syncUninterruptibly();
        PoolShares patient = PoolShares.patient(MAX, (at, run) -> start(run), address -> address.signalThreads);
        PoolShares.Share share = patient.share(over, Objects.requireNonNull(ledger.open(null)));
        hasNoThread = true;
        give(share, "late", 1);
        assertThat(refused).containsExactly("late: no thread, in this test");
        assertThat(patient.waitingConnections()).isZero();
    }

    @Test
    void aTaskThatFailsOverItsRefusalKeepsNoOtherFromIts() {
        PoolShares single = single();
        PoolShares.Share one = share(single);
        PoolShares.Share two = share(single);
        List<PoolShares.Share> others = List.of(share(single), share(single), share(single));
        hasNoThread = true;
        meanwhile = () -> {
            two.run(new Task("fails") {
                @Override
                public void refused(Throwable noThread) {
                    throw new AssertionError("on purpose");
                }
            });
            others.forEach(each -> give(each, "other", 1));
        };
        Thread.UncaughtExceptionHandler before = Thread.currentThread().getUncaughtExceptionHandler();
        Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> begun.add(thrown.getMessage()));
        try {
            assertThatThrownBy(() -> give(one, "one", 1)).isInstanceOf(OutOfMemoryError.class);
        } finally {
            Thread.currentThread().setUncaughtExceptionHandler(before);
        }
        assertThat(begun).containsExactly("on purpose");
        assertThat(refused).hasSize(3).containsOnly("other: no thread, in this test");
    }

    private void advance(int millis) {
        ticker.advance(millis, TimeUnit.MILLISECONDS);
        channel.runScheduledPendingTasks();
    }

    private PoolShares single() {
        return new PoolShares(1, (at, run) -> start(run), address -> address.handlerThreads);
    }

    private PoolShares.Share share(PoolShares of) {
        return of.share(loop, Objects.requireNonNull(ledger.open(null)));
    }

    /**
     * The test counts allocated bytes instead of steps, since a look that goes through all that wait would allocate
     * something for each of them.
     */
    @Test
    void whoeverWaitsBeyondItsShareCostsTheOthersNothing() {
        int waiting = 2_000;
        int tasks = 1_000;
        PoolShares.Share gone = connection(1);
        give(gone, "left", 5);
        gone.connectionGone();
        for (int i = 0; i < waiting; i++) {
            give(connection(1), "waits", 1);
        }
        PoolShares.Share other = connection(2);
        ThreadMXBean memory = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = memory.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < tasks; i++) {
            give(other, "other", 1);
            threads.removeLast().run();
        }
        long bytes = memory.getCurrentThreadAllocatedBytes() - before;
        assertThat(begun).hasSize(tasks).containsOnly("other");
        assertThat(bytes).isLessThan((long) tasks * waiting);
    }

    /** Each connection that waits at this address came after one more task that was orphaned and waits. */
    @Test
    void theEndOfAConnectionMovesThoseOfItsAddressAsOne() {
        int waiting = 500;
        int ends = 2_000;
        give(connection(1), "runs", MAX);
        give(connection(2), "runs", MAX);
        give(connection(3), "runs", MAX);
        for (int i = 0; i < waiting; i++) {
            PoolShares.Share gone = connection(1);
            give(gone, "left", 1);
            gone.connectionGone();
            give(connection(1), "waits", 1);
        }
        assertThat(pool.waitingConnections()).isGreaterThanOrEqualTo(2 * waiting);
        PoolShares.Task task = new Task("taken back");
        long before = pool.queueJoins();
        for (int i = 0; i < ends; i++) {
            PoolShares.Share gone = connection(1);
            gone.run(task);
            gone.connectionGone();
            gone.withdraw(task);
        }
        assertThat(pool.queueJoins() - before).isBetween((long) ends, (long) ends * waiting / 10);
    }

    private final ArrayDeque<Runnable> threadsBeside = new ArrayDeque<>();

    /** This is another pool of the same server, so its connections have the same addresses. */
    private final PoolShares beside =
            new PoolShares(MAX, (at, run) -> threadsBeside.add(run), address -> address.signalThreads);

    /** If the end of a connection in one pool moved what waits in the other one, a task would be lost. */
    @Test
    void whatIsOrphanedInOnePoolMovesNothingThatWaitsInAnother() {
        PoolShares.Share before = connection(1);
        give(before, "before", 1);
        before.connectionGone();
        runOne();
        give(connection(2), "other", 5);
        give(connection(3), "other", 2);
        give(connection(4), "other", 1);
        assertThat(threads).hasSize(MAX);
        give(connection(1), "waits", 1);
        PoolShares.Share ofBeside = connection(beside, 1);
        give(ofBeside, "beside", 1);
        ofBeside.connectionGone();
        runOne();
        assertThat(begun).containsExactly("before", "other", "waits");
        threadsBeside.remove().run();
        while (!threads.isEmpty()) {
            runOne();
        }
        give(connection(1), "later", 5);
        assertThat(threads).as("all threads have come back").hasSize(5);
    }

    @Test
    void whatIsOrphanedInOnePoolIsInNoShareOfAnother() {
        PoolShares.Share ofBeside = connection(beside, 1);
        give(ofBeside, "beside", 5);
        ofBeside.connectionGone();
        assertThat(threadsBeside).hasSize(5);
        give(connection(1), "later", 5);
        assertThat(threads).hasSize(5);
    }

    /**
     * The pool always begins the task that a search through all waiting tasks would choose, in whatever order things
     * happen.
     */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void theNextIsTheEarliestOfThoseThatMayBegin(long seed) {
        Model one = new Model(seed, pool, threads);
        Model other = new Model(-seed, beside, threadsBeside);
        for (int i = 0; i < 3_000; i++) {
            one.step();
            other.step();
        }
    }

    /** Applies the rules in their plainest form, and does beside the pool everything that the pool does. */
    private final class Model {
        private final SplittableRandom random;
        private final PoolShares pool;
        private final ArrayDeque<Runnable> threads;
        private final List<Connection> connections = new ArrayList<>();
        private final List<Task> expected = new ArrayList<>();

        /**
         * The index is the address. This array counts the tasks that have been orphaned there, and {@code ended} counts
         * how many of them have ended.
         */
        private final int[] orphaned = new int[6];

        private final int[] ended = new int[6];
        private int running;
        private int nextOrder;
        private int names;

        Model(long seed, PoolShares pool, ArrayDeque<Runnable> threads) {
            random = new SplittableRandom(seed);
            this.pool = pool;
            this.threads = threads;
            for (int i = 0; i < 12; i++) {
                connections.add(new Connection(1 + i % 5));
            }
        }

        private final class Connection {
            final int address;
            final PoolShares.Share share;
            final ArrayDeque<Task> waiting = new ArrayDeque<>();
            final int mark;
            int own;
            int order;
            boolean isGone;

            Connection(int address) {
                this.address = address;
                mark = orphaned[address];
                share = connection(pool, address);
            }

            boolean mayBegin() {
                int gone = connections.stream()
                        .filter(each -> each.isGone && each.address == address)
                        .mapToInt(each -> each.own)
                        .sum();
                int found = Math.min(gone, Math.max(0, mark - ended[address]));
                int free = MAX - running;
                return free > 0 && (isGone ? gone : own + found) <= free;
            }

            void count(int more) {
                own += more;
                running += more;
                if (isGone && more < 0) {
                    ended[address]++;
                }
            }
        }

        /** Holds the connections whose tasks have been given to the pool and have not begun. */
        private final ArrayDeque<Connection> holders = new ArrayDeque<>();

        private final ArrayDeque<Task> held = new ArrayDeque<>();

        private @Nullable Connection next() {
            return connections.stream()
                    .filter(each -> !each.waiting.isEmpty() && each.mayBegin())
                    .min(Comparator.comparingInt(each -> each.order))
                    .orElse(null);
        }

        private Task take(Connection from) {
            from.count(1);
            from.order = nextOrder++;
            return from.waiting.remove();
        }

        void step() {
            Connection one = connections.get(random.nextInt(connections.size()));
            int what = random.nextInt(100);
            if (what < 70 && !one.isGone) {
                give(one);
            } else if (what < 80 && !one.waiting.isEmpty()) {
                Task task = one.waiting.removeLast();
                assertThat(one.share.withdraw(task)).isTrue();
                if (one.isGone) {
                    ended[one.address]++;
                    beginAll();
                }
            } else if (what < 83 && !one.isGone) {
                one.isGone = true;
                orphaned[one.address] += one.own + one.waiting.size();
                one.share.connectionGone();
                connections.add(new Connection(one.address));
            } else if (what >= 83 && !threads.isEmpty()) {
                runThread();
            }
            connections.removeIf(each -> each.isGone && each.own == 0 && each.waiting.isEmpty());
            assertThat(threads).hasSameSizeAs(holders);
            assertThat(pool.waitingConnections()).isEqualTo((int)
                    connections.stream().filter(each -> !each.waiting.isEmpty()).count());
        }

        private void give(Connection to) {
            Task task = new Task("task " + names++);
            if (!to.waiting.isEmpty()) {
                to.waiting.add(task);
            } else if (to.mayBegin()) {
                to.count(1);
                holders.add(to);
                held.add(task);
            } else {
                to.order = nextOrder++;
                to.waiting.add(task);
            }
            to.share.run(task);
        }

        private void beginAll() {
            for (Connection other = next(); other != null; other = next()) {
                holders.add(other);
                held.add(take(other));
            }
        }

        /** Lets the first thread end its task and run what it finds then. */
        private void runThread() {
            expected.clear();
            begun.clear();
            Connection one = holders.remove();
            Task task = held.remove();
            while (true) {
                expected.add(task);
                one.count(-1);
                Connection next = next();
                if (next == null) {
                    break;
                }
                one = next;
                task = take(next);
                beginAll();
            }
            threads.remove().run();
            assertThat(begun)
                    .containsExactlyElementsOf(
                            expected.stream().map(each -> each.name).toList());
        }
    }

    /** Stands for the want of memory while a task is put into its queue. */
    private final class Failing extends Task {
        Failing(String name) {
            super(name);
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return this == other;
        }

        @Override
        public int hashCode() {
            if (hasNoMemory) {
                throw new OutOfMemoryError("no memory, in this test");
            }
            return 1;
        }
    }

    /**
     * The task that was taken runs next. If it were refused, whoever gave it would use what it runs with for another
     * task.
     */
    @Test
    void aTaskThatHasBeenTakenIsNotRefusedSinceAnotherCannotBeBegun() {
        PoolShares.Share one = connection(1);
        twoMayBeginAtTheEndOfOne(one, new Failing("one waits"), new Task("two waits") {
            @Override
            public void run() {
                super.run();
                hasNoMemory = true;
                give(one, "one comes", 1);
                hasNoMemory = false;
            }
        });
        runOne();
        assertThat(begun).containsExactly("one", "two waits", "one comes");
        assertThat(refused).containsExactly("one waits: no thread, in this test");
        assertThat(pool.waitingConnections()).isZero();
    }

    @Test
    void aThreadRunsWhatItHasTakenThoughAnotherCannotBeBegunBeside() {
        twoMayBeginAtTheEndOfOne(connection(1), new Failing("one waits"), new Task("two waits"));
        hasNoMemory = true;
        runOne();
        hasNoMemory = false;
        hasNoThread = false;
        assertThat(begun).containsExactly("one", "two waits");
        assertThat(refused).containsExactly("one waits: no thread, in this test");
        while (!threads.isEmpty()) {
            runOne();
        }
        // all threads have been given back, so a connection gets as many as before
        give(connection(3), "three", 6);
        assertThat(threads).hasSize(5);
    }

    /** Between the two, the task belongs to this thread alone, and counts as one that runs. */
    @Test
    void aThreadTakesNoMemoryBetweenItsBeginAndItsTask() {
        ThreadMXBean memory = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        PoolShares.Share share = connection(1);
        long[] at = new long[2];
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 10; i++) {
            share.run(new Task("measures") {
                @Override
                public void run() {
                    at[1] = memory.getCurrentThreadAllocatedBytes();
                }
            });
            Runnable run = threads.remove();
            at[0] = memory.getCurrentThreadAllocatedBytes();
            run.run();
            least = Math.min(least, at[1] - at[0]);
        }
        assertThat(least).isZero();
    }

    @Test
    void aTaskThatThrowsKeepsNobodyFromBeginning() {
        PoolShares.Share share = connection(1);
        Thread.UncaughtExceptionHandler before = Thread.currentThread().getUncaughtExceptionHandler();
        Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> begun.add("thrown"));
        try {
            share.run(new Task("throws") {
                @Override
                public void run() {
                    throw new AssertionError("on purpose");
                }
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

    @Test
    void aTableThatHasGrownIsNotKeptForFew() {
        int many = 200;
        int waiting = 4_000;
        List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < waiting; i++) {
            tasks.add(new Task(String.valueOf(i)));
        }
        List<PoolShares> all = new ArrayList<>();
        List<PoolShares.Share> shares = new ArrayList<>();
        long before = Heap.usedBytes();
        for (int i = 0; i < many; i++) {
            PoolShares single = new PoolShares(1, (at, run) -> threads.add(run), address -> address.handlerThreads);
            PoolShares.Share share = connection(single, 1);
            tasks.forEach(share::run);
            if (i % 2 == 0) {
                runOne();
                assertThat(begun).hasSize(waiting);
            } else {
                tasks.subList(1, waiting - 1).forEach(share::withdraw);
            }
            all.add(single);
            shares.add(share);
            threads.clear();
            begun.clear();
        }
        assertThat((Heap.usedBytes() - before) / many).as("bytes of each").isLessThan(8_000);
        PoolShares.Share last = shares.get(many - 1);
        assertThat(last.withdraw(tasks.get(waiting - 1))).isTrue();
        assertThat(last.withdraw(tasks.get(waiting - 1))).isFalse();
        assertThat(all).hasSize(many);
    }
}
