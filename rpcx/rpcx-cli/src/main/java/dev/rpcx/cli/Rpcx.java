package dev.rpcx.cli;

import dev.rpcx.Endpoint;
import dev.rpcx.RPCXException;
import dev.rpcx.schema.SchemaException;
import dev.rpcx.tool.SchemaTool;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExecutionException;
import picocli.CommandLine.Help;
import picocli.CommandLine.MaxValuesExceededException;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.OverwrittenOptionException;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * The command {@code rpcx}, with a method for each of its commands. A mistake in what was asked is printed in one line,
 * and nothing is sent. Everything that is printed is {@link Printable}, whoever wrote it.
 */
@Command(
        name = "rpcx",
        versionProvider = Version.class,
        mixinStandardHelpOptions = true,
        scope = ScopeType.INHERIT,
        description = {
            "Inspects and calls servers of RPCX, and keeps the numbers of messages in locks. Options of list, describe,"
                    + " health and call, such as --tls and --token, may stand before the command, too.",
            ""
        },
        parameterListHeading = "%n",
        commandListHeading = "%nCommands:%n",
        abbreviateSynopsis = true,
        synopsisSubcommandLabel = "COMMAND",
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:good",
            "1:a mistake in what was asked",
            "2:the server is not reached and nothing was executed there, or there is no lock to compare with",
            "3:the call failed or may have been executed, what came cannot be shown or written, the schema breaks with"
                    + " its lock or is not in it, or the lock is behind the classes"
        },
        footer = {"", "Classes come from RPCX_CLASSPATH."})
public final class Rpcx {
    static final int BAD_INPUT = 1;
    static final int UNWELL = 2;
    static final int FAILED = 3;

    /** Commands that have the options of {@link Remote}. */
    private static final Set<String> REMOTE = Set.of("list", "describe", "health", "call");

    private static final String ADDRESS = "Where the server listens; IPv6 in brackets, [::1]:9000.";
    private static final String LOCK = "The lock, usually src/main/resources/META-INF/rpcx/schema.lock.";
    private static final String OF_CLASSES = "Take the descriptions of services from these classes, and do not ask the"
            + " server; may be given several times.";
    private static final String CLASS = "Interface or class of a service, or a folder of compiled classes, of which"
            + " those with @RPCXServer or @RPCXClient count.";

    private final InputStream in;
    private final PrintStream out;
    private final PrintStream err;
    private final ClassLoader loader;
    private final CommandLine commands;

    /** Has the options of the commands that talk to a server, which may stand before the command, too. */
    @Mixin
    private final Remote remote = new Remote();

    /**
     * Is only for help and completion: the option is taken out of the arguments, since it counts where they cannot be
     * parsed, too.
     */
    @Option(
            names = "--debug",
            arity = "0",
            scope = ScopeType.INHERIT,
            description = "Show the stack trace of an error.")
    boolean isDebug;

    Rpcx(InputStream in, PrintStream out, PrintStream err, ClassLoader loader) {
        this.in = in;
        this.out = out;
        this.err = err;
        this.loader = loader;
        commands = new CommandLine(this).addSubcommand(new CommandLine.HelpCommand());
        for (OptionSpec option : CommandSpec.forAnnotatedObject(remote).options()) {
            for (CommandLine each : commands.getSubcommands().values()) {
                if (REMOTE.contains(each.getCommandName())) {
                    each.getCommandSpec()
                            .addOption(
                                    OptionSpec.builder(option).inherited(true).build());
                }
            }
        }
        commands.registerConverter(Endpoint.class, Remote::endpoint)
                .registerConverter(Path.class, Rpcx::path)
                .registerConverter(Duration.class, Remote::seconds)
                .setExpandAtFiles(false)
                .setPosixClusteredShortOptionsAllowed(false)
                .setAllowSubcommandsAsOptionParameters(true)
                // Whatever picocli prints is escaped, and so would be its colours.
                .setColorScheme(Help.defaultColorScheme(Help.Ansi.OFF))
                .setUsageHelpWidth(100)
                .setOut(new PrintWriter(Printable.writer(out)));
    }

