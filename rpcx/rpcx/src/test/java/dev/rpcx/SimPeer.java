package dev.rpcx;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A client or server that is controlled byte by byte, and that keeps to the rules of the wire only as far as the seed
 * wants. It sends frames of every type in any order, in states that do not allow them, many at once, or cut short. It
 * reads everything, only a little, or nothing.
 */
final class SimPeer implements SimNetwork.Socket {
    private static final String[] METHODS = {
        "echo", "inline", "pooled", "later", "large", "hang", "fail", "error", "picky", "note", "brings", "takes",
        "both", "none"
    };

    private static final int MAX_BURST = 40;

    private final SimWorld world;
    private final boolean isServer;

    /** The peer reads at most so many bytes at once. With 0 it never reads anything. */
    private final int readBytes;

    /**
     * If this is true, the peer sends nothing before its preface, as the wire demands. In most cases its settings
     * follow.
     */
    private final boolean polite;

    /**
     * One frame in so many is one that the state does not allow, or is no frame at all. The other frames keep to the
     * wire and do what harm they can.
     */
    private final int rudeEvery;

    /** Holds the ids of requests that are not whole. */
    private final List<Integer> open = new ArrayList<>();

    private final List<Integer> ids = new ArrayList<>();
    private final ByteBuf unsent = Unpooled.buffer();
    private SimNetwork.@Nullable End end;
    private boolean over;
    private int generation;

    SimPeer(SimWorld world, boolean isServer) {
        this.world = world;
        this.isServer = isServer;
        this.readBytes = world.oneIn(4) ? 0 : (int) world.spread(1, 64 * 1024);
        this.polite = !world.oneIn(8);
        this.rudeEvery = isServer ? 1 << world.random.nextInt(8) : world.oneIn(4) ? 2 : 100 << world.random.nextInt(8);
    }

    void begin(SimNetwork.End given) {
        end = given;
        given.socket(this);
        if (polite) {
            unsent.writeBytes(RawPeer.preface());
            if (!world.oneIn(8)) {
                frame(Wire.SETTINGS, 0, settings());
            }
        }
        speak();
    }

    /** Ends the connection, with a reset in half of the cases. */
    void disconnect() {
        over = true;
        SimNetwork.End own = end;
        if (own != null) {
            if (world.oneIn(2)) {
                own.link.reset();
            }
            own.close();
        }
    }

    // ---- called by the network

    @Override
    public void onConnected(SimNetwork.End own) {
        if (over) {
            own.close();
        } else {
            begin(own);
        }
    }

    @Override
    public void onRefused(IOException why) {
        over = true;
    }

    @Override
    public void onReadable() {
        SimNetwork.End own = end;
        if (over || own == null) {
            return;
        }
        try {
            ByteBuf read = Unpooled.buffer();
            int bytes = readBytes == 0 ? 0 : own.read(read, readBytes);
            if (bytes < 0) {
                over = true;
                own.close();
            } else if (bytes > 0) {
                hear(read);
                world.in(world.spread(1_000, TimeUnit.MILLISECONDS.toNanos(5)), this::onReadable);
            }
        } catch (IOException broken) {
            over = true;
            own.close();
        }
    }

    /** Keeps ids that the other side uses, since they do more harm than any that are made up. */
    private void hear(ByteBuf read) {
        if (read.readableBytes() >= 7 && ids.size() < 100) {
            int at = world.random.nextInt(read.readableBytes() - 6);
            ids.add(read.getInt(at + 2));
            if (at == 0) {
                ids.add(read.getInt(2));
            }
        }
    }

    @Override
    public void onWritable() {
        flush();
    }

    // ---- its own speech

    private void speak() {
        if (over) {
            return;
        }
        if (unsent.readableBytes() < 256 * 1024) {
            int burst = (int) world.spread(1, MAX_BURST);
            for (int i = 0; i < burst; i++) {
                if (!world.oneIn(rudeEvery)) {
                    speakInOrder();
                } else if (world.oneIn(8)) {
                    unsent.writeByte(world.random.nextInt(256));
                } else {
                    speakFrame();
                }
            }
        }
        flush();
        world.in(world.spread(1_000, TimeUnit.MILLISECONDS.toNanos(200)), this::speak);
    }

    private void flush() {
        SimNetwork.End own = end;
        if (over || own == null || !unsent.isReadable()) {
            return;
        }
        try {
            own.write(unsent);
            unsent.discardSomeReadBytes();
        } catch (IOException broken) {
            over = true;
            own.close();
        }
    }

    /** Sends what any client may send, but so much of it as no honest client would send. */
    private void speakInOrder() {
        ByteBuf payload = Unpooled.buffer();
        if (isServer) {
            frame(oneOf(Wire.REPLY, Wire.ERROR, Wire.ITEM, Wire.CREDIT), id(), world.oneIn(2) ? body() : payload);
            return;
        }
        switch (world.random.nextInt(8)) {
            case 0, 1, 2 -> request();
            case 3 -> {
                if (!open.isEmpty()) {
                    int at = world.random.nextInt(open.size());
                    boolean last = world.oneIn(3);
                    frame(last ? Wire.PART : Wire.PART | Wire.MORE, open.get(at), body());
                    if (last) {
                        open.remove(at);
                    }
                }
            }
            case 4 -> frame(Wire.CANCEL, id(), payload);
            case 5, 6 -> {
                Varint.write(payload, world.oneIn(4) ? 1_000_000 : world.spread(1, 100));
                frame(Wire.CREDIT, id(), payload);
            }
            case 7 -> {
                if (world.oneIn(10)) {
                    frame(Wire.PING, 0, payload);
                }
            }
            default -> throw new AssertionError();
        }
    }

