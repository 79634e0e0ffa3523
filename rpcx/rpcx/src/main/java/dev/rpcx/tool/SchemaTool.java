package dev.rpcx.tool;

import static java.nio.file.StandardOpenOption.SYNC;
import static java.nio.file.StandardOpenOption.WRITE;

import dev.rpcx.internal.schema.Compatibility;
import dev.rpcx.internal.schema.DescribedService;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.SchemaException;
import java.io.Console;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * This command-line tool writes and checks lock files, which keep the Protobuf numbers of members from release to
 * release. Builds run the tool with one of four commands:
 *
 * <ul>
 *   <li>{@code lock} writes or extends the lock file of the given services.
 *   <li>{@code check} compares the given services with their lock file.
 *   <li>{@code compare} compares two lock files.
 *   <li>{@code proto} prints the given services as a {@code .proto}. This command needs protobuf-java.
 * </ul>
 *
 * <p>If a member is gone from its type and another one is new, the two may be the same member under another name.
 * Numbers belong to names, so {@code lock} writes nothing before this is answered. The options {@code --rename OLD=NEW}
 * and {@code --removed OLD} of {@code lock} answer it, and so does the person at the terminal, if there is one.
 *
 * <p>The exit codes are:
 *
 * <ul>
 *   <li>0: the command succeeded.
 *   <li>1: there was an error, such as a wrong argument, a type that cannot be mapped to Protobuf, or a question of
 *       {@code lock} that nobody has answered.
 *   <li>2: a lock file that the command compares does not exist.
 *   <li>3: there is a break, that is, a change after which the old or the new version of a service cannot read what the
 *       other version sends. {@code check} also exits with 3 if the lock file is not up to date, or if a type's numbers
 *       depend only on the order of declaration.
 * </ul>
 */
public final class SchemaTool {
    private static final String USAGE = """
            rpcx lock FILE CLASS...            writes or extends these services' lock, beside those of the class path
              --rename OLD=NEW                 OLD of the lock is called NEW in the classes, and keeps its number
              --removed OLD                    OLD of the lock is gone, and nothing in the classes is a new name of it
            rpcx check FILE CLASS...           fails (3) where the services break with the lock, or it is behind them
            rpcx compare OLD NEW               fails (3) where one lock breaks with the other; a jar stands for its lock
            rpcx proto PACKAGE CLASS...        prints the services as a .proto; numbers from the class path's locks

            FILE is usually src/main/resources/META-INF/rpcx/schema.lock; CLASS a service's interface or class, or a
            folder of compiled classes, of which those with @RPCXServer or @RPCXClient count.\
            """;

    private final PrintStream out;
    private final PrintStream err;
    private final ClassLoader loader;
    private final Function<String, @Nullable String> ask;

    /**
     * Creates a tool that runs in the build's own process, and asks nobody.
     *
     * @param out where results are printed, such as a {@code .proto}
     * @param err where errors, notes and breaks of compatibility are printed
     * @param loader class loader that finds the classes of the services, and the lock files of the class path
     */
    public SchemaTool(PrintStream out, PrintStream err, ClassLoader loader) {
        this(out, err, loader, question -> null);
    }

    /**
     * Creates a tool that asks somebody whether members have been renamed.
     *
     * @param out where results are printed, such as a {@code .proto}
     * @param err where errors, notes and breaks of compatibility are printed
     * @param loader class loader that finds the classes of the services, and the lock files of the class path
     * @param ask gets the text of a question, of several lines, and returns the line that was typed; null if nobody can
     *     be asked: see {@link #terminal}
     */
    public SchemaTool(PrintStream out, PrintStream err, ClassLoader loader, Function<String, @Nullable String> ask) {
        this.out = out;
        this.err = err;
        this.loader = loader;
        this.ask = ask;
    }

    /** Runs one command, and ends the process with the exit code of the command. */
    public static void main(String[] args) {
        System.exit(new SchemaTool(System.out, System.err, SchemaTool.class.getClassLoader(), terminal())
                .run(List.of(args)));
    }

    /**
     * Returns what asks the person at the terminal of this process. It returns null to each question if the process has
     * no terminal.
     */
    public static Function<String, @Nullable String> terminal() {
        Console console = System.console();
        if (console == null || !isTerminal(console)) {
            return question -> null;
        }
        return question -> console.readLine("%s", question);
    }

    /** From JDK 22 on a process can have a console that is no terminal. Before, no console had this method. */
    private static boolean isTerminal(Console console) {
        try {
            return Boolean.TRUE.equals(Console.class.getMethod("isTerminal").invoke(console));
        } catch (ReflectiveOperationException older) {
            return true;
        }
    }

