package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class ProtocolTest {
    @Test
    void commandsSurviveTheirLine() {
        Command run = new Command.RunTrial(3, "127.0.0.1:9", "text:10", "closed:4", 1, 2, 3, 4, 5, 6);
        assertThat(Protocol.line(run)).doesNotContain("\n");
        assertThat(Protocol.command(Protocol.line(run))).isEqualTo(run);
        Command release = new Command.Release("127.0.0.1:9");
        assertThat(Protocol.command(Protocol.line(release))).isEqualTo(release);
    }

    @Test
    void eventsSurviveTheirLine() {
        Event finished = new Event.Finished(
                1,
                2,
                3,
                true,
                4,
                5,
                6,
                7,
                8,
                0.5,
                9,
                10,
                1.01,
                11,
                1200.5,
                List.of("wrong replies"),
                "REMOTE_ERROR: planted");
        assertThat(Protocol.event(Protocol.line(finished))).isEqualTo(finished);
        Event.Second second = new Event.Second(1, 2, 3, 4, 5, 6, 7, new byte[] {1, 2, 3});
        assertThat(((Event.Second) Protocol.event(Protocol.line(second))).responseTimes())
                .containsExactly(1, 2, 3);
    }

    @Test
    void aLineThatIsNoEventIsNamed() {
        assertThatThrownBy(() -> Protocol.event("hello")).hasMessageContaining("hello");
    }
}
