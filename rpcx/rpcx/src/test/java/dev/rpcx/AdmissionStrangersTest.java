package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.server.AdmissionLimit;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.Map;
import java.util.Objects;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests an admission limit under a simulated clock. Strangers make a few calls per second, of any length and with any
 * deadline, beside the calls of others to the same method. Handlers do not wait for each other, so a handler takes the
 * same time however many run.
 */
class AdmissionStrangersTest {
    private static final int MAX = 10_000;
    private static final int HONEST_CONNECTIONS = 8;

    /** Something that happens at a time. Events of the same time happen in the order of their numbers. */
    private record Event(double at, int number, Runnable what) implements Comparable<Event> {
        @Override
        public int compareTo(Event other) {
            int byTime = Double.compare(at, other.at);
            return byTime == 0 ? Integer.compare(number, other.number) : byTime;
        }
    }

    private final SplittableRandom random = new SplittableRandom(1);
    private final Ledger ledger = new Ledger("a server of this test", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final AdmissionLimit limit =
            new AdmissionLimit(MAX, new AtomicInteger(), 0, true, ledger.groups()::groupsPerAddress);
    private final PriorityQueue<Event> events = new PriorityQueue<>();
    private final int[] running = new int[HONEST_CONNECTIONS + 100];
    private int number;

    /** The account of each connection. It is opened at the first call of the connection. */
    private final Account[] accounts = new Account[running.length];

    /** Each honest connection has an address of its own, and all connections of the strangers have one address. */
    private IntUnaryOperator addressOf = connection -> Math.min(connection, HONEST_CONNECTIONS);

    private double now;
    private int honest;
    private int refused;
    private int good;

    private void at(double time, Runnable what) {
        events.add(new Event(time, number++, what));
    }

    private static long nanos(double seconds) {
        return (long) (seconds * TimeUnit.SECONDS.toNanos(1));
    }

    private Account account(int connection) {
        Account known = accounts[connection];
        if (known != null) {
            return known;
        }
        byte[] address = {10, 0, 0, (byte) addressOf.applyAsInt(connection)};
        try {
            Account opened = ledger.open(new InetSocketAddress(InetAddress.getByAddress(address), 1));
            accounts[connection] = Objects.requireNonNull(opened);
            return opened;
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e);
        }
    }

    /** @return false if the call was refused */
    private boolean call(int connection, double takes, double given) {
        AdmissionLimit.Group of = limit.group(account(connection).group());
        if (!of.admit(running[connection], running[connection])) {
            of.refused(nanos(now));
            return false;
        }
        running[connection]++;
        double began = now;
        at(now + Math.min(takes, given), () -> {
            running[connection]--;
            good += connection < HONEST_CONNECTIONS && takes < given ? 1 : 0;
            of.release(nanos(began), nanos(began + given), nanos(now), takes < given);
        });
        return true;
    }

    /** Makes an honest call, and then the next one. Each takes up to 30 % more or less than {@code takes}. */
    private void honest(double perSecond, double takes, double given) {
        honest++;
        double taken = takes * (0.7 + 0.6 * random.nextDouble());
        refused += call(random.nextInt(HONEST_CONNECTIONS), Math.min(taken, 0.9 * given), given) ? 0 : 1;
        at(now - Math.log(1 - random.nextDouble()) / perSecond, () -> honest(perSecond, takes, given));
    }

    private void strangers(int connections, int together, double everySeconds, double takes, double given) {
        for (int i = 0; i < together; i++) {
            call(HONEST_CONNECTIONS + random.nextInt(connections), takes, given);
        }
        at(now + everySeconds, () -> strangers(connections, together, everySeconds, takes, given));
    }

    private void run(double until) {
        for (Event next = events.peek(); next != null && next.at <= until; next = events.peek()) {
            events.remove();
            now = next.at;
            next.what.run();
        }
        now = until;
    }

    private void expectRefused(double part) {
        assertThat(refused / (double) honest).as("limit %s", limit.limit()).isLessThan(part);
    }

    /** All connections have one address, as if they came through one proxy. So each connection is its own group. */
    @ParameterizedTest
    @CsvSource({
        "20, 0.03, 1, 12, 4, 30, 5",
        "20, 0.03, 1, 24, 8, 30, 10",
        "20, 0.005, 0.04, 5, 1.67, 30, 10",
        "50, 0.1, 2, 24, 12, 70, 60",
        "300, 0.1, 2, 50, 34, 60, 30",
        "500, 0.05, 2, 80, 64, 120, 60",
        "20, 0.1, 0.32, 1, 0.05, 3.1, 3",
        "50, 0.03, 0.11, 1, 0.1, 2.1, 2",
    })
    void strangersOfTheAddressOfAllOthersTakeLittleByTwoConnections(
            double perSecond,
            double takes,
            double given,
            int together,
            double everySeconds,
            double strangersTake,
            double strangersGive) {
        addressOf = connection -> 0;
        at(0, () -> honest(perSecond, takes, given));
        at(5, () -> strangers(2, together, everySeconds, strangersTake, strangersGive));
        run(200);
        expectRefused(0.1);
    }

