package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests calls to a server that says, while calls are in flight already, that it takes fewer calls than these. Each call
 * ends within its time.
 */
@Timeout(60)
class FullConnectionsTest {
    @RPCXClient(remoteServerName = "full")
    interface Remote {
        @Method(timeoutMillis = 300)
        String now();

        @Method(value = "now", timeoutMillis = 300)
        CompletableFuture<String> later();

        Flow.Publisher<String> feed();
    }

    /** Keeps how a stream ends. */
    private static final class End implements Flow.Subscriber<String> {
        final CompletableFuture<String> end = new CompletableFuture<>();

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            subscription.request(1);
        }

        @Override
        public void onNext(String item) {}

        @Override
        public void onError(Throwable thrown) {
            end.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            end.complete("the stream is over");
        }
    }

    private final Client client =
            Client.builder().eventLoops(1).connections(1, 1).build();
    private RawServer server;
    private Remote remote;
    private RawServer.@Nullable Peer peer;

    @BeforeEach
    void fill() throws IOException {
        server = new RawServer();
        remote = client.create(Remote.class, "127.0.0.1", server.port());
        remote.feed().subscribe(new End());
        RawServer.Peer accepted = server.accept();
        peer = accepted;
        accepted.write(RawPeer.preface());
        accepted.send(Wire.DICTIONARY, 0);
        remote.feed().subscribe(new End());
        accepted.read(Wire.REQUEST);
        accepted.read(Wire.REQUEST);
        ByteBuf settings = Unpooled.buffer();
        new Settings(Wire.MAX_MESSAGE_BYTES, 1, Settings.INITIAL.defaultMicros()).write(settings);
        accepted.send(Wire.SETTINGS, 0, settings);
        answering(accepted).start();
        ClientAddress address = client.core().address("127.0.0.1", server.port());
        await().until(() -> {
            ClientConnection ready = address.ready();
            return ready != null && ready.slots.limit() == 1;
        });
    }

    /**
     * Returns a thread that answers pings until the test is over. Otherwise the connection would end, and end its
     * calls.
     */
    private static Thread answering(RawServer.Peer peer) {
        Thread thread = new Thread(() -> {
            try {
                while (true) {
                    RawPeer.Frame frame = peer.read();
                    if (frame.type() == Wire.PING) {
                        peer.send(Wire.PONG, frame.id());
                    }
                }
            } catch (IOException over) {
                // the test is over
            }
        });
        thread.setDaemon(true);
        return thread;
    }

    /** Closes the connection first, so that a call that goes round and round ends with it. */
    @AfterEach
    void stop() throws IOException {
        RawServer.Peer last = peer;
        if (last != null) {
            last.close();
        }
        client.close();
        server.close();
    }

    private static void assertRefused(Callback call) {
        assertThatThrownBy(call::end)
                .isInstanceOf(ExecutionException.class)
                .cause()
                .isInstanceOfSatisfying(
                        RPCXException.class,
                        e -> assertThat(e.code())
                                .isIn(RPCXException.Code.OVERLOADED, RPCXException.Code.DEADLINE_EXCEEDED));
    }

    private interface Callback {
        void end() throws Exception;
    }

    @Test
    void aBlockingCallDoesNotGoRoundUntilASlotIsFree() {
        FutureTask<String> call = new FutureTask<>(remote::now);
        Thread caller = new Thread(call);
        caller.setDaemon(true);
        caller.start();
        assertRefused(() -> call.get(20, TimeUnit.SECONDS));
    }

    @Test
    void anAsynchronousCallEndsByItsOwnErrorAndNotByThatOfItsStack() {
        assertRefused(() -> remote.later().get(20, TimeUnit.SECONDS));
    }

    @Test
    void theSubscriberOfAStreamIsToldOfTheEnd() {
        End stream = new End();
        remote.feed().subscribe(stream);
        assertRefused(() -> stream.end.get(20, TimeUnit.SECONDS));
    }
}
