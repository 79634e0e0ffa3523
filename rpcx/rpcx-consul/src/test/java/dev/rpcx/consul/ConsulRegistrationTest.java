package dev.rpcx.consul;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.sun.net.httpserver.HttpServer;
import dev.rpcx.Endpoint;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.text.MessageFormat;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what a registration reports and logs where its agent refuses it, stays silent, or sends odd answers. */
@Timeout(60)
class ConsulRegistrationTest {
    private static final Endpoint INSTANCE = new Endpoint("10.0.0.9", 9000);
    private static final Logger LOGGER = Logger.getLogger(ConsulRegistration.class.getName());

    private final List<String> logged = new CopyOnWriteArrayList<>();
    private final ConcurrentLinkedQueue<String> asked = new ConcurrentLinkedQueue<>();
    /** Holds the time at which each sign of life has come. */
    private final List<Long> signs = new CopyOnWriteArrayList<>();

    private final ExecutorService serving = Executors.newCachedThreadPool();
    private final CountDownLatch end = new CountDownLatch(1);
    private volatile int status = 200;
    private volatile String body = "";
    private volatile String silentFor = "none";
    private volatile String breaksOffFor = "none";
    private HttpServer server;

    private final Handler keeping = new Handler() {
        @Override
        public void publish(LogRecord each) {
            Object[] values = each.getParameters();
            logged.add(values == null ? each.getMessage() : MessageFormat.format(each.getMessage(), values));
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    @BeforeEach
    void begin() throws Exception {
        LOGGER.addHandler(keeping);
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            if (path.contains("check/pass")) {
                signs.add(System.nanoTime());
            }
            asked.add(path);
            if (path.contains(silentFor)) {
                try {
                    end.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            if (path.contains(breaksOffFor)) {
                exchange.sendResponseHeaders(status, 10);
                exchange.close();
                return;
            }
            byte[] whole = body.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status, whole.length == 0 ? -1 : whole.length);
            exchange.getResponseBody().write(whole);
            exchange.close();
        });
        server.setExecutor(serving);
        server.start();
    }

    @AfterEach
    void end() {
        LOGGER.removeHandler(keeping);
        end.countDown();
        server.stop(0);
        serving.shutdownNow();
    }

    private URI uri() {
        return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
    }

    private static Set<Thread> threadsOfHttp() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("HttpClient-"))
                .collect(Collectors.toSet());
    }

    /** Before JDK 19 such a thread keeps the context class loader of whoever has it made, such as a request's. */
    @Test
    void aThreadOfHttpIsMadeByTheThreadThatAsks() throws Exception {
        Set<Thread> before = threadsOfHttp();
        ConsulAgent agent = new ConsulAgent(uri(), null);
        assertThat(before).containsAll(threadsOfHttp());
        assertThat(agent.get("/v1/anything", 30_000).statusCode()).isEqualTo(200);
        assertThat(threadsOfHttp()).anyMatch(thread -> !before.contains(thread));
        agent.end();
    }

    private long asked(String part) {
        return asked.stream().filter(path -> path.contains(part)).count();
    }

    @Test
    void aTokenThatNoHeaderMayHaveIsRefusedWhenItIsGivenAndIsInNoText() {
        String secret = "s3cr\net";
        assertThatThrownBy(() -> ConsulRegistration.of(uri(), secret, "counted", INSTANCE)
                        .close())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("token")
                .hasMessageNotContaining("s3cr")
                .hasNoCause();
        assertThatThrownBy(() -> ConsulEndpoints.of("counted").token("s3cr€t"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("token")
                .hasMessageNotContaining("s3cr");
        // a token that was read from a file may end like this
        assertThat(ConsulEndpoints.of("counted").token("secret\r\n"))
                .isEqualTo(ConsulEndpoints.of("counted").token("secret"));
    }

    @Test
    void aRefusalIsToldAndLoggedOnce() {
        status = 403;
        body = "Permission denied:\n\u001b[2Jforged " + "x".repeat(100_000);
        try (ConsulRegistration registration = ConsulRegistration.of(uri(), null, "counted", INSTANCE)) {
            assertThatThrownBy(() -> registration.registered().get(20, TimeUnit.SECONDS))
                    .hasMessageContaining("403");
            await().until(() -> asked("register") >= 4);
            assertThat(logged).hasSize(1);
            assertThat(logged.get(0)).contains("counted-10.0.0.9-9000", "403", "Permission denied");
        }
        // the agent refuses the close as well, which is logged too
        assertThat(logged)
                .hasSize(2)
                .allSatisfy(
                        line -> assertThat(line).doesNotContain("\n", "\u001b").hasSizeLessThan(1_000));
    }

    /** The JDK's message about an invalid status line contains that line. */
    @Test
    void whatIsNoAnswerOfConsulIsLoggedAsOneLineWithoutEscapes() throws Exception {
        try (ServerSocket odd = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            Thread answering = new Thread(() -> {
                while (!odd.isClosed()) {
                    try (Socket asking = odd.accept()) {
                        // the whole request is read first, since unread bytes would reset the connection
                        BufferedReader request = new BufferedReader(
                                new InputStreamReader(asking.getInputStream(), StandardCharsets.ISO_8859_1));
                        int body = 0;
                        for (String line = request.readLine();
                                line != null && !line.isEmpty();
                                line = request.readLine()) {
                            if (line.toLowerCase(Locale.ROOT).startsWith("content-length:")) {
                                body = Integer.parseInt(line.substring(15).strip());
                            }
                        }
                        while (body > 0 && request.read() >= 0) {
                            body--;
                        }
                        asking.getOutputStream()
                                .write("\u001b]0;forged\u001b[2J\r\n\r\n".getBytes(StandardCharsets.ISO_8859_1));
                    } catch (IOException closed) {
                        // the test is over
                    }
                }
            });
            answering.start();
            try (ConsulRegistration registration = ConsulRegistration.of(
                    URI.create("http://127.0.0.1:" + odd.getLocalPort()), null, "counted", INSTANCE)) {
                await().until(() -> !logged.isEmpty());
                assertThat(registration.registered()).isNotDone();
            }
            assertThat(logged)
                    .hasSize(2)
                    .allSatisfy(line -> assertThat(line).doesNotContain("\n", "\u001b"))
                    .anySatisfy(line -> assertThat(line).contains("forged"));
        }
    }

    @Test
    void whatHangsOnTheRegistrationHoldsNoSignOfLifeUp() throws Exception {
        CountDownLatch hangs = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        silentFor = "slow-start";
        // the dependent is added before the answer comes
        try (ConsulRegistration registration =
                ConsulRegistration.of(URI.create(uri() + "/slow-start"), null, "counted", INSTANCE)) {
            await().until(() -> asked("register") == 1);
            registration.registered().thenRun(() -> {
                hangs.countDown();
                try {
                    over.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            end.countDown();
            assertThat(hangs.await(20, TimeUnit.SECONDS)).isTrue();
            await().atMost(Duration.ofSeconds(10)).until(() -> asked("check/pass") > 0);
        } finally {
            over.countDown();
        }
    }

    /** The wait for the first answer has taken time, and the entry is valid for 10 s. */
    @Test
    void aSignOfLifeThatHadNoAnswerIsGivenAgainAtOnce() throws Exception {
        breaksOffFor = "check/pass";
        try (ConsulRegistration registration = ConsulRegistration.of(uri(), null, "counted", INSTANCE)) {
            registration.registered().get(20, TimeUnit.SECONDS);
            await().pollInterval(Duration.ofMillis(5)).until(() -> asked("check/pass") > 0);
            long began = System.nanoTime();
            await().pollInterval(Duration.ofMillis(5)).until(() -> asked("check/pass") > 1);
            assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(2));
            // after a sign of life that has had its answer there is a pause as before
            breaksOffFor = "none";
            int before = signs.size();
            await().until(() -> signs.size() > before + 1);
            assertThat(Duration.ofNanos(signs.get(before + 1) - signs.get(before)))
                    .isGreaterThan(Duration.ofSeconds(2));
        }
    }

    @Test
    void aSecondCloseAsksNothing() throws Exception {
        ConsulRegistration registration = ConsulRegistration.of(uri(), null, "counted", INSTANCE);
        registration.registered().get(20, TimeUnit.SECONDS);
        registration.close();
        registration.close();
        assertThat(asked("deregister")).isEqualTo(1);
    }

    @Test
    void aCloseThatCannotAskIsLoggedAndDoesNotThrow() {
        // HTTP has no such scheme, so that no request can be built
        ConsulRegistration registration =
                ConsulRegistration.of(URI.create("consul://127.0.0.1:1"), null, "counted", INSTANCE);
        await().until(() -> !logged.isEmpty());
        registration.close();
        assertThat(logged).hasSize(2).last().asString().contains("stays registered");
    }
}
