package dev.rpcx;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Event loops that clients share, so that one more client costs no thread: there from the first one's take until a while after the last one
 * has given them back, since a program that makes a client for each call makes the next one soon. Thread-safe.
 */
final class SharedLoops {
    /** Those of clients, and of what is watched for them. */
    static final SharedLoops SOCKETS = new SharedLoops(false);

    /** Those of clients within the process of their server. */
    static final SharedLoops IN_PROCESS = new SharedLoops(true);

    private static final int MOST = 4;

    /** As long as grpc-java keeps its shared ones. */
    private static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final boolean inProcess;

    // guarded by this
    private @Nullable Loops held;
    private int users;
    private long unusedSinceNanos;

    /** The end of {@link #held} is looked after by a task on it. */
    private boolean watched;

    SharedLoops(boolean inProcess) {
        this.inProcess = inProcess;
    }

    synchronized Loops take() {
        Loops loops = held;
        if (loops == null) {
            loops = new Loops(Math.min(MOST, Runtime.getRuntime().availableProcessors()), Loops.CLIENT, inProcess);
            held = loops;
        }
        users++;
        return loops;
    }

    /** By one who has taken them, once, and has no connection on them. */
    synchronized void giveBack() {
        users--;
        unusedSinceNanos = System.nanoTime();
        Loops loops = held;
        if (users == 0 && !watched && loops != null) {
            endLater(loops, LINGER_NANOS);
        }
    }

    /** How many have taken them and not given them back. */
    synchronized int users() {
        return users;
    }

    private void endLater(Loops loops, long nanos) {
        watched = false;
        loops.group.schedule(() -> endUnused(loops), nanos, TimeUnit.NANOSECONDS);
        // not before: what that throws must not keep the loops for ever
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
