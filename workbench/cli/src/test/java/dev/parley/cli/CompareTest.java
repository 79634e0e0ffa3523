package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.lab.Catalog;
import dev.parley.model.Load;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import dev.parley.studies.StudyText;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** The study that options make. Nothing is measured. */
class CompareTest {
    private static Study study(String... options) {
        Compare compare = new Compare();
        new CommandLine(compare).parseArgs(options);
        return compare.study(Catalog.read());
    }

    @Test
    void withoutATargetClientsAreComparedAsBefore() {
        Study study = study("--quick");
        assertThat(study.target()).isEmpty();
        assertThat(study.loads()).containsExactly(new Load.Closed(1), new Load.Closed(16));
        assertThat(study.effort()).isEqualTo(Effort.QUICK);
        assertThat(study.restarts()).isEqualTo(2);
        assertThat(study("--clients", "3").loads()).containsExactly(new Load.Closed(3));
        assertThat(StudyText.of(study)).doesNotContain("target");
    }

    @Test
    void aRateIsAnOpenLoadInPlaceOfClients() {
        Study study = study("--rate", "200", "--p99", "20ms", "--success", "99.9%");
        assertThat(study.loads()).containsExactly(Load.parse("open:200:poisson"));
        assertThat(study.target())
                .hasValueSatisfying(target -> assertThat(target).hasToString("rate 200, p99 20ms, success 99.9%"));
        assertThat(study.effort()).isEqualTo(Effort.STANDARD);
        assertThat(study.restarts()).isEqualTo(10);
        assertThat(StudyText.read(StudyText.of(study), study.technologies())).isEqualTo(study);
    }

    @Test
    void aRateAloneIsATargetToo() {
        assertThat(study("--rate", "0.5").target())
                .hasValueSatisfying(target -> assertThat(target).hasToString("rate 0.5"));
    }

    @Test
    void boundsWithoutARateAreAskedOfClients() {
        Study study = study("--p50", "2ms", "--p95", "4ms", "--p999", "8ms");
        assertThat(study.loads()).containsExactly(new Load.Closed(1), new Load.Closed(16));
        assertThat(study.target())
                .hasValueSatisfying(target -> assertThat(target).hasToString("p50 2ms, p95 4ms, p999 8ms"));
    }

    /** A percentile's thousand requests and five times their root, 1 158.1: at 100 a second it takes twelve seconds. */
    @Test
    void aQuickAnswerHasTheRestartsAndTheRequestsThatItTakes() {
        Study study = study("--quick", "--rate", "100", "--p99", "20ms");
        assertThat(study.restarts()).isEqualTo(3);
        assertThat(study.effort().window()).isEqualTo(Duration.ofSeconds(12));
        assertThat(study.effort().rehearsal()).isEqualTo(Effort.QUICK.rehearsal());
        assertThat(study("--quick", "--rate", "100", "--p50", "20ms").effort()).isEqualTo(Effort.QUICK);
        assertThat(study("--quick", "--rate", "1000", "--p99", "20ms").effort()).isEqualTo(Effort.QUICK);
        assertThat(study("--quick", "--restarts", "2", "--rate", "100").restarts())
                .isEqualTo(2);
        assertThat(StudyText.read(StudyText.of(study), List.of("rest", "grpc", "rpcx")))
                .isEqualTo(study);
    }
}
