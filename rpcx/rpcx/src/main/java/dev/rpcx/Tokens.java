package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.RateLimitedLog;
import dev.rpcx.internal.call.Chain;
import dev.rpcx.internal.call.Token;
import dev.rpcx.internal.call.UsedTokens;
import java.security.Principal;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * Creates interceptors that sign calls with tokens, and interceptors that check tokens. Each attempt of a call carries
 * a new token, which is valid for one service and method, and for one use. A token is valid for 30 s by the signer's
 * clock, and for 10 s more, since clocks differ. Each caller has a secret of its own, so a caller can sign under its
 * own name only. Arguments are not signed, so use {@link Tls} for the connections.
 *
 * <p>A service that makes calls on behalf of its callers uses {@link #forwarding}. The service signs such a call with
 * its own secret, and the token also names the caller. A server that requires tokens refuses such a call unless the
 * server trusts this service to name other callers (see {@link #requiring(Function, Predicate)}).
 *
 * <p>A {@link OneUse} remembers used tokens, usually for all servers of a process. If several instances of a service
 * accept the same secrets, a token that was intercepted on its way is valid once at each instance. To prevent this, let
 * the instances share a {@code OneUse}.
 *
 * <p>On the wire a token is the metadata entry {@code rpcx-token}. {@code docs/security.md} describes the bytes of a
 * token, and what is signed.
 */
public final class Tokens {
    private static final System.Logger LOGGER = System.getLogger(Tokens.class.getName());

    /** Name of the metadata entry of a request that carries the token. */
    static final String ENTRY = "rpcx-token";

    private static final Duration LIFETIME = Duration.ofSeconds(30);

    /** Tokens work as long as the clocks of two hosts differ by at most this time. */
    private static final Duration MAX_SKEW = Duration.ofSeconds(10);

    private static final String NAME = "1 to 255 bytes of UTF-8 without control characters";
    private static final String SECRET = "16 bytes or more";

    private static final SecureRandom RANDOM = new SecureRandom();

    /** Random key that stands in for the key of an unknown principal. Nobody has this key. */
    private static final SecretKeySpec DUMMY_KEY = Token.key(random(32));

    private Tokens() {}

    private static byte[] random(int count) {
        byte[] bytes = new byte[count];
        RANDOM.nextBytes(bytes);
        return bytes;
    }

    /**
     * Returns an interceptor for a client that signs every attempt of every call. A client has at most one interceptor
     * that signs or forwards: {@link Client.Builder#build} refuses a second one.
     *
     * @param principal name of the caller: 1 to 255 bytes of UTF-8 without control characters
     * @param secret secret that the caller shares with the servers: 16 random bytes or more
     * @throws IllegalArgumentException if the name is not as described, or the secret has fewer than 16 bytes
     */
    public static Interceptor signing(String principal, byte[] secret) {
        return signing(principal, secret, InstantSource.system());
    }

    static Interceptor signing(String principal, byte[] secret, InstantSource clock) {
        Token.checkedName("principal", Given.notNull(principal, "principal", NAME));
        SecretKeySpec key = Token.key(Given.notNull(secret, "secret", SECRET));
        return new Signing(call -> signed(call, principal, null, List.of(), key, clock));
    }

    /** Signs calls. This is a separate class so that a client can count its interceptors that sign. */
    static final class Signing implements Interceptor {
        private final UnaryOperator<Invocation> signer;

        private Signing(UnaryOperator<Invocation> signer) {
            this.signer = signer;
        }

        @Override
        public @Nullable Object intercept(Invocation call, Next next) throws Throwable {
            return next.proceed(signer.apply(call));
        }
    }

    /**
     * Returns an interceptor for the client that a service uses to call other services. The interceptor signs every
     * call with the calling service's secret. The token also names the caller for whom the service works: the
     * {@link CallContext#principal} of the call that the same thread is handling. A name is forwarded through at most
     * 16 services.
     *
     * <p>In these cases there is no caller to name:
     *
     * <ul>
     *   <li>The thread handles no call, for example because a handler makes calls on another thread without
     *       {@link CallContext#run}.
     *   <li>The thread handles a call without a principal.
     * </ul>
     *
     * <p>A call without a caller to name is made with the service's own rights. {@link #forwardingOnly} refuses such a
     * call instead.
     *
     * @param service name of the service: 1 to 255 bytes of UTF-8 without control characters
     * @param secret secret that the service shares with the servers that it calls: 16 random bytes or more
     * @throws IllegalArgumentException if the name is not as described, or the secret has fewer than 16 bytes
     */
    public static Interceptor forwarding(String service, byte[] secret) {
        return forwarding(service, secret, InstantSource.system());
    }

    /**
     * Returns an interceptor that works like {@link #forwarding}, but refuses to sign a call that would be made with
     * the service's own rights. If the thread handles no call with a {@link CallContext#principal}, the new call is
     * refused as {@link RPCXException.Code#UNAUTHENTICATED} before it is sent.
     *
     * @param service name of the service: 1 to 255 bytes of UTF-8 without control characters
     * @param secret secret that the service shares with the servers that it calls: 16 random bytes or more
     * @throws IllegalArgumentException if the name is not as described, or the secret has fewer than 16 bytes
     */
    public static Interceptor forwardingOnly(String service, byte[] secret) {
        Signing forwarding = forwarding(service, secret, InstantSource.system());
        return new Signing(call -> {
            if (CallContext.current().flatMap(CallContext::principal).isEmpty()) {
                throw RPCXException.refused(
                        RPCXException.Code.UNAUTHENTICATED,
                        "no caller on this thread for whom " + service + " could sign");
            }
            return forwarding.signer.apply(call);
        });
    }

    static Signing forwarding(String service, byte[] secret, InstantSource clock) {
        Token.checkedName("service", Given.notNull(service, "service", NAME));
        SecretKeySpec key = Token.key(Given.notNull(secret, "secret", SECRET));
        return new Signing(call -> {
            Principal served =
                    CallContext.current().flatMap(CallContext::principal).orElse(null);
            if (served == null) {
                return signed(call, service, null, List.of(), key, clock);
            }
            List<String> via = served instanceof Caller caller ? caller.via() : List.of();
            checkForwarded(served.getName(), via);
            return signed(call, service, served.getName(), via, key, clock);
        });
    }

    private static void checkForwarded(String caller, List<String> via) {
        if (via.size() >= Token.MAX_VIA) {
            throw RPCXException.refused(
                    RPCXException.Code.INVALID,
                    "forwarded by " + via.size() + " services (expected: at most " + Token.MAX_VIA + ")");
        }
        try {
            Token.checkedName("caller", caller);
            via.forEach(service -> Token.checkedName("service on the way", service));
        } catch (IllegalArgumentException e) {
            throw RPCXException.refused(RPCXException.Code.INVALID, String.valueOf(e.getMessage()));
        }
    }

    /** Returns the call with a token. Each attempt of the call gets a new nonce and a new time of expiry. */
    private static Interceptor.Invocation signed(
            Interceptor.Invocation call,
            String signer,
            @Nullable String caller,
            List<String> via,
            SecretKeySpec key,
            InstantSource clock) {
        return call.withEachAttempt(ENTRY, () -> {
            long expires = clock.instant().plus(LIFETIME).toEpochMilli();
            return new Token(expires, random(Token.NONCE_BYTES), signer, caller, via)
                    .signed(key, call.service(), call.method());
        });
    }

    /**
     * Returns an interceptor for a server that accepts only calls with a valid token. A call without a valid token is
     * refused as {@link RPCXException.Code#UNAUTHENTICATED}, not executed. The text of the refusal is the same whatever
     * is wrong with the token. For each accepted call, the interceptor sets {@link CallContext#principal}. A server has
     * at most one such interceptor: {@link Server.Builder#build} refuses a second one.
     *
     * <p>All servers of the process together accept a token once (see {@link OneUse#inProcess()}). A token that names
     * another caller besides its signer is refused: only {@link #requiring(Function, Predicate)} can accept it. A call
     * whose token expires while the call waits at the server is refused as {@link RPCXException.Code#OVERLOADED}, not
     * executed.
     *
     * @param secrets returns the secret of a principal, or null for an unknown principal. The function is called on the
     *     handler's thread, with names that anybody can have sent. If the function throws, or returns fewer than 16
     *     bytes, the call is refused like a call without a valid token. The log says so, at most once a minute.
     */
    public static Interceptor requiring(Function<String, byte @Nullable []> secrets) {
        return requiring(secrets, nobody -> false);
    }

    /**
     * Returns an interceptor that works like {@link #requiring(Function)}, but lets some services make calls on behalf
     * of other callers. If such a service has signed a token that names another caller, {@link CallContext#principal}
     * is a {@link Caller} with that caller's name. If the token names no other caller, the principal is the service
     * itself.
     *
     * @param mayForward returns whether a principal may make calls on behalf of other callers. The predicate is called
     *     only for a principal whose signature is valid. If the predicate throws, the call is refused, and the log says
     *     so, at most once a minute.
     */
    public static Interceptor requiring(Function<String, byte @Nullable []> secrets, Predicate<String> mayForward) {
        return requiring(secrets, mayForward, OneUse.inProcess());
    }

    /**
     * Returns an interceptor that works like {@link #requiring(Function, Predicate)}, but remembers used tokens in the
     * store {@code used}. Several processes can share one store.
     */
    public static Interceptor requiring(
            Function<String, byte @Nullable []> secrets, Predicate<String> mayForward, OneUse used) {
        return requiring(secrets, mayForward, used, InstantSource.system());
    }

    static Interceptor requiring(
            Function<String, byte @Nullable []> secrets, Predicate<String> mayForward, InstantSource clock) {
        return requiring(secrets, mayForward, new InMemory(new UsedTokens(UsedTokens.MAX_REMEMBERED, clock)), clock);
    }

    static Interceptor requiring(
            Function<String, byte @Nullable []> secrets,
            Predicate<String> mayForward,
            OneUse used,
            InstantSource clock) {
        return new Requiring(new Verifier(
                Given.notNull(secrets, "secrets", "a function from a principal to its secret"),
                Given.notNull(mayForward, "mayForward", "a predicate that says which signer may forward"),
                Given.notNull(used, "used", "a store of used tokens"),
                clock));
    }

    /**
     * Refuses calls without a valid token. This is a separate class so that a server can count its interceptors of this
     * class.
     */
    static final class Requiring implements Interceptor {
        private final Verifier verifier;

        private Requiring(Verifier verifier) {
            this.verifier = verifier;
        }

        @Override
        public @Nullable Object intercept(Invocation call, Next next) throws Throwable {
            Caller caller = verifier.check(call);
            if (caller == null) {
                throw RPCXException.refused(RPCXException.Code.UNAUTHENTICATED, "no valid token");
            }
            // the thread may have the context of another call; Chain.proceed gives it the context of this call
            return Chain.proceed(call, known -> {
                CallContext.current().orElseThrow().authenticate(caller);
                return next.proceed(known);
            });
        }
    }

    /**
     * Identifies the caller that a token names.
     *
     * @param name name of the token's signer, or of the caller for whom the signer speaks
     * @param via names of the services that have forwarded the call, from the first to the last, which is the signer;
     *     empty if the caller itself has signed
     */
    public record Caller(String name, List<String> via) implements Principal {
        /** Creates a caller. The list {@code via} of services is copied. */
        public Caller {
            Given.notNull(name, "name", "that of the caller");
            via = Given.noneNull(via, "via", "names of services");
        }

        @Override
        public String getName() {
            return name;
        }
    }

    /**
     * Remembers the tokens that have been used. A store is asked only about tokens whose signature and time are valid.
     * A store must be thread-safe. The store is called on the handler's thread, and may block only where the method's
     * handler may block.
     *
     * <p>A store that several processes share answers with one atomic step, such as {@code SET key "" NX PXAT until} of
     * Redis. The store's clock may differ from the clock of each process by up to 10 s. If the token expires before
     * {@link #first} returns true, the call is refused as {@link RPCXException.Code#OVERLOADED}.
     */
    @FunctionalInterface
    public interface OneUse {
        /**
         * Remembers a token, and returns whether the token is used for the first time. The token must not be forgotten
         * before {@code until}. A store without room for the token has to throw {@link RPCXException#refused} with
         * {@link RPCXException.Code#OVERLOADED}. After any other exception, the call is refused as
         * {@link RPCXException.Code#UNAVAILABLE}.
         *
         * @param signer principal whose secret has signed the token
         * @param token signature of the token, which differs from token to token: 43 letters, digits, hyphens and
         *     underscores
         * @param until time from which the token can be forgotten, at most 60 s from now
         */
        boolean first(String signer, String token, Instant until);

        /**
         * Returns the store of used tokens that all servers of this process share. The store takes at most an eighth of
         * the heap, and the tokens of one signer take at most half of the store. A used token takes 130 bytes, and
         * stays for about 40 s, or for up to 50 s if the signer's clock is ahead. So there is room for about 26,000
         * calls a second for each GiB of heap. The store holds at most about 4 million tokens, which is enough for
         * about 100,000 calls a second.
         *
         * <p>If there is no room, further tokens are refused as {@link RPCXException.Code#OVERLOADED} until others have
         * expired. The store forgets no token before it has expired, but a restart of the process empties the store. So
         * whoever has intercepted a used token can use it once more after the restart, until the token expires.
         */
        static OneUse inProcess() {
            return InMemory.OF_PROCESS;
        }
    }

    record InMemory(UsedTokens tokens) implements OneUse {
        static final OneUse OF_PROCESS = new InMemory(UsedTokens.OF_PROCESS);

        @Override
        public boolean first(String signer, String token, Instant until) {
            return tokens.first(signer, token, until);
        }
    }

    /**
     * Checks the tokens at a server. The refusal of a well-formed token always takes at least the time of checking one
     * signature, whatever is wrong with the token.
     */
    private static final class Verifier {
        private final Function<String, byte @Nullable []> secrets;
        private final Predicate<String> mayForward;
        private final OneUse used;

        /**
         * Time for which the store of used tokens remembers a token after the token has expired. The time is 10 s for
         * {@link OneUse#inProcess()}, because tokens are accepted until 10 s after they expire. The time is 20 s for
         * any other store, because the store's clock can be 10 s ahead of this process's clock.
         */
        private final Duration keptBeyond;

        private final InstantSource clock;
        private final RateLimitedLog secretsFail;
        private final RateLimitedLog usedFail;

        Verifier(
                Function<String, byte @Nullable []> secrets,
                Predicate<String> mayForward,
                OneUse used,
                InstantSource clock) {
            this.secrets = secrets;
            this.mayForward = mayForward;
            this.used = used;
            this.keptBeyond = used instanceof InMemory ? MAX_SKEW : MAX_SKEW.multipliedBy(2);
            this.clock = clock;
            this.secretsFail = new RateLimitedLog(LOGGER, clock);
            this.usedFail = new RateLimitedLog(LOGGER, clock);
        }

        @Nullable
        Caller check(Interceptor.Invocation call) {
            Token.Received received = Token.read(call.metadata().get(ENTRY));
            if (received == null) {
                return null;
            }
            Token token = received.token();
            SecretKeySpec known = known(token.signer());
            // a signature is checked for an unknown name too, so that a refusal takes as long as for a known name
            boolean isSigned = received.isSignedBy(known == null ? DUMMY_KEY : known, call.service(), call.method());
            long now = clock.millis();
            long ageMillis = TimeUnit.NANOSECONDS.toMillis(Chain.given(call).ageNanos());
            if (known == null
                    || !isSigned
                    || !isTimely(token.expiresMillis(), now - ageMillis)
                    || token.caller() != null && !mayForward(token.signer())) {
                return null;
            }
            if (!isTimely(token.expiresMillis(), now)) {
                // the token has expired since the call came, so the store of used tokens may have forgotten that a copy
                // of the token was used
                throw RPCXException.refused(
                        RPCXException.Code.OVERLOADED,
                        "the call has waited here for " + TimeUnit.MILLISECONDS.toSeconds(ageMillis)
                                + " s, and its token has expired meanwhile");
            }
            if (!isFirst(received)) {
                return null;
            }
            if (!isTimely(token.expiresMillis(), clock.millis())) {
                // the token has expired during this check, so the store may have forgotten that a copy of it was used
                throw Token.expiredMeanwhile();
            }
            if (token.caller() == null) {
                return new Caller(token.signer(), List.of());
            }
            List<String> via = new ArrayList<>(token.via());
            via.add(token.signer());
            return new Caller(token.caller(), via);
        }

        /**
         * Returns whether a token that expires at {@code expires} is valid at {@code now}, both in milliseconds since
         * 1970. Does no arithmetic on {@code expires}: the sender chooses this number, so the arithmetic could
         * overflow.
         */
        private static boolean isTimely(long expires, long now) {
            return expires > now - MAX_SKEW.toMillis()
                    && expires <= now + LIFETIME.plus(MAX_SKEW).toMillis();
        }

        private @Nullable SecretKeySpec known(String principal) {
            try {
                byte[] secret = secrets.apply(principal);
                return secret == null ? null : Token.key(secret);
            } catch (Throwable e) {
                secretsFail.log(
                        "no usable secret of \"" + CallLog.escaped(principal) + "\", whose calls are refused", e);
                return null;
            }
        }

        private boolean mayForward(String signer) {
            try {
                return mayForward.test(signer);
            } catch (Throwable e) {
                secretsFail.log(
                        "the check whether \"" + CallLog.escaped(signer)
                                + "\" may forward has failed, and its calls are refused",
                        e);
                return false;
            }
        }

        private boolean isFirst(Token.Received received) {
            Token token = received.token();
            String id = Base64.getUrlEncoder().withoutPadding().encodeToString(received.mac());
            Instant until = Instant.ofEpochMilli(token.expiresMillis()).plus(keptBeyond);
            try {
                return used.first(token.signer(), id, until);
            } catch (Throwable e) {
                if (e instanceof RPCXException refused
                        && refused.code() == RPCXException.Code.OVERLOADED
                        && refused.executed() == RPCXException.Executed.NOT_EXECUTED) {
                    throw refused;
                }
                // Other exceptions are not passed on. They may come from a call that the store makes itself, and the
                // caller would take such an exception for the failure of its own call.
                usedFail.log("the store of used tokens has failed, and calls are refused", e);
                throw RPCXException.refused(RPCXException.Code.UNAVAILABLE, "tokens cannot be checked now");
            }
        }
    }
}
