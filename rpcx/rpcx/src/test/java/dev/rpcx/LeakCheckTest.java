package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.netty.buffer.ByteBufAllocator;
import java.util.List;
import org.junit.jupiter.api.Test;

class LeakCheckTest {
    @Test
    void oneCheckSeesALostBuffer() throws InterruptedException {
        for (int i = 0; i < 100; i++) {
            ByteBufAllocator.DEFAULT.directBuffer(16);
        }
        assertThat(LeakCheck.lostBuffers()).isNotEmpty();
        List<String> reports = List.copyOf(LeakCollector.REPORTS);
        assertThat(reports.get(0)).contains("ByteBuf");
        // These buffers were lost on purpose. The test waits until the last of them has been reported.
        await().during(java.time.Duration.ofMillis(300)).until(() -> {
            System.gc();
            ByteBufAllocator.DEFAULT.directBuffer(16).release();
            boolean quiet = LeakCollector.REPORTS.isEmpty();
            LeakCollector.REPORTS.clear();
            return quiet;
        });
    }
}
