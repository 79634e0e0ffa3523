package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.internal.call.StreamsTest;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that {@code rpcx/spec} and the code agree with each other. */
@Timeout(120)
class SpecTest {
    private static final Path SPEC = Path.of("..", "spec");

    /** Matches the line with which a check of the Go program begins, and finds its name, its rule and its function. */
    private static final Pattern CHECK = Pattern.compile(
            "^\\t\\{\"((?:[^\"\\\\]|\\\\.)*)\", \"((?:[^\"\\\\]|\\\\.)*)\", func\\(", Pattern.MULTILINE);

    @RPCXServer("greeter")
    static final class Greetings {
        @Method
        String hello(String text) {
            return text;
        }
    }

    @RPCXServer("counter")
    static final class Counter {
        private final CountDownLatch waiting = new CountDownLatch(1);

        @Method
        Flow.Publisher<String> count(int items) {
            return new StreamsTest.Made<>(items, i -> "item " + i);
        }

        @Method
        String fail(String text) {
            throw new IllegalStateException(text);
        }

        @Method
        String header(String name) {
            return String.valueOf(CallContext.current().orElseThrow().metadata().get(name));
        }

        @Method
        CompletableFuture<Integer> total(Flow.Publisher<Integer> numbers) {
            StreamsTest.Collected<Integer> collected = new StreamsTest.Collected<>(3);
            numbers.subscribe(collected);
            return collected.end.thenApply(
                    all -> all.stream().mapToInt(Integer::intValue).sum());
        }

        @Method("wait")
        void waits() throws InterruptedException {
            waiting.countDown();
            new CountDownLatch(1).await();
        }
    }

    @RPCXError
    static final class NotEnough extends Exception {
        private final long missing;

        NotEnough(long missing) {
            super(missing + " cents are missing");
            this.missing = missing;
        }

        public long missing() {
            return missing;
        }
    }

    record BadField(String name) {}

    @RPCXServer("spec")
    static final class Spec {
        @Method
        String tell(String text) {
            CallContext.current().orElseThrow().reply("told", text.substring(0, Math.min(100, text.length())));
            if (text.isEmpty()) {
                throw new RPCXException(RPCXException.Code.INVALID, "nothing to tell");
            }
            return text;
        }

        @Method
        long withdraw(long cents) throws NotEnough {
            if (cents == 0) {
                throw new RPCXException(RPCXException.Code.INVALID, "nothing to withdraw")
                        .withDetail(new BadField("cents"));
            }
            throw new NotEnough(cents);
        }

        @Method
        String echo(String text) {
            return text;
        }

        @Method
        int add(int a, int b) {
            return a + b;
        }

        @Method
        String metadata(String name) {
            return String.valueOf(CallContext.current().orElseThrow().metadata().get(name));
        }

        @Method
        long remaining() {
            return TimeUnit.NANOSECONDS.toMicros(
                    CallContext.current().orElseThrow().remainingNanos());
        }

        @Method
        String fail(String text) {
            throw new IllegalStateException(text);
        }

        @Method
        Flow.Publisher<String> count(int items) {
            return new StreamsTest.Made<>(items, i -> "item " + i);
        }

        @Method
        CompletableFuture<Integer> total(Flow.Publisher<Integer> numbers) {
            StreamsTest.Collected<Integer> collected = new StreamsTest.Collected<>(3);
            numbers.subscribe(collected);
            return collected.end.thenApply(
                    all -> all.stream().mapToInt(Integer::intValue).sum());
        }

        @Method
        void block() throws InterruptedException {
            new CountDownLatch(1).await();
        }
    }

