package dev.rpcx;

import dev.rpcx.internal.wire.Wire;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Splits the bytes of one direction of a native connection into frames, only by what the wire's page says. It counts
 * the frames that each call id has had.
 */
final class FrameLog {
    record Frame(int head, int id) {
        int type() {
            return head & Wire.TYPE_MASK;
        }
    }

    final List<Frame> frames = new ArrayList<>();

    /** Counts requests and notices by call id. */
    final Map<Integer, Integer> begun = new HashMap<>();

    /** Counts replies and errors by call id. */
    final Map<Integer, Integer> finals = new HashMap<>();

    private final byte[] preface = new byte[Wire.PREFACE_BYTES];
    private int prefaceBytes;
    private byte[] rest = {};
    private boolean broken;

    /** Returns whether the bytes are not those of a native connection, or not any more. */
    boolean isBroken() {
        return broken;
    }

    /** Returns whether the preface has come, and only whole frames after it. */
    boolean isBetweenFrames() {
        return !broken && prefaceBytes == preface.length && rest.length == 0;
    }

    void add(byte[] bytes, int from, int count) {
        int at = from;
        int end = from + count;
        while (prefaceBytes < preface.length && at < end) {
            preface[prefaceBytes++] = bytes[at++];
        }
        // the first byte alone decides which wire it is
        broken |= prefaceBytes > 0 && preface[0] != 'R';
        if (prefaceBytes < preface.length) {
            return;
        }
        broken |= preface[0] != 'R' || preface[1] != 'P' || preface[2] != 'C' || preface[3] != 'X' || preface[4] == 0;
        byte[] all = new byte[rest.length + end - at];
        System.arraycopy(rest, 0, all, 0, rest.length);
        System.arraycopy(bytes, at, all, rest.length, end - at);
        int read = 0;
        while (!broken && read < all.length) {
            int next = frame(all, read);
            if (next < 0) {
                break;
            }
            read = next;
        }
        rest = java.util.Arrays.copyOfRange(all, read, all.length);
    }

    /** @return where the frame ends; -1 if the frame is not whole, or if it breaks the rules of the wire */
    private int frame(byte[] in, int start) {
        int length = 0;
        int at = start;
        for (int shift = 0; ; shift += 7) {
            if (at == in.length) {
                return -1;
            }
            byte next = in[at++];
            length |= (next & 0x7F) << shift;
            if (next >= 0) {
                broken |= shift > 0 && next == 0;
                break;
            }
            if (shift == 14) {
                broken = true;
                return -1;
            }
        }
        broken |= length < Wire.HEAD_BYTES || length > Wire.MAX_FRAME_BYTES;
        if (broken || at + length > in.length) {
            return -1;
        }
        int id = (in[at + 1] & 0xFF) << 24 | (in[at + 2] & 0xFF) << 16 | (in[at + 3] & 0xFF) << 8 | in[at + 4] & 0xFF;
        Frame frame = new Frame(in[at] & 0xFF, id);
        frames.add(frame);
        switch (frame.type()) {
            case Wire.REQUEST, Wire.NOTICE -> begun.merge(id, 1, Integer::sum);
            case Wire.REPLY, Wire.ERROR -> finals.merge(id, 1, Integer::sum);
            default -> {
                // the frame belongs to a call that has begun, or to the connection
            }
        }
        return at + length;
    }
}
