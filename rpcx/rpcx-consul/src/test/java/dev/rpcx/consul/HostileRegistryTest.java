package dev.rpcx.consul;

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
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
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
                .filter(thread -> thread.getName().startsWith("rpcx-consul")
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
            try (Endpoints.Watch watch = ConsulEndpoints.of(uri, "counted").watch(heard)) {
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
    void aHostTooLongForAnInstanceIsPassedOver() {
        String answer = """
                [{"Service":{"Address":"LONG","Port":9000}},{"Service":{"Address":"10.0.0.1","Port":9000}}]""";
        assertThat(HealthWatch.instances(JsonMapper.shared().readTree(answer.replace("LONG", "x".repeat(256)))))
                .containsExactly(new Endpoint("10.0.0.1", 9000));
    }

    @Test
    void weightsAboveTheLargestKeepTheirRatio() {
        String answer = """
                [{"Service":{"Address":"10.0.0.1","Port":9000,"Weights":{"Passing":60000}}},
                {"Service":{"Address":"10.0.0.2","Port":9000,"Weights":{"Passing":30000}}},
                {"Service":{"Address":"10.0.0.3","Port":9000,"Weights":{"Passing":1}}}]""";
        assertThat(HealthWatch.instances(JsonMapper.shared().readTree(answer)))
                .containsExactly(
                        new Endpoint("10.0.0.1", 9000, 1000),
                        new Endpoint("10.0.0.2", 9000, 500),
                        new Endpoint("10.0.0.3", 9000, 1));
    }

    @Test
    void anEndlessAnswerIsAFailureAndNothingIsLeftBehind() throws Exception {
        hears(List.of("["), List.of("{\"Service\":{\"Address\":\"10.0.0.1\",\"Port\":9000}},"));
    }

    @Test
    void aListenerThatFailsHearsTheNextAnswerAllTheSame() throws Exception {
        AtomicInteger index = new AtomicInteger();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            exchange.getResponseHeaders().set("X-Consul-Index", String.valueOf(index.incrementAndGet()));
            byte[] none = "[]".getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, none.length);
            exchange.getResponseBody().write(none);
            exchange.close();
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
            try (Endpoints.Watch watch = ConsulEndpoints.of(uri, "counted").watch(failing)) {
                assertThat(watch).isNotNull();
                await().until(() -> told.get() > 2);
            }
        } finally {
            server.stop(0);
        }
    }

    static Stream<String> answersThatCannotBeRead() {
        return Stream.of(
                "\u001b]0;forged\u001b[2J\r\n\r\n",
                "HTTP/1.1 200 OK\r\nX-Consul-Index: \u009b2J\r\nContent-Length: 2\r\n\r\n[]",
                "HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\nContent-Length: 5\r\n\r\n[a\u001bc]");
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
            try (Endpoints.Watch watch = ConsulEndpoints.of(uri, "counted").watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !failures.isEmpty());
            }
        }
        StringWriter logged = new StringWriter();
        failures.element().printStackTrace(new PrintWriter(logged));
        assertThat(logged.toString()).matches("[ -~\\n\\t]+").containsPattern("\\\\u00[19]b");
    }

    /** The bytes are within the limit, but a tree of them would fill a small heap. */
    @Test
    void anAnswerOfManySmallPartsIsAFailure() throws Exception {
        byte[] parts = ("[" + "{},".repeat(1_000_000) + "{}]").getBytes(StandardCharsets.UTF_8);
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            exchange.getResponseHeaders().set("X-Consul-Index", "7");
            exchange.sendResponseHeaders(200, parts.length);
            exchange.getResponseBody().write(parts);
            exchange.close();
        });
        server.start();
        try {
            URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
            try (Endpoints.Watch watch = ConsulEndpoints.of(uri, "counted").watch(heard)) {
                assertThat(watch).isNotNull();
                await().until(() -> !failures.isEmpty());
            }
            assertThat(failures.peek()).hasMessageContaining("oken count");
        } finally {
            server.stop(0);
        }
    }
}
