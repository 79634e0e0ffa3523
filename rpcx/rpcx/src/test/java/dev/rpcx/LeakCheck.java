package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBufAllocator;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.List;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Checks after every test class that no buffer was lost. JUnit finds this class by itself. */
public final class LeakCheck implements AfterAllCallback {
    private static final long MAX_QUEUEING_MILLIS = 10_000;

    @Override
    public void afterAll(ExtensionContext context) throws InterruptedException {
        assertThat(lostBuffers()).as("lost buffers").isEmpty();
    }

    /**
     * Returns the reports of all buffers that have been lost. It collects garbage only once, because a collection takes
     * a large part of the processor time of most test classes.
     */
    static List<String> lostBuffers() throws InterruptedException {
        ReferenceQueue<Object> cleared = new ReferenceQueue<>();
        WeakReference<Object> garbage = new WeakReference<>(new Object(), cleared);
        System.gc();
        // the references to lost buffers reach their queue when this one does
        if (Heap.isCollectedOnRequest()) {
            cleared.remove(MAX_QUEUEING_MILLIS);
        }
        Reference.reachabilityFence(garbage);
        // the detector looks for lost buffers when the next one is made
        ByteBufAllocator.DEFAULT.directBuffer(16).release();
        return LeakCollector.REPORTS;
    }
}
