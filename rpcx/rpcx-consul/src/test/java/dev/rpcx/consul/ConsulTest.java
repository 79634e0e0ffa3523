package dev.rpcx.consul;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests endpoints and registrations with a server that speaks the API as Consul's documentation shows it. */
@Timeout(120)
class ConsulTest {
    private static final int CALLERS = 2;

    @RPCXServer("counted")
    static final class Counted {
        final AtomicLong calls = new AtomicLong();

        @Method
        long count() {
            return calls.incrementAndGet();
        }
    }

    @RPCXClient(remoteServerName = "counted")
    interface Counting {
        long count();
    }

    private static final class Instance implements AutoCloseable {
        final Counted counted = new Counted();
        final Server server = Server.builder(RegistryServer.registry(counted))
                .host("127.0.0.1")
                .build()
                .start();
        final ConsulRegistration registration;

        Instance(AgentApi api) {
            registration = ConsulRegistration.of(api.uri(), null, "counted", new Endpoint("127.0.0.1", server.port()));
        }

        @Override
        public void close() {
            registration.close();
            // stop returns when the calls that others have made meanwhile have ended
            server.stop(Duration.ofSeconds(10));
        }
    }

    /** Keeps the lists and the failures that a watch has reported. */
    private static final class Heard implements Endpoints.Listener {
        final List<List<Endpoint>> found = new CopyOnWriteArrayList<>();
        final List<Throwable> failures = new CopyOnWriteArrayList<>();

        @Override
        public void found(List<Endpoint> all) {
            found.add(all);
        }

        @Override
        public void failed(Throwable why) {
            failures.add(why);
        }
    }

    private final AtomicBoolean stop = new AtomicBoolean();
    private final AtomicLong calls = new AtomicLong();
    private final ConcurrentLinkedQueue<RuntimeException> failures = new ConcurrentLinkedQueue<>();

    /** Writes a figure that {@code rpcx/reliability} reads and records. */
    private static void figure(String text) throws IOException {
        System.out.println("trust 13\t" + text);
        Files.writeString(
                Path.of("target", "reliability.txt"),
                "13\t" + text + "\n",
                StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
    }

    private void load(Counting counting) {
        while (!stop.get()) {
            try {
                counting.count();
                calls.incrementAndGet();
            } catch (RuntimeException e) {
                failures.add(e);
            }
        }
    }

    private static void awaitCalls(Instance instance) {
        long before = instance.counted.calls.get();
        await().atMost(Duration.ofSeconds(30))
                .pollInterval(Duration.ofMillis(5))
                .until(() -> instance.counted.calls.get() > before + 20);
    }

    private void awaitMoreCalls() {
        long before = calls.get();
        await().atMost(Duration.ofSeconds(30)).until(() -> calls.get() > before + 200);
    }

    @Test
    void callsGoOnWhileConsulIsGoneOrEmptyAndInstancesComeAndGo() throws Exception {
        List<Thread> callers = new ArrayList<>();
        try (AgentApi api = new AgentApi();
                Client client = Client.standard();
                Instance first = new Instance(api);
                Instance second = new Instance(api)) {
            first.registration.registered().get(30, TimeUnit.SECONDS);
            Counting counting = client.create(Counting.class, ConsulEndpoints.of(api.uri(), "counted"));
            for (int i = 0; i < CALLERS; i++) {
                Thread caller = new Thread(() -> load(counting));
                callers.add(caller);
                caller.start();
            }
            awaitCalls(first);
            awaitCalls(second);
            long came = System.nanoTime();
            long millis;
            try (Instance third = new Instance(api)) {
                await().pollInterval(Duration.ofMillis(2)).until(() -> third.counted.calls.get() > 0);
                millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - came);
                assertThat(millis).isLessThan(5000);
            }
            awaitMoreCalls();

            api.kill();
            awaitMoreCalls();
            api.lose(5);
            api.start();
            // the agent has forgotten both, and they register again
            await().atMost(Duration.ofSeconds(20)).until(() -> {
                awaitMoreCalls();
                return api.size() == 2;
            });
            awaitCalls(first);
            awaitCalls(second);
            stop.set(true);
            for (Thread caller : callers) {
                caller.join();
            }
            assertThat(failures).isEmpty();
            figure("Consul, from a server that speaks its API as documented: a new instance had its first call after "
                    + millis + " ms; Consul gone, then back without its data: " + calls.get() + " calls, failed: 0");
        } finally {
            stop.set(true);
        }
    }

