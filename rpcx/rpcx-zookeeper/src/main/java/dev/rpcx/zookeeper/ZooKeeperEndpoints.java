package dev.rpcx.zookeeper;

import dev.rpcx.Endpoints;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.jspecify.annotations.Nullable;

/**
 * The instances of a service in ZooKeeper: each child of a path is an instance. A watch reports at once when one comes
 * or goes. While ZooKeeper cannot be reached, the instances that were found before stay in use, since the client keeps
 * its list. Two objects are equal if their servers, paths and identities are equal, so that proxies share their
 * connections.
 *
 * <pre>{@code
 * client.create(Greeter.class, ZooKeeperEndpoints.of("zk1:2181,zk2:2181", "/services/greeter"));
 * }</pre>
 */
public final class ZooKeeperEndpoints implements Endpoints {
    private final String servers;
    private final String path;
    private final ZooKeeperAccess access;

    private ZooKeeperEndpoints(String servers, String path, ZooKeeperAccess access) {
        this.servers = servers;
        this.path = path;
        this.access = access;
    }

    /**
     * Returns the instances that are registered under this path.
     *
     * @param servers ZooKeeper's own connect string: {@code host:port}, or several of them with commas between them
     * @param path absolute path of the service; it need not exist yet
     */
    public static ZooKeeperEndpoints of(String servers, String path) {
        return new ZooKeeperEndpoints(servers, InstanceNode.checkedParent(path), ZooKeeperAccess.open());
    }

    /** Returns a copy that asks with this identity, for a path that not everybody may read. */
    public ZooKeeperEndpoints as(ZooKeeperAccess identity) {
        return new ZooKeeperEndpoints(servers, path, identity);
    }

    @Override
    public Watch watch(Listener listener) {
        Asking asking = new Asking(path, listener);
        ZooKeeperSession session = new ZooKeeperSession(servers, access, asking::connected, asking::failed);
        return session::close;
    }

    /**
     * Asks for the children with a watch, which reports one change; then asks for them again. This object is the
     * watcher of all these requests: ZooKeeper keeps its watchers in a set, so asking again after a reconnection does
     * not add another one. The event threads of the sessions and threads of {@code OwnThreads} call the listener. Each
     * of them holds the listener's lock meanwhile, so that only one at a time calls it.
     */
    static final class Asking implements Watcher {
        private final String path;
        private final Listener listener;
        private final RequestRetries retries = new RequestRetries(this::ask, this::failed);

        Asking(String path, Listener listener) {
            this.path = path;
            this.listener = listener;
        }

        void connected(ZooKeeper now) {
            retries.connected(now);
        }

        private void ask(ZooKeeper zooKeeper) {
            zooKeeper.getChildren(path, this, this::answered, zooKeeper);
        }

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != Watcher.Event.EventType.None) {
                retries.restart();
            }
        }

        private void answered(int code, String asked, Object context, @Nullable List<String> children) {
            ZooKeeper zooKeeper = (ZooKeeper) context;
            retries.answered(
                    code,
                    path,
                    zooKeeper,
                    Map.of(
                            KeeperException.Code.OK,
                            () -> found(children == null ? List.of() : children),
                            KeeperException.Code.NONODE,
                            () -> {
                                failed(new IllegalStateException("ZooKeeper has no " + path));
                                awaitPath(zooKeeper);
                            }));
        }

        /** Sets a watch that reports when the path is made, and asks for the children at once if it exists. */
        private void awaitPath(ZooKeeper zooKeeper) {
            zooKeeper.exists(
                    path,
                    this,
                    (code, asked, context, stat) -> retries.answered(
                            code,
                            path,
                            zooKeeper,
                            Map.of(
                                    KeeperException.Code.OK,
                                    () -> ask(zooKeeper),
                                    KeeperException.Code.NONODE,
                                    () -> {})),
                    null);
        }

        private void found(List<String> children) {
            synchronized (listener) {
                listener.found(InstanceNode.all(children));
            }
        }

        void failed(Throwable why) {
            synchronized (listener) {
                listener.failed(why);
            }
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ZooKeeperEndpoints o
                && servers.equals(o.servers)
                && path.equals(o.path)
                && access.equals(o.access);
    }

    @Override
    public int hashCode() {
        return Objects.hash(servers, path, access);
    }

    @Override
    public String toString() {
        return servers + path;
    }
}
