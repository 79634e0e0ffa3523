package dev.parley.analysis;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.zip.DataFormatException;
import org.HdrHistogram.Histogram;

/**
 * Merged histograms, in nanoseconds. Percentiles of several seconds or trials come from their merged counts, never from an average of
 * percentiles. Values agree with {@link Histogram#getValueAtPercentile} of the merged histogram.
 */
public final class Distribution {
    private final long[] values;
    private final long[] counts;
    private final long total;

    /** @param values ascending, each the highest value of its histogram bucket */
    Distribution(long[] values, long[] counts) {
        this.values = values;
        this.counts = counts;
        long sum = 0;
        for (long count : counts) {
            sum += count;
        }
        this.total = sum;
    }

    /** Of histograms in HdrHistogram's compressed V2 encoding; none is a distribution of nothing. */
    public static Distribution merged(Collection<byte[]> encoded) {
        return Bins.merged(encoded).orElseGet(() -> {
            TreeMap<Long, Long> merged = new TreeMap<>();
            encoded.forEach(bytes -> addTo(merged, bytes));
            return of(merged);
        });
    }

    static Distribution of(Map<Long, Long> ascending) {
        long[] values = ascending.keySet().stream().mapToLong(Long::longValue).toArray();
        long[] counts = ascending.values().stream().mapToLong(Long::longValue).toArray();
        return new Distribution(values, counts);
    }

    static void addTo(Map<Long, Long> merged, byte[] encoded) {
        if (encoded.length == 0) {
            return;
        }
        Histogram histogram = decoded(encoded);
        for (var bucket : histogram.recordedValues()) {
            merged.merge(
                    histogram.highestEquivalentValue(bucket.getValueIteratedTo()),
                    bucket.getCountAddedInThisIterationStep(),
                    Long::sum);
        }
    }

    private static Histogram decoded(byte[] encoded) {
        try {
            return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(encoded), 0);
        } catch (DataFormatException e) {
            throw new IllegalArgumentException("a histogram of " + encoded.length
                    + " bytes does not decode (expected: HdrHistogram, compressed V2): " + e.getMessage());
        }
    }

    /** Ascending. Not to be written to. */
    long[] values() {
        return values;
    }

    /** Of each value. Not to be written to. */
    long[] counts() {
        return counts;
    }

    public long total() {
        return total;
    }

    public boolean isEmpty() {
        return total == 0;
    }

    /** NaN for a distribution of nothing, as are all figures here. */
    public double meanNs() {
        double sum = 0;
        for (int i = 0; i < values.length; i++) {
            sum += (double) values[i] * counts[i];
        }
        return sum / total;
    }

    /** Time spent in all of them together. */
    double sumNs() {
        return isEmpty() ? 0 : meanNs() * total;
    }

    /**
     * The smallest recorded value that at least {@code percent} of all values do not exceed.
     *
     * @param percent 0 for the least, 100 for the greatest
     */
    public double percentileNs(double percent) {
        if (isEmpty()) {
            return Double.NaN;
        }
        // as in HdrHistogram: step one ulp back so that 99.9 % of 1 000 is rank 999, not 1 000 by rounding error
        double asked = Math.nextAfter(Math.min(Math.max(percent, 0), 100), Double.NEGATIVE_INFINITY);
        long rank = Math.max(1, (long) Math.ceil(asked * total / 100));
        int i = 0;
        for (long seen = counts[0]; seen < rank; seen += counts[i]) {
            i++;
        }
        return values[i];
    }

    /** @param percentile which one; the mean where it is empty */
    double ns(OptionalDouble percentile) {
        return percentile.isPresent() ? percentileNs(percentile.getAsDouble()) : meanNs();
    }

    /** The percentiles that plots with a logarithmic tail axis show: 0, 50, 75, 87.5 … until one sample is left. */
    public List<double[]> tail() {
        List<double[]> points = new java.util.ArrayList<>();
        if (isEmpty()) {
            return points;
        }
        for (double percent : new double[] {0, 10, 20, 30, 40}) {
            points.add(new double[] {percent, percentileNs(percent)});
        }
        for (double left = 0.5; left * total >= 1; left /= Math.sqrt(2)) {
            points.add(new double[] {100 * (1 - left), percentileNs(100 * (1 - left))});
        }
        return points;
    }
}
