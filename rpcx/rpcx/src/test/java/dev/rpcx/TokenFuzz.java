package dev.rpcx;

import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.call.Token;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Base64;

/**
 * Fuzzes the check of tokens with tokens that were not signed with the secret. The class is public, since Jazzer
 * requires it.
 */
public final class TokenFuzz {
    private static final byte[] SECRET = "a secret that no input has".getBytes(StandardCharsets.UTF_8);
    private static final Interceptor REQUIRING = Tokens.requiring(
            name -> name.length() % 2 == 0 ? SECRET : null,
            name -> true,
            (signer, token, until) -> true,
            InstantSource.fixed(Instant.ofEpochSecond(1)));

    private TokenFuzz() {}

    /** Is called by Jazzer. The first byte says how the rest becomes text. */
    public static void fuzzerTestOneInput(byte[] bytes) {
        FuzzInput in = new FuzzInput(bytes);
        boolean isText = in.next() % 2 == 0;
        byte[] rest = in.take(bytes.length);
        String text = isText
                ? new String(rest, StandardCharsets.UTF_8)
                : Base64.getUrlEncoder().withoutPadding().encodeToString(rest);
        refused(text);
        Token.Received received = Token.read(text);
        if (received != null) {
            hasOneForm(received);
        }
    }

    private static void refused(String text) {
        Interceptor.Invocation call =
                new CallInvocation("service", "method", new Object[0], Metadata.EMPTY.with("rpcx-token", text), null);
        try {
            REQUIRING.intercept(call, letIn -> {
                throw new AssertionError("let in with " + text);
            });
            throw new AssertionError("not refused: " + text);
        } catch (RPCXException refused) {
            if (refused.code() != RPCXException.Code.UNAUTHENTICATED
                    || refused.executed() != RPCXException.Executed.NOT_EXECUTED) {
                throw new AssertionError("refused otherwise", refused);
            }
        } catch (Throwable other) {
            throw new AssertionError("thrown at " + text, other);
        }
    }

    /**
     * The claims of a token are signed again, and the new token has the same claims. So no two texts have the same
     * claims.
     */
    private static void hasOneForm(Token.Received received) {
        Token token = received.token();
        Token again = java.util.Objects.requireNonNull(Token.read(token.signed(Token.key(SECRET), "service", "method")))
                .token();
        Token.Received both =
                java.util.Objects.requireNonNull(Token.read(token.signed(Token.key(SECRET), "service", "method")));
        if (!java.util.Arrays.equals(both.claims(), received.claims())
                || !again.signer().equals(token.signer())
                || !again.via().equals(token.via())) {
            throw new AssertionError("two forms of one token: " + token);
        }
    }
}
