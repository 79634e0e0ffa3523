package dev.rpcx.internal;

import io.netty.buffer.ByteBuf;

/**
 * Reads and writes Protobuf's varints. A varint is a number in one to ten bytes, each of which holds seven bits of the
 * number, the lowest bits first.
 */
public final class Varint {
    private Varint() {}

    public static int size(long value) {
        return (63 - Long.numberOfLeadingZeros(value | 1)) / 7 + 1;
    }

    public static void write(ByteBuf out, long value) {
        long rest = value;
        while ((rest & ~0x7FL) != 0) {
            out.writeByte((int) (rest & 0x7F) | 0x80);
            rest >>>= 7;
        }
        out.writeByte((int) rest);
    }

    /**
     * Inserts {@code value} as a varint into a buffer at {@code index}, and moves the bytes from this index on. Returns
     * the length of the varint in bytes.
     */
    public static int insert(ByteBuf out, int index, long value) {
        int bytes = size(value);
        int end = out.writerIndex();
        out.ensureWritable(bytes);
        out.setBytes(index + bytes, out, index, end - index);
        out.writerIndex(index);
        write(out, value);
        out.writerIndex(end + bytes);
        return bytes;
    }

    /**
     * Writes a varint into an array, which must have room for the varint.
     *
     * @return index after the last byte of the varint
     */
    public static int write(byte[] out, int index, int value) {
        int at = index;
        int rest = value;
        while ((rest & ~0x7F) != 0) {
            out[at++] = (byte) (rest & 0x7F | 0x80);
            rest >>>= 7;
        }
        out[at++] = (byte) rest;
        return at;
    }

    /**
     * Reads a varint.
     *
     * @throws WireFault if the bytes end within the varint, or if the varint is longer than ten bytes
     */
    public static long read(ByteBuf in) {
        long value = 0;
        for (int shift = 0; shift < 70; shift += 7) {
            if (!in.isReadable()) {
                throw new WireFault("a number is cut off");
            }
            byte b = in.readByte();
            value |= (long) (b & 0x7F) << shift;
            if (b >= 0) {
                return value;
            }
        }
        throw new WireFault("a number of more than 10 bytes");
    }

    /**
     * Reads the length, in bytes, of a value that follows the length.
     *
     * @param max maximum length in bytes
     * @param what name of the value, for the text of the exception
     * @throws WireFault if the length is negative, above {@code max} or above the number of readable bytes
     */
    public static int readLength(ByteBuf in, int max, String what) {
        long length = read(in);
        if (length < 0 || length > max || length > in.readableBytes()) {
            throw new WireFault(what + ": length " + Long.toUnsignedString(length) + " (expected: at most "
                    + Math.min(max, in.readableBytes()) + ")");
        }
        return (int) length;
    }

    /**
     * Overwrites a varint in a buffer with {@code value}, padded to the length of the old varint. The caller makes sure
     * that {@code value} fits into this length. Any value that is not larger than the old value fits.
     *
     * @param bytes length of the old varint in bytes
     */
    public static void writePadded(ByteBuf out, int index, int bytes, long value) {
        long rest = value;
        for (int i = 0; i < bytes - 1; i++) {
            out.setByte(index + i, (int) rest & 0x7F | 0x80);
            rest >>>= 7;
        }
        out.setByte(index + bytes - 1, (int) rest & 0x7F);
    }
}
