package dev.rpcx.processor;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.annotation.processing.Filer;
import javax.lang.model.element.Element;
import javax.tools.FileObject;
import javax.tools.StandardLocation;
import org.jspecify.annotations.Nullable;

/**
 * Writes the file that tells the GraalVM native-image builder which classes are used by reflection: services, clients'
 * interfaces, and types of parameters and results. Source: GraalVM, <i>Reachability Metadata</i>, JSON schema 1.0
 * (GraalVM for JDK 17 to 25).
 */
final class NativeConfiguration {
    /**
     * Pattern of a line of the file that has a type. Each type has a separate line, so that a build can read what an
     * earlier, partial build wrote.
     */
    private static final Pattern LINE = Pattern.compile("\\{\"type\": ?(?:\\{\"proxy\": ?\\[)?\"([^\"]+)\".*}");

    private final String path;

    /**
     * Lines of the file, by the name of the type; for a proxy, this name followed by " proxy". Sorted, so that the same
     * sources give the same file.
     */
    private final Map<String, String> entries = new TreeMap<>();

    private final Map<String, Element> origins = new TreeMap<>();

    /**
     * Creates a configuration without types.
     *
     * @param module folder below {@code META-INF/native-image}; by GraalVM's convention, group and artifact
     */
    NativeConfiguration(String module) {
        path = "META-INF/native-image/" + module + "/reachability-metadata.json";
    }

    String path() {
        return path;
    }

    /** Adds the proxy that {@code Client.create} makes for a client's interface. */
    void proxy(String type, Element origin) {
        entries.put(type + " proxy", "{\"type\": {\"proxy\": [\"" + type + "\"]}}");
        origins.put(type, origin);
    }

    /** Adds a class or interface whose members are looked up and called by reflection. */
    void members(String type, Element origin) {
        entries.put(
                type,
                "{\"type\": \"" + type + "\", \"allDeclaredConstructors\": true, \"allDeclaredMethods\": true,"
                        + " \"allDeclaredFields\": true}");
        origins.put(type, origin);
    }

    /**
     * Writes the file to the folder of the compiled classes. Keeps lines of earlier builds whose types still exist.
     *
     * @param isThere says whether the type with this binary name still exists
     */
    void write(Filer filer, Predicate<String> isThere) throws IOException {
        if (entries.isEmpty()) {
            return;
        }
        keepEarlier(filer, isThere);
        FileObject file = filer.createResource(
                StandardLocation.CLASS_OUTPUT, "", path, origins.values().toArray(new Element[0]));
        try (Writer out = file.openWriter()) {
            out.write("{\n  \"reflection\": [\n    ");
            out.write(String.join(",\n    ", entries.values()));
            out.write("\n  ],\n  \"resources\": [\n    {\"glob\": \"META-INF/rpcx/*\"}\n  ]\n}\n");
        }
    }

    private void keepEarlier(Filer filer, Predicate<String> isThere) {
        try {
            FileObject file = filer.getResource(StandardLocation.CLASS_OUTPUT, "", path);
            try (BufferedReader lines = new BufferedReader(file.openReader(true))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    String type = type(line);
                    if (type != null && isThere.test(type)) {
                        String entry = line.strip().replaceAll(",$", "");
                        entries.putIfAbsent(entry.contains("\"proxy\"") ? type + " proxy" : type, entry);
                    }
                }
            }
        } catch (IOException | IllegalArgumentException none) {
            // there is no such file yet: this is the first build
        }
    }

    private static @Nullable String type(String line) {
        Matcher matcher = LINE.matcher(line);
        return matcher.find() ? matcher.group(1) : null;
    }
}
