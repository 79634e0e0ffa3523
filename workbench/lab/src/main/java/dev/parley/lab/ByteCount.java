package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import dev.parley.spi.Location;
import dev.rpcx.probe.ByteRelay;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Counts the bytes of each message on the first hop, once a boot: they do not depend on the load. A relay stands in
 * front of the first service, or of the broker, while they are counted. One thread.
 */
final class ByteCount {
    /** Bytes are counted over this many calls, after half as many that open connections and fill header tables. */
    private static final int MAX_COUNTED_CALLS = 20;
    /** Calls that take long are counted over fewer: theirs are the messages beside which headers weigh nothing. */
    private static final int MIN_COUNTED_CALLS = 4;

    private static final Duration COUNTING = Duration.ofSeconds(1);

    private final Deployment deployment;
    private final LabListener listener;
    private final Map<MessageSpec, List<FigureRow>> known = new HashMap<>();

    ByteCount(Deployment deployment, LabListener listener) {
        this.deployment = deployment;
        this.listener = listener;
    }

    /**
     * Counts for all trials of a boot that is rehearsed. The generator compiles again what it opened and closed
     * connections for, and was to be heard in the first seconds of the next trial.
     */
    void beforeRehearsal() throws InterruptedException {
        if (!deployment.boot().rehearsal().isPositive()) {
            return;
        }
        for (TrialSpec trial : deployment.boot().trials()) {
            try {
                of(trial);
            } catch (LabException atItsOwnTrial) {
                // It is tried again before that trial, which fails where it fails again, and no other with it.
                listener.note("bytes of " + trial.message() + " were not counted yet: " + atItsOwnTrial.getMessage());
            }
        }
    }

    List<FigureRow> of(TrialSpec trial) throws InterruptedException {
        List<FigureRow> counted = known.get(trial.message());
        if (counted == null) {
            counted = count(trial);
            known.put(trial.message(), counted);
        }
        return counted.stream()
                .map(f -> new FigureRow(trial.id(), f.metric(), f.subject(), f.value()))
                .toList();
    }

    private List<FigureRow> count(TrialSpec trial) throws InterruptedException {
        Location entry = deployment.entry();
        Optional<ByteRelay> before = entry instanceof Location.AtBroker
                ? deployment.broker().flatMap(Broker::relay)
                : Optional.of(ByteRelay.to(entry.host(), entry.port()));
        return before.isEmpty() ? List.of() : count(trial, entry, before.get());
    }

    private List<FigureRow> count(TrialSpec trial, Location entry, ByteRelay counter) throws InterruptedException {
        try (ByteRelay relay = counter) {
            Location relayed = switch (entry) {
                case Location.Socket _ -> new Location.Socket("127.0.0.1", relay.port());
                case Location.AtBroker b -> new Location.AtBroker("127.0.0.1", relay.port(), b.service());
            };
            String message = trial.message().toString();
            ask(relayed, message, MAX_COUNTED_CALLS / 2);
            ByteRelay.Counts before = relay.settled();
            Event.Counted counted = ask(relayed, message, MAX_COUNTED_CALLS);
            ByteRelay.Counts bytes = relay.settled().since(before);
            deployment.generator().ask(new Command.Release(relayed.toString()), Event.Done.class, Deployment.TO_ANSWER);
            int id = trial.id();
            return List.of(
                    new FigureRow(id, Metric.WIRE_OUT, FigureRow.SYSTEM, (double) bytes.out() / counted.calls()),
                    new FigureRow(id, Metric.WIRE_BACK, FigureRow.SYSTEM, (double) bytes.back() / counted.calls()),
                    new FigureRow(id, Metric.PAYLOAD_OUT, FigureRow.SYSTEM, counted.payloadOut()),
                    new FigureRow(id, Metric.PAYLOAD_BACK, FigureRow.SYSTEM, counted.payloadBack()));
        }
    }

    private Event.Counted ask(Location relayed, String message, int mostCalls) throws InterruptedException {
        return deployment
                .generator()
                .ask(
                        new Command.Count(
                                relayed.toString(), message, MIN_COUNTED_CALLS, mostCalls, COUNTING.toMillis()),
                        Event.Counted.class,
                        Deployment.TO_ANSWER.multipliedBy(2));
    }
}
