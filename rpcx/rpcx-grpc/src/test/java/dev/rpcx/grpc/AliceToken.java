package dev.rpcx.grpc;

import dev.rpcx.internal.call.Token;
import java.security.SecureRandom;
import java.util.List;

/** Makes tokens of the principal {@code alice}, each of them good for one call. */
record AliceToken(byte[] secret) {
    String of(String service, String method) {
        byte[] nonce = new byte[Token.NONCE_BYTES];
        new SecureRandom().nextBytes(nonce);
        return new Token(System.currentTimeMillis() + 30_000, nonce, "alice", null, List.of())
                .signed(Token.key(secret), service, method);
    }
}
