package dev.parley.report;

import java.util.List;

/**
 * A table of texts on a page.
 *
 * @param caption what it holds, for a reader who does not see where it stands
 * @param rows each with a field for each column of the head
 */
record Table(String caption, List<String> head, List<List<String>> rows) {
    Table {
        head = List.copyOf(head);
        rows = List.copyOf(rows);
        if (caption.isBlank()) {
            throw new IllegalArgumentException("caption: \"" + caption + "\" (expected: what the table holds)");
        }
        for (List<String> row : rows) {
            if (row.size() != head.size()) {
                throw new IllegalArgumentException(caption + ": a row of " + row.size() + " fields (expected: "
                        + head.size() + ", as the head has)");
            }
        }
    }

    /** Numbers are set in figures of one width. */
    static boolean isNumber(String field) {
        return field.matches("[\\d.  –-]+");
    }
}
