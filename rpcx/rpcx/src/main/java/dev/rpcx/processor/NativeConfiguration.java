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
 * Writes the file from which the GraalVM native-image builder learns which classes are used by reflection. These are
 * services, clients' interfaces, and the types of parameters and results, with all types inside them. The file also
 * names the index of services as a resource. The format is described in GraalVM, <i>Reachability Metadata</i>, JSON
 * schema 1.0 (GraalVM for JDK 17 to 25).
 */
final class NativeConfiguration {
    /**
     * Matches a line of the file if the line names a type. Group 1 of the match is the binary name of the type. Since
     * no line names two types, a build of only some sources can keep exactly those earlier lines whose types still
     * exist.
     */
    private static final Pattern LINE = Pattern.compile("\\{\"type\": ?(?:\\{\"proxy\": ?\\[)?\"([^\"]+)\".*}");

    private final String path;

    /**
     * Lines of the file, sorted, so that the same sources give the same file. The key is the binary name of the type in
     * the line. If the line is for a proxy of this type, {@code " proxy"} is added to the key.
     */
    private final Map<String, String> entries = new TreeMap<>();

    private final Map<String, Element> origins = new TreeMap<>();

    /**
     * Creates a configuration without types.
     *
     * @param module name of the file's folder below {@code META-INF/native-image}. By GraalVM's convention, this is the
     *     group and the artifact of the project, for example {@code com.acme/shop}.
     */
    NativeConfiguration(String module) {
        path = "META-INF/native-image/" + module + "/reachability-metadata.json";
    }

    String path() {
        return path;
    }

    /** Adds a line for the proxy class that {@code Client.create} makes for a client's interface. */
    void proxy(String type, Element origin) {
        entries.put(type + " proxy", "{\"type\": {\"proxy\": [\"" + type + "\"]}}");
        origins.put(type, origin);
    }

    /** Adds a line for a class or interface whose constructors, methods and fields are used by reflection. */
    void members(String type, Element origin) {
        entries.put(
                type,
                "{\"type\": \"" + type + "\", \"allDeclaredConstructors\": true, \"allDeclaredMethods\": true,"
                        + " \"allDeclaredFields\": true}");
        origins.put(type, origin);
    }

    /**
     * Writes the file to the folder of the compiled classes, if any line was added. A line of an earlier build stays in
     * the file as long as the type that the line names exists.
     *
     * @param isThere returns whether the type with a given binary name still exists
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
            // usually there is no such file yet, since this is the first build
        }
    }

    private static @Nullable String type(String line) {
        Matcher matcher = LINE.matcher(line);
        return matcher.find() ? matcher.group(1) : null;
    }
}
