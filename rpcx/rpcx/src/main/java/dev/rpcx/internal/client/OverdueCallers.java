package dev.rpcx.internal.client;

import dev.rpcx.internal.io.ThreadFactories;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Wakes the callers of one connection whose calls are long past their deadlines. Normally the event loop ends such
 * calls, but it may be held up, or may have failed before it told the caller.
 *
 * <p>Callers park without a timeout, since a timer for each call took 6 % of the call's processor time. While any
 * caller waits, one daemon thread for all clients of the process checks all of them once a second. The thread ends when
 * nobody has waited for 10 s.
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

    /**
     * Whether a check of the waiting callers is scheduled. Cleared before the last check, and read by callers after
     * they have taken a slot. So either a caller sees that the field is cleared, or the last check sees the caller.
     */
    private volatile boolean looking;

    OverdueCallers(ClientConnection connection) {
        this.connection = connection;
    }

    private static ScheduledThreadPoolExecutor timer() {
        ScheduledThreadPoolExecutor made =
                new ScheduledThreadPoolExecutor(1, task -> ThreadFactories.platform(task, "rpcx-overdue", null));
        made.setKeepAliveTime(IDLE_SECONDS, TimeUnit.SECONDS);
        made.allowCoreThreadTimeOut(true);
        return made;
    }

    /**
     * Makes sure that a check of the waiting callers is scheduled. Called by a caller that has a slot and is about to
     * park.
     *
     * @return false if no check is scheduled: the caller has to park with a timeout
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
            // No memory or no thread is left. The caller parks with a timeout.
        } finally {
            if (!isDue) {
                looking = false;
                // Other callers may have seen the field set, and may have parked without a timeout.
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
                // A caller that has taken a slot since the check above sees this store, or the check below sees that
                // caller.
                if (!connection.slots.wakeOverdue(latest) || !LOOKING.compareAndSet(this, false, true)) {
                    isDue = true;
                    return;
                }
            }
            isDue = lookLater();
        } finally {
            if (!isDue) {
                // No check is scheduled. A woken caller schedules one before it parks again, or parks with a timeout.
                looking = false;
                connection.slots.wakeCallers();
            }
        }
    }
}
