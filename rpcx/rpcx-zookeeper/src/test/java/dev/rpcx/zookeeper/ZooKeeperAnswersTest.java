package dev.rpcx.zookeeper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.text.MessageFormat;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whatever ZooKeeper answers, a registration and a watch go on: each question fails with each code for a while. */
@Timeout(60)
class ZooKeeperAnswersTest {
    private static final String PATH = "/services/greeter";

    /** A session whose answers are the test's. */
    @SuppressWarnings("try") // its close can be interrupted
    private static final class Answering extends ZooKeeper {
        volatile Code children = Code.OK;
        volatile Code exists = Code.OK;
        volatile Code node = Code.OK;
        volatile Code parent = Code.OK;
        final AtomicInteger nodes = new AtomicInteger();
        final AtomicInteger lists = new AtomicInteger();
        volatile @Nullable Watcher watcher;
        volatile boolean isWatched;

        /** Makes a session to an address at which nobody listens. */
        Answering() throws IOException {
            super("127.0.0.1:1", 10_000, event -> {});
        }

        @Override
        public void getChildren(String path, Watcher watching, AsyncCallback.ChildrenCallback told, Object context) {
            lists.incrementAndGet();
            told.processResult(children.intValue(), path, context, List.of("127.0.0.1:9000@a"));
        }

        @Override
        public void exists(String path, Watcher watching, AsyncCallback.StatCallback told, Object context) {
            watcher = watching;
            isWatched |= exists == Code.OK;
            told.processResult(exists.intValue(), path, context, own());
        }

        @Override
        public void exists(String path, boolean watch, AsyncCallback.StatCallback told, Object context) {
            told.processResult(exists.intValue(), path, context, own());
        }

        private Stat own() {
            Stat stat = new Stat();
            stat.setEphemeralOwner(getSessionId());
            return stat;
        }

        @Override
        public void create(
                String path,
                byte[] data,
                List<ACL> acl,
                CreateMode mode,
                AsyncCallback.StringCallback told,
                Object context) {
            if (mode == CreateMode.EPHEMERAL) {
                nodes.incrementAndGet();
            }
            told.processResult((mode == CreateMode.EPHEMERAL ? node : parent).intValue(), path, context, path);
        }
    }

    private static final class Heard implements Endpoints.Listener {
        final AtomicInteger found = new AtomicInteger();
        final AtomicInteger failed = new AtomicInteger();

        @Override
        public void found(List<Endpoint> all) {
            found.incrementAndGet();
        }

        @Override
        public void failed(Throwable why) {
            failed.incrementAndGet();
        }
    }

    private static ZooKeeperRegistration registration() {
        return ZooKeeperRegistration.of("127.0.0.1:1", PATH, new Endpoint("127.0.0.1", 9000));
    }

    /** Returns the codes that an open connection may bring, without those that mean what is asked for. */
    private static List<Code> codesBut(Code... meant) {
        List<Code> codes = new ArrayList<>(List.of(Code.values()));
        // after these codes, the next connection begins anew
        codes.removeAll(List.of(Code.CONNECTIONLOSS, Code.SESSIONEXPIRED, Code.AUTHFAILED));
        codes.removeAll(List.of(meant));
        return codes;
    }

    /** Begins to register at one session for each code, which answers so. Then each answers that the node is made. */
    private static void assertRegisteredAfter(List<Code> codes, BiConsumer<Answering, Code> before) throws Exception {
        List<AutoCloseable> all = new ArrayList<>();
        Map<Code, Answering> sessions = new LinkedHashMap<>();
        try {
            for (Code code : codes) {
                Answering session = new Answering();
                ZooKeeperRegistration registration = registration();
                all.add(registration);
                all.add(session);
                sessions.put(code, session);
                before.accept(session, code);
                registration.connected(session);
                session.node = Code.OK;
                session.exists = Code.OK;
            }
            sessions.forEach((code, session) ->
                    await(code.toString()).until(() -> session.isWatched && session.nodes.get() > 1));
        } finally {
            closeAll(all);
        }
    }

