package dev.rpcx.internal.io;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Event loops that clients share. The loops are created for the first client, and kept for 1 s after the last client
 * has given them back, since another client may come soon. Thread-safe.
 */
public final class SharedLoops {
    /** Loops of clients that use sockets, and of {@code DnsWatch}. */
    public static final SharedLoops SOCKETS = new SharedLoops(false);

    /** Loops of in-process clients. */
    public static final SharedLoops IN_PROCESS = new SharedLoops(true);

    private static final int MAX = 4;

    /** Time for which unused loops are kept: 1 s. Source: grpc-java's shared event loops. */
    private static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final boolean inProcess;

    // the fields from here on are guarded by this object's lock
    private @Nullable Loops held;
    private int users;
    private long unusedSinceNanos;

    /** True while a task is scheduled that ends {@link #held} if nobody uses the loops then. */
    private boolean watched;

    public SharedLoops(boolean inProcess) {
        this.inProcess = inProcess;
    }

    public synchronized Loops borrow() {
        Loops loops = held;
        if (loops == null) {
            loops = new Loops(Math.min(MAX, Runtime.getRuntime().availableProcessors()), Loops.CLIENT, inProcess);
            held = loops;
        }
        users++;
        return loops;
    }

    /** Gives the loops back. Each borrower calls this once, after its connections on the loops have ended. */
    public synchronized void giveBack() {
        users--;
        unusedSinceNanos = System.nanoTime();
        Loops loops = held;
        if (users == 0 && !watched && loops != null) {
            endLater(loops, LINGER_NANOS);
        }
    }

    /** Returns the number of borrowers that have not given the loops back. */
    public synchronized int users() {
        return users;
    }

    private void endLater(Loops loops, long nanos) {
        watched = false;
        loops.group.schedule(() -> endUnused(loops), nanos, TimeUnit.NANOSECONDS);
        // set last: if schedule throws, a later giveBack tries again
        watched = true;
    }

    private synchronized void endUnused(Loops loops) {
        if (users > 0) {
            watched = false;
            return;
        }
        long left = LINGER_NANOS - (System.nanoTime() - unusedSinceNanos);
        if (left > 0) {
            endLater(loops, left);
            return;
        }
        watched = false;
        held = null;
        loops.end();
    }
}
