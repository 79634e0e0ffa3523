package dev.rpcx.internal.call;

import dev.rpcx.RPCXException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * The content of a signed token, which says to a server who makes a call. The bytes of the content have only one form:
 * each part has a fixed length, or its length stands in front of it. {@code docs/security.md} describes the form. The
 * signature covers these bytes, the service and the method, so a token is valid for one method only.
 *
 * @param expiresMillis time at which the token expires, in milliseconds since 1970
 * @param nonce {@value #NONCE_BYTES} random bytes
 * @param signer principal whose secret signs the token
 * @param caller principal for whom the signer makes the call; null if the signer calls for itself
 * @param via services through which the call has come from the caller to the signer, in this order; empty if
 *     {@code caller} is null
 */
public record Token(
        long expiresMillis,
        byte[] nonce,
        String signer,
        @Nullable String caller,
        List<String> via) {
    public static final int NONCE_BYTES = 16;

    /**
     * Max number of services between the caller and the signer. A token with this number of services still fits into
     * the metadata of a call, which can have at most 8 KiB, even if all names have their max length.
     */
    public static final int MAX_VIA = 16;

    static final int MAX_NAME_BYTES = 255;
    static final int MIN_SECRET_BYTES = 16;

    private static final String MAC = "HmacSHA256";
    private static final int MAC_BYTES = 32;

    /** Prefix of the bytes that are signed, so that no signature made for another purpose is valid for a token. */
    private static final byte[] DOMAIN = "rpcx token 2".getBytes(StandardCharsets.US_ASCII);

    private static final byte OWN = 1;
    private static final byte FORWARDING = 2;
    private static final int MAX_FIELD_BYTES = 2 + MAX_NAME_BYTES;
    private static final int MAX_CLAIM_BYTES =
            1 + 8 + NONCE_BYTES + 2 * MAX_FIELD_BYTES + 1 + MAX_VIA * MAX_FIELD_BYTES;

    /** Max number of characters in the text of a token. A longer text is refused without being decoded. */
    private static final int MAX_TEXT = (MAX_CLAIM_BYTES + MAC_BYTES + 2) / 3 * 4;

    /** A token that has arrived with a call. The signature has to be checked with {@link #isSignedBy}. */
    public record Received(Token token, byte[] claims, byte[] mac) {
        public boolean isSignedBy(SecretKeySpec key, String service, String method) {
            return MessageDigest.isEqual(signature(key, claims, service, method), mac);
        }
    }

    /** Returns the error for a call whose token has expired during its check: OVERLOADED, NOT_EXECUTED. */
    public static RPCXException expiredMeanwhile() {
        return RPCXException.refused(RPCXException.Code.OVERLOADED, "the token has expired while it was checked");
    }

    /**
     * Returns {@code name} if a token can contain this name.
     *
     * @throws IllegalArgumentException if the name does not have 1 to 255 bytes of UTF-8, or if the name has control
     *     characters, line or paragraph separators, or unpaired surrogates
     */
    public static String checkedName(String what, String name) {
        if (!isName(name)) {
            throw new IllegalArgumentException(what + ": a name of " + name.length() + " characters (expected: 1 to "
                    + MAX_NAME_BYTES + " bytes of UTF-8 without control characters)");
        }
        return name;
    }

    private static boolean isName(String name) {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        return bytes.length > 0
                && bytes.length <= MAX_NAME_BYTES
                // UTF-8 cannot encode an unpaired surrogate, so two different names could have the same bytes
                && StandardCharsets.UTF_8.newEncoder().canEncode(CharBuffer.wrap(name))
                && name.chars().noneMatch(c -> Character.isISOControl(c) || c == '\u2028' || c == '\u2029');
    }

    public static SecretKeySpec key(byte[] secret) {
        if (secret.length < MIN_SECRET_BYTES) {
            throw new IllegalArgumentException(
                    "secret of " + secret.length + " bytes (expected: " + MIN_SECRET_BYTES + " or more)");
        }
        return new SecretKeySpec(secret, MAC);
    }

    /** Signs this token for one call of the given method, and returns the text of the signed token. */
    public String signed(SecretKeySpec key, String service, String method) {
        byte[] claims = claims();
        byte[] mac = signature(key, claims, service, method);
        byte[] all = Arrays.copyOf(claims, claims.length + mac.length);
        System.arraycopy(mac, 0, all, claims.length, mac.length);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(all);
    }

    private byte[] claims() {
        ByteBuffer out = ByteBuffer.allocate(MAX_CLAIM_BYTES);
        out.put(caller == null ? OWN : FORWARDING).putLong(expiresMillis).put(nonce);
        field(out, signer.getBytes(StandardCharsets.UTF_8));
        if (caller != null) {
            field(out, caller.getBytes(StandardCharsets.UTF_8));
            out.put((byte) via.size());
            via.forEach(service -> field(out, service.getBytes(StandardCharsets.UTF_8)));
        }
        return Arrays.copyOf(out.array(), out.position());
    }

    private static void field(ByteBuffer out, byte[] bytes) {
        out.putShort((short) bytes.length).put(bytes);
    }

    private static byte[] signature(SecretKeySpec key, byte[] claims, String service, String method) {
        byte[] serviceBytes = service.getBytes(StandardCharsets.UTF_8);
        byte[] methodBytes = method.getBytes(StandardCharsets.UTF_8);
        ByteBuffer signed =
                ByteBuffer.allocate(8 + DOMAIN.length + serviceBytes.length + methodBytes.length + claims.length);
        field(signed, DOMAIN);
        field(signed, serviceBytes);
        field(signed, methodBytes);
        field(signed, claims);
        try {
            Mac mac = Mac.getInstance(MAC);
            mac.init(key);
            return mac.doFinal(signed.array());
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Reads a token from its text, without checking the signature. Returns null if {@code text} is null or is not
     * exactly the text of a token.
     */
    public static @Nullable Received read(@Nullable String text) {
        if (text == null || text.length() > MAX_TEXT) {
            return null;
        }
        byte[] all;
        try {
            all = Base64.getUrlDecoder().decode(text);
        } catch (IllegalArgumentException malformed) {
            return null;
        }
        // padding, and unused bits set in the last character, are refused, so that each token has only one text
        if (all.length <= MAC_BYTES
                || !Base64.getUrlEncoder().withoutPadding().encodeToString(all).equals(text)) {
            return null;
        }
        byte[] claims = Arrays.copyOf(all, all.length - MAC_BYTES);
        Token token = claimed(ByteBuffer.wrap(claims));
        return token == null ? null : new Received(token, claims, Arrays.copyOfRange(all, claims.length, all.length));
    }

    private static @Nullable Token claimed(ByteBuffer in) {
        if (in.remaining() < 1 + Long.BYTES + NONCE_BYTES) {
            return null;
        }
        byte kind = in.get();
        long expires = in.getLong();
        byte[] nonce = new byte[NONCE_BYTES];
        in.get(nonce);
        String signer = name(in);
        if (signer == null || kind != OWN && kind != FORWARDING) {
            return null;
        }
        if (kind == OWN) {
            return in.hasRemaining() ? null : new Token(expires, nonce, signer, null, List.of());
        }
        String caller = name(in);
        int count = in.hasRemaining() ? in.get() & 0xFF : -1;
        if (caller == null || count < 0 || count > MAX_VIA) {
            return null;
        }
        List<String> via = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            String service = name(in);
            if (service == null) {
                return null;
            }
            via.add(service);
        }
        return in.hasRemaining() ? null : new Token(expires, nonce, signer, caller, via);
    }

    /** Reads the next name from the bytes of a token. Returns null if no valid name follows. */
    private static @Nullable String name(ByteBuffer in) {
        if (in.remaining() < Short.BYTES) {
            return null;
        }
        int length = in.getShort() & 0xFFFF;
        if (length > MAX_NAME_BYTES || length > in.remaining()) {
            return null;
        }
        ByteBuffer bytes = in.slice(in.position(), length);
        in.position(in.position() + length);
        try {
            // the decoder refuses bytes that are not UTF-8: if it replaced them, two different names could become equal
            String name = StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
            return isName(name) ? name : null;
        } catch (CharacterCodingException malformed) {
            return null;
        }
    }
}
