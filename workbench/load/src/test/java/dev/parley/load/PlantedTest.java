package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import dev.parley.spi.CallException;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Faults planted in a real service process, each counted as what it is. */
class PlantedTest {
    private static final Duration LIMIT = Duration.ofMillis(PlantedService.LATE_MS * 2 / 3);
    private static final long TIMEOUT_MS = 600;

    /** Tells whatever the service sends, a second reply too: what to make of that is the engine's to say. */
    private static final class PlantedTarget implements Target {
        private final Socket socket;
        private final DataOutputStream out;
        private final Map<Long, Asker> askers = new ConcurrentHashMap<>();

        PlantedTarget(int port) throws IOException {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.setTcpNoDelay(true);
            out = new DataOutputStream(socket.getOutputStream());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            Thread.ofPlatform().daemon().start(() -> read(in));
        }

        private void read(DataInputStream in) {
            try {
                while (true) {
                    long request = in.readLong();
                    boolean isRight = in.readLong() == PlantedService.answer(request);
                    Asker asker = askers.get(request);
                    if (asker != null) {
                        asker.ended(isRight, null);
                    }
                }
            } catch (IOException closed) {
                // the trial is over
            }
        }

        @Override
        public boolean call(int step, long index) {
            CompletableFuture<Boolean> reply = new CompletableFuture<>();
            send(step, index, (isRight, failure) -> {
                if (failure == null) {
                    reply.complete(isRight);
                } else {
                    reply.completeExceptionally(failure);
                }
            });
            try {
                return reply.join();
            } catch (RuntimeException e) {
                throw CallException.of(e);
            }
        }

        @Override
        public void send(int step, long index, Asker asker) {
            askers.put(index, asker);
            if (index % 10 == 1) {
                CompletableFuture.delayedExecutor(TIMEOUT_MS, TimeUnit.MILLISECONDS)
                        .execute(() -> asker.ended(
                                false, new CallException(CallException.Code.DEADLINE_EXCEEDED, "no reply")));
            }
            synchronized (out) {
                try {
                    out.writeLong(index);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }
        }

        @Override
        public void close() {
            try {
                socket.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"open:500:even", "closed:20"})
    void everyPlantedFaultIsCountedAsWhatItIs(String load) throws Exception {
        List<Event> events = Undisturbed.run(() -> run(load));
        Event.Finished finished = (Event.Finished) events.getLast();
        long tenth = finished.due() / 10;
        boolean isOpen = load.startsWith("open");
        if (isOpen) {
            assertThat(finished.due()).isEqualTo(1000);
        }
        // indexes run on through warm-up and window, which need not begin at a multiple of ten; clients held up by the
        // dropped and the late are a few out of step
        long slack = isOpen ? 1 : 20;
        assertThat(finished.wrong()).isBetween(tenth - slack, tenth + slack);
        assertThat(finished.failed()).isBetween(tenth - slack, tenth + slack);
        assertThat(finished.late()).isBetween(tenth - slack, tenth + slack);
        assertThat(finished.notSent()).isZero();
        assertThat(finished.replied()).isBetween(7 * tenth - slack, 7 * tenth + 3 * slack);
        assertThat(finished.firstFailure()).contains("DEADLINE_EXCEEDED");
        assertThat(finished.voidReasons()).anyMatch(reason -> reason.equals(finished.wrong() + " wrong replies"));
        // one outcome each, also of those told twice; the second telling is not passed over
        assertThat(count(events, HistogramRow.Kind.RESPONSE)).isEqualTo(finished.replied());
        assertThat(count(events, HistogramRow.Kind.ERROR))
                .isEqualTo(finished.wrong() + finished.failed() + finished.late());
        if (isOpen) {
            assertThat(finished.voidReasons())
                    .anyMatch(reason -> reason.endsWith("requests ended twice")
                            && Math.abs(Long.parseLong(reason.split(" ")[0]) - tenth) <= slack);
        }
        assertThat(finished.littlesLaw()).isBetween(0.95, 1.05);
    }

    private static List<Event> run(String load) throws Exception {
        List<Event> events = new ArrayList<>();
        Process service = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        PlantedService.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (BufferedReader said = service.inputReader();
                PlantedTarget target = new PlantedTarget(Integer.parseInt(said.readLine()))) {
            new Engine(Clock.SYSTEM, events::add)
                    .run(
                            new Engine.Trial(
                                    1,
                                    Load.parse(load),
                                    new TrialSpec.Window(
                                            Duration.ofMillis(500), Duration.ofMillis(500), Duration.ofSeconds(2)),
                                    LIMIT,
                                    Duration.ofSeconds(2),
                                    10_000,
                                    1),
                            target);
        } finally {
            service.destroy();
        }
        return events;
    }

    private static long count(List<Event> events, HistogramRow.Kind kind) throws Exception {
        for (Event event : events) {
            if (event instanceof Event.Distribution(HistogramRow d) && d.kind() == kind) {
                return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(d.histogram()), 0)
                        .getTotalCount();
            }
        }
        throw new AssertionError("no distribution " + kind);
    }
}
