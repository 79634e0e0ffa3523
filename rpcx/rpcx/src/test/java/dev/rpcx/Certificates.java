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

/** An authority and what it signs, made by the JDK's own keytool, as PEM files. */
final class Certificates {
    private static final String PASSWORD = "changeit";

    record Pair(Path chain, Path key) {}

    private final Path directory;

    /** What to trust for all that this authority has signed. */
    final Path authority;

    Certificates(Path directory, String name) throws Exception {
        this.directory = Files.createDirectories(directory.resolve(name));
        this.authority = this.directory.resolve("authority.crt");
        keytool("authority", "-genkeypair", "-keyalg", "EC", "-dname", "CN=" + name, "-ext", "bc:c");
        keytool("authority", "-exportcert", "-rfc", "-file", authority.toString());
    }

    /** @param start of its validity, as keytool takes it: {@code -1d} */
    Pair make(String file, String subject, String host, String start, int days) throws Exception {
        Path request = directory.resolve(file + ".csr");
        Path chain = directory.resolve(file + ".crt");
        keytool(file, "-genkeypair", "-keyalg", "EC", "-dname", "CN=" + subject);
        keytool(file, "-certreq", "-file", request.toString());
        keytool(
                "authority",
                "-gencert",
                "-rfc",
                "-infile",
                request.toString(),
                "-outfile",
                chain.toString(),
                "-startdate",
                start,
                "-validity",
                String.valueOf(days),
                "-ext",
                "SAN=" + host);
        Path key = directory.resolve(file + ".key");
        Files.writeString(key, pem(key(file)));
        return new Pair(chain, key);
    }

    private byte[] key(String file) throws IOException, GeneralSecurityException {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(directory.resolve(file + ".p12"))) {
            keys.load(in, PASSWORD.toCharArray());
        }
        return keys.getKey("own", PASSWORD.toCharArray()).getEncoded();
    }

    private void keytool(String store, String... command) throws IOException, InterruptedException {
        List<String> whole = new ArrayList<>();
        whole.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
        whole.addAll(List.of(command));
        whole.addAll(List.of("-alias", "own", "-storetype", "PKCS12", "-storepass", PASSWORD));
        whole.addAll(List.of("-keystore", directory.resolve(store + ".p12").toString()));
        Process process = new ProcessBuilder(whole).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() != 0) {
            throw new IOException("keytool: " + said);
        }
    }

    private static String pem(byte[] key) {
        String lines = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(key);
        return "-----BEGIN PRIVATE KEY-----\n" + lines + "\n-----END PRIVATE KEY-----\n";
    }
}
