package dev.parley.lab;

import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import java.util.Optional;

/** What a person is shown while a run goes on. Called by the lab's one thread; must not block. */
public interface LabListener {
    void planned(Plan plan);

    /** @param bootIndex from 0 */
    void booting(Plan.Boot boot, int bootIndex);

    void progress(TrialSpec trial, Event.Progress progress);

    /** @param glance empty for a trial that did not finish */
    void trialEnded(TrialRow row, Optional<Glance> glance);

    /** One line about something that is not as it should be. */
    void note(String line);
}
