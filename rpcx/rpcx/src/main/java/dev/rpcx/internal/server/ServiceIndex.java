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
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Reads the index of services, which RPCX's annotation processor writes at build time. Each jar or folder with services
 * contains a file {@code META-INF/rpcx/services}, and each line of the file names one class. A class is left out if a
 * subclass with the same service name is in the index too.
 */
public final class ServiceIndex {
    private static final String RESOURCE = "META-INF/rpcx/services";

    private static final System.Logger LOGGER = System.getLogger("dev.rpcx.Server");

    private ServiceIndex() {}

    public static List<Class<?>> services() {
        ClassLoader loader = loader();
        Map<String, URL> names = new LinkedHashMap<>();
        try {
            for (URL place : Collections.list(loader.getResources(RESOURCE))) {
                for (String line : lines(place)) {
                    names.putIfAbsent(line, place);
                }
            }
        } catch (IOException e) {
            throw new IllegalArgumentException(RESOURCE + ": cannot be read: " + e.getMessage(), e);
        }
        if (names.isEmpty()) {
            throw new IllegalArgumentException("nothing to publish: no " + RESOURCE + " on the class path (expected:"
                    + " services, or scan(package), or a build with RPCX's annotation processor)");
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
        return withoutReplaced(found);
    }

    /**
     * Returns the classes that are not replaced. A class is replaced by a subclass with the same service name, because
     * the subclass inherits the methods that its superclass publishes, and a server cannot publish both classes. The
     * log names each replaced class and the subclass that replaces it.
     */
    static List<Class<?>> withoutReplaced(List<Class<?>> services) {
        List<Class<?>> left = new ArrayList<>();
        for (Class<?> type : services) {
            Optional<Class<?>> subclass =
                    services.stream().filter(other -> isReplacedBy(type, other)).findFirst();
            if (subclass.isEmpty()) {
                left.add(type);
            } else {
                LOGGER.log(
                        System.Logger.Level.INFO,
                        "{0} is not published, since its subclass {1} has the same service name",
                        type.getName(),
                        subclass.get().getName());
            }
        }
        return left;
    }

    private static boolean isReplacedBy(Class<?> type, Class<?> other) {
        if (type == other || !type.isAssignableFrom(other)) {
            return false;
        }
        RPCXServer own = type.getAnnotation(RPCXServer.class);
        RPCXServer others = other.getAnnotation(RPCXServer.class);
        // an index that is behind its classes can name a class without the annotation
        return own != null && others != null && own.value().equals(others.value());
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
