package dev.parley.studies;

import dev.parley.model.BadInput;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Nearest;
import dev.parley.model.Quantity;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import dev.parley.model.Target;
import dev.parley.model.Topology;
import dev.parley.spi.Work;
import dev.parley.studies.Value.Mistakes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Compose;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.Node;
import tools.jackson.databind.json.JsonMapper;

/**
 * Reads studies from YAML. The file is long so that for each key, reading, checking and the error that names its place
 * stand together.
 */
public final class StudyFile {
    /** Kazanavicius, section 3.2. */
    private static final Duration SUCCESS_WITHIN = Duration.ofSeconds(1);
    /** More than a study needs, and far under what would fill this process. */
    private static final int MAX_CHARACTERS = 1_000_000;

    private final Mistakes mistakes;
    private final List<String> technologies;

    private StudyFile(Mistakes mistakes, List<String> technologies) {
        this.mistakes = mistakes;
        this.technologies = technologies;
    }

    /**
     * Reads a file and checks it against what there is here.
     *
     * @param technologies those that {@code technologies: all} means and no others are known
     * @throws BadStudy with every mistake found
     * @throws BadInput if the file cannot be read
     */
    public static Study read(Path file, List<String> technologies) {
        try {
            if (Files.size(file) > MAX_CHARACTERS) {
                throw new BadInput("SPEC", file + " of " + Files.size(file) + " bytes", "at most " + MAX_CHARACTERS);
            }
            return parse(file.toString(), Files.readString(file), technologies);
        } catch (IOException e) {
            throw new BadInput(
                    "SPEC", file + ", which cannot be read (" + e.getClass().getSimpleName() + ")", "a study file");
        }
    }

    /** @param name of the file, for messages */
    public static Study parse(String name, String text, List<String> technologies) {
        Mistakes mistakes = new Mistakes(name);
        Optional<Study> study = Optional.empty();
        try {
            Optional<Node> root = composed(name, text);
            if (root.isPresent()) {
                study = new StudyFile(mistakes, technologies).study(new Value("", root.get(), mistakes));
            } else {
                mistakes.add(
                        1,
                        "",
                        "an empty file (expected: a study, with " + String.join(", ", StudyKeys.STUDY.needed()) + ")");
            }
        } catch (MarkedYamlEngineException e) {
            mistakes.add(
                    e.getProblemMark().map(mark -> mark.getLine() + 1).orElse(1),
                    "",
                    String.valueOf(e.getProblem()) + " (expected: YAML)");
        } catch (YamlEngineException e) {
            mistakes.add(
                    1, "", String.valueOf(e.getMessage()).lines().findFirst().orElse("") + " (expected: YAML)");
        }
        if (study.isEmpty() || mistakes.count() > 0) {
            throw new BadStudy(mistakes.inOrder());
        }
        return study.get();
    }

    /**
     * The title in the text of a study; empty where it has none. Nothing else is read, so that its technologies and its
     * work need not be there.
     */
    static Optional<String> title(String name, String text) {
        return composed(name, text)
                .map(root -> new Value("", root, new Mistakes(name)))
                .filter(Value::isMapping)
                .flatMap(root -> Optional.ofNullable(root.fields(Set.of()).get("study")))
                .flatMap(title -> title.text("a title of one line"));
    }

    /**
     * The target in the text of a study; empty where it has none. Nothing else is read, so that technologies, works and
     * messages need not be known.
     *
     * @throws BadStudy with every mistake in it
     */
    static Optional<Target> target(String name, String text) {
        Mistakes mistakes = new Mistakes(name);
        Optional<Target> target = composed(name, text)
                .map(root -> new Value("", root, mistakes))
                .filter(Value::isMapping)
                .flatMap(root -> Optional.ofNullable(root.fields(Set.of()).get("target")))
                .flatMap(value -> target(value, mistakes));
        if (mistakes.count() > 0) {
            throw new BadStudy(mistakes.inOrder());
        }
        return target;
    }

