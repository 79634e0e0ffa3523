package dev.rpcx;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A service with methods of every kind, for tests that go through all states. Each handler does only what the
 * {@link Gate} of its call lets it do.
 */
@RPCXServer("walked")
public final class WalkedService {
    /** Metadata that names the gate of a call. */
    public static final String GATE = "gate";

    /** Number of items in a stream to the client. */
    public static final int ITEMS = 3;

    /** A call, as its handler sees it and as a test controls it. */
    public static final class Gate {
        /** Whether the handler stays in its method until {@link #mayReturn}. */
        public final boolean blocks;

        public final AtomicInteger runs = new AtomicInteger();
        public final CompletableFuture<Void> begun = new CompletableFuture<>();
        public final CountDownLatch mayReturn = new CountDownLatch(1);
        public final CompletableFuture<Void> ended = new CompletableFuture<>();

        /** The result for the caller, in methods with one result. */
        public final CompletableFuture<Object> result = new CompletableFuture<>();

        public final CompletableFuture<Flow.Subscription> incoming = new CompletableFuture<>();
        public final List<Integer> received = Collections.synchronizedList(new ArrayList<>());
        public final CompletableFuture<Void> allReceived = new CompletableFuture<>();
        public final CompletableFuture<Void> subscribed = new CompletableFuture<>();

        public Gate(boolean blocks) {
            this.blocks = blocks;
        }

        /** Lets the handler end, in whatever way it is controlled. */
        public void open() {
            mayReturn.countDown();
            result.complete(null);
        }

        private void enter() {
            runs.incrementAndGet();
            begun.complete(null);
            if (blocks) {
                try {
                    mayReturn.await();
                } catch (InterruptedException cancelled) {
                    throw new IllegalStateException(cancelled);
                } finally {
                    ended.complete(null);
                }
            }
        }

        private void take(Flow.Publisher<Integer> items) {
            items.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    incoming.complete(subscription);
                }

                @Override
                public void onNext(Integer item) {
                    received.add(item);
                }

                @Override
                public void onError(Throwable thrown) {
                    allReceived.completeExceptionally(thrown);
                }

                @Override
                public void onComplete() {
                    allReceived.complete(null);
                }
            });
        }

        private Flow.Publisher<String> bring() {
            return subscriber -> {
                subscriber.onSubscribe(new Flow.Subscription() {
                    private int sent;
                    private boolean over;

                    @Override
                    public synchronized void request(long items) {
                        for (long i = 0; i < items && !over; i++) {
                            subscriber.onNext(item(sent++));
                            if (sent == ITEMS) {
                                over = true;
                                subscriber.onComplete();
                            }
                        }
                    }

                    @Override
                    public synchronized void cancel() {
                        over = true;
                    }
                });
                subscribed.complete(null);
            };
        }
    }

    private final Map<String, Gate> gates = new ConcurrentHashMap<>();

    public static String item(int number) {
        return "item " + number;
    }

    public Gate gate(String name, boolean blocks) {
        Gate gate = new Gate(blocks);
        gates.put(name, gate);
        return gate;
    }

    public void forget(String name) {
        gates.remove(name);
    }

    private Gate gate() {
        String name = CallContext.current().orElseThrow().metadata().get(GATE);
        Gate gate = name == null ? null : gates.get(name);
        if (gate == null) {
            throw new IllegalStateException("no gate " + name);
        }
        return gate;
    }

    private CompletableFuture<String> unary(String text) {
        Gate gate = gate();
        gate.enter();
        return gate.result.thenApply(ignored -> {
            gate.ended.complete(null);
            return text;
        });
    }

    private Flow.Publisher<String> brings() {
        Gate gate = gate();
        gate.enter();
        return gate.bring();
    }

    private CompletableFuture<Integer> takes(Flow.Publisher<Integer> items) {
        Gate gate = gate();
        gate.take(items);
        gate.enter();
        return gate.result.thenApply(ignored -> Arrays.stream(gate.received.toArray(new Integer[0]))
                .mapToInt(Integer::intValue)
                .sum());
    }

    private Flow.Publisher<String> both(Flow.Publisher<Integer> items) {
        Gate gate = gate();
        gate.take(items);
        gate.enter();
        return gate.bring();
    }

    @Method
    public CompletableFuture<String> unaryElsewhere(String text) {
        return unary(text);
    }

    @Method
    @RunOn(RunOn.Place.EVENT_LOOP)
    public CompletableFuture<String> unaryLoop(String text) {
        return unary(text);
    }

    @Method
    public Flow.Publisher<String> bringsElsewhere(String text) {
        return brings();
    }

    @Method
    @RunOn(RunOn.Place.EVENT_LOOP)
    public Flow.Publisher<String> bringsLoop(String text) {
        return brings();
    }

    @Method
    public CompletableFuture<Integer> takesElsewhere(Flow.Publisher<Integer> items) {
        return takes(items);
    }

    @Method
    @RunOn(RunOn.Place.EVENT_LOOP)
    public CompletableFuture<Integer> takesLoop(Flow.Publisher<Integer> items) {
        return takes(items);
    }

    @Method
    public Flow.Publisher<String> bothElsewhere(Flow.Publisher<Integer> items) {
        return both(items);
    }

    @Method
    @RunOn(RunOn.Place.EVENT_LOOP)
    public Flow.Publisher<String> bothLoop(Flow.Publisher<Integer> items) {
        return both(items);
    }

    @Method
    @RunOn(RunOn.Place.EVENT_LOOP)
    public String echo(String text) {
        return text;
    }
}
