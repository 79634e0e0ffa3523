package dev.rpcx.cli;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.schema.SchemaException;
import dev.rpcx.tool.SchemaTool;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The command {@code rpcx}. It ends with one of these exit codes: 0 for success; 1 for a mistake in what was asked,
 * which is printed in one line, with nothing sent; 2 if the server cannot be reached or is not healthy, and has
 * executed nothing, or if there is no lock to check against; 3 if the call failed at the server or may have been
 * executed, if what came cannot be shown or written, or if the schema breaks with its lock or is not in it. Everything
 * that is printed is {@link Printable}, whoever wrote it.
 */
public final class CommandLine {
    private static final Duration CALL_TIMEOUT = Duration.ofSeconds(5);
    private static final int BAD_INPUT = 1;
    private static final int UNWELL = 2;
    private static final int FAILED = 3;

    /** Holds the usage and the description of each command, by its name. */
    private static final Map<String, String[]> COMMANDS = new LinkedHashMap<>();

    static {
        COMMANDS.put("list", new String[] {"rpcx list HOST:PORT", "what the server publishes, as service/method"});
        COMMANDS.put("health", new String[] {"rpcx health HOST:PORT", "whether it answers, and how fast"});
        COMMANDS.put("call", new String[] {
            "rpcx call HOST:PORT INTERFACE METHOD [JSON]",
            "calls a method of an @RPCXClient interface; JSON: the array of its arguments"
        });
        COMMANDS.put("proto", new String[] {"rpcx proto PACKAGE CLASS...", "prints services as a .proto"});
        COMMANDS.put(
                "lock",
                new String[] {"rpcx lock FILE CLASS...", "writes or extends the lock of these services' numbers"});
        COMMANDS.put("check", new String[] {
            "rpcx check FILE CLASS...", "fails (3) where the services break with the lock, or are not in it"
        });
        COMMANDS.put(
                "compare", new String[] {"rpcx compare OLD NEW", "fails (3) where one lock breaks with the other"});
    }

    private static final String REMOTE_OPTIONS = """
            With list, health and call:
              --tls                    TLS; the server's certificate is one of the JDK's authorities'
              --ca FILE                TLS; its certificate is one of these authorities', or is in FILE itself (PEM)
              --server-name NAME       TLS; its certificate has this name instead of HOST
              --cert FILE --key FILE   TLS; shows this certificate (PEM, PKCS#8)
              --token PRINCIPAL:FILE   signs calls; FILE holds the secret, of which every byte counts

            RPCX_TOKEN stands for --token. Certificates are always checked: for one that no authority has signed, name its file by --ca.\
            """;

    private static final String COMMON = """
            With each command: --help tells of it, --debug shows the stack trace of an error.

            Classes come from RPCX_CLASSPATH. Exit code 0 good, 1 a mistake in what was asked,
            2 the server is not reached and nothing was executed there, or there is no lock to check against,
            3 the call failed or may have been executed, what came cannot be shown, or the schema breaks with its lock.
            JSON by the schema: an object for a message, {"case": {...}} for a sealed type, Base64 for bytes, ISO 8601 for times. A field that
            is missing or unknown, or does not fit, is an error, and nothing is sent. A double or float may be written with any number of digits if
            it is that number to half a unit of the last one: 0.1 is taken, 1e-400 and 9007199254740993 are not. Characters that are not seen are
            printed as \\uXXXX.\
            """;

    private final PrintStream out;
    private final PrintStream err;
    private final ClassLoader loader;

    CommandLine(PrintStream out, PrintStream err, ClassLoader loader) {
        this.out = out;
        this.err = err;
        this.loader = loader;
    }

    public static void main(String[] args) {
        int exitCode = new CommandLine(System.out, System.err, CommandLine.class.getClassLoader()).run(args);
        // Nothing else reports a full disk.
        if (System.out.checkError()) {
            System.err.println("standard output: not all of it could be written");
            exitCode = exitCode == 0 ? FAILED : exitCode;
        }
        System.exit(exitCode);
    }

