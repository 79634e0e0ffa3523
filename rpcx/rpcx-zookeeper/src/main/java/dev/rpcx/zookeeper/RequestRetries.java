package dev.rpcx.zookeeper;

import java.util.Map;
import java.util.function.Consumer;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;
import org.jspecify.annotations.Nullable;

/**
 * Begins and continues the requests of one watch or registration to ZooKeeper, in the session that has connected last.
 * After a failure they begin again with the first request. Answers of earlier sessions are ignored. For each session at
 * most one new try waits for its time, however often the session connects. Thread-safe.
 */
final class RequestRetries {
    /** Time between an answer that is a failure and the next try. */
    private static final long PAUSE_MILLIS = 1_000;

    private final Consumer<ZooKeeper> first;
    private final Consumer<Throwable> failed;

    // The lock of this object guards the following two fields. The event threads of the sessions and threads of
    // OwnThreads use them.
    private @Nullable ZooKeeper session;
    private @Nullable ZooKeeper waiting;

    /**
     * @param first sends the first request
     * @param failed called on the event thread for each answer that has no case of its own
     */
    RequestRetries(Consumer<ZooKeeper> first, Consumer<Throwable> failed) {
        this.first = first;
        this.failed = failed;
    }

    /** Sends the first request in this session. Called each time that the connection has been established. */
    void connected(ZooKeeper now) {
        synchronized (this) {
            session = now;
        }
        first.accept(now);
    }

    /** Sends the first request again, since something has changed. */
    void restart() {
        ZooKeeper now;
        synchronized (this) {
            now = session;
        }
        if (now != null) {
            first.accept(now);
        }
    }

    /**
     * Takes an answer. Every answer has a next step. One without a case of its own is a failure: {@code failed} is
     * called with it, and the first request is sent again after a pause. It is not sent again if the connection is
     * lost, the session has expired or its login has failed: then the next connection begins with it.
     *
     * @param about node or path that the request was about
     */
    void answered(int code, String about, ZooKeeper asked, Map<KeeperException.Code, Runnable> cases) {
        if (!isCurrent(asked)) {
            return;
        }
        KeeperException.Code said = KeeperException.Code.get(code);
        Runnable then = said == null ? null : cases.get(said);
        if (then != null) {
            then.run();
            return;
        }
        // The next try is scheduled first, since the listener may fail.
        if (said != KeeperException.Code.CONNECTIONLOSS
                && said != KeeperException.Code.SESSIONEXPIRED
                && said != KeeperException.Code.AUTHFAILED) {
            later(asked);
        }
        failed.accept(failure(code, about));
    }

    private synchronized boolean isCurrent(ZooKeeper asked) {
        return asked == session;
    }

    private void later(ZooKeeper asked) {
        synchronized (this) {
            if (waiting == asked) {
                return;
            }
            waiting = asked;
        }
        boolean isAsked = false;
        try {
            OwnThreads.later(
                    () -> {
                        if (endPause(asked)) {
                            first.accept(asked);
                        }
                    },
                    PAUSE_MILLIS);
            isAsked = true;
        } finally {
            if (!isAsked) {
                endPause(asked);
            }
        }
    }

    /**
     * Ends the pause of this session.
     *
     * @return whether the session is still the one that has connected last
     */
    private synchronized boolean endPause(ZooKeeper asked) {
        if (waiting == asked) {
            waiting = null;
        }
        return asked == session;
    }

    /** Returns the exception for a code. Not every code has one of its own. */
    private static Exception failure(int code, String about) {
        KeeperException.Code said = KeeperException.Code.get(code);
        if (said != null) {
            try {
                return KeeperException.create(said, about);
            } catch (IllegalArgumentException none) {
                // The code has no exception of its own; the one below is returned.
            }
        }
        return new IllegalStateException("ZooKeeper answers " + (said == null ? code : said) + " for " + about);
    }
}
