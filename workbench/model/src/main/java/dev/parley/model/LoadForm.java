package dev.parley.model;

import dev.parley.model.Load.Arrivals;
import dev.parley.model.Load.ClientUse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The description of one form of load. The reader of short forms, the reader of studies, the JSON Schema and the help
 * are all made of it, and whoever asks what a load is asks its traits. Each form has its description in {@link Load},
 * beside its data.
 */
public final class LoadForm {
    static final Parameter ARRIVALS =
            new Parameter("arrivals", Kind.ARRIVALS, "how arrivals are spread over time").or("even");
    static final Parameter CLIENT = new Parameter("client", Kind.CLIENT, "whose client requests go over").or("shared");

    /**
     * In a short form, what stands in brackets may be left out, and what stands in braces is the value of a parameter.
     */
    private static final Pattern TOKEN = Pattern.compile("\\{([a-z-]+)\\}|\\[|\\]|[^\\[\\]{}]+");

    private final String name;
    private final String shortForm;
    private final Pattern written;
    private final String meaning;
    private final String source;
    private final List<Parameter> parameters;
    private final List<String> examples;
    private final Set<Trait> traits;
    private final Function<Given, List<Load>> maker;

    /** What a load is. */
    enum Trait {
        /** Latency runs from the intended send time, and no request waits for the reply to another user's. */
        OPEN,
        /** It asks for the same throughout, so that latency has a level to be on. */
        STEADY,
        /** It holds one number of clients or requests a second after the other, and each is told on its own. */
        STEPPED,
        /** It speaks of users, who come, carry out their scenario and leave. */
        OF_USERS,
        /** It is over when its work is done, however long that takes. */
        COUNTED,
        /** It is a number of requests, the same for whoever answers them fast or slowly. */
        OF_ONE_NUMBER,
        /** What it asks for next hangs on how the last went. */
        SEARCH
    }

    /** What the value of a parameter is. */
    public enum Kind {
        COUNT("a whole number"),
        NUMBER("a number"),
        TIME("a time such as 30s, at most " + Study.MAX_TIME.toHours() + "h"),
        ARRIVALS("even or poisson"),
        CLIENT("shared, per-user or per-call"),
        /** So many more, or times as many, of what is counted. */
        COUNT_STEP("so many more, such as 10, or times as many, such as x2"),
        /** So much more, or times as much, of a rate. */
        RATE_STEP("so much more, such as 0.5, or times as much, such as x2"),
        RANGE("a range such as 10-990+100, from the fewest to the most");

        private final String expected;

        Kind(String expected) {
            this.expected = expected;
        }

        /** What is expected, as an error says it. */
        public String expected() {
            return expected;
        }

        /** All values that there are; empty where they cannot be listed. */
        public List<String> choices() {
            return switch (this) {
                case ARRIVALS -> texts(Arrivals.values());
                case CLIENT -> texts(ClientUse.values());
                case COUNT, NUMBER, TIME, COUNT_STEP, RATE_STEP, RANGE -> List.of();
            };
        }

        /** @throws BadInput without a place, if the text is no such value */
        public Object read(String text) {
            try {
                return switch (this) {
                    case COUNT -> whole(text);
                    case NUMBER -> number(text);
                    case TIME -> Quantity.duration(text);
                    case ARRIVALS -> one(Arrivals.values(), text);
                    case CLIENT -> one(ClientUse.values(), text);
                    case COUNT_STEP -> growth(text, Kind::whole);
                    case RATE_STEP -> growth(text, Kind::number);
                    case RANGE -> range(text);
                };
            } catch (NumberFormatException e) {
                throw new BadInput("", text, expected);
            }
        }

        /** In a short form a step has its sign, {@code +10} or {@code x2}. */
        private String pattern() {
            return this == COUNT_STEP || this == RATE_STEP ? "[+x][^:]+" : "[^:]+?";
        }

        private static List<String> texts(Enum<?>[] values) {
            return Arrays.stream(values).map(LoadParameters::text).toList();
        }

