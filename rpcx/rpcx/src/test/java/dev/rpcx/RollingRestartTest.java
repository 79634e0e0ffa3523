package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests three instances that are restarted one after the other under load. No call fails. The long form restarts them a
 * hundred times.
 */
@Timeout(600)
class RollingRestartTest {
    private static final int TIMES = LongForm.of(3, 100);
    private static final int INSTANCES = 3;
    private static final int CALLERS = 6;

    private final AtomicBoolean stop = new AtomicBoolean();
    private final AtomicLong calls = new AtomicLong();
    private final ConcurrentLinkedQueue<RuntimeException> failures = new ConcurrentLinkedQueue<>();

    @Test
    void restartsUnderLoadFailNoCall() throws Exception {
        try (Instances instances = new Instances(INSTANCES);
                Client client = Client.standard()) {
            Instances.Who who = client.create(Instances.Who.class, Endpoints.of(instances.endpoints()));
            List<Thread> callers = new ArrayList<>();
            for (int i = 0; i < CALLERS; i++) {
                boolean later = i % 2 == 0;
                Thread caller = new Thread(() -> call(who, later));
                caller.start();
                callers.add(caller);
            }
            for (int restart = 0; restart < TIMES * INSTANCES; restart++) {
                int instance = restart % INSTANCES;
                instances.restart(instance);
                // the next instance is restarted only when this one takes calls again, which is what makes the restart
                // a rolling one
                long before = instances.services.get(instance).executed.get();
                await().atMost(Duration.ofSeconds(5))
                        .pollInterval(Duration.ofMillis(2))
                        .until(() ->
                                instances.services.get(instance).executed.get() > before + 20 || !failures.isEmpty());
            }
            stop.set(true);
            for (Thread caller : callers) {
                caller.join();
            }
            LongForm.figure(
                    6,
                    "%d times each of %d instances restarted, one after the other, under load: %d calls, failed: %d",
                    TIMES,
                    INSTANCES,
                    calls.get(),
                    failures.size());
            assertThat(failures).isEmpty();
            assertThat(instances.executed()).isEqualTo(calls.get());
        }
    }

    private void call(Instances.Who who, boolean later) {
        while (!stop.get()) {
            try {
                if (later) {
                    who.whoLater("key").join();
                } else {
                    who.who("key");
                }
                calls.incrementAndGet();
            } catch (RuntimeException e) {
                failures.add(e);
            }
        }
    }
}