    @Test
    void anAnswerIsReadAsTheDocumentationSays() throws Exception {
        try (AgentApi api = new AgentApi()) {
            api.put("a", "10.1.10.12", 8000, 10);
            api.put("b", "", 8001, 0);
            api.put("c", "10.1.10.13", 0, 1);
            Heard heard = new Heard();
            try (Endpoints.Watch watch =
                    ConsulEndpoints.of(api.uri(), "counted").token("secret").watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> heard.found.size() == 1 && api.asked.size() == 2);
                // an instance without an address is at that of its node, and one without a port cannot be called
                assertThat(heard.found.get(0))
                        .containsExactly(new Endpoint("10.1.10.12", 8000, 10), new Endpoint("127.0.0.1", 8001, 1));
                assertThat(new ArrayList<>(api.asked))
                        .containsExactly("passing=true secret", "passing=true&wait=30s&index=43 secret");

                // after an index that goes back, the watch begins anew; it must not ask with an index below 1
                api.touch(7);
                await().until(() -> api.asked.size() == 4);
                assertThat(new ArrayList<>(api.asked).get(2)).startsWith("passing=true secret");
                assertThat(new ArrayList<>(api.asked).get(3)).contains("index=7 ");
                api.touch(0);
                await().until(() -> api.asked.size() >= 6);
                assertThat(new ArrayList<>(api.asked).get(5)).contains("index=1 ");
                assertThat(heard.failures).isEmpty();
            }
        }
    }

    @Test
    void aServiceThatChangesAllTheTimeIsAskedForLessOften() throws Exception {
        try (AgentApi api = new AgentApi()) {
            Heard heard = new Heard();
            try (Endpoints.Watch watch =
                    ConsulEndpoints.of(api.uri(), "counted").watch(heard)) {
                assertThat(watch).isNotNull();
                long begin = System.nanoTime();
                await().pollInterval(Duration.ofMillis(2)).until(() -> {
                    api.put("a", "10.1.10.12", 8000, 1);
                    return api.asked.size() >= 3 && System.nanoTime() - begin > TimeUnit.MILLISECONDS.toNanos(1200);
                });
                int asked = api.asked.size();
                // the watch asks five times at once, then twice a second, however often the service changes
                long allowed = 7 + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin) / 500;
                assertThat(asked).isBetween(3, (int) allowed);
            }
        }
    }

    @Test
    void anEntrySaysWhatConsulAsksForAndIsTakenBack() throws Exception {
        try (AgentApi api = new AgentApi()) {
            ConsulRegistration registration =
                    ConsulRegistration.of(api.uri(), "secret", "counted", new Endpoint("10.0.0.9", 9000, 3));
            registration.registered().get(10, TimeUnit.SECONDS);
            assertThat(api.service("counted-10.0.0.9-9000")).hasToString("""
                    {"ID":"counted-10.0.0.9-9000","Name":"counted","Address":"10.0.0.9","Port":9000,\
                    "Weights":{"Passing":3,"Warning":1},"Check":{"CheckID":"service:counted-10.0.0.9-9000","TTL":"10s",\
                    "Status":"passing","DeregisterCriticalServiceAfter":"1m"}}""");
            registration.close();
            assertThat(api.size()).isZero();
        }
    }

    @Test
    void whatIsMissingIsSaid() {
        assertThatThrownBy(() -> ConsulEndpoints.of("")).hasMessageContaining("service");
        ConsulEndpoints one = ConsulEndpoints.of("greeter").token("t");
        assertThat(one)
                .isEqualTo(ConsulEndpoints.of("greeter").token("t"))
                .hasToString("http://127.0.0.1:8500/greeter")
                .isNotEqualTo(ConsulEndpoints.of("greeter"));
    }
}
