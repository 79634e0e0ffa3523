package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Through the whole suite: no event loop was blocked. An idle loop stands in epoll, which to Java is a running thread; one that waits, sleeps
 * or stands at a lock is not. Who is found so in one and the same wait at three looks in a row has blocked its loop; a lock that is
 * handed over at once has not. Found by JUnit itself.
 */
public final class LoopWatch implements BeforeAllCallback, AfterAllCallback {
    static final List<String> REPORTS = new CopyOnWriteArrayList<>();

    private static final long LOOK_NANOS = 20_000_000;
    private static final int LOOKS = 3;

    private static final class Holder {
        static final Thread WATCH = new Thread(LoopWatch::watch, "loop-watch");

        static {
            WATCH.setDaemon(true);
            WATCH.start();
        }

        static boolean isWatching() {
            return WATCH.isAlive();
        }
    }

    /** One wait of one thread: its counters do not move while it lasts. */
    private record Wait(long waited, long blocked, int looks) {}

    @Override
    public void beforeAll(ExtensionContext context) {
        assertThat(Holder.isWatching()).isTrue();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        // told once, and not by every class that comes later
        List<String> told = List.copyOf(REPORTS);
        REPORTS.removeAll(told);
        assertThat(told).as("event loops that were blocked").isEmpty();
    }

    private static void watch() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Map<Long, Wait> waits = new HashMap<>();
        while (true) {
            LockSupport.parkNanos(LOOK_NANOS);
            Map<Long, Wait> now = new HashMap<>();
            for (Thread thread : loops()) {
                Thread.State state = thread.getState();
                if (state != Thread.State.WAITING
                        && state != Thread.State.TIMED_WAITING
                        && state != Thread.State.BLOCKED) {
                    continue;
                }
                ThreadInfo info = threads.getThreadInfo(thread.getId(), 30);
                if (info != null && !isIdle(info)) {
                    Wait before = waits.get(thread.getId());
                    boolean same = before != null
                            && before.waited == info.getWaitedCount()
                            && before.blocked == info.getBlockedCount();
                    Wait wait = new Wait(info.getWaitedCount(), info.getBlockedCount(), same ? before.looks + 1 : 1);
                    now.put(thread.getId(), wait);
                    if (wait.looks == LOOKS) {
                        REPORTS.add(info.toString());
                    }
                }
            }
            waits = now;
        }
    }

    /** The loops of in-process channels have no epoll to stand in. */
    private static boolean isIdle(ThreadInfo info) {
        return Arrays.stream(info.getStackTrace())
                .limit(3)
                .anyMatch(frame -> frame.getClassName().equals("io.netty.channel.local.LocalIoHandler"));
    }

    private static List<Thread> loops() {
        Thread[] all = new Thread[Thread.activeCount() + 64];
        int count = Thread.enumerate(all);
        return Arrays.stream(all, 0, count).filter(LoopThread.class::isInstance).toList();
    }
}