        private static <E extends Enum<E>> E one(E[] values, String text) {
            String wanted = text.toLowerCase(Locale.ROOT).replace('_', '-');
            for (E value : values) {
                if (LoadParameters.text(value).equals(wanted)) {
                    return value;
                }
            }
            throw new NumberFormatException(text);
        }

        private static Integer whole(String text) {
            return Integer.valueOf(text.replace("_", ""));
        }

        private static Double number(String text) {
            return Double.valueOf(text.replace("_", ""));
        }

        private static Growth growth(String text, Function<String, Number> reader) {
            boolean isTimes = text.startsWith("x");
            double value = reader.apply(isTimes || text.startsWith("+") ? text.substring(1) : text)
                    .doubleValue();
            return isTimes ? new Growth(0, value) : new Growth(value, 1);
        }

        private static Load.Range range(String text) {
            String[] sides = text.split("[-+]", -1);
            int from = whole(sides[0]);
            if (sides.length == 1) {
                return new Load.Range(from, from, 1);
            }
            if (sides.length != 3) {
                throw new NumberFormatException(text);
            }
            return new Load.Range(from, whole(sides[1]), whole(sides[2]));
        }
    }

    /**
     * One parameter of a load.
     *
     * @param meaning what is counted, measured or chosen; no sentence
     * @param standard stands for it where it is left out: a value, or the name of the parameter that has the same value
     * @param isNeeded whether a study has to name it
     */
    public record Parameter(String name, Kind kind, String meaning, String standard, boolean isNeeded) {
        Parameter(String name, Kind kind, String meaning) {
            this(name, kind, meaning, "", true);
        }

        /** The same, which may be left out. */
        Parameter or(String value) {
            return new Parameter(name, kind, meaning, value, false);
        }

        /** The same, which the short form may leave out, and a study may not. */
        Parameter orInShort(String value) {
            return new Parameter(name, kind, meaning, value, true);
        }
    }

    /** By how much a step is more than the one before: {@code more}, or {@code times} as much. */
    record Growth(double more, double times) {}

    /** The values of all parameters of a load, by name. */
    record Given(Map<String, Object> values) {
        int count(String parameter) {
            return (Integer) value(parameter);
        }

        double number(String parameter) {
            return (Double) value(parameter);
        }

        Duration time(String parameter) {
            return (Duration) value(parameter);
        }

        Growth growth(String parameter) {
            return (Growth) value(parameter);
        }

        Load.Range range(String parameter) {
            return (Load.Range) value(parameter);
        }

        Arrivals arrivals() {
            return (Arrivals) value(LoadForm.ARRIVALS.name());
        }

        ClientUse client() {
            return (ClientUse) value(LoadForm.CLIENT.name());
        }

        private Object value(String parameter) {
            Object value = values.get(parameter);
            if (value == null) {
                throw new IllegalArgumentException(parameter + " (expected: one of " + values.keySet() + ")");
            }
            return value;
        }
    }

    private LoadForm(
            String shortForm,
            String meaning,
            String source,
            List<Parameter> parameters,
            List<String> examples,
            Set<Trait> traits,
            Function<Given, List<Load>> maker) {
        this.name = shortForm.split(":", 2)[0];
        this.shortForm = shortForm;
        this.written = pattern(shortForm, parameters);
        this.meaning = meaning;
        this.source = source;
        this.parameters = List.copyOf(parameters);
        this.examples = List.copyOf(examples);
        this.traits = Set.copyOf(traits);
        this.maker = maker;
    }

    /**
     * The form of one load.
     *
     * @param shortForm such as <code>users:{from}[-{to}]:{length}</code>, with all parameters in their order
     * @param meaning one sentence
     * @param source what it was taken from; empty if nothing
     * @param examples of its short form, the most common one first
     */
    static LoadForm of(
            String shortForm,
            String meaning,
            String source,
            List<Parameter> parameters,
            List<String> examples,
            Set<Trait> traits,
            Function<Given, Load> maker) {
        return new LoadForm(
                shortForm, meaning, source, parameters, examples, traits, given -> List.of(maker.apply(given)));
    }

