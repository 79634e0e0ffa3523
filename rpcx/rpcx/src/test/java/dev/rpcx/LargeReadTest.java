package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that a request that takes long to read delays no small call, on a server whose virtual threads share one
 * processor.
 */
@Timeout(60)
class LargeReadTest {
    private static final int ELEMENTS = 300_000;

    /** The reading of a request waits at this element until a small call has come. */
    private static final int WAITS_AT = ELEMENTS / 10;

    /** Runs a server in a process of its own. */
    static final class Process {
        static volatile boolean begun;
        static volatile boolean queued;
        static final AtomicInteger READ = new AtomicInteger();

        /** Only the making of such an element shows a test that a request is being read. */
        record Watched(int number) {
            Watched {
                if (number == WAITS_AT) {
                    begun = true;
                    while (!queued) {
                        Thread.onSpinWait();
                    }
                }
                if (number == ELEMENTS) {
                    READ.incrementAndGet();
                }
            }
        }

        @RPCXServer("reads")
        static final class Service {
            @Method
            int large(List<Watched> all) {
                return all.size();
            }

            /** Returns how many large requests have been read. */
            @Method
            String read() {
                return READ + " read";
            }

            @Method
            @RunOn(RunOn.Place.EVENT_LOOP)
            boolean hasBegun() {
                return begun;
            }

            /** This call comes after a small call, which has been handed to its virtual thread by then. */
            @Method
            @RunOn(RunOn.Place.EVENT_LOOP)
            void isQueued() {
                queued = true;
            }
        }

        public static void main(String[] args) throws Exception {
            Server server = Server.builder(RegistryServer.registry(new Service()))
                    .host("127.0.0.1")
                    .build()
                    .start();
            System.out.println(server.port());
            JvmProcess.answer(line -> line);
        }
    }

    record Number(int number) {}

    @RPCXClient(remoteServerName = "reads")
    interface Calls {
        CompletableFuture<Integer> large(List<Number> all);

        CompletableFuture<String> read();

        boolean hasBegun();

        void isQueued();
    }

    @Test
    void aSmallCallNeedNotWaitUntilALargeRequestHasBeenRead() throws Exception {
        assumeTrue(Runtime.version().feature() >= 21, "virtual threads");
        try (JvmProcess server = JvmProcess.start(
                        List.of(
                                "-XX:TieredStopAtLevel=1",
                                "-Xmx256m",
                                "-Djdk.virtualThreadScheduler.parallelism=1",
                                "-Djdk.virtualThreadScheduler.maxPoolSize=1"),
                        Process.class);
                Client client = Client.standard()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            assertThat(calls.read().get(20, TimeUnit.SECONDS)).isEqualTo("0 read");
            List<Number> all =
                    IntStream.rangeClosed(1, ELEMENTS).mapToObj(Number::new).toList();
            CompletableFuture<Integer> large = calls.large(all);
            await().until(calls::hasBegun);
            CompletableFuture<String> small = calls.read();
            calls.isQueued();
            assertThat(small.get(20, TimeUnit.SECONDS)).isEqualTo("0 read");
            assertThat(large.get(20, TimeUnit.SECONDS)).isEqualTo(ELEMENTS);
        }
    }
}
