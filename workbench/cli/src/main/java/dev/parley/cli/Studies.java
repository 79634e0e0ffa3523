package dev.parley.cli;

import dev.parley.lab.Catalog;
import dev.parley.lab.Plan;
import dev.parley.lab.TimeRange;
import dev.parley.spi.Work;
import dev.parley.studies.Paper;
import dev.parley.studies.PublishedFigure;
import dev.parley.studies.Scale;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

/** The published experiments that can be run again, and what each needs. */
@Command(
        name = "studies",
        description = {
            "Lists the published experiments that ${ROOT-COMMAND-NAME} reproduce runs again: what each of them"
                    + " measured, what it needs, what of that is missing here, and about how long it takes at each"
                    + " scale. Measures nothing, and writes nothing.",
            ""
        },
        footer = {"", "Exit codes: 0 good, 1 error.", "", "Example: ${ROOT-COMMAND-NAME} studies"})
final class Studies implements Callable<Integer> {
    @Override
    public Integer call() {
        List<String> here = Catalog.read().names();
        for (String name : Paper.NAMES) {
            Paper paper = Paper.named(name);
            long measured = paper.figures().stream()
                    .filter(figure -> !figure.isPlanned())
                    .map(PublishedFigure::place)
                    .distinct()
                    .count();
            System.out.println(name + "  " + paper.citation());
            System.out.println("  " + paper.figures().size() + " published figures from " + measured + " places, "
                    + paper.claims().size() + " claims");
            for (Paper.Part part : paper.parts()) {
                System.out.println("  " + part.name() + ": " + part.place());
                System.out.println("    technologies " + String.join(", ", part.technologies()) + "; work "
                        + part.work() + needs(part));
                List<String> missing = part.missing(here);
                if (!missing.isEmpty()) {
                    System.out.println("    not here: " + String.join(", ", missing));
                }
            }
            List<String> times = new ArrayList<>();
            for (Scale scale : Scale.values()) {
                times.add(scale + " about " + estimate(paper, here, scale));
            }
            System.out.println("  takes " + String.join(", ", times));
            System.out.println();
        }
        for (Scale scale : Scale.values()) {
            System.out.println("--scale " + scale + ": " + scale.rule());
        }
        return 0;
    }

    private static String needs(Paper.Part part) {
        return part.study(part.technologies())
                .map(study -> Work.named(study.work()))
                .filter(work -> !work.backends().isEmpty())
                .map(work -> " with " + String.join(" and ", work.backends()) + (work.hasBackendsEach() ? " each" : ""))
                .orElse("");
    }

    static TimeRange estimate(Paper paper, List<String> here, Scale scale) {
        return paper.parts().stream()
                .map(part -> part.study(here, scale))
                .flatMap(Optional::stream)
                .map(scaled -> Plan.of(scaled.study()).estimate())
                .reduce(TimeRange.NONE, TimeRange::plus);
    }
}
