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
 * Reads the index of services that the annotation processor has written. Each jar or folder that contains services has
 * one file of this index. Each line of the file names one class.
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
                        place + ": class " + name
                                + " cannot be loaded (expected: an index from the same build as the classes)",
                        e);
            }
        });
        return found;
    }

    /**
     * Returns the context class loader of the calling thread, or RPCX's class loader if the thread has none. If the
     * loader does not find a service of the index, the server does not start, and the error names the service.
     */
    static ClassLoader loader() {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return context == null ? ServiceIndex.class.getClassLoader() : context;
    }

    private static List<String> lines(URL place) throws IOException {
        URLConnection connection = place.openConnection();
        // A cached jar would stay open, and the old file would be read after the jar has been replaced.
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
