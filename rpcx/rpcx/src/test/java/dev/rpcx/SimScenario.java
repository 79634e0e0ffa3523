package dev.rpcx;

import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.wire.Wire;
import io.netty.channel.Channel;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Runs one {@link SimWorld}: some servers, some clients, a few dozen calls of every kind, and all the faults that the
 * seed wants. After that, nothing disturbs them any more, all of them close, and nothing may be left over.
 */
final class SimScenario {
    private static final ThreadLocal<@Nullable SimScenario> CURRENT = new ThreadLocal<>();
    private static final RegistryServer REGISTRY = RegistryServer.registry(SimService.SERVICE);
    private static final int PORT = 7000;

    private static final int MAX_TEXT = 200_000;

    /**
     * A process may have so many bytes of sockets' buffers that are charged to nobody. These are one batch of each loop
     * that is being made or has just been read, and up to 4 KiB in the queue of each connection.
     */
    private static final long FREE_BYTES = 64 * 1024;

    /** On this host something listens that is not a server. */
    private static final String TRAP = "10.0.8.1";

    private static final long MILLISECOND = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    /** No call, try to connect or silence lasts longer. */
    private static final long QUIET_NANOS = 30 * SECOND;

    /**
     * Holds instances that do not change. Two of these are equal if their instances are the same, so that maps of them
     * have one order.
     */
    private record Fixed(List<Endpoint> instances) implements Endpoints {
        @Override
        public Watch watch(Listener listener) {
            listener.found(instances);
            return () -> {};
        }
    }

    private final class Host {
        final String name;
        SimPlatform platform;
        Server server;

        /** This is true when the server has begun to stop, or is gone. */
        boolean stopping;

        Host(String name) {
            this.name = name;
            this.platform = new SimPlatform(world, network, name);
            this.server = start();
        }

        private Server start() {
            world.note(1, "server %s starts", name);
            server = Server.builder(REGISTRY)
                    .platform(platform)
                    .host(name)
                    .port(PORT)
                    .eventLoops(1 + world.random.nextInt(2))
                    .keepAlive(keepAlive(500 * MILLISECOND))
                    .maxCalls(!besieged && world.oneIn(3) ? 1 + world.random.nextInt(8) : Wire.MAX_SLOTS)
                    .maxRunning(!besieged && world.oneIn(4) ? 4 + world.random.nextInt(8) : 10_000)
                    .maxMessageBytes(!besieged && world.oneIn(4) ? 64 * 1024 : Wire.MAX_MESSAGE_BYTES)
                    .build();
            stopping = false;
            return server.start();
        }

        void drain() {
            if (stopping) {
                return;
            }
            stopping = true;
            Server old = server;
            SimPlatform under = platform;
            long time = world.spread(0, 2 * SECOND);
            world.note(time, "server %s stops within %d ms", name, time / MILLISECOND);
            // this does what Server.stop does, except that it does not wait
            old.core().drain(Duration.ofNanos(time)).whenComplete((done, failure) -> under.end());
        }

        void kill() {
            if (platform.isKilled()) {
                return;
            }
            stopping = true;
            boolean power = world.oneIn(2);
            world.note(power ? 1 : 2, "server %s is killed, power: %s", name, power);
            platform.kill();
            server.core().ledger().forget();
            if (power) {
                network.silence(name);
            } else {
                network.reset(name);
            }
        }

        void startAgain() {
            if (stopping && (platform.isKilled() || platform.isEnded())) {
                network.unsilence(name);
                SimPlatform under = platform;
                Server old = server;
                ended.add(() -> check(old, under));
                platform = new SimPlatform(world, network, name);
                server = start();
            }
        }

        void check() {
            check(server, platform);
        }

        private void check(Server server, SimPlatform platform) {
            if (platform.isKilled()) {
                return;
            }
            expectNone(server.core().running(), "handlers counted at " + name);
            expectNothing(server.core().ledger());
            expectNone(server.core().connections(), "connections at " + name);
            expectNone(platform.allocator.buffers(), "buffers at " + name);
            for (int number = 1; server.core().method(number) != null; number++) {
                AdmissionLimit admission = server.core().method(number).admission();
                if (admission != null) {
                    expectNone(
                            admission.running(),
                            "handlers of " + server.core().method(number).name() + " at " + name);
                }
            }
        }
    }

