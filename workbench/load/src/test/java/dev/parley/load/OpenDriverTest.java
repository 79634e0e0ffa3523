package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.parley.model.Load.Arrivals;
import dev.parley.model.Load.ClientUse;
import dev.parley.spi.CallException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Users with a client of their own: ten of them in a tenth of a second, each with two requests. */
class OpenDriverTest {
    private final Outcomes outcomes = new Outcomes(Long.MAX_VALUE);
    private final AtomicInteger opened = new AtomicInteger();
    private final AtomicInteger closed = new AtomicInteger();
    private final AtomicInteger sent = new AtomicInteger();
    private final CountDownLatch answers = new CountDownLatch(1);

    /** Opens a client for whoever asks, whose calls wait for {@link #answers}. */
    private final Target shared = new Behaviour() {
        @Override
        public CompletableFuture<Boolean> answer(long index) {
            throw new AssertionError("nobody calls over the client of all");
        }

        @Override
        public Target ownClient() {
            opened.incrementAndGet();
            return new Behaviour() {
                @Override
                public CompletableFuture<Boolean> answer(long index) {
                    sent.incrementAndGet();
                    return CompletableFuture.supplyAsync(
                            () -> {
                                try {
                                    answers.await();
                                    return true;
                                } catch (InterruptedException e) {
                                    return false;
                                }
                            },
                            task -> Thread.ofVirtual().start(task));
                }

                @Override
                public void close() {
                    closed.incrementAndGet();
                }
            };
        }
    };

    private OpenDriver driver = begun(10, ClientUse.PER_USER, shared);

    private OpenDriver begun(int inFlightMost, ClientUse use, Target target) {
        return new OpenDriver(new OpenDriver.Settings(Arrivals.EVEN, 2, use, 1, inFlightMost), target, Clock.SYSTEM);
    }

    private Stretch begin() {
        Stretch part = new Stretch("users", 100, 100, 0, 100_000_000, outcomes);
        driver.begin(part);
        return part;
    }

    private long right() {
        return outcomes.answered()
                - outcomes.counts().late()
                - outcomes.counts().wrong();
    }

    @AfterEach
    void end() {
        answers.countDown();
        driver.close();
    }

    @Test
    void eachUserHasAClientThatIsClosedWhenItLeaves() {
        assertThat(driver.isDone()).isTrue();
        Stretch part = begin();
        assertThat(part.beganNs).isNotZero();
        assertThat(driver.isDone()).isFalse();
        assertThat(driver.isIdle()).isFalse();
        await().until(() -> driver.inFlight() == 10);
        assertThat(closed).hasValue(0);
        long beforeNs = Clock.SYSTEM.nowNs();
        answers.countDown();
        await().until(driver::isDone);
        assertThat(driver.doneNs()).isBetween(beforeNs, Clock.SYSTEM.nowNs());
        assertThat(driver.inFlight()).isZero();
        assertThat(opened).hasValue(10);
        assertThat(closed).hasValue(10);
        assertThat(outcomes.due()).isEqualTo(20);
        assertThat(right()).isEqualTo(20);
        assertThat(outcomes.counts().sum()).isZero();
        assertThat(outcomes.scenarioTimes().getTotalCount()).isEqualTo(10);
        assertThat(outcomes.sendDelays().getTotalCount()).isEqualTo(10);
    }

    @Test
    void usersBeyondTheMostAtOnceAreNotSentAndNotSentLater() {
        driver.close();
        driver = begun(3, ClientUse.PER_USER, shared);
        begin();
        await().until(() -> outcomes.due() >= 14 && driver.inFlight() == 3);
        answers.countDown();
        await().until(driver::isIdle);
        assertThat(outcomes.due()).isEqualTo(20);
        assertThat(outcomes.counts().notSent()).isEqualTo(14);
        assertThat(right()).isEqualTo(6);
        assertThat(opened).hasValue(3);
    }

    @Test
    void aUserWhoGetsNoClientHasFailedAndSendsNothing() {
        driver.close();
        driver = begun(10, ClientUse.PER_USER, new Behaviour() {
            @Override
            public CompletableFuture<Boolean> answer(long index) {
                return CompletableFuture.completedFuture(true);
            }

            @Override
            public Target ownClient() {
                throw new CallException(CallException.Code.UNAVAILABLE, "refused");
            }
        });
        begin();
        await().until(driver::isIdle);
        assertThat(outcomes.due()).isEqualTo(20);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 0, 10, 10));
        assertThat(outcomes.firstFailure()).contains("refused");
    }

    @Test
    void whoIsThereWhenItIsClosedSendsNoMore() {
        begin();
        // a user in flight may not have sent yet
        await().until(() -> sent.get() == 10);
        driver.close();
        answers.countDown();
        await().until(driver::isIdle);
        assertThat(outcomes.due()).isEqualTo(20);
        assertThat(right()).isEqualTo(10);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 0, 0, 10));
        assertThat(outcomes.scenarioTimes().getTotalCount()).isZero();
    }

    /** The next part cuts the one under way, which may have been given more time than it needs. */
    @Test
    void whatFallsDueAfterTheNextPartHasBegunIsNotSent() {
        driver.close();
        driver = begun(1_000, ClientUse.SHARED, (Behaviour) index -> {
            sent.incrementAndGet();
            return CompletableFuture.completedFuture(true);
        });
        Outcomes slow = new Outcomes(Long.MAX_VALUE);
        driver.begin(Stretch.held("warm-up", 1, 3_600_000_000_000L, slow));
        await().until(() -> slow.answered() == 2);
        begin();
        await().until(driver::isIdle);
        assertThat(slow.due()).isEqualTo(2);
        assertThat(outcomes.due()).isEqualTo(20);
        assertThat(sent).hasValue(22);
    }
}
