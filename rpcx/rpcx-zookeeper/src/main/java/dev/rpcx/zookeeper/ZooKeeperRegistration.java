package dev.rpcx.zookeeper;

import dev.rpcx.Endpoint;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
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
    private final String path;
    private final String node;
    private final ZooKeeperAccess access;
    private final ZooKeeperSession session;
    private final CompletableFuture<Void> registered = new CompletableFuture<>();

    private ZooKeeperRegistration(String servers, String path, Endpoint instance, ZooKeeperAccess access) {
        this.path = path;
        this.access = access;
        this.node = path + "/" + InstanceNode.name(instance, UUID.randomUUID().toString());
        this.session = new ZooKeeperSession(servers, access, this::register, why -> {});
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
        if (!path.startsWith("/") || path.length() < 2) {
            throw new IllegalArgumentException("path: " + path + " (expected: absolute, as /services/greeter)");
        }
        return new ZooKeeperRegistration(servers, path, instance, access);
    }

    /**
     * Done when the instance has been registered for the first time; fails where ZooKeeper does not allow it, which is
     * tried again with the next connection all the same.
     */
    public CompletableFuture<Void> registered() {
        return registered.copy();
    }

    private void register(ZooKeeper zooKeeper) {
        zooKeeper.create(
                node,
                new byte[0],
                access.acl(),
                CreateMode.EPHEMERAL,
                (code, asked, context, made) -> {
                    KeeperException.Code said = KeeperException.Code.get(code);
                    switch (said == null ? KeeperException.Code.SYSTEMERROR : said) {
                        case OK -> registered.complete(null);
                        case NONODE -> makeParent(zooKeeper, 1);
                        case NODEEXISTS -> takeOver(zooKeeper);
                        case NOAUTH, INVALIDACL, AUTHFAILED -> refused(code, node);
                        default -> {
                            if (ZooKeeperSession.mayAskAgain(said)) {
                                ZooKeeperSession.later(() -> register(zooKeeper));
                            }
                        }
                    }
                },
                null);
    }

    /** Each part of the path, one after the other. */
    private void makeParent(ZooKeeper zooKeeper, int from) {
        int end = path.indexOf('/', from);
        String parent = end < 0 ? path : path.substring(0, end);
        zooKeeper.create(
                parent,
                new byte[0],
                access.acl(),
                CreateMode.PERSISTENT,
                (code, asked, context, made) -> {
                    KeeperException.Code said = KeeperException.Code.get(code);
                    if (said == KeeperException.Code.OK || said == KeeperException.Code.NODEEXISTS) {
                        if (end < 0) {
                            register(zooKeeper);
                        } else {
                            makeParent(zooKeeper, end + 1);
                        }
                    } else if (said == KeeperException.Code.NOAUTH || said == KeeperException.Code.INVALIDACL) {
                        refused(code, parent);
                    }
                },
                null);
    }

    private void refused(int code, String what) {
        KeeperException why = KeeperException.create(KeeperException.Code.get(code), what);
        if (registered.completeExceptionally(why)) {
            System.getLogger(ZooKeeperRegistration.class.getName())
                    .log(System.Logger.Level.WARNING, "{0} is not registered: {1}", node, why.getMessage());
        }
    }

    /**
     * The node has a name that only this registration has: it is this session's, or that of the session before, which
     * has not expired yet.
     */
    private void takeOver(ZooKeeper zooKeeper) {
        zooKeeper.exists(
                node,
                false,
                (int code, String asked, Object context, Stat stat) -> {
                    KeeperException.Code said = KeeperException.Code.get(code);
                    if (said == KeeperException.Code.NONODE) {
                        register(zooKeeper);
                    } else if (said == KeeperException.Code.OK
                            && stat.getEphemeralOwner() == zooKeeper.getSessionId()) {
                        registered.complete(null);
                    } else if (said == KeeperException.Code.OK) {
                        zooKeeper.delete(
                                node,
                                stat.getVersion(),
                                (deleted, d, c) -> {
                                    if (deleted == KeeperException.Code.OK.intValue()) {
                                        register(zooKeeper);
                                    } else if (ZooKeeperSession.mayAskAgain(KeeperException.Code.get(deleted))) {
                                        // who may not delete it waits until its session is over
                                        ZooKeeperSession.later(() -> register(zooKeeper));
                                    }
                                },
                                null);
                    }
                },
                null);
    }

    /** Takes the instance out. */
    @Override
    public void close() {
        session.close();
    }
}
