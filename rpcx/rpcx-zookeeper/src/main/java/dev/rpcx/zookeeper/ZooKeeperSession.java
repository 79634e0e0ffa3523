package dev.rpcx.zookeeper;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Consumer;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.jspecify.annotations.Nullable;

/** A connection to ZooKeeper that is made again for ever: by ZooKeeper's client within a session, here with a new one when it has expired. */
final class ZooKeeperSession implements AutoCloseable {
    private static final int TIMEOUT_MILLIS = 10_000;

    private final String servers;
    private final ZooKeeperAccess access;
    private final Consumer<ZooKeeper> connected;
    private final Consumer<Throwable> failed;
    private @Nullable ZooKeeper zooKeeper;
    private boolean closed;

    /**
     * @param connected told after each time that the connection stands, on the event thread
     * @param failed told when it does not, on the event thread
     */
    ZooKeeperSession(
            String servers, ZooKeeperAccess access, Consumer<ZooKeeper> connected, Consumer<Throwable> failed) {
        this.servers = servers;
        this.access = access;
        this.connected = connected;
        this.failed = failed;
        open();
    }

    private synchronized void open() {
        if (closed) {
            return;
        }
        try {
            zooKeeper = new ZooKeeper(servers, TIMEOUT_MILLIS, this::changed);
            access.introduce(zooKeeper);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void changed(WatchedEvent event) {
        if (event.getType() != Watcher.Event.EventType.None) {
            return;
        }
        switch (event.getState()) {
            case SyncConnected, ConnectedReadOnly -> {
                ZooKeeper now = current();
                if (now != null) {
                    connected.accept(now);
                }
            }
            case Expired -> {
                end();
                open();
            }
            default -> failed.accept(new IllegalStateException("ZooKeeper at " + servers + ": " + event.getState()));
        }
    }

    private synchronized @Nullable ZooKeeper current() {
        return closed ? null : zooKeeper;
    }

    private void end() {
        ZooKeeper over;
        synchronized (this) {
            over = zooKeeper;
            zooKeeper = null;
        }
        if (over != null) {
            try {
                // without waiting for the event thread, which may be this one
                over.close();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        end();
    }
}
