package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.channel.Channel;
import io.netty.channel.epoll.Epoll;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Calls that their own threads send, over real sockets: when a lone caller has the socket, and keeps it. */
@Timeout(60)
class ClientHereTest {
    @RPCXServer("here")
    static final class Service {
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String echo(String text) {
            return text;
        }

        final Queue<CompletableFuture<String>> kept = new ConcurrentLinkedQueue<>();

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> keeps() {
            CompletableFuture<String> result = new CompletableFuture<>();
            kept.add(result);
            return result;
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

    private final Service service = new Service();
    private final Server server = new Server(0, RegistryServer.registry(service)).start();
    private final Client client = Client.standard();
    private final Remote remote = client.create(Remote.class, "127.0.0.1", server.port());

    @BeforeAll
    static void epoll() {
        assumeTrue(Epoll.isAvailable(), "threads use sockets themselves on Linux only");
    }

    @AfterEach
    void end() {
        service.kept.forEach(result -> result.complete("over"));
        client.close();
        server.close();
    }

    private @Nullable ClientConnection connection() {
        for (Channel channel : client.channels.keySet()) {
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
        await().until(() -> {
            callAlone(1);
            return turn().isLent();
        });
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

    @Test
    void aReplyToACallWhoseThreadDoesNotReadIsTheLoops() {
        callUntilLent();
        for (int i = 0; i < 20; i++) {
            assertThat(remote.send("later").orTimeout(5, TimeUnit.SECONDS).join())
                    .isEqualTo("later");
        }
    }

    /** Calls before it have ten seconds, which is when the loop would look by itself. */
    @Test
    void aCallWithLessTimeThanThoseBeforeItEndsInItsTime() {
        callAlone(3);
        for (int i = 0; i < 3; i++) {
            assertThatThrownBy(
                            () -> remote.keeps().orTimeout(5, TimeUnit.SECONDS).join())
                    .hasCauseInstanceOf(RPCXException.class)
                    .hasMessageContaining("in time");
        }
    }
}
