package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Programs read these files, and compare them byte for byte. */
class CsvTextTest {
    @Test
    void aFieldIsQuotedOnlyWhereItHasToBe() {
        assertThat(CsvText.of(
                        List.of("name", "note", ""),
                        List.of(
                                List.of("plain", "with a blank ", ""),
                                List.of("#1", "a; b' c", " 1 "),
                                List.of("a,b", "say \"so\"", "two\nlines"),
                                List.of("", "\r", "×"))))
                .isEqualTo("""
                        name,note,
                        plain,with a blank ,
                        #1,a; b' c, 1\s
                        "a,b","say ""so""\","two
                        lines"
                        ,"\r",×
                        """);
    }

    @Test
    void whatWasWrittenIsReadAgain() {
        List<String> columns = List.of("name", "note", "empty");
        List<List<String>> rows =
                List.of(List.of("#1", "a,b", ""), List.of("say \"so\"", "two\nlines", " 1 "), List.of("", "×", "last"));
        List<CsvText.Row> read = CsvText.read("a.csv", CsvText.of(columns, rows), columns);
        assertThat(read).extracting(CsvText.Row::fields).containsExactlyElementsOf(rows);
        assertThat(read).extracting(CsvText.Row::place).containsExactly("a.csv:2", "a.csv:3", "a.csv:5");
        assertThat(read.getFirst().text("note")).isEqualTo("a,b");
    }

    @Test
    void whatWasCutIsNoTable() {
        List<String> columns = List.of("a", "b");
        assertThatThrownBy(() -> CsvText.read("a.csv", "", columns)).hasMessage("a.csv:1: nothing (expected: a,b)");
        assertThatThrownBy(() -> CsvText.read("a.csv", "a,b\n1,\"2", columns)).isInstanceOf(BadInput.class);
        assertThatThrownBy(() -> CsvText.read("a.csv", "a,b\n1,2", columns))
                .hasMessage("a.csv:2: a line without an end (expected: a whole file)");
    }

    @Test
    void aFileThatPeopleWroteHasItsOwnColumnsAndBlanksAroundThem() {
        List<CsvText.Row> read = CsvText.read("a.csv", "name, note\n\n#1 , \"a, \"\"b\"\"\" \n 2,\n\"two\nlines\",x");
        assertThat(read)
                .extracting(CsvText.Row::fields)
                .containsExactly(List.of("#1", "a, \"b\""), List.of("2", ""), List.of("two\nlines", "x"));
        assertThat(read).extracting(CsvText.Row::place).containsExactly("a.csv:3", "a.csv:4", "a.csv:5");
        assertThat(read.getFirst().text("none")).isEmpty();
        assertThatThrownBy(() -> CsvText.read("a.csv", "a,b\n1\n"))
                .hasMessage("a.csv:2: 1 fields (expected: 2, as the header has)");
        assertThatThrownBy(() -> CsvText.read("a.csv", ""))
                .hasMessage("a.csv: an empty file (expected: a header of column names)");
    }

    @Test
    void aTableWithoutRowsIsItsHead() {
        assertThat(CsvText.of(List.of("a", "b"), List.of())).isEqualTo("a,b\n");
    }
}
