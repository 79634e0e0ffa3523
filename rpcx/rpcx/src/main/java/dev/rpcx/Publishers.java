package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.call.IteratorPublisher;
import dev.rpcx.internal.call.QueueIterator;
import java.util.Iterator;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Flow;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * Makes the publishers of streams from what programs have: collections, {@link Stream}s, iterators and queues. A
 * handler returns such a publisher, and a caller passes one to a client's method. The publishers follow the rules of
 * Reactive Streams, so no stream loses items because its reader is slow.
 *
 * <pre>{@code
 * public Flow.Publisher<Reading> readings(int count) {
 *     return Publishers.of(store.latest(count));
 * }
 * }</pre>
 *
 * <ul>
 *   <li><b>Requests</b>: no more items are sent than the reader requests. At most one further item has been read.
 *   <li><b>Threads</b>: the items are read on a thread of their own, which is allowed to block. It is a virtual thread
 *       if the JDK has virtual threads, and otherwise one of at most 10,000 platform threads. The {@link CallContext}
 *       of the call is current there. A cancel of the stream interrupts the thread; items whose code ignores the
 *       interrupt keep the thread.
 *   <li><b>End</b>: a stream ends normally after its last item only. If reading an item throws an exception, or an item
 *       is null, the stream ends with an error. A caller gets an exception of a handler's items as one that the handler
 *       itself has thrown: see {@link RPCXException}.
 *   <li><b>Closing</b>: what has to be closed is closed once, when the stream has ended or has been cancelled. An
 *       exception while closing after the last item ends the stream with an error. The items of a call that was not
 *       begun stay open at a client, since nobody has subscribed to them.
 * </ul>
 *
 * <p>Each publisher of this class can be used by any thread.
 */
public final class Publishers {
    private Publishers() {}

    /**
     * Returns a publisher of the items of a collection or of any other {@code Iterable}. Each subscriber gets all
     * items: each subscription calls {@link Iterable#iterator} once.
     *
     * @throws IllegalArgumentException if the items are a {@link BlockingQueue}, whose iterator ends where the queue is
     *     empty: use {@link #of(BlockingQueue, Predicate)}
     */
    public static <T> Flow.Publisher<T> of(Iterable<? extends T> items) {
        Given.notNull(items, "items", "the items of a stream");
        if (items instanceof BlockingQueue) {
            throw new IllegalArgumentException("items: a BlockingQueue (expected: Publishers.of(queue, isEnd), since"
                    + " the iterator of a queue ends where the queue is empty)");
        }
        return new IteratorPublisher<T>(items::iterator, IteratorPublisher.NOTHING_TO_CLOSE, false);
    }

    /**
     * Returns a publisher of the items of a {@code Stream}, for one subscriber. The {@code Stream} is closed at the
     * end.
     */
    public static <T> Flow.Publisher<T> of(Stream<? extends T> items) {
        Given.notNull(items, "items", "the items of a stream");
        return new IteratorPublisher<T>(items::iterator, items, true);
    }

    /**
     * Returns a publisher of the items of an iterator, for one subscriber.
     *
     * @param close what the items come from, such as a cursor or a file; it is closed at the end
     */
    public static <T> Flow.Publisher<T> of(Iterator<? extends T> items, AutoCloseable close) {
        Given.notNull(items, "items", "the items of a stream");
        return new IteratorPublisher<T>(() -> items, Given.notNull(close, "close", "what to close at the end"), true);
    }

    /**
     * Returns a publisher of what other threads put into a queue, for one subscriber. The publisher waits where the
     * queue is empty. Items that have been taken from the queue when the stream is cancelled are lost.
     *
     * @param isEnd says which object of the queue is the end of the stream; that object is not sent
     */
    public static <T> Flow.Publisher<T> of(BlockingQueue<? extends T> queue, Predicate<? super T> isEnd) {
        Given.notNull(queue, "queue", "a BlockingQueue of items");
        Given.notNull(isEnd, "isEnd", "what says which object is the end");
        return of(new QueueIterator<T>(queue, isEnd), IteratorPublisher.NOTHING_TO_CLOSE);
    }
}
