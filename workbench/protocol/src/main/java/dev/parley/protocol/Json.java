package dev.parley.protocol;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * One JSON object a line, as far as the protocol needs it: an object is a map in the order of its members, an array a
 * list, a whole number a Long, another number a Double, and there is no null. The text is ASCII, whatever character set
 * a process has for its standard output. Source: RFC 8259, but for numbers that are not finite, which are written as
 * text.
 *
 * <p>This class and {@link Members} have loops and {@code instanceof} where other code has streams and a pattern
 * switch: what an empty service does before it listens is part of every boot time that is measured, and the first
 * lambda and the first pattern switch of a process link method handles for milliseconds.
 */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static String write(Map<String, Object> members) {
        StringBuilder to = new StringBuilder();
        write(members, to);
        return to.toString();
    }

    private static void write(Object value, StringBuilder to) {
        if (value instanceof Map<?, ?> members) {
            to.append('{');
            for (Map.Entry<?, ?> member : members.entrySet()) {
                separate(to);
                quote(String.valueOf(member.getKey()), to);
                to.append(':');
                write(member.getValue(), to);
            }
            to.append('}');
        } else if (value instanceof List<?> elements) {
            to.append('[');
            for (Object element : elements) {
                separate(to);
                write(element, to);
            }
            to.append(']');
        } else if (value instanceof String string) {
            quote(string, to);
        } else if (value instanceof Double number && !Double.isFinite(number)) {
            quote(number.toString(), to);
        } else if (value instanceof Number || value instanceof Boolean) {
            to.append(value);
        } else {
            throw new IllegalArgumentException(
                    value.getClass() + " (expected: an object, an array, a text, a number or a boolean)");
        }
    }

    /** A comma, but not before the first. */
    private static void separate(StringBuilder to) {
        char last = to.charAt(to.length() - 1);
        if (last != '{' && last != '[') {
            to.append(',');
        }
    }

    private static void quote(String string, StringBuilder to) {
        to.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            if (c == '"' || c == '\\') {
                to.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                to.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                to.append(c);
            }
        }
        to.append('"');
    }

    /** @throws IllegalArgumentException naming the first place that cannot be read */
    static Map<String, Object> read(String text) {
        Json json = new Json(text);
        json.skipSpace();
        Map<String, Object> members = json.object();
        json.skipSpace();
        if (json.at < text.length()) {
            throw json.wrong("the end");
        }
        return members;
    }

    private Object value() {
        skipSpace();
        return switch (peek()) {
            case '{' -> object();
            case '[' -> array();
            case '"' -> string();
            case 't' -> word("true", true);
            case 'f' -> word("false", false);
            default -> number();
        };
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        expect('{');
        skipSpace();
        if (take('}')) {
            return members;
        }
        do {
            skipSpace();
            String name = string();
            skipSpace();
            expect(':');
            members.put(name, value());
            skipSpace();
        } while (take(','));
        expect('}');
        return members;
    }

    private List<Object> array() {
        List<Object> elements = new ArrayList<>();
        expect('[');
        skipSpace();
        if (take(']')) {
            return elements;
        }
        do {
            elements.add(value());
            skipSpace();
        } while (take(','));
        expect(']');
        return elements;
    }

    private String string() {
        StringBuilder string = new StringBuilder();
        expect('"');
        while (!take('"')) {
            char c = next();
            string.append(c == '\\' ? escaped() : c);
        }
        return string.toString();
    }

    private char escaped() {
        char c = next();
        return switch (c) {
            case '"', '\\', '/' -> c;
            case 'b' -> '\b';
            case 'f' -> '\f';
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'u' -> {
                int begin = at;
                for (int i = 0; i < 4; i++) {
                    next();
                }
                yield (char) Integer.parseInt(text, begin, at, 16);
            }
            default -> throw wrong("an escape");
        };
    }

    private boolean word(String word, boolean meant) {
        if (!text.startsWith(word, at)) {
            throw wrong(word);
        }
        at += word.length();
        return meant;
    }

    private Number number() {
        int begin = at;
        boolean isWhole = true;
        while ("+-.0123456789Ee".indexOf(peek()) >= 0) {
            char c = next();
            isWhole &= c == '-' || Character.isDigit(c);
        }
        if (begin == at) {
            throw wrong("a value");
        }
        String number = text.substring(begin, at);
        if (isWhole) {
            return Long.valueOf(number);
        }
        return Double.valueOf(number);
    }

    private void skipSpace() {
        while (peek() == ' ' || peek() == '\t') {
            at++;
        }
    }

    /** The character that comes next, or NUL at the end, which no line holds. */
    private char peek() {
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private char next() {
        if (at == text.length()) {
            throw wrong("more");
        }
        return text.charAt(at++);
    }

    private boolean take(char c) {
        if (peek() != c) {
            return false;
        }
        at++;
        return true;
    }

    private void expect(char c) {
        if (!take(c)) {
            throw wrong(String.valueOf(c));
        }
    }

    private IllegalArgumentException wrong(String expected) {
        String found = at < text.length() ? text.substring(at, at + 1) : "the end";
        return new IllegalArgumentException("JSON at character " + at + ": " + found + " (expected: " + expected + ")");
    }
}
