package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.HandPlatform;
import dev.rpcx.RunOn;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import io.netty.channel.embedded.EmbeddedChannel;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests which tasks of a connection wait for a thread of a pool. The test decides when a thread runs. */
class ConnectionThreadsTest {
    private static final int MAX = 8;

    private final HandPlatform platform = new HandPlatform();
    private final EmbeddedChannel channel = new EmbeddedChannel();
    private final Ledger ledger = new Ledger("ledger under test", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account =
            Objects.requireNonNull(ledger.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), 1)));
    private final Threads shared = platform.threads(MAX);
    private final ConnectionThreads threads = new ConnectionThreads(shared, channel.eventLoop(), account);
    private final List<String> begun = new ArrayList<>();

    private final class Task implements PoolShares.Task {
        private final String name;

        Task(String name) {
            this.name = name;
        }

        @Override
        public void run() {
            begun.add(name);
        }

        @Override
        public void refused(Throwable noThread) {
            begun.add(name + " refused");
        }
    }

    @AfterEach
    void end() {
        platform.handleAll(channel);
        channel.close();
        account.close();
    }

    private List<Task> run(RunOn.Place place, int count) {
        List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Task task = new Task("handler " + i);
            tasks.add(task);
            threads.run(place, task);
        }
        return tasks;
    }

    @Test
    void handlersOfAPoolWaitForItsThreadsAndSignalsDoNot() {
        List<Task> handlers = run(RunOn.Place.POOL, 10);
        Task last = handlers.get(9);
        assertThat(threads.waitsForItsOwn(RunOn.Place.POOL, last)).isTrue();
        assertThat(threads.waitsForItsOwn(RunOn.Place.EVENT_LOOP, last)).isFalse();
        assertThat(threads.waitsForItsOwn(RunOn.Place.POOL, handlers.get(0))).isFalse();
        threads.runSignal(RunOn.Place.POOL, new Task("signal"));
        assertThat(threads.withdraw(RunOn.Place.POOL, handlers.get(0))).isFalse();
        assertThat(threads.withdraw(RunOn.Place.EVENT_LOOP, last)).isFalse();
        assertThat(threads.withdraw(RunOn.Place.POOL, last)).isTrue();
        assertThat(threads.withdraw(RunOn.Place.POOL, last)).isFalse();
        // the sixth thread runs the signal, while five hold handlers
        platform.handle(5);
        assertThat(begun).containsExactly("signal");
        platform.handleAll(channel);
        assertThat(begun).hasSize(10).contains("handler 8").doesNotContain("handler 9");
    }

    @Test
    void handlersOfAnotherPlaceWaitForNothing() {
        List<Task> handlers = run(RunOn.Place.EVENT_LOOP, 30);
        assertThat(threads.withdraw(RunOn.Place.EVENT_LOOP, handlers.get(29))).isFalse();
        int threadsOrTasks = 0;
        while (platform.handle(0)) {
            threadsOrTasks++;
        }
        assertThat(threadsOrTasks).isEqualTo(30);
        assertThat(begun).hasSize(30);
    }

    @Test
    void whatGoesOnBehindAConnectionCountsForItsAddress() {
        run(RunOn.Place.POOL, 10);
        threads.runSignal(RunOn.Place.POOL, new Task("signal"));
        Ledger.Address address = Objects.requireNonNull(account.address);
        assertThat(address.handlerThreads.mark()).isZero();
        threads.connectionGone();
        assertThat(address.handlerThreads.mark()).isEqualTo(10);
        assertThat(address.signalThreads.mark()).isEqualTo(1);
    }
}