    private final class Caller {
        final SimPlatform platform;
        final Client client;
        final SimService.Remote remote;
        final long callNanos;
        final List<SimWorld.Worker> threads = new ArrayList<>();

        /** This is true if a stranger answers the caller's calls. */
        boolean isTricked;

        private boolean closed;
        private boolean over;

        Caller(String name, List<String> to) {
            platform = new SimPlatform(world, network, name);
            callNanos = world.spread(besieged ? 2 * SECOND : 20 * MILLISECOND, 5 * SECOND) / 1000 * 1000;
            int kept = 1;
            Client.Builder builder = Client.builder()
                    .platform(platform)
                    .eventLoops(1 + world.random.nextInt(2))
                    .connections(kept, 1 + world.random.nextInt(3))
                    .callTimeout(Duration.ofNanos(callNanos))
                    .connectTimeout(Duration.ofNanos(world.spread(besieged ? SECOND : 20 * MILLISECOND, 3 * SECOND)))
                    .keepAlive(keepAlive(300 * MILLISECOND))
                    .choice(Choice.values()[world.random.nextInt(3)])
                    .interceptor((call, next) ->
                            call.method().equals("takes") || call.method().equals("both")
                                    ? next.proceed(call.with("id", streamId))
                                    : next.proceed(call));
            if (!besieged && world.oneIn(4)) {
                builder.circuitBreaker(0.5);
            }
            client = builder.build();
            if (to.size() == 1 && world.oneIn(2)) {
                remote = client.create(SimService.Remote.class, to.get(0), PORT);
            } else {
                List<Endpoint> instances = to.stream()
                        .map(host -> new Endpoint(host, PORT, 1 + world.random.nextInt(3)))
                        .toList();
                remote = client.create(SimService.Remote.class, new Fixed(instances));
            }
            for (int i = 1 + world.random.nextInt(3); i > 0; i--) {
                threads.add(new SimWorld.Worker(world, platform));
            }
        }

        SimWorld.Worker thread() {
            return threads.get(world.random.nextInt(threads.size()));
        }

        void close() {
            if (!closed) {
                closed = true;
                world.note(3, "client %s closes", platform.host);
                CompletableFuture<Void> ended = client.core().end();
                if (ended == null) {
                    over = true;
                } else {
                    ended.whenComplete((done, failure) -> over = true);
                }
            }
        }

        boolean isIdle() {
            for (Channel channel : client.core().channels.keySet()) {
                ClientConnection connection = channel.pipeline().get(ClientConnection.class);
                if (connection != null && connection.load() > 0) {
                    return false;
                }
            }
            return true;
        }

        /** Checks the connections. All calls have ended by then, and their servers have said so. */
        void checkIdle() {
            for (Channel channel : client.core().channels.keySet()) {
                ClientConnection connection = channel.pipeline().get(ClientConnection.class);
                if (connection != null && !connection.isClosed()) {
                    expectNone(connection.load(), "calls counted at " + platform.host);
                    expectNone(connection.slots.taken(), "slots taken at " + platform.host);
                }
            }
        }

        void check() {
            if (!over) {
                world.violation("client " + platform.host + " has not closed");
            }
            expectNothing(client.core().ledger());
            expectNone(client.core().channels.size(), "connections of " + platform.host);
            expectNone(platform.allocator.buffers(), "buffers of " + platform.host);
        }
    }

    final SimWorld world;
    final SimNetwork network;
    final SimCalls calls;

    /** This is true if strangers attack and nothing else goes wrong. Then the other clients have to be served. */
    private final boolean besieged;

    /** This is true if most calls are large and come together. */
    private final boolean crowded;

    private final List<SimCalls.Call> goodCalls = new ArrayList<>();
    private final List<SimPeer> strangers = new ArrayList<>();
    private final List<Host> hosts = new ArrayList<>();
    private final List<Caller> callers = new ArrayList<>();