    /**
     * The honest calls come from some addresses, by one or more connections each. A stranger has ten connections from
     * its own address.
     */
    @ParameterizedTest
    @CsvSource({
        "2, 20, 0.03, 1, 6, 4, 30, 5",
        "2, 50, 0.1, 2, 24, 12, 70, 60",
        "2, 50, 0.03, 0.11, 1, 0.1, 2.1, 2",
        "3, 20, 0.03, 1, 12, 4, 30, 5",
        "3, 20, 0.005, 0.04, 5, 1.67, 30, 10",
        "3, 50, 0.1, 2, 24, 12, 70, 60",
        "3, 20, 0.1, 0.32, 1, 0.05, 3.1, 3",
        "3, 50, 0.03, 0.11, 1, 0.1, 2.1, 2",
        "4, 20, 0.03, 1, 12, 4, 30, 5",
        "4, 300, 0.1, 2, 50, 34, 60, 30",
        "4, 500, 0.05, 2, 80, 64, 120, 60",
        "4, 20, 0.1, 0.32, 1, 0.05, 3.1, 3",
        "4, 50, 0.03, 0.11, 1, 0.1, 2.1, 2",
        "8, 20, 0.03, 1, 12, 4, 30, 5",
        "8, 20, 0.03, 1, 24, 8, 30, 10",
        "8, 20, 0.005, 0.04, 5, 1.67, 30, 10",
        "8, 50, 0.1, 2, 24, 12, 70, 60",
        "8, 20, 0.1, 10, 16, 5.3, 70, 60",
        "8, 300, 0.1, 2, 50, 34, 60, 30",
        "8, 500, 0.05, 2, 80, 64, 120, 60",
        "8, 100, 0.03, 1, 15, 3, 30, 10",
        // the strangers make about as many calls a second as the others, and their calls are late
        "8, 20, 0.03, 0.32, 20, 2, 2.1, 2",
        "8, 20, 0.1, 0.32, 1, 0.05, 3.1, 3",
        "8, 30, 0.1, 0.32, 1, 0.05, 3.1, 3",
        "8, 50, 0.005, 0.12, 1, 0.05, 1.1, 1",
        "8, 50, 0.03, 0.11, 1, 0.1, 2.1, 2",
        "8, 300, 0.1, 0.5, 1, 0.0625, 3, 2.9",
        "8, 50, 0.1, 0.32, 10, 0.5, 0.2, 0.16",
        "8, 20, 0.3, 0.92, 10, 1, 0.9, 0.83",
        // the strangers' calls are quick and are given much time, or end just in time
        "8, 20, 0.03, 1, 60, 20, 0.001, 60",
        "8, 50, 0.1, 2, 30, 10, 9.9, 10",
        // the strangers' calls sleep for an hour
        "8, 100, 0.03, 1, 5, 1.7, 3600, 3601",
    })
    void strangersOfOneAddressTakeLittleFromTheOthers(
            int addresses,
            double perSecond,
            double takes,
            double given,
            int together,
            double everySeconds,
            double strangersTake,
            double strangersGive) {
        addressOf = connection -> connection < HONEST_CONNECTIONS ? connection % addresses : addresses;
        at(0, () -> honest(perSecond, takes, given));
        at(5, () -> strangers(10, together, everySeconds, strangersTake, strangersGive));
        run(200);
        expectRefused(0.1);
    }

    /** Calls of 60 s while a method is quiet must not have the effect that shorter times are ignored for ever. */
    @Test
    void whatCallsTakeThatAreGoneDecidesNoMoreWhoseTimeCounts() {
        at(0, () -> honest(5, 0.1, 10));
        for (int i = 0; i < 240; i++) {
            at(i / 2.0, () -> call(HONEST_CONNECTIONS, 60, 70));
        }
        run(300);
        honest = 0;
        refused = 0;
        // each call works for a second, and only eight work at once, so most calls are late
        int before = limit.limit();
        at(301, () -> overload(8, 1, 3, 3, false));
        run(330);
        assertThat(limit.limit()).as("an overload is seen").isLessThan(before);
    }

