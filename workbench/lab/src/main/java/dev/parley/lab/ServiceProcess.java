package dev.parley.lab;

import dev.parley.model.HistogramRow;
import dev.parley.process.Child;
import dev.parley.process.ProcessException;
import dev.parley.protocol.ServiceCommand;
import dev.parley.protocol.ServiceEvent;
import dev.rpcx.probe.ProcessProbe;
import java.time.Duration;
import java.util.List;

/** One microservice under way. One thread. */
final class ServiceProcess implements AutoCloseable {
    private static final Duration TO_LISTEN = Duration.ofSeconds(60);
    private static final Duration TO_ANSWER = Duration.ofSeconds(5);

    private final Child child;
    private final Conversation<ServiceCommand, ServiceEvent> conversation;
    private final ProcessProbe probe;
    private int healthPort;

    ServiceProcess(Child child) {
        this.child = child;
        this.conversation = new Conversation<>(child, ServiceEvent.class);
        this.probe = ProcessProbe.of(child.handle());
    }

    /** Waits until it says that it serves. */
    void awaitListening() throws InterruptedException {
        healthPort = answer(ServiceEvent.Listening.class, TO_LISTEN, "begin to serve")
                .healthPort();
    }

    int healthPort() {
        return healthPort;
    }

    String name() {
        return child.name();
    }

    long startedNs() {
        return child.startedNs();
    }

    ProcessProbe probe() {
        return probe;
    }

    /** @throws ProcessException saying how it ended, if it is gone */
    void mustBeAlive() throws InterruptedException {
        if (!child.isAlive()) {
            throw new ProcessException(child.howItEnded());
        }
    }

    /** @param window what its call log names the window that begins */
    void resetHops(String window) {
        conversation.tell(new ServiceCommand.ResetHops(window));
    }

    /** The times of its calls to each neighbour in the window that ends with this. */
    List<HistogramRow> hops(int trialId) throws InterruptedException {
        conversation.tell(new ServiceCommand.TellHops(trialId));
        return answer(ServiceEvent.Hops.class, TO_ANSWER, "tell its hops").rows();
    }

    ServiceEvent.Served served() throws InterruptedException {
        conversation.tell(new ServiceCommand.TellServed());
        return answer(ServiceEvent.Served.class, TO_ANSWER, "tell what it served");
    }

    private <E extends ServiceEvent> E answer(Class<E> expected, Duration within, String what)
            throws InterruptedException {
        ServiceEvent said = conversation
                .next(within)
                .orElseThrow(() ->
                        new LabException(child.name() + " did not " + what + " within " + within.toSeconds() + " s"));
        if (!expected.isInstance(said)) {
            throw new LabException(child.name() + " said " + said + " (expected: " + expected.getSimpleName() + ")");
        }
        return expected.cast(said);
    }

    /** Tells it to end, without waiting. */
    void endInput() {
        child.endInput();
    }

    @Override
    public void close() {
        child.close();
    }
}
