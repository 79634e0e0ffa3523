package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What handlers answer, held against their instance only where the other instances answer otherwise. */
@Timeout(120)
class FaultyInstancesTest {
    @RPCXServer("tenants")
    static final class Tenants {
        private final RPCXException.Code code;
        volatile boolean isSick;

        Tenants(RPCXException.Code code) {
            this.code = code;
        }

        @Method
        String get(String tenant) {
            if (isSick) {
                throw new IllegalStateException("the disk is gone");
            }
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
        ClientCluster cluster = client.clusters.values().iterator().next();
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
                        .noneMatch(address -> address.health().isOut());
            }
        }
    }

    @Test
    void anInstanceThatFailsAllThatTheOthersServeIsLeftOutAndComesBack() {
        Tenants sick = new Tenants(RPCXException.Code.UNAVAILABLE);
        sick.isSick = true;
        Endpoint[] all = {
            start(sick),
            start(new Tenants(RPCXException.Code.UNAVAILABLE)),
            start(new Tenants(RPCXException.Code.UNAVAILABLE))
        };
        try (Client client = Client.standard()) {
            TenantsClient calls = client.create(TenantsClient.class, Endpoints.of(all));
            isServed(calls, "here");
            ClientCluster cluster = connected(client, 3);
            ClientAddress address = List.of(cluster.chooser().all).stream()
                    .filter(each -> each.endpoint.equals(all[0]))
                    .findFirst()
                    .orElseThrow();
            await().until(() -> {
                isServed(calls, "here");
                return address.health().isOut();
            });
            while (address.health().isOut()) {
                assertThat(isServed(calls, "here") || !address.health().isOut()).isTrue();
            }
            sick.isSick = false;
            for (int i = 0; i < 200; i++) {
                isServed(calls, "here");
            }
            assertThat(address.health().isSuspect()).isFalse();
        }
    }

    /** All instances have the same share of requests that fail. */
    @Test
    void noShareOfBadRequestsMakesAnInstanceFailAlone() {
        HandPlatform hand = new HandPlatform();
        Client client = Client.builder().platform(hand).build();
        int port = 1;
        for (int bad : new int[] {10, 50, 55, 60, 65, 70, 75, 80, 90, 99}) {
            for (int count = 2; count <= 3; count++) {
                Endpoint[] all = new Endpoint[count];
                for (int i = 0; i < count; i++) {
                    all[i] = new Endpoint("instance", port++);
                }
                ClientCluster cluster = new ClientCluster(client, 1, 1, Choice.LEAST_LOADED).start(Endpoints.of(all));
                Random random = new Random(bad);
                for (int i = 0; i < 200_000; i++) {
                    boolean isBad = random.nextInt(100) < bad;
                    cluster.chooser()
                            .all[random.nextInt(count)]
                            .ended(isBad ? Health.Outcome.FAULT : Health.Outcome.ANSWERED, CircuitBreaker.GIVEN);
                }
                // the clock stands still, so whoever is left out once stays so
                assertThat(cluster.chooser().all)
                        .as("%s %% of the requests to %s instances", bad, count)
                        .noneMatch(address -> address.health().isOut());
            }
        }
        client.end();
    }

    /** In turn or by a hash, one caller's bad requests may all come to one instance. */
    @ParameterizedTest
    @EnumSource(Choice.class)
    void faultsAreComparedOnlyWhereInstancesAreChosenByChance(Choice choice) {
        Client client = Client.builder().platform(new HandPlatform()).build();
        ClientCluster cluster =
                new ClientCluster(client, 1, 1, choice).start(Endpoints.of(new Endpoint("a", 1), new Endpoint("b", 1)));
        ClientAddress[] all = cluster.chooser().all;
        Map<ClientAddress, Boolean> out = new HashMap<>();
        for (int i = 0; i < 100; i++) {
            all[0].ended(Health.Outcome.FAULT, CircuitBreaker.GIVEN);
            all[1].ended(Health.Outcome.ANSWERED, CircuitBreaker.GIVEN);
            out.put(all[0], all[0].health().isOut());
        }
        assertThat(out.get(all[0])).isEqualTo(choice == Choice.LEAST_LOADED);
        assertThat(all[1].health().isOut()).isFalse();
        client.end();
    }

    @Test
    void anInstanceThatHasServedOneCallDoesNotFailAlone() {
        Client client = Client.builder().platform(new HandPlatform()).build();
        ClientCluster cluster = new ClientCluster(client, 1, 1, Choice.LEAST_LOADED)
                .start(Endpoints.of(new Endpoint("a", 1), new Endpoint("b", 1)));
        ClientAddress[] all = cluster.chooser().all;
        for (int i = 0; i < 1_000; i++) {
            all[0].ended(i % 20 == 0 ? Health.Outcome.ANSWERED : Health.Outcome.FAULT, CircuitBreaker.GIVEN);
            all[1].ended(Health.Outcome.ANSWERED, CircuitBreaker.GIVEN);
            assertThat(all[0].health().isOut()).isFalse();
        }
        client.end();
    }
}
