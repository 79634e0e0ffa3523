package dev.rpcx.maven;

import dev.rpcx.tool.SchemaTool;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import org.apache.maven.plugin.AbstractMojo;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugins.annotations.Parameter;
import org.jspecify.annotations.Nullable;

/** What the goals have in common: which services there are, where their lock file is, and how the tool is run. */
@SuppressWarnings("NullAway.Init") // Maven sets the parameters
abstract class SchemaGoal extends AbstractMojo {
    private static final String NOTE = "note: ";

    /** The lock file, which is committed with the project. */
    @Parameter(
            property = "rpcx.lock",
            defaultValue = "${project.basedir}/src/main/resources/META-INF/rpcx/schema.lock",
            required = true)
    File lock;

    /**
     * Names of the services' classes and interfaces. Without this parameter they are the project's classes that have
     * {@code @RPCXServer} themselves, and its interfaces that have {@code @RPCXClient}.
     */
    @Parameter(property = "rpcx.services")
    List<String> services = List.of();

    /** Folder of the project's compiled classes. */
    @Parameter(defaultValue = "${project.build.outputDirectory}", readonly = true, required = true)
    File classes;

    /** Folders and jars from which the classes are loaded, and whose lock files count. */
    @Parameter(defaultValue = "${project.compileClasspathElements}", readonly = true, required = true)
    List<String> classPath;

    @Override
    public final void execute() throws MojoExecutionException, MojoFailureException {
        try (URLClassLoader loader = new URLClassLoader(urls(), SchemaTool.class.getClassLoader())) {
            Printed printed = new Printed();
            SchemaTool tool = new SchemaTool(printed.out, printed.err, loader, question -> {
                printed.log();
                return ask().apply(question);
            });
            List<String> named = services.isEmpty() ? tool.servicesIn(classes.toPath()) : services;
            if (named.isEmpty() && !lock.exists()) {
                getLog().info("no class with @RPCXServer and no interface with @RPCXClient, so there is no lock");
                return;
            }
            // If there is a lock and no service any more, the tool looks into the folder, and says what is wrong.
            run(named.isEmpty() ? List.of(classes.getPath()) : named, args -> {
                int status = tool.run(args);
                printed.log();
                return status;
            });
        } catch (IOException | UncheckedIOException | IllegalArgumentException e) {
            throw new MojoExecutionException(e.getMessage(), e);
        }
    }

    /**
     * Runs the commands of the tool.
     *
     * @param named names of the services' classes and interfaces
     * @param tool runs one command, logs what it prints, and returns its exit code
     */
    abstract void run(List<String> named, ToIntFunction<List<String>> tool)
            throws MojoExecutionException, MojoFailureException;

    /** Returns what asks the person at the terminal; see {@link SchemaTool#terminal}. */
    abstract Function<String, @Nullable String> ask();

    /** Returns a command of the tool, its first argument, and its other arguments, as one list. */
    static List<String> command(String command, List<String> options, String first, List<String> others) {
        List<String> args = new ArrayList<>(List.of(command));
        args.addAll(options);
        args.add(first);
        args.addAll(others);
        return args;
    }

    private URL[] urls() throws MalformedURLException {
        List<URL> urls = new ArrayList<>();
        for (String entry : classPath) {
            urls.add(new File(entry).toURI().toURL());
        }
        return urls.toArray(URL[]::new);
    }

    /** What the tool has printed and Maven has not logged yet. */
    private final class Printed {
        private final ByteArrayOutputStream said = new ByteArrayOutputStream();
        private final ByteArrayOutputStream complained = new ByteArrayOutputStream();
        final PrintStream out = new PrintStream(said, true, StandardCharsets.UTF_8);
        final PrintStream err = new PrintStream(complained, true, StandardCharsets.UTF_8);

        void log() {
            log(said, getLog()::info);
            log(complained, line -> {
                if (line.startsWith(NOTE)) {
                    getLog().warn(line.substring(NOTE.length()));
                } else {
                    getLog().error(line);
                }
            });
        }

        private void log(ByteArrayOutputStream printed, Consumer<String> log) {
            printed.toString(StandardCharsets.UTF_8).lines().forEach(log);
            printed.reset();
        }
    }
}