    /** These look at servers that have been replaced. Handlers of such a server may go on for a while. */
    private final List<Runnable> ended = new ArrayList<>();

    private final Caller inner;
    private long beganNanos;

    /** This is the longest keep-alive time of all. A peer that is gone is noticed within it. */
    private long keepAliveNanos;

    private Duration keepAlive(long least) {
        long nanos = world.spread(least, 10 * SECOND);
        keepAliveNanos = Math.max(keepAliveNanos, nanos);
        return Duration.ofNanos(nanos);
    }

    /** The next call that takes a stream has this id. Its handler learns the id from the metadata. */
    private String streamId = "";

    private SimScenario(SimWorld world) {
        CURRENT.set(this);
        this.world = world;
        this.besieged = world.oneIn(4);
        this.crowded = !besieged && world.oneIn(4);
        // a window of some bytes makes the network the bottleneck, which is no attacker's fault
        this.network = new SimNetwork(world, besieged ? 16 * 1024 : 64);
        this.calls = new SimCalls(world);
        int servers = 1 + world.random.nextInt(3);
        for (int i = 0; i < servers; i++) {
            hosts.add(new Host("10.0.0." + (1 + i)));
        }
        List<String> names = hosts.stream().map(host -> host.name).toList();
        int clients = 1 + world.random.nextInt(3);
        for (int i = 0; i < clients; i++) {
            callers.add(new Caller("10.0.1." + (1 + i), names.subList(0, 1 + world.random.nextInt(servers))));
        }
        inner = new Caller("10.0.2.1", names);
        callers.add(inner);
    }

    static SimScenario current() {
        SimScenario scenario = CURRENT.get();
        if (scenario == null) {
            throw new IllegalStateException("no simulation runs on this thread");
        }
        return scenario;
    }

    /** Runs the world of this seed to its end. @return the world, with what was wrong in it */
    static SimWorld run(long seed, boolean logging) {
        SimWorld world = new SimWorld(seed, logging);
        try {
            new SimScenario(world).run();
        } finally {
            CurrentCall.set(null);
            CURRENT.remove();
            SimWorld.clearCurrent();
        }
        return world;
    }

    // ---- what services and streams ask for

    /** Runs a task on a thread of the process that asks, after so long. */
    void later(long nanos, Runnable task) {
        SimPlatform process = world.process();
        world.in(nanos, () -> new SimWorld.Worker(world, process).run(task));
    }

    CompletableFuture<String> hop(long micros) {
        long left = CallContext.current().orElseThrow().remainingNanos();
        SimCalls.Call call = calls.begin("inner", Math.min(left, inner.callNanos), false);
        CompletableFuture<String> result = new CompletableFuture<>();
        try {
            inner.remote.later(call.id, micros).whenComplete((value, thrown) -> {
                ended(call, value, call.id, thrown);
                result.complete("inner");
            });
        } catch (RPCXException refused) {
            call.failed(refused);
            result.complete("refused");
        }
        return result;
    }

    // ---- the course of things

    /**
     * Checks that all memory of sockets' buffers is charged, except for what each loop and each connection may have
     * without a charge.
     */
    private void lookAtMemory() {
        for (Host host : hosts) {
            if (!host.platform.isKilled()) {
                lookAtMemory(host.platform, host.server.core().ledger());
            }
        }
        for (Caller caller : callers) {
            lookAtMemory(caller.platform, caller.client.core().ledger());
        }
    }

    private void lookAtMemory(SimPlatform platform, Ledger ledger) {
        long bytes = platform.allocator.bytes();
        // a buffer that grows is doubled, and its queue is charged for what is in it
        long free = bytes - 2 * ledger.held(Resource.QUEUE_BYTES);
        if (free > world.mostFreeBytes) {
            world.mostFreeBytes = free;
            if (free > FREE_BYTES) {
                world.violation(free + " bytes of buffers at " + platform.host + " are charged to nobody, of " + bytes);
            }
        }
    }

