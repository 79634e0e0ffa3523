package dev.parley.transport.kafka;

import dev.parley.backend.Backend;
import dev.parley.backend.Backends;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** The contract over a real broker, one for all tests of a variant. */
abstract class KafkaContract extends TransportContract {
    private static final AtomicInteger TOPICS = new AtomicInteger();

    /** Tests run in their module's folder, three below the repository's root. */
    private static final Path HOME =
            Path.of("").toAbsolutePath().resolve("../../..").normalize();

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    private static Path folder;

    private static Backend.Running broker;

    private final Wiring wiring;

    KafkaContract(Wiring wiring) {
        this.wiring = wiring;
    }

    @Override
    protected Transport transport() {
        return new KafkaTransport(wiring);
    }

    @BeforeAll
    static void startBroker() throws InterruptedException {
        broker = new Backends(HOME).named("kafka").start(folder.resolve("kafka"), line -> {});
    }

    @AfterAll
    static void endBroker() throws Exception {
        closeShared();
        if (broker != null) {
            broker.close();
        }
    }

    static Backend.Running broker() {
        return broker;
    }

    @Override
    protected Location freeLocation(String service) {
        return new Location.AtBroker(broker.host(), broker.port(), "test-" + TOPICS.incrementAndGet() + "-" + service);
    }

    @Override
    protected void breakBroker() {
        broker.processes().forEach(ProcessHandle::destroyForcibly);
        broker.close();
    }

    @Override
    protected void healBroker() {
        try {
            startBroker();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
