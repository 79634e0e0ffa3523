package dev.rpcx.internal.io;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Event loops that the clients of a process share, except clients with event loops of their own. The loops are created
 * for the first borrower, which is a client or a {@code DnsWatch}. After the last borrower has given the loops back,
 * they are kept for 1 s, so that a borrower that comes soon can use them. Thread-safe.
 */
public final class SharedLoops {
    /** Event loops for clients that use sockets, and for {@code DnsWatch}, which asks name servers. */
    public static final SharedLoops SOCKETS = new SharedLoops(false);

    /** Event loops for clients that call servers within the same process. */
    public static final SharedLoops IN_PROCESS = new SharedLoops(true);

    private static final int MAX_LOOPS = 4;

    /** Time for which unused event loops are kept: 1 s. Source: grpc-java's shared event loops. */
    private static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final boolean inProcess;

    // the fields from here on are guarded by this object's lock
    private @Nullable Loops held;
    private int users;
    private long unusedSinceNanos;

    /**
     * True while a task is scheduled that will end the event loops in {@link #held}. The task ends the loops only if
     * they have been unused for at least 1 s when the task runs. If the loops have been unused for less time, the task
     * is scheduled again.
     */
    private boolean isEndPlanned;

    public SharedLoops(boolean inProcess) {
        this.inProcess = inProcess;
    }

    public synchronized Loops borrow() {
        Loops loops = held;
        if (loops == null) {
            loops = new Loops(Math.min(MAX_LOOPS, Runtime.getRuntime().availableProcessors()), Loops.CLIENT, inProcess);
            held = loops;
        }
        users++;
        return loops;
    }

    /**
     * Gives the borrowed event loops back. Each borrower calls this method once, after the borrower's connections on
     * these loops have ended or have been instructed to end.
     */
    public synchronized void giveBack() {
        users--;
        unusedSinceNanos = System.nanoTime();
        Loops loops = held;
        if (users == 0 && !isEndPlanned && loops != null) {
            endLater(loops, LINGER_NANOS);
        }
    }

    /** Returns the number of borrowers that have not given the event loops back. */
    public synchronized int users() {
        return users;
    }

    private void endLater(Loops loops, long nanos) {
        isEndPlanned = false;
        loops.group.schedule(() -> endUnused(loops), nanos, TimeUnit.NANOSECONDS);
        // set last: if schedule throws, a later giveBack tries again
        isEndPlanned = true;
    }

    private synchronized void endUnused(Loops loops) {
        if (users > 0) {
            isEndPlanned = false;
            return;
        }
        long left = LINGER_NANOS - (System.nanoTime() - unusedSinceNanos);
        if (left > 0) {
            endLater(loops, left);
            return;
        }
        isEndPlanned = false;
        held = null;
        loops.end();
    }
}
