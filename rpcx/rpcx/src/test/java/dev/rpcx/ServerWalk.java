package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Brings a raw client's connection into a state of {@code rpcx/spec/states.md}, sends a frame, and ends the connection
 * as the next state allows.
 */
public final class ServerWalk {
    private static final int MILLIS = Integer.getInteger("rpcx.walk.millis", 10_000);
    public static final int NEXT_GENERATION = 1 << 16;
    public static final int ID = NEXT_GENERATION + 1;
    public static final int HOLDER = NEXT_GENERATION;
    public static final int BARRIER = 0x7777_7777;
    public static final long HOUR_MICROS = TimeUnit.HOURS.toMicros(1);
    public static final String TEXT = "HelloWorld";
    public static final int ITEM = 300;
    public static final byte[] ITEM_BODY = {8, (byte) 0xAC, 2};

    private static final Set<String> CONNECTION_STATES =
            Set.of("open", "set", "client draining", "server draining", "both draining");
    private static final AtomicInteger GATES = new AtomicInteger();

    /** Holds what has been sent of a call of a walk, and the gate of the call's handler. */
    private final class Call {
        final int id;
        final boolean notice;
        final String name = "gate " + GATES.incrementAndGet();
        final WalkedService.Gate gate;
        final byte[] body;
        final List<Integer> items = new ArrayList<>();
        int sent;
        int itemSent;
        int seen;

        Call(int id, boolean notice, boolean blocks, byte[] body) {
            this.id = id;
            this.notice = notice;
            this.body = body;
            gate = service.gate(name, blocks);
        }
    }

    public final WalkedService service;
    public final String kind;
    public final String method;
    public final boolean takes;
    public final boolean brings;
    public final RawPeer peer;
    public final List<Call> calls = new ArrayList<>();
    public Call call;
    public Call holder;
    public boolean clientDrains;

    public ServerWalk(WalkedService service, int port, String kind, String place, boolean set) throws IOException {
        this.service = service;
        this.kind = kind;
        takes = kind.equals("takes") || kind.equals("both");
        brings = kind.equals("brings") || kind.equals("both");
        method = (kind.equals("notice") ? "unary" : kind) + place;
        peer = new RawPeer(port);
        peer.socket.setSoTimeout(MILLIS);
        peer.send(RawPeer.preface());
        peer.readPreface();
        while (peer.read().head() != Wire.DICTIONARY) {}
        if (set) {
            peer.send(RawPeer.frame(Wire.SETTINGS, 0, Unpooled.EMPTY_BUFFER));
        }
    }

    /** Begins another call, so that the connection stays open when one side has announced that it drains. */
    public void hold() throws Exception {
        holder = new Call(HOLDER, false, false, ByteBufUtil.getBytes(RawPeer.text(TEXT)));
        calls.add(holder);
        peer.send(first(holder, "unaryElsewhere", false));
        join(holder.gate.begun);
    }

    private Call newCall(int id, boolean notice, boolean blocks) {
        byte[] body = takes ? new byte[0] : ByteBufUtil.getBytes(RawPeer.text(TEXT));
        Call made = new Call(id, notice, blocks, body);
        calls.add(made);
        return made;
    }

    private ByteBuf first(Call of, String called, boolean more) {
        ByteBuf prelude = RawPeer.prelude("walked", called);
        Varint.write(prelude, HOUR_MICROS);
        MetadataFields.write(prelude, Metadata.EMPTY.with(WalkedService.GATE, of.name));
        of.sent = more ? Math.min(4, of.body.length) : of.body.length;
        prelude.writeBytes(of.body, 0, of.sent);
        int head = (of.notice ? Wire.NOTICE : Wire.REQUEST) | Wire.NAMED | Wire.TIME | Wire.METADATA;
        return RawPeer.frame(more ? head | Wire.MORE : head, of.id, prelude);
    }