    /** Runs one command, and ends the process with its exit code. */
    public static void main(String[] args) {
        ClassLoader loader;
        try {
            loader = ClassPath.loader(System.getenv("RPCX_CLASSPATH"), Rpcx.class.getClassLoader());
        } catch (Mistake e) {
            System.err.println(Printable.line(String.valueOf(e.getMessage())));
            System.exit(BAD_INPUT);
            return;
        }
        int exitCode = new Rpcx(System.in, System.out, System.err, loader).run(args);
        // Nothing else reports a full disk.
        if (System.out.checkError()) {
            System.err.println("standard output: not all of it could be written");
            exitCode = exitCode == 0 ? FAILED : exitCode;
        }
        System.exit(exitCode);
    }

    int run(String... args) {
        List<String> words = new ArrayList<>(List.of(args));
        boolean isTraced = words.removeIf("--debug"::equals);
        // this option counts where the arguments cannot be parsed, too
        boolean isJson = words.contains("--json");
        try {
            if (words.isEmpty()) {
                commands.usage(new PrintWriter(Printable.writer(err)));
                return BAD_INPUT;
            }
            return execute(commands.parseArgs(words.toArray(String[]::new)));
        } catch (Throwable e) {
            Throwable why = e instanceof ExecutionException && e.getCause() != null ? e.getCause() : e;
            if (isTraced) {
                StringWriter trace = new StringWriter();
                traced(why).printStackTrace(new PrintWriter(trace));
                err.println(Printable.lines(trace.toString().replace("\t", "    ")));
            }
            return printError(why, isJson);
        }
    }

    private int execute(ParseResult parsed) {
        List<CommandLine> given = parsed.asCommandLineList();
        CommandLine last = given.get(given.size() - 1);
        if (given.stream().anyMatch(CommandLine::isUsageHelpRequested)) {
            last.usage(last.getOut());
            return 0;
        }
        if (!parsed.hasSubcommand() && !parsed.isVersionHelpRequested()) {
            throw new Mistake(noCommand("", parsed.commandSpec()));
        }
        if (last.getCommandSpec().helpCommand() && !last.getUnmatchedArguments().isEmpty()) {
            // picocli ignores these words, since it does so wherever help is asked for
            throw new UnmatchedArgumentException(last, last.getUnmatchedArguments());
        }
        expectFitting(parsed, last.getCommandSpec());
        return new CommandLine.RunLast().execute(parsed);
    }

    /**
     * Refuses what picocli lets pass: an option before the command that the command does not have, or that stands
     * behind the command again, and a value that is blank or looks like an option.
     */
    private static void expectFitting(ParseResult parsed, CommandSpec command) {
        Set<String> seen = new HashSet<>();
        for (ParseResult each = parsed; each != null; each = each.subcommand()) {
            // an option that takes several values is matched once for each
            for (OptionSpec option : new LinkedHashSet<>(each.matchedOptions())) {
                if (command.findOption(option.longestName()) == null) {
                    throw new Mistake(noOption(option.longestName(), command));
                }
                if (!seen.add(option.longestName())) {
                    throw new Mistake(twice(option));
                }
                if (option.stringValues().stream().anyMatch(value -> value.isBlank() || value.startsWith("--"))) {
                    throw new Mistake(nothingBehind(option));
                }
            }
        }
    }

    /** Returns what {@code --debug} prints. The message of picocli's own error may hold a secret, so it is replaced. */
    private static Throwable traced(Throwable e) {
        if (!(e instanceof ParameterException mistake)) {
            return e;
        }
        Mistake inOurWords = new Mistake(words(mistake));
        inOurWords.setStackTrace(mistake.getStackTrace());
        return inOurWords;
    }

