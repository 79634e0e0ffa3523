package dev.rpcx;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads the tables of {@code rpcx/spec/states.md}, each of them by its heading. */
public final class StateTables {
    private static final Path PAGE = Path.of("..", "spec", "states.md");

    /**
     * This cell says that the payload is read, and that the state stays. A payload that cannot be read ends the
     * connection.
     */
    private static final String TAKEN = "✓";

    /** This follows a row's name, and stands for the same frame with a payload that cannot be read. */
    public static final String UNREADABLE = " unreadable";

    /** Holds the frame that stands first in a row, and the row's cells by column. */
    public record Row(String frame, Map<String, String> cells) {
        /**
         * Returns a row of the same frame with a payload that cannot be read, or null if the column does not say what
         * follows.
         */
        public Row unreadable(String column) {
            return cell(column).equals(TAKEN) ? new Row(frame + UNREADABLE, Map.of(column, "ends")) : null;
        }

        public String cell(String column) {
            String cell = cells.get(column);
            if (cell == null) {
                throw new IllegalArgumentException(frame + " has no column " + column + ", only " + cells.keySet());
            }
            return cell;
        }
    }

    /** Holds the states that are the columns of a table, and its rows. */
    public record Table(List<String> columns, List<Row> rows) {}

    /**
     * Holds what a cell says.
     *
     * @param answer the frame that answers, with its code and executed where it is ERROR; empty for none; "ends" and
     *     "closes" for the connection's end
     * @param next the state that follows; empty where it stays
     * @param passesOver the payload is not read, so any other would do
     */
    public record Reaction(String answer, String next, boolean passesOver) {
        public Reaction(String answer, String next) {
            this(answer, next, false);
        }

        public static Reaction of(String cell) {
            if (cell.equals("·") || cell.equals(TAKEN)) {
                return new Reaction("", "", cell.equals("·"));
            }
            if (cell.startsWith("ERROR")) {
                return new Reaction(cell, "over");
            }
            String[] parts = cell.split("→", -1);
            return new Reaction(parts[0].strip(), parts.length > 1 ? parts[1].strip() : "");
        }

        public boolean endsConnection() {
            return answer.equals("ends") || answer.equals("closes");
        }
    }

    private StateTables() {}

    /** Returns the table under this heading. It ends at the next empty line. */
    public static Table read(String heading) {
        try {
            List<String> lines = Files.readAllLines(PAGE);
            int at = lines.indexOf("### " + heading);
            if (at < 0) {
                throw new IllegalArgumentException(PAGE + " has no heading " + heading);
            }
            while (!lines.get(at).startsWith("|")) {
                at++;
            }
            List<String> header = cells(lines.get(at));
            List<Row> rows = new ArrayList<>();
            for (at += 2; at < lines.size() && lines.get(at).startsWith("|"); at++) {
                List<String> cells = cells(lines.get(at));
                if (cells.size() != header.size()) {
                    throw new IllegalArgumentException(
                            lines.get(at) + ": " + cells.size() + " cells (expected: " + header.size() + ")");
                }
                Map<String, String> named = new LinkedHashMap<>();
                for (int i = 1; i < cells.size(); i++) {
                    named.put(header.get(i), cells.get(i));
                }
                rows.add(new Row(cells.get(0), named));
            }
            return new Table(header.subList(1, header.size()), rows);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static List<String> cells(String line) {
        String inner = line.strip();
        String[] cells = inner.substring(1, inner.length() - 1).split("\\|", -1);
        return Arrays.stream(cells).map(cell -> cell.replace("`", "").strip()).toList();
    }
}
