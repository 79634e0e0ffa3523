package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests the races of {@code rpcx/spec/states.md}. Each row is tested in its order, and in some races the order is left
 * to chance.
 */
@Timeout(120)
class WireRacesTest {
    private static final int GENERATION = 1 << 16;
    private static final int ID = GENERATION + 1;
    private static final int BARRIER = 0x7777_7777;
    private static final long HOUR_MICROS = TimeUnit.HOURS.toMicros(1);

    @RPCXClient(remoteServerName = "walked")
    interface Calls {
        @Method("unary")
        CompletableFuture<String> unary(String text);

        @Method(value = "unary", timeoutMillis = 1_000)
        CompletableFuture<String> brief(String text);
    }

    private final WalkedService service = new WalkedService();
    private Server server;
    private int gates;

    @BeforeEach
    void start() {
        server = server();
    }

    private Server server() {
        return Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .build()
                .start();
    }

    @AfterEach
    void stop() {
        server.stop(Duration.ofMillis(200));
    }

    @Test
    void eachRaceEndsAsItsRowSays() throws Exception {
        List<StateTables.Row> rows = StateTables.read("Races").rows();
        for (StateTables.Row row : rows) {
            String first = row.cell("first");
            String seen =
                    row.frame().startsWith("server") ? atServer(row.frame(), first) : atClient(row.frame(), first);
            String expected = row.cell("what the peer and the caller see");
            assertThat(expected.split(" or "))
                    .as(row.frame() + ", first: " + first)
                    .contains(seen);
        }
        LongForm.figure(2, "%d races in the order of their rows", rows.size());
    }

    // ---- at the server

    /** A call to a server by a client that writes bytes. */
    private final class Raw implements AutoCloseable {
        final RawPeer peer;
        final WalkedService.Gate gate;
        private final String name = "race " + ++gates;

        Raw(int port) throws IOException {
            peer = new RawPeer(port);
            gate = service.gate(name, false);
            peer.send(RawPeer.preface());
            peer.readPreface();
        }

        ByteBuf request(int head, String method, long micros, ByteBuf body) {
            ByteBuf prelude = RawPeer.prelude("walked", method);
            Varint.write(prelude, micros);
            MetadataFields.write(prelude, Metadata.EMPTY.with(WalkedService.GATE, name));
            return RawPeer.frame(head | Wire.NAMED | Wire.TIME | Wire.METADATA, ID, prelude.writeBytes(body));
        }

        void begin(String method) throws Exception {
            peer.send(request(Wire.REQUEST, method, HOUR_MICROS, RawPeer.text("text")));
            gate.begun.get(10, TimeUnit.SECONDS);
        }

        void send(int head, int... payload) throws IOException {
            ByteBuf bytes = Unpooled.buffer();
            for (int b : payload) {
                bytes.writeByte(b);
            }
            peer.send(RawPeer.frame(head, head == Wire.GOAWAY ? 0 : ID, bytes));
        }

        /** Returns the final frame as a whole. */
        String last() throws IOException {
            boolean reply = false;
            while (true) {
                RawPeer.Frame frame = peer.readAnswer();
                if (frame.type() == Wire.ERROR) {
                    assertThat(frame.id()).isEqualTo(ID);
                    RPCXException error = WireError.read(Unpooled.wrappedBuffer(frame.payload()));
                    return "ERROR " + WireError.number(error.code()) + " " + executed(error);
                }
                reply |= frame.type() == Wire.REPLY;
                if (reply && (frame.head() & Wire.MORE) == 0) {
                    return "REPLY";
                }
            }
        }

        /**
         * Returns the final frame, after a check that only the PONG of the barrier follows it. So it was the only final
         * frame.
         */
        String only(String last) throws IOException {
            peer.send(RawPeer.frame(Wire.PING, BARRIER, Unpooled.EMPTY_BUFFER));
            assertThat(peer.readAnswer().type()).isEqualTo(Wire.PONG);
            return last;
        }

