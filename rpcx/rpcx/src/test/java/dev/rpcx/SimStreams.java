package dev.rpcx;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The two ends of streams in a {@link SimWorld}. Item {@code n} of the stream {@code id} has the text {@code id#n#…}.
 */
final class SimStreams {
    private SimStreams() {}

    static String item(String id, int n, int bytes) {
        return id + "#" + n + "#" + "x".repeat(bytes);
    }

    /**
     * Publishes so many items as it is asked for them, on a thread of its own, and then ends in one of several ways.
     */
    static final class Source implements Flow.Publisher<String>, Flow.Subscription {
        enum End {
            COMPLETE,
            FAIL,
            /** Goes on waiting for somebody to cancel it. */
            NEVER
        }

        private final SimScenario scenario;
        private final String id;
        private final int items;
        private final int bytes;
        private final End end;
        private final SimWorld.Worker thread;
        private SimCalls.@Nullable Handler open;
        private Flow.@Nullable Subscriber<? super String> subscriber;
        private long wanted;
        private int sent;
        private boolean over;

        Source(SimScenario scenario, String id, int items, int bytes, End end) {
            this.scenario = scenario;
            this.id = id;
            this.items = items;
            this.bytes = bytes;
            this.end = end;
            this.thread = new SimWorld.Worker(scenario.world, scenario.world.process());
        }

        @Override
        public void subscribe(Flow.Subscriber<? super String> given) {
            if (subscriber != null) {
                scenario.world.violation("the stream " + id + " was subscribed to twice");
            }
            open = scenario.calls.open("publisher of " + id);
            subscriber = given;
            given.onSubscribe(this);
            thread.run(this::endIfDone);
        }

        @Override
        public void request(long count) {
            if (wanted == 0) {
                thread.run(this::publish);
            }
            wanted = count + Math.min(wanted, Long.MAX_VALUE - count);
        }

        private void publish() {
            if (over || subscriber == null || wanted == 0) {
                return;
            }
            if (sent < items) {
                wanted--;
                subscriber.onNext(item(id, sent++, bytes));
                if (wanted > 0) {
                    thread.run(this::publish);
                }
            }
            endIfDone();
        }

        private void endIfDone() {
            if (over || sent < items || subscriber == null || end == End.NEVER) {
                return;
            }
            close();
            if (end == End.COMPLETE) {
                subscriber.onComplete();
            } else {
                subscriber.onError(new IllegalStateException("the publisher has failed"));
            }
        }

        @Override
        public void cancel() {
            close();
        }

        private void close() {
            over = true;
            if (open != null) {
                open.end();
            }
        }
    }

    /** Asks for items in its own way, and sees that they come in order, no more than asked for, and one end. */
    static final class Sink implements Flow.Subscriber<String> {
        private final SimScenario scenario;
        private final String id;
        private final long batch;

        /** The sink gives up after so many items. */
        private final int most;

        private final CompletableFuture<Integer> end = new CompletableFuture<>();

        /** This is true if the items are those that the other end was to send. */
        private final boolean trusting;

        private Flow.@Nullable Subscription subscription;
        private long asked;
        private int received;
        private boolean over;

        Sink(SimScenario scenario, String id, boolean trusting) {
            this.scenario = scenario;
            this.id = id;
            this.trusting = trusting;
            SimWorld world = scenario.world;
            this.batch = world.oneIn(4) ? 1000 : world.spread(1, 20);
            this.most = world.oneIn(4) ? world.random.nextInt(20) : Integer.MAX_VALUE;
        }

        /** Returns how many items came. The future ends as the stream does. */
        CompletableFuture<Integer> end() {
            return end;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            ask();
        }

        private void ask() {
            if (!over && subscription != null) {
                asked += batch;
                subscription.request(batch);
            }
        }

        @Override
        public void onNext(String item) {
            if (trusting && !item.startsWith(id + "#" + received + "#")) {
                scenario.world.violation(
                        "item " + received + " of " + id + " was " + item.substring(0, Math.min(40, item.length())));
            }
            if (over) {
                if (!end.isCancelled()) {
                    scenario.world.violation("an item of " + id + " came after its end");
                }
                return;
            }
            received++;
            if (received > asked) {
                scenario.world.violation(id + " brought " + received + " items; " + asked + " were asked for");
            }
            if (received >= most) {
                cancel();
            } else if (received == asked) {
                if (scenario.world.oneIn(2)) {
                    ask();
                } else {
                    scenario.later(scenario.world.spread(0, TimeUnit.MILLISECONDS.toNanos(20)), this::ask);
                }
            }
        }

        void cancel() {
            if (!over && subscription != null) {
                over = true;
                subscription.cancel();
                end.cancel(false);
            }
        }

        @Override
        public void onError(Throwable thrown) {
            over("failed");
            end.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            over("complete");
            end.complete(received);
        }

        private void over(String how) {
            if (over && !end.isCancelled()) {
                scenario.world.violation(id + " ended twice, then " + how);
            }
            over = true;
        }
    }
}
