package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.RPCXException.Code;
import dev.rpcx.RPCXException.Executed;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.client.Attempts;
import dev.rpcx.internal.client.CallSlots;
import dev.rpcx.internal.client.ClassicClientConnection;
import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.client.ClientCall;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.client.ClientMethod;
import dev.rpcx.internal.client.ClientSteps;
import dev.rpcx.internal.client.ClientStream;
import dev.rpcx.internal.client.FutureCall;
import dev.rpcx.internal.client.Health;
import dev.rpcx.internal.client.PendingConnection;
import dev.rpcx.internal.client.RequestWriter;
import dev.rpcx.internal.client.RetryBudget;
import dev.rpcx.internal.client.Route;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.SchemaFrames;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests a client's side of the native wire without sockets and threads. The test acts as the server, and decides what
 * time it is.
 */
class ClientWireTest {
    /** Id of the first call in slot 0. */
    private static final int FIRST = 1 << 16;

    private record Frame(int head, int id, byte[] payload) {}

    @RPCXClient(remoteServerName = "hand")
    interface Remote {
        CompletableFuture<String> echo(String text);

        @Method(timeoutMillis = 1_000)
        CompletableFuture<String> brief(String text);

        Flow.Publisher<String> brings(int items);

        Flow.Publisher<String> bringsOf(String text);

        Flow.Publisher<String> bringsOfBytes(byte[] bytes);

        @Method(timeoutMillis = 1_000)
        Flow.Publisher<String> bringsBriefly(int items);

        Flow.Publisher<String> both(Flow.Publisher<String> items);

        CompletableFuture<Integer> takes(Flow.Publisher<String> items);

        @OneWay
        void note(String text);

        @OneWay
        @Method(idempotent = true)
        void bytes(byte[] bytes);

        @Method(idempotent = true)
        CompletableFuture<String> again(String text);

        @Method(idempotent = true, hedgeMillis = 50)
        CompletableFuture<String> hedged(String text);
    }

    /** A subscriber that keeps the items and the end of its stream. */
    private static final class Seen implements Flow.Subscriber<String> {
        final List<String> items = new ArrayList<>();
        final int first;
        Flow.@Nullable Subscription subscription;

        @Nullable
        Throwable failure;

        int ends;
        boolean cancelsAtOnce;
        boolean breaksARule;

        /** A subscription that brings nothing, and does not end. */
        static final class Never implements Flow.Subscription {
            @Override
            public void request(long items) {}

            @Override
            public void cancel() {}
        }

        Seen(int first) {
            this.first = first;
        }

        Flow.Subscription subscription() {
            return Objects.requireNonNull(subscription);
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            if (first > 0) {
                given.request(first);
            }
            if (breaksARule) {
                given.request(0);
            }
            if (cancelsAtOnce) {
                given.cancel();
            }
        }

        @Override
        public void onNext(String item) {
            items.add(item);
        }

        @Override
        public void onError(Throwable thrown) {
            failure = thrown;
            ends++;
        }

        @Override
        public void onComplete() {
            ends++;
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final Client client = Client.builder()
            .platform(hand)
            .eventLoops(1)
            .connections(1, 1)
            .keepAlive(Duration.ofMinutes(10))
            .circuitBreaker(0.5)
            .build();
    private final Remote remote = client.create(Remote.class, "peer", 1);
    private final ArrayDeque<Frame> frames = new ArrayDeque<>();
    private final ByteBuf said = Unpooled.buffer();
    private final List<CompletableFuture<?>> calls = new ArrayList<>();
    private @Nullable EmbeddedChannel channel;
    private @Nullable ClientConnection connection;
    private boolean greeted;

    @AfterEach
    void nothingIsLeft() {
        hand.end(client, channel(), calls);
        assertThat(client.core().ledger().held(Resource.CONNECTIONS)).isZero();
    }

    private EmbeddedChannel channel() {
        return Objects.requireNonNull(channel);
    }

    /** Takes the connection that the client has made last, for whatever reason, as the one to test. */
    private void connecting() {
        channel = hand.opened.get(hand.opened.size() - 1);
        greeted = false;
        said.clear();
        hand.settle(channel);
        connection = channel.pipeline().get(ClientConnection.class);
    }

    private CompletableFuture<String> echo(String text) {
        CompletableFuture<String> call = remote.echo(text);
        calls.add(call);
        if (channel == null) {
            connecting();
        }
        hand.settle(channel());
        return call;
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel(), all, 0, all.length);
    }

    private void send(int head, int id, ByteBuf payload) {
        send(RawPeer.frame(head, id, payload));
    }

    private void send(int head, int id) {
        send(head, id, Unpooled.EMPTY_BUFFER);
    }

    private void sendError(int id, Code code, Executed executed) {
        ByteBuf error = Unpooled.buffer();
        WireError.write(error, new RPCXException(code, "by the test", executed, null));
        send(Wire.ERROR, id, error);
    }

    private void dictionary(int head, String... names) {
        ByteBuf entries = Unpooled.buffer();
        ByteBuf scratch = Unpooled.buffer();
        for (int i = 0; i < names.length; i++) {
            MethodDictionary.write(entries, scratch, "hand", names[i], i + 1, 0, MethodDictionary.UNKNOWN_SHAPE);
        }
        send(head, 0, entries);
    }

    /** Connects by a first call, which takes slot 0 and is answered. */
    private void open() {
        CompletableFuture<String> first = echo("first");
        assertThat(first).isNotDone();
        send(RawPeer.preface());
        assertThat(next().head()).isEqualTo(Wire.SETTINGS);
        expectNothing();
        dictionary(Wire.DICTIONARY, "echo", "brings");
        Frame request = next();
        assertThat(request.head() & Wire.TYPE_MASK).isEqualTo(Wire.REQUEST);
        send(Wire.REPLY, request.id(), RawPeer.text("first"));
        assertThat(first).isCompletedWithValue("first");
    }

    private void look() {
        said.writeBytes(HandPlatform.written(channel()));
        if (!greeted && said.readableBytes() >= Wire.PREFACE_BYTES) {
            said.skipBytes(Wire.PREFACE_BYTES);
            greeted = true;
        }
        while (said.isReadable()) {
            int length = Varint.readLength(said, Wire.MAX_FRAME_BYTES, "a frame");
            Frame frame = new Frame(said.readUnsignedByte(), said.readInt(), new byte[length - Wire.HEAD_BYTES]);
            said.readBytes(frame.payload());
            frames.add(frame);
        }
    }

    private Frame next() {
        look();
        assertThat(frames).as("a frame").isNotEmpty();
        return frames.remove();
    }

    private void expectNothing() {
        look();
        assertThat(frames).isEmpty();
    }

    private Frame expect(int type) {
        Frame frame = next();
        assertThat(frame.head() & Wire.TYPE_MASK).isEqualTo(type);
        return frame;
    }

    private void expectCredit(int id, long items) {
        Frame frame = expect(Wire.CREDIT);
        assertThat(frame.id()).isEqualTo(id);
        assertThat(Varint.read(Unpooled.wrappedBuffer(frame.payload()))).isEqualTo(items);
    }

    private void pass(long millis) {
        hand.pass(channel(), millis, TimeUnit.MILLISECONDS);
    }

    private static RPCXException failure(CompletableFuture<?> call) {
        assertThat(call).isCompletedExceptionally();
        return (RPCXException) call.handle((value, thrown) -> Objects.requireNonNull(thrown))
                .thenApply(thrown -> thrown instanceof java.util.concurrent.CompletionException e
                        ? Objects.requireNonNull(e.getCause())
                        : thrown)
                .join();
    }

    private static RPCXException failure(Seen seen) {
        assertThat(seen.ends).isEqualTo(1);
        return (RPCXException) Objects.requireNonNull(seen.failure);
    }

    private Seen subscribe(Flow.Publisher<String> stream, Seen seen) {
        stream.subscribe(seen);
        if (channel != null) {
            hand.settle(channel());
        }
        return seen;
    }

    // ---- the connection

    @Test
    void aCallWaitsForTheDictionaryAndThenGoesByItsNumber() {
        CompletableFuture<String> call = echo("a");
        send(RawPeer.preface());
        Frame settings = expect(Wire.SETTINGS);
        assertThat(settings.id()).isZero();
        ByteBuf both = Unpooled.buffer();
        ProtoFields.writeNumber(both, Settings.MAX_MESSAGE, Wire.MAX_MESSAGE_BYTES);
        ProtoFields.writeNumber(both, Settings.DEFAULT_MICROS, 10_000_000);
        ProtoFields.writeNumber(both, Settings.READS_REPLY_METADATA, 1);
        assertThat(settings.payload()).isEqualTo(ByteBufUtil.getBytes(both));
        Settings read = Settings.read(Unpooled.wrappedBuffer(settings.payload()));
        assertThat(read.maxMessageBytes()).isEqualTo(Wire.MAX_MESSAGE_BYTES);
        assertThat(read.defaultMicros()).isEqualTo(10_000_000);
        dictionary(Wire.DICTIONARY | Wire.MORE, "other", "echo");
        expectNothing();
        send(Wire.DICTIONARY, 0);
        Frame request = expect(Wire.REQUEST);
        assertThat(request.id()).isEqualTo(FIRST);
        assertThat(request.payload()).startsWith(2);
        send(Wire.REPLY, request.id(), RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
        // what the server does not publish is called by its name
        calls.add(remote.brief("c"));
        hand.settle(channel());
        Frame named = next();
        assertThat(named.head() & Wire.NAMED).isEqualTo(Wire.NAMED);
        assertThat(new String(named.payload(), java.nio.charset.StandardCharsets.UTF_8))
                .contains("brief");
        send(Wire.REPLY, named.id(), RawPeer.text("d"));
    }

    @Test
    void aClientTellsWhatTheServerPublishes() {
        open();
        ClientConnection connection = connection();
        assertThat(connection.published().join()).containsExactly("hand/brings", "hand/echo");
    }

    private ClientConnection connection() {
        return Objects.requireNonNull(connection);
    }

    @Test
    void aDictionaryAfterTheDictionaryAndSettingsTwiceEndTheConnection() {
        open();
        send(Wire.SETTINGS, 0);
        assertThat(connection().isUsable()).isTrue();
        CompletableFuture<String> call = echo("a");
        expect(Wire.REQUEST);
        send(Wire.SETTINGS, 0);
        assertThat(failure(call).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(call).executed()).isEqualTo(Executed.MAYBE);
        assertThat(failure(call)).hasMessageContaining("settings twice");
        Frame error = expect(Wire.ERROR);
        assertThat(error.id()).isZero();
        assertThat(connection().isUsable()).isFalse();
    }

    @Test
    void aSecondDictionaryEndsTheConnection() {
        open();
        send(Wire.DICTIONARY, 0);
        expect(Wire.ERROR);
        assertThat(connection().isUsable()).isFalse();
        assertThat(connection().isDrainingOrClosed()).isTrue();
    }

    @Test
    void settingsBoundRequestsAndCalls() {
        open();
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.MAX_MESSAGE, 100);
        ProtoFields.writeNumber(settings, Settings.MAX_CALLS, 2);
        send(Wire.SETTINGS, 0, settings);
        assertThat(connection().maxBytesTaken()).isEqualTo(100);
        CompletableFuture<String> large = echo("x".repeat(200));
        assertThat(failure(large).code()).isEqualTo(Code.TOO_LARGE);
        CompletableFuture<String> one = echo("a");
        CompletableFuture<String> two = echo("b");
        CompletableFuture<String> three = echo("c");
        assertThat(failure(three).code()).isEqualTo(Code.OVERLOADED);
        assertThat(connection().isCrowded()).isTrue();
        assertThat(connection().load()).isEqualTo(2);
        for (CompletableFuture<String> call : List.of(one, two)) {
            send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("z"));
            assertThat(call).isCompletedWithValue("z");
        }
        assertThat(connection().isCrowded()).isFalse();
        assertThat(connection().load()).isZero();
    }

    // ---- schemas

    /** Hash of the schema that this client has of {@code echo}. */
    private static final long ECHO_HASH = MethodSchema.of(
                    method("echo"), null, Codecs.standard(Remote.class).schema())
            .hash();