    /**
     * Thrown for what is not a mistake in what was asked, such as a fault of the server or of the network. The text is
     * in words of this tool.
     */
    private static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private final int exitCode;

        Failure(int exitCode, String text, @Nullable Throwable cause) {
            super(text, cause);
            this.exitCode = exitCode;
        }
    }

    int run(String... args) {
        List<String> words = new ArrayList<>(List.of(args));
        boolean isDebug = words.removeIf("--debug"::equals);
        try {
            return run(words);
        } catch (Throwable e) {
            if (isDebug) {
                StringWriter trace = new StringWriter();
                e.printStackTrace(new PrintWriter(trace));
                err.println(Printable.lines(trace.toString().replace("\t", "    ")));
            }
            return printError(e);
        }
    }

    /** Prints what has gone wrong. Returns the exit code. */
    private int printError(Throwable e) {
        if (e instanceof RPCXException failed) {
            err.println(Printable.line(words(failed)));
            return FAILED;
        }
        if (e instanceof Failure failed) {
            err.println(Printable.line(String.valueOf(e.getMessage())));
            return failed.exitCode;
        }
        err.println(Printable.line(
                e instanceof Mistake || e instanceof IllegalArgumentException || e instanceof SchemaException
                        ? String.valueOf(e.getMessage())
                        : e instanceof LinkageError
                                ? e + " (expected: all that the class needs on the class path, set RPCX_CLASSPATH)"
                                : e + " (--debug shows where)"));
        return BAD_INPUT;
    }

    private static String words(RPCXException e) {
        return e.code() + ", " + e.executed() + ": " + e.getMessage();
    }

    private int run(List<String> args) throws IOException {
        if (args.isEmpty()) {
            err.println(usage());
            return BAD_INPUT;
        }
        boolean isHelp =
                args.contains("--help") || args.contains("-h") || args.get(0).equals("help");
        String command = args.stream()
                .filter(COMMANDS.keySet()::contains)
                .findFirst()
                .filter(found -> isHelp)
                .orElse(args.get(0));
        if (isHelp) {
            out.println(COMMANDS.containsKey(command) ? usage(command) : usage());
            return 0;
        }
        return switch (command) {
            case "proto", "lock", "check", "compare" -> schema(command, args);
            default -> remote(RemoteArguments.of(args));
        };
    }

    private static String usage() {
        StringBuilder text = new StringBuilder();
        COMMANDS.forEach((name, how) -> text.append(String.format("%-47s%s%n", how[0], how[1])));
        return text.append(System.lineSeparator())
                .append(REMOTE_OPTIONS)
                .append(System.lineSeparator())
                .append(System.lineSeparator())
                .append(COMMON)
                .toString();
    }

    private static String usage(String command) {
        String[] how = COMMANDS.getOrDefault(command, new String[] {"", ""});
        String more = switch (command) {
            case "list", "health", "call" -> System.lineSeparator() + REMOTE_OPTIONS + System.lineSeparator();
            case "proto" ->
                "CLASS is a service's interface or class; numbers come from the class path's locks."
                        + System.lineSeparator();
            default ->
                "A lock is usually src/main/resources/META-INF/rpcx/schema.lock; CLASS a service's interface or class."
                        + System.lineSeparator();
        };
        return how[0]
                + System.lineSeparator()
                + how[1]
                + System.lineSeparator()
                + more
                + System.lineSeparator()
                + COMMON;
    }

    /**
     * Runs a command of {@link SchemaTool}, and escapes its output: the files and classes may be somebody else's, and
     * so may be what the tool says of them.
     */
    private int schema(String command, List<String> args) throws IOException {
        String usage = "expected: " + COMMANDS.getOrDefault(command, new String[] {"", ""})[0];
        for (String arg : args) {
            if (RemoteArguments.isOption(arg)) {
                throw new Mistake(Printable.clipped(arg) + ": no such option of " + command + " (" + usage + ")");
            }
        }
        if (args.size() < 3 || command.equals("compare") && args.size() > 3) {
            throw new Mistake(args.size() - 1 + " words behind " + command + " (" + usage + ")");
        }
        if (command.equals("proto")) {
            if (!args.get(1).matches("[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*")) {
                throw new Mistake(
                        Printable.clipped(args.get(1)) + " (expected: a package of Protobuf, such as com.acme)");
            }
        } else {
            expectText(args.get(1));
            if (command.equals("compare")) {
                expectText(args.get(2));
            }
        }
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        try (PrintStream tool = new PrintStream(said, true, StandardCharsets.UTF_8);
                PrintStream complaints = new PrintStream(complained, true, StandardCharsets.UTF_8)) {
            return new SchemaTool(tool, complaints, loader).run(args);
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
     * Checks that a file that exists is readable text. {@link SchemaTool} handles a file that is missing: {@code lock}
     * writes it.
     */
    private static void expectText(String name) throws IOException {
        try {
            Path file = Path.of(name);
            if (Files.isDirectory(file) || Files.exists(file) && !Files.isReadable(file)) {
                throw new Mistake(Printable.clipped(name)
                        + (Files.isDirectory(file) ? ": a folder" : ": not readable")
                        + " (expected: a file that can be read)");
            }
            if (Files.exists(file)) {
                Files.readString(file);
            }
        } catch (InvalidPathException e) {
            throw new Mistake(Printable.clipped(name) + " (expected: the name of a file)");
        } catch (CharacterCodingException e) {
            throw new Mistake(
                    Printable.clipped(name) + ": no text in UTF-8 (expected: a lock as `rpcx lock` writes it)");
        }
    }

    private int remote(RemoteArguments arguments) {
        String command = arguments.words().isEmpty() ? "" : arguments.words().get(0);
        if (!COMMANDS.containsKey(command)) {
            throw new Mistake((command.isEmpty() ? "no command" : Printable.clipped(command) + ": no such command")
                    + Printable.nearest(command, COMMANDS.keySet())
                    + " (expected: " + String.join(", ", COMMANDS.keySet()) + ")");
        }
        boolean isCall = command.equals("call");
        Endpoint at = arguments.address(
                isCall ? 4 : 2, isCall ? 5 : 2, COMMANDS.getOrDefault(command, new String[] {"", ""})[0]);
        Called called = isCall
                ? Called.find(
                        loader,
                        arguments.words().get(2),
                        arguments.words().get(3),
                        arguments.words().size() == 5 ? arguments.words().get(4) : "[]")
                : null;
        try (Client client = arguments.client(CALL_TIMEOUT, err)) {
            if (called != null) {
                return called.isOneWay() ? deliver(client, at, called) : call(client, at, called);
            }
            return command.equals("list") ? list(client, at) : health(client, at);
        } catch (RPCXException e) {
            throw explained(e, arguments, at, isCall);
        }
    }

    private int list(Client client, Endpoint at) {
        List<String> published = client.published(at.host(), at.port());
        show("the list has come, but it", () -> published.forEach(name -> out.println(Printable.line(name))));
        return 0;
    }

    private int health(Client client, Endpoint at) {
        long begin = System.nanoTime();
        int methods = client.published(at.host(), at.port()).size();
        out.printf(
                "up: connected and answered in %d ms, %d methods%n", (System.nanoTime() - begin) / 1_000_000, methods);
        return 0;
    }

    private int call(Client client, Endpoint at, Called called) {
        Object result = invoke(client, at, called);
        if (!JsonResult.isVoid(called.result())) {
            show("the call was executed, but its result", () -> JsonResult.print(called.result(), result, out));
        }
        return 0;
    }

    /** Makes the call. Whatever fails once a call may have been sent is not a mistake in what was asked. */
    private static @Nullable Object invoke(Client client, Endpoint at, Called called) {
        Object proxy = client.create(called.type(), at.host(), at.port());
        try {
            return called.invoke(proxy);
        } catch (RPCXException | Mistake e) {
            throw e;
        } catch (RuntimeException | Error e) {
            throw new Failure(FAILED, "MAYBE: the call has failed on this side: " + e, e);
        }
    }

    /**
     * Prints what a server has sent. This may need more memory than there is, and the classes of the result may fail
     * when they are read.
     *
     * @param what beginning of the error's text, which says what has come
     */
    private static void show(String what, Runnable printing) {
        try {
            printing.run();
        } catch (RuntimeException | Error e) {
            String why = e instanceof StackOverflowError
                    ? "it is too deep"
                    : e instanceof OutOfMemoryError
                            ? "no memory is left for it"
                            : e instanceof IllegalStateException ? String.valueOf(e.getMessage()) : e.toString();
            throw new Failure(FAILED, what + " cannot be shown: " + why, e);
        }
    }

    /** Service that no server publishes: its call is the one that {@code deliver} sends after a one-way call. */
    @RPCXClient(remoteServerName = "rpcx-cli")
    interface Probe {
        void oneWayCalls();
    }

    /**
     * Makes a one-way call, and checks that the server has read it. The call may return before it has been sent, and
     * its caller does not learn of its acknowledgement. The tool therefore sends another call after it on the same
     * connection: if the server answers that one, it has read the one-way call.
     */
    private int deliver(Client client, Endpoint at, Called called) {
        List<String> published = client.published(at.host(), at.port());
        if (!published.contains(called.published())) {
            throw RPCXException.refused(
                    RPCXException.Code.NOT_FOUND,
                    "the server does not publish " + called.published()
                            + Printable.nearest(called.published(), published));
        }
        invoke(client, at, called);
        RPCXException why = answered(client.create(Probe.class, at.host(), at.port()));
        try {
            // Each connection has one list object, so another object comes from another connection.
            if (why == null && client.published(at.host(), at.port()) == published) {
                return 0;
            }
        } catch (RPCXException e) {
            // It is the request for the list that has failed, and not the one-way call, which may have been executed.
            why = e;
        }
        throw new Failure(
                FAILED,
                "MAYBE: the one-way call was sent, but the server has not shown that it has read it: "
                        + (why == null ? "the connection has ended" : words(why)),
                why);
    }

    /** Returns why there is no answer; null if there is one. */
    private static @Nullable RPCXException answered(Probe probe) {
        long end = System.nanoTime() + CALL_TIMEOUT.toNanos();
        while (true) {
            try {
                probe.oneWayCalls();
                return null;
            } catch (RPCXException e) {
                if (e.code() == RPCXException.Code.NOT_FOUND) {
                    return null;
                }
                // A server that admits one call at a time admits the next one when it has acknowledged the one-way
                // call.
                if (e.code() != RPCXException.Code.OVERLOADED || System.nanoTime() - end > 0) {
                    return e;
                }
                LockSupport.parkNanos(1_000_000);
            }
        }
    }

    /**
     * Returns the error, with the most likely cause if one side speaks TLS and the other does not. A call that may have
     * been executed has another exit code than one that has not reached its server, since a script may repeat the
     * latter.
     */
    private static RuntimeException explained(RPCXException e, RemoteArguments arguments, Endpoint at, boolean isCall) {
        if (e.code() != RPCXException.Code.UNAVAILABLE) {
            return e;
        }
        int exitCode = isCall && e.executed() != RPCXException.Executed.NOT_EXECUTED ? FAILED : UNWELL;
        for (Throwable why = e; arguments.isTls() && why != null; why = why.getCause()) {
            if (String.valueOf(why.getMessage()).contains("not an SSL/TLS record")) {
                return new Failure(exitCode, e.code() + ", " + e.executed() + ": the server does not speak TLS", e);
            }
        }
        boolean isHeard =
                !arguments.isTls() && e.executed() == RPCXException.Executed.NOT_EXECUTED && isConnectable(at);
        return new Failure(exitCode, words(e) + (isHeard ? " (does it speak TLS?)" : ""), e);
    }

    /**
     * Whether a connection can be made. If so, the network and the port work, and the fault is that the server's answer
     * is not understood.
     */
    private static boolean isConnectable(Endpoint at) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(at.host(), at.port()), (int) CALL_TIMEOUT.toMillis());
            return true;
        } catch (IOException | RuntimeException e) {
            return false;
        }
    }
}
