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
 * Queue of the tasks of one event loop. When the loop ends, each task has either run or been refused with an exception
 * to the caller, unless the end takes longer than {@code MAX_END_NANOS}. Netty's own queue can lose tasks, and a
 * handler whose task is lost could count as running forever.
 *
 * <p>Netty calls {@link #remove} after adding a task to a loop that takes no more tasks. Thread-safe, but only one
 * thread polls.
 */
final class LoopTasks extends AbstractQueue<Runnable> {
    /** Longest time that {@link #remove} waits for the end of the event loop: 1 s. */
    private static final long MAX_END_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Number of frames of {@link ThreadTools#reserveStack} that must fit on a thread's stack when the thread adds a
     * task while {@link #isPolled} is false. Such a task may start the loop's thread. The start itself has fewer
     * frames, but larger ones.
     */
    private static final int START_FRAMES = 500;

    /**
     * Tasks that have not run yet. This queue stays consistent if the stack of a thread overflows within {@code offer}.
     * Netty's usual queue could get a cell without a task, and the event loop would wait for that task forever.
     */
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();

    /**
     * Latch that the event loop's thread opens when {@link #unrunTasks} holds the tasks that the loop has not run. A
     * thread that has added a task too late waits for the latch, and then looks for the task in {@code unrunTasks}. If
     * the latch were opened earlier, the thread could miss the task, and conclude that the task has run. Tested by
     * {@code LoopTasksTest.aTaskThatComesAtTheEndOfALoopIsRunOrRefused}.
     */
    private final CountDownLatch ended = new CountDownLatch(1);

    /** Tasks that had not run when the event loop ended. Guarded by {@code this}. */
    private final List<Runnable> unrunTasks = new ArrayList<>();

    private @Nullable EventExecutor loop;

    /**
     * True if the event loop's thread has started, and has polled this queue. {@link #offer} reserves stack while the
     * field is false. The field is not volatile, since a thread that reads an old value only reserves stack without
     * need.
     */
    private boolean isPolled;

    /** Sets the event loop that runs the tasks of this queue. Called before the first task is added. */
    void of(EventExecutor of) {
        loop = of;
    }

    /**
     * Adds a task to this queue. The first task starts the event loop's thread. If the stack overflowed during the
     * start, Netty would believe that the loop is running. So a thread with too little stack gets an error here, before
     * the task is added.
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
        // the loop has ended: from here on, Netty throws away the tasks that this method returns
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
     * Moves all tasks that the event loop will not run to {@code unrunTasks}. Called with the lock on {@code this},
     * after the loop has ended.
     */
    private void keepUnrun() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            unrunTasks.add(task);
        }
    }

    /**
     * Waits for the end of the event loop, at most {@code MAX_END_NANOS}. Then removes a task that was added too late
     * for the loop to run it.
     *
     * @return true if the task will not run; false if the task has run, or if the loop has not ended in time
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
     * Waits until the event loop has run its last task, at most {@code MAX_END_NANOS}.
     *
     * @return false if the loop has not ended within this time
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
