package dev.rpcx.kubernetes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.KeyStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;

/** Tests endpoints with a server that speaks the API as the reference shows it. No cluster runs here. */
@Timeout(120)
class KubernetesTest {
    private static final int CALLERS = 2;

    @RPCXServer("counted")
    static final class Counted {
        final AtomicLong calls = new AtomicLong();

        @Method
        long count() {
            return calls.incrementAndGet();
        }
    }

    @RPCXClient(remoteServerName = "counted")
    interface Counting {
        long count();
    }

    private static final class Instance implements AutoCloseable {
        final Counted counted = new Counted();
        final Server server = Server.builder(RegistryServer.registry(counted))
                .host("127.0.0.1")
                .build()
                .start();

        @Override
        public void close() {
            server.stop(Duration.ofMillis(500));
        }
    }

    /** Keeps the lists and the failures that a watch has reported. */
    private static final class Heard implements Endpoints.Listener {
        final List<List<Endpoint>> found = new CopyOnWriteArrayList<>();
        final List<Throwable> failures = new CopyOnWriteArrayList<>();

        @Override
        public void found(List<Endpoint> all) {
            found.add(all);
        }

        @Override
        public void failed(Throwable why) {
            failures.add(why);
        }
    }

    private final AtomicBoolean stop = new AtomicBoolean();
    private final AtomicLong calls = new AtomicLong();
    private final ConcurrentLinkedQueue<RuntimeException> failures = new ConcurrentLinkedQueue<>();

    /** Writes a figure that {@code rpcx/reliability} reads and records. */
    private static void figure(String text) throws IOException {
        System.out.println("trust 13\t" + text);
        Files.writeString(
                Path.of("target", "reliability.txt"),
                "13\t" + text + "\n",
                StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
    }

    private void load(Counting counting) {
        while (!stop.get()) {
            try {
                counting.count();
                calls.incrementAndGet();
            } catch (RuntimeException e) {
                failures.add(e);
            }
        }
    }

    private static void awaitCalls(Instance instance) {
        long before = instance.counted.calls.get();
        await().atMost(Duration.ofSeconds(30))
                .pollInterval(Duration.ofMillis(5))
                .until(() -> instance.counted.calls.get() > before + 20);
    }

    private void awaitMoreCalls() {
        long before = calls.get();
        await().atMost(Duration.ofSeconds(30)).until(() -> calls.get() > before + 200);
    }

    @Test
    void callsGoOnWhileTheApiServerIsGoneOrEmptyAndPodsComeAndGo() throws Exception {
        List<Thread> callers = new ArrayList<>();
        try (ClusterApi api = new ClusterApi();
                Client client = Client.standard();
                Instance first = new Instance();
                Instance second = new Instance();
                Instance third = new Instance()) {
            api.put("counted-a", first.server.port(), "true");
            api.put("counted-b", second.server.port(), "true");
            Counting counting = client.create(
                    Counting.class, KubernetesEndpoints.of("counted").in("shop").from(api.uri()));
            for (int i = 0; i < CALLERS; i++) {
                Thread caller = new Thread(() -> load(counting));
                callers.add(caller);
                caller.start();
            }
            awaitCalls(first);
            awaitCalls(second);

            long came = System.nanoTime();
            api.put("counted-c", third.server.port(), "true");
            await().pollInterval(Duration.ofMillis(2)).until(() -> third.counted.calls.get() > 0);
            long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - came);
            assertThat(millis).isLessThan(5000);

            api.kill();
            awaitMoreCalls();
            api.lose();
            api.start();
            await().until(() -> api.watches() == 1);
            awaitMoreCalls();
            // a pod that is no longer ready gets no more calls, once the list is not empty again
            api.put("counted-b", second.server.port(), "true");
            api.put("counted-a", first.server.port(), "false");
            await().pollInterval(Duration.ofMillis(100)).until(() -> {
                long before = first.counted.calls.get() + third.counted.calls.get();
                awaitCalls(second);
                return first.counted.calls.get() + third.counted.calls.get() == before;
            });
            stop.set(true);
            for (Thread caller : callers) {
                caller.join();
            }
            assertThat(failures).isEmpty();
            figure(
                    "Kubernetes EndpointSlices, from a server that speaks the API as documented: a new pod had its first call after "
                            + millis + " ms; API server gone, then back with an empty list: " + calls.get()
                            + " calls, failed: 0");
        } finally {
            stop.set(true);
        }
    }

