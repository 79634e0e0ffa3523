package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.process.Child;
import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import dev.parley.protocol.Protocol;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GeneratorTest {
    private static final Duration WITHIN = Duration.ofSeconds(30);

    @TempDir
    Path folder;

    private static Command.Count count(String message) {
        return new Command.Count("127.0.0.1:1", message, 1, 1, 1);
    }

    /** Else the bytes of one message would be stored as those of the next. */
    @Test
    void anAnswerThatComesTooLateIsNotTakenForTheNext() throws Exception {
        Path late = folder.resolve("late");
        String script = "echo \"$1\"; read hello; read a; while [ ! -e \"$2\" ]; do sleep 0.01; done;"
                + " echo \"$3\"; read b; echo \"$4\"; read c";
        List<String> answers = List.of(
                Protocol.greeting(),
                late.toString(),
                Protocol.line(new Event.Counted(1, 10, 10)),
                Protocol.line(new Event.Counted(1, 20, 20)));
        List<String> command = new ArrayList<>(List.of("sh", "-c", script, "sh"));
        command.addAll(answers);
        try (Generator generator =
                new Generator(Child.start("generator", command, Map.of(), folder.resolve("generator.log")))) {
            assertThatThrownBy(() -> generator.ask(count("text:10"), Event.Counted.class, Duration.ofMillis(50)))
                    .isInstanceOf(LabException.class)
                    .hasMessageContaining("did not answer");
            Files.createFile(late);
            assertThat(generator
                            .ask(count("text:20"), Event.Counted.class, WITHIN)
                            .payloadOut())
                    .isEqualTo(20);
        }
    }
}
