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
 * One instance of a service in ZooKeeper, for as long as this is open and its process lives: an ephemeral node of its
 * own, made again after a session has expired. Another process of the same address has another node; neither touches
 * the other's. Close it before the server stops, so that clients leave first.
 *
 * <p>Without a {@link ZooKeeperAccess} whoever reaches ZooKeeper can add and take away instances. What then protects a
 * client is that an instance has to show its certificate.
 */
public final class ZooKeeperRegistration implements AutoCloseable {
    /** Characters of what is said of a failure, in the log. */
    private static final int MOST_TEXT = 500;

    /** Between two lines in the log that say that the instance is not registered. */
    private static final long SILENT_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final String path;
    private final String node;
    private final ZooKeeperAccess access;
    private final ZooKeeperSession session;
    private final CompletableFuture<Void> registered = new CompletableFuture<>();

    /** One object for all: ZooKeeper keeps a set of them, so that a reconnection does not add one. */
    private final Watcher whenTaken = this::changed;

    private final Attempts attempts = new Attempts(this::register, this::failed);

    private volatile boolean isClosed;

    // guarded by this
    private long loggedNanos;
    private boolean wasLogged;
    private long silent;

    private ZooKeeperRegistration(String servers, String path, Endpoint instance, ZooKeeperAccess access) {
        this.path = path;
        this.access = access;
        this.node = path + "/" + InstanceNode.name(instance, UUID.randomUUID().toString());
        this.session = new ZooKeeperSession(servers, access, this::connected, this::failed);
    }

    /**
     * Registers in the background, and goes on trying until closed.
     *
     * @param servers as ZooKeeper's own connect string
     * @param path of the service, as its clients watch it; made where it is missing
     */
    public static ZooKeeperRegistration of(String servers, String path, Endpoint instance) {
        return of(servers, path, instance, ZooKeeperAccess.open());
    }

    /** Same with an identity, so that nobody else can change what is registered. */
    public static ZooKeeperRegistration of(String servers, String path, Endpoint instance, ZooKeeperAccess access) {
        return new ZooKeeperRegistration(servers, InstanceNode.checkedParent(path), instance, access);
    }

    /**
     * Done when the instance has been registered for the first time; fails where ZooKeeper does not allow it, as for
     * want of rights or of room in a quota, which is tried again all the same; cancelled by {@link #close} before that.
     * What hangs on it runs on a thread of the JDK's common pool, or on the one that closes this; where it is done
     * already, on the thread that hangs it on. Whatever fails, also later, is logged once a minute.
     */
    public CompletableFuture<Void> registered() {
        return registered.copy();
    }

    void connected(ZooKeeper now) {
        attempts.connected(now);
    }

    private void register(ZooKeeper zooKeeper) {
        zooKeeper.create(
                node,
                new byte[0],
                access.acl(),
                CreateMode.EPHEMERAL,
                (code, asked, context, made) -> attempts.answered(
                        code,
                        node,
                        zooKeeper,
                        Map.of(
                                KeeperException.Code.OK,
                                () -> stands(zooKeeper),
                                KeeperException.Code.NONODE,
                                () -> makeParent(zooKeeper, 1),
                                KeeperException.Code.NODEEXISTS,
                                () -> takeOver(zooKeeper))),
                null);
    }

    /** The node is there: somebody else may take it away. */
    private void stands(ZooKeeper zooKeeper) {
        done(() -> registered.complete(null));
        zooKeeper.exists(
                node,
                whenTaken,
                (code, asked, context, stat) -> attempts.answered(
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
        // also where somebody has written into the node, which ends the watch
        if (event.getType() != Watcher.Event.EventType.None) {
            attempts.again();
        }
    }

    /** What hangs on the registration is its user's code, which must not hold up the event thread. */
    private void done(Runnable completion) {
        registered.defaultExecutor().execute(completion);
    }

    /** Each part of the path, one after the other. */
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
                (code, asked, context, made) -> attempts.answered(
                        code,
                        parent,
                        zooKeeper,
                        Map.of(KeeperException.Code.OK, next, KeeperException.Code.NODEEXISTS, next)),
                null);
    }

    /** Told each time, also after the instance has been registered. */
    private void failed(Throwable why) {
        if (isClosed) {
            return;
        }
        if (why instanceof KeeperException refusal && isLasting(refusal.code())) {
            done(() -> registered.completeExceptionally(refusal));
        }
        log(VisibleText.line(String.valueOf(why.getMessage()), MOST_TEXT));
    }

    /** Whether somebody has to change something before ZooKeeper answers otherwise. */
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
            if (wasLogged && now - loggedNanos < SILENT_NANOS) {
                silent++;
                return;
            }
            before = silent == 0 ? "" : " (" + silent + " more since this was logged last)";
            wasLogged = true;
            loggedNanos = now;
            silent = 0;
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
            // an application's logging that fails, or a heap that is full, ends no registration
            synchronized (this) {
                silent++;
            }
        }
    }

    /**
     * The node has a name that only this registration has: it is this session's, or that of the session before, which
     * has not expired yet. Who may not delete that waits until its session is over.
     */
    private void takeOver(ZooKeeper zooKeeper) {
        zooKeeper.exists(
                node,
                false,
                (int code, String asked, Object context, Stat stat) -> attempts.answered(
                        code,
                        node,
                        zooKeeper,
                        Map.of(
                                KeeperException.Code.NONODE,
                                () -> register(zooKeeper),
                                KeeperException.Code.OK,
                                () -> takeOver(zooKeeper, stat))),
                null);
    }

    private void takeOver(ZooKeeper zooKeeper, Stat stat) {
        if (stat.getEphemeralOwner() == zooKeeper.getSessionId()) {
            stands(zooKeeper);
            return;
        }
        Runnable again = () -> register(zooKeeper);
        zooKeeper.delete(
                node,
                stat.getVersion(),
                (code, asked, context) -> attempts.answered(
                        code,
                        node,
                        zooKeeper,
                        Map.of(KeeperException.Code.OK, again, KeeperException.Code.NONODE, again)),
                null);
    }

    /** Takes the instance out. */
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
