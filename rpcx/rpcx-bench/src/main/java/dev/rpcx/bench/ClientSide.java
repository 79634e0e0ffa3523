package dev.rpcx.bench;

import dev.rpcx.bench.ServerSide.Usage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Runs a peer's client as a process: {@code ClientSide PEER PORT}. It takes commands from its standard input, such as
 * {@code run CASE SLICE_MS WINDOW_MS}. The case is then called in slices. After each slice the client prints
 * {@code slice} and reads a line: for {@code more}, which the parent sends as long as the warm-up lasts, it calls
 * another slice, unless a call has failed; otherwise it goes on to the window. At each edge of the window the client
 * prints {@code edge} and waits for a line; meanwhile the parent reads the server's usage.
 */
final class ClientSide {
    private final Peer.Caller caller;
    private final BufferedReader commands;
    private final PrintStream out;

    private ClientSide(Peer.Caller caller, BufferedReader commands, PrintStream out) {
        this.caller = caller;
        this.commands = commands;
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Peer.Caller caller = Peers.named(args[0]).connect(Integer.parseInt(args[1]))) {
            ClientSide client = new ClientSide(caller, commands, System.out);
            System.out.println("connected " + (caller.hello("HelloWorld").equals("HelloWorld") ? "right" : "wrong"));
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "run" ->
                        client.run(BenchCase.named(words[1]), Long.parseLong(words[2]), Long.parseLong(words[3]));
                    case "count" -> client.count(Integer.parseInt(words[1]));
                    case "grid" ->
                        System.out.println(Grid.run(caller, Integer.parseInt(words[1]), Integer.parseInt(words[2])));
                    default -> throw new IllegalArgumentException(line);
                }
            }
        }
        System.exit(0);
    }

    /** Makes calls one after the other, while a relay between client and server counts bytes. */
    private void count(int calls) throws Exception {
        for (int i = 0; i < calls; i++) {
            checkSame("HelloWorld", caller.hello("HelloWorld"));
        }
        out.println("counted");
    }

    private void run(BenchCase benchCase, long sliceMs, long windowMs) throws Exception {
        State state = new State(benchCase);
        List<Thread> threads = new ArrayList<>();
        if (benchCase.isAsynchronous()) {
            for (int i = 0; i < benchCase.callers; i++) {
                new Chain(state).next();
            }
        } else {
            for (int i = 0; i < benchCase.callers; i++) {
                threads.add(Thread.ofPlatform().name("caller-" + i).start(() -> block(state)));
            }
        }
        do {
            pause(sliceMs, state);
            out.println("slice");
        } while ("more".equals(commands.readLine()) && state.failure.get() == null);
        out.println("edge");
        commands.readLine();
        state.histogram.reset();
        Usage before = Usage.now();
        long begin = System.nanoTime();
        pause(windowMs, state);
        long elapsed = System.nanoTime() - begin;
        Usage after = Usage.now();
        Histogram window = state.histogram.copy();
        out.println("edge");
        commands.readLine();
        state.stop = true;
        for (Thread thread : threads) {
            thread.join();
        }
        if (benchCase.isAsynchronous()) {
            state.ended.await();
        }
        Throwable failure = state.failure.get();
        if (failure != null) {
            out.println("failed " + failure);
            return;
        }
        long calls = window.getTotalCount();
        if (calls == 0) {
            out.println("failed no call ended within the window");
            return;
        }
        out.println("ran "
                + new Figures(
                                calls * 1e9 / elapsed,
                                window.getValueAtPercentile(50) / 1e3,
                                window.getValueAtPercentile(99) / 1e3,
                                (after.cpuNs() - before.cpuNs()) / 1e3 / calls,
                                (double) (after.allocatedBytes() - before.allocatedBytes()) / calls,
                                calls,
                                0,
                                0)
                        .toLine());
    }

    private static void pause(long ms, State state) throws InterruptedException {
        long end = System.nanoTime() + ms * 1_000_000;
        while (System.nanoTime() < end && state.failure.get() == null) {
            Thread.sleep(Math.clamp((end - System.nanoTime()) / 1_000_000, 1, 50));
        }
    }

    private void block(State state) {
        try {
            while (!state.stop) {
                long begin = System.nanoTime();
                if (state.benchCase.body.isRows()) {
                    if (!caller.records(state.rows).equals(state.rows)) {
                        throw new IllegalStateException("rows came back changed");
                    }
                } else {
                    checkSame(state.text, caller.hello(state.text));
                }
                state.histogram.recordValue(System.nanoTime() - begin);
            }
        } catch (Exception e) {
            state.failure.compareAndSet(null, e);
            state.stop = true;
        }
    }

    private static void checkSame(String sent, String received) {
        if (!sent.equals(received)) {
            throw new IllegalStateException("a text of " + sent.length() + " characters came back changed");
        }
    }

    private static final class State {
        final BenchCase benchCase;
        final String text;
        final List<Row> rows;
        final ConcurrentHistogram histogram = new ConcurrentHistogram(60_000_000_000L, 3);
        final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
        final CountDownLatch ended;
        volatile boolean stop;

        State(BenchCase benchCase) {
            this.benchCase = benchCase;
            this.text = switch (benchCase.body) {
                case HELLO, HUNDRED_ROWS, THOUSAND_ROWS -> "HelloWorld";
                case KILOBYTE -> "k".repeat(1000);
                case HUNDRED_KILOBYTES -> "k".repeat(100_000);
            };
            this.rows = switch (benchCase.body) {
                case HUNDRED_ROWS -> Row.sample(100);
                case THOUSAND_ROWS -> Row.sample(1000);
                case HELLO, KILOBYTE, HUNDRED_KILOBYTES -> List.of();
            };
            this.ended = new CountDownLatch(benchCase.callers);
        }
    }

    /**
     * Chain of calls of which one is in flight at a time: the next call begins when the last is answered. If a peer
     * told a reply before {@code hello} returned, {@code next} would recurse, one level deeper with each call.
     */
    private final class Chain implements BiConsumer<@Nullable String, @Nullable Throwable> {
        private final State state;
        private long begin;

        Chain(State state) {
            this.state = state;
        }

        void next() {
            begin = System.nanoTime();
            caller.hello(state.text, this);
        }

        @Override
        public void accept(@Nullable String reply, @Nullable Throwable failed) {
            if (failed != null || !state.text.equals(reply)) {
                state.failure.compareAndSet(
                        null, failed != null ? failed : new IllegalStateException("wrong reply: " + reply));
                state.stop = true;
            }
            state.histogram.recordValue(System.nanoTime() - begin);
            if (state.stop) {
                state.ended.countDown();
            } else {
                next();
            }
        }
    }
}
