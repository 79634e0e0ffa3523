package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBufAllocator;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Checks after every test class that no buffer was lost. JUnit finds this class by itself. */
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
