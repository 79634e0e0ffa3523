package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.Paper.Part;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Each claim of the papers can be borne out and refuted by figures that a run can have, and asks only for what the
 * parts measure and the standard scale decides, or says that it does not.
 */
class ClaimsCanBeDecidedTest {
    private static final List<String> NAMES = Paper.NAMES;

    /** A claim that needs more than the standard scale has this in its note. */
    private static final String NEEDS_PAPER_SCALE = "--scale paper";

    /**
     * A part that rehearses for less leaves its services cold, and what is cold decides nothing but what a cold start
     * is.
     */
    private static final Duration MIN_REHEARSAL = Duration.ofSeconds(30);

    private static final int MAX_TRIES = 40_000;

    /**
     * What figures that are changed together have in common; the empty one is nothing, so that one is changed alone.
     */
    private static final List<String> SHARED =
            List.of("", "", "technology", "load", "message", "metric", "subject", "part");

    /** A part as it is planned, all of whose technologies are here. */
    private record Plan(Part part, Study published, Scale.Scaled standard) {
        static List<Plan> of(Paper paper) {
            return paper.parts().stream()
                    .map(part -> new Plan(
                            part,
                            part.study(part.technologies()).orElseThrow(),
                            part.study(part.technologies(), Scale.STANDARD).orElseThrow()))
                    .toList();
        }

        /** The loads of this part that a figure of a claim may mean. */
        List<Load> loads(Paper paper, FigureQuery cell) {
            boolean isHere = isOrAny(cell.condition("part"), part.name())
                    && part.technologies().contains(cell.condition("technology"))
                    && published.topologies().stream().anyMatch(t -> isOrAny(cell.condition("topology"), t.text()));
            return isHere
                    ? paper.loads(cell.condition("load"), published).stream()
                            .filter(load -> published.messages().stream()
                                    .anyMatch(m ->
                                            isOrAny(cell.condition("message"), m.toString()) && published.has(m, load)))
                            .toList()
                    : List.of();
        }

        private static boolean isOrAny(String wanted, String is) {
            return wanted.isEmpty() || wanted.equals(is);
        }
    }

    /** The workbench's own figures that a claim is decided by. */
    private static Set<FigureQuery> asked(Paper paper, Claim claim) {
        Set<FigureQuery> asked = new LinkedHashSet<>();
        claim.judge(cell -> paper.measured(cell, inner -> {
            asked.add(inner);
            return Measured.number(1);
        }));
        return asked;
    }

    @ParameterizedTest
    @FieldSource("NAMES")
    void aClaimIsBorneOutByFiguresThatARunCanHaveAndRefutedByOthers(String name) {
        Paper paper = Paper.named(name);
        List<String> never = new ArrayList<>();
        for (Claim claim : paper.claims()) {
            for (Verdict verdict : List.of(Verdict.HOLDS, Verdict.DOES_NOT_HOLD)) {
                // another way to measure has the form of the claim that it stands beside
                boolean isDecided =
                        !claim.expression().isEmpty() && claim.beside().isEmpty();
                if (isDecided && !isReached(paper, claim, verdict)) {
                    never.add(claim.id() + " never " + verdict.words());
                }
            }
        }
        assertThat(never).isEmpty();
    }

    /**
     * Changes figures at random from a fixed seed, a single one or all that have a technology, a load, a message or a
     * metric in common, and keeps what brings no comparison further from the verdict.
     */
    private static boolean isReached(Paper paper, Claim claim, Verdict verdict) {
        Random random = new Random(20261122);
        List<FigureQuery> cells = List.copyOf(asked(paper, claim));
        List<Possible> possible = cells.stream().map(Possible::of).toList();
        // a place in the list for each cell: figures are looked up millions of times
        Expression.Statement statement = Expression.rewritten(
                paper.inOwnMetrics(ExpressionParser.statement(claim.id(), claim.expression())),
                cell -> new Expression.Of(cells.get(cells.indexOf(cell))));
        double[] figures = possible.stream().mapToDouble(one -> one.nearest(0)).toArray();
        long reached = -1;
        for (int tries = 0; tries < MAX_TRIES; tries++) {
            FigureQuery one = cells.get(random.nextInt(cells.size()));
            String shared = SHARED.get(random.nextInt(SHARED.size()));
            // a long step finds the way, a short one the goal of a claim that asks for alike
            double change = (random.nextBoolean() ? 1.5 : 0.15) * random.nextGaussian();
            Map<FigureQuery, Measured> changed = new IdentityHashMap<>();
            double[] next = figures.clone();
            for (int i = 0; i < next.length; i++) {
                FigureQuery cell = cells.get(i);
                if (cell == one || !shared.isEmpty() && value(cell, shared).equals(value(one, shared))) {
                    next[i] = possible.get(i).nearest(Math.log(figures[i]) + change);
                }
                changed.put(cell, Measured.number(next[i]));
            }
            Judgement judged = Expression.judge(statement, changed::get);
            if (judged.verdict() == verdict) {
                return true;
            }
            long now = judged.findings().stream()
                    .map(Finding::verdict)
                    .filter(verdict::equals)
                    .count();
            if (now >= reached) {
                reached = now;
                figures = next;
            }
        }
        return false;
    }

