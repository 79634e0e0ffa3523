package dev.rpcx.cli;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Tls;
import dev.rpcx.Tokens;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Options of the commands that talk to a server: TLS and a token. Certificates are always checked. */
final class Remote {
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
