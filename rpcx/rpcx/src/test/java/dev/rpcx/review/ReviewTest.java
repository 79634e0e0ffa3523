package dev.rpcx.review;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.Again;
import dev.rpcx.CallContext;
import dev.rpcx.Choice;
import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Interceptor;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RouteBy;
import dev.rpcx.Server;
import dev.rpcx.Tokens;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Principal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the points of an independent review of commit e8334e3. Each point is tested by programs that use only the
 * public API, or only the bytes on the wire. So {@code rpcx/review COMMIT} can run them with the sources of that commit
 * too. What they found there is in {@code docs/results}. The tests of each part go further. Two programs come last,
 * because a commit that they harm goes on working at them for the rest of its process. One program that looks for such
 * work comes first.
 */
@Timeout(60)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
public class ReviewTest {
    private static final int FIRST = 1 << 16;
    private static final byte[] CANCELLED = {8, 1, 24, 3};
    private static final byte[] UNAVAILABLE = {8, 3, 24, 1};

    /** A message whose field 1 is 3. */
    private static final byte[] THREE = {8, 3};

    private static final byte[] SECRET = "0123456789abcdef0123456789abcdef".getBytes(StandardCharsets.UTF_8);

    /**
     * Number of calls at once that interrupt their threads. It is larger than the number of carriers of virtual
     * threads.
     */
    private static final int INTERRUPTING = 4 * Runtime.getRuntime().availableProcessors();

    private static final int LAST = Integer.MAX_VALUE;

    @RPCXClient(remoteServerName = "review")
    public interface Calls {
        CompletableFuture<String> hello(String text);

        @Method("hello")
        String wait(String text);

        String interrupts();

        CompletableFuture<String> interruptsWithOthers();

        String sleeps();

        CompletableFuture<Long> remaining();

        @Method(value = "remainingLater", idempotent = true, hedgeMillis = 100)
        CompletableFuture<Long> hedged();

        @Method(idempotent = true)
        String unavailableOnce();

        @Method(value = "unavailableOnce", idempotent = true)
        CompletableFuture<String> unavailableOnceLater();

        String caller();

        CompletableFuture<String> works();

        CompletableFuture<byte[]> large();

        Flow.Publisher<Integer> numbers();

        int sum(Flow.Publisher<Integer> items);

        Pair same(Pair pair);

        Person nobody();
    }

    /** The same service. Its client says something else about what may be null. */
    @RPCXClient(remoteServerName = "review")
    public interface Nulls {
        @Method("same")
        Pair sameOrNull(@Nullable Pair pair);
    }

    @RPCXClient(remoteServerName = "review")
    public interface Plain {
        String hello(String text);
    }

    /** A client that cannot read the results of its server. */
    @RPCXClient(remoteServerName = "review")
    public interface Unreadable {
        CompletableFuture<Checked> checked();

        CompletableFuture<BrokenResult> broken();

        CompletableFuture<String> hello(String text);
    }

    /**
     * A service with a name that its owner has chosen: it consists of the name of another caller and of another
     * service.
     */
    @RPCXClient(remoteServerName = "YWRtaW4.review")
    public interface Chosen {
        String caller();
    }

    public record Pair(String first, String second) {}

    public record Person(String name) {}

    public record Checked(int x) {
        public Checked {
            if (x == 0) {
                throw new AssertionError("0");
            }
        }
    }

    public record BrokenArgument(int x) {
        static final int MAX = Integer.parseInt("a class that cannot be initialised");
    }

    public record BrokenResult(int x) {
        static final int MAX = Integer.parseInt("a class that cannot be initialised");
    }

    /** A record of 256 bytes and more, of which nothing has to be sent. */
    public record Wide(
            long a1,
            long a2,
            long a3,
            long a4,
            long a5,
            long a6,
            long a7,
            long a8,
            long b1,
            long b2,
            long b3,
            long b4,
            long b5,
            long b6,
            long b7,
            long b8,
            long c1,
            long c2,
            long c3,
            long c4,
            long c5,
            long c6,
            long c7,
            long c8,
            long d1,
            long d2,
            long d3,
            long d4,
            long d5,
            long d6,
            long d7,
            long d8) {}

    public record Own(int x) {}

    public record Same(int x) {
        @Override
        public int hashCode() {
            return 1;
        }
    }

    @RPCXServer("review")
    public static class Service {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch answered = new CountDownLatch(1);
        final CountDownLatch running = new CountDownLatch(LARGE);
        final AtomicInteger emitted = new AtomicInteger();
        final AtomicInteger tries = new AtomicInteger();
        final AtomicInteger asked = new AtomicInteger();
        final CountDownLatch interrupting = new CountDownLatch(INTERRUPTING);

        @Method
        public String hello(String text) {
            return text;
        }

        @Method
        public void takes(Flow.Publisher<Integer> items) throws InterruptedException {
            CountDownLatch over = new CountDownLatch(1);
            items.subscribe(new Asking<>(Long.MAX_VALUE) {
                @Override
                public void onError(Throwable thrown) {
                    over.countDown();
                }

                @Override
                public void onComplete() {
                    over.countDown();
                }
            });
            over.await();
        }

        /** Makes as many items of 16 kB as are asked for, at once. */
        @Method
        public Flow.Publisher<byte[]> items() {
            return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    for (long i = 0; i < items && emitted.get() < MAX_ITEMS; i++) {
                        emitted.incrementAndGet();
                        subscriber.onNext(new byte[16_000]);
                    }
                }

