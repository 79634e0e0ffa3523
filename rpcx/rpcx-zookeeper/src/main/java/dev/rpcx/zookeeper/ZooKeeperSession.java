package dev.rpcx.zookeeper;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Consumer;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.jspecify.annotations.Nullable;

/**
 * Connection to ZooKeeper that is re-established as often as needed until it is closed. ZooKeeper's client does this
 * within a session; this class opens a new session if one has expired, or if its login has failed.
 */
final class ZooKeeperSession implements AutoCloseable {
    private static final int TIMEOUT_MILLIS = 10_000;

    /** Time between a session that could not be opened, or whose login has failed, and the next one. */
    private static final long PAUSE_MILLIS = 1_000;

    private final String servers;
    private final ZooKeeperAccess access;
    private final Consumer<ZooKeeper> connected;
    private final Consumer<Throwable> failed;

    // The lock of this object guards the following two fields. The threads that make and close this object, ZooKeeper's
    // event threads and threads of OwnThreads use them.
    private @Nullable ZooKeeper zooKeeper;
    private boolean closed;

    /**
     * Opens the first session.
     *
     * @param connected called on the event thread each time that the connection has been established
     * @param failed called when there is no connection: on the event thread, or on a thread of {@code OwnThreads} if a
     *     session could not be opened after a pause
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

    /**
     * Opens a session. If this fails, the caller has to end the session, outside the lock: the session may exist
     * already without its identity.
     */
    private synchronized void open() {
        if (closed || zooKeeper != null) {
            return;
        }
        try {
            // The client's threads outlive the thread that needs the client first, and must not inherit from it.
            zooKeeper = OwnThreads.runAndWait(() -> new ZooKeeper(servers, TIMEOUT_MILLIS, this::stateChanged));
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
            // The next try is scheduled first, since the listener may fail.
            OwnThreads.later(this::openAgain, PAUSE_MILLIS);
            failed.accept(e);
        }
    }

    /** Takes the state of the connection, which ZooKeeper's client reports on its event thread. */
    void stateChanged(WatchedEvent event) {
        if (event.getType() != Watcher.Event.EventType.None) {
            return;
        }
        Watcher.Event.KeeperState said = event.getState();
        // The client gives no state if it could not begin a SASL login, and then does nothing more.
        Watcher.Event.KeeperState state = said == null ? Watcher.Event.KeeperState.AuthFailed : said;
        switch (state) {
            case SyncConnected, ConnectedReadOnly -> {
                ZooKeeper now = current();
                if (now != null) {
                    connected.accept(now);
                }
            }
            // The login has succeeded, on a connection that is established.
            case SaslAuthenticated -> {}
            case Expired -> {
                end();
                openAgain();
            }
            case AuthFailed -> {
                // This session is over; the service that checks logins may be back later.
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
                // This does not wait for the event thread, which may be the current thread.
                over.close();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public void close() {
        // "closed" is set before the session is ended. In the other order, another thread could open a session between
        // the two, and nobody would end it.
        synchronized (this) {
            closed = true;
        }
        end();
    }
}
