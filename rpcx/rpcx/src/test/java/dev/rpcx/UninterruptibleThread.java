package dev.rpcx;

import java.util.List;

/**
 * A thread that cannot be interrupted, because there is no memory for it. A virtual thread that has to be handed to a
 * carrier can fail in this way.
 */
final class UninterruptibleThread extends Thread {
    /** @param reported receives what the task throws, and what is reported to the thread */
    UninterruptibleThread(Runnable task, List<? super Throwable> reported) {
        super(task);
        setUncaughtExceptionHandler((thread, thrown) -> reported.add(thrown));
    }

    @Override
    public void interrupt() {
        throw new OutOfMemoryError("of a carrier, in this test");
    }
}
