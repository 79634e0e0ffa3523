package dev.parley.cli;

import dev.parley.lab.Glance;
import dev.parley.lab.LabListener;
import dev.parley.lab.Plan;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import dev.parley.protocol.Event.Phase;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How a run goes: one line that rewrites itself on a terminal, a line a trial where there is none. One thread. */
final class Progress implements LabListener {
    private final PrintStream out;
    private final boolean isTerminal;
    private long beganNs;
    private int trials;
    private int ended;
    private Duration estimate = Duration.ZERO;
    private @Nullable Plan plan;

    Progress(PrintStream out, boolean isTerminal) {
        this.out = out;
        this.isTerminal = isTerminal;
    }

    static Progress toTerminal() {
        return new Progress(
                System.err, System.console() != null && System.console().isTerminal());
    }

    @Override
    public void planned(Plan planned) {
        plan = planned;
        beganNs = System.nanoTime();
        trials = planned.trials().size();
        estimate = planned.estimate();
        line(
                trials == 0
                        ? "every trial has ended already"
                        : trials + " trials in " + planned.boots().size() + " boots of services, about "
                                + (estimate.compareTo(Duration.ofMinutes(10)) < 0 ? exact(estimate) : text(estimate))
                                + " if rehearsals take all of their time");
    }

    @Override
    public void booting(Plan.Boot boot, int bootIndex) {
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
                    p.errors() == 0 ? "" : ", " + p.errors() + " errors"));
        }
    }

    @Override
    public void trialEnded(TrialRow row, Optional<Glance> glance) {
        ended++;
        TrialSpec trial = row.spec();
        String head = String.format(
                Locale.ROOT,
                "trial %d of %d: %s %s %s, restart %d: ",
                ended,
                trials,
                trial.technology(),
                trial.message(),
                trial.load(),
                trial.restart());
        if (glance.isEmpty()) {
            line(head + row.state().name().toLowerCase(Locale.ROOT) + ": " + row.message());
            return;
        }
        Glance g = glance.get();
        line(head
                + String.format(
                        Locale.ROOT,
                        "%,.0f/s, p50 %.2f ms, p99 %.2f ms%s%s",
                        g.perSecond(),
                        g.medianMs(),
                        g.p99Ms(),
                        g.failed() == 0 ? "" : ", " + g.failed() + " of " + g.due() + " failed",
                        row.voidReasons().isEmpty() ? "" : "; " + why(row)));
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

    /** By the pace so far, once there is one. */
    private String left() {
        Plan known = plan;
        if (known == null || trials == 0) {
            return "?";
        }
        Duration passed = Duration.ofNanos(System.nanoTime() - beganNs);
        Duration left = ended == 0
                ? estimate.minus(passed)
                : passed.multipliedBy(trials - ended).dividedBy(ended);
        return text(left.isNegative() ? Duration.ZERO : left);
    }

    /** To the second: {@code 4 min 32 s}. */
    static String exact(Duration duration) {
        long seconds = duration.toSeconds();
        return seconds < 60 ? seconds + " s" : seconds / 60 + " min " + seconds % 60 + " s";
    }

    static String text(Duration duration) {
        long seconds = Math.max(1, duration.toSeconds());
        return seconds < 90
                ? seconds + " s"
                : seconds < 5400
                        ? (seconds + 30) / 60 + " min"
                        : String.format(Locale.ROOT, "%.1f h", seconds / 3600.0);
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
