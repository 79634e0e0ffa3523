package dev.rpcx.zookeeper;

import dev.rpcx.Endpoint;
import dev.rpcx.VisibleText;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Registers one instance of a service in ZooKeeper, for as long as this is open and its process lives. The instance has
 * an ephemeral node of its own, which is made again after a session has expired. Another process of the same address
 * has another node; neither changes the other's. Close this before the server stops, so that clients begin no more
 * calls at it.
 *
 * <p>Without a {@link ZooKeeperAccess} everybody who reaches ZooKeeper can add and delete instances. Clients are then
 * protected only if an instance has to show its certificate.
 */
public final class ZooKeeperRegistration implements AutoCloseable {
    /** Max characters of a failure's text in the log. */
    private static final int MAX_TEXT = 500;

    /** Min time between two lines in the log that say that the instance is not registered. */
    private static final long MIN_LOG_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final String path;
    private final String node;
    private final ZooKeeperAccess access;
    private final ZooKeeperSession session;
    private final CompletableFuture<Void> registered = new CompletableFuture<>();

    /**
     * The only watcher of this registration's node: ZooKeeper keeps its watchers in a set, so a reconnection does not
     * add another one.
     */
    private final Watcher watcher = this::changed;

    private final RequestRetries retries = new RequestRetries(this::register, this::failed);

    /**
     * Whether {@link #close} has been called. The closing thread sets this field before it ends the session. The
     * threads that report failures read it, so that the end of the session is not reported as a failure.
     */
    private volatile boolean isClosed;

    // The lock of this object guards the following three fields. The threads that report failures use them.
    private long loggedNanos;
    private boolean wasLogged;
    private long unlogged;

    private ZooKeeperRegistration(String servers, String path, Endpoint instance, ZooKeeperAccess access) {
        this.path = path;
        this.access = access;
        this.node = path + "/" + InstanceNode.name(instance, UUID.randomUUID().toString());
        this.session = new ZooKeeperSession(servers, access, this::connected, this::failed);
    }

    /**
     * Registers the instance in the background, and keeps trying until this is closed.
     *
     * @param servers ZooKeeper's own connect string
     * @param path path of the service, as its clients watch it; it is made if it is missing
     */
    public static ZooKeeperRegistration of(String servers, String path, Endpoint instance) {
        return of(servers, path, instance, ZooKeeperAccess.open());
    }

    /**
     * Registers the instance in the same way, but with an identity, so that nobody else can change what is registered.
     */
    public static ZooKeeperRegistration of(String servers, String path, Endpoint instance, ZooKeeperAccess access) {
        return new ZooKeeperRegistration(servers, InstanceNode.checkedParent(path), instance, access);
    }

    /**
     * Returns a future that completes when the instance has been registered for the first time. It fails if ZooKeeper
     * does not allow the registration, for example for lack of rights or because a quota is used up; the registration
     * is tried again all the same. If the future is not done before {@link #close}, it fails with a
     * {@code CancellationException} as the cause. Actions that depend on it run on a thread of the JDK's common pool,
     * or on the thread that closes this registration. If the future is already done, they run on the thread that adds
     * them. Failures, later ones too, are logged once a minute at most.
     */
    public CompletableFuture<Void> registered() {
        return registered.copy();
    }

    void connected(ZooKeeper now) {
        retries.connected(now);
    }

    private void register(ZooKeeper zooKeeper) {
        zooKeeper.create(
                node,
                new byte[0],
                access.acl(),
                CreateMode.EPHEMERAL,
                (code, asked, context, made) -> retries.answered(
                        code,
                        node,
                        zooKeeper,
                        Map.of(
                                KeeperException.Code.OK,
                                () -> watchNode(zooKeeper),
                                KeeperException.Code.NONODE,
                                () -> makeParent(zooKeeper, 1),
                                KeeperException.Code.NODEEXISTS,
                                () -> resolveExisting(zooKeeper))),
                null);
    }

    /** Completes the future and watches the node, which exists now: somebody else may delete it. */
    private void watchNode(ZooKeeper zooKeeper) {
        completeAsync(() -> registered.complete(null));
        zooKeeper.exists(
                node,
                watcher,
                (code, asked, context, stat) -> retries.answered(
                        code,
                        node,
                        zooKeeper,
                        Map.of(
                                KeeperException.Code.OK,
                                () -> {},
                                KeeperException.Code.NONODE,
                                () -> register(zooKeeper))),
                null);
    }

