package dev.parley.lab;

import dev.parley.process.Child;
import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import dev.rpcx.probe.ProcessProbe;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/** The load generator's process, as something to ask. It answers commands in order. One thread. */
final class Generator implements AutoCloseable {
    private static final Duration LATE_ANSWER = Duration.ofSeconds(60);

    private final Child child;
    private final Conversation<Command, Event> conversation;
    private final ProcessProbe probe;

    /** Whether a question's answer did not come in time, and would be taken for the answer to the next one. */
    private boolean isAnswerLate;

    /** @param log of the process, to which it adds */
    Generator(Installation installation, Path log) {
        this(Child.java(
                "generator",
                ServiceJvm.GENERATOR_FLAGS,
                installation.classPath(),
                ServiceJvm.GENERATOR,
                List.of(),
                log));
    }

    Generator(Child child) {
        this.child = child;
        this.conversation = new Conversation<>(child, Event.class);
        this.probe = ProcessProbe.of(child.handle());
    }

    /** Processor time that its just-in-time compilers took so far; empty where the system does not tell. */
    OptionalLong compilersNs() {
        return probe.compilersCpuNs();
    }

    /**
     * Waits for an answer that is late before it tells, and drops that answer.
     *
     * @throws LabException if that answer does not come even now
     */
    void tell(Command command) throws InterruptedException {
        if (isAnswerLate) {
            if (conversation.next(LATE_ANSWER).isEmpty()) {
                throw new LabException(
                        "the load generator still owes an earlier answer after " + LATE_ANSWER.toSeconds() + " s more");
            }
            isAnswerLate = false;
        }
        conversation.tell(command);
    }

    /**
     * The next event; empty when none came in time.
     *
     * @throws LabException if the generator says it could not, or is gone
     */
    Optional<Event> event(Duration within) throws InterruptedException {
        Optional<Event> event = conversation.next(within);
        if (event.isPresent() && event.get() instanceof Event.Failed failed) {
            throw new LabException(failed.message());
        }
        return event;
    }

    <E extends Event> E ask(Command command, Class<E> expected, Duration within) throws InterruptedException {
        tell(command);
        Optional<Event> answer = event(within);
        if (answer.isEmpty()) {
            isAnswerLate = true;
            throw new LabException("the load generator did not answer within " + within.toSeconds() + " s");
        }
        Event event = answer.get();
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
