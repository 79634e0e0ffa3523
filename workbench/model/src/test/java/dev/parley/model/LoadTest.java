package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LoadTest {
    @ParameterizedTest
    @ValueSource(strings = {"closed:1", "closed:200", "open:300:poisson", "open:0.5:even"})
    void theWrittenFormReadsBackAsItself(String text) {
        assertThat(Load.parse(text)).hasToString(text);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "closed", "closed:x", "closed:0", "open:3", "open:3:odd", "open:-1:even", "mixed:4"})
    void aBadFormIsRefusedWithWhatWasExpected(String text) {
        assertThatThrownBy(() -> Load.parse(text)).isInstanceOf(BadInput.class).hasMessageContaining("expected");
    }
}
