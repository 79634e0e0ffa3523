package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that a server does in time what it has to do for a client that uses many slots, or only one. */
@Timeout(60)
class ManyDeadlinesTest {
    private static final int GENERATION = 1 << 16;
    private static final int SLOTS = 1_000;

    /** The server finds deadlines that are closer together than this by one look. */
    private static final int LATENESS_MILLIS = 5;

    @RPCXServer("many")
    static final class Service {
        final List<CompletableFuture<String>> results = new ArrayList<>();
        final List<String> told = new ArrayList<>();

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> later(String text) {
            CompletableFuture<String> result = new CompletableFuture<>();
            results.add(result);
            return result;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> told(String text) {
            CallContext.current().orElseThrow().onCancel(() -> told.add(text));
            return later(text);
        }

        /** Answers before its subscriber has received anything. */
        @Method
        String early(Flow.Publisher<String> given) {
            given.subscribe(new StreamsTest.Collected<>(1));
            return "enough";
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final Service service = new Service();
    private Server server = server(Server.builder(RegistryServer.registry(service)));
    private EmbeddedChannel channel = hand.accept();

    private Server server(Server.Builder builder) {
        return builder.platform(hand).build().start();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    private void call(int id, String method, int millis) {
        ByteBuf payload = RawPeer.prelude("many", method);
        Varint.write(payload, millis * 1_000L);
        if (method.equals("later")) {
            payload.writeBytes(RawPeer.text("a"));
        }
        send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME, id, payload));
    }

    /** Returns the type of the final frame of each call that has had one since the last look, by the call's id. */
    private Map<Integer, Integer> ends() {
        Map<Integer, Integer> ends = new HashMap<>();
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        while (in.isReadable()) {
            ByteBuf frame = in.readSlice((int) Varint.read(in));
            int type = frame.readUnsignedByte() & Wire.TYPE_MASK;
            int id = frame.readInt();
            if (type == Wire.REPLY || type == Wire.ERROR) {
                ends.put(id, type);
            }
        }
        return ends;
    }

    private void greet() {
        send(RawPeer.preface());
        // the preface of the server is no frame
        HandPlatform.written(channel);
    }

    @AfterEach
    void end() {
        channel.close();
        service.results.forEach(result -> result.complete("too late"));
        hand.handleAll(channel);
        hand.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    /** Slots, times and cancels are random. Each call whose time is over gets its error in time. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void eachOfManyCallsIsToldInItsTime(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        greet();
        Map<Integer, Integer> dueMillis = new HashMap<>();
        int[] generations = new int[SLOTS];
        int longest = random.nextInt(50, 4_000);
        int toldInTime = 0;
        for (int now = 0; now < 6_000; now++) {
            for (int i = random.nextInt(4); i > 0; i--) {
                int slot = random.nextInt(SLOTS);
                int busy = generations[slot] * GENERATION | slot;
                if (dueMillis.containsKey(busy)) {
                    if (random.nextInt(3) == 0) {
                        send(RawPeer.frame(Wire.CANCEL, busy, Unpooled.EMPTY_BUFFER));
                        dueMillis.remove(busy);
                    }
                    continue;
                }
                int id = ++generations[slot] * GENERATION | slot;
                int millis = random.nextInt(20) == 0 ? 5 : random.nextInt(5, longest);
                call(id, "later", millis);
                dueMillis.put(id, now + millis);
            }
            ends();
            hand.pass(channel, 1, TimeUnit.MILLISECONDS);
            for (int id : ends().keySet()) {
                Integer due = dueMillis.remove(id);
                assertThat(due).as("a call under way").isNotNull();
                assertThat(now + 1).as("told").isBetween(due, due + LATENESS_MILLIS);
                toldInTime++;
            }
            int at = now + 1;
            assertThat(dueMillis.values()).as("not told in time").allMatch(due -> at <= due + LATENESS_MILLIS);
        }
        assertThat(toldInTime).isGreaterThan(500);
    }

    /** If there are many notices, a handler may learn up to a tenth of a second late that its time is over. */
    @Test
    void theHandlersOfManyNoticesAreToldThatTheirTimeIsOver() {
        greet();
        SplittableRandom random = new SplittableRandom(1);
        Map<String, Integer> dueMillis = new HashMap<>();
        for (int i = 0; i < 300; i++) {
            int millis = random.nextInt(5, 3_000);
            ByteBuf payload = RawPeer.prelude("many", "told");
            Varint.write(payload, millis * 1_000L);
            payload.writeBytes(RawPeer.text("n" + i));
            send(RawPeer.frame(Wire.NOTICE | Wire.NAMED | Wire.TIME, GENERATION * (i + 1), payload));
            dueMillis.put("n" + i, millis);
        }
        for (int now = 1; now <= 3_200; now++) {
            hand.pass(channel, 1, TimeUnit.MILLISECONDS);
            for (String one : service.told) {
                int due = dueMillis.remove(one);
                assertThat(now).as(one).isBetween(due, due + 100 + LATENESS_MILLIS);
            }
            service.told.clear();
        }
        assertThat(dueMillis).isEmpty();
    }

    /** A call whose thread still runs after its answer no longer counts among the calls that its client may have. */
    @Test
    void aCallThatHasItsAnswerGivesItsPlaceToTheNextThoughAThreadRunsForIt() {
        end();
        server = server(Server.builder(RegistryServer.registry(service)).maxCalls(1));
        channel = hand.accept();
        greet();
        for (int generation = 1; generation < 10; generation++) {
            int id = generation * GENERATION;
            call(id, "early", 1_000);
            assertThat(ends()).as("call " + generation + " is taken").isEmpty();
            if (generation % 2 == 1) {
                hand.handle(0);
                hand.settle(channel);
            } else {
                // this also runs the subscriber of the call before, which has waited for a thread until now
                hand.handleAll(channel);
            }
            assertThat(ends()).containsEntry(id, Wire.REPLY);
        }
    }
}
