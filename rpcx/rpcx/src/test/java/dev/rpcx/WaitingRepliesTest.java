package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests what calls keep while their replies wait to be read, if an interceptor has begun their handlers from an event
 * loop.
 */
@Timeout(60)
class WaitingRepliesTest {
    private static final int GENERATION = 1 << 16;
    private static final int LARGE = 100_000;
    private static final int PART_BYTES = 16_000;

    @RPCXServer("waiting")
    static final class Service {
        Runnable meanwhile = () -> {};

        @Method
        String done(String text) {
            meanwhile.run();
            return "done";
        }
    }

    /**
     * The call goes on when this completes, on an event loop. An interceptor that checks a token elsewhere does the
     * same.
     */
    private CompletableFuture<String> answer = new CompletableFuture<>();

    /** The interceptor answers with this in place of the handler. If it is null, the interceptor does not answer. */
    private @Nullable CompletableFuture<String> early;

    /** The metadata of the calls, as the interceptor has seen them. */
    private final List<Metadata> given = new ArrayList<>();

    private final List<HandChannel> elsewhere = new ArrayList<>();
    private final HandPlatform platform = new HandPlatform();
    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .interceptor((call, next) -> {
                given.add(call.metadata());
                CompletableFuture<?> rest = answer.thenCompose(any -> {
                    try {
                        return (CompletableFuture<?>) next.proceed(call);
                    } catch (Throwable t) {
                        return CompletableFuture.failedFuture(t);
                    }
                });
                return early == null ? rest : early;
            })
            .platform(platform)
            .build()
            .start();
    private final EmbeddedChannel channel = platform.accept();

    @BeforeEach
    void greet() {
        send(RawPeer.preface());
    }

    @AfterEach
    void nothingIsLeft() {
        elsewhere.forEach(EmbeddedChannel::finishAndReleaseAll);
        channel.close();
        platform.handleAll(channel);
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    private void send(ByteBuf bytes) {
        send(channel, bytes);
    }

    private void send(EmbeddedChannel to, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(to, all, 0, all.length);
    }

    private long held(Resource kind) {
        return server.core().ledger().held(kind);
    }

    private Map<Resource, Long> allHeld() {
        Map<Resource, Long> all = new EnumMap<>(Resource.class);
        for (Resource each : Resource.values()) {
            all.put(each, held(each));
        }
        return all;
    }

    private void request() {
        arrive(channel);
        platform.handleAll(channel);
    }

    private void arrive(EmbeddedChannel to) {
        ByteBuf text = RawPeer.text("x".repeat(LARGE));
        ByteBuf prelude = RawPeer.prelude("waiting", "done");
        MetadataFields.write(prelude, Metadata.EMPTY.with("n", "v".repeat(5_000)));
        send(to, RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.METADATA | Wire.MORE, GENERATION, prelude));
        while (text.readableBytes() > PART_BYTES) {
            send(to, RawPeer.frame(Wire.PART | Wire.MORE, GENERATION, text.readSlice(PART_BYTES)));
        }
        send(to, RawPeer.frame(Wire.PART, GENERATION, text));
    }

    private void answerOnAnEventLoop() throws InterruptedException {
        Thread loop = new LoopThread(() -> answer.complete("good"), "of a client");
        loop.start();
        loop.join();
    }

    /**
     * The handler's thread, which was started by the interceptor, ends the call. The thread still runs when the reply
     * is queued.
     */
    @Test
    void whatItsRequestWasReadIntoIsGivenBackWithItsThread() throws InterruptedException {
        request();
        assertThat(held(Resource.OBJECT_BYTES)).isGreaterThan(LARGE / 2);
        answerOnAnEventLoop();
        platform.reads(channel, false);
        platform.handleAll(channel);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
        assertThat(held(Resource.REPLY_BYTES)).as("it waits").isPositive();
        assertThat(held(Resource.HANDLERS)).isZero();
        assertThat(server.core().running()).isZero();
        platform.reads(channel, true);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
        assertThat(held(Resource.CALLS)).as("its place is kept").isEqualTo(1);
    }

