package dev.parley.analysis;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.HdrHistogram.Histogram;

/** Histograms in the form in which they are stored. */
final class Encoded {
    private Encoded() {}

    static byte[] of(Histogram histogram) {
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        return Arrays.copyOf(buffer.array(), length);
    }

    static byte[] of(long... values) {
        Histogram histogram = new Histogram(3);
        Arrays.stream(values).forEach(histogram::recordValue);
        return of(histogram);
    }
}
