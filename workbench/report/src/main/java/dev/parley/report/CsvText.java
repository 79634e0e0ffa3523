package dev.parley.report;

import de.siegmar.fastcsv.writer.CsvWriter;
import de.siegmar.fastcsv.writer.LineDelimiter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.List;

/** Comma-separated text as RFC 4180 has it, but with line feeds. A field is quoted only where it has to be. */
final class CsvText {
    /** The library quotes the first field of a line where it begins with the character of a comment. No field does. */
    private static final char NO_COMMENTS = '\0';

    private CsvText() {}

    /** A line of column names, and a line for each row. */
    static String of(List<String> columns, List<List<String>> rows) {
        StringWriter text = new StringWriter();
        try (CsvWriter csv = CsvWriter.builder()
                .lineDelimiter(LineDelimiter.LF)
                .commentCharacter(NO_COMMENTS)
                .build(text)) {
            csv.writeRecord(columns);
            for (List<String> row : rows) {
                csv.writeRecord(row);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("a text in memory cannot be written", e);
        }
        return text.toString();
    }
}
