package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.Limits.Bandwidth;
import dev.parley.model.Limits.Share;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class LimitsTest {
    private static final Topology LINE = Topology.parse("line:3");

    @Test
    void aServicesOwnShareStandsBeforeThatOfAll() {
        Limits limits = new Limits(
                new Share(Optional.of(1.0), Optional.of(512_000_000L)),
                Map.of("m2", new Share(Optional.of(2.0), Optional.empty())),
                Map.of(),
                Optional.empty(),
                Optional.empty());
        assertThat(limits.of("m1").cores()).contains(1.0);
        assertThat(limits.of("m2")).isEqualTo(new Share(Optional.of(2.0), Optional.of(512_000_000L)));
        assertThat(limits.hasShares()).isTrue();
        assertThat(limits.hasHosts()).isFalse();
    }

    @Test
    void aBandwidthWithoutHostsPutsEachServiceOnOneOfItsOwn() {
        Limits limits =
                new Limits(Share.ALL, Map.of(), Map.of(), Optional.of(new Bandwidth(1_000_000)), Optional.empty());
        assertThat(limits.hostOf(LINE))
                .containsExactly(Map.entry("m1", "m1"), Map.entry("m2", "m2"), Map.entry("m3", "m3"));
        assertThat(Limits.NONE.hostOf(LINE)).isEmpty();
    }

    @Test
    void everyServiceHasOneHost() {
        assertThat(on(Map.of("a", List.of("m1", "m2"), "b", List.of("m3"))).hostOf(LINE))
                .containsEntry("m2", "a")
                .containsEntry("m3", "b");
        assertThatThrownBy(() -> on(Map.of("a", List.of("m1"), "b", List.of("m1"))))
                .hasMessage("hosts: m1 twice (expected: each service on one host)");
        assertThatThrownBy(() -> on(Map.of("a", List.of("m1", "m2"))).check(LINE))
                .hasMessage("hosts: none for m3 (expected: every service of line:3 on a host)");
        assertThatThrownBy(
                        () -> on(Map.of("a", List.of("m1", "m2", "m3", "m4"))).check(LINE))
                .hasMessageContaining("m4");
    }

    private static Limits on(Map<String, List<String>> hosts) {
        return new Limits(Share.ALL, Map.of(), hosts, Optional.empty(), Optional.empty());
    }
}
