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
 * Reads the index that the annotation processor has written: one file in each jar or folder that has services, with one
 * class a line.
 */
public final class ServiceIndex {
    private static final String RESOURCE = "META-INF/rpcx/services";

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
                        place + ": class " + name + " cannot be loaded (expected: an index as new as the classes)", e);
            }
        });
        return found;
    }

    /**
     * The context class loader of the thread, or RPCX's own on a thread that has none. Services that the loader does
     * not find are missed at the start, and not in silence later.
     */
    static ClassLoader loader() {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return context == null ? ServiceIndex.class.getClassLoader() : context;
    }

    private static List<String> lines(URL place) throws IOException {
        URLConnection connection = place.openConnection();
        // With a cache the JDK would keep the jar open, and read the old one when another has replaced it.
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
