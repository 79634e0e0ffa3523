package dev.rpcx.internal.client;

import dev.rpcx.internal.io.ThreadFactories;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Wakes the callers of one connection whose calls are long past their deadlines. Normally the event loop ends such
 * calls, but the event loop can be held up, or can fail before it tells the caller.
 *
 * <p>A timer for each call would take 6 % of the call's processor time, so callers park without a timeout. One daemon
 * thread for all clients of the process checks the waiting callers once a second. The thread ends when it has had no
 * check to make for 10 s.
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
     * Whether a check of the waiting callers is scheduled or running. A caller first takes a slot, and then reads this
     * field. The last check, on the thread rpcx-overdue, first clears this field, and then looks at the slots once
     * more. So either the caller sees that no check is scheduled, or the check sees the caller. Otherwise the caller
     * could park without a timeout while no check is scheduled.
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
     * Schedules a check of the waiting callers, unless a check is already scheduled or running. A caller that has a
     * slot calls this method before it parks.
     *
     * @return false if the check could not be scheduled; the caller then has to park with a timeout
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
            // No memory or no thread is left, so no check is scheduled, and this method returns false. Callers then
            // park with a timeout.
        } finally {
            if (!isDue) {
                looking = false;
                // Other callers can have parked without a timeout, because they saw that the field "looking" was true.
                // They are woken, so that each of them tries to schedule a check. If a caller cannot schedule one, it
                // parks with a timeout.
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
                // A caller can have taken a slot since the check above. Either that caller sees that "looking" is now
                // false, or the search in the next line finds the caller.
                if (!connection.slots.wakeOverdue(latest) || !LOOKING.compareAndSet(this, false, true)) {
                    isDue = true;
                    return;
                }
            }
            isDue = lookLater();
        } finally {
            if (!isDue) {
                // No check is scheduled any more, so the callers are woken. Before a woken caller parks again, it tries
                // to schedule a check. If that fails, the caller parks with a timeout.
                looking = false;
                connection.slots.wakeCallers();
            }
        }
    }
}