    /**
     * The interceptor has answered. The charges of the handler are given back when its thread ends, and those of the
     * reply when it is sent.
     */
    @Test
    void whatAThreadHasStaysChargedThoughTheReplyWaits() throws InterruptedException {
        CompletableFuture<String> answered = new CompletableFuture<>();
        early = answered;
        request();
        Map<Resource, Long> then = new EnumMap<>(Resource.class);
        service.meanwhile = () -> {
            platform.reads(channel, false);
            answered.complete("x".repeat(LARGE));
            platform.settle(channel);
            then.putAll(allHeld());
        };
        answerOnAnEventLoop();
        platform.handleAll(channel);
        assertThat(then.get(Resource.OBJECT_BYTES)).isGreaterThan(LARGE / 2);
        assertThat(then.get(Resource.REPLY_BYTES)).isGreaterThan(LARGE);
        assertThat(then).containsEntry(Resource.REQUEST_BYTES, 0L).containsEntry(Resource.HANDLERS, 1L);
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
        assertThat(held(Resource.HANDLERS)).isZero();
        assertThat(server.core().running()).isZero();
        assertThat(held(Resource.REPLY_BYTES)).as("it waits").isGreaterThan(LARGE);
        platform.reads(channel, true);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
    }

    /** A waiting reply is sent while the thread still runs. From then on its metadata count as the request's. */
    @Test
    void aReplyThatHasBeenSentBeforeAThreadHasEndedIsChargedNoLonger() throws InterruptedException {
        CompletableFuture<String> answered = new CompletableFuture<>();
        early = answered;
        request();
        Map<Resource, Long> then = new EnumMap<>(Resource.class);
        service.meanwhile = () -> {
            platform.reads(channel, false);
            answered.complete("a");
            platform.settle(channel);
            platform.reads(channel, true);
            then.putAll(allHeld());
        };
        answerOnAnEventLoop();
        platform.handleAll(channel);
        assertThat(then).containsEntry(Resource.REPLY_BYTES, 0L).containsEntry(Resource.KEPT_BYTES, 0L);
        assertThat(then.get(Resource.REQUEST_BYTES)).as("metadata").isBetween(5_000L, 20_000L);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    /** If such metadata counted as a reply that is not read, other calls of the connection could not begin. */
    @Test
    void theMetadataThatAThreadHasBehindAReplyCountsAsNoReply() throws InterruptedException {
        CompletableFuture<String> answered = new CompletableFuture<>();
        early = answered;
        request();
        Map<Resource, Long> then = new EnumMap<>(Resource.class);
        service.meanwhile = () -> {
            answered.complete("x".repeat(LARGE));
            then.putAll(allHeld());
        };
        answerOnAnEventLoop();
        platform.handleAll(channel);
        assertThat(then).containsEntry(Resource.REPLY_BYTES, 0L);
        assertThat(then.get(Resource.REQUEST_BYTES)).isBetween(5_000L, 20_000L);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    private void smallRequest(int id) {
        send(RawPeer.frame(
                Wire.REQUEST | Wire.NAMED,
                id,
                RawPeer.prelude("waiting", "done").writeBytes(RawPeer.text("a"))));
        platform.handleAll(channel);
    }

    /** Keeps a buffer at a place, as a call that has ended does for the next one. Returns what is held. */
    private long keepABuffer() {
        long before = held(Resource.KEPT_BYTES);
        answer.complete("good");
        request();
        answer = new CompletableFuture<>();
        long kept = held(Resource.KEPT_BYTES);
        assertThat(kept - before).isGreaterThan(LARGE);
        return kept;
    }

    /** Returns what is charged while a thread goes on with a small call that the interceptor has answered. */
    private Map<Resource, Long> heldBehind(String reply) throws InterruptedException {
        CompletableFuture<String> answered = new CompletableFuture<>();
        early = answered;
        smallRequest(2 * GENERATION);
        Map<Resource, Long> then = new EnumMap<>(Resource.class);
        service.meanwhile = () -> {
            answered.complete(reply);
            platform.settle(channel);
            then.putAll(allHeld());
        };
        answerOnAnEventLoop();
        platform.handleAll(channel);
        assertThat(then).containsEntry(Resource.REQUEST_BYTES, 0L).containsEntry(Resource.REPLY_BYTES, 0L);
        return then;
    }

    @Test
    void theInterceptorSeesWhatCameWithTheCall() {
        answer.complete("good");
        request();
        assertThat(given).extracting(all -> all.get("n")).containsExactly("v".repeat(5_000));
    }

    /** The call holds nothing else that could be given back before its thread has ended. */
    @Test
    void aBufferThatWasKeptStaysWithASmallCallWhoseThreadGoesOn() throws InterruptedException {
        long kept = keepABuffer();
        assertThat(heldBehind("a")).containsEntry(Resource.KEPT_BYTES, kept);
        assertThat(held(Resource.KEPT_BYTES)).isEqualTo(kept);
    }

    /** The thread may go on for long, and does not need the buffer. */
    @Test
    void aBufferThatWasKeptIsGivenUpBehindALargeReplyWhoseThreadGoesOn() throws InterruptedException {
        keepABuffer();
        assertThat(heldBehind("x".repeat(LARGE))).containsEntry(Resource.KEPT_BYTES, 0L);
        assertThat(held(Resource.KEPT_BYTES)).as("there is none any more").isZero();
    }

    /** Opens a connection. Where a test says so, its handlers run on other threads than its event loop. */
    private HandChannel connect(Account account) {
        HandChannel hand = new HandChannel(platform.ticker);
        elsewhere.add(hand);
        hand.pipeline().addLast(new ServerConnection(hand, server.core(), account, platform.ticker.nanoTime()));
        send(hand, RawPeer.preface());
        return hand;
    }

    private Account open() {
        return Objects.requireNonNull(server.core().ledger().open(null));
    }

    private void handleElsewhere(HandChannel hand) {
        hand.loop.isElsewhere = true;
        assertThat(platform.handle(0)).isTrue();
        hand.loop.isElsewhere = false;
    }

    private void end(HandChannel hand, Account account) {
        hand.finishAndReleaseAll();
        platform.handleAll(hand);
        account.close();
    }

    /** The reply is in the buffer of the request, and the event loop has not handled it yet. */
    @Test
    void aHandlersThreadGivesBackWhatTheRequestWasReadIntoAndChargesNoBufferTwice() {
        Account account = open();
        HandChannel hand = connect(account);
        answer.complete("good");
        arrive(hand);
        handleElsewhere(hand);
        assertThat(held(Resource.REQUEST_BYTES)).isGreaterThan(LARGE);
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
        // on a small heap the first bytes of the buffer are charged too
        assertThat(held(Resource.REPLY_BYTES)).isLessThanOrEqualTo(Charge.STEP_BYTES);
        platform.settle(hand);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        end(hand, account);
    }

    /** The thread that has made the result has already ended when the event loop finds that the reply waits. */
    @Test
    void whatAThreadHadIsGivenBackThoughItHasEndedBeforeItsReplyWaits() throws InterruptedException {
        Account account = open();
        HandChannel hand = connect(account);
        arrive(hand);
        platform.handleAll(hand);
        answerOnAnEventLoop();
        platform.settle(hand);
        handleElsewhere(hand);
        assertThat(held(Resource.OBJECT_BYTES)).isGreaterThan(LARGE / 2);
        platform.reads(hand, false);
        assertThat(held(Resource.REPLY_BYTES)).as("it waits").isPositive();
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
        assertThat(held(Resource.HANDLERS)).isZero();
        platform.reads(hand, true);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
        end(hand, account);
    }
}
