package dev.parley.model;

import static dev.parley.model.Metric.Better.HIGHER;
import static dev.parley.model.Metric.Better.LOWER;
import static dev.parley.model.Metric.Better.NEITHER;
import static dev.parley.model.Metric.Subject.BROKER;
import static dev.parley.model.Metric.Subject.CLIENT;
import static dev.parley.model.Metric.Subject.DATABASES;
import static dev.parley.model.Metric.Subject.GENERATOR;
import static dev.parley.model.Metric.Subject.HOP;
import static dev.parley.model.Metric.Subject.SERVICE;
import static dev.parley.model.Metric.Subject.STEP;
import static dev.parley.model.Metric.Subject.SYSTEM;
import static dev.parley.model.MetricFacts.metric;
import static dev.parley.model.MetricSource.MEAN;
import static dev.parley.model.MetricSource.hops;
import static dev.parley.model.MetricSource.percentile;
import static dev.parley.model.MetricSource.responses;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * Every figure that the workbench keeps, and all that it knows of each but how it is measured: which rows the metric is
 * computed from, how it is summarised, where people see it. Whoever reads, judges or shows figures asks here, so that a
 * new metric is one more entry; that makes this file long. {@link #key()} is the name in {@code summary.csv} and in the
 * store. A metric that was ever stored keeps its key and its unit.
 *
 * <p>How one is added: docs/adding-a-metric.md.
 */
public enum Metric {
    LATENCY_MEAN(metric(CLIENT, "Mean response time", "ms", LOWER, "mean response time of replies that met the limit")
            .from(responses(MEAN))
            .column("mean ms")),
    LATENCY_MEDIAN(metric(CLIENT, "Median response time", "ms", LOWER, "median response time")
            .from(responses(percentile(50)))
            .compared()
            .column("p50 ms")
            .chartedIn(Section.LATENCY, "Response time")),
    LATENCY_MIN(metric(CLIENT, "Shortest response time", "ms", LOWER, "shortest response time")
            .from(responses(percentile(0)))),
    LATENCY_MAX(metric(CLIENT, "Longest response time", "ms", LOWER, "longest response time")
            .from(responses(percentile(100)))),
    LATENCY_P95(metric(CLIENT, "p95 response time", "ms", LOWER, "95th percentile of response time")
            .from(responses(percentile(95)))),
    LATENCY_P99(
            metric(CLIENT, "p99 response time", "ms", LOWER, "99th percentile of response time; wants 1 000 samples")
                    .from(responses(percentile(99)))
                    .wants(1_000)
                    .compared()
                    .column("p99 ms")
                    .chartedIn(Section.LATENCY, "Response time")),
    LATENCY_P999(metric(
                    CLIENT,
                    "p99.9 response time",
                    "ms",
                    LOWER,
                    "99.9th percentile of response time; wants 10 000 samples")
            .from(responses(percentile(99.9)))
            .wants(10_000)),
    FIRST_CALL(metric(CLIENT, "First call", "ms", LOWER, "response time of the very first call after boot")
            .belongsTo(Scope.BOOT)),
    HOP_MEAN(metric(
                    HOP,
                    "Mean hop",
                    "ms",
                    LOWER,
                    "mean time of one service's calls to one neighbour, on the caller's own clock")
            .from(hops(MEAN))
            .optional()),
    HOP_MEDIAN(metric(HOP, "Median hop", "ms", LOWER, "median time of one service's calls to one neighbour")
            .from(hops(percentile(50)))
            .optional()),
    HOP_P99(metric(HOP, "p99 hop", "ms", LOWER, "99th percentile of one service's calls to one neighbour")
            .from(hops(percentile(99)))
            .wants(1_000)
            .optional()),
    THROUGHPUT(metric(CLIENT, "Throughput", "1/s", HIGHER, "replies a second that were right and met the limit")
            .from(new MetricSource.Outcomes())
            .compared()
            .column("req/s")
            .chartedIn(Section.THROUGHPUT, "Right replies within the limit")),
    SUCCESS_SHARE(
            metric(CLIENT, "Success share", "%", HIGHER, "share of due requests answered rightly within the limit")
                    .from(new MetricSource.Outcomes())
                    .averaged()
                    .column("ok %")),
    WIRE_OUT(metric(
                    HOP,
                    "Request on the wire",
                    "B",
                    LOWER,
                    "bytes a request puts on one hop's connection, framing included, IP and TCP headers not")
            .belongsTo(Scope.MESSAGE)
            .column("B out")
            .chartedIn(Section.BYTES, "Bytes a message")),
    WIRE_BACK(metric(HOP, "Reply on the wire", "B", LOWER, "bytes a reply puts on one hop's connection")
            .belongsTo(Scope.MESSAGE)
            .column("B back")
            .chartedIn(Section.BYTES, "Bytes a message")),
    PAYLOAD_OUT(metric(HOP, "Message in a request", "B", NEITHER, "bytes of the encoded message in a request")
            .belongsTo(Scope.MESSAGE)
            .partOf(WIRE_OUT)),
    PAYLOAD_BACK(metric(HOP, "Message in a reply", "B", NEITHER, "bytes of the encoded message in a reply")
            .belongsTo(Scope.MESSAGE)
            .partOf(WIRE_BACK)),
    CPU_SHARE(metric(
                    SYSTEM,
                    "Processor use",
                    "%",
                    LOWER,
                    "processor use of one service in percent of one core, its just-in-time compilers left out")
            .summed()),
    CPU_PER_REQUEST(metric(
                    SYSTEM,
                    "CPU per request",
                    "ms",
                    LOWER,
                    "processor time of all services together for one request, just-in-time compilers left out")
            .from(new MetricSource.Figures(), new MetricSource.PerAnswer(CPU_SHARE))
            .compared()
            .column("CPU ms")
            .chartedIn(Section.COST, "Processor time without compilers")),
    ALLOCATED_PER_REQUEST(metric(
                    SYSTEM,
                    "Allocated per request",
                    "kB",
                    LOWER,
                    "heap that the JVMs of all services together allocate for one reply of a trial, warm-up and all"
                            + " steps together")
            .optional()
            .chartedIn(Section.COST, "Heap allocated")),
    COMPILING_SHARE(metric(
                    SYSTEM,
                    "Compilers' share",
                    "%",
                    NEITHER,
                    "share of the services' processor time that their just-in-time compilers took: high while JVMs"
                            + " still warm up")
            .optional()),
    MEMORY_AFTER_BOOT(
            metric(SERVICE, "Memory after boot", "MB", LOWER, "resident set of one service when it first answers")
                    .belongsTo(Scope.BOOT)
                    .chartedIn(Section.SERVICE, "Resident set")),
    MEMORY_AFTER_LOAD(
            metric(SERVICE, "Memory after load", "MB", LOWER, "resident set of one service after a measured window")
                    .column("mem MB")
                    .chartedIn(Section.SERVICE, "Resident set")),
    INSTALLED_SIZE(
            metric(SERVICE, "Installed size", "MB", LOWER, "files that one service needs to run, without the JDK")
                    .belongsTo(Scope.BOOT)
                    .column("size MB")
                    .chartedIn(Section.SERVICE, "Files it needs, without the JDK")),
    BOOT_TIME(metric(SERVICE, "Boot time", "ms", LOWER, "process start to first right reply, timed from outside")
            .belongsTo(Scope.BOOT)
            .column("boot ms")
            .chartedIn(Section.SERVICE, "Process start to first right reply")),
    BROKER_CPU_PER_REQUEST(metric(
                    BROKER,
                    "Broker's CPU per request",
                    "ms",
                    LOWER,
                    "processor time of the broker for one request, its just-in-time compilers left out; beside that of"
                            + " the services")
            .optional()),
    BROKER_MEMORY(metric(BROKER, "Broker's memory", "MB", LOWER, "resident set of the broker after a measured window")
            .optional()),
    DATABASE_CPU_PER_REQUEST(metric(
                    DATABASES,
                    "Databases' CPU per request",
                    "ms",
                    LOWER,
                    "processor time of the work's databases for one request; beside that of the services")
            .optional()),
    DATABASE_MEMORY(metric(
                    DATABASES,
                    "Databases' memory",
                    "MB",
                    LOWER,
                    "memory of the work's databases after a measured window, pages that their processes share counted"
                            + " once")
            .optional()),
    THROUGHPUT_BEST(metric(
                    CLIENT,
                    "Best throughput",
                    "1/s",
                    HIGHER,
                    "highest throughput of any step of a staircase or of rates")
            .resultOf(Load::isStepped)),
    CLIENTS_AT_BEST(
            metric(CLIENT, "Clients at the best", "clients", NEITHER, "clients at a staircase's highest throughput")
                    .resultOf(load -> load.isStepped() && !load.isOpen())),
    CLIENTS_AT_LIMIT(metric(
                    CLIENT,
                    "Clients when it gave out",
                    "clients",
                    HIGHER,
                    "clients at which a staircase gave out: the first step with under half of its requests a success;"
                            + " absent if none")
            .resultOf(load -> load.isStepped() && !load.isOpen())
            .absentMeans("none: no step gave out")),
    RATE_AT_BEST(metric(
                    CLIENT,
                    "Rate at the best",
                    "1/s",
                    NEITHER,
                    "requests due a second at the highest throughput of steps of rates")
            .resultOf(load -> load.isStepped() && load.isOpen())),
    RATE_AT_LIMIT(metric(
                    CLIENT,
                    "Rate when it gave out",
                    "1/s",
                    HIGHER,
                    "requests due a second at which steps of rates gave out: the first step with under half of its"
                            + " requests a success; absent if none")
            .resultOf(load -> load.isStepped() && load.isOpen())
            .absentMeans("none: no step gave out")),
    STEP_THROUGHPUT(metric(
                    STEP,
                    "Throughput of a step",
                    "1/s",
                    HIGHER,
                    "throughput of one step, round or try of a load; its subject names it")
            .optional()),
    STEP_ANSWERED(metric(
                    STEP,
                    "Right replies in a step",
                    "1/s",
                    HIGHER,
                    "right replies a second in one step, those after the limit too")
            .optional()),
    STEP_LATENCY_MEAN(metric(
                    STEP,
                    "Mean response time in a step",
                    "ms",
                    LOWER,
                    "mean response time in one step, round or try of a load")
            .optional()),
    STEP_LATENCY_P99(metric(
                    STEP,
                    "p99 response time in a step",
                    "ms",
                    LOWER,
                    "99th percentile of response time in one step, round or try of a load")
            .optional()),
    STEP_SUCCESS_SHARE(
            metric(STEP, "Success share in a step", "%", HIGHER, "success share in one step, round or try of a load")
                    .optional()),
    STEP_TIME(metric(STEP, "Time of a step", "ms", LOWER, "how long one step, round or try of a load took")
            .optional()),
    SCENARIO_TIME(metric(
                    CLIENT,
                    "Mean scenario",
                    "ms",
                    LOWER,
                    "mean time of a user's scenario, first request due to last reply")
            .resultOf(_ -> true)),
    SCENARIO_TIME_P99(metric(CLIENT, "p99 scenario", "ms", LOWER, "99th percentile of the time of a user's scenario")
            .resultOf(_ -> true)),
    USERS_AT_FIRST_FAILURE(metric(
                    CLIENT,
                    "Users at the first failure",
                    "users",
                    HIGHER,
                    "users under way when the first request was no success: late, wrong, failed or not sent; absent if"
                            + " all were successes")
            .resultOf(Load::hasUsers)
            .absentMeans("none: every request was a success")),
    HIGHEST_RATE(metric(
                    CLIENT,
                    "Highest rate within the latency",
                    "1/s",
                    HIGHER,
                    "highest rate at which the load's percentile was within its latency")
            .resultOf(Load.HighestRate.class::isInstance)),
    /** A search takes as long as its tries happen to be: its time is no result. */
    WINDOW_LENGTH(metric(CLIENT, "All done in", "s", NEITHER, "time that a trial's rates are counts over")
            .resultOf(Load::isOfOneNumber)),
    REHEARSAL_TIME(metric(
                    SYSTEM,
                    "Rehearsed for",
                    "s",
                    NEITHER,
                    "time for which services had been under load since their boot when a trial's own warm-up began; 0:"
                            + " none was asked for")
            .optional()),
    REHEARSED_MEDIAN(metric(
                    SYSTEM,
                    "Median when rehearsed",
                    "ms",
                    NEITHER,
                    "lowest median response time among the last quarter of the rehearsal's slices under the trial's own"
                            + " load")
            .optional()),
    REQUESTS_SERVED(metric(
                    SERVICE,
                    "Requests served",
                    "requests",
                    NEITHER,
                    "requests that one service answered in a trial by its own count, warm-up and all steps together")
            .optional()),
    REQUESTS_SENT(metric(
                    GENERATOR,
                    "Requests sent",
                    "requests",
                    NEITHER,
                    "requests that the load generator sent in a trial by its own count, warm-up and all steps"
                            + " together")
            .optional()),
    REPLIES_COUNTED(metric(
                    GENERATOR,
                    "Replies counted",
                    "requests",
                    NEITHER,
                    "replies that the load generator had to them, late and wrong ones too")
            .optional()),
    GENERATOR_CPU(metric(
                    GENERATOR,
                    "Generator's processor use",
                    "%",
                    NEITHER,
                    "processor use of the load generator in percent of one core")
            .optional()),
    GENERATOR_COMPILING(metric(
                    GENERATOR,
                    "Generator's compilers",
                    "%",
                    NEITHER,
                    "processor time of the load generator's just-in-time compilers in percent of one core: high while"
                            + " it still warms up")
            .optional()),
    GENERATOR_LATENESS_P99(metric(
                    GENERATOR, "p99 lateness", "ms", NEITHER, "99th percentile of actual minus intended send time")
            .from(new MetricSource.Figures(), new MetricSource.Histograms(HistogramRow.Kind.SEND_DELAY, percentile(99)))
            .optional()),
    GENERATOR_CEILING(metric(
                    GENERATOR,
                    "Generator's ceiling",
                    "1/s",
                    NEITHER,
                    "requests a second that the load generator itself reaches against a server that does nothing")
            .belongsTo(Scope.RUN)
            .optional());

    /** Which way is good. */
    public enum Better {
        LOWER,
        HIGHER,
        NEITHER
    }

    /** What a metric is measured on. */
    public enum Subject {
        /** The load generator as the client of the first service. */
        CLIENT("client"),
        /** One step, round or try of a load; all of them together are the client's. */
        STEP("client"),
        /** One service's calls to one neighbour, and what they put on the wire. */
        HOP("hop"),
        /** One service; the typical one stands for all. */
        SERVICE("service"),
        /** All services together. */
        SYSTEM(FigureRow.SYSTEM),
        BROKER(FigureRow.BROKER),
        DATABASES(FigureRow.DATABASES),
        /** The load generator as a process. */
        GENERATOR(FigureRow.GENERATOR);

        private final String key;

        Subject(String key) {
            this.key = key;
        }

        /** The name in {@code summary.csv} of all such subjects together. */
        public String key() {
            return key;
        }
    }

    /** What a figure belongs to, and with that, which trials it is true of. */
    public enum Scope {
        /** The trial's own load. */
        LOAD,
        /** The whole run: each of its trials has it. */
        RUN,
        /** One message, under any load. */
        MESSAGE,
        /** A fresh start of the services, whatever they are sent afterwards. */
        BOOT
    }

    /** A section of the report's charts. */
    public enum Section {
        LATENCY,
        THROUGHPUT,
        /** What a request costs all services together. */
        COST,
        /** On the wire. */
        BYTES,
        /** What one service takes, beside the empty service. */
        SERVICE
    }

    private final MetricFacts facts;

    Metric(MetricFacts facts) {
        this.facts = facts;
    }

    public String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** ms, s, 1/s, %, B, kB (10³ bytes), MB (10⁶ bytes), or the name of what is counted. */
    public String unit() {
        return facts.unit;
    }

    public Better better() {
        return facts.better;
    }

    /** What it is in a clause, as it follows on a name and a colon. */
    public String meaning() {
        return facts.meaning;
    }

    /** What people call it, such as {@code p99 response time}. */
    public String title() {
        return facts.title;
    }

    /** The title with its unit, for the head of a column; a title that begins with what is counted has its unit. */
    public String heading() {
        return title().toLowerCase(Locale.ROOT).startsWith(unit() + " ") ? title() : title() + " (" + unit() + ")";
    }

    public Subject subject() {
        return facts.subject;
    }

    public Scope scope() {
        return facts.scope;
    }

    /** The first of these of which a technology has rows is the one that the metric is computed from. */
    public List<MetricSource> sources() {
        return facts.sources;
    }

    /** True where the figure of several services is their sum; otherwise it is that of the typical one. */
    public boolean isSummed() {
        return facts.isSummed;
    }

    /**
     * True where the figure of several restarts is their mean; otherwise it is their median. A share of requests has
     * the mean: a restart in which next to none was answered must not vanish behind two in which all were.
     */
    public boolean isMean() {
        return facts.isMean;
    }

    /** True where some technologies, works, loads or earlier runs have no such figure, and no row says so. */
    public boolean isOptional() {
        return facts.isOptional;
    }

    /**
     * What it says of a trial that went well that it has no such figure; empty for a figure that every such trial has.
     */
    public Optional<String> absence() {
        return facts.absence;
    }

    /** How many samples of each trial it takes to be more than a hint; 0 where any number does. */
    public long samplesWanted() {
        return facts.samplesWanted;
    }

    /** True where technologies are held against each other in it. */
    public boolean isCompared() {
        return facts.isCompared;
    }

    /** True where it is a result of the load, which is shown beside response time and throughput. */
    public boolean isResultOf(Load load) {
        return facts.results.test(load);
    }

    /** False for what belongs to a boot, a single request or a run, whatever load is offered and for however long. */
    public boolean isOfLoad() {
        return scope() == Scope.LOAD;
    }

    /**
     * True where nothing follows from a figure of a trial that is void or cold. Boot, size and bytes stay true when the
     * generator was too busy or a percentile cannot be believed.
     */
    public boolean needsValidTrial() {
        return switch (scope()) {
            case LOAD, RUN -> true;
            case MESSAGE, BOOT -> false;
        };
    }

    /** Head of its column in the terminal's table, unit included; empty where it has none there. */
    public Optional<String> column() {
        return facts.column;
    }

    /** Where the report has a chart of it; empty where it has none. */
    public Optional<Section> section() {
        return facts.section;
    }

    /** Title of the axis that it is drawn over, with the unit in brackets. */
    public String axis() {
        return facts.axis + " (" + unit() + ")";
    }

    /** The metric that is drawn inside this one, as the message is inside the bytes on the wire; empty if none is. */
    public Optional<Metric> part() {
        return Arrays.stream(values())
                .filter(metric -> metric.facts.whole.equals(Optional.of(this)))
                .findFirst();
    }

    /** Those of which a section of the report has charts. */
    public static List<Metric> chartedIn(Section section) {
        return Arrays.stream(values())
                .filter(metric -> metric.section().equals(Optional.of(section)))
                .toList();
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
