package dev.parley.lab;

import dev.parley.model.MessageSpec;
import java.util.Optional;

/**
 * Waits until services are done with what went before. What callers gave up waiting for is still served, and a broker
 * keeps its requests: a load begins when the services answer again, so that it does not pay for the one before. One
 * thread.
 */
final class Settling {
    /** Right answers in a row after which services are taken to be done with what went before. */
    private static final int SETTLED_CALLS = 3;

    private final Deployment deployment;
    /** The message of requests that may still be under way; empty where all were answered. */
    private Optional<MessageSpec> unanswered = Optional.empty();

    Settling(Deployment deployment) {
        this.deployment = deployment;
    }

    void settle() throws InterruptedException {
        if (unanswered.isPresent()) {
            deployment.awaitReady(deployment.boot().topology().entry(), unanswered.get(), SETTLED_CALLS);
            unanswered = Optional.empty();
        }
    }

    /** A load is over, and the next one may find its requests under way. */
    void after(Measured load) {
        if (load.finished().replied() < load.finished().due()) {
            unanswered = Optional.of(load.trial().message());
        }
    }
}
