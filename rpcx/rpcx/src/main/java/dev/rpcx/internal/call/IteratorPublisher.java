package dev.rpcx.internal.call;

import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.io.ThreadFactories;
import java.util.Iterator;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Publishes the items of an iterator, no more than are requested. The iterator is allowed to block, so a separate
 * thread reads it: a virtual thread where the JDK has one. That thread runs in the context of the thread that has
 * subscribed, and ends when all requested items have been read. The next request starts another one.
 *
 * <p>A subscription ends normally only after the iterator's last item. What the iterator was made from is closed once,
 * before the subscriber's last signal or after a cancel.
 */
public final class IteratorPublisher<T> implements Flow.Publisher<T>, StreamEndListener {
    /** The value of {@code close} for items that nobody has to close. */
    public static final AutoCloseable NOTHING_TO_CLOSE = () -> {};

    /**
     * Maximum number of platform threads that read items at the same time, on a JDK without virtual threads. A server
     * has the same maximum for the threads that run the signals of streams. If more threads are needed, streams fail.
     */
    private static final int MAX_PLATFORM_READERS = 10_000;

    private static final long IDLE_SECONDS = 10;

    private static final Executor READERS = readers();

    private final Callable<Iterator<? extends T>> source;
    private final AutoCloseable close;

    /** Whether only one subscriber can have the items. */
    private final boolean isOnce;

    /**
     * Whether somebody has subscribed, or the stream has ended without a subscriber. Any thread that subscribes sets
     * it.
     */
    private final AtomicBoolean isTaken = new AtomicBoolean();

    /**
     * Creates a publisher.
     *
     * @param source makes the iterator of a subscription, on the thread that reads the iterator
     * @param close what to close at the end of each subscription, on the thread that reads the iterator
     * @param isOnce true if only the first subscriber can have the items, so that any other one gets an error
     */
    public IteratorPublisher(Callable<Iterator<? extends T>> source, AutoCloseable close, boolean isOnce) {
        this.source = source;
        this.close = close;
        this.isOnce = isOnce;
    }

    private static Executor readers() {
        if (ThreadFactories.hasVirtual()) {
            return task -> ThreadFactories.virtual(task, null).start();
        }
        return new ThreadPoolExecutor(
                0,
                MAX_PLATFORM_READERS,
                IDLE_SECONDS,
                TimeUnit.SECONDS,
                new SynchronousQueue<>(),
                task -> ThreadFactories.platform(task, "rpcx-items", null));
    }

    @Override
    public void subscribe(Flow.Subscriber<? super T> subscriber) {
        Given.notNull(subscriber, "subscriber", "who takes the items");
        if (isTaken.compareAndSet(false, true) || !isOnce) {
            subscriber.onSubscribe(new Reading<T>(subscriber, source, close));
            return;
        }
        Callable<Iterator<? extends T>> refusal = () -> {
            throw new IllegalStateException("these items can be read only once (expected: one subscriber)");
        };
        subscriber.onSubscribe(new Reading<T>(subscriber, refusal, NOTHING_TO_CLOSE));
    }

    /** Closes what the items come from, since nobody will subscribe. */
    @Override
    public void ended(@Nullable Throwable why) {
        if (isOnce && isTaken.compareAndSet(false, true)) {
            try {
                close.close();
            } catch (Throwable e) {
                CallbackFailures.log(e);
            }
        }
    }

    /** One subscription. */
    private static final class Reading<T> implements Flow.Subscription, Runnable {
        private final Flow.Subscriber<? super T> subscriber;
        private final Callable<Iterator<? extends T>> source;
        private final AutoCloseable close;
        private final @Nullable TimedContext context = CurrentCall.get();
        private final @Nullable ClassLoader loader = Thread.currentThread().getContextClassLoader();

        /**
         * The iterator; null before the first request and after the end. Only the thread that reads uses this field.
         * The lock, under which {@link #isReading} changes, makes the iterator visible to the next such thread.
         */
        private @Nullable Iterator<? extends T> items;

        // the fields from here on are guarded by this object's lock

