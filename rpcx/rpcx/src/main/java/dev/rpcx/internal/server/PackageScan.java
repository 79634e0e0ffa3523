package dev.rpcx.internal.server;

import dev.rpcx.RPCXServer;
import java.io.IOException;
import java.net.JarURLConnection;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLConnection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.stream.Stream;

/**
 * Finds the services, that is, the classes that have or inherit the annotation {@link RPCXServer}, in a package and in
 * all packages below it. An abstract class that only inherits the annotation is left out, since it cannot be
 * instantiated. A class is also left out if a subclass with the same service name is found. The scan loads all classes
 * of these packages, but does not initialize them. A jar is searched only if it has a manifest, or an entry for the
 * folder of the package.
 */
public final class PackageScan {
    private PackageScan() {}

    public static List<Class<?>> services(String packageName) {
        if (packageName.isEmpty()) {
            // Every class on the class path is in the default package or below it, so a scan would have to load all.
            throw new IllegalArgumentException(
                    "package \"\": the default package is not scanned (expected: the name of a package, or its classes"
                            + " one by one, as in RegistryServer.registry(new Greetings()))");
        }
        ClassLoader loader = ServiceIndex.loader();
        String folder = packageName.replace('.', '/');
        TreeSet<String> names = new TreeSet<>();
        try {
            for (URL place : Collections.list(loader.getResources(folder))) {
                URLConnection connection = place.openConnection();
                if (connection instanceof JarURLConnection jar) {
                    addEntries(jar, folder, names);
                } else if (place.getProtocol().equals("file")) {
                    Path root = Path.of(place.toURI());
                    try (Stream<Path> files = Files.walk(root)) {
                        files.map(file -> folder + "/"
                                        + root.relativize(file).toString().replace('\\', '/'))
                                .forEach(names::add);
                    }
                }
            }
            // The class loader does not find the folder in a jar that has no entries for folders. It finds such a jar
            // by the manifest, which almost every jar has.
            for (URL manifest : Collections.list(loader.getResources(JarFile.MANIFEST_NAME))) {
                if (manifest.openConnection() instanceof JarURLConnection jar) {
                    addEntries(jar, folder, names);
                }
            }
        } catch (IOException | URISyntaxException e) {
            throw new IllegalArgumentException("package " + packageName + ": cannot be scanned: " + e.getMessage(), e);
        }
        List<Class<?>> found = new ArrayList<>();
        for (String name : names) {
            if (name.startsWith(folder + "/") && name.endsWith(".class") && !name.endsWith("-info.class")) {
                Class<?> type = load(
                        name.substring(0, name.length() - ".class".length()).replace('/', '.'), loader);
                if (type.getDeclaredAnnotation(RPCXServer.class) != null) {
                    found.add(type);
                }
            }
        }
        if (found.isEmpty()) {
            throw new IllegalArgumentException("package " + packageName + ": no class with @RPCXServer in it");
        }
        return found;
    }

    private static void addEntries(JarURLConnection jar, String folder, Set<String> names) throws IOException {
        // The JDK would keep a cached jar open, and would go on reading the old file after the jar has been replaced.
        jar.setUseCaches(false);
        try (JarFile all = jar.getJarFile()) {
            all.stream()
                    .map(entry -> entry.getName())
                    .filter(name -> name.startsWith(folder + "/"))
                    .forEach(names::add);
        }
    }

    private static Class<?> load(String name, ClassLoader loader) {
        try {
            return Class.forName(name, false, loader);
        } catch (ClassNotFoundException | LinkageError e) {
            throw new IllegalArgumentException("class " + name + ": cannot be loaded", e);
        }
    }
}
