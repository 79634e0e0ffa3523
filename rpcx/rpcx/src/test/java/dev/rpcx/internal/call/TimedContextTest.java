package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.CallContext;
import dev.rpcx.Metadata;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.server.HandledContext;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.security.Principal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what a part of a call shares with its call if the part has a time limit of its own, and which context a thread
 * has.
 */
@Timeout(60)
class TimedContextTest {
    private final MockTicker ticker = Ticker.newMockTicker();
    private final HandledContext call = new HandledContext(
            ticker.nanoTime() + Duration.ofSeconds(10).toNanos(), Metadata.EMPTY.with("note", "1"), null, ticker);

    private static CallContext within(long seconds) {
        return CallContext.within(
                Duration.ofSeconds(seconds), () -> CallContext.current().orElseThrow());
    }

    private static @Nullable String nameIn(CallContext context) {
        return context.principal().map(Principal::getName).orElse(null);
    }

    @Test
    void aPartHasItsOwnTimeAndNoMoreThanWhatItIsAPartOf() {
        CallContext part = call.call(() -> within(3));
        assertThat(Duration.ofNanos(part.remainingNanos())).isEqualTo(Duration.ofSeconds(3));
        assertThat(call.call(() -> within(30)).remainingNanos()).isEqualTo(call.remainingNanos());
        assertThat(part.call(() -> within(5)).remainingNanos()).isEqualTo(part.remainingNanos());
        assertThat(part.metadata()).isSameAs(call.metadata());
        assertThat(CallContext.current()).isEmpty();
    }

    @Test
    void whoCallsIsSaidOfTheWholeCall() {
        CallContext part = call.call(() -> within(3));
        CallContext inner = part.call(() -> within(1));
        inner.authenticate(() -> "alice");
        assertThat(nameIn(inner)).isEqualTo("alice");
        assertThat(nameIn(call)).isEqualTo("alice");
        assertThat(nameIn(call.call(() -> within(1)))).isEqualTo("alice");
        // parts that were made earlier, and parts beside this one, have the same caller
        call.authenticate(() -> "bob");
        assertThat(nameIn(inner)).isEqualTo("bob");
        part.authenticate(() -> "carol");
        assertThat(nameIn(inner)).isEqualTo("carol");
        assertThat(nameIn(call)).isEqualTo("carol");
    }

    @Test
    void theCancelOfACallReachesItsParts() {
        CallContext part = call.call(() -> within(3));
        CallContext inner = part.call(() -> within(1));
        List<String> told = new ArrayList<>();
        inner.onCancel(() -> told.add("inner"));
        part.onCancel(() -> told.add("part"));
        assertThat(inner.isCancelled()).isFalse();
        call.cancel().forEach(Runnable::run);
        assertThat(told).containsExactly("inner", "part");
        assertThat(inner.isCancelled()).isTrue();
        assertThat(part.isCancelled()).isTrue();
        inner.onCancel(() -> told.add("late"));
        assertThat(told).containsExactly("inner", "part", "late");
    }

    @Test
    void nobodyGivesUpWhereNoCallIsHandled() {
        CallContext alone = within(3);
        CallContext inner = alone.call(() -> within(1));
        List<String> told = new ArrayList<>();
        inner.onCancel(() -> told.add("inner"));
        alone.onCancel(() -> told.add("alone"));
        inner.authenticate(() -> "alice");
        assertThat(nameIn(alone)).isEqualTo("alice");
        assertThat(inner.isCancelled()).isFalse();
        assertThat(alone.isCancelled()).isFalse();
        assertThat(alone.metadata().isEmpty()).isTrue();
        assertThat(told).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void eachThreadHasItsOwn(boolean isLoop) throws InterruptedException {
        List<@Nullable CallContext> seen = new ArrayList<>();
        Runnable looks = () -> {
            seen.add(CurrentCall.get());
            call.run(() -> {
                seen.add(CurrentCall.get());
                CurrentCall.runIn(null, () -> seen.add(CurrentCall.get()));
                seen.add(CurrentCall.swap(call));
            });
            seen.add(CurrentCall.get());
        };
        Function<Runnable, Thread> making = isLoop ? task -> new LoopThread(task, "loop") : Thread::new;
        Thread thread = making.apply(() -> call.call(() -> {
            CurrentCall.runIn(null, looks);
            return "done";
        }));
        thread.start();
        thread.join();
        assertThat(seen).containsExactly(null, call, null, call, null);
        assertThat(CurrentCall.isAbsent()).isTrue();
    }
}
