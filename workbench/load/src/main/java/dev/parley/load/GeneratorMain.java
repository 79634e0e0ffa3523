package dev.parley.load;

import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import dev.parley.protocol.Protocol;
import dev.parley.spi.CallException;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;

/**
 * The process: reads {@link Command}s from standard input and writes {@link Event}s to standard output, a line each,
 * after the greetings. Ends when its input ends. Whatever a technology prints goes to standard error, so that it cannot
 * break the lines. Exit codes: 0 told to end, 1 another version of the protocol.
 */
public final class GeneratorMain {
    private static final Duration TIMEOUT_OUTSIDE_TRIALS = Duration.ofSeconds(5);

    private final PrintStream out;
    private final Map<String, Neighbour> connected = new HashMap<>();
    /** Targets of the calls whose bytes are counted, kept so that users who have logged in do not do it again. */
    private final Map<Counted, ServiceTarget> counted = new HashMap<>();

    private @Nullable Session session;

    private record Session(Transport transport, Topology topology, Work work, long seed) {}

    private record Counted(String location, String message) {}

    private GeneratorMain(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws IOException {
        PrintStream events = System.out;
        System.setOut(System.err);
        GeneratorMain generator = new GeneratorMain(events);
        events.println(Protocol.greeting());
        events.flush();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String greeting = commands.readLine();
        try {
            if (greeting != null) {
                Protocol.checkGreeting("the lab", greeting);
            }
        } catch (BadInput e) {
            System.err.println("generator: " + e.getMessage());
            System.exit(1);
        }
        // commands are carried out on a thread of their own: the input may end in the middle of a trial, and then
        // everything ends at once
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread obeying = Thread.ofPlatform().name("generator").daemon().start(() -> generator.obey(lines));
        for (String line = commands.readLine(); line != null && obeying.isAlive(); line = commands.readLine()) {
            lines.add(line);
        }
        System.exit(0);
    }

    private void obey(BlockingQueue<String> lines) {
        try {
            while (true) {
                String line = lines.take();
                try {
                    carryOut(Protocol.read(line, Command.class));
                } catch (CallException | IllegalArgumentException e) {
                    tell(new Event.Failed(String.valueOf(e.getMessage())));
                } catch (RuntimeException e) {
                    e.printStackTrace();
                    tell(new Event.Failed(e.toString()));
                }
            }
        } catch (InterruptedException told) {
            System.exit(0);
        }
    }

    private void carryOut(Command command) throws InterruptedException {
        switch (command) {
            case Command.Use use -> {
                Transport transport = TransportProvider.named(use.transport());
                session = new Session(
                        transport, Topology.parse(use.topology()), transport.work(Work.named(use.work())), use.seed());
                tell(new Event.Done());
            }
            case Command.AwaitReady await -> awaitReady(await);
            case Command.Count count -> count(count);
            case Command.Release release -> {
                counted.keySet().removeIf(of -> of.location().equals(release.location()));
                Neighbour gone = connected.remove(release.location());
                if (gone != null) {
                    gone.close();
                }
                tell(new Event.Done());
            }
            case Command.RunTrial run -> run(run);
            case Command.Ceiling ceiling -> ceiling(ceiling);
        }
    }

    private Session session() {
        Session current = session;
        if (current == null) {
            throw new IllegalArgumentException("no technology yet (expected: the command use first)");
        }
        return current;
    }

    private Neighbour connected(String location) {
        return connected.computeIfAbsent(location, this::connect);
    }

    private Neighbour connect(String location) {
        Session current = session();
        return current.transport().connect("client", current.work().contract(), Location.parse(location));
    }

    private Work.Exchange<?, ?> exchange(MessageSpec message, String asked) {
        Session current = session();
        Topology topology = current.topology();
        return current.work().exchange(message, topology, topology.node(asked), current.seed());
    }

    /** The entry service, asked all that a message consists of. */
    private ServiceTarget target(String location, String message, Duration timeout) {
        String entry = session().topology().entry().name();
        List<Work.Exchange<?, ?>> exchanges = new ArrayList<>();
        for (MessageSpec single : MessageSpec.parse(message).messages()) {
            exchanges.add(exchange(single, entry));
        }
        return new ServiceTarget(connected(location), () -> connect(location), exchanges, timeout);
    }

    private void awaitReady(Command.AwaitReady await) throws InterruptedException {
        // one service's own right answer to one message is enough
        MessageSpec first = MessageSpec.parse(await.message()).messages().getFirst();
        Target target = new ServiceTarget(
                connected(await.location()),
                () -> connect(await.location()),
                List.of(exchange(first, await.asked())),
                TIMEOUT_OUTSIDE_TRIALS);
        tell(new Readiness(Clock.SYSTEM, target)
                .await(await.asked(), await.times(), Duration.ofMillis(await.timeoutMs())));
    }

    private void count(Command.Count count) {
        ServiceTarget target = counted.computeIfAbsent(
                new Counted(count.location(), count.message()),
                of -> target(of.location(), of.message(), TIMEOUT_OUTSIDE_TRIALS));
        int requests = target.requests();
        long[] payloads = target.payloads(0);
        // the first has been sent, to see the payloads
        int calls = 1;
        long untilNs = System.nanoTime() + count.withinMs() * 1_000_000;
        while (calls < count.leastCalls() || (calls < count.mostCalls() && System.nanoTime() < untilNs)) {
            for (int place = 0; place < requests; place++) {
                if (!target.call(place, calls)) {
                    throw new CallException(CallException.Code.PROTOCOL, "a wrong reply while bytes were counted");
                }
            }
            calls++;
        }
        tell(new Event.Counted(calls * requests, payloads[0] / requests, payloads[1] / requests));
    }

    private void run(Command.RunTrial run) throws InterruptedException {
        Duration callTimeout = Duration.ofMillis(run.callTimeoutMs());
        Target target = target(run.location(), run.message(), callTimeout);
        TrialSpec.Window window = new TrialSpec.Window(
                Duration.ofMillis(run.warmUpLeastMs()),
                Duration.ofMillis(run.warmUpMostMs()),
                Duration.ofMillis(run.windowMs()));
        new Engine(Clock.SYSTEM, this::tell)
                .run(
                        new Engine.Trial(
                                run.trialId(),
                                Load.parse(run.load()),
                                window,
                                Duration.ofMillis(run.limitMs()),
                                callTimeout,
                                run.inFlightMost(),
                                Schedule.derived(session().seed(), run.trialId())),
                        target);
    }

    private void ceiling(Command.Ceiling ceiling) throws InterruptedException {
        Event[] last = new Event[1];
        try (EchoTarget echo = new EchoTarget(ceiling.port())) {
            new Engine(Clock.SYSTEM, event -> last[0] = event)
                    .run(
                            new Engine.Trial(
                                    0,
                                    new Load.Closed(ceiling.clients()),
                                    new TrialSpec.Window(
                                            Duration.ofMillis(ceiling.warmUpLeastMs()),
                                            Duration.ofMillis(ceiling.warmUpMostMs()),
                                            Duration.ofMillis(ceiling.windowMs())),
                                    TIMEOUT_OUTSIDE_TRIALS,
                                    TIMEOUT_OUTSIDE_TRIALS,
                                    ceiling.clients(),
                                    0),
                            echo);
        }
        if (!(last[0] instanceof Event.Finished finished) || finished.replied() == 0) {
            throw new CallException(CallException.Code.UNAVAILABLE, "the server that does nothing gave no right reply");
        }
        tell(new Event.Ceiling(finished.replied() * 1e9 / finished.windowNs()));
    }

    private void tell(Event event) {
        out.println(Protocol.line(event));
        out.flush();
    }
}
