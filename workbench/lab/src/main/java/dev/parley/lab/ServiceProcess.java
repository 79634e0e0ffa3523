package dev.parley.lab;

import dev.parley.process.Child;
import dev.parley.process.ProcessException;
import dev.rpcx.probe.ProcessProbe;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** One microservice under way. One thread. */
final class ServiceProcess implements AutoCloseable {
    private static final Duration TO_LISTEN = Duration.ofSeconds(60);
    private static final String LISTENING = "listening health=";

    /** A neighbour's times, as the service tells them. */
    record Hop(String subject, byte[] histogram) {}

    /**
     * What its work was asked since it began.
     *
     * @param begun requests that reached it
     * @param answered those of them that it answered: the others it refused, or is still at
     * @param allocatedBytes of heap since the process began, whatever for
     */
    record Served(long begun, long answered, long allocatedBytes) {
        static final Served NOTHING = new Served(0, 0, 0);

        Served since(Served earlier) {
            return new Served(
                    begun - earlier.begun, answered - earlier.answered, allocatedBytes - earlier.allocatedBytes);
        }
    }

    private final Child child;
    private final ProcessProbe probe;
    private int healthPort;

    ServiceProcess(Child child) {
        this.child = child;
        this.probe = ProcessProbe.of(child.handle());
    }

    /** Waits until it says that it serves. */
    void awaitListening() throws InterruptedException {
        String line = child.line(TO_LISTEN)
                .orElseThrow(() -> new LabException(
                        child.name() + " did not begin to serve within " + TO_LISTEN.toSeconds() + " s"));
        if (!line.startsWith(LISTENING)) {
            throw new LabException(child.name() + " said " + line + " (expected: " + LISTENING + "PORT)");
        }
        healthPort = Integer.parseInt(line.substring(LISTENING.length()));
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
        child.tell("hops-reset " + window);
    }

    List<Hop> hops() throws InterruptedException {
        child.tell("hops");
        List<Hop> hops = new ArrayList<>();
        while (true) {
            Optional<String> line = child.line(Duration.ofSeconds(5));
            String[] words = line.orElseThrow(
                            () -> new LabException(child.name() + " did not tell its hops within 5 s"))
                    .split(" ");
            if (words[0].equals("hops-end")) {
                return hops;
            }
            hops.add(new Hop(words[1], java.util.Base64.getDecoder().decode(words[2])));
        }
    }

    Served served() throws InterruptedException {
        child.tell("served");
        String line = child.line(Duration.ofSeconds(5))
                .orElseThrow(() -> new LabException(child.name() + " did not tell what it served within 5 s"));
        String[] words = line.split(" ");
        if (words.length != 4 || !words[0].equals("served")) {
            throw new LabException(child.name() + " said " + line + " (expected: served BEGUN ANSWERED ALLOCATED)");
        }
        return new Served(Long.parseLong(words[1]), Long.parseLong(words[2]), Long.parseLong(words[3]));
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
