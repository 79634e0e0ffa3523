package dev.rpcx.cli;

import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Makes a class loader of the services' classes, which a user names as Java's class paths are written. */
final class ClassPath {
    private ClassPath() {}

    /**
     * Returns a class loader for what {@code RPCX_CLASSPATH} names. Java takes an empty entry of its own class path for
     * the current folder. Here it stands for nothing, so that no class of the current folder is loaded by mistake. A
     * star as the last name of an entry stands for all jars of a folder.
     *
     * @param classPath value of the variable; null if it is not set
     * @param own class loader of this tool, which finds its own classes first
     * @throws Mistake if an entry is not the name of a file
     */
    static ClassLoader loader(@Nullable String classPath, ClassLoader own) {
        List<URL> urls = new ArrayList<>();
        for (String entry : (classPath == null ? "" : classPath).split(File.pathSeparator, -1)) {
            if (!entry.isEmpty()) {
                add(entry, urls);
            }
        }
        return urls.isEmpty() ? own : new URLClassLoader(urls.toArray(URL[]::new), own);
    }

    private static void add(String entry, List<URL> urls) {
        try {
            if (!entry.equals("*") && !entry.endsWith("/*") && !entry.endsWith(File.separator + "*")) {
                urls.add(Path.of(entry).toUri().toURL());
                return;
            }
            Path folder = Path.of(entry.substring(0, entry.length() - 1));
            if (Files.isDirectory(folder)) {
                try (DirectoryStream<Path> jars = Files.newDirectoryStream(folder, "*.{jar,JAR}")) {
                    for (Path jar : jars) {
                        urls.add(jar.toUri().toURL());
                    }
                }
            }
        } catch (InvalidPathException | MalformedURLException e) {
            throw new Mistake("RPCX_CLASSPATH: " + Printable.clipped(entry) + " (expected: the name of a file)");
        } catch (IOException e) {
            throw new Mistake("RPCX_CLASSPATH: " + Printable.clipped(entry) + " (expected: a folder that can be read)");
        }
    }
}
