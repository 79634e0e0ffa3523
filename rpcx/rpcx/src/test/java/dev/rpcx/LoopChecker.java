package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.io.LoopThread;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Checks through the whole suite that no event loop is blocked. An idle event loop waits in epoll, where Java calls its
 * thread runnable. The thread of a blocked event loop waits, sleeps, or waits for a lock. An event loop counts as
 * blocked if three looks in a row find it in the same wait, so that a lock which is handed over quickly does not count.
 * Neither does a lock whose holder wants to run but cannot, for example because it waits for a processor, or for the
 * disk from which a class is loaded. A look that comes late does not count, since the machine and the event loops stood
 * still. JUnit finds this class by itself.
 */
public final class LoopChecker implements BeforeAllCallback, AfterAllCallback {
    public static final List<String> REPORTS = new CopyOnWriteArrayList<>();

    private static final long LOOK_NANOS = 20_000_000;
    private static final int LOOKS = 3;

    private static final class Holder {
        static final Thread CHECKER = new Thread(LoopChecker::check, "loop-checker");

        static {
            CHECKER.setDaemon(true);
            CHECKER.start();
        }

        static boolean isChecking() {
            return CHECKER.isAlive();
        }
    }

    /**
     * One wait of one thread, whose counters do not move while it lasts.
     *
     * @param holderNanos processor time that whoever holds the lock had at the first look; -1 without a holder
     */
    private record Wait(long waited, long blocked, long holderNanos, int looks, boolean isTold) {}

    @Override
    public void beforeAll(ExtensionContext context) {
        assertThat(Holder.isChecking()).isTrue();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        // each report is made once, and not again after every class that comes later
        List<String> told = List.copyOf(REPORTS);
        REPORTS.removeAll(told);
        assertThat(told).as("event loops that were blocked: %s", told).isEmpty();
    }

    /** Waits for what a test has an event loop wait for. */
    @FunctionalInterface
    public interface Waiting {
        void await() throws InterruptedException;
    }

    /** Lets this event loop wait, as its test wants it to. The wait is not reported, however long it takes. */
    public static void waitOnPurpose(Waiting waiting) throws InterruptedException {
        waiting.await();
    }

    private static void check() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Map<Long, Wait> waits = new HashMap<>();
        while (true) {
            long began = System.nanoTime();
            LockSupport.parkNanos(LOOK_NANOS);
            if (System.nanoTime() - began > 2 * LOOK_NANOS) {
                // a thread that waited meanwhile may have been free to go on, and have got no processor either
                waits = Map.of();
            }
            Map<Long, Wait> now = new HashMap<>();
            for (Thread thread : loops()) {
                Thread.State state = thread.getState();
                if (state != Thread.State.WAITING
                        && state != Thread.State.TIMED_WAITING
                        && state != Thread.State.BLOCKED) {
                    continue;
                }
                ThreadInfo info = threads.getThreadInfo(thread.getId(), 30);
                if (info != null && !isIdle(info) && !isOnPurpose(info)) {
                    Wait wait = look(threads, info, waits.get(thread.getId()));
                    now.put(thread.getId(), wait);
                }
            }
            waits = now;
        }
    }

    private static Wait look(ThreadMXBean threads, ThreadInfo info, @Nullable Wait before) {
        long waited = info.getWaitedCount();
        long blocked = info.getBlockedCount();
        long holder = info.getLockOwnerId();
        if (before == null || before.waited != waited || before.blocked != blocked) {
            return new Wait(waited, blocked, holder < 0 ? -1 : threads.getThreadCpuTime(holder), 1, false);
        }
        int looks = before.looks + 1;
        boolean tells = looks >= LOOKS && !before.isTold && !isHolderHeldUp(threads, holder, before.holderNanos);
        if (tells) {
            REPORTS.add(report(info));
        }
        return new Wait(waited, blocked, before.holderNanos, looks, before.isTold || tells);
    }

    /** Returns whether the holder of a lock could run, and has got hardly any processor time since the first look. */
    private static boolean isHolderHeldUp(ThreadMXBean threads, long holder, long nanosBefore) {
        ThreadInfo info = holder < 0 ? null : threads.getThreadInfo(holder);
        return info != null
                && info.getThreadState() == Thread.State.RUNNABLE
                && threads.getThreadCpuTime(holder) - nanosBefore < LOOK_NANOS;
    }

    /** Returns whether a loop of in-process channels is idle, which has no epoll to wait in. */
    private static boolean isIdle(ThreadInfo info) {
        return Arrays.stream(info.getStackTrace())
                .limit(3)
                .anyMatch(frame -> frame.getClassName().equals("io.netty.channel.local.LocalIoHandler"));
    }

    private static boolean isOnPurpose(ThreadInfo info) {
        return Arrays.stream(info.getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(LoopChecker.class.getName())
                        && frame.getMethodName().equals("waitOnPurpose"));
    }

    /** Returns one line, since the summary of a run shows only the first line of a failure. */
    private static String report(ThreadInfo info) {
        return Arrays.stream(info.getStackTrace())
                .limit(12)
                .map(frame -> frame.getClassName() + '.' + frame.getMethodName() + ':' + frame.getLineNumber())
                .collect(Collectors.joining(
                        " < ",
                        info.getThreadName() + ' ' + info.getThreadState() + " on " + info.getLockName() + " of "
                                + info.getLockOwnerName() + ": ",
                        ""));
    }

    private static List<Thread> loops() {
        Thread[] all = new Thread[Thread.activeCount() + 64];
        int count = Thread.enumerate(all);
        return Arrays.stream(all, 0, count).filter(LoopThread.class::isInstance).toList();
    }
}
