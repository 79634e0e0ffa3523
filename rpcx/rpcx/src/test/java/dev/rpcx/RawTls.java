package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.interfaces.XECPublicKey;
import java.security.spec.NamedParameterSpec;
import java.security.spec.XECPublicKeySpec;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * A client of TLS 1.3 that a test controls record by record. It can do what RFC 8446 says, and whatever the RFC
 * forbids. It has one cipher suite and one group, and does not check the server's certificate. It serves one
 * connection, and has no socket.
 */
final class RawTls {
    static final int CHANGE_CIPHER_SPEC = 20;
    static final int ALERT = 21;
    static final int HANDSHAKE = 22;
    static final int DATA = 23;

    static final int NEW_TICKET = 4;
    static final int KEY_UPDATE = 24;

    private static final int SERVER_HELLO = 2;
    private static final int FINISHED = 20;
    private static final int HEADER = 5;
    private static final int MESSAGE_HEADER = 4;
    private static final int HASH_BYTES = 32;
    private static final int X25519 = 0x1D;
    private static final int KEY_SHARE = 51;

    private final KeyPair pair;
    private final ByteBuf in = Unpooled.buffer();
    private final ByteBuf messages = Unpooled.buffer();
    private final ByteArrayOutputStream transcript = new ByteArrayOutputStream();
    private byte[] master = {};
    private @Nullable Keys own;
    private @Nullable Keys peers;
    private boolean isDone;

    /** Holds the keys of one direction. */
    private static final class Keys {
        private byte[] secret;
        private SecretKeySpec key;
        private byte[] iv;
        private long sequence;

        Keys(byte[] secret) throws GeneralSecurityException {
            this.secret = secret;
            this.key = new SecretKeySpec(expand(secret, "key", new byte[0], 16), "AES");
            this.iv = expand(secret, "iv", new byte[0], 12);
        }

        void update() throws GeneralSecurityException {
            secret = expand(secret, "traffic upd", new byte[0], HASH_BYTES);
            key = new SecretKeySpec(expand(secret, "key", new byte[0], 16), "AES");
            iv = expand(secret, "iv", new byte[0], 12);
            sequence = 0;
        }

        byte[] crypt(int mode, byte[] header, byte[] bytes) throws GeneralSecurityException {
            byte[] nonce = iv.clone();
            for (int i = 0; i < Long.BYTES; i++) {
                nonce[nonce.length - 1 - i] ^= (byte) (sequence >>> 8 * i);
            }
            sequence++;
            Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
            cipher.init(mode, key, new GCMParameterSpec(128, nonce));
            cipher.updateAAD(header);
            return cipher.doFinal(bytes);
        }
    }

