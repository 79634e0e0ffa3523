package dev.parley.lab;

import dev.parley.load.Command;
import dev.parley.load.Event;
import dev.parley.load.Protocol;
import dev.parley.process.Child;
import dev.rpcx.probe.ProcessProbe;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/** The load generator's process, as something to ask. One thread. */
final class Generator implements AutoCloseable {
    private final Child child;
    private final ProcessProbe probe;

    /** @param log of the process, to which it adds */
    Generator(Installation installation, Path log) {
        this.child = Child.java(
                "generator",
                ServiceJvm.GENERATOR_FLAGS,
                installation.classPath(),
                ServiceJvm.GENERATOR,
                List.of(),
                log);
        this.probe = ProcessProbe.of(child.handle());
    }

    /** Processor time that its just-in-time compilers took so far; empty where the system does not tell. */
    OptionalLong compilersNs() {
        return probe.compilersCpuNs();
    }

    void tell(Command command) {
        child.tell(Protocol.line(command));
    }

    /**
     * The next event; empty when none came in time.
     *
     * @throws LabException if the generator says it could not, or is gone
     */
    Optional<Event> event(Duration within) throws InterruptedException {
        Optional<Event> event = child.line(within).map(Protocol::event);
        if (event.isPresent() && event.get() instanceof Event.Failed failed) {
            throw new LabException(failed.message());
        }
        return event;
    }

    <E extends Event> E ask(Command command, Class<E> expected, Duration within) throws InterruptedException {
        tell(command);
        Event event = event(within)
                .orElseThrow(() ->
                        new LabException("the load generator did not answer within " + within.toSeconds() + " s"));
        if (!expected.isInstance(event)) {
            throw new LabException(
                    "the load generator said " + event + " (expected: " + expected.getSimpleName() + ")");
        }
        return expected.cast(event);
    }

    @Override
    public void close() {
        child.close();
    }
}
