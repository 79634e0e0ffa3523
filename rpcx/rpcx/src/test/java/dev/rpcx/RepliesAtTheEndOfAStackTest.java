package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests replies that are given on threads whose stack is nearly used up. Their calls end nevertheless, and nothing is
 * left of them.
 */
@Timeout(120)
class RepliesAtTheEndOfAStackTest {
    private static final int CALLS = 400;
    private static final int FRAMES = 60;

    @RPCXServer("lost")
    static final class Service {
        final Queue<CompletableFuture<String>> given = new ConcurrentLinkedQueue<>();
        final Queue<CompletableFuture<String>> all = new ConcurrentLinkedQueue<>();

        @Method
        CompletableFuture<String> later(String text) {
            CompletableFuture<String> reply = new CompletableFuture<>();
            all.add(reply);
            given.add(reply);
            return reply;
        }

        @Method
        String echo(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "lost")
    interface ServiceClient {
        CompletableFuture<String> later(String text);

        String echo(String text);
    }

    /** Completes one reply at the end of the stack, and others at each frame on the way back. */
    private static void completeUp(Queue<CompletableFuture<String>> replies, int[] left) {
        try {
            completeUp(replies, left);
        } catch (StackOverflowError end) {
            // the frame above has a little more of the stack
        }
        if (left[0]-- > 0) {
            CompletableFuture<String> reply = replies.poll();
            if (reply != null) {
                reply.complete("x");
            }
        }
    }

    private static int shifted(int frames, Runnable then) {
        if (frames > 0) {
            return shifted(frames - 1, then) + 1;
        }
        try {
            then.run();
        } catch (StackOverflowError end) {
            // the test is about this error
        }
        return 0;
    }

    private static void completeAtTheEndOfAStack(Queue<CompletableFuture<String>> replies, int round)
            throws InterruptedException {
        Thread thread = new Thread(
                null,
                () -> shifted(round, () -> completeUp(replies, new int[] {FRAMES})),
                "deep",
                220_000 + round * 977 % 4_096);
        thread.start();
        thread.join();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void nothingStaysOfCallsWhoseRepliesAreGivenAtTheEndOfAStack(boolean isClassic) throws Exception {
        Service service = new Service();
        try (Server server = Server.builder(RegistryServer.registry(service))
                .classic(isClassic)
                .build()
                .start()) {
            Client.Builder builder = Client.builder().callTimeout(Duration.ofSeconds(1));
            List<CompletableFuture<String>> replies = new ArrayList<>();
            try (Client client = (isClassic ? builder.classic() : builder).build()) {
                ServiceClient lost = client.create(ServiceClient.class, "127.0.0.1", server.port());
                // the time of some calls may be over before their handlers have begun
                Again.upToFiveTimes(200, () -> {
                    long inFlight =
                            replies.stream().filter(reply -> !reply.isDone()).count();
                    for (long i = inFlight; i < CALLS; i++) {
                        replies.add(lost.later("x"));
                    }
                    await().pollDelay(Duration.ZERO)
                            .until(() -> service.given.size() >= CALLS
                                    || replies.stream().allMatch(CompletableFuture::isDone));
                    assertThat(service.given).hasSizeGreaterThanOrEqualTo(CALLS);
                });
                int round = 0;
                while (!service.given.isEmpty()) {
                    completeAtTheEndOfAStack(service.given, round++);
                }
                Again.upToFiveTimes(200, () -> assertThat(lost.echo("alive")).isEqualTo("alive"));
                // a stack may have ended before its thread had completed the reply that it had taken
                service.all.forEach(reply -> reply.complete("late"));
                await().until(() -> replies.stream().allMatch(CompletableFuture::isDone));
            }
            await().untilAsserted(() -> assertThat(server.core().running()).isZero());
            // on a slow machine a call may have been given up before. Its charge stays until nobody reaches its future,
            // since the thread that completed the future had no stack left to report that
            service.all.clear();
            replies.clear();
            await().atMost(Duration.ofSeconds(30)).untilAsserted(() -> {
                System.gc();
                assertThat(server.core().ledger().audit()).isEmpty();
            });
        }
    }
}
