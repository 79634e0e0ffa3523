package dev.parley.report;

import dev.parley.model.BadInput;
import dev.parley.report.PaperResults.Head;
import dev.parley.studies.Claim;
import dev.parley.studies.CsvText;
import dev.parley.studies.Judgement;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.Measured;
import dev.parley.studies.PublishedFigure;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * A paper's results as files of one folder, from which the same results are read again. Numbers have as many digits as
 * that takes. Columns may be added at the end; those that are there stay.
 */
final class PaperFiles {
    static final String FIGURES = "figures.csv";
    static final String CLAIMS = "claims.csv";
    static final String COMPARISONS = "comparisons.csv";
    static final String CURVES = "curves.csv";
    static final String CRITERIA = "criteria.csv";

    /** All that is no table. */
    static final String RECORD = "record.json";

    private static final List<String> FIGURE_COLUMNS = columns("place,technology,topology,message,paper_load,metric,"
            + "subject,unit,theirs,ours,low,high,ratio,part,our_load,validity,note,restarts,paper_part");

    private static final List<String> CLAIM_COLUMNS =
            columns("id,place,sentence,verdict,indicative,comparisons,hold,do_not_hold,expression,note,beside");

    private static final List<String> COMPARISON_COLUMNS =
            columns("claim,number,verdict,indicative,left,right,ratio,low,high,border,none");

    private static final List<String> CURVE_COLUMNS =
            columns("curve,panel,line,at,theirs,ours,low,high,validity,restarts");

    private static final List<String> CRITERION_COLUMNS =
            columns("criterion,what,technology,theirs,ours,unit,low,high,validity,restarts,fact");

