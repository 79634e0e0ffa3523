package dev.rpcx.kubernetes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.json.JsonMapper;

/** Somebody answers in the registry's place, and never stops. */
@Timeout(120)
class HostileRegistryTest {
    private static final long LIMIT = 8 << 20;

    private final ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();

    private final Endpoints.Listener heard = new Endpoints.Listener() {
        @Override
        public void found(List<Endpoint> all) {}

        @Override
        public void failed(Throwable why) {
            failures.add(why);
        }
    };

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("rpcx-kubernetes")
                        || thread.getName().startsWith("HttpClient-"))
                .count();
    }

    /** @param first what comes before the same again and again */
    private static void endless(HttpExchange exchange, String first, String again, AtomicLong sent) throws IOException {
        byte[] block = again.repeat(1 + 65_536 / again.length()).getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("X-Consul-Index", "7");
        exchange.sendResponseHeaders(200, 0);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(first.getBytes(StandardCharsets.UTF_8));
            // the answer is far above any limit, and then ends: a test must not fill the heap that it tests
            while (sent.addAndGet(block.length) < 8 * LIMIT) {
                out.write(block);
            }
        }
    }

    private void hears(List<String> firsts, List<String> agains) throws Exception {
        AtomicLong sent = new AtomicLong();
        AtomicInteger asked = new AtomicInteger();
        ExecutorService serving = Executors.newCachedThreadPool();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            int answer = Math.min(asked.getAndIncrement(), firsts.size() - 1);
            if (agains.get(answer).isEmpty()) {
                byte[] whole = firsts.get(answer).getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(200, whole.length);
                exchange.getResponseBody().write(whole);
                exchange.close();
            } else {
                endless(exchange, firsts.get(answer), agains.get(answer), sent);
            }
        });
        server.setExecutor(serving);
        server.start();
        try {
            URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").from(uri).watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !failures.isEmpty());
            }
            assertThat(failures.peek()).hasMessageContaining("more than");
            // no thread that asked is left
            if (Runtime.version().feature() >= 21) {
                await().until(() -> threads() == 0);
            }
        } finally {
            server.stop(0);
            serving.shutdownNow();
        }
    }

    @Test
    void anEndlessListIsAFailureAndNothingIsLeftBehind() throws Exception {
        hears(List.of("{\"items\":["), List.of("{\"endpoints\":[]},"));
    }

    @Test
    void anEndlessWatchIsAFailureAndNothingIsLeftBehind() throws Exception {
        hears(
                List.of("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", "{\"object\":["),
                List.of("", "{\"endpoints\":[]},"));
    }

    private static void answer(HttpExchange exchange, int status, String body) throws IOException {
        byte[] whole = body.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, whole.length);
        exchange.getResponseBody().write(whole);
        exchange.close();
    }

    static Stream<String> answersThatCannotBeRead() {
        return Stream.of("\u001b]0;forged\u001b[2J\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[a\u001bc]");
    }

    /** A listener may log a failure with all of its causes. The answer is sent in bytes of ISO 8859-1. */
    @ParameterizedTest
    @MethodSource("answersThatCannotBeRead")
    void whatIsToldOfAnAnswerIsNothingThatATerminalObeys(String answer) throws Exception {
        try (ServerSocket odd = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            Thread answering = new Thread(() -> {
                while (!odd.isClosed()) {
                    try (Socket asking = odd.accept()) {
                        // the whole request is read first, since unread bytes would reset the connection
                        BufferedReader request = new BufferedReader(
                                new InputStreamReader(asking.getInputStream(), StandardCharsets.ISO_8859_1));
                        String line = request.readLine();
                        while (line != null && !line.isEmpty()) {
                            line = request.readLine();
                        }
                        asking.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
                    } catch (IOException closed) {
                        // the test is over
                    }
                }
            });
            answering.start();
            URI uri = URI.create("http://127.0.0.1:" + odd.getLocalPort());
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").from(uri).watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !failures.isEmpty());
            }
        }
        expectNothingObeyed("\\\\u001b");
    }

    /** The event of the watch cannot be read. */
    @Test
    void whatIsToldOfAnEventIsNothingThatATerminalObeys() throws Exception {
        watches(number -> "{\"type\": a\u001bc}\n", "the watch broke off");
        expectNothingObeyed("\\\\u001b");
    }

    private void expectNothingObeyed(String escape) {
        StringWriter logged = new StringWriter();
        failures.element().printStackTrace(new PrintWriter(logged));
        assertThat(logged.toString()).matches("[ -~\\n\\t]+").containsPattern(escape);
    }

    /** Answers the nth watch with the events of that number, with no list between the watches. */
    private void watches(IntFunction<String> events, String expected) throws Exception {
        AtomicInteger asked = new AtomicInteger();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            if (exchange.getRequestURI().getQuery().contains("watch=1")) {
                answer(exchange, 200, events.apply(asked.getAndIncrement()));
            } else {
                answer(exchange, 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
            }
        });
        server.start();
        try {
            URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").from(uri).watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !failures.isEmpty());
            }
            assertThat(failures.peek()).hasMessageContaining(expected);
        } finally {
            server.stop(0);
        }
    }

    private static String added(String name) {
        return "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"" + name + "\",\"resourceVersion\":\"2\"}}}\n";
    }

    @Test
    void slicesWithoutEndAreAFailure() throws Exception {
        watches(
                time -> IntStream.range(0, 400)
                        .mapToObj(i -> added("s" + (time * 400 + i)))
                        .collect(Collectors.joining()),
                "more than 1024 slices");
    }

    /** A name may have megabytes, so that the number of slices that is allowed would make gigabytes. */
    @Test
    void aNameWithoutEndIsAFailure() throws Exception {
        watches(time -> added("n".repeat(254)), "a name of 254 characters (expected: at most 253)");
    }

    @Test
    void aSliceKeepsNoTextOfItsType() {
        Slice slice = Slice.of(JsonMapper.shared().readTree("{\"addressType\":\"" + "x".repeat(1_000) + "\"}"), null);
        assertThat(slice.addressType()).isEmpty();
    }

    @Test
    void aListenerThatFailsHearsTheNextListAllTheSame() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            if (exchange.getRequestURI().getQuery().contains("watch=1")) {
                answer(exchange, 410, "");
            } else {
                answer(exchange, 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
            }
        });
        server.start();
        AtomicInteger told = new AtomicInteger();
        Endpoints.Listener failing = new Endpoints.Listener() {
            @Override
            public void found(List<Endpoint> all) {
                if (told.incrementAndGet() == 1) {
                    throw new StackOverflowError("injected");
                }
            }

            @Override
            public void failed(Throwable why) {
                throw new StackOverflowError("injected");
            }
        };
        try {
            URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").from(uri).watch(failing)) {
                assertThat(watch).isNotNull();
                await().until(() -> told.get() > 2);
            }
        } finally {
            server.stop(0);
        }
    }

    /**
     * Answers each watch with this status and body, and the list with an empty one. Returns the number of requests in
     * three seconds. If that is more than {@code most}, the requests are counted again, at most twice: a watch lasts if
     * this process stands still for a second during it, and then the pauses start from the shortest one again.
     */
    private int askedInThreeSeconds(int status, String body, int most) throws Exception {
        AtomicInteger asked = new AtomicInteger();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            asked.incrementAndGet();
            if (exchange.getRequestURI().getQuery().contains("watch=1")) {
                answer(exchange, status, body);
            } else {
                answer(exchange, 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
            }
        });
        server.start();
        try {
            URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").from(uri).watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> failures.size() >= 2);
                int count = askedInThreeSeconds(asked);
                for (int again = 0; again < 2 && count > most; again++) {
                    count = askedInThreeSeconds(asked);
                }
                return count;
            }
        } finally {
            server.stop(0);
        }
    }

    private static int askedInThreeSeconds(AtomicInteger asked) {
        int before = asked.get();
        long began = System.nanoTime();
        await().until(() -> System.nanoTime() - began > 3_000_000_000L);
        return asked.get() - before;
    }

    @Test
    void whoForgetsAtOnceWhereTheListStandsIsNotStormedAndTheListenerHearsOfIt() throws Exception {
        // a list and its watch are 2 requests, with at most one list in each half of two seconds
        assertThat(askedInThreeSeconds(410, "", 12)).isBetween(1, 12);
        assertThat(failures.peek()).hasMessageContaining("in a row ended within 1000 ms");
    }

    @Test
    void whoEndsEachWatchAtOnceIsNotStormedAndTheListenerHearsOfIt() throws Exception {
        assertThat(askedInThreeSeconds(200, "", 8)).isBetween(1, 8);
        assertThat(failures.peek()).hasMessageContaining("in a row ended within 1000 ms");
    }

    /**
     * Answers with an empty list, and then with a watch of these events. Returns the number of lists that the listener
     * has had when the last slice is there.
     */
    private int listsHeard(String events) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        CountDownLatch end = new CountDownLatch(1);
        ExecutorService serving = Executors.newCachedThreadPool();
        server.createContext("/", exchange -> {
            if (!exchange.getRequestURI().getQuery().contains("watch=1")) {
                answer(exchange, 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
                return;
            }
            exchange.sendResponseHeaders(200, 0);
            exchange.getResponseBody().write((events + event("last", 7)).getBytes(StandardCharsets.UTF_8));
            exchange.getResponseBody().flush();
            try {
                end.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            exchange.close();
        });
        server.setExecutor(serving);
        server.start();
        AtomicInteger lists = new AtomicInteger();
        AtomicReference<List<Endpoint>> last = new AtomicReference<>(List.of());
        Endpoints.Listener counting = new Endpoints.Listener() {
            @Override
            public void found(List<Endpoint> all) {
                lists.incrementAndGet();
                last.set(all);
            }

            @Override
            public void failed(Throwable why) {
                failures.add(why);
            }
        };
        try {
            URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
            try (Endpoints.Watch watch =
                    KubernetesEndpoints.of("counted").in("shop").from(uri).watch(counting)) {
                assertThat(watch).isNotNull();
                await().until(() -> last.get().contains(new Endpoint("10.0.0.1", 7)));
                return lists.get();
            }
        } finally {
            end.countDown();
            server.stop(0);
            serving.shutdownNow();
        }
    }

    private static String event(String name, int port) {
        return "{\"type\":\"MODIFIED\",\"object\":"
                + ClusterApi.slice(name, 2, "IPv4", "[{\"port\":" + port + "}]", "[{\"addresses\":[\"10.0.0.1\"]}]")
                + "}\n";
    }

    @Test
    void eventsThatChangeNothingAreNotTold() throws Exception {
        // the listener gets the list, the slice that comes first, and the last one
        assertThat(listsHeard(event("s", 9000).repeat(2_000))).isBetween(2, 3);
        assertThat(failures).isEmpty();
    }

    @Test
    void changesWithoutEndAreTakenTogether() throws Exception {
        long began = System.nanoTime();
        int lists = listsHeard((event("s", 9000) + event("s", 9001)).repeat(2_000));
        // the listener gets at most one list each 100 ms
        assertThat(lists).isBetween(2, (int) (3 + (System.nanoTime() - began) / 100_000_000));
        assertThat(failures).isEmpty();
    }

    @Test
    void whatTheServerSaysOfAnErrorIsOneShortLine() throws Exception {
        String text = "first\\nsecond\\u001b[2J" + "x".repeat(100_000);
        askedInThreeSeconds(200, "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"" + text + "\"}}", 8);
        assertThat(failures)
                .allSatisfy(why -> assertThat(why.getMessage())
                        .doesNotContain("\n", "\u001b")
                        .hasSizeLessThan(1_000));
        assertThat(failures.peek()).hasMessageContaining("first");
    }

    @Test
    void anAddressThatIsNoneHidesNoOther() throws Exception {
        String slice = ClusterApi.slice(
                "s", 1, "IPv4", "[{\"port\":7000}]", "[{\"addresses\":[\"a b\"]},{\"addresses\":[\"10.0.0.1\"]}]");
        assertThat(Slice.of(JsonMapper.shared().readTree(slice), null).ready())
                .containsExactly(new Endpoint("10.0.0.1", 7000));
    }
}
