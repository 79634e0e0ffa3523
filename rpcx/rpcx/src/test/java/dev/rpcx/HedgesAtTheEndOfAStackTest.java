package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests hedged calls that fail at once, made where the caller's stack is nearly used up. Each future that a caller gets
 * has to end. The code that ends it could run out of stack there, and nobody would see that, since a future swallows
 * what its dependents throw.
 */
@Timeout(120)
class HedgesAtTheEndOfAStackTest {
    private static final int ROUNDS = 40;
    private static final int FRAMES = 80;

    @RPCXClient(remoteServerName = "nobody")
    interface Nobody {
        @Method(idempotent = true, timeoutMillis = 1_000, hedgeMillis = 20)
        CompletableFuture<Integer> hedged(int number);
    }

    private static int shifted(int frames, long one, long two, Runnable then) {
        if (frames == 0) {
            then.run();
            return 0;
        }
        return shifted(frames - 1, one + 1, two, then) + 1;
    }

    /** Makes a call at the end of the stack, and one more at each frame on the way back. */
    private static void callUp(Runnable call, int[] left) {
        try {
            callUp(call, left);
        } catch (StackOverflowError end) {
            // the frame above has somewhat more stack
        }
        if (left[0]-- > 0) {
            call.run();
        }
    }

    @Test
    void eachFutureThatACallerHasEnds() throws Exception {
        Queue<CompletableFuture<Integer>> made = new ConcurrentLinkedQueue<>();
        try (Client client = Client.builder()
                .circuitBreaker(0.5)
                .connectTimeout(Duration.ofMillis(200))
                .build()) {
            Nobody nobody = client.create(Nobody.class, "127.0.0.1", 1);
            await().until(() -> isRefusedByTheCircuit(nobody));
            for (int i = 0; i < ROUNDS; i++) {
                int round = i;
                Thread thread = new Thread(
                        null,
                        () -> shifted(round, 1, 2, () -> callUp(() -> made.add(nobody.hedged(1)), new int[] {FRAMES})),
                        "deep",
                        220_000 + round * 977 % 4_096);
                thread.start();
                thread.join();
            }
            assertThat(made).hasSizeGreaterThan(ROUNDS);
            await().atMost(Duration.ofSeconds(10))
                    .untilAsserted(() -> assertThat(open(made)).isEmpty());
        }
    }

    private static boolean isRefusedByTheCircuit(Nobody nobody) throws Exception {
        try {
            nobody.hedged(1).get(5, TimeUnit.SECONDS);
            return false;
        } catch (ExecutionException e) {
            return e.getCause().getMessage().contains("circuit");
        }
    }

    private static List<CompletableFuture<Integer>> open(Queue<CompletableFuture<Integer>> made) {
        return made.stream().filter(future -> !future.isDone()).toList();
    }
}
