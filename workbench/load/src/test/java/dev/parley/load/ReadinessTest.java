package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.protocol.Event;
import dev.parley.spi.CallException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReadinessTest {
    private static final String RIGHT = "right";
    private static final String WRONG = "wrong";
    private static final String LOST = "lost";

    /** Answers as planned, then rightly. */
    private static Target answering(String... answers) {
        Iterator<String> next = List.of(answers).iterator();
        return new Target() {
            @Override
            public boolean call(int step, long index) {
                String answer = next.hasNext() ? next.next() : RIGHT;
                if (answer.equals(LOST)) {
                    throw new CallException(CallException.Code.UNAVAILABLE, "not there");
                }
                return answer.equals(RIGHT);
            }

            @Override
            public void send(int step, long index, Asker asker) {
                asker.ended(call(step, index), null);
            }
        };
    }

    private static Event.Ready await(Target target, int times) throws InterruptedException {
        return new Readiness(new SimulatedClock(), target).await("M1", times, Duration.ofSeconds(1));
    }

    @Test
    void oneRightAnswerIsEnoughForAServiceThatComesUp() throws InterruptedException {
        assertThat(await(answering(LOST, LOST, WRONG, RIGHT), 1).attempts()).isEqualTo(4);
    }

    @Test
    void aFailureBetweenRightAnswersBeginsTheCountAnew() throws InterruptedException {
        assertThat(await(answering(RIGHT, RIGHT, LOST, RIGHT, RIGHT, WRONG), 3).attempts())
                .isEqualTo(9);
    }

    @Test
    void aServiceThatStaysAwayIsNamedWithWhatItSaidLast() {
        String[] never = new String[1000];
        Arrays.fill(never, LOST);
        assertThatThrownBy(() -> await(answering(never), 3))
                .isInstanceOf(CallException.class)
                .hasMessageContaining("M1 did not give 3 right replies in a row within 1000 ms")
                .hasMessageContaining("not there");
    }
}
