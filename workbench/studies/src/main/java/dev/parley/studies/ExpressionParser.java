package dev.parley.studies;

import dev.parley.model.BadInput;
import dev.parley.studies.Expression.Figure;
import dev.parley.studies.Expression.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads claims and the meaning of metrics.
 *
 * <pre>
 * statement  = ("every" | "some" | "most" | whole "of") set ("," set)* ":" statement
 * set        = name "in" "{" value ("," value)* "}"
 *            | simple (("and" | "or") simple)*                     from left to right
 * simple = "not" simple | "similar" "(" figure "," figure "," number ")" | figure ("<" | "<=" | ">" | ">=") figure |
 * "(" statement ")" figure = term (("+" | "-") term)* term = factor (("*" | "/") factor)* factor = number | ("min" |
 * "max") "(" figure ("," figure)* ")" | metric ["[" key "=" value ("," key "=" value)* "]"] | "(" figure ")"
 * </pre>
 *
 * Several sets mean every combination of their values. A value may have {@code @name} in it, which stands for the value
 * that the set gives to the name.
 */
final class ExpressionParser {
    private static final Pattern SO_MANY_OF = Pattern.compile("([0-9]{1,4})\\s+of\\s+(?=\\w+\\s+in\\b)");
    private static final Set<String> KEYS = Set.of("technology", "topology", "message", "load", "part", "subject");

    private final String place;
    private final String text;
    private int at;

    private ExpressionParser(String place, String text) {
        this.place = place;
        this.text = text;
    }

    /** @throws BadInput naming the place, and where in the text */
    static Statement statement(String place, String text) {
        ExpressionParser parser = new ExpressionParser(place, text);
        Statement statement = parser.statement();
        parser.end();
        return statement;
    }

    static Figure figure(String place, String text) {
        ExpressionParser parser = new ExpressionParser(place, text);
        Figure figure = parser.figure();
        parser.end();
        return figure;
    }

    private Statement statement() {
        for (String kind : List.of("every", "some", "most")) {
            if (takeWord(kind)) {
                return each(kind);
            }
        }
        Matcher number = SO_MANY_OF.matcher(text).region(start(), text.length());
        if (number.lookingAt()) {
            at = number.end();
            return each(number.group(1));
        }
        Statement left = simple();
        while (true) {
            if (takeWord("and")) {
                left = new Expression.Count(2, List.of(left, simple()));
            } else if (takeWord("or")) {
                left = new Expression.Count(1, List.of(left, simple()));
            } else {
                return left;
            }
        }
    }

    /** The statement behind the sets, once for each combination of their values. */
    private Statement each(String kind) {
        List<Map<String, String>> combinations = List.of(Map.of());
        do {
            String name = word("a name");
            needWord("in");
            need('{');
            List<String> values = new ArrayList<>();
            do {
                values.add(until(",}"));
            } while (take(','));
            need('}');
            combinations = combinations.stream()
                    .flatMap(outer -> values.stream().map(value -> {
                        Map<String, String> inner = new HashMap<>(outer);
                        inner.put(name, value);
                        return inner;
                    }))
                    .toList();
        } while (take(','));
        need(':');
        Statement body = statement();
        int all = combinations.size();
        int needed = switch (kind) {
            case "every" -> all;
            case "some" -> 1;
            case "most" -> all / 2 + 1;
            default -> Integer.parseInt(kind);
        };
        if (needed < 1 || needed > all) {
            throw new BadInput(place, kind + " of " + all, "1 to " + all);
        }
        return new Expression.Count(
                needed,
                combinations.stream()
                        .map(names -> Expression.bound(body, names))
                        .toList());
    }

    private Statement simple() {
        if (takeWord("not")) {
            return new Expression.Not(simple());
        }
        int start = start();
        if (takeWord("similar")) {
            need('(');
            Figure left = figure();
            need(',');
            Figure right = figure();
            need(',');
            double factor = number();
            need(')');
            if (!(factor > 1)) {
                throw wrong("a factor above 1");
            }
            return new Expression.Similar(left, right, factor, text.substring(start, at));
        }
        if (peek('(')) {
            int before = at;
            try {
                need('(');
                Statement inner = statement();
                need(')');
                return inner;
            } catch (BadInput e) {
                // it may be a figure in parentheses, which a comparison begins with
                at = before;
            }
        }
        Figure left = figure();
        boolean isLess = take('<');
        if (!isLess && !take('>')) {
            throw wrong("<, <=, > or >=");
        }
        boolean orEqual = at < text.length() && text.charAt(at) == '=' && take('=');
        Figure right = figure();
        String written = text.substring(start, at).strip();
        return new Expression.Order(left, right, isLess, orEqual, written);
    }

