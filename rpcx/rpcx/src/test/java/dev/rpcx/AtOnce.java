package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Ledger;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.Random;

/**
 * Runs batches in which two sides act at the same time, at random from a seed. {@code -Drpcx.atonce.batches} sets the
 * number of batches, and {@code -Drpcx.atonce.seed} sets the first seed.
 */
public final class AtOnce {
    private static final long FIRST_SEED = Long.getLong("rpcx.atonce.seed", 1);
    private static final int LONG_FORM = 2_000;

    private AtOnce() {}

    /** Runs one connection from its start to its end. */
    public interface Batch {
        /** @param how the way in which the connection ends, from 0 to 3 */
        void run(Random chance, int how) throws Exception;
    }

    /**
     * Runs the batches; the ledger is at zero after each.
     *
     * @return the number of batches and their seeds, as text
     */
    public static String batches(int shortForm, Batch batch) {
        int batches = Integer.getInteger("rpcx.atonce.batches", LongForm.of(shortForm, LONG_FORM));
        for (long seed = FIRST_SEED; seed < FIRST_SEED + batches; seed++) {
            try {
                batch.run(new Random(seed), (int) ((seed - FIRST_SEED) % 4));
                await().pollInterval(Duration.ofMillis(2))
                        .untilAsserted(() -> assertThat(Ledger.auditAll()).isEmpty());
            } catch (Exception | AssertionError e) {
                throw new AssertionError("seed " + seed, e);
            }
        }
        return batches + " batches (seeds " + FIRST_SEED + " to " + (FIRST_SEED + batches - 1) + ")";
    }

    public static ByteBuf frame(int head, int id, int... payload) {
        ByteBuf bytes = Unpooled.buffer();
        for (int b : payload) {
            bytes.writeByte(b);
        }
        return RawPeer.frame(head, id, bytes);
    }
}
