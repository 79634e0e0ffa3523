package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.AtOnce;
import dev.rpcx.Client;
import dev.rpcx.LongForm;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RawPeer;
import dev.rpcx.RawServer;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests a server that writes bytes and the callers of a client, which act at the same time, at random from a seed.
 * Replies, errors, items, credit, GOAWAY and the end of the connection meet cancels, deadlines, and what publishers and
 * subscribers do. Each call ends once for its caller, its slot is free once its final frame has come, and the ledger is
 * at zero after each batch of {@link AtOnce}.
 */
@Timeout(600)
class ClientAtOnceTest {
    private static final int ROUNDS = 12;
    private static final int MAX_CALLS = 4;

    @RPCXClient(remoteServerName = "walked")
    interface Calls {
        @Method("unary")
        CompletableFuture<String> unary(String text);

        @Method(value = "unary", timeoutMillis = 2)
        CompletableFuture<String> brief(String text);

        @Method("brings")
        Flow.Publisher<String> brings(String text);

        @Method("takes")
        CompletableFuture<Integer> takes(Flow.Publisher<Integer> items);
    }

    private final ExecutorService callers = Executors.newSingleThreadExecutor();
    private final TreeMap<String, Integer> ends = new TreeMap<>();
    private final Client client = Client.standard();
    private int races;

    @AfterEach
    void stop() {
        callers.shutdownNow();
        client.close();
    }

    @Test
    void whatMeetsByChanceEndsEachCallOnceAndLeavesNothing() {
        String batches = AtOnce.batches(30, this::batch);
        LongForm.figure(
                2,
                "%d calls of a client whose two sides acted at once, in %s, one end each, the ledger at zero after each batch: %s",
                races,
                batches,
                ends);
    }

    private void batch(Random chance, int how) throws Exception {
        try (RawServer listening = new RawServer()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", listening.port());
            CompletableFuture<String> opening = calls.unary("opens the connection");
            try (RawServer.Peer peer = listening.accept(Wire.MAX_SLOTS)) {
                peer.reply(peer.read(Wire.REQUEST).id(), "open");
                assertThat(opening.get(10, TimeUnit.SECONDS)).isEqualTo("open");
                for (int round = 1; round < ROUNDS; round++) {
                    round(chance, calls, peer, "");
                }
                round(chance, calls, peer, how == 2 ? "GOAWAY" : how == 3 ? "close" : "");
            }
        }
    }

    /** A call, as its caller and the server see it. */
    private static final class Call {
        final String kind;
        final AtomicInteger endings = new AtomicInteger();
        final CompletableFuture<String> end = new CompletableFuture<>();
        final AtomicReference<Flow.Subscription> incoming = new AtomicReference<>();
        final AtomicReference<Flow.Subscriber<? super Integer>> outgoing = new AtomicReference<>();
        CompletableFuture<?> result;
        int id;
        int items;

        Call(String kind) {
            this.kind = kind;
        }

        private void over(String how) {
            endings.incrementAndGet();
            end.complete(how);
        }

        void begin(Calls calls) {
            switch (kind) {
                case "brings" ->
                    calls.brings("text").subscribe(new Flow.Subscriber<>() {
                        @Override
                        public void onSubscribe(Flow.Subscription subscription) {
                            incoming.set(subscription);
                            subscription.request(3);
                        }

                        @Override
                        public void onNext(String item) {}

                        @Override
                        public void onError(Throwable thrown) {
                            over("failed");
                        }

                        @Override
                        public void onComplete() {
                            over("done");
                        }
                    });
                case "takes" ->
                    result = calls.takes(subscriber -> {
                        subscriber.onSubscribe(new Flow.Subscription() {
                            @Override
                            public void request(long wanted) {
                                for (long i = 0; i < wanted; i++) {
                                    subscriber.onNext(7);
                                }
                            }

                            @Override
                            public void cancel() {}
                        });
                        outgoing.set(subscriber);
                    });
                case "brief" -> {
                    try {
                        result = calls.brief("text");
                    } catch (RPCXException late) {
                        // the time of the call was over before it could be sent
                        assertThat(late.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
                        over("failed");
                        result = CompletableFuture.failedFuture(late);
                    }
                }
                default -> result = calls.unary("text");
            }
            if (result != null && !end.isDone()) {
                result.whenComplete((value, thrown) -> over(thrown == null ? "done" : "failed"));
            }
        }

        /** Chooses what the caller does while the call is in flight. */
        void act(Random chance, List<Runnable> acts) {
            switch (kind) {
                case "brings" -> {
                    acts.add(() -> incoming.get().request(1));
                    if (chance.nextBoolean()) {
                        acts.add(() -> {
                            // the subscriber receives nothing more after this
                            incoming.get().cancel();
                            end.complete("cancelled");
                        });
                    }
                }
                case "takes" -> {
                    switch (chance.nextInt(3)) {
                        case 0 -> acts.add(() -> outgoing.get().onComplete());
                        case 1 -> acts.add(() -> outgoing.get().onError(new IllegalStateException("no")));
                        default -> acts.add(() -> result.cancel(true));
                    }
                }
                default -> {
                    if (chance.nextBoolean()) {
                        acts.add(() -> result.cancel(true));
                    }
                }
            }
        }

        ByteBuf frame(int head, int... payload) {
            return AtOnce.frame(head, id, payload);
        }

        /** Chooses what the server sends while the call is under way. The last frame is the final frame. */
        void answer(Random chance, List<ByteBuf> frames) {
            for (int i = chance.nextInt(3); i > 0; i--) {
                if (kind.equals("brings")) {
                    items++;
                    frames.add(RawPeer.frame(Wire.ITEM, id, RawPeer.text("item")));
                } else {
                    frames.add(frame(Wire.CREDIT, 1 + chance.nextInt(3)));
                }
            }
            boolean number = kind.equals("takes");
            switch (chance.nextInt(3)) {
                case 0 -> frames.add(frame(Wire.ERROR, 8, 6, 24, 2));
                case 1 -> {
                    if (kind.equals("brings")) {
                        frames.add(frame(Wire.REPLY));
                    } else if (number) {
                        frames.add(frame(Wire.REPLY, 8, 7));
                    } else {
                        frames.add(RawPeer.frame(Wire.REPLY, id, RawPeer.text("text")));
                    }
                }
                default -> {
                    frames.add(frame(Wire.REPLY | Wire.MORE));
                    if (kind.equals("brings")) {
                        frames.add(frame(Wire.PART));
                    } else if (number) {
                        frames.add(frame(Wire.PART, 8, 7));
                    } else {
                        frames.add(RawPeer.frame(Wire.PART, id, RawPeer.text("text")));
                    }
                }
            }
        }
    }

