package dev.rpcx.kubernetes;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * Stream of an answer of limited size. Reading more is an error, so that whoever answers in the API server's place
 * cannot fill the heap.
 */
class LimitedStream extends FilterInputStream {
    /**
     * Max bytes of an answer: about twenty thousand pods in a list, or changes of the same size in all in one watch,
     * which lasts a minute.
     */
    static final int MAX_BYTES = 8 << 20;

    private int left = MAX_BYTES;

    LimitedStream(InputStream in) {
        super(in);
    }

    @Override
    public int read() throws IOException {
        return counted(super.read(), 1);
    }

    @Override
    public int read(byte[] bytes, int from, int count) throws IOException {
        int read = super.read(bytes, from, count);
        return counted(read, read);
    }

    @Override
    public long skip(long count) throws IOException {
        throw new IOException("not skipped");
    }

    private int counted(int result, int bytes) throws IOException {
        if (result >= 0) {
            left -= bytes;
        }
        if (left < 0) {
            throw new IOException("an answer of more than " + MAX_BYTES + " bytes");
        }
        return result;
    }
}
