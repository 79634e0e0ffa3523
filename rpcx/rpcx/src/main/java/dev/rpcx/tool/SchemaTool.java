package dev.rpcx.tool;

import static java.nio.file.StandardOpenOption.SYNC;
import static java.nio.file.StandardOpenOption.WRITE;

import dev.rpcx.internal.schema.Compatibility;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.SchemaException;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
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
 * <p>The exit codes are:
 *
 * <ul>
 *   <li>0: the command succeeded.
 *   <li>1: there was an error, such as a wrong argument or a type that cannot be mapped to Protobuf.
 *   <li>2: a lock file that the command compares does not exist.
 *   <li>3: there is a break, that is, a change after which the old or the new version of a service cannot read what the
 *       other version sends. {@code check} also exits with 3 if the lock file is not up to date, or if a type's numbers
 *       depend only on the order of declaration.
 * </ul>
 */
public final class SchemaTool {
    private static final String USAGE = """
            rpcx lock FILE CLASS...            writes or extends these services' lock, beside those of the class path
            rpcx check FILE CLASS...           fails (3) where the services break with the lock, or it is behind them
            rpcx compare OLD NEW               fails (3) where one lock breaks with the other
            rpcx proto PACKAGE CLASS...        prints the services as a .proto; numbers from the class path's locks

            FILE is usually src/main/resources/META-INF/rpcx/schema.lock; CLASS a service's interface or class.\
            """;

    private final PrintStream out;
    private final PrintStream err;
    private final ClassLoader loader;

    /**
     * Creates a tool that runs in the build's own process.
     *
     * @param out where results are printed, such as a {@code .proto}
     * @param err where errors, notes and breaks of compatibility are printed
     * @param loader class loader that finds the classes of the services, and the lock files of the class path
     */
    public SchemaTool(PrintStream out, PrintStream err, ClassLoader loader) {
        this.out = out;
        this.err = err;
        this.loader = loader;
    }

