package dev.rpcx.cli;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Interceptor;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.Tls;
import dev.rpcx.Tokens;
import dev.rpcx.tool.SchemaTool;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.TokenStreamLocation;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * Exit code 0 good, 1 a mistake in what was asked, told in one line, 2 the server cannot be reached or is not well, 3
 * the call failed there. What a server says is printed without control characters.
 */
public final class CommandLine {
    private static final Duration TIME = Duration.ofSeconds(5);
    private static final int BAD_INPUT = 1;
    private static final int UNWELL = 2;
    private static final int FAILED = 3;

    private static final String USAGE = """
            rpcx list HOST:PORT                            what the server publishes, as service/method
            rpcx health HOST:PORT                          whether it answers, and how fast
            rpcx call HOST:PORT INTERFACE METHOD [JSON]    calls a method of an @RPCXClient interface; JSON: the array of its arguments
            rpcx proto PACKAGE CLASS...                    prints services as a .proto
            rpcx lock | check | compare ...                a schema's numbers; without more words: how

            With list, health and call:
              --tls                    TLS; the server's certificate is one of the JDK's authorities'
              --ca FILE                TLS; its certificate is one of these authorities', or is in FILE itself (PEM)
              --server-name NAME       TLS; its certificate has this name instead of HOST
              --cert FILE --key FILE   TLS; shows this certificate (PEM, PKCS#8)
              --token PRINCIPAL:FILE   signs calls; FILE holds the secret, of which every byte counts

            Classes come from RPCX_CLASSPATH; RPCX_TOKEN stands for --token. Certificates are always checked: for one that no authority has
            signed, name its file by --ca. Exit code 0 good, 1 a mistake in what was asked, 2 the server is not reached, 3 the call failed.\
            """;

    private static final Set<String> FLAGS = Set.of("--tls");
    private static final Set<String> OPTIONS = Set.of("--ca", "--server-name", "--cert", "--key", "--token");

    /** Each of them means TLS. */
    private static final Set<String> TLS = Set.of("--tls", "--ca", "--server-name", "--cert", "--key");

    private final PrintStream out;
    private final PrintStream err;
    private final ClassLoader loader;
    private final JsonMapper json = JsonMapper.builder()
            .enable(SerializationFeature.INDENT_OUTPUT)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    CommandLine(PrintStream out, PrintStream err, ClassLoader loader) {
        this.out = out;
        this.err = err;
        this.loader = loader;
    }

    public static void main(String[] args) {
        System.exit(new CommandLine(System.out, System.err, CommandLine.class.getClassLoader()).run(args));
    }

    /** Bad input, in words that say what was expected. */
    private static final class Mistake extends RuntimeException {
        Mistake(String text) {
            super(text);
        }
    }

    int run(String... args) {
        try {
            if (args.length == 0) {
                throw new Mistake(USAGE);
            }
            return switch (args[0]) {
                case "--help", "-h", "help" -> {
                    out.println(USAGE);
                    yield 0;
                }
                case "proto", "lock", "check", "compare" -> new SchemaTool(out, err, loader).run(List.of(args));
                default -> remote(Asked.of(args));
            };
        } catch (Mistake e) {
            err.println(e.getMessage());
            return BAD_INPUT;
        } catch (RPCXException e) {
            err.println(line(e.code() + ", " + e.executed() + ": " + told(e, args)));
            return e.code() == RPCXException.Code.UNAVAILABLE ? UNWELL : FAILED;
        } catch (IllegalArgumentException e) {
            err.println(line(String.valueOf(e.getMessage())));
            return BAD_INPUT;
        }
    }

    /** With what is most likely wrong where one side speaks TLS and the other does not. */
    private static String told(RPCXException e, String... args) {
        String text = String.valueOf(e.getMessage());
        boolean isTls = Arrays.stream(args).anyMatch(TLS::contains);
        for (Throwable why = e; why != null; why = why.getCause()) {
            if (isTls && String.valueOf(why.getMessage()).contains("not an SSL/TLS record")) {
                return "the server does not speak TLS";
            }
        }
        return isTls || e.code() != RPCXException.Code.UNAVAILABLE ? text : text + " (does it speak TLS?)";
    }

