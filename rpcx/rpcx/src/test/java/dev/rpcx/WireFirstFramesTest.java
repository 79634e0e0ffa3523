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
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests what a server does with the first bytes of a connection and of a call, by the tables in
 * {@code rpcx/spec/states.md} and with each pair of faults.
 */
@Timeout(120)
class WireFirstFramesTest {
    private static final int GENERATION = 1 << 16;
    private static final int MAX_CALLS = 100;
    private static final int MAX_BYTES = 1000;
    private static final int USED_SLOT = 2;

    private final WalkedService service = new WalkedService();
    private Server server;

    @BeforeEach
    void start() {
        server = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .maxCalls(MAX_CALLS)
                .maxMessageBytes(MAX_BYTES)
                .build()
                .start();
    }

    @AfterEach
    void stop() {
        server.stop(Duration.ofMillis(200));
    }

    @Test
    void eachLengthDoesWhatItsRowSays() throws IOException {
        for (StateTables.Row row : StateTables.read("Server: lengths").rows()) {
            try (RawPeer peer = new RawPeer(server.port())) {
                peer.send(RawPeer.preface());
                peer.send(bytes(row.frame()));
                peer.readPreface();
                assertThat(row.cell("reaction")).isEqualTo("ends");
                expectEnd(peer, row.toString());
            }
        }
    }

    @Test
    void eachPrefaceDoesWhatItsRowSays() throws IOException {
        for (StateTables.Row row : StateTables.read("Server: prefaces").rows()) {
            try (RawPeer peer = new RawPeer(server.port())) {
                peer.send(bytes(row.frame()));
                if (row.cell("reaction").equals("preface")) {
                    peer.readPreface();
                } else {
                    assertThat(row.cell("reaction")).isEqualTo("closes");
                    assertThat(peer.readToEnd()).as(row.toString()).isEmpty();
                }
            }
        }
    }

    private static ByteBuf bytes(String hex) {
        return Unpooled.wrappedBuffer(ByteBufUtil.decodeHexDump(hex.replace(" ", "")));
    }

    private static void expectEnd(RawPeer peer, String what) throws IOException {
        RawPeer.Frame error = peer.readAnswer();
        assertThat(error.head()).as(what).isEqualTo(Wire.ERROR);
        assertThat(error.id()).as(what).isZero();
        assertThat(WireError.read(Unpooled.wrappedBuffer(error.payload())).code())
                .as(what)
                .isEqualTo(RPCXException.Code.PROTOCOL);
        assertThat(peer.readToEnd()).as(what).isEmpty();
    }

    /** A first frame with some faults. */
    private static final class First {
        final Set<String> faults;
        final boolean notice;

        First(Set<String> faults, boolean notice) {
            this.faults = faults;
            this.notice = notice;
        }

        private boolean has(String fault) {
            return faults.contains(fault);
        }

        int id() {
            int slot = has("slot above max_calls") ? MAX_CALLS : 1;
            if (has("slot in use")) {
                slot = 0;
            } else if (has("id of the slot's last call")) {
                slot = USED_SLOT;
            }
            if (has("generation 0")) {
                return slot;
            }
            return has("id of the slot's last call") ? GENERATION + slot : 2 * GENERATION + slot;
        }

        ByteBuf frame(String gate) {
            int head = (notice ? Wire.NOTICE : Wire.REQUEST) | Wire.TIME | Wire.METADATA;
            ByteBuf payload = Unpooled.buffer();
            if (has("unknown number")) {
                // the low half is the number of a method
                Varint.write(payload, (1L << 32) + 1);
            } else {
                head |= Wire.NAMED;
                String service = has("unknown service") ? "nobody" : "walked";
                payload.writeBytes(RawPeer.prelude(service, method()));
                if (has("method whose name is not UTF-8")) {
                    payload.setByte(payload.writerIndex() - 1, 0xFF);
                }
            }
            if (has("prelude cut off")) {
                return RawPeer.frame(head, id(), payload);
            }
            Varint.write(payload, has("time 0") ? 0 : TimeUnit.HOURS.toMicros(1));
            if (has("metadata of 8193 bytes")) {
                Varint.write(payload, Metadata.MAX_BYTES + 1);
                payload.writeZero(Metadata.MAX_BYTES + 1);
            } else if (has("metadata of 65 entries")) {
                Varint.write(payload, 2 * (Metadata.MAX_ENTRIES + 1));
                for (int i = 0; i <= Metadata.MAX_ENTRIES; i++) {
                    // this is an entry with an empty name and an empty value
                    payload.writeByte(1 << 3 | 2).writeByte(0);
                }
            } else if (has("metadata with another field than 1")) {
                payload.writeByte(2).writeByte(0x12).writeByte(0);
            } else {
                MetadataFields.write(payload, Metadata.EMPTY.with(WalkedService.GATE, gate));
            }
            if (has("body that cannot be read")) {
                payload.writeByte(10).writeByte(0xFF).writeByte(0x7F);
            }
            if (has("body above max_message_bytes")) {
                payload.writeZero(MAX_BYTES + 1);
            }
            return RawPeer.frame(head, id(), payload);
        }