        @Override
        public void close() throws IOException {
            gate.open();
            service.forget(name);
            peer.close();
        }
    }

    private static String executed(RPCXException error) {
        return switch (error.executed()) {
            case NOT_EXECUTED -> "not";
            case EXECUTED -> "yes";
            case MAYBE -> "maybe";
        };
    }

    private String atServer(String race, String first) throws Exception {
        if (race.equals("server: GOAWAY against a request")) {
            return goAwayOfServer(first.equals("the request"));
        }
        try (Raw raw = new Raw(server.port())) {
            switch (race) {
                case "server: reply against cancel" -> {
                    raw.begin("unaryElsewhere");
                    return replyAgainstCancel(raw, first.equals("the REPLY is sent"));
                }
                case "server: reply in parts against cancel" -> {
                    return largeReplyAgainstCancel(raw, first.equals("the last PART is sent"));
                }
                case "server: end of a stream against cancel" -> {
                    raw.begin("bringsElsewhere");
                    raw.gate.subscribed.get(10, TimeUnit.SECONDS);
                    if (first.equals("the REPLY is sent")) {
                        raw.send(Wire.CREDIT, 100);
                        String last = raw.last();
                        raw.send(Wire.CANCEL);
                        return raw.only(last);
                    }
                    raw.send(Wire.CANCEL);
                    raw.send(Wire.CREDIT, 100);
                    return raw.only(raw.last());
                }
                case "server: END against the handler's error" -> {
                    raw.begin("takesElsewhere");
                    if (first.equals("END")) {
                        raw.send(Wire.END);
                        raw.gate.allReceived.get(10, TimeUnit.SECONDS);
                    }
                    raw.gate.result.completeExceptionally(new IllegalStateException("no"));
                    String last = raw.last();
                    if (!first.equals("END")) {
                        raw.send(Wire.END);
                    }
                    return raw.only(last);
                }
                case "server: deadline against the last PART" -> {
                    boolean inTime = first.equals("the last PART");
                    long begun = System.nanoTime();
                    long micros = inTime ? HOUR_MICROS : 1000;
                    raw.peer.send(raw.request(
                            Wire.REQUEST | Wire.MORE, "unaryElsewhere", micros, Unpooled.wrappedBuffer(new byte[] {10
                            })));
                    raw.only("");
                    await().until(() -> inTime || System.nanoTime() - begun > 2_000_000);
                    raw.send(Wire.PART, 1, 'x');
                    raw.gate.open();
                    return raw.only(raw.last());
                }
                case "server: client's GOAWAY against a request" -> {
                    ByteBuf request = raw.request(Wire.REQUEST, "unaryElsewhere", HOUR_MICROS, RawPeer.text("text"));
                    ByteBuf goAway = RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER);
                    raw.gate.open();
                    raw.peer.send(
                            first.equals("the request")
                                    ? Unpooled.wrappedBuffer(request, goAway)
                                    : Unpooled.wrappedBuffer(goAway, request));
                    String last = raw.last();
                    assertThat(raw.peer.readToEnd()).isEmpty();
                    return last;
                }
                default -> throw new IllegalArgumentException(race);
            }
        }
    }

    private static String replyAgainstCancel(Raw raw, boolean replyFirst) throws IOException {
        if (replyFirst) {
            raw.gate.open();
            String last = raw.last();
            raw.send(Wire.CANCEL);
            return raw.only(last);
        }
        raw.send(Wire.CANCEL);
        String last = raw.last();
        raw.gate.open();
        return raw.only(last);
    }

    private String largeReplyAgainstCancel(Raw raw, boolean replyFirst) throws Exception {
        ByteBuf body = RawPeer.text("x".repeat(3_000_000));
        ByteBuf request =
                raw.request(Wire.REQUEST | Wire.MORE, "unaryElsewhere", HOUR_MICROS, body.readRetainedSlice(1000));
        raw.peer.send(request);
        while (body.isReadable()) {
            int bytes = Math.min(body.readableBytes(), Wire.MAX_PAYLOAD_BYTES);
            ByteBuf part = body.readSlice(bytes);
            raw.peer.send(RawPeer.frame(body.isReadable() ? Wire.PART | Wire.MORE : Wire.PART, ID, part));
        }
        raw.gate.begun.get(10, TimeUnit.SECONDS);
        raw.gate.open();
        if (replyFirst) {
            String last = raw.last();
            raw.send(Wire.CANCEL);
            return raw.only(last);
        }
        assertThat(raw.peer.readAnswer().head()).isEqualTo(Wire.REPLY | Wire.MORE);
        raw.send(Wire.CANCEL);
        boolean over = false;
        String last = "";
        while (!over) {
            RawPeer.Frame frame = raw.peer.readAnswer();
            over = frame.type() != Wire.PART || (frame.head() & Wire.MORE) == 0;
            last = frame.type() == Wire.ERROR
                    ? "ERROR 1 " + executed(WireError.read(Unpooled.wrappedBuffer(frame.payload())))
                    : "REPLY";
        }
        return raw.only(last);
    }

    private String goAwayOfServer(boolean requestFirst) throws Exception {
        Server draining = server();
        try (Raw raw = new Raw(draining.port())) {
            raw.only("");
            ByteBuf request = raw.request(Wire.REQUEST, "unaryElsewhere", HOUR_MICROS, RawPeer.text("text"));
            if (requestFirst) {
                raw.peer.send(request);
                raw.gate.begun.get(10, TimeUnit.SECONDS);
            }
            draining.core().drain(Duration.ofMinutes(1));
            assertThat(raw.peer.readAnswer().type()).isEqualTo(Wire.GOAWAY);
            if (!requestFirst) {
                raw.peer.send(request);
            }
            raw.gate.open();
            return raw.only(raw.last());
        } finally {
            draining.stop(Duration.ofMillis(100));
        }
    }

    // ---- at the client

    private static String atClient(String race, String first) throws Exception {
        try (ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                Client client = Client.standard()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", listening.getLocalPort());
            CompletableFuture<String> opening = calls.unary("opens the connection");
            try (RawServer.Peer peer = accept(listening)) {
                peer.reply(peer.read(Wire.REQUEST).id(), "open");
                assertThat(opening.get(10, TimeUnit.SECONDS)).isEqualTo("open");
                return atClient(race, first, listening, peer, calls);
            }
        }
    }

    private static RawServer.Peer accept(ServerSocket listening) throws IOException {
        listening.setSoTimeout(10_000);
        RawServer.Peer peer = new RawServer.Peer(listening.accept());
        peer.write(RawPeer.preface());
        peer.send(Wire.SETTINGS, 0);
        peer.send(Wire.DICTIONARY, 0);
        return peer;
    }

    private static String atClient(String race, String first, ServerSocket listening, RawServer.Peer peer, Calls calls)
            throws Exception {
        if (race.equals("client: GOAWAY against a request") && first.equals("GOAWAY")) {
            peer.send(Wire.GOAWAY, 0);
            peer.read(Wire.GOAWAY);
            CompletableFuture<String> call = calls.unary("text");
            try (RawServer.Peer other = accept(listening)) {
                other.reply(other.read(Wire.REQUEST).id(), "result");
                assertThat(call.get(10, TimeUnit.SECONDS)).isEqualTo("result");
            }
            return "it goes to another connection";
        }
        boolean replyFirst = first.equals("REPLY");
        CompletableFuture<String> call =
                race.contains("deadline") && !replyFirst ? calls.brief("text") : calls.unary("text");
        int id = peer.read(Wire.REQUEST).id();
        if (replyFirst) {
            peer.reply(id, "result");
            outcome(call);
        }
        switch (race) {
            case "client: reply against cancel" -> {
                call.cancel(true);
                if (!replyFirst) {
                    peer.read(Wire.CANCEL);
                    peer.reply(id, "result");
                }
            }
            case "client: reply against deadline" -> {
                if (!replyFirst) {
                    peer.read(Wire.CANCEL);
                    peer.reply(id, "result");
                }
            }
            case "client: reply against the end of the connection" -> {
                peer.shutdownOutput();
                return outcome(call);
            }
            case "client: GOAWAY against a request" -> {
                peer.send(Wire.GOAWAY, 0);
                peer.read(Wire.GOAWAY);
                peer.reply(id, "result");
                return outcome(call);
            }
            default -> throw new IllegalArgumentException(race);
        }
        // the slot is free again, and nothing else has been sent in the meantime
        peer.send(Wire.PING, BARRIER);
        assertThat(peer.read().type()).isEqualTo(Wire.PONG);
        CompletableFuture<String> next = calls.unary("next");
        int nextId = peer.read(Wire.REQUEST).id();
        assertThat(nextId).isEqualTo(id + GENERATION);
        peer.reply(nextId, "next");
        assertThat(next.get(10, TimeUnit.SECONDS)).isEqualTo("next");
        return outcome(call);
    }

    private static String outcome(CompletableFuture<String> call) throws Exception {
        try {
            return call.get(10, TimeUnit.SECONDS);
        } catch (CancellationException e) {
            return "cancelled maybe";
        } catch (ExecutionException e) {
            RPCXException error = (RPCXException) e.getCause();
            return error.code().name().toLowerCase(java.util.Locale.ROOT).replace('_', ' ') + " " + executed(error);
        }
    }

    // ---- nobody says who is first

    @Test
    void aReplyAndACancelAtOnceEndTheCallExactlyOnce() throws Exception {
        int rounds = LongForm.of(300, 30_000);
        Map<String, Integer> seen = new TreeMap<>();
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.readPreface();
            for (int round = 1; round <= rounds; round++) {
                String name = "at once " + round;
                WalkedService.Gate gate = service.gate(name, false);
                int id = (round % 0xFFFF + 1) * GENERATION + 1;
                ByteBuf prelude = RawPeer.prelude("walked", round % 2 == 0 ? "unaryElsewhere" : "unaryLoop");
                MetadataFields.write(prelude, Metadata.EMPTY.with(WalkedService.GATE, name));
                peer.send(RawPeer.frame(
                        Wire.REQUEST | Wire.NAMED | Wire.METADATA, id, prelude.writeBytes(RawPeer.text("text"))));
                gate.begun.get(10, TimeUnit.SECONDS);
                CyclicBarrier start = new CyclicBarrier(2);
                CompletableFuture<Void> handler = CompletableFuture.runAsync(() -> {
                    meet(start);
                    gate.open();
                });
                meet(start);
                peer.send(RawPeer.frame(Wire.CANCEL, id, Unpooled.EMPTY_BUFFER));
                handler.get(10, TimeUnit.SECONDS);
                // a call is the barrier, because so many PINGs would be a flood
                peer.send(RawPeer.request(id + 1, "walked", "echo", "barrier"));
                Set<String> finals = new HashSet<>();
                boolean passed = false;
                while (!passed || finals.isEmpty()) {
                    RawPeer.Frame frame = peer.readAnswer();
                    if (frame.id() == id + 1) {
                        passed = true;
                    } else {
                        // a second final frame of the previous round would have another id
                        assertThat(frame.id()).isEqualTo(id);
                        assertThat(finals)
                                .as("final frames before a second one")
                                .isEmpty();
                        finals.add(frame.type() == Wire.REPLY ? "REPLY" : "ERROR");
                    }
                }
                finals.forEach(end -> seen.merge(end, 1, Integer::sum));
                service.forget(name);
            }
        }
        LongForm.figure(2, "%d replies against cancels at once, one final frame each: %s", rounds, seen);
    }

    private static void meet(CyclicBarrier barrier) {
        try {
            barrier.await(10, TimeUnit.SECONDS);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