        /** Number of items that have been requested, and have not been read. */
        private long demand;

        /** Whether a thread reads the items or is about to. Only that thread gives signals to the subscriber. */
        private boolean isReading;

        /** The thread that reads the items, for a cancel to interrupt; null if it has not begun, or must go on. */
        private @Nullable Thread reader;

        /** Whether the subscription has been cancelled or has ended. */
        private boolean isOver;

        /** The error for a subscriber that has requested less than one item; null if it has not done so. */
        private @Nullable IllegalArgumentException fault;

        Reading(Flow.Subscriber<? super T> subscriber, Callable<Iterator<? extends T>> source, AutoCloseable close) {
            this.subscriber = subscriber;
            this.source = source;
            this.close = close;
        }

        @Override
        public void request(long count) {
            synchronized (this) {
                if (count > 0) {
                    demand = Streams.sum(demand, count);
                } else {
                    fault = new IllegalArgumentException("request of " + count + " items (expected: > 0)");
                }
                if (isOver || isReading) {
                    return;
                }
                isReading = true;
            }
            begin();
        }

        @Override
        public void cancel() {
            synchronized (this) {
                if (isOver) {
                    return;
                }
                isOver = true;
                if (isReading) {
                    // the thread that reads finds that the subscription is over, and closes what it reads from
                    ThreadTools.interrupt(reader);
                    return;
                }
                isReading = true;
            }
            if (close != NOTHING_TO_CLOSE) {
                // another thread closes, since that may block, and this thread may be an event loop
                begin();
            }
        }

        private void begin() {
            try {
                READERS.execute(this);
            } catch (Throwable noThread) {
                end(StreamErrors.noReader(noThread));
            }
        }

        @Override
        public void run() {
            Thread here = Thread.currentThread();
            TimedContext before = CurrentCall.swap(context);
            here.setContextClassLoader(loader);
            try {
                read();
            } catch (Throwable e) {
                // the subscriber's last signal has thrown, so there is nobody else to tell
                CallbackFailures.log(e);
            } finally {
                here.setContextClassLoader(null);
                CurrentCall.swap(before);
            }
        }

        private void read() {
            Throwable failure = null;
            try {
                if (enter()) {
                    Iterator<? extends T> from = items;
                    if (from == null) {
                        from = source.call();
                        items = from;
                    }
                    // The iterator is asked for a further item even if none is requested. So a stream whose last item
                    // was the last requested one ends without another request.
                    while (from.hasNext()) {
                        synchronized (this) {
                            if (isOver || fault != null) {
                                break;
                            }
                            if (demand == 0) {
                                isReading = false;
                                reader = null;
                                return;
                            }
                            demand--;
                        }
                        subscriber.onNext(Objects.requireNonNull(
                                from.next(), "an item is null (expected: a value, since a stream has no null)"));
                    }
                }
            } catch (Throwable e) {
                failure = e;
            }
            synchronized (this) {
                reader = null;
            }
            // a cancel interrupts only the wait for an item, and not the code that closes
            Thread.interrupted();
            end(failure);
        }

        /** Returns whether there is anything to read. If so, a cancel interrupts the calling thread from now on. */
        private synchronized boolean enter() {
            if (isOver || fault != null) {
                return false;
            }
            reader = Thread.currentThread();
            return true;
        }

        /**
         * Closes what the items come from. Then gives the subscriber its last signal, unless it has cancelled.
         *
         * @param thrown why no more items can be read; null after the last item or a cancel
         */
        private void end(@Nullable Throwable thrown) {
            boolean isCancelled;
            Throwable why;
            synchronized (this) {
                isCancelled = isOver;
                isOver = true;
                why = fault == null ? thrown : fault;
            }
            items = null;
            try {
                close.close();
            } catch (Throwable e) {
                if (isCancelled || why != null) {
                    CallbackFailures.log(e);
                } else {
                    why = e;
                }
            }
            if (isCancelled) {
                return;
            }
            if (why == null) {
                subscriber.onComplete();
            } else {
                subscriber.onError(why);
            }
        }
    }
}
