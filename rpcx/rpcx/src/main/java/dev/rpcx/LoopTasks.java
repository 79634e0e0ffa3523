package dev.rpcx;

import io.netty.util.concurrent.EventExecutor;
import java.util.AbstractQueue;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The tasks of one event loop. A task that is given to a loop at its end is run, or whoever gave it is told that it was
 * refused. Netty's own queue loses a task that comes between the loop's last look and its end, and tells nobody: a
 * handler that ended while its server stopped was then counted for ever.
 *
 * <p>Netty asks for a task back by {@link #remove} when it has given one to a loop that takes no more. Thread-safe, with
 * one thread that polls.
 */
final class LoopTasks extends AbstractQueue<Runnable> {
    /** A loop that takes no more tasks is about to end: it runs those that it has. */
    private static final long MAX_END_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Whoever gives a loop its first task starts its thread, which takes fewer frames, though larger ones. */
    private static final int START_FRAMES = 500;

    /**
     * A thread whose stack ends within {@code offer} leaves this queue as it was, or with its task in it. Netty's usual
     * one would have a place without a task then, and the loop would wait for that task for ever.
     */
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();

    private final CountDownLatch ended = new CountDownLatch(1);

    /** What the loop has left. Guarded by this. */
    private final List<Runnable> left = new ArrayList<>();

    private @Nullable EventExecutor loop;

    /** The loop runs. Whoever does not see it yet takes care in vain. */
    private boolean isPolled;

    /** Before the first task comes. */
    void of(EventExecutor of) {
        loop = of;
    }

    /**
     * Where the stack of whoever gives a loop its first task ends while it starts the loop's thread, Netty takes the
     * loop for started, and it never is. So such a thread does not come to it.
     */
    @Override
    public boolean offer(Runnable task) {
        if (!isPolled) {
            ThreadTools.reserveStack(START_FRAMES);
        }
        return tasks.offer(task);
    }

    @Override
    public @Nullable Runnable poll() {
        if (!isPolled) {
            isPolled = true;
        }
        Runnable task = tasks.poll();
        EventExecutor of = loop;
        if (of == null || !of.isTerminated()) {
            return task;
        }
        // what is polled from here on is thrown away
        synchronized (this) {
            if (task != null) {
                left.add(task);
            }
            keepLeft();
        }
        ended.countDown();
        return null;
    }

    /** The loop polls no more. Under the lock. */
    private void keepLeft() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            left.add(task);
        }
    }

    /**
     * The loop takes no more tasks, and this one may have come too late.
     *
     * @return true if it has, and will not be run
     */
    @Override
    public boolean remove(Object task) {
        if (!hasEnded()) {
            return false;
        }
        synchronized (this) {
            keepLeft();
            return left.remove(task);
        }
    }

    /** Waits until the loop has run its last task, which says whether it has run that of the caller. */
    private boolean hasEnded() {
        boolean isInterrupted = false;
        boolean hasEnded = false;
        long begin = System.nanoTime();
        long leftNanos = MAX_END_NANOS;
        while (!hasEnded && leftNanos > 0) {
            try {
                hasEnded = ended.await(leftNanos, TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                isInterrupted = true;
            }
            leftNanos = MAX_END_NANOS - (System.nanoTime() - begin);
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
        return hasEnded;
    }

    @Override
    public @Nullable Runnable peek() {
        return tasks.peek();
    }

    @Override
    public boolean isEmpty() {
        return tasks.isEmpty();
    }

    @Override
    public int size() {
        return tasks.size();
    }

    @Override
    public Iterator<Runnable> iterator() {
        throw new UnsupportedOperationException("the tasks of a loop");
    }
}
