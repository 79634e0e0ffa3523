package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.ServerCall;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.server.ServerCore;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.epoll.Epoll;
import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests replies that the threads of handlers write themselves, over a real socket, while the test holds the event loop
 * up.
 */
@Timeout(60)
class ServerHereTest {
    private static final int FIRST = 1 << 16;
    private static final int PATIENCE_MILLIS = 10_000;

    @RPCXServer("here")
    static final class Service {
        final BlockingQueue<String> begun = new LinkedBlockingQueue<>();
        final Semaphore mayEnd = new Semaphore(0);
        volatile @Nullable Thread thread;
        final Queue<CompletableFuture<String>> open = new ConcurrentLinkedQueue<>();

        @Method
        @RunOn(RunOn.Place.POOL)
        String waits(String text) throws InterruptedException {
            thread = Thread.currentThread();
            begun.add(text);
            mayEnd.acquire();
            return text;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String counts(List<String> texts) throws InterruptedException {
            waits(Integer.toString(texts.size()));
            return "a";
        }

        /** Blocks its event loop until it may end, so that later calls on this loop wait. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String blocksAt(String text) throws InterruptedException {
            if (text.equals("blocks")) {
                begun.add(text);
                LoopChecker.waitOnPurpose(mayEnd::acquire);
            }
            return "a";
        }

        /** Answers with as many letters. */
        @Method
        @RunOn(RunOn.Place.POOL)
        String much(int letters) throws InterruptedException {
            return waits("a".repeat(letters));
        }

        /** Returns a future that only the test ends, when the test is over. */
        @Method
        @RunOn(RunOn.Place.POOL)
        CompletionStage<String> never() {
            CompletableFuture<String> result = new CompletableFuture<>();
            open.add(result);
            begun.add("never");
            return result;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        CompletionStage<String> first(Flow.Publisher<String> items) {
            CompletableFuture<String> first = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(1);
                }

                @Override
                public void onNext(String item) {
                    first.complete(item);
                }

                @Override
                public void onError(Throwable thrown) {}

                @Override
                public void onComplete() {}
            });
            return first;
        }
    }

    private interface Body {
        void run() throws Exception;
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .host("127.0.0.1")
            .eventLoops(1)
            .poolSize(1)
            // the number is small, so that each call may hold as much uncharged on a small heap as on a large one
            .maxRunning(64)
            .build()
            .start();
    private RawPeer peer;
    private ServerConnection connection;

    @BeforeAll
    static void epoll() {
        assumeTrue(Epoll.isAvailable(), "threads write to sockets themselves on Linux only");
    }

    @BeforeEach
    void connect() throws Exception {
        peer = new RawPeer(server.port());
        peer.socket.setSoTimeout(PATIENCE_MILLIS);
        peer.send(RawPeer.preface());
        peer.readPreface();
        Field connections = ServerCore.class.getDeclaredField("connections");
        connections.setAccessible(true);
        Map<?, ?> all = (Map<?, ?>) connections.get(server.core());
        await().until(() -> !all.isEmpty());
        connection = (ServerConnection) all.values().iterator().next();
        // after a first call, the peer has read the server's settings
        call(FIRST);
        service.mayEnd.release();
        expectReply(FIRST);
    }

    @AfterEach
    void end() throws IOException {
        peer.close();
        server.close();
        service.open.forEach(result -> result.complete("late"));
    }

    private void call(int id) throws Exception {
        peer.send(RawPeer.request(id, "here", "waits", "a"));
        assertThat(service.begun.poll(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)).isEqualTo("a");
        // when this task runs, the loop that has read the request has given the socket back to threads
        onLoop(() -> {});
    }

    private void onLoop(Runnable task) {
        CompletableFuture.runAsync(task, connection.loop())
                .orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)
                .join();
    }

    private void whileTheLoopIsBusy(Body body) throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        CompletableFuture<Void> done = CompletableFuture.runAsync(
                () -> {
                    begun.countDown();
                    try {
                        LoopChecker.waitOnPurpose(end::await);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                },
                connection.loop());
        begun.await();
        try {
            body.run();
        } finally {
            end.countDown();
        }
        done.orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS).join();
    }

    private void expectReply(int id) throws IOException {
        RawPeer.Frame frame = peer.readAnswer();
        assertThat(frame.head()).isEqualTo(Wire.REPLY);
        assertThat(frame.id()).isEqualTo(id);
        assertThat(frame.payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text("a")));
    }

    @Test
    void aLoneReplyIsSentWhileTheLoopIsBusyAndItsSlotIsFree() throws Exception {
        for (int i = 2; i < 5; i++) {
            int id = i * FIRST;
            call(id);
            whileTheLoopIsBusy(() -> {
                service.mayEnd.release();
                expectReply(id);
                assertThat(server.core().ledger().audit())
                        .as("the call is over")
                        .isEmpty();
            });
        }
    }

    private void callMuch(int id, int letters) throws Exception {
        ByteBuf arguments = RawPeer.prelude("here", "much").writeByte(1 << 3);
        Varint.write(arguments, letters);
        peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, id, arguments));
        assertThat(service.begun.poll(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)).hasSize(letters);
        onLoop(() -> {});
    }

    private long held(Resource kind) {
        return server.core().ledger().held(kind);
    }

    @Test
    void aLargeReplyIsChargedByItsThreadAndSentByTheLoop() throws Exception {
        callMuch(2 * FIRST, 10_000);
        whileTheLoopIsBusy(() -> {
            service.mayEnd.release();
            await().until(() -> held(Resource.REPLY_BYTES) > 10_000);
            assertThat(peer.socket.getInputStream().available()).isZero();
        });
        RawPeer.Frame reply = peer.readAnswer();
        assertThat(reply.head()).isEqualTo(Wire.REPLY);
        assertThat(reply.payload()).hasSizeGreaterThan(10_000);
        await().until(() -> held(Resource.REPLY_BYTES) == 0);
    }

    @Test
    void aLargeReplyForWhichThereIsNoRoomIsRefused() throws Exception {
        callMuch(2 * FIRST, 10_000);
        List<Account> others = new ArrayList<>();
        for (boolean hasTaken = true; hasTaken; ) {
            hasTaken = false;
            Account other = Objects.requireNonNull(server.core().ledger().open(null));
            others.add(other);
            for (long step = 1L << 40; step > 0; step /= 2) {
                while (other.tryCharge(Resource.REPLY_BYTES, step)) {
                    hasTaken = true;
                }
            }
        }
        service.mayEnd.release();
        RawPeer.Frame answer = peer.readAnswer();
        for (Account other : others) {
            other.release(Resource.REPLY_BYTES, other.held(Resource.REPLY_BYTES));
            other.close();
        }
        assertThat(answer.head()).isEqualTo(Wire.ERROR);
        RPCXException error = WireError.read(Unpooled.wrappedBuffer(answer.payload()));
        assertThat(error.code()).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(error.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        // the next small reply is written by its thread again
        call(3 * FIRST);
        whileTheLoopIsBusy(() -> {
            service.mayEnd.release();
            expectReply(3 * FIRST);
        });
    }

    /**
     * The charge of a call is released when its reply is sent. The loop sees at once that it is sent, but a thread does
     * not.
     */
    @Test
    void aReplyWhoseRequestIsChargedIsTheLoops() throws Exception {
        ByteBuf payload = RawPeer.prelude("here", "waits");
        MetadataFields.write(payload, Metadata.EMPTY.with("n", "v".repeat(5_000)));
        payload.writeBytes(RawPeer.text("a"));
        peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.METADATA, 2 * FIRST, payload));
        assertThat(service.begun.poll(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)).isEqualTo("a");
        onLoop(() -> {});
        assertThat(held(Resource.REQUEST_BYTES)).isPositive();
        Thread handler = Objects.requireNonNull(service.thread);
        whileTheLoopIsBusy(() -> {
            service.mayEnd.release();
            await().until(() -> server.core().running() == 0);
            await().until(() -> Arrays.stream(handler.getStackTrace())
                    .noneMatch(frame -> frame.getClassName().equals(ServerCall.class.getName())));
            assertThat(peer.socket.getInputStream().available()).isZero();
        });
        expectReply(2 * FIRST);
        await().until(() -> held(Resource.REQUEST_BYTES) == 0);
    }

    /** A list of 2,000 empty texts takes 4,000 bytes of a frame, and much more of the heap. */
    @Test
    void whatARequestWasReadIntoIsGivenBackBeforeItsReplyIsSent() throws Exception {
        for (int i = 2; i < 4; i++) {
            int id = i * FIRST;
            ByteBuf arguments = RawPeer.prelude("here", "counts");
            for (int text = 0; text < 2_000; text++) {
                arguments.writeByte(1 << 3 | 2).writeByte(0);
            }
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, id, arguments));
            assertThat(service.begun.poll(PATIENCE_MILLIS, TimeUnit.MILLISECONDS))
                    .isEqualTo("2000");
            onLoop(() -> {});
            assertThat(held(Resource.OBJECT_BYTES)).isGreaterThan(16 * 1024);
            whileTheLoopIsBusy(() -> {
                service.mayEnd.release();
                expectReply(id);
                assertThat(held(Resource.OBJECT_BYTES)).isZero();
            });
        }
    }

    @Test
    void oneOfTwoRepliesIsTheLoops() throws Exception {
        call(2 * FIRST);
        peer.send(RawPeer.request(2 * FIRST + 1, "here", "waits", "a"));
        await().until(() -> server.core().running() == 2);
        whileTheLoopIsBusy(() -> {
            service.mayEnd.release();
            // there is only one thread, so it has given the reply before
            assertThat(service.begun.poll(PATIENCE_MILLIS, TimeUnit.MILLISECONDS))
                    .isEqualTo("a");
            assertThat(peer.socket.getInputStream().available()).isZero();
        });
        expectReply(2 * FIRST);
        service.mayEnd.release();
        expectReply(2 * FIRST + 1);
    }

    @Test
    void repliesToManyRequestsAreSentWhileMoreOfThemAreRead() throws Exception {
        int before = 64;
        // there is only one thread: while it waits here, it has given the first reply, and the loop has the socket
        // again
        call(FIRST + before + 1);
        ByteBuf all = Unpooled.buffer();
        for (int i = 0; i <= before; i++) {
            String text = i < before ? "a" : "blocks";
            all.writeBytes(RawPeer.request(2 * FIRST + i, "here", "blocksAt", text));
        }
        peer.send(all);
        assertThat(service.begun.poll(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)).isEqualTo("blocks");
        try {
            for (int i = 0; i < before; i++) {
                expectReply(2 * FIRST + i);
            }
        } finally {
            service.mayEnd.release(2);
        }
        assertThat(Set.of(peer.readAnswer().id(), peer.readAnswer().id()))
                .containsExactlyInAnyOrder(FIRST + before + 1, 2 * FIRST + before);
    }

    @Test
    void aConnectionThatEndsAfterAReplyThatTheLoopHasNotHeardOfHoldsNothing() throws Exception {
        call(2 * FIRST);
        whileTheLoopIsBusy(() -> {
            service.mayEnd.release();
            expectReply(2 * FIRST);
            peer.close();
        });
        await().until(() -> server.core().connections() == 0);
        assertThat(server.core().ledger().held(Resource.CALLS)).isZero();
    }

    @Test
    void aConnectionThatDrainsEndsAfterAReplyThatTheLoopHasNotHeardOf() throws Exception {
        call(2 * FIRST);
        whileTheLoopIsBusy(() -> {
            service.mayEnd.release();
            expectReply(2 * FIRST);
            peer.send(RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER));
        });
        assertThat(peer.readToEnd()).isEmpty();
    }

    @Test
    void aSubscriberOnAnotherThreadIsToldOfItsItems() throws Exception {
        ByteBuf prelude = RawPeer.prelude("here", "first");
        peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, 2 * FIRST, prelude));
        assertThat(peer.readAnswer().type()).isEqualTo(Wire.CREDIT);
        peer.send(RawPeer.frame(Wire.ITEM, 2 * FIRST, RawPeer.text("a")));
        expectReply(2 * FIRST);
    }

    @Test
    void futuresThatDoNotEndAreGivenUpAlsoWhereTheirConnectionIsOver() throws Exception {
        for (int i = 0; i < 2; i++) {
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, 2 * FIRST + i, RawPeer.prelude("here", "never")));
            assertThat(service.begun.poll(PATIENCE_MILLIS, TimeUnit.MILLISECONDS))
                    .isEqualTo("never");
        }
        peer.send(RawPeer.frame(Wire.CANCEL, 2 * FIRST, Unpooled.EMPTY_BUFFER));
        assertThat(peer.readAnswer().type()).isEqualTo(Wire.ERROR);
        peer.close();
        await().until(() -> server.core().connections() == 0);
        await().until(() -> server.core().running() == 0);
    }
}
