package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests a client that writes bytes and the handlers of its calls, which act at the same time, at random from a seed.
 * Cancels, credit, items, ends, deadlines, GOAWAY and the end of the connection meet replies, failures and streams.
 * Each call gets one final frame of its own, and the ledger is at zero after each batch of {@link AtOnce}.
 */
@Timeout(600)
class WireAtOnceTest {
    private static final int ROUNDS = 12;
    private static final int MAX_CALLS = 4;
    private static final int GENERATION = 1 << 16;
    private static final int BARRIER_SLOT = 9;
    private static final int CREDIT = 3;
    private static final long HOUR_MICROS = TimeUnit.HOURS.toMicros(1);
    private static final List<String> KINDS = List.of("unary", "brings", "takes", "both");

    private final WalkedService service = new WalkedService();
    private final ExecutorService handlers = Executors.newSingleThreadExecutor();
    private final Map<String, Integer> ends = new TreeMap<>();
    private Server server;
    private int gates;
    private int races;

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
        handlers.shutdownNow();
        server.stop(Duration.ofMillis(200));
    }

    @Test
    void whatMeetsByChanceEndsEachCallOnceAndLeavesNothing() {
        String batches = AtOnce.batches(40, this::batch);
        LongForm.figure(
                2,
                "%d calls whose two sides acted at once, in %s, one final frame each, the ledger at zero after each batch: %s",
                races,
                batches,
                ends);
    }

    private void batch(Random chance, int how) throws Exception {
        Server draining = how == 1 ? server() : null;
        try (Batch batch = new Batch(chance, draining == null ? server.port() : draining.port())) {
            for (int round = 1; round < ROUNDS; round++) {
                batch.round("", null);
            }
            batch.round(how == 2 ? "GOAWAY" : how == 3 ? "close" : "", draining);
        } finally {
            if (draining != null) {
                draining.stop(Duration.ofMillis(100));
            }
        }
    }

    /** One call, with its frames and with the actions of its handler. */
    private final class Call {
        final int id;
        final String kind;
        final String name = "at once " + ++gates;
        final WalkedService.Gate gate = service.gate(name, false);
        final List<ByteBuf> frames = new ArrayList<>();
        final List<Runnable> acts = new ArrayList<>();
        boolean credited;
        String end;

        Call(int id, String kind) {
            this.id = id;
            this.kind = kind;
        }

        boolean takes() {
            return kind.startsWith("takes") || kind.startsWith("both");
        }

        ByteBuf frame(int head, int... payload) {
            return AtOnce.frame(head, id, payload);
        }

        ByteBuf request(long micros, boolean parts) {
            ByteBuf prelude = RawPeer.prelude("walked", kind);
            Varint.write(prelude, micros);
            MetadataFields.write(prelude, Metadata.EMPTY.with(WalkedService.GATE, name));
            ByteBuf body = takes() ? Unpooled.EMPTY_BUFFER : RawPeer.text(name);
            int head = Wire.REQUEST | Wire.NAMED | Wire.TIME | Wire.METADATA;
            if (!parts) {
                return RawPeer.frame(head, id, prelude.writeBytes(body));
            }
            return Unpooled.wrappedBuffer(
                    RawPeer.frame(head | Wire.MORE, id, prelude), RawPeer.frame(Wire.PART, id, body));
        }

        /**
         * Completes the result of the handler when all items have arrived or have failed, as most handlers do. This may
         * happen while the call ends.
         */
        void endWithItems() {
            gate.allReceived.whenComplete((all, failure) -> {
                if (failure == null) {
                    gate.open();
                } else {
                    gate.result.completeExceptionally(failure);
                }
            });
        }

        /** Chooses what the client and the handler do while the call is under way, and in which order each does it. */
        void script(Random chance, boolean mayItem) {
            int steps = 1 + chance.nextInt(4);
            int items = 0;
            boolean ended = false;
            for (int i = 0; i < steps; i++) {
                switch (chance.nextInt(4)) {
                    case 0 -> frames.add(frame(Wire.CREDIT, 1 + chance.nextInt(4)));
                    case 1 -> {
                        if (mayItem && takes() && !ended && items++ < CREDIT) {
                            frames.add(frame(Wire.ITEM | Wire.MORE, 8));
                            frames.add(frame(Wire.PART, 7));
                        }
                    }
                    case 2 -> {
                        if (mayItem && takes() && !ended && items < CREDIT) {
                            items++;
                            frames.add(frame(Wire.ITEM, 8, 7));
                        } else if (mayItem && !ended) {
                            ended = true;
                            frames.add(frame(Wire.END));
                        }
                    }
                    default -> {
                        frames.add(frame(Wire.CANCEL));
                        i = steps;
                    }
                }
            }
            for (int i = chance.nextInt(3); i >= 0; i--) {
                switch (chance.nextInt(4)) {
                    case 0 -> acts.add(() -> subscription(Flow.Subscription::cancel));
                    case 1 -> acts.add(() -> subscription(s -> s.request(1)));
                    case 2 -> acts.add(() -> gate.result.completeExceptionally(new IllegalStateException(name)));
                    default -> acts.add(gate::open);
                }
            }
        }

        private void subscription(java.util.function.Consumer<Flow.Subscription> act) {
            Flow.Subscription incoming = gate.incoming.getNow(null);
            if (incoming != null) {
                act.accept(incoming);
            }
        }

        void over(RawPeer.Frame last) {
            assertThat(end).as(this + " before a second final frame").isNull();
            if (last.type() == Wire.ERROR) {
                assertThat(last.payload()).as(this + ", ERROR").isNotEmpty();
                RPCXException error = WireError.read(Unpooled.wrappedBuffer(last.payload()));
                assertThat(error.code())
                        .as(this + ", " + error)
                        .isIn(
                                RPCXException.Code.CANCELLED,
                                RPCXException.Code.DEADLINE_EXCEEDED,
                                RPCXException.Code.HANDLER_FAILED,
                                RPCXException.Code.UNAVAILABLE);
                if (error.code() == RPCXException.Code.HANDLER_FAILED) {
                    // the text belongs to this call and to no other
                    assertThat(error.getMessage()).as(toString()).isIn(name, "the call is over");
                }
                end = "ERROR " + WireError.number(error.code());
            } else {
                if (kind.startsWith("unary")) {
                    assertThat(last.payload()).as(toString()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text(name)));
                } else if (!kind.startsWith("takes")) {
                    assertThat(last.payload()).as(toString()).isEmpty();
                }
                end = "REPLY";
            }
        }

        @Override
        public String toString() {
            return kind + " " + Integer.toHexString(id);
        }
    }

    private final class Batch implements AutoCloseable {
        private final Random chance;
        private final RawPeer peer;
        private final Map<Integer, Call> calls = new HashMap<>();
        private int generation;
        private boolean serverDrains;

        Batch(Random chance, int port) throws IOException {
            this.chance = chance;
            peer = new RawPeer(port);
            peer.send(RawPeer.preface());
            peer.readPreface();
        }

        void round(String last, Server draining) throws Exception {
            generation++;
            calls.clear();
            List<Call> made = new ArrayList<>();
            for (int slot = chance.nextInt(MAX_CALLS); slot >= 0; slot--) {
                String kind = KINDS.get(chance.nextInt(KINDS.size())) + (chance.nextBoolean() ? "Elsewhere" : "Loop");
                Call call = new Call(generation * GENERATION + slot, kind);
                calls.put(call.id, call);
                made.add(call);
                if (chance.nextBoolean()) {
                    call.endWithItems();
                }
                begin(call);
            }
            List<ByteBuf> frames =
                    shuffled(made.stream().map(call -> call.frames).toList());
            List<Runnable> acts = shuffled(made.stream().map(call -> call.acts).toList());
            if (draining != null) {
                acts.add(chance.nextInt(acts.size() + 1), () -> draining.core().drain(Duration.ofMinutes(1)));
            }
            if (last.equals("GOAWAY")) {
                frames.add(chance.nextInt(frames.size() + 1), RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER));
            }
            try {
                race(made, frames, acts, last);
            } finally {
                for (Call call : made) {
                    call.gate.open();
                    service.forget(call.name);
                }
            }
        }

        private void race(List<Call> made, List<ByteBuf> frames, List<Runnable> acts, String last) throws Exception {
            CyclicBarrier start = new CyclicBarrier(2);
            Future<?> handling = handlers.submit(() -> {
                start.await(10, TimeUnit.SECONDS);
                acts.forEach(Runnable::run);
                return null;
            });
            start.await(10, TimeUnit.SECONDS);
            sendByChance(frames, last.equals("close"));
            handling.get(10, TimeUnit.SECONDS);
            races += made.size();
            if (last.equals("close")) {
                peer.close();
            } else {
                finish(made, last.equals("GOAWAY"));
            }
            for (Call call : made) {
                assertThat(call.gate.runs.get()).as(call + ", runs").isLessThanOrEqualTo(1);
                ends.merge(call.end == null ? "gone" : call.end, 1, Integer::sum);
            }
        }

        private void begin(Call call) throws Exception {
            boolean early = chance.nextInt(3) == 0;
            long micros = early && chance.nextBoolean() ? 1 + chance.nextInt(3000) : HOUR_MICROS;
            call.script(chance, !early);
            ByteBuf request = call.request(micros, chance.nextInt(4) == 0);
            if (early && chance.nextBoolean()) {
                request = Unpooled.wrappedBuffer(request, Unpooled.wrappedBuffer(call.frames.toArray(new ByteBuf[0])));
                call.frames.clear();
            }
            peer.send(request);
            if (early) {
                return;
            }
            call.gate.begun.get(10, TimeUnit.SECONDS);
            if (call.takes()) {
                call.gate.incoming.get(10, TimeUnit.SECONDS).request(CREDIT);
                while (!call.credited) {
                    take(peer.readAnswer());
                }
            }
        }

        /** Merges the lists into one, and keeps the order within each list. */
        private <T> List<T> shuffled(List<List<T>> lists) {
            List<Integer> order = new ArrayList<>();
            for (int i = 0; i < lists.size(); i++) {
                order.addAll(Collections.nCopies(lists.get(i).size(), i));
            }
            Collections.shuffle(order, chance);
            int[] next = new int[lists.size()];
            List<T> all = new ArrayList<>();
            order.forEach(list -> all.add(lists.get(list).get(next[list]++)));
            return all;
        }

        private void sendByChance(List<ByteBuf> frames, boolean closes) throws IOException {
            ByteBuf packet = Unpooled.buffer();
            int most = closes ? chance.nextInt(frames.size() + 1) : frames.size();
            for (ByteBuf frame : frames.subList(0, most)) {
                packet.writeBytes(frame);
                if (chance.nextInt(3) == 0) {
                    peer.send(packet);
                    packet.clear();
                }
            }
            if (packet.isReadable()) {
                peer.send(packet);
            }
        }

        /** Checks that all calls end. A final frame that still comes after the barrier would be a second one. */
        private void finish(List<Call> made, boolean isEnding) throws IOException {
            Call barrier = new Call(generation * GENERATION + BARRIER_SLOT, "unary");
            calls.put(barrier.id, barrier);
            ByteBuf packet = Unpooled.buffer();
            for (Call call : made) {
                packet.writeBytes(call.frame(Wire.CANCEL));
            }
            packet.writeBytes(RawPeer.request(barrier.id, "walked", "echo", barrier.name));
            try {
                peer.send(packet);
                while (made.stream().anyMatch(call -> call.end == null) || barrier.end == null) {
                    take(peer.readAnswer());
                }
                while (isEnding) {
                    take(peer.readAnswer());
                }
            } catch (EOFException | SocketException closed) {
                // the server closes the connection of a client that has sent GOAWAY when its last call has ended
                assertThat(isEnding).as("the connection may end: " + closed).isTrue();
            } finally {
                service.forget(barrier.name);
            }
        }

        private void take(RawPeer.Frame frame) {
            if (frame.type() == Wire.GOAWAY) {
                serverDrains = true;
                return;
            }
            Call call = calls.get(frame.id());
            if (call == null && frame.type() == Wire.CREDIT) {
                // an item that a handler made while its call ended may come after the final frame
                return;
            }
            assertThat(call)
                    .as("the call of " + frame + ", server drains: " + serverDrains)
                    .isNotNull();
            switch (frame.type()) {
                case Wire.CREDIT -> call.credited = true;
                case Wire.ITEM ->
                    assertThat(call.end).as(call + ", an ITEM behind its end").isNull();
                default -> {
                    assertThat(frame.type()).as(call + ", " + frame).isIn(Wire.REPLY, Wire.ERROR);
                    call.over(frame);
                }
            }
        }

        @Override
        public void close() throws IOException {
            peer.close();
        }
    }
}