    /**
     * Runs one command. Errors such as a wrong argument or a missing file are printed, not thrown.
     *
     * @param args name of the command, followed by its arguments
     * @return the exit code, as described at {@link SchemaTool}
     */
    public int run(List<String> args) {
        try {
            String command = args.isEmpty() ? "" : args.get(0);
            List<String> words = new ArrayList<>(args.subList(Math.min(1, args.size()), args.size()));
            Answers answers = command.equals("lock") ? Answers.takenFrom(words) : new Answers();
            if (words.size() < 2) {
                throw new SchemaException(USAGE);
            }
            String first = words.get(0);
            List<String> others = words.subList(1, words.size());
            Notes notes = new Notes(err);
            return switch (command) {
                case "lock" -> lock(Path.of(first), others, answers, notes);
                case "check" -> check(Path.of(first), others, notes);
                case "compare" -> compare(read(first), read(others.get(0)), notes);
                case "proto" -> proto(first, others);
                default -> throw new SchemaException(USAGE);
            };
        } catch (IllegalArgumentException e) {
            // a SchemaException, or the exception that clients and servers throw for a method that cannot be published
            err.println(e.getMessage());
            return 1;
        } catch (NoSuchFileException e) {
            err.println("no file " + e.getFile() + " (`rpcx lock` writes it)");
            return 2;
        } catch (IOException | UncheckedIOException e) {
            err.println(e);
            return 1;
        }
    }

    /**
     * Returns the names of the services' classes and interfaces in a folder of compiled classes, sorted: the classes
     * that have {@code @RPCXServer} themselves, and the interfaces with {@code @RPCXClient}. Returns none if the folder
     * does not exist.
     *
     * @throws IllegalArgumentException if the class loader does not find a class of the folder
     * @throws UncheckedIOException if the folder cannot be read
     */
    public List<String> servicesIn(Path folder) {
        return ServiceClasses.in(folder, loader).stream().map(Class::getName).toList();
    }

    /** Reads a lock file, which may be in a jar. */
    private static LockFile read(String file) throws IOException {
        if (!file.endsWith(".jar")) {
            return LockFile.parse(Files.readString(Path.of(file)), file);
        }
        LockFile lock = ForeignTypes.lockIn(Path.of(file));
        if (lock.entries().isEmpty()) {
            throw new NoSuchFileException(file + "!/" + LockFile.RESOURCE);
        }
        return lock;
    }

    /**
     * The next version of a lock file, with what it was made from.
     *
     * @param before lock file of the older version, in which members have the names of the newer version, as far as
     *     their new names are known
     * @param after lock file of the newer version, made from {@code before}. It still has the members that were
     *     removed, and marks them as removed
     * @param renamed members that may have been renamed as well
     */
    private record Draft(
            LockFile before, Schema schema, Services services, LockFile after, List<Compatibility.Renaming> renamed) {
        /**
         * Returns those of {@code renamed} about which {@code lock} asks. The others belong to a class that stands
         * where a class of another name stood, and that has its own lines in the lock file.
         */
        List<Compatibility.Renaming> questions() {
            return renamed.stream().filter(Compatibility.Renaming::isOfOneType).toList();
        }
    }

    /**
     * Makes the next version of a lock file. Members that are in no lock file get new numbers. Types of libraries get
     * their numbers from the libraries' lock files, as in a client or server.
     *
     * @param renames new names of members that {@code locked} has under their old names
     */
    private Draft draft(LockFile locked, Path file, List<String> classes, List<LockFile.Rename> renames, Notes notes) {
        LockFile before = locked.renamed(renames);
        Schema schema = Schema.extending(LockFile.of(loader, before, file.toString(), renames));
        Services services = Services.of(classes, loader, schema, notes);
        LockFile after = before.extended(schema, services.calls());
        return new Draft(before, schema, services, after, Compatibility.perhapsRenamed(before, after));
    }

