package dev.parley.protocol;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
    @Test
    void whatAnotherWriterMayWriteIsRead() {
        assertThat(Json.read("\t{ \"a\" : [ 1 , -2.5e1 , false , \"\\u0041\\n\\/\\\"\" , {} , [] ] , \"b\":-7 } "))
                .isEqualTo(Map.of("a", List.of(1L, -25.0, false, "A\n/\"", Map.of(), List.of()), "b", -7L));
    }

    @Test
    void whatIsEmptyHasNoComma() {
        assertThat(Json.write(Map.of("a", List.of(Map.of(), List.of(), "[")))).isEqualTo("{\"a\":[{},[],\"[\"]}");
    }

    @Test
    void aNumberThatIsNotFiniteIsText() {
        assertThat(Json.write(Map.of("a", List.of(Double.NaN, Double.NEGATIVE_INFINITY, 1e-300))))
                .isEqualTo("{\"a\":[\"NaN\",\"-Infinity\",1.0E-300]}");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "{",
                "[1]",
                "{}}",
                "{\"a\"}",
                "{\"a\":}",
                "{\"a\":1,}",
                "{\"a\":1 2}",
                "{\"a\":[1}",
                "{\"a\":[1,]}",
                "{\"a\":tru}",
                "{\"a\":null}",
                "{\"a\":\"b}",
                "{\"a\":\"\\x\"}",
                "{\"a\":\"\\u12\"}",
                "{\"a\":\"\\",
                "{\"a\":--1}",
                "{\"a\":1.2.3}",
                "{a:1}"
            })
    void whatIsNoObjectIsRefused(String text) {
        assertThatThrownBy(() -> Json.read(text)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void theFirstPlaceThatCannotBeReadIsNamed() {
        assertThatThrownBy(() -> Json.read("{\"a\":null}")).hasMessage("JSON at character 5: n (expected: a value)");
        assertThatThrownBy(() -> Json.read("{\"a\":1")).hasMessage("JSON at character 6: the end (expected: })");
    }
}
