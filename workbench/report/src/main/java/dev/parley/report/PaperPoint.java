package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Topology;
import dev.parley.report.PaperRun.Found;
import dev.parley.report.PaperRun.PartRun;
import dev.parley.report.PaperRun.Place;
import dev.parley.studies.Curve;
import dev.parley.studies.FigureQuery;
import dev.parley.studies.Scale;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * One point of a curve, which is a chart that a paper prints of a metric against a growing number.
 *
 * @param curve its number among the curves, from 1 on
 * @param panel the drawing that the point belongs to
 * @param at the growing number
 * @param theirs NaN where the paper gives none
 */
record PaperPoint(int curve, String panel, String line, double at, Ours ours, double theirs) {
    /** Those of every curve of the paper. */
    static List<PaperPoint> of(PaperRun run) {
        List<PaperPoint> all = new ArrayList<>();
        int number = 1;
        for (Curve curve : run.paper().curves()) {
            Finder finder = new Finder(run, curve, number++, all);
            for (PartRun part : run.parts()) {
                if (part.analysis().isPresent()) {
                    part.plan().ifPresent(plan -> finder.points(part, plan));
                }
            }
        }
        return all;
    }

    /** Goes through what was measured of a part, and takes what the curve is of. */
    private record Finder(PaperRun run, Curve curve, int number, List<PaperPoint> all) {
        void points(PartRun part, Scale.Scaled plan) {
            List<Load> published = part.published()
                    .map(study ->
                            curve.load().isEmpty() ? study.loads() : run.paper().loads(curve.load(), study))
                    .orElse(List.of());
            for (Load load : published) {
                Load scaled = plan.loads().getOrDefault(load, load);
                for (String technology : plan.study().technologies()) {
                    for (Topology topology : plan.study().topologies()) {
                        for (MessageSpec message : plan.study().messages()) {
                            if (plan.study().has(message, scaled)) {
                                Situation situation = new Situation(topology.text(), message.toString(), scaled);
                                points(new Place(part, technology, situation, load));
                            }
                        }
                    }
                }
            }
        }

        private void points(Place place) {
            switch (curve.across()) {
                case STEP -> steps(place);
                case THREADS -> {
                    if (place.published() instanceof Load.Rounds rounds) {
                        point(place, rounds.threads());
                    }
                }
                case REQUESTS -> {
                    if (place.published() instanceof Load.Rounds rounds) {
                        point(place, rounds.requests());
                    }
                }
                case AMOUNT -> point(place, place.published().amount());
            }
        }

        private void steps(Place place) {
            Analysis analysis = place.run().analysis().orElseThrow();
            Metric metric = Metric.ofKey(curve.metric());
            for (Summary step : analysis.details()) {
                String at = step.subject().split(" ", 2)[0];
                if (step.metric() == metric
                        && step.technology().equals(place.technology())
                        && new Situation(step.topology(), step.message(), step.load()).equals(place.situation())
                        && at.matches("\\d+")) {
                    point(place, Double.parseDouble(at), step.subject(), Double.NaN);
                }
            }
        }

        private void point(Place place, double at) {
            point(place, at, curve.subject(), theirs(place));
        }

        private void point(Place place, double at, String subject, double theirs) {
            Map<String, String> conditions = new LinkedHashMap<>();
            conditions.put("technology", place.technology());
            conditions.put("topology", place.situation().topology());
            conditions.put("message", place.situation().message());
            conditions.put("load", place.published().toString());
            if (!subject.isEmpty()) {
                conditions.put("subject", subject);
            }
            Found found = run.found(place, new FigureQuery(curve.metric(), conditions));
            if (!found.figure().isMissing()) {
                Map<String, String> told = told(place);
                all.add(new PaperPoint(
                        number,
                        text(told, curve.panels()),
                        text(told, curve.lines()),
                        at,
                        Ours.of(found.figure(), found.validity()),
                        theirs));
            }
        }

        /** The paper's figure at one point, whichever form its load is written in. */
        private double theirs(Place place) {
            return run.paper().figures().stream()
                    .filter(f -> f.metric().equals(curve.metric())
                            && !f.isDrawn()
                            && f.technology().equals(place.technology())
                            && isOrAny(f.topology(), place.situation().topology())
                            && isOrAny(f.message(), place.situation().message())
                            && isOrAny(f.part(), place.run().part().name())
                            && isOrAny(f.subject(), curve.subject())
                            && place.run()
                                    .published()
                                    .map(study -> run.paper().loads(f.load(), study))
                                    .orElse(List.of())
                                    .contains(place.published()))
                    .mapToDouble(f -> f.value())
                    .findFirst()
                    .orElse(Double.NaN);
        }

        private static boolean isOrAny(String wanted, String is) {
            return wanted.isEmpty() || wanted.equals(is);
        }

        private static Map<String, String> told(Place place) {
            Map<String, String> told = new LinkedHashMap<>();
            told.put("technology", place.technology());
            told.put("topology", place.situation().topology());
            told.put("message", place.situation().message());
            told.put("load", place.published().toString());
            told.put("part", place.run().part().name());
            if (place.published() instanceof Load.Rounds rounds) {
                told.put("threads", rounds.threads() + " threads");
                told.put("requests", rounds.requests() + " requests");
            }
            return told;
        }

        private static String text(Map<String, String> told, List<String> keys) {
            return keys.stream().map(key -> told.getOrDefault(key, "")).collect(Collectors.joining(", "));
        }
    }
}
