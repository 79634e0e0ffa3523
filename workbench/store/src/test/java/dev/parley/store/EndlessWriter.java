package dev.parley.store;

import dev.parley.model.TrialRow;
import java.nio.file.Path;
import java.util.stream.IntStream;

/** A process that appends trials until it is killed, and prints the number of each when its append has returned. */
final class EndlessWriter {
    static final int TRIALS = 3_000;

    private EndlessWriter() {}

    public static void main(String[] args) {
        RunStore store = RunStore.create(Path.of(args[0]), SampleRun.run());
        store.appendPlan(IntStream.range(0, TRIALS).mapToObj(SampleRun::spec).toList());
        for (int id = 0; id < TRIALS; id++) {
            store.append(
                    SampleRun.ended(id, TrialRow.State.FINISHED),
                    SampleRun.seconds(id),
                    SampleRun.histograms(id),
                    SampleRun.figures(id));
            System.out.println(id);
        }
    }
}
