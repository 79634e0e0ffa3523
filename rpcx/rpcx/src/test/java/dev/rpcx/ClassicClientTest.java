package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.channel.Channel;
import io.netty.channel.ChannelOption;
import io.netty.channel.epoll.EpollChannelOption;
import io.netty.channel.epoll.EpollSocketChannel;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests a client of the classic wire with servers that do not do their part. */
@Timeout(120)
class ClassicClientTest {
    /** A record that its server can read, and its client cannot. */
    record Broken(String text) {
        Broken {
            if (text.equals("back")) {
                throw new AssertionError("a broken record");
            }
        }
    }

    @RPCXServer("shelf")
    static final class Shelf {
        final CountDownLatch release = new CountDownLatch(1);

        @Method
        String broken() {
            return "back";
        }

        @Method
        String hello(String name) {
            return name;
        }

        @Method
        void block() throws InterruptedException {
            release.await();
        }
    }

    @RPCXClient(remoteServerName = "shelf")
    interface Calls {
        CompletableFuture<Broken> broken();

        @Method(timeoutMillis = 200)
        CompletableFuture<String> hello(String name);

        @Method("hello")
        CompletableFuture<String> patientHello(String name);

        @Method("hello")
        String blockingHello(String name);

        CompletableFuture<Void> block();
    }

    private static Client.Builder client() {
        return Client.builder().classic();
    }

    private static RPCXException failure(CompletableFuture<?> future) throws InterruptedException {
        try {
            future.get();
        } catch (ExecutionException e) {
            return (RPCXException) e.getCause();
        }
        throw new AssertionError("no failure");
    }

    private static Server serving(Shelf shelf) {
        return Server.builder(RegistryServer.registry(shelf))
                .host("127.0.0.1")
                .classic(true)
                .build()
                .start();
    }

    @Test
    void anErrorInAResultEndsItsFutureAndTheConnectionGoesOn() throws Exception {
        Server server = serving(new Shelf());
        try (Client client = client().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            RPCXException error = failure(calls.broken());
            assertThat(error.code()).isEqualTo(RPCXException.Code.INVALID);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
            assertThat(calls.blockingHello("a")).isEqualTo("a");
            assertThat(client.core().channels).hasSize(1);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** A listening socket whose queue is full answers no SYN, so the client stays connecting. */
    @Test
    void aCallEndsInItsTimeAlsoWhileItsClientConnects() throws Exception {
        List<Socket> fillers = new ArrayList<>();
        try (ServerSocket full = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Client client = client().connectTimeout(Duration.ofSeconds(20)).build()) {
            for (int i = 0; i < 4; i++) {
                Socket filler = new Socket();
                fillers.add(filler);
                try {
                    filler.connect(full.getLocalSocketAddress(), 300);
                } catch (IOException isFull) {
                    break;
                }
            }
            Calls calls = client.create(Calls.class, "127.0.0.1", full.getLocalPort());
            RPCXException error = failure(calls.hello("a"));
            assertThat(error.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        } finally {
            for (Socket filler : fillers) {
                filler.close();
            }
        }
    }

    @Test
    void aServerThatTakesNothingIsDisconnected() throws Exception {
        try (ServerSocket deaf = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                Client client = client().keepAlive(Duration.ofSeconds(1))
                        .callTimeout(Duration.ofSeconds(30))
                        .build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", deaf.getLocalPort());
            String large = "x".repeat(2 << 20);
            List<CompletableFuture<String>> all = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                all.add(calls.patientHello(large));
            }
            List<RPCXException.Code> codes = new ArrayList<>();
            for (CompletableFuture<String> call : all) {
                codes.add(failure(call).code());
            }
            assertThat(codes)
                    .contains(RPCXException.Code.UNAVAILABLE)
                    .isSubsetOf(RPCXException.Code.UNAVAILABLE, RPCXException.Code.OVERLOADED);
            await().until(() -> client.core().channels.isEmpty());
        }
    }

    @Test
    void aServerThatIsNotThereIsLeftAloneForAWhile() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        try (Client client = client().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", port);
            await().until(() -> failure(calls.hello("a")).getMessage().contains("the next is in"));
        }
    }

    @Test
    void closingTheClientEndsItsCalls() throws Exception {
        Shelf shelf = new Shelf();
        Server server = serving(shelf);
        try {
            Client client = client().build();
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            CompletableFuture<Void> blocked = calls.block();
            await().until(() -> server.core().running() == 1);
            client.close();
            assertThat(failure(blocked).code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            assertThatThrownBy(() -> calls.blockingHello("a")).isInstanceOf(RPCXException.class);
            await().until(() -> server.core().running() == 0);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void theKernelLooksForAHostThatIsGone() {
        Server server = serving(new Shelf());
        try (Client client = client().keepAlive(Duration.ofSeconds(30)).build()) {
            client.create(Calls.class, "127.0.0.1", server.port()).blockingHello("a");
            Channel channel = client.core().channels.keySet().iterator().next();
            assertThat(channel.config().getOption(ChannelOption.SO_KEEPALIVE)).isTrue();
            assumeTrue(channel instanceof EpollSocketChannel, "no epoll here, whose options could be read");
            assertThat(channel.config().getOption(EpollChannelOption.TCP_KEEPIDLE))
                    .isEqualTo(10);
            assertThat(channel.config().getOption(EpollChannelOption.TCP_KEEPINTVL))
                    .isEqualTo(10);
            assertThat(channel.config().getOption(EpollChannelOption.TCP_KEEPCNT))
                    .isEqualTo(2);
            assertThat(channel.config().getOption(EpollChannelOption.TCP_USER_TIMEOUT))
                    .as("a server that pauses until replies have left it")
                    .isEqualTo(120_000);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }
}
