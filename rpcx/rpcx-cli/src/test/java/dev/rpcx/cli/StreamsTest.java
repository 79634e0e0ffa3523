package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Method;
import dev.rpcx.Publishers;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.schema.Field;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests streams of {@code rpcx call}: items are lines of JSON, from the server and to it. */
@Timeout(60)
class StreamsTest {
    record Reading(@Field(1) String station, @Field(2) double celsius) {}

    @RPCXServer("station")
    static final class Station {
        private final BlockingQueue<Reading> measured = new LinkedBlockingQueue<>();
        private final AtomicInteger made = new AtomicInteger();
        private final CountDownLatch ended = new CountDownLatch(1);

        @Method
        Flow.Publisher<Reading> readings(int count) {
            return Publishers.of(IntStream.range(0, count).mapToObj(i -> new Reading("s" + i, i)));
        }

        /** Has an item for each reading that a test puts into the queue, and an end at one without a name. */
        @Method
        Flow.Publisher<Reading> watch() {
            return Publishers.of(measured, reading -> reading.station.isEmpty());
        }

        @Method
        Flow.Publisher<Integer> endless() {
            return Publishers.of(IntStream.iterate(0, i -> i + 1)
                    .peek(i -> made.incrementAndGet())
                    .boxed()
                    .onClose(ended::countDown));
        }

        @Method
        Flow.Publisher<Integer> failing() {
            return Publishers.of(IntStream.range(0, 3).mapToObj(i -> {
                if (i == 2) {
                    throw new RPCXException(RPCXException.Code.OVERLOADED, "no more of them");
                }
                return i;
            }));
        }

        @Method
        CompletableFuture<Reading> warmest(Flow.Publisher<Reading> readings) {
            CompletableFuture<Reading> warmest = new CompletableFuture<>();
            readings.subscribe(new Collecting(warmest));
            return warmest;
        }

        @Method
        Flow.Publisher<Reading> same(Flow.Publisher<Reading> readings) {
            return readings;
        }
    }

