package dev.rpcx.cli;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Tls;
import dev.rpcx.Tokens;
import java.io.IOException;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/**
 * Options of the commands that talk to a server: TLS, a token, what is sent with each call, and how answers are
 * printed. Certificates are always checked.
 */
final class Remote {
    /** The longest time of a call without a stream, unless an option says otherwise. */
    private static final Duration CALL_TIMEOUT = Duration.ofSeconds(5);

    private static final BigDecimal MIN_SECONDS = new BigDecimal("0.001");
    private static final BigDecimal MAX_SECONDS = new BigDecimal("3600");

    @Option(
            names = "--tls",
            arity = "0",
            description = "Use TLS; the server's certificate must be issued by an authority that the JDK trusts.")
    private boolean isTls;

    @Option(
            names = "--ca",
            paramLabel = "FILE",
            description = "Use TLS; the server's certificate is in FILE (PEM), or issued by an authority in FILE.")
    private @Nullable Path authorities;

    @Option(
            names = "--server-name",
            paramLabel = "NAME",
            description = "Use TLS; the server's certificate has this name instead of HOST.")
    private @Nullable String name;

    @Option(names = "--cert", paramLabel = "FILE", description = "Use TLS; show this certificate (PEM), with --key.")
    private @Nullable Path chain;

    @Option(names = "--key", paramLabel = "FILE", description = "Key of that certificate (PEM, PKCS#8).")
    private @Nullable Path key;

    @Option(
            names = "--token",
            paramLabel = "PRINCIPAL:FILE",
            description = "Sign calls; FILE holds the secret, of which every byte counts. Default: RPCX_TOKEN.")
    private @Nullable String token;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            description = "Longest time of a call, 0.001 to 3600. Default: 5, and no limit for a call with a stream.")
    private @Nullable Duration timeout;

    @Option(
            names = "--metadata",
            paramLabel = "NAME=VALUE",
            description = "Send this entry of metadata with calls; may be given several times.")
    private @Nullable List<String> metadata;

    @Option(
            names = "--json",
            arity = "0",
            description = "Print for programs: each result, item, line and error is one line of JSON.")
    private boolean isJson;

    /** Whether answers are printed for programs. */
    boolean isJson() {
        return isJson;
    }

    /** Returns the longest time of a call without a stream. */
    Duration time() {
        return timeout == null ? CALL_TIMEOUT : timeout;
    }

    /** Makes calls on the calling thread, with the time and the metadata that the options give them. */
    <T> T calling(Supplier<T> calls) {
        Supplier<T> sending = calls;
        for (String entry : metadata == null ? List.<String>of() : metadata) {
            int equals = entry.indexOf('=');
            if (equals < 1) {
                throw new Mistake("--metadata: " + Printable.clipped(entry) + " (expected: NAME=VALUE)");
            }
            Supplier<T> inner = sending;
            String name = entry.substring(0, equals);
            String value = entry.substring(equals + 1);
            sending = () -> CallContext.with(name, value, inner);
        }
        return timeout == null ? sending.get() : CallContext.within(timeout, sending);
    }

    static Duration seconds(String text) {
        BigDecimal seconds = text.matches("[0-9]{1,9}(\\.[0-9]{1,9})?") ? new BigDecimal(text) : BigDecimal.ZERO;
        if (seconds.compareTo(MIN_SECONDS) < 0 || seconds.compareTo(MAX_SECONDS) > 0) {
            throw new Mistake(Printable.clipped(text) + " (expected: seconds, 0.001 to 3600)");
        }
        return Duration.ofNanos(seconds.movePointRight(9).longValue());
    }

    /** Whether one of the options means TLS. */
    boolean isTls() {
        return isTls || authorities != null || name != null || chain != null || key != null;
    }

    static Endpoint endpoint(String text) {
        if (text.contains("://")) {
            throw new Mistake(Printable.clipped(text) + " (expected: host:port, and no URL)");
        }
        int colon = text.lastIndexOf(':');
        String host = text.substring(0, Math.max(0, colon));
        String port = text.substring(colon + 1);
        if (colon < 0 || !port.matches("[0-9]+") || port.length() > 9) {
            throw new Mistake(Printable.clipped(text) + " (expected: host:port, a port being 1 to 65535)");
        }
        boolean isBracketed = host.startsWith("[") && host.endsWith("]");
        String name = isBracketed ? host.substring(1, host.length() - 1) : host;
        if (isBracketed ? !isIpv6(name) : name.indexOf(':') >= 0) {
            throw new Mistake(Printable.clipped(text) + " (expected: an address of IPv6 in brackets, [::1]:9000)");
        }
        return new Endpoint(name, Integer.parseInt(port));
    }

    /** Returns whether the text is an address of IPv6, with or without a zone such as {@code %eth0}. */
    private static boolean isIpv6(String text) {
        String address = text.split("%", 2)[0];
        if (address.indexOf(':') < 0) {
            return false;
        }
        try {
            // Java looks up no name in DNS for a text in brackets that contains a colon.
            return InetAddress.getAllByName("[" + address + "]").length > 0;
        } catch (UnknownHostException e) {
            return false;
        }
    }

    /**
     * Returns a client with the TLS and the token that the options ask for. Half of a call's time is the longest time
     * to connect, so that the error says why there is no connection before the call's own time is up.
     */
    Client client(PrintStream err) {
        Client.Builder builder = Client.builder()
                .callTimeout(time())
                .connectTimeout(time().dividedBy(2))
                .connections(1);
        if (isTls()) {
            builder.tls(tls());
        }
        sign(builder, err);
        return builder.build();
    }

    private Tls tls() {
        if ((chain == null) != (key == null)) {
            throw new Mistake((chain == null ? "--key without --cert" : "--cert without --key") + " (expected: both)");
        }
        Tls tls = Tls.client();
        tls = authorities == null ? tls : tls.trusting(readable("--ca", authorities));
        tls = chain == null || key == null ? tls : tls.as(readable("--cert", chain), readable("--key", key));
        return name == null ? tls : tls.expecting(name);
    }

    private static Path readable(String option, Path file) {
        return Rpcx.readable(option + " " + Printable.clipped(file.toString()), file);
    }

    private void sign(Client.Builder builder, PrintStream err) {
        String given = token == null ? System.getenv("RPCX_TOKEN") : token;
        String source = token == null ? "RPCX_TOKEN" : "--token";
        if (given == null || given.isEmpty()) {
            return;
        }
        int colon = given.indexOf(':');
        if (colon < 1) {
            throw new Mistake(source + ": no principal and file (expected: PRINCIPAL:FILE)");
        }
        // The error does not repeat what was given: somebody who gives the secret itself will not find it in a log.
        String what = source + " PRINCIPAL:FILE";
        try {
            Path file = Rpcx.readable(what, Path.of(given.substring(colon + 1)));
            byte[] secret = Files.readAllBytes(file);
            if (secret.length > 0 && secret[secret.length - 1] == '\n') {
                err.println(Printable.line("note: " + file + " ends with a line break, which is part of the secret"));
            }
            builder.interceptor(Tokens.signing(given.substring(0, colon), secret));
        } catch (IOException | InvalidPathException e) {
            throw new Mistake(what + " (expected: a file that can be read)");
        }
    }
}
