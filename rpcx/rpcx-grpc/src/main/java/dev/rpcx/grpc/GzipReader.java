package dev.rpcx.grpc;

import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * Reads one message in gzip, piece by piece as it arrives. What comes out is handed on in small pieces, so that whoever
 * gets them can stop at the largest size of a message, however much would follow. Event loop only. Source: RFC 1952.
 */
final class GzipReader {
    /** Estimate of the memory of one reader, in bytes: zlib's window and tables, and the piece that is handed on. */
    static final int MEMORY_BYTES = 56 * 1024;

    private static final int PIECE_BYTES = 8 * 1024;

    private static final int[] FIRST_BYTES = {0x1F, 0x8B, 8};

    private static final int HEADER_BYTES = 10;
    private static final int FLAGS_INDEX = 3;
    private static final int TRAILER_BYTES = 8;

    private static final int HEADER_CRC = 2;
    private static final int EXTRA = 4;
    private static final int NAME = 8;
    private static final int COMMENT = 16;
    private static final int RESERVED = 0xE0;

    /** The parts of a gzip file, in their order. */
    private enum Part {
        HEADER,
        EXTRA_LENGTH,
        EXTRA_BYTES,
        NAME_TEXT,
        COMMENT_TEXT,
        HEADER_CHECK,
        BODY,
        TRAILER,
        END
    }

    /** Takes what has been inflated. */
    @FunctionalInterface
    interface Output {
        /**
         * Takes a piece, whose bytes are valid only during this call.
         *
         * @return false to inflate no more; the reader may have been closed then
         */
        boolean write(ByteBuf piece);
    }

    private final Inflater inflater = new Inflater(true);
    private final CRC32 check = new CRC32();
    private final byte[] piece = new byte[PIECE_BYTES];
    private Part part = Part.HEADER;
    private int flags;

    /** Number of bytes of the present part that have been read. */
    private int bytes;

    private int extraBytes;

    /** The last bytes of the message so far, the first of them lowest: its checksum and its size. */
    private long trailer;

    /**
     * Reads a piece of the compressed message.
     *
     * @throws WireFault if this is no gzip
     */
    void read(ByteBuf in, Output out) {
        while (in.isReadable()) {
            if (part != Part.BODY) {
                readByte(in.readUnsignedByte());
            } else if (!inflate(in, out)) {
                return;
            }
        }
    }

    private boolean inflate(ByteBuf in, Output out) {
        inflater.setInput(in.nioBuffer());
        try {
            for (int count = inflater.inflate(piece); count > 0; count = inflater.inflate(piece)) {
                check.update(piece, 0, count);
                if (!out.write(Unpooled.wrappedBuffer(piece, 0, count))) {
                    return false;
                }
            }
        } catch (DataFormatException e) {
            throw new WireFault("a message is not gzip: " + e.getMessage());
        }
        if (inflater.needsDictionary()) {
            throw new WireFault("a message in gzip wants a dictionary");
        }
        in.skipBytes(in.readableBytes() - inflater.getRemaining());
        if (inflater.finished()) {
            next(Part.TRAILER);
        }
        return true;
    }

    private void readByte(int value) {
        bytes++;
        switch (part) {
            case HEADER -> readHeader(value);
            case EXTRA_LENGTH -> {
                extraBytes |= value << 8 * (bytes - 1);
                if (bytes == 2) {
                    next(extraBytes == 0 ? afterExtra() : Part.EXTRA_BYTES);
                }
            }
            case EXTRA_BYTES -> {
                if (bytes == extraBytes) {
                    next(afterExtra());
                }
            }
            case NAME_TEXT -> {
                if (value == 0) {
                    next(afterName());
                }
            }
            case COMMENT_TEXT -> {
                if (value == 0) {
                    next(afterComment());
                }
            }
            case HEADER_CHECK -> {
                if (bytes == 2) {
                    next(Part.BODY);
                }
            }
            case TRAILER -> readTrailer(value);
            case END -> {
                // A gzip file is a series of members. Source: RFC 1952, section 2.2.
                inflater.reset();
                check.reset();
                trailer = 0;
                extraBytes = 0;
                part = Part.HEADER;
                readHeader(value);
            }
            case BODY -> throw new IllegalStateException("the body is not read byte by byte");
        }
    }

    private void readHeader(int value) {
        if (bytes <= FIRST_BYTES.length && value != FIRST_BYTES[bytes - 1]) {
            throw new WireFault("a message does not begin as gzip does");
        }
        if (bytes == FLAGS_INDEX + 1) {
            flags = value;
            if ((flags & RESERVED) != 0) {
                throw new WireFault("a message in gzip has flags that are not known: " + flags);
            }
        }
        if (bytes == HEADER_BYTES) {
            next((flags & EXTRA) != 0 ? Part.EXTRA_LENGTH : afterExtra());
        }
    }

    private Part afterExtra() {
        return (flags & NAME) != 0 ? Part.NAME_TEXT : afterName();
    }

    private Part afterName() {
        return (flags & COMMENT) != 0 ? Part.COMMENT_TEXT : afterComment();
    }

    private Part afterComment() {
        return (flags & HEADER_CRC) != 0 ? Part.HEADER_CHECK : Part.BODY;
    }

    private void readTrailer(int value) {
        trailer |= (long) value << 8 * (bytes - 1);
        if (bytes == TRAILER_BYTES) {
            long size = inflater.getBytesWritten() & 0xFFFF_FFFFL;
            if ((trailer & 0xFFFF_FFFFL) != check.getValue() || trailer >>> Integer.SIZE != size) {
                throw new WireFault("a message in gzip does not fit its checksum or its size");
            }
            next(Part.END);
        }
    }

    private void next(Part following) {
        part = following;
        bytes = 0;
    }

    /** Returns whether all parts of the message have been read. */
    boolean isWhole() {
        return part == Part.END;
    }

    /** Frees zlib's memory. Nothing may be read afterwards. */
    void close() {
        inflater.end();
    }
}
