package dev.rpcx.tool;

import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.schema.SchemaException;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** Loads the classes and interfaces of services, which a command names one by one or by their folders. */
final class ServiceClasses {
    /** Texts of which a compiled class has one if it has one of the two annotations. A few other classes have them. */
    private static final List<String> MARKS =
            List.of(RPCXServer.class.descriptorString(), RPCXClient.class.descriptorString());

    private static final String SUFFIX = ".class";

    private ServiceClasses() {}

    /**
     * Loads classes without initializing them.
     *
     * @param named names of classes and interfaces, and folders of compiled classes: see {@link #in}. A name with a
     *     slash counts as a folder. A folder that does not exist has no classes, since a build can name folders for
     *     languages that the project does not use.
     * @throws SchemaException if the class loader does not find a class, or if nothing is found at all
     */
    static List<Class<?>> load(List<String> named, ClassLoader loader) {
        Set<Class<?>> classes = new LinkedHashSet<>();
        for (String each : named) {
            if (each.contains("/") || each.contains(File.separator) || Files.isDirectory(Path.of(each))) {
                classes.addAll(in(Path.of(each), loader));
            } else {
                classes.add(load(each, loader));
            }
        }
        if (classes.isEmpty()) {
            throw new SchemaException(String.join(", ", named)
                    + ": no service (expected: a folder of compiled classes, some with @RPCXServer or @RPCXClient)");
        }
        return List.copyOf(classes);
    }

    /**
     * Loads the classes of a folder that have {@code @RPCXServer} themselves and the interfaces that have
     * {@code @RPCXClient}, sorted by name. Returns none if the folder does not exist.
     */
    static List<Class<?>> in(Path folder, ClassLoader loader) {
        List<Class<?>> classes = new ArrayList<>();
        for (String name : marked(folder)) {
            Class<?> type = load(name, loader);
            if (type.getDeclaredAnnotation(RPCXServer.class) != null
                    || type.getDeclaredAnnotation(RPCXClient.class) != null) {
                classes.add(type);
            }
        }
        return classes;
    }

    private static Class<?> load(String name, ClassLoader loader) {
        try {
            return Class.forName(name, false, loader);
        } catch (ClassNotFoundException e) {
            throw new SchemaException(name + ": no such class on the class path (with rpcx: set RPCX_CLASSPATH)");
        }
    }

    /** Returns the names of the classes in a folder that have one of {@link #MARKS}, sorted. */
    private static List<String> marked(Path folder) {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        List<String> names = new ArrayList<>();
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                String name = folder.relativize(file).toString().replace('\\', '/');
                if (name.endsWith(SUFFIX) && isMarked(file)) {
                    names.add(name.substring(0, name.length() - SUFFIX.length()).replace('/', '.'));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException("reading the classes in " + folder, e);
        }
        return names.stream().sorted().toList();
    }

    private static boolean isMarked(Path file) throws IOException {
        String text = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
        return MARKS.stream().anyMatch(text::contains);
    }
}