                @Override
                public void cancel() {}
            });
        }

        @Method
        public Flow.Publisher<Integer> numbers() {
            return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    if (asked.getAndIncrement() == 0) {
                        subscriber.onNext(1);
                        return;
                    }
                    try {
                        blocked.await(20, TimeUnit.SECONDS);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }

                @Override
                public void cancel() {}
            });
        }

        @Method
        public String check(Checked checked) {
            return "checked";
        }

        @Method
        public int distinct(Set<Same> all) {
            return all.size();
        }

        @Method
        public int distinctOwn(Set<Own> all) {
            return all.size();
        }

        @Method
        public int count(List<Wide> all) {
            return all.size();
        }

        @Method
        public String caller() {
            return CallContext.current()
                    .flatMap(CallContext::principal)
                    .map(Principal::getName)
                    .orElse("nobody");
        }

        @Method
        public Optional<Person> nobody() {
            return Optional.of(new Person("Bob"));
        }

        @Method
        public long remaining() {
            return CallContext.current().orElseThrow().remainingNanos();
        }

        /** Returns the time that is left. The first call waits until the caller has had the answer to the second. */
        @Method
        public long remainingLater() throws InterruptedException {
            if (tries.getAndIncrement() == 0) {
                answered.await(20, TimeUnit.SECONDS);
            }
            return remaining();
        }

        @Method
        public String interrupts() {
            Thread.currentThread().interrupt();
            return "done";
        }

        @Method
        public String interruptsWithOthers() throws InterruptedException {
            interrupting.countDown();
            interrupting.await(20, TimeUnit.SECONDS);
            return interrupts();
        }

        @Method
        public String sleeps() throws InterruptedException {
            Thread.sleep(1);
            return "slept";
        }

        @Method
        public String works() {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(10));
            return "worked";
        }

        @Method
        public String unavailableOnce() {
            if (tries.getAndIncrement() == 0) {
                throw new RPCXException(RPCXException.Code.UNAVAILABLE, "once");
            }
            return "done";
        }

        @Method
        public byte[] large() throws InterruptedException {
            running.countDown();
            running.await(20, TimeUnit.SECONDS);
            return new byte[100_000];
        }

        @Method
        public Pair same(Pair pair) {
            return pair;
        }
    }

    @RPCXServer("broken")
    public static class BrokenService {
        @Method
        public String takes(BrokenArgument broken) {
            return "taken";
        }
    }

    /** A subscriber that requests this many items at once. */
    static class Asking<T> implements Flow.Subscriber<T> {
        final CompletableFuture<Flow.Subscription> begun = new CompletableFuture<>();
        final CompletableFuture<Void> end = new CompletableFuture<>();
        private final long items;

        Asking(long items) {
            this.items = items;
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            begun.complete(subscription);
            subscription.request(items);
        }

        @Override
        public void onNext(T item) {}

        @Override
        public void onError(Throwable thrown) {
            end.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            end.complete(null);
        }
    }

    /** Number of calls that return 100 kB at the same moment. */
    private static final int LARGE = 300;

    private static final int MAX_ITEMS = 8_000;

    private final Service service = new Service();

    private Server server() {
        return started(Server.builder(RegistryServer.registry(service)));
    }

    private static Server started(Server.Builder builder) {
        return builder.host("127.0.0.1").port(0).build().start();
    }

    private static Calls calls(Client client, int port) {
        return client.create(Calls.class, "127.0.0.1", port);
    }

    private static <T> CompletableFuture<T> within(long millis, Supplier<CompletableFuture<T>> call) {
        return CallContext.within(Duration.ofMillis(millis), call);
    }

    private static <T> T join(CompletableFuture<T> future) throws Exception {
        return future.get(20, TimeUnit.SECONDS);
    }

    private static boolean hasFailed(CompletableFuture<?> future) throws Exception {
        return join(future.handle((value, thrown) -> thrown != null));
    }

    /** Serves the classic wire too. A commit without this option always serves it. */
    private static Server.Builder classic(Server.Builder builder) throws ReflectiveOperationException {
        java.lang.reflect.Method served;
        try {
            served = Server.Builder.class.getMethod("classic", boolean.class);
        } catch (NoSuchMethodException always) {
            return builder;
        }
        served.invoke(builder, true);
        return builder;
    }

    /**
     * Skips a program on a larger heap. What a server accepts depends on its heap, so the program would have to send
     * more.
     */
    private static void assumeHeapOfOneGigabyte() {
        assumeTrue(Runtime.getRuntime().maxMemory() <= 1L << 30, "more than 1 GB of heap: see rpcx/review");
    }

    private static void inBackground(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
    }

    /** Returns the processor time of this process. */
    private static long processorMillis() {
        return ProcessHandle.current().info().totalCpuDuration().orElseThrow().toMillis();
    }

    private static long processorMillisOf(long millis) {
        long before = processorMillis();
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
        return processorMillis() - before;
    }

    private static long heapAfterCollection() {
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    @Test
    void point1NoticesToAMethodThatTakesAStreamLeaveNoHandlerBehind() throws Exception {
        try (Server server =
                        started(Server.builder(RegistryServer.registry(service)).maxRunning(4));
                Client client = Client.standard()) {
            try (BytePeer peer = BytePeer.client(server.port())) {
                for (int i = 0; i < 4; i++) {
                    peer.gather(BytePeer.NOTICE | BytePeer.NAMED, FIRST + i, BytePeer.named("review", "takes"));
                }
                peer.send(BytePeer.PING, 7);
                peer.readPreface();
                try {
                    peer.read(BytePeer.PONG, BytePeer.PONG);
                } catch (IOException ended) {
                    // a server may end the connection of a client that does so
                }
            }
            Calls calls = calls(client, server.port());
            for (int i = 0; i < 200; i++) {
                assertThat(calls.wait("good")).isEqualTo("good");
            }
        }
    }

    @Test
    void point2RequestsThatEndBeforeTheyLeaveGiveTheirSlotsBack() throws Exception {
        slotsComeBack(300, call -> {});
    }

    @Test
    void point2RequestsThatAreCancelledBeforeTheyLeaveGiveTheirSlotsBack() throws Exception {
        slotsComeBack(30_000, call -> call.cancel(true));
    }

    /**
     * Checks that slots are given back. Six calls with this time limit wait behind two that fill the socket, and then
     * are ended.
     */
    private static void slotsComeBack(long millis, Consumer<CompletableFuture<String>> end) throws Exception {
        try (ServerSocket listening = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            // this is more than a socket of this system takes
            CompletableFuture<String> first = within(3000, () -> calls.hello("x".repeat(4_000_000)));
            CompletableFuture<String> second = within(3000, () -> calls.hello("x".repeat(4_000_000)));
            try (BytePeer peer = BytePeer.server(listening, 8)) {
                BytePeer.Frame request = peer.read(BytePeer.REQUEST, BytePeer.REQUEST);
                // nothing shows that a socket is full, and it takes some milliseconds to fill it
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(500));
                List<CompletableFuture<String>> others = new ArrayList<>();
                for (int i = 0; i < 6; i++) {
                    others.add(within(millis, () -> calls.hello("y".repeat(100_000))));
                }
                // nothing shows that the calls wait in the queue either
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(200));
                for (CompletableFuture<String> other : others) {
                    end.accept(other);
                    assertThat(hasFailed(other)).isTrue();
                }
                assertThat(hasFailed(first)).isTrue();
                assertThat(hasFailed(second)).isTrue();
                answering(peer, request.id());
                List<CompletableFuture<String>> small = new ArrayList<>();
                // the connection is free again when a call gets through
                await().atMost(30, TimeUnit.SECONDS).until(() -> !hasFailed(within(5000, () -> calls.hello("z"))));
                for (int i = 0; i < 8; i++) {
                    small.add(within(10_000, () -> calls.hello("z")));
                }
                for (CompletableFuture<String> each : small) {
                    assertThat(join(each)).isEqualTo("z");
                }
            }
        }
    }

    /** Answers small requests, some of them together, and also answers the CANCELs of requests that it has seen. */
    private static void answering(BytePeer peer, int seenFirst) {
        inBackground(() -> {
            List<Integer> seen = new ArrayList<>(List.of(seenFirst));
            List<Integer> waiting = new ArrayList<>();
            try {
                while (true) {
                    BytePeer.Frame frame = peer.read();
                    if (frame.type() == BytePeer.REQUEST && frame.isWhole()) {
                        waiting.add(frame.id());
                        // the first request is answered alone, and the others when all have arrived, together with one
                        // whose time was over earlier
                        if (waiting.size() == 1 || waiting.size() >= 9) {
                            for (int id : waiting) {
                                peer.gather(BytePeer.REPLY, id, BytePeer.text("z"));
                            }
                            peer.send(BytePeer.PING, 1);
                        }
                    } else if (frame.type() == BytePeer.REQUEST) {
                        seen.add(frame.id());
                    } else if (frame.type() == BytePeer.CANCEL && seen.contains(frame.id())) {
                        peer.send(BytePeer.ERROR, frame.id(), CANCELLED);
                    }
                }
            } catch (IOException closed) {
                // the test is over
            }
        });
    }

    @Test
    void point3AByteOfTheClassicWireAndThenSilenceIsClosed() throws Exception {
        try (Server server =
                started(classic(Server.builder(RegistryServer.registry(service)).keepAlive(Duration.ofSeconds(1))))) {
            // the server counts its time from the beginning of the connection
            long before = System.nanoTime();
            try (Socket socket = new Socket("127.0.0.1", server.port())) {
                socket.setSoTimeout(10_000);
                socket.getOutputStream().write(0);
                // the connection is closed, whatever the client receives
                assertThatCode(() -> socket.getInputStream().readAllBytes()).doesNotThrowAnyException();
                assertThat(Duration.ofNanos(System.nanoTime() - before))
                        .as("the time after which a wire that is served is closed")
                        .isGreaterThan(Duration.ofMillis(300));
            }
        }
    }

    @Test
    void point3TheKernelLooksForAPeerOfTheClassicWireThatIsGone() throws Exception {
        assumeTrue(Files.exists(Path.of("/proc/net/tcp")), "no /proc here to read a socket's timers from");
        try (Server server = started(classic(Server.builder(RegistryServer.registry(service))));
                Client client = Client.builder().classic().build()) {
            Plain calls = client.create(Plain.class, "127.0.0.1", server.port());
            assertThat(calls.hello("here")).isEqualTo("here");
            // sent bytes are acknowledged at once, or after 40 ms
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(500));
            assertThat(timers(server.port())).hasSizeGreaterThanOrEqualTo(2).containsOnly("02");
        }
    }

    /** Returns which timer runs for each side of each connection to this port. The timer of TCP's keepalive is 02. */
    private static List<String> timers(int port) throws IOException {
        String end = String.format(":%04X", port);
        List<String> timers = new ArrayList<>();
        for (String table : List.of("/proc/net/tcp", "/proc/net/tcp6")) {
            for (String line : Files.readAllLines(Path.of(table))) {
                String[] fields = line.strip().split("\\s+");
                boolean isOfPort = fields[1].endsWith(end) || fields[2].endsWith(end);
                if (isOfPort && fields[3].equals("01")) {
                    timers.add(fields[5].substring(0, 2));
                }
            }
        }
        return timers;
    }

    @Test
    void point4ItemsThatNobodyReadsAreNotMade() throws Exception {
        try (Server server = server();
                BytePeer peer = BytePeer.client(server.port())) {
            peer.gather(BytePeer.REQUEST | BytePeer.NAMED, FIRST, BytePeer.named("review", "items"));
            peer.send(BytePeer.CREDIT, FIRST, BytePeer.varint(1L << 40));
            await().atMost(10, TimeUnit.SECONDS).until(() -> service.emitted.get() > 0);
            await().during(1, TimeUnit.SECONDS)
                    .atMost(10, TimeUnit.SECONDS)
                    .until(() -> service.emitted.get() < MAX_ITEMS / 2);
        }
    }

    @Test
    void point4PartsOfItemsThatComeInAreCounted() throws Exception {
        assumeHeapOfOneGigabyte();
        int calls = 30;
        try (Server server = server();
                BytePeer peer = BytePeer.client(server.port())) {
            for (int i = 0; i < calls; i++) {
                peer.gather(BytePeer.REQUEST | BytePeer.NAMED, FIRST + i, BytePeer.named("review", "takes"));
            }
            peer.send(BytePeer.PING, 1);
            peer.readPreface();
            for (int i = 0; i < calls; i++) {
                peer.read(BytePeer.CREDIT, BytePeer.CREDIT);
            }
            // each item has nearly 4 MB and no end
            inBackground(() -> {
                byte[] part = new byte[16_000];
                try {
                    for (int i = 0; i < calls; i++) {
                        peer.send(BytePeer.ITEM | BytePeer.MORE, FIRST + i, part);
                        for (int k = 0; k < 240; k++) {
                            peer.send(BytePeer.PART | BytePeer.MORE, FIRST + i, part);
                        }
                    }
                } catch (IOException ended) {
                    // a server may end the connection of a client that does so
                }
            });
            peer.socket.setSoTimeout(10_000);
            assertThat(peer.answer().type()).isEqualTo(BytePeer.ERROR);
        }
    }

    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    void point5ARequestThatStandsStillEnds() throws Exception {
        try (Server server = server();
                BytePeer peer = BytePeer.client(server.port())) {
            peer.send(
                    BytePeer.REQUEST | BytePeer.NAMED | BytePeer.TIME | BytePeer.MORE,
                    FIRST,
                    BytePeer.named("review", "hello"),
                    BytePeer.varint(TimeUnit.HOURS.toMicros(1)),
                    new byte[] {0x0A},
                    BytePeer.varint(1_000_000),
                    new byte[100]);
            peer.socket.setSoTimeout(30_000);
            peer.readPreface();
            assertThat(peer.answer().type()).isEqualTo(BytePeer.ERROR);
        }
    }

    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    void point5RequestsThatStandStillLeaveRoomForOthers() throws Exception {
        assumeHeapOfOneGigabyte();
        List<BytePeer> attackers = new ArrayList<>();
        try (Server server = server();
                Client client = Client.standard()) {
            for (int connection = 0; connection < 5; connection++) {
                BytePeer attacker = BytePeer.client(server.port(), "127.0.0.2");
                attackers.add(attacker);
                try {
                    for (int i = 0; i < 16; i++) {
                        begin(attacker, FIRST + i, 200);
                    }
                    // these use the room that the others have left
                    for (int i = 16; i < 116; i++) {
                        begin(attacker, FIRST + i, 1);
                    }
                    attacker.send(BytePeer.PING, 7);
                    attacker.readPreface();
                    attacker.read(BytePeer.PONG, BytePeer.PONG);
                } catch (IOException ended) {
                    // a server may end the connection of a client that does so
                }
            }
            Calls calls = calls(client, server.port());
            String large = "x".repeat(100_000);
            for (int i = 0; i < 20; i++) {
                assertThat(calls.wait(large)).isEqualTo(large);
            }
        } finally {
            for (BytePeer attacker : attackers) {
                attacker.close();
            }
        }
    }

    /** Begins a request with a time of an hour, which stalls after this many frames of 16 kB. */
    private static void begin(BytePeer peer, int id, int frames) throws IOException {
        peer.gather(
                BytePeer.REQUEST | BytePeer.NAMED | BytePeer.TIME | BytePeer.MORE,
                id,
                BytePeer.named("review", "hello"),
                BytePeer.varint(TimeUnit.HOURS.toMicros(1)),
                new byte[] {0x0A},
                BytePeer.varint(4_000_000),
                new byte[16_000]);
        for (int i = 1; i < frames; i++) {
            peer.gather(BytePeer.PART | BytePeer.MORE, id, new byte[16_000]);
        }
        peer.flush();
    }

    @Test
    void point6AnErrorWhileARequestIsDecodedIsAnswered() throws Exception {
        try (Server server = server();
                BytePeer peer = BytePeer.client(server.port())) {
            peer.send(BytePeer.REQUEST | BytePeer.NAMED, FIRST, BytePeer.named("review", "check"));
            peer.socket.setSoTimeout(5_000);
            peer.readPreface();
            assertThat(peer.answer().type()).isEqualTo(BytePeer.ERROR);
        }
    }

    @Test
    void point6AClassThatCannotBeInitialisedIsAnswered() throws Exception {
        try (Server server = started(Server.builder(RegistryServer.registry(new BrokenService())));
                BytePeer peer = BytePeer.client(server.port())) {
            peer.socket.setSoTimeout(5_000);
            peer.readPreface();
            // the second request meets a class whose initialization has failed before
            for (int i = 0; i < 2; i++) {
                peer.send(BytePeer.REQUEST | BytePeer.NAMED, FIRST + i, BytePeer.named("broken", "takes"), THREE);
                assertThat(peer.answer().type()).isEqualTo(BytePeer.ERROR);
            }
        }
    }

    @Test
    void point6CallsThatEndWithAnErrorGiveTheirPlacesBack() throws Exception {
        try (Server server =
                        started(Server.builder(RegistryServer.registry(service)).maxRunning(4));
                BytePeer peer = BytePeer.client(server.port());
                Client client = Client.standard()) {
            for (int i = 0; i < 8; i++) {
                peer.gather(BytePeer.REQUEST | BytePeer.NAMED, FIRST + i, BytePeer.named("review", "check"));
            }
            peer.send(BytePeer.PING, 7);
            peer.readPreface();
            peer.read(BytePeer.PONG, BytePeer.PONG);
            Calls calls = calls(client, server.port());
            // the test does not check what an Error ends besides its call
            await().dontCatchUncaughtExceptions()
                    .atMost(10, TimeUnit.SECONDS)
                    .until(() -> !hasFailed(within(1000, () -> calls.hello("good"))));
            for (int i = 0; i < 20; i++) {
                assertThat(calls.wait("good")).isEqualTo("good");
            }
        }
    }

    @Test
    void point6AnErrorWhileAResultIsDecodedEndsItsCallOnly() throws Exception {
        hurtsItsCallOnly(Unreadable::checked, new byte[0]);
    }

    @Test
    void point6AResultWhoseClassCannotBeInitialisedEndsItsCallOnly() throws Exception {
        hurtsItsCallOnly(Unreadable::broken, THREE);
    }

    private static void hurtsItsCallOnly(Function<Unreadable, CompletableFuture<?>> call, byte[] result)
            throws Exception {
        try (ServerSocket listening = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Unreadable calls = client.create(Unreadable.class, "127.0.0.1", listening.getLocalPort());
            CompletableFuture<?> hurt = call.apply(calls);
            try (BytePeer peer = BytePeer.server(listening, 8)) {
                peer.send(
                        BytePeer.REPLY,
                        peer.read(BytePeer.REQUEST, BytePeer.REQUEST).id(),
                        result);
                assertThat(hasFailed(hurt)).isTrue();
                CompletableFuture<String> next = calls.hello("next");
                peer.send(
                        BytePeer.REPLY,
                        peer.read(BytePeer.REQUEST, BytePeer.REQUEST).id(),
                        BytePeer.text("next"));
                assertThat(join(next)).isEqualTo("next");
            }
        }
    }

    @Test
    void point7AParameterThatMayBeNullOnOneSideIsRefused() {
        try (Server server = server();
                Client client = Client.standard()) {
            Nulls calls = client.create(Nulls.class, "127.0.0.1", server.port());
            assertThatThrownBy(() -> calls.sameOrNull(new Pair("Bob", "Eve"))).isInstanceOf(RPCXException.class);
        }
    }

    @Test
    void point7AResultThatMayBeAbsentOnOneSideIsRefused() {
        try (Server server = server();
                Client client = Client.standard()) {
            Calls calls = calls(client, server.port());
            assertThatThrownBy(calls::nobody).isInstanceOf(RPCXException.class);
        }
    }

    @Test
    void point8TheTimeOfACallDoesNotGrowWhileItsClientConnects() throws Exception {
        try (Server server = server();
                Client client = Client.standard()) {
            Calls calls = calls(client, server.port());
            assertThat(join(within(2000, calls::remaining))).isBetween(0L, TimeUnit.MILLISECONDS.toNanos(2000));
        }
    }

    @Test
    void point8TheTimeOfAHedgedCallDoesNotGrow() throws Exception {
        try (Server server = server();
                Client client = Client.standard()) {
            Calls calls = calls(client, server.port());
            assertThat(calls.wait("connected")).isEqualTo("connected");
            assertThat(join(within(2000, calls::hedged))).isBetween(0L, TimeUnit.MILLISECONDS.toNanos(2000));
        }
    }

    @Test
    void point8TheTimeSpentConnectingIsTakenOff() throws Exception {
        try (ServerSocket listening = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            CompletableFuture<String> call = calls.hello("x");
            // the call has 10 s, and part of this time passes while it waits for the first message of the server
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1000));
            try (BytePeer peer = BytePeer.server(listening, 8)) {
                assertThat(peer.read(BytePeer.REQUEST, BytePeer.REQUEST).micros())
                        .isBetween(1L, TimeUnit.MILLISECONDS.toMicros(9100));
            }
            assertThat(hasFailed(call)).isTrue();
        }
    }

    @Test
    void point8TheTimeOfACallThatIsMadeAgainDoesNotGrow() throws Exception {
        long most = TimeUnit.MILLISECONDS.toMicros(2000);
        try (ServerSocket listening = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            CompletableFuture<String> before = calls.hello("connected");
            try (BytePeer peer = BytePeer.server(listening, 8)) {
                BytePeer.Frame request = peer.read(BytePeer.REQUEST, BytePeer.REQUEST);
                peer.send(BytePeer.REPLY, request.id(), BytePeer.text("connected"));
                assertThat(join(before)).isEqualTo("connected");
                CompletableFuture<String> call = within(2000, calls::unavailableOnceLater);
                request = peer.read(BytePeer.REQUEST, BytePeer.REQUEST);
                assertThat(request.micros()).as("the first time").isBetween(1L, most);
                peer.send(BytePeer.ERROR, request.id(), UNAVAILABLE);
                request = peer.read(BytePeer.REQUEST, BytePeer.REQUEST);
                assertThat(request.micros()).as("the second time").isBetween(1L, most);
                peer.send(BytePeer.REPLY, request.id(), BytePeer.text("done"));
                assertThat(join(call)).isEqualTo("done");
            }
        }
    }

    @Test
    void point8AStreamHasTheTimeOfTheCallThatItWasMadeIn() throws Exception {
        try (ServerSocket listening = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            CallContext.within(Duration.ofMillis(2000), calls::numbers).subscribe(new Asking<>(1));
            try (BytePeer peer = BytePeer.server(listening, 8)) {
                assertThat(peer.read(BytePeer.REQUEST, BytePeer.REQUEST).micros())
                        .isBetween(1L, TimeUnit.MILLISECONDS.toMicros(2000));
            }
        }
    }

    @Test
    void point9AnInterruptDoesNotMeetTheNextCall() {
        try (Server server = server();
                Client client = Client.standard()) {
            Calls calls = calls(client, server.port());
            for (int i = 0; i < 200; i++) {
                assertThat(calls.interrupts()).isEqualTo("done");
                assertThat(calls.sleeps()).isEqualTo("slept");
            }
        }
    }

    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    @Order(1)
    void point9AThreadThatHasBeenInterruptedRests() {
        try (Server server = server();
                Client client = Client.standard()) {
            Calls calls = calls(client, server.port());
            assertThat(calls.wait("connected")).isEqualTo("connected");
            long before = processorMillisOf(2000);
            assertThat(calls.interrupts()).isEqualTo("done");
            assertThat(processorMillisOf(2000) - before)
                    .as("processor time of 2 s, more than before")
                    .isLessThan(500);
        }
    }

    @Test
    @Order(LAST)
    void point9AsManyInterruptsAsThereAreCarriersHangNobody() throws Exception {
        try (Server server =
                        started(Server.builder(RegistryServer.registry(service)).maxRunning(10 * INTERRUPTING));
                Client client = Client.standard()) {
            Calls calls = calls(client, server.port());
            assertThat(calls.wait("connected")).isEqualTo("connected");
            List<CompletableFuture<String>> together = new ArrayList<>();
            for (int i = 0; i < INTERRUPTING; i++) {
                together.add(within(5000, calls::interruptsWithOthers));
            }
            for (CompletableFuture<String> each : together) {
                assertThat(join(each)).isEqualTo("done");
            }
            assertThat(join(within(5000, () -> calls.hello("good")))).isEqualTo("good");
        }
    }

    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    void point10CallersInAHurryTakeNothingFromTheOthers() throws Exception {
        AtomicInteger good = new AtomicInteger();
        AtomicInteger answered = new AtomicInteger();
        ScheduledExecutorService clock = Executors.newScheduledThreadPool(1);
        try (Server server = server();
                Client hurried = Client.standard();
                Client client = Client.standard()) {
            Calls fast = calls(hurried, server.port());
            Calls calls = calls(client, server.port());
            fast.wait("connected");
            calls.wait("connected");
            AtomicInteger ticks = new AtomicInteger();
            clock.scheduleAtFixedRate(
                    () -> {
                        for (int i = 0; i < 30; i++) {
                            within(5, fast::works).exceptionally(late -> "late");
                        }
                        for (int i = 0; i < 10; i++) {
                            good.incrementAndGet();
                            within(2000, calls::works).thenRun(answered::incrementAndGet);
                        }
                        ticks.incrementAndGet();
                    },
                    0,
                    10,
                    TimeUnit.MILLISECONDS);
            await().atMost(30, TimeUnit.SECONDS).until(() -> ticks.get() >= 800);
            clock.shutdown();
            await().atMost(10, TimeUnit.SECONDS)
                    .untilAsserted(() -> assertThat(answered.get()).isGreaterThan(good.get() * 9 / 10));
        } finally {
            clock.shutdownNow();
        }
    }

    @Test
    void point11APublisherThatBlocksHoldsUpNobody() {
        try (Server server =
                        started(Server.builder(RegistryServer.registry(service)).eventLoops(1));
                Client client = Client.standard();
                Client other = Client.standard()) {
            Calls calls = calls(other, server.port());
            calls.wait("connected");
            Asking<Integer> asking = new Asking<>(1) {
                @Override
                public void onNext(Integer item) {
                    begun.join().request(1);
                }
            };
            calls(client, server.port()).numbers().subscribe(asking);
            await().atMost(10, TimeUnit.SECONDS).until(() -> service.asked.get() == 2);
            for (int i = 0; i < 20; i++) {
                assertThatCode(() -> join(within(2000, () -> calls.hello("good"))))
                        .doesNotThrowAnyException();
            }
            service.blocked.countDown();
        } finally {
            service.blocked.countDown();
        }
    }

    private Server requiring() {
        return started(Server.builder(RegistryServer.registry(service)).interceptor(Tokens.requiring(name -> SECRET)));
    }

    private static Client signing(String name, Interceptor... others) {
        Client.Builder builder = Client.builder().interceptor(Tokens.signing(name, SECRET));
        for (Interceptor other : others) {
            builder.interceptor(other);
        }
        return builder.build();
    }

    private static Interceptor keepingBack(AtomicReference<String> token) {
        return (call, next) -> {
            token.set(call.metadata().get("rpcx-token"));
            return "kept back";
        };
    }

    private static String callerWith(String token, int port) {
        try (Client client = Client.builder()
                .interceptor((call, next) -> next.proceed(call.with("rpcx-token", token)))
                .build()) {
            return calls(client, port).caller();
        }
    }

    @Test
    void point12ARetryHasATokenOfItsOwn() {
        try (Server server = requiring();
                Client client = signing("caller")) {
            assertThat(calls(client, server.port()).unavailableOnce()).isEqualTo("done");
        }
    }

    @Test
    void point12AHedgedCallHasTokensOfItsOwn() throws Exception {
        try (Server server = requiring();
                Client client = signing("caller")) {
            Calls calls = calls(client, server.port());
            assertThat(calls.wait("connected")).isEqualTo("connected");
            // the first attempt is answered only after this, so the answer of the hedge comes before it
            assertThat(join(calls.hedged())).isPositive();
            service.answered.countDown();
        }
    }

    @Test
    void point12WhatAnInterceptorRefusesHasNotBeenExecuted() {
        try (Server server = requiring();
                Client client = Client.standard()) {
            Calls calls = calls(client, server.port());
            assertThatThrownBy(() -> calls.wait("stranger"))
                    .isInstanceOfSatisfying(
                            RPCXException.class,
                            e -> assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED));
        }
    }

    /**
     * The gateway calls a service with a chosen name. The token that it has signed for that call is presented to
     * another service.
     */
    @Test
    void point12TheNameOfAServiceIsNoNameOfACaller() {
        AtomicReference<String> token = new AtomicReference<>();
        try (Server server = started(Server.builder(RegistryServer.registry(service))
                        .interceptor(Tokens.requiring(name -> SECRET, "gateway"::equals)));
                Client gateway = signing("gateway", keepingBack(token))) {
            gateway.create(Chosen.class, "127.0.0.1", server.port()).caller();
            // the signature follows the last dot, if there is one
            int end = Math.max(token.get().lastIndexOf('.'), 0);
            String forged =
                    token.get().substring(0, end) + ".YWRtaW4" + token.get().substring(end);
            assertThatThrownBy(() -> callerWith(forged, server.port())).isInstanceOf(RPCXException.class);
        }
    }

    @Test
    void point12ATokenIsGoodForOneServerOfAProcess() {
        AtomicReference<String> token = new AtomicReference<>();
        try (Server one = requiring();
                Server two = requiring();
                Client client = signing("caller", keepingBack(token))) {
            calls(client, one.port()).caller();
            assertThat(callerWith(token.get(), one.port())).isEqualTo("caller");
            assertThatThrownBy(() -> callerWith(token.get(), two.port())).isInstanceOf(RPCXException.class);
        }
    }

    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    void point13WhatRepliesWereReadIntoIsGivenBackAtClose() throws Exception {
        isGivenBack(Client::close);
    }

    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    void point13WhatRepliesWereReadIntoIsGivenBackBeforeClose() throws Exception {
        isGivenBack(client -> {});
    }

    private void isGivenBack(Consumer<Client> end) throws Exception {
        long before = heapAfterCollection();
        try (Server server = server();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = calls(client, server.port());
            List<CompletableFuture<byte[]>> replies = new ArrayList<>();
            for (int i = 0; i < LARGE; i++) {
                replies.add(calls.large());
            }
            for (CompletableFuture<byte[]> each : replies) {
                assertThat(join(each)).hasSize(100_000);
            }
            replies.clear();
            end.accept(client);
            await().atMost(10, TimeUnit.SECONDS)
                    .untilAsserted(
                            () -> assertThat(heapAfterCollection() - before).isLessThan(LARGE * 100_000 / 2));
            assertThat(calls).isNotNull();
        }
    }

    /** The same number of elements with different hashes shows what such elements cost on this machine. */
    @Test
    @Order(LAST - 1)
    void point14EqualHashesTakeNoMoreThanTheTimeOfTheCall() throws Exception {
        byte[][] elements = new byte[60_000][];
        for (int i = 0; i < elements.length; i++) {
            byte[] number = BytePeer.varint(i + 1);
            elements[i] = BytePeer.bytes(new byte[] {0x0A, (byte) (1 + number.length), 8}, number);
        }
        byte[] body = BytePeer.bytes(elements);
        try (Server server = server()) {
            long before = processorMillis();
            try (BytePeer peer = calling(server, "distinctOwn", 20_000, body)) {
                assertThat(peer.answer().type()).isEqualTo(BytePeer.REPLY);
            }
            long between = processorMillis();
            try (BytePeer peer = calling(server, "distinct", 1000, body)) {
                peer.socket.setSoTimeout(6_000);
                peer.answer();
            } catch (SocketTimeoutException late) {
                // the cost until now is sufficient for the comparison
            }
            assertThat(processorMillis() - between)
                    .as("milliseconds of processor time for equal hashes (for others: %d)", between - before)
                    .isLessThan(between - before + 2000);
        }
    }

    @Test
    void point14ElementsOfTwoBytesDoNotBecomeObjectsAHundredTimesAsLarge() throws Exception {
        assumeHeapOfOneGigabyte();
        byte[] body = new byte[2_000_000];
        for (int i = 0; i < body.length; i += 2) {
            body[i] = 0x0A;
        }
        try (Server server = server();
                BytePeer peer = calling(server, "count", 20_000, body)) {
            assertThat(peer.answer().type()).isEqualTo(BytePeer.ERROR);
        }
    }

    /** Makes a client that has sent one request, in as many parts as the request needs. */
    private static BytePeer calling(Server server, String method, long millis, byte[] body) throws IOException {
        BytePeer peer = BytePeer.client(server.port());
        int part = 16_000;
        peer.gather(
                BytePeer.REQUEST | BytePeer.NAMED | BytePeer.TIME | BytePeer.MORE,
                FIRST,
                BytePeer.named("review", method),
                BytePeer.varint(TimeUnit.MILLISECONDS.toMicros(millis)));
        for (int from = 0; from < body.length; from += part) {
            int to = Math.min(body.length, from + part);
            peer.gather(
                    to == body.length ? BytePeer.PART : BytePeer.PART | BytePeer.MORE,
                    FIRST,
                    Arrays.copyOfRange(body, from, to));
        }
        peer.send(BytePeer.PING, 1);
        peer.readPreface();
        return peer;
    }

    @Test
    void point15NumbersDoNotDependOnTheThreadThatMakesAClient(@TempDir Path folder) throws Exception {
        Path lock = folder.resolve("META-INF/rpcx/schema.lock");
        Files.createDirectories(lock.getParent());
        Files.writeString(lock, "message " + Pair.class.getName() + "\n  2 first string\n  1 second string\n");
        Thread thread = Thread.currentThread();
        ClassLoader own = thread.getContextClassLoader();
        try (ServerSocket listening = BytePeer.listen();
                URLClassLoader other =
                        new URLClassLoader(new URL[] {folder.toUri().toURL()}, null)) {
            Client client;
            Calls calls;
            thread.setContextClassLoader(other);
            try {
                client = Client.standard();
                calls = calls(client, listening.getLocalPort());
            } finally {
                thread.setContextClassLoader(own);
            }
            CompletableFuture<Pair> caller = CompletableFuture.supplyAsync(() -> calls.same(new Pair("a", "b")));
            try (client;
                    BytePeer peer = BytePeer.server(listening, 8)) {
                byte[] payload = peer.read(BytePeer.REQUEST, BytePeer.REQUEST).payload();
                byte[] end = Arrays.copyOfRange(payload, payload.length - 6, payload.length);
                assertThat(end).containsExactly(0x0A, 1, 'a', 0x12, 1, 'b');
            }
            hasFailed(caller);
        }
    }

    @Test
    void point16EqualNamesAreEqual() {
        assertThat(Endpoints.dns("localhost", 80)).isEqualTo(Endpoints.dns("localhost", 80));
    }

    @Test
    void point16InstancesByNameAreLookedUpOnceForAll() {
        try (Server server = server();
                Client client = Client.standard()) {
            client.create(Calls.class, Endpoints.dns("localhost", server.port()))
                    .wait("connected");
            int before = Thread.getAllStackTraces().size();
            for (int i = 0; i < 50; i++) {
                client.create(Calls.class, Endpoints.dns("localhost", server.port()))
                        .wait("good");
            }
            assertThat(Thread.getAllStackTraces().size() - before).isLessThan(20);
        }
    }

    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    void point17CloseEndsAlsoWhereACallbackDoesNot() throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        try (Server server = server()) {
            Client client = Client.builder().keepAlive(Duration.ofSeconds(1)).build();
            CountDownLatch held = new CountDownLatch(1);
            calls(client, server.port()).works().thenRun(() -> {
                held.countDown();
                while (over.getCount() > 0) {
                    Thread.onSpinWait();
                }
            });
            held.await();
            Thread closing = new Thread(client::close);
            closing.setDaemon(true);
            closing.start();
            closing.join(20_000);
            assertThat(closing.isAlive()).isFalse();
        } finally {
            over.countDown();
        }
    }

    /** The 65,535th later call in the same slot uses the id again. */
    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    void point17AStreamThatIsCancelledBehindItsEndMeetsNoOtherCall() throws Exception {
        try (ServerSocket listening = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            Asking<Integer> asking = new Asking<>(1);
            calls.numbers().subscribe(asking);
            try (BytePeer peer = BytePeer.server(listening, 8)) {
                int stream = peer.read(BytePeer.REQUEST, BytePeer.REQUEST).id();
                peer.send(BytePeer.REPLY, stream);
                join(asking.end);
                CompletableFuture<String> next = calls.hello("next");
                int id = peer.read(BytePeer.REQUEST, BytePeer.REQUEST).id();
                for (int i = 0; i < 1 << 16 && id != stream; i++) {
                    peer.send(BytePeer.REPLY, id, BytePeer.text("next"));
                    join(next);
                    next = calls.hello("next");
                    id = peer.read(BytePeer.REQUEST, BytePeer.REQUEST).id();
                }
                assertThat(id).isEqualTo(stream);
                join(asking.begun).cancel();
                CompletableFuture<String> last = calls.hello("last");
                BytePeer.Frame frame = peer.read(BytePeer.REQUEST, BytePeer.CANCEL);
                assertThat(frame.type()).isEqualTo(BytePeer.REQUEST);
                peer.send(BytePeer.REPLY, id, BytePeer.text("next"));
                peer.send(BytePeer.REPLY, frame.id(), BytePeer.text("last"));
                assertThat(join(next)).isEqualTo("next");
                assertThat(join(last)).isEqualTo("last");
            }
        }
    }

    @Test
    void point17APublisherIsCancelledWhenItsCallHasEnded() throws Exception {
        int before = 100;
        // whether the caller itself reads a reply is a race with the event loop
        int uploads = 20;
        AtomicInteger cancelled = new AtomicInteger();
        BlockingQueue<String> subscribed = new LinkedBlockingQueue<>();
        BlockingQueue<Integer> sums = new LinkedBlockingQueue<>();
        try (ServerSocket listening = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            Thread caller = new Thread(() -> {
                for (int i = 0; i < before; i++) {
                    // a caller that is alone on its connection reads its replies itself after some calls
                    calls.wait("alone");
                }
                for (int i = 0; i < uploads; i++) {
                    sums.add(calls.sum(subscriber -> {
                        subscriber.onSubscribe(new Flow.Subscription() {
                            @Override
                            public void request(long items) {}

                            @Override
                            public void cancel() {
                                cancelled.incrementAndGet();
                            }
                        });
                        subscribed.add("subscribed");
                    }));
                }
            });
            caller.start();
            try (BytePeer peer = BytePeer.server(listening, 8)) {
                for (int i = 0; i < before; i++) {
                    BytePeer.Frame frame = peer.read(BytePeer.REQUEST, BytePeer.REQUEST);
                    peer.send(BytePeer.REPLY, frame.id(), BytePeer.text("alone"));
                }
                for (int i = 0; i < uploads; i++) {
                    int id = peer.read(BytePeer.REQUEST, BytePeer.REQUEST).id();
                    // if its call has ended before, a publisher is not subscribed to
                    assertThat(subscribed.poll(10, TimeUnit.SECONDS)).isNotNull();
                    peer.send(BytePeer.REPLY, id, THREE);
                    assertThat(sums.poll(10, TimeUnit.SECONDS)).isEqualTo(3);
                }
                await().atMost(10, TimeUnit.SECONDS)
                        .untilAsserted(() -> assertThat(cancelled.get()).isEqualTo(uploads));
            }
            caller.join();
        }
    }

    @Test
    void point17ATrialThatIsCancelledClosesNoCircuit() throws Exception {
        try (ServerSocket listening = BytePeer.listen();
                Client client =
                        Client.builder().connections(1).circuitBreaker(0.5).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            CompletableFuture<String> first = calls.hello("first");
            try (BytePeer peer = BytePeer.server(listening, 4096)) {
                // the connection is established, and takes nothing of the time of the calls that follow
                int id = peer.read(BytePeer.REQUEST, BytePeer.REQUEST).id();
                peer.send(BytePeer.REPLY, id, BytePeer.text("first"));
                assertThat(join(first)).isEqualTo("first");
                AtomicInteger requests = new AtomicInteger();
                counting(peer, requests);
                AtomicInteger silent = new AtomicInteger();
                // if the loop stands still while their time passes, the ends of the calls say nothing and open no
                // circuit
                Again.upToFiveTimes(25, () -> {
                    List<CompletableFuture<String>> round = new ArrayList<>();
                    for (int i = 0; i < 40; i++) {
                        round.add(silent(calls));
                    }
                    for (CompletableFuture<String> each : round) {
                        silent.addAndGet(isSentInVain(each) ? 1 : 0);
                    }
                    boolean isNextSent = isSentInVain(silent(calls));
                    silent.addAndGet(isNextSent ? 1 : 0);
                    assertThat(isNextSent).isFalse();
                });
                int sentBefore = silent.get();
                await().until(() -> requests.get() == sentBefore);
                AtomicReference<CompletableFuture<String>> trial = new AtomicReference<>();
                await().atMost(10, TimeUnit.SECONDS).until(() -> {
                    trial.set(calls.hello("trial"));
                    return !trial.get().isDone();
                });
                await().until(() -> requests.get() == sentBefore + 1);
                trial.get().cancel(true);
                AtomicInteger sent = new AtomicInteger();
                long began = System.nanoTime();
                await().during(300, TimeUnit.MILLISECONDS)
                        .atMost(10, TimeUnit.SECONDS)
                        .pollInterval(10, TimeUnit.MILLISECONDS)
                        .until(() -> {
                            if (!calls.hello("next").isDone()) {
                                sent.incrementAndGet();
                            }
                            // another trial may follow the one that showed nothing, and one more after each second
                            return sent.get() <= 2 + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - began);
                        });
            }
        }
    }

    private static CompletableFuture<String> silent(Calls calls) {
        return within(500, () -> calls.hello("silence"));
    }

    /**
     * Returns whether the call has been sent, and has not been refused by the circuit breaker. The call has to fail.
     */
    private static boolean isSentInVain(CompletableFuture<String> call) throws Exception {
        Throwable thrown = join(call.handle((value, failed) -> failed));
        assertThat(thrown).isInstanceOf(RPCXException.class);
        return ((RPCXException) thrown).executed() != RPCXException.Executed.NOT_EXECUTED;
    }

    private static void counting(BytePeer peer, AtomicInteger requests) {
        inBackground(() -> {
            try {
                while (true) {
                    BytePeer.Frame frame = peer.read(BytePeer.REQUEST, BytePeer.CANCEL);
                    if (frame.type() == BytePeer.REQUEST) {
                        requests.incrementAndGet();
                    } else {
                        peer.send(BytePeer.ERROR, frame.id(), CANCELLED);
                    }
                }
            } catch (IOException closed) {
                // the test is over
            }
        });
    }

    @Test
    void point17StreamsAreCallsForTheCircuitToo() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        try (ServerSocket listening = BytePeer.listen();
                Client client =
                        Client.builder().connections(1).circuitBreaker(0.5).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            Asking<Integer> first = new Asking<>(1);
            calls.numbers().subscribe(first);
            try (BytePeer peer = BytePeer.server(listening, 4096)) {
                inBackground(() -> {
                    try {
                        while (true) {
                            BytePeer.Frame frame = peer.read(BytePeer.REQUEST, BytePeer.REQUEST);
                            asked.incrementAndGet();
                            peer.send(BytePeer.ERROR, frame.id(), UNAVAILABLE);
                        }
                    } catch (IOException closed) {
                        // the test is over
                    }
                });
                assertThat(hasFailed(first.end)).isTrue();
                for (int i = 0; i < 100; i++) {
                    Asking<Integer> next = new Asking<>(1);
                    calls.numbers().subscribe(next);
                    assertThat(hasFailed(next.end)).isTrue();
                }
                assertThat(asked.get()).isLessThan(50);
            }
        }
    }

    @Test
    void point17StreamsAreCallsForTheHealthOfAnInstanceToo() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        try (ServerSocket good = BytePeer.listen();
                ServerSocket bad = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = client.create(
                    Calls.class,
                    Endpoints.of(
                            new Endpoint("127.0.0.1", good.getLocalPort()),
                            new Endpoint("127.0.0.1", bad.getLocalPort())));
            answering(good, new AtomicInteger(), BytePeer.REPLY);
            answering(bad, asked, BytePeer.ERROR, UNAVAILABLE);
            // this loop runs until both are connected
            await().atMost(20, TimeUnit.SECONDS).until(() -> endOfStream(calls) && asked.get() > 0);
            asked.set(0);
            for (int i = 0; i < 200; i++) {
                endOfStream(calls);
            }
            assertThat(asked.get()).isLessThan(50);
        }
    }

    /** @return always true */
    private static boolean endOfStream(Calls calls) throws Exception {
        Asking<Integer> asking = new Asking<>(1);
        calls.numbers().subscribe(asking);
        hasFailed(asking.end);
        return true;
    }

    private static void answering(ServerSocket listening, AtomicInteger asked, int type, byte... answer) {
        inBackground(() -> {
            try (BytePeer peer = BytePeer.server(listening, 4096)) {
                while (true) {
                    BytePeer.Frame frame = peer.read(BytePeer.REQUEST, BytePeer.REQUEST);
                    asked.incrementAndGet();
                    peer.send(type, frame.id(), answer);
                }
            } catch (IOException closed) {
                // the test is over
            }
        });
    }

    public enum Colour {
        RED,
        ORANGE,
        YELLOW,
        GREEN,
        BLUE,
        INDIGO,
        VIOLET,
        BLACK,
        WHITE,
        GREY
    }

    @RPCXServer("routed")
    public static class Routed {
        private final String name;

        Routed(String name) {
            this.name = name;
        }

        @Method
        public String who(Colour colour) {
            return name;
        }

        @Method
        public String any() {
            return name;
        }
    }

    @RPCXClient(remoteServerName = "routed")
    public interface Who {
        String who(@RouteBy Colour colour);

        String any();
    }

    /** Returns which of these servers has each colour. It runs in a process or a class loader of its own. */
    public static String routes(int[] ports) {
        StringBuilder all = new StringBuilder();
        try (Client client = Client.builder().choice(Choice.CONSISTENT_HASH).build()) {
            Who who = client.create(
                    Who.class, Endpoints.of(new Endpoint("127.0.0.1", ports[0]), new Endpoint("127.0.0.1", ports[1])));
            // an instance that is not connected yet is skipped; calls without a key go to all connected instances
            Set<String> connected = new HashSet<>();
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
            while (connected.size() < ports.length && System.nanoTime() < until) {
                connected.add(who.any());
            }
            for (Colour colour : Colour.values()) {
                all.append(who.who(colour));
            }
        }
        return all.toString();
    }

    @Test
    void point17AnEnumGoesToTheSameInstanceInEachProcess() throws Exception {
        List<URL> path = new ArrayList<>();
        for (String each : System.getProperty("java.class.path").split(File.pathSeparator)) {
            path.add(new File(each).toURI().toURL());
        }
        try (Server one = started(Server.builder(RegistryServer.registry(new Routed("1"))));
                Server two = started(Server.builder(RegistryServer.registry(new Routed("2"))));
                URLClassLoader other =
                        new URLClassLoader(path.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
            int[] ports = {one.port(), two.port()};
            Object there = Class.forName(ReviewTest.class.getName(), true, other)
                    .getMethod("routes", int[].class)
                    .invoke(null, (Object) ports);
            assertThat(there).isEqualTo(routes(ports));
        }
    }

    @Test
    void point17CallersThatGiveUpOftenAreHonest() throws Exception {
        try (Server server = server();
                BytePeer peer = BytePeer.client(server.port())) {
            peer.readPreface();
            for (int round = 1; round <= 12; round++) {
                for (int slot = 0; slot < 1000; slot++) {
                    int id = round << 16 | slot;
                    peer.gather(
                            BytePeer.REQUEST | BytePeer.NAMED,
                            id,
                            BytePeer.named("review", "hello"),
                            BytePeer.text("gone"));
                    peer.gather(BytePeer.CANCEL, id);
                }
                peer.send(BytePeer.CANCEL, 0xFFFF);
                for (int slot = 0; slot < 1000; slot++) {
                    assertThat(peer.answer().id() >>> 16).isEqualTo(round);
                }
            }
        }
    }

    /** When the peer reads at the end, it finds what the client has kept for it. */
    @Test
    @EnabledIfSystemProperty(named = "rpcx.long", matches = "true")
    void point17APeerThatPingsAndReadsNothingFillsNoMemory() throws Exception {
        int last = 12_345_678;
        try (ServerSocket listening = BytePeer.listen();
                Client client = Client.builder().connections(1).build()) {
            Calls calls = calls(client, listening.getLocalPort());
            CompletableFuture<String> call = within(60_000, () -> calls.hello("here"));
            try (BytePeer peer = BytePeer.server(listening, 8)) {
                peer.read(BytePeer.REQUEST, BytePeer.REQUEST);
                long kept = 0;
                try {
                    // this sends 48 MB
                    for (int i = 0; i < 8000; i++) {
                        for (int k = 0; k < 1000; k++) {
                            peer.gather(BytePeer.PING, k);
                        }
                        peer.send(BytePeer.PING, 1);
                    }
                    peer.send(BytePeer.PING, last);
                    kept = peer.bytesUntil(BytePeer.PONG, last);
                } catch (IOException ended) {
                    // a client may end the connection of a server that does so
                }
                // the sockets of both sides keep some of the bytes
                assertThat(kept).isLessThan(16 << 20);
                assertThat(call).isNotNull();
            }
        }
    }
}
