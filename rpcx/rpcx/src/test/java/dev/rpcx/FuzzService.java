package dev.rpcx;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/** A service with a method of every kind, for fuzzing servers and clients. No method waits for a thread. */
@RPCXServer("fuzz")
final class FuzzService {
    record Thing(String name, List<Integer> numbers, Map<String, Thing> parts, Optional<Long> size) {
        Thing {
            if (name.equals("bad")) {
                throw new IllegalArgumentException("a bad name");
            }
        }
    }

    @RPCXClient(remoteServerName = "fuzz")
    interface Remote {
        RPCXFuture<String> echo(String text);

        RPCXFuture<Thing> thing(Thing thing);

        RPCXFuture<String> hang(int number);

        @Method(value = "echo", idempotent = true, hedgeMillis = 1)
        RPCXFuture<String> echoHedged(String text);

        @OneWay
        void note(String text);

        Flow.Publisher<String> brings(int items);

        RPCXFuture<Integer> takes(Flow.Publisher<String> items);

        Flow.Publisher<String> both(Flow.Publisher<String> items);
    }

    /** Calls the same service on the classic wire. */
    @RPCXClient(remoteServerName = "fuzz")
    interface Classic {
        RPCXFuture<String> echo(String text);

        RPCXFuture<Thing> thing(Thing thing);

        RPCXFuture<String> hang(int number);
    }

    /** Contains the results of {@link #hang} that have not been given. */
    private final List<CompletableFuture<String>> hanging = new ArrayList<>();

    /** Ends one call that hangs, if there is one. */
    void end(int which) {
        if (!hanging.isEmpty()) {
            CompletableFuture<String> result = hanging.remove(which % hanging.size());
            if (which % 5 == 0) {
                result.completeExceptionally(new IllegalStateException("which " + which));
            } else {
                result.complete("y".repeat(which * which));
            }
        }
    }

    void endAll() {
        while (!hanging.isEmpty()) {
            end(0);
        }
    }

    @Method
    String echo(String text) {
        return text;
    }

    @Method
    @RunOn(RunOn.Place.EVENT_LOOP)
    String inline(String text) {
        if (text.startsWith("!")) {
            throw new IllegalStateException(text);
        }
        return text;
    }

    @Method
    Thing thing(Thing thing) {
        return thing;
    }

    @Method
    String large(int bytes) {
        return "z".repeat(Math.abs(bytes % 100_000));
    }

    @Method
    CompletionStage<String> hang(int number) {
        CompletableFuture<String> result = new CompletableFuture<>();
        hanging.add(result);
        return result;
    }

    @Method
    String error(String text) {
        throw new AssertionError(text);
    }

    @Method
    void note(String text) {}

    @Method
    Flow.Publisher<String> brings(int items) {
        return new Items(Math.abs(items % 1000), items < 0);
    }

    @Method
    CompletionStage<Integer> takes(Flow.Publisher<String> items) {
        Taker taker = new Taker(3);
        items.subscribe(taker);
        return taker.count;
    }

    @Method
    Flow.Publisher<String> both(Flow.Publisher<String> items) {
        return items;
    }

    /** Gives items at once, as many as it is asked for, and then its end. */
    record Items(int count, boolean fails) implements Flow.Publisher<String> {
        @Override
        public void subscribe(Flow.Subscriber<? super String> subscriber) {
            subscriber.onSubscribe(new Flow.Subscription() {
                private long wanted;
                private int made;
                private boolean making;
                private boolean over;

                @Override
                public void request(long items) {
                    wanted += Math.min(items, Long.MAX_VALUE - wanted);
                    if (making) {
                        return;
                    }
                    making = true;
                    while (!over && wanted > 0 && made < count) {
                        wanted--;
                        made++;
                        subscriber.onNext("item " + made);
                    }
                    making = false;
                    if (!over && made == count) {
                        over = true;
                        if (fails) {
                            subscriber.onError(new IllegalStateException("the publisher has failed"));
                        } else {
                            subscriber.onComplete();
                        }
                    }
                }

                @Override
                public void cancel() {
                    over = true;
                }
            });
        }
    }

    /** Takes a few items at a time. It fails if more items come than it has asked for, or more than one end. */
    static final class Taker implements Flow.Subscriber<Object> {
        final CompletableFuture<Integer> count = new CompletableFuture<>();
        private final int batch;
        private Flow.@Nullable Subscription subscription;
        private long asked;
        private int taken;
        private boolean ended;

        Taker(int batch) {
            this.batch = batch;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            ask();
        }

        void ask() {
            if (subscription != null) {
                asked += batch;
                subscription.request(batch);
            }
        }

        void cancel() {
            if (subscription != null) {
                subscription.cancel();
                count.cancel(false);
            }
        }

        @Override
        public void onNext(Object item) {
            if (ended || ++taken > asked) {
                throw new AssertionError("item " + taken + ", asked for " + asked + ", ended: " + ended);
            }
            if (taken == asked) {
                ask();
            }
        }

        @Override
        public void onError(Throwable thrown) {
            end();
            count.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            end();
            count.complete(taken);
        }

        private void end() {
            if (ended) {
                throw new AssertionError("a stream that ended twice");
            }
            ended = true;
        }
    }
}
