package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests how a connection counts its running handlers, in total and by method. */
class RunningHandlersTest {
    @RPCXServer("counted")
    static final class Service {
        @Method
        String hello(String name) {
            return name;
        }
    }

    private final Ledger ledger = new Ledger("ledger under test", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final RunningHandlers running = new RunningHandlers(account, () -> 0);
    private final AdmissionLimit.Group limit = new AdmissionLimit(100, new AtomicInteger(), 0).group(0);

    private static final ServerMethod METHOD =
            Objects.requireNonNull(Inside.core(Server.builder(RegistryServer.registry(new Service()))
                            .inProcess()
                            .build())
                    .method(1));

    private static ServerMethod method(int number) {
        ServerMethod of = METHOD;
        return new ServerMethod(
                number,
                of.service(),
                of.name(),
                of.shape(),
                of.schema(),
                of.place(),
                of.parameters(),
                of.arguments(),
                of.result(),
                of.returnsStream(),
                of.items(),
                of.errors(),
                of.handle(),
                of.chain(),
                of.admission());
    }

    /** A connection would keep the room as long as it lives, and there may be very many connections. */
    @Test
    void aMethodOfAHighNumberTakesNoMoreRoomThanAnother() {
        int before = running.room();
        for (int number : new int[] {1, 4_000, 32}) {
            assertThat(running.admit(method(number), limit)).isTrue();
        }
        assertThat(running.room()).isEqualTo(before);
        assertThat(running.all()).isEqualTo(3);
    }

    @Test
    void roomForMethodsGoesWithTheirHandlers() {
        List<ServerMethod> methods = new ArrayList<>();
        for (int number = 1; number <= 1_000; number++) {
            methods.add(method(number));
        }
        AdmissionLimit.Group many = new AdmissionLimit(10_000, new AtomicInteger(), 0).group(0);
        for (int i = 0; i < 2; i++) {
            methods.forEach(each -> assertThat(running.admit(each, many)).isTrue());
            assertThat(running.room()).isBetween(1_000, 2_048);
            methods.subList(0, 900).forEach(running::handlerEnded);
            assertThat(running.room()).as("100 run").isLessThanOrEqualTo(400);
            methods.subList(900, 1_000).forEach(running::handlerEnded);
            assertThat(running.room()).isLessThanOrEqualTo(32);
            assertThat(running.all()).isZero();
        }
    }

    /** Running handlers stay counted, each by its own method, whichever of them ends first. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void eachHandlerCountsForItsOwnMethod(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        int most = 4;
        List<ServerMethod> methods = new ArrayList<>();
        List<AdmissionLimit.Group> limits = new ArrayList<>();
        int[] entered = new int[200];
        for (int i = 0; i < entered.length; i++) {
            methods.add(method(1 + 17 * i));
            // another connection runs one of four handlers, so that this one has two, its share of the others
            limits.add(ofMethod(most));
            assertThat(limits.get(i).admit()).isTrue();
        }
        int share = 2;
        int all = 0;
        for (int i = 0; i < 20_000; i++) {
            // few of them run now, and many later
            int of = random.nextInt(i / 2_000 % 2 == 0 ? entered.length : 5);
            ServerMethod method = methods.get(of);
            AdmissionLimit.Group own = limits.get(of);
            if (entered[of] > 0 && random.nextInt(100) < (i / 4_000 % 2 == 0 ? 30 : 70)) {
                own.release();
                running.handlerEnded(method);
                entered[of]--;
                all--;
            } else {
                boolean isIn = running.admit(method, own);
                assertThat(isIn).isEqualTo(entered[of] < share);
                entered[of] += isIn ? 1 : 0;
                all += isIn ? 1 : 0;
            }
            assertThat(running.all()).isEqualTo(all);
        }
    }

    @Test
    void nothingIsLeftWhenTheLastHandlerOfAConnectionThatIsGoneHasEnded() {
        ServerMethod first = method(1_000);
        ServerMethod second = method(1_001);
        assertThat(running.admit(first, limit)).isTrue();
        assertThat(running.admit(second, limit)).isTrue();
        running.connectionGone();
        account.close();
        running.handlerEnded(first);
        assertThat(ledger.held(Resource.ORPHANS)).isEqualTo(1);
        assertThat(running.admit(first, limit))
                .as("begun after its connection's end")
                .isTrue();
        running.handlerEnded(first);
        running.handlerEnded(second);
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void whatAnAddressHasOrphanedIsInTheShareOfItsNextConnection() {
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
        RunningHandlers before = of(address);
        for (int i = 0; i < 3; i++) {
            assertThat(before.admit(method(1), limit)).isTrue();
        }
        before.connectionGone();
        Account now = Objects.requireNonNull(ledger.open(address));
        RunningHandlers again = new RunningHandlers(now, () -> 0);
        // two of four places are free, which is one too few for a client that runs three already
        AtomicInteger all = new AtomicInteger(2);
        AdmissionLimit.Group few = new AdmissionLimit(4, all, 0).group(0);
        assertThat(again.admit(method(1), few)).isFalse();
        all.set(1);
        assertThat(again.admit(method(1), few)).isTrue();
        assertThat(again.all()).isEqualTo(1);
        all.set(0);
        // now it runs four
        assertThat(again.admit(method(1), few)).isTrue();
        all.set(0);
        assertThat(again.admit(method(1), few)).isFalse();
    }

    /** A client that disconnects leaves others as much as one that stays: half of what the first one holds. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whoWasThereBeforeHasAsMuchBesideWhatIsOrphanedAsBesideOneThatStays(boolean isGone) {
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
        AtomicInteger all = new AtomicInteger();
        AdmissionLimit.Group ofOne = new AdmissionLimit(8, all, 0, false, () -> 1).group(0);
        AdmissionLimit.Group ofOther = new AdmissionLimit(8, all, 0, false, () -> 1).group(0);
        RunningHandlers before = of(address);
        RunningHandlers one = of(address);
        assertThat(entered(one, ofOne)).isEqualTo(5);
        if (isGone) {
            one.connectionGone();
        }
        assertThat(entered(before, ofOther)).isEqualTo(2);
    }

    @Test
    void whoComesAgainAndAgainNeverHasMoreThanOneShare() {
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
        AtomicInteger all = new AtomicInteger();
        int entered = 0;
        for (int i = 0; i < 20; i++) {
            RunningHandlers again = of(address);
            for (int k = 0; k < 3; k++) {
                // each call has a limit of its own, so that only the places of all methods count
                entered += again.admit(method(1), new AdmissionLimit(8, all, 0, false, () -> 1).group(0)) ? 1 : 0;
            }
            again.connectionGone();
            assertThat(entered).isLessThanOrEqualTo(5);
        }
        assertThat(entered).isEqualTo(5);
    }

    private RunningHandlers of(InetSocketAddress address) {
        return new RunningHandlers(Objects.requireNonNull(ledger.open(address)), () -> 0);
    }

    private static int entered(RunningHandlers by, AdmissionLimit.Group limit) {
        ServerMethod called = method(1);
        int entered = 0;
        while (entered < 20 && by.admit(called, limit)) {
            entered++;
        }
        return entered;
    }

    /** Makes a limit for which the places of all methods do not matter, since there are enough of them. */
    private static AdmissionLimit.Group ofMethod(int most) {
        return new AdmissionLimit(most, new AtomicInteger(-1_000), 0).group(0);
    }

    @Test
    void aConnectionHasItsShareOfEachMethodWhereAnotherIsThere() {
        AdmissionLimit.Group ten = ofMethod(10);
        assertThat(ten.admit()).as("another connection's").isTrue();
        ServerMethod called = method(1);
        int entered = 0;
        while (entered < 20 && running.admit(called, ten)) {
            entered++;
        }
        assertThat(entered).isEqualTo(5);
        AdmissionLimit.Group others = ofMethod(10);
        assertThat(others.admit()).isTrue();
        assertThat(running.admit(method(2), others)).as("of another method").isTrue();
    }

    @Test
    void aHandlerThatHasLeftIsInNoShare() {
        AdmissionLimit.Group two = ofMethod(2);
        two.admit();
        two.admit();
        ServerMethod called = method(1);
        assertThat(running.admit(called, two)).as("from here on it is shared").isFalse();
        two.release();
        two.release();
        for (int i = 0; i < 10; i++) {
            assertThat(running.admit(called, two)).isTrue();
            two.release();
            running.handlerEnded(called);
            assertThat(running.all()).isZero();
        }
    }
}
