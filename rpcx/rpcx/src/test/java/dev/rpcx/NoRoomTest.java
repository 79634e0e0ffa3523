package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.client.CircuitBreaker;
import dev.rpcx.internal.client.ClientCluster;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests a client whose ledger has no room for frames that have arrived only in part. The connections end because of
 * that. The servers are not to blame, so this must not count against them.
 */
@Timeout(60)
class NoRoomTest {
    /**
     * A test makes so many calls. If these calls counted as failed, they would be enough to open the circuit breaker
     * and to eject an instance.
     */
    private static final int CALLS = 60;

    @RPCXClient(remoteServerName = "any")
    interface Calls {
        @Method(idempotent = true)
        CompletableFuture<String> echo(String text);
    }

    /** Sends a part of a reply on each connection as soon as all calls have come. Answers the calls that come later. */
    private static final class Halves implements FakeServer.Answer {
        final AtomicInteger requests = new AtomicInteger();
        final Set<RawServer.Peer> peers = ConcurrentHashMap.newKeySet();

        @Override
        public void to(RawPeer.Frame request, RawServer.Peer peer) throws IOException {
            peers.add(peer);
            int number = requests.incrementAndGet();
            if (number == CALLS) {
                ByteBuf whole = RawPeer.frame(
                        Wire.REPLY, request.id(), Unpooled.buffer().writeZero(16_000));
                for (RawServer.Peer each : peers) {
                    each.write(whole.slice(0, 9_000));
                }
            } else if (number > CALLS) {
                peer.reply(request.id(), "after");
            }
        }
    }

    @Test
    void callsOfAConnectionThatEndsForWantOfRoomCountAgainstNobodyAndAreNotMadeAgain() throws Exception {
        Halves halves = new Halves();
        Settings settings = new Settings(1 << 20, 1_000, 10_000_000);
        try (FakeServer one = new FakeServer(settings, Unpooled.EMPTY_BUFFER, halves);
                FakeServer other = new FakeServer(settings, Unpooled.EMPTY_BUFFER, halves);
                Client client = Client.builder()
                        .eventLoops(1)
                        .connections(1)
                        .circuitBreaker(0.1)
                        .build()) {
            Calls calls = client.create(Calls.class, Endpoints.of(one.endpoint(), other.endpoint()));
            assertThat(one.known.await(20, TimeUnit.SECONDS)).isTrue();
            assertThat(other.known.await(20, TimeUnit.SECONDS)).isTrue();
            ClientCluster cluster = client.core().clusters.values().iterator().next();
            await().until(() -> List.of(cluster.chooser().all).stream().allMatch(each -> each.ready() != null));
            Account full = new Account(client.core().ledger());
            long all = client.core().ledger().max(Resource.FRAME_BYTES);
            assertThat(full.tryCharge(Resource.FRAME_BYTES, all)).isTrue();
            List<CompletableFuture<String>> made = new ArrayList<>();
            for (int i = 0; i < CALLS; i++) {
                made.add(calls.echo("x"));
            }
            for (CompletableFuture<String> call : made) {
                CompletionException failed = catchThrowableOfType(
                        CompletionException.class,
                        () -> call.orTimeout(20, TimeUnit.SECONDS).join());
                assertThat(failed.getCause())
                        .isExactlyInstanceOf(RPCXException.class)
                        .isInstanceOfSatisfying(RPCXException.class, e -> {
                            assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED);
                            assertThat(e.executed()).isEqualTo(RPCXException.Executed.MAYBE);
                        });
            }
            assertThat(halves.requests).hasValue(CALLS);
            assertThat(cluster.calledAgain()).as("the circuit").isEqualTo(CircuitBreaker.PERMITTED);
            assertThat(cluster.chooser().all).allMatch(each -> !each.health().isEjected());
            full.release(Resource.FRAME_BYTES, all);
            await().until(() -> calls.echo("y")
                    .handle((reply, failure) -> "after".equals(reply))
                    .join());
        }
    }

    /**
     * The client has no room for the first bytes of the server's dictionary, so the connection is never established.
     */
    @Test
    void aServerThatCannotBeHeardForWantOfRoomDoesNotCountAsOutOfReach() throws Exception {
        try (RawServer listening = new RawServer();
                Client client = Client.builder().circuitBreaker(0.1).build()) {
            Account full = new Account(client.core().ledger());
            long all = client.core().ledger().max(Resource.FRAME_BYTES);
            assertThat(full.tryCharge(Resource.FRAME_BYTES, all)).isTrue();
            Calls calls = client.create(Calls.class, "127.0.0.1", listening.port());
            List<CompletableFuture<String>> made = new ArrayList<>();
            for (int i = 0; i < CALLS; i++) {
                made.add(calls.echo("x"));
            }
            ByteBuf cut = Unpooled.buffer();
            cut.writeBytes(RawPeer.preface());
            cut.writeBytes(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.buffer().writeZero(9_000)), 5_000);
            try (RawServer.Peer peer = listening.accept()) {
                peer.write(cut);
                for (CompletableFuture<String> call : made) {
                    CompletionException failed = catchThrowableOfType(
                            CompletionException.class,
                            () -> call.orTimeout(20, TimeUnit.SECONDS).join());
                    assertThat(failed.getCause()).isInstanceOfSatisfying(RPCXException.class, e -> {
                        assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED);
                        assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                    });
                }
            }
            assertThat(client.core().address("127.0.0.1", listening.port()).calledAgain())
                    .as("the circuit")
                    .isEqualTo(CircuitBreaker.PERMITTED);
            full.release(Resource.FRAME_BYTES, all);
        }
    }
}
