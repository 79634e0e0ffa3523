package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Base64;
import java.util.List;

/** A certificate that is its own authority, for this host's address, and its key, as PEM files. */
record Certificate(Path chain, Path key) {
    private static final String PASSWORD = "changeit";

    /** Makes a certificate with the keytool of the JDK. */
    static Certificate make(Path folder, String name) throws Exception {
        Path store = folder.resolve(name + ".p12");
        Process keytool = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "keytool")
                                .toString(),
                        "-genkeypair",
                        "-alias",
                        name,
                        "-keyalg",
                        "EC",
                        "-dname",
                        "CN=" + name,
                        "-ext",
                        "SAN=ip:127.0.0.1",
                        "-keystore",
                        store.toString(),
                        "-storepass",
                        PASSWORD))
                .redirectErrorStream(true)
                .start();
        keytool.getInputStream().readAllBytes();
        assertThat(keytool.waitFor()).isZero();
        KeyStore keys = KeyStore.getInstance(store.toFile(), PASSWORD.toCharArray());
        Path chain = folder.resolve(name + ".crt");
        Path key = folder.resolve(name + ".key");
        Files.writeString(chain, pem("CERTIFICATE", keys.getCertificate(name).getEncoded()));
        Files.writeString(
                key,
                pem("PRIVATE KEY", keys.getKey(name, PASSWORD.toCharArray()).getEncoded()));
        return new Certificate(chain, key);
    }

    private static String pem(String what, byte[] bytes) {
        return "-----BEGIN " + what + "-----\n" + Base64.getMimeEncoder().encodeToString(bytes) + "\n-----END " + what
                + "-----\n";
    }
}