    /**
     * Makes more calls than their handlers can work off. {@code workers} handlers work at once, each for {@code works}
     * seconds. Calls come {@code times} times as fast as such handlers end, by chance or evenly.
     */
    private void overload(int workers, double works, double times, double given, boolean isByChance) {
        double wait = Math.max(0, limit.running() - (workers - 1)) * works / workers;
        double part = isByChance ? 0.8 + 0.4 * random.nextDouble() : 1;
        call(random.nextInt(HONEST_CONNECTIONS), (wait + works) * part, given);
        double pause = (isByChance ? -Math.log(1 - random.nextDouble()) : 1) * works / (times * workers);
        at(now + pause, () -> overload(workers, works, times, given, isByChance));
    }

    /** The calls end when their time is over, and that is no reason to admit more of them. */
    @Test
    void anOverloadFromTheFirstCallIsCutThoughCallsHaveMuchTime() {
        at(0, () -> overload(25, 0.41, 5.2, 9.3, true));
        run(60);
        good = 0;
        run(160);
        assertThat(good / 100.0).as("in time a second; limit %s", limit.limit()).isGreaterThan(0.9 * 25 / 0.41);
    }

    /** The stranger's calls end at a rate that says nothing of what the others' calls need. */
    @ParameterizedTest
    @CsvSource({"1000, 1", "0.002, 1", "0.01, 4", "0.0005, 1", "0.05, 1"})
    void quickCallsOfAStrangerKeepNoOverloadFromBeingCut(double everySeconds, int together) {
        at(0, () -> overload(8, 1, 3, 3, false));
        at(5, () -> strangers(10, together, everySeconds, 0.001, 60));
        run(60);
        good = 0;
        run(160);
        assertThat(good / 100.0).as("in time a second; limit %s", limit.limit()).isGreaterThan(0.8 * 8);
    }

    /** No stranger is there: some addresses have short calls, and the others long ones, which are given more time. */
    @ParameterizedTest
    @CsvSource({
        // addresses, calls a second of each, short ones and their time in ms, long ones and theirs, the pause in ms
        "6, 76, 12.5, 31, 125, 250, 1300",
        "2, 230, 4.5, 15, 45, 90, 200",
        "3, 115, 8.5, 89, 85, 170, 3100",
        "5, 42, 66, 799, 660, 1320, 2400",
    })
    void aPauseOfTheProcessLeavesNoLimitBehind(
            int addresses,
            double perSecond,
            double shortWorks,
            double shortGiven,
            double longWorks,
            double longGiven,
            double pause) {
        addressOf = connection -> connection % addresses;
        for (int i = 0; i < addresses; i++) {
            int address = i;
            double[] works = i % 3 == 0 ? new double[] {shortWorks, shortGiven} : new double[] {longWorks, longGiven};
            at(0, () -> calls(address + addresses * random.nextInt(7), perSecond, works[0] / 1000, works[1] / 1000));
        }
        run(60);
        assertThat(refused).as("of %s, before", honest).isZero();
        pauseBegins = 60;
        pauseEnds = 60 + pause / 1000;
        run(90);
        honest = 0;
        refused = 0;
        run(200);
        expectRefused(0.05);
    }

    private double pauseBegins;
    private double pauseEnds;

    /**
     * Makes a call, and then the next one. Each takes up to 30 % more or less than {@code works}. A call that begins in
     * a pause ends behind it.
     */
    private void calls(int connection, double perSecond, double works, double given) {
        double wait = now >= pauseBegins ? Math.max(0, pauseEnds - now) : 0;
        honest++;
        refused += call(connection, wait + works * (0.7 + 0.6 * random.nextDouble()), given) ? 0 : 1;
        at(now - Math.log(1 - random.nextDouble()) / perSecond, () -> calls(connection, perSecond, works, given));
    }

    /**
     * Before anybody else comes, a stranger makes ten calls that take 20 s, ten late ones, and five that take 1 000 s.
     */
    @Test
    void whoHoldsALimitForLongDoesSoForTenSecondsAtMost() {
        for (int i = 0; i < 10; i++) {
            at(0, () -> call(HONEST_CONNECTIONS, 20, 100));
            at(0, () -> call(HONEST_CONNECTIONS, 100, 40));
        }
        for (int i = 0; i < 5; i++) {
            at(0, () -> call(HONEST_CONNECTIONS, 1_000, 3_600));
        }
        at(45, () -> honest(300, 0.1, 2));
        run(57);
        honest = 0;
        refused = 0;
        run(100);
        expectRefused(0.02);
    }
}
