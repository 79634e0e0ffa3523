package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests when tries to connect begin, without connections and under a simulated clock. */
@Timeout(60)
class ConnectThrottleTest {
    private static final long EACH_NANOS = TimeUnit.SECONDS.toNanos(1) / ConnectThrottle.MAX_A_SECOND;

    private final HandPlatform hand = new HandPlatform();
    private final Client client =
            Inside.on(Client.builder(), hand).eventLoops(1).build();

    /** The clock of this throttle does not stand at 0, and no try to connect has begun for long. */
    private final ConnectThrottle throttle = throttle();

    /** Holds the tries to connect in the order in which they have begun. */
    private final List<CompletableFuture<Integer>> begun = new ArrayList<>();

    private ConnectThrottle throttle() {
        hand.ticker.advance(100, TimeUnit.SECONDS);
        ConnectThrottle made = new ConnectThrottle(Inside.core(client));
        hand.ticker.advance(10, TimeUnit.SECONDS);
        return made;
    }

    @AfterEach
    void stop() {
        Inside.core(client).end();
        for (EmbeddedChannel channel : hand.opened) {
            channel.close();
        }
    }

    private CompletableFuture<Integer> enter() {
        CompletableFuture<Integer> connecting = new CompletableFuture<>();
        throttle.enter(connecting, () -> begun.add(connecting));
        return connecting;
    }

    /** Enters tries to connect that end as soon as they have begun, so that only the rate holds them back. */
    private void enterQuick(int count) {
        for (int i = 0; i < count; i++) {
            CompletableFuture<Integer> connecting = new CompletableFuture<>();
            throttle.enter(connecting, () -> {
                begun.add(connecting);
                connecting.complete(1);
            });
        }
    }

    private void pass(long nanos) {
        hand.ticker.advance(nanos, TimeUnit.NANOSECONDS);
        hand.runTimers();
    }

    @Test
    void aTryBeginsAtOnceWhereNothingIsInProgress() {
        CompletableFuture<Integer> connecting = enter();
        assertThat(begun).containsExactly(connecting);
        assertThat(throttle.waiting()).isZero();
    }

    @Test
    void afterASecondWithoutAnyASecondsTriesBeginTogetherAndTheOthersOneByOne() {
        enterQuick(ConnectThrottle.MAX_A_SECOND + 10);
        assertThat(begun).hasSize(ConnectThrottle.MAX_A_SECOND);
        assertThat(throttle.waiting()).isEqualTo(10);
        pass(EACH_NANOS - 1);
        assertThat(begun).hasSize(ConnectThrottle.MAX_A_SECOND);
        pass(1);
        assertThat(begun).hasSize(ConnectThrottle.MAX_A_SECOND + 1);
        pass(3 * EACH_NANOS);
        assertThat(begun).hasSize(ConnectThrottle.MAX_A_SECOND + 4);
        pass(20 * EACH_NANOS);
        assertThat(begun).hasSize(ConnectThrottle.MAX_A_SECOND + 10);
        assertThat(throttle.waiting()).isZero();
    }

    @Test
    void howeverLongNothingBeganNoMoreThanASecondsTriesBeginTogether() {
        enterQuick(100);
        assertThat(begun).hasSize(100);
        pass(TimeUnit.SECONDS.toNanos(1) / 2);
        enterQuick(ConnectThrottle.MAX_A_SECOND);
        // by now the rate has made up for all of the first hundred
        assertThat(begun).hasSize(100 + ConnectThrottle.MAX_A_SECOND);
        pass(TimeUnit.MINUTES.toNanos(1));
        enterQuick(2 * ConnectThrottle.MAX_A_SECOND);
        assertThat(begun).hasSize(100 + 2 * ConnectThrottle.MAX_A_SECOND);
    }

    @Test
    void halfASecondAfterAllOfASecondHalfOfThemMayBegin() {
        enterQuick(ConnectThrottle.MAX_A_SECOND);
        pass(TimeUnit.SECONDS.toNanos(1) / 2);
        enterQuick(ConnectThrottle.MAX_A_SECOND);
        assertThat(begun).hasSize(ConnectThrottle.MAX_A_SECOND * 3 / 2);
    }

