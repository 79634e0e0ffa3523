package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class MetricTest {
    /** What recorded runs hold: a figure that was stored under a key is read by it, in its unit, for ever. */
    private static final List<String> STORED = """
            latency_mean ms
            latency_median ms
            latency_min ms
            latency_max ms
            latency_p95 ms
            latency_p99 ms
            latency_p999 ms
            first_call ms
            hop_mean ms
            hop_median ms
            hop_p99 ms
            throughput 1/s
            success_share %
            wire_out B
            wire_back B
            payload_out B
            payload_back B
            cpu_share %
            cpu_per_request ms
            compiling_share %
            memory_after_boot MB
            memory_after_load MB
            installed_size MB
            boot_time ms
            broker_cpu_per_request ms
            broker_memory MB
            database_cpu_per_request ms
            database_memory MB
            throughput_best 1/s
            clients_at_best clients
            clients_at_limit clients
            step_throughput 1/s
            step_answered 1/s
            step_latency_mean ms
            step_latency_p99 ms
            step_success_share %
            step_time ms
            scenario_time ms
            scenario_time_p99 ms
            users_at_first_failure users
            highest_rate 1/s
            window_length s
            rehearsal_time s
            rehearsed_median ms
            requests_served requests
            requests_sent requests
            replies_counted requests
            generator_cpu %
            generator_compiling %
            generator_lateness_p99 ms
            generator_ceiling 1/s
            """.lines().toList();

    private static Set<Metric> those(Predicate<Metric> wanted) {
        return Arrays.stream(Metric.values()).filter(wanted).collect(Collectors.toSet());
    }

    private static Set<Metric> resultsOf(String load) {
        return those(metric -> metric.isResultOf(Load.parse(load)));
    }

    @Test
    void whatWasStoredKeepsItsKeyAndItsUnit() {
        assertThat(Arrays.stream(Metric.values()).map(metric -> metric.key() + " " + metric.unit()))
                .containsAll(STORED);
        for (Metric metric : Metric.values()) {
            assertThat(Metric.ofKey(metric.key())).isSameAs(metric);
        }
        assertThatThrownBy(() -> Metric.ofKey("latency"))
                .isInstanceOf(BadInput.class)
                .hasMessage("metric: latency (expected: a metric of summary.csv, such as latency_median)");
    }

    @Test
    void noTwoMetricsHaveOneNameForPeople() {
        assertThat(Metric.values()).extracting(Metric::title).doesNotHaveDuplicates();
        assertThat(Arrays.stream(Metric.values()).flatMap(metric -> metric.column().stream()))
                .startsWith("mean ms", "p50 ms", "p99 ms", "req/s")
                .doesNotHaveDuplicates();
    }

    @Test
    void aHeadingNamesTheUnitOnce() {
        assertThat(Metric.LATENCY_P99.heading()).isEqualTo("p99 response time (ms)");
        assertThat(Metric.WINDOW_LENGTH.heading()).isEqualTo("All done in (s)");
        assertThat(Metric.CLIENTS_AT_LIMIT.heading()).isEqualTo("Clients when it gave out");
        assertThat(Metric.USERS_AT_FIRST_FAILURE.heading()).isEqualTo("Users at the first failure");
        assertThat(Metric.THROUGHPUT.axis()).isEqualTo("Right replies within the limit (1/s)");
        assertThat(Metric.FIRST_CALL.axis()).isEqualTo("First call (ms)");
    }

    @Test
    void farPercentilesWantManySamples() {
        assertThat(those(metric -> metric.samplesWanted() == 1_000))
                .containsExactlyInAnyOrder(Metric.LATENCY_P99, Metric.HOP_P99);
        assertThat(those(metric -> metric.samplesWanted() == 10_000)).containsExactly(Metric.LATENCY_P999);
        assertThat(Metric.LATENCY_P95.samplesWanted()).isZero();
    }

    @Test
    void aShareOfRequestsIsAMeanAndProcessorUseASum() {
        assertThat(those(Metric::isMean)).containsExactly(Metric.SUCCESS_SHARE);
        assertThat(those(Metric::isSummed)).containsExactly(Metric.CPU_SHARE);
    }

    @Test
    void technologiesAreComparedInFourMetrics() {
        assertThat(those(Metric::isCompared))
                .containsExactlyInAnyOrder(
                        Metric.LATENCY_MEDIAN, Metric.LATENCY_P99, Metric.THROUGHPUT, Metric.CPU_PER_REQUEST);
    }

    @Test
    void whatBelongsToABootOrAMessageStaysTrueInAVoidTrial() {
        Set<Metric> withoutLoad = EnumSet.of(
                Metric.FIRST_CALL,
                Metric.WIRE_OUT,
                Metric.WIRE_BACK,
                Metric.PAYLOAD_OUT,
                Metric.PAYLOAD_BACK,
                Metric.MEMORY_AFTER_BOOT,
                Metric.INSTALLED_SIZE,
                Metric.BOOT_TIME);
        assertThat(those(metric -> !metric.needsValidTrial())).isEqualTo(withoutLoad);
        withoutLoad.add(Metric.GENERATOR_CEILING);
        assertThat(those(metric -> !metric.isOfLoad())).isEqualTo(withoutLoad);
    }

    @Test
    void aLoadHasTheResultsThatItIsFor() {
        Set<Metric> ofEveryLoad = Set.of(Metric.SCENARIO_TIME, Metric.SCENARIO_TIME_P99);
        assertThat(resultsOf("closed:4")).isEqualTo(ofEveryLoad);
        assertThat(resultsOf("open:300:poisson")).isEqualTo(ofEveryLoad);
        assertThat(resultsOf("staircase:10-200:+10:30s"))
                .containsAll(ofEveryLoad)
                .contains(Metric.THROUGHPUT_BEST, Metric.CLIENTS_AT_BEST, Metric.CLIENTS_AT_LIMIT)
                .hasSize(5);
        assertThat(resultsOf("rates:200-2000:+200:10s"))
                .containsAll(ofEveryLoad)
                .contains(Metric.THROUGHPUT_BEST, Metric.RATE_AT_BEST, Metric.RATE_AT_LIMIT)
                .hasSize(5);
        assertThat(resultsOf("users:20:300ms:3"))
                .contains(Metric.USERS_AT_FIRST_FAILURE)
                .hasSize(3);
        assertThat(resultsOf("highest:50-100:p99:50ms:300ms"))
                .contains(Metric.HIGHEST_RATE)
                .hasSize(3);
        assertThat(resultsOf("burst:100:3")).contains(Metric.WINDOW_LENGTH).hasSize(3);
        assertThat(resultsOf("rounds:4x20:3:10s:shared"))
                .contains(Metric.WINDOW_LENGTH)
                .hasSize(3);
    }

    @Test
    void whatMayBeAbsentSaysWhatThatTells() {
        assertThat(those(metric -> metric.absence().isPresent()))
                .containsExactlyInAnyOrder(
                        Metric.CLIENTS_AT_LIMIT, Metric.RATE_AT_LIMIT, Metric.USERS_AT_FIRST_FAILURE);
        assertThat(Metric.CLIENTS_AT_LIMIT.absence()).contains("none: no step gave out");
        assertThat(those(metric -> metric.absence().isPresent())).allMatch(Metric::isOptional);
        assertThat(Metric.HIGHEST_RATE.isOptional()).isTrue();
        assertThat(Metric.LATENCY_MEAN.isOptional()).isFalse();
    }

    @Test
    void aSectionHasItsChartsInTheOrderOfTheMetrics() {
        assertThat(Metric.chartedIn(Metric.Section.LATENCY)).containsExactly(Metric.LATENCY_MEDIAN, Metric.LATENCY_P99);
        assertThat(Metric.values())
                .allSatisfy(metric -> assertThat(metric.section()
                                .map(section -> Metric.chartedIn(section).contains(metric)))
                        .isIn(Optional.empty(), Optional.of(true)));
        assertThat(Metric.WIRE_OUT.part()).contains(Metric.PAYLOAD_OUT);
        assertThat(Metric.WIRE_BACK.part()).contains(Metric.PAYLOAD_BACK);
        assertThat(Metric.PAYLOAD_OUT.part()).isEmpty();
    }

    @Test
    void summaryFilesNameSubjectsAsTheyDid() {
        assertThat(Metric.LATENCY_MEAN.subject().key()).isEqualTo("client");
        assertThat(Metric.STEP_TIME.subject().key()).isEqualTo("client");
        assertThat(Metric.WIRE_OUT.subject().key()).isEqualTo("hop");
        assertThat(Metric.CPU_SHARE.subject().key()).isEqualTo("system");
        assertThat(Metric.BOOT_TIME.subject().key()).isEqualTo("service");
        assertThat(Metric.BROKER_MEMORY.subject().key()).isEqualTo("broker");
        assertThat(Metric.DATABASE_MEMORY.subject().key()).isEqualTo("databases");
        assertThat(Metric.GENERATOR_CEILING.subject().key()).isEqualTo("generator");
    }

    @Test
    void aPercentileIsAShareOfAHundred() {
        assertThat(MetricSource.percentile(99.9)).hasValue(99.9);
        assertThatThrownBy(() -> MetricSource.percentile(101))
                .isInstanceOf(BadInput.class)
                .hasMessage("percentile: 101.0 (expected: 0 to 100)");
        assertThatThrownBy(() -> MetricSource.percentile(Double.NaN)).isInstanceOf(BadInput.class);
    }
}
