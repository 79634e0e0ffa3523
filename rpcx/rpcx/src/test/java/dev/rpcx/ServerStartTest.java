package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests servers that cannot start: what the error says, and that nothing is left over. */
@Timeout(60)
class ServerStartTest {
    /** Starts another server within a call. */
    @RPCXServer("starts")
    static final class Starts {
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String start(int port) {
            Throwable failure = catchThrowable(() -> started("127.0.0.1", port));
            return Thread.currentThread().getClass().getSimpleName() + " " + failure;
        }
    }

    @RPCXClient(remoteServerName = "starts")
    interface Calls {
        CompletableFuture<String> start(int port);
    }

    private static Server started(String host, int port) {
        return Server.builder(RegistryServer.registry(new Starts()))
                .host(host)
                .port(port)
                .build()
                .start();
    }

    private static Set<Thread> loops() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("rpcx-server"))
                .collect(Collectors.toSet());
    }

    @Test
    void aPortInUseIsToldOnAnEventLoopAsElsewhereAndNoThreadStays() throws Exception {
        try (Server server = started("127.0.0.1", 0);
                Client client = Client.standard()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            String at = "127.0.0.1:" + server.port() + ": cannot listen: ";
            // the loops of the first server and of the client exist from here on
            calls.start(server.port()).get(20, TimeUnit.SECONDS);
            Set<Thread> before = loops();
            assertThat(calls.start(server.port()).get(20, TimeUnit.SECONDS))
                    .startsWith("LoopThread RPCXException: UNAVAILABLE (NOT_EXECUTED): " + at);
            assertThatThrownBy(() -> started("127.0.0.1", server.port()))
                    .isInstanceOf(RPCXException.class)
                    .hasMessageStartingWith(at);
            await().atMost(Duration.ofSeconds(20)).until(() -> before.containsAll(loops()));
        }
    }

    @Test
    void aHostThatDoesNotResolveIsNamed() {
        assertThatThrownBy(() -> started("no-such-host.invalid", 0))
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE))
                .hasMessage("no-such-host.invalid:0: cannot listen: the host no-such-host.invalid does not resolve"
                        + " (expected: a name or an address of this machine)");
    }

    @Test
    void grpcIsRefusedWhereItsLibraryIsNotOnTheClassPath() {
        Server.Builder builder = Server.builder(RegistryServer.registry(new Starts()));
        assertThatThrownBy(() -> builder.grpc("com.acme"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("the library rpcx-grpc");
        assertThatThrownBy(() -> builder.grpc("com.acme-1"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("package com.acme-1 (expected: names");
    }
}
