package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Redrawn;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Nearest;
import dev.parley.model.Rules;
import dev.parley.model.Run;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.studies.FigureQuery;
import dev.parley.studies.Measured;
import dev.parley.studies.Paper;
import dev.parley.studies.Paper.Part;
import dev.parley.studies.Scale;
import dev.parley.studies.StudyText;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** A paper and what was measured of it here: finds a figure for what its claims and tables ask for. */
public final class PaperRun {
    /** The mean of the steps that count: zhang drops the first of its rounds. */
    private static final String COUNTED = "counted";

    /** The mean of all steps, the first round too. */
    private static final String ALL = "all";

    private static final String NOT_COUNTED = "round 0";

    private static final String UNDECIDED = "not decided";

    private final Paper paper;
    private final Scale scale;
    private final List<PartRun> parts;
    private final List<Sitting> sittings;

    /**
     * One part.
     *
     * @param plan what was to be measured here; empty where nothing of the published plan can be
     * @param published the published plan, without what is not here; empty where {@code plan} is
     * @param analysis of the run; empty where there is none
     * @param why there is none, or what was left out of it; empty where nothing is missing
     * @param stored digest of the study that the run was of; empty where there is no run
     */
    public record PartRun(
            Part part,
            Optional<Scale.Scaled> plan,
            Optional<Study> published,
            Optional<Analysis> analysis,
            String why,
            Optional<String> stored) {
        public PartRun(
                Part part,
                Optional<Scale.Scaled> plan,
                Optional<Analysis> analysis,
                String why,
                Optional<String> stored) {
            this(part, plan, plan.flatMap(p -> part.study(p.study().technologies())), analysis, why, stored);
        }

        /**
         * Why nothing of the run decides anything here, whatever its figures are; empty where it was measured as it
         * would be now.
         */
        Optional<String> undecided() {
            if (analysis.isEmpty()) {
                return Optional.empty();
            }
            Run run = analysis.get().run();
            if (!Rules.areOf(run)) {
                return Optional.of("measured by other rules (" + Rules.of(run) + "; here " + Rules.VERSION + ")");
            }
            return stored.isEmpty()
                            || plan.isEmpty()
                            || stored.get().equals(StudyText.digest(plan.get().study()))
                    ? Optional.empty()
                    : Optional.of("measured by another plan than the one that stands here");
        }

        boolean measures(List<String> technologies) {
            return plan.isPresent() && plan.get().study().technologies().containsAll(technologies);
        }
    }

    /** Where a figure was found. */
    record Place(PartRun run, String technology, Situation situation, Load published) {}

    /** A figure found: what, where, and whether it may be believed. */
    record Found(Place place, Measured figure, String validity) {
        /** False for figures that are shown, and from which no verdict follows. */
        boolean decides() {
            return PaperRun.decides(validity);
        }
    }

    /** Whether a figure of this validity may stand in a ratio, an order or a verdict. */
    static boolean decides(String validity) {
        return Summary.counts(validity) && !validity.startsWith(UNDECIDED);
    }

    /** @param sittings in which it was run, the first first */
    public PaperRun(Paper paper, Scale scale, List<PartRun> parts, List<Sitting> sittings) {
        this.sittings = List.copyOf(sittings);
        this.paper = paper;
        this.scale = scale;
        this.parts = List.copyOf(parts);
    }

    public Paper paper() {
        return paper;
    }

    public Scale scale() {
        return scale;
    }

    public List<PartRun> parts() {
        return parts;
    }

    List<Sitting> sittings() {
        return sittings;
    }

    /** The one figure that a claim asks for; missing where it may decide nothing. */
    public Measured measured(FigureQuery query) {
        return paper.measured(query, inner -> {
            List<Place> places = places(inner);
            if (places.isEmpty()) {
                return Measured.missing(why(inner));
            }
            Found found = found(places.getFirst(), inner);
            return found.decides() ? found.figure() : Measured.missing(found.validity() + " (" + inner + ")");
        });
    }

    /**
     * Every place where a condition was measured, in the order of the plan: one for each part and each load that stands
     * for the paper's.
     */
    List<Place> places(FigureQuery query) {
        List<Place> places = new ArrayList<>();
        String technology = query.condition("technology");
        for (PartRun run : parts) {
            if (!run.measures(List.of(technology))
                    || run.analysis().isEmpty()
                    || !isOrAny(query.condition("part"), run.part().name())) {
                continue;
            }
            Scale.Scaled plan = run.plan().orElseThrow();
            Optional<Topology> topology = plan.study().topologies().stream()
                    .filter(t -> isOrAny(query.condition("topology"), t.text()))
                    .findFirst();
            if (topology.isEmpty()) {
                continue;
            }
            boolean isFirstAlone = query.condition("load").isEmpty();
            boolean hasPlace = false;
            for (Load load : loads(query, run)) {
                Load scaled = plan.loads().getOrDefault(load, load);
                Optional<MessageSpec> message = plan.study().messages().stream()
                        .filter(m -> isOrAny(query.condition("message"), m.toString())
                                && plan.study().has(m, scaled))
                        .findFirst();
                if (message.isEmpty() || isFirstAlone && hasPlace) {
                    continue;
                }
                hasPlace = true;
                places.add(new Place(
                        run,
                        technology,
                        new Situation(topology.get().text(), message.get().toString(), scaled),
                        load));
            }
        }
        return places;
    }

