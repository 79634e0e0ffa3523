package dev.rpcx;

import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Compiles sources in a process of its own, with what users compile theirs with, and makes the calls that these sources
 * make. They have a class {@code Shop} that is a service, an interface {@code ShopClient} to it, and a class
 * {@code Calls} with a static method {@code made}, which takes a client and returns a list of texts.
 */
public final class CompiledElsewhere {
    /** RPCX's classes, with its annotation processor. */
    public static final String RPCX = Path.of("target", "classes").toString();

    private CompiledElsewhere() {}

    /** What a compiler has said, and its exit code. */
    public record Said(int exit, String text) {}

    /** Returns the path of a program of this JDK. */
    public static String program(String name) {
        return Path.of(System.getProperty("java.home"), "bin", name).toString();
    }

    /** Returns the libraries of this class path whose file names have one of these beginnings, as a class path. */
    public static String libraries(String... beginnings) {
        String found = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> Arrays.stream(beginnings)
                        .anyMatch(beginning -> new File(entry).getName().startsWith(beginning)))
                .collect(Collectors.joining(File.pathSeparator));
        if (found.isEmpty()) {
            throw new AssertionError("none of " + Arrays.toString(beginnings) + " on the class path");
        }
        return found;
    }

    /** Joins parts of a class path. */
    public static String path(String... parts) {
        return String.join(File.pathSeparator, parts);
    }

    /** Runs a compiler and waits for its end. */
    public static Said run(List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Said(process.waitFor(), text);
    }

    /** Serves the class {@code Shop} of a package, and returns the texts of {@code Calls.made}. */
    public static List<String> calls(Path classes, String packageName) throws Exception {
        try (URLClassLoader loader =
                        new URLClassLoader(new URL[] {classes.toUri().toURL()});
                Server server = Server.builder(RegistryServer.registry(loader.loadClass(packageName + ".Shop")))
                        .inProcess()
                        .port(0)
                        .build();
                Client client = Client.builder().inProcess().build()) {
            server.start();
            Class<?> type = loader.loadClass(packageName + ".ShopClient");
            Object shop = client.create(type, "here", server.port());
            Object made = loader.loadClass(packageName + ".Calls")
                    .getMethod("made", type)
                    .invoke(null, shop);
            List<String> texts = new ArrayList<>();
            ((List<?>) made).forEach(each -> texts.add(String.valueOf(each)));
            return texts;
        }
    }
}
