package dev.parley.cli;

import dev.parley.lab.Glance;
import dev.parley.lab.LabListener;
import dev.parley.lab.Plan;
import dev.parley.lab.TimeLeft;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import dev.parley.protocol.Event.Phase;
import java.io.PrintStream;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.LongSupplier;

/** How a run goes: one line that rewrites itself on a terminal, a line a trial where there is none. One thread. */
final class Progress implements LabListener {
    /** What follows on an estimate that some load may exceed. */
    static final String LONGER = ", and longer where a load goes on until its work is done";

    private final PrintStream out;
    private final boolean isTerminal;
    private final LongSupplier clockNs;
    private int trials;
    private int ended;
    private TimeLeft timeLeft = new TimeLeft(new Plan(List.of()));

    /** @param clockNs monotonic */
    Progress(PrintStream out, boolean isTerminal, LongSupplier clockNs) {
        this.out = out;
        this.isTerminal = isTerminal;
        this.clockNs = clockNs;
    }

    static Progress toTerminal() {
        return new Progress(
                System.err, System.console() != null && System.console().isTerminal(), System::nanoTime);
    }

    @Override
    public void planned(Plan planned) {
        trials = planned.trials().size();
        ended = 0;
        timeLeft = new TimeLeft(planned);
        line(
                trials == 0
                        ? "every trial has ended already"
                        : trials + " trials in " + planned.boots().size() + " boots of services, about " + left()
                                + (planned.isOpenEnded() ? LONGER : ""));
    }

    @Override
    public void booting(Plan.Boot boot, int bootIndex) {
        timeLeft.booting(bootIndex, clockNs.getAsLong()).ifPresent(this::line);
        String what = boot.technology() + " on " + boot.topology() + ", restart " + boot.block();
        if (isTerminal) {
            rewrite("trial " + (ended + 1) + " of " + trials + ", " + left() + " left: starting " + what);
        } else {
            line("starting " + what + "; " + left() + " left");
        }
    }

    @Override
    public void progress(TrialSpec trial, Event.Progress p) {
        if (isTerminal) {
            rewrite(String.format(
                    Locale.ROOT,
                    "trial %d of %d, %s left: %s %s %s, %s: %,.0f/s, p99 %.2f ms%s",
                    ended + 1,
                    trials,
                    left(),
                    trial.technology(),
                    trial.message(),
                    trial.load(),
                    p.phase() == Phase.WARM_UP ? "warm-up" : "window",
                    p.perSecond(),
                    p.p99Ms(),
                    p.errors() == 0 ? "" : ", " + p.errors() + " without success"));
        }
    }

    @Override
    public void trialEnded(TrialRow row, Optional<Glance> glance) {
        ended++;
        line(head(row.spec())
                + glance.map(g -> figures(row, g))
                        .orElseGet(() -> row.state().name().toLowerCase(Locale.ROOT) + ": " + row.message()));
        timeLeft.ended(row, clockNs.getAsLong()).ifPresent(this::line);
    }

    private String head(TrialSpec trial) {
        return String.format(
                Locale.ROOT,
                "trial %d of %d: %s %s %s, restart %d: ",
                ended,
                trials,
                trial.technology(),
                trial.message(),
                trial.load(),
                trial.restart());
    }

    private static String figures(TrialRow row, Glance g) {
        return String.format(
                Locale.ROOT,
                "%,.0f/s, p50 %.2f ms, p99 %.2f ms%s%s",
                g.perSecond(),
                g.medianMs(),
                g.p99Ms(),
                g.unsuccessful() == 0 ? "" : ", " + g.unsuccessful() + " of " + g.due() + " without success",
                row.voidReasons().isEmpty() ? "" : "; " + why(row));
    }

    /** What keeps a trial from counting: the word void before what makes it so, where that is not the cold alone. */
    private static String why(TrialRow row) {
        boolean isOfWarmth = row.voidReasons().stream().allMatch(TrialRow::isOfWarmth);
        return (isOfWarmth ? "" : "void: ") + String.join("; ", row.voidReasons());
    }

    @Override
    public void note(String text) {
        line(text);
    }

    /** Leaves the terminal's line as it was. */
    void end() {
        if (isTerminal) {
            out.print("\r\033[K");
            out.flush();
        }
    }

    private String left() {
        return timeLeft.at(clockNs.getAsLong()).toString();
    }

    /** To the second: {@code 4 min 32 s}. */
    static String exact(Duration duration) {
        long seconds = duration.toSeconds();
        return seconds < 60 ? seconds + " s" : seconds / 60 + " min " + seconds % 60 + " s";
    }

    private void rewrite(String text) {
        out.print("\r\033[K" + (text.length() > 118 ? text.substring(0, 118) : text));
        out.flush();
    }

    private void line(String text) {
        end();
        out.println(text);
    }
}
