package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URL;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Contents of a lock file: the numbers of the members of messages, enums, sealed types and calls, with the members'
 * names and types. A lock file is committed, and gives numbers to types that have no {@link Field}.
 *
 * <p>A lock is a text file to which lines are only ever added. Each type has a line that is not indented. Below it,
 * each member has an indented line with its number, name and type. The line of a removed member stays, with
 * {@code removed} before the number. A line that begins with {@code #} is a comment, and stays above the same line when
 * the file is written again.
 *
 * <pre>
 * message com.acme.Greeting
 *   1 name string
 *   removed 2 mood int32
 * </pre>
 */
public final class Lock {
    /** Path of the lock file within a jar. */
    public static final String RESOURCE = "META-INF/rpcx/schema.lock";

    /** Lines of one type, request or reply, by the names of the members. */
    public record Entry(String kind, String type, Map<String, Line> lines) {
        public Entry {
            lines = Collections.unmodifiableMap(new LinkedHashMap<>(lines));
        }
    }

    /**
     * One line of a lock: a number, and the member that has it. The number of a member never changes, and is never
     * given to another member.
     */
    public record Line(int number, String name, String type, boolean removed) {
        /**
         * Says whether this is the line of the constant or case that stands for the unknown. Its number is always 0.
         */
        boolean isUnknown() {
            return number == 0 && type.equals("unknown");
        }
    }

    /**
     * Message that a call sends in one direction: its request or reply, or one item of a stream.
     *
     * @param isStream whether the call may send many of these messages
     */
    public record Sent(MessageType type, boolean isStream) {
        /** Says whether both messages have the same lines in a lock. */
        public boolean isLike(Sent other) {
            return LockLines.of(this).equals(LockLines.of(other));
        }
    }

    private static final String HEADER =
            "# Numbers and types of RPCX messages. Lines are added, never taken away: `rpcx lock`.";

    /**
     * Key in {@code comments} of the comments at the head of the file. A blank line separates them from the first type.
     */
    private static final String HEAD = "head of the file";

    /** Key in {@code comments} of the comments after the last line. */
    private static final String END = "end of the file";

    private final Map<String, Entry> entries;

    /**
     * Comments by the line below them. The key for the line of a type is the name of the type. The key for the line of
     * a member is the name of the type, a space and the number. All other comments have the key {@code HEAD} or
     * {@code END}.
     */
    private final Map<String, List<String>> comments;

    private Lock(Map<String, Entry> entries, Map<String, List<String>> comments) {
        this.entries = Collections.unmodifiableMap(new LinkedHashMap<>(entries));
        this.comments = Map.copyOf(comments);
    }

    /** Returns a lock without entries. */
    public static Lock none() {
        return new Lock(Map.of(), Map.of());
    }

    /**
     * Returns the union of all lock files that this loader finds under {@link #RESOURCE}. Several files may have the
     * same type with different lines, for example those of an application and its library. Requests and replies are
     * left out.
     *
     * @param loader null for the system class loader
     * @throws SchemaException if two of the files give one component two numbers, one number to two components, or one
     *     type two kinds, or if a file cannot be parsed
     */
    public static Lock of(@Nullable ClassLoader loader) {
        return new Union().addAll(loader).lock();
    }

    /**
     * Returns the union of {@code own} and all lock files that this loader finds under {@link #RESOURCE}. These may
     * include a copy of {@code own}.
     *
     * @param source file or URL of {@code own}, named in errors
     * @throws SchemaException as in {@link #of(ClassLoader)}
     */
    public static Lock of(@Nullable ClassLoader loader, Lock own, String source) {
        return new Union().addAll(loader).add(own, source).lock();
    }

    /** Makes the union of several lock files. */
    private static final class Union {
        private final Map<String, Entry> entries = new LinkedHashMap<>();
        /** For each type, the names of all sources that have had it so far, to be named in errors. */
        private final Map<String, String> sources = new LinkedHashMap<>();

        Union addAll(@Nullable ClassLoader loader) {
            try {
                List<URL> urls = Collections.list(
                        loader == null ? ClassLoader.getSystemResources(RESOURCE) : loader.getResources(RESOURCE));
                for (URL url : urls) {
                    URLConnection connection = url.openConnection();
                    // with caches, the JDK would go on reading the old content of a jar file that has been replaced
                    connection.setUseCaches(false);
                    try (InputStream in = connection.getInputStream()) {
                        String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
                        add(parse(text, url.toString()), url.toString());
                    }
                }
                return this;
            } catch (IOException e) {
                throw new UncheckedIOException("reading " + RESOURCE, e);
            }
        }

        Union add(Lock lock, String source) {
            for (Entry entry : lock.entries.values()) {
                if (entry.type.contains("/")) {
                    // the lines of a call may differ between locks, since locks do not give parameters and results
                    // their numbers
                    continue;
                }
                String where = sources.get(entry.type) + " and " + source + ": " + entry.type;
                entries.merge(entry.type, entry, (one, next) -> union(one, next, where));
                sources.merge(entry.type, source, (others, next) -> others + ", " + next);
            }
            return this;
        }

        Lock lock() {
            return new Lock(entries, Map.of());
        }
    }

    /**
     * Returns the union of two entries of one type.
     *
     * @param where sources of the entries, and the type, named in errors
     */
    private static Entry union(Entry one, Entry other, String where) {
        if (!one.kind.equals(other.kind)) {
            throw new SchemaException(where + " is " + one.kind + " and " + other.kind + " (expected: one kind)");
        }
        Map<String, Line> lines = new LinkedHashMap<>(one.lines);
        Map<Integer, String> names = new LinkedHashMap<>();
        one.lines.values().forEach(line -> names.put(line.number, line.name));
        for (Line line : other.lines.values()) {
            Line known = lines.get(line.name);
            String taken = names.putIfAbsent(line.number, line.name);
            Line there = taken == null ? null : lines.get(taken);
            if (known == null && there != null && there.isUnknown() && line.isUnknown()) {
                // the name of the constant or case that stands for the unknown may differ, since no peer depends on it
                continue;
            }
            if (known != null && known.number != line.number) {
                throw new SchemaException(where + "." + line.name + " has the numbers " + known.number + " and "
                        + line.number + " (expected: one number for ever)");
            }
            if (taken != null && !taken.equals(line.name)) {
                throw new SchemaException(where + ": number " + line.number + " is that of " + taken + " and of "
                        + line.name + " (expected: one component for ever; if it has been renamed, write its new name"
                        + " into all locks by hand)");
            }
            // the line counts as removed only if no entry still has the component: a project that has the component may
            // read the newer lock of another project
            boolean isRemoved = line.removed && (known == null || known.removed);
            lines.put(line.name, new Line(line.number, line.name, line.type, isRemoved));
        }
        return new Entry(one.kind, one.type, lines);
    }

    /**
     * Parses the text of a lock file.
     *
     * @param source file or URL of the text, named in errors
     * @throws SchemaException if a line cannot be read, if a name or a number occurs twice below one line of a type, or
     *     if two entries of one type contradict each other
     */
    public static Lock parse(String text, String source) {
        Map<String, Entry> entries = new LinkedHashMap<>();
        String kind = "";
        String type = "";
        Map<String, Line> lines = new LinkedHashMap<>();
        Map<String, List<String>> comments = new HashMap<>();
        List<String> above = new ArrayList<>();
        int lineNumber = 0;
        for (String raw : text.lines().toList()) {
            lineNumber++;
            String where = source + ":" + lineNumber + ": ";
            if (raw.startsWith("#")) {
                above.add(raw);
                continue;
            }
            if (raw.isBlank()) {
                if (type.isEmpty()) {
                    above = keep(comments, HEAD, above);
                }
                continue;
            }
            List<String> words = new ArrayList<>(List.of(raw.strip().split("\\s+")));
            if (!Character.isWhitespace(raw.charAt(0))) {
                if (words.size() != 2 || !List.of("message", "enum", "oneof").contains(words.get(0))) {
                    throw new SchemaException(where + raw + " (expected: message, enum or oneof and a class)");
                }
                put(entries, kind, type, lines, source);
                kind = words.get(0);
                type = words.get(1);
                lines = new LinkedHashMap<>();
                above = keep(comments, type, above);
                continue;
            }
            boolean removed = words.get(0).equals("removed") && words.remove(0) != null;
            int number = type.isEmpty() || words.size() < 2 ? -1 : number(words.get(0));
            if (number < 0) {
                throw new SchemaException(where + raw.strip() + " (expected: number, name, type under a type)");
            }
            for (Line line : lines.values()) {
                if (line.number == number) {
                    throw new SchemaException(where + number + " is taken by " + line.name);
                }
            }
            String name = words.get(1);
            Line line = new Line(number, name, String.join(" ", words.subList(2, words.size())), removed);
            if (lines.put(name, line) != null) {
                throw new SchemaException(where + name + " has two numbers");
            }
            above = keep(comments, type + " " + number, above);
        }
        put(entries, kind, type, lines, source);
        keep(comments, END, above);
        return new Lock(entries, comments);
    }

    /**
     * Adds the entry of a type, request or reply. A file may have several entries of one type, if a build has merged
     * the locks of several jars; their union is kept. Of several entries of a request or reply, the first is kept.
     */
    private static void put(
            Map<String, Entry> entries, String kind, String type, Map<String, Line> lines, String source) {
        if (!type.isEmpty()) {
            entries.merge(
                    type,
                    new Entry(kind, type, lines),
                    (one, next) -> type.contains("/") ? one : union(one, next, source + ": " + type));
        }
    }

    /**
     * Stores the comments in {@code above} under this key.
     *
     * @return a new list for the comments that follow
     */
    private static List<String> keep(Map<String, List<String>> comments, String key, List<String> above) {
        // the header is dropped here, since text() writes it; a merge of two files may have put it anywhere
        above.removeIf(comment -> comment.equals(HEADER));
        comments.computeIfAbsent(key, none -> new ArrayList<>()).addAll(above);
        return new ArrayList<>();
    }

    /** Parses a number. Returns -1 for a text that is not a number from 0 to {@code Integer.MAX_VALUE}. */
    private static int number(String digits) {
        long number = digits.matches("\\d{1,10}") ? Long.parseLong(digits) : -1;
        return number <= Integer.MAX_VALUE ? (int) number : -1;
    }

    /**
     * Returns the entries by name. The name of a type is that of its Java class with its type arguments; the name of a
     * request or reply is, for example, {@code greeter/hello.request}.
     */
    public Map<String, Entry> entries() {
        return entries;
    }

    @Nullable
    Entry entry(Use type) {
        return entries.get(type.key());
    }

    /**
     * Returns this lock, updated with the types that a schema has mapped. New members get lines with their numbers, and
     * lines of members that are gone are marked as removed.
     *
     * <p>Lines that only other locks have are not added, unless they are marked as removed there. Types that the schema
     * has not mapped stay as they are.
     *
     * @param schema made by {@link Schema#extending} from this lock, or from the union of this lock and others
     *     ({@link #of(ClassLoader, Lock, String)})
     * @param calls requests and replies by a name such as {@code greeter/hello.request}
     * @throws SchemaException if a name contains whitespace, or if a member has the name of a removed member but
     *     another number
     */
    public Lock extended(Schema schema, Map<String, Sent> calls) {
        Map<String, Entry> all = new TreeMap<>(entries);
        Map<String, Entry> numbered = schema.lock().entries;
        for (Shape shape : schema.shapes()) {
            if (shape instanceof EnumType type) {
                String name = type.javaClass().getName();
                all.put(name, extended("enum", name, LockLines.of(type), entries.get(name), numbered.get(name)));
            } else if (shape instanceof MessageType type && type.kind() != MessageType.Kind.WRAPPER) {
                String kind = type.kind() == MessageType.Kind.ONEOF ? "oneof" : "message";
                String name = type.javaName();
                all.put(name, extended(kind, name, LockLines.of(type), entries.get(name), numbered.get(name)));
            }
        }
        // only the entry in this lock counts, since no lock gives numbers to parameters and results
        calls.forEach((name, sent) -> {
            Entry own = entries.get(name);
            all.put(name, extended("message", name, LockLines.of(sent), own, own));
        });
        return new Lock(all, comments);
    }

    /**
     * Returns the new entry of one type, request or reply: its present lines, and lines of {@code before} marked as
     * removed.
     *
     * @param own entry of the type in this lock; null if it has none
     * @param before entry of the type in the union of all locks; for a request or reply the same as {@code own}; null
     *     if there is none
     */
    private static Entry extended(
            String kind, String type, Map<Integer, Line> lines, @Nullable Entry own, @Nullable Entry before) {
        refuseBlank(type);
        lines.values().forEach(line -> refuseBlank(line.name()));
        if (before != null) {
            Set<String> names = new HashSet<>();
            lines.values().forEach(line -> names.add(line.name()));
            Set<Integer> ours = new HashSet<>();
            if (own != null) {
                own.lines().values().forEach(line -> ours.add(line.number()));
            }
            for (Line line : before.lines().values()) {
                boolean isOurs = ours.contains(line.number());
                if (isOurs && !line.removed() && names.contains(line.name())) {
                    // the member is still there; if it has another number now, Compatibility reports a break
                    continue;
                }
                if (line.removed() || isOurs) {
                    // the number may be in use again: @Field can give a renamed component its old number
                    lines.putIfAbsent(line.number(), new Line(line.number(), line.name(), line.type(), true));
                }
            }
        }
        Map<String, Line> byName = new LinkedHashMap<>();
        for (Line line : lines.values()) {
            Line twin = byName.put(line.name(), line);
            if (twin != null) {
                throw new SchemaException(type + "." + line.name() + " has the numbers " + twin.number() + " and "
                        + line.number() + ", of which one was locked before (expected: the number that it had)");
            }
        }
        return new Entry(kind, type, byName);
    }

    private static void refuseBlank(String name) {
        if (name.chars().anyMatch(Character::isWhitespace)) {
            throw new SchemaException(
                    "\"" + name + "\" has a blank, and cannot stand in a lock (expected: a name without)");
        }
    }

    /** Returns the text of the lock file, in the form in which it is committed. */
    public String text() {
        StringBuilder text = new StringBuilder();
        comments(text, HEAD);
        text.append(HEADER).append('\n');
        for (Entry entry : entries.values()) {
            text.append('\n');
            comments(text, entry.type());
            text.append(entry.kind()).append(' ').append(entry.type()).append('\n');
            for (Line line : entry.lines().values()) {
                comments(text, entry.type() + " " + line.number());
                text.append("  ").append(line.removed() ? "removed " : "").append(line.number());
                text.append(' ')
                        .append(line.name())
                        .append(' ')
                        .append(line.type())
                        .append('\n');
            }
        }
        comments(text, END);
        return text.toString();
    }

    private void comments(StringBuilder text, String key) {
        comments.getOrDefault(key, List.of())
                .forEach(comment -> text.append(comment).append('\n'));
    }
}