    /**
     * What was asked, taken apart.
     *
     * @param words command and its words, without options
     */
    private record Asked(List<String> words, Map<String, String> options) {
        static Asked of(String... args) {
            List<String> words = new ArrayList<>();
            Map<String, String> options = new HashMap<>();
            for (int i = 0; i < args.length; i++) {
                String arg = args[i];
                if (!arg.startsWith("--")) {
                    words.add(arg);
                } else if (FLAGS.contains(arg)) {
                    options.put(arg, "");
                } else if (!OPTIONS.contains(arg)) {
                    throw new Mistake(line(arg + ": no such option (rpcx --help names them)"));
                } else if (i + 1 == args.length) {
                    throw new Mistake(arg + ": nothing behind it (expected: a value)");
                } else {
                    i++;
                    options.put(arg, args[i]);
                }
            }
            return new Asked(words, options);
        }

        private Address address(int least, int most, String expected) {
            if (words.size() < 2) {
                throw new Mistake("HOST:PORT is missing (expected: rpcx " + expected + ")");
            }
            if (words.size() < least || words.size() > most) {
                throw new Mistake(words.size() + " words (expected: rpcx " + expected + ")");
            }
            String text = words.get(1);
            int colon = text.lastIndexOf(':');
            try {
                String host = text.substring(0, Math.max(0, colon));
                // as elsewhere: an address of IPv6 in brackets
                String bare = host.startsWith("[") && host.endsWith("]") ? host.substring(1, host.length() - 1) : host;
                Endpoint endpoint = new Endpoint(bare, Integer.parseInt(text.substring(colon + 1)));
                return new Address(endpoint.host(), endpoint.port());
            } catch (NumberFormatException e) {
                throw new Mistake(line(text + " (expected: host:port)"));
            }
        }

        private @Nullable Path file(String option) {
            String name = options.get(option);
            return name == null ? null : readable(option, name);
        }

        private static Path readable(String option, String name) {
            try {
                Path file = Path.of(name);
                if (Files.isReadable(file) && !Files.isDirectory(file)) {
                    return file;
                }
            } catch (InvalidPathException e) {
                // told below
            }
            throw new Mistake(line(option + " " + name + " (expected: a file that can be read)"));
        }

        private Client client(PrintStream err) {
            Client.Builder builder = Client.builder().callTimeout(TIME).connectTimeout(TIME);
            Tls tls = tls();
            if (tls != null) {
                builder.tls(tls);
            }
            Interceptor signing = signing(err);
            if (signing != null) {
                builder.interceptor(signing);
            }
            return builder.build();
        }

        private @Nullable Tls tls() {
            Path authorities = file("--ca");
            Path chain = file("--cert");
            Path key = file("--key");
            String name = options.get("--server-name");
            if (name != null && name.isBlank()) {
                throw new Mistake("--server-name: nothing behind it (expected: a name)");
            }
            if ((chain == null) != (key == null)) {
                throw new Mistake(
                        (chain == null ? "--key without --cert" : "--cert without --key") + " (expected: both)");
            }
            if (authorities == null && chain == null && name == null && !options.containsKey("--tls")) {
                return null;
            }
            Tls tls = Tls.client();
            tls = authorities == null ? tls : tls.trusting(authorities);
            tls = chain == null || key == null ? tls : tls.as(chain, key);
            return name == null ? tls : tls.expecting(name);
        }

        private @Nullable Interceptor signing(PrintStream err) {
            String given = options.getOrDefault("--token", System.getenv("RPCX_TOKEN"));
            if (given == null || given.isEmpty()) {
                return null;
            }
            int colon = given.indexOf(':');
            if (colon < 1) {
                throw new Mistake(line("--token " + given + " (expected: PRINCIPAL:FILE)"));
            }
            Path file = readable("--token", given.substring(colon + 1));
            try {
                byte[] secret = Files.readAllBytes(file);
                if (secret.length > 0 && secret[secret.length - 1] == '\n') {
                    err.println(line("note: " + file + " ends with a line break, which is part of the secret"));
                }
                return Tokens.signing(given.substring(0, colon), secret);
            } catch (IOException e) {
                throw new Mistake(line("--token " + file + ": " + e.getMessage()));
            }
        }
    }

    private int remote(Asked asked) {
        String command = asked.words.isEmpty() ? "" : asked.words.get(0);
        return switch (command) {
            case "list" -> list(asked, asked.address(2, 2, "list HOST:PORT"));
            case "health" -> health(asked, asked.address(2, 2, "health HOST:PORT"));
            case "call" -> call(asked, asked.address(4, 5, "call HOST:PORT INTERFACE METHOD [JSON]"));
            default ->
                throw new Mistake(line("\"" + command
                        + "\": no such command (expected: list, health, call, proto, lock, check, compare)"));
        };
    }

