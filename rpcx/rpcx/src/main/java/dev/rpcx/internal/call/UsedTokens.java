package dev.rpcx.internal.call;

import dev.rpcx.RPCXException;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * Remembers, in the memory of this process, which tokens have been used and have not expired. If there is no room for a
 * further token, that token is refused, and no other token is forgotten early. Thread-safe.
 */
public final class UsedTokens {
    /**
     * Measured number of heap bytes that one token takes. These bytes hold a map entry, a share of the map's table, and
     * the text of the token's signature, which has 43 characters.
     */
    private static final int TOKEN_BYTES = 130;

    /** Measured number of heap bytes that one signer takes, without the characters of the signer's name. */
    private static final int SIGNER_BYTES = 160;

    /** All remembered tokens together take at most {@code 1 / HEAP_DIVISOR} of the heap. */
    private static final int HEAP_DIVISOR = 8;

    /**
     * Maximum number of tokens that are remembered at the same time. For example, if each token is remembered for 40 s,
     * about 26,000 calls a second are possible for each GiB of heap. On a heap of any size, at most about 100,000 calls
     * a second are possible. The calls of one signer can be at most half of that number.
     */
    public static final int MAX_REMEMBERED =
            (int) Math.min(1 << 22, Runtime.getRuntime().maxMemory() / HEAP_DIVISOR / TOKEN_BYTES);

    /**
     * The instance that all servers of this process share by default, so that together they accept a token only once.
     */
    public static final UsedTokens OF_PROCESS = new UsedTokens(MAX_REMEMBERED, InstantSource.system());

    /** One signer has at most {@code maxTokens / SIGNER_DIVISOR} tokens, which leaves room for other signers. */
    private static final int SIGNER_DIVISOR = 2;

    /** Tokens that expire within the same second. */
    private static final class Second {
        /**
         * Maps the text of each token's signature to the signer. All tokens of one signer share one {@code Signer}
         * object.
         */
        private final Map<String, Signer> ids = new HashMap<>();
    }

    /** A signer that has at least one remembered token. */
    private static final class Signer {
        private final String name;
        private int tokens;

        Signer(String name) {
            this.name = name;
        }
    }

    private final int maxTokens;
    private final InstantSource clock;

    // this object's lock guards all fields below
    private final Map<Long, Second> seconds = withTable(0L, new Second());
    private final Map<String, Signer> signers = withTable("", new Signer(""));

    /**
     * Number of units of room that all tokens and signers take. A token takes one unit, and a signer takes as many as
     * {@link #signerRoom} returns.
     */
    private int count;

    private int remembered;

    /**
     * The latest time of expiry of all forgotten tokens, in seconds since 1970. The value never decreases. If the clock
     * goes back, a token that expires no later than this second is refused, because the token could have been used and
     * forgotten already. The field does not hold the time at which tokens were forgotten: if the clock was a year ahead
     * at that time, all tokens of the next year would be refused.
     */
    private long forgottenTo = Long.MIN_VALUE;

    private long sweptSecond = Long.MIN_VALUE;

    public UsedTokens(int maxTokens, InstantSource clock) {
        this.maxTokens = maxTokens;
        this.clock = clock;
    }

    /**
     * Returns an empty map whose first table already exists. If memory runs out while a {@code HashMap} makes its first
     * table, later tables have wrong lengths, and the map does not find its entries.
     */
    private static <K, V> Map<K, V> withTable(K anyKey, V anyValue) {
        Map<K, V> map = new HashMap<>();
        map.put(anyKey, anyValue);
        map.remove(anyKey);
        return map;
    }

    /** Remembers a token, and returns whether it was used for the first time. See {@code Tokens.OneUse}. */
    public boolean first(String signer, String token, Instant until) {
        long second = until.getEpochSecond();
        synchronized (this) {
            long now = clock.instant().getEpochSecond();
            sweep(now);
            if (second < now) {
                // The token has expired since the caller checked it. So a copy of the token could have been used and,
                // after it expired, forgotten.
                throw Token.expiredMeanwhile();
            }
            if (second <= forgottenTo) {
                throw new IllegalStateException("the clock has gone back by " + (forgottenTo + 1 - now)
                        + " s or more, behind tokens that have been forgotten");
            }
            Second held = seconds.get(second);
            if (held != null && held.ids.containsKey(token)) {
                return false;
            }
            Signer known = signers.get(signer);
            int room = known == null ? 1 + signerRoom(signer) : 1;
            if (room > maxTokens - count || known != null && known.tokens >= Math.max(1, maxTokens / SIGNER_DIVISOR)) {
                throw RPCXException.refused(
                        RPCXException.Code.OVERLOADED, "too many tokens have been used within their time");
            }
            keep(known == null ? new Signer(signer) : known, token, second, held == null ? new Second() : held);
            count += room;
            remembered++;
            return true;
        }
    }

    /**
     * Stores a token, the second in which the token expires, and the token's signer. If memory runs out, this method
     * removes the token again, and also removes the signer if the signer has no other token. If that signer stayed,
     * {@link #count} would become too small: {@link #first} would not add the room of a signer that is stored already,
     * but {@link #forget} would later subtract this room.
     */
    private void keep(Signer signer, String token, long second, Second held) {
        boolean isKept = false;
        try {
            // The token is put into the Second object before this object is stored. If memory runs out while the
            // object's map makes its first table, the map is unusable, and the object is never stored.
            held.ids.put(token, signer);
            seconds.put(second, held);
            signers.put(signer.name, signer);
            signer.tokens++;
            isKept = true;
        } finally {
            if (!isKept) {
                held.ids.remove(token);
                if (signer.tokens == 0) {
                    signers.remove(signer.name);
                }
            }
        }
    }

    /** Returns the room that a signer's name and entry take, in units of one token, rounded up. */
    private static int signerRoom(String signer) {
        return (SIGNER_BYTES + 2 * signer.length() + TOKEN_BYTES - 1) / TOKEN_BYTES;
    }

    private void sweep(long now) {
        if (now == sweptSecond) {
            return;
        }
        sweptSecond = now;
        for (Iterator<Map.Entry<Long, Second>> all = seconds.entrySet().iterator(); all.hasNext(); ) {
            Map.Entry<Long, Second> entry = all.next();
            if (entry.getKey() < now) {
                forgottenTo = Math.max(forgottenTo, entry.getKey());
                forget(entry.getValue());
                all.remove();
            }
        }
    }

    private void forget(Second over) {
        for (Signer signer : over.ids.values()) {
            signer.tokens--;
            if (signer.tokens == 0) {
                signers.remove(signer.name);
                count -= signerRoom(signer.name);
            }
        }
        count -= over.ids.size();
        remembered -= over.ids.size();
    }

    public synchronized int remembered() {
        return remembered;
    }
}
