package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Situation;
import dev.parley.model.Load;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class QuestionTest {
    private static final List<String> TWO = List.of("rest", "grpc");

    private static String of(String topology, String messages, String... loads) {
        return Question.of(
                Arrays.stream(messages.split(" "))
                        .flatMap(message ->
                                Arrays.stream(loads).map(load -> new Situation(topology, message, Load.parse(load))))
                        .toList(),
                TWO);
    }

    @Test
    void theTitleIsTheQuestion() {
        assertThat(of("line:2", "types:100", "closed:1", "closed:16"))
                .isEqualTo("Two services, 100 properties a message, 1 and 16 clients: which technology?");
    }

    @Test
    void sizesOfOneKindAreListedAndOtherMessagesCounted() {
        assertThat(of("line:5", "text:10 text:1000000", "closed:1"))
                .isEqualTo("Five services in a line, 10 and 1 000 000 characters a message, 1 client: which"
                        + " technology?");
        assertThat(of("line:1", "text:10 types:100", "closed:16"))
                .isEqualTo("One service, two messages, 16 clients: which technology?");
        assertThat(of("line:2", "list>add:1000", "closed:16"))
                .isEqualTo("Two services, message list>add:1000, 16 clients: which technology?");
    }

    @Test
    void topologiesHaveTheirForm() {
        assertThat(of("star:4", "types:1", "closed:2"))
                .isEqualTo("A gateway and three services behind it, 1 property a message, 2 clients: which"
                        + " technology?");
        assertThat(of("tree", "types:100", "closed:2")).startsWith("Six services in a tree, ");
        assertThat(of("pair", "types:100", "closed:2")).startsWith("A REST front and one service behind it, ");
        assertThat(of("graph:a>b;a2>b", "types:100", "closed:2")).startsWith("Three services, ");
    }

    @Test
    void loadsAreClientsRatesAndTheirOwnTitles() {
        assertThat(of("line:2", "types:100", "closed:16", "open:300:poisson", "open:0.5:even"))
                .endsWith(", 16 clients and 0.5 and 300 requests a second: which technology?");
        assertThat(of("line:2", "types:100", "staircase:10-200:+10:30s"))
                .endsWith(", 10 to 200 clients, 10 more every 30s: which technology?");
        assertThat(of("line:2", "types:100", "closed:1", "burst:100:3", "burst:200:3"))
                .endsWith(", 1 client and two other loads: which technology?");
    }

    @Test
    void ofOneTechnologyTheQuestionIsHowItDoes() {
        assertThat(Question.of(List.of(new Situation("line:2", "types:100", new Load.Closed(16))), List.of("rpcx")))
                .isEqualTo("Two services, 100 properties a message, 16 clients: how does rpcx do?");
        assertThat(Question.of(List.of(), TWO)).isEqualTo("Which technology?");
    }

    @Test
    void aStudyThatNobodyNamedHasNoTitle() {
        assertThat(Question.title("compare")).isEmpty();
        assertThat(Question.title("a study")).isEmpty();
        assertThat(Question.title("Short messages between two services"))
                .contains("Short messages between two services");
    }
}
