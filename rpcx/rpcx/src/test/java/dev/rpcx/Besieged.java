package dev.rpcx;

import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;

/**
 * Runs three servers, which are attacked, in a process of their own. The arguments {@code CHAIN KEY AUTHORITIES} are
 * the files for TLS. The process prints the ports of the servers. The first server requires client certificates. The
 * second has no TLS, and requires tokens for {@code hello}. The third has TLS, and accepts every client. The line
 * {@code audit} is answered with what the ledgers hold, and the line {@code state} with a {@link State}.
 */
public final class Besieged {
    static final String NAME = "good";
    static final byte[] SECRET = "a secret of more than sixteen bytes".getBytes(StandardCharsets.US_ASCII);

    private static final long PAUSE_MILLIS = 1000;
    private static final String ITEM = "x".repeat(16_000);
    private static final String LARGE_ITEM = "x".repeat(530_000);

    private Besieged() {}

    /** Numbers of the process after a garbage collection. {@code cpuMillis} is its processor time so far. */
    record State(int connections, int running, int threads, long heapBytes, long cpuMillis) {
        static State parse(String line) {
            long[] all = java.util.Arrays.stream(line.split(" "))
                    .mapToLong(Long::parseLong)
                    .toArray();
            return new State((int) all[0], (int) all[1], (int) all[2], all[3], all[4]);
        }

        @Override
        public String toString() {
            return connections + " " + running + " " + threads + " " + heapBytes + " " + cpuMillis;
        }
    }

    /** A record whose constructor throws an error, rather than an exception that rejects the value. */
    record Broken(String text) {
        Broken {
            if (!text.isEmpty()) {
                throw new AssertionError("a broken record");
            }
        }
    }

    /** A record whose instances all have the same hash. */
    record Equal(int number) {
        @Override
        public int hashCode() {
            return 7;
        }
    }

    record Tiny(int number) {}

    @RPCXServer("besieged")
    static final class Service {
        @Method
        String hello(String name) {
            return name;
        }

        @Method
        String plain(String name) {
            return name;
        }

        @Method
        String much(int bytes) {
            return "x".repeat(bytes);
        }

        @Method
        void pause() throws InterruptedException {
            Thread.sleep(PAUSE_MILLIS);
        }

        @Method
        String broken(Broken broken) {
            return broken.text();
        }

        @Method
        int equal(Set<Equal> all) {
            return all.size();
        }

        @Method
        int tiny(List<Tiny> all) {
            return all.size();
        }

        /** Sends as many items as there is credit for, as fast as the publisher can make them. */
        @Method
        Flow.Publisher<String> endless() {
            return endless(ITEM);
        }

        /** Does the same with items whose buffers take more than half a region of a heap that has regions. */
        @Method
        Flow.Publisher<String> large() {
            return endless(LARGE_ITEM);
        }

        private static Flow.Publisher<String> endless(String item) {
            return to -> to.onSubscribe(new Flow.Subscription() {
                private volatile boolean cancelled;

                @Override
                public void request(long items) {
                    for (long i = 0; i < items && !cancelled; i++) {
                        to.onNext(item);
                    }
                }

                @Override
                public void cancel() {
                    cancelled = true;
                }
            });
        }

        /** Returns a publisher that blocks when it is asked for items. */
        @Method
        Flow.Publisher<String> stuck() {
            CountDownLatch cancelled = new CountDownLatch(1);
            return to -> to.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    try {
                        cancelled.await(PAUSE_MILLIS, TimeUnit.MILLISECONDS);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }

                @Override
                public void cancel() {
                    cancelled.countDown();
                }
            });
        }

        /** Takes up to a thousand items. */
        @Method
        CompletableFuture<Long> take(Flow.Publisher<String> items) {
            return taken(items, 0);
        }

        /** Blocks at each item. */
        @Method
        CompletableFuture<Long> takeSlowly(Flow.Publisher<String> items) {
            return taken(items, PAUSE_MILLIS);
        }

        private static CompletableFuture<Long> taken(Flow.Publisher<String> items, long pauseMillis) {
            CompletableFuture<Long> all = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                private long count;

                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(1000);
                }

                @Override
                public void onNext(String item) {
                    count++;
                    try {
                        Thread.sleep(pauseMillis);
                    } catch (InterruptedException e) {
                        all.completeExceptionally(e);
                    }
                }

                @Override
                public void onError(Throwable thrown) {
                    all.completeExceptionally(thrown);
                }

                @Override
                public void onComplete() {
                    all.complete(count);
                }
            });
            return all;
        }
    }

    @RPCXClient(remoteServerName = "besieged")
    interface Calls {
        @Method(timeoutMillis = 200)
        CompletableFuture<String> hello(String name);

        @Method(timeoutMillis = 200)
        CompletableFuture<String> plain(String name);
    }

    public static void main(String[] args) throws Exception {
        Interceptor tokens = Tokens.requiring(name -> name.equals(NAME) ? SECRET : null);
        Server open = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .keepAlive(Duration.ofSeconds(2))
                .classic(true)
                // attackers have no token, so the work before a handler is under attack too
                .interceptor((call, next) ->
                        call.method().equals("hello") ? tokens.intercept(call, next) : next.proceed(call))
                .build()
                .start();
        Server locked = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .keepAlive(Duration.ofSeconds(2))
                .tls(Tls.server(Path.of(args[0]), Path.of(args[1])).requiringClientsOf(Path.of(args[2])))
                .build()
                .start();
        Server secured = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .keepAlive(Duration.ofSeconds(2))
                .tls(Tls.server(Path.of(args[0]), Path.of(args[1])))
                .build()
                .start();
        System.out.println(locked.port() + " " + open.port() + " " + secured.port());
        JvmProcess.answer(question -> switch (question) {
            case "audit" -> Ledger.auditAll().replace('\n', ';');
            case "state" -> state(open, locked, secured).toString();
            default -> throw new IllegalArgumentException(question);
        });
        open.stop(Duration.ofMillis(100));
        locked.stop(Duration.ofMillis(100));
        secured.stop(Duration.ofMillis(100));
    }

    private static State state(Server... servers) {
        System.gc();
        Runtime heap = Runtime.getRuntime();
        return new State(
                (int) Arrays.stream(servers)
                        .mapToLong(server -> server.core().ledger().held(Resource.CONNECTIONS))
                        .sum(),
                Arrays.stream(servers).mapToInt(each -> each.core().running()).sum(),
                ManagementFactory.getThreadMXBean().getThreadCount(),
                heap.totalMemory() - heap.freeMemory(),
                JvmProcess.cpuMillis());
    }
}
