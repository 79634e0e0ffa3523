package dev.rpcx;

import static dev.rpcx.Race.expect;
import static dev.rpcx.Race.together;

import dev.rpcx.internal.call.SerialExecutor;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.client.CallSlots;
import dev.rpcx.internal.client.ClientCall;
import dev.rpcx.internal.io.FoundSocket;
import dev.rpcx.internal.io.WriteTurn;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.VirtualWorkers;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Outbox;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.unix.Socket;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Runs small races of two or three threads on the classes that threads share without locks, or with few locks. Each
 * race is run some hundred times, and the system schedules the threads. {@code -Drpcx.races.rounds} sets the number of
 * rounds.
 */
@Timeout(3600)
class RacesTest {
    private static final int ROUNDS = Integer.getInteger("rpcx.races.rounds", LongForm.of(300, 100_000));

    private static void race(Runnable world) {
        for (int i = 0; i < ROUNDS; i++) {
            world.run();
        }
    }

    // ---- CallSlots

    @Test
    void aSlotIsHadByOneCallAtATimeAlsoWhileSlotsAreTrimmed() {
        race(new Runnable() {
            @Override
            public void run() {
                CallSlots slots = new CallSlots(null);
                slots.limit(2);
                AtomicIntegerArray had = new AtomicIntegerArray(2);
                Runnable taker = new Runnable() {
                    @Override
                    public void run() {
                        for (int i = 0; i < 2; i++) {
                            ClientCall call;
                            try {
                                call = slots.acquire(0);
                            } catch (RPCXException full) {
                                continue;
                            }
                            expect(had.incrementAndGet(call.slot) == 1, "a slot had twice");
                            had.decrementAndGet(call.slot);
                            slots.release(call);
                        }
                    }
                };
                together(taker, taker, new Runnable() {
                    @Override
                    public void run() {
                        slots.trim();
                    }
                });
                expect(slots.acquire(0).slot != slots.acquire(0).slot, "a slot was lost, or is there twice");
            }
        });
    }

    @Test
    void aCallIsRefusedOnlyWhereAllSlotsAreHad() {
        race(new Runnable() {
            @Override
            public void run() {
                CallSlots slots = new CallSlots(null);
                slots.limit(2);
                slots.release(slots.acquire(0));
                // two callers take one of two slots each, and both get one whatever trim does meanwhile
                Runnable taker = new Runnable() {
                    @Override
                    public void run() {
                        slots.release(slots.acquire(0));
                    }
                };
                together(taker, taker, new Runnable() {
                    @Override
                    public void run() {
                        slots.trim();
                    }
                });
            }
        });
    }

    // ---- Outbox

    @Test
    void whatIsAddedToTheOutboxIsPolledOnceAndInItsThreadsOrder() {
        race(new Runnable() {
            @Override
            public void run() {
                Outbox outbox = new Outbox();
                List<Integer> polled = new ArrayList<>();
                together(
                        new Runnable() {
                            @Override
                            public void run() {
                                add(outbox, 10, 11);
                            }
                        },
                        new Runnable() {
                            @Override
                            public void run() {
                                add(outbox, 20, 21);
                            }
                        },
                        new Runnable() {
                            @Override
                            public void run() {
                                for (int i = 0; i < 3; i++) {
                                    poll(outbox, polled);
                                }
                            }
                        });
                while (poll(outbox, polled)) {
                    // the loop ends when nothing is left
                }
                expect(polled.size() == 4, "polled " + polled);
                expect(
                        polled.indexOf(10) < polled.indexOf(11) && polled.indexOf(20) < polled.indexOf(21),
                        "in " + polled);
                expect(polled.contains(10) && polled.contains(20), "polled " + polled);
            }
        });
    }

    private static void add(Outbox outbox, int... ids) {
        for (int id : ids) {
            outbox.add(Outbound.Control.empty(0, id));
        }
    }

    private static boolean poll(Outbox outbox, List<Integer> polled) {
        Outbound message = outbox.poll();
        if (message != null) {
            polled.add(message.id);
        }
        return message != null;
    }

    // ---- WriteTurn

    /** Returns a turn that its loop has given to whoever comes, as if it had found a socket. */
    private static WriteTurn freeTurn(EmbeddedChannel channel) {
        WriteTurn turn = new WriteTurn(channel, new ChannelInboundHandlerAdapter());
        FoundSocket.give(turn, SOCKET);
        turn.loopDone();
        return turn;
    }

    /** Nothing is written to it. */
    private static final Socket SOCKET = Epoll.isAvailable() ? Socket.newSocketStream() : null;

    private static final EmbeddedChannel CHANNEL = new EmbeddedChannel();

