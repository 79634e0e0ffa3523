package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the metadata that go with single calls, and those that come back with replies and errors. */
@Timeout(60)
class CallMetadataTest {
    private static final Metadata TOLD = Metadata.EMPTY.with("told", "x");

    private static CallContext current() {
        return CallContext.current().orElseThrow();
    }

    @RPCXServer("metadata")
    static final class Service {
        private Calls self;

        @Method
        String sent(String name) {
            return String.valueOf(current().metadata().get(name));
        }

        @Method
        long remaining() {
            return current().remainingNanos();
        }

        @Method
        String tell(String text) {
            return CallContext.within(Duration.ofSeconds(5), () -> {
                current().reply("told", text.substring(0, Math.min(1, text.length())));
                return text;
            });
        }

        @Method
        CompletableFuture<String> tellLater(String text) {
            CallContext context = current();
            return CompletableFuture.supplyAsync(() -> {
                context.reply("told", text);
                return text;
            });
        }

        @Method
        String fail(String text) {
            current().reply("told", text);
            throw new RPCXException(RPCXException.Code.INVALID, text);
        }

        @Method
        String large(int characters) {
            current().reply("told", "x");
            current().reply("large", "y".repeat(characters));
            return "large";
        }

        @Method
        Flow.Publisher<String> items(int count) {
            current().reply("told", "x");
            if (count < 0) {
                throw new RPCXException(RPCXException.Code.INVALID, "no items");
            }
            return new StreamsTest.Made<>(count, i -> "item " + i);
        }

        @Method
        String inside(String name) {
            String without = self.sent(name);
            return without + " " + CallContext.with(name, "inner", () -> self.sent(name));
        }
    }

    @RPCXClient(remoteServerName = "metadata")
    interface Calls {
        String sent(String name);

        @Method("sent")
        CompletableFuture<String> sentLater(String name);

        long remaining();

        @Method(value = "remaining", timeoutMillis = 2_000)
        long remainingOfTwoSeconds();

        String tell(String text);

        CompletableFuture<String> tellLater(String text);

        String fail(String text);

        String large(int characters);

        String inside(String name);
    }

    @RPCXClient(remoteServerName = "metadata")
    interface StreamCalls {
        Flow.Publisher<String> items(int count);
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .classic(true)
            .interceptor((call, next) -> {
                if (call.arguments().length > 0 && call.arguments()[0].equals("intercepted")) {
                    current().reply("told", "x");
                    throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "no");
                }
                return next.proceed(call);
            })
            .build()
            .start();
    private final Client client = Client.builder().build();
    private final Calls calls = created(client, Calls.class);
    private final List<Metadata> heard = new CopyOnWriteArrayList<>();

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private <T> T created(Client by, Class<T> type) {
        return by.create(type, "127.0.0.1", server.port());
    }

    // ---- metadata of single calls

    @Test
    void metadataOfACallAreSentWithItAndWithNoOther() {
        assertThat(CallContext.with("a", "1", () -> calls.sent("a"))).isEqualTo("1");
        assertThat(calls.sent("a")).isEqualTo("null");
        assertThat(CallContext.with("a", "2", () -> calls.sentLater("a")).join())
                .isEqualTo("2");
        String both = CallContext.with(
                "a",
                "3",
                () -> CallContext.within(
                        Duration.ofSeconds(5),
                        () -> CallContext.with("b", "4", () -> calls.sent("a") + calls.sent("b"))));
        assertThat(both).isEqualTo("34");
        assertThat(CallContext.with("a", "5", () -> CallContext.with("a", "6", () -> calls.sent("a"))))
                .isEqualTo("6");
        assertThat(CallContext.current()).isEmpty();
    }

    @Test
    void anInterceptorSeesTheMetadataOfTheCallAndCanChangeThem() {
        try (Client other = Client.builder()
                .interceptor((call, next) ->
                        next.proceed(call.with("b", "seen " + call.metadata().get("a"))))
                .build()) {
            Calls intercepted = created(other, Calls.class);
            assertThat(CallContext.with("a", "1", () -> intercepted.sent("b"))).isEqualTo("seen 1");
            assertThat(CallContext.with("a", "1", () -> intercepted.sent("a"))).isEqualTo("1");
        }
    }

