package dev.parley.model;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Services and the calls between them, without cycles. Clients call the first service. A service that no other calls
 * runs beside them, and gets no requests.
 *
 * <p>Written {@code line:5}, {@code star:6}, {@code star}, {@code tree}, {@code pair}, or as a graph of one's own:
 * {@code graph:m1>m2,m3;m2>m4&m5}, where {@code ,} calls one after the other and {@code &} at once.
 * {@code tree} and {@code star} are the six services of kazanavicius, figure 3.
 *
 * @param text the form it was written in, which {@link #parse} reads again
 * @param restFront true for {@code pair} alone: clients reach the first service over REST whatever the services speak
 *     among themselves. That is the set-up of weerasinghe, and of no other of the papers
 */
public record Topology(String text, List<Node> nodes, boolean restFront) {

    /** The most services one topology may have: each is a process. */
    public static final int MAX_NODES = 64;

    private static final Pattern COUNTED = Pattern.compile("(line|star):(\\d{1,9})");
    private static final String FORMS =
            "line:n, star:n (n from 1 to " + MAX_NODES + "), star, tree, pair, or graph:a>b,c;b>d&e";
    private static final List<String> NAMED = List.of("line:n", "star:n", "star", "tree", "pair");

    /** How a service with several neighbours calls them. */
    public enum Calling {
        ONE_AFTER_THE_OTHER,
        AT_ONCE
    }

    /** One service, and the neighbours it calls for each request. */
    public record Node(String name, List<String> calls, Calling calling) {
        /** What figures are of that are of no service: those of a service so called would be taken for them. */
        private static final List<String> TAKEN = List.of(FigureRow.EMPTY, FigureRow.GENERATOR, FigureRow.SYSTEM);

        public Node {
            if (TAKEN.contains(name)) {
                throw new BadInput(
                        "service name", name, "none of " + String.join(", ", TAKEN) + ", which figures are of too");
            }
            if (!name.matches("[a-z][a-z0-9-]{0,30}")) {
                throw new BadInput("service name", name, "a lower-case letter, then letters, digits or hyphens");
            }
            calls = List.copyOf(calls);
        }

        public boolean isLeaf() {
            return calls.isEmpty();
        }
    }

    public Topology {
        nodes = List.copyOf(nodes);
        if (nodes.isEmpty() || nodes.size() > MAX_NODES) {
            throw new BadInput("topology", text, FORMS);
        }
        Map<String, Node> byName = new HashMap<>();
        for (Node node : nodes) {
            if (byName.put(node.name(), node) != null) {
                throw new BadInput("topology " + text, node.name(), "each service once");
            }
        }
        for (Node node : nodes) {
            for (String callee : node.calls()) {
                if (!byName.containsKey(callee)) {
                    throw new BadInput("topology " + text, callee, "a service of this topology");
                }
            }
        }
        calleesFirst(text, nodes);
    }

    public static Topology parse(String given) {
        String text = given.strip();
        Matcher counted = COUNTED.matcher(text);
        if (counted.matches()) {
            int n = Integer.parseInt(counted.group(2));
            if (n < 1 || n > MAX_NODES) {
                throw new BadInput("topology", given, FORMS);
            }
            return counted.group(1).equals("line") ? line(n) : star(text, n);
        }
        return switch (text) {
            case "star" -> star(text, 6);
            case "tree" -> graph(text, "m1>m2,m3;m2>m4,m5;m3>m5,m6");
            case "pair" -> new Topology(text, line(2).nodes(), true);
            default -> {
                if (!text.startsWith("graph:")) {
                    throw BadInput.near("topology", given, NAMED, FORMS);
                }
                yield graph(text, text.substring("graph:".length()));
            }
        };
    }

    public static Topology line(int n) {
        List<Node> nodes = new ArrayList<>();
        for (int i = 1; i <= n; i++) {
            nodes.add(new Node("m" + i, i < n ? List.of("m" + (i + 1)) : List.of(), Calling.ONE_AFTER_THE_OTHER));
        }
        return new Topology("line:" + n, nodes, false);
    }

    public Node entry() {
        return nodes.getFirst();
    }

    public Node node(String name) {
        return nodes.stream()
                .filter(n -> n.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new BadInput("service", name, "a service of " + text));
    }

    /** The services in an order in which every one comes after all that it calls: the order in which they boot. */
    public List<Node> calleesFirst() {
        return calleesFirst(text, nodes);
    }

    /** True where some service calls more than one neighbour, so that its reply gathers several. */
    public boolean gathers() {
        return nodes.stream().anyMatch(n -> n.calls().size() > 1);
    }

    /** How many services the longest chain of calls crosses, the first one included. */
    public int depth() {
        Map<String, Integer> depths = new HashMap<>();
        for (Node node : calleesFirst()) {
            int below = node.calls().stream()
                    .mapToInt(callee -> depths.getOrDefault(callee, 0))
                    .max()
                    .orElse(0);
            depths.put(node.name(), below + 1);
        }
        return depths.getOrDefault(entry().name(), 0);
    }

    @Override
    public String toString() {
        return text;
    }

    private static Topology star(String text, int n) {
        List<Node> nodes = new ArrayList<>();
        List<String> leaves = new ArrayList<>();
        for (int i = 2; i <= n; i++) {
            leaves.add("m" + i);
        }
        nodes.add(new Node("m1", leaves, Calling.AT_ONCE));
        leaves.forEach(leaf -> nodes.add(new Node(leaf, List.of(), Calling.ONE_AFTER_THE_OTHER)));
        return new Topology(text, nodes, false);
    }

    private static Topology graph(String text, String body) {
        Map<String, Node> nodes = new LinkedHashMap<>();
        for (String part : body.split(";", -1)) {
            String[] sides = part.split(">", -1);
            String caller = sides[0].strip();
            String callees = sides.length == 2 ? sides[1].strip() : "";
            if (sides.length > 2 || caller.isEmpty() || sides.length == 2 && callees.isEmpty()) {
                throw new BadInput("topology " + text, part, "caller>callee,callee or caller>callee&callee");
            }
            if (callees.contains(",") && callees.contains("&")) {
                throw new BadInput("topology " + text, part, "either , (one after the other) or & (at once), not both");
            }
            Calling calling = callees.contains("&") ? Calling.AT_ONCE : Calling.ONE_AFTER_THE_OTHER;
            List<String> calls = callees.isEmpty()
                    ? List.of()
                    : List.of(callees.split("[,&]", -1)).stream()
                            .map(String::strip)
                            .toList();
            Node already = nodes.get(caller);
            if (already != null && !already.isLeaf()) {
                throw new BadInput("topology " + text, caller, "each caller once");
            }
            nodes.put(caller, new Node(caller, calls, calling));
            for (String callee : calls) {
                nodes.putIfAbsent(callee, new Node(callee, List.of(), Calling.ONE_AFTER_THE_OTHER));
            }
        }
        return new Topology(text, List.copyOf(nodes.values()), false);
    }

    private static List<Node> calleesFirst(String text, List<Node> nodes) {
        Map<String, Node> byName = new HashMap<>();
        nodes.forEach(n -> byName.put(n.name(), n));
        Map<String, Boolean> finished = new HashMap<>();
        List<Node> order = new ArrayList<>();
        nodes.forEach(n -> visit(text, n, byName, finished, order));
        return List.copyOf(order);
    }

    private static void visit(
            String text, Node node, Map<String, Node> byName, Map<String, Boolean> finished, List<Node> order) {
        Boolean state = finished.get(node.name());
        if (state != null) {
            if (!state) {
                throw new BadInput(
                        "topology " + text, node.name(), "no service that calls itself, directly or through others");
            }
            return;
        }
        finished.put(node.name(), false);
        for (String callee : node.calls()) {
            Node next = byName.get(callee);
            if (next != null) {
                visit(text, next, byName, finished, order);
            }
        }
        finished.put(node.name(), true);
        order.add(node);
    }
}