    @Test
    void aWatchGoesOnWhereItWasAndAListIsReadAgainWhenTheServerHasForgotten() throws Exception {
        try (ClusterApi api = new ClusterApi()) {
            api.put("a", 1001, "true");
            Heard heard = new Heard();
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").from(api.uri()).watch(heard)) {
                await().until(() -> api.watches() == 1);
                assertThat(watch).isNotNull();
                api.bookmark();
                api.endWatches();
                await().until(() -> api.asked.size() == 3 && api.watches() == 1);
                assertThat(new ArrayList<>(api.asked).get(2))
                        .contains("watch=1", "allowWatchBookmarks=true", "resourceVersion=10247")
                        .contains("labelSelector=kubernetes.io/service-name=counted");
                api.put("b", 1002, "true");
                await().until(() -> heard.found.size() == 2);
                assertThat(heard.found.get(1))
                        .containsExactly(new Endpoint("127.0.0.1", 1001), new Endpoint("127.0.0.1", 1002));
                api.remove("a");
                await().until(() -> heard.found.size() == 3);
                assertThat(heard.found.get(2)).containsExactly(new Endpoint("127.0.0.1", 1002));
                api.expire();
                await().until(() -> api.asked.size() == 5);
                assertThat(new ArrayList<>(api.asked).get(3)).doesNotContain("watch");
                assertThat(heard.failures).isEmpty();
            }
            // the watch that was being read has ended
            api.bookmark();
            assertThat(heard.failures).isEmpty();
        }
    }

    @Test
    void changesThatComeTogetherAreToldWhileTheCommonPoolWaitsForSomethingElse() throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        try (ClusterApi api = new ClusterApi()) {
            Heard heard = new Heard();
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").from(api.uri()).watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> api.watches() == 1);
                api.put("a", 1001, "true");
                // the watch is being read
                await().until(() -> heard.found.contains(List.of(new Endpoint("127.0.0.1", 1001))));
                for (int i = 0; i < 64; i++) {
                    CompletableFuture.runAsync(() -> {
                        try {
                            over.await();
                        } catch (InterruptedException e) {
                            Thread.currentThread().interrupt();
                        }
                    });
                }
                api.put("b", 1002, "true");
                api.put("c", 1003, "true");
                await().until(() -> heard.found.get(heard.found.size() - 1).size() == 3);
            }
        } finally {
            over.countDown();
        }
    }

    @Test
    void slicesAreReadAsTheReferenceSays() {
        String endpoints = """
                [{"addresses":["10.1.2.3","10.1.2.9"],"conditions":{"ready":true}},
                 {"addresses":["10.1.2.4"],"conditions":{"ready":false,"serving":true,"terminating":true}},
                 {"addresses":["10.1.2.5"],"conditions":{}},
                 {"addresses":["LONG"]},
                 {"addresses":["10.1.2.6"]}]""".replace("LONG", "x".repeat(256));
        String ports = """
                [{"name":"dns","protocol":"UDP","port":53},{"name":"http","port":80},
                 {"name":"rpcx","protocol":"TCP","port":9000,"appProtocol":"rpcx"}]""";
        JsonMapper json = JsonMapper.shared();
        Slice slice = Slice.of(json.readTree(ClusterApi.slice("s", 1, "IPv4", ports, endpoints)), "rpcx");
        assertThat(slice.ready())
                .containsExactly(
                        new Endpoint("10.1.2.3", 9000), new Endpoint("10.1.2.5", 9000), new Endpoint("10.1.2.6", 9000));
        assertThat(Slice.of(json.readTree(ClusterApi.slice("s", 1, "IPv4", ports, endpoints)), null)
                        .ready()
                        .get(0)
                        .port())
                .isEqualTo(80);
        assertThat(Slice.of(json.readTree(ClusterApi.slice("s", 1, "IPv4", "null", "null")), null)
                        .ready())
                .isEmpty();
        // this slice has the same pods in the other family of addresses
        Slice six = Slice.of(
                json.readTree(ClusterApi.slice("six", 1, "IPv6", ports, "[{\"addresses\":[\"2001:db8::1234:5678\"]}]")),
                "rpcx");
        assertThat(Slice.all(List.of(six, slice))).isEqualTo(slice.ready());
        assertThat(Slice.all(List.of(six))).containsExactly(new Endpoint("2001:db8::1234:5678", 9000));
    }

    @Test
    void aPodAsksWithItsAccountAndTrustsTheClustersAuthority(@TempDir Path folder) throws Exception {
        Path store = folder.resolve("keys.p12");
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool")
                                .toString(),
                        "-genkeypair",
                        "-keyalg",
                        "EC",
                        "-alias",
                        "api",
                        "-dname",
                        "CN=api",
                        "-ext",
                        "SAN=ip:127.0.0.1",
                        "-storetype",
                        "PKCS12",
                        "-storepass",
                        "changeit",
                        "-keystore",
                        store.toString())
                .redirectErrorStream(true)
                .start();
        assertThat(keytool.waitFor()).isZero();
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, "changeit".toCharArray());
        }
        KeyManagerFactory managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        managers.init(keys, "changeit".toCharArray());
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(managers.getKeyManagers(), null, null);
        HttpsServer server = HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 50);
        server.setHttpsConfigurator(new HttpsConfigurator(context));
        Path account = Files.createDirectory(folder.resolve("serviceaccount"));
        Files.writeString(account.resolve("token"), "first-token\n");
        Files.writeString(account.resolve("namespace"), "shop");
        Files.writeString(
                account.resolve("ca.crt"),
                "-----BEGIN CERTIFICATE-----\n"
                        + Base64.getMimeEncoder(64, new byte[] {'\n'})
                                .encodeToString(keys.getCertificate("api").getEncoded())
                        + "\n-----END CERTIFICATE-----\n");
        try (ClusterApi api = new ClusterApi(server)) {
            api.put("a", 1001, "true");
            Heard heard = new Heard();
            ApiServer asked = new ApiServer(
                    URI.create("https://127.0.0.1:" + server.getAddress().getPort()), account);
            try (Endpoints.Watch watch = KubernetesEndpoints.of("counted").watch(heard, asked)) {
                assertThat(watch).isNotNull();
                await().until(() -> api.watches() == 1);
                assertThat(heard.failures).isEmpty();
                assertThat(heard.found.get(0)).containsExactly(new Endpoint("127.0.0.1", 1001));
                Files.writeString(account.resolve("token"), "renewed-token");
                api.endWatches();
                await().until(() -> api.asked.size() == 3);
                assertThat(api.asked).first().asString().endsWith("Bearer first-token");
                assertThat(api.asked).last().asString().endsWith("Bearer renewed-token");
            }
            Heard wary = new Heard();
            ApiServer untrusted = ApiServer.at(asked.base());
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").watch(wary, untrusted)) {
                assertThat(watch).isNotNull();
                await().until(() -> !wary.failures.isEmpty());
                assertThat(wary.found).isEmpty();
            }
        }
    }

    @Test
    void aTokenThatNoHeaderMayHaveIsInNoText(@TempDir Path folder) throws Exception {
        Files.writeString(folder.resolve("token"), "s3cr\net\n");
        ApiServer server = new ApiServer(URI.create("http://127.0.0.1:1"), folder);
        assertThatThrownBy(() -> server.request("/"))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("token")
                .hasMessageNotContaining("s3cr")
                .hasNoCause();
    }

    @Test
    void whatIsMissingIsSaid() {
        assertThatThrownBy(() -> KubernetesEndpoints.of("Greeter")).hasMessageContaining("\"Greeter\"");
        assertThatThrownBy(() -> ApiServer.ofPod(Map.of())).hasMessageContaining("KUBERNETES_SERVICE_HOST");
        assertThat(ApiServer.ofPod(Map.of("KUBERNETES_SERVICE_HOST", "fd00::1", "KUBERNETES_SERVICE_PORT", "6443"))
                        .base())
                .isEqualTo(URI.create("https://[fd00::1]:6443"));
        KubernetesEndpoints one = KubernetesEndpoints.of("greeter").in("shop").port("rpcx");
        assertThat(one)
                .isEqualTo(KubernetesEndpoints.of("greeter").in("shop").port("rpcx"))
                .hasToString("shop/greeter:rpcx");
        assertThat(one).isNotEqualTo(KubernetesEndpoints.of("greeter").in("shop"));
    }
}
