package dev.parley.model;

import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;

/**
 * Every figure the workbench keeps, with its unit. {@link #key()} is the name in {@code summary.csv} and in the store.
 */
public enum Metric {
    LATENCY_MEAN("ms", Better.LOWER, "mean response time of replies that met the limit"),
    LATENCY_MEDIAN("ms", Better.LOWER, "median response time"),
    LATENCY_MIN("ms", Better.LOWER, "shortest response time"),
    LATENCY_MAX("ms", Better.LOWER, "longest response time"),
    LATENCY_P95("ms", Better.LOWER, "95th percentile of response time"),
    LATENCY_P99("ms", Better.LOWER, "99th percentile of response time; wants 1 000 samples"),
    LATENCY_P999("ms", Better.LOWER, "99.9th percentile of response time; wants 10 000 samples"),
    FIRST_CALL("ms", Better.LOWER, "response time of the very first call after boot"),
    HOP_MEAN("ms", Better.LOWER, "mean time of one service's calls to one neighbour, on the caller's own clock"),
    HOP_MEDIAN("ms", Better.LOWER, "median time of one service's calls to one neighbour"),
    HOP_P99("ms", Better.LOWER, "99th percentile of one service's calls to one neighbour"),
    THROUGHPUT("1/s", Better.HIGHER, "replies a second that were right and met the limit"),
    SUCCESS_SHARE("%", Better.HIGHER, "share of due requests answered rightly within the limit"),
    WIRE_OUT(
            "B",
            Better.LOWER,
            "bytes a request puts on one hop's connection, framing included, IP and TCP headers not"),
    WIRE_BACK("B", Better.LOWER, "bytes a reply puts on one hop's connection"),
    PAYLOAD_OUT("B", Better.NEITHER, "bytes of the encoded message in a request"),
    PAYLOAD_BACK("B", Better.NEITHER, "bytes of the encoded message in a reply"),
    CPU_SHARE(
            "%",
            Better.LOWER, "processor use of one service in percent of one core, its just-in-time compilers left out"),
    CPU_PER_REQUEST(
            "ms",
            Better.LOWER,
            "processor time of all services together for one request, just-in-time compilers left out"),
    COMPILING_SHARE(
            "%",
            Better.NEITHER,
            "share of the services' processor time that their just-in-time compilers took: high while JVMs still warm up"),
    MEMORY_AFTER_BOOT("MB", Better.LOWER, "resident set of one service when it first answers"),
    MEMORY_AFTER_LOAD("MB", Better.LOWER, "resident set of one service after a measured window"),
    INSTALLED_SIZE("MB", Better.LOWER, "files that one service needs to run, without the JDK"),
    BOOT_TIME("ms", Better.LOWER, "process start to first right reply, timed from outside"),
    BROKER_CPU_PER_REQUEST(
            "ms",
            Better.LOWER,
            "processor time of the broker for one request, its just-in-time compilers left out; beside that of the services"),
    BROKER_MEMORY("MB", Better.LOWER, "resident set of the broker after a measured window"),
    DATABASE_CPU_PER_REQUEST(
            "ms", Better.LOWER, "processor time of the work's databases for one request; beside that of the services"),
    DATABASE_MEMORY(
            "MB",
            Better.LOWER,
            "memory of the work's databases after a measured window, pages that their processes share counted once"),
    THROUGHPUT_BEST("1/s", Better.HIGHER, "highest throughput of any step of a staircase"),
    CLIENTS_AT_BEST("clients", Better.NEITHER, "clients at a staircase's highest throughput"),
    CLIENTS_AT_LIMIT(
            "clients",
            Better.HIGHER,
            "clients at which a staircase gave out: the first step with under half of its requests a success; absent if none"),
    STEP_THROUGHPUT("1/s", Better.HIGHER, "throughput of one step, round or try of a load; its subject names it"),
    STEP_ANSWERED("1/s", Better.HIGHER, "right replies a second in one step, those after the limit too"),
    STEP_LATENCY_MEAN("ms", Better.LOWER, "mean response time in one step, round or try of a load"),
    STEP_LATENCY_P99("ms", Better.LOWER, "99th percentile of response time in one step, round or try of a load"),
    STEP_SUCCESS_SHARE("%", Better.HIGHER, "success share in one step, round or try of a load"),
    STEP_TIME("ms", Better.LOWER, "how long one step, round or try of a load took"),
    SCENARIO_TIME("ms", Better.LOWER, "mean time of a user's scenario, first step due to last reply"),
    SCENARIO_TIME_P99("ms", Better.LOWER, "99th percentile of the time of a user's scenario"),
    USERS_AT_FIRST_FAILURE("users", Better.HIGHER, "users under way when the first request failed; absent if none did"),
    HIGHEST_RATE("1/s", Better.HIGHER, "highest rate at which the load's limit was met"),
    WINDOW_LENGTH("s", Better.NEITHER, "time that a trial's rates are counts over"),
    REHEARSAL_TIME(
            "s",
            Better.NEITHER,
            "time for which services had been under load since their boot when a trial's own warm-up began; 0: none was"
                    + " asked for"),
    REHEARSED_MEDIAN(
            "ms",
            Better.NEITHER,
            "lowest median response time among the last quarter of the rehearsal's slices under the trial's own load"),
    REQUESTS_SERVED(
            "requests",
            Better.NEITHER,
            "requests that one service answered in a trial by its own count, warm-up and all steps together"),
    REQUESTS_SENT(
            "requests",
            Better.NEITHER,
            "requests that the load generator sent in a trial by its own count, warm-up and all steps together"),
    REPLIES_COUNTED("requests", Better.NEITHER, "replies that the load generator had to them, late and wrong ones too"),
    GENERATOR_CPU("%", Better.NEITHER, "processor use of the load generator in percent of one core"),
    GENERATOR_COMPILING(
            "%",
            Better.NEITHER,
            "processor time of the load generator's just-in-time compilers in percent of one core: high while it still"
                    + " warms up"),
    GENERATOR_LATENESS_P99("ms", Better.NEITHER, "99th percentile of actual minus intended send time"),
    GENERATOR_CEILING(
            "1/s",
            Better.NEITHER,
            "requests a second that the load generator itself reaches against a server that does nothing");

