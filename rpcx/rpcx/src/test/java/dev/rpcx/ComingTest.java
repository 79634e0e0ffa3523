package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Calls that wait for one connection: each hears of the end once, or has gone before. */
class ComingTest {
    private final Coming<String> coming = new Coming<>();
    private final List<String> told = new ArrayList<>();

    private final class Waiting implements Coming.Waiter<String> {
        private final String name;

        Waiting(String name) {
            this.name = name;
        }

        @Override
        public void ended(@Nullable String connected, @Nullable Throwable failure) {
            told.add(name + (failure == null ? connected : failure.getMessage()));
        }
    }

    @Test
    void allHearOfTheConnectionInTheirOrderAndOnce() {
        Waiting first = new Waiting("a");
        assertThat(coming.add(first)).isTrue();
        assertThat(coming.add(new Waiting("b"))).isTrue();
        coming.complete("1");
        coming.complete("2");
        assertThat(told).containsExactly("a1", "b1");
        assertThat(coming.remove(first)).as("it has been told").isFalse();
    }

    @Test
    void theFirstMayBeToldOfAnotherOneBeforeTheEnd() {
        assertThat(coming.tellFirst("0")).isFalse();
        Waiting first = new Waiting("a");
        coming.add(first);
        coming.add(new Waiting("b"));
        assertThat(coming.tellFirst("0")).isTrue();
        assertThat(coming.remove(first)).as("it has been told").isFalse();
        assertThat(coming.isWaitedFor()).isTrue();
        coming.complete("1");
        assertThat(coming.isWaitedFor()).isFalse();
        assertThat(told).containsExactly("a0", "b1");
    }

    @Test
    void allHearOfAFailure() {
        coming.add(new Waiting("a"));
        coming.completeExceptionally(new IllegalStateException(" failed"));
        assertThat(told).containsExactly("a failed");
    }

    @Test
    void whoComesAfterTheEndIsNotToldAndLearnsThat() {
        coming.complete("1");
        Waiting late = new Waiting("a");
        assertThat(coming.add(late)).isFalse();
        assertThat(coming.remove(late)).isFalse();
        assertThat(told).isEmpty();
    }

    @Test
    void whoHasGoneIsNotTold() {
        Waiting gone = new Waiting("a");
        coming.add(gone);
        coming.add(new Waiting("b"));
        assertThat(coming.remove(gone)).isTrue();
        assertThat(coming.remove(gone)).isFalse();
        coming.complete("1");
        assertThat(told).containsExactly("b1");
    }

    @Test
    void theOthersHearOfTheEndWhateverOneThrowsAndItIsLogged() {
        CallbackFailures.COMPLAINT.forget();
        List<Throwable> logged = new ArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord record) {
                logged.add(record.getThrown());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        RuntimeException injected = new IllegalStateException("by the test");
        coming.add((connected, failure) -> {
            throw injected;
        });
        coming.add(new Waiting("b"));
        coming.add((connected, failure) -> {
            throw new IllegalStateException("once more");
        });
        Logger logger = Logger.getLogger("dev.rpcx.callbacks");
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
        try {
            coming.complete("1");
        } finally {
            logger.setUseParentHandlers(true);
            logger.removeHandler(handler);
        }
        assertThat(told).containsExactly("b1");
        assertThat(logged).as("once a minute").containsExactly(injected);
    }

    @Test
    void whereNothingElseIsKnownThereIsNothingInstead() {
        assertThat(coming.instead()).isNull();
        coming.abandon();
        assertThat(coming).isNotDone();
    }
}
