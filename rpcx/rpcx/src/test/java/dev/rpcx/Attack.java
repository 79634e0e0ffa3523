package dev.rpcx;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.Token;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.IntFunction;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import org.jspecify.annotations.Nullable;

/**
 * Describes what a hostile peer does to {@link Besieged}: how many connections it makes from how many addresses, and
 * what each connection sends how often per second. Each rate is one that a server on two cores, which its callers
 * share, can take beside some hundreds of calls per second. The purpose is to show what an attack does to memory,
 * places and queues. That a peer with more processors can keep a server's processors busy needs no test. A connection
 * that was ended is made again at the next tick.
 */
enum Attack {
    SLOW_SENDERS("senders of a byte a second", LongForm.of(300, 8_000), 6, 1, Shape.READS, one(Attack::slowly)),
    READERS_THAT_NEVER_READ("readers that never read", 20, 5, 50, Shape.DEAF, Attack::much),
    READERS_THAT_COME_BACK(
            "readers that ask for 128 MB at once, read nothing and come back",
            20,
            5,
            10,
            Shape.DEAF,
            round -> round == 0 ? times(1000, k -> much(k)) : pong()),
    REQUESTS_WITHOUT_END(
            "requests that never end",
            8,
            2,
            50,
            Shape.READS,
            round -> round == 0 ? begun(1 << 16, "plain") : part(1 << 16, 16_000)),
    REQUESTS_THAT_STAND_STILL(
            "requests that stand still, of many addresses",
            200,
            20,
            1,
            Shape.READS,
            round -> round == 0
                    ? times(16, k -> Unpooled.wrappedBuffer(begun(1 << 16 | k, "plain"), part(1 << 16 | k, 16_000)))
                    : pong()),
    REQUESTS_BEGUN_LARGE(
            "begun requests of 300 kB from 24 addresses",
            24,
            24,
            2,
            Shape.READS,
            round -> round == 0
                    ? times(12, k -> begun(1 << 16 | k, "plain"))
                    : round < 20 ? times(12, k -> part(1 << 16 | k, 16_000)) : pong()),
    REPLIES_UNREAD_LARGE("replies of 530 kB that nobody reads", 24, 24, 1, Shape.DEAF, round -> much(round, 530_000)),
    REPLY_PAIRS_UNREAD(
            "pairs of replies of 16.4 kB that nobody reads",
            300,
            5,
            10,
            Shape.DEAF,
            round -> round < 20 ? times(2, k -> much(2 * round + k, 16_400)) : pong()),
    ITEMS_UNREAD_LARGE(
            "stream items of 530 kB that nobody reads",
            24,
            24,
            1,
            Shape.DEAF,
            round -> round == 0 ? times(2, k -> stream(1 << 16 | k, "large", 1L << 40)) : pong()),
    EMPTY_PARTS(
            "parts without a byte",
            2,
            2,
            50,
            Shape.READS,
            round -> round == 0 ? begun(1 << 16, "plain") : times(100, k -> part(1 << 16, 0))),
    CANCELS(
            "calls cancelled at once",
            2,
            2,
            50,
            Shape.READS,
            round -> times(
                    20,
                    k -> Unpooled.wrappedBuffer(
                            call(Wire.REQUEST, id(round, k), "plain", RawPeer.text("x")), cancel(id(round, k))))),
    CANCELS_OF_NOTHING(
            "cancels of calls that never were", 1, 1, 50, Shape.READS, round -> times(200, k -> cancel(id(round, k)))),
    INTERRUPTED_HANDLERS(
            "handlers that wait, interrupted",
            2,
            2,
            50,
            Shape.READS,
            round -> times(
                    5,
                    k -> Unpooled.wrappedBuffer(
                            cancel(id(round - 1, round * 5 - 5 + k)),
                            call(Wire.REQUEST, id(round, round * 5 + k), "pause", Unpooled.EMPTY_BUFFER)))),
    PINGS("more pings than allowed", 2, 2, 50, Shape.READS, round -> times(50, k -> ping())),
    PINGS_UNREAD("pings whose answers nobody reads", 50, 5, 30, Shape.DEAF, round -> times(3, k -> ping())),
    SETTINGS_AGAIN(
            "settings twice", 4, 2, 20, Shape.READS, round -> RawPeer.frame(Wire.SETTINGS, 0, Unpooled.EMPTY_BUFFER)),
    CLASSIC_SILENCE("classic connections of one byte", 300, 5, 1, Shape.CLASSIC, round -> round == 0 ? zeros(1) : null),
    CLASSIC_FRAMES_UNFINISHED(
            "classic frames of 4 MiB that do not end", 100, 5, 10, Shape.CLASSIC, Attack::classicUnfinished),
    CLASSIC_READERS("classic readers that never read", 20, 5, 50, Shape.CLASSIC_DEAF, Attack::classicMuch),
    RANDOM_BYTES("random bytes", 4, 2, 20, Shape.CLASSIC, Attack::random),
    CONNECTIONS("connections that come and go", 20, 2, 50, Shape.READS, round -> round == 0 ? null : Ends.HANG_UP),
    CONNECTIONS_OF_ONE_ADDRESS(
            "silent connections of one address", LongForm.of(300, 2_200), 1, 1, Shape.CLASSIC, round -> null),
    TLS_UNFINISHED(
            "TLS handshakes that stop in their first record",
            200,
            5,
            1,
            Shape.LOCKED,
            round -> round == 0 ? Unpooled.buffer().writeInt(0x16030102).writeInt(0x00010001) : null),
    TLS_HELLOS(
            "TLS handshakes left after the server's signature",
            4,
            2,
            20,
            Shape.LOCKED,
            round -> round == 0 ? hello() : round == 2 ? Ends.HANG_UP : null),
    BAD_TOKENS("calls with a bad token", 2, 2, 50, Shape.READS, one(Attack::badTokens)),
    SHORT_TIMES("calls with 1 µs to 2 ms left", 2, 2, 50, Shape.READS, Attack::shortTimes),
    NOTICES_OF_STREAMS(
            "notices of methods with streams",
            2,
            2,
            50,
            Shape.READS,
            round -> times(
                    5, k -> call(Wire.NOTICE, id(round, k), k % 2 == 0 ? "take" : "endless", Unpooled.EMPTY_BUFFER))),
    NOTICES_THAT_WAIT(
            "notices whose handlers wait, left alone",
            4,
            4,
            25,
            Shape.READS,
            round -> round % 10 == 9
                    ? Ends.HANG_UP
                    : times(5, k -> call(Wire.NOTICE, id(round, k), "pause", Unpooled.EMPTY_BUFFER))),
    STREAMS_UNREAD(
            "streams with endless credit that nobody reads",
            20,
            5,
            10,
            Shape.DEAF,
            round -> round == 0 ? times(8, k -> stream(1 << 16 | k, "endless", 1L << 40)) : pong()),
    CREDIT_FLOOD(
            "credit for one item at a time",
            2,
            2,
            50,
            Shape.READS,
            round -> round == 0 ? stream(1 << 16, "stuck", 1) : times(100, k -> credit(1 << 16, 1))),
    ITEMS_UNFINISHED("items in parts that never end", 20, 5, 10, Shape.READS, Attack::itemsUnfinished),
    PUBLISHERS_BLOCKED(
            "publishers that block",
            4,
            2,
            10,
            Shape.READS,
            round -> times(5, k -> stream(id(round, round * 5 + k), "stuck", 1))),
    SUBSCRIBERS_BLOCKED("subscribers that block", 4, 2, 10, Shape.READS, Attack::subscribersBlocked),
    BROKEN_TYPES(
            "values whose type throws an Error",
            2,
            2,
            50,
            Shape.READS,
            round -> times(5, k -> call(Wire.REQUEST, id(round, k), "broken", RawPeer.text("x")))),
    EQUAL_HASHES("sets of 40 000 equal hashes", 4, 2, 1, Shape.READS, one(Attack::equalHashes)),
    TINY_ELEMENTS("lists of 500 000 elements of 2 bytes", 4, 2, 1, Shape.READS, one(Attack::tinyElements)),
    UNKNOWN_METHODS(
            "methods that are not there",
            2,
            2,
            50,
            Shape.READS,
            round -> times(10, k -> call(Wire.REQUEST, id(round, k), "m" + round + k, Unpooled.EMPTY_BUFFER))),
    LARGE_METADATA("metadata of 8 kB", 2, 2, 50, Shape.READS, Attack::largeMetadata),
    REQUESTS_AFTER_GOAWAY(
            "requests after the client's GOAWAY",
            2,
            2,
            50,
            Shape.READS,
            round -> round == 0
                    ? Unpooled.wrappedBuffer(
                            call(Wire.REQUEST, 1 << 16, "pause", Unpooled.EMPTY_BUFFER),
                            RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER))
                    : times(10, k -> call(Wire.REQUEST, id(round, 1 + k), "plain", RawPeer.text("x")))),
    GOAWAYS("GOAWAYs by the thousand", 20, 5, 20, Shape.READS, round -> goaways()),
    TLS_SLOWLY(
            "TLS handshakes of a byte a second",
            LongForm.of(200, 2_000),
            5,
            1,
            Shape.SECURED,
            one(Attack::helloSlowly)),
    TLS_HALF_OPEN(
            "TLS handshakes that stop behind the server's first answer",
            60,
            5,
            1,
            Shape.SECURED,
            round -> round == 0 ? hello() : null),
    TLS_TINY_RECORDS("TLS handshakes in records of a byte", 4, 2, 20, Shape.SECURED, one(Attack::tinyRecords)),
    TLS_PLAIN("clients without TLS on a port with TLS", 4, 2, 20, Shape.SECURED, round -> RawPeer.preface()),
    TLS_AGAIN(
            "TLS clients that begin a second handshake",
            2,
            2,
            20,
            Shape.TLS,
            round -> sealed(RawTls.HANDSHAKE, new RawTls().hello())),
    TLS_KEYS(
            "TLS clients that change their keys all the time",
            2,
            2,
            50,
            Shape.TLS,
            round -> times(5, k -> sealed(RawTls.HANDSHAKE, RawTls.keyUpdates(1, true)))),
    TLS_KEYS_AT_ONCE(
            "TLS clients that change their keys 3 000 times in one record",
            1,
            1,
            2,
            Shape.TLS,
            round -> sealed(RawTls.HANDSHAKE, RawTls.keyUpdates(3_000, true))),
    TLS_NOTHING(
            "TLS records without a byte",
            2,
            2,
            50,
            Shape.TLS,
            round -> times(50, k -> sealed(RawTls.DATA, Unpooled.EMPTY_BUFFER))),
    TLS_MESSAGES_UNFINISHED(
            "TLS messages behind the handshake that do not end", 40, 5, 5, Shape.TLS, Attack::messageUnfinished),
    TLS_CUT(
            "TLS records that stop before their end",
            40,
            5,
            5,
            Shape.TLS,
            round ->
                    round == 0 ? asItIs(RawTls.plain(RawTls.DATA, zeros(16_000)).writerIndex(16_000)) : null),
    TLS_BEHIND_THE_END(
            "16 kB at a time behind the end of a TLS stream",
            4,
            2,
            50,
            Shape.TLS,
            round -> round == 0
                    ? sealed(RawTls.ALERT, Unpooled.buffer().writeByte(1).writeByte(0))
                    : sealed(RawTls.DATA, zeros(16_000))),
    TLS_READERS("TLS readers that never read", 4, 2, 10, Shape.TLS_DEAF, round -> sealed(RawTls.DATA, much(round)));

    /** How a connection begins, and whether it reads. */
    enum Shape {
        READS,
        DEAF,
        CLASSIC,
        CLASSIC_DEAF,

        /** The connection goes to the port that requires certificates, and the script sends all its bytes. */
        LOCKED,

        /** The connection goes to the port with TLS that accepts every client, and the script sends all its bytes. */
        SECURED,

        /**
         * The connection goes to the same port, and begins with a handshake and a preface. The bytes of the script are
         * sealed: see {@link #sealed}.
         */
        TLS,
        TLS_DEAF;

        boolean isSecured() {
            return this == SECURED || isSealed();
        }

        boolean isSealed() {
            return this == TLS || this == TLS_DEAF;
        }

        boolean begins() {
            return this == READS || this == DEAF;
        }

        boolean reads() {
            return this != DEAF && this != CLASSIC_DEAF && this != TLS_DEAF;
        }
    }

    /** Holds a constant outside the enum, since the constants of an enum cannot name its fields. */
    static final class Ends {
        /** A script returns this to have the connection closed and made anew. */
        static final ByteBuf HANG_UP = Unpooled.buffer(0);

        private Ends() {}
    }

    final String title;
    final int connections;
    final int addresses;
    final int perSecond;
    final Shape shape;
    private final IntFunction<@Nullable ByteBuf> script;

    /** @param script what a connection sends at its tick of this number, from 0; null for nothing */
    Attack(
            String title,
            int connections,
            int addresses,
            int perSecond,
            Shape shape,
            IntFunction<@Nullable ByteBuf> script) {
        this.title = title;
        this.connections = connections;
        this.addresses = addresses;
        this.perSecond = perSecond;
        this.shape = shape;
        this.script = script;
    }

    /**
     * Returns what a connection sends at its tick of this number, or null if it sends nothing. For
     * {@link Ends#HANG_UP}, the attacker closes the connection.
     */
    @Nullable
    ByteBuf next(int round) {
        ByteBuf bytes = script.apply(round);
        if (round > 0 || !shape.begins() || bytes == Ends.HANG_UP) {
            return bytes;
        }
        return bytes == null ? RawPeer.preface() : Unpooled.wrappedBuffer(RawPeer.preface(), bytes);
    }

    private static final int SLOTS = 4000;

    private static final int AS_IT_IS = 0;

    /** Returns the type and the content of a record, for the script of a connection whose handshake is done. */
    private static ByteBuf sealed(int type, ByteBuf content) {
        return Unpooled.buffer()
                .writeByte(type)
                .writeMedium(content.readableBytes())
                .writeBytes(content.duplicate());
    }

    /** Returns the same for bytes that are no record, or only a part of one. */
    private static ByteBuf asItIs(ByteBuf bytes) {
        return sealed(AS_IT_IS, bytes);
    }

    /** Returns what such a script has returned, as bytes to send on this connection. */
    static ByteBuf seal(RawTls tls, ByteBuf said) throws java.security.GeneralSecurityException {
        ByteBuf all = Unpooled.buffer();
        while (said.isReadable()) {
            int type = said.readUnsignedByte();
            ByteBuf content = said.readSlice(said.readUnsignedMedium());
            all.writeBytes(type == AS_IT_IS ? content : tls.seal(type, content));
        }
        return all;
    }

    /** Returns a script that makes its bytes only once, because they are the same for each connection. */
    private static IntFunction<@Nullable ByteBuf> one(java.util.function.Supplier<IntFunction<@Nullable ByteBuf>> of) {
        java.util.concurrent.atomic.AtomicReference<@Nullable IntFunction<@Nullable ByteBuf>> made =
                new java.util.concurrent.atomic.AtomicReference<>();
        return round -> {
            IntFunction<@Nullable ByteBuf> script = made.get();
            if (script == null) {
                script = of.get();
                made.set(script);
            }
            return script.apply(round);
        };
    }

    /** Returns a call id, whose generation changes with each round. */
    private static int id(int round, int k) {
        return (1 + Math.floorMod(round, 60_000)) << 16 | Math.floorMod(k, SLOTS);
    }

    private static ByteBuf times(int count, IntFunction<ByteBuf> each) {
        ByteBuf all = Unpooled.buffer();
        for (int k = 0; k < count; k++) {
            all.writeBytes(each.apply(k));
        }
        return all;
    }

    private static ByteBuf call(int head, int id, String method, ByteBuf behindNames) {
        return RawPeer.frame(
                head | Wire.NAMED, id, RawPeer.prelude("besieged", method).writeBytes(behindNames));
    }

    private static ByteBuf begun(int id, String method) {
        return call(Wire.REQUEST | Wire.MORE, id, method, Unpooled.EMPTY_BUFFER);
    }

    private static ByteBuf zeros(int bytes) {
        return Unpooled.wrappedBuffer(new byte[bytes]);
    }

    private static ByteBuf part(int id, int bytes) {
        return RawPeer.frame(Wire.PART | Wire.MORE, id, zeros(bytes));
    }

    private static ByteBuf cancel(int id) {
        return RawPeer.frame(Wire.CANCEL, id, Unpooled.EMPTY_BUFFER);
    }

    private static ByteBuf goaways() {
        int frames = 10_000;
        byte[] one = ByteBufUtil.getBytes(RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER));
        ByteBuf all = Unpooled.buffer(frames * one.length);
        for (int i = 0; i < frames; i++) {
            all.writeBytes(one);
        }
        return all;
    }

    private static ByteBuf ping() {
        return RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER);
    }

    /** Returns a sign of life that asks for nothing. */
    private static ByteBuf pong() {
        return RawPeer.frame(Wire.PONG, 7, Unpooled.EMPTY_BUFFER);
    }

    private static ByteBuf number(long value) {
        ByteBuf number = Unpooled.buffer();
        Varint.write(number, value);
        return number;
    }

    private static ByteBuf credit(int id, long items) {
        return RawPeer.frame(Wire.CREDIT, id, number(items));
    }

    private static ByteBuf stream(int id, String method, long items) {
        return Unpooled.wrappedBuffer(call(Wire.REQUEST, id, method, Unpooled.EMPTY_BUFFER), credit(id, items));
    }

    /** Returns a request in as many frames as it takes. */
    private static ByteBuf whole(int id, String method, ByteBuf body) {
        ByteBuf all = Unpooled.buffer().writeBytes(begun(id, method));
        while (body.readableBytes() > 16_000) {
            all.writeBytes(RawPeer.frame(Wire.PART | Wire.MORE, id, body.readSlice(16_000)));
        }
        return all.writeBytes(RawPeer.frame(Wire.PART, id, body));
    }

    // ---- the scripts of more than a line

    private static IntFunction<@Nullable ByteBuf> slowly() {
        byte[] request = ByteBufUtil.getBytes(
                RawPeer.preface().writeBytes(RawPeer.request(1 << 16, "besieged", "plain", "x".repeat(16_000))));
        // the preface has been sent whole at the first tick
        return round -> Unpooled.wrappedBuffer(request, (Wire.PREFACE_BYTES + round) % request.length, 1);
    }

    private static ByteBuf much(int round) {
        return much(round, 128 << 10);
    }

    private static ByteBuf much(int round, int bytes) {
        return call(
                Wire.REQUEST,
                id(round, round),
                "much",
                Unpooled.buffer().writeByte(1 << 3).writeBytes(number(bytes)));
    }

    private static @Nullable ByteBuf classicUnfinished(int round) {
        if (round == 0) {
            return Unpooled.buffer().writeInt(4 << 20).writeShort(0x0801).writeZero(200_000);
        }
        // the parts stop 20 bytes before the end of the frame, and this end never comes
        int rest = Math.min(60_000, (4 << 20) - 20 - 200_002 - (round - 1) * 60_000);
        return rest > 0 ? zeros(rest) : null;
    }

    private static ByteBuf classicMuch(int round) {
        byte[] number = ByteBufUtil.getBytes(Unpooled.buffer().writeByte(1 << 3).writeBytes(number(128 << 10)));
        return ClassicRequests.of(1 + round, "besieged", "much", List.of("int"), List.of(number));
    }

    private static ByteBuf random(int round) {
        byte[] some = new byte[1024];
        new Random(round).nextBytes(some);
        return Unpooled.wrappedBuffer(some);
    }

    /** Returns the first message of a TLS client. The answer costs the server a signature. */
    private static ByteBuf hello() {
        try {
            SSLEngine engine = SSLContext.getDefault().createSSLEngine();
            engine.setUseClientMode(true);
            ByteBuffer out = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
            engine.wrap(ByteBuffer.allocate(0), out);
            return Unpooled.wrappedBuffer(out.flip());
        } catch (java.security.GeneralSecurityException | javax.net.ssl.SSLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static IntFunction<@Nullable ByteBuf> helloSlowly() {
        byte[] record = ByteBufUtil.getBytes(RawTls.plain(RawTls.HANDSHAKE, new RawTls().hello()));
        return round -> round < record.length ? Unpooled.wrappedBuffer(record, round, 1) : null;
    }

    private static IntFunction<@Nullable ByteBuf> tinyRecords() {
        ByteBuf message = Unpooled.buffer().writeByte(1).writeMedium(32_000).writeZero(32_000);
        byte[] all = ByteBufUtil.getBytes(RawTls.plain(RawTls.HANDSHAKE, message.readSlice(16_000))
                .writeBytes(RawTls.plain(RawTls.HANDSHAKE, message, 1)));
        return round -> round == 0 ? Unpooled.wrappedBuffer(all) : null;
    }

    private static @Nullable ByteBuf messageUnfinished(int round) {
        return switch (round) {
            case 0 ->
                sealed(
                        RawTls.HANDSHAKE,
                        Unpooled.buffer()
                                .writeByte(RawTls.NEW_TICKET)
                                .writeMedium(30_000)
                                .writeZero(4_000));
            case 1 -> sealed(RawTls.HANDSHAKE, zeros(2_000));
            default -> null;
        };
    }

    private static ByteBuf withToken(int id, String token) {
        ByteBuf behind = Unpooled.buffer();
        MetadataFields.write(behind, Metadata.EMPTY.with("rpcx-token", token));
        return call(Wire.REQUEST | Wire.METADATA, id, "hello", behind.writeBytes(RawPeer.text("x")));
    }

    private static IntFunction<@Nullable ByteBuf> badTokens() {
        SecretKeySpec key = Token.key("another secret of more than sixteen bytes".getBytes(StandardCharsets.US_ASCII));
        List<String> tokens = new ArrayList<>();
        for (String signer : List.of(Besieged.NAME, "nobody")) {
            tokens.add(new Token(System.currentTimeMillis() + 3_600_000, new byte[16], signer, null, List.of())
                    .signed(key, "besieged", "hello"));
        }
        tokens.add("no token");
        return round -> times(10, k -> withToken(id(round, k), tokens.get(k % tokens.size())));
    }

    private static ByteBuf shortTimes(int round) {
        return times(20, k -> {
            ByteBuf behind = number(1 + 105L * k).writeBytes(RawPeer.text("x"));
            return call(Wire.REQUEST | Wire.TIME, id(round, k), "plain", behind);
        });
    }

    private static @Nullable ByteBuf itemsUnfinished(int round) {
        return switch (round) {
            case 0 -> times(8, k -> call(Wire.REQUEST, 1 << 16 | k, "take", Unpooled.EMPTY_BUFFER));
            case 1, 2 -> null;
            case 3 -> times(8, k -> RawPeer.frame(Wire.ITEM | Wire.MORE, 1 << 16 | k, zeros(16_000)));
            default -> times(8, k -> part(1 << 16 | k, 16_000));
        };
    }

    private static ByteBuf subscribersBlocked(int round) {
        // the item of a call is sent three ticks later, when its stream has credit
        ByteBuf item = round < 3
                ? Unpooled.EMPTY_BUFFER
                : RawPeer.frame(Wire.ITEM, id(round - 3, round - 3), RawPeer.text("x"));
        return Unpooled.wrappedBuffer(item, call(Wire.REQUEST, id(round, round), "takeSlowly", Unpooled.EMPTY_BUFFER));
    }

    private static IntFunction<@Nullable ByteBuf> equalHashes() {
        ByteBuf body = Unpooled.buffer();
        for (int i = 1; i <= 40_000; i++) {
            ByteBuf element = Unpooled.buffer().writeByte(1 << 3).writeBytes(number(i));
            body.writeByte(1 << 3 | 2).writeByte(element.readableBytes()).writeBytes(element);
        }
        return round -> whole(id(round, round), "equal", body.duplicate());
    }

    private static IntFunction<@Nullable ByteBuf> tinyElements() {
        ByteBuf body = Unpooled.buffer();
        for (int i = 0; i < 500_000; i++) {
            body.writeByte(1 << 3 | 2).writeByte(0);
        }
        return round -> whole(id(round, round), "tiny", body.duplicate());
    }

    private static ByteBuf largeMetadata(int round) {
        ByteBuf behind = Unpooled.buffer();
        MetadataFields.write(behind, Metadata.EMPTY.with("name", "x".repeat(8000)));
        behind.writeBytes(RawPeer.text("x"));
        return times(5, k -> call(Wire.REQUEST | Wire.METADATA, id(round, k), "plain", behind.duplicate()));
    }
}
