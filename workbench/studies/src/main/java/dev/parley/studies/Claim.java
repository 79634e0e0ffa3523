package dev.parley.studies;

import java.util.List;
import java.util.function.Function;

/**
 * A conclusion of a paper, in our words, and how measurements decide it.
 *
 * @param id short, unique within the paper
 * @param place section, table or figure
 * @param sentence what the paper concludes
 * @param expression how it is decided, in the language of docs/studies.md; empty where no measurement of this workbench decides it
 * @param note what a reader must know about the way it is decided, or why it is not; empty as a rule
 * @param beside id of the claim of which this is the same, measured or read another way; empty as a rule
 */
public record Claim(String id, String place, String sentence, String expression, String note, String beside) {

    static List<Claim> read(String file, String text) {
        return CsvText.read(file, text).stream()
                .map(row -> {
                    for (String needed : List.of("id", "place", "sentence")) {
                        if (row.text(needed).isEmpty()) {
                            throw row.wrong(needed, "something");
                        }
                    }
                    if (row.text("expression").isEmpty() && row.text("note").isEmpty()) {
                        throw row.wrong("expression", "one, or a note that says why there is none");
                    }
                    Claim claim = new Claim(
                            row.text("id"),
                            row.text("place"),
                            row.text("sentence"),
                            row.text("expression"),
                            row.text("note"),
                            row.text("beside"));
                    if (!claim.expression.isEmpty()) {
                        ExpressionParser.statement(row.place(), claim.expression);
                    }
                    return claim;
                })
                .toList();
    }

    /** Holds the claim against measurements. */
    public Judgement judge(Function<FigureQuery, Measured> measurements) {
        if (expression.isEmpty()) {
            return Judgement.OPEN;
        }
        return Expression.judge(ExpressionParser.statement(id, expression), measurements);
    }
}