    /** Completes a future with the warmest of some readings, or with their failure. */
    private record Collecting(List<Reading> readings, CompletableFuture<Reading> warmest)
            implements Flow.Subscriber<Reading> {
        Collecting(CompletableFuture<Reading> warmest) {
            this(new ArrayList<>(), warmest);
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            subscription.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(Reading reading) {
            readings.add(reading);
        }

        @Override
        public void onError(Throwable thrown) {
            warmest.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            warmest.complete(readings.stream()
                    .reduce((one, other) -> other.celsius > one.celsius ? other : one)
                    .orElse(new Reading("none", 0)));
        }
    }

    private final Station station = new Station();
    private final Server server = Server.builder(RegistryServer.registry(station))
            .host("127.0.0.1")
            .reflection()
            .build()
            .start();
    private final String address = "127.0.0.1:" + server.port();
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    @AfterEach
    void stop() {
        server.stop();
    }

    private int run(String input, String... args) {
        out.reset();
        err.reset();
        return run(
                new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)),
                new PrintStream(out, true, StandardCharsets.UTF_8),
                args);
    }

    private int run(InputStream in, PrintStream to, String... args) {
        return new Rpcx(
                        in,
                        to,
                        new PrintStream(err, true, StandardCharsets.UTF_8),
                        getClass().getClassLoader())
                .run(args);
    }

    /** Calls a method on a thread of its own, and returns the exit code to come. */
    private CompletableFuture<Integer> running(InputStream in, PrintStream to, String method) {
        CompletableFuture<Integer> exitCode = new CompletableFuture<>();
        Thread thread = new Thread(() -> exitCode.complete(run(in, to, "call", address, method)), "rpcx call");
        thread.setDaemon(true);
        thread.start();
        return exitCode;
    }

    private List<String> said() {
        return out.toString(StandardCharsets.UTF_8).lines().toList();
    }

    private String complained() {
        return err.toString(StandardCharsets.UTF_8);
    }

    @Test
    void aStreamOfTheServerIsALineForEachItem() {
        assertThat(run("", "call", address, "station/readings", "{\"count\":3}"))
                .as(complained())
                .isZero();
        assertThat(said())
                .containsExactly(
                        "{\"station\":\"s0\",\"celsius\":0.0}",
                        "{\"station\":\"s1\",\"celsius\":1.0}",
                        "{\"station\":\"s2\",\"celsius\":2.0}");
        assertThat(run("", "call", address, "station/readings")).as("none").isZero();
        assertThat(said()).isEmpty();
        assertThat(run("", "call", address, "station/readings", "{\"count\":1000}"))
                .as("more than are requested at once")
                .isZero();
        assertThat(said()).hasSize(1_000).last().isEqualTo("{\"station\":\"s999\",\"celsius\":999.0}");
    }

    @Test
    void anItemIsPrintedWhenItComes() throws Exception {
        PipedInputStream printed = new PipedInputStream();
        PrintStream to = new PrintStream(new PipedOutputStream(printed), false, StandardCharsets.UTF_8);
        CompletableFuture<Integer> exitCode = running(InputStream.nullInputStream(), to, "station/watch");
        BufferedReader lines = new BufferedReader(new InputStreamReader(printed, StandardCharsets.UTF_8));
        for (String name : List.of("first", "second")) {
            station.measured.add(new Reading(name, 1));
            assertThat(lines.readLine()).isEqualTo("{\"station\":\"" + name + "\",\"celsius\":1.0}");
            assertThat(exitCode).isNotDone();
        }
        station.measured.add(new Reading("", 0));
        assertThat(exitCode.get(30, TimeUnit.SECONDS)).isZero();
    }

    @Test
    void aReaderThatGoesAwayEndsTheCall() throws Exception {
        OutputStream broken = new OutputStream() {
            private int lines;

            @Override
            public void write(int b) throws IOException {
                if (b == '\n' && ++lines > 10) {
                    throw new IOException("nobody reads");
                }
            }
        };
        PrintStream to = new PrintStream(broken, false, StandardCharsets.UTF_8);
        assertThat(run(InputStream.nullInputStream(), to, "call", address, "station/endless"))
                .isZero();
        assertThat(to.checkError()).as("what main() asks before it ends").isTrue();
        assertThat(station.ended.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void theErrorOfAStreamComesBehindItsItems() {
        assertThat(run("", "call", address, "station/failing")).isEqualTo(3);
        assertThat(said()).containsExactly("{\"value\":0}", "{\"value\":1}");
        assertThat(complained()).isEqualToIgnoringNewLines("OVERLOADED, EXECUTED: no more of them");
    }

    @Test
    void aStreamToTheServerIsReadFromLines() {
        String lines = "{\"station\":\"a\",\"celsius\":1.5}\n{\"station\":\"b\",\"celsius\":20}\n\n{\"celsius\":-3}\n";
        assertThat(run(lines, "call", address, "station/warmest"))
                .as(complained())
                .isZero();
        assertThat(String.join("", said())).isEqualToIgnoringWhitespace("{\"station\":\"b\",\"celsius\":20.0}");
        assertThat(run(lines, "call", address, "station/warmest", "-")).isZero();
        assertThat(run("", "call", address, "station/warmest")).isZero();
        assertThat(String.join("", said())).contains("none");
        assertThat(run(lines, "call", address, "station/same")).isZero();
        assertThat(said())
                .containsExactly(
                        "{\"station\":\"a\",\"celsius\":1.5}",
                        "{\"station\":\"b\",\"celsius\":20.0}",
                        "{\"station\":\"\",\"celsius\":-3.0}");
    }

    @Test
    void aLineIsSentWhenItIsThere() throws Exception {
        PipedOutputStream typed = new PipedOutputStream();
        PipedInputStream in = new PipedInputStream(typed);
        PipedInputStream printed = new PipedInputStream();
        PrintStream to = new PrintStream(new PipedOutputStream(printed), false, StandardCharsets.UTF_8);
        CompletableFuture<Integer> exitCode = running(in, to, "station/same");
        BufferedReader lines = new BufferedReader(new InputStreamReader(printed, StandardCharsets.UTF_8));
        for (String line : List.of("{}", "{\"celsius\":2}")) {
            typed.write((line + "\n").getBytes(StandardCharsets.UTF_8));
            typed.flush();
            assertThat(lines.readLine())
                    .isEqualTo(
                            line.equals("{}")
                                    ? "{\"station\":\"\",\"celsius\":0.0}"
                                    : "{\"station\":\"\",\"celsius\":2.0}");
        }
        typed.close();
        assertThat(exitCode.get(30, TimeUnit.SECONDS)).isZero();
    }

    @Test
    void aLineThatDoesNotFitEndsTheCallAndSaysWhere() {
        assertThat(run("{\"celsius\":1}\n{\"celsius\":\"x\"}\n", "call", address, "station/warmest"))
                .isIn(1, 3);
        assertThat(complained())
                .contains("line 2: celsius: \"x\" (expected: a number")
                .hasLineCount(1);
        assertThat(run("{\"celsius\":1}\n\n{\"celsius\" 1}\n", "call", address, "station/warmest"))
                .isIn(1, 3);
        assertThat(complained()).contains("line 3, column ", "not valid JSON").hasLineCount(1);
        assertThat(run("[1]\n", "call", address, "station/same")).isIn(1, 3);
        assertThat(complained()).contains("line 1: the request: an array").hasLineCount(1);
    }

    @Test
    void aStreamIsNoArgument() {
        assertThat(run("", "call", address, "station/warmest", "{}")).isEqualTo(1);
        assertThat(complained())
                .isEqualToIgnoringNewLines(
                        "{}: stands there for a stream (expected: JSON objects from the standard input, a line each)");
    }

    @Test
    void aStreamHasTheTimeThatAnOptionGivesIt() {
        assertThat(run("", "call", address, "station/watch", "--timeout", "2")).isEqualTo(3);
        assertThat(complained()).startsWith("DEADLINE_EXCEEDED").hasLineCount(1);
    }
}