    /** Closes all at the same time, since a session that has never been connected takes a second to end. */
    private static void closeAll(List<? extends AutoCloseable> all) throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        List<Callable<@Nullable Void>> closes = new ArrayList<>();
        for (AutoCloseable each : all) {
            closes.add(() -> {
                each.close();
                return null;
            });
        }
        for (Future<@Nullable Void> closed : threads.invokeAll(closes)) {
            closed.get();
        }
        threads.shutdown();
    }

    @Test
    void aParentThatCannotBeMadeIsTriedAgain() throws Exception {
        assertRegisteredAfter(codesBut(Code.OK, Code.NODEEXISTS), (session, code) -> {
            session.node = Code.NONODE;
            session.parent = code;
        });
    }

    @Test
    void aNodeThatCannotBeMadeIsTriedAgain() throws Exception {
        assertRegisteredAfter(codesBut(Code.OK, Code.NONODE, Code.NODEEXISTS), (session, code) -> session.node = code);
    }

    @Test
    void aNodeThatCannotBeLookedAtIsLookedAtAgain() throws Exception {
        assertRegisteredAfter(codesBut(Code.OK, Code.NONODE), (session, code) -> {
            session.node = Code.NODEEXISTS;
            session.exists = code;
        });
    }

    @Test
    void aPathThatCannotBeWaitedForIsAskedForAgain() throws Exception {
        List<Answering> sessions = new ArrayList<>();
        Map<Code, Heard> heards = new LinkedHashMap<>();
        try {
            for (Code code : codesBut(Code.OK, Code.NONODE)) {
                Answering session = new Answering();
                sessions.add(session);
                Heard heard = new Heard();
                heards.put(code, heard);
                session.children = Code.NONODE;
                session.exists = code;
                new ZooKeeperEndpoints.Asking(PATH, heard).connected(session);
                assertThat(heard.failed).hasPositiveValue();
                session.children = Code.OK;
            }
            heards.forEach((code, heard) -> await(code.toString()).until(() -> heard.found.get() > 0));
        } finally {
            closeAll(sessions);
        }
    }

    @Test
    void aNodeThatSomebodyElseTakesAwayIsMadeAgain() throws Exception {
        Answering session = new Answering();
        try (ZooKeeperRegistration registration = registration()) {
            registration.connected(session);
            assertThat(session.nodes).hasValue(1);
            Watcher watching = session.watcher;
            assertThat(watching).isNotNull();
            watching.process(new WatchedEvent(
                    Watcher.Event.EventType.NodeDeleted, Watcher.Event.KeeperState.SyncConnected, PATH));
            assertThat(session.nodes).hasValue(2);
        } finally {
            session.close();
        }
    }

    private static void awaitTime(long millis) {
        long began = System.nanoTime();
        await().until(() -> System.nanoTime() - began > millis * 1_000_000);
    }

    @Test
    void aRetryOfASessionThatIsOverLeavesTheNextOneAlone() throws Exception {
        await().pollDelay(Duration.ZERO)
                .atMost(Duration.ofSeconds(30))
                .until(ZooKeeperAnswersTest::isTheSessionOverBeforeItsRetryWhichIsLeftOut);
    }

    /** Returns false where the next session came only when the retry of the one before was due already. */
    private static boolean isTheSessionOverBeforeItsRetryWhichIsLeftOut() throws Exception {
        Answering over = new Answering();
        Answering next = new Answering();
        try {
            ZooKeeperEndpoints.Asking asking = new ZooKeeperEndpoints.Asking(PATH, new Heard());
            over.children = Code.NOAUTH;
            long began = System.nanoTime();
            asking.connected(over);
            asking.connected(next);
            if (System.nanoTime() - began >= TimeUnit.SECONDS.toNanos(1)) {
                return false;
            }
            awaitTime(1_500);
            assertThat(over.lists).hasValue(1);
            assertThat(next.lists).hasValue(1);
            asking.process(new WatchedEvent(
                    Watcher.Event.EventType.NodeChildrenChanged, Watcher.Event.KeeperState.SyncConnected, PATH));
            assertThat(next.lists).hasValue(2);
            return true;
        } finally {
            closeAll(List.of(over, next));
        }
    }

    @Test
    void aSessionThatConnectsAgainAndAgainHasOneRetryThatWaits() throws Exception {
        Answering session = new Answering();
        try (ZooKeeperRegistration registration = registration()) {
            ZooKeeperEndpoints.Asking asking = new ZooKeeperEndpoints.Asking(PATH, new Heard());
            session.children = Code.NOAUTH;
            session.node = Code.NOAUTH;
            long began = System.nanoTime();
            for (int i = 0; i < 10; i++) {
                asking.connected(session);
                registration.connected(session);
            }
            await().until(() -> session.lists.get() >= 13 && session.nodes.get() >= 13);
            int lists = session.lists.get();
            int nodes = session.nodes.get();
            // ten were asked as the session connected, and then one a second
            int most = 10 + (int) TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - began);
            assertThat(lists).isLessThanOrEqualTo(most);
            assertThat(nodes).isLessThanOrEqualTo(most);
        } finally {
            session.close();
        }
    }

    @Test
    void whatHangsOnARegistrationDoesNotRunOnTheEventThread() throws Exception {
        Answering good = new Answering();
        Answering bad = new Answering();
        bad.node = Code.NOAUTH;
        try (ZooKeeperRegistration one = registration();
                ZooKeeperRegistration other = registration()) {
            CompletableFuture<Thread> registered = one.registered().handle((done, refused) -> Thread.currentThread());
            CompletableFuture<Thread> failed = other.registered().handle((done, refused) -> Thread.currentThread());
            one.connected(good);
            other.connected(bad);
            assertThat(registered.get(20, TimeUnit.SECONDS)).isNotSameAs(Thread.currentThread());
            assertThat(failed.get(20, TimeUnit.SECONDS)).isNotSameAs(Thread.currentThread());
        } finally {
            closeAll(List.of(good, bad));
        }
    }

    /** Keeps what a registration writes into its log. */
    private static final class Logged extends Handler implements AutoCloseable {
        private static final Logger LOGGER = Logger.getLogger(ZooKeeperRegistration.class.getName());

        final List<String> lines = new CopyOnWriteArrayList<>();

        Logged() {
            LOGGER.addHandler(this);
        }

        @Override
        public void publish(LogRecord each) {
            lines.add(MessageFormat.format(each.getMessage(), each.getParameters()));
        }

        @Override
        public void flush() {}

        @Override
        public void close() {
            LOGGER.removeHandler(this);
        }
    }

    @Test
    void aRefusalThatLastsIsToldAndLoggedOnce() throws Exception {
        Answering session = new Answering();
        session.node = Code.QUOTAEXCEEDED;
        try (Logged logged = new Logged();
                ZooKeeperRegistration registration = registration()) {
            registration.connected(session);
            assertThatThrownBy(() -> registration.registered().get(20, TimeUnit.SECONDS))
                    .hasCauseInstanceOf(KeeperException.QuotaExceededException.class);
            await().until(() -> session.nodes.get() > 2);
            assertThat(logged.lines)
                    .hasSize(1)
                    .first()
                    .asString()
                    .contains(PATH + "/127.0.0.1:9000", "not registered", "Quota");
        } finally {
            session.close();
        }
    }

    @Test
    void aFailureThatMendsItselfIsLoggedAndWaitedOut() throws Exception {
        Answering session = new Answering();
        session.node = Code.REQUESTTIMEOUT;
        try (Logged logged = new Logged();
                ZooKeeperRegistration registration = registration()) {
            registration.connected(session);
            assertThat(logged.lines).hasSize(1);
            session.node = Code.OK;
            registration.registered().get(20, TimeUnit.SECONDS);
        } finally {
            session.close();
        }
    }

    @Test
    void aRefusalOfAnInstanceThatWasRegisteredIsLogged() throws Exception {
        Answering session = new Answering();
        try (Logged logged = new Logged();
                ZooKeeperRegistration registration = registration()) {
            registration.connected(session);
            registration.registered().get(20, TimeUnit.SECONDS);
            session.node = Code.NOAUTH;
            Watcher watching = session.watcher;
            assertThat(watching).isNotNull();
            watching.process(new WatchedEvent(
                    Watcher.Event.EventType.NodeDeleted, Watcher.Event.KeeperState.SyncConnected, PATH));
            assertThat(logged.lines).hasSize(1).first().asString().contains("NoAuth");
            registration.registered().get(20, TimeUnit.SECONDS);
        } finally {
            session.close();
        }
    }

    @Test
    void aRegistrationThatIsClosedBeforeIsCancelled() {
        ZooKeeperRegistration registration = registration();
        CompletableFuture<Void> registered = registration.registered();
        try (Logged logged = new Logged()) {
            registration.close();
            assertThat(registered).isCompletedExceptionally();
            assertThatThrownBy(registered::join).hasRootCauseInstanceOf(CancellationException.class);
            awaitTime(200);
            assertThat(logged.lines).isEmpty();
        }
    }

    @Test
    void aRetryWaitsForNobodyElsesWork() throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        Answering session = new Answering();
        session.node = Code.SYSTEMERROR;
        try (ZooKeeperRegistration registration = registration()) {
            for (int i = 0; i < 64; i++) {
                CompletableFuture.runAsync(() -> {
                    try {
                        over.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                });
            }
            registration.connected(session);
            session.node = Code.OK;
            await().until(() -> session.isWatched && session.nodes.get() > 1);
        } finally {
            over.countDown();
            session.close();
        }
    }

    private static final InheritableThreadLocal<String> WHO = new InheritableThreadLocal<>();

    @Test
    void theThreadsOfASessionHaveNothingOfWhoeverBeginsIt() throws Exception {
        Queue<String> heard = new ConcurrentLinkedQueue<>();
        Thread self = Thread.currentThread();
        ClassLoader before = self.getContextClassLoader();
        try (URLClassLoader application = new URLClassLoader(new URL[0], before)) {
            self.setContextClassLoader(application);
            WHO.set("somebody");
            // the session reports a failure as it ends
            new ZooKeeperSession(
                            "127.0.0.1:1",
                            ZooKeeperAccess.open(),
                            now -> {},
                            why -> heard.add(
                                    WHO.get() + " " + (Thread.currentThread().getContextClassLoader() == application)))
                    .close();
            await().until(() -> !heard.isEmpty());
            assertThat(heard).containsOnly("null false");
        } finally {
            self.setContextClassLoader(before);
            WHO.remove();
        }
    }

    @Test
    void whatIsNoListOfServersIsSaidAtOnce() {
        assertThatThrownBy(() -> ZooKeeperRegistration.of("127.0.0.1:port", PATH, new Endpoint("127.0.0.1", 9000))
                        .close())
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void aPathIsCheckedAndAPasswordIsInNoText() {
        for (String path : List.of("/services/", "/", "/a//b", "services")) {
            assertThatThrownBy(() -> ZooKeeperEndpoints.of("127.0.0.1:1", path))
                    .as(path)
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> ZooKeeperRegistration.of("127.0.0.1:1", path, new Endpoint("127.0.0.1", 9000))
                            .close())
                    .as(path)
                    .isInstanceOf(IllegalArgumentException.class);
        }
        assertThatThrownBy(() -> ZooKeeperAccess.digest("user:s3cret", ""))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("colon")
                .hasMessageNotContaining("s3cret");
    }
}
