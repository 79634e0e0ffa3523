package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.SerialExecutor;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireConnection;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.epoll.Epoll;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests threads that run out of stack in the middle of a call or a reply. At most their connection ends, and no caller
 * waits forever.
 */
@Timeout(120)
class FailingThreadsTest {
    private static final Queue<CompletableFuture<String>> DEEP = new ConcurrentLinkedQueue<>();

    @RPCXServer("echo")
    static final class Echo {
        final Queue<CompletableFuture<String>> given = new ConcurrentLinkedQueue<>();

        @Method
        String echo(String text) {
            return text;
        }

        @Method
        CompletableFuture<String> deep(String text) {
            CompletableFuture<String> reply = new CompletableFuture<>();
            DEEP.add(reply);
            given.add(reply);
            return reply;
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        @Method
        String echo(String text);

        @Method("echo")
        CompletableFuture<String> later(String text);

        @Method
        String deep(String text);
    }

    /** Makes a frame of an unknown type, which the receiver passes over. */
    private static Outbound message(ByteBuf body, Runnable step) {
        return new Outbound.Control(0, 0, body) {
            @Override
            public boolean beforeDirectWrite() {
                step.run();
                return true;
            }
        };
    }

    private static ClientConnection connection(Client client) {
        return client.core().channels.keySet().iterator().next().pipeline().get(ClientConnection.class);
    }

    private static void sendHere(ClientConnection connection, Outbound message) {
        // the loop may still be at its own last write
        while (!connection.sendHere(message)) {
            Thread.onSpinWait();
        }
    }

    @Test
    void aThreadThatFailsBeforeItsMessageIsWrittenKeepsTheConnectionAsItWas() {
        Assumptions.assumeTrue(Epoll.isAvailable());
        try (Server server = new Server(0, RegistryServer.registry(new Echo())).start();
                Client client = Client.builder().connections(1).build()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            assertThat(echo.echo("a")).isEqualTo("a");
            ClientConnection connection = connection(client);
            ByteBuf noArray = Unpooled.directBuffer(8).writeLong(1);
            try {
                Outbound failing = message(noArray, () -> {});
                assertThatThrownBy(() -> sendHere(connection, failing))
                        .isInstanceOf(UnsupportedOperationException.class);
            } finally {
                noArray.release();
            }
            assertThat(echo.echo("b")).isEqualTo("b");
            assertThat(connection(client)).isSameAs(connection);
        }
    }

    @Test
    void aThreadThatFailsWhileItsMessageIsWrittenEndsItsConnectionAndNoOther() {
        Assumptions.assumeTrue(Epoll.isAvailable());
        try (Server server = new Server(0, RegistryServer.registry(new Echo())).start();
                Client client = Client.builder().connections(1).build()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            assertThat(echo.echo("a")).isEqualTo("a");
            ClientConnection connection = connection(client);
            Outbound failing = message(Unpooled.EMPTY_BUFFER, () -> {
                throw new StackOverflowError("injected");
            });
            assertThatThrownBy(() -> sendHere(connection, failing)).isInstanceOf(StackOverflowError.class);
            await().until(connection::isClosed);
            assertThat(echo.echo("b")).isEqualTo("b");
        }
    }

    @Test
    void whatIsQueuedIsSentThoughAThreadCouldNotWakeTheLoop() {
        AtomicBoolean fails = new AtomicBoolean();
        EmbeddedChannel channel = new EmbeddedChannel() {
            @Override
            public EventLoop eventLoop() {
                return failing(super.eventLoop(), fails);
            }
        };
        Account account = Objects.requireNonNull(
                Ledger.ofClient("client", Wire.MAX_MESSAGE_BYTES).open(null));
        WireConnection connection = new Deaf(channel, account);
        fails.set(true);
        assertThatThrownBy(() -> connection.send(Outbound.Control.empty(Wire.PING, 1)))
                .isInstanceOf(StackOverflowError.class);
        fails.set(false);
        connection.send(Outbound.Control.empty(Wire.PING, 2));
        channel.runPendingTasks();
        ByteBuf written = channel.readOutbound();
        assertThat(ByteBufUtil.hexDump(written)).isEqualTo("050b00000001050b00000002".replace("0b", hex(Wire.PING)));
        written.release();
        channel.close();
        account.close();
    }

    private static String hex(int head) {
        return String.format("%02x", head);
    }

    private static final class Deaf extends WireConnection {
        Deaf(EmbeddedChannel channel, Account account) {
            super(channel, account);
        }

        @Override
        public void onPreface(int version) {}