    /** What has come with a request is for its handler, and may be a secret. */
    @Test
    void metadataOfAHandledCallAreNotSentOnAndAHandlerAddsItsOwn() {
        service.self = calls;
        assertThat(CallContext.with("a", "outer", () -> calls.inside("a"))).isEqualTo("null inner");
    }

    @Test
    void metadataOfACallLeaveItsTimeAsItIs() {
        long least = TimeUnit.SECONDS.toNanos(2);
        long most = TimeUnit.SECONDS.toNanos(10);
        assertThat(CallContext.with("a", "1", calls::remaining)).isBetween(least, most);
        assertThat(CallContext.with("a", "1", calls::remainingOfTwoSeconds)).isBetween(1L, least);
        assertThat(CallContext.within(
                        Duration.ofSeconds(20), () -> CallContext.with("a", "1", calls::remainingOfTwoSeconds)))
                .isBetween(most, 2 * most);
    }

    @Test
    void whatCannotBeSentIsRefusedAtOnce() {
        assertThatThrownBy(() -> CallContext.with("", "1", () -> "x"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("metadata name: empty (expected: 1 or more characters)");
        assertThatThrownBy(() -> CallContext.with("a", "1", null))
                .isInstanceOf(NullPointerException.class)
                .hasMessageStartingWith("calls: null (expected: ");
        assertThatThrownBy(() -> CallContext.onReply(null, () -> "x"))
                .isInstanceOf(NullPointerException.class)
                .hasMessageStartingWith("listener: null (expected: ");
        assertThat(CallContext.current()).isEmpty();
    }

    // ---- metadata of replies

    private <T> T listening(Supplier<T> call) {
        heard.clear();
        return CallContext.onReply(heard::add, call);
    }

    @Test
    void metadataOfAReplyComeBeforeTheCallEnds() {
        assertThat(listening(() -> calls.tell("x"))).isEqualTo("x");
        assertThat(heard).containsExactly(TOLD);
        assertThat(listening(() -> calls.tellLater("x")).join()).isEqualTo("x");
        assertThat(heard).containsExactly(TOLD);
        String large = "x".repeat(100_000);
        assertThat(listening(() -> calls.tell(large))).isEqualTo(large);
        assertThat(heard).containsExactly(TOLD);
        assertThat(listening(() -> calls.sent("a"))).isEqualTo("null");
        assertThat(heard).isEmpty();
        assertThat(calls.tell("x")).isEqualTo("x");
        assertThat(heard).isEmpty();
    }

    /** After some replies of this kind, the callers' own threads read from the socket. */
    @Test
    void metadataOfAReplyAlsoComeIfTheCallersReadTheirReplies() {
        for (int i = 0; i < 200; i++) {
            assertThat(listening(() -> calls.sent("a"))).isEqualTo("null");
            if (i % 50 == 49) {
                assertThat(listening(() -> calls.tell("x"))).isEqualTo("x");
                assertThat(heard).containsExactly(TOLD);
            }
        }
    }

    @Test
    void metadataOfAnErrorComeToTheListenerAndInTheException() {
        RPCXException blocking = catchThrowableOfType(RPCXException.class, () -> listening(() -> calls.fail("x")));
        assertThat(blocking.metadata()).isEqualTo(TOLD);
        assertThat(heard).containsExactly(TOLD);
        RPCXException intercepted =
                catchThrowableOfType(RPCXException.class, () -> listening(() -> calls.tell("intercepted")));
        assertThat(intercepted.metadata()).isEqualTo(TOLD);
        assertThat(intercepted.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(heard).containsExactly(TOLD);
    }

    @Test
    void aStreamHasMetadataIfItEndsWithAnError() {
        StreamCalls streams = created(client, StreamCalls.class);
        StreamsTest.Collected<String> failed = new StreamsTest.Collected<>(1);
        listening(() -> streams.items(-1)).subscribe(failed);
        assertThatThrownBy(failed.end::join)
                .cause()
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.metadata()).isEqualTo(TOLD));
        assertThat(heard).containsExactly(TOLD);
        StreamsTest.Collected<String> whole = new StreamsTest.Collected<>(1);
        listening(() -> streams.items(2)).subscribe(whole);
        assertThat(whole.end.join()).containsExactly("item 0", "item 1");
        assertThat(heard).isEmpty();
    }

    @Test
    void anInterceptorListensToo() {
        try (Client other = Client.builder()
                .interceptor((call, next) -> next.proceed(call.onReply(heard::add)))
                .build()) {
            Calls intercepted = created(other, Calls.class);
            List<Metadata> second = new CopyOnWriteArrayList<>();
            assertThat(CallContext.onReply(second::add, () -> intercepted.tell("x")))
                    .isEqualTo("x");
            assertThat(heard).containsExactly(TOLD);
            assertThat(second).containsExactly(TOLD);
        }
    }

    @Test
    void aListenerThatThrowsChangesNothing() {
        for (int i = 0; i < 3; i++) {
            String told = CallContext.onReply(
                    metadata -> {
                        throw new IllegalStateException("by the listener");
                    },
                    () -> calls.tell("x"));
            assertThat(told).isEqualTo("x");
        }
    }

    @Test
    void moreThanAKibibyteIsTooLargeAndLeavesWhatWasThere() {
        assertThat(listening(() -> calls.large(1_000))).isEqualTo("large");
        assertThat(heard).containsExactly(TOLD.with("large", "y".repeat(1_000)));
        RPCXException large = catchThrowableOfType(RPCXException.class, () -> listening(() -> calls.large(1_001)));
        assertThat(large.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(large).hasMessage("metadata of 1025 bytes (expected: at most 1024)");
        assertThat(large.metadata()).isEqualTo(TOLD);
    }

    @Test
    void onTheClassicWireOnlyAnErrorHasMetadata() {
        try (Client classic = Client.builder().classic().build()) {
            Calls others = created(classic, Calls.class);
            assertThat(listening(() -> others.tell("x"))).isEqualTo("x");
            assertThat(heard).isEmpty();
            RPCXException error = catchThrowableOfType(RPCXException.class, () -> others.fail("x"));
            assertThat(error.metadata()).isEqualTo(TOLD);
        }
    }

    private RawPeer.Frame answered(ByteBuf settings, String text) throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.send(RawPeer.frame(Wire.SETTINGS, 0, settings));
            peer.send(RawPeer.request(1 << 16, "metadata", "tell", text));
            peer.readPreface();
            return peer.readAnswer();
        }
    }

