package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests the clock that stands still while nothing is read, under a simulated clock. */
class ReadingClockTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final MockTicker ticker = Ticker.newMockTicker();
    private final EmbeddedChannel channel =
            EmbeddedChannel.builder().ticker(ticker).build();
    private final ReadingClock readingClock = ReadingClock.of(channel);
    private final long begin = ticker.nanoTime();

    @AfterEach
    void end() {
        channel.close();
    }

    private void pass(long nanos) {
        ticker.advance(nanos, TimeUnit.NANOSECONDS);
    }

    /** Returns the time since the test began. */
    private long passed() {
        return readingClock.at(ticker.nanoTime()) - begin;
    }

    private long left(long due) {
        return readingClock.remaining(begin + due, ticker.nanoTime());
    }

    @Test
    void aChannelHasOneClock() {
        assertThat(ReadingClock.of(channel)).isSameAs(readingClock);
        EmbeddedChannel other = new EmbeddedChannel();
        assertThat(ReadingClock.of(other)).isNotSameAs(readingClock);
        other.close();
    }

    @Test
    void whileNothingIsReadNoTimePasses() {
        pass(100);
        assertThat(passed()).isEqualTo(100);
        readingClock.setReading(false);
        assertThat(channel.config().isAutoRead()).isFalse();
        pass(5_000);
        assertThat(passed()).isEqualTo(100);
        readingClock.setReading(true);
        assertThat(channel.config().isAutoRead()).isTrue();
        assertThat(passed()).isEqualTo(100);
        pass(30);
        assertThat(passed()).isEqualTo(130);
        readingClock.setReading(false);
        pass(700);
        assertThat(passed()).isEqualTo(130);
        readingClock.setReading(true);
        pass(1);
        assertThat(passed()).isEqualTo(131);
    }

    @Test
    void aPauseThatIsToldTwiceIsOne() {
        readingClock.setReading(true);
        pass(10);
        readingClock.setReading(true);
        pass(10);
        assertThat(passed()).isEqualTo(20);
        readingClock.setReading(false);
        pass(50);
        readingClock.setReading(false);
        pass(50);
        assertThat(passed()).isEqualTo(20);
        readingClock.setReading(true);
        pass(1);
        readingClock.setReading(true);
        assertThat(passed()).isEqualTo(21);
    }

    @Test
    void nothingIsDueInAPauseAndWhoLooksThenLooksASecondLater() {
        assertThat(left(5)).isEqualTo(5);
        pass(5);
        assertThat(left(5)).isZero();
        pass(1);
        assertThat(left(5)).isEqualTo(-1);
        readingClock.setReading(false);
        pass(10 * SECOND);
        assertThat(left(5)).isEqualTo(SECOND);
        assertThat(left(6 + SECOND)).isEqualTo(SECOND);
        assertThat(left(7 + SECOND)).isEqualTo(SECOND + 1);
        readingClock.setReading(true);
        assertThat(left(7 + SECOND)).isEqualTo(SECOND + 1);
        pass(1);
        assertThat(left(7 + SECOND)).isEqualTo(SECOND);
        assertThat(left(7)).isZero();
    }
}
