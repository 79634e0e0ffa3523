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
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Content of a lock file, the file that keeps the Protobuf numbers of members from one release to the next. A lock file
 * has the number, name and type of each member of messages, enums, sealed types and calls. The file is committed with a
 * project, so that types without {@link Field} annotations keep their numbers.
 *
 * <p>A lock file has a line for each type, request and reply. Below it, an indented line for each member has the
 * number, the name and the type of the member. If a member is removed, its line is kept, and the word {@code removed}
 * is put before its number. There is one exception: if another member has the same number now, for example after a
 * renaming, only the line of the other member is kept. A member that has been renamed has a line for each of its former
 * names, below its own line. Such a line begins with the word {@code was}. A line that begins with {@code #} is a
 * comment. When the file is written again, each comment stays above the line that follows it.
 *
 * <pre>
 * message com.acme.Greeting
 *   1 name string
 *   was 1 text
 *   removed 2 mood int32
 * </pre>
 */
public final class LockFile {
    /** Path under which a jar contains its lock file. */
    public static final String RESOURCE = "META-INF/rpcx/schema.lock";

    /**
     * Lines of a lock file about one type, one request or one reply.
     *
     * @param kind {@code message}, {@code enum} or {@code oneof}
     * @param type name of the type, request or reply
     * @param lines line of each member, under the name of the member
     */
    public record Entry(String kind, String type, Map<String, Line> lines) {
        public Entry {
            lines = Collections.unmodifiableMap(new LinkedHashMap<>(lines));
        }

        /** Says whether the type has a member of this name at present, that is, one that is not marked as removed. */
        public boolean has(String member) {
            Line line = lines.get(member);
            return line != null && !line.removed;
        }

        private Entry renamed(Rename rename) {
            Map<String, Line> named = new LinkedHashMap<>();
            for (Line line : lines.values()) {
                Line now = line.name.equals(rename.from) ? line.renamed(rename.to) : line;
                named.put(now.name, now);
            }
            return new Entry(kind, type, named);
        }
    }

    /**
     * Line of a lock file about one member. The number of a member never changes.
     *
     * @param removed whether the type no longer has this member; in that case no other member can get the number
     * @param formerNames names that the member had before it was renamed, the oldest one first
     */
    public record Line(int number, String name, String type, boolean removed, List<String> formerNames) {
        public Line {
            formerNames = List.copyOf(formerNames);
        }

        /** Creates the line of a member that has never been renamed. */
        public Line(int number, String name, String type, boolean removed) {
            this(number, name, type, removed, List.of());
        }

        private Line renamed(String to) {
            Set<String> names = new LinkedHashSet<>(formerNames);
            names.add(name);
            names.remove(to);
            return withFormerNames(to, names);
        }

        private Line withFormerNames(String present, Collection<String> names) {
            return new Line(number, present, type, removed, List.copyOf(names));
        }

        /**
         * Says whether this member stands for all values that are not known, or did so before it was removed. Such a
         * member is a constant of an enum or a case of a sealed type, and its number is 0.
         */
        boolean isUnknown() {
            return number == 0 && type.equals("unknown");
        }
    }

    /**
     * New name of a member, which keeps its number.
     *
     * @param type name of the type, request or reply that has the member
     */
    public record Rename(String type, String from, String to) {
        /** Says whether an entry has the member under its old name, and no line for the new name. */
        private boolean fits(Entry entry) {
            return entry.has(from) && !entry.lines.containsKey(to);
        }

        /** Says whether a lock file has the member under its old name, and can have it under its new one. */
        public boolean fits(LockFile lock) {
            Entry entry = lock.entries.get(type);
            return entry != null && fits(entry);
        }
    }

    /**
     * Message that a call sends in one direction, that is, a request, a reply or one item of a stream.
     *
     * @param isStream whether one call can send many of these messages
     */
    public record Sent(MessageType type, boolean isStream) {
        /** Says whether a lock file would have the same lines for both messages. */
        public boolean isLike(Sent other) {
            return LockLines.of(this).equals(LockLines.of(other));
        }
    }

    private static final String HEADER =
            "# Numbers and types of RPCX messages. Lines are added, never taken away: `rpcx lock`.";

    /**
     * Key in {@link #comments} for the comments at the top of the file. A blank line separates these comments from the
     * first type.
     */
    private static final String HEAD = "head of the file";

    /** Key in {@link #comments} for the comments below the last line of the file. */
    private static final String END = "end of the file";

    private final Map<String, Entry> entries;

    /**
     * Comments of the file, each under a key that names the line below them. The key of a type's line is the name of
     * the type. The key of a member's line is the name of the type, a space and the number; for a former name of the
     * member, another space and that name follow. Other comments have the key {@link #HEAD} or {@link #END}.
     */
    private final Map<String, List<String>> comments;

    private LockFile(Map<String, Entry> entries, Map<String, List<String>> comments) {
        this.entries = Collections.unmodifiableMap(new LinkedHashMap<>(entries));
        this.comments = Map.copyOf(comments);
    }

    /** Returns the content of a lock file that has no types and no calls. */
    public static LockFile none() {
        return new LockFile(Map.of(), Map.of());
    }

    /**
     * Reads all lock files that this class loader finds under {@link #RESOURCE}, and joins them into one object. If
     * several files have the same type, the members from all of them are kept. Requests and replies are left out.
     *
     * @param loader null for the system class loader
     * @throws SchemaException if a file cannot be parsed, or if two files contradict each other: one member has two
     *     numbers, one number has two members, or one type has two kinds
     */
    public static LockFile of(@Nullable ClassLoader loader) {
        return new Union().addAll(loader, List.of()).lock();
    }

    /**
     * Joins {@code own} with all lock files that this class loader finds under {@link #RESOURCE}. One of these files
     * may be a copy of {@code own}.
     *
     * @param loader null for the system class loader
     * @param own content of the lock file of one project
     * @param source file or URL from which {@code own} was read, named in errors
     * @param renames new names that {@code own} has already. The other files may still have the old ones: see
     *     {@link #renamed}
     * @throws SchemaException as in {@link #of(ClassLoader)}
     */
    public static LockFile of(@Nullable ClassLoader loader, LockFile own, String source, List<Rename> renames) {
        return new Union().addAll(loader, renames).add(own, source).lock();
    }

    /** Builder that joins several lock files into one {@code LockFile}. */
    private static final class Union {
        private final Map<String, Entry> entries = new LinkedHashMap<>();
        /**
         * For each type, the files or URLs of the lock files that list it, separated by commas. The key is the name of
         * the type. The texts are for errors.
         */
        private final Map<String, String> sources = new LinkedHashMap<>();

        Union addAll(@Nullable ClassLoader loader, List<Rename> renames) {
            try {
                List<URL> urls = Collections.list(
                        loader == null ? ClassLoader.getSystemResources(RESOURCE) : loader.getResources(RESOURCE));
                for (URL url : urls) {
                    URLConnection connection = url.openConnection();
                    // With caches, the JDK would go on reading the old content of a jar file that has been replaced.
                    connection.setUseCaches(false);
                    try (InputStream in = connection.getInputStream()) {
                        String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
                        add(parse(text, url.toString()).renamed(renames), url.toString());
                    }
                }
                return this;
            } catch (IOException e) {
                throw new UncheckedIOException("reading " + RESOURCE, e);
            }
        }

        Union add(LockFile lock, String source) {
            for (Entry entry : lock.entries.values()) {
                if (entry.type.contains("/")) {
                    // The joined LockFile has no requests and replies. Their lines may contradict each other in two
                    // lock files. That is allowed, since parameters and results do not get their numbers from lock
                    // files.
                    continue;
                }
                String where = sources.get(entry.type) + " and " + source + ": " + entry.type;
                entries.merge(entry.type, entry, (one, next) -> union(one, next, where));
                sources.merge(entry.type, source, (others, next) -> others + ", " + next);
            }
            return this;
        }

        LockFile lock() {
            return new LockFile(entries, Map.of());
        }
    }

    /**
     * Joins two entries of one type into an entry with the members of both.
     *
     * @param where beginning of the text of errors, which says where the entries come from, and names the type
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
                // The two lock files may have different names for the member that stands for unknown values. No peer
                // depends on this name.
                continue;
            }
            if (known != null && known.number != line.number) {
                throw new SchemaException(where + "." + line.name + " has the numbers " + known.number + " and "
                        + line.number + " (expected: one number for ever)");
            }
            if (taken != null && !taken.equals(line.name)) {
                throw new SchemaException(where + ": number " + line.number + " is that of " + taken + " and of "
                        + line.name + " (expected: one component for ever; if it has been renamed, its new name in"
                        + " all locks, by `rpcx lock --rename`)");
            }
            // The member counts as removed only if each lock file that has the member marks it as removed. A project
            // that still has the member may use a newer jar, whose lock file marks the member as removed.
            boolean isRemoved = line.removed && (known == null || known.removed);
            Set<String> formerNames = new LinkedHashSet<>(line.formerNames);
            if (known != null) {
                formerNames.addAll(known.formerNames);
            }
            lines.put(line.name, new Line(line.number, line.name, line.type, isRemoved, List.copyOf(formerNames)));
        }
        return new Entry(one.kind, one.type, lines);
    }

    /**
     * Parses the text of a lock file.
     *
     * @param source file or URL of the text, named in errors
     * @throws SchemaException if a line cannot be parsed, if two members of one entry have the same name or number, or
     *     if two entries of a type contradict each other
     */
    public static LockFile parse(String text, String source) {
        Map<String, Entry> entries = new LinkedHashMap<>();
        String kind = "";
        String type = "";
        Map<String, Line> lines = new LinkedHashMap<>();
        Map<String, List<String>> comments = new HashMap<>();
        List<String> above = new ArrayList<>();
        @Nullable Line last = null;
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
                last = null;
                above = keep(comments, type, above);
                continue;
            }
            if (words.get(0).equals("was")) {
                last = withFormerName(last, words, where + raw.strip());
                lines.put(last.name, last);
                above = keep(comments, formerKey(type, last.number, words.get(2)), above);
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
            last = line;
            above = keep(comments, type + " " + number, above);
        }
        put(entries, kind, type, lines, source);
        keep(comments, END, above);
        return new LockFile(entries, comments);
    }

    /**
     * Returns the line of a member with one more former name.
     *
     * @param of line of the member, which stands above the line of the former name; null if none does
     * @param words the words of the line of the former name
     * @param where beginning of the text of the error, which has the line itself
     */
    private static Line withFormerName(@Nullable Line of, List<String> words, String where) {
        if (of == null || words.size() != 3 || number(words.get(1)) != of.number) {
            throw new SchemaException(where + " (expected: was, a number and a former name, below the line of the"
                    + " member with that number)");
        }
        Set<String> names = new LinkedHashSet<>(of.formerNames);
        names.add(words.get(2));
        return of.withFormerNames(of.name, names);
    }

    /** Returns the key in {@link #comments} for the comments above the line of a former name. */
    private static String formerKey(String type, int number, String formerName) {
        return type + " " + number + " " + formerName;
    }

    /**
     * Adds the entry of a type, request or reply when all its lines have been parsed. A lock file can have two entries
     * of the same name, since a build may have merged the lock files of several jars. Two entries of a type are joined.
     * Of two entries of a request or reply, only the first one is kept.
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
     * Stores comments under the key of the line that stands below them.
     *
     * @param above the comments to store
     * @return an empty list for the next comments of the file
     */
    private static List<String> keep(Map<String, List<String>> comments, String key, List<String> above) {
        // The header line is dropped here, since text() writes it. A merge of two files may have put the header
        // anywhere.
        above.removeIf(comment -> comment.equals(HEADER));
        comments.computeIfAbsent(key, none -> new ArrayList<>()).addAll(above);
        return new ArrayList<>();
    }

    /** Parses a number from 0 to {@code Integer.MAX_VALUE}. Returns -1 for any other text. */
    private static int number(String digits) {
        long number = digits.matches("\\d{1,10}") ? Long.parseLong(digits) : -1;
        return number <= Integer.MAX_VALUE ? (int) number : -1;
    }

    /**
     * Returns the entries of all types, requests and replies, by name. The name of a type is the name of its Java
     * class, with type arguments. The name of a request or reply has a form such as {@code greeter/hello.request}.
     */
    public Map<String, Entry> entries() {
        return entries;
    }

    @Nullable
    Entry entry(Use type) {
        return entries.get(type.key());
    }

    /**
     * Returns this lock file with new names for some members, which keep their numbers. A rename is left out if this
     * lock file does not have the member under its old name, or has a line for the new name.
     */
    public LockFile renamed(List<Rename> renames) {
        Map<String, Entry> all = new LinkedHashMap<>(entries);
        for (Rename rename : renames) {
            all.computeIfPresent(rename.type, (type, entry) -> rename.fits(entry) ? entry.renamed(rename) : entry);
        }
        return new LockFile(all, comments);
    }

    /**
     * Returns the next version of this lock file, with the present members of all types that a schema has mapped. New
     * members are added with their numbers, and members that are gone are marked as removed. Types that the schema has
     * not mapped stay as they are, and so do requests and replies that are not in {@code calls}.
     *
     * <p>The lock file of another project may have a member of a type that the type lacks at present, and that this
     * lock file never had. Such a member is added only if the lock file of the other project marks the member as
     * removed. The next version then marks the member as removed too.
     *
     * @param schema made by {@link Schema#extending} from this lock file, or from this lock file joined with others by
     *     {@link #of(ClassLoader, LockFile, String, List)}
     * @param calls requests and replies, each under a name such as {@code greeter/hello.request}
     * @throws SchemaException if a name contains whitespace, or if a member has the name of a removed member, but
     *     another number
     */
    public LockFile extended(Schema schema, Map<String, Sent> calls) {
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
        // The former lines of a request or reply come from this lock file only. The schema's lock file may be joined
        // from several lock files, and then it has no requests and replies.
        calls.forEach((name, sent) -> {
            Entry own = entries.get(name);
            all.put(name, extended("message", name, LockLines.of(sent), own, own));
        });
        return new LockFile(all, comments);
    }

    /**
     * Makes the next version of the entry of a type, request or reply. The new entry has the present members, and also
     * former members, which are marked as removed.
     *
     * @param lines lines of the present members, by number
     * @param own entry in this lock file; null if there is none
     * @param before for a type, its entry in the union of all lock files, or null if the union has none; for a request
     *     or reply, the same as {@code own}
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
                lines.computeIfPresent(
                        line.number(),
                        (number, now) -> now.name().equals(line.name())
                                ? now.withFormerNames(now.name(), line.formerNames())
                                : now);
                if (isOurs && !line.removed() && names.contains(line.name())) {
                    // The type still has this member. If its number has changed, Compatibility reports that as a break.
                    continue;
                }
                if (line.removed() || isOurs) {
                    // If a present member has this number, no line is added for the removed member: @Field can give a
                    // renamed member its old number.
                    lines.putIfAbsent(
                            line.number(), new Line(line.number(), line.name(), line.type(), true, line.formerNames()));
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
                for (String formerName : line.formerNames()) {
                    comments(text, formerKey(entry.type(), line.number(), formerName));
                    text.append("  was ")
                            .append(line.number())
                            .append(' ')
                            .append(formerName)
                            .append('\n');
                }
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
