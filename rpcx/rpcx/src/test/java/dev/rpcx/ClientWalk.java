package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;

/**
 * Brings a client's connection into a state of {@code rpcx/spec/states.md}, sends it a frame, and ends it as the next
 * state allows. This class writes the bytes of the server. The call in slot 0 keeps the connection open, and the
 * call in slot 1 is the one that is tested.
 */
final class ClientWalk implements AutoCloseable {
    private static final int MILLIS = Integer.getInteger("rpcx.walk.millis", 10_000);
    private static final int NEXT_GENERATION = 1 << 16;
    private static final int ID = NEXT_GENERATION + 1;
    private static final int BARRIER = 0x7777_7777;
    private static final Set<Integer> PORTS = ConcurrentHashMap.newKeySet();
    private static final byte[] REPLY = ByteBufUtil.getBytes(RawPeer.text("HelloWorld"));
    private static final byte[] NUMBER_REPLY = {8, (byte) 0xAC, 2};

    @RPCXClient(remoteServerName = "walked")
    interface Calls {
        CompletableFuture<String> unary(String text);

        String blocking(String text);

        @OneWay
        void notice(String text);

        Flow.Publisher<String> brings(String text);

        CompletableFuture<Integer> takes(Flow.Publisher<Integer> items);

        Flow.Publisher<String> both(Flow.Publisher<Integer> items);
    }

    /** Keeps what the caller of a stream sees. */
    private static final class Seen implements Flow.Subscriber<String> {
        final CompletableFuture<Flow.Subscription> begun = new CompletableFuture<>();
        final CompletableFuture<Void> end = new CompletableFuture<>();
        final List<String> items = Collections.synchronizedList(new ArrayList<>());

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            begun.complete(subscription);
        }

        @Override
        public void onNext(String item) {
            items.add(item);
        }