    /** A client of an earlier version would read them as a part of the result. */
    @Test
    void onlyAClientThatSaysSoGetsMetadataWithAReply() throws IOException {
        ByteBuf settings = Unpooled.buffer();
        String text = "x".repeat(40);
        ProtoFields.writeNumber(settings, Settings.MAX_MESSAGE, 42);
        RawPeer.Frame plain = answered(settings, text);
        assertThat(plain.head()).isEqualTo(Wire.REPLY);
        assertThat(plain.payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text(text)));
        ProtoFields.writeNumber(settings, Settings.READS_REPLY_METADATA, 1);
        RawPeer.Frame told = answered(settings, text);
        assertThat(told.head()).isEqualTo(Wire.REPLY | Wire.METADATA);
        // the limit on the body does not count the metadata
        ByteBuf payload = Unpooled.wrappedBuffer(told.payload());
        assertThat(MetadataFields.read(payload)).isEqualTo(TOLD);
        assertThat(payload).isEqualTo(RawPeer.text(text));
    }

    @Test
    void aContextWithoutAHandledCallTakesMetadataOfAReplyAndDoesNothing() {
        assertThat(CallContext.within(Duration.ofSeconds(1), () -> {
                    current().reply("a", "1");
                    return calls.sent("a");
                }))
                .isEqualTo("null");
    }
}
