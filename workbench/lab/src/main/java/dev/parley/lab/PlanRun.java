package dev.parley.lab;

import dev.parley.limits.LimitsException;
import dev.parley.model.FigureRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Study;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.process.Children;
import dev.parley.process.Ports;
import dev.parley.process.ProcessException;
import dev.parley.store.RunStore;
import dev.parley.store.StoreException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Carries out a plan, boot after boot, while there is time, and stores what each trial leaves. A failure ends its
 * trial, and nothing but a store that cannot be written ends the run. One thread.
 */
final class PlanRun {
    private final Study study;
    private final Setting setting;
    private final RunStore store;
    private final Brokers brokers;
    private final Databases databases;
    private final Observation observation;
    private final TrialTimes times;
    private int finished;
    private int failed;
    private int voided;
    private int left;
    private Optional<String> firstFailure = Optional.empty();

    /**
     * Where a plan is carried out.
     *
     * @param ceilings what the load generator reaches, measured where it is not known
     * @param until nothing is begun that would end after this; empty where there is time enough
     */
    record Setting(
            Installations installations,
            LabListener listener,
            Ceiling.Kept ceilings,
            Optional<Instant> until,
            Path logs) {}

    /** @param study of technologies that can all be had */
    PlanRun(
            Study study,
            Setting setting,
            RunStore store,
            Brokers brokers,
            Databases databases,
            Observation observation) {
        this.study = study;
        this.setting = setting;
        this.store = store;
        this.brokers = brokers;
        this.databases = databases;
        this.observation = observation;
        this.times = new TrialTimes(store.trials());
    }

    Lab.Ending of(Plan plan) throws InterruptedException {
        keepLibraries();
        setting.listener().planned(plan);
        RehearsalTime rehearsals = new RehearsalTime(plan);
        for (int i = 0; i < plan.boots().size(); i++) {
            Plan.Boot planned = plan.boots().get(i);
            Plan.Boot boot = planned.rehearsing(rehearsals.next(planned));
            Duration rehearsed = Duration.ZERO;
            if (hasTimeFor(times.longest(boot))) {
                setting.listener().booting(boot, i);
                if (boot.opensBlock()) {
                    measureEmptyService(boot);
                }
                rehearsed = carryOut(boot, ceiling());
            } else {
                left += boot.trials().size();
            }
            rehearsals.took(rehearsed);
        }
        store.buildViews();
        return new Lab.Ending(finished, failed, voided, left, firstFailure);
    }

    private boolean hasTimeFor(Duration estimate) {
        return setting.until().isEmpty()
                || Instant.now().plus(estimate).isBefore(setting.until().get());
    }

    private void keepLibraries() {
        if (store.libraries().isEmpty()) {
            Installations installations = setting.installations();
            List<LibraryRow> libraries = new ArrayList<>(installations.empty().libraries(FigureRow.EMPTY));
            for (String name : study.technologies()) {
                libraries.addAll(installations.leaf(name, study).libraries(name));
            }
            store.appendLibraries(libraries);
        }
    }

    private Ceiling ceiling() throws InterruptedException {
        try {
            return Ceiling.current(setting.ceilings(), setting.installations().bareGenerator(), setting.logs());
        } catch (LabException e) {
            if (isToldToEnd()) {
                throw told(e);
            }
            throw e;
        }
    }

    private void measureEmptyService(Plan.Boot boot) throws InterruptedException {
        try {
            store.appendFigures(EmptyService.measure(
                    setting.installations().empty(),
                    boot.trials().getFirst().id(),
                    setting.logs().resolve(boot.block() + "-empty.log")));
        } catch (LabException | ProcessException e) {
            if (isToldToEnd()) {
                throw told(e);
            }
            setting.listener()
                    .note("no figures of an empty service in restart " + boot.block() + ": " + e.getMessage());
        }
    }

    /**
     * A failure ends its trial; the others of the boot get services that are started anew. Only services that do not
     * boot end all of their trials.
     *
     * @return how long its services were rehearsed
     */
    private Duration carryOut(Plan.Boot boot, Ceiling ceiling) throws InterruptedException {
        List<TrialSpec> toDo = new ArrayList<>(boot.trials());
        boolean isBooted = false;
        Duration rehearsed = Duration.ZERO;
        while (!toDo.isEmpty()) {
            Instant startedAt = Instant.now();
            Duration before = rehearsed;
            boolean isServing = false;
            try (TrialPath path = path(boot.again(toDo), ceiling)) {
                List<FigureRow> figures = path.boot();
                if (!isBooted) {
                    store.appendFigures(figures);
                    isBooted = true;
                }
                isServing = true;
                try {
                    path.prepare();
                    while (!toDo.isEmpty()) {
                        if (!hasTimeFor(times.longest(toDo.getFirst()))) {
                            left += toDo.size();
                            return before.plus(path.rehearsed());
                        }
                        startedAt = Instant.now();
                        TrialRows rows = path.run(toDo.getFirst());
                        store.append(rows.trial(), rows.seconds(), rows.histograms(), rows.figures());
                        toDo.removeFirst();
                        count(rows);
                    }
                } finally {
                    // A trial that fails has used its rehearsal's time too.
                    rehearsed = before.plus(path.rehearsed());
                }
            } catch (StoreException e) {
                throw e;
            } catch (RuntimeException e) {
                if (isToldToEnd()) {
                    // The others never began.
                    store.append(ended(toDo.getFirst(), TrialRow.State.INTERRUPTED, startedAt, "interrupted"));
                    throw told(e);
                }
                String what = e instanceof LabException || e instanceof ProcessException || e instanceof LimitsException
                        ? String.valueOf(e.getMessage())
                        : e.toString();
                TrialSpec first = toDo.removeFirst();
                fail(first, what, startedAt);
                if (!isServing) {
                    String why = "not begun, because trial " + (first.id() + 1) + " failed: " + what;
                    for (TrialSpec trial : toDo) {
                        fail(trial, why, startedAt);
                    }
                    toDo.clear();
                } else if (!toDo.isEmpty()) {
                    setting.listener().note("the services are started anew for what is left of this restart");
                }
            }
        }
        return rehearsed;
    }

    private TrialPath path(Plan.Boot boot, Ceiling ceiling) throws InterruptedException {
        return new TrialPath(
                boot,
                setting.installations(),
                setting.logs(),
                study.seed(),
                setting.listener(),
                brokers.of(boot.technology()),
                databases,
                ceiling,
                observation,
                Ports::free);
    }

    private void count(TrialRows rows) {
        finished++;
        times.took(rows.trial());
        voided += rows.trial().isValid() ? 0 : 1;
        setting.listener().trialEnded(rows.trial(), Optional.of(Glance.of(rows.histograms(), rows.finished())));
    }

    private void fail(TrialSpec trial, String why, Instant startedAt) {
        TrialRow row = ended(trial, TrialRow.State.FAILED, startedAt, why);
        store.append(row);
        setting.listener().trialEnded(row, Optional.<Glance>empty());
        failed++;
        firstFailure = firstFailure.or(() -> Optional.of(why));
    }

    /**
     * Ctrl-C reaches every process of a terminal at once: a service may be seen to end before this process knows why.
     */
    private static boolean isToldToEnd() throws InterruptedException {
        return Children.isShuttingDown(Duration.ofMillis(300));
    }

    private static InterruptedException told(RuntimeException e) {
        return (InterruptedException) new InterruptedException("told to end").initCause(e);
    }

    private static TrialRow ended(TrialSpec trial, TrialRow.State state, Instant startedAt, String why) {
        return new TrialRow(trial, state, startedAt, Instant.now(), List.of(), why);
    }
}
