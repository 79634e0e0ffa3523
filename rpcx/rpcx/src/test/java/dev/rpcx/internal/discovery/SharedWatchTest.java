package dev.rpcx.internal.discovery;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests one watch and the clients that share it, on one thread. */
class SharedWatchTest {
    /** Counts its watches, and reports what the test says. */
    private static final class Registry implements Endpoints {
        private @Nullable Listener listener;
        private int begun;
        private int ended;
        private boolean fails;

        @Override
        public Watch watch(Listener told) {
            if (fails) {
                throw new IllegalStateException("not yet");
            }
            begun++;
            listener = told;
            return () -> ended++;
        }

        void found(String... hosts) {
            Objects.requireNonNull(listener).found(endpoints(hosts));
        }

        void failed(String why) {
            Objects.requireNonNull(listener).failed(new IllegalStateException(why));
        }
    }

    private static List<Endpoint> endpoints(String... hosts) {
        List<Endpoint> all = new ArrayList<>();
        for (String host : hosts) {
            all.add(new Endpoint(host, 1));
        }
        return all;
    }

    /** Records what it is given, and may run a task then. */
    private static final class Listening implements Endpoints.Listener {
        private final List<String> heard = new ArrayList<>();
        private Runnable then = () -> {};

        @Override
        public void found(List<Endpoint> all) {
            heard.add(all.get(0).host());
            once();
        }

        @Override
        public void failed(Throwable why) {
            heard.add(String.valueOf(why.getMessage()));
            once();
        }

        private void once() {
            Runnable now = then;
            then = () -> {};
            now.run();
        }
    }

    private final Registry registry = new Registry();
    private final Listening first = new Listening();
    private final Listening second = new Listening();
    private final List<Endpoints.Watch> open = new ArrayList<>();
    private final int before = SharedWatch.count();

    private Endpoints.Watch watch(Endpoints endpoints, Endpoints.Listener listener) {
        Endpoints.Watch watch = SharedWatch.of(endpoints, listener);
        open.add(watch);
        return watch;
    }

    @AfterEach
    void nothingIsLeft() {
        open.forEach(Endpoints.Watch::close);
        assertThat(SharedWatch.count()).isEqualTo(before);
        assertThat(registry.ended).isEqualTo(registry.begun);
    }

    @Test
    void aRegistryIsWatchedOnceFromTheFirstListenerToTheEndOfTheLast() {
        Endpoints.Watch one = watch(registry, first);
        assertThat(SharedWatch.count()).isEqualTo(before + 1);
        Endpoints.Watch other = watch(registry, second);
        assertThat(SharedWatch.count()).isEqualTo(before + 1);
        assertThat(registry.begun).isEqualTo(1);
        registry.found("a");
        assertThat(first.heard).containsExactly("a");
        assertThat(second.heard).containsExactly("a");
        one.close();
        one.close();
        assertThat(registry.ended)
                .as("a watch ends once, and the other goes on")
                .isZero();
        registry.found("b");
        assertThat(first.heard).containsExactly("a");
        assertThat(second.heard).containsExactly("a", "b");
        other.close();
        assertThat(registry.ended).isEqualTo(1);
        assertThat(SharedWatch.count()).isEqualTo(before);
        watch(registry, first);
        assertThat(registry.begun).isEqualTo(2);
    }

    @Test
    void aFixedListIsNotShared() {
        watch(Endpoints.of(new Endpoint("fixed", 1)), first);
        assertThat(first.heard).containsExactly("fixed");
        assertThat(SharedWatch.count()).isEqualTo(before);
    }

    @Test
    void whoComesLaterHearsWhatTheOthersHaveHeardLast() {
        watch(registry, first);
        registry.found("a");
        registry.found("b");
        registry.failed("1");
        watch(registry, second);
        assertThat(second.heard).containsExactly("b", "1");
        registry.found();
        Listening third = new Listening();
        watch(registry, third);
        assertThat(third.heard)
                .as("it has answered, and nothing is changed by that")
                .containsExactly("b");
        assertThat(first.heard).containsExactly("a", "b", "1");
    }

    @Test
    void beforeTheRegistryHasSaidAnythingNothingIsHeard() {
        watch(registry, first);
        assertThat(first.heard).isEmpty();
        registry.failed("1");
        registry.found();
        watch(registry, second);
        assertThat(second.heard).isEmpty();
    }

    @Test
    void aWatchThatCannotBeginLeavesNothing() {
        registry.fails = true;
        assertThatThrownBy(() -> SharedWatch.of(registry, first)).hasMessage("not yet");
        assertThat(SharedWatch.count()).isEqualTo(before);
        registry.fails = false;
        watch(registry, second);
        registry.found("a");
        assertThat(first.heard).isEmpty();
        assertThat(second.heard).containsExactly("a");
    }

    /**
     * The first listener makes the registry report a new list while the second one has not been given the last list
     * yet.
     */
    @Test
    void aListThatIsOutOfDateWhenItWouldBeToldIsNotHeard() {
        watch(registry, first);
        watch(registry, second);
        first.then = () -> registry.found("b");
        registry.found("a");
        assertThat(first.heard).containsExactly("a", "b");
        assertThat(second.heard).containsExactly("b");
    }

