package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Metadata;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.TimedContext;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * Tests the context in which the publisher of an upload runs, and that everything is passed on between the publisher
 * and its subscriber.
 */
class BoundPublisherTest {
    private final List<String> told = new ArrayList<>();
    private final TimedContext made = new TimedContext(0, Metadata.EMPTY, null, Ticker.systemTicker());
    private final TimedContext other = new TimedContext(0, Metadata.EMPTY, null, Ticker.systemTicker());
    private Flow.@Nullable Subscription subscription;

    private void tell(String what) {
        TimedContext here = CurrentCall.get();
        told.add(what + (here == made ? " in its call" : here == null ? " in none" : " in another"));
    }

    private final Flow.Publisher<Object> given = subscriber -> {
        tell("subscribed");
        subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long items) {
                tell("asked for " + items);
                subscriber.onNext("item");
            }

            @Override
            public void cancel() {
                tell("cancelled");
                subscriber.onComplete();
            }
        });
    };

    private final Flow.Subscriber<Object> subscriber = new Flow.Subscriber<>() {
        @Override
        public void onSubscribe(Flow.@Nullable Subscription of) {
            told.add("has " + (of == null ? "no subscription" : "one"));
            subscription = of;
        }

        @Override
        public void onNext(Object item) {
            told.add("has " + item);
        }

        @Override
        public void onError(Throwable thrown) {
            told.add("failed " + thrown.getMessage());
        }

        @Override
        public void onComplete() {
            told.add("ended");
        }
    };

    private void subscribeTo(BoundPublisher publisher) {
        CurrentCall.runIn(other, () -> {
            publisher.subscribe(subscriber);
            Flow.Subscription its = Objects.requireNonNull(subscription);
            its.request(3);
            its.cancel();
            assertThat(CurrentCall.get()).isSameAs(other);
        });
    }

    @Test
    void aPublisherIsToldAllInTheContextOfItsCall() {
        subscribeTo(new BoundPublisher(given, made));
        assertThat(told)
                .containsExactly(
                        "subscribed in its call",
                        "has one",
                        "asked for 3 in its call",
                        "has item",
                        "cancelled in its call",
                        "ended");
    }

    @Test
    void aPublisherThatNoCallHasMadeIsToldAllInNone() {
        subscribeTo(new BoundPublisher(given, null));
        assertThat(told).contains("subscribed in none", "asked for 3 in none", "cancelled in none");
    }

    @Test
    void whatFailsIsPassedOn() {
        new BoundPublisher(
                        it -> {
                            it.onSubscribe(new Flow.Subscription() {
                                @Override
                                public void request(long items) {}

                                @Override
                                public void cancel() {}
                            });
                            it.onError(new IllegalStateException("broken"));
                        },
                        made)
                .subscribe(subscriber);
        assertThat(told).containsExactly("has one", "failed broken");
    }

    @Test
    @SuppressWarnings("NullAway") // a publisher may pass null all the same
    void aPublisherThatGivesNoSubscriptionIsToldSo() {
        BoundPublisher publisher = new BoundPublisher(it -> it.onSubscribe(null), made);
        assertThatThrownBy(() -> publisher.subscribe(subscriber))
                .hasMessage("a publisher gave no subscription (expected: one)");
        assertThat(told).containsExactly("has no subscription");
        assertThatThrownBy(() -> publisher.subscribe(null)).isInstanceOf(NullPointerException.class);
    }
}
