package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

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
    void aTableWithoutRowsIsItsHead() {
        assertThat(CsvText.of(List.of("a", "b"), List.of())).isEqualTo("a,b\n");
    }
}
