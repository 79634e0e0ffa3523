package dev.parley.work.messages;

import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.Contract;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Work;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.Messages;
import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.Map;

/**
 * Services echo what they are sent. {@code text:n} sends n characters of printable ASCII; {@code types:n} sends n
 * properties, nine an item and one for the list. What is sent is drawn from the seed before the first call, so that a
 * request costs no more than an index.
 */
public final class MessagesWork implements Work {
    /** How long a service waits for a neighbour, as ISO 8601 such as {@code PT5S}; the default is five seconds. */
    public static final String TIMEOUT_PROPERTY = "parley.messages.timeout";

    private static final int MAX_CHARACTERS = 10_000_000;
    private static final int MAX_PROPERTIES = 999_991;

    private final Duration timeout;

    public MessagesWork() {
        this(timeout(System.getProperty(TIMEOUT_PROPERTY, "PT5S")));
    }

    public MessagesWork(Duration timeout) {
        if (timeout.isNegative() || timeout.isZero()) {
            throw new BadInput(TIMEOUT_PROPERTY, timeout, "longer than zero");
        }
        this.timeout = timeout;
    }

    @Override
    public String name() {
        return Messages.CONTRACT.name();
    }

    @Override
    public Contract contract() {
        return Messages.CONTRACT;
    }

    @Override
    public boolean callsEachNeighbourOnce(Topology.Node self) {
        return true;
    }

    @Override
    public Node node(Topology.Node self, Map<String, Neighbour> neighbours) {
        return new MessagesNode(self, neighbours, timeout);
    }

    @Override
    public Exchange<?, ?> exchange(MessageSpec message, Topology topology, Topology.Node asked, long seed) {
        return switch (message.kind()) {
            case "text" -> {
                if (message.size() > MAX_CHARACTERS) {
                    throw new BadInput("message", message, "text:0 to text:" + MAX_CHARACTERS);
                }
                var requests = Payloads.texts(message.size(), seed);
                if (!topology.gathers()) {
                    yield new EchoExchange<>(Messages.ONLY_TEXT, requests);
                }
                yield new GatherExchange<>(
                        Messages.GATHER_TEXT,
                        requests,
                        leaves(topology, asked),
                        GatheredText::parts,
                        GatheredText.Part::service,
                        GatheredText.Part::answer);
            }
            case "types" -> {
                if (message.size() % 9 != 1 || message.size() > MAX_PROPERTIES) {
                    throw new BadInput(
                            "message",
                            message,
                            "types:n where n is 9k + 1, nine properties an item and one for the list, such as 10, 100, 1000"
                                    + " or 10000, at most " + MAX_PROPERTIES);
                }
                var requests = Payloads.lists(message.size() / 9, seed);
                if (!topology.gathers()) {
                    yield new EchoExchange<>(Messages.ALL_TYPES, requests);
                }
                yield new GatherExchange<>(
                        Messages.GATHER_TYPES,
                        requests,
                        leaves(topology, asked),
                        GatheredTypes::parts,
                        GatheredTypes.Part::service,
                        GatheredTypes.Part::answer);
            }
            default -> throw new BadInput("message", message, "text:n (characters) or types:n (properties)");
        };
    }

    /**
     * The services that answer, in the order in which their parts come back; a shared leaf as often as it is reached.
     */
    static List<String> leaves(Topology topology, Topology.Node from) {
        return from.isLeaf()
                ? List.of(from.name())
                : from.calls().stream()
                        .flatMap(callee -> leaves(topology, topology.node(callee)).stream())
                        .toList();
    }

    private static Duration timeout(String text) {
        try {
            return Duration.parse(text);
        } catch (DateTimeParseException e) {
            throw new BadInput(TIMEOUT_PROPERTY, text, "a duration such as PT5S");
        }
    }
}
