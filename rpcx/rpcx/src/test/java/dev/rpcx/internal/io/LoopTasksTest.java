package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoop;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that a task that is given to an event loop at its end is run or refused. */
@Timeout(120)
class LoopTasksTest {
    private static final int LOOPS = 200;
    private static final int GIVERS = 3;
    private static final int MAX_WAITING = 1_000;

    /**
     * Each thread gives tasks until one is refused, as handlers do that end while their server stops. Threads that are
     * faster than the loop wait for it. The loop ends when it has run all its tasks, so without this wait it might
     * never end.
     */
    @Test
    void aTaskThatComesAtTheEndOfALoopIsRunOrRefused() throws Exception {
        for (int i = 0; i < LOOPS; i++) {
            Loops loops = new Loops(1, "ending", true);
            EventLoop loop = loops.group.next();
            AtomicLong taken = new AtomicLong();
            AtomicLong run = new AtomicLong();
            List<Thread> givers = new ArrayList<>();
            for (int j = 0; j < GIVERS; j++) {
                Thread giver = new Thread(() -> {
                    try {
                        while (true) {
                            loop.execute(run::incrementAndGet);
                            taken.incrementAndGet();
                            while (taken.get() - run.get() > MAX_WAITING && !loop.isTerminated()) {
                                Thread.onSpinWait();
                            }
                        }
                    } catch (RejectedExecutionException ended) {
                        // the test waits for this exception
                    }
                });
                givers.add(giver);
                giver.start();
            }
            await().pollInterval(1, TimeUnit.MILLISECONDS).until(() -> run.get() > 0);
            loops.close(Long.MAX_VALUE);
            for (Thread giver : givers) {
                giver.join();
            }
            assertThat(run).as("loop " + i).hasValue(taken.get());
        }
    }

    /** The publisher of a stream does the same on the loop: each of its tasks gives the next one. */
    @Test
    void aTaskThatGivesItselfAgainAndAgainLeavesTimeToSockets() throws Exception {
        Loops loops = new Loops(1, "busy", false);
        try {
            EventLoop loop = loops.group.next();
            AtomicLong accepted = new AtomicLong();
            ChannelFuture bound = loops.bind(
                    loops.server().childHandler(new ChannelInitializer<>() {
                        @Override
                        protected void initChannel(Channel channel) {
                            accepted.incrementAndGet();
                        }
                    }),
                    "127.0.0.1",
                    0);
            CompletableFuture<Long> burnt = new CompletableFuture<>();
            CountDownLatch began = new CountDownLatch(1);
            AtomicBoolean isConnected = new AtomicBoolean();
            loop.execute(new Runnable() {
                private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
                private long beganNanos;

                @Override
                public void run() {
                    began.countDown();
                    long now = threads.getCurrentThreadCpuTime();
                    if (!isConnected.get()) {
                        // there is nothing to accept before that
                        beganNanos = now;
                    }
                    long nanos = now - beganNanos;
                    if (accepted.get() > 0 || nanos > TimeUnit.SECONDS.toNanos(20)) {
                        burnt.complete(nanos);
                    } else {
                        loop.execute(this);
                    }
                }
            });
            began.await();
            try (Socket socket =
                    new Socket("127.0.0.1", loops.port(bound.channel().localAddress()))) {
                isConnected.set(true);
                assertThat(socket.isConnected()).isTrue();
                // by its own default, Netty would run tasks for a second
                assertThat(burnt.get(60, TimeUnit.SECONDS)).isLessThan(TimeUnit.MILLISECONDS.toNanos(100));
            }
        } finally {
            loops.close(Long.MAX_VALUE);
        }
    }

    /** Gives one task at the end of the stack, and others in each frame on the way back. */
    private static void giveUp(EventLoop loop, int[] left) {
        try {
            giveUp(loop, left);
        } catch (StackOverflowError end) {
            // the frame above this one has somewhat more room
        }
        if (left[0]-- > 0) {
            loop.execute(() -> {});
        }
    }

    @Test
    void aThreadWhoseStackEndsAsItGivesATaskDoesNotEndTheLoop() throws Exception {
        Loops loops = new Loops(1, "given", true);
        try {
            EventLoop loop = loops.group.next();
            for (int round = 0; round < 300; round++) {
                Runnable give = () -> {
                    try {
                        giveUp(loop, new int[] {60});
                    } catch (StackOverflowError end) {
                        // the test needs the stack to overflow
                    }
                };
                Thread thread = new Thread(null, give, "deep", 200_000 + round * 977 % 8_192);
                thread.start();
                thread.join();
                assertThat(loop.submit(() -> "alive").get(20, TimeUnit.SECONDS)).isEqualTo("alive");
            }
        } finally {
            loops.close(Long.MAX_VALUE);
        }
    }
}
