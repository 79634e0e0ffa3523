package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TopologyTest {
    @Test
    void aLineCallsOneAfterTheOther() {
        Topology line = Topology.parse("line:5");
        assertThat(line.nodes()).extracting(Topology.Node::name).containsExactly("m1", "m2", "m3", "m4", "m5");
        assertThat(line.node("m4").calls()).containsExactly("m5");
        assertThat(line.node("m5").isLeaf()).isTrue();
        assertThat(line.depth()).isEqualTo(5);
        assertThat(line.gathers()).isFalse();
    }

    @Test
    void theTreeIsFigure3() {
        Topology tree = Topology.parse("tree");
        assertThat(tree.nodes()).hasSize(6);
        for (String gateway : List.of("m1", "m2", "m3")) {
            assertThat(tree.node(gateway).calls()).hasSize(2);
        }
        assertThat(tree.gathers()).isTrue();
        assertThat(tree.depth()).isEqualTo(3);
    }

    @Test
    void theStarGathersAtOnce() {
        Topology star = Topology.parse("star");
        assertThat(star.entry().calls()).containsExactly("m2", "m3", "m4", "m5", "m6");
        assertThat(star.entry().calling()).isEqualTo(Topology.Calling.AT_ONCE);
    }

    @Test
    void calleesBootFirst() {
        assertThat(Topology.parse("graph:a>b&c;b>d").calleesFirst())
                .extracting(Topology.Node::name)
                .containsExactly("d", "b", "c", "a");
    }

    @Test
    void thePairIsReachedOverRest() {
        assertThat(Topology.parse("pair").restFront()).isTrue();
        assertThat(Topology.parse("line:2").restFront()).isFalse();
    }

    @Test
    void aFormThatIsNearlyRightIsNamed() {
        assertThatThrownBy(() -> Topology.parse("lien:5"))
                .hasMessageStartingWith("topology: lien:5 (did you mean line:n? expected: line:n, ");
        assertThatThrownBy(() -> Topology.parse("tre")).hasMessageContaining("(did you mean tree? expected: ");
        assertThatThrownBy(() -> Topology.parse("line:0"))
                .as("the form is right, and the number is not")
                .hasMessageStartingWith("topology: line:0 (expected: ");
    }

    /** Figures of a service that is called system, say, would be taken for those of all services together. */
    @ParameterizedTest
    @ValueSource(strings = {"empty", "generator", "system"})
    void noServiceHasTheNameOfWhatFiguresAreOfToo(String name) {
        assertThatThrownBy(() -> Topology.parse("graph:a>" + name))
                .isInstanceOf(BadInput.class)
                .hasMessage("service name: " + name
                        + " (expected: none of empty, generator, system, which figures are of too)");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "line:0",
                "line:65",
                "line",
                "line:-1",
                "ring:3",
                "",
                "graph:a>b;b>a",
                "graph:a>a",
                "graph:>b",
                "graph:a>b,c&d"
            })
    void nonsenseIsRefusedWithWhatWasExpected(String text) {
        assertThatThrownBy(() -> Topology.parse(text))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("expected");
    }
}
