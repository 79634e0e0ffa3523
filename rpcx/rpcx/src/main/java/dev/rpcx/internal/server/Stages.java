package dev.rpcx.internal.server;

import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.call.BoundFuture;
import dev.rpcx.internal.ledger.LingeringCharge;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Keeps track of the calls that wait for stages. A call waits for the stage that its handler has returned, if the stage
 * has not ended yet. A stage holds whatever has been attached to it until it ends, and nothing can be detached from it.
 * So a call attaches nothing to a stage itself. Instead, RPCX attaches a single hook to the stage. A call waits at this
 * hook, as a {@code Waiter}, and is removed from it when the call no longer waits. So a stage that many calls share, or
 * that outlasts them, holds one hook, however many calls have waited for it. Thread-safe.
 */
public final class Stages {
    /**
     * Entries of the stages that have a hook. Each entry is also its own key. An entry refers to its stage weakly, so
     * that the stage can be collected together with its hook.
     */
    private static final Map<Object, Entry> HUNG = new ConcurrentHashMap<>();

    /** Queue into which the garbage collector puts the entries whose stages nobody can reach any more. */
    private static final ReferenceQueue<CompletionStage<?>> GONE = new ReferenceQueue<>();

    /**
     * Maximum number of entries of collected stages that each call of {@code hang} removes. Since each such call adds
     * at most 1 entry, removing 2 is enough to keep up.
     */
    private static final int GONE_AT_ONCE = 2;

    private Stages() {}

    /**
     * Returns whether the stage has ended, as far as this can be found out. A stage that
     * {@link CompletableFuture#completedStage} has made throws when it is asked whether it has ended, and classes of
     * users may do so too. Stages of such classes are treated as if they had not ended.
     */
    static boolean isDone(CompletionStage<?> stage) {
        return isPassive(stage) && ((CompletableFuture<?>) stage).isDone();
    }

    /**
     * Returns whether a stage has ended with the result null. {@link #isDone} must have returned true for the stage.
     */
    static boolean hasBroughtNull(CompletionStage<?> stage) {
        CompletableFuture<?> done = (CompletableFuture<?>) stage;
        return !done.isCompletedExceptionally() && done.join() == null;
    }

    /**
     * Returns whether attaching a dependent to the stage starts no work of the stage itself. This depends only on the
     * class of the stage. If the stage has ended, attaching a dependent runs that dependent, but this is not work of
     * the stage itself.
     */
    static boolean isPassive(CompletionStage<?> stage) {
        return stage instanceof BoundFuture<?> || stage.getClass() == CompletableFuture.class;
    }

    /** Attaches one of RPCX's own consumers to the stage. The stage calls this consumer when it ends. */
    private static void onEnd(CompletionStage<?> stage, BiConsumer<@Nullable Object, @Nullable Throwable> consumer) {
        if (stage instanceof BoundFuture<?> bound) {
            bound.onEnd(consumer);
        } else {
            stage.whenComplete(consumer);
        }
    }

