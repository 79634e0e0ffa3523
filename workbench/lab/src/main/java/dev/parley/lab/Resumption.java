package dev.parley.lab;

import dev.parley.model.BadInput;
import dev.parley.model.Run;
import dev.parley.model.Study;
import dev.parley.model.TrialSpec;
import dev.parley.store.StoredStudy;
import dev.parley.studies.StudyText;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Whether a stored run can be gone on with here: its figures must all be of one study, one machine and one version of everything. */
final class Resumption {
    private Resumption() {}

    static void mustBeSame(Path out, StoredStudy stored, Study read, Optional<Study> given) {
        must(
                out,
                "a study of digest " + StudyText.digest(read),
                stored.digest().equals(StudyText.digest(read)),
                "a study of digest " + stored.digest());
        given.ifPresent(study -> must(
                out,
                "the study " + study.title() + ", digest " + StudyText.digest(study),
                stored.digest().equals(StudyText.digest(study)),
                "a study of digest " + stored.digest()));
    }

    static void mustBeSame(Path out, Run stored, Run here, List<TrialSpec> storedPlan, List<TrialSpec> plan) {
        must(out, "commit " + here.commit(), stored.commit().equals(here.commit()), "commit " + stored.commit());
        must(out, "JDK " + here.jdk(), stored.jdk().equals(here.jdk()), "JDK " + stored.jdk());
        must(out, "machine " + here.machine(), stored.machine().equals(here.machine()), "machine " + stored.machine());
        must(
                out,
                "JVM flags " + here.jvmFlags(),
                stored.jvmFlags().equals(here.jvmFlags()),
                "JVM flags " + stored.jvmFlags());
        must(
                out,
                "technologies as they describe themselves here",
                stored.technologies().equals(here.technologies()),
                "others");
        must(out, "the plan of its study", storedPlan.equals(plan), "another plan");
    }

    private static void must(Path out, String here, boolean isSame, Object stored) {
        if (!isSame) {
            throw new BadInput(
                    "--resume", out + " with " + stored, here + "; figures of two are never mixed in one run");
        }
    }
}