        @Override
        public void onError(Throwable thrown) {
            end.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            end.complete(null);
        }
    }

    /** Sends items to the server, as many as it gives credit for, until the upload is ended. */
    private static final class Upload implements Flow.Publisher<Integer> {
        private Flow.Subscriber<? super Integer> to;

        @Override
        public synchronized void subscribe(Flow.Subscriber<? super Integer> subscriber) {
            to = subscriber;
            subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    for (long i = 0; i < items; i++) {
                        subscriber.onNext(300);
                    }
                }

                @Override
                public void cancel() {}
            });
        }

        synchronized void end() {
            to.onComplete();
        }
    }

    private final String kind;
    private final boolean brings;
    private final boolean takes;
    private final ServerSocket listening;
    private final Calls calls;
    private final CompletableFuture<String> holder;
    private final RawServer.Peer peer;
    private int holderId;
    private int partsOwed;
    private boolean serverDrains;

    private CompletableFuture<?> outcome;
    private Thread blocked;
    private Seen seen;
    private final Upload upload = new Upload();
    private int replySent;
    private int itemsSent;
    private boolean ended;

    ClientWalk(Client client, String kind) throws IOException {
        this.kind = kind;
        brings = kind.equals("brings") || kind.equals("both");
        takes = kind.equals("takes") || kind.equals("both");
        listening = listen();
        calls = client.create(Calls.class, "127.0.0.1", listening.getLocalPort());
        holder = calls.unary("holder");
        peer = new RawServer.Peer(listening.accept());
        peer.timeout(MILLIS);
        peer.write(RawPeer.preface());
    }

    /**
     * Listens on a port that no walk has had. A request that a walk could not send goes to the next connection to the
     * same port, which would otherwise be that of another walk.
     */
    private static ServerSocket listen() throws IOException {
        while (true) {
            ServerSocket socket = new ServerSocket();
            // the buffer is small, so that a large request soon waits
            socket.setReceiveBufferSize(4096);
            socket.setSoTimeout(MILLIS);
            socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            if (PORTS.add(socket.getLocalPort())) {
                return socket;
            }
            socket.close();
        }
    }

    /** Brings the connection into its state, and then the call. */
    void drive(String connection, String state) throws Exception {
        if (!connection.equals("open")) {
            peer.send(Wire.SETTINGS, 0);
            peer.send(connection.equals("more") ? Wire.DICTIONARY | Wire.MORE : Wire.DICTIONARY, 0);
        }
        assertThat(peer.read().type()).isEqualTo(Wire.SETTINGS);
        if (connection.equals("open") || connection.equals("more")) {
            return;
        }
        hold();
        drive(state);
        if (connection.equals("draining")) {
            peer.send(Wire.GOAWAY, 0);
            answer("GOAWAY", 0);
            serverDrains = true;
        }
    }

    private void hold() throws IOException {
        holderId = peer.read().id();
        assertThat(holderId).isEqualTo(NEXT_GENERATION);
    }

    private void drive(String state) throws Exception {
        if (state.equals("none")) {
            return;
        }
        begin(state.equals("sending") ? "x".repeat(1_000_000) : "text");
        RawPeer.Frame request = peer.read();
        assertThat(request.id()).isEqualTo(ID);
        assertThat(request.type()).isEqualTo(kind.equals("notice") ? Wire.NOTICE : Wire.REQUEST);
        partsOwed = (request.head() & Wire.MORE) == 0 ? 0 : 1;
        if (state.equals("credited") || brings && state.startsWith("given up") || state.equals("item")) {
            credit();
        }
        if (state.endsWith("item")) {
            peer.write(itemBegin());
        }
        if (state.endsWith("reply")) {
            peer.write(replyBegin());
        }
        if (state.startsWith("given up")) {
            giveUp();
            answer("CANCEL", ID);
        }
        if (state.equals("ended")) {
            upload.end();
            ended = true;
            answer("END", ID);
        }
        if (state.equals("over")) {
            finish("sent");
        }
    }

    private void begin(String text) throws Exception {
        switch (kind) {
            case "unary" -> outcome = calls.unary(text);
            case "blocking" -> {
                CompletableFuture<String> result = new CompletableFuture<>();
                outcome = result;
                blocked = new Thread(() -> {
                    try {
                        result.complete(calls.blocking(text));
                    } catch (Throwable e) {
                        result.completeExceptionally(e);
                    }
                });
                blocked.start();
            }
            case "notice" -> calls.notice(text);
            case "takes" -> outcome = calls.takes(upload);
            case "brings", "both" -> {
                seen = new Seen();
                outcome = seen.end;
                (kind.equals("both") ? calls.both(upload) : calls.brings(text)).subscribe(seen);
                join(seen.begun);
            }
            default -> throw new IllegalArgumentException(kind);
        }
    }

    private void giveUp() throws Exception {
        if (brings) {
            join(seen.begun).cancel();
        } else if (blocked != null) {
            blocked.interrupt();
            blocked.join();
        } else {
            outcome.cancel(true);
        }
    }

    private void credit() throws Exception {
        join(seen.begun).request(1);
        answer("CREDIT", ID);
    }

    private byte[] replyBody() {
        return brings || kind.equals("notice") ? new byte[] {} : takes ? NUMBER_REPLY : REPLY;
    }

    private ByteBuf replyBegin() {
        byte[] body = replyBody();
        replySent = Math.min(1, body.length);
        return RawPeer.frame(Wire.REPLY | Wire.MORE, ID, Unpooled.wrappedBuffer(body, 0, replySent));
    }

    private ByteBuf itemBegin() {
        return RawPeer.frame(Wire.ITEM | Wire.MORE, ID, Unpooled.wrappedBuffer(item(), 0, 2));
    }

    private byte[] item() {
        return ByteBufUtil.getBytes(RawPeer.text("item"));
    }

    private static ByteBuf frame(int head, int id, int... payload) {
        ByteBuf bytes = Unpooled.buffer();
        for (int b : payload) {
            bytes.writeByte(b);
        }
        return RawPeer.frame(head, id, bytes);
    }

    private ByteBuf row(String row, String state) {
        if (row.endsWith(StateTables.UNREADABLE)) {
            String readable = row.substring(0, row.length() - StateTables.UNREADABLE.length());
            return RawPeer.unreadable(row(readable, state));
        }
        return switch (row) {
            case "REPLY" -> RawPeer.frame(Wire.REPLY, ID, Unpooled.wrappedBuffer(replyBody()));
            case "REPLY MORE" -> state.endsWith("reply") ? frame(Wire.REPLY | Wire.MORE, ID, 1) : replyBegin();
            case "PART" -> part(state, false);
            case "PART MORE" -> part(state, true);
            case "ERROR" -> frame(Wire.ERROR, ID, 8, 6, 24, 2);
            case "ERROR MORE" -> frame(Wire.ERROR | Wire.MORE, ID, 8, 6, 24, 2);
            case "ITEM" -> RawPeer.frame(Wire.ITEM, ID, Unpooled.wrappedBuffer(item()));
            case "ITEM MORE" -> itemBegin();
            case "CREDIT" -> frame(Wire.CREDIT, ID, 1);
            case "CREDIT 0" -> frame(Wire.CREDIT, ID, 0);
            case "CREDIT empty" -> frame(Wire.CREDIT, ID);
            case "REQUEST" -> frame(Wire.REQUEST, ID, 1);
            case "NOTICE" -> frame(Wire.NOTICE, ID, 1);
            case "CANCEL" -> frame(Wire.CANCEL, ID);
            case "END" -> frame(Wire.END, ID);
            case "SETTINGS" -> frame(Wire.SETTINGS, 0);
            case "DICTIONARY" -> frame(Wire.DICTIONARY, 0);
            case "DICTIONARY MORE" -> frame(Wire.DICTIONARY | Wire.MORE, 0);
            case "DICTIONARY number 0" -> frame(Wire.DICTIONARY, 0, 10, 3, 18, 1, 'a');
            case "ERROR id 0" -> frame(Wire.ERROR, 0, 8, 10);
            case "GOAWAY" -> frame(Wire.GOAWAY, 0);
            case "PING" -> frame(Wire.PING, 0x55);
            case "PONG" -> frame(Wire.PONG, 0x55);
            case "type 0" -> frame(0, ID, 1, 2);
            case "SCHEMA" -> frame(Wire.SCHEMA, 0, 10, 0);
            case "length 4" -> Unpooled.wrappedBuffer(new byte[] {4, 0, 0, 0, 0});
            case "end of the stream" -> Unpooled.EMPTY_BUFFER;
            default -> throw new IllegalArgumentException(row);
        };
    }

    private ByteBuf part(String state, boolean more) {
        ByteBuf payload;
        if (state.endsWith("reply")) {
            byte[] body = replyBody();
            int bytes = more ? Math.min(1, body.length - replySent) : body.length - replySent;
            payload = Unpooled.wrappedBuffer(body, replySent, bytes);
            replySent += bytes;
        } else if (state.endsWith("item")) {
            payload = more ? Unpooled.EMPTY_BUFFER : Unpooled.wrappedBuffer(item(), 2, item().length - 2);
        } else {
            payload = Unpooled.buffer().writeZero(2);
        }
        return RawPeer.frame(more ? Wire.PART | Wire.MORE : Wire.PART, ID, payload);
    }

    /** Sends a row's frame, sees the reaction, and brings the call to its end. */
    void walk(String row, String connection, String state, StateTables.Reaction expected) throws Exception {
        ByteBuf bytes = row(row, state);
        boolean early = connection.equals("open") || connection.equals("more");
        if (expected.endsConnection()) {
            peer.write(bytes);
            if (row.equals("end of the stream")) {
                peer.shutdownOutput();
            }
            expectEnd(expected.answer());
            assertThat(failure(holder)).as("the other call").isNotNull();
            // a subscriber that has cancelled learns nothing more; a request that has not been sent goes to another
            // connection
            if (outcome != null && !(brings && state.startsWith("given up")) && !state.equals("sending")) {
                join(outcome.handle((value, thrown) -> ""));
            }
            return;
        }
        if (early && row.equals("GOAWAY")) {
            peer.write(bytes);
            answer("GOAWAY", 0);
            expectEnd("closes");
            return;
        }
        ByteBuf other = expected.passesOver() ? RawPeer.unreadable(bytes) : Unpooled.EMPTY_BUFFER;
        peer.write(Unpooled.wrappedBuffer(bytes, other, frame(Wire.PING, BARRIER)));
        boolean answered = expected.answer().isEmpty();
        boolean ponged = false;
        while (!answered || !ponged) {
            RawPeer.Frame frame = read();
            if (frame.type() == Wire.PONG && frame.id() == BARRIER) {
                ponged = true;
                // while what it sends is not read, a side may answer the last PING alone
                answered |= state.equals("sending") && row.equals("PING");
            } else if (!answered) {
                assertThat(frame.head()).as("answer").isEqualTo(number(expected.answer()));
                answered = true;
            } else if (early && frame.type() == Wire.REQUEST) {
                holderId = frame.id();
            } else {
                throw new AssertionError("unexpected frame of head " + Integer.toHexString(frame.head()));
            }
        }
        String next = expected.next().isEmpty() ? state : expected.next();
        if (early) {
            endEarly(connection, row);
            return;
        }
        if (row.equals("GOAWAY")) {
            serverDrains = true;
            next = state;
        } else if (row.equals("ITEM") && next.equals("sent") || row.equals("PART") && state.equals("item")) {
            itemsSent++;
        }
        if (next.equals("over") && !state.equals("over") && !state.startsWith("given up") && outcome != null) {
            if (row.startsWith("ERROR")) {
                RPCXException error = (RPCXException) failure(outcome);
                assertThat(error.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
                assertThat(error.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
            } else {
                succeeded();
            }
        }
        finish(next);
        endWalk(!state.equals("none"));
    }

    /** Sends the whole dictionary if the connection did not have it, and then brings its call to a good end. */
    private void endEarly(String connection, String row) throws Exception {
        if (!row.equals("SETTINGS") && connection.equals("open")) {
            peer.send(Wire.SETTINGS, 0);
        }
        if (!row.equals("DICTIONARY")) {
            peer.send(Wire.DICTIONARY, 0);
        }
        if (holderId == 0) {
            hold();
        }
        endWalk(false);
    }

    private void succeeded() throws Exception {
        Object value = join(outcome);
        if (brings) {
            assertThat(seen.items).isEqualTo(Collections.nCopies(itemsSent, "item"));
        } else {
            assertThat(value).isEqualTo(takes ? (Object) 300 : "HelloWorld");
        }
    }

    /** Brings the call to a good end, which shows that nothing before has hurt it. */
    private void finish(String state) throws Exception {
        switch (state) {
            case "none", "over" -> {}
            case "given up" -> peer.write(frame(Wire.ERROR, ID, 8, 1, 24, 3));
            case "given up reply" -> peer.write(part(state, false));
            case "given up item" -> peer.write(Unpooled.wrappedBuffer(part(state, false), row("REPLY", state)));
            case "reply" -> {
                peer.write(part(state, false));
                if (outcome != null) {
                    succeeded();
                }
            }
            default -> {
                if (state.equals("item")) {
                    peer.write(part(state, false));
                    itemsSent++;
                }
                if (brings && !state.equals("credited") && !ended) {
                    credit();
                }
                if (brings && !ended) {
                    peer.write(row("ITEM", state));
                    itemsSent++;
                }
                peer.write(row("REPLY", state));
                if (outcome != null) {
                    succeeded();
                }
            }
        }
    }

    /** Checks that the slot is free for one more call, and that the connection still serves. */
    private void endWalk(boolean used) throws Exception {
        if (!serverDrains) {
            // when the PONG is here, the client has taken all that was sent before the PING
            peer.write(frame(Wire.PING, BARRIER));
            answer("PONG", BARRIER);
            CompletableFuture<String> another = calls.unary("another");
            RawPeer.Frame request = read();
            assertThat(request.id()).as("slot and generation").isEqualTo(used ? ID + NEXT_GENERATION : ID);
            peer.write(RawPeer.frame(Wire.REPLY, request.id(), Unpooled.wrappedBuffer(REPLY)));
            assertThat(join(another)).isEqualTo("HelloWorld");
        }
        peer.write(RawPeer.frame(Wire.REPLY, holderId, Unpooled.wrappedBuffer(REPLY)));
        assertThat(join(holder)).isEqualTo("HelloWorld");
        if (serverDrains) {
            expectEnd("closes");
        }
    }

    /** Reads the next frame that is not a part of the request. */
    private RawPeer.Frame read() throws IOException {
        while (true) {
            RawPeer.Frame frame = peer.read();
            if (frame.type() != Wire.PART || frame.id() != ID || partsOwed == 0) {
                return frame;
            }
            partsOwed = (frame.head() & Wire.MORE) == 0 ? 0 : 1;
        }
    }

    private void answer(String type, int id) throws IOException {
        RawPeer.Frame frame = read();
        assertThat(frame.head()).as(type).isEqualTo(number(type));
        assertThat(frame.id()).as("id of " + type).isEqualTo(id);
    }

    private static int number(String type) {
        return switch (type) {
            case "CANCEL" -> Wire.CANCEL;
            case "CREDIT" -> Wire.CREDIT;
            case "END" -> Wire.END;
            case "GOAWAY" -> Wire.GOAWAY;
            case "ITEM" -> Wire.ITEM;
            case "PONG" -> Wire.PONG;
            default -> throw new IllegalArgumentException(type);
        };
    }

    private void expectEnd(String how) throws IOException {
        try {
            while (true) {
                RawPeer.Frame frame = read();
                if (how.equals("ends")) {
                    assertThat(frame.head()).isEqualTo(Wire.ERROR);
                    assertThat(frame.id()).isZero();
                    assertThat(WireError.read(Unpooled.wrappedBuffer(frame.payload()))
                                    .code())
                            .isEqualTo(RPCXException.Code.PROTOCOL);
                    how = "closes";
                } else {
                    throw new AssertionError("unexpected frame of head " + Integer.toHexString(frame.head()));
                }
            }
        } catch (java.io.EOFException | java.net.SocketException end) {
            assertThat(how).as("how the connection ended").isEqualTo("closes");
        }
    }

    private static Throwable failure(CompletableFuture<?> of) throws Exception {
        try {
            of.get(MILLIS, TimeUnit.MILLISECONDS);
            return null;
        } catch (ExecutionException e) {
            return e.getCause();
        }
    }

    private static <T> T join(CompletableFuture<T> future) throws Exception {
        return future.get(MILLIS, TimeUnit.MILLISECONDS);
    }

    @Override
    public void close() throws IOException {
        peer.close();
        listening.close();
    }
}
