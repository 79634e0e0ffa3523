package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.model.FigureRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Technology;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** What each technology asks of a system: criteria architecture, topology and libraries. Source: kazanavicius, section 3.1. */
final class AskedPage {
    private final Analysis analysis;

    AskedPage(Analysis analysis) {
        this.analysis = analysis;
    }

    String html() {
        return "<div class=scroll>"
                + Html.table(
                        List.of(
                                "technology",
                                "style",
                                "needs",
                                "a service contains",
                                "who knows whom",
                                "queues, topics",
                                "encoding",
                                "files",
                                "MB"),
                        analysis.run().technologies().stream().map(this::row).toList())
                + "</div>\n" + libraries();
    }

    private List<String> row(Technology technology) {
        List<LibraryRow> files = files(technology.name());
        return List.of(
                technology.title(),
                technology.style().name().toLowerCase(Locale.ROOT),
                technology.broker().orElse("no broker"),
                String.join("; ", technology.components()),
                technology.knows(),
                technology.queues().isEmpty()
                        ? "none"
                        : technology.queues().entrySet().stream()
                                .map(queue -> queue.getKey() + ": " + queue.getValue())
                                .collect(Collectors.joining("; ")),
                technology.encoding(),
                files.isEmpty() ? "–" : Integer.toString(files.size()),
                files.isEmpty() ? "–" : megabytes(files));
    }

    private String libraries() {
        if (analysis.libraries().isEmpty()) {
            return "<p class=none>This run did not keep what its services were made of.</p>\n";
        }
        StringBuilder html = new StringBuilder("<h3>What a service is made of</h3>\n");
        List<String> names = new ArrayList<>(
                analysis.run().technologies().stream().map(Technology::name).toList());
        names.add(FigureRow.EMPTY);
        for (String name : names) {
            List<LibraryRow> files = files(name);
            if (!files.isEmpty()) {
                html.append("<details><summary>"
                        + Html.escaped(name.equals(FigureRow.EMPTY) ? "the empty service" : name) + ": " + files.size()
                        + (files.size() == 1 ? " file, " : " files, ") + megabytes(files)
                        + " MB</summary><div class=scroll>"
                        + Html.table(
                                List.of("file", "version", "licence", "kB"),
                                files.stream()
                                        .map(f -> List.of(
                                                f.name(), f.version(), f.licence(), Figures.brief(f.bytes() / 1e3)))
                                        .toList())
                        + "</div></details>\n");
            }
        }
        return html.toString();
    }

    private List<LibraryRow> files(String technology) {
        return analysis.libraries().stream()
                .filter(library -> library.technology().equals(technology))
                .toList();
    }

    private static String megabytes(List<LibraryRow> files) {
        return Figures.brief(files.stream().mapToLong(LibraryRow::bytes).sum() / 1e6);
    }
}