    @Test
    void soManyAreInProgressAtOnceAndTheNextBeginAsTheyEndInTheirOrder() {
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int i = 0; i < ConnectThrottle.MAX_AT_ONCE + 3; i++) {
            all.add(enter());
        }
        assertThat(begun).isEqualTo(all.subList(0, ConnectThrottle.MAX_AT_ONCE));
        assertThat(throttle.waiting()).isEqualTo(3);
        all.get(7).complete(1);
        assertThat(begun).isEqualTo(all.subList(0, ConnectThrottle.MAX_AT_ONCE + 1));
        all.get(9).completeExceptionally(new IllegalStateException("refused"));
        assertThat(begun).isEqualTo(all.subList(0, ConnectThrottle.MAX_AT_ONCE + 2));
        assertThat(throttle.waiting()).isEqualTo(1);
        pass(TimeUnit.MINUTES.toNanos(1));
        assertThat(begun).hasSize(ConnectThrottle.MAX_AT_ONCE + 2);
    }

    @Test
    void aTryThatEndsBeforeItIsTheNextDoesNotBegin() {
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int i = 0; i < ConnectThrottle.MAX_AT_ONCE + 3; i++) {
            all.add(enter());
        }
        all.get(ConnectThrottle.MAX_AT_ONCE).cancel(false);
        assertThat(throttle.waiting()).isEqualTo(2);
        all.get(0).complete(1);
        assertThat(begun)
                .hasSize(ConnectThrottle.MAX_AT_ONCE + 1)
                .last()
                .isSameAs(all.get(ConnectThrottle.MAX_AT_ONCE + 1));
    }

    @Test
    void aTryThatHasEndedAlreadyDoesNotBeginAndHoldsUpNobody() {
        throttle.enter(CompletableFuture.completedFuture(1), () -> begun.add(new CompletableFuture<>()));
        assertThat(begun).isEmpty();
        assertThat(throttle.waiting()).isZero();
        CompletableFuture<Integer> next = enter();
        assertThat(begun).containsExactly(next);
    }

    @Test
    void aTryWhoseBeginFailsEndsWithThatAndTheNextBegins() {
        CompletableFuture<Integer> failing = new CompletableFuture<>();
        throttle.enter(failing, () -> {
            throw new IllegalStateException("by the test");
        });
        assertThat(failing).isCompletedExceptionally();
        assertThat(begun).isEmpty();
        enter();
        assertThat(begun).hasSize(1);
    }

    @Test
    void manyWhoseBeginFailsEndOneAfterTheOther() {
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int i = 0; i < 3 * ConnectThrottle.MAX_AT_ONCE; i++) {
            CompletableFuture<Integer> failing = new CompletableFuture<>();
            all.add(failing);
            throttle.enter(failing, () -> {
                throw new StackOverflowError("injected");
            });
        }
        pass(TimeUnit.SECONDS.toNanos(2));
        assertThat(all).allMatch(CompletableFuture::isCompletedExceptionally);
    }

    @Test
    void aTryOfAClientThatIsClosedEnds() {
        Inside.core(client).end();
        CompletableFuture<Integer> connecting = enter();
        assertThat(connecting).isCompletedExceptionally();
        assertThat(begun).isEmpty();
    }

    @Test
    void whatMayBeginEarlierIsNotLookedForLater() {
        for (int i = 0; i < ConnectThrottle.MAX_AT_ONCE + 1; i++) {
            enter();
        }
        // the next look is due in a second, since as many connect at once as are allowed
        List.copyOf(begun).subList(0, ConnectThrottle.MAX_AT_ONCE).forEach(connecting -> connecting.complete(1));
        assertThat(throttle.waiting()).isZero();
        enterQuick(ConnectThrottle.MAX_A_SECOND - ConnectThrottle.MAX_AT_ONCE - 1);
        assertThat(throttle.waiting()).isZero();
        enterQuick(5);
        assertThat(throttle.waiting()).isEqualTo(5);
        pass(EACH_NANOS);
        assertThat(throttle.waiting()).isEqualTo(4);
        pass(2 * EACH_NANOS);
        assertThat(throttle.waiting()).isEqualTo(2);
        pass(TimeUnit.SECONDS.toNanos(2));
        assertThat(throttle.waiting()).isZero();
    }
}
