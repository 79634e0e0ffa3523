package dev.rpcx.internal.io;

import dev.rpcx.internal.ThreadTools;
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
 * Task queue of one event loop. A task that is given to a loop near the loop's end is either run or refused; if it is
 * refused, whoever gave it gets an exception. Netty's own queue silently loses a task that comes between the loop's
 * last poll and its end. With Netty's queue, a handler that ended while its server stopped would be counted as running
 * forever.
 *
 * <p>Netty calls {@link #remove} to take back a task that it has given to a loop which takes no more tasks.
 * Thread-safe, but only one thread polls.
 */
final class LoopTasks extends AbstractQueue<Runnable> {
    /** Longest wait for the end of a loop that takes no more tasks, and only runs those that it has. */
    private static final long MAX_END_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Number of stack frames that a thread must have free to give a loop its first task. That thread then starts the
     * loop's thread. The start needs fewer frames than this number, but its frames are larger than those of
     * {@code reserveStack}.
     */
    private static final int START_FRAMES = 500;

    /**
     * A thread whose stack overflows within {@code offer} leaves this kind of queue as it was, or with the task in it.
     * Netty's usual queue would then have a reserved cell without a task, and the loop would wait for that task
     * forever.
     */
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();

    private final CountDownLatch ended = new CountDownLatch(1);

    /** Tasks that the loop has not run before its end. Guarded by {@code this}. */
    private final List<Runnable> unrunTasks = new ArrayList<>();

    private @Nullable EventExecutor loop;

    /**
     * True once the loop polls: its thread has started, so a thread that adds a task no longer has to reserve stack for
     * that start. A thread that does not see the new value yet reserves stack without need, which does no harm.
     */
    private boolean isPolled;

    /** Sets the loop to which these tasks belong. Called before the first task comes. */
    void of(EventExecutor of) {
        loop = of;
    }

    /**
     * Adds a task. The thread that adds the first task starts the loop's thread. If the stack of the adding thread
     * overflows meanwhile, Netty takes the loop for started although the loop never runs. So a thread with too little
     * stack fails before it adds the task.
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
        // the loop has ended: from here on, Netty throws away what it polls
        synchronized (this) {
            if (task != null) {
                unrunTasks.add(task);
            }
            keepUnrun();
        }
        ended.countDown();
        return null;
    }

    /**
     * Keeps the remaining tasks of a loop that does not poll any more in {@code unrunTasks}. The caller holds the lock
     * {@code this}.
     */
    private void keepUnrun() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            unrunTasks.add(task);
        }
    }

    /**
     * Takes back a task that was given to a loop which takes no more tasks, if the task came too late to be run. Waits
     * for the end of the loop, {@code MAX_END_NANOS} at the longest.
     *
     * @return true if the task will not be run; false if it has been run, or if the loop has not ended in time
     */
    @Override
    public boolean remove(Object task) {
        if (!hasEnded()) {
            return false;
        }
        synchronized (this) {
            keepUnrun();
            return unrunTasks.remove(task);
        }
    }

    /**
     * Waits until the loop has run its last task. Only then is it known whether it has run the caller's task.
     *
     * @return false if the loop has not ended within {@code MAX_END_NANOS}
     */
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
