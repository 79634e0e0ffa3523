package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Tests when a connection looks again for calls that nobody will end. */
class LostCallsAloneTest {
    private final AtomicInteger looks = new AtomicInteger();
    private final LostCalls lost = new LostCalls(looks::incrementAndGet);

    @Test
    void aLookThatFoundThemAllIsTheLast() {
        lost.isAny = true;
        lost.endLost(() -> {
            assertThat(lost.isAny)
                    .as("who says so from here on is looked for again")
                    .isFalse();
            return true;
        });
        assertThat(lost.isAny).isFalse();
    }

    @Test
    void whoCannotSayYetOrFailsLooksAgain() {
        lost.endLost(() -> false);
        assertThat(lost.isAny).isTrue();
        lost.isAny = false;
        assertThatThrownBy(() -> lost.endLost(() -> {
                    throw new OutOfMemoryError("in this test");
                }))
                .hasMessage("in this test");
        assertThat(lost.isAny).isTrue();
    }

    @Test
    void whoIsToldOfThemLooks() {
        lost.requestCheck();
        assertThat(looks).hasValue(1);
    }
}