    private static java.lang.reflect.Method method(String name) {
        return java.util.Arrays.stream(Remote.class.getMethods())
                .filter(method -> method.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    /** Connects to a server that publishes two methods with these hashes. */
    private CompletableFuture<String> connectTo(long echoHash, long bringsHash) {
        CompletableFuture<String> call = echo("a");
        list(echoHash, bringsHash);
        return call;
    }

    private void list(long echoHash, long bringsHash) {
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        ByteBuf entries = Unpooled.buffer();
        ByteBuf scratch = Unpooled.buffer();
        int shape = MethodDictionary.UNKNOWN_SHAPE;
        MethodDictionary.write(entries, scratch, "hand", "echo", 1, echoHash, shape);
        MethodDictionary.write(entries, scratch, "hand", "brings", 2, bringsHash, shape);
        send(Wire.DICTIONARY, 0, entries);
    }

    private void expectQuestion(int... numbers) {
        Frame question = expect(Wire.SCHEMA);
        assertThat(question.id()).isZero();
        List<Integer> asked = new ArrayList<>();
        SchemaFrames.readQuestion(Unpooled.wrappedBuffer(question.payload()), asked::add);
        assertThat(asked)
                .containsExactlyElementsOf(
                        java.util.Arrays.stream(numbers).boxed().toList());
        expectNothing();
    }

    private static MethodSchema.Type type(String member, String type) {
        return new MethodSchema.Type(
                MethodSchema.Kind.CALL, "T", List.of(new MethodSchema.Member(1, member, type, List.of())));
    }

    private static ByteBuf members(int method, MethodSchema.Type... types) {
        return SchemaFrames.answer(method, List.of(types)).get(0);
    }

    private void answers(CompletableFuture<String> call, int number) {
        Frame request = expect(Wire.REQUEST);
        assertThat(request.head() & Wire.NAMED).isZero();
        assertThat(request.payload()).startsWith(number);
        send(Wire.REPLY, request.id(), RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
    }

    @Test
    void aServerWithOtherHashesIsAskedBeforeTheFirstCallAndOnlyForThese() {
        CompletableFuture<String> call = connectTo(1, MethodSchema.NO_HASH);
        expectQuestion(1);
        assertThat(call).isNotDone();
        send(Wire.SCHEMA | Wire.MORE, 7, members(1, type("who", "bytes")));
        expectNothing();
        assertThat(client.core().ledger().held(Resource.TABLE_BYTES)).isPositive();
        send(Wire.SCHEMA, 0, members(1, type("value", "string")));
        answers(call, 1);
        assertThat(client.core().ledger().held(Resource.TABLE_BYTES)).isZero();
        send(Wire.SCHEMA, 0, members(1, type("value", "int32")));
        answers(echo("c"), 1);
    }

    @Test
    void aServerWithTheSameHashesOrWithoutThemIsNotAsked() {
        answers(connectTo(ECHO_HASH, MethodSchema.NO_HASH), 1);
        openAgainWithout();
    }

    private void openAgainWithout() {
        channel().close();
        connectAgain();
        ByteBuf entries = Unpooled.buffer();
        MethodDictionary.write(
                entries, Unpooled.buffer(), "hand", "echo", 1, MethodSchema.NO_HASH, MethodDictionary.UNKNOWN_SHAPE);
        send(Wire.DICTIONARY, 0, entries);
        answers(echo("a"), 1);
    }

    @Test
    void aMethodThatWouldBeMisreadIsRefusedAndTheOthersAreCalled() {
        CompletableFuture<String> call = connectTo(1, 2);
        expectQuestion(1, 2);
        ByteBuf both = Unpooled.wrappedBuffer(
                members(1, type("text", "string"), type("value", "int32")),
                members(2, type("items", "int64"), type("value", "string")));
        send(Wire.SCHEMA, 0, both);
        expectNothing();
        for (CompletableFuture<String> refused : List.of(call, echo("b"))) {
            assertThat(failure(refused).code()).isEqualTo(Code.INVALID);
            assertThat(failure(refused).executed()).isEqualTo(Executed.NOT_EXECUTED);
            assertThat(failure(refused))
                    .hasMessage("hand/echo at peer:1 has another schema: number 1 is to the client EchoReply.value"
                            + " (string) and to the server T.value (int32) (expected: one type on both sides)");
        }
        expectNothing();
        assertThat(connection().load()).isZero();
        Seen seen = subscribe(remote.brings(1), new Seen(1));
        Frame request = expect(Wire.REQUEST);
        assertThat(request.payload()).startsWith(2);
        expectCredit(request.id(), 1);
        send(Wire.REPLY, request.id());
        assertThat(seen.ends).isEqualTo(1);
    }

    /** What a server may send in place of what it was asked for. */
    private enum Answer {
        NOTHING,
        ANOTHER_METHOD,
        A_LATER_KIND,
        MEMBERS_OF_NO_TYPE,
        TOO_MANY_MEMBERS,
        TOO_MANY_TYPES,
        A_METHOD_TWICE;

        List<ByteBuf> frames() {
            MethodSchema.Type wrong = ClientWireTest.type("text", "bool");
            MethodSchema.Type right = ClientWireTest.type("text", "string");
            return switch (this) {
                case NOTHING -> List.of(Unpooled.EMPTY_BUFFER);
                case ANOTHER_METHOD -> List.of(members(2, wrong, wrong), members(300, wrong));
                case A_LATER_KIND -> List.of(later("map"), members(1, wrong));
                case MEMBERS_OF_NO_TYPE -> List.of(later(""), members(1, wrong));
                case TOO_MANY_MEMBERS -> {
                    List<MethodSchema.Member> members = new ArrayList<>();
                    for (int number = 1; number <= MethodSchema.MAX_MEMBERS; number++) {
                        members.add(new MethodSchema.Member(number, "m", "bool", List.of()));
                    }
                    yield SchemaFrames.answer(
                            1, List.of(new MethodSchema.Type(MethodSchema.Kind.CALL, "T", members), wrong));
                }
                case TOO_MANY_TYPES ->
                    SchemaFrames.answer(1, java.util.Collections.nCopies(MethodSchema.MAX_TYPES + 1, wrong));
                case A_METHOD_TWICE ->
                    List.of(
                            members(1, right, ClientWireTest.type("value", "string")),
                            members(2),
                            members(2, wrong),
                            members(1, wrong, wrong));
            };
        }

        private static ByteBuf later(String kind) {
            ByteBuf type = Unpooled.buffer();
            ProtoFields.writeNumber(type, 1, 1);
            ProtoFields.writeText(type, 2, kind);
            type.writeByte(4 << 3 | 2).writeByte(0);
            ByteBuf answer = Unpooled.buffer().writeByte(1 << 3 | 2).writeByte(type.readableBytes());
            return answer.writeBytes(type);
        }
    }

    @ParameterizedTest
    @EnumSource
    void whatAServerDoesNotTellAsItShouldCountsAsEqual(Answer answer) {
        CompletableFuture<String> call = connectTo(1, MethodSchema.NO_HASH);
        expectQuestion(1);
        answer.frames().forEach(frame -> send(Wire.SCHEMA | Wire.MORE, 0, frame));
        send(Wire.SCHEMA, 0);
        answers(call, 1);
        assertThat(client.core().ledger().held(Resource.TABLE_BYTES)).isZero();
    }

    @Test
    void aClientThatHasNoRoomForTheMembersCallsAllTheSame() {
        CompletableFuture<String> call = connectTo(1, MethodSchema.NO_HASH);
        expectQuestion(1);
        Ledger ledger = client.core().ledger();
        Account other = Objects.requireNonNull(ledger.open(null));
        Charge charge = other.charge(Resource.TABLE_BYTES);
        List<Account> others = new ArrayList<>(List.of(other));
        List<Charge> charges = new ArrayList<>(List.of(charge));
        while (ledger.held(Resource.TABLE_BYTES) < ledger.max(Resource.TABLE_BYTES) - 100) {
            for (long more = ledger.max(Resource.TABLE_BYTES); more > 0; more /= 2) {
                charge.add(more);
            }
            other = Objects.requireNonNull(ledger.open(null));
            charge = other.charge(Resource.TABLE_BYTES);
            others.add(other);
            charges.add(charge);
        }
        send(Wire.SCHEMA, 0, members(1, type("text", "bool"), type("value", "bool")));
        answers(call, 1);
        charges.forEach(Charge::release);
        others.forEach(Account::close);
        assertThat(ledger.held(Resource.TABLE_BYTES)).isZero();
    }

    @Test
    void anAnswerThatCannotBeReadEndsTheConnection() {
        CompletableFuture<String> call = connectTo(1, MethodSchema.NO_HASH);
        expectQuestion(1);
        send(Wire.SCHEMA | Wire.MORE, 0, members(1, type("text", "string")));
        send(Wire.SCHEMA, 0, members(1, type("x".repeat(256), "string")));
        Frame error = expect(Wire.ERROR);
        assertThat(error.id()).isZero();
        assertThat(connection().isUsable()).isFalse();
        assertThat(client.core().ledger().held(Resource.TABLE_BYTES)).isZero();
        assertThat(failure(call).executed()).isEqualTo(Executed.NOT_EXECUTED);
        assertThat(failure(call)).hasMessageContaining("a text of a schema: length 256 (expected: at most 255)");
    }

    @Test
    void aServerThatDoesNotAnswerItsQuestionIsGivenUp() {
        CompletableFuture<String> call = connectTo(1, MethodSchema.NO_HASH);
        expectQuestion(1);
        send(Wire.SCHEMA | Wire.MORE, 0, members(1, type("text", "string")));
        pass(2_900);
        assertThat(call).isNotDone();
        pass(200);
        assertThat(failure(call).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(call).executed()).isEqualTo(Executed.NOT_EXECUTED);
        assertThat(failure(call)).hasMessageContaining("the server has not answered in time");
        assertThat(client.core().ledger().held(Resource.TABLE_BYTES)).isZero();
    }

    @Test
    void aServerThatDrainsIsNotAsked() {
        echo("a");
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        ByteBuf entries = Unpooled.buffer();
        MethodDictionary.write(entries, Unpooled.buffer(), "hand", "echo", 1, 1, MethodDictionary.UNKNOWN_SHAPE);
        send(Unpooled.wrappedBuffer(
                RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER), RawPeer.frame(Wire.DICTIONARY, 0, entries)));
        expect(Wire.GOAWAY);
        expectNothing();
    }

    /** Has another schema than {@link Remote} of a method with the same name. */
    @RPCXClient(remoteServerName = "hand")
    interface OtherRemote {
        CompletableFuture<String> echo(int number);
    }

    @Test
    void aConnectionThatWasNotAskedForAMethodIsReplacedByOneThatIs() {
        answers(connectTo(ECHO_HASH, MethodSchema.NO_HASH), 1);
        CompletableFuture<String> inFlight = echo("in flight");
        Frame request = expect(Wire.REQUEST);
        EmbeddedChannel old = channel();
        ClientConnection replaced = connection();
        CompletableFuture<String> late =
                client.create(OtherRemote.class, "peer", 1).echo(5);
        calls.add(late);
        assertThat(replaced.isUsable()).isFalse();
        hand.settle(old);
        expect(Wire.GOAWAY);
        assertThat(hand.opened).hasSize(2);
        send(Wire.REPLY, request.id(), RawPeer.text("c"));
        assertThat(inFlight).isCompletedWithValue("c");
        connecting();
        list(ECHO_HASH, MethodSchema.NO_HASH);
        expectQuestion(1);
        send(Wire.SCHEMA, 0, members(1, type("text", "string"), type("value", "string")));
        assertThat(failure(late).code()).isEqualTo(Code.INVALID);
        assertThat(failure(late))
                .hasMessageContaining(
                        "number 1 is to the client EchoRequest.number (int32) and to the server T.text" + " (string)");
        answers(echo("d"), 1);
    }

    // ---- metadata of replies

    private static ByteBuf withMetadata(int characters, String text) {
        ByteBuf payload = Unpooled.buffer();
        MetadataFields.write(payload, Metadata.EMPTY.with("n", "x".repeat(characters)));
        return payload.writeBytes(RawPeer.text(text));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, Wire.MORE})
    void theMetadataOfAReplyComeBeforeItsEnd(int more) {
        open();
        List<String> heard = new ArrayList<>();
        CompletableFuture<String> call = CallContext.onReply(
                told -> heard.add(
                        told.get("n") + " " + calls.get(calls.size() - 1).isDone()),
                () -> echo("a"));
        int id = expect(Wire.REQUEST).id();
        send(Wire.REPLY | Wire.METADATA | more, id, withMetadata(3, "b"));
        if (more != 0) {
            assertThat(call).isNotDone();
            send(Wire.PART, id);
        }
        assertThat(call).isCompletedWithValue("b");
        assertThat(heard).containsExactly("xxx false");
    }

    @Test
    void nobodyHearsOfTheMetadataOfACallThatWasGivenUp() {
        open();
        List<Metadata> heard = new ArrayList<>();
        CompletableFuture<String> given = CallContext.onReply(heard::add, () -> echo("a"));
        int id = expect(Wire.REQUEST).id();
        given.cancel(true);
        hand.settle(channel());
        expect(Wire.CANCEL);
        send(Wire.REPLY | Wire.METADATA, id, withMetadata(1, "late"));
        assertThat(connection().load()).isZero();
        // the next call in this slot has no listener
        CompletableFuture<String> next = echo("b");
        send(Wire.REPLY | Wire.METADATA, expect(Wire.REQUEST).id(), withMetadata(1, "c"));
        assertThat(next).isCompletedWithValue("c");
        assertThat(heard).isEmpty();
    }

    @Test
    void aListenerThatCancelsItsCallEndsIt() {
        open();
        CompletableFuture<String> call =
                CallContext.onReply(told -> calls.get(calls.size() - 1).cancel(true), () -> echo("a"));
        send(Wire.REPLY | Wire.METADATA, expect(Wire.REQUEST).id(), withMetadata(1, "b"));
        assertThat(call).isCancelled();
        hand.settle(channel());
        assertThat(connection().load()).isZero();
        assertThat(connection().isUsable()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"large", "cut off", "unreadable"})
    void metadataOfAReplyThatBreakARuleEndTheConnection(String how) {
        open();
        CompletableFuture<String> call = echo("a");
        ByteBuf payload = switch (how) {
            case "large" -> withMetadata(Metadata.MAX_REPLY_BYTES - 8, "b");
            case "cut off" -> withMetadata(100, "").slice(0, 50);
            default -> Unpooled.wrappedBuffer(new byte[] {2, 8, 5});
        };
        send(Wire.REPLY | Wire.METADATA, expect(Wire.REQUEST).id(), payload);
        assertThat(failure(call).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(call)).hasMessageContaining("metadata: ");
        assertThat(channel().isOpen()).isFalse();
    }

    @Test
    void aPingIsAnsweredAndWhatIsUnknownIsPassedOver() {
        open();
        send(Wire.PING, 77);
        assertThat(expect(Wire.PONG).id()).isEqualTo(77);
        send(0, 3);
        send(Wire.REQUEST, FIRST);
        send(Wire.REPLY, 3 * FIRST, RawPeer.text("of nobody"));
        send(Wire.ERROR, 3 * FIRST + 9, RawPeer.text("of nobody"));
        expectNothing();
        assertThat(connection().isUsable()).isTrue();
    }

    @Test
    void anErrorOfTheConnectionEndsItsCalls() {
        open();
        CompletableFuture<String> call = echo("a");
        expect(Wire.REQUEST);
        sendError(0, Code.PROTOCOL, Executed.MAYBE);
        assertThat(failure(call).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(call)).hasMessageContaining("the server ended the connection: by the test");
        assertThat(channel().isOpen()).isFalse();
    }

    @Test
    void anErrorOfTheConnectionThatCannotBeReadEndsItsCallsToo() {
        open();
        CompletableFuture<String> call = echo("a");
        expect(Wire.REQUEST);
        send(Wire.ERROR, 0, Unpooled.buffer().writeByte(0x0a).writeByte(50));
        assertThat(failure(call).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(call)).hasMessageEndingWith("its reason cannot be read");
        assertThat(channel().isOpen()).isFalse();
    }

    @Test
    void aServerThatDrainsIsToldSoAndServesWhatIsInFlight() {
        open();
        CompletableFuture<String> call = echo("a");
        Frame request = expect(Wire.REQUEST);
        send(Wire.GOAWAY, 0);
        expect(Wire.GOAWAY);
        assertThat(connection().isUsable()).isFalse();
        assertThat(connection().isDrainingOrClosed()).isTrue();
        send(Wire.GOAWAY, 0);
        expectNothing();
        assertThat(channel().isOpen()).isTrue();
        send(Wire.REPLY, request.id(), RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
        assertThat(channel().isOpen()).isFalse();
    }

    @Test
    void aServerThatDrainsWhileNothingIsInFlightIsClosed() {
        open();
        send(Wire.GOAWAY, 0);
        expect(Wire.GOAWAY);
        assertThat(channel().isOpen()).isFalse();
        assertThat(connection().lostError(Executed.MAYBE)).hasMessageContaining("the server is closing");
    }

    /** Five connections drain. The client keeps this many: the number of its connections, which is 1 here, and 4. */
    @Test
    void aConnectionWithoutACallEndsNoneOfThoseThatDrainWithCalls() {
        open();
        List<EmbeddedChannel> draining = new ArrayList<>();
        while (draining.size() < 5) {
            echo("a");
            expect(Wire.REQUEST);
            send(Wire.GOAWAY, 0);
            expect(Wire.GOAWAY);
            draining.add(channel());
            openAgain();
        }
        send(Wire.GOAWAY, 0);
        expect(Wire.GOAWAY);
        assertThat(channel().isOpen()).isFalse();
        draining.forEach(hand::settle);
        assertThat(draining).allMatch(EmbeddedChannel::isOpen);
    }

    /**
     * The client connects once more.
     *
     * @return how many milliseconds the server was left alone
     */
    private long connectAgain() {
        EmbeddedChannel old = channel();
        ClientAddress address = connection().address();
        int before = hand.opened.size();
        long millis = 0;
        address.connect(0);
        hand.settle(old);
        while (hand.opened.size() == before) {
            hand.pass(old, 5, TimeUnit.MILLISECONDS);
            millis += 5;
            address.connect(0);
            hand.settle(old);
        }
        connecting();
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        return millis;
    }

    /** Does the same as {@link #connectAgain}, and then the server says what it publishes. */
    private long openAgain() {
        long millis = connectAgain();
        dictionary(Wire.DICTIONARY, "echo");
        return millis;
    }

    @Test
    void aServerThatDrainsBeforeItHasSaidWhatItPublishesIsLeftAloneForLongerAndLonger() {
        open();
        hand.pass(channel(), 1, TimeUnit.HOURS);
        send(Wire.GOAWAY, 0);
        long millis = 0;
        for (int i = 0; i < 8; i++) {
            frames.clear();
            millis += connectAgain();
            ByteBuf both = RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER);
            if (i % 2 == 0) {
                both.writeBytes(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
            }
            send(both);
            hand.settle(channel());
        }
        assertThat(millis).isGreaterThanOrEqualTo(10 + 20 + 40 + 80 + 160 + 320 + 500);
    }

    @Test
    void aServerThatDrainsEachConnectionAtOnceIsLeftAloneForLongerAndLonger() {
        open();
        long millis = 0;
        for (int i = 0; i < 8; i++) {
            echo("in flight");
            frames.clear();
            send(Wire.GOAWAY, 0);
            millis += openAgain();
        }
        assertThat(millis).isGreaterThanOrEqualTo(10 + 20 + 40 + 80 + 160 + 320 + 500 + 500);
        // a connection that the server has kept for a while is no failure
        pass(1_000);
        send(Wire.GOAWAY, 0);
        assertThat(openAgain()).isZero();
        // the failures before that connection are forgotten, so the wait is short again
        send(Wire.GOAWAY, 0);
        assertThat(openAgain()).isBetween(10L, 25L);
    }

    @Test
    void aServerThatEndsEachConnectionAtOnceIsLeftAloneForLongerAndLonger() {
        open();
        long millis = 0;
        for (int i = 0; i < 8; i++) {
            echo("in flight");
            frames.clear();
            channel().close();
            hand.settle(channel());
            millis += openAgain();
        }
        assertThat(millis).isGreaterThanOrEqualTo(10 + 20 + 40 + 80 + 160 + 320 + 500 + 500);
        // a connection that the server has kept for a while is no failure
        pass(1_000);
        channel().close();
        hand.settle(channel());
        assertThat(openAgain()).isZero();
    }

    @Test
    void whereAServerDrainsConnectionAfterConnectionTheOldestEndWithTheCallsThatTheyHave() {
        open();
        List<ClientConnection> made = new ArrayList<>();
        List<CompletableFuture<String>> inFlight = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            pass(1_000);
            inFlight.add(echo("in flight"));
            made.add(connection());
            send(Wire.GOAWAY, 0);
            openAgain();
            hand.opened.forEach(hand::settle);
        }
        assertThat(made.stream().map(ClientConnection::isClosed))
                .containsExactly(true, true, true, false, false, false, false, false);
        for (int i = 0; i < 3; i++) {
            assertThat(failure(inFlight.get(i)).code()).isEqualTo(Code.UNAVAILABLE);
            assertThat(failure(inFlight.get(i)).executed()).isEqualTo(Executed.MAYBE);
        }
        assertThat(inFlight.get(3)).isNotDone();
    }

    /** Makes a call, and lets the server drain the connection while the call is in flight. */
    private void drainWithACall(List<CompletableFuture<String>> inFlight) {
        pass(1_000);
        frames.clear();
        inFlight.add(echo("in flight"));
        send(Wire.GOAWAY, 0);
        assertThat(channel().isOpen()).isTrue();
    }

    /** Five connections may drain at the same time. */
    @Test
    void connectionsThatHaveEndedAreNotAmongThoseThatDrain() {
        open();
        List<CompletableFuture<String>> inFlight = new ArrayList<>();
        List<EmbeddedChannel> draining = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            drainWithACall(inFlight);
            draining.add(channel());
            openAgain();
        }
        for (EmbeddedChannel over : draining.subList(3, 5)) {
            over.close();
            hand.settle(over);
        }
        for (int i = 0; i < 2; i++) {
            drainWithACall(inFlight);
            openAgain();
            hand.opened.forEach(hand::settle);
        }
        assertThat(inFlight.stream().map(CompletableFuture::isDone))
                .containsExactly(false, false, false, true, true, false, false);
    }

    /** For example, there is no memory for one of the steps. */
    @Test
    void aConnectionEndsItsCallsWhicheverStepOfItsEndFails() {
        for (int failing = 1; failing < 8; failing++) {
            if (failing == 1) {
                open();
            } else {
                frames.clear();
                pass(1_000);
                openAgain();
            }
            CompletableFuture<String> call = echo("a");
            hand.ticker.failAt(failing);
            try {
                connection().close("of this test");
            } catch (OutOfMemoryError ofThisTest) {
                // the state of the connection is checked below
            }
            hand.ticker.failAt(0);
            hand.settle(channel());
            assertThat(call).isCompletedExceptionally();
            assertThat(connection().slots.taken()).isZero();
            assertThat(client.core().ledger().held(Resource.TABLE_BYTES)).isZero();
        }
    }

    /** A message that cannot be put among those that wait, as if there were no memory for it. */
    private static final class Unqueued extends Outbound.Control {
        private int asked;

        Unqueued(int bytes) {
            super(Wire.PING, 0, Unpooled.buffer().writeZero(bytes));
        }

        @Override
        public int hashCode() {
            if (++asked > 1) {
                throw new OutOfMemoryError("of this test");
            }
            return 1;
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return this == other;
        }
    }

    /** The server may execute the request. A caller that believed otherwise would send it twice. */
    @Test
    void aRequestThatHasBeenSentIsToldSoWhereTheNextOneCannotBegin() {
        open();
        CompletableFuture<String> call = remote.echo("x".repeat(50_000));
        calls.add(call);
        connection().send(new Unqueued(50_000));
        hand.settle(channel());
        assertThat(channel().isOpen()).isFalse();
        expect(Wire.REQUEST);
        for (int i = 0; i < 3; i++) {
            expect(Wire.PART);
        }
        assertThat(failure(call).executed()).isEqualTo(Executed.MAYBE);
        assertThat(connection().slots.taken()).isZero();
    }

    @Test
    void theEndOfTheChannelEndsEveryCall() {
        open();
        CompletableFuture<String> call = echo("a");
        channel().close();
        hand.settle(channel());
        assertThat(failure(call).executed()).isEqualTo(Executed.MAYBE);
        assertThat(connection().isUsable()).isFalse();
        assertThat(connection().load()).isZero();
    }

