package dev.rpcx;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Whether a private key is that of a certificate. Without this a server takes both, and then fails every handshake. */
final class KeyPairs {
    private static final Pattern KEY =
            Pattern.compile("-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\\s]+)-----END PRIVATE KEY-----");

    private static final byte[] PROBE = "rpcx: does this key fit".getBytes(StandardCharsets.US_ASCII);

    private KeyPairs() {}

    /**
     * Signs with the key, and verifies with the first certificate.
     *
     * @param chain PEM, the own certificate first
     * @param key PEM, unencrypted PKCS#8
     * @return true also for keys of a kind that cannot be checked so
     */
    static boolean fit(byte[] chain, byte[] key) throws GeneralSecurityException {
        PublicKey known = CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(chain))
                .getPublicKey();
        String algorithm = signatureOf(known.getAlgorithm());
        Matcher pem = KEY.matcher(new String(key, StandardCharsets.ISO_8859_1));
        if (algorithm == null || !pem.find()) {
            return true;
        }
        PrivateKey secret;
        try {
            secret = KeyFactory.getInstance(known.getAlgorithm())
                    .generatePrivate(
                            new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(pem.group(1))));
        } catch (InvalidKeySpecException otherKind) {
            return false;
        }
        Signature signing = Signature.getInstance(algorithm);
        signing.initSign(secret);
        signing.update(PROBE);
        byte[] signed = signing.sign();
        Signature verifying = Signature.getInstance(algorithm);
        verifying.initVerify(known);
        verifying.update(PROBE);
        try {
            return verifying.verify(signed);
        } catch (SignatureException otherLength) {
            return false;
        }
    }

    private static @Nullable String signatureOf(String keys) {
        return switch (keys) {
            case "RSA" -> "SHA256withRSA";
            case "EC" -> "SHA256withECDSA";
            default -> null;
        };
    }
}
