package dev.rpcx;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.Principal;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Predicate;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * Signed tokens as interceptors: each call carries one of its own, good for one service and method, for 30 s and for one use. A caller has
 * a secret of its own, so it can sign as nobody else. Arguments are not signed: use {@link Tls} beneath.
 *
 * <p>A service between two others names whom it serves with {@link #forwarding}: the caller's name goes with the calls it makes, under the
 * service's own signature, and counts where the next server lets that service speak for others.
 *
 * <p>On the wire: metadata {@code rpcx-token}, of name, expiry in milliseconds since 1970, nonce, where it is forwarded the caller and the
 * services before this one with commas between, and HMAC-SHA256 of these with service and method; names and bytes in unpadded URL-safe
 * Base64, with dots between.
 */
public final class Tokens {
    private static final String ENTRY = "rpcx-token";
    private static final String MAC = "HmacSHA256";
    private static final Duration LIFETIME = Duration.ofSeconds(30);

    /** Clocks of two hosts may differ by so much. */
    private static final Duration SKEW = Duration.ofSeconds(10);

    private static final int NONCE_BYTES = 16;
    private static final int LEAST_SECRET_BYTES = 16;

    /** Services between the caller and the server: more than any sensible path has, and far below the limit of metadata. */
    private static final int MOST_VIA = 16;

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
        return (call, next) -> next.proceed(signed(call, principal, "", key, clock));
    }

    /**
     * For a service's own client: signs every call as the service, and names whom it is made for: the {@link CallContext#principal} of the
     * call that the same thread is handling. A call made elsewhere is the service's own. Nothing is forwarded further than 16 services.
     *
     * @param secret the service's, shared with the servers it calls: 16 bytes or more, at random
     */
    public static Interceptor forwarding(String service, byte[] secret) {
        return forwarding(service, secret, InstantSource.system());
    }

    static Interceptor forwarding(String service, byte[] secret, InstantSource clock) {
        SecretKeySpec key = key(secret);
        return (call, next) -> {
            Principal served =
                    CallContext.current().flatMap(CallContext::principal).orElse(null);
            return next.proceed(signed(call, service, served == null ? "" : '.' + forwarded(served), key, clock));
        };
    }

    private static String forwarded(Principal served) {
        StringBuilder names = new StringBuilder(text(served.getName()));
        if (served instanceof Caller caller) {
            if (caller.via().size() >= MOST_VIA) {
                throw new RPCXException(
                        RPCXException.Code.INVALID,
                        "forwarded by " + caller.via().size() + " services (expected: at most " + MOST_VIA + ")",
                        RPCXException.Executed.NOT_EXECUTED);
            }
            caller.via().forEach(service -> names.append(',').append(text(service)));
        }
        return names.toString();
    }

    private static Interceptor.Invocation signed(
            Interceptor.Invocation call, String name, String forwarded, SecretKeySpec key, InstantSource clock) {
        byte[] nonce = new byte[NONCE_BYTES];
        RANDOM.nextBytes(nonce);
        String signed =
                text(name) + '.' + clock.instant().plus(LIFETIME).toEpochMilli() + '.' + text(nonce) + forwarded;
        return call.with(ENTRY, signed + '.' + text(mac(key, signed, call)));
    }

    /**
     * For a server: refuses calls without a good token as {@link RPCXException.Code#UNAUTHENTICATED}, all alike, and sets
     * {@link CallContext#principal} for the others. Remembers tokens until they expire: one of these for all servers of a process.
     *
     * <p>A token that speaks for somebody else is refused: see {@link #requiring(Function, Predicate)}.
     *
     * @param secrets of a principal; null for one that is not known
     */
    public static Interceptor requiring(Function<String, byte @Nullable []> secrets) {
        return requiring(secrets, nobody -> false);
    }

    /**
     * As {@link #requiring(Function)}, and takes the word of these services for whom they call. {@link CallContext#principal} is then the
     * {@link Caller} whom they serve.
     *
     * @param mayForward whether this principal, whose signature is good, may speak for others
     */
    public static Interceptor requiring(Function<String, byte @Nullable []> secrets, Predicate<String> mayForward) {
        return requiring(secrets, mayForward, InstantSource.system());
    }

    static Interceptor requiring(
            Function<String, byte @Nullable []> secrets, Predicate<String> mayForward, InstantSource clock) {
        Used used = new Used();
        return (call, next) -> {
            Caller caller = check(call, secrets, mayForward, clock.millis(), used);
            if (caller == null) {
                throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "no valid token");
            }
            CallContext.current().orElseThrow().authenticate(caller);
            return next.proceed(call);
        };
    }

    /**
     * Who calls, as a token says.
     *
     * @param name of who signed the token, or of whom the signer speaks for
     * @param via the services through which the call came, the first one first, the signer last; empty for a caller that came by itself
     */
    public record Caller(String name, List<String> via) implements Principal {
        /** Keeps a copy. */
        public Caller {
            via = List.copyOf(via);
        }

        @Override
        public String getName() {
            return name;
        }
    }

    private static @Nullable Caller check(
            Interceptor.Invocation call,
            Function<String, byte @Nullable []> secrets,
            Predicate<String> mayForward,
            long now,
            Used used) {
        String token = call.metadata().get(ENTRY);
        int last = token == null ? -1 : token.lastIndexOf('.');
        if (token == null || last < 0) {
            return null;
        }
        String[] parts = token.split("\\.", -1);
        if (parts.length != 4 && parts.length != 5) {
            return null;
        }
        try {
            String name = name(parts[0]);
            long expires = Long.parseLong(parts[1]);
            byte[] secret = secrets.apply(name);
            // a name that is not known takes as long as one that is
            byte[] expected =
                    mac(key(secret == null ? new byte[LEAST_SECRET_BYTES] : secret), token.substring(0, last), call);
            boolean isSigned =
                    MessageDigest.isEqual(expected, Base64.getUrlDecoder().decode(parts[parts.length - 1]));
            boolean isTimely = expires + SKEW.toMillis() > now
                    && expires - now <= LIFETIME.plus(SKEW).toMillis();
            if (secret == null || !isSigned || !isTimely || !used.first(parts[2], expires + SKEW.toMillis(), now)) {
                return null;
            }
            if (parts.length == 4) {
                return new Caller(name, List.of());
            }
            return mayForward.test(name) ? served(parts[3], name) : null;
        } catch (IllegalArgumentException malformed) {
            return null;
        }
    }

    private static @Nullable Caller served(String forwarded, String signer) {
        String[] names = forwarded.split(",", -1);
        if (names.length > MOST_VIA) {
            return null;
        }
        List<String> via = new ArrayList<>();
        for (int i = 1; i < names.length; i++) {
            via.add(name(names[i]));
        }
        via.add(signer);
        return new Caller(name(names[0]), via);
    }

    private static String name(String text) {
        return new String(Base64.getUrlDecoder().decode(text), StandardCharsets.UTF_8);
    }

    private static String text(String name) {
        return text(name.getBytes(StandardCharsets.UTF_8));
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
