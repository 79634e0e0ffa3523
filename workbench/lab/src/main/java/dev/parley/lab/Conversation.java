package dev.parley.lab;

import dev.parley.model.BadInput;
import dev.parley.process.Child;
import dev.parley.protocol.Message;
import dev.parley.protocol.Protocol;
import java.time.Duration;
import java.util.Optional;

/**
 * What is said to one child process and what it says. The child is greeted at once, and its own greeting is read before
 * anything else that it says. One thread.
 *
 * @param <C> what it is told
 * @param <E> what it tells
 */
final class Conversation<C extends Message, E extends Message> {
    private final Child child;
    private final Class<E> told;
    private boolean isGreeted;

    Conversation(Child child, Class<E> told) {
        this.child = child;
        this.told = told;
        child.tell(Protocol.greeting());
    }

    void tell(C command) {
        child.tell(Protocol.line(command));
    }

    /**
     * What it tells next; empty when nothing came in time.
     *
     * @throws LabException if it speaks another version of the protocol, or says what is none of its messages
     * @throws dev.parley.process.ProcessException if it is gone
     */
    Optional<E> next(Duration within) throws InterruptedException {
        long untilNs = System.nanoTime() + within.toNanos();
        if (!isGreeted) {
            Optional<String> greeting = child.line(within);
            if (greeting.isEmpty()) {
                return Optional.empty();
            }
            check(greeting.get());
            isGreeted = true;
        }
        return child.line(Duration.ofNanos(Math.max(0, untilNs - System.nanoTime())))
                .map(this::read);
    }

    private void check(String greeting) {
        try {
            Protocol.checkGreeting(child.name(), greeting);
        } catch (BadInput e) {
            throw new LabException(String.valueOf(e.getMessage()), e);
        }
    }

    private E read(String line) {
        try {
            return Protocol.read(line, told);
        } catch (IllegalArgumentException e) {
            throw new LabException(
                    child.name() + " said " + line + " (expected: one of its " + told.getSimpleName() + "s)", e);
        }
    }
}
