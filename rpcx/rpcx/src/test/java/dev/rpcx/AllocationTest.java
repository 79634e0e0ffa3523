package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.netty.util.ResourceLeakDetector;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a call costs the garbage collector. Source of the limits: the targets of the HelloWorld echo in steady state. */
@Timeout(60)
class AllocationTest {
    private static final int CALLS = 20_000;
    private static final long CLIENT_BYTES = 500;
    private static final long SERVER_BYTES = 300;

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
            assertThat(inline[0]).isLessThanOrEqualTo(CLIENT_BYTES);
            assertThat(inline[1]).isLessThanOrEqualTo(SERVER_BYTES);
            assertThat(virtual[0]).isLessThanOrEqualTo(CLIENT_BYTES);
            assertThat(virtual[1]).isLessThanOrEqualTo(SERVER_BYTES);
        } finally {
            server.stop(Duration.ofMillis(200));
            ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
        }
    }

    /** Bytes of the client's threads and of all others, in the better of three runs: the first ones compile and warm the pools. */
    private long[] perCall(Runnable call) {
        long[] best = {Long.MAX_VALUE, Long.MAX_VALUE};
        for (int run = 0; run < 3; run++) {
            long client = bytes(true);
            long others = bytes(false);
            for (int i = 0; i < CALLS; i++) {
                call.run();
            }
            best[0] = Math.min(best[0], (bytes(true) - client) / CALLS);
            best[1] = Math.min(best[1], (bytes(false) - others) / CALLS);
        }
        return best;
    }

    /** Virtual threads count for the platform threads that carry them. */
    private long bytes(boolean ofClient) {
        long bytes = 0;
        for (ThreadInfo thread : threads.getThreadInfo(threads.getAllThreadIds())) {
            boolean isClient = thread != null
                    && (thread.getThreadName().startsWith("rpcx-client")
                            || thread.getThreadId() == Thread.currentThread().getId());
            if (thread != null && isClient == ofClient) {
                bytes += threads.getThreadAllocatedBytes(thread.getThreadId());
            }
        }
        return bytes;
    }
}
