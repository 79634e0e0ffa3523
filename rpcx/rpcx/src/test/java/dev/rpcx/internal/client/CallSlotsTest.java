package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.LongForm;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.wire.Wire;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests replies, time-outs, cancels, interrupts and lost connections that come at the same time. Every call ends with
 * its own reply or an error. {@code -Drpcx.stress.calls} sets the number of calls. {@code -Drpcx.stress.ids} sets how
 * many times the test of the slots alone takes a slot.
 */
@Timeout(value = 1, unit = TimeUnit.HOURS)
class CallSlotsTest {
    private static final int CALLERS = 24;

    @RPCXServer("echo")
    static final class Echo {
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        long inline(long number) {
            return number;
        }

        @Method
        long virtual(long number) throws InterruptedException {
            if (number % 61 == 0) {
                // the handler takes about as long as the shortest time-out, so that reply and time-out meet
                TimeUnit.MICROSECONDS.sleep(ThreadLocalRandom.current().nextInt(3000));
            }
            return number;
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        long inline(long number);

        @Method(timeoutMillis = 2)
        long virtual(long number);

        @Method("virtual")
        CompletableFuture<Long> later(long number);
    }

    @Test
    void noSlotIsHadTwiceAndNoIdTwiceInARow() throws Exception {
        long ids = Long.getLong("rpcx.stress.ids", LongForm.of(2_000_000, 1_000_000_000));
        int takers = 4;
        CallSlots slots = new CallSlots(null);
        AtomicIntegerArray isTaken = new AtomicIntegerArray(Wire.MAX_SLOTS);
        int[] lastId = new int[Wire.MAX_SLOTS];
        ExecutorService threads = Executors.newFixedThreadPool(takers);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int taker = 0; taker < takers; taker++) {
                all.add(threads.submit(() -> {
                    // each thread holds several slots, which so come back in another order than they were taken
                    ClientCall[] held = new ClientCall[3];
                    for (long i = 0; i < ids / takers; i++) {
                        int place = (int) (i % held.length);
                        if (held[place] != null) {
                            giveBack(held[place], slots, isTaken);
                        }
                        ClientCall call = slots.acquire(0);
                        if (isTaken.getAndSet(call.slot, 1) != 0) {
                            throw new AssertionError("slot " + call.slot + " was had twice");
                        }
                        int generation = call.id & ~Wire.SLOT_MASK;
                        if ((call.id & Wire.SLOT_MASK) != call.slot
                                || generation == 0
                                || call.id == lastId[call.slot]) {
                            throw new AssertionError("id " + call.id + " after " + lastId[call.slot]);
                        }
                        lastId[call.slot] = call.id;
                        held[place] = call;
                    }
                    for (ClientCall call : held) {
                        giveBack(call, slots, isTaken);
                    }
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
        } finally {
            threads.shutdownNow();
        }
        assertThat(slots.createdCount()).isLessThanOrEqualTo(3 * takers);
        LongForm.figure(
                12, "%d ids of one connection by %d threads: no slot had twice, no id twice in a row", ids, takers);
    }

    private static void giveBack(ClientCall call, CallSlots slots, AtomicIntegerArray isTaken) {
        isTaken.set(call.slot, 0);
        slots.release(call);
    }

    @Test
    void everyCallEndsAndNoReplyMeetsAnotherCaller() throws Exception {
        long calls = Long.getLong("rpcx.stress.calls", LongForm.of(60_000, 2_000_000));
        Server server = new Server(0, RegistryServer.registry(new Echo())).start();
        ExecutorService callers = Executors.newFixedThreadPool(CALLERS);
        AtomicLong next = new AtomicLong();
        AtomicLong replied = new AtomicLong();
        AtomicLong failed = new AtomicLong();
        try (Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < CALLERS; i++) {
                all.add(callers.submit(() -> {
                    for (long number = next.getAndIncrement(); number < calls; number = next.getAndIncrement()) {
                        one(echo, number, replied, failed);
                        if (number % 20_011 == 0) {
                            Inside.core(client).dropConnections();
                        }
                    }
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
            assertThat(replied.get() + failed.get()).isEqualTo(calls);
            assertThat(replied.get()).isGreaterThan(calls / 2);
            LongForm.figure(
                    12,
                    "%d calls of %d callers with time-outs, cancels, interrupts and cut connections: %d replied, %d failed, 0 met another",
                    calls,
                    CALLERS,
                    replied.get(),
                    failed.get());
            // every slot is free again: all of them can be had once more
            for (int i = 0; i < 2 * CALLERS; i++) {
                assertThat(echo.inline(i)).isEqualTo(i);
            }
        } finally {
            callers.shutdownNow();
            server.stop(Duration.ofMillis(500));
        }
    }

    private static void one(EchoClient echo, long number, AtomicLong replied, AtomicLong failed) {
        try {
            long reply;
            if (number % 7 == 0) {
                CompletableFuture<Long> later = echo.later(number);
                if (number % 14 == 0) {
                    later.cancel(true);
                }
                reply = later.join();
            } else if (number % 3 == 0) {
                reply = echo.inline(number);
            } else {
                if (number % 97 == 0) {
                    Thread.currentThread().interrupt();
                }
                reply = echo.virtual(number);
            }
            if (reply != number) {
                throw new AssertionError("reply " + reply + " for call " + number);
            }
            replied.incrementAndGet();
        } catch (RPCXException
                | java.util.concurrent.CancellationException
                | java.util.concurrent.CompletionException e) {
            failed.incrementAndGet();
        } finally {
            Thread.interrupted();
        }
    }
}
