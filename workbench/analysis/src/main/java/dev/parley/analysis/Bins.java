package dev.parley.analysis;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collection;
import java.util.Optional;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.jspecify.annotations.Nullable;

/**
 * The counts of histograms of one shape, added up as they stand in HdrHistogram's compressed V2 encoding. The library
 * would decode each into an array of all values that it could hold, and look through all of it, most of which is empty:
 * a run has tens of thousands of histograms, each of which several figures are made of. One thread.
 */
final class Bins {
    private static final int COMPRESSED_COOKIE = 0x1c849304;
    private static final int COOKIE = 0x1c849303;
    /** The cookies' bits that tell the width of a count, which the encoding does not depend on. */
    private static final int WIDTH_BITS = 0xf0;

    private static final int HEADER_BYTES = 40;
    /** More than a histogram of five digits can have; an encoding that claims more is the library's to judge. */
    private static final int MAX_PAYLOAD_BYTES = 1 << 24;

    private final int digits;
    /** Binary logarithm of the number of bins of one width; those of width 1 are twice as many. */
    private final int halfMagnitude;

    private long[] counts = new long[0];

    private Bins(int digits) {
        this.digits = digits;
        double singleUnits = 2 * Math.pow(10, digits);
        this.halfMagnitude = (int) Math.ceil(Math.log(singleUnits) / Math.log(2)) - 1;
    }

    /**
     * Empty where they are not all of one shape in whole units from 1 on, or where one is no histogram: the library
     * then reads them, or says what is wrong.
     */
    static Optional<Distribution> merged(Collection<byte[]> encoded) {
        Bins bins = null;
        for (byte[] one : encoded) {
            if (one.length == 0) {
                continue;
            }
            ByteBuffer histogram = inflated(one);
            if (histogram == null) {
                return Optional.empty();
            }
            int digits = histogram.getInt(12);
            if (bins == null) {
                bins = new Bins(digits);
            }
            if (bins.digits != digits || !bins.add(histogram.position(HEADER_BYTES))) {
                return Optional.empty();
            }
        }
        return Optional.of(bins == null ? new Distribution(new long[0], new long[0]) : bins.distribution());
    }

    /** Header and counts; null where it is not of this encoding, or of a shape that no histogram of a run has. */
    private static @Nullable ByteBuffer inflated(byte[] encoded) {
        if (encoded.length < 8) {
            return null;
        }
        ByteBuffer outer = ByteBuffer.wrap(encoded);
        int length = outer.getInt(4);
        if ((outer.getInt(0) & ~WIDTH_BITS) != COMPRESSED_COOKIE || length < 0 || length > encoded.length - 8) {
            return null;
        }
        Inflater inflater = new Inflater();
        try {
            inflater.setInput(encoded, 8, length);
            byte[] header = new byte[HEADER_BYTES];
            if (!fill(inflater, header, 0)) {
                return null;
            }
            ByteBuffer inner = ByteBuffer.wrap(header);
            int payload = inner.getInt(4);
            int digits = inner.getInt(12);
            boolean isPlain = (inner.getInt(0) & ~WIDTH_BITS) == COOKIE
                    && inner.getInt(8) == 0
                    && digits >= 1
                    && digits <= 5
                    && inner.getLong(16) == 1
                    && inner.getDouble(32) == 1.0;
            if (!isPlain || payload < 0 || payload > MAX_PAYLOAD_BYTES) {
                return null;
            }
            byte[] whole = Arrays.copyOf(header, HEADER_BYTES + payload);
            return fill(inflater, whole, HEADER_BYTES) ? ByteBuffer.wrap(whole) : null;
        } catch (DataFormatException e) {
            return null;
        } finally {
            inflater.end();
        }
    }

    private static boolean fill(Inflater inflater, byte[] into, int from) throws DataFormatException {
        int at = from;
        while (at < into.length) {
            int read = inflater.inflate(into, at, into.length - at);
            if (read == 0) {
                return false;
            }
            at += read;
        }
        return true;
    }

    /** @return false where the counts end in the midst of one, or beyond the bins that 63 bits can have */
    private boolean add(ByteBuffer payload) {
        int most = (64 - halfMagnitude) << halfMagnitude;
        long index = 0;
        while (payload.hasRemaining()) {
            if (payload.remaining() < 9 && !isWhole(payload)) {
                return false;
            }
            long count = next(payload);
            if (count < 0) {
                // so many bins in a row are empty
                index -= count;
                if (index < 0 || index > most) {
                    return false;
                }
            } else {
                if (index >= most) {
                    return false;
                }
                if (count > 0) {
                    add((int) index, count);
                }
                index++;
            }
        }
        return true;
    }

    private void add(int index, long count) {
        if (index >= counts.length) {
            counts = Arrays.copyOf(counts, Math.max(index + 1, counts.length + (counts.length >> 1)));
        }
        counts[index] += count;
    }

    private static boolean isWhole(ByteBuffer payload) {
        for (int i = payload.position(); i < payload.limit(); i++) {
            if (payload.get(i) >= 0) {
                return true;
            }
        }
        return false;
    }

    /** A count, or the number of empty bins below zero: LEB128 of at most nine bytes, the sign in the lowest bit. */
    private static long next(ByteBuffer payload) {
        long value = 0;
        for (int shift = 0; shift < 56; shift += 7) {
            byte read = payload.get();
            value |= (read & 0x7FL) << shift;
            if (read >= 0) {
                return value >>> 1 ^ -(value & 1);
            }
        }
        value |= (long) payload.get() << 56;
        return value >>> 1 ^ -(value & 1);
    }

    private Distribution distribution() {
        int recorded = 0;
        for (long count : counts) {
            recorded += count > 0 ? 1 : 0;
        }
        long[] values = new long[recorded];
        long[] ofValues = new long[recorded];
        int at = 0;
        for (int index = 0; index < counts.length; index++) {
            if (counts[index] > 0) {
                values[at] = highest(index);
                ofValues[at++] = counts[index];
            }
        }
        return new Distribution(values, ofValues);
    }

    /** The highest value of a bin. */
    private long highest(int index) {
        int half = 1 << halfMagnitude;
        int bucket = (index >> halfMagnitude) - 1;
        if (bucket < 0) {
            return index;
        }
        long sub = (index & half - 1) + half;
        return (sub + 1 << bucket) - 1;
    }
}