    private void round(Random chance, Calls calls, RawServer.Peer peer, String last) throws Exception {
        List<Call> made = new ArrayList<>();
        List<ByteBuf> frames = new ArrayList<>();
        List<Runnable> acts = new ArrayList<>();
        List<String> kinds = List.of("unary", "brief", "brings", "takes");
        for (int i = chance.nextInt(MAX_CALLS); i >= 0; i--) {
            Call call = new Call(kinds.get(chance.nextInt(kinds.size())));
            made.add(call);
            call.begin(calls);
            if (!sent(call, calls, peer)) {
                continue;
            }
            if (call.kind.equals("takes")) {
                await().pollInterval(Duration.ofMillis(1)).until(() -> call.outgoing.get() != null);
            }
            if (call.kind.equals("brings")) {
                peer.read(Wire.CREDIT);
            }
            call.act(chance, acts);
            call.answer(chance, frames);
        }
        if (last.equals("GOAWAY")) {
            frames.add(chance.nextInt(frames.size() + 1), RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER));
        }
        CyclicBarrier start = new CyclicBarrier(2);
        Future<?> acting = callers.submit(() -> {
            start.await(10, TimeUnit.SECONDS);
            acts.forEach(Runnable::run);
            return null;
        });
        start.await(10, TimeUnit.SECONDS);
        send(chance, peer, frames, last);
        acting.get(10, TimeUnit.SECONDS);
        races += made.size();
        for (Call call : made) {
            String end = call.end.get(10, TimeUnit.SECONDS);
            assertThat(call.endings).as(call.kind + ", ends").hasValueLessThanOrEqualTo(1);
            ends.merge(end, 1, Integer::sum);
        }
        if (last.isEmpty()) {
            passed(calls, peer, made);
        }
    }

    /** @return false if the time of the call was over before it was sent */
    private static boolean sent(Call call, Calls calls, RawServer.Peer peer) throws Exception {
        RawPeer.Frame request;
        if (call.kind.equals("brief")) {
            CompletableFuture<String> behind = calls.unary("behind");
            request = peer.read(Wire.REQUEST);
            boolean isGone = isBehind(request);
            peer.reply(isGone ? request.id() : peer.read(Wire.REQUEST).id(), "behind");
            assertThat(behind.get(10, TimeUnit.SECONDS)).isEqualTo("behind");
            if (isGone) {
                return false;
            }
        } else {
            request = peer.read(Wire.REQUEST);
        }
        call.id = request.id();
        return true;
    }

    private static boolean isBehind(RawPeer.Frame request) {
        return new String(RawServer.Request.of(request).body(), StandardCharsets.UTF_8).endsWith("behind");
    }

    private static void send(Random chance, RawServer.Peer peer, List<ByteBuf> frames, String last) throws IOException {
        int most = last.equals("close") ? chance.nextInt(frames.size() + 1) : frames.size();
        ByteBuf packet = Unpooled.buffer();
        for (ByteBuf frame : frames.subList(0, most)) {
            packet.writeBytes(frame);
            if (chance.nextInt(3) == 0) {
                peer.write(packet);
                packet.clear();
            }
        }
        try {
            peer.write(packet);
        } catch (SocketException closed) {
            assertThat(last).as("the connection may end: " + closed).isEqualTo("GOAWAY");
        }
        if (last.equals("close")) {
            peer.close();
        }
    }

    /**
     * Makes calls after the whole round. They show that the connection still serves, and that each slot of the round is
     * free for its next generation.
     */
    private static void passed(Calls calls, RawServer.Peer peer, List<Call> made) throws Exception {
        List<CompletableFuture<String>> next = new ArrayList<>();
        for (int i = 0; i < made.size(); i++) {
            next.add(calls.unary("next"));
        }
        for (int i = 0; i < made.size(); i++) {
            RawPeer.Frame request;
            try {
                request = peer.read(Wire.REQUEST);
            } catch (EOFException ended) {
                throw new AssertionError("the client has ended the connection", ended);
            }
            assertThat(request.id() >>> 16).isNotZero();
            assertThat(made).extracting(call -> call.id).doesNotContain(request.id());
            peer.reply(request.id(), "next");
        }
        for (CompletableFuture<String> call : next) {
            assertThat(call.get(10, TimeUnit.SECONDS)).isEqualTo("next");
        }
    }
}
