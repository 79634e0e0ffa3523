package dev.rpcx.internal.server;

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

/**
 * Reads the index of services, which RPCX's annotation processor writes at build time. Each jar or folder with services
 * contains a file {@code META-INF/rpcx/services}, and each line of the file names one class.
 */
public final class ServiceIndex {
    private static final String RESOURCE = "META-INF/rpcx/services";

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
                    + " with RPCX's annotation processor)");
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
