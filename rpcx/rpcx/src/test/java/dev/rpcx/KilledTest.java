package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAccumulator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests three processes of one service that are killed with -9, one after the other, under load. */
@Timeout(900)
class KilledTest {
    private static final int INSTANCES = 3;
    private static final int KILLS = INSTANCES * LongForm.of(1, 100);
    private static final int CALLERS = 8;

    @TempDir
    Path folder;

    private final AtomicBoolean stop = new AtomicBoolean();
    private final AtomicLong numbers = new AtomicLong();
    private final AtomicLong succeeded = new AtomicLong();
    private final LongAccumulator slowestNanos = new LongAccumulator(Math::max, 0);
    private final ConcurrentLinkedQueue<RPCXException> hidden = new ConcurrentLinkedQueue<>();
    private final Map<Long, RPCXException.Executed> marks = new ConcurrentHashMap<>();
    private final ConcurrentLinkedQueue<Long> returned = new ConcurrentLinkedQueue<>();
    private final AtomicLongArray latest = new AtomicLongArray(CALLERS);

    private Path file(int instance) {
        return folder.resolve("journal-" + instance);
    }

    private JvmProcess start(int instance, int port) throws Exception {
        return JvmProcess.start(
                List.of("-XX:TieredStopAtLevel=1", "-Xmx64m"),
                Journal.class,
                Integer.toString(port),
                file(instance).toString());
    }

    @Test
    void onlyCallsInFlightAreLostAndEachSaysWhetherItWasExecuted() throws Exception {
        List<JvmProcess> processes = new ArrayList<>();
        try (Client client = Client.standard()) {
            for (int i = 0; i < INSTANCES; i++) {
                processes.add(start(i, 0));
            }
            Endpoint[] endpoints = new Endpoint[INSTANCES];
            for (int i = 0; i < INSTANCES; i++) {
                endpoints[i] = new Endpoint("127.0.0.1", processes.get(i).port());
            }
            Journal.Writing writing = client.create(Journal.Writing.class, Endpoints.of(endpoints));
            List<Thread> callers = new ArrayList<>();
            for (int i = 0; i < CALLERS; i++) {
                int caller = i;
                Thread thread = new Thread(() -> call(caller, writing));
                thread.start();
                callers.add(thread);
            }
            awaitEachCalled();
            for (int kill = 0; kill < KILLS; kill++) {
                int instance = kill % INSTANCES;
                processes.get(instance).kill();
                awaitEachCalled();
                processes.set(instance, start(instance, endpoints[instance].port()));
                processes.get(instance).port();
                long size = java.nio.file.Files.size(file(instance));
                await().atMost(Duration.ofSeconds(20))
                        .pollInterval(Duration.ofMillis(5))
                        .until(() -> java.nio.file.Files.size(file(instance)) > size + 20 * Long.BYTES);
            }
            stop.set(true);
            for (Thread caller : callers) {
                caller.join();
            }
        } finally {
            stop.set(true);
            for (JvmProcess process : processes) {
                process.close();
            }
        }
        check();
    }

    /** Waits until each caller has had an answer since this method began. */
    private void awaitEachCalled() {
        long now = System.nanoTime();
        await().atMost(Duration.ofSeconds(20))
                .pollInterval(Duration.ofMillis(2))
                .until(() -> {
                    for (int i = 0; i < CALLERS; i++) {
                        if (latest.get(i) - now <= 0) {
                            return false;
                        }
                    }
                    return true;
                });
    }

    private void call(int caller, Journal.Writing writing) {
        while (!stop.get()) {
            long number = numbers.getAndIncrement();
            long begin = System.nanoTime();
            boolean idempotent = caller % 2 == 0;
            try {
                long reply = idempotent ? writing.writeAgain(number) : writing.write(number);
                assertThat(reply).isEqualTo(number);
                succeeded.incrementAndGet();
                returned.add(number);
                latest.set(caller, System.nanoTime());
            } catch (RPCXException e) {
                if (idempotent) {
                    hidden.add(e);
                } else {
                    marks.put(number, e.executed());
                }
            }
            slowestNanos.accumulate(System.nanoTime() - begin);
        }
    }

    private void check() throws Exception {
        Map<Long, Integer> executed = new HashMap<>();
        for (int i = 0; i < INSTANCES; i++) {
            Journal.read(file(i)).forEach((number, times) -> executed.merge(number, times, Integer::sum));
        }
        Map<RPCXException.Executed, Long> by = new java.util.EnumMap<>(RPCXException.Executed.class);
        marks.values().forEach(mark -> by.merge(mark, 1L, Long::sum));
        LongForm.figure(
                5,
                "%d times kill -9 of one of %d processes under load: %d calls, of idempotent ones %d failed, of others %s; slowest call %d ms",
                KILLS,
                INSTANCES,
                succeeded.get(),
                hidden.size(),
                by,
                TimeUnit.NANOSECONDS.toMillis(slowestNanos.get()));
        assertThat(hidden).as("idempotent calls are made again").isEmpty();
        assertThat(returned).allSatisfy(number -> assertThat(executed).containsKey(number));
        // no more calls have failed than the callers had in flight at each kill
        assertThat(marks.size()).isLessThanOrEqualTo(KILLS * CALLERS / 2);
        marks.forEach((number, mark) -> {
            switch (mark) {
                case NOT_EXECUTED -> assertThat(executed).doesNotContainKey(number);
                case EXECUTED -> assertThat(executed).containsKey(number);
                case MAYBE -> {}
            }
        });
        // fail-over: nobody has waited until the time of its call was over, or nearly so
        assertThat(slowestNanos.get()).isLessThan(TimeUnit.MILLISECONDS.toNanos(Journal.CALL_MILLIS / 2));
    }
}
