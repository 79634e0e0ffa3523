package dev.rpcx.zookeeper;

import java.util.Map;
import java.util.function.Consumer;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;
import org.jspecify.annotations.Nullable;

/**
 * What one watch or registration asks of ZooKeeper, from its first question on, for the session that has connected
 * last. Answers of a session before that count no more, and of each session one attempt at most waits to be made again,
 * however often it connects. Thread-safe.
 */
final class Attempts {
    /** Between a refusal and the next attempt. */
    private static final long PAUSE_MILLIS = 1_000;

    private final Consumer<ZooKeeper> first;
    private final Consumer<Throwable> failed;

    // guarded by this
    private @Nullable ZooKeeper session;
    private @Nullable ZooKeeper waiting;

    /**
     * @param first asks the first question
     * @param failed told of each answer that has no case of its own, on the event thread
     */
    Attempts(Consumer<ZooKeeper> first, Consumer<Throwable> failed) {
        this.first = first;
        this.failed = failed;
    }

    /** Each time that the connection stands. */
    void connected(ZooKeeper now) {
        synchronized (this) {
            session = now;
        }
        first.accept(now);
    }

    /** Something has changed: asks from the begin. */
    void again() {
        ZooKeeper now;
        synchronized (this) {
            now = session;
        }
        if (now != null) {
            first.accept(now);
        }
    }

    /**
     * Takes an answer. Every answer leads on: what has no case of its own is a failure, which is told, and after a
     * pause the first question is asked again. It is not where the connection is lost or over: the next connection
     * begins anew.
     *
     * @param about node or path that was asked about
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
        // the next attempt first: a listener may fail
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
                        if (isOver(asked)) {
                            first.accept(asked);
                        }
                    },
                    PAUSE_MILLIS);
            isAsked = true;
        } finally {
            if (!isAsked) {
                isOver(asked);
            }
        }
    }

    /** The pause is over. @return whether the session that waited is still there */
    private synchronized boolean isOver(ZooKeeper asked) {
        if (waiting == asked) {
            waiting = null;
        }
        return asked == session;
    }

    /** Not every code has an exception of its own. */
    private static Exception failure(int code, String about) {
        KeeperException.Code said = KeeperException.Code.get(code);
        if (said != null) {
            try {
                return KeeperException.create(said, about);
            } catch (IllegalArgumentException none) {
                // below
            }
        }
        return new IllegalStateException("ZooKeeper answers " + (said == null ? code : said) + " for " + about);
    }
}
