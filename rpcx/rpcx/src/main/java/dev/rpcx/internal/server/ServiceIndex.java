package dev.rpcx.internal.server;

import dev.rpcx.RPCXServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URL;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Reads the index of services, which RPCX's annotation processor writes at build time. Each jar or folder with services
 * contains a file {@code META-INF/rpcx/services}, and each line of the file names one class.
 */
public final class ServiceIndex {
    private static final String RESOURCE = "META-INF/rpcx/services";

    /** Name of the logger of {@link #logUnprocessed}, by which a program without the processor turns the line off. */
    private static final String LOGGER = "dev.rpcx.processor";

    private static final String PROCESSOR = "RPCX's annotation processor, which javac runs from JDK 23 on only with"
            + " -proc:full, or with RPCX's jar on the processor path";

    /** Whether the line of {@link #logUnprocessed} has been logged in this process. */
    private static final AtomicBoolean LOGGED = new AtomicBoolean();

    private ServiceIndex() {}

    public static List<Class<?>> services() {
        ClassLoader loader = loader();
        List<URL> places = new ArrayList<>();
        Map<String, URL> names = new LinkedHashMap<>();
        try {
            for (URL place : Collections.list(loader.getResources(RESOURCE))) {
                places.add(place);
                for (String line : lines(place)) {
                    names.putIfAbsent(line, place);
                }
            }
        } catch (IOException e) {
            throw new IllegalArgumentException(RESOURCE + ": cannot be read: " + e.getMessage(), e);
        }
        if (names.isEmpty()) {
            throw new IllegalArgumentException("nothing to publish: "
                    + (places.isEmpty() ? "no " + RESOURCE + " on the class path" : places + " name no class")
                    + " (expected: services, or scan(package), or classes with @RPCXServer that were compiled"
                    + " with " + PROCESSOR + ")");
        }
        List<Class<?>> found = new ArrayList<>();
        names.forEach((name, place) -> {
            try {
                found.add(Class.forName(name, false, loader));
            } catch (ClassNotFoundException | LinkageError e) {
                throw new IllegalArgumentException(
                        place + ": class " + name
                                + " cannot be loaded (expected: an index from the same build as the classes)",
                        e);
            }
        });
        return found;
    }

    /**
     * Logs which of these services were compiled without the annotation processor, and what does not hold for them, if
     * there are any. Does so once in a process.
     *
     * @param services classes of services; each has or inherits the annotation {@link RPCXServer}
     */
    public static void logUnprocessed(Collection<Class<?>> services) {
        if (LOGGED.get()) {
            return;
        }
        SortedSet<String> unprocessed = unprocessed(services);
        if (!unprocessed.isEmpty() && LOGGED.compareAndSet(false, true)) {
            System.getLogger(LOGGER)
                    .log(
                            System.Logger.Level.INFO,
                            String.join(", ", unprocessed) + ": compiled without " + PROCESSOR
                                    + ". Calls work all the same. But types that cannot be sent are errors of the start"
                                    + " and not of the compiler, RegistryServer.registry() without arguments does not"
                                    + " find these services, and a native image lacks what reflection needs.");
        }
    }

    /**
     * Returns the names of those services that are in no index of their class loader. For a class that inherits the
     * annotation, this is the name of the class that has it. Classes that no index has are left out: those within
     * methods.
     */
    static SortedSet<String> unprocessed(Collection<Class<?>> services) {
        SortedSet<String> unprocessed = new TreeSet<>();
        Set<ClassLoader> loaders = new LinkedHashSet<>();
        try {
            for (Class<?> service : services) {
                for (Class<?> type = service; type != null; type = type.getSuperclass()) {
                    ClassLoader loader = type.getClassLoader();
                    if (type.getDeclaredAnnotation(RPCXServer.class) != null
                            && type.getCanonicalName() != null
                            && loader != null) {
                        unprocessed.add(type.getName());
                        loaders.add(loader);
                        break;
                    }
                }
            }
            for (ClassLoader loader : loaders) {
                // the places are looked up one by one, and the first one is mostly the program's own jar
                Enumeration<URL> places = loader.getResources(RESOURCE);
                while (!unprocessed.isEmpty() && places.hasMoreElements()) {
                    lines(places.nextElement()).forEach(unprocessed::remove);
                }
            }
        } catch (IOException | LinkageError e) {
            // An index that cannot be read, or a class around a service that cannot be loaded, is no reason not to
            // start: the program may need neither. Nothing is known of the services then.
            unprocessed.clear();
        }
        return unprocessed;
    }

    /**
     * Returns the context class loader of the calling thread, or RPCX's class loader if the thread has none. The
     * services are loaded with this class loader.
     */
    static ClassLoader loader() {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return context == null ? ServiceIndex.class.getClassLoader() : context;
    }

    private static List<String> lines(URL place) throws IOException {
        URLConnection connection = place.openConnection();
        // The JDK would keep a cached jar open, and would go on reading the old file after the jar has been replaced.
        connection.setUseCaches(false);
        try (InputStream in = connection.getInputStream();
                BufferedReader reader = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
            return reader.lines()
                    .map(String::strip)
                    .filter(line -> !line.isEmpty())
                    .toList();
        }
    }
}
