package dev.rpcx.internal.io;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Pool of event loops that clients share, so that one more client costs no thread. The loops are made when the first
 * client borrows them. They are kept for a while after the last client has given them back, since a program that makes
 * a client for each call makes the next one soon. Thread-safe.
 */
public final class SharedLoops {
    /** Loops of clients that use sockets, and of the {@code DnsWatch}es that watch names for clients. */
    public static final SharedLoops SOCKETS = new SharedLoops(false);

    /** Loops of in-process clients. */
    public static final SharedLoops IN_PROCESS = new SharedLoops(true);

    private static final int MAX = 4;

    /** Time for which unused loops are kept, 1 s. Source: grpc-java keeps its shared event loops for the same time. */
    private static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final boolean inProcess;

    // the fields from here on are guarded by this object's lock
    private @Nullable Loops held;
    private int users;
    private long unusedSinceNanos;

    /**
     * True while a task is scheduled on one of the loops. The task ends {@link #held} if nobody uses the loops then.
     */
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

    /**
     * Gives the loops back. Called once for each {@code borrow}, by a borrower that has no connection on them any more.
     */
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
        // "watched" is set only after schedule has returned: if schedule throws, a later giveBack tries again, and the
        // loops do not stay forever
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
