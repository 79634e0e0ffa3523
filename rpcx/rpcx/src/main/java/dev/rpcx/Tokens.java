package dev.rpcx;

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
 * Signed tokens as interceptors: each attempt of a call carries one of its own, good for one service and method, for
 * 30 s and for one use. A caller has a secret of its own, so it can sign as nobody else. Arguments are not signed: use
 * {@link Tls} beneath.
 *
 * <p>A service between two others names whom it serves with {@link #forwarding}: the caller's name goes with the calls
 * it makes, under the service's own signature, and counts where the next server lets that service speak for others.
 *
 * <p>One use is one use for each {@link OneUse}, as a rule for each process with all of its servers: where several
 * instances of a service take the same secrets, a token that was read on its way is good once at each of them, unless
 * they share one.
 *
 * <p>On the wire: metadata {@code rpcx-token}. Its bytes, and what is signed, stand in {@code docs/security.md}.
 */
public final class Tokens {
    private static final System.Logger LOGGER = System.getLogger(Tokens.class.getName());
    private static final String ENTRY = "rpcx-token";
    private static final Duration LIFETIME = Duration.ofSeconds(30);

    /** Clocks of two hosts may differ by so much. */
    private static final Duration SKEW = Duration.ofSeconds(10);

    private static final String NAME = "1 to 255 bytes of UTF-8 without control characters";
    private static final String SECRET = "16 bytes or more";

    private static final SecureRandom RANDOM = new SecureRandom();

    /** Stands in for the secret of a principal that is not known: nobody has it. */
    private static final SecretKeySpec NOBODYS = Token.key(random(32));

    private Tokens() {}

    private static byte[] random(int count) {
        byte[] bytes = new byte[count];
        RANDOM.nextBytes(bytes);
        return bytes;
    }

    /**
     * For a client: signs every attempt of every call. A client has one interceptor that signs, this or one that
     * forwards: {@link Client.Builder#build} refuses a second one.
     *
     * @param principal 1 to 255 bytes of UTF-8 without control characters
     * @param secret shared with the servers: 16 bytes or more, at random
     * @throws IllegalArgumentException another name, or a shorter secret
     */
    public static Interceptor signing(String principal, byte[] secret) {
        return signing(principal, secret, InstantSource.system());
    }

    static Interceptor signing(String principal, byte[] secret, InstantSource clock) {
        Token.checkedName("principal", Given.notNull(principal, "principal", NAME));
        SecretKeySpec key = Token.key(Given.notNull(secret, "secret", SECRET));
        return new Signing(call -> signed(call, principal, null, List.of(), key, clock));
    }

    /** Signs calls. A class of its own, so that a client can tell how many it has. */
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
     * For a service's own client: signs every call as the service, and names whom it is made for: the
     * {@link CallContext#principal} of the call that the same thread is handling. Without one the call is the service's
     * own, with the service's rights: so is a call that a handler makes on another thread, or for a caller that has no
     * principal. {@link #forwardingOnly} refuses those. Nothing is forwarded further than 16 services.
     *
     * @param service 1 to 255 bytes of UTF-8 without control characters
     * @param secret the service's, shared with the servers it calls: 16 bytes or more, at random
     * @throws IllegalArgumentException another name, or a shorter secret
     */
    public static Interceptor forwarding(String service, byte[] secret) {
        return forwarding(service, secret, InstantSource.system());
    }

    /**
     * As {@link #forwarding}, and never signs for the service itself: a call made where the thread handles none, or one
     * without a {@link CallContext#principal}, is refused as {@link RPCXException.Code#UNAUTHENTICATED}, before it is
     * sent.
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

    /** Each attempt has a nonce and a time of its own: a server takes no token twice. */
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
     * For a server: refuses calls without a good token as {@link RPCXException.Code#UNAUTHENTICATED}, all alike and not
     * executed, and sets {@link CallContext#principal} for the others. Remembers tokens until they expire, as
     * {@link OneUse#inProcess()} does: a token is good once at all servers of the process. A call that waits here for
     * so long that its good token expires meanwhile is refused as {@link RPCXException.Code#OVERLOADED}, not executed.
     * A server has one such interceptor: a second one would refuse each token as used, so {@code build} refuses it.
     *
     * <p>A token that speaks for somebody else is refused: see {@link #requiring(Function, Predicate)}.
     *
     * @param secrets of a principal; null for one that is not known. Asked for names that anybody has sent, on the
     *     handler's thread. Where it throws, or gives fewer than 16 bytes, the call is refused like any other, and the
     *     log says so, once a minute at most.
     */
    public static Interceptor requiring(Function<String, byte @Nullable []> secrets) {
        return requiring(secrets, nobody -> false);
    }

    /**
     * As {@link #requiring(Function)}, and takes the word of these services for whom they call.
     * {@link CallContext#principal} is then the {@link Caller} whom they serve.
     *
     * @param mayForward whether this principal, whose signature is good, may speak for others
     */
    public static Interceptor requiring(Function<String, byte @Nullable []> secrets, Predicate<String> mayForward) {
        return requiring(secrets, mayForward, OneUse.inProcess());
    }

    /**
     * As {@link #requiring(Function, Predicate)}, with what remembers used tokens given: for several processes that
     * take the same secrets and share what remembers them.
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
                Given.notNull(secrets, "secrets", "what knows the secret of a principal"),
                Given.notNull(mayForward, "mayForward", "what says who may speak for others"),
                Given.notNull(used, "used", "what remembers used tokens"),
                clock));
    }

    /** Lets no call through without a valid token. A class of its own, so that a server can tell that it has one. */
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
            // wherever this is called from: it is this call that the token was sent with
            return Chain.proceed(call, known -> {
                CallContext.current().orElseThrow().authenticate(caller);
                return next.proceed(known);
            });
        }
    }

    /**
     * Who calls, as a token says.
     *
     * @param name of who signed the token, or of whom the signer speaks for
     * @param via the services through which the call came, the first one first, the signer last; empty for a caller
     *     that came by itself
     */
    public record Caller(String name, List<String> via) implements Principal {
        /** Keeps a copy. */
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
     * Remembers the tokens that have been used. Asked only about tokens whose signature and time are good, so only who
     * has a secret can add to it. Thread-safe; on the handler's thread, which may block where the method's handler may.
     *
     * <p>A store that several processes share answers this with one atomic step, as {@code SET key "" NX PXAT until} of
     * Redis, with a clock of its own. That may differ by 10 s from the clock of each process that asks. Where a token
     * expires while the store is asked, the call is refused as {@link RPCXException.Code#OVERLOADED}, whatever it says.
     */
    @FunctionalInterface
    public interface OneUse {
        /**
         * Remembers a token, and says whether it was used for the first time. Must not forget it before {@code until}:
         * whoever has no room left throws {@link RPCXException#refused}, {@link RPCXException.Code#OVERLOADED}.
         * Anything else that it throws refuses the call as {@link RPCXException.Code#UNAVAILABLE}.
         *
         * @param signer whose secret has signed it
         * @param token 43 characters, letters, digits, hyphens and underscores: its signature, different for each token
         * @param until when it is refused for its age by every process whose clock is no more than 10 s behind that of
         *     what remembers it: at most 60 s from now
         */
        boolean first(String signer, String token, Instant until);

        /**
         * In the memory of this process, the same for all of its servers: an eighth of its heap at most, 130 bytes a
         * token and some 160 with a name a signer for 40 s, half of them of one signer; that is some 26,000 calls a
         * second for each GiB of heap, and at most 100,000. Where there is no room, further tokens are refused as
         * {@link RPCXException.Code#OVERLOADED} until others have expired; none is forgotten early. A process that is
         * started again has forgotten all: a token read on its way is then good once more within its time.
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

    /** A server's side. Every way to be refused takes one signature's time. */
    private static final class Verifier {
        private final Function<String, byte @Nullable []> secrets;
        private final Predicate<String> mayForward;
        private final OneUse used;

        /** How long behind its expiry a token is remembered. A store's clock is not ours: it may be ahead. */
        private final Duration keptBeyond;

        private final InstantSource clock;
        private final Complaint secretsFail;
        private final Complaint usedFail;

        Verifier(
                Function<String, byte @Nullable []> secrets,
                Predicate<String> mayForward,
                OneUse used,
                InstantSource clock) {
            this.secrets = secrets;
            this.mayForward = mayForward;
            this.used = used;
            this.keptBeyond = used instanceof InMemory ? SKEW : SKEW.multipliedBy(2);
            this.clock = clock;
            this.secretsFail = new Complaint(LOGGER, clock);
            this.usedFail = new Complaint(LOGGER, clock);
        }

        @Nullable
        Caller check(Interceptor.Invocation call) {
            Token.Received received = Token.read(call.metadata().get(ENTRY));
            if (received == null) {
                return null;
            }
            Token token = received.token();
            SecretKeySpec known = known(token.signer());
            // a name that is not known takes as long as one that is
            boolean isSigned = received.isSignedBy(known == null ? NOBODYS : known, call.service(), call.method());
            long now = clock.millis();
            long ageMillis = TimeUnit.NANOSECONDS.toMillis(Chain.given(call).ageNanos());
            if (known == null
                    || !isSigned
                    || !isTimely(token.expiresMillis(), now - ageMillis)
                    || token.caller() != null && !mayForward(token.signer())) {
                return null;
            }
            if (!isTimely(token.expiresMillis(), now)) {
                // good when it came, and too old now: a copy of it may have been used and forgotten meanwhile
                throw RPCXException.refused(
                        RPCXException.Code.OVERLOADED,
                        "the call has waited here for " + TimeUnit.MILLISECONDS.toSeconds(ageMillis)
                                + " s, and its token has expired meanwhile");
            }
            if (!isFirst(received)) {
                return null;
            }
            if (!isTimely(token.expiresMillis(), clock.millis())) {
                // the store may have been asked behind its end, and have forgotten a copy of it
                throw RPCXException.refused(
                        RPCXException.Code.OVERLOADED, "the token has expired while it was looked at");
            }
            if (token.caller() == null) {
                return new Caller(token.signer(), List.of());
            }
            List<String> via = new ArrayList<>(token.via());
            via.add(token.signer());
            return new Caller(token.caller(), via);
        }

        /** Both sides of each comparison are near now, so that no claimed time overflows. */
        private static boolean isTimely(long expires, long now) {
            return expires > now - SKEW.toMillis()
                    && expires <= now + LIFETIME.plus(SKEW).toMillis();
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
                        "nothing says whether \"" + CallLog.escaped(signer)
                                + "\" may forward, and its calls are refused",
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
                // a store may make calls of its own: how one of those ended says nothing about this call
                usedFail.log("what remembers used tokens fails, and calls are refused", e);
                throw RPCXException.refused(RPCXException.Code.UNAVAILABLE, "tokens cannot be checked now");
            }
        }
    }
}
