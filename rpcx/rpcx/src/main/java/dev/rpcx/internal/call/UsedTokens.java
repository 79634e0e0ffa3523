package dev.rpcx.internal.call;

import dev.rpcx.RPCXException;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * Remembers the valid tokens that have been used and have not expired, in the memory of this process. All tokens that
 * expire within the same second are forgotten together, and no token is forgotten early: if there is no room, a further
 * token is refused. Thread-safe.
 */
public final class UsedTokens {
    /**
     * Heap in bytes that one remembered token takes, by measurement: the text of its signature, which has 43
     * characters, its entry, and its part of a table.
     */
    private static final int TOKEN_BYTES = 130;

    /** Heap in bytes that one signer takes in addition to the characters of its name, by measurement. */
    private static final int SIGNER_BYTES = 160;

    /** Divisor of the heap size: all remembered tokens together may take one eighth of the heap. */
    private static final int HEAP_DIVISOR = 8;

    /**
     * Largest number of tokens that are remembered at the same time. If each is remembered for 40 s, the number is
     * enough for about 26,000 calls a second for each GiB of heap, and for about 100,000 calls a second at most.
     */
    public static final int MAX_REMEMBERED =
            (int) Math.min(1 << 22, Runtime.getRuntime().maxMemory() / HEAP_DIVISOR / TOKEN_BYTES);

    /**
     * Object that all servers of the process use. So a token is good only once at all of them together, however many
     * there are.
     */
    public static final UsedTokens OF_PROCESS = new UsedTokens(MAX_REMEMBERED, InstantSource.system());

    /**
     * Divisor of the room for tokens: one signer may take half of the room, so that a busy or hostile signer leaves
     * room for the others.
     */
    private static final int SIGNER_DIVISOR = 2;

    /** Tokens that expire within the same second. */
    private static final class Second {
        /**
         * Signer of each token, by the text of the token's signature. All tokens of one signer have the same object
         * here.
         */
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
     * Latest second whose tokens have been forgotten, in seconds since 1970. It never decreases: if the clock goes
     * back, a token that expires in this second or earlier may have been used and forgotten already. The value is the
     * second in which these tokens expired. It is not the time at which they were forgotten, since the clock may have
     * been wrong at that time. A token that expires later than all forgotten tokens cannot have been forgotten.
     */
    private long forgottenTo = Long.MIN_VALUE;

    private long sweptSecond = Long.MIN_VALUE;

    public UsedTokens(int maxTokens, InstantSource clock) {
        this.maxTokens = maxTokens;
        this.clock = clock;
    }

    /**
     * Returns an empty map that already has its first table. A {@code HashMap} may find no memory for that table when
     * its first entry is added. Its later tables then have lengths of 12, 24 and so on, which are no powers of two, and
     * entries in such a table are not found again. So the first table must not be made when the first lasting entry is
     * added.
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
                // the token was good when the caller checked it, but since then a copy of it may have been used and
                // forgotten
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
     * Keeps a token together with its second and its signer. If memory runs out meanwhile, the token is not kept. A
     * table may have an entry all the same, which is then removed. If a signer without tokens remained, later tokens
     * would find it and take no room for its name, but this room would be given back when the last of these tokens is
     * forgotten.
     */
    private void keep(Signer signer, String token, long second, Second held) {
        boolean isKept = false;
        try {
            // the token is put into its second first: if the first table of a new second cannot be made, that second is
            // never used
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

    /**
     * Returns the room that a signer's name and entry take. The unit is the room of one token; a part of a unit counts
     * as a whole unit.
     */
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