    private static String value(FigureQuery cell, String shared) {
        return shared.equals("metric") ? cell.metric() : cell.condition(shared);
    }

    /** The figures that a cell can have. */
    private record Possible(double least, double most) {
        static Possible of(FigureQuery cell) {
            Metric metric = Metric.ofKey(cell.metric());
            double least = switch (metric) {
                // no process of a JVM, and none of a broker, holds less
                case MEMORY_AFTER_BOOT, MEMORY_AFTER_LOAD, BROKER_MEMORY, DATABASE_MEMORY -> 10;
                // kazanavicius, section 3.1: from 10 to 200
                case CLIENTS_AT_BEST, CLIENTS_AT_LIMIT -> 10;
                case USERS_AT_FIRST_FAILURE -> 1;
                default -> 1e-3;
            };
            double most = switch (metric) {
                case SUCCESS_SHARE, STEP_SUCCESS_SHARE -> 100;
                case CLIENTS_AT_BEST, CLIENTS_AT_LIMIT -> 200;
                default -> 1e6;
            };
            return new Possible(least, most);
        }

        /**
         * The one nearest to one of this logarithm; 0 is that of a figure that all metrics can have or come close to.
         */
        double nearest(double logarithm) {
            return Math.clamp(Math.exp(logarithm), least, most);
        }
    }

    /**
     * A misspelt hop or step would be missing for ever, and a claim on a load that the scale cuts short would never be
     * decided.
     */
    @ParameterizedTest
    @FieldSource("NAMES")
    void aClaimAsksForWhatAPartMeasuresAndTheStandardScaleDecides(String name) {
        Paper paper = Paper.named(name);
        List<Plan> plans = Plan.of(paper);
        List<String> open = new ArrayList<>();
        for (Claim claim : paper.claims()) {
            Set<String> missing = new LinkedHashSet<>();
            for (FigureQuery cell : asked(paper, claim)) {
                List<String> places = new ArrayList<>();
                for (Plan plan : plans) {
                    for (Load load : plan.loads(paper, cell)) {
                        places.add(plan.part().name() + " " + load);
                        lacks(plan, cell, load, missing);
                    }
                }
                if (places.size() != 1) {
                    missing.add(cell + " is measured in " + places);
                }
            }
            if (missing.stream().allMatch(NEEDS_PAPER_SCALE::equals)) {
                if (!missing.isEmpty() != claim.note().contains(NEEDS_PAPER_SCALE)) {
                    open.add(claim.id() + ": needs " + missing + ", says: " + claim.note());
                }
            } else {
                open.add(claim.id() + ": " + missing);
            }
        }
        assertThat(open).isEmpty();
    }

    /** What a cell asks for and its part does not have. */
    private static void lacks(Plan plan, FigureQuery cell, Load published, Set<String> missing) {
        Metric metric = Metric.ofKey(cell.metric());
        Study standard = plan.standard().study();
        Load load = plan.standard().loads().getOrDefault(published, published);
        if (!subjects(metric, plan, cell, load).contains(cell.condition("subject"))) {
            missing.add(cell + " has no such subject");
        }
        boolean isColdStart = standard.effort().rehearsal().isZero()
                && standard.effort().warmUpMost().isZero()
                && load.isCounted();
        if (metric.isOfLoad() && !isColdStart && standard.effort().rehearsal().compareTo(MIN_REHEARSAL) < 0) {
            missing.add(cell + " is of a part that stays cold");
        }
        if (metric == Metric.MEMORY_AFTER_LOAD && !standard.carriesOneMessage()) {
            missing.add(cell + " is of services that carried other messages before");
        }
        if (metric == Metric.USERS_AT_FIRST_FAILURE && !load.hasUsers()) {
            missing.add(cell + " is of a load without users");
        }
        if (Scale.undecided(metric, published, load, standard).isPresent()) {
            missing.add(NEEDS_PAPER_SCALE);
        }
    }

