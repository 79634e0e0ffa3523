package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.WireFault;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests how often a client may send what costs it nothing, under a simulated clock. */
class FloodGuardTest {
    private final MockTicker clock = Ticker.newMockTicker();
    private final FloodGuard guard = new FloodGuard(clock);

    private static void times(int times, Runnable said) {
        assertThatCode(() -> {
                    for (int i = 0; i < times; i++) {
                        said.run();
                    }
                })
                .doesNotThrowAnyException();
    }

    @Test
    void moreCancelsInASecondThanAnyoneNeedsAreAFault() {
        times(FloodGuard.MAX_CANCELS_PER_SECOND, guard::cancelled);
        clock.advance(TimeUnit.SECONDS.toNanos(1) - 1, TimeUnit.NANOSECONDS);
        assertThatThrownBy(guard::cancelled)
                .isInstanceOf(WireFault.class)
                .hasMessage("more than 8192 cancels in a second");
    }

    @Test
    void aSecondLaterItBeginsAnew() {
        times(FloodGuard.MAX_CANCELS_PER_SECOND, guard::cancelled);
        times(FloodGuard.MAX_PINGS_PER_SECOND, guard::pinged);
        clock.advance(1, TimeUnit.SECONDS);
        times(1 + FloodGuard.MAX_CANCELS_PER_SECOND, guard::cancelled);
        times(FloodGuard.MAX_PINGS_PER_SECOND, guard::pinged);
        assertThatThrownBy(guard::cancelled).isInstanceOf(WireFault.class);
        assertThatThrownBy(guard::pinged).isInstanceOf(WireFault.class);
        // the second begins where the counts began anew
        clock.advance(TimeUnit.SECONDS.toNanos(1) - 1, TimeUnit.NANOSECONDS);
        assertThatThrownBy(guard::pinged).isInstanceOf(WireFault.class);
        clock.advance(1, TimeUnit.NANOSECONDS);
        times(1 + FloodGuard.MAX_PINGS_PER_SECOND, guard::pinged);
    }

    @Test
    void eachCallMayBeCancelledOnce() {
        times(1_000, guard::requested);
        times(1_000 + FloodGuard.MAX_CANCELS_PER_SECOND, guard::cancelled);
        assertThatThrownBy(guard::cancelled).isInstanceOf(WireFault.class);
    }

    @Test
    void pingsTakeNoCancelsFromTheCallsThatWereMade() {
        times(1_000, guard::requested);
        times(FloodGuard.MAX_PINGS_PER_SECOND, guard::pinged);
        clock.advance(1, TimeUnit.SECONDS);
        guard.pinged();
        times(1_000 + FloodGuard.MAX_CANCELS_PER_SECOND, guard::cancelled);
        assertThatThrownBy(guard::cancelled).isInstanceOf(WireFault.class);
    }

    @Test
    void callsOfLongAgoAreCancelledNoMore() {
        times(100_000, guard::requested);
        times(2 * FloodGuard.MAX_CANCELS_PER_SECOND, guard::cancelled);
        assertThatThrownBy(guard::cancelled).isInstanceOf(WireFault.class);
    }

    @Test
    void morePingsInASecondThanAnyoneNeedsAreAFault() {
        times(FloodGuard.MAX_PINGS_PER_SECOND, guard::pinged);
        assertThatThrownBy(guard::pinged).isInstanceOf(WireFault.class).hasMessage("more than 100 pings in a second");
    }

    @Test
    void settingsAreSaidOnce() {
        times(1, guard::settingsReceived);
        assertThatThrownBy(guard::settingsReceived).isInstanceOf(WireFault.class);
    }
}
