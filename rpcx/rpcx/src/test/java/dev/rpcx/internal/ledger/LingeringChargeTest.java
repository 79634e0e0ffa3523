package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.HandPlatform;
import dev.rpcx.Heap;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.server.HandledContext;
import dev.rpcx.internal.server.PendingResult;
import dev.rpcx.internal.server.ServerCall;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.server.Stages;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests what stays charged for calls whose callers are gone and whose handlers' futures go on, under a simulated clock.
 */
@Timeout(60)
@SuppressWarnings("this-escape") // a test that extends this one has its own interceptors
public class LingeringChargeTest {
    public static final int ID = 1 << 16;
    public static final int LARGE = 100_000;

    @RPCXServer("left")
    public static final class Service {
        public final ArrayDeque<CompletableFuture<Integer>> kept = new ArrayDeque<>();
        public final CompletableFuture<Integer> next = new CompletableFuture<>();

        /** Returns a future that holds its argument, as a handler's own work does. */
        @Method
        CompletableFuture<Integer> keeps(String text) {
            CompletableFuture<Integer> result = new CompletableFuture<>();
            kept.add(result);
            return result.thenApply(more -> text.length() + more);
        }

        @Method
        CompletableFuture<Integer> keepsAll(List<Wide> all) {
            CompletableFuture<Integer> result = new CompletableFuture<>();
            kept.add(result);
            return result.thenApply(more -> all.size() + more);
        }

        /** Returns the future that all callers wait for, for example that of the next change. */
        @Method
        CompletableFuture<Integer> shared(String text) {
            return next;
        }

        /** Returns a stage that cannot be asked whether it has ended. */
        @Method
        CompletionStage<Integer> asked(String text) {
            return text.isEmpty() ? CompletableFuture.completedStage(5) : next.minimalCompletionStage();
        }

        /** Returns a future that is never completed. */
        @Method
        CompletableFuture<Integer> loses(String text) {
            return new CompletableFuture<Integer>().thenApply(more -> text.length() + more);
        }
    }

    /** An element without values takes two bytes in a list, and 70 times as much memory. */
    public record Wide(
            long a,
            long b,
            long c,
            long d,
            long e,
            long f,
            long g,
            long h,
            long i,
            long j,
            long k,
            long l,
            long m,
            long n,
            long o,
            long p) {}

    public final HandPlatform platform = new HandPlatform();
    public final Service service = new Service();
    public final Server server = Inside.on(built(Server.builder(RegistryServer.registry(service))), platform)
            .build()
            .start();
    public final EmbeddedChannel channel = platform.accept();

    /** Returns the server of these tests. A subclass returns one with interceptors. */
    Server.Builder built(Server.Builder server) {
        return server;
    }

    @BeforeEach
    void greet() {
        send(RawPeer.preface());
    }

    @AfterEach
    void end() {
        channel.close();
        while (!service.kept.isEmpty()) {
            service.kept.remove().complete(1);
        }
        service.next.complete(1);
        platform.handleAll(channel);
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
    }

    void start(int id, String method, int bytes) {
        start(id, method, RawPeer.text("x".repeat(bytes)));
    }

    private void start(int id, String method, ByteBuf body) {
        ByteBuf part = RawPeer.prelude("left", method);
        int head = Wire.REQUEST | Wire.NAMED;
        do {
            part.writeBytes(body, Math.min(10_000, body.readableBytes()));
            send(RawPeer.frame(body.isReadable() ? head | Wire.MORE : head, id, part));
            part.clear();
            head = Wire.PART;
        } while (body.isReadable());
        platform.handleAll(channel);
    }

    /** Starts a call that is cancelled when its handler has returned, and then forgotten. */
    void startAndCancel(int id, String method, int bytes) {
        assertThat(Inside.core(server).running()).isZero();
        startAndCancelled(id, method, bytes);
        assertThat(Inside.core(server).running()).isZero();
    }

    private void startAndCancelled(int id, String method, int bytes) {
        startAndCancelled(id, method, RawPeer.text("x".repeat(bytes)));
    }

    private void startAndCancelled(int id, String method, ByteBuf body) {
        int others = Inside.core(server).running();
        start(id, method, body);
        assertThat(Inside.core(server).running()).isEqualTo(others + 1);
        send(RawPeer.frame(Wire.CANCEL, id, Unpooled.EMPTY_BUFFER));
        // this runs the cancellation of the handler
        platform.handleAll(channel);
        platform.pass(channel, 1_500, TimeUnit.MILLISECONDS);
        // this runs what interceptors have attached
        platform.handleAll(channel);
        HandPlatform.written(channel);
    }

    long held(Resource kind) {
        return Inside.core(server).ledger().held(kind);
    }

    /** Takes nearly all of this resource, so that not even the smallest amount is left. */
    List<Charge> takeAll(Resource kind) {
        List<Charge> taken = new ArrayList<>();
        for (long part = Inside.core(server).ledger().max(kind); part > 0; ) {
            Charge charge = Objects.requireNonNull(Inside.core(server).ledger().open(null))
                    .charge(kind);
            if (charge.add(part)) {
                taken.add(charge);
            } else {
                part /= 2;
            }
        }
        return taken;
    }