    /** What a figure of a metric can be of; an empty text is the whole. */
    private static Set<String> subjects(Metric metric, Plan plan, FigureQuery cell, Load load) {
        Set<String> subjects = new LinkedHashSet<>();
        List<Topology> topologies = plan.published().topologies().stream()
                .filter(t -> Plan.isOrAny(cell.condition("topology"), t.text()))
                .toList();
        switch (metric) {
            case HOP_MEAN, HOP_MEDIAN, HOP_P99 -> {
                topologies.forEach(topology -> topology.nodes()
                        .forEach(node -> node.calls().forEach(callee -> subjects.add(node.name() + ">" + callee))));
                if (subjects.size() == 1) {
                    subjects.add("");
                }
            }
            case MEMORY_AFTER_LOAD, CPU_SHARE -> {
                subjects.add("");
                topologies.forEach(topology -> topology.nodes().forEach(node -> subjects.add(node.name())));
            }
            case STEP_THROUGHPUT, STEP_ANSWERED, STEP_LATENCY_MEAN, STEP_LATENCY_P99, STEP_SUCCESS_SHARE, STEP_TIME -> {
                if (load instanceof Load.Staircase staircase) {
                    subjects.add("all");
                    staircase.steps().forEach(clients -> subjects.add(clients + " clients"));
                } else if (load instanceof Load.Rounds rounds) {
                    subjects.addAll(Set.of("all", "counted"));
                    for (int round = 0; round < rounds.rounds(); round++) {
                        subjects.add("round " + round);
                    }
                }
            }
            case CLIENTS_AT_BEST, CLIENTS_AT_LIMIT, THROUGHPUT_BEST -> {
                if (load instanceof Load.Staircase) {
                    subjects.add("");
                }
            }
            default -> subjects.add("");
        }
        return subjects;
    }

    /** What no expression decides says why. */
    @ParameterizedTest
    @FieldSource("NAMES")
    void aClaimThatIsNotMeasuredSaysSo(String name) {
        assertThat(Paper.named(name).claims())
                .filteredOn(claim -> claim.expression().isEmpty())
                .allSatisfy(claim -> assertThat(claim.note()).as(claim.id()).contains(", not of "));
    }

    /** A technology that runs for hours and that nothing asks for is one that claims and figures have forgotten. */
    @ParameterizedTest
    @FieldSource("NAMES")
    void everyTechnologyOfAPartIsAskedForByAClaimOrAFigure(String name) {
        Paper paper = Paper.named(name);
        List<FigureQuery> asked = new ArrayList<>();
        paper.claims().forEach(claim -> asked.addAll(asked(paper, claim)));
        paper.figures()
                .forEach(figure -> asked.add(new FigureQuery(
                        figure.metric(),
                        Map.of("technology", figure.technology(), "part", figure.part(), "load", figure.load()))));
        for (Plan plan : Plan.of(paper)) {
            assertThat(plan.part().technologies())
                    .as(plan.part().name())
                    .allSatisfy(technology -> assertThat(asked)
                            .anyMatch(cell -> cell.condition("technology").equals(technology)
                                    && (!plan.loads(paper, cell).isEmpty()
                                            || cell.condition("load").isEmpty()
                                                    && Plan.isOrAny(
                                                            cell.condition("part"),
                                                            plan.part().name()))));
        }
    }

    /** The page of variants says which studies run each: those whose parts have it, and no others. */
    @Test
    void thePageOfVariantsNamesTheStudiesThatRunThem() throws IOException {
        Map<String, Set<String>> studies = new LinkedHashMap<>();
        for (String name : NAMES) {
            for (Part part : Paper.named(name).parts()) {
                part.technologies()
                        .forEach(technology -> studies.computeIfAbsent(technology, _ -> new LinkedHashSet<>())
                                .add(name));
            }
        }
        List<String[]> rows = Files.readAllLines(Path.of("../../docs/variants.md")).stream()
                .filter(line -> line.startsWith("| `"))
                .map(line -> line.split("\\|"))
                .filter(cells -> cells.length > 5)
                .toList();
        assertThat(rows).hasSizeGreaterThanOrEqualTo(10);
        for (String[] row : rows) {
            for (String variant : row[1].replace("`", "").split(",")) {
                assertThat(Arrays.stream(row[5].split(",")).map(String::strip).collect(Collectors.toSet()))
                        .as(variant)
                        .isEqualTo(studies.getOrDefault(variant.strip(), Set.of("none")));
            }
        }
    }
}