    RawTls() {
        try {
            pair = KeyPairGenerator.getInstance("X25519").generateKeyPair();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Returns what a client says first, as one message without a record. */
    ByteBuf hello() {
        return hello(0);
    }

    /** Returns the same message with so many bytes of padding. */
    ByteBuf hello(int padding) {
        byte[] share = new byte[HASH_BYTES];
        byte[] big = ((XECPublicKey) pair.getPublic()).getU().toByteArray();
        for (int i = 0; i < big.length && i < share.length; i++) {
            share[i] = big[big.length - 1 - i];
        }
        ByteBuf extensions = Unpooled.buffer();
        // supported_versions: 1.3
        extension(extensions, 43, Unpooled.buffer().writeByte(2).writeShort(0x0304));
        // supported_groups
        extension(extensions, 10, Unpooled.buffer().writeShort(2).writeShort(X25519));
        // signature_algorithms: ECDSA and RSA-PSS
        ByteBuf algorithms = Unpooled.buffer();
        for (int algorithm : new int[] {0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806}) {
            algorithms.writeShort(algorithm);
        }
        extension(
                extensions,
                13,
                Unpooled.buffer().writeShort(algorithms.readableBytes()).writeBytes(algorithms));
        extension(
                extensions,
                KEY_SHARE,
                Unpooled.buffer()
                        .writeShort(share.length + 4)
                        .writeShort(X25519)
                        .writeShort(share.length)
                        .writeBytes(share));
        extension(extensions, 21, Unpooled.buffer().writeZero(padding));
        ByteBuf body = Unpooled.buffer()
                .writeShort(0x0303)
                .writeBytes(new byte[32])
                .writeByte(0)
                // TLS_AES_128_GCM_SHA256
                .writeShort(2)
                .writeShort(0x1301)
                // no compression
                .writeShort(0x0100)
                .writeShort(extensions.readableBytes())
                .writeBytes(extensions);
        ByteBuf message =
                Unpooled.buffer().writeByte(1).writeMedium(body.readableBytes()).writeBytes(body);
        if (transcript.size() == 0) {
            transcript.writeBytes(ByteBufUtil.getBytes(message));
        }
        return message;
    }

    private static void extension(ByteBuf to, int type, ByteBuf content) {
        to.writeShort(type).writeShort(content.readableBytes()).writeBytes(content);
    }

    /** Returns a record as it stands on the wire before there are keys. */
    static ByteBuf plain(int type, ByteBuf content) {
        return Unpooled.buffer()
                .writeByte(type)
                .writeShort(0x0301)
                .writeShort(content.readableBytes())
                .writeBytes(content.duplicate());
    }

    /** Returns the same content in records of at most so many bytes each. */
    static ByteBuf plain(int type, ByteBuf content, int bytes) {
        ByteBuf all = Unpooled.buffer();
        for (ByteBuf rest = content.duplicate(); rest.isReadable(); ) {
            all.writeBytes(plain(type, rest.readSlice(Math.min(bytes, rest.readableBytes()))));
        }
        return all;
    }

    /** Returns whether there are keys for what comes after the handshake. */
    boolean isDone() {
        return isDone;
    }

    /**
     * Takes what the server has sent.
     *
     * @return what is to be sent to it, which is this side's Finished, once; null otherwise
     */
    @Nullable
    ByteBuf read(ByteBuf bytes) throws GeneralSecurityException {
        if (isDone) {
            return null;
        }
        in.writeBytes(bytes);
        while (in.readableBytes() >= HEADER) {
            int length = in.getUnsignedShort(in.readerIndex() + 3);
            if (in.readableBytes() < HEADER + length) {
                break;
            }
            byte[] header = new byte[HEADER];
            byte[] content = new byte[length];
            in.readBytes(header).readBytes(content);
            int type = header[0];
            if (type == DATA && peers != null) {
                byte[] plain = peers.crypt(Cipher.DECRYPT_MODE, header, content);
                int end = plain.length - 1;
                while (plain[end] == 0) {
                    end--;
                }
                type = plain[end];
                content = Arrays.copyOf(plain, end);
            }
            if (type == HANDSHAKE) {
                messages.writeBytes(content);
                ByteBuf last = readMessages();
                if (last != null) {
                    return last;
                }
            } else if (type == ALERT) {
                throw new GeneralSecurityException("alert " + content[content.length - 1]);
            }
        }
        return null;
    }

    private @Nullable ByteBuf readMessages() throws GeneralSecurityException {
        while (messages.readableBytes() >= MESSAGE_HEADER) {
            int length = MESSAGE_HEADER + messages.getUnsignedMedium(messages.readerIndex() + 1);
            if (messages.readableBytes() < length) {
                return null;
            }
            byte[] message = new byte[length];
            messages.readBytes(message);
            transcript.writeBytes(message);
            if (message[0] == SERVER_HELLO) {
                beginHandshakeKeys(message);
            } else if (message[0] == FINISHED) {
                return finish();
            }
        }
        return null;
    }

    private void beginHandshakeKeys(byte[] hello) throws GeneralSecurityException {
        byte[] early = hmac(new byte[HASH_BYTES], new byte[HASH_BYTES]);
        byte[] secret = hmac(expand(early, "derived", hash(new byte[0]), HASH_BYTES), agreed(hello));
        byte[] so = hash(transcript.toByteArray());
        own = new Keys(expand(secret, "c hs traffic", so, HASH_BYTES));
        peers = new Keys(expand(secret, "s hs traffic", so, HASH_BYTES));
        master = hmac(expand(secret, "derived", hash(new byte[0]), HASH_BYTES), new byte[HASH_BYTES]);
    }

    private byte[] agreed(byte[] hello) throws GeneralSecurityException {
        ByteBuf rest = Unpooled.wrappedBuffer(hello).skipBytes(MESSAGE_HEADER + 2 + 32);
        rest.skipBytes(rest.readUnsignedByte());
        rest.skipBytes(2 + 1 + 2);
        while (rest.readableBytes() > 4) {
            int type = rest.readUnsignedShort();
            ByteBuf content = rest.readSlice(rest.readUnsignedShort());
            if (type == KEY_SHARE) {
                byte[] share = ByteBufUtil.getBytes(content.skipBytes(4));
                byte[] big = new byte[share.length];
                for (int i = 0; i < share.length; i++) {
                    big[i] = share[share.length - 1 - i];
                }
                KeyAgreement agreement = KeyAgreement.getInstance("X25519");
                agreement.init(pair.getPrivate());
                agreement.doPhase(
                        KeyFactory.getInstance("X25519")
                                .generatePublic(
                                        new XECPublicKeySpec(NamedParameterSpec.X25519, new BigInteger(1, big))),
                        true);
                return agreement.generateSecret();
            }
        }
        throw new GeneralSecurityException("no key share");
    }

    private ByteBuf finish() throws GeneralSecurityException {
        byte[] so = hash(transcript.toByteArray());
        Keys shaking = keys();
        byte[] proof = hmac(expand(shaking.secret, "finished", new byte[0], HASH_BYTES), so);
        ByteBuf finished = seal(
                HANDSHAKE,
                Unpooled.buffer().writeByte(FINISHED).writeMedium(HASH_BYTES).writeBytes(proof));
        own = new Keys(expand(master, "c ap traffic", so, HASH_BYTES));
        isDone = true;
        return finished;
    }

    private Keys keys() {
        if (own == null) {
            throw new IllegalStateException("no keys yet");
        }
        return own;
    }

    /**
     * Encrypts this content as one record. If the content is one or more KeyUpdates and nothing else, the keys change
     * once for each of them.
     */
    ByteBuf seal(int type, ByteBuf content) throws GeneralSecurityException {
        byte[] plain = new byte[content.readableBytes() + 1];
        content.getBytes(content.readerIndex(), plain, 0, plain.length - 1);
        plain[plain.length - 1] = (byte) type;
        byte[] header = ByteBufUtil.getBytes(
                Unpooled.buffer().writeByte(DATA).writeShort(0x0303).writeShort(plain.length + 16));
        byte[] sealed = keys().crypt(Cipher.ENCRYPT_MODE, header, plain);
        if (type == HANDSHAKE && plain[0] == KEY_UPDATE) {
            for (int i = 0; i < content.readableBytes() / 5; i++) {
                keys().update();
            }
        }
        return Unpooled.wrappedBuffer(header, sealed);
    }

    /** Returns so many KeyUpdates, to be sealed as one record. */
    static ByteBuf keyUpdates(int count, boolean isAnswered) {
        ByteBuf all = Unpooled.buffer();
        for (int i = 0; i < count; i++) {
            all.writeByte(KEY_UPDATE).writeMedium(1).writeByte(isAnswered ? 1 : 0);
        }
        return all;
    }

    private static byte[] hash(byte[] bytes) throws GeneralSecurityException {
        return MessageDigest.getInstance("SHA-256").digest(bytes);
    }

    private static byte[] hmac(byte[] key, byte[] bytes) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(bytes);
    }

    /** Computes HKDF-Expand-Label, of one block at most. */
    private static byte[] expand(byte[] secret, String label, byte[] context, int bytes)
            throws GeneralSecurityException {
        byte[] name = ("tls13 " + label).getBytes(StandardCharsets.US_ASCII);
        ByteBuf info = Unpooled.buffer()
                .writeShort(bytes)
                .writeByte(name.length)
                .writeBytes(name)
                .writeByte(context.length)
                .writeBytes(context)
                .writeByte(1);
        return Arrays.copyOf(hmac(secret, ByteBufUtil.getBytes(info)), bytes);
    }
}