    private static Optional<Node> composed(String name, String text) {
        return new Compose(LoadSettings.builder()
                        .setLabel(name)
                        .setCodePointLimit(MAX_CHARACTERS)
                        .build())
                .composeString(text);
    }

    /** The JSON Schema of the form, for editors; the reader checks more than a schema can say. */
    public static String schema() {
        return JsonMapper.shared().writerWithDefaultPrettyPrinter().writeValueAsString(StudyKeys.schema()) + "\n";
    }

    private Optional<Study> study(Value root) {
        Map<String, Value> fields = root.fields(StudyKeys.STUDY.names());
        if (!root.isMapping()) {
            return Optional.empty();
        }
        for (String needed : StudyKeys.STUDY.needed()) {
            if (!fields.containsKey(needed)) {
                root.wrong(needed + " is missing (expected: a list of at least one)");
            }
        }
        Field in = new Field(fields);
        String title = in.one("study", "a study", "a title of one line", t -> t);
        List<String> chosen = technologies(fields);
        List<Topology> topologies = fields.containsKey("topologies")
                ? in.list("topologies", "a topology such as line:5", Topology::parse)
                : List.of(Topology.parse("line:5"));
        Optional<Work> work = fields.containsKey("work")
                ? fields.get("work").read("the name of a work", Work::named)
                : Optional.of(Work.named("messages"));
        List<Study.Offering> offerings = offerings(fields, topologies, work);
        Optional<Integer> given = Optional.ofNullable(fields.get("restarts"))
                .flatMap(value -> value.read("a whole number", StudyFile::restarts));
        Effort effort = effort(in, fields, given);
        int restarts = given.orElse(effort.restarts());
        Duration limit = in.one("success-within", SUCCESS_WITHIN, "a time such as 1s", StudyFile::longerThanNothing);
        Duration callLimit = in.one(
                "call-limit", Study.defaultCallLimit(limit), "a time such as 180s", StudyFile::longerThanNothing);
        long seed = in.one("seed", 1L, "a whole number", text -> Long.parseLong(text.replace("_", "")));
        boolean isAlone = in.one("alone", false, "true or false", StudyFile::trueOrFalse);
        Optional<Target> target = Optional.ofNullable(fields.get("target")).flatMap(value -> target(value, mistakes));
        Limits limits =
                Optional.ofNullable(fields.get("limits")).map(this::limits).orElse(Limits.NONE);
        if (mistakes.count() > 0) {
            return Optional.empty();
        }
        try {
            return Optional.of(new Study(
                    title,
                    chosen,
                    topologies,
                    work.map(Work::name).orElse("messages"),
                    offerings,
                    effort,
                    restarts,
                    limit,
                    callLimit,
                    seed,
                    limits,
                    isAlone,
                    target));
        } catch (BadInput e) {
            blamed(root, fields, String.valueOf(e.getMessage())).wrong(e);
            return Optional.empty();
        }
    }

    /** The place of what a record as a whole refused. */
    private static Value blamed(Value root, Map<String, Value> fields, String message) {
        String what = message.substring(0, Math.max(0, message.indexOf(':')));
        String key = switch (what) {
            case "restarts" -> "restarts";
            case "limit" -> "success-within";
            case "call limit" -> "call-limit";
            case "title" -> "study";
            case "technology" -> "technologies";
            case "topology" -> "topologies";
            case "message" -> "messages";
            case "load" -> "loads";
            case "message and load" -> "more";
            case "target" -> "target";
            case "hosts", "service" -> "limits";
            default -> "";
        };
        return fields.getOrDefault(key, root);
    }

    /** Fields of a mapping, each with what stands for it when it is left out. */
    private record Field(Map<String, Value> fields) {
        <T> T one(String key, T otherwise, String expected, Function<String, T> parser) {
            Value value = fields.get(key);
            return value == null ? otherwise : value.read(expected, parser).orElse(otherwise);
        }

        <T> List<T> list(String key, String expected, Function<String, T> parser) {
            Value value = fields.get(key);
            List<T> read = new ArrayList<>();
            if (value != null) {
                for (Value item : value.items(expected)) {
                    item.read(expected, parser).ifPresent(one -> addOnce(read, one, item));
                }
            }
            return read;
        }
    }