    private void changed(WatchedEvent event) {
        // The watch also ends if somebody has written into the node.
        if (event.getType() != Watcher.Event.EventType.None) {
            retries.restart();
        }
    }

    /**
     * Completes the future on another thread. Actions that depend on the future are code of the application, which must
     * not block the event thread.
     */
    private void completeAsync(Runnable completion) {
        registered.defaultExecutor().execute(completion);
    }

    /** Makes each part of the path that is missing, one after the other, and then registers the instance. */
    private void makeParent(ZooKeeper zooKeeper, int from) {
        int end = path.indexOf('/', from);
        String parent = end < 0 ? path : path.substring(0, end);
        Runnable next = () -> {
            if (end < 0) {
                register(zooKeeper);
            } else {
                makeParent(zooKeeper, end + 1);
            }
        };
        zooKeeper.create(
                parent,
                new byte[0],
                access.acl(),
                CreateMode.PERSISTENT,
                (code, asked, context, made) -> retries.answered(
                        code,
                        parent,
                        zooKeeper,
                        Map.of(KeeperException.Code.OK, next, KeeperException.Code.NODEEXISTS, next)),
                null);
    }

    /** Called for each failure, also after the instance has been registered. */
    private void failed(Throwable why) {
        if (isClosed) {
            return;
        }
        if (why instanceof KeeperException refusal && isLasting(refusal.code())) {
            completeAsync(() -> registered.completeExceptionally(refusal));
        }
        log(VisibleText.line(String.valueOf(why.getMessage()), MAX_TEXT));
    }

    /** Whether somebody has to change something before ZooKeeper answers differently. */
    private static boolean isLasting(KeeperException.Code refused) {
        return switch (refused) {
            case NOAUTH,
                    INVALIDACL,
                    AUTHFAILED,
                    SESSIONCLOSEDREQUIRESASLAUTH,
                    QUOTAEXCEEDED,
                    NOCHILDRENFOREPHEMERALS,
                    EPHEMERALONLOCALSESSION,
                    BADARGUMENTS,
                    UNIMPLEMENTED -> true;
            default -> false;
        };
    }

    private void log(String why) {
        String before;
        synchronized (this) {
            long now = System.nanoTime();
            if (wasLogged && now - loggedNanos < MIN_LOG_NANOS) {
                unlogged++;
                return;
            }
            before = unlogged == 0 ? "" : " (" + unlogged + " more since this was logged last)";
            wasLogged = true;
            loggedNanos = now;
            unlogged = 0;
        }
        try {
            System.getLogger(ZooKeeperRegistration.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "{0} is not registered, or may not stay so: {1}{2}",
                            node,
                            why,
                            before);
        } catch (Throwable e) {
            // Neither an application's logging that fails nor a full heap ends the registration.
            synchronized (this) {
                unlogged++;
            }
        }
    }

    /**
     * Handles a node that exists already. Only this registration has the node's name, so the node belongs to this
     * session, or to the one before, which has not expired yet. If this session is not allowed to delete that node, it
     * tries again until the session before is over.
     */
    private void resolveExisting(ZooKeeper zooKeeper) {
        zooKeeper.exists(
                node,
                false,
                (int code, String asked, Object context, Stat stat) -> retries.answered(
                        code,
                        node,
                        zooKeeper,
                        Map.of(
                                KeeperException.Code.NONODE,
                                () -> register(zooKeeper),
                                KeeperException.Code.OK,
                                () -> resolveExisting(zooKeeper, stat))),
                null);
    }

    private void resolveExisting(ZooKeeper zooKeeper, Stat stat) {
        if (stat.getEphemeralOwner() == zooKeeper.getSessionId()) {
            watchNode(zooKeeper);
            return;
        }
        Runnable again = () -> register(zooKeeper);
        zooKeeper.delete(
                node,
                stat.getVersion(),
                (code, asked, context) -> retries.answered(
                        code,
                        node,
                        zooKeeper,
                        Map.of(KeeperException.Code.OK, again, KeeperException.Code.NONODE, again)),
                null);
    }

    /** Ends the session, and with it the instance's node. */
    @Override
    public void close() {
        isClosed = true;
        try {
            session.close();
        } finally {
            registered.cancel(false);
        }
    }
}
