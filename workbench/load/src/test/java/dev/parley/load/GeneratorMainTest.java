package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import dev.parley.protocol.Protocol;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class GeneratorMainTest {
    private static Process start() throws IOException {
        return new ProcessBuilder(List.of(
                        ProcessHandle.current().info().command().orElseThrow(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        GeneratorMain.class.getName()))
                .start();
    }

    @Test
    void commandsAreAnsweredInOrderAndWhatIsNoneIsAFailure() throws Exception {
        Process process = start();
        try (PrintWriter commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
                BufferedReader events = process.inputReader(StandardCharsets.UTF_8)) {
            commands.println(Protocol.greeting());
            commands.println("nonsense");
            commands.println(Protocol.line(new Command.Release("127.0.0.1:1")));
            assertThat(events.readLine()).isEqualTo(Protocol.greeting());
            assertThat(Protocol.read(events.readLine(), Event.class))
                    .isInstanceOfSatisfying(
                            Event.Failed.class,
                            failed -> assertThat(failed.message()).contains("no Command: nonsense"));
            assertThat(Protocol.read(events.readLine(), Event.class)).isEqualTo(new Event.Done());
        }
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
    }

    @Test
    void anotherVersionOfTheProtocolIsRefusedInOneLineThatNamesBoth() throws Exception {
        int other = Protocol.VERSION + 1;
        Process process = start();
        try (PrintWriter commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true)) {
            commands.println(Protocol.greeting().replace(":" + Protocol.VERSION, ":" + other));
            assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8).lines())
                    .singleElement()
                    .asString()
                    .startsWith("generator: protocol: version " + other + " from the lab")
                    .contains("version " + Protocol.VERSION + ",");
        }
        assertThat(process.waitFor()).isEqualTo(1);
    }
}
