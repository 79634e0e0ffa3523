package dev.parley.studies;

import dev.parley.model.Launcher;
import dev.parley.model.Load;
import dev.parley.model.LoadForm;
import dev.parley.model.LoadForm.Parameter;
import dev.parley.model.Quantity;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Every key of a study, with the form of its value and what it means. {@link StudyFile} reads these keys and no others,
 * and the JSON Schema is written from them; the keys of loads come from their descriptions. A form is a fragment of
 * JSON Schema, draft 2020-12.
 */
final class StudyKeys {
    private static final Map<String, Object> TIME = defined("time");
    private static final Map<String, Object> WHOLE = defined("whole");
    private static final Map<String, Object> NAME = defined("name");

    static final Mapping EDGES = mapping(key("least", TIME, ""), key("most", TIME, ""));

    static final Mapping WINDOW = mapping(
            key("least", TIME, ""),
            key("requests", map("type", "integer", "minimum", 0, "maximum", Study.MAX_OPEN_REQUESTS), ""));

    static final Mapping SHARE = mapping(
            key("cores", defined("number"), "Processor time, such as 1 or 0.5."),
            key("memory", defined("size"), "Resident memory, heap and all else."));

    static final Mapping PROXY = mapping(
            key("delay", TIME, "Added each way. Default: 0."),
            key("bytes-per-second", WHOLE, "On each connection, each way."),
            key("cut-every", TIME, "A connection is cut after this time."));

    static final Mapping LIMITS = SHARE.and(
            key(
                    "services",
                    map("type", "object", "additionalProperties", SHARE.schema()),
                    "Shares of single services."),
            key("hosts", hosts(), "Which services stand on which host of this machine; at most 64."),
            key(
                    "bandwidth",
                    text("^[0-9]+(\\.[0-9]+)? ?(k|M|G)bit/s$"),
                    "Of each host's link, each way. Without hosts, each service is a host."),
            key("proxy", PROXY.schema(), "In front of every service."));

    static final Mapping TARGET = mapping(
            key("rate", defined("number"), "Requests a second of an open load among the loads."),
            key("p50", defined("latency"), "The median response time is at most this."),
            key("p95", defined("latency"), "The 95th percentile of response time is at most this."),
            key("p99", defined("latency"), "The 99th percentile of response time is at most this."),
            key("p999", defined("latency"), "The 99.9th percentile of response time is at most this."),
            key(
                    "success",
                    text("^[0-9]+(\\.[0-9]+)? ?%$"),
                    "At least this share of requests is answered rightly within success-within."));

    static final Mapping MORE =
            mapping(needed("messages", defined("messages"), ""), needed("loads", defined("loads"), ""));

    static final Mapping RANGE = mapping(needed("from", WHOLE, ""), key("to", WHOLE, ""), key("step", WHOLE, ""));

    static final Mapping STUDY = mapping(
            key("study", map("type", "string"), "What a reader calls it; one line."),
            needed(
                    "technologies",
                    oneOrMore(NAME),
                    "Names as " + Launcher.command("technologies") + " lists them, or all."),
            key("topologies", oneOrMore(defined("topology")), "Who calls whom. Default: line:5."),
            key("work", NAME, "What the services do. Default: messages."),
            needed("messages", defined("messages"), ""),
            needed("loads", defined("loads"), ""),
            key(
                    "more",
                    map("type", "array", "minItems", 1, "items", MORE.schema()),
                    "Further messages with loads of their own, sent to the same services after those above."),
            key(
                    "effort",
                    map("enum", List.of(Effort.QUICK.name(), Effort.STANDARD.name())),
                    "Restarts, rehearsal, warm-up and window at once: " + told(Effort.QUICK) + "; "
                            + told(Effort.STANDARD) + ". Default: standard."),
            key(
                    "restarts",
                    WHOLE,
                    "Fresh starts of the services, 1 to " + Study.MAX_RESTARTS + ". Default: of the effort."),
            key(
                    "rehearsal",
                    oneOf(TIME, EDGES.schema()),
                    "Under load, after each boot, until the services are warm: what it may take at the most. Default:"
                            + " of the effort."),
            key(
                    "warm-up",
                    oneOf(TIME, EDGES.schema()),
                    "Before each window, until latency is stable. Default: of the effort."),
            key(
                    "window",
                    oneOf(TIME, WINDOW.schema()),
                    "What is measured; a load with a length of its own has that, and an open load goes on until so many"
                            + " requests were due. Default: of the effort."),
            key("success-within", TIME, "A reply counts only within this time. Default: 1s."),
            key(
                    "call-limit",
                    TIME,
                    "A call without an answer has failed after this time, at most 30m. Default: success-within, but 5s"
                            + " or more, and 60s or less."),
            key("seed", map("type", List.of("integer", "string")), "Of order and messages. Default: 1."),
            key(
                    "alone",
                    map("type", "boolean"),
                    "Whether services are started anew for each message, and carry no other. Default: false."),
            key(
                    "target",
                    atLeastOne(TARGET),
                    "What each technology meets or does not, under a load that stays the same: all of it has to hold."
                            + " Default: none."),
            key("limits", LIMITS.schema(), "On the services, their hosts and the links between them. Default: none."));

