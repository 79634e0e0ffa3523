package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.call.StreamsTest.Collected;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests that no stream ends normally with items missing, whatever its publisher does: either the reader gets all items,
 * or the stream ends with an error that has a code and a text.
 */
@Timeout(120)
class NeverShortTest {
    private static final int COUNT = 40;
    private static final int ROUNDS = 30;

    /** One subscription to a publisher that may break the rules of Reactive Streams. */
    private static final class Making {
        private static final int NEVER = -1;

        private final Flow.Subscriber<? super Integer> to;
        private final AtomicInteger made = new AtomicInteger();

        /** Number of items that a normal end has to bring; {@link #NEVER} if there must be no normal end. */
        private final AtomicInteger owed = new AtomicInteger(NEVER);

        Making(Flow.Subscriber<? super Integer> to) {
            this.to = to;
        }

        void make(int from, int until) {
            for (int i = from; i < until; i++) {
                to.onNext(i);
                made.incrementAndGet();
            }
        }

        void makeNull() {
            to.onNext(null);
            made.incrementAndGet();
        }

        void end() {
            owed.compareAndSet(NEVER, made.get());
            to.onComplete();
        }

        /** Ends the stream in spite of a failure, after which no end is a good one. */
        void endBadly() {
            to.onComplete();
        }

