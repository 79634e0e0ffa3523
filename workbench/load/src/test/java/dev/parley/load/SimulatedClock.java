package dev.parley.load;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;

/**
 * Time that goes on to the next thing that happens as soon as every thread that ever waited for it waits again, or waits for something else:
 * hours pass in seconds, and a reply comes at the very nanosecond at which it should.
 */
final class SimulatedClock implements Clock {
    private record Happening(long atNs, long order, Runnable what) {}

    private final PriorityQueue<Happening> happenings =
            new PriorityQueue<>(Comparator.comparingLong(Happening::atNs).thenComparingLong(Happening::order));
    /** In the order in which they began to wait: of two that wait for the same moment the first goes on first. */
    private final Map<Thread, Long> waiting = new LinkedHashMap<>();

    /** The thread that makes the clock is its engine's: time waits for it from the beginning. */
    private final List<Thread> known = new ArrayList<>(List.of(Thread.currentThread()));

    /** Names of the threads that drivers start. */
    private static final Pattern OF_DRIVERS = Pattern.compile("pacer|burst|round|(client|round)-[0-9]+");

    private final Thread[] there = new Thread[1024];

    private long order;
    private volatile long nowNs = 1;

    @Override
    public long nowNs() {
        return nowNs;
    }

    /** Runs {@code what} at that moment, on whichever thread finds it to be there. */
    synchronized void at(long atNs, Runnable what) {
        happenings.add(new Happening(Math.max(atNs, nowNs), order++, what));
    }

    @Override
    public synchronized void awaitNs(long dueNs) throws InterruptedException {
        Thread me = Thread.currentThread();
        if (!known.contains(me)) {
            known.add(me);
        }
        if (dueNs <= nowNs) {
            return;
        }
        waiting.put(me, dueNs);
        try {
            while (waiting.containsKey(me)) {
                if (isQuiet()) {
                    goOn();
                } else {
                    wait(1);
                }
            }
        } finally {
            waiting.remove(me);
        }
    }

    @Override
    public void restNs(long dueNs) throws InterruptedException {
        awaitNs(dueNs);
    }

    private boolean isQuiet() {
        for (int i = known.size() - 1; i >= 0; i--) {
            Thread thread = known.get(i);
            if (!waiting.containsKey(thread)) {
                Thread.State state = thread.getState();
                if (state == Thread.State.TERMINATED) {
                    known.remove(i);
                } else if (state != Thread.State.WAITING || isLetGo(thread)) {
                    return false;
                }
            }
        }
        return !isOneOnItsWay();
    }

    /** What it waited for has come, and the machine has not let it run yet: {@link AbstractQueuedSynchronizer#toString} tells a latch's count. */
    private static boolean isLetGo(Thread thread) {
        return LockSupport.getBlocker(thread) instanceof AbstractQueuedSynchronizer latch
                && latch.toString().contains("State = 0");
    }

    /** A driver's thread that has begun and has not waited yet: time must not go on without it. */
    private boolean isOneOnItsWay() {
        int count = Thread.currentThread().getThreadGroup().enumerate(there);
        for (int i = 0; i < count; i++) {
            Thread thread = there[i];
            if (OF_DRIVERS.matcher(thread.getName()).matches()
                    && !known.contains(thread)
                    && (thread.getState() == Thread.State.RUNNABLE
                            || thread.getState() == Thread.State.BLOCKED
                            || isLetGo(thread))) {
                return true;
            }
        }
        return false;
    }

    private void goOn() {
        Map.Entry<Thread, Long> first = waiting.entrySet().iterator().next();
        for (Map.Entry<Thread, Long> one : waiting.entrySet()) {
            first = one.getValue() < first.getValue() ? one : first;
        }
        Happening next = happenings.peek();
        if (next != null && next.atNs() <= first.getValue()) {
            happenings.remove();
            nowNs = next.atNs();
            next.what().run();
        } else {
            nowNs = Math.max(nowNs, first.getValue());
            waiting.remove(first.getKey());
            notifyAll();
        }
    }
}
