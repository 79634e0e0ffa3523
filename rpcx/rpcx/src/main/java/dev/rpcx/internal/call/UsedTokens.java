package dev.rpcx.internal.call;

import dev.rpcx.RPCXException;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * Remembers the valid tokens that have been used and have not expired, in the memory of this process. They are
 * forgotten a whole second at a time, and never early: where there is no room a further token is refused. Thread-safe.
 */
public final class UsedTokens {
    /** Heap in bytes of one remembered token, measured: its text of 43 characters, its entry, its part of a table. */
    private static final int TOKEN_BYTES = 130;

    /** Heap in bytes of one signer beside the characters of its name, measured. */
    private static final int SIGNER_BYTES = 160;

    /** All remembered tokens together may take the heap, divided by this. */
    private static final int HEAP_PART = 8;

    /**
     * Largest number of tokens that are remembered at once. At 40 s each that is some 26,000 calls a second for each
     * GiB of heap, and at most 100,000.
     */
    public static final int MAX_REMEMBERED =
            (int) Math.min(1 << 22, Runtime.getRuntime().maxMemory() / HEAP_PART / TOKEN_BYTES);

    /** Instance of the process, so that a token is good once at all of its servers, however many there are. */
    public static final UsedTokens OF_PROCESS = new UsedTokens(MAX_REMEMBERED, InstantSource.system());

    /** One signer may take the room, divided by this, so that a busy or hostile one leaves room for the others. */
    private static final int SIGNERS_PART = 2;

    /** Tokens whose time ends within one second. */
    private static final class Second {
        /** Signer of each token; one object for all tokens that it has signed. */
        private final Map<String, Signer> ids = new HashMap<>();
    }

    /** Signer whose tokens are remembered. */
    private static final class Signer {
        private final String name;
        private int tokens;

        Signer(String name) {
            this.name = name;
        }
    }

    private final int most;
    private final InstantSource clock;

    // guarded by this
    private final Map<Long, Second> seconds = withTable(0L, new Second());
    private final Map<String, Signer> signers = withTable("", new Signer(""));

    /** Room that is taken, counted in tokens. */
    private int count;

    private int remembered;

    /**
     * Latest second whose tokens have been forgotten. It never decreases: where the clock goes back, tokens up to this
     * second may have been used. It is not the time at which they were forgotten, since a clock may show that by
     * mistake: what expires after the latest token that was forgotten cannot have been forgotten.
     */
    private long forgottenTo = Long.MIN_VALUE;

    private long sweptSecond = Long.MIN_VALUE;

    public UsedTokens(int most, InstantSource clock) {
        this.most = most;
        this.clock = clock;
    }

    /**
     * Returns an empty map that has its first table. A {@code HashMap} that finds no memory for that table when its
     * first entry comes has tables of 12, 24 and so on from then on, in which entries are not found again; so the table
     * must not be made with that entry.
     */
    private static <K, V> Map<K, V> withTable(K anyKey, V anyValue) {
        Map<K, V> map = new HashMap<>();
        map.put(anyKey, anyValue);
        map.remove(anyKey);
        return map;
    }

    /** Remembers a token, and says whether it was used for the first time. See {@code Tokens.OneUse}. */
    public boolean first(String signer, String token, Instant until) {
        long second = until.getEpochSecond();
        synchronized (this) {
            long now = clock.instant().getEpochSecond();
            sweep(now);
            if (second < now) {
                // the token was good when the caller checked it: a copy of it may have been used and forgotten since
                throw RPCXException.refused(
                        RPCXException.Code.OVERLOADED, "the token has expired while it was looked at");
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
            if (room > most - count || known != null && known.tokens >= Math.max(1, most / SIGNERS_PART)) {
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
     * Keeps a token with its second and its signer, or nothing: where memory ends on the way, a table may have the
     * entry all the same, and a signer without tokens would give back room that it never took.
     */
    private void keep(Signer signer, String token, long second, Second held) {
        boolean isKept = false;
        try {
            // the token goes into its second first: a new second whose first table could not be made is never used
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

    /** Returns the room of a signer's name and entry, counted in tokens. */
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
