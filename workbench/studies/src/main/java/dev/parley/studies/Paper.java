package dev.parley.studies;

import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.Study;
import dev.parley.spi.Work;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;

/**
 * A published experiment as data: a folder with {@code paper.yaml}, the figures and the claims as CSV, and a study file for each part. The
 * five that come with the workbench are resources; any other folder of the same form is read from disk.
 *
 * @param name short, as typed
 * @param title of the paper
 * @param published journal or conference, volume, pages
 * @param doi empty where there is none
 * @param parts in the order in which they are carried out
 * @param conditions loads that a short form in figures and claims stands for; a figure of a condition with several loads is shown beside
 *     each of them
 * @param metrics what a metric of the paper is in the workbench's own, as an expression
 * @param curves charts that it prints of a metric against a growing number
 * @param criteria by which it holds technologies against each other
 * @param isObserved whether its services wrote a log line a call, and so ours do
 */
public record Paper(
        String name,
        String title,
        String authors,
        int year,
        String published,
        String doi,
        List<Part> parts,
        Map<String, List<Load>> conditions,
        Map<String, String> metrics,
        List<Curve> curves,
        List<Criterion> criteria,
        boolean isObserved,
        List<PublishedFigure> figures,
        List<Claim> claims) {

    /** Names of those that come with the workbench, in the order in which they are carried out. */
    public static final List<String> NAMES = List.of("kazanavicius", "weerasinghe", "niswar", "iwanowski", "zhang");

    private static final Set<String> KEYS = Set.of(
            "paper",
            "title",
            "authors",
            "year",
            "published",
            "doi",
            "conditions",
            "metrics",
            "curves",
            "criteria",
            "observed",
            "parts");

    /**
     * One of a paper's experiments, or one way of reading it.
     *
     * @param about what it measures, and where the paper leaves something open how it was read
     * @param text a study file, with the published plan
     * @param bounds what becomes of it on a machine that cannot keep the study's limits
     */
    public record Part(String name, String place, String about, String file, String text, Bounds bounds) {
        private Map<String, Object> keys() {
            return Paper.map(file, text);
        }

        /** Technologies that the paper measured. */
        public List<String> technologies() {
            return Paper.list(keys().get("technologies"));
        }

        public String work() {
            return String.valueOf(keys().getOrDefault("work", "messages"));
        }

        /** What of the published plan cannot be measured here: technologies, and the work. */
        public List<String> missing(List<String> available) {
            List<String> missing = new ArrayList<>(technologies());
            missing.removeAll(available);
            if (!hasWork()) {
                missing.add("work " + work());
            }
            return missing;
        }

        private boolean hasWork() {
            try {
                return Work.named(work()).name().equals(work());
            } catch (BadInput e) {
                return false;
            }
        }

        /** The published plan without what is missing here; empty where nothing is left of it. */
        public Optional<Study> study(List<String> available) {
            Set<String> known = new LinkedHashSet<>(available);
            known.addAll(technologies());
            if (!hasWork() || technologies().stream().noneMatch(available::contains)) {
                return Optional.empty();
            }
            Study all = StudyFile.parse(file, text, List.copyOf(known));
            return Optional.of(all.of(
                    all.technologies().stream().filter(available::contains).toList()));
        }

        public Optional<Scale.Scaled> study(List<String> available, Scale scale) {
            return study(available).map(scale::of);
        }
    }

    /** What a part's limits are to it. */
    public enum Bounds {
        /** Without them it would be another part over again: it is left out, and the page says why. */
        NEEDED,
        /** The paper's test bed: without them it is measured all the same, and the page says so. */
        WANTED;

        static Bounds read(String place, Object value) {
            return switch (String.valueOf(value)) {
                case "needed" -> NEEDED;
                case "wanted" -> WANTED;
                default -> throw new BadInput(place, value, "needed or wanted");
            };
        }
    }

    public Paper {
        parts = List.copyOf(parts);
        conditions = Map.copyOf(conditions);
        metrics = Map.copyOf(metrics);
        curves = List.copyOf(curves);
        criteria = List.copyOf(criteria);
        figures = List.copyOf(figures);
        claims = List.copyOf(claims);
        if (parts.stream().map(Part::name).distinct().count() < parts.size()) {
            throw new BadInput(name + ": parts", parts.stream().map(Part::name).toList(), "names, each once");
        }
        if (claims.stream().map(Claim::id).distinct().count() < claims.size()) {
            throw new BadInput(name + ": claims", claims.stream().map(Claim::id).toList(), "ids, each once");
        }
        for (Claim claim : claims) {
            if (!claim.beside().isEmpty() && claims.stream().noneMatch(c -> c.id().equals(claim.beside()))) {
                throw new BadInput(name + ": claims: beside", claim.beside(), "the id of one of the claims");
            }
        }
    }

    /** One that comes with the workbench. */
    public static Paper named(String name) {
        if (!NAMES.contains(name)) {
            throw BadInput.near(
                    "NAME", name, NAMES, "one of " + String.join(", ", NAMES) + ", all, or a folder with a paper.yaml");
        }
        return read(name, file -> resource(name + "/" + file));
    }

    /** Any other, from its folder. */
    public static Paper read(Path folder) {
        return read(folder.toString(), file -> {
            Path path = folder.resolve(file);
            try {
                return Files.readString(path);
            } catch (IOException e) {
                throw new BadInput(
                        "NAME", path + ", which cannot be read", "a folder with a paper.yaml and what it names");
            }
        });
    }

    private static Paper read(String folder, Function<String, String> files) {
        String file = folder + "/paper.yaml";
        Map<String, Object> keys = map(file, files.apply("paper.yaml"));
        for (String key : keys.keySet()) {
            if (!KEYS.contains(key)) {
                throw BadInput.oneOf(file, key, new TreeSet<>(KEYS));
            }
        }
        List<Part> parts = new ArrayList<>();
        if (keys.get("parts") instanceof List<?> given) {
            for (Object one : given) {
                if (!(one instanceof Map<?, ?> part)) {
                    throw new BadInput(file + ": parts", one, "part, place and about of each");
                }
                String name = String.valueOf(part.get("part"));
                String study = name + ".yaml";
                parts.add(new Part(
                        name,
                        text(file + ": parts: place", part.get("place")),
                        text(file + ": parts: about", part.get("about")),
                        folder + "/" + study,
                        files.apply(study),
                        part.get("limits") == null
                                ? Bounds.NEEDED
                                : Bounds.read(file + ": parts: limits", part.get("limits"))));
            }
        }
        if (parts.isEmpty()) {
            throw new BadInput(file + ": parts", "none", "at least one");
        }
        Map<String, List<Load>> conditions = new LinkedHashMap<>();
        section(file, keys, "conditions")
                .forEach((label, loads) -> conditions.put(
                        label, list(loads).stream().map(Load::parse).toList()));
        Map<String, String> metrics = section(file, keys, "metrics").entrySet().stream()
                .collect(Collectors.toMap(Map.Entry::getKey, e -> String.valueOf(e.getValue())));
        metrics.forEach((metric, meaning) -> ExpressionParser.figure(file + ": metrics: " + metric, meaning));
        return new Paper(
                text(file + ": paper", keys.get("paper")),
                text(file + ": title", keys.get("title")),
                text(file + ": authors", keys.get("authors")),
                year(file + ": year", keys.get("year")),
                text(file + ": published", keys.get("published")),
                String.valueOf(keys.getOrDefault("doi", "")),
                parts,
                conditions,
                metrics,
                each(file, keys, "curves").entrySet().stream()
                        .map(one -> Curve.read(one.getKey(), one.getValue()))
                        .toList(),
                each(file, keys, "criteria").entrySet().stream()
                        .map(one -> Criterion.read(one.getKey(), one.getValue()))
                        .toList(),
                Boolean.TRUE.equals(keys.get("observed")),
                PublishedFigure.read(folder + "/figures.csv", files.apply("figures.csv")),
                Claim.read(folder + "/claims.csv", files.apply("claims.csv")));
    }

    /** Published loads that a short form stands for in a part: those it is declared for, else those whose written form begins with it. */
    public List<Load> loads(String shortForm, Study published) {
        List<Load> declared = conditions.getOrDefault(shortForm, List.of());
        String start = shortForm.startsWith("grid:") ? "rounds:" + shortForm.substring(5) : shortForm;
        return published.loads().stream()
                .filter(load -> declared.contains(load)
                        || load.toString().equals(start)
                        || load.toString().startsWith(start + ":"))
                .toList();
    }

    /** What the paper's metric is in the workbench's own, as a query asks for it: itself where it is one of them. */
    public Measured measured(FigureQuery query, Function<FigureQuery, Measured> measurements) {
        return Expression.figure(inOwnMetrics(query), measurements);
    }

    /** A statement that asks for the workbench's own metrics in place of the paper's. */
    Expression.Statement inOwnMetrics(Expression.Statement statement) {
        return Expression.rewritten(statement, this::inOwnMetrics);
    }

    private Expression.Figure inOwnMetrics(FigureQuery query) {
        String meaning = metrics.get(query.metric());
        if (meaning == null) {
            return new Expression.Of(query);
        }
        Map<String, String> pair = new LinkedHashMap<>();
        String[] technologies = query.condition("technology").split("/", 2);
        if (technologies.length == 2) {
            pair.put("first", technologies[0]);
            pair.put("second", technologies[1]);
        }
        return Expression.rewritten(
                Expression.bound(ExpressionParser.figure(query.metric(), meaning), pair),
                inner -> inOwnMetrics(inner.within(query)));
    }

    /** What a criterion comes to for one technology, from whatever figures there are. */
    public Measured measured(Criterion criterion, String technology, Function<FigureQuery, Measured> measurements) {
        FigureQuery of = new FigureQuery(criterion.name(), Map.of("technology", technology));
        return Expression.figure(
                ExpressionParser.figure(criterion.name(), criterion.figure()),
                inner -> measured(inner.within(of), measurements));
    }

    /** The same from the paper's own figures, in its own units. */
    public Measured published(Criterion criterion, String technology) {
        FigureQuery of = new FigureQuery(criterion.name(), Map.of("technology", technology));
        return Expression.figure(
                ExpressionParser.figure(criterion.name(), criterion.figure()), inner -> published(inner.within(of)));
    }

    /** The paper's own figure that a query asks for, in its unit. */
    private Measured published(FigureQuery query) {
        return figures.stream()
                .filter(f -> f.metric().equals(query.metric())
                        && !f.isDrawn()
                        && query.condition("technology").equals(f.technology())
                        && isOrAny(query.condition("message"), f.message())
                        && isOrAny(query.condition("load"), f.load())
                        && isOrAny(query.condition("topology"), f.topology())
                        && isOrAny(query.condition("subject"), f.subject()))
                .findFirst()
                .map(f -> Measured.number(f.value()))
                .orElse(Measured.missing("not published: " + query));
    }

    private static boolean isOrAny(String wanted, String is) {
        return wanted.isEmpty() || is.isEmpty() || wanted.equals(is);
    }

    /** As a list of references has it. */
    public String citation() {
        return authors + " (" + year + "): " + title + ". " + published + (doi.isEmpty() ? "." : ". doi:" + doi);
    }

    private static Map<String, Object> section(String file, Map<String, Object> keys, String key) {
        Map<String, Object> section = new LinkedHashMap<>();
        Object given = keys.get(key);
        if (given == null) {
            return section;
        }
        if (!(given instanceof Map<?, ?> map)) {
            throw new BadInput(file + ": " + key, given, "names, each with its meaning");
        }
        map.forEach((name, value) -> section.put(String.valueOf(name), value));
        return section;
    }

    /** The members of a list, each under the place where it stands. */
    private static Map<String, Object> each(String file, Map<String, Object> keys, String key) {
        Map<String, Object> each = new LinkedHashMap<>();
        Object given = keys.get(key);
        if (given == null) {
            return each;
        }
        if (!(given instanceof List<?> list)) {
            throw new BadInput(file + ": " + key, given, "a list");
        }
        for (Object one : list) {
            each.put(file + ": " + key + "[" + each.size() + "]", one);
        }
        return each;
    }

    private static Map<String, Object> map(String file, String text) {
        try {
            Object read = new org.snakeyaml.engine.v2.api.Load(
                            LoadSettings.builder().setLabel(file).build())
                    .loadFromString(text);
            if (read instanceof Map<?, ?> map) {
                Map<String, Object> keys = new LinkedHashMap<>();
                map.forEach((key, value) -> keys.put(String.valueOf(key), value));
                return keys;
            }
            throw new BadInput(file, "no mapping", "keys and values in YAML");
        } catch (YamlEngineException e) {
            throw new BadInput(file, String.valueOf(e.getMessage()).replace('\n', ' '), "YAML");
        }
    }

    private static List<String> list(@Nullable Object value) {
        return value instanceof List<?> many
                ? many.stream().map(String::valueOf).toList()
                : value == null ? List.of() : List.of(String.valueOf(value));
    }

    private static String text(String place, @Nullable Object value) {
        if (value == null || String.valueOf(value).isBlank()) {
            throw new BadInput(place, "none", "a text");
        }
        return String.valueOf(value).strip();
    }

    private static int year(String place, @Nullable Object value) {
        String year = text(place, value);
        try {
            return Integer.parseInt(year);
        } catch (NumberFormatException e) {
            throw new BadInput(place, year, "a whole number");
        }
    }

    private static String resource(String name) {
        try (InputStream in = Paper.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException(name + " is not in the jar");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