    /** All where the query names none: the first that goes with its message is meant. */
    private List<Load> loads(FigureQuery query, PartRun run) {
        return run.published()
                .map(study ->
                        query.condition("load").isEmpty() ? study.loads() : paper.loads(query.condition("load"), study))
                .orElse(List.of());
    }

    /** The paper's metric at one place; each of its parts there too. */
    Found found(Place place, FigureQuery query) {
        List<String> invalid = new ArrayList<>();
        Measured figure = paper.measured(query, inner -> {
            String technology = inner.condition("technology");
            if (!Metric.keys().contains(inner.metric())) {
                return Measured.missing(inner.metric() + " is not measured here"
                        + Nearest.of(inner.metric(), Metric.keys())
                                .map(near -> "; did you mean " + near + "?")
                                .orElse(""));
            }
            Metric metric = Metric.ofKey(inner.metric());
            undecided(place, metric).ifPresent(why -> invalid.addFirst(UNDECIDED + why));
            Analysis analysis = place.run().analysis().orElseThrow();
            analysis.summary(technology, place.situation(), metric)
                    .map(Summary::validity)
                    .filter(validity -> !validity.equals("valid"))
                    .ifPresent(invalid::add);
            return redrawn(analysis, technology, place.situation(), metric, inner.condition("subject"))
                    .map(PaperRun::measured)
                    .orElseGet(
                            () -> Measured.missing(LoadFigures.absence(analysis, place.situation(), technology, metric)
                                    .orElse("not measured: " + inner)));
        });
        return new Found(place, figure, worst(invalid));
    }

    /**
     * A figure made of several is as good as the worst of them: one that is void, else one that decides nothing, else
     * the first with a remark.
     */
    private static String worst(List<String> invalid) {
        return Stream.<Predicate<String>>of(v -> v.startsWith("void"), v -> !decides(v), _ -> true)
                .flatMap(wanted -> invalid.stream().filter(wanted).limit(1))
                .findFirst()
                .orElse("valid");
    }

    private static Measured measured(Redrawn redrawn) {
        Map<Integer, Measured.Restart> byRestart = new TreeMap<>();
        redrawn.byRestart().forEach((number, r) -> byRestart.put(number, new Measured.Restart(r.value(), r.redrawn())));
        return Measured.of(byRestart, redrawn.tried(), redrawn.isMean());
    }

    /** Why a figure may be shown and decides nothing, as it follows on {@value #UNDECIDED}. */
    private static Optional<String> undecided(Place place, Metric metric) {
        return place.run()
                .undecided()
                .map(why -> ": " + why)
                .or(() -> place.run()
                        .plan()
                        .flatMap(plan -> Scale.undecided(
                                metric, place.published(), place.situation().load(), plan.study())))
                .map(why -> why.startsWith(":") ? why : " at this scale: " + why)
                .or(() -> metric == Metric.MEMORY_AFTER_LOAD
                                && place.run()
                                        .plan()
                                        .filter(plan -> !plan.study().carriesOneMessage())
                                        .isPresent()
                        ? Optional.of(
                                ": its services carried other messages before, and memory keeps what they asked for")
                        : Optional.empty());
    }

    private static Optional<Redrawn> redrawn(
            Analysis analysis, String technology, Situation situation, Metric metric, String subject) {
        if (subject.isEmpty()) {
            return analysis.redrawn(technology, situation, metric);
        }
        return analysis.redrawn(technology, situation, metric, name -> switch (subject) {
            case ALL -> true;
            case COUNTED -> !name.equals(NOT_COUNTED);
            default -> name.equals(subject);
        });
    }

    private String why(FigureQuery query) {
        for (PartRun run : parts) {
            if (isOrAny(query.condition("part"), run.part().name())
                    && (run.analysis().isEmpty()
                            || run.plan().isEmpty()
                            || !run.plan().get().study().technologies().contains(query.condition("technology")))
                    && !run.why().isEmpty()) {
                return "not measured: " + run.why();
            }
        }
        return "not measured: " + query;
    }

    private static boolean isOrAny(String wanted, String is) {
        return wanted.isEmpty() || wanted.equals(is);
    }
}
