package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import org.junit.jupiter.api.Test;

class WorkChoiceTest {
    @Test
    void aSizeOfOnesOwnTakesTheRestFromItsWork() {
        assertThat(WorkChoice.of("json:1k")).isEqualTo(new WorkChoice("json:1k", "json", "json:1k", "pair"));
        assertThat(WorkChoice.of("json:20k")).isEqualTo(new WorkChoice("json:20k", "json", "json:20000", "pair"));
        assertThat(WorkChoice.of("get").messages()).isEqualTo("get");
        assertThat(WorkChoice.of("messages").topology()).isEqualTo("line:5");
        assertThat(WorkChoice.of("lecturers-nested").topology())
                .isEqualTo("graph:nested>authentication;flat>authentication");
    }

    @Test
    void whatIsNotInTheListIsBadInputThatNamesWhatIs() {
        for (String typed : new String[] {"jsn", "json", "", "xml:1k", "json:x"}) {
            assertThatThrownBy(() -> WorkChoice.of(typed))
                    .isInstanceOf(BadInput.class)
                    .hasMessageContaining("expected");
        }
        assertThatThrownBy(() -> WorkChoice.of("lecturers-nestd"))
                .hasMessageStartingWith("--work: lecturers-nestd (did you mean lecturers-nested? expected: one of ");
        assertThatThrownBy(() -> WorkChoice.parse("a = b")).isInstanceOf(BadInput.class);
    }
}
