package dev.rpcx;

import java.io.IOException;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;

/**
 * A server with the standard settings as a process, whose handlers hold what they were given until their callers are
 * gone. {@code state} is answered with the handlers that run, the places of calls and streams that are taken, and the
 * bytes of the heap after a collection; {@code audit} with what the ledgers hold.
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

        /** The future of a handler that has no place among those that run. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> later(String text, List<Tiny> all) {
            CompletableFuture<String> never = new CompletableFuture<>();
            CallContext.current().orElseThrow().onCancel(() -> never.complete(text + all));
            return never;
        }

        /** The handler has ended, and its stream goes on. */
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
                yield server.running() + " " + server.ledger().held(Resource.CALLS) + " "
                        + (heap.totalMemory() - heap.freeMemory());
            }
            case "audit" -> server.ledger().audit().replace('\n', ';');
            default -> throw new IllegalArgumentException(question);
        });
        server.stop(Duration.ofMillis(100));
    }
}
