package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBufUtil;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests threads that write to the socket themselves, beside an event loop that writes too, and while connections end.
 */
@Timeout(60)
class WriteTurnTest {
    @RPCXServer("echo")
    static final class Echo {
        final AtomicInteger taken = new AtomicInteger();

        @Method
        String echo(String text) {
            taken.incrementAndGet();
            return text;
        }

        @Method
        int length(byte[] bytes) {
            return bytes.length;
        }

        final Set<Integer> overtaken = ConcurrentHashMap.newKeySet();
        private final Map<Integer, Integer> last = new ConcurrentHashMap<>();

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        int inOrder(int caller, int number) {
            Integer before = last.put(caller, number);
            if (before != null && before > number) {
                overtaken.add(number);
            }
            return number;
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        @Method
        String echo(String text);

        @Method
        int length(byte[] bytes);

        @Method
        int inOrder(int caller, int number);

        @Method("inOrder")
        CompletableFuture<Integer> sendInOrder(int caller, int number);
    }

    private static final int CALLS = 3_000;

    /** Counts how calls ended. */
    private static final class Ends {
        final AtomicInteger right = new AtomicInteger();
        final AtomicInteger lost = new AtomicInteger();
        final AtomicReference<@Nullable Throwable> wrong = new AtomicReference<>();

        void call(EchoClient echo, int caller, int number) {
            // some texts are longer than what a thread writes itself
            String text = caller + "-" + number + "x".repeat(number % 50 == 0 ? 3_000 : number % 20);
            try {
                String reply = echo.echo(text);
                if (reply.equals(text)) {
                    right.incrementAndGet();
                } else {
                    wrong.set(new AssertionError(reply + " for " + text));
                }
            } catch (RPCXException e) {
                if (e.code() == RPCXException.Code.UNAVAILABLE) {
                    lost.incrementAndGet();
                } else {
                    wrong.set(e);
                }
            }
        }
    }

    private static void eachOnItsOwnThread(int callers, Ends ends, BiFunction<Integer, Integer, EchoClient> echo)
            throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int caller = 0; caller < callers; caller++) {
            int me = caller;
            Thread thread = new Thread(() -> {
                for (int i = 0; i < CALLS; i++) {
                    ends.call(echo.apply(me, i), me, i);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    @Test
    void threadsAndLoopShareASocketAndNoReplyIsLostOrAnothers() throws Exception {
        Ends ends = new Ends();
        try (Server server = new Server(0, RegistryServer.registry(new Echo())).start();
                Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            eachOnItsOwnThread(3, ends, (caller, number) -> echo);
        }
        assertThat(ends.wrong.get()).isNull();
        assertThat(ends.right.get()).isEqualTo(3 * CALLS);
    }

    @Test
    void noReplyIsAnothersWhileConnectionsEndUnderTheirCallers() throws Exception {
        Ends ends = new Ends();
        List<Client> clients = new ArrayList<>();
        try (Server server = new Server(0, RegistryServer.registry(new Echo())).start()) {
            List<EchoClient> echoes = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                Client client =
                        Client.builder().callTimeout(Duration.ofSeconds(5)).build();
                clients.add(client);
                echoes.add(client.create(EchoClient.class, "127.0.0.1", server.port()));
            }
            eachOnItsOwnThread(3, ends, (caller, number) -> {
                if (number % 20 == 0) {
                    Inside.core(clients.get((caller + 1) % clients.size())).dropConnections();
                }
                return echoes.get(caller);
            });
        } finally {
            clients.forEach(Client::close);
        }
        assertThat(ends.wrong.get()).isNull();
        assertThat(ends.right.get() + ends.lost.get()).isEqualTo(3 * CALLS);
        assertThat(ends.right.get()).isPositive();
    }

    @Test
    void whatTheSocketDoesNotTakeAtOnceIsSentWholeAndInOrder() throws Exception {
        Echo echo = new Echo();
        String text = "x".repeat(1_900);
        int sent = 0;
        try (Server server = new Server(0, RegistryServer.registry(echo)).start();
                RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            // the peer sends one call at a time, each with a slot of its own, and reads no reply, until the server
            // reads no more either
            boolean taken = true;
            while (taken && sent < Wire.MAX_SLOTS) {
                int id = 1 << 16 | sent++;
                peer.send(RawPeer.request(id, "echo", "echo", id + text));
                int now = sent;
                taken = becomes(() -> echo.taken.get() == now);
            }
            assertThat(taken)
                    .as("all were taken, and the socket was never full")
                    .isFalse();
            peer.readPreface();
            Set<Integer> answered = new HashSet<>();
            while (answered.size() < sent) {
                RawPeer.Frame frame = peer.readAnswer();
                if (frame.type() == Wire.REPLY) {
                    assertThat(frame.payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text(frame.id() + text)));
                    assertThat(answered.add(frame.id())).as("answered once").isTrue();
                }
            }
        }
    }

    private static boolean becomes(BooleanSupplier condition) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(500);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                return false;
            }
            Thread.onSpinWait();
        }
        return true;
    }

    @Test
    void whatALargeRequestHeldIsGivenBackAtOnceThoughItsReplyIsSmall() {
        try (Server server = new Server(0, RegistryServer.registry(new Echo())).start();
                Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            for (int i = 0; i < 20; i++) {
                assertThat(echo.length(new byte[100_000])).isEqualTo(100_000);
                await().untilAsserted(
                                () -> assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES))
                                        .isZero());
            }
        }
    }

    @Test
    void callsOfOneThreadArriveInTheirOrderWhicheverWayTheyAreSent() throws Exception {
        Echo service = new Echo();
        AtomicReference<@Nullable Throwable> failed = new AtomicReference<>();
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client client = Client.standard()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                int caller = i;
                Thread thread = new Thread(() -> {
                    try {
                        // this connects the client: calls that wait for a connection have no order
                        echo.echo("first");
                        for (int number = 0; number < CALLS; number += 3) {
                            CompletableFuture<Integer> first = echo.sendInOrder(caller, number);
                            CompletableFuture<Integer> second = echo.sendInOrder(caller, number + 1);
                            echo.inOrder(caller, number + 2);
                            first.join();
                            second.join();
                        }
                    } catch (RuntimeException e) {
                        failed.set(e);
                    }
                });
                thread.start();
                threads.add(thread);
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        assertThat(failed.get()).isNull();
        assertThat(service.overtaken).isEmpty();
    }

    @Test
    void aServerThatStopsWaitsForNoCallWhoseReplyItsThreadHasWritten() {
        try (Client client = Client.standard()) {
            for (int i = 0; i < 20; i++) {
                try (Server server = new Server(0, RegistryServer.registry(new Echo())).start()) {
                    EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
                    assertThat(echo.echo("a")).isEqualTo("a");
                    assertThat(echo.echo("b")).isEqualTo("b");
                    long begin = System.nanoTime();
                    server.stop();
                    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(2));
                }
            }
        }
    }
}
