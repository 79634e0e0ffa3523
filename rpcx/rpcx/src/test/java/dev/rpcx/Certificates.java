package dev.rpcx;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * An authority that signs certificates. The JDK's keytool makes the certificates and keys, which are then written as
 * PEM files.
 */
public final class Certificates {
    private static final String PASSWORD = "changeit";

    public record Pair(Path chain, Path key) {}

    private final Path directory;
    private final Path store;

    /** The file to trust in order to trust all certificates that this authority has signed. */
    public final Path authority;

    public Certificates(Path directory, String name) throws Exception {
        this.directory = Files.createDirectories(directory.resolve(name));
        this.store = this.directory.resolve("keys.p12");
        this.authority = this.directory.resolve("authority.crt");
        keytool("authority", "-genkeypair", "-keyalg", "EC", "-dname", "CN=" + name, "-ext", "bc:c");
        Files.writeString(
                authority, pem("CERTIFICATE", keys().getCertificate("authority").getEncoded()));
    }

    /** @param start start of the validity, in the form of keytool, such as {@code -1d} */
    public Pair make(String file, String subject, String host, String start, int days) throws Exception {
        return make(file, "EC", subject, host, start, days);
    }

    /** @param algorithm algorithm of the key, by its name in keytool: EC or RSA */
    public Pair make(String file, String algorithm, String subject, String host, String start, int days)
            throws Exception {
        List<String> command = new ArrayList<>(List.of("-genkeypair", "-keyalg", algorithm, "-dname", "CN=" + subject));
        command.addAll(List.of("-signer", "authority", "-startdate", start));
        command.addAll(List.of("-validity", String.valueOf(days), "-ext", "SAN=" + host));
        if (algorithm.equals("RSA")) {
            // keytool's own choice is longer, and takes seconds to find
            command.addAll(List.of("-keysize", "2048"));
        }
        keytool(file, command.toArray(String[]::new));
        Path chain = directory.resolve(file + ".crt");
        Path key = directory.resolve(file + ".key");
        KeyStore keys = keys();
        Files.writeString(chain, pem("CERTIFICATE", keys.getCertificate(file).getEncoded()));
        Files.writeString(
                key,
                pem("PRIVATE KEY", keys.getKey(file, PASSWORD.toCharArray()).getEncoded()));
        return new Pair(chain, key);
    }

    /**
     * Returns a context for sockets of the JDK. They show the certificate that {@link #make} has made under this name,
     * and trust this authority.
     */
    public SSLContext context(String file) throws IOException, GeneralSecurityException {
        KeyStore all = keys();
        KeyStore shown = KeyStore.getInstance("PKCS12");
        shown.load(null, null);
        char[] password = PASSWORD.toCharArray();
        shown.setKeyEntry(file, all.getKey(file, password), password, all.getCertificateChain(file));
        KeyManagerFactory own = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        own.init(shown, password);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("authority", all.getCertificate("authority"));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(own.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private KeyStore keys() throws IOException, GeneralSecurityException {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, PASSWORD.toCharArray());
        }
        return keys;
    }

    private void keytool(String alias, String... command) throws IOException, InterruptedException {
        List<String> whole = new ArrayList<>();
        whole.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
        whole.addAll(List.of(command));
        whole.addAll(List.of("-alias", alias, "-storetype", "PKCS12", "-storepass", PASSWORD));
        whole.addAll(List.of("-keystore", store.toString(), "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"));
        // the iterations that make a password hard to guess take longer than all else, each time the store is opened
        for (String what : List.of("keyPbe", "certPbe", "mac")) {
            whole.add("-J-Dkeystore.pkcs12." + what + "IterationCount=1");
        }
        Process process = new ProcessBuilder(whole).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() != 0) {
            throw new IOException("keytool: " + said);
        }
    }

    private static String pem(String what, byte[] bytes) {
        String lines = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(bytes);
        return "-----BEGIN " + what + "-----\n" + lines + "\n-----END " + what + "-----\n";
    }
}