    @Test
    void oneThreadAtATimeWritesAndTheLoopIsWokenIfItWasRefused() {
        Assumptions.assumeTrue(SOCKET != null, "threads write themselves on Linux only");
        race(new Runnable() {
            @Override
            public void run() {
                WriteTurn turn = freeTurn(CHANNEL);
                AtomicInteger writers = new AtomicInteger();
                AtomicInteger refused = new AtomicInteger();
                AtomicInteger woken = new AtomicInteger();
                Runnable caller = new Runnable() {
                    @Override
                    public void run() {
                        if (turn.takeForCaller()) {
                            expect(writers.incrementAndGet() == 1, "two write");
                            writers.decrementAndGet();
                            if (turn.callerDone()) {
                                woken.incrementAndGet();
                            }
                        }
                    }
                };
                together(caller, caller, new Runnable() {
                    @Override
                    public void run() {
                        if (turn.takeForLoop()) {
                            expect(writers.incrementAndGet() == 1, "two write");
                            writers.decrementAndGet();
                            turn.loopDone();
                        } else {
                            refused.incrementAndGet();
                        }
                    }
                });
                expect(refused.get() == 0 || woken.get() > 0, "the loop was refused and nobody wakes it");
                expect(turn.takeForLoop(), "nobody writes, and the loop is refused");
            }
        });
    }

    @Test
    void nobodyWritesOnceTheTurnHasEnded() {
        Assumptions.assumeTrue(SOCKET != null, "threads write themselves on Linux only");
        race(new Runnable() {
            @Override
            public void run() {
                WriteTurn turn = freeTurn(CHANNEL);
                AtomicInteger ended = new AtomicInteger();
                Runnable caller = new Runnable() {
                    @Override
                    public void run() {
                        if (turn.takeForCaller()) {
                            expect(ended.get() == 0, "a thread writes to a socket that is closed");
                            turn.callerDone();
                        }
                    }
                };
                together(caller, caller, new Runnable() {
                    @Override
                    public void run() {
                        turn.end();
                        ended.set(1);
                    }
                });
                expect(!turn.takeForCaller(), "a caller has the turn after its end");
                expect(turn.bufferBytes() == 0, "a buffer to which nobody writes any more is kept");
            }
        });
    }

    // ---- AdmissionLimit

    @Test
    void handlersAreCountedOnceInAndOnceOut() {
        race(new Runnable() {
            @Override
            public void run() {
                AtomicInteger all = new AtomicInteger();
                AdmissionLimit.Group one = new AdmissionLimit(AdmissionLimit.MIN_LIMIT, all, 0).group(0);
                AdmissionLimit.Group other = new AdmissionLimit(AdmissionLimit.MIN_LIMIT, all, 0).group(0);
                AtomicInteger inside = new AtomicInteger();
                for (int i = 0; i < AdmissionLimit.MIN_LIMIT - 1; i++) {
                    expect(one.admit(), "refused below the limit");
                }
                Runnable caller = new Runnable() {
                    @Override
                    public void run() {
                        enterAndLeave(one, inside);
                    }
                };
                together(caller, caller, new Runnable() {
                    @Override
                    public void run() {
                        enterAndLeave(other, inside);
                    }
                });
                for (int i = 0; i < AdmissionLimit.MIN_LIMIT - 1; i++) {
                    one.release(0, 100, 50, true);
                }
                expect(all.get() == 0 && one.running() == 0 && other.running() == 0, "left: " + all);
            }
        });
    }

    private static void enterAndLeave(AdmissionLimit.Group limit, AtomicInteger inside) {
        if (limit.admit()) {
            expect(inside.incrementAndGet() == 1, "more than the limit");
            inside.decrementAndGet();
            limit.release(0, 100, 50, true);
        }
    }

    // ---- Ledger

    @Test
    void whatIsChargedIsReleasedAndNothingGoesBelowZero() {
        race(new Runnable() {
            @Override
            public void run() {
                Map<Resource, Long> most = new EnumMap<>(Resource.class);
                most.put(Resource.CALLS, 4L);
                most.put(Resource.CONNECTIONS, 2L);
                Ledger ledger = new Ledger("races", most, Map.of(Resource.CALLS, 3L), 2);
                AtomicInteger refused = new AtomicInteger();
                Runnable peer = new Runnable() {
                    @Override
                    public void run() {
                        Account account = ledger.open(new java.net.InetSocketAddress("127.0.0.1", 1));
                        if (account == null) {
                            refused.incrementAndGet();
                            return;
                        }
                        Charge calls = account.charge(Resource.CALLS);
                        if (calls.add(2)) {
                            calls.release(1);
                        }
                        calls.add(1);
                        expect(
                                ledger.held(Resource.CALLS) >= calls.held(),
                                "the ledger has less than one of its charges");
                        account.close();
                        expect(account.held(Resource.CALLS) == calls.held(), "an account has other than its charge");
                        calls.release();
                    }
                };
                together(peer, peer);
                expect(refused.get() == 0, "two places for two connections, and one was refused");
                expect(ledger.held(Resource.CALLS) == 0 && ledger.held(Resource.CONNECTIONS) == 0, "left");
                expect(ledger.audit().isEmpty(), ledger.audit());
            }
        });
    }

