package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.WriteTurn;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireConnection;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.epoll.Epoll;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests a thread that writes its message to the socket itself. The socket is real, and the test blocks the event loop
 * for as long as it wants.
 */
@Timeout(60)
class WireHereTest {
    private static final int LARGEST = WriteTurn.MAX_BYTES - Wire.MAX_HEADER_BYTES;
    private static final int PATIENCE_MILLIS = 10_000;

    private final Loops loops = new Loops(1, "here", false);
    private final Ledger ledger = new Ledger("here", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final List<String> told = new CopyOnWriteArrayList<>();
    private final CompletableFuture<String> closed = new CompletableFuture<>();
    private volatile Runnable onClosed = () -> {};
    private volatile boolean answersAll;
    private volatile int answerBytes = 5_000;
    private @Nullable Connection server;
    private @Nullable RawPeer peer;

    private final class Connection extends WireConnection {
        Connection(Channel channel) {
            super(channel, WireHereTest.this.account);
        }

        @Override
        public void onPreface(int version) {}

        @Override
        public void onFrame(int head, int id, ByteBuf payload) {
            told.add(id + " has come");
            if (answersAll) {
                send(new TestMessage(id, answerBytes));
            }
        }

        @Override
        public int maxBytesTaken() {
            return Integer.MAX_VALUE;
        }

        @Override
        public void beforeRead() {}

        @Override
        public void onClosed(String why) {
            onClosed.run();
            closed.complete(why);
        }
    }

    private final class TestMessage extends Outbound {
        Runnable here = () -> {};
        boolean goesHere = true;

        TestMessage(int id, int bytes) {
            this(id, Unpooled.buffer().writeZero(bytes));
        }

        TestMessage(int id, ByteBuf body) {
            super(body);
            head = Wire.REPLY;
            this.id = id;
        }

        @Override
        public boolean beforeSend() {
            return true;
        }

        @Override
        public boolean beforeDirectWrite() {
            here.run();
            return goesHere;
        }

        @Override
        public void onSent() {
            told.add(id + " by the loop");
        }

        @Override
        public void onDropped() {
            told.add(id + " lost");
        }
    }

    private interface Body {
        void run() throws Exception;
    }

    @BeforeAll
    static void epoll() {
        assumeTrue(Epoll.isAvailable(), "threads write to sockets themselves on Linux only");
    }

    @BeforeEach
    void connect() throws Exception {
        Accepted<Connection> accepted =
                Accepted.by(loops, loops.server().childOption(ChannelOption.SO_SNDBUF, 4_096), Connection::new);
        peer = accepted.peer();
        peer.socket.setSoTimeout(PATIENCE_MILLIS);
        server = accepted.handler();
    }

    @AfterEach
    void end() throws IOException {
        connection().inLoopOrHere(() -> connection().close("the test is over"));
        closed.orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS).join();
        endOfTheSocket();
        loops.close(Long.MAX_VALUE);
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    /**
     * Closes the peer and waits for the end of the channel. The last bytes have then been sent, and the channel's timer
     * has ended.
     */
    private void endOfTheSocket() throws IOException {
        peer().close();
        assertThat(connection().channel.closeFuture().awaitUninterruptibly(PATIENCE_MILLIS))
                .isTrue();
    }

    private Connection connection() {
        return Objects.requireNonNull(server);
    }

    private RawPeer peer() {
        return Objects.requireNonNull(peer);
    }

    private void onLoop(Runnable task) {
        CompletableFuture.runAsync(task, connection().loop())
                .orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)
                .join();
    }

