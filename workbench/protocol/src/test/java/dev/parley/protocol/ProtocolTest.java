package dev.parley.protocol;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.model.HistogramRow;
import dev.parley.model.SecondRow;
import dev.parley.model.Technology;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class ProtocolTest {
    private static final byte[] TIMES = {0, 1, -1, 127, -128};

    private static HistogramRow row(String subject) {
        return new HistogramRow(7, HistogramRow.Kind.HOP, subject, TIMES);
    }

    private static Technology technology(Optional<String> broker) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("serializer", "JSON");
        settings.put("acks", "all, \"at once\"");
        return new Technology(
                "kafka", "Kafka", Technology.Style.ASYNCHRONOUS, broker, List.of("a", "b"), "nobody", settings);
    }

    static Stream<Message> messages() {
        return Stream.of(
                new Hello(3),
                new Command.Use("rest", "line:2", "messages", Long.MIN_VALUE),
                new Command.AwaitReady("127.0.0.1:9", "m1", "text:10", 3, 60_000),
                new Command.Count("127.0.0.1:9/m1", "text:10", 4, 20, 1_000),
                new Command.Release("127.0.0.1:9"),
                new Command.RunTrial(3, "127.0.0.1:9", "text:10", "closed:4", 1, 2, 3, 4, 5, 6),
                new Command.Ceiling(9, 16, 0, 0, 1_000),
                new Event.Done(),
                new Event.Ready("m1", 1_234_567, 2),
                new Event.Counted(20, 10, 1_000_000_000_000L),
                new Event.Progress(1, Event.Phase.LAST_REPLIES, 500, 1e10, 0.1, 0, -1),
                new Event.ProbeBegins(1, 2),
                new Event.ProbeEnds(1, 1_000_000_000_000L),
                new Event.Second(new SecondRow(1, -2, 3, 4, 5, 6, 7, TIMES)),
                new Event.Step(1, 0, "4 clients", 4, 4.5, true, false, 9, 1, 2, 3, 4, 5, TIMES, new byte[0]),
                new Event.Uncounted(1, 2, 3),
                new Event.Distribution(new HistogramRow(1, HistogramRow.Kind.FIRST_HALF, "client", TIMES)),
                new Event.Finished(
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
                        List.of("wrong replies", ""),
                        "REMOTE_ERROR: planted\n\tat once"),
                new Event.Ceiling(Double.POSITIVE_INFINITY),
                new Event.Failed("m1 \u2192 m2: \"no\" \\ \7 \uD83D\uDE00"),
                new ServiceCommand.ResetHops(""),
                new ServiceCommand.TellHops(7),
                new ServiceCommand.TellServed(),
                new ServiceEvent.Listening(65_535),
                new ServiceEvent.Hops(List.of(row("m1>m2"), row("m1>m3"))),
                new ServiceEvent.Served(12, 11, 4_096),
                new ServiceEvent.Described(technology(Optional.of("kafka")), List.of("records")),
                new ServiceEvent.Described(technology(Optional.empty()), List.of()));
    }

    private static Message read(String line, Message like) {
        return switch (like) {
            case Hello _ -> Protocol.read(line, Hello.class);
            case Command _ -> Protocol.read(line, Command.class);
            case Event _ -> Protocol.read(line, Event.class);
            case ServiceCommand _ -> Protocol.read(line, ServiceCommand.class);
            case ServiceEvent _ -> Protocol.read(line, ServiceEvent.class);
        };
    }

    /** The character set of a process's standard output is the system's: a line is of ASCII alone. */
    @ParameterizedTest(name = "message {index}")
    @MethodSource("messages")
    void everyMessageSurvivesItsLine(Message message) {
        String line = Protocol.line(message);
        assertThat(line).matches("[ -~]+");
        assertThat(read(line, message)).usingRecursiveComparison().isEqualTo(message);
    }

    @Test
    void noMessageIsLeftOutHere() {
        Set<Class<?>> all = new HashSet<>();
        for (Class<?> kind : Message.class.getPermittedSubclasses()) {
            if (kind.isRecord()) {
                all.add(kind);
            } else {
                all.addAll(Arrays.asList(kind.getPermittedSubclasses()));
            }
        }
        Set<Class<?>> here = new HashSet<>();
        messages().forEach(message -> here.add(message.getClass()));
        assertThat(here).isEqualTo(all);
    }

    @Test
    void settingsOfATechnologyKeepTheirOrder() {
        String line = Protocol.line(new ServiceEvent.Described(technology(Optional.empty()), List.of()));
        assertThat(((ServiceEvent.Described) Protocol.read(line, ServiceEvent.class))
                        .technology()
                        .settings())
                .containsExactlyEntriesOf(technology(Optional.empty()).settings());
    }

    @Test
    void aLineThatIsNoEventIsNamed() {
        assertThatThrownBy(() -> Protocol.read("hello", Event.class)).hasMessageContaining("no Event: hello");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"perSecond\":1.5} | type: null (expected: one of ",
                "{\"type\":\"Release\",\"location\":\"a\"} | type: Release (expected: one of ",
                "{\"type\":\"Ceiling\"} | Ceiling.perSecond: missing (expected: double)",
                "{\"type\":\"Ceiling\",\"perSecond\":true} | Ceiling.perSecond: true (expected: double)",
                "{\"type\":\"Ceiling\",\"perSecond\":1.5,\"more\":1} | Ceiling: [more] (expected: ",
                "{\"type\":\"Counted\",\"calls\":3000000000,\"payloadOut\":1,\"payloadBack\":1} | Counted.calls: 30",
                "{\"type\":\"Second\",\"row\":{\"trialId\":1}} | SecondRow.second: missing (expected: int)"
            })
    void aMemberThatCannotBeReadIsNamed(String line, String named) {
        assertThatThrownBy(() -> Protocol.read(line, Event.class))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("no Event: " + line)
                .hasMessageContaining(named);
    }

    @Test
    void aValueThatTheRecordRefusesIsAnError() {
        String line = Protocol.line(new ServiceEvent.Described(technology(Optional.empty()), List.of()))
                .replace("\"kafka\"", "\"Kafka\"");
        assertThatThrownBy(() -> Protocol.read(line, ServiceEvent.class))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("technology name: Kafka");
    }

    @Test
    void aGreetingOfTheSameVersionPasses() {
        assertThatCode(() -> Protocol.checkGreeting("m2", Protocol.greeting())).doesNotThrowAnyException();
    }

    @Test
    void bothVersionsAreNamedWhereTheyDiffer() {
        int other = Protocol.VERSION + 1;
        assertThatThrownBy(() -> Protocol.checkGreeting("m2", Protocol.line(new Hello(other))))
                .isInstanceOf(BadInput.class)
                .hasMessage("protocol: version " + other + " from m2 (expected: version " + Protocol.VERSION
                        + ", which this process speaks; build both of one commit)");
    }

    @Test
    void whatIsNoGreetingIsSaid() {
        assertThatThrownBy(() -> Protocol.checkGreeting("m2", "listening"))
                .isInstanceOf(BadInput.class)
                .hasMessage("protocol: listening from m2 (expected: a greeting of version " + Protocol.VERSION + ")");
    }
}
