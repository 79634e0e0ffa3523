package dev.parley.work.lecturers;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class PeopleTest {
    @Test
    void thereAreAsManyAsTheSourceSays() {
        assertThat(People.all().nested()).hasSize(2_221);
        assertThat(People.all().nested().stream()
                        .mapToInt(p -> p.pendidikan_formal().size())
                        .sum())
                .isEqualTo(6_197);
        assertThat(People.all().flat().stream().map(p -> p.id_sdm()).collect(Collectors.toSet()))
                .hasSize(2_221);
        assertThat(People.all().flat()).allMatch(p -> String.valueOf(p.nip()).length() == 18);
    }

    @Test
    void theSameSeedGivesTheSamePeople() {
        assertThat(People.generate(5).nested()).isEqualTo(People.generate(5).nested());
        assertThat(People.generate(5).nested()).isNotEqualTo(People.generate(6).nested());
    }

    @Test
    void whatRedisHoldsIsWhatWasPutIn() {
        for (var person : People.all().nested()) {
            assertThat(Rows.decode(Rows.encode(person))).isEqualTo(person);
        }
    }
}
