package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.ClassicWire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests peers of the classic wire that try to harm a server. Each peer has a socket of its own. */
@Timeout(120)
class ClassicAttackTest {
    private static final int FRAME_BYTES = 4 << 20;

    /** A record whose constructor throws an error, rather than an exception that rejects the value. */
    record Broken(String text) {
        Broken {
            if (text.equals("read")) {
                throw new AssertionError("a broken record");
            }
        }

        @Override
        public String text() {
            if (text.equals("write")) {
                throw new AssertionError("a broken accessor");
            }
            return text;
        }
    }

    @RPCXServer("target")
    static final class Target {
        final CountDownLatch entered = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        final CountDownLatch interrupted = new CountDownLatch(1);
        final CountDownLatch makesMuch = new CountDownLatch(1);

        @Method
        String hello(String name) {
            return name;
        }

        @Method
        String much(int bytes) {
            makesMuch.countDown();
            return "x".repeat(bytes);
        }

        @Method
        String block() throws InterruptedException {
            entered.countDown();
            try {
                release.await();
            } catch (InterruptedException e) {
                interrupted.countDown();
                throw e;
            }
            return "released";
        }

        @Method
        String readBroken(Broken broken) {
            return broken.toString();
        }

        @Method
        Broken writeBroken() {
            return new Broken("write");
        }

        @Method
        String error() {
            throw new StackOverflowError("too deep");
        }

        @Method
        CompletableFuture<String> never() {
            return new CompletableFuture<>();
        }
    }

    private final Target target = new Target();
    private Server server;

    @BeforeEach
    void start() {
        server = serving(Duration.ofMillis(400)).build().start();
    }

    @AfterEach
    void stop() {
        target.release.countDown();
        server.stop(Duration.ofSeconds(1));
        await().untilAsserted(() -> {
            assertThat(server.core().running()).isZero();
            // the charges of futures that nobody ends are released when the futures are collected
            System.gc();
            assertThat(server.core().ledger().audit()).isEmpty();
        });
    }

    private Server.Builder serving(Duration keepAlive) {
        return Server.builder(RegistryServer.registry(target))
                .host("127.0.0.1")
                .classic(true)
                .maxCalls(64)
                .keepAlive(keepAlive);
    }

    private void restart(Server.Builder builder) {
        server.stop(Duration.ZERO);
        server = builder.build().start();
    }

    private static ByteBuf request(long id, String method, ByteBuf... values) {
        List<byte[]> bytes = new ArrayList<>();
        for (ByteBuf value : values) {
            bytes.add(ByteBufUtil.getBytes(value));
        }
        return ClassicRequests.of(id, "target", method, Collections.nCopies(values.length, "type"), bytes);
    }

    private static ByteBuf number(int value) {
        ByteBuf message = Unpooled.buffer().writeByte(1 << 3);
        Varint.write(message, value);
        return message;
    }

    private static ClassicWire.Reply reply(RawPeer peer) throws IOException {
        int length = Unpooled.wrappedBuffer(peer.read(4)).readInt();
        return ClassicWire.readReply(Unpooled.wrappedBuffer(peer.read(length)));
    }

    private static RPCXException error(ClassicWire.Reply reply) {
        return Objects.requireNonNull(reply.error());
    }

    /** Returns why the server closes. It sends a reply that belongs to no call, and then ends the connection. */
    private static RPCXException end(RawPeer peer) throws IOException {
        ClassicWire.Reply last = reply(peer);
        assertThat(last.id()).isZero();
        assertThat(peer.readToEnd()).isEmpty();
        return error(last);
    }