    private int lock(Path file, List<String> classes, Answers answers, Notes notes) throws IOException {
        String text = Files.exists(file) ? Files.readString(file) : null;
        LockFile locked = text == null ? LockFile.none() : LockFile.parse(text, file.toString());
        if (text != null && locked.entries().isEmpty()) {
            // a lock file without any type is refused, since every type would get new numbers
            throw new SchemaException(file + " has no type in it (expected: what `rpcx lock` has written, or no file)");
        }
        List<LockFile.Rename> renames = new ArrayList<>(answers.ofTypes(locked));
        Draft draft;
        int known;
        do {
            known = renames.size();
            draft = draft(locked, file, classes, renames, notes);
            List<Compatibility.Renaming> open = new ArrayList<>();
            for (Compatibility.Renaming each : draft.questions()) {
                String name = answers.to(each, ask);
                if (name == null) {
                    open.add(each);
                } else if (!name.isEmpty()) {
                    add(new LockFile.Rename(each.type(), each.removed(), name), renames);
                }
            }
            if (!open.isEmpty()) {
                open.forEach(each -> err.println(Answers.withOptions(each)));
                err.println(file + " is not changed (expected: an answer to each of these)");
                return 1;
            }
            // A member with a new name keeps its number, and the others may get other numbers: all is made again.
        } while (renames.size() > known);
        answers.expectUsed(renames, draft.after);
        List<Compatibility.Break> breaks = breaks(draft, notes);
        // Each question has been answered by now, and these members have no new name.
        draft.questions().stream()
                .filter(Compatibility.Renaming::isInPlace)
                .map(Compatibility::givenAgain)
                .forEach(breaks::add);
        int status = report(breaks);
        if (status != 0) {
            err.println(file + " is not changed (expected where a break is wanted: its lines changed by hand, since a"
                    + " new lock would give other numbers)");
        } else {
            Path folder = file.toAbsolutePath().getParent();
            if (folder != null && !Files.isDirectory(folder)) {
                Files.createDirectories(folder);
                notes.add("made the folder " + folder);
            }
            if (!draft.after.text().equals(text)) {
                write(file, text, draft.after.text());
            }
            noteContradictions(draft.after, file, renames, notes);
            ForeignTypes.note(draft.schema, file, loader, notes);
            out.println(file + ": " + draft.after.entries().size() + " types");
        }
        return status;
    }

    private static void add(LockFile.Rename rename, List<LockFile.Rename> renames) {
        for (LockFile.Rename other : renames) {
            if (other.type().equals(rename.type()) && other.to().equals(rename.to())) {
                throw new SchemaException(rename.type() + ": " + rename.to() + " is given as the new name of "
                        + other.from() + " and of " + rename.from() + " (expected: of one)");
            }
        }
        renames.add(rename);
    }

    /**
     * Prints a note if this lock file contradicts another lock file of the class path. No client or server could start
     * with both files. The cause can be a new {@code @Field}, or an older copy of this lock file.
     *
     * @param renames new names that this lock file has just got. A copy of it beside the compiled classes, which the
     *     build replaces, still has the old ones
     */
    private void noteContradictions(LockFile own, Path file, List<LockFile.Rename> renames, Notes notes) {
        try {
            LockFile.of(loader, own, file.toString(), renames);
        } catch (SchemaException e) {
            notes.add("no program can start with both of these locks: " + e.getMessage());
        }
    }

    /**
     * Replaces a lock file in one atomic step, by a new file in the same folder. Readers find either the old or the new
     * text, even after a crash.
     *
     * @param before text of the lock file from which the new text was made; null if there was no file
     * @throws SchemaException if another process is writing the file, or has changed the file since {@code before} was
     *     read; or if a process that crashed has left its new file behind
     */
    private static void write(Path file, @Nullable String before, String text) throws IOException {
        Path target = Files.exists(file) ? file.toRealPath() : file.toAbsolutePath();
        Path beside = target.resolveSibling(target.getFileName() + ".new");
        try {
            Files.createFile(beside);
        } catch (FileAlreadyExistsException other) {
            throw new SchemaException(beside + " is there: another `rpcx lock` writes " + file
                    + " (expected: one at a time; remove it if none is running)");
        }
        boolean isMoved = false;
        try {
            String now = Files.exists(file) ? Files.readString(file) : null;
            if (!Objects.equals(now, before)) {
                throw new SchemaException(
                        file + " has been changed meanwhile (expected: one `rpcx lock` at" + " a time; run it again)");
            }
            Files.writeString(beside, text, WRITE, SYNC);
            Files.move(beside, target, StandardCopyOption.ATOMIC_MOVE);
            isMoved = true;
        } finally {
            // The temporary file is deleted only if it has not been moved. After the move, another process that writes
            // the lock file can create its own temporary file of the same name.
            if (!isMoved) {
                Files.deleteIfExists(beside);
            }
        }
    }

    private int check(Path file, List<String> classes, Notes notes) throws IOException {
        LockFile locked = read(file.toString());
        Draft draft = draft(locked, file, classes, List.of(), notes);
        int status = report(breaks(draft, notes));
        for (Compatibility.Renaming each : draft.questions()) {
            err.println(Answers.withOptions(each));
            status = 3;
        }
        for (String type : Compatibility.unlocked(draft.schema)) {
            err.println(type
                    + ": without @Field and lock, its numbers depend on the order of declaration; run `rpcx lock`");
            status = 3;
        }
        if (status == 0 && !draft.after.text().equals(locked.text())) {
            err.println(file + ": behind the classes, though nothing breaks; run `rpcx lock` and commit it");
            status = 3;
        }
        ForeignTypes.note(draft.schema, file, loader, notes);
        for (String type : Compatibility.withoutUnknown(draft.schema)) {
            notes.add(type + " has nothing that stands for what a newer peer sends (@Unknown)");
        }
        return status;
    }