    private void run() {
        beganNanos = world.now();
        world.lookAfterEachStep(this::lookAtMemory);
        long lasting = world.spread(10 * MILLISECOND, crowded ? 100 * MILLISECOND : 3 * SECOND);
        int count = 5 + world.random.nextInt(45);
        for (int i = 0; i < count; i++) {
            Caller caller = callers.get(world.random.nextInt(callers.size() - 1));
            world.in(world.random.nextLong(lasting), () -> caller.thread().run(() -> call(caller)));
        }
        boolean peaceful = besieged || world.oneIn(3);
        for (int i = besieged ? 20 : 0; i > 0; i--) {
            Caller caller = callers.get(world.random.nextInt(callers.size() - 1));
            world.in(world.random.nextLong(lasting), () -> caller.thread().run(() -> good(caller)));
        }
        if (besieged || world.oneIn(6)) {
            for (int i = 1 + world.random.nextInt(8); i > 0; i--) {
                world.in(world.random.nextLong(lasting), this::attack);
            }
        }
        if (world.oneIn(6)) {
            trap(lasting);
        }
        for (int i = peaceful ? 0 : 1 + world.random.nextInt(8); i > 0; i--) {
            world.in(world.random.nextLong(lasting), this::disturb);
        }
        world.runUntil(beganNanos + lasting);
        network.unlisten(new InetSocketAddress(TRAP, PORT));
        strangers.forEach(SimPeer::disconnect);
        // from here on nothing goes wrong any more, and what is under way comes to its end
        network.links().forEach(link -> {
            if (!network.isSilent(link.server.local.getHostString())) {
                link.lighten();
            }
        });
        world.run(calls::allEnded, world.now() + QUIET_NANOS);
        world.runUntil(world.now() + keepAliveNanos + SECOND);
        // this waits for what a narrow window still lets through
        for (int i = 0; i < 20 && !callers.stream().allMatch(Caller::isIdle); i++) {
            world.runUntil(world.now() + 3 * SECOND);
        }
        callers.forEach(Caller::checkIdle);
        callers.forEach(caller -> caller.thread().run(caller::close));
        world.runUntil(world.now() + SECOND);
        hosts.forEach(Host::drain);
        world.runUntil(world.now() + 3 * SECOND);
        callers.forEach(Caller::check);
        hosts.forEach(Host::check);
        ended.forEach(Runnable::run);
        callers.forEach(caller -> caller.platform.end());
        world.runUntil(world.now() + SECOND);
        calls.check();
        if (besieged) {
            checkGoodput();
        }
    }

    private void attack() {
        SimPeer stranger = new SimPeer(world, false);
        strangers.add(stranger);
        Host host = hosts.get(world.random.nextInt(hosts.size()));
        world.note(5, "a stranger goes for %s", host.name);
        network.connect(stranger, "10.0.9.9", new InetSocketAddress(host.name, PORT));
    }

    /**
     * Adds a stranger that listens as a server, and a client that calls it. Whatever the stranger says, calls end in
     * their time and nothing is left.
     */
    private void trap(long lasting) {
        try {
            network.listen(new InetSocketAddress(TRAP, PORT), end -> {
                SimPeer stranger = new SimPeer(world, true);
                strangers.add(stranger);
                stranger.begin(end);
            });
        } catch (IOException taken) {
            throw new IllegalStateException(taken);
        }
        Caller victim = new Caller("10.0.3.1", List.of(TRAP));
        victim.isTricked = true;
        callers.add(callers.size() - 1, victim);
        for (int i = 0; i < 10; i++) {
            world.in(world.random.nextLong(lasting), () -> victim.thread().run(() -> call(victim)));
        }
    }

    /**
     * Checks the small calls that have time enough. Source: at least 80 % of their goodput is left to others beside an
     * attacker.
     */
    private void checkGoodput() {
        long good = goodCalls.stream().filter(SimCalls.Call::isReplied).count();
        if (good * 5 < goodCalls.size() * 4L) {
            world.violation(good + " of " + goodCalls.size() + " calls beside strangers were answered");
        }
    }

