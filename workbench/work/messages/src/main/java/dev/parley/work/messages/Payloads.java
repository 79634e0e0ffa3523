package dev.parley.work.messages;

import dev.parley.spi.messages.TestModelAllTypes;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Supplier;

/**
 * What clients send, drawn from a seed. There are several different payloads of each size, so that a reply that belongs
 * to another request is seen to be wrong; there are fewer large ones, to bound the memory of the client.
 */
final class Payloads {
    private static final int MAX_VARIANTS = 64;
    private static final int MIN_VARIANTS = 4;
    /**
     * Characters of all variants of one size together. Where these would be more, there are as few variants as
     * possible.
     */
    private static final int ROOM = 1 << 20;

    private static final int ITEM_TEXT_CHARACTERS = 10;
    /** Roughly what one item takes as text. */
    private static final int ITEM_CHARACTERS = 200;

    private static final LocalDateTime YEAR_2000 = LocalDateTime.of(2000, 1, 1, 0, 0);
    private static final long TICKS_OF_40_YEARS = 40L * 365 * 24 * 3600 * 10_000_000;

    private Payloads() {}

    static List<TestModelOnlyText> texts(int characters, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        return variants(characters, () -> new TestModelOnlyText(text(characters, random)));
    }

    static List<TestModelAllTypesList> lists(int items, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        return variants(items * ITEM_CHARACTERS, () -> list(items, random));
    }

    private static <T> List<T> variants(int characters, Supplier<T> one) {
        int count = characters == 0 ? 1 : Math.clamp(ROOM / characters, MIN_VARIANTS, MAX_VARIANTS);
        List<T> variants = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            variants.add(one.get());
        }
        return List.copyOf(variants);
    }

    private static TestModelAllTypesList list(int count, SplittableRandom random) {
        List<TestModelAllTypes> items = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            items.add(item(random));
        }
        return new TestModelAllTypesList(items);
    }

    private static TestModelAllTypes item(SplittableRandom random) {
        return new TestModelAllTypes(
                text(ITEM_TEXT_CHARACTERS, random),
                random.nextBoolean(),
                random.nextInt(256),
                // in ticks of 100 ns, as C#'s DateTime counts
                YEAR_2000.plusNanos(100 * random.nextLong(TICKS_OF_40_YEARS)),
                new BigDecimal(
                        BigInteger.valueOf(random.nextLong(-1_000_000_000_000L, 1_000_000_000_000L)),
                        random.nextInt(7)),
                (float) random.nextDouble(-1e6, 1e6),
                random.nextInt(),
                (short) random.nextInt(),
                random.nextLong());
    }

    /** Printable ASCII, 0x20 to 0x7e: one byte a character in UTF-8. */
    private static String text(int characters, SplittableRandom random) {
        byte[] ascii = new byte[characters];
        for (int i = 0; i < characters; i++) {
            ascii[i] = (byte) random.nextInt(0x20, 0x7f);
        }
        return new String(ascii, StandardCharsets.US_ASCII);
    }
}
