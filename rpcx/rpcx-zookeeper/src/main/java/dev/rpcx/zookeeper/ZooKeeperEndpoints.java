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
 * The children of a path, each an instance: told at once when one comes or goes. While ZooKeeper cannot be reached what was found before
 * holds, since the client keeps its list. Equal for equal servers and paths, so that proxies share their connections.
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
     * @param servers as ZooKeeper's own connect string: {@code host:port}, several with commas between
     * @param path of the service, absolute; may come into being later
     */
    public static ZooKeeperEndpoints of(String servers, String path) {
        return new ZooKeeperEndpoints(servers, InstanceNode.checkedParent(path), ZooKeeperAccess.open());
    }

    /** Same asked by this identity, for a path that not everybody may read. */
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
     * Children are asked for with a watch, which tells of one change; then they are asked for again. One object is the
     * watcher for all: ZooKeeper keeps a set of them, so that asking again after a reconnection does not add one.
     */
    static final class Asking implements Watcher {
        private final String path;
        private final Listener listener;
        private final Attempts attempts = new Attempts(this::ask, this::failed);

        Asking(String path, Listener listener) {
            this.path = path;
            this.listener = listener;
        }

        void connected(ZooKeeper now) {
            attempts.connected(now);
        }

        private void ask(ZooKeeper zooKeeper) {
            zooKeeper.getChildren(path, this, this::answered, zooKeeper);
        }

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != Watcher.Event.EventType.None) {
                attempts.again();
            }
        }

        private void answered(int code, String asked, Object context, @Nullable List<String> children) {
            ZooKeeper zooKeeper = (ZooKeeper) context;
            attempts.answered(
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

        /** The watch tells when the path comes into being. */
        private void awaitPath(ZooKeeper zooKeeper) {
            zooKeeper.exists(
                    path,
                    this,
                    (code, asked, context, stat) -> attempts.answered(
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