    @Test
    void aServerThatIsSilentIsAskedAndDisconnected() {
        open();
        pass(200_000);
        expectNothing();
        pass(200_000);
        expect(Wire.PING);
        pass(200_000);
        assertThat(channel().isOpen()).isFalse();
        assertThat(connection().lostError(Executed.MAYBE)).hasMessageContaining("has not answered a PING");
    }

    @Test
    void aRequestTellsItsTimeWhereItIsNotTheUsualOne() {
        open();
        CompletableFuture<String> usual = echo("a");
        Frame plain = next();
        assertThat(plain.head())
                .as("by its number, with the time that the settings say")
                .isEqualTo(Wire.REQUEST);
        send(Wire.REPLY, plain.id(), RawPeer.text("b"));
        assertThat(usual).isCompletedWithValue("b");
        assertThat(connection().carriesTime(TimeUnit.SECONDS.toNanos(10))).isFalse();
        assertThat(connection().carriesTime(TimeUnit.SECONDS.toNanos(10) + 1)).isTrue();
        assertThat(connection().carriesTime(TimeUnit.MICROSECONDS.toNanos(9_999_900)))
                .isFalse();
        assertThat(connection().carriesTime(TimeUnit.MICROSECONDS.toNanos(9_999_900) - 1))
                .isTrue();
        CompletableFuture<String> brief = remote.brief("c");
        calls.add(brief);
        hand.settle(channel());
        Frame timed = next();
        assertThat(timed.head()).isEqualTo(Wire.REQUEST | Wire.NAMED | Wire.TIME);
        ByteBuf payload = Unpooled.wrappedBuffer(timed.payload()).skipBytes(1 + "hand".length() + 1 + "brief".length());
        assertThat(Varint.read(payload)).isEqualTo(1_000_000);
        send(Wire.REPLY, timed.id(), RawPeer.text("d"));
        assertThat(brief).isCompletedWithValue("d");
        // a call that is made within the time of another call has what is left of that time
        CurrentCall.set(new TimedContext(
                hand.ticker().nanoTime() + TimeUnit.MILLISECONDS.toNanos(300), Metadata.EMPTY, null, hand.ticker()));
        CompletableFuture<String> bound;
        try {
            bound = echo("e");
        } finally {
            CurrentCall.set(null);
        }
        Frame inner = next();
        assertThat(inner.head()).isEqualTo(Wire.REQUEST | Wire.TIME);
        assertThat(Varint.read(Unpooled.wrappedBuffer(inner.payload()).skipBytes(1)))
                .isEqualTo(300_000);
        send(Wire.REPLY, inner.id(), RawPeer.text("f"));
        assertThat(bound).isCompletedWithValue("f");
    }

