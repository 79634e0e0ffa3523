package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.client.ClientCluster;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.Platform;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that a cluster goes on if an Error is thrown once, anywhere between the registry's list and a connection. */
@Timeout(60)
class ClusterErrorsTest {
    private static final Endpoint ONE = new Endpoint("one", 1);
    private static final Endpoint OTHER = new Endpoint("other", 1);

    @RPCXClient(remoteServerName = "far")
    interface Remote {
        CompletableFuture<String> callLater();
    }

    /** Fails once when it is asked for time or chance, as if the stack of the asking thread had overflowed. */
    private static final class Failing implements Platform {
        private final HandPlatform hand = new HandPlatform();

        /** Counts how often it can still be asked before it fails. Below 0, it does not fail any more. */
        private int left = -1;

        private void used() {
            if (left >= 0 && left-- == 0) {
                throw new StackOverflowError("by the test");
            }
        }

        @Override
        public Loops loops(int count, String name, boolean inProcess) {
            return hand.loops(count, name, inProcess);
        }

        @Override
        public Ticker ticker() {
            used();
            return hand.ticker;
        }

        @Override
        public RandomGenerator random() {
            used();
            return hand.random();
        }

        void pass(int seconds) {
            for (int i = 0; i < 20 * seconds; i++) {
                hand.ticker.advance(50, TimeUnit.MILLISECONDS);
                hand.runTimers();
            }
        }

        void fail(EmbeddedChannel channel) {
            channel.close();
            hand.settle(channel);
        }
    }

    private final List<Endpoints.Listener> listeners = new ArrayList<>();
    private final Endpoints registry = listener -> {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    };

    private void say(Endpoint... all) {
        listeners.forEach(each -> each.found(List.of(all)));
    }

    private static void end(Client client, Failing platform) {
        client.core().end();
        for (EmbeddedChannel channel : platform.hand.opened) {
            channel.close();
            channel.releaseOutbound();
        }
    }

    @Test
    void anInstanceIsConnectedToAgainWhateverFailsWhenATryDoes() {
        boolean hasFailed = true;
        for (int step = 0; hasFailed; step++) {
            Failing platform = new Failing();
            Client client = Client.builder().platform(platform).build();
            client.create(Remote.class, registry);
            say(ONE);
            assertThat(platform.hand.opened).hasSize(1);
            platform.left = step;
            platform.fail(platform.hand.opened.get(0));
            hasFailed = platform.left < 0;
            platform.left = -1;
            platform.pass(3);
            assertThat(platform.hand.opened).as("after step %d", step).hasSizeGreaterThan(1);
            end(client, platform);
        }
    }

    @Test
    void aListIsTakenWhateverFailsWhenTheRegistrySaysIt() {
        boolean hasFailed = true;
        for (int step = 0; hasFailed; step++) {
            Failing platform = new Failing();
            Client client = Client.builder().platform(platform).build();
            Remote remote = client.create(Remote.class, registry);
            say(ONE);
            platform.left = step;
            say(OTHER);
            try {
                platform.pass(1);
            } catch (StackOverflowError atTheTimers) {
                assertThat(atTheTimers).hasMessage("by the test");
            }
            hasFailed = platform.left < 0;
            platform.left = -1;
            platform.pass(3);
            ClientCluster cluster =
                    Objects.requireNonNull(client.core().clusters.get(registry));
            assertThat(cluster).as("after step %d", step).hasToString("other:1");
            assertThat(platform.hand.opened.get(0).isOpen())
                    .as("connects to the one that has left, after step %d", step)
                    .isFalse();
            EmbeddedChannel last = platform.hand.opened.get(platform.hand.opened.size() - 1);
            assertThat(last.isOpen()).isTrue();
            // there is no other instance, so every instance has been tried when this one has
            CompletableFuture<String> call = remote.callLater();
            platform.fail(last);
            assertThat(call).as("after step %d", step).isCompletedExceptionally();
            end(client, platform);
        }
    }

    @Test
    void aCallThatWaitsGivesUpItsPlaceWhateverFails() {
        boolean hasFailed = true;
        for (int step = 0; hasFailed; step++) {
            Failing platform = new Failing();
            Client client = Client.builder().platform(platform).build();
            client.create(Remote.class, registry);
            say(ONE);
            ClientCluster cluster =
                    Objects.requireNonNull(client.core().clusters.get(registry));
            platform.left = step;
            try {
                cluster.connect(0);
            } catch (StackOverflowError thrown) {
                assertThat(thrown).hasMessage("by the test");
            }
            hasFailed = platform.left < 0;
            platform.left = -1;
            platform.pass(10);
            assertThat(cluster.waiting()).as("after step %d", step).isZero();
            end(client, platform);
        }
    }
}