    @Test
    void whatALargeRequestWasReadIntoStaysChargedUntilTheFutureEnds() {
        startAndCancel(ID, "keeps", LARGE);
        assertThat(held(Resource.OBJECT_BYTES)).isGreaterThanOrEqualTo(LARGE);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        channel.close();
        platform.settle(channel);
        assertThat(held(Resource.OBJECT_BYTES)).isGreaterThanOrEqualTo(LARGE);
        service.kept.remove().complete(1);
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    @Test
    void manySmallRequestsAreChargedTooWhenTheirPlacesAreGivenBack() {
        int calls = 20;
        for (int i = 1; i <= calls; i++) {
            startAndCancel(i * ID, "keeps", 1_000);
        }
        assertThat(held(Resource.OBJECT_BYTES)).isGreaterThanOrEqualTo(calls * 1_000);
        assertThat(held(Resource.CALLS)).isEqualTo(1);
        while (!service.kept.isEmpty()) {
            service.kept.remove().complete(1);
        }
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
    }

    /** Two bytes of a list may be an object with many fields. */
    @Test
    void whatASmallRequestWasReadIntoIsChargedByItsObjectsAndNotByItsBytes() {
        int elements = 100;
        ByteBuf body = Unpooled.buffer();
        for (int i = 0; i < elements; i++) {
            body.writeByte(1 << 3 | 2).writeByte(0);
        }
        startAndCancelled(ID, "keepsAll", body);
        assertThat(held(Resource.CALLS)).isEqualTo(1);
        assertThat(held(Resource.OBJECT_BYTES)).isGreaterThanOrEqualTo(elements * (12 + 16 * 8));
        startAndCancelled(2 * ID, "keeps", 1);
        long one = held(Resource.OBJECT_BYTES);
        service.kept.remove().complete(1);
        assertThat(held(Resource.OBJECT_BYTES)).isLessThan(one).isBetween(1L, 1_000L);
    }

    @Test
    void whatNobodyCanReachIsGivenBackThoughItNeverEnds() {
        Heap.assumeCollected();
        startAndCancel(ID, "loses", LARGE);
        await().until(() -> {
            System.gc();
            return Inside.core(server).ledger().audit().isEmpty();
        });
    }

    @Test
    void whatTheCollectorHasFoundIsGivenBackBeforeAnybodyIsRefused() {
        Heap.assumeCollected();
        startAndCancel(ID, "loses", LARGE);
        List<Charge> taken = takeAll(Resource.OBJECT_BYTES);
        Charge other =
                Objects.requireNonNull(Inside.core(server).ledger().open(null)).charge(Resource.OBJECT_BYTES);
        await().until(() -> {
            System.gc();
            return other.add(1);
        });
        other.release();
        taken.forEach(Charge::release);
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
    }

    @Test
    void aGivenUpCallKeepsItsPlaceWhereItsObjectsCannotBeCharged() {
        Heap.assumeCollected();
        List<Charge> taken = takeAll(Resource.OBJECT_BYTES);
        for (int i = 1; i <= 3; i++) {
            // this is more than the step of a charge, which may be left
            startAndCancel(i * ID, "keeps", 5_000);
        }
        assertThat(held(Resource.CALLS)).isEqualTo(3);
        service.kept.remove().complete(1);
        assertThat(held(Resource.CALLS)).isEqualTo(2);
        channel.close();
        platform.settle(channel);
        assertThat(held(Resource.CALLS)).isEqualTo(2);
        while (!service.kept.isEmpty()) {
            service.kept.remove().complete(1);
        }
        assertThat(held(Resource.CALLS)).isZero();
        taken.forEach(Charge::release);
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    private ServerCall firstCall() throws ReflectiveOperationException {
        Field calls = ServerConnection.class.getDeclaredField("calls");
        calls.setAccessible(true);
        ServerCall[] all = (ServerCall[]) calls.get(channel.pipeline().get(ServerConnection.class));
        assertThat(all[0].body.capacity()).isGreaterThan(LARGE);
        return all[0];
    }

    /** A publisher that a handler keeps still has the object of its call. */
    @Test
    void aPlaceThatIsGivenUpHasNoBuffer() throws ReflectiveOperationException {
        start(ID, "keeps", LARGE);
        ServerCall call = firstCall();
        service.kept.remove().complete(1);
        platform.handleAll(channel);
        assertThat(held(Resource.KEPT_BYTES)).isGreaterThan(LARGE);
        assertThat(call.body.capacity()).isGreaterThan(LARGE);
        channel.close();
        platform.settle(channel);
        assertThat(call.body.capacity()).isZero();
    }

    @Test
    void norHasThatOfACallThatHasOutlastedItsConnection() throws ReflectiveOperationException {
        start(ID, "keeps", LARGE);
        ServerCall call = firstCall();
        channel.close();
        platform.settle(channel);
        service.kept.remove().complete(1);
        platform.handleAll(channel);
        assertThat(call.body.capacity()).isLessThanOrEqualTo(Outbound.FIRST_BYTES);
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    @Test
    void norHasOneThatWaitsForAFuture() throws ReflectiveOperationException {
        start(ID, "keeps", LARGE);
        ServerCall call = firstCall();
        List<Charge> taken = takeAll(Resource.OBJECT_BYTES);
        send(RawPeer.frame(Wire.CANCEL, ID, Unpooled.EMPTY_BUFFER));
        platform.handleAll(channel);
        platform.pass(channel, 1_500, TimeUnit.MILLISECONDS);
        platform.handleAll(channel);
        assertThat(held(Resource.CALLS)).isEqualTo(1);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(call.body.capacity()).isLessThanOrEqualTo(Outbound.FIRST_BYTES);
        taken.forEach(Charge::release);
    }

    /** The future of a call that a handler has made may keep the context for a long time. */
    @Test
    void aPlaceThatIsKeptAndTheContextOfItsLastCallKeepNothingOfEachOther() throws ReflectiveOperationException {
        start(ID, "keeps", LARGE);
        ServerCall call = firstCall();
        HandledContext context = call.context();
        context.onCancel(() -> {});
        service.kept.remove().complete(1);
        platform.handleAll(channel);
        assertThatThrownBy(call::context).isInstanceOf(NullPointerException.class);
        assertThat(context.cancel()).as("what wants to know of its end").isEmpty();
    }

    @Test
    void aSharedStageHoldsNothingOfCallsThatWereGivenUp() {
        int calls = 200;
        for (int i = 1; i <= calls; i++) {
            startAndCancel(i * ID, "shared", i % 2);
        }
        platform.handleAll(channel);
        assertThat(service.next.getNumberOfDependents()).as("our one hook").isEqualTo(1);
        assertThat(held(Resource.OBJECT_BYTES)).isLessThanOrEqualTo(4096);
        assertThat(Inside.core(server).ledger().lingeringCharges()).isEqualTo(1);
        assertThat(held(Resource.CALLS)).isEqualTo(1);
        service.next.complete(1);
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    @Test
    void everyCallThatWaitsForASharedStageHasItsResult() {
        start(ID, "shared", 1);
        start(2 * ID + 1, "shared", 1);
        startAndCancelled(3 * ID + 2, "shared", 1);
        start(4 * ID + 3, "shared", 1);
        assertThat(Inside.core(server).running()).isEqualTo(3);
        HandPlatform.written(channel);
        service.next.complete(7);
        platform.handleAll(channel);
        assertThat(Inside.core(server).running()).isZero();
        assertThat(answered()).containsExactlyInAnyOrder(ID, 2 * ID + 1, 4 * ID + 3);
    }

    /** Returns the ids of the calls that have been answered since the last call of this method. */
    private List<Integer> answered() {
        ByteBuf replies = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        List<Integer> ids = new ArrayList<>();
        while (replies.isReadable()) {
            ByteBuf frame = replies.readSlice((int) Varint.read(replies));
            assertThat(frame.readByte()).isEqualTo((byte) Wire.REPLY);
            ids.add(frame.readInt());
        }
        return ids;
    }

    @Test
    void aStageThatCannotBeAskedWhetherItHasEndedIsAwaited() {
        HandPlatform.written(channel);
        start(ID, "asked", 0);
        platform.handleAll(channel);
        assertThat(answered()).containsExactly(ID);
        start(2 * ID, "asked", 1);
        platform.handleAll(channel);
        assertThat(answered()).isEmpty();
        service.next.complete(1);
        platform.handleAll(channel);
        assertThat(answered()).containsExactly(2 * ID);
    }

    @Test
    void aFutureThatWasGivenUpIsChargedHoweverSmallItsRequest() {
        int calls = 100;
        for (int i = 1; i <= calls; i++) {
            startAndCancel(i * ID, "keeps", 0);
        }
        assertThat(held(Resource.OBJECT_BYTES)).isGreaterThanOrEqualTo(calls * PendingResult.MAX_LINGERING_BYTES);
        while (!service.kept.isEmpty()) {
            service.kept.remove().complete(1);
        }
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
    }

    @Test
    void whatNobodyCanReachIsGivenBackByWhatIsHandedOverNext() {
        Heap.assumeCollected();
        int before = Stages.hung();
        for (int i = 1; i <= 50; i++) {
            startAndCancel(i * ID, "loses", 1);
        }
        AtomicInteger next = new AtomicInteger(50);
        await().until(() -> {
            System.gc();
            for (int i = 0; i < 10; i++) {
                startAndCancel(next.incrementAndGet() * ID, "loses", 1);
            }
            return Inside.core(server).ledger().lingeringCharges() < 35 && Stages.hung() < before + 35;
        });
        await().until(() -> {
            System.gc();
            return Inside.core(server).ledger().audit().isEmpty();
        });
    }
}
