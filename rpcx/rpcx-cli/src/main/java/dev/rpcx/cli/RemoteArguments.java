package dev.rpcx.cli;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Interceptor;
import dev.rpcx.Tls;
import dev.rpcx.Tokens;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Arguments of a command that talks to a server, split into words and options.
 *
 * @param words the command and its words, without options
 * @param options the options by name, each at most once; the text is empty for a flag
 */
record RemoteArguments(List<String> words, Map<String, String> options) {
    private static final Set<String> FLAGS = Set.of("--tls");
    private static final Set<String> OPTIONS = Set.of("--ca", "--server-name", "--cert", "--key", "--token");

    /** Options that mean TLS, each of them alone. */
    private static final Set<String> TLS = Set.of("--tls", "--ca", "--server-name", "--cert", "--key");

    static RemoteArguments of(List<String> args) {
        List<String> words = new ArrayList<>();
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i < args.size(); i++) {
            String arg = args.get(i);
            if (!isOption(arg)) {
                words.add(arg);
                continue;
            }
            String value = "";
            if (OPTIONS.contains(arg)) {
                i++;
                value = i < args.size() ? args.get(i) : "";
                if (value.isBlank() || value.startsWith("--")) {
                    throw new Mistake(arg + ": nothing behind it (expected: a "
                            + (arg.equals("--server-name") ? "name" : "value") + ")");
                }
            } else if (!FLAGS.contains(arg)) {
                throw noSuchOption(arg);
            }
            if (options.put(arg, value) != null) {
                throw new Mistake(arg + ": stands there twice (expected: once)");
            }
        }
        return new RemoteArguments(words, options);
    }

    static boolean isOption(String arg) {
        return arg.length() > 1 && arg.startsWith("-");
    }

    static Mistake noSuchOption(String arg) {
        Set<String> all = new TreeSet<>(OPTIONS);
        all.addAll(FLAGS);
        int equals = arg.indexOf('=');
        if (equals > 0 && OPTIONS.contains(arg.substring(0, equals))) {
            return new Mistake(arg.substring(0, equals) + "=… (expected: a space between " + arg.substring(0, equals)
                    + " and its value)");
        }
        return new Mistake(Printable.clipped(arg) + ": no such option" + Printable.nearest(arg, all)
                + " (rpcx --help names them)");
    }

    boolean isTls() {
        return options.keySet().stream().anyMatch(TLS::contains);
    }

    /**
     * Returns the server's address, after a check of the number of words.
     *
     * @param expected how the command is written, for the error
     */
    Endpoint address(int min, int max, String expected) {
        if (words.size() < 2) {
            throw new Mistake("HOST:PORT is missing (expected: " + expected + ")");
        }
        if (words.size() < min || words.size() > max) {
            throw new Mistake(words.size() - 1 + " words behind " + words.get(0) + " (expected: " + expected + ")");
        }
        return endpoint(words.get(1));
    }

    private static Endpoint endpoint(String text) {
        int colon = text.lastIndexOf(':');
        String host = text.substring(0, Math.max(0, colon));
        String port = text.substring(colon + 1);
        if (colon < 0 || !port.matches("[0-9]+") || port.length() > 9) {
            throw new Mistake(Printable.clipped(text) + " (expected: host:port, a port being 1 to 65535)");
        }
        boolean isBracketed = host.startsWith("[") && host.endsWith("]");
        if (!isBracketed && host.indexOf(':') >= 0) {
            throw new Mistake(Printable.clipped(text) + " (expected: an address of IPv6 in brackets, [::1]:9000)");
        }
        return new Endpoint(isBracketed ? host.substring(1, host.length() - 1) : host, Integer.parseInt(port));
    }

    private @Nullable Path file(String option) {
        String name = options.get(option);
        return name == null ? null : readable(option + " " + Printable.clipped(name), name);
    }

    private static Path readable(String what, String name) {
        try {
            Path file = Path.of(name);
            // A pipe is a file too.
            if (Files.isReadable(file) && !Files.isDirectory(file)) {
                return file;
            }
            throw new Mistake(what
                    + (!Files.exists(file)
                            ? ": no such file"
                            : Files.isReadable(file) ? ": a folder" : ": not readable")
                    + " (expected: a file that can be read)");
        } catch (InvalidPathException e) {
            throw new Mistake(what + " (expected: a file that can be read)");
        }
    }

    /**
     * Returns a client with the TLS and the token that the options ask for.
     *
     * @param time max time of a call; half of it is the max time to connect, so that the error says why there is no
     *     connection before the call's own time is up
     */
    Client client(Duration time, PrintStream err) {
        // There is only one connection, so what is sent after a one-way call is also read after it.
        Client.Builder builder = Client.builder()
                .callTimeout(time)
                .connectTimeout(time.dividedBy(2))
                .connections(1);
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
        if (!isTls()) {
            return null;
        }
        Path authorities = file("--ca");
        Path chain = file("--cert");
        Path key = file("--key");
        String name = options.get("--server-name");
        if ((chain == null) != (key == null)) {
            throw new Mistake((chain == null ? "--key without --cert" : "--cert without --key") + " (expected: both)");
        }
        Tls tls = Tls.client();
        tls = authorities == null ? tls : tls.trusting(authorities);
        tls = chain == null || key == null ? tls : tls.as(chain, key);
        return name == null ? tls : tls.expecting(name);
    }

    private @Nullable Interceptor signing(PrintStream err) {
        String option = options.get("--token");
        String given = option == null ? System.getenv("RPCX_TOKEN") : option;
        String source = option == null ? "RPCX_TOKEN" : "--token";
        if (given == null || given.isEmpty()) {
            return null;
        }
        int colon = given.indexOf(':');
        if (colon < 1) {
            throw new Mistake(source + ": no principal and file (expected: PRINCIPAL:FILE)");
        }
        // The error does not repeat what was given: somebody who gives the secret itself will not find it in a log.
        Path file = readable(source + " PRINCIPAL:FILE", given.substring(colon + 1));
        try {
            byte[] secret = Files.readAllBytes(file);
            if (secret.length > 0 && secret[secret.length - 1] == '\n') {
                err.println(Printable.line("note: " + file + " ends with a line break, which is part of the secret"));
            }
            return Tokens.signing(given.substring(0, colon), secret);
        } catch (IOException e) {
            throw new Mistake(source + " " + file + ": " + e.getMessage());
        }
    }
}