    private static final JsonMapper JSON = JsonMapper.builder()
            .enable(
                    DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES,
                    DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES,
                    DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES,
                    DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private PaperFiles() {}

    private static List<String> columns(String header) {
        return List.of(header.split(",", -1));
    }

    static void write(PaperResults results, Path folder) {
        Report.write(folder.resolve(FIGURES), figures(results.figures()));
        Report.write(folder.resolve(CLAIMS), claims(results.claims()));
        Report.write(folder.resolve(COMPARISONS), comparisons(results.claims()));
        Report.write(folder.resolve(CURVES), points(results.points()));
        Report.write(folder.resolve(CRITERIA), criteria(results.criteria()));
        Report.write(
                folder.resolve(RECORD),
                JSON.writerWithDefaultPrettyPrinter().writeValueAsString(results.head()) + "\n");
    }

    /**
     * Reads what {@link #write} wrote.
     *
     * @throws BadInput naming the file and the line where one is missing or damaged
     */
    static PaperResults read(Path folder) {
        Head head = head(folder.resolve(RECORD));
        String name = folder.getFileName().toString();
        if (!head.paper().equals(name)) {
            throw new BadInput(folder.resolve(RECORD) + ": paper", head.paper(), name + ", as its folder is called");
        }
        return new PaperResults(
                head,
                claims(rows(folder.resolve(CLAIMS), CLAIM_COLUMNS), folder.resolve(COMPARISONS)),
                rows(folder.resolve(FIGURES), FIGURE_COLUMNS).stream()
                        .map(PaperFiles::figure)
                        .toList(),
                rows(folder.resolve(CRITERIA), CRITERION_COLUMNS).stream()
                        .map(PaperFiles::criterion)
                        .toList(),
                rows(folder.resolve(CURVES), CURVE_COLUMNS).stream()
                        .map(row -> point(row, head.curves().size()))
                        .toList());
    }

    private static List<CsvText.Row> rows(Path file, List<String> columns) {
        return CsvText.read(file.toString(), text(file), columns);
    }

    private static String text(Path file) {
        try {
            return Files.readString(file, StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new BadInput(
                    file.toString(),
                    Files.exists(file) ? "cannot be read: " + e.getMessage() : "not there",
                    "a file as parley reproduce --record writes it");
        }
    }

    private static Head head(Path file) {
        try {
            return JSON.readValue(text(file), Head.class);
        } catch (JacksonException e) {
            throw new BadInput(
                    file + (e.getLocation() == null ? "" : ":" + e.getLocation().getLineNr()),
                    String.valueOf(e.getOriginalMessage()),
                    "what parley reproduce --record writes");
        }
    }

    private static String figures(List<PaperFigure> figures) {
        return CsvText.of(
                FIGURE_COLUMNS, figures.stream().map(PaperFiles::fields).toList());
    }

    private static List<String> fields(PaperFigure figure) {
        PublishedFigure theirs = figure.theirs();
        Ours ours = figure.ours();
        return List.of(
                theirs.place(),
                theirs.technology(),
                theirs.topology(),
                theirs.message(),
                theirs.load(),
                theirs.metric(),
                theirs.subject(),
                theirs.unit(),
                theirs.written(),
                Figures.full(ours.value()),
                Figures.full(ours.low()),
                Figures.full(ours.high()),
                Figures.exact(figure.ratio()),
                figure.part(),
                figure.load(),
                ours.validity(),
                theirs.note(),
                ours.restarts(),
                theirs.part());
    }

    private static PaperFigure figure(CsvText.Row row) {
        row.number("theirs");
        return new PaperFigure(
                new PublishedFigure(
                        row.text("place"),
                        row.text("paper_part"),
                        row.text("technology"),
                        row.text("topology"),
                        row.text("message"),
                        row.text("paper_load"),
                        row.text("metric"),
                        row.text("subject"),
                        row.text("theirs"),
                        row.text("unit"),
                        row.text("note")),
                row.text("part"),
                row.text("our_load"),
                ours(row));
    }

    private static Ours ours(CsvText.Row row) {
        if (row.text("validity").isBlank()) {
            throw row.wrong("validity", "valid, or why not");
        }
        return new Ours(
                row.number("ours"), row.number("low"), row.number("high"), row.text("restarts"), row.text("validity"));
    }

    static String claims(List<PaperClaim> claims) {
        return CsvText.of(
                CLAIM_COLUMNS,
                claims.stream()
                        .map(c -> List.of(
                                c.claim().id(),
                                c.claim().place(),
                                c.claim().sentence(),
                                c.verdict().words(),
                                Boolean.toString(c.judgement().isIndicative()),
                                Integer.toString(c.judgement().findings().size()),
                                Long.toString(c.judgement().count(Verdict.HOLDS)),
                                Long.toString(c.judgement().count(Verdict.DOES_NOT_HOLD)),
                                c.claim().expression(),
                                c.claim().note(),
                                c.claim().beside()))
                        .toList());
    }

    /** A row for each comparison, numbered in the order in which its claim's expression makes them. */
    private static String comparisons(List<PaperClaim> claims) {
        List<List<String>> rows = new ArrayList<>();
        for (PaperClaim claim : claims) {
            int number = 1;
            for (Finding finding : claim.judgement().findings()) {
                rows.add(List.of(
                        claim.claim().id(),
                        Integer.toString(number++),
                        finding.verdict().words(),
                        Boolean.toString(finding.isIndicative()),
                        Figures.full(finding.left()),
                        Figures.full(finding.right()),
                        Figures.full(finding.ratio()),
                        Figures.full(finding.low()),
                        Figures.full(finding.high()),
                        Figures.full(finding.border()),
                        finding.none()));
            }
        }
        return CsvText.of(COMPARISON_COLUMNS, rows);
    }

    private static List<PaperClaim> claims(List<CsvText.Row> claims, Path file) {
        List<String> ids = claims.stream().map(claim -> claim.text("id")).toList();
        List<CsvText.Row> comparisons = rows(file, COMPARISON_COLUMNS);
        for (CsvText.Row comparison : comparisons) {
            if (!ids.contains(comparison.text("claim"))) {
                throw comparison.wrong("claim", "the id of a claim of " + CLAIMS);
            }
        }
        return claims.stream()
                .map(claim -> claim(
                        claim,
                        comparisons.stream()
                                .filter(comparison -> comparison.text("claim").equals(claim.text("id")))
                                .toList()))
                .toList();
    }

    private static PaperClaim claim(CsvText.Row row, List<CsvText.Row> comparisons) {
        Claim claim = new Claim(
                row.text("id"),
                row.text("place"),
                row.text("sentence"),
                row.text("expression"),
                row.text("note"),
                row.text("beside"));
        List<Finding> asked = asked(claim, row);
        if (asked.size() != comparisons.size()) {
            throw row.wrong(
                    "expression",
                    "an expression of " + comparisons.size() + " comparisons, as many as " + COMPARISONS + " has of "
                            + claim.id() + "; it makes " + asked.size());
        }
        return new PaperClaim(
                claim,
                new Judgement(
                        verdict(row),
                        row.flag("indicative"),
                        IntStream.range(0, asked.size())
                                .mapToObj(i -> finding(asked.get(i).what(), comparisons.get(i)))
                                .toList()));
    }

    /** The comparisons that a claim makes, whatever comes of them: its expression says what they are. */
    private static List<Finding> asked(Claim claim, CsvText.Row row) {
        try {
            return claim.judge(_ -> Measured.missing("not looked at")).findings();
        } catch (BadInput e) {
            throw row.wrong("expression", "a claim as docs/studies.md has it; " + e.getMessage());
        }
    }

    private static Finding finding(String what, CsvText.Row row) {
        return new Finding(
                verdict(row),
                row.flag("indicative"),
                what,
                row.number("left"),
                row.number("right"),
                row.number("ratio"),
                row.number("low"),
                row.number("high"),
                row.number("border"),
                row.text("none"));
    }

    private static Verdict verdict(CsvText.Row row) {
        for (Verdict verdict : Verdict.values()) {
            if (verdict.words().equals(row.text("verdict"))) {
                return verdict;
            }
        }
        throw row.wrong("verdict", "holds, does not hold or not decided here");
    }

    private static String points(List<PaperPoint> points) {
        return CsvText.of(
                CURVE_COLUMNS,
                points.stream()
                        .map(p -> List.of(
                                Integer.toString(p.curve()),
                                p.panel(),
                                p.line(),
                                Figures.full(p.at()),
                                Figures.full(p.theirs()),
                                Figures.full(p.ours().value()),
                                Figures.full(p.ours().low()),
                                Figures.full(p.ours().high()),
                                p.ours().validity(),
                                p.ours().restarts()))
                        .toList());
    }

    private static PaperPoint point(CsvText.Row row, int curves) {
        double curve = row.number("curve");
        if (!(curve >= 1 && curve <= curves)) {
            throw row.wrong("curve", "1 to " + curves + ", as " + RECORD + " has them");
        }
        return new PaperPoint(
                (int) curve, row.text("panel"), row.text("line"), row.number("at"), ours(row), row.number("theirs"));
    }

    private static String criteria(List<PaperCriterion> criteria) {
        return CsvText.of(
                CRITERION_COLUMNS,
                criteria.stream()
                        .map(c -> List.of(
                                c.name(),
                                c.shows(),
                                c.technology(),
                                Figures.full(c.theirs()),
                                Figures.full(c.ours().value()),
                                c.unit(),
                                Figures.full(c.ours().low()),
                                Figures.full(c.ours().high()),
                                c.ours().validity(),
                                c.ours().restarts(),
                                c.fact()))
                        .toList());
    }

    private static PaperCriterion criterion(CsvText.Row row) {
        return new PaperCriterion(
                row.text("criterion"),
                row.text("what"),
                row.text("technology"),
                row.number("theirs"),
                ours(row),
                row.text("unit"),
                row.text("fact"));
    }
}