        private String method() {
            if (has("unknown method")) {
                return "nothing";
            }
            if (has("method of no name")) {
                return "";
            }
            return has("method with a stream") ? "bringsElsewhere" : "unaryElsewhere";
        }

        /** Returns false if the faults exclude each other. */
        boolean isPossible() {
            int names = 0;
            for (String name : List.of(
                    "unknown service",
                    "unknown method",
                    "method of no name",
                    "method whose name is not UTF-8",
                    "unknown number",
                    "method with a stream")) {
                names += has(name) ? 1 : 0;
            }
            boolean otherSlots = has("slot in use") || has("id of the slot's last call");
            return names <= 1
                    && !(has("slot above max_calls") && otherSlots)
                    && !(has("generation 0") && has("id of the slot's last call"))
                    && !(has("prelude cut off")
                            && (has("metadata of 8193 bytes")
                                    || has("metadata of 65 entries")
                                    || has("metadata with another field than 1")
                                    || has("time 0")
                                    || has("body above max_message_bytes")
                                    || has("body that cannot be read")));
        }
    }

    @Test
    void theFirstOfTwoFaultsOfAFirstFrameDecides() throws Exception {
        List<StateTables.Row> rows = StateTables.read("Server: first frames").rows();
        int walked = 0;
        for (String type : List.of("REQUEST", "NOTICE")) {
            for (int first = 0; first < rows.size(); first++) {
                for (int second = first; second < rows.size(); second++) {
                    Set<String> faults = new HashSet<>(List.of(rows.get(first).frame()));
                    faults.add(rows.get(second).frame());
                    First frame = new First(faults, type.equals("NOTICE"));
                    boolean exists = !rows.get(first).cell(type).equals("–")
                            && !rows.get(second).cell(type).equals("–");
                    if (exists && frame.isPossible()) {
                        send(frame, rows.get(first).cell(type));
                        walked++;
                    }
                }
            }
        }
        LongForm.figure(2, "%d first frames with one fault or two", walked);
    }

    @Test
    void anIdWhoseSlotIsTooHighIsNotRemembered() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.readPreface();
            for (int i = 0; i < 2; i++) {
                peer.send(RawPeer.request(GENERATION + MAX_CALLS, "walked", "echo", "text"));
                RawPeer.Frame answer = peer.readAnswer();
                assertThat(answer.head()).isEqualTo(Wire.ERROR);
                assertThat(WireError.read(Unpooled.wrappedBuffer(answer.payload()))
                                .code())
                        .isEqualTo(RPCXException.Code.OVERLOADED);
            }
        }
    }

    private void send(First first, String says) throws Exception {
        String what = (first.notice ? "NOTICE: " : "REQUEST: ") + first.faults + " (expected: " + says + ")";
        List<WalkedService.Gate> gates = new ArrayList<>();
        try (RawPeer peer = new RawPeer(server.port())) {
            WalkedService.Gate holder = service.gate("holder", false);
            WalkedService.Gate gate = service.gate("gate", false);
            gates.add(holder);
            gates.add(gate);
            peer.send(RawPeer.preface());
            peer.readPreface();
            ByteBuf held = RawPeer.prelude("walked", "unaryElsewhere");
            MetadataFields.write(held, Metadata.EMPTY.with(WalkedService.GATE, "holder"));
            peer.send(RawPeer.frame(
                    Wire.REQUEST | Wire.NAMED | Wire.METADATA, GENERATION, held.writeBytes(RawPeer.text("held"))));
            holder.begun.get(10, TimeUnit.SECONDS);
            peer.send(RawPeer.request(GENERATION + USED_SLOT, "walked", "echo", "used"));
            assertThat(peer.readAnswer().type()).isEqualTo(Wire.REPLY);
            if (first.faults.contains("after GOAWAY")) {
                peer.send(RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER));
            }
            peer.send(first.frame("gate"));
            if (says.equals("ends")) {
                expectEnd(peer, what);
            } else {
                RawPeer.Frame answer = peer.readAnswer();
                assertThat(answer.id()).as(what).isEqualTo(first.id());
                if (says.startsWith("REPLY")) {
                    assertThat(answer.head()).as(what).isEqualTo(Wire.REPLY);
                } else {
                    assertThat(answer.head()).as(what).isEqualTo(Wire.ERROR);
                    RPCXException error = WireError.read(Unpooled.wrappedBuffer(answer.payload()));
                    assertThat("ERROR " + WireError.number(error.code()) + " not")
                            .as(what)
                            .isEqualTo(says);
                    assertThat(error.executed()).as(what).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                }
            }
            assertThat(gate.runs).as(what).hasValue(0);
        } finally {
            gates.forEach(WalkedService.Gate::open);
        }
    }
}