    private StudyKeys() {}

    /** One key of a mapping, and the form of its value. */
    private record Key(String name, Map<String, Object> form, boolean isNeeded) {}

    /**
     * The keys of a mapping.
     *
     * @param forms of values by key, in the order in which keys are told
     * @param needed keys that must be there
     */
    record Mapping(Map<String, Map<String, Object>> forms, Set<String> needed) {
        Mapping {
            forms = Collections.unmodifiableMap(new LinkedHashMap<>(forms));
            needed = Collections.unmodifiableSet(new LinkedHashSet<>(needed));
        }

        Set<String> names() {
            return forms.keySet();
        }

        private Mapping and(Key... keys) {
            Map<String, Map<String, Object>> all = new LinkedHashMap<>(forms);
            Set<String> allNeeded = new LinkedHashSet<>(needed);
            for (Key key : keys) {
                all.put(key.name(), key.form());
                if (key.isNeeded()) {
                    allNeeded.add(key.name());
                }
            }
            return new Mapping(all, allNeeded);
        }

        /** An object with these keys and no others. */
        Map<String, Object> schema() {
            Map<String, Object> schema = map("type", "object", "additionalProperties", false);
            if (!needed.isEmpty()) {
                schema.put("required", needed);
            }
            schema.put("properties", forms);
            return schema;
        }
    }

    /** The parameters of a form of load. */
    static Mapping parameters(LoadForm form) {
        Mapping parameters = mapping();
        for (Parameter parameter : form.parameters()) {
            parameters = parameters.and(new Key(parameter.name(), form(parameter), parameter.isNeeded()));
        }
        return parameters;
    }

    /** The JSON Schema of a study. */
    static Map<String, Object> schema() {
        Map<String, Object> schema = map(
                "$schema",
                "https://json-schema.org/draft/2020-12/schema",
                "title",
                "A study for Parley",
                "description",
                "Technologies side by side on topologies, messages and loads. Printed by "
                        + Launcher.command("validate", "--schema") + ".");
        schema.putAll(STUDY.schema());
        schema.put("$defs", definitions());
        return schema;
    }

    private static Map<String, Object> definitions() {
        Map<String, Object> message = map("type", "string");
        return map(
                "time",
                oneOf(text("^[0-9]+(\\.[0-9]+)? ?(ms|s|m|h)$"), map("const", 0)),
                "latency",
                text("^[0-9]+(\\.[0-9]+)? ?(ms|s)$"),
                "size",
                text("^[0-9]+(\\.[0-9]+)? ?(kB|MB|GB|KiB|MiB|GiB)$"),
                "whole",
                map("type", "integer", "minimum", 1),
                "number",
                map("type", "number", "exclusiveMinimum", 0),
                "name",
                text("^[a-z][a-z0-9-]*$"),
                "topology",
                text("^(line:[0-9]+|star(:[0-9]+)?|tree|pair|graph:.+)$"),
                "range",
                oneOf(WHOLE, text("^[0-9]+-[0-9]+[+][0-9]+$"), RANGE.schema()),
                "load",
                load(),
                "messages",
                described(
                        oneOf(message, list(oneOf(message, list(message)))),
                        "What is sent: text:1000, types:100; several messages are a scenario."),
                "loads",
                described(oneOrMore(defined("load")), "How requests are offered."));
    }

