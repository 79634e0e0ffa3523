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
 * Task queue of one event loop. Unlike Netty's own queue, it loses no task when the loop ends: a task is either run, or
 * refused with an exception to the caller. Otherwise a handler that ends while its server stops could count as running
 * forever.
 *
 * <p>Netty calls {@link #remove} after it has added a task to the queue of a loop that takes no more tasks.
 * Thread-safe, but only one thread polls.
 */
final class LoopTasks extends AbstractQueue<Runnable> {
    /** Longest wait of {@code remove} for the end of the loop: 1 s. */
    private static final long MAX_END_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Number of stack frames that a thread must have free to add a task before the loop's thread has started, since the
     * first task starts that thread. The start takes fewer but larger frames than {@code reserveStack}.
     */
    private static final int START_FRAMES = 500;

    /**
     * Stays consistent if the stack of a thread overflows within {@code offer}. Netty's usual queue could then have a
     * reserved cell without a task, and the loop would wait for that task forever.
     */
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();

    private final CountDownLatch ended = new CountDownLatch(1);

    /** Tasks that the loop has not run before its end. Guarded by {@code this}. */
    private final List<Runnable> unrunTasks = new ArrayList<>();

    private @Nullable EventExecutor loop;

    /**
     * True once the loop's thread has started. A thread that does not see the new value reserves stack without need.
     */
    private boolean isPolled;

    /** Sets the loop to which these tasks belong. Called before the first task comes. */
    void of(EventExecutor of) {
        loop = of;
    }

    /**
     * Adds a task. The first task starts the loop's thread. If the stack overflows during the start, Netty believes
     * that the loop runs. So a thread with too little stack fails here, before it adds the task.
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
     * Removes a task that came too late to be run. Waits for the end of the loop, at most {@code MAX_END_NANOS}.
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
     * Waits until the loop has run its last task.
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
