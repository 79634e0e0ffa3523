package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.parley.model.Load;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A round of five requests by two threads, whose replies come when the test says so. */
class RoundsDriverTest {
    private final Outcomes outcomes = new Outcomes(Long.MAX_VALUE);
    private final CountDownLatch answers = new CountDownLatch(1);
    private final RoundsDriver driver = new RoundsDriver(
            (Load.Rounds) Load.parse("rounds:2x5:3:600s:shared"),
            (Behaviour) _ -> {
                CompletableFuture<Boolean> reply = new CompletableFuture<>();
                Thread.ofVirtual().start(() -> {
                    try {
                        reply.complete(answers.await(60, TimeUnit.SECONDS));
                    } catch (InterruptedException e) {
                        reply.completeExceptionally(e);
                    }
                });
                return reply;
            },
            Clock.SYSTEM);

    private void begin() {
        driver.begin(Stretch.counted("round 1", 2, Long.MAX_VALUE, outcomes));
        await().until(() -> driver.inFlight() == 2);
    }

    @AfterEach
    void end() {
        answers.countDown();
        driver.close();
    }

    @Test
    void aRoundIsIdleWhenItsLastReplyHasCome() {
        assertThat(driver.isIdle()).isTrue();
        begin();
        assertThat(driver.isIdle()).isFalse();
        assertThat(driver.isDone()).isFalse();
        long beforeNs = Clock.SYSTEM.nowNs();
        answers.countDown();
        await().until(driver::isIdle);
        assertThat(driver.isDone()).isTrue();
        assertThat(driver.doneNs()).isBetween(beforeNs, Clock.SYSTEM.nowNs());
        assertThat(outcomes.due()).isEqualTo(5);
        assertThat(outcomes.answered()).isEqualTo(5);
    }

    @Test
    void whatHasNotBegunWhenItIsClosedIsNotSent() {
        begin();
        driver.close();
        await().until(() -> outcomes.counts().notSent() == 3);
        answers.countDown();
        await().until(driver::isIdle);
        assertThat(outcomes.due()).isEqualTo(5);
        assertThat(outcomes.answered()).isEqualTo(2);
        assertThat(driver.isDone()).isFalse();
    }
}