        @Override
        public void onFrame(int head, int id, ByteBuf payload) {}

        @Override
        public int maxBytesTaken() {
            return Wire.MAX_MESSAGE_BYTES;
        }

        @Override
        public void beforeRead() {}

        @Override
        public void onClosed(String why) {}
    }

    private static EventLoop failing(EventLoop loop, AtomicBoolean fails) {
        return (EventLoop) Proxy.newProxyInstance(
                EventLoop.class.getClassLoader(), new Class<?>[] {EventLoop.class}, (proxy, method, arguments) -> {
                    if (fails.get() && method.getName().equals("execute")) {
                        throw new StackOverflowError("injected");
                    }
                    try {
                        return method.invoke(loop, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    @Test
    void signalsRunAfterTheirPlaceHasThrown() {
        AtomicBoolean fails = new AtomicBoolean(true);
        SerialExecutor serial = new SerialExecutor(signal -> {
            if (fails.get()) {
                throw new StackOverflowError("injected");
            }
            signal.run();
        });
        List<String> ran = new ArrayList<>();
        assertThatThrownBy(() -> serial.execute(() -> ran.add("first"))).isInstanceOf(StackOverflowError.class);
        fails.set(false);
        serial.execute(() -> ran.add("second"));
        assertThat(ran).containsExactly("first", "second");
    }

    @Test
    void aPlaceThatTakesTheSignalsAndThrowsAllTheSameRunsThemOnce() {
        List<Runnable> taken = new ArrayList<>();
        AtomicBoolean fails = new AtomicBoolean(true);
        SerialExecutor serial = new SerialExecutor(signal -> {
            taken.add(signal);
            if (fails.get()) {
                throw new StackOverflowError("injected");
            }
        });
        List<String> ran = new ArrayList<>();
        assertThatThrownBy(() -> serial.execute(() -> ran.add("first"))).isInstanceOf(StackOverflowError.class);
        fails.set(false);
        serial.execute(() -> ran.add("second"));
        taken.forEach(Runnable::run);
        assertThat(ran).containsExactly("first", "second");
    }

    // ---- stacks that end

    private static void callDown(EchoClient echo, int depth, boolean blocks) {
        if (depth % 7 == 0) {
            if (blocks) {
                echo.echo("x");
            } else {
                echo.later("x");
            }
        }
        callDown(echo, depth + 1, blocks);
    }

    private static int shifted(int frames, Runnable then) {
        if (frames > 0) {
            return shifted(frames - 1, then) + 1;
        }
        try {
            then.run();
        } catch (StackOverflowError | RPCXException end) {
            // the test makes the stack overflow on purpose
        }
        return 0;
    }

    private static void onSmallStack(int round, Runnable task) throws InterruptedException {
        Thread thread = new Thread(null, () -> shifted(round, task), "deep", 220_000 + round * 977 % 4_096);
        thread.start();
        thread.join();
    }

    private static void anothersCallEndsBeside(boolean blocks) throws Exception {
        try (Server server = new Server(0, RegistryServer.registry(new Echo())).start();
                Client client =
                        Client.builder().callTimeout(Duration.ofSeconds(2)).build()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            echo.echo("warm");
            AtomicInteger right = new AtomicInteger();
            for (int round = 0; round < LongForm.of(30, 3_000); round++) {
                onSmallStack(round, () -> callDown(echo, 1, blocks));
                try {
                    if (echo.echo("alive").equals("alive")) {
                        right.incrementAndGet();
                    }
                } catch (RPCXException lost) {
                    // the call was lost with its connection
                }
            }
            assertThat(right.get()).isPositive();
            await().ignoreExceptions().until(() -> echo.echo("alive").equals("alive"));
        }
    }

    @Test
    void anothersCallEndsWhileCallersOverflowTheirStacks() throws Exception {
        anothersCallEndsBeside(false);
    }

    private static void replyDown(int depth) {
        if (depth > 600) {
            CompletableFuture<String> reply = DEEP.poll();
            if (reply != null) {
                reply.complete("x");
            }
        }
        replyDown(depth + 1);
    }

    @Test
    void anothersCallEndsWhileRepliesAreGivenAtTheEndOfAStack() throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        Thread replier = new Thread(() -> {
            for (int round = 0; !over.get(); round++) {
                try {
                    onSmallStack(round % 9, () -> replyDown(1));
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        replier.start();
        Echo service = new Echo();
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client other =
                        Client.builder().callTimeout(Duration.ofSeconds(5)).build()) {
            EchoClient echo = other.create(EchoClient.class, "127.0.0.1", server.port());
            for (int round = 0; round < LongForm.of(3, 300); round++) {
                try (Client client =
                        Client.builder().callTimeout(Duration.ofMillis(300)).build()) {
                    EchoClient deep = client.create(EchoClient.class, "127.0.0.1", server.port());
                    for (int call = 0; call < 300; call++) {
                        deep.deep("x");
                    }
                } catch (RPCXException lost) {
                    // the thread of the reply could not give it
                }
                assertThat(echo.echo("alive")).isEqualTo("alive");
            }
            over.set(true);
            replier.join();
            service.given.forEach(reply -> reply.complete("late"));
        } finally {
            over.set(true);
        }
    }

    @Test
    void anothersCallEndsWhileBlockingCallersOverflowTheirStacks() throws Exception {
        anothersCallEndsBeside(true);
    }

    /**
     * Makes a call at the end of the stack, and then one at each frame on the way back, until one does not overflow.
     */
    private static boolean callUp(EchoClient echo, boolean blocks) {
        boolean hasCalled;
        try {
            hasCalled = callUp(echo, blocks);
        } catch (StackOverflowError end) {
            hasCalled = false;
        }
        if (!hasCalled) {
            if (blocks) {
                echo.echo("x");
            } else {
                echo.later("x");
            }
        }
        return true;
    }

    private static void noSlotIsLost(boolean blocks) throws Exception {
        try (Server server = new Server(0, RegistryServer.registry(new Echo())).start();
                Client client = Client.builder()
                        .callTimeout(Duration.ofMillis(500))
                        .eventLoops(1)
                        .build()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
            // the first call may be late, since it connects
            Again.upToFiveTimes(100, () -> assertThat(echo.echo("a")).isEqualTo("a"));
            for (int round = 0; round < LongForm.of(20, 500); round++) {
                onSmallStack(round, () -> callUp(echo, blocks));
            }
            // the loop looks for lost slots when the deadline of the next call is due
            await().ignoreExceptions().until(() -> echo.echo("alive").equals("alive"));
            await().untilAsserted(() -> {
                for (Channel channel : client.core().channels.keySet()) {
                    assertThat(channel.pipeline()
                                    .get(ClientConnection.class)
                                    .slots
                                    .taken())
                            .isZero();
                }
            });
        }
    }

    @Test
    void noSlotIsLostByBlockingCallersWhoseStacksEnd() throws Exception {
        noSlotIsLost(true);
    }

    @Test
    void noSlotIsLostByCallersWhoseStacksEnd() throws Exception {
        noSlotIsLost(false);
    }

    @Test
    void aPlaceAmongTheCallsThatWaitIsNotLostByCallersWhoseStacksEnd() throws Exception {
        try (ServerSocket silent = new ServerSocket(0);
                Client client = Client.builder()
                        .callTimeout(Duration.ofSeconds(1))
                        .eventLoops(1)
                        .build()) {
            EchoClient echo = client.create(EchoClient.class, "127.0.0.1", silent.getLocalPort());
            for (int round = 0; round < LongForm.of(20, 500); round++) {
                onSmallStack(round, () -> callUp(echo, false));
            }
            await().until(() ->
                    client.core().address("127.0.0.1", silent.getLocalPort()).waitingCalls() == 0);
        }
    }

    /** The first calls of a client end at the end of a stack; then somebody else calls. */
    private static void noAddressIsLost(boolean blocks, boolean isClassic) throws Exception {
        try (Server server = Server.builder(RegistryServer.registry(new Echo()))
                .classic(isClassic)
                .build()
                .start()) {
            for (int round = 0; round < LongForm.of(12, 500); round++) {
                Client.Builder builder =
                        Client.builder().callTimeout(Duration.ofSeconds(5)).eventLoops(1);
                try (Client client = (isClassic ? builder.classic() : builder).build()) {
                    EchoClient echo = client.create(EchoClient.class, "127.0.0.1", server.port());
                    onSmallStack(round, () -> callUp(echo, blocks));
                    await().ignoreExceptions().until(() -> echo.echo("alive").equals("alive"));
                }
            }
        }
    }

    @Test
    void noAddressIsLostByBlockingCallersWhoseStacksEndAsTheyConnect() throws Exception {
        noAddressIsLost(true, false);
    }

    @Test
    void noAddressIsLostByCallersWhoseStacksEndAsTheyConnect() throws Exception {
        noAddressIsLost(false, false);
    }

    @Test
    void noClassicAddressIsLostByCallersWhoseStacksEndAsTheyConnect() throws Exception {
        noAddressIsLost(false, true);
    }
}