    /**
     * Prints what has gone wrong.
     *
     * @param isJson whether the error is printed for programs
     * @return the exit code
     */
    private int printError(Throwable e, boolean isJson) {
        int exitCode =
                e instanceof RPCXException ? FAILED : e instanceof Calls.Failure failed ? failed.exitCode : BAD_INPUT;
        String text = text(e);
        RPCXException error = e instanceof RPCXException ? (RPCXException) e : ofServer(e.getCause());
        err.println(
                !isJson
                        ? Printable.line(text)
                        : Calls.json(line -> {
                            line.writeNumberProperty("exitCode", exitCode);
                            if (error != null) {
                                line.writeStringProperty("code", error.code().name());
                                line.writeStringProperty(
                                        "executed", error.executed().name());
                            }
                            line.writeStringProperty("message", text);
                        }));
        return exitCode;
    }

    private static @Nullable RPCXException ofServer(@Nullable Throwable cause) {
        return cause instanceof RPCXException error ? error : null;
    }

    /** Returns in words of this tool what has gone wrong. */
    private static String text(Throwable e) {
        String text = String.valueOf(e.getMessage());
        if (e instanceof RPCXException failed) {
            text = Calls.words(failed);
        } else if (e instanceof ParameterException mistake) {
            text = words(mistake);
        } else if (e instanceof LinkageError) {
            text = e + " (expected: all that the class needs on the class path, set RPCX_CLASSPATH)";
        } else if (!(e instanceof Calls.Failure
                || e instanceof Mistake
                || e instanceof IllegalArgumentException
                || e instanceof SchemaException)) {
            text = e + " (--debug shows where)";
        }
        return text;
    }

    /** Returns in words of this tool what picocli has found. */
    private static String words(ParameterException e) {
        CommandSpec command = e.getCommandLine().getCommandSpec();
        String expected = " (expected: "
                + e.getCommandLine().getHelp().synopsis(0).strip().replace(" [OPTIONS]", "") + ")";
        if (e instanceof OverwrittenOptionException again) {
            return twice(again.getOverwritten());
        }
        List<String> unmatched = e.getCommandLine().getUnmatchedArguments();
        if (e instanceof MissingParameterException missing) {
            ArgSpec first = missing.getMissing().get(0);
            if (first.isOption() || unmatched.isEmpty()) {
                return first.isOption() ? nothingBehind(first) : first.paramLabel() + " is missing" + expected;
            }
        }
        ArgSpec place = e.getArgSpec();
        if (place != null) {
            return (place.isOption() ? name(place) + " " : "")
                    + (e.getCause() instanceof Mistake || e.getCause() instanceof IllegalArgumentException
                            ? e.getCause().getMessage()
                            : Printable.clipped(String.valueOf(e.getValue())) + " (expected: true or false)");
        }
        if (e instanceof MaxValuesExceededException) {
            // picocli's message names the value, which may be a secret
            return Printable.clipped(String.valueOf(e.getMessage()).replaceAll("(?s)^\\w+ '([^']*)' should.*", "$1"))
                    + ": takes no value (expected: the option alone)";
        }
        String word = unmatched.isEmpty() ? e.getValue() : unmatched.get(0);
        if (word == null) {
            return Printable.clipped(String.valueOf(e.getMessage()));
        }
        if (word.length() > 1 && word.startsWith("-")) {
            return noOption(word, command);
        }
        return command.parent() == null
                ? noCommand(word, command)
                : Printable.clipped(word) + ": one word too many" + expected;
    }

    private static String twice(ArgSpec option) {
        return name(option) + ": stands there twice (expected: once)";
    }

    private static String nothingBehind(ArgSpec option) {
        return name(option) + ": nothing behind it (expected: " + option.paramLabel() + ")";
    }

    private static String name(ArgSpec option) {
        return ((OptionSpec) option).longestName();
    }

    /** Returns the error without what stands behind an equals sign or a colon, which may be a secret. */
    private static String noOption(String word, CommandSpec command) {
        String name = word.split("[=:]", 2)[0];
        List<String> names =
                command.options().stream().map(OptionSpec::longestName).toList();
        return Printable.clipped(name) + ": no such option of " + command.name() + Printable.nearest(name, names) + " ("
                + command.qualifiedName() + " --help names them)";
    }

    private static String noCommand(String word, CommandSpec command) {
        Set<String> names = command.subcommands().keySet();
        if (names.contains(word)) {
            return word + ": stands behind -- (expected: before it)";
        }
        return (word.isEmpty() ? "no command" : Printable.clipped(word) + ": no such command")
                + Printable.nearest(word, names) + " (expected: " + String.join(", ", names) + ")";
    }

