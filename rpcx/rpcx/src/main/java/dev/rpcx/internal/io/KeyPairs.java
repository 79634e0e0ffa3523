package dev.rpcx.internal.io;

import io.netty.handler.ssl.SslContext;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import org.jspecify.annotations.Nullable;

/**
 * Checks whether a private key belongs to a certificate. Without this check, a server would start with the key of
 * another certificate, and every handshake would fail.
 */
public final class KeyPairs {
    private static final byte[] PROBE = "rpcx: does this key fit".getBytes(StandardCharsets.US_ASCII);

    private KeyPairs() {}

    /**
     * Returns whether a private key belongs to a certificate. The key signs a text, and the certificate's public key
     * verifies the signature.
     *
     * @param chain certificates in PEM; the first one, that of the server or client itself, is checked
     * @param key private key in PEM, as unencrypted PKCS#8
     * @return true also if keys of this algorithm cannot be checked
     */
    public static boolean fit(byte[] chain, byte[] key) throws GeneralSecurityException, IOException {
        PublicKey known = Pem.certificate(chain).getPublicKey();
        PrivateKey secret = Pem.key(key);
        String algorithm = signatureOf(known.getAlgorithm());
        if (algorithm == null) {
            return true;
        }
        if (!secret.getAlgorithm().equals(known.getAlgorithm())) {
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
            case "EdDSA" -> "EdDSA";
            default -> null;
        };
    }

    /** Reads PEM with the protected methods of Netty's {@link SslContext}, as Netty's TLS contexts do. */
    private abstract static class Pem extends SslContext {
        static X509Certificate certificate(byte[] chain) throws CertificateException {
            return toX509Certificates(new ByteArrayInputStream(chain))[0];
        }

        static PrivateKey key(byte[] pem) throws GeneralSecurityException, IOException {
            PrivateKey key = toPrivateKey(new ByteArrayInputStream(pem), null);
            if (key == null) {
                throw new InvalidKeySpecException("no private key");
            }
            return key;
        }
    }
}
