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

class ConversationTest {
    private static final Duration WITHIN = Duration.ofSeconds(30);

    @TempDir
    Path folder;

    /** A child that says these lines, writes down what it is told, and ends with its input. */
    private Child child(String... lines) {
        List<String> command =
                new ArrayList<>(List.of("sh", "-c", "to=\"$1\"; shift; printf '%s\\n' \"$@\"; cat >\"$to\"", "sh"));
        command.add(folder.resolve("told").toString());
        command.addAll(List.of(lines));
        return Child.start("m2", command, Map.of(), folder.resolve("log"));
    }

    @Test
    void bothSidesGreetBeforeAnythingElseIsSaid() throws Exception {
        try (Child child = child(Protocol.greeting(), Protocol.line(new Event.Done()))) {
            Conversation<Command, Event> conversation = new Conversation<>(child, Event.class);
            conversation.tell(new Command.Release("127.0.0.1:1"));
            assertThat(conversation.next(WITHIN)).contains(new Event.Done());
            assertThat(conversation.next(Duration.ofMillis(1))).isEmpty();
        }
        assertThat(Files.readAllLines(folder.resolve("told")))
                .containsExactly(Protocol.greeting(), Protocol.line(new Command.Release("127.0.0.1:1")));
    }

    @Test
    void anotherVersionOfTheProtocolIsRefusedInOneLineThatNamesBoth() {
        int other = Protocol.VERSION + 1;
        try (Child child = child(Protocol.greeting().replace(":" + Protocol.VERSION, ":" + other))) {
            Conversation<Command, Event> conversation = new Conversation<>(child, Event.class);
            assertThatThrownBy(() -> conversation.next(WITHIN))
                    .isInstanceOf(LabException.class)
                    .hasMessageContaining("version " + other + " from m2")
                    .hasMessageContaining("expected: version " + Protocol.VERSION + ",");
        }
    }

    @Test
    void whatIsNoneOfItsMessagesIsSaidWithTheChildsName() {
        try (Child child = child(Protocol.greeting(), "hello")) {
            Conversation<Command, Event> conversation = new Conversation<>(child, Event.class);
            assertThatThrownBy(() -> conversation.next(WITHIN))
                    .isInstanceOf(LabException.class)
                    .hasMessage("m2 said hello (expected: one of its Events)");
        }
    }
}