    // ---- streams

    @Test
    void signalsOfOneStreamComeOneAfterTheOtherAndInOrder() {
        race(new Runnable() {
            @Override
            public void run() {
                SerialExecutor signals = new SerialExecutor(HERE);
                AtomicInteger inside = new AtomicInteger();
                List<Integer> told = new ArrayList<>();
                together(
                        new Runnable() {
                            @Override
                            public void run() {
                                signal(signals, inside, told, 10, 11);
                            }
                        },
                        new Runnable() {
                            @Override
                            public void run() {
                                signal(signals, inside, told, 20, 21);
                            }
                        });
                expect(told.size() == 4, "told " + told);
                expect(told.indexOf(10) < told.indexOf(11) && told.indexOf(20) < told.indexOf(21), "told " + told);
            }
        });
    }

    private static final Executor HERE = new Executor() {
        @Override
        public void execute(Runnable task) {
            task.run();
        }
    };

    private static void signal(SerialExecutor signals, AtomicInteger inside, List<Integer> told, int... all) {
        for (int each : all) {
            signals.execute(new Runnable() {
                @Override
                public void run() {
                    expect(inside.incrementAndGet() == 1, "two signals at once");
                    told.add(each);
                    inside.decrementAndGet();
                }
            });
        }
    }

    @Test
    void whatASubscriberAsksForIsTheCreditThatItsPeerHas() {
        race(new Runnable() {
            @Override
            public void run() {
                AtomicLong credit = new AtomicLong();
                StreamReceiver receiver = new StreamReceiver(null, new StreamReceiver.Peer() {
                    @Override
                    public void credit(long items) {
                        credit.addAndGet(items);
                    }

                    @Override
                    public void cancel() {}
                });
                receiver.begin(new FuzzService.Taker(1));
                together(
                        new Runnable() {
                            @Override
                            public void run() {
                                receiver.open();
                            }
                        },
                        new Runnable() {
                            @Override
                            public void run() {
                                receiver.request(2);
                            }
                        },
                        new Runnable() {
                            @Override
                            public void run() {
                                receiver.request(4);
                            }
                        });
                expect(credit.get() == 7, "credit of " + credit + " for 7 items");
            }
        });
    }

    @Test
    void aStreamEndsOnceWhoeverEndsIt() {
        race(new Runnable() {
            @Override
            public void run() {
                FuzzService.Taker taker = new FuzzService.Taker(1);
                StreamReceiver receiver = new StreamReceiver(null, new StreamReceiver.Peer() {
                    @Override
                    public void credit(long items) {}

                    @Override
                    public void cancel() {}
                });
                receiver.begin(taker);
                together(
                        new Runnable() {
                            @Override
                            public void run() {
                                receiver.open();
                            }
                        },
                        new Runnable() {
                            @Override
                            public void run() {
                                receiver.onEnd();
                            }
                        },
                        new Runnable() {
                            @Override
                            public void run() {
                                receiver.end(new IllegalStateException("lost"));
                            }
                        });
                expect(taker.count.isDone(), "a stream that was not told its end");
            }
        });
    }

    // ---- VirtualWorkers

    private static Thread startThread(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** The first call waits for the last: if one were lost, or waited for another's handler, this would never end. */
    @Test
    void noCallIsLostAndNoneWaitsForAnothersHandler() {
        race(new Runnable() {
            @Override
            public void run() {
                VirtualWorkers workers = new VirtualWorkers(RacesTest::startThread, Ticker.systemTicker());
                CountDownLatch last = new CountDownLatch(1);
                CountDownLatch all = new CountDownLatch(3);
                workers.run(new Runnable() {
                    @Override
                    public void run() {
                        await(last);
                        all.countDown();
                    }
                });
                workers.run(new Runnable() {
                    @Override
                    public void run() {
                        all.countDown();
                    }
                });
                workers.run(new Runnable() {
                    @Override
                    public void run() {
                        last.countDown();
                        all.countDown();
                    }
                });
                await(all);
                workers.close();
            }
        });
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