    /**
     * In the lines of the page, {@code > hex} is sent, {@code < hex} has to come back, and {@code < end of the stream}
     * is the connection's end. What stands behind two spaces is for people. The heading of a vector says which service
     * its server publishes.
     */
    @Test
    void theVectorsOfThePageAreWhatAServerSays() throws Exception {
        List<String> lines = Files.readAllLines(SPEC.resolve("wire.md"));
        Server greeter = vectorServer(new Greetings());
        Counter counted = new Counter();
        Server counter = vectorServer(counted);
        int compared = 0;
        RawPeer peer = null;
        try {
            for (String line : lines) {
                if (line.startsWith("### Vector")) {
                    if (peer != null) {
                        peer.close();
                    }
                    peer = new RawPeer((line.contains("`counter`") ? counter : greeter).port());
                } else if (peer != null && line.startsWith("    > ")) {
                    if (line.endsWith("  CANCEL")) {
                        // the answer says that the handler of the call had begun, so the test waits for that
                        assertThat(counted.waiting.await(60, TimeUnit.SECONDS)).isTrue();
                    }
                    peer.send(Unpooled.wrappedBuffer(ByteBufUtil.decodeHexDump(hex(line))));
                } else if (peer != null && line.startsWith("    < end of the stream")) {
                    assertThat(peer.readToEnd()).as(line).isEmpty();
                    compared++;
                } else if (peer != null && line.startsWith("    < ")) {
                    assertThat(ByteBufUtil.hexDump(peer.read(hex(line).length() / 2)))
                            .as(line)
                            .isEqualTo(hex(line));
                    compared++;
                }
            }
        } finally {
            if (peer != null) {
                peer.close();
            }
            greeter.stop(Duration.ofMillis(200));
            counter.stop(Duration.ofMillis(200));
        }
        assertThat(compared).isGreaterThan(30);
    }

    private static String hex(String line) {
        return line.substring(6).split(" {2}")[0].replace(" ", "");
    }

    private static Server vectorServer(Object service) {
        return Server.builder(RegistryServer.registry(service))
                .classic(true)
                .build()
                .start();
    }

    /**
     * A rule is a sentence of the page, or several in the page's order. {@code ...} stands for what is left out between
     * two of them, and {@code (schema.md)} at the end says that the rule is one of that page.
     */
    @Test
    void theRulesOfTheGoChecksStandOnThePage() throws IOException {
        String wire = plain(Files.readString(SPEC.resolve("wire.md")));
        String schema = plain(Files.readString(SPEC.resolve("schema.md")));
        List<String> missing = new ArrayList<>();
        int rules = 0;
        int checks = 0;
        for (Path file : goChecks()) {
            String code = Files.readString(file);
            // gofmt indents the elements of a list by one tab, and nothing else in these files begins in this way
            checks += (int) code.lines().filter(line -> line.startsWith("\t{")).count();
            Matcher check = CHECK.matcher(code);
            while (check.find()) {
                rules++;
                String rule = check.group(2).translateEscapes();
                String page = rule.endsWith(" (schema.md)") ? schema : wire;
                int end = 0;
                for (String sentence : rule.replace(" (schema.md)", "").split(" \\.\\.\\. |(?<=\\.) ")) {
                    int begin = page.indexOf(plain(sentence), end);
                    if (begin < 0 || sentence.isBlank()) {
                        missing.add(check.group(1) + ": " + sentence);
                    } else {
                        end = begin + plain(sentence).length();
                    }
                }
            }
        }
        assertThat(missing)
                .as("what the page does not say, or not in this order")
                .isEmpty();
        assertThat(rules).as("rules that were read").isPositive().isEqualTo(checks);
    }

    private static List<Path> goChecks() throws IOException {
        try (Stream<Path> files = Files.list(SPEC.resolve("go").resolve("check"))) {
            return files.filter(file -> file.toString().endsWith(".go")).toList();
        }
    }

    /**
     * Returns a text without the marks of markdown and with single spaces. A link keeps its text, and a table loses its
     * bars.
     */
    private static String plain(String markdown) {
        return markdown.replaceAll("\\[([^\\]]*)]\\([^)]*\\)", "$1")
                .replaceAll("(?m)^ *(?:#+|-) ", "")
                .replaceAll("[*`|]", "")
                .replaceAll("\\s+", " ")
                .strip();
    }

    @Test
    void aClientWrittenFromThePageAlonePassesItsChecks() throws Exception {
        assumeTrue(hasPython(), "no python3 on the PATH: the client written from the page was left out");
        Server server = Server.builder(RegistryServer.registry(new Spec()))
                .classic(true)
                .build()
                .start();
        try {
            Process python = new ProcessBuilder(
                            "python3",
                            SPEC.resolve("rpcx_client.py").toString(),
                            "127.0.0.1",
                            String.valueOf(server.port()))
                    .redirectErrorStream(true)
                    .start();
            String said = new String(python.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(python.waitFor()).as(said).isZero();
            assertThat(said).startsWith("ok, ");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static boolean hasPython() throws InterruptedException {
        try {
            return new ProcessBuilder("python3", "--version")
                            .redirectErrorStream(true)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException notThere) {
            return false;
        }
    }
}
