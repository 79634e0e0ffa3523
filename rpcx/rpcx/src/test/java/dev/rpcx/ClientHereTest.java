package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.io.ReadTurn;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.epoll.Epoll;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests calls that the caller's own thread sends, over real sockets. It also tests when a lone caller gets the socket
 * to read its reply, and keeps it.
 */
@Timeout(60)
class ClientHereTest {
    @RPCXServer("here")
    static final class Service {
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String echo(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "here")
    interface Remote {
        @Method
        String echo(String text);

        @Method("echo")
        CompletableFuture<String> send(String text);

        @Method(timeoutMillis = 100)
        CompletableFuture<String> keeps();
    }

    private final Server server = new Server(0, RegistryServer.registry(new Service())).start();
    private final Client client = Client.standard();
    private final Remote remote = client.create(Remote.class, "127.0.0.1", server.port());

    @BeforeAll
    static void epoll() {
        assumeTrue(Epoll.isAvailable(), "threads use sockets themselves on Linux only");
    }

    @AfterEach
    void end() {
        client.close();
        server.close();
    }

    private @Nullable ClientConnection connection() {
        for (Channel channel : client.core().channels.keySet()) {
            ClientConnection connection = channel.pipeline().get(ClientConnection.class);
            if (connection != null) {
                return connection;
            }
        }
        return null;
    }

    private ReadTurn turn() {
        return Objects.requireNonNull(connection()).readTurn;
    }

    private void callAlone(int calls) {
        for (int i = 0; i < calls; i++) {
            assertThat(remote.echo("alone")).isEqualTo("alone");
        }
    }

    private void callUntilLent() {
        callAlone(ReadTurn.LONE_REPLIES);
        for (int calls = 0; !turn().isLent(); calls++) {
            assertThat(calls).as("a row of lone calls comes at some time").isLessThan(1_000_000);
            callAlone(1);
        }
    }

    @Test
    void aSocketIsNotLentBeforeARowOfCallsThatWereAlone() {
        callAlone(ReadTurn.LONE_REPLIES / 2);
        assertThat(turn().isLent()).isFalse();
    }

    @Test
    void aLoneCallerKeepsTheSocket() {
        await().until(() -> {
            callUntilLent();
            callAlone(ReadTurn.LONE_REPLIES - 2);
            return turn().isLent();
        });
    }

    private <T> T onLoop(Supplier<T> asks) {
        return CompletableFuture.supplyAsync(
                        asks, Objects.requireNonNull(connection()).loop())
                .orTimeout(10, TimeUnit.SECONDS)
                .join();
    }

    @Test
    void theLoopHasASocketBackAtOnceWhereNoCallerIsThere() {
        await().until(() -> {
            callUntilLent();
            ReadTurn turn = turn();
            return onLoop(() -> {
                if (!turn.isLent()) {
                    return false;
                }
                assertThat(turn.takeForLoop()).isTrue();
                assertThat(turn.isLent()).isFalse();
                return true;
            });
        });
        callAlone(1);
    }

    @Test
    void aSocketThatTheLoopHasForGoodIsReadByItAndNotLentAgain() {
        callUntilLent();
        ReadTurn turn = turn();
        onLoop(() -> {
            turn.endToLoop();
            return true;
        });
        callAlone(4 * ReadTurn.LONE_REPLIES);
        assertThat(turn()).isSameAs(turn);
        assertThat(turn.isLent()).isFalse();
    }

    private static long descriptors() throws IOException {
        try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
            return all.count();
        }
    }

    /** A caller waits with three descriptors, which are closed with the connection. */
    @Test
    void whatALentSocketIsWaitedForWithEndsWithItsConnection() throws IOException {
        callUntilLent();
        long before = descriptors();
        int connections = 5;
        for (int i = 0; i < connections; i++) {
            client.core().dropConnections();
            await().ignoreExceptions().until(() -> remote.echo("alone").equals("alone"));
            callUntilLent();
        }
        await().until(() -> descriptors() < before + connections);
    }

    @Test
    void aReplyToACallWhoseThreadDoesNotReadIsTheLoops() {
        callUntilLent();
        for (int i = 0; i < 20; i++) {
            assertThat(remote.send("later").orTimeout(5, TimeUnit.SECONDS).join())
                    .isEqualTo("later");
        }
    }

    /** Earlier calls have ten seconds, and the loop would look only then by itself. The server does not answer. */
    @Test
    void aCallWithLessTimeThanThoseBeforeItEndsInItsTime() throws IOException {
        try (RawServer silent = new RawServer()) {
            Remote other = client.create(Remote.class, "127.0.0.1", silent.port());
            CompletableFuture<String> first = other.send("a");
            try (RawServer.Peer peer = silent.accept(16)) {
                peer.reply(peer.read(Wire.REQUEST).id(), "a");
                assertThat(first.orTimeout(20, TimeUnit.SECONDS).join()).isEqualTo("a");
                assertThatThrownBy(() ->
                                other.keeps().orTimeout(8, TimeUnit.SECONDS).join())
                        .hasCauseInstanceOf(RPCXException.class)
                        .hasMessageContaining("no reply in time");
            }
        }
    }

    @Test
    void callsThatRepliesBringAreSentWhileMoreRepliesAreRead() throws Exception {
        int before = 64;
        CountDownLatch isBlocked = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        try (RawServer server = new RawServer()) {
            Remote other = client.create(Remote.class, "127.0.0.1", server.port());
            List<CompletableFuture<?>> all = new ArrayList<>();
            CompletableFuture<String> first = other.send("first");
            try (RawServer.Peer peer = server.accept(1_000)) {
                peer.reply(peer.read(Wire.REQUEST).id(), "a");
                first.orTimeout(20, TimeUnit.SECONDS).join();
                for (int i = 0; i < before; i++) {
                    all.add(other.send("a").thenCompose(text -> other.send("next")));
                }
                all.add(other.send("a").thenAccept(text -> {
                    isBlocked.countDown();
                    awaitOnPurpose(end);
                }));
                ByteBuf replies = Unpooled.buffer();
                for (int i = 0; i <= before; i++) {
                    replies.writeBytes(
                            RawPeer.frame(Wire.REPLY, peer.read(Wire.REQUEST).id(), RawPeer.text("a")));
                }
                peer.write(replies);
                assertThat(isBlocked.await(20, TimeUnit.SECONDS)).isTrue();
                for (int i = 0; i < before; i++) {
                    RawPeer.Frame request = peer.read(Wire.REQUEST);
                    assertThat(RawServer.Request.of(request).body())
                            .isEqualTo(ByteBufUtil.getBytes(RawPeer.text("next")));
                    peer.reply(request.id(), "b");
                }
                end.countDown();
                CompletableFuture.allOf(all.toArray(CompletableFuture[]::new))
                        .orTimeout(20, TimeUnit.SECONDS)
                        .join();
            } finally {
                end.countDown();
            }
        }
    }

    private static void awaitOnPurpose(CountDownLatch end) {
        try {
            LoopChecker.waitOnPurpose(end::await);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
