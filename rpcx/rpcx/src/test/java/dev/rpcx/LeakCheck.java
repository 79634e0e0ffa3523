package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBufAllocator;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** After every test class: no buffer was lost. Found by JUnit itself. */
public final class LeakCheck implements AfterAllCallback {
    @Override
    public void afterAll(ExtensionContext context) {
        for (int round = 0; round < 3; round++) {
            System.gc();
            // the detector looks for lost buffers when the next one is made
            ByteBufAllocator.DEFAULT.directBuffer(16).release();
        }
        assertThat(LeakCollector.REPORTS).as("lost buffers").isEmpty();
    }
}