    private static Path path(String name) {
        try {
            return Path.of(name);
        } catch (InvalidPathException e) {
            throw new Mistake(Printable.clipped(name) + " (expected: the name of a file)");
        }
    }

    @Command(
            description = "Prints what the server publishes, as service/method. Where the server describes its"
                    + " services, each method has its parameters and its result.")
    int list(
            @Option(names = "--class", paramLabel = "CLASS", description = OF_CLASSES) @Nullable List<String> classes,
            @Parameters(paramLabel = "HOST:PORT", description = ADDRESS) Endpoint at) {
        return calls(at).list(described(classes));
    }

    @Command(description = "Prints a service of a server that describes its services, as a .proto.")
    int describe(
            @Parameters(paramLabel = "HOST:PORT", description = ADDRESS) Endpoint at,
            @Parameters(paramLabel = "SERVICE", description = "Published name of the service.") String service) {
        return calls(at).describe(service);
    }

    @Command(description = "Says whether the server answers, and how fast.")
    int health(@Parameters(paramLabel = "HOST:PORT", description = ADDRESS) Endpoint at) {
        return calls(at).health();
    }

    private Calls calls(Endpoint at) {
        return new Calls(remote, at, in, out, err);
    }

    private Descriptions described(@Nullable List<String> classes) {
        if (classes == null) {
            return Descriptions.NONE;
        }
        SchemaTool tool = new SchemaTool(out, err, loader);
        return Descriptions.of(tool.described(classes), tool.schemas(classes));
    }

    @Command(
            description = "Calls a method of a server that describes its services, or of a service whose class is"
                    + " given.",
            footer = {
                "",
                "JSON is that of Protobuf: an object with a field for each parameter, or the fields of the message"
                        + " that is the only parameter; {\"case\": {...}} for a sealed type, strings for long, bytes in"
                        + " Base64, \"1.5s\" for a duration. What is missing is 0, empty or null. A field that is"
                        + " unknown or stands there twice, and a value that does not fit, is an error, and nothing is"
                        + " sent. A stream is printed as a line of JSON for each item as it comes, and is read from"
                        + " such lines.",
                "",
                "Classes come from RPCX_CLASSPATH."
            })
    int call(
            @Option(names = "--class", paramLabel = "CLASS", description = OF_CLASSES) @Nullable List<String> classes,
            @Parameters(paramLabel = "HOST:PORT", description = ADDRESS) Endpoint at,
            @Parameters(paramLabel = "SERVICE/METHOD", description = "Published name, as `rpcx list` prints it.")
                    String method,
            @Parameters(
                            paramLabel = "JSON",
                            arity = "0..1",
                            description = "The request; - reads it from the standard input. Default: {}; of a method"
                                    + " that takes a stream, the items are read from there.")
                    @Nullable
                    String json) {
        return calls(at).call(method, json, described(classes));
    }

    @Command(description = "Prints services as a .proto, with the numbers of the class path's locks.")
    int proto(
            @Parameters(paramLabel = "PACKAGE", description = "Package of Protobuf, such as com.acme.") String name,
            @Parameters(paramLabel = "CLASS", arity = "1..*", description = CLASS) List<String> classes) {
        if (!name.matches("[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*")) {
            throw new Mistake(Printable.clipped(name) + " (expected: a package of Protobuf, such as com.acme)");
        }
        return tool("proto", all(name, classes));
    }