    private static <T> void addOnce(List<T> all, T one, Value place) {
        if (all.contains(one)) {
            place.wrong(one + " twice (expected: each once)");
        } else {
            all.add(one);
        }
    }

    private List<String> technologies(Map<String, Value> fields) {
        Value value = fields.get("technologies");
        List<String> chosen = new ArrayList<>();
        if (value == null) {
            return chosen;
        }
        String expected = "one of " + String.join(", ", technologies) + ", or all alone";
        for (Value item : value.items(expected)) {
            item.text(expected).ifPresent(name -> {
                if (name.equals("all") && !value.isSequence()) {
                    chosen.addAll(technologies);
                } else if (technologies.contains(name)) {
                    addOnce(chosen, name, item);
                } else {
                    item.wrong(name + " (" + Nearest.hint(name, technologies) + "expected: " + expected + ")");
                }
            });
        }
        return chosen;
    }

    /** Messages and loads, and those of each item of {@code more}; what has a mistake is left out. */
    private static List<Study.Offering> offerings(
            Map<String, Value> fields, List<Topology> topologies, Optional<Work> work) {
        List<Study.Offering> offerings = new ArrayList<>();
        addOffering(offerings, fields, topologies, work);
        Value more = fields.get("more");
        if (more != null) {
            for (Value item : more.items("messages and loads of their own")) {
                Map<String, Value> own = item.fields(StudyKeys.MORE.names());
                for (String needed : StudyKeys.MORE.needed()) {
                    if (item.isMapping() && !own.containsKey(needed)) {
                        item.wrong(needed + " is missing (expected: messages, and the loads that they go with)");
                    }
                }
                addOffering(offerings, own, topologies, work);
            }
        }
        return offerings;
    }

    private static void addOffering(
            List<Study.Offering> offerings, Map<String, Value> fields, List<Topology> topologies, Optional<Work> work) {
        List<MessageSpec> messages = messages(fields, topologies, work);
        List<Load> loads = loads(fields);
        if (!messages.isEmpty() && !loads.isEmpty()) {
            offerings.add(new Study.Offering(messages, loads));
        }
    }

    /** A message is a text, or a list of texts for a scenario; the work must know each on each topology. */
    private static List<MessageSpec> messages(
            Map<String, Value> fields, List<Topology> topologies, Optional<Work> work) {
        Value value = fields.get("messages");
        List<MessageSpec> messages = new ArrayList<>();
        if (value == null) {
            return messages;
        }
        String expected = "a message such as text:1000, or a scenario such as list>edit or [list, edit]";
        for (Value item : value.items(expected)) {
            List<MessageSpec> scenario = new ArrayList<>();
            for (Value single : item.items(expected)) {
                single.read(expected, MessageSpec::parse)
                        .filter(message -> isKnown(message, single, topologies, work))
                        .ifPresent(message -> scenario.addAll(message.messages()));
            }
            if (!scenario.isEmpty()) {
                addOnce(messages, MessageSpec.scenario(scenario), item);
            }
        }
        return messages;
    }

    private static boolean isKnown(MessageSpec message, Value place, List<Topology> topologies, Optional<Work> work) {
        try {
            for (Topology topology : topologies) {
                for (MessageSpec single : message.messages()) {
                    work.ifPresent(w -> w.exchange(single, topology, topology.entry(), 1));
                }
            }
            return true;
        } catch (BadInput e) {
            place.wrong(e);
            return false;
        }
    }

    private static List<Load> loads(Map<String, Value> fields) {
        List<Load> loads = new ArrayList<>();
        Value value = fields.get("loads");
        if (value != null) {
            for (Value item : value.items("at least one load")) {
                LoadValue.read(item).forEach(load -> addOnce(loads, load, item));
            }
        }
        return loads;
    }

