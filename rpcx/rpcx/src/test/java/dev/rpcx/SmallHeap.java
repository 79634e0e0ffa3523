package dev.rpcx;

import dev.rpcx.internal.ledger.Resource;
import java.io.IOException;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;

/**
 * Runs a server with the standard settings as a process. Its handlers hold what they were given until their callers are
 * gone. The line {@code state} is answered with the number of running handlers, the number of places of calls and
 * streams that are taken, and the bytes on the heap after a collection. The line {@code audit} is answered with what
 * the ledgers hold.
 */
public final class SmallHeap {
    private SmallHeap() {}

    record Tiny(int number) {}

    @RPCXServer("small")
    static final class Service {
        @Method
        String hello(String name) {
            return name;
        }

        @Method
        void block(String text, List<Tiny> all) throws InterruptedException {
            try {
                new CountDownLatch(1).await();
            } finally {
                Reference.reachabilityFence(text);
                Reference.reachabilityFence(all);
            }
        }

        /** Returns a future whose handler does not count among those that run. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> later(String text, List<Tiny> all) {
            CompletableFuture<String> never = new CompletableFuture<>();
            CallContext.current().orElseThrow().onCancel(() -> never.complete(text + all));
            return never;
        }

        /** Holds one large array. */
        @Method
        void hold(byte[] bytes) throws InterruptedException {
            try {
                new CountDownLatch(1).await();
            } finally {
                Reference.reachabilityFence(bytes);
            }
        }

        @Method
        String much(int bytes) {
            return "x".repeat(bytes);
        }

        /** Publishes as many items as there is credit for. */
        @Method
        Flow.Publisher<String> endless(int bytes) {
            return to -> to.onSubscribe(new Flow.Subscription() {
                private volatile boolean cancelled;

                @Override
                public void request(long items) {
                    for (long i = 0; i < items && !cancelled; i++) {
                        to.onNext("x".repeat(bytes));
                    }
                }

                @Override
                public void cancel() {
                    cancelled = true;
                }
            });
        }

        /** Welcomes items, and waits for the first to be whole. */
        @Method
        CompletableFuture<Integer> take(Flow.Publisher<String> items) {
            CompletableFuture<Integer> first = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(1);
                }

                @Override
                public void onNext(String item) {
                    first.complete(item.length());
                }

                @Override
                public void onError(Throwable thrown) {
                    first.completeExceptionally(thrown);
                }

                @Override
                public void onComplete() {
                    first.complete(0);
                }
            });
            return first;
        }

        /** Returns a stream that goes on when the handler has ended. */
        @Method
        Flow.Publisher<String> stream(String text, List<Tiny> all) {
            return to -> to.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    to.onNext(text + all);
                }

                @Override
                public void cancel() {}
            });
        }
    }

    public static void main(String[] args) throws IOException {
        Server server = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .build()
                .start();
        System.out.println(server.port());
        JvmProcess.answer(question -> switch (question) {
            case "state" -> {
                System.gc();
                Runtime heap = Runtime.getRuntime();
                yield server.core().running() + " " + server.core().ledger().held(Resource.CALLS) + " "
                        + (heap.totalMemory() - heap.freeMemory());
            }
            case "audit" -> server.core().ledger().audit().replace('\n', ';');
            default -> throw new IllegalArgumentException(question);
        });
        server.stop(Duration.ofMillis(100));
    }
}
