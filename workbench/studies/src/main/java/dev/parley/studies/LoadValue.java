package dev.parley.studies;

import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.LoadForm;
import dev.parley.model.LoadForm.Kind;
import dev.parley.model.LoadForm.Parameter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Reads one load of a file: its short form, or its parameters by name, as its {@link LoadForm} describes them. */
final class LoadValue {
    private LoadValue() {}

    /** None where something is wrong with it; several for a grid. */
    static List<Load> read(Value value) {
        Map<String, LoadForm> forms = new LinkedHashMap<>();
        Load.forms().forEach(form -> forms.put(form.name(), form));
        if (!value.isMapping()) {
            String expected = "one of " + String.join(", ", forms.keySet()) + ", or in short " + LoadForm.shortForms();
            return value.read(expected, Load::parseAll).orElse(List.of());
        }
        Map<String, Value> named = value.fields(forms.keySet());
        if (named.size() > 1) {
            value.wrong(String.join(" and ", named.keySet()) + " (expected: one load an item)");
            return List.of();
        }
        return named.entrySet().stream()
                .findFirst()
                .flatMap(one -> Optional.ofNullable(forms.get(one.getKey())).map(form -> read(form, one.getValue())))
                .orElse(List.of());
    }

    private static List<Load> read(LoadForm form, Value place) {
        StudyKeys.Mapping keys = StudyKeys.parameters(form);
        Map<String, Value> fields = place.fields(keys.names());
        if (!place.isMapping()) {
            return List.of();
        }
        boolean isWhole = hasNeeded(keys, fields, place);
        Map<String, Object> given = new LinkedHashMap<>();
        for (Parameter parameter : form.parameters()) {
            Value field = fields.get(parameter.name());
            if (field != null) {
                Optional<Object> read = read(parameter, field);
                read.ifPresent(value -> given.put(parameter.name(), value));
                isWhole &= read.isPresent();
            }
        }
        if (!isWhole) {
            return List.of();
        }
        try {
            return form.loads(given);
        } catch (BadInput e) {
            place.wrong(e);
            return List.of();
        }
    }

    private static boolean hasNeeded(StudyKeys.Mapping keys, Map<String, Value> fields, Value place) {
        boolean isWhole = true;
        for (String needed : keys.needed()) {
            if (!fields.containsKey(needed)) {
                place.wrong(needed + " is missing (expected: " + String.join(", ", keys.names()) + ")");
                isWhole = false;
            }
        }
        return isWhole;
    }

    private static Optional<Object> read(Parameter parameter, Value field) {
        return parameter.kind() == Kind.RANGE && field.isMapping()
                ? range(field)
                : field.read(parameter.kind().expected(), parameter.kind()::read);
    }

    /** From, to and step by name. */
    private static Optional<Object> range(Value place) {
        Map<String, Value> fields = place.fields(StudyKeys.RANGE.names());
        boolean isWhole = hasNeeded(StudyKeys.RANGE, fields, place);
        Map<String, Integer> ends = new LinkedHashMap<>();
        fields.forEach((name, field) -> field.read(Kind.COUNT.expected(), text -> (Integer) Kind.COUNT.read(text))
                .ifPresent(value -> ends.put(name, value)));
        if (!isWhole || ends.size() < fields.size()) {
            return Optional.empty();
        }
        int from = ends.getOrDefault("from", 1);
        try {
            return Optional.of(new Load.Range(from, ends.getOrDefault("to", from), ends.getOrDefault("step", 1)));
        } catch (BadInput e) {
            place.wrong(e);
            return Optional.empty();
        }
    }
}
