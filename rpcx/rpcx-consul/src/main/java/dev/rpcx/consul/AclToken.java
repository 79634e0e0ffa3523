package dev.rpcx.consul;

import org.jspecify.annotations.Nullable;

/**
 * Token for Consul's ACL that can stand in a header of HTTP, without white space around it. No text of this class has
 * the secret.
 *
 * @param secret characters of ASCII that have a picture
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
