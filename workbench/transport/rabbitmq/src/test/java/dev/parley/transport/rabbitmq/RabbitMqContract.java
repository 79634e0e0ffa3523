package dev.parley.transport.rabbitmq;

import dev.parley.backend.Backend;
import dev.parley.backend.BackendUnavailable;
import dev.parley.backend.Backends;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;

/**
 * The contract over a real broker, one for all variants that this JVM tests: each has queues of its own. It ends with
 * the JVM, on whose leash it is; its logs stay in {@code target/servers-PID}.
 */
abstract class RabbitMqContract extends TransportContract {
    private static final AtomicInteger QUEUES = new AtomicInteger();
    private static final Path FOLDER =
            Path.of("target", "servers-" + ProcessHandle.current().pid()).toAbsolutePath();

    private static Backend.Running broker;

    private final Wiring wiring;

    RabbitMqContract(Wiring wiring) {
        this.wiring = wiring;
    }

    @Override
    protected Transport transport() {
        return new RabbitMqTransport(wiring);
    }

    /** Waits for a channel's last work as long as 1.05 heartbeats, 63 s, and ends (com.rabbitmq.client.impl.ChannelManager). */
    @Override
    protected boolean isKeptByItsLibrary(String leftover) {
        return leftover.equals("thread ConsumerWorkService shutdown monitor");
    }

    @BeforeAll
    static void needBroker() throws InterruptedException {
        if (broker == null || !broker.isAlive()) {
            startBroker();
        }
    }

    private static void startBroker() throws InterruptedException {
        try {
            broker = new Backends(Path.of("")).named("rabbitmq").start(FOLDER.resolve("rabbitmq"), line -> {});
        } catch (BackendUnavailable e) {
            Assumptions.abort(e.getMessage());
        }
    }

    @Override
    protected Location freeLocation(String service) {
        return new Location.AtBroker(broker.host(), broker.port(), "test-" + QUEUES.incrementAndGet() + "-" + service);
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
