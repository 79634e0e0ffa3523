package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.netty.util.ResourceLeakDetector;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests how many bytes a call allocates on the heap. The limits are the targets for the HelloWorld echo in steady
 * state.
 */
@Timeout(60)
class AllocationTest {
    private static final int CALLS = 20_000;
    private static final long MAX_CLIENT_BYTES = 500;
    private static final long MAX_SERVER_BYTES = 300;

    @RPCXServer("echo")
    static final class Echo {
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String inline(String text) {
            return text;
        }

        @Method
        String virtual(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        String inline(String text);

        String virtual(String text);
    }

    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    @Test
    void helloWorldAllocatesLittleOnBothSides() {
        // following every buffer would allocate more than the calls
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.DISABLED);
        Server server = Server.builder(RegistryServer.registry(new Echo()))
                .eventLoops(1)
                .build()
                .start();
        try (Client client = Client.builder().eventLoops(1).build()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            long[] inline = perCall(() -> echo.inline("HelloWorld"));
            long[] virtual = perCall(() -> echo.virtual("HelloWorld"));
            System.out.printf(
                    "allocated a call, client + server: inline %d + %d B, virtual thread %d + %d B%n",
                    inline[0], inline[1], virtual[0], virtual[1]);
            assertThat(inline[0]).isLessThanOrEqualTo(MAX_CLIENT_BYTES);
            assertThat(inline[1]).isLessThanOrEqualTo(MAX_SERVER_BYTES);
            assertThat(virtual[0]).isLessThanOrEqualTo(MAX_CLIENT_BYTES);
            assertThat(virtual[1]).isLessThanOrEqualTo(MAX_SERVER_BYTES);
        } finally {
            server.stop(Duration.ofMillis(200));
            ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
        }
    }

    /**
     * Returns the bytes that the client's threads allocate for each call, and the bytes that all other threads
     * allocate. The lowest numbers of three runs count, since the first runs also compile code and fill the pools.
     */
    private long[] perCall(Runnable call) {
        long[] best = {Long.MAX_VALUE, Long.MAX_VALUE};
        for (int run = 0; run < 3; run++) {
            Map<Long, Long> before = bytesByThread();
            for (int i = 0; i < CALLS; i++) {
                call.run();
            }
            long[] bytes = {0, 0};
            // a thread of another test may end meanwhile, and then its bytes count for nobody
            bytesByThread()
                    .forEach((thread, now) -> bytes[isClient(thread) ? 0 : 1] += now - before.getOrDefault(thread, 0L));
            best[0] = Math.min(best[0], bytes[0] / CALLS);
            best[1] = Math.min(best[1], bytes[1] / CALLS);
        }
        return best;
    }

    /** The bytes of a virtual thread count for the platform threads that carry it. */
    private Map<Long, Long> bytesByThread() {
        Map<Long, Long> bytes = new HashMap<>();
        for (long thread : threads.getAllThreadIds()) {
            // the number of a thread that has ended is -1
            bytes.put(thread, Math.max(0, threads.getThreadAllocatedBytes(thread)));
        }
        return bytes;
    }

    private boolean isClient(long id) {
        ThreadInfo thread = threads.getThreadInfo(id);
        return id == Thread.currentThread().getId()
                || thread != null && thread.getThreadName().startsWith("rpcx-client");
    }
}
