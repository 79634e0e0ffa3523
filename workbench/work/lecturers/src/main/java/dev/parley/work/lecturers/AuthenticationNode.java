package dev.parley.work.lecturers;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.lecturers.Checked;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.Token;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/** Gives tokens, which mean nothing by themselves, and says whose they are. It asks Redis before MySQL. */
final class AuthenticationNode implements Work.Node {
    private static final int TOKEN_BYTES = 32;
    private static final Pattern TOKEN = Pattern.compile("[0-9a-f]{" + 2 * TOKEN_BYTES + "}");
    private static final String KEY = "parley:token:";

    private final MySql mysql;
    private final Cache cache;
    private final SecureRandom random = new SecureRandom();

    AuthenticationNode(MySql mysql, Cache cache) {
        this.mysql = mysql;
        this.cache = cache;
    }

    static boolean isToken(String text) {
        return TOKEN.matcher(text).matches();
    }

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        return operation
                .reply()
                .cast(
                        switch (request) {
                            case Credentials credentials -> authenticate(credentials);
                            case Token token -> new Checked(userOf(token.token()));
                            default ->
                                throw new CallException(
                                        Code.NOT_FOUND,
                                        "no " + operation.name() + " at the authentication service of "
                                                + Lecturers.CONTRACT.name());
                        });
    }

    private Token authenticate(Credentials credentials) {
        if (!mysql.isAccount(credentials.user(), credentials.password())) {
            // the message does not say which of the two is wrong
            throw new CallException(Code.UNAUTHENTICATED, "no such user and password");
        }
        byte[] bytes = new byte[TOKEN_BYTES];
        random.nextBytes(bytes);
        String token = HexFormat.of().formatHex(bytes);
        mysql.keep(token, credentials.user());
        remember(token, credentials.user());
        return new Token(token);
    }

    private String userOf(String token) {
        if (token.isEmpty()) {
            throw new CallException(Code.UNAUTHENTICATED, "token: missing (expected: one from authenticate)");
        }
        if (!isToken(token)) {
            throw wrong();
        }
        byte[] cached = cache.get(KEY + token);
        if (cached != null) {
            return new String(cached, StandardCharsets.UTF_8);
        }
        String user = mysql.userOf(token).orElseThrow(AuthenticationNode::wrong);
        remember(token, user);
        return user;
    }

    private void remember(String token, String user) {
        cache.put(Map.of(KEY + token, user.getBytes(StandardCharsets.UTF_8)));
    }

    private static CallException wrong() {
        return new CallException(Code.UNAUTHENTICATED, "token: wrong (expected: one from authenticate)");
    }

    @Override
    public Map<String, Double> figures() {
        Map<String, Double> figures = new TreeMap<>(mysql.figures());
        figures.put("cache_hits_total", (double) cache.hits());
        figures.put("cache_misses_total", (double) cache.misses());
        return figures;
    }

    @Override
    public void close() {
        cache.close();
        mysql.close();
    }
}