    private static Effort effort(Field in, Map<String, Value> fields, Optional<Integer> restarts) {
        Effort named = in.one("effort", Effort.STANDARD, "quick or standard", text -> switch (text) {
            case "quick" -> Effort.QUICK;
            case "standard" -> Effort.STANDARD;
            default -> throw new NumberFormatException(text);
        });
        Duration rehearsalLeast = named.rehearsalLeast();
        Duration rehearsal = named.rehearsal();
        Value rehearsing = fields.get("rehearsal");
        if (rehearsing != null && rehearsing.isMapping()) {
            Field edges = new Field(rehearsing.fields(StudyKeys.EDGES.names()));
            rehearsalLeast = edges.one("least", rehearsalLeast, "a time such as 6s", Quantity::duration);
            rehearsal = edges.one(
                    "most",
                    rehearsal.compareTo(rehearsalLeast) < 0 ? rehearsalLeast : rehearsal,
                    "a time such as 60s",
                    Quantity::duration);
            if (rehearsal.compareTo(rehearsalLeast) < 0) {
                rehearsing.wrong("most " + Quantity.text(rehearsal) + " (expected: not under the least, "
                        + Quantity.text(rehearsalLeast) + ")");
                rehearsal = rehearsalLeast;
            }
        } else {
            rehearsal = in.one("rehearsal", rehearsal, "a time such as 6s, or least and most", Quantity::duration);
        }
        Duration window = named.window();
        int openRequests = named.openRequests();
        Value measured = fields.get("window");
        if (measured != null && measured.isMapping()) {
            Field edges = new Field(measured.fields(StudyKeys.WINDOW.names()));
            window = edges.one("least", window, "a time such as 30s", StudyFile::longerThanNothing);
            openRequests =
                    edges.one("requests", openRequests, "0 to " + Study.MAX_OPEN_REQUESTS, StudyFile::openRequests);
        } else {
            window =
                    in.one("window", window, "a time such as 30s, or least and requests", StudyFile::longerThanNothing);
        }
        Duration least = named.warmUpLeast();
        Duration most = named.warmUpMost();
        Value warmUp = fields.get("warm-up");
        if (warmUp != null && warmUp.isMapping()) {
            Field edges = new Field(warmUp.fields(StudyKeys.EDGES.names()));
            least = edges.one("least", least, "a time such as 1s", Quantity::duration);
            most = edges.one(
                    "most", most.compareTo(least) < 0 ? least : most, "a time such as 10s", Quantity::duration);
        } else if (warmUp != null) {
            least = in.one("warm-up", least, "a time such as 10s, or least and most", Quantity::duration);
            most = least;
        }
        if (warmUp != null && most.compareTo(least) < 0) {
            warmUp.wrong(
                    "most " + Quantity.text(most) + " (expected: not under the least, " + Quantity.text(least) + ")");
        }
        boolean isNamed = rehearsal.equals(named.rehearsal())
                && rehearsalLeast.equals(named.rehearsalLeast())
                && window.equals(named.window())
                && openRequests == named.openRequests()
                && least.equals(named.warmUpLeast())
                && most.equals(named.warmUpMost());
        return isNamed
                ? named
                : new Effort(
                        "own",
                        restarts.orElse(named.restarts()),
                        rehearsalLeast,
                        rehearsal,
                        least,
                        most,
                        window,
                        openRequests);
    }

    private static int openRequests(String text) {
        int requests = Integer.parseInt(text);
        if (requests < 0 || requests > Study.MAX_OPEN_REQUESTS) {
            throw new NumberFormatException(text);
        }
        return requests;
    }

    private static int restarts(String text) {
        int restarts = Integer.parseInt(text);
        if (restarts < 1 || restarts > Study.MAX_RESTARTS) {
            throw new BadInput("", text, "1 to " + Study.MAX_RESTARTS);
        }
        return restarts;
    }

    private static boolean trueOrFalse(String text) {
        if (!text.equals("true") && !text.equals("false")) {
            throw new BadInput("", text, "true or false");
        }
        return text.equals("true");
    }

