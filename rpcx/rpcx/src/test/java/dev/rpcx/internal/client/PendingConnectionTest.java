package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.CallbackFailures;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Tests calls that wait for one connection. Each call learns the outcome once, unless it was removed before. */
class PendingConnectionTest {
    private final PendingConnection<String> pending = new PendingConnection<>();
    private final List<String> told = new ArrayList<>();

    private final class Waiting implements PendingConnection.Waiter<String> {
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
        assertThat(pending.add(first)).isTrue();
        assertThat(pending.add(new Waiting("b"))).isTrue();
        pending.complete("1");
        pending.complete("2");
        assertThat(told).containsExactly("a1", "b1");
        assertThat(pending.remove(first)).as("it has been told").isFalse();
    }

    @Test
    void theFirstMayBeToldOfAnotherOneBeforeTheEnd() {
        assertThat(pending.giveToFirst("0")).isFalse();
        Waiting first = new Waiting("a");
        pending.add(first);
        pending.add(new Waiting("b"));
        assertThat(pending.giveToFirst("0")).isTrue();
        assertThat(pending.remove(first)).as("it has been told").isFalse();
        assertThat(pending.isWaitedFor()).isTrue();
        pending.complete("1");
        assertThat(pending.isWaitedFor()).isFalse();
        assertThat(told).containsExactly("a0", "b1");
    }

    @Test
    void allHearOfAFailure() {
        pending.add(new Waiting("a"));
        pending.completeExceptionally(new IllegalStateException(" failed"));
        assertThat(told).containsExactly("a failed");
    }

    @Test
    void whoComesAfterTheEndIsNotToldAndLearnsThat() {
        pending.complete("1");
        Waiting late = new Waiting("a");
        assertThat(pending.add(late)).isFalse();
        assertThat(pending.remove(late)).isFalse();
        assertThat(told).isEmpty();
    }

    @Test
    void whoHasGoneIsNotTold() {
        Waiting gone = new Waiting("a");
        pending.add(gone);
        pending.add(new Waiting("b"));
        assertThat(pending.remove(gone)).isTrue();
        assertThat(pending.remove(gone)).isFalse();
        pending.complete("1");
        assertThat(told).containsExactly("b1");
    }

    @Test
    void theOthersHearOfTheEndWhateverOneThrowsAndItIsLogged() {
        CallbackFailures.LOG.forget();
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
        pending.add((connected, failure) -> {
            throw injected;
        });
        pending.add(new Waiting("b"));
        pending.add((connected, failure) -> {
            throw new IllegalStateException("once more");
        });
        Logger logger = Logger.getLogger("dev.rpcx.callbacks");
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
        try {
            pending.complete("1");
        } finally {
            logger.setUseParentHandlers(true);
            logger.removeHandler(handler);
        }
        assertThat(told).containsExactly("b1");
        assertThat(logged).as("once a minute").containsExactly(injected);
    }

    @Test
    void whereNothingElseIsKnownThereIsNothingInstead() {
        assertThat(pending.instead()).isNull();
        pending.abandon();
        assertThat(pending).isNotDone();
    }
}