    private Figure figure() {
        Figure left = term();
        while (true) {
            if (take('+')) {
                left = new Expression.Arithmetic('+', left, term());
            } else if (take('-')) {
                left = new Expression.Arithmetic('-', left, term());
            } else {
                return left;
            }
        }
    }

    private Figure term() {
        Figure left = factor();
        while (true) {
            if (take('*')) {
                left = new Expression.Arithmetic('*', left, factor());
            } else if (take('/')) {
                left = new Expression.Arithmetic('/', left, factor());
            } else {
                return left;
            }
        }
    }

    private Figure factor() {
        if (take('(')) {
            Figure inner = figure();
            need(')');
            return inner;
        }
        int start = start();
        if (start < text.length() && Character.isDigit(text.charAt(start))) {
            return new Expression.Number(number());
        }
        String name = word("a number, a metric, min or max");
        if (peek('(')) {
            if (!name.equals("min") && !name.equals("max")) {
                throw wrong("min or max before (");
            }
            need('(');
            List<Figure> among = new ArrayList<>();
            do {
                among.add(figure());
            } while (take(','));
            need(')');
            return new Expression.Extreme(name.equals("min"), List.copyOf(among));
        }
        Map<String, String> conditions = new LinkedHashMap<>();
        if (take('[')) {
            do {
                String key = word(
                        "one of " + String.join(", ", KEYS.stream().sorted().toList()));
                if (!KEYS.contains(key) || conditions.containsKey(key)) {
                    throw wrong("each once of "
                            + String.join(", ", KEYS.stream().sorted().toList()));
                }
                need('=');
                conditions.put(key, until(",]"));
            } while (take(','));
            need(']');
        }
        return new Expression.Of(new FigureQuery(name, conditions));
    }

    private double number() {
        int start = start();
        while (at < text.length() && (Character.isDigit(text.charAt(at)) || text.charAt(at) == '.')) {
            at++;
        }
        try {
            return Double.parseDouble(text.substring(start, at));
        } catch (NumberFormatException e) {
            throw wrong("a number");
        }
    }

    private String word(String expected) {
        int start = start();
        while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || text.charAt(at) == '_')) {
            at++;
        }
        if (start == at) {
            throw wrong(expected);
        }
        return text.substring(start, at);
    }

    private String until(String ends) {
        int start = start();
        while (at < text.length() && ends.indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String value = text.substring(start, at).strip();
        if (value.isEmpty()) {
            throw wrong("a value");
        }
        return value;
    }

    private boolean takeWord(String wanted) {
        int start = start();
        int end = start + wanted.length();
        if (text.startsWith(wanted, start)
                && (end == text.length() || !Character.isLetterOrDigit(text.charAt(end)) && text.charAt(end) != '_')) {
            at = end;
            return true;
        }
        return false;
    }

    private void needWord(String wanted) {
        if (!takeWord(wanted)) {
            throw wrong(wanted);
        }
    }

    private boolean peek(char wanted) {
        int start = start();
        return start < text.length() && text.charAt(start) == wanted;
    }

    private boolean take(char wanted) {
        if (peek(wanted)) {
            at++;
            return true;
        }
        return false;
    }

    private void need(char wanted) {
        if (!take(wanted)) {
            throw wrong(String.valueOf(wanted));
        }
    }

    private int start() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return at;
    }

    private void end() {
        if (start() < text.length()) {
            throw wrong("the end");
        }
    }

    private BadInput wrong(String expected) {
        String rest = text.substring(Math.min(at, text.length()));
        return new BadInput(
                place,
                rest.isEmpty()
                        ? "the end of " + text
                        : rest.substring(0, Math.min(30, rest.length())) + " at " + (at + 1),
                expected);
    }
}