    public void drive(String state) throws Exception {
        if (state.equals("none")) {
            return;
        }
        boolean notice = kind.equals("notice");
        call = newCall(ID, notice, state.equals("running"));
        peer.send(first(call, method, state.equals("begun")));
        if (state.equals("begun")) {
            return;
        }
        join(call.gate.begun);
        if (notice) {
            answer("REPLY", call);
            return;
        }
        if (brings && !state.equals("running")) {
            join(call.gate.subscribed);
        }
        switch (state) {
            case "running", "waiting" -> {}
            case "credited" -> credit();
            case "item" -> {
                credit();
                peer.send(itemBegin());
            }
            case "ended" -> {
                credit();
                peer.send(frame(Wire.END));
            }
            case "flowing" -> {
                peer.send(frame(Wire.CREDIT, 1));
                answer("ITEM", call);
            }
            case "over" -> finish("waiting");
            default -> throw new IllegalArgumentException(state);
        }
    }

    private void credit() throws Exception {
        join(call.gate.incoming).request(1);
        answer("CREDIT", call);
    }

    private ByteBuf itemBegin() {
        call.itemSent = 1;
        return RawPeer.frame(Wire.ITEM | Wire.MORE, call.id, Unpooled.wrappedBuffer(ITEM_BODY, 0, 1));
    }

    private ByteBuf frame(int head, int... payload) {
        ByteBuf bytes = Unpooled.buffer();
        for (int b : payload) {
            bytes.writeByte(b);
        }
        return RawPeer.frame(head, call == null ? ID : call.id, bytes);
    }