    /** Which way is good. */
    public enum Better {
        LOWER,
        HIGHER,
        NEITHER
    }

    /** Figures that only some technologies have, a broker's, or some works, a database's, or only some loads: a staircase its best step, a search its highest rate. */
    public static final Set<Metric> OF_SOME_LOADS =
            Collections.unmodifiableSet(EnumSet.range(BROKER_CPU_PER_REQUEST, WINDOW_LENGTH));

    private final String unit;
    private final Better better;
    private final String meaning;

    Metric(String unit, Better better, String meaning) {
        this.unit = unit;
        this.better = better;
        this.meaning = meaning;
    }

    public String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** ms, s, 1/s, %, B, MB (10⁶ bytes), or the name of what is counted. */
    public String unit() {
        return unit;
    }

    public Better better() {
        return better;
    }

    public String meaning() {
        return meaning;
    }

    /** What it tells that a trial which went well has no such figure; empty for one that every such trial has. */
    public Optional<String> absence() {
        return switch (this) {
            case CLIENTS_AT_LIMIT -> Optional.of("none: no step gave out");
            case USERS_AT_FIRST_FAILURE -> Optional.of("none: no request failed");
            default -> Optional.empty();
        };
    }

    /** False for what belongs to a boot or to a single request, whatever load is offered and for however long. */
    public boolean isOfLoad() {
        return switch (this) {
            case FIRST_CALL,
                    WIRE_OUT,
                    WIRE_BACK,
                    PAYLOAD_OUT,
                    PAYLOAD_BACK,
                    MEMORY_AFTER_BOOT,
                    INSTALLED_SIZE,
                    BOOT_TIME,
                    GENERATOR_CEILING -> false;
            default -> true;
        };
    }

    /** The keys of all metrics, in their order. */
    public static List<String> keys() {
        return Arrays.stream(values()).map(Metric::key).toList();
    }

    public static Metric ofKey(String key) {
        for (Metric metric : values()) {
            if (metric.key().equals(key)) {
                return metric;
            }
        }
        throw BadInput.near("metric", key, keys(), "a metric of summary.csv, such as latency_median");
    }
}
