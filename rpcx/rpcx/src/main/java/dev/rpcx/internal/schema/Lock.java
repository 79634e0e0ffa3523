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
 * Committed numbers of the members of messages, enums, sealed types and calls, with the members' names and types. Types
 * that have no {@link Field} get their numbers from a lock. A lock is a text file to which lines are only ever added. A
 * type is a line that is not indented, and each of its numbers is an indented line of number, name and type. A removed
 * member keeps its line, with {@code removed} before it. A line that begins with {@code #} is a comment, and stays
 * above the line above which it stands.
 *
 * <pre>
 * message com.acme.Greeting
 *   1 name string
 *   removed 2 mood int32
 * </pre>
 */
public final class Lock {
    /** Path at which a jar carries its lock file. */
    public static final String RESOURCE = "META-INF/rpcx/schema.lock";

    /** Locked lines of one type, or of one request or reply, by the names of their members. */
    public record Entry(String kind, String type, Map<String, Line> lines) {
        public Entry {
            lines = Collections.unmodifiableMap(new LinkedHashMap<>(lines));
        }
    }

    /** One locked number with its member. A number never changes, and is never given to another member. */
    public record Line(int number, String name, String type, boolean removed) {
        /**
         * Says whether the line is that of the constant or case that stands for the unknown, which always has the
         * number 0, so that no source gives it one.
         */
        boolean isUnknown() {
            return number == 0 && type.equals("unknown");
        }
    }

    /**
     * Message that a call sends in one direction: its request or its reply, or, for a stream, one of its items.
     *
     * @param isStream whether the call may send many of these messages
     */
    public record Sent(MessageType type, boolean isStream) {
        /** Says whether a lock has the same lines for both. */
        public boolean isLike(Sent other) {
            return LockLines.of(this).equals(LockLines.of(other));
        }
    }

    private static final String HEADER =
            "# Numbers and types of RPCX messages. Lines are added, never taken away: `rpcx lock`.";

    /** Keys in {@code comments} of the comments that stand neither above a type nor above a line. */
    private static final String HEAD = "head of the file";

    private static final String END = "end of the file";

    private final Map<String, Entry> entries;

    /**
     * Comments by what they stand above. The key is the name of a type, or the name of a type, a space and a number, or
     * {@code HEAD} or {@code END}.
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
     * Returns the union of all lock files that this loader finds under {@link #RESOURCE}. A type may stand in several
     * of them, since the lock of an application also has the types of its libraries, and one file may have lines that
     * another does not have.
     *
     * @param loader null for the system class loader
     * @throws SchemaException if two of the files give one component two numbers, one number to two components, or one
     *     type two kinds, or if a file cannot be parsed
     */
    public static Lock of(@Nullable ClassLoader loader) {
        return new Union().addAll(loader).lock();
    }

    /**
     * Returns the union of all lock files that this loader finds under {@link #RESOURCE} and of {@code own}, which the
     * loader need not find, or may find as it was at the last build.
     *
     * @param source file or URL of {@code own}, named in errors
     * @throws SchemaException as in {@link #of(ClassLoader)}
     */
    public static Lock of(@Nullable ClassLoader loader, Lock own, String source) {
        return new Union().addAll(loader).add(own, source).lock();
    }

    /** Union of several lock files. */
    private static final class Union {
        private final Map<String, Entry> entries = new LinkedHashMap<>();
        /**
         * Sources that have had each type so far, by type. All are kept, since any of them may be the one that the next
         * source contradicts.
         */
        private final Map<String, String> sources = new LinkedHashMap<>();

        Union addAll(@Nullable ClassLoader loader) {
            try {
                List<URL> urls = Collections.list(
                        loader == null ? ClassLoader.getSystemResources(RESOURCE) : loader.getResources(RESOURCE));
                for (URL url : urls) {
                    URLConnection connection = url.openConnection();
                    // with caches, the JDK would keep the jar open, and go on reading it as it was before another jar
                    // replaced it
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
                    // no lock gives numbers to parameters and results, so what one lock says of a call does not bind
                    // another lock
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
     * @param where source or sources of the entries, and the type, named in errors
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
                // what stands for the unknown may have another name in each entry, since its name binds nobody
                continue;
            }
            if (known != null && known.number != line.number) {
                throw new SchemaException(where + "." + line.name + " has the numbers " + known.number + " and "
                        + line.number + " (expected: one number for ever)");
            }
            if (taken != null && !taken.equals(line.name)) {
                throw new SchemaException(where + ": number " + line.number + " is that of " + taken + " and of "
                        + line.name + " (expected: one component for ever; where that is its new name, the same in all"
                        + " locks, by hand)");
            }
            // a line is removed only if no entry has the component any more: a project that still has it may read the
            // newer lock of another project beside its own
            boolean isRemoved = line.removed && (known == null || known.removed);
            lines.put(line.name, new Line(line.number, line.name, line.type, isRemoved));
        }
        return new Entry(one.kind, one.type, lines);
    }

    /**
     * Parses the text of a lock file.
     *
     * @param source file or URL of the text, named in errors
     * @throws SchemaException if a line cannot be read, if a name or a number stands twice below one line of a type, or
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
     * Adds the entry of a type. A type may stand in a file more than once, since a build that makes one jar of many
     * appends their locks: the entry is then the union of all. Of several entries of one call the first stays, since
     * what one lock says of a call does not bind another lock.
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
     * Keeps the comments in {@code above} under this key.
     *
     * @return a new list for the comments that follow
     */
    private static List<String> keep(Map<String, List<String>> comments, String key, List<String> above) {
        // the header is left out here, since text() writes it; a merge of two files may have put it anywhere
        above.removeIf(comment -> comment.equals(HEADER));
        comments.computeIfAbsent(key, none -> new ArrayList<>()).addAll(above);
        return new ArrayList<>();
    }

    /** Returns the number; -1 for a text that is not a number from 0 to {@code Integer.MAX_VALUE}. */
    private static int number(String digits) {
        long number = digits.matches("\\d{1,10}") ? Long.parseLong(digits) : -1;
        return number <= Integer.MAX_VALUE ? (int) number : -1;
    }

    /**
     * Returns the entries by name: the name of a Java class with its type arguments, or the name of a request or reply,
     * such as {@code greeter/hello.request}.
     */
    public Map<String, Entry> entries() {
        return entries;
    }

    @Nullable
    Entry entry(Use type) {
        return entries.get(type.key());
    }

    /**
     * Returns this lock extended by what a schema has met since: new members have lines at their numbers, and lines of
     * members that are gone are marked as removed. A line that only another lock has, such as the lock of a project
     * that uses a newer version of a library, is not added, unless it is marked as removed there. Types that the schema
     * has not met stay as they are in this lock; those of them that only the schema's lock has are not added.
     *
     * @param schema made by {@link Schema#extending} from this lock, or from this lock and others
     *     ({@link #of(ClassLoader, Lock, String)})
     * @param calls requests and replies by a name such as {@code greeter/hello.request}
     * @throws SchemaException if a name contains whitespace, or if a member has the name of a removed member with
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
        // no lock gives numbers to parameters and results
        calls.forEach((name, sent) -> {
            Entry own = entries.get(name);
            all.put(name, extended("message", name, LockLines.of(sent), own, own));
        });
        return new Lock(all, comments);
    }

    /**
     * Returns the entry of one type: its present lines, and the lines of {@code before} that stay as removed.
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
                    // the number may be in use, since a component that @Field keeps at its number may change its name
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

    /** Returns the text of the lock file as it is committed. */
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