    private int compare(LockFile before, LockFile after, Notes notes) {
        for (Compatibility.Renaming each : Compatibility.perhapsRenamed(before, after)) {
            notes.add(Answers.words(each)
                    + (each.isInPlace()
                            ? "; if that is not a new name for the same, old and new versions read one as the other"
                                    + " (expected then: a number of its own, by a place at the end or by @Field)"
                            : "; if that is a new name for the same, old and new versions do not read it from each"
                                    + " other (expected then: `rpcx lock --rename`, or @Field)"));
        }
        return report(Compatibility.between(before, after));
    }

    /**
     * Prints a note with the names of services that are in the lock file, but not among {@code services}. The calls of
     * these services are not compared.
     */
    private static void noteMissing(LockFile before, List<PublishedService> services, Notes notes) {
        Set<String> names = new TreeSet<>();
        for (String call : before.entries().keySet()) {
            if (call.contains("/") && services.stream().noneMatch(service -> service.owns(call))) {
                names.add(call.substring(0, call.lastIndexOf('/')));
            }
        }
        if (!names.isEmpty()) {
            notes.add("none of these classes is the service " + String.join(", ", names)
                    + " of the lock; if it has been renamed or removed, its callers get NOT_FOUND (expected: all"
                    + " classes of the lock's services; the lines of a removed one taken out by hand)");
        }
    }

    /**
     * Returns the changes after which one version of a service cannot read what the other version sends. One such
     * change is that a service's class no longer publishes a method. A comparison of the two lock files does not find
     * this change, because {@code draft.after} still has the request and the reply of the method. Also prints notes on
     * services that are missing, and on parameters without names.
     */
    private static List<Compatibility.Break> breaks(Draft draft, Notes notes) {
        List<Compatibility.Break> breaks = new ArrayList<>(Compatibility.between(draft.before, draft.after));
        draft.renamed.stream()
                .filter(each -> !each.isOfOneType())
                .map(Compatibility::givenAgain)
                .forEach(breaks::add);
        noteMissing(draft.before, draft.services.all(), notes);
        for (PublishedService service : draft.services.all()) {
            for (String method : service.unnamed()) {
                notes.add(method
                        + " has no names of its parameters, so those that change places are not seen (expected: javac"
                        + " -parameters)");
            }
            for (String call : draft.before.entries().keySet()) {
                // if the service's class no longer has the call, the call counts as removed, even if a client's
                // interface still has it
                if (service.isServed()
                        && service.owns(call)
                        && !draft.services.calls().containsKey(call)) {
                    breaks.add(Compatibility.removedCall(call));
                }
            }
        }
        return breaks;
    }

    private int report(List<Compatibility.Break> breaks) {
        breaks.forEach(err::println);
        return breaks.isEmpty() ? 0 : 3;
    }

    private int proto(String protoPackage, List<String> classes) {
        DescribedService.expectProtobuf();
        List<PublishedService> services = declared(classes);
        ProtoFile file = new ProtoFile(protoPackage)
                .reserve(services.stream().map(PublishedService::name).toList());
        for (PublishedService service : services) {
            file.service(service.name(), service.rpcs());
        }
        out.print(file.text());
        return 0;
    }

    /**
     * Describes services as their classes or interfaces declare them, for callers that have none of these. Needs
     * protobuf-java.
     *
     * @param classes names of classes and interfaces, and folders of compiled classes
     * @throws IllegalArgumentException if a class is missing, is no service, or cannot be mapped to Protobuf; the same
     *     if there is no class at all
     */
    public List<DescribedService> described(List<String> classes) {
        return declared(classes).stream()
                .map(service -> DescribedService.of(service.name(), service.rpcs()))
                .toList();
    }

    /**
     * Returns the members of the methods that services have, as their classes or interfaces declare them. Each method
     * has its name as {@code service/method}.
     *
     * @param classes names of classes and interfaces, and folders of compiled classes
     * @throws IllegalArgumentException in the same cases as {@link #described}
     */
    public Map<String, MethodSchema> schemas(List<String> classes) {
        Map<String, MethodSchema> schemas = new HashMap<>();
        for (PublishedService service : declared(classes)) {
            service.rpcs()
                    .forEach(rpc -> schemas.put(
                            service.name() + "/" + rpc.name(), MethodSchema.of(rpc.request(), rpc.reply())));
        }
        return schemas;
    }

    private List<PublishedService> declared(List<String> classes) {
        return Services.declared(classes, loader, new Schema(LockFile.of(loader)));
    }
}
