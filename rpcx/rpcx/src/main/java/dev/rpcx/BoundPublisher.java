package dev.rpcx;

import java.util.Objects;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * The stream that a call takes to its server. It is subscribed to, asked for items and cancelled in the context in
 * which the call was made, or in none, whatever thread does it: event loops, as credit comes, or another call's
 * handler.
 */
record BoundPublisher(
        Flow.Publisher<Object> given, @Nullable TimedContext context) implements Flow.Publisher<Object> {
    @Override
    public void subscribe(Flow.Subscriber<? super Object> subscriber) {
        Objects.requireNonNull(subscriber);
        CurrentCall.runIn(context, () -> given.subscribe(new Bound(subscriber, context)));
    }

    private record Bound(
            Flow.Subscriber<? super Object> subscriber,
            @Nullable TimedContext context) implements Flow.Subscriber<Object> {
        @Override
        public void onSubscribe(Flow.@Nullable Subscription subscription) {
            if (subscription == null) {
                // a publisher may hear nothing of what is thrown here: the call ends by it
                subscriber.onSubscribe(null);
                throw new NullPointerException("no subscription (expected: one)");
            }
            subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    CurrentCall.runIn(context, () -> subscription.request(items));
                }

                @Override
                public void cancel() {
                    CurrentCall.runIn(context, subscription::cancel);
                }
            });
        }

        @Override
        public void onNext(Object item) {
            subscriber.onNext(item);
        }

        @Override
        public void onError(Throwable thrown) {
            subscriber.onError(thrown);
        }

        @Override
        public void onComplete() {
            subscriber.onComplete();
        }
    }
}
