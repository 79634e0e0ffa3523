package dev.parley.report;

import de.siegmar.fastcsv.reader.CsvParseException;
import de.siegmar.fastcsv.reader.CsvReader;
import de.siegmar.fastcsv.reader.CsvRecord;
import de.siegmar.fastcsv.reader.FieldMismatchStrategy;
import de.siegmar.fastcsv.writer.CsvWriter;
import de.siegmar.fastcsv.writer.LineDelimiter;
import dev.parley.model.BadInput;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Comma-separated text as RFC 4180 has it, but with line feeds. A field is quoted only where it has to be. */
final class CsvText {
    /** The library quotes the first field of a line where it begins with the character of a comment. No field does. */
    private static final char NO_COMMENTS = '\0';

    private CsvText() {}

    /**
     * A row that was read.
     *
     * @param place the file and the line
     */
    record Row(String place, List<String> columns, List<String> fields) {
        String text(String column) {
            return fields.get(columns.indexOf(column));
        }

        /** NaN where the field is empty. */
        double number(String column) {
            String text = text(column);
            try {
                return text.isEmpty() ? Double.NaN : Double.parseDouble(text);
            } catch (NumberFormatException e) {
                throw wrong(column, "a number, or nothing");
            }
        }

        boolean flag(String column) {
            return switch (text(column)) {
                case "true" -> true;
                case "false" -> false;
                default -> throw wrong(column, "true or false");
            };
        }

        BadInput wrong(String column, String expected) {
            return new BadInput(place + ": " + column, text(column), expected);
        }
    }

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

    /**
     * The rows of a text that {@link #of} wrote.
     *
     * @param file as errors name it
     * @throws BadInput where the text does not have these columns, or was cut
     */
    static List<Row> read(String file, String text, List<String> columns) {
        List<Row> rows = new ArrayList<>();
        try (CsvReader<CsvRecord> csv = CsvReader.builder()
                .missingFieldStrategy(FieldMismatchStrategy.IGNORE)
                .extraFieldStrategy(FieldMismatchStrategy.IGNORE)
                .ofCsvRecord(text)) {
            for (CsvRecord line : csv) {
                String place = file + ":" + line.getStartingLineNumber();
                if (line.getFieldCount() != columns.size()) {
                    throw new BadInput(place, line.getFieldCount() + " fields", columns.size() + " fields");
                }
                rows.add(new Row(place, columns, line.getFields()));
            }
        } catch (CsvParseException e) {
            throw new BadInput(file, String.valueOf(e.getMessage()), "CSV as RFC 4180 has it");
        } catch (IOException e) {
            throw new UncheckedIOException("a text in memory cannot be read", e);
        }
        if (rows.isEmpty() || !rows.getFirst().fields().equals(columns)) {
            throw new BadInput(
                    file + ":1",
                    rows.isEmpty()
                            ? "nothing"
                            : String.join(",", rows.getFirst().fields()),
                    String.join(",", columns));
        }
        if (!text.endsWith("\n")) {
            throw new BadInput(rows.getLast().place(), "a line without an end", "a whole file");
        }
        return List.copyOf(rows.subList(1, rows.size()));
    }

    /** A link that holds the text. */
    static String link(String csv) {
        return "data:text/csv;charset=utf-8,"
                + URLEncoder.encode(csv, StandardCharsets.UTF_8).replace("+", "%20");
    }
}