    /** Returns whether any waiter other than {@code than} waits for the stage. */
    public static boolean hasOthers(CompletionStage<?> stage, Waiter than) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry != null && entry.hasOthers(than);
    }

    /**
     * Waits for one stage, and can be used only once. The waiter's own lock guards the fields {@code at},
     * {@code isAway} and {@code hook}.
     */
    abstract static class Waiter implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        /**
         * Previous waiter for the same stage; null if there is none. Guarded by the entry at which this waiter waits.
         */
        private @Nullable Waiter previous;

        /** Next waiter for the same stage; null if there is none. Guarded by the entry at which this waiter waits. */
        private @Nullable Waiter following;

        private @Nullable Entry at;

        private boolean isAway;

        /** Hook that was attached to the stage for this waiter; null if another waiter's hook was there already. */
        private @Nullable Hook hook;

        /**
         * Begins to wait. The waiter may be called before this method returns, on the calling thread or on the thread
         * that ends the stage.
         */
        final void await(CompletionStage<?> stage) {
            if (isDone(stage)) {
                // a stage that has ended calls the waiter now, and keeps nothing attached
                onEnd(stage, this);
            } else {
                hang(stage, this);
            }
        }

        /** Stops waiting. If the stage ends at the same time, the waiter may still be called. */
        final void leave() {
            Entry entry;
            synchronized (this) {
                isAway = true;
                entry = at;
            }
            if (entry != null) {
                entry.remove(this);
            }
        }

        /**
         * Returns the hook that was attached to the stage for this waiter; null if the stage's hook was attached for
         * another waiter. If this waiter was never added at a hook, the stage may have no hook. This method then
         * attaches a hook, but only if attaching a dependent starts no work of the stage: see {@code isPassive}. To a
         * stage of another kind, only {@link #await} attaches a hook, on the thread that runs the handler; for such a
         * stage, this method returns null.
         */
        final @Nullable Hook hook(CompletionStage<?> stage) {
            synchronized (this) {
                if (at != null) {
                    return hook;
                }
            }
            // the waiter stopped waiting before it was added at the hook
            return isPassive(stage) ? hang(stage, null) : null;
        }

        /**
         * Adds this waiter at an entry, unless the waiter has stopped waiting.
         *
         * @return false if the stage has ended; true if the waiter was added or has stopped waiting
         */
        final synchronized boolean addAt(Entry entry) {
            if (isAway) {
                return true;
            }
            if (!entry.add(this)) {
                return false;
            }
            at = entry;
            return true;
        }

        private synchronized void hung(Hook made) {
            hook = made;
        }
    }

    /**
     * Makes sure that the stage has a hook, and adds the waiter there, unless it is null or has stopped waiting.
     *
     * @return the hook, if this method has attached it; otherwise null
     */
    private static @Nullable Hook hang(CompletionStage<?> stage, @Nullable Waiter waiter) {
        forgetGone();
        while (true) {
            Entry entry = HUNG.get(new Probe(stage));
            if (entry == null) {
                Entry made = new Entry(stage);
                entry = HUNG.putIfAbsent(made, made);
                if (entry == null) {
                    entry = made;
                }
            }
            if (waiter == null || waiter.addAt(entry)) {
                return hook(stage, entry, waiter);
            }
            // the stage has ended in the meantime
            HUNG.remove(entry, entry);
        }
    }

    /**
     * Attaches a hook to the stage, if there is none. Two threads that both find no hook both attach one. Neither
     * relies on the other, since a thread that was about to attach the hook may have failed.
     *
     * @return the hook, if this method has attached it; otherwise null
     */
    private static @Nullable Hook hook(CompletionStage<?> stage, Entry entry, @Nullable Waiter waiter) {
        if (entry.isHung) {
            return null;
        }
        Hook made = new Hook(entry);
        if (waiter != null) {
            waiter.hung(made);
        }
        onEnd(stage, made);
        entry.isHung = true;
        return made;
    }

    private static void forgetGone() {
        for (int i = 0; i < GONE_AT_ONCE; i++) {
            Reference<?> gone = GONE.poll();
            if (gone == null) {
                return;
            }
            HUNG.remove(gone);
        }
    }

    /** Returns the number of stages with a hook. For tests. */
    public static int hung() {
        return HUNG.size();
    }

    /** Returns the number of waiters for this stage. For tests. */
    public static int waiting(CompletionStage<?> stage) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry == null ? 0 : entry.count();
    }

    /** Key by which an entry is found for a stage. */
    private static final class Probe {
        private final CompletionStage<?> stage;

        Probe(CompletionStage<?> stage) {
            this.stage = stage;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(stage);
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof Entry entry && entry.refersTo(stage);
        }
    }

    /** Waiters for one stage, in the order in which they came. Guarded by {@code this}. */
    static final class Entry extends WeakReference<CompletionStage<?>> {
        private final int hash;
        private @Nullable Waiter first;
        private @Nullable Waiter last;
        private boolean isOver;
        volatile boolean isHung;

        Entry(CompletionStage<?> stage) {
            super(stage, GONE);
            hash = System.identityHashCode(stage);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(@Nullable Object other) {
            if (other == this) {
                return true;
            }
            CompletionStage<?> stage = get();
            return stage != null && other instanceof Entry entry && entry.refersTo(stage);
        }

        /**
         * Adds a waiter after the others.
         *
         * @return false if the stage has ended
         */
        synchronized boolean add(Waiter waiter) {
            if (isOver) {
                return false;
            }
            Waiter before = last;
            waiter.previous = before;
            if (before == null) {
                first = waiter;
            } else {
                before.following = waiter;
            }
            last = waiter;
            return true;
        }

        synchronized void remove(Waiter waiter) {
            Waiter before = waiter.previous;
            Waiter after = waiter.following;
            if (before == null && waiter != first) {
                // the waiter has been called, or is about to be
                return;
            }
            if (before == null) {
                first = after;
            } else {
                before.following = after;
            }
            if (after == null) {
                last = before;
            } else {
                after.previous = before;
            }
            waiter.previous = null;
            waiter.following = null;
        }

        public synchronized boolean hasOthers(Waiter than) {
            return first != null && (first != than || last != than);
        }

        synchronized int count() {
            int count = 0;
            for (Waiter each = first; each != null; each = each.following) {
                count++;
            }
            return count;
        }

        /**
         * Removes the first waiter. After the first call of this method, no waiter can be added.
         *
         * @return the removed waiter, which the caller of this method has to call next; null if there is none
         */
        synchronized @Nullable Waiter next() {
            isOver = true;
            Waiter removed = first;
            if (removed != null) {
                remove(removed);
            }
            return removed;
        }
    }

    /**
     * Consumer that is attached to a stage. When the stage ends, the hook calls the waiters. Then it releases the
     * charge that it holds, if it holds one.
     */
    static final class Hook implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        private final Entry entry;
        private @Nullable LingeringCharge lingeringCharge;
        private boolean isOver;

        private Hook(Entry entry) {
            this.entry = entry;
        }

        /**
         * Gives a charge to this hook, which holds the charge until the stage ends. If the stage has ended already,
         * releases the charge now.
         */
        void holdCharge(LingeringCharge charge) {
            synchronized (this) {
                if (!isOver) {
                    lingeringCharge = charge;
                    return;
                }
            }
            charge.end();
        }

        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            HUNG.remove(entry);
            for (Waiter waiter = entry.next(); waiter != null; waiter = entry.next()) {
                try {
                    waiter.accept(value, thrown);
                } catch (Throwable e) {
                    // the other waiters are called nevertheless
                    ThreadTools.report(e);
                }
            }
            LingeringCharge charge;
            synchronized (this) {
                isOver = true;
                charge = lingeringCharge;
                lingeringCharge = null;
            }
            if (charge != null) {
                charge.end();
            }
        }
    }
}
