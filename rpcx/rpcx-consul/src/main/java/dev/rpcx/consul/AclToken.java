package dev.rpcx.consul;

import org.jspecify.annotations.Nullable;

/**
 * Token for Consul's ACL that can be sent in an HTTP header. White space around it is removed. No text of this class,
 * neither {@code toString} nor an error, contains the secret.
 *
 * @param secret visible characters of ASCII
 */
record AclToken(String secret) {
    AclToken {
        secret = secret.strip();
        if (!secret.chars().allMatch(c -> c > ' ' && c < 0x7F)) {
            throw new IllegalArgumentException(
                    "token: has a character that is no visible one of ASCII (expected: as Consul has issued it)");
        }
    }

    static @Nullable AclToken of(@Nullable String secret) {
        return secret == null ? null : new AclToken(secret);
    }

    @Override
    public String toString() {
        return "AclToken";
    }
}