    /** Blocks the loop while {@code body} runs. Then the loop runs {@code then} before anything else. */
    private void whileTheLoopIsBusy(Body body, Runnable then) throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        CompletableFuture<Void> done = CompletableFuture.runAsync(
                () -> {
                    begun.countDown();
                    try {
                        end.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                    then.run();
                },
                connection().loop());
        begun.await();
        try {
            body.run();
        } finally {
            end.countDown();
        }
        done.orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS).join();
    }

    private void whileTheLoopIsBusy(Body body) throws Exception {
        whileTheLoopIsBusy(body, () -> {});
    }

    /** Has the loop write the greeting. From here on threads may use the socket. */
    private void greet() throws IOException {
        onLoop(() -> {
            connection().sendPreface();
            connection().sendNow(Wire.PING, 1);
        });
        peer().readPreface();
        expect(1, 0);
    }

    private void expect(int id, int bytes) throws IOException {
        RawPeer.Frame frame = peer().read();
        assertThat(frame.id()).isEqualTo(id);
        assertThat(frame.payload()).hasSize(bytes);
    }

    private boolean sendHere(int id, int bytes) {
        return connection().sendHere(new TestMessage(id, bytes));
    }

    /** Does the same as {@link #greet}, and the peer greets too. */
    private ChannelHandlerContext greetBoth() throws IOException {
        greet();
        ChannelHandlerContext context = connection().channel.pipeline().context(connection());
        onLoop(() -> connection().channelRead(context, Unpooled.buffer().writeBytes(RawPeer.preface())));
        return context;
    }

    private static ByteBuf request(int id, int bytes) {
        return RawPeer.frame(Wire.REQUEST, id, Unpooled.buffer().writeZero(bytes));
    }

    /** The peer can work on the answers meanwhile. A frame counts as one more frame for each 512 bytes. */
    @ParameterizedTest
    @CsvSource({
        "0, 64, 10, false",
        "500, 64, 10, false",
        "507, 32, 10, false",
        "5000, 7, 10, false",
        "5000, 7, 5000, false",
        "5000, 7, 5000, true",
        "16000, 2, 5000, false"
    })
    void whatHasComeOfSomeFramesIsSentBeforeTheRestIsRead(int bytes, int frames, int answer, boolean isCut)
            throws Exception {
        ChannelHandlerContext context = greetBoth();
        connection().channel.config().setOption(ChannelOption.SO_SNDBUF, 1 << 20);
        answersAll = true;
        answerBytes = answer;
        onLoop(() -> {
            for (int i = 1; i < 2 * frames; i++) {
                ByteBuf frame = request(i, bytes);
                if (isCut) {
                    connection().channelRead(context, frame.readRetainedSlice(100));
                }
                connection().channelRead(context, frame);
            }
        });
        for (int i = 1; i <= frames; i++) {
            expect(i, answer);
        }
        // this runs after the task that takes the rest from the queue
        onLoop(() -> {});
        assertThat(peer().available()).as("what has come of the others").isZero();
        onLoop(() -> connection().channelReadComplete(context));
        for (int i = frames + 1; i < 2 * frames; i++) {
            expect(i, answer);
        }
    }

    /**
     * What the socket has not taken is not written to the channel either before all has been read, because such a write
     * might end the connection.
     */
    @Test
    void whatComesOfFramesWaitsForTheEndOfTheReadOnceTheSocketHasNotTakenAll() throws Exception {
        ChannelHandlerContext context = greetBoth();
        answersAll = true;
        int[] queued = new int[1];
        int[] last = new int[1];
        // the peer does not read: one read may not send enough to fill the buffers of both ends
        while (queued[0] == 0 && last[0] < 10_000) {
            onLoop(() -> {
                for (int i = 0; i < 20; i++) {
                    connection().channelRead(context, request(++last[0], 5_000));
                }
                queued[0] = connection().channel.unsafe().outboundBuffer().size();
            });
            assertThat(queued[0]).as("in the channel's queue within a read").isZero();
            onLoop(() -> {
                connection().channelReadComplete(context);
                queued[0] = connection().channel.unsafe().outboundBuffer().size();
            });
        }
        assertThat(queued[0]).as("the socket is full").isPositive();
        assertThat(account.held(Resource.QUEUE_BYTES))
                .as("what waits is charged")
                .isPositive();
        for (int i = 1; i <= last[0]; i++) {
            expect(i, 5_000);
        }
    }

    /** The rest of the batch is charged by its bytes. The whole buffer may be many times as large. */
    @Test
    void ofABatchThatTheSocketHasTakenInPartOnlyTheRestIsHeld() throws Exception {
        ChannelHandlerContext context = greetBoth();
        answersAll = true;
        answerBytes = 16_000;
        int[] last = new int[1];
        ByteBuf[] queued = new ByteBuf[1];
        while (queued[0] == null && last[0] < 10_000) {
            onLoop(() -> {
                for (int i = 0; i < 7; i++) {
                    connection().channelRead(context, request(++last[0], 5_000));
                }
                connection().channelReadComplete(context);
                queued[0] =
                        (ByteBuf) connection().channel.unsafe().outboundBuffer().current();
            });
        }
        assertThat(queued[0]).as("the socket is full").isNotNull();
        // where the socket has taken nothing, what the buffer has grown by is held as well
        long most = account.held(Resource.QUEUE_BYTES) / 5 * 6;
        assertThat((long) queued[0].capacity()).isLessThanOrEqualTo(most);
        for (int i = 1; i <= last[0]; i++) {
            expect(i, 16_000);
        }
    }

    /** A batch has room for messages that wait behind it. The peer may cancel the call of such a message. */
    @Test
    void ofRoomForAMessageThatIsTakenBackNothingIsHeld() throws Exception {
        ChannelHandlerContext context = greetBoth();
        int[] last = new int[1];
        int[] queued = new int[1];
        long[] held = new long[1];
        while (queued[0] < 5 && last[0] < 10_000) {
            onLoop(() -> {
                connection().channelRead(context, request(++last[0], 0));
                TestMessage recalled = new TestMessage(-1, 200_000);
                connection().sendNow(recalled);
                connection().sendNow(new TestMessage(last[0], 5_000));
                connection().recall(recalled);
                connection().channelReadComplete(context);
                ChannelOutboundBuffer all = connection().channel.unsafe().outboundBuffer();
                queued[0] = all.size();
                held[0] = 0;
                try {
                    all.forEachFlushedMessage(each -> {
                        held[0] += ((ByteBuf) each).capacity();
                        return true;
                    });
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
        }
        assertThat(queued[0]).as("the socket is full").isGreaterThanOrEqualTo(5);
        assertThat(held[0]).isLessThanOrEqualTo(2 * account.held(Resource.QUEUE_BYTES));
        for (int i = 1; i <= last[0]; i++) {
            expect(i, 5_000);
        }
    }

    @Test
    void messagesAreSentWhileTheLoopIsBusy() throws Exception {
        greet();
        whileTheLoopIsBusy(() -> {
            assertThat(sendHere(2, 10)).isTrue();
            expect(2, 10);
            assertThat(sendHere(3, 0)).isTrue();
            assertThat(sendHere(4, 200)).isTrue();
            expect(3, 0);
            expect(4, 200);
        });
        assertThat(told).isEmpty();
    }

    @Test
    void whatIsLargerThanAThreadWritesIsTheLoops() throws Exception {
        greet();
        assertThat(sendHere(2, LARGEST + 1)).isFalse();
        assertThat(sendHere(3, LARGEST)).isTrue();
        expect(3, LARGEST);
    }

    @Test
    void ofABodyIsSentWhatHasNotBeenRead() throws Exception {
        greet();
        ByteBuf body = Unpooled.buffer().writeBytes(new byte[] {9, 8, 7, 6, 5}).skipBytes(2);
        assertThat(connection().sendHere(new TestMessage(2, body))).isTrue();
        RawPeer.Frame frame = peer().read();
        assertThat(frame.id()).isEqualTo(2);
        assertThat(frame.payload()).containsExactly(7, 6, 5);
    }

    /** The length takes one byte up to 127. */
    @Test
    void aLengthIsReadWhetherItHasOneByteOrTwo() throws Exception {
        greet();
        for (int bytes = 127 - Wire.HEAD_BYTES - 1; bytes <= 128 - Wire.HEAD_BYTES + 1; bytes++) {
            assertThat(sendHere(bytes, bytes)).isTrue();
            expect(bytes, bytes);
        }
    }

    @Test
    void beforeTheLoopHasWrittenNoThreadDoes() throws Exception {
        assertThat(sendHere(2, 1)).isFalse();
        greet();
        assertThat(sendHere(2, 1)).isTrue();
        expect(2, 1);
    }

    @Test
    void nothingOvertakesWhatIsQueued() throws Exception {
        greet();
        whileTheLoopIsBusy(() -> {
            connection().send(new TestMessage(2, 1));
            assertThat(sendHere(3, 1)).isFalse();
        });
        expect(2, 1);
        assertThat(told).containsExactly("2 by the loop");
    }

    @Test
    void aMessageThatDoesNotGoGivesTheTurnToTheNext() throws Exception {
        greet();
        whileTheLoopIsBusy(() -> {
            TestMessage stays = new TestMessage(2, 1);
            stays.goesHere = false;
            assertThat(connection().sendHere(stays)).isFalse();
            assertThat(sendHere(3, 1)).isTrue();
            expect(3, 1);
        });
    }

    @Test
    void aLoopThatFoundNothingToWriteGivesUpTheTurn() throws Exception {
        greet();
        for (int i = 0; i < 3; i++) {
            onLoop(() -> connection().sendQueued());
            assertThat(sendHere(2, 1)).isTrue();
            expect(2, 1);
        }
    }

    @Test
    void aLoopThatHasSentWhatWasQueuedGivesUpTheTurnAtOnce() throws Exception {
        greet();
        boolean[] went = new boolean[1];
        onLoop(() -> {
            connection().send(new TestMessage(2, 1));
            connection().sendQueued();
            // the loop's task for the first is still to come
            went[0] = CompletableFuture.supplyAsync(() -> sendHere(3, 1)).join();
        });
        assertThat(went[0]).isTrue();
        expect(2, 1);
        expect(3, 1);
    }

    @Test
    void aMessageThatSaysNothingOfItGoesByTheLoop() throws Exception {
        greet();
        assertThat(connection().sendHere(Outbound.Control.empty(Wire.PING, 2))).isFalse();
        assertThat(sendHere(3, 1)).isTrue();
        expect(3, 1);
    }

    @Test
    void aNewLoopReadsWhatComesFirst() throws Exception {
        peer().send(RawPeer.preface());
        peer().send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
        await().until(() -> told.contains("7 has come"));
    }

    @Test
    void whatTheLoopWantsToWriteMeanwhileFollows() throws Exception {
        greet();
        TestMessage message = new TestMessage(2, 1);
        message.here = () -> onLoop(() -> connection().sendNow(Wire.PING, 3));
        assertThat(connection().sendHere(message)).isTrue();
        expect(2, 1);
        expect(3, 0);
        // this is also true if the message itself may not be written here
        TestMessage stays = new TestMessage(4, 1);
        stays.goesHere = false;
        boolean[] asked = new boolean[1];
        stays.here = () -> {
            asked[0] = true;
            onLoop(() -> connection().sendNow(Wire.PING, 5));
        };
        await().until(() -> {
            assertThat(connection().sendHere(stays)).isFalse();
            return asked[0];
        });
        expect(5, 0);
    }

    /**
     * Sends messages from one thread until the socket takes no more.
     *
     * @return how many messages were sent, the first of them with this id
     */
    private int fill(int first) {
        int id = first;
        while (sendHere(id, LARGEST)) {
            id++;
            assertThat(id).as("the socket takes an end").isLessThan(100_000);
        }
        return id - first;
    }

    @Test
    void whatTheSocketDoesNotTakeTheLoopWritesInOrder() throws Exception {
        greet();
        int[] sent = new int[1];
        whileTheLoopIsBusy(() -> sent[0] = fill(10));
        for (int i = 0; i < sent[0]; i++) {
            expect(10 + i, LARGEST);
        }
        await().until(() -> sendHere(7, 3));
        expect(7, 3);
        assertThat(told).isEmpty();
    }

    @Test
    void theLoopWritesTheRestOfAFrameBeforeItsOwnEvenIfNobodyHasToldItYet() throws Exception {
        greet();
        int[] waiting = new int[1];
        int[] sent = new int[1];
        // a socket that has just grown may take the rest, and then no message can wait behind it
        for (int round = 0; round < 50 && waiting[0] <= 6_000; round++) {
            whileTheLoopIsBusy(() -> sent[0] = fill(10), () -> {
                connection().sendNow(new TestMessage(8, 6_000));
                waiting[0] = (int)
                        Objects.requireNonNull(connection().channel.unsafe().outboundBuffer())
                                .totalPendingWriteBytes();
            });
            for (int i = 0; i < sent[0]; i++) {
                expect(10 + i, LARGEST);
            }
            expect(8, 6_000);
            await().until(() -> sendHere(7, 3));
            expect(7, 3);
        }
        assertThat(waiting[0]).as("its own is behind it").isGreaterThan(6_000);
    }

    @Test
    void muchOfTheLoopsOwnFollowsTheRestOfAFrame() throws Exception {
        greet();
        int[] sent = new int[1];
        whileTheLoopIsBusy(
                () -> sent[0] = fill(10),
                () -> connection().sendTogether(() -> {
                    for (int i = 1; i <= 8; i++) {
                        connection().sendNow(new TestMessage(-i, 1_000));
                    }
                }));
        for (int i = 0; i < sent[0]; i++) {
            expect(10 + i, LARGEST);
        }
        for (int i = 1; i <= 8; i++) {
            expect(-i, 1_000);
        }
    }

    @Test
    void whatTheLoopWritesUntilTheSocketTakesNoMoreComesOnceAndInOrder() throws Exception {
        greet();
        int[] sent = new int[1];
        onLoop(() -> {
            ChannelOutboundBuffer queue =
                    Objects.requireNonNull(connection().channel.unsafe().outboundBuffer());
            while (queue.isEmpty()) {
                connection().sendTogether(() -> {
                    for (int i = 0; i < 30; i++) {
                        connection().sendNow(new TestMessage(10 + sent[0]++, 1_000));
                    }
                });
                assertThat(sent[0]).as("the socket takes an end").isLessThan(200_000);
            }
        });
        for (int i = 0; i < sent[0]; i++) {
            expect(10 + i, 1_000);
        }
    }

    /** Reads to the end. The bytes have to be the beginning of this many such messages and a PING, in order. */
    private void expectNothingButTheBeginOf(int messages, ByteBuf body) throws IOException {
        ByteBuf sent = Unpooled.buffer();
        for (int i = 0; i < messages; i++) {
            sent.writeBytes(RawPeer.frame(Wire.REPLY, 10 + i, body));
        }
        sent.writeBytes(RawPeer.frame(Wire.PING, 8, Unpooled.EMPTY_BUFFER));
        byte[] read = peer().readToEnd();
        assertThat(read.length).isLessThanOrEqualTo(sent.readableBytes());
        assertThat(Arrays.mismatch(read, ByteBufUtil.getBytes(sent, 0, read.length)))
                .as("the first byte that is another's")
                .isEqualTo(-1);
    }

    /** Fills the socket. Then the loop has to send a PING after that, for which something fails. */
    private void failBehindARest(Runnable failing) throws Exception {
        ByteBuf body = Unpooled.buffer(LARGEST);
        while (body.isWritable()) {
            body.writeByte('x');
        }
        int[] sent = new int[1];
        whileTheLoopIsBusy(
                () -> {
                    while (connection().sendHere(new TestMessage(10 + sent[0], body.duplicate()))) {
                        sent[0]++;
                        assertThat(sent[0]).as("the socket takes an end").isLessThan(100_000);
                    }
                },
                () -> {
                    failing.run();
                    try {
                        connection().sendNow(Wire.PING, 8);
                    } catch (OutOfMemoryError again) {
                        // the same error ended the connection before
                    }
                });
        closed.orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS).join();
        expectNothingButTheBeginOf(sent[0], body);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void noBytesOfOthersBecomeTheRestOfAFrameForWhichThereIsNoMemory(int times) throws Exception {
        greet();
        FailingAllocator memory = new FailingAllocator();
        failBehindARest(() -> {
            connection().channel.config().setAllocator(memory);
            memory.failAtNext(times);
        });
        assertThat(memory.hasFailed()).isTrue();
    }

    @Test
    void noBytesOfOthersBecomeTheRestOfAFrameThatTheChannelHasThrownAway() throws Exception {
        greet();
        failBehindARest(() -> connection().channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            private boolean hasFailed;

            @Override
            public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
                if (hasFailed || !((ByteBuf) message).isReadable()) {
                    ctx.write(message, promise);
                    return;
                }
                hasFailed = true;
                ((ByteBuf) message).release();
                throw new OutOfMemoryError("of this test");
            }
        }));
    }

    /** Messages that wait for the loop learn of the end, however often it fails. */
    @Test
    void whatIsQueuedBehindARestForWhichThereIsNoMemoryIsLost() throws Exception {
        greet();
        FailingAllocator memory = new FailingAllocator();
        whileTheLoopIsBusy(() -> {
            fill(10);
            connection().send(new TestMessage(8, 1));
            connection().channel.config().setAllocator(memory);
            memory.failAtNext(Integer.MAX_VALUE);
        });
        closed.orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS).join();
        connection().send(new TestMessage(9, 1));
        onLoop(() -> {});
        assertThat(told).containsExactly("8 lost", "9 lost");
        memory.failAtNext(0);
    }

    @Test
    void aMessageThatFailsAsItIsWrittenEndsTheConnection() throws Exception {
        greet();
        TestMessage fails = new TestMessage(2, 1);
        fails.here = () -> {
            throw new IllegalStateException("of this test");
        };
        assertThatThrownBy(() -> connection().sendHere(fails)).hasMessage("of this test");
        closed.orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS).join();
        assertThat(sendHere(3, 1)).isFalse();
        assertThat(peer().readToEnd()).isEmpty();
    }

    @Test
    void aMessageThatCannotBeCopiedLeavesAllAsItWas() throws Exception {
        greet();
        TestMessage fails = new TestMessage(2, Unpooled.directBuffer().writeZero(10));
        try {
            assertThatThrownBy(() -> connection().sendHere(fails)).isInstanceOf(UnsupportedOperationException.class);
        } finally {
            fails.body.release();
        }
        await().until(() -> sendHere(3, 1));
        expect(3, 1);
    }

    @Test
    void noThreadWritesOnceTheConnectionEnds() throws Exception {
        greet();
        CompletableFuture<Boolean> late = new CompletableFuture<>();
        onClosed = () -> late.complete(
                CompletableFuture.supplyAsync(() -> sendHere(2, 1)).join());
        onLoop(() -> connection().close("of this test"));
        assertThat(late.join()).isFalse();
        assertThat(peer().readToEnd()).isEmpty();
        assertThat(sendHere(3, 1)).isFalse();
    }

    @Test
    void afterTheLoopHasEndedMessagesAreLostAndTasksRunWhereTheyAre() throws Exception {
        greet();
        assertThat(connection().inLoop()).isFalse();
        boolean[] inside = new boolean[1];
        onLoop(() -> inside[0] = connection().inLoop());
        assertThat(inside[0]).isTrue();
        onLoop(() -> connection().close("of this test"));
        endOfTheSocket();
        loops.close(Long.MAX_VALUE);
        connection().send(new TestMessage(2, 1));
        connection().send(new TestMessage(3, 1));
        assertThat(told).containsExactly("2 lost", "3 lost");
        Thread[] ran = new Thread[1];
        connection().inLoopOrHere(() -> ran[0] = Thread.currentThread());
        assertThat(ran[0]).isSameAs(Thread.currentThread());
        assertThat(account.held(Resource.TIMERS)).isZero();
    }

    @Test
    void aLoopThatIsEndedInTheMidstOfATaskClosesItsSocketsAllTheSame() throws Exception {
        greet();
        whileTheLoopIsBusy(loops::end);
        loops.close(Long.MAX_VALUE);
        assertThat(connection().channel.isOpen()).isFalse();
        assertThat(peer().readToEnd()).isEmpty();
    }
}
