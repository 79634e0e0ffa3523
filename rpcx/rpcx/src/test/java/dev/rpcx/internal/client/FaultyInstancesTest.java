package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Choice;
import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that an error from a handler counts as an answer, and so does not count against the instance. */
@Timeout(120)
class FaultyInstancesTest {
    @RPCXServer("tenants")
    static final class Tenants {
        private final RPCXException.Code code;

        Tenants(RPCXException.Code code) {
            this.code = code;
        }

        @Method
        String get(String tenant) {
            if (tenant.equals("away")) {
                throw new RPCXException(code, "the backend of this tenant is away");
            }
            return tenant;
        }
    }

    @RPCXClient(remoteServerName = "tenants")
    interface TenantsClient {
        String get(String tenant);
    }

    private final List<Server> servers = new ArrayList<>();

    @AfterEach
    void stop() {
        servers.forEach(server -> server.stop(Duration.ZERO));
    }

    private Endpoint start(Tenants service) {
        Server server = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .port(0)
                .build()
                .start();
        servers.add(server);
        return new Endpoint("127.0.0.1", server.port());
    }

    private static boolean isServed(TenantsClient client, String tenant) {
        try {
            return client.get(tenant).equals(tenant);
        } catch (RPCXException e) {
            return false;
        }
    }

    private static ClientCluster connected(Client client, int count) {
        ClientCluster cluster = Inside.core(client).clusters.values().iterator().next();
        await().until(() -> List.of(cluster.chooser().all).stream()
                        .filter(address -> address.ready() != null)
                        .count()
                == count);
        return cluster;
    }

    @ParameterizedTest
    @EnumSource(
            value = RPCXException.Code.class,
            names = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "OVERLOADED", "PROTOCOL", "HANDLER_FAILED"})
    void aHandlerThatPassesOnWhatAnotherServiceSaysTakesNothingFromTheOthers(RPCXException.Code code) {
        Endpoint[] all = {start(new Tenants(code)), start(new Tenants(code))};
        try (Client client = Client.builder().circuitBreaker(0.5).build()) {
            TenantsClient one = client.create(TenantsClient.class, all[0].host(), all[0].port());
            TenantsClient both = client.create(TenantsClient.class, Endpoints.of(all));
            assertThat(both.get("here")).isEqualTo("here");
            ClientCluster cluster = connected(client, 2);
            for (int i = 0; i < 200; i++) {
                for (int away = 0; away < 3; away++) {
                    assertThat(isServed(one, "away")).isFalse();
                    assertThat(isServed(both, "away")).isFalse();
                }
                assertThat(one.get("here")).isEqualTo("here");
                assertThat(both.get("here")).isEqualTo("here");
                assertThat(cluster.chooser().all)
                        .noneMatch(address -> address.health().isEjected());
            }
        }
    }

    /** One caller's bad requests may all come to one instance, by whatever choice: callers in a loop return to it. */
    @ParameterizedTest
    @EnumSource(Choice.class)
    void whatHandlersAnswerEjectsNoInstance(Choice choice) {
        ClientCore client =
                Inside.core(Inside.on(Client.builder(), new HandPlatform()).build());
        ClientCluster cluster =
                new ClientCluster(client, 1, 1, choice).start(Endpoints.of(new Endpoint("a", 1), new Endpoint("b", 1)));
        ClientAddress[] all = cluster.chooser().all;
        for (int i = 0; i < 1_000; i++) {
            all[0].ended(Health.Outcome.FAULT, client.platform().ticker().nanoTime());
            all[1].ended(Health.Outcome.ANSWERED, client.platform().ticker().nanoTime());
            assertThat(all[0].health().isEjected()).isFalse();
        }
        client.end();
    }
}