    private static Map<String, Object> load() {
        Map<String, Object> byName = new LinkedHashMap<>();
        for (LoadForm form : Load.forms()) {
            byName.put(form.name(), described(parameters(form).schema(), form.meaning()));
        }
        return oneOf(
                text("^(" + String.join("|", byName.keySet()) + "):.+$"),
                map(
                        "type",
                        "object",
                        "minProperties",
                        1,
                        "maxProperties",
                        1,
                        "additionalProperties",
                        false,
                        "properties",
                        byName));
    }

    private static Map<String, Object> form(Parameter parameter) {
        Map<String, Object> form = switch (parameter.kind()) {
            case COUNT -> WHOLE;
            case NUMBER -> defined("number");
            case TIME -> TIME;
            case ARRIVALS, CLIENT -> map("enum", parameter.kind().choices());
            case COUNT_STEP -> oneOf(WHOLE, text("^[+x][0-9]+$"));
            case RATE_STEP -> oneOf(defined("number"), text("^[+x][0-9]+(\\.[0-9]+)?$"));
            case RANGE -> defined("range");
        };
        if (parameter.isNeeded()) {
            return described(form, sentence(parameter.meaning()));
        }
        Map<String, Object> described =
                described(form, sentence(parameter.meaning()) + " Default: " + parameter.standard() + ".");
        if (!parameter.kind().choices().isEmpty()) {
            described.put("default", parameter.standard());
        }
        return described;
    }

    private static String sentence(String meaning) {
        return Character.toUpperCase(meaning.charAt(0)) + meaning.substring(1) + ".";
    }

    private static Map<String, Object> hosts() {
        return map(
                "type",
                "object",
                "propertyNames",
                map("pattern", "^[a-z][a-z0-9]{0,7}$"),
                "additionalProperties",
                described(oneOrMore(NAME), "Services."));
    }

    private static Map<String, Object> atLeastOne(Mapping mapping) {
        Map<String, Object> schema = mapping.schema();
        schema.put("minProperties", 1);
        return schema;
    }

    /** {@code quick 2, up to 31s, 200ms, 5s}. */
    private static String told(Effort effort) {
        Duration least = effort.warmUpLeast();
        Duration most = effort.warmUpMost();
        return effort.name() + " " + effort.restarts() + ", up to " + Quantity.text(effort.rehearsal()) + ", "
                + (least.equals(most) ? "" : Quantity.text(least) + " to ") + Quantity.text(most) + ", "
                + Quantity.text(effort.window());
    }

    private static Mapping mapping(Key... keys) {
        return new Mapping(Map.of(), Set.of()).and(keys);
    }

    /** @param meaning empty where the definition that the form refers to says it */
    private static Key key(String name, Map<String, Object> form, String meaning) {
        return new Key(name, described(form, meaning), false);
    }

    /** A key that must be there. */
    private static Key needed(String name, Map<String, Object> form, String meaning) {
        return new Key(name, described(form, meaning), true);
    }

    private static Map<String, Object> described(Map<String, Object> form, String meaning) {
        Map<String, Object> described = meaning.isEmpty() ? map() : map("description", meaning);
        described.putAll(form);
        return described;
    }

    private static Map<String, Object> defined(String name) {
        return map("$ref", "#/$defs/" + name);
    }

    private static Map<String, Object> text(String pattern) {
        return map("type", "string", "pattern", pattern);
    }

    private static Map<String, Object> oneOf(Object... forms) {
        return map("oneOf", List.of(forms));
    }

    private static Map<String, Object> list(Map<String, Object> form) {
        return map("type", "array", "minItems", 1, "items", form);
    }

    /** One value, or a list of values that are each there once. */
    private static Map<String, Object> oneOrMore(Map<String, Object> form) {
        Map<String, Object> list = list(form);
        list.put("uniqueItems", true);
        return oneOf(form, list);
    }

    /** @param pairs a name and its value, one after the other */
    private static Map<String, Object> map(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            map.put((String) pairs[i], pairs[i + 1]);
        }
        return map;
    }
}