    /** A form that stands for several loads. */
    static LoadForm ofSeveral(
            String shortForm,
            String meaning,
            String source,
            List<Parameter> parameters,
            List<String> examples,
            Function<Given, List<Load>> maker) {
        return new LoadForm(shortForm, meaning, source, parameters, examples, Set.of(), maker);
    }

    private static Pattern pattern(String shortForm, List<Parameter> parameters) {
        StringBuilder pattern = new StringBuilder();
        List<String> told = new ArrayList<>();
        Matcher token = TOKEN.matcher(shortForm);
        while (token.find()) {
            String parameter = token.group(1);
            if (parameter == null) {
                String literal = switch (token.group()) {
                    case "[" -> "(?:";
                    case "]" -> ")?";
                    default -> Pattern.quote(token.group());
                };
                pattern.append(literal);
            } else {
                told.add(parameter);
                parameters.stream()
                        .filter(one -> one.name().equals(parameter))
                        .forEach(one ->
                                pattern.append('(').append(one.kind().pattern()).append(')'));
            }
        }
        List<String> names = parameters.stream().map(Parameter::name).toList();
        if (!told.equals(names)) {
            throw new IllegalArgumentException(shortForm + " (expected: the parameters " + names + " in this order)");
        }
        return Pattern.compile(pattern.toString());
    }

    /** First word of the short form, and the key in a study. */
    public String name() {
        return name;
    }

    public String meaning() {
        return meaning;
    }

    /** The paper or document that it was taken from; empty if none. */
    public String source() {
        return source;
    }

    public List<Parameter> parameters() {
        return parameters;
    }

    public List<String> examples() {
        return examples;
    }

    boolean is(Trait trait) {
        return traits.contains(trait);
    }

    /** The most common short form of each load. */
    public static String shortForms() {
        return Load.forms().stream().map(form -> form.examples.getFirst()).collect(Collectors.joining(", "));
    }

    /**
     * The load with these parameters; several for a grid.
     *
     * @param given value by name, as {@link Kind#read} gives it; for what is not there its standard stands
     * @throws BadInput if there is no such load
     */
    public List<Load> loads(Map<String, Object> given) {
        Map<String, Object> values = new LinkedHashMap<>(given);
        for (Parameter parameter : parameters) {
            if (!values.containsKey(parameter.name())) {
                Object other = values.get(parameter.standard());
                values.put(parameter.name(), other == null ? parameter.kind().read(parameter.standard()) : other);
            }
        }
        return maker.apply(new Given(values));
    }

    /** Reads the short form of any load. */
    static List<Load> read(String text) {
        String given = text.strip();
        String name = given.split(":", 2)[0];
        for (LoadForm form : Load.forms()) {
            if (form.name.equals(name)) {
                return form.parse(given);
            }
        }
        List<String> names = Load.forms().stream().map(LoadForm::name).toList();
        throw new BadInput(
                "load",
                text,
                "one of " + shortForms()
                        + Nearest.of(name, names)
                                .map(near -> "; did you mean " + near + "?")
                                .orElse(""));
    }

    private List<Load> parse(String text) {
        Matcher matcher = written.matcher(text);
        if (!matcher.matches()) {
            throw new BadInput("load", text, shortForm + ", for example " + examples.getFirst());
        }
        Map<String, Object> given = new LinkedHashMap<>();
        for (int i = 0; i < parameters.size(); i++) {
            Parameter parameter = parameters.get(i);
            String value = matcher.group(i + 1);
            if (value != null) {
                given.put(parameter.name(), read(parameter, value, text));
            }
        }
        return loads(given);
    }

    private Object read(Parameter parameter, String value, String text) {
        try {
            return parameter.kind().read(value);
        } catch (BadInput e) {
            throw new BadInput(
                    "load",
                    text,
                    shortForm + " where " + parameter.name() + " is "
                            + parameter.kind().expected() + ", for example " + examples.getFirst());
        }
    }
}
