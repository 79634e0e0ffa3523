package dev.parley.studies;

import dev.parley.model.BadInput;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Comma-separated text with a header, quoted where a field has a comma in it (RFC 4180, without line breaks in fields). */
final class Csv {
    private Csv() {}

    /** One row, its columns by name; a column that the file does not have is empty. */
    record Row(String file, int line, Map<String, String> columns) {
        String text(String column) {
            return columns.getOrDefault(column, "");
        }

        double number(String column) {
            try {
                return Double.parseDouble(text(column));
            } catch (NumberFormatException e) {
                throw wrong(column, "a number");
            }
        }

        BadInput wrong(String column, String expected) {
            return new BadInput(file + ":" + line + ": " + column, text(column), expected);
        }
    }

    static List<Row> read(String file, String text) {
        List<String> lines = text.lines().toList();
        if (lines.isEmpty()) {
            throw new BadInput(file, "an empty file", "a header of column names");
        }
        List<String> header = fields(lines.getFirst());
        List<Row> rows = new ArrayList<>();
        for (int i = 1; i < lines.size(); i++) {
            if (lines.get(i).isBlank()) {
                continue;
            }
            List<String> fields = fields(lines.get(i));
            if (fields.size() != header.size()) {
                throw new BadInput(
                        file + ":" + (i + 1), fields.size() + " fields", header.size() + ", as the header has");
            }
            Map<String, String> columns = new LinkedHashMap<>();
            for (int column = 0; column < fields.size(); column++) {
                columns.put(header.get(column), fields.get(column));
            }
            rows.add(new Row(file, i + 1, columns));
        }
        return List.copyOf(rows);
    }

    private static List<String> fields(String line) {
        List<String> fields = new ArrayList<>();
        StringBuilder field = new StringBuilder();
        boolean isQuoted = false;
        for (int i = 0; i < line.length(); i++) {
            char c = line.charAt(i);
            if (c == '"') {
                if (isQuoted && i + 1 < line.length() && line.charAt(i + 1) == '"') {
                    field.append('"');
                    i++;
                } else {
                    isQuoted = !isQuoted;
                }
            } else if (c == ',' && !isQuoted) {
                fields.add(field.toString().strip());
                field.setLength(0);
            } else {
                field.append(c);
            }
        }
        fields.add(field.toString().strip());
        return fields;
    }
}