    /** Returns the bytes of a row. If the row begins a call, this call becomes the walk's call. */
    public ByteBuf row(String row, String state) {
        if (row.endsWith(StateTables.UNREADABLE)) {
            String readable = row.substring(0, row.length() - StateTables.UNREADABLE.length());
            return RawPeer.unreadable(row(readable, state));
        }
        return switch (row) {
            case "REQUEST", "REQUEST MORE", "REQUEST next", "REQUEST next MORE" -> firstOf(row, false);
            case "NOTICE", "NOTICE MORE", "NOTICE next", "NOTICE next MORE" -> firstOf(row, true);
            case "PART" -> part(state, false, Integer.MAX_VALUE);
            case "PART MORE" -> part(state, true, 1);
            case "PART empty MORE" -> part(state, true, 0);
            case "CANCEL" -> frame(Wire.CANCEL);
            case "ITEM" -> RawPeer.frame(Wire.ITEM, call == null ? ID : call.id, Unpooled.wrappedBuffer(ITEM_BODY));
            case "ITEM MORE" -> call == null ? frame(Wire.ITEM | Wire.MORE, 8) : itemBegin();
            case "END" -> frame(Wire.END);
            case "CREDIT" -> frame(Wire.CREDIT, 1);
            case "CREDIT 0" -> frame(Wire.CREDIT, 0);
            case "CREDIT empty" -> frame(Wire.CREDIT);
            case "SETTINGS" -> RawPeer.frame(Wire.SETTINGS, 0, Unpooled.EMPTY_BUFFER);
            case "DICTIONARY" -> RawPeer.frame(Wire.DICTIONARY, 0, RawPeer.text("not for you"));
            case "DICTIONARY MORE" -> RawPeer.frame(Wire.DICTIONARY | Wire.MORE, 0, Unpooled.EMPTY_BUFFER);
            case "REPLY" -> frame(Wire.REPLY, 1);
            case "REPLY MORE" -> frame(Wire.REPLY | Wire.MORE, 1);
            case "ERROR" -> frame(Wire.ERROR, 8, 6);
            case "ERROR id 0" -> RawPeer.frame(Wire.ERROR, 0, Unpooled.wrappedBuffer(new byte[] {8, 10}));
            case "GOAWAY" -> RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER);
            case "PING" -> frame(Wire.PING);
            case "PONG" -> frame(Wire.PONG);
            case "type 0" -> frame(0, 1, 2, 3);
            case "SCHEMA" -> RawPeer.frame(Wire.SCHEMA, 0, Unpooled.wrappedBuffer(new byte[] {10, 1, 1}));
            case "length 4" -> Unpooled.wrappedBuffer(new byte[] {4, 0, 0, 0, 0});
            case "end of the stream" -> Unpooled.EMPTY_BUFFER;
            default -> throw new IllegalArgumentException("row " + row);
        };
    }

    private ByteBuf firstOf(String row, boolean notice) {
        int id = call == null ? ID : call.id;
        call = newCall(row.contains("next") ? id + NEXT_GENERATION : id, notice, false);
        return first(call, method, row.contains("MORE"));
    }

    private ByteBuf part(String state, boolean more, int most) {
        ByteBuf payload = Unpooled.buffer();
        if (state.equals("begun")) {
            int bytes = Math.min(most, call.body.length - call.sent);
            payload.writeBytes(call.body, call.sent, bytes);
            call.sent += bytes;
        } else if (state.equals("item")) {
            int bytes = Math.min(most, ITEM_BODY.length - call.itemSent);
            payload.writeBytes(ITEM_BODY, call.itemSent, bytes);
            call.itemSent += bytes;
        } else {
            payload.writeZero(Math.min(most, 3));
        }
        return RawPeer.frame(more ? Wire.PART | Wire.MORE : Wire.PART, call == null ? ID : call.id, payload);
    }

    /** Sends the row's bytes and sees the reaction. @return the state that follows */
    public String act(String row, ByteBuf bytes, String state, StateTables.Reaction expected) throws Exception {
        if (expected.endsConnection()) {
            peer.send(bytes);
            if (row.equals("end of the stream")) {
                peer.socket.shutdownOutput();
            }
            expectEnd(expected.answer());
            return "gone";
        }
        ByteBuf other = expected.passesOver() ? RawPeer.unreadable(bytes) : Unpooled.EMPTY_BUFFER;
        peer.send(Unpooled.wrappedBuffer(bytes, other, ping()));
        if (row.equals("ITEM") && !expected.next().isEmpty()) {
            call.items.add(ITEM);
        }
        if (row.equals("PART") && state.equals("item")) {
            call.items.add(ITEM);
        }
        boolean answered = expected.answer().isEmpty();
        boolean ponged = false;
        while (!answered || !ponged) {
            RawPeer.Frame frame = peer.readAnswer();
            if (frame.type() == Wire.PONG && frame.id() == BARRIER) {
                ponged = true;
            } else if (!answered) {
                check(frame, expected.answer(), row.equals("PING") || row.equals("SCHEMA") ? null : call);
                answered = true;
            } else {
                throw new AssertionError("unexpected " + told(frame));
            }
        }
        if (row.equals("GOAWAY")) {
            clientDrains = true;
        }
        if (expected.answer().startsWith("ERROR")) {
            call.gate.open();
            if (expected.answer().endsWith("not")) {
                assertThat(call.gate.runs).as("runs").hasValue(0);
            }
        }
        boolean stays = expected.next().isEmpty() || CONNECTION_STATES.contains(expected.next());
        return stays ? state : expected.next();
    }

    public void expectEnd(String how) throws IOException {
        if (how.equals("ends")) {
            RawPeer.Frame error = peer.readAnswer();
            check(error, "ERROR 10 maybe", null);
            assertThat(error.id()).isZero();
        }
        byte[] rest = peer.readToEnd();
        assertThat(ByteBufUtil.hexDump(rest)).as("bytes before the end").isEmpty();
    }

    private void check(RawPeer.Frame frame, String expected, Call of) {
        String[] words = expected.split(" ");
        int type = type(expected);
        assertThat(frame.head())
                .as(() -> told(frame) + " where " + expected + " is due")
                .isEqualTo(type);
        if (of != null) {
            assertThat(frame.id()).as("id of " + expected).isEqualTo(of.id);
        }
        if (type == Wire.ITEM) {
            assertThat(frame.payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text(WalkedService.item(of.seen++))));
        } else if (type == Wire.ERROR) {
            RPCXException error = WireError.read(Unpooled.wrappedBuffer(frame.payload()));
            assertThat(WireError.number(error.code()) + " " + executed(error)).isEqualTo(words[1] + " " + words[2]);
        }
    }

    private RawPeer.Frame answer(String type, Call of) throws IOException {
        while (true) {
            RawPeer.Frame frame = peer.readAnswer();
            if (frame.type() == Wire.ITEM && !type.equals("ITEM") && frame.id() == of.id) {
                check(frame, "ITEM", of);
                continue;
            }
            check(frame, type, of);
            return frame;
        }
    }

    private ByteBuf ping() {
        return RawPeer.frame(Wire.PING, BARRIER, Unpooled.EMPTY_BUFFER);
    }

    /** Brings the call to its good end, which shows that nothing before has hurt it. */
    public void finish(String state) throws Exception {
        Call of = call;
        String at = state;
        if (at.equals("none") || of == null) {
            return;
        }
        if (at.equals("over")) {
            of.gate.open();
            return;
        }
        if (at.equals("begun")) {
            peer.send(part(at, false, Integer.MAX_VALUE));
            at = "waiting";
            if (of.notice) {
                answer("REPLY", of);
                of.gate.open();
                join(of.gate.ended);
                return;
            }
        }
        if (at.equals("running")) {
            of.gate.mayReturn.countDown();
            at = "waiting";
        }
        if (at.equals("item")) {
            peer.send(part(at, false, Integer.MAX_VALUE));
            of.items.add(ITEM);
            at = "waiting";
        }
        join(of.gate.begun);
        if (takes && !of.gate.allReceived.isDone()) {
            if (!at.equals("ended")) {
                if (!at.equals("credited")) {
                    credit();
                }
                peer.send(row("ITEM", at));
                of.items.add(ITEM);
                peer.send(frame(Wire.END));
            }
            join(of.gate.allReceived);
            assertThat(of.gate.received).isEqualTo(of.items);
        }
        of.gate.open();
        RawPeer.Frame reply;
        if (brings) {
            peer.send(frame(Wire.CREDIT, 100));
            reply = answer("REPLY", of);
            assertThat(of.seen).as("items").isEqualTo(WalkedService.ITEMS);
            assertThat(reply.payload()).isEmpty();
        } else {
            reply = answer("REPLY", of);
            if (takes) {
                assertThat(reply.payload()).isEqualTo(sum(of.items.size()));
            } else {
                assertThat(reply.payload()).isEqualTo(of.body);
            }
        }
        assertThat(of.gate.runs).as("runs").hasValue(1);
    }

    /** A number that cannot be null is not written where it is 0. */
    private static byte[] sum(int items) {
        if (items == 0) {
            return new byte[0];
        }
        ByteBuf body = Unpooled.buffer().writeByte(8);
        Varint.write(body, (long) ITEM * items);
        return ByteBufUtil.getBytes(body);
    }

    /** Brings everything that the walk has begun to its end. */
    public void endWalk(String state) throws Exception {
        if (!state.equals("gone")) {
            finish(state);
            if (holder != null) {
                holder.gate.open();
                answer("REPLY", holder);
            }
            if (clientDrains) {
                expectEnd("closes");
            } else {
                peer.send(ping());
                RawPeer.Frame pong = peer.readAnswer();
                assertThat(pong.type()).as(() -> told(pong)).isEqualTo(Wire.PONG);
            }
        }
    }

    public void close() throws IOException {
        for (Call begun : calls) {
            begun.gate.open();
            service.forget(begun.name);
        }
        peer.close();
    }

    public static <T> T join(CompletableFuture<T> future) throws Exception {
        return future.get(MILLIS, TimeUnit.MILLISECONDS);
    }

    private static String executed(RPCXException error) {
        return switch (error.executed()) {
            case NOT_EXECUTED -> "not";
            case EXECUTED -> "yes";
            case MAYBE -> "maybe";
        };
    }

    public static String told(RawPeer.Frame frame) {
        String type = frame.type() == Wire.ERROR
                ? "ERROR " + WireError.read(Unpooled.wrappedBuffer(frame.payload()))
                : "frame of head " + Integer.toHexString(frame.head());
        return type + " for " + Integer.toHexString(frame.id());
    }

    /** Returns the number of a row's type. */
    public static int type(String row) {
        return switch (row.split(" ")[0]) {
            case "SETTINGS" -> Wire.SETTINGS;
            case "SCHEMA" -> Wire.SCHEMA;
            case "CANCEL" -> Wire.CANCEL;
            case "END" -> Wire.END;
            case "CREDIT" -> Wire.CREDIT;
            case "GOAWAY" -> Wire.GOAWAY;
            case "PING" -> Wire.PING;
            case "PONG" -> Wire.PONG;
            case "ERROR" -> Wire.ERROR;
            case "REPLY" -> Wire.REPLY;
            case "ITEM" -> Wire.ITEM;
            default -> throw new IllegalArgumentException(row);
        };
    }
}