    /** One line without what a terminal would obey. */
    private static String line(String text) {
        StringBuilder clean = new StringBuilder();
        text.codePoints().forEach(c -> {
            if (Character.isISOControl(c) || c == 0x2028 || c == 0x2029) {
                clean.append(String.format("\\u%04x", c));
            } else {
                clean.appendCodePoint(c);
            }
        });
        return clean.toString();
    }

    /** JSON's own lines stay; within its strings an escape says the same. */
    private static String lines(String text) {
        return text.lines().map(CommandLine::line).collect(Collectors.joining(System.lineSeparator()));
    }

    private record Address(String host, int port) {}

    private int list(Asked asked, Address address) {
        try (Client client = asked.client(err)) {
            client.published(address.host, address.port).forEach(name -> out.println(line(name)));
        }
        return 0;
    }

    private int health(Asked asked, Address address) {
        try (Client client = asked.client(err)) {
            long begin = System.nanoTime();
            int methods = client.published(address.host, address.port).size();
            out.printf(
                    "up: connected and answered in %d ms, %d methods%n",
                    (System.nanoTime() - begin) / 1_000_000, methods);
        }
        return 0;
    }

    private int call(Asked asked, Address address) {
        String type = asked.words.get(2);
        String method = asked.words.get(3);
        String arguments = asked.words.size() == 5 ? asked.words.get(4) : "[]";
        Class<?> found;
        try {
            found = Class.forName(type, false, loader);
        } catch (ClassNotFoundException | LinkageError e) {
            throw new Mistake(line(type) + ": no such class on the class path (set RPCX_CLASSPATH)");
        }
        if (!found.isInterface() || !found.isAnnotationPresent(RPCXClient.class)) {
            throw new Mistake(type + " (expected: an interface with @RPCXClient)");
        }
        Method called = Arrays.stream(found.getMethods())
                .filter(m -> m.getName().equals(method))
                .findFirst()
                .orElseThrow(() -> new Mistake(line(type + " has no method " + method) + " (expected: one of "
                        + Arrays.stream(found.getMethods())
                                .map(Method::getName)
                                .distinct()
                                .sorted()
                                .toList() + ")"));
        if (called.getReturnType() == Flow.Publisher.class
                || Arrays.asList(called.getParameterTypes()).contains(Flow.Publisher.class)) {
            throw new Mistake(type + "." + method + " (expected: a method without a stream)");
        }
        @Nullable Object[] given = read(arguments, called);
        try (Client client = asked.client(err)) {
            Object result = invoke(client.create(found, address.host, address.port), called, given);
            if (called.getReturnType() != void.class) {
                out.println(lines(json.writeValueAsString(result)));
            }
            return 0;
        }
    }

    private @Nullable Object[] read(String arguments, Method called) {
        Type[] types = called.getGenericParameterTypes();
        try {
            JsonNode nodes = json.readTree(arguments);
            if (!nodes.isArray() || nodes.size() != types.length) {
                throw new Mistake(line(arguments) + " (expected: a JSON array of " + types.length
                        + ", the arguments of " + called.toGenericString() + ")");
            }
            @Nullable Object[] given = new Object[types.length];
            for (int i = 0; i < types.length; i++) {
                given[i] = json.treeToValue(nodes.get(i), json.constructType(types[i]));
            }
            return given;
        } catch (JacksonException e) {
            // Jackson's own words name its classes and settings
            TokenStreamLocation at = e.getLocation();
            String where =
                    at == null || at.getLineNr() < 1 ? "" : ": line " + at.getLineNr() + ", column " + at.getColumnNr();
            throw new Mistake(line(arguments) + where + " (expected: the arguments of " + called.toGenericString()
                    + " as a JSON array)");
        }
    }

    private static @Nullable Object invoke(Object proxy, Method called, @Nullable Object[] given) {
        try {
            called.setAccessible(true);
            Object result = called.invoke(proxy, given);
            return result instanceof CompletionStage<?> stage
                    ? stage.toCompletableFuture().join()
                    : result;
        } catch (InvocationTargetException | CompletionException e) {
            if (e.getCause() instanceof RPCXException failed) {
                throw failed;
            }
            throw new IllegalStateException(e);
        } catch (IllegalAccessException e) {
            throw new Mistake(called + ": not accessible");
        }
    }
}