    /** Checks that the server still serves another client, which does nothing wrong. */
    private void othersAreServed() throws IOException {
        try (RawPeer other = new RawPeer(server.port())) {
            other.send(request(1, "hello", RawPeer.text("good")));
            assertThat(reply(other).result()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text("good")));
        }
    }

    @Test
    void whatAnInterceptorRefusesHasNotBeenExecuted() throws IOException {
        restart(serving(Duration.ofSeconds(60)).interceptor((call, next) -> {
            if (call.method().equals("much")) {
                next.proceed(call);
            }
            throw RPCXException.refused(RPCXException.Code.INVALID, "refused");
        }));
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(1, "hello", RawPeer.text("a")));
            RPCXException refused = error(reply(peer));
            assertThat(refused.code()).isEqualTo(RPCXException.Code.INVALID);
            assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            peer.send(request(2, "much", number(3)));
            assertThat(error(reply(peer)).executed())
                    .as("of a handler that ran before it was refused")
                    .isEqualTo(RPCXException.Executed.EXECUTED);
        }
    }

    @Test
    void aServerThatRequiresTokensCannotServeTheClassicWire() {
        Server.Builder both = serving(Duration.ofSeconds(60)).interceptor(Tokens.requiring(caller -> null));
        assertThatThrownBy(both::build)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("classic(true)")
                .hasMessageContaining("Tokens.requiring");
        both.classic(false).build();
    }

    @Test
    void futuresThatNeverEndHoldNoHandlerWhenTheirCallersAreGone() throws IOException {
        restart(serving(Duration.ofSeconds(60)).maxRunning(8));
        for (int i = 0; i < 3; i++) {
            try (RawPeer peer = new RawPeer(server.port())) {
                for (int id = 1; id <= 4; id++) {
                    peer.send(request(id, "never"));
                }
                await().until(() -> server.core().running() == 4);
            }
            await().until(() -> server.core().running() == 0);
        }
        othersAreServed();
    }

    @Test
    void threeConnectionsThatFillTheHandlersLeaveSomeForOthers() throws IOException {
        int most = 40;
        restart(serving(Duration.ofSeconds(60)).maxRunning(most));
        List<RawPeer> greedy = new ArrayList<>();
        try {
            for (int i = 0; i < 3; i++) {
                RawPeer peer = new RawPeer(server.port());
                greedy.add(peer);
                for (int id = 1; id <= most; id++) {
                    peer.send(request(id, "block"));
                }
                peer.send(request(most + 1, "no such method"));
                ClassicWire.Reply answer = reply(peer);
                for (; answer.id() != most + 1; answer = reply(peer)) {
                    assertThat(error(answer).code()).isEqualTo(RPCXException.Code.OVERLOADED);
                }
            }
            assertThat(server.core().running()).isBetween(most / 2 + 2, most - 1);
            othersAreServed();
            target.release.countDown();
            // the handlers are free to end, each on a thread of its own
            await().until(() -> server.core().running() == 0);
            RawPeer first = greedy.get(0);
            for (int i = 0; i <= 2 * most; i++) {
                // calls that have ended do not count any more
                int id = 2 * most + i;
                first.send(request(id, "hello", RawPeer.text("a")));
                ClassicWire.Reply answer = reply(first);
                while (answer.id() != id) {
                    answer = reply(first);
                }
                assertThat(answer.error()).isNull();
            }
        } finally {
            for (RawPeer peer : greedy) {
                peer.close();
            }
        }
    }

    @Test
    void aByteAndThenSilenceIsClosed() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(Unpooled.wrappedBuffer(new byte[1]));
            assertThat(end(peer).executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        }
    }

    @Test
    void aFrameThatDoesNotGoOnIsClosed() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(Unpooled.buffer().writeInt(FRAME_BYTES).writeZero(100_000));
            assertThat(end(peer).getMessage()).contains("frame");
        }
    }

    @Test
    void aConnectionWithNothingToDoIsClosedInTheEnd() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(1, "hello", RawPeer.text("a")));
            assertThat(reply(peer).error()).isNull();
            assertThat(end(peer).code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
        }
    }

    @Test
    void aReaderThatNeverReadsIsClosedAndNothingIsLeftOfIt() throws Exception {
        try (RawPeer peer = new RawPeer(server.port())) {
            for (int id = 1; id <= 32; id++) {
                peer.send(request(id, "much", number(2 << 20)));
            }
            target.makesMuch.await();
            await().until(() -> server.core().connections() == 0);
            await().until(() -> server.core().running() == 0);
            await().untilAsserted(() -> assertThat(server.core().ledger().held(Resource.REPLY_BYTES))
                    .isZero());
        }
        othersAreServed();
    }

    @Test
    void anIdTwiceUnderWayEndsTheConnectionAndItsHandlers() throws Exception {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(7, "block"));
            // a call counts before it begins, and one that is cancelled by then never does
            target.entered.await();
            peer.send(request(7, "hello", RawPeer.text("a")));
            assertThat(end(peer).code()).isEqualTo(RPCXException.Code.PROTOCOL);
            target.interrupted.await();
            await().until(() -> server.core().running() == 0);
        }
        othersAreServed();
    }

    @Test
    void callsOfAClientThatIsGoneAreCancelled() throws Exception {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(7, "block"));
            // a call counts before it begins, and one that is cancelled by then never does
            target.entered.await();
        }
        target.interrupted.await();
        await().until(() -> server.core().running() == 0);
    }

    @Test
    void errorsOfArgumentsHandlersAndResultsAreAnswered() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(1, "readBroken", RawPeer.text("read")));
            assertThat(error(reply(peer)).code()).isEqualTo(RPCXException.Code.INVALID);
            peer.send(request(2, "writeBroken"));
            assertThat(error(reply(peer)).code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
            peer.send(request(3, "error"));
            assertThat(error(reply(peer)).code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
            peer.send(request(4, "hello", RawPeer.text("a")));
            assertThat(reply(peer).error()).isNull();
        }
        await().until(() -> server.core().running() == 0);
    }

    @Test
    void callsBeyondMaxCallsAreRefusedAndTheirPlacesComeBack() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            for (int id = 1; id <= 65; id++) {
                peer.send(request(id, "block"));
            }
            ClassicWire.Reply refused = reply(peer);
            assertThat(refused.id()).isEqualTo(65);
            assertThat(error(refused).code()).isEqualTo(RPCXException.Code.OVERLOADED);
            target.release.countDown();
            for (int i = 0; i < 64; i++) {
                assertThat(reply(peer).error()).isNull();
            }
            peer.send(request(66, "hello", RawPeer.text("a")));
            assertThat(reply(peer).error()).isNull();
        }
    }

    @Test
    void aResultThatNoClientTakesFailsItsCallOnly() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(1, "much", number(FRAME_BYTES)));
            RPCXException error = error(reply(peer));
            assertThat(error.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
            peer.send(request(2, "hello", RawPeer.text("a")));
            assertThat(reply(peer).error()).isNull();
        }
    }

    @Test
    void aRequestAboveTheServersLimitIsRefusedAloneAndNotKept() throws IOException {
        restart(serving(Duration.ofSeconds(60)).maxMessageBytes(100_000));
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(5, "hello", RawPeer.text("x".repeat(200_000))));
            ClassicWire.Reply refused = reply(peer);
            assertThat(refused.id()).isEqualTo(5);
            assertThat(error(refused).code()).isEqualTo(RPCXException.Code.TOO_LARGE);
            assertThat(error(refused).executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            peer.send(request(6, "hello", RawPeer.text("a")));
            assertThat(reply(peer).error()).isNull();
        }
    }

    @Test
    void moreParametersThanAreAllowedEndTheConnectionOnly() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(
                    1, "hello", Collections.nCopies(256, RawPeer.text("a")).toArray(ByteBuf[]::new)));
            assertThat(end(peer).code()).isEqualTo(RPCXException.Code.PROTOCOL);
        }
        othersAreServed();
    }

    @Test
    void anotherNumberOfParametersAndNamesTooLongAreRefusedAlone() throws IOException {
        restart(serving(Duration.ofSeconds(60)));
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(1, "hello"));
            assertThat(error(reply(peer)).code()).isEqualTo(RPCXException.Code.INVALID);
            peer.send(ClassicRequests.of(2, "target", "x".repeat(1_000_000), List.of(), List.of()));
            assertThat(error(reply(peer)).code()).isEqualTo(RPCXException.Code.NOT_FOUND);
            peer.send(request(3, "hello", RawPeer.text("a")));
            assertThat(reply(peer).error()).isNull();
        }
    }

    @Test
    void aServerThatDoesNotServeTheClassicWireSaysSo() throws IOException {
        restart(serving(Duration.ofSeconds(60)).classic(false));
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(1, "hello", RawPeer.text("a")));
            RPCXException why = end(peer);
            assertThat(why.getMessage()).contains("classic");
            assertThat(why.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        }
        try (Client client = Client.builder().classic().build()) {
            ClassicBesieged.Calls calls = client.create(ClassicBesieged.Calls.class, "127.0.0.1", server.port());
            assertThatThrownBy(() -> calls.hello("a")).isInstanceOfSatisfying(RPCXException.class, e -> {
                assertThat(e.getMessage()).contains("classic");
                assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            });
        }
    }

    @Test
    void aServerThatStopsAnswersWhatIsUnderWayAndTakesNoMore() throws Exception {
        restart(serving(Duration.ofSeconds(60)));
        try (RawPeer idle = new RawPeer(server.port());
                RawPeer peer = new RawPeer(server.port())) {
            idle.send(request(1, "hello", RawPeer.text("a")));
            assertThat(reply(idle).error()).isNull();
            peer.send(request(1, "block"));
            await().until(() -> server.core().running() == 1);
            Thread stopping = new Thread(() -> server.stop(Duration.ofSeconds(60)));
            stopping.start();
            assertThat(end(idle).code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            // each connection learns of the stop on its own loop
            AtomicLong id = new AtomicLong(2);
            RPCXException refused = await().until(
                            () -> {
                                peer.send(request(id.getAndIncrement(), "hello", RawPeer.text("a")));
                                return reply(peer).error();
                            },
                            Objects::nonNull);
            assertThat(refused.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            target.release.countDown();
            assertThat(reply(peer).error()).isNull();
            assertThat(end(peer).code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            stopping.join();
        }
    }

    @Test
    void aStopWithACallThatDoesNotEndCutsItOff() throws Exception {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(request(1, "block"));
            // a call counts before it begins, and one that is cancelled by then never does
            target.entered.await();
            server.stop(Duration.ofMillis(50));
            target.interrupted.await();
            await().until(() -> server.core().running() == 0);
        }
    }

    /** The server has a heap of 256 MB. Where nothing counted them, such frames held 909 MB of 1 GB. */
    @Test
    void unfinishedFramesHoldTheirShareOfTheHeapAndOthersAreServed() throws Exception {
        byte[] cut = ByteBufUtil.getBytes(Unpooled.buffer()
                .writeInt(FRAME_BYTES)
                .writeByte(1 << 3)
                .writeByte(1)
                .writeZero(FRAME_BYTES - 10));
        List<Socket> attackers = new ArrayList<>();
        try (JvmProcess process = JvmProcess.start(
                List.of("-XX:TieredStopAtLevel=1", "-Xmx256m", "-XX:+ExitOnOutOfMemoryError"), ClassicBesieged.class)) {
            int port = process.port();
            for (int i = 0; i < 100; i++) {
                Socket attacker = new Socket();
                attackers.add(attacker);
                attacker.bind(new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 2}), 0));
                attacker.connect(new InetSocketAddress("127.0.0.1", port));
                attacker.getOutputStream().write(cut);
            }
            // what the attackers hold is well below the heap; the server's own classes need some of it
            assertThat(Long.parseLong(process.ask("heap"))).isLessThan(100L << 20);
            String large = "x".repeat(1 << 20);
            for (Client.Builder builder : List.of(Client.builder().classic(), Client.builder())) {
                try (Client client = builder.build()) {
                    ClassicBesieged.Calls calls = client.create(ClassicBesieged.Calls.class, "127.0.0.1", port);
                    assertThat(calls.hello(large)).isEqualTo(large);
                }
            }
        } finally {
            for (Socket attacker : attackers) {
                attacker.close();
            }
        }
    }
}
