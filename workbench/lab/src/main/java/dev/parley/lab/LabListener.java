package dev.parley.lab;

import dev.parley.load.Event;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;

/** What a person is shown while a run goes on. Called by the lab's one thread; must not block. */
public interface LabListener {
    void planned(Plan plan);

    /** @param bootIndex from 0 */
    void booting(Plan.Boot boot, int bootIndex);

    void progress(TrialSpec trial, Event.Progress progress);

    /** @param finished what the generator said of it; its figures are indicative until the run is analysed */
    void trialEnded(TrialRow row, java.util.Optional<Event.Finished> finished);

    /** One line about something that is not as it should be. */
    void note(String line);
}
