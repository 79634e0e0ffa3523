package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.model.FigureRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Technology;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * What each technology asks of a system: criteria architecture, topology and libraries. Source: kazanavicius, section
 * 3.1.
 *
 * @param libraries of each technology; none where the run did not keep what its services were made of
 */
record AskedPage(Table technologies, List<Libraries> libraries) {
    /** The files that a service of one technology needs. */
    record Libraries(String title, Table files) {}

    static AskedPage of(Analysis analysis) {
        Table technologies = new Table(
                "What each technology asks for",
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
                analysis.run().technologies().stream()
                        .map(technology -> row(technology, files(analysis, technology.name())))
                        .toList());
        List<String> names = new ArrayList<>(
                analysis.run().technologies().stream().map(Technology::name).toList());
        names.add(FigureRow.EMPTY);
        List<Libraries> libraries = new ArrayList<>();
        for (String name : names) {
            List<LibraryRow> files = files(analysis, name);
            if (!files.isEmpty()) {
                libraries.add(libraries(name.equals(FigureRow.EMPTY) ? "the empty service" : name, files));
            }
        }
        return new AskedPage(technologies, List.copyOf(libraries));
    }

    private static List<String> row(Technology technology, List<LibraryRow> files) {
        return List.of(
                technology.name(),
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

    private static Libraries libraries(String name, List<LibraryRow> files) {
        String title = name + ": " + Words.count(files.size(), "file") + ", " + megabytes(files) + " MB";
        return new Libraries(
                title,
                new Table(
                        title,
                        List.of("file", "version", "licence", "kB"),
                        files.stream()
                                .map(f -> List.of(f.name(), f.version(), f.licence(), Figures.brief(f.bytes() / 1e3)))
                                .toList()));
    }

    private static List<LibraryRow> files(Analysis analysis, String technology) {
        return analysis.libraries().stream()
                .filter(library -> library.technology().equals(technology))
                .toList();
    }

    private static String megabytes(List<LibraryRow> files) {
        return Figures.brief(files.stream().mapToLong(LibraryRow::bytes).sum() / 1e6);
    }
}