    /** Runs one command, and ends the process with the exit code of the command. */
    public static void main(String[] args) {
        System.exit(new SchemaTool(System.out, System.err, SchemaTool.class.getClassLoader()).run(List.of(args)));
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
            if (args.size() < 3) {
                throw new SchemaException(USAGE);
            }
            return switch (command) {
                case "lock" -> lock(Path.of(args.get(1)), args.subList(2, args.size()));
                case "check" -> check(Path.of(args.get(1)), args.subList(2, args.size()));
                case "compare" -> compare(read(args.get(1)), read(args.get(2)));
                case "proto" -> proto(args.get(1), args.subList(2, args.size()));
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

    private static LockFile read(String file) throws IOException {
        return LockFile.parse(Files.readString(Path.of(file)), file);
    }

    private List<PublishedService> services(List<String> classes, Schema schema) {
        List<PublishedService> services = new ArrayList<>();
        for (String name : classes) {
            try {
                services.add(PublishedService.of(Class.forName(name, false, loader), schema));
            } catch (ClassNotFoundException e) {
                throw new SchemaException(name + ": no such class on the class path (with rpcx: set RPCX_CLASSPATH)");
            }
        }
        refuseNamesakes(services);
        return services;
    }

    /**
     * Refuses two classes or interfaces that count as the same service only because their simple names are equal. Two
     * unrelated types can have the same simple name by chance.
     */
    private static void refuseNamesakes(List<PublishedService> services) {
        Map<String, PublishedService> named = new HashMap<>();
        for (PublishedService service : services) {
            PublishedService other = service.isNamedByItsClass() ? named.put(service.name(), service) : null;
            if (other != null && other.type() != service.type()) {
                throw new SchemaException(other.type().getName() + " and "
                        + service.type().getName() + " are both the service " + service.name()
                        + " by their simple names (expected: @RPCXClient or @RPCXServer, which give it a name)");
            }
        }
    }

    /**
     * Returns the requests and replies of all services. The key is the name in a lock file, for example
     * {@code greeter/hello.request}. If the class of a service, with {@code @RPCXServer}, is among {@code services},
     * only the requests and replies of this class are returned for the service. If the class is missing, those of the
     * other types of the service, such as a client's interface, are returned.
     *
     * @throws SchemaException if two classes or interfaces of one service cannot read each other's calls
     */
    private Map<String, LockFile.Sent> calls(List<PublishedService> services, Schema schema) {
        Map<String, LockFile.Sent> calls = new LinkedHashMap<>();
        Map<String, PublishedService> owners = new HashMap<>();
        List<PublishedService> ordered = new ArrayList<>(services);
        ordered.sort(Comparator.comparing(service -> !service.isServed()));
        for (PublishedService service : ordered) {
            boolean isOfOthers = !service.isServed()
                    && services.stream()
                            .anyMatch(each -> each.isServed() && each.name().equals(service.name()));
            service.calls().forEach((name, sent) -> {
                if (isOfOthers && !calls.containsKey(name)) {
                    if (name.endsWith(".request")) {
                        err.println("note: " + service.type().getName() + " calls "
                                + name.substring(0, name.lastIndexOf('.')) + ", which no class of the service publishes"
                                + " (expected: @Method there)");
                    }
                    return;
                }
                LockFile.Sent known = calls.putIfAbsent(name, sent);
                PublishedService owner = owners.putIfAbsent(name, service);
                if (known != null && owner != null) {
                    compareTypes(schema, name, owner, known, service, sent);
                }
            });
        }
        return calls;
    }

    /**
     * Compares what two classes or interfaces of one service send in a request or reply, and prints a note about what
     * one of them sends and the other one cannot read. Both are of the same version of the service, so the lock file of
     * an earlier version is not used.
     *
     * @param name name of the request or reply in a lock file
     * @param known what {@code owner} sends
     * @param sent what {@code other} sends
     * @throws SchemaException if neither of the two can read what the other one sends
     */
    private void compareTypes(
            Schema schema,
            String name,
            PublishedService owner,
            LockFile.Sent known,
            PublishedService other,
            LockFile.Sent sent) {
        LockFile one = LockFile.none().extended(schema, Map.of(name, known));
        LockFile two = one.extended(schema, Map.of(name, sent));
        boolean isOfClient = owner.isServed() && !other.isServed();
        Compatibility.Direction read =
                name.endsWith(".reply") ? Compatibility.Direction.BACKWARD : Compatibility.Direction.FORWARD;
        for (Compatibility.Break each : Compatibility.between(one, two)) {
            String types =
                    owner.type().getName() + " and " + other.type().getName() + " are both the service " + owner.name();
            String change = "from the one to the other " + each.where() + " " + each.what();
            if (each.direction() == Compatibility.Direction.BOTH) {
                throw new SchemaException(types + ", and do not read each other (expected: the same parameters in one"
                        + " order, and the same result): " + change);
            }
            // A client sends requests and reads replies, so a client's type has to fit the service's class only in one
            // direction. Two clients' types are compared only if the service's class is not given. Each of them can
            // differ from the class, so changes in both directions are printed.
            if (!isOfClient || each.direction() == read) {
                err.println("note: " + types + ": " + change);
            }
        }
    }

    /**
     * Returns a schema that gives new numbers to members that are in no lock file. Types of libraries get their numbers
     * from the libraries' lock files, as in a client or server.
     */
    private Schema extending(LockFile own, Path file) {
        return Schema.extending(LockFile.of(loader, own, file.toString()));
    }

    /**
     * Prints a note for each type of a library if no lock file of the library has all numbers of the type. The note is
     * needed because other users of the library do not see this project's lock file. They could give the type other
     * numbers. There are two kinds of library:
     *
     * <ul>
     *   <li>A jar. Its lock file is the one in the jar.
     *   <li>The folder of another project. Its lock files are all those of the class path that are in folders of other
     *       projects. If {@link #moduleOf} returns null, this project's folder is not known, so the types in folders
     *       are skipped.
     * </ul>
     */
    private void noteForeignTypes(Schema schema, Path file) throws IOException {
        Path module = moduleOf(file);
        Map<Path, List<LockFile>> locks = new HashMap<>();
        for (Compatibility.Numbered each : Compatibility.numberedByLocks(schema)) {
            Path place = placeOf(each.type());
            boolean isFolder = place != null && Files.isDirectory(place);
            if (place == null || isFolder && (module == null || place.startsWith(module))) {
                continue;
            }
            List<LockFile> known = locks.get(place);
            if (known == null) {
                known = isFolder ? locksBeside(module) : List.of(lockIn(place));
                locks.put(place, known);
            }
            if (known.stream().noneMatch(each::isIn)) {
                err.println("note: " + each.entry().type() + " comes from "
                        + (isFolder ? place : place.getFileName())
                        + ", which has no lock for all of it, so others who use it may give other numbers"
                        + " (expected: " + LockFile.RESOURCE + " there, or @Field)");
            }
        }
    }

    /**
     * Prints a note if this lock file contradicts another lock file of the class path. No client or server could start
     * with both files. The cause can be a new {@code @Field}, or an older copy of this lock file.
     */
    private void noteContradictions(LockFile own, Path file) {
        try {
            LockFile.of(loader, own, file.toString());
        } catch (SchemaException e) {
            err.println("note: no program can start with both of these locks: " + e.getMessage());
        }
    }

    /**
     * Returns the folder of the project to which a lock file belongs. The folder is the one that contains the last
     * {@code src} of the lock file's path. For {@code /shop/src/main/resources/META-INF/rpcx/schema.lock}, the folder
     * is {@code /shop}. Returns null if the path has no {@code src}.
     */
    private static @Nullable Path moduleOf(Path file) {
        Path path = file.toAbsolutePath().normalize();
        for (int i = path.getNameCount() - 1; i > 0; i--) {
            if (path.getName(i).toString().equals("src")) {
                return path.getRoot().resolve(path.subpath(0, i));
            }
        }
        return null;
    }

    /**
     * Returns the lock files of the class path that are in folders of other projects. The whole class path is searched,
     * since a build can put a lock file and the classes into different folders.
     *
     * @param module folder of this project, whose lock files are left out; if null, no lock file is left out
     */
    private List<LockFile> locksBeside(@Nullable Path module) throws IOException {
        List<LockFile> all = new ArrayList<>();
        for (URL url : Collections.list(loader.getResources(LockFile.RESOURCE))) {
            Path path = pathOf(url);
            if (path != null && (module == null || !path.startsWith(module))) {
                all.add(read(path.toString()));
            }
        }
        return all;
    }

    /**
     * Returns the jar or folder from which a class was loaded. Returns null for a class from another place, such as the
     * JDK.
     */
    private static @Nullable Path placeOf(Class<?> type) {
        CodeSource source = type.getProtectionDomain().getCodeSource();
        return source == null || source.getLocation() == null ? null : pathOf(source.getLocation());
    }

    private static @Nullable Path pathOf(URL url) {
        try {
            return url.getProtocol().equals("file") ? Path.of(url.toURI()) : null;
        } catch (URISyntaxException | IllegalArgumentException e) {
            return null;
        }
    }

    private static LockFile lockIn(Path jar) throws IOException {
        try (ZipFile file = new ZipFile(jar.toFile())) {
            ZipEntry entry = file.getEntry(LockFile.RESOURCE);
            if (entry == null) {
                return LockFile.none();
            }
            try (InputStream in = file.getInputStream(entry)) {
                return LockFile.parse(
                        new String(in.readAllBytes(), StandardCharsets.UTF_8), jar + "!/" + LockFile.RESOURCE);
            }
        }
    }

    private int lock(Path file, List<String> classes) throws IOException {
        String text = Files.exists(file) ? Files.readString(file) : null;
        LockFile before = text == null ? LockFile.none() : LockFile.parse(text, file.toString());
        if (text != null && before.entries().isEmpty()) {
            // a lock file without any type is refused, since every type would get new numbers
            throw new SchemaException(file + " has no type in it (expected: what `rpcx lock` has written, or no file)");
        }
        Schema schema = extending(before, file);
        List<PublishedService> services = services(classes, schema);
        Map<String, LockFile.Sent> calls = calls(services, schema);
        LockFile after = before.extended(schema, calls);
        int status = report(breaks(before, after, Compatibility.perhapsRenamed(before, after), services, calls));
        if (status != 0) {
            err.println(file + " is not changed (expected where a break is wanted: its lines changed by hand, since a"
                    + " new lock would give other numbers)");
        } else {
            Path folder = file.toAbsolutePath().getParent();
            if (folder != null && !Files.isDirectory(folder)) {
                Files.createDirectories(folder);
                err.println("note: made the folder " + folder);
            }
            if (!after.text().equals(text)) {
                write(file, text, after.text());
            }
            noteContradictions(after, file);
            noteForeignTypes(schema, file);
            out.println(file + ": " + after.entries().size() + " types");
        }
        return status;
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

    private int check(Path file, List<String> classes) throws IOException {
        LockFile locked = read(file.toString());
        Schema schema = extending(locked, file);
        List<PublishedService> services = services(classes, schema);
        Map<String, LockFile.Sent> calls = calls(services, schema);
        LockFile now = locked.extended(schema, calls);
        List<Compatibility.Renaming> renamed = Compatibility.perhapsRenamed(locked, now);
        int status = report(breaks(locked, now, renamed, services, calls));
        for (String type : Compatibility.unlocked(schema)) {
            err.println(type
                    + ": without @Field and lock, its numbers depend on the order of declaration; run `rpcx lock`");
            status = 3;
        }
        if (status == 0 && !now.text().equals(locked.text())) {
            err.println(file + ": behind the classes, though nothing breaks; "
                    + (renamed.isEmpty() ? "" : "once you have done what the note says, ")
                    + "run `rpcx lock` and commit it");
            status = 3;
        }
        noteForeignTypes(schema, file);
        for (String type : Compatibility.withoutUnknown(schema)) {
            err.println("note: " + type + " has nothing that stands for what a newer peer sends (@Unknown)");
        }
        return status;
    }

    private int compare(LockFile before, LockFile after) {
        noteRenamed(Compatibility.perhapsRenamed(before, after));
        return report(Compatibility.between(before, after));
    }

    private void noteRenamed(List<Compatibility.Renaming> renamed) {
        for (Compatibility.Renaming each : renamed) {
            err.println("note: " + each.type() + ": "
                    + (each.isInPlace()
                            ? each.added() + " stands where " + each.removed()
                                    + " stood; if that is not a new name for the"
                                    + " same, old and new versions read one as the other (expected then: a number of"
                                    + " its own, by a place at the end or by @Field)"
                            : each.removed() + " is gone and " + each.added()
                                    + " is new; if that is a new name for the same, old and new versions do not read it"
                                    + " from each other (expected then: the new name by hand in the lock's line, or"
                                    + " @Field)"));
        }
    }

    /**
     * Prints a note with the names of services that are in the lock file, but not among {@code services}. The calls of
     * these services are not compared.
     */
    private void noteMissing(LockFile before, List<PublishedService> services) {
        Set<String> names = new TreeSet<>();
        for (String call : before.entries().keySet()) {
            if (call.contains("/") && services.stream().noneMatch(service -> service.owns(call))) {
                names.add(call.substring(0, call.lastIndexOf('/')));
            }
        }
        if (!names.isEmpty()) {
            err.println("note: none of these classes is the service " + String.join(", ", names)
                    + " of the lock; if it has been renamed or removed, its callers get NOT_FOUND (expected: all"
                    + " classes of the lock's services; the lines of a removed one taken out by hand)");
        }
    }

    /**
     * Returns the changes after which one version of a service cannot read what the other version sends. One such
     * change is that a service's class no longer publishes a method. A comparison of the two lock files does not find
     * this change, because {@code after} still has the request and the reply of the method. Also prints notes on
     * members that were perhaps renamed, on services that are missing, and on parameters without names.
     *
     * @param before lock file of the older version
     * @param after lock file of the newer version, made from {@code before}. It still has the members that were
     *     removed, and marks them as removed
     * @param calls requests and replies of the newer version, each under a name such as {@code greeter/hello.request}
     */
    private List<Compatibility.Break> breaks(
            LockFile before,
            LockFile after,
            List<Compatibility.Renaming> renamed,
            List<PublishedService> services,
            Map<String, LockFile.Sent> calls) {
        List<Compatibility.Break> breaks = new ArrayList<>(Compatibility.between(before, after));
        noteRenamed(renamed);
        noteMissing(before, services);
        for (PublishedService service : services) {
            for (String method : service.unnamed()) {
                err.println("note: " + method
                        + " has no names of its parameters, so those that change places are not seen (expected: javac"
                        + " -parameters)");
            }
            for (String call : before.entries().keySet()) {
                // if the service's class no longer has the call, the call counts as removed, even if a client's
                // interface still has it
                if (service.isServed() && service.owns(call) && !calls.containsKey(call)) {
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
        expectProtobuf();
        ProtoFile file = new ProtoFile(protoPackage);
        for (PublishedService service : services(classes, new Schema(LockFile.of(loader)))) {
            file.service(service.name(), service.rpcs());
        }
        out.print(file.text());
        return 0;
    }

    /**
     * Throws a {@link SchemaException} if protobuf-java is not on the class path. RPCX does not depend on
     * protobuf-java, and only the export of a {@code .proto} needs that library.
     */
    private static void expectProtobuf() {
        try {
            Class.forName("com.google.protobuf.DescriptorProtos", false, ProtoFile.class.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new SchemaException("the export of a .proto needs protobuf-java, which is not on the class path"
                    + " (expected: the dependency com.google.protobuf:protobuf-java)");
        }
    }
}
