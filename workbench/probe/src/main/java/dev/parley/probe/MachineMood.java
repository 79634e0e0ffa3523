package dev.parley.probe;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Counters of what a machine does to a measurement: processor time stolen by a hypervisor, pages swapped, cores slowed
 * down for their heat or their quota. Two readings around a window tell whether the window is to be believed.
 *
 * @param busyTicks of all cores, stolen ones included
 * @param totalTicks of all cores, idle ones included
 * @param throttled how often a core grew too hot, or this process's control groups had used up their quota
 */
public record MachineMood(long stolenTicks, long busyTicks, long totalTicks, long swappedPages, long throttled) {

    /**
     * Above this share of all processor time stolen, a window is void: it moved the median by more than the usual tie
     * band here.
     */
    static final double MAX_STOLEN_SHARE = 0.02;

    /** The counters as they are now; all zero where there is no {@code /proc}. */
    public static MachineMood now() {
        try {
            return parse(
                    Files.readString(Path.of("/proc/stat")),
                    Files.readString(Path.of("/proc/vmstat")),
                    Throttles.HERE.count());
        } catch (IOException elsewhere) {
            return new MachineMood(0, 0, 0, 0, 0);
        }
    }

    static MachineMood parse(String stat, String vmstat, long throttled) {
        String[] fields =
                stat.lines().findFirst().orElse("cpu 0 0 0 0 0 0 0 0").strip().split("\\s+");
        // user nice system idle iowait irq softirq steal. Source: proc_stat(5)
        long total = 0;
        for (int i = 1; i <= 8; i++) {
            total += Long.parseLong(fields[i]);
        }
        long idle = Long.parseLong(fields[4]) + Long.parseLong(fields[5]);
        return new MachineMood(
                Long.parseLong(fields[8]),
                total - idle,
                total,
                counter(vmstat, "pswpin ") + counter(vmstat, "pswpout "),
                throttled);
    }

    /** Share of all cores' time that was not idle since {@code before}, 0 to 1. */
    public double busyShareSince(MachineMood before) {
        return share(busyTicks - before.busyTicks, before);
    }

    /** Why a window from {@code before} to this reading is void; empty when the machine behaved. */
    public List<String> complaintsSince(MachineMood before) {
        List<String> complaints = new ArrayList<>();
        double stolen = share(stolenTicks - before.stolenTicks, before);
        if (stolen > MAX_STOLEN_SHARE) {
            complaints.add(String.format(
                    Locale.ROOT,
                    "%.1f %% of processor time stolen by the host (at most %.0f %%)",
                    stolen * 100,
                    MAX_STOLEN_SHARE * 100));
        }
        long swapped = swappedPages - before.swappedPages;
        if (swapped > 0) {
            complaints.add(swapped + " pages swapped");
        }
        long slowed = throttled - before.throttled;
        if (slowed > 0) {
            complaints.add("the processor was throttled " + slowed + " times, by heat or by a quota");
        }
        return complaints;
    }

    private double share(long ticks, MachineMood before) {
        long total = totalTicks - before.totalTicks;
        return total <= 0 ? 0 : (double) ticks / total;
    }

    private static long counter(String vmstat, String key) {
        return vmstat.lines()
                .filter(line -> line.startsWith(key))
                .mapToLong(line -> Long.parseLong(line.substring(key.length()).strip()))
                .findFirst()
                .orElse(0);
    }
}
