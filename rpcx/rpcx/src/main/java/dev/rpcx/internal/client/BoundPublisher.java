package dev.rpcx.internal.client;

import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.TimedContext;
import java.util.Objects;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * The stream that a call sends to its server, with the context in which the proxy's method was called. Whichever thread
 * subscribes, requests items or cancels, the publisher's code runs in that context. If the method was called in no
 * context, the code runs in none.
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
                // Passing null to the subscriber ends the call. The exception below might not do so, since a publisher
                // can ignore the exception.
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