        void together(Runnable task) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Thread thread = new Thread(task, "publisher");
                threads.add(thread);
                thread.start();
            }
            for (Thread thread : threads) {
                try {
                    thread.join();
                } catch (InterruptedException e) {
                    // the stream has been cancelled, and the threads end by themselves
                }
            }
        }
    }

    /** A subscription that does nothing. */
    private abstract static class Asked implements Flow.Subscription {
        @Override
        public void request(long items) {}

        @Override
        public void cancel() {}
    }

    /** What a publisher can do wrong, and once what is right. */
    private enum Publisher {
        WITHOUT_FAULT {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {
                    private int next;

                    @Override
                    public synchronized void request(long items) {
                        int until = (int) Math.min(COUNT, next + items);
                        int from = next;
                        next = until;
                        making.make(from, until);
                        if (from < COUNT && until == COUNT) {
                            making.end();
                        }
                    }
                });
            }
        },
        EAGER {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {});
                making.make(0, COUNT);
                making.end();
            }
        },
        EAGER_BEFORE_ITS_SUBSCRIPTION {
            @Override
            void subscribe(Making making) {
                making.make(0, COUNT);
                making.to.onSubscribe(new Asked() {});
                making.end();
            }
        },
        EAGER_WITHOUT_SUBSCRIPTION {
            @Override
            void subscribe(Making making) {
                making.make(0, COUNT);
                making.end();
            }
        },
        MORE_THAN_ASKED_FOR {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {
                    private int next;

                    @Override
                    public synchronized void request(long items) {
                        int from = next;
                        next = (int) Math.min(COUNT, next + items + 1);
                        making.make(from, next);
                        if (from < COUNT && next == COUNT) {
                            making.end();
                        }
                    }
                });
            }
        },
        GOES_ON_AFTER_CANCEL {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {
                    @Override
                    public void request(long items) {
                        making.make(0, (int) Math.min(COUNT / 2, items + 1));
                    }

                    @Override
                    public void cancel() {
                        making.make(COUNT / 2, COUNT);
                        making.end();
                    }
                });
            }
        },
        ENDS_TWICE {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {
                    private boolean hasEnded;

                    @Override
                    public synchronized void request(long items) {
                        if (!hasEnded) {
                            hasEnded = true;
                            making.make(0, 1);
                            making.end();
                            making.end();
                        }
                    }
                });
            }
        },
        ON_SEVERAL_THREADS {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {});
                making.together(() -> making.make(0, COUNT));
                making.end();
            }
        },
        ON_SEVERAL_THREADS_THAT_EACH_END {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {});
                making.together(() -> {
                    making.make(0, 1);
                    making.end();
                });
            }
        },
        NULL_ITEM {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {
                    private boolean hasMade;

                    @Override
                    public synchronized void request(long items) {
                        if (!hasMade) {
                            hasMade = true;
                            making.makeNull();
                            making.end();
                        }
                    }
                });
            }
        },
        THROWS_IN_REQUEST {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {
                    @Override
                    public void request(long items) {
                        throw new IllegalStateException("no items today");
                    }

                    @Override
                    public void cancel() {
                        making.endBadly();
                    }
                });
            }
        },
        THROWS_IN_SUBSCRIBE {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {});
                throw new IllegalStateException("no subscription today");
            }
        },
        FAILS_AND_ENDS {
            @Override
            void subscribe(Making making) {
                making.to.onSubscribe(new Asked() {
                    @Override
                    public void request(long items) {
                        making.to.onError(new IllegalStateException("not all items"));
                        making.endBadly();
                    }
                });
            }
        };

        abstract void subscribe(Making making);
    }

    /** A stream of the given publisher, which remembers its subscription. */
    private static final class Stream implements Flow.Publisher<Integer> {
        private final Publisher publisher;
        private final CompletableFuture<Making> making = new CompletableFuture<>();

        Stream(Publisher publisher) {
            this.publisher = publisher;
        }

        @Override
        public void subscribe(Flow.Subscriber<? super Integer> subscriber) {
            Making begun = new Making(subscriber);
            making.complete(begun);
            publisher.subscribe(begun);
        }
    }

    @RPCXServer("short")
    static final class Service {
        final LinkedBlockingQueue<Stream> made = new LinkedBlockingQueue<>();
        final LinkedBlockingQueue<Collected<Integer>> taken = new LinkedBlockingQueue<>();

        @Method
        Flow.Publisher<Integer> make(String publisher) {
            Stream stream = new Stream(Publisher.valueOf(publisher));
            made.add(stream);
            return stream;
        }

        @Method
        CompletableFuture<Integer> take(Flow.Publisher<Integer> items) {
            Collected<Integer> collected = new Collected<>(7);
            taken.add(collected);
            items.subscribe(collected);
            return collected.end.thenApply(List::size);
        }
    }

    @RPCXClient(remoteServerName = "short")
    interface ServiceClient {
        Flow.Publisher<Integer> make(String publisher);

        CompletableFuture<Integer> take(Flow.Publisher<Integer> items);
    }

    private final Service service = new Service();
    private final Server server = new Server(0, RegistryServer.registry(service)).start();
    private final Client client = Client.standard();
    private final ServiceClient calls = client.create(ServiceClient.class, "127.0.0.1", server.port());

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    /** Asserts that a stream has ended with all items that its publisher owed, or with an error. */
    private static void assertNotShort(Making making, CompletableFuture<List<Integer>> end) throws Exception {
        try {
            List<Integer> items = end.get(30, TimeUnit.SECONDS);
            assertThat(making.owed.get()).as("a normal end").isNotEqualTo(Making.NEVER);
            assertThat(items.size()).as("items that arrived").isGreaterThanOrEqualTo(making.owed.get());
        } catch (ExecutionException e) {
            assertThat(RPCXException.cause(e.getCause()))
                    .isInstanceOfSatisfying(
                            RPCXException.class,
                            error -> assertThat(error.getMessage()).isNotBlank());
        }
    }

    @ParameterizedTest
    @EnumSource(Publisher.class)
    void aStreamOfAHandlerBringsAllItemsOrAnError(Publisher publisher) throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            Collected<Integer> collected = new Collected<>(7);
            calls.make(publisher.name()).subscribe(collected);
            Making making = service.made.take().making.get(30, TimeUnit.SECONDS);
            assertNotShort(making, collected.end);
            if (publisher == Publisher.WITHOUT_FAULT) {
                assertThat(collected.all()).hasSize(COUNT);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Publisher.class)
    void aStreamOfACallerBringsAllItemsOrAnError(Publisher publisher) throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            Stream stream = new Stream(publisher);
            CompletableFuture<Integer> call = calls.take(stream);
            CompletableFuture<Void> ended = call.handle((count, thrown) -> null);
            ended.get(30, TimeUnit.SECONDS);
            Making making = stream.making.get(30, TimeUnit.SECONDS);
            assertNotShort(making, call.thenApply(count -> Collections.nCopies(count, 0)));
            // a call that fails at once may never have reached its handler
            for (Collected<Integer> taken = service.taken.poll(); taken != null; taken = service.taken.poll()) {
                assertNotShort(making, taken.end);
            }
            if (publisher == Publisher.WITHOUT_FAULT) {
                assertThat(call).isCompletedWithValue(COUNT);
            }
        }
    }
}
