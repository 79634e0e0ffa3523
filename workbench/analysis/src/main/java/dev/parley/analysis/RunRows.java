package dev.parley.analysis;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.RunStore;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;

/** The raw rows of one run, by trial. */
record RunRows(
        Run run,
        List<TrialSpec> plan,
        List<JudgedTrial> trials,
        Map<Integer, List<SecondRow>> seconds,
        Map<Integer, List<HistogramRow>> histograms,
        Map<Integer, List<FigureRow>> figures,
        List<LibraryRow> libraries) {

    static RunRows of(RunStore store) {
        Map<Integer, List<SecondRow>> seconds = byTrial(store.seconds(), SecondRow::trialId);
        Map<Integer, List<HistogramRow>> histograms = byTrial(store.histograms(), HistogramRow::trialId);
        Map<Integer, List<FigureRow>> figures = byTrial(store.figures(), FigureRow::trialId);
        List<JudgedTrial> trials = store.trials().stream()
                .map(trial -> judged(trial, seconds, histograms, figures))
                .toList();
        return new RunRows(store.run(), store.plan(), trials, seconds, histograms, figures, store.libraries());
    }

    private static JudgedTrial judged(
            TrialRow trial,
            Map<Integer, List<SecondRow>> seconds,
            Map<Integer, List<HistogramRow>> histograms,
            Map<Integer, List<FigureRow>> figures) {
        LinkedHashSet<String> reasons = new LinkedHashSet<>(trial.voidReasons());
        if (trial.state() == TrialRow.State.FINISHED) {
            int id = trial.spec().id();
            // the generator checks the same as it runs, in the same words; its Little's law counts in its own way
            boolean littleToldAlready = trial.voidReasons().stream().anyMatch(r -> r.startsWith(Validity.LITTLES_LAW));
            Validity.reasons(trial.spec(), seconds.getOrDefault(id, List.of()), histograms.getOrDefault(id, List.of()))
                    .stream()
                    .filter(r -> !(littleToldAlready && r.startsWith(Validity.LITTLES_LAW)))
                    .forEach(reasons::add);
            reasons.addAll(Warmth.reasons(
                    trial.spec(),
                    seconds.getOrDefault(id, List.of()),
                    histograms.getOrDefault(id, List.of()),
                    figures.getOrDefault(id, List.of())));
        }
        return new JudgedTrial(trial, List.copyOf(reasons));
    }

    private static <T> Map<Integer, List<T>> byTrial(List<T> rows, ToIntFunction<T> trialId) {
        return rows.stream().collect(Collectors.groupingBy(trialId::applyAsInt));
    }

    /** Technologies in the order asked for, each in the situations of the plan. */
    Map<Cell, List<JudgedTrial>> cells() {
        Map<Cell, List<JudgedTrial>> cells = new LinkedHashMap<>();
        List<String> order = run.technologies().stream().map(t -> t.name()).toList();
        plan.stream()
                .map(Cell::of)
                .distinct()
                .sorted(java.util.Comparator.comparingInt(c -> {
                    int at = order.indexOf(c.technology());
                    return at < 0 ? order.size() : at;
                }))
                .forEach(cell -> cells.put(cell, new ArrayList<>()));
        for (JudgedTrial trial : trials) {
            List<JudgedTrial> own = cells.get(Cell.of(trial.row().spec()));
            if (own != null) {
                own.add(trial);
            }
        }
        return cells;
    }

    /**
     * The finished trials that a cell's figures rest on: the valid ones; where none is, those not shown to be warm; all
     * where every one is void.
     */
    static List<JudgedTrial> counted(List<JudgedTrial> trials) {
        return java.util.stream.Stream.<Predicate<JudgedTrial>>of(
                        JudgedTrial::isValid, trial -> trial.isCold() || trial.isUnknown(), JudgedTrial::isFinished)
                .map(which -> trials.stream().filter(which).toList())
                .filter(some -> !some.isEmpty())
                .findFirst()
                .orElse(List.of());
    }
}
