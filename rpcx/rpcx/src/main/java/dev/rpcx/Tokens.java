package dev.rpcx;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.Principal;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * Signed tokens as interceptors: each call carries one of its own, good for one service and method, for 30 s and for one use. A caller has
 * a secret of its own, so it can sign as nobody else. Arguments are not signed: use {@link Tls} beneath.
 *
 * <p>On the wire: metadata {@code rpcx-token}, of name, expiry in milliseconds since 1970, nonce and HMAC-SHA256 of these with service and
 * method, each in unpadded URL-safe Base64, with dots between.
 */
public final class Tokens {
    private static final String ENTRY = "rpcx-token";
    private static final String MAC = "HmacSHA256";
    private static final Duration LIFETIME = Duration.ofSeconds(30);

    /** Clocks of two hosts may differ by so much. */
    private static final Duration SKEW = Duration.ofSeconds(10);

    private static final int NONCE_BYTES = 16;
    private static final int LEAST_SECRET_BYTES = 16;
    private static final SecureRandom RANDOM = new SecureRandom();

    private Tokens() {}

    /**
     * For a client: signs every call.
     *
     * @param secret shared with the servers: 16 bytes or more, at random
     */
    public static Interceptor signing(String principal, byte[] secret) {
        return signing(principal, secret, InstantSource.system());
    }

    static Interceptor signing(String principal, byte[] secret, InstantSource clock) {
        SecretKeySpec key = key(secret);
        return (call, next) -> {
            byte[] nonce = new byte[NONCE_BYTES];
            RANDOM.nextBytes(nonce);
            String signed = text(principal.getBytes(StandardCharsets.UTF_8))
                    + '.'
                    + clock.instant().plus(LIFETIME).toEpochMilli()
                    + '.'
                    + text(nonce);
            return next.proceed(call.with(ENTRY, signed + '.' + text(mac(key, signed, call))));
        };
    }

    /**
     * For a server: refuses calls without a good token as {@link RPCXException.Code#UNAUTHENTICATED}, all alike, and sets
     * {@link CallContext#principal} for the others. Remembers tokens until they expire: one of these for all servers of a process.
     *
     * @param secrets of a principal; null for one that is not known
     */
    public static Interceptor requiring(Function<String, byte @Nullable []> secrets) {
        return requiring(secrets, InstantSource.system());
    }

    static Interceptor requiring(Function<String, byte @Nullable []> secrets, InstantSource clock) {
        Used used = new Used();
        return (call, next) -> {
            String name = check(call, secrets, clock.millis(), used);
            if (name == null) {
                throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "no valid token");
            }
            CallContext.current().orElseThrow().authenticate(new Named(name));
            return next.proceed(call);
        };
    }

    private record Named(String name) implements Principal {
        @Override
        public String getName() {
            return name;
        }
    }

    private static @Nullable String check(
            Interceptor.Invocation call, Function<String, byte @Nullable []> secrets, long now, Used used) {
        String token = call.metadata().get(ENTRY);
        int last = token == null ? -1 : token.lastIndexOf('.');
        if (token == null || last < 0) {
            return null;
        }
        String[] parts = token.split("\\.", -1);
        if (parts.length != 4) {
            return null;
        }
        try {
            String name = new String(Base64.getUrlDecoder().decode(parts[0]), StandardCharsets.UTF_8);
            long expires = Long.parseLong(parts[1]);
            byte[] secret = secrets.apply(name);
            // a name that is not known takes as long as one that is
            byte[] expected =
                    mac(key(secret == null ? new byte[LEAST_SECRET_BYTES] : secret), token.substring(0, last), call);
            boolean isSigned =
                    MessageDigest.isEqual(expected, Base64.getUrlDecoder().decode(parts[3]));
            boolean isTimely = expires + SKEW.toMillis() > now
                    && expires - now <= LIFETIME.plus(SKEW).toMillis();
            return secret != null && isSigned && isTimely && used.first(parts[2], expires + SKEW.toMillis(), now)
                    ? name
                    : null;
        } catch (IllegalArgumentException malformed) {
            return null;
        }
    }

    private static SecretKeySpec key(byte[] secret) {
        if (secret.length < LEAST_SECRET_BYTES) {
            throw new IllegalArgumentException(
                    "secret of " + secret.length + " bytes (expected: " + LEAST_SECRET_BYTES + " or more)");
        }
        return new SecretKeySpec(secret, MAC);
    }

    private static byte[] mac(SecretKeySpec key, String signed, Interceptor.Invocation call) {
        try {
            Mac mac = Mac.getInstance(MAC);
            mac.init(key);
            String all = signed + '.' + MethodDictionary.key(call.service(), call.method());
            return mac.doFinal(all.getBytes(StandardCharsets.UTF_8));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String text(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    /** Nonces of good tokens that have not expired. Only who has a secret can add to it. */
    private static final class Used {
        private static final long SWEEP_MILLIS = 1000;

        private final Map<String, Long> expiries = new ConcurrentHashMap<>();
        private final AtomicLong nextSweep = new AtomicLong();

        boolean first(String nonce, long expires, long now) {
            long next = nextSweep.get();
            if (now >= next && nextSweep.compareAndSet(next, now + SWEEP_MILLIS)) {
                for (Iterator<Long> all = expiries.values().iterator(); all.hasNext(); ) {
                    if (all.next() < now) {
                        all.remove();
                    }
                }
            }
            return expiries.putIfAbsent(nonce, expires) == null;
        }
    }
}
