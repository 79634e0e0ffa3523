package dev.rpcx.zookeeper;

import dev.rpcx.Endpoint;
import java.util.concurrent.CompletableFuture;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * One instance of a service in ZooKeeper, for as long as this is open and its process lives: an ephemeral node, made again after a session
 * has expired. Close it before the server stops, so that clients leave first.
 */
public final class ZooKeeperRegistration implements AutoCloseable {
    private final String path;
    private final String node;
    private final ZooKeeperSession session;
    private final CompletableFuture<Void> registered = new CompletableFuture<>();

    private ZooKeeperRegistration(String servers, String path, Endpoint instance) {
        this.path = path;
        this.node = path + "/" + InstanceNode.name(instance);
        this.session = new ZooKeeperSession(servers, this::register, why -> {});
    }

    /**
     * Registers in the background, and goes on trying until closed.
     *
     * @param servers as ZooKeeper's own connect string
     * @param path of the service, as its clients watch it; made where it is missing
     */
    public static ZooKeeperRegistration of(String servers, String path, Endpoint instance) {
        if (!path.startsWith("/") || path.length() < 2) {
            throw new IllegalArgumentException("path: " + path + " (expected: absolute, as /services/greeter)");
        }
        return new ZooKeeperRegistration(servers, path, instance);
    }

    /** Done when the instance has been registered for the first time. */
    public CompletableFuture<Void> registered() {
        return registered.copy();
    }

    private void register(ZooKeeper zooKeeper) {
        zooKeeper.create(
                node,
                new byte[0],
                ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.EPHEMERAL,
                (code, asked, context, made) -> {
                    switch (KeeperException.Code.get(code)) {
                        case OK -> registered.complete(null);
                        case NONODE -> makeParent(zooKeeper, 1);
                        case NODEEXISTS -> takeOver(zooKeeper);
                        // tried again when the connection stands
                        default -> {}
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
                ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.PERSISTENT,
                (code, asked, context, made) -> {
                    KeeperException.Code said = KeeperException.Code.get(code);
                    if (said == KeeperException.Code.OK || said == KeeperException.Code.NODEEXISTS) {
                        if (end < 0) {
                            register(zooKeeper);
                        } else {
                            makeParent(zooKeeper, end + 1);
                        }
                    }
                },
                null);
    }

    /** The node is this session's own, or that of a process which had this address before and whose session has not expired yet. */
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
                        zooKeeper.delete(node, stat.getVersion(), (deleted, d, c) -> register(zooKeeper), null);
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
