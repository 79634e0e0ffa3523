package dev.rpcx.cli;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;

/**
 * Hands the items of a stream to a thread that waits for them. No more of them are requested than that thread takes,
 * and a few more, so that a slow reader of the output holds the server up and not this process's memory.
 */
final class Items implements Flow.Subscriber<byte[]> {
    /** Number of items that may have arrived and not been taken. */
    private static final int MAX_AHEAD = 64;

    /** Stands for the end of the stream. */
    private static final Object END = new Object();

    /** What has arrived: items, and at the end {@link #END} or the exception with which the stream has failed. */
    private final BlockingQueue<Object> signals = new LinkedBlockingQueue<>();

    /** Stored by the thread that subscribes, before any item arrives. */
    private volatile Flow.@Nullable Subscription subscription;

    @Override
    public void onSubscribe(Flow.Subscription begun) {
        subscription = begun;
        begun.request(MAX_AHEAD);
    }

    @Override
    public void onNext(byte[] item) {
        signals.add(item);
    }

    @Override
    public void onError(Throwable thrown) {
        signals.add(thrown);
    }

    @Override
    public void onComplete() {
        signals.add(END);
    }

    /**
     * Returns the next item, and waits for it; null at the end of the stream.
     *
     * @throws Throwable the failure of the stream
     */
    byte @Nullable [] next() throws Throwable {
        Object signal = signals.take();
        if (signal instanceof byte[] item) {
            Flow.Subscription from = subscription;
            if (from != null) {
                from.request(1);
            }
            return item;
        }
        if (signal instanceof Throwable failure) {
            throw failure;
        }
        return null;
    }

    /** Ends the call, unless it has ended. */
    void cancel() {
        Flow.Subscription from = subscription;
        if (from != null) {
            from.cancel();
        }
    }
}
