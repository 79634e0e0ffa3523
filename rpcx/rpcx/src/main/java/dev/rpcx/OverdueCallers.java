package dev.rpcx;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Wakes the callers of one connection whose calls are long past their time. The event loop ends such calls; it cannot
 * where it is held up, or failed between a call's end and its caller's.
 *
 * <p>Callers park without a time of their own, as a timer for each call took 6 % of its processor time. While any of
 * them waits, a thread that is no event loop's looks at all of them once a second. It is one daemon thread for all
 * clients of the process, and ends when nobody waits.
 */
final class OverdueCallers implements Runnable {
    private static final long LOOK_MILLIS = 1_000;
    private static final long IDLE_SECONDS = 10;
    private static final ScheduledThreadPoolExecutor TIMER = timer();
    private static final VarHandle LOOKING;

    static {
        try {
            LOOKING = MethodHandles.lookup().findVarHandle(OverdueCallers.class, "looking", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final ClientConnection connection;

    /** A look is due. It is cleared before the last look at who waits, and callers read it after they have a slot. */
    private volatile boolean looking;

    OverdueCallers(ClientConnection connection) {
        this.connection = connection;
    }

    private static ScheduledThreadPoolExecutor timer() {
        ScheduledThreadPoolExecutor made =
                new ScheduledThreadPoolExecutor(1, task -> OwnThreads.platform(task, "rpcx-overdue", null));
        made.setKeepAliveTime(IDLE_SECONDS, TimeUnit.SECONDS);
        made.allowCoreThreadTimeOut(true);
        return made;
    }

    /**
     * A caller that has a slot is about to park.
     *
     * @return whether it is looked after; otherwise it has to wake by itself
     */
    boolean lookAfterCallers() {
        return looking || !LOOKING.compareAndSet(this, false, true) || lookLater();
    }

    private boolean lookLater() {
        boolean isDue = false;
        try {
            TIMER.schedule(this, LOOK_MILLIS, TimeUnit.MILLISECONDS);
            isDue = true;
        } catch (OutOfMemoryError none) {
            // no memory, or no thread: whoever asked goes on by itself
        } finally {
            if (!isDue) {
                looking = false;
                // others may have seen that somebody looks, and wait without a time of their own
                connection.slots.wakeCallers();
            }
        }
        return isDue;
    }

    @Override
    public void run() {
        boolean isDue = false;
        try {
            long latest = connection.nanoTime() - ClientCall.MARGIN_NANOS;
            if (!connection.slots.wakeOverdue(latest)) {
                looking = false;
                // whoever has taken a slot since either sees that or is seen here
                if (!connection.slots.wakeOverdue(latest) || !LOOKING.compareAndSet(this, false, true)) {
                    isDue = true;
                    return;
                }
            }
            isDue = lookLater();
        } finally {
            if (!isDue) {
                // nobody looks after those who wait: from here on they do it themselves
                looking = false;
                connection.slots.wakeCallers();
            }
        }
    }
}
