package dev.rpcx.internal.client;

import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.TimedContext;
import java.util.Objects;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * The stream that a call sends to its server. The publisher is subscribed to, asked for items and cancelled in the
 * context in which the call was made, or in no context if there was none, whichever thread does so.
 */
public record BoundPublisher(
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
                // onSubscribe(null) ends the call: the publisher may ignore the exception that is thrown here
                subscriber.onSubscribe(null);
                throw new NullPointerException("a publisher gave no subscription (expected: one)");
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
