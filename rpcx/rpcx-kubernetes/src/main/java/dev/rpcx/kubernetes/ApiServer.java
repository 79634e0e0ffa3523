package dev.rpcx.kubernetes;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;

/**
 * Address of the API server, and the account that asks it. The account's token and authorities are read anew for each
 * request, since Kubernetes renews their files. Source: Kubernetes, <i>Accessing the Kubernetes API from a Pod</i>.
 *
 * @param account folder with the files token, ca.crt and namespace; null if there is no account
 */
record ApiServer(URI base, @Nullable Path account) {
    private static final Path ACCOUNT = Path.of("/var/run/secrets/kubernetes.io/serviceaccount");
    private static final Duration MAX_CONNECT_TIME = Duration.ofSeconds(3);

    static ApiServer at(URI base) {
        return new ApiServer(base, null);
    }

    static ApiServer ofPod(Map<String, String> environment) {
        String host = environment.get("KUBERNETES_SERVICE_HOST");
        String port = environment.getOrDefault("KUBERNETES_SERVICE_PORT", "443");
        if (host == null || host.isEmpty()) {
            throw new IllegalStateException(
                    "KUBERNETES_SERVICE_HOST is not set (expected: in a pod, or KubernetesEndpoints.from(server))");
        }
        String named = host.indexOf(':') < 0 ? host : "[" + host + "]";
        return new ApiServer(URI.create("https://" + named + ":" + port), ACCOUNT);
    }

    /**
     * Returns the pod's own namespace.
     *
     * @throws IllegalStateException if there is no account, or its namespace cannot be read
     */
    String namespace() {
        if (account == null) {
            throw new IllegalStateException("no namespace (expected: KubernetesEndpoints.in(namespace))");
        }
        try {
            return Files.readString(account.resolve("namespace")).strip();
        } catch (IOException e) {
            throw new IllegalStateException(account + ": no namespace (expected: a service account's files)", e);
        }
    }

    /** Returns the certificates that the account trusts at present, in PEM; empty if there is no account. */
    byte[] authorities() throws IOException {
        return account == null ? new byte[0] : Files.readAllBytes(account.resolve("ca.crt"));
    }

    /** Returns a client that trusts these authorities, or those of the JDK if there is no account. */
    HttpClient client(byte[] authorities) throws IOException {
        HttpClient.Builder builder =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(MAX_CONNECT_TIME);
        if (account != null) {
            builder.sslContext(trusting(authorities));
        }
        return builder.build();
    }

    HttpRequest request(String pathAndQuery) throws IOException {
        HttpRequest.Builder builder =
                HttpRequest.newBuilder(URI.create(base + pathAndQuery)).header("Accept", "application/json");
        if (account != null) {
            builder.header("Authorization", "Bearer " + token(account.resolve("token")));
        }
        return builder.build();
    }

    /**
     * Returns the token of a file, after a check that a header may contain it. For any other token the HTTP client
     * would throw an error whose text contains the token.
     */
    private static String token(Path file) throws IOException {
        String token = Files.readString(file).strip();
        if (!token.chars().allMatch(c -> c > ' ' && c < 0x7F)) {
            throw new IOException(
                    file + ": has a character that is no visible one of ASCII (expected: a token of Kubernetes)");
        }
        return token;
    }

    private SSLContext trusting(byte[] authorities) throws IOException {
        try (InputStream in = new ByteArrayInputStream(authorities)) {
            KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
            trusted.load(null, null);
            int number = 0;
            for (Certificate each : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                trusted.setCertificateEntry("authority-" + number++, each);
            }
            TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            managers.init(trusted);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, managers.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException e) {
            throw new IOException(account + "/ca.crt: cannot be used: " + e.getMessage(), e);
        }
    }
}
