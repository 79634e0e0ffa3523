package dev.parley.report;

import dev.parley.analysis.Situation;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** What a run asks, in the words of its topologies, messages and loads. */
final class Question {
    /** What the size of a message counts, of the kinds that say it. */
    private static final Map<String, String> COUNTED = Map.of("text", "character", "types", "property");

    /** What commands call a study that nobody has named. */
    private static final List<String> UNNAMED = List.of("compare", "a study");

    private Question() {}

    /** The title that somebody gave to the study; empty where nobody did. */
    static Optional<String> title(String ofStudy) {
        return UNNAMED.contains(ofStudy) ? Optional.empty() : Optional.of(ofStudy);
    }

    /** Such as {@code Two services, 100 properties a message, 1 and 16 clients: which technology?}. */
    static String of(List<Situation> situations, List<String> technologies) {
        String asked = technologies.size() == 1 ? "how does " + technologies.getFirst() + " do?" : "which technology?";
        if (situations.isEmpty()) {
            return Words.sentence(asked);
        }
        return Words.sentence(String.join(
                        ", ",
                        topologies(situations.stream()
                                .map(Situation::topology)
                                .distinct()
                                .map(Topology::parse)
                                .toList()),
                        messages(situations.stream()
                                .map(Situation::message)
                                .distinct()
                                .map(MessageSpec::parse)
                                .toList()),
                        loads(situations.stream()
                                .map(Situation::load)
                                .distinct()
                                .toList())))
                + ": " + asked;
    }

    private static String topologies(List<Topology> topologies) {
        return topologies.size() == 1
                ? topology(topologies.getFirst())
                : Words.number(topologies.size()) + " topologies";
    }

    private static String topology(Topology topology) {
        int services = topology.nodes().size();
        int behind = topology.entry().calls().size();
        if (topology.restFront()) {
            return "a REST front and one service behind it";
        }
        if (topology.gathers() && behind == services - 1) {
            return "a gateway and " + services(behind) + " behind it";
        }
        boolean isLine = services > 2 && topology.depth() == services && !topology.gathers();
        return services(services) + (isLine ? " in a line" : topology.text().equals("tree") ? " in a tree" : "");
    }

    private static String services(int count) {
        return Words.number(count) + (count == 1 ? " service" : " services");
    }

    private static String messages(List<MessageSpec> messages) {
        List<String> kinds = messages.stream().map(MessageSpec::kind).distinct().toList();
        String counted = COUNTED.getOrDefault(kinds.getFirst(), "");
        if (kinds.size() == 1
                && !counted.isEmpty()
                && messages.stream().allMatch(message -> message.then().isEmpty())) {
            List<Integer> sizes =
                    messages.stream().map(MessageSpec::size).sorted().toList();
            return Words.and(sizes.stream().map(size -> Figures.whole(size)).toList())
                    + (sizes.equals(List.of(1)) ? " " + counted : " " + plural(counted)) + " a message";
        }
        return messages.size() == 1 ? "message " + messages.getFirst() : Words.number(messages.size()) + " messages";
    }

    private static String plural(String noun) {
        return noun.endsWith("y") ? noun.substring(0, noun.length() - 1) + "ies" : noun + "s";
    }

    private static String loads(List<Load> loads) {
        List<Integer> clients = new ArrayList<>();
        List<Double> rates = new ArrayList<>();
        List<Load> others = new ArrayList<>();
        for (Load load : loads) {
            switch (load) {
                case Load.Closed closed -> clients.add(closed.clients());
                case Load.Open open -> rates.add(open.perSecond());
                case Load other -> others.add(other);
            }
        }
        List<String> parts = new ArrayList<>();
        if (!clients.isEmpty()) {
            parts.add(Words.and(
                            clients.stream().sorted().map(n -> Figures.whole(n)).toList())
                    + (clients.equals(List.of(1)) ? " client" : " clients"));
        }
        if (!rates.isEmpty()) {
            parts.add(Words.and(rates.stream()
                            .distinct()
                            .sorted()
                            .map(rate -> rate == Math.rint(rate) ? Figures.whole(rate.longValue()) : rate.toString())
                            .toList())
                    + " requests a second");
        }
        if (others.size() == 1) {
            // its title without the brackets, in which stands whether the load is open
            parts.add(others.getFirst().title().replaceFirst(" \\([^()]*\\)$", ""));
        } else if (!others.isEmpty()) {
            parts.add(Words.number(others.size()) + (parts.isEmpty() ? " loads" : " other loads"));
        }
        return Words.and(parts);
    }
}