    @Command(
            description = "Writes or extends the lock of these services' numbers.",
            footer = {
                "",
                "Where a name is gone and another one is new, nothing is written before an option says whether it is"
                        + " the same under a new name, or a person at the terminal does. A name may have its type"
                        + " before it: com.acme.Order.count=total.",
                "",
                "Classes come from RPCX_CLASSPATH."
            })
    int lock(
            @Option(
                            names = "--rename",
                            paramLabel = "OLD=NEW",
                            description = "OLD of the lock is called NEW now, and keeps its number.")
                    @Nullable
                    List<String> renamed,
            @Option(
                            names = "--removed",
                            paramLabel = "OLD",
                            description = "OLD of the lock is gone, and has no new name.")
                    @Nullable
                    List<String> removed,
            @Parameters(paramLabel = "FILE", description = LOCK) Path file,
            @Parameters(paramLabel = "CLASS", arity = "1..*", description = CLASS) List<String> classes)
            throws IOException {
        List<String> args = new ArrayList<>();
        addOption("--rename", renamed, args);
        addOption("--removed", removed, args);
        args.add(text(file));
        args.addAll(classes);
        return tool("lock", args);
    }

    private static void addOption(String name, @Nullable List<String> values, List<String> args) {
        if (values != null) {
            values.forEach(value -> args.addAll(List.of(name, value)));
        }
    }

    @Command(
            description = "Fails (3) where the services break with the lock or are not in it, and where it is behind"
                    + " them, so that `rpcx lock` would change it.")
    int check(
            @Parameters(paramLabel = "FILE", description = LOCK) Path file,
            @Parameters(paramLabel = "CLASS", arity = "1..*", description = CLASS) List<String> classes)
            throws IOException {
        return tool("check", all(text(file), classes));
    }

    @Command(description = "Fails (3) where one lock breaks with the other. Names of classes are not compared.")
    int compare(
            @Parameters(paramLabel = "OLD", description = "The lock as it was, or a jar with it.") Path before,
            @Parameters(paramLabel = "NEW", description = "The lock as it is, or a jar with it.") Path after)
            throws IOException {
        return tool("compare", List.of(text(before), text(after)));
    }

    @Command(
            description = {
                "Prints a script by which bash and zsh complete commands, options and files.",
                "",
                "  source <(rpcx completion)",
                ""
            })
    int completion() {
        // The end of a line is the same on each system, since the shell reads it.
        out.print(AutoComplete.bash("rpcx", commands) + "\n");
        return 0;
    }

    private static List<String> all(String first, List<String> others) {
        List<String> all = new ArrayList<>(List.of(first));
        all.addAll(others);
        return all;
    }

    /**
     * Runs a command of {@link SchemaTool}, and escapes its output: the files and classes may be somebody else's, and
     * so may be what the tool says and asks of them.
     */
    private int tool(String command, List<String> args) {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        Function<String, @Nullable String> terminal = SchemaTool.terminal();
        try (PrintStream tool = new PrintStream(said, true, StandardCharsets.UTF_8);
                PrintStream complaints = new PrintStream(complained, true, StandardCharsets.UTF_8)) {
            Function<String, @Nullable String> ask = question -> {
                print(complained, err);
                complained.reset();
                return terminal.apply(Printable.lines(question));
            };
            return new SchemaTool(tool, complaints, loader, ask).run(all(command, args));
        } finally {
            print(said, out);
            print(complained, err);
        }
    }

    private static void print(ByteArrayOutputStream text, PrintStream to) {
        if (text.size() > 0) {
            to.println(Printable.lines(text.toString(StandardCharsets.UTF_8)));
        }
    }

    /**
     * Returns the name of a file, which is readable if it exists, and is text unless it is a jar. {@link SchemaTool}
     * handles a file that is missing: {@code lock} writes it.
     */
    private static String text(Path file) throws IOException {
        String name = Printable.clipped(file.toString());
        try {
            if (Files.exists(file) && !readable(name, file).toString().endsWith(".jar")) {
                Files.readString(file);
            }
        } catch (CharacterCodingException e) {
            throw new Mistake(name + ": not text in UTF-8 (expected: a lock as `rpcx lock` writes it)");
        }
        return file.toString();
    }

    /** @param what the file as an error calls it */
    static Path readable(String what, Path file) {
        // A pipe is a file too.
        if (Files.isReadable(file) && !Files.isDirectory(file)) {
            return file;
        }
        throw new Mistake(what
                + (!Files.exists(file) ? ": no such file" : Files.isDirectory(file) ? ": a folder" : ": not readable")
                + " (expected: a file that can be read)");
    }
}
