package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.store.RunStore;
import dev.parley.studies.StudyText;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;

/** What a run came to, in every form. */
public final class Report {
    public static final String HTML = "report.html";
    public static final String CSV = "summary.csv";
    /** The same columns, service by service, hop by hop and database by database. */
    public static final String DETAILS = "details.csv";

    public static final String JSON = "summary.json";

    /** Whether each technology meets the study's target; only of a study that has one. */
    public static final String TARGETS = "targets.csv";

    private final Analysis analysis;
    private final Optional<String> title;

    private Report(Analysis analysis, Optional<String> title) {
        this.analysis = analysis;
        this.title = title;
    }

    /**
     * Reads a store; also one whose run was stopped or killed.
     *
     * @throws dev.parley.store.StoreException if the file cannot be read, or another process still writes it
     */
    public static Report of(Path storeFile) {
        try (RunStore store = RunStore.open(storeFile)) {
            return new Report(
                    Analysis.of(store, store.study().flatMap(study -> StudyText.target(study.text()))),
                    store.study()
                            .flatMap(study -> StudyText.title(study.text()))
                            .flatMap(Question::title));
        }
    }

    public static Report of(Analysis analysis) {
        return new Report(analysis, Optional.empty());
    }

    public Analysis analysis() {
        return analysis;
    }

    /** At most 100 characters wide, plain text, ends with a line break. */
    public String table() {
        return new TerminalTable(analysis).text();
    }

    /** How warm each trial was, a line for each technology, message and load; plain text, ends with a line break. */
    public String warmth() {
        return Warmth.lines(analysis);
    }

    /**
     * Writes {@value #HTML}, {@value #CSV}, {@value #DETAILS}, {@value #JSON} and, where there is a target, {@value
     * #TARGETS}, each whole or not at all, over what is there.
     *
     * @return the HTML file
     * @throws UncheckedIOException if the folder cannot be written
     */
    public Path writeTo(Path folder) {
        write(folder.resolve(CSV), SummaryFiles.csv(analysis.summaries()));
        write(folder.resolve(DETAILS), SummaryFiles.csv(analysis.details()));
        write(folder.resolve(JSON), SummaryFiles.json(analysis));
        if (analysis.target().isPresent()) {
            write(folder.resolve(TARGETS), SummaryFiles.targets(analysis.targetAnswers()));
        }
        return write(folder.resolve(HTML), RunPage.of(analysis, title).html());
    }

    /**
     * Writes a file whole or not at all, over what is there: whoever is killed meanwhile leaves what was there.
     *
     * @return the file
     * @throws UncheckedIOException naming the file if it cannot be written
     */
    public static Path write(Path file, String text) {
        Path partial = file.resolveSibling(file.getFileName() + ".partial");
        try {
            Files.writeString(partial, text, StandardCharsets.UTF_8);
            return Files.move(partial, file, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            throw new UncheckedIOException(file + ": cannot be written: " + e.getMessage(), e);
        }
    }
}
