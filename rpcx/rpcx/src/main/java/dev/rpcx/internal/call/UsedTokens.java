package dev.rpcx.internal.call;

import dev.rpcx.RPCXException;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * Remembers the valid tokens that have been used and have not expired, in the memory of this process. If there is no
 * room, a further token is refused; none is forgotten early. Thread-safe.
 */
public final class UsedTokens {
    /**
     * Measured bytes of heap for one token: the text of its signature, which has 43 characters, its entry, and its part
     * of a table.
     */
    private static final int TOKEN_BYTES = 130;

    /** Measured bytes of heap for one signer, without the characters of its name. */
    private static final int SIGNER_BYTES = 160;

    /** Divisor of the heap size: all remembered tokens together may take one eighth of the heap. */
    private static final int HEAP_DIVISOR = 8;

    /**
     * Max number of tokens that are remembered at the same time. If each is remembered for 40 s, this is enough for
     * about 26,000 calls a second for each GiB of heap, and at most for about 100,000.
     */
    public static final int MAX_REMEMBERED =
            (int) Math.min(1 << 22, Runtime.getRuntime().maxMemory() / HEAP_DIVISOR / TOKEN_BYTES);

    /** Shared by all servers of the process, so that a token is good only once for all of them together. */
    public static final UsedTokens OF_PROCESS = new UsedTokens(MAX_REMEMBERED, InstantSource.system());

    /** One signer may take the room for tokens divided by this number, so that it leaves room for others. */
    private static final int SIGNER_DIVISOR = 2;

    /** Tokens that expire within the same second. */
    private static final class Second {
        /** Signer of each token, by the text of the token's signature. Tokens of one signer share the same object. */
        private final Map<String, Signer> ids = new HashMap<>();
    }

    /** Signer of tokens that are remembered. */
    private static final class Signer {
        private final String name;
        private int tokens;

        Signer(String name) {
            this.name = name;
        }
    }

    private final int maxTokens;
    private final InstantSource clock;

    // the fields from here on are guarded by this object's lock
    private final Map<Long, Second> seconds = withTable(0L, new Second());
    private final Map<String, Signer> signers = withTable("", new Signer(""));

    /** Room that is taken. The unit is the room of one token. */
    private int count;

    private int remembered;

    /**
     * Latest second whose tokens have been forgotten, in seconds since 1970. This is the second in which the tokens
     * expired, not the time at which they were forgotten, since the clock may have been wrong then. The value never
     * decreases: if the clock goes back, a token that expires in this second or earlier may have been used and
     * forgotten already, so the token is refused.
     */
    private long forgottenTo = Long.MIN_VALUE;

    private long sweptSecond = Long.MIN_VALUE;

    public UsedTokens(int maxTokens, InstantSource clock) {
        this.maxTokens = maxTokens;
        this.clock = clock;
    }

    /**
     * Returns an empty map that already has its first table. If memory runs out while a {@code HashMap} makes its first
     * table, the lengths of its later tables are no powers of two, and entries are not found again.
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
                // a copy of the token may have been used and forgotten since the caller checked the token
                throw RPCXException.refused(
                        RPCXException.Code.OVERLOADED, "the token has expired while it was checked");
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
     * Keeps a token with its second and its signer. If memory runs out meanwhile, the token is removed again, and so is
     * a signer without tokens. If such a signer remained, a later token would take no room for the signer's name, but
     * this room would be given back.
     */
    private void keep(Signer signer, String token, long second, Second held) {
        boolean isKept = false;
        try {
            // the token is put into its second first, so that a second whose first table cannot be made is never used
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

    /** Returns the room of a signer's name and entry, in units of one token, rounded up. */
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