    private void expectNone(long count, String what) {
        if (count != 0) {
            world.violation(count + " " + what + " are left");
        }
    }

    private void expectNothing(Ledger ledger) {
        String left = ledger.audit();
        if (!left.isEmpty()) {
            world.violation(left.strip());
        }
    }

    private void disturb() {
        List<SimNetwork.Link> links = network.links();
        Host host = hosts.get(world.random.nextInt(hosts.size()));
        int what = world.random.nextInt(10);
        if (what < 3 && !links.isEmpty()) {
            world.note(4, "a connection is reset");
            links.get(world.random.nextInt(links.size())).reset();
        } else if (what < 6 && !links.isEmpty()) {
            SimNetwork.Link link = links.get(world.random.nextInt(links.size()));
            long time = world.spread(MILLISECOND, 5 * SECOND);
            world.note(time, "a connection is silent for %d ms", time / MILLISECOND);
            link.darken();
            world.in(time, link::lighten);
        } else if (what == 6) {
            host.kill();
            world.in(world.spread(MILLISECOND, SECOND), host::startAgain);
        } else if (what < 9) {
            host.drain();
            world.in(world.spread(MILLISECOND, 3 * SECOND), host::startAgain);
        } else {
            Caller caller = callers.get(world.random.nextInt(callers.size() - 1));
            caller.thread().run(caller::close);
        }
    }

    // ---- calls

    private void call(Caller caller) {
        long time = caller.callNanos;
        if (world.oneIn(2)) {
            time = Math.min(time, world.spread(10_000, 2 * SECOND));
            CurrentCall.set(new TimedContext(world.now() + time, Metadata.EMPTY, null, world.ticker));
        }
        calls.trusting(!caller.isTricked);
        try {
            call(caller.remote, time);
        } finally {
            calls.trusting(true);
            CurrentCall.set(null);
        }
    }

    private void call(SimService.Remote remote, long time) {
        // if connections are crowded, requests have to wait behind others before their first byte is sent
        int size = world.oneIn(crowded ? 2 : 6) ? world.random.nextInt(MAX_TEXT) : (int) world.spread(0, 200);
        String text = "x".repeat(size);
        long micros = world.spread(1, 200_000);
        switch (world.random.nextInt(18)) {
            case 0 -> unary("echo", time, false, id -> remote.echo(id, text), id -> id + ":" + text);
            case 1 -> unary("echoAgain", time, true, id -> remote.echoAgain(id, text), id -> id + ":" + text);
            case 2 -> unary("inline", time, false, id -> remote.inline(id, text), id -> id + ":" + text);
            case 3 -> unary("pooled", time, false, id -> remote.pooled(id, text), id -> id + ":" + text);
            case 4 -> unary("later", time, false, id -> remote.later(id, micros), id -> id);
            case 5 -> unary("laterAgain", time, true, id -> remote.laterAgain(id, micros), id -> id);
            case 6 -> unary("laterHedged", time, true, id -> remote.laterHedged(id, micros), id -> id);
            case 7 -> {
                int bytes = (int) world.spread(0, 300_000);
                unary("large", time, false, id -> remote.large(id, bytes), id -> id + ":" + "y".repeat(bytes));
            }
            case 8 -> unary("hang", time, false, remote::hang, id -> "cancelled");
            case 9 -> unary("fail", time, false, remote::fail, id -> "");
            case 10 -> unary("error", time, false, remote::error, id -> "");
            case 11 -> {
                int number = world.random.nextInt(10);
                unary(
                        "picky",
                        time,
                        false,
                        id -> remote.picky(id, new SimService.Number(number)),
                        id -> id + ":" + number);
            }
            case 12 -> unary("missing", time, false, remote::missing, id -> "");
            case 13 -> unary("hop", time, false, id -> remote.hop(id, micros), id -> id);
            case 14 -> {
                SimCalls.Call call = calls.begin("note", Long.MAX_VALUE / 2, false);
                try {
                    remote.note(call.id, text);
                    call.end("sent");
                } catch (RPCXException refused) {
                    call.failed(refused);
                }
            }
            case 15 -> brings(remote, time);
            case 16 -> takes(remote, time);
            case 17 -> both(remote, time);
            default -> throw new AssertionError();
        }
    }