    private static Duration longerThanNothing(String text) {
        Duration duration = Quantity.duration(text);
        if (!duration.isPositive()) {
            throw new BadInput("", text, "longer than nothing");
        }
        return duration;
    }

    private static Optional<Target> target(Value value, Mistakes mistakes) {
        int before = mistakes.count();
        Map<String, Value> fields = value.fields(StudyKeys.TARGET.names());
        Optional<Double> rate = new Field(fields)
                .one(
                        "rate",
                        Optional.<Double>empty(),
                        "requests a second, such as 200",
                        text -> Optional.of(Target.parseRate("rate", text)));
        List<Target.Condition> conditions = new ArrayList<>();
        for (Target.Figure figure : Target.Figure.values()) {
            Value own = fields.get(figure.key());
            if (own != null) {
                own.read(figure.expected(), text -> Target.Condition.parse(figure.key(), figure, text))
                        .ifPresent(conditions::add);
            }
        }
        if (mistakes.count() > before) {
            return Optional.empty();
        }
        try {
            return Optional.of(new Target(rate, conditions));
        } catch (BadInput e) {
            value.wrong(e);
            return Optional.empty();
        }
    }

    private Limits limits(Value value) {
        Map<String, Value> fields = value.fields(StudyKeys.LIMITS.names());
        Limits.Share each = share(fields);
        Map<String, Limits.Share> services = new LinkedHashMap<>();
        Optional.ofNullable(fields.get("services"))
                .ifPresent(own -> own.fields(Set.of())
                        .forEach((name, share) -> services.put(name, share(share.fields(StudyKeys.SHARE.names())))));
        Map<String, List<String>> hosts = new LinkedHashMap<>();
        Optional.ofNullable(fields.get("hosts"))
                .ifPresent(all -> all.fields(Set.of()).forEach((host, on) -> {
                    List<String> names = new ArrayList<>();
                    on.items("services of the topology")
                            .forEach(s -> s.text("a service").ifPresent(names::add));
                    hosts.put(host, names);
                }));
        Field in = new Field(fields);
        Optional<Limits.Bandwidth> bandwidth = in.one(
                "bandwidth",
                Optional.<Limits.Bandwidth>empty(),
                "a rate such as 1Mbit/s",
                text -> Optional.of(new Limits.Bandwidth(Quantity.bitsPerSecond(text))));
        Optional<Limits.Proxy> proxy = Optional.ofNullable(fields.get("proxy")).flatMap(this::proxy);
        try {
            return new Limits(each, services, hosts, bandwidth, proxy);
        } catch (BadInput e) {
            value.wrong(e);
            return Limits.NONE;
        }
    }

    private static Limits.Share share(Map<String, Value> fields) {
        Field in = new Field(fields);
        Limits.Share cores = in.one(
                "cores",
                Limits.Share.ALL,
                "a number such as 1 or 0.5",
                text -> new Limits.Share(Optional.of(Double.parseDouble(text)), Optional.empty()));
        Limits.Share memory = in.one(
                "memory",
                Limits.Share.ALL,
                "a size such as 512MB",
                text -> new Limits.Share(Optional.empty(), Optional.of(Quantity.bytes(text))));
        return new Limits.Share(cores.cores(), memory.memoryBytes());
    }

    private Optional<Limits.Proxy> proxy(Value value) {
        Field in = new Field(value.fields(StudyKeys.PROXY.names()));
        Duration delay = in.one("delay", Duration.ZERO, "a time such as 10ms", Quantity::duration);
        Optional<Long> rate = in.one(
                "bytes-per-second",
                Optional.<Long>empty(),
                "a whole number",
                text -> Optional.of(Long.parseLong(text.replace("_", ""))));
        Optional<Duration> cut = in.one(
                "cut-every",
                Optional.<Duration>empty(),
                "a time such as 5s",
                text -> Optional.of(Quantity.duration(text)));
        try {
            return Optional.of(new Limits.Proxy(delay, rate, cut));
        } catch (BadInput e) {
            value.wrong(e);
            return Optional.empty();
        }
    }
}
