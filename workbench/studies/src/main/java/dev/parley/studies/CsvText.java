package dev.parley.studies;

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
public final class CsvText {
    /** The library quotes the first field of a line where it begins with the character of a comment. No field does. */
    private static final char NO_COMMENTS = '\0';

    private CsvText() {}

    /**
     * A row that was read.
     *
     * @param place the file and the line
     */
    public record Row(String place, List<String> columns, List<String> fields) {
        /** Empty where the file does not have the column. */
        public String text(String column) {
            int at = columns.indexOf(column);
            return at < 0 ? "" : fields.get(at);
        }

        /** NaN where the field is empty. */
        public double number(String column) {
            String text = text(column);
            try {
                return text.isEmpty() ? Double.NaN : Double.parseDouble(text);
            } catch (NumberFormatException e) {
                throw wrong(column, "a number, or nothing");
            }
        }

        public boolean flag(String column) {
            return switch (text(column)) {
                case "true" -> true;
                case "false" -> false;
                default -> throw wrong(column, "true or false");
            };
        }

        public BadInput wrong(String column, String expected) {
            return new BadInput(place + ": " + column, text(column), expected);
        }
    }

    /** A line of column names, and a line for each row. */
    public static String of(List<String> columns, List<List<String>> rows) {
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
    public static List<Row> read(String file, String text, List<String> columns) {
        List<Row> rows = rows(file, text, columns);
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

    /**
     * The rows of a file that people write: its first line names its columns, and blanks around a field are none of
     * it.
     *
     * @param file as errors name it
     * @throws BadInput where a line has more or fewer fields than the first
     */
    static List<Row> read(String file, String text) {
        List<Row> lines = rows(file, text, List.of());
        if (lines.isEmpty()) {
            throw new BadInput(file, "an empty file", "a header of column names");
        }
        List<String> header = stripped(lines.getFirst());
        List<Row> rows = new ArrayList<>();
        for (Row line : lines.subList(1, lines.size())) {
            if (line.fields().size() != header.size()) {
                throw new BadInput(
                        line.place(), line.fields().size() + " fields", header.size() + ", as the header has");
            }
            rows.add(new Row(line.place(), header, stripped(line)));
        }
        return List.copyOf(rows);
    }

    private static List<String> stripped(Row line) {
        return line.fields().stream().map(String::strip).toList();
    }

    /** @param columns that each line has to have; empty where lines may be of any length */
    private static List<Row> rows(String file, String text, List<String> columns) {
        List<Row> rows = new ArrayList<>();
        try (CsvReader<CsvRecord> csv = CsvReader.builder()
                .missingFieldStrategy(FieldMismatchStrategy.IGNORE)
                .extraFieldStrategy(FieldMismatchStrategy.IGNORE)
                .trimWhitespacesAroundQuotes(columns.isEmpty())
                .ofCsvRecord(text)) {
            for (CsvRecord line : csv) {
                String place = file + ":" + line.getStartingLineNumber();
                if (!columns.isEmpty() && line.getFieldCount() != columns.size()) {
                    throw new BadInput(place, line.getFieldCount() + " fields", columns.size() + " fields");
                }
                rows.add(new Row(place, columns, line.getFields()));
            }
        } catch (CsvParseException e) {
            throw new BadInput(file, String.valueOf(e.getMessage()), "CSV as RFC 4180 has it");
        } catch (IOException e) {
            throw new UncheckedIOException("a text in memory cannot be read", e);
        }
        return rows;
    }

    /** A link that holds the text. */
    public static String link(String csv) {
        return "data:text/csv;charset=utf-8,"
                + URLEncoder.encode(csv, StandardCharsets.UTF_8).replace("+", "%20");
    }
}