    private void good(Caller caller) {
        SimCalls.Call call = calls.begin("good", caller.callNanos, false);
        goodCalls.add(call);
        try {
            caller.remote
                    .pooled(call.id, "good")
                    .whenComplete((value, thrown) -> ended(call, value, call.id + ":good", thrown));
        } catch (RPCXException refused) {
            call.failed(refused);
        }
    }

    private void unary(
            String kind,
            long time,
            boolean mayRunTwice,
            Function<String, RPCXFuture<String>> made,
            Function<String, String> expected) {
        SimCalls.Call call = calls.begin(kind, time, mayRunTwice);
        RPCXFuture<String> future;
        try {
            future = made.apply(call.id);
        } catch (RPCXException refused) {
            call.failed(refused);
            return;
        }
        future.whenComplete((value, thrown) -> ended(call, value, expected.apply(call.id), thrown));
        if (kind.equals("hang") ? world.oneIn(2) : world.oneIn(10)) {
            later(world.spread(1, 50 * MILLISECOND), () -> future.cancel(true));
        }
    }

    private static void ended(SimCalls.Call call, @Nullable Object value, Object expected, @Nullable Throwable thrown) {
        if (thrown == null) {
            call.succeeded(String.valueOf(value), expected);
        } else {
            call.failed(thrown);
        }
    }

    private void brings(SimService.Remote remote, long time) {
        SimCalls.Call call = calls.begin("brings", streamTime(time), false);
        int items = (int) world.spread(0, 60);
        int bytes = (int) (world.oneIn(4) ? world.spread(0, 60_000) : world.spread(0, 100));
        int end = world.random.nextInt(SimStreams.Source.End.values().length);
        subscribe(call, remote.brings(call.id, items, bytes, end));
    }

    private void both(SimService.Remote remote, long time) {
        SimCalls.Call call = calls.begin("both", streamTime(time), false);
        streamId = call.id;
        subscribe(call, remote.both(source(call)));
    }

    /**
     * Returns the time of a stream. A stream has all the time that its caller has. If it has no caller, it is given up
     * at some time.
     */
    private long streamTime(long time) {
        return CurrentCall.isAbsent() ? Long.MAX_VALUE / 2 : time;
    }

    private void subscribe(SimCalls.Call call, Flow.Publisher<String> stream) {
        SimStreams.Sink sink = new SimStreams.Sink(this, call.id, call.isTrusting);
        sink.end().whenComplete((received, thrown) -> {
            if (thrown == null) {
                call.end("complete after " + received);
            } else {
                call.failed(thrown);
            }
        });
        stream.subscribe(sink);
        later(world.spread(MILLISECOND, 3 * SECOND), sink::cancel);
    }

    private void takes(SimService.Remote remote, long time) {
        long own = SimService.Remote.TAKES_MILLIS * MILLISECOND;
        SimCalls.Call call = calls.begin("takes", CurrentCall.isAbsent() ? own : Math.min(time, own), false);
        streamId = call.id;
        RPCXFuture<String> future;
        try {
            future = remote.takes(source(call));
        } catch (RPCXException refused) {
            call.failed(refused);
            return;
        }
        future.whenComplete((value, thrown) -> {
            if (thrown == null) {
                call.succeeded(value.substring(0, value.indexOf(':')), call.id);
            } else {
                call.failed(thrown);
            }
        });
    }

    private SimStreams.Source source(SimCalls.Call call) {
        int items = (int) world.spread(0, 60);
        int bytes = (int) (world.oneIn(4) ? world.spread(0, 60_000) : world.spread(0, 100));
        SimStreams.Source.End[] ends = SimStreams.Source.End.values();
        return new SimStreams.Source(this, call.id, items, bytes, ends[world.random.nextInt(ends.length)]);
    }
}
