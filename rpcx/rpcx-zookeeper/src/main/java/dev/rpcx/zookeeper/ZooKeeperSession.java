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

    /** Between a session that could not be opened and the next one. */
    private static final long PAUSE_MILLIS = 1_000;

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
        try {
            open();
        } catch (Throwable e) {
            end();
            throw e;
        }
    }

    /** Whoever calls this ends the session where it fails, outside the lock: it may be there without its identity. */
    private synchronized void open() {
        if (closed || zooKeeper != null) {
            return;
        }
        try {
            // its threads outlive whoever needs this first
            zooKeeper = OwnThreads.made(() -> new ZooKeeper(servers, TIMEOUT_MILLIS, this::changed));
            access.introduce(zooKeeper);
        } catch (RuntimeException e) {
            throw e;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void openAgain() {
        try {
            open();
        } catch (Throwable e) {
            end();
            // the next attempt first: a listener may fail
            OwnThreads.later(this::openAgain, PAUSE_MILLIS);
            failed.accept(e);
        }
    }

    /** ZooKeeper's client says how its connection stands, on its event thread. */
    void changed(WatchedEvent event) {
        if (event.getType() != Watcher.Event.EventType.None) {
            return;
        }
        Watcher.Event.KeeperState said = event.getState();
        // it gives no state where it could not begin a login by SASL, and does nothing more
        Watcher.Event.KeeperState state = said == null ? Watcher.Event.KeeperState.AuthFailed : said;
        switch (state) {
            case SyncConnected, ConnectedReadOnly -> {
                ZooKeeper now = current();
                if (now != null) {
                    connected.accept(now);
                }
            }
            // a good login, while the connection stands
            case SaslAuthenticated -> {}
            case Expired -> {
                end();
                openAgain();
            }
            case AuthFailed -> {
                // this session is over; who answers for logins may be back later
                end();
                OwnThreads.later(this::openAgain, PAUSE_MILLIS);
                failed.accept(failure(state));
            }
            default -> failed.accept(failure(state));
        }
    }

    private IllegalStateException failure(Watcher.Event.KeeperState state) {
        return new IllegalStateException("ZooKeeper at " + servers + ": " + state);
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
