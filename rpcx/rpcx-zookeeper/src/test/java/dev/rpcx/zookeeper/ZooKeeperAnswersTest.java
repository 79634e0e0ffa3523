package dev.rpcx.zookeeper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

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
        volatile @Nullable Watcher watcher;

        /** Nobody listens there. */
        Answering() throws IOException {
            super("127.0.0.1:1", 10_000, event -> {});
        }

        @Override
        public void getChildren(String path, Watcher watching, AsyncCallback.ChildrenCallback told, Object context) {
            told.processResult(children.intValue(), path, context, List.of("127.0.0.1:9000@a"));
        }

        @Override
        public void exists(String path, Watcher watching, AsyncCallback.StatCallback told, Object context) {
            watcher = watching;
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

    private static void awaitRegistered(ZooKeeperRegistration registration, Code code) {
        await(code.toString())
                .atMost(Duration.ofSeconds(10))
                .until(() -> registration.registered().isDone());
        switch (code) {
            // told to whoever waits, and tried again all the same
            case NOAUTH, INVALIDACL ->
                assertThat(registration.registered()).failsWithin(Duration.ZERO).withThrowableOfType(Exception.class);
            default -> assertThat(registration.registered()).isCompleted();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = Code.class,
            names = {"OK", "CONNECTIONLOSS", "SESSIONEXPIRED", "AUTHFAILED", "NODEEXISTS"},
            mode = EnumSource.Mode.EXCLUDE)
    void aParentThatCannotBeMadeIsTriedAgain(Code code) throws Exception {
        Answering session = new Answering();
        try (ZooKeeperRegistration registration = registration()) {
            session.node = Code.NONODE;
            session.parent = code;
            registration.register(session);
            session.parent = Code.NODEEXISTS;
            int before = session.nodes.get();
            await().until(() -> session.nodes.get() > before);
            session.node = Code.OK;
            awaitRegistered(registration, code);
        } finally {
            session.close();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = Code.class,
            names = {"OK", "CONNECTIONLOSS", "SESSIONEXPIRED", "AUTHFAILED", "NONODE"},
            mode = EnumSource.Mode.EXCLUDE)
    void aNodeThatCannotBeLookedAtIsLookedAtAgain(Code code) throws Exception {
        Answering session = new Answering();
        try (ZooKeeperRegistration registration = registration()) {
            session.node = Code.NODEEXISTS;
            session.exists = code;
            registration.register(session);
            session.exists = Code.OK;
            awaitRegistered(registration, code);
        } finally {
            session.close();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = Code.class,
            names = {"OK", "CONNECTIONLOSS", "SESSIONEXPIRED", "AUTHFAILED", "NONODE"},
            mode = EnumSource.Mode.EXCLUDE)
    void aPathThatCannotBeWaitedForIsAskedForAgain(Code code) throws Exception {
        Answering session = new Answering();
        try {
            Heard heard = new Heard();
            ZooKeeperEndpoints.Asking asking = new ZooKeeperEndpoints.Asking(PATH, heard);
            session.children = Code.NONODE;
            session.exists = code;
            asking.ask(session);
            assertThat(heard.failed).hasPositiveValue();
            session.children = Code.OK;
            await(code.toString()).until(() -> heard.found.get() > 0);
        } finally {
            session.close();
        }
    }

    @Test
    void aNodeThatSomebodyElseTakesAwayIsMadeAgain() throws Exception {
        Answering session = new Answering();
        try (ZooKeeperRegistration registration = registration()) {
            registration.register(session);
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
}
