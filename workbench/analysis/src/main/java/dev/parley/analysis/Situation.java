package dev.parley.analysis;

import dev.parley.model.Load;
import dev.parley.model.TrialSpec;

/** What technologies are compared under. */
public record Situation(String topology, String message, Load load) {
    static Situation of(TrialSpec spec) {
        return new Situation(spec.topology().text(), spec.message().toString(), spec.load());
    }
}