    private void speakFrame() {
        ByteBuf any = Unpooled.buffer();
        switch (world.random.nextInt(12)) {
            case 0, 1, 2 -> {
                if (isServer) {
                    frame(oneOf(Wire.REPLY, Wire.REPLY | Wire.MORE, Wire.ERROR), id(), body());
                } else {
                    request();
                }
            }
            case 3 -> frame(oneOf(Wire.PART, Wire.PART | Wire.MORE), id(), body());
            case 4 -> frame(Wire.CANCEL, id(), any);
            case 5 -> frame(oneOf(Wire.ITEM, Wire.ITEM | Wire.MORE), id(), body());
            case 6 -> frame(Wire.END, id(), any);
            case 7 -> {
                Varint.write(any, world.oneIn(4) ? Long.MAX_VALUE : world.spread(0, 100));
                frame(Wire.CREDIT, id(), any);
            }
            case 8 -> frame(oneOf(Wire.PING, Wire.PONG), id(), any);
            case 9 -> frame(world.oneIn(20) ? Wire.GOAWAY : Wire.PING, 0, any);
            case 10 -> frame(oneOf(Wire.SETTINGS, Wire.DICTIONARY), 0, world.oneIn(2) ? settings() : body());
            case 11 -> frame(world.random.nextInt(256), id(), body());
            default -> throw new AssertionError();
        }
    }

    private void request() {
        String method = METHODS[world.random.nextInt(METHODS.length)];
        generation++;
        // the peer uses each slot once, until there are no more
        int slot = world.oneIn(rudeEvery) ? world.random.nextInt(1 << 16) : generation % Wire.MAX_SLOTS;
        int id = (generation / Wire.MAX_SLOTS + 1 & 0xFFFF) << 16 | slot;
        ids.add(id);
        // a handler that waits to be cancelled is not called one-way, since nobody would do that
        int head = world.oneIn(5) && !method.equals("hang") ? Wire.NOTICE : Wire.REQUEST;
        ByteBuf payload = RawPeer.prelude("sim", method);
        head |= Wire.NAMED;
        if (world.oneIn(2)) {
            head |= Wire.TIME;
            Varint.write(payload, world.oneIn(8) ? world.spread(0, Long.MAX_VALUE / 4) : world.spread(0, 2_000_000));
        }
        if (world.oneIn(4)) {
            head |= Wire.MORE;
            open.add(id);
        }
        frame(head, id, payload.writeBytes(world.oneIn(4) ? body() : arguments(method)));
    }

    /** Returns arguments that the method takes, in most cases. */
    private ByteBuf arguments(String method) {
        ByteBuf body = RawPeer.text("stranger");
        switch (method) {
            case "echo", "inline", "pooled", "note" -> text(body, "y".repeat((int) world.spread(0, 8_000)));
            case "later" -> number(body, 2, world.spread(0, 300_000));
            case "large" -> number(body, 2, world.spread(0, 500_000));
            case "picky" ->
                body.writeByte(2 << 3 | 2).writeByte(2).writeByte(1 << 3).writeByte(world.random.nextInt(8));
            case "brings" -> {
                number(body, 2, world.spread(0, 1_000));
                number(body, 3, world.spread(0, 20_000));
                number(body, 4, world.random.nextInt(3));
            }
            case "takes", "both" -> body.clear();
            default -> {
                // the method takes one text
            }
        }
        return body;
    }

    private static void text(ByteBuf body, String text) {
        body.writeByte(2 << 3 | 2);
        Varint.write(body, text.length());
        body.writeCharSequence(text, java.nio.charset.StandardCharsets.US_ASCII);
    }

    private static void number(ByteBuf body, int field, long number) {
        body.writeByte(field << 3);
        Varint.write(body, number);
    }

    private int oneOf(int... values) {
        return values[world.random.nextInt(values.length)];
    }

    private int id() {
        return ids.isEmpty() || world.oneIn(16) ? world.random.nextInt() : ids.get(world.random.nextInt(ids.size()));
    }

    private ByteBuf body() {
        if (world.oneIn(2)) {
            return RawPeer.text("z".repeat((int) world.spread(0, 16_000)));
        }
        byte[] bytes = new byte[(int) world.spread(0, 200)];
        world.random.nextBytes(bytes);
        return Unpooled.wrappedBuffer(bytes);
    }

    private ByteBuf settings() {
        ByteBuf settings = Unpooled.buffer();
        if (world.oneIn(2)) {
            number(settings, Settings.MAX_MESSAGE, world.spread(1, Wire.MAX_MESSAGE_BYTES));
        }
        if (world.oneIn(2)) {
            number(settings, Settings.MAX_CALLS, world.spread(1, 5_000));
        }
        if (world.oneIn(2)) {
            number(settings, Settings.DEFAULT_MICROS, world.spread(1, 10_000_000));
        }
        return settings;
    }

    private void frame(int head, int id, ByteBuf payload) {
        int bytes = payload.readableBytes();
        if (bytes > Wire.MAX_PAYLOAD_BYTES && !world.oneIn(8)) {
            payload.writerIndex(payload.readerIndex() + Wire.MAX_PAYLOAD_BYTES);
        }
        unsent.writeBytes(RawPeer.frame(head, id, payload));
    }
}
