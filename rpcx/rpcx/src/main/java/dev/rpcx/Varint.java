package dev.rpcx;

import io.netty.buffer.ByteBuf;

/** Protobuf's base-128 numbers, low group first, at most ten bytes. */
final class Varint {
    private Varint() {}

    static int size(long value) {
        return (63 - Long.numberOfLeadingZeros(value | 1)) / 7 + 1;
    }

    static void write(ByteBuf out, long value) {
        long rest = value;
        while ((rest & ~0x7FL) != 0) {
            out.writeByte((int) (rest & 0x7F) | 0x80);
            rest >>>= 7;
        }
        out.writeByte((int) rest);
    }

    /** Puts a number in at a place within what has been written. @return its bytes */
    static int insert(ByteBuf out, int index, long value) {
        int bytes = size(value);
        int end = out.writerIndex();
        out.ensureWritable(bytes);
        out.setBytes(index + bytes, out, index, end - index);
        out.writerIndex(index);
        write(out, value);
        out.writerIndex(end + bytes);
        return bytes;
    }

    /** The same as {@link #write(ByteBuf, long)} into an array that has room for it. @return the index behind it */
    static int write(byte[] out, int index, int value) {
        int at = index;
        int rest = value;
        while ((rest & ~0x7F) != 0) {
            out[at++] = (byte) (rest & 0x7F | 0x80);
            rest >>>= 7;
        }
        out[at++] = (byte) rest;
        return at;
    }

    /** @throws WireFault if the bytes end first, or the number is longer than ten bytes */
    static long read(ByteBuf in) {
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
     * A length of what follows: not negative, not above {@code max}, not above what is there.
     *
     * @param what it is the length of, for the fault
     */
    static int readLength(ByteBuf in, int max, String what) {
        long length = read(in);
        if (length < 0 || length > max || length > in.readableBytes()) {
            throw new WireFault(what + ": length " + Long.toUnsignedString(length) + " (expected: at most "
                    + Math.min(max, in.readableBytes()) + ")");
        }
        return (int) length;
    }

    /** Overwrites a number by one that is no larger, in as many bytes as it has. */
    static void writePadded(ByteBuf out, int index, int bytes, long value) {
        long rest = value;
        for (int i = 0; i < bytes - 1; i++) {
            out.setByte(index + i, (int) rest & 0x7F | 0x80);
            rest >>>= 7;
        }
        out.setByte(index + bytes - 1, (int) rest & 0x7F);
    }
}