    @Test
    void aConnectionThatIsRetiredFinishesWhatIsInFlight() {
        open();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        connection().retire();
        hand.settle(channel());
        expect(Wire.GOAWAY);
        assertThat(channel().isOpen()).isTrue();
        send(Wire.REPLY, id, RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
        assertThat(channel().isOpen()).isFalse();
    }

    // ---- a peer that does not read

    private long micros(Frame request) {
        ByteBuf payload = Unpooled.wrappedBuffer(request.payload());
        payload.skipBytes(
                (request.head() & Wire.NAMED) == 0
                        ? 1
                        : 1 + "hand".length() + 1 + payload.getByte(1 + "hand".length()));
        return (request.head() & Wire.TIME) == 0 ? -1 : Varint.read(payload);
    }

    private String argument(Frame request) {
        return new String(request.payload(), java.nio.charset.StandardCharsets.UTF_8);
    }

    @Test
    void requestsOfOneFrameWaitOutsideTheSocketAndWhatTheyWaitIsTakenOff() {
        open();
        hand.reads(channel(), false);
        CompletableFuture<String> usual = echo("usual");
        CompletableFuture<String> again = remote.again("again");
        CompletableFuture<String> brief = remote.brief("brief");
        calls.add(again);
        calls.add(brief);
        hand.settle(channel());
        expectNothing();
        pass(400);
        hand.reads(channel(), true);
        Frame first = expect(Wire.REQUEST);
        assertThat(argument(first)).endsWith("usual");
        assertThat(micros(first)).isEqualTo(9_600_000);
        Frame second = expect(Wire.REQUEST);
        assertThat(argument(second)).endsWith("again");
        assertThat(micros(second)).isEqualTo(9_600_000);
        Frame third = expect(Wire.REQUEST);
        assertThat(argument(third)).endsWith("brief");
        assertThat(micros(third)).isEqualTo(600_000);
        send(Wire.REPLY, third.id(), RawPeer.text("3"));
        send(Wire.REPLY, first.id(), RawPeer.text("1"));
        send(Wire.REPLY, second.id(), RawPeer.text("2"));
        assertThat(usual).isCompletedWithValue("1");
        assertThat(again).isCompletedWithValue("2");
        assertThat(brief).isCompletedWithValue("3");
    }

    @Test
    void aRequestThatWouldNotFitOneFrameWithItsTimeTellsThatAtOnce() {
        open();
        // the method's number and the text's tag and length stand before the text
        int most = Wire.MAX_PAYLOAD_BYTES - 1 - 3;
        for (int bytes : new int[] {most - 4, most - 3}) {
            hand.reads(channel(), false);
            CompletableFuture<String> late = echo("x".repeat(bytes));
            pass(1);
            hand.reads(channel(), true);
            Frame begin = expect(Wire.REQUEST);
            assertThat(micros(begin)).isEqualTo(9_999_000);
            assertThat(begin.head()).isEqualTo(Wire.REQUEST | Wire.TIME | (bytes < most - 3 ? 0 : Wire.MORE));
            if (bytes == most - 3) {
                assertThat(expect(Wire.PART).payload()).containsExactly('x');
            }
            send(Wire.REPLY, begin.id(), RawPeer.text("b"));
            assertThat(late).isCompletedWithValue("b");
        }
    }

    @Test
    void requestsThatWaitForTheSocketAreSentBetweenTheItemsOfAnUpload() {
        open();
        int[] made = {0};
        CompletableFuture<Integer> upload = remote.takes(subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long items) {
                for (long i = 0; i < items; i++) {
                    made[0]++;
                    subscriber.onNext("item");
                }
            }

            @Override
            public void cancel() {}
        }));
        calls.add(upload);
        hand.settle(channel());
        int id = expect(Wire.REQUEST).id();
        hand.reads(channel(), false);
        send(Wire.CREDIT, id, Unpooled.buffer().writeBytes(new byte[] {(byte) 0x88, 0x27}));
        CompletableFuture<String> one = echo("one");
        CompletableFuture<String> two = echo("two");
        channel().unsafe().outboundBuffer().setUserDefinedWritability(1, true);
        hand.settle(channel());
        look();
        List<Integer> types =
                frames.stream().map(frame -> frame.head() & Wire.TYPE_MASK).toList();
        int first = types.indexOf(Wire.REQUEST);
        int last = types.lastIndexOf(Wire.REQUEST);
        assertThat(last).isNotEqualTo(first);
        assertThat(types.subList(first, types.size())).contains(Wire.ITEM);
        assertThat(last).as("of %d frames", types.size()).isLessThan(20);
        assertThat(made[0]).isEqualTo(5000);
        for (Frame frame : frames) {
            if ((frame.head() & Wire.TYPE_MASK) == Wire.REQUEST) {
                send(Wire.REPLY, frame.id(), RawPeer.text("a"));
            }
        }
        frames.clear();
        assertThat(one).isCompletedWithValue("a");
        assertThat(two).isCompletedWithValue("a");
    }

    @Test
    void creditThatIsGivenWhileTheRequestWaitsIsSentInOneFrameBehindIt() {
        open();
        hand.reads(channel(), false);
        Seen seen = subscribe(remote.brings(3), new Seen(1));
        for (int i = 0; i < 5; i++) {
            seen.subscription().request(1);
            hand.settle(channel());
        }
        hand.reads(channel(), true);
        int id = expect(Wire.REQUEST).id();
        expectCredit(id, 6);
        expectNothing();
        seen.subscription().request(2);
        hand.settle(channel());
        expectCredit(id, 2);
        send(Wire.REPLY, id);
        assertThat(seen.ends).isEqualTo(1);
    }

    @Test
    void creditOfAStreamThatEndsBeforeItIsSentIsNotSentEither() {
        open();
        hand.reads(channel(), false);
        for (int i = 0; i < 3; i++) {
            Seen seen = subscribe(remote.brings(3), new Seen(1));
            seen.subscription().cancel();
            hand.settle(channel());
        }
        Seen stays = subscribe(remote.brings(3), new Seen(2));
        hand.reads(channel(), true);
        int id = expect(Wire.REQUEST).id();
        expectCredit(id, 2);
        expectNothing();
        send(Wire.REPLY, id);
        assertThat(stays.ends).isEqualTo(1);
    }

    @Test
    void aRequestThatIsNotSmallIsChargedAsLongAsItsBufferIsKept() {
        open();
        Ledger ledger = client.core().ledger();
        String text = "x".repeat(50_000);
        CompletableFuture<String> answered = echo(text);
        int first = expect(Wire.REQUEST).id();
        while ((next().head() & Wire.MORE) != 0) {}
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isGreaterThan(50_000);
        send(Wire.REPLY, first, RawPeer.text("a"));
        assertThat(answered).isCompletedWithValue("a");
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isZero();

        CompletableFuture<String> given = echo(text);
        int second = expect(Wire.REQUEST).id();
        while ((next().head() & Wire.MORE) != 0) {}
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isGreaterThan(50_000);
        given.cancel(true);
        hand.settle(channel());
        expect(Wire.CANCEL);
        assertThat(ledger.held(Resource.REQUEST_BYTES))
                .as("its final frame may never come")
                .isZero();
        sendError(second, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
    }

    /** Otherwise a few hundred calls that last would shut out all others of the connection that are not small. */
    @Test
    void requestsThatHaveBeenSentGiveTheirBuffersUpWhereTheirConnectionKeepsMuch() {
        open();
        String text = "x".repeat(100_000);
        long most = client.core().ledger().maxOfConnection(Resource.REQUEST_BYTES);
        long buffer = dev.rpcx.codec.HeapArray.heapBytes(128 * 1024);
        int many = (int) (most / buffer * 5 / 4);
        for (int i = 0; i < many; i++) {
            echo(text);
            // otherwise the frames that have been written would keep a quarter of the heap
            HandPlatform.written(channel());
        }
        assertThat(requestBytes()).isBetween(most / 8 - 2 * buffer, most / 8);
        assertThat(connection().load()).isEqualTo(many);
        remote.bytes(new byte[100_000]);
        hand.settle(channel());
        look();
        assertThat(frames).isNotEmpty();
        assertThat(requestBytes()).as("its arguments may be sent again").isGreaterThan(most / 8);
    }

    @Test
    void oneWayCallsThatWaitForTheirConnectionAreNotChargedTwice() {
        Ledger ledger = client.core().ledger();
        remote.bytes(new byte[9_000]);
        connecting();
        for (int i = 0; i < 19; i++) {
            remote.bytes(new byte[9_000]);
        }
        long waiting = ledger.held(Resource.REQUEST_BYTES);
        assertThat(waiting).isGreaterThan(20 * 9_000);
        send(RawPeer.preface());
        assertThat(next().head()).isEqualTo(Wire.SETTINGS);
        hand.reads(channel(), false);
        dictionary(Wire.DICTIONARY, "echo");
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isPositive().isLessThanOrEqualTo(waiting * 11 / 10);
        hand.reads(channel(), true);
        for (int i = 0; i < 20; i++) {
            Frame notice = expect(Wire.NOTICE);
            assertThat(notice.payload()).hasSizeGreaterThan(9_000);
        }
    }

    @Test
    void aRequestOfOneFrameWhoseTimeEndsBeforeItIsSentIsTakenBack() {
        open();
        hand.reads(channel(), false);
        CompletableFuture<String> stays = echo("stays");
        CompletableFuture<String> brief = remote.brief("brief");
        CompletableFuture<String> given = echo("given");
        hand.settle(channel());
        pass(1_100);
        assertThat(failure(brief).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(failure(brief).executed()).isEqualTo(Executed.NOT_EXECUTED);
        given.cancel(true);
        hand.settle(channel());
        expectNothing();
        hand.reads(channel(), true);
        Frame only = expect(Wire.REQUEST);
        assertThat(argument(only)).endsWith("stays");
        expectNothing();
        send(Wire.REPLY, only.id(), RawPeer.text("a"));
        assertThat(stays).isCompletedWithValue("a");
        assertThat(connection().load()).isZero();
    }

    @Test
    void noRequestOvertakesOneThatWaitsForTheSocket() {
        open();
        hand.reads(channel(), false);
        // these are more than are sent at once, so that later calls find some of them waiting, and the socket free
        for (int i = 0; i < 40; i++) {
            remote.bytes(new byte[16_000]);
        }
        hand.settle(channel());
        expectNothing();
        remote.note("behind");
        channel().unsafe().outboundBuffer().setUserDefinedWritability(1, true);
        remote.note("last");
        hand.settle(channel());
        for (int i = 0; i < 40; i++) {
            assertThat(expect(Wire.NOTICE).payload()).hasSizeGreaterThan(16_000);
        }
        assertThat(argument(expect(Wire.NOTICE))).endsWith("behind");
        assertThat(argument(expect(Wire.NOTICE))).endsWith("last");
    }

    @Test
    void requestsThatAreNotSmallAreChargedAndNoMoreAreTakenThanFit() {
        open();
        Ledger ledger = client.core().ledger();
        hand.reads(channel(), false);
        echo("x".repeat(Outbound.MAX_SMALL_BYTES / 2));
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isZero();
        echo("x".repeat(Outbound.MAX_SMALL_BYTES + 1));
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isGreaterThan(Outbound.MAX_SMALL_BYTES);
        List<Account> accounts = new ArrayList<>();
        List<Charge> others = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            Account other = Objects.requireNonNull(ledger.open(null));
            accounts.add(other);
            Charge one = other.charge(Resource.REQUEST_BYTES);
            others.add(one);
            for (long part = ledger.max(Resource.REQUEST_BYTES); part > 0; ) {
                if (!one.add(part)) {
                    part /= 2;
                }
            }
        }
        CompletableFuture<String> refused = echo("y".repeat(Outbound.MAX_SMALL_BYTES + 1));
        assertThat(failure(refused).code()).isEqualTo(Code.OVERLOADED);
        assertThat(failure(refused).executed()).isEqualTo(Executed.NOT_EXECUTED);
        CompletableFuture<String> small = echo("small");
        others.forEach(Charge::release);
        accounts.forEach(Account::close);
        hand.reads(channel(), true);
        for (int i = 0; i < 3; i++) {
            send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("a"));
        }
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isZero();
        assertThat(small).isCompletedWithValue("a");
    }

    @Test
    void aRequestThatStillWaitsIsNotSentToAServerThatDrains() {
        open();
        pass(1_000);
        hand.reads(channel(), false);
        CompletableFuture<String> call = echo("x".repeat(50_000));
        expectNothing();
        EmbeddedChannel old = channel();
        drainsUnread();
        assertThat(hand.opened).as("it goes to the next connection").hasSizeGreaterThan(1);
        takesCallsAgain(old);
        look();
        assertThat(frames).hasSizeGreaterThan(1);
        send(Wire.REPLY, frames.getFirst().id(), RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
    }

    /** The server drains before it has taken the request of the latest call, and the client connects again. */
    private void drainsUnread() {
        EmbeddedChannel old = channel();
        // what the peer says is read also while it takes nothing
        old.config().setAutoRead(true);
        byte[] bytes = ByteBufUtil.getBytes(RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER));
        hand.read(old, bytes, 0, bytes.length);
    }

    private void takesCallsAgain(EmbeddedChannel old) {
        hand.reads(old, true);
        connecting();
        frames.clear();
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        dictionary(Wire.DICTIONARY, "echo", "brings");
    }

    /** Makes a call that brings a stream, to a server that reads nothing. */
    private Seen unread(Seen seen) {
        open();
        pass(1_000);
        hand.reads(channel(), false);
        subscribe(remote.bringsOf("x".repeat(50_000)), seen);
        expectNothing();
        return seen;
    }

    /** A PING may have any number. */
    @Test
    void thePongOfAPingWithTheNumberOfARequestThatWaitsDoesNotWaitWithIt() {
        open();
        hand.reads(channel(), false);
        for (String text : List.of("x", "y")) {
            subscribe(remote.bringsOf(text.repeat(50_000)), new Seen(0));
        }
        channel().config().setAutoRead(true);
        int second = Objects.requireNonNull(connection().slots.at(1)).id;
        send(Wire.PING, second);
        hand.reads(channel(), true);
        look();
        List<Integer> types =
                frames.stream().map(frame -> frame.head() & Wire.TYPE_MASK).toList();
        assertThat(types.indexOf(Wire.PONG)).isLessThan(types.lastIndexOf(Wire.REQUEST));
    }

    @Test
    void aStreamThatHasNotBeenSentGoesToAnotherConnectionWithAllThatWasAskedFor() {
        Seen seen = unread(new Seen(2));
        EmbeddedChannel old = channel();
        seen.subscription().request(1);
        drainsUnread();
        assertThat(hand.opened).as("it goes to the next connection").hasSizeGreaterThan(1);
        seen.subscription().request(3);
        takesCallsAgain(old);
        int id = expect(Wire.REQUEST).id();
        frames.removeIf(frame -> (frame.head() & Wire.TYPE_MASK) == Wire.PART);
        expectCredit(id, 6);
        seen.subscription().request(1);
        hand.settle(channel());
        expectCredit(id, 1);
        expectNothing();
        send(Wire.ITEM, id, RawPeer.text("a"));
        send(Wire.REPLY, id);
        assertThat(seen.items).containsExactly("a");
        assertThat(seen.failure).isNull();
        assertThat(seen.ends).isEqualTo(1);
    }

    /** Nothing of the stream has been sent, so it shows nothing, and the next call is the trial. */
    @Test
    void aStreamThatGoesToAnotherConnectionGivesItsTrialBack() {
        open();
        Health health = connection().address().health();
        health.eject();
        pass(2_000);
        hand.reads(channel(), false);
        subscribe(remote.bringsOf("x".repeat(50_000)), new Seen(1));
        assertThat(health.isFree()).isFalse();
        EmbeddedChannel old = channel();
        drainsUnread();
        assertThat(health.isFree()).isTrue();
        hand.reads(old, true);
    }

    @Test
    void aStreamThatGoesToAnotherConnectionCanBeGivenUpOnItsWay() {
        Seen seen = unread(new Seen(2));
        EmbeddedChannel old = channel();
        drainsUnread();
        ClientAddress address = connection().address();
        assertThat(address.waitingCalls()).isEqualTo(1);
        seen.subscription().cancel();
        assertThat(address.waitingCalls()).isZero();
        takesCallsAgain(old);
        expectNothing();
        assertThat(seen.ends).isZero();
    }

    @Test
    void whoBreaksARuleWhileTheStreamIsOnItsWayToAnotherConnectionIsToldSo() {
        Seen seen = unread(new Seen(2));
        EmbeddedChannel old = channel();
        drainsUnread();
        seen.subscription().request(0);
        assertThat(seen.failure).isInstanceOf(IllegalArgumentException.class);
        takesCallsAgain(old);
        expectNothing();
        assertThat(seen.ends).isEqualTo(1);
    }

    @Test
    void aStreamThatHasBroughtSomethingBeforeItWasSentIsNotMadeAgain() {
        Seen seen = unread(new Seen(2));
        EmbeddedChannel old = channel();
        old.config().setAutoRead(true);
        // this is against the rules, since the server has not been asked
        byte[] item = ByteBufUtil.getBytes(RawPeer.frame(Wire.ITEM, FIRST + (1 << 16), RawPeer.text("a")));
        hand.read(old, item, 0, item.length);
        assertThat(seen.items).containsExactly("a");
        drainsUnread();
        assertThat(failure(seen).code()).isEqualTo(Code.UNAVAILABLE);
        hand.reads(old, true);
    }

    /** Counts its subscribers. */
    private static final class Counted implements Flow.Publisher<String> {
        int subscribers;

        @Override
        public void subscribe(Flow.Subscriber<? super String> to) {
            subscribers++;
            to.onSubscribe(new Seen.Never());
        }
    }

    /** The loop finds that a call has not been sent while its caller is about to subscribe, or just after that. */
    @Test
    void aCallThatTakesAStreamMayBeMadeAgainWhileThePublisherHasNoSubscriberAndNeverGetsOne() throws Exception {
        open();
        Codecs codecs = Codecs.standard(Remote.class);
        java.lang.reflect.Method takes = Remote.class.getMethod("takes", Flow.Publisher.class);
        ClientSteps steps = new ClientSteps(
                new ClientMethod(
                        100,
                        ClientMethod.Kind.ASYNC,
                        "hand",
                        "takes",
                        Streams.NO_PARAMETERS,
                        codecs.result(takes),
                        MethodDictionary.UNKNOWN_SHAPE,
                        MethodSchema.UNKNOWN,
                        TimeUnit.MINUTES.toNanos(1),
                        null,
                        null,
                        codecs.value(String.class)),
                client.core().address("peer", 1));
        for (boolean subscribes : new boolean[] {false, true}) {
            Counted items = new Counted();
            Object[] arguments = {items};
            long deadline = hand.ticker.nanoTime() + TimeUnit.MINUTES.toNanos(1);
            ClientCall call = steps.writer.prepare(
                    connection(),
                    arguments,
                    null,
                    Metadata.EMPTY,
                    deadline,
                    connection().nanoTime());
            StreamSender upload = Objects.requireNonNull(call.upload);
            if (subscribes) {
                RequestWriter.subscribe(upload, arguments);
            }
            // the end of the attempt does the same
            upload.cancel();
            assertThat(Attempts.next(null, steps, connection().notSentError(), upload, null) != null)
                    .isEqualTo(!subscribes);
            RequestWriter.subscribe(upload, arguments);
            assertThat(items.subscribers).isEqualTo(subscribes ? 1 : 0);
            call.dropUnsent();
        }
    }

    @Test
    void aCallThatTakesAStreamIsNotMadeAgainOnceThePublisherHasASubscriber() {
        open();
        pass(1_000);
        CompletableFuture<String> inFlight = echo("a");
        Counted items = new Counted();
        CompletableFuture<Integer> call = remote.takes(items);
        calls.add(call);
        EmbeddedChannel old = channel();
        drainsUnread();
        assertThat(failure(call).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(call).executed()).isEqualTo(Executed.NOT_EXECUTED);
        assertThat(items.subscribers).isEqualTo(1);
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        assertThat(inFlight).isCompletedWithValue("b");
        assertThat(old.isOpen()).isFalse();
    }

    @Test
    void aCallHasNotTheIdOfTheLastOneThatWasSentHoweverManyEndedUnsentBetween() {
        open();
        pass(1_000);
        CompletableFuture<String> first = echo("a");
        int id = expect(Wire.REQUEST).id();
        send(Wire.REPLY, id, RawPeer.text("a"));
        assertThat(first).isCompletedWithValue("a");
        // generations go from 1 to 65535, so the second call after these would have that of the first call
        for (int unsent = 0; unsent < 65_533; unsent++) {
            connection().slots.acquire(0).dropUnsent();
        }
        hand.reads(channel(), false);
        echo("waits for the socket").cancel(true);
        hand.reads(channel(), true);
        expectNothing();
        echo("b");
        int next = expect(Wire.REQUEST).id();
        assertThat(next & Wire.SLOT_MASK).isEqualTo(id & Wire.SLOT_MASK);
        assertThat(next).isNotEqualTo(id);
    }

    // ---- calls

    @Test
    void anErrorEndsItsCallOnly() {
        open();
        CompletableFuture<String> one = echo("a");
        CompletableFuture<String> two = echo("b");
        sendError(expect(Wire.REQUEST).id(), Code.NOT_FOUND, Executed.NOT_EXECUTED);
        assertThat(failure(one).code()).isEqualTo(Code.NOT_FOUND);
        assertThat(two).isNotDone();
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        assertThat(two).isCompletedWithValue("b");
    }

    /** If the client believed a broken server, it would make the call twice. */
    @Test
    void anErrorBehindWhatOnlyAHandlerBringsDoesNotSayThatThereWasNone() {
        open();
        CompletableFuture<String> reply = echo("a");
        int id = expect(Wire.REQUEST).id();
        sendPart(Wire.REPLY | Wire.MORE, id);
        sendError(id, Code.OVERLOADED, Executed.NOT_EXECUTED);
        assertThat(failure(reply).executed()).isEqualTo(Executed.EXECUTED);
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        id = next().id();
        expect(Wire.CREDIT);
        send(Wire.ITEM, id, RawPeer.text("x"));
        sendError(id, Code.UNAVAILABLE, Executed.NOT_EXECUTED);
        assertThat(seen.failure)
                .isInstanceOfSatisfying(
                        RPCXException.class,
                        failure -> assertThat(failure.executed()).isEqualTo(Executed.EXECUTED));
        CompletableFuture<Integer> upload = remote.takes(subscriber -> subscriber.onSubscribe(new Seen.Never()));
        calls.add(upload);
        hand.settle(channel());
        id = next().id();
        send(Wire.CREDIT, id, Unpooled.wrappedBuffer(new byte[] {1}));
        sendError(id, Code.UNAVAILABLE, Executed.NOT_EXECUTED);
        assertThat(failure(upload).executed()).isEqualTo(Executed.EXECUTED);
    }

    @Test
    void aResultAtTheEndOfAStreamIsNoStreamWithoutItems() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = next().id();
        expect(Wire.CREDIT);
        send(Wire.REPLY, id, RawPeer.text("of another method"));
        assertThat(seen.failure).isInstanceOfSatisfying(RPCXException.class, failure -> {
            assertThat(failure.code()).isEqualTo(Code.PROTOCOL);
            assertThat(failure.executed()).isEqualTo(Executed.EXECUTED);
        });
        assertThat(seen.items).isEmpty();
        assertThat(connection().load()).isZero();
    }

    @Test
    void aReplyInPartsIsWholeWithItsLast() {
        open();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        byte[] body = ByteBufUtil.getBytes(RawPeer.text("y".repeat(30_000)));
        send(Wire.REPLY | Wire.MORE, id, Unpooled.wrappedBuffer(body, 0, 10_000));
        send(Wire.PART | Wire.MORE, id, Unpooled.wrappedBuffer(body, 10_000, 10_000));
        assertThat(call).isNotDone();
        send(Wire.PART, id, Unpooled.wrappedBuffer(body, 20_000, body.length - 20_000));
        assertThat(call).isCompletedWithValue("y".repeat(30_000));
    }

    @Test
    void aReplyThatCannotBeReadEndsItsCallOnly() {
        open();
        CompletableFuture<String> call = echo("a");
        send(
                Wire.REPLY,
                expect(Wire.REQUEST).id(),
                Unpooled.buffer().writeByte(0x0a).writeByte(50));
        assertThat(failure(call).code()).isEqualTo(Code.INVALID);
        assertThat(connection().isUsable()).isTrue();
    }

    @Test
    void callsEndEachInItsTime() {
        open();
        CompletableFuture<String> patient = echo("a");
        pass(500);
        CompletableFuture<String> brief = remote.brief("b");
        calls.add(brief);
        hand.settle(channel());
        pass(999);
        assertThat(brief).isNotDone();
        pass(51);
        assertThat(failure(brief).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(patient).isNotDone();
        pass(8_400);
        assertThat(patient).isNotDone();
        pass(100);
        assertThat(failure(patient).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(failure(patient)).hasMessageContaining("no reply in time");
        expect(Wire.REQUEST);
        next();
        expect(Wire.CANCEL);
        expect(Wire.CANCEL);
    }

    /** Makes a call whose time is one second, and whose end is this much later. Returns what its caller is told. */
    private RPCXException endedLate(long nanos) {
        CompletableFuture<String> brief = remote.brief("a");
        calls.add(brief);
        hand.settle(channel());
        int id = requestAmong().id();
        hand.pass(channel(), TimeUnit.SECONDS.toNanos(1) + nanos, TimeUnit.NANOSECONDS);
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        return failure(brief);
    }

    @Test
    void aCallWhoseEndIsLateByMoreThanATenthOfItsTimeTellsThatTheEventLoopWasHeldUp() {
        open();
        RPCXException inTime = endedLate(TimeUnit.MILLISECONDS.toNanos(100));
        assertThat(inTime.code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(inTime).hasMessageEndingWith(": no reply in time");
        RPCXException heldUp = endedLate(TimeUnit.MILLISECONDS.toNanos(100) + 1);
        assertThat(heldUp.code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(heldUp.executed()).isEqualTo(Executed.MAYBE);
        assertThat(heldUp).hasMessageEndingWith("while the event loop was held up for 100 ms or more");
    }

    @Test
    void fiveMillisecondsAreNotLateHoweverLittleTimeACallHas() {
        open();
        for (long late : new long[] {5_000_000, 5_000_001}) {
            CurrentCall.set(new TimedContext(
                    hand.ticker().nanoTime() + TimeUnit.MILLISECONDS.toNanos(10), Metadata.EMPTY, null, hand.ticker()));
            CompletableFuture<String> bound;
            try {
                bound = echo("a");
            } finally {
                CurrentCall.set(null);
            }
            hand.pass(channel(), TimeUnit.MILLISECONDS.toNanos(10) + late, TimeUnit.NANOSECONDS);
            assertThat(String.valueOf(failure(bound).getMessage()).contains("held up"))
                    .isEqualTo(late > 5_000_000);
        }
    }

    @Test
    void aCallThatIsGivenUpIsCancelledOnce() {
        open();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        call.cancel(true);
        hand.settle(channel());
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        assertThat(connection().load()).as("its slot is owed an answer").isEqualTo(1);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
        expectNothing();
    }

    /**
     * A thread cancels the call. It has seen the slot of the earlier attempt, which another call has by now. The event
     * loop has just noted the slot of the next attempt, and the number of its use. Both uses have the same number.
     */
    @Test
    void aCallThatIsGivenUpAsItIsTriedAgainEndsNoOtherOne() throws Exception {
        open();
        Codecs codecs = Codecs.standard(Remote.class);
        java.lang.reflect.Method echo = Remote.class.getMethod("echo", String.class);
        ClientSteps steps = new ClientSteps(
                new ClientMethod(
                        100,
                        ClientMethod.Kind.ASYNC,
                        "hand",
                        "echo",
                        codecs.parameters(echo),
                        codecs.result(echo),
                        MethodDictionary.UNKNOWN_SHAPE,
                        MethodSchema.UNKNOWN,
                        TimeUnit.MINUTES.toNanos(1),
                        null,
                        null,
                        null),
                client.core().address("peer", 1));
        long now = hand.ticker.nanoTime();
        FutureCall retried = new FutureCall(
                steps, new Object[] {"a"}, Metadata.EMPTY, now + TimeUnit.MINUTES.toNanos(1), null, null);
        retried.start(now);
        hand.settle(channel());
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("a"));
        CompletableFuture<String> other = echo("b");
        int id = expect(Wire.REQUEST).id();
        ClientCall taken = Objects.requireNonNull(connection().slots.at(id & Wire.SLOT_MASK));
        ClientCall next = new ClientCall(connection(), 1);
        next.serial = taken.serial;
        retried.copyFromSlot(next);
        retried.run();
        hand.settle(channel());
        expectNothing();
        assertThat(other).isNotDone();
        send(Wire.REPLY, id, RawPeer.text("b"));
        assertThat(other).isCompletedWithValue("b");
    }

    @Test
    void aCallThatCannotBeSentLeavesNoSlotForTheLoopToLookFor() {
        open();
        CompletableFuture<String> large = echo("x".repeat(Wire.MAX_MESSAGE_BYTES + 1));
        assertThat(failure(large).code()).isEqualTo(Code.TOO_LARGE);
        assertThat(connection().slots.taken()).isZero();
        assertThat(connection().slots.hasOrphans).isFalse();
    }

    @Test
    void aHedgeThatCannotBeSentCostsNoRetry() {
        open();
        CompletableFuture<String> call = remote.hedged("a");
        calls.add(call);
        hand.settle(channel());
        int id = expect(Wire.REQUEST).id();
        connection().slots.limit(1);
        hedge();
        expectNothing();
        int left = 0;
        while (client.core().address("peer", 1).budget().spend()) {
            left++;
        }
        assertThat(left).isEqualTo(10);
        send(Wire.REPLY, id, RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
    }

    @Test
    void aCallThatHasWaitedForItsConnectionKeepsNoCopyOfItsArgumentsOnceItIsSent() {
        CompletableFuture<String> call = echo("x".repeat(10_000));
        assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isGreaterThan(9_999);
        send(RawPeer.preface());
        dictionary(Wire.DICTIONARY, "echo");
        look();
        int id = frames.stream()
                .filter(frame -> (frame.head() & Wire.TYPE_MASK) == Wire.REQUEST)
                .findFirst()
                .orElseThrow()
                .id();
        frames.clear();
        assertThat(call).isNotDone();
        assertThat(requestBytes()).as("the slot's own buffer").isBetween(10_000L, 16_384L);
        send(Wire.REPLY, id, RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
        assertThat(requestBytes()).isZero();
    }

    /** Otherwise nobody would look at the deadlines again, and the calls would not end. */
    @Test
    void callsWhoseDeadlinesCannotBeLookedAtEndWithTheirConnection() {
        open();
        CompletableFuture<String> call = remote.brief("a");
        calls.add(call);
        hand.settle(channel());
        expect(Wire.REQUEST);
        pass(999);
        assertThat(call).isNotDone();
        // the loop and its timer read the clock first, and the third reading fails
        hand.ticker.failAt(3);
        pass(1);
        hand.ticker.failAt(0);
        assertThat(failure(call).code()).isEqualTo(Code.OVERLOADED);
        assertThat(channel().isOpen()).isFalse();
    }

    /** The caller of the first call cannot be told of its end. This call and all behind it end with the connection. */
    @Test
    void callsWhoseEndCannotBeToldInTheirTimeEndWithTheirConnection() {
        for (int failing = 6; failing < 8; failing++) {
            if (failing == 6) {
                open();
            } else {
                frames.clear();
                pass(1_000);
                openAgain();
            }
            List<CompletableFuture<String>> both = List.of(remote.brief("a"), remote.brief("b"));
            calls.addAll(both);
            hand.settle(channel());
            pass(999);
            assertThat(both).noneMatch(CompletableFuture::isDone);
            // the readings of the loop, its timers and the look come first, and do not fail
            hand.ticker.failAt(failing);
            pass(1);
            hand.ticker.failAt(0);
            assertThat(both).allMatch(CompletableFuture::isCompletedExceptionally);
            assertThat(channel().isOpen()).isFalse();
        }
    }

    @Test
    void largeBuffersAreGivenUpWhenItIsQuiet() {
        open();
        CompletableFuture<String> call = echo("x".repeat(50_000));
        look();
        int id = frames.remove().id();
        frames.clear();
        send(Wire.REPLY, id, RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isPositive();
        pass(60_000);
        pass(60_000);
        pass(300_000);
        send(Wire.PONG, 0);
        pass(300_000);
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isZero();
    }

    /** One slot's buffer cannot be given up, for example because there is no memory for a smaller one. */
    @Test
    void noSlotIsLostWhereABufferCannotBeGivenUp() {
        open();
        for (int i = 0; i < 3; i++) {
            echo("x".repeat(50_000));
        }
        look();
        List<Integer> ids = frames.stream().map(Frame::id).distinct().toList();
        assertThat(ids).hasSize(3);
        frames.clear();
        ids.forEach(id -> send(Wire.REPLY, id, RawPeer.text("b")));
        CallSlots slots = connection().slots;
        assertThat(slots.taken()).isZero();
        ByteBuf body = Objects.requireNonNull(slots.at(1)).body;
        body.release();
        slots.trim();
        assertThat(slots.taken()).isZero();
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isZero();
    }

    @Test
    void oneWayCallsThatHaveNotEndedAreFound() {
        open();
        CompletableFuture<String> other = echo("a");
        int otherId = expect(Wire.REQUEST).id();
        remote.note("b");
        hand.settle(channel());
        int id = expect(Wire.NOTICE).id();
        List<CompletableFuture<?>> found = new ArrayList<>();
        connection().slots.addOneWay(found);
        assertThat(found).hasSize(1);
        send(Wire.REPLY, id);
        connection().slots.addOneWay(found);
        assertThat(found).hasSize(1);
        send(Wire.REPLY, otherId, RawPeer.text("b"));
        assertThat(other).isCompletedWithValue("b");
    }

    @Test
    void aOneWayCallIsSentAsANotice() {
        open();
        remote.note("a");
        hand.settle(channel());
        Frame notice = next();
        assertThat(notice.head() & Wire.TYPE_MASK).isEqualTo(Wire.NOTICE);
        send(Wire.REPLY, notice.id());
        assertThat(connection().load()).isZero();
    }

    private byte[] notice() {
        Frame notice = expect(Wire.NOTICE);
        return java.util.Arrays.copyOfRange(notice.payload(), notice.payload().length - 3, notice.payload().length);
    }

    /** The caller cannot know until when the arguments may not change. */
    @Test
    void aOneWayCallThatIsRefusedIsMadeAgainAsItWasMade() {
        open();
        byte[] bytes = {1, 2, 3};
        remote.bytes(bytes);
        hand.settle(channel());
        bytes[1] = 9;
        int id = FIRST + (1 << 16);
        assertThat(notice()).containsExactly(1, 2, 3);
        sendError(id, Code.UNAVAILABLE, Executed.NOT_EXECUTED);
        bytes[2] = 9;
        assertThat(notice()).containsExactly(1, 2, 3);
        send(Wire.REPLY, id + (1 << 16));
        assertThat(connection().load()).isZero();
    }

    /** The subscriber cannot know until when the arguments may not change. */
    @Test
    void aStreamThatGoesToAnotherConnectionTakesTheArgumentsThatItWasSubscribedWith() {
        open();
        byte[] bytes = {1, 2, 3};
        Seen seen = new Seen(1);
        remote.bringsOfBytes(bytes).subscribe(seen);
        bytes[1] = 9;
        // the server drains before a byte of the call has been sent
        send(Wire.GOAWAY, 0);
        expect(Wire.GOAWAY);
        bytes[2] = 9;
        openAgain();
        byte[] request = expect(Wire.REQUEST).payload();
        assertThat(java.util.Arrays.copyOfRange(request, request.length - 3, request.length))
                .containsExactly(1, 2, 3);
        send(Wire.REPLY, FIRST);
        assertThat(seen.ends).isEqualTo(1);
        assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
    }

    /** By then, the buffer has bytes of the reply instead of the arguments. */
    @Test
    void aOneWayCallIsNotMadeAgainBehindTheBeginOfAReply() {
        open();
        remote.bytes(new byte[] {1, 2, 3});
        hand.settle(channel());
        int id = FIRST + (1 << 16);
        assertThat(notice()).containsExactly(1, 2, 3);
        send(Wire.REPLY | Wire.MORE, id, RawPeer.text("from the server"));
        sendError(id, Code.UNAVAILABLE, Executed.MAYBE);
        expectNothing();
        assertThat(connection().load()).isZero();
    }

    @Test
    void aOneWayCallThatWasTooLargeToKeepIsNotMadeAgain() {
        open();
        remote.bytes(new byte[200_000]);
        hand.settle(channel());
        Frame first = expect(Wire.NOTICE);
        look();
        frames.clear();
        sendError(first.id(), Code.UNAVAILABLE, Executed.NOT_EXECUTED);
        expectNothing();
        assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
    }

    private int triesLeft() {
        int left = 0;
        for (RetryBudget budget = connection().address().budget(); budget.spend(); left++) {}
        return left;
    }

    @Test
    void aCallWhoseCallerHasItsEndIsNotMadeAgainAndSpendsNoRetry() {
        open();
        CompletableFuture<String> call = remote.again("a");
        hand.settle(channel());
        Frame request = expect(Wire.REQUEST);
        call.complete("of the caller's own");
        sendError(request.id(), Code.UNAVAILABLE, Executed.NOT_EXECUTED);
        expectNothing();
        assertThat(triesLeft()).isEqualTo(10);
    }

    /** Says when the caller of a call completes its future, after an attempt that has failed. */
    private enum EndByCaller {
        AS_IT_WAITS,
        AS_ITS_CONNECTION_IS_CHOSEN,
        AS_ITS_ARGUMENTS_ARE_READ
    }

    @ParameterizedTest
    @EnumSource(EndByCaller.class)
    void aFutureThatItsCallerEndsBetweenTwoAttemptsHoldsNothingOfItsCall(EndByCaller end) throws Exception {
        open();
        Heap.assumeCollected();
        Chosen route = end == EndByCaller.AS_IT_WAITS ? new Chosen(true) : new Chosen(true, true);
        Written written = new Written();
        CompletableFuture<Object> kept = new CompletableFuture<>();
        WeakReference<Object> argument = again(route, written, kept);
        Runnable ends = () -> call(kept).complete("of the caller's own");
        Frame request = expect(Wire.REQUEST);
        if (end == EndByCaller.AS_ITS_CONNECTION_IS_CHOSEN) {
            route.asReady = ends;
        } else if (end == EndByCaller.AS_ITS_ARGUMENTS_ARE_READ) {
            written.behind = ends;
        }
        sendError(request.id(), Code.UNAVAILABLE, Executed.NOT_EXECUTED);
        if (end == EndByCaller.AS_IT_WAITS) {
            assertThat(route.waitingCalls()).isEqualTo(1);
            ends.run();
        }
        assertThat(call(kept)).isCompletedWithValue("of the caller's own");
        expectNothing();
        assertThat(route.waitingCalls()).isZero();
        assertThat(connection().slots.taken()).isZero();
        await().until(() -> {
            System.gc();
            return argument.refersTo(null);
        });
        assertThat(call(kept)).isDone();
    }

    @SuppressWarnings("unchecked") // the call's result is a text
    private static CompletableFuture<String> call(CompletableFuture<Object> kept) {
        return (CompletableFuture<String>) kept.join();
    }

    /** Makes an idempotent call by this route, and returns its argument, which the test does not keep. */
    private WeakReference<Object> again(Route route, Codec<Object[]> parameters, CompletableFuture<Object> call)
            throws Exception {
        java.lang.reflect.Method again = Remote.class.getMethod("again", String.class);
        ClientSteps steps = new ClientSteps(
                new ClientMethod(
                        100,
                        ClientMethod.Kind.ASYNC,
                        "hand",
                        "echo",
                        parameters,
                        Codecs.standard(Remote.class).result(again),
                        MethodDictionary.UNKNOWN_SHAPE,
                        MethodSchema.UNKNOWN,
                        TimeUnit.MINUTES.toNanos(1),
                        null,
                        again.getAnnotation(Method.class),
                        null),
                route);
        Object argument = new StringBuilder("a");
        call.complete(Objects.requireNonNull(steps.call(new Object[] {argument}, Metadata.EMPTY)));
        hand.settle(channel());
        return new WeakReference<>(argument);
    }

    /** The timer makes the second attempt, and the connection's loop sends it. */
    private void hedge() {
        pass(50);
        hand.settle(channel());
    }

    /** Either one attempt is in flight, or both are. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aHedgedCallThatItsCallerEndsIsCancelledWhereverItIsInFlight(boolean isTwice) {
        open();
        CompletableFuture<String> call = remote.hedged("a");
        hand.settle(channel());
        List<Integer> inFlight = new ArrayList<>(List.of(expect(Wire.REQUEST).id()));
        if (isTwice) {
            hedge();
            inFlight.add(expect(Wire.REQUEST).id());
        }
        call.complete("of the caller's own");
        hand.settle(channel());
        for (int id : inFlight) {
            assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
            sendError(id, Code.CANCELLED, Executed.EXECUTED);
        }
        assertThat(connection().slots.taken()).isZero();
        hedge();
        expectNothing();
        assertThat(call).isCompletedWithValue("of the caller's own");
    }

    /** Either only the first attempt waits, or both do. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aHedgedCallThatItsCallerEndsAsItWaitsForItsConnectionKeepsNeitherPlacesNorBytes(boolean isTwice) {
        CompletableFuture<String> call = remote.hedged("x".repeat(10_000));
        connecting();
        if (isTwice) {
            hedge();
        }
        ClientAddress address = client.core().address("peer", 1);
        assertThat(address.waitingCalls()).isEqualTo(isTwice ? 2 : 1);
        assertThat(requestBytes()).isGreaterThan(9_999);
        call.complete("of the caller's own");
        assertThat(address.waitingCalls()).isZero();
        assertThat(requestBytes()).isZero();
        hedge();
        assertThat(address.waitingCalls()).isZero();
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        dictionary(Wire.DICTIONARY, "echo");
        expectNothing();
    }

    /** Writes a text that its caller may change, and then does what a test says. */
    private static final class Written implements Codec<Object[]> {
        int writes;
        Runnable behind = () -> {};

        @Override
        public void write(Object[] arguments, ByteBuf out) {
            writes++;
            out.writeBytes(RawPeer.text(arguments[0].toString()));
            behind.run();
        }

        @Override
        public Object[] read(ByteBuf in) {
            throw new IllegalStateException("a client reads none");
        }
    }

    /** The result comes on one event loop while another one reads the arguments for the other attempt. */
    @Test
    void whatIsReadForAnAttemptOnceTheCallerHasItsResultIsNotSent() throws Exception {
        open();
        Written written = new Written();
        Codecs codecs = Codecs.standard(Remote.class);
        java.lang.reflect.Method hedged = Remote.class.getMethod("hedged", String.class);
        ClientSteps steps = new ClientSteps(
                new ClientMethod(
                        100,
                        ClientMethod.Kind.ASYNC,
                        "hand",
                        "echo",
                        written,
                        codecs.result(hedged),
                        MethodDictionary.UNKNOWN_SHAPE,
                        MethodSchema.UNKNOWN,
                        TimeUnit.MINUTES.toNanos(1),
                        null,
                        hedged.getAnnotation(Method.class),
                        null),
                client.core().address("peer", 1));
        for (boolean isRetry : new boolean[] {false, true}) {
            StringBuilder text = new StringBuilder("a");
            CompletableFuture<?> call =
                    (CompletableFuture<?>) Objects.requireNonNull(steps.call(new Object[] {text}, Metadata.EMPTY));
            hand.settle(channel());
            int first = expect(Wire.REQUEST).id();
            int answered = first;
            if (isRetry) {
                hedge();
                answered = expect(Wire.REQUEST).id();
            }
            Frame reply = new Frame(Wire.REPLY, answered, ByteBufUtil.getBytes(RawPeer.text("b")));
            written.behind = () -> {
                written.behind = () -> {};
                send(reply.head(), reply.id(), Unpooled.wrappedBuffer(reply.payload()));
                text.append(" changed");
            };
            if (isRetry) {
                sendError(first, Code.UNAVAILABLE, Executed.NOT_EXECUTED);
            } else {
                hedge();
            }
            assertThat(call.join()).isEqualTo("b");
            expectNothing();
            assertThat(connection().slots.taken()).isZero();
        }
        assertThat(written.writes).isEqualTo(2 + 3);
    }

    // ---- streams

    @Test
    void aStreamBringsItsItemsForTheCreditThatItsSubscriberGives() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(2));
        Frame request = expect(Wire.REQUEST);
        expectCredit(request.id(), 2);
        assertThat(seen.items).isEmpty();
        send(Wire.ITEM, request.id(), RawPeer.text("a"));
        send(Wire.ITEM, request.id(), RawPeer.text("b"));
        assertThat(seen.items).containsExactly("a", "b");
        seen.subscription().request(7);
        hand.settle(channel());
        expectCredit(request.id(), 7);
        send(
                Wire.ITEM | Wire.MORE,
                request.id(),
                Unpooled.wrappedBuffer(ByteBufUtil.getBytes(RawPeer.text("cd")), 0, 3));
        send(Wire.PART, request.id(), Unpooled.buffer().writeByte('d'));
        assertThat(seen.items).containsExactly("a", "b", "cd");
        assertThat(seen.ends).isZero();
        send(Wire.REPLY, request.id());
        assertThat(seen.ends).isEqualTo(1);
        assertThat(seen.failure).isNull();
        assertThat(connection().load()).isZero();
    }

    @Test
    void eachSubscriberMakesACallOfItsOwn() {
        open();
        Flow.Publisher<String> stream = remote.brings(3);
        expectNothing();
        Seen one = subscribe(stream, new Seen(0));
        Seen two = subscribe(stream, new Seen(0));
        send(Wire.REPLY, expect(Wire.REQUEST).id());
        assertThat(one.ends).isEqualTo(1);
        assertThat(two.ends).isZero();
        send(Wire.REPLY, expect(Wire.REQUEST).id());
        assertThat(two.ends).isEqualTo(1);
        assertThatThrownBy(() -> stream.subscribe(null)).isInstanceOf(NullPointerException.class);
    }

    @Test
    void aStreamWaitsForItsConnection() {
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        connecting();
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        dictionary(Wire.DICTIONARY, "brings");
        Frame request = expect(Wire.REQUEST);
        expectCredit(request.id(), 5);
        send(Wire.REPLY, request.id());
        assertThat(seen.ends).isEqualTo(1);
    }

    @Test
    void aStreamThatFindsNoConnectionIsToldSo() {
        Seen seen = subscribe(remote.bringsBriefly(3), new Seen(5));
        connecting();
        assertThat(seen.ends).isZero();
        pass(1_000);
        assertThat(failure(seen).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(failure(seen).executed()).isEqualTo(Executed.NOT_EXECUTED);
    }

    @Test
    void aStreamThatIsCancelledBeforeItHasAConnectionIsNotSent() {
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        connecting();
        seen.subscription().cancel();
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        dictionary(Wire.DICTIONARY, "brings");
        expectNothing();
        assertThat(seen.ends).isZero();
    }

    @Test
    void aStreamThatIsCancelledIsCancelledThere() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(1));
        int id = expect(Wire.REQUEST).id();
        expectCredit(id, 1);
        seen.subscription().cancel();
        hand.settle(channel());
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        send(Wire.ITEM, id, RawPeer.text("late"));
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(seen.items).isEmpty();
        assertThat(seen.ends).isZero();
        seen.subscription().cancel();
        seen.subscription().request(1);
        hand.settle(channel());
        expectNothing();
    }

    @Test
    void aStreamThatIsCancelledAsItBeginsIsNotSent() {
        open();
        Seen seen = new Seen(0);
        seen.cancelsAtOnce = true;
        subscribe(remote.brings(3), seen);
        expectNothing();
        assertThat(connection().load()).isZero();
    }

    @Test
    void aStreamIsCancelledByAnItemThatCannotBeRead() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = expect(Wire.REQUEST).id();
        expectCredit(id, 5);
        send(Wire.ITEM, id, Unpooled.buffer().writeByte(0x0a).writeByte(50));
        hand.settle(channel());
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(failure(seen).code()).isEqualTo(Code.INVALID);
    }

    @Test
    void anErrorEndsAStream() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        sendError(expect(Wire.REQUEST).id(), Code.HANDLER_FAILED, Executed.EXECUTED);
        assertThat(failure(seen).code()).isEqualTo(Code.HANDLER_FAILED);
    }

    @Test
    void aStreamHasTheTimeOfItsMethodAndOfTheCallThatItWasMadeIn() {
        open();
        Seen brief = subscribe(remote.bringsBriefly(3), new Seen(5));
        pass(999);
        assertThat(brief.ends).isZero();
        pass(51);
        assertThat(failure(brief).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        CurrentCall.set(new TimedContext(
                hand.ticker().nanoTime() + TimeUnit.MILLISECONDS.toNanos(300), Metadata.EMPTY, null, hand.ticker()));
        Flow.Publisher<String> made;
        try {
            made = remote.brings(3);
        } finally {
            CurrentCall.set(null);
        }
        Seen bound = subscribe(made, new Seen(5));
        pass(299);
        assertThat(bound.ends).isZero();
        pass(51);
        assertThat(failure(bound).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
    }

    @Test
    void aStreamGoesBothWays() {
        open();
        Seen seen = subscribe(remote.both(new FuzzService.Items(2, false)), new Seen(5));
        Frame request = next();
        assertThat(request.head() & Wire.TYPE_MASK).isEqualTo(Wire.REQUEST);
        expectCredit(request.id(), 5);
        ByteBuf credit = Unpooled.buffer().writeByte(9);
        send(Wire.CREDIT, request.id(), credit);
        assertThat(expect(Wire.ITEM).payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text("item 1")));
        expect(Wire.ITEM);
        expect(Wire.END);
        send(Wire.ITEM, request.id(), RawPeer.text("a"));
        send(Wire.REPLY, request.id());
        assertThat(seen.items).containsExactly("a");
        assertThat(seen.ends).isEqualTo(1);
    }

    @Test
    void aStreamThatCannotBeSentIsToldSo() {
        open();
        pass(1_000);
        sendError(0, Code.PROTOCOL, Executed.MAYBE);
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.MAX_CALLS, 1);
        Seen waiting = subscribe(remote.brings(3), new Seen(0));
        connecting();
        frames.clear();
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        send(Wire.SETTINGS, 0, settings);
        dictionary(Wire.DICTIONARY, "brings");
        expect(Wire.REQUEST);
        Seen refused = subscribe(remote.brings(3), new Seen(0));
        assertThat(failure(refused).code()).isEqualTo(Code.OVERLOADED);
        assertThat(waiting.ends).isZero();
    }

    @Test
    void whoBreaksARuleAsTheStreamBeginsIsToldSoAndNothingIsSent() {
        open();
        Seen seen = new Seen(0);
        seen.breaksARule = true;
        subscribe(remote.brings(3), seen);
        assertThat(seen.failure).isInstanceOf(IllegalArgumentException.class);
        assertThat(seen.ends).isEqualTo(1);
        expectNothing();
    }

    @Test
    void aStreamThatWaitsForItsConnectionKeepsWhatItWasSubscribedWithAndPaysForItUntilItIsSent() {
        byte[] bytes = new byte[10_000];
        Seen seen = subscribe(remote.bringsOfBytes(bytes), new Seen(0));
        bytes[9_999] = 9;
        assertThat(requestBytes()).isGreaterThan(9_999);
        connecting();
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        dictionary(Wire.DICTIONARY, "brings");
        Frame request = expect(Wire.REQUEST);
        assertThat(request.payload()).endsWith(0, 0);
        assertThat(requestBytes()).as("the slot's own buffer").isBetween(10_000L, 16_384L);
        assertThat(connection().slots.hasOrphans).isFalse();
        send(Wire.REPLY, request.id());
        assertThat(requestBytes()).isZero();
        assertThat(seen.ends).isEqualTo(1);
    }

    private long requestBytes() {
        return client.core().ledger().held(Resource.REQUEST_BYTES);
    }

    @Test
    @SuppressWarnings("NullAway") // nothing keeps a caller from this mistake
    void aStreamWhoseArgumentsCannotBeKeptUntilItHasAConnectionIsToldSo() {
        open();
        channel().close();
        hand.settle(channel());
        Seen seen = subscribe(remote.bringsOf(null), new Seen(0));
        assertThat(failure(seen).executed()).isEqualTo(Executed.NOT_EXECUTED);
        assertThat(requestBytes()).isZero();
        assertThat(client.core().address("peer", 1).waitingCalls()).isZero();
    }

    @Test
    void aStreamThatComesToNobodyAgainAndAgainEndsAfterEightAttempts() {
        Seen seen = unread(new Seen(2));
        int attempts = 1;
        while (seen.ends == 0) {
            assertThat(requestBytes()).as("what it was subscribed with").isGreaterThan(49_999);
            EmbeddedChannel old = channel();
            drainsUnread();
            hand.reads(old, true);
            if (seen.ends == 0) {
                assertThat(requestBytes()).as("while it waits").isGreaterThan(49_999);
                attempts++;
                assertThat(attempts).isLessThan(10);
                pass(1_000);
                connecting();
                frames.clear();
                send(RawPeer.preface());
                expect(Wire.SETTINGS);
                pass(1_000);
                dictionaryToAReaderOfNothing();
            }
        }
        assertThat(failure(seen).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(seen).executed()).isEqualTo(Executed.NOT_EXECUTED);
        assertThat(attempts).isEqualTo(8);
        assertThat(requestBytes()).isZero();
    }

    /** The connection takes calls from here on, and nothing of them is sent. */
    private void dictionaryToAReaderOfNothing() {
        hand.reads(channel(), false);
        channel().config().setAutoRead(true);
        dictionary(Wire.DICTIONARY, "echo", "brings");
        // the server has kept this connection for a while, so the next one is made at once
        pass(1_000);
        expectNothing();
    }

    /** Gives connections as a test says, and runs what the test says when it is asked for one. */
    private final class Chosen extends Route {
        final List<PendingConnection<ClientConnection>> pending = new ArrayList<>();
        private final ArrayDeque<Boolean> isReady = new ArrayDeque<>();
        Runnable asReady = () -> {};
        Runnable asComing = () -> {};

        /** @param isReady whether there is a connection, for each time that one is asked for; later there is none */
        Chosen(Boolean... isReady) {
            super(client.core());
            this.isReady.addAll(List.of(isReady));
        }

        @Override
        public boolean hasOthers(@Nullable ClientAddress used) {
            return false;
        }

        @Override
        @Nullable
        public ClientConnection ready(int key) {
            asReady.run();
            return !isReady.isEmpty() && isReady.remove() ? connection() : null;
        }

        @Override
        @Nullable
        public ClientConnection readyBeside(List<ClientAddress> asked) {
            return null;
        }

        @Override
        public PendingConnection<ClientConnection> connect(int key) {
            PendingConnection<ClientConnection> next = new PendingConnection<>();
            pending.add(next);
            asComing.run();
            return next;
        }

        @Override
        public PendingConnection<ClassicClientConnection> connectClassic() {
            throw new UnsupportedOperationException();
        }

        @Override
        public String toString() {
            return "chosen";
        }
    }

    /** Returns the stream of a call with one argument by this route. */
    private Flow.Publisher<String> stream(Route route, Codec<Object[]> parameters) throws Exception {
        return stream(route, parameters, null);
    }

    /** @param items codec of the argument's items, if the argument is a stream too */
    @SuppressWarnings("unchecked") // the items are texts
    private Flow.Publisher<String> stream(Route route, Codec<Object[]> parameters, @Nullable Codec<Object> items)
            throws Exception {
        Codecs codecs = Codecs.standard(Remote.class);
        java.lang.reflect.Method brings = Remote.class.getMethod("bringsOf", String.class);
        ClientSteps steps = new ClientSteps(
                new ClientMethod(
                        100,
                        ClientMethod.Kind.STREAM,
                        "hand",
                        "brings",
                        parameters,
                        codecs.result(brings),
                        MethodDictionary.UNKNOWN_SHAPE,
                        MethodSchema.UNKNOWN,
                        TimeUnit.MINUTES.toNanos(1),
                        null,
                        null,
                        items),
                route);
        // a proxy's method makes the stream in this way, after it has checked whether its argument is a stream
        return (Flow.Publisher<String>) (Flow.Publisher<?>) new ClientStream(steps, new Object[] {"a"}, Metadata.EMPTY);
    }

    /** Twice, others take the slot that was free when the connection was chosen. */
    @Test
    void aStreamThatIsOvertakenWaitsForTheNextConnectionAndCanBeGivenUpThen() throws Exception {
        open();
        connection().slots.limit(1);
        ClientCall taken = connection().slots.acquire(0);
        Chosen route = new Chosen(true, false, true, false);
        Seen seen = subscribe(stream(route, new Written()), new Seen(2));
        assertThat(route.pending).hasSize(1);
        assertThat(route.waitingCalls()).isEqualTo(1);
        long held = requestBytes();
        assertThat(held).isPositive();
        route.pending.get(0).complete(connection());
        assertThat(route.pending).hasSize(2);
        assertThat(route.waitingCalls()).isEqualTo(1);
        assertThat(requestBytes()).isEqualTo(held);
        seen.subscription().cancel();
        assertThat(route.waitingCalls()).isZero();
        assertThat(route.pending.get(1).isWaitedFor()).isFalse();
        assertThat(requestBytes()).isZero();
        assertThat(seen.ends).isZero();
        taken.dropUnsent();
    }

    /** The subscriber keeps its subscription. */
    @Test
    void aStreamThatIsCancelledAsItWaitsHoldsNothingOfTheConnectionThatComesLater() throws Exception {
        open();
        Heap.assumeCollected();
        Chosen route = new Chosen();
        Seen seen = subscribe(stream(route, new Written()), new Seen(2));
        seen.subscription().cancel();
        WeakReference<Object> pending = new WeakReference<>(route.pending.remove(0));
        await().until(() -> {
            System.gc();
            return pending.refersTo(null);
        });
        assertThat(seen.subscription).isNotNull();
    }

    /** The stream is cancelled as if by another thread. */
    @Test
    void aStreamThatIsCancelledAsItBeginsToWaitDoesNotWait() throws Exception {
        open();
        Chosen route = new Chosen();
        Seen seen = new Seen(2);
        route.asComing = () -> seen.subscription().cancel();
        subscribe(stream(route, new Written()), seen);
        assertThat(route.pending.get(0).isWaitedFor()).isFalse();
        assertThat(route.waitingCalls()).isZero();
        assertThat(requestBytes()).isZero();
        assertThat(seen.ends).isZero();
    }

    /** The stream is given up as if by another thread, because the subscriber has broken a rule. */
    @Test
    void aStreamThatIsGivenUpAsItsConnectionIsChosenIsNotSentAndItsSubscriberHasTheLastWord() throws Exception {
        open();
        Chosen route = new Chosen(true);
        Seen seen = new Seen(2);
        route.asReady = () -> seen.subscription().request(0);
        subscribe(stream(route, new Written()), seen);
        expectNothing();
        assertThat(route.pending).isEmpty();
        assertThat(connection().slots.taken()).isZero();
        assertThat(seen.failure).isInstanceOf(IllegalArgumentException.class);
        assertThat(seen.ends).isEqualTo(1);
    }

    /** The stream is cancelled as if by another thread. */
    @Test
    void aStreamThatIsCancelledAsItsArgumentsAreReadIsCancelledThere() throws Exception {
        open();
        Written written = new Written();
        Seen seen = new Seen(0);
        written.behind = () -> seen.subscription().cancel();
        subscribe(stream(client.core().address("peer", 1), written), seen);
        int id = expect(Wire.REQUEST).id();
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
        assertThat(seen.ends).isZero();
    }

    /**
     * Subscribes to a stream that fails after its request, as it could for want of memory. It fails since it is to send
     * a stream, but its argument is none.
     */
    private Seen failedBehindItsRequest() throws Exception {
        Codec<Object> items = Codecs.standard(Remote.class).result(Remote.class.getMethod("bringsOf", String.class));
        Seen seen = new Seen(2);
        stream(client.core().address("peer", 1), new Written(), items).subscribe(seen);
        return seen;
    }

    @Test
    void aStreamThatFailsBehindItsRequestIsToldSoAndCancelledThere() throws Exception {
        open();
        Seen seen = failedBehindItsRequest();
        hand.settle(channel());
        int id = expect(Wire.REQUEST).id();
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        assertThat(seen.failure).isInstanceOf(ClassCastException.class);
        seen.subscription().request(1);
        hand.settle(channel());
        expectNothing();
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
        assertThat(connection().slots.taken()).isZero();
        assertThat(seen.ends).isEqualTo(1);
    }

    @Test
    void aStreamThatFailsBehindARequestThatComesToNobodyKeepsNothing() throws Exception {
        open();
        Seen seen = failedBehindItsRequest();
        connection().close("of this test");
        hand.settle(channel());
        expectNothing();
        assertThat(seen.failure).isInstanceOf(ClassCastException.class);
        assertThat(seen.ends).isEqualTo(1);
        assertThat(requestBytes()).isZero();
        assertThat(connection().slots.taken()).isZero();
    }

    /** For example, there is no memory to count the end. */
    @Test
    void aStreamWhoseEndCannotBeCountedIsToldItAllTheSame() {
        open();
        for (int failing = 1; failing < 3; failing++) {
            Seen seen = subscribe(remote.brings(3), new Seen(0));
            ByteBuf end = RawPeer.frame(Wire.REPLY, expect(Wire.REQUEST).id(), Unpooled.EMPTY_BUFFER);
            hand.ticker.failAt(failing);
            send(end);
            hand.ticker.failAt(0);
            assertThat(seen.ends).isEqualTo(1);
            assertThat(seen.failure).isNull();
            assertThat(connection().load()).isZero();
        }
        assertThat(connection().isUsable()).isTrue();
    }

    /** For example, there is no memory to take the item. */
    @Test
    void anItemThatCannotBeTakenEndsItsCallAndNoOther() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(2));
        int id = expect(Wire.REQUEST).id();
        expect(Wire.CREDIT);
        ByteBuf item = RawPeer.frame(Wire.ITEM, id, RawPeer.text("a"));
        hand.ticker.failAt(1);
        send(item);
        assertThat(failure(seen).code()).isEqualTo(Code.OVERLOADED);
        assertThat(failure(seen)).hasMessageContaining("no memory is left for a frame from the server");
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().isUsable()).isTrue();
        assertThat(connection().load()).isZero();
    }

    // ---- streams that are trials

    /** Opens the circuit, so that the next call is its trial. */
    private void openCircuit() {
        open();
        for (int i = 0; i < 19; i++) {
            subscribe(remote.brings(3), new Seen(0));
            sendError(expect(Wire.REQUEST).id(), Code.OVERLOADED, Executed.NOT_EXECUTED);
        }
        expectRefusal();
        pass(1_000);
    }

    private void expectRefusal() {
        Seen refused = subscribe(remote.brings(3), new Seen(0));
        assertThat(failure(refused)).hasMessageContaining("circuit");
        expectNothing();
    }

    /** Takes the next request. PINGs may stand before it, and stay. */
    private Frame requestAmong() {
        look();
        Frame request = frames.stream()
                .filter(frame -> (frame.head() & Wire.TYPE_MASK) == Wire.REQUEST)
                .findFirst()
                .orElseThrow();
        frames.remove(request);
        return request;
    }

    private void expectClosedCircuit() {
        for (int i = 0; i < 3; i++) {
            subscribe(remote.brings(3), new Seen(0));
            expect(Wire.REQUEST);
        }
        expectNothing();
    }

    /** Passes time, and then lets the connection's loop look if a timer has asked for that. */
    private void passToTheLook(int millis) {
        pass(millis);
        hand.settle(channel());
    }

    @Test
    void aTrialThatBringsNothingIsAnsweredByASignOfTheServerOncePauseLater() {
        openCircuit();
        Seen trial = subscribe(remote.brings(3), new Seen(0));
        int id = requestAmong().id();
        List<Integer> pings = takePings();
        assertThat(pings).hasSize(1);
        expectRefusal();
        send(Wire.PONG, pings.get(0));
        passToTheLook(999);
        expectRefusal();
        passToTheLook(1);
        expectClosedCircuit();
        assertThat(trial.ends).isZero();
        send(Wire.REPLY, id);
        assertThat(trial.ends).isEqualTo(1);
    }

    @Test
    void theServerOfATrialIsAskedOncePerPauseUntilItSaysSomething() {
        openCircuit();
        subscribe(remote.brings(3), new Seen(0));
        requestAmong();
        assertThat(takePings()).hasSize(1);
        connection().askForSign();
        passToTheLook(999);
        connection().askForSign();
        assertThat(takePings()).as("within the pause").isEmpty();
        passToTheLook(1);
        List<Integer> pings = takePings();
        assertThat(pings).hasSize(1);
        send(Wire.PONG, pings.get(0));
        passToTheLook(1_000);
        expectClosedCircuit();
    }

    @Test
    void aTrialThatEndsWithoutAnItemHasBeenAnswered() {
        openCircuit();
        Seen trial = subscribe(remote.brings(3), new Seen(0));
        int id = requestAmong().id();
        assertThat(takePings()).hasSize(1);
        send(Wire.REPLY, id);
        assertThat(trial.ends).isEqualTo(1);
        expectClosedCircuit();
    }

    @Test
    void aTrialThatHasFailedIsNotAnsweredByWhatTheServerSaysBehindIt() {
        openCircuit();
        subscribe(remote.brings(3), new Seen(0));
        int id = requestAmong().id();
        List<Integer> pings = takePings();
        sendError(id, Code.OVERLOADED, Executed.NOT_EXECUTED);
        send(Wire.PONG, pings.get(0));
        passToTheLook(1_000);
        subscribe(remote.brings(3), new Seen(0));
        requestAmong();
        takePings();
        expectRefusal();
    }

    @Test
    @SuppressWarnings("NullAway") // nothing keeps a caller from this mistake
    void aStreamThatCannotBeSentGivesTheTrialToTheNext() {
        openCircuit();
        assertThat(failure(subscribe(remote.bringsOf(null), new Seen(0))).code())
                .isNotEqualTo(Code.UNAVAILABLE);
        subscribe(remote.brings(3), new Seen(0));
        requestAmong();
        takePings();
        expectRefusal();
    }

    /** The circuit opens when half of at least twenty calls have failed. */
    @Test
    void streamsThatFailOpenTheCircuitAndThoseThatBringSomethingCount() {
        open();
        for (int i = 0; i < 9; i++) {
            Seen good = subscribe(remote.bringsBriefly(3), new Seen(5));
            int id = next().id();
            expect(Wire.CREDIT);
            send(Wire.ITEM, id, RawPeer.text("a"));
            send(Wire.ITEM, id, RawPeer.text("b"));
            if (i % 2 == 0) {
                // the stream has brought something, so that its time is over is no failure
                sendError(id, Code.DEADLINE_EXCEEDED, Executed.MAYBE);
            } else {
                send(Wire.REPLY, id);
            }
            assertThat(good.ends).isEqualTo(1);
        }
        // ten calls have succeeded so far, with the first one; one more succeeds now, and then nine fail
        for (int i = 0; i < 10; i++) {
            Seen bad = subscribe(remote.bringsBriefly(3), new Seen(5));
            int id = next().id();
            expect(Wire.CREDIT);
            if (i == 0) {
                // this stream brings something, and succeeds
                send(Wire.ITEM, id, RawPeer.text("a"));
                send(Wire.REPLY, id);
            } else {
                sendError(id, Code.OVERLOADED, Executed.NOT_EXECUTED);
            }
            assertThat(bad.ends).isEqualTo(1);
        }
        for (int i = 0; i < 2; i++) {
            subscribe(remote.bringsBriefly(3), new Seen(5));
            int id = next().id();
            expect(Wire.CREDIT);
            sendError(id, Code.DEADLINE_EXCEEDED, Executed.MAYBE);
        }
        // eleven of twenty-two calls have failed
        Seen open = subscribe(remote.brings(3), new Seen(5));
        assertThat(failure(open).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(open)).hasMessageContaining("circuit");
        expectNothing();
    }

    // ---- calls that their own threads send

    @Test
    void aCallThatItsThreadSendsCountsLikeAnyOther() {
        open();
        assertThat(connection().enter()).isTrue();
        assertThat(connection().load()).isEqualTo(1);
        CompletableFuture<String> call = echo("a");
        assertThat(connection().load()).isEqualTo(2);
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
        connection().onOwnFinal();
        assertThat(connection().load()).isZero();
        hand.settle(channel());
        assertThat(channel().isOpen()).isTrue();
    }

    @Test
    void aConnectionThatDrainsTakesNoCallOfAThreadAndEndsWithTheLastOne() {
        open();
        assertThat(connection().enter()).isTrue();
        send(Wire.GOAWAY, 0);
        expect(Wire.GOAWAY);
        assertThat(connection().enter()).isFalse();
        assertThat(connection().load()).isEqualTo(1);
        hand.settle(channel());
        assertThat(channel().isOpen()).isTrue();
        connection().onOwnFinal();
        hand.settle(channel());
        assertThat(channel().isOpen()).isFalse();
    }

    // ---- bounds

    @Test
    void aConnectionIsCrowdedFromThreeQuartersOfWhatTheServerTakes() {
        open();
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.MAX_CALLS, 4);
        send(Wire.SETTINGS, 0, settings);
        echo("a");
        echo("b");
        assertThat(connection().isCrowded()).isFalse();
        echo("c");
        assertThat(connection().isCrowded()).isTrue();
        for (int i = 0; i < 3; i++) {
            send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("z"));
        }
    }

    @Test
    void aDictionaryHasAnEnd() {
        echo("a");
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        for (int first = 0; first < 2 * Wire.MAX_DICTIONARY; first += 256) {
            String[] names = new String[256];
            for (int i = 0; i < names.length; i++) {
                names[i] = "method" + (first + i);
            }
            dictionary(Wire.DICTIONARY | Wire.MORE, names);
        }
        send(Wire.DICTIONARY, 0);
        assertThat(connection().published().join()).hasSize(Wire.MAX_DICTIONARY);
        send(Wire.REPLY, next().id(), RawPeer.text("b"));
    }

    /** Settings come behind the dictionary. */
    @Test
    void slotsThatTheServerDoesNotTakeAreNotUsedAgain() {
        open();
        List<Integer> ids = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            echo("a");
            ids.add(expect(Wire.REQUEST).id());
        }
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.MAX_CALLS, 2);
        send(Wire.SETTINGS, 0, settings);
        ids.forEach(id -> send(Wire.REPLY, id, RawPeer.text("b")));
        for (int i = 0; i < 4; i++) {
            CompletableFuture<String> call = echo("c");
            int id = expect(Wire.REQUEST).id();
            assertThat(id & Wire.SLOT_MASK).isLessThan(2);
            send(Wire.REPLY, id, RawPeer.text("d"));
            assertThat(call).isCompletedWithValue("d");
        }
        assertThat(connection().slots.taken()).isZero();
    }

    @Test
    void whatSlotsHaveKeptThatAreNotUsedAgainIsGivenBack() {
        open();
        List<Integer> ids = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            echo("a".repeat(10_000));
            ids.add(expect(Wire.REQUEST).id());
        }
        ids.forEach(id -> send(Wire.REPLY, id, RawPeer.text("b")));
        long each = kept() / 3;
        assertThat(each).isGreaterThan(10_000);
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.MAX_CALLS, 1);
        send(Wire.SETTINGS, 0, settings);
        answered("c");
        assertThat(kept()).isEqualTo(each);
    }

    /** A server chooses how many names it has, and how long they are. */
    @Test
    void aDictionaryIsChargedAndWhatTheClientCallsIsKeptInAnyCase() {
        echo("a");
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        Ledger ledger = client.core().ledger();
        dictionary(Wire.DICTIONARY | Wire.MORE, "other".repeat(20));
        assertThat(ledger.held(Resource.TABLE_BYTES)).isBetween(200L, 500L);
        List<Account> others = new ArrayList<>();
        List<Charge> charges = new ArrayList<>();
        while (ledger.held(Resource.TABLE_BYTES) < ledger.max(Resource.TABLE_BYTES) - 100) {
            // each gets a half of what is left
            Account other = Objects.requireNonNull(ledger.open(null));
            Charge charge = other.charge(Resource.TABLE_BYTES);
            for (long more = ledger.max(Resource.TABLE_BYTES); more > 0; more /= 2) {
                charge.add(more);
            }
            others.add(other);
            charges.add(charge);
        }
        dictionary(Wire.DICTIONARY, "brings", "echo", "more".repeat(20));
        Frame request = next();
        assertThat(request.head() & Wire.NAMED).as("called by its number").isZero();
        send(Wire.REPLY, request.id(), RawPeer.text("b"));
        assertThat(connection().published()).isCompletedExceptionally();
        charges.forEach(Charge::release);
        others.forEach(Account::close);
        assertThat(ledger.held(Resource.TABLE_BYTES)).isBetween(200L, 500L);
        client.close();
        assertThat(ledger.held(Resource.TABLE_BYTES)).isZero();
    }

    /** The look goes on to calls whose time is over before that of the new call. */
    @Test
    void aCallThatIsSentWhileDeadlinesAreLookedAtHoldsNoneUp() {
        open();
        CompletableFuture<String> first = remote.brief("a");
        calls.add(first);
        pass(100);
        CompletableFuture<String> second = remote.brief("b");
        calls.add(second);
        hand.settle(channel());
        first.whenComplete((result, failure) -> {
            echo("patient");
            // a caller that finds no free slot does the same, and what is queued is sent
            connection().lookForOrphans();
        });
        pass(951);
        assertThat(failure(first).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(second).isNotDone();
        pass(100);
        assertThat(failure(second).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
    }

    @Test
    void aCallEndsInTheNanosecondInWhichItsTimeIsOverAndIsNotLookedAtBefore() {
        open();
        CompletableFuture<String> patient = echo("a");
        CompletableFuture<String> brief = remote.brief("b");
        calls.add(brief);
        hand.settle(channel());
        hand.pass(channel(), TimeUnit.SECONDS.toNanos(1) - 1, TimeUnit.NANOSECONDS);
        assertThat(brief).isNotDone();
        hand.pass(channel(), 1, TimeUnit.NANOSECONDS);
        assertThat(failure(brief).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(patient).isNotDone();
        assertThat(channel().runScheduledPendingTasks())
                .as("the next look is at the time of the other")
                .isGreaterThan(TimeUnit.SECONDS.toNanos(8));
    }

    /** A thread that could not wake the loop has left its request in the queue: the next look at the clock finds it. */
    @Test
    void aLookAtTheClockSendsWhatIsQueued() {
        open();
        echo("a");
        expect(Wire.REQUEST);
        hand.ticker.advance(11, TimeUnit.SECONDS);
        calls.add(remote.echo("queued"));
        expectNothing();
        channel().runScheduledPendingTasks();
        expect(Wire.REQUEST);
        hand.settle(channel());
    }

    @Test
    void aBufferIsKeptWhileLargeMessagesComeAndGivenUpTwoSecondsLater() {
        open();
        ByteBuf body = Objects.requireNonNull(connection().slots.at(0)).body;
        for (int i = 0; i < 3; i++) {
            CompletableFuture<String> call = echo("x".repeat(50_000));
            look();
            int id = frames.getLast().id();
            frames.clear();
            send(Wire.REPLY, id, RawPeer.text("b"));
            assertThat(call).isCompletedWithValue("b");
            pass(1_500);
            assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isPositive();
        }
        // the next look still sees the last large message, and the one after it sees that none has come since
        pass(2_000);
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isPositive();
        assertThat(body.capacity()).isGreaterThan(50_000);
        pass(2_000);
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isZero();
        assertThat(body.capacity()).isLessThan(1_000);
    }

    // ---- in a cluster

    @Test
    void aMembersConnectionIsMadeAgainWhetherItsServerDrainsOrFails() {
        Remote member = client.create(Remote.class, Endpoints.of(new Endpoint("member", 1)));
        CompletableFuture<String> call = member.echo("a");
        calls.add(call);
        connecting();
        send(RawPeer.preface());
        expect(Wire.SETTINGS);
        dictionary(Wire.DICTIONARY, "echo");
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
        assertThat(hand.opened).hasSize(1);
        send(Wire.GOAWAY, 0);
        expect(Wire.GOAWAY);
        assertThat(channel().isOpen()).isFalse();
        pass(10_000);
        assertThat(hand.opened).as("without a call").hasSize(2);
        connecting();
        frames.clear();
        send(RawPeer.preface());
        dictionary(Wire.DICTIONARY, "echo");
        assertThat(connection().isUsable()).isTrue();
        channel().close();
        hand.settle(channel());
        pass(10_000);
        assertThat(hand.opened).hasSize(3);
        connecting();
    }

    // ---- what a server makes a client hold

    private static final ByteBuf TEN_KB = Unpooled.unreleasableBuffer(Unpooled.wrappedBuffer(new byte[10_000]));

    private void sendPart(int head, int id) {
        send(head, id, TEN_KB.duplicate());
    }

    private long held() {
        return client.core().ledger().held(Resource.REPLY_BYTES);
    }

    @Test
    void partsOfItemsAreChargedUntilTheItemIsWholeOrNobodyWaits() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = next().id();
        expect(Wire.CREDIT);
        ByteBuf text = RawPeer.text("x".repeat(25_000));
        send(Wire.ITEM | Wire.MORE, id, text.readSlice(10_000));
        assertThat(held()).isEqualTo(10_000);
        send(Wire.PART | Wire.MORE, id, text.readSlice(10_000));
        assertThat(held()).as("the buffer, of which 20,000 are used").isEqualTo(32 << 10);
        send(Wire.PART, id, text);
        assertThat(held()).isZero();
        assertThat(seen.items).hasSize(1);
        sendPart(Wire.ITEM | Wire.MORE, id);
        assertThat(held()).isEqualTo(10_000);
        seen.subscription().cancel();
        hand.settle(channel());
        expect(Wire.CANCEL);
        assertThat(held()).isZero();
        sendPart(Wire.PART | Wire.MORE, id);
        assertThat(held()).isZero();
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
    }

    @Test
    void aReplyInPartsIsChargedForItsBufferAndNotForItsBytes() {
        open();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        ByteBuf text = RawPeer.text("x".repeat(40_000));
        int before = connection().slots.at(0).body.capacity();
        send(Wire.REPLY | Wire.MORE, id, text.readSlice(10_000));
        assertThat(held()).isEqualTo((16 << 10) - before);
        send(Wire.PART | Wire.MORE, id, text.readSlice(6_000));
        assertThat(held()).as("it fits").isEqualTo((16 << 10) - before);
        send(Wire.PART | Wire.MORE, id, text.readSlice(10_000));
        assertThat(held()).isEqualTo((32 << 10) - before);
        send(Wire.PART | Wire.MORE, id, text.readSlice(10_000));
        assertThat(held()).isEqualTo((64 << 10) - 24 - before);
        send(Wire.PART, id, text);
        assertThat(call).isCompletedWithValue("x".repeat(40_000));
        assertThat(held()).isZero();
    }

    /** Otherwise a server could have each slot's buffer grow once, and then let small calls hold them all. */
    @Test
    void aBufferThatWasKeptStaysChargedWhileTheNextCallUsesIt() {
        open();
        CompletableFuture<String> first = echo("a".repeat(10_000));
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        assertThat(first).isCompletedWithValue("b");
        long kept = client.core().ledger().held(Resource.KEPT_BYTES);
        assertThat(kept).isEqualTo(connection().slots.at(0).body.capacity());
        CompletableFuture<String> next = echo("b");
        int id = expect(Wire.REQUEST).id();
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isEqualTo(kept);
        send(Wire.REPLY, id, RawPeer.text("c"));
        assertThat(next).isCompletedWithValue("c");
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isEqualTo(kept);
        channel().close();
        hand.settle(channel());
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isZero();
    }

    @Test
    void anItemWithoutRoomEndsItsCallAndNoOther() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = next().id();
        expect(Wire.CREDIT);
        long taken = 0;
        for (long step = 1L << 40; step > 1 << 13; step /= 2) {
            while (connection().account.tryCharge(Resource.REPLY_BYTES, step)) {
                taken += step;
            }
        }
        send(Wire.ITEM, id, RawPeer.text("small"));
        int parts = 0;
        for (int head = Wire.ITEM; seen.ends == 0 && parts < 10; head = Wire.PART, parts++) {
            sendPart(head | Wire.MORE, id);
        }
        assertThat(failure(seen).code()).isEqualTo(Code.OVERLOADED);
        assertThat(failure(seen)).hasMessageContaining("items on their way");
        assertThat(seen.items).containsExactly("small");
        assertThat(held()).isEqualTo(taken);
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        sendPart(Wire.PART, id);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        connection().account.release(Resource.REPLY_BYTES, taken);
        CompletableFuture<String> next = echo("a");
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        assertThat(next).isCompletedWithValue("b");
    }

    /** Passes some of the keep-alive time, which is 10 min. The server answers PINGs if there are some. */
    private void passAlive(int seconds) {
        pass(seconds * 1000L);
        takePings().forEach(ping -> send(Wire.PONG, ping));
        send(Wire.PONG, 0);
    }

    /** Takes the PINGs from what the client has sent, and returns their ids. The other frames stay. */
    private List<Integer> takePings() {
        look();
        List<Integer> pings = frames.stream()
                .filter(frame -> (frame.head() & Wire.TYPE_MASK) == Wire.PING)
                .map(Frame::id)
                .toList();
        frames.removeIf(frame -> (frame.head() & Wire.TYPE_MASK) == Wire.PING);
        return pings;
    }

    /** Passes a third of the keep-alive time. Something comes from the server, but no PONG. Returns the PINGs. */
    private List<Integer> passBehindMuch() {
        pass(200_000);
        send(0, 0);
        return takePings();
    }

    /** Does {@link #passBehindMuch()} several times. The client sends no PING, and the connection stays usable. */
    private void passBehindMuch(int looks) {
        for (int i = 0; i < looks; i++) {
            assertThat(passBehindMuch()).isEmpty();
            assertThat(connection().isUsable()).isTrue();
        }
    }

    /** Makes a call whose time runs out, so that the server gets a CANCEL. Returns the id of the call. */
    private int giveUp() {
        CompletableFuture<String> call = remote.brief("a");
        calls.add(call);
        hand.settle(channel());
        int id = next().id();
        pass(1_001);
        assertThat(failure(call).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        return id;
    }

    @Test
    void aConnectionWhoseServerOwesAFinalFrameForAKeepAliveTimeIsDrained() {
        open();
        giveUp();
        // at the first look, the server answers a PING behind the CANCEL
        for (int i = 0; i < 4; i++) {
            passAlive(200);
            assertThat(connection().isUsable()).isTrue();
        }
        // a stream that is in order is left alone, and the connection ends with it
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = next().id();
        expect(Wire.CREDIT);
        passAlive(200);
        expect(Wire.GOAWAY);
        assertThat(connection().isUsable()).isFalse();
        EmbeddedChannel draining = channel();
        channel = null;
        CompletableFuture<String> elsewhere = echo("b");
        assertThat(channel()).isNotSameAs(draining);
        channel = draining;
        for (int i = 0; i < 4; i++) {
            passAlive(200);
        }
        send(Wire.ITEM, id, RawPeer.text("c"));
        send(Wire.REPLY, id);
        assertThat(seen.items).containsExactly("c");
        assertThat(draining.isOpen()).isTrue();
        passAlive(200);
        assertThat(draining.isOpen()).isFalse();
        assertThat(elsewhere).isCompletedExceptionally();
    }

    @Test
    void aServerThatEndsWhatWasGivenUpKeepsItsConnection() {
        open();
        for (int i = 0; i < 5; i++) {
            int id = giveUp();
            passAlive(598);
            sendError(id, Code.CANCELLED, Executed.MAYBE);
        }
        passAlive(300);
        passAlive(300);
        assertThat(connection().isUsable()).isTrue();
        assertThat(connection().load()).isZero();
        expectNothing();
    }

    @Test
    void aServerThatHasNotReadTheCancelOwesNothingYet() {
        open();
        CompletableFuture<String> call = remote.brief("a");
        calls.add(call);
        hand.settle(channel());
        int id = next().id();
        hand.reads(channel(), false);
        pass(1_001);
        assertThat(failure(call).code()).isEqualTo(Code.DEADLINE_EXCEEDED);
        pass(590_000);
        hand.reads(channel(), true);
        for (int i = 0; i < 2; i++) {
            passAlive(200);
            assertThat(connection().isUsable()).isTrue();
        }
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        passAlive(300);
        assertThat(connection().isUsable()).isTrue();
        assertThat(connection().load()).isZero();
    }

    /** Over a slow network, the answer stands behind what had been sent before it, and so does the PONG. */
    @Test
    void aServerWhoseAnswerIsOnItsWayForLongKeepsItsConnection() {
        open();
        int id = giveUp();
        List<Integer> pings = new ArrayList<>();
        for (int i = 0; i < 18; i++) {
            pings.addAll(passBehindMuch());
            assertThat(connection().isUsable()).as("after look %d", i).isTrue();
        }
        assertThat(pings).as("one question").hasSize(1);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        send(Wire.PONG, pings.get(0));
        assertThat(connection().load()).isZero();
        passBehindMuch(6);
    }

    @Test
    void aServerThatAnswersNeitherACancelNorThePingBehindItIsDisconnectedAfterSixKeepAliveTimes() {
        open();
        giveUp();
        for (int i = 0; i < 18; i++) {
            passBehindMuch();
            assertThat(connection().isUsable()).isTrue();
        }
        passBehindMuch();
        expect(Wire.GOAWAY);
        assertThat(connection().isUsable()).isFalse();
        assertThat(channel().isOpen()).isTrue();
        passBehindMuch();
        assertThat(channel().isOpen()).isFalse();
    }

    /** A server may answer the last PING alone. */
    @Test
    void thePongOfThePingBehindTheCancelCountsAndThatOfALaterOneAndNoOther() {
        open();
        connection().askForSign();
        int early = expect(Wire.PING).id();
        giveUp();
        assertThat(passBehindMuch()).hasSize(1);
        send(Wire.PONG, early);
        send(Wire.PONG, Integer.MAX_VALUE);
        passBehindMuch(6);
        connection().askForSign();
        send(Wire.PONG, expect(Wire.PING).id());
        passBehindMuch(2);
        // what the server answers from here on gives it no more time
        connection().askForSign();
        send(Wire.PONG, expect(Wire.PING).id());
        passBehindMuch(1);
        passBehindMuch();
        expect(Wire.GOAWAY);
    }

    @Test
    void aCallThatIsGivenUpBehindThePingHasAPingOfItsOwn() {
        open();
        int first = giveUp();
        int asked = passBehindMuch().get(0);
        int second = giveUp();
        passBehindMuch(2);
        send(Wire.PONG, asked);
        sendError(first, Code.CANCELLED, Executed.MAYBE);
        int askedAgain = passBehindMuch().get(0);
        assertThat(askedAgain).isNotEqualTo(asked);
        send(Wire.PONG, asked);
        passBehindMuch(10);
        send(Wire.PONG, askedAgain);
        passBehindMuch(3);
        sendError(second, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
        passBehindMuch(6);
    }

    /** The CANCEL of such a call may stand behind the PING. */
    @Test
    void soHasOneThatIsGivenUpInTheNanosecondOfThePing() {
        open();
        int first = giveUp();
        int asked = passBehindMuch().get(0);
        CompletableFuture<String> call = echo("b");
        int second = expect(Wire.REQUEST).id();
        call.cancel(true);
        hand.settle(channel());
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(second);
        sendError(first, Code.CANCELLED, Executed.MAYBE);
        send(Wire.PONG, asked);
        assertThat(passBehindMuch()).hasSize(1);
        sendError(second, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
    }

    @Test
    void aCallWhoseStreamWasStillToBeSentMayHaveBeenExecuted() {
        open();
        CompletableFuture<Integer> call = remote.takes(subscriber -> subscriber.onSubscribe(new Seen.Never()));
        calls.add(call);
        hand.settle(channel());
        next();
        send(Wire.SETTINGS, 0);
        send(Wire.SETTINGS, 0);
        assertThat(failure(call).code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(failure(call).executed()).isEqualTo(Executed.MAYBE);
    }

    // ---- messages in parts, to callers that are there and to those that have gone

    private CompletableFuture<String> givenUp() {
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        call.cancel(true);
        hand.settle(channel());
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        return call;
    }

    private int idOfSlot(int slot) {
        return Objects.requireNonNull(connection().slots.at(slot)).id;
    }

    @Test
    void theLastPartOfAReplyIsTheEndOfACallThatWasGivenUp() {
        open();
        givenUp();
        int id = idOfSlot(0);
        sendPart(Wire.REPLY | Wire.MORE, id);
        assertThat(connection().load()).isEqualTo(1);
        sendPart(Wire.PART | Wire.MORE, id);
        assertThat(connection().load()).isEqualTo(1);
        assertThat(held()).as("nobody reads it").isZero();
        sendPart(Wire.PART, id);
        assertThat(connection().load()).isZero();
        assertThat(connection().slots.taken()).isZero();
        assertThat(connection().isUsable()).isTrue();
        expectNothing();
    }

    @Test
    void theLastPartOfAnItemIsNotTheEndOfACallThatWasGivenUp() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = next().id();
        expect(Wire.CREDIT);
        seen.subscription().cancel();
        hand.settle(channel());
        expect(Wire.CANCEL);
        sendPart(Wire.ITEM | Wire.MORE, id);
        sendPart(Wire.PART | Wire.MORE, id);
        sendPart(Wire.PART, id);
        assertThat(connection().load()).isEqualTo(1);
        send(Wire.ITEM, id, RawPeer.text("whole"));
        sendPart(Wire.ITEM | Wire.MORE, id);
        sendPart(Wire.PART, id);
        assertThat(connection().load()).isEqualTo(1);
        send(Wire.REPLY, id);
        assertThat(connection().load()).isZero();
        assertThat(connection().isUsable()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {Wire.REPLY, Wire.REPLY | Wire.MORE, Wire.ITEM})
    void noMessageBeginsWithinAReplyInParts(int head) {
        open();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        sendPart(Wire.REPLY | Wire.MORE, id);
        send(head, id, RawPeer.text("b"));
        assertThat(failure(call)).hasMessageContaining("within a message in parts");
        expect(Wire.ERROR);
        assertThat(connection().isUsable()).isFalse();
    }

    @ParameterizedTest
    @ValueSource(ints = {Wire.REPLY, Wire.ITEM, Wire.ITEM | Wire.MORE})
    void noMessageBeginsWithinAnItemInParts(int head) {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = next().id();
        expect(Wire.CREDIT);
        sendPart(Wire.ITEM | Wire.MORE, id);
        send(head, id, RawPeer.text("b"));
        assertThat(failure(seen)).hasMessageContaining("within a message in parts");
        expect(Wire.ERROR);
        assertThat(held()).isZero();
    }

    @Test
    void whatHasComeOfAReplyIsGivenBackWhenItsCallIsGivenUp() {
        open();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        ByteBuf body = Objects.requireNonNull(connection().slots.at(0)).body;
        sendPart(Wire.REPLY | Wire.MORE, id);
        sendPart(Wire.PART | Wire.MORE, id);
        assertThat(held()).isPositive();
        assertThat(body.capacity()).isGreaterThan(10_000);
        call.cancel(true);
        hand.settle(channel());
        assertThat(held()).isZero();
        assertThat(body.capacity()).isLessThan(10_000);
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        sendPart(Wire.PART, id);
        assertThat(connection().load()).isZero();
        assertThat(held()).isZero();
    }

    /** Sends a text of this number of bytes, in parts that are as large as a frame may be. */
    private void sendInParts(int type, int id, int bytes) {
        ByteBuf text = RawPeer.text("x".repeat(bytes - 5));
        assertThat(text.readableBytes()).isEqualTo(bytes);
        int head = type;
        while (text.isReadable()) {
            ByteBuf part = text.readSlice(Math.min(Wire.MAX_PAYLOAD_BYTES, text.readableBytes()));
            send(text.isReadable() ? head | Wire.MORE : head, id, part);
            head = Wire.PART;
        }
    }

    @Test
    void aReplyInPartsIsAsLargeAsAMessageMayBeAndNoLarger() {
        open();
        CompletableFuture<String> largest = echo("a");
        sendInParts(Wire.REPLY, expect(Wire.REQUEST).id(), Wire.MAX_MESSAGE_BYTES);
        assertThat(largest.join()).hasSize(Wire.MAX_MESSAGE_BYTES - 5);
        CompletableFuture<String> larger = echo("a");
        sendInParts(Wire.REPLY, expect(Wire.REQUEST).id(), Wire.MAX_MESSAGE_BYTES + 1);
        assertThat(failure(larger).code()).isEqualTo(Code.TOO_LARGE);
        assertThat(failure(larger).executed()).isEqualTo(Executed.EXECUTED);
        assertThat(failure(larger)).hasMessage("a result of more than 4194304 bytes");
        // only the last part was too much, so the server has no call left to cancel
        expectNothing();
        assertThat(connection().load()).isZero();
        CompletableFuture<String> far = echo("a");
        int id = expect(Wire.REQUEST).id();
        sendInParts(Wire.REPLY, id, Wire.MAX_MESSAGE_BYTES + 100_000);
        assertThat(failure(far).code()).isEqualTo(Code.TOO_LARGE);
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        assertThat(connection().load()).as("its last part is its final frame").isZero();
        assertThat(held()).isZero();
    }

    @Test
    void anItemInPartsIsNoLargerThanAMessage() {
        open();
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = next().id();
        expect(Wire.CREDIT);
        sendInParts(Wire.ITEM, id, Wire.MAX_MESSAGE_BYTES);
        assertThat(seen.items).hasSize(1);
        sendInParts(Wire.ITEM, id, Wire.MAX_MESSAGE_BYTES + 1);
        assertThat(failure(seen).code()).isEqualTo(Code.TOO_LARGE);
        assertThat(failure(seen)).hasMessage("an item of more than 4194304 bytes");
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
        assertThat(held()).isZero();
    }

    /** The last part has no room, and is the final frame all the same. */
    @Test
    void aReplyWhoseLastPartFindsNoRoomNeedsNoCancel() {
        open();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        sendPart(Wire.REPLY | Wire.MORE, id);
        long taken = 0;
        for (long step = 1L << 40; step > 0; step /= 2) {
            while (connection().account.tryCharge(Resource.REPLY_BYTES, step)) {
                taken += step;
            }
        }
        sendPart(Wire.PART, id);
        assertThat(failure(call).code()).isEqualTo(Code.OVERLOADED);
        expectNothing();
        assertThat(connection().load()).isZero();
        connection().account.release(Resource.REPLY_BYTES, taken);
        assertThat(held()).isZero();
    }

    /** The request waits for the socket, and is not needed any more. */
    @Test
    void aReplyThatBeginsBeforeItsRequestHasBeenSentTakesThatBack() {
        open();
        hand.reads(channel(), false);
        CompletableFuture<String> call = echo("a");
        int id = idOfSlot(0);
        byte[] body = ByteBufUtil.getBytes(RawPeer.text("early"));
        send(Wire.REPLY | Wire.MORE, id, Unpooled.wrappedBuffer(body, 0, 3));
        hand.reads(channel(), true);
        expectNothing();
        send(Wire.PART, id, Unpooled.wrappedBuffer(body, 3, body.length - 3));
        assertThat(call).isCompletedWithValue("early");
        expectNothing();
        assertThat(connection().load()).isZero();
        CompletableFuture<String> next = echo("b");
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("c"));
        assertThat(next).isCompletedWithValue("c");
    }

    /** Returns a publisher that brings nothing, and notes when it is asked for items and when it is cancelled. */
    private static Flow.Publisher<String> uploads(List<String> told) {
        return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long items) {
                told.add("asked");
            }

            @Override
            public void cancel() {
                told.add("cancelled");
            }
        });
    }

    @Test
    void anUploadEndsWithTheFirstBytesOfItsReply() {
        open();
        for (boolean isInParts : new boolean[] {true, false}) {
            List<String> told = new ArrayList<>();
            CompletableFuture<Integer> call = remote.takes(uploads(told));
            calls.add(call);
            hand.settle(channel());
            int id = next().id();
            ByteBuf reply = Unpooled.buffer().writeByte(1 << 3).writeByte(7);
            if (isInParts) {
                send(Wire.REPLY | Wire.MORE, id, reply.readSlice(1));
                hand.settle(channel());
                assertThat(told).containsExactly("cancelled");
                assertThat(call).isNotDone();
                send(Wire.PART, id, reply);
            } else {
                send(Wire.REPLY, id, reply);
            }
            hand.settle(channel());
            assertThat(told).containsExactly("cancelled");
            assertThat(call).isCompletedWithValue(7);
        }
    }

    // ---- uses of a slot

    @Test
    void whoHasKeptAnEarlierUseOfASlotEndsNoOther() {
        open();
        ClientCall slot = Objects.requireNonNull(connection().slots.at(0));
        long earlier = slot.serial();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        assertThat(slot.serial()).isEqualTo(earlier + 1);
        slot.cancel(earlier);
        hand.settle(channel());
        expectNothing();
        assertThat(call).isNotDone();
        slot.cancel(slot.serial(), Code.INVALID, "for another reason", null);
        hand.settle(channel());
        assertThat(failure(call).code()).isEqualTo(Code.INVALID);
        assertThat(failure(call)).hasMessage("for another reason");
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
    }

    @Test
    void aBufferForWhichThereIsNoRoomIsNotKept() {
        open();
        ByteBuf body = Objects.requireNonNull(connection().slots.at(0)).body;
        long taken = 0;
        for (long step = 1L << 40; step > 0; step /= 2) {
            while (connection().account.tryCharge(Resource.KEPT_BYTES, step)) {
                taken += step;
            }
        }
        CompletableFuture<String> call = echo("a".repeat(10_000));
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        assertThat(call).isCompletedWithValue("b");
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isEqualTo(taken);
        assertThat(body.capacity()).isLessThan(1_000);
        connection().account.release(Resource.KEPT_BYTES, taken);
        CompletableFuture<String> next = echo("a".repeat(10_000));
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        assertThat(next).isCompletedWithValue("b");
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isEqualTo(body.capacity());
        assertThat(body.capacity()).isGreaterThan(10_000);
    }

    /** The request then states its time in front of the arguments. */
    @Test
    void aOneWayCallThatHasWaitedForTheSocketIsMadeAgainAsItWasMade() {
        open();
        hand.reads(channel(), false);
        remote.bytes(new byte[] {1, 2, 3});
        hand.settle(channel());
        int id = idOfSlot(0);
        pass(400);
        hand.reads(channel(), true);
        assertThat(notice()).endsWith(1, 2, 3);
        sendError(id, Code.UNAVAILABLE, Executed.NOT_EXECUTED);
        byte[] again = notice();
        assertThat(again).containsExactly(1, 2, 3);
        send(Wire.REPLY, idOfSlot(0));
        assertThat(connection().load()).isZero();
    }

    private long kept() {
        return client.core().ledger().held(Resource.KEPT_BYTES);
    }

    private void answered(String text) {
        CompletableFuture<String> call = echo(text);
        send(Wire.REPLY, expect(Wire.REQUEST).id(), RawPeer.text("b"));
        while ((nextIfAny() & Wire.MORE) != 0) {}
        assertThat(call).isCompletedWithValue("b");
    }

    /** @return the head of the next frame; 0 for none */
    private int nextIfAny() {
        look();
        return frames.isEmpty() ? 0 : frames.remove().head();
    }

    @Test
    void aBufferThatGrowsAgainIsChargedForWhatItGrewBy() {
        open();
        ByteBuf body = Objects.requireNonNull(connection().slots.at(0)).body;
        for (int bytes : new int[] {5_000, 10_000, 15_000, 10_000}) {
            answered("a".repeat(bytes));
            assertThat(kept()).isEqualTo(body.capacity()).isGreaterThan(Math.min(bytes, 5_000));
        }
    }

    /** Neither the kept bytes nor those of a request wait for a final frame, which may never come. */
    @Test
    void whatWasKeptIsGivenUpWithACallThatIsGivenUpInTheMidstOfAMessage() {
        open();
        ByteBuf body = Objects.requireNonNull(connection().slots.at(0)).body;
        answered("a".repeat(10_000));
        assertThat(kept()).isPositive();
        CompletableFuture<String> within = echo("a");
        int id = expect(Wire.REQUEST).id();
        sendPart(Wire.REPLY | Wire.MORE, id);
        within.cancel(true);
        hand.settle(channel());
        expect(Wire.CANCEL);
        assertThat(kept()).isZero();
        assertThat(body.capacity()).isLessThan(1_000);
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        answered("a".repeat(10_000));
        assertThat(kept()).isPositive();
        for (int i = 0; i < 2; i++) {
            CompletableFuture<String> large = echo("a".repeat(14_000));
            int second = expect(Wire.REQUEST).id();
            while ((nextIfAny() & Wire.MORE) != 0) {}
            assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isPositive();
            large.cancel(true);
            hand.settle(channel());
            expect(Wire.CANCEL);
            assertThat(kept()).as("with a kept buffer, and without").isZero();
            assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
            assertThat(body.capacity()).isLessThan(1_000);
            sendError(second, Code.CANCELLED, Executed.MAYBE);
        }
    }

    /** Takes all that the connection may have of this resource, and returns how much that is. */
    private long takeAll(Resource resource) {
        long taken = 0;
        for (long step = 1L << 40; step > 0; step /= 2) {
            while (connection().account.tryCharge(resource, step)) {
                taken += step;
            }
        }
        return taken;
    }

    /** The connection gives up a buffer that is too large to be kept as soon as the request has been sent. */
    @Test
    void whatWasKeptIsGivenBackWhenALargerRequestHasTakenTheBufferWithIt() {
        open();
        ByteBuf body = Objects.requireNonNull(connection().slots.at(0)).body;
        answered("a".repeat(10_000));
        assertThat(kept()).isPositive();
        answered("a".repeat(200_000));
        assertThat(body.capacity()).isLessThan(1_000);
        assertThat(kept()).isZero();
        answered("a".repeat(10_000));
        assertThat(kept()).isEqualTo(body.capacity());
    }

    @Test
    void whatWasKeptIsGivenBackWithALargerBufferForWhichThereIsNoRoom() {
        open();
        ByteBuf body = Objects.requireNonNull(connection().slots.at(0)).body;
        answered("a".repeat(10_000));
        assertThat(kept()).isPositive();
        long taken = takeAll(Resource.KEPT_BYTES);
        answered("a".repeat(50_000));
        assertThat(body.capacity()).isLessThan(1_000);
        assertThat(kept()).isEqualTo(taken);
        connection().account.release(Resource.KEPT_BYTES, taken);
    }

    /** Nobody reads the reply, and its last part may never come. */
    @Test
    void aReplyForWhichThereIsNoRoomTakesNone() {
        open();
        CompletableFuture<String> call = echo("a");
        int id = expect(Wire.REQUEST).id();
        ByteBuf body = Objects.requireNonNull(connection().slots.at(0)).body;
        long taken = takeAll(Resource.REPLY_BYTES);
        sendPart(Wire.REPLY | Wire.MORE, id);
        assertThat(failure(call).code()).isEqualTo(Code.OVERLOADED);
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        assertThat(body.capacity()).isLessThan(1_000);
        sendPart(Wire.PART | Wire.MORE, id);
        assertThat(body.capacity()).isLessThan(1_000);
        sendPart(Wire.PART, id);
        assertThat(connection().load()).isZero();
        assertThat(held()).isEqualTo(taken);
        connection().account.release(Resource.REPLY_BYTES, taken);
    }

    /** The call ends because the server sends items of a stream for which it has not been asked. */
    @Test
    void aRequestWhoseCallHasEndedBeforeItIsSentIsNotSent() {
        open();
        hand.reads(channel(), false);
        Seen seen = subscribe(remote.brings(3), new Seen(5));
        int id = idOfSlot(0);
        long taken = takeAll(Resource.REPLY_BYTES);
        sendPart(Wire.ITEM | Wire.MORE, id);
        assertThat(failure(seen).code()).isEqualTo(Code.OVERLOADED);
        hand.reads(channel(), true);
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        expectNothing();
        sendError(id, Code.CANCELLED, Executed.MAYBE);
        assertThat(connection().load()).isZero();
        connection().account.release(Resource.REPLY_BYTES, taken);
    }

    /** Makes a call with a large request, of which the socket takes only some. */
    private CompletableFuture<String> sentInPart() {
        ChannelHandler slow = new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
                ctx.write(message, promise);
                channel().unsafe().outboundBuffer().setUserDefinedWritability(1, false);
            }
        };
        channel().pipeline().addLast(slow);
        CompletableFuture<String> call = echo("x".repeat(1_000_000));
        channel().pipeline().remove(slow);
        assertThat(expect(Wire.REQUEST).head() & Wire.MORE).isNotZero();
        while (!frames.isEmpty()) {
            assertThat(next().head()).isEqualTo(Wire.PART | Wire.MORE);
        }
        return call;
    }

    @Test
    void noMoreIsSentOfARequestWhoseCallIsGivenUpInTheMidstOfIt() {
        open();
        CompletableFuture<String> call = sentInPart();
        int id = idOfSlot(0);
        call.cancel(true);
        hand.settle(channel());
        hand.reads(channel(), true);
        assertThat(expect(Wire.CANCEL).id()).isEqualTo(id);
        expectNothing();
        sendError(id, Code.CANCELLED, Executed.NOT_EXECUTED);
        assertThat(connection().load()).isZero();
        answered("b");
    }

    /** The server has not waited for all of the request. */
    @Test
    void noMoreIsSentOfARequestThatHasItsAnswerInTheMidstOfIt() {
        open();
        CompletableFuture<String> call = sentInPart();
        sendError(idOfSlot(0), Code.INVALID, Executed.NOT_EXECUTED);
        assertThat(failure(call).code()).isEqualTo(Code.INVALID);
        hand.reads(channel(), true);
        expectNothing();
        assertThat(connection().load()).isZero();
        answered("b");
    }
}
