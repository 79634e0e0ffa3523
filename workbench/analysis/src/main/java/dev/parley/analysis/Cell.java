package dev.parley.analysis;

import dev.parley.model.Load;
import dev.parley.model.TrialSpec;

/** One technology in one situation: what restarts are repetitions of. */
record Cell(String technology, Situation situation) {
    static Cell of(TrialSpec spec) {
        return new Cell(spec.technology(), Situation.of(spec));
    }

    Load load() {
        return situation.load();
    }
}