    @Test
    void aFailureThatIsOutOfDateWhenItWouldBeToldIsNotHeard() {
        watch(registry, first);
        watch(registry, second);
        first.then = () -> registry.found("b");
        registry.failed("1");
        assertThat(first.heard).containsExactly("1", "b");
        assertThat(second.heard).containsExactly("b");
    }

    @Test
    void whoEndsWhileItIsAboutToHearHearsNothing() {
        watch(registry, first);
        Endpoints.Watch other = watch(registry, second);
        first.then = other::close;
        registry.found("a");
        assertThat(second.heard).isEmpty();
    }

    @Test
    void whoEndsWhileItIsAboutToHearOfAFailureHearsNothing() {
        watch(registry, first);
        Endpoints.Watch other = watch(registry, second);
        first.then = other::close;
        registry.failed("1");
        assertThat(second.heard).isEmpty();
    }

    /** Endpoints that are equal by name. The test says what else happens when they are compared. */
    private static final class Named implements Endpoints {
        private final String name;
        private Runnable whenHashed = () -> {};
        private Runnable whenCompared = () -> {};
        private int begun;
        private int ended;

        Named(String name) {
            this.name = name;
        }

        @Override
        public Watch watch(Listener told) {
            begun++;
            return () -> ended++;
        }

        @Override
        public int hashCode() {
            whenHashed.run();
            return name.hashCode();
        }

        @Override
        public boolean equals(@Nullable Object other) {
            whenCompared.run();
            return other instanceof Named named && named.name.equals(name);
        }
    }

    /** Endpoints with a URL do this: they ask a name server when they are compared. */
    @Test
    void endpointsThatTakeLongToBeComparedHoldUpNoOtherWatch() {
        List<Boolean> held = new ArrayList<>();
        Runnable takesLong = () -> {
            Thread other = new Thread(SharedWatch::count);
            other.start();
            try {
                other.join(10_000);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            held.add(other.isAlive());
        };
        Named one = new Named("a");
        one.whenHashed = takesLong;
        watch(one, first);
        Named equal = new Named("a");
        equal.whenCompared = takesLong;
        watch(equal, second);
        open.forEach(Endpoints.Watch::close);
        assertThat(held).hasSizeGreaterThanOrEqualTo(2).containsOnly(false);
        assertThat(one.begun).isEqualTo(1);
        assertThat(equal.begun).isZero();
    }

    @Test
    void aWatchThatEndsWhileItIsComparedIsNotJoined() {
        Named one = new Named("a");
        Endpoints.Watch ends = watch(one, first);
        Named equal = new Named("a");
        equal.whenCompared = ends::close;
        watch(equal, second);
        assertThat(one.ended).isEqualTo(1);
        assertThat(equal.begun).isEqualTo(1);
        assertThat(SharedWatch.count()).isEqualTo(before + 1);
    }

    @Test
    void aWatchThatBeginsWhileOthersAreComparedIsJoined() {
        Named[] sameHash = {new Named("Aa"), new Named("BB"), new Named("BB")};
        assertThat(sameHash[0]).hasSameHashCodeAs(sameHash[1]);
        watch(sameHash[0], first);
        sameHash[1].whenCompared = () -> {
            sameHash[1].whenCompared = () -> {};
            watch(sameHash[2], first);
        };
        watch(sameHash[1], second);
        assertThat(sameHash[2].begun).isEqualTo(1);
        assertThat(sameHash[1].begun).as("there is one by now").isZero();
        assertThat(SharedWatch.count()).isEqualTo(before + 2);
    }

    @Test
    void aWatchWhoseEndpointsHaveAnotherHashByItsEndEndsAllTheSame() {
        List<String> names = new ArrayList<>();
        record Growing(List<String> names) implements Endpoints {
            @Override
            public Watch watch(Listener told) {
                return () -> {};
            }
        }
        Endpoints.Watch watch = watch(new Growing(names), first);
        names.add("x");
        watch.close();
        assertThat(SharedWatch.count()).isEqualTo(before);
    }

    @Test
    void aListenerThatThrowsIsLoggedAndTheOthersHearAllTheSame() {
        List<Throwable> logged = new ArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord record) {
                logged.add(record.getThrown());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        RuntimeException injected = new IllegalStateException("by the test");
        watch(registry, first);
        watch(registry, second);
        first.then = () -> {
            throw injected;
        };
        Logger logger = Logger.getLogger("dev.rpcx.discovery");
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
        try {
            registry.found("a");
        } finally {
            logger.setUseParentHandlers(true);
            logger.removeHandler(handler);
        }
        assertThat(second.heard).containsExactly("a");
        assertThat(logged).containsExactly(injected);
    }

    @Test
    void aLogThatFailsTakesNoNewsFromTheOthers() {
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord record) {
                throw new IllegalStateException("by the test's log");
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        first.then = () -> {
            throw new IllegalStateException("by the test");
        };
        watch(registry, first);
        watch(registry, second);
        Logger logger = Logger.getLogger("dev.rpcx.discovery");
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
        try {
            registry.found("a");
        } finally {
            logger.setUseParentHandlers(true);
            logger.removeHandler(handler);
        }
        assertThat(second.heard).containsExactly("a");
    }
}
